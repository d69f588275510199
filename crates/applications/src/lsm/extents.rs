//! Space allocator of the drive: files get the first free extents in 4 KiB blocks.
//!
//! A file system lies between a database and the drive. This one has no metadata. A file gets the
//! first free extent that holds all of it. If there is none, it gets the first free extents until
//! it has enough. Deletion frees the extents immediately.

use std::collections::BTreeMap;

pub const BLOCK_BYTES: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockExtent {
    pub first: u32,
    pub blocks: u32,
}

pub struct FreeSpace {
    /// First block and length of each free extent. Free extents never touch each other.
    free: BTreeMap<u32, u32>,
    /// Length of the longest free extent that begins in each part of the drive, so that a search
    /// skips the others.
    longest: Vec<u32>,
    part_blocks: u32,
    free_blocks: u64,
    blocks: u64,
}

/// Maximum number of parts of the drive.
const PARTS: u32 = 1024;

impl FreeSpace {
    /// Creates an empty drive.
    pub fn new(blocks: u32) -> FreeSpace {
        let part_blocks = blocks.div_ceil(PARTS).max(1);
        let mut space = FreeSpace {
            free: BTreeMap::new(),
            longest: vec![0; blocks.div_ceil(part_blocks) as usize],
            part_blocks,
            free_blocks: u64::from(blocks),
            blocks: u64::from(blocks),
        };
        space.add(0, blocks);
        space
    }

    /// Fraction of the blocks in use.
    pub fn used_share(&self) -> f64 {
        1.0 - self.free_blocks as f64 / self.blocks as f64
    }

    #[cfg(test)]
    pub fn used_blocks(&self) -> u64 {
        self.blocks - self.free_blocks
    }

    /// Allocates extents for `blocks` blocks. Returns `None` if too few are free.
    pub fn allocate(&mut self, blocks: u32) -> Option<Vec<BlockExtent>> {
        if u64::from(blocks) > self.free_blocks {
            return None;
        }
        if let Some(part) = self.longest.iter().position(|longest| *longest >= blocks) {
            let mut extents = self.free.range(part as u32 * self.part_blocks..);
            let whole = extents.find(|(_, length)| **length >= blocks);
            let (&first, _) = whole.expect("the longest extent of the part is long enough");
            return Some(vec![self.cut(first, blocks)]);
        }
        let mut extents = Vec::new();
        let mut left = blocks;
        while left > 0 {
            let (&first, &length) = self.free.first_key_value().expect("enough blocks are free");
            let extent = self.cut(first, left.min(length));
            left -= extent.blocks;
            extents.push(extent);
        }
        Some(extents)
    }

    fn cut(&mut self, first: u32, blocks: u32) -> BlockExtent {
        let length = self.take(first);
        if length > blocks {
            self.add(first + blocks, length - blocks);
        }
        self.free_blocks -= u64::from(blocks);
        BlockExtent { first, blocks }
    }

    fn add(&mut self, first: u32, blocks: u32) {
        self.free.insert(first, blocks);
        let longest = &mut self.longest[(first / self.part_blocks) as usize];
        *longest = (*longest).max(blocks);
    }

    /// Removes a free extent and returns its length.
    fn take(&mut self, first: u32) -> u32 {
        let length = self.free.remove(&first).expect("the extent is free");
        let part = first / self.part_blocks;
        if self.longest[part as usize] == length {
            let start = part * self.part_blocks;
            let extents = self.free.range(start..=start.saturating_add(self.part_blocks - 1));
            self.longest[part as usize] = extents.map(|(_, length)| *length).max().unwrap_or(0);
        }
        length
    }

    pub fn release(&mut self, extent: BlockExtent) {
        let (mut first, mut blocks) = (extent.first, extent.blocks);
        if let Some((&before, &length)) = self.free.range(..first).next_back() {
            assert!(before + length <= first, "block {first} is free already");
            if before + length == first {
                self.take(before);
                (first, blocks) = (before, length + blocks);
            }
        }
        if let Some((&after, &length)) = self.free.range(first + 1..).next() {
            assert!(first + blocks <= after, "block {after} is free already");
            if first + blocks == after {
                self.take(after);
                blocks += length;
            }
        }
        self.add(first, blocks);
        self.free_blocks += u64::from(extent.blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a map of the blocks: extents never overlap, none is lost, the first fit is
    /// used.
    #[test]
    fn extents_never_overlap_and_nothing_is_lost() {
        let mut space = FreeSpace::new(10_000);
        let mut used = vec![false; 10_000];
        let mut files: Vec<Vec<BlockExtent>> = Vec::new();
        let mut state = 12345u64;
        for step in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let drawn = (state >> 33) as u32;
            if !drawn.is_multiple_of(3) || files.is_empty() {
                let wanted = 1 + drawn % 97;
                let free = used.iter().filter(|used| !**used).count() as u32;
                let Some(extents) = space.allocate(wanted) else {
                    assert!(free < wanted, "step {step}: {free} blocks are free");
                    continue;
                };
                assert_eq!(extents.iter().map(|extent| extent.blocks).sum::<u32>(), wanted);
                if let [extent] = extents[..] {
                    let fits = used.windows(wanted as usize).position(|window| !window.contains(&true));
                    assert_eq!(Some(extent.first as usize), fits);
                }
                for block in extents.iter().flat_map(|extent| extent.first..extent.first + extent.blocks) {
                    assert!(!std::mem::replace(&mut used[block as usize], true), "step {step}");
                }
                files.push(extents);
            } else {
                let file = files.swap_remove(drawn as usize % files.len());
                for extent in file {
                    used[extent.first as usize..][..extent.blocks as usize].fill(false);
                    space.release(extent);
                }
            }
        }
        let share = used.iter().filter(|used| **used).count() as f64 / 10_000.0;
        assert!((space.used_share() - share).abs() < 1e-9);
    }
}
