//! Cells: runs of an experiment, each complete except for the files that its workload reads.
//!
//! ```text
//! device, workload, seed, RunSettings -> RunSpec -> simulate::run::prepare (plans the run)
//!                                               -> analysis::fingerprint (key of its result)
//! ```
//!
//! A cell defines a run and its sampling. Only its key refers to the experiment. This module runs
//! no cell.

use std::path::PathBuf;

use applications::WorkloadSpec;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::feedback;
use crate::run_options::RunSettings;
use crate::scaled_model::{self, ScaleChoice};

/// Identity of a run within its experiment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct CellKey {
    pub device: String,
    /// Variant. Empty if the experiment has none.
    pub variant: String,
    /// Value on each axis of the grid, in axis order.
    pub grid: Vec<String>,
}

impl std::fmt::Display for CellKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [&self.device, &self.variant].into_iter().chain(&self.grid);
        let parts: Vec<&str> = parts.map(String::as_str).filter(|part| !part.is_empty()).collect();
        formatter.write_str(&parts.join(" | "))
    }
}

/// Membership of a cell in an ensemble's runs.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct EnsemblePart {
    /// Index from 0 of the member that defines the device. `None`: the profile itself.
    pub member: Option<u32>,
    /// Residual of the ensemble ([`crate::ensemble::Ensemble`]).
    pub residual: f64,
}

/// One run: a device, a workload, settings. Its serialized form is complete except for the files
/// that the workload reads.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RunSpec {
    pub key: CellKey,
    /// Seed of the device. It also offsets the seeds of a job file.
    pub seed: u64,
    /// The device at full size.
    pub device: ssd::DeviceConfig,
    pub workload: WorkloadSpec,
    /// Name of the workload: its file name without folder and extension, or its kind.
    pub workload_name: String,
    pub run: RunSettings,
    /// Array whose drives each are this device. `None`: the device alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<array::ArraySettings>,
    /// Only this drive of the array runs, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_drive: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<feedback::FeedbackSettings>,
    /// Membership in the profile's ensemble, if an interval is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ensemble: Option<EnsemblePart>,
    /// Saved device from which the run continues, instead of a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<PathBuf>,
}

impl RunSpec {
    /// Array whose drives all run.
    pub fn whole_array(&self) -> Option<&array::ArraySettings> {
        self.array.as_ref().filter(|_| self.array_drive.is_none())
    }

    /// Sets the limit of a scale search, unless the caller has. A cell must be complete, so its
    /// result must not depend on the memory of a later machine.
    pub(crate) fn resolve_scale(&mut self) -> Result<(), LabError> {
        if self.run.scale == ScaleChoice::AUTO {
            let sizes = scaled_model::sizes(&self.key.device, &self.device, None)?;
            let largest = sizes.last().copied();
            self.run.scale = ScaleChoice::Auto { largest };
        }
        Ok(())
    }
}
