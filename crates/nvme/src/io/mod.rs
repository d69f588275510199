//! I/O commands, parsed once and then executed on the device (placement, counters) and the media
//! (bytes).
//!
//! `parse` converts a submission queue entry into an [`IoCommand`]. It decodes all 0-based and
//! packed fields, so executors see only values that are valid on their own. Checks of range, format
//! and protection run at execution. The namespace may change during the data transfer.

pub(crate) mod context;
pub(crate) mod fast_path;
mod metadata;
pub(crate) mod ranges;
mod read_write;

use nvme_spec::command::{self, SubmissionEntry};
use nvme_spec::{IoOpcode, NSID_ALL};
use prefetch::NonTemporalBuf;
use ssd::{Lpn, Placement};

use context::IoContext;

use crate::completion::{CommandResult, Execution};
use crate::error::{Failure, Parameter};
use crate::fdp::WriteDirective;
use crate::media::{ByteRange, Media, bytes_for};
use crate::subsystem::Subsystem;
use crate::traffic::CommandKind;
use crate::transfer::{TRANSFER_BYTES_MAX, Transfer, TransferDirection, check_transfer_bytes};

/// Bytes of the scratch buffer, which holds the largest transfer with its metadata.
const SCRATCH_BYTES_MAX: u64 = bytes_for(TRANSFER_BYTES_MAX);

/// A range of logical blocks of the command's namespace. It has at least one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRange {
    pub first: u64,
    pub count: u64,
}

/// Consecutive pieces of the data of a Read or Write, each copied once.
pub(crate) enum StraightData<'a> {
    ToHost(&'a mut dyn FnMut(&[u8]) -> Result<(), Failure>),
    FromHost(&'a mut dyn FnMut(NonTemporalBuf<'_>) -> Result<(), Failure>),
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IoProgress {
    /// Logical blocks that are done.
    pub blocks_done: u64,
    /// Placement of the command's data, decided once.
    pub placement: Option<Placement>,
}

impl IoProgress {
    /// Adds a finished part of `blocks` blocks. Returns true if all `all` blocks are done.
    fn advance(&mut self, blocks: u64, all: u64) -> bool {
        self.blocks_done += blocks;
        assert!(self.blocks_done <= all, "the parts cover exactly the command");
        self.blocks_done == all
    }
}

/// An I/O command with decoded fields.
#[derive(Clone, Copy, Debug)]
pub struct IoCommand {
    nsid: u32,
    operation: NvmOperation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NvmOperation {
    Flush,
    Read(BlockRange),
    Write {
        blocks: BlockRange,
        force_unit_access: bool,
        directive: WriteDirective,
    },
    Compare(BlockRange),
    Verify(BlockRange),
    WriteZeroes {
        blocks: BlockRange,
        deallocate: bool,
        force_unit_access: bool,
        directive: WriteDirective,
    },
    WriteUncorrectable(BlockRange),
    DatasetManagement {
        ranges: u64,
        deallocate: bool,
    },
    Copy {
        destination: u64,
        ranges: u64,
        descriptor_format: u8,
        force_unit_access: bool,
        directive: WriteDirective,
    },
    /// Reclaim unit handle status. `bytes` is the size of the host's buffer.
    HandleStatus {
        bytes: u64,
    },
    HandleUpdate {
        identifiers: u64,
    },
    /// Management operation 0 of I/O Management Send or Receive.
    Nothing,
}

impl IoCommand {
    /// Parses the entry of an I/O queue. `None` for an invalid command. [`Subsystem::accept`] then
    /// returns the reason.
    #[inline]
    pub fn parse(entry: &SubmissionEntry) -> Option<IoCommand> {
        parse(entry).ok().filter(|_| entry.flags.fuse() == 0)
    }

    /// Namespace identifier of the command.
    #[inline]
    pub fn nsid(&self) -> u32 {
        self.nsid
    }

    /// Logical blocks that the command accesses, sources of Copy included.
    pub(crate) fn ranges(&self, data: &[u8]) -> Vec<BlockRange> {
        match self.operation {
            NvmOperation::Read(blocks)
            | NvmOperation::Compare(blocks)
            | NvmOperation::Verify(blocks)
            | NvmOperation::WriteUncorrectable(blocks)
            | NvmOperation::Write { blocks, .. }
            | NvmOperation::WriteZeroes { blocks, .. } => vec![blocks],
            NvmOperation::DatasetManagement { .. } => ranges::of_dataset(data),
            NvmOperation::Copy { destination, .. } => ranges::of_copy(destination, data),
            NvmOperation::Flush
            | NvmOperation::HandleStatus { .. }
            | NvmOperation::HandleUpdate { .. }
            | NvmOperation::Nothing => Vec::new(),
        }
    }
}

/// Parses a submission queue entry. It ignores PRINFO, which has no meaning without protection
/// information. The fio passthrough engine always sets PRACT.
pub(crate) fn parse(entry: &SubmissionEntry) -> Result<IoCommand, Failure> {
    Ok(IoCommand { nsid: entry.nsid.get(), operation: parse_operation(entry)? })
}

fn parse_operation(entry: &SubmissionEntry) -> Result<NvmOperation, Failure> {
    let unknown = || Failure::unknown_opcode(entry.opcode, "I/O");
    let (cdw10, cdw11) = (entry.cdw10.get(), entry.cdw11.get());
    let cdw12 = command::ReadWriteCdw12::from_bits(entry.cdw12.get());
    let blocks = BlockRange { first: u64::from(cdw11) << 32 | u64::from(cdw10), count: u64::from(cdw12.nlb()) + 1 };
    let specific = (entry.cdw13.get() >> 16) as u16;
    Ok(match IoOpcode::from_u8(entry.opcode).ok_or_else(unknown)? {
        IoOpcode::Flush => NvmOperation::Flush,
        IoOpcode::Read => NvmOperation::Read(blocks),
        IoOpcode::Compare => NvmOperation::Compare(blocks),
        IoOpcode::Verify => NvmOperation::Verify(blocks),
        IoOpcode::Write => NvmOperation::Write {
            blocks,
            force_unit_access: cdw12.fua(),
            directive: WriteDirective::parse(cdw12.dtype(), specific)?,
        },
        IoOpcode::WriteZeroes => {
            let dword12 = command::WriteZeroesCdw12::from_bits(entry.cdw12.get());
            NvmOperation::WriteZeroes {
                blocks,
                deallocate: dword12.deac(),
                force_unit_access: cdw12.fua(),
                directive: WriteDirective::parse(cdw12.dtype(), specific)?,
            }
        }
        IoOpcode::WriteUncorrectable => NvmOperation::WriteUncorrectable(blocks),
        IoOpcode::DatasetManagement => NvmOperation::DatasetManagement {
            ranges: u64::from(cdw10 & 0xff) + 1,
            deallocate: command::DatasetManagementCdw11::from_bits(cdw11).ad(),
        },
        IoOpcode::Copy => {
            let dword12 = command::CopyCdw12::from_bits(entry.cdw12.get());
            NvmOperation::Copy {
                destination: blocks.first,
                ranges: u64::from(dword12.nr()) + 1,
                descriptor_format: dword12.desfmt(),
                force_unit_access: dword12.fua(),
                directive: WriteDirective::parse(dword12.dtype(), specific)?,
            }
        }
        IoOpcode::IoManagementReceive => match cdw10 & 0xff {
            0 => NvmOperation::Nothing,
            1 => NvmOperation::HandleStatus { bytes: (u64::from(cdw11) + 1) * 4 },
            operation => return Err(unknown_management_operation(operation)),
        },
        IoOpcode::IoManagementSend => match cdw10 & 0xff {
            0 => NvmOperation::Nothing,
            1 => NvmOperation::HandleUpdate { identifiers: u64::from(cdw10 >> 16) + 1 },
            operation => return Err(unknown_management_operation(operation)),
        },
        _ => return Err(unknown()),
    })
}

fn limited(bytes: u64) -> Result<u64, Failure> {
    check_transfer_bytes(bytes, Parameter::dword(12, 0))
}

pub(crate) fn pages_of(piece: ByteRange, page_bytes: u64) -> (Lpn, u32) {
    let first = piece.offset / page_bytes;
    let end = (piece.offset + piece.bytes).div_ceil(page_bytes);
    (Lpn(first as u32), (end - first) as u32)
}

fn unknown_management_operation(operation: u32) -> Failure {
    Failure::invalid_field(Parameter::dword(10, 0), format!("management operation {operation:#x} is not supported"))
}

impl Subsystem {
    pub(crate) fn io_transfer(&self, id: u16, command: &IoCommand) -> Result<Transfer, Failure> {
        let nsid = command.nsid;
        Ok(match command.operation {
            NvmOperation::Read(blocks) => self.block_transfer(id, nsid, blocks, Transfer::to_host)?,
            NvmOperation::Write { blocks, .. } | NvmOperation::Compare(blocks) => {
                self.block_transfer(id, nsid, blocks, Transfer::to_controller)?
            }
            NvmOperation::DatasetManagement { ranges, .. } => Transfer::to_controller(ranges * 16),
            NvmOperation::Copy { ranges, descriptor_format, .. } => {
                Transfer::to_controller(ranges * ranges::source_range_bytes(descriptor_format)?)
            }
            NvmOperation::HandleStatus { bytes } => Transfer::to_host(bytes.min(self.handle_status_bytes(id, nsid)?)),
            NvmOperation::HandleUpdate { identifiers } => Transfer::to_controller(limited(identifiers * 2)?),
            NvmOperation::Flush
            | NvmOperation::Verify(_)
            | NvmOperation::WriteZeroes { .. }
            | NvmOperation::WriteUncorrectable(_)
            | NvmOperation::Nothing => Transfer::NONE,
        })
    }

    /// Carries out an I/O command, or one part of it. `progress` has the parts done so far, and
    /// this call adds to it. Data from the host has the length of the command.
    pub(crate) fn execute_io(
        &mut self,
        id: u16,
        command: &IoCommand,
        data: &mut Vec<u8>,
        progress: &mut IoProgress,
    ) -> CommandResult {
        let &IoCommand { nsid, operation } = command;
        // Flush is the only I/O command that runs during a sanitize operation (Base Specification,
        // "Sanitize Operations"). It is also the only one that accepts all namespaces.
        if operation == NvmOperation::Flush {
            return self.flush(id, nsid);
        }
        self.with_namespace(id, nsid, |io| io.execute(operation, data, progress))
    }

    /// Runs a command in the context of its namespace, and stores the state if the command changed
    /// it. Refuses namespaces that the controller does not have. Refuses all commands during a
    /// sanitize operation.
    fn with_namespace(
        &mut self,
        id: u16,
        nsid: u32,
        run: impl FnOnce(&mut IoContext<'_>) -> CommandResult,
    ) -> CommandResult {
        self.check_no_sanitize()?;
        self.state.namespaces.active(id, nsid)?;
        let mut io = self.namespace_io(nsid);
        let executed = run(&mut io);
        assert!(io.scratch.len() as u64 <= SCRATCH_BYTES_MAX, "room is bounded by the largest transfer");
        match io.changes_state {
            false => executed,
            true => self.store_state().and(executed),
        }
    }

    pub(crate) fn namespace_io(&mut self, nsid: u32) -> IoContext<'_> {
        IoContext {
            nsid,
            page_bytes: self.page_bytes(),
            namespace: self.state.namespaces.get_mut(nsid),
            device: &mut self.device,
            media: &mut self.media,
            smart: &mut self.state.smart,
            sanitize: &mut self.state.sanitize,
            fdp: &mut self.state.fdp,
            units: &mut self.fdp.units,
            clock: &mut self.clock,
            scratch: &mut self.scratch,
            is_read_only: self.faults.is_read_only(),
            changes_state: false,
        }
    }

    /// Direction in which a command's data may move directly between host and storage.
    #[inline]
    pub(crate) fn straight_direction(&self, id: u16, command: &IoCommand) -> Option<TransferDirection> {
        let direction = match command.operation {
            NvmOperation::Read(_) => TransferDirection::ToHost,
            NvmOperation::Write { .. } => TransferDirection::ToController,
            _ => return None,
        };
        let namespace = self.state.namespaces.active(id, command.nsid).ok()?;
        (namespace.metadata_bytes() == 0).then_some(direction)
    }

    /// Prefetches memory for a command that will run soon. For a Read or Write, the memory that it
    /// accesses first arrives while earlier commands run. Prefetching has no effect on results, so
    /// only the range is checked.
    #[inline]
    pub fn prefetch_command(&self, entry: &SubmissionEntry) {
        let kind = CommandKind::from_opcode(entry.opcode);
        if kind == CommandKind::Other {
            return;
        }
        let Some(namespace) = self.state.namespaces.find(entry.nsid.get()) else {
            return;
        };
        let first = u64::from(entry.cdw11.get()) << 32 | u64::from(entry.cdw10.get());
        let count = u64::from(command::ReadWriteCdw12::from_bits(entry.cdw12.get()).nlb()) + 1;
        if !namespace.contains(first, count) {
            return;
        }
        let page_bytes = self.page_bytes();
        if let Some(piece) = namespace.locate(first, count, page_bytes).next() {
            // A write overwrites the data without reading it, and prefetching would make it slower.
            if kind == CommandKind::Read {
                self.media.prefetch(piece.offset, piece.bytes);
            }
            self.device.prefetch(std::iter::once(Lpn((piece.offset / page_bytes) as u32)));
        }
    }

    pub(crate) fn execute_io_straight(
        &mut self,
        id: u16,
        command: &IoCommand,
        data: StraightData<'_>,
    ) -> CommandResult {
        self.with_namespace(id, command.nsid, |io| match (command.operation, data) {
            (NvmOperation::Read(blocks), StraightData::ToHost(take)) => io.read_pieces(blocks, take),
            (NvmOperation::Write { blocks, force_unit_access, directive }, StraightData::FromHost(give)) => {
                io.write_pieces(blocks, directive, force_unit_access, give)
            }
            (operation, _) => panic!("{operation:?} transfers its data another way"),
        })
    }

    fn flush(&mut self, id: u16, nsid: u32) -> CommandResult {
        if nsid != NSID_ALL {
            self.state.namespaces.active(id, nsid)?;
        }
        Ok(Execution::after(true))
    }
}

impl IoContext<'_> {
    fn execute(&mut self, operation: NvmOperation, data: &mut Vec<u8>, progress: &mut IoProgress) -> CommandResult {
        match operation {
            NvmOperation::Read(blocks) => self.read(blocks, data),
            NvmOperation::Compare(blocks) => self.compare(blocks, data),
            NvmOperation::Verify(blocks) => self.verify_part(blocks, progress),
            NvmOperation::Write { blocks, force_unit_access, directive } => {
                self.write(blocks, directive, force_unit_access, data)
            }
            NvmOperation::WriteZeroes { blocks, deallocate, force_unit_access, directive } => {
                self.write_zeroes_part(blocks, directive, deallocate, force_unit_access, progress)
            }
            NvmOperation::WriteUncorrectable(blocks) => self.write_uncorrectable(blocks),
            NvmOperation::DatasetManagement { deallocate, .. } => self.manage_dataset_part(deallocate, data, progress),
            NvmOperation::Copy { destination, force_unit_access, directive, .. } => {
                let destination = ranges::CopyDestination { first: destination, directive, force_unit_access };
                self.copy(&destination, data)
            }
            NvmOperation::HandleStatus { bytes } => self.handle_status(bytes, data),
            NvmOperation::HandleUpdate { .. } => self.handle_update(data),
            NvmOperation::Nothing => Ok(Execution::DONE),
            NvmOperation::Flush => unreachable!("a Flush has no namespace context"),
        }
    }
}
