//! The class `Device`: a simulated drive that Python writes to.

use std::path::PathBuf;
use std::sync::Arc;

use analysis::export::device as tables;
use experiment::{Profile, Scale, SettingOverrides, scaled_model};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyTuple};
use serde::Serialize;
use simulate::clocked::ClockedDevice;
use ssd::{DeviceConfig, HostError, Lpn, Placement, PlacementIndex, PlacementList, WriteRequest};

use crate::WarpError;
use crate::convert::{self, optional_table, path_or_name, table, to_python, warp_error};
use crate::policy::{self, NO_PLACEMENT, PolicyCalls, PythonVictimPolicy};
use crate::table::PyTable;

/// The device model as a drive that Python writes to page by page.
///
/// A page is a mapping unit of `page_bytes` (4 KiB unless the profile says otherwise). Logical
/// pages are numbered from 0.
///
/// Parameters
/// ----------
/// profile
///     Name or path of a device profile, or its content as nested dictionaries (see `profile`).
/// overrides
///     Settings by dotted path, such as ``{"gc.victim_policy": "fifo"}``.
/// scale
///     Scale of the model, such as ``64`` or ``"1/64"``: the same number of reclaim units, each
///     with 1/64 of the pages.
/// seed
///     Seed of all random choices of the drive.
/// record_gc
///     Record a row for each collection (`gc_log`).
/// victim_policy
///     Policy that chooses the reclaim unit to collect, instead of ``gc.victim_policy``. Forks,
///     snapshots and pickles do not keep it.
///
/// Raises
/// ------
/// WarpError
///     The profile does not exist, or the configuration is impossible. The message names the field
///     and the allowed values.
#[pyclass(name = "Device", module = "warp_ssd")]
pub struct PyDevice {
    drive: ClockedDevice,
    record_gc: bool,
    policy: Arc<PolicyCalls>,
}

impl PyDevice {
    fn from_drive(drive: ClockedDevice, record_gc: bool) -> PyDevice {
        PyDevice { drive, record_gc, policy: Arc::default() }
    }

    fn is_timed(&self) -> bool {
        self.drive.device().config().timing.is_some()
    }

    /// The placement of a placement index, for a namespace that may use all handles.
    fn placement(&self, index: i64) -> PyResult<Placement> {
        let layout = self.drive.device().layout();
        placement_of(PlacementList::new(&layout.handle_list(), layout.groups), index)
    }

    /// Builds writes. The drive's default rule places those without a placement index.
    fn writes(&mut self, rows: impl Iterator<Item = (i64, i64, i64)>) -> PyResult<Vec<WriteRequest>> {
        let layout = self.drive.device().layout();
        let (page_bytes, handles) = (layout.page_bytes, layout.handle_list());
        let list = PlacementList::new(&handles, layout.groups);
        let (mut writes, mut without) = (Vec::new(), Vec::new());
        for (first, pages, index) in rows {
            let pages = page_count("pages", pages)?;
            let placement = if index == i64::from(NO_PLACEMENT) {
                without.push(writes.len());
                Placement::new(0, handles[0].0)
            } else {
                placement_of(list, index)?
            };
            let write = WriteRequest {
                first: Lpn(page_count("first", first)?),
                pages,
                host_bytes: u64::from(pages) * page_bytes,
                placement,
            };
            self.drive.device().check_write(&write).map_err(warp_error)?;
            writes.push(write);
        }
        // All writes are valid now, so the turns of the default placement advance.
        for position in without {
            writes[position].placement = self.drive.device_mut().default_placement(handles[0]);
        }
        Ok(writes)
    }

    /// Runs `work` without the interpreter's lock. Ctrl-C and exceptions of the policy are raised.
    fn run_detached<T: Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut ClockedDevice, &mut dyn FnMut() -> bool) -> Result<T, HostError> + Send,
    ) -> PyResult<T> {
        let PyDevice { drive, policy, .. } = self;
        let mut interrupted: PyResult<()> = Ok(());
        let done = py.detach(|| {
            let mut go_on = || {
                interrupted = Python::attach(|py| py.check_signals());
                interrupted.is_ok() && !policy.failed()
            };
            work(drive, &mut go_on)
        });
        interrupted?;
        policy.raise()?;
        done.map_err(warp_error)
    }
}

/// The placement of a placement index.
fn placement_of(list: PlacementList<'_>, index: i64) -> PyResult<Placement> {
    let known = u16::try_from(index).ok().and_then(|index| list.get(PlacementIndex(index)));
    known.ok_or_else(|| {
        let most = list.count() - 1;
        WarpError::new_err(format!("placement index {index} does not exist. Give 0 to {most}"))
    })
}

/// The configuration that the arguments of a device describe, and its name.
fn config_of(
    profile: &Bound<'_, PyAny>,
    overrides: &SettingOverrides,
    scale: Option<&Bound<'_, PyAny>>,
    seed: u64,
) -> PyResult<(String, DeviceConfig)> {
    let profile = match path_or_name(profile)? {
        Some(name) => Profile::find(&name),
        None => Profile::from_values("profile", table("profile", profile)?),
    };
    let profile = profile.map_err(warp_error)?;
    let mut config = profile.config(overrides).map_err(warp_error)?;
    config.seed = seed;
    let scale = scale.map_or(Ok(Scale(1)), convert::scale)?;
    let (config, _) = scaled_model::scaled_config(&profile.name, &config, scale).map_err(warp_error)?;
    Ok((profile.name, config))
}

/// Broadcasts integers and arrays to rows of equal length. An integer applies to all entries.
fn broadcast<'py, const N: usize>(
    py: Python<'py>,
    arguments: [(&str, &Bound<'py, PyAny>); N],
) -> PyResult<[PyReadonlyArray1<'py, i64>; N]> {
    let numpy = py.import("numpy")?;
    let all = PyTuple::new(py, arguments.iter().map(|(_, values)| values))?;
    let rows: Vec<Bound<'py, PyAny>> =
        numpy.call_method1("broadcast_arrays", all)?.try_iter()?.collect::<PyResult<_>>()?;
    let named = arguments.iter().zip(rows);
    let integers: PyResult<Vec<_>> =
        named.map(|((name, _), row)| policy::integers(&format!("{name} must be integers"), &row)).collect();
    Ok(integers?.try_into().unwrap_or_else(|_| unreachable!("as many rows as arguments")))
}

/// Checks a page number or a number of pages.
fn page_count(name: &str, value: i64) -> PyResult<u32> {
    u32::try_from(value)
        .map_err(|_| WarpError::new_err(format!("{name} = {value} is out of range. Give 0 to {}", u32::MAX)))
}

/// Extents from pages and lengths.
fn extents(py: Python<'_>, first: &Bound<'_, PyAny>, pages: &Bound<'_, PyAny>) -> PyResult<Vec<(Lpn, u32)>> {
    let [first, pages] = broadcast(py, [("first", first), ("pages", pages)])?;
    let (first, pages) = (first.as_array(), pages.as_array());
    let pairs = first.iter().zip(pages);
    let pair = |(first, pages): (&i64, &i64)| Ok((Lpn(page_count("first", *first)?), page_count("pages", *pages)?));
    pairs.map(pair).collect()
}

fn queue_depth_of(queue_depth: i64) -> PyResult<u32> {
    let depth = u32::try_from(queue_depth).ok().filter(|depth| *depth > 0);
    depth.ok_or_else(|| PyValueError::new_err(format!("queue_depth = {queue_depth} is out of range. Give 1 or more")))
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (profile, *, overrides = None, scale = None, seed = 1, record_gc = false, victim_policy = None))]
    fn new(
        profile: &Bound<'_, PyAny>,
        overrides: Option<&Bound<'_, PyAny>>,
        scale: Option<&Bound<'_, PyAny>>,
        seed: u64,
        record_gc: bool,
        victim_policy: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyDevice> {
        policy::check(victim_policy, "victim_policy", "select")?;
        let overrides = optional_table("overrides", overrides)?;
        let (name, config) = config_of(profile, &overrides, scale, seed)?;
        let drive = profile.py().detach(|| ClockedDevice::new(&name, &config, record_gc));
        let mut device = PyDevice::from_drive(drive.map_err(warp_error)?, record_gc);
        if let Some(policy) = victim_policy {
            let policy = PythonVictimPolicy::new(policy.clone().unbind(), device.policy.clone());
            device.drive.device_mut().set_victim_policy(Some(Box::new(policy)));
        }
        Ok(device)
    }

    /// Write extents one after another, each of ``pages`` pages from ``first`` on.
    ///
    /// Parameters
    /// ----------
    /// first
    ///     First logical page of each extent.
    /// pages
    ///     Number of pages of each extent.
    /// placement
    ///     Index into the drive's list of placements. Without it, or with `NO_PLACEMENT`, the drive
    ///     places the write as one without a directive: handle 0, and the reclaim groups in turn.
    /// queue_depth
    ///     Number of writes in flight, on a drive with timing.
    ///
    /// Returns
    /// -------
    /// NDArray[uint64] or None
    ///     Latency of each write in nanoseconds, on a drive with timing. `now_ns` is then the
    ///     completion of the last write.
    ///
    /// Raises
    /// ------
    /// WarpError
    ///     A page or placement index does not exist. No page was written.
    #[pyo3(signature = (first, pages = None, placement = None, *, queue_depth = 1))]
    fn write<'py>(
        &mut self,
        py: Python<'py>,
        first: &Bound<'py, PyAny>,
        pages: Option<&Bound<'py, PyAny>>,
        placement: Option<&Bound<'py, PyAny>>,
        queue_depth: i64,
    ) -> PyResult<Option<Bound<'py, PyArray1<u64>>>> {
        let (one, none) = (PyInt::new(py, 1).into_any(), PyInt::new(py, NO_PLACEMENT).into_any());
        let rows = [("first", first), ("pages", pages.unwrap_or(&one)), ("placement", placement.unwrap_or(&none))];
        let [first, pages, placement] = broadcast(py, rows)?;
        let (first, pages, placement) = (first.as_array(), pages.as_array(), placement.as_array());
        let rows = first.iter().zip(pages).zip(placement);
        let writes = self.writes(rows.map(|((first, pages), placement)| (*first, *pages, *placement)))?;
        let depth = queue_depth_of(queue_depth)?;
        let latencies = self.run_detached(py, |drive, go_on| drive.write(&writes, depth, go_on))?;
        Ok(self.is_timed().then(|| latencies.into_pyarray(py)))
    }

    /// Read extents. Parameters, result and errors are those of `write`. Without timing a read has
    /// no effect.
    #[pyo3(signature = (first, pages = None, *, queue_depth = 1))]
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        first: &Bound<'py, PyAny>,
        pages: Option<&Bound<'py, PyAny>>,
        queue_depth: i64,
    ) -> PyResult<Option<Bound<'py, PyArray1<u64>>>> {
        let one = PyInt::new(py, 1).into_any();
        let extents = extents(py, first, pages.unwrap_or(&one))?;
        let depth = queue_depth_of(queue_depth)?;
        let latencies = self.run_detached(py, |drive, go_on| drive.read(&extents, depth, go_on))?;
        Ok(self.is_timed().then(|| latencies.into_pyarray(py)))
    }

    /// Deallocate extents (TRIM). Their pages become unmapped, and collection does not copy them.
    /// Errors are those of `write`.
    #[pyo3(signature = (first, pages = None))]
    fn deallocate(
        &mut self,
        py: Python<'_>,
        first: &Bound<'_, PyAny>,
        pages: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let one = PyInt::new(py, 1).into_any();
        let extents = extents(py, first, pages.unwrap_or(&one))?;
        self.run_detached(py, |drive, go_on| drive.deallocate(&extents, go_on))
    }

    /// Let time pass while the host is idle. A drive with timing uses it for pending collections.
    ///
    /// Parameters
    /// ----------
    /// idle_ns
    ///     Duration in nanoseconds.
    fn step(&mut self, idle_ns: u64) {
        self.drive.step(idle_ns);
    }

    /// Close the open reclaim unit of a handle (Reclaim Unit Handle Update). Return the number of
    /// its pages that were never written.
    #[pyo3(signature = (placement = 0))]
    fn update_handle(&mut self, placement: i64) -> PyResult<u32> {
        let placement = self.placement(placement)?;
        let now = self.drive.now();
        self.drive.device_mut().update_handle(now, placement).map_err(warp_error)
    }

    /// Return the number of pages until the handle's current reclaim unit is full (RUAMW).
    #[pyo3(signature = (placement = 0))]
    fn available_media_writes(&self, placement: i64) -> PyResult<u32> {
        let placement = self.placement(placement)?;
        self.drive.device().available_media_writes(placement).map_err(warp_error)
    }

    /// Counters since the drive was created.
    #[getter]
    fn stats(&self) -> PyStats {
        PyStats::from_stats(self.drive.device().stats())
    }

    /// Return the counters and the present content of each reclaim unit handle and of the shared
    /// pool.
    fn handles(&self) -> PyTable {
        tables::handles(self.drive.device()).into()
    }

    /// Return a row for each reclaim unit that is not free.
    fn units(&self) -> PyTable {
        tables::units(self.drive.device()).into()
    }

    /// Return a row for each collection so far, on a drive with ``record_gc``.
    fn gc_log(&self) -> PyTable {
        let page_bytes = self.drive.device().layout().page_bytes;
        tables::gc_log(page_bytes, self.drive.gc_log()).into()
    }

    /// Save the drive to a file, atomically, without its time, GC log and victim policy.
    fn snapshot(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let device = self.drive.device();
        py.detach(|| device.save(&path)).map_err(warp_error)
    }

    /// Load a drive that `snapshot` or ``warp run --save-snapshot`` has saved.
    #[staticmethod]
    #[pyo3(signature = (path, *, record_gc = false))]
    fn load(py: Python<'_>, path: PathBuf, record_gc: bool) -> PyResult<PyDevice> {
        let drive = py.detach(|| ClockedDevice::load(&path, record_gc)).map_err(warp_error)?;
        Ok(PyDevice::from_drive(drive, record_gc))
    }

    /// Return a copy of the drive, without the victim policy. The call copies all memory.
    fn fork(&self, py: Python<'_>) -> PyDevice {
        let drive = &self.drive;
        PyDevice::from_drive(py.detach(|| drive.clone()), self.record_gc)
    }

    #[staticmethod]
    fn _unpickle(py: Python<'_>, bytes: &[u8], record_gc: bool) -> PyResult<PyDevice> {
        let device = py.detach(|| ssd::Device::from_bytes("pickled device", bytes));
        Ok(PyDevice::from_drive(ClockedDevice::from_device(device.map_err(warp_error)?, record_gc), record_gc))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let py = slf.py();
        let device = slf.borrow();
        let bytes = PyBytes::new(py, &device.drive.device().to_bytes());
        Ok((slf.get_type().getattr("_unpickle")?, (bytes, device.record_gc)))
    }

    /// Logical capacity in bytes.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        let layout = self.drive.device().layout();
        u64::from(layout.logical_pages) * layout.page_bytes
    }

    /// Number of logical pages.
    #[getter]
    fn logical_pages(&self) -> u32 {
        self.drive.device().layout().logical_pages
    }

    /// Bytes of a page, which is the mapping unit.
    #[getter]
    fn page_bytes(&self) -> u64 {
        self.drive.device().layout().page_bytes
    }

    /// Bytes of a full reclaim unit.
    #[getter]
    fn reclaim_unit_bytes(&self) -> u64 {
        let layout = self.drive.device().layout();
        u64::from(layout.superblock_pages) * layout.page_bytes
    }

    /// Number of placement indices: reclaim unit handles x reclaim groups.
    #[getter]
    fn placement_count(&self) -> u16 {
        self.drive.device().layout().placement_count()
    }

    /// Time of the drive in nanoseconds since its creation.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.drive.now()
    }

    /// Complete configuration, after scaling.
    #[getter]
    fn config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.drive.device().config())
    }

    /// Number of calls of the victim policy.
    #[getter]
    fn policy_calls(&self) -> u64 {
        self.policy.calls()
    }

    /// Seconds spent in the victim policy, including the conversion of its arguments.
    #[getter]
    fn policy_seconds(&self) -> f64 {
        self.policy.seconds()
    }

    fn __repr__(&self) -> String {
        let layout = self.drive.device().layout();
        let handles = layout.handles.len();
        format!("Device({} logical pages of {} bytes, {handles} handles)", layout.logical_pages, layout.page_bytes)
    }
}

/// A function and its arguments, the form that pickle requires.
type Pickled<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, bool));

/// Counters of a drive since its creation.
#[pyclass(frozen, get_all, name = "Stats", module = "warp_ssd")]
#[derive(Serialize)]
pub struct PyStats {
    /// Bytes written by the host (HBMW).
    host_bytes_written: u64,
    /// Bytes programmed, for host writes, copies and overhead (MBMW).
    media_bytes_written: u64,
    /// Bytes erased (MBE).
    media_bytes_erased: u64,
    /// Bytes programmed / bytes written by the host. None before the first write.
    write_amplification: Option<f64>,
    /// Bytes that garbage collection has copied.
    gc_bytes_copied: u64,
    /// Bytes that static wear levelling has copied.
    wear_levelling_bytes: u64,
    /// Bytes of host writes that replaced data in the write buffer and were not programmed.
    host_bytes_absorbed: u64,
    /// Bytes of its own that the drive wrote beside data.
    overhead_bytes: u64,
    /// Number of collections at the background watermark.
    background_collections: u64,
    /// Number of collections at the foreground watermark.
    foreground_collections: u64,
    /// Number of emergency collections. The drive needed space, but the policy found no victim.
    forced_collections: u64,
    /// Number of reclaim units opened.
    units_opened: u64,
    /// Number of reclaim units reclaimed.
    units_reclaimed: u64,
    /// Number of fully valid blocks that collection moved without copying.
    blocks_remapped: u64,
    /// Number of valid pages in reclaim units at the time of their reclaim.
    valid_pages_reclaimed: u64,
    /// Number of mapped pages that the host has deallocated.
    pages_deallocated: u64,
    /// Number of pages written to another reclaim group, because the requested group was full.
    pages_redirected: u64,
    /// Number of reclaim units that the host closed before they were full.
    units_closed_by_host: u64,
    /// Number of reclaim units that the drive closed before they were full.
    units_closed_early: u64,
}

impl PyStats {
    fn from_stats(stats: &ssd::DeviceStats) -> PyStats {
        let total = stats.total();
        PyStats {
            host_bytes_written: stats.host_bytes_written(),
            media_bytes_written: stats.media_bytes_written(),
            media_bytes_erased: stats.media_bytes_erased(),
            write_amplification: stats.write_amplification(),
            gc_bytes_copied: total.gc_pages_copied * stats.page_bytes,
            wear_levelling_bytes: total.wear_levelling_pages * stats.page_bytes,
            host_bytes_absorbed: total.host_pages_absorbed * stats.page_bytes,
            overhead_bytes: stats.overhead_pages() * stats.page_bytes,
            background_collections: stats.background_collections,
            foreground_collections: stats.foreground_collections,
            forced_collections: stats.forced_collections,
            units_opened: total.units_opened,
            units_reclaimed: total.units_reclaimed,
            blocks_remapped: total.blocks_remapped,
            valid_pages_reclaimed: total.valid_pages_reclaimed,
            pages_deallocated: stats.pages_deallocated,
            pages_redirected: stats.pages_redirected,
            units_closed_by_host: stats.units_closed_by_host,
            units_closed_early: stats.units_closed_early,
        }
    }
}

#[pymethods]
impl PyStats {
    /// Return all counters by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self)
    }

    fn __repr__(&self) -> String {
        let waf = self.write_amplification.map_or("None".to_string(), |waf| format!("{waf:.3}"));
        format!("Stats(host_bytes_written={}, write_amplification={waf})", self.host_bytes_written)
    }
}
