//! The workload: all records are inserted, then the mix goes on; and what the tree measures of itself.

use crate::ratio;
use rustc_hash::FxHashSet;

use super::Compaction;
use super::tree::{Full, Tree};
use crate::ycsb::{Keys, Mix, Operation};
use workload::{Measure, Request, Source, WorkloadError};

/// A tree under load.
#[derive(Debug)]
pub struct Lsm {
    pub(super) tree: Tree,
    keys: Keys,
    mix: Mix,
    /// Records to insert before the mix.
    load: u32,
    /// Keys to load in one go by the levels that they go to, the deepest last, sorted, the last ones first; none if records are inserted one by
    /// one.
    bulk: Vec<(usize, Vec<u32>)>,
    endless: bool,
    error: Option<WorkloadError>,
    ended: bool,
}

/// Makes so many records, and says which of them are in which levels of a settled tree: all in the last, and above newer versions of those
/// that are put most.
fn bulk_by_level(tree: &Tree, keys: &mut Keys, load: u32) -> Vec<(usize, Vec<u32>)> {
    let mut all: Vec<u32> = (0..load)
        .map(|_| keys.insert().expect("there is room for what is loaded"))
        .collect();
    let descending = |keys: &mut Vec<u32>| keys.sort_unstable_by_key(|key| std::cmp::Reverse(*key));
    descending(&mut all);
    match tree.rules.compaction {
        Compaction::Fifo => return Vec::new(),
        Compaction::Tiered => return vec![(0, all)],
        Compaction::Levelled => {}
    }
    let settled = tree.settled(u64::from(load));
    let used = settled.iter().enumerate().filter(|(_, entries)| **entries > 0);
    used.map(|(number, entries)| {
        if *entries == u64::from(load) {
            return (number + 1, all.clone());
        }
        let mut chosen = FxHashSet::default();
        for _ in 0..DRAWS_PER_ENTRY * entries {
            chosen.insert(keys.existing());
            if chosen.len() as u64 == *entries {
                break;
            }
        }
        let mut chosen: Vec<u32> = chosen.into_iter().collect();
        descending(&mut chosen);
        (number + 1, chosen)
    })
    .collect()
}

/// A level that is to be loaded takes what so many draws by popularity have given.
const DRAWS_PER_ENTRY: u64 = 8;

impl Lsm {
    pub(super) fn new(tree: Tree, keys: Keys, mix: Mix, load: u32, bulk: bool, endless: bool) -> Lsm {
        let mut keys = keys;
        let bulk = if bulk {
            bulk_by_level(&tree, &mut keys, load)
        } else {
            Vec::new()
        };
        Lsm {
            tree,
            keys,
            mix,
            load,
            bulk,
            endless,
            error: None,
            ended: false,
        }
    }

    /// Number of records so far.
    #[cfg(test)]
    pub(super) fn records(&self) -> u32 {
        self.keys.records()
    }

    /// Whether all records are there.
    #[cfg(test)]
    pub(super) fn is_loaded(&self) -> bool {
        self.bulk.is_empty() && self.keys.records() >= self.load
    }

    /// The next operation; false at the end.
    pub(super) fn step(&mut self) -> Result<bool, Full> {
        if let Some((level, keys)) = self.bulk.last_mut() {
            let entries = (self.tree.rules.table_entries as usize).min(keys.len());
            let mut part = keys.split_off(keys.len() - entries);
            part.reverse();
            self.tree.ingest(&part, *level)?;
            if keys.is_empty() {
                self.bulk.pop();
            }
            return Ok(true);
        }
        if self.keys.records() < self.load {
            let key = self.keys.insert().expect("there is room for what is loaded");
            self.tree.put(key)?;
            return Ok(true);
        }
        if (self.mix == Mix::Load && !self.endless) || (self.mix == Mix::C && !self.tree.rules.reads) {
            return Ok(false);
        }
        match self.mix.next(&mut self.keys) {
            Operation::Read(key) => self.tree.get(key),
            Operation::Scan(key, entries) => self.tree.scan(key, entries),
            Operation::Put(key) => self.tree.put(key)?,
            Operation::ReadAndPut(key) => {
                self.tree.get(key);
                self.tree.put(key)?;
            }
        }
        Ok(true)
    }
}

impl Source for Lsm {
    fn next_batch(&mut self, requests: &mut Vec<Request>, limit: usize) -> Result<usize, WorkloadError> {
        while self.tree.output.queue.ready() < limit && !self.ended {
            match self.step() {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                Err(Full) => {
                    self.ended = true;
                    let used = 100.0 * self.tree.space.used_share();
                    let setting = format!("a drive that is used to {used:.1} %");
                    let problem = "has no room for another table; use a smaller data_percent";
                    self.error = Some(WorkloadError::setting(setting, problem));
                }
            }
        }
        match self.error.take_if(|_| self.tree.output.queue.ready() == 0) {
            Some(error) => Err(error),
            None => Ok(self.tree.output.queue.take(requests, limit)),
        }
    }

    fn streams(&self) -> Vec<String> {
        let levels = (0..self.tree.counters.level_bytes.len()).map(|level| format!("level_{level}"));
        let last = ["read", "discard"].map(String::from);
        std::iter::once("wal".to_string()).chain(levels).chain(last).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let tree = &self.tree;
        let (counters, output) = (&tree.counters, &tree.output);
        let tables: u64 = counters.level_bytes.iter().sum();
        let mut measures = vec![
            Measure::new("application_bytes", counters.application_bytes as f64),
            Measure::new("loaded_bytes", counters.loaded_bytes as f64),
            Measure::new(
                "tree_waf",
                ratio(output.bytes_written - counters.loaded_bytes, counters.application_bytes),
            ),
            Measure::new("table_waf", ratio(tables, counters.application_bytes)),
            Measure::new(
                "space_amplification",
                ratio(tree.table_entries(), u64::from(self.keys.records())),
            ),
            Measure::new("used_share", tree.space.used_share()),
            Measure::new("wal.written_bytes", output.wal_bytes as f64),
            Measure::new("flushes", counters.flushes as f64),
            Measure::new("compactions", counters.compactions as f64),
            Measure::new("trivial_moves", counters.trivial_moves as f64),
            Measure::new("discarded_bytes", output.bytes_discarded as f64),
        ];
        for (level, written) in counters.level_bytes.iter().enumerate() {
            let (files, entries) = match level {
                0 => (
                    tree.runs.iter().map(Vec::len).sum(),
                    tree.runs.iter().flatten().map(|table| table.keys.len() as u64).sum(),
                ),
                level => (tree.levels[level - 1].len(), tree.entries[level - 1]),
            };
            measures.extend([
                Measure::new(format!("level.{level}.written_bytes"), *written as f64),
                Measure::new(
                    format!("level.{level}.bytes"),
                    (entries * tree.rules.entry_bytes) as f64,
                ),
                Measure::new(format!("level.{level}.files"), files as f64),
            ]);
        }
        for (handle, bytes) in output.handle_bytes.iter().enumerate() {
            measures.push(Measure::new(
                format!("handle.{handle}.share"),
                ratio(*bytes, output.bytes_written),
            ));
        }
        measures
    }
}
