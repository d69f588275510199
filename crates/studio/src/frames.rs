//! Frames: binary updates about a lane for a page.
//!
//! ```text
//! head (88 bytes) | owners, 40 each | changed units, 16 each | events, 40 each | samples, 16 + 16 for each owner
//! ```
//!
//! Values are little endian, as JavaScript numbers. Counts that may exceed 32 bits are `f64`.
//! `web/src/wire/frame.ts` reads the same layout. Each frame is made for one page, from the state
//! that the page has. This module keeps no state.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;

pub const VERSION: u8 = 1;
/// Size of the head, bytes.
pub const HEAD_BYTES: usize = 88;
pub const OWNER_BYTES: usize = 40;
pub const UNIT_BYTES: usize = 16;
pub const EVENT_BYTES: usize = 40;
/// Flag that tells the page to drop all earlier units, samples and events.
pub const WHOLE: u8 = 1;
/// Owner index that means no owner.
pub const NO_OWNER: u8 = 255;
/// State of a unit that accepts no more pages.
pub const CLOSED: u8 = 3;
/// Unit number that means no unit.
pub const NO_UNIT: u32 = u32::MAX;

/// Phase of a lane, as a number in frames and as a name in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum LanePhase {
    #[default]
    Waiting = 0,
    /// The drive is filled before the workload starts.
    Filling = 1,
    Running = 2,
    Paused = 3,
    Ended = 4,
    Failed = 5,
}

/// Counters of an owner, which is a reclaim unit handle or the shared pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerRecord {
    pub host_bytes: u64,
    /// Pages that garbage collection copied out of its units.
    pub copied_out_pages: u64,
    /// Pages that garbage collection copied into its units.
    pub received_pages: u64,
    pub valid_pages: u64,
    pub units: u32,
    pub reclaimed: u64,
}

/// Reclaim unit, or a slice that is not the first of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitRecord {
    /// State: 0 free, 1 open for the host, 2 open for collection, 3 closed.
    pub state: u8,
    /// Index of the owner of its data, or [`NO_OWNER`].
    pub owner: u8,
    pub group: u16,
    pub valid_pages: u32,
    pub written_pages: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitEventRecord {
    /// Kind: 1 open, 2 close, 3 reclaim, 4 redirect.
    pub kind: u8,
    pub owner: u8,
    /// Reason. Of a close: 0 full, 1 host update, 2 room needed, 3 isolation changed. Of a reclaim:
    /// 0 background, 1 foreground, 2 forced.
    pub reason: u8,
    /// Owner of the copies of a reclaim.
    pub destination_owner: u8,
    pub unit: u32,
    pub pages: u32,
    /// Valid pages of a reclaim, or written pages of a close.
    pub valid_pages: u32,
    pub copied_pages: u32,
    /// Destination unit of a reclaim, or [`NO_UNIT`].
    pub destination: u32,
    pub host_bytes: u64,
    /// Virtual time of the event, nanoseconds.
    pub now_ns: u64,
}

/// Numbers in the head of a frame, without its row counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameHeader {
    pub phase: LanePhase,
    pub free_units: u32,
    /// Host bytes since the workload started.
    pub host_bytes: u64,
    /// Programmed bytes since the workload started.
    pub media_bytes: u64,
    /// Bytes written before the workload started.
    pub filled_bytes: u64,
    /// Virtual time, nanoseconds, 0 without timing.
    pub now_ns: u64,
    pub collections: u64,
    /// Number of requests taken from the workload.
    pub requests: u64,
    /// Recent speed of the engine, programmed pages per second.
    pub pages_per_second: f64,
}

pub struct FrameRows<'a> {
    pub owners: &'a [OwnerRecord],
    /// Changed units with their indices.
    pub units: &'a [(u32, UnitRecord)],
    /// New events, oldest first.
    pub events: &'a [UnitEventRecord],
    /// Number of events since the last frame that are omitted.
    pub events_left_out: u64,
    /// New samples. Each has host bytes and media bytes, then host bytes and copied-out pages of
    /// each owner.
    pub samples: &'a [f64],
}

/// Encodes a frame of lane `lane`. `is_whole` marks a complete frame instead of an update.
///
/// # Panics
/// The samples have another number of owners.
pub fn encode(lane: u8, is_whole: bool, head: &FrameHeader, rows: &FrameRows<'_>) -> Bytes {
    let sample_values = 2 + 2 * rows.owners.len();
    assert!(rows.samples.len().is_multiple_of(sample_values), "samples are whole");
    let samples = rows.samples.len() / sample_values;
    let bytes = HEAD_BYTES
        + rows.owners.len() * OWNER_BYTES
        + rows.units.len() * UNIT_BYTES
        + rows.events.len() * EVENT_BYTES
        + size_of_val(rows.samples);
    let mut out = BytesMut::with_capacity(bytes);
    out.put_u8(VERSION);
    out.put_u8(lane);
    out.put_u8(head.phase as u8);
    out.put_u8(if is_whole { WHOLE } else { 0 });
    for count in [rows.owners.len(), rows.units.len(), rows.events.len(), samples] {
        out.put_u32_le(u32::try_from(count).expect("a drive has fewer rows"));
    }
    out.put_u32_le(head.free_units);
    for number in [
        head.host_bytes,
        head.media_bytes,
        head.filled_bytes,
        head.now_ns,
        head.collections,
        head.requests,
        rows.events_left_out,
    ] {
        out.put_f64_le(number as f64);
    }
    out.put_f64_le(head.pages_per_second);
    assert_eq!(out.len(), HEAD_BYTES, "the head has its length");
    put_owners(&mut out, rows.owners);
    put_units(&mut out, rows.units);
    put_events(&mut out, rows.events);
    for value in rows.samples {
        out.put_f64_le(*value);
    }
    assert_eq!(out.len(), bytes, "a frame has the length that its counts ask for");
    out.freeze()
}

fn put_owners(out: &mut BytesMut, owners: &[OwnerRecord]) {
    for owner in owners {
        for number in [owner.host_bytes, owner.copied_out_pages, owner.received_pages, owner.valid_pages] {
            out.put_f64_le(number as f64);
        }
        out.put_u32_le(owner.units);
        out.put_u32_le(owner.reclaimed as u32);
    }
}

fn put_units(out: &mut BytesMut, units: &[(u32, UnitRecord)]) {
    for (unit, record) in units {
        out.put_u32_le(*unit);
        out.put_u8(record.state);
        out.put_u8(record.owner);
        out.put_u16_le(record.group);
        out.put_u32_le(record.valid_pages);
        out.put_u32_le(record.written_pages);
    }
}

fn put_events(out: &mut BytesMut, events: &[UnitEventRecord]) {
    for event in events {
        for byte in [event.kind, event.owner, event.reason, event.destination_owner] {
            out.put_u8(byte);
        }
        for number in [event.unit, event.pages, event.valid_pages, event.copied_pages, event.destination] {
            out.put_u32_le(number);
        }
        out.put_f64_le(event.host_bytes as f64);
        out.put_f64_le(event.now_ns as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f64_at(frame: &[u8], at: usize) -> f64 {
        f64::from_le_bytes(frame[at..at + 8].try_into().expect("eight bytes"))
    }

    fn u32_at(frame: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(frame[at..at + 4].try_into().expect("four bytes"))
    }

    /// All fields are at the offsets that the page reads.
    #[test]
    fn a_frame_is_laid_out_as_it_is_said() {
        let head = FrameHeader {
            phase: LanePhase::Paused,
            free_units: 5,
            host_bytes: 6,
            media_bytes: 7,
            filled_bytes: 8,
            now_ns: 9,
            collections: 10,
            requests: 11,
            pages_per_second: 12.5,
        };
        let owner = |first: u64| OwnerRecord {
            host_bytes: first,
            copied_out_pages: first + 1,
            received_pages: first + 2,
            valid_pages: first + 3,
            units: 24,
            reclaimed: (1 << 32) + 25,
        };
        let unit = UnitRecord { state: 3, owner: 1, group: 0x0201, valid_pages: 30, written_pages: 31 };
        let event = UnitEventRecord {
            kind: 3,
            owner: 1,
            reason: 2,
            destination_owner: NO_OWNER,
            unit: 40,
            pages: 41,
            valid_pages: 42,
            copied_pages: 43,
            destination: NO_UNIT,
            host_bytes: 44,
            now_ns: 45,
        };
        let rows = FrameRows {
            owners: &[owner(20), owner(120)],
            units: &[(29, unit)],
            events: &[event],
            events_left_out: 13,
            samples: &[50.0, 51.0, 52.0, 53.0, 54.0, 55.0],
        };
        let frame = encode(4, true, &head, &rows);
        assert_eq!(&frame[..4], [1, 4, 3, 1]);
        assert_eq!([4, 8, 12, 16, 20].map(|at| u32_at(&frame, at)), [2, 1, 1, 1, 5]);
        let numbers = [24, 32, 40, 48, 56, 64, 72, 80].map(|at| f64_at(&frame, at));
        assert_eq!(numbers, [6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 13.0, 12.5]);
        let second = HEAD_BYTES + OWNER_BYTES;
        assert_eq!([0, 8, 16, 24].map(|at| f64_at(&frame, second + at)), [120.0, 121.0, 122.0, 123.0]);
        assert_eq!([32, 36].map(|at| u32_at(&frame, second + at)), [24, 25]);
        let at = second + OWNER_BYTES;
        assert_eq!(u32_at(&frame, at), 29);
        assert_eq!(&frame[at + 4..at + 8], [3, 1, 0x01, 0x02]);
        assert_eq!([8, 12].map(|offset| u32_at(&frame, at + offset)), [30, 31]);
        let at = at + UNIT_BYTES;
        assert_eq!(&frame[at..at + 4], [3, 1, 2, 255]);
        let numbers = [4, 8, 12, 16, 20].map(|offset| u32_at(&frame, at + offset));
        assert_eq!(numbers, [40, 41, 42, 43, u32::MAX]);
        assert_eq!([24, 32].map(|offset| f64_at(&frame, at + offset)), [44.0, 45.0]);
        let at = at + EVENT_BYTES;
        assert_eq!([0, 8, 16, 40].map(|offset| f64_at(&frame, at + offset)), [50.0, 51.0, 52.0, 55.0]);
        assert_eq!(frame.len(), at + 16 + 2 * 16);
    }

    #[test]
    fn a_frame_of_nothing_is_its_head() {
        let rows = FrameRows { owners: &[], units: &[], events: &[], events_left_out: 0, samples: &[] };
        let frame = encode(0, false, &FrameHeader::default(), &rows);
        assert_eq!(frame.len(), HEAD_BYTES);
        assert_eq!(&frame[..4], [1, 0, 0, 0]);
    }
}
