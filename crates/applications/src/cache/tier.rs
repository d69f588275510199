//! A cache tier of fixed-size slots with an eviction order.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Eviction policy.
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

/// State of a slot.
#[derive(Debug, Clone, Copy)]
struct Slot {
    key: u64,
    /// Key in the eviction order. The smallest leaves first.
    order: (u64, u64),
    /// Expiry time.
    expires_ns: u64,
    /// True if the chunk was used since its write or its last skip.
    was_used: bool,
    /// Slot of the predecessor in the prompt, and number of stored successors.
    parent: u32,
    children: u32,
}

/// Slots with their chunks.
#[derive(Debug)]
pub(crate) struct Tier {
    eviction: TierEviction,
    slots: Vec<Slot>,
    /// Empty slots. The last one is used next.
    free: Vec<u32>,
    index: FxHashMap<u64, u32>,
    /// Evictable slots in eviction order.
    order: BTreeSet<(u64, u64, u32)>,
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
    pub(crate) fn new(slots: u32, eviction: TierEviction) -> Tier {
        let mut tier = Tier {
            eviction,
            slots: Vec::new(),
            free: Vec::new(),
            index: FxHashMap::default(),
            order: BTreeSet::new(),
            ticks: 0,
        };
        tier.grow(slots);
        tier
    }

    /// Adds `slots` empty slots at the end.
    pub(crate) fn grow(&mut self, slots: u32) {
        let empty = Slot { key: 0, order: (0, 0), expires_ns: u64::MAX, was_used: false, parent: NONE, children: 0 };
        let first = self.slots.len() as u32;
        assert!(slots < NONE - first, "a tier has less than 2^32 - 1 slots");
        self.slots.resize((first + slots) as usize, empty);
        self.free.extend((first..first + slots).rev());
    }

    /// True if the next store must evict a chunk.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Key of the chunk in a slot, or of the last one that left it.
    pub(crate) fn key(&self, slot: u32) -> u64 {
        self.slots[slot as usize].key
    }

    /// Expiry time of the chunk in a slot.
    pub(crate) fn expires_ns(&self, slot: u32) -> u64 {
        self.slots[slot as usize].expires_ns
    }

    /// Removes a stored chunk and returns its slot.
    pub(crate) fn take_slot(&mut self, key: u64) -> Option<u32> {
        let slot = *self.index.get(&key)?;
        self.remove(slot);
        self.free.push(slot);
        Some(slot)
    }

    /// Number of stored chunks.
    pub(crate) fn stored(&self) -> usize {
        self.index.len()
    }

    /// Keys of the stored chunks with their slots.
    #[cfg(test)]
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u64, u32)> {
        self.index.iter().map(|(key, slot)| (*key, *slot))
    }

    /// Key of the stored predecessor of a stored chunk.
    #[cfg(test)]
    pub(crate) fn parent(&self, slot: u32) -> Option<u64> {
        let parent = self.slots[slot as usize].parent;
        (parent != NONE).then(|| self.slots[parent as usize].key)
    }

    /// Looks up a chunk and counts a use. Returns its slot if it is stored.
    pub(crate) fn lookup(&mut self, key: u64) -> Option<u32> {
        let slot = *self.index.get(&key)?;
        self.ticks += 1;
        let (uses, _) = self.slots[slot as usize].order;
        match self.eviction {
            TierEviction::Fifo | TierEviction::Ttl => {}
            TierEviction::Lru | TierEviction::Prefix => self.reorder(slot, (self.ticks, 0)),
            TierEviction::Lfu => self.reorder(slot, (uses + 1, self.ticks)),
            TierEviction::Clock => self.slots[slot as usize].was_used = true,
        }
        Some(slot)
    }

    /// Selects the next victim.
    fn victim(&mut self) -> Option<u32> {
        loop {
            let slot = self.order.first()?.2;
            if !std::mem::take(&mut self.slots[slot as usize].was_used) {
                return Some(slot);
            }
            self.ticks += 1;
            self.reorder(slot, (self.ticks, 0));
        }
    }

    /// Stores a new chunk behind `parent` in its prompt. Returns `None` if no chunk may be evicted.
    pub(crate) fn store(&mut self, key: u64, parent: Option<u32>, expires_ns: u64) -> Option<ChunkInsertion> {
        let (slot, evicted) = match self.free.pop() {
            Some(slot) => (slot, None),
            None => {
                let victim = self.victim()?;
                if self.eviction == TierEviction::Prefix && Some(victim) == parent {
                    return None;
                }
                self.remove(victim);
                (victim, Some(self.slots[victim as usize].key))
            }
        };
        let parent = parent.filter(|_| self.eviction == TierEviction::Prefix);
        self.ticks += 1;
        let order = match self.eviction {
            TierEviction::Lfu => (1, self.ticks),
            TierEviction::Ttl => (expires_ns, self.ticks),
            _ => (self.ticks, 0),
        };
        self.slots[slot as usize] =
            Slot { key, order, expires_ns, was_used: false, parent: parent.unwrap_or(NONE), children: 0 };
        let before = self.index.insert(key, slot);
        assert!(before.is_none(), "chunk {key} is stored twice, in slots {before:?} and {slot}");
        self.order.insert((order.0, order.1, slot));
        if let Some(parent) = parent {
            let held = &mut self.slots[parent as usize];
            if held.children == 0 {
                self.order.remove(&(held.order.0, held.order.1, parent));
            }
            held.children += 1;
        }
        Some(ChunkInsertion { slot, evicted })
    }

    /// Removes all expired chunks and appends their slots to `left`.
    pub(crate) fn expire(&mut self, now_ns: u64, left: &mut Vec<u32>) {
        if self.eviction != TierEviction::Ttl {
            return;
        }
        while let Some(&(_, _, slot)) = self.order.first() {
            if self.slots[slot as usize].expires_ns > now_ns {
                return;
            }
            self.remove(slot);
            self.free.push(slot);
            left.push(slot);
        }
    }

    fn reorder(&mut self, slot: u32, order: (u64, u64)) {
        let held = &mut self.slots[slot as usize];
        let before = std::mem::replace(&mut held.order, order);
        if self.order.remove(&(before.0, before.1, slot)) {
            self.order.insert((order.0, order.1, slot));
        } else {
            assert!(held.children > 0, "slot {slot} may not be taken although nothing continues it");
        }
    }

    /// Removes a chunk. Its slot is then neither free nor in use.
    fn remove(&mut self, slot: u32) {
        let held = self.slots[slot as usize];
        assert!(held.children == 0, "slot {slot} leaves before what continues it");
        let (was_known, was_ordered) =
            (self.index.remove(&held.key), self.order.remove(&(held.order.0, held.order.1, slot)));
        assert!(
            was_known == Some(slot) && was_ordered,
            "slot {slot} of chunk {} is in the index and in the order",
            held.key
        );
        if held.parent != NONE {
            let parent = &mut self.slots[held.parent as usize];
            parent.children -= 1;
            if parent.children == 0 {
                self.order.insert((parent.order.0, parent.order.1, held.parent));
            }
        }
    }
}
