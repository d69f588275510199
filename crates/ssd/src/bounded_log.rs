//! Bounded log. A new entry drops the oldest when the log is full, and the log counts dropped
//! entries.
//!
//! A drive keeps its events in such a log until a host reads them. Positions count from the first
//! entry ever added, so a reader that stores its position can compute the number of missed entries.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Bounded log with stable positions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundedLog<T> {
    /// Entries, oldest first.
    entries: VecDeque<T>,
    overwritten: u64,
}

impl<T> Default for BoundedLog<T> {
    fn default() -> BoundedLog<T> {
        BoundedLog { entries: VecDeque::new(), overwritten: 0 }
    }
}

impl<T> BoundedLog<T> {
    /// Adds an entry to a log of capacity `length`, which may change between calls.
    pub fn push(&mut self, entry: T, length: usize) {
        assert!(length > 0, "a log has space for at least one entry");
        let surplus = (self.entries.len() + 1).saturating_sub(length);
        self.entries.drain(..surplus);
        self.overwritten += surplus as u64;
        self.entries.push_back(entry);
        assert!(self.entries.len() <= length, "a log has more entries than its capacity");
    }

    /// Newest entry.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.entries.back_mut()
    }

    /// Iterates over the entries, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        self.entries.iter()
    }

    /// Number of entries dropped for newer ones, read or not.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// Number of entries ever added, which is the position after the newest entry.
    pub fn end(&self) -> u64 {
        self.overwritten + self.entries.len() as u64
    }

    /// Entries after position `end`, oldest first.
    pub fn since(&self, end: u64) -> impl Iterator<Item = &T> {
        assert!(end <= self.end(), "an entry is read only after it was written");
        let read = end.saturating_sub(self.overwritten);
        self.entries.range(read as usize..)
    }

    /// Number of dropped entries after position `end`, an earlier result of [`BoundedLog::end`].
    pub fn dropped_since(&self, end: u64) -> u64 {
        assert!(end <= self.end(), "an entry is read only after it was written");
        self.overwritten.saturating_sub(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_drops_the_oldest_and_counts_it() {
        let mut log = BoundedLog::default();
        for entry in 0..70 {
            log.push(entry, 63);
        }
        assert_eq!((log.iter().len(), log.overwritten(), log.end()), (63, 7, 70));
        assert!(log.iter().copied().eq(7..70));
        log.push(70, 3);
        assert!(log.iter().copied().eq(68..=70));
        assert_eq!((log.overwritten(), log.end()), (68, 71));
    }

    #[test]
    fn a_reader_learns_how_many_entries_it_missed() {
        let mut log = BoundedLog::default();
        (0..5).for_each(|entry| log.push(entry, 4));
        assert_eq!(log.dropped_since(0), 1);
        let end = log.end();
        (5..9).for_each(|entry| log.push(entry, 4));
        assert_eq!(log.dropped_since(end), 0, "the log dropped only entries that were read");
        (9..12).for_each(|entry| log.push(entry, 4));
        assert_eq!(log.dropped_since(end), 3);
        assert_eq!(log.dropped_since(log.end()), 0);
        assert!(log.since(end).eq(&[8, 9, 10, 11]) && log.since(10).eq(&[10, 11]));
        assert_eq!(log.since(log.end()).count(), 0);
    }
}
