//! Writes that update stripes where they lie, as Linux md does for RAID-5 and RAID-6.
//!
//! md works on pages of 4 KiB at the same offset of all chunks of a row. The pages of a row that a
//! request touches in the same columns are a segment here, and are written alike:
//!
//! ```text
//! touched columns -> read-modify-write: old data of the touched columns, old parity
//!                    reconstruction:    data of the columns that are not overwritten
//! reads (phase 0) -> new data, parity over the touched pages (phase 1)
//! ```
//!
//! A row without a working parity chunk needs no reads.

use std::ops::Range;

use workload::PlacementIndex;

use crate::PAGE_BYTES;
use crate::geometry::ChunkPart;
use crate::member_io::{IoCause, IoList};
use crate::members::Members;
use crate::settings::WritePolicy;

/// Pages of a row that a request touches in the same columns, in bytes within the chunk.
struct Segment {
    bytes: Range<u64>,
    /// Touched columns, as bits.
    touched: u64,
    /// Columns whose pages are overwritten completely, as bits.
    overwritten: u64,
}

/// Adds the I/O of a write.
pub(crate) fn write(
    members: &mut Members,
    policy: WritePolicy,
    list: &mut IoList<'_>,
    bytes: Range<u64>,
    placement: Option<PlacementIndex>,
) {
    let parts: Vec<ChunkPart> = members.geometry.parts(bytes).collect();
    if members.geometry.parity == 0 {
        for part in &parts {
            members.write(list, (part.row, part.column, &part.bytes), (IoCause::Data, 0), placement);
        }
        return;
    }
    for of_row in parts.chunk_by(|one, next| one.row == next.row) {
        let row = of_row[0].row;
        for segment in segments(of_row) {
            write_segment(members, policy, list, row, &segment, placement);
        }
    }
}

/// Divides the parts of a row where the touched or the overwritten columns change.
fn segments(parts: &[ChunkPart]) -> Vec<Segment> {
    let down = |bytes: u64| bytes / PAGE_BYTES * PAGE_BYTES;
    let up = |bytes: u64| bytes.div_ceil(PAGE_BYTES) * PAGE_BYTES;
    let touched = |part: &ChunkPart| down(part.bytes.start)..up(part.bytes.end);
    let overwritten = |part: &ChunkPart| up(part.bytes.start)..down(part.bytes.end);
    let mut ends: Vec<u64> = parts
        .iter()
        .flat_map(|part| [touched(part).start, touched(part).end, overwritten(part).start, overwritten(part).end])
        .collect();
    ends.sort_unstable();
    ends.dedup();
    let columns = |bytes: &Range<u64>, of: &dyn Fn(&ChunkPart) -> Range<u64>| {
        let within = parts.iter().filter(|part| of(part).start <= bytes.start && bytes.end <= of(part).end);
        within.fold(0, |bits, part| bits | 1 << part.column)
    };
    let segment = |ends: &[u64]| {
        let bytes = ends[0]..ends[1];
        Segment { touched: columns(&bytes, &touched), overwritten: columns(&bytes, &overwritten), bytes }
    };
    ends.windows(2).map(segment).filter(|segment| segment.touched != 0).collect()
}

fn write_segment(
    members: &mut Members,
    policy: WritePolicy,
    list: &mut IoList<'_>,
    row: u64,
    segment: &Segment,
    placement: Option<PlacementIndex>,
) {
    let geometry = &members.geometry;
    let (data, all) = (geometry.data, geometry.data + geometry.parity);
    let data_columns = (1_u64 << data) - 1;
    let parity_alive = members.alive_columns(row) & !data_columns;
    if parity_alive != 0 {
        let modify = members.columns_to_read(row, segment.touched | parity_alive);
        let reconstruct = members.columns_to_read(row, data_columns & !segment.overwritten);
        let read = match policy {
            _ if reconstruct == 0 => 0,
            WritePolicy::ReadModifyWrite => modify,
            WritePolicy::Reconstruct => reconstruct,
            WritePolicy::Cheaper if modify.count_ones() < reconstruct.count_ones() => modify,
            WritePolicy::Cheaper => reconstruct,
            WritePolicy::FullStripe => unreachable!("the log-structured layer updates no stripe"),
        };
        members.read_columns(list, (row, read), &segment.bytes, (IoCause::ReadModifyWrite, 0));
    }
    for column in (0..all).filter(|column| *column >= data || segment.touched >> column & 1 == 1) {
        let cause = if column >= data { IoCause::Parity } else { IoCause::Data };
        members.write(list, (row, column, &segment.bytes), (cause, 1), placement);
    }
}

/// Adds the I/O of a deallocation. With parity, only whole stripes are deallocated, as by md.
pub(crate) fn trim(members: &mut Members, list: &mut IoList<'_>, bytes: Range<u64>) {
    if members.geometry.parity == 0 {
        for part in members.geometry.parts(bytes) {
            members.trim(list, (part.row, part.column, &part.bytes), IoCause::Data);
        }
        return;
    }
    let row_bytes = members.geometry.row_bytes();
    for row in bytes.start.div_ceil(row_bytes)..bytes.end / row_bytes {
        members.trim_row(list, row, IoCause::Data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_over_two_chunks_has_three_segments() {
        let part = |column, bytes| ChunkPart { row: 0, column, bytes };
        let found = segments(&[part(0, 5000..65536), part(1, 0..12288)]);
        let found: Vec<(Range<u64>, u64, u64)> =
            found.into_iter().map(|segment| (segment.bytes, segment.touched, segment.overwritten)).collect();
        // The page at 4096 of the first chunk is written partly.
        let expected =
            [(0..4096, 0b10, 0b10), (4096..8192, 0b11, 0b10), (8192..12288, 0b11, 0b11), (12288..65536, 1, 1)];
        assert_eq!(found, expected);
    }
}
