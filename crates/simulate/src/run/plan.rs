//! Run plans: cells with device layouts and workloads, checked before any run begins.

use std::sync::{Arc, Mutex};

use advise::OwnerMap;
use base::HumanBytes;
use ssd::{Device, DeviceConfig, DeviceLayout, DeviceStats, PlacementList, RuhId, WearSummary};
use workload::Workload as _;
use workload::fio::{Schedule, StreamSummary, plan_streams};
use workload::trace::TimedSource;
use workload::{RequestSource, ScaledModel, WorkloadTarget};

use super::array_member::{MemberFill, MemberSource, drive_seed};
use super::result::RunResult;
use crate::feedback;
use crate::request_mapper::RequestMapper;
use crate::timed::{self, Runner};
use experiment::cell::{CellKey, RunSpec};
use experiment::error::LabError;
use experiment::scaled_model::{self, Scale, ScaleChoice};

/// A cell with a device layout. Its workload was built once to check it.
pub struct RunPlan {
    cell: RunSpec,
    /// Scale of the device in `layout`.
    pub(super) scale: Scale,
    /// Scales of all scaled models of a scale search, this one first. Empty without a search.
    pub(super) scales: Vec<Scale>,
    pub(super) config: DeviceConfig,
    pub(super) layout: DeviceLayout,
    /// Handles of the host's namespace.
    pub(super) handles: Vec<RuhId>,
    /// The device or array as the workload sees it.
    pub(super) target: WorkloadTarget,
    /// Capacity of the device or array in this run, bytes.
    capacity_bytes: u64,
    /// Workload built during planning, if memory allowed. The first run takes it.
    workload: Mutex<Option<(BuiltWorkload, BuildPermit)>>,
    /// Owners of logical pages, for placement feedback.
    pub(super) owners: Option<Arc<OwnerMap>>,
    /// Upper bound of the run's memory in bytes: page maps and workload, on its most demanding
    /// scaled model.
    pub memory_bytes: u64,
    need: MemoryNeed,
    /// Bytes of memory that the run needs on the scaled model in `layout`.
    pub(super) scaled_bytes: u64,
    prefill_bytes: u64,
    /// Work that a watch counts for the workload: its bytes to write, or one drive write if
    /// unknown.
    pub(crate) workload_work: u64,
}

pub(super) enum BuiltWorkload {
    /// Requests run as fast as the device takes them.
    Untimed(Box<dyn RequestSource>),
    /// Requests run in virtual time.
    Timed(Box<Runner>),
}

impl BuiltWorkload {
    fn build(
        cell: &RunSpec,
        config: &DeviceConfig,
        (layout, handles): (&DeviceLayout, &[RuhId]),
        target: &WorkloadTarget,
    ) -> Result<BuiltWorkload, LabError> {
        if config.timing.is_some() && cell.array.is_none() {
            let mapper = RequestMapper::new(layout, handles);
            let runner = Runner::new(&cell.workload, target, cell.seed, &cell.run, mapper)?;
            return Ok(BuiltWorkload::Timed(Box::new(runner)));
        }
        let source = cell.workload.source(target, cell.seed)?;
        Ok(BuiltWorkload::Untimed(match member_fill(cell, layout, handles)? {
            Some(fill) => Box::new(MemberSource::new(source, fill, |capacity| cell.run.write_bytes(capacity))),
            None => source,
        }))
    }

    /// Upper bound of the memory of the workload and of its measurements, bytes.
    fn memory_bytes(
        cell: &RunSpec,
        config: &DeviceConfig,
        layout: &DeviceLayout,
        target: &WorkloadTarget,
    ) -> Result<u64, LabError> {
        let source_bytes = cell.workload.memory_bytes(target)?;
        let timed_bytes = match config.timing {
            Some(_) => timed::memory_bytes(&cell.workload, &cell.run),
            None => 0,
        };
        let samples_bytes = super::result::samples_bytes(&cell.run, layout.handles.len());
        Ok(source_bytes.saturating_add(timed_bytes).saturating_add(samples_bytes))
    }

    /// The request source. `None` for a job file in virtual time, whose jobs have separate sources.
    pub(super) fn source(&self) -> Option<&dyn RequestSource> {
        match self {
            BuiltWorkload::Untimed(source) => Some(&**source),
            BuiltWorkload::Timed(runner) => runner.source(),
        }
    }
}

/// Permit to keep a built workload until its run. A workload takes memory as soon as it is built,
/// and a sweep plans hundreds. At most one per thread is kept, within a share of the free memory.
/// The runs build the others again.
struct BuildPermit {
    bytes: u64,
}

/// Kept workloads of the whole process.
static WAITING: Mutex<BuiltTotals> = Mutex::new(BuiltTotals { workloads: 0, bytes: 0 });

struct BuiltTotals {
    workloads: usize,
    bytes: u64,
}

/// Divisor of the free memory. Kept workloads may take the quotient.
const WAITING_SHARE: u64 = 8;

impl BuildPermit {
    fn try_acquire(bytes: u64) -> Option<BuildPermit> {
        let most_bytes = super::memory::memory_available() / WAITING_SHARE;
        let mut waiting = WAITING.lock().expect("nobody panics with it");
        let fits =
            waiting.workloads < rayon::current_num_threads() && bytes <= most_bytes.saturating_sub(waiting.bytes);
        fits.then(|| {
            waiting.workloads += 1;
            waiting.bytes += bytes;
            BuildPermit { bytes }
        })
    }
}

impl Drop for BuildPermit {
    fn drop(&mut self) {
        let mut waiting = WAITING.lock().expect("nobody panics with it");
        assert!(waiting.workloads > 0, "a permit is returned once");
        assert!(waiting.bytes >= self.bytes, "a workload returns {} bytes of {} that wait", self.bytes, waiting.bytes);
        waiting.workloads -= 1;
        waiting.bytes -= self.bytes;
    }
}

/// Device layout of a run and memory of its workload. It holds no large data.
struct DeviceSetup {
    scale: Scale,
    config: DeviceConfig,
    layout: DeviceLayout,
    handles: Vec<RuhId>,
    target: WorkloadTarget,
    capacity_bytes: u64,
    workload_bytes: u64,
}

impl DeviceSetup {
    fn new(cell: &RunSpec, scale: Scale) -> Result<DeviceSetup, LabError> {
        let full = DeviceLayout::new(&cell.device)
            .map_err(|error| LabError::Device { device: cell.key.device.clone(), error })?;
        let (mut config, layout) = scaled_model::scaled_config(&cell.key.device, &cell.device, scale)?;
        config.seed = drive_seed(config.seed, cell.array_drive.unwrap_or(0).into());
        let handles = cell.run.namespace_handles(&cell.key.to_string(), &layout)?;
        let of_device = PlacementList::new(&handles, layout.groups).count();
        let of_workload = match &cell.array {
            Some(array) => array.workload_placements(of_device).map_err(|problem| array_refusal(cell, problem))?,
            None => of_device,
        };
        let capacity = |device_bytes: u64| match &cell.array {
            Some(array) => array::Array::capacity_of(array, device_bytes, of_device)
                .map_err(|problem| array_refusal(cell, problem)),
            None => Ok(device_bytes),
        };
        let of_host = capacity(layout.capacity_bytes())?;
        let target = WorkloadTarget {
            device_bytes: capacity(full.capacity_bytes())?,
            endless: cell.run.drive_writes.is_some(),
            placement_count: of_workload,
            scaled_model: (scale != Scale::FULL).then_some(ScaledModel {
                denominator: u64::from(scale.0),
                device_bytes: of_host,
                mapping_unit_bytes: layout.page_bytes,
                // The chunks of an array keep their size.
                keep_requests: config.timing.is_some() || cell.array.is_some(),
            }),
        };
        check_array(cell, &layout)?;
        Ok(DeviceSetup {
            workload_bytes: BuiltWorkload::memory_bytes(cell, &config, &layout, &target)?,
            scale,
            config,
            handles,
            target,
            capacity_bytes: if cell.array_drive.is_some() { layout.capacity_bytes() } else { of_host },
            layout,
        })
    }

    /// Memory of the maps of the device, or of all devices and of the array.
    fn maps_bytes(&self, cell: &RunSpec) -> u64 {
        let of_device = self.layout.memory_bytes();
        cell.array.as_ref().map_or(of_device, |array| {
            let drives = cell.whole_array().map_or(1, |array| u64::from(array.drives));
            drives * of_device + array::Array::memory_bytes(array, self.layout.capacity_bytes())
        })
    }

    /// Memory that this cell needs here, on its only scaled model or on the largest of a search.
    fn memory_need(&self, cell: &RunSpec, largest: Option<&Scale>) -> MemoryNeed {
        MemoryNeed {
            place: cell.key.to_string(),
            is_trace: cell.workload.is_trace(),
            is_replay: cell.run.replay.is_some(),
            largest: largest.copied(),
            maps_bytes: self.maps_bytes(cell),
            workload_bytes: self.workload_bytes,
        }
    }
}

/// Fill of the drive of an array that runs alone, if it is one.
fn member_fill(cell: &RunSpec, layout: &DeviceLayout, handles: &[RuhId]) -> Result<Option<MemberFill>, LabError> {
    let Some((array, drive)) = cell.array.as_ref().zip(cell.array_drive) else { return Ok(None) };
    let member = (layout.capacity_bytes(), PlacementList::new(handles, layout.groups).count());
    let fill = MemberFill::new(array, drive, member, cell.run.precondition_drive_writes);
    fill.map(Some).map_err(|problem| array_refusal(cell, problem))
}

fn array_refusal(cell: &RunSpec, problem: String) -> LabError {
    LabError::invalid(&format!("{}, array", cell.key), problem)
}

/// Refuses what does not work on an array.
fn check_array(cell: &RunSpec, layout: &DeviceLayout) -> Result<(), LabError> {
    let Some(array) = &cell.array else { return Ok(()) };
    if !array.chunk.is_multiple_of(layout.page_bytes) {
        let problem = format!(
            "chunk = {} is no multiple of the mapping unit of the drives, {}. Give a multiple",
            array.chunk,
            HumanBytes(layout.page_bytes)
        );
        return Err(array_refusal(cell, problem));
    }
    if let Some(drive) = cell.array_drive.filter(|drive| *drive >= array.drives) {
        let problem = format!("drive {drive} does not exist. The array has the drives 0 to {}", array.drives - 1);
        return Err(array_refusal(cell, problem));
    }
    let of_lonely =
        [("virtual time (--timed) does", cell.device.timing.is_some()), ("events do", !array.events.is_empty())];
    let is_alone = cell.array_drive.is_some();
    if let Some((name, _)) = of_lonely.into_iter().find(|(_, is_given)| is_alone && *is_given) {
        let problem = format!("{name} not work if each drive of the array runs alone. Leave the option out");
        return Err(array_refusal(cell, problem));
    }
    let refused = [
        ("feedback", cell.feedback.is_some()),
        ("a snapshot (--load-snapshot)", cell.snapshot.is_some()),
        ("replay (--replay)", cell.run.replay.is_some()),
        ("seconds (--seconds)", cell.run.seconds.is_some()),
        ("interval_seconds", cell.run.interval_seconds.is_some()),
        ("a scale search with a log-structured layer (scale = auto)", {
            array.is_log_structured() && matches!(cell.run.scale, ScaleChoice::Auto { .. })
        }),
    ];
    match refused.into_iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(array_refusal(cell, format!("{name} does not work on an array. Leave it out"))),
        None => Ok(()),
    }
}

/// Upper bound of a run's memory.
#[derive(Clone, Debug)]
pub struct MemoryNeed {
    /// Name of the run in messages.
    place: String,
    /// The workload is a trace. `is_replay`: with its recorded times.
    is_trace: bool,
    is_replay: bool,
    /// Largest scaled model of a scale search.
    largest: Option<Scale>,
    pub maps_bytes: u64,
    pub workload_bytes: u64,
}

impl MemoryNeed {
    /// Total bytes.
    pub fn bytes(&self) -> u64 {
        self.maps_bytes.saturating_add(self.workload_bytes)
    }

    /// Returns an error for a run that exceeds `available_bytes`. It suggests a remedy.
    pub fn refusal(&self, available_bytes: u64) -> LabError {
        let need = format!(
            "the page maps need {} and the workload up to {}. Together they exceed the {} that runs may take (nine \
             tenths of the available memory)",
            HumanBytes(self.maps_bytes),
            HumanBytes(self.workload_bytes),
            HumanBytes(available_bytes)
        );
        let model = match self.largest {
            // A scaled model distorts the latencies that a replay measures.
            _ if self.is_replay => "a smaller drive that the trace fills (--capacity)".to_string(),
            Some(largest) => format!("a search that ends at a smaller model than {largest} (--scale auto:1/64)"),
            None => "a smaller scaled model (--scale 1/64)".to_string(),
        };
        let less = match self.workload_bytes > self.maps_bytes {
            true if self.is_trace => "fewer or shorter files of the trace, or ",
            true => "a workload that keeps less (fewer jobs or objects, larger blocks, norandommap), or ",
            false => "",
        };
        LabError::invalid(&self.place, format!("{need}. Use {less}{model}"))
    }
}

impl RunPlan {
    /// Plans a cell. Calls `reserve` with the memory need before it allocates.
    ///
    /// # Errors
    /// As [`prepare`], or `reserve` refuses the memory.
    pub fn new<S>(
        cell: RunSpec,
        reserve: impl FnOnce(&MemoryNeed) -> Result<S, LabError>,
    ) -> Result<(RunPlan, S), LabError> {
        let largest = match cell.run.scale {
            ScaleChoice::Fixed(scale) => {
                let setup = DeviceSetup::new(&cell, scale)?;
                let reserved = reserve(&setup.memory_need(&cell, None))?;
                return Ok((RunPlan::with_device(setup, cell, true)?, reserved));
            }
            ScaleChoice::Auto { largest } => largest,
        };
        if cell.device.timing.is_some() {
            let problem = "scale = auto needs a run without virtual time, because it compares only write \
                           amplification. Give a scale such as 1/64, or run without time (--untimed)";
            return Err(LabError::invalid(&cell.key.to_string(), problem));
        }
        let scales = scaled_model::sizes(&cell.key.device, &cell.device, largest)?;
        assert!(
            scales.is_sorted_by(|smaller, larger| smaller.0 > larger.0),
            "the {} scaled models of a search do not grow",
            scales.len()
        );
        let setup = DeviceSetup::new(&cell, scales[0])?;
        let mut need = setup.memory_need(&cell, scales.last());
        for scale in &scales[1..] {
            let larger = DeviceSetup::new(&cell, *scale)?.memory_need(&cell, scales.last());
            need = if larger.bytes() > need.bytes() { larger } else { need };
        }
        let reserved = reserve(&need)?;
        let plan = RunPlan { memory_bytes: need.bytes(), need, scales, ..RunPlan::with_device(setup, cell, true)? };
        Ok((plan, reserved))
    }

    /// Plan of the same cell on a larger scaled model. The run builds the workload.
    pub(super) fn larger(&self, scale: Scale) -> Result<RunPlan, LabError> {
        assert!(scale.0 < self.scale.0, "a search goes from small scaled models to large ones");
        RunPlan::with_device(DeviceSetup::new(&self.cell, scale)?, self.cell.clone(), false)
    }

    /// Bytes that the host must write. `None`: the workload ends by itself, or the host writes to a
    /// whole array of which this is one drive.
    pub fn write_bytes(&self) -> Option<u64> {
        let is_member = self.cell.array_drive.is_some();
        self.cell.run.write_bytes(self.capacity_bytes).filter(|_| !is_member)
    }

    /// Capacity of the device or array in this run, bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Capacity of the device, or of all devices of the array together, bytes.
    pub(super) fn drives_bytes(&self) -> u64 {
        let drives = self.cell.whole_array().map_or(1, |array| u64::from(array.drives));
        drives * self.layout.capacity_bytes()
    }

    pub fn layout(&self) -> &DeviceLayout {
        &self.layout
    }

    /// Scale of this run's model. A search begins with it.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Returns true if the run searches for its scale.
    pub(crate) fn searches(&self) -> bool {
        !self.scales.is_empty()
    }

    /// Plans a run on this device. Builds the workload if `is_built` is set or feedback needs its
    /// owners.
    fn with_device(setup: DeviceSetup, cell: RunSpec, is_built: bool) -> Result<RunPlan, LabError> {
        let need = setup.memory_need(&cell, None);
        let DeviceSetup { scale, config, layout, handles, target, capacity_bytes, workload_bytes } = setup;
        let mut waiting = None;
        let mut owners = None;
        if is_built || cell.feedback.is_some() {
            let workload = BuiltWorkload::build(&cell, &config, (&layout, &handles), &target)?;
            if let BuiltWorkload::Untimed(source) = &workload {
                cell.run.check_untimed(&cell.key.to_string())?;
                if !target.endless && source.share_done().is_none() {
                    let problem = "the workload never ends. Give --drive-writes, or drive_writes in [run]";
                    return Err(LabError::invalid(&cell.key.to_string(), problem));
                }
            }
            let feedback = cell.feedback.as_ref();
            let found = feedback.map(|settings| feedback::owners(settings, &cell.workload, workload.source(), &target));
            owners = found.transpose()?;
            waiting = BuildPermit::try_acquire(workload_bytes).map(|permit| (workload, permit));
        }
        let bytes = |capacities: f64| (capacities * capacity_bytes as f64) as u64;
        Ok(RunPlan {
            owners: owners.map(Arc::new),
            memory_bytes: need.bytes(),
            scaled_bytes: need.bytes(),
            need,
            prefill_bytes: bytes(cell.run.precondition_drive_writes),
            workload_work: bytes(cell.run.drive_writes.unwrap_or(1.0)),
            workload: Mutex::new(waiting),
            cell,
            scale,
            scales: Vec::new(),
            config,
            layout,
            handles,
            target,
            capacity_bytes,
        })
    }

    /// Result of a run with these counters. Its other measurements are missing.
    pub(super) fn result(&self, stats: DeviceStats, wear: WearSummary) -> RunResult {
        RunResult {
            key: self.cell.key.clone(),
            seed: self.cell.seed,
            ensemble: self.cell.ensemble,
            scale: self.scale,
            search: None,
            unsaved: None,
            complete: false,
            capacity_bytes: self.drives_bytes(),
            superblocks: self.layout.superblocks(),
            unit_pages: scaled_model::unit_pages(&self.layout),
            open_unit_share: 0.0,
            steady_state: self.cell.run.steady_state,
            steady: None,
            without_effect: self.without_effect(),
            pages_read: [0; 2],
            stats,
            samples: Vec::new(),
            gc_log: Vec::new(),
            wear,
            endurance: None,
            measures: Vec::new(),
            timed: None,
            array: None,
            feedback: None,
        }
    }

    /// Work of the run on this scaled model, as a [`super::ProgressObserver`] counts it.
    pub(super) fn total_work(&self) -> u64 {
        self.prefill_bytes + self.workload_work
    }

    /// Work known in advance. A search counts only its first two scaled models.
    pub(super) fn expected_work(&self) -> u64 {
        let second = self.scales.get(1);
        let second = second.map(|scale| self.total_work() as f64 * f64::from(self.scale.0) / f64::from(scale.0));
        self.total_work() + second.unwrap_or(0.0) as u64
    }

    pub fn cell(&self) -> &RunSpec {
        &self.cell
    }

    /// The device as the workload sees it.
    pub fn target(&self) -> &WorkloadTarget {
        &self.target
    }

    /// Returns true if the run uses virtual time.
    pub fn is_timed(&self) -> bool {
        self.config.timing.is_some()
    }

    /// Summaries of the job file's streams. Empty for another workload.
    ///
    /// # Errors
    /// A job does not fit the drive.
    pub fn streams(&self) -> Result<Vec<StreamSummary>, LabError> {
        let Some(jobs) = self.cell.workload.jobs() else {
            return Ok(Vec::new());
        };
        if self.is_timed() && self.cell.array.is_none() {
            let planned = plan_streams(jobs, &self.target)?;
            return Ok(planned.into_iter().map(|stream| stream.summary).collect());
        }
        Ok(Schedule::new(jobs, &self.target)?.describe())
    }

    /// Names of the job file's streams that write through each reclaim unit handle. No names for
    /// another workload.
    ///
    /// # Errors
    /// A job does not fit the drive.
    pub fn streams_of_handles(&self) -> Result<Vec<Vec<String>>, LabError> {
        let mapper = self.mapper();
        let mut names = vec![Vec::new(); self.layout.handles.len()];
        for stream in self.streams()? {
            let mut handles: Vec<RuhId> =
                stream.placements.iter().map(|placement| mapper.handle_of(*placement)).collect();
            handles.sort_unstable();
            handles.dedup();
            for handle in handles {
                names[usize::from(handle.0)].push(stream.name.clone());
            }
        }
        Ok(names)
    }

    /// Options of the job file that have no effect, though they should change a run like this.
    pub(super) fn without_effect(&self) -> Vec<String> {
        let file = self.cell.workload.jobs();
        let options = file.map(|file| file.ineffective_options(self.is_timed(), self.target.endless));
        let options = options.unwrap_or_default();
        options.into_iter().map(str::to_string).collect()
    }

    /// Returns the translator from host requests to device commands.
    pub(super) fn mapper(&self) -> RequestMapper {
        RequestMapper::new(&self.layout, &self.handles)
    }

    /// Fill of the drive of an array that runs alone, if it is one.
    pub(super) fn member_fill(&self) -> Result<Option<MemberFill>, LabError> {
        member_fill(&self.cell, &self.layout, &self.handles)
    }

    /// Returns the workload at its beginning.
    pub(super) fn workload(&self) -> Result<BuiltWorkload, LabError> {
        let built = self.workload.lock().expect("nobody panics with it").take();
        built.map_or_else(
            || BuiltWorkload::build(&self.cell, &self.config, (&self.layout, &self.handles), &self.target),
            |(workload, _permit)| Ok(workload),
        )
    }

    /// Returns the requests of the workload in their order without time.
    ///
    /// # Errors
    /// An input file cannot be opened any more.
    pub fn source(&self) -> Result<Box<dyn RequestSource>, LabError> {
        Ok(self.cell.workload.source(&self.target, self.cell.seed)?)
    }

    /// Returns the requests of a block trace with recorded times. `None` for another workload.
    ///
    /// # Errors
    /// As [`RunPlan::source`]. The trace has no times, or it has a classifier.
    pub fn recorded_source(&self) -> Result<Option<Box<dyn TimedSource>>, LabError> {
        let workload = &self.cell.workload;
        let source = workload.is_trace().then(|| workload.timed_source(&self.target, self.cell.seed));
        Ok(source.transpose()?)
    }

    /// Returns a new device, or the one of the cell's snapshot.
    pub(super) fn device(&self) -> Result<Device, LabError> {
        let Some(snapshot) = &self.cell.snapshot else {
            return Ok(Device::new(&self.config).expect("the layout was made before"));
        };
        let device = Device::load(snapshot)?;
        if *device.config() != self.config {
            let problem = "the snapshot has changed since the run was planned, and now contains another device. \
                           Start the run again";
            return Err(LabError::invalid(&snapshot.display().to_string(), problem));
        }
        Ok(device)
    }

    /// Returns an error if the run exceeds the memory budget.
    pub(super) fn check_memory(&self, budget_bytes: u64) -> Result<(), LabError> {
        match self.memory_bytes <= budget_bytes {
            true => Ok(()),
            false => Err(self.need.refusal(budget_bytes)),
        }
    }
}

/// Plans every cell. A mistake in the last cell shows before the first one runs.
///
/// # Errors
/// A device or workload is impossible, or a workload exceeds the available memory.
pub fn prepare(cells: Vec<RunSpec>) -> Result<Vec<RunPlan>, LabError> {
    // A plan makes no page maps, and a caller may inspect it without a run.
    let budget_bytes = super::memory::memory_available();
    let reserve = |need: &MemoryNeed| match need.workload_bytes <= budget_bytes {
        true => Ok(()),
        false => Err(need.refusal(budget_bytes)),
    };
    let plan = |cell: RunSpec| Ok(RunPlan::new(cell, reserve)?.0);
    cells.into_iter().map(plan).collect()
}

/// A cell that cannot run.
#[derive(Clone, Debug)]
pub struct RefusedCell {
    pub key: CellKey,
    pub seed: u64,
    /// The reason, one sentence.
    pub error: String,
}

/// Plans the possible cells and reports why the others fail. A grid may have a drive that is
/// impossible or too small for its workload.
///
/// # Errors
/// As [`prepare`], but only if no cell can run or if a member of an ensemble cannot.
pub fn prepare_possible(cells: Vec<RunSpec>) -> Result<(Vec<RunPlan>, Vec<RefusedCell>), LabError> {
    let (mut plans, mut refused, mut first) = (Vec::new(), Vec::new(), None);
    for cell in cells {
        let (key, seed) = (cell.key.clone(), cell.seed);
        let is_member = cell.ensemble.is_some_and(|part| part.member.is_some());
        match prepare(vec![cell]) {
            Ok(plan) => plans.extend(plan),
            Err(error) if is_member => return Err(error),
            Err(error) => {
                refused.push(RefusedCell { key, seed, error: error.to_string() });
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if plans.is_empty() => Err(error),
        _ => Ok((plans, refused)),
    }
}
