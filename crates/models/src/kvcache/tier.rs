//! A tier: which chunks a worker's slots hold, and which one leaves for the next.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Which chunk leaves when there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Eviction {
    /// The one that was written first.
    Fifo,
    /// The one that was used least recently.
    Lru,
    /// The one that was used least often; of several, least recently.
    Lfu,
    /// As `fifo`; and after a time all leave.
    Ttl,
    /// The least recently used one that no stored chunk continues: a chunk never leaves before those behind it in a prompt, without which it
    /// would be of use, and they without it not.
    Prefix,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// A slot that holds a chunk.
#[derive(Debug, Clone, Copy)]
struct Slot {
    key: u64,
    /// Its place in the order of leaving: the least goes first.
    order: (u64, u64),
    written_ns: u64,
    /// The chunk before it in its prompt, and the number of stored ones behind it.
    parent: u32,
    children: u32,
}

/// Slots and what they hold.
#[derive(Debug)]
pub(super) struct Tier {
    eviction: Eviction,
    ttl_ns: u64,
    slots: Vec<Slot>,
    /// Slots that hold nothing, the next one last.
    free: Vec<u32>,
    index: FxHashMap<u64, u32>,
    /// Slots that may be taken, by their order.
    order: BTreeSet<(u64, u64, u32)>,
    /// Uses so far.
    ticks: u64,
}

/// A chunk has got a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) slot: u32,
    /// Another chunk has left it.
    pub(super) evicted: bool,
}

impl Tier {
    pub(super) fn new(slots: u32, eviction: Eviction, ttl_ns: u64) -> Tier {
        let empty = Slot {
            key: 0,
            order: (0, 0),
            written_ns: 0,
            parent: NONE,
            children: 0,
        };
        Tier {
            eviction,
            ttl_ns,
            slots: vec![empty; slots as usize],
            free: (0..slots).rev().collect(),
            index: FxHashMap::default(),
            order: BTreeSet::new(),
            ticks: 0,
        }
    }

    /// Chunks that are stored.
    pub(super) fn stored(&self) -> usize {
        self.index.len()
    }

    /// Keys of the stored chunks with their slots.
    #[cfg(test)]
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u64, u32)> {
        self.index.iter().map(|(key, slot)| (*key, *slot))
    }

    /// The key of the chunk that a stored one continues, if that is stored.
    #[cfg(test)]
    pub(super) fn parent(&self, slot: u32) -> Option<u64> {
        let parent = self.slots[slot as usize].parent;
        (parent != NONE).then(|| self.slots[parent as usize].key)
    }

    /// The slot of a chunk that is asked for, if it is stored.
    pub(super) fn use_of(&mut self, key: u64) -> Option<u32> {
        let slot = *self.index.get(&key)?;
        self.ticks += 1;
        let (uses, _) = self.slots[slot as usize].order;
        match self.eviction {
            Eviction::Fifo | Eviction::Ttl => {}
            Eviction::Lru | Eviction::Prefix => self.reorder(slot, (self.ticks, 0)),
            Eviction::Lfu => self.reorder(slot, (uses + 1, self.ticks)),
        }
        Some(slot)
    }

    /// Stores a chunk that is not there, behind another one of its prompt; none if nothing may leave for it.
    pub(super) fn store(&mut self, key: u64, parent: Option<u32>, now_ns: u64) -> Option<Stored> {
        let (slot, evicted) = match self.free.pop() {
            Some(slot) => (slot, false),
            None => {
                let victim = self.order.first()?.2;
                if self.eviction == Eviction::Prefix && Some(victim) == parent {
                    return None;
                }
                self.remove(victim);
                (victim, true)
            }
        };
        let parent = parent.filter(|_| self.eviction == Eviction::Prefix);
        self.ticks += 1;
        let order = match self.eviction {
            Eviction::Lfu => (1, self.ticks),
            _ => (self.ticks, 0),
        };
        self.slots[slot as usize] = Slot {
            key,
            order,
            written_ns: now_ns,
            parent: parent.unwrap_or(NONE),
            children: 0,
        };
        let before = self.index.insert(key, slot);
        assert!(
            before.is_none(),
            "chunk {key} is stored twice, in slots {before:?} and {slot}"
        );
        self.order.insert((order.0, order.1, slot));
        if let Some(parent) = parent {
            let held = &mut self.slots[parent as usize];
            if held.children == 0 {
                self.order.remove(&(held.order.0, held.order.1, parent));
            }
            held.children += 1;
        }
        Some(Stored { slot, evicted })
    }

    /// Chunks whose time is over leave; their slots go to `left`.
    pub(super) fn expire(&mut self, now_ns: u64, left: &mut Vec<u32>) {
        if self.eviction != Eviction::Ttl {
            return;
        }
        while let Some(&(_, _, slot)) = self.order.first() {
            if self.slots[slot as usize].written_ns.saturating_add(self.ttl_ns) > now_ns {
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
            assert!(
                held.children > 0,
                "slot {slot} may not be taken although nothing continues it"
            );
        }
    }

    /// Takes a chunk out; its slot is nobody's then.
    fn remove(&mut self, slot: u32) {
        let held = self.slots[slot as usize];
        assert!(held.children == 0, "slot {slot} leaves before what continues it");
        let (was_known, was_ordered) = (
            self.index.remove(&held.key),
            self.order.remove(&(held.order.0, held.order.1, slot)),
        );
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
