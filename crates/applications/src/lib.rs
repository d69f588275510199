//! Workload models of caches, file systems and databases, and the list of all workload kinds
//! ([`WorkloadSpec`]).
//!
//! ```text
//! btree, cachelib, f2fs, kvcache, lsm, objects        \
//! generator (written by the caller)                    \
//! workload: fio::JobFile, TraceSettings, TenantWorkloads > WorkloadSpec -> dyn RequestSource
//! ```
//!
//! A model decides the offset, the size and the order of a program's writes and stores no data. It
//! has no clock and no threads, and never touches a device. All randomness comes from a seed. The
//! crate `workload` defines sources, requests and targets.

mod bitmap;
pub mod btree;
pub mod cache;
pub mod cachelib;
mod distribution;
pub mod f2fs;
pub mod generator;
pub mod kvcache;
pub mod lsm;
pub mod objects;
mod queue;
mod random_writes;
mod spec;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests {
    mod any_settings;
}
pub mod ycsb;

pub use spec::{JobFileReader, JobsReference, WorkloadSpec};

/// Fraction `part / whole`, 0 if `whole` is 0.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
