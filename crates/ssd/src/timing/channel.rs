//! Transfer times of channels and links.

use super::activity::{ActivityLog, WorkKind};
use super::busy_timeline::BusyTimeline;
use crate::types::Nanos;

const SECOND_NS: u64 = 1_000_000_000;

/// A channel. Host transfers slow down while garbage collection uses its share of the channel.
#[derive(Clone, Default)]
pub(super) struct Channel {
    timeline: BusyTimeline,
    /// Collection transfers use `collects_ns` of the `collection_ns` that end at `collects_until`.
    collects_until: Nanos,
    collection_ns: Nanos,
    collects_ns: Nanos,
    /// Log of host transfers, if enabled.
    pub(super) activity: Option<Box<ActivityLog>>,
}

impl Channel {
    /// Schedules a transfer of `length` as early as possible, but not before `from`. Returns its
    /// end.
    #[inline(always)]
    pub(super) fn transfer(&mut self, submitted_at: Nanos, from: Nanos, length: Nanos, work: WorkKind) -> Nanos {
        let begin = self.timeline.take(submitted_at, from, length);
        if let Some(activity) = &mut self.activity {
            activity.record(begin, begin + length, work);
        }
        begin + length
    }

    /// Schedules a transfer that a host waits for, slowed down by the share of collection.
    /// Transfers for programs are not urgent. They must not occupy the channel for longer than
    /// necessary.
    #[inline(always)]
    pub(super) fn urgent_transfer(&mut self, submitted_at: Nanos, from: Nanos, length: Nanos) -> Nanos {
        let length = if from < self.collects_until {
            scaled(length, self.collection_ns, self.collection_ns - self.collects_ns)
        } else {
            length
        };
        self.transfer(submitted_at, from, length, WorkKind::Read)
    }

    /// Adds collection transfers of `work_ns` within the next `elapsed_ns`. Hosts keep at least a
    /// tenth of the channel.
    pub(super) fn share_with_collection(&mut self, now: Nanos, elapsed_ns: Nanos, work_ns: Nanos) {
        let before_ns = match self.collects_until.checked_sub(now) {
            Some(left_ns) if left_ns > 0 => scaled(self.collects_ns, left_ns, self.collection_ns),
            _ => 0,
        };
        self.collects_until = self.collects_until.max(now + elapsed_ns);
        self.collection_ns = self.collects_until - now;
        self.collects_ns = (before_ns + work_ns).min(self.collection_ns / 10 * 9);
        assert!(self.collects_ns < self.collection_ns || self.collection_ns == 0, "hosts keep a share of the channel");
    }
}

/// Bandwidth of a channel or link.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferRate {
    bytes_per_second: u64,
    /// Last request and its result. Most requests have the same size, and a division is as
    /// expensive as all the rest.
    last: (u64, Nanos),
}

impl TransferRate {
    pub(super) fn new(bytes_per_second: u64) -> TransferRate {
        assert!(bytes_per_second > 0, "a channel has a speed above 0");
        TransferRate { bytes_per_second, last: (0, 0) }
    }

    /// Time to transfer bytes, rounded up so that no transfer exceeds the bandwidth.
    #[inline]
    pub(super) fn transfer_ns(&mut self, bytes: u64) -> Nanos {
        if bytes != self.last.0 {
            self.last = (bytes, transfer_ns(bytes, self.bytes_per_second));
        }
        self.last.1
    }
}

/// Computes `ns * numerator / denominator`.
fn scaled(ns: Nanos, numerator: u64, denominator: u64) -> Nanos {
    let scaled = u128::from(ns) * u128::from(numerator) / u128::from(denominator);
    Nanos::try_from(scaled).expect("a share of a time is a time")
}

/// Time to transfer bytes, rounded up so that no transfer exceeds the bandwidth.
#[inline]
fn transfer_ns(bytes: u64, bytes_per_second: u64) -> Nanos {
    if let Some(product) = bytes.checked_mul(SECOND_NS) {
        return product.div_ceil(bytes_per_second);
    }
    let time = (u128::from(bytes) * u128::from(SECOND_NS)).div_ceil(u128::from(bytes_per_second));
    Nanos::try_from(time).expect("a transfer of one command takes less than 500 years")
}
