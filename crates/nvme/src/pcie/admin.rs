//! Admin commands of PCI Express alone, which manage I/O queues and shadow doorbells.

use nvme_spec::command::{
    CreateIoCompletionQueueCdw11, CreateIoSubmissionQueueCdw11, CreateQueueCdw10, DeleteQueueCdw10, SubmissionEntry,
};
use nvme_spec::{AdminOpcode, Status};

use super::{
    Bus, CompletionQueue, PAGE_BYTES, PcieController, ShadowDoorbells, SubmissionQueue, head_index, tail_index,
};
use crate::controller::QUEUE_ENTRIES_MAX;
use crate::error::{Failure, Parameter};
use crate::subsystem::Subsystem;

/// CC.IOSQES of 64-byte entries.
const SUBMISSION_ENTRY_SIZE: u8 = 6;
/// CC.IOCQES of 16-byte entries.
const COMPLETION_ENTRY_SIZE: u8 = 4;

/// A command about queues with decoded fields. It moves no data.
#[derive(Debug)]
pub(super) enum QueueCommand {
    CreateCompletion {
        queue: u16,
        ring: QueueRing,
        vector: u16,
        interrupts: bool,
    },
    CreateSubmission {
        queue: u16,
        ring: QueueRing,
        /// Completion queue of the queue's commands.
        target: u16,
    },
    DeleteSubmission(u16),
    DeleteCompletion(u16),
    SetShadowDoorbells(ShadowDoorbells),
}

#[derive(Debug)]
pub(super) struct QueueRing {
    base: u64,
    entries: u32,
    contiguous: bool,
}

pub(super) fn parse(entry: &SubmissionEntry) -> Option<QueueCommand> {
    let dword10 = CreateQueueCdw10::from_bits(entry.cdw10.get());
    let ring = |contiguous| QueueRing { base: entry.prp1(), entries: u32::from(dword10.qsize()) + 1, contiguous };
    let deleted = DeleteQueueCdw10::from_bits(entry.cdw10.get()).qid();
    Some(match AdminOpcode::from_u8(entry.opcode)? {
        AdminOpcode::CreateIoCompletionQueue => {
            let dword11 = CreateIoCompletionQueueCdw11::from_bits(entry.cdw11.get());
            QueueCommand::CreateCompletion {
                queue: dword10.qid(),
                ring: ring(dword11.pc()),
                vector: dword11.iv(),
                interrupts: dword11.ien(),
            }
        }
        AdminOpcode::CreateIoSubmissionQueue => {
            let dword11 = CreateIoSubmissionQueueCdw11::from_bits(entry.cdw11.get());
            QueueCommand::CreateSubmission { queue: dword10.qid(), ring: ring(dword11.pc()), target: dword11.cqid() }
        }
        AdminOpcode::DeleteIoSubmissionQueue => QueueCommand::DeleteSubmission(deleted),
        AdminOpcode::DeleteIoCompletionQueue => QueueCommand::DeleteCompletion(deleted),
        AdminOpcode::DoorbellBufferConfig => {
            QueueCommand::SetShadowDoorbells(ShadowDoorbells { values: entry.prp1(), event_indexes: entry.prp2() })
        }
        _ => return None,
    })
}

impl PcieController {
    pub(super) fn execute_queue_command(
        &mut self,
        subsystem: &Subsystem,
        bus: Bus<'_>,
        command: &QueueCommand,
    ) -> Result<(), Failure> {
        match command {
            QueueCommand::CreateCompletion { queue, ring, vector, interrupts } => {
                self.create_completion_queue(subsystem, bus, *queue, ring, *vector, *interrupts)
            }
            QueueCommand::CreateSubmission { queue, ring, target } => {
                self.create_submission_queue(subsystem, bus, *queue, ring, *target)
            }
            QueueCommand::DeleteSubmission(queue) => self.delete_submission_queue(bus, *queue),
            QueueCommand::DeleteCompletion(queue) => self.delete_completion_queue(*queue),
            QueueCommand::SetShadowDoorbells(shadow) => self.set_shadow_doorbells(bus, *shadow),
        }
    }

    pub(super) fn has_io_queues(&self) -> bool {
        self.completion.iter().skip(1).any(Option::is_some)
    }

    /// I/O submission and completion queues that the host may create. Set Features sets the limits,
    /// else all are allowed.
    fn queues_granted(&self, subsystem: &Subsystem) -> (u16, u16) {
        let all = subsystem.config().io_queues_max;
        subsystem.io_queues_granted(self.id).unwrap_or((all, all))
    }

    fn create_completion_queue(
        &mut self,
        subsystem: &Subsystem,
        bus: Bus<'_>,
        queue: u16,
        ring: &QueueRing,
        vector: u16,
        interrupts: bool,
    ) -> Result<(), Failure> {
        let (_, granted) = self.queues_granted(subsystem);
        check_free(&self.completion, queue, granted)?;
        if subsystem.controller(self.id).cc.iocqes() != COMPLETION_ENTRY_SIZE {
            return Err(invalid_size("CC.IOCQES is not 4"));
        }
        let (base, size) = ring.checked()?;
        if vector >= self.vectors {
            let cause = format!("interrupt vector {vector} does not exist. The controller has {}", self.vectors);
            return Err(Failure::new(Status::INVALID_INTERRUPT_VECTOR, cause).at(Parameter::dword(11, 16)));
        }
        bus.doorbells.store(head_index(queue), 0);
        let vector = interrupts.then_some(vector);
        let before = self.completion[usize::from(queue)].replace(CompletionQueue::new(base, size, vector));
        assert!(before.is_none(), "completion queue {queue} was free");
        Ok(())
    }

    fn create_submission_queue(
        &mut self,
        subsystem: &Subsystem,
        bus: Bus<'_>,
        queue: u16,
        ring: &QueueRing,
        target: u16,
    ) -> Result<(), Failure> {
        let (granted, completion_granted) = self.queues_granted(subsystem);
        check_free(&self.submission, queue, granted)?;
        if target == 0 || target > completion_granted {
            let cause = format!("an I/O submission queue cannot use completion queue {target}");
            return Err(Failure::new(Status::INVALID_QUEUE_IDENTIFIER, cause).at(Parameter::dword(11, 16)));
        }
        if !exists(&self.completion, target) {
            let cause = format!("completion queue {target} does not exist");
            return Err(Failure::new(Status::COMPLETION_QUEUE_INVALID, cause).at(Parameter::dword(11, 16)));
        }
        if subsystem.controller(self.id).cc.iosqes() != SUBMISSION_ENTRY_SIZE {
            return Err(invalid_size("CC.IOSQES is not 6"));
        }
        let (base, size) = ring.checked()?;
        bus.doorbells.store(tail_index(queue), 0);
        self.set_submission(queue, Some(SubmissionQueue::new(base, size, target)));
        self.completion(target).users += 1;
        self.check_users(target);
        Ok(())
    }

    /// Aborts the outstanding commands of the queue. Unfetched commands are ignored.
    fn delete_submission_queue(&mut self, bus: Bus<'_>, queue: u16) -> Result<(), Failure> {
        check_deletable(&self.submission, queue)?;
        self.abort_commands(bus, queue);
        assert!(!self.backlog.holds(|completion| completion.queue == queue), "commands end before their queue");
        let target = self.submission(queue).completion_queue;
        self.set_submission(queue, None);
        self.completion(target).users -= 1;
        self.check_users(target);
        Ok(())
    }

    fn delete_completion_queue(&mut self, queue: u16) -> Result<(), Failure> {
        check_deletable(&self.completion, queue)?;
        let completion = self.completion(queue);
        if completion.users > 0 {
            let cause = format!("completion queue {queue} still has submission queues");
            return Err(Failure::new(Status::INVALID_QUEUE_DELETION, cause).at(Parameter::dword(10, 0)));
        }
        assert_eq!(completion.reserved, 0, "commands end before their queues");
        self.check_users(queue);
        self.completion[usize::from(queue)] = None;
        Ok(())
    }

    fn check_users(&self, queue: u16) {
        let users = self.submission.iter().flatten().filter(|its| its.completion_queue == queue);
        let expected = self.completion[usize::from(queue)].as_ref().map_or(0, |its| its.users);
        assert_eq!(users.count(), usize::from(expected), "users of completion queue {queue}");
    }

    /// Doorbell Buffer Config. From now on the doorbells of I/O queues are read from host memory.
    fn set_shadow_doorbells(&mut self, bus: Bus<'_>, shadow: ShadowDoorbells) -> Result<(), Failure> {
        for (address, dword) in [(shadow.values, 6), (shadow.event_indexes, 8)] {
            let usable = address != 0 && address.is_multiple_of(PAGE_BYTES) && bus.memory.load(address).is_ok();
            if !usable {
                let cause = format!("{address:#x} is not a page address for doorbells");
                return Err(Failure::invalid_field(Parameter::dword(dword, 0), cause));
            }
        }
        self.shadow = Some(shadow);
        Ok(())
    }
}

fn check_free<Q>(queues: &[Option<Q>], queue: u16, granted: u16) -> Result<(), Failure> {
    let is_free = queues.get(usize::from(queue)).is_some_and(Option::is_none);
    if queue == 0 || queue > granted || !is_free {
        return Err(invalid_queue(queue, "cannot be created. It exists already, is 0 or was not granted"));
    }
    Ok(())
}

fn check_deletable<Q>(queues: &[Option<Q>], queue: u16) -> Result<(), Failure> {
    if queue == 0 || !exists(queues, queue) {
        return Err(invalid_queue(queue, "does not exist or is the admin queue"));
    }
    Ok(())
}

fn exists<Q>(queues: &[Option<Q>], queue: u16) -> bool {
    queues.get(usize::from(queue)).is_some_and(Option::is_some)
}

impl QueueRing {
    fn checked(&self) -> Result<(u64, u16), Failure> {
        if !(2..=QUEUE_ENTRIES_MAX).contains(&self.entries) {
            let cause = format!("the queue has {} entries. It must have 2 to {QUEUE_ENTRIES_MAX}", self.entries);
            return Err(invalid_size(cause));
        }
        if !self.contiguous {
            let cause = "queues must be physically contiguous (CAP.CQR)";
            return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
        }
        if !self.base.is_multiple_of(PAGE_BYTES) {
            let cause = format!("the queue's address {:#x} is not page aligned", self.base);
            return Err(Failure::new(Status::PRP_OFFSET_INVALID, cause).at(Parameter::DATA_POINTER));
        }
        if self.base == 0 {
            return Err(Failure::invalid_field(Parameter::DATA_POINTER, "the queue's address is 0"));
        }
        Ok((self.base, self.entries as u16))
    }
}

fn invalid_queue(queue: u16, why: &str) -> Failure {
    Failure::new(Status::INVALID_QUEUE_IDENTIFIER, format!("queue {queue} {why}")).at(Parameter::dword(10, 0))
}

fn invalid_size(cause: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::new(Status::INVALID_QUEUE_SIZE, cause).at(Parameter::dword(10, 16))
}
