//! The files of a drive: finding them, refusing what is not one, and having them alone.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::DriveError;
use super::recover::next_data;
use super::state_file::{self, Contents};

/// Where the files of a drive are.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// The data: byte `n` of the drive is byte `n` of the file.
    pub data: PathBuf,
    /// Identity, non-volatile state, and how the drive was left.
    pub state: PathBuf,
    /// Snapshot of the device: mapping, counters, open reclaim units.
    pub snapshot: PathBuf,
    /// Counters that hosts were told; may be missing.
    pub counters: PathBuf,
    /// Checksums of the data; a drive that has none has no such file.
    pub sums: PathBuf,
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
    pub fn of(data: &Path) -> Files {
        let beside = |extension: &str| {
            let mut name = data.as_os_str().to_owned();
            name.push(extension);
            PathBuf::from(name)
        };
        Files {
            data: data.to_path_buf(),
            state: beside(".state"),
            snapshot: beside(".ftl"),
            counters: beside(".counters"),
            sums: beside(".sums"),
        }
    }

    /// Opens and locks the data file of `file_bytes` bytes for a drive whose device is `described`; a new one is given
    /// that length. Everything that speaks against serving it is found before anything is changed.
    ///
    /// # Errors
    /// What is there is in use, damaged, or not this drive.
    pub fn claim(&self, file_bytes: u64, described: &Value) -> Result<Claim, DriveError> {
        let made = self.check_there()?;
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            // What is on the drive is its owner's.
            .mode(0o600)
            .open(&self.data);
        let file = options.map_err(DriveError::io(&self.data, "the data file cannot be opened"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = self.data.clone();
                return Err(DriveError::InUse(path));
            }
            Err(TryLockError::Error(source)) => {
                return Err(DriveError::io(&self.data, "the data file cannot be locked")(source));
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
                DriveError::io(&self.data, "the data file cannot be made as large as the drive")(source)
            })?;
        }
        self.remove_parts();
        Ok(Claim { file, stored, made })
    }

    /// Takes back a data file that was made for a drive that cannot be made.
    pub fn undo(&self, made: bool) {
        if made {
            // It was empty; if it stays, the next start takes it for a new drive.
            let _ = std::fs::remove_file(&self.data);
        }
    }

    /// Whether the data file is to be made; refuses what is no regular file, and a drive without its data file.
    fn check_there(&self) -> Result<bool, DriveError> {
        match std::fs::metadata(&self.data) {
            Ok(metadata) if metadata.is_file() => Ok(false),
            Ok(_) => Err(DriveError::NotAFile(self.data.clone())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                match [&self.state, &self.snapshot].into_iter().find(|file| file.exists()) {
                    None => Ok(true),
                    Some(other) => Err(DriveError::DataMissing {
                        path: self.data.clone(),
                        other: other.clone(),
                    }),
                }
            }
            Err(source) => Err(DriveError::io(&self.data, "the data file cannot be looked at")(source)),
        }
    }

    /// The stored drive, which is the one that is to be served.
    fn check_stored(&self, file: &File, file_bytes: u64, described: &Value) -> Result<Contents, DriveError> {
        let stored = state_file::read(&self.state)?;
        if let Some((field, stored, given)) = state_file::difference(&stored.header.device, described) {
            return Err(DriveError::OtherDrive {
                path: self.data.clone(),
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
        let look = DriveError::io(&self.data, "the data file cannot be searched for data");
        let foreign = || DriveError::Foreign {
            path: self.data.clone(),
            state: self.state.clone(),
        };
        if next_data(file, 0).map_err(look)?.is_some() || self.snapshot.exists() {
            return Err(foreign());
        }
        // A file of holes that somebody made as large as the drive is as good as an empty one.
        let length = file
            .metadata()
            .map_err(DriveError::io(&self.data, "the data file cannot be looked at"))?
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
            .map_err(DriveError::io(&self.data, "the data file cannot be looked at"))?;
        if metadata.len() != expected_bytes {
            return Err(DriveError::WrongSize {
                path: self.data.clone(),
                found_bytes: metadata.len(),
                expected_bytes,
            });
        }
        Ok(())
    }

    /// Removes what a crash left of a state or a snapshot that was being written. Only the server that has the data
    /// file writes them, so nobody misses it; what cannot be removed does no harm.
    fn remove_parts(&self) {
        let folder = self.data.parent().filter(|folder| !folder.as_os_str().is_empty());
        let Ok(entries) = std::fs::read_dir(folder.unwrap_or(Path::new("."))) else {
            return;
        };
        let prefixes = [&self.state, &self.snapshot].map(|path| {
            let name = path.file_name().expect("a data file has a name").to_string_lossy();
            format!(".{name}-")
        });
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let middle = |prefix: &String| {
                name.strip_prefix(prefix.as_str())?
                    .strip_suffix(ssd::snapshot::PART_SUFFIX)
            };
            // Without a hyphen: that would be a part of another file, whose name begins like ours.
            if prefixes.iter().filter_map(middle).any(|random| !random.contains('-')) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
