//! Tests of the tree against a plain set of keys, a record of its space, and known formulas.

use super::*;
use crate::queue::SteppedModel;
use crate::testing::{MIB, drive, measure, read, reread, scaled_drive};
use workload::{IoRequest, PlacementIndex, RequestOperation, RequestSource};

/// A tree of a few levels on a small drive: memtables of 256 entries, a base level of four of them.
fn small(mix: Mix) -> LsmSettings {
    LsmSettings {
        mix,
        memtable_bytes: 256 * 1023,
        table_bytes: 256 * 1023,
        base_level_bytes: 1024 * 1023,
        write_bytes: 64 << 10,
        data_percent: 40.0,
        bulk_load: false,
        ..LsmSettings::default()
    }
}

fn run(settings: &LsmSettings, target: &WorkloadTarget, seed: u64, bytes: u64) -> Lsm {
    let mut source = settings.source(target, seed).unwrap();
    while tree(&source).counters.application_bytes < bytes {
        assert!(source.step().unwrap_or_else(|error| panic!("{error:?}; replay with seed {seed}")));
    }
    source
}

/// The tree of the only family.
fn tree(source: &Lsm) -> &LsmTree {
    &source.database.trees[0]
}

/// All tables of a tree, level 0 or tiers first.
fn tables(tree: &LsmTree) -> impl Iterator<Item = &table::SortedTable> {
    tree.runs.iter().flatten().chain(tree.levels.iter().flat_map(level::SortedLevel::iter))
}

fn log_extents(source: &Lsm) -> Vec<extents::BlockExtent> {
    source.database.log.as_ref().map_or(Vec::new(), WriteAheadLog::extents)
}

/// Checks that levels are sorted without overlap, files share no block, and counters are right.
fn check(source: &Lsm) {
    let mut extents = log_extents(source);
    for tree in &source.database.trees {
        check_levels(tree);
        for table in tables(tree) {
            let bytes = table.keys.len() as u64 * tree.rules.entry_bytes;
            assert_eq!(store::blocks_of(&table.extents), bytes.div_ceil(BLOCK_BYTES));
            extents.extend_from_slice(&table.extents);
        }
    }
    extents.sort_unstable_by_key(|extent| extent.first);
    let apart = |pair: &[extents::BlockExtent]| pair[0].first + pair[0].blocks <= pair[1].first;
    assert!(extents.windows(2).all(apart), "extents overlap");
    let space = &source.database.store.space;
    assert_eq!(space.used_blocks(), store::blocks_of(&extents), "space is lost, or used twice");
}

fn check_levels(tree: &LsmTree) {
    let levels = tree.levels.iter().map(|level| level.iter().collect());
    let runs: Vec<Vec<&table::SortedTable>> = tree.runs.iter().map(|run| run.iter().collect()).chain(levels).collect();
    for run in runs {
        assert!(run.iter().all(|table| table.keys.is_sorted_by(|a, b| a < b)));
        assert!(run.windows(2).all(|pair| pair[0].last() < pair[1].first()));
    }
    for (level, entries) in tree.levels.iter().zip(&tree.entries) {
        assert_eq!(level.iter().map(|table| table.keys.len() as u64).sum::<u64>(), *entries);
    }
}

/// Distinct keys of a tree, and the number of copies.
fn keys_of(tree: &LsmTree) -> (Vec<u32>, usize) {
    let mut keys: Vec<u32> = tables(tree).flat_map(|table| table.keys.iter().copied()).collect();
    keys.extend_from_slice(&tree.memtable);
    let copies = keys.len();
    keys.sort_unstable();
    keys.dedup();
    (keys, copies)
}

#[test]
fn no_key_is_lost_and_none_appears() {
    let tiered = LsmSettings { compaction: Compaction::Tiered, data_percent: 20.0, ..small(Mix::Overwrite) };
    let bulk = LsmSettings { bulk_load: true, ..small(Mix::Overwrite) };
    let fixed = LsmSettings { dynamic_levels: false, ..small(Mix::Overwrite) };
    for settings in [small(Mix::Overwrite), small(Mix::A), small(Mix::D), tiered, fixed, bulk] {
        let mut source = settings.source(&drive(64), 5).unwrap();
        for step in 0..120_000 {
            assert!(source.step().unwrap());
            if step % 20_011 == 0 {
                check(&source);
            }
        }
        check(&source);
        let (keys, copies) = keys_of(tree(&source));
        // Every record was inserted at least once, and no other key was.
        assert_eq!(keys.len() as u32, source.records(0), "{:?}", settings.mix);
        assert!(tree(&source).counters.compactions > 20, "{:?}", tree(&source).counters);
        assert!(copies > keys.len() || settings.mix == Mix::D);
    }
}

/// The written and not discarded blocks of the drive are exactly those of files and log.
#[test]
fn the_drive_holds_what_the_files_are() {
    let mut source = small(Mix::Overwrite).source(&drive(64), 3).unwrap();
    let mut requests: Vec<IoRequest> = Vec::new();
    for _ in 0..60_000 {
        assert!(source.step().unwrap());
    }
    source.database.store.output.queue.pop_batch(&mut requests, usize::MAX);
    let mut written = vec![false; (64 * MIB / BLOCK_BYTES) as usize];
    for request in requests {
        let first = (request.offset_bytes / BLOCK_BYTES) as usize;
        let blocks = &mut written[first..first + (u64::from(request.bytes) / BLOCK_BYTES) as usize];
        match request.operation {
            RequestOperation::Write if request.stream > 0 => {
                assert!(blocks.iter().all(|block| !block), "a table overwrites something");
                blocks.fill(true);
            }
            RequestOperation::Write => blocks.fill(true),
            _ => blocks.fill(false),
        }
    }
    for extent in log_extents(&source) {
        written[extent.first as usize..][..extent.blocks as usize].fill(false);
    }
    let table_blocks: u32 = tables(tree(&source)).flat_map(|table| &table.extents).map(|extent| extent.blocks).sum();
    assert_eq!(written.iter().filter(|block| **block).count() as u32, table_blocks);
}

/// Levels except the last are at or below their targets, and full if data has passed through.
#[test]
fn levels_have_their_sizes() {
    let settings = LsmSettings { dynamic_levels: false, level_multiplier: 4, ..small(Mix::Overwrite) };
    let source = run(&settings, &drive(128), 1, 400 * MIB);
    let mut target = 1024.0;
    let used = tree(&source).entries.iter().filter(|entries| **entries > 0).count();
    assert!(used >= 3, "{:?}", tree(&source).entries);
    for entries in &tree(&source).entries[..used - 1] {
        let share = *entries as f64 / target;
        assert!((0.7..=1.0).contains(&share), "{share} of {target}: {:?}", tree(&source).entries);
        target *= 4.0;
    }
    // Dynamic targets: each level is a fourth of the next, or the base size.
    let settings = LsmSettings { dynamic_levels: true, ..settings };
    let source = run(&settings, &drive(128), 1, 400 * MIB);
    let entries: Vec<u64> = tree(&source).entries.iter().copied().filter(|entries| *entries > 0).collect();
    for pair in entries.windows(2).skip(1) {
        let ratio = pair[1] as f64 / pair[0] as f64;
        assert!((3.5..6.0).contains(&ratio), "{entries:?}");
    }
    assert!(measure(&source, "space_amplification") < 1.0 + 1.0 / 4.0 + 1.0 / 16.0 + 0.05);
}

/// A move of one byte to the next level rewrites its overlap there, r bytes for a size ratio of r.
/// The choice of tables with little overlap and earlier overwrites lower the cost. A level
/// therefore costs from (r - 1) / 2 to r + 1.
#[test]
fn levelled_compaction_costs_what_the_formula_says() {
    let settings = LsmSettings { dynamic_levels: false, level_multiplier: 8, ..small(Mix::Overwrite) };
    let source = run(&settings, &drive(256), 2, 200 * MIB);
    let before = (tree(&source).counters.clone(), tree(&source).entries.clone());
    let mut source = source;
    while tree(&source).counters.application_bytes < 600 * MIB {
        source.step().unwrap();
    }
    let user = (tree(&source).counters.application_bytes - before.0.application_bytes) as f64;
    let costs: Vec<f64> = tree(&source)
        .counters
        .level_bytes
        .iter()
        .zip(&before.0.level_bytes)
        .map(|(now, then)| (now - then) as f64 / user)
        .collect();
    let entries = &tree(&source).entries;
    let mut above = 4.0 * 256.0;
    assert!((0.95..=1.0).contains(&costs[0]), "a flush writes every entry once, but for duplicates: {costs:?}");
    for (level, entries) in entries.iter().enumerate().filter(|(_, entries)| **entries > 0) {
        let ratio = *entries as f64 / above;
        let cost = costs[level + 1];
        assert!(
            cost > (ratio - 1.0) / 2.0 && cost < ratio + 1.2,
            "level {}: {cost} at a ratio of {ratio}, {costs:?}",
            level + 1
        );
        above = *entries as f64;
    }
    let log = source.database.store.output.wal_bytes as f64 / tree(&source).counters.application_bytes as f64;
    assert!((1.0..1.1).contains(&log), "{log}");
}

/// Tiers write less and use more space than levels.
#[test]
fn tiers_trade_space_for_writes() {
    let settings = LsmSettings { data_percent: 20.0, ..small(Mix::Overwrite) };
    let levelled = run(&settings, &drive(256), 4, 500 * MIB);
    let tiered = LsmSettings { level_zero_tables: 8, compaction: Compaction::Tiered, ..settings };
    let tiered = run(&tiered, &drive(256), 4, 500 * MIB);
    let both = |name| (measure(&levelled, name), measure(&tiered, name));
    let (levels, tiers) = both("table_waf");
    assert!(tiers < 0.7 * levels, "{levels} {tiers}");
    let (levels, tiers) = both("space_amplification");
    assert!(levels < 1.25 && tiers > 1.0 && tiers <= 3.1, "{levels} {tiers}");
    assert!(tree(&tiered).runs.len() <= 8);
}

/// Skewed updates are dropped in upper levels and cost less.
#[test]
fn skew_lowers_amplification() {
    let waf = |popularity| {
        let settings = LsmSettings { popularity: Some(popularity), ..small(Mix::Overwrite) };
        measure(&run(&settings, &drive(256), 8, 400 * MIB), "table_waf")
    };
    let (uniform, zipf) = (waf(RecordPopularity::Uniform), waf(RecordPopularity::Zipf));
    assert!(zipf < 0.85 * uniform, "{zipf} {uniform}");
}

#[test]
fn handles_follow_levels() {
    let requests = |settings: &LsmSettings| {
        let mut source = settings.source(&drive(64), 3).unwrap();
        let mut requests = Vec::new();
        while requests.len() < 40_000 {
            source.next_batch(&mut requests, 1000).unwrap();
        }
        requests.retain(|request| request.operation == RequestOperation::Write);
        requests
    };
    let by = |placement| requests(&LsmSettings { placement, ..small(Mix::Overwrite) });
    assert!(by(LsmPlacement::None).iter().all(|request| request.placement.is_none()));
    for request in by(LsmPlacement::Level) {
        assert_eq!(request.placement, Some(PlacementIndex(request.stream.saturating_sub(1))));
    }
    for request in by(LsmPlacement::Rocksdb) {
        let expected = match request.stream {
            0 => 2..=2,
            1 => 3..=3,
            _ => 3..=5,
        };
        assert!(expected.contains(&request.placement.unwrap().0), "{request:?}");
    }
    let mut by_lifetime: Vec<u16> =
        by(LsmPlacement::Lifetime).iter().filter_map(|request| Some(request.placement?.0)).collect();
    by_lifetime.sort_unstable();
    by_lifetime.dedup();
    assert!(by_lifetime.len() >= 3, "{by_lifetime:?}");
}

#[test]
fn reads_come_from_files() {
    let settings = LsmSettings { reads: true, ..small(Mix::B) };
    let mut source = settings.source(&drive(64), 3).unwrap();
    let mut requests = Vec::new();
    while requests.len() < 200_000 {
        source.next_batch(&mut requests, 5000).unwrap();
    }
    let reads = requests.iter().filter(|request| request.operation == RequestOperation::Read).count();
    assert!(reads > 50_000, "{reads}");
    let scans = LsmSettings { reads: true, ..small(Mix::E) };
    let mut source = scans.source(&drive(64), 3).unwrap();
    requests.clear();
    while requests.len() < 200_000 {
        source.next_batch(&mut requests, 5000).unwrap();
    }
}

#[test]
fn batch_sizes_do_not_matter() {
    let collect = |batch: usize, seed: u64| {
        let mut source = small(Mix::A).source(&drive(64), seed).unwrap();
        let mut requests = Vec::new();
        while requests.len() < 20_000 {
            source.next_batch(&mut requests, batch).unwrap();
        }
        requests.truncate(20_000);
        requests
    };
    assert_eq!(collect(7, 1), collect(4096, 1));
    assert_ne!(collect(7, 1), collect(7, 2));
}

#[test]
fn a_scaled_model_is_like_the_drive() {
    let waf = |denominator: u64| {
        let settings = LsmSettings {
            memtable_bytes: 2 * MIB,
            table_bytes: 2 * MIB,
            base_level_bytes: 8 * MIB,
            ..small(Mix::Overwrite)
        };
        let target = scaled_drive(512, denominator);
        let source = run(&settings, &target, 6, 1500 * MIB / denominator);
        (measure(&source, "table_waf"), measure(&source, "space_amplification"))
    };
    let (full, model) = (waf(1), waf(8));
    assert!((full.0 / model.0 - 1.0).abs() < 0.05 && (full.1 / model.1 - 1.0).abs() < 0.03, "{full:?} {model:?}");
}

#[test]
fn a_full_drive_is_an_error_and_loading_ends() {
    let settings = LsmSettings { data_percent: 94.0, ..small(Mix::Overwrite) };
    let mut source = settings.source(&drive(64), 4).unwrap();
    let mut requests = Vec::new();
    let error = loop {
        requests.clear();
        match source.next_batch(&mut requests, 4096) {
            Ok(count) => assert!(count > 0, "it ended without an error"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("no room for another table"), "{error}");
    let target = WorkloadTarget { endless: false, ..drive(64) };
    let mut source = small(Mix::Load).source(&target, 4).unwrap();
    requests.clear();
    while source.next_batch(&mut requests, 4096).unwrap() > 0 {}
    let application_bytes = tree(&source).counters.application_bytes;
    assert_eq!(application_bytes, 64 * MIB * 4 / 10 / 1023 * 1023);
}

#[test]
fn impossible_settings_are_refused() {
    let refused = |change: fn(&mut LsmSettings), part: &str| {
        let mut settings = small(Mix::A);
        change(&mut settings);
        let error = settings.source(&drive(64), 0).err().unwrap().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(|settings| settings.data_percent = 96.0, "0.1 to 95");
    refused(|settings| settings.memtable_bytes = 4096, "16 are needed");
    refused(|settings| settings.data_percent = 1.0, "ten memtables");
    refused(|settings| settings.levels = 1, "from 2 to 10");
    refused(|settings| settings.value_bytes = 0, "value_bytes = 0 must be from 1 to");
    refused(|settings| settings.write_bytes = 100, "multiple of 4096");
    refused(|settings| settings.level_multiplier = 1, "from 2 to 1000");
    let text = "mix = \"f\"\ncompaction = \"tiered\"\nplacement = \"rocksdb\"\nmemtable_bytes = \"1MiB\"\n";
    let settings: LsmSettings = read(text).unwrap();
    assert_eq!((settings.mix, settings.memtable_bytes), (Mix::F, MIB));
    assert_eq!(reread(&settings), settings);
}

/// A bulk load gives the same levels as a long run of updates.
#[test]
fn a_bulk_load_is_a_tree_in_steady_state() {
    for dynamic_levels in [true, false] {
        let settings = LsmSettings { dynamic_levels, level_multiplier: 4, bulk_load: true, ..small(Mix::Overwrite) };
        let mut loaded = settings.source(&drive(128), 1).expect("it fits");
        while tree(&loaded).counters.loaded_bytes == 0 || !loaded.is_loaded() {
            assert!(loaded.step().expect("there is room"));
        }
        let before = tree(&loaded).entries.clone();
        let after = tree(&run(&settings, &drive(128), 1, 600 * MIB)).entries.clone();
        let all: u64 = after.iter().sum();
        for (level, (before, after)) in before.iter().zip(&after).enumerate() {
            assert!(before.abs_diff(*after) < all / 12, "level {}: {before}, then {after} of {all}", level + 1);
        }
        assert!(before.iter().filter(|entries| **entries > 0).count() >= 3, "{before:?}");
    }
}

/// FIFO keeps the latest puts up to the size and merges nothing.
#[test]
fn the_oldest_tables_go() {
    let settings = LsmSettings { compaction: Compaction::Fifo, data_percent: 30.0, ..small(Mix::Overwrite) };
    let source = run(&settings, &drive(64), 1, 200 * MIB);
    assert_eq!((tree(&source).counters.compactions, measure(&source, "loaded_bytes")), (0, 0.0));
    let share = tree(&source).table_entries() as f64 * 1023.0 / (64.0 * 0.3 * MIB as f64);
    assert!((0.95..=1.0).contains(&share), "{share}");
    check(&source);
}

/// The next log reuses the space of the last one, and placement follows the table.
#[test]
fn logs_are_recycled_and_placed_as_the_table_says() {
    let settings = LsmSettings {
        recycle_wal: true,
        placement: LsmPlacement::Table,
        placement_table: vec![5, 1, 2],
        ..small(Mix::Overwrite)
    };
    let mut source = settings.source(&drive(64), 3).expect("it fits");
    let mut requests: Vec<IoRequest> = Vec::new();
    for _ in 0..60_000 {
        assert!(source.step().expect("there is room"));
    }
    source.database.store.output.queue.pop_batch(&mut requests, usize::MAX);
    let writes = requests.iter().filter(|request| request.operation == RequestOperation::Write);
    let mut log_end = 0;
    for request in writes {
        let expected = [5, 1, 2][usize::from(request.stream).min(2)];
        assert_eq!(request.placement, Some(PlacementIndex(expected)), "{request:?}");
        if request.stream == 0 {
            log_end = log_end.max(request.offset_bytes + u64::from(request.bytes));
        }
    }
    assert!(log_end <= 256 * 1024, "one log's space is enough: {log_end}");
    check(&source);
}

/// A database of families that inherit the settings and add their own.
fn with_families(settings: LsmSettings, families: &[(&str, Family)]) -> LsmSettings {
    let families = families.iter().cloned();
    LsmSettings { families: families.map(|(name, family)| (name.to_string(), family)).collect(), ..settings }
}

/// A family with shares of data and operations.
fn family(data_share: f64, operation_share: f64) -> Family {
    Family { data_share, operation_share, ..Family::default() }
}

/// A small hot family and a large one with few puts.
fn hot_and_cold() -> LsmSettings {
    let settings = LsmSettings { bulk_load: true, ..small(Mix::Overwrite) };
    with_families(settings, &[("cold", family(4.0, 1.0)), ("hot", family(1.0, 199.0))])
}

fn step(source: &mut Lsm) {
    assert!(source.step().expect("there is room"), "it does not end");
}

fn requests_of(source: &mut Lsm, count: usize) -> Vec<IoRequest> {
    let mut requests = Vec::new();
    while requests.len() < count {
        assert!(source.next_batch(&mut requests, count).expect("there is room") > 0);
    }
    requests.truncate(count);
    requests
}

/// A single family behaves like a database without families.
#[test]
fn one_family_changes_nothing() {
    for mix in [Mix::A, Mix::D] {
        for bulk_load in [true, false] {
            let alone = LsmSettings { bulk_load, ..small(mix) };
            let named = with_families(alone.clone(), &[("all", family(3.0, 0.1))]);
            let requests = |settings: &LsmSettings| {
                let mut source = settings.source(&drive(64), 9).expect("it fits");
                requests_of(&mut source, 30_000)
            };
            assert_eq!(requests(&alone), requests(&named));
        }
    }
}

#[test]
fn families_keep_their_keys_and_share_the_space() {
    let different = with_families(
        LsmSettings { data_percent: 30.0, ..small(Mix::Overwrite) },
        &[
            ("levels", family(2.0, 1.0)),
            (
                "runs",
                Family {
                    compaction: Some(Compaction::Tiered),
                    value_bytes: Some(3000),
                    memtable_bytes: Some(128 * 3023),
                    ..family(1.0, 1.0)
                },
            ),
            ("new", Family { mix: Some(Mix::D), ..family(1.0, 1.0) }),
        ],
    );
    let together = LsmSettings { atomic_flush: true, recycle_wal: true, ..hot_and_cold() };
    let unlogged = LsmSettings { wal: false, ..hot_and_cold() };
    for settings in [different, together, unlogged, hot_and_cold()] {
        let mut source = settings.source(&drive(64), 5).expect("it fits");
        for number in 0..100_000 {
            step(&mut source);
            if number % 20_011 == 0 {
                check(&source);
            }
        }
        check(&source);
        for (number, tree) in source.database.trees.iter().enumerate() {
            let (keys, _) = keys_of(tree);
            assert_eq!(keys.len() as u32, source.records(number), "family {number}");
        }
        let limit = source.database.trees.iter().map(|tree| tree.counters.compactions).sum::<u64>();
        assert!(limit > 20, "{limit} compactions");
    }
}

/// All bytes on the drive belong to the log, the load, or a level of a family. Sums by stream and
/// by placement index agree.
#[test]
fn bytes_of_families_are_accounted_for() {
    let settings = LsmSettings { placement: LsmPlacement::Family, ..hot_and_cold() };
    let mut source = settings.source(&drive(64), 3).expect("it fits");
    let streams = source.streams();
    let requests = requests_of(&mut source, 60_000);
    let mut by_stream = vec![0; streams.len()];
    for request in &requests {
        if request.operation == RequestOperation::Write {
            by_stream[usize::from(request.stream)] += u64::from(request.bytes);
            let expected = match streams[usize::from(request.stream)].split('.').next() {
                Some("wal") => 0,
                Some("cold") => 1,
                Some("hot") => 2,
                other => panic!("{other:?} writes"),
            };
            assert_eq!(request.placement, Some(PlacementIndex(expected)), "{request:?}");
        }
    }
    // The counters include requests that the test has not taken yet.
    let left = source.database.store.output.queue.ready();
    let mut rest = Vec::new();
    source.database.store.output.queue.pop_batch(&mut rest, left);
    for request in rest.iter().filter(|request| request.operation == RequestOperation::Write) {
        by_stream[usize::from(request.stream)] += u64::from(request.bytes);
    }
    let output = &source.database.store.output;
    assert_eq!(by_stream.iter().sum::<u64>(), output.bytes_written);
    assert_eq!(output.handle_bytes.iter().sum::<u64>(), output.bytes_written);
    assert_eq!(by_stream[0], output.wal_bytes);
    let counted = |name: &str| measure(&source, name);
    for measured in ["application_bytes", "loaded_bytes", "flushes", "compactions", "trivial_moves"] {
        let parts = counted(&format!("hot.{measured}")) + counted(&format!("cold.{measured}"));
        assert_eq!(counted(measured), parts, "{measured}");
    }
    // The log has each put once, apart from blocks that end a file.
    let log = output.wal_bytes as f64 / counted("application_bytes");
    assert!((0.99..1.1).contains(&log), "{log}");
}

/// Exactly the families with entries in a log file keep that file.
#[test]
fn log_files_are_kept_until_the_last_family_flushes() {
    for max_total_wal_bytes in [0, 3 << 20] {
        let settings = LsmSettings { max_total_wal_bytes, ..hot_and_cold() };
        let mut source = settings.source(&drive(64), 3).expect("it fits");
        let (mut most_files, mut most_bytes) = (0, 0);
        let (mut flushes, mut kept) = (0, 0);
        for _ in 0..120_000 {
            step(&mut source);
            let database = &source.database;
            let log = database.log.as_ref().expect("there is a log");
            let needed = database.trees.iter().filter_map(|tree| tree.oldest_log).min();
            assert_eq!(log.oldest(), needed, "a file is kept that nobody needs, or one is missing");
            for tree in &database.trees {
                assert_eq!(tree.is_empty(), tree.oldest_log.is_none());
            }
            // All entries in memtables are in the log.
            let in_memory = database.trees.iter().map(|tree| tree.memtable.len() as u64 * 1023);
            assert!(log.bytes >= in_memory.sum());
            let hot = &database.trees[1].counters;
            kept += u64::from(hot.flushes > flushes && log.files() > 0);
            flushes = hot.flushes;
            most_files = most_files.max(log.files());
            most_bytes = most_bytes.max(log.bytes);
        }
        let limit = match max_total_wal_bytes {
            0 => 8 * 2 * 256 * 1023,
            bytes => bytes,
        };
        let (cold, hot) = (&source.database.trees[0].counters, &source.database.trees[1].counters);
        assert!(most_files > 5 && kept > 100, "{most_files} files at most, {kept} times kept");
        assert!(most_bytes > limit - 256 * 1023, "{most_bytes} of {limit}");
        assert!(most_bytes <= limit + 1023, "{most_bytes} of {limit}");
        // Only the cold family is flushed early. It gets one in 200 operations and never fills its
        // memtable.
        assert_eq!((cold.early_flushes, hot.early_flushes), (cold.flushes, 0), "{cold:?} {hot:?}");
        assert!(cold.flushes > 10, "{cold:?}");
    }
}

/// With atomic flushes, no log file is kept for another family.
#[test]
fn atomic_flushes_empty_the_log() {
    let settings = LsmSettings { atomic_flush: true, ..hot_and_cold() };
    let mut source = settings.source(&drive(64), 3).expect("it fits");
    for _ in 0..60_000 {
        step(&mut source);
        let log = source.database.log.as_ref().expect("there is a log");
        assert!(log.files() <= 1, "{} files", log.files());
    }
    let (cold, hot) = (&source.database.trees[0].counters, &source.database.trees[1].counters);
    // Of the puts that fill the hot memtable, one in 200 is followed by a cold put. Without any,
    // the cold family has nothing to flush.
    let expected = 1.0 - (1.0 - 1.0 / 200.0_f64).powi(257);
    let share = cold.flushes as f64 / hot.flushes as f64;
    assert!(hot.flushes > 100 && (share - expected).abs() < 0.1, "{share} for {expected}");
    assert_eq!(cold.early_flushes, cold.flushes);
}

/// A family without operations keeps its loaded tables in place, and its records add no cost.
#[test]
fn a_family_that_is_never_written_keeps_its_tables() {
    let settings = with_families(
        LsmSettings { bulk_load: true, ..small(Mix::Overwrite) },
        &[("kept", family(3.0, 0.0)), ("used", family(1.0, 1.0))],
    );
    let mut source = settings.source(&drive(64), 3).expect("it fits");
    while !source.is_loaded() {
        step(&mut source);
    }
    let extents = |source: &Lsm| -> Vec<extents::BlockExtent> {
        let tables = tables(&source.database.trees[0]);
        tables.flat_map(|table| table.extents.clone()).collect()
    };
    let before = extents(&source);
    assert!(before.len() > 20, "{before:?}");
    for _ in 0..60_000 {
        step(&mut source);
    }
    assert_eq!(before, extents(&source));
    assert_eq!(measure(&source, "kept.application_bytes"), 0.0);
    assert_eq!(measure(&source, "kept.flushes"), 0.0);
    assert!(measure(&source, "used.compactions") > 100.0);
    // It holds no log file either.
    assert!(source.database.log.as_ref().is_some_and(|log| log.files() <= 1));
    check(&source);
}

/// Two equal families cost the same as one alone on half the drive.
#[test]
fn two_equal_families_are_like_one_each() {
    let settings = LsmSettings { dynamic_levels: false, level_multiplier: 4, ..small(Mix::Overwrite) };
    let alone = run(&settings, &drive(64), 2, 200 * MIB);
    let two = with_families(settings, &[("one", family(1.0, 1.0)), ("other", family(1.0, 1.0))]);
    let mut source = two.source(&drive(128), 2).expect("it fits");
    while measure(&source, "application_bytes") < 400.0 * MIB as f64 {
        for _ in 0..1000 {
            step(&mut source);
        }
    }
    for name in ["one", "other"] {
        let of = |measured: &str| measure(&source, &format!("{name}.{measured}"));
        let half = of("application_bytes") / (200 * MIB) as f64;
        assert!((half - 1.0).abs() < 0.01, "{half}");
        for measured in ["table_waf", "space_amplification", "compactions", "flushes"] {
            let ratio = of(measured) / measure(&alone, measured);
            assert!((ratio - 1.0).abs() < 0.05, "{name}.{measured}: {ratio}");
        }
        // Both fill at about the same time, so the log limit never triggers a flush.
        assert_eq!(of("early_flushes"), 0.0);
    }
}

/// Operations follow the shares of the families. A finished mix, or one without puts, leaves its
/// share to the others.
#[test]
fn operations_are_divided_by_their_shares() {
    let reading = Family { mix: Some(Mix::C), ..family(1.0, 5.0) };
    let settings = with_families(
        LsmSettings { bulk_load: true, ..small(Mix::Overwrite) },
        &[("most", family(1.0, 3.0)), ("reads", reading), ("some", family(1.0, 1.0))],
    );
    let mut source = settings.source(&drive(64), 11).expect("it fits");
    while !source.is_loaded() {
        step(&mut source);
    }
    for _ in 0..40_000 {
        step(&mut source);
    }
    assert_eq!(measure(&source, "application_bytes"), 40_000.0 * 1023.0);
    let share = measure(&source, "most.application_bytes") / measure(&source, "application_bytes");
    assert!((share - 0.75).abs() < 0.01, "{share}");
    let ends = LsmSettings { mix: Mix::Load, ..settings };
    let target = WorkloadTarget { endless: false, ..drive(64) };
    let mut source = ends.source(&target, 1).expect("it fits");
    while source.next_batch(&mut Vec::new(), 4096).expect("there is room") > 0 {}
    assert!(source.is_loaded());
}

/// A family can have its own table of placement indices. Others follow the database's.
#[test]
fn families_are_placed_as_their_tables_say() {
    let hot = Family { level_placements: Some(vec![3, 4]), ..family(1.0, 9.0) };
    let settings = with_families(
        LsmSettings { placement: LsmPlacement::Table, placement_table: vec![5, 1, 2], ..small(Mix::Overwrite) },
        &[("cold", family(2.0, 1.0)), ("hot", hot)],
    );
    let mut source = settings.source(&drive(64), 3).expect("it fits");
    let streams = source.streams();
    for request in requests_of(&mut source, 40_000) {
        if request.operation != RequestOperation::Write {
            continue;
        }
        let expected = match streams[usize::from(request.stream)].as_str() {
            "wal" => 5,
            "cold.level_0" => 1,
            "hot.level_0" => 3,
            stream if stream.starts_with("cold") => 2,
            _ => 4,
        };
        assert_eq!(request.placement, Some(PlacementIndex(expected)), "{request:?}");
    }
}

#[test]
fn impossible_families_are_refused() {
    let error = |settings: &str, families: &str| {
        let text = format!(
            "memtable_bytes = \"256KiB\"\ntable_bytes = \"256KiB\"\nbase_level_bytes = \"1MiB\"\n{settings}\n{families}"
        );
        let settings: LsmSettings = read(&text).expect("settings");
        settings.source(&drive(64), 0).err().expect("it cannot be").to_string()
    };
    let two = "[families.one]\n[families.two]\n";
    for (settings, families, expected) in [
        (
            "placement = \"family\"",
            "",
            "placement = \"family\" has no effect without families. Define them as [workload.families.NAME]",
        ),
        (
            "atomic_flush = true",
            "[families.one]",
            "atomic_flush = true has no effect without two families. Define them as [workload.families.NAME]",
        ),
        (
            "max_total_wal_bytes = 5000000",
            "",
            "max_total_wal_bytes = 5000000 has no effect without two families. Define them as \
             [workload.families.NAME]",
        ),
        (
            "max_total_wal_bytes = 5000000\nwal = false",
            two,
            "max_total_wal_bytes = 5000000 has no effect with wal = false",
        ),
        (
            "max_total_wal_bytes = 5000",
            two,
            "max_total_wal_bytes = 5000 holds 4 entries at this scale, but 16 are needed. Use a larger scaled model or \
             smaller entries",
        ),
        (
            "",
            "[families.one]\noperation_share = 0",
            "families have no operations. Give one of them an operation_share above 0",
        ),
        ("", "[families.one]\ndata_share = 0", "families.one.data_share = 0 must be from 0.000001 to 1000000"),
        ("", "[families.one]\nlevels = 11", "families.one.levels = 11 must be from 2 to 10"),
        (
            "",
            "[families.one]\nlevel_placements = [1]",
            "families.one.level_placements has no effect. Set placement = \"table\", or remove it",
        ),
        (
            "placement = \"table\"\nplacement_table = [0, 1]",
            "[families.one]\nlevel_placements = []",
            "families.one.level_placements is empty. Give the placement index of level 0, of level 1, and so on",
        ),
        (
            "",
            "[families.one]\nvalue_bytes = 60000",
            "families.one.memtable_bytes = 262144 holds 4 entries at this scale, but 16 are needed. Use a larger \
             scaled model or smaller entries",
        ),
        (
            "",
            "[families.one]\ndata_share = 0.01\n[families.two]\n",
            "data_percent = 50 gives 324 records of the family one, less than ten memtables. Use more data, or \
             smaller memtables",
        ),
    ] {
        assert_eq!(error(settings, families), expected);
    }
    let many: String = (0..65).map(|number| format!("[families.f{number}]\n")).collect();
    assert_eq!(error("", &many), "the number of families = 65 must be from 0 to 64");
    let settings = hot_and_cold();
    assert_eq!(reread(&settings), settings);
}
