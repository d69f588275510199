//! I/O commands: parsed once, then executed on the device (placement, counters) and on the media (bytes).
//!
//! `parse` makes a [`Command`] of a submission queue entry; whatever is 0-based or packed ends there, and executors see
//! only values that make sense by themselves. What depends on the namespace (range, format, protection) is checked at
//! execution, because a namespace may change while a command's data is on its way.

mod metadata;
pub(crate) mod ranges;
mod read_write;
pub(crate) mod together;

use nvme_spec::command::{self, SubmissionEntry};
use nvme_spec::{IoOpcode, NSID_ALL, Status};
use prefetch::Room;
use ssd::{Lpn, Placement};

use crate::completion::{Execution, Success};
use crate::error::{Failure, Parameter};
use crate::fdp::WriteDirective;
use crate::media::{Media, MediaError};
use crate::subsystem::Subsystem;
use crate::traffic::CommandKind;
use crate::transfer::{Direction, Transfer, check_transfer_bytes};

/// A range of logical blocks of the command's namespace; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub first: u64,
    pub count: u64,
}

/// How far a command of many parts is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Logical blocks that are done.
    pub blocks_done: u64,
    /// Where its data goes, which is decided once.
    pub placement: Option<Placement>,
}

/// An I/O command of a namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    nsid: u32,
    operation: Operation,
}

/// What an I/O command does, with its fields in plain form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Flush,
    Read(Blocks),
    Write {
        blocks: Blocks,
        force_unit_access: bool,
        directive: WriteDirective,
    },
    Compare(Blocks),
    Verify(Blocks),
    WriteZeroes {
        blocks: Blocks,
        deallocate: bool,
        force_unit_access: bool,
        directive: WriteDirective,
    },
    WriteUncorrectable(Blocks),
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
    /// Reclaim unit handle status; `bytes` is the room that the host has for it.
    HandleStatus {
        bytes: u64,
    },
    /// Reclaim unit handle update.
    HandleUpdate {
        identifiers: u64,
    },
    /// Management operation 0 of I/O Management Send or Receive.
    Nothing,
}

impl Command {
    /// Its namespace.
    pub(crate) fn nsid(&self) -> u32 {
        self.nsid
    }

    /// The logical blocks that it touches, those of Copy's sources too.
    pub(crate) fn ranges(&self, data: &[u8]) -> Vec<Blocks> {
        match self.operation {
            Operation::Read(blocks)
            | Operation::Compare(blocks)
            | Operation::Verify(blocks)
            | Operation::WriteUncorrectable(blocks)
            | Operation::Write { blocks, .. }
            | Operation::WriteZeroes { blocks, .. } => vec![blocks],
            Operation::DatasetManagement { .. } => ranges::of_dataset(data),
            Operation::Copy { destination, .. } => ranges::of_copy(destination, data),
            Operation::Flush | Operation::HandleStatus { .. } | Operation::HandleUpdate { .. } | Operation::Nothing => {
                Vec::new()
            }
        }
    }
}

/// Makes a command of an entry. PRINFO is not looked at: it means nothing in a namespace without protection
/// information, and fio's passthrough engine sets PRACT always.
pub(crate) fn parse(entry: &SubmissionEntry) -> Result<Command, Failure> {
    Ok(Command {
        nsid: entry.nsid.get(),
        operation: parse_operation(entry)?,
    })
}

fn parse_operation(entry: &SubmissionEntry) -> Result<Operation, Failure> {
    let unknown = || Failure::unknown_opcode(entry.opcode, "I/O");
    let (cdw10, cdw11) = (entry.cdw10.get(), entry.cdw11.get());
    let cdw12 = command::ReadWriteCdw12::from_bits(entry.cdw12.get());
    let blocks = Blocks {
        first: u64::from(cdw11) << 32 | u64::from(cdw10),
        count: u64::from(cdw12.nlb()) + 1,
    };
    let specific = (entry.cdw13.get() >> 16) as u16;
    Ok(match IoOpcode::from_u8(entry.opcode).ok_or_else(unknown)? {
        IoOpcode::Flush => Operation::Flush,
        IoOpcode::Read => Operation::Read(blocks),
        IoOpcode::Compare => Operation::Compare(blocks),
        IoOpcode::Verify => Operation::Verify(blocks),
        IoOpcode::Write => Operation::Write {
            blocks,
            force_unit_access: cdw12.fua(),
            directive: WriteDirective::parse(cdw12.dtype(), specific)?,
        },
        IoOpcode::WriteZeroes => {
            let dword12 = command::WriteZeroesCdw12::from_bits(entry.cdw12.get());
            Operation::WriteZeroes {
                blocks,
                deallocate: dword12.deac(),
                force_unit_access: cdw12.fua(),
                directive: WriteDirective::parse(cdw12.dtype(), specific)?,
            }
        }
        IoOpcode::WriteUncorrectable => Operation::WriteUncorrectable(blocks),
        IoOpcode::DatasetManagement => Operation::DatasetManagement {
            ranges: u64::from(cdw10 & 0xff) + 1,
            deallocate: command::DatasetManagementCdw11::from_bits(cdw11).ad(),
        },
        IoOpcode::Copy => {
            let dword12 = command::CopyCdw12::from_bits(entry.cdw12.get());
            Operation::Copy {
                destination: blocks.first,
                ranges: u64::from(dword12.nr()) + 1,
                descriptor_format: dword12.desfmt(),
                force_unit_access: dword12.fua(),
                directive: WriteDirective::parse(dword12.dtype(), specific)?,
            }
        }
        IoOpcode::IoManagementReceive => match cdw10 & 0xff {
            0 => Operation::Nothing,
            1 => Operation::HandleStatus {
                bytes: (u64::from(cdw11) + 1) * 4,
            },
            operation => return Err(unknown_management_operation(operation)),
        },
        IoOpcode::IoManagementSend => match cdw10 & 0xff {
            0 => Operation::Nothing,
            1 => Operation::HandleUpdate {
                identifiers: u64::from(cdw10 >> 16) + 1,
            },
            operation => return Err(unknown_management_operation(operation)),
        },
        _ => return Err(unknown()),
    })
}

/// Refuses more data than a command may move.
fn limited(bytes: u64) -> Result<u64, Failure> {
    check_transfer_bytes(bytes, Parameter::dword(12, 0))
}

/// The storage failed under a command. What is damaged is so the next time, too.
fn media_failure(media_errors: &mut u64, status: Status, error: &MediaError) -> Failure {
    *media_errors += 1;
    let failure = Failure::new(status, error.to_string());
    match error.is_damage() {
        true => failure,
        false => failure.retryable(),
    }
}

/// The storage could not be read for a command.
fn unreadable(media_errors: &mut u64, error: &MediaError) -> Failure {
    media_failure(media_errors, Status::UNRECOVERED_READ_ERROR, error)
}

fn unknown_management_operation(operation: u32) -> Failure {
    let cause = format!("management operation {operation:#x} is not supported");
    Failure::invalid_field(Parameter::dword(10, 0), cause)
}

impl Subsystem {
    /// What data a command moves, with the format that the namespace has now.
    pub(crate) fn io_transfer(&self, id: u16, command: &Command) -> Result<Transfer, Failure> {
        let nsid = command.nsid;
        Ok(match command.operation {
            Operation::Read(blocks) => self.block_transfer(id, nsid, blocks, Transfer::to_host)?,
            Operation::Write { blocks, .. } | Operation::Compare(blocks) => {
                self.block_transfer(id, nsid, blocks, Transfer::to_controller)?
            }
            Operation::DatasetManagement { ranges, .. } => Transfer::to_controller(ranges * 16),
            Operation::Copy {
                ranges,
                descriptor_format,
                ..
            } => Transfer::to_controller(ranges * ranges::source_range_bytes(descriptor_format)?),
            Operation::HandleStatus { bytes } => {
                let bytes = bytes.min(self.handle_status_bytes(id, nsid)?);
                Transfer::to_host(bytes)
            }
            Operation::HandleUpdate { identifiers } => Transfer::to_controller(limited(identifiers * 2)?),
            Operation::Flush
            | Operation::Verify(_)
            | Operation::WriteZeroes { .. }
            | Operation::WriteUncorrectable(_)
            | Operation::Nothing => Transfer::NONE,
        })
    }

    /// Carries out an I/O command, or a part of one that has parts: `progress` is how far the parts before have come,
    /// and this one adds to it. Data of the host has the length that the command says.
    pub(crate) fn execute_io(
        &mut self,
        id: u16,
        command: &Command,
        data: &mut Vec<u8>,
        progress: &mut Progress,
    ) -> Result<Execution, Failure> {
        let &Command { nsid, operation } = command;
        let whole = match operation {
            Operation::Verify(blocks) => {
                self.check_usable(id, nsid)?;
                self.verify_part(nsid, blocks, &mut progress.blocks_done)?
            }
            Operation::DatasetManagement { deallocate, .. } => {
                self.check_usable(id, nsid)?;
                self.manage_dataset_part(nsid, deallocate, data, &mut progress.blocks_done)?
            }
            Operation::WriteZeroes {
                blocks,
                deallocate,
                force_unit_access,
                directive,
            } => {
                self.check_usable(id, nsid)?;
                let whole = self.write_zeroes_part(nsid, blocks, directive, deallocate, progress)?;
                return Ok(match whole {
                    true => Execution::Done(Success::after(force_unit_access || !self.write_cache_enabled())),
                    false => Execution::Part,
                });
            }
            _ => return self.execute_at_once(id, command, data).map(Execution::Done),
        };
        Ok(if whole {
            Execution::Done(Success::DONE)
        } else {
            Execution::Part
        })
    }

    /// Refuses a namespace that the controller has not, or that is being sanitized.
    fn check_usable(&self, id: u16, nsid: u32) -> Result<(), Failure> {
        self.check_no_sanitize()?;
        self.active_namespace(id, nsid).map(|_| ())
    }

    /// The I/O commands that have no parts.
    fn execute_at_once(&mut self, id: u16, command: &Command, data: &mut Vec<u8>) -> Result<Success, Failure> {
        let &Command { nsid, operation } = command;
        // Flush is the one I/O command that a sanitize operation lets through (Base Specification, "Sanitize
        // Operations").
        if operation == Operation::Flush {
            return self.flush(id, nsid);
        }
        self.check_usable(id, nsid)?;
        match operation {
            Operation::Flush => unreachable!("handled above: it takes all namespaces too"),
            Operation::Verify(_) | Operation::DatasetManagement { .. } | Operation::WriteZeroes { .. } => {
                unreachable!("they have parts")
            }
            Operation::Read(blocks) => self.read(nsid, blocks, data),
            Operation::Compare(blocks) => self.compare(nsid, blocks, data),
            Operation::Write {
                blocks,
                force_unit_access,
                directive,
            } => self.write(nsid, blocks, directive, force_unit_access, data),
            Operation::WriteUncorrectable(blocks) => self.write_uncorrectable(nsid, blocks),
            Operation::Copy {
                destination,
                force_unit_access,
                directive,
                ..
            } => {
                let destination = ranges::Destination {
                    first: destination,
                    directive,
                    force_unit_access,
                };
                self.copy(nsid, &destination, data)
            }
            Operation::HandleStatus { bytes } => self.handle_status(nsid, bytes, data),
            Operation::HandleUpdate { .. } => self.handle_update(nsid, data),
            Operation::Nothing => Ok(Success::DONE),
        }
    }

    /// Which way a command's data may go straight between the host and the storage.
    #[inline]
    pub(crate) fn straight_direction(&self, id: u16, command: &Command) -> Option<Direction> {
        let direction = match command.operation {
            Operation::Read(_) => Direction::ToHost,
            Operation::Write { .. } => Direction::ToController,
            _ => return None,
        };
        let namespace = self.active_namespace(id, command.nsid).ok()?;
        (namespace.metadata_bytes() == 0).then_some(direction)
    }

    /// A command will be carried out soon. If it is a Read or Write, what it touches first is asked for, so that memory that is waited for
    /// comes while others are carried out. Nothing depends on it, so nothing is checked but that there is such a place.
    #[inline]
    pub fn expect(&self, entry: &SubmissionEntry) {
        let kind = CommandKind::of(entry.opcode);
        if kind == CommandKind::Other {
            return;
        }
        let place = (entry.nsid.get() as usize).wrapping_sub(1);
        let Some(Some(namespace)) = self.state.namespaces.get(place) else {
            return;
        };
        let first = u64::from(entry.cdw11.get()) << 32 | u64::from(entry.cdw10.get());
        let count = u64::from(command::ReadWriteCdw12::from_bits(entry.cdw12.get()).nlb()) + 1;
        if !namespace.contains(first, count) {
            return;
        }
        let page_bytes = self.page_bytes();
        if let Some(piece) = namespace.locate(first, count, page_bytes).next() {
            // What is written anew is not waited for, and costs more if it was read before.
            if kind == CommandKind::Read {
                self.media.expect(piece.offset, piece.bytes);
            }
            let first = Lpn((piece.offset / page_bytes) as u32);
            self.device.expect(std::iter::once(first));
        }
    }

    /// A Read whose data is given to `take`.
    pub(crate) fn read_to(
        &mut self,
        id: u16,
        command: &Command,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<Success, Failure> {
        let Operation::Read(blocks) = command.operation else {
            panic!("{command:?} reads nothing");
        };
        self.check_usable(id, command.nsid)?;
        self.read_pieces(command.nsid, blocks, take)
    }

    /// A Write whose data `give` has.
    pub(crate) fn write_through(
        &mut self,
        id: u16,
        command: &Command,
        give: &mut dyn FnMut(Room<'_>) -> Result<(), Failure>,
    ) -> Result<Success, Failure> {
        let Operation::Write {
            blocks,
            force_unit_access,
            directive,
        } = command.operation
        else {
            panic!("{command:?} writes nothing");
        };
        self.check_usable(id, command.nsid)?;
        self.write_pieces(command.nsid, blocks, directive, force_unit_access, give)
    }

    /// Flush of one namespace, or of all that the controller has.
    fn flush(&mut self, id: u16, nsid: u32) -> Result<Success, Failure> {
        if nsid != NSID_ALL {
            self.active_namespace(id, nsid)?;
        }
        Ok(Success::after(true))
    }

    /// Refuses a range that reaches beyond the namespace.
    pub(super) fn check_range(&self, nsid: u32, blocks: Blocks) -> Result<(), Failure> {
        let namespace = self.namespace(nsid);
        if !namespace.contains(blocks.first, blocks.count) {
            let cause = format!(
                "{} logical blocks from {} on reach beyond the namespace's {}",
                blocks.count, blocks.first, namespace.blocks
            );
            let at = Parameter::dword(10, 0);
            return Err(Failure::new(Status::LBA_OUT_OF_RANGE, cause).at(at).lba(blocks.first));
        }
        Ok(())
    }

    /// Refuses a range that cannot be written.
    fn check_writable(&self, nsid: u32, blocks: Blocks) -> Result<(), Failure> {
        self.check_range(nsid, blocks)?;
        if self.is_read_only() {
            let cause = "all media is read-only";
            return Err(Failure::new(Status::WRITE_TO_READ_ONLY_RANGE, cause).lba(blocks.first));
        }
        if self.namespace(nsid).write_protected {
            let cause = format!("namespace {nsid} is write protected");
            return Err(Failure::new(Status::NAMESPACE_IS_WRITE_PROTECTED, cause));
        }
        Ok(())
    }

    /// Refuses a range with a block that Write Uncorrectable made unreadable.
    fn check_readable(&self, nsid: u32, blocks: Blocks) -> Result<(), Failure> {
        self.check_range(nsid, blocks)?;
        let uncorrectable = &self.namespace(nsid).uncorrectable;
        if uncorrectable.is_empty() {
            return Ok(());
        }
        match uncorrectable.first_in(blocks.first, blocks.count) {
            None => Ok(()),
            Some(lba) => {
                let cause = format!("logical block {lba} was marked by Write Uncorrectable");
                Err(Failure::new(Status::UNRECOVERED_READ_ERROR, cause).lba(lba))
            }
        }
    }
}
