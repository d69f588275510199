//! Lateness of completions, relative to the times of the model.
//!
//! With timing, a drive completes commands at the times of the model. The code that delays
//! completions records here how late each one went out. The lateness is the only sign of a machine
//! that is too slow for the drive.

use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use ssd::Nanos;

/// Significant decimal digits of a recorded lateness.
const DIGITS: u8 = 2;
const LATENESS_MAX_NS: u64 = 60_000_000_000;

/// Lateness recorder, shared by all threads that complete commands.
#[derive(Debug)]
pub struct LagRecorder(Mutex<Histogram<u64>>);

/// Lateness of the completions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionLag {
    /// Completions with a due time.
    pub completions: u64,
    /// Median lateness, nanoseconds.
    pub p50_ns: Nanos,
    /// 99th percentile of the lateness, nanoseconds.
    pub p99_ns: Nanos,
    /// Largest lateness, nanoseconds.
    pub max_ns: Nanos,
}

impl Default for LagRecorder {
    fn default() -> LagRecorder {
        let histogram = Histogram::new_with_max(LATENESS_MAX_NS, DIGITS);
        LagRecorder(Mutex::new(histogram.expect("a range that a histogram can have")))
    }
}

impl LagRecorder {
    /// Records a completion that was due at `due` and went out at `now`.
    pub fn completed(&self, due: Nanos, now: Nanos) {
        let lateness_ns = now.saturating_sub(due);
        // No code panics while it holds the lock, and a histogram is never half-changed.
        let mut histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        histogram.saturating_record(lateness_ns);
    }

    /// The lateness so far.
    pub fn lateness(&self) -> CompletionLag {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match histogram.len() {
            0 => CompletionLag::default(),
            completions => CompletionLag {
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
        let pacing = LagRecorder::default();
        assert_eq!(pacing.lateness(), CompletionLag::default());
        for late in 0..100 {
            pacing.completed(1_000, 1_000 + late);
        }
        pacing.completed(1_000, 0);
        let lateness = pacing.lateness();
        assert_eq!((lateness.completions, lateness.p50_ns, lateness.p99_ns, lateness.max_ns), (101, 49, 98, 99));
        pacing.completed(0, u64::MAX);
        assert!(pacing.lateness().max_ns >= LATENESS_MAX_NS);
    }
}
