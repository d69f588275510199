//! Effects of faults on the drive: commands fail, drive conditions change, and unflushed data is
//! lost.

use nvme_spec::Status;
use thiserror::Error;

use super::{CommandFate, DriveConditions, FaultDecision, FaultPlan, FaultsReport, PowerLossCallback};
use crate::error::Failure;
use crate::io;
use crate::subsystem::Subsystem;

/// Reason why this drive cannot carry out a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnsupportedFault {
    /// A power loss would have no data to destroy.
    #[error(
        "a power_loss fault needs data that outlives the server. Serve the drive with --data FILE, or remove the fault"
    )]
    NoCache,
}

impl Subsystem {
    /// Sets a fault plan, from its beginning. `None` removes the plan. Stuck commands stay stuck.
    ///
    /// # Errors
    /// The drive cannot carry out the plan. The previous plan stays active.
    pub fn set_faults(&mut self, now: ssd::Nanos, plan: Option<FaultPlan>) -> Result<(), UnsupportedFault> {
        self.clock.advance(now);
        let cache_bytes = plan.as_ref().filter(|plan| plan.loses_power()).map(|plan| plan.write_cache_bytes);
        if cache_bytes.is_some() && !self.media.has_write_cache() {
            return Err(UnsupportedFault::NoCache);
        }
        let before = self.faults.conditions();
        self.media.set_cache(cache_bytes);
        self.faults.set_plan(plan, self.clock.now());
        self.change_conditions(&before);
        self.continue_faults();
        Ok(())
    }

    /// Report on the current plan, or `None` without a plan.
    pub fn faults(&self) -> Option<FaultsReport> {
        self.faults.report()
    }

    /// Sets the callback for a power loss. After the loss no command completes and no data is
    /// stored.
    pub fn on_power_loss(&mut self, callback: PowerLossCallback) {
        self.faults.on_power_loss = Some(callback);
    }

    /// True if power was lost.
    pub fn has_lost_power(&self) -> bool {
        self.faults.has_lost_power
    }

    pub(crate) fn continue_faults(&mut self) {
        if let Some(decision) = self.faults.tick(self.clock.now()) {
            self.apply_decision(&decision);
        }
    }

    /// Decides on an I/O command before its execution, and applies the effects on the drive.
    pub(crate) fn apply_io_faults(&mut self, command: &io::IoCommand, opcode: u8, data: &[u8]) -> FaultDecision {
        let decision = self.faults.decide(self.clock.now(), command, opcode, data);
        self.apply_decision(&decision);
        if decision.verdict == CommandFate::PowerLoss {
            self.faults.lose_power(&mut self.media);
        }
        decision
    }

    pub(crate) fn fault_failure(&mut self, status: Status, fault: &str, lba: Option<u64>) -> Failure {
        let is_of_media = matches!(status, Status::UNRECOVERED_READ_ERROR | Status::WRITE_FAULT);
        self.state.smart.media_errors += u64::from(is_of_media);
        let failure = Failure::new(status, format!("injected by the fault plan ({fault})")).retryable();
        match lba {
            Some(lba) => failure.lba(lba),
            None => failure,
        }
    }

    fn apply_decision(&mut self, decision: &FaultDecision) {
        if let Some(before) = &decision.before {
            self.change_conditions(before);
        }
        for _ in 0..decision.overflows {
            self.overflow_host_events();
        }
    }

    fn change_conditions(&mut self, before: &DriveConditions) {
        let now = self.faults.conditions();
        for &nsid in before.lost.symmetric_difference(&now.lost) {
            if let Some(namespace) = self.state.namespaces.find_mut(nsid) {
                namespace.lost = now.lost.contains(&nsid);
                self.controllers.note_namespace_changed(nsid, &namespace.attached);
            }
        }
        self.note_health();
    }
}
