//! LSM-tree model of RocksDB on a simple file system, under YCSB's operation mixes.
//!
//! ```text
//! operation mix of a family (keys by popularity) -> database (one log)
//!   -> tree of the family (memtable, levels or tiers) -> space (extents) -> output -> requests
//! ```
//!
//! Keys are exact. Every table stores its sorted keys, so overlaps, overwrites and output sizes
//! need no assumption about popularity. All entries of a family have the same size.
//!
//! On a scaled model of 1/d, memtable, table, base level and number of records shrink. The
//! number of levels and the tables per level stay the same. An entry keeps its size. The log is
//! written in pieces of at least a mapping unit.
//!
//! The model omits deletes, compression, filter and index blocks, the manifest, concurrent
//! compactions and stalls.

mod database;
mod extents;
mod families;
mod level;
mod log;
mod output;
mod source;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::ycsb::{Mix, RecordPopularity};
pub use families::Family;
pub use output::LsmPlacement;
pub use source::Lsm;

use crate::ycsb::YcsbKeys;
use database::Database;
use extents::{BLOCK_BYTES, FreeSpace};
use families::FamilyMember;
use log::{LogRules, WriteAheadLog};
use output::{LsmOutput, PlacementInputs, TreeShape};
use source::Client;
use store::FileStore;
use tree::{LsmTree, TreeRules};
use workload::random::mix;
use workload::{WorkloadError, WorkloadTarget, multiple_of, within};

/// Settings table `[workload]` of `kind = "lsm"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LsmSettings {
    /// Operation mix after the load: `load`, `a` to `f` of YCSB, or `overwrite`. Default `a`.
    pub mix: Mix,
    /// Loads all records sorted into the levels of a steady tree of that size. If false, records
    /// are inserted one by one in random order, which writes the drive many times over. Default
    /// true, except for `load`.
    pub bulk_load: bool,
    /// Popularity of records. The default is YCSB's: latest for d and Zipf for the others. The
    /// default of `overwrite` is uniform (db_bench).
    pub popularity: Option<RecordPopularity>,
    /// Exponent of the Zipf popularity. Default 0.99 (YCSB).
    pub zipf_exponent: f64,
    /// Bytes of all records, percent of the drive. Default 50. Mixes d and e can insert a fifth
    /// more.
    pub data_percent: f64,
    /// Bytes of a key. Default 23 (YCSB, "user" and a hash).
    pub key_bytes: u32,
    /// Bytes of a value. Default 1000 (YCSB, ten fields of 100).
    pub value_bytes: u32,
    /// Compaction style. Default `levelled` (RocksDB).
    pub compaction: Compaction,
    /// Size of a memtable at full scale. Default 64 MiB (`write_buffer_size`).
    #[serde(with = "base::size")]
    pub memtable_bytes: u64,
    /// Size of a table at full scale. Default 64 MiB (`target_file_size_base`).
    #[serde(with = "base::size")]
    pub table_bytes: u64,
    /// Size of level 1 at full scale. Default 256 MiB (`max_bytes_for_level_base`).
    #[serde(with = "base::size")]
    pub base_level_bytes: u64,
    /// Size ratio of neighbouring levels. Default 10 (`max_bytes_for_level_multiplier`).
    pub level_multiplier: u64,
    /// Number of levels. Default 7 (`num_levels`).
    pub levels: u32,
    /// Number of level 0 tables, or of runs in a tiered tree, that starts a compaction. Default 4
    /// (`level0_file_num_compaction_trigger`).
    pub level_zero_tables: u32,
    /// Derives target sizes from the size of the last level. Default true
    /// (`level_compaction_dynamic_level_bytes`, since 8.4).
    pub dynamic_levels: bool,
    /// Tiered: excess of a run over all younger runs up to which it is merged, percent. Default 1
    /// (`size_ratio`).
    pub size_ratio_percent: u64,
    /// Tiered: size of the younger runs relative to the oldest that merges all runs, percent.
    /// Default 200 (`max_size_amplification_percent`).
    pub space_amplification_percent: u64,
    /// Enables the log. Default true.
    pub wal: bool,
    /// Puts per sync of the log. With 0, the log is written in pieces of `write_bytes` without
    /// syncs. Default 0 (`sync = false`).
    pub writes_per_sync: u32,
    /// Size of a write. Default 1 MiB (`writable_file_max_buffer_size`).
    #[serde(with = "base::size")]
    pub write_bytes: u64,
    /// Placement policy of writes. Default `level`.
    pub placement: LsmPlacement,
    /// With `placement = "table"`, the placement indices of the log, level 0, level 1 and so on.
    /// All deeper levels use the last one.
    pub placement_table: Vec<u16>,
    /// Bytes of the log at full scale that trigger a flush of the families in its oldest file
    /// (`max_total_wal_size`). Default 0, which means eight times all memtables. RocksDB's default
    /// is four times the maximum, two memtables per family.
    #[serde(with = "base::size")]
    pub max_total_wal_bytes: u64,
    /// Flushes all families together (`atomic_flush`). Default false.
    pub atomic_flush: bool,
    /// Reuses the space of an old log file for the next one (`recycle_log_file_num`). Default
    /// false.
    pub recycle_wal: bool,
    /// Discards the extents of deleted files on the drive. Default true.
    pub discard: bool,
    /// Also issues the reads of applications and compactions. Default false.
    pub reads: bool,
    /// Column families by name. Without any, the database has one family without a name.
    pub families: BTreeMap<String, Family>,
}

impl Default for LsmSettings {
    fn default() -> LsmSettings {
        LsmSettings {
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
            placement: LsmPlacement::Level,
            placement_table: Vec::new(),
            max_total_wal_bytes: 0,
            atomic_flush: false,
            recycle_wal: false,
            discard: true,
            reads: false,
            families: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compaction {
    /// Merges level by level.
    Levelled,
    /// Merges runs of similar size (RocksDB's universal compaction).
    Tiered,
    /// Deletes the oldest tables when all tables exceed `data_percent` and merges nothing. This is
    /// RocksDB's FIFO compaction, a cache of the latest puts. There is no load phase.
    Fifo,
}

/// Minimum number of entries of a memtable or table.
const LEAST_ENTRIES: u64 = 16;
/// Default size of the log in memtables. RocksDB takes four times the maximum memory of memtables
/// (`DBImpl::GetMaxTotalWalSize`), and each family may have two (`max_write_buffer_number`).
const LOG_MEMTABLES: u64 = 8;

impl LsmSettings {
    /// Creates the source for a drive.
    pub fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<Lsm, WorkloadError> {
        self.check()?;
        let capacity_bytes = target.capacity_bytes();
        let blocks = u32::try_from(capacity_bytes / BLOCK_BYTES)
            .map_err(|_| too_large(format!("the number of blocks on a drive of {capacity_bytes} bytes")))?;
        let members = self.members();
        let parts = members.iter().enumerate();
        let parts: Vec<(LsmTree, Client)> =
            parts.map(|(number, member)| member.begin(number, target, seed)).collect::<Result<_, _>>()?;
        let (trees, clients): (Vec<LsmTree>, Vec<Client>) = parts.into_iter().unzip();
        let store = FileStore {
            space: FreeSpace::new(blocks),
            output: self.output(&members, &trees, target),
            discard: self.discard,
            reads: self.reads,
        };
        let database = Database {
            log: self.wal.then(|| WriteAheadLog::new(self.log_rules(&trees, target))),
            max_log_bytes: self.max_log_bytes(&trees, target)?,
            atomic_flush: self.atomic_flush,
            store,
            trees,
        };
        let names = members.into_iter().filter_map(|member| member.name).collect();
        Ok(Lsm::new(database, clients, names, seed))
    }

    pub fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        /// Bytes per record: its key in tables of two levels, in the load and in a merge.
        const RECORD_KEY_BYTES: f64 = 32.0;
        const FIXED_BYTES: u64 = 16 << 20;
        self.check()?;
        let bytes = |member: &FamilyMember| {
            let share = member.settings.data_percent / 100.0 * member.data_share;
            let records = target.capacity_bytes() as f64 * share / member.settings.entry_bytes() as f64;
            (records * RECORD_KEY_BYTES) as u64
        };
        let members = self.members();
        let extents_bytes = target.capacity_bytes() / BLOCK_BYTES / 4;
        let fixed_bytes = FIXED_BYTES * members.len() as u64 + extents_bytes;
        Ok(members.iter().map(bytes).fold(fixed_bytes, u64::saturating_add))
    }

    fn output(&self, members: &[FamilyMember], trees: &[LsmTree], target: &WorkloadTarget) -> LsmOutput {
        let placer = PlacementInputs {
            placement: self.placement,
            log_index: self.placement_table.first().copied().unwrap_or(0),
            count: target.placement_count,
        };
        let of_tree = |member: &FamilyMember| TreeShape {
            levels: member.settings.levels as usize,
            only_runs: member.settings.compaction != Compaction::Levelled,
            table: member.level_placements.clone(),
        };
        let memtable_bytes = trees.iter().map(|tree| tree.rules.memtable_bytes()).sum();
        let sizes = (target.request_bytes(self.write_bytes), memtable_bytes);
        LsmOutput::new(placer, members.iter().map(of_tree).collect(), sizes)
    }

    fn log_rules(&self, trees: &[LsmTree], target: &WorkloadTarget) -> LogRules {
        let memtables = trees.iter().map(|tree| tree.rules.memtable_bytes());
        LogRules {
            writes_per_sync: self.writes_per_sync,
            write_bytes: target.request_bytes(self.write_bytes),
            // The first full memtable ends a file. Every file therefore holds at least the smallest
            // memtable.
            space_bytes: memtables.min().expect("there is a tree"),
            recycle: self.recycle_wal,
        }
    }

    /// Size of the log that triggers flushes, bytes. A single family has no limit, because no other
    /// family can lag.
    fn max_log_bytes(&self, trees: &[LsmTree], target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        let memtables = trees.iter().map(|tree| tree.rules.memtable_bytes());
        if trees.len() == 1 {
            return Ok(u64::MAX);
        }
        if self.max_total_wal_bytes == 0 {
            return Ok(LOG_MEMTABLES * memtables.sum::<u64>());
        }
        let entry_bytes = trees.iter().map(|tree| tree.rules.entry_bytes).max();
        let entry_bytes = entry_bytes.expect("there is a tree");
        let entries = scaled("max_total_wal_bytes", self.max_total_wal_bytes, target, entry_bytes)?;
        Ok(entries * entry_bytes)
    }

    /// Rules of a tree. Error messages put `place` before the names of its settings.
    fn rules(&self, place: &str, target: &WorkloadTarget, most_entries: u64) -> Result<TreeRules, WorkloadError> {
        let entry_bytes = self.entry_bytes();
        let scaled = |name: &str, bytes: u64| scaled(&format!("{place}{name}"), bytes, target, entry_bytes);
        Ok(TreeRules {
            entry_bytes,
            memtable_entries: scaled("memtable_bytes", self.memtable_bytes)?,
            table_entries: scaled("table_bytes", self.table_bytes)?,
            base_entries: scaled("base_level_bytes", self.base_level_bytes)?,
            most_entries,
            settings: self.clone(),
        })
    }

    fn entry_bytes(&self) -> u64 {
        u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if self.placement == LsmPlacement::Table && self.placement_table.is_empty() {
            let problem = "is empty. Give the placement index of the log, then those of the levels";
            return Err(WorkloadError::setting("placement_table", problem));
        }
        within("data_percent", self.data_percent, 0.1..=95.0)?;
        self.check_tree("")?;
        multiple_of(BLOCK_BYTES, "write_bytes", self.write_bytes, 1 << 30)?;
        self.check_families()?;
        let mut families = self.members().into_iter();
        families.try_for_each(|family| family.settings.check_tree(&family.place))
    }

    /// Checks the settings that a family can override.
    fn check_tree(&self, place: &str) -> Result<(), WorkloadError> {
        let name = |setting: &str| format!("{place}{setting}");
        within(&name("zipf_exponent"), self.zipf_exponent, 0.0..=10.0)?;
        within(&name("value_bytes"), self.value_bytes, 1..=16 << 20)?;
        within(&name("key_bytes"), self.key_bytes, 0..=64 << 10)?;
        within(&name("levels"), self.levels, 2..=10)?;
        within(&name("level_zero_tables"), self.level_zero_tables, 2..=1000)?;
        within(&name("level_multiplier"), self.level_multiplier, 2..=1000)?;
        within(&name("size_ratio_percent"), self.size_ratio_percent, 0..=1000)?;
        let percent = self.space_amplification_percent;
        within(&name("space_amplification_percent"), percent, 1..=10_000)
    }
}

fn too_large(setting: String) -> WorkloadError {
    WorkloadError::setting(setting, "exceeds the supported 2^32 - 1. Use a scaled model, or larger values")
}

/// Number of entries in `bytes` bytes of the full-size drive, after scaling.
fn scaled(name: &str, bytes: u64, target: &WorkloadTarget, entry_bytes: u64) -> Result<u64, WorkloadError> {
    let entries = bytes / target.denominator() / entry_bytes;
    if entries >= LEAST_ENTRIES {
        return Ok(entries);
    }
    let problem = format!(
        "holds {entries} entries at this scale, but {LEAST_ENTRIES} are needed. Use a larger scaled model or smaller \
         entries"
    );
    Err(WorkloadError::setting(format!("{name} = {bytes}"), problem))
}

impl FamilyMember {
    /// Suffix for error messages that names the family.
    fn name_suffix(&self) -> String {
        self.name.as_ref().map_or(String::new(), |name| format!(" of the family {name}"))
    }

    fn begin(&self, number: usize, target: &WorkloadTarget, seed: u64) -> Result<(LsmTree, Client), WorkloadError> {
        let settings = &self.settings;
        let data_bytes = (target.capacity_bytes() as f64 * settings.data_percent / 100.0 * self.data_share) as u64;
        let records = data_bytes / settings.entry_bytes();
        let most = u32::try_from(records * 6 / 5)
            .map_err(|_| too_large(format!("the number of records{} = {records}", self.name_suffix())))?;
        let rules = settings.rules(&self.place, target, records)?;
        if records < 10 * rules.memtable_entries {
            let of_whom = self.name_suffix();
            let problem = format!(
                "gives {records} records{of_whom}, less than ten memtables. Use more data, or smaller \
                         memtables"
            );
            let setting = format!("data_percent = {}", settings.data_percent);
            return Err(WorkloadError::setting(setting, problem));
        }
        // The first family draws the same keys as a database without families.
        let seed = if number == 0 { seed } else { mix(seed ^ mix(number as u64)) };
        let popularity = settings.popularity.unwrap_or(settings.mix.popularity());
        let exponent = settings.zipf_exponent;
        let keys = YcsbKeys::new(most, target.denominator(), popularity, exponent, seed);
        let tree = LsmTree::new(rules, number);
        let bulk = (settings.bulk_load && settings.mix != Mix::Load) || settings.compaction == Compaction::Fifo;
        // A mix without puts makes no requests, so the source skips it.
        let is_idle = match settings.mix {
            Mix::Load => !target.endless,
            Mix::C => !settings.reads,
            _ => false,
        };
        let operation_share = if is_idle { 0.0 } else { self.operation_share };
        let client = Client::new(&tree, keys, settings.mix, records as u32, bulk, operation_share);
        Ok((tree, client))
    }
}
