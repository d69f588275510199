//! Components that several kinds of caches share.
//!
//! ```text
//! preset (published numbers) -> generator \
//! trace (files)                            > operations (get, set, delete of keys with sizes)
//!                                            -> dram -> admission -> flash of a cache
//! tier: slots of one size with an eviction order
//! ```
//!
//! This module knows nothing about drives. Each kind (`cachelib`, `kvcache`, `objects`) places its
//! own objects and makes its own requests.

mod admission;
mod dram;
mod generator;
mod index;
mod operations;
mod preset;
mod tier;
mod trace;

pub use admission::Admission;
pub use preset::{Preset, Statistics, StatisticsSettings};
pub use tier::Eviction;
pub use trace::{TraceFormat, is_mooncake};

pub(crate) use admission::{Gate, Offer};
pub(crate) use dram::Dram;
pub(crate) use generator::Generator;
pub(crate) use index::Index;
pub(crate) use operations::Operations;
pub(crate) use preset::check_quantiles;
pub(crate) use tier::Tier;
pub(crate) use trace::TraceFiles;

/// Kind of a cache operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Set,
    Delete,
}

/// One operation on a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheOperation {
    pub(crate) kind: Kind,
    /// Hash of the key.
    pub(crate) key: u64,
    /// Bytes of key and value. `None` for a get of an absent key, or if the trace has no size.
    pub(crate) bytes: Option<u32>,
}
