//! The store of results, and what was kept in the user's own.

use std::ffi::CString;
use std::path::PathBuf;

use analysis::export::tables;
use analysis::store::Store;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use crate::convert::warp_error;
use crate::table::Table;

/// A folder of results: where its files are, and how they are written. `warp_ssd.Store` reads them.
#[pyclass(frozen, module = "warp_ssd._engine")]
pub struct StoreFolder {
    store: Store,
}

#[pymethods]
impl StoreFolder {
    #[new]
    fn new(path: PathBuf) -> PyResult<StoreFolder> {
        let store = Store::open(&path).map_err(warp_error)?;
        Ok(StoreFolder { store })
    }

    /// The file of a point, whether it is there or not.
    fn point(&self, key: &str) -> PathBuf {
        self.store.point(key)
    }

    /// Stores the file of a point: whole or not at all.
    fn put_point(&self, py: Python<'_>, key: &str, content: &[u8]) -> PyResult<()> {
        py.detach(|| self.store.put_point(key, content)).map_err(warp_error)
    }
}

/// Runs of the ``warp`` command that were kept, newest first: a row for each.
///
/// Parameters
/// ----------
/// limit
///     How many, at most.
///
/// Raises
/// ------
/// WarpError
///     The store cannot be read.
///
/// Warns
/// -----
/// UserWarning
///     A file in it is no run, and is left out.
#[pyfunction]
#[pyo3(signature = (limit = 20))]
pub fn runs(py: Python<'_>, limit: usize) -> PyResult<Table> {
    let kept = py.detach(|| Store::of_user()?.runs(limit)).map_err(warp_error)?;
    for problem in &kept.unreadable {
        let sentence = CString::new(format!("left out: {problem}")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &sentence, 1)?;
    }
    Ok(tables::kept_runs(&kept.runs).into())
}

/// Puts two results beside each other: a row for each metric of each cell that both have.
///
/// Parameters
/// ----------
/// a, b
///     What is compared with, and what is compared: the short name of a run (`runs`), or the path of a file of
///     ``warp run --json``, of ``warp whatif --json``, of fio (``--output-format=json``) or of ``nvme fdp stats``.
///
/// Returns
/// -------
/// Table
///     Means `a` and `b`, `difference` (b - a) and its `share` of a, the 95 % interval `low` to `high` where both have several
///     seeds, intervals of an ensemble `a_low`, `a_high`, `b_low` and `b_high`, and a `verdict`: ``the same``, ``more``, ``less``,
///     ``no difference``, ``no difference that the model can see`` or ``one seed``.
///
/// Raises
/// ------
/// WarpError
///     One of them is not there or no result, or they have nothing in common.
#[pyfunction]
pub fn compare(py: Python<'_>, a: PathBuf, b: PathBuf) -> PyResult<Table> {
    let [a, b] = [a, b].map(|name| name.display().to_string());
    let comparison = py.detach(|| analysis::compare::find(&a, &b)).map_err(warp_error)?;
    Ok(comparison.columns().into())
}
