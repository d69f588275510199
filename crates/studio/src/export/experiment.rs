//! Exports a session as an experiment for `warp run`, with each lane as a variant.
//!
//! ```text
//! changes of a lane's grid values, of its variant, and its settings -> Change -> [[variants]]
//! ```
//!
//! An experiment cannot express a run that was forked during another run. Such a run is omitted and
//! named in a comment. A fork that started from the beginning becomes a normal variant.

use ::experiment::{Experiment, RunChange};
use simulate::live::ForkStart;
use toml::{Table, Value};

use super::{ExportData, ExportLane};

pub fn text(material: &ExportData) -> String {
    let (table, left_out) = table(material);
    let mut comment = String::from(
        "# Made by `warp studio`. Each lane is a variant. `warp run` on this file's folder gives the same integers.\n",
    );
    for name in left_out {
        comment +=
            &format!("# {name} is left out, because it was forked during another run. The session's link has it.\n");
    }
    if let Some(name) = file_beside(material) {
        comment += &format!("# The workload is {name}, which must be in the folder of this file.\n");
    }
    let text = toml::to_string_pretty(&table).expect("an experiment is TOML");
    format!("{comment}\n{text}")
}

/// Name of a trace that a page sent. The experiment cannot contain its file.
fn file_beside(material: &ExportData) -> Option<&str> {
    let workload = material.order.workload.as_ref().filter(|workload| workload.text.is_some())?;
    let is_table = workload.name.ends_with(".fio") || workload.name.ends_with(".toml");
    (!is_table).then_some(&workload.name)
}

/// The file as a table, and the names of omitted lanes.
fn table(material: &ExportData) -> (Table, Vec<&str>) {
    let experiment = &material.prepared.experiment;
    let is_in = |lane: &&ExportLane| lane.branch.is_none_or(|branch| branch.forked == Some(ForkStart::FromStart));
    let (mut lanes, left_out): (Vec<&ExportLane>, Vec<&ExportLane>) = material.lanes.iter().partition(is_in);
    // The drives of an array have one run.
    lanes.dedup_by_key(|lane| lane.plan.order.run_name());
    let first = lanes[0];
    let mut table = Table::from_iter([("title".to_string(), material.prepared.experiment.title.as_str().into())]);
    for (key, text) in [("source", &experiment.source), ("notes", &experiment.notes)] {
        if !text.is_empty() {
            table.insert(key.to_string(), text.as_str().into());
        }
    }
    let device = first.plan.plan.cell().key.device.as_str();
    table.insert("devices".to_string(), vec![device].into());
    // The workload of the order replaces the experiment's.
    let ordered = material.prepared.workload.as_ref();
    let workload = ordered.or(experiment.workload.as_ref());
    let workload = workload.map(|workload| file_beside(material).map_or_else(|| value(workload), Value::from));
    table.extend(workload.map(|workload| ("workload".to_string(), workload)));
    table.insert("run".to_string(), run_settings(first));
    let mut common = experiment.change.clone();
    common.extend(&material.prepared.array_change().expect("the session was prepared"));
    let common = change_table(&common);
    table.extend((!common.is_empty()).then(|| ("change".to_string(), Value::Table(common))));
    let variants = lanes.iter().map(|lane| {
        let mut change = change(experiment, lane);
        if ordered.is_some() {
            change.workload = None;
        }
        let mut variant = change_table(&change);
        variant.insert("name".to_string(), lane.plan.order.run_name().into());
        Value::Table(variant)
    });
    table.insert("variants".to_string(), Value::Array(variants.collect()));
    let left_out = left_out.iter().map(|lane| lane.plan.order.name.as_str());
    (table, left_out.collect())
}

/// Run settings of the first lane. Variants contain the changes.
fn run_settings(lane: &ExportLane) -> Value {
    let mut settings = lane.plan.settings.clone();
    settings.variants.clear();
    settings.precondition_drive_writes = 0.0;
    value(&settings)
}

/// Change of a lane from its grid values, its variant and its settings. Later changes win.
fn change(experiment: &Experiment, lane: &ExportLane) -> RunChange {
    let cell = lane.plan.plan.cell();
    let axes = experiment.grid.iter().zip(&cell.key.grid);
    let values = axes.filter_map(|(axis, name)| axis.values.iter().find(|value| value.name == *name));
    let variant = experiment.variants.iter().find(|variant| variant.name == cell.key.variant);
    let mut change = RunChange::default();
    for later in values.chain(variant) {
        change.extend(&later.change);
    }
    change.extend(&RunChange::from_settings(&lane.plan.order.set));
    change.precondition_drive_writes = Some(cell.run.precondition_drive_writes);
    change
}

/// Change as a table, without empty tables.
fn change_table(change: &RunChange) -> Table {
    let mut table = Table::try_from(change).expect("a change is TOML");
    table.retain(|_, value| !value.as_table().is_some_and(Table::is_empty));
    table
}

fn value(of: &impl serde::Serialize) -> Value {
    Value::try_from(of).expect("a value from TOML is TOML")
}
