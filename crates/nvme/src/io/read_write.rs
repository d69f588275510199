//! Read, Write, Compare, Verify, Write Zeroes, Write Uncorrectable.
//!
//! Buffers hold data; for a format with metadata, all the data and then all the metadata (see `metadata`).

use nvme_spec::Status;
use prefetch::Room;
use ssd::{Lpn, Placement, Write};

use super::{Blocks, Progress, media_failure, metadata, unreadable};
use crate::completion::Success;
use crate::error::Failure;
use crate::fault::cache::CachedMedia;
use crate::fdp::WriteDirective;
use crate::media::{ByteRange, Media, MediaError};
use crate::subsystem::Subsystem;
use crate::transfer::TRANSFER_BYTES_MAX;

impl Subsystem {
    pub(super) fn read(&mut self, nsid: u32, blocks: Blocks, data: &mut Vec<u8>) -> Result<Success, Failure> {
        self.check_readable(nsid, blocks)?;
        self.read_for_host(nsid, blocks, data)?;
        self.note_read(nsid, blocks);
        Ok(Success::DONE)
    }

    /// Counts a command that told the host data. Metadata does not count.
    fn note_read(&mut self, nsid: u32, blocks: Blocks) {
        self.state.smart.read_commands += 1;
        self.state.smart.host_bytes_read += blocks.count << self.namespace(nsid).block_bytes_log2();
    }

    /// The same, of a format without metadata, in pieces that `take` is given.
    pub(super) fn read_pieces(
        &mut self,
        nsid: u32,
        blocks: Blocks,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<Success, Failure> {
        self.check_readable(nsid, blocks)?;
        let mut room = std::mem::take(&mut self.scratch);
        let mut taken = Ok(());
        let read = self.read_each(nsid, blocks, |media, piece| {
            media.lend(piece.offset, piece.bytes, &mut room, &mut |part| {
                if taken.is_ok() {
                    taken = take(part);
                }
            })
        });
        self.scratch = room;
        read.and(taken)?;
        self.note_read(nsid, blocks);
        Ok(Success::DONE)
    }

    /// Reads blocks that were found readable.
    pub(super) fn read_into(&mut self, nsid: u32, blocks: Blocks, data: &mut Vec<u8>) -> Result<(), Failure> {
        let namespace = self.namespace(nsid);
        let metadata_bytes = (blocks.count * namespace.metadata_bytes()) as usize;
        let data_bytes = (blocks.count << namespace.block_bytes_log2()) as usize;
        data.resize(data_bytes + metadata_bytes, 0);
        let (mut rest, metadata) = data.split_at_mut(data_bytes);
        self.read_each(nsid, blocks, |media, piece| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(piece.bytes as usize);
            rest = behind;
            media.read(piece.offset, part)
        })?;
        match metadata_bytes {
            0 => Ok(()),
            _ => self.read_metadata(nsid, blocks, metadata),
        }
    }

    /// Has the storage read each piece of the data of blocks, and the device.
    fn read_each(
        &mut self,
        nsid: u32,
        blocks: Blocks,
        mut read: impl FnMut(&mut CachedMedia, ByteRange) -> Result<(), MediaError>,
    ) -> Result<(), Failure> {
        let page_bytes = self.page_bytes();
        let namespace = self.state.namespaces[nsid as usize - 1]
            .as_ref()
            .expect("an active namespace");
        let mut done_bytes = 0;
        for piece in namespace.locate(blocks.first, blocks.count, page_bytes) {
            read(&mut self.media, piece).map_err(|error| {
                let media_errors = &mut self.state.smart.media_errors;
                unread(
                    media_errors,
                    blocks,
                    namespace.block_bytes_log2(),
                    done_bytes,
                    piece,
                    &error,
                )
            })?;
            done_bytes += piece.bytes;
            let (first, pages) = pages_of(piece, page_bytes);
            let done = self.device.read(self.now, first, pages);
            self.done_at = self.done_at.max(done.expect("namespaces lie inside the device").at);
        }
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        nsid: u32,
        blocks: Blocks,
        directive: WriteDirective,
        force_unit_access: bool,
        data: &[u8],
    ) -> Result<Success, Failure> {
        self.check_writable(nsid, blocks)?;
        let namespace = self.namespace(nsid);
        let apart = namespace
            .extended_metadata
            .then(|| metadata::taken_apart(data, namespace));
        let placement = self.resolve(nsid, directive)?;
        self.write_from(nsid, blocks, placement, apart.as_deref().unwrap_or(data))?;
        Ok(self.note_write(nsid, blocks, force_unit_access))
    }

    /// The same, of a format without metadata, in pieces that `give` puts into the storage. Where it fails some may have been written.
    pub(super) fn write_pieces(
        &mut self,
        nsid: u32,
        blocks: Blocks,
        directive: WriteDirective,
        force_unit_access: bool,
        give: &mut dyn FnMut(Room<'_>) -> Result<(), Failure>,
    ) -> Result<Success, Failure> {
        self.check_writable(nsid, blocks)?;
        let placement = self.resolve(nsid, directive)?;
        let mut room = std::mem::take(&mut self.scratch);
        let written = self.write_each(nsid, blocks, placement, |media, piece| {
            let mut given = Ok(());
            media.fill(piece.offset, piece.bytes, &mut room, &mut |part| {
                given = give(part);
                given.is_ok()
            })?;
            Ok(given)
        });
        self.scratch = room;
        self.media.settle();
        written?;
        self.written(nsid, blocks)?;
        Ok(self.note_write(nsid, blocks, force_unit_access))
    }

    /// Counts a command that wrote.
    fn note_write(&mut self, nsid: u32, blocks: Blocks, force_unit_access: bool) -> Success {
        let block_bytes = 1 << self.namespace(nsid).block_bytes_log2();
        let is_unaligned = !((blocks.first | blocks.count) * block_bytes).is_multiple_of(self.page_bytes());
        self.state.smart.write_commands += 1;
        self.state.smart.unaligned_writes += u64::from(is_unaligned);
        Success::after(force_unit_access || !self.write_cache_enabled())
    }

    /// Writes blocks that were found writable.
    pub(super) fn write_from(
        &mut self,
        nsid: u32,
        blocks: Blocks,
        placement: Placement,
        data: &[u8],
    ) -> Result<(), Failure> {
        let data_bytes = blocks.count << self.namespace(nsid).block_bytes_log2();
        let (mut rest, metadata) = data.split_at(data_bytes as usize);
        self.write_each(nsid, blocks, placement, |media, piece| {
            let (part, behind) = rest.split_at(piece.bytes as usize);
            rest = behind;
            media.write(piece.offset, part).map(Ok)
        })?;
        if !metadata.is_empty() {
            self.write_metadata(nsid, blocks, metadata)?;
        }
        self.written(nsid, blocks)
    }

    /// Has the storage write each piece of the data of blocks, and the device. `write` says too whether the data came.
    fn write_each(
        &mut self,
        nsid: u32,
        blocks: Blocks,
        placement: Placement,
        mut write: impl FnMut(&mut CachedMedia, ByteRange) -> Result<Result<(), Failure>, MediaError>,
    ) -> Result<(), Failure> {
        let page_bytes = self.page_bytes();
        let left_before = self.pages_before_writing(placement.handle);
        let mut pages = 0;
        let namespace = self.state.namespaces[nsid as usize - 1]
            .as_mut()
            .expect("an active namespace");
        for piece in namespace.locate(blocks.first, blocks.count, page_bytes) {
            let written = write(&mut self.media, piece);
            written
                .map_err(|error| media_failure(&mut self.state.smart.media_errors, Status::WRITE_FAULT, &error))??;
            let write = device_write(piece, page_bytes, placement);
            pages += u64::from(write.pages);
            let done = self.device.write(self.now, &write);
            self.done_at = self.done_at.max(done.expect("namespaces lie inside the device").at);
        }
        let data_bytes = blocks.count << namespace.block_bytes_log2();
        namespace.host_bytes_written += data_bytes;
        self.state.smart.host_bytes_written += data_bytes;
        self.note_pages_written(placement, pages, left_before);
        Ok(())
    }

    /// What any kind of writing changes beside the data. It is stored: what was said of the old data must not come back
    /// after a power loss.
    fn written(&mut self, nsid: u32, blocks: Blocks) -> Result<(), Failure> {
        let was_uncorrectable = self.forget_uncorrectable(nsid, blocks);
        let was_sanitized = self.state.sanitize.note_write();
        if was_uncorrectable || was_sanitized {
            self.store_state()?;
        }
        Ok(())
    }

    /// Makes blocks readable that Write Uncorrectable made unreadable; returns whether there was one.
    pub(super) fn forget_uncorrectable(&mut self, nsid: u32, blocks: Blocks) -> bool {
        let uncorrectable = &mut self.namespace_mut(nsid).uncorrectable;
        let there_is = !uncorrectable.is_empty() && uncorrectable.first_in(blocks.first, blocks.count).is_some();
        if there_is {
            uncorrectable.remove(blocks.first, blocks.count);
        }
        there_is
    }

    pub(super) fn compare(&mut self, nsid: u32, blocks: Blocks, data: &[u8]) -> Result<Success, Failure> {
        self.check_readable(nsid, blocks)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let read = self.read_for_host(nsid, blocks, &mut scratch);
        let equal = scratch == data;
        self.scratch = scratch;
        read?;
        self.note_read(nsid, blocks);
        if !equal {
            let cause = "the data differs from what is stored";
            return Err(Failure::new(Status::COMPARE_FAILURE, cause).lba(blocks.first));
        }
        Ok(Success::DONE)
    }

    /// Reads without telling the data, as much as the largest transfer has. Whether all of it is done.
    pub(super) fn verify_part(&mut self, nsid: u32, blocks: Blocks, done: &mut u64) -> Result<bool, Failure> {
        self.check_readable(nsid, blocks)?;
        let block_bytes_log2 = self.namespace(nsid).block_bytes_log2();
        let part = Blocks {
            first: blocks.first + *done,
            count: (TRANSFER_BYTES_MAX >> block_bytes_log2).min(blocks.count - *done),
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        let read = self.read_into(nsid, part, &mut scratch);
        self.scratch = scratch;
        read?;
        *done += part.count;
        assert!(*done <= blocks.count, "parts are the command, no more");
        if *done < blocks.count {
            return Ok(false);
        }
        // Blocks that were verified count as read, the command does not (SMART / Health Information log page).
        self.state.smart.host_bytes_read += blocks.count << block_bytes_log2;
        Ok(true)
    }

    /// Zeroes as much as may be done at once. Whether all of it is done.
    pub(super) fn write_zeroes_part(
        &mut self,
        nsid: u32,
        blocks: Blocks,
        directive: WriteDirective,
        deallocate: bool,
        progress: &mut Progress,
    ) -> Result<bool, Failure> {
        self.check_writable(nsid, blocks)?;
        // One command goes to one place, as long as there is that place.
        let placement = match progress.placement.filter(|decided| self.has_place(nsid, *decided)) {
            Some(decided) => decided,
            None => self.resolve(nsid, directive)?,
        };
        progress.placement = Some(placement);
        let first = blocks.first + progress.blocks_done;
        let end = blocks.first + blocks.count;
        let part = Blocks {
            first,
            count: self.end_of_part(nsid, first).min(end) - first,
        };
        self.write_zeroes(nsid, part, placement, deallocate)?;
        progress.blocks_done += part.count;
        assert!(progress.blocks_done <= blocks.count, "parts are the command, no more");
        Ok(progress.blocks_done == blocks.count)
    }

    /// Whether a namespace has a handle, and the device the reclaim group.
    fn has_place(&self, nsid: u32, placement: Placement) -> bool {
        let handles = &self.namespace(nsid).placement_handles;
        handles.contains(&placement.handle) && placement.group.0 < self.device.layout().groups
    }

    fn write_zeroes(
        &mut self,
        nsid: u32,
        blocks: Blocks,
        placement: Placement,
        deallocate: bool,
    ) -> Result<(), Failure> {
        let page_bytes = self.page_bytes();
        let left_before = self.pages_before_writing(placement.handle);
        let mut pages = 0;
        let pieces: Vec<ByteRange> = self
            .namespace(nsid)
            .locate(blocks.first, blocks.count, page_bytes)
            .collect();
        for piece in pieces {
            self.discard_blocks(nsid, piece)?;
            // What covers only a part of a page is written: the rest of the page stays.
            for part in split_by_page(piece, page_bytes) {
                let write = device_write(part, page_bytes, placement);
                let deallocates = deallocate && part.is_whole_pages(page_bytes);
                let done = self.device.write_zeroes(self.now, &write, deallocates);
                self.note_done(done.expect("namespaces lie inside the device"));
                pages += if deallocates { 0 } else { u64::from(write.pages) };
            }
        }
        self.note_pages_written(placement, pages, left_before);
        self.written(nsid, blocks)
    }

    /// Makes a range read as zeroes, without the device's knowing.
    pub(super) fn discard(&mut self, piece: ByteRange) -> Result<(), Failure> {
        let discarded = self.media.discard(piece.offset, piece.bytes);
        discarded.map_err(|error| media_failure(&mut self.state.smart.media_errors, Status::WRITE_FAULT, &error))
    }

    pub(super) fn write_uncorrectable(&mut self, nsid: u32, blocks: Blocks) -> Result<Success, Failure> {
        /// Ranges that the state keeps; a host that marks more is refused rather than given all memory.
        const RANGES_MAX: usize = 1 << 16;
        self.check_writable(nsid, blocks)?;
        let uncorrectable = &mut self.namespace_mut(nsid).uncorrectable;
        if uncorrectable.ranges() >= RANGES_MAX {
            let cause = format!("{RANGES_MAX} ranges of uncorrectable blocks are the limit");
            return Err(Failure::new(Status::INTERNAL_ERROR, cause));
        }
        uncorrectable.insert(blocks.first, blocks.count);
        self.store_state()?;
        Ok(Success::DONE)
    }
}

/// The failure of a command whose blocks could not be read, of which `done_bytes` are before the piece that the storage failed at.
pub(super) fn unread(
    media_errors: &mut u64,
    blocks: Blocks,
    block_bytes_log2: u8,
    done_bytes: u64,
    piece: ByteRange,
    error: &MediaError,
) -> Failure {
    let before = done_bytes + error.offset.saturating_sub(piece.offset);
    let lba = blocks.first + (before >> block_bytes_log2);
    unreadable(media_errors, error).lba(lba.min(blocks.first + blocks.count - 1))
}

/// The pages that a byte range touches: the first one, and how many.
fn pages_of(piece: ByteRange, page_bytes: u64) -> (Lpn, u32) {
    let first = piece.offset / page_bytes;
    let end = (piece.offset + piece.bytes).div_ceil(page_bytes);
    (Lpn(first as u32), (end - first) as u32)
}

/// The device's view of a byte range that is written.
pub(super) fn device_write(piece: ByteRange, page_bytes: u64, placement: Placement) -> Write {
    let (first, pages) = pages_of(piece, page_bytes);
    Write {
        first,
        pages,
        host_bytes: piece.bytes,
        placement,
    }
}

/// Divides a range into a part of a first page, whole pages, and a part of a last page; empty ones are left out.
pub(super) fn split_by_page(piece: ByteRange, page_bytes: u64) -> impl Iterator<Item = ByteRange> {
    let end = piece.offset + piece.bytes;
    let whole_first = piece.offset.next_multiple_of(page_bytes).min(end);
    let whole_end = (end / page_bytes * page_bytes).max(whole_first);
    [(piece.offset, whole_first), (whole_first, whole_end), (whole_end, end)]
        .into_iter()
        .filter(|(from, to)| from < to)
        .map(|(from, to)| ByteRange {
            offset: from,
            bytes: to - from,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_split_at_pages() {
        let split = |offset, bytes| -> Vec<(u64, u64)> {
            split_by_page(ByteRange { offset, bytes }, 4096)
                .map(|part| (part.offset, part.bytes))
                .collect()
        };
        assert_eq!(split(0, 8192), [(0, 8192)]);
        assert_eq!(split(512, 512), [(512, 512)]);
        assert_eq!(split(512, 4096), [(512, 3584), (4096, 512)]);
        assert_eq!(split(3584, 512 + 4096 + 512), [(3584, 512), (4096, 4096), (8192, 512)]);
    }
}
