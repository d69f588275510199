//! Log of the latest reclaim unit events, for monitoring a device.
//!
//! ```text
//! Event -> note -> last few thousand events with copy destinations -> since(end), take
//! ```
//!
//! The lab and the served drive both use it as part of their event sinks. It ignores host commands
//! and wear levelling, which moves no reclaim unit, and has no clock. Only collections carry a time.

use std::collections::BTreeMap;

use crate::bounded_log::BoundedLog;
use crate::event::DeviceEvent;
use crate::types::{RgId, RuId, UnitOwner};

/// Capacity of the log. A new event drops the oldest.
pub const EVENTS_MAX: usize = 4096;

/// A logged event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentEvent {
    /// The event itself.
    pub event: DeviceEvent,
    /// For a collection, the reclaim unit that took (some of) the copies.
    pub destination: Option<RuId>,
}

/// Events after a position of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsSince {
    /// Events, oldest first, at most [`EVENTS_MAX`].
    pub events: Vec<RecentEvent>,
    /// Number of earlier events after the position that are no longer in the log.
    pub left_out: u64,
}

/// Log of the latest events of a device, without host commands.
#[derive(Clone, Debug, Default)]
pub struct RecentEvents {
    events: BoundedLog<RecentEvent>,
    /// End position of the last [`RecentEvents::take`].
    taken: u64,
    /// Reclaim unit that takes each owner's copies, in each group.
    destinations: BTreeMap<(u16, UnitOwner), RuId>,
}

impl RecentEvents {
    /// Logs an event.
    pub fn record(&mut self, event: &DeviceEvent) {
        let mut destination = None;
        match event {
            // If copies share the host's reclaim unit, the last unit opened for either takes them.
            DeviceEvent::Open { group, unit, owner, .. } => {
                self.destinations.insert((group.0, *owner), *unit);
            }
            DeviceEvent::Reclaim(reclaim) if reclaim.pages_copied > 0 => {
                destination = self.destination(reclaim.group, reclaim.destination_owner);
            }
            DeviceEvent::HostWrite(_)
            | DeviceEvent::Absorb { .. }
            | DeviceEvent::Deallocate { .. }
            | DeviceEvent::LevelWear { .. } => return,
            _ => {}
        }
        let event = RecentEvent { event: event.clone(), destination };
        self.events.push(event, EVENTS_MAX);
    }

    fn destination(&self, group: RgId, owner: UnitOwner) -> Option<RuId> {
        self.destinations.get(&(group.0, owner)).copied()
    }

    /// Position after the latest event, which a reader passes to [`RecentEvents::since`] later.
    pub fn end(&self) -> u64 {
        self.events.end()
    }

    /// Events after position `end`.
    ///
    /// # Panics
    /// The log has not reached the position.
    pub fn since(&self, end: u64) -> EventsSince {
        EventsSince { events: self.events.since(end).cloned().collect(), left_out: self.events.dropped_since(end) }
    }

    /// Events since the previous call of this function.
    pub fn take(&mut self) -> EventsSince {
        let end = self.end();
        let before = std::mem::replace(&mut self.taken, end);
        assert!(before <= end, "events that were taken are still counted");
        self.since(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ReclaimRecord, Trigger};
    use crate::types::RuhId;

    fn open(unit: u32, owner: UnitOwner) -> DeviceEvent {
        DeviceEvent::Open { group: RgId(0), unit: RuId(unit), owner, unit_pages: 8, for_collection: false }
    }

    fn reclaim(destination_owner: UnitOwner, pages_copied: u32) -> DeviceEvent {
        DeviceEvent::Reclaim(ReclaimRecord {
            host_pages_written: 0,
            now: 0,
            trigger: Trigger::Background,
            policy: "greedy",
            group: RgId(0),
            victim: RuId(9),
            victim_owner: UnitOwner::from_handle(RuhId(0)),
            destination_owner,
            unit_pages: 8,
            valid_pages: pages_copied,
            pages_copied,
            moved: None,
            blocks_remapped: 0,
            elapsed_ns: 0,
        })
    }

    #[test]
    fn a_collection_knows_where_its_copies_went() {
        let mut recent = RecentEvents::default();
        let events = [
            open(1, UnitOwner::SHARED_POOL),
            reclaim(UnitOwner::SHARED_POOL, 3),
            DeviceEvent::Deallocate { pages: 1 },
            open(2, UnitOwner::from_handle(RuhId(0))),
            open(3, UnitOwner::SHARED_POOL),
            reclaim(UnitOwner::SHARED_POOL, 2),
            reclaim(UnitOwner::SHARED_POOL, 0),
            reclaim(UnitOwner::from_handle(RuhId(1)), 1),
        ];
        events.iter().for_each(|event| recent.record(event));
        let since = recent.since(0);
        let destinations: Vec<_> = since.events.iter().map(|event| event.destination).collect();
        let [one, three] = [1, 3].map(|unit| Some(RuId(unit)));
        assert_eq!(destinations, [None, one, None, None, three, None, None]);
        assert_eq!((since.left_out, recent.end()), (0, 7), "the host's commands are not among them");
    }

    #[test]
    fn each_watcher_is_told_what_it_missed() {
        let mut recent = RecentEvents::default();
        let note = |recent: &mut RecentEvents, count: u32| {
            (0..count).for_each(|unit| recent.record(&open(unit, UnitOwner::SHARED_POOL)));
        };
        note(&mut recent, 2);
        assert_eq!((recent.take().events.len(), recent.take().events.len()), (2, 0));
        let seen = recent.end();
        note(&mut recent, EVENTS_MAX as u32 + 3);
        let since = recent.since(seen);
        assert_eq!((since.events.len(), since.left_out), (EVENTS_MAX, 3));
        assert_eq!(since.events[0].event, open(3, UnitOwner::SHARED_POOL));
        assert_eq!(recent.take(), since, "both have seen as much");
        assert_eq!(recent.since(recent.end()), EventsSince::default());
    }
}
