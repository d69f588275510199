//! Space and output of the drive, which all trees of a database share.

use super::extents::{BLOCK_BYTES, BlockExtent, FreeSpace};
use super::output::LsmOutput;
use super::table::SortedTable;

/// Error of a drive without room for another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreFull;

pub struct FileStore {
    pub(super) space: FreeSpace,
    pub(super) output: LsmOutput,
    /// Deleted files are discarded on the drive.
    pub(super) discard: bool,
    /// Reads are issued as requests.
    pub(super) reads: bool,
}

impl FileStore {
    pub fn allocate(&mut self, bytes: u64) -> Result<Vec<BlockExtent>, StoreFull> {
        self.space.allocate(bytes.div_ceil(BLOCK_BYTES) as u32).ok_or(StoreFull)
    }

    pub fn delete(&mut self, extents: &[BlockExtent]) {
        for extent in extents {
            if self.discard {
                self.output.discard(*extent);
            }
            self.space.release(*extent);
        }
    }

    pub fn delete_tables(&mut self, tables: Vec<SortedTable>, tree: usize, level: usize) {
        for table in tables {
            self.output.record_lifetime(tree, level, table.made_at);
            self.delete(&table.extents);
        }
    }

    /// Reads the input tables of a compaction.
    pub fn read_tables(&mut self, tables: &[SortedTable]) {
        if self.reads {
            for table in tables {
                self.output.read(&table.extents, 0, blocks_of(&table.extents));
            }
        }
    }
}

pub fn blocks_of(extents: &[BlockExtent]) -> u64 {
    extents.iter().map(|extent| u64::from(extent.blocks)).sum()
}
