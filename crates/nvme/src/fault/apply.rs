//! What the drive does about its faults: it gives commands to the [`Injector`] and does what that says.

use nvme_spec::Status;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::injector::Seen;
use super::{Conditions, Decision, FaultReport, Injector, Plan, PowerLoss, Verdict};
use crate::admin::log_page::COMPOSITE_TEMPERATURE_K;
use crate::error::Failure;
use crate::io;
use crate::subsystem::Subsystem;

/// Called, with the drive held, when its power is lost.
pub type OnPowerLoss = Box<dyn Fn(&PowerLoss) + Send>;

/// A plan that this drive cannot carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CannotFail {
    /// There is nothing that a power loss could take.
    #[error(
        "a power loss needs data that outlives the server; serve the drive with --data FILE, or leave the fault out"
    )]
    NoCache,
}

/// What is to be said of a plan at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultsReport {
    /// The plan's seed.
    pub seed: u64,
    /// I/O commands since it was given.
    pub commands: u64,
    /// Its faults, in its order.
    pub faults: Vec<FaultReport>,
}

impl FaultsReport {
    /// Commands that were struck, and states that began.
    pub fn struck(&self) -> u64 {
        self.faults.iter().map(|fault| fault.struck).sum()
    }
}

impl Subsystem {
    /// Has the drive fail as a plan says, from its beginning on; `None`: not any more. Commands that are stuck stay so.
    ///
    /// # Errors
    /// The drive cannot fail like that; what was planned before goes on.
    pub fn set_faults(&mut self, now: ssd::Nanos, plan: Option<Plan>) -> Result<(), CannotFail> {
        self.now = self.now.max(now);
        let cache_bytes = plan
            .as_ref()
            .filter(|plan| plan.loses_power())
            .map(|plan| plan.write_cache_bytes);
        if cache_bytes.is_some() && self.durable.is_none() {
            return Err(CannotFail::NoCache);
        }
        let before = self.conditions();
        self.durable = self.media.set_cache(cache_bytes);
        self.faults = plan.map(|plan| Box::new(Injector::new(plan, self.now)));
        self.change_conditions(&before);
        self.continue_faults();
        Ok(())
    }

    /// What is planned, and what has come of it; `None` without a plan.
    pub fn faults(&self) -> Option<FaultsReport> {
        let injector = self.faults.as_ref()?;
        Some(FaultsReport {
            seed: injector.plan().seed,
            commands: injector.commands(),
            faults: injector.report(),
        })
    }

    /// Whom to tell when power is lost. From then on no command completes and nothing is stored.
    pub fn on_power_loss(&mut self, tell: OnPowerLoss) {
        self.on_power_loss = Some(tell);
    }

    /// Whether power was lost.
    pub fn has_lost_power(&self) -> bool {
        self.power_lost
    }

    /// Time passed.
    pub(crate) fn continue_faults(&mut self) {
        let Some(mut injector) = self.faults.take() else {
            return;
        };
        let decision = injector.tick(self.now);
        self.faults = Some(injector);
        self.follow(&decision);
    }

    /// What happens to an I/O command that is about to be carried out, by how much it is delayed.
    pub(crate) fn meet_fault(&mut self, command: &io::Command, opcode: u8, data: &[u8]) -> Decision {
        let Some(mut injector) = self.faults.take() else {
            return Decision::default();
        };
        let ranges = || command.ranges(data);
        let seen = Seen {
            opcode: nvme_spec::IoOpcode::from_u8(opcode).expect("a command that was parsed"),
            nsid: command.nsid(),
            ranges: &ranges,
        };
        let decision = injector.command(self.now, &seen);
        self.faults = Some(injector);
        self.follow(&decision);
        if decision.verdict == Verdict::PowerLoss {
            self.lose_power();
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

    /// The states that hold.
    fn conditions(&self) -> Conditions {
        let injector = self.faults.as_ref();
        injector
            .map(|injector| injector.conditions().clone())
            .unwrap_or_default()
    }

    /// Whether the media is read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.faults
            .as_ref()
            .is_some_and(|injector| injector.conditions().read_only)
    }

    /// Whether reliability is said to be degraded.
    pub(crate) fn is_said_degraded(&self) -> bool {
        self.faults
            .as_ref()
            .is_some_and(|injector| injector.conditions().degraded)
    }

    /// Composite temperature, in kelvins.
    pub(crate) fn temperature_k(&self) -> u16 {
        let said = self.faults.as_ref().and_then(|injector| injector.conditions().kelvins);
        said.unwrap_or(COMPOSITE_TEMPERATURE_K)
    }

    /// Spare left, in percent, if it is not whole.
    pub(crate) fn spare_percent(&self) -> Option<u8> {
        self.faults.as_ref()?.conditions().spare_percent
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
        let now = self.conditions();
        for &nsid in before.lost.symmetric_difference(&now.lost) {
            let Some(namespace) = &mut self.state.namespaces[nsid as usize - 1] else {
                continue;
            };
            namespace.lost = now.lost.contains(&nsid);
            let attached = namespace.attached.clone();
            self.note_namespace_changed(nsid, &attached);
        }
        self.note_health();
    }

    fn lose_power(&mut self) {
        let injector = self.faults.as_ref().expect("a plan wants it");
        let (plan, command) = (injector.plan(), injector.commands());
        let lost = self.media.lose(plan.seed, plan.survivors);
        self.power_lost = true;
        let loss = PowerLoss { command, ..lost };
        if let Some(tell) = &self.on_power_loss {
            tell(&loss);
        }
    }
}
