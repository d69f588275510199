//! The Python extension `warp_ssd._engine`: the lab and the device model in-process.
//!
//! ```text
//! Python values -> convert -> experiment, simulate (runs), ssd (a device) -> Arrow, NumPy arrays, text
//!                        \-> studio (a server for notebooks)
//! ```
//!
//! This crate is a layer without logic. It converts arguments and results, releases the
//! interpreter's lock while the engine works, handles Ctrl-C, and turns errors into exceptions with
//! the engine's message. `python/warp_ssd/_engine.pyi` has the types of the extension. All code
//! that can be written in Python is in `python/warp_ssd`.

mod convert;
mod device;
mod experiment;
mod generator;
mod interrupt;
mod lifetimes;
mod point;
mod policy;
mod result;
mod store;
mod studio;
mod table;
mod whatif;

use std::ffi::OsString;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    warp_ssd,
    WarpError,
    PyValueError,
    "Error that the user can correct. The message names the place, the problem and the remedy."
);

/// Names of the device profiles, both in ``./devices`` and built in.
#[pyfunction]
fn devices() -> Vec<String> {
    ::experiment::profile::Profile::names()
}

/// Names of the experiments, both in ``./experiments`` and built in.
#[pyfunction]
fn experiments() -> Vec<String> {
    ::experiment::definition::Experiment::names()
}

/// Names of the workloads: job files in ``./jobs``, tables in ``./workloads``, and those built in.
#[pyfunction]
fn workloads() -> Vec<String> {
    let mut names = [::experiment::workloads::job_names(), ::experiment::workloads::workload_names()].concat();
    names.sort();
    names
}

/// Return a device profile as nested dictionaries of plain values, without sources. `PyDevice`
/// accepts this form.
///
/// Parameters
/// ----------
/// name
///     Name or path of the profile.
///
/// Raises
/// ------
/// WarpError
///     The profile does not exist, or a value in it is invalid.
#[pyfunction]
fn profile<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let profile = ::experiment::profile::Profile::find(name).map_err(convert::warp_error)?;
    convert::to_python(py, profile.values())
}

/// Return the text of a device profile's file, with its sources.
///
/// Parameters
/// ----------
/// name
///     Name or path of the profile.
#[pyfunction]
fn profile_text(name: &str) -> PyResult<String> {
    ::experiment::profile::Profile::text(name).map_err(convert::warp_error)
}

/// Return the text of an experiment's file.
///
/// Parameters
/// ----------
/// name
///     Name or path of the experiment.
#[pyfunction]
fn experiment_text(name: &str) -> PyResult<String> {
    let found = ::experiment::definition::Experiment::text(name).map_err(convert::warp_error)?;
    Ok(found.text)
}

/// Bytes of memory that runs may use: 90 % of the memory that the system reports as available.
#[pyfunction]
fn memory_available() -> u64 {
    simulate::run::memory_available()
}

/// Run the ``warp`` command and return its exit code. The first argument is the command's name. The
/// call may end the process.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| cli::main(arguments))
}

/// The native module of `warp_ssd`.
#[pymodule]
mod _engine {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        WarpError, command,
        device::{PyDevice, PyStats},
        devices,
        experiment::PyExperiment,
        experiment_text, experiments,
        generator::PyWorkloadTarget,
        lifetimes::{PyLifetimes, measure},
        memory_available,
        point::PyPoint,
        policy::{PyCandidates, PyRequests},
        profile, profile_text,
        result::{PyPointResult, PyResults, PyRunResult},
        store::{PyStoreFolder, compare, runs},
        studio::{PyStudioServer, studio_order, studio_order_of_experiment, studio_order_of_runs, studio_widget},
        table::{PyTable, frames},
        whatif::{PyAnswer, whatif},
        workloads,
    };

    /// Adds the module's constants.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("NO_PLACEMENT", super::policy::NO_PLACEMENT)
    }
}
