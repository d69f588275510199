//! Programs as workloads: models of caches, file systems and databases, and the catalogue of all kinds of workloads.
//!
//! ```text
//! btree, cachelib, f2fs, kvcache, lsm, objects        \
//! generator (written by the caller)                    \
//! workload::{fio::JobFile, trace, tenants}::Settings    > Spec -> dyn workload::Source -> batches of Request
//! ```
//!
//! A model decides what a program would write, where and when, and keeps none of its data. It has no clock and no threads and
//! touches no device; all randomness comes from a seed. What a source, a request and a target are is of `workload`.

#[cfg(test)]
mod any_settings;
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
mod spec;
#[cfg(test)]
mod testing;
pub mod ycsb;

pub use spec::{FindJobs, JobsOf, Spec};

/// A share of counts; of nothing it is 0.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
