//! Object caches on flash: objects of any size by key, in slots that are overwritten in place or in segments that are written one after another.
//!
//! ```text
//! preset, statistics or traces -> operations -> dram -> admission -> store (slots | segments: eviction, groups) -> output -> requests
//! ```
//!
//! **Slots**: the space is cut into slabs (1 MiB in memcached's slab allocator and Twitter's fatcache, `FC_SLAB_SIZE`). A size class takes a
//! slab whenever it has no slot left, until all are taken; from then on an object takes the place of another one of its class, which the
//! eviction chooses. An object lies in the smallest slot that holds it, and its pages are written at once.
//!
//! **Segments**: objects are packed one behind another into open segments, one for each group, which are written through a write buffer and never changed.
//! When no segment is free one leaves whole, chosen by the eviction, and what of it was used often enough is written again; before that, where few are
//! free, the emptiest may be compacted. So are extstore (memcached's `extstore.c` and `storage.c`: pages of 64 MiB, write buffers of 4 MiB, pages of which less than
//! four fifths are stored are compacted, else the oldest leaves, buckets for what is rewritten and what soon expires), the cyclone cache of Apache Traffic Server (one group, in order; "evacuation" of what is used), and most logs of published flash caches.
//!
//! What shrinks on a twin of 1/d: the space, DRAM, the number of keys (each stands for d neighbouring ranks), windows and rates that count
//! operations, segments (not below the largest object), and, without timing, writes. Of a trace one key in d is taken. Objects,
//! slots, slabs and times to live stay as they are.
//!
//! It leaves out: an index on flash and checkpoints (their keys are in memory), headers of objects, slabs that move from one class to
//! another, files of a file system below the cache (Varnish, nginx) but for the space that it takes, concurrency.

mod groups;
mod object;
mod output;
mod segments;
mod slots;
mod source;
#[cfg(test)]
mod tests;

pub use groups::Groups;
pub use source::ObjectCache;

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cache::{
    self, Admission, Dram, Gate, Preset, Statistics, StatisticsSettings, TraceFiles, TraceFormat, check_quantiles,
};
use workload::{Target, WorkloadError, multiple_of, within};

/// Slots, slabs, segments and writes are of whole blocks.
const BLOCK_BYTES: u64 = 4096;

/// How objects lie on the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Each in a slot of its size class, overwritten in place.
    Slots,
    /// Packed into segments that are written and leave as a whole.
    Segments,
}

/// What leaves when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Eviction {
    /// What was written first: the object of the class, or the segment that was closed first.
    Fifo,
    /// What was used least recently.
    Lru,
    /// What was used least often; of several, least recently.
    Lfu,
    /// What is over first; and when its time is over, it leaves (a segment when that of all its objects is).
    Ttl,
    /// Slots: as `fifo`, but what was used since then, or since it was passed over, is passed over.
    Clock,
    /// Segments: the one with the fewest bytes of objects that are still stored.
    LeastValid,
}

/// The `[workload]` table of `kind = "object_cache"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Part of the drive that slots or segments take, percent. 90.
    pub used_percent: f64,
    /// How objects lie on the drive. `segments`.
    pub layout: Layout,
    /// What leaves when there is no room. `fifo`.
    pub eviction: Eviction,
    /// Which objects are kept apart: in segments of their own, and with placement indices of their own. `none`.
    pub groups: Groups,
    /// Each group writes with a placement index of its own. True.
    pub placement: bool,
    /// Smallest slot, and upper bound of the smallest size class. 4 KiB.
    #[serde(with = "base::size")]
    pub slot_bytes: u64,
    /// How much larger the next size class is. 1.25 (memcached's `-f`, fatcache's `-f`).
    pub growth_factor: f64,
    /// Slots: what a size class takes at a time. 1 MiB.
    #[serde(with = "base::size")]
    pub slab_bytes: u64,
    /// Segments: their size. 64 MiB (extstore's `ext_page_size`).
    #[serde(with = "base::size")]
    pub segment_bytes: u64,
    /// Segments: an object that was used so often since it was written is written again when its segment leaves; 0: nothing is. 0.
    pub reinsert_uses: u32,
    /// Segments: where fewer than `compact_under` are free, the one with the fewest bytes stored is written again with all of them, if they are less
    /// than this percent of it; 0: none is. 0 (extstore's `ext_max_frag`: 80).
    pub compact_percent: f64,
    /// Segments: how many are to be kept free by compaction. 1 (extstore's `ext_compact_under`: 1 % of its pages, at least 1).
    pub compact_under: u32,
    /// What is written before all else and never changes, behind slots or segments, percent of the drive: what a file system has of its own. 0.
    pub unchanged_percent: f64,
    /// Larger objects are not stored. 1 MiB (memcached's `-I`).
    #[serde(with = "base::size")]
    pub max_object_bytes: u64,
    /// Largest write; segments: the write buffer, which is written when it is full. 4 MiB (extstore's `ext_wbuf_size`).
    #[serde(with = "base::size")]
    pub write_bytes: u64,
    /// The drive is told of objects that leave their slots without being overwritten at once, and of segments that leave. False.
    pub discard: bool,
    /// Hits on flash are requests too. False.
    pub reads: bool,
    /// Which objects flash may have. `{ policy = "always" }`.
    pub admission: Admission,
    /// Memory in front: what falls out of it comes to flash. 0: everything comes to flash at once.
    #[serde(with = "base::size")]
    pub dram_bytes: u64,
    /// Times to live by quantile, percent of the keys and seconds, log-uniform in between; a key always has the same. None: for ever.
    pub ttl_quantiles: Vec<(f64, u32)>,
    /// Operations in a second of the drive at full size, by which times to live pass. 100,000.
    pub operations_per_second: f64,
    /// Published workload to generate. `cdn`.
    pub preset: Preset,
    /// Numbers of the preset to replace.
    pub statistics: StatisticsSettings,
    /// A get that misses is followed by a set; the preset's if left out.
    pub lookaside: Option<bool>,
    /// Trace files to read instead of generating, in this order.
    pub trace: Vec<PathBuf>,
    /// What the files are. `auto`.
    pub trace_format: TraceFormat,
    /// Count bad lines (measure `bad_lines`) instead of stopping at the first. False.
    pub skip_bad_lines: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            used_percent: 90.0,
            layout: Layout::Segments,
            eviction: Eviction::Fifo,
            groups: Groups::None,
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
            admission: Admission::Always,
            dram_bytes: 0,
            ttl_quantiles: Vec::new(),
            operations_per_second: 100_000.0,
            preset: Preset::Cdn,
            statistics: StatisticsSettings::default(),
            lookaside: None,
            trace: Vec::new(),
            trace_format: TraceFormat::Auto,
            skip_bad_lines: false,
        }
    }
}

impl Settings {
    /// The workload on a drive.
    ///
    /// # Errors
    /// A setting that cannot be, or that does not fit the drive; a trace that cannot be opened.
    pub fn source(&self, target: &Target, seed: u64) -> Result<ObjectCache, WorkloadError> {
        self.check()?;
        ObjectCache::new(self, target, seed)
    }

    /// The preset's numbers with those of the settings.
    pub fn statistics(&self) -> Statistics {
        self.statistics.over(self.preset, self.lookaside)
    }

    fn files(&self) -> TraceFiles {
        TraceFiles {
            working_set_bytes: None,
            files: self.trace.clone(),
            format: self.trace_format,
            amplification: 1,
            skip_bad_lines: self.skip_bad_lines,
        }
    }

    /// Memory that the workload takes at most, bytes.
    ///
    /// # Errors
    /// A setting that cannot be.
    pub fn memory_bytes(&self, target: &Target) -> Result<u64, WorkloadError> {
        /// Of an object in a slot: the slot, its entries in two indexes, and its place in the order of leaving.
        const SLOT_BYTES: u64 = 256;
        /// Of an object in a segment, and in the index.
        const OBJECT_BYTES: u64 = 144;
        /// Of a segment, and its places in the orders of leaving.
        const SEGMENT_BYTES: u64 = 256;
        /// Bytes of the objects of a trace, at least on average.
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
            Layout::Slots => objects
                .min(space_bytes / self.slot_bytes.max(1))
                .saturating_mul(SLOT_BYTES),
            Layout::Segments => {
                let segments = space_bytes / segment_bytes.max(1);
                // An object has a byte at least.
                let stored_bytes = objects.min(space_bytes).saturating_mul(OBJECT_BYTES);
                (segments * SEGMENT_BYTES).saturating_add(stored_bytes)
            }
        };
        let denominator = target.denominator();
        let dram_bytes = Dram::memory_bytes(self.dram_bytes / denominator, objects);
        Ok(FIXED_BYTES
            .saturating_add(bytes)
            .saturating_add(dram_bytes)
            .saturating_add(Gate::memory_bytes(self.admission, denominator)))
    }

    /// Bytes of slots or segments on a drive, and of a segment there.
    fn space(&self, target: &Target) -> (u64, u64) {
        let space_bytes = (target.capacity_bytes() as f64 * self.used_percent / 100.0) as u64;
        let unit_bytes = target.unit_bytes();
        let full_bytes = self.segment_bytes.next_multiple_of(unit_bytes);
        let least_bytes = self.max_object_bytes.next_multiple_of(unit_bytes);
        let segment_bytes = match target.twin {
            Some(twin) => twin.size(full_bytes).max(least_bytes.min(full_bytes)),
            None => full_bytes,
        };
        (space_bytes, segment_bytes)
    }

    /// Where on the drive what never changes lies.
    fn unchanged(&self, target: &Target) -> Range<u64> {
        let unit_bytes = target.unit_bytes();
        let at = |percent: f64| (target.capacity_bytes() as f64 * percent / 100.0) as u64 / unit_bytes * unit_bytes;
        at(self.used_percent)..at(self.used_percent + self.unchanged_percent)
    }

    /// The order in which the objects of a class leave their slots.
    fn slot_eviction(&self) -> Result<cache::Eviction, WorkloadError> {
        Ok(match self.eviction {
            Eviction::Fifo => cache::Eviction::Fifo,
            Eviction::Lru => cache::Eviction::Lru,
            Eviction::Lfu => cache::Eviction::Lfu,
            Eviction::Ttl => cache::Eviction::Ttl,
            Eviction::Clock => cache::Eviction::Clock,
            Eviction::LeastValid => {
                let problem = "is of segments; with layout = \"slots\" use fifo, lru, lfu, ttl or clock";
                return Err(WorkloadError::setting("eviction = \"least_valid\"", problem));
            }
        })
    }

    fn check(&self) -> Result<(), WorkloadError> {
        within("used_percent", self.used_percent, 0.1..=100.0)?;
        within("unchanged_percent", self.unchanged_percent, 0.0..=99.0)?;
        within(
            "used_percent + unchanged_percent",
            self.used_percent + self.unchanged_percent,
            0.1..=100.0,
        )?;
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
            check_quantiles(
                "ttl_quantiles",
                &self.ttl_quantiles,
                (u32::MAX, "4294967295"),
                "seconds",
            )?;
        }
        self.admission.check()?;
        self.statistics().check()?;
        self.check_together()
    }

    /// Settings that are of one layout only, or need another one.
    fn check_together(&self) -> Result<(), WorkloadError> {
        let has_ttl = !self.ttl_quantiles.is_empty();
        let (setting, problem) = match self.layout {
            Layout::Slots if self.reinsert_uses > 0 => (
                "reinsert_uses",
                "is of segments: nothing is written again in slots; leave it out, or use layout = \"segments\"",
            ),
            Layout::Slots if self.compact_percent > 0.0 => (
                "compact_percent",
                "is of segments: slots are overwritten in place; leave it out, or use layout = \"segments\"",
            ),
            Layout::Segments if self.eviction == Eviction::Clock => (
                "eviction = \"clock\"",
                "is of slots; with layout = \"segments\" use fifo with reinsert_uses, which passes over objects that were used",
            ),
            _ if self.eviction == Eviction::Ttl && !has_ttl => {
                ("eviction = \"ttl\"", "needs ttl_quantiles, the times to live")
            }
            _ if self.groups == Groups::Ttl && !has_ttl => (
                "groups = \"ttl\"",
                "needs ttl_quantiles: each of its intervals is a group",
            ),
            _ if self.groups == Groups::Rewritten && self.reinsert_uses == 0 && self.compact_percent == 0.0 => (
                "groups = \"rewritten\"",
                "needs reinsert_uses of at least 1 or compact_percent, or nothing is written again",
            ),
            _ => return self.check_sizes(),
        };
        Err(WorkloadError::setting(setting, problem))
    }

    fn check_sizes(&self) -> Result<(), WorkloadError> {
        let (setting, bytes, least_bytes) = match self.layout {
            Layout::Slots => (
                "slab_bytes",
                self.slab_bytes,
                self.max_object_bytes.max(self.slot_bytes),
            ),
            Layout::Segments => ("segment_bytes", self.segment_bytes, self.max_object_bytes),
        };
        if bytes < least_bytes {
            let problem = format!(
                "is smaller than the largest object or slot; use at least {}, or a smaller max_object_bytes or slot_bytes",
                base::Bytes(least_bytes.next_multiple_of(BLOCK_BYTES))
            );
            return Err(WorkloadError::setting(format!("{setting} = {bytes}"), problem));
        }
        Ok(())
    }
}
