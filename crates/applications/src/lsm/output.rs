//! Output of the database: requests to the drive and their placement.

use serde::{Deserialize, Serialize};

use super::extents::{BLOCK_BYTES, Extent};
use crate::queue::RequestQueue;
use workload::{Operation, PlacementIndex, Request};

/// Placement policy of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
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
pub enum Maker {
    Wal,
    /// A flush or compaction into a level.
    Level {
        /// Number of the tree.
        tree: usize,
        /// Number of the level, from 0.
        level: usize,
    },
}

/// Inputs of the placement policy.
#[derive(Debug, Clone)]
pub struct Placer {
    pub placement: Placement,
    /// Index of the log for [`Placement::Table`].
    pub log_index: u16,
    /// Number of placement indices of the drive.
    pub count: u16,
}

/// Properties of a tree that the output needs.
#[derive(Debug, Clone)]
pub struct TreeOutput {
    /// Number of levels with level 0. Each level is a stream.
    pub levels: usize,
    /// True if the tree has only level 0.
    pub only_runs: bool,
    /// Indices of level 0, level 1 and so on for [`Placement::Table`]. All deeper levels use the
    /// last one.
    pub table: Vec<u16>,
}

/// Output state of a tree.
#[derive(Debug)]
struct Tree {
    of: TreeOutput,
    /// Stream of the tree's level 0.
    first_stream: usize,
    /// Level that receives the tables of level 0.
    base: usize,
    /// Mean lifetime of the files of each level, in bytes written.
    lifetimes: Vec<f64>,
}

/// Makes requests and counts them.
#[derive(Debug)]
pub struct Output {
    /// Requests that the caller can take.
    pub(crate) queue: RequestQueue,
    placer: Placer,
    trees: Vec<Tree>,
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

impl Output {
    /// Creates an output without requests. `sizes` are the bytes of a request and of all memtables.
    pub fn new(placer: Placer, trees: Vec<TreeOutput>, sizes: (u64, u64)) -> Output {
        let (request_bytes, memtable_bytes) = sizes;
        let mut first_stream = 1;
        let trees: Vec<Tree> = trees
            .into_iter()
            .map(|of| {
                let tree = Tree {
                    first_stream,
                    base: 1,
                    lifetimes: vec![0.0; of.levels],
                    of,
                };
                first_stream += tree.of.levels;
                tree
            })
            .collect();
        Output {
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

    fn place(&self, maker: Maker) -> Option<PlacementIndex> {
        let last = self.placer.count.checked_sub(1)?;
        let wanted = match (self.placer.placement, maker) {
            (Placement::None, _) => return None,
            (Placement::Level | Placement::Lifetime | Placement::Family, Maker::Wal) => 0,
            (Placement::Rocksdb, Maker::Wal) => 2,
            (Placement::Table, Maker::Wal) => usize::from(self.placer.log_index),
            (Placement::Family, Maker::Level { tree, .. }) => 1 + tree,
            (placement, Maker::Level { tree, level }) => self.place_by_level(placement, &self.trees[tree], level),
        };
        Some(PlacementIndex(wanted.min(usize::from(last)) as u16))
    }

    /// Placement index of a level, for policies that depend on the level.
    fn place_by_level(&self, placement: Placement, tree: &Tree, level: usize) -> usize {
        match placement {
            Placement::Level => level,
            Placement::Rocksdb if tree.of.only_runs => 0,
            Placement::Rocksdb => 3 + level.saturating_sub(tree.base).min(2),
            Placement::Table => {
                let table = &tree.of.table;
                usize::from(table[level.min(table.len() - 1)])
            }
            Placement::Lifetime => {
                let memtables = (tree.lifetimes[level] / self.memtable_bytes as f64) as u64;
                (memtables.max(1).ilog2() / 2) as usize
            }
            Placement::None | Placement::Family => unreachable!("{placement:?} does not use levels"),
        }
    }

    /// Sets the level that receives the tables of level 0.
    pub fn set_base(&mut self, tree: usize, base: usize) {
        self.trees[tree].base = base;
    }

    /// Records the deletion of a file. `made_at` is the number of bytes written before its
    /// creation.
    pub fn note_lifetime(&mut self, tree: usize, level: usize, made_at: u64) {
        let lifetime = (self.bytes_written - made_at) as f64;
        let mean = &mut self.trees[tree].lifetimes[level];
        *mean = if *mean == 0.0 {
            lifetime
        } else {
            *mean + (lifetime - *mean) * LIFETIME_WEIGHT
        };
    }

    /// Writes blocks of a file.
    pub fn write(&mut self, maker: Maker, extents: &[Extent], first: u64, blocks: u64) {
        let placement = self.place(maker);
        let bytes = blocks * BLOCK_BYTES;
        self.bytes_written += bytes;
        self.handle_bytes[placement.unwrap_or(PlacementIndex::FIRST).index()] += bytes;
        let stream = match maker {
            Maker::Wal => {
                self.wal_bytes += bytes;
                0
            }
            Maker::Level { tree, level } => self.trees[tree].first_stream + level,
        };
        self.push(stream, Operation::Write, placement, extents, first, blocks);
    }

    /// Reads blocks of a file.
    pub fn read(&mut self, extents: &[Extent], first: u64, blocks: u64) {
        self.push(self.read_stream, Operation::Read, None, extents, first, blocks);
    }

    fn push(
        &mut self,
        stream: usize,
        operation: Operation,
        placement: Option<PlacementIndex>,
        extents: &[Extent],
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
            let whole = Request {
                stream: stream as u16,
                operation,
                offset_bytes: (u64::from(extent.first) + skip) * BLOCK_BYTES,
                bytes: 0,
                placement,
            };
            self.queue
                .push_pieces(whole, blocks * BLOCK_BYTES, self.request_blocks * BLOCK_BYTES);
            left -= blocks;
            skip = 0;
            if left == 0 {
                return;
            }
        }
        assert!(left == 0, "an access ends within its file");
    }

    pub fn discard(&mut self, extent: Extent) {
        let bytes = u64::from(extent.blocks) * BLOCK_BYTES;
        self.bytes_discarded += bytes;
        self.queue.push(Request {
            stream: (self.read_stream + 1) as u16,
            operation: Operation::Trim,
            offset_bytes: u64::from(extent.first) * BLOCK_BYTES,
            bytes: bytes as u32,
            placement: None,
        });
    }
}
