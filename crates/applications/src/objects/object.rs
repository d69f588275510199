//! Objects that come to flash, and what is counted of them.

/// An object that comes to flash.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object {
    pub(super) key: u64,
    /// Key and value.
    pub(super) bytes: u32,
    pub(super) expires_ns: u64,
}

/// What is counted of the cache.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) operations: u64,
    pub(super) gets: u64,
    pub(super) dram_hits: u64,
    pub(super) flash_hits: u64,
    pub(super) sets: u64,
    /// Objects that flash did not get: by the admission, because they are too large, and because their class has no slot.
    pub(super) rejected: u64,
    pub(super) too_large: u64,
    pub(super) without_slot: u64,
    /// Objects that left for others, and because their time was over.
    pub(super) evictions: u64,
    pub(super) expired: u64,
    /// Segments that were written again because little of them was stored.
    pub(super) compactions: u64,
    /// Bytes of objects that were admitted, that were written again, and that are stored.
    pub(super) admitted_bytes: u64,
    pub(super) rewritten_bytes: u64,
    pub(super) stored_bytes: u64,
}
