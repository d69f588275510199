//! What all trees of a database share: the space of the drive, and the output to it.

use super::extents::{BLOCK_BYTES, Extent, Space};
use super::output::Output;
use super::table::Table;

/// The drive has no room for another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Files of all trees and of the log.
#[derive(Debug)]
pub struct Store {
    pub(super) space: Space,
    pub(super) output: Output,
    /// The drive is told of deleted files.
    pub(super) discard: bool,
    /// Reads are produced too.
    pub(super) reads: bool,
}

impl Store {
    /// Extents for so many bytes.
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

    /// Deletes tables of a level of a tree.
    pub fn delete_tables(&mut self, tables: Vec<Table>, tree: usize, level: usize) {
        for table in tables {
            self.output.note_lifetime(tree, level, table.made_at);
            self.delete(&table.extents);
        }
    }

    /// Reads tables that a compaction merges.
    pub fn read_tables(&mut self, tables: &[Table]) {
        if self.reads {
            for table in tables {
                self.output.read(&table.extents, 0, blocks_of(&table.extents));
            }
        }
    }
}

/// Blocks of a file.
pub fn blocks_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| u64::from(extent.blocks)).sum()
}
