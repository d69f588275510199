//! Request source of the cache, which turns operations into requests and measures.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::bighash::BigHash;
use super::block_cache::BlockCache;
use super::cache::{Behaviour, HybridCache};
use super::counters::{CacheCounters, RecentHitRatio};
use super::layout::{CacheLayout, LOC_STREAM, SOC_STREAM};
use super::navy::Navy;
use super::{CacheOperation, CachelibSettings, Pace};
use crate::cache::{AdmissionState, Dram, OperationSource};
use workload::{
    IoRequest, NextCall, OwnedRange, PacedHost, PlacementIndex, RequestSource, TaggedRequest, WorkloadError,
    WorkloadMeasure, WorkloadTarget,
};

/// Divisor of the capacity that gives the written bytes per interval of the recent hit ratio.
const RECENT_PARTS: u64 = 4;

/// Operations without a request after which the run fails. The cache then holds all requested items
/// and will never write again.
const IDLE_OPERATIONS: u64 = 10_000_000;

pub struct CacheSource {
    operations: OperationSource,
    /// Remaining operations, if limited.
    left: Option<u64>,
    pub(super) cache: HybridCache,
    /// Clock in virtual time.
    clock: Option<OperationClock>,
}

/// Progress of the operations in virtual time.
struct OperationClock {
    pace: Pace,
    /// Threads, until the cache takes them.
    navy: Option<Navy>,
    now_ns: u64,
    /// Number of operations so far.
    taken: u64,
    /// Operations since the last request.
    idle: u64,
    has_ended: bool,
}

impl CacheSource {
    pub(super) fn new(settings: &CachelibSettings, target: &WorkloadTarget, seed: u64) -> Result<Self, WorkloadError> {
        let layout = CacheLayout::new(settings, target)?;
        let statistics = settings.statistics();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let gate_random = random.clone();
        random.jump();
        let denominator = target.denominator();
        let operations = OperationSource::new(&statistics, settings.files(target), target, random)?;
        let soc = (layout.buckets > 0)
            .then(|| BigHash::new(layout.buckets, layout.bucket_bytes, settings.bloom_filter_bytes));
        let loc = layout.has_loc(settings).then(|| {
            BlockCache::new(
                layout.regions,
                layout.region_bytes,
                layout.loc_align_bytes,
                settings.clean_regions,
                settings.region_eviction,
            )
        });
        let placed = settings.placement && target.placement_count > 0;
        // If the drive has fewer handles, the missing ones map to the default handle.
        let placement =
            |index| placed.then_some(PlacementIndex(if index < target.placement_count { index } else { 0 }));
        let cache = HybridCache {
            behaviour: Behaviour {
                small_item_max_bytes: settings.small_item_max_bytes as u32,
                lookaside: statistics.lookaside,
                reads: settings.reads,
                placements: [placement(1), placement(2)],
            },
            layout,
            dram: Dram::new(settings.dram_bytes_on(target.device_bytes) / denominator),
            soc,
            loc,
            gate: AdmissionState::new(settings.admission, denominator, gate_random),
            counters: CacheCounters::default(),
            recent: RecentHitRatio::new(target.capacity_bytes() / RECENT_PARTS),
            requests: std::collections::VecDeque::new(),
            navy: None,
        };
        let clock = settings.pace.as_ref().map(|pace| OperationClock {
            pace: pace.clone(),
            navy: Some(Navy::new(pace, denominator, settings.clean_regions)),
            now_ns: 0,
            taken: 0,
            idle: 0,
            has_ended: false,
        });
        Ok(CacheSource {
            operations,
            left: settings.operations.map(|operations| operations / denominator),
            cache,
            clock,
        })
    }

    fn next_operation(&mut self) -> Result<Option<CacheOperation>, WorkloadError> {
        if let Some(left) = &mut self.left {
            if *left == 0 {
                return Ok(None);
            }
            *left -= 1;
        }
        self.operations.next(|operations| self.cache.prefetch(operations))
    }

    /// Clock and threads of a paced cache.
    fn running(&mut self) -> (&mut OperationClock, &mut Navy) {
        let clock = self.clock.as_mut().expect("it is paced");
        (clock, self.cache.navy.as_mut().expect("its threads run"))
    }

    /// Executes the next operation. Returns false at the end.
    fn execute_next(&mut self) -> Result<bool, WorkloadError> {
        let operation = match self.running().0.idle {
            idle if idle < IDLE_OPERATIONS => self.next_operation()?,
            _ => return Err(never_writes()),
        };
        let Some(operation) = operation else { return Ok(false) };
        self.cache.execute(operation);
        let clock = self.running().0;
        clock.taken += 1;
        clock.idle += 1;
        Ok(true)
    }
}

fn never_writes() -> WorkloadError {
    let problem = format!(
        "sent no request to the drive for {IDLE_OPERATIONS} operations, because the cache holds all requested keys. \
         Use more keys (statistics.working_set_percent) or sets, a smaller cache, or reads = true"
    );
    WorkloadError::setting("kind = \"cachelib\"", problem)
}

impl RequestSource for CacheSource {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        assert!(self.cache.navy.is_none(), "with threads requests come from them");
        let (mut count, mut idle) = (0, 0);
        while count < limit {
            match self.cache.requests.pop_front() {
                Some(request) => {
                    requests.push(request);
                    (count, idle) = (count + 1, 0);
                }
                None => match self.next_operation() {
                    Ok(Some(operation)) if idle < IDLE_OPERATIONS => {
                        idle += 1;
                        self.cache.execute(operation);
                    }
                    Ok(Some(_)) => {
                        self.left = Some(0);
                        return Err(never_writes());
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.left = Some(0);
                        return Err(error);
                    }
                },
            }
        }
        Ok(count)
    }

    fn owners(&self) -> Vec<OwnedRange> {
        let layout = &self.cache.layout;
        let owner = |(name, (start_bytes, end_bytes)): (&str, (u64, u64))| OwnedRange {
            name: name.to_string(),
            start_bytes,
            end_bytes,
        };
        let engines = [("loc", layout.loc_extent()), ("soc", layout.soc_extent())];
        engines.into_iter().filter(|(_, (start, end))| end > start).map(owner).collect()
    }

    fn streams(&self) -> Vec<String> {
        let mut names = vec![String::new(); 2];
        names[usize::from(SOC_STREAM)] = "soc".into();
        names[usize::from(LOC_STREAM)] = "loc".into();
        names
    }

    fn share_done(&self) -> Option<f64> {
        self.left.is_none().then(|| self.operations.share_done())?
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let mut measures = self.cache.counters.measures(&self.cache.recent, self.operations.bad_lines());
        if let (Some(clock), Some(navy)) = (&self.clock, &self.cache.navy) {
            let rejected = |engine| self.cache.counters.inserts_rejected_percent(engine);
            let seconds = clock.now_ns.max(1) as f64 / 1e9;
            measures.extend([
                WorkloadMeasure::new("soc.inserts_rejected_percent", rejected(SOC_STREAM)),
                WorkloadMeasure::new("loc.inserts_rejected_percent", rejected(LOC_STREAM)),
                WorkloadMeasure::new("inserts_in_flight.most", navy.most_inserts as f64),
                WorkloadMeasure::new("operations_per_second", clock.taken as f64 / seconds),
            ]);
        }
        measures
    }

    fn paced(&mut self) -> Option<&mut dyn PacedHost> {
        let clock = self.clock.as_mut()?;
        if let Some(navy) = clock.navy.take() {
            assert!(self.cache.requests.is_empty(), "it is paced before its first request");
            self.cache.navy = Some(navy);
        }
        Some(self)
    }
}

impl PacedHost for CacheSource {
    fn poll_requests(&mut self, now_ns: u64, requests: &mut Vec<TaggedRequest>) -> Result<NextCall, WorkloadError> {
        self.running().0.now_ns = now_ns;
        loop {
            let (clock, navy) = self.running();
            let before = requests.len();
            navy.run(requests);
            if requests.len() > before {
                clock.idle = 0;
            }
            if clock.has_ended {
                return Ok(if navy.is_idle() { NextCall::Never } else { NextCall::Completion });
            }
            if !navy.has_caller() {
                return Ok(NextCall::Completion);
            }
            let due_ns = clock.pace.due_ns(clock.taken);
            if due_ns > now_ns {
                return Ok(NextCall::At(due_ns));
            }
            let taken = self.execute_next();
            self.running().0.has_ended = !matches!(taken, Ok(true));
            taken?;
        }
    }

    fn complete_request(&mut self, tag: u16) {
        self.running().1.completed(tag);
    }

    fn depth(&self) -> u64 {
        self.cache.navy.as_ref().map_or(0, Navy::threads)
    }
}
