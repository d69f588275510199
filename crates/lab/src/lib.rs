//! The lab: workloads, experiments, claims and reports on the device model, as fast as memory allows.
//!
//! ```text
//! jobs/*.fio -> fio -> workload \
//! devices/*.toml -> profile      > experiment -> run -> judge, rows, report, export
//! experiments/*/experiment.toml /      \-> selection, fingerprint     \-> policy
//! ```
//!
//! It does not know NVMe, transports or the command line; it prints nothing.

pub mod bench;
pub mod catalogue;
pub mod cell;
pub mod claim;
pub mod clocked;
pub mod compare;
pub mod coordinates;
pub mod describe;
mod engine;
pub mod ensemble;
pub mod error;
pub mod experiment;
pub mod export;
pub mod feedback;
pub mod find;
pub mod finding;
pub mod fingerprint;
pub mod golden;
pub mod interval;
pub mod judge;
pub mod lifetimes;
pub mod live;
mod mapper;
pub mod metric;
pub mod policy;
pub mod profile;
pub mod record;
mod recorder;
pub mod report;
pub mod rows;
pub mod run;
pub mod selection;
pub mod steady;
pub mod store;
pub mod template;
pub mod timed;
pub mod twin;
pub mod whatif;
pub mod workloads;

pub use error::LabError;
