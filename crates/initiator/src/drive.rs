//! Writes, reads and deallocates byte ranges of a namespace, with placement by index, and reads the
//! drive's counters of bytes written.
//!
//! ```text
//! DataPort (NVMe/TCP initiator, kernel passthrough)
//!   -> OpenNamespace::open (block size, placement identifiers, counters)
//!   -> transfer (requests, up to `depth` commands in flight) | wear (bytes written so far)
//! ```
//!
//! Placement indices come from the namespace's Reclaim Unit Handle Status, as for any host. The
//! module never retries a command.

use std::time::Duration;

use nvme_spec::command::{DatasetManagementCdw11, Range, SubmissionEntry};
use nvme_spec::identify::Cns;
use nvme_spec::{IdentifyController, IoOpcode};
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use zerocopy::FromBytes;

use crate::command::{block_command, write_command};
use crate::inspect::decode::HandleStatus;
use crate::inspect::feedback_logs::{self, MonitoredNamespace, WatchError};
use crate::inspect::{CommandPort, InspectError, QueueKind, identify, ocp_smart_log};

/// Maximum transfer, even if the drive allows more, bytes.
const TRANSFER_BYTES_MAX: u64 = 1 << 20;
/// Minimum memory page size, the unit of the drive's maximum transfer (MDTS), bytes.
const PAGE_BYTES: u64 = 4096;

/// I/O command with its data.
#[derive(Clone, Copy, Debug)]
pub struct TransferCommand {
    pub entry: SubmissionEntry,
    pub data: TransferData,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferData {
    /// The first bytes of the port's data for writes.
    Write { bytes: usize },
    /// Bytes that are read and discarded.
    Read { bytes: usize },
    /// A range of Dataset Management.
    Ranges([u8; size_of::<Range>()]),
}

/// Gives the next command of a transfer, `None` at its end.
pub type CommandSource<'a> = dyn FnMut() -> Option<TransferCommand> + Send + 'a;
/// Receives each completed command of a transfer with its latency.
pub type CompletionSink<'a> = dyn FnMut(&TransferCommand, Duration) + Send + 'a;

/// Port that also sends I/O commands with host data.
pub trait DataPort: CommandPort {
    /// Sends commands until `next` returns `None`, with up to `depth` in flight. Each completion
    /// goes to `completed` with its command and latency. After an error, no further command is
    /// sent.
    fn transfer(
        &mut self,
        depth: usize,
        write_data: &[u8],
        next: &mut CommandSource<'_>,
        completed: &mut CompletionSink<'_>,
    ) -> Result<(), InspectError>;

    fn transfer_bytes_max(&self) -> u64 {
        TRANSFER_BYTES_MAX
    }
}

impl<P: DataPort + ?Sized> DataPort for Box<P> {
    fn transfer(
        &mut self,
        depth: usize,
        write_data: &[u8],
        next: &mut CommandSource<'_>,
        completed: &mut CompletionSink<'_>,
    ) -> Result<(), InspectError> {
        (**self).transfer(depth, write_data, next, completed)
    }

    fn transfer_bytes_max(&self) -> u64 {
        (**self).transfer_bytes_max()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveOperation {
    /// Write with a placement index, or without a directive.
    Write(Option<usize>),
    Read,
    Deallocate,
}

/// Request for a range of whole logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveRequest {
    pub operation: DriveOperation,
    pub offset_bytes: u64,
    pub bytes: u64,
}

/// Bytes that a drive has written since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WearReading {
    /// Written by hosts. `None` if the drive does not count them together with `media_bytes`.
    pub host_bytes: Option<u128>,
    pub media_bytes: Option<u128>,
    pub erased_bytes: Option<u128>,
}

/// Log page from which media bytes come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WearCounter {
    /// FDP statistics (22h).
    Fdp,
    /// Physical Media Units Written of the OCP page C0h.
    Ocp,
}

pub struct OpenNamespace<P> {
    port: P,
    nsid: u32,
    block_bytes: u64,
    blocks: u64,
    placement: Result<MonitoredNamespace, WatchError>,
    handles: Vec<HandleStatus>,
    counter: Option<WearCounter>,
    /// Data of writes, as long as the maximum transfer.
    write_data: Vec<u8>,
}

impl<P: DataPort> OpenNamespace<P> {
    /// Opens a namespace.
    pub fn open(mut port: P, nsid: u32) -> Result<OpenNamespace<P>, WatchError> {
        let structure = feedback_logs::structure(&mut port, nsid)?;
        let block_bytes = feedback_logs::block_bytes(nsid, &structure)?;
        let implausible = |problem: String| WatchError::Implausible { nsid, problem };
        let placement = MonitoredNamespace::find_if_enabled(&mut port, nsid)?;
        let mut handles = Vec::new();
        if let Ok(namespace) = &placement {
            handles = namespace.sample(&mut port)?.handles;
            if handles.is_empty() {
                return Err(implausible("the drive reports no placement handle although FDP is enabled".to_string()));
            }
        }
        let counter = if placement.is_ok() {
            Some(WearCounter::Fdp)
        } else {
            ocp_smart_log(&mut port)?.map(|_| WearCounter::Ocp)
        };
        let controller = identify(&mut port, Cns::Controller, 0)?;
        let controller = IdentifyController::read_from_bytes(&controller).expect("the request was for 4096 bytes");
        let most = port.transfer_bytes_max();
        let transfer_bytes = match controller.mdts {
            0 => most,
            mdts => (PAGE_BYTES << mdts.min(16)).min(most),
        };
        if transfer_bytes < block_bytes {
            let problem = format!(
                "the drive reports a maximum transfer of {transfer_bytes} bytes, which is less than its logical block \
                 of {block_bytes}"
            );
            return Err(implausible(problem));
        }
        assert!(transfer_bytes.is_multiple_of(block_bytes), "both are powers of two");
        // Random data, because a drive may compress its data, or treat zeroes as a deallocation.
        let mut write_data = vec![0; transfer_bytes as usize];
        Xoshiro256PlusPlus::seed_from_u64(1).fill_bytes(&mut write_data);
        let blocks = structure.nsze.get();
        Ok(OpenNamespace { port, nsid, block_bytes, blocks, placement, handles, counter, write_data })
    }

    pub fn port(&mut self) -> &mut P {
        &mut self.port
    }

    pub fn nsid(&self) -> u32 {
        self.nsid
    }

    pub fn bytes(&self) -> u64 {
        self.blocks * self.block_bytes
    }

    /// Logical block size, bytes. All ranges are multiples of it.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Handles by placement index, at least one if FDP is enabled, none without FDP.
    pub fn handles(&self) -> &[HandleStatus] {
        &self.handles
    }

    pub fn counter(&self) -> Option<WearCounter> {
        self.counter
    }

    /// Treats the drive as one without a counter of media bytes.
    pub fn ignore_counter(&mut self) {
        self.counter = None;
    }

    /// Properties of the namespace with FDP.
    pub fn placement(&self) -> Result<&MonitoredNamespace, &WatchError> {
        self.placement.as_ref()
    }

    /// Space left in the reclaim unit of a placement index (RUAMW), logical blocks.
    ///
    /// # Panics
    /// FDP is disabled.
    pub fn blocks_left(&mut self, placement: usize) -> Result<u64, WatchError> {
        let namespace = self.placement.as_ref().expect("the caller has placement indices");
        let handles = namespace.sample(&mut self.port)?.handles;
        let problem = "the drive reports fewer placement handles than before".to_string();
        let handle = handles.get(placement).ok_or(WatchError::Implausible { nsid: self.nsid, problem })?;
        Ok(handle.blocks_left)
    }

    /// Reads the start of the namespace, at most `bytes`.
    pub fn read_start(&mut self, bytes: u64) -> Result<Vec<u8>, InspectError> {
        let step = PAGE_BYTES.max(self.block_bytes);
        let mut data = vec![0; (bytes.min(self.bytes()) / step * step) as usize];
        for (index, part) in data.chunks_exact_mut(step as usize).enumerate() {
            let first = index as u64 * step / self.block_bytes;
            let entry = block_command(IoOpcode::Read, self.nsid, first, (step / self.block_bytes) as u32);
            self.port.receive(QueueKind::Io, entry, part)?;
        }
        Ok(data)
    }

    /// Reads the counters. All values are `None` if the drive has no counter.
    pub fn wear(&mut self) -> Result<WearReading, WatchError> {
        Ok(match self.counter {
            Some(WearCounter::Fdp) => {
                let namespace = self.placement.as_ref().expect("the counter is that of FDP");
                let statistics = namespace.sample(&mut self.port)?.statistics;
                WearReading {
                    host_bytes: Some(statistics.host_bytes_written),
                    media_bytes: Some(statistics.media_bytes_written),
                    erased_bytes: Some(statistics.media_bytes_erased),
                }
            }
            Some(WearCounter::Ocp) => {
                let media_bytes = ocp_smart_log(&mut self.port)?.map(|page| page.pmuw.get());
                WearReading { media_bytes, ..WearReading::default() }
            }
            None => WearReading::default(),
        })
    }

    /// Sends requests until `next` returns `None`. A request beyond the maximum transfer becomes
    /// several commands. `completed` receives the bytes and the latency of each command.
    ///
    /// # Panics
    /// A range is empty, is not a multiple of logical blocks or exceeds the namespace, or a
    /// placement index is out of range.
    pub fn transfer(
        &mut self,
        depth: usize,
        mut next: impl FnMut() -> Option<DriveRequest> + Send,
        mut completed: impl FnMut(u64, Duration) + Send,
    ) -> Result<(), InspectError> {
        assert!(depth > 0, "a transfer has a command in flight");
        let (block_bytes, capacity, nsid) = (self.block_bytes, self.bytes(), self.nsid);
        let handles = &self.handles;
        let command_blocks_max = self.write_data.len() as u64 / block_bytes;
        let mut rest: Option<(DriveOperation, u64, u64)> = None;
        let mut next_command = || {
            let (operation, first, blocks) = match rest.take() {
                Some(rest) => rest,
                None => {
                    let request = next()?;
                    let (offset, bytes) = (request.offset_bytes, request.bytes);
                    let is_whole = offset.is_multiple_of(block_bytes) && bytes.is_multiple_of(block_bytes);
                    let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= capacity);
                    assert!(is_whole && is_inside && bytes > 0, "{bytes} bytes at {offset} are logical blocks");
                    (request.operation, offset / block_bytes, bytes / block_bytes)
                }
            };
            let most = match operation {
                DriveOperation::Deallocate => u64::from(u32::MAX),
                _ => command_blocks_max,
            };
            let now = blocks.min(most);
            if now < blocks {
                rest = Some((operation, first + now, blocks - now));
            }
            let bytes = (now * block_bytes) as usize;
            Some(match operation {
                DriveOperation::Write(placement) => TransferCommand {
                    entry: write_command(
                        nsid,
                        first,
                        now as u32,
                        placement.map(|index| handles[index].placement_identifier),
                    ),
                    data: TransferData::Write { bytes },
                },
                DriveOperation::Read => TransferCommand {
                    entry: block_command(IoOpcode::Read, nsid, first, now as u32),
                    data: TransferData::Read { bytes },
                },
                DriveOperation::Deallocate => deallocate_command(nsid, first, now as u32),
            })
        };
        let mut on_completed = |command: &TransferCommand, latency: Duration| {
            let bytes = match command.data {
                TransferData::Write { bytes } | TransferData::Read { bytes } => bytes as u64,
                TransferData::Ranges(_) => 0,
            };
            completed(bytes, latency);
        };
        self.port.transfer(depth, &self.write_data, &mut next_command, &mut on_completed)
    }

    /// Deallocates a range.
    ///
    /// # Panics
    /// See [`OpenNamespace::transfer`].
    pub fn deallocate(&mut self, offset_bytes: u64, bytes: u64) -> Result<(), InspectError> {
        let mut request = Some(DriveRequest { operation: DriveOperation::Deallocate, offset_bytes, bytes });
        self.transfer(1, || request.take(), |_, _| ())
    }
}

/// Dataset Management with one range.
fn deallocate_command(nsid: u32, first: u64, blocks: u32) -> TransferCommand {
    let range = Range { slba: first.into(), nlb: blocks.into(), ..Range::default() };
    let entry = SubmissionEntry {
        opcode: IoOpcode::DatasetManagement.code(),
        nsid: nsid.into(),
        cdw11: DatasetManagementCdw11::new().with_ad(true).into_bits().into(),
        ..SubmissionEntry::default()
    };
    TransferCommand { entry, data: TransferData::Ranges(zerocopy::transmute!(range)) }
}
