//! A cache tier of slots with an eviction order.
//!
//! ```text
//! key -> index -> slot -> list of its rank: oldest <-> ... <-> newest
//!                 class: ranks in ascending order, and its empty slots
//! ```
//!
//! Slots belong to classes, and each class evicts its own chunks. The slot with the smallest rank
//! leaves first, and among equal ranks the one that entered the list first. With `fifo`, `lru` and
//! `clock` all slots have the same rank, so an operation takes constant time.

use std::collections::BTreeMap;

use prefetch::prefetch;
use serde::{Deserialize, Serialize};

use super::index::Index;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierEviction {
    /// Evicts the oldest chunk.
    Fifo,
    /// Evicts the least recently used chunk.
    Lru,
    /// Evicts the least frequently used chunk. Ties go to the least recently used.
    Lfu,
    /// Evicts the chunk that expires first. Every chunk leaves when it expires.
    Ttl,
    /// Evicts in write order, but skips each chunk used since its write or its last skip (CLOCK,
    /// second chance).
    Clock,
    /// Evicts the least recently used chunk without a stored successor. A chunk of a prompt is
    /// useless without its predecessors, so it never outlives them.
    Prefix,
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Slot {
    key: u64,
    /// Rank in the eviction order. The smallest leaves first.
    rank: u64,
    /// Neighbours in the list of the rank. In an empty slot, `newer` is the next empty slot.
    newer: u32,
    older: u32,
    class: u16,
    /// True if the chunk was used since its write or its last skip.
    was_used: bool,
}

#[derive(Debug, Clone, Copy)]
struct PromptLink {
    /// Slot of the predecessor.
    parent: u32,
    /// Number of stored successors. A chunk with successors is not evictable.
    children: u32,
}

/// Slots of the same rank.
#[derive(Debug, Clone, Copy)]
struct SlotList {
    oldest: u32,
    newest: u32,
}

#[derive(Clone)]
struct TierClass {
    /// First empty slot, which is used next.
    free: u32,
    /// Evictable slots by rank.
    order: BTreeMap<u64, SlotList>,
}

/// Slots with their chunks.
pub(crate) struct Tier {
    eviction: TierEviction,
    slots: Vec<Slot>,
    /// Links of the slots, with [`TierEviction::Prefix`] only.
    links: Vec<PromptLink>,
    classes: Vec<TierClass>,
    index: Index,
    /// Number of uses so far.
    ticks: u64,
}

/// Result of storing a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkInsertion {
    pub(crate) slot: u32,
    /// Key of the chunk that was evicted from the slot.
    pub(crate) evicted: Option<u64>,
}

impl Tier {
    /// Creates a tier without slots.
    pub(crate) fn new(classes: usize, eviction: TierEviction) -> Tier {
        assert!(classes <= usize::from(u16::MAX), "a tier has less than 2^16 classes");
        Tier {
            eviction,
            slots: Vec::new(),
            links: Vec::new(),
            classes: vec![TierClass { free: NONE, order: BTreeMap::new() }; classes],
            index: Index::new(),
            ticks: 0,
        }
    }

    /// Adds `count` empty slots at the end, which belong to a class.
    pub(crate) fn grow(&mut self, class: usize, count: u32) {
        let first = self.slots.len() as u32;
        assert!(count > 0 && count < NONE - first, "a tier grows, to less than 2^32 - 1 slots");
        let end = first + count;
        let mut empty = Slot { key: 0, rank: 0, newer: NONE, older: NONE, class: class as u16, was_used: false };
        let before = std::mem::replace(&mut self.classes[class].free, first);
        self.slots.extend((first..end).map(|slot| {
            empty.newer = if slot + 1 < end { slot + 1 } else { before };
            empty
        }));
        if self.eviction == TierEviction::Prefix {
            self.links.resize(end as usize, PromptLink { parent: NONE, children: 0 });
        }
    }

    /// True if the next store of a class must evict a chunk.
    pub(crate) fn is_full(&self, class: usize) -> bool {
        self.classes[class].free == NONE
    }

    /// Removes a stored chunk and returns its slot.
    pub(crate) fn take_slot(&mut self, key: u64) -> Option<u32> {
        let slot = self.find(key)?;
        self.remove(slot);
        self.release(slot);
        Some(slot)
    }

    pub(crate) fn stored(&self) -> usize {
        self.index.items()
    }

    /// Keys of the stored chunks with their slots.
    #[cfg(test)]
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u64, u32)> {
        let chunks = self.slots.iter().zip(0..).map(|(slot, number)| (slot.key, number));
        chunks.filter(|(key, number)| self.find(*key) == Some(*number))
    }

    /// Key of the stored predecessor of a stored chunk.
    #[cfg(test)]
    pub(crate) fn parent(&self, slot: u32) -> Option<u64> {
        let parent = self.links.get(slot as usize)?.parent;
        (parent != NONE).then(|| self.slots[parent as usize].key)
    }

    pub(crate) fn prefetch_entry(&self, key: u64) {
        self.index.prefetch(Index::tag(key));
    }

    /// Prefetches the slot of a key, and returns its number. Call it a moment after
    /// [`Tier::prefetch_entry`].
    pub(crate) fn prefetch_slot(&self, key: u64) -> Option<u32> {
        let slot = self.index.find(Index::tag(key), |_| true)?;
        prefetch(&self.slots, slot as usize);
        Some(slot)
    }

    /// Prefetches the neighbours of a key's slot in the eviction order. Call it a moment after
    /// [`Tier::prefetch_slot`].
    pub(crate) fn prefetch_neighbours(&self, key: u64) {
        if let Some(slot) = self.find(key) {
            let Slot { newer, older, .. } = self.slots[slot as usize];
            prefetch(&self.slots, newer as usize);
            prefetch(&self.slots, older as usize);
        }
    }

    /// Slot of a stored chunk. Counts no use.
    pub(crate) fn find(&self, key: u64) -> Option<u32> {
        self.index.find(Index::tag(key), |slot| self.slots[slot as usize].key == key)
    }

    /// Looks up a chunk and counts a use. Returns its slot if it is stored.
    pub(crate) fn lookup(&mut self, key: u64) -> Option<u32> {
        let slot = self.find(key)?;
        self.ticks += 1;
        let rank = self.slots[slot as usize].rank;
        match self.eviction {
            TierEviction::Fifo | TierEviction::Ttl => {}
            TierEviction::Lru => self.reorder(slot, rank),
            TierEviction::Lfu => self.reorder(slot, rank + 1),
            TierEviction::Prefix => self.reorder(slot, self.ticks),
            TierEviction::Clock => self.slots[slot as usize].was_used = true,
        }
        Some(slot)
    }

    /// First slot in the eviction order of a class.
    fn first(&self, class: usize) -> Option<u32> {
        self.classes[class].order.first_key_value().map(|(_, list)| list.oldest)
    }

    /// Selects the next victim of a class.
    fn victim(&mut self, class: usize) -> Option<u32> {
        loop {
            let slot = self.first(class)?;
            let held = &mut self.slots[slot as usize];
            let rank = held.rank;
            if !std::mem::take(&mut held.was_used) {
                return Some(slot);
            }
            self.reorder(slot, rank);
        }
    }

    /// Stores a new chunk in a slot of the class, behind `parent` in its prompt. Returns `None` if
    /// no chunk may be evicted.
    pub(crate) fn store(
        &mut self,
        class: usize,
        key: u64,
        parent: Option<u32>,
        expires_ns: u64,
    ) -> Option<ChunkInsertion> {
        let (slot, evicted) = match self.classes[class].free {
            NONE => {
                let victim = self.victim(class)?;
                if self.eviction == TierEviction::Prefix && Some(victim) == parent {
                    return None;
                }
                self.remove(victim);
                (victim, Some(self.slots[victim as usize].key))
            }
            free => {
                self.classes[class].free = self.slots[free as usize].newer;
                (free, None)
            }
        };
        assert!(self.find(key).is_none(), "chunk {key} is stored twice");
        self.ticks += 1;
        let rank = match self.eviction {
            TierEviction::Fifo | TierEviction::Lru | TierEviction::Clock => 0,
            TierEviction::Lfu => 1,
            TierEviction::Ttl => expires_ns,
            TierEviction::Prefix => self.ticks,
        };
        let held = &mut self.slots[slot as usize];
        (held.key, held.rank, held.was_used) = (key, rank, false);
        self.index.insert(Index::tag(key), slot);
        self.link(slot);
        if self.eviction == TierEviction::Prefix {
            self.links[slot as usize] = PromptLink { parent: parent.unwrap_or(NONE), children: 0 };
            if let Some(parent) = parent {
                self.links[parent as usize].children += 1;
                if self.links[parent as usize].children == 1 {
                    self.unlink(parent);
                }
            }
        }
        Some(ChunkInsertion { slot, evicted })
    }

    /// Removes all expired chunks of a class. Appends their slots to `left`.
    pub(crate) fn expire(&mut self, class: usize, now_ns: u64, left: &mut Vec<u32>) {
        if self.eviction != TierEviction::Ttl {
            return;
        }
        while let Some(slot) = self.first(class).filter(|slot| self.slots[*slot as usize].rank <= now_ns) {
            self.remove(slot);
            self.release(slot);
            left.push(slot);
        }
    }

    /// True if the chunk has no stored successor.
    fn is_evictable(&self, slot: u32) -> bool {
        self.links.get(slot as usize).is_none_or(|link| link.children == 0)
    }

    /// Makes the slot the newest of its rank.
    fn link(&mut self, slot: u32) {
        let Slot { rank, class, .. } = self.slots[slot as usize];
        let lists = &mut self.classes[usize::from(class)].order;
        let list = lists.entry(rank).or_insert(SlotList { oldest: slot, newest: NONE });
        let before = std::mem::replace(&mut list.newest, slot);
        if before != NONE {
            self.slots[before as usize].newer = slot;
        }
        let held = &mut self.slots[slot as usize];
        (held.newer, held.older) = (NONE, before);
    }

    /// Removes the slot from the eviction order.
    fn unlink(&mut self, slot: u32) {
        let Slot { rank, class, newer, older, .. } = self.slots[slot as usize];
        if newer != NONE && older != NONE {
            self.slots[newer as usize].older = older;
            self.slots[older as usize].newer = newer;
            return;
        }
        let lists = &mut self.classes[usize::from(class)].order;
        let list = lists.get_mut(&rank).expect("an evictable slot is in the list of its rank");
        match (older, newer) {
            (NONE, NONE) => {
                assert!((list.oldest, list.newest) == (slot, slot), "slot {slot} is in the order");
                lists.remove(&rank);
            }
            (NONE, newer) => {
                list.oldest = newer;
                self.slots[newer as usize].older = NONE;
            }
            (older, _) => {
                list.newest = older;
                self.slots[older as usize].newer = NONE;
            }
        }
    }

    /// Makes the slot the newest of a rank.
    fn reorder(&mut self, slot: u32, rank: u64) {
        let is_evictable = self.is_evictable(slot);
        if is_evictable {
            self.unlink(slot);
        }
        self.slots[slot as usize].rank = rank;
        if is_evictable {
            self.link(slot);
        }
    }

    /// Removes a chunk. Its slot is then neither free nor in use.
    fn remove(&mut self, slot: u32) {
        assert!(self.is_evictable(slot), "slot {slot} leaves before what continues it");
        self.index.remove(Index::tag(self.slots[slot as usize].key), slot);
        self.unlink(slot);
        let Some(PromptLink { parent, .. }) = self.links.get(slot as usize).copied() else { return };
        if parent != NONE {
            self.links[parent as usize].children -= 1;
            if self.links[parent as usize].children == 0 {
                self.link(parent);
            }
        }
    }

    /// Frees a slot whose chunk has left.
    fn release(&mut self, slot: u32) {
        let held = &mut self.slots[slot as usize];
        held.newer = std::mem::replace(&mut self.classes[usize::from(held.class)].free, slot);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use workload::random::mix;

    /// A chunk of a cache that searches all chunks for the next victim.
    struct Held {
        class: usize,
        order: (u64, u64),
        was_used: bool,
        parent: Option<u64>,
    }

    #[derive(Default)]
    struct Searched {
        chunks: HashMap<u64, Held>,
        ticks: u64,
    }

    impl Searched {
        fn first(&self, class: usize) -> Option<u64> {
            let has_child = |key: u64| self.chunks.values().any(|held| held.parent == Some(key));
            let chunks = self.chunks.iter().filter(|(key, held)| held.class == class && !has_child(**key));
            chunks.min_by_key(|(_, held)| held.order).map(|(key, _)| *key)
        }

        fn victim(&mut self, class: usize) -> Option<u64> {
            loop {
                let key = self.first(class)?;
                let held = self.chunks.get_mut(&key)?;
                if !std::mem::take(&mut held.was_used) {
                    return Some(key);
                }
                self.ticks += 1;
                held.order = (self.ticks, 0);
            }
        }

        fn lookup(&mut self, key: u64, eviction: TierEviction) -> bool {
            self.ticks += 1;
            let Some(held) = self.chunks.get_mut(&key) else { return false };
            match eviction {
                TierEviction::Fifo | TierEviction::Ttl => {}
                TierEviction::Lru | TierEviction::Prefix => held.order = (self.ticks, 0),
                TierEviction::Lfu => held.order = (held.order.0 + 1, self.ticks),
                TierEviction::Clock => held.was_used = true,
            }
            true
        }
    }

    #[test]
    fn chunks_leave_in_the_order_of_a_search_over_all_of_them() {
        use TierEviction::{Clock, Fifo, Lfu, Lru, Prefix, Ttl};
        const CLASS_SLOTS: u32 = 24;
        for eviction in [Fifo, Lru, Lfu, Ttl, Clock, Prefix] {
            let (mut tier, mut model) = (Tier::new(2, eviction), Searched::default());
            // The classes get their slots in turns.
            (0..CLASS_SLOTS / 8).for_each(|_| [0, 1].into_iter().for_each(|class| tier.grow(class, 8)));
            let (mut last, mut evictions) = ([None; 2], 0);
            for step in 0..4_000_u64 {
                let random = mix(step);
                let (key, class) = (random % 150, (random % 150 % 2) as usize);
                let expires_ns = step + (random >> 32) % 200;
                let mut left = Vec::new();
                tier.expire(class, step, &mut left);
                model.chunks.retain(|_, held| eviction != Ttl || held.class != class || held.order.0 > step);
                let has_child = model.chunks.values().any(|held| held.parent == Some(key));
                if random >> 60 == 0 && !has_child {
                    let was_there = model.chunks.remove(&key).is_some();
                    assert_eq!(tier.take_slot(key).is_some(), was_there, "{eviction:?}, step {step}");
                } else if model.lookup(key, eviction) {
                    let slot = tier.lookup(key).expect("the model has it");
                    assert_eq!(usize::from(tier.slots[slot as usize].class), class);
                    last[class] = Some(key);
                    continue;
                } else {
                    assert_eq!(tier.lookup(key), None, "{eviction:?}, step {step}");
                    let parent = last[class].filter(|key| eviction == Prefix && model.chunks.contains_key(key));
                    let slot = parent.and_then(|key| tier.find(key));
                    let in_class = model.chunks.values().filter(|held| held.class == class).count();
                    assert_eq!(tier.is_full(class), in_class == CLASS_SLOTS as usize);
                    let victim = if tier.is_full(class) { model.victim(class) } else { None };
                    let stored = tier.store(class, key, slot, expires_ns);
                    if victim.is_some() && victim == parent {
                        assert_eq!(stored, None);
                        last[class] = None;
                        continue;
                    }
                    assert_eq!(stored.expect("there is room").evicted, victim, "{eviction:?}, step {step}");
                    if let Some(victim) = victim {
                        model.chunks.remove(&victim);
                        evictions += 1;
                    }
                    model.ticks += 1;
                    let order = match eviction {
                        Lfu => (1, model.ticks),
                        Ttl => (expires_ns, model.ticks),
                        _ => (model.ticks, 0),
                    };
                    model.chunks.insert(key, Held { class, order, was_used: false, parent });
                    last[class] = Some(key);
                }
                assert_eq!(tier.stored(), model.chunks.len(), "{eviction:?}, step {step}");
            }
            assert!(evictions > 50, "{eviction:?}: {evictions}");
        }
    }
}
