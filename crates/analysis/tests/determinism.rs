//! Tests that an experiment gives the same integers, independently of threads and of parallelism
//! within a drive.
//!
//! Golden rows of a small experiment are compared between pools of one and of two threads, between
//! orders of the cells, and between memory budgets. Rows of different seeds must differ.

use analysis::golden::{self, GoldenRow};
use experiment::cell::RunSpec;
use experiment::definition::Experiment;
use experiment::run_options::RunOptions;
use experiment::selection::RunOverrides;
use simulate::run;

/// Three streams in three variants on two drives, with two seeds. These are twelve cells of a few
/// hundred thousand pages each.
const EXPERIMENT: &str = r#"
title = "determinism"
source = "none"
devices = ["ssd_a", "warp_default"]
workload = "three_stream"
[run]
drive_writes = 1.6
scale = "1/2048"
seeds = [1, 2]
[quick]
drive_writes = 1.6
scale = "1/2048"
[change]
device = { "geometry.physical_bytes" = "2TiB", "gc.victim_policy" = "random", "geometry.reclaim_unit_bytes" = "8GiB" }
jobs = { overwrite = { random_distribution = "zipf:1.2" } }
[[variants]]
name = "FDP"
[[variants]]
name = "Mixed"
jobs = { overwrite = { plids = 0 } }
[[variants]]
name = "NoFDP"
jobs = { global = { dataplacement = "none" } }
"#;

/// A drive with maps larger than the caches, at full size. Its run uses the idle threads.
const LARGE: &str = r#"
title = "determinism of a large drive"
source = "none"
devices = ["ssd_a"]
workload = "one_stream"
[run]
drive_writes = 2.2
scale = "1/1"
seeds = [1]
[quick]
drive_writes = 2.2
scale = "1/1"
[change]
device = { "geometry.capacity_bytes" = "18GiB", "geometry.reclaim_unit_bytes" = "128MiB" }
jobs = { random = { norandommap = 1 } }
[[variants]]
name = "as it is"
[[variants]]
name = "hot data is not told"
device = { "handles.hot_window_bytes" = 0 }
"#;

fn cells(seeds: &[u64]) -> Vec<RunSpec> {
    cells_of(EXPERIMENT, seeds)
}

fn cells_of(experiment: &str, seeds: &[u64]) -> Vec<RunSpec> {
    let experiment = Experiment::parse("experiments/determinism/experiment.toml", experiment).expect("it is one");
    let selection = RunOverrides {
        run: RunOptions { seeds: Some(seeds.to_vec()), ..RunOptions::default() },
        ..RunOverrides::default()
    };
    experiment.select(&selection).expect("the experiment has cells").cells
}

/// The golden rows of these cells, run on this many threads and with this much memory.
fn rows(cells: Vec<RunSpec>, threads: usize, memory_bytes: u64) -> Vec<GoldenRow> {
    let prepared = run::prepare(cells).expect("the cells can run");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let results = pool.install(|| run::run_all(&prepared, false, memory_bytes, &()));
    let results = results.expect("there is memory");
    assert!(results.iter().any(|result| result.write_amplification() > 1.01), "collection was part of it");
    golden::rows(&results)
}

#[test]
fn threads_order_and_memory_do_not_show() {
    let one = rows(cells(&[1, 2]), 1, u64::MAX);
    assert_eq!(one.len(), 12);
    assert_eq!(rows(cells(&[1, 2]), 2, u64::MAX), one, "two threads");

    let mut reversed = cells(&[1, 2]);
    reversed.reverse();
    let mut backwards = rows(reversed, 2, u64::MAX);
    backwards.reverse();
    assert_eq!(backwards, one, "cells in reverse order");

    let largest = run::prepare(cells(&[1])).expect("the cells can run");
    let largest = largest.iter().map(|cell| cell.memory_bytes).max().expect("a cell");
    assert_eq!(rows(cells(&[1, 2]), 2, largest), one, "memory for one cell at a time");
    assert!(golden::differences(&one, &one).is_empty());
}

#[test]
fn threads_of_one_run_do_not_show() {
    for cell in cells_of(LARGE, &[1]) {
        let run = |threads| rows(vec![cell.clone()], threads, u64::MAX);
        let one = run(1);
        for threads in [2, 5, 16] {
            assert_eq!(run(threads), one, "{threads} threads for one drive");
        }
    }
}

/// 40,000 requests of 4 to 32 KiB in Alibaba's format, with reads and bad lines.
fn trace() -> String {
    let line = |line: u64| {
        let random = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let operation = if random.is_multiple_of(5) { 'R' } else { 'W' };
        let (volume, unit, time) = (random % 7, random % 8_192, 1_577_808_000_000_000 + line);
        match line % 1_000 {
            999 => "a bad line\n".to_string(),
            _ => format!("{volume},{operation},{},{},{time}\n", unit * 4096, 4096 << (random % 4)),
        }
    };
    (0..40_000).map(line).collect()
}

#[test]
fn threads_that_prepare_a_trace_do_not_show() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, trace()).expect("a file in a folder of our own");
    let path = path.to_str().expect("a path in UTF-8");
    let experiment = Experiment::find_or_workload(path, Some("ssd_a")).expect("a trace is a workload");
    for drive_writes in [None, Some(2.5)] {
        let overrides = RunOverrides {
            run: RunOptions { drive_writes, timed: Some(false), ..RunOptions::default() },
            change: toml::from_str("settings.skip_bad_lines = true").expect("a change"),
            capacity_bytes: Some(288 << 20),
            ..RunOverrides::default()
        };
        let run = |threads| {
            let cells = experiment.select(&overrides).expect("it has a cell").cells;
            let prepared = run::prepare(cells).expect("the cell can run");
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let results = pool.install(|| run::run_all(&prepared, false, u64::MAX, &())).expect("there is memory");
            (golden::rows(&results), results[0].measures.clone(), results[0].pages_read)
        };
        let (rows, measures, pages_read) = run(1);
        let skipped = measures.iter().find(|measure| measure.name == "trace.bad_lines").expect("traces count them");
        assert!(skipped.value > 20.0, "{skipped:?}");
        for threads in [2, 5] {
            assert_eq!(run(threads), (rows.clone(), measures.clone(), pages_read), "{threads} threads");
        }
    }
}

#[test]
fn another_seed_gives_other_rows() {
    let (one, other) = (rows(cells(&[1]), 2, u64::MAX), rows(cells(&[2]), 2, u64::MAX));
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        assert_ne!(one.cell, other.cell, "the seed is part of the name");
        assert_ne!(
            (one.media_bytes_written, &one.gc_pages_copied),
            (other.media_bytes_written, &other.gc_pages_copied),
            "{} and {} give the same",
            one.cell,
            other.cell
        );
    }
    assert_eq!(golden::differences(&one, &other).len(), one.len() + other.len());
}

#[test]
fn rows_survive_their_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("golden.json");
    let path = path.to_str().expect("a path in UTF-8");
    let mut short = cells(&[1]);
    short.truncate(3);
    let rows = rows(short, 2, u64::MAX);
    golden::write(path, &rows).expect("the file is written");
    assert_eq!(golden::read(path).expect("the file is read"), rows);
}

/// The seed of the workload is an offset from fio's default, modulo 2^64.
#[test]
fn every_seed_is_one() {
    let seeds = [u64::MAX, u64::MAX - 0x89, 1 << 63];
    let rows = rows(cells(&seeds), 2, u64::MAX);
    assert_eq!(rows.len(), 18);
}
