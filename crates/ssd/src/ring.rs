//! A log of bounded length: a new entry drops the oldest when the log is full, and what was lost is counted.
//!
//! It is what a drive keeps of its events until a host reads them. Entries are numbered from the first one ever made,
//! so that a reader who remembers how far he read knows what he missed. Not here: what an entry is, and who may read
//! it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring<T> {
    /// Oldest first.
    entries: VecDeque<T>,
    overwritten: u64,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring {
            entries: VecDeque::new(),
            overwritten: 0,
        }
    }
}

impl<T> Ring<T> {
    /// Adds an entry to a log of `length`, which may differ from one time to the next.
    pub fn push(&mut self, entry: T, length: usize) {
        assert!(length > 0, "a log has room for an entry");
        let surplus = (self.entries.len() + 1).saturating_sub(length);
        self.entries.drain(..surplus);
        self.overwritten += surplus as u64;
        self.entries.push_back(entry);
        assert!(
            self.entries.len() <= length,
            "no more entries than the log has room for"
        );
    }

    /// The newest entry.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.entries.back_mut()
    }

    /// The entries, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        self.entries.iter()
    }

    /// Entries that made room for newer ones, read or not.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// Entries ever made: where one who has read all of them goes on.
    pub fn end(&self) -> u64 {
        self.overwritten + self.entries.len() as u64
    }

    /// The entries after those that one has read who has read up to `end`, oldest first.
    pub fn since(&self, end: u64) -> impl Iterator<Item = &T> {
        assert!(end <= self.end(), "nobody has read what was never there");
        let read = end.saturating_sub(self.overwritten);
        self.entries.range(read as usize..)
    }

    /// Entries that were lost to one who has read up to `end`, as [`Ring::end`] said then.
    pub fn lost_since(&self, end: u64) -> u64 {
        assert!(end <= self.end(), "nobody has read what was never there");
        self.overwritten.saturating_sub(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_drops_the_oldest_and_counts_it() {
        let mut ring = Ring::default();
        for entry in 0..70 {
            ring.push(entry, 63);
        }
        assert_eq!((ring.iter().len(), ring.overwritten(), ring.end()), (63, 7, 70));
        assert!(ring.iter().copied().eq(7..70));
        ring.push(70, 3);
        assert!(ring.iter().copied().eq(68..=70));
        assert_eq!((ring.overwritten(), ring.end()), (68, 71));
    }

    #[test]
    fn a_reader_knows_what_he_missed() {
        let mut ring = Ring::default();
        (0..5).for_each(|entry| ring.push(entry, 4));
        assert_eq!(ring.lost_since(0), 1);
        let end = ring.end();
        (5..9).for_each(|entry| ring.push(entry, 4));
        assert_eq!(ring.lost_since(end), 0, "as many as there is room for");
        (9..12).for_each(|entry| ring.push(entry, 4));
        assert_eq!(ring.lost_since(end), 3);
        assert_eq!(ring.lost_since(ring.end()), 0);
        assert!(ring.since(end).eq(&[8, 9, 10, 11]) && ring.since(10).eq(&[10, 11]));
        assert_eq!(ring.since(ring.end()).count(), 0);
    }
}
