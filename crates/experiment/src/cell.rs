//! A cell: one run of an experiment, complete but for the files that its workload reads.
//!
//! ```text
//! device, workload, seed, RunSettings -> Cell -> run::prepare (runs it), fingerprint (names its result)
//! ```
//!
//! It says what is run and how it is watched. It does not know which experiment it belongs to but for its key, and runs
//! nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use applications::Spec;
use serde::{Deserialize, Serialize};
use ssd::{Layout, Nanos, RuhId};

use crate::error::LabError;
use crate::feedback;
use crate::twin::{self, ScaleChoice};

/// Drive-writes after which a run that says no other bound gives up.
pub const LIMIT_CAPACITIES: f64 = 40.0;

/// Until when a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Until write amplification is steady, and no longer than the run may write.
    Steady,
}

impl std::str::FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Until, String> {
        match text {
            "steady" => Ok(Until::Steady),
            _ => Err(format!("{text:?}: give steady")),
        }
    }
}

/// How much to write and how to watch.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// Bytes that the host writes, in multiples of the device's capacity, by jobs that go on until then; `None` lets
    /// the jobs end by themselves.
    #[serde(default)]
    pub write_capacities: Option<f64>,
    /// What else ends the run: `steady` when write amplification is steady, and then `write_capacities` is the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Whether to run in virtual time, which takes longer; `None`: if the device has timing.
    #[serde(default = "untimed")]
    pub timed: Option<bool>,
    /// In virtual time: seconds that the jobs of the last group, and others that have a `runtime`, may run
    /// (after their `ramp_time`); `None` leaves it to the jobs.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// In virtual time: requests in flight of a workload that is not a job file, at most; see [`RunSettings::depth`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// In virtual time: when the requests of a block trace are submitted; `None`: as others complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayMode>,
    /// How many times as fast as recorded a trace is replayed; `None`: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_speed: Option<f64>,
    /// In virtual time: seconds of an interval of the time series; `None`: 200 to 400 intervals in all.
    #[serde(default)]
    pub interval_seconds: Option<f64>,
    /// Run on a twin of this scale.
    pub scale: ScaleChoice,
    /// Host bytes between two samples of the time series, in multiples of the capacity.
    #[serde(default = "default_sample_capacities")]
    pub sample_capacities: f64,
    /// Bytes written sequentially without directives before the workload starts and its counters count, in multiples of
    /// the capacity.
    #[serde(default)]
    pub prefill_capacities: f64,
    /// Seeds to run each cell with; results are averages.
    #[serde(default = "default_seeds")]
    pub seeds: Vec<u64>,
    /// Window at the end of the run that the steady-state metric looks at, in multiples of the capacity.
    #[serde(default = "default_tail_capacities")]
    pub tail_capacities: f64,
    /// Reclaim unit handles that the host's namespace has, in the order of its placement handles: writes without a directive go
    /// through the first. `None`: all of the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_handles: Option<Vec<u16>>,
    /// Names of the grid values to run, to keep a quick form quick; axes of which none is named are run whole.
    #[serde(default)]
    pub only: Vec<String>,
}

/// When the requests of a block trace are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMode {
    /// At the times at which they were recorded.
    Timed,
}

impl std::str::FromStr for ReplayMode {
    type Err = String;

    fn from_str(text: &str) -> Result<ReplayMode, String> {
        match text {
            "timed" => Ok(ReplayMode::Timed),
            _ => Err(format!("{text:?}: give timed")),
        }
    }
}

fn untimed() -> Option<bool> {
    Some(false)
}

/// All of a workload that ends by itself, once, on the drive itself; in virtual time if the drive has times.
impl Default for RunSettings {
    fn default() -> RunSettings {
        RunSettings {
            write_capacities: None,
            until: None,
            timed: None,
            seconds: None,
            queue_depth: None,
            replay: None,
            replay_speed: None,
            interval_seconds: None,
            scale: ScaleChoice::FULL,
            sample_capacities: default_sample_capacities(),
            prefill_capacities: 0.0,
            seeds: default_seeds(),
            tail_capacities: default_tail_capacities(),
            placement_handles: None,
            only: Vec::new(),
        }
    }
}

impl RunSettings {
    /// Goes on until the run is steady, within the bound that there is or a common one.
    pub(crate) fn until_steady(&mut self) {
        self.until = Some(Until::Steady);
        self.write_capacities.get_or_insert(LIMIT_CAPACITIES);
    }

    /// Requests in flight of a workload that is not a job file: 32 of a closed loop, and of a replayed trace the 1023 tags that Linux
    /// gives a queue of an NVMe drive (`/sys/block/nvme0n1/queue/nr_requests`).
    pub fn depth(&self) -> u32 {
        let default = self.replay.map_or(CLOSED_LOOP_DEPTH, |_| 1023);
        self.queue_depth.unwrap_or(default)
    }

    /// How long a run on a device of this capacity goes on.
    pub fn limits(&self, capacity_bytes: u64) -> Limits {
        let nanoseconds = |seconds: f64| (seconds * 1e9) as ssd::Nanos;
        Limits {
            write_bytes: self
                .write_capacities
                .map(|capacities| (capacities * capacity_bytes as f64) as u64),
            job_ns: self.seconds.map(nanoseconds),
            queue_depth: self.depth(),
            replay_speed: self.replay.map(|ReplayMode::Timed| self.replay_speed.unwrap_or(1.0)),
            interval_ns: self.interval_seconds.map(nanoseconds),
        }
    }

    /// The handles of the host's namespace on a drive.
    ///
    /// # Errors
    /// They are none, or one of them is there twice or not at all.
    pub fn namespace_handles(&self, place: &str, layout: &Layout) -> Result<Vec<RuhId>, LabError> {
        let Some(listed) = &self.placement_handles else {
            return Ok(layout.handle_list());
        };
        let count = layout.handles.len();
        let distinct: BTreeSet<u16> = listed
            .iter()
            .copied()
            .filter(|&handle| usize::from(handle) < count)
            .collect();
        if listed.is_empty() || distinct.len() < listed.len() {
            let problem = format!(
                "placement_handles = {listed:?}: give one or more handles of the drive, 0 to {}, each once",
                count - 1
            );
            return Err(LabError::invalid(place, problem));
        }
        Ok(listed.iter().copied().map(RuhId).collect())
    }

    /// Refuses what a device without timing cannot do.
    pub fn check_untimed(&self, place: &str) -> Result<(), LabError> {
        if self.seconds.is_some() || self.interval_seconds.is_some() {
            let problem = "seconds and interval_seconds need a device with timing and timed = true";
            return Err(LabError::invalid(place, problem));
        }
        Ok(())
    }

    /// Refuses numbers that make no sense; `name` is what messages call the settings.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        let capacities = [
            self.write_capacities,
            Some(self.sample_capacities),
            Some(self.tail_capacities),
        ];
        let sensible = |value: &f64| value.is_finite() && *value > 0.0 && *value <= 1000.0;
        if !capacities.iter().flatten().all(sensible) {
            return Err(format!(
                "{name}: write, sample and tail are multiples of the capacity, above 0 and at most 1000"
            ));
        }
        let seconds = [self.seconds, self.interval_seconds];
        if !seconds
            .iter()
            .flatten()
            .all(|value| value.is_finite() && *value >= 1e-6 && *value <= 1e6)
        {
            return Err(format!(
                "{name}: seconds and interval_seconds must be at least a microsecond and at most 1000000"
            ));
        }
        if self.queue_depth == Some(0) {
            return Err(format!("{name}.queue_depth = 0: must be 1 or more"));
        }
        match (self.replay, self.replay_speed) {
            (None, Some(speed)) => {
                return Err(format!(
                    "{name}.replay_speed = {speed} (--speed): needs replay = \"timed\" (--replay timed)"
                ));
            }
            (_, Some(speed)) if !(1e-3..=1e6).contains(&speed) => {
                return Err(format!(
                    "{name}.replay_speed = {speed} (--speed): must be between 0.001 and 1000000"
                ));
            }
            _ => {}
        }
        if !(0.0..=100.0).contains(&self.prefill_capacities) {
            return Err(format!(
                "{name}.prefill_capacities = {}: must be between 0 and 100",
                self.prefill_capacities
            ));
        }
        if self.seeds.is_empty() {
            return Err(format!("{name}.seeds = []: give at least one seed"));
        }
        Ok(())
    }
}

/// Requests in flight of a closed loop that is no job's.
const CLOSED_LOOP_DEPTH: u32 = 32;

fn default_sample_capacities() -> f64 {
    0.05
}

fn default_tail_capacities() -> f64 {
    1.0
}

fn default_seeds() -> Vec<u64> {
    vec![1]
}

/// How long a run goes on and what of it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes that the host writes, at most.
    pub write_bytes: Option<u64>,
    /// Requests in flight of a workload that is not a job file.
    pub queue_depth: u32,
    /// How many times as fast as recorded a trace is replayed, if it is replayed at its own times.
    pub replay_speed: Option<f64>,
    /// Time that the jobs of the last group, and others that have a `runtime`, may run.
    pub job_ns: Option<Nanos>,
    /// Interval of the time series; chosen by length if it is not given.
    pub interval_ns: Option<Nanos>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            write_bytes: None,
            queue_depth: CLOSED_LOOP_DEPTH,
            replay_speed: None,
            job_ns: None,
            interval_ns: None,
        }
    }
}

/// What distinguishes a run within its experiment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct CellKey {
    /// Device profile.
    pub device: String,
    /// Variant; empty if the experiment has none.
    pub variant: String,
    /// Value on each axis of the grid, in their order.
    pub grid: Vec<String>,
}

impl std::fmt::Display for CellKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [&self.device, &self.variant].into_iter().chain(&self.grid);
        let parts: Vec<&str> = parts.map(String::as_str).filter(|part| !part.is_empty()).collect();
        formatter.write_str(&parts.join(" | "))
    }
}

/// Of which ensemble's runs a cell is one.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct EnsemblePart {
    /// The member that its device is, counted from 0; `None`: the profile itself.
    pub member: Option<u32>,
    /// The ensemble's residual ([`crate::ensemble::Ensemble`]).
    pub residual: f64,
}

/// One run: a device, a workload, settings. Serialized it is complete but for the files that its workload reads.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Cell {
    /// Its place in the experiment.
    pub key: CellKey,
    /// Seed of the device; job seeds are the job file's, moved by it.
    pub seed: u64,
    /// The device at full size.
    pub device: ssd::DeviceConfig,
    /// The workload, options changed.
    pub workload: Spec,
    /// What it is called: the name of its file without folder and ending, or its kind.
    pub workload_name: String,
    /// How much to write and how to watch.
    pub run: RunSettings,
    /// Who listens to what the drive reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<feedback::Settings>,
    /// If an interval was asked for and its profile has an ensemble: what of that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ensemble: Option<EnsemblePart>,
    /// A saved device that the run goes on with, instead of a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<PathBuf>,
}

impl Cell {
    /// Says how far a search for the scale goes, if the caller has not: a cell is complete, so the memory of the machine
    /// that makes it must not show later.
    ///
    /// # Errors
    /// The device is impossible.
    pub(crate) fn resolve_scale(&mut self) -> Result<(), LabError> {
        if self.run.scale == ScaleChoice::AUTO {
            let sizes = twin::sizes(&self.key.device, &self.device, None)?;
            let largest = sizes.last().copied();
            self.run.scale = ScaleChoice::Auto { largest };
        }
        Ok(())
    }
}
