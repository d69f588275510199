//! The state of a file, by which a cache detects changes.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Path, inode, length and modification time of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    path: PathBuf,
    /// Device and inode, which differ if another file took the place.
    inode: (u64, u64),
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
        Ok(FileState {
            path: path.to_path_buf(),
            inode: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            modified: metadata.modified()?,
        })
    }
}
