//! Slot store: objects in slots of size classes, overwritten in place.
//!
//! A slab belongs to its class forever, as in memcached without its slab mover. An object whose new
//! size belongs to another class moves to a slot of that class.

use prefetch::prefetch;

use super::groups::GroupSorter;
use super::output::{CacheObject, ObjectOutput};
use crate::cache::{Tier, TierEviction};

struct SlotClass {
    slot_bytes: u64,
    slots_of_slab: u32,
}

/// A slab of the drive that a class has taken.
#[derive(Debug, Clone, Copy)]
struct Slab {
    first_slot: u32,
    slot_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectSlot {
    expires_ns: u64,
    /// Size of the object, or 0 in an empty slot.
    pub(super) bytes: u32,
    slab: u32,
}

pub(super) struct SlotStore {
    eviction: TierEviction,
    classes: Vec<SlotClass>,
    /// Slots of all classes with the keys of their objects, slab after slab.
    pub(super) tier: Tier,
    pub(super) slots: Vec<ObjectSlot>,
    slab_bytes: u64,
    /// Slabs that the classes have taken, and their maximum number.
    slabs: Vec<Slab>,
    slabs_max: u32,
    left: Vec<u32>,
}

impl SlotStore {
    pub(super) fn new(class_bytes: &[u64], slab_bytes: u64, slabs_max: u32, eviction: TierEviction) -> SlotStore {
        let class =
            |slot_bytes: &u64| SlotClass { slot_bytes: *slot_bytes, slots_of_slab: (slab_bytes / slot_bytes) as u32 };
        let classes: Vec<SlotClass> = class_bytes.iter().map(class).collect();
        assert!(
            classes.iter().all(|class| class.slots_of_slab > 0),
            "a slab of {slab_bytes} bytes holds a slot of each class"
        );
        SlotStore {
            eviction,
            tier: Tier::new(classes.len(), eviction),
            classes,
            slots: Vec::new(),
            slab_bytes,
            slabs: Vec::new(),
            slabs_max,
            left: Vec::new(),
        }
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.tier.find(key).is_some()
    }

    pub(super) fn offset_bytes(&self, slot: u32) -> u64 {
        let number = self.slots[slot as usize].slab;
        let slab = self.slabs[number as usize];
        u64::from(number) * self.slab_bytes + u64::from(slot - slab.first_slot) * slab.slot_bytes
    }

    /// Looks up an object and counts a use. Returns its size if it is stored and has not expired.
    pub(super) fn lookup(&mut self, key: u64, now_ns: u64, output: &mut ObjectOutput) -> Option<u32> {
        let slot = self.tier.lookup(key)?;
        let ObjectSlot { bytes, expires_ns, .. } = self.slots[slot as usize];
        if expires_ns <= now_ns {
            output.counters.expired += 1;
            self.remove(key, output);
            return None;
        }
        output.read(self.offset_bytes(slot), bytes);
        Some(bytes)
    }

    pub(super) fn remove(&mut self, key: u64, output: &mut ObjectOutput) {
        if let Some(slot) = self.tier.take_slot(key) {
            self.clear_slot(slot, output);
        }
    }

    /// Clears the slot of an object that has left.
    fn clear_slot(&mut self, slot: u32, output: &mut ObjectOutput) {
        let bytes = std::mem::take(&mut self.slots[slot as usize].bytes);
        output.counters.stored_bytes -= u64::from(bytes);
        output.discard(self.offset_bytes(slot), output.whole(bytes));
    }

    /// Gives the next slab to a class.
    fn take_slab(&mut self, home: usize) {
        let SlotClass { slot_bytes, slots_of_slab } = self.classes[home];
        let empty = ObjectSlot { expires_ns: u64::MAX, bytes: 0, slab: self.slabs.len() as u32 };
        self.slabs.push(Slab { first_slot: self.slots.len() as u32, slot_bytes });
        self.tier.grow(home, slots_of_slab);
        self.slots.resize(self.slots.len() + slots_of_slab as usize, empty);
    }

    pub(super) fn store(&mut self, object: CacheObject, sorter: &GroupSorter, output: &mut ObjectOutput) {
        let home = sorter.class(object.bytes);
        if self.tier.is_full(home) && self.slabs.len() < self.slabs_max as usize {
            self.take_slab(home);
        }
        let Some(stored) = self.tier.store(home, object.key, None, object.expires_ns) else {
            output.counters.without_slot += 1;
            return;
        };
        output.counters.evictions += u64::from(stored.evicted.is_some());
        let held = &mut self.slots[stored.slot as usize];
        held.expires_ns = object.expires_ns;
        let before = std::mem::replace(&mut held.bytes, object.bytes);
        assert_eq!(before > 0, stored.evicted.is_some(), "a free slot holds nothing");
        output.counters.stored_bytes = output.counters.stored_bytes + u64::from(object.bytes) - u64::from(before);
        let group = sorter.group(object.key, object.bytes, false);
        output.write(group, self.offset_bytes(stored.slot), output.whole(object.bytes));
    }

    /// Removes expired objects, if the eviction policy is `ttl`.
    pub(super) fn expire(&mut self, now_ns: u64, output: &mut ObjectOutput) {
        if self.eviction != TierEviction::Ttl {
            return;
        }
        let mut left = std::mem::take(&mut self.left);
        for class in 0..self.classes.len() {
            self.tier.expire(class, now_ns, &mut left);
        }
        output.counters.expired += left.len() as u64;
        for slot in left.drain(..) {
            self.clear_slot(slot, output);
        }
        self.left = left;
    }

    /// Prefetches the memory of the next operations in steps, each of which needs the one before.
    pub(super) fn prefetch(&self, keys: impl Iterator<Item = u64> + Clone) {
        keys.clone().for_each(|key| self.tier.prefetch_entry(key));
        for key in keys.clone() {
            if let Some(slot) = self.tier.prefetch_slot(key) {
                prefetch(&self.slots, slot as usize);
            }
        }
        keys.for_each(|key| self.tier.prefetch_neighbours(key));
    }
}
