//! Which cells of an experiment to run, and how: what a caller may say beside the experiment's own file.
//!
//! ```text
//! command line, Python -> Selection + Experiment -> RunSet (settings, cells) -> run::prepare
//! ```
//!
//! It is the one road from an experiment or a workload to its runs. What is left out is the experiment's own. Nothing
//! is run here.

use std::path::PathBuf;

use crate::cell::Until;
use crate::cell::{Cell, ReplayMode, RunSettings};
use crate::change::Change;
use crate::definition::{Experiment, SavedDevice};
use crate::error::LabError;
use crate::feedback;
use crate::overrides::{Overrides, divided};
use crate::profile::Profile;
use crate::twin::{self, ScaleChoice};
use crate::workloads::WorkloadChoice;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The quick form.
    pub quick: bool,
    /// Device settings by dotted path, on every device; those that begin with `workload.` are settings of the workload.
    pub overrides: Overrides,
    /// Workload settings by dotted path; of a job file, options as `SECTION.OPTION`.
    pub settings: Overrides,
    /// Device profiles instead of the experiment's.
    pub devices: Option<Vec<String>>,
    /// The one of these devices to run on; or another one instead of them all.
    pub device: Option<String>,
    /// Drives like the devices, but of this capacity.
    pub capacity_bytes: Option<u64>,
    /// A device that was saved, to go on with instead of a new one.
    pub snapshot: Option<PathBuf>,
    /// Names of the variants and grid values to run; axes of which none is named are run whole.
    pub only: Option<Vec<String>>,
    /// Another scale.
    pub scale: Option<ScaleChoice>,
    /// Bytes that the host writes, in multiples of the capacity.
    pub write_capacities: Option<f64>,
    /// What else ends the runs.
    pub until: Option<Until>,
    /// Bytes written in order before the workload, in multiples of the capacity; in every cell, whatever it says itself.
    pub prefill_capacities: Option<f64>,
    /// In virtual time: seconds that the jobs may run.
    pub seconds: Option<f64>,
    /// Whether to run in virtual time.
    pub timed: Option<bool>,
    /// In virtual time: when the requests of a block trace are submitted.
    pub replay: Option<ReplayMode>,
    /// How many times as fast as recorded.
    pub replay_speed: Option<f64>,
    /// In virtual time: requests in flight of a workload that is not a job file.
    pub queue_depth: Option<u32>,
    /// Seeds to run each cell with.
    pub seeds: Option<Vec<u64>>,
    /// Who listens to what the drives report.
    pub feedback: Option<feedback::Settings>,
    /// Another workload for all cells.
    pub workload: Option<WorkloadChoice>,
    /// Whether to run the members of the profiles' ensembles as well, for `analysis::interval::Intervals`.
    pub interval: bool,
}

/// Which form of an experiment is run. Claims are made for a form, and judged on no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Form {
    /// As the experiment's `[run]` says.
    Full,
    /// As its `[quick]` says.
    Quick,
    /// What a caller made of it: another scale, another length, other settings, or a part of it.
    Changed,
}

/// The cells of a selection.
#[derive(Clone, Debug)]
pub struct RunSet {
    /// The experiment, on the devices that were selected.
    pub experiment: Experiment,
    /// How they are run.
    pub settings: RunSettings,
    /// Which form of the experiment they are.
    pub form: Form,
    /// One for each device (and member of its ensemble, if that was asked for), grid point, variant and seed.
    pub cells: Vec<Cell>,
}

impl Selection {
    /// The form of an experiment that it selects. More seeds are the same form, and another device has no claims.
    fn form(&self) -> Form {
        let is_changed = self.scale.is_some()
            || self.capacity_bytes.is_some()
            || self.write_capacities.is_some()
            || self.until.is_some()
            || self.prefill_capacities.is_some()
            || self.seconds.is_some()
            || self.timed.is_some()
            || self.replay.is_some()
            || self.replay_speed.is_some()
            || self.queue_depth.is_some()
            || self.snapshot.is_some()
            || self.only.is_some()
            || self.workload.is_some()
            || self.feedback.is_some()
            || !self.overrides.is_empty()
            || !self.settings.is_empty();
        match (is_changed, self.quick) {
            (true, _) => Form::Changed,
            (false, true) => Form::Quick,
            (false, false) => Form::Full,
        }
    }

    /// Refuses numbers that make no sense, and what excludes each other.
    fn check(&self) -> Result<(), LabError> {
        let write = self
            .write_capacities
            .filter(|write| !(*write > 0.0 && *write <= 1000.0));
        if let Some(write) = write {
            let problem = format!("{write}: must be in multiples of the capacity, above 0 and at most 1000");
            return Err(LabError::invalid("write_capacities (--write)", problem));
        }
        if let Some(prefill) = self
            .prefill_capacities
            .filter(|prefill| !(0.0..=100.0).contains(prefill))
        {
            let problem = format!("{prefill}: must be in multiples of the capacity, between 0 and 100");
            return Err(LabError::invalid("prefill_capacities (--prefill)", problem));
        }
        if let Some(seconds) = self.seconds.filter(|seconds| !(1e-6..=1e6).contains(seconds)) {
            let problem = format!("{seconds}: must be at least a microsecond and at most 1000000");
            return Err(LabError::invalid("seconds (--seconds)", problem));
        }
        let of_device = [
            ("devices", self.devices.is_some() || self.device.is_some()),
            ("capacity", self.capacity_bytes.is_some()),
            ("scale", self.scale.is_some()),
            ("seeds", self.seeds.is_some()),
            ("interval", self.interval),
        ];
        match of_device.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) if self.snapshot.is_some() => {
                let problem = "cannot be had together with a snapshot, whose device is what it is";
                Err(LabError::invalid(name, problem))
            }
            _ => Ok(()),
        }
    }

    /// What it changes in every cell, after everything else.
    fn change(&self) -> Change {
        let mut change = Change {
            workload: self.workload.clone(),
            settings: self.settings.clone(),
            feedback: self.feedback.clone(),
            prefill_capacities: self.prefill_capacities,
            ..Change::default()
        };
        let (device, workload) = divided(&self.overrides);
        change.device = device;
        change.settings.extend(workload);
        change
    }
}

impl Experiment {
    /// The cells that a selection leaves, in the order devices, grid, variants, seeds.
    ///
    /// # Errors
    /// A name that the experiment does not have, an impossible setting, a device, a workload or an override that does
    /// not fit: names file and field.
    pub fn select(&self, selection: &Selection) -> Result<RunSet, LabError> {
        selection.check()?;
        let experiment = self.on_devices(selection)?;
        let saved = selection.snapshot.as_deref().map(SavedDevice::find).transpose()?;
        let settings = self.settings_of(selection, saved.as_ref())?;
        let mut cells = experiment.cells(&settings, &selection.change(), saved.as_ref(), selection.interval)?;
        let is_selected = |name: &str| settings.only.iter().any(|only| only == name);
        if self.variants.iter().any(|variant| is_selected(&variant.name)) {
            cells.retain(|cell| is_selected(&cell.key.variant));
        }
        if let Some(capacity_bytes) = selection.capacity_bytes {
            for cell in &mut cells {
                cell.device = twin::resized(&cell.key.device, &cell.device, capacity_bytes)?;
            }
        }
        for cell in &mut cells {
            // fio's `steadystate` says the same as --until steady, but not against a run that says how much to write.
            let jobs = cell.workload.jobs().into_iter().flat_map(|file| &file.jobs);
            if cell.run.write_capacities.is_none() && jobs.clone().any(|job| job.steadystate) {
                cell.run.until_steady();
            }
            // A device that cannot be is refused where its run is planned, beside those that can be.
            match cell.resolve_scale() {
                Err(error) if !matches!(error, LabError::Device { .. }) => return Err(error),
                _ => {}
            }
        }
        Ok(RunSet {
            experiment,
            settings,
            form: selection.form(),
            cells,
        })
    }

    /// The experiment on the devices that are selected.
    fn on_devices(&self, selection: &Selection) -> Result<Experiment, LabError> {
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
                experiment = experiment.on_another(device)?;
            }
        }
        Ok(experiment)
    }

    /// The experiment on a device that it does not name. What it publishes and claims, and what explains that, is
    /// about its own.
    fn on_another(mut self, device: &str) -> Result<Experiment, LabError> {
        Profile::find(&self.beside(device)).map_err(|error| {
            let problem = format!("{} names {}, not {device}: {error}", self.slug, self.devices.join(", "));
            LabError::invalid("device (--device)", problem)
        })?;
        self.devices = vec![device.to_string()];
        self.published.clear();
        self.predicted.clear();
        self.claims.clear();
        self.ensemble = None;
        Ok(self)
    }

    fn settings_of(&self, selection: &Selection, saved: Option<&SavedDevice>) -> Result<RunSettings, LabError> {
        let mut settings = if selection.quick { &self.quick } else { &self.run }.clone();
        settings.scale = selection.scale.unwrap_or(settings.scale);
        if selection.until.is_some() {
            // What the experiment writes is no bound for who asks how it ends.
            settings.write_capacities = None;
        }
        settings.write_capacities = selection.write_capacities.or(settings.write_capacities);
        settings.until = selection.until.or(settings.until);
        if settings.until.is_some() {
            settings.until_steady();
        }
        settings.seconds = selection.seconds.or(settings.seconds);
        settings.timed = selection.timed.or(settings.timed);
        settings.replay = selection.replay.or(settings.replay);
        settings.replay_speed = selection.replay_speed.or(settings.replay_speed);
        settings.queue_depth = selection.queue_depth.or(settings.queue_depth);
        if settings.replay.is_some() {
            if selection.timed == Some(false) {
                let problem = "cannot be had untimed; leave out timed = false (--untimed) or the replay";
                return Err(LabError::invalid("replay = \"timed\" (--replay timed)", problem));
            }
            settings.timed = Some(true);
        }
        if let Some(seeds) = &selection.seeds {
            settings.seeds.clone_from(seeds);
        }
        if let Some(saved) = saved {
            settings.scale = ScaleChoice::Fixed(saved.origin.scale);
            settings.seeds = vec![saved.origin.device.seed];
        }
        if let Some(only) = &selection.only {
            let values = self.grid.iter().flat_map(|axis| &axis.values);
            let names: Vec<&str> = self
                .variants
                .iter()
                .chain(values)
                .map(|named| named.name.as_str())
                .collect();
            if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
                return Err(LabError::Unknown {
                    what: "variant or grid value".to_string(),
                    name: unknown.clone(),
                    hint: base::hint(unknown, names.iter().copied()),
                    known: names.join(", "),
                });
            }
            settings.only.clone_from(only);
        }
        let place = if selection.quick { "quick" } else { "run" };
        settings
            .check(place)
            .map_err(|problem| LabError::invalid(&self.file, problem))?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(selection: &Selection) -> Vec<String> {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        let selected = experiment.select(selection).expect("a selection");
        selected
            .cells
            .iter()
            .map(|cell| format!("{} | {}", cell.key, cell.seed))
            .collect()
    }

    fn refusal(selection: &Selection) -> String {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        experiment.select(selection).expect_err("it cannot be").to_string()
    }

    #[test]
    fn a_selection_leaves_what_it_names() {
        assert_eq!(keys(&Selection::default()).len(), 18);
        let selection = Selection {
            devices: Some(vec!["ssd_b".to_string()]),
            only: Some(vec!["FDP".to_string(), "80/20".to_string()]),
            seeds: Some(vec![1, 2]),
            ..Selection::default()
        };
        assert_eq!(keys(&selection), ["ssd_b | FDP | 80/20 | 1", "ssd_b | FDP | 80/20 | 2"]);
        let selection = Selection {
            device: Some("ssd_b".to_string()),
            ..Selection::default()
        };
        assert_eq!(keys(&selection).len(), 9);
    }

    #[test]
    fn a_name_that_there_is_not_is_refused() {
        let error = refusal(&Selection {
            only: Some(vec!["NoFPD".to_string()]),
            ..Selection::default()
        });
        assert!(error.contains("did you mean NoFDP?"), "{error}");
        let error = refusal(&Selection {
            device: Some("ssd_z".to_string()),
            ..Selection::default()
        });
        assert!(
            error.contains("three_stream names ssd_a, ssd_b, not ssd_z: there is no device ssd_z"),
            "{error}"
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let write = refusal(&Selection {
            write_capacities: Some(f64::NAN),
            ..Selection::default()
        });
        assert!(
            write.contains("write_capacities") && write.contains("above 0"),
            "{write}"
        );
        let seconds = refusal(&Selection {
            seconds: Some(0.0),
            ..Selection::default()
        });
        assert!(seconds.contains("microsecond"), "{seconds}");
        let scaled = refusal(&Selection {
            snapshot: Some("saved.warp".into()),
            scale: Some(ScaleChoice::AUTO),
            ..Selection::default()
        });
        assert!(scaled.contains("scale") && scaled.contains("snapshot"), "{scaled}");
    }

    #[test]
    fn a_replay_at_recorded_times_is_a_run_in_virtual_time() {
        let text = "devices = [\"ssd_a\"]\nworkload = { kind = \"trace\", files = [\"trace.csv\"] }\n\
                    [run]\nreplay = \"timed\"\nreplay_speed = 2\n";
        let experiment = Experiment::parse("experiments/t/experiment.toml", text).expect("an experiment");
        let cell = |selection: &Selection| {
            let selected = experiment.select(selection)?;
            Ok::<_, LabError>(selected.cells.into_iter().next().expect("one cell"))
        };
        let own = cell(&Selection::default()).expect("the profile has timing");
        assert!(own.device.timing.is_some());
        assert_eq!(own.run.scale, ScaleChoice::FULL);
        assert_eq!((own.run.replay_speed, own.run.depth()), (Some(2.0), 1023));
        assert_eq!(own.run.write_capacities, None, "one pass of the trace");
        let changed = Selection {
            replay_speed: Some(0.5),
            queue_depth: Some(64),
            ..Selection::default()
        };
        let changed = cell(&changed).expect("it is possible");
        assert_eq!((changed.run.replay_speed, changed.run.depth()), (Some(0.5), 64));
        let untimed = Selection {
            timed: Some(false),
            ..Selection::default()
        };
        let refusal = cell(&untimed).expect_err("it needs time").to_string();
        assert!(
            refusal.contains("--replay timed") && refusal.contains("--untimed"),
            "{refusal}"
        );
        let alone = refusal_of_speed();
        assert!(alone.contains("replay_speed = 2 (--speed)"), "{alone}");
    }

    fn refusal_of_speed() -> String {
        refusal(&Selection {
            replay_speed: Some(2.0),
            ..Selection::default()
        })
    }

    #[test]
    fn a_cell_says_how_far_its_search_for_a_scale_goes() {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        let selection = |scale: &str| Selection {
            scale: Some(scale.parse().expect("a scale")),
            ..Selection::default()
        };
        let cells = |scale: &str| experiment.select(&selection(scale)).expect("a selection").cells;
        let [found, given, other] = ["auto", "auto:1/128", "auto:1/32"].map(|scale| cells(scale).remove(0));
        assert!(matches!(found.run.scale, ScaleChoice::Auto { largest: Some(_) }));
        assert_eq!(given.run.scale.to_string(), "auto:1/128");
        // The same on a machine every time, so that a result is found again under the cell's hash.
        let settings = |cell: &crate::cell::Cell| serde_json::to_value(&cell.run).expect("settings serialize");
        assert_eq!(settings(&found), settings(&cells("auto")[0]));
        assert_ne!(settings(&given), settings(&other));
    }

    #[test]
    fn options_of_a_job_file_are_settings() {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        let options = |value: &str| Selection {
            settings: Overrides::from_iter([("overwrite.random_distribution".to_string(), value.into())]),
            ..Selection::default()
        };
        let selected = experiment.select(&options("zipf:1.5")).expect("an option of fio");
        let jobs = selected.cells[0].workload.jobs().expect("a job file");
        assert!(format!("{:?}", jobs.jobs).contains("Zipf(1.5)"));
        experiment.select(&options("zipf:much")).expect_err("no number");
    }
}
