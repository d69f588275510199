//! Numbers of the touched units of a trace, in the order of first touch.
//!
//! ```text
//! volume, unit -> key of a piece of 16 units -> slot of the table -> the piece's numbers
//! ```
//!
//! A number lies behind two cache lines at random places, its slot and its piece.
//! [`UnitNumbers::prefetch_slot`] and then [`UnitNumbers::prefetch_number`] ask for those of a batch
//! of records, so that the misses of the batch overlap.
//!
//! Slots are ordered by hash. A table that grows is therefore copied from front to back.

use std::ops::Range;

use prefetch::prefetch;
use rustc_hash::FxHashMap;

use super::record::{NAMES_MAX, OFFSET_BYTES_END};
use crate::random::mix;

/// Units of a piece, which share one slot.
const PIECE_UNITS: u64 = 16;
/// A unit without a number.
const UNNUMBERED: u32 = u32::MAX;
/// Smallest mapping unit of any drive.
pub(super) const UNIT_BYTES_MIN: u64 = 4096;
/// Bits of a piece's key for its position on the volume. The rest hold the volume.
const PIECE_BITS: u32 = 64 - NAMES_MAX.ilog2();
/// Slots of a new table.
const SLOTS_MIN: usize = 64;

const _: () = assert!(NAMES_MAX.is_power_of_two(), "the numbers of volumes fill their bits");
// A request that begins below the end of offsets may end 4 GiB above it.
const _: () = assert!(2 * OFFSET_BYTES_END / UNIT_BYTES_MIN / PIECE_UNITS <= 1 << PIECE_BITS);

/// Slot of the table, with a piece's key in two halves (12 bytes instead of 16).
#[derive(Debug, Clone, Copy)]
struct PieceSlot {
    key: [u32; 2],
    /// Index in `numbers`, or `PieceSlot::FREE`.
    piece: u32,
}

impl PieceSlot {
    const FREE: u32 = u32::MAX;
    const EMPTY: PieceSlot = PieceSlot { key: [0; 2], piece: PieceSlot::FREE };

    fn new(key: u64, piece: u32) -> PieceSlot {
        PieceSlot { key: [key as u32, (key >> 32) as u32], piece }
    }

    fn key(self) -> u64 {
        u64::from(self.key[1]) << 32 | u64::from(self.key[0])
    }
}

/// Bitmaps of the existing pieces, by groups of 64, and of non-empty groups. A long trim skips the
/// rest.
#[derive(Debug, Default)]
struct PieceBitmaps([FxHashMap<u64, u64>; 2]);

/// Touched units with their numbers.
pub(super) struct UnitNumbers {
    /// Linear probing. A power of two, at most three quarters occupied.
    slots: Box<[PieceSlot]>,
    numbers: Vec<[u32; PIECE_UNITS as usize]>,
    pub(super) count: u32,
    /// The last piece that was looked up, which usually comes next, too.
    last: (u64, u32),
    /// Built by the first trim.
    present: Option<PieceBitmaps>,
}

impl UnitNumbers {
    pub(super) fn new() -> UnitNumbers {
        UnitNumbers {
            slots: vec![PieceSlot::EMPTY; SLOTS_MIN].into(),
            numbers: Vec::new(),
            count: 0,
            // No piece has this key, because it lies behind the end of offsets.
            last: (u64::MAX, PieceSlot::FREE),
            present: None,
        }
    }

    #[inline]
    pub(super) fn prefetch_slot(&self, volume: u32, unit: u64) {
        prefetch(&self.slots, self.home(key(volume, unit)));
    }

    /// Prefetches the number of a unit, a moment after its slot.
    #[inline]
    pub(super) fn prefetch_number(&self, volume: u32, unit: u64) {
        if let Ok(piece) = self.find(key(volume, unit)) {
            prefetch(&self.numbers[piece as usize], (unit % PIECE_UNITS) as usize);
        }
    }

    /// Calls `take` with each run of a range: its first unit, the number of that unit, and the count of
    /// its units, which have successive numbers. A new unit gets the next number. Returns false if it
    /// has none because `room` numbers are in use.
    #[inline]
    pub(super) fn number(
        &mut self,
        volume: u32,
        units: Range<u64>,
        room: u64,
        mut take: impl FnMut(u64, u64, u64),
    ) -> bool {
        let mut unit = units.start;
        while unit < units.end {
            let piece = self.piece(key(volume, unit));
            let first = (unit % PIECE_UNITS) as usize;
            let wanted = (units.end - unit).min(PIECE_UNITS - unit % PIECE_UNITS) as usize;
            let numbers = &mut self.numbers[piece][first..first + wanted];
            let mut numbered = 0;
            for number in &mut *numbers {
                if *number == UNNUMBERED {
                    if u64::from(self.count) >= room {
                        break;
                    }
                    *number = self.count;
                    self.count += 1;
                }
                numbered += 1;
            }
            for run in numbers[..numbered].chunk_by(|number, next| number + 1 == *next) {
                take(unit, run[0].into(), run.len() as u64);
                unit += run.len() as u64;
            }
            if numbered < wanted {
                return false;
            }
        }
        true
    }

    /// Returns the index of the piece of a key. Adds it if it is new.
    #[inline]
    fn piece(&mut self, key: u64) -> usize {
        let piece = match self.last {
            (last, piece) if last == key => piece,
            _ => match self.find(key) {
                Ok(piece) => piece,
                Err(slot) => self.add(key, slot),
            },
        };
        self.last = (key, piece);
        piece as usize
    }

    /// Calls `take` with each numbered unit of a range and its number.
    pub(super) fn for_each(&mut self, volume: u32, units: Range<u64>, mut take: impl FnMut(u64, u64)) {
        let present = self.present.take().unwrap_or_else(|| {
            let mut present = PieceBitmaps::default();
            let used = self.slots.iter().filter(|slot| slot.piece != PieceSlot::FREE);
            used.for_each(|slot| present.insert(slot.key()));
            present
        });
        let end = key(volume, units.end.saturating_sub(1)) + 1;
        let mut at = key(volume, units.start);
        while let Some(found) = present.next(at, end) {
            let piece = self.find(found).expect("a piece in the bitmaps has a slot");
            let first = (found & ((1 << PIECE_BITS) - 1)) * PIECE_UNITS;
            for (unit, number) in (first..).zip(&self.numbers[piece as usize]) {
                if *number != UNNUMBERED && units.contains(&unit) {
                    take(unit, (*number).into());
                }
            }
            at = found + 1;
        }
        self.present = Some(present);
    }

    /// Slot at which the search for a key begins.
    #[inline]
    fn home(&self, key: u64) -> usize {
        (mix(key) >> (u64::BITS - self.slots.len().ilog2())) as usize
    }

    /// Returns the piece of a key, or the free slot that it would take.
    #[inline]
    fn find(&self, key: u64) -> Result<u32, usize> {
        let mut at = self.home(key);
        loop {
            let slot = self.slots[at];
            if slot.piece == PieceSlot::FREE {
                return Err(at);
            }
            if slot.key() == key {
                return Ok(slot.piece);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Adds a piece without numbers and returns its index.
    fn add(&mut self, key: u64, slot: usize) -> u32 {
        let piece = self.numbers.len() as u32;
        assert!(piece < PieceSlot::FREE, "a piece has a unit with a number, or is the last one");
        assert_eq!(self.slots[slot].piece, PieceSlot::FREE, "a new piece takes a free slot");
        self.slots[slot] = PieceSlot::new(key, piece);
        self.numbers.push([UNNUMBERED; PIECE_UNITS as usize]);
        if let Some(present) = &mut self.present {
            present.insert(key);
        }
        if self.numbers.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        piece
    }

    /// Doubles the table.
    #[cold]
    fn grow(&mut self) {
        let larger = vec![PieceSlot::EMPTY; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger.into());
        for slot in old.iter().filter(|slot| slot.piece != PieceSlot::FREE) {
            let free = self.find(slot.key()).expect_err("a key has one slot");
            self.slots[free] = *slot;
        }
    }
}

impl PieceBitmaps {
    fn insert(&mut self, key: u64) {
        *self.0[0].entry(key / 64).or_default() |= 1 << (key % 64);
        *self.0[1].entry(key / 64 / 64).or_default() |= 1 << (key / 64 % 64);
    }

    /// Returns the first existing piece in a range of keys.
    fn next(&self, from: u64, end: u64) -> Option<u64> {
        let mut at = from;
        while at < end {
            let marks = |level: usize, place: u64| {
                let marks = self.0[level].get(&(place / 64)).copied().unwrap_or(0);
                let marks = marks >> (place % 64);
                (marks != 0).then(|| place + u64::from(marks.trailing_zeros()))
            };
            if let Some(piece) = marks(0, at) {
                return (piece < end).then_some(piece);
            }
            // This group is empty. Skips to the next non-empty group, or to the next 64 groups.
            let next = at / 64 + 1;
            at = match marks(1, next) {
                Some(place) => place * 64,
                None => (next / 64 + 1) * 64 * 64,
            };
        }
        None
    }
}

#[inline]
fn key(volume: u32, unit: u64) -> u64 {
    (u64::from(volume) << PIECE_BITS) | (unit / PIECE_UNITS)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Compares with a plain map over volumes, adjacent and isolated units, and several sizes of the
    /// table.
    #[test]
    fn numbers_are_those_of_first_touches_however_large_the_table() {
        let mut numbers = UnitNumbers::new();
        let mut model: HashMap<(u32, u64), u64> = HashMap::new();
        for step in 0..30_000_u64 {
            let volume = (mix(step) % 3) as u32;
            let unit = match mix(step + 1) % 3 {
                0 => mix(step + 2) % 5_000,
                1 => step,
                _ => mix(step + 2) % (OFFSET_BYTES_END / UNIT_BYTES_MIN),
            };
            numbers.prefetch_slot(volume, unit);
            numbers.prefetch_number(volume, unit);
            let units = unit..unit + 1 + mix(step + 3) % 20;
            let wanted: Vec<(u64, u64)> = units
                .clone()
                .map(|unit| {
                    let next = model.len() as u64;
                    (unit, *model.entry((volume, unit)).or_insert(next))
                })
                .collect();
            let mut found = Vec::new();
            let numbered = numbers.number(volume, units, u64::MAX, |first, number, count| {
                found.extend((0..count).map(|index| (first + index, number + index)));
            });
            assert!(numbered);
            assert_eq!(found, wanted, "{volume}");
            if step % 5_000 == 4_999 {
                let range = 1_000..4_000;
                let mut found = Vec::new();
                numbers.for_each(volume, range.clone(), |unit, number| found.push((unit, number)));
                let mut wanted: Vec<(u64, u64)> = model
                    .iter()
                    .filter(|((of, unit), _)| *of == volume && range.contains(unit))
                    .map(|((_, unit), number)| (*unit, *number))
                    .collect();
                wanted.sort_unstable();
                assert_eq!(found, wanted);
            }
        }
        assert_eq!(u64::from(numbers.count), model.len() as u64);
        assert!(numbers.slots.len() >= 1 << 15 && numbers.numbers.len() * 4 <= numbers.slots.len() * 3);
        let (room, new) = (numbers.count.into(), u64::from(u32::MAX));
        assert!(
            !numbers.number(0, new..new + 1, room, |_, _, _| panic!("it has no number")),
            "there is no room for more"
        );
    }
}
