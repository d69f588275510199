//! The single clock of a served drive, in nanoseconds since the server's start. File timestamps use
//! the system clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ssd::Nanos;

/// A monotonic clock. Copies share the same start.
#[derive(Clone, Copy, Debug)]
pub struct ServerClock {
    start: Instant,
}

impl ServerClock {
    pub fn start() -> ServerClock {
        ServerClock { start: Instant::now() }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.start.elapsed().as_nanos() as Nanos
    }
}

/// Milliseconds from 1970 to `moment`, 0 for an earlier moment.
pub fn unix_ms(moment: SystemTime) -> u64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A sleep may end this late, so the last part of a wait spins instead.
const SPIN: Duration = Duration::from_micros(60);

/// Time to sleep until shortly before `due`. `None` if `due` is only microseconds away.
pub(crate) fn sleep_before(due: Nanos, now: Nanos) -> Option<Duration> {
    let left = Duration::from_nanos(due.saturating_sub(now));
    left.checked_sub(SPIN).filter(|sleep| !sleep.is_zero())
}
