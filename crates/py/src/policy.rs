//! Policies written in Python, as the engine's.
//!
//! ```text
//! Candidates of the device -> NumPy arrays -> policy.select -> position -> reclaim unit
//! batch of requests        -> NumPy arrays -> policy.place  -> placement identifiers
//! ```
//!
//! An exception of a policy is kept and ends the run ([`Shared::failure`]); until it has ended the device collects without the policy.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lab::policy::PlacementPolicy;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};
use ssd::RuId;
use ssd::gc::{Candidates as DeviceCandidates, Random, VictimPolicy};
use workload::Request;

/// "No placement identifier" in arrays: the write goes where the drive puts writes without a directive.
pub const NO_PLACEMENT: u16 = u16::MAX;

/// What the policies of a run cost, and why one failed.
#[derive(Default)]
pub struct Shared {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<PyErr>>,
}

impl Shared {
    /// Times a call; keeps its exception, after which nothing is called any more.
    fn call<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.failed() {
            return None;
        }
        let begun = Instant::now();
        let answer = Python::attach(call);
        self.nanoseconds
            .fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
        answer.map_err(|error| self.fail(error)).ok()
    }

    fn fail(&self, error: PyErr) {
        *self.failure.lock().expect("nobody panics with it") = Some(error);
        self.failed.store(true, Ordering::Release);
    }

    /// Whether a policy has failed.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Raises the exception of a policy, once.
    pub fn raise(&self) -> PyResult<()> {
        let failure = self.failure.lock().expect("nobody panics with it").take();
        self.failed.store(false, Ordering::Release);
        failure.map_or(Ok(()), Err)
    }

    /// How often policies were asked.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How long they took, with everything that it takes to ask them.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9
    }
}

/// A copy of a policy for a run of its own: what it remembers from one run must not change the next.
pub fn copied(policy: &Py<PyAny>, shared: &Shared) -> Py<PyAny> {
    Python::attach(|py| {
        let copy = py
            .import("copy")
            .and_then(|copy| copy.call_method1("deepcopy", (policy,)));
        match copy {
            Ok(copy) => copy.unbind(),
            Err(error) => {
                shared.fail(error);
                policy.clone_ref(py)
            }
        }
    })
}

/// Refuses what is no policy before a run begins.
pub fn check(policy: Option<&Bound<'_, PyAny>>, argument: &str, method: &str) -> PyResult<()> {
    match policy {
        Some(policy) if !policy.hasattr(method)? => {
            let kind = policy.get_type().name()?;
            let problem = format!("{argument} must have a method {method}; {kind} has none");
            Err(PyTypeError::new_err(problem))
        }
        _ => Ok(()),
    }
}

fn array<T: numpy::Element>(py: Python<'_>, values: Vec<T>) -> Py<PyArray1<T>> {
    values.into_pyarray(py).unbind()
}

/// The reclaim units that a decision is about: arrays with an entry for each, in a reproducible but no particular order.
///
/// Times are counted in pages that the host has written to the drive.
#[pyclass(frozen, get_all, module = "warp_ssd")]
pub struct Candidates {
    /// Number of the reclaim unit.
    unit: Py<PyArray1<i64>>,
    /// Valid pages in it: what collecting it copies.
    valid_pages: Py<PyArray1<i64>>,
    /// Its size in pages; more than `valid_pages`.
    pages: Py<PyArray1<i64>>,
    /// The reclaim unit handle whose data it holds; -1 is the pool that copies of initially isolated handles share.
    handle: Py<PyArray1<i64>>,
    /// Time since a page was last written to it.
    age: Py<PyArray1<i64>>,
    /// Time since one of its pages was last invalidated.
    since_invalidation: Py<PyArray1<i64>>,
    /// Number of reclaim units that were closed before it.
    closed_sequence: Py<PyArray1<i64>>,
    /// Pages that the host has written to the drive.
    host_pages_written: u64,
    /// Whether this is background collection, whose candidates are at most as full as `gc.lazy_valid_share`.
    lazy: bool,
}

#[pymethods]
impl Candidates {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.unit.bind(py).as_any().len()
    }
}

/// Columns of [`Candidates`].
const COLUMNS: usize = 7;

/// The memory of the arrays of candidates. A decision takes over that of the one before, unless the policy has kept its arrays: fresh
/// memory for each decision would cost more than all the rest.
#[derive(Default)]
pub struct Buffer {
    /// A row for each column, and how many references there are to it while no arrays are.
    rows: Option<(Py<PyArray2<i64>>, usize)>,
    /// The candidates by position.
    units: Vec<RuId>,
}

impl Buffer {
    /// Rows with room for the units.
    fn rows<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let references = |rows: &Bound<'py, PyArray2<i64>>| -> PyResult<usize> {
            py.import("sys")?.call_method1("getrefcount", (rows,))?.extract()
        };
        if let Some((rows, unused)) = &self.rows {
            let rows = rows.bind(py);
            if rows.shape()[1] >= self.units.len() && references(rows)? == *unused {
                return Ok(rows.clone());
            }
        }
        let length = self.units.len().next_power_of_two();
        let rows = PyArray2::zeros(py, [COLUMNS, length], false);
        self.rows = Some((rows.clone().unbind(), references(&rows)? - 1));
        Ok(rows)
    }

    fn candidates(&mut self, py: Python<'_>, candidates: &DeviceCandidates<'_>) -> PyResult<Candidates> {
        let rows = self.rows(py)?;
        let length = rows.shape()[1];
        let now = candidates.host_pages_written();
        let mut writable = rows.readwrite();
        let mut columns = writable.as_slice_mut()?.chunks_exact_mut(length);
        let columns: [&mut [i64]; COLUMNS] = std::array::from_fn(|_| columns.next().expect("as many rows as columns"));
        let [
            numbers,
            valid_pages,
            pages,
            handles,
            ages,
            since_invalidation,
            closed_sequence,
        ] = columns;
        for (position, &unit) in self.units.iter().enumerate() {
            let state = candidates.unit(unit);
            numbers[position] = i64::from(unit.0);
            valid_pages[position] = i64::from(state.valid_pages());
            pages[position] = i64::from(state.pages());
            handles[position] = state.owner().handle().map_or(-1, |handle| i64::from(handle.0));
            ages[position] = (now - state.last_write()) as i64;
            since_invalidation[position] = (now - state.last_invalidation()) as i64;
            closed_sequence[position] = state.closed_sequence() as i64;
        }
        drop(writable);
        let within = PySlice::new(py, 0, self.units.len() as isize, 1);
        let view = |row: usize| -> PyResult<Py<PyArray1<i64>>> {
            let view = rows.get_item((row, &within))?;
            Ok(view.cast_into::<PyArray1<i64>>()?.unbind())
        };
        Ok(Candidates {
            unit: view(0)?,
            valid_pages: view(1)?,
            pages: view(2)?,
            handle: view(3)?,
            age: view(4)?,
            since_invalidation: view(5)?,
            closed_sequence: view(6)?,
            host_pages_written: now,
            lazy: candidates.is_lazy(),
        })
    }
}

/// A `VictimPolicy` of Python.
pub struct PythonVictimPolicy {
    pub policy: Py<PyAny>,
    pub shared: Arc<Shared>,
    pub buffer: Buffer,
}

impl VictimPolicy for PythonVictimPolicy {
    fn select(&mut self, candidates: &DeviceCandidates<'_>, _random: &mut Random) -> Option<RuId> {
        let PythonVictimPolicy { policy, shared, buffer } = self;
        buffer.units.clear();
        buffer.units.extend(candidates.iter());
        if buffer.units.is_empty() {
            return None;
        }
        let position = shared.call(|py| {
            let candidates = buffer.candidates(py, candidates)?;
            let chosen = policy.bind(py).call_method1("select", (candidates,))?;
            position(&chosen, buffer.units.len())
        });
        position.flatten().map(|position| buffer.units[position])
    }
}

/// The position that `select` has returned; None for none.
fn position(chosen: &Bound<'_, PyAny>, candidates: usize) -> PyResult<Option<usize>> {
    if chosen.is_none() {
        return Ok(None);
    }
    // NumPy's integers, such as those of argmin, are none of Python's, but say what they are.
    let index = chosen
        .call_method0("__index__")
        .and_then(|index| index.extract::<i64>());
    let index = index.map_err(|_| {
        let kind = chosen
            .get_type()
            .name()
            .map(|name| name.to_string())
            .unwrap_or_default();
        PyTypeError::new_err(format!("select must return a position or None, not {kind}"))
    })?;
    let position = usize::try_from(index).ok().filter(|position| *position < candidates);
    let problem = || PyIndexError::new_err(format!("select returned {index}; there are {candidates} candidates"));
    position.map(Some).ok_or_else(problem)
}

/// The next requests of a workload: arrays with an entry for each, in their order.
#[pyclass(frozen, get_all, module = "warp_ssd")]
pub struct Requests {
    /// First logical page (in mapping units of the drive).
    first: Py<PyArray1<i64>>,
    /// Logical pages that it touches.
    pages: Py<PyArray1<i64>>,
    /// 0 reads, 1 writes, 2 deallocates.
    operation: Py<PyArray1<u8>>,
    /// The placement identifier that the workload says; `NO_PLACEMENT` for none.
    placement: Py<PyArray1<u16>>,
    /// Number of the workload's stream that issues it.
    stream: Py<PyArray1<u16>>,
}

#[pymethods]
impl Requests {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.first.bind(py).as_any().len()
    }
}

impl Requests {
    fn of(py: Python<'_>, requests: &[Request], page_bytes: u64) -> Requests {
        let end = |request: &Request| (request.offset_bytes + u64::from(request.bytes)).div_ceil(page_bytes);
        let first = |request: &Request| request.offset_bytes / page_bytes;
        let all = || requests.iter();
        Requests {
            first: array(py, all().map(|request| first(request) as i64).collect()),
            pages: array(
                py,
                all().map(|request| (end(request) - first(request)) as i64).collect(),
            ),
            operation: array(py, all().map(|request| request.operation as u8).collect()),
            placement: array(
                py,
                all().map(|request| request.placement.unwrap_or(NO_PLACEMENT)).collect(),
            ),
            stream: array(py, all().map(|request| request.stream).collect()),
        }
    }
}

/// A `PlacementPolicy` of Python.
pub struct PythonPlacementPolicy {
    pub policy: Py<PyAny>,
    pub shared: Arc<Shared>,
}

impl PlacementPolicy for PythonPlacementPolicy {
    fn place(
        &mut self,
        requests: &[Request],
        page_bytes: u64,
        placements: &mut Vec<Option<u16>>,
    ) -> Result<(), String> {
        let PythonPlacementPolicy { policy, shared } = self;
        let placed = shared.call(|py| {
            let arrays = Requests::of(py, requests, page_bytes);
            let answer = policy.bind(py).call_method1("place", (arrays,))?;
            take_placements(&answer, requests.len(), placements)
        });
        placed.ok_or_else(|| "has failed".to_string())
    }
}

/// Takes over what `place` has returned, a placement identifier for each request.
fn take_placements(answer: &Bound<'_, PyAny>, requests: usize, placements: &mut Vec<Option<u16>>) -> PyResult<()> {
    let answer = integers("place must return integers", answer)?;
    let answer = answer.as_array();
    if answer.len() != requests {
        let returned = answer.len();
        let problem = format!("place returned {returned} placement identifiers for {requests} requests");
        return Err(PyValueError::new_err(problem));
    }
    for &placement in answer {
        let index = u16::try_from(placement).map_err(|_| {
            let problem = format!("place returned placement identifier {placement}; give 0 to 65534, or NO_PLACEMENT");
            PyValueError::new_err(problem)
        })?;
        placements.push((index != NO_PLACEMENT).then_some(index));
    }
    Ok(())
}

/// An integer or an array of them, of any type of integers, as one row.
pub fn integers<'py>(must: &str, values: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, i64>> {
    let numpy = values.py().import("numpy")?;
    let array = numpy.call_method1("atleast_1d", (values,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !["i", "u", "b"].contains(&kind.as_str()) {
        let dtype = array.getattr("dtype")?.str()?;
        return Err(PyTypeError::new_err(format!("{must}, not {dtype}")));
    }
    let options = PyDict::new(values.py());
    options.set_item("dtype", "int64")?;
    let row = numpy
        .call_method("ascontiguousarray", (array,), Some(&options))?
        .call_method0("ravel")?;
    Ok(row.cast_into::<PyArray1<i64>>()?.readonly())
}
