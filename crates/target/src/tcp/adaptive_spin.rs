//! Adaptive spinning: decides whether a thread polls for input before it sleeps.
//!
//! A sleeping thread wakes late, because a halted processor takes microseconds to resume. In a
//! virtual machine the delay exceeds the time of a command. Spinning occupies a processor that
//! other threads or the host may need. Therefore each failed spin halves the share of waits that
//! begin with a spin, and each successful one doubles it. A host that sends rarely, or that cannot
//! run during the spin, soon costs almost no time. An idle connection costs one spin. At most half
//! of the machine's processors spin at a time.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest spin. A host on the same machine answers within this time, even if it must wake first.
const SPIN_TIME: Duration = Duration::from_micros(50);
/// After this many failures one of `2^FAILURES_MAX` waits begins with a spin.
const FAILURES_MAX: u32 = 10;

/// Number of threads that spin now, and their limit.
static SPINNING: AtomicUsize = AtomicUsize::new(0);
static SPINNING_MAX: LazyLock<usize> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    (processors / 2).max(1)
});

/// Recent results of spinning on a connection.
#[derive(Debug, Default)]
pub struct AdaptiveSpin {
    /// Failed spins minus successful ones, from 0 to `FAILURES_MAX`.
    failures: u32,
    /// Waits that still skip the spin.
    without: u32,
}

impl AdaptiveSpin {
    /// Calls `read` once. If it returns no input and this wait may spin, calls it again whenever
    /// `has_input` returns true, until it returns input or the spin ends. The result is `None` if
    /// `read` fails, and `Some(None)` if no input came.
    pub fn read_spinning<T>(
        &mut self,
        pauses: u32,
        has_input: impl Fn() -> bool,
        read: &mut impl FnMut() -> Option<Option<T>>,
    ) -> Option<Option<T>> {
        if let Some(input) = read()? {
            return Some(Some(input));
        }
        if !self.should_spin() {
            return Some(None);
        }
        let _permit = match SpinPermit::take() {
            Some(permit) => permit,
            None => return Some(None),
        };
        let start = Instant::now();
        while start.elapsed() < SPIN_TIME {
            for _ in 0..pauses {
                std::hint::spin_loop();
            }
            if has_input()
                && let Some(input) = read()?
            {
                self.note(true);
                return Some(Some(input));
            }
        }
        self.note(false);
        Some(None)
    }

    /// Returns whether this wait begins with a spin.
    fn should_spin(&mut self) -> bool {
        assert!(
            self.without < 1 << FAILURES_MAX,
            "{} waits skip their spin, fewer than 2^{FAILURES_MAX}",
            self.without
        );
        let spins = self.without == 0;
        self.without = self.without.saturating_sub(1);
        spins
    }

    fn note(&mut self, succeeded: bool) {
        self.failures = match succeeded {
            true => self.failures.saturating_sub(1),
            false => (self.failures + 1).min(FAILURES_MAX),
        };
        self.without = (1 << self.failures) - 1;
    }
}

struct SpinPermit;

impl SpinPermit {
    fn take() -> Option<SpinPermit> {
        let before = SPINNING.fetch_add(1, Ordering::AcqRel);
        let permit = SpinPermit;
        (before < *SPINNING_MAX).then_some(permit)
    }
}

impl Drop for SpinPermit {
    fn drop(&mut self) {
        let before = SPINNING.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a spinning thread holds a permit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of these waits began with a spin.
    fn spins(spin: &mut AdaptiveSpin, waits: u32, succeeds: bool) -> u32 {
        (0..waits)
            .filter(|_| {
                let spun = spin.should_spin();
                if spun {
                    spin.note(succeeds);
                }
                spun
            })
            .count() as u32
    }

    #[test]
    fn failed_spins_become_rare_and_successful_ones_return() {
        let mut spin = AdaptiveSpin::default();
        assert_eq!(spins(&mut spin, 100, true), 100);
        assert_eq!(spins(&mut spin, 1 << FAILURES_MAX, false), FAILURES_MAX);
        let waits = 16 << FAILURES_MAX;
        assert_eq!(spins(&mut spin, waits, false), waits >> FAILURES_MAX);
        // The first success comes after a long pause, each later one after half of the previous
        // pause.
        spins(&mut spin, 4 << FAILURES_MAX, true);
        assert_eq!(spins(&mut spin, 100, true), 100);
    }

    #[test]
    fn input_that_is_present_is_read_without_a_spin() {
        let mut spin = AdaptiveSpin::default();
        let mut reads = 0;
        let input = spin.read_spinning(1, || true, &mut || {
            reads += 1;
            Some(Some(reads))
        });
        assert_eq!((input, spin.failures), (Some(Some(1)), 0));
        let lost: Option<Option<u32>> = spin.read_spinning(1, || true, &mut || None);
        assert_eq!(lost, None);
        let nothing: Option<Option<u32>> = spin.read_spinning(1, || true, &mut || Some(None));
        assert_eq!((nothing, spin.failures, spin.without), (Some(None), 1, 1));
    }
}
