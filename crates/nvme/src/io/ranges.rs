//! Dataset Management and Copy: commands whose data is a list of ranges; and how commands without data are cut.

use nvme_spec::Status;
use nvme_spec::command::{Range, SourceRange0};
use ssd::Lpn;
use zerocopy::FromBytes;

use super::Blocks;
use super::read_write::split_by_page;
use crate::completion::Success;
use crate::error::{Failure, Parameter};
use crate::fdp::WriteDirective;
use crate::subsystem::Subsystem;
use crate::transfer::TRANSFER_BYTES_MAX;

/// Source ranges of one Copy command (MSRC + 1).
pub const COPY_RANGES_MAX: u64 = 128;

/// What a command deallocates or zeroes before others have the drive; a multiple of every page size.
const AT_ONCE_BYTES: u64 = 16 << 20;

/// Logical blocks of one Copy command (MCL) for a block size: as many bytes as a command may move.
pub fn copy_blocks_max(block_bytes: u64) -> u64 {
    TRANSFER_BYTES_MAX / block_bytes
}

/// Where Copy puts the blocks.
pub(super) struct Destination {
    pub first: u64,
    pub directive: WriteDirective,
    pub force_unit_access: bool,
}

/// Bytes of a source range entry.
pub(super) fn source_range_bytes(descriptor_format: u8) -> Result<u64, Failure> {
    match descriptor_format {
        0 => Ok(size_of::<SourceRange0>() as u64),
        _ => {
            let cause = format!("copy descriptor format {descriptor_format} is not supported, only 0");
            Err(Failure::invalid_field(Parameter::dword(12, 8), cause))
        }
    }
}

/// The ranges of a Dataset Management command; none if its data is not what it should be.
pub(super) fn of_dataset(data: &[u8]) -> Vec<Blocks> {
    let ranges = <[Range]>::ref_from_bytes(data).unwrap_or_default();
    ranges.iter().map(deallocated).collect()
}

/// Where a Copy command reads and writes, likewise.
pub(super) fn of_copy(destination: u64, data: &[u8]) -> Vec<Blocks> {
    let sources = <[SourceRange0]>::ref_from_bytes(data).unwrap_or_default();
    let mut ranges: Vec<Blocks> = sources.iter().map(copied).collect();
    let count = ranges.iter().map(|range| range.count).sum();
    ranges.push(Blocks {
        first: destination,
        count,
    });
    ranges
}

fn deallocated(range: &Range) -> Blocks {
    Blocks {
        first: range.slba.get(),
        count: u64::from(range.nlb.get()),
    }
}

fn copied(source: &SourceRange0) -> Blocks {
    Blocks {
        first: source.slba.get(),
        count: u64::from(source.nlb.get()) + 1,
    }
}

impl Subsystem {
    /// Where the part of a command ends that begins with a logical block: where pages begin, so that the parts do what
    /// the whole would.
    pub(super) fn end_of_part(&self, nsid: u32, first: u64) -> u64 {
        let part_blocks = AT_ONCE_BYTES >> self.namespace(nsid).block_bytes_log2();
        (first / part_blocks + 1) * part_blocks
    }

    /// Deallocates as much as may be done at once. Whether all of it is done.
    pub(super) fn manage_dataset_part(
        &mut self,
        nsid: u32,
        deallocate: bool,
        data: &[u8],
        done: &mut u64,
    ) -> Result<bool, Failure> {
        let ranges = <[Range]>::ref_from_bytes(data).expect("the length was checked");
        for range in ranges {
            self.check_writable(nsid, deallocated(range))?;
        }
        if !deallocate {
            return Ok(true);
        }
        let (mut before, mut left) = (0, AT_ONCE_BYTES >> self.namespace(nsid).block_bytes_log2());
        let (mut result, mut forgotten) = (Ok(()), false);
        for Blocks { first, count } in ranges.iter().map(deallocated) {
            while *done < before + count && left > 0 && result.is_ok() {
                let at = first + (*done - before);
                let part = self.end_of_part(nsid, at).min(first + count) - at;
                result = self.deallocate(nsid, at, part).map(|changed| forgotten |= changed);
                *done += part;
                left = left.saturating_sub(part);
            }
            before += count;
        }
        // Once for all ranges: it writes the whole state.
        if forgotten {
            result = self.store_state().and(result);
        }
        result?;
        assert!(*done <= before, "parts are the command, no more");
        Ok(*done == before)
    }

    /// Deallocates the whole pages of a range; a page that is covered in part stays as it is. Returns
    /// whether blocks were uncorrectable and are not any more, which is to be stored.
    fn deallocate(&mut self, nsid: u32, first: u64, count: u64) -> Result<bool, Failure> {
        let page_bytes = self.page_bytes();
        let pieces: Vec<_> = self.namespace(nsid).locate(first, count, page_bytes).collect();
        for piece in pieces {
            for part in split_by_page(piece, page_bytes).filter(|part| part.is_whole_pages(page_bytes)) {
                self.discard_blocks(nsid, part)?;
                let (page, pages) = (Lpn((part.offset / page_bytes) as u32), (part.bytes / page_bytes) as u32);
                let done = self.device.deallocate(self.now, page, pages);
                self.note_done(done.expect("namespaces lie inside the device"));
            }
        }
        let block_bytes_log2 = self.namespace(nsid).block_bytes_log2();
        let per_page = page_bytes >> block_bytes_log2;
        let whole_first = first.next_multiple_of(per_page);
        let whole_end = (first + count) / per_page * per_page;
        let whole = Blocks {
            first: whole_first,
            count: whole_end.saturating_sub(whole_first),
        };
        Ok(self.forget_uncorrectable(nsid, whole))
    }

    pub(super) fn copy(&mut self, nsid: u32, destination: &Destination, data: &[u8]) -> Result<Success, Failure> {
        let sources = <[SourceRange0]>::ref_from_bytes(data).expect("the length was checked");
        let ranges = sources.len() as u64;
        let total: u64 = sources.iter().map(|source| copied(source).count).sum();
        let limit = copy_blocks_max(self.namespace(nsid).block_bytes());
        if ranges > COPY_RANGES_MAX || total > limit {
            let cause = format!(
                "{ranges} source ranges with {total} logical blocks; the limits are {COPY_RANGES_MAX} (MSRC) and {limit} (MCL)"
            );
            return Err(Failure::new(Status::COMMAND_SIZE_LIMIT_EXCEEDED, cause));
        }
        let target = Blocks {
            first: destination.first,
            count: total,
        };
        self.check_writable(nsid, target)?;
        for source in sources {
            let source = copied(source);
            self.check_readable(nsid, source)?;
            let apart = source.first + source.count <= target.first || target.first + target.count <= source.first;
            if !apart {
                let cause = format!(
                    "source range at {} overlaps the destination at {}",
                    source.first, target.first
                );
                return Err(Failure::new(Status::OVERLAPPING_IO_RANGE, cause));
            }
        }
        let placement = self.resolve(nsid, destination.directive)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut to = target.first;
        let mut result = Ok(());
        for source in sources.iter().map(copied) {
            result = self.read_into(nsid, source, &mut scratch).and_then(|()| {
                let part = Blocks {
                    first: to,
                    count: source.count,
                };
                self.write_from(nsid, part, placement, &scratch)
            });
            if result.is_err() {
                break;
            }
            to += source.count;
        }
        self.scratch = scratch;
        result?;
        Ok(Success::after(
            destination.force_unit_access || !self.write_cache_enabled(),
        ))
    }
}
