//! Plans: cells with their devices laid out and their workloads built, so that everything that can be refused is
//! refused before the first one runs.

use std::sync::{Arc, Mutex};

use advise::OwnerMap;
use base::Bytes;
use ssd::{Device, DeviceConfig, Layout, PlacementList, RuhId};
use workload::Workload as _;
use workload::fio::{Schedule, StreamSummary, plan_streams};
use workload::trace::TimedSource;
use workload::{Source, Target, Twin};

use crate::feedback;
use crate::mapper::Mapper;
use crate::timed::{self, Runner};
use experiment::cell::{Cell, CellKey};
use experiment::error::LabError;
use experiment::twin::{self, Scale, ScaleChoice};

/// A cell with its device laid out, whose workload was built once to see that it can be.
pub struct RunPlan {
    cell: Cell,
    /// Scale of the twin that was laid out.
    pub(super) scale: Scale,
    /// If the scale is to be found: those of all twins that may be run, this one first.
    pub(super) scales: Vec<Scale>,
    pub(super) config: DeviceConfig,
    pub(super) layout: Layout,
    /// Handles of the host's namespace.
    pub(super) handles: Vec<RuhId>,
    /// What the workload sees of the device.
    pub(super) target: Target,
    /// The workload as it was built when the plan was made, if there was room for it; the first run takes it.
    workload: Mutex<Option<(Workload, Room)>>,
    /// Whose its data is, if somebody listens to the drive's events.
    pub(super) owners: Option<Arc<OwnerMap>>,
    /// Bytes of memory that the run needs at most, page maps and workload, on the twin that needs most if there are several.
    pub memory_bytes: u64,
    need: MemoryNeed,
    /// Bytes that the run needs on the twin that was laid out.
    pub(super) twin_bytes: u64,
    /// Bytes that the host writes before the workload.
    prefill_bytes: u64,
    /// How much of a watch's work the workload itself is: what it writes, or a drive-write if it does not say.
    pub(super) workload_work: u64,
}

/// A workload that is ready to run.
pub(super) enum Workload {
    /// As fast as the device takes its requests.
    Untimed(Box<dyn Source>),
    /// In virtual time.
    Timed(Box<Runner>),
}

impl Workload {
    /// Builds the workload of a cell for its device.
    fn build(cell: &Cell, config: &DeviceConfig, mapper: Mapper, target: &Target) -> Result<Workload, LabError> {
        if config.timing.is_some() {
            let runner = Runner::new(&cell.workload, target, cell.seed, &cell.run, mapper)?;
            return Ok(Workload::Timed(Box::new(runner)));
        }
        Ok(Workload::Untimed(cell.workload.source(target, cell.seed)?))
    }

    /// Bytes of memory that it takes at most, and what is measured of it.
    fn memory_bytes(cell: &Cell, config: &DeviceConfig, layout: &Layout, target: &Target) -> Result<u64, LabError> {
        let source_bytes = cell.workload.memory_bytes(target)?;
        let timed_bytes = match config.timing {
            Some(_) => timed::memory_bytes(&cell.workload, &cell.run),
            None => 0,
        };
        let samples_bytes = super::result::samples_bytes(&cell.run, layout.handles.len());
        Ok(source_bytes.saturating_add(timed_bytes).saturating_add(samples_bytes))
    }

    /// Its requests, unless it is a job file in virtual time, whose jobs are apart.
    pub(super) fn source(&self) -> Option<&dyn Source> {
        match self {
            Workload::Untimed(source) => Some(&**source),
            Workload::Timed(runner) => runner.source(),
        }
    }
}

/// Room for a workload that waits for its run. A workload takes memory as soon as it is built, and a sweep plans hundreds of
/// them. So only as many wait as can run at once, in a part of the memory. The others are built again when their run begins.
struct Room {
    bytes: u64,
}

/// What waits now, in the whole process.
static WAITING: Mutex<Waiting> = Mutex::new(Waiting { workloads: 0, bytes: 0 });

struct Waiting {
    workloads: usize,
    bytes: u64,
}

/// Part of the free memory that workloads may take while they wait.
const WAITING_SHARE: u64 = 8;

impl Room {
    fn take(bytes: u64) -> Option<Room> {
        let most_bytes = super::memory::memory_available() / WAITING_SHARE;
        let mut waiting = WAITING.lock().expect("nobody panics with it");
        let has_room =
            waiting.workloads < rayon::current_num_threads() && bytes <= most_bytes.saturating_sub(waiting.bytes);
        has_room.then(|| {
            waiting.workloads += 1;
            waiting.bytes += bytes;
            Room { bytes }
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut waiting = WAITING.lock().expect("nobody panics with it");
        assert!(waiting.workloads > 0, "room is given back once");
        waiting.workloads -= 1;
        waiting.bytes -= self.bytes;
    }
}

/// The ground of a run: its drive laid out, and what its workload would take. Nothing of that is large.
struct Ground {
    scale: Scale,
    config: DeviceConfig,
    layout: Layout,
    handles: Vec<RuhId>,
    target: Target,
    workload_bytes: u64,
}

impl Ground {
    fn new(cell: &Cell, scale: Scale) -> Result<Ground, LabError> {
        let full = Layout::new(&cell.device).map_err(|error| LabError::Device {
            device: cell.key.device.clone(),
            error,
        })?;
        let (config, layout) = twin::twin(&cell.key.device, &cell.device, scale)?;
        let handles = cell.run.namespace_handles(&cell.key.to_string(), &layout)?;
        let target = Target {
            device_bytes: full.capacity_bytes(),
            endless: cell.run.write_capacities.is_some(),
            placement_count: PlacementList::new(&handles, layout.groups).count(),
            twin: (scale != Scale::FULL).then_some(Twin {
                denominator: u64::from(scale.0),
                device_bytes: layout.capacity_bytes(),
                mapping_unit_bytes: layout.page_bytes,
                keep_requests: config.timing.is_some(),
            }),
        };
        Ok(Ground {
            workload_bytes: Workload::memory_bytes(cell, &config, &layout, &target)?,
            scale,
            config,
            layout,
            handles,
            target,
        })
    }

    /// Memory that a run of this cell needs on it, which is the largest of several twins or the only one.
    fn need(&self, cell: &Cell, largest: Option<&Scale>) -> MemoryNeed {
        MemoryNeed {
            place: cell.key.to_string(),
            is_trace: cell.workload.is_trace(),
            is_replay: cell.run.replay.is_some(),
            largest: largest.copied(),
            maps_bytes: self.layout.memory_bytes(),
            workload_bytes: self.workload_bytes,
        }
    }
}

/// Memory that a run needs at most.
#[derive(Clone, Debug)]
pub struct MemoryNeed {
    /// What messages call the run.
    place: String,
    /// Whether its workload is a trace, and whether that comes at its own times.
    is_trace: bool,
    is_replay: bool,
    /// The largest of the twins that it searches.
    largest: Option<Scale>,
    /// Bytes of the page maps.
    pub maps_bytes: u64,
    pub workload_bytes: u64,
}

impl MemoryNeed {
    /// All of it.
    pub fn bytes(&self) -> u64 {
        self.maps_bytes.saturating_add(self.workload_bytes)
    }

    /// A sentence for a run that needs more than `available_bytes`.
    pub fn refusal(&self, available_bytes: u64) -> LabError {
        let need = format!(
            "the page maps need {} and the workload up to {}, which is more than the {} that runs may take (nine tenths of the memory \
             that is available)",
            Bytes(self.maps_bytes),
            Bytes(self.workload_bytes),
            Bytes(available_bytes)
        );
        let twin = match self.largest {
            // A scaled model spoils what a replay measures.
            _ if self.is_replay => "replay on a smaller drive that the trace fills (--capacity)".to_string(),
            Some(largest) => format!("search no further than a smaller twin than {largest} (--scale auto:1/64)"),
            None => "run a smaller twin (--scale 1/64)".to_string(),
        };
        let less = match self.workload_bytes > self.maps_bytes {
            true if self.is_trace => "give fewer or shorter files of the trace, or ",
            true => "let the workload keep less (fewer jobs or objects, larger blocks, norandommap), or ",
            false => "",
        };
        LabError::invalid(&self.place, format!("{need}; {less}{twin}"))
    }
}

impl RunPlan {
    /// Plans a cell. `reserve` hears how much memory the run needs before any of that is taken.
    fn new<S>(cell: Cell, reserve: impl FnOnce(&MemoryNeed) -> Result<S, LabError>) -> Result<(RunPlan, S), LabError> {
        let largest = match cell.run.scale {
            ScaleChoice::Fixed(scale) => {
                let ground = Ground::new(&cell, scale)?;
                let reserved = reserve(&ground.need(&cell, None))?;
                return Ok((RunPlan::on(ground, cell, true)?, reserved));
            }
            ScaleChoice::Auto { largest } => largest,
        };
        if cell.device.timing.is_some() {
            let problem = "scale = auto compares write amplification, which says nothing of latencies and rates; give a scale, \
                           or run it untimed";
            return Err(LabError::invalid(&cell.key.to_string(), problem));
        }
        let scales = twin::sizes(&cell.key.device, &cell.device, largest)?;
        let ground = Ground::new(&cell, scales[0])?;
        let mut need = ground.need(&cell, scales.last());
        for scale in &scales[1..] {
            let larger = Ground::new(&cell, *scale)?.need(&cell, scales.last());
            need = if larger.bytes() > need.bytes() { larger } else { need };
        }
        let reserved = reserve(&need)?;
        let plan = RunPlan {
            memory_bytes: need.bytes(),
            need,
            scales,
            ..RunPlan::on(ground, cell, true)?
        };
        Ok((plan, reserved))
    }

    /// The plan of the same cell on a larger twin, whose workload is built when it runs.
    pub(super) fn larger(&self, scale: Scale) -> Result<RunPlan, LabError> {
        assert!(scale.0 < self.scale.0, "a search goes from small twins to large ones");
        RunPlan::on(Ground::new(&self.cell, scale)?, self.cell.clone(), false)
    }

    /// Bytes that the host is to write; `None` where the workload says when it is done.
    pub fn write_bytes(&self) -> Option<u64> {
        self.cell.run.write_bytes(self.layout.capacity_bytes())
    }

    /// Bytes that it is likely to write: what it is to write, or the capacity.
    pub(crate) fn workload_bytes(&self) -> u64 {
        self.workload_work
    }

    /// The device that was laid out.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Scale of the twin that it runs on; of several the first.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Whether the scale is to be found.
    pub(crate) fn searches(&self) -> bool {
        !self.scales.is_empty()
    }

    /// The plan of a run on this ground. Its workload is built where that is asked for, or where somebody has to know it.
    fn on(ground: Ground, cell: Cell, is_built: bool) -> Result<RunPlan, LabError> {
        let need = ground.need(&cell, None);
        let Ground {
            scale,
            config,
            layout,
            handles,
            target,
            workload_bytes,
        } = ground;
        let mut waiting = None;
        let mut owners = None;
        if is_built || cell.feedback.is_some() {
            let workload = Workload::build(&cell, &config, Mapper::new(&layout, &handles), &target)?;
            if let Workload::Untimed(source) = &workload {
                cell.run.check_untimed(&cell.key.to_string())?;
                if !target.endless && source.share_done().is_none() {
                    let problem = "the workload never ends; give --write, or write_capacities in [run]";
                    return Err(LabError::invalid(&cell.key.to_string(), problem));
                }
            }
            let feedback = cell.feedback.as_ref();
            let found = feedback.map(|settings| feedback::owners(settings, &cell.workload, workload.source(), &target));
            owners = found.transpose()?;
            waiting = Room::take(workload_bytes).map(|room| (workload, room));
        }
        let capacity_bytes = layout.capacity_bytes();
        let bytes = |capacities: f64| (capacities * capacity_bytes as f64) as u64;
        Ok(RunPlan {
            owners: owners.map(Arc::new),
            memory_bytes: need.bytes(),
            twin_bytes: need.bytes(),
            need,
            prefill_bytes: bytes(cell.run.prefill_capacities),
            workload_work: bytes(cell.run.write_capacities.unwrap_or(1.0)),
            workload: Mutex::new(waiting),
            cell,
            scale,
            scales: Vec::new(),
            config,
            layout,
            handles,
            target,
        })
    }

    /// Work of the run on this twin, as a [`super::Watch`] counts it.
    pub(super) fn work(&self) -> u64 {
        self.prefill_bytes + self.workload_work
    }

    /// Work that is sure to come: of a search, that of its first two twins.
    pub(super) fn expected_work(&self) -> u64 {
        let second = self.scales.get(1);
        let second = second.map(|scale| self.work() as f64 * f64::from(self.scale.0) / f64::from(scale.0));
        self.work() + second.unwrap_or(0.0) as u64
    }

    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// What its workload sees of the drive.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether it runs in virtual time.
    pub fn is_timed(&self) -> bool {
        self.config.timing.is_some()
    }

    /// What the streams of its job file do; none of another workload.
    ///
    /// # Errors
    /// A job that does not fit the drive.
    pub fn streams(&self) -> Result<Vec<StreamSummary>, LabError> {
        let Some(jobs) = self.cell.workload.jobs() else {
            return Ok(Vec::new());
        };
        if self.is_timed() {
            let planned = plan_streams(jobs, &self.target)?;
            return Ok(planned.into_iter().map(|stream| stream.summary).collect());
        }
        Ok(Schedule::new(jobs, &self.target)?.describe())
    }

    /// Of each reclaim unit handle the names of the streams of its job file that write through it; no names of another workload.
    ///
    /// # Errors
    /// A job that does not fit the drive.
    pub fn streams_of_handles(&self) -> Result<Vec<Vec<String>>, LabError> {
        let mapper = self.mapper();
        let mut names = vec![Vec::new(); self.layout.handles.len()];
        for stream in self.streams()? {
            let mut handles: Vec<RuhId> = stream
                .placements
                .iter()
                .map(|placement| mapper.handle_of(*placement))
                .collect();
            handles.sort_unstable();
            handles.dedup();
            for handle in handles {
                names[usize::from(handle.0)].push(stream.name.clone());
            }
        }
        Ok(names)
    }

    /// Options of its job file that would change a run like this one and do not.
    pub(super) fn without_effect(&self) -> Vec<String> {
        let file = self.cell.workload.jobs();
        let options = file.map(|file| file.pretended(self.is_timed(), self.target.endless));
        let options = options.unwrap_or_default();
        options.into_iter().map(str::to_string).collect()
    }

    /// From what the host asks for to what the device does.
    pub(super) fn mapper(&self) -> Mapper {
        Mapper::new(&self.layout, &self.handles)
    }

    /// The workload, at its beginning.
    pub(super) fn workload(&self) -> Result<Workload, LabError> {
        let built = self.workload.lock().expect("nobody panics with it").take();
        built.map_or_else(
            || Workload::build(&self.cell, &self.config, self.mapper(), &self.target),
            |(workload, _room)| Ok(workload),
        )
    }

    /// The requests of its workload, in the order in which they come without time.
    ///
    /// # Errors
    /// A file that it reads cannot be opened any more.
    pub fn source(&self) -> Result<Box<dyn Source>, LabError> {
        Ok(self.cell.workload.source(&self.target, self.cell.seed)?)
    }

    /// The requests of its workload with the times at which they were recorded; none if it is no block trace.
    ///
    /// # Errors
    /// As [`Plan::source`]; the trace has no times, or a classifier.
    pub fn recorded_source(&self) -> Result<Option<Box<dyn TimedSource>>, LabError> {
        let workload = &self.cell.workload;
        let source = workload
            .is_trace()
            .then(|| workload.timed_source(&self.target, self.cell.seed));
        Ok(source.transpose()?)
    }

    /// The device to run on: a new one, or the one that the cell goes on with.
    pub(super) fn device(&self) -> Result<Device, LabError> {
        let Some(snapshot) = &self.cell.snapshot else {
            return Ok(Device::new(&self.config).expect("the layout was made before"));
        };
        let device = Device::load(snapshot)?;
        if *device.config() != self.config {
            let problem = "holds another device than when the run was planned";
            return Err(LabError::invalid(&snapshot.display().to_string(), problem));
        }
        Ok(device)
    }

    /// Refuses a run that does not fit.
    pub(super) fn check_memory(&self, budget_bytes: u64) -> Result<(), LabError> {
        match self.memory_bytes <= budget_bytes {
            true => Ok(()),
            false => Err(self.need.refusal(budget_bytes)),
        }
    }
}

/// Plans every cell, so that a mistake in the last one shows before the first one runs.
///
/// # Errors
/// A cell whose device or workload is impossible, or whose workload does not fit into the memory that there is.
pub fn prepare(cells: Vec<Cell>) -> Result<Vec<RunPlan>, LabError> {
    // A plan makes no page maps, and may be looked at without a run.
    let budget_bytes = super::memory::memory_available();
    let reserve = |need: &MemoryNeed| match need.workload_bytes <= budget_bytes {
        true => Ok(()),
        false => Err(need.refusal(budget_bytes)),
    };
    let plan = |cell: Cell| Ok(RunPlan::new(cell, reserve)?.0);
    cells.into_iter().map(plan).collect()
}

/// A cell that cannot be run.
#[derive(Clone, Debug)]
pub struct RefusedCell {
    /// Its place in the experiment.
    pub key: CellKey,
    pub seed: u64,
    /// Why not, in a sentence.
    pub error: String,
}

/// Plans the cells that can be run, and says why the others can't: a drive of a grid may be impossible, or too small for its workload.
///
/// # Errors
/// As [`prepare`], if no cell can be run, or not a member of an ensemble.
pub fn prepare_possible(cells: Vec<Cell>) -> Result<(Vec<RunPlan>, Vec<RefusedCell>), LabError> {
    let (mut plans, mut refused, mut first) = (Vec::new(), Vec::new(), None);
    for cell in cells {
        let (key, seed) = (cell.key.clone(), cell.seed);
        let is_member = cell.ensemble.is_some_and(|part| part.member.is_some());
        match prepare(vec![cell]) {
            Ok(plan) => plans.extend(plan),
            Err(error) if is_member => return Err(error),
            Err(error) => {
                refused.push(RefusedCell {
                    key,
                    seed,
                    error: error.to_string(),
                });
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if plans.is_empty() => Err(error),
        _ => Ok((plans, refused)),
    }
}

/// Plans a cell. `reserve` sets aside the memory that its run needs before any of that is taken.
///
/// # Errors
/// As [`prepare`]; there is no memory to set aside.
pub fn prepare_within<S>(
    cell: Cell,
    reserve: impl FnOnce(&MemoryNeed) -> Result<S, LabError>,
) -> Result<(RunPlan, S), LabError> {
    RunPlan::new(cell, reserve)
}
