//! Context of an I/O command, which has its namespace and the parts of the drive that it uses.
//!
//! Each command gets one context, after the check that its namespace is active. The
//! [`Subsystem`](crate::Subsystem) lends its fields to the context. The executors are methods of
//! the context, so none of them looks the namespace up again. They only mark changes of the
//! non-volatile state. The subsystem stores the state before the command completes.

use nvme_spec::Status;
use ssd::{Device, Lpn};

use super::BlockRange;
use crate::clock::DriveClock;
use crate::completion::Execution;
use crate::error::{Failure, Parameter};
use crate::fault::cache::CachedMedia;
use crate::fdp::{FdpEventSink, FdpState, RuOpenTimes};
use crate::media::{ByteRange, Media, MediaError};
use crate::namespace::Namespace;
use crate::state::{SanitizeOutcome, SmartCounters};

pub(crate) struct IoContext<'a> {
    pub nsid: u32,
    pub namespace: &'a mut Namespace,
    pub page_bytes: u64,
    pub device: &'a mut Device<FdpEventSink>,
    pub media: &'a mut CachedMedia,
    pub smart: &'a mut SmartCounters,
    pub sanitize: &'a mut SanitizeOutcome,
    pub fdp: &'a mut FdpState,
    pub units: &'a mut RuOpenTimes,
    pub clock: &'a mut DriveClock,
    /// Buffer for data that no host sees.
    pub scratch: &'a mut Vec<u8>,
    /// A fault makes all media read-only.
    pub is_read_only: bool,
    /// The command changed the non-volatile state. The state must be stored before the command
    /// completes.
    pub changes_state: bool,
}

impl IoContext<'_> {
    pub(super) fn capacity_bytes(&self) -> u64 {
        u64::from(self.device.layout().logical_pages) * self.page_bytes
    }

    pub(super) fn media_failure(&mut self, status: Status, error: &MediaError) -> Failure {
        media_failure(&mut self.smart.media_errors, status, error)
    }

    pub(super) fn check_writable(&self, blocks: BlockRange) -> Result<(), Failure> {
        check_range(self.namespace, blocks)?;
        if self.is_read_only {
            return Err(Failure::new(Status::WRITE_TO_READ_ONLY_RANGE, "the media is read-only").lba(blocks.first));
        }
        if self.namespace.write_protected {
            let cause = format!("namespace {} is write protected", self.nsid);
            return Err(Failure::new(Status::NAMESPACE_IS_WRITE_PROTECTED, cause));
        }
        Ok(())
    }

    pub(super) fn check_readable(&self, blocks: BlockRange) -> Result<(), Failure> {
        check_range(self.namespace, blocks)?;
        let uncorrectable = &self.namespace.uncorrectable;
        if uncorrectable.is_empty() {
            return Ok(());
        }
        match uncorrectable.first_in(blocks.first, blocks.count) {
            None => Ok(()),
            Some(lba) => {
                let cause = format!("logical block {lba} was marked by Write Uncorrectable");
                Err(Failure::new(Status::UNRECOVERED_READ_ERROR, cause).lba(lba))
            }
        }
    }

    /// Counts a command that returned data to the host. Metadata does not count.
    pub(super) fn note_read(&mut self, blocks: BlockRange) {
        self.smart.read_commands += 1;
        self.smart.host_bytes_read += blocks.count << self.namespace.block_bytes_log2();
    }

    pub(super) fn note_write(&mut self, blocks: BlockRange, force_unit_access: bool) -> Execution {
        let block_bytes = self.namespace.block_bytes();
        let is_unaligned = !((blocks.first | blocks.count) * block_bytes).is_multiple_of(self.page_bytes);
        self.smart.write_commands += 1;
        self.smart.unaligned_writes += u64::from(is_unaligned);
        Execution::written(force_unit_access)
    }

    /// Updates the state after any kind of write. The change is stored, so that a power loss cannot
    /// restore marks of the old data.
    pub(super) fn written(&mut self, blocks: BlockRange) {
        let was_uncorrectable = self.forget_uncorrectable(blocks);
        let was_sanitized = self.sanitize.note_write();
        self.changes_state |= was_uncorrectable || was_sanitized;
        assert!(!self.sanitize.notes_writes(), "the state records a write to the drive");
    }

    /// Makes blocks readable again after Write Uncorrectable. Returns true if the range had an
    /// unreadable block.
    pub(super) fn forget_uncorrectable(&mut self, blocks: BlockRange) -> bool {
        let uncorrectable = &mut self.namespace.uncorrectable;
        let there_is = !uncorrectable.is_empty() && uncorrectable.first_in(blocks.first, blocks.count).is_some();
        if there_is {
            uncorrectable.remove(blocks.first, blocks.count);
            assert_eq!(uncorrectable.first_in(blocks.first, blocks.count), None, "they are readable now");
        }
        there_is
    }

    pub(super) fn deallocate_pages(&mut self, piece: ByteRange) {
        assert!(piece.is_whole_pages(self.page_bytes), "a page that is covered in part stays");
        let (first, pages) = super::pages_of(piece, self.page_bytes);
        let done = self.device.deallocate(self.clock.now(), first, pages);
        self.clock.note_done(done.expect("namespaces lie inside the device"));
        let last = Lpn(first.0 + pages - 1);
        assert!(self.device.lookup(last).is_none(), "the pages were given back");
    }

    /// Makes a range of the namespace and its metadata read as zeroes. The device model does not
    /// see the change.
    pub(super) fn discard_blocks(&mut self, piece: ByteRange) -> Result<(), Failure> {
        discard(self.media, &mut self.smart.media_errors, piece)?;
        if self.namespace.metadata_bytes() > 0 {
            let metadata = crate::media::metadata_of(self.capacity_bytes(), piece);
            discard(self.media, &mut self.smart.media_errors, metadata)?;
        }
        Ok(())
    }
}

#[inline]
pub(super) fn check_range(namespace: &Namespace, blocks: BlockRange) -> Result<(), Failure> {
    if namespace.contains(blocks.first, blocks.count) {
        return Ok(());
    }
    let cause =
        format!("{} logical blocks from {} on exceed the namespace's {}", blocks.count, blocks.first, namespace.blocks);
    let at = Parameter::dword(10, 0);
    Err(Failure::new(Status::LBA_OUT_OF_RANGE, cause).at(at).lba(blocks.first))
}

/// Failure of a command because of the storage. Damage is permanent, so such a failure is not
/// retryable.
pub(super) fn media_failure(media_errors: &mut u64, status: Status, error: &MediaError) -> Failure {
    *media_errors += 1;
    let failure = Failure::new(status, error.to_string());
    match error.is_damage() {
        true => failure,
        false => failure.retryable(),
    }
}

/// Makes a range of the storage read as zeroes. The device model does not see the change.
pub(crate) fn discard(media: &mut CachedMedia, media_errors: &mut u64, piece: ByteRange) -> Result<(), Failure> {
    media.discard(piece.offset, piece.bytes).map_err(|error| media_failure(media_errors, Status::WRITE_FAULT, &error))
}
