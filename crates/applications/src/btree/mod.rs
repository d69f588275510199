//! B-tree model of a database storage engine: operations and the writes of log, buffer pool and
//! pages.
//!
//! ```text
//! driver (YCSB, TPC-C) -> pages touched
//!   -> pool (LRU eviction, write-back) -> store (in place, zones, copy on write) -> output
//!   -> log (ring), which forces writes of dirty pages (checkpoints) --------------> output
//! ```
//!
//! Leaf pages have numbers. A record's key determines its page. Inner pages are one percent of the
//! leaves and stay in the pool. The copy-on-write store writes its inner pages with every
//! checkpoint. The other stores omit them. There are three stores:
//!
//! - **in place** (InnoDB, PostgreSQL, LeanStore): every page has a fixed location. A doublewrite
//!   buffer, page images in the log, or the drive itself prevents torn pages.
//! - **out of place** (ZLeanStore; "How to Write to SSDs", arXiv 2603.09927): compressed pages are
//!   packed into zones, which are written sequentially and garbage-collected. Pages with a similar
//!   time of death share a zone.
//! - **copy on write** (WiredTiger, LMDB): every page goes to the first free location of the file.
//!   Its old location is free after the next checkpoint or the one after it.
//!
//! On a scaled model of 1/d, these shrink: numbers of records and pages, pool, log,
//! doublewrite buffer, zones, and transactions per checkpoint. Pages keep their size.
//!
//! The model omits splits and merges (pages are loaded with spare room), static inner pages,
//! deletes, secondary indexes, prefetching and the file system.

mod driver;
mod log;
mod output;
mod page_access;
mod pool;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod tpcc;
mod zones;

use serde::{Deserialize, Serialize};

pub use driver::DriverKind;
pub use log::CheckpointPolicy;
pub use output::BTreePlacement;
pub use source::BTree;
pub use store::{PageUpdate, TornPages};

use crate::ycsb::{Mix, RecordPopularity};
use driver::BTreeDriver;
use log::TransactionLog;
use output::BTreeOutput;
use pool::Pool;
use source::{BTreeParts, PageCounts};
use store::PageStore;
use workload::{WorkloadError, WorkloadTarget, multiple_of, within};

/// Block size of the drive. All locations and sizes are multiples of it.
const BLOCK_BYTES: u64 = 4096;

/// Settings table `[workload]` of `kind = "btree"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BTreeSettings {
    /// Source of operations. Default `ycsb`.
    pub driver: DriverKind,
    /// YCSB: operation mix after all records were loaded in order. Default `a`.
    pub mix: Mix,
    /// YCSB: popularity of records. Default: as in the mix, or uniform for `overwrite`.
    pub popularity: Option<RecordPopularity>,
    /// YCSB: exponent of the Zipf popularity. Default 0.99.
    pub zipf_exponent: f64,
    /// Bytes of all pages before compression, percent of the drive. Default 50.
    pub data_percent: f64,
    /// YCSB: bytes of a record, key and value. Default 128.
    pub record_bytes: u64,
    /// Bytes of a page. Default 4 KiB (LeanStore). InnoDB has 16 KiB, PostgreSQL 8 KiB.
    #[serde(with = "base::size")]
    pub page_bytes: u64,
    /// YCSB: fill of the pages, percent. Default 69 (ln 2, the result of random inserts).
    pub page_fill_percent: f64,
    /// Size of the buffer pool, percent of all pages. Default 10.
    pub pool_percent: f64,
    /// Location policy of page writes. Default `in_place`.
    pub layout: PageUpdate,
    /// In place: protection against torn pages. Default `doublewrite`.
    pub torn_pages: TornPages,
    /// In place: size of the doublewrite buffer at full scale, a ring. Default 64 MiB.
    #[serde(with = "base::size")]
    pub doublewrite_bytes: u64,
    /// Pages per write-back batch. Default 64.
    pub flush_pages: u32,
    /// Enables the log. Default true.
    pub wal: bool,
    /// Size of the log at full scale, a ring. Default 1 GiB (`max_wal_size` of PostgreSQL).
    #[serde(with = "base::size")]
    pub log_bytes: u64,
    /// Bytes of a log entry in addition to the record. Default 50.
    pub log_header_bytes: u64,
    /// Transactions per sync of the log. A sync writes the partial last block, and the next one
    /// rewrites it. With 0, only whole blocks are written. Default 0.
    pub transactions_per_sync: u32,
    /// Size of the undo pages at full scale, a ring beside the data. Each transaction with changes
    /// also changes the next undo page. Default 0, which keeps old versions elsewhere (PostgreSQL:
    /// in the pages).
    #[serde(with = "base::size")]
    pub undo_bytes: u64,
    /// Index pages, percent of the drive. They grow with the data, and updates do not change them.
    /// Default 0.
    pub index_percent: f64,
    /// Pages before the data that never change, percent of the drive. They stand for system tables
    /// and file system metadata. Default 0.
    pub unchanged_percent: f64,
    /// Checkpoint policy of the log. Default `fuzzy`.
    pub checkpoints: CheckpointPolicy,
    /// Transactions per forced checkpoint on the full drive. It writes all dirty pages independent
    /// of the log, like LMDB's commits. Default 0, which disables it.
    pub transactions_per_checkpoint: u64,
    /// Copy on write: checkpoints until the old location of a page is free. Default 1 (WiredTiger).
    /// LMDB has 2.
    pub checkpoints_kept: u32,
    /// Copy on write: children of an inner page. A checkpoint writes each inner page whose child
    /// has moved, up to the root. 0 omits inner pages. Default 100 (keys of about 20 bytes at
    /// `page_fill_percent`).
    pub children_per_inner_page: u32,
    /// Out of place, copy on write: space for pages, percent of the drive. Garbage collection uses
    /// the part beyond the data. Default 90.
    pub space_percent: f64,
    /// Out of place, copy on write: size of a compressed page, percent. Default 100.
    pub compressed_percent: f64,
    /// Out of place: size of a zone at full scale, bytes. Default 1 GiB.
    #[serde(with = "base::size")]
    pub zone_bytes: u64,
    /// Out of place: groups of pages by time of death, each with its own zones. Default 4.
    pub groups: u32,
    /// Placement policy of writes. Default `stream`.
    pub placement: BTreePlacement,
    /// Out of place: discards collected zones on the drive. Default true.
    pub discard: bool,
    /// Also issues reads. Default false.
    pub reads: bool,
}

impl Default for BTreeSettings {
    fn default() -> BTreeSettings {
        BTreeSettings {
            driver: DriverKind::Ycsb,
            mix: Mix::A,
            popularity: None,
            zipf_exponent: 0.99,
            data_percent: 50.0,
            record_bytes: 128,
            page_bytes: 4096,
            page_fill_percent: 69.0,
            pool_percent: 10.0,
            layout: PageUpdate::InPlace,
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
            checkpoints: CheckpointPolicy::Fuzzy,
            transactions_per_checkpoint: 0,
            checkpoints_kept: 1,
            children_per_inner_page: 100,
            space_percent: 90.0,
            compressed_percent: 100.0,
            zone_bytes: 1 << 30,
            groups: 4,
            placement: BTreePlacement::Stream,
            discard: true,
            reads: false,
        }
    }
}

/// Minimum number of pages of a tree, and of its pool.
const LEAST_PAGES: u64 = 256;
const LEAST_POOL_PAGES: u64 = 32;

impl BTreeSettings {
    /// Creates the source for a drive.
    pub fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<BTree, WorkloadError> {
        self.check()?;
        let capacity_bytes = target.capacity_bytes();
        let counts = self.page_counts(target);
        let (pages, all_pages) = (counts[0], counts.iter().sum::<u64>());
        let setting = || format!("data_percent = {}", self.data_percent);
        if pages < LEAST_PAGES {
            let problem = format!(
                "gives {pages} pages on a drive of {capacity_bytes} bytes, but {LEAST_PAGES} are \
                                   needed"
            );
            return Err(WorkloadError::setting(setting(), problem));
        }
        if u32::try_from(all_pages).is_err() {
            let problem = format!(
                "gives {all_pages} pages, but at most 2^32 - 1 are supported. Use a scaled model, \
                                   or larger pages"
            );
            return Err(WorkloadError::setting(setting(), problem));
        }
        let [data, undo, index, unchanged] = counts.map(|pages| pages as u32);
        let counts = PageCounts { data, undo, index, unchanged };
        let driver = BTreeDriver::new(self, data, target.denominator(), seed)?;
        let log =
            self.wal.then(|| TransactionLog::new(self.scaled(self.log_bytes, target), self.transactions_per_sync));
        let log_bytes = log.as_ref().map_or(0, |log| log.ring_bytes);
        let store = PageStore::new(self, counts.all(), log_bytes, target)?;
        let pool_pages = (f64::from(data) * self.pool_percent / 100.0) as u64;
        let pool = Pool::new(counts.all(), pool_pages.max(LEAST_POOL_PAGES) as u32);
        let output = BTreeOutput::new(self, target);
        Ok(BTree::new(self, counts, BTreeParts { driver, log, pool, store, output }, target))
    }

    /// Number of pages for data, undo, indexes and unchanged pages.
    fn page_counts(&self, target: &WorkloadTarget) -> [u64; 4] {
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

    pub fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        /// Bytes per page: its pool frame, its locations in store and zone, and its last lifetimes.
        const PAGE_MAP_BYTES: u64 = 96;
        const FIXED_BYTES: u64 = 16 << 20;
        self.check()?;
        let pages: u64 = self.page_counts(target).iter().sum();
        let zones = target.capacity_bytes() / self.scaled(self.zone_bytes, target);
        Ok(FIXED_BYTES + (pages + zones) * PAGE_MAP_BYTES)
    }

    fn filled_page_bytes(&self) -> u64 {
        (self.page_bytes as f64 * self.page_fill_percent / 100.0) as u64
    }

    /// Scaled bytes of a ring or zone. The result has whole blocks and pages, at least several.
    fn scaled(&self, bytes: u64, target: &WorkloadTarget) -> u64 {
        let unit_bytes = self.page_bytes.max(target.unit_bytes());
        (bytes / target.denominator()).next_multiple_of(unit_bytes).max(16 * unit_bytes)
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
