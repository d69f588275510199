//! Session orders: specifications of a session, as a page sends them and a permalink contains them.
//!
//! ```text
//! JSON -> SessionSpec (checked) -> RunOverrides of each lane -> Experiment::select -> run::prepare -> LanePlan
//! ```
//!
//! The same order gives the same integers on every machine. An order cannot read files of this
//! machine. Its names are in the catalogue, and its own workloads are text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use experiment::change::parse_array;
use experiment::{
    Experiment, LabError, RunChange, RunOptions, RunOverrides, RunSet, RunSettings, RunSpec, ScaleChoice,
    WorkloadChoice, scaled_model,
};
use serde::{Deserialize, Serialize};
use simulate::run::{MemoryNeed, RunPlan};
use toml::Table;

use crate::catalogue::{check_known, excerpt};
use crate::text_check;

pub const LANES_MAX: usize = 8;
/// Maximum settings of a lane.
const SETTINGS_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 80;
/// Maximum number of lanes that the default name of a session lists.
const NAMED_LANES_MAX: usize = 4;

const FIRST_SEED: u64 = 1;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// Name of the session [default: its experiment or workload].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub experiment: Option<String>,
    /// Workload, alone or instead of the experiment's.
    pub workload: Option<SessionWorkload>,
    /// Device of the catalogue [default: the experiment's only device].
    pub device: Option<String>,
    /// Array of the devices in one line, as `--array` of `warp run`. Each drive becomes a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// Options of the runs. In JSON, the options are keys of the order, some with shorter names.
    #[serde(flatten, with = "order_options")]
    pub run: RunOptions,
    /// Runs of the session, side by side.
    pub lanes: Vec<LaneSpec>,
    #[serde(default)]
    pub forks: Vec<ForkSpec>,
}

/// Converts run options to keys of an order and back. Unknown keys are rejected here.
mod order_options {
    use experiment::run_options::RunOptions;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Map, Value, json};

    use super::FIRST_SEED;

    /// Run options that every order has, null if not given. Its `seed` is a single one of `seeds`.
    const KEYS: [&str; 4] = ["scale", "drive_writes", "precondition_drive_writes", "timed"];

    pub fn serialize<S: Serializer>(run: &RunOptions, serializer: S) -> Result<S::Ok, S::Error> {
        let mut options = run.set_options();
        let seed = options.remove("seeds").map_or(json!(FIRST_SEED), |seeds| seeds[0].clone());
        let of_key = |key: &str| (key.to_string(), options.remove(key).unwrap_or_default());
        let mut keys: Map<String, Value> = KEYS.map(of_key).into_iter().collect();
        keys.insert("seed".to_string(), seed);
        keys.extend(options);
        keys.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RunOptions, D::Error> {
        let mut keys = Map::deserialize(deserializer)?;
        let seed = keys.remove("seed");
        keys.extend(seed.map(|seed| ("seeds".to_string(), json!([seed]))));
        serde_json::from_value(Value::Object(keys)).map_err(D::Error::custom)
    }
}

/// Workload of the catalogue, or a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionWorkload {
    /// Name in the catalogue. For a text, a file name whose extension gives the kind: `.fio` for a
    /// job file, `.toml` for a workload with a `kind`, any other for a block trace.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneSpec {
    pub name: String,
    /// Names of its variant and its grid values.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Settings of the device by dotted path. Paths below `workload.` set the workload.
    #[serde(default)]
    pub set: Table,
    /// Drive of the array that the lane shows, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<u16>,
}

/// Fork of another run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkSpec {
    /// Index of the parent among the lanes and the earlier forks.
    pub of: usize,
    pub name: String,
    /// Host bytes written at the fork.
    pub at_host_bytes: u64,
    /// Settings that differ from the parent.
    #[serde(default)]
    pub set: Table,
}

/// Lane that is ready to run.
#[derive(Clone)]
pub struct LanePlan {
    /// Order of the lane, including the settings of its parent.
    pub order: LaneSpec,
    /// Run settings before the changes of the variant.
    pub settings: RunSettings,
    pub plan: Arc<RunPlan>,
}

/// Order with its resolved names.
pub struct SessionPlan {
    pub order: SessionSpec,
    /// Experiment that contains the lanes as cells.
    pub experiment: Experiment,
    /// Workload of all lanes, if the order has one.
    pub workload: Option<WorkloadChoice>,
    /// Folder with the texts that runs read as files.
    folder: Option<tempfile::TempDir>,
}

impl SessionSpec {
    pub fn parse(text: &[u8]) -> Result<SessionSpec, LabError> {
        let order: SessionSpec = serde_json::from_slice(text)
            .map_err(|error| LabError::invalid("order", base::hinted(&error.to_string())))?;
        order.check()?;
        Ok(order)
    }

    /// Rejects an inconsistent order before any name is resolved.
    fn check(&self) -> Result<(), LabError> {
        if let Some(name) = &self.name {
            check_name("name", name)?;
        }
        if self.run.seeds.as_ref().is_some_and(|seeds| seeds.len() != 1) {
            return Err(LabError::invalid("seed (--seed)", "a session runs one seed. Give one"));
        }
        if self.lanes.is_empty() {
            return Err(LabError::invalid("lanes", "the list is empty. Give at least one"));
        }
        let count = self.lanes.len() + self.forks.len();
        if count > LANES_MAX {
            let forks = if self.forks.is_empty() { "" } else { " with the forks" };
            let problem = format!("there are {count}{forks}, but a session has at most {LANES_MAX}. Remove some");
            return Err(LabError::invalid("lanes", problem));
        }
        let names = self.lanes.iter().map(|lane| &lane.name);
        let names: Vec<&String> = names.chain(self.forks.iter().map(|fork| &fork.name)).collect();
        for (index, name) in names.iter().enumerate() {
            check_name(LANE_NAME, name)?;
            if names[..index].contains(name) {
                return Err(LabError::invalid("lanes", format!("two have the name {name:?}. Give each another name")));
            }
        }
        for set in self.lanes.iter().map(|lane| &lane.set).chain(self.forks.iter().map(|fork| &fork.set)) {
            check_set(set)?;
        }
        for (index, fork) in self.forks.iter().enumerate() {
            if fork.of >= self.lanes.len() + index {
                let problem = format!("{} is a fork of lane {}, which does not come before it", fork.name, fork.of);
                return Err(LabError::invalid("forks", problem));
            }
        }
        Ok(())
    }

    /// Creates a lane per variant of an experiment, or one lane for a workload. `target` is that of
    /// `warp run`. The device and the options come from this order. `set` are settings of all
    /// lanes.
    pub fn with_target(self, target: &str, set: &Table) -> Result<SessionSpec, LabError> {
        if Experiment::is_workload(target) {
            return Ok(self.with_workload(target, set));
        }
        self.with_experiment(target, &Experiment::find(target)?, set)
    }

    /// Creates the order of a workload, by name or file, like [`SessionSpec::with_target`].
    pub fn with_workload(mut self, workload: &str, set: &Table) -> SessionSpec {
        let name = Path::new(workload).file_stem().unwrap_or_default().to_string_lossy();
        self.workload = Some(SessionWorkload { name: workload.to_string(), text: None });
        self.run.scale.get_or_insert(ScaleChoice::AUTO);
        self.lanes = vec![LaneSpec::new(&name, Vec::new(), set)];
        self
    }

    /// Creates the order of an experiment with this name, like [`SessionSpec::with_target`].
    pub fn with_experiment(
        mut self,
        name: &str,
        experiment: &Experiment,
        set: &Table,
    ) -> Result<SessionSpec, LabError> {
        self.experiment = Some(name.to_string());
        if self.device.is_none() {
            self.device = experiment.devices.first().cloned();
        }
        let chosen_names = self.run.variants.take().unwrap_or_default();
        let chosen = |name: &&String| chosen_names.contains(name);
        let coordinates = experiment.coordinates();
        let axes = experiment.axes();
        let values = axes.iter().filter_map(|axis| {
            let values = coordinates.values(axis);
            values.iter().find(chosen).or(values.first()).cloned()
        });
        let values: Vec<String> = values.collect();
        let variants = coordinates.values("variant");
        let is_any = variants.iter().any(|variant| chosen_names.contains(variant));
        let variants = variants.iter().filter(|variant| !is_any || chosen(variant));
        let lanes = variants.take(LANES_MAX).map(|variant| {
            let names = [vec![variant.clone()], values.clone()].concat();
            LaneSpec::new(variant, names, set)
        });
        self.lanes = lanes.collect();
        if self.lanes.is_empty() {
            self.lanes = vec![LaneSpec::new(&experiment.slug, values, set)];
        }
        let known = |name: &&String| !self.lanes.iter().any(|lane| lane.variants.contains(name));
        if let Some(unknown) = chosen_names.iter().find(known) {
            let problem = format!(
                "{unknown} is not a variant or value of {}, or it is the second value of an axis",
                experiment.slug
            );
            return Err(LabError::invalid("variants (--variant)", problem));
        }
        Ok(self)
    }
}

impl LaneSpec {
    pub fn new(name: &str, variants: Vec<String>, set: &Table) -> LaneSpec {
        LaneSpec { name: name.to_string(), variants, set: set.clone(), drive: None }
    }

    /// Name of the lane's run. All drives of an array have the same run.
    pub fn run_name(&self) -> &str {
        let of_drive = self.drive.map(|drive| format!(", drive {drive}")).unwrap_or_default();
        self.name.strip_suffix(&of_drive).unwrap_or(&self.name)
    }

    /// Lanes of the drives of an array.
    fn of_drives(&self, drives: u16) -> impl Iterator<Item = LaneSpec> + use<'_> {
        let lane =
            |drive| LaneSpec { name: format!("{}, drive {drive}", self.name), drive: Some(drive), ..self.clone() };
        (0..drives).map(lane)
    }
}

/// Place of a lane's name in messages.
const LANE_NAME: &str = "lanes, name";

/// Rejects an invalid name of a lane or a session. `place` is part of the message.
pub fn check_name(place: &str, name: &str) -> Result<(), LabError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        let problem = format!(
            "{:?} is not a valid name. Give 1 to {NAME_BYTES_MAX} bytes without control characters",
            excerpt(name)
        );
        return Err(LabError::invalid(place, problem));
    }
    Ok(())
}

/// Rejects too many settings, and settings that name files of this machine.
pub fn check_set(set: &Table) -> Result<(), LabError> {
    if set.len() > SETTINGS_MAX {
        return Err(LabError::invalid("set", format!("there are {} settings. Give at most {SETTINGS_MAX}", set.len())));
    }
    set.iter().try_for_each(|(path, value)| {
        let last = path.rsplit('.').next().unwrap_or_default();
        text_check::check_setting(last, value)
            .map_err(|problem| LabError::invalid(&format!("set {}", excerpt(path)), problem))
    })
}

impl SessionPlan {
    /// Resolves the names of an order. `granted` are the files that the user who started the server
    /// named.
    pub fn new(order: SessionSpec, granted: &[PathBuf]) -> Result<SessionPlan, LabError> {
        order.check()?;
        let mut folder = None;
        let workload = order.workload.as_ref().map(|workload| choice(workload, granted, &mut folder)).transpose()?;
        let experiment = base_experiment(&order, granted, workload.as_ref())?;
        let mut plan = SessionPlan { order, experiment, workload, folder };
        plan.divide_arrays()?;
        Ok(plan)
    }

    /// Replaces each lane on an array by a lane for each drive.
    fn divide_arrays(&mut self) -> Result<(), LabError> {
        let mut lanes = Vec::new();
        for lane in &self.order.lanes {
            let cell = self.cell(lane)?.1;
            match cell.whole_array() {
                Some(array) if array.drives as usize > LANES_MAX => {
                    let problem = format!(
                        "an array of {} drives needs as many lanes, but a session has at most {LANES_MAX}. Use fewer \
                         drives, or `warp run --array`",
                        array.drives
                    );
                    return Err(LabError::invalid(&format!("lane {}", lane.name), problem));
                }
                Some(array) => lanes.extend(lane.of_drives(array.drives)),
                None => lanes.push(lane.clone()),
            }
        }
        let is_divided = lanes.len() > self.order.lanes.len();
        if is_divided && !self.order.forks.is_empty() {
            let problem = "a fork continues one drive. Give each drive of the array a lane (\"drive\": 0 and so on)";
            return Err(LabError::invalid("forks", problem));
        }
        if lanes.len() > LANES_MAX {
            let problem = format!(
                "there are {}, one for each drive of an array, but a session has at most {LANES_MAX}. Choose fewer \
                 variants (--variant) or drives",
                lanes.len()
            );
            return Err(LabError::invalid("lanes", problem));
        }
        self.order.lanes = lanes;
        self.order.check()
    }

    /// Array settings of all lanes.
    pub fn array_change(&self) -> Result<RunChange, LabError> {
        let array = self.order.array.as_deref().map(parse_array).transpose();
        let array = array.map_err(|problem| LabError::invalid("array", problem))?;
        Ok(RunChange::from_settings(&array.unwrap_or_default()))
    }

    /// Prepares the initial lanes. `reserve` reserves the memory of each lane.
    pub fn lanes<S>(
        &self,
        reserve: impl Fn(&MemoryNeed) -> Result<S, LabError>,
    ) -> Result<Vec<(LanePlan, S)>, LabError> {
        let lanes = self.order.lanes.iter();
        lanes.map(|lane| self.lane(lane, &reserve)).collect()
    }

    pub fn cells(&self) -> Result<Vec<RunSpec>, LabError> {
        let lanes = self.order.lanes.iter();
        lanes.map(|lane| Ok(self.cell(lane)?.1)).collect()
    }

    /// Prepares a lane of the session. `reserve` reserves the memory of its run before the
    /// allocation.
    ///
    pub fn lane<S>(
        &self,
        order: &LaneSpec,
        reserve: impl FnOnce(&MemoryNeed) -> Result<S, LabError>,
    ) -> Result<(LanePlan, S), LabError> {
        let named = |error: LabError| self.lane_error(order, &error);
        let (settings, mut cell) = self.cell(order)?;
        if let ScaleChoice::Auto { largest } = cell.run.scale {
            // A session shows one scaled model, the first one of an automatic search.
            let sizes = scaled_model::sizes(&cell.key.device, &cell.device, largest).map_err(named)?;
            cell.run.scale = ScaleChoice::Fixed(sizes[0]);
        }
        let (plan, reserved) = simulate::run::RunPlan::new(cell, reserve).map_err(named)?;
        let lane = LanePlan {
            settings: RunSettings { scale: plan.cell().run.scale, timed: Some(plan.is_timed()), ..settings },
            order: order.clone(),
            plan: Arc::new(plan),
        };
        Ok((lane, reserved))
    }

    /// Cell of a lane, and its run settings before the changes of the variant.
    fn cell(&self, order: &LaneSpec) -> Result<(RunSettings, RunSpec), LabError> {
        check_name(LANE_NAME, &order.name)?;
        check_set(&order.set)?;
        let selected = self.experiment.select(&self.selection(order)?);
        let RunSet { settings, mut cells, .. } = selected.map_err(|error| self.lane_error(order, &error))?;
        if cells.len() != 1 {
            let names: Vec<String> = cells.iter().take(4).map(|cell| cell.key.to_string()).collect();
            let problem = format!(
                "has {} runs ({}{}), but a lane is one. Name a variant and a value of each axis in variants",
                cells.len(),
                names.join(", "),
                if cells.len() > names.len() { ", ..." } else { "" }
            );
            return Err(LabError::invalid(&format!("lane {}", order.name), problem));
        }
        let cell = RunSpec { array_drive: order.drive, ..cells.remove(0) };
        if order.drive.is_some() && cell.array.is_none() {
            let problem = "it shows a drive of an array, but its run has none. Give an array, or leave \"drive\" out";
            return Err(LabError::invalid(&format!("lane {}", order.name), problem));
        }
        Ok((settings, cell))
    }

    /// Error of a lane, with the names of its order.
    fn lane_error(&self, order: &LaneSpec, error: &LabError) -> LabError {
        LabError::invalid(&format!("lane {}", order.name), self.as_ordered(&error.to_string()))
    }

    /// Selection of a lane, with the same options as `warp run`.
    fn selection(&self, lane: &LaneSpec) -> Result<RunOverrides, LabError> {
        let mut run = self.order.run.clone();
        run.seeds.get_or_insert_with(|| vec![FIRST_SEED]);
        if !lane.variants.is_empty() {
            run.variants = Some(lane.variants.clone());
        }
        if lane.drive.is_some() {
            // The drives of an array run alone, without a common clock.
            run.timed.get_or_insert(false);
        }
        let mut change = self.array_change()?;
        change.extend(&RunChange { workload: self.workload.clone(), ..RunChange::from_settings(&lane.set) });
        Ok(RunOverrides { run, change, device: self.order.device.clone(), ..RunOverrides::default() })
    }

    /// Replaces temporary paths in a message by the file names of the order.
    pub fn as_ordered(&self, sentence: &str) -> String {
        match &self.folder {
            Some(folder) => sentence.replace(&format!("{}/", folder.path().display()), ""),
            None => sentence.to_string(),
        }
    }

    /// Default name of the session, made of its experiment or workload, device and lanes.
    pub fn default_name(&self) -> String {
        let order = &self.order;
        let workload = order.workload.as_ref().map(|workload| workload.name.as_str());
        // A path of the command line is shortened to the file name.
        let what = order.experiment.as_deref().or(workload).unwrap_or_default();
        let what = Path::new(what).file_name().map_or(what.into(), |name| name.to_string_lossy());
        let device = order.device.as_ref().or(self.experiment.devices.first());
        let device = device.map_or(String::new(), |device| format!(" on {device}"));
        let lanes = match &order.lanes[..] {
            lanes if lanes.len() > NAMED_LANES_MAX => format!("{} lanes", lanes.len()),
            lanes => lanes.iter().map(|lane| lane.name.as_str()).collect::<Vec<_>>().join(", "),
        };
        format!("{what}{device}: {lanes}").chars().take(NAME_BYTES_MAX).collect()
    }
}

/// Experiment that contains the lanes as cells: the named one, or the workload on the device.
fn base_experiment(
    order: &SessionSpec,
    granted: &[PathBuf],
    workload: Option<&WorkloadChoice>,
) -> Result<Experiment, LabError> {
    let is_granted = |name: &str| granted.iter().any(|path| path == Path::new(name));
    if let Some(device) = order.device.as_ref().filter(|device| !is_granted(device)) {
        check_known("device", device)?;
    }
    if let Some(name) = &order.experiment {
        if !is_granted(name) {
            check_known("experiment", name)?;
        }
        let experiment = Experiment::find(name)?;
        if order.device.is_none() && experiment.devices.len() > 1 {
            let problem =
                format!("is missing. Give one of those in the experiment ({})", experiment.devices.join(", "));
            return Err(LabError::invalid("device", problem));
        }
        return Ok(experiment);
    }
    let (Some(named), Some(choice)) = (&order.workload, workload) else {
        return Err(LabError::invalid("order", "names neither an experiment nor a workload. Give one of them"));
    };
    let device = order
        .device
        .as_ref()
        .ok_or_else(|| LabError::invalid("device", "is missing. Give a device for the workload"))?;
    let mut experiment = Experiment::from_workload(&named.name, device);
    experiment.workload = Some(choice.clone());
    Ok(experiment)
}

/// Workload of an order. A trace is written to a temporary folder.
fn choice(
    workload: &SessionWorkload,
    granted: &[PathBuf],
    folder: &mut Option<tempfile::TempDir>,
) -> Result<WorkloadChoice, LabError> {
    let Some(text) = &workload.text else {
        if !granted.iter().any(|path| path == Path::new(&workload.name)) {
            check_known("workload", &workload.name)?;
        }
        return Ok(WorkloadChoice::Named(workload.name.clone()));
    };
    text_check::check_file_name(&workload.name).map_err(|problem| LabError::invalid("workload, name", problem))?;
    match text_check::table(&workload.name, text) {
        Ok(Some(table)) => Ok(WorkloadChoice::Table(table)),
        Ok(None) => {
            let made = tempfile::Builder::new().prefix("warp-studio-").tempdir();
            let made = made.map_err(|source| LabError::output(&std::env::temp_dir(), source))?;
            let file = made.path().join(&workload.name);
            std::fs::write(&file, text).map_err(|source| LabError::output(&file, source))?;
            *folder = Some(made);
            Ok(WorkloadChoice::Named(file.display().to_string()))
        }
        Err(problems) => {
            let first = &problems[0];
            let line = first.line.map_or(String::new(), |line| format!(":{line}"));
            Err(LabError::invalid(&format!("{}{line}", workload.name), first.message.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str) -> Result<Vec<LanePlan>, String> {
        let order = SessionSpec::parse(text.as_bytes()).map_err(|error| error.to_string())?;
        let prepared = SessionPlan::new(order, &[]).map_err(|error| error.to_string())?;
        let lanes = prepared.lanes(|_| Ok(())).map_err(|error| error.to_string())?;
        Ok(lanes.into_iter().map(|(lane, ())| lane).collect())
    }

    fn refusal(text: &str) -> String {
        order(text).err().unwrap_or_else(|| panic!("{text} is accepted"))
    }

    #[test]
    fn an_order_comes_back_as_it_was() {
        let text = r#"{"experiment":"three_stream","workload":null,"device":"ssd_a","scale":"1/512","drive_writes":3.0,"precondition_drive_writes":null,"timed":false,"seed":1,
            "lanes":[{"name":"FDP","variants":["FDP","80/20"],"set":{"gc.victim_policy":"fifo","geometry.over_provisioning":0.28}}],
            "forks":[{"of":0,"name":"OP","at_host_bytes":123456,"set":{"geometry.over_provisioning":0.1}}]}"#;
        let order = SessionSpec::parse(text.as_bytes()).expect("an order");
        let again = serde_json::to_vec(&order).expect("it serializes");
        assert_eq!(SessionSpec::parse(&again).expect("an order"), order);
        let same: serde_json::Value = serde_json::from_slice(&again).expect("JSON");
        assert_eq!(same, serde_json::from_str::<serde_json::Value>(text).expect("JSON"));
    }

    #[test]
    fn an_order_is_lanes_of_one_run_each() {
        let lanes = order(
            r#"{"experiment":"three_stream","device":"ssd_a","scale":"1/2048","drive_writes":0.5,
                "lanes":[{"name":"a","variants":["FDP","80/20"]},{"name":"b","variants":["NoFDP","80/20"],"set":{"gc.victim_policy":"fifo"}}]}"#,
        )
        .expect("two runs");
        let keys: Vec<String> = lanes.iter().map(|lane| lane.plan.cell().key.to_string()).collect();
        assert_eq!(keys, ["ssd_a | FDP | 80/20", "ssd_a | NoFDP | 80/20"]);
    }

    #[test]
    fn what_an_order_says_wrongly_is_said_in_a_sentence() {
        for (text, says) in [
            ("{", "order: EOF while parsing"),
            ("[]", "order: "),
            (r#"{"lanes":[]}"#, "lanes: the list is empty"),
            (r#"{"lanes":[{"name":"a"}]}"#, "names neither an experiment nor a workload"),
            (r#"{"lanes":[{"name":"a"},{"name":"a"}],"experiment":"three_stream"}"#, "two have the name \"a\""),
            (r#"{"lanes":[{"name":""}],"experiment":"three_stream"}"#, "Give 1 to 80 bytes"),
            (r#"{"lanes":[{"name":"a"}],"experiment":"three_streams"}"#, "did you mean three_stream?"),
            (r#"{"lanes":[{"name":"a"}],"experiment":"../three_stream"}"#, "there is no experiment ../three_stream"),
            (
                r#"{"lanes":[{"name":"a"}],"experiment":"three_stream"}"#,
                "device: is missing. Give one of those in the experiment (ssd_a",
            ),
            (
                r#"{"lanes":[{"name":"a"}],"experiment":"three_stream","device":"/etc/passwd"}"#,
                "there is no device /etc/passwd",
            ),
            (r#"{"lanes":[{"name":"a"}],"experiment":"three_stream","device":"ssd_a"}"#, "lane a: has 9 runs"),
            (
                r#"{"lanes":[{"name":"a"}],"workload":{"name":"three_stream"}}"#,
                "device: is missing. Give a device for the workload",
            ),
            (
                r#"{"lanes":[{"name":"a"}],"workload":{"name":"/dev/zero"},"device":"ssd_a"}"#,
                "there is no workload /dev/zero",
            ),
            (r#"{"lanes":[{"name":"a"}],"workload":{"name":"a/b.fio","text":""},"device":"ssd_a"}"#, "workload, name"),
            (
                r#"{"lanes":[{"name":"a"}],"workload":{"name":"mine.fio","text":"[job]\nrw=wrote\n"},"device":"ssd_a"}"#,
                "mine.fio:2: in rw=wrote",
            ),
            (
                r#"{"lanes":[{"name":"a"}],"workload":{"name":"kvcache_202206"},"device":"ssd_a","scale":"1/512"}"#,
                "lane a: ",
            ),
            (
                r#"{"lanes":[{"name":"a","set":{"geometry.over_provisoning":0.2}}],"workload":{"name":"kvcache_202206"},"device":"ssd_a","scale":"1/512","drive_writes":1.0}"#,
                "over_provisoning",
            ),
            (
                r#"{"lanes":[{"name":"a","set":{"workload.files":["/dev/zero"]}}],"workload":{"name":"kvcache_202206"},"device":"ssd_a","drive_writes":1.0}"#,
                "set workload.files: names a file of this machine",
            ),
            (
                r#"{"lanes":[{"name":"a"}],"forks":[{"of":1,"name":"b","at_host_bytes":1}],"workload":{"name":"kvcache_202206"},"device":"ssd_a","drive_writes":1.0}"#,
                "b is a fork of lane 1",
            ),
            ("3", "order: is integer `3`, expected a table"),
            (r#"{"lanes":[{"name":"a","drive":-1}]}"#, "expected a whole number from 0 to 65535"),
            (
                r#"{"lanes":[{"name":"a"}],"workload":{"name":"kvcache_202206"},"device":"ssd_a","drive_writes":1.0,"scale":"half"}"#,
                "order: scale \"half\" is not of the form",
            ),
            (
                r#"{"lanes":[{"name":"a"}],"workload":{"name":"kvcache_202206"},"device":"ssd_a","drive_writes":-1.0,"scale":"1/512"}"#,
                "above 0 and at most 1000",
            ),
        ] {
            let refused = refusal(text);
            assert!(refused.contains(says), "{text}: {refused}");
        }
        for (array, says) in [
            ("raid5,drives=9", "an array of 9 drives needs as many lanes"),
            ("raid7,drives=3", "array: level"),
            ("raid1,drives=2,event=fail 1 at 1", "events do not work if each drive of the array runs alone"),
        ] {
            let text = format!(
                r#"{{"array":"{array}","lanes":[{{"name":"a"}}],"workload":{{"name":"kvcache_202206"}},"device":"ssd_a","scale":"1/512","drive_writes":1.0}}"#
            );
            let refused = refusal(&text);
            assert!(refused.contains(says), "{array}: {refused}");
        }
        let lanes: Vec<String> = (0..9).map(|lane| format!("{{\"name\":\"{lane}\"}}")).collect();
        let many = format!("{{\"experiment\":\"three_stream\",\"lanes\":[{}]}}", lanes.join(","));
        assert!(refusal(&many).contains("lanes: there are 9, but a session has at most 8"));
        let drives = format!(
            r#"{{"array":"raid5,drives=4","lanes":[{}],"workload":{{"name":"kvcache_202206"}},"device":"ssd_a","scale":"1/512","drive_writes":1.0}}"#,
            lanes[..3].join(",")
        );
        let refused = refusal(&drives);
        assert!(refused.contains("lanes: there are 12, one for each drive of an array"), "{refused}");
        let deep = format!("{{\"lanes\":[{{\"name\":\"a\",\"set\":{{\"x\":{}", "[".repeat(100_000));
        assert!(refusal(&deep).contains("recursion limit"));
    }
}
