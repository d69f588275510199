//! LSM tree: a model of RocksDB on a simple file system, under YCSB's mixes of operations.
//!
//! ```text
//! mix (keys by popularity) -> tree (log, memtable, levels or tiers) -> space (extents) -> output -> requests
//! ```
//!
//! Keys are exact: every table holds the sorted list of its keys, so that overlaps, overwritten entries and the sizes of outputs need no
//! assumption about popularity. Entries have one size.
//!
//! What shrinks on a twin of 1/d: memtable, table, base level and the number of records, so that the number of levels and the tables of
//! each stay; an entry does not shrink, and the log is written in pieces of a mapping unit at least.
//!
//! It leaves out: deletes, compression, column families, filter and index blocks, the manifest, concurrent compactions and stalls.

mod extents;
mod output;
mod rules;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use serde::{Deserialize, Serialize};

pub use crate::ycsb::{Mix, Popularity};
pub use output::Placement;
pub use source::Lsm;

use crate::ycsb::Keys;
use extents::{BLOCK_BYTES, Space};
use output::{Output, Placer};
use rules::Rules;
use tree::Tree;
use workload::{Target, WorkloadError, multiple_of, within};

/// The `[workload]` table of `kind = "lsm"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Which operations, after every record was inserted once: `load`, `a` to `f` of YCSB, or `overwrite`. `a`.
    pub mix: Mix,
    /// All records are first written, sorted, into the levels in which a tree of that size has them; otherwise they are inserted one by one
    /// in random order, which alone writes the drive many times over. True, but for `load`.
    pub bulk_load: bool,
    /// Which records are popular. None: YCSB's, latest for d and Zipf for the others; uniform for `overwrite` (db_bench).
    pub popularity: Option<Popularity>,
    /// Exponent of Zipf. 0.99 (YCSB).
    pub zipf_exponent: f64,
    /// Bytes of all records, as a share of the drive, percent. 50. A fifth more can be inserted by mixes d and e.
    pub data_percent: f64,
    /// Bytes of a key. 23 (YCSB: "user" and a hash).
    pub key_bytes: u32,
    /// Bytes of a value. 1000 (YCSB: ten fields of 100).
    pub value_bytes: u32,
    /// How tables are merged. `levelled` (RocksDB).
    pub compaction: Compaction,
    /// Size of a memtable, full size. 64 MiB (`write_buffer_size`).
    #[serde(with = "base::size")]
    pub memtable_bytes: u64,
    /// Size of a table, full size. 64 MiB (`target_file_size_base`).
    #[serde(with = "base::size")]
    pub table_bytes: u64,
    /// Size of level 1, full size. 256 MiB (`max_bytes_for_level_base`).
    #[serde(with = "base::size")]
    pub base_level_bytes: u64,
    /// How many times larger each next level is. 10 (`max_bytes_for_level_multiplier`).
    pub level_multiplier: u64,
    /// Number of levels. 7 (`num_levels`).
    pub levels: u32,
    /// Tables of level 0 that start a compaction; of a tiered tree, runs. 4 (`level0_file_num_compaction_trigger`).
    pub level_zero_tables: u32,
    /// Targets follow from the size of the last level. True (`level_compaction_dynamic_level_bytes`, since 8.4).
    pub dynamic_levels: bool,
    /// Tiered: a run is merged if it is at most so much larger than all younger ones, percent. 1 (`size_ratio`).
    pub size_ratio_percent: u64,
    /// Tiered: everything is merged if the younger runs have so much of the oldest, percent. 200
    /// (`max_size_amplification_percent`).
    pub space_amplification_percent: u64,
    /// There is a log. True.
    pub wal: bool,
    /// Puts after which the log is synced; 0: never, it is written in pieces of `write_bytes`. 0 (`sync = false`).
    pub writes_per_sync: u32,
    /// Size of a write. 1 MiB (`writable_file_max_buffer_size`).
    #[serde(with = "base::size")]
    pub write_bytes: u64,
    /// Which placement index a write gets. `level`.
    pub placement: Placement,
    /// With `placement = "table"`: the placement index of the log, of level 0, of level 1, ...; the last is that of all deeper ones.
    pub placement_table: Vec<u16>,
    /// The log's space is used again by the next log (`recycle_log_file_num`). False.
    pub recycle_wal: bool,
    /// The drive is told of deleted files. True.
    pub discard: bool,
    /// Reads are produced too, of applications and of compactions. False.
    pub reads: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mix: Mix::A,
            bulk_load: true,
            popularity: None,
            zipf_exponent: 0.99,
            data_percent: 50.0,
            key_bytes: 23,
            value_bytes: 1000,
            compaction: Compaction::Levelled,
            memtable_bytes: 64 << 20,
            table_bytes: 64 << 20,
            base_level_bytes: 256 << 20,
            level_multiplier: 10,
            levels: 7,
            level_zero_tables: 4,
            dynamic_levels: true,
            size_ratio_percent: 1,
            space_amplification_percent: 200,
            wal: true,
            writes_per_sync: 0,
            write_bytes: 1 << 20,
            placement: Placement::Level,
            placement_table: Vec::new(),
            recycle_wal: false,
            discard: true,
            reads: false,
        }
    }
}

/// How tables are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compaction {
    /// Level by level.
    Levelled,
    /// Runs of similar size become one (RocksDB's universal compaction).
    Tiered,
    /// Nothing is merged: the oldest tables are deleted when all are larger than `data_percent` (RocksDB's FIFO compaction, a cache of what
    /// was put last). Nothing is loaded.
    Fifo,
}

/// Fewest entries of a memtable or table.
const LEAST_ENTRIES: u64 = 16;

impl Settings {
    /// The workload on a drive.
    ///
    /// # Errors
    /// A setting that cannot be, or that does not fit the drive.
    pub fn source(&self, target: &Target, seed: u64) -> Result<Lsm, WorkloadError> {
        self.check()?;
        let entry_bytes = u64::from(self.key_bytes) + u64::from(self.value_bytes);
        let capacity_bytes = target.capacity_bytes();
        let blocks = capacity_bytes / BLOCK_BYTES;
        let records = (capacity_bytes as f64 * self.data_percent / 100.0) as u64 / entry_bytes;
        let too_large = |setting: String| {
            WorkloadError::setting(setting, "more than 32 bits can number; use a twin, or larger values")
        };
        let blocks = u32::try_from(blocks).map_err(|_| too_large(format!("a drive of {capacity_bytes} bytes")))?;
        let most = u32::try_from(records * 6 / 5).map_err(|_| too_large(format!("{records} records")))?;
        let rules = self.rules(target, entry_bytes)?;
        if records < 10 * rules.memtable_entries {
            let setting = format!("data_percent = {}", self.data_percent);
            let problem = format!("{records} records are less than ten memtables; use more, or smaller memtables");
            return Err(WorkloadError::setting(setting, problem));
        }
        let sizes = (rules.write_bytes, rules.memtable_entries * entry_bytes);
        let output = Output::new(
            Placer {
                placement: self.placement,
                table: self.placement_table.clone(),
                count: target.placement_count,
            },
            rules.compaction != Compaction::Levelled,
            self.levels as usize,
            sizes,
        );
        let popularity = self.popularity.unwrap_or(self.mix.popularity());
        let keys = Keys::new(most, target.denominator(), popularity, self.zipf_exponent, seed);
        let bulk = (self.bulk_load && self.mix != Mix::Load) || self.compaction == Compaction::Fifo;
        let tree = Tree::new(
            Rules {
                most_entries: records,
                ..rules
            },
            Space::new(blocks),
            output,
        );
        Ok(Lsm::new(tree, keys, self.mix, records as u32, bulk, target.endless))
    }

    fn rules(&self, target: &Target, entry_bytes: u64) -> Result<Rules, WorkloadError> {
        let scaled = |name: &str, bytes: u64| {
            let entries = bytes / target.denominator() / entry_bytes;
            if entries < LEAST_ENTRIES {
                let problem = format!(
                    "holds {entries} entries at this scale, {LEAST_ENTRIES} are needed; use a larger scale or smaller entries"
                );
                return Err(WorkloadError::setting(format!("{name} = {bytes}"), problem));
            }
            Ok(entries)
        };
        let write_bytes = target.request_bytes(self.write_bytes);
        Ok(Rules {
            entry_bytes,
            memtable_entries: scaled("memtable_bytes", self.memtable_bytes)?,
            table_entries: scaled("table_bytes", self.table_bytes)?,
            base_entries: scaled("base_level_bytes", self.base_level_bytes)?,
            multiplier: self.level_multiplier,
            levels: self.levels,
            level_zero_tables: self.level_zero_tables,
            dynamic_levels: self.dynamic_levels,
            compaction: self.compaction,
            most_entries: 0,
            recycle_wal: self.recycle_wal,
            size_ratio_percent: self.size_ratio_percent,
            space_amplification_percent: self.space_amplification_percent,
            wal: self.wal,
            writes_per_sync: self.writes_per_sync,
            write_bytes,
            discard: self.discard,
            reads: self.reads,
        })
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if self.placement == Placement::Table && self.placement_table.is_empty() {
            let problem = "is empty; give the placement index of the log, then those of the levels";
            return Err(WorkloadError::setting("placement_table", problem));
        }
        within("data_percent", self.data_percent, 0.1..=95.0)?;
        within("zipf_exponent", self.zipf_exponent, 0.0..=10.0)?;
        within("value_bytes", self.value_bytes, 1..=16 << 20)?;
        within("key_bytes", self.key_bytes, 0..=64 << 10)?;
        within("levels", self.levels, 2..=10)?;
        within("level_zero_tables", self.level_zero_tables, 2..=1000)?;
        within("level_multiplier", self.level_multiplier, 2..=1000)?;
        within("size_ratio_percent", self.size_ratio_percent, 0..=1000)?;
        within(
            "space_amplification_percent",
            self.space_amplification_percent,
            1..=10_000,
        )?;
        multiple_of(BLOCK_BYTES, "write_bytes", self.write_bytes, 1 << 30)
    }
}
