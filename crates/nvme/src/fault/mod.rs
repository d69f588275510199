//! Faults on demand: a plan says when which commands meet what, so that host software can be tried on a drive that
//! fails.
//!
//! ```text
//! TOML -> file -> Plan -> Injector: command, time -> Decision -> the command fails, waits, is stuck, or power is lost
//!                                                 -> Conditions -> SMART, events, write protection, namespaces
//!                           cache: what was written since the last flush -> put back at a power loss
//! ```
//!
//! A fault is *when* ([`When`]) x *which commands* ([`Which`]) x *what* ([`What`]). [`Injector`] decides and counts,
//! from the commands it sees, their times and the plan's seed alone: the same commands at the same times meet the same
//! faults, and where a plan does not speak of seconds the times do not matter. `apply` is what the drive does about it.
//!
//! Not here: faults of a transport (a peer can make those itself), of admin commands, of the device model. A drive
//! without a plan asks one question for each command.

mod apply;
pub(crate) mod cache;
mod faults;
mod file;
mod injector;

use std::ops::RangeInclusive;

use nvme_spec::{IoOpcode, Status};
use ssd::Nanos;

pub use apply::CannotFail;
pub(crate) use faults::Faults;
pub use faults::{FaultsReport, OnPowerLoss};
pub use file::{PLAN_BYTES_MAX, PlanError};
pub use injector::{Conditions, FaultReport};
pub(crate) use injector::{Decision, Injector, Verdict};

/// Faults of a plan.
pub const FAULTS_MAX: usize = 64;
/// Commands that a fault may leave stuck, together.
pub const STUCK_MAX: u64 = 1024;
/// A completion that is due then never is: of a stuck command.
pub const NEVER: Nanos = Nanos::MAX;

/// What is to go wrong. See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What probabilities and durations are drawn from.
    pub seed: u64,
    /// What a power loss can take: the newest bytes written that were not flushed.
    pub write_cache_bytes: u64,
    /// Probability that a 4 KiB piece of that is there nevertheless.
    pub survivors: f64,
    /// At most [`FAULTS_MAX`].
    pub faults: Vec<Fault>,
}

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What it is called where it is counted.
    pub name: String,
    /// When.
    pub when: When,
    /// On which commands.
    pub which: Which,
    /// What happens.
    pub what: What,
}

/// When a fault holds, and which of its commands it strikes then.
#[derive(Clone, Debug, PartialEq)]
pub struct When {
    /// From this I/O command of the drive on, counted from 1 since the plan was given.
    pub from_command: u64,
    /// From so many nanoseconds after the plan was given on.
    pub from_ns: Nanos,
    /// For so many I/O commands of the drive; `None`: for ever.
    pub for_commands: Option<u64>,
    /// For so many nanoseconds.
    pub for_ns: Option<Nanos>,
    /// It strikes each so many of its commands.
    pub every: u64,
    /// With this probability.
    pub probability: f64,
    /// Not more often than this.
    pub times: Option<u64>,
}

/// The commands that a fault is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Which {
    /// With one of these opcodes; empty: with any.
    pub opcodes: Vec<IoOpcode>,
    /// Of this namespace.
    pub nsid: Option<u32>,
    /// That touch one of these logical blocks.
    pub blocks: Option<RangeInclusive<u64>>,
}

/// How long a delay is, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Duration {
    /// Always the same.
    Constant(Nanos),
    /// Between two, each as likely.
    Uniform(Nanos, Nanos),
    /// Exponentially distributed around a mean, never above a bound.
    Exponential {
        /// The mean.
        mean: Nanos,
        /// The bound.
        max: Nanos,
    },
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// The command fails with this status and does nothing; `None`: Unrecovered Read Error or Write Fault, as it reads
    /// or writes.
    Error(Option<Status>),
    /// It is carried out, and completes that much later.
    Delay(Duration),
    /// It does nothing, and completes only when it is aborted, or its queue deleted.
    Stuck,
    /// Power is lost before the command.
    PowerLoss,
    /// The media is read-only: commands that write fail.
    ReadOnly,
    /// The drive's reliability is degraded.
    Degraded,
    /// So much spare is left.
    Spare {
        /// Percent of what it was.
        percent: u8,
    },
    /// The drive has this temperature.
    Temperature {
        /// Kelvins.
        kelvins: u16,
    },
    /// A namespace is not there for any controller.
    LostNamespace {
        /// Which.
        nsid: u32,
    },
    /// The log of host events is filled once, so that what was in it is lost.
    EventOverflow,
}

impl What {
    /// What it is called in a plan.
    pub fn kind(&self) -> &'static str {
        match self {
            What::Error(_) => "error",
            What::Delay(_) => "delay",
            What::Stuck => "stuck",
            What::PowerLoss => "power_loss",
            What::ReadOnly => "read_only",
            What::Degraded => "degraded",
            What::Spare { .. } => "spare",
            What::Temperature { .. } => "temperature",
            What::LostNamespace { .. } => "lost_namespace",
            What::EventOverflow => "event_overflow",
        }
    }

    /// Whether it strikes single commands; the others are states of the drive.
    pub fn strikes(&self) -> bool {
        matches!(self, What::Error(_) | What::Delay(_) | What::Stuck | What::PowerLoss)
    }
}

impl Plan {
    /// Whether power can be lost.
    pub fn loses_power(&self) -> bool {
        self.faults.iter().any(|fault| fault.what == What::PowerLoss)
    }
}

/// What a power loss took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// The I/O command, since the plan was given, before which it happened.
    pub command: u64,
    /// Pieces of 4 KiB, or less, that are as they were before a write that was not flushed.
    pub pieces_lost: u64,
    /// Writes to such pieces that were not flushed and are there.
    pub pieces_kept: u64,
    /// What the storage said when an old piece was to be put back.
    pub problem: Option<String>,
}
