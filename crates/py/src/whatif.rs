//! The function `whatif` and its answer: the effect of placement on a workload.

use std::path::PathBuf;

use ::whatif::{Factors, WhatIfAnswer, WhatIfQuestion};
use experiment::Scale;
use pyo3::prelude::*;
use report::PlotLibrary;
use simulate::run::RunProgress;

use crate::convert::{self, lab_error, optional_table, render, to_python, warp_error};
use crate::generator::{GeneratorRegistry, PythonGenerator};
use crate::interrupt::stoppable;
use crate::table::PyTable;

/// Effect of placement on a workload: a sentence, and the numbers behind it.
#[pyclass(frozen, name = "Answer", module = "warp_ssd")]
pub struct PyAnswer {
    answer: WhatIfAnswer,
}

/// Estimate the effect of placement on a workload, as ``warp whatif`` does.
///
/// The runs are no placement, the workload's own, placement by source, and classifiers. Each runs
/// to its end.
///
/// Parameters
/// ----------
/// workload
///     Name or path of a block trace, a job file or a workload. Or a function that makes requests
///     (`warp_ssd.generators`).
/// device
///     Name or path of a device profile.
/// drive_bytes
///     Capacity of the drive, in bytes or as text such as ``"5TB"``. Default: the profile's.
/// over_provisioning
///     Spare flash as a share of the capacity. Default: the profile's.
/// fill
///     Share of the drive that a trace's data fills, if the trace touches only a part of the drive.
/// drive_writes_per_day
///     Multiples of the capacity that the host writes each day. Default: derived from the trace's
///     times, or 1.
/// scale
///     Scale of the model, such as ``64`` or ``"1/64"``. Default: the smallest model that behaves
///     like the drive.
/// drive_writes
///     Maximum bytes that the host writes, in multiples of the capacity. Default: two passes of a
///     trace, or 20.
/// overrides
///     Settings of the device by dotted path. Settings of the workload begin with ``workload.``.
/// seed
///     Seed of device and workload.
/// dollars_per_terabyte, embodied_kg_per_gigabyte
///     Price of the drive, and embodied CO2e of its flash.
/// uncertainty
///     Also run the members of the device's ensemble.
///
/// Raises
/// ------
/// WarpError
///     The workload or device does not exist, or the workload does not fit the drive.
#[pyfunction]
#[pyo3(signature = (workload, device = "ssd_a", *, drive_bytes = None, over_provisioning = None, fill = None,
                    drive_writes_per_day = None, scale = None, drive_writes = None, overrides = None, seed = 1, dollars_per_terabyte = None,
                    embodied_kg_per_gigabyte = None, uncertainty = true))]
#[allow(clippy::too_many_arguments)] // Keyword arguments of Python.
pub fn whatif(
    py: Python<'_>,
    workload: &Bound<'_, PyAny>,
    device: &str,
    drive_bytes: Option<&Bound<'_, PyAny>>,
    over_provisioning: Option<f64>,
    fill: Option<f64>,
    drive_writes_per_day: Option<f64>,
    scale: Option<&Bound<'_, PyAny>>,
    drive_writes: Option<f64>,
    overrides: Option<&Bound<'_, PyAny>>,
    seed: u64,
    dollars_per_terabyte: Option<f64>,
    embodied_kg_per_gigabyte: Option<f64>,
    uncertainty: bool,
) -> PyResult<PyAnswer> {
    // The generators must live until the end of the runs.
    let mut generators = GeneratorRegistry::new();
    let defaults = WhatIfQuestion::new(&PythonGenerator::name_of(workload, &mut generators)?);
    let scale = scale.map(convert::scale::<Scale>);
    let question = WhatIfQuestion {
        device: device.to_string(),
        drive_bytes: convert::capacity("drive_bytes", drive_bytes)?,
        over_provisioning,
        fill,
        drive_writes_per_day,
        scale: scale.transpose()?,
        drive_writes,
        overrides: optional_table("overrides", overrides)?,
        seed,
        factors: Factors {
            dollars_per_terabyte: dollars_per_terabyte.unwrap_or(defaults.factors.dollars_per_terabyte),
            embodied_kg_per_gigabyte: embodied_kg_per_gigabyte.unwrap_or(defaults.factors.embodied_kg_per_gigabyte),
        },
        ..defaults
    };
    let study = py.detach(|| question.study()).map_err(lab_error)?;
    let progress = RunProgress::default();
    let answer = stoppable(py, &progress, || Ok(()), || study.run(uncertainty, &progress))?;
    let answer = answer.map_err(lab_error)?.expect("a stopped run raises before");
    Ok(PyAnswer { answer })
}

#[pymethods]
impl PyAnswer {
    /// The answer in one sentence.
    #[getter]
    fn headline(&self) -> &str {
        &self.answer.headline
    }

    /// Name of the best placement that a host can implement. None if no placement helps.
    #[getter]
    fn best(&self) -> Option<&str> {
        self.answer.best.as_deref()
    }

    /// Name of the best block-level classifier, if it improves on the host placements.
    #[getter]
    fn classifier(&self) -> Option<&str> {
        self.answer.classifier.as_deref()
    }

    /// Steps to implement the best placement, a line each. They are the host's, or the classifier's
    /// if no host placement helps.
    #[getter]
    fn how(&self) -> Vec<String> {
        self.answer.how.clone()
    }

    /// Notes on the choices, and doubts about the answer, one sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.answer.notes.clone()
    }

    /// A row for each placement: write amplification with its interval, life, cost and embodied
    /// carbon. The first is no placement.
    fn placements(&self) -> PyTable {
        self.answer.columns().into()
    }

    /// Return the JSON of `warp whatif --json` as dictionaries.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.answer)
    }

    /// Write the self-contained HTML report to a file.
    fn report(&self, path: PathBuf) -> PyResult<()> {
        self.answer.write_report(PlotLibrary::Embedded, &path).map_err(warp_error)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        render(slf, "warp_ssd.notebook", "answer")
    }

    fn __repr__(&self) -> String {
        format!("Answer({:?})", self.answer.headline)
    }

    fn __str__(&self) -> String {
        format!("{}\n{}", self.answer.headline, self.answer.rows().text())
    }
}
