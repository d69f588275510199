//! Runs that begin or end with a snapshot of the device.

use std::path::Path;

use ssd::Device;
use workload::Spec;

use super::memory_available;
use super::plan::RunPlan;
use super::progress::Watch;
use super::result::CellResult;
use super::work;
use crate::cell::{Cell, CellKey, RunSettings};
use crate::error::LabError;

/// Runs a cell and saves its device.
///
/// # Errors
/// There is too little memory, or the snapshot cannot be written.
pub fn run_and_save(plan: &RunPlan, path: &Path, watch: &dyn Watch) -> Result<CellResult, LabError> {
    plan.check_memory(memory_available())?;
    watch.expects(plan.work());
    let device = Device::new(&plan.config).expect("the layout was made before");
    let (result, device) = work::run_device(plan, device, None, true, watch)?;
    device.save(path)?;
    Ok(result)
}

/// A workload to run on a device that was saved before.
pub struct Continuation<'a> {
    /// The snapshot.
    pub snapshot: &'a Path,
    /// The workload.
    pub workload: Spec,
    /// How much to write and how to watch; there is no prefill.
    pub settings: RunSettings,
    /// Where to save the device afterwards.
    pub save: Option<&'a Path>,
}

/// Loads a device, runs a workload on it and saves it if that is asked for.
///
/// # Errors
/// The snapshot cannot be read or written, or the workload does not fit its device.
pub fn continue_snapshot(continued: &Continuation<'_>, watch: &dyn Watch) -> Result<CellResult, LabError> {
    let device = Device::load(continued.snapshot)?;
    let name = continued.snapshot.display().to_string();
    let cell = Cell {
        key: CellKey {
            device: name,
            variant: String::new(),
            grid: Vec::new(),
        },
        seed: device.config().seed,
        device: device.config().clone(),
        workload: continued.workload.clone(),
        run: continued.settings.clone(),
        feedback: None,
    };
    let plan = RunPlan::new(cell)?;
    watch.expects(plan.work());
    let (result, device) = work::run_device(&plan, device, None, true, watch)?;
    if let Some(path) = continued.save {
        device.save(path)?;
    }
    Ok(result)
}
