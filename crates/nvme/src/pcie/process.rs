//! Fetching, execution and completion of commands.
//!
//! A batch takes a bounded number of commands from the submission queues in turn. It never takes
//! more than the completion queues have free entries for. A host that does not consume its
//! completions is not served until it does. A command that waits for durability or its due time
//! keeps its reserved entry in the completion queue.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use nvme_spec::command::{AbortCdw10, AbortDw0, SubmissionEntry};
use nvme_spec::{AdminOpcode, Status};
use prefetch::NonTemporalBuf;
use ssd::Nanos;

use super::admin::{self, QueueCommand};
use super::{
    Bus, CompletionQueue, PartialCommand, PcieController, ReadyCompletion, SubmissionQueue, data, head_index,
    tail_index,
};
use crate::command::AcceptedCommand;
use crate::completion::{PendingReply, Reply};
use crate::controller::DoorbellError;
use crate::delayed_completions::SyncedCommand;
use crate::error::Failure;
use crate::io::fast_path::PREFETCH_COMMANDS;
use crate::io::{IoCommand, StraightData};
use crate::media::FlushHandle;
use crate::subsystem::Subsystem;
use crate::transfer::{Transfer, TransferDirection};

/// Maximum number of commands of a batch. The subsystem is locked for the whole batch.
const BATCH_COMMANDS: u16 = 64;
/// Maximum number of commands of one queue in a batch, so that a busy queue does not delay the
/// others.
const BURST_COMMANDS: u16 = 32;
/// Maximum number of fast-path commands that complete together. The number spreads the fixed costs
/// over several commands, but lets the host consume completions while later commands run.
const FAST_BATCH_COMMANDS: usize = 8;
/// Bytes of data that end a fast-path batch. Beyond this size the data dominates the cost.
const FAST_BATCH_BYTES: u64 = 64 << 10;
/// Maximum number of partly executed commands. At this limit no new commands are fetched from I/O
/// queues.
const UNFINISHED_MAX: usize = 64;

enum QueuedCommand {
    Queue(QueueCommand),
    Drive(AcceptedCommand),
}

impl PcieController {
    /// True if a long command has parts left. Other hosts of the drive can run between two parts.
    pub fn is_in_parts(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Polls the doorbells. Returns true if [`PcieController::process`] has work. Events and due
    /// commands are not included.
    pub fn has_work(&mut self, bus: Bus<'_>) -> bool {
        if !self.running {
            return false;
        }
        let mut work = false;
        for queue in 0..self.submission_end {
            if self.poll_tail(bus, queue) && self.free_entries_for(bus, queue, 1) > 0 {
                work = true;
            }
        }
        let event = !self.events.is_empty() && self.free_entries_for(bus, 0, 1) > 0;
        work || event || !self.unfinished.is_empty() || !self.doorbell_errors.is_empty() || self.fault.is_some()
    }

    /// Executes and completes a batch of commands. Returns the number of commands.
    pub fn process(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos) -> usize {
        if !self.is_still_running(subsystem, bus) {
            return 0;
        }
        for error in self.doorbell_errors.drain(..) {
            subsystem.note_doorbell_error(self.id, error);
        }
        self.post_events(subsystem, bus);
        self.post_due(subsystem, bus, now);
        self.continue_partial(subsystem, bus, now);
        let mut budget = BATCH_COMMANDS;
        let queues = self.submission_end;
        for turn in 0..queues {
            // An admin command may have deleted queues in the same batch. Their table entries are
            // then empty.
            let queue = (self.next_queue + turn) % queues;
            if queue > 0 && self.unfinished.len() >= UNFINISHED_MAX {
                continue;
            }
            self.poll_tail(bus, queue);
            let unfinished = self.unfinished.len();
            budget -= self.process_queue(subsystem, bus, now, queue, budget);
            if budget == 0 || self.unfinished.len() > unfinished {
                self.next_queue = (queue + 1) % queues;
                break;
            }
        }
        self.finish_batch(subsystem, bus);
        usize::from(BATCH_COMMANDS - budget)
    }

    /// Next due time of a delayed completion.
    pub fn next_due(&self) -> Option<Nanos> {
        self.backlog.next_due()
    }

    /// Starts a sync for commands or a shutdown, if needed. The caller runs the sync without the
    /// subsystem's lock, and then calls [`PcieController::finish_sync`].
    pub fn start_sync(&mut self) -> Option<Arc<dyn FlushHandle>> {
        self.backlog.start_sync()
    }

    /// Completes the commands that waited for the last [`PcieController::start_sync`].
    pub fn finish_sync(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos, result: &std::io::Result<()>) {
        let synced = self.backlog.finish_sync();
        if !self.is_still_running(subsystem, bus) {
            return;
        }
        for SyncedCommand { delayed_at, due, command } in synced.commands {
            let mut completion = command;
            match result {
                Ok(()) => {
                    let (queue, entry) = (completion.queue, &completion.entry);
                    subsystem.note_latency(self.id, queue, entry, delayed_at, due.max(now));
                }
                Err(error) => {
                    completion.reply = subsystem.failed_to_sync(self.id, completion.queue, &completion.entry, error);
                }
            }
            self.release(completion.queue);
            self.complete(bus, now, due, None, completion);
        }
        if synced.shutdown {
            subsystem.finish_shutdown(self.id);
        }
        self.finish_batch(subsystem, bus);
    }

    /// Prepares a pause in polling. Requests a real doorbell at the next change of a shadow
    /// doorbell. Returns true if work arrived in the meantime.
    pub fn prepare_sleep(&mut self, bus: Bus<'_>) -> bool {
        let Some(shadow) = self.shadow else {
            return self.has_work(bus);
        };
        for queue in 1..self.submission.len() {
            let slot = |index: usize| shadow.event_indexes + index as u64 * 4;
            // A missing buffer means that the host removed it and gets no wake-ups. Its doorbells
            // are polled anyway.
            if let Some(submission) = &self.submission[queue] {
                let _ = bus.memory.store(slot(tail_index(queue as u16)), u32::from(submission.tail()));
            }
            if let Some(completion) = &self.completion[queue]
                && !completion.has_room()
            {
                let _ = bus.memory.store(slot(head_index(queue as u16)), u32::from(completion.head()));
            }
        }
        // The host writes the shadow doorbell and then reads the event index. The controller does
        // the opposite. Full barriers on both sides ensure that at least one side sees the other's
        // write.
        fence(Ordering::SeqCst);
        self.has_work(bus)
    }

    /// Raises the vectors of all completions that the host has not consumed. Call it when Bus
    /// Master Enable is set again. Interrupts raised just before the bit was cleared may be lost
    /// (PCI Local Bus Specification, no messages while it is clear). A host without new completions
    /// ignores an interrupt.
    pub fn raise_pending(&mut self, bus: Bus<'_>) {
        for queue in 0..self.completion.len() {
            let Some(completion) = &self.completion[queue] else {
                continue;
            };
            let vector = completion.vector;
            let head = self.doorbell(bus, head_index(queue as u16));
            let completion = self.completion(queue as u16);
            // The controller reports an invalid value when it needs more free entries.
            let _ = completion.set_head(head);
            if let Some(vector) = vector.filter(|_| completion.has_unconsumed()) {
                bus.interrupts.raise(vector);
            }
        }
    }

    // ----------------------------------------------------------------------------- doorbells --

    /// Returns a doorbell value, from the shadow if one exists. A host with shadows still writes
    /// the real doorbells of the admin queue.
    #[inline]
    fn doorbell(&mut self, bus: Bus<'_>, index: usize) -> u32 {
        match self.shadow {
            Some(shadow) if index >= 2 => match bus.memory.load(shadow.values + index as u64 * 4) {
                Ok(value) => value,
                Err(fault) => {
                    self.fault = Some(fault);
                    0
                }
            },
            _ => bus.doorbells.load(index),
        }
    }

    /// Updates the tail of a submission queue. Returns true if commands wait.
    #[inline]
    fn poll_tail(&mut self, bus: Bus<'_>, queue: u16) -> bool {
        if self.submission[usize::from(queue)].is_none() {
            return false;
        }
        let value = self.doorbell(bus, tail_index(queue));
        let submission = self.submission(queue);
        let is_new_error = !submission.set_tail(value) && submission.refused.replace(value) != Some(value);
        let pending = submission.pending();
        if is_new_error {
            self.doorbell_errors.push(DoorbellError::Value);
        }
        pending > 0
    }

    /// Number of unreserved entries in the completion queue of a submission queue. Reads the host's
    /// head doorbell if fewer than `wanted` entries are known to be free.
    #[inline]
    fn free_entries_for(&mut self, bus: Bus<'_>, queue: u16, wanted: u16) -> u16 {
        let queue = self.submission(queue).completion_queue;
        if self.completion(queue).room() < wanted {
            let value = self.doorbell(bus, head_index(queue));
            let completion = self.completion(queue);
            if !completion.set_head(value) && completion.refused.replace(value) != Some(value) {
                self.doorbell_errors.push(DoorbellError::Value);
            }
        }
        self.completion(queue).room()
    }

    // ------------------------------------------------------------------------------ commands --

    /// True if queues exist. A subsystem reset may have reset the controller without a call here.
    fn is_still_running(&mut self, subsystem: &Subsystem, bus: Bus<'_>) -> bool {
        if self.running && !subsystem.controller(self.id).is_ready() {
            self.clear(bus);
        }
        self.running
    }

    /// Executes up to `budget` commands of a queue. Stops after a partly executed command, because
    /// the subsystem was locked long enough. Returns the number of commands.
    fn process_queue(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos, queue: u16, budget: u16) -> u16 {
        let pending = self.submission[usize::from(queue)].as_ref().map_or(0, |submission| submission.pending());
        let wanted = pending.min(BURST_COMMANDS).min(budget);
        if wanted == 0 {
            return 0;
        }
        if queue > 0 {
            let reserved = self.completion_of(queue).reserved;
            subsystem.note_queue_depth(self.id, queue, u64::from(pending) + u64::from(reserved));
        }
        let count = wanted.min(self.free_entries_for(bus, queue, wanted));
        let mut done = 0;
        let (mut entries, mut parsed) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.parsed));
        entries.resize(usize::from(BURST_COMMANDS), SubmissionEntry::default());
        let fetched = &mut entries[..usize::from(count)];
        match self.submission(queue).fetch(bus.memory, fetched) {
            Ok(()) => {
                // Reserves the completion entries of these commands, so that events cannot take
                // them.
                self.completion_of(queue).reserved += count;
                let unfinished = self.unfinished.len();
                parsed.clear();
                if queue > 0 {
                    parsed.extend(fetched.iter().map(IoCommand::parse));
                    fetched.first().into_iter().for_each(|first| subsystem.prefetch_command(first));
                }
                while done < count {
                    let rest = &fetched[usize::from(done)..];
                    let commands = parsed.get(usize::from(done)..).unwrap_or_default();
                    let batch = self.execute_batch(subsystem, bus, now, queue, rest, commands);
                    done += batch;
                    if batch > 0 {
                        continue;
                    }
                    self.submission(queue).pass(1);
                    let command = commands.first().copied().flatten();
                    self.execute_command(subsystem, bus, now, queue, &rest[0], command);
                    done += 1;
                    if self.unfinished.len() > unfinished {
                        break;
                    }
                }
                self.completion_of(queue).reserved -= count - done;
            }
            Err(fault) => self.fault = Some(fault),
        }
        (self.entries, self.parsed) = (entries, parsed);
        assert!(done <= budget, "a queue runs {done} commands, but its budget is {budget}");
        done
    }

    /// Executes and completes the fast-path commands at the start of a queue's entries together, up
    /// to a limit. `commands` are the parsed entries. Prefetching and the checks of the drive run
    /// once for all of them. Returns the number of commands, or 0 if the first one is not a
    /// fast-path command.
    fn execute_batch(
        &mut self,
        subsystem: &mut Subsystem,
        bus: Bus<'_>,
        now: Nanos,
        queue: u16,
        entries: &[SubmissionEntry],
        commands: &[Option<IoCommand>],
    ) -> u16 {
        // The admin queue has no fast-path commands.
        let first = commands.first().and_then(Option::as_ref);
        let Some(first) = first.filter(|first| first.may_be_fast()) else {
            return 0;
        };
        let Some(mut batch) = subsystem.begin_fast_path_batch(self.id, now, first.nsid()) else {
            return 0;
        };
        let mut fast = std::mem::take(&mut self.fast_commands);
        fast.clear();
        let candidates = commands.iter().take(FAST_BATCH_COMMANDS + PREFETCH_COMMANDS);
        fast.extend(candidates.map_while(|command| subsystem.classify_fast(&batch, command.as_ref()?)));
        let mut done = 0;
        let mut failed = None;
        for (index, (entry, command)) in entries.iter().zip(&fast).enumerate().take(FAST_BATCH_COMMANDS) {
            // A bad data pointer must change no data. The normal path fails the command.
            let transfer = command.transfer();
            let described = data::describe(bus.memory, queue, entry, transfer, &mut self.segments);
            if described.is_err()
                || transfer.direction == TransferDirection::ToController
                    && data::check_readable(bus.memory, &self.segments).is_err()
            {
                break;
            }
            subsystem.prefetch_fast(fast[index + 1..].iter());
            let mut walk = data::SegmentCursor::new(bus.memory, &self.segments);
            let moved = match transfer.direction {
                TransferDirection::ToHost => subsystem.read_fast(&mut batch, command, &mut |piece| walk.write(piece)),
                _ => subsystem.write_fast(&mut batch, command, &mut |buffer| walk.read(buffer)),
            };
            if let Err(failure) = moved {
                failed = Some(failure);
                break;
            }
            done += 1;
            if batch.bytes() >= FAST_BATCH_BYTES {
                break;
            }
        }
        self.fast_commands = fast;
        // The commands can no longer fail, so the host gets the completions first. The device model
        // executes the writes before the drive is unlocked, so no thread sees the state in between.
        self.succeed(bus, queue, &entries[..usize::from(done)]);
        subsystem.end_fast_path_batch(batch);
        if let Some(failure) = failed {
            let entry = &entries[usize::from(done)];
            self.submission(queue).pass(1);
            self.end(bus, now, queue, *entry, PendingReply::at(now, subsystem.fail(self.id, queue, entry, failure)));
            done += 1;
        }
        done
    }

    /// Completes successful commands of a queue that have reserved entries in the completion queue.
    fn succeed(&mut self, bus: Bus<'_>, queue: u16, entries: &[SubmissionEntry]) {
        if entries.is_empty() {
            return;
        }
        let commands = entries.len() as u16;
        let submission = self.submission(queue);
        submission.pass(commands);
        let (head, target) = (submission.head(), submission.completion_queue);
        let mut filled = std::mem::take(&mut self.completions);
        let completion = self.completion(target);
        assert!(completion.reserved >= commands, "each command has a reserved completion entry");
        completion.reserved -= commands;
        let success = Reply::success(0);
        let successes = entries.iter().map(|entry| success.entry(entry.cid.get(), queue, head, false));
        let posted = completion.post_successes(bus.memory, successes, &mut filled);
        self.completions = filled;
        match posted {
            Ok(()) => self.note_posted(target),
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// Executes the next part of the longest waiting command.
    fn continue_partial(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos) {
        let Some(PartialCommand { queue, command, mut data }) = self.unfinished.pop_front() else {
            return;
        };
        let entry = *command.entry();
        match subsystem.execute_part(now, command, &mut data) {
            ControlFlow::Continue(command) => self.unfinished.push_back(PartialCommand { queue, command, data }),
            ControlFlow::Break(outcome) => self.end(bus, now, queue, entry, outcome),
        }
    }

    /// Executes a command that has a reserved entry in the completion queue.
    fn execute_command(
        &mut self,
        subsystem: &mut Subsystem,
        bus: Bus<'_>,
        now: Nanos,
        queue: u16,
        entry: &SubmissionEntry,
        parsed: Option<IoCommand>,
    ) {
        let outcome = match self.accept(subsystem, queue, entry, parsed) {
            Ok(QueuedCommand::Queue(command)) => {
                let executed = self.execute_queue_command(subsystem, bus, &command);
                let reply = executed
                    .map_or_else(|failure| subsystem.fail(self.id, queue, entry, failure), |()| Reply::success(0));
                PendingReply::at(now, reply)
            }
            Ok(QueuedCommand::Drive(accepted)) => match self.execute(subsystem, bus, now, queue, accepted) {
                ControlFlow::Break(outcome) => outcome,
                ControlFlow::Continue(command) => {
                    // Copies only the used bytes, because the buffer has the size of the largest
                    // write.
                    let data = self.host_data.as_slice().to_vec();
                    return self.unfinished.push_back(PartialCommand { queue, command, data });
                }
            },
            Err(failure) => PendingReply::at(now, subsystem.fail(self.id, queue, entry, failure)),
        };
        // An aborted command completes before the Abort (Base Specification, "Abort command").
        let mut outcome = outcome;
        if queue == 0 && entry.opcode == AdminOpcode::Abort.code() {
            self.post_events(subsystem, bus);
            if outcome.is_success() && self.abort_stuck(bus, entry) {
                outcome.reply = Some(Reply::success(u64::from(AbortDw0::new().into_bits())));
            }
        }
        self.end(bus, now, queue, *entry, outcome);
    }

    /// Completes the target of an Abort if it is stuck. Returns true if it was.
    fn abort_stuck(&mut self, bus: Bus<'_>, abort: &SubmissionEntry) -> bool {
        let target = AbortCdw10::from_bits(abort.cdw10.get());
        let matches = |stuck: &ReadyCompletion| (stuck.queue, stuck.entry.cid.get()) == (target.sqid(), target.cid());
        let Some(stuck) = self.backlog.take_stuck(matches) else {
            return false;
        };
        self.release(stuck.queue);
        self.post(bus, stuck.queue, stuck.entry.cid.get(), &stuck.reply);
        true
    }

    fn end(&mut self, bus: Bus<'_>, now: Nanos, queue: u16, entry: SubmissionEntry, outcome: PendingReply) {
        self.release(queue);
        // A command without a reply is an Asynchronous Event Request, which an event completes.
        if let Some(reply) = outcome.reply {
            let completion = ReadyCompletion { queue, entry, reply };
            self.complete(bus, now, outcome.due, outcome.durable, completion);
        }
    }

    fn accept(
        &self,
        subsystem: &Subsystem,
        queue: u16,
        entry: &SubmissionEntry,
        parsed: Option<IoCommand>,
    ) -> Result<QueuedCommand, Failure> {
        if queue == 0
            && let Some(command) = admin::parse(entry)
        {
            subsystem.check_entry(self.id, entry)?;
            return Ok(QueuedCommand::Queue(command));
        }
        let accepted = subsystem.accept_parsed(self.id, queue, entry, parsed)?;
        accepted.check_queues(self.has_io_queues())?;
        Ok(QueuedCommand::Drive(accepted))
    }

    fn execute(
        &mut self,
        subsystem: &mut Subsystem,
        bus: Bus<'_>,
        now: Nanos,
        queue: u16,
        accepted: AcceptedCommand,
    ) -> ControlFlow<PendingReply, AcceptedCommand> {
        let Transfer { direction, .. } = accepted.transfer();
        let entry = *accepted.entry();
        if let Some(straight) = subsystem.moves_straight(&accepted).filter(|_| queue > 0) {
            return ControlFlow::Break(self.execute_straight(subsystem, bus, now, queue, accepted, straight));
        }
        if let Err(failure) = self.fetch_data(bus, queue, &accepted) {
            return ControlFlow::Break(PendingReply::at(now, subsystem.refuse(accepted, failure)));
        }
        if direction != TransferDirection::ToHost {
            return subsystem.execute_part(now, accepted, &mut self.host_data);
        }
        let outcome = subsystem.execute(now, accepted, &mut self.drive_data);
        if outcome.is_success()
            && let Err(failure) = data::scatter(bus.memory, &self.segments, &self.drive_data)
        {
            return ControlFlow::Break(PendingReply::at(now, subsystem.fail(self.id, queue, &entry, failure)));
        }
        ControlFlow::Break(outcome)
    }

    /// Executes a command whose data is copied once, between host memory and storage.
    fn execute_straight(
        &mut self,
        subsystem: &mut Subsystem,
        bus: Bus<'_>,
        now: Nanos,
        queue: u16,
        accepted: AcceptedCommand,
        direction: TransferDirection,
    ) -> PendingReply {
        let transfer = accepted.transfer();
        assert_eq!(transfer.direction, direction, "a command moves its data one way");
        let mut described = data::describe(bus.memory, queue, accepted.entry(), transfer, &mut self.segments);
        if direction == TransferDirection::ToController {
            // A bad data pointer must change no data.
            described = described.and_then(|()| data::check_readable(bus.memory, &self.segments));
        }
        if let Err(failure) = described {
            return PendingReply::at(now, subsystem.refuse(accepted, failure));
        }
        let mut walk = data::SegmentCursor::new(bus.memory, &self.segments);
        match direction {
            TransferDirection::ToHost => {
                let take = &mut |piece: &[u8]| walk.write(piece);
                subsystem.execute_straight(now, accepted, StraightData::ToHost(take))
            }
            _ => {
                let give = &mut |buffer: NonTemporalBuf<'_>| walk.read(buffer);
                subsystem.execute_straight(now, accepted, StraightData::FromHost(give))
            }
        }
    }

    /// Locates a command's data, and fetches it if it comes from the host.
    fn fetch_data(&mut self, bus: Bus<'_>, queue: u16, accepted: &AcceptedCommand) -> Result<(), Failure> {
        let transfer = accepted.transfer();
        data::describe(bus.memory, queue, accepted.entry(), transfer, &mut self.segments)?;
        let described: usize = self.segments.iter().map(|segment| segment.bytes).sum();
        assert_eq!(described, transfer.total_bytes(), "segments cover the transfer");
        if transfer.direction == TransferDirection::ToController {
            data::gather(bus.memory, &self.segments, transfer.total_bytes(), &mut self.host_data)?;
        }
        Ok(())
    }

    // --------------------------------------------------------------------------- completions --

    /// Completes a command immediately, or delays its completion.
    fn complete(
        &mut self,
        bus: Bus<'_>,
        now: Nanos,
        due: Nanos,
        durable: Option<Arc<dyn FlushHandle>>,
        completion: ReadyCompletion,
    ) {
        let queue = completion.queue;
        match self.backlog.delay(now, due, durable, completion) {
            Some(completion) => self.post(bus, queue, completion.entry.cid.get(), &completion.reply),
            None => self.completion_of(queue).reserved += 1,
        }
    }

    fn post_due(&mut self, subsystem: &Subsystem, bus: Bus<'_>, now: Nanos) {
        while let Some((due, completion)) = self.backlog.take_due(now) {
            subsystem.pacing().completed(due, now);
            self.release(completion.queue);
            self.post(bus, completion.queue, completion.entry.cid.get(), &completion.reply);
        }
    }

    /// Completes asynchronous event requests while the completion queue has free entries.
    fn post_events(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>) {
        self.events.extend(subsystem.async_completions(self.id));
        while !self.events.is_empty() && self.free_entries_for(bus, 0, 1) > 0 {
            let event = self.events.pop_front().expect("not empty");
            self.post(bus, 0, event.cid, &event.reply);
        }
    }

    /// Writes a completion queue entry. The caller ensures that the queue has a free entry.
    #[inline]
    fn post(&mut self, bus: Bus<'_>, queue: u16, cid: u16, reply: &Reply) {
        let submission = self.submission(queue);
        let (head, target) = (submission.head(), submission.completion_queue);
        let completion = self.completion(target);
        let entry = reply.entry(cid, queue, head, completion.phase());
        if let Err(fault) = completion.post(bus.memory, &entry) {
            self.fault = Some(fault);
            return;
        }
        self.note_posted(target);
    }

    /// Schedules the vector of a completion queue for the end of the batch.
    #[inline]
    fn note_posted(&mut self, target: u16) {
        let vectors = self.vectors;
        let completion = self.completion(target);
        if !completion.raised
            && let Some(vector) = completion.vector
        {
            assert!(vector < vectors, "checked when the queue was created");
            completion.raised = true;
            self.raise.push(target);
        }
    }

    /// Raises the vectors of the batch. Stops the controller if the host memory of a queue was
    /// missing.
    fn finish_batch(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>) {
        for queue in self.raise.drain(..) {
            if let Some(completion) = &mut self.completion[usize::from(queue)] {
                completion.raised = false;
                if let Some(vector) = completion.vector {
                    bus.interrupts.raise(vector);
                }
            }
        }
        if self.fault.is_some() {
            // The host sees Controller Fatal Status and must reset the controller.
            self.clear(bus);
            subsystem.controllers.get_mut(self.id).csts.set_cfs(true);
        }
        subsystem.flush_nontemporal();
    }

    fn release(&mut self, queue: u16) {
        let completion = self.completion_of(queue);
        assert!(completion.reserved > 0, "a command that ends has a reserved completion entry");
        completion.reserved -= 1;
    }

    fn completion_of(&mut self, queue: u16) -> &mut CompletionQueue {
        let target = self.submission(queue).completion_queue;
        self.completion(target)
    }

    pub(super) fn submission(&mut self, queue: u16) -> &mut SubmissionQueue {
        self.submission[usize::from(queue)].as_mut().expect("commands end before their queue")
    }

    pub(super) fn completion(&mut self, queue: u16) -> &mut CompletionQueue {
        self.completion[usize::from(queue)].as_mut().expect("outlives its submission queues")
    }

    /// Completes the commands of a submission queue that is being deleted.
    pub(super) fn abort_commands(&mut self, bus: Bus<'_>, queue: u16) {
        let outstanding = self.backlog.take(|completion| completion.queue == queue);
        let mut cids: Vec<u16> = outstanding.iter().map(|completion| completion.entry.cid.get()).collect();
        self.unfinished.retain(|unfinished| {
            if unfinished.queue == queue {
                cids.push(unfinished.command.entry().cid.get());
            }
            unfinished.queue != queue
        });
        for cid in cids {
            self.release(queue);
            self.post(bus, queue, cid, &Reply::from_status(Status::ABORTED_SQ_DELETION));
        }
        assert!(self.unfinished.iter().all(|unfinished| unfinished.queue != queue), "no command outlives its queue");
    }
}
