//! Reasons why a drive cannot be opened, checkpointed or closed. Each message names the problem and
//! its remedy.

use std::path::{Path, PathBuf};

use nvme::SetupError;
use ssd::{CheckpointAbort, SnapshotError};
use thiserror::Error;

use crate::storage::backend::memory_check::TooLittleMemory;

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
    #[error("there is no memory for a checkpoint in addition to the drive's maps ({0})")]
    NoMemory(std::io::Error),
    /// The device changed too much, or was replaced.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointAbort),
    /// The server is stopping, which makes the checkpoint unnecessary.
    #[error("the server is stopping and stores the complete drive, so there is no checkpoint now")]
    Stopping,
    /// A fault plan has cut the power.
    #[error("the fault plan made the drive lose its power, so nothing is stored any more")]
    PowerLost,
    /// The device snapshot cannot be read or written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Another process serves the file.
    #[error("another server uses the data file {}. Stop it or give another file", .0.display())]
    InUse(PathBuf),
    /// The path names a folder, a device or a socket.
    #[error("{} is not a regular file. Give the path of a file, which is created if it does not exist", .0.display())]
    NotAFile(PathBuf),
    /// The file has data but no drive state.
    #[error(
        "the file {} contains data, but {}, the state of a drive, is missing beside it. Give another path, or move the \
         file away", path.display(), state.display()
    )]
    Foreign {
        /// Path given as data file.
        path: PathBuf,
        /// Expected path of the state.
        state: PathBuf,
    },
    /// Other files of the drive exist, but the data file is missing.
    #[error(
        "the data file {} is missing, but {} of a drive exists. Restore the data file, or move the other file away to \
         start with an empty drive", path.display(), other.display()
    )]
    DataMissing {
        path: PathBuf,
        /// An existing file of the drive.
        other: PathBuf,
    },
    /// A data file that was truncated, extended or replaced.
    #[error(
        "the data file {} has {found_bytes} bytes, but this drive needs {expected_bytes}. Restore the file, or serve \
         its original capacity", path.display()
    )]
    WrongSize {
        path: PathBuf,
        found_bytes: u64,
        /// Size of the drive's capacity with its metadata.
        expected_bytes: u64,
    },
    /// The drive has no valid checksums.
    #[error(
        "the drive {} has no checksums, or they are older than its data. Serve it with --checksums to create them",
        .0.display()
    )]
    NoSums(PathBuf),
    /// The profile, capacity or a setting differs from that of the drive's creation.
    #[error(
        "the drive {} was created with {field} = {stored}, but {given} was given. Serve it with its original profile, \
         capacity and settings, or give another file", path.display()
    )]
    OtherDrive {
        path: PathBuf,
        /// Field of the device configuration.
        field: String,
        stored: String,
        given: String,
    },
    /// The snapshot beside the data file belongs to another device.
    #[error(
        "the snapshot {} has another geometry than the drive. Restore the right one, or move it away to rebuild the \
         mapping from the data", .0.display()
    )]
    OtherGeometry(PathBuf),
    /// The state file cannot be used.
    #[error("the drive's state in {} {problem}. {remedy}", path.display())]
    State {
        path: PathBuf,
        /// Problem, as a predicate such as "has version 1".
        problem: String,
        /// Remedy, a sentence without its period.
        remedy: &'static str,
    },
    /// A system call failed.
    #[error("{action} ({}): {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Failed action, such as "the data file cannot be opened".
        action: &'static str,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// An earlier command panicked because of a bug.
    #[error(
        "an earlier command failed because of a bug, so the drive's mapping and counters were not stored. The next \
         start recovers the mapping from the last checkpoint and the data"
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
                "the drive's state cannot be stored until its folder is writable"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "the drive's state cannot be stored until its file system has space"
            }
            _ => "the drive's state cannot be stored",
        };
        DriveError::io(path, action)(source)
    }

    pub(super) fn state_of_another(path: &Path, problem: &str) -> DriveError {
        DriveError::State {
            path: path.to_path_buf(),
            problem: format!("does not fit the device ({problem})"),
            remedy: "Restore it from a copy",
        }
    }

    pub(super) fn unusable_state(path: &Path, error: &nvme::state::StateError) -> DriveError {
        DriveError::State {
            path: path.to_path_buf(),
            problem: format!("cannot be used, because {error}"),
            remedy: "Serve the drive with the program that wrote it, or restore it from a copy",
        }
    }
}
