//! Results as values: metrics, claims and their judge, intervals, comparisons, the store of kept runs, and export.
//!
//! ```text
//! CellResult -> measurement -> judge (claims), interval (ensembles), compare
//!            -> export (tables, Parquet, JSON) -> store (kept runs, named by fingerprint)
//! ```
//!
//! Nothing is run here but lifetimes, and nothing is laid out for a person: that is `report`.

pub mod compare;
mod engine;
pub mod export;
pub mod fingerprint;
pub mod golden;
mod hexadecimal;
pub mod interval;
pub mod judge;
pub mod lifetimes;
pub mod measurement;
pub mod record;
pub mod store;
