//! Checksums of the pages of a data file, in a file beside it. They detect changes made outside the
//! server.
//!
//! ```text
//! write:   erase sum -> write page -> write sum   (a kill leaves no sum, never a wrong one)
//! discard: erase sum -> punch hole
//! read:    no sum -> page unknown    different sum -> page damaged
//! ```
//!
//! A sum is the CRC-32C of 4096 bytes. The value 0 means no sum, for pages never written, discarded
//! or unknown. After the end of a process the order of system calls suffices, because all completed
//! writes survive in that order. A power loss may keep pages and sums in any combination, so all
//! sums begin anew then. The header names the boot in which the sums were written. Sums of another
//! boot count only after an orderly shutdown, which makes them durable. A write thus needs no
//! additional synchronization, no sums are held in memory, and good data never causes an error.
//!
//! Format, little-endian: a header of 4096 bytes, then a sum of 4 bytes for each page. The header
//! has "WARPSUM1", the drive's identity (16 bytes), the length of the data file (8), the boot (16)
//! and the digest of the shutdown or 0 (4). The CRC-32 of all previous bytes and zeroes follow.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use base::FilePlace;
use rustix::fs::FallocateFlags;

/// Bytes covered by a sum.
pub const PAGE_BYTES: u64 = 4096;
/// Bytes of a drive's identity.
pub type DriveId = [u8; 16];

const MAGIC: &[u8; 8] = b"WARPSUM1";
const CHECKED_BYTES: usize = 8 + 16 + 8 + 16 + 4;
const HEADER_BYTES: u64 = 4096;
const SUM_BYTES: u64 = 4;
const _: () = assert!(CHECKED_BYTES as u64 + 4 <= HEADER_BYTES, "the header and its checksum lie before the sums");
/// Most sums in one system call.
const PAGES_AT_ONCE: u64 = 256;
const UNKNOWN: u32 = 0;

/// The sums of a data file.
pub struct ChecksumFile {
    file: File,
    /// Length of the data file.
    data_bytes: u64,
    drive: DriveId,
}

/// Error of reading a range.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] Error),
    /// The page at this byte address does not match its checksum.
    #[error("the page does not match its checksum")]
    Damaged(u64),
}

/// Relation of existing sums to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumStatus {
    /// The sums belong to the drive's data.
    Current,
    /// The sums are missing or not trustworthy.
    Unusable,
    /// The sums are intact but belong to another shutdown or another drive. So does the data beside
    /// them.
    OfAnotherShutdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCheck {
    /// The page matches its sum.
    Good,
    /// The page has no sum.
    Unknown,
    /// The page does not match its sum.
    Damaged,
}

fn sum(page: &[u8]) -> u32 {
    match crc32c::crc32c(page) {
        UNKNOWN => !UNKNOWN,
        sum => sum,
    }
}

fn verdict(stored: u32, page: &[u8]) -> PageCheck {
    match stored {
        UNKNOWN => PageCheck::Unknown,
        stored if stored == sum(page) => PageCheck::Good,
        _ => PageCheck::Damaged,
    }
}

fn pages_of(offset: u64, bytes: u64) -> Range<u64> {
    offset / PAGE_BYTES..(offset + bytes).div_ceil(PAGE_BYTES)
}

/// Boot identifier of the machine, zeroes if unavailable.
fn boot() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    uuid::Uuid::parse_str(text.trim()).map_or([0; 16], uuid::Uuid::into_bytes)
}

impl ChecksumFile {
    /// Opens or creates the sums beside a data file of `data_bytes` bytes. `closed` is the digest
    /// of the drive's last shutdown, `None` without one. The second result states whether the
    /// existing sums are valid. Sums that may not match the data start again.
    pub fn open(
        place: &FilePlace,
        drive: DriveId,
        data_bytes: u64,
        closed: Option<u32>,
    ) -> Result<(ChecksumFile, ChecksumStatus)> {
        let sums = ChecksumFile { file: place.open_or_make()?, data_bytes, drive };
        let standing = sums.status(closed);
        if standing != ChecksumStatus::Current {
            sums.file.set_len(0)?;
            sums.file.set_len(sums.file_bytes())?;
        }
        sums.write_header(0)?;
        Ok((sums, standing))
    }

    /// Opens the sums for reading only. Returns `None` if no current sums exist.
    pub fn open_read_only(
        place: &FilePlace,
        drive: DriveId,
        data_bytes: u64,
        closed: Option<u32>,
    ) -> Result<Option<ChecksumFile>> {
        let file = match place.open() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let sums = ChecksumFile { file, data_bytes, drive };
        Ok((sums.status(closed) == ChecksumStatus::Current).then_some(sums))
    }

    fn file_bytes(&self) -> u64 {
        HEADER_BYTES + self.data_bytes.div_ceil(PAGE_BYTES) * SUM_BYTES
    }

    fn header(&self, boot: [u8; 16], closed: u32) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        header.extend(self.drive);
        header.extend(self.data_bytes.to_le_bytes());
        header.extend(boot);
        header.extend(closed.to_le_bytes());
        assert_eq!(header.len(), CHECKED_BYTES, "the form of the header");
        header.extend(crc32fast::hash(&header).to_le_bytes());
        header
    }

    /// Determines whether the stored sums belong to this drive, and to this boot or the last
    /// shutdown.
    fn status(&self, closed: Option<u32>) -> ChecksumStatus {
        let length = self.file.metadata().map_or(0, |metadata| metadata.len());
        let mut found = [0; CHECKED_BYTES + 4];
        if length != self.file_bytes() || self.file.read_exact_at(&mut found, 0).is_err() {
            return ChecksumStatus::Unusable;
        }
        let boot = boot();
        let of_this_boot = boot != [0; 16] && found[..] == self.header(boot, 0);
        let stored_boot = found[32..48].try_into().expect("16 bytes");
        let of_shutdown = closed.is_some_and(|closed| found[..] == self.header(stored_boot, closed));
        if of_this_boot || of_shutdown {
            return ChecksumStatus::Current;
        }
        let (checked, checksum) = found.split_at(CHECKED_BYTES);
        let is_whole = checked.starts_with(MAGIC) && crc32fast::hash(checked).to_le_bytes() == checksum;
        // If the header names this drive and no shutdown, the sums were in use although the state
        // records a shutdown. That shutdown was interrupted between the two writes.
        let is_named = found[8..24] != self.drive || found[48..52] != [0; 4];
        if closed.is_some() && is_whole && is_named {
            ChecksumStatus::OfAnotherShutdown
        } else {
            ChecksumStatus::Unusable
        }
    }

    fn write_header(&self, closed: u32) -> Result<()> {
        self.file.write_all_at(&self.header(boot(), closed), 0)
    }

    /// Makes all sums durable. Must precede the durable write of the shutdown mark.
    pub fn make_durable(&self) -> Result<()> {
        self.file.sync_data()
    }

    /// Records an orderly shutdown with its digest, after the sums are durable.
    ///
    /// # Errors
    /// A system call failed. The sums then begin anew at the next start.
    pub fn close(&self, closed: u32) -> Result<()> {
        self.write_header(closed)?;
        self.file.sync_data()
    }

    /// Bytes of a page in the data file. The last page may be shorter.
    fn page_bytes(&self, page: u64) -> usize {
        (self.data_bytes - page * PAGE_BYTES).min(PAGE_BYTES) as usize
    }

    fn read_page<'a>(&self, data: &File, page: u64, buffer: &'a mut [u8; PAGE_BYTES as usize]) -> Result<&'a mut [u8]> {
        let bytes = &mut buffer[..self.page_bytes(page)];
        data.read_exact_at(bytes, page * PAGE_BYTES)?;
        Ok(bytes)
    }

    fn get(&self, pages: &Range<u64>) -> Result<Vec<u32>> {
        assert!(
            pages.end - pages.start <= PAGES_AT_ONCE,
            "one call reads the sums of the pages {pages:?}, at most {PAGES_AT_ONCE}"
        );
        let mut bytes = [0; (PAGES_AT_ONCE * SUM_BYTES) as usize];
        let bytes = &mut bytes[..((pages.end - pages.start) * SUM_BYTES) as usize];
        self.file.read_exact_at(bytes, HEADER_BYTES + pages.start * SUM_BYTES)?;
        Ok(bytes.as_chunks().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect())
    }

    fn put(&self, first: u64, sums: &[u32]) -> Result<()> {
        let pages = self.data_bytes.div_ceil(PAGE_BYTES);
        assert!(
            first + sums.len() as u64 <= pages,
            "{} sums from page {first} on are of a file with {pages} pages",
            sums.len()
        );
        let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        self.file.write_all_at(&bytes, HEADER_BYTES + first * SUM_BYTES)
    }

    /// Erases the sums of all pages that a range touches.
    pub fn erase(&self, offset: u64, bytes: u64) -> Result<()> {
        let pages = pages_of(offset, bytes);
        let (at, length) = (HEADER_BYTES + pages.start * SUM_BYTES, (pages.end - pages.start) * SUM_BYTES);
        if length > PAGES_AT_ONCE * SUM_BYTES {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if rustix::fs::fallocate(&self.file, flags, at, length).is_ok() {
                return Ok(());
            }
        }
        let zeroes = [0; PAGES_AT_ONCE as usize];
        for first in pages.clone().step_by(PAGES_AT_ONCE as usize) {
            self.put(first, &zeroes[..(pages.end - first).min(PAGES_AT_ONCE) as usize])?;
        }
        Ok(())
    }

    /// Writes a range of the data file with its sums. A damaged page that is partly overwritten
    /// stays damaged.
    ///
    /// # Errors
    /// A system call failed. The pages then have no sums.
    pub fn write(&self, data: &File, offset: u64, bytes: &[u8]) -> Result<()> {
        self.in_parts(offset, bytes.len() as u64, |part_offset, at| self.write_part(data, part_offset, &bytes[at]))
    }

    /// Divides a range at multiples of [`PAGES_AT_ONCE`] pages.
    fn in_parts<E>(
        &self,
        offset: u64,
        bytes: u64,
        mut part: impl FnMut(u64, Range<usize>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        const PART_BYTES: u64 = PAGES_AT_ONCE * PAGE_BYTES;
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let until = ((at / PART_BYTES + 1) * PART_BYTES).min(end);
            part(at, (at - offset) as usize..(until - offset) as usize)?;
            at = until;
        }
        Ok(())
    }

    fn write_part(&self, data: &File, offset: u64, bytes: &[u8]) -> Result<()> {
        let pages = pages_of(offset, bytes.len() as u64);
        let mut sums = vec![UNKNOWN; (pages.end - pages.start) as usize];
        for (page, place) in pages.clone().zip(&mut sums) {
            let start = page * PAGE_BYTES;
            let from = start.max(offset);
            let to = (start + self.page_bytes(page) as u64).min(offset + bytes.len() as u64);
            let new = &bytes[(from - offset) as usize..(to - offset) as usize];
            *place = if new.len() == self.page_bytes(page) {
                sum(new)
            } else {
                self.sum_of_changed(data, page, (from - start) as usize, new)?
            };
        }
        self.erase(offset, bytes.len() as u64)?;
        data.write_all_at(bytes, offset)?;
        // If this fails, the pages have no sums until a scrub adds them.
        let _ = self.put(pages.start, &sums);
        Ok(())
    }

    /// The sum of a page after a partial write. A damaged page gets a sum that does not match.
    fn sum_of_changed(&self, data: &File, page: u64, at: usize, new: &[u8]) -> Result<u32> {
        let stored = self.get(&(page..page + 1))?[0];
        let mut buffer = [0; PAGE_BYTES as usize];
        let bytes = self.read_page(data, page, &mut buffer)?;
        let before = verdict(stored, bytes);
        bytes[at..at + new.len()].copy_from_slice(new);
        let changed = sum(bytes);
        Ok(match before {
            PageCheck::Damaged => invalid_checksum(changed),
            PageCheck::Good | PageCheck::Unknown => changed,
        })
    }

    /// Checks a range that was read from the data file. Reads the rest of partly covered pages.
    ///
    /// # Errors
    /// A system call failed, or a page is damaged.
    pub fn check(&self, data: &File, offset: u64, bytes: &[u8]) -> std::result::Result<(), ReadError> {
        self.in_parts(offset, bytes.len() as u64, |part_offset, at| self.check_part(data, part_offset, &bytes[at]))
    }

    fn check_part(&self, data: &File, offset: u64, bytes: &[u8]) -> std::result::Result<(), ReadError> {
        let pages = pages_of(offset, bytes.len() as u64);
        let sums = self.get(&pages)?;
        let mut buffer = [0; PAGE_BYTES as usize];
        for (page, stored) in pages.zip(sums) {
            let start = page * PAGE_BYTES;
            let length = self.page_bytes(page);
            let is_whole = start >= offset && start + length as u64 <= offset + bytes.len() as u64;
            let found = if stored == UNKNOWN {
                PageCheck::Unknown
            } else if is_whole {
                verdict(stored, &bytes[(start - offset) as usize..][..length])
            } else {
                verdict(stored, self.read_page(data, page, &mut buffer)?)
            };
            if found == PageCheck::Damaged {
                return Err(ReadError::Damaged(start));
            }
        }
        Ok(())
    }

    pub fn verdict(&self, data: &File, page: u64) -> Result<PageCheck> {
        let stored = self.get(&(page..page + 1))?[0];
        let mut buffer = [0; PAGE_BYTES as usize];
        let bytes = self.read_page(data, page, &mut buffer)?;
        Ok(verdict(stored, bytes))
    }

    /// Stores the sum of a page's current content.
    pub fn store_current(&self, data: &File, page: u64) -> Result<()> {
        let mut buffer = [0; PAGE_BYTES as usize];
        let bytes = self.read_page(data, page, &mut buffer)?;
        self.put(page, &[sum(bytes)])
    }
}

/// A sum different from this one and from 0.
fn invalid_checksum(sum: u32) -> u32 {
    match !sum {
        UNKNOWN => 1,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: DriveId = [7; 16];
    const DATA_BYTES: u64 = 1000 * PAGE_BYTES + 100;

    struct Pair {
        folder: tempfile::TempDir,
        data: File,
        sums: ChecksumFile,
    }

    impl Pair {
        fn new() -> Pair {
            let folder = tempfile::tempdir().unwrap();
            let data = tempfile::tempfile().unwrap();
            data.set_len(DATA_BYTES).unwrap();
            let place = FilePlace::new(&folder.path().join("sums")).unwrap();
            let (sums, standing) = ChecksumFile::open(&place, DRIVE, DATA_BYTES, None).unwrap();
            assert_eq!(standing, ChecksumStatus::Unusable, "there were none");
            Pair { folder, data, sums }
        }

        fn reopen(&self, drive: DriveId, data_bytes: u64, closed: Option<u32>) -> bool {
            let place = FilePlace::new(&self.folder.path().join("sums")).unwrap();
            ChecksumFile::open_read_only(&place, drive, data_bytes, closed).unwrap().is_some()
        }

        fn check(&self, offset: u64, bytes: usize) -> std::result::Result<(), u64> {
            let mut read = vec![0; bytes];
            self.data.read_exact_at(&mut read, offset).unwrap();
            match self.sums.check(&self.data, offset, &read) {
                Ok(()) => Ok(()),
                Err(ReadError::Damaged(page)) => Err(page),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_seen_until_the_whole_page_is_written() {
        let pair = Pair::new();
        pair.sums.write(&pair.data, 0, &vec![1; 600 * PAGE_BYTES as usize]).unwrap();
        assert_eq!(pair.check(0, 700 * PAGE_BYTES as usize), Ok(()));
        pair.data.write_all_at(&[3], 300 * PAGE_BYTES + 7).unwrap();
        assert_eq!(pair.check(0, 700 * PAGE_BYTES as usize), Err(300 * PAGE_BYTES));
        assert_eq!(pair.check(300 * PAGE_BYTES + 512, 512), Err(300 * PAGE_BYTES), "another block of the page");
        assert_eq!(pair.check(301 * PAGE_BYTES, 512), Ok(()));
        pair.sums.write(&pair.data, 300 * PAGE_BYTES, &[9; 512]).unwrap();
        assert_eq!(pair.check(300 * PAGE_BYTES, 512), Err(300 * PAGE_BYTES), "a part heals nothing");
        assert_eq!(pair.sums.verdict(&pair.data, 300).unwrap(), PageCheck::Damaged);
        pair.sums.write(&pair.data, 300 * PAGE_BYTES, &[9; 4096]).unwrap();
        assert_eq!(pair.check(300 * PAGE_BYTES, 512), Ok(()));
        pair.data.write_all_at(&[3], 301 * PAGE_BYTES).unwrap();
        pair.sums.erase(300 * PAGE_BYTES, 290 * PAGE_BYTES).unwrap();
        assert_eq!(pair.sums.verdict(&pair.data, 301).unwrap(), PageCheck::Unknown);
        pair.sums.store_current(&pair.data, 301).unwrap();
        assert_eq!(pair.sums.verdict(&pair.data, 301).unwrap(), PageCheck::Good);
        assert_eq!(pair.check(0, 700 * PAGE_BYTES as usize), Ok(()));
    }

    #[test]
    fn parts_of_pages_and_the_last_page_have_sums() {
        let pair = Pair::new();
        let last = DATA_BYTES - 100;
        for (offset, bytes) in [(512, 512), (3584, 1024), (last - 64, 164), (last + 20, 80)] {
            pair.sums.write(&pair.data, offset, &vec![5; bytes]).unwrap();
            assert_eq!(pair.check(offset, bytes), Ok(()));
        }
        pair.data.write_all_at(&[6], last + 3).unwrap();
        assert_eq!(pair.check(last + 50, 10), Err(last));
    }

    #[test]
    fn what_is_killed_between_two_calls_leaves_no_sum() {
        let pair = Pair::new();
        pair.sums.write(&pair.data, 0, &[1; 8192]).unwrap();
        pair.sums.erase(0, 4096).unwrap();
        assert_eq!(pair.check(0, 8192), Ok(()));
        pair.data.write_all_at(&[2; 4096], 0).unwrap();
        assert_eq!(pair.check(0, 8192), Ok(()), "neither the old nor the new page is an error");
    }

    #[test]
    fn sums_count_in_the_boot_that_wrote_them_and_after_the_shutdown_that_kept_them() {
        let pair = Pair::new();
        assert!(pair.reopen(DRIVE, DATA_BYTES, None), "killed in this boot");
        assert!(pair.reopen(DRIVE, DATA_BYTES, Some(5)), "killed before it said that it was open");
        assert!(!pair.reopen([8; 16], DATA_BYTES, None) && !pair.reopen(DRIVE, DATA_BYTES + 1, None));
        pair.sums.close(5).unwrap();
        assert!(pair.reopen(DRIVE, DATA_BYTES, Some(5)));
        assert!(!pair.reopen(DRIVE, DATA_BYTES, Some(6)), "of an earlier shutdown");
        assert!(!pair.reopen(DRIVE, DATA_BYTES, None), "opened without them since");
        // As another boot left it.
        pair.sums.file.write_all_at(&pair.sums.header([1; 16], 0), 0).unwrap();
        assert!(!pair.reopen(DRIVE, DATA_BYTES, None), "power was lost");
    }
}
