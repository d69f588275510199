//! Files that appear whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use crate::error::LabError;

/// Writes a file that appears whole or not at all: beside its place first, then renamed.
///
/// # Errors
/// The file cannot be written: names it and the system's reason.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> Result<(), LabError> {
    ssd::snapshot::write_atomically(path, fill).map_err(|source| LabError::output(path, source))
}
