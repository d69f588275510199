//! The closed reclaim units of one owner and size class, findable by valid count, by order of closing, and at random.
//!
//! Units hang in buckets by valid count. A bucket covers up to 1/256 of the unit's pages, so that an invalidation
//! rarely moves a unit: while its valid count stays at or above `watch`, nothing here is touched. The exact minimum is
//! found by looking through the lowest bucket, once for each collection.

use serde::{Deserialize, Serialize};

use crate::unit::{NONE, ReclaimUnit};

const BUCKETS_MAX: u32 = 256;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClosedSet {
    pub(crate) members: Vec<u32>,
    order_head: u32,
    order_tail: u32,
    /// First unit of each bucket; empty until the first unit comes.
    buckets: Vec<u32>,
    bucket_shift: u32,
    unit_pages: u32,
    /// Units with at most this many valid pages may be taken by background collection.
    pub(crate) lazy_valid_pages: u32,
    /// How many there are.
    pub(crate) lazy_units: u32,
}

impl ClosedSet {
    pub(crate) fn new(unit_pages: u32, lazy_valid_share: f64) -> ClosedSet {
        let mut bucket_shift = 0;
        while unit_pages.div_ceil(1 << bucket_shift) > BUCKETS_MAX {
            bucket_shift += 1;
        }
        ClosedSet {
            members: Vec::new(),
            order_head: NONE,
            order_tail: NONE,
            buckets: Vec::new(),
            bucket_shift,
            unit_pages,
            // A unit without an invalid page has nothing to give.
            // 0.29 of 100 pages are 29, whatever 0.29 is in binary.
            lazy_valid_pages: ((lazy_valid_share * f64::from(unit_pages) + 1e-6) as u32).min(unit_pages - 1),
            lazy_units: 0,
        }
    }

    fn bucket(&self, valid_pages: u32) -> usize {
        valid_pages.div_ceil(1 << self.bucket_shift) as usize
    }

    /// The valid count below which the unit has to be moved or counted as lazy.
    fn watch(&self, valid_pages: u32) -> u32 {
        let bucket = self.bucket(valid_pages) as u32;
        let leaves_bucket = if bucket == 0 {
            0
        } else {
            ((bucket - 1) << self.bucket_shift) + 1
        };
        let becomes_lazy = if valid_pages > self.lazy_valid_pages {
            self.lazy_valid_pages + 1
        } else {
            0
        };
        leaves_bucket.max(becomes_lazy)
    }

    /// Adds a unit that has just been closed; true if it is lazy at once.
    pub(crate) fn insert(&mut self, units: &mut [ReclaimUnit], unit: u32) -> bool {
        if self.buckets.is_empty() {
            self.buckets = vec![NONE; self.bucket(self.unit_pages) + 1];
        }
        units[unit as usize].member = self.members.len() as u32;
        self.members.push(unit);

        units[unit as usize].order_previous = self.order_tail;
        units[unit as usize].order_next = NONE;
        match self.order_tail {
            NONE => self.order_head = unit,
            tail => units[tail as usize].order_next = unit,
        }
        self.order_tail = unit;

        let valid_pages = units[unit as usize].valid_pages;
        self.link(units, unit);
        units[unit as usize].watch = self.watch(valid_pages);
        let lazy = valid_pages <= self.lazy_valid_pages;
        self.lazy_units += u32::from(lazy);
        lazy
    }

    /// Takes a unit out, to reclaim it; true if it was lazy.
    pub(crate) fn remove(&mut self, units: &mut [ReclaimUnit], unit: u32) -> bool {
        let member = units[unit as usize].member;
        self.members.swap_remove(member as usize);
        if let Some(moved) = self.members.get(member as usize) {
            units[*moved as usize].member = member;
        }

        let ReclaimUnit {
            order_previous,
            order_next,
            valid_pages,
            ..
        } = units[unit as usize];
        match order_previous {
            NONE => self.order_head = order_next,
            previous => units[previous as usize].order_next = order_next,
        }
        match order_next {
            NONE => self.order_tail = order_previous,
            next => units[next as usize].order_previous = order_previous,
        }

        // `valid_pages` may have changed since the unit was linked, but not beyond its bucket: `update` follows that.
        self.unlink(units, unit, self.bucket(valid_pages));
        units[unit as usize].watch = 0;
        let lazy = valid_pages <= self.lazy_valid_pages;
        self.lazy_units -= u32::from(lazy);
        lazy
    }

    /// Follows a unit whose valid count fell below `watch`, from `valid_pages_before`; true if it becomes lazy.
    #[cold]
    pub(crate) fn update(&mut self, units: &mut [ReclaimUnit], unit: u32, valid_pages_before: u32) -> bool {
        let valid_pages = units[unit as usize].valid_pages;
        let (from, to) = (self.bucket(valid_pages_before), self.bucket(valid_pages));
        if from != to {
            self.unlink(units, unit, from);
            self.link(units, unit);
        }
        let lazy = |pages| pages <= self.lazy_valid_pages;
        let becomes_lazy = lazy(valid_pages) && !lazy(valid_pages_before);
        self.lazy_units += u32::from(becomes_lazy);
        units[unit as usize].watch = self.watch(valid_pages);
        becomes_lazy
    }

    fn link(&mut self, units: &mut [ReclaimUnit], unit: u32) {
        let bucket = self.bucket(units[unit as usize].valid_pages);
        let next = self.buckets[bucket];
        units[unit as usize].bucket_previous = NONE;
        units[unit as usize].bucket_next = next;
        if next != NONE {
            units[next as usize].bucket_previous = unit;
        }
        self.buckets[bucket] = unit;
    }

    fn unlink(&mut self, units: &mut [ReclaimUnit], unit: u32, bucket: usize) {
        let ReclaimUnit {
            bucket_previous,
            bucket_next,
            ..
        } = units[unit as usize];
        match bucket_previous {
            NONE => {
                assert_eq!(
                    self.buckets[bucket], unit,
                    "unit {unit} is not in the bucket of its valid count"
                );
                self.buckets[bucket] = bucket_next;
            }
            previous => units[previous as usize].bucket_next = bucket_next,
        }
        if bucket_next != NONE {
            units[bucket_next as usize].bucket_previous = bucket_previous;
        }
    }

    /// The units of the lowest bucket that is not empty; the one with the fewest valid pages is among them.
    pub(crate) fn lowest<'a>(&'a self, units: &'a [ReclaimUnit]) -> impl Iterator<Item = u32> + 'a {
        let head = self.buckets.iter().copied().find(|head| *head != NONE).unwrap_or(NONE);
        follow(head, |unit| units[unit as usize].bucket_next)
    }

    /// All units, the one closed first leading.
    pub(crate) fn in_order<'a>(&'a self, units: &'a [ReclaimUnit]) -> impl Iterator<Item = u32> + 'a {
        follow(self.order_head, |unit| units[unit as usize].order_next)
    }

    /// Pages of all units.
    pub(crate) fn pages(&self) -> u64 {
        self.members.len() as u64 * u64::from(self.unit_pages)
    }
}

fn follow(head: u32, next: impl Fn(u32) -> u32) -> impl Iterator<Item = u32> {
    let entry = |unit: u32| (unit != NONE).then_some(unit);
    std::iter::successors(entry(head), move |unit| entry(next(*unit)))
}
