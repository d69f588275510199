//! Dataset Management and Copy, whose data is a list of ranges, and the split of commands without
//! data into parts.

use nvme_spec::Status;
use nvme_spec::command::{Range, SourceRange0};
use zerocopy::FromBytes;

use super::context::IoContext;
use super::read_write::split_by_page;
use super::{BlockRange, IoProgress};
use crate::completion::{CommandResult, Execution};
use crate::error::{Failure, Parameter};
use crate::fdp::WriteDirective;
use crate::media::ByteRange;
use crate::transfer::TRANSFER_BYTES_MAX;

/// Source ranges of one Copy command (MSRC + 1).
pub const COPY_RANGES_MAX: u64 = 128;

/// Most bytes that a command deallocates or zeroes in one part. A multiple of every page size.
const AT_ONCE_BYTES: u64 = 16 << 20;
const _: () = assert!(AT_ONCE_BYTES.is_power_of_two(), "the sizes of pages and blocks divide a part");

/// Most logical blocks of one Copy command (MCL) for a block size. The limit equals that of one
/// transfer.
pub fn copy_blocks_max(block_bytes: u64) -> u64 {
    TRANSFER_BYTES_MAX / block_bytes
}

pub(super) struct CopyDestination {
    pub first: u64,
    pub directive: WriteDirective,
    pub force_unit_access: bool,
}

pub(super) fn source_range_bytes(descriptor_format: u8) -> Result<u64, Failure> {
    match descriptor_format {
        0 => Ok(size_of::<SourceRange0>() as u64),
        _ => {
            let cause = format!("copy descriptor format {descriptor_format} is not supported. The only one is 0");
            Err(Failure::invalid_field(Parameter::dword(12, 8), cause))
        }
    }
}

/// Ranges of a Dataset Management command. Empty for malformed data.
pub(super) fn of_dataset(data: &[u8]) -> Vec<BlockRange> {
    let ranges = <[Range]>::ref_from_bytes(data).unwrap_or_default();
    ranges.iter().map(deallocated).collect()
}

/// Source and destination ranges of a Copy command. Malformed data gives no sources.
pub(super) fn of_copy(destination: u64, data: &[u8]) -> Vec<BlockRange> {
    let sources = <[SourceRange0]>::ref_from_bytes(data).unwrap_or_default();
    let mut ranges: Vec<BlockRange> = sources.iter().map(copied).collect();
    let count = ranges.iter().map(|range| range.count).sum();
    ranges.push(BlockRange { first: destination, count });
    ranges
}

fn deallocated(range: &Range) -> BlockRange {
    BlockRange { first: range.slba.get(), count: u64::from(range.nlb.get()) }
}

fn copied(source: &SourceRange0) -> BlockRange {
    BlockRange { first: source.slba.get(), count: u64::from(source.nlb.get()) + 1 }
}

impl IoContext<'_> {
    /// End of the part that begins with a logical block. Parts end at page boundaries, so that
    /// their sum equals the whole command.
    pub(super) fn end_of_part(&self, first: u64) -> u64 {
        let part_blocks = AT_ONCE_BYTES >> self.namespace.block_bytes_log2();
        let end = (first / part_blocks + 1) * part_blocks;
        assert!(first < end && end - first <= part_blocks, "a part is bounded, and never empty");
        end
    }

    pub(super) fn manage_dataset_part(
        &mut self,
        deallocate: bool,
        data: &[u8],
        progress: &mut IoProgress,
    ) -> CommandResult {
        let ranges = <[Range]>::ref_from_bytes(data).expect("the length was checked");
        for range in ranges {
            self.check_writable(deallocated(range))?;
        }
        if !deallocate {
            return Ok(Execution::DONE);
        }
        let total = ranges.iter().map(|range| deallocated(range).count).sum();
        let (mut before, mut left) = (0, AT_ONCE_BYTES >> self.namespace.block_bytes_log2());
        let mut whole = progress.blocks_done == total;
        for BlockRange { first, count } in ranges.iter().map(deallocated) {
            while progress.blocks_done < before + count && left > 0 {
                let at = first + (progress.blocks_done - before);
                let part = self.end_of_part(at).min(first + count) - at;
                self.deallocate(at, part)?;
                whole = progress.advance(part, total);
                left = left.saturating_sub(part);
            }
            before += count;
        }
        assert_eq!(whole, progress.blocks_done == total, "the command is done when all {total} blocks are");
        assert!(
            whole || left == 0,
            "a part ends with {left} blocks left before its limit, but {} of {total} blocks are done",
            progress.blocks_done
        );
        Ok(Execution::DONE.done_if(whole))
    }

    /// Deallocates the whole pages of a range. Partly covered pages stay unchanged.
    fn deallocate(&mut self, first: u64, count: u64) -> Result<(), Failure> {
        let page_bytes = self.page_bytes;
        let located = self.namespace.locate(first, count, page_bytes);
        for piece in located.collect::<Vec<ByteRange>>() {
            for part in split_by_page(piece, page_bytes).filter(|part| part.is_whole_pages(page_bytes)) {
                self.discard_blocks(part)?;
                self.deallocate_pages(part);
            }
        }
        let per_page = page_bytes >> self.namespace.block_bytes_log2();
        let whole_first = first.next_multiple_of(per_page);
        let whole_end = (first + count) / per_page * per_page;
        let whole = BlockRange { first: whole_first, count: whole_end.saturating_sub(whole_first) };
        self.changes_state |= self.forget_uncorrectable(whole);
        Ok(())
    }

    pub(super) fn copy(&mut self, destination: &CopyDestination, data: &[u8]) -> CommandResult {
        let sources = <[SourceRange0]>::ref_from_bytes(data).expect("the length was checked");
        let ranges = sources.len() as u64;
        let total: u64 = sources.iter().map(|source| copied(source).count).sum();
        let limit = copy_blocks_max(self.namespace.block_bytes());
        if ranges > COPY_RANGES_MAX || total > limit {
            let cause = format!(
                "the copy has {ranges} source ranges with {total} logical blocks. The limits are {COPY_RANGES_MAX} \
                 (MSRC) and {limit} (MCL)"
            );
            return Err(Failure::new(Status::COMMAND_SIZE_LIMIT_EXCEEDED, cause));
        }
        let target = BlockRange { first: destination.first, count: total };
        self.check_writable(target)?;
        for source in sources.iter().map(copied) {
            self.check_readable(source)?;
            let apart = source.first + source.count <= target.first || target.first + target.count <= source.first;
            if !apart {
                let cause =
                    format!("the source range at {} overlaps the destination at {}", source.first, target.first);
                return Err(Failure::new(Status::OVERLAPPING_IO_RANGE, cause));
            }
        }
        let placement = self.resolve(destination.directive)?;
        let mut scratch = std::mem::take(self.scratch);
        let mut to = target.first;
        let copied = sources.iter().map(copied).try_for_each(|source| {
            let part = BlockRange { first: to, count: source.count };
            to += source.count;
            self.read_into(source, &mut scratch)?;
            self.write_from(part, placement, &scratch)
        });
        *self.scratch = scratch;
        copied?;
        assert_eq!(to, target.first + target.count, "all of the destination was written");
        Ok(Execution::written(destination.force_unit_access))
    }
}
