//! What there is to run, for the page: the lab's catalogue with what a choice needs.

use experiment::LabError;
use experiment::definition::Experiment;
use experiment::profile::{Overrides, Profile};
use experiment::workloads;
use report::catalogue::{Entry, Kind};
use serde_json::{Value, json};
use ssd::Layout;
use workload::fio::{self, Effect, FioOption};

use crate::order::{known_device, known_experiment, known_workload};

/// Everything there is.
///
/// # Errors
/// A file in the working folder that is none: names file and field.
pub fn all() -> Result<Value, LabError> {
    let each = |kind: Kind, of: fn(&Entry) -> Result<Value, LabError>| {
        let entries = kind.entries()?;
        entries.iter().map(of).collect::<Result<Vec<Value>, LabError>>()
    };
    let named = |entry: &Entry| Ok(json!({ "name": entry.name, "title": entry.title }));
    Ok(json!({
        "experiments": each(Kind::Experiments, experiment)?,
        "devices": each(Kind::Devices, device)?,
        "jobs": each(Kind::Jobs, named)?,
        "workloads": each(Kind::Workloads, named)?,
    }))
}

fn experiment(entry: &Entry) -> Result<Value, LabError> {
    let experiment = Experiment::find(&entry.name)?;
    let coordinates = experiment.coordinates();
    let axes = experiment.axes();
    let axes = axes
        .iter()
        .map(|axis| json!({ "name": axis, "values": coordinates.values(axis) }));
    Ok(json!({
        "name": entry.name,
        "title": entry.title,
        "devices": experiment.devices,
        "variants": coordinates.values("variant"),
        "axes": axes.collect::<Vec<Value>>(),
        "seconds": entry.seconds,
    }))
}

fn device(entry: &Entry) -> Result<Value, LabError> {
    let config = Profile::find(&entry.name)?.config(&Overrides::new())?;
    let layout = Layout::new(&config).map_err(|error| LabError::Device {
        device: entry.name.clone(),
        error,
    })?;
    Ok(json!({
        "name": entry.name,
        "title": entry.title,
        "capacity_bytes": layout.capacity_bytes(),
        "timed": config.timing.is_some(),
    }))
}

/// The text of something in the catalogue; `None` if there is no such kind.
///
/// # Errors
/// There is none of this name.
pub fn text(kind: &str, name: &str) -> Option<Result<String, LabError>> {
    Some(match kind {
        "experiments" => known_experiment(name).and_then(|()| Ok(Experiment::text(name)?.text)),
        "devices" => known_device(name).and_then(|()| Profile::text(name)),
        "jobs" => known_workload(name).and_then(|()| workloads::text_of_jobs(name)),
        "workloads" => known_workload(name).and_then(|()| workloads::text_of_workload(name)),
        _ => return None,
    })
}

/// The options of job files that are understood.
pub fn options() -> Value {
    let is_understood = |option: &&FioOption| !matches!(option.effect, Effect::Refused(_));
    let option = |option: &FioOption| {
        let values: &[&str] = match option.kind {
            fio::Kind::Bool => &["0", "1"],
            _ => &[],
        };
        json!({ "name": option.name, "help": option.help, "values": values })
    };
    fio::options().iter().filter(is_understood).map(option).collect()
}
