//! The synthetic stream of cache operations.
//!
//! Keys are ranks drawn by popularity, one independent of the other (IRM); a key's size follows from its hash, so it is the same whenever the
//! key comes and nothing is kept per key. Some gets ask for keys that nobody ever stores: traces have them as gets of size 0.
//!
//! It does not model times of day, keys that become popular and are forgotten again, bursts, or times to live.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use super::preset::Statistics;
use super::{CacheOperation, Kind};
use crate::distribution::{Popularity, Sizes};
use workload::Target;
use workload::random::mix;

/// Keys and values above this are large.
const LARGE_BYTES: u32 = 2048;

impl Statistics {
    /// Keys on a drive of `device_bytes` at full size, of which a part 1/`denominator` is modelled.
    fn keys(&self, sizes: &Sizes, device_bytes: u64, denominator: u64) -> u64 {
        let object_bytes = sizes.mean() + f64::from(self.key_bytes);
        let working_set_bytes = device_bytes as f64 * self.working_set_percent / 100.0;
        (working_set_bytes / object_bytes / denominator as f64).max(1.0) as u64
    }

    /// Objects that a cache on a drive can have at most: one for each key.
    pub(crate) fn objects_max(&self, target: &Target) -> u64 {
        self.keys(
            &Sizes::new(&self.value_quantiles),
            target.device_bytes,
            target.denominator(),
        )
    }
}

/// Draws operations for ever.
#[derive(Debug)]
pub(crate) struct Generator {
    random: Xoshiro256PlusPlus,
    popularity: Popularity,
    sizes: Sizes,
    key_bytes: u32,
    /// Bounds of 2^32 of: gets of absent keys, gets, sets; the rest deletes.
    bounds: [u64; 3],
    /// Of 2^32: sets of small keys that are kept, and of large ones; the others draw another key.
    kept_sets: [u64; 2],
    salt: u64,
}

impl Generator {
    /// For a drive of `device_bytes` at full size, of which a part 1/`denominator` is modelled.
    pub(crate) fn new(
        statistics: &Statistics,
        device_bytes: u64,
        denominator: u64,
        mut random: Xoshiro256PlusPlus,
    ) -> Generator {
        let sizes = Sizes::new(&statistics.value_quantiles);
        let keys = statistics.keys(&sizes, device_bytes, denominator);
        let (get, set) = (statistics.get_percent, statistics.set_percent);
        let absent = get * statistics.absent_get_percent / 100.0;
        let bound = |percent: f64| (percent / 100.0 * 4_294_967_296.0) as u64;
        Generator {
            salt: random.next_u64(),
            random,
            popularity: Popularity::new(keys, denominator, statistics.zipf_alpha),
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
            // A key of its own: nobody stores it, so nobody ever finds it.
            let key = mix(self.random.next_u64() ^ self.salt);
            return CacheOperation {
                kind: Kind::Get,
                key,
                bytes: None,
            };
        }
        let kind = match roll {
            roll if roll < self.bounds[1] => Kind::Get,
            roll if roll < self.bounds[2] => Kind::Set,
            _ => Kind::Delete,
        };
        let (key, bytes) = match kind {
            Kind::Set => self.draw_key_to_set(),
            Kind::Get | Kind::Delete => self.draw_key(),
        };
        CacheOperation {
            kind,
            key,
            bytes: Some(bytes),
        }
    }

    /// A key, and its length with its value's.
    fn draw_key(&mut self) -> (u64, u32) {
        let key = mix(self.popularity.draw(&mut self.random) ^ self.salt);
        (key, self.key_bytes + self.sizes.of(mix(key) as u32))
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
