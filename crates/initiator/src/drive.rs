//! Writes, reads and deallocates byte ranges of a drive, with placement by index and one command at
//! a time.
//!
//! ```text
//! DataPort (NVMe/TCP initiator, kernel passthrough)
//!   -> OpenNamespace::open (namespace, placement identifiers)
//!   -> write | read | deallocate | statistics (FDP log page)
//! ```
//!
//! Placement indices come from the namespace's Reclaim Unit Handle Status, as for any host. This
//! module keeps one command in flight and measures no times.

use nvme_spec::command::{DatasetManagementCdw11, Range, SubmissionEntry};
use nvme_spec::identify::Cns;
use nvme_spec::{IdentifyController, IoOpcode};
use zerocopy::{FromBytes, IntoBytes};

use crate::command::{block_command, write_command};
use crate::inspect::decode::{FdpByteCounts, HandleStatus};
use crate::inspect::feedback_logs::{MonitoredNamespace, WatchError};
use crate::inspect::{CommandPort, InspectError, QueueKind, identify};

/// Maximum transfer, even if the drive allows more, bytes.
const TRANSFER_BYTES_MAX: u64 = 1 << 20;
/// Minimum memory page size, the unit of the drive's maximum transfer (MDTS), bytes.
const PAGE_BYTES: u64 = 4096;

/// Port that also sends commands with host data.
pub trait DataPort: CommandPort {
    /// Sends an I/O command with its data and returns dword 0 of the completion.
    fn send(&mut self, entry: SubmissionEntry, data: &[u8]) -> Result<u32, InspectError>;

    fn transfer_bytes_max(&self) -> u64 {
        TRANSFER_BYTES_MAX
    }
}

impl<P: DataPort + ?Sized> DataPort for Box<P> {
    fn send(&mut self, entry: SubmissionEntry, data: &[u8]) -> Result<u32, InspectError> {
        (**self).send(entry, data)
    }

    fn transfer_bytes_max(&self) -> u64 {
        (**self).transfer_bytes_max()
    }
}

pub struct OpenNamespace<P> {
    port: P,
    namespace: MonitoredNamespace,
    handles: Vec<HandleStatus>,
    /// Data of writes, as long as the maximum transfer.
    buffer: Vec<u8>,
}

impl<P: DataPort> OpenNamespace<P> {
    /// Opens a namespace.
    ///
    /// # Errors
    /// See [`MonitoredNamespace::find`].
    pub fn open(mut port: P, nsid: u32) -> Result<OpenNamespace<P>, WatchError> {
        let namespace = MonitoredNamespace::find(&mut port, nsid, None)?;
        let handles = namespace.sample(&mut port)?.handles;
        if handles.is_empty() {
            let problem = "the drive reports no placement handle although FDP is enabled".to_string();
            return Err(WatchError::Implausible { nsid, problem });
        }
        let controller = identify(&mut port, Cns::Controller, 0)?;
        let controller = IdentifyController::read_from_bytes(&controller).expect("the request was for 4096 bytes");
        let most = port.transfer_bytes_max();
        let transfer_bytes = match controller.mdts {
            0 => most,
            mdts => (PAGE_BYTES << mdts.min(16)).min(most),
        };
        if transfer_bytes < namespace.block_bytes {
            let problem = format!(
                "the drive reports a maximum transfer of {transfer_bytes} bytes, which is less than its logical block \
                 of {}",
                namespace.block_bytes
            );
            return Err(WatchError::Implausible { nsid, problem });
        }
        assert!(transfer_bytes.is_multiple_of(namespace.block_bytes), "both are powers of two");
        Ok(OpenNamespace {
            port,
            namespace,
            handles,
            // The data is not zero, because a drive may treat zeroes as a deallocation.
            buffer: vec![0xa5; transfer_bytes as usize],
        })
    }

    pub fn bytes(&self) -> u64 {
        self.namespace.bytes()
    }

    /// Logical block size, bytes. All ranges are multiples of it.
    pub fn block_bytes(&self) -> u64 {
        self.namespace.block_bytes
    }

    /// Handles by placement index, at least one.
    pub fn handles(&self) -> &[HandleStatus] {
        &self.handles
    }

    /// Bytes of the endurance group written and erased so far.
    ///
    /// # Errors
    /// See [`MonitoredNamespace::find`].
    pub fn statistics(&mut self) -> Result<FdpByteCounts, WatchError> {
        Ok(self.namespace.sample(&mut self.port)?.statistics)
    }

    /// Writes a range, with a directive if a placement index is given.
    ///
    /// # Panics
    /// The range is not a multiple of logical blocks, or the placement index is out of range.
    pub fn write(&mut self, offset_bytes: u64, bytes: u64, placement: Option<usize>) -> Result<(), InspectError> {
        let identifier = placement.map(|index| self.handles[index].placement_identifier);
        let nsid = self.namespace.nsid;
        self.each_transfer(offset_bytes, bytes, |port, first, blocks, buffer| {
            port.send(write_command(nsid, first, blocks, identifier), buffer)
        })
    }

    /// Reads a range and discards the data.
    ///
    /// # Errors
    /// See [`DataPort::send`].
    ///
    /// # Panics
    /// The range is not a multiple of logical blocks.
    pub fn read(&mut self, offset_bytes: u64, bytes: u64) -> Result<(), InspectError> {
        let nsid = self.namespace.nsid;
        let mut data = vec![0; self.buffer.len()];
        self.each_transfer(offset_bytes, bytes, |port, first, blocks, buffer| {
            let entry = block_command(IoOpcode::Read, nsid, first, blocks);
            port.receive(QueueKind::Io, entry, &mut data[..buffer.len()])
        })
    }

    /// Deallocates a range.
    ///
    /// # Errors
    /// See [`DataPort::send`].
    ///
    /// # Panics
    /// The range is not a multiple of logical blocks.
    pub fn deallocate(&mut self, offset_bytes: u64, bytes: u64) -> Result<(), InspectError> {
        let (first, blocks) = self.blocks_of(offset_bytes, bytes);
        let range = Range {
            slba: first.into(),
            nlb: u32::try_from(blocks).expect("a request has 32 bits of bytes").into(),
            ..Range::default()
        };
        let entry = SubmissionEntry {
            opcode: IoOpcode::DatasetManagement.code(),
            nsid: self.namespace.nsid.into(),
            cdw11: DatasetManagementCdw11::new().with_ad(true).into_bits().into(),
            ..SubmissionEntry::default()
        };
        self.port.send(entry, range.as_bytes()).map(drop)
    }

    fn blocks_of(&self, offset_bytes: u64, bytes: u64) -> (u64, u64) {
        let block_bytes = self.namespace.block_bytes;
        let is_whole = offset_bytes.is_multiple_of(block_bytes) && bytes.is_multiple_of(block_bytes);
        assert!(is_whole && bytes > 0, "{bytes} bytes at {offset_bytes} are logical blocks");
        (offset_bytes / block_bytes, bytes / block_bytes)
    }

    /// Splits a range into transfers that the drive allows.
    fn each_transfer(
        &mut self,
        offset_bytes: u64,
        bytes: u64,
        mut transfer: impl FnMut(&mut P, u64, u32, &[u8]) -> Result<u32, InspectError>,
    ) -> Result<(), InspectError> {
        let (mut first, mut left) = self.blocks_of(offset_bytes, bytes);
        let block_bytes = self.namespace.block_bytes;
        while left > 0 {
            let blocks = left.min(self.buffer.len() as u64 / block_bytes);
            transfer(&mut self.port, first, blocks as u32, &self.buffer[..(blocks * block_bytes) as usize])?;
            first += blocks;
            left -= blocks;
        }
        Ok(())
    }
}
