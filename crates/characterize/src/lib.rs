//! Measures a real drive, so that a device profile can be fitted to it.
//!
//! ```text
//! DriveIdentity (Identify, FDP configuration) -> Plan (probes, bytes to write)
//!   -> Characterization::run: for each probe
//!        deallocate, fill in order, write the probe's job until write amplification is steady
//!        -> Journal (each sample), results of the probe
//!   -> ResultFolder: drive.json, measurements.csv, times.csv, jobs/, samples/
//! ```
//!
//! Each probe with a write amplification is a fio job, so the model repeats the same writes. The
//! Python package fits a profile to the folder (`warp_ssd.characterize`). A characterization that
//! ended early continues from its journal. It repeats the probe that was in progress, because the
//! drive's state in the middle of a probe is unknown after a power loss.
//!
//! This crate destroys the data of the namespace. The caller has the user's permission.

pub mod file_systems;
pub mod folder;
pub mod identity;
pub mod journal;
pub mod plan;
pub mod run;
mod times;
pub mod watch;

use initiator::inspect::InspectError;
use initiator::inspect::feedback_logs::WatchError;

#[derive(Debug, thiserror::Error)]
pub enum CharacterizeError {
    #[error(transparent)]
    Drive(#[from] WatchError),
    #[error(transparent)]
    Workload(#[from] workload::WorkloadError),
    #[error(transparent)]
    Experiment(#[from] experiment::LabError),
    #[error("{path}: {source}")]
    File { path: String, source: std::io::Error },
    #[error("{path}, line {line}: {problem}. Remove the folder to begin anew")]
    Journal { path: String, line: usize, problem: String },
    #[error("{0}")]
    Refused(String),
}

impl From<InspectError> for CharacterizeError {
    fn from(error: InspectError) -> CharacterizeError {
        CharacterizeError::Drive(error.into())
    }
}
