//! The files of a drive: finds them, rejects foreign files, and locks the data file.
//!
//! All accesses go through an open handle of the data file's folder, taken when the drive was
//! opened. Before a file is created or replaced, a guard checks two conditions. The data file with
//! this name in the folder must be the open one. The state beside it, if present, must belong to
//! the same drive. If a user renames the folder or moves the data file and puts another drive
//! there, the other drive stays unchanged.

use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base::FilePlace;
use serde_json::Value;
use uuid::Uuid;

use super::error::DriveError;
use super::recover::next_data;
use super::state_file::{self, Contents};

/// Locations of a drive's files.
#[derive(Clone, Debug)]
pub(super) struct DriveFiles {
    /// The data. Byte `n` of the drive is byte `n` of the file.
    pub data: FilePlace,
    /// Identity, non-volatile state and clean mark.
    pub state: FilePlace,
    /// Snapshot of the device: mapping, counters, open reclaim units.
    pub snapshot: FilePlace,
    /// Counters that hosts have read. The file may be missing.
    pub counters: FilePlace,
    /// Checksums of the data. A drive without checksums has no such file.
    pub checksums: FilePlace,
}

/// A data file locked by this process.
pub(super) struct DataFileLock {
    pub file: File,
    /// Stored state of the drive, `None` for a new one.
    pub stored: Option<Contents>,
    /// True if this call created the file.
    pub made: bool,
}

impl DriveFiles {
    pub fn new(data: &Path) -> Result<DriveFiles, DriveError> {
        let data = FilePlace::new(data).map_err(DriveError::io(data, "the data file cannot be opened"))?;
        // Other users must not read the drive's data.
        let data = data.owner_only();
        Ok(DriveFiles {
            state: data.with_suffix(".state"),
            snapshot: data.with_suffix(".ftl"),
            counters: data.with_suffix(".counters"),
            checksums: data.with_suffix(".sums"),
            data,
        })
    }

    /// The same files with a guard. They are created and replaced only while `file` is the data
    /// file and the drive is this one.
    pub fn guarded(self, file: &File, drive: Uuid) -> std::io::Result<DriveFiles> {
        let identity = identity(&file.metadata()?);
        let (data, state) = (self.data.clone(), self.state.clone());
        let guard = move || check_own(&data, identity, &state, drive);
        Ok(DriveFiles {
            state: self.state.with_guard(guard.clone()),
            snapshot: self.snapshot.with_guard(guard.clone()),
            counters: self.counters.with_guard(guard.clone()),
            checksums: self.checksums.with_guard(guard),
            ..self
        })
    }

    /// Opens and locks the data file of `file_bytes` bytes for a drive with the device `described`.
    /// A new file gets that length. All checks run before the first change.
    ///
    /// # Errors
    /// The existing file is in use, damaged, or belongs to another drive.
    pub fn claim(&self, file_bytes: u64, described: &Value) -> Result<DataFileLock, DriveError> {
        let made = self.check_there()?;
        let path = self.data.path();
        let file = self.data.open_or_make();
        let file = file.map_err(DriveError::io(path, "the data file cannot be opened"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DriveError::InUse(path.to_path_buf()));
            }
            Err(TryLockError::Error(source)) => {
                return Err(DriveError::io(path, "the data file cannot be locked")(source));
            }
        }
        // Read under the lock, because another server may own the state before.
        let stored = if self.state.exists() {
            Some(self.check_stored(&file, file_bytes, described)?)
        } else {
            self.check_empty(&file, file_bytes)?;
            None
        };
        if stored.is_none() {
            // The length is durable before the state that records it.
            let sized = file.set_len(file_bytes).and_then(|()| file.sync_all());
            sized.map_err(|source| {
                self.undo(made);
                DriveError::io(path, "the data file cannot be made as large as the drive")(source)
            })?;
        }
        self.remove_parts();
        Ok(DataFileLock { file, stored, made })
    }

    /// Removes the data file of a drive that could not be created.
    pub fn undo(&self, made: bool) {
        if made {
            // The file is empty. If it remains, the next start treats it as a new drive.
            let _ = self.data.remove();
        }
    }

    /// Returns whether the data file must be created. Rejects other kinds of files, and a drive
    /// whose data file is missing.
    fn check_there(&self) -> Result<bool, DriveError> {
        let path = self.data.path();
        match self.data.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(false),
            Ok(_) => Err(DriveError::NotAFile(path.to_path_buf())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match [&self.state, &self.snapshot].into_iter().find(|file| file.exists()) {
                    None => Ok(true),
                    Some(other) => {
                        Err(DriveError::DataMissing { path: path.to_path_buf(), other: other.path().to_path_buf() })
                    }
                }
            }
            Err(source) => Err(DriveError::io(path, "the data file cannot be examined")(source)),
        }
    }

    fn check_stored(&self, file: &File, file_bytes: u64, described: &Value) -> Result<Contents, DriveError> {
        let stored = state_file::read(&self.state)?;
        if let Some((field, stored, given)) = state_file::difference(&stored.header.device, described) {
            return Err(DriveError::OtherDrive { path: self.data.path().to_path_buf(), field, stored, given });
        }
        self.check_size(file, file_bytes)?;
        Ok(stored)
    }

    /// Rejects a file with data as the data file of a new drive.
    fn check_empty(&self, file: &File, file_bytes: u64) -> Result<(), DriveError> {
        let look = DriveError::io(self.data.path(), "the data file cannot be searched for data");
        let foreign =
            || DriveError::Foreign { path: self.data.path().to_path_buf(), state: self.state.path().to_path_buf() };
        if next_data(file, 0).map_err(look)?.is_some() || self.snapshot.exists() {
            return Err(foreign());
        }
        // A file of holes with the drive's size is equivalent to an empty one.
        let length =
            file.metadata().map_err(DriveError::io(self.data.path(), "the data file cannot be examined"))?.len();
        if length == 0 { Ok(()) } else { self.check_size(file, file_bytes) }
    }

    fn check_size(&self, file: &File, expected_bytes: u64) -> Result<(), DriveError> {
        let metadata = file.metadata().map_err(DriveError::io(self.data.path(), "the data file cannot be examined"))?;
        if metadata.len() != expected_bytes {
            return Err(DriveError::WrongSize {
                path: self.data.path().to_path_buf(),
                found_bytes: metadata.len(),
                expected_bytes,
            });
        }
        Ok(())
    }

    /// Removes partial states and snapshots of a crash. Only the server with the lock writes them,
    /// so no other process needs them.
    fn remove_parts(&self) {
        self.state.remove_parts();
        self.snapshot.remove_parts();
    }
}

/// Device and inode, unique as long as the file is open.
fn identity(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Rejects changes beside a data file or a state that does not belong to the drive.
fn check_own(data: &FilePlace, own: (u64, u64), state: &FilePlace, drive: Uuid) -> std::io::Result<()> {
    let remedy = "Move it back, or stop the server and serve it from its new path";
    let problem = match data.metadata() {
        Ok(found) if identity(&found) == own => match state_file::drive_of(state) {
            Some(other) if other != drive => {
                "the state of another drive replaced its own state file. Restore the drive's own state file".to_string()
            }
            _ => return Ok(()),
        },
        Ok(_) => {
            format!("its data file was moved and another file has its path. {remedy}")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("its data file is no longer at its path. {remedy}")
        }
        Err(error) => return Err(error),
    };
    Err(Error::other(problem))
}
