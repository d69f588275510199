//! Experiments: drives, workload, variants, amounts to write, and claims about the results.
//!
//! [`Experiment`] represents `experiments/<slug>/experiment.toml`. [`Experiment::select`] expands
//! it into [`crate::cell::RunSpec`]s, each of which is one run. `docs/reference/experiments.md` is
//! the manual of the format.

mod cells;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::Value;

use crate::cell::CellKey;
use crate::claim::{Claim, LedgerEntry, PaperFigures, PredictedCells};
use crate::coordinates::ExperimentAxes;
use crate::ensemble::Ensemble;
use crate::error::LabError;
use crate::find;
use crate::folders::{self, FILE};
use crate::profile::Profile;
use crate::run_options::RunOptions;
use crate::scaled_model::ScaleChoice;
use crate::workloads::{self, WorkloadChoice, plain};

use crate::change::SettingOverrides;

pub use crate::change::RunChange;
pub use crate::folders::BuiltInExperiment;
pub(crate) use cells::SavedDevice;

/// Suffix of the path of a built-in file.
const BUILT_IN: &str = " (built in)";

/// A published figure or table: runs and results of the paper.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Experiment {
    #[serde(skip)]
    pub slug: String,
    #[serde(skip)]
    pub file: String,
    /// Title in one line. Default: the name of the folder.
    pub title: String,
    /// The figure or table. Empty for an original study.
    pub source: String,
    /// Choices where the paper is open, differences from the paper, and the reasons for both.
    pub notes: String,
    /// Device profiles: names or paths, also of files beside the experiment's.
    pub devices: Vec<String>,
    /// Workload of all cells, unless a variant or grid value has another.
    pub workload: Option<WorkloadChoice>,
    pub run: RunOptions,
    /// Options of the quick form, which tests run against golden results.
    pub quick: RunOptions,
    pub change: RunChange,
    /// Array of the devices, on which all cells run. Variants and grid values change its settings.
    pub array: SettingOverrides,
    /// Changes of the cells on one of the `devices`, after `change`.
    pub change_on: BTreeMap<String, RunChange>,
    /// Variants of the workload (NoFDP, FDP, ...), at least one, in file order.
    pub variants: Vec<Variant>,
    /// Further axes. Every combination is run.
    pub grid: Vec<GridAxis>,
    pub published: Vec<PaperFigures>,
    /// Predictions to list among them, without published numbers.
    pub predicted: Vec<PredictedCells>,
    /// Runs only the cells of `published` and `predicted`.
    pub published_only: bool,
    pub claims: Vec<Claim>,
    /// Bounds round our own results. Like claims they must hold, but they are no statements about
    /// drives.
    pub regression: Vec<Claim>,
    /// Rules that were loosened or removed.
    pub ledger: Vec<LedgerEntry>,
    /// Alternative settings of device and workload that explain the published numbers equally well,
    /// where the paper is open.
    #[serde(skip)]
    pub ensemble: Option<Ensemble>,
}

/// A way to run the workload.
#[derive(Clone, Debug, Deserialize)]
pub struct Variant {
    pub name: String,
    #[serde(flatten)]
    pub change: RunChange,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridAxis {
    pub axis: String,
    /// Device setting that takes each of the `over` values, a short form of `values`.
    pub sweep: Option<String>,
    #[serde(default)]
    pub over: Vec<Value>,
    /// Named values with their changes.
    #[serde(default)]
    pub values: Vec<Variant>,
}

/// Adds the defaults of an experiment file to its table. `quick` defaults to `run`. Virtual time is
/// slow, so a file must request it. Untimed runs search for a scale. Timed runs use the full-size
/// drive, because latencies cannot compare models.
fn say_what_is_left_out(table: &mut toml::Table) {
    let run = table.entry("run").or_insert_with(|| toml::Table::new().into()).clone();
    table.entry("quick").or_insert(run);
    for form in ["run", "quick"] {
        let Some(settings) = table.get_mut(form).and_then(Value::as_table_mut) else {
            continue;
        };
        let is_timed = settings.get("timed").and_then(Value::as_bool) == Some(true) || settings.contains_key("replay");
        let scale = if is_timed { ScaleChoice::FULL } else { ScaleChoice::AUTO };
        settings.entry("scale").or_insert_with(|| scale.to_string().into());
        settings.entry("timed").or_insert_with(|| is_timed.into());
    }
}

/// Error for a name of neither an experiment nor a workload.
fn unknown_name_error(name: &str) -> LabError {
    if Profile::names().iter().any(|known| known == name) {
        let problem = format!(
            "this is a device, not an experiment or a workload. Use `warp run WORKLOAD --device {name}` \
                     (`warp list workloads`)"
        );
        return LabError::invalid(name, problem);
    }
    let names = [folders::names(), workloads::names()].concat();
    LabError::unknown("experiment or workload", name, names.iter().map(String::as_str))
}

impl Experiment {
    /// Finds an experiment by path of its file or folder, by name of a folder in `./experiments` or
    /// in the working folder, or built in.
    ///
    /// # Errors
    /// No such experiment exists, or its file is invalid. The error names file and field.
    pub fn find(name: &str) -> Result<Experiment, LabError> {
        let found = Experiment::text(name)?;
        Experiment::parse(&found.file, &found.text)
    }

    /// Text of an experiment, found as by [`Experiment::find`].
    ///
    /// # Errors
    /// No such experiment exists, or it is unreadable.
    pub fn text(name: &str) -> Result<find::TextFile, LabError> {
        match Experiment::file_of(name) {
            Some(file) => find::find::<BuiltInExperiment>("experiment", "experiments", &file, "toml"),
            None => Experiment::built_in(name),
        }
    }

    /// Returns the file that a name denotes. `None` if it can only be built in.
    fn file_of(name: &str) -> Option<String> {
        if name.ends_with(".toml") {
            return Some(name.to_string());
        }
        let folder = name.trim_end_matches('/');
        // A wrong path is not searched in other places.
        let there = || name.contains('/').then(|| format!("{folder}/{FILE}"));
        folders::file_in(name).or_else(there)
    }

    fn built_in(slug: &str) -> Result<find::TextFile, LabError> {
        let names = folders::names();
        let file = BuiltInExperiment::get(&format!("{slug}/{FILE}"));
        let file = file.ok_or_else(|| LabError::unknown("experiment", slug, names.iter().map(String::as_str)))?;
        Ok(find::TextFile {
            name: slug.to_string(),
            file: format!("experiments/{slug}/{FILE}{BUILT_IN}"),
            text: String::from_utf8_lossy(&file.data).into_owned(),
        })
    }

    pub fn names() -> Vec<String> {
        folders::names()
    }

    /// Folders in the working folder that contain a user's experiment.
    pub fn names_here() -> Vec<String> {
        let here = std::fs::read_dir(".").into_iter().flatten().flatten();
        let studies = here.filter(|entry| entry.path().join(FILE).is_file());
        let mut names: Vec<String> = studies.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    pub fn is_built_in(&self) -> bool {
        BuiltInExperiment::get(&format!("{}/{FILE}", self.slug)).is_some()
    }

    /// Reads an experiment from text. `file` is its path. The folder's name is the slug.
    pub fn parse(file: &str, text: &str) -> Result<Experiment, LabError> {
        let table = toml::from_str(text).map_err(|error| LabError::invalid(file, find::toml_problem(&error)))?;
        Experiment::from_table(file, table)
    }

    /// Reads an experiment from the table of its file. `file` is as for [`Experiment::parse`].
    pub fn from_table(file: &str, mut table: toml::Table) -> Result<Experiment, LabError> {
        if table.is_empty() {
            let problem = "the file is empty. An experiment begins with devices = [...] (`warp new`), a workload with kind = \
                 \"...\"";
            return Err(LabError::invalid(file, problem));
        }
        let is_one_workload = table.len() == 1 && table.get("workload").is_some_and(Value::is_table);
        if is_one_workload {
            let problem = "all keys are in [workload]. A workload file has them at the top. Remove the line \
                           [workload], or give devices = [...] beside it for an experiment";
            return Err(LabError::invalid(file, problem));
        }
        let ensemble = Ensemble::take(file, &mut table)?;
        say_what_is_left_out(&mut table);
        let has_devices = table.contains_key("devices");
        let mut experiment: Experiment = find::deserialize(file, Value::Table(table))?;
        if !has_devices {
            return Err(LabError::invalid(file, "devices is missing. Give a list, such as devices = [\"ssd_a\"]"));
        }
        let mut folders = file.trim_end_matches(BUILT_IN).rsplit('/');
        let folder = folders.nth(1).filter(|folder| !matches!(*folder, "." | ".."));
        experiment.slug = folder.unwrap_or("experiment").to_string();
        experiment.file = file.to_string();
        experiment.ensemble = ensemble;
        if experiment.title.is_empty() {
            experiment.title.clone_from(&experiment.slug);
        }
        experiment.check()?;
        Ok(experiment)
    }

    /// Path or name of a device or workload. A file beside the experiment's has priority.
    pub(crate) fn resolve_name(&self, name: &str) -> String {
        let folder = Path::new(&self.file).parent().filter(|_| !self.file.ends_with(BUILT_IN));
        let is_file = Path::new(name).extension().is_some();
        let path = folder.filter(|_| is_file).map(|folder| folder.join(name));
        let path = path.filter(|path| path.is_file());
        path.map_or_else(|| name.to_string(), |path| path.display().to_string())
    }

    /// Checks constraints beyond serde.
    fn check(&mut self) -> Result<(), LabError> {
        let invalid = |problem: String| Err(LabError::invalid(&self.file, problem));
        if self.devices.is_empty() {
            return invalid("devices is empty. Name at least one device profile".to_string());
        }
        if let Some(device) = self.change_on.keys().find(|name| !self.devices.contains(*name)) {
            let devices = self.devices.join(", ");
            return invalid(format!("change_on.{device}: devices does not list it. Name one of {devices}"));
        }
        if self.published_only && self.published.is_empty() && self.predicted.is_empty() {
            let problem =
                "published_only leaves no cell. Add a table [[published]] or [[predicted]], or remove the key";
            return invalid(problem.to_string());
        }
        for (name, run) in [("run", &self.run), ("quick", &self.quick)] {
            if let Err(problem) = run.resolve() {
                return invalid(format!("{name}: {problem}"));
            }
        }
        for axis in &mut self.grid {
            if axis.sweep.is_some() == axis.over.is_empty() || axis.over.is_empty() == axis.values.is_empty() {
                let problem =
                    format!("grid axis {} needs either the key values, or the keys sweep and over", axis.axis);
                return Err(LabError::invalid(&self.file, problem));
            }
            if let Some(path) = &axis.sweep {
                let value = |value: &Value| {
                    let change = RunChange::from_settings(&[(path.clone(), value.clone())].into_iter().collect());
                    Variant { name: plain(value), change }
                };
                axis.values = axis.over.iter().map(value).collect();
            }
        }
        let coordinates = self.coordinates();
        let rules = self.claims.iter().chain(&self.regression);
        let claims = rules.map(|claim| claim.check(&coordinates));
        let published = self.published.iter().map(|row| row.check(&coordinates));
        let predicted = self.predicted.iter().map(|row| row.check(&coordinates));
        claims
            .chain(published)
            .chain(predicted)
            .chain(self.ledger.iter().map(LedgerEntry::check))
            .collect::<Result<(), String>>()
            .map_err(|problem| LabError::invalid(&self.file, problem))
    }

    /// Names and values of all coordinates of the cells.
    pub fn coordinates(&self) -> ExperimentAxes {
        let names = |variants: &[Variant]| variants.iter().map(|variant| variant.name.clone()).collect();
        let grid = self.grid.iter().map(|axis| (axis.axis.clone(), names(&axis.values)));
        ExperimentAxes::new(self.devices.clone(), names(&self.variants), grid.collect())
    }

    /// Finds an experiment by name. Otherwise wraps a workload of this name (a job file, a table
    /// with a `kind`, a block trace) on `device` as an experiment of one cell.
    ///
    /// # Errors
    /// As [`Experiment::find`], or the workload lacks a device.
    pub fn find_or_workload(name: &str, device: Option<&str>) -> Result<Experiment, LabError> {
        if !Experiment::is_workload(name) {
            find::check_path(name)?;
            return Experiment::find(name).map_err(|error| match error {
                LabError::Unknown { .. } => unknown_name_error(name),
                error => error,
            });
        }
        let device = device.ok_or_else(|| {
            let problem = "a workload needs a device. Choose one with --device NAME (`warp list devices` lists them)";
            LabError::invalid(name, problem)
        })?;
        Ok(Experiment::from_workload(name, device))
    }

    /// Returns true if a name denotes a workload and no experiment.
    pub fn is_workload(name: &str) -> bool {
        let is_name_of = |names: Vec<String>| names.iter().any(|known| known == name);
        workloads::is_workload_file(name) || (is_name_of(workloads::names()) && !is_name_of(folders::names()))
    }

    /// Wraps a workload on a device as an experiment of one cell. The run ends with the workload,
    /// on the full-size drive.
    pub fn from_workload(workload: &str, device: &str) -> Experiment {
        let name = workloads::label(workload);
        Experiment {
            slug: name.clone(),
            file: workload.to_string(),
            title: format!("{name} on {device}"),
            devices: vec![device.to_string()],
            workload: Some(WorkloadChoice::Named(workload.to_string())),
            ..Experiment::default()
        }
    }

    /// Returns true if `published` or `predicted` has a number of this cell.
    fn is_listed(&self, coordinates: &ExperimentAxes, key: &CellKey) -> bool {
        let published = self.published.iter().map(|row| &row.at);
        let mut rows = published.chain(self.predicted.iter().map(|row| &row.at));
        rows.any(|at| coordinates.selects(at, key))
    }

    pub fn axes(&self) -> Vec<String> {
        self.grid.iter().map(|axis| axis.axis.clone()).collect()
    }
}
