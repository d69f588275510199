//! Requests to the drive, and which placement index each write gets.

use serde::{Deserialize, Serialize};

use super::extents::{BLOCK_BYTES, Extent};
use crate::queue::RequestQueue;
use workload::{Operation, PlacementIndex, Request};

/// Which placement index a write gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    None,
    /// A handle per level: the log and level 0 share the first, level 1 has the second, and so on; the last handle takes the rest.
    Level,
    /// RocksDB's hints (`Compaction::CalculateSSTWriteHint`, `WALWriteLifetimeHint`), a hint's number being its handle as with F2FS: log short
    /// (2); level 0 and the base level medium (3), the next one long (4), deeper ones extreme (5). Tiered tables carry no hint (0).
    Rocksdb,
    /// As `placement_table` says.
    Table,
    /// By the mean lifetime that files of the level have had so far, in powers of four of the bytes of all memtables.
    Lifetime,
    /// The log has the first, each family the next one, in the order of their names; the last takes the rest.
    Family,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    Wal,
    /// A flush or compaction into a level.
    Level {
        /// Of which tree.
        tree: usize,
        /// Which level, 0 included.
        level: usize,
    },
}

/// What placement indices follow from.
#[derive(Debug, Clone)]
pub struct Placer {
    pub placement: Placement,
    /// Of [`Placement::Table`]: the log's.
    pub log_index: u16,
    /// Placement indices of the drive.
    pub count: u16,
}

/// What the output has to know of a tree.
#[derive(Debug, Clone)]
pub struct TreeOutput {
    /// Number of levels, level 0 included; each is a stream.
    pub levels: usize,
    /// Tables of level 0 make up the tree: there are no others.
    pub only_runs: bool,
    /// Of [`Placement::Table`]: the indices of level 0, of level 1, ...; the last is that of all deeper ones.
    pub table: Vec<u16>,
}

/// A tree whose files are written.
#[derive(Debug)]
struct Tree {
    of: TreeOutput,
    /// Stream of its level 0.
    first_stream: usize,
    /// Level that takes the tables of level 0.
    base: usize,
    /// Mean lifetime of the files of each level, bytes written.
    lifetimes: Vec<f64>,
}

/// Makes requests and counts them.
#[derive(Debug)]
pub struct Output {
    /// Requests that are ready to be taken.
    pub(crate) queue: RequestQueue,
    placer: Placer,
    trees: Vec<Tree>,
    /// Stream of reads, after those of the log and of all levels; that of discards follows.
    read_stream: usize,
    request_blocks: u64,
    memtable_bytes: u64,
    pub bytes_written: u64,
    /// Of these, by the log.
    pub wal_bytes: u64,
    /// Of these, by placement index.
    pub handle_bytes: Vec<u64>,
    pub bytes_discarded: u64,
}

/// Weight of the latest file in the mean lifetime of its level.
const LIFETIME_WEIGHT: f64 = 0.02;

impl Output {
    /// Nothing yet. `sizes` are the bytes of a request and of all memtables.
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

    /// The placement index of a level, by a rule that looks at the level.
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
            Placement::None | Placement::Family => unreachable!("{placement:?} does not look at levels"),
        }
    }

    /// The level of a tree that takes the tables of its level 0.
    pub fn set_base(&mut self, tree: usize, base: usize) {
        self.trees[tree].base = base;
    }

    /// A file of a level is deleted that was made when so many bytes had been written.
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
        assert!(left == 0, "a file is shorter than what is written or read of it");
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
