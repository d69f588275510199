//! The admin commands that only PCI Express has: I/O queues and shadow doorbells.

use nvme_spec::command::{
    CreateIoCompletionQueueCdw11, CreateIoSubmissionQueueCdw11, CreateQueueCdw10, DeleteQueueCdw10, SetFeaturesCdw10,
    SubmissionEntry,
};
use nvme_spec::feature::NumberOfQueues;
use nvme_spec::{AdminOpcode, FeatureId, Status};

use super::{
    Bus, CompletionQueue, PAGE_BYTES, PcieController, ShadowDoorbells, SubmissionQueue, head_index, tail_index,
};
use crate::controller::QUEUE_ENTRIES_MAX;
use crate::error::{Failure, Parameter};
use crate::subsystem::{Reply, Subsystem};

/// CC.IOSQES of 64-byte entries.
const SUBMISSION_ENTRY_SIZE: u8 = 6;
/// CC.IOCQES of 16-byte entries.
const COMPLETION_ENTRY_SIZE: u8 = 4;

impl PcieController {
    /// Carries out an admin command if it is one of PCI Express; `None` if it is not.
    pub(super) fn execute_queue_command(
        &mut self,
        subsystem: &mut Subsystem,
        bus: Bus<'_>,
        entry: &SubmissionEntry,
    ) -> Result<Option<Reply>, Failure> {
        let Some(opcode) = AdminOpcode::from_u8(entry.opcode) else {
            return Ok(None);
        };
        if opcode == AdminOpcode::SetFeatures {
            return self.check_number_of_queues(entry).map(|()| None);
        }
        if !is_queue_command(opcode) {
            return Ok(None);
        }
        subsystem.check_entry(self.id, entry)?;
        match opcode {
            AdminOpcode::CreateIoCompletionQueue => self.create_completion_queue(subsystem, bus, entry)?,
            AdminOpcode::CreateIoSubmissionQueue => self.create_submission_queue(subsystem, bus, entry)?,
            AdminOpcode::DeleteIoSubmissionQueue => self.delete_submission_queue(bus, entry)?,
            AdminOpcode::DeleteIoCompletionQueue => self.delete_completion_queue(entry)?,
            AdminOpcode::DoorbellBufferConfig => self.configure_shadow_doorbells(bus, entry)?,
            _ => unreachable!("is_queue_command knows no other"),
        }
        Ok(Some(Reply::success(0)))
    }

    /// The number of queues cannot change while there are I/O queues (Base Specification, "Number of Queues").
    fn check_number_of_queues(&self, entry: &SubmissionEntry) -> Result<(), Failure> {
        let feature = SetFeaturesCdw10::from_bits(entry.cdw10.get()).fid();
        let io_queues = self.completion.iter().skip(1).any(Option::is_some);
        if feature == FeatureId::NumberOfQueues.code() && io_queues {
            let cause = "the number of queues cannot change while I/O queues exist";
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        }
        Ok(())
    }

    /// I/O submission and completion queues that the host may create: what Set Features granted, or all.
    fn queues_granted(&self, subsystem: &Subsystem) -> (u16, u16) {
        match subsystem
            .controller(self.id)
            .features
            .value(FeatureId::NumberOfQueues, 0)
        {
            Some(value) => {
                let granted = NumberOfQueues::from_bits(value);
                (granted.nsq() + 1, granted.ncq() + 1)
            }
            None => {
                let all = subsystem.config().io_queues_max;
                (all, all)
            }
        }
    }

    fn create_completion_queue(
        &mut self,
        subsystem: &Subsystem,
        bus: Bus<'_>,
        entry: &SubmissionEntry,
    ) -> Result<(), Failure> {
        let dword10 = CreateQueueCdw10::from_bits(entry.cdw10.get());
        let dword11 = CreateIoCompletionQueueCdw11::from_bits(entry.cdw11.get());
        let queue = dword10.qid();
        let (_, granted) = self.queues_granted(subsystem);
        if !self.is_free(&self.completion, queue, granted) {
            return Err(invalid_queue(
                queue,
                "cannot be created: it exists, or is 0, or was not granted",
            ));
        }
        if subsystem.controller(self.id).cc.iocqes() != COMPLETION_ENTRY_SIZE {
            return Err(invalid_size("CC.IOCQES is not 4"));
        }
        let (base, size) = ring(entry, dword10, dword11.pc())?;
        if dword11.iv() >= self.vectors {
            let cause = format!(
                "interrupt vector {} does not exist, there are {}",
                dword11.iv(),
                self.vectors
            );
            return Err(Failure::new(Status::INVALID_INTERRUPT_VECTOR, cause).at(Parameter::dword(11, 16)));
        }
        let vector = dword11.ien().then_some(dword11.iv());
        bus.doorbells.store(head_index(queue), 0);
        self.completion[usize::from(queue)] = Some(CompletionQueue::new(base, size, vector));
        Ok(())
    }

    fn create_submission_queue(
        &mut self,
        subsystem: &Subsystem,
        bus: Bus<'_>,
        entry: &SubmissionEntry,
    ) -> Result<(), Failure> {
        let dword10 = CreateQueueCdw10::from_bits(entry.cdw10.get());
        let dword11 = CreateIoSubmissionQueueCdw11::from_bits(entry.cdw11.get());
        let (queue, target) = (dword10.qid(), dword11.cqid());
        let (granted, completion_granted) = self.queues_granted(subsystem);
        if !self.is_free(&self.submission, queue, granted) {
            return Err(invalid_queue(
                queue,
                "cannot be created: it exists, or is 0, or was not granted",
            ));
        }
        if target == 0 || target > completion_granted {
            let cause = format!("completion queue {target} cannot be used by an I/O submission queue");
            return Err(Failure::new(Status::INVALID_QUEUE_IDENTIFIER, cause).at(Parameter::dword(11, 16)));
        }
        if !exists(&self.completion, target) {
            let cause = format!("completion queue {target} was not created");
            return Err(Failure::new(Status::COMPLETION_QUEUE_INVALID, cause).at(Parameter::dword(11, 16)));
        }
        if subsystem.controller(self.id).cc.iosqes() != SUBMISSION_ENTRY_SIZE {
            return Err(invalid_size("CC.IOSQES is not 6"));
        }
        let (base, size) = ring(entry, dword10, dword11.pc())?;
        bus.doorbells.store(tail_index(queue), 0);
        self.set_submission(queue, Some(SubmissionQueue::new(base, size, target)));
        self.completion[usize::from(target)]
            .as_mut()
            .expect("found above")
            .users += 1;
        Ok(())
    }

    /// Outstanding commands of the queue are aborted; those that were not fetched never existed for us.
    fn delete_submission_queue(&mut self, bus: Bus<'_>, entry: &SubmissionEntry) -> Result<(), Failure> {
        let queue = DeleteQueueCdw10::from_bits(entry.cdw10.get()).qid();
        if queue == 0 || !exists(&self.submission, queue) {
            return Err(invalid_queue(queue, "does not exist, or is the admin queue"));
        }
        self.abort_commands(bus, queue);
        let target = self.submission[usize::from(queue)]
            .as_ref()
            .expect("found above")
            .completion_queue;
        self.set_submission(queue, None);
        self.completion[usize::from(target)]
            .as_mut()
            .expect("outlives its submission queues")
            .users -= 1;
        Ok(())
    }

    fn delete_completion_queue(&mut self, entry: &SubmissionEntry) -> Result<(), Failure> {
        let queue = DeleteQueueCdw10::from_bits(entry.cdw10.get()).qid();
        if queue == 0 || !exists(&self.completion, queue) {
            return Err(invalid_queue(queue, "does not exist, or is the admin queue"));
        }
        if self.completion[usize::from(queue)]
            .as_ref()
            .is_some_and(|completion| completion.users > 0)
        {
            let cause = format!("completion queue {queue} still has submission queues");
            return Err(Failure::new(Status::INVALID_QUEUE_DELETION, cause).at(Parameter::dword(10, 0)));
        }
        self.completion[usize::from(queue)] = None;
        Ok(())
    }

    /// Doorbell Buffer Config: from here on the doorbells of I/O queues are read in host memory.
    fn configure_shadow_doorbells(&mut self, bus: Bus<'_>, entry: &SubmissionEntry) -> Result<(), Failure> {
        for (address, dword) in [(entry.prp1(), 6), (entry.prp2(), 8)] {
            let usable = address != 0 && address.is_multiple_of(PAGE_BYTES) && bus.memory.load(address).is_ok();
            if !usable {
                let cause = format!("{address:#x} is not the address of a page for doorbells");
                return Err(Failure::invalid_field(Parameter::dword(dword, 0), cause));
            }
        }
        self.shadow = Some(ShadowDoorbells {
            values: entry.prp1(),
            event_indexes: entry.prp2(),
        });
        Ok(())
    }

    /// Whether a queue may be created.
    fn is_free<Q>(&self, queues: &[Option<Q>], queue: u16, granted: u16) -> bool {
        queue != 0 && queue <= granted && queues.get(usize::from(queue)).is_some_and(Option::is_none)
    }
}

fn is_queue_command(opcode: AdminOpcode) -> bool {
    matches!(
        opcode,
        AdminOpcode::CreateIoCompletionQueue
            | AdminOpcode::CreateIoSubmissionQueue
            | AdminOpcode::DeleteIoSubmissionQueue
            | AdminOpcode::DeleteIoCompletionQueue
            | AdminOpcode::DoorbellBufferConfig
    )
}

fn exists<Q>(queues: &[Option<Q>], queue: u16) -> bool {
    queues.get(usize::from(queue)).is_some_and(Option::is_some)
}

/// Where a new ring lies, and its entries.
fn ring(entry: &SubmissionEntry, dword10: CreateQueueCdw10, contiguous: bool) -> Result<(u64, u16), Failure> {
    let size = u32::from(dword10.qsize()) + 1;
    if !(2..=QUEUE_ENTRIES_MAX).contains(&size) {
        return Err(invalid_size(format!(
            "{size} entries; there must be 2 to {QUEUE_ENTRIES_MAX}"
        )));
    }
    if !contiguous {
        let cause = "queues must be physically contiguous (CAP.CQR)";
        return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
    }
    let base = entry.prp1();
    if !base.is_multiple_of(PAGE_BYTES) {
        let cause = format!("the queue's address {base:#x} is not page aligned");
        return Err(Failure::new(Status::PRP_OFFSET_INVALID, cause).at(Parameter::DATA_POINTER));
    }
    if base == 0 {
        return Err(Failure::invalid_field(
            Parameter::DATA_POINTER,
            "the queue's address is 0",
        ));
    }
    Ok((base, size as u16))
}

fn invalid_queue(queue: u16, why: &str) -> Failure {
    let cause = format!("queue {queue} {why}");
    Failure::new(Status::INVALID_QUEUE_IDENTIFIER, cause).at(Parameter::dword(10, 0))
}

fn invalid_size(cause: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::new(Status::INVALID_QUEUE_SIZE, cause).at(Parameter::dword(10, 16))
}
