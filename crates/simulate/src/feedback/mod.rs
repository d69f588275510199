//! Placement feedback as a closed loop: the drive reports moved data, an advisor polls the reports,
//! and later writes use the placement indices that it selects.
//!
//! ```text
//! workload -> Redirection -> Device -> Reclaim events -> DriveLog (drops the oldest) \
//!               ^- moves <- Advisor, at intervals of host bytes <----------------------/
//! ```
//!
//! The advisor has the view of a host of a real drive: logged events, and the bytes written by host
//! and media. The report alone uses the other records, such as pages copied per owner and
//! collection.

mod drive_log;
mod owners;
mod redirection;
mod result;

use std::sync::{Arc, Mutex};

use advise::{Advisor, EventCursor, OwnerMap, ReallocationEvent, WriteStatistics};
use experiment::feedback::FeedbackSettings;
use ssd::{DeviceLayout, DeviceStats, RuhId};
use workload::PlacementIndex;

use crate::policy::PlacementPolicy;

pub(crate) use drive_log::DriveLog;
pub(crate) use owners::owners;
use redirection::{Redirection, RedirectionTable};
pub use result::{CollectionRow, FeedbackResult, ReadingRow};

/// Host side of the feedback loop in a run.
pub(crate) struct Feedback {
    feed: EventCursor<ReallocationEvent>,
    advisor: Advisor,
    table: Arc<Mutex<RedirectionTable>>,
    owners: Arc<OwnerMap>,
    settings: FeedbackSettings,
    capacity_bytes: u64,
    next_reading: u64,
    readings: Vec<ReadingRow>,
}

impl Feedback {
    /// Creates a loop for a workload with these owners ([`owners`]), in a namespace with
    /// `placement_count` placement indices.
    pub(crate) fn new(
        settings: &FeedbackSettings,
        owners: Arc<OwnerMap>,
        layout: &DeviceLayout,
        placement_count: u16,
    ) -> Feedback {
        let table = RedirectionTable::new(Arc::clone(&owners));
        let capacity_bytes = layout.capacity_bytes();
        let first = settings.first_capacities.unwrap_or(settings.every_capacities);
        Feedback {
            feed: EventCursor::default(),
            advisor: Advisor::new(
                OwnerMap::clone(&owners),
                placement_count,
                settings.policy.create(),
                true,
                WriteStatistics::default(),
            ),
            table: Arc::new(Mutex::new(table)),
            owners,
            settings: settings.clone(),
            capacity_bytes,
            next_reading: (first * capacity_bytes as f64) as u64,
            readings: Vec::new(),
        }
    }

    /// Returns the policy that redirects writes, applied after `inner` if given.
    pub(crate) fn redirection(&self, inner: Option<Box<dyn PlacementPolicy>>) -> Box<dyn PlacementPolicy> {
        let table = Arc::clone(&self.table);
        Box::new(Redirection::new(table, inner))
    }

    /// Returns the drive's side of the loop, at the beginning of the workload.
    pub(crate) fn drive_log(
        &self,
        layout: &DeviceLayout,
        handles: &[RuhId],
        entries: u16,
        begin: &DeviceStats,
    ) -> DriveLog {
        DriveLog::new(Arc::clone(&self.owners), layout, handles, entries, begin)
    }

    /// Returns true if a poll is due.
    pub(crate) fn is_due(&self, host_bytes: u64) -> bool {
        let limit = self.settings.readings.unwrap_or(u32::MAX) as usize;
        host_bytes >= self.next_reading && self.readings.len() < limit
    }

    /// Polls log and statistics of the drive, and applies the advised moves.
    pub(crate) fn read(&mut self, log: &mut DriveLog, stats: &DeviceStats, host_bytes: u64) {
        assert!(
            self.readings.last().is_none_or(|before| before.host_bytes <= host_bytes),
            "readings of the log go back"
        );
        let every = (self.settings.every_capacities * self.capacity_bytes as f64) as u64;
        self.next_reading = host_bytes + every.max(1);
        let mut table = self.table.lock().expect("nobody panics with it");
        for (owner, placement) in table.observed_owners() {
            self.advisor.set_placement(owner, placement.0);
        }
        let fresh = self.feed.new_events(log.read());
        let events = self.events_by_owner(&fresh.events);
        let counters = WriteStatistics {
            host_bytes_written: u128::from(stats.host_bytes_written()),
            media_bytes_written: u128::from(stats.media_bytes_written()),
        };
        let advice = self.advisor.update(fresh, counters);
        for step in &advice.moves {
            table.apply(step.owner, PlacementIndex(step.from), PlacementIndex(step.to));
        }
        self.readings.push(ReadingRow {
            host_bytes,
            collections: log.collections.len(),
            events,
            moves: advice.moves.iter().map(|step| (step.owner, step.from, step.to, step.reason)).collect(),
        });
    }

    /// Number of events of each owner. The last entry counts events without owner.
    fn events_by_owner(&self, events: &[ReallocationEvent]) -> Vec<u32> {
        let nobody = self.owners.owners().len();
        let mut counts = vec![0; nobody + 1];
        for event in events {
            let owner = event.offset_bytes.and_then(|offset| self.owners.find(offset));
            counts[owner.unwrap_or(nobody)] += 1;
        }
        counts
    }

    pub(crate) fn finish(self, log: DriveLog) -> FeedbackResult {
        let polled = self.readings.last().map_or(0, |reading| reading.collections);
        assert!(polled <= log.collections.len(), "the last poll saw {polled} collections of {}", log.collections.len());
        FeedbackResult {
            owners: self.owners.owners().iter().map(|owner| owner.name.clone()).collect(),
            readings: self.readings,
            events_lost: log.lost_events(),
            collections: log.collections,
        }
    }
}
