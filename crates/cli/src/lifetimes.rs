//! `warp lifetimes`: how long what a workload writes lives, and how far two workloads are apart in that.

use analysis::lifetimes::{self, Measured, Setup};
use experiment::LabError;
use simulate::run::Watch;

use crate::arguments::Lifetimes;
use crate::{Outcome, execute, print};

pub fn lifetimes(command: &Lifetimes) -> Result<Outcome, LabError> {
    let progress = execute::stoppable();
    let setup = Setup {
        device: command.device.clone(),
        capacity_bytes: command.capacity,
        scale: command.scale,
        overrides: command.set.iter().cloned().collect(),
        write_capacities: command.write,
    };
    let names = [Some(&command.workload), command.other.as_ref()];
    let measured: Result<Vec<Measured>, LabError> = names
        .into_iter()
        .flatten()
        .map(|name| setup.measure(name, &progress))
        .collect();
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
