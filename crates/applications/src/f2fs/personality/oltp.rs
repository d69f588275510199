//! OLTP: database writers that overwrite parts of their files in synced batches, and a log writer.
//!
//! The workload is Filebench's `workloads/oltp.f` with the WARP paper's numbers (section 3.4, Table
//! 1): 10 writers, 63,000 files, 256 KiB per write, 100 asynchronous writes per batch. Files are
//! opened with `dsync`, so each write syncs only its data (`generic_write_sync`). A write goes to
//! the next file in turn (`opennext`), at a random multiple of its size. One log write follows a
//! fixed number of batches. The readers of oltp.f matter only for the ratio that their semaphores
//! set.

use serde::{Deserialize, Serialize};

use super::file_count;
use super::random::PersonalityRng;
use crate::f2fs::file_system::{FileSystem, FileSystemFull};
use crate::f2fs::layout::{BLOCK_BYTES, F2fsLayout};
use workload::{WorkloadError, WorkloadTarget, within};

/// Settings of a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OltpSettings {
    /// Number of data files. A scaled model has 1/d of them. Default 63,000 (WARP paper,
    /// section 3.4), or fewer on a drive of which they would take more than 9 %.
    pub files: Option<u32>,
    /// Size of a data file, bytes. Default 10 MiB (`filesize` of oltp.f, because the paper has
    /// none).
    #[serde(with = "base::size")]
    pub file_bytes: u64,
    /// Size of a write, bytes. Default 256 KiB (WARP paper, Table 1).
    #[serde(with = "base::size")]
    pub write_bytes: u64,
    /// Number of database writers. Default 10 (WARP paper, Table 1).
    pub writers: u32,
    /// Writes per batch of a writer. Default 100 (WARP paper, section 3.4).
    pub writes_per_batch: u32,
    /// Syncs cover only data (`dsync`), without times and sizes (`fsync`). Default true (oltp.f).
    pub datasync: bool,
    /// Size of the log, bytes. Default 10 MiB (`logfilesize` of oltp.f).
    #[serde(with = "base::size")]
    pub log_bytes: u64,
    /// Batches per log write. Default 3 (semaphores of oltp.f, 3200 transactions to 1000).
    pub batches_per_log_write: u32,
    /// Reads of a whole file per batch, if reads are issued. Default 20 (R:W of 1:5 in the WARP
    /// paper, Table 1).
    pub reads_per_batch: u32,
}

impl Default for OltpSettings {
    fn default() -> OltpSettings {
        OltpSettings {
            files: None,
            file_bytes: 10 << 20,
            write_bytes: 256 << 10,
            writers: 10,
            writes_per_batch: 100,
            datasync: true,
            log_bytes: 10 << 20,
            batches_per_log_write: 3,
            reads_per_batch: 20,
        }
    }
}

/// Number of files in the paper's database (section 3.4), and their share of a smaller drive.
const PAPER_FILES: u32 = 63_000;
const FILES_PERCENT: f64 = 9.0;
/// Files of a directory (`dirwidth` of oltp.f).
const FILES_PER_DIRECTORY: u32 = 1024;

/// A running database.
pub struct Oltp {
    settings: OltpSettings,
    random: PersonalityRng,
    reads: bool,
    files: u32,
    directories: Vec<u32>,
    /// Number of files created so far. The data files come first, then the log.
    made: u32,
    next_file: Vec<u32>,
    writer: usize,
    batches: u64,
}

impl OltpSettings {
    /// Creates a database for a drive.
    ///
    /// # Errors
    /// A setting is impossible, or the file system cannot hold the data.
    pub fn start(
        &self,
        target: &WorkloadTarget,
        layout: &F2fsLayout,
        seed: u64,
        reads: bool,
    ) -> Result<Oltp, WorkloadError> {
        let wrong = |name: &str, value: u64, problem: &str| {
            Err(WorkloadError::setting(format!("oltp.{name} = {value}"), problem))
        };
        if self.write_bytes == 0 || !self.write_bytes.is_multiple_of(BLOCK_BYTES) {
            return wrong("write_bytes", self.write_bytes, "must be a multiple of 4096");
        }
        for (name, bytes) in [("file_bytes", self.file_bytes), ("log_bytes", self.log_bytes)] {
            if bytes == 0 || !bytes.is_multiple_of(self.write_bytes) {
                return wrong(name, bytes, "must be a multiple of write_bytes");
            }
        }
        within("oltp.writers", self.writers, 1..=1_000_000)?;
        within("oltp.writes_per_batch", self.writes_per_batch, 1..=1_000_000)?;
        within("oltp.batches_per_log_write", self.batches_per_log_write, 1..=1_000_000)?;
        let full = file_count(self.files, PAPER_FILES, FILES_PERCENT, self.file_bytes, target);
        let files = (u64::from(full) / target.denominator()) as u32;
        if files == 0 {
            return wrong(
                "files",
                full.into(),
                "leaves no file at this scale. Use more files, or a larger scaled model",
            );
        }
        let blocks = (u64::from(files) * self.file_bytes + self.log_bytes) / BLOCK_BYTES;
        if blocks + blocks / 50 > layout.user_blocks() {
            let bytes = layout.user_blocks() * BLOCK_BYTES;
            let problem = format!(
                "does not fit. The file system has {bytes} bytes for {files} files of {} bytes. Use fewer files",
                self.file_bytes
            );
            return wrong("files", full.into(), &problem);
        }
        Ok(Oltp {
            random: PersonalityRng::new(seed),
            reads,
            files,
            directories: Vec::new(),
            made: 0,
            next_file: vec![0; self.writers as usize],
            writer: 0,
            batches: 0,
            settings: self.clone(),
        })
    }
}

impl Oltp {
    /// Executes the next operation: first the creation of a file, later a batch of a writer.
    pub fn step(&mut self, files: &mut FileSystem) -> Result<(), FileSystemFull> {
        if self.directories.is_empty() {
            for _ in 0..=self.files {
                files.add_file();
            }
            for _ in 0..=self.files / FILES_PER_DIRECTORY {
                self.directories.push(files.create_directory(FILES_PER_DIRECTORY)?);
            }
            return Ok(());
        }
        if self.made <= self.files {
            return self.make_file(files);
        }
        self.batch(files)
    }

    fn make_file(&mut self, files: &mut FileSystem) -> Result<(), FileSystemFull> {
        let file = self.made;
        self.made += 1;
        let bytes = if file == self.files { self.settings.log_bytes } else { self.settings.file_bytes };
        files.create(file, self.directories[(file / FILES_PER_DIRECTORY) as usize], 1)?;
        files.write(file, 0, (bytes / BLOCK_BYTES) as u32, bytes)
    }

    fn batch(&mut self, files: &mut FileSystem) -> Result<(), FileSystemFull> {
        let writer = self.writer;
        self.writer = (writer + 1) % self.next_file.len();
        for _ in 0..self.settings.writes_per_batch {
            let file = self.next_file[writer];
            self.next_file[writer] = (file + 1) % self.files;
            self.overwrite(files, file, self.settings.file_bytes)?;
        }
        if self.reads {
            for _ in 0..self.settings.reads_per_batch {
                files.read(self.random.below(u64::from(self.files)) as u32);
            }
        }
        self.batches += 1;
        if self.batches.is_multiple_of(u64::from(self.settings.batches_per_log_write)) {
            self.overwrite(files, self.files, self.settings.log_bytes)?;
        }
        Ok(())
    }

    fn overwrite(&mut self, files: &mut FileSystem, file: u32, file_bytes: u64) -> Result<(), FileSystemFull> {
        let write_blocks = (self.settings.write_bytes / BLOCK_BYTES) as u32;
        let place = self.random.below(file_bytes / self.settings.write_bytes) as u32;
        files.overwrite_synced(file, place * write_blocks, write_blocks, self.settings.datasync)
    }
}
