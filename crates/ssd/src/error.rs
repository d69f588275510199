//! Errors that a caller can cause. Bugs of the model itself fail asserts, which stay on in release
//! builds.

use std::fmt::Display;
use std::ops::RangeInclusive;

use thiserror::Error;

/// Error of a configuration that cannot become a device. Names the field, its value and the allowed
/// values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {value}, but {allowed}")]
pub struct ConfigError {
    /// Path of the field, as in TOML.
    pub field: String,
    /// Rejected value.
    pub value: String,
    /// Allowed values as a clause after "but", such as "must be between 1 and 64", or the remedy.
    pub allowed: String,
}

impl ConfigError {
    pub(crate) fn new(field: &str, value: impl ToString, allowed: impl Into<String>) -> ConfigError {
        ConfigError { field: field.to_string(), value: value.to_string(), allowed: allowed.into() }
    }

    /// Rejects a value unless `ok` is true.
    pub(crate) fn require(ok: bool, field: &str, value: impl ToString, allowed: &str) -> Result<(), ConfigError> {
        if ok {
            return Ok(());
        }
        Err(ConfigError::new(field, value, allowed))
    }

    /// Rejects a number that is out of bounds.
    pub(crate) fn require_range<T>(field: &str, value: T, allowed: RangeInclusive<T>) -> Result<(), ConfigError>
    where
        T: PartialOrd + Display,
    {
        let sentence = format!("must be between {} and {}", allowed.start(), allowed.end());
        ConfigError::require(allowed.contains(&value), field, value, &sentence)
    }
}

/// Error of a command that the device cannot carry out. The controller converts it to an NVMe
/// status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// The extent is empty or reaches beyond the capacity ("LBA Out of Range").
    #[error("logical pages {first} to {first}+{pages} exceed the device's capacity of {capacity} pages")]
    OutOfRange {
        /// First requested logical page.
        first: u32,
        /// Number of requested pages.
        pages: u32,
        /// Capacity of the device in logical pages.
        capacity: u32,
    },
    /// The reclaim group or handle does not exist ("Invalid Placement Identifier").
    #[error(
        "reclaim group {group} or handle {handle} does not exist. The device has {groups} groups and {handles} handles"
    )]
    InvalidPlacement {
        /// Requested reclaim group.
        group: u16,
        /// Requested handle.
        handle: u16,
        /// Number of reclaim groups of the device.
        groups: u16,
        /// Number of handles of the device.
        handles: u16,
    },
}

/// Error of a snapshot that cannot be written or loaded.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The file system reported an error.
    #[error("cannot access the snapshot {path} ({source})")]
    Io {
        /// Path of the file.
        path: String,
        /// Error of the file system.
        source: std::io::Error,
    },
    /// The file is not a WARP snapshot.
    #[error("{path} is not a WARP snapshot. Give a file that `warp run --save-snapshot` wrote")]
    Foreign {
        /// Path of the file.
        path: String,
    },
    /// The file is a snapshot of another version, or an incomplete or damaged snapshot.
    #[error("the snapshot {path} {problem}. {remedy}")]
    Invalid {
        /// Path of the file.
        path: String,
        /// Description of the problem.
        problem: String,
        /// Advice on how to solve the problem.
        remedy: &'static str,
    },
}

impl SnapshotError {
    /// Wraps an error of the file system.
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> SnapshotError {
        let path = path.display().to_string();
        move |source| SnapshotError::Io { path, source }
    }
}

/// Reason why a checkpoint is abandoned, other than a file system error. The device keeps working.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CheckpointAbort {
    /// The device was replaced, or another checkpoint of it was started.
    #[error("the FDP configuration changed or another checkpoint started. The next checkpoint stores the new state")]
    Replaced,
    /// Hosts changed the map faster than the disk could store it.
    #[error(
        "hosts changed the mapping faster than the disk could store it. Use a faster disk for the drive's files, or \
         checkpoint under a lighter load"
    )]
    TooManyChanges,
    /// The system has no memory to track the changes.
    #[error(
        "the machine has no memory to log changes of the mapping during the checkpoint. Free memory, or checkpoint \
         under a lighter load"
    )]
    NoMemory,
}
