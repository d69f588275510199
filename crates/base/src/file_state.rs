//! The state of a file, by which a cache knows that the contents are still the same.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Path, length and time of the last change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

impl FileState {
    /// The state of a file now.
    ///
    /// # Errors
    /// The file is not there, or its file system keeps no times.
    pub fn of(path: &Path) -> io::Result<FileState> {
        let metadata = path.metadata()?;
        Ok(FileState {
            path: path.to_path_buf(),
            bytes: metadata.len(),
            modified: metadata.modified()?,
        })
    }
}
