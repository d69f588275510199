//! The lab: workloads, experiments, claims and reports on the device model, as fast as memory allows.
//!
//! ```text
//! jobs/*.fio -> fio -> workload \
//! devices/*.toml -> profile      > experiment -> run -> claims, table, report, export
//! experiments/*/experiment.toml /      \-> choice, input     \-> policy
//! ```
//!
//! It does not know NVMe, transports or the command line; it prints nothing.

pub mod bench;
pub mod choice;
pub mod claims;
pub mod describe;
pub mod drive;
pub mod error;
pub mod experiment;
pub mod export;
pub mod feedback;
pub mod golden;
pub mod input;
pub mod metric;
pub mod policy;
pub mod profile;
pub mod report;
pub mod run;
pub mod source;
pub mod table;
pub mod timed;
pub mod twin;

pub use error::LabError;
