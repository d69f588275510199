//! Output of the cache: requests to the drive and their placement.

use std::ops::Range;

use super::ObjectCacheSettings;
use crate::queue::RequestQueue;
use workload::{IoRequest, PlacementIndex, RequestOperation, WorkloadTarget};

/// An object offered to flash.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheObject {
    pub(super) key: u64,
    /// Bytes of key and value.
    pub(super) bytes: u32,
    pub(super) expires_ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ObjectCounters {
    pub(super) operations: u64,
    pub(super) gets: u64,
    pub(super) dram_hits: u64,
    pub(super) flash_hits: u64,
    pub(super) sets: u64,
    /// Objects that flash did not get: rejected by the admission policy, too large, or in a class
    /// without slots.
    pub(super) rejected: u64,
    pub(super) too_large: u64,
    pub(super) without_slot: u64,
    /// Number of objects evicted, and number of objects expired.
    pub(super) evictions: u64,
    pub(super) expired: u64,
    /// Number of segments compacted because of few valid bytes.
    pub(super) compactions: u64,
    /// Bytes of objects admitted, bytes of objects rewritten, and bytes of objects stored.
    pub(super) admitted_bytes: u64,
    pub(super) rewritten_bytes: u64,
    pub(super) stored_bytes: u64,
}

/// Makes requests and counts them.
pub(super) struct ObjectOutput {
    /// Requests that the caller can take.
    pub(super) queue: RequestQueue,
    placements: Vec<Option<PlacementIndex>>,
    pub(super) write_bytes: u64,
    pub(super) unit_bytes: u64,
    reads: bool,
    discard: bool,
    /// Bytes written, and bytes discarded.
    pub(super) written_bytes: u64,
    pub(super) discarded_bytes: u64,
    pub(super) counters: ObjectCounters,
}

impl ObjectOutput {
    pub(super) fn new(settings: &ObjectCacheSettings, target: &WorkloadTarget, groups: usize) -> ObjectOutput {
        let count = usize::from(target.placement_count);
        let is_placed = settings.placement && count > 0;
        // If there are more groups than indices, neighbouring groups share an index.
        let index = |group: usize| if groups <= count { group } else { group * count / groups };
        let place = |group| is_placed.then(|| PlacementIndex(index(group) as u16));
        ObjectOutput {
            queue: RequestQueue::default(),
            placements: (0..groups).map(place).collect(),
            write_bytes: target.request_bytes(settings.write_bytes),
            unit_bytes: target.unit_bytes(),
            reads: settings.reads,
            discard: settings.discard,
            written_bytes: 0,
            discarded_bytes: 0,
            counters: ObjectCounters::default(),
        }
    }

    /// Rounds up to whole units.
    pub(super) fn whole(&self, bytes: u32) -> u64 {
        u64::from(bytes).next_multiple_of(self.unit_bytes)
    }

    pub(super) fn write(&mut self, group: usize, offset_bytes: u64, bytes: u64) {
        assert!(
            offset_bytes.is_multiple_of(self.unit_bytes) && bytes.is_multiple_of(self.unit_bytes),
            "a write at {offset_bytes} of {bytes} bytes is of whole units"
        );
        self.written_bytes += bytes;
        let request = IoRequest {
            stream: group as u16,
            operation: RequestOperation::Write,
            offset_bytes,
            bytes: 0,
            placement: self.placements[group],
        };
        self.queue.push_pieces(request, bytes, self.write_bytes);
    }

    /// Writes the next piece of the unchanged data and returns its end. The write does not count
    /// for the cache.
    pub(super) fn write_unchanged(&mut self, range: &Range<u64>) -> u64 {
        let bytes = self.write_bytes.min(range.end - range.start);
        let before = self.written_bytes;
        self.write(0, range.start, bytes);
        self.written_bytes = before;
        range.start + bytes
    }

    /// Reads the units of an object.
    pub(super) fn read(&mut self, offset_bytes: u64, bytes: u32) {
        if self.reads {
            let start = offset_bytes - offset_bytes % self.unit_bytes;
            let end = (offset_bytes + u64::from(bytes)).next_multiple_of(self.unit_bytes);
            self.push_request(self.placements.len(), RequestOperation::Read, start, end - start);
        }
    }

    /// Discards a range without valid data.
    pub(super) fn discard(&mut self, offset_bytes: u64, bytes: u64) {
        if self.discard {
            self.discarded_bytes += bytes;
            self.push_request(self.placements.len() + 1, RequestOperation::Trim, offset_bytes, bytes);
        }
    }

    fn push_request(&mut self, stream: usize, operation: RequestOperation, offset_bytes: u64, bytes: u64) {
        self.queue.push(IoRequest {
            stream: stream as u16,
            operation,
            offset_bytes,
            bytes: bytes as u32,
            placement: None,
        });
    }
}
