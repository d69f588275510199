//! Where the bytes of logical pages live: a trait that transports implement (memory, file, none).
//!
//! Addresses are bytes of the drive's logical capacity, the same space that the device model's logical pages number.
//! Behind it lies the metadata of logical blocks: [`bytes_for`] says how much storage there must be, [`metadata_of`]
//! where what is. The controller calls it under its own exclusive access, so an implementation needs no locks; only
//! making data durable happens outside, through a [`Durable`] that outlives the call.

use std::sync::Arc;

use prefetch::Room;
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
    /// Whether it begins and ends with pages.
    pub fn is_whole_pages(&self, page_bytes: u64) -> bool {
        self.offset.is_multiple_of(page_bytes) && self.bytes.is_multiple_of(page_bytes)
    }
}

/// Bytes of data for each byte of metadata, in every LBA format that has metadata.
pub const DATA_BYTES_PER_METADATA_BYTE: u64 = 64;

/// Bytes of storage for a drive of a logical capacity: its data, then the metadata of all of it.
pub const fn bytes_for(capacity_bytes: u64) -> u64 {
    capacity_bytes + capacity_bytes.div_ceil(DATA_BYTES_PER_METADATA_BYTE)
}

/// Where the metadata of a range of data is. The range is whole logical blocks of a format with metadata, or whole
/// pages.
pub const fn metadata_of(capacity_bytes: u64, data: ByteRange) -> ByteRange {
    assert!(data.offset + data.bytes <= capacity_bytes, "data lies inside the drive");
    ByteRange {
        offset: capacity_bytes + data.offset / DATA_BYTES_PER_METADATA_BYTE,
        bytes: data.bytes / DATA_BYTES_PER_METADATA_BYTE,
    }
}

/// The storage behind a subsystem failed.
#[derive(Debug, Error)]
#[error("{action} {bytes} bytes at {offset}: {source}")]
pub struct MediaError {
    /// What was attempted, as a present participle.
    pub action: &'static str,
    /// Byte address in the storage.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
    /// The system's answer.
    pub source: std::io::Error,
}

impl MediaError {
    /// Whether the storage has something else than what was written.
    pub fn is_damage(&self) -> bool {
        self.source.kind() == std::io::ErrorKind::InvalidData
    }
}

/// Makes everything written before the call durable. Called without the subsystem's lock.
pub trait Durable: Send + Sync {
    /// Returns when it is on stable storage.
    ///
    /// # Errors
    /// The system's: nothing written since the last success may be relied on.
    fn make_durable(&self) -> std::io::Result<()>;
}

/// Counters that hosts are told and that never fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Of the FDP statistics log.
    pub totals: ssd::Totals,
    /// Of the SMART log: bytes that hosts read and wrote, commands with which they did.
    pub host_bytes_read: u64,
    /// See `host_bytes_read`.
    pub host_bytes_written: u64,
    /// See `host_bytes_read`.
    pub read_commands: u64,
    /// See `host_bytes_read`.
    pub write_commands: u64,
}

/// What scrubs of the storage found, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// Times that everything was looked at.
    pub passes: u64,
    /// Pages looked at.
    pub pages_checked: u64,
    /// Pages that were not what had been written, again in each pass.
    pub pages_damaged: u64,
}

/// Bytes by logical address, [`bytes_for`] the drive's capacity of them.
pub trait Media: Send {
    /// Fills `data` with the bytes at `offset`; what was never written or was discarded reads as zeroes.
    ///
    /// # Errors
    /// The storage failed, or what it has is not what was written (then the source is of kind `InvalidData`, and the
    /// offset is that of the damage).
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError>;

    /// The range will be read soon. Storage in memory asks for the beginning of it, so that it is not waited for then. It is a hint: it
    /// changes nothing, and the range need not even be read.
    fn expect(&self, _offset: u64, _bytes: u64) {}

    /// Shows the bytes at `offset` to `take`, in pieces that follow each other: those of storage in memory themselves. Other storage reads
    /// them into `room` first, whose content means nothing before and after.
    ///
    /// # Errors
    /// As [`Media::read`]; pieces before what cannot be read may have been shown.
    fn lend(
        &mut self,
        offset: u64,
        bytes: u64,
        room: &mut Vec<u8>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), MediaError> {
        room.resize(bytes as usize, 0);
        self.read(offset, room)?;
        take(room);
        Ok(())
    }

    /// Has `give` put bytes at `offset`, in pieces that follow each other: straight into storage in memory, until [`Media::settle`]. For other storage it puts them into
    /// `room` first, and nothing is stored if it says that it could not.
    ///
    /// # Errors
    /// As [`Media::write`].
    fn fill(
        &mut self,
        offset: u64,
        bytes: u64,
        room: &mut Vec<u8>,
        give: &mut dyn FnMut(Room<'_>) -> bool,
    ) -> Result<(), MediaError> {
        self.fill_by_way_of(offset, bytes, room, give)
    }

    /// What was put with [`Media::fill`] is there for every thread. It is called before another thread has the storage; what this one reads
    /// is what it has put, in any case.
    fn settle(&mut self) {}

    /// What [`Media::fill`] does where data has to be known as a whole before it is stored.
    ///
    /// # Errors
    /// As [`Media::write`].
    fn fill_by_way_of(
        &mut self,
        offset: u64,
        bytes: u64,
        room: &mut Vec<u8>,
        give: &mut dyn FnMut(Room<'_>) -> bool,
    ) -> Result<(), MediaError> {
        room.resize(bytes as usize, 0);
        match give(Room::from(&mut room[..])) {
            true => self.write(offset, room),
            false => Ok(()),
        }
    }

    /// Stores `data` at `offset`.
    ///
    /// # Errors
    /// The storage failed; the range holds old or new bytes, each aligned 4 KiB as a whole.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError>;

    /// Makes a range read as zeroes, giving its storage back where that is possible.
    ///
    /// # Errors
    /// The storage failed.
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError>;

    /// Stores the non-volatile state of the subsystem (namespaces, saved features, ...), replacing the previous one in
    /// one step and durably. An implementation without persistence forgets it.
    ///
    /// # Errors
    /// The storage failed; the previous state is still there.
    fn keep(&mut self, state: &[u8]) -> Result<(), MediaError>;

    /// Notes counters that hosts are about to be told, where a process that is killed leaves them: a start after that
    /// goes on from there. It costs less than [`Media::keep`] and need not survive a power loss. An implementation
    /// without persistence forgets them.
    fn note_counters(&mut self, _counters: &Counters) {}

    /// What scrubs found; `None` if the storage knows nothing of damage.
    fn integrity(&self) -> Option<Integrity> {
        None
    }

    /// The volatile write cache in front of stable storage: how to make its content durable, or `None` if what is
    /// written is as safe as it will ever be. Decides whether the controller reports a volatile write cache.
    fn durable(&self) -> Option<Arc<dyn Durable>>;
}
