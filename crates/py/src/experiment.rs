//! The class `Experiment`: devices, workloads and variants to run.

use std::path::PathBuf;
use std::sync::Arc;

use analysis::claim_checker::ClaimChecker;
use analysis::export::tables;
use experiment::change::parse_array;
use experiment::{
    Experiment, ExperimentForm, LabError, RunChange, RunOverrides, RunSet, SettingOverrides, WorkloadChoice, feedback,
    find,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use simulate::run::{RunPlan, prepare};
use studio::run_query::RunQuery;

use crate::convert::{self, lab_error, optional_table, path_or_name, table, warp_error};
use crate::generator::{GeneratorRegistry, PythonGenerator, table_of_workloads};
use crate::point::PyPoint;
use crate::result::{PyResults, PyRunResult, RunHooks, common_origin};
use crate::table::PyTable;

/// An experiment: a set of drives, workloads and variants, and the paper's numbers for them.
///
/// Parameters
/// ----------
/// experiment
///     Name of a folder of ``experiments/``, path of an ``experiment.toml``, or its content as
///     nested dictionaries.
///
/// Raises
/// ------
/// WarpError
///     The experiment does not exist, or a value in it is invalid.
#[pyclass(frozen, name = "Experiment", module = "warp_ssd")]
pub struct PyExperiment {
    pub experiment: Experiment,
    /// Generators of its workloads that are written in Python.
    pub generators: GeneratorRegistry,
}

/// The workload from a name, a table or a callable.
fn workload_choice(workload: &Bound<'_, PyAny>, generators: &mut GeneratorRegistry) -> PyResult<WorkloadChoice> {
    match path_or_name(workload)? {
        Some(name) => Ok(WorkloadChoice::Named(name)),
        None if workload.is_callable() => PythonGenerator::name_of(workload, generators).map(WorkloadChoice::Named),
        None => Ok(WorkloadChoice::Table(table("workload", workload)?)),
    }
}

/// Settings of an array from a table, or from a line such as `raid5,drives=4`.
fn array_settings(settings: &Bound<'_, PyAny>) -> PyResult<SettingOverrides> {
    match settings.extract::<String>() {
        Ok(line) => {
            let parsed = parse_array(&line).map_err(|problem| LabError::invalid("array", problem));
            Ok(RunChange::from_settings(&parsed.map_err(warp_error)?).array)
        }
        Err(_) => table("array", settings),
    }
}

/// Settings of placement feedback from a table.
fn feedback_settings(settings: &Bound<'_, PyAny>) -> PyResult<feedback::FeedbackSettings> {
    let settings = table("feedback", settings)?;
    find::deserialize("feedback", settings).map_err(warp_error)
}

#[pymethods]
impl PyExperiment {
    #[new]
    fn new(experiment: &Bound<'_, PyAny>) -> PyResult<PyExperiment> {
        let mut generators = GeneratorRegistry::new();
        let found = match path_or_name(experiment)? {
            Some(name) => Experiment::find(&name),
            None => {
                let table = table_of_workloads("experiment", experiment, &mut generators)?;
                Experiment::from_table("experiment", table)
            }
        };
        Ok(PyExperiment { experiment: found.map_err(warp_error)?, generators })
    }

    /// Return an experiment with one point: a workload on a device at full size. The workload must
    /// end by itself.
    ///
    /// Parameters
    /// ----------
    /// workload
    ///     Name or path of a job file, a workload, or a block trace. Or a function that makes
    ///     requests (`warp_ssd.generators`).
    /// device
    ///     Name or path of a device profile.
    #[staticmethod]
    fn of_workload(workload: &Bound<'_, PyAny>, device: &str) -> PyResult<PyExperiment> {
        let mut generators = GeneratorRegistry::new();
        let name = PythonGenerator::name_of(workload, &mut generators)?;
        Ok(PyExperiment { experiment: Experiment::from_workload(&name, device), generators })
    }

    /// Name of the experiment's folder.
    #[getter]
    fn slug(&self) -> &str {
        &self.experiment.slug
    }

    /// Title in one line.
    #[getter]
    fn title(&self) -> &str {
        &self.experiment.title
    }

    /// Figure or table of the paper.
    #[getter]
    fn source(&self) -> &str {
        &self.experiment.source
    }

    /// Choices where the paper is not specific, and their reasons.
    #[getter]
    fn notes(&self) -> &str {
        &self.experiment.notes
    }

    /// Names of its device profiles.
    #[getter]
    fn devices(&self) -> Vec<String> {
        self.experiment.devices.clone()
    }

    /// Names of its variants.
    #[getter]
    fn variants(&self) -> Vec<String> {
        self.experiment.coordinates().values("variant").to_vec()
    }

    /// Axes of its grid, each with the names of its values.
    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let axes = PyDict::new(py);
        let coordinates = self.experiment.coordinates();
        for axis in self.experiment.axes() {
            axes.set_item(&axis, coordinates.values(&axis))?;
        }
        Ok(axes)
    }

    /// Return the paper's numbers in the form of `Result.published`, before a run. The row of a
    /// number about several points names the first point.
    fn published(&self) -> PyTable {
        let judge = ClaimChecker::new(&self.experiment, ExperimentForm::Full, &[], self.experiment.run.tail());
        tables::published(&self.experiment.axes(), &judge.comparisons()).into()
    }

    /// Return the points of the experiment: one for each device, grid value, variant and seed.
    ///
    /// Parameters
    /// ----------
    /// quick
    ///     Select the quick form, which tests compare with golden results.
    /// overrides
    ///     Device settings by dotted path, such as ``{"geometry.over_provisioning": 0.07}``.
    /// settings
    ///     Workload settings by dotted path. Options of a job file are ``"SECTION.OPTION"``.
    /// devices
    ///     Names or paths of device profiles, instead of the experiment's.
    /// workload
    ///     Another workload: a name, a path, a table with a ``kind``, or a function that makes
    ///     requests (`warp_ssd.generators`).
    /// capacity_bytes
    ///     Capacity of the drives, instead of the profiles'.
    /// array
    ///     Settings of an array of the devices, as ``[array]`` of an experiment, or in one line as
    ///     ``--array``: ``"raid5,drives=4"``.
    /// feedback
    ///     Settings of placement feedback, as ``feedback`` of a variant: ``{"policy":
    ///     "lifetimes"}``.
    /// uncertainty
    ///     Add the points of all members of the devices' ensembles. `Result` shows the resulting
    ///     intervals.
    /// snapshot
    ///     Path of a device saved by ``Device.snapshot`` or ``warp run --save-snapshot``, to start from.
    /// **options
    ///     Run options, by their names in ``[run]`` of an experiment (see ``docs/reference/experiments.md``).
    ///     ``scale`` may also be a number: ``64`` is ``"1/64"``.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     A setting is unknown or impossible. The message names it and the allowed values.
    #[pyo3(signature = (*, quick = false, overrides = None, settings = None, devices = None, workload = None, capacity_bytes = None,
                        array = None, feedback = None, uncertainty = false, snapshot = None, **options))]
    #[allow(clippy::too_many_arguments)] // Keyword arguments of Python.
    fn points(
        &self,
        py: Python<'_>,
        quick: bool,
        overrides: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyAny>>,
        devices: Option<Vec<String>>,
        workload: Option<&Bound<'_, PyAny>>,
        capacity_bytes: Option<&Bound<'_, PyAny>>,
        array: Option<&Bound<'_, PyAny>>,
        feedback: Option<&Bound<'_, PyAny>>,
        uncertainty: bool,
        snapshot: Option<PathBuf>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<PyPoint>> {
        let mut generators = self.generators.clone();
        let overrides = RunChange::from_settings(&optional_table("overrides", overrides)?);
        let mut change = RunChange { settings: optional_table("settings", settings)?, ..RunChange::default() };
        change.array = array.map(array_settings).transpose()?.unwrap_or_default();
        change.extend(&overrides);
        change.workload = workload.map(|workload| workload_choice(workload, &mut generators)).transpose()?;
        change.feedback = feedback.map(feedback_settings).transpose()?;
        let selection = RunOverrides {
            quick,
            run: convert::run_options(options)?,
            change,
            devices,
            capacity_bytes: convert::capacity("capacity_bytes", capacity_bytes)?,
            snapshot,
            uncertainty,
            ..RunOverrides::default()
        };
        let axes = Arc::new(self.experiment.axes());
        let prepared = py.detach(|| {
            let RunSet { form, cells, .. } = self.experiment.select(&selection)?;
            Ok::<_, LabError>((form, prepare(cells)?))
        });
        let (form, prepared) = prepared.map_err(lab_error)?;
        let prepared = prepared.into_iter();
        let origin = Some(Arc::new(RunQuery { experiment: self.experiment.clone(), selection }));
        let point = |prepared: RunPlan| {
            let name = prepared.cell().workload.generator();
            let generator = generators.iter().find(|known| Some(known.name.as_str()) == name).cloned();
            PyPoint { axes: axes.clone(), form, generator, prepared: Arc::new(prepared), origin: origin.clone() }
        };
        Ok(prepared.map(point).collect())
    }

    /// Run points in parallel, within the available memory, and judge them together.
    ///
    /// Parameters
    /// ----------
    /// points
    ///     Points returned by `points`.
    /// gc_log
    ///     Record a row for each collection.
    /// victim_policy, placement_policy
    ///     Policies that decide instead of the drive and of the workload. Each point gets its own
    ///     deep copy, and points run one after another.
    /// progress
    ///     Function called every 50 ms with the finished share (0 to 1), the number of finished
    ///     points, and the number of points.
    #[pyo3(signature = (points, *, gc_log = false, victim_policy = None, placement_policy = None, progress = None))]
    fn run_points(
        &self,
        py: Python<'_>,
        points: Vec<PyRef<'_, PyPoint>>,
        gc_log: bool,
        victim_policy: Option<&Bound<'_, PyAny>>,
        placement_policy: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyRunResult>> {
        let prepared: Vec<Arc<RunPlan>> = points.iter().map(|point| point.prepared.clone()).collect();
        let mut experiment = self.experiment.clone();
        experiment.devices = Vec::new();
        for point in &prepared {
            let device = &point.cell().key.device;
            if !experiment.devices.contains(device) {
                experiment.devices.push(device.clone());
            }
        }
        let own = self.experiment.run.tail();
        let tail_drive_writes = prepared.first().map_or(own, |point| point.cell().run.tail_drive_writes);
        let how = RunHooks { gc_log, victim_policy, placement_policy, progress };
        let first = points.first().map_or(ExperimentForm::Full, |point| point.form);
        let form = if points.iter().all(|point| point.form == first) { first } else { ExperimentForm::Changed };
        let axes = Arc::new(experiment.axes());
        let origin = common_origin(points.iter().map(|point| &point.origin));
        let results = PyResults::run(py, &axes, tail_drive_writes, &prepared, how, origin)?;
        let (results, intervals) = results.split();
        let result = PyClassInitializer::from(results).add_subclass(PyRunResult { experiment, form, intervals });
        Py::new(py, result)
    }

    fn __repr__(&self) -> String {
        format!("Experiment({:?}: {})", self.experiment.slug, self.experiment.title)
    }
}
