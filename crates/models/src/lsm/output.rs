//! Requests to the drive, and which placement index each write gets.

use serde::{Deserialize, Serialize};

use super::extents::{BLOCK_BYTES, Extent};
use crate::queue::RequestQueue;
use workload::{Operation, PlacementIndex, Request};

/// Which placement index a write gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// No directives.
    None,
    /// A handle per level: the log and level 0 share the first, level 1 has the second, and so on; the last handle takes the rest.
    Level,
    /// RocksDB's hints (`Compaction::CalculateSSTWriteHint`, `WALWriteLifetimeHint`), a hint's number being its handle as with F2FS: log short
    /// (2); level 0 and the base level medium (3), the next one long (4), deeper ones extreme (5). Tiered tables carry no hint (0).
    Rocksdb,
    /// As `placement_table` says.
    Table,
    /// By the mean lifetime that files of the level have had so far, in powers of four of a memtable's bytes.
    Lifetime,
}

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// The log.
    Wal,
    /// A flush or compaction into a level.
    Level(usize),
}

/// What placement indices follow from.
#[derive(Debug, Clone)]
pub struct Placer {
    /// The rule.
    pub placement: Placement,
    /// Of [`Placement::Table`]: the log's, then those of the levels.
    pub table: Vec<u16>,
    /// Placement indices of the drive.
    pub count: u16,
}

/// Makes requests and counts them.
#[derive(Debug)]
pub struct Output {
    /// Requests that are ready to be taken.
    pub(crate) queue: RequestQueue,
    placer: Placer,
    /// Tables of level 0 make up the tree: there are no others.
    only_runs: bool,
    levels: usize,
    request_blocks: u64,
    memtable_bytes: u64,
    /// Mean lifetime of the files of each level, bytes written.
    lifetimes: Vec<f64>,
    /// Level that takes the tables of level 0.
    pub base: usize,
    /// Bytes written.
    pub bytes_written: u64,
    /// Of these, by the log.
    pub wal_bytes: u64,
    /// Of these, by placement index.
    pub handle_bytes: Vec<u64>,
    /// Bytes discarded.
    pub bytes_discarded: u64,
}

/// Weight of the latest file in the mean lifetime of its level.
const LIFETIME_WEIGHT: f64 = 0.02;

impl Output {
    /// Nothing yet.
    pub fn new(placer: Placer, only_runs: bool, levels: usize, sizes: (u64, u64)) -> Output {
        let (request_bytes, memtable_bytes) = sizes;
        Output {
            queue: RequestQueue::default(),
            only_runs,
            levels,
            request_blocks: request_bytes / BLOCK_BYTES,
            memtable_bytes,
            lifetimes: vec![0.0; levels],
            base: 1,
            bytes_written: 0,
            wal_bytes: 0,
            handle_bytes: vec![0; usize::from(placer.count).max(1)],
            placer,
            bytes_discarded: 0,
        }
    }

    fn place(&self, maker: Maker) -> Option<PlacementIndex> {
        let last = self.placer.count.checked_sub(1)?;
        let of_table = |place: usize| {
            let table = &self.placer.table;
            usize::from(table[place.min(table.len() - 1)])
        };
        let wanted = match (self.placer.placement, maker) {
            (Placement::None, _) => return None,
            (Placement::Level, Maker::Wal) => 0,
            (Placement::Level, Maker::Level(level)) => level,
            (Placement::Rocksdb, Maker::Wal) => 2,
            (Placement::Rocksdb, Maker::Level(_)) if self.only_runs => 0,
            (Placement::Rocksdb, Maker::Level(level)) => 3 + level.saturating_sub(self.base).min(2),
            (Placement::Table, Maker::Wal) => of_table(0),
            (Placement::Table, Maker::Level(level)) => of_table(1 + level),
            (Placement::Lifetime, Maker::Wal) => 0,
            (Placement::Lifetime, Maker::Level(level)) => {
                let memtables = (self.lifetimes[level] / self.memtable_bytes as f64) as u64;
                (memtables.max(1).ilog2() / 2) as usize
            }
        };
        Some(PlacementIndex(wanted.min(usize::from(last)) as u16))
    }

    /// A file of a level is deleted that was made when so many bytes had been written.
    pub fn note_lifetime(&mut self, level: usize, made_at: u64) {
        let lifetime = (self.bytes_written - made_at) as f64;
        let mean = &mut self.lifetimes[level];
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
            Maker::Level(level) => 1 + level,
        };
        self.push(stream, Operation::Write, placement, extents, first, blocks);
    }

    /// Reads blocks of a file.
    pub fn read(&mut self, extents: &[Extent], first: u64, blocks: u64) {
        self.push(1 + self.levels, Operation::Read, None, extents, first, blocks);
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

    /// Discards an extent.
    pub fn discard(&mut self, extent: Extent) {
        let bytes = u64::from(extent.blocks) * BLOCK_BYTES;
        self.bytes_discarded += bytes;
        self.queue.push(Request {
            stream: (2 + self.levels) as u16,
            operation: Operation::Trim,
            offset_bytes: u64::from(extent.first) * BLOCK_BYTES,
            bytes: bytes as u32,
            placement: None,
        });
    }
}
