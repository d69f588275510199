//! Run options: amount to write, clock, scale and sampling of a run.
//!
//! ```text
//! `[run]` and `[quick]` of an experiment, command line, Python, studio session -> RunOptions
//! RunOptions::merged_with (caller before experiment) -> RunOptions::resolve
//!   -> RunSettings of a cell
//! ```
//!
//! [`RunOptions`] is the only definition of a run option. It holds its name, its text and its
//! command-line option. A new option needs three edits: its field in [`RunOptions`], its field in
//! [`RunSettings`] with the default, and its line in `RunOptions` of `python/warp_ssd/_engine.pyi`.
//! Serde carries the option between them. `docs/how-to/add-a-run-option.md` describes the three
//! edits.

use std::collections::BTreeSet;

use clap::builder::{BoolishValueParser, TypedValueParser as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ssd::{DeviceLayout, Nanos, RuhId};

use crate::error::LabError;
use crate::scaled_model::ScaleChoice;

/// Limit in drive writes of a run that waits for steady state and has no other limit.
pub const DRIVE_WRITES_MAX: f64 = 40.0;
/// Queue depth of a closed-loop workload that is not a job file.
const CLOSED_LOOP_DEPTH: u32 = 32;

/// Submission times of the requests of a block trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMode {
    /// The recorded times.
    Timed,
}

/// Options of a run. The text of each field is its help on the command line.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Scale of the model, 1/N of the drive's size. `auto` takes the smallest model that agrees
    /// with the next smaller one, and `auto:1/N` ends that search at 1/N [default: the
    /// experiment's; 1/1 for a job file, auto for `warp studio`]
    #[arg(long, value_name = "1/N|auto")]
    pub scale: Option<ScaleChoice>,
    /// Bytes that the host writes, in multiples of the capacity [default: the experiment's, or the
    /// amount in the job file]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub drive_writes: Option<f64>,
    /// Continue until write amplification is steady (within 5 % for five drive writes), or
    /// until the limit of --drive-writes, here 40 by default
    // The path keeps clap from asking for a value: the flag's presence is the value.
    #[arg(long, action = clap::ArgAction::SetTrue,
          value_parser = BoolishValueParser::new().map(|is_given| is_given.then_some(true)))]
    pub steady_state: std::option::Option<bool>,
    /// Bytes written in order before the workload, in multiples of the capacity [default: the
    /// experiment's]
    #[arg(id = "precondition", long = "precondition", value_name = "N", allow_negative_numbers = true)]
    pub precondition_drive_writes: Option<f64>,
    /// Run time in virtual seconds of the last jobs of a job file and of jobs with a runtime, on a
    /// device with timing
    #[arg(long, allow_negative_numbers = true)]
    pub seconds: Option<f64>,
    /// Seed of device and jobs; repeatable, results are then averages [default: the experiment's]
    #[arg(id = "seed", long = "seed", value_name = "SEED")]
    pub seeds: Option<Vec<u64>>,
    /// Run without virtual time and latencies, as fast as possible, even on a device with timing
    // As above.
    #[arg(id = "untimed", long = "untimed", action = clap::ArgAction::SetTrue,
          value_parser = BoolishValueParser::new().map(|is_untimed| is_untimed.then_some(false)))]
    pub timed: std::option::Option<bool>,
    /// Submit the requests of a block trace at their recorded times, on a device with timing
    /// [default: each request follows a completion]
    #[arg(long, value_name = "timed", conflicts_with = "untimed")]
    pub replay: Option<ReplayMode>,
    /// Speed of --replay as a factor of the recorded speed, such as 2x or 0.5x [default: 1x]
    #[arg(id = "speed", long = "speed", value_name = "FACTOR", value_parser = speed)]
    pub replay_speed: Option<f64>,
    /// Maximum requests in flight of a workload that is not a job file, on a device with timing
    /// [default: 32; 1023 with --replay]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub queue_depth: Option<u32>,
    /// Run only this variant or grid value of an experiment; repeatable [default: all values of
    /// each axis without a named value]
    #[arg(id = "variant", long = "variant", value_name = "NAME")]
    pub variants: Option<Vec<String>>,
    /// Interval of the time series in virtual seconds [default: chosen for 200 to 400 intervals]
    #[arg(skip)]
    pub interval_seconds: Option<f64>,
    /// Host bytes between two samples of the time series, in multiples of the capacity [default:
    /// 0.05]
    #[arg(skip)]
    pub sample_drive_writes: Option<f64>,
    /// Window of the steady-state metric at the end of the run, in multiples of the capacity
    /// [default: 1]
    #[arg(skip)]
    pub tail_drive_writes: Option<f64>,
    /// Reclaim unit handles of the host's namespace, in the order of its placement handles
    /// [default: all of the drive]. Writes without a directive go through the first
    #[arg(skip)]
    pub placement_handles: Option<Vec<u16>>,
}

/// Formats a value as a user types it.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// Parses a factor with or without a trailing x.
fn speed(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.strip_suffix(['x', 'X']).unwrap_or(text).parse().ok();
    factor
        .filter(|factor| (1e-3..=1e6).contains(factor))
        .ok_or_else(|| "give a factor between 0.001 and 1000000, such as 2x".to_string())
}

impl RunOptions {
    pub fn set_options(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else {
            unreachable!("a struct of numbers and names is a JSON object")
        };
        fields.retain(|_, value| !value.is_null());
        fields
    }

    /// Returns the options that are set, in command-line form. Omits options that the command line
    /// lacks.
    pub fn words(&self) -> Vec<String> {
        let command = <RunOptions as clap::Args>::augment_args(clap::Command::new(""));
        let known = |name: &str| command.get_arguments().any(|option| option.get_long() == Some(name));
        let mut words = Vec::new();
        for (field, value) in self.set_options() {
            let name = match field.as_str() {
                "precondition_drive_writes" => "precondition".to_string(),
                "replay_speed" => "speed".to_string(),
                "seeds" => "seed".to_string(),
                "timed" => "untimed".to_string(),
                "variants" => "variant".to_string(),
                field => field.replace('_', "-"),
            };
            let values = match value {
                // The flag `--untimed` stands for `timed = false`, `--steady-state` for
                // `steady_state = true`.
                Value::Bool(is_set) if is_set == (field == "steady_state") => vec![String::new()],
                Value::Bool(_) => Vec::new(),
                Value::Array(values) => values.iter().map(word).collect(),
                value => vec![word(&value)],
            };
            let of_name = values.into_iter().map(|value| format!("--{name} {value}").trim_end().to_string());
            words.extend(of_name.filter(|_| known(&name)));
        }
        words
    }

    /// Merges these options with `base`, which supplies the missing ones.
    pub fn merged_with(&self, base: &RunOptions) -> RunOptions {
        let mut fields = base.set_options();
        fields.extend(self.set_options());
        serde_json::from_value(Value::Object(fields)).expect("options read back as they were written")
    }

    /// Window of the steady-state metric, in multiples of the capacity.
    pub fn tail(&self) -> f64 {
        self.tail_drive_writes.unwrap_or_else(default_tail_drive_writes)
    }

    /// Builds the complete settings of a run.
    ///
    /// # Errors
    /// Options exclude each other or a number is out of range. The error names the option and the
    /// allowed values.
    pub fn resolve(&self) -> Result<RunSettings, String> {
        self.check()?;
        if let (None, Some(speed)) = (self.replay, self.replay_speed) {
            return Err(format!("replay_speed = {speed} (--speed) needs replay = \"timed\" (--replay timed)"));
        }
        let fields = Value::Object(self.set_options());
        let mut settings: RunSettings =
            serde_json::from_value(fields).expect("settings of a run have all options, with defaults");
        if settings.steady_state {
            settings.continue_until_steady();
        }
        if settings.replay.is_some() {
            settings.timed = Some(true);
        }
        Ok(settings)
    }

    /// Checks the range of each option.
    ///
    /// # Errors
    /// A number is out of range. The error names the option and the allowed values.
    pub fn check(&self) -> Result<(), String> {
        let capacities =
            (f64::MIN_POSITIVE..=1000.0, "a number above 0 and at most 1000, in multiples of the capacity");
        let prefill = (0.0..=100.0, "a number between 0 and 100, in multiples of the capacity");
        let seconds = (1e-6..=1e6, "a number between 0.000001 and 1000000");
        let numbers = [
            ("drive_writes", " (--drive-writes)", self.drive_writes, &capacities),
            ("precondition_drive_writes", " (--precondition)", self.precondition_drive_writes, &prefill),
            ("sample_drive_writes", "", self.sample_drive_writes, &capacities),
            ("tail_drive_writes", "", self.tail_drive_writes, &capacities),
            ("seconds", " (--seconds)", self.seconds, &seconds),
            ("interval_seconds", "", self.interval_seconds, &seconds),
            ("replay_speed", " (--speed)", self.replay_speed, &(1e-3..=1e6, "a factor between 0.001 and 1000000")),
            (
                "queue_depth",
                " (--queue-depth)",
                self.queue_depth.map(f64::from),
                &(1.0..=f64::MAX, "a whole number of at least 1"),
            ),
        ];
        for (name, option, value, (range, allowed)) in numbers {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                return Err(format!("{name} = {value}{option} is out of range. Give {allowed}"));
            }
        }
        if self.seeds.as_ref().is_some_and(Vec::is_empty) {
            return Err("seeds (--seed) is empty. Give at least one seed".to_string());
        }
        Ok(())
    }
}

/// All options of a run, resolved. [`RunOptions`] describes each.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    pub drive_writes: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steady_state: bool,
    /// `None`: virtual time if the device has timing.
    pub timed: Option<bool>,
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_speed: Option<f64>,
    pub interval_seconds: Option<f64>,
    #[serde(default = "default_scale")]
    pub scale: ScaleChoice,
    #[serde(default = "default_sample_drive_writes")]
    pub sample_drive_writes: f64,
    #[serde(default)]
    pub precondition_drive_writes: f64,
    #[serde(default = "default_seeds")]
    pub seeds: Vec<u64>,
    #[serde(default = "default_tail_drive_writes")]
    pub tail_drive_writes: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_handles: Option<Vec<u16>>,
    #[serde(default)]
    pub variants: Vec<String>,
}

fn default_scale() -> ScaleChoice {
    ScaleChoice::FULL
}

fn default_sample_drive_writes() -> f64 {
    0.05
}

fn default_seeds() -> Vec<u64> {
    vec![1]
}

fn default_tail_drive_writes() -> f64 {
    1.0
}

/// Runs a workload that ends by itself once, on the full-size drive. Time is virtual if the drive
/// has timing.
impl Default for RunSettings {
    fn default() -> RunSettings {
        RunOptions::default().resolve().expect("every option has a default")
    }
}

impl RunSettings {
    /// Makes the run end at steady state. Keeps its write limit or sets the common one.
    pub(crate) fn continue_until_steady(&mut self) {
        self.steady_state = true;
        self.drive_writes.get_or_insert(DRIVE_WRITES_MAX);
    }

    /// Maximum requests in flight of a workload that is not a job file. A closed loop has 32. A
    /// replayed trace has the 1023 tags that Linux gives an NVMe queue
    /// (`/sys/block/nvme0n1/queue/nr_requests`).
    pub fn depth(&self) -> u32 {
        let default = self.replay.map_or(CLOSED_LOOP_DEPTH, |_| 1023);
        self.queue_depth.unwrap_or(default)
    }

    /// Maximum bytes that the host writes on a device of this capacity.
    pub fn write_bytes(&self, capacity_bytes: u64) -> Option<u64> {
        let bytes = |capacities| (capacities * capacity_bytes as f64) as u64;
        self.drive_writes.map(bytes)
    }

    /// Virtual run time of the jobs of the last group and of other jobs with a `runtime`.
    pub fn job_ns(&self) -> Option<Nanos> {
        self.seconds.map(nanoseconds)
    }

    /// Interval of the time series. `None`: chosen by the length of the run.
    pub fn interval_ns(&self) -> Option<Nanos> {
        self.interval_seconds.map(nanoseconds)
    }

    /// Speed of a timed replay relative to the recording. `None` without `replay`.
    pub fn speed(&self) -> Option<f64> {
        self.replay.map(|ReplayMode::Timed| self.replay_speed.unwrap_or(1.0))
    }

    /// Returns the handles of the host's namespace on a drive.
    ///
    /// # Errors
    /// The list is empty, repeats a handle or names one that the drive lacks.
    pub fn namespace_handles(&self, place: &str, layout: &DeviceLayout) -> Result<Vec<RuhId>, LabError> {
        let Some(listed) = &self.placement_handles else {
            return Ok(layout.handle_list());
        };
        let count = layout.handles.len();
        let distinct: BTreeSet<u16> = listed.iter().copied().filter(|&handle| usize::from(handle) < count).collect();
        if listed.is_empty() || distinct.len() < listed.len() {
            let problem = format!(
                "placement_handles = {listed:?} does not fit the drive. Give one or more of its handles, 0 to {}, \
                 each once",
                count - 1
            );
            return Err(LabError::invalid(place, problem));
        }
        Ok(listed.iter().copied().map(RuhId).collect())
    }

    /// Rejects options that need a device with timing.
    ///
    /// # Errors
    /// `seconds` or `interval_seconds` is set.
    pub fn check_untimed(&self, place: &str) -> Result<(), LabError> {
        if self.seconds.is_some() || self.interval_seconds.is_some() {
            let problem = "seconds and interval_seconds need a device with timing and timed = true";
            return Err(LabError::invalid(place, problem));
        }
        Ok(())
    }
}

fn nanoseconds(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists the field names of a type from serde's error about an unknown field.
    fn fields<T: serde::de::DeserializeOwned>() -> BTreeSet<String> {
        let refused = serde_json::from_str::<T>("{\"?\":0}").err().expect("there is no such field");
        let names = refused.to_string();
        names.split('`').skip(3).step_by(2).map(str::to_string).collect()
    }

    /// Serde carries options between both definitions. It would lose an option that only one has.
    #[test]
    fn options_are_said_as_they_are_typed() {
        let options = RunOptions {
            scale: Some("1/64".parse().expect("a scale")),
            precondition_drive_writes: Some(1.0),
            seeds: Some(vec![1, 2]),
            timed: Some(false),
            replay_speed: Some(2.0),
            queue_depth: Some(8),
            // The command line lacks this option.
            tail_drive_writes: Some(3.0),
            ..RunOptions::default()
        };
        let mut words = options.words();
        words.sort();
        let expected = [
            "--precondition 1.0",
            "--queue-depth 8",
            "--scale 1/64",
            "--seed 1",
            "--seed 2",
            "--speed 2.0",
            "--untimed",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn settings_have_every_option_and_no_other() {
        assert!(fields::<RunOptions>().contains("drive_writes"));
        assert_eq!(fields::<RunOptions>(), fields::<RunSettings>());
    }

    #[test]
    fn an_option_of_the_caller_wins_and_a_number_out_of_range_is_refused() {
        let options = |write| RunOptions { drive_writes: Some(write), ..RunOptions::default() };
        let seeds = RunOptions { seeds: Some(vec![u64::MAX]), ..RunOptions::default() };
        let both = options(0.1).merged_with(&seeds.merged_with(&options(3.0)));
        assert_eq!((both.drive_writes, both.seeds), (Some(0.1), Some(vec![u64::MAX])));
        for write in [0.0, -1.0, 1001.0, f64::NAN, f64::INFINITY] {
            let refused = options(write).resolve().expect_err("out of range");
            assert!(refused.starts_with(&format!(
                "drive_writes = {write} (--drive-writes) is out of range. Give a number above 0"
            )));
        }
    }
}
