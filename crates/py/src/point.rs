//! Points: single runs, complete in themselves.

use std::sync::Arc;

use analysis::fingerprint;
use experiment::cell::Cell;
use experiment::selection::Form;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use simulate::run::{RunPlan, prepare};

use crate::convert::{from_json, key_of, lab_error, warp_error};
use crate::generator::PythonGenerator;
use crate::origin::Origin;
use crate::result::{PointResult, Results, RunHooks};

/// One run of an experiment, with everything that its result depends on. It can be pickled and run elsewhere.
#[pyclass(frozen, module = "warp_ssd")]
pub struct Point {
    pub axes: Arc<Vec<String>>,
    pub form: Form,
    pub prepared: Arc<RunPlan>,
    /// Not of one that was pickled.
    pub origin: Origin,
    /// What makes the requests of its workload, if that is written in Python.
    pub generator: Option<Arc<PythonGenerator>>,
}

impl Point {
    pub fn cell(&self) -> &Cell {
        self.prepared.cell()
    }
}

/// A point as it is pickled: its cell as JSON, and the workload if that is a function of Python.
type Pickled = (String, Option<Py<PyAny>>);

#[pymethods]
impl Point {
    /// From what pickling made of one.
    #[new]
    #[pyo3(signature = (pickled, workload = None))]
    fn new(py: Python<'_>, pickled: &str, workload: Option<&Bound<'_, PyAny>>) -> PyResult<Point> {
        let (axes, form, cell): (Vec<String>, Form, Cell) = serde_json::from_str(pickled).map_err(warp_error)?;
        // Under the name that it had, which its results are kept under.
        let name = cell.workload.generator().map(str::to_string);
        let generator = workload
            .map(|workload| PythonGenerator::new(workload, name))
            .transpose()?;
        let mut prepared = py.detach(|| prepare(vec![cell])).map_err(lab_error)?;
        Ok(Point {
            axes: Arc::new(axes),
            form,
            prepared: Arc::new(prepared.remove(0)),
            origin: None,
            generator,
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Pickled)> {
        let point = slf.get();
        let pickled = serde_json::to_string(&(&*point.axes, point.form, point.cell())).expect("a cell serializes");
        let generator = point.generator.as_ref();
        let workload = generator.map(|generator| generator.callable().clone_ref(slf.py()));
        Ok((slf.getattr("__class__")?, (pickled, workload)))
    }

    /// What distinguishes it within its experiment: ``device``, ``variant`` ("" without variants), and a value for each axis.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        key_of(py, &self.axes, &self.cell().key)
    }

    /// Its seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.cell().seed
    }

    /// What its workload is called: the name of its file without folder and ending, or its kind.
    #[getter]
    fn workload(&self) -> &str {
        &self.cell().workload_name
    }

    /// Bytes of memory that its run needs.
    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.prepared.memory_bytes
    }

    /// Hash of its complete input, 64 hexadecimal digits: points with the same hash give the same bytes.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     A file that the workload reads cannot be read.
    #[getter]
    fn hash(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| fingerprint::hash(self.cell())).map_err(warp_error)
    }

    /// Its complete input: the resolved device and workload, the settings of the run, the seed, and the version of results. Files
    /// that the workload reads are there by a digest of their contents.
    #[getter]
    fn input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &py.detach(|| fingerprint::input(self.cell())).map_err(warp_error)?)
    }

    /// Runs it.
    ///
    /// Parameters
    /// ----------
    /// gc_log
    ///     Keep a row for each collection.
    /// victim_policy, placement_policy
    ///     Decide instead of the drive and of the workload; a deep copy of them does.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     There is too little memory, or a file that the workload reads is wrong.
    #[pyo3(signature = (*, gc_log = false, victim_policy = None, placement_policy = None))]
    fn run(
        &self,
        py: Python<'_>,
        gc_log: bool,
        victim_policy: Option<&Bound<'_, PyAny>>,
        placement_policy: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PointResult>> {
        let how = RunHooks {
            gc_log,
            victim_policy,
            placement_policy,
            progress: None,
        };
        let tail_capacities = self.cell().run.tail_capacities;
        let results = Results::run(
            py,
            &self.axes,
            tail_capacities,
            std::slice::from_ref(&self.prepared),
            how,
            self.origin.clone(),
        )?;
        Py::new(py, PyClassInitializer::from(results).add_subclass(PointResult))
    }

    fn __repr__(&self) -> String {
        format!("Point({} | seed {})", self.cell().key, self.cell().seed)
    }
}
