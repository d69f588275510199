//! Register accesses of the host in BAR0, and the effects of resets.

use nvme_spec::register::{self, Aqa, Property};
use ssd::Nanos;

use super::{
    AdminQueueRegisters, Bus, CompletionQueue, DOORBELL_BYTES, PAGE_BYTES, PcieController, REGISTER_BYTES,
    SubmissionQueue,
};
use crate::controller::{DoorbellError, PropertyEffect};
use crate::subsystem::Subsystem;

impl PcieController {
    /// Reads registers. Unknown offsets read as 0. So do doorbells, which hosts must not read.
    pub fn read_register(&self, subsystem: &Subsystem, offset: u64, data: &mut [u8]) {
        for (at, byte) in (offset..).zip(data) {
            let dword = match u32::try_from(at & !3) {
                Ok(dword) if at < REGISTER_BYTES => self.register(subsystem, dword),
                _ => 0,
            };
            *byte = dword.to_le_bytes()[(at % 4) as usize];
        }
    }

    fn register(&self, subsystem: &Subsystem, offset: u32) -> u32 {
        let high = |value: u64| (value >> 32) as u32;
        let AdminQueueRegisters { attributes, submission_base, completion_base, interrupt_mask } = self.registers;
        match offset {
            register::INTMS | register::INTMC => interrupt_mask,
            register::AQA => attributes,
            register::ASQ => submission_base as u32,
            register::ACQ => completion_base as u32,
            offset if offset == register::ASQ + 4 => high(submission_base),
            offset if offset == register::ACQ + 4 => high(completion_base),
            offset if offset == register::CAP + 4 => high(subsystem.property_get(self.id, Property::Cap)),
            offset => match Property::from_u32(offset) {
                Some(property) => subsystem.property_get(self.id, property) as u32,
                None => 0,
            },
        }
    }

    /// Writes a register or a doorbell with an aligned access of 4 or 8 bytes. The standard leaves
    /// other writes undefined, and they are ignored here.
    pub fn write_register(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos, offset: u64, data: &[u8]) {
        if !offset.is_multiple_of(4) || !matches!(data.len(), 4 | 8) {
            return;
        }
        for (dword, bytes) in (offset..).step_by(4).zip(data.chunks_exact(4)) {
            let value = u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
            match u32::try_from(dword) {
                Ok(offset) if dword < REGISTER_BYTES => self.set_register(subsystem, bus, now, offset, value),
                _ => self.ring(bus, dword - REGISTER_BYTES, value),
            }
        }
    }

    /// Stores a doorbell value that arrived as a message. The next poll of the doorbells applies
    /// it, like a direct write.
    fn ring(&mut self, bus: Bus<'_>, offset: u64, value: u32) {
        if offset >= DOORBELL_BYTES || !self.running {
            return;
        }
        let index = (offset / 4) as usize;
        let queue = index / 2;
        let exists = match index % 2 {
            0 => self.submission.get(queue).is_some_and(Option::is_some),
            _ => self.completion.get(queue).is_some_and(Option::is_some),
        };
        if exists {
            bus.doorbells.store(index, value);
        } else {
            self.doorbell_errors.push(DoorbellError::Register);
        }
    }

    fn set_register(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, now: Nanos, offset: u32, value: u32) {
        let set_low = |register: &mut u64| *register = *register & !0xffff_ffff | u64::from(value);
        let set_high = |register: &mut u64| *register = *register & 0xffff_ffff | u64::from(value) << 32;
        // The admin queue's registers must not change while the queue exists.
        let enabled = subsystem.controller(self.id).cc.en();
        match offset {
            register::INTMS => self.registers.interrupt_mask |= value,
            register::INTMC => self.registers.interrupt_mask &= !value,
            register::AQA if !enabled => self.registers.attributes = value,
            register::ASQ if !enabled => set_low(&mut self.registers.submission_base),
            register::ACQ if !enabled => set_low(&mut self.registers.completion_base),
            offset if offset == register::ASQ + 4 && !enabled => set_high(&mut self.registers.submission_base),
            offset if offset == register::ACQ + 4 && !enabled => set_high(&mut self.registers.completion_base),
            register::CC | register::CSTS | register::NSSR => {
                let property = Property::from_u32(offset).expect("one of the three");
                let effect = subsystem.property_set(now, self.id, property, u64::from(value));
                self.follow(subsystem, bus, effect);
            }
            _ => {}
        }
    }

    fn follow(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>, effect: PropertyEffect) {
        match effect {
            PropertyEffect::None => {}
            PropertyEffect::Enabled => self.start(subsystem, bus),
            PropertyEffect::Reset => self.clear(bus),
            PropertyEffect::Shutdown => match subsystem.flush_handle() {
                Some(durable) => self.backlog.shut_down(durable),
                None => subsystem.finish_shutdown(self.id),
            },
            PropertyEffect::SubsystemReset => {
                self.clear(bus);
                reset_all_controllers(subsystem);
            }
        }
    }

    fn start(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>) {
        self.clear(bus);
        let attributes = Aqa::from_bits(self.registers.attributes);
        let (submission, completion) = (self.registers.submission_base, self.registers.completion_base);
        let usable = |base: u64, size: u16| base != 0 && base.is_multiple_of(PAGE_BYTES) && size > 0;
        if !usable(submission, attributes.asqs()) || !usable(completion, attributes.acqs()) {
            let csts = &mut subsystem.controllers.get_mut(self.id).csts;
            csts.set_rdy(false);
            csts.set_cfs(true);
            return;
        }
        self.set_submission(0, Some(SubmissionQueue::new(submission, attributes.asqs() + 1, 0)));
        // The admin completion queue always has interrupts, on vector 0.
        let mut queue = CompletionQueue::new(completion, attributes.acqs() + 1, Some(0));
        queue.users = 1;
        self.completion[0] = Some(queue);
        self.running = true;
        assert!(subsystem.controller(self.id).is_ready(), "only an enabled controller has queues");
        assert_eq!(self.submission_end, 1, "the admin queue is the only one at first");
    }

    /// A reset without a register write, such as a function level reset, a bus reset or a lost
    /// client. The admin queue's registers are reset too.
    pub fn reset_function(&mut self, subsystem: &mut Subsystem, bus: Bus<'_>) {
        self.clear(bus);
        self.registers = AdminQueueRegisters::default();
        subsystem.reset_controller(self.id);
        assert!(!self.running && self.submission_end == 0, "no queue outlives a reset");
    }
}

/// NVM Subsystem Reset. It wakes the other transports, which check
/// [`Subsystem::is_subsystem_reset`].
fn reset_all_controllers(subsystem: &mut Subsystem) {
    let ids: Vec<u16> = subsystem.controllers().map(|controller| controller.id).collect();
    for id in ids {
        subsystem.reset_controller(id);
        let controller = subsystem.controllers.get_mut(id);
        controller.csts.set_nssro(true);
        controller.wake();
    }
}
