//! Personalities: application file workloads, modelled after Filebench's workloads of the same
//! names.

pub mod fileserver;
pub mod oltp;
mod random;

use super::file_system::{FileSystem, FileSystemFull};
use fileserver::Fileserver;
use oltp::Oltp;
use workload::WorkloadTarget;

pub enum Personality {
    /// Creates, appends to, reads and deletes files.
    Fileserver(Fileserver),
    /// Overwrites and syncs files.
    Oltp(Oltp),
}

impl Personality {
    /// Executes the next operation.
    pub fn step(&mut self, files: &mut FileSystem) -> Result<(), FileSystemFull> {
        match self {
            Personality::Fileserver(fileserver) => fileserver.step(files),
            Personality::Oltp(oltp) => oltp.step(files),
        }
    }
}

/// Number of files of a fileset. Without a setting, the paper's number. On a smaller drive, as many
/// files as take this share of it, so that the defaults fit any drive.
pub(super) fn file_count(
    asked: Option<u32>,
    most: u32,
    share_percent: f64,
    file_bytes: u64,
    target: &WorkloadTarget,
) -> u32 {
    let fitting = target.device_bytes as f64 * share_percent / 100.0 / file_bytes as f64;
    asked.unwrap_or_else(|| most.min(fitting as u32))
}

/// `percent` % of a number.
fn share(percent: f64, of: u32) -> u32 {
    (f64::from(of) * percent / 100.0) as u32
}
