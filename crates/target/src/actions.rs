//! What may be done to a served drive by whoever has its token, beside what its hosts do: a checkpoint now, and faults.
//!
//! ```text
//! checkpoint -> ServedDrive::checkpoint, if none is being made -> which files, how large, since when
//! faults     -> Plan::parse, without the drive -> Subsystem::set_faults, the drive held for a moment -> FaultsReport
//! ```
//!
//! Pages of the studio and `warp faults` come here alike. Where a checkpoint goes is what the server was started with; nothing
//! that comes over a network names a file. Who may ask, and how often, is the affair of whoever carries the question.

use std::sync::{Arc, Mutex, TryLockError, Weak};

use serde::Serialize;
use thiserror::Error;

pub use crate::clock::unix_ms;
pub use crate::storage::StoredFile;
pub use nvme::fault::{CannotFail, FaultsReport, Plan, PlanError};

use crate::storage::{DriveError, ServedDrive};
use crate::{Clock, Shared, give_way, locked, pause_between_parts};

/// What a checkpoint that was asked for came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// Whether anything had changed since the checkpoint before, so that one was made.
    pub written: bool,
    /// The files of the newest checkpoint: this one, or the one before. Without the snapshot as long as there is none.
    pub files: Vec<StoredFile>,
}

/// A checkpoint that is not made. Whatever it is, the one before is still there.
#[derive(Debug, Error)]
pub enum CheckpointRefused {
    /// One at a time.
    #[error("a checkpoint of this drive is being made just now; ask again when it is done")]
    Busy,
    /// A drive that forgets.
    #[error(
        "this drive is served without files, so there is nowhere to store it; serve it with --data FILE to have it \
         stored beside that file"
    )]
    NoFiles,
    /// It is not served any more.
    #[error("this drive is closed, or has lost its power; start the server again")]
    Closed,
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// A fault plan that does not hold; what was planned before goes on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultsRefused {
    /// It is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// This drive cannot fail like that.
    #[error(transparent)]
    Drive(#[from] CannotFail),
}

impl FaultsRefused {
    /// The line of the plan that it is about.
    pub fn line(&self) -> Option<usize> {
        match self {
            FaultsRefused::Plan(error) => Some(error.line),
            FaultsRefused::Drive(_) => None,
        }
    }
}

/// What is planned to go wrong with a drive and what has come of it; `None` without a plan.
pub fn faults(shared: &Shared) -> Option<FaultsReport> {
    give_way();
    locked(shared).faults()
}

/// Plans faults from now on, in place of those that were planned; `None` takes them back. The drive is held only to put the plan in
/// its place.
///
/// # Errors
/// It is no plan, or none for this drive.
pub fn plan_faults(shared: &Shared, clock: Clock, text: Option<&str>) -> Result<Option<FaultsReport>, FaultsRefused> {
    let plan = text.map(Plan::parse).transpose()?;
    give_way();
    let mut subsystem = locked(shared);
    subsystem.set_faults(clock.now(), plan)?;
    Ok(subsystem.faults())
}

/// See the module. It does not keep the drive open.
#[derive(Clone)]
pub struct Actions {
    drive: Weak<Mutex<ServedDrive>>,
    shared: Shared,
    clock: Clock,
}

impl Actions {
    /// What may be done to a drive that is open.
    pub fn new(drive: &Arc<Mutex<ServedDrive>>, shared: Shared, clock: Clock) -> Actions {
        Actions {
            drive: Arc::downgrade(drive),
            shared,
            clock,
        }
    }

    /// Makes a checkpoint now, if anything has changed since the last. Hosts go on meanwhile, as they do with every checkpoint.
    ///
    /// # Errors
    /// One is being made, there is nowhere to store it, or the system's.
    pub fn checkpoint(&self) -> Result<Checkpoint, CheckpointRefused> {
        let drive = self.drive.upgrade().ok_or(CheckpointRefused::Closed)?;
        let mut drive = match drive.try_lock() {
            Ok(drive) => drive,
            Err(TryLockError::WouldBlock) => return Err(CheckpointRefused::Busy),
            Err(TryLockError::Poisoned(_)) => return Err(CheckpointRefused::Closed),
        };
        if !drive.has_files() {
            return Err(CheckpointRefused::NoFiles);
        }
        if drive.is_closed() {
            return Err(CheckpointRefused::Closed);
        }
        let written = match drive.checkpoint(pause_between_parts) {
            Ok(written) => written,
            Err(DriveError::Stopping | DriveError::PowerLost) => return Err(CheckpointRefused::Closed),
            Err(error) => return Err(error.into()),
        };
        Ok(Checkpoint {
            written,
            files: drive.stored_files(),
        })
    }

    pub fn faults(&self) -> Option<FaultsReport> {
        faults(&self.shared)
    }

    /// As [`plan_faults`].
    ///
    /// # Errors
    /// As [`plan_faults`].
    pub fn plan_faults(&self, text: Option<&str>) -> Result<Option<FaultsReport>, FaultsRefused> {
        plan_faults(&self.shared, self.clock, text)
    }
}
