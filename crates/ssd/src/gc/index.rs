//! Index of the closed reclaim units of one owner and size class, by valid count, by closing order,
//! and for random draws.
//!
//! Units are linked into buckets by valid count. A bucket covers up to 1/256 of the unit's pages,
//! so an invalidation rarely moves a unit. The index needs no update while the valid count is at
//! least `watch`. The exact minimum comes from a scan of the lowest bucket, once per collection.

use serde::{Deserialize, Serialize};

use crate::cast::{count, index, truncate32, wide};
use crate::unit::{NONE, ReclaimUnit, UnitState};

const BUCKETS_MAX: u32 = 256;

/// Closed reclaim units of one owner and size class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        }
    }

    fn bucket_number(&self, valid_pages: u32) -> u32 {
        valid_pages.div_ceil(1 << self.bucket_shift)
    }

    fn bucket(&self, valid_pages: u32) -> usize {
        index(self.bucket_number(valid_pages))
    }

    /// Valid count below which the unit must be moved or counted as lazy.
    fn watch(&self, valid_pages: u32) -> u32 {
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
        units[index(unit)].watch = self.watch(valid_pages);
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
        let watch = self.watch(valid_pages);
        assert!(watch <= valid_pages, "unit {unit} has a watch count that never triggers");
        units[index(unit)].watch = watch;
        becomes_lazy
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

    /// Units of the lowest non-empty bucket, which include the unit with the fewest valid pages.
    pub(crate) fn lowest<'a>(&'a self, units: &'a [ReclaimUnit]) -> impl Iterator<Item = u32> + 'a {
        let head = self.buckets.iter().copied().find(|head| *head != NONE).unwrap_or(NONE);
        follow(head, |unit| units[index(unit)].bucket_next)
    }

    /// Returns true if a unit can be reclaimed without copying. The first bucket contains only such
    /// units.
    pub(crate) fn holds_unit_without_valid_page(&self) -> bool {
        self.buckets.first().is_some_and(|head| *head != NONE)
    }

    /// All units in closing order.
    pub(crate) fn in_order<'a>(&'a self, units: &'a [ReclaimUnit]) -> impl Iterator<Item = u32> + 'a {
        follow(self.order_head, |unit| units[index(unit)].order_next)
    }

    /// Total pages of all units.
    pub(crate) fn pages(&self) -> u64 {
        wide(self.members.len()) * u64::from(self.unit_pages)
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
            ensure(entry.watch == self.watch(entry.valid_pages), "has a wrong watch count", unit)?;
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
        let mut in_buckets = 0;
        for (bucket, &head) in self.buckets.iter().enumerate() {
            let (mut before, mut unit) = (NONE, head);
            while unit != NONE {
                ensure(is_member(unit), "is in a bucket but not a member", unit)?;
                let entry = &units[index(unit)];
                ensure(entry.bucket_previous == before, "has a wrong predecessor in its bucket", unit)?;
                ensure(self.bucket(entry.valid_pages) == bucket, "is in a wrong bucket", unit)?;
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

fn follow(head: u32, next: impl Fn(u32) -> u32) -> impl Iterator<Item = u32> {
    let entry = |unit: u32| (unit != NONE).then_some(unit);
    std::iter::successors(entry(head), move |unit| entry(next(*unit)))
}
