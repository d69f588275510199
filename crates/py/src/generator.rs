//! Workloads written in Python, as the lab's.
//!
//! ```text
//! callable(Target) -> iterable -> next() -> request | arrays -> 16384 requests at a time -> workload::Source
//! ```
//!
//! The interpreter's lock is taken once for as many requests. Arrays that a generator yields are read where they are until
//! it is asked for the next ones. An exception of a generator, and a value that is no request, ends the run with a sentence
//! that names generator, block and index.

use std::sync::{Arc, Mutex, PoisonError};

use applications::generator::{Generator, register};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyInt, PyIterator, PyList, PyMapping, PySlice, PyString, PyTuple};
use workload::{Next, Operation, PacedHost, PlacementIndex, Request, Source, TaggedRequest, Target, WorkloadError};

use crate::convert::{path_or_name, table_with};
use crate::policy::NO_PLACEMENT;

/// Requests that are made of what a generator yields while the interpreter's lock is held once.
const REQUESTS_AT_ONCE: usize = 16 << 10;
/// Blocks without a request that may follow each other.
const EMPTY_BLOCKS_MAX: usize = 1 << 16;
/// Requests with times of their own that are in flight at most.
const IN_FLIGHT_MAX: u16 = 1024;
/// What a source takes for each request that is ready.
const READY_BYTES: u64 = (size_of::<Request>() + size_of::<u64>()) as u64;

/// Fields of a request, in the order in which tuples have them; the last two may be left out.
const FIELDS: [&str; 5] = ["operation", "offset", "bytes", "placement", "time"];
/// Fields that every request has.
const FIELDS_MIN: usize = 3;

/// A workload in Python: the callable that makes its requests.
pub struct PythonGenerator {
    /// Under which the lab knows it.
    name: String,
    callable: Py<PyAny>,
}

impl PythonGenerator {
    /// Makes a callable known to the lab; `name` is what it was called elsewhere, if it comes from there.
    pub fn new(callable: &Bound<'_, PyAny>, name: Option<String>) -> PyResult<Arc<PythonGenerator>> {
        let py = callable.py();
        let name = match name {
            Some(name) => name,
            None => {
                let named = py
                    .import("warp_ssd.fingerprint")?
                    .call_method1("workload_name", (callable,))?;
                named.extract()?
            }
        };
        let generator = Arc::new(PythonGenerator {
            name,
            callable: callable.clone().unbind(),
        });
        let shared: Arc<dyn Generator> = generator.clone();
        register(&generator.name, &shared);
        Ok(generator)
    }

    /// The name of a workload; if it is a callable, of the generator that is made of it, which the caller has to keep.
    pub fn name_of(workload: &Bound<'_, PyAny>, kept: &mut Generators) -> PyResult<String> {
        if !workload.is_callable() {
            return path_or_name(workload)?.ok_or_else(|| {
                let kind = workload
                    .get_type()
                    .name()
                    .map(|name| name.to_string())
                    .unwrap_or_default();
                PyTypeError::new_err(format!(
                    "workload: give a name, a path or a function that makes requests, not {kind}"
                ))
            });
        }
        let generator = PythonGenerator::new(workload, None)?;
        let name = generator.name.clone();
        kept.push(generator);
        Ok(name)
    }

    /// What it is called in the lab.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The function, or whatever else makes the requests.
    pub fn callable(&self) -> &Py<PyAny> {
        &self.callable
    }
}

/// Generators that the lab knows for as long as they are kept.
pub type Generators = Vec<Arc<PythonGenerator>>;

/// As [`table`](crate::convert::table), with functions in the place of the workloads that they make; the caller has to keep these.
pub fn table_of_workloads(
    place: &str,
    settings: &Bound<'_, PyAny>,
    generators: &mut Generators,
) -> PyResult<toml::Table> {
    let py = settings.py();
    let found = Arc::new(Mutex::new(Generators::new()));
    let kept = found.clone();
    let name = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<Py<PyAny>> {
        let value = arguments.get_item(0)?;
        if !value.is_callable() {
            return Ok(value.call_method0("item")?.unbind());
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let name = PythonGenerator::name_of(&value, &mut kept)?;
        Ok(PyString::new(value.py(), &name).into_any().unbind())
    };
    let default = PyCFunction::new_closure(py, None, None, name)?;
    let table = table_with(place, settings, &default)?;
    generators.append(&mut found.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(table)
}

impl Generator for PythonGenerator {
    fn source(&self, target: &Target, mapping_unit_bytes: u64, seed: u64) -> Result<Box<dyn Source>, WorkloadError> {
        let label = self.name.split('#').next().unwrap_or_default().to_string();
        let shown = WorkloadTarget {
            target: *target,
            mapping_unit_bytes,
            seed,
        };
        let begun = Python::attach(|py| -> PyResult<Py<PyIterator>> {
            // What it remembers from one run must not change the next.
            let copy = py.import("copy")?.call_method1("deepcopy", (&self.callable,))?;
            let iterable = copy.call1((shown,))?;
            let kind = iterable.get_type().name()?;
            let iterator = iterable.try_iter().map_err(|_| {
                PyTypeError::new_err(format!(
                    "returned {kind}; yield requests, or return an iterable of them"
                ))
            });
            Ok(iterator?.unbind())
        });
        let iterator = begun.map_err(|error| raised(format!("workload {label}"), error))?;
        Ok(Box::new(PythonSource {
            label,
            iterator,
            capacity_bytes: target.capacity_bytes(),
            placement_count: target.placement_count,
            is_endless: target.endless,
            block: None,
            blocks: 0,
            ready: Vec::new(),
            times: Vec::new(),
            given: 0,
            has_times: None,
            last_time: 0,
            failure: None,
            exhausted: false,
            tags: (0..IN_FLIGHT_MAX).rev().collect(),
        }))
    }

    fn memory_bytes(&self) -> u64 {
        // A block of arrays may follow single requests, and ends with what is left of it.
        2 * REQUESTS_AT_ONCE as u64 * READY_BYTES
    }
}

/// An exception of Python, where it was raised.
fn raised(place: String, error: PyErr) -> WorkloadError {
    WorkloadError::Generator {
        place,
        source: Box::new(error),
    }
}

/// The drive that a workload is made for.
#[pyclass(frozen, name = "Target", module = "warp_ssd")]
pub struct WorkloadTarget {
    target: Target,
    /// Bytes of the drive's mapping unit: smaller writes cost as much as one.
    #[pyo3(get)]
    mapping_unit_bytes: u64,
    /// Seed of the point; random numbers that are drawn from it are others for each seed.
    #[pyo3(get)]
    seed: u64,
}

#[pymethods]
impl WorkloadTarget {
    /// Bytes that requests may use. On a twin they are the twin's.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.target.capacity_bytes()
    }

    /// Number of placement indices, from 0; 0 for a drive without FDP, which ignores them.
    #[getter]
    fn placement_count(&self) -> u16 {
        self.target.placement_count
    }

    /// How many times smaller than its drive the twin is; 1 for the drive itself.
    #[getter]
    fn scale(&self) -> u64 {
        self.target.denominator()
    }

    /// Whether the run decides when enough is written. Otherwise the workload has to end by itself.
    #[getter]
    fn endless(&self) -> bool {
        self.target.endless
    }

    /// The length of a request that has so many bytes on the drive itself: on a twin less, in whole mapping units, at least
    /// one.
    fn request_bytes(&self, bytes: u64) -> u64 {
        self.target.request_bytes(bytes)
    }

    fn __repr__(&self) -> String {
        format!(
            "Target(capacity_bytes={}, mapping_unit_bytes={}, placement_count={}, seed={}, scale={}, endless={})",
            self.capacity_bytes(),
            self.mapping_unit_bytes,
            self.placement_count(),
            self.seed,
            self.scale(),
            if self.target.endless { "True" } else { "False" }
        )
    }
}

/// A field of a block: one value for all of its requests, or an array with a value for each.
enum Field {
    One(i64),
    Each(Py<PyAny>),
}

/// The fields of what a generator yielded.
struct Block {
    /// Of fields that are not there, none.
    fields: [Option<Field>; FIELDS.len()],
    requests: usize,
    /// Requests that were made of it.
    taken: usize,
}

/// The requests of a Python iterable.
struct PythonSource {
    label: String,
    iterator: Py<PyIterator>,
    capacity_bytes: u64,
    placement_count: u16,
    is_endless: bool,
    /// Arrays of which some are left.
    block: Option<Block>,
    /// Blocks that were yielded.
    blocks: u64,
    /// Requests that are made, with their times if they have any, and how many of them were given.
    ready: Vec<Request>,
    times: Vec<u64>,
    given: usize,
    /// Whether requests have times; not known before the first block.
    has_times: Option<bool>,
    last_time: u64,
    /// What the first block was refused with, before anybody could be told.
    failure: Option<WorkloadError>,
    /// Nothing more comes from Python.
    exhausted: bool,
    /// Of requests in flight, those that no request has.
    tags: Vec<u16>,
}

/// Why a block is refused, and the request of it whose fault that is, if it is one's.
struct Refusal {
    index: Option<usize>,
    cause: Cause,
}

enum Cause {
    /// A value that says nothing that can be done.
    Problem(String),
    /// Python raised.
    Raised(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Refusal {
        Refusal {
            index: None,
            cause: Cause::Raised(error),
        }
    }
}

impl From<String> for Refusal {
    fn from(problem: String) -> Refusal {
        Refusal {
            index: None,
            cause: Cause::Problem(problem),
        }
    }
}

/// A request that is none.
fn refused(index: usize, problem: String) -> Refusal {
    Refusal {
        index: Some(index),
        cause: Cause::Problem(problem),
    }
}

/// A value, or why it is refused.
type Checked<T> = Result<T, Refusal>;

impl PythonSource {
    /// Makes the next requests ready; false if there are none.
    fn refill(&mut self) -> Result<bool, WorkloadError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.ready.clear();
        self.times.clear();
        self.given = 0;
        if self.exhausted {
            return Ok(false);
        }
        let made = Python::attach(|py| self.make(py));
        if let Err(Refusal { index, cause }) = made {
            self.ready.clear();
            self.exhausted = true;
            let index = index.map_or(String::new(), |index| format!(", index {index}"));
            let place = format!(
                "workload {}, block {}{index}",
                self.label,
                self.blocks.saturating_sub(1)
            );
            return Err(match cause {
                Cause::Problem(problem) => WorkloadError::setting(place, problem),
                Cause::Raised(error) => raised(place, error),
            });
        }
        Ok(!self.ready.is_empty())
    }

    /// Takes blocks until there are requests enough for once, or arrays end.
    fn make(&mut self, py: Python<'_>) -> Checked<()> {
        let mut without_request = 0;
        while self.ready.len() < REQUESTS_AT_ONCE {
            if let Some(mut block) = self.block.take() {
                self.take_from(py, &mut block)?;
                self.block = (block.taken < block.requests).then_some(block);
                continue;
            }
            let mut iterator = self.iterator.bind(py).clone();
            // The place of an exception is the block that it is raised in the place of.
            self.blocks += 1;
            let Some(block) = iterator.next() else {
                self.exhausted = true;
                return Ok(());
            };
            let block = block?;
            if let Ok(tuple) = block.cast::<PyTuple>()
                && let Some(request) = single(tuple)?
            {
                self.accept(&request, 0)?;
                without_request = 0;
                continue;
            }
            let block = Block::of(&block)?;
            without_request = if block.requests == 0 { without_request + 1 } else { 0 };
            if without_request > EMPTY_BLOCKS_MAX {
                let problem = format!(
                    "more than {EMPTY_BLOCKS_MAX} blocks without a request follow each other; end the generator instead"
                );
                return Err(problem.into());
            }
            self.block = Some(block);
        }
        Ok(())
    }

    /// Makes requests of some of a block.
    fn take_from(&mut self, py: Python<'_>, block: &mut Block) -> Checked<()> {
        let count = (block.requests - block.taken).min(REQUESTS_AT_ONCE);
        let range = block.taken..block.taken + count;
        let rows: Vec<Option<Row<'_>>> = block
            .fields
            .iter()
            .zip(FIELDS)
            .map(|(field, name)| field.as_ref().map(|field| field.rows(py, name, &range)).transpose())
            .collect::<Checked<_>>()?;
        let [operation, offset, bytes, placement, time] = <[Option<Row<'_>>; FIELDS.len()]>::try_from(rows)
            .unwrap_or_else(|_| unreachable!("there are as many rows as fields"));
        let values = [&operation, &offset, &bytes].map(|row| row.as_ref().expect("every request has it").values());
        let [placement, time] = [&placement, &time].map(|row| row.as_ref().map(Row::values));
        let [operation, offset, bytes] = values;
        for index in 0..count {
            let request = [
                Some(operation.at(index)),
                Some(offset.at(index)),
                Some(bytes.at(index)),
                placement.as_ref().map(|values| values.at(index)),
                time.as_ref().map(|values| values.at(index)),
            ];
            self.accept(&request, block.taken + index)?;
        }
        block.taken += count;
        Ok(())
    }

    /// Adds a request, of which these are the fields, if it is one.
    #[inline]
    fn accept(&mut self, fields: &[Option<i64>; FIELDS.len()], index: usize) -> Checked<()> {
        let [Some(operation), Some(offset), Some(bytes), placement, time] = *fields else {
            unreachable!("every request has an operation, an offset and a length");
        };
        let operation = match operation {
            0 => Operation::Read,
            1 => Operation::Write,
            2 => Operation::Trim,
            other => {
                let problem = format!("operation {other} is not known; give 0 (read), 1 (write) or 2 (deallocate)");
                return Err(refused(index, problem));
            }
        };
        let Some(length) = u32::try_from(bytes).ok().filter(|length| *length > 0) else {
            return Err(refused(index, format!("bytes {bytes}: must be 1 to {}", u32::MAX)));
        };
        let is_inside = u64::try_from(offset).is_ok_and(|offset| {
            offset
                .checked_add(u64::from(length))
                .is_some_and(|end| end <= self.capacity_bytes)
        });
        if !is_inside {
            let problem = format!(
                "offset {offset} with {bytes} bytes is not on the drive, which has {} bytes; keep within target.capacity_bytes",
                self.capacity_bytes
            );
            return Err(refused(index, problem));
        }
        let placement = match placement {
            Some(placement) if placement != i64::from(NO_PLACEMENT) => self.placement(placement, index)?,
            _ => None,
        };
        if *self.has_times.get_or_insert(time.is_some()) != time.is_some() {
            let (has, others) = if time.is_some() {
                ("has a time", "have none")
            } else {
                ("has no time", "have one")
            };
            let problem = format!("{has}, but requests before it {others}; give all of them one, or none");
            return Err(refused(index, problem));
        }
        if let Some(time) = time {
            let at = u64::try_from(time).ok().filter(|at| *at >= self.last_time);
            let at = at.ok_or_else(|| {
                let problem = format!(
                    "time {time} comes after {}; give nanoseconds that do not fall",
                    self.last_time
                );
                refused(index, problem)
            })?;
            self.last_time = at;
            self.times.push(at);
        }
        self.ready.push(Request {
            stream: 0,
            operation,
            offset_bytes: offset as u64,
            bytes: length,
            placement: placement.filter(|_| operation == Operation::Write),
        });
        Ok(())
    }

    /// A placement index, if the drive has it; of a drive without FDP none.
    #[inline]
    fn placement(&self, placement: i64, index: usize) -> Checked<Option<PlacementIndex>> {
        let count = self.placement_count;
        match u16::try_from(placement) {
            Ok(_) if count == 0 => Ok(None),
            Ok(placement) if placement < count => Ok(Some(PlacementIndex(placement))),
            _ => Err(refused(
                index,
                format!(
                    "placement {placement}: the drive has 0 to {}, and NO_PLACEMENT",
                    count.saturating_sub(1)
                ),
            )),
        }
    }
}

impl Source for PythonSource {
    fn next_batch(&mut self, requests: &mut Vec<Request>, limit: usize) -> Result<usize, WorkloadError> {
        let mut given = 0;
        while given < limit {
            if self.given == self.ready.len() && !self.refill()? {
                break;
            }
            let count = (self.ready.len() - self.given).min(limit - given);
            requests.extend_from_slice(&self.ready[self.given..self.given + count]);
            self.given += count;
            given += count;
        }
        Ok(given)
    }

    fn streams(&self) -> Vec<String> {
        vec![self.label.clone()]
    }

    fn share_done(&self) -> Option<f64> {
        (!self.is_endless).then_some(0.0)
    }

    fn paced(&mut self) -> Option<&mut dyn PacedHost> {
        if self.has_times.is_none() {
            self.failure = self.refill().err();
        }
        match self.has_times {
            Some(true) => Some(self),
            _ => None,
        }
    }
}

/// Requests at their own times: an open loop, as far as so many can be in flight.
impl PacedHost for PythonSource {
    fn act(&mut self, now_ns: u64, requests: &mut Vec<TaggedRequest>) -> Result<Next, WorkloadError> {
        loop {
            if self.given == self.ready.len() && !self.refill()? {
                let is_idle = self.tags.len() == usize::from(IN_FLIGHT_MAX);
                return Ok(if is_idle { Next::Never } else { Next::Completion });
            }
            let due_ns = self.times[self.given];
            if due_ns > now_ns {
                return Ok(Next::At(due_ns));
            }
            let Some(tag) = self.tags.pop() else {
                return Ok(Next::Completion);
            };
            let request = self.ready[self.given];
            self.given += 1;
            requests.push(TaggedRequest { tag, request });
        }
    }

    fn completed(&mut self, tag: u16) {
        self.tags.push(tag);
    }

    fn depth(&self) -> u64 {
        IN_FLIGHT_MAX.into()
    }
}

/// The fields of a tuple that is a single request; none if one of them is an array.
fn single(tuple: &Bound<'_, PyTuple>) -> Checked<Option<[Option<i64>; FIELDS.len()]>> {
    check_length(tuple.len())?;
    let mut fields = [None; FIELDS.len()];
    for (index, value) in tuple.iter_borrowed().enumerate() {
        if is_array(&value)? {
            return Ok(None);
        }
        fields[index] = scalar(index, &value)?;
    }
    Ok(Some(fields))
}

fn check_length(fields: usize) -> Checked<()> {
    if (FIELDS_MIN..=FIELDS.len()).contains(&fields) {
        return Ok(());
    }
    let problem =
        format!("has {fields} fields; give (operation, offset, bytes), and then placement and time if there are any");
    Err(problem.into())
}

/// Whether a field has a value for each request: an array of NumPy with a dimension, or a list.
fn is_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyString>() || value.is_none() {
        return Ok(false);
    }
    if value.is_instance_of::<PyList>() {
        return Ok(true);
    }
    let dimensions = value.getattr_opt(intern!(py, "ndim"))?;
    dimensions.map_or(Ok(false), |dimensions| Ok(dimensions.extract::<usize>()? > 0))
}

/// A single value of a field; none if it says nothing.
fn scalar(field: usize, value: &Bound<'_, PyAny>) -> Checked<Option<i64>> {
    if value.is_none() && field >= FIELDS_MIN {
        return Ok(None);
    }
    if let Ok(word) = value.cast::<PyString>()
        && field == 0
    {
        return Ok(Some(operation(word.to_str()?)?));
    }
    // NumPy's integers are none of Python's, but say what they are.
    let number = value.call_method0(intern!(value.py(), "__index__"));
    let number = number.and_then(|number| number.extract::<i64>());
    number.map(Some).map_err(|_| {
        let shown = value.repr().map(|text| text.to_string()).unwrap_or_default();
        format!("{} {shown} is no integer of at most 63 bits", FIELDS[field]).into()
    })
}

/// The number of an operation by its name.
fn operation(word: &str) -> Result<i64, String> {
    match word {
        "read" => Ok(0),
        "write" => Ok(1),
        "deallocate" | "trim" => Ok(2),
        other => Err(format!(
            "operation {other:?} is not known; give \"read\", \"write\" or \"deallocate\""
        )),
    }
}

impl Block {
    /// The fields of a structured array, a mapping from their names, or a tuple of them in their order.
    fn of(yielded: &Bound<'_, PyAny>) -> Checked<Block> {
        let py = yielded.py();
        let names = match yielded.getattr_opt(intern!(py, "dtype"))? {
            Some(dtype) => dtype.getattr(intern!(py, "names"))?.extract::<Option<Vec<String>>>()?,
            None => None,
        };
        if let Some(names) = names {
            let rows = py.import("numpy")?.call_method1("atleast_1d", (yielded,))?;
            let field = |name: String| Ok((rows.get_item(&name)?, name));
            return Block::named(names.into_iter().map(field).collect::<PyResult<_>>()?);
        }
        if let Ok(tuple) = yielded.cast::<PyTuple>() {
            check_length(tuple.len())?;
            let named = tuple.iter().zip(FIELDS.map(str::to_string));
            return Block::named(named.collect());
        }
        if let Ok(mapping) = yielded.cast::<PyMapping>() {
            let items = mapping.items()?;
            let named = items.iter().map(|item| {
                let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
                Ok((value, name))
            });
            return Block::named(named.collect::<PyResult<_>>()?);
        }
        let kind = yielded.get_type().name()?;
        let problem = format!(
            "is {kind}; yield a tuple ({}), a dictionary of these, or a structured array with these fields",
            FIELDS.join(", ")
        );
        Err(problem.into())
    }

    fn named(values: Vec<(Bound<'_, PyAny>, String)>) -> Checked<Block> {
        let mut fields = [const { None }; FIELDS.len()];
        let mut requests: Option<(usize, &str)> = None;
        for (value, name) in &values {
            let Some(index) = FIELDS.iter().position(|field| field == name) else {
                let problem = format!("{name} is no field of a request; there are {}", FIELDS.join(", "));
                return Err(problem.into());
            };
            if !is_array(value)? {
                fields[index] = scalar(index, value)?.map(Field::One);
                continue;
            }
            let array = checked_array(FIELDS[index], value)?;
            let length = array.len()?;
            if let Some((other_length, other)) = requests
                && other_length != length
            {
                let problem =
                    format!("{name} has {length} values and {other} has {other_length}; give as many of each");
                return Err(problem.into());
            }
            requests = Some((length, FIELDS[index]));
            fields[index] = Some(Field::Each(array.unbind()));
        }
        if let Some(missing) = FIELDS[..FIELDS_MIN]
            .iter()
            .zip(&fields)
            .find(|(_, field)| field.is_none())
        {
            let problem = format!(
                "has no {}; every request has {}",
                missing.0,
                FIELDS[..FIELDS_MIN].join(", ")
            );
            return Err(problem.into());
        }
        Ok(Block {
            fields,
            requests: requests.map_or(1, |(length, _)| length),
            taken: 0,
        })
    }
}

/// Values as an array of integers with one dimension.
fn checked_array<'py>(field: &str, values: &Bound<'py, PyAny>) -> Checked<Bound<'py, PyAny>> {
    let array = values.py().import("numpy")?.call_method1("asarray", (values,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !["i", "u", "b"].contains(&kind.as_str()) && array.len()? > 0 {
        let dtype = array.getattr("dtype")?.str()?;
        return Err(format!("{field} is an array of {dtype}; give integers").into());
    }
    let dimensions: usize = array.getattr("ndim")?.extract()?;
    if dimensions != 1 {
        return Err(format!("{field} has {dimensions} dimensions; give one").into());
    }
    Ok(array)
}

/// Values of a field for some requests.
enum Row<'py> {
    One(i64),
    Each(PyReadonlyArray1<'py, i64>),
}

/// The values of a [`Row`], to be read by index.
#[derive(Clone, Copy)]
enum RowValues<'a> {
    One(i64),
    Each(&'a [i64]),
}

impl Field {
    /// Its values for some of the block's requests.
    fn rows<'py>(&self, py: Python<'py>, name: &str, range: &std::ops::Range<usize>) -> Checked<Row<'py>> {
        let array = match self {
            Field::One(value) => return Ok(Row::One(*value)),
            Field::Each(array) => array.bind(py),
        };
        let part = array.get_item(PySlice::new(py, range.start as isize, range.end as isize, 1))?;
        let options = PyDict::new(py);
        options.set_item(intern!(py, "dtype"), intern!(py, "int64"))?;
        let part = py
            .import("numpy")?
            .call_method("ascontiguousarray", (part,), Some(&options))?;
        let part = part.cast_into::<PyArray1<i64>>().map_err(PyErr::from)?.readonly();
        if part.len()? != range.len() {
            let problem = format!(
                "{name} has become shorter since it was yielded; leave arrays as they are until the next block"
            );
            return Err(problem.into());
        }
        Ok(Row::Each(part))
    }
}

impl Row<'_> {
    fn values(&self) -> RowValues<'_> {
        match self {
            Row::One(value) => RowValues::One(*value),
            Row::Each(array) => RowValues::Each(array.as_slice().expect("it was made contiguous")),
        }
    }
}

impl RowValues<'_> {
    #[inline]
    fn at(&self, index: usize) -> i64 {
        match self {
            RowValues::One(value) => *value,
            RowValues::Each(values) => values[index],
        }
    }
}
