//! Request source of the tiers: runs the workers in time order and counts their results.

use crate::ratio;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::output::{ChunkWriter, KvCacheOutput};
use super::requests::PromptGenerator;
use super::trace::Prompt;
use super::{ChunkClass, KvCacheSettings, MERGED_SLOTS, MERGED_SLOTS_MIN, SECOND_NS, SlotLayout};
use crate::cache::{RecentOffers, Tier};
use crate::queue::{RequestQueue, SteppedModel};
use workload::random::{below, mix};
use workload::{IoRequest, OwnedRange, RequestSource, WorkloadError, WorkloadMeasure, WorkloadTarget};

/// Requests without a write that end the run. The tiers then hold all requested chunks.
const IDLE_PROMPTS: u64 = 1_000_000;

/// Counters of a class.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClassCounters {
    /// Number of requests.
    prompts: u64,
    /// Number of requested chunks.
    requested: u64,
    /// Number of requested chunks that were stored.
    hits: u64,
    /// Number of chunks written.
    stored: u64,
    /// Number of chunks evicted, and number of chunks expired.
    evictions: u64,
    expired: u64,
    pub(super) written_bytes: u64,
}

impl ClassCounters {
    fn add(&mut self, other: &ClassCounters) {
        self.prompts += other.prompts;
        self.requested += other.requested;
        self.hits += other.hits;
        self.stored += other.stored;
        self.evictions += other.evictions;
        self.expired += other.expired;
        self.written_bytes += other.written_bytes;
    }
}

/// A server with its tier.
pub(super) struct CacheWorker {
    class: usize,
    pub(super) place: SlotLayout,
    pub(super) tier: Tier,
    generator: PromptGenerator,
    admit_percent: f64,
    /// Recently requested chunks, if a chunk is written at its second request.
    offers: Option<RecentOffers>,
    ttl_ns: u64,
    random: Xoshiro256PlusPlus,
    /// Next request, or the request with pending writes.
    prompt: Prompt,
    /// Pending writes, and the time of each.
    pieces: VecDeque<IoRequest>,
    piece_ns: u64,
    pub(super) counters: ClassCounters,
    /// Counters when the first chunk was evicted.
    before_full: Option<ClassCounters>,
    /// Reused buffer.
    scratch: Vec<IoRequest>,
    left: Vec<u32>,
}

impl CacheWorker {
    pub(super) fn new(
        settings: &KvCacheSettings,
        (number, class): (usize, &ChunkClass),
        place: SlotLayout,
        target: &WorkloadTarget,
        seed: u64,
    ) -> Result<CacheWorker, WorkloadError> {
        let mut tier = Tier::new(1, settings.eviction);
        tier.grow(0, place.slots);
        Ok(CacheWorker {
            class: number,
            place,
            tier,
            generator: PromptGenerator::new(class, &place, target, seed)?,
            admit_percent: class.admit_percent,
            offers: class.admit_second_request.then(RecentOffers::default),
            ttl_ns: (settings.ttl_seconds * SECOND_NS) as u64,
            random: Xoshiro256PlusPlus::seed_from_u64(mix(seed)),
            prompt: Prompt::default(),
            pieces: VecDeque::new(),
            piece_ns: 0,
            counters: ClassCounters::default(),
            before_full: None,
            scratch: Vec::new(),
            left: Vec::new(),
        })
    }

    /// Sends one write of the current request, or begins the next request. Returns true after a
    /// write, and the time of the next step, if any.
    fn step(
        &mut self,
        number: usize,
        now_ns: u64,
        output: &mut KvCacheOutput,
    ) -> Result<(bool, Option<u64>), WorkloadError> {
        if self.pieces.is_empty() {
            self.serve_prompt(number, now_ns, output);
        }
        let wrote = match self.pieces.pop_front() {
            Some(piece) => {
                self.counters.written_bytes += u64::from(piece.bytes);
                output.queue.push(piece);
                true
            }
            None => false,
        };
        if !self.pieces.is_empty() {
            return Ok((wrote, Some(now_ns + self.piece_ns)));
        }
        let free_ns = now_ns + if wrote { self.piece_ns } else { self.prompt.chunk_ns };
        let has_next = self.generator.next(&mut self.prompt)?;
        Ok((wrote, has_next.then(|| self.prompt.at_ns.max(free_ns))))
    }

    /// Looks up a prompt and turns its misses into writes.
    fn serve_prompt(&mut self, number: usize, now_ns: u64, output: &mut KvCacheOutput) {
        self.tier.expire(0, now_ns, &mut self.left);
        self.counters.expired += self.left.len() as u64;
        for slot in self.left.drain(..) {
            output.discard(&self.place, slot);
        }
        let writer = ChunkWriter { class: self.class, worker: number, session: self.prompt.session };
        let mut parent = None;
        for at in 0..self.prompt.chunks.len() {
            let key = self.prompt.chunks[at];
            self.counters.requested += 1;
            if let Some(slot) = self.tier.lookup(key) {
                self.counters.hits += 1;
                output.read(&self.place, slot);
                parent = Some(slot);
                continue;
            }
            let is_admitted = self.admits(key);
            let expires_ns = now_ns.saturating_add(self.ttl_ns);
            let Some(stored) = is_admitted.then(|| self.tier.store(0, key, parent, expires_ns)).flatten() else {
                // A chunk that is not stored has no stored successor.
                self.skip_from(at + 1);
                break;
            };
            self.counters.stored += 1;
            if stored.evicted.is_some() {
                self.counters.evictions += 1;
                self.before_full.get_or_insert(self.counters);
            }
            output.writes(writer, &self.place, stored.slot, &mut self.scratch);
            parent = Some(stored.slot);
        }
        self.counters.prompts += 1;
        self.piece_ns = self.prompt.chunk_ns / self.scratch.len().max(1) as u64;
        self.pieces.extend(self.scratch.drain(..));
    }

    /// Decides if a missed chunk is written.
    fn admits(&mut self, key: u64) -> bool {
        if !self.offer(key) {
            return false;
        }
        self.admit_percent >= 100.0 || (below(&mut self.random, 1_000_000) as f64) < self.admit_percent * 1e4
    }

    /// Remembers a missed chunk. Returns true if it was requested before, or if that does not matter.
    fn offer(&mut self, key: u64) -> bool {
        let (now, window) = (self.counters.requested, self.place.slots.into());
        self.offers.as_mut().is_none_or(|offers| offers.record_offer(key, now, window))
    }

    /// Counts the rest of a prompt as missed.
    fn skip_from(&mut self, first: usize) {
        for at in first..self.prompt.chunks.len() {
            self.counters.requested += 1;
            self.offer(self.prompt.chunks[at]);
        }
    }
}

/// Tiers under load.
pub struct KvCache {
    pub(super) workers: Vec<CacheWorker>,
    /// Time of the next step of each worker.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    ranges: Vec<OwnedRange>,
    pub(super) output: KvCacheOutput,
    /// Requests since the last write.
    idle: u64,
}

impl KvCache {
    pub(super) fn new(workers: Vec<CacheWorker>, ranges: Vec<OwnedRange>, output: KvCacheOutput) -> KvCache {
        KvCache {
            due: (0..workers.len()).map(|number| Reverse((0, number))).collect(),
            workers,
            ranges,
            output,
            idle: 0,
        }
    }

    fn counters(&self, class: Option<usize>) -> ClassCounters {
        let mut sum = ClassCounters::default();
        let workers = self.workers.iter();
        workers
            .filter(|worker| class.is_none_or(|class| class == worker.class))
            .for_each(|worker| sum.add(&worker.counters));
        sum
    }
}

impl SteppedModel for KvCache {
    fn queue(&mut self) -> &mut RequestQueue {
        &mut self.output.queue
    }

    /// Runs the next step of the earliest worker. Returns false at the end.
    fn step(&mut self) -> Result<bool, WorkloadError> {
        let Some(Reverse((now_ns, number))) = self.due.pop() else {
            return Ok(false);
        };
        let worker = &mut self.workers[number];
        let (wrote, next_ns) = worker.step(number, now_ns, &mut self.output)?;
        self.due.extend(next_ns.map(|at_ns| Reverse((at_ns, number))));
        self.idle = if wrote { 0 } else { self.idle + 1 };
        Ok(self.idle < IDLE_PROMPTS)
    }
}

impl RequestSource for KvCache {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        self.run_batch(requests, limit)
    }

    fn streams(&self) -> Vec<String> {
        let classes = self.ranges.iter().map(|range| range.name.clone());
        classes.chain(["read", "discard"].map(String::from)).collect()
    }

    fn ranges(&self) -> Vec<OwnedRange> {
        self.ranges.clone()
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let sum = self.counters(None);
        let mut before = ClassCounters::default();
        self.workers.iter().filter_map(|worker| worker.before_full.as_ref()).for_each(|counters| before.add(counters));
        let requested_full = sum.requested - before.requested;
        let mut measures = vec![
            WorkloadMeasure::new("hit_ratio", ratio(sum.hits, sum.requested)),
            WorkloadMeasure::new("chunks_requested", sum.requested as f64),
            WorkloadMeasure::new("full.prompts", (sum.prompts - before.prompts) as f64),
            WorkloadMeasure::new("full.chunks_requested", requested_full as f64),
            WorkloadMeasure::new("full.chunks_written", (sum.stored - before.stored) as f64),
            WorkloadMeasure::new("full.hit_ratio", ratio(sum.hits - before.hits, requested_full)),
            WorkloadMeasure::new("evictions", sum.evictions as f64),
            WorkloadMeasure::new("expired", sum.expired as f64),
            WorkloadMeasure::new("discarded_bytes", self.output.discarded_bytes as f64),
        ];
        for (number, range) in self.ranges.iter().enumerate() {
            let class = self.counters(Some(number));
            let workers = self.workers.iter().filter(|worker| worker.class == number);
            let (slots, stored) = workers.fold((0, 0), |(slots, stored), worker| {
                (slots + u64::from(worker.place.slots), stored + worker.tier.stored() as u64)
            });
            let name = |measure: &str| format!("{}.{measure}", range.name);
            measures.extend([
                WorkloadMeasure::new(name("hit_ratio"), ratio(class.hits, class.requested)),
                WorkloadMeasure::new(name("written_share"), ratio(class.written_bytes, sum.written_bytes)),
                WorkloadMeasure::new(name("slots"), slots as f64),
                WorkloadMeasure::new(name("stored_share"), ratio(stored, slots)),
            ]);
            let places = self.workers.iter().filter(|worker| worker.class == number).map(|worker| &worker.place);
            let places = places.filter(|place| place.merged > 1 && place.slots < MERGED_SLOTS_MIN);
            let merged = places.map(|place| place.merged).max();
            measures.extend(merged.map(|merged| WorkloadMeasure::new(name(MERGED_SLOTS), merged as f64)));
        }
        measures
    }
}
