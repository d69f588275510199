//! F2FS model: the log-structured file system of the Linux kernel, with applications that use it.
//!
//! ```text
//! personality -> file_system -> segments (valid blocks, free segments) -> output -> requests
//!                 | checkpoint, cleaning, discard                          hints: handles
//!                 +- nodes (inodes, NAT)
//! ```
//!
//! The model covers the choice of blocks and the time at which the drive learns that they are
//! unneeded:
//!
//! - six logs, segments and sections, with append and threaded logging
//! - cleaning and discards
//! - checkpoints with all metadata writes
//! - in-place updates of synced data
//! - the path from the temperature of data to a placement index
//!
//! It models only the effect of the page cache. File data is written as a whole, in the order of
//! the operations. Nodes and directory entries wait for a checkpoint.
//!
//! On a scaled model of 1/d, a fileserver's files and segments shrink in size by s and in
//! number by d / s (see `layout.rs`). A database shrinks only its numbers, by d. Bytes between
//! checkpoints, reserved segments and discards per second shrink with the drive. Blocks, writes of
//! a database and the numbers of logs, threads and writers stay the same.
//!
//! The model omits zones, compression, inline data, extended attributes, quotas, `fallocate`,
//! age-threshold cleaning (ATGC) and recovery.

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
pub use rules::DiscardPolicy;
pub use source::F2fs;

use file_system::FileSystem;
use layout::{BLOCK_BYTES, F2fsLayout};
use output::F2fsOutput;
use personality::Personality;
use personality::fileserver::{self, Classes};
use personality::oltp;
use rules::F2fsRules;
use workload::{WorkloadError, WorkloadTarget, multiple_of, within};

/// Settings table `[workload]` of `kind = "f2fs"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct F2fsSettings {
    /// Application workload. Default `fileserver`.
    pub personality: PersonalityName,
    pub fileserver: fileserver::FileserverSettings,
    /// Settings of the personality `oltp`.
    pub oltp: oltp::OltpSettings,
    /// Placement policy of writes. Default `kernel` (WARP paper, section 3.4, and the kernel's
    /// documentation since 6.9).
    pub hints: HintPolicy,
    /// Classes of `hints = "lifetime"`, from 2 to 6. Default 6, which takes eight handles with
    /// nodes and metadata.
    pub lifetime_classes: u8,
    /// Files with the hot bit or hint, percent. Default 0.
    pub hot_files_percent: f64,
    /// Files with a multimedia extension, the cold bit or hint, percent. Default 0.
    pub cold_files_percent: f64,
    /// Logging mode when free sections are few. Default `adaptive` (the kernel's `mode=adaptive`).
    pub logging: LogMode,
    /// Segments of a section. Default 1 (mkfs.f2fs).
    pub segments_per_section: u32,
    /// Space reserved from users, percent. Default: the value that mkfs.f2fs computes.
    pub overprovision_percent: Option<f64>,
    /// Discard policy. Default `when_idle` (the kernel's default).
    pub discard: DiscardPolicy,
    /// Smallest discarded run of blocks. Default 16 (`DEFAULT_DISCARD_GRANULARITY`). Above 80 %
    /// utilisation it is 1.
    pub discard_granularity_blocks: u32,
    /// Synced overwrites happen in place if they sync only data or are small (`F2FS_IPU_FSYNC`).
    /// Default true (the kernel's default).
    pub in_place_updates: bool,
    /// Maximum number of blocks of a small fsync. Default 8 (`DEF_MIN_FSYNC_BLOCKS`).
    pub min_fsync_blocks: u32,
    /// Maximum time between two checkpoints, seconds. Default 60 (`DEF_CP_INTERVAL`).
    pub checkpoint_seconds: f64,
    /// Write rate on the drive at full size, bytes per second. It is the clock of the model.
    /// Default 778 MB/s (WARP paper, section 3.4, 28 TB in ten hours).
    #[serde(with = "base::size")]
    pub throughput_bytes_per_second: u64,
    /// Seconds of load between two pauses, or 0 for no pauses. Default 0.
    pub pause_every_seconds: f64,
    /// Length of a pause, seconds. Default 60.
    pub pause_seconds: f64,
    /// Cleans sections during pauses. Default true (`background_gc=on`, the kernel's default).
    pub background_cleaning: bool,
    /// Largest request, bytes. Default 1 MiB (256 pages, `BIO_MAX_VECS`).
    #[serde(with = "base::size")]
    pub max_request_bytes: u64,
    /// Also issues reads. Default false.
    pub reads: bool,
}

impl Default for F2fsSettings {
    fn default() -> F2fsSettings {
        F2fsSettings {
            personality: PersonalityName::Fileserver,
            fileserver: fileserver::FileserverSettings::default(),
            oltp: oltp::OltpSettings::default(),
            hints: HintPolicy::Kernel,
            lifetime_classes: 6,
            hot_files_percent: 0.0,
            cold_files_percent: 0.0,
            logging: LogMode::Adaptive,
            segments_per_section: 1,
            overprovision_percent: None,
            discard: DiscardPolicy::WhenIdle,
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

/// Application workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonalityName {
    /// A file server, see [`fileserver`].
    Fileserver,
    /// A database, see [`oltp`].
    Oltp,
}

/// Logging mode when free sections are few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogMode {
    /// Logs fill gaps of dirty segments (threaded logging). Synced overwrites happen in place.
    Adaptive,
    /// Logs take only free segments, so cleaning must free some (`mode=lfs`).
    Lfs,
}

impl F2fsSettings {
    /// Creates the source for a drive.
    pub fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<F2fs, WorkloadError> {
        self.check()?;
        let shrink = match self.personality {
            PersonalityName::Fileserver => F2fsLayout::default_shrink(target.denominator()),
            // The database overwrites in place, so only the number of its files matters.
            PersonalityName::Oltp => 1,
        };
        let layout = F2fsLayout::new(target, self.segments_per_section, self.overprovision_percent, shrink)?;
        let personality = match self.personality {
            PersonalityName::Fileserver => {
                let started = self.fileserver.start(target, &layout, seed, self.reads, self.classes())?;
                Personality::Fileserver(started)
            }
            PersonalityName::Oltp => Personality::Oltp(self.oltp.start(target, &layout, seed, self.reads)?),
        };
        let rules = F2fsRules::new(self, target, &layout);
        let output = F2fsOutput::new(self.hints, self.lifetime_classes, target.placement_count, self.max_request_bytes);
        Ok(F2fs::new(FileSystem::new(layout, rules, output), personality, self.hints))
    }

    pub fn memory_bytes(&self, target: &WorkloadTarget) -> u64 {
        /// Bytes per block: its owner, its position in the file, and its bits in the segment
        /// bitmaps.
        const BLOCK_MAP_BYTES: u64 = 48;
        /// Bytes per file with its inode.
        const FILE_BYTES: u64 = 256;
        const FIXED_BYTES: u64 = 16 << 20;
        let blocks = target.capacity_bytes() / BLOCK_BYTES;
        let (asked, file_bytes) = match self.personality {
            PersonalityName::Fileserver => (self.fileserver.files, self.fileserver.file_bytes),
            PersonalityName::Oltp => (self.oltp.files, self.oltp.file_bytes),
        };
        let fitting = target.device_bytes / file_bytes.max(1);
        let full = asked.map_or(fitting, u64::from);
        let files =
            full.saturating_mul(u64::from(F2fsLayout::default_shrink(target.denominator()))) / target.denominator();
        // A file has at least one block, its inode.
        FIXED_BYTES + blocks * BLOCK_MAP_BYTES + files.min(blocks) * FILE_BYTES
    }

    fn classes(&self) -> Classes {
        match self.hints {
            HintPolicy::Lifetime => Classes::lifetime(self.lifetime_classes),
            _ => Classes::Attributes { hot_percent: self.hot_files_percent, cold_percent: self.cold_files_percent },
        }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        within("lifetime_classes", self.lifetime_classes, 2..=6)?;
        if self.hints == HintPolicy::Lifetime && self.personality == PersonalityName::Oltp {
            let setting = "hints = \"lifetime\" with personality = \"oltp\"";
            let problem = "has no effect, because the files of oltp are never deleted. Use other hints, or \
                           personality = \"fileserver\"";
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
        within("throughput_bytes_per_second", self.throughput_bytes_per_second, 1..=u64::MAX)?;
        multiple_of(BLOCK_BYTES, "max_request_bytes", self.max_request_bytes, 1 << 30)
    }
}
