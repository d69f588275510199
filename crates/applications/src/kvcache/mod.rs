//! Key-value caches of language models on flash: the tier below memory that holds the keys and values of past tokens, in chunks.
//!
//! ```text
//! requests (popular chunks, sessions, Mooncake's traces) -> tier of each worker (slots, eviction) -> output -> requests to the drive
//! ```
//!
//! A request names the chunks of a prompt in order. Those that a worker's tier holds are read; the others are written, each into a slot of
//! its own, one for each rank of the model, and what has to leave for them is decided by the eviction. So it is in LMCache's raw-block
//! backend: slots of one size, a free list, no file system, nothing discarded (LMCache, pull requests 2482 and 4016).
//!
//! What shrinks on a twin of 1/d: chunks, so that a tier has as many slots as on the drive, until a slot is a mapping unit; then the number
//! of slots, with that of sessions and of popular chunks. Rates are those of the drive at full size.
//!
//! It leaves out: the checkpoints of the index (one write in many thousands), compression, memory above the tier (what it serves is not
//! asked here), and partial chunks.

mod output;
mod prompt;
mod requests;
mod source;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::path::PathBuf;

use base::Bytes;
use serde::{Deserialize, Serialize};

pub use crate::cache::Eviction;
pub use output::Placement;
pub use requests::{Popular, Requests, Sessions};
pub use source::KvCache;
pub use trace::Mooncake;

use crate::cache::Tier;
use output::Output;
use requests::Generator;
use source::Worker;
use workload::random::mix;
use workload::{Range, Target, WorkloadError, multiple_of, within};

/// Nanoseconds of a second.
const SECOND_NS: f64 = 1e9;
/// Chunks and writes are of whole blocks.
const BLOCK_BYTES: u64 = 4096;

/// The `[workload]` table of `kind = "kvcache_tier"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Part of the drive that the tiers have together, percent. 90.
    pub used_percent: f64,
    /// Which chunk leaves when there is no slot. `lru`.
    pub eviction: Eviction,
    /// After so long a chunk is gone, with `eviction = "ttl"`, seconds since it was written. 3600.
    pub ttl_seconds: f64,
    /// Which placement index a write gets. `class`.
    pub placement: Placement,
    /// Placement index of the first class (worker, rank, session); the others follow. 0.
    pub first_placement: u16,
    /// Largest write. 128 KiB.
    #[serde(with = "base::size")]
    pub write_bytes: u64,
    /// The drive is told of chunks that leave without being overwritten at once. False.
    pub discard: bool,
    /// Hits are requests too. False.
    pub reads: bool,
    /// Classes of objects by name, in the order of their names: what is asked for, and of what size. At least one.
    pub classes: BTreeMap<String, Class>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            used_percent: 90.0,
            eviction: Eviction::Lru,
            ttl_seconds: 3600.0,
            placement: Placement::Class,
            first_placement: 0,
            write_bytes: 128 << 10,
            discard: false,
            reads: false,
            classes: BTreeMap::new(),
        }
    }
}

/// Chunks of a size, and who asks for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Class {
    /// Workers: servers that have nothing in common but the drive, each with a tier and requests of its own. 1.
    pub workers: u32,
    /// Space of all its workers, in proportion to that of other classes. 1.
    pub share: f64,
    /// Keys and values of a chunk of tokens, of all ranks. 4 MiB.
    #[serde(with = "base::size")]
    pub chunk_bytes: u64,
    /// Ranks (of tensor parallelism): each stores its part of every chunk, in a part of the space of its own. 1.
    pub ranks: u32,
    /// Chunks that are written at all, percent of those that are missed. 100.
    pub admit_percent: f64,
    /// What is asked for. `{ kind = "popular" }`.
    pub requests: Requests,
}

impl Default for Class {
    fn default() -> Class {
        Class {
            workers: 1,
            share: 1.0,
            chunk_bytes: 4 << 20,
            ranks: 1,
            admit_percent: 100.0,
            requests: Requests::default(),
        }
    }
}

/// Where a worker's slots are.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// First byte.
    start_bytes: u64,
    /// Bytes of a slot of one rank.
    slot_bytes: u64,
    ranks: u32,
    slots: u32,
}

impl Place {
    fn bytes(&self) -> u64 {
        u64::from(self.slots) * u64::from(self.ranks) * self.slot_bytes
    }

    /// First byte of a slot of a rank: the ranks lie one after another.
    fn offset_bytes(&self, slot: u32, rank: u32) -> u64 {
        let before = u64::from(rank) * u64::from(self.slots) + u64::from(slot);
        self.start_bytes + before * self.slot_bytes
    }
}

impl Settings {
    /// Files that it reads when it runs.
    pub fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let classes = self.classes.values_mut();
        classes.flat_map(|class| class.requests.files_mut()).collect()
    }

    /// The cache in words, on a drive of this capacity at full size, if it replays a trace.
    pub(crate) fn traced(&self, device_bytes: u64) -> Option<String> {
        let is_trace = |class: &&Class| matches!(class.requests, Requests::Mooncake(_));
        let class = self.classes.values().find(is_trace)?;
        let bytes = (device_bytes as f64 * self.used_percent / 100.0) as u64;
        Some(format!(
            "a key-value cache of a language model on {} of the drive's {}, in chunks of {}",
            Bytes(bytes),
            Bytes(device_bytes),
            Bytes(class.chunk_bytes)
        ))
    }

    /// The workload on a drive.
    ///
    /// # Errors
    /// A setting that cannot be, or that does not fit the drive; a trace that cannot be opened.
    pub fn source(&self, target: &Target, seed: u64) -> Result<KvCache, WorkloadError> {
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
                workers.push(self.worker(class, number, place, target, seed)?);
            }
            ranges.push(Range {
                name: name.clone(),
                start_bytes: first_byte,
                end_bytes: start_bytes,
            });
        }
        assert!(
            start_bytes <= target.capacity_bytes(),
            "the tiers lie within the drive: {start_bytes} bytes of {}",
            target.capacity_bytes()
        );
        let write_bytes = target.request_bytes(self.write_bytes);
        let output = Output::new(self, target.placement_count, write_bytes, ranges.len());
        Ok(KvCache::new(workers, ranges, output))
    }

    /// Memory that the workload takes at most, bytes.
    ///
    /// # Errors
    /// A setting that cannot be, or that does not fit the drive.
    pub fn memory_bytes(&self, target: &Target) -> Result<u64, WorkloadError> {
        /// Of a slot: what it holds, its entry in the index, and its place in the order of leaving.
        const SLOT_BYTES: u64 = 256;
        /// Of a worker: its catalogue's popularity, and the pieces of its last prompt.
        const WORKER_BYTES: u64 = 1 << 20;
        self.check()?;
        let space_bytes = (target.capacity_bytes() as f64 * self.used_percent / 100.0) as u64;
        let shares: f64 = self.classes.values().map(|class| class.share).sum();
        let mut bytes: u64 = 0;
        for (name, class) in &self.classes {
            let worker_bytes = space_bytes as f64 * (class.share / shares) / f64::from(class.workers);
            let place = class.place(name, 0, worker_bytes as u64, target)?;
            let of_worker = u64::from(place.slots) * SLOT_BYTES
                + class.requests.memory_bytes(class.merged(&place, target))
                + WORKER_BYTES;
            bytes = bytes.saturating_add(of_worker.saturating_mul(class.workers.into()));
        }
        Ok(bytes)
    }

    fn worker(
        &self,
        class: &Class,
        number: usize,
        place: Place,
        target: &Target,
        seed: u64,
    ) -> Result<Worker, WorkloadError> {
        let merged = class.merged(&place, target);
        let generator = Generator::new(
            &class.requests,
            class.chunk_bytes,
            place.slots,
            merged,
            target.endless,
            seed,
        )?;
        let ttl_ns = (self.ttl_seconds * SECOND_NS) as u64;
        let tier = Tier::new(place.slots, self.eviction);
        Ok(Worker::new(
            number,
            place,
            tier,
            generator,
            class.admit_percent,
            ttl_ns,
            mix(seed),
        ))
    }

    fn check(&self) -> Result<(), WorkloadError> {
        within("used_percent", self.used_percent, 0.1..=100.0)?;
        within("ttl_seconds", self.ttl_seconds, 1e-3..=1e9)?;
        multiple_of(BLOCK_BYTES, "write_bytes", self.write_bytes, 1 << 30)?;
        if self.classes.is_empty() {
            let problem = "is missing; name a class of objects, as in [workload.classes.chat]";
            return Err(WorkloadError::setting("classes", problem));
        }
        let workers: u64 = self.classes.values().map(|class| u64::from(class.workers)).sum();
        within("the number of workers", workers, 1..=4096)?;
        self.classes
            .iter()
            .try_for_each(|(name, class)| class.check(&format!("classes.{name}")))
    }
}

impl Class {
    /// How many of the drive's slots one of the twin's stands for.
    fn merged(&self, place: &Place, target: &Target) -> u64 {
        let slot_bytes = self.chunk_bytes as f64 / f64::from(self.ranks);
        let merged = (target.denominator() as f64 * place.slot_bytes as f64 / slot_bytes).round();
        merged.max(1.0) as u64
    }

    /// The slots of a worker that has so many bytes from here on.
    fn place(&self, name: &str, start_bytes: u64, bytes: u64, target: &Target) -> Result<Place, WorkloadError> {
        let slot_bytes = target.request_bytes(self.chunk_bytes / u64::from(self.ranks));
        let slot_bytes = slot_bytes.next_multiple_of(target.unit_bytes());
        let slots = bytes / (slot_bytes * u64::from(self.ranks));
        let place = Place {
            start_bytes,
            slot_bytes,
            ranks: self.ranks,
            slots: u32::try_from(slots).unwrap_or(u32::MAX - 1),
        };
        if place.slots < 2 {
            let problem =
                format!("has room for {slots} chunks in a worker's share, 2 are needed; use a larger share or scale");
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
