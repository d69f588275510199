//! Plans: cells with their devices laid out and their workloads built, so that everything that can be refused is
//! refused before the first one runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use advise::OwnerMap;
use base::Bytes;
use ssd::{Device, DeviceConfig, Layout, PlacementList, RuhId};
use workload::Workload as _;
use workload::fio::{Schedule, StreamSummary, plan_streams};
use workload::{Source, Target, Twin};

use crate::cell::Cell;
use crate::error::LabError;
use crate::feedback;
use crate::mapper::Mapper;
use crate::timed::Runner;
use crate::twin::{self, Scale, ScaleChoice};

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
    workload: Mutex<Option<(Workload, Option<Room>)>>,
    /// Whose its data is, if somebody listens to the drive's events.
    pub(super) owners: Option<Arc<OwnerMap>>,
    /// Bytes of memory that the run needs, on the largest twin if there are several.
    pub memory_bytes: u64,
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
    fn build(
        cell: &Cell,
        config: &DeviceConfig,
        layout: &Layout,
        mapper: Mapper,
        target: &Target,
    ) -> Result<Workload, LabError> {
        if config.timing.is_some() {
            let limits = cell.run.limits(layout.capacity_bytes());
            let runner = Runner::new(&cell.workload, target, cell.seed, &limits, mapper)?;
            return Ok(Workload::Timed(Box::new(runner)));
        }
        Ok(Workload::Untimed(cell.workload.source(target, cell.seed)?))
    }

    /// Its requests, unless it is a job file in virtual time, whose jobs are apart.
    pub(super) fn source(&self) -> Option<&dyn Source> {
        match self {
            Workload::Untimed(source) => Some(&**source),
            Workload::Timed(runner) => runner.source(),
        }
    }
}

/// Room for a workload that waits for its run. A cache or a database takes memory as soon as it is built, and a sweep
/// plans hundreds of them, so only as many wait as can run at once; the others are built again when their run begins.
struct Room;

/// Workloads that have room now, in the whole process.
static ROOMS_TAKEN: AtomicUsize = AtomicUsize::new(0);

impl Room {
    fn take() -> Option<Room> {
        let one_more = |taken: usize| (taken < rayon::current_num_threads()).then_some(taken + 1);
        let taken = ROOMS_TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.ok().map(|_| Room)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let taken = ROOMS_TAKEN.fetch_sub(1, Ordering::Relaxed);
        assert!(taken > 0, "room is given back once");
    }
}

impl RunPlan {
    fn new(cell: Cell) -> Result<RunPlan, LabError> {
        let largest = match cell.run.scale {
            ScaleChoice::Fixed(scale) => return RunPlan::on_twin(cell, scale),
            ScaleChoice::Auto { largest } => largest,
        };
        if cell.device.timing.is_some() {
            let problem = "scale = auto compares write amplification, which says nothing of latencies and rates; give a scale, \
                           or run it untimed";
            return Err(LabError::invalid(&cell.key.to_string(), problem));
        }
        let scales = twin::sizes(&cell.key.device, &cell.device, largest)?;
        let most = scales.last().expect("a search has a twin at least");
        let (_, layout) = twin::twin(&cell.key.device, &cell.device, *most)?;
        let plan = RunPlan::on_twin(cell, scales[0])?;
        Ok(RunPlan {
            memory_bytes: layout.memory_bytes(),
            scales,
            ..plan
        })
    }

    /// The plan of the same cell on a larger twin.
    pub(super) fn larger(&self, scale: Scale) -> Result<RunPlan, LabError> {
        assert!(scale.0 < self.scale.0, "a search goes from small twins to large ones");
        RunPlan::on_twin(self.cell.clone(), scale)
    }

    /// Bytes that the host is to write; `None` where the workload says when it is done.
    pub fn write_bytes(&self) -> Option<u64> {
        self.cell.run.limits(self.layout.capacity_bytes()).write_bytes
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

    /// The plan of a run on the twin of this scale.
    fn on_twin(cell: Cell, scale: Scale) -> Result<RunPlan, LabError> {
        let full = Layout::new(&cell.device).map_err(|error| LabError::Device {
            device: cell.key.device.clone(),
            error,
        })?;
        let (config, layout) = twin::twin(&cell.key.device, &cell.device, scale)?;
        let capacity_bytes = layout.capacity_bytes();
        let handles = cell.run.namespace_handles(&cell.key.to_string(), &layout)?;
        let target = Target {
            device_bytes: full.capacity_bytes(),
            endless: cell.run.write_capacities.is_some(),
            placement_count: PlacementList::new(&handles, layout.groups).count(),
            twin: (scale != Scale::FULL).then_some(Twin {
                denominator: u64::from(scale.0),
                device_bytes: capacity_bytes,
                mapping_unit_bytes: layout.page_bytes,
                keep_requests: config.timing.is_some(),
            }),
        };
        let workload = Workload::build(&cell, &config, &layout, Mapper::new(&layout, &handles), &target)?;
        if let Workload::Untimed(source) = &workload {
            cell.run.check_untimed(&cell.key.to_string())?;
            if !target.endless && source.share_done().is_none() {
                let problem = "the workload never ends; give --write, or write_capacities in [run]";
                return Err(LabError::invalid(&cell.key.to_string(), problem));
            }
        }
        let owners = cell
            .feedback
            .as_ref()
            .map(|settings| feedback::owners(settings, &cell.workload, workload.source(), &target));
        // Job files take no memory before they run.
        let waiting = match cell.workload.jobs() {
            Some(_) => Some((workload, None)),
            None => Room::take().map(|room| (workload, Some(room))),
        };
        let bytes = |capacities: f64| (capacities * capacity_bytes as f64) as u64;
        Ok(RunPlan {
            owners: owners.transpose()?.map(Arc::new),
            memory_bytes: layout.memory_bytes(),
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

    /// The cell.
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
            || Workload::build(&self.cell, &self.config, &self.layout, self.mapper(), &self.target),
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

    /// Refuses a run whose page maps do not fit.
    pub(super) fn check_memory(&self, budget_bytes: u64) -> Result<(), LabError> {
        if self.memory_bytes <= budget_bytes {
            return Ok(());
        }
        let remedy = match self.scales.last() {
            Some(largest) => format!("search no further than a smaller twin than {largest} (--scale auto:1/64)"),
            None => "run a twin (--scale 1/64)".to_string(),
        };
        let problem = format!(
            "the page maps need {}, {} of memory are available; {remedy}",
            Bytes(self.memory_bytes),
            Bytes(budget_bytes)
        );
        Err(LabError::invalid(&self.cell.key.to_string(), problem))
    }
}

/// Plans every cell, so that a mistake in the last one shows before the first one runs.
///
/// # Errors
/// A cell whose device or workload is impossible.
pub fn prepare(cells: Vec<Cell>) -> Result<Vec<RunPlan>, LabError> {
    cells.into_iter().map(RunPlan::new).collect()
}
