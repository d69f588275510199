//! Experiments: which drives run which workload in which variants, how much they write, and what is claimed of it.
//!
//! `experiments/<slug>/experiment.toml` is read into an [`Experiment`]; [`Experiment::cells`] multiplies it out into
//! [`Cell`]s, each of which is one run. `docs/experiments.md` is the manual of the format.

use std::collections::BTreeMap;

use rust_embed::RustEmbed;
use serde::Deserialize;
use toml::Value;

use crate::cell::{Cell, CellKey, RunSettings};
use crate::claim::{Claim, Published};
use crate::coordinates::Coordinates;
use crate::error::LabError;
use crate::feedback;
use crate::find;
use crate::profile::{Overrides, Profile};
use workload::fio::{self, JobFile};
use workload::{Spec, WorkloadError};

#[derive(RustEmbed)]
#[folder = "../../experiments"]
#[include = "*/experiment.toml"]
struct BuiltIn;

#[derive(RustEmbed)]
#[folder = "../../jobs"]
#[include = "*.fio"]
struct BuiltInJobs;

#[derive(RustEmbed)]
#[folder = "../../workloads"]
#[include = "*.toml"]
struct BuiltInWorkloads;

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
    /// One line about it.
    pub title: String,
    /// The figure or table.
    pub source: String,
    /// What was chosen where the paper leaves it open and why; what differs from the paper and why.
    #[serde(default)]
    pub notes: String,
    /// Device profiles to run on.
    pub devices: Vec<String>,
    /// Workload that all cells share unless a variant or a grid value has another.
    #[serde(default)]
    pub workload: Option<WorkloadChoice>,
    /// How much to write and how to watch.
    pub run: RunSettings,
    /// Settings of the quick form, which tests run against golden results.
    pub quick: RunSettings,
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
    pub published: Vec<Published>,
    /// What has to hold.
    #[serde(default)]
    pub claims: Vec<Claim>,
}

/// Which workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum WorkloadChoice {
    /// A job file of `jobs/`, a workload of `workloads/`, or a path.
    Named(String),
    /// The workload itself: a `kind` and its settings.
    Table(toml::Table),
}

/// A change to a cell.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Device settings by dotted path.
    #[serde(default)]
    pub device: Overrides,
    /// fio options by job section; the section `global` means all jobs.
    #[serde(default)]
    pub jobs: BTreeMap<String, toml::Table>,
    /// Another workload.
    #[serde(default)]
    pub workload: Option<WorkloadChoice>,
    /// Settings of a workload with a `kind`, by dotted path.
    #[serde(default)]
    pub settings: Overrides,
    /// Another prefill, in multiples of the capacity.
    #[serde(default)]
    pub prefill_capacities: Option<f64>,
    /// Somebody who listens to what the drive reports and moves data accordingly.
    #[serde(default)]
    pub feedback: Option<feedback::Settings>,
}

/// A way to run the workload.
#[derive(Clone, Debug, Deserialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What it changes.
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

impl Experiment {
    /// Finds an experiment by the name of its folder, or by the path of its file.
    ///
    /// # Errors
    /// There is none, or its file is not one: names file and field.
    pub fn find(slug: &str) -> Result<Experiment, LabError> {
        let path = if slug.ends_with(".toml") {
            slug.to_string()
        } else {
            format!("{slug}/experiment")
        };
        let named = slug.ends_with(".toml") || std::path::Path::new(&format!("experiments/{path}.toml")).exists();
        let found = if named {
            let file = if slug.ends_with(".toml") {
                path
            } else {
                format!("experiments/{path}.toml")
            };
            find::find::<BuiltIn>("experiment", "experiments", &file, "toml")?
        } else {
            Experiment::built_in(slug)?
        };
        Experiment::parse(&found.file, &found.text)
    }

    fn built_in(slug: &str) -> Result<find::Found, LabError> {
        let names = Experiment::names();
        let file = BuiltIn::get(&format!("{slug}/experiment.toml"));
        let file = file.ok_or_else(|| LabError::Unknown {
            what: "experiment".to_string(),
            name: slug.to_string(),
            hint: base::hint(slug, names.iter().map(String::as_str)),
            known: names.join(", "),
        })?;
        Ok(find::Found {
            name: slug.to_string(),
            file: format!("experiments/{slug}/experiment.toml (built in)"),
            text: String::from_utf8_lossy(&file.data).into_owned(),
        })
    }

    /// Slugs of all experiments, in `./experiments` and built in.
    pub fn names() -> Vec<String> {
        let built_in = BuiltIn::iter().filter_map(|name| name.strip_suffix("/experiment.toml").map(str::to_string));
        let local = std::fs::read_dir("experiments").into_iter().flatten().flatten();
        let local = local.filter(|entry| entry.path().join("experiment.toml").exists());
        let local = local.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = built_in.chain(local).collect();
        names.sort();
        names.dedup();
        names
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
    pub fn from_table(file: &str, table: toml::Table) -> Result<Experiment, LabError> {
        let mut experiment: Experiment = find::deserialize(file, Value::Table(table))?;
        let mut folders = file.trim_end_matches(" (built in)").rsplit('/');
        experiment.slug = folders.nth(1).unwrap_or("experiment").to_string();
        experiment.file = file.to_string();
        experiment.check()?;
        Ok(experiment)
    }

    /// What serde cannot say.
    fn check(&mut self) -> Result<(), LabError> {
        let invalid = |problem: String| Err(LabError::invalid(&self.file, problem));
        if self.devices.is_empty() {
            return invalid("devices = []: name at least one device profile".to_string());
        }
        for (name, run) in [("run", &self.run), ("quick", &self.quick)] {
            run.check(name).or_else(invalid)?;
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
        claims
            .chain(published)
            .collect::<Result<(), String>>()
            .map_err(|problem| LabError::invalid(&self.file, problem))
    }

    /// Names and values of everything that distinguishes its cells.
    pub fn coordinates(&self) -> Coordinates {
        let names = |variants: &[Variant]| variants.iter().map(|variant| variant.name.clone()).collect();
        let grid = self.grid.iter().map(|axis| (axis.axis.clone(), names(&axis.values)));
        Coordinates::new(self.devices.clone(), names(&self.variants), grid.collect())
    }

    /// A workload on a device, as an experiment of one cell: it ends by itself, on the drive at full size.
    pub fn of_workload(workload: &str, device: &str) -> Experiment {
        let run = RunSettings::default();
        let name = std::path::Path::new(workload)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
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
            claims: Vec::new(),
        }
    }

    /// All runs, in the order devices, grid, variants, seeds; `overrides` change every device last, and those that begin with
    /// `workload.` every workload.
    ///
    /// # Errors
    /// A device, job file or override that does not fit: names file and field.
    pub fn cells(&self, run: &RunSettings, overrides: &Overrides) -> Result<Vec<Cell>, LabError> {
        self.cells_with(run, overrides, None)
    }

    /// As [`Experiment::cells`]; with `workload`, all cells run that one.
    ///
    /// # Errors
    /// As [`Experiment::cells`].
    pub fn cells_with(
        &self,
        run: &RunSettings,
        overrides: &Overrides,
        workload: Option<&WorkloadChoice>,
    ) -> Result<Vec<Cell>, LabError> {
        let mut last = Change {
            workload: workload.cloned(),
            ..Change::default()
        };
        for (path, value) in overrides {
            match path.strip_prefix("workload.") {
                Some(path) => last.settings.insert(path.to_string(), value.clone()),
                None => last.device.insert(path.clone(), value.clone()),
            };
        }
        let unchanged = [Variant {
            name: String::new(),
            change: Change::default(),
        }];
        let variants = if self.variants.is_empty() {
            &unchanged[..]
        } else {
            &self.variants
        };
        let mut cells = Vec::new();
        for device in &self.devices {
            let profile = Profile::find(device)?;
            for point in self.grid_points(run) {
                for variant in variants {
                    let changes = [&self.change]
                        .into_iter()
                        .chain(point.iter().map(|value| &value.change));
                    let changes: Vec<&Change> = changes.chain([&variant.change, &last]).collect();
                    let key = CellKey {
                        device: device.clone(),
                        variant: variant.name.clone(),
                        grid: point.iter().map(|value| value.name.clone()).collect(),
                    };
                    for &seed in &run.seeds {
                        cells.push(self.cell(key.clone(), &profile, &changes, run, seed)?);
                    }
                }
            }
        }
        Ok(cells)
    }

    /// Names of the grid axes.
    pub fn axes(&self) -> Vec<String> {
        self.grid.iter().map(|axis| axis.axis.clone()).collect()
    }

    /// Every combination of grid values.
    fn grid_points(&self, run: &RunSettings) -> Vec<Vec<&Variant>> {
        let kept = |value: &&Variant| run.only.is_empty() || run.only.contains(&value.name);
        let mut points = vec![Vec::new()];
        for axis in &self.grid {
            let any = axis.values.iter().any(|value| run.only.contains(&value.name));
            let values: Vec<&Variant> = axis.values.iter().filter(|value| !any || kept(value)).collect();
            let extend = |point: &Vec<_>| {
                values
                    .iter()
                    .map(|value| [point.as_slice(), &[*value]].concat())
                    .collect::<Vec<_>>()
            };
            points = points.iter().flat_map(extend).collect();
        }
        points
    }

    fn cell(
        &self,
        key: CellKey,
        profile: &Profile,
        changes: &[&Change],
        run: &RunSettings,
        seed: u64,
    ) -> Result<Cell, LabError> {
        let mut overrides = Overrides::new();
        let mut changes_of_work = WorkloadChanges::default();
        let mut workload = self.workload.as_ref();
        let mut run = run.clone();
        let mut feedback = None;
        for change in changes {
            feedback = change.feedback.as_ref().or(feedback);
            overrides.extend(change.device.clone());
            for (section, table) in &change.jobs {
                let option = |(name, value): (&String, &Value)| fio::Override {
                    section: section.clone(),
                    option: name.clone(),
                    value: plain(value),
                };
                changes_of_work.jobs.extend(table.iter().map(option));
            }
            changes_of_work.settings.extend(change.settings.clone());
            workload = change.workload.as_ref().or(workload);
            run.prefill_capacities = change.prefill_capacities.unwrap_or(run.prefill_capacities);
        }
        let workload =
            workload.ok_or_else(|| LabError::invalid(&self.file, "no workload: name one of jobs/ or workloads/"))?;
        if seed != 1 {
            // fio's own default seed, moved; seed 1 leaves the job file's streams as real fio draws them.
            let value = (fio::DEFAULT_SEED + seed).to_string();
            changes_of_work.jobs.push(fio::Override {
                section: "global".to_string(),
                option: "randseed".to_string(),
                value,
            });
        }
        let workload = match workload {
            WorkloadChoice::Named(name) => read_workload(name, &changes_of_work)?,
            WorkloadChoice::Table(table) => changes_of_work.parse(&self.file, table)?,
        };
        let mut device = profile.config(&overrides)?;
        device.seed = seed;
        match run.timed {
            Some(false) => device.timing = None,
            Some(true) if device.timing.is_none() => {
                let problem = format!("timed = true, but device {} has no [timing]", key.device);
                return Err(LabError::invalid(&self.file, problem));
            }
            _ => {}
        }
        Ok(Cell {
            key,
            seed,
            device,
            workload,
            run,
            feedback: feedback.cloned(),
        })
    }
}

/// Finds and reads a job file, with changed options.
///
/// # Errors
/// There is none, or a line of it (or a change) is wrong.
pub fn read_jobs(name: &str, changes: &[fio::Override]) -> Result<JobFile, LabError> {
    let found = find::find::<BuiltInJobs>("job file", "jobs", name, "fio")?;
    Ok(fio::parse_with(&found.text, &found.file, changes)?)
}

/// Changes to a workload.
#[derive(Clone, Debug, Default)]
pub struct WorkloadChanges {
    /// Options of a job file.
    pub jobs: Vec<fio::Override>,
    /// Settings by dotted path: of a workload with a `kind`; of a job file, options as `SECTION.OPTION`.
    pub settings: Overrides,
}

impl WorkloadChanges {
    /// Changes a workload's table and reads it.
    fn parse(&self, file: &str, table: &toml::Table) -> Result<Spec, LabError> {
        let mut table = table.clone();
        for (path, value) in &self.settings {
            find::insert(&mut table, path, value.clone())
                .map_err(|problem| LabError::invalid(file, format!("workload.{path}: {problem}")))?;
        }
        // Sections of the job files of tenants are not known here; what all jobs share is.
        let common = self.jobs.iter().filter(|option| option.section == "global");
        let common: Vec<fio::Override> = common.cloned().collect();
        let find_jobs = |name: &str| {
            read_jobs(name, &common).map_err(|error| match error {
                LabError::Job(error) => error.into(),
                other => WorkloadError::setting(format!("file = \"{name}\""), other.to_string()),
            })
        };
        Spec::parse("workload", &table, &find_jobs).map_err(|error| LabError::invalid(file, error.to_string()))
    }
}

/// Finds and reads a workload: a job file (`*.fio`, or a name in `jobs/`), a workload (`*.toml`, or a name in `workloads/`), or
/// a block trace by its path.
///
/// # Errors
/// There is none, or something in it (or a change) is wrong.
pub fn read_workload(name: &str, changes: &WorkloadChanges) -> Result<Spec, LabError> {
    let is_table = name.ends_with(".toml") || workload_names().iter().any(|known| known == name);
    if is_table {
        let found = find::find::<BuiltInWorkloads>("workload", "workloads", name, "toml")?;
        let table: toml::Table =
            toml::from_str(&found.text).map_err(|error| LabError::invalid(&found.file, find::toml_problem(&error)))?;
        return changes.parse(&found.file, &table);
    }
    if is_trace(name) {
        let table = toml::Table::from_iter([
            ("kind".to_string(), Value::from("trace")),
            ("files".to_string(), Value::from(vec![name.to_string()])),
        ]);
        return changes.parse(name, &table);
    }
    let mut options = changes.jobs.clone();
    for (path, value) in &changes.settings {
        let (section, option) = path.split_once('.').ok_or_else(|| {
            let problem = format!("workload.{path}: a setting of a job file is SECTION.OPTION, such as global.bs");
            LabError::invalid(name, problem)
        })?;
        options.push(fio::Override {
            section: section.to_string(),
            option: option.to_string(),
            value: plain(value),
        });
    }
    Ok(read_jobs(name, &options)?.into())
}

/// Whether a name is that of a workload and not of an experiment: a job file, a table with a `kind`, a block trace.
pub fn is_workload(name: &str) -> bool {
    let named = || {
        let names = [job_names(), workload_names()].concat();
        names.iter().any(|known| known == name) && !Experiment::names().iter().any(|known| known == name)
    };
    let has_kind = || {
        let text = std::fs::read_to_string(name).unwrap_or_default();
        toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("kind"))
    };
    name.ends_with(".fio") || is_trace(name) || (name.ends_with(".toml") && has_kind()) || named()
}

/// Whether a name is the path of a block trace: an existing file that is neither a job file nor a table.
fn is_trace(name: &str) -> bool {
    let path = std::path::Path::new(name);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    !matches!(ending, "fio" | "toml") && path.is_file()
}

/// Names of the workloads in `./workloads` and built in.
pub fn workload_names() -> Vec<String> {
    find::names::<BuiltInWorkloads>("workloads", "toml")
}

/// Names of the job files in `./jobs` and built in.
pub fn job_names() -> Vec<String> {
    find::names::<BuiltInJobs>("jobs", "fio")
}

/// A TOML value as fio or a table heading would write it: strings without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
