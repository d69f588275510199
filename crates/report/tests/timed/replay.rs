//! Traces that are replayed at their recorded times.

use experiment::cell::RunSpec;
use experiment::run_options::{ReplayMode, RunSettings};
use simulate::run::{self, RunResult};
use simulate::timed::replay::{GroupBy, ReplayResult, TracePace};
use simulate::timed::result::TimedResult;
use workload::RequestOperation;

use crate::{READ_NS, cell, settings};

/// Runs a trace on the simple device, whose pages are all written.
fn run_trace(text: &str, settings: RunSettings) -> Result<RunResult, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    std::fs::write(&file, text).expect("it can be written");
    let table = format!("kind = \"trace\"\nmapping = \"modulo\"\nfiles = [{:?}]\n", file.display().to_string());
    let find_jobs = |jobs: applications::JobsReference<'_>| panic!("{jobs:?} is not asked for");
    let workload = applications::WorkloadSpec::parse("workload", &toml::from_str(&table).expect("a table"), &find_jobs);
    let cell = RunSpec {
        workload: workload.expect("a workload"),
        workload_name: "trace".to_string(),
        ..cell("[a]\nrw=read\n", settings)
    };
    let prepared = run::prepare(vec![cell]).map_err(|error| error.to_string())?;
    let results = run::run_all(&prepared, true, u64::MAX, &()).map_err(|error| error.to_string())?;
    Ok(results.into_iter().next().expect("one cell"))
}

fn at_recorded_times(speed: f64, queue_depth: Option<u32>) -> RunSettings {
    RunSettings { replay: Some(ReplayMode::Timed), replay_speed: Some(speed), queue_depth, ..settings() }
}

fn replayed(text: &str, settings: RunSettings) -> (TimedResult, ReplayResult) {
    let result = run_trace(text, settings).unwrap_or_else(|problem| panic!("{problem}"));
    let timed = result.timed.expect("the device has timing");
    let replay = timed.trace.as_ref().and_then(TracePace::replay).expect("it was replayed").clone();
    (timed, replay)
}

/// Reads of 4 KiB, one for each time in microseconds.
fn reads_at(times_us: impl IntoIterator<Item = u64>) -> String {
    let line = |(place, time_us): (usize, u64)| format!("{time_us} a read {} 4096\n", place * 4096);
    let lines: String = times_us.into_iter().enumerate().map(line).collect();
    format!("fio version 3 iolog\n{lines}")
}

#[test]
fn a_trace_is_replayed_at_its_own_times() {
    let text = reads_at((0..100).map(|read| read * 1000));
    for (speed, step_ns) in [(1.0, 1_000_000), (2.0, 500_000), (0.5, 2_000_000)] {
        let (timed, replay) = replayed(&text, at_recorded_times(speed, None));
        let total = replay.total();
        assert_eq!(total.latencies.count(), 100);
        assert_eq!((total.latencies.min_ns(), total.latencies.max_ns()), (READ_NS, READ_NS));
        assert_eq!((total.late.requests, replay.lateness.max_ns()), (0, 0));
        assert_eq!(replay.last_due_ns, 99 * step_ns);
        assert_eq!(timed.jobs[0].until_ns, 99 * step_ns + READ_NS, "nothing comes before it is due");
        assert_eq!((replay.queue_depth, replay.tick_ns), (1023, 1_000_000));
    }
}

#[test]
fn what_a_full_queue_keeps_waiting_in_the_host_is_part_of_its_latency() {
    // Fifty simultaneous requests, and one much later.
    let text = reads_at((0..50).map(|_| 0).chain([100_000]));
    let (timed, replay) = replayed(&text, at_recorded_times(1.0, Some(1)));
    let total = replay.total();
    assert_eq!(total.latencies.max_ns(), 50 * READ_NS, "the last one waits for all before it");
    assert_eq!(total.latencies.sum_ns(), u128::from(READ_NS * 50 * 51 / 2 + READ_NS));
    assert_eq!((total.late.requests, total.late.max_ns), (49, 49 * READ_NS));
    assert_eq!((replay.lateness.count(), replay.last_late_ns), (51, 0));
    // The drive served one request at a time, and its latencies show that.
    let reads = timed.jobs[0].direction(RequestOperation::Read);
    assert_eq!((reads.latencies.min_ns(), reads.latencies.max_ns()), (READ_NS, READ_NS));
    let burst = replay.bursts[1];
    assert_eq!((burst.window_ns, burst.from_ns, burst.requests), (10_000_000, 0, 50));
    assert_eq!(burst.latency_sum_ns, u128::from(READ_NS * 50 * 51 / 2));
    // With enough queue depth no request waits in the host.
    let (_, deep) = replayed(&text, at_recorded_times(1.0, Some(64)));
    assert_eq!(deep.total().late.requests, 0);
    assert!(deep.total().latencies.max_ns() < 50 * READ_NS, "four dies read at a time");
}

#[test]
fn latencies_are_told_apart_by_volume_process_and_size_beside_the_recorded_ones() {
    let mut text = String::new();
    for request in 0..40_u64 {
        let (volume, kind, bytes) = if request % 4 == 0 { (1, "Write", 65_536) } else { (0, "Read", 4096) };
        // Filetimes in units of 100 ns: from one hour on, a request per millisecond. The recorded
        // latency is the number of the request.
        text += &format!(
            "{},usr,{volume},{kind},{},{bytes},{}\n",
            36_000_000_000 + request * 10_000,
            request * 65_536,
            request + 1
        );
    }
    let (_, replay) = replayed(&text, at_recorded_times(1.0, None));
    let of = |by: GroupBy| -> Vec<(&str, [u64; 3])> {
        let groups = replay.groups.iter().filter(|group| group.by == by);
        groups
            .map(|group| (group.name.as_str(), [0, 1, 2].map(|index| group.directions[index].latencies.count())))
            .collect()
    };
    assert_eq!(of(GroupBy::All), [("all", [30, 10, 0])]);
    // In order of first appearance.
    assert_eq!(of(GroupBy::Volume), [("usr,1", [0, 10, 0]), ("usr,0", [30, 0, 0])]);
    assert_eq!(of(GroupBy::Process), [("1", [30, 10, 0])]);
    assert_eq!(of(GroupBy::Size), [("to 4 KiB", [30, 0, 0]), ("to 64 KiB", [0, 10, 0])]);
    let recorded = &replay.groups[0].directions[RequestOperation::Write as usize].recorded;
    assert_eq!((recorded.count(), recorded.min_ns(), recorded.max_ns()), (10, 100, 3700));
    let table = report::rows::replay(&replay).text_within(usize::MAX);
    assert!(table.contains("volume usr,1") && table.contains("recorded p99"), "{table}");
}

#[test]
fn a_request_that_was_recorded_before_the_one_before_it_is_due_with_that_one() {
    let (_, replay) = replayed(&reads_at([0, 5000, 3000, 10_000]), at_recorded_times(1.0, None));
    assert_eq!((replay.out_of_order.requests, replay.out_of_order.max_ns), (1, 2_000_000));
    assert_eq!((replay.total().late.requests, replay.last_due_ns), (0, 10_000_000));
}

#[test]
fn a_trace_out_of_order_says_what_that_does_and_the_remedy() {
    let (_, replay) = replayed(&reads_at([0, 5000, 3000, 10_000]), at_recorded_times(1.0, None));
    let notes = report::rows::replay(&replay).notes.join("\n");
    assert!(notes.contains("latencies are too long. Sort the trace by time"), "{notes}");
}

#[test]
fn a_replay_on_a_scaled_model_is_a_warning() {
    let text = reads_at((0..10).map(|read| read * 1000));
    let at = |scale: &str| {
        let settings = RunSettings { scale: scale.parse().expect("a scale"), ..at_recorded_times(1.0, None) };
        let result = run_trace(&text, settings).expect("it runs");
        let names: Vec<&str> = result.warnings().iter().map(simulate::warning::RunWarning::name).collect();
        names.contains(&"replay_scaled")
    };
    assert!(at("1/2"));
    assert!(!at("1/1"), "the drive itself is not doubted");
}

#[test]
fn a_replay_counts_what_waits_for_collection() {
    let mut text = "fio version 3 iolog\n".to_string();
    for write in 0..20_000_u64 {
        text += &format!("{} a write {} 4096\n", write * 50, write * 2_654_435_761 % 16_384 * 4096);
    }
    let (timed, replay) = replayed(&text, at_recorded_times(1.0, None));
    let (total, writes) = (replay.total(), timed.jobs[0].direction(RequestOperation::Write));
    assert_eq!(total.collections, writes.waits);
    assert!(total.collections.requests > 0);
    let groups = |by: GroupBy| replay.groups.iter().filter(move |group| group.by == by);
    for by in [GroupBy::All, GroupBy::Volume, GroupBy::Process, GroupBy::Size] {
        let waits: u64 = groups(by).map(|group| group.directions[1].collections.requests).sum();
        assert_eq!(waits, writes.waits.requests, "{}", by.name());
    }
    let again = replayed(&text, at_recorded_times(1.0, None)).1;
    assert_eq!(format!("{:?}", again.total()), format!("{total:?}"), "a replay is deterministic");
}

#[test]
fn a_closed_loop_of_a_trace_says_that_its_times_are_ignored() {
    let text = reads_at((0..100).map(|read| read * 1000));
    let result = run_trace(&text, settings()).expect("a run");
    let timed = result.timed.as_ref().expect("the device has timing");
    let said = "closed loop, queue depth 32, recorded times ignored";
    assert_eq!(timed.trace.as_ref().map(TracePace::to_string).as_deref(), Some(said));
    assert!(timed.jobs[0].until_ns < 99_000_000, "it did not wait");
    assert!(report::rows::jobs(timed).text_within(usize::MAX).contains(said));
    let json = analysis::export::to_json(&[], 1.0, &[result], false);
    assert_eq!(json["cells"][0]["replay"]["pace"], said);
    let deeper = RunSettings { queue_depth: Some(7), ..settings() };
    let deeper = run_trace(&text, deeper).expect("a run").timed.expect("it has timing");
    assert!(deeper.trace.expect("it is a trace").to_string().contains("queue depth 7"));
}

#[test]
fn what_has_no_times_of_its_own_is_not_replayed_at_them() {
    let timeless = run_trace("fio version 2 iolog\na read 0 4096\na read 4096 4096\n", at_recorded_times(1.0, None));
    let refusal = timeless.expect_err("there are no times");
    assert!(refusal.contains("has no times to replay"), "{refusal}");
    let jobs = run::prepare(vec![cell("[a]\nrw=read\n", at_recorded_times(1.0, None))]);
    let refusal = jobs.map(|_| ()).expect_err("a job file has no recorded times").to_string();
    assert!(refusal.contains("--replay timed") && refusal.contains("needs a block trace"), "{refusal}");
    // A time column in the wrong unit.
    let late = run_trace(&reads_at([0, 9_000_000_000_000_000]), at_recorded_times(1.0, None));
    let refusal = late.expect_err("it would take 285 years");
    assert!(refusal.contains("Check the unit of its times"), "{refusal}");
}
