//! File server: threads that repeatedly create, append to, read, delete and stat files.
//!
//! The workload is Filebench's `workloads/fileserver.f` with the WARP paper's numbers (section 3.4,
//! Table 1): 10 million files of 540 KB, 200 threads. The size of a file is drawn once, when the
//! fileset is laid out (gamma of shape 1.5, Filebench's `filesizegamma`). Every creation of the
//! file uses that size. 80 % of the files exist at the start (`prealloc=80`), created in random
//! order. A round of a thread creates one file and deletes one, so the number of files is stable.
//!
//! [`FileSelection::Rotation`] selects files like Filebench (`fileset.c`, `fileset_pick`). One
//! position rotates over the existing files for all operations, another over the absent files. A
//! quarter of the files passed is deleted. The interleaving of the threads decides which quarter.
//!
//! [`FileSelection::Random`] draws the time of deletion of each file from an exponential
//! distribution. This is equivalent to the deletion of a random file, but the time is known in
//! advance. Placement by lifetime needs that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::random::PersonalityRng;
use super::{file_count, share};
use crate::bitmap::Bitmap;
use crate::f2fs::file_system::{FileSystem, FileSystemFull};
use crate::f2fs::layout::{BLOCK_BYTES, F2fsLayout};
use workload::{WorkloadError, WorkloadTarget, within};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileserverSettings {
    /// Number of files in the fileset. A scaled model has 1/d of them. Default 10,000,000
    /// (WARP paper, section 3.4), or fewer on a drive of which they would take more than 72 %. 80 %
    /// of them exist.
    pub files: Option<u32>,
    /// Mean size of a file, bytes. Default 540 KB (WARP paper, section 3.4).
    #[serde(with = "base::size")]
    pub file_bytes: u64,
    /// Shape of the gamma distribution of sizes, in steps of 0.5. 0 gives all files the same size.
    /// Default 1.5 (Filebench).
    pub file_size_shape: f64,
    /// Files that exist at the start, percent. Default 80 (`prealloc=80` of fileserver.f).
    pub preallocated_percent: f64,
    /// Number of threads, which determines the interleaving of operations. Default 200 (WARP paper,
    /// Table 1).
    pub threads: u32,
    /// Largest append, bytes. Sizes are uniform from 1. Default 16 KiB (`meanappendsize` of
    /// fileserver.f, which Filebench uses as the maximum).
    #[serde(with = "base::size")]
    pub append_bytes: u64,
    /// Files of a directory. Default 20 (`meandirwidth` of fileserver.f).
    pub files_per_directory: u32,
    pub choice: FileSelection,
}

impl Default for FileserverSettings {
    fn default() -> FileserverSettings {
        FileserverSettings {
            files: None,
            file_bytes: 540_000,
            file_size_shape: 1.5,
            preallocated_percent: 80.0,
            threads: 200,
            append_bytes: 16 << 10,
            files_per_directory: 20,
            choice: FileSelection::Rotation,
        }
    }
}

/// Number of files in the paper's fileset (section 3.4), and the fileset's share of a smaller
/// drive.
const PAPER_FILES: u32 = 10_000_000;
const FILESET_PERCENT: f64 = 72.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSelection {
    /// In rotation, like Filebench.
    Rotation,
    /// At random, with lifetimes known in advance.
    Random,
}

/// Next operation of a thread.
#[derive(Debug, Clone, Copy)]
enum FileserverOperation {
    Create,
    Append,
    Read,
    Delete,
    Stat,
}

/// A running file server.
pub struct Fileserver {
    random: PersonalityRng,
    reads: bool,
    append_bytes: u64,
    choice: FileSelection,
    /// Size of each file at creation, and current size.
    created_bytes: Vec<u64>,
    bytes: Vec<u64>,
    files_per_directory: u32,
    directories: Vec<u32>,
    /// Files to create before the threads begin, the last one first.
    preallocate: Vec<u32>,
    threads: Vec<FileserverOperation>,
    /// Existing files, and absent files.
    existing: Bitmap,
    missing: Bitmap,
    next_existing: usize,
    next_missing: usize,
    /// Random choice: time of deletion of files in rounds, earliest first.
    deaths: BinaryHeap<Reverse<(u64, u32)>>,
    round: u64,
    /// Mean lifetime in rounds.
    mean_lifetime: f64,
    classes: Classes,
}

/// Class assignment of files.
pub enum Classes {
    /// Random, with these shares of files with a hot and a cold attribute, percent.
    Attributes { hot_percent: f64, cold_percent: f64 },
    /// By lifetime. Upper bounds of all classes but the last, as fractions of the mean lifetime.
    Lifetime(Vec<f64>),
}

impl Classes {
    /// Lifetime classes with equal shares of the writes.
    pub fn lifetime(classes: u8) -> Classes {
        /// Number of samples for bounds within 1 %.
        const SAMPLES: usize = 1 << 16;
        let mut random = PersonalityRng::new(0);
        let mut drawn: Vec<f64> = (0..SAMPLES).map(|_| random.gamma(2)).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let bounds = 1..usize::from(classes);
        Classes::Lifetime(bounds.map(|class| drawn[class * SAMPLES / usize::from(classes)]).collect())
    }
}

impl FileserverSettings {
    /// Creates a file server for a drive.
    ///
    /// # Errors
    /// A setting is impossible, or the file system cannot hold the files.
    pub fn start(
        &self,
        target: &WorkloadTarget,
        layout: &F2fsLayout,
        seed: u64,
        reads: bool,
        classes: Classes,
    ) -> Result<Fileserver, WorkloadError> {
        self.check(&classes)?;
        let full = file_count(self.files, PAPER_FILES, FILESET_PERCENT, self.file_bytes, target);
        let files = (u64::from(full) * u64::from(layout.shrink) / target.denominator()) as u32;
        self.check_room(full, files, layout)?;
        let mut random = PersonalityRng::new(seed);
        let created_bytes: Vec<u64> = (0..files).map(|_| self.draw_size(&mut random, layout.shrink)).collect();
        let mut order: Vec<u32> = (0..files).collect();
        random.shuffle(&mut order);
        order.truncate(share(self.preallocated_percent, files) as usize);
        Ok(Fileserver {
            mean_lifetime: order.len() as f64,
            random,
            reads,
            append_bytes: self.append_bytes,
            choice: self.choice,
            bytes: vec![0; files as usize],
            created_bytes,
            files_per_directory: self.files_per_directory,
            directories: Vec::new(),
            preallocate: order,
            threads: vec![FileserverOperation::Create; self.threads as usize],
            existing: Bitmap::new(files as usize),
            missing: Bitmap::full(files as usize),
            next_existing: 0,
            next_missing: 0,
            deaths: BinaryHeap::new(),
            round: 0,
            classes,
        })
    }

    /// Draws the size of a file. If sizes are shrunk, the size is a whole number of blocks, so that
    /// the last block does not weigh more.
    fn draw_size(&self, random: &mut PersonalityRng, shrink: u32) -> u64 {
        let bytes = match (self.file_size_shape * 2.0) as u32 {
            0 => self.file_bytes as f64,
            half_shapes => random.gamma(half_shapes) * self.file_bytes as f64,
        };
        if shrink == 1 {
            return (bytes as u64).max(1);
        }
        let blocks = bytes / f64::from(shrink) / BLOCK_BYTES as f64 + random.fraction();
        (blocks as u64).max(1) * BLOCK_BYTES
    }

    fn check(&self, classes: &Classes) -> Result<(), WorkloadError> {
        let wrong = |name: &str, value: String, problem: &str| {
            Err(WorkloadError::setting(format!("fileserver.{name} = {value}"), problem))
        };
        if self.files == Some(0) || self.file_bytes == 0 || self.files_per_directory == 0 {
            let value = format!(
                "{} x {}, files_per_directory = {}",
                self.files.unwrap_or(PAPER_FILES),
                self.file_bytes,
                self.files_per_directory
            );
            return wrong("files x file_bytes", value, "must be above 0 each");
        }
        if !(0.0..=20.0).contains(&self.file_size_shape) || (self.file_size_shape * 2.0).fract() != 0.0 {
            return wrong("file_size_shape", self.file_size_shape.to_string(), "must be from 0 to 20 in steps of 0.5");
        }
        within("fileserver.preallocated_percent", self.preallocated_percent, 1.0..=99.0)?;
        within("fileserver.threads", self.threads, 1..=100_000)?;
        within("fileserver.append_bytes", self.append_bytes, 1..)?;
        if matches!(classes, Classes::Lifetime(_)) && self.choice == FileSelection::Rotation {
            let problem = "cannot work, because only choice = \"random\" knows lifetimes in advance. Use that, or \
                           other hints";
            return wrong("choice", "\"rotation\" with hints = \"lifetime\"".into(), problem);
        }
        Ok(())
    }

    /// Checks that the existing files, their inodes and their appends fit, on the full-size drive
    /// and on the scaled model. Five percent stay spare, because sizes are random.
    fn check_room(&self, full: u32, files: u32, layout: &F2fsLayout) -> Result<(), WorkloadError> {
        let named = |problem: String| {
            let setting = format!("fileserver.files = {full}, file_bytes = {}", self.file_bytes);
            Err(WorkloadError::setting(setting, problem))
        };
        if files < 100 {
            return named(format!("leave {files} files at this scale, but 100 are needed. Use a larger scaled model"));
        }
        let existing = share(self.preallocated_percent, files) + self.threads.min(files);
        let file_blocks = self.file_bytes / BLOCK_BYTES + 2;
        let blocks = u64::from(existing) * file_blocks * 105 / 100 / u64::from(layout.shrink);
        let nodes = u64::from((files + files / self.files_per_directory) / layout.shrink) * 21 / 20;
        if blocks > layout.user_blocks() {
            let bytes = layout.user_blocks() * BLOCK_BYTES;
            return named(format!(
                "do not fit. At most {existing} files exist at a time and need about {} bytes, but the file system \
                 has {bytes}. Use fewer or smaller files",
                blocks * BLOCK_BYTES
            ));
        }
        if nodes > u64::from(layout.nodes()) {
            return named(format!("exceed the {} inodes of the file system. Use fewer files", layout.nodes()));
        }
        Ok(())
    }
}

impl Fileserver {
    /// Executes the next operation.
    pub fn step(&mut self, files: &mut FileSystem) -> Result<(), FileSystemFull> {
        if self.directories.is_empty() {
            return self.lay_out(files);
        }
        if let Some(file) = self.preallocate.pop() {
            return self.create(files, file);
        }
        let thread = self.random.below(self.threads.len() as u64) as usize;
        let operation = self.threads[thread];
        self.threads[thread] = match operation {
            FileserverOperation::Create => FileserverOperation::Append,
            FileserverOperation::Append => FileserverOperation::Read,
            FileserverOperation::Read => FileserverOperation::Delete,
            FileserverOperation::Delete => FileserverOperation::Stat,
            FileserverOperation::Stat => FileserverOperation::Create,
        };
        self.perform(files, operation)
    }

    fn lay_out(&mut self, files: &mut FileSystem) -> Result<(), FileSystemFull> {
        let count = self.created_bytes.len() as u32;
        for _ in 0..count {
            files.add_file();
        }
        for _ in 0..count.div_ceil(self.files_per_directory) {
            self.directories.push(files.create_directory(self.files_per_directory)?);
        }
        Ok(())
    }

    fn perform(&mut self, files: &mut FileSystem, operation: FileserverOperation) -> Result<(), FileSystemFull> {
        match operation {
            FileserverOperation::Create => match self.missing.next_around(self.next_missing) {
                Some(file) => {
                    self.next_missing = file + 1;
                    self.create(files, file as u32)
                }
                None => Ok(()), // Filebench's thread would wait for a deletion.
            },
            FileserverOperation::Append => match self.pick() {
                // Appends keep their size. If sizes are shrunk, only files with an inode get
                // appends.
                Some(file) if files.has_inode(file) => self.append(files, file),
                _ => Ok(()),
            },
            FileserverOperation::Read => {
                if let Some(file) = self.pick()
                    && self.reads
                {
                    files.read(file);
                }
                Ok(())
            }
            FileserverOperation::Delete => {
                if let Some(file) = self.pick_to_delete() {
                    self.existing.clear(file as usize);
                    self.missing.set(file as usize);
                    files.delete(file, self.directory(file));
                    self.round += 1;
                }
                Ok(())
            }
            FileserverOperation::Stat => {
                self.pick();
                Ok(())
            }
        }
    }

    fn directory(&self, file: u32) -> u32 {
        self.directories[(file / self.files_per_directory) as usize]
    }

    /// Selects an existing file.
    fn pick(&mut self) -> Option<u32> {
        let from = match self.choice {
            FileSelection::Rotation => self.next_existing,
            // Existing files are spread evenly, so the next one from a random position is a fair
            // choice.
            FileSelection::Random => self.random.below(self.created_bytes.len() as u64) as usize,
        };
        let file = self.existing.next_around(from)?;
        self.next_existing = file + 1;
        Some(file as u32)
    }

    fn pick_to_delete(&mut self) -> Option<u32> {
        match self.choice {
            FileSelection::Rotation => self.pick(),
            FileSelection::Random => self.deaths.pop().map(|Reverse((_, file))| file),
        }
    }

    fn create(&mut self, files: &mut FileSystem, file: u32) -> Result<(), FileSystemFull> {
        let class = self.draw_class(file);
        let bytes = self.created_bytes[file as usize];
        self.existing.set(file as usize);
        self.missing.clear(file as usize);
        self.bytes[file as usize] = bytes;
        files.create(file, self.directory(file), class)?;
        files.write(file, 0, bytes.div_ceil(BLOCK_BYTES) as u32, bytes)
    }

    /// Draws the class of a new file. With a known lifetime, draws the lifetime first.
    fn draw_class(&mut self, file: u32) -> u8 {
        let lifetime = match self.choice {
            FileSelection::Rotation => 0.0,
            FileSelection::Random => {
                let lifetime = self.random.gamma(2);
                let death = self.round + (lifetime * self.mean_lifetime) as u64;
                self.deaths.push(Reverse((death, file)));
                lifetime
            }
        };
        match &self.classes {
            Classes::Lifetime(bounds) => bounds.iter().filter(|bound| lifetime >= **bound).count() as u8,
            Classes::Attributes { hot_percent, cold_percent } => {
                let drawn = self.random.fraction() * 100.0;
                if drawn < *hot_percent {
                    0
                } else if drawn < hot_percent + cold_percent {
                    2
                } else {
                    1
                }
            }
        }
    }

    fn append(&mut self, files: &mut FileSystem, file: u32) -> Result<(), FileSystemFull> {
        let bytes = 1 + self.random.below(self.append_bytes);
        let before = self.bytes[file as usize];
        let first = (before / BLOCK_BYTES) as u32;
        let end = (before + bytes).div_ceil(BLOCK_BYTES) as u32;
        self.bytes[file as usize] += bytes;
        files.write(file, first, end - first, bytes)
    }
}
