//! Personalities: what applications do with files, after Filebench's workloads of the same names.

pub mod fileserver;
pub mod oltp;
mod random;

use super::file_system::{FileSystem, Full};
use fileserver::Fileserver;
use oltp::Oltp;

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

/// Percent of something, as a number of them.
fn share(percent: f64, of: u32) -> u32 {
    (f64::from(of) * percent / 100.0) as u32
}
