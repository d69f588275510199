//! Tests of the engine against a record of its pages, the limits of its log, and known formulas.

use super::*;
use crate::queue::RequestQueue;
use crate::testing::{MIB, drive, measure, scaled_drive};
use workload::{IoRequest, PlacementIndex, RequestOperation, RequestSource};

fn small(layout: PageUpdate) -> BTreeSettings {
    BTreeSettings {
        layout,
        log_bytes: MIB,
        doublewrite_bytes: MIB,
        zone_bytes: MIB,
        flush_pages: 16,
        ..BTreeSettings::default()
    }
}

/// Runs steps and drops their requests.
fn run(settings: &BTreeSettings, target: &WorkloadTarget, seed: u64, operations: u64) -> BTree {
    let mut tree = settings.source(target, seed).expect("it fits");
    while tree.counters.operations < operations {
        assert!(tree.step());
        if tree.parts.output.queue.ready() > 100_000 {
            tree.parts.output.queue = RequestQueue::default();
        }
    }
    tree
}

/// A replay of the requests has every page where the store has it, and no two pages share a byte.
#[test]
fn every_page_is_where_a_replay_has_it() {
    for (layout, compressed_percent, driver) in [
        (PageUpdate::OutOfPlace, 100.0, DriverKind::Ycsb),
        (PageUpdate::OutOfPlace, 37.0, DriverKind::Ycsb),
        (PageUpdate::CopyOnWrite, 60.0, DriverKind::Ycsb),
        (PageUpdate::OutOfPlace, 80.0, DriverKind::Tpcc),
    ] {
        let settings = BTreeSettings {
            driver,
            mix: Mix::Overwrite,
            compressed_percent,
            data_percent: 70.0,
            page_bytes: 8192,
            ..small(layout)
        };
        let mut tree = settings.source(&drive(128), 5).expect("it fits");
        for _ in 0..40_000 {
            assert!(tree.step());
        }
        let mut written = vec![false; (128 * MIB / BLOCK_BYTES) as usize];
        let mut requests: Vec<IoRequest> = Vec::new();
        tree.parts.output.queue.pop_batch(&mut requests, usize::MAX);
        for request in requests {
            let first = (request.offset_bytes / BLOCK_BYTES) as usize;
            let blocks = &mut written[first..first + (u64::from(request.bytes) / BLOCK_BYTES) as usize];
            blocks.fill(request.operation == RequestOperation::Write);
        }
        let mut places = match &tree.parts.store {
            PageStore::OutOfPlace(zones) => {
                assert!(zones.collections > 10, "{}", zones.collections);
                zones.check()
            }
            PageStore::CopyOnWrite(copies) => copies.places(),
            PageStore::InPlace(_) => unreachable!("pages have their places"),
        };
        let inner = match layout {
            // Inner pages with 100 children, their parents, and the root.
            PageUpdate::CopyOnWrite => tree.counts.all().div_ceil(100) + tree.counts.all().div_ceil(10_000) + 1,
            _ => 0,
        };
        assert_eq!(places.len() as u32, tree.counts.all() + inner);
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{layout:?}: pages overlap");
        for (first, bytes) in places {
            let blocks = first / BLOCK_BYTES..(first + bytes).div_ceil(BLOCK_BYTES);
            assert!(blocks.into_iter().all(|block| written[block as usize]), "{layout:?}: a page is not there");
        }
    }
}

/// A copy-on-write commit writes each changed leaf once, and once each inner page above them.
#[test]
fn a_commit_writes_the_paths_of_its_leaves() {
    let settings = BTreeSettings {
        mix: Mix::Overwrite,
        pool_percent: 100.0,
        data_percent: 50.0,
        wal: false,
        transactions_per_checkpoint: 100,
        children_per_inner_page: 7,
        flush_pages: 4096,
        ..small(PageUpdate::CopyOnWrite)
    };
    let mut tree = settings.source(&drive(64), 5).expect("it fits");
    while tree.counters.operations < 100 {
        assert!(tree.step());
    }
    let slots = |tree: &BTree| match &tree.parts.store {
        PageStore::CopyOnWrite(copies) => copies.slot_of.clone(),
        _ => unreachable!("it is copy on write"),
    };
    for _ in 0..50 {
        tree.parts.output.queue = RequestQueue::default();
        let before = slots(&tree);
        let operations = tree.counters.operations;
        while tree.counters.operations < operations + 100 {
            assert!(tree.step());
        }
        let moved: Vec<usize> = before
            .iter()
            .zip(slots(&tree))
            .enumerate()
            .filter(|(_, (old, new))| **old != *new)
            .map(|(page, _)| page)
            .collect();
        // 64 MiB have 8192 leaves, 1171 pages above them, then 168, 24, 4 and the root.
        let leaves: Vec<usize> = moved.iter().copied().filter(|page| *page < 8192).collect();
        assert!(leaves.len() > 90 && leaves.len() <= 100, "{}", leaves.len());
        let mut expected = leaves.clone();
        let (mut level, mut start) = (leaves, 8192);
        for pages in [1171, 168, 24, 4, 1] {
            level = level.iter().map(|page| page / 7).collect();
            level.dedup();
            expected.extend(level.iter().map(|page| start + page));
            start += pages;
        }
        assert_eq!(moved, expected);
        assert_eq!(tree.parts.output.queue.ready(), expected.len());
    }
    // Without inner pages, only leaves are written.
    let without = BTreeSettings { children_per_inner_page: 0, ..settings };
    let tree = run(&without, &drive(64), 5, 5000);
    assert_eq!(measure(&tree, "inner_page_writes"), 0.0);
}

/// Every in-place write goes to the doublewrite buffer, byte for byte, and to the page's own
/// location.
#[test]
fn pages_in_place_are_written_twice() {
    let settings = small(PageUpdate::InPlace);
    let mut tree = settings.source(&drive(64), 5).expect("it fits");
    for _ in 0..20_000 {
        assert!(tree.step());
    }
    let [_, doublewrite, pages, moved] = tree.parts.output.written_bytes;
    assert_eq!((doublewrite, moved), (pages, 0));
    let mut requests: Vec<IoRequest> = Vec::new();
    tree.parts.output.queue.pop_batch(&mut requests, usize::MAX);
    let (log, ring) = (0..MIB, MIB..2 * MIB);
    for request in requests {
        let at = request.offset_bytes;
        let (is_right, index) = match request.stream {
            0 => (log.contains(&at), 0),
            1 => (ring.contains(&at), 1),
            _ => (at >= ring.end && at % 4096 == 0 && request.bytes == 4096, 2),
        };
        assert!(is_right, "{request:?}");
        assert_eq!(request.placement, Some(PlacementIndex(index)));
    }
    let once = BTreeSettings { torn_pages: TornPages::None, ..settings };
    assert_eq!(run(&once, &drive(64), 5, 20_000).parts.output.written_bytes[1], 0);
}

/// The log has every change once. The first change of a page after a checkpoint logs the whole
/// page.
#[test]
fn the_log_holds_changes_and_images() {
    let settings = BTreeSettings {
        torn_pages: TornPages::FullPageWrites,
        checkpoints: CheckpointPolicy::Spread,
        mix: Mix::Overwrite,
        ..small(PageUpdate::InPlace)
    };
    let tree = run(&settings, &drive(64), 5, 50_000);
    let logged = tree.parts.log.as_ref().expect("there is one").end_bytes;
    let changes = tree.counters.changed_bytes + 50 * tree.counters.operations;
    // 69 % of a page of 4 KiB.
    let images = (logged - changes) / 2826;
    assert_eq!(changes + images * 2826, logged);
    // A checkpoint comes after half a log of entries, nearly all with an image.
    let checkpoints = measure(&tree, "checkpoints");
    assert!(images > 40_000 && images <= 50_000, "{images}");
    assert!((checkpoints / (logged as f64 / (MIB as f64 / 2.0)) - 1.0).abs() < 0.05, "{checkpoints}");
    // The log is written once, except for the part still in memory.
    let written = tree.parts.output.written_bytes[0];
    assert!(logged - written < MIB && written <= logged, "{logged} {written}");
    // With a sync after every transaction, each sync rewrites the last block.
    let synced = BTreeSettings { torn_pages: TornPages::None, transactions_per_sync: 1, ..settings };
    let tree = run(&synced, &drive(64), 5, 50_000);
    let written = tree.parts.output.written_bytes[0];
    assert!((50_000 * 4096..50_000 * 4096 * 21 / 20).contains(&written), "{written}");
}

/// No change is older than the log allows.
#[test]
fn dirty_pages_go_before_the_log_comes_round() {
    for checkpoints in [CheckpointPolicy::Fuzzy, CheckpointPolicy::Spread] {
        let settings =
            BTreeSettings { checkpoints, pool_percent: 90.0, mix: Mix::Overwrite, ..small(PageUpdate::InPlace) };
        let mut tree = settings.source(&drive(64), 5).expect("it fits");
        for _ in 0..60_000 {
            assert!(tree.step());
            let position = tree.parts.log.as_ref().expect("there is one").end_bytes;
            if let Some(since) = tree.parts.pool.oldest_change() {
                assert!(position - since <= MIB + 4096, "{checkpoints:?}: {since} at {position}");
            }
        }
        assert!(measure(&tree, "checkpoints") > 10.0);
    }
}

/// The list holds no more changes than since the second last checkpoint, and none without a log.
#[test]
fn changes_are_forgotten_when_they_are_written() {
    for (wal, most) in [(true, 2 * 8192), (false, 0)] {
        let settings = BTreeSettings {
            checkpoints: CheckpointPolicy::Spread,
            wal,
            mix: Mix::Overwrite,
            ..small(PageUpdate::InPlace)
        };
        let tree = run(&settings, &drive(64), 5, 300_000);
        assert!(measure(&tree, "page_writes") > 10.0 * 8192.0);
        assert!(tree.parts.pool.remembered_changes() <= most);
    }
}

/// Under uniform reads, the hit ratio is the pool's share of the pages. Without the log, pages are
/// written when they leave.
#[test]
fn the_pool_is_hit_by_its_share() {
    let settings = BTreeSettings {
        wal: false,
        popularity: Some(RecordPopularity::Uniform),
        pool_percent: 30.0,
        ..small(PageUpdate::InPlace)
    };
    let tree = run(&settings, &drive(64), 5, 200_000);
    let hits = measure(&tree, "pool_hit_ratio");
    assert!((hits - 0.3).abs() < 0.01, "{hits}");
    // Half of the operations change a page. It is written once for all changes until it leaves.
    let writes = measure(&tree, "page_writes") / 200_000.0;
    assert!((0.3..0.5).contains(&writes), "{writes}");
}

/// If the pool is smaller than the undo ring, every transaction writes one undo page, and each is
/// written again after a round. The unchanged pages behind them (an index loaded with the data, and
/// the pages before the data) stay untouched.
#[test]
fn every_transaction_changes_the_next_undo_page() {
    let settings = BTreeSettings {
        mix: Mix::Overwrite,
        torn_pages: TornPages::None,
        wal: false,
        undo_bytes: MIB,
        index_percent: 6.25,
        unchanged_percent: 6.25,
        pool_percent: 0.01,
        flush_pages: 1,
        ..small(PageUpdate::InPlace)
    };
    let target = drive(128);
    let mut tree = settings.source(&target, 5).expect("it fits");
    let (data_bytes, undo_end) = (64 * MIB, 65 * MIB);
    let mut requests: Vec<IoRequest> = Vec::new();
    while tree.counters.operations < 3000 {
        assert!(tree.step());
    }
    tree.parts.output.queue.pop_batch(&mut requests, usize::MAX);
    let loaded = ((undo_end + 16 * MIB) / 4096) as usize;
    let unchanged = |request: &&IoRequest| request.offset_bytes >= undo_end;
    let (first, with_data) = requests[..loaded].split_at(8 * 256);
    assert!(first.iter().all(|request| request.offset_bytes >= 73 * MIB));
    for quarter in with_data.chunks_exact(with_data.len() / 4) {
        assert!((2 * 256 - 1..=2 * 256 + 1).contains(&quarter.iter().filter(unchanged).count()));
    }
    assert_eq!(requests[loaded..].iter().filter(unchanged).count(), 0);
    let undo: Vec<u64> = requests[loaded..]
        .iter()
        .filter(|request| request.offset_bytes >= data_bytes)
        .map(|request| (request.offset_bytes - data_bytes) / 4096)
        .collect();
    assert!((2900..=3000).contains(&undo.len()), "{}", undo.len());
    let in_turn = undo.iter().enumerate().all(|(number, page)| *page == number as u64 % 256);
    assert!(in_turn, "one after the other, in a circle of 256");
    assert_eq!(tree.counters.changed_bytes, 3000 * settings.record_bytes);
}

/// Under uniform overwrites, a collected zone still has x of its pages. The used fraction of the
/// space is (x - 1) / ln x (Menon, "A performance comparison of RAID-5 and log-structured arrays",
/// 1995).
#[test]
fn zones_are_collected_at_the_price_of_theory() {
    for used in [0.6, 0.75, 0.85] {
        let settings = BTreeSettings {
            wal: false,
            mix: Mix::Overwrite,
            data_percent: used * 90.0,
            pool_percent: 0.01,
            groups: 1,
            flush_pages: 1,
            zone_bytes: MIB / 2,
            ..small(PageUpdate::OutOfPlace)
        };
        let target = drive(256);
        let mut tree = run(&settings, &target, 5, 100_000);
        let moved = |tree: &BTree| match &tree.parts.store {
            PageStore::OutOfPlace(zones) => zones.moved_pages as f64,
            _ => unreachable!("it has zones"),
        };
        let (before, began) = (moved(&tree), tree.counters.page_writes);
        while tree.counters.operations < 200_000 {
            assert!(tree.step());
        }
        let moved_share =
            (moved(&tree) - before) / (moved(&tree) - before + (tree.counters.page_writes - began) as f64);
        let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
        for _ in 0..100 {
            let middle: f64 = (low + high) / 2.0;
            if (middle - 1.0) / middle.ln() < used {
                low = middle;
            } else {
                high = middle;
            }
        }
        assert!((moved_share / low - 1.0).abs() < 0.06, "{used}: {moved_share}, not {low}");
    }
}

/// Groups by time of death make the collection of skewed pages cheaper.
#[test]
fn groups_are_collected_for_less() {
    let moved = |groups: u32| {
        let settings = BTreeSettings {
            mix: Mix::Overwrite,
            popularity: Some(RecordPopularity::Zipf),
            // A record fills a page, so its popularity is not averaged with neighbours.
            record_bytes: 2800,
            data_percent: 75.0,
            pool_percent: 1.0,
            groups,
            ..small(PageUpdate::OutOfPlace)
        };
        measure(&run(&settings, &drive(256), 5, 300_000), "moved_share")
    };
    let (one, four) = (moved(1), moved(4));
    assert!(four < 0.95 * one, "{one} {four}");
}

#[test]
fn transactions_touch_what_they_should() {
    let mut tpcc = tpcc::Tpcc::new(4096, 100_000, 7).expect("five warehouses");
    let mut touches = Vec::new();
    let (mut changed, mut pages) = (0, std::collections::HashSet::new());
    for _ in 0..100_000 {
        tpcc.next(&mut touches);
        assert!(touches.iter().all(|touch| touch.page < 100_000));
        changed += touches.iter().filter(|touch| touch.changed_bytes > 0).count();
        pages.extend(touches.iter().map(|touch| touch.page));
        touches.clear();
    }
    // 45 % x 12, 43 % x 2, 4 % x 20 changes.
    let per_transaction = changed as f64 / 100_000.0;
    assert!((per_transaction - 7.06).abs() < 0.1, "{per_transaction}");
    assert!(pages.len() > 60_000, "{}", pages.len());
}

#[test]
fn a_scaled_model_is_alike() {
    let large = |layout| BTreeSettings {
        log_bytes: 32 * MIB,
        doublewrite_bytes: 32 * MIB,
        zone_bytes: 8 * MIB,
        data_percent: 70.0,
        ..small(layout)
    };
    // A commit changes nearly as many pages as it has transactions.
    let commits = BTreeSettings {
        mix: Mix::Overwrite,
        wal: false,
        pool_percent: 100.0,
        transactions_per_checkpoint: 16_384,
        ..large(PageUpdate::CopyOnWrite)
    };
    for settings in [large(PageUpdate::InPlace), large(PageUpdate::OutOfPlace), commits] {
        let layout = settings.layout;
        let at = |denominator: u64| {
            let tree = run(&settings, &scaled_drive(1024, denominator), 5, 1_000_000 / denominator);
            ["pool_hit_ratio", "tree_waf", "written_bytes_per_page", "moved_share"].map(|name| measure(&tree, name))
        };
        let (full, model) = (at(1), at(16));
        for (full, model) in full.into_iter().zip(model) {
            assert!((full - model).abs() <= 0.05 * full, "{layout:?}: {full} and {model}");
        }
    }
}

#[test]
fn nothing_to_change_is_an_end() {
    let settings = BTreeSettings { mix: Mix::Load, ..small(PageUpdate::InPlace) };
    let once = WorkloadTarget { endless: false, ..drive(64) };
    let mut tree = settings.source(&once, 1).expect("it fits");
    let mut requests = Vec::new();
    while tree.next_batch(&mut requests, 1000).expect("requests") > 0 {}
    assert_eq!(measure(&tree, "page_writes"), 0.0);
    assert!(measure(&tree, "loaded_bytes") > 63.0 * MIB as f64);
}

#[test]
fn impossible_settings_are_named() {
    let with = |change: fn(&mut BTreeSettings), layout| {
        let mut settings = small(layout);
        change(&mut settings);
        settings.source(&drive(64), 1).err().expect("it cannot be").to_string()
    };
    assert_eq!(
        with(|settings| settings.data_percent = 98.0, PageUpdate::InPlace),
        "data_percent = 98 needs 64.7 MiB with log and buffers, but the drive has 64 MiB. Use less data, or a \
         smaller log"
    );
    assert!(
        with(|settings| settings.data_percent = 89.0, PageUpdate::OutOfPlace)
            .contains("Use less data, more space_percent"),
    );
    assert_eq!(
        with(|settings| settings.page_bytes = 1000, PageUpdate::InPlace),
        "page_bytes = 1000 must be a multiple of 4096 bytes and at most 64 KiB"
    );
    assert_eq!(
        with(|settings| settings.data_percent = 0.5, PageUpdate::InPlace),
        "data_percent = 0.5 gives 81 pages on a drive of 67108864 bytes, but 256 are needed"
    );
    assert_eq!(
        with(|settings| settings.driver = DriverKind::Tpcc, PageUpdate::InPlace),
        "data_percent = 50 gives 8192 pages, but a warehouse needs 16986. Use more data, or a larger scaled model"
    );
    // 14 and 12 TiB alone are below the limit.
    let large = BTreeSettings { unchanged_percent: 40.0, ..small(PageUpdate::InPlace) };
    assert_eq!(
        large.source(&drive(28 << 20), 1).err().expect("too many").to_string(),
        "data_percent = 50 gives 6764573491 pages, but at most 2^32 - 1 are supported. Use a scaled model, or \
         larger pages"
    );
}
