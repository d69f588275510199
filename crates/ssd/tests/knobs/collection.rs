//! Settings of garbage collection: watermarks, lazy threshold, reserve, block remapping and copies.

use super::*;

/// 64 superblocks, of which a full drive needs 52 and 12 are spare. Written once and overwritten
/// once, in order, so that an empty reclaim unit always exists.
fn overwritten_in_order(change: impl FnOnce(&mut GcConfig)) -> Recorded {
    let mut config = small(64, 0.25);
    change(&mut config.gc);
    let mut device = recorded(&config);
    assert_eq!(device.layout().spare_superblocks, 12 - device.layout().reserve_superblocks);
    let pages = device.layout().logical_pages;
    for first in (0..2 * pages).map(|page| page % pages) {
        write(&mut device, first, 1, 0);
    }
    prove(&device);
    device
}

/// Free reclaim units at the start of the first collection of this kind.
fn free_units_at_first(device: &Recorded, trigger: Trigger) -> Option<u64> {
    let rows = free_pages_at_reclaims(device);
    let row = rows.iter().find(|row| row.0 == trigger);
    row.map(|row| row.1 / u64::from(UNIT_PAGES))
}

#[test]
fn background_mark_is_where_background_collection_begins() {
    for (mark, watermark_base, expected) in [
        (0.25, WatermarkBase::Spare, Some(9)),
        (0.50, WatermarkBase::Spare, Some(6)),
        (0.75, WatermarkBase::Spare, Some(3)),
        (0.90, WatermarkBase::Spare, Some(1)),
        (0.90, WatermarkBase::All, Some(6)),
        (0.95, WatermarkBase::All, Some(3)),
        (1.00, WatermarkBase::Spare, None),
        (1.00, WatermarkBase::All, None),
    ] {
        let device = overwritten_in_order(|gc| {
            gc.background_watermark = mark;
            gc.watermark_base = watermark_base;
        });
        let found = free_units_at_first(&device, Trigger::Background);
        assert_eq!(found, expected, "background mark {mark} of {watermark_base:?}");
        assert_eq!(device.stats().background_collections > 0, expected.is_some());
    }
}

#[test]
fn foreground_mark_is_where_writes_wait_for_collection() {
    for (mark, watermark_base, expected) in [
        (0.25, WatermarkBase::Spare, 9),
        (0.50, WatermarkBase::Spare, 6),
        (0.75, WatermarkBase::Spare, 3),
        (1.00, WatermarkBase::Spare, 1),
        (0.90, WatermarkBase::All, 6),
        (0.95, WatermarkBase::All, 3),
    ] {
        let device = overwritten_in_order(|gc| {
            gc.foreground_watermark = mark;
            gc.watermark_base = watermark_base;
        });
        let found = free_units_at_first(&device, Trigger::Foreground);
        assert_eq!(found, Some(expected), "foreground mark {mark} of {watermark_base:?}");
        assert_eq!(device.stats().background_collections, 0);
    }
}

#[test]
fn a_lower_foreground_mark_costs_write_amplification() {
    let amplification = |mark| {
        let mut config = small(64, 0.25);
        config.gc.foreground_watermark = mark;
        steady_amplification(&config)
    };
    let (late, early) = (amplification(1.0), amplification(0.5));
    assert!(early > 1.3 * late, "{late} at mark 1, {early} at mark 0.5");
}

#[test]
fn lazy_valid_share_limits_what_background_collection_takes() {
    // One reclaim unit has 128 of 256 pages valid, and background collection always runs.
    for (share, expected) in [(0.0, 0), (0.25, 0), (0.499, 0), (0.5, 1), (0.75, 1), (1.0, 1)] {
        let mut config = small(64, 0.25);
        config.gc.background_watermark = 0.0;
        config.gc.watermark_base = WatermarkBase::All;
        config.gc.lazy_valid_share = share;
        let mut device = recorded(&config);
        write(&mut device, 0, UNIT_PAGES, 0);
        write(&mut device, 0, UNIT_PAGES / 2, 1);
        write(&mut device, 4 * UNIT_PAGES, 1, 2);
        assert_eq!(device.stats().background_collections, expected, "lazy valid share {share}");
        assert!(
            reclaims(&device)
                .iter()
                .all(|reclaim| reclaim.valid_pages == UNIT_PAGES / 2 && reclaim.trigger == Trigger::Background)
        );
    }
    // A unit without losses is not taken even at 1. A unit without valid pages is taken even at 0.
    for (share, overwritten, expected) in [(1.0, 0, 0), (0.0, UNIT_PAGES, 1)] {
        let mut config = small(64, 0.25);
        config.gc.background_watermark = 0.0;
        config.gc.watermark_base = WatermarkBase::All;
        config.gc.lazy_valid_share = share;
        let mut device = recorded(&config);
        write(&mut device, 0, UNIT_PAGES, 0);
        if overwritten > 0 {
            let _ = device.deallocate(0, Lpn(0), overwritten).expect("the extent exists");
        }
        write(&mut device, 4 * UNIT_PAGES, 1, 2);
        assert_eq!(device.stats().background_collections, expected, "lazy valid share {share}");
    }
}

#[test]
fn lazy_valid_share_limits_every_policy() {
    // The reclaim unit closed first is half valid, the second a quarter. Every policy may only take
    // the second.
    for policy in [
        VictimRule::Greedy,
        VictimRule::CostAge,
        VictimRule::BenefitCost,
        VictimRule::BenefitCostSinceInvalidation,
        VictimRule::Fifo,
        VictimRule::Random,
        VictimRule::DChoices(2),
        VictimRule::WindowedGreedy(1),
    ] {
        for seed in 0..8 {
            let mut config = small(64, 0.25);
            config.gc.background_watermark = 0.0;
            config.gc.watermark_base = WatermarkBase::All;
            config.gc.lazy_valid_share = 0.25;
            config.gc.victim_policy = policy;
            config.seed = seed;
            let mut device = recorded(&config);
            write(&mut device, 0, 2 * UNIT_PAGES, 0);
            let (first, second) = (unit_of(&device, 0), unit_of(&device, UNIT_PAGES));
            let _ = device.deallocate(0, Lpn(UNIT_PAGES), 192).expect("the extent exists");
            let _ = device.deallocate(0, Lpn(0), 128).expect("the extent exists");
            write(&mut device, 4 * UNIT_PAGES, 1, 1);
            let victims: Vec<RuId> = reclaims(&device).iter().map(|reclaim| reclaim.victim).collect();
            assert_eq!(victims, [second], "{policy:?}, seed {seed}; {first:?} is not lazy enough");
        }
    }
}

#[test]
fn lazy_valid_share_does_not_bind_foreground_collection() {
    let amplification = |share| {
        let mut config = small(64, 0.25);
        config.gc.lazy_valid_share = share;
        steady_amplification(&config)
    };
    assert_eq!(amplification(0.0), amplification(1.0), "background collection is off");
}

#[test]
fn marks_of_spare_keeps_a_sequential_overwrite_at_1_and_marks_of_all_does_not() {
    let amplification = |change: &dyn Fn(&mut GcConfig)| {
        let mut config = small(110, 0.10);
        config.handles = HandlesConfig::default();
        config.gc = GcConfig::default();
        config.gc.block_remapping = false;
        change(&mut config.gc);
        let mut device = silent(&config);
        let pages = device.layout().logical_pages;
        let mut first_rounds = device.stats().clone();
        for round in 0..12 {
            if round == 6 {
                first_rounds = device.stats().clone();
            }
            for first in 0..pages {
                write(&mut device, first, 1, 0);
            }
        }
        write_amplification_since(&first_rounds, device.stats())
    };
    assert_eq!(amplification(&|_| ()), 1.0);
    assert_eq!(amplification(&|gc| gc.lazy_valid_share = 0.875), 1.0);
    // A tenth of all reclaim units never stays free if only a tenth of them is spare, so background
    // collection takes a unit as soon as it is lazy enough. The published emulator's threshold is
    // one eighth invalid. With it every page is copied once before it is overwritten, which gives
    // the WAF of 2.00 measured there. With 5 % only the last pages of each unit are copied.
    let all = |lazy_valid_share: f64| {
        amplification(&|gc| {
            gc.watermark_base = WatermarkBase::All;
            gc.lazy_valid_share = lazy_valid_share;
        })
    };
    let (eager, lazy) = (all(0.875), all(0.05));
    assert!((eager - 2.0).abs() < 0.01, "{eager} where the published emulator measures 2.00");
    assert!((lazy - 1.05).abs() < 0.01, "{lazy} where 5 % of each unit are copied");
}

#[test]
fn reserve_share_takes_spare_from_the_host() {
    let config = |share| {
        let mut config = small(64, 0.25);
        config.gc.reserve_share = share;
        config
    };
    let reserved = |share| DeviceLayout::new(&config(share)).expect("valid").reserve_superblocks;
    assert_eq!([0.0, 0.25, 0.5].map(reserved), [0, 3, 6]);
    let device = overwritten_in_order(|gc| gc.reserve_share = 0.5);
    let least = free_pages_at_reclaims(&device).iter().map(|row| row.1).min();
    assert_eq!(least, Some(7 * u64::from(UNIT_PAGES)), "the reserve and the one for collection stay free");
    let (without, with) = (steady_amplification(&config(0.0)), steady_amplification(&config(0.5)));
    assert!(with > 1.4 * without, "{without} without a reserve, {with} with half of the spare");
}

// ---------------------------------------------------------------------------------------------------------------------
// block_remapping, program_unit_bytes

/// Fills reclaim units of 4 blocks of 64 pages, block by block or striped page by page. Then
/// overwrites the first 64 pages of each, and more, until collection has to run.
fn with_full_blocks(block_remapping: bool, program_unit_bytes: Option<u64>) -> Recorded {
    let mut config = small(STAGED_SUPERBLOCKS, 0.25);
    config.gc.block_remapping = block_remapping;
    config.geometry.program_unit_bytes = program_unit_bytes;
    let overwrites: Vec<(u32, u32)> = (0..STAGED_UNITS).map(|unit| (unit, 64)).collect();
    let mut staged = Staged::new(&config, |_| 0, &overwrites, 0);
    assert_eq!(staged.victims(0)[0], 0);
    staged.device
}

const WHOLE_BLOCK: Option<u64> = Some(64 * 4096);

#[test]
fn block_remapping_moves_fully_valid_blocks_without_copying() {
    let with = with_full_blocks(true, WHOLE_BLOCK);
    let first = reclaims(&with)[0].clone();
    assert_eq!((first.valid_pages, first.pages_copied, first.blocks_remapped), (192, 0, 3));
    let without = with_full_blocks(false, WHOLE_BLOCK);
    let copied = reclaims(&without)[0].clone();
    assert_eq!((copied.valid_pages, copied.pages_copied, copied.blocks_remapped), (192, 192, 0));
    assert!(with.stats().media_bytes_written() < without.stats().media_bytes_written(), "remapping saves media writes");
    assert_eq!(with.stats().total().pages_remapped, 64 * with.stats().total().blocks_remapped);
    for lpn in 0..STAGED_UNITS * UNIT_PAGES {
        assert!(with.lookup(Lpn(lpn)).is_some(), "logical page {lpn} is lost");
    }
}

#[test]
fn program_unit_decides_which_blocks_lose_pages_together() {
    // The same 64 pages are one block if blocks are written one at a time, and a quarter of every
    // block if striped.
    let striped = with_full_blocks(true, None);
    assert_eq!(striped.stats().total().blocks_remapped, 0);
    let by_two_pages = with_full_blocks(true, Some(2 * 4096));
    assert_eq!(by_two_pages.stats().total().blocks_remapped, 0);
    let by_block = with_full_blocks(true, WHOLE_BLOCK);
    assert!(by_block.stats().total().blocks_remapped > 0);
}

#[test]
fn the_least_worn_superblock_is_used_first() {
    // Superblocks with long-lived data return with little wear. Counts the allocations that did not
    // take the least worn free superblock.
    let exceptions = |allocation: Allocation| {
        const SUPERBLOCKS: u32 = 40;
        let mut config = small(u64::from(SUPERBLOCKS), 0.2);
        config.gc.allocation = allocation;
        let mut device = recorded(&config);
        let capacity = device.layout().logical_pages;
        write(&mut device, 0, capacity, 0);
        for round in 0..20_000 {
            write(&mut device, round * 7 % (capacity / 8), 1, 1);
        }
        write(&mut device, capacity / 8, capacity - capacity / 8, 0);
        let mut free: BTreeMap<RuId, u32> = (0..SUPERBLOCKS).map(|superblock| (RuId(superblock), 0)).collect();
        let mut in_use = BTreeMap::new();
        let mut exceptions = 0;
        for event in device.sink() {
            match event {
                DeviceEvent::Open { unit, .. } => {
                    let least = *free.values().min().expect("one is free");
                    let erases = free.remove(unit).expect("it was free");
                    exceptions += u32::from(erases > least);
                    in_use.insert(*unit, erases);
                }
                DeviceEvent::Reclaim(reclaim) => {
                    let erases = in_use.remove(&reclaim.victim).expect("it was in use");
                    free.insert(reclaim.victim, erases + 1);
                }
                _ => {}
            }
        }
        exceptions
    };
    assert!(exceptions(Allocation::Oldest) > 0);
    assert_eq!(exceptions(Allocation::LeastWorn), 0);
}

/// Three quarters of the drive never change. Collection makes the same decisions with static wear
/// levelling, because data keeps its place and only blocks move.
#[test]
fn static_wear_levelling_bounds_the_spread_of_erases_and_counts_its_copies_apart() {
    let run = |erases: u32| {
        let mut config = small(64, 0.25);
        config.gc.wear_levelling_erases = erases;
        let mut device = recorded(&config);
        let pages = device.layout().logical_pages;
        write(&mut device, 0, pages, 0);
        let hot = pages / 4;
        overwrite_uniformly(&mut device, &mut Uniform::new(3), (0, hot), 40 * u64::from(hot), 0);
        prove(&device);
        device
    };
    let without = run(0);
    let spread = |device: &Recorded| device.wear().most_erases - device.wear().fewest_erases;
    assert!(spread(&without) > 20, "{:?}", without.wear());
    let mut copied_before = u64::MAX;
    for erases in [1, 2, 4, 8] {
        let with = run(erases);
        // The most worn superblock is erased once more before its data moves. A young one waits
        // until its turn in the list of free ones.
        assert!(spread(&with) <= erases + 2, "threshold {erases}: {:?}", with.wear());
        let is_decision = |event: &&DeviceEvent| !matches!(event, DeviceEvent::LevelWear { .. });
        assert!(
            with.sink().iter().filter(is_decision).eq(without.sink()),
            "threshold {erases}: wear levelling changed a decision"
        );
        let same_places =
            (0..with.layout().logical_pages).all(|page| with.lookup(Lpn(page)) == without.lookup(Lpn(page)));
        assert!(same_places, "data moves with its blocks");

        let moved = |event: &DeviceEvent| match event {
            DeviceEvent::LevelWear { pages_copied, .. } => u64::from(*pages_copied),
            _ => 0,
        };
        let total = with.stats().total();
        assert_eq!(total.wear_levelling_pages, with.sink().iter().map(moved).sum::<u64>());
        assert_eq!(total.gc_pages_copied, without.stats().total().gc_pages_copied);
        let media_pages = total.host_pages_written + total.gc_pages_copied + total.wear_levelling_pages;
        assert_eq!(with.stats().media_bytes_written(), media_pages * 4096);
        // A superblock with cold data falls behind by the threshold between two moves.
        let moves = total.wear_levelling_pages_erased / u64::from(UNIT_PAGES);
        let erased = total.pages_erased / u64::from(UNIT_PAGES);
        assert!(moves > 0 && moves * u64::from(erases) <= erased, "{moves} of {erased} erases");
        assert!(total.wear_levelling_pages < copied_before, "a smaller threshold copies more");
        copied_before = total.wear_levelling_pages;
    }
}

#[test]
fn block_remapping_keeps_erase_counts_with_the_block() {
    // The first collection moves three blocks and erases the one that lost its pages. Moved blocks
    // keep their data, and the blocks received in exchange are blank.
    let device = with_full_blocks(true, WHOLE_BLOCK);
    let first = reclaims(&device)[0].clone();
    let blocks_of = |unit: RuId| (4 * unit.0 as usize)..(4 * unit.0 as usize + 4);
    assert_eq!(device.block_erase_counts()[blocks_of(first.victim)], [1, 0, 0, 0]);
    let erased: u64 = device.block_erase_counts().iter().map(|count| u64::from(*count)).sum();
    let total = device.stats().total();
    assert_eq!(erased, 4 * total.units_reclaimed - total.blocks_remapped);
    assert_eq!(total.pages_erased, 64 * erased);
    assert_eq!(device.stats().media_bytes_erased(), 64 * erased * 4096);
    let without = with_full_blocks(false, WHOLE_BLOCK);
    assert_eq!(without.stats().total().pages_erased, 256 * without.stats().total().units_reclaimed);
}

#[test]
fn a_remapped_block_is_erased_where_its_data_went() {
    // Same as above, with background collection of units without valid pages.
    let mut config = small(STAGED_SUPERBLOCKS, 0.25);
    config.gc.block_remapping = true;
    config.geometry.program_unit_bytes = WHOLE_BLOCK;
    config.gc.background_watermark = 0.0;
    config.gc.watermark_base = WatermarkBase::All;
    config.gc.lazy_valid_share = 0.0;
    let overwrites: Vec<(u32, u32)> = (0..STAGED_UNITS).map(|unit| (unit, 64)).collect();
    let mut staged = Staged::new(&config, |_| 0, &overwrites, 0);
    assert_eq!(staged.victims(0)[0], 0);
    let (victim, mut device) = (staged.units[0], staged.device);
    let destination = unit_of(&device, 64);
    assert_ne!(victim, destination);
    let blocks_of = |unit: RuId| (4 * unit.0 as usize)..(4 * unit.0 as usize + 4);
    assert_eq!(device.block_erase_counts()[blocks_of(victim)], [1, 0, 0, 0]);
    assert_eq!(device.block_erase_counts()[blocks_of(destination)], [0, 0, 0, 0]);
    let pages: Vec<u32> = (0..device.layout().logical_pages).collect();
    let held = |page: &u32| device.lookup(Lpn(*page)).is_some_and(|ppn| device.unit_of(ppn) == destination);
    let pages: Vec<u32> = pages.into_iter().filter(held).collect();
    for page in pages {
        let _ = device.deallocate(0, Lpn(page), 1).expect("the extent exists");
    }
    write(&mut device, 0, 1, 0);
    assert_eq!(reclaims(&device).last().map(|reclaim| reclaim.victim), Some(destination));
    assert_eq!(device.block_erase_counts()[blocks_of(victim)], [1, 1, 1, 1]);
    assert_eq!(device.block_erase_counts()[blocks_of(destination)], [1, 0, 0, 0]);
    prove(&device);
}

// ---------------------------------------------------------------------------------------------------------------------
// copies

/// Fills a device with copies among host data through four handles in stripes of 16 pages, then
/// overwrites pages at random. Returns the device, and the handles with pages in the reclaim units
/// of each owner.
fn shared_frontiers(change: impl FnOnce(&mut DeviceConfig)) -> (Recorded, BTreeMap<u16, BTreeSet<u16>>) {
    let mut config = small(64, 0.25);
    config.gc.copies = GcDestination::WithHost;
    change(&mut config);
    let mut device = recorded(&config);
    let pages = device.layout().logical_pages;
    let handle_of = |page: u32| (page / 16 % 4) as u16;
    let mut uniform = Uniform::new(7);
    for page in (0..pages).chain((0..4 * pages).map(|_| uniform.below(pages))) {
        write(&mut device, page, 1, handle_of(page));
    }
    prove(&device);
    let handles: Vec<u16> = (0..pages).map(handle_of).collect();
    let mut held: BTreeMap<u16, BTreeSet<u16>> = BTreeMap::new();
    for ((unit_owner, _), in_it) in handles_in_units(&device, &handles) {
        let handle = unit_owner.handle().expect("there is no shared pool");
        held.entry(handle.0).or_default().extend(in_it);
    }
    (device, held)
}

#[test]
fn copies_among_host_data_go_to_the_first_handle_that_is_not_persistently_isolated() {
    let (device, held) = shared_frontiers(|_| {});
    let alone = |handle| BTreeSet::from([handle]);
    let all = BTreeSet::from([0, 1, 2, 3]);
    let expected = [(0, all), (1, alone(1)), (2, alone(2)), (3, alone(3))];
    assert_eq!(held, BTreeMap::from(expected));
    let only_for_copies = |event: &DeviceEvent| matches!(event, DeviceEvent::Open { for_collection: true, .. });
    assert!(!device.sink().iter().any(only_for_copies), "no unit takes copies only");
    let received: Vec<u64> = device.stats().handles.iter().map(|row| row.gc_pages_received).collect();
    assert!(received[0] > 0 && received[1..] == [0, 0, 0], "{received:?}");
    assert_eq!(device.stats().shared.gc_pages_received, 0);

    let isolated = |index| HandleOverride { isolation: Some(Isolation::PersistentlyIsolated), ..given(index) };
    let (_, held) = shared_frontiers(|config| config.handles.overrides = vec![isolated(0), isolated(2)]);
    let both = BTreeSet::from([1, 3]);
    let expected = [(0, alone(0)), (1, both), (2, alone(2)), (3, alone(3))];
    assert_eq!(held, BTreeMap::from(expected), "persistently isolated data stays alone");
}

/// Without placement the device has one write frontier. Host data after a collection follows the
/// copies in the same reclaim unit.
#[test]
fn host_data_follows_copies_in_the_unit_that_they_began() {
    for (copies, together) in [(GcDestination::Apart, false), (GcDestination::WithHost, true)] {
        let mut config = small(STAGED_SUPERBLOCKS, 0.25);
        config.gc.copies = copies;
        let mut staged = Staged::new(&config, |_| 0, &CONTESTED, 0);
        assert_eq!(staged.victims(0)[0], 8);
        let copied = 8 * UNIT_PAGES + 200;
        let (of_copy, of_host) = (unit_of(&staged.device, copied), unit_of(&staged.device, 0));
        assert_eq!(of_copy == of_host, together, "{copies:?}");
        // 56 copies and one page of the host, or only the host page.
        let left = staged.device.available_media_writes(placement(0, 0));
        assert_eq!(left, Ok(if together { UNIT_PAGES - 57 } else { UNIT_PAGES - 1 }));
    }
}

#[test]
fn copies_do_not_go_to_the_unit_apart_for_what_was_written_a_short_time_ago() {
    let mut config = small(64, 0.4);
    config.gc.copies = GcDestination::WithHost;
    config.handles.hot_window_bytes = 8 * 4096;
    config.handles.opening = UnitOpenPolicy::Eager;
    let mut device = recorded(&config);
    let pages = device.layout().logical_pages;
    let handle_of = |page: u32| u16::from(page > 0);
    let mut uniform = Uniform::new(8);
    for round in 0..5 * pages {
        let page = if round < pages { round } else { uniform.below(pages) };
        write(&mut device, page, 1, handle_of(page));
        write(&mut device, 0, 1, 0);
        if round >= pages && round % 1000 == 0 {
            let apart = unit_of(&device, 0);
            let beside = (1..pages).filter(|page| unit_of(&device, *page) == apart);
            assert_eq!(beside.count(), 0, "page 0 is alone in reclaim unit {apart:?}");
        }
    }
    assert!(device.stats().handles[0].gc_pages_received > 0);
    prove(&device);
}

// ---------------------------------------------------------------------------------------------------------------------
