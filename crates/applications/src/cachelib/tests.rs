//! Tests of the whole cache on a drive, checked by counts from outside.

mod in_time;

use super::*;
use crate::testing::{measure, read, reread};
use workload::{IoRequest, PlacementIndex, RequestOperation, RequestSource, ScaledModel};

const GIB: u64 = 1 << 30;

fn target(device_bytes: u64, denominator: u64) -> WorkloadTarget {
    let device_bytes = device_bytes / denominator;
    WorkloadTarget {
        device_bytes: device_bytes * denominator,
        placement_count: 8,
        endless: true,
        scaled_model: (denominator > 1).then_some(ScaledModel {
            denominator,
            device_bytes,
            mapping_unit_bytes: 4096,
            keep_requests: false,
        }),
    }
}

/// A cache small enough to wrap within a test.
fn small() -> CachelibSettings {
    CachelibSettings {
        soc_percent: 20.0,
        region_bytes: 4 << 20,
        dram_bytes: Some(16 << 20),
        reads: true,
        // More sets than the preset, so that fewer operations write the same amount.
        statistics: StatisticsSettings {
            get_percent: Some(50.0),
            set_percent: Some(49.0),
            ..StatisticsSettings::default()
        },
        ..CachelibSettings::default()
    }
}

/// Requests until `bytes` bytes are written.
fn requests(source: &mut CacheSource, bytes: u64, batch: usize) -> Vec<IoRequest> {
    let mut requests = Vec::new();
    let mut written = 0;
    while written < bytes {
        let before = requests.len();
        assert!(source.next_batch(&mut requests, batch).unwrap() > 0);
        written += requests[before..].iter().filter(is_write).map(|request| u64::from(request.bytes)).sum::<u64>();
    }
    requests
}

fn is_write(request: &&IoRequest) -> bool {
    request.operation == RequestOperation::Write
}

#[test]
fn every_request_lies_where_its_engine_is() {
    let target = target(GIB, 1);
    let mut source = small().source(&target, 1).unwrap();
    assert_eq!(source.streams(), ["soc", "loc"]);
    let soc_start = GIB - GIB / 5 / 4096 * 4096;
    for request in requests(&mut source, 2 * GIB, 1000) {
        let end = request.offset_bytes + u64::from(request.bytes);
        match request.stream {
            0 => assert!(request.offset_bytes >= soc_start && end <= GIB && request.bytes == 4096),
            _ => assert!(request.offset_bytes >= GIB / 200 && end <= soc_start),
        }
        assert_eq!((request.offset_bytes % 4096, request.bytes % 4096), (0, 0));
        let placement = is_write(&&request).then_some(PlacementIndex(request.stream + 1));
        assert_eq!(request.placement, placement, "SOC writes with index 1, LOC with 2");
    }
}

#[test]
fn bytes_written_are_bytes_accounted_and_gets_are_hits_or_misses() {
    let settings = small();
    let mut source = settings.source(&target(GIB, 1), 2).unwrap();
    let mut all = requests(&mut source, 2 * GIB, 777);
    // The last operation may have made more requests than were asked for.
    while !source.cache.requests.is_empty() {
        source.next_batch(&mut all, 1).unwrap();
    }
    let written = |stream: u16| {
        let writes = all.iter().filter(is_write).filter(|request| request.stream == stream);
        writes.map(|request| u64::from(request.bytes)).sum::<u64>() as f64
    };
    assert_eq!(written(0), measure(&source, "soc.written_bytes"));
    assert_eq!(written(1), measure(&source, "loc.written_bytes"));
    assert_eq!(written(0), 4096.0 * (measure(&source, "soc.items") + measure(&source, "soc.removes")));
    let items = measure(&source, "soc.item_bytes") + measure(&source, "loc.item_bytes");
    let amplification = measure(&source, "application_write_amplification");
    assert!((amplification - (written(0) + written(1)) / items).abs() < 1e-12);
    let counters = source.cache.counters;
    assert_eq!(counters.dram_hits + counters.soc_hits + counters.loc_hits + counters.misses, counters.gets);
    assert_eq!(counters.loc_lookups, counters.gets - counters.dram_hits);
    assert_eq!(counters.soc_lookups, counters.loc_lookups - counters.loc_hits);
    assert!(counters.loc_hits > 0 && counters.soc_hits > 0 && counters.lookaside_sets < counters.misses);
}

#[test]
fn soc_rewrites_all_buckets_alike() {
    // Keys rarely repeat, so rewrites of buckets are independent.
    let settings = CachelibSettings {
        preset: Preset::Twitter12,
        soc_percent: 10.0,
        statistics: StatisticsSettings {
            zipf_alpha: Some(0.0),
            working_set_percent: Some(100_000.0),
            ..StatisticsSettings::default()
        },
        ..CachelibSettings::default()
    };
    let mut source = settings.source(&target(GIB, 1), 3).unwrap();
    let layout = source.cache.layout;
    let mut rewrites = vec![0_u32; layout.buckets as usize];
    for request in requests(&mut source, 2 * GIB, 1000) {
        assert_eq!(request.stream, 0);
        rewrites[((request.offset_bytes - layout.soc_start_bytes) / 4096) as usize] += 1;
    }
    let mean = rewrites.iter().sum::<u32>() as f64 / rewrites.len() as f64;
    let chi_square: f64 = rewrites.iter().map(|count| (f64::from(*count) - mean).powi(2) / mean).sum();
    // With 26213 degrees of freedom, the standard deviation of the ratio is 0.9 percent.
    let ratio = chi_square / (rewrites.len() - 1) as f64;
    assert!((0.96..1.06).contains(&ratio), "chi-square {ratio} of the degrees of freedom");
}

#[test]
fn loc_goes_round() {
    let settings = CachelibSettings { preset: Preset::Twitter37, ..CachelibSettings::default() };
    let mut source = settings.source(&target(GIB, 1), 3).unwrap();
    let layout = source.cache.layout;
    let mut next = layout.loc_start_bytes;
    let loc_end = layout.loc_start_bytes + layout.regions * layout.region_bytes;
    for request in requests(&mut source, 3 * GIB, 1000) {
        if request.stream == 1 {
            assert_eq!(request.offset_bytes, next, "LOC writes in sequence");
            next += u64::from(request.bytes);
            next = if next == loc_end { layout.loc_start_bytes } else { next };
        }
    }
    let written = measure(&source, "loc.written_bytes");
    assert!(written > 2.0 * (loc_end - layout.loc_start_bytes) as f64, "it went round");
}

#[test]
fn a_cache_that_never_writes_ends_with_a_reason() {
    let mut settings = small();
    settings.reads = false;
    settings.statistics.working_set_percent = Some(0.001);
    let mut source = settings.source(&target(GIB, 1), 3).unwrap();
    let mut requests = Vec::new();
    let error = source.next_batch(&mut requests, 1).unwrap_err().to_string();
    assert!(error.contains("working_set_percent"), "{error}");
    assert_eq!(source.next_batch(&mut requests, 1).unwrap(), 0);
}

#[test]
fn the_same_requests_come_whatever_the_batches_and_the_placement() {
    let target = target(GIB, 1);
    let settings = small();
    let whole = requests(&mut settings.source(&target, 4).unwrap(), GIB, 100_000);
    let mut pieces = requests(&mut settings.source(&target, 4).unwrap(), GIB, 7);
    let count = whole.len().min(pieces.len());
    assert!(whole[..count] == pieces[..count] && count > 100_000);
    let plain = CachelibSettings { placement: false, ..settings.clone() };
    let unplaced = requests(&mut plain.source(&target, 4).unwrap(), GIB, 7);
    let without_fdp = WorkloadTarget { placement_count: 0, ..target };
    let ignored = requests(&mut settings.source(&without_fdp, 4).unwrap(), GIB, 7);
    pieces.iter_mut().for_each(|request| request.placement = None);
    assert!(pieces == unplaced && pieces == ignored);
    let other = requests(&mut settings.source(&target, 5).unwrap(), GIB, 7);
    assert!(other[..1000] != whole[..1000], "the seed matters");
}

#[test]
fn a_scaled_model_hits_and_writes_as_the_drive_does() {
    // Omits the few giant values, because their number on a small scaled model is random.
    let statistics = StatisticsSettings {
        value_quantiles: Some(vec![(0.0, 63), (90.0, 400), (100.0, 20_000)]),
        ..StatisticsSettings::default()
    };
    let settings = CachelibSettings {
        soc_percent: 10.0,
        dram_bytes: Some(512 << 20),
        statistics,
        operations: Some(64_000_000),
        ..CachelibSettings::default()
    };
    let figures = |denominator: u64| {
        let mut source = settings.source(&target(96 * GIB, denominator), 6).unwrap();
        let mut requests = Vec::new();
        while source.next_batch(&mut requests, 100_000).unwrap() > 0 {
            requests.clear();
        }
        let names = ["hit_ratio", "recent.hit_ratio", "dram.hit_ratio", "soc.written_share"];
        names.map(|name| measure(&source, name))
    };
    let (large, small) = (figures(32), figures(128));
    for (large, small) in large.iter().zip(&small) {
        assert!((large - small).abs() < 0.01, "1/32 {large}, 1/128 {small}");
    }
}

#[test]
fn admission_cuts_what_is_written() {
    let admitted = |admission: AdmissionPolicy| {
        let settings = CachelibSettings { admission, operations: Some(1_000_000), reads: false, ..small() };
        let mut source = settings.source(&target(GIB, 1), 7).unwrap();
        while source.next_batch(&mut Vec::new(), 100_000).unwrap() > 0 {}
        let [gets, sets, deletes] = ["gets", "sets", "deletes"].map(|name| measure(&source, name));
        assert_eq!(gets + sets + deletes, 1_000_000.0);
        let items = measure(&source, "soc.items") + measure(&source, "loc.items");
        items / (items + measure(&source, "rejected_items"))
    };
    assert_eq!(admitted(AdmissionPolicy::Always), 1.0);
    let half = admitted(AdmissionPolicy::Probabilistic { admit_percent: 50.0 });
    assert!((half - 0.5).abs() < 0.01, "{half}");
}

#[test]
fn every_preset_makes_a_source_and_one_engine_can_be_everything() {
    use Preset::{Cdn, Kvcache202206, Kvcache202210, Kvcache202401, Twitter12, Twitter37};
    for preset in [Cdn, Kvcache202206, Kvcache202210, Kvcache202401, Twitter12, Twitter37] {
        for soc_percent in [0.0, 4.0, 99.5] {
            let settings =
                CachelibSettings { preset, soc_percent, statistics: StatisticsSettings::default(), ..small() };
            let mut source = settings.source(&target(GIB, 1), 8).unwrap();
            let all = requests(&mut source, GIB / 32, 1000);
            assert!(soc_percent != 0.0 || all.iter().all(|request| request.stream == 1));
            assert!(soc_percent != 99.5 || all.iter().all(|request| request.stream == 0));
        }
    }
}

#[test]
fn a_trace_goes_through_the_cache() {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for line in 0..200_000 {
        let key = mix(line) % 20_000;
        writeln!(file, "{line},key{key},20,{},1,set,300", 100 + key % 5_000).unwrap();
        writeln!(file, "{line},key{},20,0,1,get,0", mix(line + 1_000_000) % 20_000).unwrap();
    }
    let settings = CachelibSettings { trace: vec![file.path().to_path_buf()], dram_bytes: Some(1 << 20), ..small() };
    let once = WorkloadTarget { endless: false, ..target(GIB, 1) };
    let mut source = settings.source(&once, 9).unwrap();
    while source.next_batch(&mut Vec::new(), 1_000_000).unwrap() > 0 {}
    assert_eq!((measure(&source, "sets"), measure(&source, "gets")), (200_000.0, 200_000.0));
    assert!(measure(&source, "hit_ratio") > 0.9, "all keys fit the cache");
    assert_eq!(source.share_done(), Some(1.0));
}

#[test]
fn settings_are_read_and_refused_by_name() {
    let settings: CachelibSettings = read(
        r#"
        preset = "twitter12"
        dram_bytes = "1GiB"
        soc_percent = 40
        region_eviction = "lru"
        admission = { policy = "probabilistic", admit_percent = 90 }
        [statistics]
        zipf_alpha = 1.1
        "#,
    )
    .unwrap();
    assert_eq!(settings.statistics().zipf_alpha, 1.1);
    assert_eq!(settings.statistics().key_bytes, 44);
    assert_eq!(reread(&settings), settings);
    assert!(read::<CachelibSettings>("region_size = 1").is_err());
    type Change = fn(&mut CachelibSettings);
    let refusals: [(Change, &str); 7] = [
        (|settings| settings.soc_percent = 101.0, "soc_percent = 101"),
        (|settings| settings.bucket_bytes = 5000, "bucket_bytes = 5000"),
        (|settings| (settings.region_bytes, settings.soc_percent) = (256 << 20, 60.0), "region_bytes"),
        (|settings| settings.amplification = 0, "amplification"),
        (|settings| settings.statistics.get_percent = Some(70.0), "get_percent"),
        (|settings| settings.statistics.value_quantiles = Some(vec![(0.0, 5), (50.0, 9)]), "value_quantiles"),
        (|settings| settings.admission = AdmissionPolicy::Probabilistic { admit_percent: -1.0 }, "admit_percent"),
    ];
    for (change, name) in refusals {
        let mut settings = small();
        change(&mut settings);
        let error = settings.source(&target(GIB, 1), 1).err().expect("it is impossible").to_string();
        assert!(error.contains(name), "{error}");
    }
    let missing = CachelibSettings { trace: vec!["no/such/file".into()], ..small() };
    assert!(missing.source(&target(GIB, 1), 1).err().expect("it is impossible").to_string().contains("no/such/file"));
}
