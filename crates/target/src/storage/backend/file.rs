//! A backend in a sparse file. Byte `n` of the drive is byte `n` of the file, and unwritten or
//! discarded ranges are holes.
//!
//! Reads and writes use the system's page cache, which the controller reports as its volatile write
//! cache. A Flush, or a write with Force Unit Access, calls `fdatasync` ([`FlushHandle::flush`]).
//! Concurrent commands share one call. After a failed call all later ones fail, because the system
//! reports a lost page only once. Data can then become durable only after a restart of the server.
//! A call also fails if the file has been unlinked, because its data ends with the server.
//!
//! With checksums ([`super::checksum_file`]) a damaged page causes a read error.
//!
//! The file does not contain the non-volatile state. A function (`write_state`) receives it, and
//! [`crate::storage`] stores it beside the data file.

use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nvme::{FlushHandle, Media, MediaError, MonotonicCounters, ScrubResults};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::check_range;
use super::checksum_file::{ChecksumFile, PAGE_BYTES, PageCheck, ReadError};

/// Stores the non-volatile state durably in one step.
pub type StateWriter = Box<dyn FnMut(&[u8]) -> std::io::Result<()> + Send>;

/// Records counters, best effort and without waiting.
pub type CounterRecorder = Box<dyn FnMut(&MonotonicCounters) + Send>;

/// The open file, shared by its writers and the threads that make it durable.
pub struct OpenDataFile {
    file: std::fs::File,
    checksums: Option<ChecksumFile>,
    scrub: ScrubCounters,
    /// True after the drive was stored. All later writes fail.
    closed: AtomicBool,
    /// Number of `fdatasync` calls started.
    begun: AtomicU64,
    syncs: Mutex<SyncResults>,
}

#[derive(Default)]
struct ScrubCounters {
    passes: AtomicU64,
    pages_checked: AtomicU64,
    pages_damaged: AtomicU64,
}

/// Results of the `fdatasync` calls.
#[derive(Default)]
struct SyncResults {
    /// Number of the last successful call.
    done: u64,
    /// Error of the first failed call.
    failed: Option<(ErrorKind, String)>,
}

impl OpenDataFile {
    /// Storage in a file that only this process writes.
    pub fn new(file: std::fs::File) -> Arc<OpenDataFile> {
        OpenDataFile::with_sums(file, None)
    }

    /// Like [`OpenDataFile::new`], with optional checksums of the pages.
    pub fn with_sums(file: std::fs::File, sums: Option<ChecksumFile>) -> Arc<OpenDataFile> {
        Arc::new(OpenDataFile {
            file,
            checksums: sums,
            scrub: ScrubCounters::default(),
            closed: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            syncs: Mutex::new(SyncResults::default()),
        })
    }

    pub fn file(&self) -> &std::fs::File {
        &self.file
    }

    /// Checksums of the pages, if enabled.
    pub fn checksums(&self) -> Option<&ChecksumFile> {
        self.checksums.as_ref()
    }

    /// Results of scrubs, `None` without checksums.
    pub fn integrity(&self) -> Option<ScrubResults> {
        self.checksums.as_ref()?;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Some(ScrubResults {
            passes: get(&self.scrub.passes),
            pages_checked: get(&self.scrub.pages_checked),
            pages_damaged: get(&self.scrub.pages_damaged),
        })
    }

    /// Records the pages that a scrub checked, and whether they end a pass.
    pub fn note_scrub(&self, pages_checked: u64, pages_damaged: u64, ends_pass: bool) {
        assert!(pages_damaged <= pages_checked, "{pages_damaged} of {pages_checked} checked pages are damaged");
        self.scrub.pages_checked.fetch_add(pages_checked, Ordering::Relaxed);
        self.scrub.pages_damaged.fetch_add(pages_damaged, Ordering::Relaxed);
        self.scrub.passes.fetch_add(u64::from(ends_pass), Ordering::Relaxed);
    }

    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), ReadError> {
        self.file.read_exact_at(data, offset)?;
        match &self.checksums {
            Some(sums) => sums.check(&self.file, offset, data),
            None => Ok(()),
        }
    }

    /// Checks a page. Without checksums the result is always `Unknown`.
    pub fn verdict(&self, page: u64) -> std::io::Result<PageCheck> {
        match &self.checksums {
            Some(sums) => sums.verdict(&self.file, page),
            None => Ok(PageCheck::Unknown),
        }
    }

    /// Rejects all later changes of the file and the state.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Returns whether the storage was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn check_open(&self) -> std::io::Result<()> {
        if self.is_closed() {
            return Err(Error::other("the drive was shut down"));
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.check_open()?;
        match &self.checksums {
            Some(sums) => sums.write(&self.file, offset, data),
            None => self.file.write_all_at(data, offset),
        }
    }

    /// Discards a range. Whole blocks of the file system become a hole, the rest becomes zeroes.
    pub fn discard(&self, offset: u64, bytes: u64) -> std::io::Result<()> {
        self.check_open()?;
        if bytes == 0 {
            return Ok(());
        }
        if let Some(sums) = &self.checksums {
            sums.erase(offset, bytes)?;
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::io::retry_on_intr(|| rustix::fs::fallocate(&self.file, flags, offset, bytes)) {
            Ok(()) => Ok(()),
            // The file system does not support holes.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeroes(offset, bytes),
            Err(error) => Err(error.into()),
        }
    }

    fn write_zeroes(&self, mut offset: u64, bytes: u64) -> std::io::Result<()> {
        static ZEROES: [u8; 1 << 16] = [0; 1 << 16];
        let end = offset + bytes;
        while offset < end {
            let take = (end - offset).min(ZEROES.len() as u64);
            self.file.write_all_at(&ZEROES[..take as usize], offset)?;
            offset += take;
        }
        Ok(())
    }
}

impl OpenDataFile {
    /// Number of the first `fdatasync` call that covers all writes so far. A call already in
    /// progress may have missed some.
    fn next_sync(&self) -> u64 {
        self.begun.load(Ordering::Acquire) + 1
    }

    fn check_named(&self) -> std::io::Result<()> {
        if self.file.metadata()?.nlink() == 0 {
            return Err(Error::other("the data file was removed. The data is lost when the server stops"));
        }
        Ok(())
    }

    /// Waits until a call with at least this number has succeeded.
    fn sync_up_to(&self, wanted: u64) -> std::io::Result<()> {
        let mut syncs = self.syncs.lock().expect("nothing panics between lock and unlock");
        if let Some((kind, message)) = &syncs.failed {
            let message = format!("{message}. An earlier attempt to make data durable failed, so restart the server");
            return Err(Error::new(*kind, message));
        }
        if syncs.done >= wanted {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        assert!(syncs.done < number, "sync {number} begins after sync {} has succeeded", syncs.done);
        assert!(wanted <= number, "sync {number} covers the writes that wait for {wanted}");
        match self.file.sync_data().and_then(|()| self.check_named()) {
            Ok(()) => {
                syncs.done = number;
                Ok(())
            }
            Err(error) => {
                syncs.failed = Some((error.kind(), error.to_string()));
                Err(error)
            }
        }
    }
}

impl FlushHandle for OpenDataFile {
    fn flush(&self) -> std::io::Result<()> {
        self.sync_up_to(self.next_sync())
    }
}

/// Bytes by logical address, in a file.
pub struct FileBackend {
    storage: Arc<OpenDataFile>,
    capacity_bytes: u64,
    write_state: StateWriter,
    note: Option<CounterRecorder>,
}

impl FileBackend {
    /// A drive with the file's size.
    ///
    /// # Errors
    /// The size of the file is unavailable.
    pub fn new(storage: Arc<OpenDataFile>, keep: StateWriter) -> std::io::Result<FileBackend> {
        Ok(FileBackend { capacity_bytes: storage.file.metadata()?.len(), storage, write_state: keep, note: None })
    }

    /// The same drive, with a function that records counters.
    pub fn with_counter_recorder(self, note: CounterRecorder) -> FileBackend {
        FileBackend { note: Some(note), ..self }
    }
}

impl Media for FileBackend {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, data.len() as u64);
        self.storage.read(offset, data).map_err(|error| match error {
            ReadError::Io(source) => MediaError { action: "reading", offset, bytes: data.len() as u64, source },
            ReadError::Damaged(page) => MediaError {
                action: "checking the page of",
                offset: page,
                bytes: PAGE_BYTES,
                source: Error::new(ErrorKind::InvalidData, error),
            },
        })
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, data.len() as u64);
        let written = self.storage.write(offset, data);
        written.map_err(|source| MediaError { action: "writing", offset, bytes: data.len() as u64, source })
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, bytes);
        let discarded = self.storage.discard(offset, bytes);
        discarded.map_err(|source| MediaError { action: "discarding", offset, bytes, source })
    }

    fn store_state(&mut self, state: &[u8]) -> Result<(), MediaError> {
        let kept = self.storage.check_open().and_then(|()| (self.write_state)(state));
        kept.map_err(|source| MediaError {
            action: "storing the drive's state of",
            offset: 0,
            bytes: state.len() as u64,
            source,
        })
    }

    fn record_counters(&mut self, counters: &MonotonicCounters) {
        if let Some(note) = self.note.as_mut().filter(|_| !self.storage.is_closed()) {
            note(counters);
        }
    }

    fn scrub_results(&self) -> Option<ScrubResults> {
        self.storage.integrity()
    }

    fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>> {
        Some(Arc::clone(&self.storage) as Arc<dyn FlushHandle>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_wait_together_share_a_sync() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let storage = OpenDataFile::new(file.reopen().unwrap());
        let (one, other) = (storage.next_sync(), storage.next_sync());
        storage.sync_up_to(one).unwrap();
        assert_eq!(storage.begun.load(Ordering::Relaxed), 1);
        storage.sync_up_to(other).unwrap();
        assert_eq!(storage.begun.load(Ordering::Relaxed), 1, "it began after both were written");
        storage.flush().unwrap();
        assert_eq!(storage.begun.load(Ordering::Relaxed), 2, "nothing that came before counts");
    }

    #[test]
    fn a_sync_that_is_under_way_does_not_count() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let storage = OpenDataFile::new(file.reopen().unwrap());
        // As if a call had started, but not ended, before this command wrote its data.
        storage.begun.store(1, Ordering::Relaxed);
        let wanted = storage.next_sync();
        storage.syncs.lock().unwrap().done = 1;
        storage.sync_up_to(wanted).unwrap();
        assert_eq!(storage.begun.load(Ordering::Relaxed), 2);
    }
}
