//! Sorted tables, the files of the tree with their keys.

use super::extents::BlockExtent;

/// A file of sorted entries of equal size. It stores exact keys, so compaction drops exactly the
/// overwritten entries.
pub struct SortedTable {
    /// First and last key, cached here so that a search reads no lists of keys.
    bounds: (u32, u32),
    pub keys: Vec<u32>,
    pub extents: Vec<BlockExtent>,
    /// Bytes that the tree had written before the file.
    pub made_at: u64,
    /// Cost of a compaction into the next level, if known (see
    /// [`super::level::SortedLevel::update_costs`]).
    pub merge_cost: Option<u64>,
}

impl SortedTable {
    /// Creates a table of these keys. The list must not be empty.
    pub fn new(keys: Vec<u32>, extents: Vec<BlockExtent>, made_at: u64) -> SortedTable {
        let bounds = (keys[0], keys[keys.len() - 1]);
        assert!(bounds.0 <= bounds.1, "keys ascend: {bounds:?}");
        SortedTable { bounds, keys, extents, made_at, merge_cost: None }
    }

    pub fn first(&self) -> u32 {
        self.bounds.0
    }

    pub fn last(&self) -> u32 {
        self.bounds.1
    }
}

/// Number of keys that a merge copies at once.
const MERGED_KEYS: usize = 16;

/// Merges two sorted lists without duplicates. The right list is usually longer, because a level is
/// several times as large as the one above. So runs of its keys are copied in blocks, up to the next
/// key of the left list.
pub fn merge(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut merged = vec![0; left.len() + right.len() + MERGED_KEYS];
    let (mut end, mut at) = (0, 0);
    for key in left {
        loop {
            let Some(block) = right[at..].first_chunk::<MERGED_KEYS>() else {
                let smaller = right[at..].iter().take_while(|other| *other < key).count();
                merged[end..end + smaller].copy_from_slice(&right[at..at + smaller]);
                (end, at) = (end + smaller, at + smaller);
                break;
            };
            merged[end..end + MERGED_KEYS].copy_from_slice(block);
            let smaller: usize = block.iter().map(|other| usize::from(other < key)).sum();
            (end, at) = (end + smaller, at + smaller);
            if smaller < MERGED_KEYS {
                break;
            }
        }
        merged[end] = *key;
        end += 1;
        at += usize::from(right.get(at) == Some(key));
    }
    let rest = &right[at..];
    merged[end..end + rest.len()].copy_from_slice(rest);
    merged.truncate(end + rest.len());
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_every_key_once() {
        assert_eq!(merge(&[1, 4, 6], &[2, 4, 5, 9]), [1, 2, 4, 5, 6, 9]);
        assert_eq!(merge(&[], &[3]), [3]);
        assert_eq!(merge(&[3], &[]), [3]);
        let mut state = 7_u64;
        for (left, right) in [(5, 500), (500, 5), (100, 100), (3, 16), (1, 17), (40, 32)] {
            let mut draw = |count: usize| {
                let mut keys: Vec<u32> = (0..count)
                    .map(|_| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        (state >> 33) as u32 % 700
                    })
                    .collect();
                keys.sort_unstable();
                keys.dedup();
                keys
            };
            let (left, right) = (draw(left), draw(right));
            let mut expected = [&left[..], &right[..]].concat();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(merge(&left, &right), expected, "{left:?} {right:?}");
        }
    }
}
