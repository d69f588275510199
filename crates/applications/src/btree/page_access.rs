//! Page accesses, the elements of operations.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) page: u32,
    /// Bytes of changed records, or 0 for a read.
    pub(super) changed_bytes: u64,
}
