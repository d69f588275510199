//! Decides which faults strike each command, and which states the drive has. The decisions depend
//! only on the arguments.

use std::collections::BTreeSet;

use nvme_spec::{IoOpcode, NSID_ALL, Status};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use ssd::Nanos;

use super::{DelayDistribution, FAULTS_MAX, FaultAction, FaultFilter, FaultPlan, FaultRule};
use crate::io::BlockRange;

/// Current states of the drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DriveConditions {
    pub read_only: bool,
    pub degraded: bool,
    pub spare_percent: Option<u8>,
    pub kelvins: Option<u16>,
    /// Namespaces that are lost.
    pub lost: BTreeSet<u32>,
}

pub(crate) struct CommandView<'a> {
    pub opcode: IoOpcode,
    pub nsid: u32,
    /// Returns the accessed logical blocks. Called only for faults with a block range.
    pub ranges: &'a dyn Fn() -> Vec<BlockRange>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FaultDecision {
    pub verdict: CommandFate,
    /// Delay of the completion.
    pub delay_ns: Nanos,
    /// Number of event log overflows to produce now.
    pub overflows: u32,
    /// Previous states, if they changed.
    pub before: Option<DriveConditions>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum CommandFate {
    #[default]
    CarryOut,
    /// Failure with a status. `fault` is the name of the fault, and `lba` the logical block if the
    /// fault has a block range.
    Fail {
        status: Status,
        fault: String,
        lba: Option<u64>,
    },
    NeverCompletes,
    PowerLoss,
}

/// Report on a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultReport {
    /// Name of the fault.
    pub name: String,
    /// Kind of the fault in the plan.
    pub kind: String,
    /// The window of the fault is open.
    pub active: bool,
    /// Number of struck commands. For a state, the number of times it began.
    pub struck: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowState {
    Before,
    Open { command: u64, at: Nanos },
    Ended,
}

struct ActiveFault {
    fault: FaultRule,
    window: WindowState,
    /// Matching commands while the window was open.
    matched: u64,
    struck: u64,
    /// Separate generator, so that other faults do not change this fault's decisions.
    random: Xoshiro256PlusPlus,
}

pub(crate) struct FaultInjector {
    pub(super) plan: FaultPlan,
    started_at: Nanos,
    /// I/O commands since the plan was set.
    pub(super) commands: u64,
    armed: Vec<ActiveFault>,
    pub(super) conditions: DriveConditions,
}

impl FaultInjector {
    pub fn new(plan: FaultPlan, now: Nanos) -> FaultInjector {
        assert!(plan.faults.len() <= FAULTS_MAX, "a plan is bounded");
        let arm = |(index, fault): (u64, &FaultRule)| ActiveFault {
            fault: fault.clone(),
            window: WindowState::Before,
            matched: 0,
            struck: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(plan.seed ^ index << 48),
        };
        FaultInjector {
            armed: (1..).zip(&plan.faults).map(arm).collect(),
            plan,
            started_at: now,
            commands: 0,
            conditions: DriveConditions::default(),
        }
    }

    pub fn report(&self) -> Vec<FaultReport> {
        let report = |armed: &ActiveFault| FaultReport {
            name: armed.fault.name.clone(),
            kind: armed.fault.kind.clone(),
            active: matches!(armed.window, WindowState::Open { .. }),
            struck: armed.struck,
        };
        self.armed.iter().map(report).collect()
    }

    /// Advances time without a command.
    pub fn tick(&mut self, now: Nanos) -> FaultDecision {
        let mut decision = FaultDecision::default();
        self.advance(now, self.commands, &mut decision);
        decision
    }

    /// Decides on a command.
    pub fn command(&mut self, now: Nanos, seen: &CommandView<'_>) -> FaultDecision {
        self.commands += 1;
        let mut decision = FaultDecision::default();
        self.advance(now, self.commands, &mut decision);
        for armed in &mut self.armed {
            if decision.verdict != CommandFate::CarryOut {
                break;
            }
            if let Some(lba) = armed.strikes(seen) {
                armed.strike(seen.opcode, lba, &mut decision);
            }
        }
        decision
    }

    /// Opens and closes windows. `command` is the number of the last command.
    fn advance(&mut self, now: Nanos, command: u64, decision: &mut FaultDecision) {
        let elapsed = now.saturating_sub(self.started_at);
        let mut changed = false;
        for armed in &mut self.armed {
            let when = &armed.fault.trigger;
            if armed.window == WindowState::Before && command >= when.from_command && elapsed >= when.from_ns {
                armed.window = WindowState::Open { command, at: elapsed };
                changed |= !armed.fault.action.strikes();
                armed.begin(decision);
            }
            if let WindowState::Open { command: first, at } = armed.window {
                let when = &armed.fault.trigger;
                // A state that begins between two commands applies to the next one.
                let commands_over = when.for_commands.is_some_and(|count| command >= first.saturating_add(count));
                if commands_over || when.for_ns.is_some_and(|ns| elapsed - at >= ns) {
                    armed.window = WindowState::Ended;
                    changed |= !armed.fault.action.strikes();
                }
            }
        }
        if changed {
            let now = self.conditions_now();
            assert!(decision.before.is_none(), "states change once at a time");
            decision.before = Some(std::mem::replace(&mut self.conditions, now));
        }
    }

    /// Combines the open states. Of two values for the same state, the later in the plan wins.
    fn conditions_now(&self) -> DriveConditions {
        let mut now = DriveConditions::default();
        let is_open = |armed: &&ActiveFault| matches!(armed.window, WindowState::Open { .. });
        for armed in self.armed.iter().filter(is_open) {
            match armed.fault.action {
                FaultAction::ReadOnly => now.read_only = true,
                FaultAction::Degraded => now.degraded = true,
                FaultAction::Spare { percent } => now.spare_percent = Some(percent),
                FaultAction::Temperature { kelvins } => now.kelvins = Some(kelvins),
                FaultAction::LostNamespace { nsid } => {
                    now.lost.insert(nsid);
                }
                FaultAction::EventOverflow
                | FaultAction::Error(_)
                | FaultAction::Delay(_)
                | FaultAction::Stuck
                | FaultAction::PowerLoss => {}
            }
        }
        now
    }
}

impl ActiveFault {
    fn begin(&mut self, decision: &mut FaultDecision) {
        if self.fault.action.strikes() {
            return;
        }
        self.struck += 1;
        decision.overflows += u32::from(self.fault.action == FaultAction::EventOverflow);
    }

    /// Returns `Some` if the fault strikes a command. The inner value is the first common logical
    /// block, for faults with a block range.
    fn strikes(&mut self, seen: &CommandView<'_>) -> Option<Option<u64>> {
        let is_open = matches!(self.window, WindowState::Open { .. });
        if !is_open || !self.fault.action.strikes() {
            return None;
        }
        let lba = self.fault.filter.matches(seen)?;
        self.matched += 1;
        let when = &self.fault.trigger;
        // The draw happens for every matching command. A strike of another fault therefore changes
        // no draw here.
        let is_drawn = when.probability >= 1.0 || self.random.random::<f64>() < when.probability;
        let is_left = when.times.is_none_or(|times| self.struck < times);
        (is_drawn && is_left && self.matched.is_multiple_of(when.every)).then_some(lba)
    }

    fn strike(&mut self, opcode: IoOpcode, lba: Option<u64>, decision: &mut FaultDecision) {
        self.struck += 1;
        assert!(self.struck <= self.matched, "a fault hits only matching commands");
        let limit = self.fault.trigger.times.unwrap_or(u64::MAX);
        assert!(self.struck <= limit, "fault {} hits {} commands, at most {limit}", self.fault.name, self.struck);
        match self.fault.action {
            FaultAction::Error(status) => {
                decision.verdict = CommandFate::Fail {
                    status: status.unwrap_or_else(|| media_status(opcode)),
                    fault: self.fault.name.clone(),
                    lba,
                }
            }
            FaultAction::Delay(duration) => decision.delay_ns += duration.draw(&mut self.random),
            FaultAction::Stuck => decision.verdict = CommandFate::NeverCompletes,
            FaultAction::PowerLoss => decision.verdict = CommandFate::PowerLoss,
            other => unreachable!("{other:?} does not hit commands"),
        }
    }
}

impl FaultFilter {
    /// Returns `Some` if the filter matches a command. The inner value is the first common block.
    fn matches(&self, seen: &CommandView<'_>) -> Option<Option<u64>> {
        let of_namespace = |nsid| seen.nsid == nsid || seen.nsid == NSID_ALL;
        let has_opcode = self.opcodes.is_empty() || self.opcodes.contains(&seen.opcode);
        if !has_opcode || !self.nsid.is_none_or(of_namespace) {
            return None;
        }
        let Some(bad) = &self.blocks else {
            return Some(None);
        };
        let ranges = (seen.ranges)();
        let common = ranges.iter().find_map(|range| {
            let first = range.first.max(*bad.start());
            let end = range.first.saturating_add(range.count);
            (first < end && first <= *bad.end()).then_some(first)
        });
        common.map(Some)
    }
}

fn media_status(opcode: IoOpcode) -> Status {
    match opcode {
        IoOpcode::Read | IoOpcode::Compare | IoOpcode::Verify | IoOpcode::IoManagementReceive => {
            Status::UNRECOVERED_READ_ERROR
        }
        _ => Status::WRITE_FAULT,
    }
}

impl DelayDistribution {
    fn draw(self, random: &mut impl Rng) -> Nanos {
        match self {
            DelayDistribution::Constant(ns) => ns,
            DelayDistribution::Uniform(least, most) => random.random_range(least..=most),
            DelayDistribution::Exponential { mean, max } => {
                let share: f64 = random.random();
                // 1 - share is never 0.
                ((-(1.0 - share).ln() * mean as f64) as Nanos).min(max)
            }
        }
    }
}
