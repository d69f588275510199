//! What workloads are before they run: settings, read from tables.
//!
//! ```text
//! toml::Value -> deserialize -> settings of a kind: Workload -> source(target, seed) -> dyn Source
//! ```
//!
//! It does not know which kinds there are; who composes them into a catalogue does.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use toml::Value;

use crate::{Source, Target, WorkloadError};

/// A workload as its settings, of whatever kind: checked, cheap to clone, and serialized complete but for the contents of the files that
/// it reads when it runs.
pub trait Workload {
    /// Its requests on a drive.
    ///
    /// # Errors
    /// It does not fit the drive, or a file that it reads cannot be opened.
    fn source(&self, target: &Target, seed: u64) -> Result<Box<dyn Source>, WorkloadError>;

    /// Memory that its source takes at most, bytes, however long it runs. It is computed before anything is built.
    ///
    /// # Errors
    /// It does not fit the drive.
    fn memory_bytes(&self, target: &Target) -> Result<u64, WorkloadError>;

    /// The files that it reads when it runs.
    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        Vec::new()
    }

    /// Whether its host has a pace of its own in virtual time, and so needs the drive for itself.
    fn is_paced(&self) -> bool {
        false
    }
}

/// Refuses a setting that is out of bounds, which are `least..=most` or `least..`.
///
/// # Errors
/// It is.
pub fn within<T: PartialOrd + Display>(
    name: &str,
    value: T,
    allowed: impl RangeBounds<T>,
) -> Result<(), WorkloadError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let problem = match (allowed.start_bound(), allowed.end_bound()) {
        (Bound::Included(least), Bound::Included(most)) => format!("must be from {least} to {most}"),
        (Bound::Included(least), Bound::Unbounded) => format!("must be at least {least}"),
        _ => unreachable!("settings have bounds of the other kinds nowhere"),
    };
    Err(WorkloadError::setting(format!("{name} = {value}"), problem))
}

/// Refuses a setting that is not some units of so many bytes, up to `most` bytes.
///
/// # Errors
/// It is not.
pub fn multiple_of(unit_bytes: u64, name: &str, bytes: u64, most: u64) -> Result<(), WorkloadError> {
    if (1..=most).contains(&bytes) && bytes.is_multiple_of(unit_bytes) {
        return Ok(());
    }
    let problem = format!(
        "must be a multiple of {unit_bytes} bytes, at most {}",
        base::Bytes(most)
    );
    Err(WorkloadError::setting(format!("{name} = {bytes}"), problem))
}

/// Reads settings; `place` is what messages call their table, and an error names the path of the field.
///
/// # Errors
/// A setting that is not known, or of the wrong type.
pub fn deserialize<T: DeserializeOwned>(place: &str, value: Value) -> Result<T, WorkloadError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let place = match path.as_str() {
            "." => place.to_string(),
            path => format!("{place}.{path}"),
        };
        let problem = error.into_inner().message().trim().replace('\n', ", ");
        WorkloadError::setting(place, base::hinted(&problem))
    })
}
