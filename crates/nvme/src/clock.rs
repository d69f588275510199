//! The drive's clock. Every call advances it. The Timestamp feature reads and sets it, and FDP
//! events carry its time.

use nvme_spec::feature::TimestampAttributes;
use ssd::{CompletionTime, Nanos};

const MS_NS: u64 = 1_000_000;
const TIMESTAMP_BITS: u32 = 48;
const ORIGIN_RESET: u8 = 0b000;
const ORIGIN_HOST: u8 = 0b001;

/// The drive's time, the end of the current command, and the Timestamp feature. The time never goes
/// back.
#[derive(Clone, Debug, Default)]
pub(crate) struct DriveClock {
    now: Nanos,
    /// Time at which the device finishes the current command.
    done_at: Nanos,
    /// End of the time that the powered-on counter already includes.
    counted_ns: Nanos,
    /// Timestamp at `now` = 0, in milliseconds, modulo 2^64.
    start_ms: u64,
    set_by_host: bool,
}

impl DriveClock {
    /// Time since the drive's start.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// Advances time. An older time than the current one has no effect.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    /// Begins a command or the next part of one. `done_at` is the end of the earlier parts.
    #[inline]
    pub(crate) fn begin_command(&mut self, done_at: Nanos) {
        self.done_at = self.now.max(done_at);
    }

    #[inline]
    pub(crate) fn note_done(&mut self, done: CompletionTime) {
        self.done_at = self.done_at.max(done.at);
    }

    #[inline]
    pub(crate) fn done_at(&self) -> Nanos {
        assert!(self.done_at >= self.now, "a command completes after its execution");
        self.done_at
    }

    pub(crate) fn uncounted_ns(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.counted_ns)
    }

    /// Takes the time that the powered-on counter lacks.
    pub(crate) fn take_uncounted_ns(&mut self) -> Nanos {
        let counted = std::mem::replace(&mut self.counted_ns, self.now);
        assert!(counted <= self.now, "no time is counted before it has passed");
        self.now - counted
    }

    pub(crate) fn set(&mut self, timestamp_ms: u64) {
        self.start_ms = timestamp_ms.wrapping_sub(self.now / MS_NS);
        self.set_by_host = true;
    }

    pub(crate) fn set_ms(&self, at: Nanos) -> Option<u64> {
        self.set_by_host.then(|| self.ms(at))
    }

    fn ms(&self, at: Nanos) -> u64 {
        self.start_ms.wrapping_add(at / MS_NS) & ((1 << TIMESTAMP_BITS) - 1)
    }

    /// Current Timestamp data structure, as a little-endian number of 8 bytes.
    pub(crate) fn timestamp(&self) -> u64 {
        let origin = if self.set_by_host { ORIGIN_HOST } else { ORIGIN_RESET };
        let attributes = TimestampAttributes::new().with_timestamp_origin(origin);
        u64::from(attributes.into_bits()) << TIMESTAMP_BITS | self.ms(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp_at(clock: &mut DriveClock, now: Nanos) -> u64 {
        clock.advance(now);
        clock.timestamp()
    }

    #[test]
    fn the_timestamp_goes_on_from_what_was_set() {
        let mut clock = DriveClock::default();
        assert_eq!(timestamp_at(&mut clock, 5 * MS_NS), 5);
        clock.set(0x0190_0000_0000);
        assert_eq!(timestamp_at(&mut clock, 7 * MS_NS), 0x0002_0190_0000_0002);
        // An earlier time than the time since the start, and an overflow of 48 bits.
        clock.advance(100 * MS_NS);
        clock.set(3);
        assert_eq!(timestamp_at(&mut clock, 101 * MS_NS), 0x0002_0000_0000_0004);
        clock.set((1 << 48) - 1);
        assert_eq!(timestamp_at(&mut clock, 102 * MS_NS), 0x0002_0000_0000_0000);
    }
}
