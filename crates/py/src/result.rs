//! Running points, and the classes for their results.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use analysis::claim_checker::ClaimChecker;
use analysis::export::{self, tables};
use analysis::interval::Intervals;
use experiment::{Experiment, ExperimentForm};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use report::rows;
use report::{self, PlotLibrary};
use simulate::policy::{PlacementPolicy, Policies};
use simulate::run::{ExecutionOptions, RunPlan, RunProgress, RunResult, run_all_with};
use simulate::warning::WarningCommand;
use ssd::gc::VictimPolicy;
use studio::run_query::RunQuery;

use crate::convert::{from_json, key_of, lab_error, render, warp_error};
use crate::interrupt::stoppable;
use crate::policy::{self, PolicyCalls, PythonPlacementPolicy, PythonVictimPolicy};
use crate::table::PyTable;

/// The arguments with which points were made, from which the studio can repeat them. `None` after
/// pickling.
pub type PointArguments = Option<Arc<RunQuery>>;

/// The origin that all have in common. `None` if they come from different calls.
pub fn common_origin<'a>(mut origins: impl Iterator<Item = &'a PointArguments>) -> PointArguments {
    let first = origins.next()?.clone()?;
    origins.all(|other| other.as_ref().is_some_and(|other| Arc::ptr_eq(&first, other))).then_some(first)
}

/// Policies and callbacks of a run.
#[derive(Clone, Copy, Default)]
pub struct RunHooks<'a, 'py> {
    /// Record a row for each collection.
    pub gc_log: bool,
    pub victim_policy: Option<&'a Bound<'py, PyAny>>,
    pub placement_policy: Option<&'a Bound<'py, PyAny>>,
    /// Function called with the finished share and the numbers of finished and of all points.
    pub progress: Option<&'a Bound<'py, PyAny>>,
}

/// Measurements of points, as tables.
#[pyclass(frozen, subclass, name = "Results", module = "warp_ssd")]
pub struct PyResults {
    axes: Arc<Vec<String>>,
    tail_drive_writes: f64,
    pub cells: Vec<RunResult>,
    /// Number of calls of Python policies.
    #[pyo3(get)]
    policy_calls: u64,
    /// Seconds spent in Python policies, including the conversion of their arguments.
    #[pyo3(get)]
    policy_seconds: f64,
    /// True if policies or workloads in Python took part.
    pub has_policies: bool,
    /// The common origin of its points, if they have one.
    pub origin: PointArguments,
}

impl PyResults {
    /// Runs points of an experiment with these axes to their end. Ctrl-C and exceptions of policies
    /// are raised.
    pub fn run(
        py: Python<'_>,
        axes: &Arc<Vec<String>>,
        tail_drive_writes: f64,
        prepared: &[Arc<RunPlan>],
        how: RunHooks<'_, '_>,
        origin: PointArguments,
    ) -> PyResult<PyResults> {
        let RunHooks { gc_log, victim_policy, placement_policy, progress } = how;
        policy::check(victim_policy, "victim_policy", "select")?;
        policy::check(placement_policy, "placement_policy", "place")?;
        let counters = RunProgress::default();
        let shared = Arc::new(PolicyCalls::default());
        let tick = || {
            if shared.failed() {
                counters.stop.store(true, Ordering::Relaxed);
            }
            let Some(progress) = progress else { return Ok(()) };
            let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let share = load(&counters.completed) as f64 / load(&counters.expected).max(1) as f64;
            progress.call1((share.min(1.0), load(&counters.cells_completed), prepared.len()))?;
            Ok(())
        };
        let victim = victim_policy.map(|policy| policy.clone().unbind());
        let make_victim = victim.map(|policy| {
            let shared = shared.clone();
            move || -> Box<dyn VictimPolicy + Send + Sync> {
                Box::new(PythonVictimPolicy::new(policy::copied(&policy, &shared), shared.clone()))
            }
        });
        let placement = placement_policy.map(|policy| policy.clone().unbind());
        let make_placement = placement.map(|policy| {
            let shared = shared.clone();
            move || -> Box<dyn PlacementPolicy> {
                Box::new(PythonPlacementPolicy::new(policy::copied(&policy, &shared), shared.clone()))
            }
        });
        let policies = Policies {
            victim: make_victim.as_ref().map(|make| make as _),
            placement: make_placement.as_ref().map(|make| make as _),
        };
        let options = ExecutionOptions { policies, keep_gc_log: gc_log, ..ExecutionOptions::default() };
        let work = || run_all_with(prepared, options, &counters);
        let results = stoppable(py, &counters, tick, work)?;
        shared.raise()?;
        let is_generated = |plan: &Arc<RunPlan>| plan.cell().workload.generator().is_some();
        Ok(PyResults {
            axes: axes.clone(),
            tail_drive_writes,
            cells: results.map_err(lab_error)?,
            policy_calls: shared.calls(),
            policy_seconds: shared.seconds(),
            has_policies: victim_policy.is_some() || placement_policy.is_some() || prepared.iter().any(is_generated),
            origin,
        })
    }
}

/// Selectors of points: a name matches any coordinate, a pair matches the value on an axis.
struct PointSelector(Vec<(Option<String>, String)>);

impl PointSelector {
    /// Parses a name, several names, or a mapping from axes to values.
    fn parse(names: &Bound<'_, PyAny>) -> PyResult<PointSelector> {
        let text = |value: &Bound<'_, PyAny>| -> PyResult<String> { value.str()?.extract() };
        if let Ok(mapping) = names.cast::<PyDict>() {
            let pair = |(axis, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((Some(text(&axis)?), text(&value)?));
            return Ok(PointSelector(mapping.iter().map(pair).collect::<PyResult<_>>()?));
        }
        if let Ok(several) = names.cast::<PyTuple>() {
            let names = several.iter().map(|name| Ok((None, text(&name)?)));
            return Ok(PointSelector(names.collect::<PyResult<_>>()?));
        }
        Ok(PointSelector(vec![(None, text(names)?)]))
    }

    /// Refuses a name that no point has. The message lists the existing names.
    fn check(&self, keys: &[Vec<(&str, &str)>]) -> PyResult<()> {
        let has = |(axis, value): &(Option<String>, String)| {
            let mut all = keys.iter().flatten();
            all.any(|(name, known)| known == value && axis.as_deref().is_none_or(|axis| axis == *name))
        };
        let Some((axis, value)) = self.0.iter().find(|name| !has(name)) else {
            return Ok(());
        };
        let mut known: Vec<String> = Vec::new();
        for (name, value) in keys.iter().flatten().filter(|(_, value)| !value.is_empty()) {
            let text = format!("{name} {value:?}");
            if !known.contains(&text) {
                known.push(text);
            }
        }
        let name = axis.as_ref().map_or(String::new(), |axis| format!("{axis} "));
        let known = known.join(", ");
        Err(warp_error(format!("there is no point of {name}{value:?}. Choose one of {known}")))
    }

    fn select(&self, key: &[(&str, &str)]) -> bool {
        let is_at = |(axis, value): &(Option<String>, String)| {
            let mut all = key.iter();
            all.any(|(name, known)| known == value && axis.as_deref().is_none_or(|axis| axis == *name))
        };
        self.0.iter().all(is_at)
    }
}

/// The coordinates of a cell, by name.
fn coordinates<'a>(axes: &'a [String], cell: &'a RunResult) -> Vec<(&'a str, &'a str)> {
    let key = &cell.key;
    let grid = axes.iter().map(String::as_str).zip(key.grid.iter().map(String::as_str));
    let names = [("device", key.device.as_str()), ("variant", key.variant.as_str())];
    names.into_iter().chain(grid).collect()
}

impl PyResults {
    /// The same results restricted to these cells.
    fn with(&self, cells: Vec<RunResult>) -> PyResults {
        PyResults { axes: self.axes.clone(), cells, origin: self.origin.clone(), ..*self }
    }

    /// Separates the results of ensemble members from those of profiles.
    pub fn split(self) -> (PyResults, Intervals) {
        let (cells, intervals) = Intervals::split(self.cells);
        (PyResults { cells, ..self }, intervals)
    }
}

#[pymethods]
impl PyResults {
    /// Counters of the device and measures of the workload, a row for each point.
    fn cells(&self) -> PyTable {
        tables::cells(&self.axes, self.tail_drive_writes, &self.cells).into()
    }

    /// Counters of each reclaim unit handle and of the shared pool.
    fn owners(&self) -> PyTable {
        tables::owners(&self.axes, &self.cells).into()
    }

    /// Counters and wear of each drive of an array, also of drives that failed.
    fn drives(&self) -> PyTable {
        tables::array_drives(&self.axes, &self.cells).into()
    }

    /// Time series, with a row for each sample and owner.
    fn samples(&self) -> PyTable {
        tables::samples(&self.axes, &self.cells).into()
    }

    /// A row for each collection, if ``gc_log`` was set.
    fn gc_log(&self) -> PyTable {
        tables::gc_log(&self.axes, &self.cells).into()
    }

    /// Rates and latencies of each job and direction, for timed runs.
    fn jobs(&self) -> PyTable {
        tables::jobs(&self.axes, &self.cells).into()
    }

    /// Distribution of the latencies of each job and direction, for timed runs.
    fn latencies(&self) -> PyTable {
        tables::latencies(&self.axes, &self.cells).into()
    }

    /// Latencies, lateness and waits for collection by volume, process and size, for traces
    /// replayed at their recorded times.
    fn replays(&self) -> PyTable {
        tables::replays(&self.axes, &self.cells).into()
    }

    /// New events at each reading of the event log, by owner, for runs with feedback.
    fn readings(&self) -> PyTable {
        tables::readings(&self.axes, &self.cells).into()
    }

    /// A row for each move that placement feedback made.
    fn moves(&self) -> PyTable {
        tables::moves(&self.axes, &self.cells).into()
    }

    /// Pages copied by each collection, by owner of the data, for runs with feedback.
    fn collections(&self) -> PyTable {
        tables::collections(&self.axes, &self.cells).into()
    }
}

/// Measurements of one point.
#[pyclass(frozen, extends = PyResults, name = "PointResult", module = "warp_ssd")]
pub struct PyPointResult;

#[pymethods]
impl PyPointResult {
    /// Coordinates within its experiment, as `Point.key`.
    #[getter]
    fn key<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let results = slf.as_super().get();
        key_of(slf.py(), &results.axes, &results.cells[0].key)
    }

    /// Seed of the run.
    #[getter]
    fn seed(slf: &Bound<'_, Self>) -> u64 {
        slf.as_super().get().cells[0].seed
    }

    /// Media bytes written / host bytes written, over the whole run.
    #[getter]
    fn write_amplification(slf: &Bound<'_, Self>) -> f64 {
        slf.as_super().get().cells[0].write_amplification()
    }

    /// Write amplification over the last ``tail_drive_writes``, an estimate of the further course.
    #[getter]
    fn tail_write_amplification(slf: &Bound<'_, Self>) -> f64 {
        let results = slf.as_super().get();
        results.cells[0].tail_write_amplification(results.tail_drive_writes)
    }

    /// Write amplification of the steady state with ``steady_state=True``. None if it was not
    /// reached.
    #[getter]
    fn steady_write_amplification(slf: &Bound<'_, Self>) -> Option<f64> {
        let cell = &slf.as_super().get().cells[0];
        cell.is_steady().then(|| cell.headline_write_amplification())
    }

    /// Return its object in the JSON of `Result.to_json`, as text.
    fn to_json(slf: &Bound<'_, Self>) -> String {
        let PyResults { axes, tail_drive_writes, cells, .. } = slf.as_super().get();
        let mut json = export::to_json(axes, *tail_drive_writes, cells, false);
        json["cells"][0].take().to_string()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let cell = &slf.as_super().get().cells[0];
        format!("PointResult({} | seed {}: WAF {:.3})", cell.key, cell.seed, cell.headline_write_amplification())
    }
}

/// Measurements of an experiment's points, and their comparison with the paper.
#[pyclass(frozen, extends = PyResults, name = "Result", module = "warp_ssd")]
pub struct PyRunResult {
    pub experiment: Experiment,
    pub form: ExperimentForm,
    pub intervals: Intervals,
}

impl PyRunResult {
    fn judge<'a>(&'a self, results: &'a PyResults) -> ClaimChecker<'a> {
        let tail = results.tail_drive_writes;
        let mut judge = ClaimChecker::new(&self.experiment, self.form, &results.cells, tail);
        judge.intervals = &self.intervals;
        judge
    }
}

#[pymethods]
impl PyRunResult {
    /// Return the tables that ``warp run`` prints, and the claims.
    fn summary(slf: &Bound<'_, Self>) -> String {
        let (run, results) = (slf.get(), slf.as_super().get());
        let title = &run.experiment.title;
        let mut text = rows::results(
            title,
            &results.axes,
            &results.cells,
            &run.intervals,
            false,
            WarningCommand::Python,
            rows::TextFormat::Lines,
        );
        let judge = run.judge(results);
        let ledger = &run.experiment.ledger;
        text += &rows::judged(&judge.verdicts(), &judge.regression(), ledger, rows::TextFormat::Lines);
        text.trim_end().to_string()
    }

    /// Published numbers of the paper beside the measured ones.
    fn published(slf: &Bound<'_, Self>) -> PyTable {
        let results = slf.as_super().get();
        tables::published(&results.axes, &slf.get().judge(results).comparisons()).into()
    }

    /// Intervals of the write amplifications over the devices' ensembles, for runs with
    /// ``uncertainty``.
    fn intervals(slf: &Bound<'_, Self>) -> PyTable {
        let results = slf.as_super().get();
        tables::intervals(&results.axes, &slf.get().judge(results)).into()
    }

    /// Verdicts on the experiment's claims. The verdict is null for claims that do not apply to the
    /// form that was run.
    fn claims(slf: &Bound<'_, Self>) -> PyTable {
        tables::claims(&slf.get().judge(slf.as_super().get()).verdicts()).into()
    }

    /// Verdicts on the experiment's regression tests, in the form of `claims`.
    fn regression(slf: &Bound<'_, Self>) -> PyTable {
        tables::claims(&slf.get().judge(slf.as_super().get()).regression()).into()
    }

    /// Return all measurements and verdicts as JSON on one line. The text equals the output of
    /// ``warp run --json`` without the line break.
    fn to_json(slf: &Bound<'_, Self>) -> String {
        export::judged_json(&slf.get().judge(slf.as_super().get())).to_string()
    }

    /// Return the content of `to_json` as dictionaries and lists.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        from_json(slf.py(), &PyRunResult::to_json(slf))
    }

    /// Write the self-contained HTML report of ``warp run`` to a file.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     The file cannot be written.
    fn report(slf: &Bound<'_, Self>, path: PathBuf) -> PyResult<()> {
        let judge = slf.get().judge(slf.as_super().get());
        report::write_judged(&judge, PlotLibrary::Embedded, &path).map_err(warp_error)
    }

    /// Draw the results in a figure, with a panel for each device and grid value.
    ///
    /// Timed runs show latencies, others show write amplification over the host's writes.
    /// `warp_ssd.plot` has further plots.
    ///
    /// Returns
    /// -------
    /// matplotlib.figure.Figure
    ///     Save it with ``.savefig(path)``.
    fn plot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        render(slf, "warp_ssd.plot", "overview")
    }

    /// Select points by their coordinates (device, variant, values of axes) or by index.
    ///
    /// ``result["FDP"]``, ``result["FDP", "80/20"]`` and ``result[{"overwrite": "80/20"}]`` return
    /// a `Result` of the selected points. ``result[0]`` returns a `PointResult`, and iteration
    /// yields them.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     No point has these coordinates. The message lists the existing ones.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, names: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (run, results) = (slf.get(), slf.as_super().get());
        if let Ok(index) = names.extract::<isize>() {
            let count = results.cells.len();
            let place = if index < 0 { index + count as isize } else { index };
            let cell = usize::try_from(place).ok().and_then(|place| results.cells.get(place));
            let cell = cell.ok_or_else(|| {
                PyIndexError::new_err(format!("point {index} does not exist, because there are {count} points"))
            })?;
            let point = PyClassInitializer::from(results.with(vec![cell.clone()])).add_subclass(PyPointResult);
            return Ok(Bound::new(slf.py(), point)?.into_any());
        }
        let names = PointSelector::parse(names)?;
        let keys: Vec<_> = results.cells.iter().map(|cell| coordinates(&results.axes, cell)).collect();
        names.check(&keys)?;
        let selected = results.cells.iter().zip(&keys).filter(|(_, key)| names.select(key));
        let cells: Vec<RunResult> = selected.map(|(cell, _)| cell.clone()).collect();
        if cells.is_empty() {
            return Err(warp_error("no point has all of these coordinates. Name each axis once"));
        }
        let is_part = cells.len() < results.cells.len();
        let part = PyRunResult {
            experiment: run.experiment.clone(),
            form: if is_part { ExperimentForm::Changed } else { run.form },
            intervals: run.intervals.clone(),
        };
        let part = PyClassInitializer::from(results.with(cells)).add_subclass(part);
        Ok(Bound::new(slf.py(), part)?.into_any())
    }

    /// Number of points.
    fn __len__(slf: &Bound<'_, Self>) -> usize {
        slf.as_super().get().cells.len()
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        render(slf, "warp_ssd.notebook", "result")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let points = slf.as_super().get().cells.len();
        format!("Result({:?}: {points} points)", slf.get().experiment.slug)
    }
}
