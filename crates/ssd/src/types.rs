//! Indices that must not be mixed up: a logical page is not a physical page, a reclaim unit is not a block.
//!
//! Sizes and counts stay plain integers and carry their unit in the name (`_pages`, `_bytes`, `_ns`).

use base::PlacementIndex;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::cast::index;

/// Nanoseconds of the caller's clock. The device has no clock of its own.
pub type Nanos = u64;

/// Index of a logical page: a logical address divided by the mapping unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lpn(pub u32);

/// Index of a physical page of the whole drive, in the order in which a reclaim unit is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ppn(pub u32);

/// Consecutive logical pages that lie in consecutive physical pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRun {
    /// The first physical page.
    pub ppn: Ppn,
    /// The logical page in it.
    pub lpn: Lpn,
    /// How many pages; at least 1.
    pub pages: u32,
}

impl MappedRun {
    /// A run of one page that is to be said yet.
    pub(crate) const PAGE: MappedRun = MappedRun {
        ppn: Ppn(0),
        lpn: Lpn(0),
        pages: 1,
    };

    /// The physical pages, one by one.
    pub(crate) fn physical_pages(&self) -> Range<u32> {
        self.ppn.0..self.ppn.0 + self.pages
    }

    /// Takes its first pages out of it; some have to be left.
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
    /// Its place in a table of all.
    #[inline]
    pub(crate) fn index(self) -> usize {
        index(self.0)
    }
}

impl Ppn {
    /// "No physical page": the value of a logical page that was never written or was deallocated.
    pub const UNMAPPED: Ppn = Ppn(u32::MAX);
}

/// Index of a reclaim unit handle (RUH), the same in every reclaim group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RuhId(pub u16);

impl RuhId {
    /// The handle at a place in a table of all.
    pub(crate) fn of(index: usize) -> RuhId {
        RuhId(u16::try_from(index).expect("a device has at most 128 handles"))
    }

    /// Its place in a table of all.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Index of a reclaim group (RG).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RgId(pub u16);

impl RgId {
    /// The group at a place in a table of all.
    pub(crate) fn of(index: usize) -> RgId {
        RgId(u16::try_from(index).expect("a device has at most 65535 reclaim groups"))
    }

    /// Its place in a table of all.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Identity of a reclaim unit (RU): the index of its first slice.
///
/// A *slice* is the smallest piece that any handle of the configuration can be given; a full superblock is
/// `slices_per_superblock` of them in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RuId(pub u32);

impl RuId {
    /// Its place in a table of all slices.
    #[inline]
    pub(crate) fn index(self) -> usize {
        index(self.0)
    }
}

/// Where the host wants a write to go: the two halves of a placement identifier, already resolved to a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Placement {
    /// Reclaim group.
    pub group: RgId,
    /// Reclaim unit handle.
    pub handle: RuhId,
}

impl Placement {
    /// A placement by its numbers.
    pub const fn new(group: u16, handle: u16) -> Placement {
        Placement {
            group: RgId(group),
            handle: RuhId(handle),
        }
    }

    /// A handle of reclaim group 0.
    pub const fn handle(handle: u16) -> Placement {
        Placement::new(0, handle)
    }
}

/// What a namespace may use: the handles of its placement handles, each in every reclaim group.
///
/// The one place that turns a [`PlacementIndex`] into a [`Placement`] and back.
#[derive(Clone, Copy, Debug)]
pub struct PlacementList<'a> {
    handles: &'a [RuhId],
    groups: u16,
}

impl<'a> PlacementList<'a> {
    /// The list of a namespace with these placement handles on a drive of `groups` reclaim groups.
    pub fn new(handles: &'a [RuhId], groups: u16) -> PlacementList<'a> {
        assert!(groups > 0, "a drive has a reclaim group");
        PlacementList { handles, groups }
    }

    /// The placement of a placement handle, by its position, in a reclaim group; `None` if there is no such.
    pub fn at(self, group: u16, placement_handle: u16) -> Option<Placement> {
        let handle = *self.handles.get(usize::from(placement_handle))?;
        (group < self.groups).then_some(Placement {
            group: RgId(group),
            handle,
        })
    }

    /// The placement of a placement index; `None` if the list is shorter.
    pub fn get(self, index: PlacementIndex) -> Option<Placement> {
        self.at(index.0 % self.groups, index.0 / self.groups)
    }

    /// Position of a handle among the placement handles; `None` if the namespace may not use it.
    pub fn placement_handle(self, handle: RuhId) -> Option<u16> {
        let position = self.handles.iter().position(|&listed| listed == handle)?;
        Some(u16::try_from(position).expect("a namespace has at most 128 placement handles"))
    }

    /// The placement index of a placement; `None` if the namespace may not use its handle.
    pub fn index_of(self, placement: Placement) -> Option<PlacementIndex> {
        assert!(placement.group.0 < self.groups, "{placement:?} is of another drive");
        let before = u32::from(self.placement_handle(placement.handle)?) * u32::from(self.groups);
        u16::try_from(before + u32::from(placement.group.0))
            .ok()
            .map(PlacementIndex)
    }

    /// Placement indices that there are.
    pub fn count(self) -> u16 {
        u16::try_from(self.handles.len() * usize::from(self.groups)).unwrap_or(u16::MAX)
    }

    /// All of it, in order.
    pub fn iter(self) -> impl Iterator<Item = Placement> + 'a {
        let groups = self.groups;
        let of_handle = move |&handle| (0..groups).map(RgId).map(move |group| Placement { group, handle });
        self.handles.iter().flat_map(of_handle)
    }
}

/// One host write, in mapping units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// First logical page.
    pub first: Lpn,
    /// Pages; at least 1.
    pub pages: u32,
    /// Bytes that the host sent: less than the pages hold where the first or last one is written in part, which the
    /// device turns into a read-modify-write of the whole page.
    pub host_bytes: u64,
    /// Where the host wants it.
    pub placement: Placement,
}

/// Whose data a reclaim unit holds.
///
/// Host writes and the copies of a persistently isolated handle carry the handle; copies of initially isolated
/// handles lose it and carry [`Owner::SHARED`] (NVMe 2.1, "Initially Isolated").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner(pub u16);

impl Owner {
    /// The pool that garbage collection of initially isolated handles copies into.
    pub const SHARED: Owner = Owner(u16::MAX);

    /// The owner of what is written through `handle`.
    pub const fn of(handle: RuhId) -> Owner {
        Owner(handle.0)
    }

    /// The handle, or `None` for the shared pool.
    pub fn handle(self) -> Option<RuhId> {
        (self != Owner::SHARED).then_some(RuhId(self.0))
    }
}

impl std::fmt::Display for Owner {
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
        assert_eq!(
            all,
            [(0, 3), (1, 3), (0, 1), (1, 1)].map(|(group, handle)| Placement::new(group, handle))
        );
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
