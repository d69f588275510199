//! Flash tier of key-value caches for language models: stores keys and values of past tokens in
//! chunks.
//!
//! ```text
//! requests (popular chunks, sessions, Mooncake traces)
//!   -> tier of each worker (slots, eviction) -> output -> requests to the drive
//! ```
//!
//! A request names the chunks of a prompt in order. Chunks in the worker's tier are read. The
//! others are written, each into its own slot of every rank of the model. The eviction policy
//! selects the chunks that leave. LMCache's raw-block backend works the same: slots of one size, a
//! free list, no file system and no discards (LMCache, pull requests 2482 and 4016).
//!
//! On a scaled model of 1/d, chunks shrink first, so that a tier keeps its number of slots.
//! Below one mapping unit per slot, the numbers of slots, sessions and popular chunks shrink
//! instead. In virtual time and on an array requests keep their size, so all chunks keep theirs.
//! Rates are those of the drive at full size.
//!
//! The model omits checkpoints of the index (one write in many thousands), compression and partial
//! chunks. It also omits the memory above the tier, so requests served there do not appear.

mod output;
mod requests;
mod source;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::path::PathBuf;

use base::HumanBytes;
use serde::{Deserialize, Serialize};

pub use crate::cache::TierEviction;
pub use output::KvCachePlacement;
pub use requests::{PopularChunks, PromptSettings, SessionSettings};
pub use source::KvCache;
pub use trace::MooncakeSettings;

use crate::cache::OFFER_BYTES;
use output::KvCacheOutput;
use source::CacheWorker;
use workload::random::mix;
use workload::{OwnedRange, WorkloadError, WorkloadTarget, multiple_of, within};

/// Nanoseconds per second.
const SECOND_NS: f64 = 1e9;
/// Block size. Chunks and writes are multiples of it.
const BLOCK_BYTES: u64 = 4096;

/// Last part of the name of a class's measure: how many of the drive's slots a slot stands for. Only
/// scaled models whose tiers have fewer slots than the drive's, and few, report it.
pub const MERGED_SLOTS: &str = "merged_slots";
/// Slots of a worker with which a scaled model is hit as often as the drive. Measured with
/// `mlperf_kvcache` in virtual time: 3,200 slots are, 800 are not.
const MERGED_SLOTS_MIN: u32 = 1024;

/// Settings table `[workload]` of `kind = "kvcache_tier"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KvCacheSettings {
    /// Part of the drive for all tiers, percent. Default 90.
    pub used_percent: f64,
    /// Eviction policy. Default `lru`.
    pub eviction: TierEviction,
    /// Time until a chunk expires after its write, seconds. Needs `eviction = "ttl"`. Default 3600.
    pub ttl_seconds: f64,
    /// Placement policy of writes. Default `class`.
    pub placement: KvCachePlacement,
    /// Placement index of the first class (worker, rank, session). The others follow. Default 0.
    pub first_placement: u16,
    /// Largest write. Default 128 KiB.
    #[serde(with = "base::size")]
    pub write_bytes: u64,
    /// Discards chunks that leave without an immediate overwrite. Default false.
    pub discard: bool,
    /// Also issues hits as read requests. Default false.
    pub reads: bool,
    /// Classes of objects, in the order of their names, with their requests and chunk size. At
    /// least one.
    pub classes: BTreeMap<String, ChunkClass>,
}

impl Default for KvCacheSettings {
    fn default() -> KvCacheSettings {
        KvCacheSettings {
            used_percent: 90.0,
            eviction: TierEviction::Lru,
            ttl_seconds: 3600.0,
            placement: KvCachePlacement::Class,
            first_placement: 0,
            write_bytes: 128 << 10,
            discard: false,
            reads: false,
            classes: BTreeMap::new(),
        }
    }
}

/// Class of chunks of one size and its requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChunkClass {
    /// Number of workers. Workers are servers that share only the drive. Each has its own tier and
    /// requests. Default 1.
    pub workers: u32,
    /// Space of all workers of the class, relative to other classes. Default 1.
    pub share: f64,
    /// Keys and values of a chunk of tokens over all ranks, bytes. Default 4 MiB.
    #[serde(with = "base::size")]
    pub chunk_bytes: u64,
    /// Ranks of tensor parallelism. Each stores its part of every chunk in its own part of the
    /// space. Default 1.
    pub ranks: u32,
    /// Missed chunks that are written, percent. Default 100.
    pub admit_percent: f64,
    /// Writes a missed chunk only at its second request. A worker remembers as many requested chunks
    /// as it has slots. Default false.
    pub admit_second_request: bool,
    /// Request source. Default `{ kind = "popular" }`.
    pub requests: PromptSettings,
}

impl Default for ChunkClass {
    fn default() -> ChunkClass {
        ChunkClass {
            workers: 1,
            share: 1.0,
            chunk_bytes: 4 << 20,
            ranks: 1,
            admit_percent: 100.0,
            admit_second_request: false,
            requests: PromptSettings::default(),
        }
    }
}

/// Location of a worker's slots.
#[derive(Debug, Clone, Copy)]
struct SlotLayout {
    /// Offset of the first byte.
    start_bytes: u64,
    /// Bytes of a slot of one rank.
    slot_bytes: u64,
    ranks: u32,
    slots: u32,
    /// Number of the drive's slots that one slot of the scaled model stands for.
    merged: u64,
}

impl SlotLayout {
    fn bytes(&self) -> u64 {
        u64::from(self.slots) * u64::from(self.ranks) * self.slot_bytes
    }

    /// Offset of a rank's slot. The ranks lie one after another.
    fn offset_bytes(&self, slot: u32, rank: u32) -> u64 {
        let before = u64::from(rank) * u64::from(self.slots) + u64::from(slot);
        self.start_bytes + before * self.slot_bytes
    }
}

impl KvCacheSettings {
    /// Files that the workload reads while it runs.
    pub fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let classes = self.classes.values_mut();
        classes.flat_map(|class| class.requests.files_mut()).collect()
    }

    /// Description of the cache if it replays a trace. `device_bytes` is the capacity of the
    /// full-size drive.
    pub(crate) fn traced(&self, device_bytes: u64) -> Option<String> {
        let is_trace = |class: &&ChunkClass| matches!(class.requests, PromptSettings::Mooncake(_));
        let class = self.classes.values().find(is_trace)?;
        let bytes = (device_bytes as f64 * self.used_percent / 100.0) as u64;
        Some(format!(
            "a key-value cache of a language model on {} of the drive's {}, in chunks of {}",
            HumanBytes(bytes),
            HumanBytes(device_bytes),
            HumanBytes(class.chunk_bytes)
        ))
    }

    /// Creates the source for a drive.
    ///
    /// # Errors
    /// A setting is impossible or does not fit the drive, or a trace cannot be opened.
    pub fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<KvCache, WorkloadError> {
        self.check()?;
        let space_bytes = (target.capacity_bytes() as f64 * self.used_percent / 100.0) as u64;
        let shares: f64 = self.classes.values().map(|class| class.share).sum();
        let mut start_bytes = 0;
        let (mut workers, mut ranges) = (Vec::new(), Vec::new());
        for (number, (name, class)) in self.classes.iter().enumerate() {
            let worker_bytes = space_bytes as f64 * (class.share / shares) / f64::from(class.workers);
            let first_byte = start_bytes;
            for _ in 0..class.workers {
                let place = class.place(name, start_bytes, worker_bytes as u64, target)?;
                start_bytes += place.bytes();
                let seed = mix(seed ^ mix(workers.len() as u64));
                workers.push(CacheWorker::new(self, (number, class), place, target, seed)?);
            }
            ranges.push(OwnedRange { name: name.clone(), start_bytes: first_byte, end_bytes: start_bytes });
        }
        assert!(
            start_bytes <= target.capacity_bytes(),
            "the tiers lie within the drive: {start_bytes} bytes of {}",
            target.capacity_bytes()
        );
        let write_bytes = target.request_bytes(self.write_bytes);
        let output = KvCacheOutput::new(self, target.placement_count, write_bytes, ranges.len());
        Ok(KvCache::new(workers, ranges, output))
    }

    /// Maximum memory of the workload, bytes.
    ///
    /// # Errors
    /// A setting is impossible or does not fit the drive.
    pub fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        /// Bytes per slot: its state, its index entry, and its position in the eviction order.
        const SLOT_BYTES: u64 = 128;
        /// Bytes per worker: the popularity table of its catalogue, and the pieces of its last
        /// prompt.
        const WORKER_BYTES: u64 = 1 << 20;
        self.check()?;
        let space_bytes = (target.capacity_bytes() as f64 * self.used_percent / 100.0) as u64;
        let shares: f64 = self.classes.values().map(|class| class.share).sum();
        let mut bytes: u64 = 0;
        for (name, class) in &self.classes {
            let worker_bytes = space_bytes as f64 * (class.share / shares) / f64::from(class.workers);
            let place = class.place(name, 0, worker_bytes as u64, target)?;
            let offer_bytes = if class.admit_second_request { OFFER_BYTES } else { 0 };
            let of_worker = u64::from(place.slots) * (SLOT_BYTES + offer_bytes)
                + class.requests.memory_bytes(place.merged)
                + WORKER_BYTES;
            bytes = bytes.saturating_add(of_worker.saturating_mul(class.workers.into()));
        }
        Ok(bytes)
    }

    fn check(&self) -> Result<(), WorkloadError> {
        within("used_percent", self.used_percent, 0.1..=100.0)?;
        within("ttl_seconds", self.ttl_seconds, 1e-3..=1e9)?;
        multiple_of(BLOCK_BYTES, "write_bytes", self.write_bytes, 1 << 30)?;
        if self.classes.is_empty() {
            let problem = "is missing. Define a class of objects, for example [workload.classes.chat]";
            return Err(WorkloadError::setting("classes", problem));
        }
        let workers: u64 = self.classes.values().map(|class| u64::from(class.workers)).sum();
        within("the number of workers", workers, 1..=4096)?;
        self.classes.iter().try_for_each(|(name, class)| class.check(&format!("classes.{name}")))
    }
}

impl ChunkClass {
    /// Slots of a worker in `bytes` bytes from `start_bytes`.
    fn place(
        &self,
        name: &str,
        start_bytes: u64,
        bytes: u64,
        target: &WorkloadTarget,
    ) -> Result<SlotLayout, WorkloadError> {
        let slot_bytes = target.request_bytes(self.chunk_bytes / u64::from(self.ranks));
        let slot_bytes = slot_bytes.next_multiple_of(target.unit_bytes());
        let slots = bytes / (slot_bytes * u64::from(self.ranks));
        let full_bytes = self.chunk_bytes as f64 / f64::from(self.ranks);
        let merged = (target.denominator() as f64 * slot_bytes as f64 / full_bytes).round();
        let place = SlotLayout {
            start_bytes,
            slot_bytes,
            ranks: self.ranks,
            slots: u32::try_from(slots).unwrap_or(u32::MAX - 1),
            merged: merged.max(1.0) as u64,
        };
        if place.slots < 2 {
            let problem = format!(
                "has room for {slots} chunks in a worker's share, but 2 are needed. Use a larger share or \
                         scale"
            );
            return Err(WorkloadError::setting(format!("classes.{name}"), problem));
        }
        Ok(place)
    }

    fn check(&self, place: &str) -> Result<(), WorkloadError> {
        within(&format!("{place}.workers"), self.workers, 1..=4096)?;
        within(&format!("{place}.share"), self.share, 1e-6..=1e6)?;
        within(&format!("{place}.ranks"), self.ranks, 1..=1024)?;
        within(&format!("{place}.admit_percent"), self.admit_percent, 0.1..=100.0)?;
        let unit_bytes = BLOCK_BYTES * u64::from(self.ranks);
        multiple_of(unit_bytes, &format!("{place}.chunk_bytes"), self.chunk_bytes, 1 << 30)?;
        self.requests.check(&format!("{place}.requests"))
    }
}
