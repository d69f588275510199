//! The drive's side of a closed loop: its event log, and what each collection copied of whom.

use std::sync::Arc;

use advise::{Event, OwnerMap};
use ssd::event::Reclaim;
use ssd::{Layout, MappedRun, Placement, PlacementList, Ring, RuhId, Stats};

use super::result::CollectionRow;

/// See the module.
pub(crate) struct DriveLog {
    owners: Arc<OwnerMap>,
    entries: usize,
    page_bytes: u64,
    groups: u16,
    /// Handles of the host's namespace.
    handles: Vec<RuhId>,
    log: Ring<Event>,
    /// Where the next reading goes on, as [`Ring::end`] counts.
    read_until: u64,
    /// Events that were lost before the last reading.
    lost: u64,
    /// Of the collection that is going on.
    copied: Vec<u32>,
    collections: Vec<CollectionRow>,
    host_bytes_at_start: u64,
}

/// Logical blocks that an event can say at most: NLBAM has 16 bits, and a logical block is a mapping unit here.
const BLOCKS_MAX: u32 = u16::MAX as u32;

impl DriveLog {
    /// An empty log of so many entries for a namespace with these handles, when the device has counted `begin`.
    pub(super) fn new(
        owners: Arc<OwnerMap>,
        layout: &Layout,
        handles: &[RuhId],
        entries: u16,
        begin: &Stats,
    ) -> DriveLog {
        DriveLog {
            copied: vec![0; owners.owners().len() + 1],
            owners,
            entries: usize::from(entries),
            page_bytes: layout.page_bytes,
            groups: layout.groups,
            handles: handles.to_vec(),
            log: Ring::default(),
            read_until: 0,
            lost: 0,
            collections: Vec::new(),
            host_bytes_at_start: begin.host_bytes_written(),
        }
    }

    /// The log as a host reads it, the oldest first; it stays as it is.
    pub(super) fn read(&mut self) -> Vec<Event> {
        self.lost = self.lost();
        self.read_until = self.log.end();
        self.log.iter().copied().collect()
    }

    /// Collections so far.
    pub(super) fn collections(&self) -> usize {
        self.collections.len()
    }

    /// Events that nobody read before newer ones drove them out.
    pub(super) fn lost(&self) -> u64 {
        self.lost + self.log.lost_since(self.read_until)
    }

    /// A row for each collection.
    pub(super) fn into_collections(self) -> Vec<CollectionRow> {
        self.collections
    }

    /// Takes the pages that a collection copies.
    pub(crate) fn copied(&mut self, runs: &[MappedRun]) {
        let nobody = self.copied.len() - 1;
        for page in runs.iter().flat_map(|run| run.lpn.0..run.lpn.0 + run.pages) {
            let owner = self.owners.find(u64::from(page) * self.page_bytes);
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
        let (group, victim) = (reclaim.group, reclaim.victim_owner.handle());
        let placements = PlacementList::new(&self.handles, self.groups);
        let index = victim.and_then(|handle| placements.index_of(Placement { group, handle }));
        let event = Event {
            timestamp: reclaim.host_pages_written,
            placement: index.map(|index| index.0),
            moved_bytes: Some(u64::from(reclaim.pages_copied.min(BLOCKS_MAX)) * self.page_bytes),
            offset_bytes: reclaim.moved.map(|moved| u64::from(moved.first.0) * self.page_bytes),
        };
        self.log.push(event, self.entries);
    }
}
