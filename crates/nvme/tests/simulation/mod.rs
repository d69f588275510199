//! Random hosts against a drive, in lockstep with a model that knows what every completion must be.
//!
//! ```text
//! Entropy (a seed) -> generate: drive, then operations one by one, from what the model says there is
//!                                     |
//!                                     +-> run: the drive (nvme::Subsystem) and the model, compared after each one
//!                                              model: judge (what is wrong), apply (what it does), pages (what it shows)
//! ```
//!
//! The choice of garbage collection victims (the device's own swarm covers it) and durations are
//! not modelled.

// Plain values of a test, documented only where needed.
#![allow(missing_docs)]

pub mod apply;
pub mod entropy;
pub mod front;
pub mod generate;
pub mod host;
pub mod judge;
pub mod model;
pub mod operation;
pub mod pages;
pub mod run;
pub mod storage;
pub mod wire;
