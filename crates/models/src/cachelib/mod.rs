//! CacheLib: a hybrid cache of DRAM and flash, and what it writes to the drive.
//!
//! ```text
//! trace (KV, CDN, Twitter) \
//! generator (presets)       > cache operations -> DRAM -> BigHash (SOC), BlockCache (LOC) -> requests, hit ratios
//! ```
//!
//! A [`Settings`] is the cache and its workload; [`Settings::source`] fits it to a drive. The operations come from trace files or from a
//! seeded generator with published statistics ([`Preset`]); the cache (`cache`) carries them out and queues the requests that its two engines
//! make: random rewrites of 4 KiB buckets and sequential writes of whole regions, each with a placement handle of its own.
//!
//! On a twin everything that holds bytes shrinks (DRAM, engines, regions, the number of keys); items, buckets and percentages do not.
//! What is counted of the cache itself comes out as measures.
//!
//! Without a clock everything happens at once. In virtual time, with a [`Pace`], operations come at a rate, and inserts wait for threads or are
//! rejected (`navy`).
//!
//! It does not store values, or keep times to live.

mod admission;
mod bighash;
mod block_cache;
mod cache;
mod counters;
mod dram;
mod generator;
mod index;
mod layout;
mod navy;
mod pace;
mod preset;
mod source;
#[cfg(test)]
mod tests;
mod trace;

pub use admission::Admission;
pub use block_cache::RegionEviction;
pub use pace::{Engines, Pace};
pub use preset::{Preset, Statistics};
pub use source::CacheSource;
pub use trace::TraceFormat;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use workload::random::mix;
use workload::{Target, WorkloadError, multiple_of, within};

/// A cache and its workload: `kind = "cachelib"`. Facts are of CacheLib's documentation and source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Published workload to generate.
    pub preset: Preset,
    /// Numbers of the preset to replace.
    pub statistics: StatisticsSettings,
    /// Trace files to read instead of generating, in this order.
    pub trace: Vec<PathBuf>,
    /// What the files are.
    pub trace_format: TraceFormat,
    /// Every line stands for so many keys, each with a suffix (`ampFactor` of cachebench).
    pub amplification: u32,
    /// Count bad lines (measure `bad_lines`) instead of stopping at the first.
    pub skip_bad_lines: bool,
    /// Ends after so many cache operations; without it a trace ends with its files, and a generator goes on for ever.
    pub operations: Option<u64>,
    /// DRAM of the cache; the preset's share of the drive if left out.
    #[serde(with = "base::size")]
    pub dram_bytes: Option<u64>,
    /// A get that misses is followed by a set (`enableLookaside` of cachebench); the preset's if left out.
    pub lookaside: Option<bool>,
    /// Metadata at the start of the device, percent (0.5, allocator/nvmcache/NavySetup.cpp).
    pub metadata_percent: f64,
    /// SOC at the end of the device, percent (`navyBigHashSizePct`).
    pub soc_percent: f64,
    /// Largest key and value that go to SOC (2 KiB, `navySmallItemMaxSize`).
    #[serde(with = "base::size")]
    pub small_item_max_bytes: u64,
    /// Bucket of SOC (4 KiB, `navyBigHashBucketSize`).
    #[serde(with = "base::size")]
    pub bucket_bytes: u64,
    /// Bloom filter of a bucket (8 bytes, allocator/nvmcache/NavyConfig.h); 0 for none.
    pub bloom_filter_bytes: u64,
    /// Region of LOC (16 MiB, `navyRegionSizeMB`).
    #[serde(with = "base::size")]
    pub region_bytes: u64,
    /// Order in which LOC regions are evicted.
    pub region_eviction: RegionEviction,
    /// Regions kept clean in advance (1, allocator/nvmcache/NavyConfig.h).
    pub clean_regions: u64,
    /// Least alignment of LOC entries (4 KiB: the `navyBlockSize` of the published configurations).
    #[serde(with = "base::size")]
    pub loc_align_bytes: u64,
    /// Largest write of LOC (1 MiB, `deviceMaxWriteSize`).
    #[serde(with = "base::size")]
    pub device_max_write_bytes: u64,
    /// Which items flash may have.
    pub admission: Admission,
    /// SOC and LOC write with placement indices 1 and 2 (navy/common/FdpNvme.cpp), if the drive offers them.
    pub placement: bool,
    /// Flash reads are requests too: needed where time counts, slower where it does not.
    pub reads: bool,
    /// In virtual time: how fast the cache is asked, and how much it keeps in flight. Without it requests follow each other as fast as the
    /// drive takes them.
    pub pace: Option<Pace>,
}

/// Numbers of a preset to replace; see [`Statistics`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatisticsSettings {
    /// See [`Statistics::get_percent`].
    pub get_percent: Option<f64>,
    /// See [`Statistics::set_percent`].
    pub set_percent: Option<f64>,
    /// See [`Statistics::absent_get_percent`].
    pub absent_get_percent: Option<f64>,
    /// See [`Statistics::zipf_alpha`].
    pub zipf_alpha: Option<f64>,
    /// See [`Statistics::working_set_percent`].
    pub working_set_percent: Option<f64>,
    /// See [`Statistics::large_set_weight`].
    pub large_set_weight: Option<f64>,
    /// See [`Statistics::key_bytes`].
    pub key_bytes: Option<u32>,
    /// See [`Statistics::value_quantiles`].
    pub value_quantiles: Option<Vec<(f64, u32)>>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            preset: Preset::Kvcache202206,
            statistics: StatisticsSettings::default(),
            trace: Vec::new(),
            trace_format: TraceFormat::Auto,
            amplification: 1,
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
            admission: Admission::Always,
            placement: true,
            reads: false,
            pace: None,
        }
    }
}

impl Settings {
    /// Makes the source for a drive.
    ///
    /// # Errors
    /// A setting that is impossible, or a cache that does not fit the drive.
    pub fn source(&self, target: &Target, seed: u64) -> Result<CacheSource, WorkloadError> {
        self.check()?;
        CacheSource::new(self, target, seed)
    }

    /// The preset's numbers with those of the settings.
    pub fn statistics(&self) -> Statistics {
        let preset = self.preset.statistics();
        let own = &self.statistics;
        Statistics {
            get_percent: own.get_percent.unwrap_or(preset.get_percent),
            set_percent: own.set_percent.unwrap_or(preset.set_percent),
            absent_get_percent: own.absent_get_percent.unwrap_or(preset.absent_get_percent),
            lookaside: self.lookaside.unwrap_or(preset.lookaside),
            zipf_alpha: own.zipf_alpha.unwrap_or(preset.zipf_alpha),
            working_set_percent: own.working_set_percent.unwrap_or(preset.working_set_percent),
            large_set_weight: own.large_set_weight.unwrap_or(preset.large_set_weight),
            key_bytes: own.key_bytes.unwrap_or(preset.key_bytes),
            value_quantiles: own.value_quantiles.clone().unwrap_or(preset.value_quantiles),
            dram_percent: preset.dram_percent,
        }
    }

    /// DRAM of the cache on a drive at full size.
    fn dram_bytes_on(&self, device_bytes: u64) -> u64 {
        let share = self.statistics().dram_percent / 100.0;
        self.dram_bytes.unwrap_or((device_bytes as f64 * share) as u64)
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
        self.admission.check()?;
        self.pace.iter().try_for_each(Pace::check)?;
        self.check_statistics()
    }

    fn check_statistics(&self) -> Result<(), WorkloadError> {
        let statistics = self.statistics();
        let name = |name: &str| format!("statistics.{name}");
        within(&name("get_percent"), statistics.get_percent, 0.0..=100.0)?;
        within(&name("set_percent"), statistics.set_percent, 0.0..=100.0)?;
        let both = statistics.get_percent + statistics.set_percent;
        within(&name("get_percent + set_percent"), both, 1e-3..=100.0 + 1e-9)?;
        within(&name("absent_get_percent"), statistics.absent_get_percent, 0.0..=100.0)?;
        within(&name("zipf_alpha"), statistics.zipf_alpha, 0.0..=4.0)?;
        within(&name("working_set_percent"), statistics.working_set_percent, 1e-6..=1e6)?;
        within(&name("large_set_weight"), statistics.large_set_weight, 1e-3..=1e3)?;
        within(&name("key_bytes"), statistics.key_bytes, 1..=256)?;
        let quantiles = &statistics.value_quantiles;
        let ordered = quantiles
            .windows(2)
            .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let ends =
            quantiles.first().map(|first| first.0) == Some(0.0) && quantiles.last().map(|last| last.0) == Some(100.0);
        let sizes = quantiles.iter().all(|(_, bytes)| (1..=1 << 30).contains(bytes));
        if !(ordered && ends && sizes && quantiles.len() >= 2) {
            let problem = "must be pairs of percent and bytes that rise from 0 to 100 percent, bytes from 1 to 1 GiB";
            return Err(WorkloadError::setting(name("value_quantiles"), problem));
        }
        Ok(())
    }
}

/// What is done with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Get,
    Set,
    Delete,
}

/// One operation on the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CacheOperation {
    kind: Kind,
    /// Hash of the key.
    key: u64,
    /// Key and value; none for a get of a key that does not exist, and where a trace does not say.
    bytes: Option<u32>,
}
