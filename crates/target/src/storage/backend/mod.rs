//! Storage backends: keep the bytes of a served drive in memory, in a sparse file, or not at all.
//!
//! ```text
//! nvme::Subsystem -> Media::read, write, discard
//!   -> MemoryBackend:  pieces of 2 MiB on huge pages
//!   -> FileBackend:    a sparse file, durable by fdatasync
//!   -> PatternBackend: a generation per page of `pattern`
//!   -> NullBackend:    nothing
//! ```
//!
//! Addresses are bytes of the drive. Metadata follows its capacity ([`nvme::media::bytes_for`]). A
//! backend treats both as one array. The subsystem's lock makes every access exclusive, so only
//! durability ([`file::OpenDataFile`]) involves threads. Backends know neither namespaces nor the
//! device's mapping. [`crate::storage`] handles those and the files beside the data file.

pub mod checksum_file;
pub mod file;
pub mod memory;
pub mod memory_check;
pub mod null;
pub mod pattern;
pub mod pattern_backend;

pub use file::FileBackend;
pub use memory::MemoryBackend;
pub use null::NullBackend;
pub use pattern_backend::PatternBackend;

/// Kind of storage for a drive's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataChoice {
    /// In memory, lost when the server ends.
    Memory,
    /// In a sparse file, with the drive's state, mapping and counters in files beside it.
    File(std::path::PathBuf),
    /// Without data, for studies of timing and write amplification. All data reads as zeroes.
    Null,
    /// Only the generation of each page, in four bytes. Writes in the pattern of [`pattern`] read
    /// back, and all other data reads as zeroes.
    Pattern,
}

/// Panics unless a range lies in the drive. The controller checks ranges from hosts.
#[inline]
fn check_range(capacity_bytes: u64, offset: u64, bytes: u64) {
    assert!(
        offset <= capacity_bytes && bytes <= capacity_bytes - offset,
        "{bytes} bytes at {offset} are outside the drive's {capacity_bytes}"
    );
}
