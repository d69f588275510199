//! Tree settings in entries, scaled to the drive or its scaled model.

use super::Compaction;

/// Behaviour settings of the tree.
#[derive(Debug, Clone, Copy)]
pub struct TreeRules {
    /// Bytes of a key with its value.
    pub entry_bytes: u64,
    pub(super) memtable_entries: u64,
    pub(super) table_entries: u64,
    pub(super) base_entries: u64,
    pub(super) multiplier: u64,
    /// Number of levels with level 0.
    pub(super) levels: u32,
    pub(super) level_zero_tables: u32,
    pub(super) dynamic_levels: bool,
    pub(super) compaction: Compaction,
    /// Maximum number of entries of a FIFO tree.
    pub(super) most_entries: u64,
    pub(super) size_ratio_percent: u64,
    pub(super) space_amplification_percent: u64,
}

impl TreeRules {
    /// Bytes of a full memtable.
    pub fn memtable_bytes(&self) -> u64 {
        self.memtable_entries * self.entry_bytes
    }
}
