//! The one clock of a served drive: nanoseconds since the server's start. Moments of files are those of the system.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ssd::Nanos;

/// A monotonic clock; copies tell the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.start.elapsed().as_nanos() as Nanos
    }
}

/// A moment in milliseconds since 1970; 0 before.
pub fn unix_ms(moment: SystemTime) -> u64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The end of a wait for a time that is spun through, because a sleep may end that much late.
const SPIN: Duration = Duration::from_micros(60);

/// How long to sleep before something that is due; `None`: do not sleep any more, it is due within microseconds.
pub(crate) fn sleep_before(due: Nanos, now: Nanos) -> Option<Duration> {
    let left = Duration::from_nanos(due.saturating_sub(now));
    left.checked_sub(SPIN).filter(|sleep| !sleep.is_zero())
}
