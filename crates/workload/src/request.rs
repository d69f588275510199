//! Requests to a drive and their operations.

use serde::{Deserialize, Serialize};

use crate::PlacementIndex;

/// A kind of request. Its number is the index into the fields that fio keeps per direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestOperation {
    /// Read, which changes no data on the drive.
    Read = 0,
    /// Write, the only operation that carries a placement directive.
    Write = 1,
    /// Deallocate (Dataset Management).
    Trim = 2,
}

impl RequestOperation {
    /// All three operations, in fio's order.
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
pub struct IoRequest {
    /// Stream of the workload that issues the request.
    pub stream: u16,
    /// Operation of the request.
    pub operation: RequestOperation,
    /// First byte on the drive.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Index into the namespace's list of placements. None for reads, trims and writes without a
    /// directive.
    pub placement: Option<PlacementIndex>,
}
