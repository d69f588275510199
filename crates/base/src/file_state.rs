//! The state of a file, by which a cache detects changes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Path, length and modification time of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

impl FileState {
    /// The current state of a file.
    ///
    /// # Errors
    /// The file does not exist, or its file system stores no times.
    pub fn read(path: &Path) -> io::Result<FileState> {
        let metadata = path.metadata()?;
        Ok(FileState { path: path.to_path_buf(), bytes: metadata.len(), modified: metadata.modified()? })
    }
}
