//! A job, which is one section of a job file, typed and with fio's defaults filled in.
//!
//! A [`Job`] does not depend on a drive, so sizes may still be percentages. `plan` turns it into
//! numbers for a given capacity.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{PlacementIndex, RequestOperation};

use super::distribution::{AccessZone, SkewKind};
use super::error::{FileLine, OptionError};
use super::random::DEFAULT_SEED;
use super::value::{Amount, KbBase, PerDirection};

/// `rw`, the operations of a job and the order of their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessMode {
    /// The option's value.
    pub name: &'static str,
    /// Operations that the job issues.
    pub operations: JobOperations,
    /// True for random addresses, false for sequential ones.
    pub random: bool,
}

/// The operations of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobOperations {
    /// One kind of operation.
    Only(RequestOperation),
    /// Reads and writes, mixed by `rwmixread`.
    ReadWrite,
    /// Each block is trimmed, then written.
    TrimWrite,
}

impl JobOperations {
    /// True if the job issues this operation.
    pub fn include(self, operation: RequestOperation) -> bool {
        match self {
            Self::Only(only) => only == operation,
            Self::ReadWrite => operation != RequestOperation::Trim,
            Self::TrimWrite => operation != RequestOperation::Read,
        }
    }

    /// The operations that the job issues, in fio's order.
    pub fn iter(self) -> impl Iterator<Item = RequestOperation> + Clone {
        RequestOperation::ALL.into_iter().filter(move |operation| self.include(*operation))
    }
}

/// The values of `rw`.
pub const ACCESSES: [AccessMode; 11] = {
    const fn access(name: &'static str, operations: JobOperations, random: bool) -> AccessMode {
        AccessMode { name, operations, random }
    }
    use JobOperations::{Only, ReadWrite, TrimWrite};
    use RequestOperation::{Read, Trim, Write};
    [
        access("read", Only(Read), false),
        access("write", Only(Write), false),
        access("trim", Only(Trim), false),
        access("randread", Only(Read), true),
        access("randwrite", Only(Write), true),
        access("randtrim", Only(Trim), true),
        access("rw", ReadWrite, false),
        access("readwrite", ReadWrite, false),
        access("randrw", ReadWrite, true),
        access("trimwrite", TrimWrite, false),
        access("randtrimwrite", TrimWrite, true),
    ]
};

impl Default for AccessMode {
    fn default() -> AccessMode {
        ACCESSES[0]
    }
}

impl Serialize for AccessMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AccessMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AccessMode, D::Error> {
        let name = String::deserialize(deserializer)?;
        let access = ACCESSES.into_iter().find(|access| access.name == name);
        access.ok_or_else(|| D::Error::custom(format!("{name:?} is not a value of rw")))
    }
}

/// One size of `bssplit` and its share of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockShare {
    /// Bytes.
    pub bytes: u64,
    /// Percent of the requests.
    pub percent: u32,
}

/// `random_distribution`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockDistribution {
    /// Uniform.
    #[default]
    Uniform,
    /// zipf, pareto or normal, with fio's optional centre (0..=1).
    Skewed {
        /// Kind of the distribution, with its parameter.
        kind: SkewKind,
        /// Position of the hottest block, as a share of the region.
        center: Option<f64>,
    },
    /// `zoned`, with zones in percent of the region.
    Zoned(PerDirection<Vec<AccessZone>>),
    /// `zoned_abs`, with zones in bytes.
    ZonedAbsolute(PerDirection<Vec<AccessZone>>),
    /// `sequence`, a fixed sequence of blocks, repeated.
    Sequence(Vec<u64>),
}

/// `dataplacement`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataPlacement {
    /// Writes carry no directive.
    None,
    /// Writes carry a Data Placement directive.
    Fdp,
    /// Writes carry a Streams directive. The lab treats the stream as the placement index.
    Streams,
}

/// A value of `write_mode`, the command that a writing job sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// Write.
    Write,
    /// Write Zeroes, issued as a write, or as a trim with `deac`.
    Zeroes,
    /// Write Uncorrectable, which costs the flash no work and issues no request.
    Uncorrectable,
    /// Verify, issued as a read.
    Verify,
}

/// `plid_select`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementSelection {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Uniformly random.
    Random,
    /// By address, from the file named by `dp_scheme`.
    Scheme,
}

/// `exit_what`, the scope of `exitall` when the first job ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitScope {
    /// The jobs that run with it. Jobs behind the next `stonewall` still run.
    #[default]
    Group,
    /// All jobs of the file.
    All,
}

/// `latency_target` and its related options, which search for the deepest queue that keeps a
/// latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyGoal {
    /// `latency_target`, microseconds.
    pub target_us: u64,
    /// `latency_window`, microseconds for which a depth is tried.
    pub window_us: u64,
    /// `latency_percentile`, percent of the requests that must not exceed the target.
    pub percent: f64,
    /// `latency_run`. If true, the job keeps searching. If false, it ends with one window at the
    /// depth found.
    pub goes_on: bool,
}

impl Default for LatencyGoal {
    fn default() -> Self {
        Self { target_us: 0, window_us: 0, percent: 100.0, goes_on: false }
    }
}

/// Logs over time that a job requests, for runs on devices with timing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogChoice {
    /// `write_bw_log`, the prefix of the file's name. Empty for the job's name.
    pub bandwidth: Option<String>,
    /// `write_lat_log`, as `bandwidth`.
    pub latency: Option<String>,
    /// `write_iops_log`, as `bandwidth`.
    pub requests: Option<String>,
    /// `log_avg_msec`. 0 writes a line for each request.
    pub window_ms: u64,
    /// `log_offset`
    pub with_offset: bool,
}

impl LogChoice {
    /// The options that request logs, with the prefixes of their files' names.
    pub fn asked(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let choices =
            [("write_bw_log", &self.bandwidth), ("write_lat_log", &self.latency), ("write_iops_log", &self.requests)];
        choices.into_iter().filter_map(|(option, prefix)| Some((option, prefix.as_deref()?)))
    }

    /// The first option that requests a log, if any.
    pub fn asked_by(&self) -> Option<&'static str> {
        self.asked().next().map(|(option, _)| option)
    }
}

/// One line of a `dp_scheme` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemeEntry {
    /// First byte.
    pub start_bytes: u64,
    /// First byte after the range.
    pub end_bytes: u64,
    /// Placement index of writes that start in the range.
    pub index: PlacementIndex,
}

/// One section of a job file with all inherited options. Fields are named after fio's options if
/// these exist.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Section name, or the `name` option.
    pub name: String,
    /// Path of the job file, for messages.
    #[serde(skip)]
    pub file: String,
    /// fio's number of the first instance. The first job of the file starts at 1, and each instance
    /// adds one.
    pub first_thread_number: u32,
    /// `numjobs`
    pub numjobs: u32,
    /// `stonewall`. The job waits for all jobs before it.
    pub stonewall: bool,
    /// `wait_for`, the job that must have ended before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<String>,
    /// `exitall`. If one job has it, it applies to all jobs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exitall: bool,
    /// `exit_what`
    #[serde(default, skip_serializing_if = "is_default")]
    pub exit_what: ExitScope,
    /// `filename`, or the name that fio derives from the section. Part of the seed of skewed
    /// distributions.
    pub filename: Option<String>,
    /// `rw`
    pub access: AccessMode,
    /// The number after the colon of a random `rw`. One address is drawn per this number of
    /// requests.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub requests_per_draw: u64,
    /// The bytes after the colon of a sequential `rw`, added to the end of the last request.
    /// Negative to go backwards.
    #[serde(default, skip_serializing_if = "is_default")]
    pub step_bytes: i64,
    /// `rw_sequencer=identical`. Requests between two draws repeat the address.
    #[serde(default, skip_serializing_if = "is_default")]
    pub repeats_address: bool,
    /// `bs`, bytes.
    pub bs: PerDirection<u64>,
    /// `bsrange` and the extremes of `bssplit`, bytes. Overrides `bs`.
    pub bs_range: PerDirection<Option<(u64, u64)>>,
    /// `bssplit`. Overrides `bsrange`.
    pub bssplit: PerDirection<Vec<BlockShare>>,
    /// `ba`, bytes.
    pub blockalign: PerDirection<Option<u64>>,
    /// `size`
    pub size: Option<Amount>,
    /// `filesize`, bytes, the end of the region. `size` then only limits the bytes of one loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesize: Option<u64>,
    /// `offset`
    pub offset: Amount,
    /// `offset_increment`
    pub offset_increment: Amount,
    /// `offset_align`, bytes.
    pub offset_align: Option<u64>,
    /// `io_size`
    pub io_size: Option<Amount>,
    /// `number_ios`
    pub number_ios: Option<u64>,
    /// `loops`
    pub loops: u64,
    /// `time_based`
    pub time_based: bool,
    /// `runtime`, microseconds, or 0 if absent. Only used on devices with timing, but `time_based`
    /// requires it.
    pub runtime_us: u64,
    /// `ramp_time`, microseconds, for devices with timing.
    pub ramp_time_us: u64,
    /// `startdelay`, or the start of its range, microseconds, for devices with timing.
    pub startdelay_us: u64,
    /// End of a range of `startdelay`, microseconds, or 0. Each instance draws its own delay in the
    /// range.
    #[serde(default, skip_serializing_if = "is_default")]
    pub startdelay_latest_us: u64,
    /// `random_distribution`
    pub distribution: BlockDistribution,
    /// `random_sequence_stride`
    #[serde(default, skip_serializing_if = "is_default")]
    pub sequence_strides: bool,
    /// `zonemode=strided`
    #[serde(default, skip_serializing_if = "is_default")]
    pub strides: bool,
    /// `zonesize`, bytes, or 0 if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub zone_size: u64,
    /// `zonerange`, bytes. 0 means the same as `zonesize`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub zone_range: u64,
    /// `zoneskip`, bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub zone_skip: u64,
    /// `random_generator=tausworthe64`
    pub generator_64: bool,
    /// `randseed`
    pub randseed: Option<u64>,
    /// `randrepeat`
    pub randrepeat: bool,
    /// `norandommap`
    pub norandommap: bool,
    /// `percentage_random`
    pub percentage_random: PerDirection<u32>,
    /// `rwmixread`, percent.
    pub rwmixread: u32,
    /// `num_range`, the ranges of one trim.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub ranges_per_trim: u64,
    /// `write_mode` and `sg_write_mode`, commands that replace writes with their percent. Empty for
    /// writes alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_modes: Vec<(WriteMode, u32)>,
    /// `deac`. Write Zeroes deallocates.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deallocates: bool,
    /// `verify`, true if on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify: bool,
    /// `do_verify`. Written data is read back.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub do_verify: bool,
    /// `verify_backlog`, writes. 0 reads all back at the end of a pass.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify_backlog: u64,
    /// `verify_backlog_batch`, reads. 0 means the same as `verify_backlog`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify_backlog_batch: u64,
    /// `rate`, bytes per second.
    pub rate: PerDirection<Option<u64>>,
    /// `rate_iops`
    pub rate_iops: PerDirection<Option<u64>>,
    /// `rate_process=poisson`, for devices with timing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub poisson: bool,
    /// `steadystate`. The run goes on until it is steady.
    #[serde(default, skip_serializing_if = "is_default")]
    pub steadystate: bool,
    /// `rate_ignore_thinktime`
    pub rate_ignore_thinktime: bool,
    /// `flow`
    pub flow: Option<u64>,
    /// `flow_id`
    pub flow_id: u64,
    /// `thinktime`, microseconds.
    pub thinktime_us: u64,
    /// `thinktime_blocks`
    pub thinktime_blocks: u64,
    /// `thinktime_iotime`, microseconds, or 0 if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub thinktime_iotime_us: u64,
    /// `iodepth`
    pub iodepth: u64,
    /// `latency_target` and its related options, for devices with timing. Unused if the target is
    /// 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub latency_goal: LatencyGoal,
    /// `write_bw_log`, `write_lat_log`, `write_iops_log` and their related options. They do not
    /// change the job's requests.
    #[serde(skip)]
    pub logs: LogChoice,
    /// `fdp`
    pub fdp: bool,
    /// `dataplacement`, or `None` if absent.
    pub dataplacement: Option<DataPlacement>,
    /// `plid_select`
    pub plid_select: PlacementSelection,
    /// `plids`, sorted. Empty for all indices of the drive.
    pub plids: Vec<PlacementIndex>,
    /// The lines of the `dp_scheme` file.
    pub dp_scheme: Vec<SchemeEntry>,
    /// `kb_base`
    pub kb_base: KbBase,
    /// Location of each given option, for messages.
    #[serde(skip)]
    pub(super) given: Vec<(&'static str, FileLine)>,
    /// Location of the section in the job file or in an included file.
    #[serde(skip)]
    pub(super) place: FileLine,
}

/// Omits default fields when serializing, so that jobs keep their hashes from before these options
/// existed.
fn is_one(value: &u64) -> bool {
    *value == 1
}

fn one() -> u64 {
    1
}

fn yes() -> bool {
    true
}

/// See [`is_one`].
fn is_true(value: &bool) -> bool {
    *value
}

/// See [`is_one`].
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Job {
    pub(super) fn with_defaults(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            first_thread_number: 1,
            numjobs: 1,
            requests_per_draw: 1,
            bs: [4096; 3],
            loops: 1,
            randrepeat: true,
            percentage_random: [100; 3],
            rwmixread: 50,
            ranges_per_trim: 1,
            do_verify: true,
            thinktime_blocks: 1,
            iodepth: 1,
            place: FileLine::new(file, 0),
            ..Self::default()
        }
    }

    /// The directive that writes carry, from `fdp` and `dataplacement` together.
    pub fn placement(&self) -> DataPlacement {
        if self.fdp { DataPlacement::Fdp } else { self.dataplacement.unwrap_or(DataPlacement::None) }
    }

    /// The seed of the job's random numbers.
    pub fn seed(&self) -> u64 {
        self.randseed.unwrap_or(DEFAULT_SEED)
    }

    /// True if each further pass repeats the random numbers of the first. In fio, an explicit
    /// `randseed` disables this.
    pub fn repeats_randomness(&self) -> bool {
        self.randrepeat && self.randseed.is_none()
    }

    /// Number of requests between two pauses, if counted. With `thinktime_iotime` they only count
    /// if `thinktime_blocks` is given too, as in fio.
    pub fn requests_between_pauses(&self) -> Option<u64> {
        let is_counted = self.thinktime_iotime_us == 0 || self.is_given("thinktime_blocks");
        is_counted.then_some(self.thinktime_blocks)
    }

    /// The smallest and largest block of each direction, bytes.
    pub fn block_range(&self, operation: RequestOperation) -> (u64, u64) {
        let bs = self.bs[operation as usize];
        self.bs_range[operation as usize].unwrap_or((bs, bs))
    }

    /// fio's name of the target of one instance, part of the seed of skewed distributions.
    pub fn target_name(&self, subjob: u32) -> String {
        match &self.filename {
            Some(name) => name.clone(),
            // fio takes a section named after a device for that device.
            None if self.name.starts_with("/dev/") => self.name.clone(),
            None => format!("{}.{subjob}.0", self.name),
        }
    }

    /// Creates an error about this job. It points at the option if given, and else at the section.
    pub fn error(&self, option: &str, problem: impl Into<String>, remedy: impl Into<String>) -> super::JobError {
        let complaint = OptionError::new(problem, remedy);
        match self.given.iter().rev().find(|(name, _)| *name == option) {
            Some((name, place)) => complaint.at(place, format!("{name} of [{}]", self.name)),
            None => complaint.at(&self.place, format!("[{}]", self.name)),
        }
    }

    /// True if the file contains the option, by its primary name.
    pub fn is_given(&self, option: &str) -> bool {
        self.given.iter().any(|(name, _)| *name == option)
    }

    pub(super) fn record_location(&mut self, option: &'static str, place: &FileLine) {
        self.given.retain(|(other, _)| *other != option);
        self.given.push((option, place.clone()));
    }

    /// Performs fio's checks on the complete set of options (`fixup_options`), and the lab's own.
    pub(super) fn check(&self) -> Result<(), super::JobError> {
        let given = |values: &PerDirection<Option<u64>>| values.iter().any(Option::is_some);
        if given(&self.rate) && given(&self.rate_iops) {
            return Err(self.error("rate_iops", "rate and rate_iops cannot be combined", "Remove one of them"));
        }
        if self.flow.is_some() && (given(&self.rate) || given(&self.rate_iops)) {
            return Err(self.error(
                "flow",
                "flow and rate cannot be combined, because both set the job's speed",
                "Remove one of them",
            ));
        }
        if self.ranges_per_trim > 1 && self.access.operations == JobOperations::TrimWrite {
            return Err(self.error(
                "num_range",
                "a trim-and-write job cannot trim several ranges at once",
                "Remove num_range, or use rw=trim or rw=randtrim",
            ));
        }
        if !self.write_modes.is_empty() && self.verify {
            return Err(self.error(
                "verify",
                "verify cannot be combined with write_mode, because other commands replace the writes",
                "Remove verify or write_mode",
            ));
        }
        let strides = match (self.strides, self.zone_size > 0) {
            (false, true) => Some("zonesize needs zonemode=strided"),
            (true, false) => Some("strided zones need a zonesize"),
            (true, true) if self.verify => Some("strided zones cannot be combined with verify"),
            (true, true) if self.access.operations == JobOperations::TrimWrite => {
                Some("strided zones cannot be combined with trims before writes")
            }
            _ => None,
        };
        if let Some(problem) = strides {
            return Err(self.error(
                "zonemode",
                problem,
                "Use zonemode=strided with a zonesize and without verify and trims before writes, or remove both",
            ));
        }
        let fills = self.is_given("fill_device") && !(self.access.random && self.norandommap);
        if self.is_given("fill_device") && (!fills || self.size.is_some()) {
            return Err(self.error(
                "fill_device",
                "fill_device needs a job that fills the rest of the drive, and no size",
                "Remove fill_device and size. The default size is the rest of the drive",
            ));
        }
        if self.fdp && self.dataplacement.is_some_and(|kind| kind != DataPlacement::Fdp) {
            return Err(self.error(
                "dataplacement",
                "the value contradicts fdp=1",
                "Write dataplacement=fdp, or remove fdp=1",
            ));
        }
        if self.placement() == DataPlacement::Streams && self.plids.is_empty() {
            return Err(self.error(
                "dataplacement",
                "the value streams needs a list of streams",
                "Add one, for example plids=1,2",
            ));
        }
        let by_scheme = self.plid_select == PlacementSelection::Scheme;
        if self.placement() != DataPlacement::None && by_scheme && self.dp_scheme.is_empty() {
            return Err(self.error(
                "plid_select",
                "the value scheme needs a file with ranges and indices",
                "Add dp_scheme=FILE",
            ));
        }
        if self.latency_goal.target_us > 0 && self.numjobs > 1 {
            return Err(self.error(
                "latency_target",
                format!("each of {} instances would search for its own depth", self.numjobs),
                "Write a section for each, or remove numjobs",
            ));
        }
        for operation in self.access.operations.iter() {
            let (_, largest) = self.block_range(operation);
            if largest > u64::from(u32::MAX) {
                return Err(self.error(
                    "bs",
                    format!("a request of {largest} bytes is too large"),
                    "Give less than 4g",
                ));
            }
        }
        Ok(())
    }
}
