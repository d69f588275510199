//! Flash pages that the current command has sensed, because the planes of a die sense pages of the
//! same position together.
//!
//! Most commands sense only a few pages, which a linear search finds fast. A hash map holds the
//! rest, because the linear search would be quadratic.

use rustc_hash::FxHashMap;

use super::flash_geometry::SenseOp;
use crate::types::Nanos;

/// Maximum number of pages in the linear search.
const FEW: usize = 32;

/// Sensed flash pages of one command, with the end of each sense operation.
#[derive(Clone, Debug, Default)]
pub(super) struct SensedPages {
    few: Vec<(SenseOp, Nanos)>,
    /// Pages beyond `FEW`.
    others: FxHashMap<SenseOp, Nanos>,
}

impl SensedPages {
    /// Clears the pages for the next command.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.few.clear();
        if !self.others.is_empty() {
            self.others = FxHashMap::default();
        }
    }

    #[inline]
    pub(super) fn end_of(&self, sensing: SenseOp) -> Option<Nanos> {
        match self.few.iter().rev().find(|(known, _)| *known == sensing) {
            Some((_, end)) => Some(*end),
            None if self.others.is_empty() => None,
            None => self.others.get(&sensing).copied(),
        }
    }

    /// Adds a page that was not sensed before.
    #[inline]
    pub(super) fn record(&mut self, sensing: SenseOp, end: Nanos) {
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
        let sensing = |row: u32| SenseOp { unit: Ppn(0), die: row % 7, page_in_program: row % 3, row };
        let mut sensed = SensedPages::default();
        for pages in [1, 32, 1000, 5] {
            for row in 0..pages {
                assert_eq!(sensed.end_of(sensing(row)), None);
                sensed.record(sensing(row), Nanos::from(row));
            }
            for row in 0..pages {
                assert_eq!(sensed.end_of(sensing(row)), Some(Nanos::from(row)));
            }
            assert_eq!(sensed.end_of(sensing(pages)), None);
            sensed.clear();
        }
    }
}
