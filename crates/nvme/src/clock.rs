//! The drive's clock: there is one, which every call moves on, which the Timestamp feature reads and sets, and which
//! stamps the FDP events.

use nvme_spec::feature::TimestampAttributes;
use ssd::{Completion, Nanos};

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;
/// The milliseconds of a timestamp are a number of 48 bits.
const TIMESTAMP_BITS: u32 = 48;
/// Timestamp Origin: it counts from the drive's start.
const ORIGIN_RESET: u8 = 0b000;
/// Timestamp Origin: it counts from what a host set.
const ORIGIN_HOST: u8 = 0b001;

/// The drive's time: now, the end of the command that is carried out, and the Timestamp feature. It never goes back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    now: Nanos,
    /// When the device has done what the command that is carried out asked of it.
    done_at: Nanos,
    /// Until when the time since the start is in the counter of powered on time.
    counted_ns: Nanos,
    /// The timestamp when `now` was 0, in milliseconds, modulo 2^64.
    start_ms: u64,
    /// Whether a host has set it.
    set_by_host: bool,
}

impl Clock {
    /// Time since the drive's start.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// Time has passed. A caller that is late changes nothing.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    /// A command is carried out whose parts before were done at `done_at`.
    #[inline]
    pub(crate) fn begin_command(&mut self, done_at: Nanos) {
        self.done_at = self.now.max(done_at);
    }

    /// The device has done a part of the command at that time.
    #[inline]
    pub(crate) fn note_done(&mut self, done: Completion) {
        self.done_at = self.done_at.max(done.at);
    }

    /// When the device has done its part of the command.
    #[inline]
    pub(crate) fn done_at(&self) -> Nanos {
        assert!(self.done_at >= self.now, "no command is done before it is carried out");
        self.done_at
    }

    /// Time that is not in the counter of powered on time, at a time.
    pub(crate) fn uncounted_ns(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.counted_ns)
    }

    /// Takes that time for the counter.
    pub(crate) fn take_uncounted_ns(&mut self) -> Nanos {
        let counted = std::mem::replace(&mut self.counted_ns, self.now);
        assert!(counted <= self.now, "no time is counted before it has passed");
        self.now - counted
    }

    /// A host sets the timestamp.
    pub(crate) fn set(&mut self, timestamp_ms: u64) {
        self.start_ms = timestamp_ms.wrapping_sub(self.now / MS_NS);
        self.set_by_host = true;
    }

    /// The timestamp in milliseconds at a time, if a host has set it.
    pub(crate) fn set_ms(&self, at: Nanos) -> Option<u64> {
        self.set_by_host.then(|| self.ms(at))
    }

    fn ms(&self, at: Nanos) -> u64 {
        self.start_ms.wrapping_add(at / MS_NS) & ((1 << TIMESTAMP_BITS) - 1)
    }

    /// The 8 bytes of the Timestamp data structure, now, as a little-endian number.
    pub(crate) fn timestamp(&self) -> u64 {
        let origin = if self.set_by_host { ORIGIN_HOST } else { ORIGIN_RESET };
        let attributes = TimestampAttributes::new().with_timestamp_origin(origin);
        u64::from(attributes.into_bits()) << TIMESTAMP_BITS | self.ms(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp_at(clock: &mut Clock, now: Nanos) -> u64 {
        clock.advance(now);
        clock.timestamp()
    }

    #[test]
    fn the_timestamp_goes_on_from_what_was_set() {
        let mut clock = Clock::default();
        assert_eq!(timestamp_at(&mut clock, 5 * MS_NS), 5);
        clock.set(0x0190_0000_0000);
        assert_eq!(timestamp_at(&mut clock, 7 * MS_NS), 0x0002_0190_0000_0002);
        // Earlier than the time since the start, and over the end of 48 bits.
        clock.advance(100 * MS_NS);
        clock.set(3);
        assert_eq!(timestamp_at(&mut clock, 101 * MS_NS), 0x0002_0000_0000_0004);
        clock.set((1 << 48) - 1);
        assert_eq!(timestamp_at(&mut clock, 102 * MS_NS), 0x0002_0000_0000_0000);
    }
}
