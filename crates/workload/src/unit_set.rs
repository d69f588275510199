//! Sets of mapping units, such as all units that a workload has written.

/// A bit for each mapping unit, and the number of set bits.
#[derive(Debug, Default)]
pub struct UnitSet {
    words: Vec<u64>,
    count: u64,
}

impl UnitSet {
    /// Creates an empty set with room for the units of a drive. A default set grows with its
    /// contents.
    pub fn with_room(units: u64) -> UnitSet {
        UnitSet { words: vec![0; units.div_ceil(64) as usize], count: 0 }
    }

    /// Adds a unit and returns true if the unit is new.
    #[inline]
    pub fn insert(&mut self, unit: u64) -> bool {
        let (word, bit) = ((unit / 64) as usize, 1 << (unit % 64));
        if word >= self.words.len() {
            // Doubles the room each time, so that a trace needs memory only for the units that it
            // touches.
            self.words.resize((word + 1).next_power_of_two(), 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u64::from(is_new);
        is_new
    }

    /// Number of units in the set.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_new_once_and_sets_grow_with_what_they_hold() {
        for mut set in [UnitSet::default(), UnitSet::with_room(100)] {
            assert!(set.is_empty());
            let new = [5, 63, 64, 5, 1_000_000, 64].map(|unit| set.insert(unit));
            assert_eq!((new, set.len()), ([true, true, true, false, true, false], 4));
        }
    }
}
