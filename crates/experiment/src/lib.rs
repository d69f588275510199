//! Descriptions of runs: device profiles, named workloads, experiments, and the cells that they
//! define.
//!
//! ```text
//! devices/*.toml -> profile, ensemble ---------\
//! jobs/, workloads/, traces -> workloads -------> definition + selection -> RunSpec (a cell)
//! experiments/*/experiment.toml -> definition --/         \-> claim (judged in `analysis`)
//! ```
//!
//! This crate reads and checks descriptions. It runs no cell.

pub mod cell;
pub mod change;
pub mod claim;
pub mod coordinates;
pub mod definition;
pub mod ensemble;
pub mod error;
pub mod feedback;
pub mod files;
pub mod find;
mod folders;
pub mod metric;
pub mod profile;
pub mod run_options;
pub mod scaled_model;
pub mod selection;
pub mod template;
pub mod workloads;

pub use error::LabError;
