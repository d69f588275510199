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
static LOOKING: AtomicUsize = AtomicUsize::new(0);
static LOOKING_MAX: LazyLock<usize> = LazyLock::new(|| {
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
    /// Calls `read` once, then again whenever `comes` reports input, until it returns input or the
    /// spin ends. Returns the input, or `None` if `read` fails.
    pub fn read_spinning<T>(
        &mut self,
        pauses: u32,
        comes: impl Fn() -> bool,
        read: &mut impl FnMut() -> Option<Option<T>>,
    ) -> Option<Option<T>> {
        if let Some(found) = read()? {
            return Some(Some(found));
        }
        if !self.should_spin() {
            return Some(None);
        }
        let _place = match SpinPermit::take() {
            Some(place) => place,
            None => return Some(None),
        };
        let start = Instant::now();
        while start.elapsed() < SPIN_TIME {
            for _ in 0..pauses {
                std::hint::spin_loop();
            }
            if comes()
                && let Some(found) = read()?
            {
                self.note(true);
                return Some(Some(found));
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
        let wants_to = self.without == 0;
        self.without = self.without.saturating_sub(1);
        wants_to
    }

    /// Records the result of a spin.
    fn note(&mut self, found: bool) {
        self.failures = match found {
            true => self.failures.saturating_sub(1),
            false => (self.failures + 1).min(FAILURES_MAX),
        };
        self.without = (1 << self.failures) - 1;
    }
}

/// Permit to spin.
struct SpinPermit;

impl SpinPermit {
    fn take() -> Option<SpinPermit> {
        let before = LOOKING.fetch_add(1, Ordering::AcqRel);
        let place = SpinPermit;
        (before < *LOOKING_MAX).then_some(place)
    }
}

impl Drop for SpinPermit {
    fn drop(&mut self) {
        let before = LOOKING.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a polling thread holds a place");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of these waits began with a spin.
    fn looks(eagerness: &mut AdaptiveSpin, waits: u32, found: bool) -> u32 {
        (0..waits)
            .filter(|_| {
                let looks = eagerness.should_spin();
                if looks {
                    eagerness.note(found);
                }
                looks
            })
            .count() as u32
    }

    #[test]
    fn looks_in_vain_become_rare_and_those_that_pay_come_back() {
        let mut eagerness = AdaptiveSpin::default();
        assert_eq!(looks(&mut eagerness, 100, true), 100);
        assert_eq!(looks(&mut eagerness, 1 << FAILURES_MAX, false), FAILURES_MAX);
        let waits = 16 << FAILURES_MAX;
        assert_eq!(looks(&mut eagerness, waits, false), waits >> FAILURES_MAX);
        // The first success comes after a long pause, each later one after half of the previous
        // pause.
        looks(&mut eagerness, 4 << FAILURES_MAX, true);
        assert_eq!(looks(&mut eagerness, 100, true), 100);
    }

    #[test]
    fn what_is_there_is_taken_without_a_look() {
        let mut eagerness = AdaptiveSpin::default();
        let mut reads = 0;
        let found = eagerness.read_spinning(1, || true, &mut || {
            reads += 1;
            Some(Some(reads))
        });
        assert_eq!((found, eagerness.failures), (Some(Some(1)), 0));
        let lost: Option<Option<u32>> = eagerness.read_spinning(1, || true, &mut || None);
        assert_eq!(lost, None);
        let nothing: Option<Option<u32>> = eagerness.read_spinning(1, || true, &mut || Some(None));
        assert_eq!((nothing, eagerness.failures, eagerness.without), (Some(None), 1, 1));
    }
}
