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
//! A fault combines a time (`FaultTrigger`), a command filter (`FaultFilter`) and an effect
//! (`FaultAction`). [`FaultInjector`] decides and counts, from commands, their times and the
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
pub use file::PlanError;
pub use injector::FaultReport;
pub(crate) use injector::{CommandFate, DriveConditions, FaultDecision, FaultInjector};

/// Maximum number of faults of a plan.
const FAULTS_MAX: usize = 64;
/// Maximum number of commands that all faults of a plan make stuck.
const STUCK_MAX: u64 = 1024;
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
    /// At most [`FAULTS_MAX`].
    faults: Vec<FaultRule>,
}

#[derive(Clone, Debug, PartialEq)]
struct FaultRule {
    name: String,
    /// Name of the action in the plan.
    kind: String,
    trigger: FaultTrigger,
    filter: FaultFilter,
    action: FaultAction,
}

/// Time window of a fault, and selection of commands inside the window.
#[derive(Clone, Debug, PartialEq)]
struct FaultTrigger {
    /// First I/O command of the window, counted from 1 since the plan was set.
    from_command: u64,
    /// Start of the window, in nanoseconds after the plan was set.
    from_ns: Nanos,
    /// Length of the window in I/O commands of the drive. `None` for no limit.
    for_commands: Option<u64>,
    for_ns: Option<Nanos>,
    /// The fault strikes every n-th matching command.
    every: u64,
    probability: f64,
    /// Maximum number of strikes.
    times: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct FaultFilter {
    /// Opcodes of the commands. Empty for all opcodes.
    opcodes: Vec<IoOpcode>,
    nsid: Option<u32>,
    /// Logical blocks of which the command accesses at least one.
    blocks: Option<RangeInclusive<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum DelayDistribution {
    Constant(Nanos),
    Uniform(Nanos, Nanos),
    Exponential { mean: Nanos, max: Nanos },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FaultAction {
    /// The command fails with this status and has no effect. `None` selects Unrecovered Read Error
    /// for reads and Write Fault for writes.
    Error(Option<Status>),
    /// The command runs, but its completion is delayed.
    Delay(DelayDistribution),
    /// The command has no effect. It completes only when it is aborted or its queue is deleted.
    Stuck,
    /// Power is lost before the command.
    PowerLoss,
    ReadOnly,
    Degraded,
    Spare {
        /// Remaining percentage of the original spare.
        percent: u8,
    },
    Temperature {
        kelvins: u16,
    },
    /// A namespace disappears for all controllers.
    LostNamespace {
        nsid: u32,
    },
    /// The log of host events is filled once, so that its entries are lost.
    EventOverflow,
}

impl FaultAction {
    /// True for effects on single commands, false for states of the drive.
    fn strikes(&self) -> bool {
        matches!(self, FaultAction::Error(_) | FaultAction::Delay(_) | FaultAction::Stuck | FaultAction::PowerLoss)
    }
}

impl FaultPlan {
    fn loses_power(&self) -> bool {
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
