//! Selection of an experiment's cells and overrides of its settings by a caller.
//!
//! ```text
//! command line, Python, studio -> RunOverrides + Experiment -> RunSet (settings, cells)
//!   -> simulate::run::prepare
//! ```
//!
//! All runs of experiments and workloads pass through [`Experiment::select`]. An override that is
//! not given defaults to the value of the experiment. This module runs no cell.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::cell::RunSpec;
use crate::change::{RunChange, SettingOverrides};
use crate::definition::{Experiment, SavedDevice};
use crate::error::LabError;
use crate::profile::Profile;
use crate::run_options::{RunOptions, RunSettings};
use crate::scaled_model::{self, ScaleChoice};

#[derive(Clone, Debug, Default)]
pub struct RunOverrides {
    pub quick: bool,
    /// Options that override the experiment's. A preconditioning amount also overrides that of
    /// each cell.
    pub run: RunOptions,
    /// Change of every cell, applied last.
    pub change: RunChange,
    /// Device profiles instead of the experiment's.
    pub devices: Option<Vec<String>>,
    /// The only one of these devices to run on, or another one instead of all.
    pub device: Option<String>,
    /// Capacity of the drives, which otherwise resemble the devices. Reclaim units keep a size that
    /// `change` sets ([`scaled_model::with_capacity`]).
    pub capacity_bytes: Option<u64>,
    /// Scales reclaim units with the capacity even if `change` sets their size.
    pub scales_reclaim_units: bool,
    /// Saved device from which runs continue, instead of a new one.
    pub snapshot: Option<PathBuf>,
    /// Also runs the members of the profiles' ensembles, for `analysis::interval::Intervals`.
    pub uncertainty: bool,
}

/// Form of an experiment. A claim belongs to one form and is judged on no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ExperimentForm {
    Full,
    Quick,
    /// A caller's variation: another scale, another length, other settings, or a subset.
    Changed,
}

#[derive(Clone, Debug)]
pub struct RunSet {
    /// The experiment on the selected devices.
    pub experiment: Experiment,
    pub settings: RunSettings,
    pub form: ExperimentForm,
    /// A cell for each device (and requested ensemble member), grid point, variant and seed.
    pub cells: Vec<RunSpec>,
    /// Reclaim units of drives with another capacity, a sentence for each kind of drive.
    pub capacity_notes: BTreeSet<String>,
}

impl RunOverrides {
    /// Form that this selection chooses. More seeds keep the form, and another device has no
    /// claims.
    fn form(&self) -> ExperimentForm {
        let unseeded = RunOptions { seeds: None, ..self.run.clone() };
        let is_changed = self.capacity_bytes.is_some()
            || self.snapshot.is_some()
            || self.change != RunChange::default()
            || unseeded != RunOptions::default();
        match (is_changed, self.quick) {
            (true, _) => ExperimentForm::Changed,
            (false, true) => ExperimentForm::Quick,
            (false, false) => ExperimentForm::Full,
        }
    }

    fn check(&self) -> Result<(), LabError> {
        self.run.check().map_err(|problem| LabError::invalid("run", problem))?;
        let of_device = [
            ("devices", self.devices.is_some() || self.device.is_some()),
            ("capacity", self.capacity_bytes.is_some()),
            ("scale", self.run.scale.is_some()),
            ("seeds", self.run.seeds.is_some()),
            ("uncertainty", self.uncertainty),
        ];
        match of_device.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) if self.snapshot.is_some() => {
                let problem = "this option cannot be combined with a snapshot (--load-snapshot), which fixes the device. \
                               Leave it out";
                Err(LabError::invalid(name, problem))
            }
            _ => Ok(()),
        }
    }
}

impl Experiment {
    /// Returns the selected cells, in the order devices, grid, variants, seeds.
    ///
    /// # Errors
    /// A name is unknown, or a setting, device, workload or override does not fit. The error names
    /// file and field.
    pub fn select(&self, selection: &RunOverrides) -> Result<RunSet, LabError> {
        selection.check()?;
        let experiment = self.on_devices(selection)?;
        let saved = selection.snapshot.as_deref().map(SavedDevice::find).transpose()?;
        let settings = self.settings_of(selection, saved.as_ref())?;
        let change = RunChange {
            precondition_drive_writes: selection
                .run
                .precondition_drive_writes
                .or(selection.change.precondition_drive_writes),
            ..selection.change.clone()
        };
        let mut cells = experiment.cells(&settings, &change, saved.as_ref(), selection.uncertainty)?;
        let is_selected = |name: &str| settings.variants.iter().any(|variant| variant == name);
        if self.variants.iter().any(|variant| is_selected(&variant.name)) {
            cells.retain(|cell| is_selected(&cell.key.variant));
        }
        let mut capacity_notes = BTreeSet::new();
        if let Some(capacity_bytes) = selection.capacity_bytes {
            let kept = if selection.scales_reclaim_units { &SettingOverrides::new() } else { &change.device };
            for cell in &mut cells {
                let drive = scaled_model::with_capacity(&cell.key.device, &cell.device, capacity_bytes, kept)?;
                cell.device = drive.config;
                capacity_notes.insert(drive.note);
            }
        }
        for cell in &mut cells {
            // fio's `steadystate` equals --steady-state, unless the run has a write target.
            let jobs = cell.workload.jobs().into_iter().flat_map(|file| &file.jobs);
            if cell.run.drive_writes.is_none() && jobs.clone().any(|job| job.steadystate) {
                cell.run.continue_until_steady();
            }
            // Planning rejects an impossible device, so possible cells still run.
            match cell.resolve_scale() {
                Err(error) if !matches!(error, LabError::Device { .. }) => return Err(error),
                _ => {}
            }
        }
        Ok(RunSet { experiment, settings, form: selection.form(), cells, capacity_notes })
    }

    fn on_devices(&self, selection: &RunOverrides) -> Result<Experiment, LabError> {
        let mut experiment = self.clone();
        if let Some(snapshot) = &selection.snapshot {
            experiment.devices = vec![snapshot.display().to_string()];
        }
        if let Some(devices) = &selection.devices {
            if devices.is_empty() {
                return Err(LabError::invalid("devices", "name at least one device profile"));
            }
            experiment.devices.clone_from(devices);
        }
        if let Some(device) = &selection.device {
            if experiment.devices.contains(device) {
                experiment.devices.retain(|name| name == device);
            } else {
                experiment = experiment.on_unlisted_device(device)?;
            }
        }
        Ok(experiment)
    }

    /// Returns the experiment on an unlisted device. Publications, claims and ensemble apply only
    /// to its own devices.
    fn on_unlisted_device(mut self, device: &str) -> Result<Experiment, LabError> {
        Profile::find(&self.resolve_name(device)).map_err(|error| {
            let problem = format!("{error}. {} itself runs on {}", self.slug, self.devices.join(", "));
            LabError::invalid("device (--device)", problem)
        })?;
        self.devices = vec![device.to_string()];
        self.published.clear();
        self.predicted.clear();
        self.published_only = false;
        self.claims.clear();
        self.regression.clear();
        self.ledger.clear();
        self.ensemble = None;
        Ok(self)
    }

    fn settings_of(&self, selection: &RunOverrides, saved: Option<&SavedDevice>) -> Result<RunSettings, LabError> {
        let (form, own) = match selection.quick {
            true => ("quick", &self.quick),
            false => ("run", &self.run),
        };
        let given = &selection.run;
        let mut own = own.clone();
        if given.steady_state == Some(true) {
            // The experiment's write target is no limit for a caller with another end condition.
            own.drive_writes = None;
        }
        let mut options = given.merged_with(&own);
        if options.replay.is_some() && given.timed == Some(false) {
            let problem = "a replay needs virtual time. Leave out either timed = false (--untimed) or the replay";
            return Err(LabError::invalid("replay = \"timed\" (--replay timed)", problem));
        }
        if let Some(saved) = saved {
            options.scale = Some(ScaleChoice::Fixed(saved.origin.scale));
            options.seeds = Some(vec![saved.origin.device.seed]);
        }
        self.check_names(given.variants.as_deref().unwrap_or_default())?;
        let resolved = options.resolve();
        resolved.map_err(|problem| LabError::invalid(&self.file, format!("{form}: {problem}")))
    }

    /// Rejects a name of no variant and no grid value.
    fn check_names(&self, variants: &[String]) -> Result<(), LabError> {
        let values = self.grid.iter().flat_map(|axis| &axis.values);
        let named = self.variants.iter().chain(values);
        let names: Vec<&str> = named.map(|named| named.name.as_str()).collect();
        let Some(unknown) = variants.iter().find(|name| !names.contains(&name.as_str())) else {
            return Ok(());
        };
        if names.is_empty() {
            let problem = format!(
                "{unknown} cannot be selected, because there are no variants and no grid values. Leave the option out"
            );
            return Err(LabError::invalid("variants (--variant)", problem));
        }
        Err(LabError::unknown("variant or grid value", unknown, names))
    }
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    fn keys(selection: &RunOverrides) -> Vec<String> {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        let selected = experiment.select(selection).expect("a selection");
        selected.cells.iter().map(|cell| format!("{} | {}", cell.key, cell.seed)).collect()
    }

    /// Creates a selection with a caller's options.
    fn with(run: RunOptions) -> RunOverrides {
        RunOverrides { run, ..RunOverrides::default() }
    }

    fn refusal(selection: &RunOverrides) -> String {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        experiment.select(selection).expect_err("it cannot be").to_string()
    }

    #[test]
    fn a_selection_leaves_what_it_names() {
        assert_eq!(keys(&RunOverrides::default()).len(), 18);
        let selection = RunOverrides {
            devices: Some(vec!["ssd_b".to_string()]),
            run: RunOptions {
                variants: Some(vec!["FDP".to_string(), "80/20".to_string()]),
                seeds: Some(vec![1, 2]),
                ..RunOptions::default()
            },
            ..RunOverrides::default()
        };
        assert_eq!(keys(&selection), ["ssd_b | FDP | 80/20 | 1", "ssd_b | FDP | 80/20 | 2"]);
        let selection = RunOverrides { device: Some("ssd_b".to_string()), ..RunOverrides::default() };
        assert_eq!(keys(&selection).len(), 9);
    }

    #[test]
    fn a_name_that_there_is_not_is_refused() {
        let error = refusal(&with(RunOptions { variants: Some(vec!["NoFPD".to_string()]), ..RunOptions::default() }));
        assert!(error.contains("did you mean NoFDP?"), "{error}");
        let error = refusal(&RunOverrides { device: Some("ssd_z".to_string()), ..RunOverrides::default() });
        assert!(error.contains("there is no device ssd_z (did you mean ssd_b?). Known names are"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let write = refusal(&with(RunOptions { drive_writes: Some(f64::NAN), ..RunOptions::default() }));
        assert!(write.contains("drive_writes") && write.contains("above 0"), "{write}");
        let seconds = refusal(&with(RunOptions { seconds: Some(0.0), ..RunOptions::default() }));
        assert!(seconds.contains("seconds = 0 (--seconds) is out of range"), "{seconds}");
        let scaled = refusal(&RunOverrides {
            snapshot: Some("saved.warp".into()),
            ..with(RunOptions { scale: Some(ScaleChoice::AUTO), ..RunOptions::default() })
        });
        assert!(scaled.contains("scale") && scaled.contains("snapshot"), "{scaled}");
    }

    #[test]
    fn a_replay_at_recorded_times_is_a_run_in_virtual_time() {
        let text = "devices = [\"ssd_a\"]\nworkload = { kind = \"trace\", files = [\"trace.csv\"] }\n\
                    [run]\nreplay = \"timed\"\nreplay_speed = 2\n";
        let experiment = Experiment::parse("experiments/t/experiment.toml", text).expect("an experiment");
        let cell = |selection: &RunOverrides| {
            let selected = experiment.select(selection)?;
            Ok::<_, LabError>(selected.cells.into_iter().next().expect("one cell"))
        };
        let own = cell(&RunOverrides::default()).expect("the profile has timing");
        assert!(own.device.timing.is_some());
        assert_eq!(own.run.scale, ScaleChoice::FULL);
        assert_eq!((own.run.replay_speed, own.run.depth()), (Some(2.0), 1023));
        assert_eq!(own.run.drive_writes, None, "one pass of the trace");
        let changed = with(RunOptions { replay_speed: Some(0.5), queue_depth: Some(64), ..RunOptions::default() });
        let changed = cell(&changed).expect("it is possible");
        assert_eq!((changed.run.replay_speed, changed.run.depth()), (Some(0.5), 64));
        let untimed = with(RunOptions { timed: Some(false), ..RunOptions::default() });
        let refusal = cell(&untimed).expect_err("it needs time").to_string();
        assert!(refusal.contains("--replay timed") && refusal.contains("--untimed"), "{refusal}");
        let alone = refusal_of_speed();
        assert!(alone.contains("replay_speed = 2 (--speed)"), "{alone}");
    }

    fn refusal_of_speed() -> String {
        refusal(&with(RunOptions { replay_speed: Some(2.0), ..RunOptions::default() }))
    }

    #[test]
    fn a_cell_says_how_far_its_search_for_a_scale_goes() {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        let options =
            |scale: &str| RunOptions { scale: Some(scale.parse().expect("a scale")), ..RunOptions::default() };
        let cells = |scale: &str| experiment.select(&with(options(scale))).expect("a selection").cells;
        let [found, given, other] = ["auto", "auto:1/128", "auto:1/32"].map(|scale| cells(scale).remove(0));
        assert!(matches!(found.run.scale, ScaleChoice::Auto { largest: Some(_) }));
        assert_eq!(given.run.scale.to_string(), "auto:1/128");
        // Equal on each run of a machine, so that the cell's hash finds the result again.
        let settings = |cell: &crate::cell::RunSpec| serde_json::to_value(&cell.run).expect("settings serialize");
        assert_eq!(settings(&found), settings(&cells("auto")[0]));
        assert_ne!(settings(&given), settings(&other));
    }

    #[test]
    fn options_of_a_job_file_are_settings() {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        let set =
            |value: &str| Table::from_iter([("workload.overwrite.random_distribution".to_string(), value.into())]);
        let options =
            |value: &str| RunOverrides { change: RunChange::from_settings(&set(value)), ..RunOverrides::default() };
        let selected = experiment.select(&options("zipf:1.5")).expect("an option of fio");
        let jobs = selected.cells[0].workload.jobs().expect("a job file");
        assert!(format!("{:?}", jobs.jobs).contains("Zipf(1.5)"));
        experiment.select(&options("zipf:much")).expect_err("no number");
    }
}
