//! The road of a command: it is accepted once, its data moves, it is executed once, it completes once.
//!
//! ```text
//! entry -> accept: ready? known? parsed, measured -> Accepted -> execute -> admin or io -> Outcome
//!                                    |                  |
//!                                    v                  v  (bad data pointer, transfer error)
//!                                   fail --------------fail -> Reply, error log
//! ```
//!
//! Both transports go this way, each with commands of its own beside it: queues on PCI Express (`pcie`), Fabrics
//! commands over Fabrics. What depends on the drive's state is checked when the command is executed: other hosts may
//! have formatted or deleted the namespace while its data was on the way.

use std::ops::ControlFlow;
use std::sync::Arc;

use nvme_spec::command::{ReadWriteCdw12, SubmissionEntry};
use nvme_spec::feature::FeatureId;
use nvme_spec::{LogId, Status};
use ssd::Nanos;

use crate::completion::{Durability, Execution, Outcome, Reply};
use crate::error::{Failure, Parameter};
use crate::fault::{NEVER, Verdict};
use crate::io::{Progress, StraightData};
use crate::media::{Durable, Media};
use crate::setup::QUEUES_MAX;
use crate::subsystem::Subsystem;
use crate::traffic::CommandKind;
use crate::transfer::{Direction, Transfer};
use crate::{admin, io};

/// A command that was found to be one, with its fields in plain form: what is in its entry is not read again. It is
/// carried out by [`Subsystem::execute`] or refused by [`Subsystem::refuse`]; it is dropped only with the queue that it
/// came from.
#[derive(Debug)]
#[must_use = "a command completes exactly once"]
pub struct AcceptedCommand {
    controller: u16,
    queue: u16,
    entry: SubmissionEntry,
    command: Command,
    transfer: Transfer,
    /// How far a command of many parts is, and when the device is done with it.
    progress: Progress,
    done_at: Nanos,
    /// How much later it completes because a fault wants it; `None`: faults have not seen it yet.
    delay_ns: Option<Nanos>,
    /// When the first part of it was carried out.
    began: Option<Nanos>,
}

#[derive(Debug)]
enum Command {
    Admin(admin::Command),
    Io(io::Command),
}

impl AcceptedCommand {
    /// The data that it moves.
    pub fn transfer(&self) -> Transfer {
        self.transfer
    }

    /// The entry that it was made of.
    pub fn entry(&self) -> &SubmissionEntry {
        &self.entry
    }

    /// Whether it reads this log page.
    pub fn reads_log(&self, log: LogId) -> bool {
        matches!(&self.command, Command::Admin(admin::Command::GetLogPage(request)) if request.log == log)
    }

    /// Whether it asks for a number of queues.
    pub fn sets_number_of_queues(&self) -> bool {
        let feature = FeatureId::NumberOfQueues;
        matches!(&self.command, Command::Admin(admin::Command::SetFeatures(setting)) if setting.is_of(feature))
    }

    /// The number of queues cannot change while there are I/O queues (Base Specification, "Number of Queues").
    ///
    /// # Errors
    /// It is to.
    pub fn check_queues(&self, there_are: bool) -> Result<(), Failure> {
        if there_are && self.sets_number_of_queues() {
            let cause = "the number of queues cannot change while I/O queues exist";
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        }
        Ok(())
    }
}

impl Subsystem {
    /// Looks at a command that came in a queue of a controller; 0 is the admin queue.
    ///
    /// # Errors
    /// The command cannot be carried out; [`Subsystem::fail`] makes it a reply.
    pub fn accept(&self, id: u16, queue: u16, entry: &SubmissionEntry) -> Result<AcceptedCommand, Failure> {
        self.accept_parsed(id, queue, entry, None)
    }

    /// The same for an entry that was parsed already if it is a command of an I/O queue.
    ///
    /// # Errors
    /// As [`Subsystem::accept`].
    pub fn accept_parsed(
        &self,
        id: u16,
        queue: u16,
        entry: &SubmissionEntry,
        parsed: Option<io::Command>,
    ) -> Result<AcceptedCommand, Failure> {
        self.check_entry(id, entry)?;
        let command = match (queue, parsed) {
            (0, _) => Command::Admin(self.parse_admin(id, entry)?),
            (_, Some(command)) => {
                assert_eq!(command.nsid(), entry.nsid.get(), "it was parsed from this entry");
                Command::Io(command)
            }
            (_, None) => Command::Io(io::parse(entry)?),
        };
        Ok(AcceptedCommand {
            controller: id,
            queue,
            entry: *entry,
            transfer: self.transfer_of(id, &command)?,
            command,
            progress: Progress::default(),
            done_at: 0,
            delay_ns: None,
            began: None,
        })
    }

    /// What data a command moves, as things are now.
    fn transfer_of(&self, id: u16, command: &Command) -> Result<Transfer, Failure> {
        match command {
            Command::Admin(command) => Ok(command.transfer()),
            Command::Io(command) => self.io_transfer(id, command),
        }
    }

    /// Carries out a command. `data` is what it moves: the host's data, of the length that its [`Transfer`] says
    /// ([`Transfer::total_bytes`]: data, then separate metadata); or a buffer that the data for the host is put into.
    /// What is in `data` afterwards is for the host only if the transfer goes to it; its length is then what is to be
    /// sent, 0 if the command failed. The host's own data stays after a success, so that its buffer can be used again
    /// as it is.
    pub fn execute(&mut self, now: Nanos, mut accepted: AcceptedCommand, data: &mut Vec<u8>) -> Outcome {
        loop {
            match self.execute_part(now, accepted, data) {
                ControlFlow::Break(outcome) => return outcome,
                ControlFlow::Continue(rest) => accepted = rest,
            }
        }
    }

    /// Carries out a command as far as it may go while others wait: Verify, Dataset Management and Write Zeroes, whose
    /// work is not bounded by the data that they move, have parts. `data` is to be there for each. Between two parts
    /// others may change anything, so what a command needs is checked again. `Continue` has the rest of the command.
    pub fn execute_part(
        &mut self,
        now: Nanos,
        accepted: AcceptedCommand,
        data: &mut Vec<u8>,
    ) -> ControlFlow<Outcome, AcceptedCommand> {
        if accepted.transfer.direction == Direction::None {
            data.clear();
        }
        self.carry_out(now, accepted, data, |subsystem, accepted, data| {
            subsystem.check_data(accepted, data)?;
            match &accepted.command {
                Command::Admin(command) => subsystem.execute_admin(accepted.controller, command, data),
                Command::Io(command) => {
                    subsystem.execute_io(accepted.controller, command, data, &mut accepted.progress)
                }
            }
        })
    }

    /// Direction in which the data of a command can go straight between the host's memory and the storage, with
    /// [`Subsystem::execute_straight`]: of a Read or Write without metadata, where nothing goes wrong on purpose.
    #[inline]
    pub(crate) fn moves_straight(&self, accepted: &AcceptedCommand) -> Option<Direction> {
        match &accepted.command {
            Command::Io(command) if !self.faults.are_planned() => self.straight_direction(accepted.controller, command),
            _ => None,
        }
    }

    /// Carries out a command that [moves its data straight](Subsystem::moves_straight). Where a Write fails, some of
    /// the blocks may have been written.
    pub(crate) fn execute_straight(
        &mut self,
        now: Nanos,
        accepted: AcceptedCommand,
        data: StraightData<'_>,
    ) -> Outcome {
        self.carry_out_whole(
            now,
            accepted,
            &mut Vec::new(),
            |subsystem, accepted, _| match &accepted.command {
                Command::Io(command) => subsystem.execute_io_straight(accepted.controller, command, data),
                Command::Admin(command) => panic!("{command:?} is not of the I/O command set"),
            },
        )
    }

    /// Carries out a Get Log Page whose page the transport makes ([`AcceptedCommand::reads_log`]).
    ///
    /// # Panics
    /// It is another command.
    pub fn execute_with_page(
        &mut self,
        now: Nanos,
        accepted: AcceptedCommand,
        page: &[u8],
        data: &mut Vec<u8>,
    ) -> Outcome {
        self.carry_out_whole(now, accepted, data, |subsystem, accepted, data| {
            match &accepted.command {
                Command::Admin(admin::Command::GetLogPage(request)) => {
                    subsystem.give_log_page(accepted.controller, request, page, data)
                }
                other => panic!("{other:?} reads no log page"),
            }
        })
    }

    /// Carries out a command that has no parts.
    fn carry_out_whole(
        &mut self,
        now: Nanos,
        accepted: AcceptedCommand,
        data: &mut Vec<u8>,
        run: impl FnOnce(&mut Subsystem, &mut AcceptedCommand, &mut Vec<u8>) -> Result<Execution, Failure>,
    ) -> Outcome {
        match self.carry_out(now, accepted, data, run) {
            ControlFlow::Break(outcome) => outcome,
            ControlFlow::Continue(accepted) => panic!("{accepted:?} has no parts"),
        }
    }

    /// What is the same for every command: the controller is ready, time, events of the device, and one outcome.
    fn carry_out(
        &mut self,
        now: Nanos,
        mut accepted: AcceptedCommand,
        data: &mut Vec<u8>,
        run: impl FnOnce(&mut Subsystem, &mut AcceptedCommand, &mut Vec<u8>) -> Result<Execution, Failure>,
    ) -> ControlFlow<Outcome, AcceptedCommand> {
        self.clock.advance(now);
        self.clock.begin_command(accepted.done_at);
        let began = *accepted.began.get_or_insert(self.clock.now());
        assert!(began <= self.clock.now(), "the parts of a command follow each other");
        let mut result = self.check_ready(accepted.controller);
        if self.faults.are_planned() && result.is_ok() {
            result = self.meet(&mut accepted, data)?;
        }
        let result = result.and_then(|()| run(self, &mut accepted, data));
        let is_part = matches!(result, Ok(Execution::Part));
        if !is_part && accepted.queue != 0 && self.clock.done_at() == self.clock.now() {
            let done = self.device.command(self.clock.now());
            self.clock.note_done(done);
        }
        if !self.device.sink().is_empty() {
            self.note_device_events();
        }
        assert!(self.device.sink().is_empty(), "every event of the device was noted");
        let delay_ns = accepted.delay_ns.unwrap_or(0);
        let due = self.clock.done_at().saturating_add(delay_ns);
        ControlFlow::Break(match result {
            Ok(Execution::Done { result, durability }) => {
                let durable = self.durable_before(durability);
                // Where nothing is to be made durable, no transport has to say when the command was done.
                if durable.is_none() {
                    self.note_latency(accepted.controller, accepted.queue, &accepted.entry, began, due);
                }
                Outcome {
                    reply: Some(Reply::success(result)),
                    due,
                    durable,
                }
            }
            Ok(Execution::Later) => Outcome::silent(self.clock.now()),
            Ok(Execution::Part) => {
                accepted.done_at = self.clock.done_at();
                return ControlFlow::Continue(accepted);
            }
            Err(failure) => {
                data.clear();
                Outcome::at(self.clock.now() + delay_ns, self.refuse(accepted, failure))
            }
        })
    }

    /// How to make durable what has to be so before a command completes, if there is a volatile write cache.
    #[inline]
    fn durable_before(&self, durability: Durability) -> Option<Arc<dyn Durable>> {
        match durability {
            Durability::Nothing => None,
            Durability::Uncached if self.write_cache_enabled() => None,
            Durability::Uncached | Durability::Everything => self.media.durable(),
        }
    }

    /// Applies the fault plan to a command. It is carried out, or fails; `Break`: it does not complete.
    fn meet(
        &mut self,
        accepted: &mut AcceptedCommand,
        data: &mut Vec<u8>,
    ) -> ControlFlow<Outcome, Result<(), Failure>> {
        // Nobody has anything to say where there is no power.
        if self.faults.has_lost_power() {
            return ControlFlow::Break(Outcome::silent(NEVER));
        }
        let Command::Io(command) = &accepted.command else {
            return ControlFlow::Continue(Ok(()));
        };
        if accepted.delay_ns.is_some() {
            return ControlFlow::Continue(Ok(()));
        }
        let decision = self.meet_fault(command, accepted.entry.opcode, data);
        accepted.delay_ns = Some(decision.delay_ns);
        match decision.verdict {
            Verdict::CarryOut => ControlFlow::Continue(Ok(())),
            Verdict::Fail { status, fault, lba } => ControlFlow::Continue(Err(self.fault_failure(status, &fault, lba))),
            Verdict::Stuck => {
                data.clear();
                ControlFlow::Break(Outcome::at(NEVER, Reply::of(Status::ABORT_REQUESTED)))
            }
            Verdict::PowerLoss => ControlFlow::Break(Outcome::silent(NEVER)),
        }
    }

    /// The reply to a command that was accepted and fails all the same: also for what the transport finds (data
    /// pointers, transfer errors).
    pub fn refuse(&mut self, accepted: AcceptedCommand, failure: Failure) -> Reply {
        self.fail(accepted.controller, accepted.queue, &accepted.entry, failure)
    }

    /// The reply to a command that fails, with its entry in the error log.
    pub fn fail(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, failure: Failure) -> Reply {
        self.state.smart.error_log_entries += 1;
        let count = self.state.smart.error_log_entries;
        self.controllers.get_mut(id).errors.note(count, queue, entry, &failure);
        // The storage may be what failed.
        self.note_health();
        Reply::failed(&failure)
    }

    /// Counts a command of a controller that was carried out at `began` and may complete at `at`, and tells the latency
    /// monitor of it. Whoever makes a command's data durable says so when that is done; all others are known here.
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

    /// Counts an I/O command that took so long; of one that is for all namespaces, or whose namespace is gone since, only
    /// that.
    #[inline]
    fn count_command(&mut self, id: u16, entry: &SubmissionEntry, latency_ns: Nanos) {
        let kind = CommandKind::of(entry.opcode);
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
        self.controllers
            .get_mut(id)
            .traffic
            .note(nsid, kind, 1, bytes, latency_ns);
    }

    /// Counts how many commands of an I/O queue are outstanding, when some of them are taken.
    #[inline]
    pub fn note_queue_depth(&mut self, id: u16, queue: u16, commands: u64) {
        let most = self.config.io_queues_max.max(QUEUES_MAX);
        assert!(
            queue > 0 && queue <= most,
            "queue {queue} of controller {id} is none of its I/O queues"
        );
        self.controllers.get_mut(id).traffic.note_depth(queue, commands);
    }

    /// The reply to a command whose data could not be made durable.
    pub fn failed_to_sync(&mut self, id: u16, queue: u16, entry: &SubmissionEntry, error: &std::io::Error) -> Reply {
        self.state.smart.media_errors += 1;
        let failure = Failure::new(
            Status::WRITE_FAULT,
            format!("the data could not be made durable: {error}"),
        );
        self.fail(id, queue, entry, failure)
    }

    fn check_ready(&self, id: u16) -> Result<(), Failure> {
        if self.controllers.get(id).is_ready() {
            return Ok(());
        }
        let cause = "the controller is not enabled";
        Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause))
    }

    /// What is wrong with any command, whatever it is.
    pub(crate) fn check_entry(&self, id: u16, entry: &SubmissionEntry) -> Result<(), Failure> {
        self.check_ready(id)?;
        if entry.flags.fuse() != 0 {
            let cause = "fused operations are not supported";
            return Err(Failure::invalid_field(Parameter::dword(0, 8), cause));
        }
        Ok(())
    }

    /// The data that came is the data that the command takes, also if the namespace has another format since.
    fn check_data(&self, accepted: &AcceptedCommand, data: &[u8]) -> Result<(), Failure> {
        let expected = accepted.transfer;
        if expected.direction != Direction::ToController {
            return Ok(());
        }
        let moves = self.transfer_of(accepted.controller, &accepted.command)?;
        if moves == expected && data.len() == expected.total_bytes() {
            return Ok(());
        }
        let cause = format!(
            "the command moves {} bytes, its data has {}",
            moves.total_bytes(),
            data.len()
        );
        Err(Failure::new(Status::DATA_TRANSFER_ERROR, cause)
            .at(Parameter::DATA_POINTER)
            .retryable())
    }
}
