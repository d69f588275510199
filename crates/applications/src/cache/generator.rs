//! Generator of a synthetic stream of cache operations.
//!
//! Keys are ranks, drawn by popularity and independent of each other (IRM). A key's size is a
//! function of its hash, so it stays the same without state per key. Some gets ask for keys that
//! are never stored. Traces contain them as gets of size 0.
//!
//! The generator has no time of day, no change of popularity over time, no bursts and no expiry.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use super::preset::WorkloadStatistics;
use super::{CacheOperation, OperationKind};
use crate::distribution::{RankDistribution, SizeDistribution};
use workload::WorkloadTarget;
use workload::random::mix;

/// Items with more bytes of key and value are large.
const LARGE_BYTES: u32 = 2048;

impl WorkloadStatistics {
    /// Number of keys on a drive of `device_bytes` at full size, divided by `denominator`.
    fn keys(&self, sizes: &SizeDistribution, device_bytes: u64, denominator: u64) -> u64 {
        let object_bytes = sizes.mean() + f64::from(self.key_bytes);
        let working_set_bytes = device_bytes as f64 * self.working_set_percent / 100.0;
        (working_set_bytes / object_bytes / denominator as f64).max(1.0) as u64
    }

    /// Maximum number of objects in a cache on this drive, one for each key.
    pub(crate) fn objects_max(&self, target: &WorkloadTarget) -> u64 {
        self.keys(&SizeDistribution::new(&self.value_quantiles), target.device_bytes, target.denominator())
    }
}

pub(crate) struct OperationGenerator {
    random: Xoshiro256PlusPlus,
    popularity: RankDistribution,
    sizes: SizeDistribution,
    key_bytes: u32,
    /// Cumulative bounds of 2^32 for gets of absent keys, gets and sets. Deletes are the rest.
    bounds: [u64; 3],
    /// Acceptance thresholds of 2^32 for sets of small and large keys. A rejected set draws another
    /// key.
    kept_sets: [u64; 2],
    salt: u64,
}

impl OperationGenerator {
    /// Creates a generator for a drive of `device_bytes` at full size, scaled down by
    /// `denominator`.
    pub(crate) fn new(
        statistics: &WorkloadStatistics,
        device_bytes: u64,
        denominator: u64,
        mut random: Xoshiro256PlusPlus,
    ) -> OperationGenerator {
        let sizes = SizeDistribution::new(&statistics.value_quantiles);
        let keys = statistics.keys(&sizes, device_bytes, denominator);
        let (get, set) = (statistics.get_percent, statistics.set_percent);
        let absent = get * statistics.absent_get_percent / 100.0;
        let bound = |percent: f64| (percent / 100.0 * 4_294_967_296.0) as u64;
        OperationGenerator {
            salt: random.next_u64(),
            random,
            popularity: RankDistribution::new(keys, denominator, statistics.zipf_alpha),
            sizes,
            key_bytes: statistics.key_bytes,
            kept_sets: [1.0 / statistics.large_set_weight, statistics.large_set_weight]
                .map(|weight| bound(100.0 * weight.min(1.0))),
            bounds: [bound(absent), bound(get), bound(get + set)],
        }
    }

    pub(crate) fn next(&mut self) -> CacheOperation {
        let roll = self.random.next_u64() >> 32;
        if roll < self.bounds[0] {
            // A random key outside the key space. It is never stored, so the get always misses.
            let key = mix(self.random.next_u64() ^ self.salt);
            return CacheOperation { kind: OperationKind::Get, key, bytes: None };
        }
        let kind = match roll {
            roll if roll < self.bounds[1] => OperationKind::Get,
            roll if roll < self.bounds[2] => OperationKind::Set,
            _ => OperationKind::Delete,
        };
        let (key, bytes) = match kind {
            OperationKind::Set => self.draw_key_to_set(),
            OperationKind::Get | OperationKind::Delete => self.draw_key(),
        };
        CacheOperation { kind, key, bytes: Some(bytes) }
    }

    fn draw_key(&mut self) -> (u64, u32) {
        let key = mix(self.popularity.draw(&mut self.random) ^ self.salt);
        (key, self.key_bytes + self.sizes.size(mix(key) as u32))
    }

    fn draw_key_to_set(&mut self) -> (u64, u32) {
        loop {
            let (key, bytes) = self.draw_key();
            if self.random.next_u64() >> 32 < self.kept_sets[usize::from(bytes > LARGE_BYTES)] {
                return (key, bytes);
            }
        }
    }
}
