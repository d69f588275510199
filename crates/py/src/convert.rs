//! Conversion of values between Python and the lab: nested settings, errors.

use std::str::FromStr;

use experiment::{CellKey, LabError, RunOptions, find};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde::Serialize;
use workload::WorkloadError;

use crate::WarpError;

/// Converts an error of the engine to a `WarpError` with the same message.
pub fn warp_error(error: impl std::fmt::Display) -> PyErr {
    WarpError::new_err(base::with_short_numbers(&error.to_string()))
}

/// Converts an error of the lab to an exception, with a Python exception that caused it.
pub fn lab_error(error: LabError) -> PyErr {
    let raised = warp_error(&error);
    if let LabError::Workload(WorkloadError::Generator { source, .. }) = error
        && let Ok(cause) = source.downcast::<PyErr>()
    {
        Python::attach(|py| raised.set_cause(py, Some(*cause)));
    }
    raised
}

/// A scale, from its denominator as a number or from its text.
pub fn scale<T: FromStr<Err = String>>(scale: &Bound<'_, PyAny>) -> PyResult<T> {
    scale.str()?.to_str()?.parse().map_err(WarpError::new_err)
}

/// The capacity of a drive in bytes or as text such as "5TB". `name` is the argument's name.
pub fn capacity(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    let Some(value) = value else {
        return Ok(None);
    };
    let bytes = match value.extract::<String>() {
        Ok(text) => base::size::parse_capacity(&text),
        Err(_) => {
            value.extract::<u64>().map_err(|_| "give bytes as a whole number, or a text such as \"5TB\"".to_string())
        }
    };
    let shown = || value.repr().map_or_else(|_| String::new(), |text| format!(" = {text}"));
    bytes.map(Some).map_err(|problem| warp_error(format!("{name}{}: {problem}", shown())))
}

/// Run options from keyword arguments. An argument of None is ignored.
pub fn run_options(given: Option<&Bound<'_, PyDict>>) -> PyResult<RunOptions> {
    let Some(given) = given else {
        return Ok(RunOptions::default());
    };
    if given.contains("interval")? {
        return Err(warp_error("interval was renamed. Use uncertainty"));
    }
    let py = given.py();
    let options = PyDict::new(py);
    for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
        if value.extract::<f64>().is_ok_and(|number| !number.is_finite()) {
            return Err(warp_error(format!("{name} = {value} is not finite. Give a finite number")));
        }
        let is_text = value.is_instance_of::<PyString>();
        let plain = match is_text || !value.hasattr("__iter__")? {
            true if name.eq("scale")? => value.str()?.into_any(),
            true => value,
            false => py.get_type::<PyList>().call1((value,))?,
        };
        options.set_item(name, plain)?;
    }
    let json: serde_json::Value = serde_json::from_str(&json_of(options.as_any())?).map_err(warp_error)?;
    find::deserialize("run", json).map_err(warp_error)
}

/// Calls a function of `warp_ssd.notebook` or `warp_ssd.plot` with a value.
pub fn render<'py>(value: &Bound<'py, PyAny>, module: &str, function: &str) -> PyResult<Bound<'py, PyAny>> {
    value.py().import(module)?.call_method1(function, (value,))
}

/// Nested settings: mappings, lists, text, numbers (also NumPy's) and booleans, without None.
pub fn table(place: &str, settings: &Bound<'_, PyAny>) -> PyResult<toml::Table> {
    read_table(place, &json_of(settings)?)
}

/// Nested settings, with a function `default` that converts values that JSON cannot hold.
pub fn table_with(place: &str, settings: &Bound<'_, PyAny>, default: &Bound<'_, PyAny>) -> PyResult<toml::Table> {
    read_table(place, &to_json(settings, default)?)
}

fn read_table(place: &str, text: &str) -> PyResult<toml::Table> {
    serde_json::from_str(text).map_err(|error| warp_error(format!("{place}: {error}")))
}

/// Converts settings like [`table`]. Returns an empty table for None.
pub fn optional_table(place: &str, settings: Option<&Bound<'_, PyAny>>) -> PyResult<toml::Table> {
    settings.map_or_else(|| Ok(toml::Table::new()), |settings| table(place, settings))
}

fn json_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    // NumPy's numbers are not Python numbers. Their method `item` converts them.
    let operator = value.py().import("operator")?;
    to_json(value, &operator.call_method1("methodcaller", ("item",))?)
}

fn to_json(value: &Bound<'_, PyAny>, default: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item("default", default)?;
    options.set_item("allow_nan", false)?;
    let mapping = py.import("collections.abc")?.getattr("Mapping")?;
    let value = if value.is_instance(&mapping)? { py.get_type::<PyDict>().call1((value,))? } else { value.clone() };
    py.import("json")?.call_method("dumps", (value,), Some(&options))?.extract()
}

/// Converts a value to dictionaries, lists, text and numbers.
pub fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    from_json(py, &serde_json::to_string(value).expect("the value is JSON"))
}

/// Converts JSON text like [`to_python`].
pub fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// Coordinates of a cell by name: device, variant, and its value on each axis.
pub fn key_of<'py>(py: Python<'py>, axes: &[String], cell: &CellKey) -> PyResult<Bound<'py, PyDict>> {
    let key = PyDict::new(py);
    key.set_item("device", &cell.device)?;
    key.set_item("variant", &cell.variant)?;
    for (axis, value) in axes.iter().zip(&cell.grid) {
        key.set_item(axis, value)?;
    }
    Ok(key)
}

/// A name or path, or None if the value has another type.
pub fn path_or_name(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(name) = value.extract::<String>() {
        return Ok(Some(name));
    }
    if !value.hasattr("__fspath__")? {
        return Ok(None);
    }
    value.call_method0("__fspath__")?.extract().map(Some)
}
