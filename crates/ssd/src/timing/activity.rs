//! Activity log of dies and channels, for monitoring a device with timing.
//!
//! ```text
//! Die, Channel -> note -> the last pieces of each -> Device::activity
//! ```
//!
//! The log is off by default, has bounded memory and does not affect timing. For a channel it
//! contains the transfers of hosts. Collection uses a share of a channel and has no separate
//! transfers.

use crate::bounded_log::BoundedLog;
use crate::types::Nanos;

/// Kind of work of a die or a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Sensing by a die or a transfer by a channel, for a host read.
    Read,
    /// Programming by a die or a transfer by a channel, for a host write.
    Program,
    /// Sensing, programming and erasing by a die, for garbage collection.
    Collection,
}

/// An interval of one kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyInterval {
    /// Start of the interval.
    pub from: Nanos,
    /// End of the interval.
    pub until: Nanos,
    /// Kind of work.
    pub work: WorkKind,
}

/// Latest intervals of a die or a channel, in the order of scheduling. The times of a channel's
/// intervals may be out of order.
#[derive(Clone, Debug)]
pub struct ActivityLog {
    pieces: BoundedLog<BusyInterval>,
    most: usize,
}

impl ActivityLog {
    /// Creates a log of the last `most` intervals.
    pub(super) fn new(most: usize) -> ActivityLog {
        ActivityLog { pieces: BoundedLog::default(), most }
    }

    /// Logs an interval. Merges it with the previous one if it continues the same kind of work.
    pub(super) fn record(&mut self, from: Nanos, until: Nanos, work: WorkKind) {
        assert!(from <= until, "a piece ends after it begins");
        match self.pieces.last_mut() {
            _ if from == until => {}
            Some(last) if last.until == from && last.work == work => last.until = until,
            _ => self.pieces.push(BusyInterval { from, until, work }, self.most),
        }
    }

    /// Logged intervals, with the number of dropped ones.
    pub fn pieces(&self) -> &BoundedLog<BusyInterval> {
        &self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_goes_on_is_one_piece_and_the_oldest_go() {
        let mut activity = ActivityLog::new(2);
        activity.record(0, 5, WorkKind::Read);
        activity.record(5, 9, WorkKind::Read);
        activity.record(9, 9, WorkKind::Program);
        let piece = |from, until, work| BusyInterval { from, until, work };
        assert_eq!(activity.pieces().iter().copied().collect::<Vec<_>>(), [piece(0, 9, WorkKind::Read)]);
        activity.record(9, 12, WorkKind::Collection);
        activity.record(20, 21, WorkKind::Collection);
        let kept = [piece(9, 12, WorkKind::Collection), piece(20, 21, WorkKind::Collection)];
        assert_eq!(activity.pieces().iter().copied().collect::<Vec<_>>(), kept);
        assert_eq!(activity.pieces().overwritten(), 1);
    }
}
