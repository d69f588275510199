//! Storage for the lifetimes that the oracle's first pass finds, until the second pass needs them.
//! Up to 64 MiB stay in memory. More goes to an unnamed temporary file, which the system removes
//! however the process ends.
//!
//! ```text
//! lifetimes of writes, in the order of deaths -> the region of their chunk
//!   -> all lifetimes of a chunk, in the order of writes
//! ```
//!
//! Writes are numbered, and a chunk is a fixed number of consecutive writes. All chunks within the
//! horizon are filled concurrently. Each has its own region of the file and its own buffer. A
//! region is reused once its chunk has been taken.

use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::SpooledTempFile;

use crate::WorkloadError;

/// Bytes that are kept in memory before a file is created.
const IN_MEMORY_BYTES: usize = 64 << 20;
/// Records of a region that are written together.
const BUFFER_RECORDS: usize = 8192;
/// Bytes of a record, which holds the index of a write in its chunk above its lifetime.
const RECORD_BYTES: u64 = 8;
/// Bits of a lifetime.
pub(super) const LIFETIME_BITS: u32 = 40;
/// Maximum writes in a chunk.
pub(super) const CHUNK_MAX: u64 = 1 << (64 - LIFETIME_BITS);

/// A chunk that is being filled.
#[derive(Default)]
struct OpenChunk {
    spilled: u64,
    buffer: Vec<u64>,
}

/// Lifetimes by chunk.
pub(super) struct Spill {
    file: SpooledTempFile,
    folder: String,
    chunk_writes: u64,
    regions: Vec<OpenChunk>,
    /// The next chunk to take. This chunk and those after it are being filled.
    first: u64,
}

impl Spill {
    /// Creates storage for `chunks` concurrent chunks, with temporary files in `folder`.
    pub(super) fn new(chunk_writes: u64, chunks: u64, folder: &Path) -> Spill {
        assert!((1..=CHUNK_MAX).contains(&chunk_writes) && chunks > 0);
        Spill {
            file: tempfile::spooled_tempfile_in(IN_MEMORY_BYTES, folder),
            folder: folder.display().to_string(),
            chunk_writes,
            regions: (0..chunks).map(|_| OpenChunk::default()).collect(),
            first: 0,
        }
    }

    pub(super) fn record(&mut self, write: u64, lifetime: u64) -> Result<(), WorkloadError> {
        let chunk = write / self.chunk_writes;
        assert!(
            (self.first..self.first + self.regions.len() as u64).contains(&chunk),
            "a lifetime that is within the horizon is of a chunk that is being filled"
        );
        assert!((1..1 << LIFETIME_BITS).contains(&lifetime), "{lifetime}");
        let index = self.region(chunk);
        let region = &mut self.regions[index];
        region.buffer.push((write % self.chunk_writes) << LIFETIME_BITS | lifetime);
        if region.buffer.len() < BUFFER_RECORDS {
            return Ok(());
        }
        let records = std::mem::take(&mut region.buffer);
        let at = (index as u64 * self.chunk_writes + region.spilled) * RECORD_BYTES;
        region.spilled += records.len() as u64;
        assert!(region.spilled <= self.chunk_writes, "a write dies once");
        let bytes: Vec<u8> = records.iter().flat_map(|record| record.to_le_bytes()).collect();
        let written = self.file.seek(SeekFrom::Start(at));
        let written = written.and_then(|_| self.file.write_all(&bytes));
        written.map_err(|error| self.failed(&error))
    }

    /// Takes the lifetimes of the next chunk, in the order of its writes. Missing ones are
    /// `beyond`.
    pub(super) fn read_chunk(&mut self, beyond: u64) -> Result<Vec<u64>, WorkloadError> {
        let index = self.region(self.first);
        self.first += 1;
        let region = std::mem::take(&mut self.regions[index]);
        assert_eq!(region.spilled % BUFFER_RECORDS as u64, 0, "a region of the file is not written in whole buffers");
        let mut lifetimes = vec![beyond; self.chunk_writes as usize];
        let mut place = |record: u64| {
            let lifetime = &mut lifetimes[(record >> LIFETIME_BITS) as usize];
            assert_eq!(*lifetime, beyond, "a write dies once");
            *lifetime = record & ((1 << LIFETIME_BITS) - 1);
        };
        let mut bytes = vec![0; BUFFER_RECORDS * RECORD_BYTES as usize];
        let start = self.file.seek(SeekFrom::Start(index as u64 * self.chunk_writes * RECORD_BYTES));
        start.map_err(|error| self.failed(&error))?;
        for _ in 0..region.spilled / BUFFER_RECORDS as u64 {
            self.file.read_exact(&mut bytes).map_err(|error| self.failed(&error))?;
            for record in bytes.chunks_exact(RECORD_BYTES as usize) {
                place(u64::from_le_bytes(record.try_into().expect("8 bytes")));
            }
        }
        region.buffer.into_iter().for_each(place);
        Ok(lifetimes)
    }

    fn region(&self, chunk: u64) -> usize {
        (chunk % self.regions.len() as u64) as usize
    }

    fn failed(&self, error: &Error) -> WorkloadError {
        let most = base::HumanBytes(self.regions.len() as u64 * self.chunk_writes * RECORD_BYTES);
        let reason = match error.kind() {
            ErrorKind::StorageFull => "the disk is full".to_string(),
            _ => error.to_string(),
        };
        let problem = format!(
            "needs a temporary file of up to {most} in {}, which failed ({reason}). Free some space there, set \
             TMPDIR to another folder, lower horizon_percent, or use a smaller scaled model",
            self.folder
        );
        WorkloadError::setting("classifier.horizon_percent", problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_come_back_in_the_order_of_writes_from_memory_and_from_the_file() {
        // 16 chunks of 2^20 writes are 128 MiB of records, twice the memory limit.
        let folder = tempfile::tempdir().expect("a folder");
        let (chunk, chunks) = (1u64 << 20, 16);
        let mut spill = Spill::new(chunk, chunks, folder.path());
        let lifetime = |write: u64| 1 + write * 7919 % 1_000_003;
        let dies = |write: u64| !write.is_multiple_of(5);
        let put = |spill: &mut Spill, of: u64| {
            // Deaths come in another order than the writes.
            for index in (0..chunk).rev().map(|index| index ^ 0b1010) {
                let write = of * chunk + index;
                if dies(write) {
                    spill.record(write, lifetime(write)).expect("there is room");
                }
            }
        };
        for of in 0..chunks {
            put(&mut spill, of);
        }
        for of in 0..chunks + 2 {
            let lifetimes = spill.read_chunk(77).expect("it can be read");
            for (index, found) in lifetimes.iter().enumerate() {
                let write = of * chunk + index as u64;
                assert_eq!(*found, if dies(write) { lifetime(write) } else { 77 });
            }
            // A later chunk now uses the region.
            if of < 2 {
                put(&mut spill, of + chunks);
            }
            if of >= chunks {
                break;
            }
        }
        let left = std::fs::read_dir(folder.path()).expect("it is there").count();
        assert_eq!(left, 0, "the file has no name that could be left behind");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_one_sentence() {
        let mut spill = Spill::new(CHUNK_MAX, 1, Path::new("/nowhere/at all"));
        let error = (0..CHUNK_MAX).find_map(|write| spill.record(write, 1).err());
        let error = error.expect("16 Mi records do not stay in memory").to_string();
        assert!(error.starts_with("classifier.horizon_percent needs a temporary file of up to"), "{error}");
        assert!(error.contains("/nowhere/at all") && error.contains("set TMPDIR"), "{error}");
    }
}
