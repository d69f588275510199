//! Open-addressing index from the hash of a key to the number of an item in an array.
//!
//! A slot has 8 bytes: a 32-bit tag from the hash and the item's number. The position of a slot
//! follows from its tag, so growth and removal touch only slots. Collisions use linear probing.
//! Removal shifts later slots back, so there are no tombstones and lookups stay short.
//!
//! The index stores no keys. The caller compares the key of each item that a tag leads to.

const SLOTS_MIN: usize = 1 << 10;

/// Map from tags to item numbers.
pub(crate) struct Index {
    /// 0 if empty, otherwise tag << 32 | number + 1.
    slots: Vec<u64>,
    /// Bits of a tag below its position.
    shift: u32,
    used: usize,
}

impl Index {
    /// Maximum bytes per item, during a doubling at 3/4 load: 8/3 new slots and 4/3 old ones.
    pub(crate) const ITEM_BYTES: u64 = 4 * size_of::<u64>() as u64;

    pub(crate) fn new() -> Index {
        Index { slots: vec![0; SLOTS_MIN], shift: 32 - SLOTS_MIN.trailing_zeros(), used: 0 }
    }

    pub(crate) fn items(&self) -> usize {
        self.used
    }

    /// Prefetches the slot where the search for a tag begins.
    pub(crate) fn prefetch(&self, tag: u32) {
        prefetch::prefetch(&self.slots, (tag >> self.shift) as usize);
    }

    /// Tag of a key's hash. It uses bits that bucket numbers and fingerprints do not use.
    pub(crate) fn tag(key: u64) -> u32 {
        (key.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32
    }

    fn place(&self, slot: u64) -> usize {
        ((slot >> 32) as u32 >> self.shift) as usize
    }

    /// Position of the slot with this tag and an item that passes the test.
    fn position(&self, tag: u32, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = (tag >> self.shift) as usize;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == tag && is_it(slot as u32 - 1) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    /// Item with this tag that passes the test.
    pub(crate) fn find(&self, tag: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.position(tag, is_it).map(|at| self.slots[at] as u32 - 1)
    }

    /// Adds an item that is not in the index.
    pub(crate) fn insert(&mut self, tag: u32, item: u32) {
        if self.used * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        self.insert_slot(u64::from(tag) << 32 | u64::from(item + 1));
        self.used += 1;
    }

    fn insert_slot(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = self.place(slot);
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        assert!(self.shift > 0, "an index has at most 2^32 slots");
        let twice = vec![0; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, twice);
        self.shift -= 1;
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            self.insert_slot(slot);
        }
    }

    pub(crate) fn remove(&mut self, tag: u32, item: u32) {
        let position = self.position(tag, |other| other == item);
        let mut hole = position.expect("an item that is removed was inserted before");
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let from_place = at.wrapping_sub(self.place(slot)) & mask;
            let from_hole = at.wrapping_sub(hole) & mask;
            if from_place >= from_hole {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::random::mix;

    #[test]
    fn it_holds_what_a_map_holds() {
        let mut index = Index::new();
        let mut items: Vec<Option<u64>> = Vec::new();
        for step in 0..200_000_u64 {
            let random = mix(step);
            if random % 5 < 3 {
                // Few keys, so that tags collide. A key may occur several times under different
                // numbers.
                items.push(Some(random % 5_000));
                index.insert(Index::tag(random % 5_000), items.len() as u32 - 1);
            } else if let Some(number) = items.len().checked_sub(1 + (random as usize >> 8) % items.len().max(1))
                && let Some(key) = items[number].take()
            {
                index.remove(Index::tag(key), number as u32);
            }
        }
        assert_eq!(index.used, items.iter().flatten().count());
        for (number, item) in items.iter().enumerate() {
            if let Some(key) = item {
                let found = index.find(Index::tag(*key), |other| other == number as u32);
                assert_eq!(found, Some(number as u32));
            }
        }
        assert_eq!(index.find(Index::tag(5_001), |number| items[number as usize] == Some(5_001)), None);
    }
}
