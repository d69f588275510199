//! Objects offered to flash, and the counters of the cache.

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
