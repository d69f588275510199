//! Channels and links: how long bytes take on them, and who waits.

use super::activity::{Activity, Work};
use super::calendar::Calendar;
use crate::types::Nanos;

const SECOND_NS: u64 = 1_000_000_000;

/// A channel: the transfers of hosts, slower while garbage collection has its share of the channel.
#[derive(Clone, Default)]
pub(super) struct Channel {
    calendar: Calendar,
    /// Collection's transfers take `collects_ns` of the `collection_ns` until `collects_until`.
    collects_until: Nanos,
    collection_ns: Nanos,
    collects_ns: Nanos,
    /// What hosts transferred, if somebody watches.
    pub(super) activity: Option<Box<Activity>>,
}

impl Channel {
    /// A transfer of `length`, as early as possible from `from` on; returns its end.
    #[inline(always)]
    pub(super) fn transfer(&mut self, submitted_at: Nanos, from: Nanos, length: Nanos, work: Work) -> Nanos {
        let begin = self.calendar.take(submitted_at, from, length);
        if let Some(activity) = &mut self.activity {
            activity.note(begin, begin + length, work);
        }
        begin + length
    }

    /// A transfer that somebody waits for, slower while collection has its share. (What is only programmed later is not
    /// in a hurry, and must not keep the channel from others for longer than it needs it.)
    #[inline(always)]
    pub(super) fn urgent_transfer(&mut self, submitted_at: Nanos, from: Nanos, length: Nanos) -> Nanos {
        let length = if from < self.collects_until {
            scaled(length, self.collection_ns, self.collection_ns - self.collects_ns)
        } else {
            length
        };
        self.transfer(submitted_at, from, length, Work::Read)
    }

    /// Collection takes `elapsed_ns` from now on, and its transfers `work_ns` of it. Hosts are left a tenth at least.
    pub(super) fn share_with_collection(&mut self, now: Nanos, elapsed_ns: Nanos, work_ns: Nanos) {
        let before_ns = match self.collects_until.checked_sub(now) {
            Some(left_ns) if left_ns > 0 => scaled(self.collects_ns, left_ns, self.collection_ns),
            _ => 0,
        };
        self.collects_until = self.collects_until.max(now + elapsed_ns);
        self.collection_ns = self.collects_until - now;
        self.collects_ns = (before_ns + work_ns).min(self.collection_ns / 10 * 9);
        assert!(
            self.collects_ns < self.collection_ns || self.collection_ns == 0,
            "hosts are left a part of the channel"
        );
    }
}

/// How fast bytes are moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    bytes_per_second: u64,
    /// What was asked for last, and the answer: most requests are of one size, and a division takes as long as all the
    /// rest.
    last: (u64, Nanos),
}

impl Speed {
    pub(super) fn new(bytes_per_second: u64) -> Speed {
        assert!(bytes_per_second > 0, "a channel that moves nothing would never be done");
        Speed {
            bytes_per_second,
            last: (0, 0),
        }
    }

    /// Time to move bytes, rounded up: nothing is faster than it can be.
    #[inline]
    pub(super) fn transfer_ns(&mut self, bytes: u64) -> Nanos {
        if bytes != self.last.0 {
            self.last = (bytes, transfer_ns(bytes, self.bytes_per_second));
        }
        self.last.1
    }
}

/// `ns` times `numerator` by `denominator`.
fn scaled(ns: Nanos, numerator: u64, denominator: u64) -> Nanos {
    let scaled = u128::from(ns) * u128::from(numerator) / u128::from(denominator);
    Nanos::try_from(scaled).expect("a share of a time is a time")
}

/// Time to move bytes, rounded up: nothing is faster than it can be.
#[inline]
fn transfer_ns(bytes: u64, bytes_per_second: u64) -> Nanos {
    if let Some(product) = bytes.checked_mul(SECOND_NS) {
        return product.div_ceil(bytes_per_second);
    }
    let time = (u128::from(bytes) * u128::from(SECOND_NS)).div_ceil(u128::from(bytes_per_second));
    Nanos::try_from(time).expect("a transfer of one command takes less than 500 years")
}
