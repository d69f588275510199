//! What placement would do for a workload on a drive.

use std::path::PathBuf;

use ::whatif::{Answer as LabAnswer, Factors, Question};
use experiment::twin::Scale;
use pyo3::prelude::*;
use report::Library;
use simulate::run::Progress;

use crate::convert::{self, lab_error, optional_table, shown, to_python, warp_error};
use crate::generator::{Generators, PythonGenerator};
use crate::interrupt::stoppable;
use crate::table::Table;

/// What placement would do for a workload: a sentence, and the numbers behind it.
#[pyclass(frozen, module = "warp_ssd")]
pub struct Answer {
    answer: LabAnswer,
}

/// What placement would do for a workload on a drive: no placement, the workload's own, by source, and classifiers, each run to
/// its end, as ``warp whatif``.
///
/// Parameters
/// ----------
/// workload
///     A block trace, a job file or a workload: a name or a path. Or a function that makes requests (`warp_ssd.generators`).
/// device
///     Name or path of a device profile.
/// drive_bytes
///     Capacity of the drive, bytes or a text such as ``"5TB"``; without it the profile's.
/// over_provisioning
///     Spare flash as a share of the capacity; without it the profile's.
/// fill
///     Share of the drive that a trace's data takes, where the trace touches only a part of it.
/// drive_writes_per_day
///     Multiples of the capacity that the host writes each day; without it what the trace's times say, or 1.
/// scale
///     Scale of the twin, such as ``64`` or ``"1/64"``; without it the smallest that behaves like the drive.
/// write_capacities
///     Bytes that the host writes at most, in multiples of the capacity; without it two passes of a trace, or 20.
/// overrides
///     Settings of the device by dotted path, and of the workload behind ``workload.``.
/// seed
///     Of device and workload.
/// dollars_per_terabyte, embodied_kg_per_gigabyte
///     What the drive costs, and the CO2e of its flash.
/// interval
///     Run the device's ensemble too.
///
/// Raises
/// ------
/// WarpError
///     There is no such workload or device, or the workload does not fit the drive.
#[pyfunction]
#[pyo3(signature = (workload, device = "ssd_a", *, drive_bytes = None, over_provisioning = None, fill = None,
                    drive_writes_per_day = None, scale = None, write_capacities = None, overrides = None, seed = 1, dollars_per_terabyte = None,
                    embodied_kg_per_gigabyte = None, interval = true))]
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
    write_capacities: Option<f64>,
    overrides: Option<&Bound<'_, PyAny>>,
    seed: u64,
    dollars_per_terabyte: Option<f64>,
    embodied_kg_per_gigabyte: Option<f64>,
    interval: bool,
) -> PyResult<Answer> {
    // Kept until everything is run.
    let mut generators = Generators::new();
    let defaults = Question::new(&PythonGenerator::name_of(workload, &mut generators)?);
    let scale = scale.map(convert::scale::<Scale>);
    let question = Question {
        device: device.to_string(),
        drive_bytes: convert::capacity("drive_bytes", drive_bytes)?,
        over_provisioning,
        fill,
        drive_writes_per_day,
        scale: scale.transpose()?,
        write_capacities,
        overrides: optional_table("overrides", overrides)?,
        seed,
        factors: Factors {
            dollars_per_terabyte: dollars_per_terabyte.unwrap_or(defaults.factors.dollars_per_terabyte),
            embodied_kg_per_gigabyte: embodied_kg_per_gigabyte.unwrap_or(defaults.factors.embodied_kg_per_gigabyte),
        },
        ..defaults
    };
    let study = py.detach(|| question.study()).map_err(lab_error)?;
    let progress = Progress::default();
    let answer = stoppable(py, &progress, || Ok(()), || study.run(interval, &progress))?;
    let answer = answer.map_err(lab_error)?.expect("whoever stops it raises");
    Ok(Answer { answer })
}

#[pymethods]
impl Answer {
    /// The answer in a sentence.
    #[getter]
    fn headline(&self) -> &str {
        &self.answer.headline
    }

    /// Name of the best placement that a host can do; none if nothing helps.
    #[getter]
    fn best(&self) -> Option<&str> {
        self.answer.best.as_deref()
    }

    /// Name of the best layer that sees blocks, if it brings more than that.
    #[getter]
    fn classifier(&self) -> Option<&str> {
        self.answer.classifier.as_deref()
    }

    /// How the best placement is done, a line each: the host's, or else that of the layer.
    #[getter]
    fn how(&self) -> Vec<String> {
        self.answer.how.clone()
    }

    /// What was chosen, and what makes the answer doubtful, in sentences.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.answer.notes.clone()
    }

    /// A row for each placement, none first: write amplification with its interval, what the drive lasts, costs and embodies.
    fn placements(&self) -> Table {
        self.answer.columns().into()
    }

    /// All of it, as `warp whatif --json` prints it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &serde_json::to_value(&self.answer).expect("an answer is JSON"))
    }

    /// Writes the report, a page that needs nothing from elsewhere, to this file.
    fn report(&self, path: PathBuf) -> PyResult<()> {
        self.answer.write_report(Library::Inside, &path).map_err(warp_error)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        shown(slf, "warp_ssd.notebook", "answer")
    }

    fn __repr__(&self) -> String {
        format!("Answer({:?})", self.answer.headline)
    }

    fn __str__(&self) -> String {
        format!("{}\n{}", self.answer.headline, self.answer.rows().text())
    }
}
