//! F2FS: a model of the log-structured file system of the Linux kernel, and applications that use it.
//!
//! ```text
//! personality -> file_system -> segments (who is valid, who is free) -> output -> requests
//!                 | checkpoint, cleaning, discard                         hints: handles
//!                 +- nodes (inodes, NAT)
//! ```
//!
//! It models what decides where blocks go and when the drive learns that they are not needed: six logs, segments and sections, append
//! and threaded logging, cleaning, checkpoints with all metadata writes, discards, in-place updates of synced data, and the way from
//! the temperature of data to a placement index. The page cache is modelled by its effect alone: a file's data is written as a
//! whole, in the order of the operations; nodes and directory entries wait for a checkpoint.
//!
//! What shrinks on a twin of 1/d: under a fileserver, sizes of files and segments by s and their numbers by d / s, see `layout.rs`; under
//! a database, numbers by d and no sizes. Bytes between checkpoints, reserved segments and discards per second shrink with the drive.
//! Blocks, writes of a database, and the numbers of logs, threads and writers do not.
//!
//! It leaves out: zones, compression, inline data, extended attributes, quotas, `fallocate`, age-threshold cleaning (ATGC), recovery.

mod bitmap;
mod checkpoint;
mod cleaning;
mod discard;
mod file_system;
mod hints;
mod layout;
mod nodes;
mod output;
pub mod personality;
mod rules;
mod segments;
mod source;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use hints::HintPolicy;
pub use rules::Discard;
pub use source::F2fs;

use file_system::FileSystem;
use layout::{BLOCK_BYTES, Layout};
use output::Output;
use personality::Personality;
use personality::fileserver::{self, Classes};
use personality::oltp;
use rules::Rules;
use workload::{Target, WorkloadError, multiple_of, within};

/// The `[workload]` table of `kind = "f2fs"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What the applications do. `fileserver`.
    pub personality: PersonalityName,
    pub fileserver: fileserver::Settings,
    /// Of the database.
    pub oltp: oltp::Settings,
    /// Which placement index a write gets. `kernel` (WARP paper, section 3.4, and the kernel's documentation since 6.9).
    pub hints: HintPolicy,
    /// Classes of `hints = "lifetime"`, from 2 to 6. 6: with nodes and metadata eight handles.
    pub lifetime_classes: u8,
    /// Files with the hot bit or hint, percent. 0.
    pub hot_files_percent: f64,
    /// Files with a multimedia extension, the cold bit or hint, percent. 0.
    pub cold_files_percent: f64,
    /// Whether logs fill gaps when free sections are few. `adaptive` (the kernel's default `mode=adaptive`).
    pub logging: Logging,
    /// Segments of a section. 1 (mkfs.f2fs).
    pub segments_per_section: u32,
    /// Space that is kept from users, percent. None: the value that mkfs.f2fs computes.
    pub overprovision_percent: Option<f64>,
    /// When the drive is told what is not needed. `when_idle` (the kernel's default).
    pub discard: Discard,
    /// Smallest run of blocks that is discarded. 16 (`DEFAULT_DISCARD_GRANULARITY`); above 80 % utilisation it is 1.
    pub discard_granularity_blocks: u32,
    /// Synced overwrites happen in place, if they are of data alone or small (`F2FS_IPU_FSYNC`). True (the kernel's default).
    pub in_place_updates: bool,
    /// Most blocks of a small fsync. 8 (`DEF_MIN_FSYNC_BLOCKS`).
    pub min_fsync_blocks: u32,
    /// Seconds between two checkpoints, at most. 60 (`DEF_CP_INTERVAL`).
    pub checkpoint_seconds: f64,
    /// Bytes written per second, on the drive at full size; the clock of the model. 778 MB/s (WARP paper, section 3.4: 28 TB in ten
    /// hours).
    #[serde(with = "base::size")]
    pub throughput_bytes_per_second: u64,
    /// Seconds of load between two pauses; 0 for no pauses. 0.
    pub pause_every_seconds: f64,
    /// Length of a pause. 60.
    pub pause_seconds: f64,
    /// Sections are cleaned during pauses. True (`background_gc=on`, the kernel's default).
    pub background_cleaning: bool,
    /// Largest request. 1 MiB (256 pages, `BIO_MAX_VECS`).
    #[serde(with = "base::size")]
    pub max_request_bytes: u64,
    /// Reads are produced too. False.
    pub reads: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            personality: PersonalityName::Fileserver,
            fileserver: fileserver::Settings::default(),
            oltp: oltp::Settings::default(),
            hints: HintPolicy::Kernel,
            lifetime_classes: 6,
            hot_files_percent: 0.0,
            cold_files_percent: 0.0,
            logging: Logging::Adaptive,
            segments_per_section: 1,
            overprovision_percent: None,
            discard: Discard::WhenIdle,
            discard_granularity_blocks: 16,
            in_place_updates: true,
            min_fsync_blocks: 8,
            checkpoint_seconds: 60.0,
            throughput_bytes_per_second: 778_000_000,
            pause_every_seconds: 0.0,
            pause_seconds: 60.0,
            background_cleaning: true,
            max_request_bytes: 1 << 20,
            reads: false,
        }
    }
}

/// What the applications do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonalityName {
    /// See [`fileserver`].
    Fileserver,
    /// See [`oltp`].
    Oltp,
}

/// Where logs go when free sections are few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Logging {
    /// Into gaps of dirty segments (threaded logging); synced overwrites in place.
    Adaptive,
    /// Only into free segments, which cleaning has to make (`mode=lfs`).
    Lfs,
}

impl Settings {
    /// The workload on a drive.
    ///
    /// # Errors
    /// A setting that cannot be, or that does not fit the drive.
    pub fn source(&self, target: &Target, seed: u64) -> Result<F2fs, WorkloadError> {
        self.check()?;
        let shrink = match self.personality {
            PersonalityName::Fileserver => Layout::default_shrink(target.denominator()),
            // It overwrites in place: only the numbers of its files matter.
            PersonalityName::Oltp => 1,
        };
        let layout = Layout::new(target, self.segments_per_section, self.overprovision_percent, shrink)?;
        let personality = match self.personality {
            PersonalityName::Fileserver => {
                let started = self
                    .fileserver
                    .start(target, &layout, seed, self.reads, self.classes())?;
                Personality::Fileserver(started)
            }
            PersonalityName::Oltp => Personality::Oltp(self.oltp.start(target, &layout, seed, self.reads)?),
        };
        let rules = Rules::new(self, target, &layout);
        let output = Output::new(
            self.hints,
            self.lifetime_classes,
            target.placement_count,
            self.max_request_bytes,
        );
        Ok(F2fs::new(
            FileSystem::new(layout, rules, output),
            personality,
            self.hints,
        ))
    }

    /// Memory that the workload takes at most, bytes.
    pub fn memory_bytes(&self, target: &Target) -> u64 {
        /// Of a block: its owner, its place in its file, and its bits in the maps of segments.
        const BLOCK_MAP_BYTES: u64 = 48;
        /// Of a file with its inode.
        const FILE_BYTES: u64 = 256;
        const FIXED_BYTES: u64 = 16 << 20;
        let blocks = target.capacity_bytes() / BLOCK_BYTES;
        let (asked, file_bytes) = match self.personality {
            PersonalityName::Fileserver => (self.fileserver.files, self.fileserver.file_bytes),
            PersonalityName::Oltp => (self.oltp.files, self.oltp.file_bytes),
        };
        let fitting = target.device_bytes / file_bytes.max(1);
        let full = asked.map_or(fitting, u64::from);
        let files = full.saturating_mul(u64::from(Layout::default_shrink(target.denominator()))) / target.denominator();
        // A file has a block at least, its inode.
        FIXED_BYTES + blocks * BLOCK_MAP_BYTES + files.min(blocks) * FILE_BYTES
    }

    fn classes(&self) -> Classes {
        match self.hints {
            HintPolicy::Lifetime => Classes::lifetime(self.lifetime_classes),
            _ => Classes::Attributes {
                hot_percent: self.hot_files_percent,
                cold_percent: self.cold_files_percent,
            },
        }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        within("lifetime_classes", self.lifetime_classes, 2..=6)?;
        if self.hints == HintPolicy::Lifetime && self.personality == PersonalityName::Oltp {
            let setting = "hints = \"lifetime\" with personality = \"oltp\"";
            let problem = "its files live for ever, so there is nothing to split; use other hints or the fileserver";
            return Err(WorkloadError::setting(setting, problem));
        }
        within("hot_files_percent", self.hot_files_percent, 0.0..=100.0)?;
        within("cold_files_percent", self.cold_files_percent, 0.0..=100.0)?;
        let both = self.hot_files_percent + self.cold_files_percent;
        within("hot_files_percent + cold_files_percent", both, 0.0..=100.0)?;
        within("discard_granularity_blocks", self.discard_granularity_blocks, 1..=512)?;
        within("checkpoint_seconds", self.checkpoint_seconds, 1e-3..=1e6)?;
        within("pause_every_seconds", self.pause_every_seconds, 0.0..=1e6)?;
        within("pause_seconds", self.pause_seconds, 0.0..=1e6)?;
        within(
            "throughput_bytes_per_second",
            self.throughput_bytes_per_second,
            1..=u64::MAX,
        )?;
        multiple_of(BLOCK_BYTES, "max_request_bytes", self.max_request_bytes, 1 << 30)
    }
}
