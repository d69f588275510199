//! Requests to a drive.

use serde::{Deserialize, Serialize};

use crate::PlacementIndex;

/// A kind of request. As a number it is the place in everything that fio keeps per direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Read; changes nothing on the drive.
    Read = 0,
    /// Write, the only operation that carries a placement directive.
    Write = 1,
    /// Deallocate (Dataset Management).
    Trim = 2,
}

impl Operation {
    /// All three, in fio's order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// fio's name of the operation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }
}

/// One request to the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Which stream of the workload issues it.
    pub stream: u16,
    /// What to do.
    pub operation: Operation,
    /// First byte on the drive.
    pub offset_bytes: u64,
    /// Length.
    pub bytes: u32,
    /// Index into the namespace's list of placements; none for reads, trims and writes without a directive.
    pub placement: Option<PlacementIndex>,
}
