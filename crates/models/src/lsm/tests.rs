//! The tree against a plain set of keys, an account of its space, and known formulas.

use super::*;
use crate::testing::{MIB, drive, measure, twin};
use workload::{Operation, PlacementIndex, Request, Source};

/// A tree of a few levels on a small drive: memtables of 256 entries, a base level of four of them.
fn small(mix: Mix) -> Settings {
    Settings {
        mix,
        memtable_bytes: 256 * 1023,
        table_bytes: 256 * 1023,
        base_level_bytes: 1024 * 1023,
        write_bytes: 64 << 10,
        data_percent: 40.0,
        bulk_load: false,
        ..Settings::default()
    }
}

fn run(settings: &Settings, target: &Target, seed: u64, bytes: u64) -> Lsm {
    let mut source = settings.source(target, seed).unwrap();
    while source.tree.counters.application_bytes < bytes {
        assert!(
            source
                .step()
                .unwrap_or_else(|error| panic!("{error:?}; replay with seed {seed}"))
        );
    }
    source
}

/// All tables, level 0 or tiers first.
fn tables(source: &Lsm) -> impl Iterator<Item = &table::Table> {
    let tree = &source.tree;
    tree.runs.iter().flatten().chain(tree.levels.iter().flatten())
}

/// Levels are sorted and without overlap, no two files share a block, and what is counted is what is there.
fn check(source: &Lsm) {
    let tree = &source.tree;
    for run in tree.runs.iter().chain(&tree.levels) {
        assert!(run.iter().all(|table| table.keys.is_sorted_by(|a, b| a < b)));
        assert!(run.windows(2).all(|pair| pair[0].last() < pair[1].first()));
    }
    for (level, entries) in tree.levels.iter().zip(&tree.entries) {
        assert_eq!(level.iter().map(|table| table.keys.len() as u64).sum::<u64>(), *entries);
    }
    let files = tables(source).map(|table| (&table.extents[..], table.keys.len() as u64 * tree.rules.entry_bytes));
    let mut extents: Vec<extents::Extent> = tree.wal_extents().to_vec();
    for (file, bytes) in files {
        let blocks: u64 = file.iter().map(|extent| u64::from(extent.blocks)).sum();
        assert_eq!(blocks, bytes.div_ceil(BLOCK_BYTES));
        extents.extend_from_slice(file);
    }
    extents.sort_unstable_by_key(|extent| extent.first);
    assert!(
        extents
            .windows(2)
            .all(|pair| pair[0].first + pair[0].blocks <= pair[1].first),
        "extents overlap"
    );
}

#[test]
fn no_key_is_lost_and_none_appears() {
    let tiered = Settings {
        compaction: Compaction::Tiered,
        data_percent: 20.0,
        ..small(Mix::Overwrite)
    };
    let bulk = Settings {
        bulk_load: true,
        ..small(Mix::Overwrite)
    };
    let fixed = Settings {
        dynamic_levels: false,
        ..small(Mix::Overwrite)
    };
    for settings in [small(Mix::Overwrite), small(Mix::A), small(Mix::D), tiered, fixed, bulk] {
        let mut source = settings.source(&drive(64), 5).unwrap();
        for step in 0..120_000 {
            assert!(source.step().unwrap());
            if step % 20_011 == 0 {
                check(&source);
            }
        }
        check(&source);
        let mut keys: Vec<u32> = tables(&source).flat_map(|table| table.keys.iter().copied()).collect();
        keys.extend_from_slice(source.tree.memtable());
        let copies = keys.len();
        keys.sort_unstable();
        keys.dedup();
        // Every record was inserted once at least, and nothing else was.
        assert_eq!(keys.len() as u32, source.records(), "{:?}", settings.mix);
        assert!(source.tree.counters.compactions > 20, "{:?}", source.tree.counters);
        assert!(copies > keys.len() || settings.mix == Mix::D);
    }
}

/// What is written and not discarded on the drive is exactly what files and the log occupy.
#[test]
fn the_drive_holds_what_the_files_are() {
    let mut source = small(Mix::Overwrite).source(&drive(64), 3).unwrap();
    let mut requests: Vec<Request> = Vec::new();
    for _ in 0..60_000 {
        assert!(source.step().unwrap());
    }
    source.tree.output.queue.take(&mut requests, usize::MAX);
    let mut written = vec![false; (64 * MIB / BLOCK_BYTES) as usize];
    for request in requests {
        let first = (request.offset_bytes / BLOCK_BYTES) as usize;
        let blocks = &mut written[first..first + (u64::from(request.bytes) / BLOCK_BYTES) as usize];
        match request.operation {
            Operation::Write if request.stream > 0 => {
                assert!(blocks.iter().all(|block| !block), "a table overwrites something");
                blocks.fill(true);
            }
            Operation::Write => blocks.fill(true),
            _ => blocks.fill(false),
        }
    }
    for extent in source.tree.wal_extents() {
        written[extent.first as usize..][..extent.blocks as usize].fill(false);
    }
    let table_blocks: u32 = tables(&source)
        .flat_map(|table| &table.extents)
        .map(|extent| extent.blocks)
        .sum();
    assert_eq!(written.iter().filter(|block| **block).count() as u32, table_blocks);
}

/// Levels but the last are at their targets, or below, and full where data has passed on.
#[test]
fn levels_have_their_sizes() {
    let settings = Settings {
        dynamic_levels: false,
        level_multiplier: 4,
        ..small(Mix::Overwrite)
    };
    let source = run(&settings, &drive(128), 1, 400 * MIB);
    let mut target = 1024.0;
    let used = source.tree.entries.iter().filter(|entries| **entries > 0).count();
    assert!(used >= 3, "{:?}", source.tree.entries);
    for entries in &source.tree.entries[..used - 1] {
        let share = *entries as f64 / target;
        assert!(
            (0.7..=1.0).contains(&share),
            "{share} of {target}: {:?}",
            source.tree.entries
        );
        target *= 4.0;
    }
    // Dynamic: each level is a fourth of the next, or the base size.
    let settings = Settings {
        dynamic_levels: true,
        ..settings
    };
    let source = run(&settings, &drive(128), 1, 400 * MIB);
    let entries: Vec<u64> = source
        .tree
        .entries
        .iter()
        .copied()
        .filter(|entries| *entries > 0)
        .collect();
    for pair in entries.windows(2).skip(1) {
        let ratio = pair[1] as f64 / pair[0] as f64;
        assert!((3.5..6.0).contains(&ratio), "{entries:?}");
    }
    assert!(measure(&source, "space_amplification") < 1.0 + 1.0 / 4.0 + 1.0 / 16.0 + 0.05);
}

/// Moving a byte one level down rewrites what it overlaps there: r bytes, if that level is r times larger; less when tables are picked
/// that overlap little, and less by what is overwritten before it gets there. So levels cost from (r - 1) / 2 to r + 1.
#[test]
fn levelled_compaction_costs_what_the_formula_says() {
    let settings = Settings {
        dynamic_levels: false,
        level_multiplier: 8,
        ..small(Mix::Overwrite)
    };
    let source = run(&settings, &drive(256), 2, 200 * MIB);
    let before = (source.tree.counters.clone(), source.tree.entries.clone());
    let mut source = source;
    while source.tree.counters.application_bytes < 600 * MIB {
        source.step().unwrap();
    }
    let user = (source.tree.counters.application_bytes - before.0.application_bytes) as f64;
    let costs: Vec<f64> = source
        .tree
        .counters
        .level_bytes
        .iter()
        .zip(&before.0.level_bytes)
        .map(|(now, then)| (now - then) as f64 / user)
        .collect();
    let entries = &source.tree.entries;
    let mut above = 4.0 * 256.0;
    assert!(
        (0.95..=1.0).contains(&costs[0]),
        "a flush writes every entry once, but for duplicates: {costs:?}"
    );
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
    let log = source.tree.output.wal_bytes as f64 / source.tree.counters.application_bytes as f64;
    assert!((1.0..1.1).contains(&log), "{log}");
}

/// Tiers write less and take more space than levels.
#[test]
fn tiers_trade_space_for_writes() {
    let settings = Settings {
        data_percent: 20.0,
        ..small(Mix::Overwrite)
    };
    let levelled = run(&settings, &drive(256), 4, 500 * MIB);
    let tiered = Settings {
        level_zero_tables: 8,
        compaction: Compaction::Tiered,
        ..settings
    };
    let tiered = run(&tiered, &drive(256), 4, 500 * MIB);
    let both = |name| (measure(&levelled, name), measure(&tiered, name));
    let (levels, tiers) = both("table_waf");
    assert!(tiers < 0.7 * levels, "{levels} {tiers}");
    let (levels, tiers) = both("space_amplification");
    assert!(levels < 1.25 && tiers > 1.0 && tiers <= 3.1, "{levels} {tiers}");
    assert!(tiered.tree.runs.len() <= 8);
}

/// Skewed updates are dropped higher up in the tree, and cost less.
#[test]
fn skew_lowers_amplification() {
    let waf = |popularity| {
        let settings = Settings {
            popularity: Some(popularity),
            ..small(Mix::Overwrite)
        };
        measure(&run(&settings, &drive(256), 8, 400 * MIB), "table_waf")
    };
    let (uniform, zipf) = (waf(Popularity::Uniform), waf(Popularity::Zipf));
    assert!(zipf < 0.85 * uniform, "{zipf} {uniform}");
}

#[test]
fn handles_follow_levels() {
    let requests = |settings: &Settings| {
        let mut source = settings.source(&drive(64), 3).unwrap();
        let mut requests = Vec::new();
        while requests.len() < 40_000 {
            source.next_batch(&mut requests, 1000).unwrap();
        }
        requests.retain(|request| request.operation == Operation::Write);
        requests
    };
    let by = |placement| {
        requests(&Settings {
            placement,
            ..small(Mix::Overwrite)
        })
    };
    assert!(by(Placement::None).iter().all(|request| request.placement.is_none()));
    for request in by(Placement::Level) {
        assert_eq!(
            request.placement,
            Some(PlacementIndex(request.stream.saturating_sub(1)))
        );
    }
    for request in by(Placement::Rocksdb) {
        let expected = match request.stream {
            0 => 2..=2,
            1 => 3..=3,
            _ => 3..=5,
        };
        assert!(expected.contains(&request.placement.unwrap().0), "{request:?}");
    }
    let mut by_lifetime: Vec<u16> = by(Placement::Lifetime)
        .iter()
        .filter_map(|request| Some(request.placement?.0))
        .collect();
    by_lifetime.sort_unstable();
    by_lifetime.dedup();
    assert!(by_lifetime.len() >= 3, "{by_lifetime:?}");
}

#[test]
fn reads_come_from_files() {
    let settings = Settings {
        reads: true,
        ..small(Mix::B)
    };
    let mut source = settings.source(&drive(64), 3).unwrap();
    let mut requests = Vec::new();
    while requests.len() < 200_000 {
        source.next_batch(&mut requests, 5000).unwrap();
    }
    let reads = requests
        .iter()
        .filter(|request| request.operation == Operation::Read)
        .count();
    assert!(reads > 50_000, "{reads}");
    let scans = Settings {
        reads: true,
        ..small(Mix::E)
    };
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
fn a_twin_is_like_the_drive() {
    let waf = |denominator: u64| {
        let settings = Settings {
            memtable_bytes: 2 * MIB,
            table_bytes: 2 * MIB,
            base_level_bytes: 8 * MIB,
            ..small(Mix::Overwrite)
        };
        let target = twin(512, denominator);
        let source = run(&settings, &target, 6, 1500 * MIB / denominator);
        (measure(&source, "table_waf"), measure(&source, "space_amplification"))
    };
    let (full, twin) = (waf(1), waf(8));
    assert!(
        (full.0 / twin.0 - 1.0).abs() < 0.05 && (full.1 / twin.1 - 1.0).abs() < 0.03,
        "{full:?} {twin:?}"
    );
}

#[test]
fn a_full_drive_is_an_error_and_loading_ends() {
    let settings = Settings {
        data_percent: 94.0,
        ..small(Mix::Overwrite)
    };
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
    let target = Target {
        endless: false,
        ..drive(64)
    };
    let mut source = small(Mix::Load).source(&target, 4).unwrap();
    requests.clear();
    while source.next_batch(&mut requests, 4096).unwrap() > 0 {}
    let application_bytes = source.tree.counters.application_bytes;
    assert_eq!(application_bytes, 64 * MIB * 4 / 10 / 1023 * 1023);
}

#[test]
fn impossible_settings_are_refused() {
    let refused = |change: fn(&mut Settings), part: &str| {
        let mut settings = small(Mix::A);
        change(&mut settings);
        let error = settings.source(&drive(64), 0).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(|settings| settings.data_percent = 96.0, "0.1 to 95");
    refused(|settings| settings.memtable_bytes = 4096, "16 are needed");
    refused(|settings| settings.data_percent = 1.0, "ten memtables");
    refused(|settings| settings.levels = 1, "from 2 to 10");
    refused(
        |settings| settings.value_bytes = 0,
        "value_bytes = 0: must be from 1 to",
    );
    refused(|settings| settings.write_bytes = 100, "multiple of 4096");
    refused(|settings| settings.level_multiplier = 1, "from 2 to 1000");
    let text = "mix = \"f\"\ncompaction = \"tiered\"\nplacement = \"rocksdb\"\nmemtable_bytes = \"1MiB\"\n";
    let settings: Settings = toml::from_str(text).unwrap();
    assert_eq!((settings.mix, settings.memtable_bytes), (Mix::F, MIB));
    assert_eq!(
        toml::from_str::<Settings>(&toml::to_string(&settings).unwrap()).unwrap(),
        settings
    );
}

/// A bulk load leaves the levels as a long run of updates leaves them.
#[test]
fn a_bulk_load_is_a_settled_tree() {
    for dynamic_levels in [true, false] {
        let settings = Settings {
            dynamic_levels,
            level_multiplier: 4,
            bulk_load: true,
            ..small(Mix::Overwrite)
        };
        let mut loaded = settings.source(&drive(128), 1).expect("it fits");
        while loaded.tree.counters.loaded_bytes == 0 || !loaded.is_loaded() {
            assert!(loaded.step().expect("there is room"));
        }
        let before = loaded.tree.entries.clone();
        let after = run(&settings, &drive(128), 1, 600 * MIB).tree.entries.clone();
        let all: u64 = after.iter().sum();
        for (level, (before, after)) in before.iter().zip(&after).enumerate() {
            assert!(
                before.abs_diff(*after) < all / 12,
                "level {}: {before}, then {after} of {all}",
                level + 1
            );
        }
        assert!(before.iter().filter(|entries| **entries > 0).count() >= 3, "{before:?}");
    }
}

/// FIFO: what was put last is there, up to the size; nothing is merged.
#[test]
fn the_oldest_tables_go() {
    let settings = Settings {
        compaction: Compaction::Fifo,
        data_percent: 30.0,
        ..small(Mix::Overwrite)
    };
    let source = run(&settings, &drive(64), 1, 200 * MIB);
    assert_eq!(
        (source.tree.counters.compactions, measure(&source, "loaded_bytes")),
        (0, 0.0)
    );
    let share = source.tree.table_entries() as f64 * 1023.0 / (64.0 * 0.3 * MIB as f64);
    assert!((0.95..=1.0).contains(&share), "{share}");
    check(&source);
}

/// The next log lies where the last one was, and the table of placement indices is followed.
#[test]
fn logs_are_recycled_and_placed_as_the_table_says() {
    let settings = Settings {
        recycle_wal: true,
        placement: Placement::Table,
        placement_table: vec![5, 1, 2],
        ..small(Mix::Overwrite)
    };
    let mut source = settings.source(&drive(64), 3).expect("it fits");
    let mut requests: Vec<Request> = Vec::new();
    for _ in 0..60_000 {
        assert!(source.step().expect("there is room"));
    }
    source.tree.output.queue.take(&mut requests, usize::MAX);
    let writes = requests.iter().filter(|request| request.operation == Operation::Write);
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
