//! Namespaces, with their pages of the drive, their formats and their placement handles.
//!
//! The drive's pages are allocated in extents, so a new namespace can use the holes that deleted
//! ones left. All data here is non-volatile state. This file moves no user data.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use ssd::RuhId;

use crate::media::{ByteRange, DATA_BYTES_PER_METADATA_BYTE};
use crate::setup::COUNT_MAX;

/// Most logical blocks of a namespace. The bound keeps byte counts free of overflow.
const BLOCKS_MAX: u64 = 1 << 48;

/// A run of the drive's logical pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageExtent {
    /// First page of the run.
    pub first: u32,
    /// Number of pages, at least 1.
    pub pages: u32,
}

/// LBA format, which divides pages into logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFormat {
    /// Log2 of the data bytes of a logical block (LBADS).
    pub data_bytes_log2: u8,
    /// Metadata bytes of a logical block, or 0 for none (MS).
    pub metadata_bytes: u16,
    /// Relative performance, 0 best (RP).
    pub relative_performance: u8,
}

/// LBA formats of every namespace, by index.
///
/// Metadata is stored and transferred, but uses no space of the device model. The pages of the
/// model have no spare bytes. Capacities, placement and counters (HBMW, MBMW, MBE) cover the data
/// alone. Each metadata access is one more storage access, hence the relative performance.
pub const FORMATS: [BlockFormat; 4] = [
    BlockFormat { data_bytes_log2: 12, metadata_bytes: 0, relative_performance: 0 },
    BlockFormat { data_bytes_log2: 9, metadata_bytes: 0, relative_performance: 2 },
    BlockFormat { data_bytes_log2: 12, metadata_bytes: 64, relative_performance: 1 },
    BlockFormat { data_bytes_log2: 9, metadata_bytes: 8, relative_performance: 3 },
];

/// The place of the metadata follows from the place of the data in every format
/// ([`crate::media::metadata_of`]). Pages can therefore move between namespaces without knowledge
/// of their old content.
const _: () = {
    let mut index = 0;
    while index < FORMATS.len() {
        let format = FORMATS[index];
        let metadata_bytes = format.metadata_bytes as u64;
        assert!(
            BLOCKS_MAX.ilog2() + (format.data_bytes_log2 as u32) < 63,
            "the bytes of the largest namespace can be counted"
        );
        assert!(metadata_bytes == 0 || metadata_bytes * DATA_BYTES_PER_METADATA_BYTE == 1 << format.data_bytes_log2);
        index += 1;
    }
};

/// A namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Namespace {
    /// Index into [`FORMATS`].
    pub format: u8,
    /// Metadata follows the data of each logical block (extended LBA, FLBAS bit 4) instead of using
    /// a separate buffer. False for formats without metadata.
    pub extended_metadata: bool,
    /// Number of logical blocks.
    pub blocks: u64,
    /// Pages of the namespace, in the order of its logical blocks.
    pub extents: Vec<PageExtent>,
    /// Reclaim unit handle of each placement handle. One entry without Flexible Data Placement.
    pub placement_handles: Vec<RuhId>,
    /// The host chose the handles at creation.
    pub host_specified_handles: bool,
    /// Controllers that the namespace is attached to. [`Namespace::EVERYONE`] stands for all
    /// present and future controllers.
    pub attached: BTreeSet<u16>,
    /// Namespace Multi-path and Sharing. Several controllers may attach the namespace.
    pub shared: bool,
    /// Globally unique identifier, from which NGUID and UUID follow.
    pub nguid: [u8; 16],
    /// Host event types that each placement handle reports to the FDP event log (feature 1Eh). One
    /// bit for each type.
    pub events_enabled: Vec<EventMask>,
    /// Write protection (feature 84h).
    pub write_protected: bool,
    /// Logical blocks that Write Uncorrectable made unreadable.
    pub uncorrectable: BlockSet,
    /// Bytes that hosts wrote to the namespace, for reports.
    pub host_bytes_written: u64,
    /// A fault hides the namespace from all controllers.
    #[serde(skip)]
    pub lost: bool,
}

/// Enabled FDP event types, one bit for each of the 256 types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventMask([u64; 4]);

impl EventMask {
    /// True if a type is enabled.
    pub fn contains(&self, kind: u8) -> bool {
        self.0[usize::from(kind / 64)] >> (kind % 64) & 1 == 1
    }

    /// Enables or disables a type.
    pub fn set(&mut self, kind: u8, enabled: bool) {
        let word = &mut self.0[usize::from(kind / 64)];
        *word = *word & !(1 << (kind % 64)) | u64::from(enabled) << (kind % 64);
    }
}

impl Namespace {
    /// Entry of [`Namespace::attached`] that stands for every controller.
    pub const EVERYONE: u16 = u16::MAX;

    /// Checks the values of a stored namespace, independently of the drive. The error is a
    /// predicate such as "has extended blocks without metadata".
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some(format) = FORMATS.get(usize::from(self.format)) else {
            return Err(format!("has LBA format {}, but the formats are 0 to {}", self.format, FORMATS.len() - 1));
        };
        if self.extended_metadata && format.metadata_bytes == 0 {
            return Err("has extended blocks without metadata".to_string());
        }
        if self.blocks > BLOCKS_MAX || self.host_bytes_written > COUNT_MAX {
            return Err("has an impossible size or an impossible number of written bytes".to_string());
        }
        if self.events_enabled.len() != self.placement_handles.len() {
            return Err("enables events of other placement handles than its own".to_string());
        }
        if !self.uncorrectable.is_within(self.blocks) {
            return Err("has uncorrectable blocks beyond its end".to_string());
        }
        Ok(())
    }

    /// True if the namespace is active for a controller.
    pub fn is_attached(&self, controller: u16) -> bool {
        // `EVERYONE` sorts last in the set, so the lookup of it is cheap.
        !self.lost && (self.attached.last() == Some(&Namespace::EVERYONE) || self.attached.contains(&controller))
    }

    /// Log2 of the data bytes of a logical block.
    pub fn block_bytes_log2(&self) -> u8 {
        FORMATS[usize::from(self.format)].data_bytes_log2
    }

    /// Data bytes of a logical block.
    pub fn block_bytes(&self) -> u64 {
        1 << self.block_bytes_log2()
    }

    /// Bytes of metadata of a logical block.
    #[inline]
    pub fn metadata_bytes(&self) -> u64 {
        u64::from(FORMATS[usize::from(self.format)].metadata_bytes)
    }

    /// Pages of the drive in the namespace.
    pub fn pages(&self) -> u64 {
        self.extents.iter().map(|extent| u64::from(extent.pages)).sum()
    }

    /// True if the namespace contains the range of blocks. `count` may be 0.
    pub fn contains(&self, first: u64, count: u64) -> bool {
        first <= self.blocks && count <= self.blocks - first
    }

    /// Byte ranges of the drive that a range of logical blocks covers, one for each extent.
    pub fn locate(&self, first: u64, count: u64, page_bytes: u64) -> impl Iterator<Item = ByteRange> + '_ {
        let mut skip = first << self.block_bytes_log2();
        let mut left = count << self.block_bytes_log2();
        self.extents
            .iter()
            .map_while(move |extent| {
                if left == 0 {
                    return None;
                }
                let bytes = u64::from(extent.pages) * page_bytes;
                let from = skip.min(bytes);
                let take = left.min(bytes - from);
                skip -= from;
                left -= take;
                Some(ByteRange { offset: u64::from(extent.first) * page_bytes + from, bytes: take })
            })
            .filter(|piece| piece.bytes > 0)
    }
}

/// Allocates `pages` free pages of `0..capacity_pages`, in as few and as low extents as possible.
/// `None` if too few pages are free.
pub fn allocate<'a>(
    namespaces: impl Iterator<Item = &'a Namespace>,
    capacity_pages: u32,
    pages: u32,
) -> Option<Vec<PageExtent>> {
    let mut taken: Vec<PageExtent> = namespaces.flat_map(|namespace| namespace.extents.iter().copied()).collect();
    taken.sort_by_key(|extent| extent.first);
    let end = PageExtent { first: capacity_pages, pages: 0 };
    let mut at = 0;
    let mut holes = Vec::new();
    for extent in taken.into_iter().chain([end]) {
        assert!(extent.first >= at, "two namespaces have page {}", extent.first);
        if extent.first > at {
            holes.push(PageExtent { first: at, pages: extent.first - at });
        }
        at = extent.first + extent.pages;
    }
    // One large enough hole beats several. The smallest large enough hole preserves the larger
    // ones.
    if let Some(hole) = holes.iter().filter(|hole| hole.pages >= pages).min_by_key(|hole| hole.pages) {
        return Some(vec![PageExtent { first: hole.first, pages }]);
    }
    let mut left = pages;
    let mut extents = Vec::new();
    for hole in holes {
        let take = hole.pages.min(left);
        extents.push(PageExtent { first: hole.first, pages: take });
        left -= take;
        if left == 0 {
            let found: u32 = extents.iter().map(|extent| extent.pages).sum();
            assert_eq!(found, pages, "a namespace gets the pages that it asks for");
            return Some(extents);
        }
    }
    None
}

/// A set of logical blocks, as ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSet(BTreeMap<u64, u64>);

impl BlockSet {
    /// True if the set has no block.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// First block of the set inside a range.
    pub fn first_in(&self, first: u64, count: u64) -> Option<u64> {
        let before = self.0.range(..=first).next_back();
        if before.is_some_and(|(_, &end)| end > first) && count > 0 {
            return Some(first);
        }
        self.0.range(first..first.saturating_add(count)).next().map(|(&start, _)| start)
    }

    /// Adds a range.
    pub fn insert(&mut self, first: u64, count: u64) {
        let (mut start, mut end) = (first, first + count);
        let touching: Vec<(u64, u64)> =
            self.0.range(..=end).rev().take_while(|&(_, &its_end)| its_end >= start).map(|(&a, &b)| (a, b)).collect();
        for (a, b) in touching {
            self.0.remove(&a);
            start = start.min(a);
            end = end.max(b);
        }
        assert!(start <= first && first + count <= end, "the whole range is recorded");
        if start < end {
            self.0.insert(start, end);
        }
    }

    /// Removes a range.
    pub fn remove(&mut self, first: u64, count: u64) {
        let end = first + count;
        let overlapping: Vec<(u64, u64)> =
            self.0.range(..end).rev().take_while(|&(_, &its_end)| its_end > first).map(|(&a, &b)| (a, b)).collect();
        for (a, b) in overlapping {
            self.0.remove(&a);
            if a < first {
                self.0.insert(a, first);
            }
            if b > end {
                self.0.insert(end, b);
            }
        }
        assert_eq!(self.first_in(first, count), None, "the whole range is removed");
    }

    /// True if all blocks of the set are below `blocks` and the ranges are apart.
    fn is_within(&self, blocks: u64) -> bool {
        let mut free_from = 0;
        self.0.iter().enumerate().all(|(number, (&start, &end))| {
            let is_apart = number == 0 || start > free_from;
            free_from = end;
            is_apart && start < end && end <= blocks
        })
    }

    /// Number of ranges in the set. Typical hosts produce only a few.
    pub fn ranges(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(extents: &[(u32, u32)]) -> Namespace {
        Namespace {
            blocks: extents.iter().map(|&(_, pages)| u64::from(pages)).sum(),
            extents: extents.iter().map(|&(first, pages)| PageExtent { first, pages }).collect(),
            placement_handles: vec![RuhId(0)],
            shared: true,
            events_enabled: vec![EventMask::default()],
            ..Namespace::default()
        }
    }

    #[test]
    fn a_range_over_two_extents_has_two_pieces() {
        let namespace = namespace(&[(10, 4), (100, 4)]);
        let pieces: Vec<_> = namespace.locate(3, 2, 4096).collect();
        assert_eq!(
            pieces,
            [ByteRange { offset: 13 * 4096, bytes: 4096 }, ByteRange { offset: 100 * 4096, bytes: 4096 }]
        );
    }

    #[test]
    fn allocation_prefers_the_hole_that_fits_and_joins_holes_if_none_does() {
        let there = [namespace(&[(0, 4)]), namespace(&[(8, 2)]), namespace(&[(12, 4)])];
        assert_eq!(allocate(there.iter(), 20, 2), Some(vec![PageExtent { first: 10, pages: 2 }]));
        let joined = allocate(there.iter(), 20, 7).unwrap();
        assert_eq!(joined.iter().map(|extent| extent.pages).sum::<u32>(), 7);
        assert_eq!(joined.len(), 3);
        assert_eq!(allocate(there.iter(), 20, 11), None);
    }

    /// Compares with a set of single blocks.
    #[test]
    fn block_set_is_a_set_of_blocks() {
        use rand::{Rng, RngExt, SeedableRng};
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(7);
        let (mut set, mut blocks) = (BlockSet::default(), BTreeSet::new());
        for step in 0..5000 {
            let (first, count) = (random.random_range(0..100u64), random.random_range(1..12u64));
            if random.next_u32() % 2 == 0 {
                set.insert(first, count);
                blocks.extend(first..first + count);
            } else {
                set.remove(first, count);
                blocks.retain(|block| !(first..first + count).contains(block));
            }
            let (at, length) = (random.random_range(0..110u64), random.random_range(0..9u64));
            let expected = blocks.range(at..at + length).next().copied();
            assert_eq!(set.first_in(at, length), expected, "seed 7, step {step}");
        }
    }
}
