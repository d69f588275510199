//! Objections to a command: all reasons for which the standard allows or requires it to fail.
//!
//! With several errors, the standard does not define which one the drive reports. A judgement is
//! therefore a set. A command without objections must succeed, and a command with objections must
//! fail with one of them.

mod admin;
mod io;

use super::model::{ALL, Model, NN, Namespace, Sanitize, status};
use super::operation::{Command, Format, GetLog, Kind, Range, SetFeature};
use super::storage::Fault;

/// A reason to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objection {
    pub status: u16,
    pub do_not_retry: bool,
}

/// Objections to a command. See the module documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Mandatory objections. The command must fail with one of these or of the optional ones.
    pub must: Vec<Objection>,
    /// Optional objections, for which the command may fail.
    pub may: Vec<Objection>,
}

impl Judgement {
    fn must(&mut self, status: u16) {
        self.must.push(Objection { status, do_not_retry: true });
    }

    fn must_for_now(&mut self, status: u16) {
        self.must.push(Objection { status, do_not_retry: false });
    }

    fn may(&mut self, status: u16) {
        self.may.push(Objection { status, do_not_retry: true });
    }

    fn must_if(&mut self, condition: bool, status: u16) {
        if condition {
            self.must(status);
        }
    }

    /// True if a failure is among the objections.
    pub fn allows(&self, objection: Objection) -> bool {
        self.must.contains(&objection) || self.may.contains(&objection)
    }
}

/// A submitted command.
#[derive(Clone, Debug)]
pub struct Submission {
    pub cid: u16,
    pub command: Command,
    /// Data that the host sends with the command.
    pub data: Vec<u8>,
    /// First tag of the blocks that a write stores.
    pub first_tag: u64,
    /// The data has metadata in the blocks.
    pub extended: bool,
    /// Error of the data pointer.
    pub pointer: Option<u16>,
    /// Errors related to queues on PCI Express. `None` if the controller has no queues.
    pub queues: Option<Vec<u16>>,
    /// Submission queue of the command. Without queues it is 1 for all I/O.
    pub queue: u16,
}

impl Model {
    /// Finds all objections to a command.
    pub fn judge(&self, controller: u16, submission: &Submission) -> Judgement {
        let mut found = Judgement::default();
        let command = &submission.command;
        if !self.controllers[&controller].ready {
            found.must(status::SEQUENCE_ERROR);
        }
        if let Command::Other { fuse, .. } = command {
            found.must_if(*fuse != 0, status::INVALID_FIELD);
            found.must(status::INVALID_OPCODE);
            return found;
        }
        if let Some(status) = submission.pointer {
            found.must(status);
        }
        match &submission.queues {
            None if matches!(command, Command::Queue(_)) => {
                found.must(status::INVALID_OPCODE);
                return found;
            }
            queues => queues.iter().flatten().for_each(|&status| found.must(status)),
        }
        if matches!(command, Command::Queue(_)) {
            return found;
        }
        let unknown = match self.controllers[&controller].kind {
            Kind::Discovery => !is_of_discovery(command),
            Kind::Pcie => *command == Command::KeepAlive,
            Kind::Fabrics => false,
        };
        if unknown {
            found.must(status::INVALID_OPCODE);
            return found;
        }
        if !is_allowed_during_sanitize(command) {
            match self.sanitize {
                Sanitize::Running { .. } => found.must_for_now(status::SANITIZE_IN_PROGRESS),
                Sanitize::Failed { exited: false, .. } => found.must(status::SANITIZE_FAILED),
                _ => {}
            }
        }
        if command.is_admin() {
            self.judge_admin(controller, submission, &mut found)
        } else {
            self.judge_io(controller, submission, &mut found)
        }
        self.judge_fault(controller, submission, &mut found);
        found
    }

    /// An identifier of a namespace that must be active.
    fn judge_active(&self, controller: u16, nsid: u32, found: &mut Judgement) -> Option<&Namespace> {
        if nsid == 0 || nsid > NN {
            found.must(status::INVALID_NAMESPACE);
            return None;
        }
        let namespace = self.active(controller, nsid);
        found.must_if(namespace.is_none(), status::INVALID_FIELD);
        namespace
    }

    /// An identifier of a namespace that must exist.
    fn judge_allocated(&self, nsid: u32, found: &mut Judgement) -> Option<&Namespace> {
        if nsid == 0 || nsid > NN {
            found.must(status::INVALID_NAMESPACE);
            return None;
        }
        let namespace = self.namespaces.get(&nsid);
        found.must_if(namespace.is_none(), status::INVALID_FIELD);
        namespace
    }

    // ------------------------------------------------------------------------------- faults --

    /// The storage will fail in an operation that the command needs.
    fn judge_fault(&self, controller: u16, submission: &Submission, found: &mut Judgement) {
        if self.fault == Some(Fault::Planned) && !submission.command.is_admin() {
            // The fault strikes before execution but after acceptance, so other errors may be
            // reported.
            let objection = Objection { status: status::INTERNAL_ERROR, do_not_retry: false };
            let is_fine = found.must.is_empty();
            let list = if is_fine { &mut found.must } else { &mut found.may };
            list.push(objection);
            return;
        }
        // Data that cannot be read cannot be compared either.
        let readable = |objection: &Objection| objection.status == status::COMPARE_FAILURE;
        let Some(fault) = self.fault.filter(|_| found.must.iter().all(readable)) else {
            return;
        };
        if fault == Fault::Read {
            found.must.clear();
        }
        match (fault, &submission.command) {
            (
                Fault::Read,
                Command::Read { .. } | Command::Compare { .. } | Command::Verify { .. } | Command::Copy { .. },
            ) => {
                found.must_for_now(status::UNRECOVERED_READ);
            }
            (Fault::Write, Command::Write { .. } | Command::Copy { .. }) => found.must_for_now(status::WRITE_FAULT),
            (Fault::Discard, command) if self.discards(controller, command) => found.must_for_now(status::WRITE_FAULT),
            (Fault::Keep, Command::Manage { nsid: ALL, .. }) if self.namespaces.is_empty() => {}
            (
                Fault::Keep,
                Command::Create(_) | Command::Manage { .. } | Command::Attach { .. } | Command::Format { .. },
            ) => found.must_for_now(status::INTERNAL_ERROR),
            (Fault::Keep, Command::Sanitize { action: 1, .. }) if !matches!(self.sanitize, Sanitize::Failed { .. }) => {
            }
            (Fault::Keep, Command::Sanitize { .. }) => found.must_for_now(status::INTERNAL_ERROR),
            // An unchanged value need not be stored again.
            (Fault::Keep, Command::SetFeature(_)) => {
                found.may.push(Objection { status: status::INTERNAL_ERROR, do_not_retry: false })
            }
            _ => {}
        }
    }

    /// True if the command discards bytes.
    fn discards(&self, controller: u16, command: &Command) -> bool {
        match command {
            Command::WriteZeroes { .. } => true,
            Command::DatasetManagement { nsid, ranges, deallocate: true } => {
                ranges.iter().any(|range| !self.whole_pages(*nsid, *range).is_empty())
            }
            Command::Manage { nsid: ALL, .. } => !self.namespaces.is_empty(),
            Command::Manage { .. } => true,
            Command::Format(Format { nsid, .. }) => !self.formatted(controller, *nsid).is_empty(),
            _ => false,
        }
    }

    /// Blocks of a range in pages that the range covers completely. Deallocation affects only these
    /// (NPDG).
    pub fn whole_pages(&self, nsid: u32, range: Range) -> std::ops::Range<u64> {
        let per_page = self.drive.page_bytes / self.namespaces[&nsid].block_bytes();
        let first = range.first.div_ceil(per_page) * per_page;
        let end = (range.first + u64::from(range.count)) / per_page * per_page;
        first..end.max(first)
    }
}

/// The tags of a range, if it lies in the namespace.
pub fn blocks_of(namespace: &Namespace, range: Range) -> Option<&[u64]> {
    let end = range.first.checked_add(range.count.into())?;
    let first = usize::try_from(range.first).ok()?;
    namespace.blocks.get(first..usize::try_from(end).ok()?)
}

fn is_of_discovery(command: &Command) -> bool {
    matches!(
        command,
        Command::GetLog(_)
            | Command::Identify { .. }
            | Command::Abort { .. }
            | Command::SetFeature(_)
            | Command::GetFeature(_)
            | Command::AsyncEvent
            | Command::KeepAlive
    )
}

/// Admin commands of the Base Specification, "Sanitize Operations - Admin Commands Allowed". The
/// only I/O command is Flush.
fn is_allowed_during_sanitize(command: &Command) -> bool {
    match command {
        Command::GetLog(GetLog { log, .. }) => {
            matches!(log, 0x00..=0x05 | 0x12 | 0x81)
                || !matches!(log, 0x06 | 0x09 | 0x0f | 0x20..=0x23 | 0xc0 | 0xc1 | 0xc3 | 0xc4)
        }
        // A device cannot be reconfigured during a sanitize operation.
        Command::SetFeature(SetFeature { feature: 0x1d, .. }) => false,
        Command::Flush { .. }
        | Command::Identify { .. }
        | Command::Abort { .. }
        | Command::SetFeature(_)
        | Command::GetFeature(_)
        | Command::AsyncEvent
        | Command::KeepAlive
        | Command::Sanitize { .. } => true,
        _ => false,
    }
}
