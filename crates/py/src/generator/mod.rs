//! Workloads written in Python, as workload sources of the lab.
//!
//! ```text
//! callable(Target) -> iterable -> next() -> request | arrays -> 16384 requests -> workload::Source
//! ```
//!
//! A source takes the interpreter's lock once per 16384 requests. It reads a yielded array in
//! place, until it calls the generator for the next block. An exception of a generator ends the
//! run, and so does a value that is not a request. The message names generator, block and index.

mod block;
mod source;
mod target;

use std::sync::{Arc, Mutex, PoisonError};

use applications::generator::{RequestGenerator, register};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyIterator, PyString, PyTuple};
use workload::{RequestSource, WorkloadError, WorkloadTarget};

use crate::convert::{path_or_name, table_with};
use source::PythonSource;
pub use target::PyWorkloadTarget;

/// A workload in Python: the callable that makes its requests.
pub struct PythonGenerator {
    /// Name by which the lab knows it.
    pub name: String,
    pub callable: Py<PyAny>,
}

impl PythonGenerator {
    /// Registers a callable with the lab. `name` is its earlier name if it was pickled.
    pub fn new(callable: &Bound<'_, PyAny>, name: Option<String>) -> PyResult<Arc<PythonGenerator>> {
        let py = callable.py();
        let name = match name {
            Some(name) => name,
            None => {
                let named = py.import("warp_ssd.fingerprint")?.call_method1("workload_name", (callable,))?;
                named.extract()?
            }
        };
        let generator = Arc::new(PythonGenerator { name, callable: callable.clone().unbind() });
        let shared: Arc<dyn RequestGenerator> = generator.clone();
        register(&generator.name, &shared);
        Ok(generator)
    }

    /// Returns the name of a workload. For a callable this is the name of a new generator, which
    /// the caller has to keep in `kept`.
    pub fn name_of(workload: &Bound<'_, PyAny>, kept: &mut GeneratorRegistry) -> PyResult<String> {
        if !workload.is_callable() {
            return path_or_name(workload)?.ok_or_else(|| {
                let kind = workload.get_type().name().map(|name| name.to_string()).unwrap_or_default();
                PyTypeError::new_err(format!(
                    "workload cannot be {kind}. Give a name, a path or a function that makes requests"
                ))
            });
        }
        let generator = PythonGenerator::new(workload, None)?;
        let name = generator.name.clone();
        kept.push(generator);
        Ok(name)
    }
}

/// Generators that the lab can find as long as they are in this list.
pub type GeneratorRegistry = Vec<Arc<PythonGenerator>>;

/// Converts settings like [`table`](crate::convert::table), and registers functions that stand in
/// the place of workloads. The caller has to keep the generators.
pub fn table_of_workloads(
    place: &str,
    settings: &Bound<'_, PyAny>,
    generators: &mut GeneratorRegistry,
) -> PyResult<toml::Table> {
    let py = settings.py();
    let found = Arc::new(Mutex::new(GeneratorRegistry::new()));
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

impl RequestGenerator for PythonGenerator {
    fn source(
        &self,
        target: &WorkloadTarget,
        mapping_unit_bytes: u64,
        seed: u64,
    ) -> Result<Box<dyn RequestSource>, WorkloadError> {
        let label = self.name.split('#').next().unwrap_or_default().to_string();
        let shown = PyWorkloadTarget::new(*target, mapping_unit_bytes, seed);
        let begun = Python::attach(|py| -> PyResult<Py<PyIterator>> {
            // A copy, because the state that it keeps from a run must not change the next one.
            let copy = py.import("copy")?.call_method1("deepcopy", (&self.callable,))?;
            let iterable = copy.call1((shown,))?;
            let kind = iterable.get_type().name()?;
            let iterator = iterable.try_iter().map_err(|_| {
                PyTypeError::new_err(format!("returned {kind}. Yield requests, or return an iterable of them"))
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
