//! Tests the search for a scale on real runs: its result, its cost, and its independence from other
//! cells.
//!
//! The drive is the WARP paper's default with 128 reclaim units of 64 MiB. Its scaled models of
//! 1/16 and 1/4 and the drive itself run in a second. Unit tests in `run::search` cover the
//! decisions of the search on invented results.

use std::sync::atomic::{AtomicU64, Ordering};

use analysis::golden;
use experiment::definition::Experiment;
use experiment::run_options::RunOptions;
use experiment::scaled_model::{Scale, ScaleChoice};
use experiment::selection::RunOverrides;
use simulate::run::{self, ProgressObserver, RunProgress, RunResult};
use simulate::warning::RunWarning;

/// Uniform and skewed overwrites.
const EXPERIMENT: &str = r#"
title = "scales"
source = "none"
devices = ["warp_default"]
workload = "one_stream"
[run]
drive_writes = 2.5
scale = "auto:1/1"
[quick]
drive_writes = 2.5
scale = "auto:1/1"
[change]
device = { "geometry.physical_bytes" = "8GiB", "geometry.reclaim_unit_bytes" = "64MiB" }
jobs = { random = { bs = "4k" } }
[[variants]]
name = "uniform"
[[variants]]
name = "skewed"
jobs = { random = { random_distribution = "zipf:1.2" } }
"#;

fn plans(scale: Option<ScaleChoice>) -> Vec<run::RunPlan> {
    let experiment = Experiment::parse("experiments/scales/experiment.toml", EXPERIMENT).expect("it is one");
    let selection = RunOverrides { run: RunOptions { scale, ..RunOptions::default() }, ..RunOverrides::default() };
    let cells = experiment.select(&selection).expect("the experiment has cells").cells;
    run::prepare(cells).expect("the cells can run")
}

fn fixed(denominator: u32) -> Option<ScaleChoice> {
    Some(ScaleChoice::Fixed(Scale(denominator)))
}

fn run_all(scale: Option<ScaleChoice>, watch: &dyn ProgressObserver) -> Vec<RunResult> {
    run::run_all(&plans(scale), false, u64::MAX, watch).expect("they run")
}

#[test]
fn a_search_gives_the_result_of_the_scale_that_it_finds() {
    let progress = RunProgress::default();
    let searched = run_all(None, &progress);
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!(load(&progress.cells_completed), searched.len() as u64, "a cell is done once");
    let [done, expected] = [&progress.completed, &progress.expected].map(load);
    assert!(done.abs_diff(expected) < expected / 100, "{done} of {expected}");

    for (index, result) in searched.iter().enumerate() {
        let search = result.search.expect("it was searched for");
        let compared = search.compared.expect("at least two scaled models ran");
        assert!(compared.agrees() || result.scale == Scale::FULL, "{:?}", result.scale);
        assert_eq!(compared.smaller.0, result.scale.0 * 4);
        assert!(result.complete && result.unit_pages >= 1024);
        // The results are identical to runs at that scale and at the smaller one.
        let [same, smaller] = [result.scale, compared.smaller].map(|scale| run_all(fixed(scale.0), &()).remove(index));
        let rows = |result: &RunResult| golden::rows(std::slice::from_ref(result));
        assert_eq!(rows(&same), rows(result));
        assert_eq!(same.search, None);
        let tails = [&smaller, result].map(|result| result.tail_write_amplification(1.0));
        let whole = [&smaller, result].map(|result| result.write_amplification());
        let difference = [tails, whole].map(|[smaller, larger]| (smaller / larger - 1.0).abs());
        assert_eq!(compared.difference, difference[0].max(difference[1]));
    }
    assert!(searched.iter().any(|result| result.scale != Scale::FULL), "some scaled model is large enough");
}

#[test]
fn threads_and_memory_do_not_show() {
    let run = |threads: usize, memory_bytes: u64| {
        let plans = plans(None);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let results = pool.install(|| run::run_all(&plans, false, memory_bytes, &())).expect("they run");
        let scales: Vec<_> = results.iter().map(|result| (result.scale, result.search)).collect();
        (golden::rows(&results), scales)
    };
    let one = run(1, u64::MAX);
    let needed = plans(None)[0].memory_bytes;
    assert_eq!(run(2, needed), one, "one drive at a time fits");
    let too_little = run::run_all(&plans(None), false, needed - 1, &()).map(|results| results.len());
    let error = too_little.expect_err("the largest scaled model does not fit").to_string();
    assert!(error.contains("--scale auto:1/64"), "{error}");
}

/// Stops the run after this amount of work.
struct Stopping {
    at: u64,
    done: AtomicU64,
}

impl ProgressObserver for Stopping {
    fn add_expected(&self, _work: u64) {}

    fn add_completed(&self, work: u64) {
        self.done.fetch_add(work, Ordering::Relaxed);
    }

    fn record_result(&self, _result: &RunResult) {}

    fn should_stop(&self) -> bool {
        self.done.load(Ordering::Relaxed) > self.at
    }
}

#[test]
fn a_search_that_is_stopped_keeps_the_scaled_model_that_ran() {
    let plans = plans(None);
    let first = run_all(fixed(16), &()).remove(0);
    let stopped_after = |bytes: u64| {
        let watch = Stopping { at: bytes, done: AtomicU64::new(0) };
        let mut results = run::run_all(&plans[..1], false, u64::MAX, &watch).expect("they run");
        results.pop().expect("something was measured")
    };
    let written = first.stats.host_bytes_written();
    let result = stopped_after(written + written / 2);
    assert_eq!((result.scale, result.complete), (Scale(16), false));
    assert_eq!(result.stats, first.stats, "all of the first scaled model's run");
    let not_converged = RunWarning::NotConverged { scale: Scale(16), other: None, difference: None };
    assert!(result.warnings().contains(&not_converged), "{:?}", result.warnings());

    let result = stopped_after(written / 2);
    assert!(!result.complete && result.stats.host_bytes_written() < written);
}

#[test]
fn a_search_compares_no_latencies() {
    let experiment = Experiment::find("latency").expect("it is built in");
    let selection = RunOverrides {
        run: RunOptions { scale: Some(ScaleChoice::AUTO), ..RunOptions::default() },
        ..RunOverrides::default()
    };
    let cells = experiment.select(&selection).expect("a selection").cells;
    let error = run::prepare(cells).map(|plans| plans.len()).expect_err("it has timing").to_string();
    assert!(error.contains("only write amplification") && error.contains("Give a scale"), "{error}");
}
