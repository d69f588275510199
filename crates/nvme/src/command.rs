//! Command processing, from acceptance to exactly one completion.
//!
//! ```text
//! entry -> accept (valid?) -> AcceptedCommand -> execute (admin or io) -> PendingReply
//!            |                       |
//!            v                       v  (bad data pointer, transfer error)
//!           fail -------------------fail -> Reply, error log
//! ```
//!
//! Both transports use these functions. Queue commands of PCI Express (`pcie`) and Fabrics commands
//! are processed separately. Checks that depend on the drive's state run at execution. Another host
//! may have formatted or deleted the namespace during the data transfer.

use std::ops::ControlFlow;
use std::sync::Arc;

use nvme_spec::command::{ReadWriteCdw12, SubmissionEntry};
use nvme_spec::feature::FeatureId;
use nvme_spec::{LogId, Status};
use ssd::Nanos;

use crate::completion::{CommandResult, Durability, Execution, PendingReply, Reply};
use crate::error::{Failure, Parameter};
use crate::fault::{CommandFate, NEVER};
use crate::io::{IoProgress, StraightData};
use crate::media::{FlushHandle, Media};
use crate::setup::QUEUES_MAX;
use crate::subsystem::Subsystem;
use crate::traffic::CommandKind;
use crate::transfer::{Transfer, TransferDirection};
use crate::{admin, io};

/// A valid command with decoded fields. Nothing reads the fields from its entry again.
/// [`Subsystem::execute`] carries the command out, or [`Subsystem::refuse`] fails it. Only the end
/// of its queue may drop it.
#[derive(Debug)]
#[must_use = "a command completes exactly once"]
pub struct AcceptedCommand {
    controller: u16,
    queue: u16,
    entry: SubmissionEntry,
    command: ParsedCommand,
    transfer: Transfer,
    /// Progress of a command with several parts, and the time at which the device finishes them.
    progress: IoProgress,
    done_at: Nanos,
    /// Delay that a fault adds to the completion. `None` until the faults were applied.
    delay_ns: Option<Nanos>,
    /// Time at which the first part was carried out.
    began: Option<Nanos>,
}

#[derive(Debug)]
enum ParsedCommand {
    Admin(admin::AdminCommand),
    Io(io::IoCommand),
}

impl AcceptedCommand {
    /// Data that the command moves.
    pub fn transfer(&self) -> Transfer {
        self.transfer
    }

    /// Submission queue entry of the command.
    pub fn entry(&self) -> &SubmissionEntry {
        &self.entry
    }

    /// True if the command reads this log page.
    pub fn reads_log(&self, log: LogId) -> bool {
        matches!(&self.command, ParsedCommand::Admin(admin::AdminCommand::GetLogPage(request)) if request.log == log)
    }

    /// True for Set Features with Number of Queues.
    pub fn sets_number_of_queues(&self) -> bool {
        let feature = FeatureId::NumberOfQueues;
        matches!(&self.command, ParsedCommand::Admin(admin::AdminCommand::SetFeatures(setting)) if setting.is_of(feature))
    }

    /// Refuses to change the number of queues while I/O queues exist (Base Specification, "Number
    /// of Queues").
    ///
    /// # Errors
    /// I/O queues exist (`has_io_queues`), and the command sets the number of queues.
    pub fn check_queues(&self, has_io_queues: bool) -> Result<(), Failure> {
        if has_io_queues && self.sets_number_of_queues() {
            let cause = "the number of queues cannot change while I/O queues exist";
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        }
        Ok(())
    }
}

impl Subsystem {
    /// Checks and parses a command of a controller's queue. Queue 0 is the admin queue.
    ///
    /// # Errors
    /// The command is invalid. [`Subsystem::fail`] converts the failure into a reply.
    pub fn accept(&self, id: u16, queue: u16, entry: &SubmissionEntry) -> Result<AcceptedCommand, Failure> {
        self.accept_parsed(id, queue, entry, None)
    }

    /// Like [`Subsystem::accept`], for an entry whose I/O command is already parsed.
    ///
    /// # Errors
    /// The same as [`Subsystem::accept`].
    pub fn accept_parsed(
        &self,
        id: u16,
        queue: u16,
        entry: &SubmissionEntry,
        parsed: Option<io::IoCommand>,
    ) -> Result<AcceptedCommand, Failure> {
        self.check_entry(id, entry)?;
        let command = match (queue, parsed) {
            (0, _) => ParsedCommand::Admin(self.parse_admin(id, entry)?),
            (_, Some(command)) => {
                assert_eq!(command.nsid(), entry.nsid.get(), "it was parsed from this entry");
                ParsedCommand::Io(command)
            }
            (_, None) => ParsedCommand::Io(io::parse(entry)?),
        };
        Ok(AcceptedCommand {
            controller: id,
            queue,
            entry: *entry,
            transfer: self.transfer_of(id, &command)?,
            command,
            progress: IoProgress::default(),
            done_at: 0,
            delay_ns: None,
            began: None,
        })
    }

    fn transfer_of(&self, id: u16, command: &ParsedCommand) -> Result<Transfer, Failure> {
        match command {
            ParsedCommand::Admin(command) => Ok(command.transfer()),
            ParsedCommand::Io(command) => self.io_transfer(id, command),
        }
    }

    /// Carries out a command. For a transfer to the controller, `data` holds the host's data in the
    /// length of the [`Transfer`]. [`Transfer::total_bytes`] counts the data and then the separate
    /// metadata. For a transfer to the host, `data` is the output buffer.
    ///
    /// After a transfer to the host, `data` has the bytes to send, none if the command failed. The
    /// host's own data stays in the buffer after a success, so that the buffer can be reused.
    pub fn execute(&mut self, now: Nanos, mut accepted: AcceptedCommand, data: &mut Vec<u8>) -> PendingReply {
        loop {
            match self.execute_part(now, accepted, data) {
                ControlFlow::Break(outcome) => return outcome,
                ControlFlow::Continue(rest) => accepted = rest,
            }
        }
    }

    /// Carries out one part of a command, so that other commands can run between two parts. Verify,
    /// Dataset Management and Write Zeroes have parts, because their data transfer does not bound
    /// their work. `data` must be present for each part. The state may change between two parts, so
    /// each part repeats the checks. `Continue` returns the rest of the command.
    pub fn execute_part(
        &mut self,
        now: Nanos,
        accepted: AcceptedCommand,
        data: &mut Vec<u8>,
    ) -> ControlFlow<PendingReply, AcceptedCommand> {
        if accepted.transfer.direction == TransferDirection::None {
            data.clear();
        }
        self.run_command(now, accepted, data, |subsystem, accepted, data| {
            subsystem.check_data(accepted, data)?;
            match &accepted.command {
                ParsedCommand::Admin(command) => subsystem.execute_admin(accepted.controller, command, data),
                ParsedCommand::Io(command) => {
                    subsystem.execute_io(accepted.controller, command, data, &mut accepted.progress)
                }
            }
        })
    }

    /// Direction of a transfer that needs no intermediate buffer between host memory and storage.
    /// See [`Subsystem::execute_straight`]. Only reads and writes without metadata qualify, and
    /// only without a fault plan.
    #[inline]
    pub(crate) fn moves_straight(&self, accepted: &AcceptedCommand) -> Option<TransferDirection> {
        match &accepted.command {
            ParsedCommand::Io(command) if !self.faults.are_planned() => {
                self.straight_direction(accepted.controller, command)
            }
            _ => None,
        }
    }

    /// Carries out a command that [moves its data directly](Subsystem::moves_straight). A failed
    /// Write may have written some of its blocks.
    pub(crate) fn execute_straight(
        &mut self,
        now: Nanos,
        accepted: AcceptedCommand,
        data: StraightData<'_>,
    ) -> PendingReply {
        self.carry_out_whole(now, accepted, &mut Vec::new(), |subsystem, accepted, _| match &accepted.command {
            ParsedCommand::Io(command) => subsystem.execute_io_straight(accepted.controller, command, data),
            ParsedCommand::Admin(command) => panic!("{command:?} is not an I/O command"),
        })
    }

    /// Carries out a Get Log Page whose page the transport builds ([`AcceptedCommand::reads_log`]).
    ///
    /// # Panics
    /// The command does not read a log page.
    pub fn execute_with_page(
        &mut self,
        now: Nanos,
        accepted: AcceptedCommand,
        page: &[u8],
        data: &mut Vec<u8>,
    ) -> PendingReply {
        self.carry_out_whole(now, accepted, data, |subsystem, accepted, data| match &accepted.command {
            ParsedCommand::Admin(admin::AdminCommand::GetLogPage(request)) => {
                subsystem.return_log_page(accepted.controller, request, page, data)
            }
            other => panic!("{other:?} does not read a log page"),
        })
    }

    fn carry_out_whole(
        &mut self,
        now: Nanos,
        accepted: AcceptedCommand,
        data: &mut Vec<u8>,
        run: impl FnOnce(&mut Subsystem, &mut AcceptedCommand, &mut Vec<u8>) -> CommandResult,
    ) -> PendingReply {
        match self.run_command(now, accepted, data, run) {
            ControlFlow::Break(outcome) => outcome,
            ControlFlow::Continue(accepted) => panic!("{accepted:?} has no parts"),
        }
    }

    /// Runs the steps that all commands share. Checks the controller, advances time, collects
    /// device events and returns one outcome.
    fn run_command(
        &mut self,
        now: Nanos,
        mut accepted: AcceptedCommand,
        data: &mut Vec<u8>,
        run: impl FnOnce(&mut Subsystem, &mut AcceptedCommand, &mut Vec<u8>) -> CommandResult,
    ) -> ControlFlow<PendingReply, AcceptedCommand> {
        self.clock.advance(now);
        self.clock.begin_command(accepted.done_at);
        let began = *accepted.began.get_or_insert(self.clock.now());
        assert!(began <= self.clock.now(), "the parts of a command follow each other");
        let mut result = self.check_ready(accepted.controller);
        if self.faults.are_planned() && result.is_ok() {
            result = self.apply_faults(&mut accepted, data)?;
        }
        let result = result.and_then(|()| run(self, &mut accepted, data));
        let is_part = matches!(result, Ok(Execution::Part));
        if !is_part && accepted.queue != 0 && self.clock.done_at() == self.clock.now() {
            self.clock.note_done(self.device.command(self.clock.now()));
        }
        if !self.device.sink().is_empty() {
            self.note_device_events();
        }
        assert!(self.device.sink().is_empty(), "every event of the device is processed");
        let delay_ns = accepted.delay_ns.unwrap_or(0);
        let due = self.clock.done_at().saturating_add(delay_ns);
        ControlFlow::Break(match result {
            Ok(Execution::Done { result, durability }) => {
                let durable = self.durable_before(durability);
                // Commands without a durability wait are counted here. The transport counts all
                // others.
                if durable.is_none() {
                    self.note_latency(accepted.controller, accepted.queue, &accepted.entry, began, due);
                }
                PendingReply { reply: Some(Reply::success(result)), due, durable }
            }
            Ok(Execution::Deferred) => PendingReply::silent(self.clock.now()),
            Ok(Execution::Part) => {
                accepted.done_at = self.clock.done_at();
                return ControlFlow::Continue(accepted);
            }
            Err(failure) => {
                data.clear();
                PendingReply::at(self.clock.now() + delay_ns, self.refuse(accepted, failure))
            }
        })
    }

    #[inline]
    fn durable_before(&self, durability: Durability) -> Option<Arc<dyn FlushHandle>> {
        match durability {
            Durability::Nothing => None,
            Durability::Uncached if self.write_cache_enabled() => None,
            Durability::Uncached | Durability::Everything => self.media.flush_handle(),
        }
    }

    /// Applies the fault plan to a command. The command runs, fails, or never completes (`Break`).
    fn apply_faults(
        &mut self,
        accepted: &mut AcceptedCommand,
        data: &mut Vec<u8>,
    ) -> ControlFlow<PendingReply, Result<(), Failure>> {
        // A drive without power completes no command.
        if self.faults.has_lost_power {
            return ControlFlow::Break(PendingReply::silent(NEVER));
        }
        let ParsedCommand::Io(command) = &accepted.command else {
            return ControlFlow::Continue(Ok(()));
        };
        if accepted.delay_ns.is_some() {
            return ControlFlow::Continue(Ok(()));
        }
        let decision = self.apply_io_faults(command, accepted.entry.opcode, data);
        accepted.delay_ns = Some(decision.delay_ns);
        match decision.verdict {
            CommandFate::CarryOut => ControlFlow::Continue(Ok(())),
            CommandFate::Fail { status, fault, lba } => {
                ControlFlow::Continue(Err(self.fault_failure(status, &fault, lba)))
            }
            CommandFate::NeverCompletes => {
                data.clear();
                ControlFlow::Break(PendingReply::at(NEVER, Reply::from_status(Status::ABORT_REQUESTED)))
            }
            CommandFate::PowerLoss => ControlFlow::Break(PendingReply::silent(NEVER)),
        }
    }

    /// Fails an accepted command and returns the reply. Transports call it for bad data pointers
    /// and transfer errors too.
    pub fn refuse(&mut self, accepted: AcceptedCommand, failure: Failure) -> Reply {
        self.fail(accepted.controller, accepted.queue, &accepted.entry, failure)
    }

    /// Returns the reply to a command that fails, and adds the command to the error log.
    pub fn fail(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, failure: Failure) -> Reply {
        self.state.smart.error_log_entries += 1;
        let count = self.state.smart.error_log_entries;
        self.controllers.get_mut(id).errors.note(count, queue, entry, &failure);
        // The failure may come from the storage.
        self.note_health();
        Reply::failed(&failure)
    }

    /// Counts a command that was carried out at `began` and may complete at `at`. The latency
    /// monitor counts it too. The transport calls this for commands whose data it makes durable.
    /// [`Subsystem::execute`] counts all others.
    #[inline]
    pub fn note_latency(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, began: Nanos, at: Nanos) {
        if queue == 0 {
            return;
        }
        let latency_ns = at.saturating_sub(began);
        self.count_command(id, entry, latency_ns);
        if self.state.latency_monitor.is_long(latency_ns) {
            let stamp = self.latency_stamp(at);
            self.state.latency_monitor.note(entry, latency_ns, at, stamp);
        }
    }

    /// Counts an I/O command and its latency. A command without an existing namespace counts only
    /// for the whole drive.
    #[inline]
    fn count_command(&mut self, id: u16, entry: &SubmissionEntry, latency_ns: Nanos) {
        let kind = CommandKind::from_opcode(entry.opcode);
        self.latencies[kind as usize].record(latency_ns, 1);
        let nsid = entry.nsid.get();
        let Some(namespace) = self.state.namespaces.find(nsid) else {
            return;
        };
        let blocks = u64::from(ReadWriteCdw12::from_bits(entry.cdw12.get()).nlb()) + 1;
        let bytes = match kind {
            CommandKind::Read | CommandKind::Write => blocks << namespace.block_bytes_log2(),
            CommandKind::Other => 0,
        };
        self.controllers.get_mut(id).traffic.note(nsid, kind, 1, bytes, latency_ns);
    }

    /// Records the number of outstanding commands of an I/O queue at a fetch.
    #[inline]
    pub fn note_queue_depth(&mut self, id: u16, queue: u16, commands: u64) {
        let most = self.config.io_queues_max.max(QUEUES_MAX);
        assert!(queue > 0 && queue <= most, "queue {queue} is not an I/O queue of controller {id}");
        self.controllers.get_mut(id).traffic.note_depth(queue, commands);
    }

    /// Fails a command whose data could not be made durable, and returns the reply.
    pub fn failed_to_sync(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, error: &std::io::Error) -> Reply {
        self.state.smart.media_errors += 1;
        let failure = Failure::new(Status::WRITE_FAULT, format!("the data could not be made durable ({error})"));
        self.fail(id, queue, entry, failure)
    }

    fn check_ready(&self, id: u16) -> Result<(), Failure> {
        if self.controllers.get(id).is_ready() {
            return Ok(());
        }
        Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, "the controller is not enabled"))
    }

    pub(crate) fn check_entry(&self, id: u16, entry: &SubmissionEntry) -> Result<(), Failure> {
        self.check_ready(id)?;
        if entry.flags.fuse() != 0 {
            return Err(Failure::invalid_field(Parameter::dword(0, 8), "fused operations are not supported"));
        }
        Ok(())
    }

    /// Checks that the data has the length that the command takes. The format may have changed
    /// since acceptance.
    fn check_data(&self, accepted: &AcceptedCommand, data: &[u8]) -> Result<(), Failure> {
        let expected = accepted.transfer;
        if expected.direction != TransferDirection::ToController {
            return Ok(());
        }
        let moves = self.transfer_of(accepted.controller, &accepted.command)?;
        if moves == expected && data.len() == expected.total_bytes() {
            return Ok(());
        }
        let cause = format!("the command transfers {} bytes, but its data has {}", moves.total_bytes(), data.len());
        Err(Failure::new(Status::DATA_TRANSFER_ERROR, cause).at(Parameter::DATA_POINTER).retryable())
    }
}
