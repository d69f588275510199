//! Storage of the bytes of logical pages. Servers implement the trait [`Media`] in memory, in a
//! file or without any data.
//!
//! Addresses are bytes of the drive's logical capacity, the address space of the device model's
//! logical pages. The metadata of logical blocks follows behind the capacity. [`bytes_for`] returns
//! the storage size, and [`metadata_of`] the address of metadata.
//!
//! The controller calls the storage under its own exclusive access, so implementations need no
//! locks. Only durability is established outside, through a [`FlushHandle`] that outlives the call.

use std::sync::Arc;

use prefetch::NonTemporalBuf;
use thiserror::Error;

/// A byte range of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte, in the drive's logical capacity.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

impl ByteRange {
    /// True if the range starts and ends at page boundaries.
    pub fn is_whole_pages(&self, page_bytes: u64) -> bool {
        self.offset.is_multiple_of(page_bytes) && self.bytes.is_multiple_of(page_bytes)
    }
}

/// Bytes of data for each byte of metadata, in every LBA format that has metadata.
pub const DATA_BYTES_PER_METADATA_BYTE: u64 = 64;

/// Bytes of storage for a drive of this logical capacity. The metadata follows the data.
pub const fn bytes_for(capacity_bytes: u64) -> u64 {
    capacity_bytes + capacity_bytes.div_ceil(DATA_BYTES_PER_METADATA_BYTE)
}

/// Address range of the metadata of a data range. The range consists of whole logical blocks of a
/// format with metadata, or of whole pages.
pub const fn metadata_of(capacity_bytes: u64, data: ByteRange) -> ByteRange {
    assert!(data.offset + data.bytes <= capacity_bytes, "data lies inside the drive");
    assert!(
        data.offset.is_multiple_of(DATA_BYTES_PER_METADATA_BYTE)
            && data.bytes.is_multiple_of(DATA_BYTES_PER_METADATA_BYTE),
        "data with metadata consists of whole blocks"
    );
    ByteRange {
        offset: capacity_bytes + data.offset / DATA_BYTES_PER_METADATA_BYTE,
        bytes: data.bytes / DATA_BYTES_PER_METADATA_BYTE,
    }
}

/// Error of the storage behind a subsystem.
#[derive(Debug, Error)]
#[error("{action} {bytes} bytes at {offset} failed: {source}")]
pub struct MediaError {
    /// Attempted action, a present participle.
    pub action: &'static str,
    /// Byte address in the storage.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
    /// Error of the operating system.
    pub source: std::io::Error,
}

impl MediaError {
    /// True if the stored data differs from the written data.
    pub fn is_damage(&self) -> bool {
        self.source.kind() == std::io::ErrorKind::InvalidData
    }
}

/// Makes all data durable that was written before the call. Called without the subsystem's lock.
pub trait FlushHandle: Send + Sync {
    /// Returns when the data is on stable storage.
    ///
    /// # Errors
    /// The operating system's error. Data written since the last success may be lost.
    fn flush(&self) -> std::io::Result<()>;
}

/// Counters that hosts can read and that never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonotonicCounters {
    /// Counters of the FDP statistics log.
    pub totals: ssd::FdpTotals,
    /// Bytes that hosts read, from the SMART log.
    pub host_bytes_read: u64,
    /// Bytes that hosts wrote, from the SMART log.
    pub host_bytes_written: u64,
    /// Host read commands, from the SMART log.
    pub read_commands: u64,
    /// Host write commands, from the SMART log.
    pub write_commands: u64,
}

/// Results of storage scrubs since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubResults {
    /// Completed passes over the whole storage.
    pub passes: u64,
    /// Pages checked.
    pub pages_checked: u64,
    /// Pages that differed from the written data, counted again in each pass.
    pub pages_damaged: u64,
}

/// Byte storage by logical address, of [`bytes_for`] the drive's capacity.
pub trait Media: Send {
    /// Fills `data` with the bytes at `offset`. Discarded and never written bytes read as zeroes.
    ///
    /// # Errors
    /// The storage failed, or its data differs from the written data. In the second case the source
    /// has the kind `InvalidData`, and the offset is the address of the damage.
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError>;

    /// Prefetches a range that will be read soon. In-memory storage prefetches the start of the
    /// range. The call is a hint without side effects, and the range may stay unread.
    fn prefetch(&self, _offset: u64, _bytes: u64) {}

    /// Passes the bytes at `offset` to `take`, in consecutive pieces. In-memory storage passes
    /// slices of its own memory. Other storage reads into `buffer` first. The content of `buffer`
    /// is meaningless before and after the call.
    ///
    /// # Errors
    /// The same as [`Media::read`]. `take` may have received pieces before the unreadable one.
    fn read_with(
        &mut self,
        offset: u64,
        bytes: u64,
        buffer: &mut Vec<u8>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), MediaError> {
        buffer.resize(bytes as usize, 0);
        self.read(offset, buffer)?;
        take(buffer);
        Ok(())
    }

    /// Lets `give` provide the bytes at `offset`, in consecutive pieces. In-memory storage lets
    /// `give` write directly to its own memory, and [`Media::flush_nontemporal`] must follow. Other
    /// storage lets `give` write to `buffer` and then stores the buffer. If `give` returns false,
    /// such storage stores no byte.
    fn write_with(
        &mut self,
        offset: u64,
        bytes: u64,
        buffer: &mut Vec<u8>,
        give: &mut dyn FnMut(NonTemporalBuf<'_>) -> bool,
    ) -> Result<(), MediaError> {
        self.write_through_buffer(offset, bytes, buffer, give)
    }

    /// Makes data of [`Media::write_with`] visible to all threads. The caller runs it before
    /// another thread uses the storage. The calling thread sees its own data even without it.
    fn flush_nontemporal(&mut self) {}

    /// [`Media::write_with`] for storage that needs all data before it stores any.
    fn write_through_buffer(
        &mut self,
        offset: u64,
        bytes: u64,
        buffer: &mut Vec<u8>,
        give: &mut dyn FnMut(NonTemporalBuf<'_>) -> bool,
    ) -> Result<(), MediaError> {
        buffer.resize(bytes as usize, 0);
        match give(NonTemporalBuf::from(&mut buffer[..])) {
            true => self.write(offset, buffer),
            false => Ok(()),
        }
    }

    /// Stores `data` at `offset`.
    ///
    /// # Errors
    /// The storage failed. Each aligned 4 KiB of the range holds either its old or its new bytes.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError>;

    /// Makes a range read as zeroes, and frees its storage if possible.
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError>;

    /// Stores the non-volatile state of the subsystem (namespaces, saved features, ...). The state
    /// replaces the previous one atomically and durably. Implementations without persistence
    /// discard it.
    ///
    /// # Errors
    /// The storage failed. The previous state is intact.
    fn store_state(&mut self, state: &[u8]) -> Result<(), MediaError>;

    /// Records counters before hosts read them, so that they survive a killed process. The next
    /// start continues from the recorded values. A call costs less than [`Media::store_state`] and
    /// need not survive a power loss. Implementations without persistence discard the counters.
    fn record_counters(&mut self, _counters: &MonotonicCounters) {}

    /// Scrub results, or `None` if the storage cannot detect damage.
    fn scrub_results(&self) -> Option<ScrubResults> {
        None
    }

    /// Handle that makes the volatile write cache durable. `None` if written data is already as
    /// safe as it will be. The controller reports a volatile write cache only with a handle.
    fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>>;
}
