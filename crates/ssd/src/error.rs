//! The two kinds of error a caller can cause. Our own bugs are asserts and stay on.

use std::fmt::Display;
use std::ops::RangeInclusive;

use thiserror::Error;

/// A configuration that cannot become a device: which field, what it says, what would be allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} = {value}: {allowed}")]
pub struct ConfigError {
    /// Path of the field, as in the TOML.
    pub field: String,
    /// The value found.
    pub value: String,
    /// What is allowed, or the smallest change that works.
    pub allowed: String,
}

impl ConfigError {
    pub(crate) fn new(field: &str, value: impl ToString, allowed: impl Into<String>) -> ConfigError {
        ConfigError {
            field: field.to_string(),
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }

    /// Refuses a value that is not allowed.
    pub(crate) fn unless(ok: bool, field: &str, value: impl ToString, allowed: &str) -> Result<(), ConfigError> {
        if ok {
            return Ok(());
        }
        Err(ConfigError::new(field, value, allowed))
    }

    /// Refuses a number that is out of bounds.
    pub(crate) fn between<T>(field: &str, value: T, allowed: RangeInclusive<T>) -> Result<(), ConfigError>
    where
        T: PartialOrd + Display,
    {
        let sentence = format!("must be between {} and {}", allowed.start(), allowed.end());
        ConfigError::unless(allowed.contains(&value), field, value, &sentence)
    }
}

/// A command that the device cannot carry out as given. The controller turns it into an NVMe status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// The extent is empty or reaches beyond the capacity ("LBA Out of Range").
    #[error("logical pages {first} to {first}+{pages} are outside the device's {capacity} pages")]
    OutOfRange {
        /// First logical page asked for.
        first: u32,
        /// Number of pages asked for.
        pages: u32,
        /// Logical pages of the device.
        capacity: u32,
    },
    /// The reclaim group or handle does not exist ("Invalid Placement Identifier").
    #[error(
        "placement on reclaim group {group}, handle {handle}: the device has {groups} groups and {handles} handles"
    )]
    InvalidPlacement {
        /// Reclaim group asked for.
        group: u16,
        /// Handle asked for.
        handle: u16,
        /// Reclaim groups of the device.
        groups: u16,
        /// Handles of the device.
        handles: u16,
    },
}

/// A snapshot that cannot be written or loaded.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The file system said no.
    #[error("snapshot {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Its reason.
        source: std::io::Error,
    },
    /// Another kind of file.
    #[error("snapshot {path}: is not a WARP snapshot; give a file that `warp run --save` wrote")]
    Foreign {
        /// The file.
        path: String,
    },
    /// The bytes are not a snapshot of this version, or not a whole one.
    #[error("snapshot {path}: {problem}; {remedy}")]
    Invalid {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl SnapshotError {
    /// The file system said no.
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> SnapshotError {
        let path = path.display().to_string();
        move |source| SnapshotError::Io { path, source }
    }
}

/// A checkpoint that comes to nothing, for a reason that is not the file system's; the device goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CheckpointEnded {
    /// The device that it was of is gone, or another checkpoint of it was begun.
    #[error(
        "the drive's media was divided anew while it was being stored, or another checkpoint was begun; the next one is of \
         what there is now"
    )]
    Replaced,
    /// The map changed faster than it could be stored.
    #[error(
        "hosts changed more of the mapping than is kept of changes until the disk has taken it; use a faster disk for \
         the drive's files, or checkpoint when hosts write less"
    )]
    TooManyChanges,
    /// There is no memory for the changes.
    #[error("there is no memory for what changes while the mapping is being stored")]
    NoMemory,
}
