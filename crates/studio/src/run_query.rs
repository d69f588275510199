//! Creates session orders for a program, from an experiment or from its runs.
//!
//! ```text
//! Experiment (by name or file) -> SessionSpec
//! RunQuery (Experiment + RunOverrides), runs -> SessionSpec -> SessionPlan -> cells == the requested cells, or a refusal
//! ```
//!
//! An order has all run options, but not all fields of [`RunOverrides`]. So each new order is
//! resolved again, and rejected if a cell differs from the requested cell. The session therefore
//! gives the integers of the run. This module runs no experiment.

use std::path::{Path, PathBuf};

use experiment::{
    CellKey, Experiment, LabError, RunOptions, RunOverrides, RunSet, RunSpec, Scale, ScaleChoice, WorkloadChoice,
};
use serde_json::{Map, Value};
use toml::Table;

use crate::catalogue::{is_known, names_of};
use crate::session_spec::{LANES_MAX, LaneSpec, SessionPlan, SessionSpec, SessionWorkload};

/// Order with the files that it names, which its author may run.
#[derive(Clone, Debug, Default)]
pub struct GrantedSpec {
    pub spec: SessionSpec,
    /// Files outside the catalogue.
    pub files: Vec<PathBuf>,
}

impl GrantedSpec {
    /// Wraps an order from another source, which may not name files.
    pub fn new(order: SessionSpec) -> Result<GrantedSpec, LabError> {
        let files = Vec::new();
        GrantedSpec { spec: order, files }.checked()
    }

    /// Creates a session with a lane per variant of an experiment. Device and options come from
    /// `order`. `set` are settings of all lanes.
    ///
    pub fn from_experiment(
        experiment: &Experiment,
        mut order: SessionSpec,
        set: &Table,
    ) -> Result<GrantedSpec, LabError> {
        let mut granted = GrantedSpec::default();
        let (name, device) = locate(experiment)?;
        let order = match device {
            None => order.with_experiment(&name, experiment, set)?,
            Some(device) => {
                order.device.get_or_insert(device);
                order.with_workload(&name, set)
            }
        };
        [Some(&name), order.device.as_ref()].into_iter().flatten().for_each(|name| granted.grant(name));
        GrantedSpec { spec: order, ..granted }.checked()
    }

    fn checked(self) -> Result<GrantedSpec, LabError> {
        SessionPlan::new(self.spec.clone(), &self.files)?.cells()?;
        Ok(self)
    }

    /// Records a name outside the catalogue as a file.
    fn grant(&mut self, name: &str) {
        if !is_known(name) {
            self.files.push(PathBuf::from(name));
        }
    }
}

/// Finds where an experiment comes from: its name in the catalogue or its file, or the workload that
/// it only wraps and the device.
fn locate(experiment: &Experiment) -> Result<(String, Option<String>), LabError> {
    let is_plain = experiment.variants.is_empty() && experiment.grid.is_empty();
    if let Some(WorkloadChoice::Named(workload)) = experiment.workload.as_ref().filter(|_| is_plain)
        && *workload == experiment.file
    {
        return Ok((workload.clone(), Some(experiment.devices[0].clone())));
    }
    let is_this = |found: Result<Experiment, LabError>| found.is_ok_and(|found| found.file == experiment.file);
    if names_of("experiment").contains(&experiment.slug) && is_this(Experiment::find(&experiment.slug)) {
        return Ok((experiment.slug.clone(), None));
    }
    if Path::new(&experiment.file).is_file() {
        return Ok((experiment.file.clone(), None));
    }
    let problem = "is neither in the catalogue nor a file, so a session cannot find it. Write it to an \
                   experiment.toml and give its path";
    Err(LabError::invalid(&experiment.file, problem))
}

#[derive(Clone, Debug)]
pub struct RunQuery {
    pub experiment: Experiment,
    pub selection: RunOverrides,
}

#[derive(Clone, Copy, Debug)]
pub struct RunKey<'a> {
    pub key: &'a CellKey,
    pub seed: u64,
    /// Scaled model of the run, once it has run.
    pub scale: Option<Scale>,
}

/// Returns the common value of all runs, or a refusal with a remedy.
fn common<T: PartialEq + ToString>(
    what: &str,
    remedy: &str,
    mut values: impl Iterator<Item = T>,
) -> Result<T, LabError> {
    let first = values.next().expect("there are runs");
    match values.find(|value| *value != first) {
        None => Ok(first),
        Some(other) => {
            let (first, other) = (first.to_string(), other.to_string());
            Err(LabError::invalid(
                "studio",
                format!("the runs have {what}s {first} and {other}, but a session has one. {remedy}"),
            ))
        }
    }
}

impl RunQuery {
    /// Creates the order of some of the runs, each as a lane.
    pub fn order(&self, runs: &[RunKey<'_>]) -> Result<GrantedSpec, LabError> {
        if runs.is_empty() || runs.len() > LANES_MAX {
            let problem =
                format!("there are {} runs, but a session shows 1 to {LANES_MAX}. Choose some of them", runs.len());
            return Err(LabError::invalid("studio", problem));
        }
        if self.selection.snapshot.is_some() {
            let problem =
                "the runs continue a saved device, but a session begins with a new one. Run them without snapshot";
            return Err(LabError::invalid("studio", problem));
        }
        let RunSet { settings, cells: selected, .. } = self.experiment.select(&self.selection)?;
        let cell_of = |run: &RunKey<'_>| {
            let mut cells = selected.iter();
            let cell = cells.find(|cell| cell.key == *run.key && cell.seed == run.seed && is_profile(cell));
            cell.ok_or_else(|| {
                LabError::invalid(&run.key.to_string(), "the experiment has changed since this run. Run it again")
            })
        };
        let cells = runs.iter().map(cell_of).collect::<Result<Vec<&RunSpec>, LabError>>()?;
        let made = self.build_spec(runs, &cells, settings.drive_writes)?;
        let plan = SessionPlan::new(made.spec.clone(), &made.files)?;
        let mut ordered: Vec<_> = plan.order.lanes.iter().zip(plan.cells()?).collect();
        // The drives of an array have one run.
        ordered.dedup_by_key(|(lane, _)| lane.run_name().to_string());
        for ((run, cell), (_, ordered)) in runs.iter().zip(&cells).zip(&ordered) {
            self.compare(run, cell, ordered)?;
        }
        Ok(made)
    }

    /// Creates the order as far as it can express the request. The caller verifies the result.
    fn build_spec(
        &self,
        runs: &[RunKey<'_>],
        cells: &[&RunSpec],
        drive_writes: Option<f64>,
    ) -> Result<GrantedSpec, LabError> {
        let mut made = GrantedSpec::default();
        let choose = "Choose runs with one value";
        let scale = |(run, cell): (&RunKey<'_>, &&RunSpec)| run.scale.map_or(cell.run.scale, ScaleChoice::Fixed);
        let device = common("device", choose, cells.iter().map(|cell| cell.key.device.clone()))?;
        made.grant(&device);
        let first = &cells[0].run;
        let is_alike = |cell: &&RunSpec| cell.run.precondition_drive_writes == first.precondition_drive_writes;
        // An order has no quick form, so the options of the quick form are copied.
        let form = if self.selection.quick { self.experiment.quick.clone() } else { RunOptions::default() };
        made.spec = SessionSpec {
            device: Some(device),
            run: RunOptions {
                scale: Some(common("scale", choose, runs.iter().zip(cells).map(scale))?),
                seeds: Some(vec![common("seed", choose, cells.iter().map(|cell| cell.seed))?]),
                drive_writes,
                precondition_drive_writes: cells.iter().all(is_alike).then_some(first.precondition_drive_writes),
                timed: first.timed,
                variants: None,
                ..self.selection.run.merged_with(&form)
            },
            lanes: self.lanes(cells),
            ..SessionSpec::default()
        };
        let (name, device_of_workload) = locate(&self.experiment)?;
        made.grant(&name);
        match device_of_workload {
            None => made.spec.experiment = Some(name),
            Some(_) => made.spec.workload = Some(named(name)),
        }
        match &self.selection.change.workload {
            Some(WorkloadChoice::Named(name)) => {
                made.grant(name);
                made.spec.workload = Some(named(name.clone()));
            }
            Some(WorkloadChoice::Table(table)) => {
                made.spec.workload = Some(SessionWorkload {
                    name: "workload.toml".to_string(),
                    text: Some(
                        toml::to_string(table).map_err(|error| LabError::invalid("workload", error.to_string()))?,
                    ),
                });
            }
            None => {}
        }
        Ok(made)
    }

    /// A lane for each cell, named by the values that distinguish the cells.
    fn lanes(&self, cells: &[&RunSpec]) -> Vec<LaneSpec> {
        let set = self.selection.change.to_settings();
        let coordinates = |cell: &RunSpec| {
            let names = [&cell.key.variant].into_iter().chain(&cell.key.grid);
            names.filter(|name| !name.is_empty()).cloned().collect::<Vec<String>>()
        };
        let has_unique_variant = |cell: &RunSpec| {
            let alike = cells.iter().filter(|other| other.key.variant == cell.key.variant);
            !cell.key.variant.is_empty() && alike.count() == 1
        };
        let name = |cell: &RunSpec| match coordinates(cell) {
            _ if has_unique_variant(cell) => cell.key.variant.clone(),
            values if values.is_empty() => cell.workload_name.clone(),
            values => values.join(", "),
        };
        let lane = |cell: &&RunSpec| LaneSpec::new(&name(cell), coordinates(cell), &set);
        cells.iter().map(lane).collect()
    }

    /// Rejects an order that gives another run.
    fn compare(&self, run: &RunKey<'_>, requested: &RunSpec, ordered: &RunSpec) -> Result<(), LabError> {
        let mut requested = requested.clone();
        if let Some(scale) = run.scale {
            requested.run.scale = ScaleChoice::Fixed(scale);
        }
        let ordered = input_of(ordered);
        let Some((what, _)) = input_of(&requested).into_iter().find(|(name, value)| ordered.get(name) != Some(value))
        else {
            return Ok(());
        };
        let what = match what.as_str() {
            "device" if self.selection.capacity_bytes.is_some() => "capacity_bytes",
            what => what,
        };
        let problem =
            format!("a session cannot change its {what}, so the run would differ. Use the value of the experiment");
        Err(LabError::invalid(&format!("studio, {}", run.key), problem))
    }
}

fn named(name: String) -> SessionWorkload {
    SessionWorkload { name, text: None }
}

/// Returns true if a cell uses the profile itself instead of an ensemble member.
fn is_profile(cell: &RunSpec) -> bool {
    cell.ensemble.is_none_or(|part| part.member.is_none())
}

/// Inputs that determine the integers of a run, by name, without its place in the experiment.
fn input_of(cell: &RunSpec) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(cell) else { unreachable!("a cell is a JSON object") };
    let run = fields.remove("run");
    fields.extend(
        run.as_ref()
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    for place in ["key", "workload_name", "ensemble", "seeds", "variants", "array_drive"] {
        fields.remove(place);
    }
    fields
}

#[cfg(test)]
mod tests {
    use experiment::change::RunChange;
    use experiment::selection::ExperimentForm;

    use super::*;

    fn asked(selection: RunOverrides) -> RunQuery {
        RunQuery { experiment: Experiment::find("three_stream").expect("it is built in"), selection }
    }

    /// The quick form of one cell, with settings of device and workload.
    fn selection() -> RunOverrides {
        RunOverrides {
            quick: true,
            device: Some("ssd_a".to_string()),
            run: RunOptions {
                variants: Some(vec!["FDP".to_string(), "80/20".to_string()]),
                seeds: Some(vec![7]),
                ..RunOptions::default()
            },
            change: RunChange::from_settings(&Table::from_iter([
                ("gc.victim_policy".to_string(), "fifo".into()),
                ("workload.overwrite.random_distribution".to_string(), "zipf:1.5".into()),
            ])),
            ..RunOverrides::default()
        }
    }

    fn order(asked: &RunQuery) -> Result<GrantedSpec, LabError> {
        let cells = asked.experiment.select(&asked.selection).expect("a selection").cells;
        let runs = cells.iter().map(|cell| RunKey { key: &cell.key, seed: cell.seed, scale: None });
        asked.order(&runs.collect::<Vec<_>>())
    }

    #[test]
    fn an_order_says_all_that_was_asked_for() {
        let asked = self::asked(selection());
        let made = order(&asked).expect("an order");
        assert_eq!(made.files, Vec::<PathBuf>::new());
        let prepared = SessionPlan::new(made.spec.clone(), &[]).expect("it is in the catalogue");
        let again = prepared.cells().expect("a cell").remove(0);
        let selected = asked.experiment.select(&asked.selection).expect("a selection");
        assert_eq!(selected.form, ExperimentForm::Changed);
        assert_eq!(input_of(&again), input_of(&selected.cells[0]));
        assert_eq!((again.seed, again.run.scale.to_string().as_str()), (7, "1/2048"), "of the quick form");
        assert_eq!(made.spec.lanes[0].set.len(), 2);
        let until = RunOverrides { run: RunOptions { steady_state: Some(true), ..selection().run }, ..selection() };
        let until = order(&self::asked(until)).expect("an order").spec.run;
        assert_eq!((until.steady_state, until.drive_writes), (Some(true), Some(40.0)));
    }

    #[test]
    fn what_an_order_has_no_word_for_is_refused() {
        let resized = RunOverrides { capacity_bytes: Some(1 << 30), ..selection() };
        let refused = order(&asked(resized)).expect_err("no word").to_string();
        assert!(refused.contains("cannot change its capacity_bytes"), "{refused}");
        let all = RunOverrides { run: RunOptions::default(), ..selection() };
        let refused = order(&asked(all)).expect_err("nine").to_string();
        assert!(refused.contains("9 runs"), "{refused}");
        let seeds = RunOverrides { run: RunOptions { seeds: Some(vec![1, 2]), ..selection().run }, ..selection() };
        let refused = order(&asked(seeds)).expect_err("two seeds").to_string();
        assert!(refused.contains("seeds 1 and 2"), "{refused}");
    }

    #[test]
    fn an_experiment_is_found_again_or_refused() {
        let found = locate(&Experiment::find("three_stream").expect("it is built in"));
        assert!(matches!(found, Ok((name, None)) if name == "three_stream"));
        let found = locate(&Experiment::from_workload("three_stream", "ssd_b"));
        assert!(matches!(found, Ok((_, Some(device))) if device == "ssd_b"));
        let table = toml::from_str("devices = [\"ssd_a\"]\nworkload = \"three_stream\"\n[run]\nscale = \"1/2048\"\n");
        let made = Experiment::from_table("experiment", table.expect("a table")).expect("an experiment");
        let refused = locate(&made).expect_err("nobody finds it").to_string();
        assert!(refused.contains("neither in the catalogue nor a file"), "{refused}");
    }
}
