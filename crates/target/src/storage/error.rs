//! Reasons why a drive cannot be opened, checkpointed or closed. Each message names the problem and
//! its remedy.

use std::path::{Path, PathBuf};

use nvme::SetupError;
use ssd::{CheckpointEnded, SnapshotError};
use thiserror::Error;

use crate::storage::backend::room::TooLittleMemory;

/// An error of a drive. No error damages existing files.
#[derive(Debug, Error)]
pub enum DriveError {
    /// The device configuration is invalid, or differs from the stored one.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The machine has too little memory.
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    /// The system has no memory for a checkpoint.
    #[error("there is no memory for a checkpoint, beside that of the drive's maps: {0}")]
    NoMemory(std::io::Error),
    /// The device changed too much, or was replaced.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointEnded),
    /// The server is stopping, which makes the checkpoint unnecessary.
    #[error("the drive is being stopped, which stores it as a whole")]
    Stopping,
    /// A fault plan has cut the power.
    #[error("the drive has lost its power, as was planned; nothing is stored any more")]
    PowerLost,
    /// The device snapshot cannot be read or written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Another process serves the file.
    #[error("{}: the data file is in use by another server; stop it or give another file", .0.display())]
    InUse(PathBuf),
    /// The path names a folder, a device or a socket.
    #[error("{}: this is not a regular file; give the path of a file, which is made if there is none", .0.display())]
    NotAFile(PathBuf),
    /// The file has data but no drive state.
    #[error(
        "{}: the file holds data, but no state of a drive is beside it ({}), so it may be anything; give another \
         path, or move the file away", path.display(), state.display()
    )]
    Foreign {
        /// Path given as data file.
        path: PathBuf,
        /// Expected path of the state.
        state: PathBuf,
    },
    /// Other files of the drive exist, but the data file is missing.
    #[error(
        "{}: the data file is not there, but {} of a drive is; restore the data file, or move that file away to begin \
         with an empty drive", path.display(), other.display()
    )]
    DataMissing {
        /// The data file.
        path: PathBuf,
        /// An existing file of the drive.
        other: PathBuf,
    },
    /// A data file that was truncated, extended or replaced.
    #[error(
        "{}: the data file has {found_bytes} bytes, this drive's has {expected_bytes}; restore the file, or serve the \
         capacity that it is for", path.display()
    )]
    WrongSize {
        /// The data file.
        path: PathBuf,
        found_bytes: u64,
        /// Size of the drive's capacity with its metadata.
        expected_bytes: u64,
    },
    /// The drive has no valid checksums.
    #[error(
        "{}: there are no checksums of this drive, or they are not of how it was left; serve it with --checksums, and \
         it has some from then on", .0.display()
    )]
    NoSums(PathBuf),
    /// The profile, capacity or a setting differs from that of the drive's creation.
    #[error(
        "{}: the drive was made with {field} = {stored}, not {given}; serve it with the profile, capacity and \
         settings that it was made with, or give another file", path.display()
    )]
    OtherDrive {
        /// The data file.
        path: PathBuf,
        /// Field of the device configuration.
        field: String,
        /// Stored value.
        stored: String,
        /// Given value.
        given: String,
    },
    /// The snapshot beside the data file belongs to another device.
    #[error(
        "{}: the snapshot is of a device with another geometry than the drive; restore the right one, or move it \
         away: the mapping is then made anew from the data", .0.display()
    )]
    OtherGeometry(PathBuf),
    /// The state file cannot be used.
    #[error("{}: the drive's state {problem}; {remedy}", path.display())]
    State {
        /// The state file.
        path: PathBuf,
        /// Problem, as a clause.
        problem: String,
        /// Remedy, as a clause.
        remedy: &'static str,
    },
    /// A system call failed.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Failed action, as a clause.
        action: &'static str,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// An earlier command panicked because of a bug.
    #[error(
        "the drive failed inside a command, so what it holds in memory was not stored; the next start recovers the \
         mapping from the last checkpoint and the data"
    )]
    Failed,
}

impl DriveError {
    pub(super) fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> DriveError {
        let path = path.to_path_buf();
        move |source| DriveError::Io { path, action, source }
    }

    /// The error for a state file that cannot be written, with a remedy.
    pub(super) fn state_not_stored(path: &Path, source: std::io::Error) -> DriveError {
        use std::io::ErrorKind;
        let action = match source.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "the drive's state cannot be stored (its folder must be writable)"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "the drive's state cannot be stored (make room on its file system)"
            }
            _ => "the drive's state cannot be stored",
        };
        DriveError::io(path, action)(source)
    }

    pub(super) fn state_of_another(path: &Path, problem: &str) -> DriveError {
        DriveError::State {
            path: path.to_path_buf(),
            problem: format!("does not fit the device: {problem}"),
            remedy: "restore it from a copy",
        }
    }

    pub(super) fn unusable_state(path: &Path, error: &nvme::state::StateError) -> DriveError {
        DriveError::State {
            path: path.to_path_buf(),
            problem: format!("cannot be used: {error}"),
            remedy: "serve the drive with the program that wrote it, or restore it from a copy",
        }
    }
}
