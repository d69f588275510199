//! The class `Lifetimes`: lifetimes of the data that a workload writes.

use analysis::export::tables;
use analysis::lifetimes::{self, MeasuredLifetimes, Setup};
use pyo3::prelude::*;
use simulate::run::RunProgress;

use crate::convert::{self, lab_error, optional_table, to_python, warp_error};
use crate::generator::{GeneratorRegistry, PythonGenerator};
use crate::interrupt::stoppable;
use crate::table::PyTable;

/// Lifetimes of a workload's data: bytes written between a write and its overwrite or trim.
#[pyclass(frozen, name = "Lifetimes", module = "warp_ssd")]
pub struct PyLifetimes {
    measured: MeasuredLifetimes,
}

/// Measure the lifetimes of a workload's data, as ``warp lifetimes`` does.
///
/// The workload is not run on a device. The device only determines its layout.
///
/// Parameters
/// ----------
/// workload
///     Name or path of a block trace, a job file or a workload. Or a function that makes requests
///     (`warp_ssd.generators`).
/// device
///     Name or path of the device profile for the layout.
/// capacity_bytes
///     Capacity of the drive for the layout. Replaces the scaled model.
/// scale
///     Scale of the model, such as ``64`` or ``"1/64"``, the default.
/// drive_writes
///     Full drive writes after which an endless workload is stopped.
/// overrides
///     Settings of the device by dotted path. Settings of the workload begin with ``workload.``.
///
/// Raises
/// ------
/// WarpError
///     The workload or device does not exist, they do not fit, or the workload has no writes.
#[pyfunction(name = "lifetimes")]
#[pyo3(signature = (workload, device = lifetimes::DEVICE, *, capacity_bytes = None, scale = None,
                    drive_writes = lifetimes::WRITE_CAPACITIES, overrides = None))]
pub fn measure(
    py: Python<'_>,
    workload: &Bound<'_, PyAny>,
    device: &str,
    capacity_bytes: Option<&Bound<'_, PyAny>>,
    scale: Option<&Bound<'_, PyAny>>,
    drive_writes: f64,
    overrides: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyLifetimes> {
    if capacity_bytes.is_some() && scale.is_some() {
        return Err(warp_error("capacity_bytes cannot be combined with scale. Give one of them"));
    }
    let scale = match scale {
        Some(scale) => convert::scale(scale)?,
        None => lifetimes::SCALE.parse().expect("it is one"),
    };
    let setup = Setup {
        device: device.to_string(),
        capacity_bytes: convert::capacity("capacity_bytes", capacity_bytes)?,
        scale,
        overrides: optional_table("overrides", overrides)?,
        drive_writes,
    };
    // The generators must live until the end of the run.
    let mut generators = GeneratorRegistry::new();
    let workload = PythonGenerator::name_of(workload, &mut generators)?;
    let progress = RunProgress::default();
    let measured = stoppable(py, &progress, || Ok(()), || setup.measure(&workload, &progress))?;
    let measured = measured.map_err(lab_error)?;
    Ok(PyLifetimes { measured })
}

#[pymethods]
impl PyLifetimes {
    /// Return the quantiles of the lifetimes: a row for the whole workload (``stream`` is null)
    /// and, if it has several streams, one for each.
    ///
    /// ``written_bytes`` are the written bytes. Further columns have the bytes written until 10,
    /// 25, 50 and 90 % of the data has ended, null where the share was not reached.
    /// ``there_at_the_end`` is the share that never ended.
    fn quantiles(&self) -> PyTable {
        tables::lifetimes(&self.measured).into()
    }

    /// Return the cumulative distribution of the lifetimes, for the same parts as `quantiles`. Each
    /// row gives a distance in ``bytes`` at which data ended, and the share that ended within it
    /// (``ended_share``).
    fn distribution(&self) -> PyTable {
        tables::lifetime_steps(&self.measured).into()
    }

    /// Return the Kolmogorov-Smirnov distance of the whole workload from another.
    ///
    /// The distance (0 to 1) is the largest difference between their shares that have ended within
    /// the same bytes. The second value is these bytes.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     The workloads were measured at different scales, or in units of different sizes.
    fn distance(&self, other: &PyLifetimes) -> PyResult<(f64, u64)> {
        lifetimes::distance(&self.measured, &other.measured).map_err(warp_error)
    }

    /// Return the JSON of ``warp lifetimes --json`` as dictionaries.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = lifetimes::to_json(std::slice::from_ref(&self.measured)).map_err(warp_error)?;
        to_python(py, &json)
    }

    fn __repr__(&self) -> String {
        let (all, streams) = (&self.measured.all, self.measured.streams.len());
        let written_bytes = self.measured.on_drive(all.written_bytes());
        format!("Lifetimes({:?}: {written_bytes} bytes written, streams: {streams})", self.measured.name)
    }

    fn __str__(&self) -> String {
        let table = report::rows::lifetimes(std::slice::from_ref(&self.measured));
        table.expect("it is one workload").text()
    }
}
