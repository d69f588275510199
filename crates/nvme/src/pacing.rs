//! How well completions keep the times that the model gives them.
//!
//! A drive with timing completes a command when the model says so, not when the work was done; whoever holds
//! completions back tells here how late each of them was. A machine that is too slow for the drive shows here, and
//! nowhere else.

use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use ssd::Nanos;

/// Decimal digits that are kept of a lateness.
const DIGITS: u8 = 2;
/// What is later than a minute counts as a minute.
const LATENESS_MAX_NS: u64 = 60_000_000_000;

/// Lateness of completions, shared by all who complete commands.
#[derive(Debug)]
pub struct Pacing(Mutex<Histogram<u64>>);

/// Lateness of the completions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Completions that had a time.
    pub completions: u64,
    /// Half of them were no later than this.
    pub p50_ns: Nanos,
    /// 99 of a hundred were no later than this.
    pub p99_ns: Nanos,
    /// None was later than this.
    pub max_ns: Nanos,
}

impl Default for Pacing {
    fn default() -> Pacing {
        let histogram = Histogram::new_with_max(LATENESS_MAX_NS, DIGITS);
        Pacing(Mutex::new(histogram.expect("a range that a histogram can have")))
    }
}

impl Pacing {
    /// A completion that was due at `due` went out at `now`.
    pub fn completed(&self, due: Nanos, now: Nanos) {
        let lateness_ns = now.saturating_sub(due);
        // Nothing panics with the lock, and a histogram is never half-changed.
        let mut histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        histogram.saturating_record(lateness_ns);
    }

    /// The lateness so far.
    pub fn lateness(&self) -> Lateness {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match histogram.len() {
            0 => Lateness::default(),
            completions => Lateness {
                completions,
                p50_ns: histogram.value_at_quantile(0.5),
                p99_ns: histogram.value_at_quantile(0.99),
                max_ns: histogram.max(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_what_was_recorded() {
        let pacing = Pacing::default();
        assert_eq!(pacing.lateness(), Lateness::default());
        for late in 0..100 {
            pacing.completed(1_000, 1_000 + late);
        }
        pacing.completed(1_000, 0);
        let lateness = pacing.lateness();
        assert_eq!(
            (lateness.completions, lateness.p50_ns, lateness.p99_ns, lateness.max_ns),
            (101, 49, 98, 99)
        );
        pacing.completed(0, u64::MAX);
        assert!(pacing.lateness().max_ns >= LATENESS_MAX_NS);
    }
}
