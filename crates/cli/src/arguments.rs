//! Command line of `warp`. The doc comments here are its help and its manual pages.

mod drive;
mod output;
mod plan;
mod results;
mod serve;

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use base::size::{parse as size, parse_capacity};
use clap::{Args, Parser, Subcommand, ValueEnum};
use experiment::change::parse_array;
use experiment::{RunChange, RunOptions, RunOverrides, Scale, SettingOverrides};
use toml::Value;

pub use drive::{
    AdviseArgs, CharacterizeArgs, CheckArgs, DriveArgs, DriveCommand, FaultsArgs, HandleLimit, HostCredentials,
    InspectArgs, RemoteTargetArgs, WatchArgs,
};
pub use output::{OutputFormat, PrintedFormat, TraceColumns};
pub use plan::{PlanArgs, PlanCommand, PlanKvCacheArgs};
pub use results::{
    CompareArgs, ListArgs, ListResults, NewArgs, NewCommand, ResultsArgs, ResultsCommand, SaveRunArgs, ShowArgs,
    ShowCommand, ShowDevice, ShowJob, ShowResult,
};
pub use serve::{GuestArgs, GuestTransport, ServedDriveArgs, StudioArgs};

/// Open, programmable SSD with NVMe Flexible Data Placement
#[derive(Parser)]
#[command(name = "warp", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: WarpCommand,
}

#[derive(Subcommand)]
pub enum WarpCommand {
    /// Run an experiment, a fio job file, a workload or a block trace on a simulated device
    Run(Box<RunArgs>),
    /// Estimate the benefit of data placement for a workload on a drive
    #[command(name = "whatif")]
    WhatIf(Box<WhatIfArgs>),
    /// Find the drives that a service needs
    Plan(PlanArgs),
    /// Run experiments and compare them with the papers, exit code 1 if a claim fails
    Reproduce(Box<ReproduceArgs>),
    /// List experiments with their run times, devices, jobs and workloads
    List(ListArgs),
    /// Show a device, a job file, a workload, an experiment or the supported fio options
    Show(ShowArgs),
    /// Create a new experiment from a template
    New(NewArgs),
    /// List, show and compare results
    Results(ResultsArgs),
    /// Print data lifetime distributions by stream, or compare two workloads
    Lifetimes(Box<LifetimesArgs>),
    /// Write a workload as fio iologs for replay on a real drive
    Export(Box<ExportArgs>),
    /// Benchmark the model or a served drive against the limits of this machine
    Bench(BenchArgs),
    /// Serve a drive to QEMU (vfio-user) and to NVMe/TCP hosts
    Serve(Box<ServeArgs>),
    /// Watch, rewind, change, fork and compare simulated drives in the browser
    Studio(Box<StudioArgs>),
    /// Run a command in a Linux guest (stock kernel in QEMU, with nvme-cli and fio) with an FDP
    /// drive
    Guest(Box<GuestArgs>),
    /// Inspect or check a drive, advise on its placement, or inject faults
    Drive(DriveArgs),
    /// Record the disk requests of a program, with process and file, for `warp whatif` (Linux,
    /// root)
    Capture(CaptureArgs),
    /// Show which write hints and streams the writes of a program carry at the drive (Linux, root)
    Hints(HintsArgs),
    /// Measure a drive and fit a device profile to it (the fit needs the Python package)
    Characterize(Box<CharacterizeArgs>),
    /// Watch the write amplification and the life of a drive in use
    Watch(Box<WatchArgs>),
    /// Fit a device profile to measurements of a drive (needs the Python package)
    Calibrate(CalibrateArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Print the manual page of warp or of a command, in roff format for man
    Man(ManArgs),
}

#[derive(Args)]
pub struct CompletionsArgs {
    /// Shell to complete for
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct ManArgs {
    /// Command to describe, such as drive inspect [default: warp itself]
    pub command: Vec<String>,
}

#[derive(Args)]
pub struct WhatIfArgs {
    /// Block trace, job file, workload, or a folder of them
    pub workload: String,
    /// Device profile
    #[arg(long, default_value = "ssd_a")]
    pub device: String,
    /// Capacity of the drive, such as 3.84TB [default: the profile's]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub drive: Option<u64>,
    /// Over-provisioning in percent of the capacity, such as 7% or 7, or as a fraction below 1,
    /// such as 0.07 [default: the profile's]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub op: Option<f64>,
    /// Share of the drive that the data of a trace fills, on a resized drive [default: 85% if the
    /// trace accesses less than half of the drive]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fill: Option<f64>,
    /// Host writes per day (DWPD), in multiples of the capacity [default: the rate in the trace, or
    /// 1]
    #[arg(long, value_name = "DRIVE-WRITES", allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Run on a scaled model, 1/N of the drive [default: the smallest with the same
    /// behavior]
    #[arg(long, value_name = "1/N")]
    pub scale: Option<Scale>,
    /// Maximum bytes that the host writes, in multiples of the capacity [default: two passes of a
    /// trace, 20 for other workloads]
    #[arg(long, value_name = "CAPACITIES")]
    pub drive_writes: Option<f64>,
    /// Change a setting of the device or the workload, such as --set workload.format=msr
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    /// Compare placements of parity on an array of the device, such as raid5,drives=4
    /// (docs/reference/arrays.md)
    #[arg(long, value_name = "LEVEL,NAME=VALUE", value_parser = parse_array)]
    pub array: Option<SettingOverrides>,
    #[command(flatten)]
    pub columns: TraceColumns,
    /// Seed of the device and the workload
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Skip the uncertainty interval, which takes a run for each member of the device's ensemble
    #[arg(long)]
    pub no_uncertainty: bool,
    /// Price of capacity, dollars per terabyte [default: 100]
    #[arg(long, value_name = "USD")]
    pub dollars_per_tb: Option<f64>,
    /// Embodied carbon of flash, kg CO2e per gigabyte [default: 0.16]
    #[arg(long, value_name = "KG")]
    pub carbon_per_gb: Option<f64>,
    /// Folder for report.html [default: out/whatif-WORKLOAD]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Embed the plotting library in report.html instead of a separate file
    #[arg(long)]
    pub single_file: bool,
    #[command(flatten)]
    pub keep: SaveRunArgs,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// Parses a share: percent with a sign (7%), percent as a number above 1 (7), or a fraction below 1
/// (0.07). A bare 1 is ambiguous and rejected.
fn percent(text: &str) -> Result<f64, String> {
    let (digits, has_sign) = text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
    let value: Option<f64> = digits.trim().parse().ok();
    let value = value.filter(|value| (0.0..=1000.0).contains(value));
    match value {
        Some(one) if !has_sign && one == 1.0 => Err("1 can mean 1 % or 100 %. Give 1% or 100%".to_string()),
        Some(share) if !has_sign && share < 1.0 => Ok(share),
        Some(percent) => Ok(percent / 100.0),
        None => Err("give a share such as 7%, 7 or 0.07".to_string()),
    }
}

#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct CalibrateArgs {
    /// Arguments of `python3 -m warp_ssd.calibrate`, listed by --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

#[derive(Args)]
pub struct CaptureArgs {
    /// Disk or partition, such as /dev/nvme0n1
    pub device: PathBuf,
    /// File to write (compressed if the name ends with .zst), or a folder for it
    #[arg(long, value_name = "FILE", default_value = "capture.csv.zst")]
    pub out: PathBuf,
    /// Another disk to record, such as a namespace for the log (repeatable)
    #[arg(long, value_name = "DEVICE")]
    pub also: Vec<PathBuf>,
    /// Kernel buffer per processor (events that overflow the buffer are lost and counted)
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4MiB")]
    pub buffer: u64,
    /// Command to run and to record until it ends
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Args)]
pub struct HintsArgs {
    /// Disk or partition to watch (repeatable) [default: all disks of this machine]
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<PathBuf>,
    /// Kernel buffer per processor (events that overflow the buffer are lost and counted)
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4MiB")]
    pub buffer: u64,
    #[command(flatten)]
    pub output: PrintedFormat,
    /// Command to run and to watch until it ends
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Args)]
pub struct LifetimesArgs {
    /// Job file, workload or block trace, as for `warp run`
    pub workload: String,
    /// Second workload, to compare with the first
    pub other: Option<String>,
    /// Device profile that both workloads run on
    #[arg(long, default_value = analysis::lifetimes::DEVICE)]
    pub device: String,
    /// Change the capacity of the device, such as 256M
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity, conflicts_with = "scale")]
    pub capacity: Option<u64>,
    /// Use a scaled model, 1/N of the drive
    #[arg(long, default_value = analysis::lifetimes::SCALE)]
    pub scale: Scale,
    /// Change a setting for both workloads, such as --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    #[command(flatten)]
    pub columns: TraceColumns,
    /// Maximum writes of an endless workload, in multiples of the capacity
    #[arg(long, value_name = "CAPACITIES", default_value_t = analysis::lifetimes::WRITE_CAPACITIES)]
    pub drive_writes: f64,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct ExportArgs {
    /// Job file, workload or block trace, as for `warp run`
    pub workload: String,
    /// File to write (- for standard output), or a folder with --per-placement
    pub to: PathBuf,
    /// Device profile that determines the layout of the workload
    #[arg(long, default_value = "warp_default")]
    pub device: String,
    /// Change the capacity of the device, such as 8G
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity, conflicts_with = "scale")]
    pub capacity: Option<u64>,
    /// Use a scaled model, 1/N of the drive
    #[arg(long, default_value = "1/1")]
    pub scale: Scale,
    /// Change a setting, such as --set geometry.over_provisioning=0.2 or --set
    /// workload.soc_percent=20
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    #[command(flatten)]
    pub columns: TraceColumns,
    /// Maximum number of requests to write (required for an endless workload)
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// File that fio replays the iolog on (for placement, the character device of a namespace)
    #[arg(long, value_name = "FILE", default_value = "/dev/ng0n1")]
    pub file: String,
    /// Version of the iolog, 2 or 3 (with timestamps)
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub iolog_version: u8,
    /// Write an iolog for each placement identifier, and a job file that replays them together with
    /// their identifiers
    #[arg(long)]
    pub per_placement: bool,
}

#[derive(Clone, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub drive: ServedDriveArgs,
    /// Unix socket on which to serve QEMU's vfio-user-pci (repeatable, one socket per virtual
    /// machine)
    #[arg(long, value_name = "SOCKET")]
    pub vfio_user: Vec<PathBuf>,
    /// Address and port on which to serve NVMe/TCP (addresses other than loopback need --hosts)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub tcp: Option<std::net::SocketAddr>,
    /// TOML file of the hosts that may connect over NVMe/TCP, with their DH-HMAC-CHAP secrets
    #[arg(long, value_name = "FILE", requires = "tcp")]
    pub hosts: Option<PathBuf>,
    /// Seconds between checkpoints of the mapping if the data is in a file (0 for a checkpoint at
    /// shutdown only)
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub checkpoint: u64,
    /// Keep a CRC-32C checksum of each 4 KiB of --data FILE and fail reads of data that was changed
    /// outside the drive
    #[arg(long)]
    pub checksums: bool,
    /// Seconds for a complete background scan of --data FILE for damage, at low priority (0 for no
    /// scan, any other value implies --checksums)
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub scrub: u64,
    /// Create a new drive without a namespace
    #[arg(long)]
    pub no_namespace: bool,
    /// Maximum seconds that a reclaim unit may stay open (0 for no limit)
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub reclaim_unit_time_limit: u32,
    /// Serial number
    #[arg(long, default_value = "WARP0001")]
    pub serial: String,
    /// NQN of the subsystem [default: nqn.2014-08.org.nvmexpress:uuid:UUID with a UUID derived from
    /// the serial number]
    #[arg(long)]
    pub nqn: Option<String>,
    /// Serve Prometheus metrics at http://ADDRESS:PORT/metrics (addresses other than loopback need
    /// --metrics-token)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<std::net::SocketAddr>,
    /// File with the token that metrics clients must send (Authorization: Bearer TOKEN)
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub metrics_token: Option<PathBuf>,
    /// Serve a web page of the drive at http://ADDRESS:PORT (addresses other than loopback need
    /// --studio-token)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub studio: Option<std::net::SocketAddr>,
    /// File with the token that browsers must send, which also allows the page to store the drive,
    /// reset its statistics and inject faults
    #[arg(long, value_name = "FILE", requires = "studio")]
    pub studio_token: Option<PathBuf>,
    /// TOML file of faults to inject (docs/reference/faults.md)
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Hide the live status line
    #[arg(long)]
    pub quiet: bool,
}
/// Parses a number within a range.
fn number_in(range: RangeInclusive<f64>, text: &str, remedy: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| remedy.to_string())
}

fn seconds_in(range: RangeInclusive<f64>, text: &str, remedy: &str) -> Result<Duration, String> {
    number_in(range, text, remedy).map(Duration::from_secs_f64)
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("give on or off".to_string()),
    }
}

/// Index of the LBA format with this logical block size.
fn logical_block(text: &str) -> Result<u8, String> {
    let formats = nvme::namespace::FORMATS;
    let index = formats.iter().position(|format| text == (1u32 << format.data_bytes_log2).to_string());
    index.map(|index| index as u8).ok_or_else(|| "give 512 or 4096".to_string())
}

#[derive(Args)]
pub struct RunArgs {
    /// Experiment, job file, workload, trace or folder of traces. Names are those of `warp list`,
    /// and the path of a job file ends in .fio [default: print how to start]
    pub target: Option<String>,
    /// Device profile for a job file, or for an experiment (selects its runs on that device, or
    /// replaces its device)
    #[arg(long)]
    pub device: Option<String>,
    /// Change the capacity of the device, such as 480GB, like `warp serve --capacity`
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<u64>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub columns: TraceColumns,
    /// Folder for report.html [default: out/TARGET]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Embed the plotting library in report.html instead of a separate file
    #[arg(long)]
    pub single_file: bool,
    /// Write a row per garbage collection to this Parquet file (- for standard output, which
    /// replaces the tables)
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Write the time series to this Parquet file (- for standard output, which replaces the
    /// tables)
    #[arg(long, value_name = "FILE")]
    pub series: Option<PathBuf>,
    /// Write latencies and rates of a job file on a device with timing to this file in fio's JSON
    /// format (- for standard output)
    #[arg(long, value_name = "FILE", conflicts_with = "untimed")]
    pub fio_json: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputFormat,
    /// Poll the drive's FDP events during the run and apply the placement advice, as `warp drive
    /// advise` does on a served drive (reported, lifetimes, or observe, which never moves data)
    #[arg(long, value_name = "POLICY")]
    pub feedback: Option<advise::PolicyName>,
    /// Bytes that the host writes between two polls, in multiples of the capacity [default: 0.25]
    #[arg(long, value_name = "CAPACITIES", requires = "feedback")]
    pub feedback_every: Option<f64>,
    /// Print the counters of each reclaim unit handle
    #[arg(long)]
    pub handles: bool,
    /// Start a job file from this device snapshot instead of an empty device
    #[arg(long, value_name = "FILE", conflicts_with_all = ["device", "capacity", "scale", "seed", "set", "uncertainty", "untimed"])]
    pub load_snapshot: Option<PathBuf>,
    /// Save the device to this snapshot after a job file
    #[arg(long, value_name = "FILE")]
    pub save_snapshot: Option<PathBuf>,
    #[command(flatten)]
    pub keep: SaveRunArgs,
    #[command(flatten)]
    pub remote: RemoteTargetArgs,
}

/// Options that select and change the runs of an experiment.
#[derive(Args)]
pub struct SelectionArgs {
    #[command(flatten)]
    pub run: RunOptions,
    /// Also run each member of the devices' ensembles and print write amplification with an
    /// uncertainty interval, such as 1.41 (1.30-1.55)
    #[arg(long)]
    pub uncertainty: bool,
    /// Change a setting of the device, such as --set geometry.over_provisioning=0.2, or of a
    /// workload, such as --set workload.soc_percent=20
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    /// Run on an array of the device, such as raid5,drives=4,chunk=128KiB
    /// (docs/reference/arrays.md)
    #[arg(long, value_name = "LEVEL,NAME=VALUE", value_parser = parse_array)]
    pub array: Option<SettingOverrides>,
}

/// Formats settings as command-line options.
pub fn typed_settings(set: &[(String, Value)]) -> impl Iterator<Item = String> {
    set.iter().map(|(path, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        format!("--set {path}={value}")
    })
}

/// Formats an option with its value, `None` if the option is absent.
pub fn format_option<T: ToString>(name: &str, value: Option<T>) -> Option<String> {
    value.map(|value| format!("--{name} {}", value.to_string()))
}

/// Formats a size as a command-line option.
pub fn typed_size(name: &str, bytes: Option<u64>) -> Option<String> {
    format_option(name, bytes.map(|bytes| base::HumanBytes(bytes).to_string().replace(' ', "")))
}

/// Options as one line, as the user types them.
pub fn typed_line(options: impl Iterator<Item = String>) -> String {
    options.collect::<Vec<_>>().join(" ")
}

impl SelectionArgs {
    /// Changed settings by path. Those of `--set` override those of `--array`.
    pub fn settings(&self) -> Vec<(String, Value)> {
        self.array.clone().into_iter().flatten().chain(self.set.iter().cloned()).collect()
    }

    /// Formats the given options as on a command line.
    pub fn command_line(&self) -> impl Iterator<Item = String> {
        self.run.words().into_iter().chain(typed_settings(&self.settings()).collect::<Vec<_>>())
    }

    /// Converts the options to a selection. The experiment supplies the remaining settings.
    pub fn selection(&self) -> RunOverrides {
        RunOverrides {
            run: self.run.clone(),
            change: RunChange::from_settings(&self.settings().into_iter().collect()),
            uncertainty: self.uncertainty,
            ..RunOverrides::default()
        }
    }
}

/// Parses PATH=VALUE. The value is TOML, or a string if it is not valid TOML.
fn assignment(pair: &str) -> Result<(String, Value), String> {
    let split = pair.split_once('=').filter(|(path, _)| !path.trim().is_empty());
    let (path, value) = split.ok_or_else(|| {
        format!(
            "{pair:?} is not of the form PATH=VALUE. Give a path and a value, such as \
                                     geometry.over_provisioning=0.2"
        )
    })?;
    let path = path.trim().to_string();
    if let Some(value) = percentage(&path, value.trim()) {
        return Ok((path, value));
    }
    let parsed = toml::from_str::<toml::Table>(&format!("value = {value}")).ok();
    let parsed = parsed.and_then(|mut table| table.remove("value"));
    Ok((path, parsed.unwrap_or_else(|| value.trim().into())))
}

/// Parses a percentage such as 7%. The result is a number of percent if the setting's name ends
/// with `_percent`, and a fraction for other settings. Job file options parse the sign themselves
/// (`size=60%`).
fn percentage(path: &str, value: &str) -> Option<Value> {
    let percent: f64 = value.strip_suffix('%')?.trim().parse().ok()?;
    if path.ends_with("_percent") {
        return Some(Value::Float(percent));
    }
    (!path.starts_with("workload.")).then_some(Value::Float(percent / 100.0))
}

#[derive(Args)]
pub struct ReproduceArgs {
    /// Experiments to run [default: all]
    pub experiments: Vec<String>,
    /// Run the quick variants, compare them with their golden results and check the claims marked
    /// for them
    #[arg(long, conflicts_with = "uncertainty")]
    pub quick: bool,
    /// With --quick, replace the golden results with the new ones (refused if a claim fails)
    #[arg(long, requires = "quick")]
    pub update_golden: bool,
    /// Write each claim with its verdict to this Markdown file, updated after each experiment
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub claims: Option<PathBuf>,
    /// Write each published number with its error to this Markdown file, updated after each
    /// experiment
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub fidelity: Option<PathBuf>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub keep: SaveRunArgs,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// Subjects of `warp bench`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchSubject {
    Model,
    VfioUser,
    Tcp,
    Checkpoint,
}

#[derive(Args)]
pub struct BenchArgs {
    /// Device model (against memory bandwidth), drive served over vfio-user or NVMe/TCP (to a
    /// built-in host on loopback), or host wait times during checkpoints
    #[arg(default_value = "model")]
    pub what: BenchSubject,
    /// Capacity of the device for model and checkpoint, GiB
    #[arg(long, default_value_t = 64)]
    pub capacity_gib: u64,
    /// Rounds of the model benchmark (a quarter of a drive write each)
    #[arg(long, default_value_t = 7)]
    pub rounds: u32,
    #[command(flatten)]
    pub output: OutputFormat,
}
