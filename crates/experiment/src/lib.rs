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

pub use cell::{CellKey, EnsemblePart, RunSpec};
pub use change::{RunChange, SettingOverrides};
pub use coordinates::{CellSelector, ExperimentAxes};
pub use definition::{Experiment, Variant};
pub use error::LabError;
pub use metric::{LatencyStatistic, Metric};
pub use profile::Profile;
pub use run_options::{RunOptions, RunSettings};
pub use scaled_model::{Scale, ScaleChoice};
pub use selection::{ExperimentForm, RunOverrides, RunSet};
pub use workloads::{WorkloadChanges, WorkloadChoice};
