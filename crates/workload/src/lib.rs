//! Workloads: everything that turns a description of a host's work into requests to a drive.
//!
//! ```text
//! fio job file                    -> fio::Schedule  \
//! block trace                     -> trace           \
//! cache, file system, database    -> cachelib, ...    > dyn Source -> batches of Request
//! ```
//!
//! It knows a drive only as a [`Target`]: capacity, placement identifiers, and whether it is a scaled twin. It does not touch a
//! device, has no clock and no threads; all randomness comes from a seed.

pub mod cachelib;
pub mod classifier;
pub mod error;
pub mod f2fs;
pub mod fio;
pub mod lsm;
mod queue;
mod random;
mod request;
mod source;
mod spec;
pub mod tenants;
pub mod trace;

pub use error::WorkloadError;
pub use request::{Operation, Request};
pub use source::{Measure, Next, Paced, Range, Source, Tagged, Target, Twin};
pub use spec::{FindJobs, Spec};
