//! Request source of the cache, which turns operations into requests and measures.

use std::ops::Range;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::groups::GroupSorter;
use super::output::{CacheObject, ObjectOutput};
use super::segments::SegmentStore;
use super::slots::SlotStore;
use super::{ObjectCacheSettings, ObjectLayout};
use crate::cache::{AdmissionRequest, AdmissionState, CacheOperation, Dram, OperationKind, OperationSource};
use crate::queue::{RequestQueue, SteppedModel};
use crate::ratio;
use workload::random::mix;
use workload::{IoRequest, RequestSource, WorkloadError, WorkloadMeasure, WorkloadTarget};

/// Operations without a request after which the run fails. The cache then holds all requested
/// objects or admits none of the others, and will never write again.
const IDLE_OPERATIONS: u64 = 10_000_000;
/// Salt of the key sample of a trace on a scaled model.
const SAMPLE_SALT: u64 = 0x7361_6d70_6c65;

/// Store of objects on flash.
pub(super) enum ObjectStore {
    Slots(SlotStore),
    Segments(SegmentStore),
}

impl ObjectStore {
    fn new(
        settings: &ObjectCacheSettings,
        target: &WorkloadTarget,
        sorter: &GroupSorter,
        groups: usize,
    ) -> Result<ObjectStore, WorkloadError> {
        let (space_bytes, segment_bytes) = settings.space(target);
        let (setting, bytes, needed) = match settings.layout {
            // A slab keeps its size on a scaled model, rounded up to whole units.
            ObjectLayout::Slots => ("slab_bytes", settings.slab_bytes.next_multiple_of(target.unit_bytes()), 1),
            ObjectLayout::Segments => {
                let kept_free = if settings.compact_percent > 0.0 { settings.compact_under } else { 1 };
                ("segment_bytes", segment_bytes, groups as u64 + 1 + u64::from(kept_free))
            }
        };
        let count = space_bytes / bytes;
        if count < needed {
            let problem = format!(
                "leaves room for {count} of {}, but {needed} are needed. Use smaller ones, fewer groups, a smaller \
                 compact_under, or a larger scaled model",
                base::HumanBytes(bytes)
            );
            return Err(WorkloadError::setting(setting, problem));
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX - 1);
        Ok(match settings.layout {
            ObjectLayout::Slots => {
                let eviction = settings.slot_eviction()?;
                ObjectStore::Slots(SlotStore::new(&sorter.class_bytes, bytes, count, eviction))
            }
            ObjectLayout::Segments => ObjectStore::Segments(SegmentStore::new(settings, count, bytes, groups)),
        })
    }

    pub(super) fn stored(&self) -> usize {
        match self {
            ObjectStore::Slots(slots) => slots.tier.stored(),
            ObjectStore::Segments(segments) => segments.stored(),
        }
    }

    fn contains(&self, key: u64) -> bool {
        match self {
            ObjectStore::Slots(slots) => slots.contains(key),
            ObjectStore::Segments(segments) => segments.contains(key),
        }
    }

    /// Prefetches the memory of the next operations.
    fn prefetch(&self, operations: &[CacheOperation]) {
        let keys = operations.iter().map(|operation| operation.key);
        match self {
            ObjectStore::Slots(slots) => slots.prefetch(keys),
            ObjectStore::Segments(segments) => segments.prefetch(keys),
        }
    }

    /// Removes expired objects, if the eviction policy is `ttl`.
    fn expire(&mut self, now_ns: u64, output: &mut ObjectOutput) {
        match self {
            ObjectStore::Slots(slots) => slots.expire(now_ns, output),
            ObjectStore::Segments(segments) => segments.expire(now_ns, output),
        }
    }

    /// Looks up an object and counts a use. Returns its size if it is stored and has not expired.
    fn lookup(&mut self, key: u64, now_ns: u64, output: &mut ObjectOutput) -> Option<u32> {
        match self {
            ObjectStore::Slots(slots) => slots.lookup(key, now_ns, output),
            ObjectStore::Segments(segments) => segments.lookup(key, now_ns, output),
        }
    }

    fn remove(&mut self, key: u64, output: &mut ObjectOutput) {
        match self {
            ObjectStore::Slots(slots) => slots.remove(key, output),
            ObjectStore::Segments(segments) => segments.remove(key, output),
        }
    }

    fn store(&mut self, object: CacheObject, now_ns: u64, sorter: &GroupSorter, output: &mut ObjectOutput) {
        match self {
            ObjectStore::Slots(slots) => slots.store(object, sorter, output),
            ObjectStore::Segments(segments) => segments.store(object, now_ns, sorter, output),
        }
    }
}

pub struct ObjectCache {
    operations: OperationSource,
    /// Sampling divisor of a trace's keys.
    sampled: u64,
    lookaside: bool,
    max_object_bytes: u64,
    /// Nanoseconds between two operations.
    operation_ns: f64,
    has_dram: bool,
    dram: Dram,
    gate: AdmissionState,
    pub(super) sorter: GroupSorter,
    pub(super) store: ObjectStore,
    pub(super) output: ObjectOutput,
    /// Unchanged data that is still to be written.
    unchanged: Range<u64>,
    /// Operations since the last request.
    idle: u64,
}

impl ObjectCache {
    pub(super) fn new(
        settings: &ObjectCacheSettings,
        target: &WorkloadTarget,
        seed: u64,
    ) -> Result<ObjectCache, WorkloadError> {
        let statistics = settings.statistics();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let gate_random = random.clone();
        random.jump();
        let denominator = target.denominator();
        let sorter = GroupSorter::new(settings, target);
        let groups = sorter.names().len();
        let dram_bytes = settings.dram_bytes / denominator;
        Ok(ObjectCache {
            operations: OperationSource::new(&statistics, settings.files(), target, random)?,
            sampled: if settings.trace.is_empty() { 1 } else { denominator },
            lookaside: statistics.lookaside,
            max_object_bytes: settings.max_object_bytes,
            operation_ns: denominator as f64 * 1e9 / settings.operations_per_second,
            has_dram: dram_bytes > 0,
            dram: Dram::new(dram_bytes),
            gate: AdmissionState::new(settings.admission, denominator, gate_random),
            store: ObjectStore::new(settings, target, &sorter, groups)?,
            sorter,
            output: ObjectOutput::new(settings, target, groups),
            unchanged: settings.unchanged(target),
            idle: 0,
        })
    }

    fn now_ns(&self) -> u64 {
        (self.output.counters.operations as f64 * self.operation_ns) as u64
    }

    fn execute(&mut self, operation: CacheOperation) {
        self.output.counters.operations += 1;
        let now_ns = self.now_ns();
        self.store.expire(now_ns, &mut self.output);
        match (operation.kind, operation.bytes) {
            (OperationKind::Get, bytes) => self.get(operation.key, bytes),
            (OperationKind::Set, Some(bytes)) => self.set(operation.key, bytes),
            (OperationKind::Set, None) | (OperationKind::Delete, _) => self.remove(operation.key),
        }
    }

    fn get(&mut self, key: u64, bytes: Option<u32>) {
        self.output.counters.gets += 1;
        if self.has_dram && self.dram.touch(key) {
            self.output.counters.dram_hits += 1;
            return;
        }
        let now_ns = self.now_ns();
        let found = self.store.lookup(key, now_ns, &mut self.output);
        match (found, bytes) {
            (Some(found), _) => {
                self.output.counters.flash_hits += 1;
                if self.has_dram {
                    self.insert(key, found);
                }
            }
            (None, Some(bytes)) if self.lookaside => self.set(key, bytes),
            (None, _) => {}
        }
    }

    fn set(&mut self, key: u64, bytes: u32) {
        self.output.counters.sets += 1;
        self.remove(key);
        self.insert(key, bytes);
    }

    fn remove(&mut self, key: u64) {
        if self.has_dram {
            self.dram.remove(key);
        }
        self.store.remove(key, &mut self.output);
    }

    /// Adds an object to memory. Evicted objects go to flash unless flash already has them.
    fn insert(&mut self, key: u64, bytes: u32) {
        if !self.has_dram {
            self.offer(key, bytes);
            return;
        }
        self.dram.insert(key, bytes, false);
        while let Some(fallen_out) = self.dram.evict() {
            if !self.store.contains(fallen_out.key) {
                self.offer(fallen_out.key, fallen_out.bytes);
            }
        }
    }

    /// Offers a new object to flash.
    fn offer(&mut self, key: u64, bytes: u32) {
        if u64::from(bytes) > self.max_object_bytes {
            self.output.counters.too_large += 1;
            return;
        }
        let is_admitted = self.gate.admits(&AdmissionRequest {
            key,
            bytes: bytes.into(),
            operations: self.output.counters.operations,
            written_bytes: self.output.written_bytes,
        });
        if !is_admitted {
            self.output.counters.rejected += 1;
            return;
        }
        self.output.counters.admitted_bytes += u64::from(bytes);
        let now_ns = self.now_ns();
        let expires_ns = self.sorter.expires_ns(key, now_ns);
        let object = CacheObject { key, bytes, expires_ns };
        self.store.store(object, now_ns, &self.sorter, &mut self.output);
    }
}

fn never_writes() -> WorkloadError {
    let problem = format!(
        "sent no request to the drive for {IDLE_OPERATIONS} operations, because the cache holds or rejects all \
         requested objects. Use more keys (statistics.working_set_percent) or sets, a smaller used_percent, another \
         admission, or reads = true"
    );
    WorkloadError::setting("kind = \"object_cache\"", problem)
}

impl SteppedModel for ObjectCache {
    fn queue(&mut self) -> &mut RequestQueue {
        &mut self.output.queue
    }

    /// Writes the unchanged data first, then executes the next operation. Returns false at the end.
    fn step(&mut self) -> Result<bool, WorkloadError> {
        if !self.unchanged.is_empty() {
            self.unchanged.start = self.output.write_unchanged(&self.unchanged);
            return Ok(true);
        }
        let Some(operation) = self.operations.next(|ahead| self.store.prefetch(ahead))? else {
            return Ok(false);
        };
        let ready = self.output.queue.ready();
        if self.sampled == 1 || mix(operation.key ^ SAMPLE_SALT).is_multiple_of(self.sampled) {
            self.execute(operation);
        }
        self.idle = if self.output.queue.ready() > ready { 0 } else { self.idle + 1 };
        if self.idle == IDLE_OPERATIONS { Err(never_writes()) } else { Ok(true) }
    }
}

impl RequestSource for ObjectCache {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        self.run_batch(requests, limit)
    }

    fn streams(&self) -> Vec<String> {
        let names = self.sorter.names().into_iter();
        names.chain(["read", "discard"].map(String::from)).collect()
    }

    fn share_done(&self) -> Option<f64> {
        self.operations.share_done()
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let counters = &self.output.counters;
        let written = self.output.written_bytes;
        let count = |name: &str, value: u64| WorkloadMeasure::new(name, value as f64);
        vec![
            WorkloadMeasure::new("hit_ratio", ratio(counters.dram_hits + counters.flash_hits, counters.gets)),
            WorkloadMeasure::new("dram.hit_ratio", ratio(counters.dram_hits, counters.gets)),
            WorkloadMeasure::new("flash.hit_ratio", ratio(counters.flash_hits, counters.gets - counters.dram_hits)),
            count("gets", counters.gets),
            count("sets", counters.sets),
            count("rejected_objects", counters.rejected),
            count("too_large_objects", counters.too_large),
            count("objects_without_slot", counters.without_slot),
            count("evictions", counters.evictions),
            count("expired", counters.expired),
            count("compactions", counters.compactions),
            count("objects", self.store.stored() as u64),
            count("object_bytes", counters.stored_bytes),
            count("written_bytes", written),
            WorkloadMeasure::new("rewritten_share", ratio(counters.rewritten_bytes, written)),
            WorkloadMeasure::new("application_write_amplification", ratio(written, counters.admitted_bytes)),
            count("discarded_bytes", self.output.discarded_bytes),
            count("bad_lines", self.operations.bad_lines()),
        ]
    }
}
