//! A touch of a page: what operations are made of.

/// A page that an operation touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) page: u32,
    /// Bytes of records that it changes; 0: it only reads.
    pub(super) changed_bytes: u64,
}
