//! DRAM part of a cache: one LRU list.
//!
//! An item occupies its key, its value and a header. An item that no longer fits is evicted. The
//! caller decides if flash gets the evicted item. An item is *clean* if it came from flash and has
//! not changed since.
//!
//! The model has no slabs or allocation classes (a few percent of the space), no pools and no other
//! eviction policy of CacheLib.

use prefetch::prefetch;

use super::index::Index;

/// Header of an item in DRAM, bytes (CacheLib docs, "Overview": 31 bytes per item).
const HEADER_BYTES: u64 = 31;
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct DramItem {
    key: u64,
    /// Bytes of key and value, unused in a free entry.
    bytes: u32,
    newer: u32,
    /// In a free entry, the next free entry.
    older: u32,
    clean: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EvictedItem {
    /// Hash of its key.
    pub(crate) key: u64,
    /// Key and value.
    pub(crate) bytes: u32,
    /// True if the item came from flash and is unchanged.
    pub(crate) clean: bool,
}

/// Items in LRU order.
pub(crate) struct Dram {
    capacity_bytes: u64,
    used_bytes: u64,
    index: Index,
    items: Vec<DramItem>,
    free: u32,
    newest: u32,
    oldest: u32,
}

impl Dram {
    pub(crate) fn new(capacity_bytes: u64) -> Dram {
        Dram {
            capacity_bytes,
            used_bytes: 0,
            index: Index::new(),
            items: Vec::new(),
            free: NONE,
            newest: NONE,
            oldest: NONE,
        }
    }

    pub(crate) fn memory_bytes(capacity_bytes: u64, objects: u64) -> u64 {
        let items = objects.min(capacity_bytes / HEADER_BYTES + 1);
        items.saturating_mul(2 * size_of::<DramItem>() as u64 + Index::ITEM_BYTES)
    }

    pub(crate) fn prefetch_entry(&self, key: u64) {
        self.index.prefetch(Index::tag(key));
    }

    /// Prefetches the item of a key. Call it a moment after [`Dram::prefetch_entry`].
    pub(crate) fn prefetch_item(&self, key: u64) {
        if let Some(item) = self.index.find(Index::tag(key), |_| true) {
            prefetch(&self.items, item as usize);
        }
    }

    /// Prefetches the neighbours of a key in the LRU list. Call it a moment after
    /// [`Dram::prefetch_item`].
    pub(crate) fn prefetch_neighbours(&self, key: u64) {
        if let Some(item) = self.find(key) {
            let DramItem { newer, older, .. } = self.items[item as usize];
            prefetch(&self.items, newer as usize);
            prefetch(&self.items, older as usize);
        }
    }

    /// Keys of the second and third item that leave. Prefetches the item after them and the index
    /// entry of the third.
    pub(crate) fn prefetch_victims(&self) -> Option<[u64; 2]> {
        let newer = |item: u32| Some(self.items.get(item as usize)?.newer);
        let second = newer(self.oldest)?;
        let third = newer(second)?;
        prefetch(&self.items, newer(third)? as usize);
        let keys = [second, third].map(|item| self.items[item as usize].key);
        self.prefetch_entry(keys[1]);
        Some(keys)
    }

    fn find(&self, key: u64) -> Option<u32> {
        self.index.find(Index::tag(key), |item| self.items[item as usize].key == key)
    }

    /// Looks up a key. A hit becomes the most recently used item.
    pub(crate) fn touch(&mut self, key: u64) -> bool {
        let Some(item) = self.find(key) else { return false };
        if self.newest != item {
            self.unlink(item);
            self.link(item);
        }
        true
    }

    /// Removes a key. Returns its clean flag if the key was present.
    pub(crate) fn remove(&mut self, key: u64) -> Option<bool> {
        let item = self.find(key)?;
        let clean = self.items[item as usize].clean;
        self.release(item);
        Some(clean)
    }

    /// Adds a new key as the most recently used item. Call [`Dram::evict`] to remove excess items.
    pub(crate) fn insert(&mut self, key: u64, bytes: u32, clean: bool) {
        let new = DramItem { key, bytes, newer: NONE, older: NONE, clean };
        let item = match self.free {
            NONE => {
                self.items.push(new);
                self.items.len() as u32 - 1
            }
            free => {
                self.free = self.items[free as usize].older;
                self.items[free as usize] = new;
                free
            }
        };
        assert!(item < NONE, "DRAM holds at most 2^32 - 1 items");
        self.used_bytes += u64::from(bytes) + HEADER_BYTES;
        self.index.insert(Index::tag(key), item);
        self.link(item);
    }

    /// Evicts the least recently used item if the items exceed the capacity.
    pub(crate) fn evict(&mut self) -> Option<EvictedItem> {
        if self.used_bytes <= self.capacity_bytes {
            return None;
        }
        let DramItem { key, bytes, clean, .. } = self.items[self.oldest as usize];
        self.release(self.oldest);
        Some(EvictedItem { key, bytes, clean })
    }

    fn release(&mut self, item: u32) {
        let DramItem { key, bytes, .. } = self.items[item as usize];
        self.unlink(item);
        self.index.remove(Index::tag(key), item);
        self.used_bytes -= u64::from(bytes) + HEADER_BYTES;
        self.items[item as usize].older = self.free;
        self.free = item;
    }

    fn unlink(&mut self, item: u32) {
        let DramItem { newer, older, .. } = self.items[item as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.items[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.items[older as usize].newer = newer,
        }
    }

    /// Makes the item the most recently used.
    fn link(&mut self, item: u32) {
        let before = self.newest;
        self.items[item as usize].newer = NONE;
        self.items[item as usize].older = before;
        match before {
            NONE => self.oldest = item,
            before => self.items[before as usize].newer = item,
        }
        self.newest = item;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{expected_hits, zipf_weights};
    use workload::random::mix;

    #[test]
    fn the_least_recent_goes_first() {
        let mut dram = Dram::new(3 * (100 + HEADER_BYTES));
        for key in 1..=3 {
            dram.insert(key, 100, key == 2);
        }
        assert_eq!(dram.evict(), None);
        assert!(dram.touch(1) && !dram.touch(4));
        dram.insert(4, 100, false);
        let gone = EvictedItem { key: 2, bytes: 100, clean: true };
        assert_eq!(dram.evict(), Some(gone));
        assert_eq!(dram.evict(), None);
        assert_eq!(dram.remove(3), Some(false));
        assert_eq!(dram.remove(3), None);
        dram.insert(5, 500, false);
        let order: Vec<u64> = std::iter::from_fn(|| dram.evict()).map(|item| item.key).collect();
        assert_eq!(order, [1, 4, 5], "an item larger than the cache stays in it no longer than any other");
    }

    /// Hit ratio of an LRU list of `slots` keys with these weights.
    fn hit_ratio(weights: &[f64], slots: usize, lookups: usize) -> f64 {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let bounds: Vec<f64> = weights
            .iter()
            .map(|weight| {
                sum += weight / total;
                sum
            })
            .collect();
        let mut dram = Dram::new(slots as u64 * (10 + HEADER_BYTES));
        let mut hits = 0;
        for step in 0..2 * lookups {
            let random = (mix(step as u64 + 7) >> 11) as f64 / (1_u64 << 53) as f64;
            let key = mix(bounds.partition_point(|bound| *bound < random) as u64);
            if dram.touch(key) {
                hits += usize::from(step >= lookups);
            } else {
                dram.insert(key, 10, false);
                while dram.evict().is_some() {}
            }
        }
        hits as f64 / lookups as f64
    }

    #[test]
    fn hits_of_an_irm_zipf_stream_are_ches() {
        for (alpha, slots) in [(0.7, 2_000), (0.9, 5_000), (1.2, 500)] {
            let weights = zipf_weights(20_000, alpha);
            let (measured, expected) =
                (hit_ratio(&weights, slots, 300_000), expected_hits(slots as f64, &weights, false));
            assert!(
                (measured - expected).abs() < 0.01 * expected,
                "alpha {alpha}, {slots} slots: measured {measured}, Che {expected}"
            );
        }
    }
}
