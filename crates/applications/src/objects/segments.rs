//! Segment store: objects packed into segments that are written and evicted as a whole.
//!
//! ```text
//! free -> open (one per group, filled and written in order) -> closed (eviction order) -> free
//! ```
//!
//! A closed segment without stored objects is free immediately, as in extstore. If few segments are
//! free, a mostly empty one is compacted. Rewritten objects keep their expiry times and restart
//! with 0 uses. An object is therefore not rewritten twice without new uses.

use std::collections::{BTreeSet, VecDeque};

use prefetch::prefetch;

use super::groups::GroupSorter;
use super::output::{CacheObject, ObjectOutput};
use super::{ObjectCacheSettings, ObjectEviction};
use crate::cache::Index;

/// Segment of an object that has left.
const NONE: u32 = u32::MAX;
/// Objects of an evicted segment are prefetched this many objects ahead.
const EVICTED_AHEAD: usize = 16;

#[derive(Debug, Clone, Copy)]
pub(super) struct StoredObject {
    pub(super) key: u64,
    pub(super) segment: u32,
    pub(super) offset_bytes: u32,
    pub(super) bytes: u32,
    /// Uses since the write.
    uses: u32,
    expires_ns: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SegmentState {
    #[default]
    Free,
    Open,
    Closed,
}

#[derive(Debug, Default)]
pub(super) struct ObjectSegment {
    pub(super) state: SegmentState,
    group: usize,
    /// Numbers of all objects written here, including those that have left.
    objects: Vec<u32>,
    /// Bytes of the objects still stored.
    pub(super) valid_bytes: u64,
    filled_bytes: u64,
    pub(super) written_bytes: u64,
    expires_ns: u64,
    uses: u64,
    used_at: u64,
    closed_at: u64,
    /// Position in the eviction order, if the segment is closed.
    order: (u64, u64),
}

impl ObjectSegment {
    /// Position in the eviction order. The smallest leaves first.
    fn order_by(&self, eviction: ObjectEviction) -> (u64, u64) {
        let first = match eviction {
            ObjectEviction::Fifo | ObjectEviction::Clock => return (self.closed_at, 0),
            ObjectEviction::Lru => self.used_at,
            ObjectEviction::Lfu => self.uses,
            ObjectEviction::Ttl => self.expires_ns,
            ObjectEviction::LeastValid => self.valid_bytes,
        };
        (first, self.closed_at)
    }
}

pub(super) struct SegmentStore {
    eviction: ObjectEviction,
    reinsert_uses: u32,
    /// Compaction settings: number of segments to keep free, and fraction of stored bytes below
    /// which a segment is compacted.
    compact_under: usize,
    compact_below: f64,
    pub(super) segment_bytes: u64,
    pub(super) segments: Vec<ObjectSegment>,
    free: VecDeque<u32>,
    /// Open segment of each group.
    open: Vec<Option<u32>>,
    order: BTreeSet<(u64, u64, u32)>,
    /// Closed segments by stored bytes, with compaction only.
    by_valid: BTreeSet<(u64, u32)>,
    index: Index,
    objects: Vec<StoredObject>,
    /// Numbers in `objects` for new objects.
    unused: Vec<u32>,
    /// Number of uses and closings so far.
    ticks: u64,
    /// Objects to be placed into a segment, with a flag for rewritten ones. Empty between
    /// operations.
    pending: VecDeque<(CacheObject, bool)>,
}

impl SegmentStore {
    pub(super) fn new(settings: &ObjectCacheSettings, count: u32, segment_bytes: u64, groups: usize) -> SegmentStore {
        SegmentStore {
            eviction: settings.eviction,
            reinsert_uses: settings.reinsert_uses,
            compact_under: settings.compact_under as usize,
            compact_below: settings.compact_percent / 100.0,
            segment_bytes,
            segments: (0..count).map(|_| ObjectSegment::default()).collect(),
            free: (0..count).collect(),
            open: vec![None; groups],
            order: BTreeSet::new(),
            by_valid: BTreeSet::new(),
            index: Index::new(),
            objects: Vec::new(),
            unused: Vec::new(),
            ticks: 0,
            pending: VecDeque::new(),
        }
    }

    pub(super) fn stored(&self) -> usize {
        self.index.items()
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.find(key).is_some()
    }

    fn find(&self, key: u64) -> Option<u32> {
        self.index.find(Index::tag(key), |number| self.objects[number as usize].key == key)
    }

    #[cfg(test)]
    pub(super) fn objects(&self) -> impl Iterator<Item = &StoredObject> {
        self.objects.iter().filter(|object| object.segment != NONE)
    }

    /// Prefetches the memory of the next operations in steps, each of which needs the one before.
    pub(super) fn prefetch(&self, keys: impl Iterator<Item = u64> + Clone) {
        keys.clone().for_each(|key| self.index.prefetch(Index::tag(key)));
        for key in keys {
            if let Some(number) = self.index.find(Index::tag(key), |_| true) {
                prefetch(&self.objects, number as usize);
            }
        }
    }

    pub(super) fn start_bytes(&self, segment: u32) -> u64 {
        u64::from(segment) * self.segment_bytes
    }

    /// Updates the position of a closed segment in the eviction order.
    fn reorder(&mut self, number: u32) {
        let segment = &mut self.segments[number as usize];
        let order = segment.order_by(self.eviction);
        if segment.state != SegmentState::Closed || order == segment.order {
            return;
        }
        let before = std::mem::replace(&mut segment.order, order);
        let was_there = self.order.remove(&(before.0, before.1, number));
        assert!(was_there, "a closed segment has its place in the order");
        self.order.insert((order.0, order.1, number));
    }

    /// Looks up an object and counts a use. Returns its size if it is stored and has not expired.
    pub(super) fn lookup(&mut self, key: u64, now_ns: u64, output: &mut ObjectOutput) -> Option<u32> {
        let number = self.find(key)?;
        let held = &mut self.objects[number as usize];
        if held.expires_ns <= now_ns {
            output.counters.expired += 1;
            self.remove(key, output);
            return None;
        }
        held.uses = held.uses.saturating_add(1);
        let held = *held;
        self.ticks += 1;
        let segment = &mut self.segments[held.segment as usize];
        segment.uses += 1;
        segment.used_at = self.ticks;
        // The write buffer serves bytes that are not yet written.
        if u64::from(held.offset_bytes) + u64::from(held.bytes) <= segment.written_bytes {
            output.read(self.start_bytes(held.segment) + u64::from(held.offset_bytes), held.bytes);
        }
        self.reorder(held.segment);
        Some(held.bytes)
    }

    pub(super) fn remove(&mut self, key: u64, output: &mut ObjectOutput) {
        let Some(number) = self.find(key) else { return };
        let held = self.unlink(number, output);
        let segment = &self.segments[held.segment as usize];
        if segment.state == SegmentState::Closed && segment.valid_bytes == 0 {
            self.release(held.segment, output);
        } else {
            self.reorder(held.segment);
        }
    }

    /// Removes an object from the index. The caller must handle the rest of its segment.
    fn unlink(&mut self, number: u32, output: &mut ObjectOutput) -> StoredObject {
        let object = &mut self.objects[number as usize];
        let held = *object;
        object.segment = NONE;
        self.index.remove(Index::tag(held.key), number);
        output.counters.stored_bytes -= u64::from(held.bytes);
        let segment = &mut self.segments[held.segment as usize];
        assert!(
            segment.state != SegmentState::Free && segment.valid_bytes >= u64::from(held.bytes),
            "segment {} holds the object that leaves it",
            held.segment
        );
        let before = segment.valid_bytes;
        segment.valid_bytes -= u64::from(held.bytes);
        if self.compact_below > 0.0 && segment.state == SegmentState::Closed {
            let was_there = self.by_valid.remove(&(before, held.segment));
            assert!(was_there, "a closed segment is known by its bytes");
            self.by_valid.insert((segment.valid_bytes, held.segment));
        }
        held
    }

    /// Frees a closed segment without objects.
    fn release(&mut self, number: u32, output: &mut ObjectOutput) {
        let segment = &mut self.segments[number as usize];
        assert!(
            segment.state == SegmentState::Closed
                && segment.valid_bytes == 0
                && segment.written_bytes == self.segment_bytes,
            "segment {number} is written as a whole before it leaves, and empty when it does: {segment:?}"
        );
        let was_there = self.order.remove(&(segment.order.0, segment.order.1, number));
        assert!(was_there, "a closed segment has its place in the order");
        self.by_valid.remove(&(0, number));
        let mut objects = std::mem::take(&mut segment.objects);
        self.unused.append(&mut objects);
        *segment = ObjectSegment { objects, ..ObjectSegment::default() };
        self.free.push_back(number);
        output.discard(self.start_bytes(number), self.segment_bytes);
    }

    /// Evicts a closed segment with its objects. Objects with at least `kept_uses` uses wait for a
    /// rewrite.
    fn evict(&mut self, number: u32, kept_uses: Option<u32>, now_ns: u64, output: &mut ObjectOutput) {
        let objects = std::mem::take(&mut self.segments[number as usize].objects);
        for (at, object) in objects.iter().enumerate() {
            self.prefetch_evicted(&objects, at);
            if self.objects[*object as usize].segment == NONE {
                continue;
            }
            let held = self.unlink(*object, output);
            if held.expires_ns <= now_ns {
                output.counters.expired += 1;
            } else if kept_uses.is_some_and(|least| held.uses >= least) {
                let object = CacheObject { key: held.key, bytes: held.bytes, expires_ns: held.expires_ns };
                output.counters.rewritten_bytes += u64::from(held.bytes);
                self.pending.push_back((object, true));
            } else {
                output.counters.evictions += 1;
            }
        }
        self.segments[number as usize].objects = objects;
        self.release(number, output);
    }

    /// Prefetches objects of a segment that leaves, and their index entries.
    fn prefetch_evicted(&self, objects: &[u32], at: usize) {
        if let Some(later) = objects.get(at + EVICTED_AHEAD) {
            prefetch(&self.objects, *later as usize);
        }
        if let Some(soon) = objects.get(at + EVICTED_AHEAD / 2) {
            self.index.prefetch(Index::tag(self.objects[*soon as usize].key));
        }
    }

    /// Compacts mostly empty segments while few are free, and rewrites all their objects. The
    /// fraction relates to the filled bytes, not to the segment size. Otherwise a partly filled
    /// segment of large objects would be rewritten forever.
    fn compact(&mut self, now_ns: u64, output: &mut ObjectOutput) {
        while self.free.len() < self.compact_under
            && let Some(&(valid_bytes, number)) = self.by_valid.first()
            && (valid_bytes as f64) < self.compact_below * self.segments[number as usize].filled_bytes as f64
        {
            let free = self.free.len();
            self.evict(number, Some(0), now_ns, output);
            output.counters.compactions += 1;
            assert_eq!(self.free.len(), free + 1, "a compacted segment is free");
        }
    }

    /// Minimum number of uses for a rewrite when a segment leaves.
    fn kept_uses(&self) -> Option<u32> {
        (self.reinsert_uses > 0).then_some(self.reinsert_uses)
    }

    /// Takes a free segment. If there is none, evicts one.
    fn take_free(&mut self, now_ns: u64, output: &mut ObjectOutput) -> u32 {
        self.compact(now_ns, output);
        if self.free.is_empty() {
            let first = self.order.first().expect("there are more segments than groups");
            self.evict(first.2, self.kept_uses(), now_ns, output);
        }
        self.free.pop_front().expect("an evicted segment is free")
    }

    pub(super) fn store(&mut self, object: CacheObject, now_ns: u64, sorter: &GroupSorter, output: &mut ObjectOutput) {
        assert!(self.pending.is_empty(), "one object after another");
        self.pending.push_back((object, false));
        while let Some((object, is_rewritten)) = self.pending.pop_front() {
            let group = sorter.group(object.key, object.bytes, is_rewritten);
            let number = self.segment_for(group, object.bytes, now_ns, output);
            self.insert(number, object);
            output.counters.stored_bytes += u64::from(object.bytes);
            let waiting = self.segments[number as usize].filled_bytes / output.write_bytes * output.write_bytes;
            self.write_up_to(number, waiting, output);
        }
    }

    /// Open segment of a group with room for `bytes` bytes.
    fn segment_for(&mut self, group: usize, bytes: u32, now_ns: u64, output: &mut ObjectOutput) -> u32 {
        if let Some(open) = self.open[group] {
            if self.segments[open as usize].filled_bytes + u64::from(bytes) <= self.segment_bytes {
                return open;
            }
            self.open[group] = None;
            self.close(open, output);
        }
        let number = self.take_free(now_ns, output);
        let segment = &mut self.segments[number as usize];
        assert_eq!(segment.state, SegmentState::Free, "segment {number} is opened when it is free");
        segment.state = SegmentState::Open;
        segment.group = group;
        self.open[group] = Some(number);
        number
    }

    fn insert(&mut self, number: u32, object: CacheObject) {
        let segment = &mut self.segments[number as usize];
        let held = StoredObject {
            key: object.key,
            segment: number,
            offset_bytes: segment.filled_bytes as u32,
            bytes: object.bytes,
            uses: 0,
            expires_ns: object.expires_ns,
        };
        segment.filled_bytes += u64::from(object.bytes);
        segment.valid_bytes += u64::from(object.bytes);
        segment.expires_ns = segment.expires_ns.max(object.expires_ns);
        let unused = self.unused.pop().unwrap_or(self.objects.len() as u32);
        segment.objects.push(unused);
        assert!(self.find(object.key).is_none(), "object {} is stored twice", object.key);
        match self.objects.get_mut(unused as usize) {
            Some(entry) => *entry = held,
            None => self.objects.push(held),
        }
        assert!(unused < NONE, "a cache holds less than 2^32 - 1 objects");
        self.index.insert(Index::tag(object.key), unused);
    }

    fn write_up_to(&mut self, number: u32, end_bytes: u64, output: &mut ObjectOutput) {
        let start_bytes = self.start_bytes(number);
        let segment = &mut self.segments[number as usize];
        if end_bytes > segment.written_bytes {
            output.write(segment.group, start_bytes + segment.written_bytes, end_bytes - segment.written_bytes);
            segment.written_bytes = end_bytes;
        }
    }

    /// Writes the rest of a segment and adds it to the eviction order.
    fn close(&mut self, number: u32, output: &mut ObjectOutput) {
        self.write_up_to(number, self.segment_bytes, output);
        self.ticks += 1;
        let segment = &mut self.segments[number as usize];
        segment.state = SegmentState::Closed;
        segment.closed_at = self.ticks;
        segment.used_at = self.ticks;
        segment.order = segment.order_by(self.eviction);
        self.order.insert((segment.order.0, segment.order.1, number));
        if self.compact_below > 0.0 {
            self.by_valid.insert((segment.valid_bytes, number));
        }
        if segment.valid_bytes == 0 {
            self.release(number, output);
        }
    }

    /// Evicts the segments with only expired objects, if the eviction policy is `ttl`.
    pub(super) fn expire(&mut self, now_ns: u64, output: &mut ObjectOutput) {
        if self.eviction != ObjectEviction::Ttl {
            return;
        }
        while let Some(&(expires_ns, _, number)) = self.order.first()
            && expires_ns <= now_ns
        {
            self.evict(number, self.kept_uses(), now_ns, output);
            assert!(self.pending.is_empty(), "an expired object is not rewritten");
        }
    }
}
