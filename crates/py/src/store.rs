//! The store of results: point files of sweeps, and the runs in the user's own store.

use std::ffi::CString;
use std::path::PathBuf;

use analysis::export::tables;
use analysis::store::ResultStore;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use crate::convert::warp_error;
use crate::table::PyTable;

/// A folder of results: paths of its files, and atomic writes. `warp_ssd.Store` reads them.
#[pyclass(frozen, name = "StoreFolder", module = "warp_ssd._engine")]
pub struct PyStoreFolder {
    store: ResultStore,
}

#[pymethods]
impl PyStoreFolder {
    #[new]
    fn new(path: PathBuf) -> PyResult<PyStoreFolder> {
        let store = ResultStore::open(&path).map_err(warp_error)?;
        Ok(PyStoreFolder { store })
    }

    /// Return the path of a point's file, even if it does not exist.
    fn point(&self, key: &str) -> PathBuf {
        self.store.point(key)
    }

    /// Store the file of a point, atomically.
    fn put_point(&self, py: Python<'_>, key: &str, content: &[u8]) -> PyResult<()> {
        py.detach(|| self.store.put_point(key, content)).map_err(warp_error)
    }
}

/// List stored runs of the ``warp`` command, newest first, a row for each.
///
/// Parameters
/// ----------
/// limit
///     Maximum number of runs.
///
/// Raises
/// ------
/// WarpError
///     The store cannot be read.
///
/// Warns
/// -----
/// UserWarning
///     A file in the store is not a run, and is skipped.
#[pyfunction]
#[pyo3(signature = (limit = 20))]
pub fn runs(py: Python<'_>, limit: usize) -> PyResult<PyTable> {
    let stored = py.detach(|| ResultStore::for_user()?.runs(limit)).map_err(warp_error)?;
    for problem in &stored.unreadable {
        let sentence = CString::new(format!("left out: {problem}")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &sentence, 1)?;
    }
    Ok(tables::kept_runs(&stored.runs).into())
}

/// Compare two results: a row for each metric of each cell that both have.
///
/// Parameters
/// ----------
/// a, b
///     The baseline and the result to compare with it. Each is the short name of a run (`runs`), or
///     the path of the output of ``warp run --json``, ``warp whatif --json``, fio
///     (``--output-format=json``) or ``nvme fdp stats``.
///
/// Returns
/// -------
/// Table
///     Means `a` and `b`, `difference` (b - a) and its `share` of a. `low` to `high` is the 95 %
///     interval if both have several seeds. `a_low`, `a_high`, `b_low` and `b_high` are the
///     intervals of an ensemble. The `verdict` is ``the same``, ``more``, ``less``, ``no
///     difference``, ``no difference that the model can see`` or ``one seed``.
///
/// Raises
/// ------
/// WarpError
///     An argument does not exist or is not a result, or the results have no metric in common.
#[pyfunction]
pub fn compare(py: Python<'_>, a: PathBuf, b: PathBuf) -> PyResult<PyTable> {
    let [a, b] = [a, b].map(|name| name.display().to_string());
    let comparison = py.detach(|| analysis::compare::find(&a, &b)).map_err(warp_error)?;
    Ok(comparison.columns().into())
}
