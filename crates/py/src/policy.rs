//! Policies written in Python, as victim and placement policies of the engine.
//!
//! ```text
//! VictimCandidates of the device -> rows -> NumPy arrays -> policy.select -> position -> reclaim unit
//! batch of requests              -> rows -> NumPy arrays -> policy.place  -> placement indices
//! ```
//!
//! Rows are copied once, because a policy may keep its arguments. A NumPy array is made only when a
//! policy reads it.
//!
//! An exception of a policy is stored ([`PolicyCalls::failure`]) and ends the run. Until then the
//! device collects without the policy.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use simulate::policy::{PlacementPolicy, RequestPlacements};
use ssd::RuId;
use ssd::gc::{DeviceRng, VictimCandidates, VictimPolicy};
use workload::{IoRequest, PlacementIndex};

/// Marks writes without a placement index in arrays. The drive places them by default.
pub const NO_PLACEMENT: u16 = u16::MAX;

/// Cost of the policies of a run, and the exception of the first that failed.
#[derive(Default)]
pub struct PolicyCalls {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<PyErr>>,
}

impl PolicyCalls {
    /// Times a call and stores its exception. After an exception, later calls are skipped.
    fn call<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.failed() {
            return None;
        }
        let begun = Instant::now();
        let answer = Python::attach(call);
        self.nanoseconds.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
        answer.map_err(|error| self.fail(error)).ok()
    }

    fn fail(&self, error: PyErr) {
        *self.failure.lock().expect("no thread panics with the lock") = Some(error);
        self.failed.store(true, Ordering::Release);
    }

    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Raises the exception of a policy, once.
    pub fn raise(&self) -> PyResult<()> {
        let failure = self.failure.lock().expect("no thread panics with the lock").take();
        self.failed.store(false, Ordering::Release);
        failure.map_or(Ok(()), Err)
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub fn seconds(&self) -> f64 {
        self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9
    }
}

/// A deep copy of a policy for one run, because its state must not affect the next run.
pub fn copied(policy: &Py<PyAny>, shared: &PolicyCalls) -> Py<PyAny> {
    Python::attach(|py| {
        let copy = py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (policy,)));
        match copy {
            Ok(copy) => copy.unbind(),
            Err(error) => {
                shared.fail(error);
                policy.clone_ref(py)
            }
        }
    })
}

/// Refuses, before a run begins, an object without the method of a policy.
pub fn check(policy: Option<&Bound<'_, PyAny>>, argument: &str, method: &str) -> PyResult<()> {
    match policy {
        Some(policy) if !policy.hasattr(method)? => {
            let kind = policy.get_type().name()?;
            let problem = format!("{argument} must have a method {method}, but {kind} has none");
            Err(PyTypeError::new_err(problem))
        }
        _ => Ok(()),
    }
}

/// A column of a policy's table. The array is made on first access.
struct PolicyColumn<T>(PyOnceLock<Py<PyArray1<T>>>);

impl<T> Default for PolicyColumn<T> {
    fn default() -> PolicyColumn<T> {
        PolicyColumn(PyOnceLock::new())
    }
}

impl<T: numpy::Element> PolicyColumn<T> {
    /// The array, with a value for each row.
    fn build<'py, Row>(&self, py: Python<'py>, rows: &[Row], value: impl Fn(&Row) -> T) -> Bound<'py, PyArray1<T>> {
        let make = || rows.iter().map(value).collect::<Vec<T>>().into_pyarray(py).unbind();
        self.0.get_or_init(py, make).bind(py).clone()
    }
}

/// Attributes of a reclaim unit that a policy can read. Times are the drive's.
struct UnitAttributes {
    number: RuId,
    handle: i32,
    valid_pages: u32,
    pages: u32,
    last_write: u64,
    last_invalidation: u64,
    closed_sequence: u64,
}

impl UnitAttributes {
    fn new(candidates: &VictimCandidates<'_>, number: RuId) -> UnitAttributes {
        let state = candidates.unit(number);
        UnitAttributes {
            number,
            handle: state.owner().handle().map_or(-1, |handle| i32::from(handle.0)),
            valid_pages: state.valid_pages(),
            pages: state.pages(),
            last_write: state.last_write(),
            last_invalidation: state.last_invalidation(),
            closed_sequence: state.closed_sequence(),
        }
    }
}

/// The reclaim units to choose from: arrays with an entry for each, in reproducible order.
///
/// Times are counted in pages that the host has written. Each array is made on first access.
#[pyclass(frozen, name = "Candidates", module = "warp_ssd")]
pub struct PyCandidates {
    units: Arc<Vec<UnitAttributes>>,
    /// Pages that the host has written to the drive.
    #[pyo3(get)]
    host_pages_written: u64,
    /// True for background collection. Its candidates are at most as full as `gc.lazy_valid_share`.
    #[pyo3(get)]
    lazy: bool,
    columns: [PolicyColumn<i64>; 7],
}

impl PyCandidates {
    fn new(units: Arc<Vec<UnitAttributes>>, candidates: &VictimCandidates<'_>) -> PyCandidates {
        PyCandidates {
            units,
            host_pages_written: candidates.host_pages_written(),
            lazy: candidates.is_lazy(),
            columns: Default::default(),
        }
    }

    fn column<'py>(
        &self,
        py: Python<'py>,
        index: usize,
        value: impl Fn(&UnitAttributes) -> i64,
    ) -> Bound<'py, PyArray1<i64>> {
        self.columns[index].build(py, &self.units, value)
    }
}

#[pymethods]
impl PyCandidates {
    /// Number of the reclaim unit.
    #[getter]
    fn unit<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, 0, |unit| i64::from(unit.number.0))
    }

    /// Valid pages of the unit, which collection would copy.
    #[getter]
    fn valid_pages<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, 1, |unit| i64::from(unit.valid_pages))
    }

    /// Size of the unit in pages. It is always larger than `valid_pages`.
    #[getter]
    fn pages<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, 2, |unit| i64::from(unit.pages))
    }

    /// Reclaim unit handle of the data in the unit. -1 is the shared pool for copies of initially
    /// isolated handles.
    #[getter]
    fn handle<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, 3, |unit| i64::from(unit.handle))
    }

    /// Pages that the host wrote to the drive since the last write of a page in the unit.
    #[getter]
    fn age<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, 4, |unit| (self.host_pages_written - unit.last_write) as i64)
    }

    /// Pages that the host wrote to the drive since the unit was closed, or last lost a 256th of
    /// its pages.
    #[getter]
    fn since_invalidation<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, 5, |unit| (self.host_pages_written - unit.last_invalidation) as i64)
    }

    /// Number of reclaim units that were closed before it.
    #[getter]
    fn closed_sequence<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.column(py, 6, |unit| unit.closed_sequence as i64)
    }

    fn __len__(&self) -> usize {
        self.units.len()
    }
}

/// Empties the rows of the previous table for reuse. Allocates new ones if the policy has kept the
/// table.
fn reuse_rows<Row>(memory: &mut Arc<Vec<Row>>) -> &mut Vec<Row> {
    if Arc::get_mut(memory).is_none() {
        *memory = Arc::default();
    }
    let rows = Arc::get_mut(memory).expect("the reference is unique");
    rows.clear();
    rows
}

/// A `VictimPolicy` written in Python.
pub struct PythonVictimPolicy {
    policy: Py<PyAny>,
    shared: Arc<PolicyCalls>,
    units: Arc<Vec<UnitAttributes>>,
}

impl PythonVictimPolicy {
    pub fn new(policy: Py<PyAny>, shared: Arc<PolicyCalls>) -> PythonVictimPolicy {
        PythonVictimPolicy { policy, shared, units: Arc::default() }
    }
}

impl VictimPolicy for PythonVictimPolicy {
    fn select(&mut self, candidates: &VictimCandidates<'_>, _random: &mut DeviceRng) -> Option<RuId> {
        let PythonVictimPolicy { policy, shared, units } = self;
        candidates.iter().next()?;
        let position = shared.call(|py| {
            reuse_rows(units).extend(candidates.iter().map(|unit| UnitAttributes::new(candidates, unit)));
            let table = PyCandidates::new(units.clone(), candidates);
            let chosen = policy.bind(py).call_method1("select", (table,))?;
            position(&chosen, units.len())
        });
        position.flatten().map(|position| units[position].number)
    }
}

/// The position that `select` returned. `None` selects no unit.
fn position(chosen: &Bound<'_, PyAny>, candidates: usize) -> PyResult<Option<usize>> {
    if chosen.is_none() {
        return Ok(None);
    }
    // NumPy's integers, such as the result of argmin, are not Python integers. Their method
    // `__index__` converts them.
    let index = chosen.call_method0("__index__").and_then(|index| index.extract::<i64>());
    let index = index.map_err(|_| {
        let kind = chosen.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("select must return a position or None, not {kind}"))
    })?;
    let position = usize::try_from(index).ok().filter(|position| *position < candidates);
    let problem = || {
        PyIndexError::new_err(format!(
            "select returned {index}, but there are {candidates} candidates. Return 0 to one less, or None"
        ))
    };
    position.map(Some).ok_or_else(problem)
}

/// The next requests of a workload, in order. Each array is made on first access.
#[pyclass(frozen, name = "Requests", module = "warp_ssd")]
#[derive(Default)]
pub struct PyRequests {
    rows: Arc<Vec<IoRequest>>,
    /// Bits of an address within a logical page.
    page_bits: u32,
    first: PolicyColumn<i64>,
    pages: PolicyColumn<i64>,
    operation: PolicyColumn<u8>,
    placement: PolicyColumn<u16>,
    stream: PolicyColumn<u16>,
}

impl PyRequests {
    fn new(rows: Arc<Vec<IoRequest>>, page_bytes: u64) -> PyRequests {
        assert!(page_bytes.is_power_of_two(), "layouts have pages of 4 to 64 KiB");
        PyRequests { rows, page_bits: page_bytes.trailing_zeros(), ..PyRequests::default() }
    }
}

#[pymethods]
impl PyRequests {
    /// First logical page, in mapping units of the drive.
    #[getter]
    fn first<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let bits = self.page_bits;
        self.first.build(py, &self.rows, |request| (request.offset_bytes >> bits) as i64)
    }

    /// Number of logical pages.
    #[getter]
    fn pages<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let bits = self.page_bits;
        self.pages.build(py, &self.rows, |request| {
            let end = request.offset_bytes + u64::from(request.bytes) + (1 << bits) - 1;
            ((end >> bits) - (request.offset_bytes >> bits)) as i64
        })
    }

    /// Operation: 0 is read, 1 is write, 2 is deallocate.
    #[getter]
    fn operation<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        self.operation.build(py, &self.rows, |request| request.operation as u8)
    }

    /// Placement index of the workload. `NO_PLACEMENT` without one.
    #[getter]
    fn placement<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u16>> {
        let index = |request: &IoRequest| request.placement.map_or(NO_PLACEMENT, |index| index.0);
        self.placement.build(py, &self.rows, index)
    }

    /// Number of the workload's stream that issues the request.
    #[getter]
    fn stream<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u16>> {
        self.stream.build(py, &self.rows, |request| request.stream)
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }
}

/// A `PlacementPolicy` written in Python.
pub struct PythonPlacementPolicy {
    policy: Py<PyAny>,
    shared: Arc<PolicyCalls>,
    rows: Arc<Vec<IoRequest>>,
}

impl PythonPlacementPolicy {
    pub fn new(policy: Py<PyAny>, shared: Arc<PolicyCalls>) -> PythonPlacementPolicy {
        PythonPlacementPolicy { policy, shared, rows: Arc::default() }
    }
}

impl PlacementPolicy for PythonPlacementPolicy {
    fn place(
        &mut self,
        requests: &[IoRequest],
        page_bytes: u64,
        placements: &mut RequestPlacements,
    ) -> Result<(), String> {
        let PythonPlacementPolicy { policy, shared, rows } = self;
        let placed = shared.call(|py| {
            reuse_rows(rows).extend_from_slice(requests);
            let table = PyRequests::new(rows.clone(), page_bytes);
            let answer = policy.bind(py).call_method1("place", (table,))?;
            take_placements(&answer, requests.len(), placements)
        });
        placed.ok_or_else(|| "has failed".to_string())
    }
}

/// Copies the return value of `place`, a placement index for each request.
fn take_placements(answer: &Bound<'_, PyAny>, requests: usize, placements: &mut RequestPlacements) -> PyResult<()> {
    // Common return types are read in place: arrays of uint16, or of NumPy's default integers.
    if let Ok(row) = answer.cast::<PyArray1<u16>>()
        && let Ok(row) = row.try_readonly()
        && let Ok(values) = row.as_slice()
    {
        return take_row(values, requests, placements);
    }
    let row = match answer.cast::<PyArray1<i64>>() {
        Ok(row) => row.readonly(),
        Err(_) => integers("place must return integers", answer)?,
    };
    match row.as_slice() {
        Ok(values) => take_row(values, requests, placements),
        Err(_) => take_row(&row.as_array().to_vec(), requests, placements),
    }
}

fn take_row<T: Copy + Into<i64>>(row: &[T], requests: usize, placements: &mut RequestPlacements) -> PyResult<()> {
    if row.len() != requests {
        let returned = row.len();
        let problem = format!("place returned {returned} placement indices for {requests} requests");
        return Err(PyValueError::new_err(problem));
    }
    let values = || row.iter().map(|&value| -> i64 { value.into() });
    // Minimum and maximum are faster to find than the first invalid value.
    let (least, greatest) = values().fold((0, 0), |(least, greatest), value| (value.min(least), value.max(greatest)));
    for extreme in [least, greatest] {
        if u16::try_from(extreme).is_err() {
            let problem = format!("place returned placement index {extreme}. Return 0 to 65534, or NO_PLACEMENT");
            return Err(PyValueError::new_err(problem));
        }
    }
    placements.extend(values().map(|value| {
        let index = value as u16;
        (index != NO_PLACEMENT).then_some(PlacementIndex(index))
    }));
    Ok(())
}

/// An integer or an array of any integer type, as one row.
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
    let row = numpy.call_method("ascontiguousarray", (array,), Some(&options))?.call_method0("ravel")?;
    Ok(row.cast_into::<PyArray1<i64>>()?.readonly())
}
