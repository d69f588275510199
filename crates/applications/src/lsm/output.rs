//! Output of the database: requests to the drive and their placement.

use serde::{Deserialize, Serialize};

use super::extents::{BLOCK_BYTES, BlockExtent};
use crate::queue::RequestQueue;
use workload::{IoRequest, PlacementIndex, RequestOperation};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LsmPlacement {
    None,
    /// One handle per level. The log and level 0 share the first, level 1 has the second, and so
    /// on. All deeper levels share the last handle.
    Level,
    /// RocksDB's hints (`Compaction::CalculateSSTWriteHint`, `WALWriteLifetimeHint`), with the
    /// hint's number as handle, as with F2FS. The log is short (2). Level 0 and the base level are
    /// medium (3), the next level is long (4), deeper levels are extreme (5). Tiered tables have no
    /// hint (0).
    Rocksdb,
    /// Uses `placement_table`.
    Table,
    /// By the mean lifetime of the level's files so far, in powers of four of the bytes of all
    /// memtables.
    Lifetime,
    /// The first handle for the log, then one per family in the order of their names. All further
    /// families share the last handle.
    Family,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOrigin {
    Wal,
    /// A flush or compaction into a level.
    Level {
        tree: usize,
        /// Number of the level, from 0.
        level: usize,
    },
}

pub struct PlacementInputs {
    pub placement: LsmPlacement,
    /// Index of the log for [`LsmPlacement::Table`].
    pub log_index: u16,
    /// Number of placement indices of the drive.
    pub count: u16,
}

/// Properties of a tree that the output needs.
pub struct TreeShape {
    /// Number of levels with level 0. Each level is a stream.
    pub levels: usize,
    /// True if the tree has only level 0.
    pub only_runs: bool,
    /// Indices of level 0, level 1 and so on for [`LsmPlacement::Table`]. All deeper levels use the
    /// last one.
    pub table: Vec<u16>,
}

struct TreeStreams {
    shape: TreeShape,
    /// Stream of the tree's level 0.
    first_stream: usize,
    /// Level that receives the tables of level 0.
    base: usize,
    /// Mean lifetime of the files of each level, in bytes written.
    lifetimes: Vec<f64>,
}

/// Makes requests and counts them.
pub struct LsmOutput {
    /// Requests that the caller can take.
    pub(crate) queue: RequestQueue,
    placer: PlacementInputs,
    trees: Vec<TreeStreams>,
    /// Stream of reads, after those of the log and all levels. The stream of discards follows.
    read_stream: usize,
    request_blocks: u64,
    memtable_bytes: u64,
    pub bytes_written: u64,
    /// Part of `bytes_written` by the log.
    pub wal_bytes: u64,
    /// Part of `bytes_written` by placement index.
    pub handle_bytes: Vec<u64>,
    pub bytes_discarded: u64,
}

/// Weight of the latest file in the mean lifetime of its level.
const LIFETIME_WEIGHT: f64 = 0.02;

impl LsmOutput {
    /// Creates an output without requests. `sizes` are the bytes of a request and of all memtables.
    pub fn new(placer: PlacementInputs, trees: Vec<TreeShape>, sizes: (u64, u64)) -> LsmOutput {
        let (request_bytes, memtable_bytes) = sizes;
        let mut first_stream = 1;
        let trees: Vec<TreeStreams> = trees
            .into_iter()
            .map(|of| {
                let tree = TreeStreams { first_stream, base: 1, lifetimes: vec![0.0; of.levels], shape: of };
                first_stream += tree.shape.levels;
                tree
            })
            .collect();
        LsmOutput {
            queue: RequestQueue::default(),
            trees,
            read_stream: first_stream,
            request_blocks: request_bytes / BLOCK_BYTES,
            memtable_bytes,
            bytes_written: 0,
            wal_bytes: 0,
            handle_bytes: vec![0; usize::from(placer.count).max(1)],
            placer,
            bytes_discarded: 0,
        }
    }

    fn place(&self, maker: WriteOrigin) -> Option<PlacementIndex> {
        let last = self.placer.count.checked_sub(1)?;
        let wanted = match (self.placer.placement, maker) {
            (LsmPlacement::None, _) => return None,
            (LsmPlacement::Level | LsmPlacement::Lifetime | LsmPlacement::Family, WriteOrigin::Wal) => 0,
            (LsmPlacement::Rocksdb, WriteOrigin::Wal) => 2,
            (LsmPlacement::Table, WriteOrigin::Wal) => usize::from(self.placer.log_index),
            (LsmPlacement::Family, WriteOrigin::Level { tree, .. }) => 1 + tree,
            (placement, WriteOrigin::Level { tree, level }) => self.place_by_level(placement, &self.trees[tree], level),
        };
        Some(PlacementIndex(wanted.min(usize::from(last)) as u16))
    }

    /// Placement index of a level, for policies that depend on the level.
    fn place_by_level(&self, placement: LsmPlacement, tree: &TreeStreams, level: usize) -> usize {
        match placement {
            LsmPlacement::Level => level,
            LsmPlacement::Rocksdb if tree.shape.only_runs => 0,
            LsmPlacement::Rocksdb => 3 + level.saturating_sub(tree.base).min(2),
            LsmPlacement::Table => {
                let table = &tree.shape.table;
                usize::from(table[level.min(table.len() - 1)])
            }
            LsmPlacement::Lifetime => {
                let memtables = (tree.lifetimes[level] / self.memtable_bytes as f64) as u64;
                (memtables.max(1).ilog2() / 2) as usize
            }
            LsmPlacement::None | LsmPlacement::Family => unreachable!("{placement:?} does not use levels"),
        }
    }

    /// Sets the level that receives the tables of level 0.
    pub fn set_base(&mut self, tree: usize, base: usize) {
        self.trees[tree].base = base;
    }

    /// Records the deletion of a file. `made_at` is the number of bytes written before its
    /// creation.
    pub fn record_lifetime(&mut self, tree: usize, level: usize, made_at: u64) {
        let lifetime = (self.bytes_written - made_at) as f64;
        let mean = &mut self.trees[tree].lifetimes[level];
        *mean = if *mean == 0.0 { lifetime } else { *mean + (lifetime - *mean) * LIFETIME_WEIGHT };
    }

    pub fn write(&mut self, maker: WriteOrigin, extents: &[BlockExtent], first: u64, blocks: u64) {
        let placement = self.place(maker);
        let bytes = blocks * BLOCK_BYTES;
        self.bytes_written += bytes;
        self.handle_bytes[placement.unwrap_or(PlacementIndex::FIRST).index()] += bytes;
        let stream = match maker {
            WriteOrigin::Wal => {
                self.wal_bytes += bytes;
                0
            }
            WriteOrigin::Level { tree, level } => self.trees[tree].first_stream + level,
        };
        self.push(stream, RequestOperation::Write, placement, extents, first, blocks);
    }

    pub fn read(&mut self, extents: &[BlockExtent], first: u64, blocks: u64) {
        self.push(self.read_stream, RequestOperation::Read, None, extents, first, blocks);
    }

    fn push(
        &mut self,
        stream: usize,
        operation: RequestOperation,
        placement: Option<PlacementIndex>,
        extents: &[BlockExtent],
        first: u64,
        blocks: u64,
    ) {
        let (mut skip, mut left) = (first, blocks);
        for extent in extents {
            let length = u64::from(extent.blocks);
            if skip >= length {
                skip -= length;
                continue;
            }
            let blocks = left.min(length - skip);
            let whole = IoRequest {
                stream: stream as u16,
                operation,
                offset_bytes: (u64::from(extent.first) + skip) * BLOCK_BYTES,
                bytes: 0,
                placement,
            };
            self.queue.push_pieces(whole, blocks * BLOCK_BYTES, self.request_blocks * BLOCK_BYTES);
            left -= blocks;
            skip = 0;
            if left == 0 {
                return;
            }
        }
        assert!(left == 0, "an access ends within its file");
    }

    pub fn discard(&mut self, extent: BlockExtent) {
        let bytes = u64::from(extent.blocks) * BLOCK_BYTES;
        self.bytes_discarded += bytes;
        self.queue.push(IoRequest {
            stream: (self.read_stream + 1) as u16,
            operation: RequestOperation::Trim,
            offset_bytes: u64::from(extent.first) * BLOCK_BYTES,
            bytes: bytes as u32,
            placement: None,
        });
    }
}
