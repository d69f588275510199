//! The log: a ring of blocks that is written in sequence, and what it demands of dirty pages.

use serde::{Deserialize, Serialize};

use super::BLOCK_BYTES;
use super::output::{Output, Stream};

/// When dirty pages have to be written because of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkpoints {
    /// All the time, the oldest change first, so that none is older than three quarters of the log (InnoDB).
    Fuzzy,
    /// Once in a log's length all that are dirty then, in the order of their places, over nine tenths of the time to the next (PostgreSQL,
    /// `checkpoint_completion_target = 0.9`).
    Spread,
}

/// Bytes in the order of the log, and where they are on the drive.
#[derive(Debug)]
pub(super) struct Log {
    ring_bytes: u64,
    transactions_per_sync: u32,
    /// Bytes logged so far.
    end_bytes: u64,
    /// Whole blocks before this are written for good.
    written_bytes: u64,
    /// Transactions since the last sync.
    unsynced: u32,
}

impl Log {
    /// A ring of so many bytes, whole blocks.
    pub(super) fn new(ring_bytes: u64, transactions_per_sync: u32) -> Log {
        Log {
            ring_bytes,
            transactions_per_sync,
            end_bytes: 0,
            written_bytes: 0,
            unsynced: 0,
        }
    }

    /// Size of the ring.
    pub(super) fn bytes(&self) -> u64 {
        self.ring_bytes
    }

    /// Bytes logged so far.
    pub(super) fn end_bytes(&self) -> u64 {
        self.end_bytes
    }

    /// Logs an entry.
    pub(super) fn append(&mut self, bytes: u64) {
        self.end_bytes += bytes;
    }

    /// A transaction is complete: what has to be written is.
    pub(super) fn commit(&mut self, output: &mut Output) {
        self.unsynced += 1;
        let whole = self.end_bytes - self.end_bytes % BLOCK_BYTES;
        if self.transactions_per_sync > 0 && self.unsynced >= self.transactions_per_sync {
            self.unsynced = 0;
            // The block that is not full is written, and again with what comes next.
            let end = self.end_bytes.next_multiple_of(BLOCK_BYTES);
            self.write(end, output);
            self.written_bytes = whole;
        } else if whole - self.written_bytes >= output.write_bytes().min(self.ring_bytes / 4) {
            self.write(whole, output);
            self.written_bytes = whole;
        }
    }

    fn write(&mut self, end: u64, output: &mut Output) {
        let mut at = self.written_bytes;
        while at < end {
            let place = at % self.ring_bytes;
            let bytes = (end - at).min(self.ring_bytes - place);
            output.write(Stream::Log, place, bytes);
            at += bytes;
        }
    }
}
