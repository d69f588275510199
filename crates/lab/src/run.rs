//! Running cells: a workload against a device, watched.
//!
//! ```text
//! Workload -> batches of requests -> Device<Recorder> -> Stats, GC log, samples -> CellResult
//! timed::Runner -> requests in virtual time -/            \-> latencies, what happened when
//! ```
//!
//! A device with timing runs the jobs in virtual time (`timed`), any other as fast as it takes requests.
//! Cells run in parallel, as many as there are cores and as memory allows; each is deterministic on its own. A run can be
//! stopped from outside and then returns what it has measured.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use advise::OwnerMap;
use rayon::prelude::*;
use serde::Serialize;
use ssd::event::Reclaim;
use ssd::{Device, Endurance, Event, Layout, Lpn, Nanos, OwnerStats, Placement, RgId, RuhId, Stats, Write};

use crate::error::LabError;
use crate::experiment::{Cell, CellKey, RunSettings};
use crate::feedback::{self, Feedback, FeedbackResult, Ring};
use crate::policy::{PlacementPolicy, Placer, Policies};
use crate::timed::Runner;
use crate::timed::measure::TimedResult;
use crate::twin::{self, Scale};
use workload::{Measure, Operation, Range, Request, Source, Spec, Target, Twin};

/// Requests taken from the workload at a time.
const BATCH_REQUESTS: usize = 1024;
/// Requests of a job file that a placement policy is asked about at a time: asking costs as much as writing some hundred of them.
const PLACED_REQUESTS: usize = 8 * BATCH_REQUESTS;
/// Requests between two moments at which somebody who listens to the drive may read its log and change where data goes.
const LISTENED_REQUESTS: usize = 64;

/// What one run measured.
#[derive(Clone, Debug, Serialize)]
pub struct CellResult {
    /// Its place in the experiment.
    pub key: CellKey,
    /// Seed of the run.
    pub seed: u64,
    /// Scale of the twin it ran on.
    pub scale: Scale,
    /// Whether it wrote everything it should; otherwise it was stopped.
    pub complete: bool,
    /// Logical capacity of the twin in bytes.
    pub capacity_bytes: u64,
    /// Reclaim units of the device.
    pub superblocks: u32,
    /// Counters over the run, the prefill excluded.
    pub stats: Stats,
    /// Time series.
    pub samples: Vec<Sample>,
    /// One row for each collection, if it was asked for.
    #[serde(skip)]
    pub gc_log: Vec<Reclaim>,
    /// Fewest, mean and most erase counts of a block.
    pub block_erases: (u32, f64, u32),
    /// Wear since the device was made, if its profile says what the flash survives; bytes are those of the drive at full size.
    pub endurance: Option<Endurance>,
    /// What the workload measured of itself, and what the device did for each tenant.
    pub measures: Vec<Measure>,
    /// Latencies and what happened when, of a device with timing.
    #[serde(skip)]
    pub timed: Option<TimedResult>,
    /// What who listened to the drive's events read and did.
    #[serde(skip)]
    pub feedback: Option<FeedbackResult>,
}

/// A moment of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Bytes written by the host so far.
    pub host_bytes: u64,
    /// Bytes programmed so far.
    pub media_bytes: u64,
    /// Counters of each handle and, last, of the shared pool, so far.
    pub owners: Vec<OwnerStats>,
    /// Reclaim units that each of them holds.
    pub units: Vec<u64>,
    /// Valid pages that each of them holds.
    pub valid_pages: Vec<u64>,
}

impl CellResult {
    /// Media bytes to host bytes over the whole run.
    pub fn write_amplification(&self) -> f64 {
        self.stats.write_amplification().unwrap_or(1.0)
    }

    /// Media bytes to host bytes over the last `capacities` of the run.
    pub fn tail_write_amplification(&self, capacities: f64) -> f64 {
        let Some(last) = self.samples.last() else {
            return self.write_amplification();
        };
        let from = last.host_bytes as f64 - capacities * self.capacity_bytes as f64;
        let before = self
            .samples
            .iter()
            .rev()
            .find(|sample| sample.host_bytes as f64 <= from);
        let (host, media) = before.map_or((0, 0), |sample| (sample.host_bytes, sample.media_bytes));
        let written = (last.host_bytes - host).max(1);
        (last.media_bytes - media) as f64 / written as f64
    }
}

/// Receives the progress of runs; called from their threads. Work has no unit; about a byte written each.
pub trait Watch: Sync {
    /// This much more work is to be done.
    fn expects(&self, work: u64);
    /// This much more of it is done.
    fn advanced(&self, work: u64);
    /// A cell is done.
    fn finished(&self, result: &CellResult);
    /// Whether to stop and keep what was measured.
    fn stopped(&self) -> bool;
}

/// Watches nothing and never stops.
impl Watch for () {
    fn expects(&self, _work: u64) {}

    fn advanced(&self, _work: u64) {}

    fn finished(&self, _result: &CellResult) {}

    fn stopped(&self) -> bool {
        false
    }
}

/// A counter and a switch, for callers that show progress.
#[derive(Debug, Default)]
pub struct Progress {
    /// Work of all cells.
    pub expected: AtomicU64,
    /// What is done of it.
    pub done: AtomicU64,
    /// Cells done.
    pub cells: AtomicU64,
    /// Set to stop.
    pub stop: AtomicBool,
}

impl Watch for Progress {
    fn expects(&self, work: u64) {
        self.expected.fetch_add(work, Ordering::Relaxed);
    }

    fn advanced(&self, work: u64) {
        self.done.fetch_add(work, Ordering::Relaxed);
    }

    fn finished(&self, _result: &CellResult) {
        self.cells.fetch_add(1, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A cell with its device laid out: everything that can be refused has been.
pub struct Prepared {
    cell: Cell,
    config: ssd::DeviceConfig,
    layout: Layout,
    /// What the workload sees of the device.
    target: Target,
    /// Whose its data is, if somebody listens to the drive's events.
    owners: Option<Arc<OwnerMap>>,
    /// Bytes of memory that the run needs.
    pub memory_bytes: u64,
    /// Bytes that the host writes before the workload.
    prefill_bytes: u64,
    /// How much of a watch's work the workload itself is: what it writes, or a drive-write if it does not say.
    workload_work: u64,
}

impl Prepared {
    /// Work of the run, as a [`Watch`] counts it.
    fn work(&self) -> u64 {
        self.prefill_bytes + self.workload_work
    }

    /// The cell.
    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// The requests of its workload.
    ///
    /// # Errors
    /// A file that it reads cannot be opened any more.
    pub fn source(&self) -> Result<Box<dyn Source>, LabError> {
        Ok(self.cell.workload.source(&self.target, self.cell.seed)?)
    }

    /// Refuses a run whose page maps do not fit.
    fn check_memory(&self, budget_bytes: u64) -> Result<(), LabError> {
        if self.memory_bytes <= budget_bytes {
            return Ok(());
        }
        let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
        let problem = format!(
            "the page maps need {:.1} GiB, {:.1} GiB of memory are available; run a twin (--scale 1/64)",
            gib(self.memory_bytes),
            gib(budget_bytes)
        );
        Err(LabError::invalid(&self.cell.key.to_string(), problem))
    }
}

/// Lays out every cell, so that a mistake in the last one shows before the first one runs.
///
/// # Errors
/// A cell whose device or workload is impossible.
pub fn prepare(cells: Vec<Cell>) -> Result<Vec<Prepared>, LabError> {
    cells.into_iter().map(prepare_cell).collect()
}

fn prepare_cell(cell: Cell) -> Result<Prepared, LabError> {
    let scale = cell.run.scale;
    let full = Layout::new(&cell.device).map_err(|error| LabError::Device {
        device: cell.key.device.clone(),
        error,
    })?;
    let (config, layout) = twin::twin(&cell.key.device, &cell.device, scale)?;
    let capacity = u64::from(layout.logical_pages) * layout.page_bytes;
    let target = Target {
        device_bytes: u64::from(full.logical_pages) * full.page_bytes,
        endless: cell.run.write_capacities.is_some(),
        placement_ids: layout.placement_identifiers(),
        twin: (scale != Scale::FULL).then_some(Twin {
            denominator: u64::from(scale.0),
            device_bytes: capacity,
            mapping_unit_bytes: layout.page_bytes,
            keep_requests: config.timing.is_some(),
        }),
    };
    let mapper = Mapper::new(&layout);
    if config.timing.is_some() {
        let limits = cell.run.limits(capacity);
        Runner::new(&cell.workload, &target, cell.seed, &limits, mapper, 0)?;
    } else {
        cell.run.check_untimed(&cell.key.to_string())?;
        let source = cell.workload.source(&target, cell.seed)?;
        if !target.endless && source.share_done().is_none() {
            let problem = "the workload never ends; give --write, or write_capacities in [run]";
            return Err(LabError::invalid(&cell.key.to_string(), problem));
        }
    }
    let owners = match &cell.feedback {
        Some(settings) => Some(feedback::owners(settings, &cell.workload, &target, cell.seed)?),
        None => None,
    };
    let bytes = |capacities: f64| (capacities * capacity as f64) as u64;
    let prefill_bytes = bytes(cell.run.prefill_capacities);
    let workload_work = bytes(cell.run.write_capacities.unwrap_or(1.0));
    let memory_bytes = layout.memory_bytes();
    Ok(Prepared {
        cell,
        config,
        layout,
        target,
        owners: owners.map(Arc::new),
        memory_bytes,
        prefill_bytes,
        workload_work,
    })
}

/// Bytes of memory that runs may use: nine tenths of what the system says is available, or 8 GiB where it does not say.
pub fn memory_available() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(8 << 30, |kib| kib * 1024 / 10 * 9)
}

/// Runs cells, in parallel within a memory budget, and returns their results in the same order.
///
/// # Errors
/// A cell that needs more memory than there is, or whose workload cannot be read.
pub fn run_all<P: Borrow<Prepared> + Sync>(
    prepared: &[P],
    keep_gc_log: bool,
    memory_budget_bytes: u64,
    watch: &dyn Watch,
) -> Result<Vec<CellResult>, LabError> {
    run_all_with(prepared, Policies::default(), keep_gc_log, memory_budget_bytes, watch)
}

/// As [`run_all`], with policies of the caller. They may share something, so with policies cells run one after another, on the calling
/// thread.
///
/// # Errors
/// As [`run_all`], or a placement policy fails.
pub fn run_all_with<P: Borrow<Prepared> + Sync>(
    prepared: &[P],
    policies: Policies<'_>,
    keep_gc_log: bool,
    memory_budget_bytes: u64,
    watch: &dyn Watch,
) -> Result<Vec<CellResult>, LabError> {
    let cells = || prepared.iter().map(Borrow::<Prepared>::borrow);
    for cell in cells() {
        cell.check_memory(memory_budget_bytes)?;
    }
    watch.expects(cells().map(Prepared::work).sum());
    let largest = cells().map(|cell| cell.memory_bytes).max().unwrap_or(1).max(1);
    let run = |cell: &P| {
        if watch.stopped() {
            return None;
        }
        let result = run_cell(cell.borrow(), policies, keep_gc_log, watch);
        if let Ok(result) = &result {
            watch.finished(result);
        }
        Some(result)
    };
    if policies.victim.is_some() || policies.placement.is_some() {
        return prepared.iter().filter_map(run).collect();
    }
    let at_once = (memory_budget_bytes / largest).clamp(1, rayon::current_num_threads() as u64) as usize;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(at_once)
        .build()
        .expect("threads for the runs");
    // Workers take one cell at a time, so that a long one at the end does not wait in another's queue.
    let results: Vec<Option<_>> = pool.install(|| prepared.par_iter().with_max_len(1).map(run).collect());
    results.into_iter().flatten().collect()
}

/// Keeps the rows of the GC log.
#[derive(Default)]
pub(crate) struct Recorder {
    keep: bool,
    gc_log: Vec<Reclaim>,
    /// On a device with timing: collections that nobody has taken notice of, when and how many pages were copied.
    pub(crate) recent: Vec<(Nanos, u32)>,
    timed: bool,
    /// Parts of the drive that belong to somebody, with the page after each and the pages copied of it.
    ranges: Vec<(Range, u32, u64)>,
    /// The events that the drive keeps for who listens.
    ring: Option<Ring>,
}

impl Recorder {
    pub(crate) fn new(keep_gc_log: bool, timed: bool) -> Recorder {
        Recorder {
            keep: keep_gc_log,
            timed,
            ..Recorder::default()
        }
    }

    /// Counts from now on how many pages of each of these parts of the drive are copied.
    fn watch_ranges(&mut self, ranges: Vec<Range>, page_bytes: u64) {
        let end = |range: &Range| range.end_bytes.div_ceil(page_bytes) as u32;
        self.ranges = ranges
            .into_iter()
            .map(|range| (range.clone(), end(&range), 0))
            .collect();
    }

    fn copies(&self) -> impl Iterator<Item = (&Range, u64)> {
        self.ranges.iter().map(|(range, _, copied)| (range, *copied))
    }
}

impl ssd::EventSink for Recorder {
    fn event(&mut self, event: &Event) {
        let Event::Reclaim(reclaim) = event else { return };
        if self.keep {
            self.gc_log.push(reclaim.clone());
        }
        if let Some(ring) = &mut self.ring {
            ring.reclaimed(reclaim);
        }
        if self.timed {
            self.recent.push((reclaim.now, reclaim.pages_copied));
        }
    }

    fn copied(&mut self, pages: &[u32]) {
        if let Some(ring) = &mut self.ring {
            ring.copied(pages);
        }
        if self.ranges.is_empty() {
            return;
        }
        for page in pages {
            let owner = self.ranges.partition_point(|(_, end, _)| end <= page);
            if let Some((_, _, copied)) = self.ranges.get_mut(owner) {
                *copied += 1;
            }
        }
    }
}

/// From bytes on the drive to its mapping units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapper {
    /// Bits of an address within a mapping unit: a division for each request would show.
    page_bits: u32,
    groups: u16,
}

impl Mapper {
    pub(crate) fn new(layout: &Layout) -> Mapper {
        assert!(
            layout.page_bytes.is_power_of_two(),
            "layouts have mapping units of 4 to 64 KiB"
        );
        Mapper {
            page_bits: layout.page_bytes.trailing_zeros(),
            groups: layout.groups,
        }
    }

    /// All mapping units that a request touches.
    #[inline]
    pub(crate) fn extent(self, request: &Request) -> (Lpn, u32) {
        let first = request.offset_bytes >> self.page_bits;
        let end = self.pages_up(request.offset_bytes + u64::from(request.bytes));
        (Lpn(first as u32), (end - first) as u32)
    }

    /// Mapping units that hold this many bytes.
    #[inline]
    fn pages_up(self, bytes: u64) -> u64 {
        (bytes + (1 << self.page_bits) - 1) >> self.page_bits
    }

    /// Mapping units that a request covers: deallocation leaves a part of one as it is.
    pub(crate) fn whole_pages(self, request: &Request) -> Option<(Lpn, u32)> {
        let first = self.pages_up(request.offset_bytes);
        let end = (request.offset_bytes + u64::from(request.bytes)) >> self.page_bits;
        (end > first).then(|| (Lpn(first as u32), (end - first) as u32))
    }

    #[inline]
    pub(crate) fn write(self, request: &Request) -> Write {
        let (first, pages) = self.extent(request);
        // The drive lists its placement identifiers handle by handle, the groups of each in a row.
        let placement = request.placement.map_or(Placement::DEFAULT, |index| Placement {
            group: RgId(index % self.groups),
            handle: RuhId(index / self.groups),
        });
        Write {
            first,
            pages,
            host_bytes: u64::from(request.bytes),
            placement,
        }
    }
}

fn run_cell(
    prepared: &Prepared,
    policies: Policies<'_>,
    keep_gc_log: bool,
    watch: &dyn Watch,
) -> Result<CellResult, LabError> {
    let mut device = Device::new(&prepared.config).expect("the layout was made before");
    device.set_victim_policy(policies.victim.map(|make| make()));
    let placement = policies.placement.map(|make| make());
    run_device(prepared, device, placement, keep_gc_log, watch).map(|(result, _)| result)
}

/// Runs a cell on a device and gives the device back.
fn run_device(
    prepared: &Prepared,
    device: Device,
    placement: Option<Box<dyn PlacementPolicy>>,
    keep_gc_log: bool,
    watch: &dyn Watch,
) -> Result<(CellResult, Device), LabError> {
    let timed = prepared.config.timing.is_some();
    let (device, ()) = device.replace_sink(Recorder::new(keep_gc_log, timed));
    let start = device.stats().clone();
    let Prepared { cell, layout, .. } = prepared;
    let feedback = cell.feedback.as_ref().zip(prepared.owners.clone());
    let feedback = feedback.map(|(settings, owners)| Feedback::new(settings, owners, layout));
    let placement = match &feedback {
        Some(feedback) => Some(feedback.retagger(placement)),
        None => placement,
    };
    let placer = placement.map(|policy| Placer::new(policy, layout.page_bytes, layout.placement_identifiers()));
    let mut run = Run {
        device,
        prepared,
        placer,
        writes: Vec::new(),
        start,
        samples: Vec::new(),
        timed: None,
        feedback,
        measures: Vec::new(),
        reported: 0,
        watch,
    };
    let begins_at = run.prefill();
    let complete = match timed {
        true => run.work_in_time(begins_at)?,
        false => run.work()?,
    };
    let result = run.result(complete);
    Ok((result, run.device.replace_sink(()).0))
}

/// Runs a cell and saves its device.
///
/// # Errors
/// There is too little memory, or the snapshot cannot be written.
pub fn run_and_save(prepared: &Prepared, path: &Path, watch: &dyn Watch) -> Result<CellResult, LabError> {
    prepared.check_memory(memory_available())?;
    watch.expects(prepared.work());
    let device = Device::new(&prepared.config).expect("the layout was made before");
    let (result, device) = run_device(prepared, device, None, true, watch)?;
    device.save(path)?;
    Ok(result)
}

/// A workload to run on a device that was saved before.
pub struct Continued<'a> {
    /// The snapshot.
    pub snapshot: &'a Path,
    /// The workload.
    pub workload: Spec,
    /// How much to write and how to watch; there is no prefill.
    pub settings: RunSettings,
    /// Where to save the device afterwards.
    pub save: Option<&'a Path>,
}

/// Loads a device, runs a workload on it and saves it if that is asked for.
///
/// # Errors
/// The snapshot cannot be read or written, or the workload does not fit its device.
pub fn continue_snapshot(continued: &Continued<'_>, watch: &dyn Watch) -> Result<CellResult, LabError> {
    let device = Device::load(continued.snapshot)?;
    let name = continued.snapshot.display().to_string();
    let cell = Cell {
        key: CellKey {
            device: name,
            variant: String::new(),
            grid: Vec::new(),
        },
        seed: device.config().seed,
        device: device.config().clone(),
        workload: continued.workload.clone(),
        run: continued.settings.clone(),
        feedback: None,
    };
    let prepared = prepare_cell(cell)?;
    watch.expects(prepared.work());
    let (result, device) = run_device(&prepared, device, None, true, watch)?;
    if let Some(path) = continued.save {
        device.save(path)?;
    }
    Ok(result)
}

struct Run<'a> {
    device: Device<Recorder>,
    prepared: &'a Prepared,
    /// Says where writes go, instead of the workload.
    placer: Option<Placer>,
    writes: Vec<Write>,
    /// Counters when the workload began.
    start: Stats,
    samples: Vec<Sample>,
    timed: Option<TimedResult>,
    feedback: Option<Feedback>,
    measures: Vec<Measure>,
    /// Work of the workload that the watch knows of.
    reported: u64,
    watch: &'a dyn Watch,
}

impl<'a> Run<'a> {
    fn settings(&self) -> &'a RunSettings {
        &self.prepared.cell.run
    }

    /// Tells the watch that this share of the workload is done.
    fn report(&mut self, share: f64) {
        let work = (share.clamp(0.0, 1.0) * self.prepared.workload_work as f64) as u64;
        self.watch.advanced(work.saturating_sub(self.reported));
        self.reported = self.reported.max(work);
    }

    fn capacity_bytes(&self) -> u64 {
        u64::from(self.prepared.layout.logical_pages) * self.prepared.layout.page_bytes
    }

    /// Writes the device sequentially, in extents of a mebibyte or less, and lets it do what it owes; returns the device's time.
    fn prefill(&mut self) -> Nanos {
        /// Extents in flight, if the device has timing.
        const IN_FLIGHT: usize = 32;
        /// Longer than any buffer takes to be programmed and any reclaim unit to be erased.
        const REST_NS: Nanos = 10_000_000_000;
        let mut completions = [0; IN_FLIGHT];
        let (mut now, mut extents) = (0, 0);
        let layout = &self.prepared.layout;
        let extent = ((1 << 20) / layout.page_bytes).max(1) as u32;
        let mut left = (self.settings().prefill_capacities * f64::from(layout.logical_pages)) as u64;
        let mut lpn = 0;
        while left > 0 && !self.watch.stopped() {
            let pages = extent
                .min(layout.logical_pages - lpn)
                .min(left.min(u64::from(u32::MAX)) as u32);
            let host_bytes = u64::from(pages) * layout.page_bytes;
            let write = Write {
                first: Lpn(lpn),
                pages,
                host_bytes,
                placement: Placement::DEFAULT,
            };
            let slot = &mut completions[extents % IN_FLIGHT];
            now = now.max(*slot);
            let done = self.device.write(now, &write).expect("the extent is within the device");
            *slot = done.at;
            extents += 1;
            self.watch.advanced(host_bytes);
            lpn = (lpn + pages) % layout.logical_pages;
            left -= u64::from(pages);
        }
        self.start = self.device.stats().clone();
        let recorder = self.device.sink_mut();
        recorder.gc_log.clear();
        recorder.recent.clear();
        if let Some(feedback) = &self.feedback {
            let entries = self.prepared.config.events.log_entries;
            recorder.ring = Some(feedback.ring(&self.prepared.layout, entries, &self.start));
        }
        match completions.into_iter().max() {
            Some(last) if extents > 0 && self.prepared.config.timing.is_some() => last + REST_NS,
            _ => 0,
        }
    }

    /// Runs the workload in virtual time, which begins at `begins_at` of the device's; false if it was stopped.
    fn work_in_time(&mut self, begins_at: Nanos) -> Result<bool, LabError> {
        /// Requests between two looks at what was written; fewer if somebody listens who must not come late.
        const REQUESTS: u64 = 4096;
        let requests = self.feedback.as_ref().map_or(REQUESTS, |_| LISTENED_REQUESTS as u64);
        let Prepared {
            cell, target, layout, ..
        } = self.prepared;
        let limits = cell.run.limits(self.capacity_bytes());
        let mapper = Mapper::new(layout);
        let mut runner = Runner::new(&cell.workload, target, cell.seed, &limits, mapper, begins_at)?;
        runner.set_placer(self.placer.take());
        let every = self.sample_bytes();
        let mut next_sample = every;
        let mut complete = true;
        let ranges = runner.source().map(Source::ranges).unwrap_or_default();
        self.device.sink_mut().watch_ranges(ranges, layout.page_bytes);
        while runner.advance(&mut self.device, requests)? {
            let written = runner.written();
            self.listen(written);
            self.report(runner.share_done());
            if written >= next_sample {
                self.sample();
                next_sample = written - written % every + every;
            }
            if complete && self.watch.stopped() {
                complete = false;
                runner.stop();
            }
        }
        self.report(1.0);
        if let Some(source) = runner.source() {
            self.measures = self.measures_of(source);
        }
        self.timed = Some(runner.finish());
        for reclaim in &mut self.device.sink_mut().gc_log {
            reclaim.now -= begins_at;
        }
        Ok(complete)
    }

    /// Reads the drive's log, if somebody does and it is time.
    fn listen(&mut self, written: u64) {
        let Some(feedback) = self.feedback.as_mut().filter(|feedback| feedback.is_due(written)) else {
            return;
        };
        let stats = self.device.stats().since(&self.start);
        let ring = self.device.sink_mut().ring.as_mut();
        feedback.read(ring.expect("it was made after the prefill"), &stats, written);
    }

    /// Host bytes between two samples.
    fn sample_bytes(&self) -> u64 {
        ((self.settings().sample_capacities * self.capacity_bytes() as f64) as u64).max(1)
    }

    /// Runs the workload until enough is written; false if it was stopped.
    fn work(&mut self) -> Result<bool, LabError> {
        let mut workload = self.prepared.source()?;
        self.device
            .sink_mut()
            .watch_ranges(workload.ranges(), self.prepared.layout.page_bytes);
        let limits = self.settings().limits(self.capacity_bytes());
        let target = limits.write_bytes.unwrap_or(u64::MAX);
        let every = self.sample_bytes();
        let mut next_sample = every;
        // What a workload measures of itself must not run ahead of what is written; job files measure nothing.
        let ahead = match (&self.placer, self.prepared.cell.workload.jobs()) {
            _ if self.feedback.is_some() => LISTENED_REQUESTS,
            (Some(_), Some(_)) => PLACED_REQUESTS,
            _ => BATCH_REQUESTS,
        };
        let mut requests: Vec<Request> = Vec::with_capacity(ahead);
        let mut written: u64 = 0;
        let mut complete = true;
        while written < target {
            if self.watch.stopped() {
                complete = false;
                break;
            }
            requests.clear();
            if workload.next_batch(&mut requests, ahead)? == 0 {
                break; // A workload that ends: it wrote all it has.
            }
            if let Some(placer) = &self.placer {
                placer.place(&mut requests)?;
            }
            for batch in requests.chunks(BATCH_REQUESTS) {
                for request in batch {
                    if written >= target {
                        break;
                    }
                    written += self.take(request);
                }
                self.write_out();
                self.listen(written);
                if written >= next_sample {
                    self.sample();
                    next_sample = written - written % every + every;
                }
            }
            self.report(match limits.write_bytes {
                Some(bytes) => written as f64 / bytes as f64,
                None => workload.share_done().unwrap_or(0.0),
            });
        }
        self.report(1.0);
        self.measures = self.measures_of(&*workload);
        Ok(complete)
    }

    /// What the workload measured, and what the device did for each part of the drive that belongs to somebody.
    fn measures_of(&self, workload: &dyn Source) -> Vec<Measure> {
        let mut measures = workload.measures();
        let page_bytes = self.prepared.layout.page_bytes as f64;
        for (range, copied) in self.device.sink().copies() {
            let name = |part: &str| format!("{}.{part}", range.name);
            let bytes_copied = copied as f64 * page_bytes;
            measures.push(Measure::new(name("bytes_copied"), bytes_copied));
            let written = measures.iter().find(|measure| measure.name == name("bytes_written"));
            if let Some(written) = written.map(|measure| measure.value).filter(|written| *written > 0.0) {
                measures.push(Measure::new(
                    name("write_amplification"),
                    (written + bytes_copied) / written,
                ));
            }
        }
        measures
    }

    /// Queues a write, carries out a trim; returns the bytes written.
    fn take(&mut self, request: &Request) -> u64 {
        let mapper = Mapper::new(&self.prepared.layout);
        match request.operation {
            Operation::Read => 0,
            Operation::Write => {
                self.writes.push(mapper.write(request));
                u64::from(request.bytes)
            }
            Operation::Trim => {
                self.write_out();
                if let Some((first, pages)) = mapper.whole_pages(request) {
                    let deallocated = self.device.deallocate(0, first, pages);
                    let _ = deallocated.expect("requests are within the device");
                }
                0
            }
        }
    }

    fn write_out(&mut self) {
        let _ = self
            .device
            .write_batch(0, &self.writes)
            .expect("requests are within the device");
        self.writes.clear();
    }

    fn stats(&self) -> Stats {
        self.device.stats().since(&self.start)
    }

    fn sample(&mut self) {
        let stats = self.stats();
        let occupancy = self.device.occupancy();
        self.samples.push(Sample {
            host_bytes: stats.host_bytes_written(),
            media_bytes: stats.media_bytes_written(),
            owners: stats.handles.iter().copied().chain([stats.shared]).collect(),
            units: occupancy.iter().map(|row| row.units).collect(),
            valid_pages: occupancy.iter().map(|row| row.valid_pages).collect(),
        });
    }

    fn endurance(&self) -> Option<Endurance> {
        let scale = f64::from(self.settings().scale.0);
        self.device.endurance().map(|endurance| Endurance {
            host_bytes_total: endurance.host_bytes_total * scale,
            host_bytes_left: endurance.host_bytes_left * scale,
            ..endurance
        })
    }

    fn result(&mut self, complete: bool) -> CellResult {
        let stats = self.stats();
        let ring = self.device.sink_mut().ring.take();
        let feedback = self
            .feedback
            .take()
            .zip(ring)
            .map(|(feedback, ring)| feedback.finish(ring));
        self.measures.extend(feedback.iter().flat_map(FeedbackResult::measures));
        if self
            .samples
            .last()
            .is_none_or(|sample| sample.host_bytes < stats.host_bytes_written())
        {
            self.sample();
        }
        let erases = self.device.block_erase_counts();
        let sum: u64 = erases.iter().map(|count| u64::from(*count)).sum();
        let mean = sum as f64 / erases.len() as f64;
        let block_erases = (
            *erases.iter().min().expect("a device has blocks"),
            mean,
            *erases.iter().max().expect("a device has blocks"),
        );
        CellResult {
            key: self.prepared.cell.key.clone(),
            seed: self.prepared.cell.seed,
            scale: self.settings().scale,
            complete,
            capacity_bytes: self.capacity_bytes(),
            superblocks: self.prepared.layout.superblocks(),
            stats,
            samples: std::mem::take(&mut self.samples),
            gc_log: std::mem::take(&mut self.device.sink_mut().gc_log),
            block_erases,
            endurance: self.endurance(),
            measures: std::mem::take(&mut self.measures),
            timed: self.timed.take(),
            feedback,
        }
    }
}
