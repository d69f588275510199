//! Arrays from first principles: what they write, on which drives, and how long they take.

use array::{ArraySettings, IoCause};
use experiment::cell::{CellKey, RunSpec};
use experiment::change::parse_array;
use experiment::run_options::RunSettings;
use experiment::{LabError, RunChange};
use simulate::run::{self, ArrayResult, RunResult};
use simulate::testing::TIMING;
use simulate::warning::RunWarning;
use workload::{RequestOperation, fio};

/// A drive of this size with reclaim units of 512 KiB.
fn device(mebibytes: u64, handles: u16) -> String {
    format!(
        "[geometry]\ncapacity_bytes = \"{mebibytes}MiB\"\nover_provisioning = 0.25\nreclaim_unit_bytes = \"512KiB\"\n\
         mapping_unit_bytes = \"4KiB\"\nchannels = 4\ndies_per_channel = 1\nplanes_per_die = 1\nreclaim_groups = 1\n\
         [handles]\ncount = {handles}\n"
    )
}

const UNIFORM: &str = "[job]\nrw=randwrite\nbs=4k\nnorandommap\nrandom_generator=tausworthe64\n";

fn settings(drive_writes: f64) -> RunSettings {
    RunSettings {
        sample_drive_writes: 0.1,
        precondition_drive_writes: 1.0,
        drive_writes: Some(drive_writes),
        ..RunSettings::default()
    }
}

/// A cell on an array as `--array` describes it, or on the device alone.
fn cell(array: &str, device: &str, jobs: &str, run: RunSettings) -> RunSpec {
    let array = (!array.is_empty()).then(|| -> ArraySettings {
        let change = RunChange::from_settings(&parse_array(array).expect("an array"));
        toml::Value::Table(change.array).try_into().expect("settings of an array")
    });
    RunSpec {
        key: CellKey { device: "small".to_string(), variant: String::new(), grid: Vec::new() },
        seed: 1,
        device: toml::from_str(device).expect("the device is one"),
        ensemble: None,
        workload_name: "test".to_string(),
        workload: fio::parse(jobs, "test.fio").unwrap_or_else(|error| panic!("{error}")).into(),
        run,
        array,
        array_drive: None,
        feedback: None,
        snapshot: None,
    }
}

fn try_run(cell: RunSpec) -> Result<RunResult, LabError> {
    let prepared = run::prepare(vec![cell])?;
    Ok(run::run_all(&prepared, false, u64::MAX, &())?.remove(0))
}

fn run_on(array: &str, device: &str, jobs: &str, run: RunSettings) -> RunResult {
    try_run(cell(array, device, jobs, run)).unwrap_or_else(|error| panic!("{error}"))
}

fn array_of(result: &RunResult) -> &ArrayResult {
    result.array.as_ref().expect("the cell has an array")
}

fn measure(result: &RunResult, name: &str) -> f64 {
    let found = result.measures.iter().find(|measure| measure.name == name);
    found.unwrap_or_else(|| panic!("{name} of {:?}", result.measures)).value
}

fn written(result: &RunResult, cause: IoCause) -> u64 {
    array_of(result).cause(cause).bytes[RequestOperation::Write as usize]
}

fn read(result: &RunResult, cause: IoCause) -> u64 {
    array_of(result).cause(cause).bytes[RequestOperation::Read as usize]
}

fn host(result: &RunResult) -> u64 {
    array_of(result).host(RequestOperation::Write)
}

#[test]
fn raid_0_of_four_drives_equals_one_drive_four_times_as_large() {
    // Its reclaim units are four times as large too, over the dies of all four.
    let large = device(256, 1).replace("512KiB", "2MiB");
    let large = run_on("", &large, UNIFORM, settings(4.0));
    for chunk in ["4KiB", "128KiB"] {
        let array = run_on(&format!("raid0,drives=4,chunk={chunk}"), &device(64, 1), UNIFORM, settings(4.0));
        assert_eq!(array.stats.host_bytes_written(), large.stats.host_bytes_written());
        assert_eq!(array.capacity_bytes, large.capacity_bytes);
        let difference = array.write_amplification() / large.write_amplification() - 1.0;
        assert!(large.write_amplification() > 1.5, "garbage is collected");
        assert!(difference.abs() < 0.02, "write amplification differs by {difference}");
        assert_eq!(measure(&array, "array.host_write_amplification"), 1.0);
        assert_eq!(measure(&array, "array.total_write_amplification"), array.write_amplification());
    }
}

#[test]
fn raid_1_writes_twice_and_both_drives_the_same() {
    let result = run_on("raid1,drives=2", &device(64, 1), UNIFORM, settings(2.0));
    assert_eq!(measure(&result, "array.host_write_amplification"), 2.0);
    assert_eq!(written(&result, IoCause::Data), host(&result));
    assert_eq!(written(&result, IoCause::Mirror), host(&result));
    let [one, other] = &array_of(&result).drives[..] else { panic!("two drives") };
    assert_eq!(one.stats.host_bytes_written(), other.stats.host_bytes_written());
    let alone = run_on("", &device(64, 1), UNIFORM, settings(2.0));
    assert_eq!(one.stats, alone.stats, "the first copy is the drive without an array");
}

#[test]
fn full_stripes_cost_n_by_n_minus_1() {
    let jobs = "[job]\nrw=write\nbs=384k\n";
    for (array, cost) in
        [("raid5,drives=4", 4.0 / 3.0), ("raid6,drives=5", 5.0 / 3.0), ("ec(6+3),drives=9,chunk=64KiB", 1.5)]
    {
        let result =
            run_on(array, &device(64, 1), jobs, RunSettings { precondition_drive_writes: 0.0, ..settings(1.0) });
        let found = measure(&result, "array.host_write_amplification");
        // The last request of a pass ends within a stripe.
        assert!((found / cost - 1.0).abs() < 0.01, "{array}: {found} instead of {cost}");
        assert!(read(&result, IoCause::ReadModifyWrite) * 50 < host(&result), "{array}");
    }
}

#[test]
fn consecutive_writes_of_a_stream_reach_a_stripe_together() {
    // Two streams alternate, and each writes a third of a stripe at a time.
    let jobs = "[one]\nrw=write\nbs=128k\nsize=50%\nnumjobs=1\n[other]\nrw=write\nbs=128k\noffset=50%\nsize=50%\n";
    let cost = |array: &str| {
        let run = RunSettings { precondition_drive_writes: 0.0, ..settings(0.9) };
        measure(&run_on(array, &device(64, 1), jobs, run), "array.host_write_amplification")
    };
    let merged = cost("raid5,drives=4");
    assert!((merged / (4.0 / 3.0) - 1.0).abs() < 0.01, "{merged}");
    assert_eq!(cost("raid5,drives=4,coalesce=false"), 2.0);
}

#[test]
fn a_small_random_write_costs_four_ios_of_which_two_are_writes() {
    let array = "raid5,drives=4,coalesce=false";
    let result = run_on(array, &device(64, 1), UNIFORM, settings(1.0));
    let requests = host(&result) / 4096;
    let ios = |cause: IoCause, operation: RequestOperation| array_of(&result).cause(cause).ios[operation as usize];
    assert_eq!(ios(IoCause::Data, RequestOperation::Write), requests);
    assert_eq!(ios(IoCause::Parity, RequestOperation::Write), requests);
    assert_eq!(ios(IoCause::ReadModifyWrite, RequestOperation::Read), 2 * requests);
    assert_eq!(measure(&result, "array.host_write_amplification"), 2.0);
    assert_eq!(measure(&result, "array.parity_share"), 0.5);
}

#[test]
fn parity_is_updated_k_times_as_often_as_data_of_the_same_drive() {
    let array = "raid5,drives=5,parity_placement=own_handle";
    let result = run_on(array, &device(32, 2), UNIFORM, settings(4.0));
    for drive in &array_of(&result).drives {
        let [data, parity] = &drive.stats.handles[..] else { panic!("two handles") };
        // A fifth of the drive is parity, and four fifths are data.
        let ratio = parity.host_bytes_written as f64 / (data.host_bytes_written as f64 / 4.0);
        assert!((ratio - 4.0).abs() < 0.15, "drive {}: {ratio}", drive.drive);
    }
    let total: u64 = array_of(&result).drives.iter().map(|drive| drive.stats.handles[1].host_bytes_written).sum();
    assert_eq!(total, written(&result, IoCause::Parity), "all parity and nothing else has the handle");
}

#[test]
fn bytes_are_conserved_for_each_cause_and_each_drive() {
    let jobs = "[job]\nrw=randrw\nrwmixread=30\nbsrange=4k-256k\nnorandommap\n";
    for (array, policy) in [
        ("raid5,drives=4", ""),
        ("raid6,drives=6", ""),
        ("raid10,drives=4", ""),
        ("raid5,drives=4", "chunk=16KiB,write_policy=full_stripe"),
    ] {
        let result = run_on(format!("{array},{policy}").trim_end_matches(','), &device(64, 1), jobs, settings(1.5));
        let array_result = array_of(&result);
        let of_drives: u64 = array_result.drives.iter().map(|drive| drive.stats.host_bytes_written()).sum();
        assert_eq!(of_drives, array_result.member_bytes_written(), "{array}");
        assert_eq!(of_drives, result.stats.host_bytes_written(), "{array}");
        let [before, after] = array_result.buffered_bytes;
        let (data, moved) = (written(&result, IoCause::Data), written(&result, IoCause::Relocation));
        if policy.is_empty() {
            assert_eq!(data, host(&result), "{array}");
        } else {
            // Memory holds the host's pages and the moved ones together.
            assert!(moved > 0 && data + moved + after >= host(&result) + before, "{array}");
            assert_eq!(written(&result, IoCause::Parity) * 3, data + moved, "parity of full stripes");
            assert_eq!(read(&result, IoCause::ReadModifyWrite), 0);
        }
        let media: u64 = array_result.drives.iter().map(|drive| drive.stats.media_bytes_written()).sum();
        assert_eq!(media, result.stats.media_bytes_written(), "{array}");
        let total = measure(&result, "array.host_write_amplification") * result.write_amplification();
        assert!((measure(&result, "array.total_write_amplification") / total - 1.0).abs() < 1e-12, "the product");
    }
}

#[test]
fn a_rebuild_writes_exactly_the_live_data_and_a_scrub_reads_it() {
    let half = |events: &str| {
        let run = RunSettings { precondition_drive_writes: 0.5, ..settings(0.25) };
        let jobs = "[job]\nrw=randwrite\nbs=4k\nsize=50%\nnorandommap\n";
        run_on(&format!("raid5,drives=4,chunk=64KiB,{events}"), &device(64, 1), jobs, run)
    };
    let result = half("spares=1,event=fail 2 at 0.1,event=scrub at 0.2");
    let [rebuild, scrub] = &array_of(&result).rebuilds[..] else { panic!("two events") };
    // Half of the array is half of each drive, with its parity.
    let live = 32 << 20;
    assert_eq!((rebuild.bytes_written, rebuild.bytes_read), (live, 3 * live));
    assert_eq!((scrub.bytes_written, scrub.bytes_read), (0, 4 * live));
    assert_eq!(written(&result, IoCause::Rebuild), live);
    let states: Vec<(u16, &str)> = array_of(&result).drives.iter().map(|drive| (drive.drive, drive.state)).collect();
    assert_eq!(states, [(0, "works"), (1, "works"), (2, "works"), (3, "works"), (2, "replaced")]);
    let all = half("resync=all,event=replace 2 at 0.1");
    assert_eq!(array_of(&all).rebuilds[0].bytes_written, 64 << 20, "md writes the whole drive");
}

#[test]
fn an_event_after_the_end_is_a_warning() {
    let missed = |event: &str| -> Vec<RunWarning> {
        let array = format!("raid5,drives=4,event=scrub at 0.1{event}");
        let warnings = run_on(&array, &device(16, 1), UNIFORM, settings(0.5)).warnings().into_iter();
        warnings.filter(|warning| warning.name() == "events_missed").collect()
    };
    assert_eq!(missed(""), []);
    let events = vec!["fail 0 at 99".to_string()];
    assert_eq!(missed(",event=fail 0 at 99"), [RunWarning::EventsMissed { events }]);
}

#[test]
fn a_degraded_array_writes_less_and_reads_more() {
    let jobs = "[job]\nrw=randrw\nbs=4k\nnorandommap\n";
    let whole = run_on("raid5,drives=4", &device(64, 1), jobs, settings(1.0));
    let degraded = run_on("raid5,drives=4,event=fail 1 at 0", &device(64, 1), jobs, settings(1.0));
    assert_eq!(read(&whole, IoCause::DegradedRead), 0);
    // A quarter of the reads needs three others, and a quarter of all writes loses its drive.
    let reads = array_of(&degraded).host(RequestOperation::Read) as f64;
    let share = read(&degraded, IoCause::DegradedRead) as f64 / reads;
    assert!((share - 0.75).abs() < 0.03, "{share}");
    let amplification = measure(&degraded, "array.host_write_amplification");
    assert!((amplification - 1.5).abs() < 0.02, "{amplification}");
}

#[test]
fn the_log_structured_layer_keeps_small_writes_in_full_stripes() {
    let layer = "raid5,drives=4,chunk=16KiB,write_policy=full_stripe,over_provisioning=0.25";
    let result = run_on(layer, &device(64, 1), UNIFORM, settings(3.0));
    let in_place = run_on("raid5,drives=4,chunk=16KiB", &device(64, 1), UNIFORM, settings(3.0));
    assert_eq!(read(&result, IoCause::ReadModifyWrite), 0);
    assert!(read(&in_place, IoCause::ReadModifyWrite) > host(&in_place));
    let moved = written(&result, IoCause::Relocation) as f64 / host(&result) as f64;
    let expected = (1.0 + moved) * 4.0 / 3.0;
    let found = measure(&result, "array.host_write_amplification");
    assert!(moved > 0.3 && (found / expected - 1.0).abs() < 0.01, "{found} instead of {expected}");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let run = || run_on("raid6,drives=5,parity_placement=own_handle", &device(64, 2), UNIFORM, settings(1.0));
    let json = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        serde_json::to_string(&pool.install(run)).expect("a result is JSON")
    };
    assert_eq!(json(1), json(3));
}

#[test]
fn a_drive_that_runs_alone_ends_as_in_its_array() {
    let jobs = "[one]\nrw=randrw\nbsrange=4k-256k\nnorandommap\n[other]\nrw=write\nbs=96k\n";
    for array in [
        "raid0,drives=2",
        "raid10,drives=4",
        "raid5,drives=4",
        "raid6,drives=5,parity_placement=own_handle,coalesce=false",
        "raid5,drives=3,chunk=16KiB,write_policy=full_stripe,over_provisioning=0.25",
    ] {
        let whole = cell(array, &device(64, 2), jobs, settings(1.5));
        let together = try_run(whole.clone()).expect("a run");
        for drive in &array_of(&together).drives {
            let alone = RunSpec { array_drive: Some(drive.drive), ..whole.clone() };
            let alone = try_run(alone).expect("a run");
            assert!(alone.array.is_none() && alone.complete, "{array}");
            assert_eq!(alone.stats, drive.stats, "drive {} of {array}", drive.drive);
            assert_eq!(alone.wear, drive.wear, "drive {} of {array}", drive.drive);
        }
    }
}

#[test]
fn in_time_a_small_write_takes_a_read_and_a_write_and_a_rebuild_disturbs_reads() {
    let device = device(64, 1) + TIMING;
    let jobs = "[job]\nrw=randrw\nbs=4k\niodepth=2\nnorandommap\n";
    let run = || RunSettings { precondition_drive_writes: 1.0, ..settings(0.06) };
    let timed = |array: &str| run_on(array, &device, jobs, run());
    let mean = |result: &RunResult, state: &str, operation: RequestOperation| {
        let timed = result.timed.as_ref().expect("the device has timing");
        let (_, job) = timed.named(Some(state)).next().expect("a state");
        let direction = job.direction(operation);
        assert!(direction.requests > 50, "{state}: {} requests", direction.requests);
        direction.latencies.mean_ns()
    };
    let (raid0, raid5) = (timed("raid0,drives=4"), timed("raid5,drives=4"));
    let write = |result: &RunResult| mean(result, "normal", RequestOperation::Write);
    assert!(write(&raid5) > write(&raid0) + 50_000.0, "old data is read before: {} {}", write(&raid5), write(&raid0));
    let failed = timed("raid5,drives=4,event=fail 0 at 0.02,event=replace 0 at 0.04,resync_depth=16");
    let reads = ["normal", "degraded", "resync"].map(|state| mean(&failed, state, RequestOperation::Read));
    assert!(reads[0] < reads[1] && reads[1] < reads[2], "{reads:?}");
    let rebuild = &array_of(&failed).rebuilds[0];
    let seconds = rebuild.duration_ns.expect("it has a time") as f64 / 1e9;
    assert_eq!(rebuild.bytes_written, 64 << 20);
    // Programs of 4 dies bound the rate: 4 KiB in 200 us each. The buffer of 1 MiB holds the end.
    assert!(seconds > (63 << 20) as f64 / (4.0 * 4096.0 / 200e-6), "{seconds}");
    assert_eq!(measure(&failed, "array.resync_seconds"), seconds);
    let requests: u64 = failed
        .timed
        .as_ref()
        .expect("timing")
        .jobs
        .iter()
        .flat_map(|job| &job.directions)
        .map(|one| one.requests)
        .sum();
    let host_bytes: u64 = array_of(&failed).host_bytes.iter().sum();
    assert_eq!(requests * 4096, host_bytes, "each request has a latency");
}

#[test]
fn requests_in_flight_outlive_the_failure_of_a_drive() {
    let device = device(64, 1) + TIMING;
    let jobs = "[job]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\n";
    let array = "raid5,drives=4,event=fail 1 at 0.01,event=replace 1 at 0.02";
    let result = run_on(array, &device, jobs, settings(0.03));
    let timed = result.timed.as_ref().expect("the device has timing");
    let requests: u64 = timed.jobs.iter().map(|job| job.direction(RequestOperation::Write).requests).sum();
    assert_eq!(requests * 4096, host(&result), "each request is complete");
    assert_eq!(array_of(&result).rebuilds.len(), 1);
    assert!(written(&result, IoCause::Data) < host(&result), "the failed drive missed writes");
}

#[test]
fn what_does_not_work_on_an_array_is_refused_by_name() {
    let refusal = |array: &str, change: fn(&mut RunSpec)| {
        let mut cell = cell(array, &device(64, 1), UNIFORM, settings(1.0));
        change(&mut cell);
        try_run(cell).expect_err("it is impossible").to_string()
    };
    let cases = [
        (refusal("raid5,drives=4", |cell| cell.snapshot = Some("saved.warp".into())), "a snapshot (--load-snapshot)"),
        (refusal("raid5,drives=4", |cell| cell.run.seconds = Some(1.0)), "seconds (--seconds)"),
        (refusal("raid5,drives=4,parity_placement=own_handle", |_| ()), "needs drives with two placement handles"),
        (refusal("raid5,drives=4,write_policy=full_stripe,chunk=16MiB", |_| ()), "spare stripes"),
        (refusal("raid5,drives=4,chunk=128MiB", |_| ()), "larger than a drive"),
    ];
    for (problem, part) in cases {
        assert!(problem.contains(part), "{problem}");
    }
}
