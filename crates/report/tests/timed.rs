//! Tests of jobs in virtual time on a drive with simple timing: closed and open loops, groups,
//! pauses, and measurements.

use experiment::cell::{CellKey, RunSpec};
use experiment::run_options::{ReplayMode, RunSettings};
use simulate::run::{self, RunResult};
use simulate::timed::measure::JobResult;
use simulate::timed::replay::{GroupBy, ReplayResult, TracePace};
use simulate::timed::result::TimedResult;
use workload::{RequestOperation, fio};

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
[timing]
write_buffer_bytes = "1MiB"
[timing.nand]
page_bytes = "4KiB"
bits_per_cell = 1
read_ns = [50000]
program_ns = 200000
erase_ns = 2000000
suspend_ns = 10000
[timing.channel]
bytes_per_second = 1000000000
[timing.controller]
cores = 4
read_ns = 2000
write_ns = 2000
[timing.link]
generation = 4
lanes = 4
payload_share = 1.0
"#;

/// Core, sensing, channel (4096 bytes at 1 GB/s), link (at 4 x 1969230769 B/s).
const READ_NS: u64 = 2000 + 50_000 + 4096 + 521;

fn settings() -> RunSettings {
    RunSettings {
        sample_drive_writes: 0.1,
        precondition_drive_writes: 1.0,
        ..RunSettings::default()
    }
}

/// Jobs on the simple device.
fn cell(jobs: &str, settings: RunSettings) -> RunSpec {
    RunSpec {
        key: CellKey {
            device: "simple".to_string(),
            variant: String::new(),
            grid: Vec::new(),
        },
        seed: 1,
        device: toml::from_str(DEVICE).expect("the device is one"),
        ensemble: None,
        workload_name: "test".to_string(),
        workload: fio::parse(jobs, "test.fio")
            .unwrap_or_else(|error| panic!("{error}"))
            .into(),
        run: settings,
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

fn per_second(job: &JobResult, operation: RequestOperation) -> f64 {
    job.direction(operation).requests as f64 * 1e9 / job.elapsed_ns() as f64
}

#[test]
fn a_read_at_depth_one_takes_the_sum_of_its_parts() {
    let result = timed("[a]\nrw=randread\nnorandommap\nnumber_ios=1000\n");
    let reads = result.jobs[0].direction(RequestOperation::Read);
    assert_eq!(reads.requests, 1000);
    assert_eq!((reads.latencies.min_ns(), reads.latencies.max_ns()), (READ_NS, READ_NS));
    assert_eq!(result.jobs[0].elapsed_ns(), 1000 * READ_NS, "one follows the other");
    assert_eq!(reads.latencies.deviation_ns(), 0.0);
}

#[test]
fn a_closed_loop_keeps_its_requests_in_flight() {
    let at = |options: &str| {
        timed(&format!(
            "[a]\nrw=randread\nnorandommap\nruntime=1\ntime_based\n{options}\n"
        ))
    };
    let rate = |result: &TimedResult| per_second(&result.jobs[0], RequestOperation::Read);
    let (one, four, many) = (at("iodepth=1"), at("iodepth=4"), at("iodepth=2\nnumjobs=16"));
    assert!((one.jobs[0].mean_in_flight() - 1.0).abs() < 1e-9);
    assert!(
        (four.jobs[0].mean_in_flight() - 4.0).abs() < 0.01,
        "{}",
        four.jobs[0].mean_in_flight()
    );
    assert!((many.jobs[0].mean_in_flight() - 32.0).abs() < 0.1);
    assert!(rate(&four) > 2.0 * rate(&one) && rate(&many) > 1.3 * rate(&four));
    assert!(rate(&many) <= 4.0 * 1e9 / 50_000.0, "four dies sense a page at a time");
    // Little's law, with the reported numbers.
    for result in [&one, &four, &many] {
        let job = &result.jobs[0];
        let product = rate(result) / 1e9 * job.direction(RequestOperation::Read).latencies.mean_ns();
        assert!((product / job.mean_in_flight() - 1.0).abs() < 1e-9, "{product}");
    }
}

#[test]
fn an_open_loop_keeps_its_rate_and_its_latency() {
    let result = timed(
        "[a]\nrw=randread\nnorandommap\niodepth=8\nrate_iops=1000\nruntime=2\ntime_based\n\
         [b]\nrw=write\nbs=16k\nrate=4m\nruntime=2\ntime_based\n",
    );
    let (reads, writes) = (&result.jobs[0], &result.jobs[1]);
    assert_eq!(reads.direction(RequestOperation::Read).requests, 2000);
    assert_eq!(writes.direction(RequestOperation::Write).bytes, 8 << 20);
    assert!(reads.mean_in_flight() < 0.2, "{}", reads.mean_in_flight());
}

#[test]
fn an_open_loop_catches_up_after_a_pause_unless_it_should_not() {
    let jobs = |option: &str| {
        format!(
            "[a]\nrw=randread\nnorandommap\nrate_iops=1000\nthinktime=5000\nthinktime_blocks=100\nruntime=1\ntime_based\n{option}"
        )
    };
    let requests = |option: &str| timed(&jobs(option)).jobs[0].direction(RequestOperation::Read).requests;
    assert_eq!(requests(""), 1000);
    let without = requests("rate_ignore_thinktime=1\n");
    assert!(
        (940..=960).contains(&without),
        "{without}: nine pauses of 5 ms are lost"
    );
}

#[test]
fn thinktime_waits_for_what_is_in_flight() {
    let result = timed("[a]\nrw=randread\nnorandommap\nthinktime=1000\nnumber_ios=100\n");
    assert_eq!(result.jobs[0].elapsed_ns(), 100 * READ_NS + 99 * 1_000_000);
}

#[test]
fn groups_follow_each_other_and_delays_are_kept() {
    let result = timed(
        "[a]\nrw=randread\nnorandommap\nnumber_ios=100\n[b]\nrw=randread\nnorandommap\nnumber_ios=500\n\
         [c]\nstonewall\nrw=randread\nnorandommap\nnumber_ios=10\nstartdelay=3ms\n",
    );
    let [a, b, c] = &result.jobs[..] else {
        panic!("three jobs")
    };
    assert_eq!((a.from_ns, b.from_ns), (0, 0));
    assert!(a.until_ns < b.until_ns);
    assert_eq!(c.from_ns, b.until_ns + 3_000_000);
}

#[test]
fn a_ramp_is_not_measured() {
    let result = timed("[a]\nrw=randread\nnorandommap\nramp_time=1\nruntime=1\ntime_based\n");
    let job = &result.jobs[0];
    assert_eq!(job.from_ns, 1_000_000_000);
    let expected = 1_000_000_000 / READ_NS;
    assert!(job.direction(RequestOperation::Read).requests.abs_diff(expected) <= 1);
}

#[test]
fn flow_shares_requests() {
    let result = timed(
        "[a]\nrw=randread\nnorandommap\nflow=3\nnumber_ios=3000\n[b]\nrw=randread\nnorandommap\nflow=1\nruntime=1\ntime_based\n",
    );
    let together = result.jobs[0].until_ns;
    assert_eq!(result.jobs[0].direction(RequestOperation::Read).requests, 3000);
    let b = &result.jobs[1];
    assert!(b.until_ns > together, "it goes on alone");
    // While both ran, b had a third of a's requests. Its later requests ran one after the other.
    let alone = (b.until_ns - together) / READ_NS;
    let before = b.direction(RequestOperation::Read).requests - alone;
    assert!((995..=1006).contains(&before), "{before}");
}

#[test]
fn writing_ends_when_enough_is_written_and_waits_for_collection_are_counted() {
    let result = run_with(
        "[a]\nrw=randwrite\nnorandommap\niodepth=8\n",
        RunSettings {
            drive_writes: Some(2.0),
            ..settings()
        },
    );
    assert!(result.complete && result.stats.write_amplification().expect("it wrote") > 1.1);
    assert_eq!(result.stats.host_bytes_written(), 2 * result.capacity_bytes);
    let timed = result.timed.expect("the device has timing");
    let writes = timed.jobs[0].direction(RequestOperation::Write);
    assert_eq!(writes.bytes, 2 * result.capacity_bytes);
    let collections: u64 = (0..timed.series.len())
        .map(|row| timed.series.collections(row).count)
        .sum();
    assert_eq!(collections, result.gc_log.len() as u64);
    let series = (0..timed.series.len()).map(|row| timed.series.counts(row, 0, RequestOperation::Write));
    assert_eq!(series.map(|moment| moment.bytes).sum::<u64>(), writes.bytes);
    assert!(writes.waits.requests > 0 && writes.waits.requests < writes.requests);
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let jobs = "[a]\nrw=randrw\nnorandommap\niodepth=16\nruntime=0.2\ntime_based\n[b]\nrw=randwrite\nbs=16k\nnumjobs=3\nruntime=200ms\ntime_based\n";
    let jobs = jobs.replace("runtime=0.2\n", "runtime=200ms\n");
    let json = || simulate::timed::to_fio_json(&timed(&jobs)).to_string();
    let (one, two) = (json(), json());
    assert_eq!(one, two);
    assert_ne!(
        one,
        simulate::timed::to_fio_json(&timed(&jobs.replace("numjobs=3", "numjobs=2"))).to_string()
    );
}

/// Closed loops have their own code paths, in which reads are prefetched and writes are batched. An
/// open loop with an unreachable rate avoids these paths, and submits the same requests at the same
/// times.
#[test]
fn a_closed_loop_does_what_an_open_one_does_that_is_always_late() {
    let run = |jobs: &str| {
        let end = "norandommap\niodepth=16\nruntime=100ms\ntime_based\n";
        let jobs: String = jobs
            .split_inclusive('\n')
            .enumerate()
            .map(|(number, options)| format!("[{number}]\n{}\n{end}", options.trim_end().replace(' ', "\n")))
            .collect();
        let of = |jobs: &str| {
            let result = timed(jobs);
            let measured = result.jobs.iter().map(|job| {
                let of = |direction| {
                    let direction = job.direction(direction);
                    (
                        direction.latencies.distribution(),
                        direction.latencies.sum_ns(),
                        direction.waits,
                    )
                };
                [RequestOperation::Read, RequestOperation::Write, RequestOperation::Trim].map(of)
            });
            measured.collect::<Vec<_>>()
        };
        let late = jobs.replace("iodepth=16", "iodepth=16\nrate=8p,8p,8p");
        assert!(of(&jobs) == of(&late), "{jobs}");
    };
    run("rw=randread");
    run("rw=randwrite");
    run("rw=randread numjobs=3\nrw=randwrite numjobs=2");
    run("rw=randread bsrange=4k-64k\nrw=randtrim thinktime=3ms thinktime_blocks=50");
    run("rw=randread\nrw=randread thinktime=3ms thinktime_blocks=200\nrw=randwrite thinktime=5ms thinktime_blocks=10");
    run("rw=randrw rwmixread=90\nrw=read");
}

#[test]
fn results_have_the_shape_of_fio() {
    let result =
        timed("[a]\nrw=randread\nnorandommap\nnumber_ios=1000\n[b]\nstonewall\nrw=write\nbs=64k\nnumber_ios=100\n");
    let json = simulate::timed::to_fio_json(&result);
    assert!(
        json["fio version"]
            .as_str()
            .is_some_and(|version| version.starts_with("fio-"))
    );
    assert!(json["global options"].is_object());
    let jobs = json["jobs"].as_array().expect("jobs");
    assert_eq!(
        (jobs.len(), &jobs[0]["jobname"], &jobs[1]["groupid"]),
        (2, &"a".into(), &1.into())
    );
    let read = &jobs[0]["read"];
    assert_eq!(read["total_ios"], 1000);
    assert_eq!(read["io_bytes"], 4_096_000);
    assert_eq!(read["io_kbytes"], 4000);
    assert_eq!(read["runtime"], READ_NS / 1000);
    assert_eq!(read["clat_ns"]["min"], READ_NS);
    assert_eq!(read["clat_ns"]["N"], 1000);
    assert_eq!(read["clat_ns"]["percentile"]["99.000000"], READ_NS);
    assert_eq!(
        read["clat_ns"]["percentile"].as_object().map(serde_json::Map::len),
        Some(18)
    );
    assert_eq!(read["lat_ns"]["mean"], READ_NS as f64);
    assert_eq!(read["slat_ns"]["N"], 0);
    let iops = read["iops"].as_f64().expect("a number");
    assert!((iops - 1e9 / READ_NS as f64).abs() < 1e-6);
    assert_eq!(read["bw_bytes"], (4096.0 * iops) as u64);
    assert_eq!(
        (&jobs[0]["write"]["total_ios"], &jobs[1]["write"]["total_ios"]),
        (&0.into(), &100.into())
    );
    assert_eq!(jobs[0]["iodepth_level"]["1"], 100.0);
    let shares = &jobs[0]["latency_us"];
    assert_eq!(shares["100"], 100.0, "all are between 50 and 100 us: {shares}");
}

#[test]
fn jobs_that_never_end_are_refused() {
    let settings = RunSettings {
        drive_writes: Some(1.0),
        ..settings()
    };
    let cell = cell("[a]\nrw=randread\n", settings);
    let refused = run::prepare(vec![cell])
        .map(|_| ())
        .expect_err("reads never write enough")
        .to_string();
    assert!(
        refused.contains("never ends") && refused.contains("runtime"),
        "{refused}"
    );
}

/// A cache on the simple device with this many operations per second.
fn paced_cell(operations_per_second: u32) -> RunSpec {
    let text = format!(
        "kind = \"cachelib\"\nsoc_percent = 40\ndram_bytes = \"64KiB\"\nregion_bytes = \"1MiB\"\nreads = true\n\
         [pace]\noperations_per_second = {operations_per_second}\nmax_concurrent_inserts = 1000\n"
    );
    let find_jobs = |jobs: applications::JobsReference<'_>| panic!("{jobs:?} is not asked for");
    let table = toml::from_str(&text).expect("a table");
    let run = RunSettings {
        drive_writes: Some(0.5),
        precondition_drive_writes: 0.0,
        ..settings()
    };
    RunSpec {
        workload: applications::WorkloadSpec::parse("workload", &table, &find_jobs).expect("a workload"),
        ensemble: None,
        workload_name: "cachelib".to_string(),
        ..cell("[a]\nrw=read\n", run)
    }
}

#[test]
fn a_cache_with_a_pace_gives_up_what_the_drive_cannot_take() {
    let run = |operations_per_second| {
        let prepared = run::prepare(vec![paced_cell(operations_per_second)]).expect("it fits");
        let mut results = run::run_all(&prepared, false, u64::MAX, &()).expect("there is memory");
        results.pop().expect("one cell")
    };
    let measure = |result: &RunResult, name: &str| {
        let measures = &result.measures;
        measures.iter().find(|measure| measure.name == name).expect(name).value
    };
    let (slow, fast) = (run(500), run(100_000));
    assert_eq!(measure(&slow, "soc.inserts_rejected_percent"), 0.0);
    assert!((measure(&slow, "operations_per_second") / 500.0 - 1.0).abs() < 0.01);
    assert!(measure(&fast, "soc.inserts_rejected_percent") > 1.0);
    assert_eq!(measure(&fast, "inserts_in_flight.most"), 1000.0);
    for result in [&slow, &fast] {
        let written = result.stats.host_bytes_written();
        assert!(
            (32 << 20..34 << 20).contains(&written),
            "{written} bytes are half the drive"
        );
        let jobs = &result.timed.as_ref().expect("the device has timing").jobs;
        assert_eq!(jobs[0].queue_depth, 65, "a request for each thread");
        assert!(jobs.iter().map(JobResult::mean_in_flight).sum::<f64>() <= 65.0);
    }
    assert_eq!(
        analysis::golden::rows(&[run(100_000)]),
        analysis::golden::rows(&[fast]),
        "it is deterministic"
    );
}

#[test]
fn arrivals_at_random_keep_the_rate_and_wait_more() {
    let run = |process: &str| {
        let jobs = format!(
            "[a]\nrw=randread\nnorandommap\nrate_iops=8000\niodepth=64\nruntime=1\ntime_based\nrate_process={process}\n"
        );
        timed(&jobs)
    };
    let (linear, poisson) = (run("linear"), run("poisson"));
    let rate = |result: &TimedResult| per_second(&result.jobs[0], RequestOperation::Read);
    assert!((rate(&poisson) / 8000.0 - 1.0).abs() < 0.03, "{}", rate(&poisson));
    let mean = |result: &TimedResult| result.jobs[0].direction(RequestOperation::Read).latencies.mean_ns();
    assert!(
        mean(&poisson) > 1.04 * mean(&linear),
        "{} {}",
        mean(&poisson),
        mean(&linear)
    );
    assert_eq!(mean(&poisson), mean(&run("poisson")), "the same each time");
}

#[test]
fn reads_of_what_was_never_written_and_options_without_effect_are_findings() {
    let names = |jobs: &str, prefill: f64| {
        let settings = RunSettings {
            precondition_drive_writes: prefill,
            ..settings()
        };
        let findings = run_with(jobs, settings).findings();
        findings
            .iter()
            .map(|finding| finding.name())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let reads = "[a]\nrw=randread\nnorandommap\nnumber_ios=100\n";
    assert!(names(reads, 0.0).contains("unwritten_read"));
    assert!(!names(reads, 1.0).contains("unwritten_read"));
    assert!(names(&format!("{reads}fsync=8\n"), 1.0).contains("without_effect"));
    assert!(!names(&format!("{reads}ioengine=libaio\n"), 1.0).contains("without_effect"));
}

#[test]
fn a_job_that_waits_begins_when_the_other_has_ended() {
    let result = timed(
        "[a]\nrw=randread\nnorandommap\nnumber_ios=100\nnumjobs=2\n[b]\nwait_for=a\nrw=randread\nnorandommap\nnumber_ios=50\n\
         [c]\nrw=randread\nnorandommap\nnumber_ios=400\n[d]\nstonewall\nwait_for=b\nrw=randread\nnumber_ios=1\n",
    );
    let times: Vec<(u64, u64)> = result.jobs.iter().map(|job| (job.from_ns, job.until_ns)).collect();
    assert_eq!((times[0].0, times[2].0), (0, 0));
    assert_eq!(times[1].0, times[0].1, "with the last completion of the last instance");
    assert_eq!(times[3].0, times[1].1.max(times[2].1));
    let requests: Vec<u64> = result
        .jobs
        .iter()
        .map(|job| job.direction(RequestOperation::Read).requests)
        .collect();
    assert_eq!(requests, [200, 50, 400, 1]);
}

#[test]
fn the_first_job_that_ends_ends_the_others() {
    let jobs = "[a]\nexitall\nrw=randread\nnorandommap\nnumber_ios=100\n\
                [b]\nrw=randread\nnorandommap\ntime_based\nruntime=1h\niodepth=4\n\
                [c]\nrw=randread\nrate_iops=1\ntime_based\nruntime=1h\n[d]\nwait_for=b\nrw=randread\n\
                [e]\nstonewall\nrw=randread\nnumber_ios=10\n";
    let result = timed(jobs);
    let end_ns = result.jobs[0].until_ns;
    let reads = |job: usize| result.jobs[job].direction(RequestOperation::Read).requests;
    assert!(reads(1) > 100 && result.jobs[1].until_ns - end_ns < 10 * READ_NS);
    assert_eq!((reads(2), reads(3)), (1, 0));
    assert!(
        result.jobs[4].from_ns < end_ns + 10 * READ_NS,
        "nobody waits for what has ended"
    );
    assert_eq!(reads(4), 10);
    let all = timed(&format!("[global]\nexit_what=all\n{jobs}"));
    assert_eq!(all.jobs[4].direction(RequestOperation::Read).requests, 0);
    // An endless job may run beside one that ends, but at least one must end.
    let settings = |capacities: f64| RunSettings {
        drive_writes: Some(capacities),
        ..settings()
    };
    let endless = "[a]\nexitall\nrw=write\nbs=64k\n[b]\nrw=write\nbs=64k\n";
    assert!(
        run_with(endless, settings(1.5))
            .findings()
            .iter()
            .any(|finding| finding.name() == "without_effect")
    );
}

#[test]
fn a_search_finds_the_deepest_queue_that_keeps_a_latency() {
    let search = |target_us: u64, options: &str| {
        let jobs = format!(
            "[a]\nrw=randread\nnorandommap\ntime_based\nruntime=10\niodepth=64\nlatency_target={target_us}\n\
             latency_window=20ms\nlatency_percentile=95\n{options}"
        );
        timed(&jobs).jobs.remove(0)
    };
    let job = search(400, "");
    let (goal, reads) = (
        job.latency_goal.expect("it searched"),
        job.direction(RequestOperation::Read),
    );
    assert!((4..32).contains(&goal.depth) && goal.found, "{goal:?}");
    assert!(
        reads.latencies.percentile_ns(95.0) <= 400_000,
        "{}",
        reads.latencies.percentile_ns(95.0)
    );
    assert!(
        (job.mean_in_flight() - goal.depth as f64).abs() < 0.5,
        "only the last window is measured"
    );
    assert!(
        (20_000_000..25_000_000).contains(&job.elapsed_ns()),
        "{}",
        job.elapsed_ns()
    );
    // Twice the depth exceeds the latency target.
    let deeper = timed(&format!(
        "[a]\nrw=randread\nnorandommap\nruntime=100ms\ntime_based\niodepth={}\n",
        goal.depth * 2
    ));
    assert!(
        deeper.jobs[0]
            .direction(RequestOperation::Read)
            .latencies
            .percentile_ns(95.0)
            > 400_000
    );
    assert!(search(400, "latency_run=1\n").elapsed_ns() > 9_000_000_000);
    assert_eq!(search(100_000, "").latency_goal.map(|goal| goal.depth), Some(64));
    let prepared =
        run::prepare(vec![cell("[a]\nrw=randread\nlatency_target=10\n", settings())]).expect("it may be tried");
    let error = run::run_all(&prepared, true, u64::MAX, &()).unwrap_err().to_string();
    assert!(
        error.starts_with("latency_target=10us of [a]: a request took 56.6 us"),
        "{error}"
    );
}

#[test]
fn pauses_by_time_repeat_requests_and_rest() {
    let result = timed("[a]\nrw=randread\nnorandommap\nruntime=2\ntime_based\nthinktime=30ms\nthinktime_iotime=70ms\n");
    let reads = result.jobs[0].direction(RequestOperation::Read).requests;
    let without = 2_000_000_000 / READ_NS;
    assert!(reads.abs_diff(without * 7 / 10) < without / 100, "{reads} of {without}");
    let counted = timed(
        "[a]\nrw=randread\nnorandommap\nruntime=2\ntime_based\nthinktime=30ms\nthinktime_iotime=70ms\nthinktime_blocks=10\n",
    );
    let reads = counted.jobs[0].direction(RequestOperation::Read).requests;
    assert!(reads < 700, "after ten requests, which is sooner: {reads}");
}

#[test]
fn what_is_verified_is_read_back() {
    let result = timed("[a]\nrw=randwrite\nverify=crc32c\nsize=4m\nloops=2\n");
    let job = &result.jobs[0];
    assert_eq!(job.direction(RequestOperation::Write).requests, 2048);
    assert_eq!(job.direction(RequestOperation::Read).requests, 2048);
}

/// Runs jobs whose logs go to a folder. Returns the folder's files.
fn logs(jobs: &str) -> std::collections::BTreeMap<String, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let jobs = jobs.replace("FOLDER", &folder.path().display().to_string());
    let prepared = run::prepare(vec![cell(&jobs, settings())]).unwrap_or_else(|error| panic!("{error}"));
    let options = run::ExecutionOptions {
        fio_logs: true,
        ..run::ExecutionOptions::default()
    };
    run::run_all_with(&prepared, options, &()).expect("the folder can be written");
    let files = folder
        .path()
        .read_dir()
        .expect("it is there")
        .map(|entry| entry.expect("it is there").path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).expect("it is text"))
    };
    files.map(read).collect()
}

#[test]
fn logs_are_those_of_fio() {
    let all = "write_bw_log=FOLDER/x\nwrite_lat_log=FOLDER/x\nwrite_iops_log=FOLDER/y\n";
    let files = logs(&format!(
        "[a]\nrw=randread\nnorandommap\nnumber_ios=40\nnumjobs=2\n{all}log_offset=1\n"
    ));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [1, 2].map(|number| ["bw", "clat", "lat", "slat"].map(|kind| format!("x_{kind}.{number}.log")));
    let mut expected: Vec<String> = expected.into_iter().flatten().collect();
    expected.extend([1, 2].map(|number| format!("y_iops.{number}.log")));
    expected.sort();
    assert_eq!(names, expected);
    let rows = |name: &str| -> Vec<Vec<u64>> {
        let fields = |line: &str| line.split(", ").map(|field| field.parse().expect("a number")).collect();
        files[name].lines().map(fields).collect()
    };
    let latencies = rows("x_lat.1.log");
    assert_eq!(latencies.len(), 40);
    for (index, row) in latencies.iter().enumerate() {
        let [ms, latency_ns, direction, bytes, offset, priority] = row[..] else {
            panic!("{row:?}")
        };
        assert!(latency_ns >= READ_NS && ms >= (index as u64 + 1) * READ_NS / 1_000_000);
        assert_eq!((direction, bytes, offset % 4096, priority), (0, 4096, 0, 0));
    }
    assert!(rows("x_slat.1.log").iter().all(|row| row[1] == 0) && files["x_lat.1.log"] == files["x_clat.1.log"]);
    assert!(rows("y_iops.2.log").iter().all(|row| row[1] == 1));
    let bandwidth = rows("x_bw.1.log");
    assert!(
        bandwidth
            .iter()
            .zip(&latencies)
            .all(|(row, latency)| row[1] == 4096 * 1_000_000 / latency[1])
    );
    // Windows contain the requests that were issued in them.
    let windows =
        format!("[a]\nrw=randread\nnorandommap\nrate_iops=1000\nruntime=1\ntime_based\n{all}log_avg_msec=100\n");
    let files = logs(&windows);
    let lines: Vec<&str> = files["y_iops.1.log"].lines().collect();
    assert!((9..=10).contains(&lines.len()), "{lines:?}");
    assert!(
        lines.iter().all(|line| line.ends_with("00, 1000, 0, 0, 0")),
        "{lines:?}"
    );
    assert!(
        files["x_bw.1.log"]
            .lines()
            .all(|line| line.ends_with("00, 4000, 0, 0, 0"))
    );
    assert_eq!(
        files["x_lat.1.log"].lines().next(),
        Some(format!("100, {READ_NS}, 0, 0, 0").as_str())
    );
}

#[test]
fn the_last_line_of_a_latency_log_is_at_the_end_of_the_job() {
    let last = |options: &str| {
        let job = format!("[a]\nrw=randread\nnorandommap\nwrite_lat_log=FOLDER/x\nlog_avg_msec=100\n{options}");
        let files = logs(&job);
        let lines: Vec<String> = files["x_lat.1.log"].lines().map(str::to_string).collect();
        lines[lines.len() - 2..].to_vec()
    };
    let at = |ms: u32| format!("{ms}, {READ_NS}, 0, 0, 0");
    // fio waits for the next request until the time is over, and then writes the remaining entries.
    assert_eq!(last("rate_iops=1000\nruntime=1\ntime_based\n"), [900, 1000].map(at));
    assert_eq!(
        last("thinktime=30ms\nruntime=1\ntime_based\nlog_avg_msec=900\n"),
        [901, 1000].map(at)
    );
    // With a limit of requests, the last request ends the job.
    assert_eq!(last("rate_iops=1000\nnumber_ios=251\n"), [200, 250].map(at));
    // Requests in flight at that time have a line of their own, as in fio, even within the
    // millisecond.
    let both = last("iodepth=32\nruntime=1\ntime_based\n");
    assert!(both.iter().all(|line| line.starts_with("1000, ")), "{both:?}");
}

/// Stops a run when it is asked for the second time.
struct StopsSecond(std::sync::atomic::AtomicU64);

impl run::ProgressObserver for StopsSecond {
    fn add_expected(&self, _work: u64) {}

    fn add_completed(&self, _work: u64) {}

    fn record_result(&self, _result: &RunResult) {}

    fn should_stop(&self) -> bool {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0
    }
}

/// The length of a step is bounded by pages and not by requests. With 4096 requests of 32 MiB each,
/// a step would be 2000 full drive writes.
#[test]
fn a_run_of_large_requests_is_stopped_within_a_few_gibibytes() {
    for timed in [false, true] {
        let mut cell = cell(
            "[a]\nrw=write\nbs=32m\niodepth=32\nruntime=1d\ntime_based\n",
            RunSettings {
                drive_writes: Some(1000.0),
                precondition_drive_writes: 0.0,
                sample_drive_writes: 1000.0,
                ..settings()
            },
        );
        if !timed {
            cell.device.timing = None;
        }
        let plans = run::prepare(vec![cell]).unwrap_or_else(|error| panic!("{error}"));
        let watch = StopsSecond(Default::default());
        let result = run::run_all(&plans, false, u64::MAX, &watch)
            .expect("it runs")
            .remove(0);
        assert!(!result.complete);
        let written = result.stats.host_bytes_written();
        assert!(written < 8 << 30, "{written} bytes were written, timed: {timed}");
    }
}

/// Runs a trace on the simple device, whose pages are all written.
fn run_trace(text: &str, settings: RunSettings) -> Result<RunResult, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    std::fs::write(&file, text).expect("it can be written");
    let table = format!(
        "kind = \"trace\"\nmapping = \"modulo\"\nfiles = [{:?}]\n",
        file.display().to_string()
    );
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
    RunSettings {
        replay: Some(ReplayMode::Timed),
        replay_speed: Some(speed),
        queue_depth,
        ..settings()
    }
}

fn replayed(text: &str, settings: RunSettings) -> (TimedResult, ReplayResult) {
    let result = run_trace(text, settings).unwrap_or_else(|problem| panic!("{problem}"));
    let timed = result.timed.expect("the device has timing");
    let replay = timed
        .trace
        .as_ref()
        .and_then(TracePace::replay)
        .expect("it was replayed")
        .clone();
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
        assert_eq!(
            timed.jobs[0].until_ns,
            99 * step_ns + READ_NS,
            "nothing comes before it is due"
        );
        assert_eq!((replay.queue_depth, replay.tick_ns), (1023, 1_000_000));
    }
}

#[test]
fn what_a_full_queue_keeps_waiting_in_the_host_is_part_of_its_latency() {
    // Fifty simultaneous requests, and one much later.
    let text = reads_at((0..50).map(|_| 0).chain([100_000]));
    let (timed, replay) = replayed(&text, at_recorded_times(1.0, Some(1)));
    let total = replay.total();
    assert_eq!(
        total.latencies.max_ns(),
        50 * READ_NS,
        "the last one waits for all before it"
    );
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
    assert!(
        deep.total().latencies.max_ns() < 50 * READ_NS,
        "four dies read at a time"
    );
}

#[test]
fn latencies_are_told_apart_by_volume_process_and_size_beside_the_recorded_ones() {
    let mut text = String::new();
    for request in 0..40_u64 {
        let (volume, kind, bytes) = if request % 4 == 0 {
            (1, "Write", 65_536)
        } else {
            (0, "Read", 4096)
        };
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
            .map(|group| {
                (
                    group.name.as_str(),
                    [0, 1, 2].map(|index| group.directions[index].latencies.count()),
                )
            })
            .collect()
    };
    assert_eq!(of(GroupBy::All), [("all", [30, 10, 0])]);
    // In order of first appearance.
    assert_eq!(of(GroupBy::Volume), [("usr,1", [0, 10, 0]), ("usr,0", [30, 0, 0])]);
    assert_eq!(of(GroupBy::Process), [("1", [30, 10, 0])]);
    assert_eq!(of(GroupBy::Size), [("to 4 KiB", [30, 0, 0]), ("to 64 KiB", [0, 10, 0])]);
    let recorded = &replay.groups[0].directions[RequestOperation::Write as usize].recorded;
    assert_eq!(
        (recorded.count(), recorded.min_ns(), recorded.max_ns()),
        (10, 100, 3700)
    );
    let table = report::rows::replay(&replay).text_within(usize::MAX);
    assert!(
        table.contains("volume usr,1") && table.contains("recorded p99"),
        "{table}"
    );
}

#[test]
fn a_request_that_was_recorded_before_the_one_before_it_is_due_with_that_one() {
    let (_, replay) = replayed(&reads_at([0, 5000, 3000, 10_000]), at_recorded_times(1.0, None));
    assert_eq!(
        (replay.out_of_order.requests, replay.out_of_order.max_ns),
        (1, 2_000_000)
    );
    assert_eq!((replay.total().late.requests, replay.last_due_ns), (0, 10_000_000));
}

#[test]
fn a_trace_out_of_order_says_what_that_does_and_the_remedy() {
    let (_, replay) = replayed(&reads_at([0, 5000, 3000, 10_000]), at_recorded_times(1.0, None));
    let notes = report::rows::replay(&replay).notes.join("\n");
    assert!(
        notes.contains("latencies are too long. Sort the trace by time"),
        "{notes}"
    );
}

#[test]
fn a_replay_on_a_scaled_model_is_a_finding() {
    let text = reads_at((0..10).map(|read| read * 1000));
    let at = |scale: &str| {
        let settings = RunSettings {
            scale: scale.parse().expect("a scale"),
            ..at_recorded_times(1.0, None)
        };
        let result = run_trace(&text, settings).expect("it runs");
        let names: Vec<&str> = result
            .findings()
            .iter()
            .map(simulate::warning::RunWarning::name)
            .collect();
        names.contains(&"replay_scaled")
    };
    assert!(at("1/2"));
    assert!(!at("1/1"), "the drive itself is not doubted");
}

#[test]
fn a_replay_counts_what_waits_for_collection() {
    let mut text = "fio version 3 iolog\n".to_string();
    for write in 0..20_000_u64 {
        text += &format!(
            "{} a write {} 4096\n",
            write * 50,
            write * 2_654_435_761 % 16_384 * 4096
        );
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
    assert_eq!(
        format!("{:?}", again.total()),
        format!("{total:?}"),
        "a replay is deterministic"
    );
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
    let deeper = RunSettings {
        queue_depth: Some(7),
        ..settings()
    };
    let deeper = run_trace(&text, deeper).expect("a run").timed.expect("it has timing");
    assert!(
        deeper
            .trace
            .expect("it is a trace")
            .to_string()
            .contains("queue depth 7")
    );
}

#[test]
fn what_has_no_times_of_its_own_is_not_replayed_at_them() {
    let timeless = run_trace(
        "fio version 2 iolog\na read 0 4096\na read 4096 4096\n",
        at_recorded_times(1.0, None),
    );
    let refusal = timeless.expect_err("there are no times");
    assert!(refusal.contains("has no times to replay"), "{refusal}");
    let jobs = run::prepare(vec![cell("[a]\nrw=read\n", at_recorded_times(1.0, None))]);
    let refusal = jobs
        .map(|_| ())
        .expect_err("a job file has no recorded times")
        .to_string();
    assert!(
        refusal.contains("--replay timed") && refusal.contains("needs a block trace"),
        "{refusal}"
    );
    // A time column in the wrong unit.
    let late = run_trace(&reads_at([0, 9_000_000_000_000_000]), at_recorded_times(1.0, None));
    let refusal = late.expect_err("it would take 285 years");
    assert!(refusal.contains("Check the unit of its times"), "{refusal}");
}
