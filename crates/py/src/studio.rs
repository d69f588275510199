//! The studio in this process: its server, the widget for notebooks, and session orders for
//! results, points and experiments.
//!
//! ```text
//! Result, PointResult, Points, Experiment, JSON -> studio::run_query -> SessionSpec and its files
//!     -> Python -> widget
//! StudioServer: studio::Studio on loopback, on its own threads, never under the interpreter's lock
//! ```

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use studio::run_query::{GrantedSpec, RunKey};
use studio::{SessionSpec, Studio, StudioOptions};
use target::http::HttpOptions;

use crate::convert::{self, optional_table, to_python, warp_error};
use crate::experiment::PyExperiment;
use crate::point::PyPoint;
use crate::result::{PyResults, common_origin};

/// The studio's server on this machine. Clients need the token.
#[pyclass(frozen, name = "StudioServer", module = "warp_ssd")]
pub struct PyStudioServer {
    address: SocketAddr,
    studio: Mutex<Option<Studio>>,
}

impl PyStudioServer {
    fn studio(&self) -> std::sync::MutexGuard<'_, Option<Studio>> {
        self.studio.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyStudioServer {
    /// Start the server on a free loopback port.
    #[new]
    fn new(py: Python<'_>, token: String) -> PyResult<PyStudioServer> {
        let mut http = HttpOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        http.token = Some(token);
        let started = py.detach(|| Studio::start(StudioOptions::new(http)));
        let studio = started.map_err(warp_error)?;
        Ok(PyStudioServer { address: studio.local_address(), studio: Mutex::new(Some(studio)) })
    }

    /// URL of the server.
    #[getter]
    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Allow sessions to run these files, in addition to the catalogue.
    fn grant(&self, files: Vec<PathBuf>) {
        if let Some(studio) = &*self.studio() {
            studio.grant(&files);
        }
    }

    /// Stop the server and its sessions. A second call has no effect.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| {
            let studio = self.studio().take();
            if let Some(studio) = studio {
                studio.stop();
            }
        });
    }

    fn __repr__(&self) -> String {
        format!("StudioServer({})", self.url())
    }
}

/// Return the JavaScript module of the notebook widget (anywidget), or None if this build lacks it.
#[pyfunction]
pub fn studio_widget() -> Option<String> {
    studio::assets::widget()
}

/// Converts an order to Python, with its files.
fn spec_to_python<'py>(py: Python<'py>, made: &GrantedSpec) -> PyResult<(Bound<'py, PyAny>, Vec<PathBuf>)> {
    Ok((to_python(py, &made.spec)?, made.files.clone()))
}

const NO_ORIGIN: &str = "studio cannot show these points, because their experiment and options are unknown. Make \
                         all points with one call of Experiment.points in this process";

const NO_PYTHON: &str = "studio cannot show runs with a policy or a workload in Python. Show runs without them";

/// Return the session order for finished runs or for points, with the files that it names.
///
/// Raises
/// ------
/// WarpError
///     A session cannot show the runs. The message names the reason.
#[pyfunction]
pub fn studio_order_of_runs<'py>(
    py: Python<'py>,
    runs: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Vec<PathBuf>)> {
    if let Ok(results) = runs.cast::<PyResults>() {
        let results = results.get();
        if results.has_policies {
            return Err(warp_error(NO_PYTHON));
        }
        let origin = results.origin.clone().ok_or_else(|| warp_error(NO_ORIGIN))?;
        let cells = results.cells.iter();
        let runs: Vec<RunKey<'_>> =
            cells.map(|cell| RunKey { key: &cell.key, seed: cell.seed, scale: Some(cell.scale) }).collect();
        return spec_to_python(py, &py.detach(|| origin.order(&runs)).map_err(warp_error)?);
    }
    let points: Vec<PyRef<'py, PyPoint>> = runs.extract()?;
    if points.iter().any(|point| point.generator.is_some()) {
        return Err(warp_error(NO_PYTHON));
    }
    let origin = common_origin(points.iter().map(|point| &point.origin)).ok_or_else(|| warp_error(NO_ORIGIN))?;
    let plans: Vec<_> = points.iter().map(|point| point.prepared.clone()).collect();
    let found = py.detach(|| {
        let cells = plans.iter().map(|plan| plan.cell());
        let runs: Vec<RunKey<'_>> = cells.map(|cell| RunKey { key: &cell.key, seed: cell.seed, scale: None }).collect();
        origin.order(&runs)
    });
    spec_to_python(py, &found.map_err(warp_error)?)
}

/// Return the session order for an experiment, a lane for each variant, and its files.
#[pyfunction]
#[pyo3(signature = (experiment, *, device = None, overrides = None, **options))]
pub fn studio_order_of_experiment<'py>(
    py: Python<'py>,
    experiment: &Bound<'py, PyExperiment>,
    device: Option<String>,
    overrides: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<(Bound<'py, PyAny>, Vec<PathBuf>)> {
    let experiment = experiment.get();
    if !experiment.generators.is_empty() {
        return Err(warp_error(NO_PYTHON));
    }
    let order = SessionSpec { device, run: convert::run_options(options)?, ..SessionSpec::default() };
    let set = optional_table("overrides", overrides)?;
    let found = GrantedSpec::from_experiment(&experiment.experiment, order, &set);
    spec_to_python(py, &found.map_err(warp_error)?)
}

/// Parse an order from JSON and return it with all defaults filled in.
#[pyfunction]
pub fn studio_order<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    let found = SessionSpec::parse(json.as_bytes()).and_then(GrantedSpec::new);
    Ok(spec_to_python(py, &found.map_err(warp_error)?)?.0)
}
