//! Run options: how long a run writes, in which time, on which scaled model, and how it is watched.
//!
//! ```text
//! `[run]` and `[quick]` of an experiment, command line, Python, order of a studio session -> RunOptions
//! RunOptions::or (the caller's before the experiment's) -> RunOptions::resolve -> RunSettings, which a cell holds
//! ```
//!
//! [`RunOptions`] is the one definition of a run option: its name, its text and its option on the command line. A new one needs three
//! edits: its field in [`RunOptions`], its field in [`RunSettings`] with the default, and its line in `RunOptions` of
//! `python/warp_ssd/_engine.pyi`. Everything between them goes by serde. See "A new run option" in `docs/experiments.md`.

use std::collections::BTreeSet;

use clap::builder::{BoolishValueParser, TypedValueParser as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ssd::{Layout, Nanos, RuhId};

use crate::error::LabError;
use crate::twin::ScaleChoice;

/// Drive-writes after which a run that says no other bound gives up.
pub const LIMIT_CAPACITIES: f64 = 40.0;
/// Requests in flight of a closed loop that is no job's.
const CLOSED_LOOP_DEPTH: u32 = 32;

/// Until when a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Until write amplification is steady, and no longer than the run may write.
    Steady,
}

/// When the requests of a block trace are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMode {
    /// At the times at which they were recorded.
    Timed,
}

/// Options of a run. The text of each is its help on the command line.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Run on a twin of the drive, 1/N of its size; auto: each cell on the smallest twin that agrees with the next
    /// smaller one, auto:1/N on none larger [default: the experiment's; 1/1 for a job file, auto for `warp studio`]
    #[arg(long, value_name = "1/N|auto")]
    pub scale: Option<ScaleChoice>,
    /// Bytes for the host to write, in multiples of the capacity [default: the experiment's; what the jobs say]
    #[arg(
        id = "write",
        long = "write",
        value_name = "CAPACITIES",
        allow_negative_numbers = true
    )]
    pub write_capacities: Option<f64>,
    /// Go on until write amplification is steady (five drive-writes within 5 %), for at most --write [default then: 40]
    #[arg(long, value_name = "steady")]
    pub until: Option<Until>,
    /// Bytes to write in order before the workload, in multiples of the capacity [default: the experiment's]
    #[arg(
        id = "prefill",
        long = "prefill",
        value_name = "CAPACITIES",
        allow_negative_numbers = true
    )]
    pub prefill_capacities: Option<f64>,
    /// On a device with timing: virtual seconds that the last jobs of a job file, and those with a runtime, may run
    #[arg(long, allow_negative_numbers = true)]
    pub seconds: Option<f64>,
    /// Seed of device and jobs; repeatable, and results are averages then [default: the experiment's]
    #[arg(id = "seed", long = "seed", value_name = "SEED")]
    pub seeds: Option<Vec<u64>>,
    /// Run as fast as possible, without latencies, on a device with timing too
    // The path keeps clap from asking for a value: the flag's presence is the value.
    #[arg(id = "untimed", long = "untimed", action = clap::ArgAction::SetTrue,
          value_parser = BoolishValueParser::new().map(|is_untimed| is_untimed.then_some(false)))]
    pub timed: std::option::Option<bool>,
    /// Submit the requests of a block trace when they were recorded, on a device with timing; without it each follows
    /// another's completion
    #[arg(long, value_name = "timed", conflicts_with = "untimed")]
    pub replay: Option<ReplayMode>,
    /// With --replay: how many times as fast as recorded, such as 2x or 0.5x [default: 1x]
    #[arg(id = "speed", long = "speed", value_name = "FACTOR", value_parser = speed)]
    pub replay_speed: Option<f64>,
    /// On a device with timing: requests in flight of a workload that is no job file, at most [default: 32; 1023 with
    /// --replay]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub queue_depth: Option<u32>,
    /// Run this variant or grid value of an experiment alone; repeatable. Axes of which none is named are run whole
    #[arg(long, value_name = "NAME")]
    pub only: Option<Vec<String>>,
    /// Virtual seconds of an interval of the time series; 200 to 400 intervals in all if left out
    #[arg(skip)]
    pub interval_seconds: Option<f64>,
    /// Host bytes between two samples of the time series, in multiples of the capacity
    #[arg(skip)]
    pub sample_capacities: Option<f64>,
    /// Window at the end of the run that the steady-state metric covers, in multiples of the capacity
    #[arg(skip)]
    pub tail_capacities: Option<f64>,
    /// Reclaim unit handles of the host's namespace, in the order of its placement handles; all of the drive if left out.
    /// Writes without a directive go through the first
    #[arg(skip)]
    pub placement_handles: Option<Vec<u16>>,
}

/// A value as it is typed.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// A factor, with or without the x behind it.
fn speed(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.strip_suffix(['x', 'X']).unwrap_or(text).parse().ok();
    factor
        .filter(|factor| (1e-3..=1e6).contains(factor))
        .ok_or_else(|| "give a factor between 0.001 and 1000000, such as 2x".to_string())
}

impl RunOptions {
    /// Options that are given, by name.
    pub fn given(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else {
            unreachable!("a struct of numbers and names is a JSON object")
        };
        fields.retain(|_, value| !value.is_null());
        fields
    }

    /// Options that are given, as the command line takes them; only those that it has.
    pub fn words(&self) -> Vec<String> {
        let command = <RunOptions as clap::Args>::augment_args(clap::Command::new(""));
        let known = |name: &str| command.get_arguments().any(|option| option.get_long() == Some(name));
        let mut words = Vec::new();
        for (field, value) in self.given() {
            let name = match field.as_str() {
                "seeds" => "seed".to_string(),
                "timed" => "untimed".to_string(),
                "replay_speed" => "speed".to_string(),
                field => field.trim_end_matches("_capacities").replace('_', "-"),
            };
            let values = match value {
                // The option says that there is no time.
                Value::Bool(_) => vec![String::new()],
                Value::Array(values) => values.iter().map(word).collect(),
                value => vec![word(&value)],
            };
            let of_name = values
                .into_iter()
                .map(|value| format!("--{name} {value}").trim_end().to_string());
            words.extend(of_name.filter(|_| known(&name)));
        }
        words
    }

    /// These options, and those of `base` that these leave out.
    pub fn or(&self, base: &RunOptions) -> RunOptions {
        let mut fields = base.given();
        fields.extend(self.given());
        serde_json::from_value(Value::Object(fields)).expect("options read back as they were written")
    }

    /// Window of the steady-state metric, in multiples of the capacity.
    pub fn tail(&self) -> f64 {
        self.tail_capacities.unwrap_or_else(default_tail_capacities)
    }

    /// Makes the complete settings of a run.
    ///
    /// # Errors
    /// Options that exclude each other or a number out of range: names the option and what is allowed.
    pub fn resolve(&self) -> Result<RunSettings, String> {
        self.check()?;
        if let (None, Some(speed)) = (self.replay, self.replay_speed) {
            return Err(format!(
                "replay_speed = {speed} (--speed): needs replay = \"timed\" (--replay timed)"
            ));
        }
        let fields = Value::Object(self.given());
        let mut settings: RunSettings =
            serde_json::from_value(fields).expect("settings of a run have all options, with defaults");
        if settings.until.is_some() {
            settings.until_steady();
        }
        if settings.replay.is_some() {
            settings.timed = Some(true);
        }
        Ok(settings)
    }

    /// Checks the range of each option.
    ///
    /// # Errors
    /// A number out of range: names the option and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let capacities = (
            f64::MIN_POSITIVE..=1000.0,
            "above 0 and at most 1000, in multiples of the capacity",
        );
        let prefill = (0.0..=100.0, "between 0 and 100, in multiples of the capacity");
        let seconds = (1e-6..=1e6, "at least a microsecond and at most 1000000");
        let numbers = [
            ("write_capacities", " (--write)", self.write_capacities, &capacities),
            ("prefill_capacities", " (--prefill)", self.prefill_capacities, &prefill),
            ("sample_capacities", "", self.sample_capacities, &capacities),
            ("tail_capacities", "", self.tail_capacities, &capacities),
            ("seconds", " (--seconds)", self.seconds, &seconds),
            ("interval_seconds", "", self.interval_seconds, &seconds),
            (
                "replay_speed",
                " (--speed)",
                self.replay_speed,
                &(1e-3..=1e6, "between 0.001 and 1000000"),
            ),
            (
                "queue_depth",
                " (--queue-depth)",
                self.queue_depth.map(f64::from),
                &(1.0..=f64::MAX, "1 or more"),
            ),
        ];
        for (name, option, value, (range, allowed)) in numbers {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                return Err(format!("{name} = {value}{option}: must be {allowed}"));
            }
        }
        if self.seeds.as_ref().is_some_and(Vec::is_empty) {
            return Err("seeds = [] (--seed): give at least one seed".to_string());
        }
        Ok(())
    }
}

/// All options of a run, resolved. [`RunOptions`] says what each means.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    pub write_capacities: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// `None`: in virtual time if the device has timing.
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
    #[serde(default = "default_sample_capacities")]
    pub sample_capacities: f64,
    #[serde(default)]
    pub prefill_capacities: f64,
    #[serde(default = "default_seeds")]
    pub seeds: Vec<u64>,
    #[serde(default = "default_tail_capacities")]
    pub tail_capacities: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_handles: Option<Vec<u16>>,
    #[serde(default)]
    pub only: Vec<String>,
}

fn default_scale() -> ScaleChoice {
    ScaleChoice::FULL
}

fn default_sample_capacities() -> f64 {
    0.05
}

fn default_seeds() -> Vec<u64> {
    vec![1]
}

fn default_tail_capacities() -> f64 {
    1.0
}

/// All of a workload that ends by itself, once, on the drive itself; in virtual time if the drive has timing.
impl Default for RunSettings {
    fn default() -> RunSettings {
        RunOptions::default().resolve().expect("every option has a default")
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

    /// Bytes that the host writes at most, on a device of this capacity.
    pub fn write_bytes(&self, capacity_bytes: u64) -> Option<u64> {
        let bytes = |capacities| (capacities * capacity_bytes as f64) as u64;
        self.write_capacities.map(bytes)
    }

    /// Virtual time that the jobs of the last group, and others that have a `runtime`, may run.
    pub fn job_ns(&self) -> Option<Nanos> {
        self.seconds.map(nanoseconds)
    }

    /// Interval of the time series; `None`: chosen by length.
    pub fn interval_ns(&self) -> Option<Nanos> {
        self.interval_seconds.map(nanoseconds)
    }

    /// How many times as fast as recorded a trace is replayed, if it is replayed at its own times.
    pub fn speed(&self) -> Option<f64> {
        self.replay.map(|ReplayMode::Timed| self.replay_speed.unwrap_or(1.0))
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
    ///
    /// # Errors
    /// Seconds are given.
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

    /// Names of the fields of a type, which serde lists where it refuses another one.
    fn fields<T: serde::de::DeserializeOwned>() -> BTreeSet<String> {
        let refused = serde_json::from_str::<T>("{\"?\":0}")
            .err()
            .expect("there is no such field");
        let names = refused.to_string();
        names.split('`').skip(3).step_by(2).map(str::to_string).collect()
    }

    /// What lies between the two definitions goes by serde; an option that only one of them has would be lost there.
    #[test]
    fn options_are_said_as_they_are_typed() {
        let options = RunOptions {
            scale: Some("1/64".parse().expect("a scale")),
            prefill_capacities: Some(1.0),
            seeds: Some(vec![1, 2]),
            timed: Some(false),
            replay_speed: Some(2.0),
            queue_depth: Some(8),
            // No option of the command line.
            tail_capacities: Some(3.0),
            ..RunOptions::default()
        };
        let mut words = options.words();
        words.sort();
        let expected = [
            "--prefill 1.0",
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
        assert!(fields::<RunOptions>().contains("write_capacities"));
        assert_eq!(fields::<RunOptions>(), fields::<RunSettings>());
    }

    #[test]
    fn an_option_of_the_caller_wins_and_a_number_out_of_range_is_refused() {
        let options = |write| RunOptions {
            write_capacities: Some(write),
            ..RunOptions::default()
        };
        let seeds = RunOptions {
            seeds: Some(vec![u64::MAX]),
            ..RunOptions::default()
        };
        let both = options(0.1).or(&seeds.or(&options(3.0)));
        assert_eq!((both.write_capacities, both.seeds), (Some(0.1), Some(vec![u64::MAX])));
        for write in [0.0, -1.0, 1001.0, f64::NAN, f64::INFINITY] {
            let refused = options(write).resolve().expect_err("out of range");
            assert!(refused.starts_with(&format!("write_capacities = {write} (--write): must be above 0")));
        }
    }
}
