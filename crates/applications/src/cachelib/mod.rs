//! CacheLib model: a hybrid cache of DRAM and flash, and its writes to the drive.
//!
//! ```text
//! trace (KV, CDN, Twitter) \
//! generator (presets)       > cache operations -> DRAM -> BigHash (SOC)    -> requests, hit ratios
//!                                                      -> BlockCache (LOC) ->
//! ```
//!
//! [`CachelibSettings`] describes the cache and its workload. [`CachelibSettings::source`] fits
//! both to a drive. The operations come from trace files or from a seeded generator with published
//! statistics ([`Preset`]).
//!
//! The module `cache` executes the operations and queues the requests of its two engines. BigHash
//! rewrites random 4 KiB buckets. BlockCache writes whole regions sequentially. Each engine has its
//! own placement handle.
//!
//! On a scaled model, DRAM, engines, regions and the number of keys shrink. Items, buckets
//! and percentages do not. The cache reports its own counters as measures.
//!
//! Without a clock, an operation completes immediately. In virtual time, with a [`Pace`],
//! operations arrive at a rate. Inserts then wait for threads or are rejected (`navy`).
//!
//! The model stores no values and no expiry times.

mod bighash;
mod block_cache;
mod cache;
mod counters;
mod layout;
mod navy;
mod pace;
mod source;
#[cfg(test)]
mod tests;

pub use block_cache::RegionEviction;
pub use pace::{EngineResources, Pace};
pub use source::CacheSource;

use std::path::PathBuf;

use base::HumanBytes;
use serde::{Deserialize, Serialize};

use crate::cache::{
    AdmissionPolicy, AdmissionState, CacheOperation, CacheTraceFiles, CacheTraceFormat, Dram, Preset,
    StatisticsSettings, WorkloadStatistics,
};
use workload::random::mix;
use workload::{WorkloadError, WorkloadTarget, multiple_of, within};

/// A cache and its workload: `kind = "cachelib"`. Defaults come from CacheLib's documentation and
/// source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CachelibSettings {
    /// Published workload to generate.
    pub preset: Preset,
    /// Values that replace those of the preset.
    pub statistics: StatisticsSettings,
    /// Trace files to read in this order, in place of a generator.
    pub trace: Vec<PathBuf>,
    pub trace_format: CacheTraceFormat,
    /// Keys that each line stands for, each with a suffix (`ampFactor` of cachebench).
    pub amplification: u32,
    /// Bytes of the trace's keys and values, percent of the drive. Replaces `amplification`: each
    /// line stands for several keys, or some keys are dropped. The first million operations give
    /// the estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_working_set_percent: Option<f64>,
    /// Counts bad lines (measure `bad_lines`). If false, the first one is an error.
    pub skip_bad_lines: bool,
    /// Number of cache operations. If left out, a trace ends with its files and a generator is
    /// endless.
    pub operations: Option<u64>,
    /// DRAM of the cache, bytes. If left out, the preset gives its share of the drive.
    #[serde(with = "base::size")]
    pub dram_bytes: Option<u64>,
    /// Follows each get miss with a set (`enableLookaside` of cachebench). If left out, the preset
    /// decides.
    pub lookaside: Option<bool>,
    /// Metadata at the start of the device, percent (0.5, allocator/nvmcache/NavySetup.cpp).
    pub metadata_percent: f64,
    /// SOC at the end of the device, percent (`navyBigHashSizePct`).
    pub soc_percent: f64,
    /// Largest item (key and value) for SOC, bytes (2 KiB, `navySmallItemMaxSize`).
    #[serde(with = "base::size")]
    pub small_item_max_bytes: u64,
    /// Bucket size of SOC, bytes (4 KiB, `navyBigHashBucketSize`).
    #[serde(with = "base::size")]
    pub bucket_bytes: u64,
    /// Bloom filter of a bucket, bytes (8, allocator/nvmcache/NavyConfig.h). 0 disables it.
    pub bloom_filter_bytes: u64,
    /// Region size of LOC, bytes (16 MiB, `navyRegionSizeMB`).
    #[serde(with = "base::size")]
    pub region_bytes: u64,
    /// Eviction order of LOC regions.
    pub region_eviction: RegionEviction,
    /// Number of regions kept clean in advance (1, allocator/nvmcache/NavyConfig.h).
    pub clean_regions: u64,
    /// Minimum alignment of LOC entries, bytes (4 KiB, `navyBlockSize` of the published
    /// configurations).
    #[serde(with = "base::size")]
    pub loc_align_bytes: u64,
    /// Largest write of LOC, bytes (1 MiB, `deviceMaxWriteSize`).
    #[serde(with = "base::size")]
    pub device_max_write_bytes: u64,
    /// Admission policy of flash.
    pub admission: AdmissionPolicy,
    /// SOC and LOC write with placement indices 1 and 2 (navy/common/FdpNvme.cpp), if the drive has
    /// them.
    pub placement: bool,
    /// Issues flash reads as requests. Timed runs need them, and untimed runs are faster without.
    pub reads: bool,
    /// Rate and concurrency in virtual time. Without a pace, the drive sets the rate of the
    /// requests.
    pub pace: Option<Pace>,
}

impl Default for CachelibSettings {
    fn default() -> CachelibSettings {
        CachelibSettings {
            preset: Preset::Kvcache202206,
            statistics: StatisticsSettings::default(),
            trace: Vec::new(),
            trace_format: CacheTraceFormat::Auto,
            amplification: 1,
            trace_working_set_percent: None,
            skip_bad_lines: false,
            operations: None,
            dram_bytes: None,
            lookaside: None,
            metadata_percent: 0.5,
            soc_percent: 4.0,
            small_item_max_bytes: 2048,
            bucket_bytes: 4096,
            bloom_filter_bytes: 8,
            region_bytes: 16 << 20,
            region_eviction: RegionEviction::Fifo,
            clean_regions: 1,
            loc_align_bytes: 4096,
            device_max_write_bytes: 1 << 20,
            admission: AdmissionPolicy::Always,
            placement: true,
            reads: false,
            pace: None,
        }
    }
}

impl CachelibSettings {
    /// Creates the source for a drive.
    pub fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<CacheSource, WorkloadError> {
        self.check()?;
        CacheSource::new(self, target, seed)
    }

    /// Statistics of the preset, with the replacements of the settings.
    pub fn statistics(&self) -> WorkloadStatistics {
        self.statistics.over(self.preset, self.lookaside)
    }

    fn files(&self, target: &WorkloadTarget) -> CacheTraceFiles {
        let share = self.trace_working_set_percent.map(|percent| percent / 100.0);
        CacheTraceFiles {
            working_set_bytes: share.map(|share| (target.capacity_bytes() as f64 * share) as u64),
            files: self.trace.clone(),
            format: self.trace_format,
            amplification: self.amplification,
            skip_bad_lines: self.skip_bad_lines,
        }
    }

    /// Description of the cache if it replays a trace. `device_bytes` is the capacity of the
    /// full-size drive.
    pub(crate) fn traced(&self, device_bytes: u64) -> Option<String> {
        let share = |percent: f64| HumanBytes((device_bytes as f64 * percent / 100.0) as u64);
        let loc_percent = 100.0 - self.soc_percent - self.metadata_percent;
        let of_trace = match self.trace_working_set_percent {
            Some(percent) => format!("The trace's keys and values take {percent} % of the drive"),
            None => format!("Each line of the trace stands for {} keys", self.amplification),
        };
        (!self.trace.is_empty()).then(|| {
            format!(
                "CacheLib on all of the drive, {}, with {} of DRAM, {} for small objects and {} for large objects. \
                 {of_trace}",
                HumanBytes(device_bytes),
                HumanBytes(self.dram_bytes_on(device_bytes)),
                share(self.soc_percent),
                share(loc_percent)
            )
        })
    }

    /// DRAM of the cache on a full-size drive, bytes.
    fn dram_bytes_on(&self, device_bytes: u64) -> u64 {
        let share = self.statistics().dram_percent / 100.0;
        self.dram_bytes.unwrap_or((device_bytes as f64 * share) as u64)
    }

    /// Maximum memory of the workload, bytes.
    pub fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        /// Bytes per item in a region, with its index entry.
        const LOC_ITEM_BYTES: u64 = 80;
        /// Bytes of a bucket's first block.
        const BUCKET_BYTES: u64 = 64;
        /// Bytes per item in a bucket: 1/14 of a 64-byte block, plus the loss in partial blocks.
        const SOC_ITEM_BYTES: u64 = 10;
        const FIXED_BYTES: u64 = 16 << 20;
        self.check()?;
        let layout = layout::CacheLayout::new(self, target)?;
        let objects = if self.trace.is_empty() { self.statistics().objects_max(target) } else { u64::MAX };
        let dram_bytes = self.dram_bytes_on(target.device_bytes) / target.denominator();
        let loc_items = objects.min(layout.regions * (layout.region_bytes / layout.loc_align_bytes));
        // The header size limits the number of items in a bucket.
        let soc_items = objects.min(layout.buckets * (layout.bucket_bytes / 16));
        let gate_bytes = AdmissionState::memory_bytes(self.admission, target.denominator());
        let bytes = FIXED_BYTES
            + layout.regions * 32
            + loc_items * LOC_ITEM_BYTES
            + layout.buckets * BUCKET_BYTES
            + soc_items * SOC_ITEM_BYTES;
        Ok(bytes.saturating_add(gate_bytes).saturating_add(Dram::memory_bytes(dram_bytes, objects)))
    }

    fn check(&self) -> Result<(), WorkloadError> {
        within("metadata_percent", self.metadata_percent, 0.0..=100.0)?;
        within("soc_percent", self.soc_percent, 0.0..=100.0)?;
        let both = self.metadata_percent + self.soc_percent;
        within("metadata_percent + soc_percent", both, 0.0..=100.0)?;
        multiple_of(4096, "bucket_bytes", self.bucket_bytes, 1 << 20)?;
        multiple_of(4096, "region_bytes", self.region_bytes, 256 << 20)?;
        multiple_of(512, "loc_align_bytes", self.loc_align_bytes, 64 << 10)?;
        multiple_of(4096, "device_max_write_bytes", self.device_max_write_bytes, 256 << 20)?;
        if !self.loc_align_bytes.is_power_of_two() {
            let setting = format!("loc_align_bytes = {}", self.loc_align_bytes);
            return Err(WorkloadError::setting(setting, "must be a power of two"));
        }
        within("small_item_max_bytes", self.small_item_max_bytes, 0..=self.bucket_bytes)?;
        within("bloom_filter_bytes", self.bloom_filter_bytes, 0..=1024)?;
        within("clean_regions", self.clean_regions, 1..=1024)?;
        within("amplification", self.amplification, 1..=65_536)?;
        if let Some(percent) = self.trace_working_set_percent {
            within("trace_working_set_percent", percent, 1.0..=100_000.0)?;
            if self.amplification > 1 || self.trace.is_empty() {
                return Err(WorkloadError::setting(
                    format!("trace_working_set_percent = {percent}"),
                    "needs a trace and cannot be combined with amplification. Set trace, and remove amplification",
                ));
            }
        }
        self.admission.check()?;
        self.pace.iter().try_for_each(Pace::check)?;
        self.statistics().check()
    }
}
