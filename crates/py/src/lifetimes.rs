//! How long what a workload writes lives.

use analysis::export::tables;
use analysis::lifetimes::{self, Measured, Setup};
use pyo3::prelude::*;
use simulate::run::Progress;

use crate::convert::{self, lab_error, optional_table, to_python, warp_error};
use crate::generator::{Generators, PythonGenerator};
use crate::interrupt::stoppable;
use crate::table::Table;

/// How long what a workload writes lives: bytes written from a write to the one that overwrites it, or to its trim.
#[pyclass(frozen, module = "warp_ssd")]
pub struct Lifetimes {
    measured: Measured,
}

/// How long what a workload writes lives, as ``warp lifetimes``. Nothing is run on a device: it only says where the workload lies.
///
/// Parameters
/// ----------
/// workload
///     A block trace, a job file or a workload: a name or a path. Or a function that makes requests (`warp_ssd.generators`).
/// device
///     Name or path of the device profile that it is laid out on.
/// capacity_bytes
///     Lay it out on a drive like the device, but of this capacity, instead of on a twin.
/// scale
///     Scale of the twin, such as ``64`` or ``"1/64"``, the default.
/// write_capacities
///     Drive-writes after which a workload that never ends is cut off.
/// overrides
///     Settings of the device by dotted path, and of the workload behind ``workload.``.
///
/// Raises
/// ------
/// WarpError
///     There is no such workload or device, they do not fit, or the workload writes nothing.
#[pyfunction(name = "lifetimes")]
#[pyo3(signature = (workload, device = lifetimes::DEVICE, *, capacity_bytes = None, scale = None,
                    write_capacities = lifetimes::WRITE_CAPACITIES, overrides = None))]
pub fn measure(
    py: Python<'_>,
    workload: &Bound<'_, PyAny>,
    device: &str,
    capacity_bytes: Option<&Bound<'_, PyAny>>,
    scale: Option<&Bound<'_, PyAny>>,
    write_capacities: f64,
    overrides: Option<&Bound<'_, PyAny>>,
) -> PyResult<Lifetimes> {
    if capacity_bytes.is_some() && scale.is_some() {
        return Err(warp_error("capacity_bytes: cannot be had together with a scale"));
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
        write_capacities,
    };
    // Kept until everything is run.
    let mut generators = Generators::new();
    let workload = PythonGenerator::name_of(workload, &mut generators)?;
    let progress = Progress::default();
    let measured = stoppable(py, &progress, || Ok(()), || setup.measure(&workload, &progress))?;
    let measured = measured.map_err(lab_error)?;
    Ok(Lifetimes { measured })
}

#[pymethods]
impl Lifetimes {
    /// A row for all of the workload (``stream`` is null) and, where there are several, for each of its streams: ``written_bytes``; the
    /// bytes written until 10, 25, 50 and 90 % of it has ended, null where not that much was seen to; and the share that is
    /// ``there_at_the_end``.
    fn quantiles(&self) -> Table {
        tables::lifetimes(&self.measured).into()
    }

    /// All of it: for each stream, as above, the share of what was written (``ended_share``) that has ended within so many ``bytes``,
    /// at each distance at which some did.
    fn distribution(&self) -> Table {
        tables::lifetime_steps(&self.measured).into()
    }

    /// Kolmogorov-Smirnov distance of all of this workload from all of another: the largest difference of the shares that have ended within
    /// as many bytes, 0 to 1; and these bytes.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     They were followed on different scales, or in units of different sizes.
    fn distance(&self, other: &Lifetimes) -> PyResult<(f64, u64)> {
        lifetimes::distance(&self.measured, &other.measured).map_err(warp_error)
    }

    /// What ``warp lifetimes --json`` prints of it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = lifetimes::to_json(std::slice::from_ref(&self.measured)).map_err(warp_error)?;
        to_python(py, &json)
    }

    fn __repr__(&self) -> String {
        let (all, streams) = (&self.measured.all, self.measured.streams.len());
        let written_bytes = self.measured.on_drive(all.written_bytes());
        format!(
            "Lifetimes({:?}: {written_bytes} bytes written, streams: {streams})",
            self.measured.name
        )
    }

    fn __str__(&self) -> String {
        let table = report::rows::lifetimes(std::slice::from_ref(&self.measured));
        table.expect("it is one workload").text()
    }
}
