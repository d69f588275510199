//! Simulates a kill: copies the files of an open drive, with their holes.

#![allow(dead_code)] // Every test binary uses its own part.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom;

use crate::small_drive::beside;

/// Copies a file with its holes.
pub fn copy_sparse(from: &Path, to: &Path) {
    let (from, to) = (File::open(from).unwrap(), File::create(to).unwrap());
    to.set_len(from.metadata().unwrap().len()).unwrap();
    let mut at = 0;
    while let Ok(start) = rustix::fs::seek(&from, SeekFrom::Data(at)) {
        let end = rustix::fs::seek(&from, SeekFrom::Hole(start)).unwrap();
        let mut data = vec![0; (end - start) as usize];
        from.read_exact_at(&mut data, start).unwrap();
        to.write_all_at(&data, start).unwrap();
        at = end;
    }
}

/// Copies a drive's files as after a kill at this moment, under another name.
pub fn crash(data: &Path, name: &str) -> PathBuf {
    let copy = data.with_file_name(name);
    copy_sparse(data, &copy);
    for extension in [".state", ".ftl", ".counters", ".sums"] {
        if beside(data, extension).exists() {
            std::fs::copy(beside(data, extension), beside(&copy, extension)).unwrap();
        }
    }
    copy
}
