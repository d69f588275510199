//! `warp lifetimes`: how long what a workload writes lives, and how far two workloads are apart in that.

use lab::LabError;
use lab::experiment::Experiment;
use lab::lifetimes::{self, Measured};
use lab::run::{Progress, Watch};
use lab::selection::Selection;
use lab::twin::ScaleChoice;

use crate::arguments::Lifetimes;
use crate::{Outcome, execute, print};

pub fn lifetimes(command: &Lifetimes) -> Result<Outcome, LabError> {
    let progress = execute::stoppable();
    let names = [Some(&command.workload), command.other.as_ref()];
    let measured: Result<Vec<Measured>, LabError> = names
        .into_iter()
        .flatten()
        .map(|name| measure(command, name, &progress))
        .collect();
    if progress.stopped() {
        return Ok(Outcome::Stopped);
    }
    let measured = measured?;
    if command.json {
        print(&format!("{}\n", lifetimes::to_json(&measured)?));
    } else {
        print(&lifetimes::table(&measured)?.text());
    }
    Ok(Outcome::Done)
}

fn measure(command: &Lifetimes, name: &str, progress: &Progress) -> Result<Measured, LabError> {
    let selection = Selection {
        overrides: command.set.iter().cloned().collect(),
        capacity_bytes: command.capacity,
        scale: command.capacity.is_none().then_some(ScaleChoice::Fixed(command.scale)),
        write_capacities: Some(command.write),
        timed: Some(false),
        ..Selection::default()
    };
    let experiment = Experiment::of_workload(name, &command.device);
    let plans = lab::run::prepare(experiment.select(&selection)?.cells)?;
    lifetimes::measure(name, &plans[0], command.write, progress)
}
