//! Mapping of a trace's addresses to positions on the drive.
//!
//! A record becomes pieces. Usually it is a single piece. Further pieces arise if the request wraps
//! around the drive's end or if its units were first touched at different times.
//!
//! On a scaled model of 1/d (without `keep_requests`) a trace is *sampled by address*. Each unit of
//! the model stands for several units of the trace. A hash of address and seed chooses one of them,
//! and the model only sees the requests to this unit. Each unit of the model thus has the history
//! of a real unit. Bytes, working set and the bytes between two overwrites of a unit all shrink by
//! d. Miniature simulations of caches work the same way (Waldspurger et al., "Cache Modeling and
//! Optimization using Miniature Simulations", USENIX ATC 2017). Sequential runs stay sequential,
//! and requests shrink or vanish. With `keep_requests` positions shrink ([`ScaledModel::position`])
//! and requests do not change.
//!
//! Memory of `modulo` and `scale` is one bit per unit of the drive, to count touched units (32 MiB
//! per TiB at 4 KiB). `compact` needs 64 bytes for each touched piece of 16 units (64 KiB), plus 16
//! to 32 for its slot of the table. A table that has just grown takes twice that. This gives 5 to 11
//! bytes per touched unit if units are adjacent, and up to 240 if each is isolated.

use super::record::TraceRecord;
use super::settings::{AddressMapping, TraceSettings};
use super::unit_numbers::{UNIT_BYTES_MIN, UnitNumbers};
use crate::random::mix;
use crate::{RequestOperation, ScaledModel, UnitSet, WorkloadError, WorkloadTarget};

/// Maps a traced request to the drive and reports offset and length of each piece.
pub(super) struct AddressMap {
    rule: MappingRule,
    unit_bytes: u64,
    /// Power of two of `unit_bytes`.
    unit_bits: u32,
    /// Units of the drive at full size.
    full_units: u64,
    /// Units of the drive that receives the requests.
    units: u64,
    /// Sampling for a scaled model whose requests shrink.
    sampled: Option<UnitSample>,
    /// Scaled model whose requests do not change.
    kept: Option<ScaledModel>,
}

enum MappingRule {
    Modulo {
        volume_bytes: u64,
        touched: UnitSet,
    },
    Scale {
        volume_bytes: u64,
        volumes: u32,
        touched: UnitSet,
    },
    /// Numbers of the touched units, and their maximum count.
    Compact(UnitNumbers, u64),
}

#[derive(Clone, Copy)]
struct UnitSample {
    denominator: u64,
    seed: u64,
}

/// Error if more units are touched than the drive has or than the trace's length allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyUnits;

impl AddressMap {
    pub(super) fn new(settings: &TraceSettings, target: &WorkloadTarget, seed: u64) -> Result<Self, WorkloadError> {
        let unit_bytes = target.unit_bytes();
        let units = target.capacity_bytes() / unit_bytes;
        let full_units = target.device_bytes / unit_bytes;
        assert!(unit_bytes >= UNIT_BYTES_MIN && unit_bytes.is_power_of_two(), "drives map in units of 4 KiB or more");
        if units == 0 || units >= u64::from(u32::MAX) {
            return Err(WorkloadError::setting(
                format!("a capacity of {} bytes", target.capacity_bytes()),
                format!("does not suit a trace. Use a drive of 1 to {} units of {unit_bytes} bytes", u32::MAX - 1),
            ));
        }
        let volume_bytes = settings.volume_bytes.unwrap_or(0);
        assert!(units <= full_units, "a scaled model is no larger than its drive");
        // Without sampling, touched units are those of the full-size drive.
        let sampled = target.scaled_model.filter(|model| !model.keep_requests);
        let touched = || UnitSet::with_room(sampled.map_or(full_units, |_| units));
        let rule = match settings.mapping {
            AddressMapping::Modulo => MappingRule::Modulo { volume_bytes, touched: touched() },
            AddressMapping::Scale => MappingRule::Scale { volume_bytes, volumes: settings.volumes, touched: touched() },
            AddressMapping::Compact => MappingRule::Compact(UnitNumbers::new(), settings.numbered_units_max(target)),
        };
        Ok(AddressMap {
            rule,
            unit_bytes,
            unit_bits: unit_bytes.ilog2(),
            full_units,
            units,
            sampled: sampled.map(|model| UnitSample { denominator: model.denominator, seed }),
            kept: target.scaled_model.filter(|model| model.keep_requests),
        })
    }

    /// Units of the drive that were read or written.
    pub(super) fn touched_units(&self) -> u64 {
        match &self.rule {
            MappingRule::Modulo { touched, .. } | MappingRule::Scale { touched, .. } => touched.len(),
            MappingRule::Compact(numbers, _) => numbers.count.into(),
        }
    }

    /// True if a record lies on the volumes described by the settings.
    #[inline]
    pub(super) fn covers(&self, record: &TraceRecord) -> bool {
        match &self.rule {
            MappingRule::Scale { volume_bytes, volumes, .. } => {
                record.offset_bytes + u64::from(record.bytes) <= *volume_bytes && record.volume < *volumes
            }
            MappingRule::Modulo { .. } | MappingRule::Compact(..) => true,
        }
    }

    /// Prefetches the table's slots of a record that is mapped soon.
    #[inline]
    pub(super) fn prefetch_slots(&self, record: &TraceRecord) {
        self.for_ends(record, UnitNumbers::prefetch_slot);
    }

    /// Prefetches the numbers of a record that is mapped soon, a moment after its slots.
    #[inline]
    pub(super) fn prefetch_numbers(&self, record: &TraceRecord) {
        self.for_ends(record, UnitNumbers::prefetch_number);
    }

    /// Calls `visit` with the first and the last unit of a record that looks up numbers.
    #[inline]
    fn for_ends(&self, record: &TraceRecord, visit: impl Fn(&UnitNumbers, u32, u64)) {
        let MappingRule::Compact(numbers, _) = &self.rule else { return };
        if self.sampled.is_none() && record.operation != RequestOperation::Trim {
            let first = record.offset_bytes >> self.unit_bits;
            let last = (record.offset_bytes + u64::from(record.bytes) - 1) >> self.unit_bits;
            visit(numbers, record.volume, first);
            if first != last {
                visit(numbers, record.volume, last);
            }
        }
    }

    /// Calls `emit` with offset and length of every piece of a record.
    #[inline]
    pub(super) fn map(&mut self, record: &TraceRecord, mut emit: impl FnMut(u64, u32)) -> Result<(), TooManyUnits> {
        let Some(model) = self.kept else {
            return self.map_pieces(record, PieceJoiner::new(emit));
        };
        let (bytes, full_bytes) = (self.units * self.unit_bytes, self.full_units * self.unit_bytes);
        let shrunk = |at, length: u32| {
            let length = u64::from(length).min(bytes);
            // The position within its unit does not change, because it determines the number of
            // touched units.
            let position = model.position(at, full_bytes) + at % model.mapping_unit_bytes;
            emit(position.min(bytes - length), length as u32);
        };
        self.map_pieces(record, PieceJoiner::new(shrunk))
    }

    fn map_pieces(
        &mut self,
        record: &TraceRecord,
        mut pieces: PieceJoiner<impl FnMut(u64, u32)>,
    ) -> Result<(), TooManyUnits> {
        let full_bytes = self.full_units * self.unit_bytes;
        let mut at = match &self.rule {
            MappingRule::Modulo { volume_bytes, .. } => {
                let address = u128::from(record.volume) * u128::from(*volume_bytes) + u128::from(record.offset_bytes);
                match u64::try_from(address) {
                    Ok(address) => address % full_bytes,
                    Err(_) => (address % u128::from(full_bytes)) as u64,
                }
            }
            MappingRule::Scale { volume_bytes, volumes, .. } => self.scale(record, *volume_bytes, *volumes),
            MappingRule::Compact(..) => return self.compact(record, pieces),
        };
        assert!(at < full_bytes, "a record is mapped to {at} on a drive of {full_bytes} bytes");
        let mut left = u64::from(record.bytes);
        while left > 0 {
            let bytes = left.min(full_bytes - at);
            self.place(record, at, bytes, &mut pieces);
            left -= bytes;
            at = 0;
        }
        pieces.end();
        Ok(())
    }

    /// Position of a record on the drive at full size. Its end stays on the drive if the drive is
    /// large enough.
    fn scale(&self, record: &TraceRecord, volume_bytes: u64, volumes: u32) -> u64 {
        let bytes = u64::from(record.bytes);
        let span_bytes = volume_bytes * u64::from(volumes);
        let address = u64::from(record.volume) * volume_bytes + record.offset_bytes;
        let full_bytes = self.full_units * self.unit_bytes;
        // On a drive of the traced size no address changes, aligned or not.
        if span_bytes == full_bytes {
            return address;
        }
        let position = (u128::from(address) * u128::from(full_bytes) / u128::from(span_bytes)) as u64;
        let position = position.min(full_bytes.saturating_sub(bytes));
        position - position % self.unit_bytes
    }

    /// Maps a piece of the drive at full size.
    fn place(&mut self, record: &TraceRecord, at: u64, bytes: u64, pieces: &mut PieceJoiner<impl FnMut(u64, u32)>) {
        let touch = record.operation != RequestOperation::Trim;
        let (unit_bytes, units, full_units) = (self.unit_bytes, self.units, self.full_units);
        let (MappingRule::Modulo { touched, .. } | MappingRule::Scale { touched, .. }) = &mut self.rule else {
            unreachable!("compact numbers its units itself");
        };
        let mut add = |at: u64, bytes: u64| {
            if touch {
                (at / unit_bytes..(at + bytes).div_ceil(unit_bytes)).for_each(|unit| _ = touched.insert(unit));
            }
            pieces.add(at, bytes);
        };
        let Some(sampled) = self.sampled else {
            return add(at, bytes);
        };
        let scale = |unit: u64| (u128::from(unit) * u128::from(units) / u128::from(full_units)) as u64;
        for unit in scale(at / unit_bytes)..=scale((at + bytes - 1) / unit_bytes) {
            let chosen = sampled.choose(unit, units, full_units) * unit_bytes;
            let from = at.max(chosen);
            let to = (at + bytes).min(chosen + unit_bytes);
            if from < to {
                add(unit * unit_bytes + from - chosen, to - from);
            }
        }
    }

    fn compact(
        &mut self,
        record: &TraceRecord,
        mut pieces: PieceJoiner<impl FnMut(u64, u32)>,
    ) -> Result<(), TooManyUnits> {
        let MappingRule::Compact(numbers, room) = &mut self.rule else {
            unreachable!("that is what it is called for");
        };
        // A part of a unit keeps its position within the numbered unit.
        let end = record.offset_bytes + u64::from(record.bytes);
        let mut add = |unit: u64, number: u64, units: u64| {
            let from = record.offset_bytes.max(unit << self.unit_bits);
            let to = end.min((unit + units) << self.unit_bits);
            pieces.add((number << self.unit_bits) + (from & (self.unit_bytes - 1)), to - from);
        };
        let units = record.offset_bytes >> self.unit_bits..((end - 1) >> self.unit_bits) + 1;
        let room = *room;
        match record.operation {
            // Units that were never written cannot be deallocated.
            RequestOperation::Trim => numbers.for_each(record.volume, units, |unit, number| add(unit, number, 1)),
            _ => match self.sampled {
                None => numbers.number(record.volume, units, room, add).then_some(()).ok_or(TooManyUnits)?,
                Some(sampled) => {
                    for unit in units.filter(|unit| sampled.contains(record.volume, *unit)) {
                        let numbered = numbers.number(record.volume, unit..unit + 1, room, &mut add);
                        numbered.then_some(()).ok_or(TooManyUnits)?;
                    }
                }
            },
        }
        pieces.end();
        Ok(())
    }
}

impl UnitSample {
    /// Chooses the unit of the full drive that a unit of the model stands for.
    fn choose(self, unit: u64, units: u64, full_units: u64) -> u64 {
        let first = (u128::from(unit) * u128::from(full_units)).div_ceil(units.into()) as u64;
        let end = (u128::from(unit + 1) * u128::from(full_units)).div_ceil(units.into()) as u64;
        assert!(first < end && end <= full_units, "a sampled unit stands for units {first} to {end} of {full_units}");
        first + mix(unit ^ mix(self.seed)) % (end - first)
    }

    fn contains(self, volume: u32, unit: u64) -> bool {
        mix(unit ^ mix(self.seed ^ u64::from(volume))).is_multiple_of(self.denominator)
    }
}

/// Joins adjacent pieces.
struct PieceJoiner<E> {
    emit: E,
    start: u64,
    end: u64,
}

impl<E: FnMut(u64, u32)> PieceJoiner<E> {
    fn new(emit: E) -> PieceJoiner<E> {
        PieceJoiner { emit, start: 0, end: 0 }
    }

    #[inline]
    fn add(&mut self, at: u64, bytes: u64) {
        if at != self.end {
            self.end();
            self.start = at;
        }
        self.end = at + bytes;
    }

    #[inline]
    fn end(&mut self) {
        if self.start < self.end {
            (self.emit)(self.start, (self.end - self.start) as u32);
        }
        self.start = self.end;
    }
}
