//! Space and output of the drive, which all trees of a database share.

use super::extents::{BLOCK_BYTES, Extent, Space};
use super::output::Output;
use super::table::Table;

/// Error of a drive without room for another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Files of all trees and of the log.
#[derive(Debug)]
pub struct Store {
    pub(super) space: Space,
    pub(super) output: Output,
    /// Deleted files are discarded on the drive.
    pub(super) discard: bool,
    /// Reads are issued as requests.
    pub(super) reads: bool,
}

impl Store {
    /// Allocates extents for `bytes` bytes.
    pub fn allocate(&mut self, bytes: u64) -> Result<Vec<Extent>, Full> {
        self.space.allocate(bytes.div_ceil(BLOCK_BYTES) as u32).ok_or(Full)
    }

    pub fn delete(&mut self, extents: &[Extent]) {
        for extent in extents {
            if self.discard {
                self.output.discard(*extent);
            }
            self.space.release(*extent);
        }
    }

    /// Deletes tables of a level.
    pub fn delete_tables(&mut self, tables: Vec<Table>, tree: usize, level: usize) {
        for table in tables {
            self.output.note_lifetime(tree, level, table.made_at);
            self.delete(&table.extents);
        }
    }

    /// Reads the input tables of a compaction.
    pub fn read_tables(&mut self, tables: &[Table]) {
        if self.reads {
            for table in tables {
                self.output.read(&table.extents, 0, blocks_of(&table.extents));
            }
        }
    }
}

/// Number of blocks of a file.
pub fn blocks_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| u64::from(extent.blocks)).sum()
}
