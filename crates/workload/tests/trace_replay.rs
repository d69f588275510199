//! Tests of traces as requests to a drive, with mapping, placement, repetition and measures.

mod support;

use std::collections::HashMap;
use std::path::Path;

use base::HumanBytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use support::{SEED, UNIT, all, drive, iolog, replay, source, units, with};
use workload::trace::{
    AddressMapping, Arrival, LbaRange, MappedTraces, PlacementRule, TimedSource, TraceSettings, TraceSource,
};
use workload::{
    IoRequest, PlacementIndex, RequestOperation, RequestSource, ScaledModel, WorkloadMeasure, WorkloadTarget,
};

#[test]
fn modulo_wraps_around_and_volumes_lie_one_after_another() {
    let text = iolog(&[("a", "write", 95, 10), ("b", "read", 0, 1), ("a", "trim", 250, 2)]);
    let settings = with(AddressMapping::Modulo);
    let requests = replay(&text, &settings, &drive(100));
    assert_eq!(units(&requests), [('W', 95, 5), ('W', 0, 5), ('R', 0, 1), ('T', 50, 2)]);
    let settings = TraceSettings { volume_bytes: Some(30 * UNIT), ..settings };
    let requests = replay(&text, &settings, &drive(100));
    assert_eq!(units(&requests), [('W', 95, 5), ('W', 0, 5), ('R', 30, 1), ('T', 50, 2)]);
}

#[test]
fn scale_keeps_proportions_and_lengths() {
    let text = iolog(&[("a", "write", 0, 8), ("a", "write", 199, 1), ("b", "write", 100, 4)]);
    let settings = TraceSettings { volume_bytes: Some(200 * UNIT), volumes: 2, ..with(AddressMapping::Scale) };
    let requests = replay(&text, &settings, &drive(4000));
    assert_eq!(units(&requests), [('W', 0, 8), ('W', 1990, 1), ('W', 3000, 4)]);
    let requests = replay(&text, &settings, &drive(40));
    assert_eq!(units(&requests), [('W', 0, 8), ('W', 19, 1), ('W', 30, 4)]);
    // Without scaling, bytes are not rounded. The end of the trace stays on the drive.
    let odd = "fio version 2 iolog\na write 512 1024\na write 4095 1\n";
    let requests = replay(odd, &settings, &drive(400));
    assert_eq!((requests[0].offset_bytes, requests[0].bytes), (512, 1024));
    let text = iolog(&[("a", "read", 0, 1), ("b", "write", 190, 10)]);
    assert_eq!(units(&replay(&text, &settings, &drive(100)))[1], ('W', 90, 10));
}

#[test]
fn scale_refuses_what_is_beyond_the_traced_volumes() {
    let text = iolog(&[("a", "write", 0, 8), ("a", "write", 195, 6), ("b", "write", 0, 1)]);
    let settings = TraceSettings { volume_bytes: Some(200 * UNIT), ..with(AddressMapping::Scale) };
    let mut failing = source(&text, &settings, &drive(100));
    let mut requests = Vec::new();
    let error = failing.next_batch(&mut requests, 10).unwrap_err().to_string();
    assert!(error.starts_with("trace.txt:3: ") && error.contains("volume_bytes"), "{error}");
    assert_eq!(failing.next_batch(&mut requests, 10).unwrap(), 0, "it stays at its end");
    let settings = TraceSettings { skip_bad_lines: true, ..settings };
    let mut skipping = source(&text, &settings, &drive(100));
    assert_eq!(all(&mut skipping).len(), 1);
    assert_eq!(skipping.bad_lines(), 2);
}

#[test]
fn compact_numbers_units_in_the_order_of_first_touch() {
    let text = iolog(&[
        ("a", "write", 1_000_000, 3),
        ("b", "write", 1_000_000, 1),
        ("a", "read", 17, 1),
        ("a", "trim", 999_999, 5),
        ("a", "write", 1_000_001, 4),
        ("c", "trim", 0, 100_000),
    ]);
    let requests = replay(&text, &with(AddressMapping::Compact), &drive(7));
    let wanted = [
        ('W', 0, 3),
        ('W', 3, 1),
        ('R', 4, 1),
        // Three of the five units were touched.
        ('T', 0, 3),
        // Two units have numbers, and two get the next, non-adjacent numbers.
        ('W', 1, 2),
        ('W', 5, 2),
    ];
    assert_eq!(units(&requests), wanted);
    // One more unit does not fit.
    let mut full = source(&text, &with(AddressMapping::Compact), &drive(6));
    let mut requests = Vec::new();
    let error = full.next_batch(&mut requests, 100).unwrap_err().to_string();
    assert!(error.contains("touches more than the drive holds") && error.contains("larger drive"), "{error}");
    assert_eq!(units(&requests), wanted[..5]);
    assert_eq!(full.next_batch(&mut Vec::new(), 100).unwrap(), 0);
}

/// The whole trace is read to compute the required drive size.
#[test]
fn a_trace_that_touches_more_than_the_drive_says_its_file_and_size() {
    let text = iolog(&[("a", "write", 0, 700), ("b", "write", 0, 300), ("a", "trim", 5000, 9), ("a", "read", 100, 50)]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.log");
    std::fs::write(&path, text).unwrap();
    let settings = TraceSettings { files: vec![path.clone()], ..with(AddressMapping::Compact) };
    let refusal = |target: &WorkloadTarget| {
        let mut source = settings.source(target, SEED).unwrap();
        loop {
            match source.next_batch(&mut Vec::new(), 100) {
                Ok(requests) => assert!(requests > 0, "it fits"),
                Err(error) => break error.to_string(),
            }
        }
    };
    let error = refusal(&drive(512));
    let wanted = format!(
        "{} touches {}, more than the {} of the drive",
        path.display(),
        HumanBytes(1000 * UNIT),
        HumanBytes(512 * UNIT)
    );
    assert!(error.starts_with(&wanted), "{error}");
    // 1000 units fill 5 MiB to 85 %.
    assert!(error.contains("--capacity 5MiB") && error.contains("mapping = \"modulo\""), "{error}");
    let model =
        ScaledModel { denominator: 4, device_bytes: 128 * UNIT, mapping_unit_bytes: UNIT, keep_requests: false };
    let on_scaled_model = refusal(&WorkloadTarget { scaled_model: Some(model), ..drive(512) });
    assert_eq!(on_scaled_model, error, "sizes are those of the drive");
}

#[test]
fn parts_of_units_keep_their_place_in_the_unit() {
    let text = "fio version 2 iolog\na write 41472 1024\na write 45056 512\na write 44544 1024\n";
    let requests = replay(text, &with(AddressMapping::Compact), &drive(10));
    let places: Vec<(u64, u32)> = requests.iter().map(|request| (request.offset_bytes, request.bytes)).collect();
    // Units 10 (40960) and 11 (45056) become 0 and 1.
    assert_eq!(places, [(512, 1024), (4096, 512), (3584, 1024)]);
}

/// A trace of random requests to a few volumes, mostly aligned.
fn random_trace(seed: u64, lines: usize, volumes: u64, units: u64) -> String {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |limit: u64| random.next_u64() % limit;
    let mut text = String::new();
    for line in 0..lines {
        let volume = below(volumes);
        let operation = if below(10) < 3 { 'R' } else { 'W' };
        let (offset, bytes) = match below(8) {
            0 => (below(units * 8) * 512, (below(64) + 1) * 512),
            _ => (below(units) * UNIT, (below(16) + 1) * UNIT),
        };
        text += &format!("{volume},{operation},{offset},{bytes},{}\n", 1_577_808_000_000_000 + line as u64);
    }
    text
}

#[test]
fn requests_do_not_depend_on_batches_and_stay_on_the_drive() {
    let text = random_trace(1, 20_000, 3, 10_000);
    let full = drive(65_536);
    let model = |keep_requests| WorkloadTarget {
        scaled_model: Some(ScaledModel {
            denominator: 8,
            device_bytes: 8_100 * UNIT,
            mapping_unit_bytes: UNIT,
            keep_requests,
        }),
        ..full
    };
    for mapping in [AddressMapping::Modulo, AddressMapping::Scale, AddressMapping::Compact] {
        for target in [full, model(false), model(true)] {
            let settings = TraceSettings {
                volume_bytes: Some(10_100 * UNIT),
                volumes: 3,
                placement: PlacementRule::Volume,
                ..with(mapping)
            };
            let wanted = replay(&text, &settings, &target);
            assert!(wanted.len() > 10_000 / 8);
            for request in &wanted {
                let end = request.offset_bytes + u64::from(request.bytes);
                assert!(request.bytes > 0 && end <= target.capacity_bytes(), "{mapping:?} {request:?}");
            }
            let mut pieces = source(&text, &settings, &target);
            let mut requests = Vec::new();
            for limit in (0..).map(|step| step % 7 + 1) {
                let before = requests.len();
                let issued = pieces.next_batch(&mut requests, limit).unwrap();
                assert_eq!(requests.len(), before + issued);
                if issued == 0 {
                    break;
                }
                assert!(issued <= limit);
            }
            assert!(requests == wanted, "{mapping:?} {target:?}");
        }
    }
}

#[test]
fn what_it_measures_is_what_it_issued() {
    let text = random_trace(2, 5_000, 2, 3_000) + "bad line\n";
    for mapping in [AddressMapping::Modulo, AddressMapping::Compact] {
        let settings = TraceSettings { skip_bad_lines: true, volume_bytes: Some(4_000 * UNIT), ..with(mapping) };
        let mut source = source(&text, &settings, &drive(8_192));
        let requests = all(&mut source);
        let bytes = |operation| -> u64 {
            let those = requests.iter().filter(|request| request.operation == operation);
            those.map(|request| u64::from(request.bytes)).sum()
        };
        let mut touched = std::collections::HashSet::new();
        for request in &requests {
            let end = (request.offset_bytes + u64::from(request.bytes)).div_ceil(UNIT);
            touched.extend(request.offset_bytes / UNIT..end);
        }
        let measures: HashMap<String, f64> =
            source.measures().into_iter().map(|measure| (measure.name, measure.value)).collect();
        for (name, value) in [
            ("trace.records", 5_000),
            ("trace.requests", requests.len() as u64),
            ("trace.bytes_read", bytes(RequestOperation::Read)),
            ("trace.bytes_written", bytes(RequestOperation::Write)),
            ("trace.bytes_trimmed", 0),
            ("trace.bad_lines", 1),
            ("trace.touched_units", touched.len() as u64),
            ("trace.passes", 1),
            ("trace.processes", 1),
            ("trace.files", 1),
        ] {
            assert_eq!(measures[name], value as f64, "{name} {mapping:?}");
        }
        // The rest are volumes and seconds.
        assert_eq!(measures.len(), 12);
    }
}

/// The placement of each write.
fn placements(text: &str, settings: &TraceSettings, target: &WorkloadTarget) -> Vec<Option<u16>> {
    let requests = replay(text, settings, target);
    let writes = requests.iter().filter(|request| request.operation == RequestOperation::Write);
    assert!(requests.iter().all(|request| request.operation == RequestOperation::Write || request.placement.is_none()));
    writes.map(|request| Some(request.placement?.0)).collect()
}

#[test]
fn placement_follows_its_rule_and_only_writes_have_one() {
    let lines = iolog(&[
        ("a", "write", 0, 1),
        ("a", "read", 0, 1),
        ("b", "write", 10, 4),
        ("c", "write", 99, 16),
        ("a", "trim", 0, 1),
        ("d", "write", 100, 1),
        ("e", "write", 20, 2),
    ]);
    let rule = |placement| TraceSettings {
        placement,
        lba_ranges: vec![
            LbaRange { start_bytes: 10 * UNIT, end_bytes: 100 * UNIT, placement: PlacementIndex(3) },
            LbaRange { start_bytes: 0, end_bytes: 11 * UNIT, placement: PlacementIndex(1) },
        ],
        request_sizes_bytes: vec![2 * UNIT, 16 * UNIT],
        ..TraceSettings::default()
    };
    let placed = |rule: &TraceSettings| placements(&lines, rule, &drive(200));
    assert_eq!(placed(&rule(PlacementRule::None)), [None; 5]);
    assert_eq!(placed(&rule(PlacementRule::LbaRanges)), [Some(1), Some(3), Some(3), None, Some(3)]);
    assert_eq!(placed(&rule(PlacementRule::RequestSize)), [Some(0), Some(1), Some(2), Some(0), Some(1)]);
    // Five volumes share four indices.
    assert_eq!(placed(&rule(PlacementRule::Volume)), [Some(0), Some(1), Some(2), Some(3), Some(0)]);
    // A drive without placement accepts any trace.
    let without = WorkloadTarget { placement_count: 0, ..drive(200) };
    for placement in [PlacementRule::LbaRanges, PlacementRule::RequestSize, PlacementRule::Volume] {
        assert_eq!(placements(&lines, &rule(placement), &without), [None; 5]);
    }
    let events = "8,0 1 1 0.1 70 D W 0 + 8 [x]\n8,0 1 1 0.1 71 D W 8 + 8 [x]\n8,0 1 1 0.1 70 D W 0 + 8 [x]\n";
    assert_eq!(placements(events, &rule(PlacementRule::Process), &drive(200)), [Some(0), Some(1), Some(0)]);
}

#[test]
fn a_placement_that_the_drive_does_not_have_is_a_bad_line() {
    let text = "fio version 2 iolog\na write 0 4096 3\na write 0 4096\na write 0 4096 4\n";
    let column = TraceSettings { placement: PlacementRule::Column, ..TraceSettings::default() };
    let mut source = source(text, &column, &drive(10));
    let mut requests = Vec::new();
    let error = source.next_batch(&mut requests, 10).unwrap_err().to_string();
    assert!(error.starts_with("trace.txt:4: ") && error.contains("is 4, but the drive has 0 to 3"), "{error}");
    let placements: Vec<Option<u16>> = requests.iter().map(|request| Some(request.placement?.0)).collect();
    assert_eq!(placements, [Some(3), None]);
}

#[test]
fn only_wanted_operations_are_replayed() {
    let text = iolog(&[("a", "write", 0, 1), ("a", "read", 1, 1), ("a", "trim", 0, 1)]);
    let settings = TraceSettings {
        operations: vec![RequestOperation::Trim, RequestOperation::Write],
        ..with(AddressMapping::Modulo)
    };
    assert_eq!(units(&replay(&text, &settings, &drive(10))), [('W', 0, 1), ('T', 0, 1)]);
}

/// Writes a trace into a directory.
fn file_with(directory: &Path, name: &str, text: &str) -> TraceSettings {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    TraceSettings { files: vec![path], ..TraceSettings::default() }
}

#[test]
fn an_arrival_says_when_and_by_whom_a_request_was_recorded_and_how_long_its_record_took() {
    let text = "1000,usr,0,Write,36864,8192,50\n1100,usr,1,Read,0,512,7\n1090,web,0,Read,0,512,0\n";
    let mut source = source(text, &with(AddressMapping::Modulo), &drive(10));
    let (mut requests, mut arrivals) = (Vec::new(), Vec::new());
    source.next_timed_batch(&mut requests, &mut arrivals, 100).unwrap();
    assert_eq!(units(&requests[..2]), [('W', 9, 1), ('W', 0, 1)], "the end of the drive divides it");
    let arrival = |time_ns, volume, latency_ns| Arrival { time_ns, volume, process: 0, latency_ns };
    // The latency belongs to the record and counts once.
    let wanted = [(0, 0, 5000), (0, 0, 0), (10_000, 1, 700), (9000, 2, 0)];
    assert_eq!(arrivals, wanted.map(|(time_ns, volume, latency_ns)| arrival(time_ns, volume, latency_ns)));
    assert_eq!(source.names(2), [vec!["usr,0".to_string(), "usr,1".to_string()], Vec::new()]);
}

#[test]
fn a_trace_without_times_cannot_be_replayed_at_them() {
    let directory = tempfile::tempdir().unwrap();
    let timed = |name: &str, text: &str| {
        let settings = file_with(directory.path(), name, text);
        settings.timed_source(&drive(100), SEED).map(|_| ()).map_err(|error| error.to_string())
    };
    let without = iolog(&[("a", "write", 0, 1), ("a", "write", 1, 1)]);
    let refusal = timed("without.log", &without).expect_err("it has no times");
    assert!(refusal.contains("without.log has no times") && refusal.contains("csv.time"), "{refusal}");
    timed("waits.log", &(without + "a wait 100 0\na write 2 4096\n")).expect("it waits");
    timed("three.log", "fio version 3 iolog\n1 a write 0 4096\n2 a write 0 4096\n").expect("it has times");
    timed("one.log", &iolog(&[("a", "write", 0, 1)])).expect("one request needs no times");
    timed("bad.log", "fio version 3 iolog\nx a write 0 4096\n").expect_err("a bad line is found");
}

#[test]
fn files_that_overlap_in_time_are_refused_where_times_are_obeyed() {
    let directory = tempfile::tempdir().unwrap();
    let line = |seconds: u64, volume: u64| format!("{volume},W,0,4096,{}\n", seconds * 1_000_000);
    let first = file_with(directory.path(), "0.csv", &(line(0, 0) + &line(100, 0)));
    let run = |second: &str, is_timed: bool| {
        let mut settings = first.clone();
        settings.files.extend(file_with(directory.path(), "1.csv", second).files);
        let mut source = match is_timed {
            true => settings.timed_source(&drive(10), SEED).unwrap(),
            false => settings.source(&drive(10), SEED).unwrap(),
        };
        let mut requests = Vec::new();
        loop {
            match source.next_batch(&mut requests, 10) {
                Ok(0) => return Ok(requests.len()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    };
    assert_eq!(run(&line(50, 1), true), Ok(3), "recorders do not cut exactly");
    assert_eq!(run(&line(30, 1), false), Ok(3), "without times the order of the files is right");
    let refusal = run(&line(30, 1), true).expect_err("a volume that was recorded at the same time");
    assert!(refusal.contains("1.csv:1: ") && refusal.contains("sort -m"), "{refusal}");
}

#[test]
fn an_endless_trace_begins_again_and_time_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let text = random_trace(3, 100, 2, 50);
    let target = WorkloadTarget { endless: true, ..drive(4096) };
    let settings = TraceSettings { mapping: AddressMapping::Modulo, ..file_with(directory.path(), "a.csv", &text) };
    let once = all(&mut settings.source(&drive(4096), SEED).unwrap());
    // A kept trace has no times. The source neither takes requests from one nor makes one.
    let kept = MappedTraces::keep();
    let mut endless = settings.source(&target, SEED).unwrap();
    let (mut requests, mut arrivals) = (Vec::new(), Vec::new());
    while requests.len() < 3 * once.len() {
        assert!(endless.next_timed_batch(&mut requests, &mut arrivals, 64).unwrap() > 0);
    }
    let times: Vec<u64> = arrivals.iter().map(|arrival| arrival.time_ns).collect();
    for pass in requests.chunks_exact(once.len()) {
        assert_eq!(pass, once);
    }
    assert!(times.is_sorted());
    assert_eq!(times[3 * once.len() - 1], 3 * times[once.len() - 1]);
    drop(kept);
    // Units keep the numbers of the first pass in the second.
    let settings = TraceSettings { mapping: AddressMapping::Compact, ..settings };
    let mut endless = settings.source(&target, SEED).unwrap();
    while endless.next_batch(&mut requests, 64).unwrap() > 0 && endless.measures()[7].value < 3.0 {}
    let touched = |source: &TraceSource| source.measures()[6].clone();
    let mut once = settings.source(&drive(4096), SEED).unwrap();
    all(&mut once);
    assert_eq!(touched(&endless), touched(&once));
    assert_eq!(touched(&once).name, "trace.touched_units");
    // A trace without selected requests ends.
    let settings = TraceSettings { operations: vec![RequestOperation::Trim], ..settings };
    assert_eq!(settings.source(&target, SEED).unwrap().next_batch(&mut Vec::new(), 1).unwrap(), 0);
}

/// Requests of a source in batches of varying length, with its measures behind each batch.
fn observed(source: &mut TraceSource, batches: usize) -> Vec<(Vec<IoRequest>, Vec<WorkloadMeasure>, Option<f64>)> {
    let observe = |batch: usize| {
        let mut requests = Vec::new();
        let limit = [1, 7, 64, 1000][batch % 4];
        source.next_batch(&mut requests, limit).unwrap();
        (requests, source.measures(), source.share_done())
    };
    (0..batches).map(observe).collect()
}

#[test]
fn a_kept_trace_gives_the_requests_and_measures_of_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let text = random_trace(5, 3_000, 5, 2_000) + "bad line\n" + &random_trace(6, 500, 9, 2_000);
    let file = TraceSettings { skip_bad_lines: true, ..file_with(directory.path(), "a.csv", &text) };
    let model =
        ScaledModel { denominator: 4, device_bytes: 4_096 * UNIT, mapping_unit_bytes: UNIT, keep_requests: false };
    for mapping in [AddressMapping::Modulo, AddressMapping::Scale, AddressMapping::Compact] {
        for scaled_model in [None, Some(model)] {
            for endless in [false, true] {
                let settings = TraceSettings { mapping, volume_bytes: Some(2_100 * UNIT), volumes: 9, ..file.clone() };
                let target = WorkloadTarget { endless, scaled_model, ..drive(16_384) };
                let placed = |placement| TraceSettings { placement, ..settings.clone() };
                let [unplaced, by_volume] = [PlacementRule::None, PlacementRule::Volume].map(placed);
                let run = |settings: &TraceSettings| observed(&mut settings.source(&target, SEED).unwrap(), 60);
                let wanted = [run(&unplaced), run(&by_volume)];
                let passes = &wanted[0].last().unwrap().1[7];
                assert_eq!((passes.name.as_str(), passes.value >= 2.0), ("trace.passes", endless), "{passes:?}");
                let kept = MappedTraces::keep();
                // The first run keeps the trace for the others.
                assert!(run(&unplaced) == wanted[0], "{mapping:?} {target:?}");
                let mut sources = [&unplaced, &by_volume].map(|settings| settings.source(&target, SEED).unwrap());
                for (source, wanted) in sources.iter_mut().zip(&wanted) {
                    assert!(&observed(source, 60) == wanted, "{mapping:?} {target:?}");
                    assert_eq!(source.bad_lines(), source.measures()[5].value as u64);
                }
                drop(kept);
                assert!(run(&by_volume) == wanted[1]);
            }
        }
    }
}

#[test]
fn requests_read_ahead_are_those_that_come_anyway() {
    let directory = tempfile::tempdir().unwrap();
    let text = random_trace(7, 2_000, 5, 2_000) + "bad line\n" + &random_trace(8, 500, 9, 2_000);
    let file = file_with(directory.path(), "a.csv", &text);
    let compressed = directory.path().join("a.csv.zst");
    // Several blocks, so that a thread decompresses ahead.
    let long = random_trace(7, 30_000, 5, 2_000) + &text;
    assert!(long.len() > 3 << 18);
    std::fs::write(&compressed, zstd::encode_all(long.as_bytes(), 1).unwrap()).unwrap();
    let compressed = TraceSettings { files: vec![compressed], ..file.clone() };
    // Requests with their measures, up to the end or an error.
    let run = |settings: &TraceSettings, target: &WorkloadTarget, reads_ahead: bool| {
        let mut source = settings.source(target, SEED).unwrap();
        if reads_ahead {
            source.read_ahead();
        }
        let (mut seen, mut requests) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let came = source.next_batch(&mut requests, 200).map_err(|error| error.to_string());
            let is_over = matches!(came, Ok(0) | Err(_));
            seen.push((came, source.measures(), source.share_done(), source.bad_lines()));
            if is_over {
                break;
            }
        }
        (requests, seen)
    };
    for (skip_bad_lines, file) in [(false, &file), (true, &file), (true, &compressed)] {
        for (endless, units) in [(false, 16_384), (true, 16_384), (false, 1_000)] {
            let settings = TraceSettings { mapping: AddressMapping::Compact, skip_bad_lines, ..file.clone() };
            let target = WorkloadTarget { endless, ..drive(units) };
            let wanted = run(&settings, &target, false);
            let fails = wanted.1.last().unwrap().0.is_err();
            assert_eq!(fails, !skip_bad_lines || units == 1_000, "{wanted:?}");
            assert!(run(&settings, &target, true) == wanted, "{target:?}");
            let kept = MappedTraces::keep();
            assert!(run(&settings, &target, true) == wanted, "{target:?} from the files");
            assert!(run(&settings, &target, true) == wanted, "{target:?} from a kept trace");
            drop(kept);
        }
    }
}

#[test]
fn a_trace_is_kept_only_where_it_stays_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let _kept = MappedTraces::keep();
    let run = |settings: &TraceSettings, target: &WorkloadTarget| {
        let mut source = settings.source(target, SEED).unwrap();
        let mut requests = Vec::new();
        while requests.len() < 20 && source.next_batch(&mut requests, 5).unwrap() > 0 {}
        requests
    };
    // The second pass deallocates what the first one touches only later.
    let text = iolog(&[("a", "trim", 0, 4), ("a", "write", 0, 4)]);
    let settings = file_with(directory.path(), "trims.log", &text);
    let endless = WorkloadTarget { endless: true, ..drive(100) };
    for target in [drive(100), endless, endless] {
        let requests = units(&run(&settings, &target));
        assert_eq!(requests[0], ('W', 0, 4));
        assert_eq!(requests.get(1), target.endless.then_some(&('T', 0, 4)));
    }
    // Another text under the same name is another trace.
    let settings = file_with(directory.path(), "a.log", &iolog(&[("a", "write", 0, 1)]));
    assert_eq!(units(&run(&settings, &drive(100))), [('W', 0, 1)]);
    let settings = file_with(directory.path(), "a.log", &iolog(&[("a", "write", 0, 1), ("a", "write", 5, 2)]));
    assert_eq!(units(&run(&settings, &drive(100))), [('W', 0, 1), ('W', 1, 2)]);
    // A drive that is too small for a kept trace fails as it does without.
    let mut small = settings.source(&drive(2), SEED).unwrap();
    let mut requests = Vec::new();
    let error = small.next_batch(&mut requests, 10).unwrap_err().to_string();
    assert!(error.contains("touches"), "{error}");
    assert_eq!(units(&requests), [('W', 0, 1)]);
}
