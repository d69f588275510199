//! B-tree: a model of the storage engine of a database, from its operations to what its log, its buffer pool and its pages write.
//!
//! ```text
//! driver (YCSB, TPC-C) -> pages touched -> pool (least recently used out, dirty pages back) -> store (in place, zones, copy on write) -> output
//!                                      \-> log (ring), which says when dirty pages have to go (checkpoints)                          /
//! ```
//!
//! Leaf pages are numbered; a record is in the page that its key falls into. Inner pages are a percent of the leaves and stay in the pool; those of
//! copy on write are written with every checkpoint, the others' are left out. Three stores write pages back:
//!
//! - **in place** (InnoDB, PostgreSQL, LeanStore): every page at its own place, torn pages prevented by a doublewrite buffer, by images in
//!   the log, or by the drive;
//! - **out of place** (ZLeanStore; "How to Write to SSDs", arXiv 2603.09927): compressed pages, packed into zones that are written in sequence and
//!   collected, pages of about the same time of death together;
//! - **copy on write** (WiredTiger, LMDB): every page at the first free place of the file, the old one free after the next checkpoint or the one after it.
//!
//! What shrinks on a twin of 1/d: the number of records and pages, pool, log, doublewrite buffer and zones, and transactions of a
//! checkpoint. Pages do not.
//!
//! It leaves out: splits and merges (pages are loaded with room), inner pages that do not move, deletes, secondary indexes, prefetching, and the file system.

mod driver;
mod log;
mod output;
mod pool;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod touch;
mod tpcc;
mod zones;

use serde::{Deserialize, Serialize};

pub use driver::DriverKind;
pub use log::Checkpoints;
pub use output::Placement;
pub use source::BTree;
pub use store::{Layout, TornPages};

use crate::ycsb::{Mix, Popularity};
use driver::Driver;
use log::Log;
use output::Output;
use pool::Pool;
use source::{PageCounts, Parts};
use store::Store;
use workload::{Target, WorkloadError, multiple_of, within};

/// Everything on the drive is in whole blocks.
const BLOCK_BYTES: u64 = 4096;

/// The `[workload]` table of `kind = "btree"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Who asks. `ycsb`.
    pub driver: DriverKind,
    /// YCSB: which operations, after all records were loaded in order. `a`.
    pub mix: Mix,
    /// YCSB: which records are popular. None: as the mix says; uniform for `overwrite`.
    pub popularity: Option<Popularity>,
    /// YCSB: exponent of Zipf. 0.99.
    pub zipf_exponent: f64,
    /// Bytes of all pages before compression, as a share of the drive, percent. 50.
    pub data_percent: f64,
    /// YCSB: bytes of a record, key and value. 128.
    pub record_bytes: u64,
    /// Bytes of a page. 4 KiB (LeanStore); InnoDB 16 KiB, PostgreSQL 8 KiB.
    #[serde(with = "base::size")]
    pub page_bytes: u64,
    /// YCSB: how full pages are, percent. 69 (ln 2: what random inserts leave).
    pub page_fill_percent: f64,
    /// Pages that the buffer pool holds, percent of all. 10.
    pub pool_percent: f64,
    /// Where pages are written. `in_place`.
    pub layout: Layout,
    /// What prevents torn pages in place. `doublewrite`.
    pub torn_pages: TornPages,
    /// In place: bytes of the doublewrite buffer, a ring, full size. 64 MiB.
    #[serde(with = "base::size")]
    pub doublewrite_bytes: u64,
    /// Pages that are written back together. 64.
    pub flush_pages: u32,
    /// There is a log. True.
    pub wal: bool,
    /// Bytes of the log, a ring, full size. 1 GiB (`max_wal_size` of PostgreSQL).
    #[serde(with = "base::size")]
    pub log_bytes: u64,
    /// Bytes that an entry of the log has beside the record. 50.
    pub log_header_bytes: u64,
    /// Transactions after which the log is synced, the last block being written again by the next; 0: whole blocks only. 0.
    pub transactions_per_sync: u32,
    /// Bytes of undo pages, a ring beside the data, full size: each transaction that changes something changes the next of them, too. 0: old
    /// versions are elsewhere (PostgreSQL: in the pages).
    #[serde(with = "base::size")]
    pub undo_bytes: u64,
    /// Pages of indexes, which grow with the data and which updates leave alone, percent of the drive. 0.
    pub index_percent: f64,
    /// Pages that are there before the data and never change, percent of the drive: system tables, what the file system has of its own. 0.
    pub unchanged_percent: f64,
    /// When dirty pages have to be written because of the log. `fuzzy`.
    pub checkpoints: Checkpoints,
    /// Transactions after which all dirty pages are written and a checkpoint is complete, whatever the log demands, on the full
    /// drive: LMDB's commit of so many. 0: never.
    pub transactions_per_checkpoint: u64,
    /// Copy on write: checkpoints after which the place that a page has left is free. 1 (WiredTiger); LMDB 2.
    pub checkpoints_kept: u32,
    /// Copy on write: children of an inner page; they are written, up to the root, with each checkpoint before which one of their children has moved. 0:
    /// they are left out. 100 (keys of some 20 bytes, as full as `page_fill_percent`).
    pub children_per_inner_page: u32,
    /// Out of place, copy on write: space for pages, percent of the drive; what it has beyond the data is for collecting. 90.
    pub space_percent: f64,
    /// Out of place, copy on write: size of a compressed page, percent. 100.
    pub compressed_percent: f64,
    /// Out of place: bytes of a zone, full size. 1 GiB.
    #[serde(with = "base::size")]
    pub zone_bytes: u64,
    /// Out of place: groups of pages by time of death, each with zones of its own. 4.
    pub groups: u32,
    /// Which placement index a write gets. `stream`.
    pub placement: Placement,
    /// Out of place: the drive is told of collected zones. True.
    pub discard: bool,
    /// Reads are produced too. False.
    pub reads: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            driver: DriverKind::Ycsb,
            mix: Mix::A,
            popularity: None,
            zipf_exponent: 0.99,
            data_percent: 50.0,
            record_bytes: 128,
            page_bytes: 4096,
            page_fill_percent: 69.0,
            pool_percent: 10.0,
            layout: Layout::InPlace,
            torn_pages: TornPages::Doublewrite,
            doublewrite_bytes: 64 << 20,
            flush_pages: 64,
            wal: true,
            log_bytes: 1 << 30,
            log_header_bytes: 50,
            transactions_per_sync: 0,
            undo_bytes: 0,
            index_percent: 0.0,
            unchanged_percent: 0.0,
            checkpoints: Checkpoints::Fuzzy,
            transactions_per_checkpoint: 0,
            checkpoints_kept: 1,
            children_per_inner_page: 100,
            space_percent: 90.0,
            compressed_percent: 100.0,
            zone_bytes: 1 << 30,
            groups: 4,
            placement: Placement::Stream,
            discard: true,
            reads: false,
        }
    }
}

/// Fewest pages of a tree, and of its pool.
const LEAST_PAGES: u64 = 256;
const LEAST_POOL_PAGES: u64 = 32;

impl Settings {
    /// The workload on a drive.
    ///
    /// # Errors
    /// A setting that cannot be, or that does not fit the drive.
    pub fn source(&self, target: &Target, seed: u64) -> Result<BTree, WorkloadError> {
        self.check()?;
        let capacity_bytes = target.capacity_bytes();
        let counts = self.page_counts(target);
        let (pages, all_pages) = (counts[0], counts.iter().sum::<u64>());
        let setting = || format!("data_percent = {}", self.data_percent);
        if pages < LEAST_PAGES {
            let problem = format!("is {pages} pages on a drive of {capacity_bytes} bytes, {LEAST_PAGES} are needed");
            return Err(WorkloadError::setting(setting(), problem));
        }
        if u32::try_from(all_pages).is_err() {
            let problem = format!("is {all_pages} pages, more than 32 bits can number; use a twin, or larger pages");
            return Err(WorkloadError::setting(setting(), problem));
        }
        let [data, undo, index, unchanged] = counts.map(|pages| pages as u32);
        let counts = PageCounts {
            data,
            undo,
            index,
            unchanged,
        };
        let driver = Driver::new(self, data, target.denominator(), seed)?;
        let log = self
            .wal
            .then(|| Log::new(self.scaled(self.log_bytes, target), self.transactions_per_sync));
        let log_bytes = log.as_ref().map_or(0, Log::bytes);
        let store = Store::new(self, counts.all(), log_bytes, target)?;
        let pool_pages = (f64::from(data) * self.pool_percent / 100.0) as u64;
        let pool = Pool::new(counts.all(), pool_pages.max(LEAST_POOL_PAGES) as u32);
        let output = Output::new(self, target);
        Ok(BTree::new(
            self,
            counts,
            Parts {
                driver,
                log,
                pool,
                store,
                output,
            },
            target,
        ))
    }

    /// Pages of data, undo, indexes, and of what never changes.
    fn page_counts(&self, target: &Target) -> [u64; 4] {
        let pages_of = |percent: f64| (target.capacity_bytes() as f64 * percent / 100.0) as u64 / self.page_bytes;
        let undo_bytes = match self.undo_bytes {
            0 => 0,
            bytes => self.scaled(bytes, target),
        };
        [
            pages_of(self.data_percent),
            undo_bytes / self.page_bytes,
            pages_of(self.index_percent),
            pages_of(self.unchanged_percent),
        ]
    }

    /// Memory that the workload takes at most, bytes.
    ///
    /// # Errors
    /// A setting that cannot be.
    pub fn memory_bytes(&self, target: &Target) -> Result<u64, WorkloadError> {
        /// Of a page: its frame and its place in the pool, in the store and in its zone, and its last lives.
        const PAGE_MAP_BYTES: u64 = 96;
        const FIXED_BYTES: u64 = 16 << 20;
        self.check()?;
        let pages: u64 = self.page_counts(target).iter().sum();
        let zones = target.capacity_bytes() / self.scaled(self.zone_bytes, target);
        Ok(FIXED_BYTES + (pages + zones) * PAGE_MAP_BYTES)
    }

    /// Bytes that records fill of a page.
    fn filled_page_bytes(&self) -> u64 {
        (self.page_bytes as f64 * self.page_fill_percent / 100.0) as u64
    }

    /// Bytes of a ring or zone on the target: whole blocks and pages, several at least.
    fn scaled(&self, bytes: u64, target: &Target) -> u64 {
        let unit_bytes = self.page_bytes.max(target.unit_bytes());
        (bytes / target.denominator())
            .next_multiple_of(unit_bytes)
            .max(16 * unit_bytes)
    }

    fn check(&self) -> Result<(), WorkloadError> {
        within("data_percent", self.data_percent, 0.1..=98.0)?;
        within("checkpoints_kept", self.checkpoints_kept, 1..=16)?;
        if self.children_per_inner_page > 0 {
            within("children_per_inner_page", self.children_per_inner_page, 2..=65_536)?;
        }
        within("index_percent", self.index_percent, 0.0..=98.0)?;
        within("unchanged_percent", self.unchanged_percent, 0.0..=98.0)?;
        within("zipf_exponent", self.zipf_exponent, 0.0..=10.0)?;
        multiple_of(BLOCK_BYTES, "page_bytes", self.page_bytes, 64 << 10)?;
        within("page_fill_percent", self.page_fill_percent, 1.0..=100.0)?;
        within("record_bytes", self.record_bytes, 1..=self.page_bytes)?;
        within("pool_percent", self.pool_percent, 0.01..=100.0)?;
        multiple_of(BLOCK_BYTES, "doublewrite_bytes", self.doublewrite_bytes, 1 << 40)?;
        within("flush_pages", self.flush_pages, 1..=65_536)?;
        multiple_of(BLOCK_BYTES, "log_bytes", self.log_bytes, 1 << 44)?;
        within("log_header_bytes", self.log_header_bytes, 0..=65_536)?;
        if self.undo_bytes > 0 {
            multiple_of(BLOCK_BYTES, "undo_bytes", self.undo_bytes, 1 << 40)?;
        }
        within("space_percent", self.space_percent, 1.0..=99.0)?;
        within("compressed_percent", self.compressed_percent, 1.0..=100.0)?;
        multiple_of(BLOCK_BYTES, "zone_bytes", self.zone_bytes, 1 << 40)?;
        within("groups", self.groups, 1..=32)
    }
}
