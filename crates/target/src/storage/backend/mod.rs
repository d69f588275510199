//! Where the bytes of a served drive live: in memory, in a sparse file, or nowhere.
//!
//! ```text
//! nvme::Subsystem -> Media::read, write, discard -> Memory: 2 MiB pieces on huge pages, taken at the first write
//!                                                -> File:   a sparse file; Flush and FUA are fdatasync
//!                                                -> Null:   a generation for each page of `pattern`
//! ```
//!
//! Addresses are bytes of the drive, and behind its capacity of its metadata ([`nvme::media::bytes_for`]): here that is
//! one array. The subsystem's lock makes every access exclusive, so only what makes data durable
//! ([`file::Storage`]) knows about threads. Nothing here knows namespaces, or which pages the device has mapped: that
//! is [`crate::storage`]'s subject, and so are the files beside the data file.

pub mod file;
pub mod memory;
pub mod null;
pub mod pattern;
pub mod room;
pub mod sums;

pub use file::File;
pub use memory::Memory;
pub use null::Null;

/// Where a drive keeps its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataChoice {
    /// In memory; forgotten when the server ends.
    Memory,
    /// In a sparse file, with the drive's state and mapping in two files beside it.
    File(std::path::PathBuf),
    /// Nowhere, for studies of timing and write amplification: what was written in the pattern of [`pattern`] reads
    /// back, everything else reads as zeroes.
    Null,
}

/// Panics unless a range lies in the drive: the controller checks what hosts ask for.
#[inline]
fn check_range(capacity_bytes: u64, offset: u64, bytes: u64) {
    assert!(
        offset <= capacity_bytes && bytes <= capacity_bytes - offset,
        "{bytes} bytes at {offset} are outside the drive's {capacity_bytes}"
    );
}
