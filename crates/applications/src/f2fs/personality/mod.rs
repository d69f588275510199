//! Personalities: what applications do with files, after Filebench's workloads of the same names.

pub mod fileserver;
pub mod oltp;
mod random;

use super::file_system::{FileSystem, Full};
use fileserver::Fileserver;
use oltp::Oltp;
use workload::Target;

/// One of them, at work.
#[derive(Debug, Clone)]
pub enum Personality {
    /// Files are created, appended to, read, deleted.
    Fileserver(Fileserver),
    /// Files are overwritten and synced.
    Oltp(Oltp),
}

impl Personality {
    /// The next operation.
    pub fn step(&mut self, files: &mut FileSystem) -> Result<(), Full> {
        match self {
            Personality::Fileserver(fileserver) => fileserver.step(files),
            Personality::Oltp(oltp) => oltp.step(files),
        }
    }
}

/// The number of files of a fileset: what is asked for; else that of the paper's drive, or on a smaller one as many as take this
/// share of it, so that the defaults fit any drive.
pub(super) fn file_count(asked: Option<u32>, most: u32, share_percent: f64, file_bytes: u64, target: &Target) -> u32 {
    let fitting = target.device_bytes as f64 * share_percent / 100.0 / file_bytes as f64;
    asked.unwrap_or_else(|| most.min(fitting as u32))
}

/// Percent of something, as a number of them.
fn share(percent: f64, of: u32) -> u32 {
    (f64::from(of) * percent / 100.0) as u32
}
