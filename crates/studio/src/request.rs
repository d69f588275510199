//! Orders of what a program has: an experiment, or runs that it asked the lab for.
//!
//! ```text
//! Experiment -> Source (a name or a file) -> Order::of_experiment, Order::of_workload
//! RunRequest (Experiment + Selection), runs -> Order -> Prepared -> cells == the cells that were asked for, or a refusal
//! ```
//!
//! An Order has all run options, but not all of a Selection. So one that was made is read again, and refused where a cell of it is another
//! one than that which was asked for: what is shown gives the integers of the run. Nothing is run here.

use std::path::{Path, PathBuf};

use experiment::LabError;
use experiment::cell::{Cell, CellKey};
use experiment::definition::Experiment;
use experiment::run_options::RunOptions;
use experiment::selection::{RunSet, Selection};
use experiment::twin::{Scale, ScaleChoice};
use experiment::workloads::WorkloadChoice;
use serde_json::{Map, Value};
use toml::Table;

use crate::catalogue::{is_known, names_of};
use crate::order::{LANES_MAX, Order, OrderLane, OrderWorkload, Prepared};

/// An Order, and the files that it names: whoever made it may have them run.
#[derive(Clone, Debug, Default)]
pub struct GrantedOrder {
    /// What to run.
    pub order: Order,
    /// Files beside the catalogue.
    pub files: Vec<PathBuf>,
}

impl GrantedOrder {
    /// An Order that somebody wrote, which names no files.
    ///
    /// # Errors
    /// A name that there is not, or a lane that is no single run: one sentence.
    pub fn of(order: Order) -> Result<GrantedOrder, LabError> {
        let files = Vec::new();
        GrantedOrder { order, files }.checked()
    }

    /// The Order of a session with a lane for each variant of an experiment; device and options are those of `order`, and `set` are settings of
    /// all lanes.
    ///
    /// # Errors
    /// As [`GrantedOrder::of`]; or nobody finds the experiment again.
    pub fn of_experiment(experiment: &Experiment, mut order: Order, set: &Table) -> Result<GrantedOrder, LabError> {
        let mut granted = GrantedOrder::default();
        let (name, order) = match Source::of(experiment)? {
            Source::Experiment(name) => {
                let order = order.of_experiment(&name, experiment, set)?;
                (name, order)
            }
            Source::Workload { workload, device } => {
                order.device.get_or_insert(device);
                let order = order.of_workload(&workload, set);
                (workload, order)
            }
        };
        [Some(&name), order.device.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|name| granted.grant(name));
        GrantedOrder { order, ..granted }.checked()
    }

    fn checked(self) -> Result<GrantedOrder, LabError> {
        Prepared::new(self.order.clone(), &self.files)?.cells()?;
        Ok(self)
    }

    /// Notes a name that is not in the catalogue as that of a file.
    fn grant(&mut self, name: &str) {
        if !is_known(name) {
            self.files.push(PathBuf::from(name));
        }
    }
}

/// Where an experiment is found again.
enum Source {
    /// An experiment of the catalogue, or a file of one.
    Experiment(String),
    /// A workload on a device.
    Workload {
        /// A workload of the catalogue, or a file.
        workload: String,
        device: String,
    },
}

impl Source {
    /// Where this one is.
    ///
    /// # Errors
    /// It is nowhere but in the memory of who made it.
    fn of(experiment: &Experiment) -> Result<Source, LabError> {
        let is_plain = experiment.variants.is_empty() && experiment.grid.is_empty();
        if let Some(WorkloadChoice::Named(workload)) = experiment.workload.as_ref().filter(|_| is_plain)
            && *workload == experiment.file
        {
            return Ok(Source::Workload {
                workload: workload.clone(),
                device: experiment.devices[0].clone(),
            });
        }
        let is_this = |found: Result<Experiment, LabError>| found.is_ok_and(|found| found.file == experiment.file);
        if names_of("experiment").contains(&experiment.slug) && is_this(Experiment::find(&experiment.slug)) {
            return Ok(Source::Experiment(experiment.slug.clone()));
        }
        if Path::new(&experiment.file).is_file() {
            return Ok(Source::Experiment(experiment.file.clone()));
        }
        let problem = "is neither in the catalogue nor a file, so nobody finds it again; write it to an experiment.toml and give its path";
        Err(refused(&experiment.file, problem))
    }
}

/// What a program asked for.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// Of which experiment.
    pub experiment: Experiment,
    /// Which runs of it, and how.
    pub selection: Selection,
}

/// One run of what was asked for.
#[derive(Clone, Copy, Debug)]
pub struct RunKey<'a> {
    pub key: &'a CellKey,
    /// With which seed.
    pub seed: u64,
    /// The twin that it ran on, if it has run.
    pub scale: Option<Scale>,
}

fn refused(place: &str, problem: impl Into<String>) -> LabError {
    LabError::invalid(place, problem)
}

/// The one value that all have, or a refusal that says how to come to one.
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
            Err(refused(
                "studio",
                format!("the runs have {what}s {first} and {other}, and a session has one; {remedy}"),
            ))
        }
    }
}

impl RunRequest {
    /// The Order of some of the runs, each a lane.
    ///
    /// # Errors
    /// They are too many or too different for a session, or one of them is something that an Order has no words for.
    pub fn order(&self, runs: &[RunKey<'_>]) -> Result<GrantedOrder, LabError> {
        if runs.is_empty() || runs.len() > LANES_MAX {
            let problem = format!(
                "{} runs, and a session shows 1 to {LANES_MAX} side by side; choose some of them",
                runs.len()
            );
            return Err(refused("studio", problem));
        }
        if self.selection.snapshot.is_some() {
            let problem =
                "these runs go on with a saved device, and a session begins with a new one; run them without snapshot";
            return Err(refused("studio", problem));
        }
        let RunSet {
            settings,
            cells: selected,
            ..
        } = self.experiment.select(&self.selection)?;
        let cell_of = |run: &RunKey<'_>| {
            let mut cells = selected.iter();
            let cell = cells.find(|cell| cell.key == *run.key && cell.seed == run.seed && is_profile(cell));
            cell.ok_or_else(|| refused(&run.key.to_string(), "its experiment has changed since; run it again"))
        };
        let cells = runs.iter().map(cell_of).collect::<Result<Vec<&Cell>, LabError>>()?;
        let made = self.made(runs, &cells, settings.write_capacities)?;
        let ordered = Prepared::new(made.order.clone(), &made.files)?.cells()?;
        for ((run, cell), ordered) in runs.iter().zip(&cells).zip(&ordered) {
            self.compare(run, cell, ordered)?;
        }
        Ok(made)
    }

    /// The Order in the words that it has; whether they say it all is to be seen.
    fn made(
        &self,
        runs: &[RunKey<'_>],
        cells: &[&Cell],
        write_capacities: Option<f64>,
    ) -> Result<GrantedOrder, LabError> {
        let mut made = GrantedOrder::default();
        let choose = "choose those of one";
        let scale = |(run, cell): (&RunKey<'_>, &&Cell)| run.scale.map_or(cell.run.scale, ScaleChoice::Fixed);
        let device = common("device", choose, cells.iter().map(|cell| cell.key.device.clone()))?;
        made.grant(&device);
        let first = &cells[0].run;
        let is_alike = |cell: &&Cell| cell.run.prefill_capacities == first.prefill_capacities;
        // An Order knows no quick form, so it says what that says.
        let form = if self.selection.quick {
            self.experiment.quick.clone()
        } else {
            RunOptions::default()
        };
        made.order = Order {
            device: Some(device),
            run: RunOptions {
                scale: Some(common("scale", choose, runs.iter().zip(cells).map(scale))?),
                seeds: Some(vec![common("seed", choose, cells.iter().map(|cell| cell.seed))?]),
                write_capacities,
                prefill_capacities: cells.iter().all(is_alike).then_some(first.prefill_capacities),
                timed: first.timed,
                only: None,
                ..self.selection.run.or(&form)
            },
            lanes: self.lanes(cells),
            ..Order::default()
        };
        match Source::of(&self.experiment)? {
            Source::Experiment(name) => {
                made.grant(&name);
                made.order.experiment = Some(name);
            }
            Source::Workload { workload, .. } => {
                made.grant(&workload);
                made.order.workload = Some(named(workload));
            }
        }
        match &self.selection.change.workload {
            Some(WorkloadChoice::Named(name)) => {
                made.grant(name);
                made.order.workload = Some(named(name.clone()));
            }
            Some(WorkloadChoice::Table(table)) => {
                made.order.workload = Some(OrderWorkload {
                    name: "workload.toml".to_string(),
                    text: Some(toml::to_string(table).map_err(|error| refused("workload", error.to_string()))?),
                });
            }
            None => {}
        }
        Ok(made)
    }

    /// A lane for each cell, called by what tells them apart.
    fn lanes(&self, cells: &[&Cell]) -> Vec<OrderLane> {
        let set = self.selection.change.to_settings();
        let only = |cell: &Cell| {
            let names = [&cell.key.variant].into_iter().chain(&cell.key.grid);
            names.filter(|name| !name.is_empty()).cloned().collect::<Vec<String>>()
        };
        let is_told_by_variant = |cell: &Cell| {
            let alike = cells.iter().filter(|other| other.key.variant == cell.key.variant);
            !cell.key.variant.is_empty() && alike.count() == 1
        };
        let name = |cell: &Cell| match only(cell) {
            _ if is_told_by_variant(cell) => cell.key.variant.clone(),
            only if only.is_empty() => cell.workload_name.clone(),
            only => only.join(", "),
        };
        let lane = |cell: &&Cell| OrderLane {
            name: name(cell),
            only: only(cell),
            set: set.clone(),
        };
        cells.iter().map(lane).collect()
    }

    /// Refuses an Order of another run.
    fn compare(&self, run: &RunKey<'_>, asked: &Cell, ordered: &Cell) -> Result<(), LabError> {
        let mut asked = asked.clone();
        if let Some(scale) = run.scale {
            asked.run.scale = ScaleChoice::Fixed(scale);
        }
        let ordered = input_of(ordered);
        let Some((what, _)) = input_of(&asked)
            .into_iter()
            .find(|(name, value)| ordered.get(name) != Some(value))
        else {
            return Ok(());
        };
        let what = match what.as_str() {
            "device" if self.selection.capacity_bytes.is_some() => "capacity_bytes",
            what => what,
        };
        let problem = format!(
            "a session cannot be told its {what}, so it would be another run; leave that as the experiment says it"
        );
        Err(refused(&format!("studio, {}", run.key), problem))
    }
}

fn named(name: String) -> OrderWorkload {
    OrderWorkload { name, text: None }
}

/// Whether a cell is on the profile itself, and not on a member of its ensemble.
fn is_profile(cell: &Cell) -> bool {
    cell.ensemble.is_none_or(|part| part.member.is_none())
}

/// What the integers of a run depend on, by name. Where it stands in its experiment is not among it.
fn input_of(cell: &Cell) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(cell) else {
        unreachable!("a cell is a JSON object")
    };
    let run = fields.remove("run");
    fields.extend(
        run.as_ref()
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    for place in ["key", "workload_name", "ensemble", "seeds", "only"] {
        fields.remove(place);
    }
    fields
}

#[cfg(test)]
mod tests {
    use experiment::change::Change;
    use experiment::run_options::Until;
    use experiment::selection::Form;

    use super::*;

    fn asked(selection: Selection) -> RunRequest {
        RunRequest {
            experiment: Experiment::find("three_stream").expect("it is built in"),
            selection,
        }
    }

    /// The quick form of one cell, with settings of device and workload.
    fn selection() -> Selection {
        Selection {
            quick: true,
            device: Some("ssd_a".to_string()),
            run: RunOptions {
                only: Some(vec!["FDP".to_string(), "80/20".to_string()]),
                seeds: Some(vec![7]),
                ..RunOptions::default()
            },
            change: Change::of_settings(&Table::from_iter([
                ("gc.unit_selection".to_string(), "fifo".into()),
                ("workload.overwrite.random_distribution".to_string(), "zipf:1.5".into()),
            ])),
            ..Selection::default()
        }
    }

    fn order(asked: &RunRequest) -> Result<GrantedOrder, LabError> {
        let cells = asked.experiment.select(&asked.selection).expect("a selection").cells;
        let runs = cells.iter().map(|cell| RunKey {
            key: &cell.key,
            seed: cell.seed,
            scale: None,
        });
        asked.order(&runs.collect::<Vec<_>>())
    }

    #[test]
    fn an_order_says_all_that_was_asked_for() {
        let asked = self::asked(selection());
        let made = order(&asked).expect("an order");
        assert_eq!(made.files, Vec::<PathBuf>::new());
        let prepared = Prepared::new(made.order.clone(), &[]).expect("it is in the catalogue");
        let again = prepared.cells().expect("a cell").remove(0);
        let selected = asked.experiment.select(&asked.selection).expect("a selection");
        assert_eq!(selected.form, Form::Changed);
        assert_eq!(input_of(&again), input_of(&selected.cells[0]));
        assert_eq!(
            (again.seed, again.run.scale.to_string().as_str()),
            (7, "1/2048"),
            "of the quick form"
        );
        assert_eq!(made.order.lanes[0].set.len(), 2);
        let until = Selection {
            run: RunOptions {
                until: Some(Until::Steady),
                ..selection().run
            },
            ..selection()
        };
        let until = order(&self::asked(until)).expect("an order").order.run;
        assert_eq!((until.until, until.write_capacities), (Some(Until::Steady), Some(40.0)));
    }

    #[test]
    fn what_an_order_has_no_word_for_is_refused() {
        let resized = Selection {
            capacity_bytes: Some(1 << 30),
            ..selection()
        };
        let refused = order(&asked(resized)).expect_err("no word").to_string();
        assert!(refused.contains("cannot be told its capacity_bytes"), "{refused}");
        let all = Selection {
            run: RunOptions::default(),
            ..selection()
        };
        let refused = order(&asked(all)).expect_err("nine").to_string();
        assert!(refused.contains("9 runs"), "{refused}");
        let seeds = Selection {
            run: RunOptions {
                seeds: Some(vec![1, 2]),
                ..selection().run
            },
            ..selection()
        };
        let refused = order(&asked(seeds)).expect_err("two seeds").to_string();
        assert!(refused.contains("seeds 1 and 2"), "{refused}");
    }

    #[test]
    fn an_experiment_is_found_again_or_refused() {
        let found = Source::of(&Experiment::find("three_stream").expect("it is built in"));
        assert!(matches!(found, Ok(Source::Experiment(name)) if name == "three_stream"));
        let found = Source::of(&Experiment::of_workload("three_stream", "ssd_b"));
        assert!(matches!(found, Ok(Source::Workload { device, .. }) if device == "ssd_b"));
        let table = toml::from_str("devices = [\"ssd_a\"]\nworkload = \"three_stream\"\n[run]\nscale = \"1/2048\"\n");
        let made = Experiment::from_table("experiment", table.expect("a table")).expect("an experiment");
        let refused = Source::of(&made).err().expect("nobody finds it").to_string();
        assert!(refused.contains("neither in the catalogue nor a file"), "{refused}");
    }
}
