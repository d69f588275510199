//! Indices that must not be mixed up: a logical page is not a physical page, a reclaim unit is not a block.
//!
//! Sizes and counts stay plain integers and carry their unit in the name (`_pages`, `_bytes`, `_ns`).

use serde::{Deserialize, Serialize};

use crate::cast::index;

/// Nanoseconds of the caller's clock. The device has no clock of its own.
pub type Nanos = u64;

/// Index of a logical page: a logical address divided by the mapping unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lpn(pub u32);

/// Index of a physical page of the whole drive, in the order in which a reclaim unit is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ppn(pub u32);

impl Lpn {
    /// Its place in a table of all.
    #[inline]
    pub(crate) fn index(self) -> usize {
        index(self.0)
    }
}

impl Ppn {
    /// Its place in a table of all.
    #[inline]
    pub(crate) fn index(self) -> usize {
        index(self.0)
    }

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
    /// Handle 0 of reclaim group 0, where writes without a placement directive go.
    pub const DEFAULT: Placement = Placement {
        group: RgId(0),
        handle: RuhId(0),
    };

    /// A handle of reclaim group 0.
    pub const fn handle(handle: u16) -> Placement {
        Placement {
            group: RgId(0),
            handle: RuhId(handle),
        }
    }
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
