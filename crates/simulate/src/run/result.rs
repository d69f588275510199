//! Result of a run: counters, time series, latencies and the workload's own measures.

use serde::Serialize;
use ssd::event::ReclaimRecord;
use ssd::{DeviceStats, Endurance, OwnerStats, WearSummary};
use workload::WorkloadMeasure;

use super::array_result::ArrayResult;
use crate::feedback::FeedbackResult;
use crate::steady::SteadyState;
use crate::timed::result::TimedResult;
use experiment::cell::{CellKey, EnsemblePart};
use experiment::run_options::RunSettings;
use experiment::scaled_model::Scale;

/// Largest relative difference of write amplification at which two scaled models agree.
pub const AGREEMENT: f64 = 0.01;

#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// Place in the experiment.
    pub key: CellKey,
    pub seed: u64,
    pub ensemble: Option<EnsemblePart>,
    pub scale: Scale,
    /// Difference to the next smaller model of a scale search.
    pub search: Option<ScaleSearch>,
    /// Reason why the device could not be saved at the end.
    #[serde(skip)]
    pub unsaved: Option<String>,
    /// Every requested byte was written, and no caller stopped the run or its search.
    pub complete: bool,
    /// Logical capacity of the scaled model in bytes, of all drives of an array together.
    pub capacity_bytes: u64,
    /// Reclaim units of the device.
    pub superblocks: u32,
    /// Pages of the smallest reclaim units.
    pub unit_pages: u64,
    /// Open reclaim units of host handles at the end, as a share of the over-provisioned ones.
    pub open_unit_share: f64,
    /// Condition that ends the run besides its write limit.
    pub steady_state: bool,
    /// Steady state at the end, if the run waited for it and wrote enough.
    pub steady: Option<SteadyState>,
    /// Options of the job file that were accepted and should change this run, but have no effect.
    pub without_effect: Vec<String>,
    /// Pages read in virtual time, then the unwritten ones among them.
    pub pages_read: [u64; 2],
    /// Counters of the run without preconditioning.
    pub stats: DeviceStats,
    pub samples: Vec<RunSample>,
    /// One row per garbage collection, if enabled.
    #[serde(skip)]
    pub gc_log: Vec<ReclaimRecord>,
    /// Distribution of block erases.
    pub wear: WearSummary,
    /// Remaining endurance since the device was made, if its profile states the flash endurance.
    /// Bytes are those of the full-size drive at the headline write amplification.
    pub endurance: Option<Endurance>,
    /// Measures of the workload and, per tenant, of the device.
    pub measures: Vec<WorkloadMeasure>,
    /// Latencies and event times of a device with timing.
    #[serde(skip)]
    pub timed: Option<TimedResult>,
    /// Counters of the array. All other counters are sums over its drives.
    pub array: Option<ArrayResult>,
    /// Placement-feedback log, if enabled.
    #[serde(skip)]
    pub feedback: Option<FeedbackResult>,
}

/// Bytes of memory for the samples of a run with this many handles. Assumes a long run if the
/// workload ends by itself.
pub(super) fn samples_bytes(settings: &RunSettings, handles: usize) -> u64 {
    const LONG_CAPACITIES: f64 = 100.0;
    let rows = handles + 1;
    let sample_bytes = size_of::<RunSample>() + rows * (size_of::<OwnerStats>() + 2 * size_of::<u64>());
    let samples = settings.drive_writes.unwrap_or(LONG_CAPACITIES) / settings.sample_drive_writes;
    // A vector reserves up to twice its length.
    (2.0 * samples * sample_bytes as f64) as u64
}

/// Comparison made by a scale search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScaleSearch {
    /// Next smaller model. `None`: no other model ran to its end.
    pub compared: Option<ScaleComparison>,
}

/// Difference between the result and that of a smaller model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScaleComparison {
    pub smaller: Scale,
    /// Relative difference of write amplification, the larger of whole run and end.
    pub difference: f64,
}

impl ScaleComparison {
    /// Returns true if the models agree.
    pub fn agrees(&self) -> bool {
        self.difference <= AGREEMENT
    }
}

/// Counters at one moment of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunSample {
    /// Bytes written by the host so far.
    pub host_bytes: u64,
    /// Bytes programmed so far.
    pub media_bytes: u64,
    /// Counters so far of each handle and, last, of the shared pool.
    pub owners: Vec<OwnerStats>,
    /// Reclaim units of each handle and the pool.
    pub units: Vec<u64>,
    /// Valid pages of each handle and the pool.
    pub valid_pages: Vec<u64>,
}

impl RunResult {
    /// Media bytes / host bytes over the whole run.
    pub fn write_amplification(&self) -> f64 {
        self.stats.write_amplification().unwrap_or(1.0)
    }

    /// Returns true if the run reached steady state.
    pub fn is_steady(&self) -> bool {
        self.steady.is_some_and(|state| state.reached)
    }

    /// Headline write amplification: that of the steady state if reached, else of the whole run.
    pub fn headline_write_amplification(&self) -> f64 {
        let steady = self.steady.filter(|state| state.reached);
        steady.map_or_else(|| self.write_amplification(), |state| state.waf)
    }

    /// Media bytes / host bytes over the last `capacities` of the run.
    pub fn tail_write_amplification(&self, capacities: f64) -> f64 {
        let Some(last) = self.samples.last() else {
            return self.write_amplification();
        };
        let (host, media) = self.written_before(last.host_bytes as f64 - capacities * self.capacity_bytes as f64);
        let written = (last.host_bytes - host).max(1);
        (last.media_bytes - media) as f64 / written as f64
    }

    /// Write amplification of the last drive write and of the one before, at the resolution of the
    /// samples. `None` if the run wrote less.
    pub fn last_drive_writes(&self) -> [Option<f64>; 2] {
        let Some(last) = self.samples.last().filter(|last| last.host_bytes > 0) else {
            return [None, None];
        };
        let capacity = self.capacity_bytes as f64;
        let end = (last.host_bytes, last.media_bytes);
        let middle = self.written_before(end.0 as f64 - capacity);
        let begin = self.written_before(middle.0 as f64 - capacity);
        let between = |(host_before, media_before): (u64, u64), (host, media): (u64, u64)| {
            (media - media_before) as f64 / (host - host_before) as f64
        };
        let is_whole = end.0 as f64 >= 2.0 * capacity && middle.0 > begin.0;
        [Some(between(middle, end)), is_whole.then(|| between(begin, middle))]
    }

    /// Host and media bytes at the last sample up to `host_bytes`.
    fn written_before(&self, host_bytes: f64) -> (u64, u64) {
        let mut samples = self.samples.iter().rev();
        let before = samples.find(|sample| sample.host_bytes as f64 <= host_bytes);
        before.map_or((0, 0), |sample| (sample.host_bytes, sample.media_bytes))
    }

    /// Share of the drive's pages that hold data at the end.
    pub fn share_in_use(&self) -> f64 {
        let pages = (self.capacity_bytes / self.stats.page_bytes).max(1);
        let valid: u64 = self.samples.last().map_or(0, |last| last.valid_pages.iter().sum());
        valid as f64 / pages as f64
    }
}
