//! Commands on PCI Express: queues, doorbells, deletion of queues and asynchronous completions.

use super::{CommandReport, Run};
use crate::simulation::apply::{Check, Success, Way, equal};
use crate::simulation::front::{Entry, Front, PlacedCommand};
use crate::simulation::judge::Submission;
use crate::simulation::model::{Completion, status};
use crate::simulation::operation::{Command, QueueCommand, SetFeature};

impl Run {
    /// Runs a closure with the front of a controller.
    pub(super) fn with_front(&mut self, controller: u16, act: impl FnOnce(&mut Run, &mut Front) -> Check) -> Check {
        let mut front = self.fronts.remove(&controller).expect("a controller with queues");
        let result = act(self, &mut front);
        for seen in std::mem::take(&mut front.seen) {
            self.coverage.note(seen);
        }
        self.fronts.insert(controller, front);
        result
    }

    /// Executes the queued commands of all controllers but one.
    pub(super) fn flush_others(&mut self, except: Option<u16>) -> Check {
        let ids: Vec<u16> = self.fronts.keys().copied().filter(|&id| Some(id) != except).collect();
        for id in ids {
            self.with_front(id, |run, front| run.flush(front, id))?;
        }
        Ok(())
    }

    /// Executes the queued commands of a controller.
    fn flush(&mut self, front: &mut Front, controller: u16) -> Check {
        if front.sent.is_empty() {
            return Ok(());
        }
        let now = self.model.now;
        front.ring(&mut self.subsystem, now, front.queue);
        let entries = front.work(&mut self.subsystem, now)?;
        let sent = std::mem::take(&mut front.sent);
        self.check_completions(front, controller, sent, entries)
    }

    /// Adds a command to a queue, and executes it unless it should wait for others.
    pub(super) fn submit(
        &mut self,
        front: &mut Front,
        controller: u16,
        mut submission: Submission,
        waits: bool,
    ) -> Check {
        if !self.model.controllers[&controller].ready {
            return Ok(());
        }
        let admin = submission.command.is_admin();
        if let Command::Other { admin: true, opcode: 0x00 | 0x01 | 0x04 | 0x05 | 0x7c, .. } = submission.command {
            // These opcodes are queue commands, which have a separate form.
            return Ok(());
        }
        let cid = submission.cid;
        let outstanding = front.sent.iter().any(|sent| sent.submission.cid == cid);
        let requested = self.model.controllers[&controller].requests.contains(&cid);
        if outstanding || requested && submission.command != Command::AsyncEvent {
            // A host does not use an identifier twice.
            return Ok(());
        }
        if !admin {
            self.make_io_queue(front, controller)?;
        }
        let io_queues = front.io_queues();
        let queue = if admin { 0 } else { io_queues[usize::from(cid) % io_queues.len()] };
        if admin || front.queue != queue || !front.has_room(queue) {
            self.flush(front, controller)?;
        }
        submission.queue = queue;
        submission.queues = Some(self.judge_queues(front, controller, &submission.command));
        let transfer = self.model.transfer(controller, &submission);
        front.put(queue, submission, transfer);
        if admin || !waits { self.flush(front, controller) } else { Ok(()) }
    }

    /// I/O submission and completion queues that a host may have.
    fn granted(&self, controller: u16) -> (u16, u16) {
        let set = self.model.controllers[&controller].features.get(&(7, 0)).copied();
        let value = set.unwrap_or_else(|| self.model.default_value(7, 0));
        (value as u16 + 1, (value >> 16) as u16 + 1)
    }

    fn judge_queues(&self, front: &Front, controller: u16, command: &Command) -> Vec<u16> {
        match command {
            Command::Queue(command) => front.judge(command, self.granted(controller)),
            // The number of queues is fixed after the first queue exists.
            Command::SetFeature(SetFeature { feature: 7, .. }) if !front.io_completions().is_empty() => {
                vec![status::SEQUENCE_ERROR]
            }
            _ => Vec::new(),
        }
    }

    /// A host creates queues before its first I/O.
    fn make_io_queue(&mut self, front: &mut Front, controller: u16) -> Check {
        if !front.io_queues().is_empty() {
            return Ok(());
        }
        let vector = self.model.now as u16 % (self.model.drive.io_queues_max + 1);
        if front.io_completions().is_empty() {
            let command = QueueCommand::CreateCompletion {
                id: 1,
                entries: 16,
                vector,
                interrupts: true,
                contiguous: true,
                misaligned: false,
            };
            self.queue_command(front, controller, command)?;
        }
        let completion = front.io_completions()[0];
        let command =
            QueueCommand::CreateSubmission { id: 1, entries: 16, completion, contiguous: true, misaligned: false };
        self.queue_command(front, controller, command)
    }

    fn queue_command(&mut self, front: &mut Front, controller: u16, command: QueueCommand) -> Check {
        self.next_cid = self.next_cid.wrapping_add(1);
        let submission = self.submission(controller, 0x8000 | self.next_cid & 0x3fff, &Command::Queue(command));
        self.submit(front, controller, submission, false)
    }

    /// Checks the completions of commands in their execution order. The remaining completions are
    /// events.
    fn check_completions(
        &mut self,
        front: &mut Front,
        controller: u16,
        sent: Vec<PlacedCommand>,
        mut entries: Vec<Entry>,
    ) -> Check {
        for sent in sent {
            let (queue, cid) = (sent.submission.queue, sent.submission.cid);
            match entries.iter().position(|entry| (entry.queue, entry.cid) == (queue, cid)) {
                None => self.hold(controller, &sent.submission)?,
                Some(index) => {
                    let entry = entries.remove(index);
                    self.check_completion(front, controller, &sent, entry)?;
                }
            }
        }
        self.note_events(controller, entries)
    }

    fn check_completion(&mut self, front: &mut Front, controller: u16, sent: &PlacedCommand, entry: Entry) -> Check {
        let report = CommandReport {
            status: entry.status,
            do_not_retry: entry.do_not_retry,
            more: entry.more,
            result: entry.result,
            durable: entry.synced,
        };
        let (way, ..) = self.model.transfer(controller, &sent.submission);
        let data = if way == Way::ToHost { front.data_of(sent) } else { Vec::new() };
        self.check_outcome(controller, &sent.submission, report, data)?;
        if let Command::Queue(command) = &sent.submission.command
            && entry.status == 0
        {
            front.apply(command);
        }
        Ok(())
    }

    /// Handles completions of event requests, which belong to no command that was just executed.
    fn note_events(&mut self, controller: u16, entries: Vec<Entry>) -> Check {
        for entry in entries {
            equal("queue of an asynchronous completion", entry.queue, 0)?;
            self.events.entry(controller).or_default().push(Completion {
                cid: entry.cid,
                status: entry.status,
                do_not_retry: entry.do_not_retry,
                result: entry.result,
            });
        }
        Ok(())
    }

    /// Deletes a queue with outstanding commands. See [`Operation::DeleteInFlight`].
    pub(super) fn delete_in_flight(&mut self, front: &mut Front, controller: u16, how: u8) -> Check {
        let queue = front.queue;
        if queue == 0 || front.sent.is_empty() {
            return Ok(());
        }
        let now = self.model.now;
        let command = QueueCommand::DeleteSubmission { id: queue };
        if how == 0 || !front.can_complete_all() {
            // The controller never saw these commands.
            front.sent.clear();
            self.coverage.note("queue deleted: commands not announced");
            return self.queue_command(front, controller, command);
        }
        front.ring(&mut self.subsystem, now, queue);
        let announced = std::mem::take(&mut front.sent);
        let mut held = Vec::new();
        if how == 2 {
            let mut entries = front.process(&mut self.subsystem, now)?;
            for sent in &announced {
                let place = entries.iter().position(|entry| (entry.queue, entry.cid) == (queue, sent.submission.cid));
                match place.map(|index| entries.remove(index)) {
                    Some(entry) => self.check_completion(front, controller, sent, entry)?,
                    None => held.push(self.carry_out_held(controller, sent)?),
                }
            }
            self.note_events(controller, entries)?;
        }
        self.coverage.note(if how == 1 {
            "queue deleted: commands announced"
        } else {
            "queue deleted: commands carried out"
        });
        self.next_cid = self.next_cid.wrapping_add(1);
        let cid = 0x8000 | self.next_cid & 0x3fff;
        let mut submission = self.submission(controller, cid, &Command::Queue(command));
        submission.queues = Some(Vec::new());
        front.put(0, submission, (Way::None, 0, 0));
        front.ring(&mut self.subsystem, now, 0);
        let entries = front.work(&mut self.subsystem, now)?;
        let (mut of_queue, others): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| entry.queue == queue);
        if how == 1 {
            held = self.check_overtaken_completions(front, controller, &announced, &mut of_queue)?;
        }
        let found: Vec<(u16, u16, bool)> =
            of_queue.iter().map(|entry| (entry.cid, entry.status, entry.do_not_retry)).collect();
        let expected = held.into_iter().map(|cid| (cid, status::ABORTED_SQ_DELETION, false)).collect();
        equal("completions of the deleted queue", found, expected)?;
        let sent = std::mem::take(&mut front.sent);
        self.check_completions(front, controller, sent, others)
    }

    /// The controller chooses the order of queues (NVM Express Base 2.1, round robin arbitration).
    /// It may execute announced commands, from the first one on, before the deletion of their
    /// queue. Takes their completions out of `of_queue`. Returns the commands that wait for
    /// durability.
    fn check_overtaken_completions(
        &mut self,
        front: &mut Front,
        controller: u16,
        announced: &[PlacedCommand],
        of_queue: &mut Vec<Entry>,
    ) -> Result<Vec<u16>, String> {
        let mut held = Vec::new();
        for sent in announced {
            let Some(place) = of_queue.iter().position(|entry| entry.cid == sent.submission.cid) else {
                break;
            };
            if of_queue[place].status == status::ABORTED_SQ_DELETION {
                held.push(self.carry_out_held(controller, sent)?);
            } else {
                let entry = of_queue.remove(place);
                self.check_completion(front, controller, sent, entry)?;
            }
        }
        Ok(held)
    }

    /// Executes a command that waits for durability. Its completion never comes, because its queue
    /// is deleted.
    fn carry_out_held(&mut self, controller: u16, sent: &PlacedCommand) -> Result<u16, String> {
        equal("objections to a command that waits", self.model.judge(controller, &sent.submission).must, Vec::new())?;
        let success = Success { result: 0, data: Vec::new(), durable: true };
        self.model.apply(controller, &sent.submission, &success)?;
        self.coverage.note(format!("status {:03x}h", status::ABORTED_SQ_DELETION));
        Ok(sent.submission.cid)
    }

    /// Asynchronous completions that a host received.
    pub(super) fn take_events(&mut self, controller: u16) -> Result<Vec<Completion>, String> {
        if self.fronts.contains_key(&controller) {
            let now = self.model.now;
            self.with_front(controller, |run, front| {
                let entries = front.work(&mut run.subsystem, now)?;
                run.note_events(controller, entries)
            })?;
            return Ok(self.events.remove(&controller).unwrap_or_default());
        }
        let found = self.subsystem.async_completions(controller);
        let completion = |its: nvme::controller::AsyncCompletion| Completion {
            cid: its.cid,
            status: its.reply.status.to_u16(),
            do_not_retry: its.reply.do_not_retry,
            result: its.reply.result,
        };
        Ok(found.into_iter().map(completion).collect())
    }
}
