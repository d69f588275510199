//! Table with one number for each block (erase count or physical block), which can be copied in
//! parts while it changes.
//!
//! ```text
//! begin_copy -> starts an undo log of changes: block and previous number
//! copy_part  -> copies current numbers, repeated until all are copied
//! end_copy   -> returns the undo log. revert applies it to the copy, newest entry first.
//!               The copy then equals the table at begin_copy.
//! ```
//!
//! Numbers change only when a reclaim unit is erased, so the log is short. It includes changes of
//! numbers that are already copied.

use std::ops::{Deref, Range};

use serde::{Deserialize, Serialize};

use crate::cast::{count, index};

/// Number of entries that one call copies from each table.
pub(crate) const PART_BLOCKS: u32 = 1 << 16;
/// Maximum length of the undo log, far above the number of changes within some milliseconds.
const LOG_CHANGES_MAX: usize = 1 << 16;

/// Block and its previous number.
type Change = (u32, u32);

/// Preallocated memory for the undo log.
pub(super) struct UndoBuffer(Vec<Change>);

impl UndoBuffer {
    pub(super) fn new() -> UndoBuffer {
        UndoBuffer(Vec::with_capacity(LOG_CHANGES_MAX))
    }
}

/// Undo log, or `None` if it overflowed.
pub(crate) struct BlockUndoLog(Option<Vec<Change>>);

/// Table with one number for each block. A clone has no undo log.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct BlockTable {
    values: Vec<u32>,
    #[serde(skip)]
    log: Option<BlockUndoLog>,
}

impl Clone for BlockTable {
    fn clone(&self) -> BlockTable {
        BlockTable::from(self.values.clone())
    }
}

impl From<Vec<u32>> for BlockTable {
    fn from(values: Vec<u32>) -> BlockTable {
        BlockTable { values, log: None }
    }
}

impl Deref for BlockTable {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.values
    }
}

impl BlockTable {
    pub(super) fn set(&mut self, at: u32, value: u32) {
        let before = std::mem::replace(&mut self.values[index(at)], value);
        if let Some(BlockUndoLog(log)) = &mut self.log {
            match log {
                Some(changes) if changes.len() < LOG_CHANGES_MAX => changes.push((at, before)),
                _ => *log = None,
            }
        }
    }

    pub(super) fn swap(&mut self, one: u32, other: u32) {
        let (was_one, was_other) = (self.values[index(one)], self.values[index(other)]);
        self.set(one, was_other);
        self.set(other, was_one);
    }

    pub(super) fn begin_copy(&mut self, buffer: UndoBuffer) {
        assert!(buffer.0.is_empty(), "the log is empty");
        self.log = Some(BlockUndoLog(Some(buffer.0)));
    }

    /// Stops the undo log and returns it.
    pub(super) fn end_copy(&mut self) -> Option<BlockUndoLog> {
        self.log.take()
    }

    /// Copies a part of another table of the same length.
    pub(super) fn copy_part(&mut self, from: &BlockTable, part: Range<u32>) {
        assert_eq!(count(self.values.len()), count(from.values.len()), "a copy is as long as the table");
        let part = index(part.start)..index(part.end);
        self.values[part.clone()].copy_from_slice(&from.values[part]);
    }

    /// Applies the undo log, so that the copy equals the table at the start of the log. Returns
    /// false if the log overflowed.
    pub(super) fn revert(&mut self, log: &BlockUndoLog) -> bool {
        let Some(changes) = &log.0 else {
            return false;
        };
        for &(at, before) in changes.iter().rev() {
            self.values[index(at)] = before;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_in_parts_equals_the_table_at_its_start() {
        let mut table = BlockTable::from((0..10).collect::<Vec<u32>>());
        let before = table.values.clone();
        let mut copy = BlockTable::from(vec![u32::MAX; 10]);
        table.begin_copy(UndoBuffer::new());
        table.swap(2, 9);
        copy.copy_part(&table, 0..4);
        table.set(3, 77);
        table.set(8, 78);
        table.set(8, 79);
        copy.copy_part(&table, 4..10);
        table.swap(0, 5);
        assert!(table.clone().end_copy().is_none(), "a clone has no log");
        let log = table.end_copy().expect("a copy has a log");
        assert!(copy.revert(&log));
        assert_eq!(copy.values, before);
        table.set(1, 5);
        assert!(table.end_copy().is_none());
    }

    #[test]
    fn revert_reports_an_overflowed_log() {
        let mut table = BlockTable::from(vec![0; 3]);
        table.begin_copy(UndoBuffer::new());
        for value in 0..=count(LOG_CHANGES_MAX) {
            table.set(1, value);
        }
        let log = table.end_copy().expect("a copy has a log");
        assert!(!table.revert(&log));
    }

    #[test]
    fn a_table_is_stored_as_its_numbers() {
        let values = vec![3, 1, 400];
        let table = BlockTable::from(values.clone());
        let bytes = postcard::to_stdvec(&table).expect("it serializes");
        assert_eq!(bytes, postcard::to_stdvec(&values).expect("it serializes"));
        let again: BlockTable = postcard::from_bytes(&bytes).expect("it deserializes");
        assert_eq!(again.values, values);
    }
}
