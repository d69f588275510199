//! Experiments: which drives run which workload in which variants, how much they write, and what is claimed of it.
//!
//! `experiments/<slug>/experiment.toml` is read into an [`Experiment`]; [`Experiment::select`] multiplies it out into
//! [`crate::cell::Cell`]s, each of which is one run. `docs/experiments.md` is the manual of the format.

mod cells;

use std::path::Path;

use serde::Deserialize;
use toml::Value;

use crate::claim::{Claim, PaperFigures, Predicted};
use crate::coordinates::Coordinates;
use crate::ensemble::Ensemble;
use crate::error::LabError;
use crate::find;
use crate::folders::{self, FILE};
use crate::profile::Profile;
use crate::run_options::RunOptions;
use crate::twin::ScaleChoice;
use crate::workloads::{self, WorkloadChoice, plain};

pub use crate::change::Change;
pub use crate::folders::BuiltIn;
pub(crate) use cells::SavedDevice;

/// How the place of a file ends that is in the program.
const BUILT_IN: &str = " (built in)";

/// A published figure or table: what to run and what the paper says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of its folder.
    #[serde(skip)]
    pub slug: String,
    /// Where it was read.
    #[serde(skip)]
    pub file: String,
    /// One line about it; left out, the name of its folder.
    #[serde(default)]
    pub title: String,
    /// The figure or table; nothing, of a study of one's own.
    #[serde(default)]
    pub source: String,
    /// What was chosen where the paper leaves it open and why; what differs from the paper and why.
    #[serde(default)]
    pub notes: String,
    /// Device profiles to run on: names, or paths, also of files that lie beside its own.
    pub devices: Vec<String>,
    /// Workload that all cells share unless a variant or a grid value has another.
    #[serde(default)]
    pub workload: Option<WorkloadChoice>,
    pub run: RunOptions,
    /// Options of the quick form, which tests run against golden results.
    pub quick: RunOptions,
    /// Changes common to all cells.
    #[serde(default)]
    pub change: Change,
    /// Ways to run the workload (NoFDP, FDP, ...); at least one, in the order of the file.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// What else is varied; every combination is run.
    #[serde(default)]
    pub grid: Vec<Axis>,
    /// Numbers to compare with.
    #[serde(default)]
    pub published: Vec<PaperFigures>,
    /// What to put among them that nobody has published.
    #[serde(default)]
    pub predicted: Vec<Predicted>,
    /// What has to hold.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Other settings of device and workload that explain what is published as well: what the paper leaves open.
    #[serde(skip)]
    pub ensemble: Option<Ensemble>,
}

/// A way to run the workload.
#[derive(Clone, Debug, Deserialize)]
pub struct Variant {
    pub name: String,
    #[serde(flatten)]
    pub change: Change,
}

/// Something that is varied.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What it is called.
    pub axis: String,
    /// Device setting that takes each of the `over` values: a short form of `values`.
    #[serde(default)]
    pub sweep: Option<String>,
    /// Values of `sweep`.
    #[serde(default)]
    pub over: Vec<Value>,
    /// Named values with the changes that they make.
    #[serde(default)]
    pub values: Vec<Variant>,
}

/// Says in a file's table what it leaves out and what has another default there: `[run]`, `[quick]`, which is then as
/// `[run]`, their times and their scales. Virtual time takes longer, so a file asks for it. Without a clock a scale is searched for;
/// latencies cannot tell twins apart, so in virtual time the drive itself runs.
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

/// A name that is neither an experiment's nor a workload's.
fn neither(name: &str) -> LabError {
    if Profile::names().iter().any(|known| known == name) {
        let problem =
            format!("is a device; name what to run on it: warp run WORKLOAD --device {name} (`warp list workloads`)");
        return LabError::invalid(name, problem);
    }
    let names = [folders::names(), workloads::job_names(), workloads::workload_names()].concat();
    LabError::unknown("experiment or workload", name, names.iter().map(String::as_str))
}

impl Experiment {
    /// Finds an experiment by the path of its file or folder; by the name of a folder in `./experiments` or here; or
    /// built in.
    ///
    /// # Errors
    /// There is none, or its file is not one: names file and field.
    pub fn find(name: &str) -> Result<Experiment, LabError> {
        let found = Experiment::text(name)?;
        Experiment::parse(&found.file, &found.text)
    }

    /// The text of an experiment, found as by [`Experiment::find`].
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn text(name: &str) -> Result<find::TextFile, LabError> {
        match Experiment::file_of(name) {
            Some(file) => find::find::<BuiltIn>("experiment", "experiments", &file, "toml"),
            None => Experiment::built_in(name),
        }
    }

    /// The file that a name means, if it means one that is not built in.
    fn file_of(name: &str) -> Option<String> {
        if name.ends_with(".toml") {
            return Some(name.to_string());
        }
        let folder = name.trim_end_matches('/');
        // A path that leads nowhere is looked for there, and nowhere else.
        let there = || name.contains('/').then(|| format!("{folder}/{FILE}"));
        folders::file_in(name).or_else(there)
    }

    fn built_in(slug: &str) -> Result<find::TextFile, LabError> {
        let names = folders::names();
        let file = BuiltIn::get(&format!("{slug}/{FILE}"));
        let file = file.ok_or_else(|| LabError::unknown("experiment", slug, names.iter().map(String::as_str)))?;
        Ok(find::TextFile {
            name: slug.to_string(),
            file: format!("experiments/{slug}/{FILE}{BUILT_IN}"),
            text: String::from_utf8_lossy(&file.data).into_owned(),
        })
    }

    /// Slugs of all experiments, in `./experiments` and built in.
    pub fn names() -> Vec<String> {
        folders::names()
    }

    /// Folders here that hold an experiment of one's own.
    pub fn names_here() -> Vec<String> {
        folders::names_here()
    }

    /// Whether it is one of the project's.
    pub fn is_built_in(&self) -> bool {
        BuiltIn::get(&format!("{}/{FILE}", self.slug)).is_some()
    }

    /// Reads an experiment from text. `file` is its path; the folder's name is the slug.
    ///
    /// # Errors
    /// As [`Experiment::find`].
    pub fn parse(file: &str, text: &str) -> Result<Experiment, LabError> {
        let table = toml::from_str(text).map_err(|error| LabError::invalid(file, find::toml_problem(&error)))?;
        Experiment::from_table(file, table)
    }

    /// Reads an experiment from a table as it stands in a file; `file` as for [`Experiment::parse`].
    ///
    /// # Errors
    /// As [`Experiment::find`].
    pub fn from_table(file: &str, mut table: toml::Table) -> Result<Experiment, LabError> {
        if table.is_empty() {
            let problem =
                "is empty; an experiment begins with devices = [...] (`warp new`), a workload with kind = \"...\"";
            return Err(LabError::invalid(file, problem));
        }
        let is_one_workload = table.len() == 1 && table.get("workload").is_some_and(Value::is_table);
        if is_one_workload {
            let problem = "has all its keys in [workload]; a workload file has them at the top, so remove the line [workload]. An \
                           experiment has devices = [...] beside it";
            return Err(LabError::invalid(file, problem));
        }
        let ensemble = Ensemble::take(file, &mut table)?;
        say_what_is_left_out(&mut table);
        let mut experiment: Experiment = find::deserialize(file, Value::Table(table))?;
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

    /// What a device or a workload of the experiment is called: a file that lies beside its own is meant by its name.
    pub(crate) fn beside(&self, name: &str) -> String {
        let folder = Path::new(&self.file)
            .parent()
            .filter(|_| !self.file.ends_with(BUILT_IN));
        let is_file = Path::new(name).extension().is_some();
        let path = folder.filter(|_| is_file).map(|folder| folder.join(name));
        let path = path.filter(|path| path.is_file());
        path.map_or_else(|| name.to_string(), |path| path.display().to_string())
    }

    /// What serde cannot say.
    fn check(&mut self) -> Result<(), LabError> {
        let invalid = |problem: String| Err(LabError::invalid(&self.file, problem));
        if self.devices.is_empty() {
            return invalid("devices = []: name at least one device profile".to_string());
        }
        for (name, run) in [("run", &self.run), ("quick", &self.quick)] {
            if let Err(problem) = run.resolve() {
                return invalid(format!("{name}: {problem}"));
            }
        }
        for axis in &mut self.grid {
            if axis.sweep.is_some() == axis.over.is_empty() || axis.over.is_empty() == axis.values.is_empty() {
                let problem = format!("grid axis {}: give either values, or sweep with over", axis.axis);
                return Err(LabError::invalid(&self.file, problem));
            }
            if let Some(path) = &axis.sweep {
                let value = |value: &Value| {
                    let change = Change {
                        device: [(path.clone(), value.clone())].into_iter().collect(),
                        ..Change::default()
                    };
                    Variant {
                        name: plain(value),
                        change,
                    }
                };
                axis.values = axis.over.iter().map(value).collect();
            }
        }
        let coordinates = self.coordinates();
        let claims = self.claims.iter().map(|claim| claim.check(&coordinates));
        let published = self.published.iter().map(|row| row.check(&coordinates));
        let predicted = self.predicted.iter().map(|row| row.check(&coordinates));
        claims
            .chain(published)
            .chain(predicted)
            .collect::<Result<(), String>>()
            .map_err(|problem| LabError::invalid(&self.file, problem))
    }

    /// Names and values of everything that distinguishes its cells.
    pub fn coordinates(&self) -> Coordinates {
        let names = |variants: &[Variant]| variants.iter().map(|variant| variant.name.clone()).collect();
        let grid = self.grid.iter().map(|axis| (axis.axis.clone(), names(&axis.values)));
        Coordinates::new(self.devices.clone(), names(&self.variants), grid.collect())
    }

    /// The experiment of this name; or the workload of this name (a job file, a table with a `kind`, a block trace) on
    /// a device, as an experiment of one cell.
    ///
    /// # Errors
    /// As [`Experiment::find`], or there is no device for the workload.
    pub fn find_or_workload(name: &str, device: Option<&str>) -> Result<Experiment, LabError> {
        if !Experiment::is_workload(name) {
            find::check_path(name)?;
            return Experiment::find(name).map_err(|error| match error {
                LabError::Unknown { .. } => neither(name),
                error => error,
            });
        }
        let device = device.ok_or_else(|| {
            let problem = "a workload needs a device; give --device NAME (`warp devices` lists them)";
            LabError::invalid(name, problem)
        })?;
        Ok(Experiment::of_workload(name, device))
    }

    /// Whether a name is a workload's and no experiment's.
    pub fn is_workload(name: &str) -> bool {
        let is_name_of = |names: Vec<String>| names.iter().any(|known| known == name);
        let names = || [workloads::job_names(), workloads::workload_names()].concat();
        workloads::is_workload_file(name) || (is_name_of(names()) && !is_name_of(folders::names()))
    }

    /// A workload on a device, as an experiment of one cell: it ends by itself, on the drive at full size.
    pub fn of_workload(workload: &str, device: &str) -> Experiment {
        let run = RunOptions {
            scale: Some(ScaleChoice::FULL),
            ..RunOptions::default()
        };
        let name = workloads::label(workload);
        Experiment {
            slug: name.clone(),
            file: workload.to_string(),
            title: format!("{name} on {device}"),
            source: String::new(),
            notes: String::new(),
            devices: vec![device.to_string()],
            workload: Some(WorkloadChoice::Named(workload.to_string())),
            quick: run.clone(),
            run,
            change: Change::default(),
            variants: Vec::new(),
            grid: Vec::new(),
            published: Vec::new(),
            predicted: Vec::new(),
            claims: Vec::new(),
            ensemble: None,
        }
    }

    /// Names of the grid axes.
    pub fn axes(&self) -> Vec<String> {
        self.grid.iter().map(|axis| axis.axis.clone()).collect()
    }
}
