//! Flash object cache: objects of any size by key, in slots or in log-structured segments.
//!
//! ```text
//! preset, statistics or traces -> operations -> dram -> admission
//!   -> store (slots | segments: eviction, groups) -> output -> requests
//! ```
//!
//! **Slots**: the space consists of slabs (1 MiB in memcached's slab allocator and Twitter's
//! fatcache, `FC_SLAB_SIZE`). A size class without a free slot takes a slab until all are taken.
//! After that, an object replaces another one of its class, which the eviction policy selects. An
//! object goes to the smallest slot that fits, and its pages are written immediately.
//!
//! **Segments**: objects are packed into open segments, one for each group. A write buffer writes
//! them sequentially, and they never change afterwards. If no segment is free, the eviction policy
//! selects one that leaves as a whole. Objects with enough uses are then rewritten. If few segments
//! are free, the emptiest may be compacted before that. These caches work this way:
//!
//! - extstore (memcached's `extstore.c` and `storage.c`) has pages of 64 MiB and write buffers of 4
//!   MiB. It compacts pages below 80 % valid data, or evicts the oldest. It has separate buckets
//!   for rewritten objects and for objects that soon expire.
//! - The cyclone cache of Apache Traffic Server has one group in FIFO order and an "evacuation" of
//!   used objects.
//!
//! Most log-structured flash caches in publications also work this way.
//!
//! On a scaled model of 1/d, these shrink: space, DRAM, number of keys (each stands for d
//! neighbouring ranks), operation windows and rates, segments (not below the largest object), and
//! writes of untimed runs. One key in d of a trace is used. Objects, slots, slabs and times to live
//! stay the same.
//!
//! The model omits an index on flash and its checkpoints (keys are in memory), headers of objects,
//! moves of slabs between classes, and concurrency. Of a file system below the cache (Varnish,
//! nginx) it has only the space.

mod groups;
mod output;
mod segments;
mod slots;
mod source;
#[cfg(test)]
mod tests;

pub use groups::ObjectGrouping;
pub use source::ObjectCache;

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cache::{
    self, AdmissionPolicy, AdmissionState, CacheTraceFiles, CacheTraceFormat, Dram, Preset, StatisticsSettings,
    WorkloadStatistics, check_quantiles,
};
use workload::{WorkloadError, WorkloadTarget, multiple_of, within};

/// Block size. Slots, slabs, segments and writes are multiples of it.
const BLOCK_BYTES: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectLayout {
    /// One slot of the size class per object, overwritten in place.
    Slots,
    /// Packed into segments that are written and evicted as a whole.
    Segments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectEviction {
    /// Evicts the oldest object of the class, or the segment closed first.
    Fifo,
    /// Evicts the least recently used object or segment.
    Lru,
    /// Evicts the least frequently used object or segment. Ties go to the least recently used.
    Lfu,
    /// Evicts the object that expires first. Expired objects leave immediately, and segments leave
    /// when all their objects have expired.
    Ttl,
    /// Slots: like `fifo`, but skips each object used since its write or its last skip.
    Clock,
    /// Segments: evicts the segment with the fewest bytes of stored objects.
    LeastValid,
}

/// Settings table `[workload]` of `kind = "object_cache"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectCacheSettings {
    /// Part of the drive for slots or segments, percent. Default 90.
    pub used_percent: f64,
    /// Layout of objects on the drive. Default `segments`.
    pub layout: ObjectLayout,
    /// Eviction policy. Default `fifo`.
    pub eviction: ObjectEviction,
    /// Grouping of objects. Each group has its own segments and placement index. Default `none`.
    pub groups: ObjectGrouping,
    /// Gives each group its own placement index. Default true.
    pub placement: bool,
    /// Smallest slot, and upper bound of the smallest size class, bytes. Default 4 KiB.
    #[serde(with = "base::size")]
    pub slot_bytes: u64,
    /// Size ratio of neighbouring size classes. Default 1.25 (`-f` of memcached and fatcache).
    pub growth_factor: f64,
    /// Slots: allocation unit of a size class, bytes. Default 1 MiB.
    #[serde(with = "base::size")]
    pub slab_bytes: u64,
    /// Segments: size of a segment, bytes. Default 64 MiB (extstore's `ext_page_size`).
    #[serde(with = "base::size")]
    pub segment_bytes: u64,
    /// Segments: uses since the write after which an evicted object is rewritten. Default 0, which
    /// rewrites none.
    pub reinsert_uses: u32,
    /// Segments: fraction of valid bytes below which a segment is compacted, percent. Compaction
    /// runs if fewer than `compact_under` segments are free, and rewrites all objects of the
    /// emptiest one. Default 0, which disables it (extstore's `ext_max_frag` is 80).
    pub compact_percent: f64,
    /// Segments: number that compaction keeps free. Default 1 (extstore's `ext_compact_under`, 1 %
    /// of its pages, at least 1).
    pub compact_under: u32,
    /// Data behind slots or segments that is written first and never changes, percent of the drive.
    /// It stands for file system metadata. Default 0.
    pub unchanged_percent: f64,
    /// Maximum size of stored objects, bytes. Default 1 MiB (memcached's `-I`).
    #[serde(with = "base::size")]
    pub max_object_bytes: u64,
    /// Largest write, bytes. For segments, the write buffer, which is written when full. Default 4
    /// MiB (extstore's `ext_wbuf_size`).
    #[serde(with = "base::size")]
    pub write_bytes: u64,
    /// Discards evicted segments, and objects that leave their slots without an immediate
    /// overwrite. Default false.
    pub discard: bool,
    /// Also issues flash hits as read requests. Default false.
    pub reads: bool,
    /// Admission policy of flash. Default `{ policy = "always" }`.
    pub admission: AdmissionPolicy,
    /// Memory in front of flash, bytes. Flash gets the evicted objects. Default 0, which sends all
    /// objects to flash immediately.
    #[serde(with = "base::size")]
    pub dram_bytes: u64,
    /// Times to live by quantile: percent of the keys and seconds, log-uniform in between. A key
    /// always has the same time. By default, objects never expire.
    pub ttl_quantiles: Vec<(f64, u32)>,
    /// Operations per second of the drive at full size, the clock of times to live. Default
    /// 100,000.
    pub operations_per_second: f64,
    /// Published workload to generate. Default `cdn`.
    pub preset: Preset,
    /// Values that replace those of the preset.
    pub statistics: StatisticsSettings,
    /// Follows each get miss with a set. If left out, the preset decides.
    pub lookaside: Option<bool>,
    /// Trace files to read in this order, in place of a generator.
    pub trace: Vec<PathBuf>,
    /// Format of the trace files. Default `auto`.
    pub trace_format: CacheTraceFormat,
    /// Counts bad lines (measure `bad_lines`). If false, the first one is an error. Default false.
    pub skip_bad_lines: bool,
}

impl Default for ObjectCacheSettings {
    fn default() -> ObjectCacheSettings {
        ObjectCacheSettings {
            used_percent: 90.0,
            layout: ObjectLayout::Segments,
            eviction: ObjectEviction::Fifo,
            groups: ObjectGrouping::None,
            placement: true,
            slot_bytes: 4096,
            growth_factor: 1.25,
            slab_bytes: 1 << 20,
            segment_bytes: 64 << 20,
            reinsert_uses: 0,
            compact_percent: 0.0,
            compact_under: 1,
            unchanged_percent: 0.0,
            max_object_bytes: 1 << 20,
            write_bytes: 4 << 20,
            discard: false,
            reads: false,
            admission: AdmissionPolicy::Always,
            dram_bytes: 0,
            ttl_quantiles: Vec::new(),
            operations_per_second: 100_000.0,
            preset: Preset::Cdn,
            statistics: StatisticsSettings::default(),
            lookaside: None,
            trace: Vec::new(),
            trace_format: CacheTraceFormat::Auto,
            skip_bad_lines: false,
        }
    }
}

impl ObjectCacheSettings {
    /// Creates the source for a drive.
    ///
    /// # Errors
    /// A setting is impossible or does not fit the drive, or a trace cannot be opened.
    pub fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<ObjectCache, WorkloadError> {
        self.check()?;
        ObjectCache::new(self, target, seed)
    }

    /// Statistics of the preset, with the replacements of the settings.
    pub fn statistics(&self) -> WorkloadStatistics {
        self.statistics.over(self.preset, self.lookaside)
    }

    fn files(&self) -> CacheTraceFiles {
        CacheTraceFiles {
            working_set_bytes: None,
            files: self.trace.clone(),
            format: self.trace_format,
            amplification: 1,
            skip_bad_lines: self.skip_bad_lines,
        }
    }

    pub fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        /// Bytes per object in a slot: the slot, its index entry, and its position in the eviction
        /// order.
        const SLOT_BYTES: u64 = 128;
        /// Bytes per object in a segment, with its index entry.
        const OBJECT_BYTES: u64 = 144;
        /// Bytes per segment, with its positions in the eviction orders.
        const SEGMENT_BYTES: u64 = 256;
        /// Minimum average size of the objects of a trace, bytes.
        const TRACED_BYTES: u64 = 64;
        const FIXED_BYTES: u64 = 16 << 20;
        self.check()?;
        let (space_bytes, segment_bytes) = self.space(target);
        let objects = if self.trace.is_empty() {
            self.statistics().objects_max(target)
        } else {
            target.capacity_bytes() / TRACED_BYTES
        };
        let bytes = match self.layout {
            ObjectLayout::Slots => objects.min(space_bytes / self.slot_bytes.max(1)).saturating_mul(SLOT_BYTES),
            ObjectLayout::Segments => {
                let segments = space_bytes / segment_bytes.max(1);
                // An object has at least one byte.
                let stored_bytes = objects.min(space_bytes).saturating_mul(OBJECT_BYTES);
                (segments * SEGMENT_BYTES).saturating_add(stored_bytes)
            }
        };
        let denominator = target.denominator();
        let dram_bytes = Dram::memory_bytes(self.dram_bytes / denominator, objects);
        Ok(FIXED_BYTES
            .saturating_add(bytes)
            .saturating_add(dram_bytes)
            .saturating_add(AdmissionState::memory_bytes(self.admission, denominator)))
    }

    /// Bytes of all slots or segments on a drive, and bytes of one segment.
    fn space(&self, target: &WorkloadTarget) -> (u64, u64) {
        let space_bytes = (target.capacity_bytes() as f64 * self.used_percent / 100.0) as u64;
        let unit_bytes = target.unit_bytes();
        let full_bytes = self.segment_bytes.next_multiple_of(unit_bytes);
        let least_bytes = self.max_object_bytes.next_multiple_of(unit_bytes);
        let segment_bytes = match target.scaled_model {
            Some(model) => model.size(full_bytes).max(least_bytes.min(full_bytes)),
            None => full_bytes,
        };
        (space_bytes, segment_bytes)
    }

    /// Location of the unchanged data on the drive.
    fn unchanged(&self, target: &WorkloadTarget) -> Range<u64> {
        let unit_bytes = target.unit_bytes();
        let at = |percent: f64| (target.capacity_bytes() as f64 * percent / 100.0) as u64 / unit_bytes * unit_bytes;
        at(self.used_percent)..at(self.used_percent + self.unchanged_percent)
    }

    /// Eviction order of the objects of a class in their slots.
    fn slot_eviction(&self) -> Result<cache::TierEviction, WorkloadError> {
        Ok(match self.eviction {
            ObjectEviction::Fifo => cache::TierEviction::Fifo,
            ObjectEviction::Lru => cache::TierEviction::Lru,
            ObjectEviction::Lfu => cache::TierEviction::Lfu,
            ObjectEviction::Ttl => cache::TierEviction::Ttl,
            ObjectEviction::Clock => cache::TierEviction::Clock,
            ObjectEviction::LeastValid => {
                let problem = "needs layout = \"segments\". With layout = \"slots\", use fifo, lru, lfu, ttl or clock";
                return Err(WorkloadError::setting("eviction = \"least_valid\"", problem));
            }
        })
    }

    fn check(&self) -> Result<(), WorkloadError> {
        within("used_percent", self.used_percent, 0.1..=100.0)?;
        within("unchanged_percent", self.unchanged_percent, 0.0..=99.0)?;
        within("used_percent + unchanged_percent", self.used_percent + self.unchanged_percent, 0.1..=100.0)?;
        within("compact_percent", self.compact_percent, 0.0..=99.0)?;
        within("compact_under", self.compact_under, 1..=1 << 20)?;
        multiple_of(BLOCK_BYTES, "slot_bytes", self.slot_bytes, 1 << 30)?;
        multiple_of(BLOCK_BYTES, "slab_bytes", self.slab_bytes, 1 << 30)?;
        multiple_of(BLOCK_BYTES, "segment_bytes", self.segment_bytes, 1 << 30)?;
        multiple_of(BLOCK_BYTES, "write_bytes", self.write_bytes, 1 << 30)?;
        within("growth_factor", self.growth_factor, 1.05..=1024.0)?;
        within("max_object_bytes", self.max_object_bytes, 1..=1 << 30)?;
        within("operations_per_second", self.operations_per_second, 1e-3..=1e9)?;
        if !self.ttl_quantiles.is_empty() {
            check_quantiles("ttl_quantiles", &self.ttl_quantiles, (u32::MAX, "4294967295"), "seconds")?;
        }
        self.admission.check()?;
        self.statistics().check()?;
        self.check_together()
    }

    /// Checks settings that need one of the layouts or another setting.
    fn check_together(&self) -> Result<(), WorkloadError> {
        let has_ttl = !self.ttl_quantiles.is_empty();
        let (setting, problem) = match self.layout {
            ObjectLayout::Slots if self.reinsert_uses > 0 => (
                "reinsert_uses",
                "has no effect, because slots are never rewritten. Remove it, or use layout = \"segments\"",
            ),
            ObjectLayout::Slots if self.compact_percent > 0.0 => (
                "compact_percent",
                "has no effect, because slots are overwritten in place. Remove it, or use layout = \"segments\"",
            ),
            ObjectLayout::Segments if self.eviction == ObjectEviction::Clock => (
                "eviction = \"clock\"",
                "needs layout = \"slots\". With layout = \"segments\", use fifo with reinsert_uses, which retains \
                 used objects",
            ),
            _ if self.eviction == ObjectEviction::Ttl && !has_ttl => {
                ("eviction = \"ttl\"", "needs the times to live. Set ttl_quantiles")
            }
            _ if self.groups == ObjectGrouping::Ttl && !has_ttl => (
                "groups = \"ttl\"",
                "needs the times to live, because each of their intervals is a group. Set ttl_quantiles",
            ),
            _ if self.groups == ObjectGrouping::Rewritten && self.reinsert_uses == 0 && self.compact_percent == 0.0 => {
                (
                    "groups = \"rewritten\"",
                    "needs rewritten objects. Set reinsert_uses to at least 1, or compact_percent above 0",
                )
            }
            _ => return self.check_sizes(),
        };
        Err(WorkloadError::setting(setting, problem))
    }

    fn check_sizes(&self) -> Result<(), WorkloadError> {
        let (setting, bytes, least_bytes) = match self.layout {
            ObjectLayout::Slots => ("slab_bytes", self.slab_bytes, self.max_object_bytes.max(self.slot_bytes)),
            ObjectLayout::Segments => ("segment_bytes", self.segment_bytes, self.max_object_bytes),
        };
        if bytes < least_bytes {
            let problem = format!(
                "is smaller than the largest object or slot. Use at least {}, or a smaller max_object_bytes or \
                 slot_bytes",
                base::HumanBytes(least_bytes.next_multiple_of(BLOCK_BYTES))
            );
            return Err(WorkloadError::setting(format!("{setting} = {bytes}"), problem));
        }
        Ok(())
    }
}
