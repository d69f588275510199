//! The closed loop in the lab: the drive reports what collection moves, an advisor reads that now and then, and what it
//! moves is written with another placement identifier from then on.
//!
//! ```text
//! workload -> Retagger -> Device -> Reclaim events -> ring (drops the oldest) -> Advisor, every so many bytes -> Table -> Retagger
//! ```
//!
//! The advisor sees what a host sees of a real drive: the events in the ring and the bytes written by host and media. What
//! else is recorded here (pages copied of each owner in each collection) is for the report only.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use advise::{Advice, Advisor, Counters, Event, Feed, Owner, OwnerMap, PolicyName, Reason};
use serde::{Deserialize, Serialize};
use ssd::event::Reclaim;
use ssd::{Layout, Stats};

use crate::error::LabError;
use crate::policy::PlacementPolicy;
use workload::fio::{PlannedStream, StreamSummary, plan_streams};
use workload::{Measure, Operation, Request, Source, Spec, Target};

/// `feedback` of a variant, a grid value or `change`: who listens, and how often.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What is done about the events.
    pub policy: PolicyName,
    /// Bytes that the host writes between two readings of the log, in multiples of the capacity.
    #[serde(default = "default_every_capacities")]
    pub every_capacities: f64,
    /// Bytes that the host writes before the first reading, in multiples of the capacity; as between two if left out.
    #[serde(default)]
    pub first_capacities: Option<f64>,
    /// Readings in all; no limit if left out.
    #[serde(default)]
    pub readings: Option<u32>,
}

fn default_every_capacities() -> f64 {
    0.25
}

impl Settings {
    /// A policy with everything else as it is if nothing is said.
    pub fn new(policy: PolicyName) -> Settings {
        Settings {
            policy,
            every_capacities: default_every_capacities(),
            first_capacities: None,
            readings: None,
        }
    }

    /// # Errors
    /// A number that makes no sense, as a sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        let capacities = [Some(self.every_capacities), self.first_capacities];
        let sensible = |value: &f64| value.is_finite() && *value > 0.0 && *value <= 1000.0;
        match capacities.iter().flatten().all(sensible) {
            true => Ok(()),
            false => Err(
                "every_capacities and first_capacities are multiples of the capacity, above 0 and at most 1000"
                    .to_string(),
            ),
        }
    }
}

/// What a closed loop did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedbackResult {
    /// Names of the owners.
    pub owners: Vec<String>,
    /// One for each reading of the log.
    pub readings: Vec<ReadingRow>,
    /// One for each collection, in their order.
    pub collections: Vec<CollectionRow>,
    /// Events that were dropped from the ring before anybody read them.
    pub events_lost: u64,
}

/// A reading of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadingRow {
    /// Bytes that the host had written, the prefill excluded.
    pub host_bytes: u64,
    /// Collections before it.
    pub collections: usize,
    /// New events, by the owner that they name; last those that name nobody.
    pub events: Vec<u32>,
    /// Moves that followed: owner, from, to, why.
    pub moves: Vec<(usize, u16, u16, Reason)>,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectionRow {
    /// Bytes that the host had written, the prefill excluded.
    pub host_bytes: u64,
    /// Pages copied, by owner; last those of nobody.
    pub copied: Vec<u32>,
}

/// The end of a run over which the cost after the readings is taken: this share of its collections.
const AFTER_SHARE: f64 = 0.25;

impl FeedbackResult {
    /// Pages copied by a collection on average: before the first reading, and over the last quarter of all collections. 0 where there
    /// was no collection.
    pub fn copied_per_collection(&self) -> (f64, f64) {
        let mean = |rows: &[CollectionRow]| {
            let copied: u64 = rows
                .iter()
                .flat_map(|row| &row.copied)
                .map(|&pages| u64::from(pages))
                .sum();
            copied as f64 / rows.len().max(1) as f64
        };
        let first = self
            .readings
            .first()
            .map_or(self.collections.len(), |reading| reading.collections);
        let last = (self.collections.len() as f64 * (1.0 - AFTER_SHARE)) as usize;
        (mean(&self.collections[..first]), mean(&self.collections[last..]))
    }

    /// Name of an owner of the rows above, or of nobody.
    pub fn owner_name(&self, owner: usize) -> &str {
        self.owners.get(owner).map_or("nobody", String::as_str)
    }

    /// The figures that tables and claims can name.
    pub fn measures(&self) -> Vec<Measure> {
        let (before, after) = self.copied_per_collection();
        let moves = || self.readings.iter().flat_map(|reading| &reading.moves);
        let undone = moves().filter(|(.., reason)| *reason == Reason::Undo).count();
        let mut measures = vec![
            Measure::new("feedback.copied_before", before),
            Measure::new("feedback.copied_after", after),
            Measure::new("feedback.cost_ratio", if before > 0.0 { after / before } else { 0.0 }),
            Measure::new("feedback.readings", self.readings.len() as f64),
            Measure::new("feedback.moves", moves().count() as f64),
            Measure::new("feedback.moves_undone", undone as f64),
            Measure::new("feedback.events_lost", self.events_lost as f64),
        ];
        for (index, name) in self.owners.iter().enumerate() {
            let moved = |reading: &&ReadingRow| reading.moves.iter().any(|(owner, ..)| *owner == index);
            let reading = self.readings.iter().position(|reading| moved(&reading));
            let reading = reading.map_or(0.0, |reading| (reading + 1) as f64);
            measures.push(Measure::new(format!("feedback.{name}.moved_at"), reading));
        }
        measures
    }
}

/// Who owns what on the drive, and where owners were told to write.
struct Table {
    owners: Arc<OwnerMap>,
    /// Placement identifier that an owner's first write had.
    seen: Vec<Option<u16>>,
    /// By owner and what the workload says: what is written instead.
    instead: BTreeMap<(usize, u16), u16>,
}

impl Table {
    fn retag(&mut self, request: &Request, placement: Option<u16>) -> Option<u16> {
        let Some(owner) = self.owners.find(request.offset_bytes) else {
            return placement;
        };
        // Without a directive a write goes to the first identifier.
        let given = placement.unwrap_or(0);
        self.seen[owner].get_or_insert(given);
        self.instead.get(&(owner, given)).copied().or(placement)
    }

    fn apply(&mut self, owner: usize, from: u16, to: u16) {
        let mut known = false;
        for ((_, given), now) in self.instead.range_mut((owner, 0)..=(owner, u16::MAX)) {
            known |= *given == from;
            if *now == from {
                *now = to;
            }
        }
        // What the workload itself writes there moves too, unless it was moved away before.
        if !known {
            self.instead.insert((owner, from), to);
        }
        self.instead.retain(|(_, given), now| given != now);
    }
}

/// Gives writes the placement identifiers that their owners were moved to.
struct Retagger {
    table: Arc<Mutex<Table>>,
    inner: Option<Box<dyn PlacementPolicy>>,
}

impl PlacementPolicy for Retagger {
    fn place(
        &mut self,
        requests: &[Request],
        page_bytes: u64,
        placements: &mut Vec<Option<u16>>,
    ) -> Result<(), String> {
        match &mut self.inner {
            Some(inner) => inner.place(requests, page_bytes, placements)?,
            None => placements.extend(requests.iter().map(|request| request.placement)),
        }
        let mut table = self.table.lock().expect("nobody panics with it");
        for (request, placement) in requests.iter().zip(placements) {
            if request.operation == Operation::Write {
                *placement = table.retag(request, *placement);
            }
        }
        Ok(())
    }
}

/// The drive's side: its event ring, and what each collection copied of whom.
pub(crate) struct Ring {
    owners: Arc<OwnerMap>,
    entries: usize,
    page_bytes: u64,
    groups: u16,
    log: VecDeque<Event>,
    /// Events since the last reading; more than fit are lost.
    unread: usize,
    lost: u64,
    /// Of the collection that is going on.
    copied: Vec<u32>,
    collections: Vec<CollectionRow>,
    host_bytes_at_start: u64,
}

/// Logical blocks that an event can say at most: NLBAM has 16 bits, and a logical block is a mapping unit here.
const BLOCKS_MAX: u32 = u16::MAX as u32;

impl Ring {
    /// Takes the pages that a collection copies.
    pub(crate) fn copied(&mut self, pages: &[u32]) {
        let nobody = self.copied.len() - 1;
        for page in pages {
            let owner = self.owners.find(u64::from(*page) * self.page_bytes);
            self.copied[owner.unwrap_or(nobody)] += 1;
        }
    }

    /// Takes the collection that copied them.
    pub(crate) fn reclaimed(&mut self, reclaim: &Reclaim) {
        let nothing = vec![0; self.copied.len()];
        let copied = std::mem::replace(&mut self.copied, nothing);
        let host_bytes = reclaim.host_pages_written * self.page_bytes;
        self.collections.push(CollectionRow {
            host_bytes: host_bytes.saturating_sub(self.host_bytes_at_start),
            copied,
        });
        if reclaim.pages_copied == 0 {
            return;
        }
        if self.log.len() == self.entries {
            self.log.pop_front();
        }
        self.unread += 1;
        self.lost += u64::from(self.unread > self.entries);
        self.log.push_back(Event {
            timestamp: reclaim.host_pages_written,
            placement: reclaim
                .victim_owner
                .handle()
                .map(|handle| handle.0 * self.groups + reclaim.group.0),
            moved_bytes: Some(u64::from(reclaim.pages_copied.min(BLOCKS_MAX)) * self.page_bytes),
            offset_bytes: reclaim.moved.map(|moved| u64::from(moved.first.0) * self.page_bytes),
        });
    }
}

/// The host's side of a run.
pub(crate) struct Feedback {
    feed: Feed<Event>,
    advisor: Advisor,
    table: Arc<Mutex<Table>>,
    owners: Arc<OwnerMap>,
    settings: Settings,
    capacity_bytes: u64,
    next_reading: u64,
    readings: Vec<ReadingRow>,
}

impl Feedback {
    /// A loop for a workload with these owners ([`owners`]) on a drive.
    pub(crate) fn new(settings: &Settings, owners: Arc<OwnerMap>, layout: &Layout) -> Feedback {
        let table = Table {
            seen: vec![None; owners.owners().len()],
            owners: Arc::clone(&owners),
            instead: BTreeMap::new(),
        };
        let capacity_bytes = layout.capacity_bytes();
        let first = settings.first_capacities.unwrap_or(settings.every_capacities);
        Feedback {
            feed: Feed::default(),
            advisor: Advisor::new(
                OwnerMap::clone(&owners),
                layout.placement_identifiers(),
                settings.policy.make(),
                true,
                Counters::default(),
            ),
            table: Arc::new(Mutex::new(table)),
            owners,
            settings: settings.clone(),
            capacity_bytes,
            next_reading: (first * capacity_bytes as f64) as u64,
            readings: Vec::new(),
        }
    }

    /// What gives writes their placement identifiers, after another policy if there is one.
    pub(crate) fn retagger(&self, inner: Option<Box<dyn PlacementPolicy>>) -> Box<dyn PlacementPolicy> {
        let table = Arc::clone(&self.table);
        Box::new(Retagger { table, inner })
    }

    /// The drive's side of it, when the workload begins.
    pub(crate) fn ring(&self, layout: &Layout, entries: u16, begin: &Stats) -> Ring {
        Ring {
            copied: vec![0; self.owners.owners().len() + 1],
            owners: Arc::clone(&self.owners),
            entries: usize::from(entries),
            page_bytes: layout.page_bytes,
            groups: layout.groups,
            log: VecDeque::new(),
            unread: 0,
            lost: 0,
            collections: Vec::new(),
            host_bytes_at_start: begin.host_bytes_written(),
        }
    }

    /// Whether it is time for a reading.
    pub(crate) fn is_due(&self, host_bytes: u64) -> bool {
        let limit = self.settings.readings.unwrap_or(u32::MAX) as usize;
        host_bytes >= self.next_reading && self.readings.len() < limit
    }

    /// Reads the log and the statistics of the drive, and moves who should move.
    pub(crate) fn read(&mut self, ring: &mut Ring, stats: &Stats, host_bytes: u64) {
        let every = (self.settings.every_capacities * self.capacity_bytes as f64) as u64;
        self.next_reading = host_bytes + every.max(1);
        let mut table = self.table.lock().expect("nobody panics with it");
        for (owner, seen) in table.seen.iter().enumerate() {
            if let Some(placement) = seen {
                self.advisor.note_placement(owner, *placement);
            }
        }
        ring.unread = 0;
        let fresh = self.feed.take(ring.log.iter().copied().collect());
        let events = self.events_by_owner(&fresh.events);
        let counters = Counters {
            host_bytes_written: u128::from(stats.host_bytes_written()),
            media_bytes_written: u128::from(stats.media_bytes_written()),
        };
        let advice = self.advisor.take(fresh, counters);
        for step in &advice.moves {
            table.apply(step.owner, step.from, step.to);
        }
        self.readings.push(ReadingRow {
            host_bytes,
            collections: ring.collections.len(),
            events,
            moves: moves_of(&advice),
        });
    }

    /// How many events name each owner; last those that name nobody.
    fn events_by_owner(&self, events: &[Event]) -> Vec<u32> {
        let nobody = self.owners.owners().len();
        let mut counts = vec![0; nobody + 1];
        for event in events {
            let owner = event.offset_bytes.and_then(|offset| self.owners.find(offset));
            counts[owner.unwrap_or(nobody)] += 1;
        }
        counts
    }

    /// What happened.
    pub(crate) fn finish(self, ring: Ring) -> FeedbackResult {
        FeedbackResult {
            owners: self.owners.owners().iter().map(|owner| owner.name.clone()).collect(),
            readings: self.readings,
            collections: ring.collections,
            events_lost: ring.lost,
        }
    }
}

fn moves_of(advice: &Advice) -> Vec<(usize, u16, u16, Reason)> {
    let moves = advice.moves.iter();
    moves
        .map(|step| (step.owner, step.from, step.to, step.reason))
        .collect()
}

/// Whose a workload's data is: the parts that it names itself (SOC and LOC of a cache, tenants), or the regions of the jobs of a
/// job file. `source` is the workload as it will run, which only a job file in virtual time does not have.
///
/// # Errors
/// The settings make no sense, or the workload does not say it.
pub(crate) fn owners(
    settings: &Settings,
    workload: &Spec,
    source: Option<&dyn Source>,
    target: &Target,
) -> Result<OwnerMap, LabError> {
    let refused = |problem: String| LabError::invalid("feedback", problem);
    settings.check().map_err(refused)?;
    let owner = |range: workload::Range| Owner {
        name: range.name,
        extents: vec![(range.start_bytes, range.end_bytes)],
        placement: None,
    };
    let owners: Vec<Owner> = match workload.jobs() {
        Some(file) => owners_of_jobs(&plan_streams(file, target)?),
        None => source
            .map(Source::owners)
            .unwrap_or_default()
            .into_iter()
            .map(owner)
            .collect(),
    };
    if owners.is_empty() {
        let problem = "this kind of workload does not say whose its logical blocks are; it works with job files, caches and tenants";
        return Err(refused(problem.to_string()));
    }
    OwnerMap::new(owners).map_err(|error| refused(error.to_string()))
}

/// Every byte belongs to the jobs of the last group that has any there: fills come before what they are for. Jobs that share a region
/// are one owner there; what is left over between regions, less than a request, goes to the owner before it.
fn owners_of_jobs(planned: &[PlannedStream<'_>]) -> Vec<Owner> {
    let summaries = || planned.iter().map(|stream| &stream.summary);
    let mut cuts: Vec<u64> = summaries()
        .flat_map(|stream| [stream.start_bytes, stream.end_bytes])
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut owners: Vec<Owner> = Vec::new();
    let mut before = None;
    for piece in cuts.windows(2) {
        let over: Vec<&StreamSummary> = summaries()
            .filter(|stream| stream.start_bytes <= piece[0] && stream.end_bytes >= piece[1])
            .collect();
        let Some(group) = over.iter().map(|stream| stream.group).max() else {
            continue;
        };
        let here: Vec<&StreamSummary> = over.into_iter().filter(|stream| stream.group == group).collect();
        let least = here.iter().map(|stream| stream.max_request_bytes).max().unwrap_or(0);
        let name = here
            .iter()
            .map(|stream| stream.name.as_str())
            .collect::<Vec<_>>()
            .join("+");
        let known = owners.iter().position(|owner| owner.name == name);
        let index = match (known, before) {
            (None, Some(before)) if piece[1] - piece[0] < least => before,
            (Some(known), _) => known,
            (None, _) => {
                owners.push(Owner {
                    name,
                    extents: Vec::new(),
                    placement: None,
                });
                owners.len() - 1
            }
        };
        owners[index].extents.push((piece[0], piece[1]));
        before = Some(index);
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let map = OwnerMap::parse("a,0,4096\nb,4096,4096").expect("a map");
        Table {
            owners: Arc::new(map),
            seen: vec![None; 2],
            instead: BTreeMap::new(),
        }
    }

    fn write(offset_bytes: u64) -> Request {
        Request {
            stream: 0,
            operation: Operation::Write,
            offset_bytes,
            bytes: 4096,
            placement: None,
        }
    }

    /// Names and extents of the owners of a job file on a drive of a mebibyte.
    fn owners(jobs: &str) -> Vec<(String, Vec<(u64, u64)>)> {
        let file = workload::fio::parse(jobs, "test.fio").expect("a job file");
        let target = Target {
            device_bytes: 1 << 20,
            placement_ids: 4,
            endless: true,
            twin: None,
        };
        let planned = plan_streams(&file, &target).expect("it fits");
        let owners = owners_of_jobs(&planned).into_iter();
        owners.map(|owner| (owner.name, owner.extents)).collect()
    }

    #[test]
    fn the_last_group_owns_its_regions_and_jobs_in_one_region_are_one_owner() {
        let jobs = "[global]\nbs=4k\nrw=write\n[fill]\noffset=0\nsize=1m\n[a]\nstonewall\noffset=0\nsize=512k\n[b]\noffset=256k\nsize=512k\n";
        let kib = |from: u64, to: u64| vec![(from << 10, to << 10)];
        let expected = [
            ("a", kib(0, 256)),
            ("a+b", kib(256, 512)),
            ("b", kib(512, 768)),
            ("fill", kib(768, 1024)),
        ];
        assert_eq!(
            owners(jobs),
            expected.map(|(name, extents)| (name.to_string(), extents))
        );
    }

    #[test]
    fn what_is_left_over_between_regions_has_no_name_of_its_own() {
        let jobs = "[global]\nrw=write\n[fill]\nbs=64k\noffset=0\nsize=1m\n[a]\nstonewall\nbs=4k\noffset=0\nsize=500k\n[b]\nbs=4k\noffset=512k\nsize=512k\n";
        let names: Vec<String> = owners(jobs).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn moves_chain_and_undo() {
        let mut table = table();
        let tag = |table: &mut Table, offset, given| table.retag(&write(offset), given);
        assert_eq!(tag(&mut table, 0, None), None);
        table.apply(0, 0, 2);
        assert_eq!(tag(&mut table, 0, None), Some(2));
        assert_eq!(tag(&mut table, 0, Some(0)), Some(2));
        assert_eq!(tag(&mut table, 0, Some(1)), Some(1));
        assert_eq!(tag(&mut table, 4096, Some(0)), Some(0));
        assert_eq!(tag(&mut table, 9000, Some(0)), Some(0));
        table.apply(0, 2, 3);
        assert_eq!(tag(&mut table, 0, Some(0)), Some(3));
        table.apply(0, 3, 0);
        assert_eq!(tag(&mut table, 0, Some(0)), Some(0));
        assert_eq!(table.seen, [Some(0), Some(0)]);
    }
}
