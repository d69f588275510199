//! The cache as a source of requests: operations in, requests and measures out.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::admission::Gate;
use super::bighash::BigHash;
use super::block_cache::BlockCache;
use super::cache::{Behaviour, HybridCache, LOC_STREAM, SOC_STREAM};
use super::counters::{Counters, Recent};
use super::dram::Dram;
use super::generator::Generator;
use super::layout::Layout;
use super::trace::Trace;
use super::{CacheOperation, Settings};
use crate::{Measure, Range, Request, Source, Target, WorkloadError};

/// The hit ratio of late is that of this part of the capacity written.
const RECENT_PARTS: u64 = 4;

/// So many operations in a row without a request are the end: the cache holds all that is asked for, and never writes again.
const IDLE_OPERATIONS: u64 = 10_000_000;

/// A cache at work on a drive.
pub struct CacheSource {
    operations: Operations,
    /// Operations left, if they are limited.
    left: Option<u64>,
    pub(super) cache: HybridCache,
}

impl std::fmt::Debug for CacheSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("CacheSource");
        debug.field("counters", &self.cache.counters).finish_non_exhaustive()
    }
}

/// Where the operations come from.
#[derive(Debug)]
enum Operations {
    Generated(Box<Generator>),
    Traced(Box<Trace>),
}

impl CacheSource {
    pub(super) fn new(settings: &Settings, target: &Target, seed: u64) -> Result<CacheSource, WorkloadError> {
        let layout = Layout::new(settings, target)?;
        let statistics = settings.statistics();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let gate_random = random.clone();
        random.jump();
        let denominator = target.denominator();
        let operations = match settings.trace.is_empty() {
            true => {
                let generator = Generator::new(&statistics, target.device_bytes, denominator, random);
                Operations::Generated(Box::new(generator))
            }
            false => Operations::Traced(Box::new(Trace::new(settings, target.endless)?)),
        };
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
        let placed = settings.placement && target.placement_ids > 0;
        // A drive with fewer handles leaves the rest on its default one.
        let placement = |index: u16| placed.then_some(if index < target.placement_ids { index } else { 0 });
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
            gate: Gate::new(settings.admission, denominator, gate_random),
            counters: Counters::default(),
            recent: Recent::new(target.capacity_bytes() / RECENT_PARTS),
            requests: std::collections::VecDeque::new(),
        };
        Ok(CacheSource {
            operations,
            left: settings.operations.map(|operations| operations / denominator),
            cache,
        })
    }

    fn next_operation(&mut self) -> Result<Option<CacheOperation>, WorkloadError> {
        if let Some(left) = &mut self.left {
            if *left == 0 {
                return Ok(None);
            }
            *left -= 1;
        }
        match &mut self.operations {
            Operations::Generated(generator) => Ok(Some(generator.next())),
            Operations::Traced(trace) => {
                let operation = trace.next();
                self.cache.counters.bad_lines = trace.bad_lines();
                operation
            }
        }
    }
}

fn never_writes() -> WorkloadError {
    let problem = format!(
        "no request in {IDLE_OPERATIONS} operations in a row, as the cache holds all that is asked for: use more keys \
         (statistics.working_set_percent) or sets, a smaller cache, or reads = true"
    );
    WorkloadError::setting("kind = \"cachelib\"", problem)
}

impl Source for CacheSource {
    fn next_batch(&mut self, requests: &mut Vec<Request>, limit: usize) -> Result<usize, WorkloadError> {
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
                        self.cache.take(operation);
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

    fn owners(&self) -> Vec<Range> {
        let layout = &self.cache.layout;
        let owner = |(name, (start_bytes, end_bytes)): (&str, (u64, u64))| Range {
            name: name.to_string(),
            start_bytes,
            end_bytes,
        };
        let engines = [("loc", layout.loc_extent()), ("soc", layout.soc_extent())];
        engines
            .into_iter()
            .filter(|(_, (start, end))| end > start)
            .map(owner)
            .collect()
    }

    fn streams(&self) -> Vec<String> {
        let mut names = vec![String::new(); 2];
        names[usize::from(SOC_STREAM)] = "soc".into();
        names[usize::from(LOC_STREAM)] = "loc".into();
        names
    }

    fn share_done(&self) -> Option<f64> {
        match &self.operations {
            Operations::Traced(trace) if self.left.is_none() => trace.share_done(),
            Operations::Traced(_) | Operations::Generated(_) => None,
        }
    }

    fn measures(&self) -> Vec<Measure> {
        self.cache.counters.measures(&self.cache.recent)
    }
}
