//! Results, and running points to get them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lab::claims::Judge;
use lab::experiment::Experiment as LabExperiment;
use lab::export::{self, tables};
use lab::policy::{PlacementPolicy, Policies};
use lab::run::{CellResult, Prepared, Progress, memory_available, run_all_with};
use lab::table as texts;
use pyo3::prelude::*;
use ssd::gc::VictimPolicy;

use crate::convert::{to_python, warp_error};
use crate::interrupt::stoppable;
use crate::policy::{self, Buffer, PythonPlacementPolicy, PythonVictimPolicy, Shared};
use crate::table::Table;

/// How points are run.
#[derive(Clone, Copy, Default)]
pub struct How<'a, 'py> {
    /// Keep a row for each collection.
    pub gc_log: bool,
    pub victim_policy: Option<&'a Bound<'py, PyAny>>,
    pub placement_policy: Option<&'a Bound<'py, PyAny>>,
    /// Called with the share that is done, the points that are done, and the number of points.
    pub progress: Option<&'a Bound<'py, PyAny>>,
}

/// What policies of Python took.
#[derive(Clone, Copy)]
pub struct PolicyCost {
    calls: u64,
    seconds: f64,
}

/// Runs points to their end; Ctrl-C and exceptions of policies are raised.
pub fn run_prepared(
    py: Python<'_>,
    prepared: &[Arc<Prepared>],
    how: How<'_, '_>,
) -> PyResult<(Vec<CellResult>, PolicyCost)> {
    let How {
        gc_log,
        victim_policy,
        placement_policy,
        progress,
    } = how;
    policy::check(victim_policy, "victim_policy", "select")?;
    policy::check(placement_policy, "placement_policy", "place")?;
    let counters = Progress::default();
    let shared = Arc::new(Shared::default());
    let tick = || {
        if shared.failed() {
            counters.stop.store(true, Ordering::Relaxed);
        }
        let Some(progress) = progress else { return Ok(()) };
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let share = load(&counters.done) as f64 / load(&counters.expected).max(1) as f64;
        progress.call1((share.min(1.0), load(&counters.cells), prepared.len()))?;
        Ok(())
    };
    let victim = victim_policy.map(|policy| policy.clone().unbind());
    let make_victim = victim.map(|policy| {
        let shared = shared.clone();
        move || -> Box<dyn VictimPolicy + Send + Sync> {
            Box::new(PythonVictimPolicy {
                policy: policy::copied(&policy, &shared),
                shared: shared.clone(),
                buffer: Buffer::default(),
            })
        }
    });
    let placement = placement_policy.map(|policy| policy.clone().unbind());
    let make_placement = placement.map(|policy| {
        let shared = shared.clone();
        move || -> Box<dyn PlacementPolicy> {
            Box::new(PythonPlacementPolicy {
                policy: policy::copied(&policy, &shared),
                shared: shared.clone(),
            })
        }
    });
    let policies = Policies {
        victim: make_victim.as_ref().map(|make| make as _),
        placement: make_placement.as_ref().map(|make| make as _),
    };
    let work = || run_all_with(prepared, policies, gc_log, memory_available(), &counters);
    let results = stoppable(py, &counters, tick, work)?;
    shared.raise()?;
    let cost = PolicyCost {
        calls: shared.calls(),
        seconds: shared.seconds(),
    };
    Ok((results.map_err(warp_error)?, cost))
}

/// What one point measured.
#[pyclass(frozen, module = "warp_ssd")]
pub struct PointResult {
    pub axes: Arc<Vec<String>>,
    pub tail_capacities: f64,
    pub results: Vec<CellResult>,
    pub policy_cost: PolicyCost,
}

#[pymethods]
impl PointResult {
    /// Counters of the device and measures of the workload: one row.
    fn cells(&self) -> Table {
        tables::cells(&self.axes, self.tail_capacities, &self.results).into()
    }

    /// Counters of each reclaim unit handle and of the shared pool.
    fn owners(&self) -> Table {
        tables::owners(&self.axes, &self.results).into()
    }

    /// The time series: a row for each sample and owner.
    fn samples(&self) -> Table {
        tables::samples(&self.axes, &self.results).into()
    }

    /// A row for each collection, if ``gc_log`` was asked for.
    fn gc_log(&self) -> Table {
        tables::gc_log(&self.axes, &self.results).into()
    }

    /// Rates and latencies of each job and direction, of a timed run.
    fn jobs(&self) -> Table {
        tables::jobs(&self.axes, &self.results).into()
    }

    /// Distribution of the latencies of each job and direction, of a timed run.
    fn latencies(&self) -> Table {
        tables::latencies(&self.axes, &self.results).into()
    }

    /// Its object in the JSON of `Result.to_json`, as text.
    fn to_json(&self) -> String {
        let mut json = export::to_json(&self.axes, self.tail_capacities, &self.results, false);
        json["cells"][0].take().to_string()
    }

    /// How often policies of Python were asked.
    #[getter]
    fn policy_calls(&self) -> u64 {
        self.policy_cost.calls
    }

    /// How long policies of Python took, seconds, with everything that it takes to ask them.
    #[getter]
    fn policy_seconds(&self) -> f64 {
        self.policy_cost.seconds
    }

    fn __repr__(&self) -> String {
        let result = &self.results[0];
        format!(
            "PointResult({} | seed {}: WAF {:.3})",
            result.key,
            result.seed,
            result.write_amplification()
        )
    }
}

/// What the points of an experiment measured, and how that compares with the paper.
#[pyclass(frozen, name = "Result", module = "warp_ssd")]
pub struct RunResult {
    pub experiment: LabExperiment,
    pub axes: Vec<String>,
    pub tail_capacities: f64,
    pub results: Vec<CellResult>,
    pub policy_cost: PolicyCost,
}

impl RunResult {
    fn judge(&self) -> Judge<'_> {
        Judge::new(&self.experiment, &self.results, self.tail_capacities)
    }
}

#[pymethods]
impl RunResult {
    /// The tables that ``warp run`` prints, and the claims.
    fn summary(&self) -> String {
        let mut text = texts::results(&self.experiment.title, &self.axes, &self.results, false);
        let verdicts = self.judge().verdicts();
        if !verdicts.is_empty() {
            text += &texts::verdicts(&verdicts);
        }
        text.trim_end().to_string()
    }

    /// Counters of the device and measures of the workload: a row for each point.
    fn cells(&self) -> Table {
        tables::cells(&self.axes, self.tail_capacities, &self.results).into()
    }

    /// Counters of each reclaim unit handle and of the shared pool.
    fn owners(&self) -> Table {
        tables::owners(&self.axes, &self.results).into()
    }

    /// The time series: a row for each sample and owner.
    fn samples(&self) -> Table {
        tables::samples(&self.axes, &self.results).into()
    }

    /// A row for each collection, if ``gc_log`` was asked for.
    fn gc_log(&self) -> Table {
        tables::gc_log(&self.axes, &self.results).into()
    }

    /// Rates and latencies of each job and direction, of timed runs.
    fn jobs(&self) -> Table {
        tables::jobs(&self.axes, &self.results).into()
    }

    /// Distribution of the latencies of each job and direction, of timed runs.
    fn latencies(&self) -> Table {
        tables::latencies(&self.axes, &self.results).into()
    }

    /// The paper's numbers beside ours.
    fn published(&self) -> Table {
        tables::published(&self.axes, &self.judge().comparisons()).into()
    }

    /// The experiment's claims, and whether they hold.
    fn claims(&self) -> Table {
        tables::claims(&self.judge().verdicts()).into()
    }

    /// Everything that was measured and judged, as JSON on one line: the bytes that ``warp run --json`` prints, without the end of
    /// the line.
    fn to_json(&self) -> String {
        export::judged_json(&self.experiment, &self.judge(), &self.results)
    }

    /// As `to_json`, as dictionaries and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = serde_json::from_str(&self.to_json()).expect("it is JSON");
        to_python(py, &json)
    }

    /// How often policies of Python were asked.
    #[getter]
    fn policy_calls(&self) -> u64 {
        self.policy_cost.calls
    }

    /// How long policies of Python took, seconds, with everything that it takes to ask them.
    #[getter]
    fn policy_seconds(&self) -> f64 {
        self.policy_cost.seconds
    }

    fn __repr__(&self) -> String {
        format!("Result({:?}: {} points)", self.experiment.slug, self.results.len())
    }
}
