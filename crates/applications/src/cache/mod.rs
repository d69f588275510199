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

pub use admission::AdmissionPolicy;
pub use preset::{Preset, StatisticsSettings, WorkloadStatistics};
pub use tier::TierEviction;
pub use trace::{CacheTraceFormat, is_mooncake};

pub(crate) use admission::{AdmissionRequest, AdmissionState, OFFER_BYTES, RecentOffers};
pub(crate) use dram::Dram;
pub(crate) use generator::OperationGenerator;
pub(crate) use index::Index;
pub(crate) use operations::OperationSource;
pub(crate) use preset::check_quantiles;
pub(crate) use tier::Tier;
pub(crate) use trace::CacheTraceFiles;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Get,
    Set,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheOperation {
    pub(crate) kind: OperationKind,
    /// Hash of the key.
    pub(crate) key: u64,
    /// Bytes of key and value. `None` for a get of an absent key, or if the trace has no size.
    pub(crate) bytes: Option<u32>,
}
