//! Direction and length of a command's data transfer. The transport knows the place of the data in
//! memory or messages.

use crate::error::{Failure, Parameter};

/// Log2 of the largest data transfer in units of 4 KiB (MDTS). The limit is 1 MiB.
pub const MAX_DATA_TRANSFER_SIZE: u8 = 8;
/// Largest data transfer in bytes.
pub const TRANSFER_BYTES_MAX: u64 = 4096 << MAX_DATA_TRANSFER_SIZE;
const _: () = assert!(TRANSFER_BYTES_MAX <= u32::MAX as u64 / 2, "data and metadata have a length of 32 bits");

/// Direction of a command's data transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferDirection {
    /// No transfer.
    None,
    /// From host to controller.
    ToController,
    /// From controller to host.
    ToHost,
}

/// Data transfer of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Direction of the transfer.
    pub direction: TransferDirection,
    /// Length in bytes with interleaved metadata. 0 for [`TransferDirection::None`].
    pub bytes: usize,
    /// Bytes of metadata in a separate buffer (MPTR). In the buffer of
    /// [`Subsystem::execute`](crate::Subsystem::execute) the metadata follows the data.
    pub metadata_bytes: usize,
}

impl Transfer {
    /// No transfer.
    pub const NONE: Transfer = Transfer { direction: TransferDirection::None, bytes: 0, metadata_bytes: 0 };

    /// From host to controller.
    pub fn to_controller(bytes: u64) -> Transfer {
        Transfer::new(TransferDirection::ToController, bytes)
    }

    /// From controller to host.
    pub fn to_host(bytes: u64) -> Transfer {
        Transfer::new(TransferDirection::ToHost, bytes)
    }

    /// An empty transfer has no direction.
    fn new(direction: TransferDirection, bytes: u64) -> Transfer {
        Transfer {
            direction: if bytes == 0 { TransferDirection::None } else { direction },
            bytes: bytes as usize,
            metadata_bytes: 0,
        }
    }

    /// Bytes of data and separate metadata.
    pub fn total_bytes(&self) -> usize {
        self.bytes + self.metadata_bytes
    }
}

/// Refuses transfers above the limit (MDTS), which excludes metadata (CTRATT.MEM). `place` is the
/// field with the length.
pub(crate) fn check_transfer_bytes(bytes: u64, place: Parameter) -> Result<u64, Failure> {
    if bytes > TRANSFER_BYTES_MAX {
        let cause = format!("the command transfers {bytes} bytes. The limit (MDTS) is {TRANSFER_BYTES_MAX}");
        return Err(Failure::invalid_field(place, cause));
    }
    Ok(bytes)
}
