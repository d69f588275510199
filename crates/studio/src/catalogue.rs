//! Catalogue of experiments, devices, jobs and workloads for the page.

use experiment::{Experiment, LabError, Profile, SettingOverrides, workloads};
use report::catalogue::{CatalogueEntry, EntryKind};
use serde_json::{Value, json};
use ssd::DeviceLayout;
use workload::fio::{self, Effect, FioOption};

/// Maximum characters of a name in a message.
const EXCERPT_CHARS: usize = 80;

pub fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS).collect()
}

/// Names of all experiments, devices or workloads. Experiments include folders in the working
/// folder.
pub fn names_of(kind: &str) -> Vec<String> {
    match kind {
        "experiment" => [Experiment::names(), Experiment::names_here()].concat(),
        "device" => Profile::names(),
        _ => workloads::names(),
    }
}

/// Rejects a name that is not in the catalogue. Paths are rejected too.
pub fn check_known(kind: &str, name: &str) -> Result<(), LabError> {
    let names = names_of(kind);
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(LabError::Unknown {
        what: kind.to_string(),
        name: excerpt(name),
        hint: base::hint(name, names.iter().map(String::as_str)),
        known: names.join(", "),
    })
}

/// Returns true if the catalogue has an entry of any kind with this name.
pub fn is_known(name: &str) -> bool {
    ["experiment", "device", "workload"].iter().any(|kind| names_of(kind).iter().any(|known| known == name))
}

pub fn all() -> Result<Value, LabError> {
    let each = |kind: EntryKind, of: fn(&CatalogueEntry) -> Result<Value, LabError>| {
        let entries = kind.entries()?;
        entries.iter().map(of).collect::<Result<Vec<Value>, LabError>>()
    };
    let named = |entry: &CatalogueEntry| Ok(json!({ "name": entry.name, "title": entry.title }));
    Ok(json!({
        "experiments": each(EntryKind::Experiments, experiment)?,
        "devices": each(EntryKind::Devices, device)?,
        "jobs": each(EntryKind::Jobs, named)?,
        "workloads": each(EntryKind::Workloads, named)?,
    }))
}

fn experiment(entry: &CatalogueEntry) -> Result<Value, LabError> {
    let experiment = Experiment::find(&entry.name)?;
    let coordinates = experiment.coordinates();
    let axes = experiment.axes();
    let axes = axes.iter().map(|axis| json!({ "name": axis, "values": coordinates.values(axis) }));
    Ok(json!({
        "name": entry.name,
        "title": entry.title,
        "devices": experiment.devices,
        "variants": coordinates.values("variant"),
        "axes": axes.collect::<Vec<Value>>(),
        "seconds": entry.seconds,
    }))
}

fn device(entry: &CatalogueEntry) -> Result<Value, LabError> {
    let config = Profile::find(&entry.name)?.config(&SettingOverrides::new())?;
    let layout = DeviceLayout::new(&config).map_err(|error| LabError::Device { device: entry.name.clone(), error })?;
    Ok(json!({
        "name": entry.name,
        "title": entry.title,
        "capacity_bytes": layout.capacity_bytes(),
        "timed": config.timing.is_some(),
    }))
}

/// Text of a catalogue entry, `None` if the kind is unknown.
pub fn text(kind: &str, name: &str) -> Option<Result<String, LabError>> {
    Some(match kind {
        "experiments" => check_known("experiment", name).and_then(|()| Ok(Experiment::text(name)?.text)),
        "devices" => check_known("device", name).and_then(|()| Profile::text(name)),
        "jobs" => check_known("workload", name).and_then(|()| workloads::text_of_jobs(name)),
        "workloads" => check_known("workload", name).and_then(|()| workloads::text_of_workload(name)),
        _ => return None,
    })
}

pub fn options() -> Value {
    let is_understood = |option: &&FioOption| !matches!(option.effect, Effect::Refused(_));
    let option = |option: &FioOption| {
        let values: &[&str] = match option.kind {
            fio::OptionKind::Bool => &["0", "1"],
            _ => &[],
        };
        json!({ "name": option.name(), "help": option.help, "values": values })
    };
    fio::options().iter().filter(is_understood).map(option).collect()
}
