//! Drive side of placement feedback: the FDP event log, and the pages that each collection copied
//! per owner.
//!
//! The log is the controller's ([`nvme::fdp::EventLog`]), with its reporting rules. The drive has
//! one namespace over its whole capacity. A logical block is a mapping unit, and every placement
//! handle enables Media Reallocated events. Its clock counts the pages written by the host.

use std::sync::Arc;

use advise::{OwnerMap, ReallocationEvent};
use nvme::fdp::{EventLog, EventSource, FdpEvent, ReportedNamespace, kind};
use nvme::namespace::{EventMask, PageExtent};
use ssd::event::ReclaimRecord;
use ssd::{DeviceLayout, DeviceStats, MappedRun, PlacementList, RuhId};

use super::result::CollectionRow;

/// Identifier of the only namespace.
const NSID: u32 = 1;

/// Drive side of placement feedback. See the module.
pub(crate) struct DriveLog {
    owners: Arc<OwnerMap>,
    entries: u16,
    page_bytes: u64,
    groups: u16,
    extent: PageExtent,
    /// Handles of the host's namespace. `enabled`: their enabled events.
    handles: Vec<RuhId>,
    enabled: Vec<EventMask>,
    log: EventLog,
    /// Start of the next poll, in units of [`ssd::BoundedLog::end`].
    read_until: u64,
    /// Events lost before the last poll.
    lost: u64,
    /// Pages copied per owner by the collection in progress.
    copied: Vec<u32>,
    pub(super) collections: Vec<CollectionRow>,
    host_bytes_at_start: u64,
}

impl DriveLog {
    /// Creates an empty log of `entries` entries for a namespace with these handles. `begin` holds
    /// the device's counters.
    pub(super) fn new(
        owners: Arc<OwnerMap>,
        layout: &DeviceLayout,
        handles: &[RuhId],
        entries: u16,
        begin: &DeviceStats,
    ) -> DriveLog {
        let mut mask = EventMask::default();
        mask.set(kind::MEDIA_REALLOCATED, true);
        assert!(layout.page_bytes.is_power_of_two(), "a logical block is a mapping unit");
        assert!(!handles.is_empty(), "the namespace has no placement handle");
        DriveLog {
            copied: vec![0; owners.owners().len() + 1],
            owners,
            entries,
            page_bytes: layout.page_bytes,
            groups: layout.groups,
            extent: PageExtent { first: 0, pages: layout.logical_pages },
            handles: handles.to_vec(),
            enabled: vec![mask; handles.len()],
            log: EventLog::default(),
            read_until: 0,
            lost: 0,
            collections: Vec::new(),
            host_bytes_at_start: begin.host_bytes_written(),
        }
    }

    /// Returns the log as a host reads it, oldest event first. The log stays unchanged.
    pub(super) fn read(&mut self) -> Vec<ReallocationEvent> {
        let lost = self.lost_events();
        assert!(lost >= self.lost, "the log lost {lost} events, after {} at the last poll", self.lost);
        self.lost = lost;
        self.read_until = self.log.controller().end();
        self.log.controller().iter().map(|event| self.as_heard(event)).collect()
    }

    /// Converts an event for the advisor.
    fn as_heard(&self, event: &FdpEvent) -> ReallocationEvent {
        let moved = event.reallocated.expect("only collections are reported");
        let placements = PlacementList::new(&self.handles, self.groups);
        let index = event.location.and_then(|location| placements.index_of(location));
        assert_eq!(index.is_some(), event.pid.is_some(), "the host knows its own identifiers");
        ReallocationEvent {
            timestamp: event.timestamp,
            placement: index.map(|index| index.0),
            moved_bytes: Some(u64::from(moved.blocks) * self.page_bytes),
            offset_bytes: moved.lba.map(|block| block * self.page_bytes),
        }
    }

    /// Events overwritten before any poll.
    pub(super) fn lost_events(&self) -> u64 {
        self.lost + self.log.controller().dropped_since(self.read_until)
    }

    /// Counts the pages that a collection copies.
    pub(crate) fn copied(&mut self, runs: &[MappedRun]) {
        let nobody = self.copied.len() - 1;
        for page in runs.iter().flat_map(|run| run.lpn.0..run.lpn.0 + run.pages) {
            let owner = self.owners.find(u64::from(page) * self.page_bytes);
            self.copied[owner.unwrap_or(nobody)] += 1;
        }
    }

    /// Completes a collection and stores its copied pages.
    pub(crate) fn reclaimed(&mut self, reclaim: &ReclaimRecord) {
        let nothing = vec![0; self.copied.len()];
        let copied = std::mem::replace(&mut self.copied, nothing);
        assert_eq!(
            copied.iter().sum::<u32>(),
            reclaim.pages_copied,
            "a collection copies the pages that were reported before"
        );
        let host_bytes = reclaim.host_pages_written * self.page_bytes;
        let host_bytes = host_bytes.saturating_sub(self.host_bytes_at_start);
        let before = self.collections.last().map_or(0, |row| row.host_bytes);
        assert!(before <= host_bytes, "a collection at {host_bytes} host bytes follows one at {before}");
        self.collections.push(CollectionRow { host_bytes, copied });
        let source = EventSource {
            groups: self.groups,
            page_bytes: self.page_bytes,
            log_entries: self.entries,
            timestamp: reclaim.host_pages_written,
            sole_nsid: Some(NSID),
        };
        let namespace = ReportedNamespace {
            nsid: NSID,
            extents: std::slice::from_ref(&self.extent),
            placement_handles: &self.handles,
            events_enabled: &self.enabled,
            block_bytes_log2: self.page_bytes.trailing_zeros() as u8,
        };
        self.log.note_collection(&source, std::iter::once(namespace), reclaim);
    }
}
