//! Tree of a column family: a memtable, overlapping tables in level 0, and sorted levels.
//!
//! ```text
//! put -> memtable --flush--> level 0 --compaction--> level 1 --> level 2 --> ...
//! ```
//!
//! Flushes and compactions complete immediately when they are due. A real machine overlaps them in
//! time and thus mixes their writes, but in pieces smaller than a reclaim unit. The rules come from
//! RocksDB: `db/version_set.cc` (scores, targets of levels),
//! `db/compaction/compaction_picker_level.cc` and `compaction_picker_universal.cc`.

use super::extents::BLOCK_BYTES;
use super::level::SortedLevel;
use super::output::WriteOrigin;
use super::store::{FileStore, StoreFull, blocks_of};
use super::table::{SortedTable, merge};
use super::{Compaction, LsmSettings};

/// Settings of a tree, with its sizes in entries of the drive or its scaled model.
pub struct TreeRules {
    pub(super) settings: LsmSettings,
    /// Bytes of a key with its value.
    pub entry_bytes: u64,
    pub(super) memtable_entries: u64,
    pub(super) table_entries: u64,
    pub(super) base_entries: u64,
    /// Maximum number of entries of a FIFO tree.
    pub(super) most_entries: u64,
}

impl TreeRules {
    /// Bytes of a full memtable.
    pub fn memtable_bytes(&self) -> u64 {
        self.memtable_entries * self.entry_bytes
    }
}

#[derive(Debug, Clone, Default)]
pub struct TreeCounters {
    /// Bytes of keys and values put by the application.
    pub application_bytes: u64,
    /// Bytes written to the drive by a bulk load.
    pub loaded_bytes: u64,
    pub level_bytes: Vec<u64>,
    /// Number of memtable flushes.
    pub flushes: u64,
    /// Flushes of partial memtables. The cause is a large log or a joint flush of all families.
    pub early_flushes: u64,
    pub compactions: u64,
    /// Tables moved to another level without a write.
    pub trivial_moves: u64,
}

pub struct LsmTree {
    pub(super) rules: TreeRules,
    /// Number of the tree in its database.
    number: usize,
    pub(super) counters: TreeCounters,
    pub(super) memtable: Vec<u32>,
    /// Log file with the memtable's oldest entry.
    pub(super) oldest_log: Option<u64>,
    /// Sorted runs, oldest first: level 0, or all of a tiered tree.
    pub(super) runs: Vec<Vec<SortedTable>>,
    /// Levels from 1.
    pub(super) levels: Vec<SortedLevel>,
    pub(super) entries: Vec<u64>,
}

impl LsmTree {
    /// Creates an empty tree with this number in its database.
    pub fn new(rules: TreeRules, number: usize) -> LsmTree {
        let levels = rules.settings.levels as usize;
        LsmTree {
            number,
            counters: TreeCounters { level_bytes: vec![0; levels], ..TreeCounters::default() },
            memtable: Vec::with_capacity(rules.memtable_entries as usize),
            oldest_log: None,
            runs: Vec::new(),
            levels: (1..levels).map(|_| SortedLevel::default()).collect(),
            entries: vec![0; levels - 1],
            rules,
        }
    }

    /// Puts a key into the memtable, which must have room.
    pub fn put(&mut self, key: u32) {
        assert!(!self.is_full(), "a full memtable is flushed before the next put");
        self.counters.application_bytes += self.rules.entry_bytes;
        self.memtable.push(key);
    }

    /// True if the memtable must be flushed.
    pub fn is_full(&self) -> bool {
        self.memtable.len() as u64 == self.rules.memtable_entries
    }

    /// True if the memtable is empty and needs no log.
    pub fn is_empty(&self) -> bool {
        self.memtable.is_empty()
    }

    /// Writes the memtable as a table of level 0. The tree then needs no log.
    pub fn flush(&mut self, store: &mut FileStore) -> Result<(), StoreFull> {
        self.counters.early_flushes += u64::from(!self.is_full());
        let mut keys = std::mem::take(&mut self.memtable);
        keys.sort_unstable();
        keys.dedup();
        let run = self.write_tables(store, &keys, 0)?;
        self.runs.push(run);
        keys.clear();
        self.memtable = keys;
        self.oldest_log = None;
        self.counters.flushes += 1;
        Ok(())
    }

    /// Number of entries of each level from 1, in a tree of `records` records after many updates.
    /// The last level has all records, the levels above have newer versions of some.
    pub fn steady_levels(&self, records: u64) -> Vec<u64> {
        let mut steady = vec![0; self.levels.len()];
        let deepest = steady.len() - 1;
        if self.rules.settings.dynamic_levels {
            let mut entries = records;
            for level in steady.iter_mut().skip(1).rev() {
                *level = entries;
                entries /= self.rules.settings.level_multiplier;
                if entries <= self.rules.base_entries {
                    break;
                }
            }
        } else {
            let mut target = self.rules.base_entries;
            for (number, level) in steady.iter_mut().enumerate() {
                *level = if number == deepest { records } else { records.min(target) };
                if *level == records {
                    break;
                }
                target = target.saturating_mul(self.rules.settings.level_multiplier);
            }
        }
        steady
    }

    /// Writes sorted keys directly into a level for a bulk load. Level 0 means a tiered tree's
    /// oldest run. The keys must be larger than those of earlier calls.
    pub fn ingest(&mut self, store: &mut FileStore, keys: &[u32], level: usize) -> Result<(), StoreFull> {
        let tier = if level == 0 { self.tier(u64::from(u32::MAX)) } else { level };
        let written = store.output.bytes_written;
        let tables = self.write_tables(store, keys, tier)?;
        // Load bytes are counted separately, because they say nothing about the mix that follows.
        self.counters.level_bytes[tier] -= keys.len() as u64 * self.rules.entry_bytes;
        self.counters.loaded_bytes += store.output.bytes_written - written;
        if level == 0 {
            if self.runs.is_empty() {
                self.runs.push(Vec::new());
            }
            self.runs[0].extend(tables);
        } else {
            self.entries[level - 1] += keys.len() as u64;
            self.insert_tables(level - 1, tables);
        }
        Ok(())
    }

    /// Adds the tables of ascending keys to `levels[level]`.
    fn insert_tables(&mut self, level: usize, tables: Vec<SortedTable>) {
        let (Some(first), Some(last)) = (tables.first(), tables.last()) else { return };
        let (first, last) = (first.first(), last.last());
        tables.into_iter().for_each(|table| self.levels[level].insert(table));
        self.update_costs(level, first, last);
        self.update_costs_above(level, first, last);
    }

    /// Computes the costs of the tables of `levels[level]` that overlap the keys `first` to `last`.
    fn update_costs(&mut self, level: usize, first: u32, last: u32) {
        let (levels, next) = self.levels.split_at_mut(level + 1);
        if let Some(next) = next.first() {
            levels[level].update_costs(next, first, last);
        }
    }

    /// Computes the costs that depend on the tables of `levels[level]` from `first` to `last`.
    fn update_costs_above(&mut self, level: usize, first: u32, last: u32) {
        if let Some(above) = level.checked_sub(1) {
            self.update_costs(above, first, last);
        }
    }

    /// Runs the due compactions.
    pub fn compact(&mut self, store: &mut FileStore) -> Result<(), StoreFull> {
        match self.rules.settings.compaction {
            Compaction::Levelled => self.compact_levels(store),
            Compaction::Tiered => self.compact_tiers(store),
            Compaction::Fifo => {
                self.delete_oldest(store);
                Ok(())
            }
        }
    }

    /// FIFO: deletes the oldest runs above the maximum size.
    fn delete_oldest(&mut self, store: &mut FileStore) {
        let entries = |run: &Vec<SortedTable>| run.iter().map(|table| table.keys.len() as u64).sum::<u64>();
        let mut all: u64 = self.runs.iter().map(entries).sum();
        let mut deleted = 0;
        while all > self.rules.most_entries {
            all -= entries(&self.runs[deleted]);
            deleted += 1;
        }
        let runs: Vec<Vec<SortedTable>> = self.runs.drain(..deleted).collect();
        for run in runs {
            store.delete_tables(run, self.number, 0);
        }
    }

    /// Levelled: compacts the level with the highest score until no level is too large.
    fn compact_levels(&mut self, store: &mut FileStore) -> Result<(), StoreFull> {
        loop {
            let targets = self.targets();
            let base = self.base(&targets);
            let level_zero_score = self.runs.len() as f64 / f64::from(self.rules.settings.level_zero_tables);
            let scores = (base..self.levels.len() - 1).map(|level| self.entries[level] as f64 / targets[level] as f64);
            let (level, score) = (base..)
                .zip(scores)
                .fold((usize::MAX, level_zero_score), |best, level| if level.1 > best.1 { level } else { best });
            if score < 1.0 {
                return Ok(());
            }
            match level {
                usize::MAX => self.compact_level_zero(store, base)?,
                level => self.compact_level(store, level)?,
            }
        }
    }

    /// Target number of entries of each level from 1. Fixed targets begin with the base size and
    /// grow by the multiplier. Dynamic targets begin with the size of the largest level, which the
    /// last level gets, and shrink upwards to the base size. Levels above that stay empty.
    fn targets(&self) -> Vec<u64> {
        let multiplier = self.rules.settings.level_multiplier;
        let mut targets = vec![0; self.levels.len()];
        if self.rules.settings.dynamic_levels {
            let mut target = *self.entries.iter().max().expect("there are levels");
            for level in targets.iter_mut().rev() {
                *level = target.max(1);
                if target <= self.rules.base_entries {
                    *level = self.rules.base_entries;
                    break;
                }
                target /= multiplier;
            }
        } else {
            let mut target = self.rules.base_entries;
            for level in &mut targets {
                *level = target;
                target = target.saturating_mul(multiplier);
            }
        }
        targets
    }

    /// Index in `levels` of the level that receives the tables of level 0.
    fn base(&self, targets: &[u64]) -> usize {
        let first_used = self.entries.iter().position(|entries| *entries > 0);
        let wanted = targets.iter().position(|target| *target > 0).expect("some level has a target");
        first_used.map_or(wanted, |used| used.min(wanted))
    }

    /// Merges all of level 0 into the base level, `levels[base]`.
    fn compact_level_zero(&mut self, store: &mut FileStore, base: usize) -> Result<(), StoreFull> {
        store.output.set_base(self.number, base + 1);
        let runs = std::mem::take(&mut self.runs);
        let inputs: Vec<SortedTable> = runs.into_iter().flatten().collect();
        let keys = inputs.iter().fold(Vec::new(), |keys, table| merge(&table.keys, &keys));
        self.merge_into(store, base, &keys, inputs, 0)
    }

    /// Merges the table of `levels[level]` with the smallest cost into the next level.
    fn compact_level(&mut self, store: &mut FileStore, level: usize) -> Result<(), StoreFull> {
        let (cost, mut table) = self.levels[level].take_cheapest();
        self.update_costs_above(level, table.first(), table.last());
        self.entries[level] -= table.keys.len() as u64;
        if cost == 0 {
            self.counters.trivial_moves += 1;
            self.entries[level + 1] += table.keys.len() as u64;
            self.insert_tables(level + 1, vec![table]);
            return Ok(());
        }
        let keys = std::mem::take(&mut table.keys);
        self.merge_into(store, level + 1, &keys, vec![table], level + 1)
    }

    /// Merges `keys`, those of the tables `inputs`, into `levels[level]`. `from` is the number of the
    /// level of the inputs. Numbers are one larger than indices in `levels`, because level 0 has
    /// runs.
    fn merge_into(
        &mut self,
        store: &mut FileStore,
        level: usize,
        keys: &[u32],
        inputs: Vec<SortedTable>,
        from: usize,
    ) -> Result<(), StoreFull> {
        let last = *keys.last().expect("a compaction has keys");
        let below = self.levels[level].take_overlapping(keys[0], last);
        let old = keys_of(&below);
        self.entries[level] -= old.len() as u64;
        let merged = merge(keys, &old);
        store.read_tables(&inputs);
        store.read_tables(&below);
        let tables = self.write_tables(store, &merged, level + 1)?;
        self.insert_tables(level, tables);
        self.entries[level] += merged.len() as u64;
        store.delete_tables(inputs, self.number, from);
        store.delete_tables(below, self.number, level + 1);
        self.counters.compactions += 1;
        Ok(())
    }

    /// Tiered (RocksDB's universal): merges neighbouring runs while there are too many, by the
    /// first rule that applies.
    fn compact_tiers(&mut self, store: &mut FileStore) -> Result<(), StoreFull> {
        while self.runs.len() >= self.rules.settings.level_zero_tables as usize {
            let entries: Vec<u64> =
                self.runs.iter().map(|run| run.iter().map(|table| table.keys.len() as u64).sum()).collect();
            let Some(places) = self.runs_to_merge(&entries) else {
                return Ok(());
            };
            self.merge_runs(store, places)?;
        }
        Ok(())
    }

    /// Selects neighbouring runs to merge.
    fn runs_to_merge(&self, entries: &[u64]) -> Option<std::ops::Range<usize>> {
        // Space amplification: merge all runs if the younger ones are too large.
        let above: u64 = entries[1..].iter().sum();
        if above * 100 >= entries[0] * self.rules.settings.space_amplification_percent {
            return Some(0..entries.len());
        }
        // Similar size: from a start run, add older runs while the next is no larger than the sum
        // so far.
        for end in (2..=entries.len()).rev() {
            let mut sum = entries[end - 1];
            let mut start = end - 1;
            while start > 0 && entries[start - 1] * 100 <= sum * (100 + self.rules.settings.size_ratio_percent) {
                start -= 1;
                sum += entries[start];
            }
            if end - start >= 2 {
                return Some(start..end);
            }
        }
        // Number of runs: merge the youngest ones to return to the limit.
        let limit = self.rules.settings.level_zero_tables as usize;
        (entries.len() > limit).then(|| limit - 1..entries.len())
    }

    fn merge_runs(&mut self, store: &mut FileStore, places: std::ops::Range<usize>) -> Result<(), StoreFull> {
        let start = places.start;
        let runs: Vec<Vec<SortedTable>> = self.runs.drain(places).collect();
        let merged = runs.iter().rev().fold(Vec::new(), |keys, run| merge(&keys, &keys_of(run)));
        let tier = self.tier(merged.len() as u64);
        for run in &runs {
            store.read_tables(run);
        }
        let tables = self.write_tables(store, &merged, tier)?;
        self.runs.insert(start, tables);
        for run in runs {
            let entries = run.iter().map(|table| table.keys.len() as u64).sum();
            let tier = self.tier(entries);
            store.delete_tables(run, self.number, tier);
        }
        self.counters.compactions += 1;
        Ok(())
    }

    /// Level that a run of this size counts for in a tiered tree. Tiers are powers of the trigger
    /// above a memtable.
    fn tier(&self, entries: u64) -> usize {
        let mut tier = 0;
        let mut most = self.rules.memtable_entries;
        while entries > most && tier + 1 < self.counters.level_bytes.len() {
            most = most.saturating_mul(u64::from(self.rules.settings.level_zero_tables));
            tier += 1;
        }
        tier
    }

    /// Writes sorted keys as tables of a level.
    fn write_tables(
        &mut self,
        store: &mut FileStore,
        keys: &[u32],
        level: usize,
    ) -> Result<Vec<SortedTable>, StoreFull> {
        let mut tables = Vec::with_capacity(keys.len() / self.rules.table_entries as usize + 1);
        for part in keys.chunks(self.rules.table_entries as usize) {
            let bytes = part.len() as u64 * self.rules.entry_bytes;
            let extents = store.allocate(bytes)?;
            let maker = WriteOrigin::Level { tree: self.number, level };
            store.output.write(maker, &extents, 0, bytes.div_ceil(BLOCK_BYTES));
            self.counters.level_bytes[level] += bytes;
            tables.push(SortedTable::new(part.to_vec(), extents, store.output.bytes_written));
        }
        Ok(tables)
    }

    /// Reads the block of a key from the newest table with that key. Filters avoid all other reads.
    pub fn get(&self, store: &mut FileStore, key: u32) {
        if !store.reads || self.memtable.contains(&key) {
            return;
        }
        let tables = self.runs.iter().rev().map(|run| first_from(run, key));
        let place = tables.chain(self.levels.iter().map(|level| level.first_from(key))).find_map(|table| {
            let table = table?;
            table.keys.binary_search(&key).ok().map(|place| (table, place))
        });
        let Some((table, place)) = place else { return };
        let block = place as u64 * self.rules.entry_bytes / BLOCK_BYTES;
        let blocks = self.rules.entry_bytes.div_ceil(BLOCK_BYTES);
        let table_blocks = blocks_of(&table.extents);
        store.output.read(&table.extents, block, blocks.min(table_blocks - block));
    }

    /// Reads `entries` keys from `key` on, in every run and level.
    pub fn scan(&self, store: &mut FileStore, key: u32, entries: u32) {
        if !store.reads {
            return;
        }
        let bytes = u64::from(entries) * self.rules.entry_bytes;
        let tables = self.runs.iter().map(|run| first_from(run, key));
        for table in tables.chain(self.levels.iter().map(|level| level.first_from(key))).flatten() {
            let first = table.keys.partition_point(|other| *other < key) as u64 * self.rules.entry_bytes / BLOCK_BYTES;
            let blocks = blocks_of(&table.extents);
            store.output.read(&table.extents, first, bytes.div_ceil(BLOCK_BYTES).min(blocks - first));
        }
    }

    pub fn table_entries(&self) -> u64 {
        let runs = self.runs.iter().flatten();
        runs.map(|table| table.keys.len() as u64).sum::<u64>() + self.entries.iter().sum::<u64>()
    }
}

/// First table of a sorted run that ends at or after a key.
fn first_from(run: &[SortedTable], key: u32) -> Option<&SortedTable> {
    run.get(run.partition_point(|table| table.last() < key))
}

/// Keys of tables in their order.
fn keys_of(tables: &[SortedTable]) -> Vec<u32> {
    let keys: Vec<&[u32]> = tables.iter().map(|table| &table.keys[..]).collect();
    keys.concat()
}
