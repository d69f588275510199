//! A session as an experiment: a text that `warp run` takes, in which each lane is a variant.
//!
//! ```text
//! file of the experiment, or the workload -> changes of a lane's variant, grid values and settings -> [[variants]]
//! ```
//!
//! A run that branched off within another one is no experiment's: it is named in a comment and left out. One that began anew is a
//! variant like any other.

use ::experiment::LabError;
use ::experiment::change::Change;
use ::experiment::definition::Experiment;
use simulate::live::Forked;
use toml::{Table, Value};

use super::{ExportLane, Material};

/// Tables of a change that later ones change key by key.
const TABLES: [&str; 2] = ["device", "settings"];

/// The text of the file.
///
/// # Errors
/// The experiment's own file is gone.
pub fn text(material: &Material) -> Result<String, LabError> {
    let (table, left_out) = table(material)?;
    let mut comment = String::from(
        "# Made by `warp studio`: each lane is a variant. `warp run` on this file's folder gives the same integers.\n",
    );
    for name in left_out {
        comment += &format!("# Left out: {name}, which branched off within another run; the session's link has it.\n");
    }
    if let Some(name) = file_beside(material) {
        comment += &format!("# The workload is {name}, which has to lie beside this file.\n");
    }
    let text = toml::to_string_pretty(&table).expect("an experiment is TOML");
    Ok(format!("{comment}\n{text}"))
}

/// A trace that was sent: its file is no part of an experiment's.
fn file_beside(material: &Material) -> Option<&str> {
    let workload = material
        .order
        .workload
        .as_ref()
        .filter(|workload| workload.text.is_some())?;
    let is_table = workload.name.ends_with(".fio") || workload.name.ends_with(".toml");
    (!is_table).then_some(&workload.name)
}

/// The file as a table, and the names of the lanes that are not in it.
///
/// # Errors
/// As [`text`].
pub fn table(material: &Material) -> Result<(Table, Vec<&str>), LabError> {
    let order = &material.order;
    let base = match &order.experiment {
        Some(name) => {
            let found = Experiment::text(name)?;
            toml::from_str(&found.text)
                .map_err(|error: toml::de::Error| LabError::invalid(&found.file, error.message()))?
        }
        None => Table::new(),
    };
    let is_in = |lane: &&ExportLane| {
        lane.branch
            .is_none_or(|branch| branch.forked == Some(Forked::FromStart))
    };
    let lanes: Vec<&ExportLane> = material.lanes.iter().filter(is_in).collect();
    let left_out = material
        .lanes
        .iter()
        .filter(|lane| !is_in(lane))
        .map(|lane| lane.plan.order.name.as_str());
    let first = lanes[0];
    let mut table = Table::new();
    table.insert("title".to_string(), material.prepared.title().into());
    for key in ["source", "notes"] {
        table.extend(base.get(key).map(|value| (key.to_string(), value.clone())));
    }
    table.insert(
        "devices".to_string(),
        vec![first.plan.plan.cell().key.device.clone()].into(),
    );
    table.extend(workload(material, &base).map(|workload| ("workload".to_string(), workload)));
    table.insert("run".to_string(), run_settings(first));
    table.extend(base.get("change").map(|change| ("change".to_string(), change.clone())));
    let variants = lanes.iter().map(|lane| Value::Table(variant(material, &base, lane)));
    table.insert("variants".to_string(), Value::Array(variants.collect()));
    Ok((table, left_out.collect()))
}

/// The workload of all lanes.
fn workload(material: &Material, base: &Table) -> Option<Value> {
    match (material.prepared.workload_value(), file_beside(material)) {
        (Some(_), Some(name)) => Some(name.into()),
        (Some(workload), None) => Some(workload),
        (None, _) => base.get("workload").cloned(),
    }
}

/// How the lanes are run: as the first, but for what variants change.
fn run_settings(lane: &ExportLane) -> Value {
    let mut settings = lane.plan.settings.clone();
    settings.only.clear();
    settings.prefill_capacities = 0.0;
    Value::try_from(settings).expect("settings are TOML")
}

/// A lane's changes: those of its grid values, of its variant, and its own settings, of which later ones win.
fn variant(material: &Material, base: &Table, lane: &ExportLane) -> Table {
    let cell = lane.plan.plan.cell();
    let mut change = Table::new();
    let axes = base.get("grid").and_then(Value::as_array).into_iter().flatten();
    for (axis, value) in axes.filter_map(Value::as_table).zip(&cell.key.grid) {
        extend(&mut change, &grid_change(axis, value));
    }
    let variants = base.get("variants").and_then(Value::as_array).into_iter().flatten();
    for variant in variants.filter_map(Value::as_table) {
        if variant.get("name").and_then(Value::as_str) == Some(cell.key.variant.as_str()) {
            extend(&mut change, variant);
        }
    }
    if material.prepared.workload_value().is_some() {
        // It takes the place of any that the experiment has; it stands above.
        change.remove("workload");
    }
    extend(&mut change, &own_change(&lane.plan.order.set));
    change.insert("prefill_capacities".to_string(), cell.run.prefill_capacities.into());
    let mut named = Table::from_iter([("name".to_string(), Value::from(lane.plan.order.name.clone()))]);
    change.remove("name");
    named.extend(change);
    named
}

/// The change that a grid value makes.
fn grid_change(axis: &Table, name: &str) -> Table {
    if let Some(path) = axis.get("sweep").and_then(Value::as_str) {
        let over = axis.get("over").and_then(Value::as_array).into_iter().flatten();
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let value = over.clone().find(|value| plain(value) == name);
        let device = Table::from_iter(value.map(|value| (path.to_string(), value.clone())));
        return Table::from_iter([("device".to_string(), Value::Table(device))]);
    }
    let values = axis.get("values").and_then(Value::as_array).into_iter().flatten();
    let mut values = values.filter_map(Value::as_table);
    let found = values.find(|value| value.get("name").and_then(Value::as_str) == Some(name));
    found.cloned().unwrap_or_default()
}

/// Settings of a lane as a change.
fn own_change(set: &Table) -> Table {
    let change = Change::of_settings(set);
    let tables = [("device", change.device), ("settings", change.settings)].into_iter();
    let tables = tables.filter(|(_, table)| !table.is_empty());
    tables
        .map(|(name, table)| (name.to_string(), Value::Table(table)))
        .collect()
}

/// Adds a change to those before it.
fn extend(change: &mut Table, later: &Table) {
    for (key, value) in later {
        match (change.get_mut(key), value) {
            (Some(Value::Table(before)), Value::Table(table)) if TABLES.contains(&key.as_str()) => {
                before.extend(table.clone())
            }
            (Some(Value::Table(before)), Value::Table(table)) if key == "jobs" => {
                for (section, options) in table {
                    match (before.get_mut(section), options) {
                        (Some(Value::Table(before)), Value::Table(options)) => before.extend(options.clone()),
                        _ => drop(before.insert(section.clone(), options.clone())),
                    }
                }
            }
            _ => drop(change.insert(key.clone(), value.clone())),
        }
    }
}
