//! The files of a drive: finding them, refusing what is not one, and having them alone.
//!
//! All of them are reached through the folder that the data file was in when the drive was opened, which is held. Before one of them is made or
//! replaced the data file of that name in that folder has to be the one that is open, and the state beside it, if there is one, of the same drive:
//! whoever renames the folder, or moves the data file away, and puts another drive there, finds that one as it was.

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

/// Where the files of a drive are.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// The data: byte `n` of the drive is byte `n` of the file.
    pub data: FilePlace,
    /// Identity, non-volatile state, and how the drive was left.
    pub state: FilePlace,
    /// Snapshot of the device: mapping, counters, open reclaim units.
    pub snapshot: FilePlace,
    /// Counters that hosts were told; may be missing.
    pub counters: FilePlace,
    /// Checksums of the data; a drive that has none has no such file.
    pub sums: FilePlace,
}

/// A data file that no other process uses.
pub(super) struct Claim {
    pub file: File,
    /// What is stored of the drive; `None` for a new one.
    pub stored: Option<Contents>,
    /// The file was not there before.
    pub made: bool,
}

impl Files {
    /// The files of the drive whose data file has this path.
    ///
    /// # Errors
    /// Their folder cannot be opened.
    pub fn of(data: &Path) -> Result<Files, DriveError> {
        let data = FilePlace::of(data).map_err(DriveError::io(data, "the data file cannot be opened"))?;
        // What is on the drive is its owner's.
        let data = data.owner_only();
        Ok(Files {
            state: data.beside(".state"),
            snapshot: data.beside(".ftl"),
            counters: data.beside(".counters"),
            sums: data.beside(".sums"),
            data,
        })
    }

    /// The same files, which are made and replaced only as long as `file` is the data file and the drive is this one.
    ///
    /// # Errors
    /// The system's.
    pub fn guarded(self, file: &File, drive: Uuid) -> std::io::Result<Files> {
        let identity = identity(&file.metadata()?);
        let (data, state) = (self.data.clone(), self.state.clone());
        let guard = move || check_own(&data, identity, &state, drive);
        Ok(Files {
            state: self.state.guarded(guard.clone()),
            snapshot: self.snapshot.guarded(guard.clone()),
            counters: self.counters.guarded(guard.clone()),
            sums: self.sums.guarded(guard),
            ..self
        })
    }

    /// Opens and locks the data file of `file_bytes` bytes for a drive whose device is `described`; a new one is given
    /// that length. Everything that speaks against serving it is found before anything is changed.
    ///
    /// # Errors
    /// What is there is in use, damaged, or not this drive.
    pub fn claim(&self, file_bytes: u64, described: &Value) -> Result<Claim, DriveError> {
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
        // Only now, because the state may be another server's until the lock is ours.
        let stored = if self.state.exists() {
            Some(self.check_stored(&file, file_bytes, described)?)
        } else {
            self.check_empty(&file, file_bytes)?;
            None
        };
        if stored.is_none() {
            // On disk before the state that says how long it is.
            let sized = file.set_len(file_bytes).and_then(|()| file.sync_all());
            sized.map_err(|source| {
                self.undo(made);
                DriveError::io(path, "the data file cannot be made as large as the drive")(source)
            })?;
        }
        self.remove_parts();
        Ok(Claim { file, stored, made })
    }

    /// Takes back a data file that was made for a drive that cannot be made.
    pub fn undo(&self, made: bool) {
        if made {
            // It was empty; if it stays, the next start takes it for a new drive.
            let _ = self.data.remove();
        }
    }

    /// Whether the data file is to be made; refuses what is no regular file, and a drive without its data file.
    fn check_there(&self) -> Result<bool, DriveError> {
        let path = self.data.path();
        match self.data.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(false),
            Ok(_) => Err(DriveError::NotAFile(path.to_path_buf())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match [&self.state, &self.snapshot].into_iter().find(|file| file.exists()) {
                    None => Ok(true),
                    Some(other) => Err(DriveError::DataMissing {
                        path: path.to_path_buf(),
                        other: other.path().to_path_buf(),
                    }),
                }
            }
            Err(source) => Err(DriveError::io(path, "the data file cannot be looked at")(source)),
        }
    }

    /// The stored drive, which is the one that is to be served.
    fn check_stored(&self, file: &File, file_bytes: u64, described: &Value) -> Result<Contents, DriveError> {
        let stored = state_file::read(&self.state)?;
        if let Some((field, stored, given)) = state_file::difference(&stored.header.device, described) {
            return Err(DriveError::OtherDrive {
                path: self.data.path().to_path_buf(),
                field,
                stored,
                given,
            });
        }
        self.check_size(file, file_bytes)?;
        Ok(stored)
    }

    /// Refuses to begin a new drive in a file that has anything in it.
    fn check_empty(&self, file: &File, file_bytes: u64) -> Result<(), DriveError> {
        let look = DriveError::io(self.data.path(), "the data file cannot be searched for data");
        let foreign = || DriveError::Foreign {
            path: self.data.path().to_path_buf(),
            state: self.state.path().to_path_buf(),
        };
        if next_data(file, 0).map_err(look)?.is_some() || self.snapshot.exists() {
            return Err(foreign());
        }
        // A file of holes that somebody made as large as the drive is as good as an empty one.
        let length = file
            .metadata()
            .map_err(DriveError::io(self.data.path(), "the data file cannot be looked at"))?
            .len();
        if length == 0 {
            Ok(())
        } else {
            self.check_size(file, file_bytes)
        }
    }

    fn check_size(&self, file: &File, expected_bytes: u64) -> Result<(), DriveError> {
        let metadata = file
            .metadata()
            .map_err(DriveError::io(self.data.path(), "the data file cannot be looked at"))?;
        if metadata.len() != expected_bytes {
            return Err(DriveError::WrongSize {
                path: self.data.path().to_path_buf(),
                found_bytes: metadata.len(),
                expected_bytes,
            });
        }
        Ok(())
    }

    /// Removes what a crash left of a state or a snapshot that was being written. Only the server that has the data
    /// file writes them, so nobody misses it.
    fn remove_parts(&self) {
        self.state.remove_parts();
        self.snapshot.remove_parts();
    }
}

/// What tells a file from all others as long as it is open.
fn identity(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Refuses to touch files beside a data file that is not the drive's, or beside a state that is not.
fn check_own(data: &FilePlace, own: (u64, u64), state: &FilePlace, drive: Uuid) -> std::io::Result<()> {
    let remedy = "move it back, or stop the server and serve it where it is now";
    let problem = match data.metadata() {
        Ok(found) if identity(&found) == own => match state_file::drive_of(state) {
            Some(other) if other != drive => {
                "the state of another drive is in the place of its own, and is left as it is; put the drive's own back"
                    .to_string()
            }
            _ => return Ok(()),
        },
        Ok(_) => {
            format!("another file is in the place of its data file, which was moved away while it was served; {remedy}")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("its data file is not in its place any more; {remedy}")
        }
        Err(error) => return Err(error),
    };
    Err(Error::other(problem))
}
