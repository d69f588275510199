//! Workloads as fio job files. The same file describes a run of the lab and a run of real fio on a
//! drive.
//!
//! `lines` and `parse` turn text into typed jobs, with the option table of `options` and the values
//! of `value`, `expression` and `grammar`. `plan` resolves a job for a drive in bytes, and `scaled_jobs`
//! scales the plan down. `stream` turns a plan into requests, with fio's own random numbers
//! (`random`, `distribution`, `random_map`, `power`). `planned` lists the streams of all jobs in
//! the order of their `groups`. `schedule` merges the streams by their `cost`.
//!
//! This module does not run fio, does no I/O and has no clock. Options that need a clock are
//! refused or documented as having no effect.

mod arrivals;
mod cost;
mod distribution;
mod error;
mod expression;
mod grammar;
mod groups;
mod job;
mod lines;
mod memory;
mod options;
mod parse;
mod plan;
mod planned;
pub mod power;
mod random;
mod random_map;
mod scaled_jobs;
mod schedule;
mod stream;
mod summary;
mod value;

pub use arrivals::Arrivals;
pub use cost::total;
pub use distribution::{AccessZone, SkewKind};
pub use error::{FileLine, JobError, OptionError};
pub use groups::check_untimed;
pub use job::{
    AccessMode, BlockDistribution, BlockShare, DataPlacement, ExitScope, Job, JobOperations, LatencyGoal, LogChoice,
    PlacementSelection, SchemeEntry, WriteMode,
};
pub use lines::IncludeContext;
pub use options::{Effect, FioOption, OptionKind, find, manual, nearest, options};
pub use parse::{JobFile, Override, parse, parse_with, parse_within};
pub use plan::{AddressPlan, BlockPlan, JobPlan, PlacementPlan, StridePlan};
pub use planned::{PlannedStream, plan_streams};
pub use random::DEFAULT_SEED;
pub use schedule::Schedule;
pub use stream::JobStream;
pub use summary::StreamSummary;
pub use value::{Amount, KbBase, PerDirection};
