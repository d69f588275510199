//! Positions in the list of placements that a namespace offers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A position in the list that Reclaim Unit Handle Status gives a host: placement handle by placement handle, the reclaim groups of each
/// in a row. It is what fio's `plids`, hints and classifiers name.
///
/// The 16 bits that a command carries (the placement identifier) are another form of the same, which only controllers and their hosts know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlacementIndex(pub u16);

impl PlacementIndex {
    /// The first: writes without a directive go through its handle.
    pub const FIRST: PlacementIndex = PlacementIndex(0);

    /// Its place in a table of all.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for PlacementIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
