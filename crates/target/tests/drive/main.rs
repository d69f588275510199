//! Drives over server runs: the state that survives a shutdown or a crash, and the requests that
//! are refused without any change.
//!
//! A crash is a copy of an open drive's files, which equals the files after a kill at that moment.

mod checksums;
#[path = "../crash/mod.rs"]
mod crash;
mod impossible;
mod lifecycle;
mod moved;
mod recovery;
mod refusals;
#[path = "../small_drive/mod.rs"]
mod small_drive;

use std::path::{Path, PathBuf};

use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, Status};
use small_drive::Client;
use target::SharedSubsystem;
use target::storage::ServedDrive;
use zerocopy::FromZeros;

/// Names, lengths and contents of all files in a folder.
fn contents(folder: &Path) -> Vec<(PathBuf, u64, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    let with_contents = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).unwrap();
        let bytes = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        (path, metadata.len(), bytes)
    };
    all.into_iter().map(with_contents).collect()
}

fn stop(shared: SharedSubsystem, mut drive: ServedDrive) {
    drive.close().unwrap();
    drop(shared);
}

/// Set Features 05h with the save bit: a command that changes the non-volatile state.
fn save_error_recovery(client: &Client) -> Status {
    let mut entry = SubmissionEntry::new_zeroed();
    entry.opcode = AdminOpcode::SetFeatures as u8;
    entry.nsid = 1.into();
    (entry.cdw10, entry.cdw11) = ((0x05 | 1 << 31).into(), 7.into());
    client.execute(0, &entry, &mut Vec::new())
}
