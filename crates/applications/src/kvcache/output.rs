//! Output of the tiers: requests to the drive and their placement.

use serde::{Deserialize, Serialize};

use super::{KvCacheSettings, SlotLayout};
use crate::queue::RequestQueue;
use workload::{IoRequest, PlacementIndex, RequestOperation};

/// Placement policy of writes. Indices wrap around at the number of the drive's indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvCachePlacement {
    None,
    /// One index per class (LMCache's `cache_salt_prefix`, if the salts name the class).
    Class,
    Worker,
    Rank,
    Session,
}

/// Writer of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkWriter {
    pub(super) class: usize,
    pub(super) worker: usize,
    pub(super) session: u64,
}

/// Makes requests and counts them.
pub(super) struct KvCacheOutput {
    /// Requests that the caller can take.
    pub(super) queue: RequestQueue,
    placement: KvCachePlacement,
    first_placement: u16,
    placement_count: u16,
    write_bytes: u64,
    reads: bool,
    discard: bool,
    classes: usize,
    pub(super) discarded_bytes: u64,
}

impl KvCacheOutput {
    pub(super) fn new(settings: &KvCacheSettings, placement_count: u16, write_bytes: u64, classes: usize) -> Self {
        KvCacheOutput {
            queue: RequestQueue::default(),
            placement: settings.placement,
            first_placement: settings.first_placement,
            placement_count,
            write_bytes,
            reads: settings.reads,
            discard: settings.discard,
            classes,
            discarded_bytes: 0,
        }
    }

    fn place(&self, writer: ChunkWriter, rank: u32) -> Option<PlacementIndex> {
        let number = match self.placement {
            KvCachePlacement::None => return None,
            KvCachePlacement::Class => writer.class as u64,
            KvCachePlacement::Worker => writer.worker as u64,
            KvCachePlacement::Rank => u64::from(rank),
            KvCachePlacement::Session => writer.session,
        };
        let count = u64::from(self.placement_count);
        let index = (u64::from(self.first_placement) + number).checked_rem(count)?;
        Some(PlacementIndex(index as u16))
    }

    /// Appends the writes of a chunk: the part of each rank in pieces. The caller sends them one by
    /// one.
    pub(super) fn writes(&self, writer: ChunkWriter, place: &SlotLayout, slot: u32, pieces: &mut Vec<IoRequest>) {
        for rank in 0..place.ranks {
            let placement = self.place(writer, rank);
            let first = place.offset_bytes(slot, rank);
            for offset in (0..place.slot_bytes).step_by(self.write_bytes as usize) {
                pieces.push(IoRequest {
                    stream: writer.class as u16,
                    operation: RequestOperation::Write,
                    offset_bytes: first + offset,
                    bytes: self.write_bytes.min(place.slot_bytes - offset) as u32,
                    placement,
                });
            }
        }
    }

    /// Reads a chunk.
    pub(super) fn read(&mut self, place: &SlotLayout, slot: u32) {
        if self.reads {
            self.whole(place, slot, self.classes, RequestOperation::Read);
        }
    }

    /// Discards a chunk that has left without a successor.
    pub(super) fn discard(&mut self, place: &SlotLayout, slot: u32) {
        if self.discard {
            self.discarded_bytes += place.slot_bytes * u64::from(place.ranks);
            self.whole(place, slot, self.classes + 1, RequestOperation::Trim);
        }
    }

    fn whole(&mut self, place: &SlotLayout, slot: u32, stream: usize, operation: RequestOperation) {
        for rank in 0..place.ranks {
            self.queue.push(IoRequest {
                stream: stream as u16,
                operation,
                offset_bytes: place.offset_bytes(slot, rank),
                bytes: place.slot_bytes as u32,
                placement: None,
            });
        }
    }
}
