//! Output to the drive. It merges consecutive blocks, like the kernel merges pages into a bio per
//! log.

use crate::queue::RequestQueue;
use workload::{IoRequest, PlacementIndex, RequestOperation};

use super::hints::{F2fsWriter, HintPolicy, STREAMS};
use super::layout::BLOCK_BYTES;

const READS: usize = F2fsWriter::COUNT;
/// Stream number of discards.
const DISCARDS: usize = F2fsWriter::COUNT + 1;

/// Consecutive blocks that wait for more.
#[derive(Debug, Clone, Copy, Default)]
struct PendingRun {
    first: u32,
    blocks: u32,
    placement: Option<PlacementIndex>,
}

/// Bytes and requests of a writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteCount {
    pub bytes: u64,
    pub requests: u64,
}

/// Makes requests and counts them.
pub struct F2fsOutput {
    /// Requests that the caller can take.
    pub(crate) queue: RequestQueue,
    pending: [PendingRun; STREAMS.len()],
    max_blocks: u32,
    policy: HintPolicy,
    classes: u8,
    placement_count: u16,
    pub writers: [WriteCount; F2fsWriter::COUNT],
    /// Writes of user data and directory entries by placement index. Writes without directive count
    /// for the default index.
    pub data_handles: Vec<WriteCount>,
    /// All writes by placement index.
    pub handles: Vec<WriteCount>,
    pub bytes_written: u64,
    pub bytes_discarded: u64,
    /// Written and discarded blocks for tests. The flag is true for a write.
    #[cfg(test)]
    pub trace: Vec<(u32, bool)>,
}

impl F2fsOutput {
    pub fn new(policy: HintPolicy, classes: u8, placement_count: u16, max_request_bytes: u64) -> F2fsOutput {
        F2fsOutput {
            queue: RequestQueue::default(),
            pending: [PendingRun::default(); STREAMS.len()],
            max_blocks: (max_request_bytes / BLOCK_BYTES) as u32,
            policy,
            classes,
            placement_count,
            writers: [WriteCount::default(); F2fsWriter::COUNT],
            data_handles: vec![WriteCount::default(); usize::from(placement_count).max(1)],
            handles: vec![WriteCount::default(); usize::from(placement_count).max(1)],
            bytes_written: 0,
            bytes_discarded: 0,
            #[cfg(test)]
            trace: Vec::new(),
        }
    }

    /// Writes blocks. `class` is the lifetime class of the file.
    pub fn write(&mut self, writer: F2fsWriter, class: u8, first: u32, blocks: u32) {
        let placement = self.policy.placement(writer, class, self.classes, self.placement_count);
        let bytes = u64::from(blocks) * BLOCK_BYTES;
        let handle = placement.unwrap_or(PlacementIndex::FIRST).index();
        self.writers[writer.index()].bytes += bytes;
        self.handles[handle].bytes += bytes;
        if writer.is_data() {
            self.data_handles[handle].bytes += bytes;
        }
        self.bytes_written += bytes;
        #[cfg(test)]
        self.trace.extend((first..first + blocks).map(|block| (block, true)));
        self.append(writer.index(), placement, first, blocks);
    }

    pub fn read(&mut self, first: u32, blocks: u32) {
        self.append(READS, None, first, blocks);
    }

    /// Discards blocks. Sends the pending writes first.
    pub fn discard(&mut self, first: u32, blocks: u32) {
        for stream in 0..F2fsWriter::COUNT {
            self.send(stream);
        }
        self.bytes_discarded += u64::from(blocks) * BLOCK_BYTES;
        #[cfg(test)]
        self.trace.extend((first..first + blocks).map(|block| (block, false)));
        self.append(DISCARDS, None, first, blocks);
    }

    fn append(&mut self, stream: usize, placement: Option<PlacementIndex>, first: u32, blocks: u32) {
        let limit = if stream == DISCARDS { u32::MAX / BLOCK_BYTES as u32 } else { self.max_blocks };
        let (mut first, mut left) = (first, blocks);
        while left > 0 {
            let pending = &mut self.pending[stream];
            let follows = pending.first + pending.blocks == first && pending.placement == placement;
            if pending.blocks == 0 {
                *pending = PendingRun { first, blocks: 0, placement };
            } else if !follows || pending.blocks == limit {
                self.send(stream);
                continue;
            }
            let more = left.min(limit - pending.blocks);
            pending.blocks += more;
            first += more;
            left -= more;
        }
    }

    /// Sends all pending runs, at the end of a file's writes or of a checkpoint.
    pub fn flush(&mut self) {
        for stream in 0..STREAMS.len() {
            self.send(stream);
        }
    }

    fn send(&mut self, stream: usize) {
        let pending = std::mem::take(&mut self.pending[stream]);
        if pending.blocks == 0 {
            return;
        }
        let operation = match stream {
            READS => RequestOperation::Read,
            DISCARDS => RequestOperation::Trim,
            _ => RequestOperation::Write,
        };
        if operation == RequestOperation::Write {
            let handle = pending.placement.unwrap_or(PlacementIndex::FIRST).index();
            self.writers[stream].requests += 1;
            self.handles[handle].requests += 1;
            if stream < 3 {
                self.data_handles[handle].requests += 1;
            }
        }
        self.queue.push(IoRequest {
            stream: stream as u16,
            operation,
            offset_bytes: u64::from(pending.first) * BLOCK_BYTES,
            bytes: (u64::from(pending.blocks) * BLOCK_BYTES) as u32,
            placement: pending.placement,
        });
    }
}
