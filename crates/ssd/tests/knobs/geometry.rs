//! Geometry settings, and host commands other than writes.

use super::*;

#[test]
fn capacity_and_flash_follow_from_each_other() {
    let mut config = small(125, 0.25);
    let by_flash = DeviceLayout::new(&config).expect("valid");
    assert_eq!((by_flash.superblocks(), by_flash.logical_pages), (125, 25_600));
    config.geometry.physical_bytes = None;
    config.geometry.capacity_bytes = Some(100 * MIB);
    let by_capacity = DeviceLayout::new(&config).expect("valid");
    assert_eq!((by_capacity.superblocks(), by_capacity.logical_pages), (125, 25_600));
    // More over-provisioning reduces the capacity in one case and adds flash in the other.
    config.geometry.over_provisioning = 0.5;
    let more = DeviceLayout::new(&config).expect("valid");
    assert_eq!((more.superblocks(), more.logical_pages), (150, 25_600));
    let more = DeviceLayout::new(&small(125, 1.0)).expect("valid");
    assert_eq!((more.superblocks(), more.logical_pages), (125, 16_000));
    let tenth = DeviceLayout::new(&small(110, 0.10)).expect("valid");
    assert_eq!(tenth.logical_pages, 25_600, "110 MiB of flash at 0.10 are 100 MiB, whatever 0.10 is in binary");
    // The last page exists, and the page after it does not.
    let mut device = silent(&small(125, 0.25));
    write(&mut device, 25_599, 1, 0);
    assert!(device.write(0, &extent(25_599, 2, Placement::handle(0))).is_err());
}

#[test]
fn over_provisioning_lowers_write_amplification() {
    let amplification = |over_provisioning| steady_amplification(&small(128, over_provisioning));
    let measured = [0.08, 0.15, 0.30, 1.0].map(amplification);
    assert!(measured.windows(2).all(|pair| pair[0] > 1.15 * pair[1]), "{measured:?}");
}

#[test]
fn mapping_unit_is_what_a_small_write_costs() {
    for kibibytes in [4, 8, 16, 32, 64] {
        let mut config = small(64, 0.25);
        config.geometry.mapping_unit_bytes = kibibytes * 1024;
        let mut device = recorded(&config);
        assert_eq!(u64::from(device.layout().superblock_pages), 1024 / kibibytes);
        let write = WriteRequest { first: Lpn(5), pages: 1, host_bytes: 512, placement: Placement::handle(0) };
        let _ = device.write(0, &write).expect("the extent exists");
        assert_eq!(device.stats().host_bytes_written(), 512);
        assert_eq!(device.stats().media_bytes_written(), kibibytes * 1024);
        assert_eq!(device.stats().write_amplification(), Some(2.0 * kibibytes as f64));
        prove(&device);
    }
}

/// Overhead changes no decision. After n pages of data it is floor(n * share) pages.
#[test]
fn media_overhead_follows_the_data_and_takes_no_space_from_it() {
    let run = |share: f64| {
        let mut config = small(64, 0.25);
        config.geometry.media_overhead_share = share;
        config.endurance = Some(EnduranceConfig { rated_erases: 3000, spread: 0.0, warranty_years: 5.0 });
        let mut device = recorded(&config);
        let pages = device.layout().logical_pages;
        write(&mut device, 0, pages, 0);
        let filled = device.stats().clone();
        overwrite_uniformly(&mut device, &mut Uniform::new(3), (0, pages), 3 * u64::from(pages), 0);
        prove(&device);
        (filled, device)
    };
    let (filled, without) = run(0.0);
    let pages = filled.total().host_pages_written;
    assert_eq!((filled.overhead_pages(), filled.write_amplification()), (0, Some(1.0)));
    assert!(without.stats().total().gc_pages_copied > 10_000);
    for (share, in_a_thousand) in [(0.025, 25), (0.1, 100), (0.5, 500)] {
        let (filled_with, with) = run(share);
        assert_eq!(filled_with.overhead_pages(), pages * in_a_thousand / 1000, "of a sequential fill");
        let waf = filled_with.write_amplification().expect("the host has written");
        assert!((waf - 1.0 - share).abs() < 1.0 / pages as f64, "{waf}");

        let (stats, data_pages) = (with.stats(), without.stats().data_pages());
        assert_eq!(stats.overhead_pages(), data_pages * in_a_thousand / 1000);
        assert_eq!(stats.media_bytes_written(), (data_pages + stats.overhead_pages()) * 4096);
        let rows = |stats: &DeviceStats| (stats.handles.clone(), stats.shared, stats.foreground_collections);
        assert_eq!(rows(stats), rows(without.stats()), "overhead changes no decision");
        assert_eq!(with.block_erase_counts(), without.block_erase_counts());
        // Counters of a period are differences of counters.
        let since = stats.since(&filled_with);
        assert_eq!(since.overhead_pages(), stats.overhead_pages() - filled_with.overhead_pages());
        // Overhead wears flash of its own.
        let writes = |device: &Recorded| device.endurance().expect("it is configured").drive_writes_per_day;
        assert!((writes(&with) / writes(&without) - 1.0).abs() < 1e-4, "{share}");
    }
}

/// Four reclaim groups of one channel with two dies each, 32 superblocks of 256 pages in each, two
/// handles.
fn four_groups() -> DeviceConfig {
    let mut config = small(128, 0.30);
    config.geometry.channels = 4;
    config.geometry.dies_per_channel = 2;
    config.geometry.reclaim_groups = 4;
    config.handles.count = 2;
    config
}

/// Reclaim group of a logical page, from the numbering of physical pages.
fn group_of(device: &Recorded, lpn: u32) -> u32 {
    let layout = device.layout();
    device.lookup(Lpn(lpn)).expect("mapped").0 / (layout.superblocks_per_group * layout.superblock_pages)
}

#[test]
fn writes_without_a_placement_go_to_the_groups_in_turn() {
    let mut device = recorded(&four_groups());
    for turn in 0..9 {
        assert_eq!(device.default_placement(RuhId(3)), placement(turn % 4, 3));
        // A write with a placement does not advance the rotation.
        let _ = device.write(0, &extent(0, 1, placement(2, 1))).expect("the page exists");
    }
    let mut one = recorded(&small(96, 0.3));
    for _ in 0..3 {
        assert_eq!(one.default_placement(RuhId(0)), placement(0, 0));
    }
}

#[test]
fn reclaim_groups_keep_what_is_placed_in_them() {
    let mut device = recorded(&four_groups());
    assert_eq!(device.layout().superblocks_per_group, 32);
    let pages = device.layout().logical_pages;
    let mut uniform = Uniform::new(9);
    for round in 0..4 {
        for page in 0..pages {
            let page = if round == 0 { page } else { uniform.below(pages) };
            let placement = placement((page % 4) as u16, (page / 4 % 2) as u16);
            let _ = device.write(0, &extent(page, 1, placement)).expect("the page exists");
        }
    }
    assert!(reclaims(&device).len() > 100);
    for page in 0..pages {
        assert_eq!(group_of(&device, page), page % 4, "logical page {page}");
    }
    for event in device.sink() {
        if let DeviceEvent::Open { group, unit, .. } = event {
            assert_eq!(unit.0 / 32, u32::from(group.0), "a group opens its own superblocks");
        }
    }
    assert_eq!(device.stats().pages_redirected, 0);
    let refused = device.write(0, &extent(0, 1, placement(4, 0)));
    assert!(matches!(refused, Err(HostError::InvalidPlacement { group: 4, groups: 4, .. })));
    prove(&device);
}

#[test]
fn the_whole_capacity_is_reachable_through_one_reclaim_group() {
    let mut device = recorded(&four_groups());
    let pages = device.layout().logical_pages;
    let mut uniform = Uniform::new(10);
    for round in 0..3 {
        for page in 0..pages {
            let page = if round == 0 { page } else { uniform.below(pages) };
            let _ = device.write(0, &extent(page, 1, placement(2, 1))).expect("the page exists");
        }
    }
    assert_eq!(device.live_pages(), u64::from(pages));
    let in_group = |group| (0..pages).filter(|page| group_of(&device, *page) == group).count() as u64;
    assert!(in_group(2) <= device.layout().group_live_pages_max);
    assert!(in_group(2) > u64::from(pages) / 4, "the requested group holds as much as it can");
    assert!([0, 1, 3].into_iter().all(|group| in_group(group) > 0), "the others take the rest");
    let mut redirected = 0;
    for event in device.sink() {
        if let DeviceEvent::Redirect { from, to, pages } = event {
            assert!(*from == RgId(2) && *to != RgId(2));
            redirected += u64::from(*pages);
        }
    }
    assert!(redirected > 0);
    assert_eq!(device.stats().pages_redirected, redirected);
    prove(&device);
}

// ---------------------------------------------------------------------------------------------------------------------
// Host commands other than writes

#[test]
fn deallocated_pages_are_gone_and_cost_nothing() {
    let mut config = small(64, 0.25);
    config.gc.lazy_valid_share = 0.0;
    let mut device = recorded(&config);
    let pages = device.layout().logical_pages;
    write(&mut device, 0, pages / 2, 0);
    let _ = device.deallocate(0, Lpn(100), pages - 100).expect("the extent exists");
    assert_eq!(device.live_pages(), 100);
    assert_eq!(device.stats().pages_deallocated, u64::from(pages / 2 - 100), "mapped pages count, others do not");
    assert!(device.lookup(Lpn(99)).is_some() && device.lookup(Lpn(100)).is_none());
    assert_eq!(device.stats().media_bytes_written(), u64::from(pages / 2) * 4096, "nothing is written for it");
    for _ in 0..3 {
        write(&mut device, 100, pages - 100, 1);
        let _ = device.deallocate(0, Lpn(100), pages - 100).expect("the extent exists");
    }
    assert!(device.stats().total().gc_pages_copied <= 100, "only what is left is worth copying");
    assert!(device.deallocate(0, Lpn(pages - 1), 2).is_err());
    assert!(device.deallocate(0, Lpn(0), 0).is_err());
    prove(&device);
}

#[test]
fn zeroes_are_written_or_deallocated() {
    for deallocate in [false, true] {
        let mut device = recorded(&small(64, 0.25));
        write(&mut device, 0, 64, 0);
        let zeroes = extent(16, 16, Placement::handle(1));
        let _ = device.write_zeroes(0, &zeroes, deallocate).expect("the extent exists");
        let stats = device.stats();
        if deallocate {
            assert!(device.lookup(Lpn(16)).is_none());
            assert_eq!((stats.host_bytes_written(), stats.pages_deallocated), (64 * 4096, 16));
        } else {
            assert_eq!(owner_of(&device, 16), owner(1));
            assert_eq!((stats.host_bytes_written(), stats.pages_deallocated), (80 * 4096, 0));
        }
        let outside = extent(0, 1, Placement::handle(99));
        assert!(device.write_zeroes(0, &outside, deallocate).is_err());
        prove(&device);
    }
}

#[test]
fn update_handle_takes_another_reclaim_unit() {
    for opening in [UnitOpenPolicy::OnFirstUse, UnitOpenPolicy::Eager] {
        let mut config = small(64, 0.25);
        config.handles.opening = opening;
        let mut device = recorded(&config);
        let handle = Placement::handle(2);
        let available = |device: &Recorded| device.available_media_writes(handle).expect("the handle exists");
        assert_eq!(available(&device), UNIT_PAGES, "nothing is written yet");
        assert_eq!(device.update_handle(0, handle), Ok(0), "and there is nothing to close");
        write(&mut device, 0, 10, 2);
        assert_eq!(available(&device), UNIT_PAGES - 10);
        assert_eq!(device.update_handle(0, handle), Ok(UNIT_PAGES - 10));
        assert_eq!(available(&device), UNIT_PAGES);
        assert_eq!(device.stats().units_closed_by_host, 1);
        write(&mut device, 10, 1, 2);
        assert_ne!(unit_of(&device, 0), unit_of(&device, 10));
        assert!(device.update_handle(0, Placement::handle(4)).is_err());
        assert!(device.available_media_writes(placement(1, 0)).is_err());
        prove(&device);
    }
}
