//! Fuzz test of model settings: each run gives an error that names a setting, or stays on its
//! drive.
//!
//! Settings come from lists of defaults, limits and values beyond the limits. The same seed must
//! give the same result, independent of the batch sizes.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use workload::random::below;
use workload::{IoRequest, RequestSource, Workload};

use crate::WorkloadSpec;
use crate::testing::scaled_drive;

/// A setting and its candidate values in TOML.
type Choices = (&'static str, &'static [&'static str]);

const KINDS: [(&str, &[Choices]); 5] = [
    (
        "random_writes",
        &[
            ("block_bytes", &["4096", "65536", "1000"]),
            ("zipf_exponent", &["0.0", "0.8", "1.0", "3.0", "-1.0"]),
            ("hot_blocks_percent", &["0.001", "20", "100", "101"]),
            ("hot_writes_percent", &["0", "80", "100"]),
            ("scattered", &["true", "false"]),
            (
                "zones",
                &[
                    "{ bytes = \"1MiB\", open = 1 }",
                    "{ bytes = \"16MiB\", open = 2, discard = true }",
                    "{ bytes = \"1TiB\", open = 1 }",
                    "{ bytes = \"1MiB\", open = 0 }",
                ],
            ),
        ],
    ),
    (
        "btree",
        &[
            ("driver", &["\"ycsb\"", "\"tpcc\""]),
            ("mix", &["\"a\"", "\"b\"", "\"c\"", "\"d\"", "\"e\"", "\"f\"", "\"overwrite\"", "\"load\""]),
            ("popularity", &["\"zipf\"", "\"uniform\"", "\"latest\""]),
            ("zipf_exponent", &["0.0", "0.5", "1.0", "3.0", "-1.0"]),
            ("data_percent", &["1", "30", "75", "97", "0.0", "150"]),
            ("record_bytes", &["16", "128", "4096", "5000"]),
            ("page_bytes", &["4096", "16384", "65536", "1000"]),
            ("page_fill_percent", &["1", "69", "100", "101"]),
            ("pool_percent", &["0.01", "10", "100"]),
            ("layout", &["\"in_place\"", "\"out_of_place\"", "\"copy_on_write\""]),
            ("torn_pages", &["\"none\"", "\"doublewrite\"", "\"full_page_writes\""]),
            ("doublewrite_bytes", &["4096", "1048576", "1073741824"]),
            ("flush_pages", &["1", "64", "65536", "0"]),
            ("wal", &["true", "false"]),
            ("log_bytes", &["4096", "1048576", "1073741824"]),
            ("transactions_per_sync", &["0", "1", "100"]),
            ("checkpoints_kept", &["1", "2", "16", "0"]),
            ("children_per_inner_page", &["0", "2", "100", "1", "65536"]),
            ("transactions_per_checkpoint", &["0", "1", "1000"]),
            ("index_percent", &["0", "3", "40"]),
            ("unchanged_percent", &["0", "5", "40", "100"]),
            ("undo_bytes", &["0", "4096", "1048576", "1000"]),
            ("checkpoints", &["\"fuzzy\"", "\"spread\""]),
            ("space_percent", &["10", "60", "90", "99"]),
            ("compressed_percent", &["1", "37", "100"]),
            ("zone_bytes", &["4096", "1048576", "1073741824"]),
            ("groups", &["1", "4", "32", "33"]),
            ("placement", &["\"none\"", "\"stream\""]),
            ("discard", &["true", "false"]),
            ("reads", &["true", "false"]),
        ],
    ),
    (
        "lsm",
        &[
            ("mix", &["\"a\"", "\"b\"", "\"d\"", "\"e\"", "\"f\"", "\"overwrite\"", "\"load\""]),
            ("bulk_load", &["true", "false"]),
            ("popularity", &["\"zipf\"", "\"uniform\"", "\"latest\""]),
            ("data_percent", &["1", "30", "75", "95", "0.0"]),
            ("key_bytes", &["0", "23", "1000"]),
            ("value_bytes", &["100", "1000", "65536", "0"]),
            ("compaction", &["\"levelled\"", "\"tiered\"", "\"fifo\""]),
            ("memtable_bytes", &["65536", "1048576", "67108864"]),
            ("table_bytes", &["65536", "1048576", "67108864"]),
            ("base_level_bytes", &["1048576", "268435456"]),
            ("level_multiplier", &["2", "10", "1"]),
            ("levels", &["2", "7", "10", "11"]),
            ("level_zero_tables", &["2", "4", "20"]),
            ("dynamic_levels", &["true", "false"]),
            ("size_ratio_percent", &["0", "1", "100"]),
            ("space_amplification_percent", &["1", "200"]),
            ("wal", &["true", "false"]),
            ("writes_per_sync", &["0", "1", "50"]),
            ("write_bytes", &["4096", "1048576", "1000"]),
            ("placement", &["\"none\"", "\"level\"", "\"rocksdb\"", "\"lifetime\"", "\"table\"", "\"family\""]),
            ("placement_table", &["[0, 1, 200]", "[]"]),
            ("recycle_wal", &["true", "false"]),
            ("max_total_wal_bytes", &["1048576", "16777216", "1000"]),
            ("atomic_flush", &["true", "false"]),
            (
                "families",
                &[
                    "{ one = {} }",
                    "{ one = {}, two = {} }",
                    "{ hot = { data_share = 1, operation_share = 9, memtable_bytes = \"256KiB\" }, cold = { data_share = 9 } }",
                    "{ levels = { mix = \"a\" }, runs = { compaction = \"tiered\", levels = 4 }, cache = { compaction = \"fifo\" } }",
                    "{ small = { value_bytes = 100 }, large = { value_bytes = 5000, memtable_bytes = \"1MiB\", table_bytes = \"1MiB\" } }",
                    "{ used = { level_placements = [1, 200] }, kept = { operation_share = 0 } }",
                    "{ read = { mix = \"c\" }, loaded = { mix = \"load\" } }",
                    "{ none = { operation_share = 0 } }",
                    "{ odd = { levels = 11 } }",
                    "{ odd = { data_share = 0 } }",
                    "{}",
                ],
            ),
            ("discard", &["true", "false"]),
            ("reads", &["true", "false"]),
        ],
    ),
    (
        "object_cache",
        &[
            ("used_percent", &["1", "50", "89", "100", "0", "101"]),
            ("layout", &["\"slots\"", "\"segments\""]),
            ("eviction", &["\"fifo\"", "\"lru\"", "\"lfu\"", "\"ttl\"", "\"clock\"", "\"least_valid\""]),
            ("groups", &["\"none\"", "\"class\"", "\"ttl\"", "\"rewritten\""]),
            ("placement", &["true", "false"]),
            ("slot_bytes", &["4096", "65536", "1000"]),
            ("growth_factor", &["1.05", "2", "1024", "1.0"]),
            ("slab_bytes", &["1048576", "4194304", "4096"]),
            ("segment_bytes", &["1048576", "67108864", "262144"]),
            ("reinsert_uses", &["0", "1", "3"]),
            ("compact_percent", &["0", "30", "80", "99", "100"]),
            ("compact_under", &["0", "1", "3"]),
            ("unchanged_percent", &["0", "9", "50", "-1"]),
            ("max_object_bytes", &["1", "5000", "262144", "1048576"]),
            ("write_bytes", &["4096", "131072", "1073741824", "5000"]),
            ("discard", &["true", "false"]),
            ("reads", &["true", "false"]),
            (
                "admission",
                &[
                    "{ policy = \"probabilistic\", admit_percent = 40 }",
                    "{ policy = \"second_request\", window_operations = 100000 }",
                    "{ policy = \"second_request\", window_operations = 0 }",
                ],
            ),
            ("dram_bytes", &["0", "4096", "16777216"]),
            ("ttl_quantiles", &["[[0, 1], [100, 1]]", "[[0, 1], [50, 60], [100, 86400]]", "[[0, 1]]"]),
            ("operations_per_second", &["0.1", "1000", "1e9", "0"]),
            ("preset", &["\"cdn\"", "\"twitter12\"", "\"twitter37\"", "\"kvcache_202206\""]),
            ("lookaside", &["true"]),
        ],
    ),
    (
        "kvcache_tier",
        &[
            ("used_percent", &["1", "50", "89", "100", "0", "101"]),
            ("eviction", &["\"fifo\"", "\"lru\"", "\"lfu\"", "\"ttl\"", "\"prefix\"", "\"clock\""]),
            ("ttl_seconds", &["1", "3600"]),
            ("placement", &["\"none\"", "\"class\"", "\"worker\"", "\"rank\"", "\"session\""]),
            ("first_placement", &["0", "1", "9"]),
            ("write_bytes", &["4096", "131072", "5000"]),
            ("discard", &["true", "false"]),
            ("reads", &["true", "false"]),
            (
                "classes",
                &[
                    "{ one = {} }",
                    "{ one = { workers = 3, chunk_bytes = \"256KiB\", ranks = 2 }, two = { share = 7, admit_percent = 10 } }",
                    "{ talk = { chunk_bytes = \"64KiB\", requests = { kind = \"conversation\", sessions = 20 } } }",
                    "{ agent = { chunk_bytes = \"64KiB\", requests = { kind = \"agent\", sessions = 5, turn_chunks = 3 } } }",
                    "{ odd = { chunk_bytes = 5000, requests = { kind = \"popular\", catalogue_percent = 10 } } }",
                    "{ none = { workers = 0 } }",
                    "{}",
                ],
            ),
        ],
    ),
];

/// Draws settings of a kind. Each setting is present with probability 1/5.
fn drawn(random: &mut Xoshiro256PlusPlus, kind: usize) -> String {
    let (name, settings) = KINDS[kind];
    let mut text = format!("kind = \"{name}\"\n");
    for (setting, values) in settings {
        if below(random, 5) == 0 {
            let value = values[below(random, values.len() as u64) as usize];
            text += &format!("{setting} = {value}\n");
        }
    }
    text
}

fn requests(source: &mut dyn RequestSource, batch: usize) -> Vec<IoRequest> {
    let mut requests = Vec::new();
    while requests.len() < 3000 {
        let limit = batch.min(3000 - requests.len());
        match source.next_batch(&mut requests, limit) {
            Ok(0) => break,
            Ok(_) => {}
            // An error such as a full drive ends the source for good.
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    requests
}

#[test]
fn any_settings_are_an_error_or_a_workload_that_stays_on_its_drive() {
    let mut ran = [0; KINDS.len()];
    for seed in 0..500_u64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let kind = (seed % KINDS.len() as u64) as usize;
        let text = drawn(&mut random, kind);
        let denominator = [1, 64, 128][below(&mut random, 3) as usize];
        let target = scaled_drive([32, 64, 100][below(&mut random, 3) as usize] * denominator, denominator);
        let table = toml::from_str(&text).expect("TOML");
        let made = WorkloadSpec::parse("workload", &table, &|_| unreachable!("no job file is named"))
            .and_then(|spec| Ok((spec.source(&target, seed)?, spec.source(&target, seed)?)));
        let (mut source, mut again) = match made {
            Ok(made) => made,
            Err(error) => {
                let sentence = error.to_string();
                assert!(sentence.len() > 10, "seed {seed}: {sentence}\n{text}");
                continue;
            }
        };
        let found = requests(&mut *source, 100);
        assert!(found == requests(&mut *again, 7), "seed {seed}: other requests in other batches\n{text}");
        let streams = source.streams().len();
        for request in &found {
            let end = request.offset_bytes + u64::from(request.bytes);
            assert!(
                request.bytes > 0 && end <= target.capacity_bytes() && usize::from(request.stream) < streams,
                "seed {seed}: {request:?} of {} bytes\n{text}",
                target.capacity_bytes()
            );
            let is_placed = request.placement.is_none_or(|index| index.0 < target.placement_count);
            assert!(is_placed, "seed {seed}: {request:?}\n{text}");
        }
        ran[kind] += usize::from(!found.is_empty());
    }
    assert!(ran.iter().all(|ran| *ran >= 10), "most are errors: {ran:?}");
}
