//! Expansion of an experiment into its cells.

use std::path::{Path, PathBuf};

use ssd::{Device, DeviceConfig, DeviceLayout};
use toml::Value;
use workload::fio;

use super::{Experiment, Variant};
use crate::cell::{CellKey, EnsemblePart, RunSpec};
use crate::change::{RunChange, SettingOverrides};
use crate::error::LabError;
use crate::find;
use crate::profile::Profile;
use crate::run_options::RunSettings;
use crate::scaled_model::{Scale, ScaledOrigin};
use crate::workloads::{WorkloadChanges, WorkloadChoice, plain, read_workload};

/// A saved device from which a run continues.
#[derive(Clone, Debug)]
pub(crate) struct SavedDevice {
    path: PathBuf,
    /// The full-size device and the scale of the saved one.
    pub(crate) origin: ScaledOrigin,
}

impl SavedDevice {
    /// Reads the description of a snapshot's device.
    pub(crate) fn find(path: &Path) -> Result<SavedDevice, LabError> {
        let (config, note) = Device::read_header(path)?;
        let origin = if note.is_empty() {
            // A served drive, or a device that is no scaled model.
            ScaledOrigin { scale: Scale::FULL, device: config }
        } else {
            ScaledOrigin::from_note(&note).ok_or_else(|| {
                let problem =
                    "this snapshot of a scaled model is from an incompatible version. Create it again with --save-snapshot";
                LabError::invalid(&path.display().to_string(), problem)
            })?
        };
        Ok(SavedDevice { path: path.to_path_buf(), origin })
    }
}

enum DeviceOrigin<'a> {
    Profile(Box<Profile>),
    Saved(&'a SavedDevice),
}

impl DeviceOrigin<'_> {
    fn config(&self, overrides: &SettingOverrides) -> Result<DeviceConfig, LabError> {
        match self {
            DeviceOrigin::Profile(profile) => profile.config(overrides),
            DeviceOrigin::Saved(saved) => match overrides.keys().next() {
                None => Ok(saved.origin.device.clone()),
                Some(path) => {
                    let problem = format!(
                        "{path} cannot be changed, because the snapshot fixes the device. Leave the setting out"
                    );
                    Err(LabError::invalid(&saved.path.display().to_string(), problem))
                }
            },
        }
    }

    fn snapshot(&self) -> Option<&PathBuf> {
        match self {
            DeviceOrigin::Profile(_) => None,
            DeviceOrigin::Saved(saved) => Some(&saved.path),
        }
    }
}

/// A device of the experiment or of an ensemble member, with the member's other changes.
struct StartDevice<'a> {
    device: String,
    origin: DeviceOrigin<'a>,
    part: Option<EnsemblePart>,
    /// Changes of a member of the experiment's own ensemble.
    change: RunChange,
    place: Option<String>,
}

impl<'a> StartDevice<'a> {
    fn new(device: &str, origin: DeviceOrigin<'a>, part: Option<EnsemblePart>) -> StartDevice<'a> {
        StartDevice { device: device.to_string(), origin, part, change: RunChange::default(), place: None }
    }

    /// Checks a cell of an ensemble member of the experiment. Other cells are checked during
    /// planning.
    fn checked(&self, cell: RunSpec) -> Result<RunSpec, LabError> {
        if self.place.is_some() {
            let mut config = cell.device.clone();
            // Timed members are checked with timing in their own run.
            config.timing = None;
            DeviceLayout::new(&config).map_err(|error| LabError::Device { device: self.device.clone(), error })?;
        }
        Ok(cell)
    }

    fn placed(&self, error: LabError) -> LabError {
        match &self.place {
            Some(place) => LabError::invalid(place, error.to_string()),
            None => error,
        }
    }
}

/// Returns true if two cells of an ensemble are the same run.
fn is_same_run(one: &RunSpec, other: &RunSpec) -> bool {
    let workload = |cell: &RunSpec| serde_json::to_string(&cell.workload).expect("a workload is JSON");
    one.key == other.key && one.seed == other.seed && one.device == other.device && workload(one) == workload(other)
}

impl Experiment {
    /// All runs, in the order devices, grid, variants, seeds. `last` changes each run last. With
    /// `uncertainty`, the runs of ensemble members follow those of each profile. They come from the
    /// experiment's ensemble or, if it has none, from the profile's.
    pub(crate) fn cells(
        &self,
        run: &RunSettings,
        last: &RunChange,
        saved: Option<&SavedDevice>,
        uncertainty: bool,
    ) -> Result<Vec<RunSpec>, LabError> {
        let unchanged = [Variant { name: String::new(), change: RunChange::default() }];
        let variants = if self.variants.is_empty() { &unchanged[..] } else { &self.variants };
        let coordinates = self.coordinates();
        let mut cells: Vec<RunSpec> = Vec::new();
        for start in self.starts(saved, uncertainty)? {
            for point in self.grid_points(run) {
                for variant in variants {
                    // Grid and variants override the common settings of a member.
                    let changes = [&self.change]
                        .into_iter()
                        .chain(self.change_on.get(&start.device))
                        .chain([&start.change])
                        .chain(point.iter().map(|value| &value.change));
                    let changes: Vec<&RunChange> = changes.chain([&variant.change, last]).collect();
                    let key = CellKey {
                        device: start.device.clone(),
                        variant: variant.name.clone(),
                        grid: point.iter().map(|value| value.name.clone()).collect(),
                    };
                    if self.published_only && !self.is_listed(&coordinates, &key) {
                        continue;
                    }
                    for &seed in &run.seeds {
                        let cell = self.cell(key.clone(), &start.origin, &changes, run, seed);
                        let cell = cell.and_then(|cell| start.checked(cell)).map_err(|error| start.placed(error))?;
                        let ensemble = start.part;
                        let cell = RunSpec { ensemble, ..cell };
                        // Changes can make members equal.
                        let is_known = ensemble.is_some() && cells.iter().any(|known| is_same_run(known, &cell));
                        cells.extend((!is_known).then_some(cell));
                    }
                }
            }
        }
        Ok(cells)
    }

    /// Starting points of cells in order: the saved device, or the profiles with their members.
    fn starts<'a>(&self, saved: Option<&'a SavedDevice>, uncertainty: bool) -> Result<Vec<StartDevice<'a>>, LabError> {
        let mut starts = Vec::new();
        for device in &self.devices {
            if let Some(saved) = saved {
                starts.push(StartDevice::new(device, DeviceOrigin::Saved(saved), None));
                continue;
            }
            let profile = Profile::find(&self.resolve_name(device))?;
            let members = if uncertainty { self.members(device, &profile)? } else { Vec::new() };
            let own = members.first().and_then(|first| first.part);
            let own = own.map(|part| EnsemblePart { member: None, ..part });
            starts.push(StartDevice::new(device, DeviceOrigin::Profile(Box::new(profile)), own));
            starts.extend(members);
        }
        if uncertainty && starts.iter().all(|start| start.part.is_none()) {
            let problem = "the device has no ensemble, so there is no interval. Create an ensemble with `warp \
                           calibrate` (docs/reference/devices.md)";
            return Err(LabError::invalid(&format!("device {}", self.devices.join(", ")), problem));
        }
        Ok(starts)
    }

    /// Members of the experiment's ensemble on a device, or of the profile's if it has none.
    fn members(&self, device: &str, profile: &Profile) -> Result<Vec<StartDevice<'static>>, LabError> {
        let Some(ensemble) = self.ensemble.as_ref().or(profile.ensemble.as_ref()) else {
            return Ok(Vec::new());
        };
        let is_own = self.ensemble.is_some();
        let members = (0..).zip(&ensemble.members);
        let members = members.map(|(index, member)| {
            let part = EnsemblePart { member: Some(index), residual: ensemble.residual };
            if !is_own {
                let changed = DeviceOrigin::Profile(Box::new(profile.changed(&member.settings)?));
                return Ok(StartDevice::new(device, changed, Some(part)));
            }
            let unchanged = DeviceOrigin::Profile(Box::new(profile.clone()));
            Ok(StartDevice {
                change: RunChange::from_settings(&member.settings),
                place: Some(format!("{}, ensemble[{index}].settings", self.file)),
                ..StartDevice::new(device, unchanged, Some(part))
            })
        });
        members.collect()
    }

    fn grid_points(&self, run: &RunSettings) -> Vec<Vec<&Variant>> {
        let kept = |value: &&Variant| run.variants.is_empty() || run.variants.contains(&value.name);
        let mut points = vec![Vec::new()];
        for axis in &self.grid {
            let any = axis.values.iter().any(|value| run.variants.contains(&value.name));
            let values: Vec<&Variant> = axis.values.iter().filter(|value| !any || kept(value)).collect();
            let extend =
                |point: &Vec<_>| values.iter().map(|value| [point.as_slice(), &[*value]].concat()).collect::<Vec<_>>();
            points = points.iter().flat_map(extend).collect();
        }
        points
    }

    fn changed_run(&self, run: &RunSettings, change: &RunChange) -> Result<RunSettings, LabError> {
        let mut run = run.clone();
        run.precondition_drive_writes = change.precondition_drive_writes.unwrap_or(run.precondition_drive_writes);
        let Some(share) = change.write_share else {
            return Ok(run);
        };
        if !(share > 0.0 && share <= 1.0) {
            let problem = format!("write_share = {share} is out of range. Give a number above 0 and at most 1");
            return Err(LabError::invalid(&self.file, problem));
        }
        let Some(capacities) = run.drive_writes else {
            let problem = "write_share needs a total of writes. Give drive_writes in [run], or --drive-writes";
            return Err(LabError::invalid(&self.file, problem));
        };
        run.drive_writes = Some(capacities * share);
        Ok(run)
    }

    /// Settings of an array, checked.
    fn array_of(&self, table: SettingOverrides) -> Result<array::ArraySettings, LabError> {
        let place = format!("{}, array", self.file);
        let settings: array::ArraySettings = find::deserialize(&place, Value::Table(table))?;
        settings.check().map_err(|problem| LabError::invalid(&place, problem))?;
        Ok(settings)
    }

    fn cell(
        &self,
        key: CellKey,
        origin: &DeviceOrigin<'_>,
        changes: &[&RunChange],
        run: &RunSettings,
        seed: u64,
    ) -> Result<RunSpec, LabError> {
        let mut all = RunChange { array: self.array.clone(), ..RunChange::default() };
        let mut changes_of_work = WorkloadChanges::default();
        for change in changes {
            all.extend(change);
            // Options for all jobs and options for one override each other in the order of the
            // changes.
            for (section, table) in &change.jobs {
                let option = |(name, value): (&String, &Value)| fio::Override {
                    section: section.clone(),
                    option: name.clone(),
                    value: plain(value),
                };
                changes_of_work.jobs.extend(table.iter().map(option));
            }
        }
        let run = self.changed_run(run, &all)?;
        changes_of_work.settings = all.settings;
        let workload = all.workload.as_ref().or(self.workload.as_ref());
        let workload = workload.ok_or_else(|| {
            LabError::invalid(&self.file, "there is no workload. Set `workload` to a name of jobs/ or workloads/")
        })?;
        if seed != 1 && origin.snapshot().is_none() {
            // fio's default seed plus an offset. Seed 1 draws the streams of the job file like real
            // fio.
            let value = fio::DEFAULT_SEED.wrapping_add(seed).to_string();
            changes_of_work.jobs.push(fio::Override {
                section: "global".to_string(),
                option: "randseed".to_string(),
                value,
            });
        }
        let workload_name = workload.name();
        let workload = match workload {
            WorkloadChoice::Named(name) => read_workload(&self.resolve_name(name), &changes_of_work)?,
            WorkloadChoice::Table(table) => changes_of_work.parse(&self.file, table)?,
        };
        let mut device = origin.config(&all.device)?;
        let workload = workload.for_mapping_units(device.geometry.mapping_unit_bytes);
        device.seed = seed;
        match run.timed {
            Some(false) if device.timing.is_some() && origin.snapshot().is_some() => {
                let problem = format!(
                    "timed = false (--untimed) is not possible, because the saved device {} keeps its [timing]",
                    key.device
                );
                return Err(LabError::invalid(&self.file, problem));
            }
            Some(false) => device.timing = None,
            Some(true) if device.timing.is_none() => {
                let option = match run.replay {
                    Some(_) => "replay = \"timed\" (--replay timed)",
                    None => "timed = true",
                };
                let problem = format!(
                    "{option} needs [timing], which device {} does not have. Choose another \
                                       device, such as ssd_a or pm9d3a",
                    key.device
                );
                return Err(LabError::invalid(&self.file, problem));
            }
            _ => {}
        }
        let array = (!all.array.is_empty()).then(|| self.array_of(all.array)).transpose()?;
        Ok(RunSpec {
            array,
            array_drive: None,
            key,
            seed,
            device,
            workload,
            workload_name,
            run,
            feedback: all.feedback,
            ensemble: None,
            snapshot: origin.snapshot().cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that the cells of a small experiment write, in capacities, or its error.
    fn written(run: &str, share: &str) -> Result<Vec<Option<f64>>, String> {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndevices = [\"ssd_a\"]\nworkload = \"three_stream\"\n[run]\n{run}scale = \"1/2048\"\n\
             [quick]\n{run}scale = \"1/2048\"\n[[variants]]\nname = \"all\"\n[[variants]]\nname = \"some\"\nwrite_share = {share}\n"
        );
        let experiment =
            Experiment::parse("experiments/t/experiment.toml", &text).map_err(|error| error.to_string())?;
        let settings = experiment.run.resolve()?;
        let cells = experiment.cells(&settings, &RunChange::default(), None, false);
        let cells = cells.map_err(|error| error.to_string())?;
        Ok(cells.iter().map(|cell| cell.run.drive_writes).collect())
    }

    #[test]
    fn a_change_applies_to_the_cells_of_its_device_only() {
        let text = |device: &str| {
            format!(
                "devices = [\"ssd_a\", \"ssd_b\"]\nworkload = \"three_stream\"\n[run]\ndrive_writes = 4.0\n\
                 [change]\nwrite_share = 0.5\n[change_on.{device}]\nwrite_share = 0.875\n"
            )
        };
        let experiment = Experiment::parse("experiments/t/experiment.toml", &text("ssd_b")).expect("it is valid");
        let settings = experiment.run.resolve().expect("they are valid");
        let cells = experiment.cells(&settings, &RunChange::default(), None, true).expect("they are valid");
        let written = |device: &str| -> Vec<Option<f64>> {
            let cells = cells.iter().filter(|cell| cell.key.device == device);
            cells.map(|cell| cell.run.drive_writes).collect()
        };
        // Members of the profile's ensemble are read like the profile.
        for (device, capacities) in [("ssd_a", 2.0), ("ssd_b", 3.5)] {
            let written = written(device);
            assert!(written.len() > 1, "{device} has an ensemble");
            assert!(written.iter().all(|one| *one == Some(capacities)), "{device}: {written:?}");
        }
        let error = Experiment::parse("experiments/t/experiment.toml", &text("ssd_c")).expect_err("no such device");
        assert!(error.to_string().contains("change_on.ssd_c: devices does not list it"), "{error}");
    }

    #[test]
    fn published_only_runs_the_cells_with_a_number() {
        let text = |tables: &str| {
            format!(
                "devices = [\"ssd_a\", \"ssd_b\"]\nworkload = \"three_stream\"\npublished_only = true\n[run]\ndrive_writes = 1.0\n\
                 [[variants]]\nname = \"one\"\n[[variants]]\nname = \"two\"\n{tables}"
            )
        };
        let parse = |tables: &str| Experiment::parse("experiments/t/experiment.toml", &text(tables));
        let experiment = parse(
            "[[published]]\nat = { device = \"ssd_a\", variant = \"one\" }\ndrive = [2.0]\nsource = \"s\"\n\
             [[predicted]]\nat = { variant = \"two\" }\n",
        );
        let experiment = experiment.expect("it is valid");
        let settings = experiment.run.resolve().expect("they are valid");
        let cells = experiment.cells(&settings, &RunChange::default(), None, false);
        let keys: Vec<(String, String)> =
            cells.expect("they are valid").into_iter().map(|cell| (cell.key.device, cell.key.variant)).collect();
        let expected = [("ssd_a", "one"), ("ssd_a", "two"), ("ssd_b", "two")];
        assert_eq!(keys, expected.map(|(device, variant)| (device.to_string(), variant.to_string())));
        let error = parse("").expect_err("no cell has a number").to_string();
        assert!(error.contains("published_only leaves no cell"), "{error}");
    }

    #[test]
    fn cells_can_write_a_share_of_what_the_run_says() {
        assert_eq!(written("drive_writes = 4.0\n", "0.25"), Ok(vec![Some(4.0), Some(1.0)]));
        let problem = written("drive_writes = 4.0\n", "1.5").expect_err("more than all");
        assert!(problem.contains("above 0 and at most 1"), "{problem}");
        let problem = written("", "0.5").expect_err("a share of nothing");
        assert!(problem.contains("write_share needs a total"), "{problem}");
    }
}
