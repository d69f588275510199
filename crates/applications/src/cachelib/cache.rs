//! Hybrid cache of DRAM and two engines on flash.
//!
//! ```text
//! get -> DRAM -> LOC -> SOC -> miss -> (lookaside) set      a flash hit enters DRAM as clean
//! set -> DRAM, dirty; removes the key from flash            SOC rewrites the bucket of the key
//! DRAM full -> evict LRU item -> clean and still on flash: drop
//!                             -> otherwise: admission -> small: rewrite of a SOC bucket
//!                                                     -> large: into the open LOC region
//! ```
//!
//! Rules from CacheLib: a lookup asks the large engine first. An item read from flash is not
//! written again while flash holds it. A set removes the key from flash unless DRAM had a dirty
//! copy. Sources are CacheLib docs, "Hybrid Cache", allocator/CacheAllocator.h (insertOrReplace)
//! and navy/engine/EnginePair.cpp. The requests of an operation are queued in order.
//!
//! With threads (`navy`), the requests go to the threads, which lose the excess. Without threads,
//! all requests are issued immediately. The model has no expiry times and no failures.

use std::collections::VecDeque;

use super::bighash::BigHash;
use super::block_cache::{BlockCache, ItemLocation};
use super::counters::{CacheCounters, RecentHitRatio};
use super::layout::{CacheLayout, LOC_STREAM, SOC_STREAM};
use super::navy::Navy;
use crate::cache::{AdmissionRequest, AdmissionState, CacheOperation, Dram, OperationKind};
use workload::{IoRequest, PlacementIndex, RequestOperation};

/// Alignment of reads, bytes. CacheLib reads whole blocks of at least 4 KiB from such a device.
const READ_ALIGN_BYTES: u64 = 4096;

pub(super) struct Behaviour {
    /// Items with more bytes (key and value) go to LOC.
    pub(super) small_item_max_bytes: u32,
    /// A set follows each get that misses.
    pub(super) lookaside: bool,
    /// Flash reads are issued as requests.
    pub(super) reads: bool,
    /// Placement of the two engines.
    pub(super) placements: [Option<PlacementIndex>; 2],
}

pub(super) struct HybridCache {
    pub(super) behaviour: Behaviour,
    pub(super) layout: CacheLayout,
    pub(super) dram: Dram,
    pub(super) soc: Option<BigHash>,
    pub(super) loc: Option<BlockCache>,
    pub(super) gate: AdmissionState,
    pub(super) counters: CacheCounters,
    pub(super) recent: RecentHitRatio,
    /// Requests of the operations so far, or with threads the requests of the current job.
    pub(super) requests: VecDeque<IoRequest>,
    /// Threads that execute the requests in virtual time.
    pub(super) navy: Option<Navy>,
}

impl HybridCache {
    /// Prefetches the memory of the next operations in steps, each of which needs the one before.
    pub(super) fn prefetch(&self, operations: &[CacheOperation]) {
        let keys = || operations.iter().map(|operation| operation.key);
        for key in keys() {
            self.dram.prefetch_entry(key);
            self.loc.iter().for_each(|loc| loc.prefetch_entry(key));
            self.soc.iter().for_each(|soc| soc.prefetch_bucket(key));
        }
        for key in keys() {
            self.dram.prefetch_item(key);
            self.loc.iter().for_each(|loc| loc.prefetch_item(key));
            self.soc.iter().for_each(|soc| soc.prefetch_second_block(key));
        }
        keys().for_each(|key| self.dram.prefetch_neighbours(key));
    }

    pub(super) fn execute(&mut self, operation: CacheOperation) {
        let CacheOperation { kind, key, bytes } = operation;
        match (kind, bytes) {
            (OperationKind::Get, bytes) => {
                self.counters.gets += 1;
                let hit = self.get(key);
                self.recent.count(hit, self.counters.written_bytes());
                if let (false, true, Some(bytes)) = (hit, self.behaviour.lookaside, bytes) {
                    self.counters.lookaside_sets += 1;
                    self.set(key, bytes);
                }
            }
            (OperationKind::Set, Some(bytes)) => {
                self.counters.sets += 1;
                self.set(key, bytes);
            }
            (OperationKind::Set, None) => panic!("a set has a size"),
            (OperationKind::Delete, _) => {
                self.counters.deletes += 1;
                self.dram.remove(key);
                self.remove_from_flash(key);
            }
        }
    }

    /// Looks up a key. Returns true on a hit. DRAM then holds the key.
    fn get(&mut self, key: u64) -> bool {
        if self.dram.touch(key) {
            self.counters.dram_hits += 1;
            return true;
        }
        let found = self.find_on_flash(key);
        if let Some(navy) = &mut self.navy
            && !self.requests.is_empty()
        {
            navy.start_lookup(key, self.requests.drain(..));
        }
        let Some(bytes) = found else {
            self.counters.misses += 1;
            return false;
        };
        self.dram.insert(key, bytes, true);
        self.make_room();
        true
    }

    fn find_on_flash(&mut self, key: u64) -> Option<u32> {
        if let Some(loc) = &mut self.loc {
            self.counters.loc_lookups += 1;
            if let Some(found) = loc.touch(key) {
                self.counters.loc_hits += 1;
                self.read_item(found);
                return Some(found.bytes);
            }
        }
        let soc = self.soc.as_ref()?;
        self.counters.soc_lookups += 1;
        let found = soc.find(key);
        self.counters.soc_hits += u64::from(found.is_some());
        if self.behaviour.reads && (found.is_some() || soc.may_contain(key)) {
            let bucket = soc.bucket_of(key);
            self.request_bucket(RequestOperation::Read, bucket);
        }
        found
    }

    fn set(&mut self, key: u64, bytes: u32) {
        match self.dram.remove(key) {
            // DRAM had a dirty copy, so flash has no copy.
            Some(false) => {}
            Some(true) | None => self.remove_from_flash(key),
        }
        self.dram.insert(key, bytes, false);
        self.make_room();
    }

    /// Removes a key from flash. SOC rewrites its bucket.
    fn remove_from_flash(&mut self, key: u64) {
        if let Some(loc) = &mut self.loc
            && loc.remove(key)
        {
            return;
        }
        let Some(soc) = &mut self.soc else { return };
        if soc.remove(key) {
            let bucket = soc.bucket_of(key);
            self.counters.soc_removes += 1;
            self.rewrite_bucket(bucket);
            if let Some(navy) = &mut self.navy {
                navy.remove(key, self.requests.drain(..));
            }
        }
    }

    /// Evicts items from DRAM to flash until DRAM fits.
    fn make_room(&mut self) {
        while let Some(evicted) = self.dram.evict() {
            if let (Some([second, third]), Some(soc)) = (self.dram.prefetch_victims(), &self.soc) {
                soc.prefetch_bucket(third);
                soc.prefetch_second_block(second);
            }
            if !(evicted.clean && self.is_on_flash(evicted.key, evicted.bytes)) {
                self.insert_on_flash(evicted.key, evicted.bytes);
            }
        }
    }

    /// True if an item of this size goes to SOC.
    fn is_small(&self, bytes: u32) -> bool {
        bytes <= self.behaviour.small_item_max_bytes && self.soc.is_some()
    }

    /// True if the engine for this size still holds the item.
    fn is_on_flash(&self, key: u64, bytes: u32) -> bool {
        if self.is_small(bytes) {
            self.soc.as_ref().is_some_and(|soc| soc.find(key).is_some())
        } else {
            self.loc.as_ref().is_some_and(|loc| loc.contains(key))
        }
    }

    /// Offers an item (key and value) to the engine for its size.
    fn insert_on_flash(&mut self, key: u64, bytes: u32) {
        let small = self.is_small(bytes);
        let fits = if small {
            self.soc.as_ref().is_some_and(|soc| soc.fits(bytes))
        } else {
            self.loc.as_ref().is_some_and(|loc| loc.fits(bytes))
        };
        let operations = self.counters.operations();
        if !fits
            || !self.gate.admits(&AdmissionRequest {
                key,
                bytes: u64::from(bytes),
                operations,
                written_bytes: self.counters.written_bytes(),
            })
        {
            self.counters.rejected_items += 1;
            return;
        }
        let engine = if small { SOC_STREAM } else { LOC_STREAM };
        if let Some(navy) = &mut self.navy
            && !navy.admits(engine, bytes)
        {
            self.counters.inserts_rejected[usize::from(engine)] += 1;
            return;
        }
        if small {
            self.insert_small(key, bytes);
        } else {
            self.insert_large(key, bytes);
        }
    }

    fn insert_small(&mut self, key: u64, bytes: u32) {
        let soc = self.soc.as_mut().expect("a small item goes to SOC");
        soc.insert(key, bytes);
        let bucket = soc.bucket_of(key);
        self.counters.soc_items += 1;
        self.counters.soc_item_bytes += u64::from(bytes);
        self.rewrite_bucket(bucket);
        if let Some(navy) = &mut self.navy {
            navy.insert_small(key, bytes, self.requests.drain(..));
        }
    }

    fn insert_large(&mut self, key: u64, bytes: u32) {
        let loc = self.loc.as_mut().expect("a large item goes to LOC");
        let flushed = loc.insert(key, bytes);
        self.counters.loc_items += 1;
        self.counters.loc_item_bytes += u64::from(bytes);
        if let Some(region) = flushed {
            self.flush_region(region);
        }
        if let Some(navy) = &mut self.navy {
            let full = flushed.map(|_| self.requests.drain(..).collect());
            navy.insert_large(key, bytes, full);
        }
    }

    /// Reads and writes a whole bucket.
    fn rewrite_bucket(&mut self, bucket: u64) {
        if self.behaviour.reads {
            self.request_bucket(RequestOperation::Read, bucket);
        }
        self.request_bucket(RequestOperation::Write, bucket);
        self.counters.soc_written_bytes += self.layout.bucket_bytes;
    }

    fn request_bucket(&mut self, operation: RequestOperation, bucket: u64) {
        let offset_bytes = self.layout.soc_start_bytes + bucket * self.layout.bucket_bytes;
        self.request(operation, SOC_STREAM, offset_bytes, self.layout.bucket_bytes);
    }

    /// Writes a region sequentially in the largest pieces that the device accepts.
    fn flush_region(&mut self, region: u64) {
        let start = self.layout.loc_start_bytes + region * self.layout.region_bytes;
        let mut done = 0;
        while done < self.layout.region_bytes {
            let bytes = self.layout.device_max_write_bytes.min(self.layout.region_bytes - done);
            self.request(RequestOperation::Write, LOC_STREAM, start + done, bytes);
            done += bytes;
        }
        self.counters.loc_written_bytes += self.layout.region_bytes;
    }

    /// Reads an item from LOC, unless its region is still in memory.
    fn read_item(&mut self, found: ItemLocation) {
        if !self.behaviour.reads || found.in_memory {
            return;
        }
        let start = self.layout.loc_start_bytes + found.offset_bytes;
        let end = (start + found.stored_bytes).next_multiple_of(READ_ALIGN_BYTES);
        let start = start - start % READ_ALIGN_BYTES;
        self.request(RequestOperation::Read, LOC_STREAM, start, end - start);
    }

    fn request(&mut self, operation: RequestOperation, stream: u16, offset_bytes: u64, bytes: u64) {
        self.requests.push_back(IoRequest {
            stream,
            operation,
            offset_bytes,
            bytes: bytes as u32,
            placement: match operation {
                RequestOperation::Write => self.behaviour.placements[usize::from(stream)],
                RequestOperation::Read | RequestOperation::Trim => None,
            },
        });
    }
}
