//! Tests of jobs in virtual time on a drive with simple timing: closed and open loops, groups,
//! pauses, and measurements.

mod jobs;
mod logs;
mod replay;

use experiment::cell::{CellKey, RunSpec};
use experiment::run_options::RunSettings;
use simulate::run::{self, RunResult};
use simulate::testing::TIMING;
use simulate::timed::result::TimedResult;
use workload::fio;

/// 64 MiB on 4 dies. A read of 4 KiB from flash takes `READ_NS`.
const DEVICE: &str = r#"
[geometry]
capacity_bytes = "64MiB"
over_provisioning = 0.25
reclaim_unit_bytes = "2MiB"
mapping_unit_bytes = "4KiB"
channels = 4
dies_per_channel = 1
planes_per_die = 1
reclaim_groups = 1
[handles]
count = 1
"#;

/// Core, sensing, channel (4096 bytes at 1 GB/s), link (at 4 x 1969230769 B/s).
const READ_NS: u64 = 2000 + 50_000 + 4096 + 521;

fn settings() -> RunSettings {
    RunSettings { sample_drive_writes: 0.1, precondition_drive_writes: 1.0, ..RunSettings::default() }
}

/// Jobs on the simple device.
fn cell(jobs: &str, settings: RunSettings) -> RunSpec {
    RunSpec {
        key: CellKey { device: "simple".to_string(), variant: String::new(), grid: Vec::new() },
        seed: 1,
        device: toml::from_str(&format!("{DEVICE}{TIMING}")).expect("the device is one"),
        ensemble: None,
        workload_name: "test".to_string(),
        workload: fio::parse(jobs, "test.fio").unwrap_or_else(|error| panic!("{error}")).into(),
        run: settings,
        array: None,
        array_drive: None,
        feedback: None,
        snapshot: None,
    }
}

fn run_with(jobs: &str, settings: RunSettings) -> RunResult {
    let prepared = run::prepare(vec![cell(jobs, settings)]).unwrap_or_else(|error| panic!("{error}"));
    let results = run::run_all(&prepared, true, u64::MAX, &()).expect("there is memory");
    results.into_iter().next().expect("one cell")
}

fn timed(jobs: &str) -> TimedResult {
    run_with(jobs, settings()).timed.expect("the device has timing")
}
