//! Tests of the cache in virtual time, on a drive that serves one request at a time for a given
//! time.

use super::*;
use workload::{NextCall, PacedHost, TaggedRequest, Workload};

/// Result of a run in virtual time.
struct Run {
    requests: Vec<IoRequest>,
    elapsed_ns: u64,
    most_in_flight: usize,
    source: CacheSource,
}

impl Run {
    fn measure(&self, name: &str) -> f64 {
        measure(&self.source, name)
    }
}

/// Pages of 4 KiB per millisecond, for SOC and for LOC.
#[derive(Clone, Copy)]
struct Drive {
    pages_per_ms: [u64; 2],
}

/// Runs a cache to its end. Each stream has its own server, as if the drive had a channel for each.
fn run(settings: &CachelibSettings, drive: Drive) -> Run {
    let mut run = Run {
        requests: Vec::new(),
        elapsed_ns: 0,
        most_in_flight: 0,
        source: settings.source(&target(GIB, 1), 5).unwrap(),
    };
    let mut free_ns = [0; 2];
    // Completions as time, order and tag.
    let mut in_flight = std::collections::BTreeSet::new();
    let mut submitted = Vec::new();
    assert!(run.source.paced().is_some());
    loop {
        let now = run.elapsed_ns;
        let next = run.source.poll_requests(now, &mut submitted).unwrap();
        for TaggedRequest { tag, request } in submitted.drain(..) {
            assert!(in_flight.iter().all(|(_, _, other)| *other != tag), "tags are told apart");
            let stream = usize::from(request.stream);
            let server = &mut free_ns[stream];
            *server = now.max(*server) + u64::from(request.bytes) / 4096 * 1_000_000 / drive.pages_per_ms[stream];
            in_flight.insert((*server, run.requests.len(), tag));
            run.requests.push(request);
        }
        run.most_in_flight = run.most_in_flight.max(in_flight.len());
        let first = in_flight.first().copied();
        run.elapsed_ns = match (next, first) {
            (NextCall::Never, first) => {
                assert_eq!(first, None, "nothing is in flight at the end");
                return run;
            }
            (NextCall::At(at), Some((done, ..))) => at.min(done),
            (NextCall::At(at), None) => at,
            (NextCall::Completion, first) => first.expect("something is in flight").0,
        };
        while let Some(done) = in_flight.first().copied().filter(|done| done.0 <= run.elapsed_ns) {
            in_flight.remove(&done);
            run.source.complete_request(done.2);
        }
    }
}

/// Operation rate per second of virtual time, and number of operations.
fn paced(operations_per_second: f64, engines: EngineResources) -> CachelibSettings {
    CachelibSettings {
        operations: Some(100_000),
        dram_bytes: Some(1 << 20),
        pace: Some(Pace { max_concurrent_inserts: 500, engines, ..Pace::at(operations_per_second) }),
        ..small()
    }
}

const FAST: Drive = Drive { pages_per_ms: [10_000; 2] };
/// Slow only for SOC's buckets.
const SLOW: Drive = Drive { pages_per_ms: [20, 10_000] };

#[test]
fn a_drive_that_keeps_up_is_written_what_is_written_without_a_clock() {
    let mut settings = paced(10_000.0, EngineResources::SharedThreads);
    // A large item that enters DRAM evicts thousands of small ones.
    settings.pace.as_mut().unwrap().max_concurrent_inserts = 10_000;
    let run = run(&settings, FAST);
    let seconds = run.elapsed_ns as f64 / 1e9;
    assert!((9.99..10.1).contains(&seconds), "{seconds} seconds");
    assert_eq!(run.measure("soc.inserts_rejected_percent"), 0.0);
    let mut source = settings.source(&target(GIB, 1), 5).unwrap();
    let mut requests = Vec::new();
    while source.next_batch(&mut requests, 10_000).unwrap() > 0 {}
    let sorted = |requests: &[IoRequest]| {
        let mut all: Vec<_> = requests
            .iter()
            .map(|request| (request.stream, request.operation, request.offset_bytes, request.bytes))
            .collect();
        all.sort_unstable();
        all
    };
    assert!(sorted(&run.requests) == sorted(&requests) && requests.len() > 50_000);
    for name in ["hit_ratio", "soc.items", "loc.items", "application_write_amplification"] {
        assert_eq!(run.measure(name), measure(&source, name), "{name}");
    }
    let names = source.measures().into_iter().map(|measure| measure.name);
    assert!(names.filter(|name| name.contains("inserts")).count() == 0, "there are no threads without a clock");
}

#[test]
fn what_a_slow_drive_cannot_take_is_rejected_and_counted() {
    let settings = paced(100_000.0, EngineResources::SharedThreads);
    let run = run(&settings, SLOW);
    let counters = run.source.cache.counters;
    let rejected: u64 = counters.inserts_rejected.iter().sum();
    assert!(rejected > 1000, "{rejected}");
    assert_eq!(run.measure("inserts_in_flight.most"), 500.0);
    let percent =
        100.0 * counters.inserts_rejected[0] as f64 / (counters.inserts_rejected[0] + counters.soc_items) as f64;
    assert_eq!(run.measure("soc.inserts_rejected_percent"), percent);
    // Rejected inserts are not written. There is one rewrite for each item inserted or removed.
    let writes = run.requests.iter().filter(is_write).filter(|request| request.stream == 0);
    assert_eq!(writes.count() as u64, counters.soc_items + counters.soc_removes);
    // Rejected items also miss later, so the same gets hit less than without rejections.
    let all = self::run(&settings, FAST);
    assert!(run.measure("hit_ratio") < all.measure("hit_ratio") - 0.01);
    assert!(run.most_in_flight <= 65 && run.elapsed_ns > all.elapsed_ns);
}

#[test]
fn limits_of_all_thin_both_engines_and_limits_of_each_the_slow_one() {
    let rejected = |engines| {
        let run = run(&paced(100_000.0, engines), SLOW);
        ["soc", "loc"].map(|engine| run.measure(&format!("{engine}.inserts_rejected_percent")))
    };
    let [soc, loc] = rejected(EngineResources::SharedThreads);
    assert!(soc > 20.0 && (loc / soc - 1.0).abs() < 0.25, "together {soc} % and {loc} %");
    let [soc, loc] = rejected(EngineResources::OwnThreads);
    assert!(soc > 20.0 && loc < soc / 4.0, "apart {soc} % and {loc} %");
}

#[test]
fn the_same_times_give_the_same_requests() {
    let settings = paced(100_000.0, EngineResources::SharedThreads);
    let (one, other) = (run(&settings, SLOW), run(&settings, SLOW));
    assert!(one.requests == other.requests && one.elapsed_ns == other.elapsed_ns);
    assert_eq!(one.source.measures(), other.source.measures());
}

#[test]
fn callers_wait_for_reads_so_a_slow_drive_is_asked_less() {
    let alone = |callers| {
        let mut settings = paced(1e6, EngineResources::SharedThreads);
        settings.pace.as_mut().unwrap().callers = callers;
        run(&settings, SLOW).measure("operations_per_second")
    };
    let (one, many) = (alone(1), alone(64));
    assert!(one < many && many < 1e6, "{one} with one caller, {many} with 64");
}

#[test]
fn a_pace_is_for_a_cache_alone_and_its_numbers_are_checked() {
    let find_jobs = |jobs: crate::JobsReference<'_>| panic!("{jobs:?} is not asked for");
    let spec = |text: &str| crate::WorkloadSpec::parse("workload", &toml::from_str(text).unwrap(), &find_jobs);
    let refused = |text: &str| {
        let error = spec(text).and_then(|spec| spec.source(&target(GIB, 1), 1).map(|_| ()));
        error.expect_err(text).to_string()
    };
    let cache = "kind = \"cachelib\"\nregion_bytes = \"4MiB\"\n[pace]\noperations_per_second = 1e5\n";
    assert!(spec(cache).unwrap().source(&target(GIB, 1), 1).is_ok());
    let error = refused(&format!("{cache}[classifier]\nkind = \"none\"\n"));
    assert!(error.contains("classifier"), "{error}");
    for (setting, value) in [("callers", 0), ("writer_threads", 0), ("max_concurrent_inserts", 0)] {
        let error = refused(&format!("{cache}{setting} = {value}\n"));
        assert!(error.contains(&format!("pace.{setting} = 0")), "{error}");
    }
    assert!(refused("kind = \"cachelib\"\n[pace]\ncallers = 1\n").contains("operations_per_second"));
}
