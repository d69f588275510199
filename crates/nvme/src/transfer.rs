//! What data a command moves: which way, and how much. Where in the host's memory or message it is, is the transport's.

use crate::error::{Failure, Parameter};

/// Log2 of the most data that a command moves, in units of 4 KiB (MDTS): 1 MiB.
pub const MAX_DATA_TRANSFER_SIZE: u8 = 8;
/// The same in bytes.
pub const TRANSFER_BYTES_MAX: u64 = 4096 << MAX_DATA_TRANSFER_SIZE;

/// Which way a command's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No data.
    None,
    /// From host to controller.
    ToController,
    /// From controller to host.
    ToHost,
}

/// The data of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// How much, interleaved metadata included; 0 without direction.
    pub bytes: usize,
    /// Metadata in a buffer of its own (MPTR), which follows the data in what
    /// [`Subsystem::execute`](crate::Subsystem::execute) takes and gives.
    pub metadata_bytes: usize,
}

impl Transfer {
    /// No data.
    pub const NONE: Transfer = Transfer {
        direction: Direction::None,
        bytes: 0,
        metadata_bytes: 0,
    };

    /// From host to controller.
    pub fn to_controller(bytes: u64) -> Transfer {
        Transfer::of(Direction::ToController, bytes)
    }

    /// From controller to host.
    pub fn to_host(bytes: u64) -> Transfer {
        Transfer::of(Direction::ToHost, bytes)
    }

    /// Nothing has no direction.
    fn of(direction: Direction, bytes: u64) -> Transfer {
        Transfer {
            direction: if bytes == 0 { Direction::None } else { direction },
            bytes: bytes as usize,
            metadata_bytes: 0,
        }
    }

    /// Data and separate metadata together.
    pub fn total_bytes(&self) -> usize {
        self.bytes + self.metadata_bytes
    }
}

/// Refuses more than a command may move (MDTS), which counts no metadata (CTRATT.MEM); the length is said at `place`.
pub(crate) fn check_transfer_bytes(bytes: u64, place: Parameter) -> Result<u64, Failure> {
    if bytes > TRANSFER_BYTES_MAX {
        let cause = format!("{bytes} bytes in one command; the limit (MDTS) is {TRANSFER_BYTES_MAX}");
        return Err(Failure::invalid_field(place, cause));
    }
    Ok(bytes)
}
