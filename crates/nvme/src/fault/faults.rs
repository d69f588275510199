//! Fault state of a drive: the active plan, the conditions that it causes, and the power state.

use serde::{Deserialize, Serialize};
use ssd::Nanos;

use super::cache::CachedMedia;
use super::injector::CommandView;
use super::{DriveConditions, FaultDecision, FaultInjector, FaultPlan, FaultReport, PowerLoss};
use crate::admin::log_page::COMPOSITE_TEMPERATURE_K;
use crate::io;

/// Callback for a power loss, called with the drive locked.
pub type PowerLossCallback = Box<dyn Fn(&PowerLoss) + Send>;

/// Report on a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultsReport {
    /// Seed of the plan.
    pub seed: u64,
    /// I/O commands since the plan was set.
    pub commands: u64,
    /// Faults in the order of the plan.
    pub faults: Vec<FaultReport>,
}

#[derive(Default)]
pub(crate) struct FaultState {
    injector: Option<Box<FaultInjector>>,
    pub(crate) on_power_loss: Option<PowerLossCallback>,
    pub(crate) has_lost_power: bool,
}

impl FaultState {
    #[inline]
    pub(crate) fn are_planned(&self) -> bool {
        self.injector.is_some()
    }

    pub(crate) fn set_plan(&mut self, plan: Option<FaultPlan>, now: Nanos) {
        self.injector = plan.map(|plan| Box::new(FaultInjector::new(plan, now)));
        assert_eq!(self.conditions(), DriveConditions::default(), "a plan begins without conditions");
    }

    pub(crate) fn report(&self) -> Option<FaultsReport> {
        let injector = self.injector.as_ref()?;
        Some(FaultsReport { seed: injector.plan.seed, commands: injector.commands, faults: injector.report() })
    }

    pub(crate) fn tick(&mut self, now: Nanos) -> Option<FaultDecision> {
        self.injector.as_mut().map(|injector| injector.tick(now))
    }

    pub(crate) fn decide(&mut self, now: Nanos, command: &io::IoCommand, opcode: u8, data: &[u8]) -> FaultDecision {
        assert!(!self.has_lost_power, "a drive without power executes no command");
        let Some(injector) = &mut self.injector else {
            return FaultDecision::default();
        };
        let ranges = || command.ranges(data);
        let seen = CommandView {
            opcode: nvme_spec::IoOpcode::from_u8(opcode).expect("a command that was parsed"),
            nsid: command.nsid(),
            ranges: &ranges,
        };
        injector.command(now, &seen)
    }

    pub(crate) fn lose_power(&mut self, media: &mut CachedMedia) {
        let injector = self.injector.as_ref().expect("a power loss comes from a fault plan");
        let (plan, command) = (&injector.plan, injector.commands);
        assert!(!self.has_lost_power, "power is lost once");
        let lost = media.lose(plan.seed, plan.survivors);
        self.has_lost_power = true;
        let loss = PowerLoss { command, ..lost };
        if let Some(callback) = &self.on_power_loss {
            callback(&loss);
        }
    }

    pub(crate) fn conditions(&self) -> DriveConditions {
        let injector = self.injector.as_ref();
        injector.map(|injector| injector.conditions.clone()).unwrap_or_default()
    }

    fn has_condition(&self, test: impl Fn(&DriveConditions) -> bool) -> bool {
        self.injector.as_ref().is_some_and(|injector| test(&injector.conditions))
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.has_condition(|conditions| conditions.read_only)
    }

    pub(crate) fn is_degraded(&self) -> bool {
        self.has_condition(|conditions| conditions.degraded)
    }

    pub(crate) fn temperature_k(&self) -> u16 {
        let planned = self.injector.as_ref().and_then(|injector| injector.conditions.kelvins);
        planned.unwrap_or(COMPOSITE_TEMPERATURE_K)
    }

    pub(crate) fn spare_percent(&self) -> Option<u8> {
        self.injector.as_ref()?.conditions.spare_percent
    }
}
