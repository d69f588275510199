//! Settings of handles: isolation, count, reclaim unit sizes, open reclaim units, opening and
//! overrides.

use super::*;

// handles: isolation, adaptive isolation

/// Lets two handles overwrite pages of interleaved extents at random until all units have been
/// collected several times. Returns the last writer of each page.
fn two_interleaved_handles(isolation: Isolation, adaptive_isolation_spare: f64) -> (Recorded, Vec<u16>) {
    let mut config = small(64, 0.25);
    config.handles.isolation = isolation;
    config.gc.adaptive_isolation_spare = adaptive_isolation_spare;
    let mut device = recorded(&config);
    let pages = device.layout().logical_pages;
    let handle_of = |page: u32| (page / 16 % 2) as u16;
    let mut uniform = Uniform::new(3);
    for first in (0..pages).step_by(16) {
        write(&mut device, first, 16.min(pages - first), handle_of(first));
    }
    for _ in 0..6 * pages {
        let page = uniform.below(pages);
        write(&mut device, page, 1, handle_of(page));
    }
    prove(&device);
    let handles = (0..pages).map(handle_of).collect();
    (device, handles)
}

#[test]
fn initially_isolated_data_mixes_when_it_is_collected() {
    let (device, handles) = two_interleaved_handles(Isolation::InitiallyIsolated, 16.0);
    assert!(reclaims(&device).iter().all(|reclaim| reclaim.destination_owner == UnitOwner::SHARED_POOL));
    let mut mixed = 0;
    for ((unit_owner, unit), in_it) in handles_in_units(&device, &handles) {
        match unit_owner.handle() {
            Some(handle) => assert_eq!(in_it, BTreeSet::from([handle.0]), "{unit:?}: host data is isolated at first"),
            None => mixed += usize::from(in_it.len() == 2),
        }
    }
    assert!(mixed > 10, "only {mixed} reclaim units hold data of both handles");
}

#[test]
fn persistently_isolated_data_never_mixes() {
    let (device, handles) = two_interleaved_handles(Isolation::PersistentlyIsolated, 16.0);
    assert!(reclaims(&device).len() > 100);
    assert!(reclaims(&device).iter().all(|reclaim| reclaim.destination_owner == reclaim.victim_owner));
    for ((unit_owner, unit), in_it) in handles_in_units(&device, &handles) {
        let handle = unit_owner.handle().expect("nothing is shared");
        assert_eq!(in_it, BTreeSet::from([handle.0]), "{unit:?}");
    }
}

#[test]
fn isolation_of_a_handle_is_its_own() {
    let mut config = small(64, 0.25);
    config.handles.overrides = vec![HandleOverride {
        index: 1,
        isolation: Some(Isolation::PersistentlyIsolated),
        reclaim_unit: None,
        open_reclaim_units: None,
    }];
    let mut device = recorded(&config);
    let pages = device.layout().logical_pages;
    let mut uniform = Uniform::new(4);
    for round in 0..5 {
        for page in 0..pages {
            let page = if round == 0 { page } else { uniform.below(pages) };
            write(&mut device, page, 1, (page % 3) as u16);
        }
    }
    prove(&device);
    let mut destinations = BTreeSet::new();
    for reclaim in reclaims(&device) {
        destinations.insert((reclaim.victim_owner, reclaim.destination_owner));
    }
    let shared = UnitOwner::SHARED_POOL;
    let expected = [(owner(0), shared), (owner(1), owner(1)), (owner(2), shared), (shared, shared)];
    assert_eq!(destinations, BTreeSet::from(expected));
}

#[test]
fn adaptive_isolation_follows_the_spare() {
    // About 12 spare superblocks and two handles allow 4 for each handle, but not 8.
    let destinations = |threshold| {
        let (device, _) = two_interleaved_handles(Isolation::Adaptive, threshold);
        let shared = |reclaim: &ssd::event::ReclaimRecord| reclaim.destination_owner == UnitOwner::SHARED_POOL;
        let collections = reclaims(&device);
        let late = &collections[collections.len() / 2..];
        (late.iter().any(shared), late.iter().all(shared))
    };
    assert_eq!(destinations(4.0), (false, false), "persistently isolated: nothing is shared");
    assert_eq!(destinations(8.0), (true, true), "initially isolated: all is shared");

    // The same threshold with another over-provisioning.
    let shared_at = |over_provisioning| {
        let mut config = small(64, over_provisioning);
        config.handles.count = 1;
        config.handles.isolation = Isolation::Adaptive;
        config.gc.adaptive_isolation_spare = 10.0;
        let mut device = recorded(&config);
        let pages = device.layout().logical_pages;
        write(&mut device, 0, pages, 0);
        overwrite_uniformly(&mut device, &mut Uniform::new(5), (0, pages), 3 * u64::from(pages), 0);
        let last = reclaims(&device).last().expect("collection ran").clone();
        last.destination_owner == UnitOwner::SHARED_POOL
    };
    assert_eq!([0.10, 0.50].map(shared_at), [true, false]);
}

#[test]
fn adaptive_isolation_goes_back_below_three_quarters_of_its_threshold() {
    let mut config = small(64, 0.10);
    config.handles.count = 1;
    config.handles.isolation = Isolation::Adaptive;
    config.gc.adaptive_isolation_spare = 20.0;
    let mut device = recorded(&config);
    let mut uniform = Uniform::new(6);
    let mut live_units = 0;
    // This many of 64 reclaim units hold data and the rest is spare. Isolation starts at 20 spare
    // units and ends below 15.
    for (units, expected) in [
        (50, UnitOwner::SHARED_POOL),
        (46, UnitOwner::SHARED_POOL),
        (40, owner(0)),
        (46, owner(0)),
        (48, owner(0)),
        (50, UnitOwner::SHARED_POOL),
        (48, UnitOwner::SHARED_POOL),
        (45, UnitOwner::SHARED_POOL),
        (43, owner(0)),
    ] {
        let pages = units * UNIT_PAGES;
        if units > live_units {
            write(&mut device, live_units * UNIT_PAGES, pages - live_units * UNIT_PAGES, 0);
        } else {
            let dropped = (live_units - units) * UNIT_PAGES;
            let _ = device.deallocate(0, Lpn(pages), dropped).expect("the extent exists");
        }
        live_units = units;
        let before = reclaims(&device).len();
        overwrite_uniformly(&mut device, &mut uniform, (0, pages), 10_000, 0);
        let all = reclaims(&device);
        let since = &all[before + 1..];
        assert!(!since.is_empty(), "collection runs with {units} units of data");
        assert!(
            since.iter().filter(|reclaim| reclaim.victim_owner != UnitOwner::SHARED_POOL).count() > 0,
            "data of the handle is collected with {units} units of data"
        );
        for reclaim in since.iter().filter(|reclaim| reclaim.victim_owner != UnitOwner::SHARED_POOL) {
            assert_eq!(reclaim.destination_owner, expected, "with {units} units of data");
        }
    }
    prove(&device);
    let closed =
        |event: &&DeviceEvent| matches!(event, DeviceEvent::Close { reason: CloseReason::IsolationChanged, .. });
    let closed = device.sink().iter().filter(closed).count();
    assert_eq!(closed, 1, "going back closes the handle's reclaim unit for copies");
}

// ---------------------------------------------------------------------------------------------------------------------
// handles: count, reclaim unit sizes, open reclaim units, opening, overrides

#[test]
fn count_is_the_number_of_handles() {
    for count in [1, 3, 128] {
        let mut config = small(256, 0.25);
        config.handles.count = count;
        let mut device = recorded(&config);
        write(&mut device, 0, 1, count - 1);
        assert_eq!(device.stats().handles.len(), usize::from(count));
        let refused = device.write(0, &extent(0, 1, Placement::handle(count)));
        assert_eq!(refused, Err(HostError::InvalidPlacement { group: 0, handle: count, groups: 1, handles: count }));
    }
}

#[test]
fn the_same_handle_keeps_its_reclaim_unit_until_it_is_full() {
    let mut device = recorded(&small(64, 0.25));
    for turn in 0..UNIT_PAGES {
        for handle in 0..4 {
            write(&mut device, turn * 4 + u32::from(handle), 1, handle);
        }
    }
    let unit = |turn, handle| unit_of(&device, turn * 4 + handle);
    let all: BTreeSet<RuId> = (0..4).map(|handle| unit(0, handle)).collect();
    assert_eq!(all.len(), 4, "each handle has its own");
    for turn in 0..UNIT_PAGES {
        for handle in 0..4 {
            assert_eq!(unit(turn, handle), unit(0, handle), "write {turn} through handle {handle}");
        }
    }
    write(&mut device, 4 * UNIT_PAGES, 1, 2);
    assert!(!all.contains(&unit_of(&device, 4 * UNIT_PAGES)), "a full one is followed by another");
}

/// 4 channels of 2 dies with 2 planes, which give 16 blocks of 16 pages in a superblock of 256.
fn many_dies() -> DeviceConfig {
    let mut config = small(64, 0.30);
    config.geometry.channels = 4;
    config.geometry.dies_per_channel = 2;
    config.geometry.planes_per_die = 2;
    config
}

#[test]
fn reclaim_unit_size_is_what_it_is_called() {
    for (size, pages) in [
        (ReclaimUnitSize::Superblock, 256),
        (ReclaimUnitSize::Fraction(1), 256),
        (ReclaimUnitSize::Fraction(2), 128),
        (ReclaimUnitSize::Fraction(16), 16),
        (ReclaimUnitSize::Channel, 64),
        (ReclaimUnitSize::Die, 32),
    ] {
        let mut config = many_dies();
        config.handles.reclaim_unit = size;
        let mut device = recorded(&config);
        write(&mut device, 0, 2 * UNIT_PAGES, 0);
        let opened = opened_pages(&device, owner(0));
        assert_eq!(opened, vec![pages; (2 * UNIT_PAGES / pages) as usize], "{size:?}");
        prove(&device);
    }
}

#[test]
fn channels_dies_and_planes_shape_the_reclaim_units() {
    for (channels, dies_per_channel, planes_per_die, blocks, channel_pages, die_pages) in
        [(2, 2, 1, 4, 128, 64), (4, 2, 1, 8, 64, 32), (2, 4, 1, 8, 128, 32), (2, 2, 2, 8, 128, 64)]
    {
        let sizes = [(ReclaimUnitSize::Channel, channel_pages), (ReclaimUnitSize::Die, die_pages)];
        for (size, pages) in sizes {
            let mut config = small(64, 0.30);
            config.geometry.channels = channels;
            config.geometry.dies_per_channel = dies_per_channel;
            config.geometry.planes_per_die = planes_per_die;
            config.handles.reclaim_unit = size;
            let mut device = recorded(&config);
            write(&mut device, 0, 1, 0);
            let shape = format!("{channels} channels, {dies_per_channel} dies, {planes_per_die} planes, {size:?}");
            assert_eq!(opened_pages(&device, owner(0)), [pages], "{shape}");
            assert_eq!(device.block_erase_counts().len(), 64 * blocks, "{shape}");
        }
    }
}

#[test]
fn smaller_reclaim_units_lie_on_the_dies_they_are_called_after() {
    // The second of two small reclaim units is reclaimed. Erase counts show its blocks.
    for (size, expected) in
        [(ReclaimUnitSize::Fraction(2), 8..16), (ReclaimUnitSize::Channel, 4..8), (ReclaimUnitSize::Die, 2..4)]
    {
        let mut config = many_dies();
        config.handles.reclaim_unit = size;
        config.gc.background_watermark = 0.0;
        config.gc.watermark_base = WatermarkBase::All;
        let mut device = recorded(&config);
        write(&mut device, 0, UNIT_PAGES, 0);
        let pages = opened_pages(&device, owner(0))[0];
        let _ = device.deallocate(0, Lpn(pages), pages).expect("the extent exists");
        write(&mut device, 4 * UNIT_PAGES, 1, 1);
        let counts = device.block_erase_counts().iter().enumerate();
        let erased: Vec<usize> = counts.filter(|(_, count)| **count > 0).map(|(block, _)| block).collect();
        assert_eq!(erased, expected.collect::<Vec<_>>(), "{size:?}");
        prove(&device);
    }
}

#[test]
fn copies_get_reclaim_units_of_the_size_that_they_come_from() {
    for (isolation, expected) in [
        (Isolation::PersistentlyIsolated, (owner(0), 32)),
        (Isolation::InitiallyIsolated, (UnitOwner::SHARED_POOL, 32)),
    ] {
        let mut config = many_dies();
        config.handles.isolation = isolation;
        config.handles.reclaim_unit = ReclaimUnitSize::Die;
        let mut device = recorded(&config);
        let pages = device.layout().logical_pages;
        write(&mut device, 0, pages, 0);
        overwrite_uniformly(&mut device, &mut Uniform::new(12), (0, pages), 2 * u64::from(pages), 0);
        let mut opened = BTreeSet::new();
        for event in device.sink() {
            if let DeviceEvent::Open { owner, unit_pages, for_collection: true, .. } = event {
                opened.insert((*owner, *unit_pages));
            }
        }
        assert_eq!(opened, BTreeSet::from([expected]), "{isolation:?}");
        prove(&device);
    }
}

#[test]
fn a_channel_of_a_reclaim_group_is_the_part_of_it_that_the_group_has() {
    // 4 channels of 2 dies, 256 pages in a superblock of each group.
    for (groups, pages) in [(1, 64), (2, 128), (4, 256), (8, 256)] {
        let mut config = small(256, 0.30);
        config.geometry.channels = 4;
        config.geometry.reclaim_groups = groups;
        config.handles.reclaim_unit = ReclaimUnitSize::Channel;
        let mut device = recorded(&config);
        write(&mut device, 0, 1, 0);
        assert_eq!(opened_pages(&device, owner(0)), [pages], "{groups} reclaim groups");
    }
}

#[test]
fn reclaim_unit_bytes_is_the_size_of_a_superblock() {
    for mebibytes in [1, 2, 8] {
        let mut config = small(64, 0.30);
        config.geometry.reclaim_unit_bytes = mebibytes * MIB;
        config.geometry.physical_bytes = Some(64 * mebibytes * MIB);
        let mut device = recorded(&config);
        write(&mut device, 0, 1, 0);
        assert_eq!(opened_pages(&device, owner(0)), [256 * mebibytes as u32]);
    }
}

#[test]
fn divided_superblocks_merge_again() {
    let mut config = many_dies();
    config.handles.overrides = vec![HandleOverride {
        index: 1,
        isolation: None,
        reclaim_unit: Some(ReclaimUnitSize::Die),
        open_reclaim_units: None,
    }];
    let mut device = recorded(&config);
    let pages = device.layout().logical_pages;
    write(&mut device, 0, pages, 1);
    assert!(opened_pages(&device, owner(1)).iter().all(|pages| *pages == 32));
    let divided = opened_pages(&device, owner(1)).len() as u32 * 32 / 256;
    assert!(divided >= 40, "only {divided} superblocks were divided");
    let _ = device.deallocate(0, Lpn(0), pages).expect("the extent exists");
    write(&mut device, 0, pages, 0);
    let whole = opened_pages(&device, owner(0));
    assert_eq!(whole.len() as u32, pages.div_ceil(UNIT_PAGES), "all are whole superblocks");
    assert_eq!(device.stats().total().gc_pages_copied, 0, "nothing was left to copy");
    prove(&device);
    // The superblocks can be divided again.
    write(&mut device, 0, pages, 1);
    prove(&device);
}

#[test]
fn open_reclaim_units_take_commands_round_robin() {
    for open in [1, 2, 3, 5] {
        let mut config = small(64, 0.25);
        config.handles.open_reclaim_units = open;
        let mut device = recorded(&config);
        // Two pages each, because commands are distributed, not pages.
        for command in 0..60 {
            write(&mut device, 2 * command, 2, 0);
        }
        let units: Vec<RuId> = (0..60).map(|command| unit_of(&device, 2 * command)).collect();
        let different: BTreeSet<RuId> = units[..usize::from(open)].iter().copied().collect();
        assert_eq!(different.len(), usize::from(open));
        for command in 0..60 {
            assert_eq!(unit_of(&device, 2 * command as u32 + 1), units[command], "a command stays together");
            assert_eq!(units[command], units[command % usize::from(open)], "command {command} of {open}");
        }
    }
}

#[test]
fn eager_opening_takes_every_reclaim_unit_at_start() {
    let opens = |opening, isolation: Isolation, groups, open_reclaim_units| {
        let mut config = small(128, 0.30);
        config.handles.opening = opening;
        config.handles.isolation = isolation;
        config.handles.open_reclaim_units = open_reclaim_units;
        config.geometry.reclaim_groups = groups;
        let device = recorded(&config);
        prove(&device);
        let mut found = BTreeMap::new();
        for event in device.sink() {
            let DeviceEvent::Open { owner, for_collection, .. } = event else {
                panic!("only reclaim units are opened at start");
            };
            *found.entry((*owner, *for_collection)).or_insert(0) += 1;
        }
        found
    };
    for isolation in [Isolation::InitiallyIsolated, Isolation::PersistentlyIsolated, Isolation::Adaptive] {
        assert!(opens(UnitOpenPolicy::OnFirstUse, isolation, 1, 1).is_empty());
    }
    let hosts = |count| (0..4).map(move |handle| ((owner(handle), false), count));
    let initially = hosts(1).chain([((UnitOwner::SHARED_POOL, true), 1)]);
    assert_eq!(opens(UnitOpenPolicy::Eager, Isolation::InitiallyIsolated, 1, 1), initially.collect());
    let persistently = hosts(1).chain((0..4).map(|handle| ((owner(handle), true), 1)));
    assert_eq!(opens(UnitOpenPolicy::Eager, Isolation::PersistentlyIsolated, 1, 1), persistently.collect());
    let twice = hosts(4).chain([((UnitOwner::SHARED_POOL, true), 2)]);
    assert_eq!(opens(UnitOpenPolicy::Eager, Isolation::InitiallyIsolated, 2, 2), twice.collect());
}

#[test]
fn eager_opening_takes_the_next_reclaim_unit_at_once() {
    for (opening, expected) in [(UnitOpenPolicy::OnFirstUse, 1), (UnitOpenPolicy::Eager, 2)] {
        let mut config = small(64, 0.25);
        config.handles.opening = opening;
        let mut device = recorded(&config);
        write(&mut device, 0, UNIT_PAGES, 0);
        assert_eq!(opened_pages(&device, owner(0)).len(), expected, "{opening:?}");
    }
}

#[test]
fn eager_opening_costs_spare() {
    let amplification = |opening| {
        let mut config = small(128, 0.20);
        config.handles.count = 6;
        config.handles.isolation = Isolation::PersistentlyIsolated;
        config.handles.opening = opening;
        steady_amplification(&config)
    };
    let (lazily, eagerly) = (amplification(UnitOpenPolicy::OnFirstUse), amplification(UnitOpenPolicy::Eager));
    assert!(eagerly > 1.5 * lazily, "{lazily} on first use, {eagerly} eagerly");
}

#[test]
fn overrides_hold_for_their_handle_only() {
    let mut config = many_dies();
    config.handles.overrides = vec![
        HandleOverride {
            index: 1,
            isolation: None,
            reclaim_unit: Some(ReclaimUnitSize::Channel),
            open_reclaim_units: None,
        },
        HandleOverride { index: 2, isolation: None, reclaim_unit: None, open_reclaim_units: Some(3) },
    ];
    let mut device = recorded(&config);
    for command in 0..30 {
        for handle in 0..4 {
            write(&mut device, command * 4 + u32::from(handle), 1, handle);
        }
    }
    let expected: [&[u32]; 4] = [&[256], &[64], &[256, 256, 256], &[256]];
    for (handle, pages) in expected.iter().enumerate() {
        assert_eq!(&opened_pages(&device, owner(handle as u16)), pages, "handle {handle}");
    }
}
