//! BlockCache, the engine for large items (LOC): a log of regions.
//!
//! ```text
//! item -> open region, in memory --full--> write of the whole region -> next clean region opens
//!                                            clean pool <- eviction of the next region in order
//! ```
//!
//! Rules from CacheLib: regions have 16 MiB, and one clean region is ready in advance. Eviction
//! removes whole regions in FIFO or LRU order. The initial eviction order is 0..N. Sources are
//! CacheLib docs, "Large Object Cache", and
//! navy/block_cache/{RegionManager,Allocator,BlockCache}.cpp. An entry has a descriptor of 32 bytes
//! and an alignment of at least 512 bytes. The alignment is larger if 32 bits of 512-byte units
//! cannot address the whole device.
//!
//! Without a clock, a flush completes when it begins. Only the open region then has data in memory.
//! The model has no reinsertion, no size classes and no readers that block the reuse of a region.

use std::collections::VecDeque;

use prefetch::prefetch;

use crate::cache::Index;

/// Descriptor of an entry, bytes.
const DESCRIPTOR_BYTES: u64 = 32;
/// Marks the absence of an item or region.
const NONE: u32 = u32::MAX;

/// Eviction order of regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionEviction {
    /// Evicts the oldest region, so the log is circular.
    Fifo,
    /// Evicts the least recently hit region.
    Lru,
}

#[derive(Debug, Clone, Copy)]
struct RegionItem {
    key: u64,
    /// Next item of the region, or next free entry.
    next: u32,
    /// Bytes of key and value.
    bytes: u32,
    /// Position in the cache, in units of the alignment.
    place: u32,
}

#[derive(Debug, Clone, Copy)]
struct CacheRegion {
    /// Items of the region, newest first.
    items: u32,
    newer: u32,
    older: u32,
    /// True if the region is in the eviction order. Otherwise it is clean or open.
    ordered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemLocation {
    /// Offset from the start of the cache.
    pub(super) offset_bytes: u64,
    /// Bytes with descriptor and alignment.
    pub(super) stored_bytes: u64,
    /// Bytes of key and value.
    pub(super) bytes: u32,
    /// True if the region is still in memory.
    pub(super) in_memory: bool,
}

/// State of all regions.
pub(super) struct BlockCache {
    region_bytes: u64,
    align_bytes: u64,
    eviction: RegionEviction,
    regions: Vec<CacheRegion>,
    newest: u32,
    oldest: u32,
    /// Empty regions. The first is used next.
    clean: VecDeque<u32>,
    open: u32,
    open_bytes: u64,
    index: Index,
    items: Vec<RegionItem>,
    free: u32,
}

impl BlockCache {
    /// Creates a cache. `regions` must exceed the number of clean regions by at least two.
    pub(super) fn new(
        regions: u64,
        region_bytes: u64,
        align_bytes: u64,
        clean_regions: u64,
        eviction: RegionEviction,
    ) -> BlockCache {
        assert!(regions >= clean_regions + 2, "one region is open and one can be evicted");
        assert!(regions * (region_bytes / align_bytes) <= u64::from(u32::MAX), "places fit 32 bits");
        let unordered = CacheRegion { items: NONE, newer: NONE, older: NONE, ordered: false };
        let mut cache = BlockCache {
            region_bytes,
            align_bytes,
            eviction,
            regions: vec![unordered; regions as usize],
            newest: NONE,
            oldest: NONE,
            clean: VecDeque::new(),
            open: 0,
            open_bytes: 0,
            index: Index::new(),
            items: Vec::new(),
            free: NONE,
        };
        for region in 0..regions as u32 {
            cache.link(region);
        }
        cache.open = cache.reclaim();
        for _ in 0..clean_regions {
            let region = cache.reclaim();
            cache.clean.push_back(region);
        }
        cache
    }

    /// Bytes that an item (key and value) occupies.
    pub(super) fn stored_bytes(&self, bytes: u32) -> u64 {
        (u64::from(bytes) + DESCRIPTOR_BYTES).next_multiple_of(self.align_bytes)
    }

    /// True if an item of this size (key and value) fits in a region.
    pub(super) fn fits(&self, bytes: u32) -> bool {
        self.stored_bytes(bytes) <= self.region_bytes
    }

    fn find(&self, key: u64) -> Option<u32> {
        self.index.find(Index::tag(key), |item| self.items[item as usize].key == key)
    }

    fn region_of(&self, item: RegionItem) -> u32 {
        (u64::from(item.place) * self.align_bytes / self.region_bytes) as u32
    }

    pub(super) fn prefetch_entry(&self, key: u64) {
        self.index.prefetch(Index::tag(key));
    }

    /// Prefetches the item of a key. Call it a moment after [`BlockCache::prefetch_entry`].
    pub(super) fn prefetch_item(&self, key: u64) {
        if let Some(item) = self.index.find(Index::tag(key), |_| true) {
            prefetch(&self.items, item as usize);
        }
    }

    /// True if the key is stored. Causes no read.
    pub(super) fn contains(&self, key: u64) -> bool {
        self.find(key).is_some()
    }

    /// Looks up a key. With LRU, a hit makes its region the most recently used.
    pub(super) fn touch(&mut self, key: u64) -> Option<ItemLocation> {
        let item = self.items[self.find(key)? as usize];
        let region = self.region_of(item);
        if self.eviction == RegionEviction::Lru && self.regions[region as usize].ordered && self.newest != region {
            self.unlink(region);
            self.link(region);
        }
        Some(ItemLocation {
            offset_bytes: u64::from(item.place) * self.align_bytes,
            stored_bytes: self.stored_bytes(item.bytes),
            bytes: item.bytes,
            in_memory: region == self.open,
        })
    }

    /// Adds an item. Returns the number of the previous open region if it was full and must be
    /// written.
    pub(super) fn insert(&mut self, key: u64, bytes: u32) -> Option<u64> {
        let size = self.stored_bytes(bytes);
        assert!(size <= self.region_bytes, "an item that is inserted fits a region");
        self.remove(key);
        let flushed = (self.open_bytes + size > self.region_bytes).then(|| self.change_region());
        let place = (u64::from(self.open) * self.region_bytes + self.open_bytes) / self.align_bytes;
        self.open_bytes += size;
        let new = RegionItem { key, next: self.regions[self.open as usize].items, bytes, place: place as u32 };
        let item = match self.free {
            NONE => {
                self.items.push(new);
                self.items.len() as u32 - 1
            }
            free => {
                self.free = self.items[free as usize].next;
                self.items[free as usize] = new;
                free
            }
        };
        self.regions[self.open as usize].items = item;
        self.index.insert(Index::tag(key), item);
        flushed
    }

    /// Removes a key. Returns true if it was stored. Its space is free after the eviction of its
    /// region.
    pub(super) fn remove(&mut self, key: u64) -> bool {
        let Some(item) = self.find(key) else { return false };
        self.index.remove(Index::tag(key), item);
        true
    }

    /// Closes the open region and opens a clean one. Returns the closed region.
    fn change_region(&mut self) -> u64 {
        let full = self.open;
        self.link(full);
        let clean = self.reclaim();
        self.clean.push_back(clean);
        self.open = self.clean.pop_front().expect("a region was just reclaimed");
        self.open_bytes = 0;
        u64::from(full)
    }

    /// Evicts the items of the next region in order.
    fn reclaim(&mut self) -> u32 {
        let region = self.oldest;
        self.unlink(region);
        let mut at = std::mem::replace(&mut self.regions[region as usize].items, NONE);
        while at != NONE {
            let RegionItem { key, next, .. } = self.items[at as usize];
            let tag = Index::tag(key);
            // The index no longer contains items that were removed or replaced.
            if self.index.find(tag, |other| other == at).is_some() {
                self.index.remove(tag, at);
            }
            self.items[at as usize].next = self.free;
            self.free = at;
            at = next;
        }
        region
    }

    fn unlink(&mut self, region: u32) {
        let CacheRegion { newer, older, .. } = self.regions[region as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.regions[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.regions[older as usize].newer = newer,
        }
        self.regions[region as usize].ordered = false;
    }

    /// Makes the region the last in the eviction order.
    fn link(&mut self, region: u32) {
        let before = self.newest;
        let entry = &mut self.regions[region as usize];
        (entry.newer, entry.older, entry.ordered) = (NONE, before, true);
        match before {
            NONE => self.oldest = region,
            before => self.regions[before as usize].newer = region,
        }
        self.newest = region;
    }
}

#[cfg(test)]
mod tests {
    use super::super::mix;
    use super::*;

    const REGION: u64 = 1 << 20;

    /// Inserts items of half a region until `regions` regions are flushed. Keys count up from
    /// `first`.
    fn flush(cache: &mut BlockCache, first: u64, regions: usize) -> Vec<u64> {
        let mut keys = (first..).map(mix);
        let flushes = std::iter::from_fn(|| Some(cache.insert(keys.next().unwrap(), 500_000)));
        flushes.flatten().take(regions).collect()
    }

    #[test]
    fn first_in_first_out_goes_round_whatever_is_hit() {
        let mut cache = BlockCache::new(7, REGION, 512, 2, RegionEviction::Fifo);
        let mut order = flush(&mut cache, 0, 10);
        assert!(cache.touch(mix(15)).is_some(), "hits do not count");
        order.extend(flush(&mut cache, 100, 10));
        let expected: Vec<u64> = (0..20).map(|number| number % 7).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn least_recently_used_spares_what_is_hit() {
        let mut cache = BlockCache::new(6, REGION, 512, 1, RegionEviction::Lru);
        // Region 0 has items 0 and 1, region 1 has items 2 and 3, and so on. After four flushes,
        // region 4 is open and region 5 is clean.
        assert_eq!(flush(&mut cache, 0, 4), [0, 1, 2, 3]);
        assert!(cache.touch(mix(0)).is_some());
        let order = flush(&mut cache, 100, 6);
        assert_eq!(order, [4, 5, 1, 2, 3, 0]);
    }

    #[test]
    fn an_evicted_region_takes_its_items_with_it() {
        let mut cache = BlockCache::new(4, REGION, 4096, 1, RegionEviction::Fifo);
        flush(&mut cache, 0, 2);
        // Regions 0 and 1 are written, region 2 is open, region 3 is clean. No region was evicted
        // yet.
        let held = |cache: &BlockCache| (0..8).filter(|number| cache.contains(mix(*number))).collect::<Vec<_>>();
        assert_eq!(held(&cache), [0, 1, 2, 3, 4]);
        assert!(cache.remove(mix(3)) && !cache.remove(mix(3)));
        flush(&mut cache, 5, 1);
        assert_eq!(held(&cache), [2, 4, 5, 6], "region 0 was made clean, region 3 was opened");
    }

    #[test]
    fn items_lie_where_their_region_is_and_a_new_value_replaces_the_old_one() {
        let mut cache = BlockCache::new(4, REGION, 512, 1, RegionEviction::Fifo);
        cache.insert(1, 1_000);
        cache.insert(2, 600_000);
        let found = cache.touch(2).unwrap();
        assert_eq!((found.offset_bytes, found.bytes, found.in_memory), (1_536, 600_000, true));
        assert_eq!(found.stored_bytes, 600_064);
        assert_eq!(cache.insert(2, 500_000), Some(0));
        let found = cache.touch(2).unwrap();
        assert_eq!((found.offset_bytes, found.bytes, found.in_memory), (REGION, 500_000, true));
        assert!(!cache.touch(1).unwrap().in_memory);
        assert!(cache.fits(REGION as u32 - 32) && !cache.fits(REGION as u32 - 31));
    }
}
