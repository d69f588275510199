//! Looks through the data of a drive for pages that are not what was written, before a host reads them: while the drive
//! is served, in small slices at low priority, or offline.
//!
//! ```text
//! next data in the file -> slice, without the drive's lock -> all is well
//!                                                          -> a page is doubtful (a write may be under way) -> again,
//! with the lock
//! ```
//!
//! Pages with data and without a sum get one: they were written before there were any, or a server was killed while it
//! wrote them. What the system has in its memory is read from there.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Bytes;
use serde::Serialize;

use super::error::DriveError;
use super::files::Files;
use super::recover::next_data;
use super::state_file::{self, CleanMark};
use crate::storage::backend::file::Storage;
use crate::storage::backend::sums::{PAGE_BYTES, Sums, Verdict};
use crate::{Shared, locked};

/// Pages that are looked at in one go: 256 KiB, some hundred microseconds.
const SLICE_PAGES: u64 = 64;
/// Damaged pages that a report names.
const NAMED_MAX: usize = 16;

/// The slice of pages with data that begins a range of the file; `None` if there is none any more.
fn next_slice(file: &File, at: u64) -> std::io::Result<Option<Range<u64>>> {
    let data = next_data(file, at)?;
    Ok(data.map(|data| {
        let first = data.start.max(at) / PAGE_BYTES;
        first..data.end.div_ceil(PAGE_BYTES).min(first + SLICE_PAGES)
    }))
}

/// Looks through the data of a drive that is served.
pub struct Scrubber {
    storage: Arc<Storage>,
    shared: Shared,
    /// Where the pass is, in bytes.
    at: u64,
    damaged_in_pass: u64,
}

impl Scrubber {
    pub(super) fn new(storage: Arc<Storage>, shared: Shared) -> Scrubber {
        Scrubber {
            storage,
            shared,
            at: 0,
            damaged_in_pass: 0,
        }
    }

    /// Looks at the next slice. Returns how long to wait before the one after it, so that a pass takes `every`, and
    /// complains of damage to `say`.
    ///
    /// # Errors
    /// The file cannot be searched for data.
    pub fn slice(&mut self, every: Duration, say: &mut dyn FnMut(&str)) -> std::io::Result<Duration> {
        let began = Instant::now();
        let Some(pages) = next_slice(self.storage.file(), self.at)? else {
            self.storage.note_scrub(0, 0, true);
            if self.damaged_in_pass > 0 {
                say(&format!("scrub: {} pages are damaged", self.damaged_in_pass));
            }
            let is_empty = self.at == 0;
            (self.at, self.damaged_in_pass) = (0, 0);
            return Ok(if is_empty { every } else { Duration::ZERO });
        };
        let mut damaged = 0;
        for page in pages.clone() {
            // Most pages are well; a write that is under way may look like damage, and is looked at again where there
            // are none.
            let is_well = matches!(self.storage.verdict(page), Ok(Verdict::Good));
            if !is_well && self.is_damaged(page) {
                damaged += 1;
                if self.damaged_in_pass + damaged <= NAMED_MAX as u64 {
                    say(&format!("scrub: the page at byte {} is damaged", page * PAGE_BYTES));
                }
            }
        }
        let count = pages.end - pages.start;
        self.damaged_in_pass += damaged;
        self.storage.note_scrub(count, damaged, false);
        self.at = pages.end * PAGE_BYTES;
        let stored_bytes = std::os::unix::fs::MetadataExt::blocks(&self.storage.file().metadata()?) * 512;
        let share = (count * PAGE_BYTES) as f64 / stored_bytes.max(count * PAGE_BYTES) as f64;
        Ok(every.mul_f64(share).saturating_sub(began.elapsed()))
    }

    /// Whether a page is damaged while nobody writes. One without a sum gets it.
    fn is_damaged(&self, page: u64) -> bool {
        let _nobody_writes = locked(&self.shared);
        match self.storage.verdict(page) {
            Ok(Verdict::Good) => false,
            Ok(Verdict::Unknown) => {
                let sums = self.storage.sums().expect("a scrub is of a drive with checksums");
                // Without a sum it is as unknown as before.
                let _ = sums.adopt(self.storage.file(), page);
                false
            }
            Ok(Verdict::Damaged) | Err(_) => true,
        }
    }
}

/// What a scrub of a drive that is not served found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScrubReport {
    /// Pages with data.
    pub pages: u64,
    /// Those of them without a checksum.
    pub pages_unknown: u64,
    /// Those that are not what was written.
    pub pages_damaged: u64,
    /// Where the first of these are, as byte addresses of the data file.
    pub damaged_at_bytes: Vec<u64>,
}

impl std::fmt::Display for ScrubReport {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = Bytes(self.pages * PAGE_BYTES);
        writeln!(
            out,
            "{} pages ({bytes}) looked at, {} damaged, {} without a checksum",
            self.pages, self.pages_damaged, self.pages_unknown
        )?;
        for offset in &self.damaged_at_bytes {
            writeln!(out, "damaged: the page at byte {offset}")?;
        }
        let unnamed = self.pages_damaged - self.damaged_at_bytes.len() as u64;
        if unnamed > 0 {
            writeln!(out, "and {unnamed} more")?;
        }
        Ok(())
    }
}

/// Looks through the data file of a drive that nobody serves. Nothing is changed.
///
/// # Errors
/// It is served, has no checksums, or cannot be read.
pub fn scrub(path: &Path) -> Result<ScrubReport, DriveError> {
    let files = Files::of(path)?;
    let data = files
        .data
        .open()
        .map_err(DriveError::io(path, "the data file cannot be opened"))?;
    if data.try_lock_shared().is_err() {
        return Err(DriveError::InUse(path.to_path_buf()));
    }
    let header = state_file::read(&files.state)?.header;
    let length = data
        .metadata()
        .map_err(DriveError::io(path, "the data file cannot be looked at"))?
        .len();
    if length != header.file_bytes {
        return Err(DriveError::WrongSize {
            path: path.to_path_buf(),
            found_bytes: length,
            expected_bytes: header.file_bytes,
        });
    }
    let closed = header.clean.as_ref().map(CleanMark::digest);
    let sums = Sums::look(&files.sums, header.drive.into_bytes(), header.file_bytes, closed);
    let sums = sums.map_err(DriveError::io(files.sums.path(), "the checksums cannot be read"))?;
    let sums = sums.ok_or_else(|| DriveError::NoSums(path.to_path_buf()))?;
    let mut report = ScrubReport::default();
    let mut at = 0;
    let search = || DriveError::io(path, "the data file cannot be searched for data");
    while let Some(pages) = next_slice(&data, at).map_err(search())? {
        at = pages.end * PAGE_BYTES;
        for page in pages {
            report.pages += 1;
            match sums.verdict(&data, page) {
                Ok(Verdict::Good) => {}
                Ok(Verdict::Unknown) => report.pages_unknown += 1,
                Ok(Verdict::Damaged) | Err(_) => {
                    report.pages_damaged += 1;
                    if report.damaged_at_bytes.len() < NAMED_MAX {
                        report.damaged_at_bytes.push(page * PAGE_BYTES);
                    }
                }
            }
        }
    }
    Ok(report)
}
