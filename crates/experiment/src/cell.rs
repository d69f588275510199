//! A cell: one run of an experiment, complete but for the files that its workload reads.
//!
//! ```text
//! device, workload, seed, RunSettings -> Cell -> run::prepare (runs it), fingerprint (names its result)
//! ```
//!
//! It says what is run and how it is watched. It does not know which experiment it belongs to but for its key, and runs
//! nothing.

use std::path::PathBuf;

use applications::Spec;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::feedback;
use crate::run_options::RunSettings;
use crate::twin::{self, ScaleChoice};

/// What distinguishes a run within its experiment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct CellKey {
    pub device: String,
    /// Variant; empty if the experiment has none.
    pub variant: String,
    /// Value on each axis of the grid, in their order.
    pub grid: Vec<String>,
}

impl std::fmt::Display for CellKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [&self.device, &self.variant].into_iter().chain(&self.grid);
        let parts: Vec<&str> = parts.map(String::as_str).filter(|part| !part.is_empty()).collect();
        formatter.write_str(&parts.join(" | "))
    }
}

/// Of which ensemble's runs a cell is one.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct EnsemblePart {
    /// The member that its device is, counted from 0; `None`: the profile itself.
    pub member: Option<u32>,
    /// The ensemble's residual ([`crate::ensemble::Ensemble`]).
    pub residual: f64,
}

/// One run: a device, a workload, settings. Serialized it is complete but for the files that its workload reads.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Cell {
    /// Its place in the experiment.
    pub key: CellKey,
    /// Seed of the device; job seeds are the job file's, moved by it.
    pub seed: u64,
    /// The device at full size.
    pub device: ssd::DeviceConfig,
    /// The workload, options changed.
    pub workload: Spec,
    /// What it is called: the name of its file without folder and ending, or its kind.
    pub workload_name: String,
    /// How much to write and how to watch.
    pub run: RunSettings,
    /// Who listens to what the drive reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<feedback::Settings>,
    /// If an interval was asked for and its profile has an ensemble: what of that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ensemble: Option<EnsemblePart>,
    /// A saved device that the run goes on with, instead of a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<PathBuf>,
}

impl Cell {
    /// Says how far a search for the scale goes, if the caller has not: a cell is complete, so the memory of the machine
    /// that makes it must not show later.
    ///
    /// # Errors
    /// The device is impossible.
    pub(crate) fn resolve_scale(&mut self) -> Result<(), LabError> {
        if self.run.scale == ScaleChoice::AUTO {
            let sizes = twin::sizes(&self.key.device, &self.device, None)?;
            let largest = sizes.last().copied();
            self.run.scale = ScaleChoice::Auto { largest };
        }
        Ok(())
    }
}
