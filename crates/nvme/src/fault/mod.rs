//! Fault injection, to test host software on a failing drive. A plan has faults, each for a part of
//! the commands or for a period.
//!
//! ```text
//! TOML -> file -> FaultPlan -> FaultInjector (command, time)
//!     -> FaultDecision: fail, delay, stuck, power loss
//!     -> DriveConditions: SMART, events, write protection
//!                         cache: old content under unflushed writes -> restored at a power loss
//! ```
//!
//! A fault combines a time ([`FaultTrigger`]), a command filter ([`FaultFilter`]) and an effect
//! ([`FaultAction`]). [`FaultInjector`] decides and counts, from commands, their times and the
//! plan's seed alone. The same commands at the same times meet the same faults. Times matter only
//! if the plan uses seconds. `apply` carries out the effects on the drive.
//!
//! Faults of transports, admin commands and the device model are not covered. A peer can produce
//! transport faults itself. A drive without a plan pays one check for each command.

mod apply;
pub(crate) mod cache;
mod faults;
mod file;
mod injector;

use std::ops::RangeInclusive;

use nvme_spec::{IoOpcode, Status};
use ssd::Nanos;

pub use apply::UnsupportedFault;
pub(crate) use faults::FaultState;
pub use faults::{FaultsReport, PowerLossCallback};
pub use file::{PLAN_BYTES_MAX, PlanError};
pub(crate) use injector::{CommandFate, FaultDecision, FaultInjector};
pub use injector::{DriveConditions, FaultReport};

/// Maximum number of faults of a plan.
pub const FAULTS_MAX: usize = 64;
/// Maximum number of commands that all faults of a plan make stuck.
pub const STUCK_MAX: u64 = 1024;
/// Due time of a stuck command, which never completes.
pub const NEVER: Nanos = Nanos::MAX;

/// Faults to inject. See the module documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// Seed of all probabilities and durations.
    pub seed: u64,
    /// Unflushed bytes that a power loss can destroy, the newest first.
    pub write_cache_bytes: u64,
    /// Probability that an unflushed write to a 4 KiB piece survives.
    pub survivors: f64,
    /// Faults of the plan, at most [`FAULTS_MAX`].
    pub faults: Vec<FaultRule>,
}

/// One fault of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// Name of the fault in reports.
    pub name: String,
    /// Time of the fault.
    pub trigger: FaultTrigger,
    /// Commands that the fault applies to.
    pub filter: FaultFilter,
    /// Effect of the fault.
    pub action: FaultAction,
}

/// Time window of a fault, and selection of commands inside the window.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultTrigger {
    /// First I/O command of the window, counted from 1 since the plan was set.
    pub from_command: u64,
    /// Start of the window, in nanoseconds after the plan was set.
    pub from_ns: Nanos,
    /// Length of the window in I/O commands of the drive. `None` for no limit.
    pub for_commands: Option<u64>,
    /// Length of the window in nanoseconds. `None` for no limit.
    pub for_ns: Option<Nanos>,
    /// The fault strikes every n-th matching command.
    pub every: u64,
    /// Probability of a strike.
    pub probability: f64,
    /// Maximum number of strikes. `None` for no limit.
    pub times: Option<u64>,
}

/// Filter for the commands of a fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultFilter {
    /// Opcodes of the commands. Empty for all opcodes.
    pub opcodes: Vec<IoOpcode>,
    /// Namespace of the commands.
    pub nsid: Option<u32>,
    /// Logical blocks of which the command accesses at least one.
    pub blocks: Option<RangeInclusive<u64>>,
}

/// Distribution of a delay, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayDistribution {
    /// Constant delay.
    Constant(Nanos),
    /// Uniform distribution between two values.
    Uniform(Nanos, Nanos),
    /// Exponential distribution with an upper bound.
    Exponential {
        /// Mean delay.
        mean: Nanos,
        /// Longest delay.
        max: Nanos,
    },
}

/// Effect of a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultAction {
    /// The command fails with this status and has no effect. `None` selects Unrecovered Read Error
    /// for reads and Write Fault for writes.
    Error(Option<Status>),
    /// The command runs, but its completion is delayed.
    Delay(DelayDistribution),
    /// The command has no effect. It completes only when it is aborted or its queue is deleted.
    Stuck,
    /// Power is lost before the command.
    PowerLoss,
    /// The media is read-only, and write commands fail.
    ReadOnly,
    /// The drive's reliability is degraded.
    Degraded,
    /// The available spare is reduced.
    Spare {
        /// Remaining percentage of the original spare.
        percent: u8,
    },
    /// The drive has this temperature.
    Temperature {
        /// Temperature in kelvins.
        kelvins: u16,
    },
    /// A namespace disappears for all controllers.
    LostNamespace {
        /// Identifier of the namespace.
        nsid: u32,
    },
    /// The log of host events is filled once, so that its entries are lost.
    EventOverflow,
}

impl FaultAction {
    /// Name of the effect in a plan.
    pub fn kind(&self) -> &'static str {
        match self {
            FaultAction::Error(_) => "error",
            FaultAction::Delay(_) => "delay",
            FaultAction::Stuck => "stuck",
            FaultAction::PowerLoss => "power_loss",
            FaultAction::ReadOnly => "read_only",
            FaultAction::Degraded => "degraded",
            FaultAction::Spare { .. } => "spare",
            FaultAction::Temperature { .. } => "temperature",
            FaultAction::LostNamespace { .. } => "lost_namespace",
            FaultAction::EventOverflow => "event_overflow",
        }
    }

    /// True for effects on single commands, false for states of the drive.
    pub fn strikes(&self) -> bool {
        matches!(self, FaultAction::Error(_) | FaultAction::Delay(_) | FaultAction::Stuck | FaultAction::PowerLoss)
    }
}

impl FaultPlan {
    /// True if the plan has a power loss.
    pub fn loses_power(&self) -> bool {
        self.faults.iter().any(|fault| fault.action == FaultAction::PowerLoss)
    }
}

/// Losses of a power loss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// I/O command before which the power was lost, counted since the plan was set.
    pub command: u64,
    /// Number of unflushed writes, counted for each 4 KiB piece, that were reverted.
    pub pieces_lost: u64,
    /// Number of unflushed writes, counted in the same way, that survived.
    pub pieces_kept: u64,
    /// Error of the storage while it restored an old piece.
    pub problem: Option<String>,
}
