//! The drive's clock: there is one, which the Timestamp feature reads and sets and which stamps the FDP events.

use nvme_spec::feature::TimestampAttributes;
use ssd::Nanos;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;
/// The milliseconds of a timestamp are a number of 48 bits.
const TIMESTAMP_BITS: u32 = 48;
/// Timestamp Origin: it counts from the drive's start.
const ORIGIN_RESET: u8 = 0b000;
/// Timestamp Origin: it counts from what a host set.
const ORIGIN_HOST: u8 = 0b001;

/// The drive's clock: the Timestamp feature, and how much of the time that passes has been counted as powered on.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Until when the time since the start is in the counter of powered on time.
    pub counted_ns: Nanos,
    /// What the timestamp was when `now` was 0, in milliseconds, modulo 2^64.
    start_ms: u64,
    /// Whether a host has set it.
    set_by_host: bool,
}

impl Clock {
    /// A host says what the timestamp is.
    pub(crate) fn set(&mut self, now: Nanos, timestamp_ms: u64) {
        self.start_ms = timestamp_ms.wrapping_sub(now / MS_NS);
        self.set_by_host = true;
    }

    /// What the clock says in milliseconds, if a host has set it.
    pub(crate) fn set_ms(&self, now: Nanos) -> Option<u64> {
        self.set_by_host.then(|| self.ms(now))
    }

    fn ms(&self, now: Nanos) -> u64 {
        self.start_ms.wrapping_add(now / MS_NS) & ((1 << TIMESTAMP_BITS) - 1)
    }

    /// The 8 bytes of the Timestamp data structure as a little-endian number.
    pub(crate) fn timestamp(&self, now: Nanos) -> u64 {
        let origin = if self.set_by_host { ORIGIN_HOST } else { ORIGIN_RESET };
        let attributes = TimestampAttributes::new().with_timestamp_origin(origin);
        u64::from(attributes.into_bits()) << TIMESTAMP_BITS | self.ms(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timestamp_goes_on_from_what_was_set() {
        let mut clock = Clock::default();
        assert_eq!(clock.timestamp(5 * MS_NS), 5);
        clock.set(5 * MS_NS, 0x0190_0000_0000);
        assert_eq!(clock.timestamp(7 * MS_NS), 0x0002_0190_0000_0002);
        // Earlier than the time since the start, and over the end of 48 bits.
        clock.set(100 * MS_NS, 3);
        assert_eq!(clock.timestamp(101 * MS_NS), 0x0002_0000_0000_0004);
        clock.set(0, (1 << 48) - 1);
        assert_eq!(clock.timestamp(MS_NS), 0x0002_0000_0000_0000);
    }
}
