//! A drive that is written: reads, writes and deallocations of byte ranges, with placement by index, one at a time.
//!
//! ```text
//! DataPort (NVMe/TCP initiator, kernel passthrough) -> Drive::open (namespace, placement identifiers) -> write | read | deallocate
//!                                                                                \-> statistics (FDP log page)
//! ```
//!
//! A placement index is found out as any host does it: from the namespace's Reclaim Unit Handle Status. Nothing here keeps
//! several commands in flight or measures time.

use nvme_spec::command::{DatasetManagementCdw11, Range, SubmissionEntry};
use nvme_spec::identify::Cns;
use nvme_spec::{IdentifyController, IoOpcode};
use zerocopy::{FromBytes, IntoBytes};

use crate::command::{block_command, write_command};
use crate::inspect::decode::{HandleStatus, Statistics};
use crate::inspect::watch::{Namespace, WatchError};
use crate::inspect::{CommandPort, InspectError, Queue, identify};

/// Longest transfer, whatever else the drive allows.
const TRANSFER_BYTES_MAX: u64 = 1 << 20;
/// What a memory page has at least, in which the drive counts its longest transfer.
const PAGE_BYTES: u64 = 4096;

/// A way to send commands that change a drive, too.
pub trait DataPort: CommandPort {
    /// Sends an I/O command with its data; returns dword 0 of the completion.
    ///
    /// # Errors
    /// The drive cannot be reached, or refuses the command.
    fn send(&mut self, entry: SubmissionEntry, data: &[u8]) -> Result<u32, InspectError>;

    /// Longest transfer that the way takes, bytes, whatever the drive allows.
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

/// A namespace that is written.
pub struct Drive<P> {
    port: P,
    namespace: Namespace,
    handles: Vec<HandleStatus>,
    /// What is written and where reads go, as long as the longest transfer.
    buffer: Vec<u8>,
}

impl<P: DataPort> Drive<P> {
    /// Finds out about a namespace.
    ///
    /// # Errors
    /// As [`Namespace::find`].
    pub fn open(mut port: P, nsid: u32) -> Result<Drive<P>, WatchError> {
        let namespace = Namespace::find(&mut port, nsid, None)?;
        let handles = namespace.sample(&mut port)?.handles;
        if handles.is_empty() {
            let problem = "the drive says that it has no placement handle, though FDP is enabled".to_string();
            return Err(WatchError::Implausible { nsid, problem });
        }
        let controller = identify(&mut port, Cns::Controller, 0)?;
        let controller = IdentifyController::read_from_bytes(&controller).expect("4096 bytes were asked for");
        let most = port.transfer_bytes_max();
        let transfer_bytes = match controller.mdts {
            0 => most,
            mdts => (PAGE_BYTES << mdts.min(16)).min(most),
        };
        if transfer_bytes < namespace.block_bytes {
            let problem = format!(
                "the drive says that a transfer has {transfer_bytes} bytes at most, which is less than a logical block of {}",
                namespace.block_bytes
            );
            return Err(WatchError::Implausible { nsid, problem });
        }
        assert!(
            transfer_bytes.is_multiple_of(namespace.block_bytes),
            "both are powers of two"
        );
        Ok(Drive {
            port,
            namespace,
            handles,
            // Not zeroes, which a drive may take for a deallocation.
            buffer: vec![0xa5; transfer_bytes as usize],
        })
    }

    /// Bytes of the namespace.
    pub fn bytes(&self) -> u64 {
        self.namespace.bytes()
    }

    /// Bytes of a logical block, which everything is made of.
    pub fn block_bytes(&self) -> u64 {
        self.namespace.block_bytes
    }

    /// What its placement indices lead to, in their order; there is one at least.
    pub fn handles(&self) -> &[HandleStatus] {
        &self.handles
    }

    /// Bytes written and erased so far, of the endurance group.
    ///
    /// # Errors
    /// As [`Namespace::find`].
    pub fn statistics(&mut self) -> Result<Statistics, WatchError> {
        Ok(self.namespace.sample(&mut self.port)?.statistics)
    }

    /// Writes a range, with a directive if there is a placement index.
    ///
    /// # Errors
    /// As [`DataPort::send`].
    ///
    /// # Panics
    /// The range is not made of logical blocks, or there is no such placement index.
    pub fn write(&mut self, offset_bytes: u64, bytes: u64, placement: Option<usize>) -> Result<(), InspectError> {
        let identifier = placement.map(|index| self.handles[index].placement_identifier);
        let nsid = self.namespace.nsid;
        self.each_transfer(offset_bytes, bytes, |port, first, blocks, buffer| {
            port.send(write_command(nsid, first, blocks, identifier), buffer)
        })
    }

    /// Reads a range, and forgets it.
    ///
    /// # Errors
    /// As [`DataPort::send`].
    ///
    /// # Panics
    /// The range is not made of logical blocks.
    pub fn read(&mut self, offset_bytes: u64, bytes: u64) -> Result<(), InspectError> {
        let nsid = self.namespace.nsid;
        let mut data = vec![0; self.buffer.len()];
        self.each_transfer(offset_bytes, bytes, |port, first, blocks, buffer| {
            let entry = block_command(IoOpcode::Read, nsid, first, blocks);
            port.receive(Queue::Io, entry, &mut data[..buffer.len()])
        })
    }

    /// Deallocates a range.
    ///
    /// # Errors
    /// As [`DataPort::send`].
    ///
    /// # Panics
    /// The range is not made of logical blocks.
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

    /// A range in logical blocks.
    fn blocks_of(&self, offset_bytes: u64, bytes: u64) -> (u64, u64) {
        let block_bytes = self.namespace.block_bytes;
        let is_whole = offset_bytes.is_multiple_of(block_bytes) && bytes.is_multiple_of(block_bytes);
        assert!(
            is_whole && bytes > 0,
            "{bytes} bytes at {offset_bytes} are logical blocks"
        );
        (offset_bytes / block_bytes, bytes / block_bytes)
    }

    /// Carries out a range in transfers that the drive allows.
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
            let data = &self.buffer[..(blocks * block_bytes) as usize];
            transfer(&mut self.port, first, blocks as u32, data)?;
            first += blocks;
            left -= blocks;
        }
        Ok(())
    }
}
