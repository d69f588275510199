//! Turns ready commands into completions. Checks data pointers, has the subsystem execute the
//! commands, and sends completions when they are due.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use nvme::delayed_completions::SyncedCommand;
use nvme::{
    Failure, FastPathBatch, FlushHandle, PREFETCH_COMMANDS, Parameter, PendingReply, Reply, Subsystem, Transfer,
    TransferDirection,
};
use nvme_spec::command::{
    PSDT_SGL_MPTR_CONTIGUOUS, PSDT_SGL_MPTR_SGL, SGL_SUBTYPE_OFFSET, SGL_SUBTYPE_TRANSPORT_A, SglType,
};
use nvme_spec::{AdminOpcode, Status, SubmissionEntry};
use ssd::Nanos;

use super::{CommandStage, DisconnectReason, OUTPUT_BYTES, PlacedFastIo, ReadyCommand, SessionCompletion, TcpSession};
use crate::tcp::fabrics::{ConnectedQueue, FabricsCommand};
use crate::tcp::output::ReadData;
use crate::{lock, pause_between_parts};

/// Most fast-path commands in one batch.
const BATCH_COMMANDS: usize = 16;
/// Write data in bytes after which the lock is released, some tens of microseconds of work.
const WRITTEN_BYTES: usize = 512 << 10;
/// Up to this size, data is copied behind its header.
const LITTLE_DATA_BYTES: usize = 16 << 10;

impl TcpSession {
    /// Held completions keep their data, so execution pauses when their data reaches the limit.
    pub(super) fn may_execute(&self) -> bool {
        let limit = self.context.options.limits.bytes_in_flight;
        self.computing.is_none() && (self.backlog.next_due().is_none() || self.bytes_in_flight < limit)
    }

    pub(super) fn carry_out_ready(&mut self) -> Result<(), DisconnectReason> {
        if self.ready.is_empty() || !self.may_execute() {
            return Ok(());
        }
        let context = Arc::clone(&self.context);
        if std::mem::take(&mut self.yields_to_waiters) {
            pause_between_parts();
        }
        let mut subsystem = lock(&context.shared);
        let now = context.clock.now();
        self.check_link(&mut subsystem, now)?;
        let io_queue = self.endpoint.io_queue();
        let is_io = io_queue.is_some();
        if let Some(queue) = io_queue {
            let controller = queue.association.controller();
            subsystem.note_queue_depth(controller, queue.id, self.outstanding as u64);
        }
        let until = self.bytes_in_flight.saturating_sub(WRITTEN_BYTES);
        while let Some(first) = self.ready.front() {
            let may_be_fast =
                matches!(&first.progress, CommandStage::Capsule(_, Some(command)) if command.may_be_fast());
            if !may_be_fast || !self.execute_fast_batch(&mut subsystem, now, until) {
                let ready = self.ready.pop_front().expect("the entry was checked before");
                if let Some(next) = self.ready.front().filter(|_| is_io) {
                    subsystem.prefetch_command(next.progress.entry());
                }
                self.carry_out(&mut subsystem, now, ready);
            }
            if self.yields_to_waiters || self.output.bytes() >= OUTPUT_BYTES || !self.may_execute() || self.closing {
                break;
            }
            if self.bytes_in_flight < until {
                break;
            }
        }
        self.take_events(&mut subsystem);
        subsystem.flush_nontemporal();
        Ok(())
    }

    /// Checks that the connection still belongs to its controller, and restarts the keep alive
    /// timer.
    fn check_link(&self, subsystem: &mut Subsystem, now: Nanos) -> Result<(), DisconnectReason> {
        if let Some(queue) = &self.endpoint.queue {
            self.end_if_reset(queue, subsystem);
            if queue.link.has_ended() {
                return Err(DisconnectReason::Ended);
            }
            // An I/O queue restarts the timer only after its host has authenticated.
            if queue.id == 0 || queue.link.is_established() {
                subsystem.record_message(now, queue.association.controller());
            }
        }
        Ok(())
    }

    /// Ends the association after an NVM Subsystem Reset, which only a host on PCI Express can
    /// request.
    fn end_if_reset(&self, queue: &ConnectedQueue, subsystem: &mut Subsystem) {
        if !queue.link.has_ended() && subsystem.is_subsystem_reset(queue.association.controller()) {
            self.context.associations.end(subsystem, &queue.association);
        }
    }

    /// Executes one batch of the fast-path commands that are next in an I/O queue and whose data is
    /// complete. Stops early when less than `until` bytes are in flight. Returns `false` if no such
    /// command is next.
    fn execute_fast_batch(&mut self, subsystem: &mut Subsystem, now: Nanos, until: usize) -> bool {
        let queue = self.endpoint.queue.as_ref().expect("an I/O queue");
        let controller = queue.association.controller();
        let nsid = self.ready[0].progress.entry().nsid.get();
        if !queue.is_authenticated() {
            return false;
        }
        let Some(mut batch) = subsystem.begin_fast_path_batch(controller, now, nsid) else {
            return false;
        };
        let mut fast = std::mem::take(&mut self.fast_batch);
        fast.clear();
        let candidates = self.ready.iter().take(BATCH_COMMANDS + PREFETCH_COMMANDS);
        fast.extend(candidates.map_while(|ready| find_fast_io(subsystem, &batch, ready)));
        let mut failed = None;
        for (place, PlacedFastIo { command, offset }) in fast.iter().enumerate().take(BATCH_COMMANDS) {
            subsystem.prefetch_fast(fast[place + 1..].iter().map(|next| &next.command));
            let ready = self.ready.pop_front().expect("the command was examined before");
            self.release_in_flight(ready.data.len());
            let entry = ready.progress.entry();
            let Transfer { direction, bytes, .. } = command.transfer();
            let reads = direction == TransferDirection::ToHost;
            let is_left_out = reads && self.may_omit_completion();
            let moved = if reads {
                let cid = entry.cid.get();
                self.output.send_little_data(cid, bytes, is_left_out, |output| {
                    subsystem.read_fast(&mut batch, command, &mut |piece| {
                        output.extend_from_slice(piece);
                        Ok(())
                    })
                })
            } else {
                let mut data = &ready.data[*offset..];
                subsystem.write_fast(&mut batch, command, &mut |buffer| {
                    let piece;
                    (piece, data) = data.split_at(buffer.len());
                    buffer.copy_from(piece);
                    Ok(())
                })
            };
            if let Err(failure) = moved {
                failed = Some((ready, failure));
                break;
            }
            let head = self.end_of_command(is_left_out);
            if !is_left_out {
                self.output.respond(Reply::success(0).entry(entry.cid.get(), 0, head, false));
            }
            self.recycle(ready.data);
            if self.bytes_in_flight < until {
                break;
            }
        }
        subsystem.end_fast_path_batch(batch);
        let carried_out = !fast.is_empty();
        self.fast_batch = fast;
        if let Some((ready, failure)) = failed {
            self.refuse(subsystem, ready.progress.entry(), ready.data, failure);
        }
        carried_out
    }

    fn carry_out(&mut self, subsystem: &mut Subsystem, now: Nanos, ready: ReadyCommand) {
        let ReadyCommand { progress, mut data, damaged } = ready;
        self.release_in_flight(data.len());
        let (entry, accepted) = match progress {
            CommandStage::Transferred(command) if !damaged => (command.entry, Ok(command)),
            CommandStage::Transferred(command) => (command.entry, Err(wrong_digest())),
            CommandStage::Capsule(entry, parsed) => match self.endpoint.accept(subsystem, &entry, parsed) {
                Ok(_) if damaged => (entry, Err(wrong_digest())),
                Ok(command) => match prepare(&command, &mut data) {
                    Ok(true) => (entry, Ok(command)),
                    Ok(false) => {
                        self.recycle(data);
                        return self.ungranted.push_back(command);
                    }
                    Err(failure) => (entry, Err(failure)),
                },
                Err(failure) => (entry, Err(failure)),
            },
        };
        let command = match accepted {
            Ok(command) => command,
            Err(failure) => return self.refuse(subsystem, &entry, data, failure),
        };
        let Transfer { direction, bytes, .. } = command.transfer;
        assert!(
            direction != TransferDirection::ToController || data.len() == bytes,
            "a command that moves {bytes} bytes to the controller has {}",
            data.len()
        );
        let to_host = direction == TransferDirection::ToHost;
        if to_host && data.capacity() == 0 {
            data = self.spare.take();
        }
        let outcome = match self.endpoint.execute(subsystem, now, command, &mut data) {
            ControlFlow::Break(outcome) => outcome,
            ControlFlow::Continue(command) => {
                self.bytes_in_flight += data.len();
                self.yields_to_waiters = true;
                return self.ready.push_back(ReadyCommand {
                    progress: CommandStage::Transferred(command),
                    data,
                    damaged: false,
                });
            }
        };
        if let Some(work) = self.endpoint.take_dh_job() {
            self.recycle(data);
            self.computing = Some((entry, work));
            return;
        }
        self.closing |= self.endpoint.has_failed();
        if !to_host {
            // A host does not get its own data back.
            self.recycle(std::mem::take(&mut data));
        }
        if entry.opcode == AdminOpcode::Abort.code() {
            // An aborted command completes before the Abort (Base Specification, "Abort command").
            self.take_events(subsystem);
        }
        self.finish(entry, outcome, data, now);
    }

    fn refuse(&mut self, subsystem: &mut Subsystem, entry: &SubmissionEntry, data: Vec<u8>, failure: Failure) {
        self.recycle(data);
        let reply = self.endpoint.fail(subsystem, entry, failure);
        self.complete(SessionCompletion { entry: *entry, reply, data: Vec::new() });
    }

    fn finish(&mut self, entry: SubmissionEntry, outcome: PendingReply, data: Vec<u8>, now: Nanos) {
        let Some(reply) = outcome.reply else {
            // An Asynchronous Event Request does not count here, because the subsystem limits them.
            assert!(self.outstanding > 0, "an Asynchronous Event Request counts until it waits");
            self.outstanding -= 1;
            return self.recycle(data);
        };
        if std::mem::take(&mut self.endpoint.shuts_down) {
            let durable = outcome.durable.clone();
            self.backlog.shut_down(durable.expect("a shutdown waits for durable data"));
        }
        let completion = SessionCompletion { entry, reply, data };
        self.complete_when_due(completion, outcome.due, outcome.durable, now);
    }

    /// Completes a command now, or holds its completion back.
    pub(super) fn complete_when_due(
        &mut self,
        completion: SessionCompletion,
        due: Nanos,
        durable: Option<Arc<dyn FlushHandle>>,
        now: Nanos,
    ) {
        let bytes = completion.data.len();
        match self.backlog.delay(now, due, durable, completion) {
            Some(completion) => self.complete(completion),
            None => self.bytes_in_flight += bytes,
        }
    }

    /// Completes commands that have become due.
    pub(super) fn release_due(&mut self) {
        if self.backlog.next_due().is_none() {
            return;
        }
        let now = self.context.clock.now();
        while self.output.bytes() < OUTPUT_BYTES
            && let Some((due, completion)) = self.backlog.take_due(now)
        {
            self.release_in_flight(completion.data.len());
            self.context.pacing.completed(due, now);
            self.complete(completion);
        }
    }

    /// Sends data and completion of a command to the host.
    fn complete(&mut self, completion: SessionCompletion) {
        let cid = completion.entry.cid.get();
        // The SUCCESS flag of the data replaces a completion without further content.
        let says_success = completion.reply == Reply::success(0) && !completion.data.is_empty();
        let success = says_success && self.may_omit_completion();
        let head = self.end_of_command(success);
        if completion.data.is_empty() {
            self.recycle(completion.data);
        } else {
            self.output.send_data(ReadData { cid, bytes: completion.data, success });
        }
        if !success {
            self.output.respond(completion.reply.entry(cid, 0, head, false));
        }
    }

    /// Returns whether a completion may be left out, given that the data carries the SUCCESS flag.
    fn may_omit_completion(&self) -> bool {
        let queue = self.endpoint.queue.as_ref();
        queue.is_some_and(|queue| queue.sq_head.may_omit_completion(self.outstanding))
    }

    /// Counts a command as complete. Returns the submission queue head for its completion.
    fn end_of_command(&mut self, is_left_out: bool) -> u16 {
        assert!(self.outstanding > 0, "a command that completes is outstanding");
        self.outstanding -= 1;
        let queue = self.endpoint.queue.as_mut();
        queue.map_or(0, |queue| queue.sq_head.next(is_left_out))
    }

    /// Sends events to the host, if it has requested them.
    fn take_events(&mut self, subsystem: &mut Subsystem) {
        let Some(queue) = &mut self.endpoint.queue else {
            return;
        };
        if queue.id != 0 || queue.link.has_ended() {
            return;
        }
        for event in subsystem.async_completions(queue.association.controller()) {
            let head = queue.sq_head.next(false);
            self.output.respond(event.reply.entry(event.cid, 0, head, false));
        }
    }

    /// Sends events after the waker was called.
    pub fn deliver_events(&mut self) {
        let context = Arc::clone(&self.context);
        let mut subsystem = lock(&context.shared);
        if let Some(queue) = &self.endpoint.queue {
            self.end_if_reset(queue, &mut subsystem);
        }
        self.take_events(&mut subsystem);
    }

    /// Makes all written data durable and completes the commands that wait for it.
    pub fn sync(&mut self) {
        let Some(durable) = self.backlog.start_sync() else {
            return;
        };
        let result = durable.flush();
        let synced = self.backlog.finish_sync();
        let context = Arc::clone(&self.context);
        let mut subsystem = lock(&context.shared);
        let now = context.clock.now();
        let Some(queue) = self.endpoint.queue.as_ref().filter(|queue| !queue.link.has_ended()) else {
            self.closing = true;
            return;
        };
        let (controller, queue_id) = (queue.association.controller(), queue.id);
        if synced.shutdown && result.is_ok() {
            subsystem.finish_shutdown(controller);
        }
        for SyncedCommand { delayed_at, due, command } in synced.commands {
            let mut completion = command;
            self.release_in_flight(completion.data.len());
            match &result {
                Ok(()) => {
                    let entry = &completion.entry;
                    subsystem.note_latency(controller, queue_id, entry, delayed_at, due.max(now));
                }
                Err(error) => {
                    completion.reply = subsystem.failed_to_sync(controller, queue_id, &completion.entry, error);
                }
            }
            self.complete_when_due(completion, due, None, now);
        }
    }

    /// Runs the computation of an authentication command without the drive lock, and completes the
    /// command. The connection ends if the computation cannot begin before `until`.
    pub fn run_dh(&mut self, until: Instant) {
        let Some((entry, work)) = self.computing.take() else {
            return;
        };
        let context = Arc::clone(&self.context);
        let connection = &self.endpoint.connection_info;
        let Some(work) = context.exponents.run(connection, until, work) else {
            self.closing = true;
            return;
        };
        let mut subsystem = lock(&context.shared);
        if self.endpoint.queue.as_ref().is_none_or(|queue| queue.link.has_ended()) {
            self.closing = true;
            return;
        }
        self.endpoint.finish_dh_job(&mut subsystem, work);
        self.closing |= self.endpoint.has_failed();
        self.complete(SessionCompletion { entry, reply: Reply::success(0), data: Vec::new() });
    }

    /// Stops counting `bytes` of command data as in flight.
    fn release_in_flight(&mut self, bytes: usize) {
        assert!(
            bytes <= self.bytes_in_flight,
            "a command with {bytes} bytes is among the {} in flight",
            self.bytes_in_flight
        );
        self.bytes_in_flight -= bytes;
    }

    fn recycle(&mut self, data: Vec<u8>) {
        self.spare.put(data, self.context.options.limits.bytes_in_flight);
    }
}

/// Returns the command if it qualifies for the fast path, its data is complete, and data for the
/// host is small enough to be copied.
fn find_fast_io(subsystem: &Subsystem, batch: &FastPathBatch, ready: &ReadyCommand) -> Option<PlacedFastIo> {
    let CommandStage::Capsule(entry, Some(command)) = &ready.progress else {
        return None;
    };
    let command = subsystem.classify_fast(batch, command).filter(|_| !ready.damaged)?;
    let transfer = command.transfer();
    let placed = place(entry, transfer, ready.data.len()).ok()?;
    let offset = match (transfer.direction, placed) {
        (TransferDirection::ToHost, DataLocation::Transport) if transfer.bytes <= LITTLE_DATA_BYTES => 0,
        (TransferDirection::ToController, DataLocation::Capsule(offset)) => offset,
        _ => return None,
    };
    Some(PlacedFastIo { command, offset })
}

fn wrong_digest() -> Failure {
    let cause = "the data digest does not match the data";
    Failure::new(Status::TRANSIENT_TRANSPORT_ERROR, cause).retryable()
}

/// Puts the data that came with a command into the form that its execution needs. Returns `false`
/// if the data must be requested first.
fn prepare(command: &FabricsCommand, data: &mut Vec<u8>) -> Result<bool, Failure> {
    let transfer = command.transfer;
    match (transfer.direction, place(&command.entry, transfer, data.len())?) {
        (TransferDirection::None, _) => data.clear(),
        (TransferDirection::ToHost, DataLocation::Transport) => {}
        (TransferDirection::ToHost, DataLocation::Capsule(_)) => {
            let cause = "data for the host cannot be in the command capsule";
            return Err(Failure::new(Status::SGL_DESCRIPTOR_TYPE_INVALID, cause).at(Parameter::DATA_POINTER));
        }
        (TransferDirection::ToController, DataLocation::Capsule(offset)) => {
            data.copy_within(offset..offset + transfer.bytes, 0);
            data.truncate(transfer.bytes);
        }
        (TransferDirection::ToController, DataLocation::Transport) => return Ok(false),
    }
    Ok(true)
}

enum DataLocation {
    /// In the capsule, from this offset on.
    Capsule(usize),
    /// In separate PDUs.
    Transport,
}

/// Reads the data pointer of a command with `capsule_bytes` of in-capsule data (TCP Transport, "SGL
/// Descriptors"). The SGL may be longer than the transfer, as Linux's is for Dataset Management.
fn place(entry: &SubmissionEntry, transfer: Transfer, capsule_bytes: usize) -> Result<DataLocation, Failure> {
    if transfer.direction == TransferDirection::None {
        return Ok(DataLocation::Transport);
    }
    if transfer.metadata_bytes > 0 {
        let cause = "over fabrics metadata is part of the data, but this namespace has a separate metadata buffer";
        return Err(Failure::new(Status::INVALID_NAMESPACE_OR_FORMAT, cause).at(Parameter::NSID));
    }
    if !matches!(entry.flags.psdt(), PSDT_SGL_MPTR_CONTIGUOUS | PSDT_SGL_MPTR_SGL) {
        let cause = "over fabrics data pointers must be SGLs";
        return Err(Failure::invalid_field(Parameter::dword(0, 14), cause));
    }
    let descriptor = entry.sgl1();
    let length = descriptor.length.get() as usize;
    if length < transfer.bytes {
        let cause = format!("the SGL describes {length} bytes, but the command transfers {}", transfer.bytes);
        return Err(Failure::new(Status::DATA_SGL_LENGTH_INVALID, cause).at(Parameter::DATA_POINTER));
    }
    match (SglType::from_u8(descriptor.id.sgl_type()), descriptor.id.subtype()) {
        (Some(SglType::TransportDataBlock), SGL_SUBTYPE_TRANSPORT_A) => Ok(DataLocation::Transport),
        (Some(SglType::DataBlock), SGL_SUBTYPE_OFFSET) => {
            let offset = descriptor.addr.get();
            let end = offset.saturating_add(length as u64);
            if transfer.direction == TransferDirection::ToController && end > capsule_bytes as u64 {
                let cause =
                    format!("the SGL ends at byte {end} of the capsule's data, which has {capsule_bytes} bytes");
                return Err(Failure::new(Status::SGL_OFFSET_INVALID, cause).at(Parameter::DATA_POINTER));
            }
            Ok(DataLocation::Capsule(offset as usize))
        }
        _ => {
            let cause = "over TCP an SGL must be a data block with an offset or a transport data block";
            Err(Failure::new(Status::SGL_DESCRIPTOR_TYPE_INVALID, cause).at(Parameter::DATA_POINTER))
        }
    }
}
