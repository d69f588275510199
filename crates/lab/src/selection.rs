//! Which cells of an experiment to run, and how: what a caller may say beside the experiment's own file.
//!
//! ```text
//! Experiment + Selection -> RunSettings, cells -> run::prepare
//! ```
//!
//! A choice that is left out is the experiment's own. Nothing is run here.

use crate::cell::{Cell, RunSettings};
use crate::error::LabError;
use crate::experiment::{Experiment, WorkloadChoice};
use crate::profile::Overrides;
use crate::twin::Scale;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The quick form.
    pub quick: bool,
    /// Device settings by dotted path, on every device.
    pub overrides: Overrides,
    /// Workload settings by dotted path; of a job file, options as `SECTION.OPTION`.
    pub settings: Overrides,
    /// Device profiles instead of the experiment's.
    pub devices: Option<Vec<String>>,
    /// Names of the variants and grid values to run; axes of which none is named are run whole.
    pub only: Option<Vec<String>>,
    /// Another scale.
    pub scale: Option<Scale>,
    /// Bytes that the host writes, in multiples of the capacity.
    pub write_capacities: Option<f64>,
    /// Seeds to run each cell with.
    pub seeds: Option<Vec<u64>>,
    /// Another workload for all cells.
    pub workload: Option<WorkloadChoice>,
}

/// The cells of a choice.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The experiment, on the devices that were chosen.
    pub experiment: Experiment,
    /// How they are run.
    pub settings: RunSettings,
    /// One for each device, grid point, variant and seed.
    pub cells: Vec<Cell>,
}

impl Experiment {
    /// The cells that a choice leaves.
    ///
    /// # Errors
    /// A name that the experiment does not have, an impossible setting, or as [`Experiment::cells`].
    pub fn choose(&self, choice: &Selection) -> Result<Chosen, LabError> {
        let mut experiment = self.clone();
        if let Some(devices) = &choice.devices {
            if devices.is_empty() {
                return Err(LabError::invalid("devices", "name at least one device profile"));
            }
            experiment.devices.clone_from(devices);
        }
        let settings = self.settings_of(choice)?;
        let mut overrides = choice.overrides.clone();
        let of_workload = choice.settings.iter();
        overrides.extend(of_workload.map(|(path, value)| (format!("workload.{path}"), value.clone())));
        let mut cells = experiment.cells_with(&settings, &overrides, choice.workload.as_ref())?;
        let is_chosen = |name: &str| settings.only.iter().any(|only| only == name);
        if self.variants.iter().any(|variant| is_chosen(&variant.name)) {
            cells.retain(|cell| is_chosen(&cell.key.variant));
        }
        Ok(Chosen {
            experiment,
            settings,
            cells,
        })
    }

    fn settings_of(&self, choice: &Selection) -> Result<RunSettings, LabError> {
        let mut settings = if choice.quick { &self.quick } else { &self.run }.clone();
        settings.scale = choice.scale.unwrap_or(settings.scale);
        settings.write_capacities = choice.write_capacities.or(settings.write_capacities);
        if let Some(seeds) = &choice.seeds {
            settings.seeds.clone_from(seeds);
        }
        if let Some(only) = &choice.only {
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
        let place = if choice.quick { "quick" } else { "run" };
        settings
            .check(place)
            .map_err(|problem| LabError::invalid(&self.file, problem))?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(choice: &Selection) -> Vec<String> {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        let chosen = experiment.choose(choice).expect("a choice");
        chosen
            .cells
            .iter()
            .map(|cell| format!("{} | {}", cell.key, cell.seed))
            .collect()
    }

    #[test]
    fn a_choice_leaves_what_it_names() {
        assert_eq!(keys(&Selection::default()).len(), 18);
        let choice = Selection {
            devices: Some(vec!["ssd_b".to_string()]),
            only: Some(vec!["FDP".to_string(), "80/20".to_string()]),
            seeds: Some(vec![1, 2]),
            ..Selection::default()
        };
        assert_eq!(keys(&choice), ["ssd_b | FDP | 80/20 | 1", "ssd_b | FDP | 80/20 | 2"]);
    }

    #[test]
    fn a_name_that_there_is_not_is_refused() {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        let choice = Selection {
            only: Some(vec!["NoFPD".to_string()]),
            ..Selection::default()
        };
        let error = experiment.choose(&choice).expect_err("a typing mistake").to_string();
        assert!(error.contains("did you mean NoFDP?"), "{error}");
    }

    #[test]
    fn options_of_a_job_file_are_settings() {
        let experiment = Experiment::find("three_stream").expect("it is built in");
        let options = |value: &str| Selection {
            settings: Overrides::from_iter([("overwrite.random_distribution".to_string(), value.into())]),
            ..Selection::default()
        };
        let chosen = experiment.choose(&options("zipf:1.5")).expect("an option of fio");
        let jobs = chosen.cells[0].workload.jobs().expect("a job file");
        assert!(format!("{:?}", jobs.jobs).contains("Zipf(1.5)"));
        experiment.choose(&options("zipf:much")).expect_err("no number");
    }
}
