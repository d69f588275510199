//! Positions in the list of placements that a namespace offers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A position in the list that Reclaim Unit Handle Status gives a host. The list is ordered by
/// placement handle, then by reclaim group. fio's `plids`, hints and classifiers use such
/// positions.
///
/// The placement identifier, 16 bits in a command, is another form of the position. Only
/// controllers and their hosts know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlacementIndex(pub u16);

impl PlacementIndex {
    /// The first position. Writes without a directive use its handle.
    pub const FIRST: PlacementIndex = PlacementIndex(0);

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
