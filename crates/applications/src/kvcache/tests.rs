//! Tests of the tiers against cache theory, a record of their slots, and a replay of their
//! requests.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use super::*;
use crate::queue::SteppedModel;
use crate::testing::{MIB, drive, expected_hits, measure, scaled_drive, zipf_weights};
use workload::{IoRequest, PlacementIndex, RequestOperation, RequestSource, ScaledModel};

/// One worker with chunks of 64 KiB.
fn one(requests: PromptSettings, eviction: TierEviction) -> KvCacheSettings {
    let class = ChunkClass { chunk_bytes: 64 << 10, requests, ..ChunkClass::default() };
    KvCacheSettings {
        used_percent: 100.0,
        eviction,
        classes: BTreeMap::from([("all".to_string(), class)]),
        ..KvCacheSettings::default()
    }
}

fn popular(catalogue_percent: f64, zipf_exponent: f64) -> PromptSettings {
    PromptSettings::Popular(PopularChunks { catalogue_percent, zipf_exponent, ..PopularChunks::default() })
}

fn take(source: &mut KvCache, count: usize) -> Vec<IoRequest> {
    let mut requests = Vec::new();
    while requests.len() < count && source.next_batch(&mut requests, 1000).expect("requests") > 0 {}
    requests
}

fn ask(source: &mut KvCache, chunks: f64) {
    while measure(source, "chunks_requested") < chunks {
        for _ in 0..1000 {
            assert!(source.step().expect("a step"));
        }
        source.output.queue = crate::queue::RequestQueue::default();
    }
}

#[test]
fn popular_chunks_are_hit_as_often_as_theory_says() {
    for exponent in [0.0, 0.8, 1.1] {
        for (eviction, fifo) in [(TierEviction::Lru, false), (TierEviction::Fifo, true)] {
            let mut source = one(popular(300.0, exponent), eviction).source(&drive(64), 1).expect("it fits");
            ask(&mut source, 50_000.0);
            let (asked, hits) = (measure(&source, "chunks_requested"), measure(&source, "hit_ratio"));
            ask(&mut source, 400_000.0);
            let (all, ratio) = (measure(&source, "chunks_requested"), measure(&source, "hit_ratio"));
            let late = (ratio * all - hits * asked) / (all - asked);
            let expected = expected_hits(1024.0, &zipf_weights(3072, exponent), fifo);
            assert!((late - expected).abs() < 0.01, "{eviction:?}, {exponent}: {late}, not {expected}");
        }
    }
}

/// The most frequently used chunks stay, so the cache holds the most popular ones.
#[test]
fn the_least_frequent_leave() {
    let mut source = one(popular(300.0, 1.1), TierEviction::Lfu).source(&drive(64), 1).expect("it fits");
    ask(&mut source, 600_000.0);
    let stored: HashSet<u64> = source.workers[0].tier.chunks().map(|(key, _)| key).collect();
    // Not all of the 1024, because evicted chunks restart with one use.
    let missing: Vec<u64> = (0..400).filter(|rank| !stored.contains(rank)).collect();
    assert!(missing.len() < 12, "of the 400 most popular {missing:?} are not there");
}

/// A replay of the requests has each stored chunk in its slot, and no other data.
#[test]
fn the_drive_holds_what_the_tiers_do() {
    let class = |chunk_bytes: u64, ranks: u32, requests: PromptSettings| ChunkClass {
        workers: 2,
        chunk_bytes,
        ranks,
        requests,
        ..ChunkClass::default()
    };
    for eviction in [
        TierEviction::Fifo,
        TierEviction::Lru,
        TierEviction::Lfu,
        TierEviction::Ttl,
        TierEviction::Prefix,
        TierEviction::Clock,
    ] {
        let settings = KvCacheSettings {
            used_percent: 80.0,
            eviction,
            ttl_seconds: 20.0,
            discard: true,
            write_bytes: 20 << 10,
            classes: BTreeMap::from([
                ("agents".into(), class(96 << 10, 2, PromptSettings::Agent(SessionSettings::default()))),
                ("chat".into(), class(64 << 10, 1, PromptSettings::Conversation(SessionSettings::default()))),
                ("objects".into(), class(40 << 10, 1, popular(200.0, 0.9))),
            ]),
            ..KvCacheSettings::default()
        };
        let mut source = settings.source(&drive(64), 7).expect("it fits");
        let ranges = source.ranges();
        let mut written: HashSet<u64> = HashSet::new();
        for request in take(&mut source, 60_000) {
            let range = &ranges[usize::from(request.stream).min(2)];
            let blocks =
                request.offset_bytes / BLOCK_BYTES..(request.offset_bytes + u64::from(request.bytes)) / BLOCK_BYTES;
            match request.operation {
                RequestOperation::Write => {
                    assert!(request.offset_bytes >= range.start_bytes && request.offset_bytes < range.end_bytes);
                    assert!(request.bytes <= 20 << 10);
                    written.extend(blocks);
                }
                _ => blocks.for_each(|block| assert!(written.remove(&block), "{block} was not written")),
            }
        }
        // Chunks of unfinished requests are stored, but their writes are not all sent.
        let mut slots: HashMap<u64, u64> = HashMap::new();
        for worker in &source.workers {
            assert_eq!(worker.tier.chunks().count(), worker.tier.stored());
            for (key, slot) in worker.tier.chunks() {
                for rank in 0..worker.place.ranks {
                    let first = worker.place.offset_bytes(slot, rank) / BLOCK_BYTES;
                    for block in first..first + worker.place.slot_bytes / BLOCK_BYTES {
                        assert!(slots.insert(block, key).is_none(), "two chunks share block {block}");
                    }
                }
            }
        }
        let strays = written.iter().filter(|block| !slots.contains_key(block)).count();
        assert_eq!(strays, 0, "{eviction:?}: blocks without a chunk");
        let missing = slots.keys().filter(|block| !written.contains(block)).count();
        assert!(missing < slots.len() / 10, "{eviction:?}: {missing} of {} blocks", slots.len());
    }
}

/// With prefix eviction, no stored chunk has lost its predecessor. With plain LRU, some have.
#[test]
fn prefixes_leave_from_their_ends() {
    for requests in
        [PromptSettings::Conversation(SessionSettings::default()), PromptSettings::Agent(SessionSettings::default())]
    {
        let mut source = one(requests, TierEviction::Prefix).source(&drive(128), 3).expect("it fits");
        ask(&mut source, 200_000.0);
        assert!(measure(&source, "evictions") > 1000.0);
        let tier = &source.workers[0].tier;
        let stored: HashSet<u64> = tier.chunks().map(|(key, _)| key).collect();
        for (key, slot) in tier.chunks() {
            if let Some(parent) = tier.parent(slot) {
                assert!(stored.contains(&parent), "chunk {key} is there without {parent}");
            }
        }
    }
}

/// Agents repeat longer prefixes than people. Explicit settings override the defaults.
#[test]
fn sessions_have_their_habits() {
    let hits = |requests: PromptSettings| {
        let mut source = one(requests, TierEviction::Lru).source(&drive(512), 3).expect("it fits");
        ask(&mut source, 300_000.0);
        measure(&source, "hit_ratio")
    };
    // Few enough that all active sessions are stored.
    let said = |turns: f64| SessionSettings { turns: Some(turns), sessions: Some(200), ..SessionSettings::default() };
    let (short, long) = (hits(PromptSettings::Conversation(said(2.0))), hits(PromptSettings::Conversation(said(10.0))));
    assert!(long > short + 0.1, "{short} {long}");
    assert!(hits(PromptSettings::Agent(SessionSettings::default())) > 0.9);
}

#[test]
fn chunks_leave_when_their_time_is_over() {
    let mut settings = one(popular(50.0, 0.9), TierEviction::Ttl);
    // One request per 65.536 us. The catalogue is half as large as the tier and repeats.
    settings.ttl_seconds = 0.01;
    settings.discard = true;
    let mut source = settings.source(&drive(64), 1).expect("it fits");
    ask(&mut source, 100_000.0);
    let (expired, discarded) = (measure(&source, "expired"), measure(&source, "discarded_bytes"));
    assert!(expired > 10_000.0);
    assert_eq!(discarded, expired * 65536.0);
    assert_eq!(measure(&source, "evictions"), 0.0);
    // The tier always holds the chunks written by the last 153 requests.
    assert!(source.workers[0].tier.stored() <= 154, "{}", source.workers[0].tier.stored());
}

/// Workers share the drive by their rates, piece by piece. Placement follows class, worker, rank or
/// session.
#[test]
fn rates_and_placement_are_what_the_settings_say() {
    let class = |bytes_per_second: u64| ChunkClass {
        workers: 2,
        chunk_bytes: MIB,
        ranks: 2,
        requests: PromptSettings::Popular(PopularChunks {
            catalogue_percent: 10_000.0,
            zipf_exponent: 0.0,
            bytes_per_second,
        }),
        ..ChunkClass::default()
    };
    let indices = |placement: KvCachePlacement, count: u16| {
        let settings = KvCacheSettings {
            placement,
            first_placement: 1,
            classes: BTreeMap::from([("a".into(), class(1_000_000_000)), ("b".into(), class(3_000_000_000))]),
            ..KvCacheSettings::default()
        };
        let target = WorkloadTarget { placement_count: count, ..drive(1024) };
        take(&mut settings.source(&target, 1).expect("it fits"), 40_000)
    };
    let requests = indices(KvCachePlacement::Class, 8);
    let fast = requests.iter().filter(|request| request.stream == 1).count() as f64;
    assert!((fast / requests.len() as f64 - 0.75).abs() < 0.01, "{fast}");
    // Neighbouring requests come from different workers.
    let turns = requests.windows(2).filter(|pair| pair[0].stream != pair[1].stream).count();
    assert!(turns > requests.len() / 4, "{turns}");
    assert!(requests.iter().all(|request| request.placement == Some(PlacementIndex(1 + request.stream))));
    let used = |placement: KvCachePlacement, count: u16| {
        let requests = indices(placement, count);
        let used: HashSet<_> = requests.iter().map(|request| request.placement.map(|index| index.0)).collect();
        let mut used: Vec<_> = used.into_iter().collect();
        used.sort_unstable();
        used
    };
    assert_eq!(used(KvCachePlacement::None, 8), [None]);
    assert_eq!(used(KvCachePlacement::Class, 0), [None]);
    assert_eq!(used(KvCachePlacement::Worker, 8), [Some(1), Some(2), Some(3), Some(4)]);
    assert_eq!(used(KvCachePlacement::Rank, 8), [Some(1), Some(2)]);
    assert_eq!(used(KvCachePlacement::Session, 3), [Some(0), Some(1), Some(2)]);
}

/// A scaled model has the same slots, requests and hit ratio, until its chunks are mapping units.
#[test]
fn scaled_models_are_hit_as_often() {
    for requests in [popular(200.0, 0.9), PromptSettings::Conversation(SessionSettings::default())] {
        let run = |denominator: u64| {
            let mut source =
                one(requests.clone(), TierEviction::Lru).source(&scaled_drive(2048, denominator), 1).expect("it fits");
            ask(&mut source, 400_000.0 / (denominator as f64 / 16.0).max(1.0));
            (measure(&source, "all.slots"), measure(&source, "hit_ratio"))
        };
        let (full, same, fewer) = (run(1), run(16), run(128));
        assert_eq!(full, same);
        assert_eq!(fewer.0, full.0 / 8.0);
        assert!((full.1 - fewer.1).abs() < 0.02, "{full:?} {fewer:?}");
    }
}

#[test]
fn a_scaled_model_with_fewer_slots_measures_it() {
    let merged = |keep_requests: bool, denominator: u64| {
        let mut target = scaled_drive(2048, denominator);
        target.scaled_model = target.scaled_model.map(|model| ScaledModel { keep_requests, ..model });
        let source = one(popular(200.0, 0.9), TierEviction::Lru).source(&target, 1).expect("it fits");
        let found = source.measures().into_iter().find(|measure| measure.name.ends_with(MERGED_SLOTS));
        found.map(|measure| (measure.name, measure.value))
    };
    // The drive has 29,000 slots. Chunks of 64 KiB become mapping units at 1/16, and keep their size in
    // virtual time. Thousands of slots are enough.
    assert_eq!((merged(false, 1), merged(false, 128), merged(true, 16)), (None, None, None));
    assert_eq!(merged(false, 1024), Some(("all.merged_slots".to_string(), 64.0)));
    assert_eq!(merged(true, 64), Some(("all.merged_slots".to_string(), 64.0)));
}

fn trace(lines: &str) -> (tempfile::NamedTempFile, KvCacheSettings) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(lines.as_bytes()).expect("it is written");
    let files = vec![file.path().to_path_buf()];
    (file, one(PromptSettings::Mooncake(MooncakeSettings { files }), TierEviction::Lru))
}

#[test]
fn traces_of_requests_are_looked_up() {
    let lines = "{\"timestamp\": 0, \"input_length\": 1500, \"hash_ids\": [1, 2, 3]}\n\n\
                 {\"timestamp\": 20, \"hash_ids\": [1, 2, 4]}\n{\"timestamp\": 10, \"hash_ids\": [9]}\n";
    let (_file, settings) = trace(lines);
    let once = WorkloadTarget { endless: false, ..drive(64) };
    let mut source = settings.source(&once, 1).expect("it fits");
    // 1, 2, 3, 4 and 9 are written. 1 and 2 hit.
    assert_eq!(take(&mut source, 1000).len(), 5);
    assert!((measure(&source, "hit_ratio") - 2.0 / 7.0).abs() < 1e-9);
    // In a second pass, all keys are new.
    let mut source = settings.source(&drive(64), 1).expect("it fits");
    assert_eq!(take(&mut source, 50).len(), 1000);
    assert!((measure(&source, "hit_ratio") - 2.0 / 7.0).abs() < 1e-3);
}

#[test]
fn chunks_of_a_trace_are_named_by_hashes_of_64_bits() {
    let lines = "{\"timestamp\": 0, \"hash_ids\": [18446744073709551615, -9223372036854775808]}\n\
                 {\"timestamp\": 20, \"hash_ids\": [18446744073709551615, -9223372036854775808, -7]}\n";
    let (_file, settings) = trace(lines);
    let once = WorkloadTarget { endless: false, ..drive(64) };
    let mut source = settings.source(&once, 1).expect("it fits");
    assert_eq!(take(&mut source, 1000).len(), 3);
    assert!((measure(&source, "hit_ratio") - 2.0 / 5.0).abs() < 1e-9);
}

#[test]
fn bad_traces_are_named() {
    let (file, settings) = trace("{\"timestamp\": 0, \"hash_ids\": [1]}\n{\"timestamp\": 0}\n");
    let mut source = settings.source(&drive(64), 1).expect("it fits");
    let mut requests = Vec::new();
    assert_eq!(source.next_batch(&mut requests, 10).expect("what came before"), 1);
    let error = source.next_batch(&mut requests, 10).expect_err("a bad line").to_string();
    let name = file.path().display();
    assert_eq!(
        error,
        format!(
            "{name}:2: the line is not JSON with a timestamp (milliseconds) and hash_ids (a list of 64-bit integers)"
        )
    );
    assert_eq!(source.next_batch(&mut requests, 10).expect("the end"), 0);
}

/// A catalogue that fits is written once, and then the workload ends.
#[test]
fn it_ends_when_everything_is_there() {
    let mut source = one(popular(50.0, 0.5), TierEviction::Lru).source(&drive(16), 1).expect("it fits");
    assert_eq!(take(&mut source, 10_000).len(), 128);
}

#[test]
fn half_of_what_is_missed_is_written() {
    let mut settings = one(popular(10_000.0, 0.0), TierEviction::Lru);
    settings.classes.get_mut("all").expect("the class").admit_percent = 50.0;
    let mut source = settings.source(&drive(64), 1).expect("it fits");
    ask(&mut source, 100_000.0);
    let written = source.workers[0].counters.written_bytes as f64 / 65536.0;
    assert!((written / (100_000.0 * 0.99) - 0.5).abs() < 0.01, "{written}");
}

/// Che's approximation with a memory of requests. All chunks are equally popular. `again` is the chance that
/// the last request of a chunk is in the memory, and `hits` is the stored part of the catalogue. A request
/// leaves its chunk stored if the chunk was stored, or if it was remembered and not stored.
#[test]
fn what_is_requested_once_is_not_written() {
    let mut settings = one(popular(1000.0, 0.0), TierEviction::Lru);
    settings.classes.get_mut("all").expect("the class").admit_second_request = true;
    let mut source = settings.source(&drive(64), 1).expect("it fits");
    ask(&mut source, 400_000.0);
    let full = |name: &str| measure(&source, &format!("full.{name}"));
    let again = 1.0 - (1.0 - 1.0 / 10_240_f64).powi(1024);
    let hits = 0.1;
    // stored x kept = hits, and stored = hits + (1 - stored) x again.
    let stored = (hits + again) / (1.0 + again);
    let written = full("chunks_written") / full("chunks_requested");
    assert!((full("hit_ratio") - hits).abs() < 0.002, "{}", full("hit_ratio"));
    assert!((written / ((1.0 - stored) * again) - 1.0).abs() < 0.02, "{written}, not {}", (1.0 - stored) * again);
}

#[test]
fn impossible_settings_are_named() {
    let with = |change: fn(&mut KvCacheSettings)| {
        let mut settings = one(PromptSettings::default(), TierEviction::Lru);
        change(&mut settings);
        settings.source(&drive(64), 1).err().expect("it cannot be").to_string()
    };
    assert_eq!(
        with(|settings| settings.classes.clear()),
        "classes is missing. Define a class of objects, for example [workload.classes.chat]"
    );
    assert_eq!(with(|settings| settings.used_percent = 0.0), "used_percent = 0 must be from 0.1 to 100");
    assert_eq!(
        with(|settings| settings.classes.get_mut("all").expect("it").ranks = 3),
        "classes.all.chunk_bytes = 65536 must be a multiple of 12288 bytes and at most 1 GiB"
    );
    assert_eq!(
        with(|settings| settings.classes.get_mut("all").expect("it").chunk_bytes = 64 * MIB),
        "classes.all has room for 1 chunks in a worker's share, but 2 are needed. Use a larger share or scale"
    );
    assert_eq!(
        with(|settings| settings.classes.get_mut("all").expect("it").requests =
            PromptSettings::Mooncake(MooncakeSettings::default())),
        "classes.all.requests.files is missing. Name the trace's files"
    );
}
