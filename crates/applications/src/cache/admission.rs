//! Admission policies: which items the flash cache accepts.
//!
//! The dynamic policy compares the write rate with a target once per interval. It then raises or
//! lowers the probability of admission within limits (CacheLib docs, "Admission policy"). Its
//! constants are those of navy/admission_policy/DynamicRandomAP.{h,cpp}. A workload has no clock,
//! so the policy derives time from the number of operations and a configured rate.
//!
//! The second-request policy remembers recent offers. CacheLib's RejectFirstAP.h uses Bloom filters
//! with occasional false positives. This model remembers keys exactly.

use std::collections::VecDeque;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use workload::WorkloadError;
use workload::fio::power;

/// Policy that decides which items flash accepts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum AdmissionPolicy {
    Always,
    /// Accepts each item with the same probability.
    Probabilistic {
        /// Probability, percent.
        admit_percent: f64,
    },
    /// Prefers small items and adapts the probability to keep a write rate.
    DynamicRandom {
        /// Target write rate on the drive at full size, bytes per second.
        #[serde(with = "base::size")]
        target_bytes_per_second: u64,
        /// Maximum rate after times with fewer writes, bytes per second (160 MiB in CacheLib).
        #[serde(with = "base::size", default = "max_rate")]
        max_bytes_per_second: u64,
        /// Cache operations per second on the drive at full size. They define the clock.
        operations_per_second: f64,
    },
    /// Accepts items offered twice within a window. An item offered once is not written.
    SecondRequest {
        /// Window, operations on the full-size cache. A scaled model uses 1/d of it.
        window_operations: u64,
    },
}

fn max_rate() -> u64 {
    160 << 20
}

/// Seconds between two updates of the probability.
const INTERVAL_SECONDS: f64 = 60.0;
/// Time over which the policy keeps the rate, seconds. It adds unwritten bytes to later targets.
const HORIZON_SECONDS: f64 = 86_400.0;
/// Size with a base probability of 1, bytes.
const BASE_BYTES: u64 = 4096;
/// Exponent of the decrease for larger items.
const SIZE_DECAY: f64 = 0.3;
/// Largest change of the factor per interval.
const CHANGE_WINDOW: f64 = 0.25;
const FACTOR_BOUNDS: (f64, f64) = (0.001, 10.0);

impl AdmissionPolicy {
    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        match *self {
            AdmissionPolicy::Probabilistic { admit_percent } if !(0.0..=100.0).contains(&admit_percent) => {
                let setting = format!("admission.admit_percent = {admit_percent}");
                Err(WorkloadError::setting(setting, "must be from 0 to 100"))
            }
            AdmissionPolicy::DynamicRandom { target_bytes_per_second, operations_per_second, .. }
                if target_bytes_per_second == 0
                    || !(operations_per_second > 0.0 && operations_per_second.is_finite()) =>
            {
                let setting = format!(
                    "admission.target_bytes_per_second = {target_bytes_per_second}, operations_per_second = {operations_per_second}"
                );
                Err(WorkloadError::setting(setting, "must be above 0 each"))
            }
            AdmissionPolicy::SecondRequest { window_operations: 0 } => Err(WorkloadError::setting(
                "admission.window_operations = 0",
                "must be at least 1, because 0 would admit no object",
            )),
            _ => Ok(()),
        }
    }
}

/// An item offered to flash, with the progress of the cache.
pub(crate) struct AdmissionRequest {
    /// Hash of its key.
    pub(crate) key: u64,
    /// Key and value.
    pub(crate) bytes: u64,
    /// Operations on the cache so far.
    pub(crate) operations: u64,
    /// Bytes written to flash so far.
    pub(crate) written_bytes: u64,
}

/// Recently offered keys.
#[derive(Debug, Default)]
pub(crate) struct RecentOffers {
    /// Operation count at the last offer of each key.
    last: FxHashMap<u64, u64>,
    /// Offers as pairs of operation count and key, oldest first.
    order: VecDeque<(u64, u64)>,
}

impl RecentOffers {
    /// Records an offer. Returns true if the same key was offered within the window.
    pub(crate) fn record_offer(&mut self, key: u64, now: u64, window: u64) -> bool {
        while let Some(&(then, old)) = self.order.front()
            && now - then > window
        {
            self.order.pop_front();
            if self.last.get(&old) == Some(&then) {
                self.last.remove(&old);
            }
        }
        self.order.push_back((now, key));
        self.last.insert(key, now).is_some()
    }
}

/// Memory of a remembered offer in the queue and the hash table, including their spare capacity, bytes.
pub(crate) const OFFER_BYTES: u64 = 72;

pub(crate) struct AdmissionState {
    policy: AdmissionPolicy,
    random: Xoshiro256PlusPlus,
    /// Scale of the model: full-size drive to modelled drive.
    denominator: f64,
    /// Factor on the probability of every item.
    factor: f64,
    updated_at_seconds: f64,
    written_bytes_then: u64,
    offered: RecentOffers,
}

impl AdmissionState {
    pub(crate) fn new(policy: AdmissionPolicy, denominator: u64, random: Xoshiro256PlusPlus) -> AdmissionState {
        AdmissionState {
            policy,
            random,
            denominator: denominator as f64,
            factor: 1.0,
            updated_at_seconds: 0.0,
            written_bytes_then: 0,
            offered: RecentOffers::default(),
        }
    }

    pub(crate) fn memory_bytes(policy: AdmissionPolicy, denominator: u64) -> u64 {
        match policy {
            AdmissionPolicy::SecondRequest { window_operations } => {
                (window_operations / denominator).saturating_mul(OFFER_BYTES)
            }
            _ => 0,
        }
    }

    /// Returns true if flash accepts the item.
    pub(crate) fn admits(&mut self, offer: &AdmissionRequest) -> bool {
        match self.policy {
            AdmissionPolicy::Always => true,
            AdmissionPolicy::Probabilistic { admit_percent } => self.draw() * 100.0 < admit_percent,
            AdmissionPolicy::DynamicRandom { target_bytes_per_second, max_bytes_per_second, operations_per_second } => {
                let now = offer.operations as f64 * self.denominator / operations_per_second;
                if now - self.updated_at_seconds >= INTERVAL_SECONDS {
                    self.update(now, offer.written_bytes, target_bytes_per_second as f64, max_bytes_per_second as f64);
                }
                self.draw() < base_probability(offer.bytes) * self.factor
            }
            AdmissionPolicy::SecondRequest { window_operations } => {
                let window = (window_operations as f64 / self.denominator) as u64;
                self.offered.record_offer(offer.key, offer.operations, window.max(1))
            }
        }
    }

    /// Draws a number in 0..1.
    fn draw(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn update(&mut self, now: f64, written_bytes: u64, target: f64, max: f64) {
        let seconds = now - std::mem::replace(&mut self.updated_at_seconds, now);
        let written = written_bytes as f64 * self.denominator;
        let since = (written_bytes - std::mem::replace(&mut self.written_bytes_then, written_bytes)) as f64;
        let observed = since * self.denominator / seconds;
        if observed == 0.0 {
            return;
        }
        let by_then = target * (now + HORIZON_SECONDS);
        let wanted = ((by_then - written) / HORIZON_SECONDS).clamp(0.0, max);
        let change = (wanted / observed).clamp(1.0 - CHANGE_WINDOW, 1.0 + CHANGE_WINDOW);
        self.factor = (self.factor * change).clamp(FACTOR_BOUNDS.0, FACTOR_BOUNDS.1);
    }
}

/// Base probability of an item, from the number of bits of its size.
fn base_probability(bytes: u64) -> f64 {
    let bits = |bytes: u64| f64::from(64 - bytes.leading_zeros());
    power::pow(bits(BASE_BYTES) / bits(bytes.max(1)), SIZE_DECAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn gate(policy: AdmissionPolicy, denominator: u64) -> AdmissionState {
        AdmissionState::new(policy, denominator, Xoshiro256PlusPlus::seed_from_u64(1))
    }

    fn offer(key: u64, bytes: u64, operations: u64, written_bytes: u64) -> AdmissionRequest {
        AdmissionRequest { key, bytes, operations, written_bytes }
    }

    #[test]
    fn what_comes_twice_within_the_window_is_admitted() {
        let random = |step: u64| workload::random::mix(step) % 300;
        for (window, denominator) in [(1, 1), (100, 1), (6400, 64), (1_000_000, 1)] {
            let mut gate = gate(AdmissionPolicy::SecondRequest { window_operations: window }, denominator);
            let (mut last, mut admitted) = (std::collections::HashMap::new(), 0);
            // Only some operations offer an item.
            for now in (1..30_000_u64).filter(|now| now % 3 > 0) {
                let before = last.insert(random(now), now);
                let expected = before.is_some_and(|before| now - before <= window / denominator);
                assert_eq!(gate.admits(&offer(random(now), 100, now, 0)), expected, "at {now}");
                admitted += u64::from(expected);
            }
            assert!(admitted > 10, "window {window}: {admitted}");
            let known = gate.offered.last.len() as u64;
            assert!(known <= (window / denominator).min(300) + 1, "{known} keys are remembered");
        }
    }

    #[test]
    fn a_share_is_admitted() {
        let mut gate = gate(AdmissionPolicy::Probabilistic { admit_percent: 30.0 }, 1);
        let admitted = (0..100_000).filter(|step| gate.admits(&offer(*step, 100, *step, 0))).count();
        assert!(admitted.abs_diff(30_000) < 600, "{admitted}");
    }

    #[test]
    fn a_rate_is_kept_on_drive_and_scaled_model() {
        const TARGET: f64 = 50.0 * 1024.0 * 1024.0;
        const OPERATIONS_PER_SECOND: f64 = 10_000.0;
        // Items of `STEP` operations in one offer. They offer three times the target.
        const STEP: u64 = 4096;
        let offered_bytes = (3.0 * TARGET / OPERATIONS_PER_SECOND) as u64 * STEP;
        for denominator in [1, 64] {
            let policy = AdmissionPolicy::DynamicRandom {
                target_bytes_per_second: TARGET as u64,
                max_bytes_per_second: max_rate(),
                operations_per_second: OPERATIONS_PER_SECOND,
            };
            let mut gate = gate(policy, denominator);
            let seconds = |steps: u64| (steps * STEP * denominator) as f64 / OPERATIONS_PER_SECOND;
            let steps = (1..).find(|steps| seconds(*steps) > 4.0 * 86_400.0).unwrap();
            let (mut written, mut after_a_day) = (0, 0);
            for step in 0..steps {
                written += offered_bytes * u64::from(gate.admits(&offer(step, 4096, step * STEP, written)));
                after_a_day = if step == steps / 4 { written } else { after_a_day };
            }
            let rate = (written - after_a_day) as f64 * denominator as f64 / seconds(steps - steps / 4);
            let ratio = rate / TARGET;
            assert!((0.9..1.1).contains(&ratio), "1/{denominator}: {ratio} of the target");
        }
    }

    #[test]
    fn large_items_are_less_likely() {
        assert!((base_probability(4096) - 1.0).abs() < 1e-12);
        // 400,000 has 19 bits, the base size has 13.
        assert!((base_probability(400_000) - (13.0_f64 / 19.0).powf(0.3)).abs() < 1e-12);
    }
}
