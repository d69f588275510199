//! Blocks of requests that a generator yields: tuples, mappings and arrays.

use std::ops::Range;

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyMapping, PySlice, PyString, PyTuple};

/// Fields of a request, in the order of a tuple. The last two are optional.
pub(super) const FIELDS: [&str; 5] = ["operation", "offset", "bytes", "placement", "time"];
/// Number of fields that every request has.
const FIELDS_MIN: usize = 3;

/// A field of a block: one value for all of its requests, or an array with a value for each.
pub(super) enum Field {
    One(i64),
    Each(Py<PyAny>),
}

/// The fields of a yielded value.
pub(super) struct RequestBlock {
    /// Fields in the order of [`FIELDS`]. `None` for missing ones.
    pub(super) fields: [Option<Field>; FIELDS.len()],
    pub(super) requests: usize,
    /// Number of requests already made from the block.
    pub(super) taken: usize,
}

/// Reason to refuse a block, with the index of the faulty request if only one is at fault.
pub(super) struct BlockError {
    pub(super) index: Option<usize>,
    pub(super) cause: Cause,
}

pub(super) enum Cause {
    /// An invalid value.
    Problem(String),
    /// A Python exception.
    Raised(PyErr),
}

impl From<PyErr> for BlockError {
    fn from(error: PyErr) -> BlockError {
        BlockError { index: None, cause: Cause::Raised(error) }
    }
}

impl From<String> for BlockError {
    fn from(problem: String) -> BlockError {
        BlockError { index: None, cause: Cause::Problem(problem) }
    }
}

/// Refuses the request at an index.
pub(super) fn error_at(index: usize, problem: String) -> BlockError {
    BlockError { index: Some(index), cause: Cause::Problem(problem) }
}

/// A value or a refusal.
pub(super) type BlockResult<T> = Result<T, BlockError>;

/// The fields of a tuple with a single request. `None` if a field is an array.
pub(super) fn single(tuple: &Bound<'_, PyTuple>) -> BlockResult<Option<[Option<i64>; FIELDS.len()]>> {
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

fn check_length(fields: usize) -> BlockResult<()> {
    if (FIELDS_MIN..=FIELDS.len()).contains(&fields) {
        return Ok(());
    }
    let problem = format!("has {fields} fields. Give (operation, offset, bytes), and optionally placement and time");
    Err(problem.into())
}

/// True if a field has a value for each request, as a NumPy array with a dimension or as a list.
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

/// A single value of a field. `None` stands for a missing value.
fn scalar(field: usize, value: &Bound<'_, PyAny>) -> BlockResult<Option<i64>> {
    if value.is_none() && field >= FIELDS_MIN {
        return Ok(None);
    }
    if let Ok(word) = value.cast::<PyString>()
        && field == 0
    {
        return Ok(Some(operation(word.to_str()?)?));
    }
    // NumPy's integers are not Python integers. Their method `__index__` converts them.
    let number = value.call_method0(intern!(value.py(), "__index__"));
    let number = number.and_then(|number| number.extract::<i64>());
    number.map(Some).map_err(|_| {
        let shown = value.repr().map(|text| text.to_string()).unwrap_or_default();
        format!("{} {shown} is not an integer of at most 63 bits", FIELDS[field]).into()
    })
}

/// The number of an operation by its name.
fn operation(word: &str) -> Result<i64, String> {
    match word {
        "read" => Ok(0),
        "write" => Ok(1),
        "deallocate" | "trim" => Ok(2),
        other => Err(format!("operation {other:?} is unknown. Give \"read\", \"write\" or \"deallocate\"")),
    }
}

impl RequestBlock {
    /// Reads the fields of a structured array, a mapping, or a tuple in the order of [`FIELDS`].
    pub(super) fn from_python(yielded: &Bound<'_, PyAny>) -> BlockResult<RequestBlock> {
        let py = yielded.py();
        let names = match yielded.getattr_opt(intern!(py, "dtype"))? {
            Some(dtype) => dtype.getattr(intern!(py, "names"))?.extract::<Option<Vec<String>>>()?,
            None => None,
        };
        if let Some(names) = names {
            let rows = py.import("numpy")?.call_method1("atleast_1d", (yielded,))?;
            let field = |name: String| Ok((rows.get_item(&name)?, name));
            return RequestBlock::named(names.into_iter().map(field).collect::<PyResult<_>>()?);
        }
        if let Ok(tuple) = yielded.cast::<PyTuple>() {
            check_length(tuple.len())?;
            let named = tuple.iter().zip(FIELDS.map(str::to_string));
            return RequestBlock::named(named.collect());
        }
        if let Ok(mapping) = yielded.cast::<PyMapping>() {
            let items = mapping.items()?;
            let named = items.iter().map(|item| {
                let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
                Ok((value, name))
            });
            return RequestBlock::named(named.collect::<PyResult<_>>()?);
        }
        let kind = yielded.get_type().name()?;
        let problem = format!(
            "is {kind}. Yield a tuple ({}), a dictionary of these, or a structured array with these fields",
            FIELDS.join(", ")
        );
        Err(problem.into())
    }

    fn named(values: Vec<(Bound<'_, PyAny>, String)>) -> BlockResult<RequestBlock> {
        let mut fields = [const { None }; FIELDS.len()];
        let mut requests: Option<(usize, &str)> = None;
        for (value, name) in &values {
            let Some(index) = FIELDS.iter().position(|field| field == name) else {
                let problem = format!("{name} is not a field of a request. Give {}", FIELDS.join(", "));
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
                    format!("{name} has {length} values, but {other} has {other_length}. Give the same number of each");
                return Err(problem.into());
            }
            requests = Some((length, FIELDS[index]));
            fields[index] = Some(Field::Each(array.unbind()));
        }
        if let Some(missing) = FIELDS[..FIELDS_MIN].iter().zip(&fields).find(|(_, field)| field.is_none()) {
            let problem = format!("has no {}. Give every request {}", missing.0, FIELDS[..FIELDS_MIN].join(", "));
            return Err(problem.into());
        }
        Ok(RequestBlock { fields, requests: requests.map_or(1, |(length, _)| length), taken: 0 })
    }
}

/// Values as a one-dimensional array of integers.
fn checked_array<'py>(field: &str, values: &Bound<'py, PyAny>) -> BlockResult<Bound<'py, PyAny>> {
    let array = values.py().import("numpy")?.call_method1("asarray", (values,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !["i", "u", "b"].contains(&kind.as_str()) && array.len()? > 0 {
        let dtype = array.getattr("dtype")?.str()?;
        return Err(format!("{field} is an array of {dtype}. Give integers").into());
    }
    let dimensions: usize = array.getattr("ndim")?.extract()?;
    if dimensions != 1 {
        return Err(format!("{field} has {dimensions} dimensions. Give one").into());
    }
    Ok(array)
}

/// Values of a field for some requests.
pub(super) enum FieldRow<'py> {
    One(i64),
    Each(PyReadonlyArray1<'py, i64>),
}

/// Values of a [`FieldRow`] for access by index.
#[derive(Clone, Copy)]
pub(super) enum FieldValues<'a> {
    One(i64),
    Each(&'a [i64]),
}

impl Field {
    /// Values of this field for a range of requests.
    pub(super) fn rows<'py>(&self, py: Python<'py>, name: &str, range: &Range<usize>) -> BlockResult<FieldRow<'py>> {
        let array = match self {
            Field::One(value) => return Ok(FieldRow::One(*value)),
            Field::Each(array) => array.bind(py),
        };
        let part = array.get_item(PySlice::new(py, range.start as isize, range.end as isize, 1))?;
        let options = PyDict::new(py);
        options.set_item(intern!(py, "dtype"), intern!(py, "int64"))?;
        let part = py.import("numpy")?.call_method("ascontiguousarray", (part,), Some(&options))?;
        let part = part.cast_into::<PyArray1<i64>>().map_err(PyErr::from)?.readonly();
        if part.len()? != range.len() {
            let problem =
                format!("{name} became shorter after it was yielded. Do not change arrays before the next block");
            return Err(problem.into());
        }
        Ok(FieldRow::Each(part))
    }
}

impl FieldRow<'_> {
    pub(super) fn values(&self) -> FieldValues<'_> {
        match self {
            FieldRow::One(value) => FieldValues::One(*value),
            FieldRow::Each(array) => FieldValues::Each(array.as_slice().expect("it was made contiguous")),
        }
    }
}

impl FieldValues<'_> {
    #[inline]
    pub(super) fn at(&self, index: usize) -> i64 {
        match self {
            FieldValues::One(value) => *value,
            FieldValues::Each(values) => values[index],
        }
    }
}
