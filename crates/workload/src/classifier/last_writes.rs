//! Compact table of each unit's last write time, 4 bytes per unit. Time is the amount of data
//! written.
//!
//! On large drives a tick of this clock covers several units, so that the bits left by a
//! classifier's tag last for about 4096 drive writes. With one bit of tag, a drive of 7.68 TB has
//! ticks of 16 MiB. A tick is at most a 16th of a segment. The clock wraps after that time, so a
//! unit that was not overwritten for longer appears younger than it is.

use crate::{WorkloadError, WorkloadTarget};

/// Drive writes that ticks can distinguish.
const DRIVE_WRITES: u64 = 4096;
/// Minimum ticks in a segment that has at least this number of units.
const TICKS_PER_SEGMENT: u64 = 16;
/// Maximum segments in a drive.
const SEGMENTS_MAX: u64 = 1 << 18;

/// Converts the setting `segment_bytes`, given for the drive at full size, to units of the drive
/// that receives the requests.
pub(super) fn segment_units(segment_bytes: u64, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
    let least = target.device_bytes.div_ceil(SEGMENTS_MAX).max(1);
    if !(least..=target.device_bytes).contains(&segment_bytes) {
        return Err(WorkloadError::setting(
            format!("classifier.segment_bytes = {segment_bytes}"),
            format!("must be from {least} to {}, the drive's capacity", target.device_bytes),
        ));
    }
    let bytes = target.scaled_model.map_or(segment_bytes, |model| model.amount(segment_bytes));
    Ok(bytes.div_ceil(target.unit_bytes()).max(1))
}

/// Last write of each unit, with a tag of `TAG_BITS` bits.
#[derive(Default)]
pub(super) struct LastWrites<const TAG_BITS: u32> {
    /// Tick and tag, or 0 for a unit without data.
    stamps: Vec<u32>,
    pub(super) tick_units: u64,
    /// Current tick, from 1, and units written in it.
    pub(super) tick: u64,
    written_in_tick: u64,
}

/// Last write of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastWrite {
    /// Age of the content, ticks.
    pub(super) age: u64,
    pub(super) tag: u32,
}

impl<const TAG_BITS: u32> LastWrites<TAG_BITS> {
    const TICK_BITS: u32 = 32 - TAG_BITS;

    /// Creates the table for a drive of `units` units.
    pub(super) fn new(units: usize, segment_units: u64) -> Self {
        let fitting = (units as u64 * DRIVE_WRITES).div_ceil(1 << Self::TICK_BITS);
        let tick_units = fitting.next_power_of_two().min((segment_units / TICKS_PER_SEGMENT).max(1));
        assert!(
            tick_units <= segment_units.max(1),
            "a tick of {tick_units} units is longer than a segment of {segment_units}"
        );
        LastWrites { stamps: vec![0; units], tick_units, tick: 1, written_in_tick: 0 }
    }

    pub(super) fn prefetch(&self, unit: u64) {
        prefetch::prefetch(&self.stamps, unit as usize);
    }

    /// Removes and returns the last write of a unit that is overwritten or deallocated.
    pub(super) fn remove(&mut self, unit: u64) -> Option<LastWrite> {
        let stamp = std::mem::take(&mut self.stamps[unit as usize]);
        let age = (self.tick as u32).wrapping_sub(stamp >> TAG_BITS) & (u32::MAX >> TAG_BITS);
        (stamp != 0).then_some(LastWrite { age: age.into(), tag: stamp & ((1 << TAG_BITS) - 1) })
    }

    /// Records a write of the unit in the current tick.
    pub(super) fn record(&mut self, unit: u64, tag: u32) {
        assert!(tag < 1 << TAG_BITS, "a tag has {TAG_BITS} bits");
        self.stamps[unit as usize] = (self.tick as u32) << TAG_BITS | tag;
    }

    /// Advances the clock by one unit. Returns true if this ends a tick.
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
