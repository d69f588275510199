//! When each unit was written last, in 4 bytes, on a clock that counts what is written.
//!
//! Time goes in ticks of several units on large drives, so that the bits that a tag of the classifier's leaves last for 4096 drive-writes
//! or nearly: 16 MiB on a drive of 7.68 TB and one bit of tag, but at most a 16th of a segment. A unit that is not overwritten for longer is once
//! taken for younger than it is.

use crate::{Target, WorkloadError};

/// Drive-writes that ticks can tell apart.
const DRIVE_WRITES: u64 = 4096;
/// Ticks in a segment, at least, as far as it has as many units.
const TICKS_PER_SEGMENT: u64 = 16;
/// Segments in a drive, at most.
const SEGMENTS_MAX: u64 = 1 << 18;

/// A segment's size from the setting `segment_bytes`, which is of the drive at full size, in units of the drive that gets the requests.
pub(super) fn segment_units(segment_bytes: u64, target: &Target) -> Result<u64, WorkloadError> {
    let least = target.device_bytes.div_ceil(SEGMENTS_MAX).max(1);
    if !(least..=target.device_bytes).contains(&segment_bytes) {
        return Err(WorkloadError::setting(
            format!("classifier.segment_bytes = {segment_bytes}"),
            format!("must be {least} to {}, the drive's capacity", target.device_bytes),
        ));
    }
    let bytes = target.twin.map_or(segment_bytes, |twin| twin.amount(segment_bytes));
    Ok(bytes.div_ceil(target.unit_bytes()).max(1))
}

/// The last write of each unit, with a tag of so many bits.
pub(super) struct LastWrites<const TAG_BITS: u32> {
    /// Tick and tag; 0: there was none.
    stamps: Vec<u32>,
    tick_units: u64,
    /// Now, and units written in this tick. Tick 0 is before everything.
    tick: u64,
    written_in_tick: u64,
}

/// What a unit held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastWrite {
    /// How long ago it was written, ticks.
    pub(super) age: u64,
    pub(super) tag: u32,
}

impl<const TAG_BITS: u32> LastWrites<TAG_BITS> {
    const TICK_BITS: u32 = 32 - TAG_BITS;

    /// For a drive of so many units.
    pub(super) fn new(units: usize, segment_units: u64) -> Self {
        let fitting = (units as u64 * DRIVE_WRITES).div_ceil(1 << Self::TICK_BITS);
        let tick_units = fitting
            .next_power_of_two()
            .min((segment_units / TICKS_PER_SEGMENT).max(1));
        LastWrites {
            stamps: vec![0; units],
            tick_units,
            tick: 1,
            written_in_tick: 0,
        }
    }

    /// Units in a tick.
    pub(super) fn tick_units(&self) -> u64 {
        self.tick_units
    }

    /// Now.
    pub(super) fn tick(&self) -> u64 {
        self.tick
    }

    /// Forgets what a unit held, which is overwritten or deallocated.
    pub(super) fn take(&mut self, unit: u64) -> Option<LastWrite> {
        let stamp = std::mem::take(&mut self.stamps[unit as usize]);
        let age = (self.tick as u32).wrapping_sub(stamp >> TAG_BITS) & (u32::MAX >> TAG_BITS);
        (stamp != 0).then_some(LastWrite {
            age: age.into(),
            tag: stamp & ((1 << TAG_BITS) - 1),
        })
    }

    /// A unit is written now.
    pub(super) fn put(&mut self, unit: u64, tag: u32) {
        assert!(tag < 1 << TAG_BITS, "a tag has {TAG_BITS} bits");
        self.stamps[unit as usize] = (self.tick as u32) << TAG_BITS | tag;
    }

    /// A unit's worth of time has passed; true if a tick ends with it.
    pub(super) fn pass(&mut self) -> bool {
        self.written_in_tick += 1;
        if self.written_in_tick < self.tick_units {
            return false;
        }
        self.written_in_tick = 0;
        self.tick += 1;
        true
    }
}
