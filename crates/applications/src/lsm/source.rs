//! Request source of the database, which first loads all records and then runs the mix.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::Compaction;
use super::database::Database;
use super::store::StoreFull;
use super::tree::{LsmTree, TreeCounters};
use crate::bitmap::Bitmap;
use crate::queue::{RequestQueue, SteppedModel};
use crate::ratio;
use crate::ycsb::{Mix, YcsbKeys, YcsbOperation};
use workload::random::{below, mix};
use workload::{IoRequest, RequestSource, WorkloadError, WorkloadMeasure};

/// A database under load.
pub struct Lsm {
    pub(super) database: Database,
    clients: Vec<Client>,
    /// Names of the families, empty for a single unnamed family.
    names: Vec<String>,
    random: Xoshiro256PlusPlus,
    /// Cumulative bound of the draws for each family.
    bounds: Vec<u64>,
    is_loading: bool,
}

/// Number of draws for the choice of a family.
const FAMILY_DRAWS: u64 = 1 << 53;

pub struct Client {
    keys: YcsbKeys,
    mix: Mix,
    /// Number of records to load before the mix.
    load: u32,
    /// Keys of the bulk load by target level, deepest level last. The keys are in descending order.
    /// Empty if records are inserted one by one.
    bulk: Vec<(usize, Vec<u32>)>,
    operation_share: f64,
}

/// Creates `load` records and assigns them to the levels of a steady tree. The last level has all
/// records. The levels above have newer versions of popular records.
fn bulk_by_level(tree: &LsmTree, keys: &mut YcsbKeys, load: u32) -> Vec<(usize, Vec<u32>)> {
    let most = keys.records_max() as usize;
    let mut all = Bitmap::new(most);
    (0..load).for_each(|_| _ = all.set(keys.insert().expect("the loaded data fits") as usize));
    let all = descending(&all);
    match tree.rules.settings.compaction {
        Compaction::Fifo => return Vec::new(),
        Compaction::Tiered => return vec![(0, all)],
        Compaction::Levelled => {}
    }
    let steady = tree.steady_levels(u64::from(load));
    let used = steady.iter().enumerate().filter(|(_, entries)| **entries > 0);
    used.map(|(number, entries)| {
        if *entries == u64::from(load) {
            return (number + 1, all.clone());
        }
        let mut chosen = Bitmap::new(most);
        for _ in 0..DRAWS_PER_ENTRY * entries {
            chosen.set(keys.existing() as usize);
            if chosen.count as u64 == *entries {
                break;
            }
        }
        (number + 1, descending(&chosen))
    })
    .collect()
}

/// Keys of a set in descending order.
fn descending(keys: &Bitmap) -> Vec<u32> {
    let mut sorted = Vec::with_capacity(keys.count);
    sorted.extend(std::iter::successors(keys.next(0), |key| keys.next(key + 1)).map(|key| key as u32));
    sorted.reverse();
    sorted
}

/// Draws by popularity per entry of a level in the bulk load.
const DRAWS_PER_ENTRY: u64 = 8;

impl Client {
    pub(super) fn new(tree: &LsmTree, keys: YcsbKeys, mix: Mix, load: u32, bulk: bool, operation_share: f64) -> Client {
        let mut keys = keys;
        let bulk = if bulk { bulk_by_level(tree, &mut keys, load) } else { Vec::new() };
        Client { keys, mix, load, bulk, operation_share }
    }

    fn loaded_share(&self) -> f64 {
        ratio(u64::from(self.keys.records), u64::from(self.load))
    }
}

impl Lsm {
    pub(super) fn new(database: Database, clients: Vec<Client>, names: Vec<String>, seed: u64) -> Lsm {
        let all: f64 = clients.iter().map(|client| client.operation_share).sum();
        let mut sum = 0.0;
        let bounds = clients.iter().map(|client| {
            sum += client.operation_share;
            (sum / all * FAMILY_DRAWS as f64) as u64
        });
        Lsm {
            database,
            bounds: bounds.collect(),
            clients,
            names,
            random: Xoshiro256PlusPlus::seed_from_u64(mix(seed)),
            is_loading: true,
        }
    }

    /// Number of records of a family so far.
    #[cfg(test)]
    pub(super) fn records(&self, family: usize) -> u32 {
        self.clients[family].keys.records
    }

    #[cfg(test)]
    pub(super) fn is_loaded(&self) -> bool {
        let mut clients = self.clients.iter();
        clients.all(|client| client.bulk.is_empty() && client.keys.records >= client.load)
    }

    fn execute_next(&mut self) -> Result<bool, StoreFull> {
        if self.is_loading && self.load()? {
            return Ok(true);
        }
        self.is_loading = false;
        let draw = below(&mut self.random, FAMILY_DRAWS);
        let family = self.bounds.partition_point(|bound| *bound <= draw);
        let Some(client) = self.clients.get_mut(family) else {
            return Ok(false);
        };
        let (tree, store) = (&self.database.trees[family], &mut self.database.store);
        match client.mix.next(&mut client.keys) {
            YcsbOperation::Read(key) => tree.get(store, key),
            YcsbOperation::Scan(key, entries) => tree.scan(store, key, entries),
            YcsbOperation::Put(key) => self.database.put(family, key)?,
            YcsbOperation::ReadAndPut(key) => {
                tree.get(store, key);
                self.database.put(family, key)?;
            }
        }
        Ok(true)
    }

    /// Loads the next part. Bulk loads come first, one family after the other. Then single records
    /// go to the family that lacks the largest fraction of its own. Returns false after the load.
    fn load(&mut self) -> Result<bool, StoreFull> {
        if let Some(family) = self.clients.iter().position(|client| !client.bulk.is_empty()) {
            let (bulk, database) = (&mut self.clients[family].bulk, &mut self.database);
            let (level, keys) = bulk.last_mut().expect("something is left to load");
            let tree = &mut database.trees[family];
            let entries = (tree.rules.table_entries as usize).min(keys.len());
            let mut part = keys.split_off(keys.len() - entries);
            part.reverse();
            tree.ingest(&mut database.store, &part, *level)?;
            if keys.is_empty() {
                bulk.pop();
            }
            return Ok(true);
        }
        let clients = self.clients.iter().enumerate();
        let unfinished = clients.filter(|(_, client)| client.keys.records < client.load);
        let next = unfinished.min_by(|(_, one), (_, other)| one.loaded_share().total_cmp(&other.loaded_share()));
        let Some((family, _)) = next else { return Ok(false) };
        let key = self.clients[family].keys.insert();
        self.database.put(family, key.expect("the loaded data fits"))?;
        Ok(true)
    }

    fn sum(&self, count: impl Fn(&TreeCounters) -> u64) -> u64 {
        self.database.trees.iter().map(|tree| count(&tree.counters)).sum()
    }

    fn measures_of(&self, family: usize, name: &dyn Fn(&str) -> String) -> Vec<WorkloadMeasure> {
        let (tree, client) = (&self.database.trees[family], &self.clients[family]);
        let counters = &tree.counters;
        let tables: u64 = counters.level_bytes.iter().sum();
        let count = |measure: &str, value: u64| WorkloadMeasure::new(name(measure), value as f64);
        vec![
            count("application_bytes", counters.application_bytes),
            count("loaded_bytes", counters.loaded_bytes),
            WorkloadMeasure::new(name("table_waf"), ratio(tables, counters.application_bytes)),
            WorkloadMeasure::new(
                name("space_amplification"),
                ratio(tree.table_entries(), u64::from(client.keys.records)),
            ),
            count("flushes", counters.flushes),
            count("early_flushes", counters.early_flushes),
            count("compactions", counters.compactions),
            count("trivial_moves", counters.trivial_moves),
        ]
    }
}

fn levels_of(tree: &LsmTree, name: &dyn Fn(&str) -> String) -> Vec<WorkloadMeasure> {
    let mut measures = Vec::new();
    for (level, written) in tree.counters.level_bytes.iter().enumerate() {
        let (files, entries) = match level {
            0 => (
                tree.runs.iter().map(Vec::len).sum(),
                tree.runs.iter().flatten().map(|table| table.keys.len() as u64).sum(),
            ),
            level => (tree.levels[level - 1].len(), tree.entries[level - 1]),
        };
        let of_level =
            |measure: &str, value: f64| WorkloadMeasure::new(name(&format!("level.{level}.{measure}")), value);
        measures.extend([
            of_level("written_bytes", *written as f64),
            of_level("bytes", (entries * tree.rules.entry_bytes) as f64),
            of_level("files", files as f64),
        ]);
    }
    measures
}

impl SteppedModel for Lsm {
    fn queue(&mut self) -> &mut RequestQueue {
        &mut self.database.store.output.queue
    }

    fn step(&mut self) -> Result<bool, WorkloadError> {
        self.execute_next().map_err(|StoreFull| {
            let used = 100.0 * self.database.store.space.used_share();
            let setting = format!("a drive with {used:.1} % in use");
            WorkloadError::setting(setting, "has no room for another table. Use a smaller data_percent")
        })
    }
}

impl RequestSource for Lsm {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        self.run_batch(requests, limit)
    }

    fn streams(&self) -> Vec<String> {
        let levels = self.database.trees.iter().enumerate().flat_map(|(family, tree)| {
            let prefix = self.names.get(family).map_or(String::new(), |name| format!("{name}."));
            (0..tree.counters.level_bytes.len()).map(move |level| format!("{prefix}level_{level}"))
        });
        let last = ["read", "discard"].map(String::from);
        std::iter::once("wal".to_string()).chain(levels).chain(last).collect()
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let Database { trees, store, log, .. } = &self.database;
        let output = &store.output;
        let application_bytes = self.sum(|counters| counters.application_bytes);
        let loaded_bytes = self.sum(|counters| counters.loaded_bytes);
        let tables = self.sum(|counters| counters.level_bytes.iter().sum());
        let members = || trees.iter().zip(&self.clients);
        let table_bytes = members().map(|(tree, _)| tree.table_entries() * tree.rules.entry_bytes);
        let record_bytes = members().map(|(tree, client)| u64::from(client.keys.records) * tree.rules.entry_bytes);
        let count = |measure: &str, value: u64| WorkloadMeasure::new(measure, value as f64);
        let mut measures = vec![
            count("application_bytes", application_bytes),
            count("loaded_bytes", loaded_bytes),
            WorkloadMeasure::new("tree_waf", ratio(output.bytes_written - loaded_bytes, application_bytes)),
            WorkloadMeasure::new("table_waf", ratio(tables, application_bytes)),
            WorkloadMeasure::new("space_amplification", ratio(table_bytes.sum(), record_bytes.sum())),
            WorkloadMeasure::new("used_share", store.space.used_share()),
            count("wal.written_bytes", output.wal_bytes),
            count("flushes", self.sum(|counters| counters.flushes)),
            count("compactions", self.sum(|counters| counters.compactions)),
            count("trivial_moves", self.sum(|counters| counters.trivial_moves)),
            count("discarded_bytes", output.bytes_discarded),
        ];
        if self.names.is_empty() {
            measures.extend(levels_of(&trees[0], &|measure| measure.to_string()));
        } else {
            let (bytes, files) = log.as_ref().map_or((0, 0), |log| (log.bytes, log.files() as u64));
            measures.extend([count("wal.bytes", bytes), count("wal.files", files)]);
        }
        for (family, name) in self.names.iter().enumerate() {
            let of_family = |measure: &str| format!("{name}.{measure}");
            measures.extend(self.measures_of(family, &of_family));
            measures.extend(levels_of(&trees[family], &of_family));
        }
        for (handle, bytes) in output.handle_bytes.iter().enumerate() {
            measures.push(WorkloadMeasure::new(format!("handle.{handle}.share"), ratio(*bytes, output.bytes_written)));
        }
        measures
    }
}
