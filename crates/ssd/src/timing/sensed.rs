//! What a command has sensed, and when that was done: the planes of a die sense pages of the same place at once.
//!
//! Most commands sense a few pages, which are looked at one after the other; a large one would look at the square of
//! their number.

use rustc_hash::FxHashMap;

use super::place::Sensing;
use crate::types::Nanos;

/// Pages that are looked at one after the other.
const FEW: usize = 32;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Sensed {
    few: Vec<(Sensing, Nanos)>,
    /// Those beyond.
    others: FxHashMap<Sensing, Nanos>,
}

impl Sensed {
    /// Another command begins.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.few.clear();
        if !self.others.is_empty() {
            self.others = FxHashMap::default();
        }
    }

    /// When a page was sensed, if it was.
    #[inline]
    pub(super) fn end_of(&self, sensing: Sensing) -> Option<Nanos> {
        match self.few.iter().rev().find(|(known, _)| *known == sensing) {
            Some((_, end)) => Some(*end),
            None if self.others.is_empty() => None,
            None => self.others.get(&sensing).copied(),
        }
    }

    /// A page that was not sensed before has been.
    #[inline]
    pub(super) fn note(&mut self, sensing: Sensing, end: Nanos) {
        if self.few.len() < FEW {
            self.few.push((sensing, end));
        } else {
            let before = self.others.insert(sensing, end);
            assert!(before.is_none(), "a command senses a page once");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Ppn;

    #[test]
    fn all_that_a_command_senses_is_found_and_nothing_of_the_one_before() {
        let sensing = |row: u32| Sensing {
            unit: Ppn(0),
            die: row % 7,
            page_in_program: row % 3,
            row,
        };
        let mut sensed = Sensed::default();
        for pages in [1, 32, 1000, 5] {
            for row in 0..pages {
                assert_eq!(sensed.end_of(sensing(row)), None);
                sensed.note(sensing(row), Nanos::from(row));
            }
            for row in 0..pages {
                assert_eq!(sensed.end_of(sensing(row)), Some(Nanos::from(row)));
            }
            assert_eq!(sensed.end_of(sensing(pages)), None);
            sensed.clear();
        }
    }
}
