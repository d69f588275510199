//! Decides which faults strike each command, and which states the drive has. The decisions depend
//! only on the arguments.

use std::borrow::Cow;
use std::collections::BTreeSet;

use nvme_spec::{IoOpcode, NSID_ALL, Status};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use ssd::Nanos;

use super::{Duration, FAULTS_MAX, Fault, Plan, What, Which};
use crate::io::Blocks;

/// Current states of the drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The media is read-only.
    pub read_only: bool,
    /// Reliability is degraded.
    pub degraded: bool,
    /// Remaining spare in percent, if reduced.
    pub spare_percent: Option<u8>,
    /// Temperature in kelvins, if set by a fault.
    pub kelvins: Option<u16>,
    /// Namespaces that are lost.
    pub lost: BTreeSet<u32>,
}

/// Command data that faults can match.
pub(crate) struct Seen<'a> {
    pub opcode: IoOpcode,
    pub nsid: u32,
    /// Returns the accessed logical blocks. Called only for faults with a block range.
    pub ranges: &'a dyn Fn() -> Vec<Blocks>,
}

/// Decision on a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub verdict: Verdict,
    /// Delay of the completion.
    pub delay_ns: Nanos,
    /// Number of event log overflows to produce now.
    pub overflows: u32,
    /// Previous states, if they changed.
    pub before: Option<Conditions>,
}

/// End of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Normal execution.
    #[default]
    CarryOut,
    /// Failure with a status. `fault` is the name of the fault, and `lba` the logical block if the
    /// fault has a block range.
    Fail {
        status: Status,
        fault: String,
        lba: Option<u64>,
    },
    Stuck,
    PowerLoss,
}

/// Report on a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultReport {
    /// Name of the fault.
    pub name: String,
    /// Kind of the fault ([`What::kind`]).
    pub kind: Cow<'static, str>,
    /// The window of the fault is open.
    pub active: bool,
    /// Number of struck commands. For a state, the number of times it began.
    pub struck: u64,
}

/// State of a fault's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Before,
    /// Opened at this command and time.
    Open {
        command: u64,
        at: Nanos,
    },
    Over,
}

/// A fault with its decision state.
struct Armed {
    fault: Fault,
    window: Window,
    /// Matching commands while the window was open.
    matched: u64,
    struck: u64,
    /// Separate generator, so that other faults do not change this fault's decisions.
    random: Xoshiro256PlusPlus,
}

/// The fault injector. See the module documentation.
pub(crate) struct Injector {
    plan: Plan,
    given_at: Nanos,
    /// I/O commands since the plan was set.
    commands: u64,
    armed: Vec<Armed>,
    conditions: Conditions,
}

impl Injector {
    pub fn new(plan: Plan, now: Nanos) -> Injector {
        assert!(plan.faults.len() <= FAULTS_MAX, "a plan is bounded");
        let arm = |(index, fault): (u64, &Fault)| Armed {
            fault: fault.clone(),
            window: Window::Before,
            matched: 0,
            struck: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(plan.seed ^ index << 48),
        };
        Injector {
            armed: (1..).zip(&plan.faults).map(arm).collect(),
            plan,
            given_at: now,
            commands: 0,
            conditions: Conditions::default(),
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn commands(&self) -> u64 {
        self.commands
    }

    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    pub fn report(&self) -> Vec<FaultReport> {
        let report = |armed: &Armed| FaultReport {
            name: armed.fault.name.clone(),
            kind: armed.fault.what.kind().into(),
            active: matches!(armed.window, Window::Open { .. }),
            struck: armed.struck,
        };
        self.armed.iter().map(report).collect()
    }

    /// Advances time without a command.
    pub fn tick(&mut self, now: Nanos) -> Decision {
        let mut decision = Decision::default();
        self.advance(now, self.commands, &mut decision);
        decision
    }

    /// Decides on a command.
    pub fn command(&mut self, now: Nanos, seen: &Seen<'_>) -> Decision {
        self.commands += 1;
        let mut decision = Decision::default();
        self.advance(now, self.commands, &mut decision);
        for armed in &mut self.armed {
            if decision.verdict != Verdict::CarryOut {
                break;
            }
            if let Some(lba) = armed.strikes(seen) {
                armed.strike(seen.opcode, lba, &mut decision);
            }
        }
        decision
    }

    /// Opens and closes windows. `command` is the number of the last command.
    fn advance(&mut self, now: Nanos, command: u64, decision: &mut Decision) {
        let elapsed = now.saturating_sub(self.given_at);
        let mut changed = false;
        for armed in &mut self.armed {
            let when = &armed.fault.when;
            if armed.window == Window::Before && command >= when.from_command && elapsed >= when.from_ns {
                armed.window = Window::Open { command, at: elapsed };
                changed |= !armed.fault.what.strikes();
                armed.begin(decision);
            }
            if let Window::Open { command: first, at } = armed.window {
                let when = &armed.fault.when;
                // A state that begins between two commands applies to the next one.
                let commands_over = when
                    .for_commands
                    .is_some_and(|count| command >= first.saturating_add(count));
                if commands_over || when.for_ns.is_some_and(|ns| elapsed - at >= ns) {
                    armed.window = Window::Over;
                    changed |= !armed.fault.what.strikes();
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
    fn conditions_now(&self) -> Conditions {
        let mut now = Conditions::default();
        let is_open = |armed: &&Armed| matches!(armed.window, Window::Open { .. });
        for armed in self.armed.iter().filter(is_open) {
            match armed.fault.what {
                What::ReadOnly => now.read_only = true,
                What::Degraded => now.degraded = true,
                What::Spare { percent } => now.spare_percent = Some(percent),
                What::Temperature { kelvins } => now.kelvins = Some(kelvins),
                What::LostNamespace { nsid } => {
                    now.lost.insert(nsid);
                }
                What::EventOverflow | What::Error(_) | What::Delay(_) | What::Stuck | What::PowerLoss => {}
            }
        }
        now
    }
}

impl Armed {
    /// Opens the window.
    fn begin(&mut self, decision: &mut Decision) {
        if self.fault.what.strikes() {
            return;
        }
        self.struck += 1;
        decision.overflows += u32::from(self.fault.what == What::EventOverflow);
    }

    /// Returns `Some` if the fault strikes a command. The inner value is the first common logical
    /// block, for faults with a block range.
    fn strikes(&mut self, seen: &Seen<'_>) -> Option<Option<u64>> {
        let is_open = matches!(self.window, Window::Open { .. });
        if !is_open || !self.fault.what.strikes() {
            return None;
        }
        let lba = self.fault.which.matches(seen)?;
        self.matched += 1;
        let when = &self.fault.when;
        // The draw happens for every matching command. A strike of another fault therefore changes
        // no draw here.
        let is_drawn = when.probability >= 1.0 || self.random.random::<f64>() < when.probability;
        let is_left = when.times.is_none_or(|times| self.struck < times);
        (is_drawn && is_left && self.matched.is_multiple_of(when.every)).then_some(lba)
    }

    fn strike(&mut self, opcode: IoOpcode, lba: Option<u64>, decision: &mut Decision) {
        self.struck += 1;
        assert!(self.struck <= self.matched, "a fault hits only matching commands");
        let limit = self.fault.when.times.unwrap_or(u64::MAX);
        assert!(
            self.struck <= limit,
            "fault {} hits {} commands, at most {limit}",
            self.fault.name,
            self.struck
        );
        match self.fault.what {
            What::Error(status) => {
                decision.verdict = Verdict::Fail {
                    status: status.unwrap_or_else(|| media_status(opcode)),
                    fault: self.fault.name.clone(),
                    lba,
                }
            }
            What::Delay(duration) => decision.delay_ns += duration.draw(&mut self.random),
            What::Stuck => decision.verdict = Verdict::Stuck,
            What::PowerLoss => decision.verdict = Verdict::PowerLoss,
            other => unreachable!("{other:?} does not hit commands"),
        }
    }
}

impl Which {
    /// Returns `Some` if the filter matches a command. The inner value is the first common block.
    fn matches(&self, seen: &Seen<'_>) -> Option<Option<u64>> {
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

/// Default status of a media failure.
fn media_status(opcode: IoOpcode) -> Status {
    match opcode {
        IoOpcode::Read | IoOpcode::Compare | IoOpcode::Verify | IoOpcode::IoManagementReceive => {
            Status::UNRECOVERED_READ_ERROR
        }
        _ => Status::WRITE_FAULT,
    }
}

impl Duration {
    fn draw(self, random: &mut impl Rng) -> Nanos {
        match self {
            Duration::Constant(ns) => ns,
            Duration::Uniform(least, most) => random.random_range(least..=most),
            Duration::Exponential { mean, max } => {
                let share: f64 = random.random();
                // 1 - share is never 0.
                ((-(1.0 - share).ln() * mean as f64) as Nanos).min(max)
            }
        }
    }
}
