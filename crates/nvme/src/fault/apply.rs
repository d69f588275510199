//! The drive's part in its faults: commands fail, states show, data that was not flushed is lost.

use nvme_spec::Status;
use thiserror::Error;

use super::{Conditions, Decision, FaultsReport, OnPowerLoss, Plan, Verdict};
use crate::error::Failure;
use crate::io;
use crate::subsystem::Subsystem;

/// A plan that this drive cannot carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CannotFail {
    /// There is nothing that a power loss could take.
    #[error(
        "a power loss needs data that outlives the server; serve the drive with --data FILE, or leave the fault out"
    )]
    NoCache,
}

impl Subsystem {
    /// Has the drive fail as a plan says, from its beginning on; `None`: not any more. Commands that are stuck stay so.
    ///
    /// # Errors
    /// The drive cannot fail like that; what was planned before goes on.
    pub fn set_faults(&mut self, now: ssd::Nanos, plan: Option<Plan>) -> Result<(), CannotFail> {
        self.clock.advance(now);
        let cache_bytes = plan
            .as_ref()
            .filter(|plan| plan.loses_power())
            .map(|plan| plan.write_cache_bytes);
        if cache_bytes.is_some() && !self.media.has_write_cache() {
            return Err(CannotFail::NoCache);
        }
        let before = self.faults.conditions();
        self.media.set_cache(cache_bytes);
        self.faults.set_plan(plan, self.clock.now());
        self.change_conditions(&before);
        self.continue_faults();
        Ok(())
    }

    /// The plan and what has come of it; `None` without a plan.
    pub fn faults(&self) -> Option<FaultsReport> {
        self.faults.report()
    }

    /// Sets the function to call when power is lost. From then on no command completes and nothing is stored.
    pub fn on_power_loss(&mut self, tell: OnPowerLoss) {
        self.faults.set_on_power_loss(tell);
    }

    /// Whether power was lost.
    pub fn has_lost_power(&self) -> bool {
        self.faults.has_lost_power()
    }

    /// Time passed.
    pub(crate) fn continue_faults(&mut self) {
        if let Some(decision) = self.faults.tick(self.clock.now()) {
            self.follow(&decision);
        }
    }

    /// Decides on an I/O command that is about to be carried out, and does what that brings about for the drive.
    pub(crate) fn meet_fault(&mut self, command: &io::Command, opcode: u8, data: &[u8]) -> Decision {
        let decision = self.faults.decide(self.clock.now(), command, opcode, data);
        self.follow(&decision);
        if decision.verdict == Verdict::PowerLoss {
            self.faults.lose_power(&mut self.media);
        }
        decision
    }

    /// The failure of a command that meets an error.
    pub(crate) fn fault_failure(&mut self, status: Status, fault: &str, lba: Option<u64>) -> Failure {
        let is_of_media = matches!(status, Status::UNRECOVERED_READ_ERROR | Status::WRITE_FAULT);
        self.state.smart.media_errors += u64::from(is_of_media);
        let failure = Failure::new(status, format!("the fault plan wants it: {fault}")).retryable();
        match lba {
            Some(lba) => failure.lba(lba),
            None => failure,
        }
    }

    fn follow(&mut self, decision: &Decision) {
        if let Some(before) = &decision.before {
            self.change_conditions(before);
        }
        for _ in 0..decision.overflows {
            self.overflow_host_events();
        }
    }

    /// Other states hold than before.
    fn change_conditions(&mut self, before: &Conditions) {
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
