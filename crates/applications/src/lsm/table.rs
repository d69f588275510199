//! Sorted tables: the files of the tree, with the keys that they hold.

use super::extents::Extent;

/// A file of sorted entries, all of the same size. It holds its keys exactly: what compaction drops is what was overwritten.
#[derive(Debug, Clone)]
pub struct Table {
    /// The first and the last of its keys, kept here as well: whoever looks for a table to compact passes over those of all, a hundred thousand
    /// of them, and fetching each from its list of keys took nine tenths of the time of a model on a large drive.
    bounds: (u32, u32),
    pub keys: Vec<u32>,
    /// Where it is.
    pub extents: Vec<Extent>,
    /// Bytes that had been written by the tree when it was made.
    pub made_at: u64,
}

impl Table {
    /// A table of these keys, of which there are some.
    pub fn new(keys: Vec<u32>, extents: Vec<Extent>, made_at: u64) -> Table {
        let bounds = (keys[0], keys[keys.len() - 1]);
        assert!(bounds.0 <= bounds.1, "keys ascend: {bounds:?}");
        Table {
            bounds,
            keys,
            extents,
            made_at,
        }
    }

    pub fn first(&self) -> u32 {
        self.bounds.0
    }

    pub fn last(&self) -> u32 {
        self.bounds.1
    }
}

/// Keys that are in either list, once.
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

/// The tables of a sorted level that hold keys from `first` to `last`, as a range of their places.
pub fn overlapping(level: &[Table], first: u32, last: u32) -> std::ops::Range<usize> {
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
        let table = |first: u32, last: u32| Table::new(vec![first, last], Vec::new(), 0);
        let level = [table(10, 19), table(20, 29), table(40, 49)];
        for (first, last, expected) in [
            (0, 9, 0..0),
            (19, 20, 0..2),
            (30, 39, 2..2),
            (29, 40, 1..3),
            (50, 60, 3..3),
        ] {
            assert_eq!(overlapping(&level, first, last), expected, "{first} to {last}");
        }
    }
}
