//! Slot store: objects in slots of size classes, overwritten in place.
//!
//! A slab belongs to its class forever, as in memcached without its slab mover. An object whose new
//! size belongs to another class moves to a slot of that class.

use rustc_hash::FxHashMap;

use super::groups::GroupSorter;
use super::object::{CacheObject, ObjectCounters};
use super::output::ObjectOutput;
use crate::cache::{Tier, TierEviction};

/// Slots of one size.
#[derive(Debug)]
pub(super) struct SlotClass {
    slot_bytes: u64,
    slots_of_slab: u32,
    pub(super) tier: Tier,
    /// Numbers of the class's slabs.
    slabs: Vec<u32>,
    /// Sizes of the objects in the slots, bytes.
    bytes: Vec<u32>,
}

impl SlotClass {
    /// Offset of a slot.
    pub(super) fn offset_bytes(&self, slot: u32, slab_bytes: u64) -> u64 {
        let slab = self.slabs[(slot / self.slots_of_slab) as usize];
        u64::from(slab) * slab_bytes + u64::from(slot % self.slots_of_slab) * self.slot_bytes
    }
}

#[cfg(test)]
impl SlotClass {
    /// Size of the object in a slot, bytes.
    pub(super) fn bytes_of(&self, slot: u32) -> u64 {
        self.bytes[slot as usize].into()
    }
}

/// Store of objects in slots.
#[derive(Debug)]
pub(super) struct SlotStore {
    eviction: TierEviction,
    pub(super) classes: Vec<SlotClass>,
    /// Class of each stored object.
    pub(super) homes: FxHashMap<u64, u16>,
    pub(super) slab_bytes: u64,
    slabs: u32,
    slabs_taken: u32,
    left: Vec<u32>,
}

impl SlotStore {
    pub(super) fn new(class_bytes: &[u64], slab_bytes: u64, slabs: u32, eviction: TierEviction) -> SlotStore {
        let class = |slot_bytes: &u64| SlotClass {
            slot_bytes: *slot_bytes,
            slots_of_slab: (slab_bytes / slot_bytes) as u32,
            tier: Tier::new(0, eviction),
            slabs: Vec::new(),
            bytes: Vec::new(),
        };
        let classes: Vec<SlotClass> = class_bytes.iter().map(class).collect();
        assert!(
            classes.iter().all(|class| class.slots_of_slab > 0),
            "a slab of {slab_bytes} bytes holds a slot of each class"
        );
        SlotStore {
            eviction,
            classes,
            homes: FxHashMap::default(),
            slab_bytes,
            slabs,
            slabs_taken: 0,
            left: Vec::new(),
        }
    }

    /// Number of stored objects.
    pub(super) fn stored(&self) -> usize {
        self.homes.len()
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.homes.contains_key(&key)
    }

    /// Looks up an object and counts a use. Returns its size if it is stored and has not expired.
    pub(super) fn lookup(
        &mut self,
        key: u64,
        now_ns: u64,
        counters: &mut ObjectCounters,
        output: &mut ObjectOutput,
    ) -> Option<u32> {
        let class = &mut self.classes[usize::from(*self.homes.get(&key)?)];
        let slot = class.tier.lookup(key);
        let slot = slot.expect("an object with a class is in a slot of it");
        if class.tier.expires_ns(slot) <= now_ns {
            counters.expired += 1;
            self.remove(key, counters, output);
            return None;
        }
        let bytes = class.bytes[slot as usize];
        output.read(class.offset_bytes(slot, self.slab_bytes), bytes);
        Some(bytes)
    }

    /// Removes an object if it is stored.
    pub(super) fn remove(&mut self, key: u64, counters: &mut ObjectCounters, output: &mut ObjectOutput) {
        let Some(home) = self.homes.remove(&key) else { return };
        let slot = self.classes[usize::from(home)].tier.take_slot(key);
        self.clear_slot(usize::from(home), slot.expect("it is in a slot of its class"), counters, output);
    }

    /// Clears the slot of an object that has left.
    fn clear_slot(&mut self, class: usize, slot: u32, counters: &mut ObjectCounters, output: &mut ObjectOutput) {
        let class = &mut self.classes[class];
        let bytes = std::mem::take(&mut class.bytes[slot as usize]);
        counters.stored_bytes -= u64::from(bytes);
        output.discard(class.offset_bytes(slot, self.slab_bytes), output.whole(bytes));
    }

    /// Stores a new object.
    pub(super) fn store(
        &mut self,
        object: CacheObject,
        sorter: &GroupSorter,
        counters: &mut ObjectCounters,
        output: &mut ObjectOutput,
    ) {
        let home = sorter.class(object.bytes);
        let class = &mut self.classes[home];
        if class.tier.is_full() && self.slabs_taken < self.slabs {
            class.slabs.push(self.slabs_taken);
            class.tier.grow(class.slots_of_slab);
            class.bytes.resize(class.slabs.len() * class.slots_of_slab as usize, 0);
            self.slabs_taken += 1;
        }
        let Some(stored) = class.tier.store(object.key, None, object.expires_ns) else {
            counters.without_slot += 1;
            return;
        };
        if let Some(evicted) = stored.evicted {
            counters.evictions += 1;
            let was_home = self.homes.remove(&evicted);
            assert_eq!(was_home, Some(home as u16), "an evicted object was in its class");
        }
        let before = std::mem::replace(&mut class.bytes[stored.slot as usize], object.bytes);
        assert_eq!(before > 0, stored.evicted.is_some(), "a free slot holds nothing");
        counters.stored_bytes = counters.stored_bytes + u64::from(object.bytes) - u64::from(before);
        self.homes.insert(object.key, home as u16);
        let offset_bytes = class.offset_bytes(stored.slot, self.slab_bytes);
        let group = sorter.group(object.key, object.bytes, false);
        output.write(group, offset_bytes, output.whole(object.bytes));
    }

    /// Removes expired objects, if the eviction policy is `ttl`.
    pub(super) fn expire(&mut self, now_ns: u64, counters: &mut ObjectCounters, output: &mut ObjectOutput) {
        if self.eviction != TierEviction::Ttl {
            return;
        }
        for at in 0..self.classes.len() {
            let mut left = std::mem::take(&mut self.left);
            self.classes[at].tier.expire(now_ns, &mut left);
            counters.expired += left.len() as u64;
            for slot in left.drain(..) {
                let key = self.classes[at].tier.key(slot);
                let home = self.homes.remove(&key);
                assert_eq!(home, Some(at as u16), "an expired object was in its class");
                self.clear_slot(at, slot, counters, output);
            }
            self.left = left;
        }
    }
}
