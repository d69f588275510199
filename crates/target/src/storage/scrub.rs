//! Scrubbing: finds damaged pages before a host reads them, either in small low-priority slices of
//! a served drive, or offline.
//!
//! ```text
//! next data in the file -> slice, without the drive's lock -> all pages good
//!                                                          -> a page may be damaged or in a write
//!                                                             -> checked again with the lock
//! ```
//!
//! A scrub of a served drive gives checksums to pages with data but without one. They were written
//! before checksums were enabled, or while a server was killed. Reads go through the page cache of
//! the system.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::HumanBytes;
use serde::Serialize;

use super::error::DriveError;
use super::files::DriveFiles;
use super::recover::next_data;
use super::state_file::{self, CleanMark};
use crate::storage::backend::checksum_file::{ChecksumFile, PAGE_BYTES, PageCheck};
use crate::storage::backend::file::OpenDataFile;
use crate::{SharedSubsystem, lock};

/// Pages per slice: 256 KiB, some hundred microseconds.
const SLICE_PAGES: u64 = 64;
/// Most damaged pages that a report lists.
const NAMED_MAX: usize = 16;

/// The first slice of pages with data from `at` on, `None` at the end of the data.
fn next_slice(file: &File, at: u64) -> std::io::Result<Option<Range<u64>>> {
    let data = next_data(file, at)?;
    Ok(data.map(|data| {
        let first = data.start.max(at) / PAGE_BYTES;
        first..data.end.div_ceil(PAGE_BYTES).min(first + SLICE_PAGES)
    }))
}

pub struct Scrubber {
    storage: Arc<OpenDataFile>,
    shared: SharedSubsystem,
    /// Position of the pass, in bytes.
    at: u64,
    damaged_in_pass: u64,
}

impl Scrubber {
    pub(super) fn new(storage: Arc<OpenDataFile>, shared: SharedSubsystem) -> Scrubber {
        Scrubber { storage, shared, at: 0, damaged_in_pass: 0 }
    }

    /// Checks the next slice and reports damage to `say`. Returns the time to wait before the next
    /// slice, so that a pass takes `every`.
    pub fn slice(&mut self, every: Duration, say: &mut dyn FnMut(&str)) -> std::io::Result<Duration> {
        let began = Instant::now();
        let Some(pages) = next_slice(self.storage.file(), self.at)? else {
            self.storage.note_scrub(0, 0, true);
            if self.damaged_in_pass > 0 {
                say(&format!("the scrub found {} damaged pages", self.damaged_in_pass));
            }
            let is_empty = self.at == 0;
            (self.at, self.damaged_in_pass) = (0, 0);
            return Ok(if is_empty { every } else { Duration::ZERO });
        };
        let mut damaged = 0;
        for page in pages.clone() {
            // Most pages are good. A write in progress may look like damage, so `is_damaged` checks
            // again without writers.
            let is_well = matches!(self.storage.verdict(page), Ok(PageCheck::Good));
            if !is_well && self.is_damaged(page) {
                damaged += 1;
                if self.damaged_in_pass + damaged <= NAMED_MAX as u64 {
                    say(&format!("the scrub found a damaged page at byte {}", page * PAGE_BYTES));
                }
            }
        }
        let count = pages.end - pages.start;
        assert!(damaged <= count, "{damaged} of {count} pages are damaged");
        assert!(
            pages.end * PAGE_BYTES >= self.at,
            "a pass does not go back from byte {} to page {}",
            self.at,
            pages.end
        );
        self.damaged_in_pass += damaged;
        self.storage.note_scrub(count, damaged, false);
        self.at = pages.end * PAGE_BYTES;
        let stored_bytes = std::os::unix::fs::MetadataExt::blocks(&self.storage.file().metadata()?) * 512;
        let share = (count * PAGE_BYTES) as f64 / stored_bytes.max(count * PAGE_BYTES) as f64;
        Ok(every.mul_f64(share).saturating_sub(began.elapsed()))
    }

    /// Returns whether a page is damaged, checked without concurrent writes. A page without a
    /// checksum gets one.
    fn is_damaged(&self, page: u64) -> bool {
        let _nobody_writes = lock(&self.shared);
        match self.storage.verdict(page) {
            Ok(PageCheck::Good) => false,
            Ok(PageCheck::Unknown) => {
                let sums = self.storage.checksums().expect("a scrub is of a drive with checksums");
                // If this fails, the page simply stays without a checksum.
                let _ = sums.store_current(self.storage.file(), page);
                false
            }
            Ok(PageCheck::Damaged) | Err(_) => true,
        }
    }
}

/// Result of an offline scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScrubReport {
    pub pages: u64,
    /// Pages without a checksum.
    pub pages_unknown: u64,
    /// Pages whose checksum does not match.
    pub pages_damaged: u64,
    /// Byte addresses of the first damaged pages in the data file.
    pub damaged_at_bytes: Vec<u64>,
}

impl std::fmt::Display for ScrubReport {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = HumanBytes(self.pages * PAGE_BYTES);
        writeln!(
            out,
            "{} pages ({bytes}) checked, {} damaged, {} without a checksum",
            self.pages, self.pages_damaged, self.pages_unknown
        )?;
        for offset in &self.damaged_at_bytes {
            writeln!(out, "the page at byte {offset} is damaged")?;
        }
        let unnamed = self.pages_damaged - self.damaged_at_bytes.len() as u64;
        if unnamed > 0 {
            writeln!(out, "and {unnamed} more")?;
        }
        Ok(())
    }
}

/// Scrubs the data file of a drive that no server uses. The files stay unchanged.
///
/// # Errors
/// The drive is in use, has no checksums, or cannot be read.
pub fn scrub(path: &Path) -> Result<ScrubReport, DriveError> {
    let files = DriveFiles::new(path)?;
    let data = files.data.open().map_err(DriveError::io(path, "the data file cannot be opened"))?;
    if data.try_lock_shared().is_err() {
        return Err(DriveError::InUse(path.to_path_buf()));
    }
    let header = state_file::read(&files.state)?.header;
    let length = data.metadata().map_err(DriveError::io(path, "the data file cannot be examined"))?.len();
    if length != header.file_bytes {
        return Err(DriveError::WrongSize {
            path: path.to_path_buf(),
            found_bytes: length,
            expected_bytes: header.file_bytes,
        });
    }
    let closed = header.clean.as_ref().map(CleanMark::digest);
    let sums = ChecksumFile::open_read_only(&files.checksums, header.drive.into_bytes(), header.file_bytes, closed);
    let sums = sums.map_err(DriveError::io(files.checksums.path(), "the checksums cannot be read"))?;
    let sums = sums.ok_or_else(|| DriveError::NoSums(path.to_path_buf()))?;
    let mut report = ScrubReport::default();
    let mut at = 0;
    let search = || DriveError::io(path, "the data file cannot be searched for data");
    while let Some(pages) = next_slice(&data, at).map_err(search())? {
        at = pages.end * PAGE_BYTES;
        for page in pages {
            report.pages += 1;
            match sums.verdict(&data, page) {
                Ok(PageCheck::Good) => {}
                Ok(PageCheck::Unknown) => report.pages_unknown += 1,
                Ok(PageCheck::Damaged) | Err(_) => {
                    report.pages_damaged += 1;
                    if report.damaged_at_bytes.len() < NAMED_MAX {
                        report.damaged_at_bytes.push(page * PAGE_BYTES);
                    }
                }
            }
        }
    }
    assert!(
        report.pages_unknown + report.pages_damaged <= report.pages,
        "{} damaged pages and {} without a checksum are among {}",
        report.pages_damaged,
        report.pages_unknown,
        report.pages
    );
    assert_eq!(
        report.damaged_at_bytes.len() as u64,
        report.pages_damaged.min(NAMED_MAX as u64),
        "the report lists the first {NAMED_MAX} damaged pages"
    );
    Ok(report)
}
