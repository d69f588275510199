//! The closed loop in the lab: the drive reports what collection moves, an advisor reads that now and then, and what it
//! moves is written with another placement index from then on.
//!
//! ```text
//! workload -> Redirection -> Device -> Reclaim events -> DriveLog (drops the oldest) \
//!                  ^- moves <- Advisor, every so many bytes <----------------------/
//! ```
//!
//! The advisor sees what a host sees of a real drive: the events in the log and the bytes written by host and media.
//! What else is recorded here (pages copied of each owner in each collection) is for the report only.

mod drive_log;
mod owners;
mod redirection;
mod result;

use std::sync::{Arc, Mutex};

use advise::{Advice, Advisor, Counters, Event, Feed, OwnerMap, Reason};
use experiment::feedback::Settings;
use ssd::{Layout, RuhId, Stats};
use workload::PlacementIndex;

use crate::policy::PlacementPolicy;

pub(crate) use drive_log::DriveLog;
pub(crate) use owners::owners;
use redirection::{Redirection, RedirectionTable};
pub use result::{CollectionRow, FeedbackResult, ReadingRow};

/// The host's side of a run.
pub(crate) struct Feedback {
    feed: Feed<Event>,
    advisor: Advisor,
    table: Arc<Mutex<RedirectionTable>>,
    owners: Arc<OwnerMap>,
    settings: Settings,
    capacity_bytes: u64,
    next_reading: u64,
    readings: Vec<ReadingRow>,
}

impl Feedback {
    /// A loop for a workload with these owners ([`owners`]) on a drive, in a namespace with so many placement indices.
    pub(crate) fn new(settings: &Settings, owners: Arc<OwnerMap>, layout: &Layout, placement_count: u16) -> Feedback {
        let table = RedirectionTable::new(Arc::clone(&owners));
        let capacity_bytes = layout.capacity_bytes();
        let first = settings.first_capacities.unwrap_or(settings.every_capacities);
        Feedback {
            feed: Feed::default(),
            advisor: Advisor::new(
                OwnerMap::clone(&owners),
                placement_count,
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

    /// What gives writes their placement indices, after another policy if there is one.
    pub(crate) fn redirection(&self, inner: Option<Box<dyn PlacementPolicy>>) -> Box<dyn PlacementPolicy> {
        let table = Arc::clone(&self.table);
        Box::new(Redirection::new(table, inner))
    }

    /// The drive's side of it, when the workload begins.
    pub(crate) fn drive_log(&self, layout: &Layout, handles: &[RuhId], entries: u16, begin: &Stats) -> DriveLog {
        DriveLog::new(Arc::clone(&self.owners), layout, handles, entries, begin)
    }

    /// Whether it is time for a reading.
    pub(crate) fn is_due(&self, host_bytes: u64) -> bool {
        let limit = self.settings.readings.unwrap_or(u32::MAX) as usize;
        host_bytes >= self.next_reading && self.readings.len() < limit
    }

    /// Reads the log and the statistics of the drive, and moves who should move.
    pub(crate) fn read(&mut self, log: &mut DriveLog, stats: &Stats, host_bytes: u64) {
        assert!(
            self.readings
                .last()
                .is_none_or(|before| before.host_bytes <= host_bytes),
            "readings of the log go back"
        );
        let every = (self.settings.every_capacities * self.capacity_bytes as f64) as u64;
        self.next_reading = host_bytes + every.max(1);
        let mut table = self.table.lock().expect("nobody panics with it");
        for (owner, placement) in table.seen() {
            self.advisor.note_placement(owner, placement.0);
        }
        let fresh = self.feed.take(log.read());
        let events = self.events_by_owner(&fresh.events);
        let counters = Counters {
            host_bytes_written: u128::from(stats.host_bytes_written()),
            media_bytes_written: u128::from(stats.media_bytes_written()),
        };
        let advice = self.advisor.take(fresh, counters);
        for step in &advice.moves {
            table.apply(step.owner, PlacementIndex(step.from), PlacementIndex(step.to));
        }
        self.readings.push(ReadingRow {
            host_bytes,
            collections: log.collections(),
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

    pub(crate) fn finish(self, log: DriveLog) -> FeedbackResult {
        FeedbackResult {
            owners: self.owners.owners().iter().map(|owner| owner.name.clone()).collect(),
            readings: self.readings,
            events_lost: log.lost(),
            collections: log.into_collections(),
        }
    }
}

fn moves_of(advice: &Advice) -> Vec<(usize, u16, u16, Reason)> {
    let moves = advice.moves.iter();
    moves
        .map(|step| (step.owner, step.from, step.to, step.reason))
        .collect()
}
