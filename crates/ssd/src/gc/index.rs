//! Index of the closed reclaim units of one owner and size class, by valid count, by closing order,
//! and for random draws.
//!
//! Units are linked into buckets by valid count. A bucket covers up to 1/256 of the unit's pages,
//! so an invalidation rarely moves a unit. The index needs no update while the valid count is at
//! least `watch`.
//!
//! The exact minimum comes from the lowest bucket ([`ClosedSet::find_lowest`]). A collection walks
//! a short bucket. The units of a long bucket go into a heap, which then serves as many collections
//! as the bucket has units. Each invalidation of a unit in the heap adds an entry, and entries of
//! units that have changed are dropped when they come up.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use serde::{Deserialize, Serialize};

use crate::cast::{count, index, truncate32, wide};
use crate::unit::{NONE, ReclaimUnit, UnitState};

const BUCKETS_MAX: u32 = 256;
/// Number of units that each collection walks rather than keep them in a heap.
const WALKED_MAX: usize = 16;

/// Valid pages, closing sequence and number of a unit. The minimum is the greedy victim.
type HeapKey = Reverse<(u32, u64, u32)>;

/// Units with the fewest valid pages. A clone is empty.
#[derive(Debug, Default)]
struct LowestUnits {
    /// The heap has all units of the buckets before this one. 0 while there is no heap.
    end_bucket: usize,
    heap: BinaryHeap<HeapKey>,
    /// Number of entries at which outdated ones outnumber the others and the heap is dropped.
    entries_max: usize,
}

impl Clone for LowestUnits {
    fn clone(&self) -> LowestUnits {
        LowestUnits::default()
    }
}

/// Closed reclaim units of one owner and size class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClosedSet {
    pub(crate) members: Vec<u32>,
    order_head: u32,
    order_tail: u32,
    /// First unit of each bucket. Empty until the first unit is inserted.
    buckets: Vec<u32>,
    bucket_shift: u32,
    unit_pages: u32,
    /// Maximum valid pages of a unit that background collection may take.
    pub(crate) lazy_valid_pages: u32,
    /// Number of units that background collection may take.
    pub(crate) lazy_units: u32,
    /// Buckets before this one are empty.
    #[serde(skip)]
    first_bucket: usize,
    #[serde(skip)]
    lowest: LowestUnits,
    /// Unit with the fewest valid pages, of those the one closed first. Valid after
    /// [`ClosedSet::find_lowest`], until the set changes. `None` if other sets have units with
    /// fewer ([`find_lowest`]).
    #[serde(skip)]
    pub(crate) lowest_unit: Option<u32>,
}

impl ClosedSet {
    pub(crate) fn new(unit_pages: u32, lazy_valid_share: f64) -> ClosedSet {
        assert!(unit_pages > 0, "a reclaim unit has pages");
        assert!((0.0..=1.0).contains(&lazy_valid_share), "{lazy_valid_share} is not a share between 0 and 1");
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
            // A unit without an invalid page frees no space. The small summand makes 0.29 of 100
            // pages exactly 29.
            lazy_valid_pages: truncate32(lazy_valid_share * f64::from(unit_pages) + 1e-6).min(unit_pages - 1),
            lazy_units: 0,
            first_bucket: 0,
            lowest: LowestUnits::default(),
            lowest_unit: None,
        }
    }

    fn bucket_number(&self, valid_pages: u32) -> u32 {
        valid_pages.div_ceil(1 << self.bucket_shift)
    }

    fn bucket(&self, valid_pages: u32) -> usize {
        index(self.bucket_number(valid_pages))
    }

    /// Valid count below which the unit must be moved or counted as lazy.
    pub(crate) fn watch(&self, valid_pages: u32) -> u32 {
        let bucket = self.bucket_number(valid_pages);
        let leaves_bucket = if bucket == 0 { 0 } else { ((bucket - 1) << self.bucket_shift) + 1 };
        let becomes_lazy = if valid_pages > self.lazy_valid_pages { self.lazy_valid_pages + 1 } else { 0 };
        leaves_bucket.max(becomes_lazy)
    }

    /// Adds a unit that has just been closed. Returns true if the unit is lazy already.
    pub(crate) fn insert(&mut self, units: &mut [ReclaimUnit], unit: u32) -> bool {
        let entry = &units[index(unit)];
        assert_eq!(entry.state, UnitState::Closed, "unit {unit} becomes a candidate while open");
        assert_eq!(entry.member, NONE, "unit {unit} is in a set already");
        assert_eq!(entry.pages, self.unit_pages, "unit {unit} is of another size than its set");
        assert!(entry.valid_pages <= entry.pages, "unit {unit} exceeds its size");
        if self.buckets.is_empty() {
            self.buckets = vec![NONE; self.bucket(self.unit_pages) + 1];
        }
        units[index(unit)].member = count(self.members.len());
        self.members.push(unit);

        units[index(unit)].order_previous = self.order_tail;
        units[index(unit)].order_next = NONE;
        match self.order_tail {
            NONE => self.order_head = unit,
            tail => units[index(tail)].order_next = unit,
        }
        self.order_tail = unit;

        let valid_pages = units[index(unit)].valid_pages;
        self.link(units, unit);
        self.set_watch(units, unit);
        let lazy = valid_pages <= self.lazy_valid_pages;
        self.lazy_units += u32::from(lazy);
        self.check_ends();
        lazy
    }

    /// Cheap invariants that must hold after each change.
    fn check_ends(&self) {
        let empty = self.members.is_empty();
        assert_eq!(self.order_head == NONE, empty, "the order of closing begins with nothing");
        assert_eq!(self.order_tail == NONE, empty, "the order of closing ends with nothing");
        assert!(index(self.lazy_units) <= self.members.len(), "more units are lazy than there are");
    }

    /// Removes a unit for reclaiming. Returns true if the unit was lazy.
    pub(crate) fn remove(&mut self, units: &mut [ReclaimUnit], unit: u32) -> bool {
        let member = units[index(unit)].member;
        assert_eq!(
            self.members.get(index(member)),
            Some(&unit),
            "unit {unit} is not at its recorded position in its set"
        );
        self.members.swap_remove(index(member));
        if let Some(moved) = self.members.get(index(member)) {
            units[index(*moved)].member = member;
        }

        let ReclaimUnit { order_previous, order_next, valid_pages, .. } = units[index(unit)];
        match order_previous {
            NONE => self.order_head = order_next,
            previous => units[index(previous)].order_next = order_next,
        }
        match order_next {
            NONE => self.order_tail = order_previous,
            next => units[index(next)].order_previous = order_previous,
        }

        // `valid_pages` may have changed since the unit was linked, but only within its bucket.
        // `update` handles larger changes.
        self.unlink(units, unit, self.bucket(valid_pages));
        units[index(unit)].watch = 0;
        units[index(unit)].member = NONE;
        let lazy = valid_pages <= self.lazy_valid_pages;
        assert!(!lazy || self.lazy_units > 0, "a lazy unit was not counted");
        self.lazy_units -= u32::from(lazy);
        self.check_ends();
        lazy
    }

    /// Updates a unit whose valid count fell from `valid_pages_before` to below `watch`. `now` is
    /// in host pages written. Returns true if the unit becomes lazy.
    #[cold]
    pub(crate) fn update(&mut self, units: &mut [ReclaimUnit], unit: u32, valid_pages_before: u32, now: u64) -> bool {
        let valid_pages = units[index(unit)].valid_pages;
        assert!(valid_pages < valid_pages_before, "the valid pages of a closed unit only decrease");
        let (from, to) = (self.bucket(valid_pages_before), self.bucket(valid_pages));
        if from != to {
            self.unlink(units, unit, from);
            self.link(units, unit);
            units[index(unit)].last_invalidation = now;
        }
        let lazy = |pages| pages <= self.lazy_valid_pages;
        let becomes_lazy = lazy(valid_pages) && !lazy(valid_pages_before);
        self.lazy_units += u32::from(becomes_lazy);
        self.set_watch(units, unit);
        becomes_lazy
    }

    /// Sets the watch count of a unit that is new in its bucket or has lost pages. Adds the unit to
    /// the heap if that has the units of its bucket.
    fn set_watch(&mut self, units: &mut [ReclaimUnit], unit: u32) {
        let entry = &mut units[index(unit)];
        entry.watch = self.watch(entry.valid_pages);
        assert!(entry.watch <= entry.valid_pages, "unit {unit} has a watch count that never triggers");
        if self.bucket(entry.valid_pages) < self.lowest.end_bucket {
            if self.lowest.heap.len() == self.lowest.entries_max {
                self.lowest = LowestUnits::default();
            } else {
                self.lowest.heap.push(heap_key(entry, unit));
                entry.watch = entry.valid_pages;
            }
        }
    }

    fn link(&mut self, units: &mut [ReclaimUnit], unit: u32) {
        let bucket = self.bucket(units[index(unit)].valid_pages);
        let next = self.buckets[bucket];
        assert_ne!(next, unit, "unit {unit} is in its bucket already");
        units[index(unit)].bucket_previous = NONE;
        units[index(unit)].bucket_next = next;
        if next != NONE {
            units[index(next)].bucket_previous = unit;
        }
        self.buckets[bucket] = unit;
        self.first_bucket = self.first_bucket.min(bucket);
    }

    fn unlink(&mut self, units: &mut [ReclaimUnit], unit: u32, bucket: usize) {
        let ReclaimUnit { bucket_previous, bucket_next, .. } = units[index(unit)];
        match bucket_previous {
            NONE => {
                assert_eq!(self.buckets[bucket], unit, "unit {unit} is not in the bucket of its valid count");
                self.buckets[bucket] = bucket_next;
            }
            previous => units[index(previous)].bucket_next = bucket_next,
        }
        if bucket_next != NONE {
            units[index(bucket_next)].bucket_previous = bucket_previous;
        }
    }

    /// First bucket that has a unit.
    fn lowest_bucket(&mut self) -> Option<usize> {
        if self.members.is_empty() {
            return None;
        }
        let empty = self.buckets[self.first_bucket..].iter().position(|head| *head != NONE);
        self.first_bucket += empty.expect("each member is in a bucket");
        Some(self.first_bucket)
    }

    /// Finds the unit with the fewest valid pages. Returns the number of visited units, which is at
    /// most a few per change of the set on average.
    pub(crate) fn find_lowest(&mut self, units: &mut [ReclaimUnit]) -> usize {
        self.lowest_unit = None;
        let mut visited = 0;
        while let Some(&key) = self.lowest.heap.peek() {
            visited += 1;
            let Reverse((_, _, unit)) = key;
            let entry = &units[index(unit)];
            if entry.member != NONE && key == heap_key(entry, unit) {
                self.lowest_unit = Some(unit);
                return visited;
            }
            self.lowest.heap.pop();
        }
        // An empty heap, whose memory serves the next search.
        let mut keys = std::mem::take(&mut self.lowest).heap.into_vec();
        let Some(lowest) = self.lowest_bucket() else {
            return visited;
        };
        let bucket = follow(self.buckets[lowest], |unit| units[index(unit)].bucket_next);
        keys.extend(bucket.map(|unit| heap_key(&units[index(unit)], unit)));
        visited += keys.len();
        self.lowest_unit = keys.iter().max().map(|Reverse((_, _, unit))| *unit);
        if keys.len() > WALKED_MAX {
            // All their invalidations must come to the heap.
            for Reverse((valid_pages, _, unit)) in &keys {
                units[index(*unit)].watch = *valid_pages;
            }
            let entries_max = 2 * keys.len();
            self.lowest = LowestUnits { end_bucket: lowest + 1, heap: keys.into(), entries_max };
        } else {
            keys.clear();
            self.lowest.heap = keys.into();
        }
        visited
    }

    /// Returns true if a unit can be reclaimed without copying. The first bucket contains only such
    /// units.
    pub(crate) fn holds_unit_without_valid_page(&self) -> bool {
        self.buckets.first().is_some_and(|head| *head != NONE)
    }

    pub(crate) fn in_order<'a>(&'a self, units: &'a [ReclaimUnit]) -> impl Iterator<Item = u32> + 'a {
        follow(self.order_head, |unit| units[index(unit)].order_next)
    }

    /// Total pages of all units.
    pub(crate) fn pages(&self) -> u64 {
        wide(self.members.len()) * u64::from(self.unit_pages)
    }
}

/// Finds the units with the fewest valid pages of each size class, over the sets of some owners.
/// Searches only the sets that have units in the lowest bucket of all these sets.
pub(crate) fn find_lowest(closed: &mut [Vec<ClosedSet>], owners: &[usize], units: &mut [ReclaimUnit]) {
    for class in 0..closed[0].len() {
        let lowest = owners.iter().filter_map(|&owner| closed[owner][class].lowest_bucket()).min();
        for &owner in owners {
            let set = &mut closed[owner][class];
            set.lowest_unit = None;
            if !set.members.is_empty() && Some(set.first_bucket) == lowest {
                let _ = set.find_lowest(units);
            }
        }
    }
}

impl ClosedSet {
    /// Checks that each list of the set contains its members exactly once and in the right place.
    /// Returns the first violation. The members must be closed units of the right class, and
    /// `empty` an empty set of the same configuration.
    pub(crate) fn check(&self, units: &[ReclaimUnit], empty: &ClosedSet) -> Result<(), String> {
        let ensure =
            |holds: bool, what: &str, unit: u32| holds.then_some(()).ok_or_else(|| format!("unit {unit} {what}"));
        let buckets = if self.members.is_empty() && self.buckets.is_empty() {
            0
        } else {
            empty.bucket_number(empty.unit_pages) + 1
        };
        let shape = |set: &ClosedSet| (set.bucket_shift, set.unit_pages, set.lazy_valid_pages);
        if shape(self) != shape(empty) || count(self.buckets.len()) != buckets {
            return Err("a set of closed units has another size or another limit".to_string());
        }
        let is_member = |unit: u32| {
            let entry = units.get(index(unit));
            entry.is_some_and(|entry| self.members.get(index(entry.member)) == Some(&unit))
        };
        let mut lazy_units = 0;
        for (position, &unit) in (0..).zip(&self.members) {
            let entry = &units[index(unit)];
            ensure(entry.member == position, "is not at its recorded position in its set", unit)?;
            let watch = self.watch(entry.valid_pages)..=entry.valid_pages;
            ensure(watch.contains(&entry.watch), "has a wrong watch count", unit)?;
            lazy_units += u32::from(entry.valid_pages <= self.lazy_valid_pages);
        }
        if lazy_units != self.lazy_units {
            let counted = self.lazy_units;
            return Err(format!("a set of closed units claims {counted} lazy units but has {lazy_units}"));
        }
        let (mut before, mut unit, mut ordered) = (NONE, self.order_head, 0);
        while unit != NONE {
            ensure(is_member(unit), "is in the closing order but not a member", unit)?;
            let entry = &units[index(unit)];
            ensure(entry.order_previous == before, "has a wrong predecessor in the closing order", unit)?;
            let is_later = before == NONE || units[index(before)].closed_sequence < entry.closed_sequence;
            ensure(is_later, "was closed before its predecessor", unit)?;
            (before, unit) = (unit, entry.order_next);
            ordered += 1;
        }
        ensure(before == self.order_tail, "is not the last closed unit", before)?;
        let in_heap: HashSet<&HeapKey> = self.lowest.heap.iter().collect();
        let mut in_buckets = 0;
        for (bucket, &head) in self.buckets.iter().enumerate() {
            let (mut before, mut unit) = (NONE, head);
            while unit != NONE {
                ensure(is_member(unit), "is in a bucket but not a member", unit)?;
                let entry = &units[index(unit)];
                ensure(entry.bucket_previous == before, "has a wrong predecessor in its bucket", unit)?;
                ensure(self.bucket(entry.valid_pages) == bucket, "is in a wrong bucket", unit)?;
                ensure(bucket >= self.first_bucket, "is before the first bucket", unit)?;
                let is_found = bucket >= self.lowest.end_bucket
                    || entry.watch == entry.valid_pages && in_heap.contains(&heap_key(entry, unit));
                ensure(is_found, "is missing among the units with the fewest valid pages", unit)?;
                (before, unit) = (unit, entry.bucket_next);
                in_buckets += 1;
                ensure(in_buckets <= self.members.len(), "is in its bucket twice", before)?;
            }
        }
        let is_complete = ordered == self.members.len() && in_buckets == self.members.len();
        match is_complete {
            true => Ok(()),
            false => Err("a set of closed units has members outside its lists".to_string()),
        }
    }
}

fn heap_key(entry: &ReclaimUnit, unit: u32) -> HeapKey {
    Reverse((entry.valid_pages, entry.closed_sequence, unit))
}

fn follow(head: u32, next: impl Fn(u32) -> u32) -> impl Iterator<Item = u32> {
    let entry = |unit: u32| (unit != NONE).then_some(unit);
    std::iter::successors(entry(head), move |unit| entry(next(*unit)))
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::cast::narrow;

    /// Closed units of one set, without a device around them.
    struct TestDrive {
        units: Vec<ReclaimUnit>,
        set: ClosedSet,
        units_closed: u64,
        random: Xoshiro256PlusPlus,
    }

    impl TestDrive {
        fn new(units: u32, unit_pages: u32, seed: u64) -> TestDrive {
            let set = ClosedSet::new(unit_pages, 0.05);
            let random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut drive = TestDrive { units: vec![ReclaimUnit::FREE; index(units)], set, units_closed: 0, random };
            for unit in 0..units {
                let valid_pages = drive.below(unit_pages + 1);
                drive.close(unit, valid_pages);
            }
            drive
        }

        fn below(&mut self, limit: u32) -> u32 {
            self.random.random_range(0..limit)
        }

        fn close(&mut self, unit: u32, valid_pages: u32) {
            let (state, pages, closed_sequence) = (UnitState::Closed, self.set.unit_pages, self.units_closed);
            self.units[index(unit)] = ReclaimUnit { state, pages, valid_pages, closed_sequence, ..ReclaimUnit::FREE };
            self.units_closed += 1;
            let _ = self.set.insert(&mut self.units, unit);
        }

        fn invalidate(&mut self, unit: u32, pages: u32) {
            let entry = &mut self.units[index(unit)];
            let before = entry.valid_pages;
            entry.valid_pages -= pages.min(before);
            if entry.valid_pages < entry.watch {
                let _ = self.set.update(&mut self.units, unit, before, 0);
            }
        }

        fn invalidate_any(&mut self, pages_max: u32) {
            let (unit, pages) = (self.below(count(self.units.len())), self.below(pages_max) + 1);
            if self.units[index(unit)].member != NONE {
                self.invalidate(unit, pages);
            }
        }

        /// Unit with the fewest valid pages, of those the one closed first, by a full scan.
        fn scanned(&self) -> Option<u32> {
            let key = |unit: &u32| (self.units[index(*unit)].valid_pages, self.units[index(*unit)].closed_sequence);
            self.set.members.iter().copied().min_by_key(key)
        }

        fn check(&self) {
            let empty = ClosedSet::new(self.set.unit_pages, 0.05);
            self.set.check(&self.units, &empty).expect("the set is in order");
        }
    }

    #[test]
    fn the_lowest_unit_is_that_of_a_full_scan() {
        for seed in 0..24 {
            let unit_pages = [1, 7, 64, 300, 1500][index(narrow(seed % 5))];
            let mut drive = TestDrive::new([2, 40, 400][index(narrow(seed % 3))], unit_pages, seed);
            for step in 0..600 {
                for _ in 0..drive.below(20) {
                    drive.invalidate_any(1 + unit_pages / 50);
                }
                let visited = drive.set.find_lowest(&mut drive.units);
                assert!(visited <= 3 * drive.units.len(), "seed {seed}, step {step}");
                assert_eq!(drive.set.lowest_unit, drive.scanned(), "seed {seed}, step {step}");
                let lowest = drive.set.lowest_unit;
                match lowest {
                    Some(unit) if drive.below(4) > 0 => _ = drive.set.remove(&mut drive.units, unit),
                    _ => drive.set = drive.set.clone(),
                }
                let unit = drive.below(count(drive.units.len()));
                if drive.units[index(unit)].member == NONE {
                    let valid_pages = unit_pages - drive.below(unit_pages.min(20));
                    drive.close(unit, valid_pages);
                }
                drive.check();
            }
        }
    }

    #[test]
    fn a_collection_visits_few_units_of_a_long_bucket() {
        for (units, unit_pages) in [(20_000, 64), (20_000, 400), (500, 64), (500, 400)] {
            let mut drive = TestDrive::new(units, unit_pages, 1);
            let (mut visited, mut longest) = (0, 0);
            let collections = units / 2;
            for _ in 0..collections {
                visited += drive.set.find_lowest(&mut drive.units);
                longest = longest.max(drive.set.lowest.heap.len());
                let unit = drive.set.lowest_unit.expect("there are closed units");
                let freed = unit_pages - drive.units[index(unit)].valid_pages;
                let _ = drive.set.remove(&mut drive.units, unit);
                drive.close(unit, unit_pages);
                // The host fills the freed pages with random overwrites.
                for _ in 0..freed.div_ceil(4) {
                    drive.invalidate_any(8);
                }
            }
            assert!(units < 1000 || longest > 4 * WALKED_MAX, "a long bucket became a heap");
            let each = visited / index(collections);
            assert!(each <= 2 * WALKED_MAX, "{each} visits a collection, {units} units of {unit_pages} pages");
            drive.check();
        }
    }
}
