//! Workloads written in Python, as the lab's.
//!
//! ```text
//! callable(Target) -> iterable -> next() -> request | arrays -> 16384 requests at a time -> workload::Source
//! ```
//!
//! The interpreter's lock is taken once for as many requests. Arrays that a generator yields are read where they are until
//! it is asked for the next ones. An exception of a generator, and a value that is no request, ends the run with a sentence
//! that names generator, block and index.

mod block;
mod source;
mod target;

use std::sync::{Arc, Mutex, PoisonError};

use applications::generator::{Generator, register};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyIterator, PyString, PyTuple};
use workload::{Source, Target, WorkloadError};

use crate::convert::{path_or_name, table_with};
use source::PythonSource;
pub use target::WorkloadTarget;

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
        let shown = WorkloadTarget::new(*target, mapping_unit_bytes, seed);
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
        let iterator = begun.map_err(|error| source::raised(format!("workload {label}"), error))?;
        Ok(Box::new(PythonSource::new(label, iterator, target)))
    }

    fn memory_bytes(&self) -> u64 {
        source::MEMORY_BYTES
    }
}
