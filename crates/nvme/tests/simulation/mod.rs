//! Random hosts against a drive, in lockstep with a model that knows what every completion must be.
//!
//! ```text
//! Entropy (a seed) -> generate: a drive, then operations that suit the state of the model
//!     -> run: drive (nvme::Subsystem) and model, compared after each operation
//!             model: judge (errors of a command), apply (its effects), pages (log pages and data)
//! ```
//!
//! The choice of garbage collection victims (the device's own swarm covers it) and durations are
//! not modelled.

// Test values, documented only where needed.
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
