//! Tests of the oracle on cases with a known optimum, and of the classifiers of the literature.
//!
//! The drive is the WARP paper's default with 1024 reclaim units of 256 pages. It is filled once
//! before the measurement.

use experiment::definition::Experiment;
use experiment::selection::RunOverrides;
use experiment::workloads::{WorkloadChanges, read_workload};
use report::rows;
use simulate::run::{self, RunResult};

/// Results of all cells of an experiment.
fn results(text: &str) -> Vec<RunResult> {
    let experiment = Experiment::parse("experiments/oracle/experiment.toml", text).expect("the experiment is one");
    let cells = experiment.select(&RunOverrides::default()).expect("it has cells").cells;
    let plans = run::prepare(cells).expect("they can run");
    run::run_all(&plans, false, run::memory_available(), &()).expect("there is memory")
}

/// Write amplification over the last full drive write of a job file, with a classifier and this
/// number of handles.
fn write_amplification(jobs: &str, classifier: &str, handles: u16) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("jobs.fio"), jobs).expect("a job file");
    let text = format!(
        r#"
        title = "oracle"
        source = "none"
        devices = ["warp_default"]
        workload = {{ kind = "fio", file = "{}", classifier = {{ {classifier} }} }}
        [run]
        drive_writes = 4.0
        precondition_drive_writes = 1.0
        scale = "1/64"
        [quick]
        drive_writes = 4.0
        scale = "1/64"
        [change.device]
        "geometry.physical_bytes" = "64GiB"
        "geometry.reclaim_unit_bytes" = "64MiB"
        "geometry.over_provisioning" = 0.25
        "handles.count" = {handles}
        "gc.background_watermark" = 0.99
        "#,
        folder.path().join("jobs.fio").display()
    );
    results(&text)[0].tail_write_amplification(1.0)
}

const ORACLE: &str = "kind = \"oracle\"";
const NONE: &str = "kind = \"none\"";

/// Sequential writers on regions of the drive, each with its size in percent and its rate.
fn in_order(writers: &[(u32, u32)]) -> String {
    let (mut jobs, mut offset) = (String::new(), 0);
    for (percent, rate) in writers {
        jobs += &format!("[at_{offset}]\nrw=write\nbs=4k\noffset={offset}%\nsize={percent}%\nrate={rate}m\n");
        jobs += "time_based\nruntime=24h\n";
        offset += percent;
    }
    jobs
}

#[test]
fn what_is_written_in_order_is_never_copied() {
    assert_eq!(write_amplification(&in_order(&[(100, 1)]), ORACLE, 8), 1.0);
}

#[test]
fn streams_of_fixed_lifetimes_with_a_handle_for_each_are_never_copied() {
    // A page lives until its writer returns to it, for a time of region / rate. All four write
    // concurrently, so without placement each reclaim unit mixes their pages.
    let jobs = in_order(&[(10, 100), (20, 50), (30, 20), (40, 10)]);
    let mixed = write_amplification(&jobs, NONE, 4);
    assert!(mixed > 1.3, "{mixed}");
    let placed = write_amplification(&jobs, ORACLE, 4);
    assert!(placed < 1.005, "{placed}");
    // With fewer handles than lifetimes it exceeds 1, but is lower than without placement.
    let two = write_amplification(&jobs, ORACLE, 2);
    assert!(two > placed && two < mixed, "{placed} {two} {mixed}");
}

#[test]
fn uniformly_random_writes_have_no_hot_pages_but_deaths() {
    let jobs = "[random]\nrw=randwrite\nbs=4k\nnorandommap\ntime_based\nruntime=24h\n";
    let none = write_amplification(jobs, NONE, 8);
    // Greedy collection at 0.25 of over-provisioning (Desnoyers 2012): 2.65.
    assert!((2.5..2.8).contains(&none), "{none}");
    for kind in ["update_frequency", "sepbit", "midas", "warcip"] {
        let segment = match kind {
            "update_frequency" => "",
            _ => ", segment_bytes = \"64MiB\"",
        };
        let past = write_amplification(jobs, &format!("kind = \"{kind}\"{segment}"), 8);
        assert!(past > none - 0.02, "{kind}: the past says nothing, {past} for {none}");
    }
    let known = [2, 4, 8, 32].map(|handles| write_amplification(jobs, ORACLE, handles));
    assert!(known.is_sorted_by(|few, many| few > many), "{known:?}");
    assert!(known[0] < none - 0.4 && known[2] < 1.25 && known[3] < 1.1, "{known:?}");
}

#[test]
fn a_job_file_takes_a_classifier_by_a_setting() {
    let changes = |kind: &str| WorkloadChanges {
        settings: [("classifier.kind".to_string(), kind.into())].into_iter().collect(),
        ..WorkloadChanges::default()
    };
    assert!(read_workload("uniform", &WorkloadChanges::default()).is_ok_and(|spec| spec.jobs().is_some()));
    // With a classifier the workload is no longer a plain job file.
    assert!(read_workload("uniform", &changes("oracle")).is_ok_and(|spec| spec.jobs().is_none()));
    let error = read_workload("uniform", &changes("oracles")).expect_err("a slip").to_string();
    assert!(error.contains("workload.classifier") && error.contains("`oracle`"), "{error}");
}

#[test]
fn what_others_write_more_than_the_oracle_is_a_table() {
    let text = r#"
        devices = ["warp_default"]
        [run]
        drive_writes = 3.0
        scale = "1/256"
        [change.device]
        "geometry.physical_bytes" = "16GiB"
        "geometry.reclaim_unit_bytes" = "64MiB"
        [[variants]]
        name = "nothing"
        settings = { "classifier.kind" = "none" }
        [[variants]]
        name = "all"
        settings = { "classifier.kind" = "oracle" }
        [[grid]]
        axis = "heat"
        values = [
            { name = "uniform", workload = { kind = "fio", file = "uniform" } },
            { name = "skewed", workload = { kind = "fio", file = "skewed" } },
        ]
    "#;
    let results = results(text);
    let table = rows::above_the_oracle(&results, &["heat".to_string()]).expect("there is an oracle");
    let [row] = &table.rows[..] else { panic!("the oracle is not compared with itself: {table:?}") };
    for (heat, value) in ["uniform", "skewed"].into_iter().zip(&row.cells[2..]) {
        let of = |variant: &str| {
            let mut cells = results.iter();
            let cell = cells.find(|cell| cell.key.variant == variant && cell.key.grid == [heat]);
            cell.expect("it was run").write_amplification()
        };
        assert_eq!(*value, rows::CellValue::Change(of("nothing") / of("all") - 1.0));
        assert!(of("nothing") > 1.05 * of("all"));
    }
    let without: Vec<RunResult> = results.into_iter().filter(|cell| cell.key.variant == "nothing").collect();
    assert_eq!(rows::above_the_oracle(&without, &[]), None, "without an oracle there is nothing to say");
}
