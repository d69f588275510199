//! Hand-computed layouts and state transitions that the swarm cannot judge, because its reference
//! model takes the layout as given or does not count them.

mod common;

use common::{MIB, extent, owner, prove, reclaims, recorded, small};
use ssd::config::{
    GcDestination, Geometry, HandleConfig, HandleOverride, HandlesConfig, Isolation, ReclaimUnitSize, UnitOpenPolicy,
    WatermarkBase,
};
use ssd::event::Trigger;
use ssd::layout::SizeClass;
use ssd::unit::ReclaimUnit;
use ssd::{ConfigError, DeviceConfig, DeviceEvent, DeviceLayout, Lpn, Placement, RuhId, UnitOwner};

/// Size of a superblock of [`mixed`]: 12 blocks of 16 pages of 4 KiB.
const MIXED_BYTES: u64 = 12 * 16 * 4096;

/// Two reclaim groups of six dies with two planes. The handles have every isolation and four sizes.
/// One size divides a superblock by 4 and one by 6, so a slice is a twelfth. The configured flash
/// is 99.6 superblocks in each group.
fn mixed() -> DeviceConfig {
    let given = |index, isolation, reclaim_unit, open_reclaim_units| HandleOverride {
        index,
        isolation: Some(isolation),
        reclaim_unit: Some(reclaim_unit),
        open_reclaim_units: Some(open_reclaim_units),
    };
    let mut config = small(1, 0.25);
    config.geometry = Geometry {
        capacity_bytes: Some(125_325_803),
        physical_bytes: None,
        over_provisioning: 0.25,
        media_overhead_share: 0.1,
        reclaim_unit_bytes: MIXED_BYTES,
        mapping_unit_bytes: 4096,
        program_unit_bytes: Some(8192),
        channels: 4,
        dies_per_channel: 3,
        planes_per_die: 2,
        reclaim_groups: 2,
    };
    config.handles = HandlesConfig {
        count: 4,
        overrides: vec![
            given(0, Isolation::InitiallyIsolated, ReclaimUnitSize::Superblock, 1),
            given(1, Isolation::PersistentlyIsolated, ReclaimUnitSize::Channel, 2),
            given(2, Isolation::Adaptive, ReclaimUnitSize::Die, 3),
            given(3, Isolation::InitiallyIsolated, ReclaimUnitSize::Fraction(4), 1),
        ],
        ..config.handles
    };
    // Two and a half pages.
    config.handles.write_absorption_bytes = 10_240;
    config.gc.reserve_share = 0.33;
    config.gc.background_watermark = 0.9;
    config.gc.foreground_watermark = 0.5;
    config
}

fn layout(config: &DeviceConfig) -> DeviceLayout {
    DeviceLayout::new(config).expect("the configuration is valid")
}

fn refusal(config: &DeviceConfig) -> ConfigError {
    DeviceLayout::new(config).expect_err("the configuration is refused")
}

/// Checks every number of a layout with all features against a hand computation.
#[test]
fn each_number_of_a_layout_is_the_one_worked_out_by_hand() {
    let handle =
        |isolation, reclaim_unit, open_reclaim_units| HandleConfig { isolation, reclaim_unit, open_reclaim_units };
    let class = |divisor, pages, slices, blocks| SizeClass { divisor, pages, slices, blocks };
    let found = layout(&mixed());
    let expected = DeviceLayout {
        page_bytes: 4096,
        // 125 325 803 / 4096. A group's half of these pages needs 80 superblocks.
        logical_pages: 30_597,
        // 125 325 803 * 1.25 bytes are 99.6 superblocks in each of two groups.
        physical_pages: 2 * 100 * 192,
        groups: 2,
        superblocks_per_group: 100,
        superblock_pages: 192,
        blocks_per_superblock: 12,
        block_pages: 16,
        program_unit_pages: 2,
        classes: vec![class(1, 192, 12, 12), class(2, 96, 6, 6), class(4, 48, 3, 3), class(6, 32, 2, 2)],
        slices_per_superblock: 12,
        slice_pages: 16,
        handles: vec![
            handle(Isolation::InitiallyIsolated, ReclaimUnitSize::Superblock, 1),
            handle(Isolation::PersistentlyIsolated, ReclaimUnitSize::Channel, 2),
            handle(Isolation::Adaptive, ReclaimUnitSize::Die, 3),
            handle(Isolation::InitiallyIsolated, ReclaimUnitSize::Fraction(4), 1),
        ],
        separation_pages: 0,
        absorption_pages: 3,
        pooled_copies: UnitOwner::SHARED_POOL,
        // 100 - 80 = 20 superblocks. A third of them is 6.6.
        reserve_superblocks: 6,
        spare_superblocks: 14,
        // One of each class.
        collection_superblocks: 4,
        // A tenth of 14 * 12 slices, plus the 6 * 12 in reserve.
        background_free_slices: 16 + 72,
        // Half of 14 * 12 slices, plus the reserve.
        foreground_free_slices: 84 + 72,
        // 3 frontiers, 3 smaller classes, 4 for collection, 1 for the host and 6 in reserve leave
        // 83 superblocks. One more may be full except for a page.
        group_live_pages_max: 84 * 192 - 1,
    };
    assert_eq!(found, expected);
    assert_eq!((found.superblocks(), found.slices()), (200, 2400));
    assert_eq!((found.blocks(), found.capacity_bytes()), (2400, 30_597 * 4096));
    assert_eq!((found.handle_count(), found.placement_count()), (4, 8));
    assert_eq!(found.handle_list(), [RuhId(0), RuhId(1), RuhId(2), RuhId(3)]);
    let over_provisioning = (38_400.0 - 30_597.0) / 30_597.0;
    assert!((found.effective_over_provisioning() - over_provisioning).abs() < 1e-12);
    // 4 bytes a page for each map, two bits a page, 8 bytes a block, and an entry a slice.
    let expected_bytes = 4 * 30_597 + 4 * 38_400 + 9_600 + 8 * 2_400 + 2_400 * size_of::<ReclaimUnit>() as u64;
    assert_eq!(found.memory_bytes(), expected_bytes);
}

/// Watermarks are shares of the spare or of all flash. The space that collection needs stays free
/// at any setting.
#[test]
fn marks_are_shares_of_what_they_say_and_never_below_what_collection_needs() {
    let mut config = mixed();
    config.gc.watermark_base = WatermarkBase::All;
    let found = layout(&config);
    // 0.1 and 0.5 of 1200 slices, plus 72 in reserve. The binary value of 1 - 0.9 is less than a
    // tenth.
    assert_eq!(found.background_free_slices, 120 + 72);
    assert_eq!(found.foreground_free_slices, 600 + 72);

    let mut config = mixed();
    config.gc.background_watermark = 1.0;
    config.gc.foreground_watermark = 0.95;
    let found = layout(&config);
    assert_eq!(found.background_free_slices, 0, "a mark of 1 switches it off");
    // 8 + 72 would be too few. The floor is 6 superblocks in reserve, 4 for collection and 11
    // scattered slices.
    assert_eq!(found.foreground_free_slices, 10 * 12 + 11);

    config.gc.reserve_share = 0.0;
    let found = layout(&config);
    assert_eq!((found.reserve_superblocks, found.spare_superblocks), (0, 20));
    assert_eq!(found.foreground_free_slices, 4 * 12 + 11);
}

/// An eager device keeps 7 units of its handles and 3 of its frontiers open here. Emergency
/// collection would leave only 6.
#[test]
fn eager_opening_takes_what_is_open_from_the_live_data() {
    let mut config = mixed();
    config.handles.opening = UnitOpenPolicy::Eager;
    // 79 superblocks of live data, 10 open, 4 for collection, 1 for the host and 6 in reserve are
    // exactly 100.
    assert_eq!(layout(&config).group_live_pages_max, 80 * 192 - 1);
    config.handles.overrides[2].open_reclaim_units = Some(4);
    let refused = refusal(&config);
    assert!(refused.allowed.contains("needs 101"), "{refused}");

    // With one handle, emergency collection leaves as many as are open.
    let mut config = small(24, 0.2);
    config.handles.count = 1;
    let on_first_use = layout(&config);
    config.handles.opening = UnitOpenPolicy::Eager;
    let eager = layout(&config);
    // 24 superblocks less 1 frontier, 1 for collection, 1 for the host. Eager opening takes 1 more.
    assert_eq!(on_first_use.group_live_pages_max, 22 * 256 - 1);
    assert_eq!(eager.group_live_pages_max, 21 * 256 - 1);
}

/// Copies that share the host's unit need no extra space if all units are open. After emergency
/// collection they need as much as separate copies.
#[test]
fn copies_among_host_data_take_as_much_from_the_live_data_as_others_and_nothing_beside_open_units() {
    let rooms = |copies, opening| {
        let mut config = small(24, 0.4);
        (config.gc.copies, config.handles.opening) = (copies, opening);
        (layout(&config).group_live_pages_max + 1) / 256
    };
    // 25 less 1 for collection, 1 for the host and 1 frontier. Eager opening takes 4 for handles
    // and 1 for copies.
    assert_eq!(rooms(GcDestination::Apart, UnitOpenPolicy::OnFirstUse), 22);
    assert_eq!(rooms(GcDestination::WithHost, UnitOpenPolicy::OnFirstUse), 22);
    assert_eq!(rooms(GcDestination::Apart, UnitOpenPolicy::Eager), 18);
    assert_eq!(rooms(GcDestination::WithHost, UnitOpenPolicy::Eager), 19);
}

/// If all handles are isolated, no shared frontier exists. If all are shared, only the shared one
/// exists.
#[test]
fn each_isolated_handle_and_the_shared_pool_have_a_frontier() {
    let live_superblocks = |isolation| {
        let mut config = small(40, 0.3);
        config.handles.isolation = isolation;
        (layout(&config).group_live_pages_max + 1) / 256
    };
    // 40 less 1 for collection, 1 for the host and the frontiers, plus 1 that is nearly full.
    assert_eq!(live_superblocks(Isolation::InitiallyIsolated), 41 - 2 - 1);
    assert_eq!(live_superblocks(Isolation::PersistentlyIsolated), 41 - 2 - 4);
    assert_eq!(live_superblocks(Isolation::Adaptive), 41 - 2 - 5);
}

/// Checks the text of an error for lack of space word for word, because users follow its remedy.
#[test]
fn a_refusal_for_want_of_room_names_what_there_is_and_what_is_needed() {
    let mut config = small(1, 0.0105);
    config.geometry.reclaim_unit_bytes = 3 * MIB;
    // One page less than 20 superblocks of live data in each of two groups.
    config.geometry.physical_bytes = None;
    config.geometry.capacity_bytes = Some(2 * (20 * 768 - 1) * 4096);
    config.geometry.reclaim_groups = 2;
    let refused = refusal(&config);
    assert_eq!(refused.field, "geometry.over_provisioning");
    assert_eq!(refused.value, "0.0105");
    // The extra page for the last write makes 20. A frontier, one for collection and one for the
    // host follow. 22.5 round to 23, which is 1.125 of 20 and a little.
    assert_eq!(
        refused.allowed,
        "each reclaim group has only 20 superblocks of 3 MiB and needs 23, for the data of a full drive, \
         the open reclaim units of 4 handles and the copies of garbage collection. The smallest over-provisioning \
         that works here is 0.126. Fewer handles, a smaller geometry.reclaim_unit_bytes or a smaller gc.reserve_share also help"
    );
    config.geometry.over_provisioning = 0.126;
    assert_eq!(layout(&config).superblocks_per_group, 23);

    // 2 superblocks of live data and 2 of spare are too few for 4 isolated handles and the other
    // needs.
    let mut config = small(4, 1.0);
    config.handles.isolation = Isolation::PersistentlyIsolated;
    let refused = refusal(&config);
    assert!(refused.allowed.contains("No over-provisioning up to 1 is enough"), "{refused}");
}

/// Capacity and flash are rounded to whole pages and whole superblocks in every group, and neither
/// may be zero.
#[test]
fn capacity_and_flash_are_whole_and_not_nothing() {
    let mut config = small(1, 0.1);
    // One byte less than 110 superblocks is 109. 110 at 0.1 are exactly 100 despite binary
    // rounding.
    config.geometry.physical_bytes = Some(110 * MIB - 1);
    assert_eq!(layout(&config).superblocks_per_group, 109);
    config.geometry.physical_bytes = Some(110 * MIB);
    let found = layout(&config);
    assert_eq!((found.superblocks_per_group, found.logical_pages), (110, 100 * 256));
    // Two groups cannot share an odd superblock.
    config.geometry.physical_bytes = Some(111 * MIB);
    config.geometry.reclaim_groups = 2;
    let found = layout(&config);
    assert_eq!((found.superblocks_per_group, found.superblocks()), (55, 110));
    assert_eq!(found.logical_pages, 100 * 256);

    // 25 pages, and an eighth of a superblock.
    let mut config = small(1, 0.1);
    (config.geometry.physical_bytes, config.geometry.capacity_bytes) = (None, Some(MIB / 10));
    let refused = refusal(&config);
    assert_eq!(refused.field, "geometry.capacity_bytes");
    assert!(refused.allowed.contains("(1048576 bytes)"), "{refused}");

    // Two single-page superblocks, and less than a page.
    config.geometry = Geometry {
        capacity_bytes: Some(60_000),
        over_provisioning: 1.0,
        mapping_unit_bytes: 65_536,
        reclaim_unit_bytes: 65_536,
        channels: 1,
        dies_per_channel: 1,
        ..config.geometry
    };
    let refused = refusal(&config);
    assert_eq!(refused.field, "geometry.capacity_bytes");
    assert!(refused.allowed.contains("at least one superblock"), "{refused}");
}

/// The error for too many pages for 32 bits names the smallest mapping unit that works.
#[test]
fn a_drive_with_too_many_pages_is_told_the_mapping_unit_that_works() {
    let flash = |bytes: u64, mapping_unit_bytes: u64, reclaim_unit_bytes: u64| {
        let mut config = small(1, 0.1);
        config.geometry = Geometry {
            physical_bytes: Some(bytes),
            mapping_unit_bytes,
            reclaim_unit_bytes,
            channels: 1,
            dies_per_channel: 1,
            ..config.geometry
        };
        refusal(&config)
    };
    let forty_tib = flash(40 << 40, 4096, 1 << 30);
    assert_eq!(
        forty_tib.allowed,
        "40 TiB of flash exceed the 32-bit page numbers. Mapping units of 4 KiB must total less than 16 TiB. Use \
         geometry.mapping_unit_bytes = 16384 or more, as drives of this size do"
    );
    let beyond = flash(512 << 40, 8192, 1 << 30);
    assert!(beyond.allowed.contains("No geometry.mapping_unit_bytes is large enough"), "{beyond}");
    // With units of 8 KiB the number of pages would equal the "unmapped" marker.
    let border = flash(u64::from(u32::MAX) * 8192, 4096, 8192);
    assert!(border.allowed.contains("mapping_unit_bytes = 16384"), "{border}");
}

/// A superblock divided by 4 and by 6 has slices of a twelfth, and by 3 and by 6 of a sixth.
#[test]
fn a_slice_is_the_smallest_part_that_divides_every_size() {
    let mut config = mixed();
    assert_eq!(layout(&config).slices_per_superblock, 12);
    config.handles.overrides[3].reclaim_unit = Some(ReclaimUnitSize::Fraction(3));
    assert_eq!(layout(&config).slices_per_superblock, 6);
}

/// All pages are valid and space is short. Emergency collection moves parts of a size with several
/// partly free superblocks. A single part of another size would only move to another superblock.
#[test]
fn a_part_that_no_other_of_its_size_can_join_stays_where_it_is() {
    let given = |index, reclaim_unit| HandleOverride {
        index,
        isolation: Some(Isolation::PersistentlyIsolated),
        reclaim_unit: Some(reclaim_unit),
        open_reclaim_units: None,
    };
    let mut config = small(24, 0.01);
    config.geometry.mapping_unit_bytes = 64 << 10;
    (config.geometry.channels, config.geometry.dies_per_channel) = (4, 1);
    config.handles.count = 3;
    config.handles.overrides = vec![given(0, ReclaimUnitSize::Channel), given(2, ReclaimUnitSize::Fraction(2))];
    // Foreground collection continues as long as any page is invalid.
    config.gc.foreground_watermark = 0.0;
    config.gc.watermark_base = WatermarkBase::All;
    let least = (10..1000).map(|thousandths| f64::from(thousandths) / 1000.0).find(|share| {
        config.geometry.over_provisioning = *share;
        DeviceLayout::new(&config).is_ok()
    });
    assert!(least.is_some(), "some over-provisioning works");
    let mut device = recorded(&config);
    let mut write = |first, pages, handle| {
        let _ =
            device.write(0, &extent(first, pages, Placement::handle(handle))).expect("the extent and the handle exist");
    };
    // One and a half superblocks of 16 pages, written before all others, so that they come first
    // among those with equally many parts.
    for first in [0, 8, 16] {
        write(first, 8, 2);
    }
    let logical_pages = layout(&config).logical_pages;
    let parts = (24..logical_pages - 4).step_by(4);
    for first in parts.clone() {
        write(first, 4, 0);
    }
    // Each round moves half of the remaining small parts to the handle with whole superblocks.
    for kept in [2, 4] {
        for first in parts.clone().filter(|first| first / 4 % kept == kept / 2) {
            write(first, 4, 1);
        }
    }
    let forced: Vec<_> = reclaims(&device)
        .into_iter()
        .filter(|reclaim| reclaim.trigger == Trigger::Forced && reclaim.valid_pages == reclaim.unit_pages)
        .collect();
    assert!(!forced.is_empty(), "the case no longer needs what it tests");
    assert!(forced.iter().all(|reclaim| reclaim.victim_owner == owner(0)), "a part was moved for nothing: {forced:?}");
    let places: Vec<_> = (0..24).map(|page| device.lookup(Lpn(page)).map(|ppn| ppn.0)).collect();
    assert_eq!(places, (0..24).map(Some).collect::<Vec<_>>());
    prove(&device);
}

/// The age of a reclaim unit starts when it is opened. A unit that is closed without a write is a
/// candidate, and policies use its age.
#[test]
fn a_reclaim_unit_is_as_old_as_the_moment_it_was_taken() {
    let mut config = small(24, 0.5);
    config.handles.opening = UnitOpenPolicy::Eager;
    let mut device = recorded(&config);
    let _ = device.write(0, &extent(0, 256, Placement::handle(0))).expect("the extent and the handle exist");
    let mut opened = device.sink().iter().filter_map(|event| match event {
        DeviceEvent::Open { unit, .. } => Some(*unit),
        _ => None,
    });
    let last = device.unit(opened.next_back().expect("the next one was taken at once"));
    assert_eq!((last.last_write(), last.last_invalidation()), (256, 256));
}
