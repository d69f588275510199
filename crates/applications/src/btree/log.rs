//! The log, a ring of sequentially written blocks that limits the age of dirty pages.

use serde::{Deserialize, Serialize};

use super::BLOCK_BYTES;
use super::output::{BTreeOutput, BTreeStream};

/// Checkpoint policy: when the log forces writes of dirty pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointPolicy {
    /// Continuously writes the oldest change, so that no change is older than three quarters of the
    /// log (InnoDB).
    Fuzzy,
    /// Once per log length, writes all pages dirty at that time in the order of their locations.
    /// The writes spread over 90 % of the time to the next checkpoint (PostgreSQL,
    /// `checkpoint_completion_target = 0.9`).
    Spread,
}

/// Log position and its location on the drive.
pub(super) struct TransactionLog {
    pub(super) ring_bytes: u64,
    transactions_per_sync: u32,
    /// Bytes logged so far.
    pub(super) end_bytes: u64,
    /// Position up to which whole blocks are written.
    written_bytes: u64,
    /// Transactions since the last sync.
    unsynced: u32,
}

impl TransactionLog {
    /// Creates a ring of `ring_bytes` bytes, a multiple of the block size.
    pub(super) fn new(ring_bytes: u64, transactions_per_sync: u32) -> TransactionLog {
        TransactionLog { ring_bytes, transactions_per_sync, end_bytes: 0, written_bytes: 0, unsynced: 0 }
    }

    pub(super) fn append(&mut self, bytes: u64) {
        self.end_bytes += bytes;
    }

    /// Completes a transaction and writes the due blocks.
    pub(super) fn commit(&mut self, output: &mut BTreeOutput) {
        self.unsynced += 1;
        let whole = self.end_bytes - self.end_bytes % BLOCK_BYTES;
        if self.transactions_per_sync > 0 && self.unsynced >= self.transactions_per_sync {
            self.unsynced = 0;
            // Writes the partial block too. A later write repeats it.
            let end = self.end_bytes.next_multiple_of(BLOCK_BYTES);
            self.write(end, output);
            self.written_bytes = whole;
        } else if whole - self.written_bytes >= output.write_bytes.min(self.ring_bytes / 4) {
            self.write(whole, output);
            self.written_bytes = whole;
        }
    }

    fn write(&mut self, end: u64, output: &mut BTreeOutput) {
        let mut at = self.written_bytes;
        while at < end {
            let place = at % self.ring_bytes;
            let bytes = (end - at).min(self.ring_bytes - place);
            output.write(BTreeStream::Log, place, bytes);
            at += bytes;
        }
    }
}
