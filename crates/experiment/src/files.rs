//! Atomic file writes.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use crate::error::LabError;

/// Writes a file atomically: first beside its place, then renamed.
///
/// # Errors
/// The file cannot be written. The error names it and the system's reason.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> Result<(), LabError> {
    ssd::snapshot::write_atomically(path, fill).map_err(|source| LabError::output(path, source))
}
