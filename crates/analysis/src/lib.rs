//! Results as data: metrics, verdicts on claims, intervals, comparisons, stored runs, export.
//!
//! ```text
//! RunResult -> measurement -> claim_checker (claims, published numbers), interval (ensembles), compare
//!           -> claims_record, fidelity (pages of a full run)
//!           -> export (tables, Parquet, JSON) -> store (stored runs; points named by fingerprint)
//! ```
//!
//! This crate runs only the measurement of lifetimes. The crate `report` formats results.

pub mod claim_checker;
pub mod claims_record;
pub mod compare;
mod engine;
pub mod export;
pub mod fidelity;
pub mod fingerprint;
pub mod golden;
pub mod interval;
pub mod lifetimes;
pub mod measurement;
pub mod store;
