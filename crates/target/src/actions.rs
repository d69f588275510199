//! Actions on a served drive for clients with its token: make a checkpoint, plan faults.
//!
//! ```text
//! checkpoint -> ServedDrive::checkpoint, if none is in progress -> files, their sizes and times
//! faults     -> FaultPlan::parse, unlocked -> Subsystem::set_faults, locked -> FaultsReport
//! ```
//!
//! The studio's pages and `warp drive faults` both call this module. The server's start options fix
//! the checkpoint's path, so no network request can name a file. The transport of a request checks
//! its token and limits its rate.

use std::sync::{Arc, Mutex, TryLockError, Weak};

use serde::Serialize;
use thiserror::Error;

pub use crate::clock::unix_ms;
pub use crate::storage::StoredFile;
pub use nvme::fault::{FaultPlan, FaultsReport, PlanError, UnsupportedFault};

use crate::storage::{DriveError, ServedDrive};
use crate::{ServerClock, SharedSubsystem, lock, pause_between_parts, yield_to_waiters};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckpointResult {
    /// True if the drive had changed since the previous checkpoint, so that a new one was written.
    pub written: bool,
    /// Files of the newest checkpoint, without the snapshot until the first checkpoint exists.
    pub files: Vec<StoredFile>,
}

/// Reasons for refusing a checkpoint. The previous checkpoint always remains.
#[derive(Debug, Error)]
pub enum CheckpointRefusal {
    #[error("another checkpoint of this drive is in progress. Try again when it is done")]
    Busy,
    #[error("this drive is served without files, so it has no place for a checkpoint. Serve it with --data FILE")]
    NoFiles,
    #[error("this drive is closed or has lost its power. Start the server again")]
    Closed,
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// A rejected fault plan. The previous plan stays in effect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultsRefused {
    /// The text is not a valid plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// This drive cannot execute the plan.
    #[error(transparent)]
    Drive(#[from] UnsupportedFault),
}

impl FaultsRefused {
    /// Line of the plan that caused the error.
    pub fn line(&self) -> Option<usize> {
        match self {
            FaultsRefused::Plan(error) => Some(error.line),
            FaultsRefused::Drive(_) => None,
        }
    }
}

/// Planned faults of a drive and their outcomes so far, `None` without a plan.
pub fn faults(shared: &SharedSubsystem) -> Option<FaultsReport> {
    yield_to_waiters();
    lock(shared).faults()
}

/// Replaces the fault plan, or removes it with `None`. The drive is locked only while the plan is
/// replaced.
pub fn plan_faults(
    shared: &SharedSubsystem,
    clock: ServerClock,
    text: Option<&str>,
) -> Result<Option<FaultsReport>, FaultsRefused> {
    let plan = text.map(FaultPlan::parse).transpose()?;
    yield_to_waiters();
    let mut subsystem = lock(shared);
    subsystem.set_faults(clock.now(), plan)?;
    Ok(subsystem.faults())
}

/// Handle for the actions of this module. It does not keep the drive open.
#[derive(Clone)]
pub struct Actions {
    drive: Weak<Mutex<ServedDrive>>,
    shared: SharedSubsystem,
    clock: ServerClock,
}

impl Actions {
    pub fn new(drive: &Arc<Mutex<ServedDrive>>, shared: SharedSubsystem, clock: ServerClock) -> Actions {
        Actions { drive: Arc::downgrade(drive), shared, clock }
    }

    /// Makes a checkpoint now, if the drive has changed since the last. Hosts are served during the
    /// checkpoint.
    pub fn checkpoint(&self) -> Result<CheckpointResult, CheckpointRefusal> {
        let drive = self.drive.upgrade().ok_or(CheckpointRefusal::Closed)?;
        let mut drive = match drive.try_lock() {
            Ok(drive) => drive,
            Err(TryLockError::WouldBlock) => return Err(CheckpointRefusal::Busy),
            Err(TryLockError::Poisoned(_)) => return Err(CheckpointRefusal::Closed),
        };
        if !drive.has_files() {
            return Err(CheckpointRefusal::NoFiles);
        }
        if drive.is_closed() {
            return Err(CheckpointRefusal::Closed);
        }
        let written = match drive.checkpoint(pause_between_parts) {
            Ok(written) => written,
            Err(DriveError::Stopping | DriveError::PowerLost) => return Err(CheckpointRefusal::Closed),
            Err(error) => return Err(error.into()),
        };
        Ok(CheckpointResult { written, files: drive.stored_files() })
    }

    pub fn faults(&self) -> Option<FaultsReport> {
        faults(&self.shared)
    }

    pub fn plan_faults(&self, text: Option<&str>) -> Result<Option<FaultsReport>, FaultsRefused> {
        plan_faults(&self.shared, self.clock, text)
    }
}
