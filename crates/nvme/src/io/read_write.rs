//! Execution of Read, Write, Compare, Verify, Write Zeroes and Write Uncorrectable.
//!
//! For a format with metadata, buffers hold all the data and then all the metadata (see
//! `metadata`).

use nvme_spec::Status;
use prefetch::NonTemporalBuf;
use ssd::{Placement, WriteRequest};

use super::context::{IoContext, media_failure};
use super::{BlockRange, IoProgress, metadata, pages_of};
use crate::completion::{CommandResult, Execution};
use crate::error::Failure;
use crate::fault::cache::CachedMedia;
use crate::fdp::WriteDirective;
use crate::media::{ByteRange, Media, MediaError};
use crate::transfer::TRANSFER_BYTES_MAX;

impl IoContext<'_> {
    pub(super) fn read(&mut self, blocks: BlockRange, data: &mut Vec<u8>) -> CommandResult {
        self.check_readable(blocks)?;
        self.read_for_host(blocks, data)?;
        self.note_read(blocks);
        Ok(Execution::DONE)
    }

    /// Reads a format without metadata and passes the data to `take` in pieces.
    pub(super) fn read_pieces(
        &mut self,
        blocks: BlockRange,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> CommandResult {
        self.check_readable(blocks)?;
        let mut buffer = std::mem::take(self.scratch);
        let mut taken = Ok(());
        let read = self.read_each(blocks, |media, piece| {
            media.read_with(piece.offset, piece.bytes, &mut buffer, &mut |part| {
                if taken.is_ok() {
                    taken = take(part);
                }
            })
        });
        *self.scratch = buffer;
        read.and(taken)?;
        self.note_read(blocks);
        Ok(Execution::DONE)
    }

    /// Reads blocks that are known to be readable.
    pub(super) fn read_into(&mut self, blocks: BlockRange, data: &mut Vec<u8>) -> Result<(), Failure> {
        let metadata_bytes = (blocks.count * self.namespace.metadata_bytes()) as usize;
        let data_bytes = (blocks.count << self.namespace.block_bytes_log2()) as usize;
        data.resize(data_bytes + metadata_bytes, 0);
        let (mut rest, metadata) = data.split_at_mut(data_bytes);
        self.read_each(blocks, |media, piece| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(piece.bytes as usize);
            rest = behind;
            media.read(piece.offset, part)
        })?;
        assert!(rest.is_empty(), "the pieces are the blocks");
        match metadata_bytes {
            0 => Ok(()),
            _ => self.read_metadata(blocks, metadata),
        }
    }

    /// Reads each piece of the blocks from the storage and the device model.
    fn read_each(
        &mut self,
        blocks: BlockRange,
        mut read: impl FnMut(&mut CachedMedia, ByteRange) -> Result<(), MediaError>,
    ) -> Result<(), Failure> {
        let block_bytes_log2 = self.namespace.block_bytes_log2();
        let mut done_bytes = 0;
        for piece in self.namespace.locate(blocks.first, blocks.count, self.page_bytes) {
            read(self.media, piece).map_err(|error| {
                let media_errors = &mut self.smart.media_errors;
                unread(media_errors, blocks, block_bytes_log2, done_bytes, piece, &error)
            })?;
            done_bytes += piece.bytes;
            let (first, pages) = pages_of(piece, self.page_bytes);
            let done = self.device.read(self.clock.now(), first, pages);
            self.clock.note_done(done.expect("namespaces lie inside the device"));
        }
        assert_eq!(done_bytes, blocks.count << block_bytes_log2, "the pieces are the blocks");
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        blocks: BlockRange,
        directive: WriteDirective,
        force_unit_access: bool,
        data: &[u8],
    ) -> CommandResult {
        self.check_writable(blocks)?;
        let extended = self.namespace.extended_metadata;
        let apart = extended.then(|| metadata::taken_apart(data, self.namespace));
        let placement = self.resolve(directive)?;
        self.write_from(blocks, placement, apart.as_deref().unwrap_or(data))?;
        Ok(self.note_write(blocks, force_unit_access))
    }

    /// Writes a format without metadata. `give` puts the data into the storage in pieces. A failure
    /// may leave some blocks written.
    pub(super) fn write_pieces(
        &mut self,
        blocks: BlockRange,
        directive: WriteDirective,
        force_unit_access: bool,
        give: &mut dyn FnMut(NonTemporalBuf<'_>) -> Result<(), Failure>,
    ) -> CommandResult {
        self.check_writable(blocks)?;
        let placement = self.resolve(directive)?;
        let mut buffer = std::mem::take(self.scratch);
        let written = self.write_each(blocks, placement, |media, piece| {
            let mut given = Ok(());
            media.write_with(piece.offset, piece.bytes, &mut buffer, &mut |part| {
                given = give(part);
                given.is_ok()
            })?;
            Ok(given)
        });
        *self.scratch = buffer;
        self.media.flush_nontemporal();
        written?;
        self.written(blocks);
        Ok(self.note_write(blocks, force_unit_access))
    }

    /// Writes blocks that are known to be writable.
    pub(super) fn write_from(&mut self, blocks: BlockRange, placement: Placement, data: &[u8]) -> Result<(), Failure> {
        let data_bytes = blocks.count << self.namespace.block_bytes_log2();
        let (mut rest, metadata) = data.split_at(data_bytes as usize);
        self.write_each(blocks, placement, |media, piece| {
            let (part, behind) = rest.split_at(piece.bytes as usize);
            rest = behind;
            media.write(piece.offset, part).map(Ok)
        })?;
        assert!(rest.is_empty(), "the pieces are the blocks");
        if !metadata.is_empty() {
            self.write_metadata(blocks, metadata)?;
        }
        self.written(blocks);
        Ok(())
    }

    /// Writes each piece of the blocks to the storage and the device model. `write` also returns
    /// failures of the host's data transfer.
    fn write_each(
        &mut self,
        blocks: BlockRange,
        placement: Placement,
        mut write: impl FnMut(&mut CachedMedia, ByteRange) -> Result<Result<(), Failure>, MediaError>,
    ) -> Result<(), Failure> {
        let left_before = self.pages_before_writing(placement.handle);
        let (mut pages, mut written_bytes) = (0, 0);
        for piece in self.namespace.locate(blocks.first, blocks.count, self.page_bytes) {
            let written = write(self.media, piece);
            written.map_err(|error| media_failure(&mut self.smart.media_errors, Status::WRITE_FAULT, &error))??;
            let write = device_write(piece, self.page_bytes, placement);
            written_bytes += piece.bytes;
            pages += u64::from(write.pages);
            let done = self.device.write(self.clock.now(), &write);
            self.clock.note_done(done.expect("namespaces lie inside the device"));
        }
        let data_bytes = blocks.count << self.namespace.block_bytes_log2();
        assert_eq!(written_bytes, data_bytes, "the pieces are the blocks");
        self.namespace.host_bytes_written += data_bytes;
        self.smart.host_bytes_written += data_bytes;
        self.note_pages_written(placement, pages, left_before);
        Ok(())
    }

    pub(super) fn compare(&mut self, blocks: BlockRange, data: &[u8]) -> CommandResult {
        self.check_readable(blocks)?;
        let mut scratch = std::mem::take(self.scratch);
        let read = self.read_for_host(blocks, &mut scratch);
        let equal = scratch == data;
        *self.scratch = scratch;
        read?;
        self.note_read(blocks);
        if !equal {
            let cause = "the data differs from the stored data";
            return Err(Failure::new(Status::COMPARE_FAILURE, cause).lba(blocks.first));
        }
        Ok(Execution::DONE)
    }

    /// Reads a part of up to the largest transfer, without returning the data.
    pub(super) fn verify_part(&mut self, blocks: BlockRange, progress: &mut IoProgress) -> CommandResult {
        self.check_readable(blocks)?;
        let block_bytes_log2 = self.namespace.block_bytes_log2();
        let part = BlockRange {
            first: blocks.first + progress.blocks_done,
            count: (TRANSFER_BYTES_MAX >> block_bytes_log2).min(blocks.count - progress.blocks_done),
        };
        let mut scratch = std::mem::take(self.scratch);
        let read = self.read_into(part, &mut scratch);
        *self.scratch = scratch;
        read?;
        let whole = progress.advance(part.count, blocks.count);
        if whole {
            // Verified blocks count as read, the command itself does not (SMART / Health
            // Information log page).
            self.smart.host_bytes_read += blocks.count << block_bytes_log2;
        }
        Ok(Execution::DONE.done_if(whole))
    }

    pub(super) fn write_zeroes_part(
        &mut self,
        blocks: BlockRange,
        directive: WriteDirective,
        deallocate: bool,
        force_unit_access: bool,
        progress: &mut IoProgress,
    ) -> CommandResult {
        self.check_writable(blocks)?;
        // All parts of a command use one placement, as long as it exists.
        let placement = match progress.placement.filter(|decided| self.has_place(*decided)) {
            Some(decided) => decided,
            None => self.resolve(directive)?,
        };
        progress.placement = Some(placement);
        let first = blocks.first + progress.blocks_done;
        let end = blocks.first + blocks.count;
        let part = BlockRange { first, count: self.end_of_part(first).min(end) - first };
        self.write_zeroes(part, placement, deallocate)?;
        let whole = progress.advance(part.count, blocks.count);
        Ok(Execution::written(force_unit_access).done_if(whole))
    }

    fn has_place(&self, placement: Placement) -> bool {
        let handles = &self.namespace.placement_handles;
        handles.contains(&placement.handle) && placement.group.0 < self.device.layout().groups
    }

    fn write_zeroes(&mut self, blocks: BlockRange, placement: Placement, deallocate: bool) -> Result<(), Failure> {
        let page_bytes = self.page_bytes;
        let left_before = self.pages_before_writing(placement.handle);
        let mut pages = 0;
        let located = self.namespace.locate(blocks.first, blocks.count, page_bytes);
        for piece in located.collect::<Vec<ByteRange>>() {
            self.discard_blocks(piece)?;
            // A partly covered page is written, so that the rest of the page survives.
            for part in split_by_page(piece, page_bytes) {
                if deallocate && part.is_whole_pages(page_bytes) {
                    self.deallocate_pages(part);
                    continue;
                }
                let write = device_write(part, page_bytes, placement);
                let done = self.device.write_zeroes(self.clock.now(), &write, false);
                self.clock.note_done(done.expect("namespaces lie inside the device"));
                pages += u64::from(write.pages);
            }
        }
        self.note_pages_written(placement, pages, left_before);
        self.written(blocks);
        Ok(())
    }

    pub(super) fn write_uncorrectable(&mut self, blocks: BlockRange) -> CommandResult {
        /// Most ranges of unreadable blocks in the state. The limit bounds the memory that a host
        /// can use.
        const RANGES_MAX: usize = 1 << 16;
        self.check_writable(blocks)?;
        let uncorrectable = &mut self.namespace.uncorrectable;
        if uncorrectable.ranges() >= RANGES_MAX {
            let cause =
                format!("the namespace already has {RANGES_MAX} ranges of uncorrectable blocks, which is the limit");
            return Err(Failure::new(Status::INTERNAL_ERROR, cause));
        }
        uncorrectable.insert(blocks.first, blocks.count);
        assert_eq!(uncorrectable.first_in(blocks.first, blocks.count), Some(blocks.first), "none of them can be read");
        self.changes_state = true;
        Ok(Execution::DONE)
    }
}

/// Failure of a command whose blocks could not be read. `done_bytes` precede the piece at which the
/// storage failed.
pub(super) fn unread(
    media_errors: &mut u64,
    blocks: BlockRange,
    block_bytes_log2: u8,
    done_bytes: u64,
    piece: ByteRange,
    error: &MediaError,
) -> Failure {
    let before = done_bytes + error.offset.saturating_sub(piece.offset);
    let lba = blocks.first + (before >> block_bytes_log2);
    let failure = media_failure(media_errors, Status::UNRECOVERED_READ_ERROR, error);
    failure.lba(lba.min(blocks.first + blocks.count - 1))
}

pub(super) fn device_write(piece: ByteRange, page_bytes: u64, placement: Placement) -> WriteRequest {
    let (first, pages) = pages_of(piece, page_bytes);
    WriteRequest { first, pages, host_bytes: piece.bytes, placement }
}

/// Splits a range into a partial first page, whole pages and a partial last page. Empty parts are
/// left out.
pub(super) fn split_by_page(piece: ByteRange, page_bytes: u64) -> impl Iterator<Item = ByteRange> {
    let end = piece.offset + piece.bytes;
    let whole_first = piece.offset.next_multiple_of(page_bytes).min(end);
    let whole_end = (end / page_bytes * page_bytes).max(whole_first);
    [(piece.offset, whole_first), (whole_first, whole_end), (whole_end, end)]
        .into_iter()
        .filter(|(from, to)| from < to)
        .map(|(from, to)| ByteRange { offset: from, bytes: to - from })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_split_at_pages() {
        let split = |offset, bytes| -> Vec<(u64, u64)> {
            split_by_page(ByteRange { offset, bytes }, 4096).map(|part| (part.offset, part.bytes)).collect()
        };
        assert_eq!(split(0, 8192), [(0, 8192)]);
        assert_eq!(split(512, 512), [(512, 512)]);
        assert_eq!(split(512, 4096), [(512, 3584), (4096, 512)]);
        assert_eq!(split(3584, 512 + 4096 + 512), [(3584, 512), (4096, 4096), (8192, 512)]);
    }
}
