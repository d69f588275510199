//! What one run measured: counters, a time series, latencies, and what the workload measured of itself.

use serde::Serialize;
use ssd::event::Reclaim;
use ssd::{Endurance, OwnerStats, Stats, Wear};
use workload::Measure;

use crate::feedback::FeedbackResult;
use crate::steady::SteadyState;
use crate::timed::result::TimedResult;
use experiment::cell::{CellKey, EnsemblePart};
use experiment::run_options::{RunSettings, Until};
use experiment::twin::Scale;

/// Relative difference of write amplification up to which two twins agree.
pub const AGREEMENT: f64 = 0.01;

/// What one run measured.
#[derive(Clone, Debug, Serialize)]
pub struct CellResult {
    /// Its place in the experiment.
    pub key: CellKey,
    /// Seed of the run.
    pub seed: u64,
    pub ensemble: Option<EnsemblePart>,
    /// Scale of the twin it ran on.
    pub scale: Scale,
    /// How far the next smaller twin was away, if the scale was searched for.
    pub search: Option<ScaleSearch>,
    /// Why the device could not be saved at the end, if it was to be.
    #[serde(skip)]
    pub unsaved: Option<String>,
    /// Whether it wrote everything it should and no search was cut short; otherwise it was stopped.
    pub complete: bool,
    /// Logical capacity of the twin in bytes.
    pub capacity_bytes: u64,
    /// Reclaim units of the device.
    pub superblocks: u32,
    /// Pages of its smallest reclaim units.
    pub unit_pages: u64,
    /// What handles had open at the end, as a share of the drive's spare reclaim units.
    pub spare_held: f64,
    /// Until when it was to go on, besides what it may write.
    pub until: Option<Until>,
    /// How steady it was at its end, if it went on until then and wrote enough to say.
    pub steady: Option<SteadyState>,
    /// Options of its job file that were accepted and would change something of a run like this one, but do not.
    pub without_effect: Vec<String>,
    /// Pages read in virtual time, and how many of them had not been written.
    pub pages_read: [u64; 2],
    /// Counters over the run, the prefill excluded.
    pub stats: Stats,
    /// Time series.
    pub samples: Vec<Sample>,
    /// One row for each collection, if it was asked for.
    #[serde(skip)]
    pub gc_log: Vec<Reclaim>,
    /// How often blocks were erased.
    pub wear: Wear,
    /// What is left of the drive since the device was made, if its profile says what the flash survives. Bytes are those of the drive at
    /// full size, at the write amplification that stands for the run.
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

/// Memory that the samples of a run take on a drive with so many handles, bytes. A workload that ends by itself is taken for long.
pub(super) fn samples_bytes(settings: &RunSettings, handles: usize) -> u64 {
    const LONG_CAPACITIES: f64 = 100.0;
    let rows = handles + 1;
    let sample_bytes = size_of::<Sample>() + rows * (size_of::<OwnerStats>() + 2 * size_of::<u64>());
    let samples = settings.write_capacities.unwrap_or(LONG_CAPACITIES) / settings.sample_capacities;
    // A vector has room for twice what it holds.
    (2.0 * samples * sample_bytes as f64) as u64
}

/// What the search for a scale found, beside the result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScaleSearch {
    /// The next smaller twin; `None` if there was no other or the search was stopped before a second one.
    pub compared: Option<ScaleComparison>,
}

/// How far a smaller twin was away.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScaleComparison {
    pub smaller: Scale,
    /// Relative difference of write amplification, over the whole run or at its end, whichever is larger.
    pub difference: f64,
}

impl ScaleComparison {
    /// Whether the twins agree.
    pub fn agrees(&self) -> bool {
        self.difference <= AGREEMENT
    }
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

    /// Whether the run went on until it was steady.
    pub fn is_steady(&self) -> bool {
        self.steady.is_some_and(|state| state.reached)
    }

    /// The write amplification that stands for the run: that of its steady state if it reached one, otherwise that of the whole run.
    pub fn headline_write_amplification(&self) -> f64 {
        let steady = self.steady.filter(|state| state.reached);
        steady.map_or_else(|| self.write_amplification(), |state| state.waf)
    }

    /// Media bytes to host bytes over the last `capacities` of the run.
    pub fn tail_write_amplification(&self, capacities: f64) -> f64 {
        let Some(last) = self.samples.last() else {
            return self.write_amplification();
        };
        let (host, media) = self.written_before(last.host_bytes as f64 - capacities * self.capacity_bytes as f64);
        let written = (last.host_bytes - host).max(1);
        (last.media_bytes - media) as f64 / written as f64
    }

    /// Write amplification of the last drive-write and of the one before, as nearly as samples are; `None` where it was
    /// not written.
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

    /// Host and media bytes at the last sample before so many of the host's.
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
