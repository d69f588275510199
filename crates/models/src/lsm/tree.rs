//! The tree: a memtable with its log, tables in level 0 that may overlap, sorted levels below.
//!
//! ```text
//! put -> log (WAL) + memtable --flush--> level 0 --compaction--> level 1 --> level 2 --> ...
//! ```
//!
//! Flushes and compactions happen at once when they are due; on a real machine they overlap in time, which mixes their writes more finely
//! than a reclaim unit could notice. Facts: RocksDB, `db/version_set.cc` (scores, targets of levels),
//! `db/compaction/compaction_picker_level.cc` and `compaction_picker_universal.cc`.

use super::Compaction;
use super::extents::{BLOCK_BYTES, Extent, Space};
use super::output::{Maker, Output};
use super::rules::Rules;
use super::table::{Table, merge, overlapping};

/// The drive has no room for another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// What the tree counts.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Bytes of keys and values that the application put.
    pub application_bytes: u64,
    /// Bytes written to the drive by a bulk load.
    pub loaded_bytes: u64,
    /// Bytes written into the tables of each level.
    pub level_bytes: Vec<u64>,
    /// Flushes of memtables.
    pub flushes: u64,
    /// Compactions.
    pub compactions: u64,
    /// Tables that changed their level without being written.
    pub trivial_moves: u64,
}

/// The log of a memtable.
#[derive(Debug, Clone, Default)]
struct Wal {
    extents: Vec<Extent>,
    /// Bytes in it, and bytes that are on the drive.
    bytes: u64,
    written_bytes: u64,
    unsynced: u32,
}

/// A tree on a drive.
#[derive(Debug)]
pub struct Tree {
    pub(super) rules: Rules,
    pub(super) space: Space,
    pub(super) output: Output,
    pub(super) counters: Counters,
    memtable: Vec<u32>,
    wal: Wal,
    /// Level 0, or all of a tiered tree: sorted runs, the oldest first.
    pub(super) runs: Vec<Vec<Table>>,
    /// Levels 1 and on, each sorted by key.
    pub(super) levels: Vec<Vec<Table>>,
    /// Entries of each level.
    pub(super) entries: Vec<u64>,
}

impl Tree {
    /// An empty tree.
    pub fn new(rules: Rules, space: Space, output: Output) -> Tree {
        let levels = rules.levels as usize;
        Tree {
            space,
            output,
            counters: Counters {
                level_bytes: vec![0; levels],
                ..Counters::default()
            },
            memtable: Vec::with_capacity(rules.memtable_entries as usize),
            wal: Wal::default(),
            runs: Vec::new(),
            levels: (1..levels).map(|_| Vec::new()).collect(),
            entries: vec![0; levels - 1],
            rules,
        }
    }

    /// Puts a key.
    pub fn put(&mut self, key: u32) -> Result<(), Full> {
        self.log()?;
        self.counters.application_bytes += self.rules.entry_bytes;
        self.memtable.push(key);
        if self.memtable.len() as u64 == self.rules.memtable_entries {
            self.flush()?;
            self.compact()?;
        }
        Ok(())
    }

    /// Appends an entry to the log, and writes what is due of it: whole chunks, or after some entries all there is.
    fn log(&mut self) -> Result<(), Full> {
        if !self.rules.wal {
            return Ok(());
        }
        if self.wal.extents.is_empty() {
            let bytes = self.rules.memtable_entries * self.rules.entry_bytes;
            self.wal.extents = self.allocate(bytes)?;
        }
        let wal = &mut self.wal;
        wal.bytes += self.rules.entry_bytes;
        wal.unsynced += 1;
        if wal.unsynced == self.rules.writes_per_sync {
            wal.unsynced = 0;
            self.write_log(true);
        } else if wal.bytes - wal.written_bytes >= self.rules.write_bytes {
            self.write_log(false);
        }
        Ok(())
    }

    /// Writes the end of the log: all of it, with a block that is written again when it is full, or whole blocks only.
    fn write_log(&mut self, all: bool) {
        let wal = &mut self.wal;
        let end = if all {
            wal.bytes.div_ceil(BLOCK_BYTES)
        } else {
            wal.bytes / BLOCK_BYTES
        };
        let first = wal.written_bytes / BLOCK_BYTES;
        wal.written_bytes = wal.bytes.min(end * BLOCK_BYTES);
        self.output.write(Maker::Wal, &self.wal.extents, first, end - first);
    }

    /// Writes the memtable as a table of level 0 and deletes its log.
    fn flush(&mut self) -> Result<(), Full> {
        let mut keys = std::mem::take(&mut self.memtable);
        keys.sort_unstable();
        keys.dedup();
        if self.rules.wal && self.wal.bytes > self.wal.written_bytes {
            self.write_log(true);
        }
        let run = self.write_tables(&keys, 0)?;
        self.runs.push(run);
        let wal = std::mem::take(&mut self.wal);
        if self.rules.recycle_wal {
            self.wal.extents = wal.extents;
        } else {
            self.delete_extents(&wal.extents);
        }
        keys.clear();
        self.memtable = keys;
        self.counters.flushes += 1;
        Ok(())
    }

    /// Entries of each level, the first being level 1, in a tree of so many records that has been updated for long: the last one has all of
    /// them, those above newer versions of some.
    pub fn settled(&self, records: u64) -> Vec<u64> {
        let mut settled = vec![0; self.levels.len()];
        let deepest = settled.len() - 1;
        if self.rules.dynamic_levels {
            let mut entries = records;
            for level in settled.iter_mut().skip(1).rev() {
                *level = entries;
                entries /= self.rules.multiplier;
                if entries <= self.rules.base_entries {
                    break;
                }
            }
        } else {
            let mut target = self.rules.base_entries;
            for (number, level) in settled.iter_mut().enumerate() {
                *level = if number == deepest {
                    records
                } else {
                    records.min(target)
                };
                if *level == records {
                    break;
                }
                target = target.saturating_mul(self.rules.multiplier);
            }
        }
        settled
    }

    /// Writes sorted keys, all larger than those before, straight into a level (0: into a tiered tree's oldest run): how a bulk load fills a tree.
    pub fn ingest(&mut self, keys: &[u32], level: usize) -> Result<(), Full> {
        let tier = if level == 0 {
            self.tier(u64::from(u32::MAX))
        } else {
            level
        };
        let written = self.output.bytes_written;
        let tables = self.write_tables(keys, tier)?;
        // What a load costs says nothing of the mix that follows, so it is counted apart.
        self.counters.level_bytes[tier] -= keys.len() as u64 * self.rules.entry_bytes;
        self.counters.loaded_bytes += self.output.bytes_written - written;
        if level == 0 {
            if self.runs.is_empty() {
                self.runs.push(Vec::new());
            }
            self.runs[0].extend(tables);
        } else {
            self.entries[level - 1] += keys.len() as u64;
            self.levels[level - 1].extend(tables);
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<(), Full> {
        match self.rules.compaction {
            Compaction::Levelled => self.compact_levels(),
            Compaction::Tiered => self.compact_tiers(),
            Compaction::Fifo => {
                self.delete_oldest();
                Ok(())
            }
        }
    }

    /// FIFO: runs beyond what the tree may have are deleted, the oldest first.
    fn delete_oldest(&mut self) {
        let entries = |run: &Vec<Table>| run.iter().map(|table| table.keys.len() as u64).sum::<u64>();
        let mut all: u64 = self.runs.iter().map(entries).sum();
        let mut deleted = 0;
        while all > self.rules.most_entries {
            all -= entries(&self.runs[deleted]);
            deleted += 1;
        }
        let runs: Vec<Vec<Table>> = self.runs.drain(..deleted).collect();
        for run in runs {
            self.delete_tables(run, 0);
        }
    }

    /// Levelled: as long as a level is too large, the one with the highest score.
    fn compact_levels(&mut self) -> Result<(), Full> {
        loop {
            let targets = self.targets();
            let base = self.base(&targets);
            let zero = self.runs.len() as f64 / f64::from(self.rules.level_zero_tables);
            let scores = (base..self.levels.len() - 1).map(|level| self.entries[level] as f64 / targets[level] as f64);
            let (level, score) =
                (base..).zip(scores).fold(
                    (usize::MAX, zero),
                    |best, this| {
                        if this.1 > best.1 { this } else { best }
                    },
                );
            if score < 1.0 {
                return Ok(());
            }
            match level {
                usize::MAX => self.compact_level_zero(base)?,
                level => self.compact_level(level)?,
            }
        }
    }

    /// Entries that each level below 0 should have at most. Fixed: the first has the base size, each next one the multiple; dynamic: the
    /// last one has what it has, each one above the corresponding part, and those that would be below the base size stay empty.
    fn targets(&self) -> Vec<u64> {
        let multiplier = self.rules.multiplier;
        let mut targets = vec![0; self.levels.len()];
        if self.rules.dynamic_levels {
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

    /// The level that takes the tables of level 0.
    fn base(&self, targets: &[u64]) -> usize {
        let first_used = self.entries.iter().position(|entries| *entries > 0);
        let wanted = targets
            .iter()
            .position(|target| *target > 0)
            .expect("some level has a target");
        first_used.map_or(wanted, |used| used.min(wanted))
    }

    /// All of level 0 into the base level.
    fn compact_level_zero(&mut self, base: usize) -> Result<(), Full> {
        self.output.base = base + 1;
        let runs = std::mem::take(&mut self.runs);
        let inputs: Vec<Table> = runs.into_iter().flatten().collect();
        let keys = inputs.iter().fold(Vec::new(), |keys, table| merge(&keys, &table.keys));
        self.merge_into(base, keys, inputs, 0)
    }

    /// One table of a level into the next: the one that overlaps least, for its size (`kMinOverlappingRatio`).
    fn compact_level(&mut self, level: usize) -> Result<(), Full> {
        let next = &self.levels[level + 1];
        let mut start = 0;
        let mut best = (u64::MAX, 0);
        for (place, table) in self.levels[level].iter().enumerate() {
            while start < next.len() && next[start].last() < table.first() {
                start += 1;
            }
            let touching = next[start..].iter().take_while(|other| other.first() <= table.last());
            let overlap: u64 = touching.map(|other| other.keys.len() as u64).sum();
            let ratio = overlap * 1024 / table.keys.len() as u64;
            if ratio < best.0 {
                best = (ratio, place);
            }
        }
        let table = self.levels[level].remove(best.1);
        self.entries[level] -= table.keys.len() as u64;
        if best.0 == 0 {
            self.counters.trivial_moves += 1;
            self.entries[level + 1] += table.keys.len() as u64;
            let place = self.levels[level + 1].partition_point(|other| other.first() < table.first());
            self.levels[level + 1].insert(place, table);
            return Ok(());
        }
        let keys = table.keys.clone();
        self.merge_into(level + 1, keys, vec![table], level + 1)
    }

    /// Merges keys, which `inputs` of a level hold, into a level below 0.
    fn merge_into(&mut self, level: usize, keys: Vec<u32>, inputs: Vec<Table>, from: usize) -> Result<(), Full> {
        let last = *keys.last().expect("a compaction has keys");
        let places = overlapping(&self.levels[level], keys[0], last);
        let below: Vec<Table> = self.levels[level].drain(places.clone()).collect();
        let old: Vec<u32> = below.iter().flat_map(|table| table.keys.iter().copied()).collect();
        self.entries[level] -= old.len() as u64;
        let merged = merge(&keys, &old);
        self.read_tables(&inputs);
        self.read_tables(&below);
        let tables = self.write_tables(&merged, level + 1)?;
        self.levels[level].splice(places.start..places.start, tables);
        self.entries[level] += merged.len() as u64;
        self.delete_tables(inputs, from);
        self.delete_tables(below, level + 1);
        self.counters.compactions += 1;
        Ok(())
    }

    /// Tiered (RocksDB's universal): when there are too many runs, neighbouring ones become one, by the first rule that applies.
    fn compact_tiers(&mut self) -> Result<(), Full> {
        while self.runs.len() >= self.rules.level_zero_tables as usize {
            let entries: Vec<u64> = self
                .runs
                .iter()
                .map(|run| run.iter().map(|table| table.keys.len() as u64).sum())
                .collect();
            let Some(places) = self.runs_to_merge(&entries) else {
                return Ok(());
            };
            self.merge_runs(places)?;
        }
        Ok(())
    }

    /// Which neighbouring runs to merge.
    fn runs_to_merge(&self, entries: &[u64]) -> Option<std::ops::Range<usize>> {
        // Space: everything, if what is above the oldest run is too much.
        let above: u64 = entries[1..].iter().sum();
        if above * 100 >= entries[0] * self.rules.space_amplification_percent {
            return Some(0..entries.len());
        }
        // Similar sizes: from a run on, the youngest first, as long as the next older one is no larger than all before.
        for end in (2..=entries.len()).rev() {
            let mut sum = entries[end - 1];
            let mut start = end - 1;
            while start > 0 && entries[start - 1] * 100 <= sum * (100 + self.rules.size_ratio_percent) {
                start -= 1;
                sum += entries[start];
            }
            if end - start >= 2 {
                return Some(start..end);
            }
        }
        // Number: enough of the youngest to get back to the limit.
        let limit = self.rules.level_zero_tables as usize;
        (entries.len() > limit).then(|| limit - 1..entries.len())
    }

    fn merge_runs(&mut self, places: std::ops::Range<usize>) -> Result<(), Full> {
        let start = places.start;
        let runs: Vec<Vec<Table>> = self.runs.drain(places).collect();
        let keys_of =
            |run: &Vec<Table>| -> Vec<u32> { run.iter().flat_map(|table| table.keys.iter().copied()).collect() };
        let merged = runs
            .iter()
            .rev()
            .fold(Vec::new(), |keys, run| merge(&keys, &keys_of(run)));
        let tier = self.tier(merged.len() as u64);
        for run in &runs {
            self.read_tables(run);
        }
        let tables = self.write_tables(&merged, tier)?;
        self.runs.insert(start, tables);
        for run in runs {
            let entries = run.iter().map(|table| table.keys.len() as u64).sum();
            let tier = self.tier(entries);
            self.delete_tables(run, tier);
        }
        self.counters.compactions += 1;
        Ok(())
    }

    /// In a tiered tree the level that a run of this many entries counts for: by powers of the trigger above a memtable.
    fn tier(&self, entries: u64) -> usize {
        let mut tier = 0;
        let mut most = self.rules.memtable_entries;
        while entries > most && tier + 1 < self.counters.level_bytes.len() {
            most = most.saturating_mul(u64::from(self.rules.level_zero_tables));
            tier += 1;
        }
        tier
    }

    /// Writes sorted keys as tables of a level.
    fn write_tables(&mut self, keys: &[u32], level: usize) -> Result<Vec<Table>, Full> {
        let mut tables = Vec::with_capacity(keys.len() / self.rules.table_entries as usize + 1);
        for part in keys.chunks(self.rules.table_entries as usize) {
            let bytes = part.len() as u64 * self.rules.entry_bytes;
            let extents = self.allocate(bytes)?;
            self.output
                .write(Maker::Level(level), &extents, 0, bytes.div_ceil(BLOCK_BYTES));
            self.counters.level_bytes[level] += bytes;
            tables.push(Table::new(part.to_vec(), extents, self.output.bytes_written));
        }
        Ok(tables)
    }

    fn allocate(&mut self, bytes: u64) -> Result<Vec<Extent>, Full> {
        self.space.allocate(bytes.div_ceil(BLOCK_BYTES) as u32).ok_or(Full)
    }

    fn delete_tables(&mut self, tables: Vec<Table>, level: usize) {
        for table in tables {
            self.output.note_lifetime(level, table.made_at);
            self.delete_extents(&table.extents);
        }
    }

    fn delete_extents(&mut self, extents: &[Extent]) {
        for extent in extents {
            if self.rules.discard {
                self.output.discard(*extent);
            }
            self.space.release(*extent);
        }
    }

    fn read_tables(&mut self, tables: &[Table]) {
        if self.rules.reads {
            for table in tables {
                let blocks: u64 = table.extents.iter().map(|extent| u64::from(extent.blocks)).sum();
                self.output.read(&table.extents, 0, blocks);
            }
        }
    }

    /// Reads a key: the block of the newest table that holds it. Filters keep all other tables from being read.
    pub fn get(&mut self, key: u32) {
        if !self.rules.reads || self.memtable.contains(&key) {
            return;
        }
        let runs = self.runs.iter().rev();
        let place = runs.chain(&self.levels).find_map(|level| find(level, key));
        let Some((table, place)) = place else { return };
        let block = place as u64 * self.rules.entry_bytes / BLOCK_BYTES;
        let blocks = self.rules.entry_bytes.div_ceil(BLOCK_BYTES);
        let table_blocks: u64 = table.extents.iter().map(|extent| u64::from(extent.blocks)).sum();
        self.output
            .read(&table.extents, block, blocks.min(table_blocks - block));
    }

    /// Reads so many keys from a key on: in every run and level the blocks from there.
    pub fn scan(&mut self, key: u32, entries: u32) {
        if !self.rules.reads {
            return;
        }
        let bytes = u64::from(entries) * self.rules.entry_bytes;
        for level in self.runs.iter().chain(&self.levels) {
            let place = level.partition_point(|table| table.last() < key);
            let Some(table) = level.get(place) else { continue };
            let first = table.keys.partition_point(|other| *other < key) as u64 * self.rules.entry_bytes / BLOCK_BYTES;
            let blocks: u64 = table.extents.iter().map(|extent| u64::from(extent.blocks)).sum();
            self.output
                .read(&table.extents, first, bytes.div_ceil(BLOCK_BYTES).min(blocks - first));
        }
    }

    /// Keys in the memtable.
    #[cfg(test)]
    pub fn memtable(&self) -> &[u32] {
        &self.memtable
    }

    /// Extents of the log.
    #[cfg(test)]
    pub fn wal_extents(&self) -> &[Extent] {
        &self.wal.extents
    }

    /// Entries in all tables.
    pub fn table_entries(&self) -> u64 {
        let runs = self.runs.iter().flatten();
        runs.map(|table| table.keys.len() as u64).sum::<u64>() + self.entries.iter().sum::<u64>()
    }
}

/// The table of a sorted run that holds a key, and the key's place in it.
fn find(run: &[Table], key: u32) -> Option<(&Table, usize)> {
    let table = run.get(run.partition_point(|table| table.last() < key))?;
    table.keys.binary_search(&key).ok().map(|place| (table, place))
}
