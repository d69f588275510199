//! Sorted tables, the files of the tree with their keys.

use super::extents::BlockExtent;

/// A file of sorted entries of equal size. It stores exact keys, so compaction drops exactly the
/// overwritten entries.
#[derive(Debug, Clone)]
pub struct SortedTable {
    /// First and last key, cached here. The choice of a table to compact scans up to a hundred
    /// thousand tables. Reading the bounds from the key lists took 90 % of the run time of a model
    /// on a large drive.
    bounds: (u32, u32),
    pub keys: Vec<u32>,
    /// Extents of the file.
    pub extents: Vec<BlockExtent>,
    /// Bytes that the tree had written before the file.
    pub made_at: u64,
}

impl SortedTable {
    /// Creates a table of these keys. The list must not be empty.
    pub fn new(keys: Vec<u32>, extents: Vec<BlockExtent>, made_at: u64) -> SortedTable {
        let bounds = (keys[0], keys[keys.len() - 1]);
        assert!(bounds.0 <= bounds.1, "keys ascend: {bounds:?}");
        SortedTable { bounds, keys, extents, made_at }
    }

    pub fn first(&self) -> u32 {
        self.bounds.0
    }

    pub fn last(&self) -> u32 {
        self.bounds.1
    }
}

/// Merges two sorted lists without duplicates.
pub fn merge(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut one, mut two) = (0, 0);
    while one < left.len() && two < right.len() {
        let (a, b) = (left[one], right[two]);
        merged.push(a.min(b));
        one += usize::from(a <= b);
        two += usize::from(b <= a);
    }
    merged.extend_from_slice(&left[one..]);
    merged.extend_from_slice(&right[two..]);
    merged
}

/// Positions of the tables in a sorted level that overlap the keys `first` to `last`.
pub fn overlapping(level: &[SortedTable], first: u32, last: u32) -> std::ops::Range<usize> {
    let start = level.partition_point(|table| table.last() < first);
    let end = start + level[start..].partition_point(|table| table.first() <= last);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_every_key_once() {
        assert_eq!(merge(&[1, 4, 6], &[2, 4, 5, 9]), [1, 2, 4, 5, 6, 9]);
        assert_eq!(merge(&[], &[3]), [3]);
    }

    #[test]
    fn overlap_is_found_at_the_borders() {
        let table = |first: u32, last: u32| SortedTable::new(vec![first, last], Vec::new(), 0);
        let level = [table(10, 19), table(20, 29), table(40, 49)];
        for (first, last, expected) in [(0, 9, 0..0), (19, 20, 0..2), (30, 39, 2..2), (29, 40, 1..3), (50, 60, 3..3)] {
            assert_eq!(overlapping(&level, first, last), expected, "{first} to {last}");
        }
    }
}
