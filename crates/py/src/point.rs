//! The class `Point`: a single run with its complete input.

use std::sync::Arc;

use analysis::fingerprint;
use experiment::{ExperimentForm, RunSpec};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use simulate::run::{RunPlan, prepare};

use crate::convert::{from_json, key_of, lab_error, warp_error};
use crate::generator::PythonGenerator;
use crate::result::{PointArguments, PyPointResult, PyResults, RunHooks};

/// One run of an experiment, with its complete input. It can be pickled and run elsewhere.
#[pyclass(frozen, name = "Point", module = "warp_ssd")]
pub struct PyPoint {
    pub axes: Arc<Vec<String>>,
    pub form: ExperimentForm,
    pub prepared: Arc<RunPlan>,
    pub origin: PointArguments,
    /// Generator of the requests, if the workload is written in Python.
    pub generator: Option<Arc<PythonGenerator>>,
}

impl PyPoint {
    pub fn cell(&self) -> &RunSpec {
        self.prepared.cell()
    }
}

/// A pickled point: its cell as JSON, and the workload if it is a Python function.
type Pickled = (String, Option<Py<PyAny>>);

#[pymethods]
impl PyPoint {
    /// Restore a pickled point.
    #[new]
    #[pyo3(signature = (pickled, workload = None))]
    fn new(py: Python<'_>, pickled: &str, workload: Option<&Bound<'_, PyAny>>) -> PyResult<PyPoint> {
        let (axes, form, cell): (Vec<String>, ExperimentForm, RunSpec) =
            serde_json::from_str(pickled).map_err(warp_error)?;
        // Keep its earlier name, because results are stored under the name.
        let name = cell.workload.generator().map(str::to_string);
        let generator = workload.map(|workload| PythonGenerator::new(workload, name)).transpose()?;
        let mut prepared = py.detach(|| prepare(vec![cell])).map_err(lab_error)?;
        Ok(PyPoint { axes: Arc::new(axes), form, prepared: Arc::new(prepared.remove(0)), origin: None, generator })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Pickled)> {
        let point = slf.get();
        let pickled = serde_json::to_string(&(&*point.axes, point.form, point.cell())).expect("a cell serializes");
        let generator = point.generator.as_ref();
        let workload = generator.map(|generator| generator.callable.clone_ref(slf.py()));
        Ok((slf.getattr("__class__")?, (pickled, workload)))
    }

    /// Coordinates within its experiment: ``device``, ``variant`` ("" without variants), and a
    /// value for each axis.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        key_of(py, &self.axes, &self.cell().key)
    }

    /// Seed of the run.
    #[getter]
    fn seed(&self) -> u64 {
        self.cell().seed
    }

    /// Name of its workload: the file name without folder and extension, or the kind.
    #[getter]
    fn workload(&self) -> &str {
        &self.cell().workload_name
    }

    /// Bytes of memory that the run needs.
    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.prepared.memory_bytes
    }

    /// Hash of the complete input, 64 hexadecimal digits. Equal hashes mean identical results.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     A file of the workload cannot be read.
    #[getter]
    fn hash(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| fingerprint::hash(self.cell())).map_err(warp_error)
    }

    /// Complete input: the resolved device and workload, the settings of the run, the seed, and the
    /// version of results. Digests stand for the contents of the workload's files.
    #[getter]
    fn input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &py.detach(|| fingerprint::input(self.cell())).map_err(warp_error)?)
    }

    /// Run the point.
    ///
    /// Parameters
    /// ----------
    /// gc_log
    ///     Record a row for each collection.
    /// victim_policy, placement_policy
    ///     Policies that decide instead of the drive and of the workload. The run uses deep copies.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     The system has too little memory, or a file of the workload is invalid.
    #[pyo3(signature = (*, gc_log = false, victim_policy = None, placement_policy = None))]
    fn run(
        &self,
        py: Python<'_>,
        gc_log: bool,
        victim_policy: Option<&Bound<'_, PyAny>>,
        placement_policy: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyPointResult>> {
        let how = RunHooks { gc_log, victim_policy, placement_policy, progress: None };
        let tail = self.cell().run.tail_drive_writes;
        let prepared = std::slice::from_ref(&self.prepared);
        let results = PyResults::run(py, &self.axes, tail, prepared, how, self.origin.clone())?;
        Py::new(py, PyClassInitializer::from(results).add_subclass(PyPointResult))
    }

    fn __repr__(&self) -> String {
        format!("Point({} | seed {})", self.cell().key, self.cell().seed)
    }
}
