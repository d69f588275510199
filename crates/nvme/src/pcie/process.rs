//! Fetching, carrying out and completing commands.
//!
//! A batch takes a bounded number of commands from the submission queues in turn, but never more than their completion
//! queues have room for: a host that does not take its completions is not served until it does. A command whose data
//! must become durable, or whose time has not come, keeps its place in the completion queue reserved.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use nvme_spec::command::{AbortCdw10, AbortDw0, SubmissionEntry};
use nvme_spec::{AdminOpcode, Status};
use prefetch::Room;
use ssd::Nanos;

use super::admin::{self, QueueCommand};
use super::{
    Bus, Completion, CompletionQueue, PcieController, SubmissionQueue, Unfinished, data, head_index, tail_index,
};
use crate::backlog::Synced;
use crate::command::AcceptedCommand;
use crate::completion::{Outcome, Reply};
use crate::controller::DoorbellError;
use crate::error::Failure;
use crate::io::plain_batch::EXPECTED_COMMANDS;
use crate::io::{Command as IoCommand, StraightData};
use crate::media::Durable;
use crate::subsystem::Subsystem;
use crate::transfer::{Direction, Transfer};

/// Commands of a batch: the subsystem is locked that long.
const BATCH_COMMANDS: u16 = 64;
/// Commands of one queue in a batch, so that a busy queue does not hold up the others.
const BURST_COMMANDS: u16 = 32;
/// Plain commands that complete together: enough that what is the same for all of them costs each little, few enough that the host has
/// completions to take while the next are carried out.
const TOGETHER_COMMANDS: usize = 8;
/// So many bytes of data end them, because then data is what costs.
const TOGETHER_BYTES: u64 = 64 << 10;
/// Commands of which a part is done. While there are as many, nothing new is fetched from I/O queues.
const UNFINISHED_MAX: usize = 64;

/// A command of a queue.
enum Command {
    /// About the queues themselves.
    Queue(QueueCommand),
    /// For the drive.
    Drive(AcceptedCommand),
}

impl PcieController {
    /// Whether a long command has parts left: other hosts of the drive have a pause before the next.
    pub fn is_in_parts(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Looks at the doorbells. Whether [`PcieController::process`] has something to do; events and commands whose time
    /// comes are not seen here.
    pub fn has_work(&mut self, bus: Bus<'_>) -> bool {
        if !self.running {
            return false;
        }
        let mut work = false;
        for queue in 0..self.submission_end {
            if self.look_at_tail(bus, queue) && self.room_for(bus, queue, 1) > 0 {
                work = true;
            }
        }
        let event = !self.events.is_empty() && self.room_for(bus, 0, 1) > 0;
        work || event || !self.unfinished.is_empty() || !self.mistakes.is_empty() || self.fault.is_some()
    }

    /// Carries out a batch of commands and completes them. Returns how many there were.
    pub fn process(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos) -> usize {
        if !self.is_still_running(subsystem, bus) {
            return 0;
        }
        for mistake in self.mistakes.drain(..) {
            subsystem.note_doorbell_error(self.id, mistake);
        }
        self.post_events(subsystem, bus);
        self.post_due(subsystem, bus, now);
        self.go_on(subsystem, bus, now);
        let mut budget = BATCH_COMMANDS;
        let queues = self.submission_end;
        for turn in 0..queues {
            // An admin command may have deleted queues meanwhile; their places are empty then.
            let queue = (self.next_queue + turn) % queues;
            if queue > 0 && self.unfinished.len() >= UNFINISHED_MAX {
                continue;
            }
            self.look_at_tail(bus, queue);
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

    /// When the next command is due whose completion is held back for that.
    pub fn next_due(&self) -> Option<Nanos> {
        self.backlog.next_due()
    }

    /// What has to be made durable now for commands or for a shutdown, if anything. The caller does that without the
    /// subsystem's lock, then calls [`PcieController::finish_sync`].
    pub fn start_sync(&mut self) -> Option<Arc<dyn Durable>> {
        self.backlog.start_sync()
    }

    /// Completes what waited for the [`PcieController::start_sync`] before.
    pub fn finish_sync(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos, result: &std::io::Result<()>) {
        let synced = self.backlog.finish_sync();
        if !self.is_still_running(subsystem, bus) {
            return;
        }
        for Synced { held_at, due, command } in synced.commands {
            let mut completion = command;
            match result {
                Ok(()) => {
                    let (queue, entry) = (completion.queue, &completion.entry);
                    subsystem.note_latency(self.id, queue, entry, held_at, due.max(now));
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

    /// Before nobody looks at the doorbells for a while: asks for a real doorbell at the next change of a shadow
    /// doorbell. Returns whether there is work that came meanwhile.
    pub fn announce_sleep(&mut self, bus: Bus<'_>) -> bool {
        let Some(shadow) = self.shadow else {
            return self.has_work(bus);
        };
        for queue in 1..self.submission.len() {
            let slot = |index: usize| shadow.event_indexes + index as u64 * 4;
            // A buffer that is gone means missing wake-ups for a host that took it away; its doorbells are polled
            // anyway.
            if let Some(submission) = &self.submission[queue] {
                let _ = bus
                    .memory
                    .store(slot(tail_index(queue as u16)), u32::from(submission.tail()));
            }
            if let Some(completion) = &self.completion[queue]
                && !completion.has_room()
            {
                let _ = bus
                    .memory
                    .store(slot(head_index(queue as u16)), u32::from(completion.head()));
            }
        }
        // The host writes the shadow doorbell, then reads the event index; here it is the other way round. With a full
        // barrier on both sides at least one of us sees the other's write.
        fence(Ordering::SeqCst);
        self.has_work(bus)
    }

    /// Raises the vectors of all completions that the host has not taken. What was raised just before Bus Master Enable
    /// was cleared may have been lost on its way (PCI Local Bus Specification: no messages then), so this is called
    /// when it is set again; a host that finds nothing new ignores an interrupt.
    pub fn raise_again(&mut self, bus: Bus<'_>) {
        for queue in 0..self.completion.len() {
            let Some(completion) = &self.completion[queue] else {
                continue;
            };
            let vector = completion.vector;
            let head = self.doorbell(bus, head_index(queue as u16));
            let completion = self.completion(queue as u16);
            // A wrong value is reported when somebody needs the room.
            let _ = completion.set_head(head);
            if let Some(vector) = vector.filter(|_| completion.has_untaken()) {
                bus.interrupts.raise(vector);
            }
        }
    }

    // ------------------------------------------------------------------------------------------------- doorbells --

    /// The value of a doorbell: of the shadow where there is one. A host that uses shadows still writes the real
    /// doorbells of the admin queue.
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

    /// Takes over the tail of a submission queue. Whether commands wait.
    #[inline]
    fn look_at_tail(&mut self, bus: Bus<'_>, queue: u16) -> bool {
        if self.submission[usize::from(queue)].is_none() {
            return false;
        }
        let value = self.doorbell(bus, tail_index(queue));
        let submission = self.submission(queue);
        let is_new_mistake = !submission.set_tail(value) && submission.refused.replace(value) != Some(value);
        let pending = submission.pending();
        if is_new_mistake {
            self.mistakes.push(DoorbellError::Value);
        }
        pending > 0
    }

    /// Entries that the completion queue of a submission queue has room for, after a look at its doorbell if it seems
    /// to be less than `wanted`.
    #[inline]
    fn room_for(&mut self, bus: Bus<'_>, queue: u16, wanted: u16) -> u16 {
        let queue = self.submission(queue).completion_queue;
        if self.completion(queue).room() < wanted {
            let value = self.doorbell(bus, head_index(queue));
            let completion = self.completion(queue);
            if !completion.set_head(value) && completion.refused.replace(value) != Some(value) {
                self.mistakes.push(DoorbellError::Value);
            }
        }
        self.completion(queue).room()
    }

    // -------------------------------------------------------------------------------------------------- commands --

    /// Whether queues exist; they do not if the controller was reset behind our back (subsystem reset).
    fn is_still_running(&mut self, subsystem: &Subsystem, bus: Bus<'_>) -> bool {
        if self.running && !subsystem.controller(self.id).is_ready() {
            self.clear(bus);
        }
        self.running
    }

    /// Carries out up to `budget` commands of a queue, and none behind one of which only a part is done: the subsystem
    /// was locked long enough. Returns how many there were.
    fn process_queue(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos, queue: u16, budget: u16) -> u16 {
        let pending = self.submission[usize::from(queue)]
            .as_ref()
            .map_or(0, |submission| submission.pending());
        let wanted = pending.min(BURST_COMMANDS).min(budget);
        if wanted == 0 {
            return 0;
        }
        if queue > 0 {
            let held = self.completion_of(queue).reserved;
            subsystem.note_queue_depth(self.id, queue, u64::from(pending) + u64::from(held));
        }
        let count = wanted.min(self.room_for(bus, queue, wanted));
        let mut done = 0;
        let (mut entries, mut parsed) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.parsed));
        entries.resize(usize::from(BURST_COMMANDS), SubmissionEntry::default());
        let fetched = &mut entries[..usize::from(count)];
        match self.submission(queue).fetch(bus.memory, fetched) {
            Ok(()) => {
                // Events that are completed between these commands must not take their places.
                self.completion_of(queue).reserved += count;
                let unfinished = self.unfinished.len();
                parsed.clear();
                if queue > 0 {
                    parsed.extend(fetched.iter().map(IoCommand::of));
                    fetched.first().into_iter().for_each(|first| subsystem.expect(first));
                }
                while done < count {
                    let rest = &fetched[usize::from(done)..];
                    let commands = parsed.get(usize::from(done)..).unwrap_or_default();
                    let together = self.carry_out_together(subsystem, bus, now, queue, rest, commands);
                    done += together;
                    if together > 0 {
                        continue;
                    }
                    self.submission(queue).pass(1);
                    let command = commands.first().copied().flatten();
                    self.carry_out(subsystem, bus, now, queue, &rest[0], command);
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
        assert!(done <= budget, "others have their turn");
        done
    }

    /// Carries out the plain commands that a queue's entries, and what was parsed of them, begin with, a few at most, which complete together: what they touch is fetched
    /// together, and what they ask of the drive is done once. Returns how many there were; for one that is not plain, 0.
    fn carry_out_together(
        &mut self,
        subsystem: &mut Subsystem,
        bus: Bus<'_>,
        now: Nanos,
        queue: u16,
        entries: &[SubmissionEntry],
        commands: &[Option<IoCommand>],
    ) -> u16 {
        // There are none of the admin queue.
        let first = commands.first().and_then(Option::as_ref);
        let Some(first) = first.filter(|first| first.may_be_plain()) else {
            return 0;
        };
        let Some(mut together) = subsystem.begin_plain_batch(self.id, now, first.nsid()) else {
            return 0;
        };
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let found = commands.iter().take(TOGETHER_COMMANDS + EXPECTED_COMMANDS);
        plain.extend(found.map_while(|command| subsystem.plain(&together, command.as_ref()?)));
        let mut done = 0;
        let mut failed = None;
        for (place, (entry, command)) in entries.iter().zip(&plain).enumerate().take(TOGETHER_COMMANDS) {
            // A bad data pointer is to change nothing; the command fails on the road of all.
            let transfer = command.transfer();
            let described = data::describe(bus.memory, queue, entry, transfer, &mut self.segments);
            if described.is_err()
                || transfer.direction == Direction::ToController
                    && data::check_readable(bus.memory, &self.segments).is_err()
            {
                break;
            }
            subsystem.expect_plain(plain[place + 1..].iter());
            let mut walk = data::Walk::new(bus.memory, &self.segments);
            let moved = match transfer.direction {
                Direction::ToHost => subsystem.read_plain(&mut together, command, &mut |piece| walk.write(piece)),
                _ => subsystem.write_plain(&mut together, command, &mut |room| walk.read(room)),
            };
            if let Err(failure) = moved {
                failed = Some(failure);
                break;
            }
            done += 1;
            if together.bytes() >= TOGETHER_BYTES {
                break;
            }
        }
        self.plain = plain;
        // They succeed for certain now. What the device makes of them nobody sees before the drive is let go, so the host need not wait for it.
        self.succeed(bus, queue, &entries[..usize::from(done)]);
        subsystem.end_plain_batch(together);
        if let Some(failure) = failed {
            let entry = &entries[usize::from(done)];
            self.submission(queue).pass(1);
            let reply = subsystem.fail(self.id, queue, entry, failure);
            self.end(bus, now, queue, *entry, Outcome::at(now, reply));
            done += 1;
        }
        done
    }

    /// Completes commands of a queue that succeeded, and whose places in the completion queue are reserved.
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
        assert!(completion.reserved >= commands, "each command has its place reserved");
        completion.reserved -= commands;
        let success = Reply::success(0);
        let successes = entries
            .iter()
            .map(|entry| success.entry(entry.cid.get(), queue, head, false));
        let posted = completion.post_successes(bus.memory, successes, &mut filled);
        self.completions = filled;
        match posted {
            Ok(()) => self.note_posted(target),
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// Carries out the next part of the command that has waited longest for that.
    fn go_on(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos) {
        let Some(Unfinished {
            queue,
            command,
            mut data,
        }) = self.unfinished.pop_front()
        else {
            return;
        };
        let entry = *command.entry();
        match subsystem.execute_part(now, command, &mut data) {
            ControlFlow::Continue(command) => self.unfinished.push_back(Unfinished { queue, command, data }),
            ControlFlow::Break(outcome) => self.end(bus, now, queue, entry, outcome),
        }
    }

    /// Carries out a command that has a place in the completion queue reserved.
    fn carry_out(
        &mut self,
        subsystem: &mut Subsystem,
        bus: Bus<'_>,
        now: Nanos,
        queue: u16,
        entry: &SubmissionEntry,
        parsed: Option<IoCommand>,
    ) {
        let outcome = match self.accept(subsystem, queue, entry, parsed) {
            Ok(Command::Queue(command)) => {
                let executed = self.execute_queue_command(subsystem, bus, &command);
                let reply = executed.map_or_else(
                    |failure| subsystem.fail(self.id, queue, entry, failure),
                    |()| Reply::success(0),
                );
                Outcome::at(now, reply)
            }
            Ok(Command::Drive(accepted)) => match self.execute(subsystem, bus, now, queue, accepted) {
                ControlFlow::Break(outcome) => outcome,
                ControlFlow::Continue(command) => {
                    // What it needs and no more: the buffer has room for the largest write.
                    let data = self.host_data.as_slice().to_vec();
                    return self.unfinished.push_back(Unfinished { queue, command, data });
                }
            },
            Err(failure) => Outcome::at(now, subsystem.fail(self.id, queue, entry, failure)),
        };
        // A command that is aborted completes before the Abort (Base Specification, "Abort command").
        let mut outcome = outcome;
        if queue == 0 && entry.opcode == AdminOpcode::Abort.code() {
            self.post_events(subsystem, bus);
            if outcome.is_success() && self.abort_stuck(bus, entry) {
                outcome.reply = Some(Reply::success(u64::from(AbortDw0::new().into_bits())));
            }
        }
        self.end(bus, now, queue, *entry, outcome);
    }

    /// Completes the command that an Abort is for, if it is stuck. Returns whether it was.
    fn abort_stuck(&mut self, bus: Bus<'_>, abort: &SubmissionEntry) -> bool {
        let wanted = AbortCdw10::from_bits(abort.cdw10.get());
        let is_meant = |stuck: &Completion| (stuck.queue, stuck.entry.cid.get()) == (wanted.sqid(), wanted.cid());
        let Some(stuck) = self.backlog.take_stuck(is_meant) else {
            return false;
        };
        self.release(stuck.queue);
        self.post(bus, stuck.queue, stuck.entry.cid.get(), &stuck.reply);
        true
    }

    /// A command is carried out.
    fn end(&mut self, bus: Bus<'_>, now: Nanos, queue: u16, entry: SubmissionEntry, outcome: Outcome) {
        self.release(queue);
        // Without a reply it is an Asynchronous Event Request, which is completed by an event.
        if let Some(reply) = outcome.reply {
            let completion = Completion { queue, entry, reply };
            self.complete(bus, now, outcome.due, outcome.durable, completion);
        }
    }

    /// Whose command it is, and what it says.
    fn accept(
        &self,
        subsystem: &Subsystem,
        queue: u16,
        entry: &SubmissionEntry,
        parsed: Option<IoCommand>,
    ) -> Result<Command, Failure> {
        if queue == 0
            && let Some(command) = admin::parse(entry)
        {
            subsystem.check_entry(self.id, entry)?;
            return Ok(Command::Queue(command));
        }
        let accepted = subsystem.accept_parsed(self.id, queue, entry, parsed)?;
        accepted.check_queues(self.has_io_queues())?;
        Ok(Command::Drive(accepted))
    }

    /// Moves a command's data and executes it, or a part of it.
    fn execute(
        &mut self,
        subsystem: &mut Subsystem,
        bus: Bus<'_>,
        now: Nanos,
        queue: u16,
        accepted: AcceptedCommand,
    ) -> ControlFlow<Outcome, AcceptedCommand> {
        let Transfer { direction, .. } = accepted.transfer();
        let entry = *accepted.entry();
        if let Some(straight) = subsystem.moves_straight(&accepted).filter(|_| queue > 0) {
            return ControlFlow::Break(self.execute_straight(subsystem, bus, now, queue, accepted, straight));
        }
        if let Err(failure) = self.fetch_data(bus, queue, &accepted) {
            return ControlFlow::Break(Outcome::at(now, subsystem.refuse(accepted, failure)));
        }
        if direction != Direction::ToHost {
            return subsystem.execute_part(now, accepted, &mut self.host_data);
        }
        let outcome = subsystem.execute(now, accepted, &mut self.drive_data);
        if outcome.is_success()
            && let Err(failure) = data::scatter(bus.memory, &self.segments, &self.drive_data)
        {
            return ControlFlow::Break(Outcome::at(now, subsystem.fail(self.id, queue, &entry, failure)));
        }
        ControlFlow::Break(outcome)
    }

    /// The same for a command whose data is copied once, between host memory and storage.
    fn execute_straight(
        &mut self,
        subsystem: &mut Subsystem,
        bus: Bus<'_>,
        now: Nanos,
        queue: u16,
        accepted: AcceptedCommand,
        direction: Direction,
    ) -> Outcome {
        let transfer = accepted.transfer();
        assert_eq!(transfer.direction, direction, "a command moves its data one way");
        let mut found = data::describe(bus.memory, queue, accepted.entry(), transfer, &mut self.segments);
        if direction == Direction::ToController {
            // A bad data pointer is to change nothing.
            found = found.and_then(|()| data::check_readable(bus.memory, &self.segments));
        }
        if let Err(failure) = found {
            return Outcome::at(now, subsystem.refuse(accepted, failure));
        }
        let mut walk = data::Walk::new(bus.memory, &self.segments);
        match direction {
            Direction::ToHost => {
                let take = &mut |piece: &[u8]| walk.write(piece);
                subsystem.execute_straight(now, accepted, StraightData::ToHost(take))
            }
            _ => {
                let give = &mut |room: Room<'_>| walk.read(room);
                subsystem.execute_straight(now, accepted, StraightData::FromHost(give))
            }
        }
    }

    /// Finds where a command's data is, and takes it if it comes from the host.
    fn fetch_data(&mut self, bus: Bus<'_>, queue: u16, accepted: &AcceptedCommand) -> Result<(), Failure> {
        let transfer = accepted.transfer();
        data::describe(bus.memory, queue, accepted.entry(), transfer, &mut self.segments)?;
        let described: usize = self.segments.iter().map(|segment| segment.bytes).sum();
        assert_eq!(described, transfer.total_bytes(), "segments cover the transfer");
        if transfer.direction == Direction::ToController {
            data::gather(bus.memory, &self.segments, transfer.total_bytes(), &mut self.host_data)?;
        }
        Ok(())
    }

    // ----------------------------------------------------------------------------------------------- completions --

    /// Completes a command now, or holds it back.
    fn complete(
        &mut self,
        bus: Bus<'_>,
        now: Nanos,
        due: Nanos,
        durable: Option<Arc<dyn Durable>>,
        completion: Completion,
    ) {
        let queue = completion.queue;
        match self.backlog.hold(now, due, durable, completion) {
            Some(completion) => self.post(bus, queue, completion.entry.cid.get(), &completion.reply),
            None => self.reserve(queue),
        }
    }

    fn post_due(&mut self, subsystem: &Subsystem, bus: Bus<'_>, now: Nanos) {
        while let Some((due, completion)) = self.backlog.take_due(now) {
            subsystem.pacing().completed(due, now);
            self.release(completion.queue);
            self.post(bus, completion.queue, completion.entry.cid.get(), &completion.reply);
        }
    }

    /// Completes asynchronous event requests, as far as there is room.
    fn post_events(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>) {
        self.events.extend(subsystem.async_completions(self.id));
        while !self.events.is_empty() && self.room_for(bus, 0, 1) > 0 {
            let event = self.events.pop_front().expect("not empty");
            self.post(bus, 0, event.cid, &event.reply);
        }
    }

    /// Writes a completion queue entry; there is room.
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

    /// A completion queue has entries that its vector is to be raised for, at the end of the batch.
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

    /// Raises the vectors of the batch; ends everything if host memory of a queue was found missing.
    fn finish_batch(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>) {
        for queue in std::mem::take(&mut self.raise) {
            if let Some(completion) = &mut self.completion[usize::from(queue)] {
                completion.raised = false;
                if let Some(vector) = completion.vector {
                    bus.interrupts.raise(vector);
                }
            }
        }
        if self.fault.is_some() {
            // The host sees Controller Fatal Status; only a reset helps.
            self.clear(bus);
            subsystem.controllers.get_mut(self.id).csts.set_cfs(true);
        }
        subsystem.settle();
    }

    /// Keeps a place for the completion of a command of a submission queue.
    fn reserve(&mut self, queue: u16) {
        self.completion_of(queue).reserved += 1;
    }

    fn release(&mut self, queue: u16) {
        let completion = self.completion_of(queue);
        assert!(completion.reserved > 0, "a command that ends has its place reserved");
        completion.reserved -= 1;
    }

    fn completion_of(&mut self, queue: u16) -> &mut CompletionQueue {
        let target = self.submission(queue).completion_queue;
        self.completion(target)
    }

    pub(super) fn submission(&mut self, queue: u16) -> &mut SubmissionQueue {
        self.submission[usize::from(queue)]
            .as_mut()
            .expect("commands end before their queue")
    }

    pub(super) fn completion(&mut self, queue: u16) -> &mut CompletionQueue {
        self.completion[usize::from(queue)]
            .as_mut()
            .expect("outlives its submission queues")
    }

    /// Completes the commands of a submission queue that is deleted.
    pub(super) fn abort_commands(&mut self, bus: Bus<'_>, queue: u16) {
        let outstanding = self.backlog.take(|completion| completion.queue == queue);
        let mut cids: Vec<u16> = outstanding
            .iter()
            .map(|completion| completion.entry.cid.get())
            .collect();
        self.unfinished.retain(|unfinished| {
            if unfinished.queue == queue {
                cids.push(unfinished.command.entry().cid.get());
            }
            unfinished.queue != queue
        });
        for cid in cids {
            self.release(queue);
            let reply = Reply::of(Status::ABORTED_SQ_DELETION);
            self.post(bus, queue, cid, &reply);
        }
        assert!(
            self.unfinished.iter().all(|unfinished| unfinished.queue != queue),
            "no command outlives its queue"
        );
    }
}
