//! State of one reclaim unit. The device has one entry for each slice. A larger unit uses the entry
//! of its first slice.

use serde::{Deserialize, Serialize};

use crate::types::{RgId, UnitOwner};

/// Null index of the intrusive lists.
pub(crate) const NONE: u32 = u32::MAX;

/// Life-cycle state of a reclaim unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnitState {
    /// Erased, or not the first slice of a unit.
    Free,
    /// Takes pages from the host.
    OpenForHost,
    /// Takes pages from collection.
    OpenForCollection,
    /// Takes no more pages and is a candidate for collection.
    Closed,
}

/// One reclaim unit. The fields that an invalidation accesses come first and share a cache line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct ReclaimUnit {
    pub(crate) valid_pages: u32,
    /// Threshold of valid pages below which the index must be updated. 0 while the unit is not
    /// closed. Not stored in snapshots.
    #[serde(skip)]
    pub(crate) watch: u32,
    /// See [`ReclaimUnit::last_invalidation`].
    pub(crate) last_invalidation: u64,
    pub(crate) group: u16,
    pub(crate) owner: UnitOwner,
    pub(crate) state: UnitState,
    /// Size class.
    pub(crate) class: u8,
    /// Size in pages.
    pub(crate) pages: u32,
    /// Host pages written to the device when a page was last added.
    pub(crate) last_write: u64,
    /// Number of units closed before this one.
    pub(crate) closed_sequence: u64,
    /// Position in the members of its set.
    pub(crate) member: u32,
    /// Neighbours in the list of its bucket.
    pub(crate) bucket_previous: u32,
    pub(crate) bucket_next: u32,
    /// Neighbours in the list in closing order.
    pub(crate) order_previous: u32,
    pub(crate) order_next: u32,
}

impl ReclaimUnit {
    pub(crate) const FREE: ReclaimUnit = ReclaimUnit {
        valid_pages: 0,
        watch: 0,
        last_invalidation: 0,
        group: 0,
        owner: UnitOwner::SHARED_POOL,
        state: UnitState::Free,
        class: 0,
        pages: 0,
        last_write: 0,
        closed_sequence: 0,
        member: NONE,
        bucket_previous: NONE,
        bucket_next: NONE,
        order_previous: NONE,
        order_next: NONE,
    };

    /// Number of valid pages.
    pub fn valid_pages(&self) -> u32 {
        self.valid_pages
    }

    /// Size in pages.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Owner of the data.
    pub fn owner(&self) -> UnitOwner {
        self.owner
    }

    /// Life-cycle state.
    pub fn state(&self) -> UnitState {
        self.state
    }

    /// Reclaim group.
    pub fn group(&self) -> RgId {
        RgId(self.group)
    }

    /// Host pages written to the device when a page was last added.
    pub fn last_write(&self) -> u64 {
        self.last_write
    }

    /// Host pages written to the device when a page was last invalidated.
    pub fn last_invalidation(&self) -> u64 {
        self.last_invalidation
    }

    /// Number of reclaim units closed before this one. Meaningless for an open unit.
    pub fn closed_sequence(&self) -> u64 {
        self.closed_sequence
    }

    /// Number of invalid pages, which is the space that collecting the unit would free.
    pub(crate) fn invalid_pages(&self) -> u32 {
        assert!(self.valid_pages <= self.pages, "a reclaim unit holds more valid pages than pages");
        self.pages - self.valid_pages
    }
}
