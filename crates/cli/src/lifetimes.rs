//! `warp lifetimes`: prints data lifetime distributions by stream and compares two workloads.

use analysis::lifetimes::{self, MeasuredLifetimes, Setup};
use experiment::{LabError, SettingOverrides};
use simulate::run::ProgressObserver;

use crate::arguments::LifetimesArgs;
use crate::{ExitOutcome, execute};

pub fn lifetimes(command: &LifetimesArgs) -> Result<ExitOutcome, LabError> {
    let progress = execute::stoppable();
    let names: Vec<&String> = [&command.workload].into_iter().chain(&command.other).collect();
    let overrides = command.columns.overrides_of_traces(&names, &command.set)?;
    let measure = |(name, overrides): (&String, SettingOverrides)| {
        let setup = Setup {
            device: command.device.clone(),
            capacity_bytes: command.capacity,
            scale: command.scale,
            overrides,
            drive_writes: command.drive_writes,
        };
        setup.measure(name, &progress)
    };
    let measured: Result<Vec<MeasuredLifetimes>, LabError> = names.into_iter().zip(overrides).map(measure).collect();
    if progress.should_stop() {
        return Ok(ExitOutcome::Stopped);
    }
    let measured = measured?;
    let (json, table) = (lifetimes::to_json(&measured)?, report::rows::lifetimes(&measured)?);
    Ok(command.output.print(&json, |format| table.render(format)))
}
