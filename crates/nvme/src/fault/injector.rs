//! Decides: which fault each command meets, and which states the drive is in. Pure: what it knows of commands and
//! time it is told.

use std::borrow::Cow;
use std::collections::BTreeSet;

use nvme_spec::{IoOpcode, NSID_ALL, Status};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use ssd::Nanos;

use super::{Duration, FAULTS_MAX, Fault, Plan, What, Which};
use crate::io::Blocks;

/// States that hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The media is read-only.
    pub read_only: bool,
    /// Reliability is degraded.
    pub degraded: bool,
    /// Spare left in percent, if not all.
    pub spare_percent: Option<u8>,
    /// Temperature in kelvins, if not the usual.
    pub kelvins: Option<u16>,
    /// Namespaces that are not there.
    pub lost: BTreeSet<u32>,
}

/// A command as faults see it.
pub(crate) struct Seen<'a> {
    pub opcode: IoOpcode,
    pub nsid: u32,
    /// The logical blocks that it touches; asked only where a fault is about blocks.
    pub ranges: &'a dyn Fn() -> Vec<Blocks>,
}

/// What happens to a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub verdict: Verdict,
    /// How much later it completes.
    pub delay_ns: Nanos,
    /// How often the event log is to be filled now.
    pub overflows: u32,
    /// The states that held before, if others do now.
    pub before: Option<Conditions>,
}

/// How a command ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As always.
    #[default]
    CarryOut,
    /// With a status, because of a fault of this name, at this logical block if one was named.
    Fail {
        status: Status,
        fault: String,
        lba: Option<u64>,
    },
    Stuck,
    PowerLoss,
}

/// What is to be said of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultReport {
    /// Its name.
    pub name: String,
    /// What it does ([`What::kind`]).
    pub kind: Cow<'static, str>,
    /// Whether its time has come and is not over.
    pub active: bool,
    /// Commands that it struck; of a state, how often it began.
    pub struck: u64,
}

/// How far the time of a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Before,
    /// Since this command and time.
    Open {
        command: u64,
        at: Nanos,
    },
    Over,
}

/// A fault with what it needs to decide.
struct Armed {
    fault: Fault,
    window: Window,
    /// Commands that it was about while its window was open.
    matched: u64,
    struck: u64,
    /// Its own, so that other faults do not change what it does.
    random: Xoshiro256PlusPlus,
}

/// See the module.
pub(crate) struct Injector {
    plan: Plan,
    given_at: Nanos,
    /// I/O commands since the plan was given.
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

    /// Time passes without a command.
    pub fn tick(&mut self, now: Nanos) -> Decision {
        let mut decision = Decision::default();
        self.advance(now, self.commands, &mut decision);
        decision
    }

    /// A command comes.
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

    /// Opens and closes windows; `command` is the number of the last command that came.
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
                // A state that begins between two commands is there for the next one.
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

    /// What the states that hold make together; of two that say a number, the later in the plan counts.
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
    /// Its time has come.
    fn begin(&mut self, decision: &mut Decision) {
        if self.fault.what.strikes() {
            return;
        }
        self.struck += 1;
        decision.overflows += u32::from(self.fault.what == What::EventOverflow);
    }

    /// Whether it strikes a command: the first logical block that both are about, if it names some.
    fn strikes(&mut self, seen: &Seen<'_>) -> Option<Option<u64>> {
        let is_open = matches!(self.window, Window::Open { .. });
        if !is_open || !self.fault.what.strikes() {
            return None;
        }
        let lba = self.fault.which.matches(seen)?;
        self.matched += 1;
        let when = &self.fault.when;
        // Drawn for every command that it is about, so that one more strike elsewhere changes nothing here.
        let is_drawn = when.probability >= 1.0 || self.random.random::<f64>() < when.probability;
        let is_left = when.times.is_none_or(|times| self.struck < times);
        (is_drawn && is_left && self.matched.is_multiple_of(when.every)).then_some(lba)
    }

    fn strike(&mut self, opcode: IoOpcode, lba: Option<u64>, decision: &mut Decision) {
        self.struck += 1;
        assert!(self.struck <= self.matched, "only commands that it is about are struck");
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
            other => unreachable!("{other:?} strikes no commands"),
        }
    }
}

impl Which {
    /// Whether it is about a command; the first block of both.
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

/// What a medium that fails makes of a command.
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
