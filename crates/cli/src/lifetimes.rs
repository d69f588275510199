//! `warp lifetimes`: prints data lifetime distributions by stream and compares two workloads.

use analysis::lifetimes::{self, Measured, Setup};
use experiment::LabError;
use experiment::profile::Overrides;
use simulate::run::Watch;

use crate::arguments::Lifetimes;
use crate::{Outcome, execute, print};

pub fn lifetimes(command: &Lifetimes) -> Result<Outcome, LabError> {
    let progress = execute::stoppable();
    let names: Vec<&String> = [&command.workload].into_iter().chain(&command.other).collect();
    let overrides = command.columns.overrides_of_traces(&names, &command.set)?;
    let measure = |(name, overrides): (&String, Overrides)| {
        let setup = Setup {
            device: command.device.clone(),
            capacity_bytes: command.capacity,
            scale: command.scale,
            overrides,
            drive_writes: command.drive_writes,
        };
        setup.measure(name, &progress)
    };
    let measured: Result<Vec<Measured>, LabError> = names.into_iter().zip(overrides).map(measure).collect();
    if progress.stopped() {
        return Ok(Outcome::Stopped);
    }
    let measured = measured?;
    if command.output.is_json() {
        print(&format!("{}\n", lifetimes::to_json(&measured)?));
    } else {
        print(&report::rows::lifetimes(&measured)?.shown(command.output.tables()));
    }
    Ok(Outcome::Done)
}
