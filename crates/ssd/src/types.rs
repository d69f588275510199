//! Index types of the model, so that the compiler rejects a logical page where a physical page
//! belongs.
//!
//! Sizes and counts are plain integers with the unit in their name (`_pages`, `_bytes`, `_ns`).

use base::PlacementIndex;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::cast::index;

/// Nanoseconds of the caller's clock. The device has no clock.
pub type Nanos = u64;

/// Index of a logical page, which is the logical address divided by the mapping unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lpn(pub u32);

/// Index of a physical page of the whole drive. Consecutive indices follow the fill order of a
/// reclaim unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ppn(pub u32);

/// Run of consecutive logical pages that lie in consecutive physical pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRun {
    /// First physical page.
    pub ppn: Ppn,
    /// Logical page stored in the first physical page.
    pub lpn: Lpn,
    /// Number of pages, at least 1.
    pub pages: u32,
}

impl MappedRun {
    /// Placeholder of one page, to be overwritten before use.
    pub(crate) const PAGE: MappedRun = MappedRun { ppn: Ppn(0), lpn: Lpn(0), pages: 1 };

    /// Indices of the physical pages.
    pub(crate) fn physical_pages(&self) -> Range<u32> {
        self.ppn.0..self.ppn.0 + self.pages
    }

    /// Splits off the first `pages` pages and returns them. At least one page must remain.
    pub(crate) fn take_front(&mut self, pages: u32) -> MappedRun {
        assert!(0 < pages && pages < self.pages, "a run is divided into two");
        let front = MappedRun { pages, ..*self };
        self.ppn.0 += pages;
        self.lpn.0 += pages;
        self.pages -= pages;
        front
    }
}

impl Lpn {
    /// Index into a table of all logical pages.
    #[inline]
    pub(crate) fn index(self) -> usize {
        index(self.0)
    }
}

impl Ppn {
    /// Marks a logical page as unmapped because the host never wrote it or deallocated it.
    pub const UNMAPPED: Ppn = Ppn(u32::MAX);
}

/// Index of a reclaim unit handle (RUH), the same in every reclaim group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RuhId(pub u16);

impl RuhId {
    /// Handle at an index of a table of all handles.
    pub(crate) fn from_index(index: usize) -> RuhId {
        RuhId(u16::try_from(index).expect("a device has at most 128 handles"))
    }

    /// Index into a table of all handles.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Index of a reclaim group (RG).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RgId(pub u16);

impl RgId {
    /// Reclaim group at an index of a table of all groups.
    pub(crate) fn from_index(index: usize) -> RgId {
        RgId(u16::try_from(index).expect("a device has at most 65535 reclaim groups"))
    }

    /// Index into a table of all groups.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Identity of a reclaim unit (RU), which is the index of its first slice.
///
/// A *slice* is the smallest part of a superblock that any handle of the configuration can receive.
/// A full superblock is `slices_per_superblock` consecutive slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RuId(pub u32);

impl RuId {
    /// Index into a table of all slices.
    #[inline]
    pub(crate) fn index(self) -> usize {
        index(self.0)
    }
}

/// Requested destination of a write: the two halves of a placement identifier, resolved to a
/// handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Placement {
    /// Reclaim group.
    pub group: RgId,
    /// Reclaim unit handle.
    pub handle: RuhId,
}

impl Placement {
    /// Placement from its group number and handle number.
    pub const fn new(group: u16, handle: u16) -> Placement {
        Placement { group: RgId(group), handle: RuhId(handle) }
    }

    /// Placement on a handle of reclaim group 0.
    pub const fn handle(handle: u16) -> Placement {
        Placement::new(0, handle)
    }
}

/// Placements of a namespace, which are its placement handles in every reclaim group.
///
/// Only this type converts a [`PlacementIndex`] to a [`Placement`] and back.
#[derive(Clone, Copy, Debug)]
pub struct PlacementList<'a> {
    handles: &'a [RuhId],
    groups: u16,
}

impl<'a> PlacementList<'a> {
    /// Creates the list of a namespace with these placement handles on a drive of `groups` reclaim
    /// groups.
    pub fn new(handles: &'a [RuhId], groups: u16) -> PlacementList<'a> {
        assert!(groups > 0, "a drive has a reclaim group");
        PlacementList { handles, groups }
    }

    /// Placement of the placement handle at a position, in a reclaim group. `None` if either does
    /// not exist.
    pub fn at(self, group: u16, placement_handle: u16) -> Option<Placement> {
        let handle = *self.handles.get(usize::from(placement_handle))?;
        (group < self.groups).then_some(Placement { group: RgId(group), handle })
    }

    /// Placement of a placement index. `None` if the list is shorter.
    pub fn get(self, index: PlacementIndex) -> Option<Placement> {
        self.at(index.0 % self.groups, index.0 / self.groups)
    }

    /// Position of a handle among the placement handles. `None` if the namespace may not use it.
    pub fn placement_handle(self, handle: RuhId) -> Option<u16> {
        let position = self.handles.iter().position(|&listed| listed == handle)?;
        Some(u16::try_from(position).expect("a namespace has at most 128 placement handles"))
    }

    /// Placement index of a placement. `None` if the namespace may not use its handle.
    pub fn index_of(self, placement: Placement) -> Option<PlacementIndex> {
        assert!(placement.group.0 < self.groups, "{placement:?} belongs to another drive");
        let before = u32::from(self.placement_handle(placement.handle)?) * u32::from(self.groups);
        u16::try_from(before + u32::from(placement.group.0)).ok().map(PlacementIndex)
    }

    /// Number of placement indices.
    pub fn count(self) -> u16 {
        u16::try_from(self.handles.len() * usize::from(self.groups)).unwrap_or(u16::MAX)
    }

    /// Iterates over all placements in index order.
    pub fn iter(self) -> impl Iterator<Item = Placement> + 'a {
        let groups = self.groups;
        let of_handle = move |&handle| (0..groups).map(RgId).map(move |group| Placement { group, handle });
        self.handles.iter().flat_map(of_handle)
    }
}

/// One host write, in mapping units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRequest {
    /// First logical page.
    pub first: Lpn,
    /// Number of pages, at least 1.
    pub pages: u32,
    /// Bytes that the host sent. Less than the size of the pages if the first or last page is
    /// written partially. The device then reads, modifies and writes the whole page.
    pub host_bytes: u64,
    /// Requested placement.
    pub placement: Placement,
}

/// Owner of the data in a reclaim unit: a handle or the shared pool.
///
/// Host writes and the copies of a persistently isolated handle belong to the handle. Copies of
/// initially isolated handles lose it and belong to [`UnitOwner::SHARED_POOL`] (NVMe 2.1,
/// "Initially Isolated").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnitOwner(pub u16);

impl UnitOwner {
    /// Shared pool, into which garbage collection copies the data of initially isolated handles.
    pub const SHARED_POOL: UnitOwner = UnitOwner(u16::MAX);

    /// Owner of data written through `handle`.
    pub const fn from_handle(handle: RuhId) -> UnitOwner {
        UnitOwner(handle.0)
    }

    /// Handle of this owner, or `None` for the shared pool.
    pub fn handle(self) -> Option<RuhId> {
        (self != UnitOwner::SHARED_POOL).then_some(RuhId(self.0))
    }
}

impl std::fmt::Display for UnitOwner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.handle() {
            Some(handle) => write!(formatter, "RUH {}", handle.0),
            None => formatter.write_str("shared"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_list_goes_handle_by_handle_and_back() {
        let handles = [RuhId(3), RuhId(1)];
        let list = PlacementList::new(&handles, 2);
        let all: Vec<Placement> = list.iter().collect();
        assert_eq!(all, [(0, 3), (1, 3), (0, 1), (1, 1)].map(|(group, handle)| Placement::new(group, handle)));
        for (index, placement) in (0..).map(PlacementIndex).zip(all) {
            assert_eq!(list.get(index), Some(placement));
            assert_eq!(list.index_of(placement), Some(index));
        }
        assert_eq!((list.count(), list.get(PlacementIndex(4))), (4, None));
        assert_eq!(list.at(2, 0), None, "there are two groups");
        assert_eq!(list.at(0, 2), None, "there are two placement handles");
        assert_eq!(list.index_of(Placement::handle(0)), None, "handle 0 is not in the list");
    }
}
