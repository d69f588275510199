//! Jobs of fio on a timed drive.

use experiment::cell::RunSpec;
use experiment::run_options::RunSettings;
use simulate::run::{self, RunResult};
use simulate::timed::measure::JobResult;
use simulate::timed::result::TimedResult;
use workload::RequestOperation;

use crate::{READ_NS, cell, run_with, settings, timed};

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
    let at = |options: &str| timed(&format!("[a]\nrw=randread\nnorandommap\nruntime=1\ntime_based\n{options}\n"));
    let rate = |result: &TimedResult| per_second(&result.jobs[0], RequestOperation::Read);
    let (one, four, many) = (at("iodepth=1"), at("iodepth=4"), at("iodepth=2\nnumjobs=16"));
    assert!((one.jobs[0].mean_in_flight() - 1.0).abs() < 1e-9);
    assert!((four.jobs[0].mean_in_flight() - 4.0).abs() < 0.01, "{}", four.jobs[0].mean_in_flight());
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
    assert!((940..=960).contains(&without), "{without}: nine pauses of 5 ms are lost");
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
    let [a, b, c] = &result.jobs[..] else { panic!("three jobs") };
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
    let result =
        run_with("[a]\nrw=randwrite\nnorandommap\niodepth=8\n", RunSettings { drive_writes: Some(2.0), ..settings() });
    assert!(result.complete && result.stats.write_amplification().expect("it wrote") > 1.1);
    assert_eq!(result.stats.host_bytes_written(), 2 * result.capacity_bytes);
    let timed = result.timed.expect("the device has timing");
    let writes = timed.jobs[0].direction(RequestOperation::Write);
    assert_eq!(writes.bytes, 2 * result.capacity_bytes);
    let collections: u64 = (0..timed.series.len()).map(|row| timed.series.collections(row).count).sum();
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
    assert_ne!(one, simulate::timed::to_fio_json(&timed(&jobs.replace("numjobs=3", "numjobs=2"))).to_string());
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
                    (direction.latencies.distribution(), direction.latencies.sum_ns(), direction.waits)
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
    assert!(json["fio version"].as_str().is_some_and(|version| version.starts_with("fio-")));
    assert!(json["global options"].is_object());
    let jobs = json["jobs"].as_array().expect("jobs");
    assert_eq!((jobs.len(), &jobs[0]["jobname"], &jobs[1]["groupid"]), (2, &"a".into(), &1.into()));
    let read = &jobs[0]["read"];
    assert_eq!(read["total_ios"], 1000);
    assert_eq!(read["io_bytes"], 4_096_000);
    assert_eq!(read["io_kbytes"], 4000);
    assert_eq!(read["runtime"], READ_NS / 1000);
    assert_eq!(read["clat_ns"]["min"], READ_NS);
    assert_eq!(read["clat_ns"]["N"], 1000);
    assert_eq!(read["clat_ns"]["percentile"]["99.000000"], READ_NS);
    assert_eq!(read["clat_ns"]["percentile"].as_object().map(serde_json::Map::len), Some(18));
    assert_eq!(read["lat_ns"]["mean"], READ_NS as f64);
    assert_eq!(read["slat_ns"]["N"], 0);
    let iops = read["iops"].as_f64().expect("a number");
    assert!((iops - 1e9 / READ_NS as f64).abs() < 1e-6);
    assert_eq!(read["bw_bytes"], (4096.0 * iops) as u64);
    assert_eq!((&jobs[0]["write"]["total_ios"], &jobs[1]["write"]["total_ios"]), (&0.into(), &100.into()));
    assert_eq!(jobs[0]["iodepth_level"]["1"], 100.0);
    let shares = &jobs[0]["latency_us"];
    assert_eq!(shares["100"], 100.0, "all are between 50 and 100 us: {shares}");
}

#[test]
fn jobs_that_never_end_are_refused() {
    let settings = RunSettings { drive_writes: Some(1.0), ..settings() };
    let cell = cell("[a]\nrw=randread\n", settings);
    let refused = run::prepare(vec![cell]).map(|_| ()).expect_err("reads never write enough").to_string();
    assert!(refused.contains("never ends") && refused.contains("runtime"), "{refused}");
}

/// A cache on the simple device with this many operations per second.
fn paced_cell(operations_per_second: u32) -> RunSpec {
    let text = format!(
        "kind = \"cachelib\"\nsoc_percent = 40\ndram_bytes = \"64KiB\"\nregion_bytes = \"1MiB\"\nreads = true\n\
         [pace]\noperations_per_second = {operations_per_second}\nmax_concurrent_inserts = 1000\n"
    );
    let find_jobs = |jobs: applications::JobsReference<'_>| panic!("{jobs:?} is not asked for");
    let table = toml::from_str(&text).expect("a table");
    let run = RunSettings { drive_writes: Some(0.5), precondition_drive_writes: 0.0, ..settings() };
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
        assert!((32 << 20..34 << 20).contains(&written), "{written} bytes are half the drive");
        let jobs = &result.timed.as_ref().expect("the device has timing").jobs;
        assert_eq!(jobs[0].queue_depth, 65, "a request for each thread");
        assert!(jobs.iter().map(JobResult::mean_in_flight).sum::<f64>() <= 65.0);
    }
    assert_eq!(analysis::golden::rows(&[run(100_000)]), analysis::golden::rows(&[fast]), "it is deterministic");
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
    assert!(mean(&poisson) > 1.04 * mean(&linear), "{} {}", mean(&poisson), mean(&linear));
    assert_eq!(mean(&poisson), mean(&run("poisson")), "the same each time");
}

#[test]
fn reads_of_what_was_never_written_and_options_without_effect_are_warnings() {
    let names = |jobs: &str, prefill: f64| {
        let settings = RunSettings { precondition_drive_writes: prefill, ..settings() };
        let warnings = run_with(jobs, settings).warnings();
        warnings.iter().map(|warning| warning.name()).collect::<Vec<_>>().join(" ")
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
    let requests: Vec<u64> = result.jobs.iter().map(|job| job.direction(RequestOperation::Read).requests).collect();
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
    assert!(result.jobs[4].from_ns < end_ns + 10 * READ_NS, "nobody waits for what has ended");
    assert_eq!(reads(4), 10);
    let all = timed(&format!("[global]\nexit_what=all\n{jobs}"));
    assert_eq!(all.jobs[4].direction(RequestOperation::Read).requests, 0);
    // An endless job may run beside one that ends, but at least one must end.
    let settings = |capacities: f64| RunSettings { drive_writes: Some(capacities), ..settings() };
    let endless = "[a]\nexitall\nrw=write\nbs=64k\n[b]\nrw=write\nbs=64k\n";
    assert!(run_with(endless, settings(1.5)).warnings().iter().any(|warning| warning.name() == "without_effect"));
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
    let (goal, reads) = (job.latency_goal.expect("it searched"), job.direction(RequestOperation::Read));
    assert!((4..32).contains(&goal.depth) && goal.found, "{goal:?}");
    assert!(reads.latencies.percentile_ns(95.0) <= 400_000, "{}", reads.latencies.percentile_ns(95.0));
    assert!((job.mean_in_flight() - goal.depth as f64).abs() < 0.5, "only the last window is measured");
    assert!((20_000_000..25_000_000).contains(&job.elapsed_ns()), "{}", job.elapsed_ns());
    // Twice the depth exceeds the latency target.
    let deeper =
        timed(&format!("[a]\nrw=randread\nnorandommap\nruntime=100ms\ntime_based\niodepth={}\n", goal.depth * 2));
    assert!(deeper.jobs[0].direction(RequestOperation::Read).latencies.percentile_ns(95.0) > 400_000);
    assert!(search(400, "latency_run=1\n").elapsed_ns() > 9_000_000_000);
    assert_eq!(search(100_000, "").latency_goal.map(|goal| goal.depth), Some(64));
    let prepared =
        run::prepare(vec![cell("[a]\nrw=randread\nlatency_target=10\n", settings())]).expect("it may be tried");
    let error = run::run_all(&prepared, true, u64::MAX, &()).unwrap_err().to_string();
    assert!(error.starts_with("latency_target=10us of [a]: a request took 56.6 us"), "{error}");
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
        let result = run::run_all(&plans, false, u64::MAX, &watch).expect("it runs").remove(0);
        assert!(!result.complete);
        let written = result.stats.host_bytes_written();
        assert!(written < 8 << 30, "{written} bytes were written, timed: {timed}");
    }
}
