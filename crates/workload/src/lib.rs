//! Workload sources, which turn a description of a host's work into requests to a drive.
//!
//! ```text
//! fio job file    -> fio::Schedule \
//! block trace     -> trace          > dyn RequestSource -> classifier -> batches of IoRequest
//! other Workloads -> tenants       /
//! ```
//!
//! The crate knows a drive only as a [`WorkloadTarget`]: its capacity, its number of placement
//! indices and, if the run uses one, its scaled model. It touches no device and has no clock and no
//! threads. All randomness comes from a seed. Models of programs are sources in a crate of their
//! own (`applications`).

#![warn(missing_docs)]

pub mod classifier;
pub mod error;
pub mod fio;
pub mod lifetimes;
pub mod random;
mod request;
mod settings;
mod source;
pub mod tenants;
pub mod trace;
mod unit_set;

pub use base::PlacementIndex;
pub use error::WorkloadError;
pub use request::{IoRequest, RequestOperation};
pub use settings::{Workload, deserialize, multiple_of, within};
pub use source::{
    NextCall, OwnedRange, PacedHost, RequestSource, ScaledModel, TaggedRequest, WorkloadMeasure, WorkloadTarget,
};
pub use unit_set::UnitSet;
