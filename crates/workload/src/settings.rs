//! Settings of workloads, which describe a workload before it runs, and functions to read and check
//! them.
//!
//! ```text
//! toml::Value -> deserialize -> settings of a kind, which implement Workload
//!   -> source(target, seed) -> dyn RequestSource
//! ```
//!
//! This module does not know the kinds of workloads. `applications::WorkloadSpec` lists them.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use toml::Value;

use crate::{RequestSource, WorkloadError, WorkloadTarget};

/// Checked settings of a workload of any kind. They are cheap to clone. Serialization is complete
/// except for the contents of the files that the workload reads when it runs.
pub trait Workload {
    /// Builds the source of the workload's requests on a drive.
    ///
    /// # Errors
    /// Fails if the workload does not fit the drive or a file cannot be opened.
    fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<Box<dyn RequestSource>, WorkloadError>;

    /// Maximum memory of the source, bytes, for any run time. Computed before the source is built.
    ///
    /// # Errors
    /// Fails if the workload does not fit the drive.
    fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError>;

    /// Files that the workload reads when it runs.
    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        Vec::new()
    }

    /// True if the host has a pace of its own in virtual time, and so needs the drive for itself.
    fn is_paced(&self) -> bool {
        false
    }
}

/// Rejects a setting that is out of bounds. Bounds have the form `least..=most` or `least..`.
///
/// # Errors
/// Fails if the value is out of bounds.
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

/// Rejects a setting that is not a positive multiple of `unit_bytes`, up to `most` bytes.
///
/// # Errors
/// Fails if the value is not such a multiple.
pub fn multiple_of(unit_bytes: u64, name: &str, bytes: u64, most: u64) -> Result<(), WorkloadError> {
    if (1..=most).contains(&bytes) && bytes.is_multiple_of(unit_bytes) {
        return Ok(());
    }
    let problem = format!("must be a multiple of {unit_bytes} bytes and at most {}", base::HumanBytes(most));
    Err(WorkloadError::setting(format!("{name} = {bytes}"), problem))
}

/// Reads settings. `place` is the table's name in messages, and an error names the path of the
/// field.
///
/// # Errors
/// Fails if a setting is unknown or has the wrong type.
pub fn deserialize<T: DeserializeOwned>(place: &str, value: Value) -> Result<T, WorkloadError> {
    base::read_value(value).map_err(|base::Misfit { path, problem }| {
        let place = match path.as_str() {
            "" => place.to_string(),
            path => format!("{place}.{path}"),
        };
        // "is the text ..., expected a number" continues the place, other messages stand alone.
        match problem.starts_with("is ") {
            true => WorkloadError::setting(place, problem),
            false => WorkloadError::at(place, problem),
        }
    })
}
