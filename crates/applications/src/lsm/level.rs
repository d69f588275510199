//! Sorted level: tables that do not overlap, in the order of their keys and of their costs.
//!
//! ```text
//! tables by first key <- lookups, overlap with another level
//! cost, first key     <- next table to compact
//! ```
//!
//! A level of a large drive has up to a hundred thousand tables. A compaction changes about a dozen
//! neighbours, so only the costs of the tables above them are computed again.

use std::collections::{BTreeMap, BTreeSet};

use super::table::SortedTable;

/// Tables of a level below level 0.
#[derive(Default)]
pub struct SortedLevel {
    /// Tables by first key.
    tables: BTreeMap<u32, SortedTable>,
    /// Cost and first key of each table whose cost is known, cheapest first.
    costs: BTreeSet<(u64, u32)>,
}

impl SortedLevel {
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Tables in the order of their keys.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &SortedTable> {
        self.tables.values()
    }

    /// First table that ends at or after a key.
    pub fn first_from(&self, key: u32) -> Option<&SortedTable> {
        let around = self.tables.range(..=key).next_back().filter(|(_, table)| table.last() >= key);
        around.or_else(|| self.tables.range(key..).next()).map(|(_, table)| table)
    }

    /// Tables that overlap the keys `first` to `last`, in descending order.
    fn overlapping(&self, first: u32, last: u32) -> impl Iterator<Item = &SortedTable> {
        let tables = self.tables.range(..=last).rev().map(|(_, table)| table);
        tables.take_while(move |table| table.last() >= first)
    }

    pub fn insert(&mut self, table: SortedTable) {
        assert!(self.overlapping(table.first(), table.last()).next().is_none(), "tables of a level do not overlap");
        self.tables.insert(table.first(), table);
    }

    fn remove(&mut self, first: u32) -> SortedTable {
        let mut table = self.tables.remove(&first).expect("the table is in the level");
        if let Some(cost) = table.merge_cost.take() {
            self.costs.remove(&(cost, first));
        }
        table
    }

    /// Removes the tables that overlap the keys `first` to `last`, and returns them in the order of
    /// their keys.
    pub fn take_overlapping(&mut self, first: u32, last: u32) -> Vec<SortedTable> {
        let mut firsts: Vec<u32> = self.overlapping(first, last).map(SortedTable::first).collect();
        firsts.reverse();
        firsts.into_iter().map(|first| self.remove(first)).collect()
    }

    /// Removes the table with the smallest cost, of equal ones the first. Returns it with its cost.
    pub fn take_cheapest(&mut self) -> (u64, SortedTable) {
        assert_eq!(self.costs.len(), self.tables.len(), "all tables of a level to compact have a cost");
        let (cost, first) = *self.costs.first().expect("a level that is too large has tables");
        (cost, self.remove(first))
    }

    /// Computes the costs of the tables that overlap the keys `first` to `last`. The cost of a table
    /// is its overlap with the next level, relative to its size (`kMinOverlappingRatio`).
    pub fn update_costs(&mut self, next: &SortedLevel, first: u32, last: u32) {
        let start = self.overlapping(first, last).last().map_or(first, SortedTable::first);
        for (key, table) in self.tables.range_mut(start..=last) {
            let touching = next.overlapping(table.first(), table.last());
            let overlap: u64 = touching.map(|other| other.keys.len() as u64).sum();
            let cost = overlap * 1024 / table.keys.len() as u64;
            if table.merge_cost != Some(cost) {
                if let Some(before) = table.merge_cost.replace(cost) {
                    self.costs.remove(&(before, *key));
                }
                self.costs.insert((cost, *key));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(tables: &[(u32, u32)]) -> SortedLevel {
        let mut level = SortedLevel::default();
        for (first, last) in tables {
            level.insert(SortedTable::new(vec![*first, *last], Vec::new(), 0));
        }
        level
    }

    const TABLES: [(u32, u32); 3] = [(10, 19), (20, 29), (40, 49)];

    #[test]
    fn overlap_is_found_at_the_borders() {
        for (first, last, expected) in [(0, 9, 0..0), (19, 20, 0..2), (30, 39, 2..2), (29, 40, 1..3), (50, 60, 3..3)] {
            let mut taken = level(&TABLES);
            let tables = taken.take_overlapping(first, last);
            let bounds: Vec<(u32, u32)> = tables.iter().map(|table| (table.first(), table.last())).collect();
            assert_eq!(bounds, TABLES[expected], "{first} to {last}");
            assert_eq!(taken.len() + bounds.len(), 3);
        }
        for (key, expected) in [(0, Some(10)), (19, Some(10)), (30, Some(40)), (49, Some(40)), (50, None)] {
            assert_eq!(level(&TABLES).first_from(key).map(SortedTable::first), expected, "{key}");
        }
    }

    #[test]
    fn the_cheapest_table_leaves_first_and_costs_follow_the_next_level() {
        let (mut upper, mut lower) = (level(&TABLES), level(&[(0, 12), (13, 22), (23, 24), (45, 60)]));
        upper.update_costs(&lower, 0, 100);
        // The tables overlap two, two and one of the next level.
        lower.take_overlapping(13, 24);
        upper.update_costs(&lower, 13, 24);
        let taken: Vec<(u64, u32)> =
            (0..3).map(|_| upper.take_cheapest()).map(|(cost, table)| (cost, table.first())).collect();
        assert_eq!(taken, [(0, 20), (1024, 10), (1024, 40)]);
    }
}
