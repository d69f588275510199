//! Output of the tree: requests to the drive and their placement.

use serde::{Deserialize, Serialize};

use super::BTreeSettings;
use crate::queue::RequestQueue;
use workload::{IoRequest, PlacementIndex, RequestOperation, WorkloadTarget};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BTreePlacement {
    None,
    /// Index 0 for the log, 1 for the doublewrite buffer, from 2 one for each group of an
    /// out-of-place store. All further groups share the last index of the drive.
    Stream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BTreeStream {
    Log,
    Doublewrite,
    /// Pages of a group. Stores without groups use 0.
    Pages(u32),
    /// Pages of a group, moved by garbage collection.
    Moved(u32),
}

pub(super) const STREAMS: [&str; 6] = ["log", "doublewrite", "pages", "moved", "read", "discard"];
const READ: u16 = 4;
const DISCARD: u16 = 5;

const WRITE_BYTES: u64 = 1 << 20;

/// Makes requests and counts them.
pub(super) struct BTreeOutput {
    /// Requests that the caller can take.
    pub(super) queue: RequestQueue,
    placement: BTreePlacement,
    placement_count: u16,
    pub(super) write_bytes: u64,
    reads: bool,
    pub(super) written_bytes: [u64; 4],
}

impl BTreeOutput {
    pub(super) fn new(settings: &BTreeSettings, target: &WorkloadTarget) -> BTreeOutput {
        let write_bytes = match target.scaled_model {
            Some(model) if !model.keep_requests => model.size(WRITE_BYTES).next_multiple_of(settings.page_bytes),
            _ => WRITE_BYTES,
        };
        BTreeOutput {
            queue: RequestQueue::default(),
            placement: settings.placement,
            placement_count: target.placement_count,
            write_bytes,
            reads: settings.reads,
            written_bytes: [0; 4],
        }
    }

    fn place(&self, stream: BTreeStream) -> Option<PlacementIndex> {
        let last = self.placement_count.checked_sub(1)?;
        let wanted = match (self.placement, stream) {
            (BTreePlacement::None, _) => return None,
            (BTreePlacement::Stream, BTreeStream::Log) => 0,
            (BTreePlacement::Stream, BTreeStream::Doublewrite) => 1,
            (BTreePlacement::Stream, BTreeStream::Pages(group) | BTreeStream::Moved(group)) => 2 + group,
        };
        Some(PlacementIndex(wanted.min(u32::from(last)) as u16))
    }

    pub(super) fn write(&mut self, stream: BTreeStream, offset_bytes: u64, bytes: u64) {
        let number = match stream {
            BTreeStream::Log => 0,
            BTreeStream::Doublewrite => 1,
            BTreeStream::Pages(_) => 2,
            BTreeStream::Moved(_) => 3,
        };
        self.written_bytes[number] += bytes;
        let whole = IoRequest {
            stream: number as u16,
            operation: RequestOperation::Write,
            offset_bytes,
            bytes: 0,
            placement: self.place(stream),
        };
        self.queue.push_pieces(whole, bytes, self.write_bytes);
    }

    pub(super) fn read(&mut self, offset_bytes: u64, bytes: u64) {
        if self.reads {
            self.queue.push(IoRequest {
                stream: READ,
                operation: RequestOperation::Read,
                offset_bytes,
                bytes: bytes as u32,
                placement: None,
            });
        }
    }

    /// Discards a range without valid data.
    pub(super) fn discard(&mut self, offset_bytes: u64, bytes: u64) {
        let whole =
            IoRequest { stream: DISCARD, operation: RequestOperation::Trim, offset_bytes, bytes: 0, placement: None };
        self.queue.push_pieces(whole, bytes, 1 << 30);
    }
}
