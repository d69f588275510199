//! The command line.

mod assert;
mod drive;
mod faults;
mod guest;
mod output;
mod runs;
mod served;
mod studies;
mod studio;
mod trace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use advise::PolicyName;
use base::size::{parse as size, parse_capacity};
use clap::{Args, Parser, Subcommand, ValueEnum};
use experiment::change::Change;
use experiment::run_options::RunOptions;
use experiment::selection::Selection;
use experiment::twin::Scale;
use toml::Value;

pub use assert::{Assert, OfHandle};
pub use drive::{AsHost, OnDrive};
pub use faults::Faults;
pub use guest::{Guest, Transport};
pub use output::{OutputFormat, PrintedFormat};
pub use runs::{Compare, Keep, Runs, RunsCommand};
pub use served::ServedDrive;
pub use studies::{List, New, NewThing};
pub use studio::Studio;
pub use trace::TraceColumns;

/// An open, programmable SSD with NVMe Flexible Data Placement.
#[derive(Parser)]
#[command(name = "warp", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an experiment; or a fio job file, a workload or a block trace on a device
    Run(Box<Run>),
    /// Say in a sentence what placement would do for a workload on a drive
    #[command(name = "whatif")]
    WhatIf(Box<WhatIf>),
    /// Run experiments and compare them with the papers; exit code 1 if a claim does not hold
    Reproduce(Reproduce),
    /// List runs that were kept, newest first, or show one
    Runs(Runs),
    /// Put two results beside each other: what differs, and whether that is more than chance
    Compare(Compare),
    /// List what there is: experiments with how long they take, devices, jobs, workloads
    List(List),
    /// Write a new experiment to begin with
    New(New),
    /// List device profiles, or the values of one with their sources
    Devices(Devices),
    /// List job files, or what one would do; or all fio options that are understood
    Jobs(Jobs),
    /// Say how long what a workload writes lives, and how far two workloads are apart in that
    Lifetimes(Box<Lifetimes>),
    /// Write a workload as fio iologs, to be replayed on a real drive
    Export(Box<Export>),
    /// Say what a device profile means: geometry, reclaim units, spare, memory
    Explain(Explain),
    /// Measure the model, or a served drive, against the machine's limits
    Bench(Bench),
    /// Serve a drive to QEMU (vfio-user) and to NVMe/TCP hosts
    Serve(Box<Serve>),
    /// Watch drives at work in the browser: pause, go back, change, branch off, compare
    Studio(Box<Studio>),
    /// Have a served drive fail, see how it does, or have it work again
    Faults(Faults),
    /// Run a command in a Linux with an FDP drive: a stock kernel in QEMU, with nvme-cli and fio
    Guest(Box<Guest>),
    /// Decode the FDP logs of a drive, or what a served drive has stored
    Inspect(Inspect),
    /// Check what was promised of a drive's write amplification; exit code 1 if it does not hold
    Assert(Assert),
    /// Say which data should be written with another placement identifier, from a drive's FDP events
    Advise(Box<Advise>),
    /// Record what a program asks of a disk, with process and file, for `warp whatif` (Linux, root)
    Capture(Capture),
    /// Find the device profile of a drive from measurements (with the Python package)
    Calibrate(Calibrate),
    /// Print the completions of a shell
    Completions(Completions),
    /// Print the manual page of warp, or of one of its commands, for man
    Man(Man),
}

#[derive(Args)]
pub struct Completions {
    /// Shell that they are for
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct Man {
    /// Command; warp itself if none is named
    pub command: Option<String>,
}

#[derive(Args)]
pub struct WhatIf {
    /// Block trace, job file or workload; or a folder of them
    pub workload: String,
    /// Device profile
    #[arg(long, default_value = "ssd_a")]
    pub device: String,
    /// Capacity of the drive, such as 3.84TB [default: the profile's]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub drive: Option<u64>,
    /// Spare flash in percent of the capacity, such as 7% or 7; below 1 it is a share, such as 0.07 [default: the profile's]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub op: Option<f64>,
    /// Share of the drive that a trace's data takes, where the trace touches only a part of it [default: 85%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fill: Option<f64>,
    /// Multiples of the capacity that the host writes each day [default: what the trace's times say, or 1]
    #[arg(long, value_name = "DRIVE-WRITES", allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Run on a twin of the drive, 1/N of its size [default: the smallest that behaves like it]
    #[arg(long, value_name = "1/N")]
    pub scale: Option<Scale>,
    /// Bytes for the host to write at most, in multiples of the capacity [default: two passes of a trace; 20 of
    /// anything else]
    #[arg(long, value_name = "CAPACITIES")]
    pub write: Option<f64>,
    /// Change a setting of the device, or of the workload: --set workload.format=msr
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    #[command(flatten)]
    pub columns: TraceColumns,
    /// Seed of device and workload
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Leave out the interval of the device's ensemble, which takes a run of each of its members
    #[arg(long)]
    pub no_interval: bool,
    /// Price of a terabyte of capacity in dollars [default: 100]
    #[arg(long, value_name = "USD")]
    pub dollars_per_tb: Option<f64>,
    /// Embodied carbon of a gigabyte of flash in kg CO2e [default: 0.16]
    #[arg(long, value_name = "KG")]
    pub carbon_per_gb: Option<f64>,
    /// Where to write report.html; default is out/whatif-WORKLOAD
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Put the plotting library into report.html, so that it can be sent around; else it stands beside
    #[arg(long)]
    pub single_file: bool,
    #[command(flatten)]
    pub keep: Keep,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// A share: percent with a sign (7%), a number above 1 that is percent (7), or one below 1 that is a share (0.07). A bare 1 could be either.
fn percent(text: &str) -> Result<f64, String> {
    let (digits, has_sign) = text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
    let value: Option<f64> = digits.trim().parse().ok();
    let value = value.filter(|value| (0.0..=1000.0).contains(value));
    match value {
        Some(one) if !has_sign && one == 1.0 => Err("1 can be 1 % or all of it; give 1% or 100%".to_string()),
        Some(share) if !has_sign && share < 1.0 => Ok(share),
        Some(percent) => Ok(percent / 100.0),
        None => Err("give a share such as 7%, 7 or 0.07".to_string()),
    }
}

#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Calibrate {
    /// As `python3 -m warp_ssd.calibrate` takes them; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

#[derive(Args)]
pub struct Capture {
    /// Disk or partition, such as /dev/nvme0n1
    pub device: PathBuf,
    /// File to write (compressed if it ends with .zst), or a folder for it
    #[arg(long, value_name = "FILE", default_value = "capture.csv.zst")]
    pub out: PathBuf,
    /// Another disk that is recorded with it, such as a namespace for the log; repeatable
    #[arg(long, value_name = "DEVICE")]
    pub also: Vec<PathBuf>,
    /// The kernel's buffer for each processor; what it cannot take is lost and counted
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4MiB")]
    pub buffer: u64,
    /// What to run; the capture ends with it
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

#[derive(Args)]
pub struct Lifetimes {
    /// Job file, workload or block trace, as for `warp run`
    pub workload: String,
    /// Another one, to be compared with it
    pub other: Option<String>,
    /// Device profile that both are laid out on
    #[arg(long, default_value = analysis::lifetimes::DEVICE)]
    pub device: String,
    /// Lay them out on a drive like the device, but of another capacity, such as 256M
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity, conflicts_with = "scale")]
    pub capacity: Option<u64>,
    /// Lay them out on a twin of the drive, 1/N of its size
    #[arg(long, default_value = analysis::lifetimes::SCALE)]
    pub scale: Scale,
    /// Change a setting of both, e.g. --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    #[command(flatten)]
    pub columns: TraceColumns,
    /// Drive-writes after which one that never ends is cut off
    #[arg(long, value_name = "CAPACITIES", default_value_t = analysis::lifetimes::WRITE_CAPACITIES)]
    pub write: f64,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct Export {
    /// Job file, workload or block trace, as for `warp run`
    pub workload: String,
    /// File to write, - for standard output; a folder with --per-placement
    pub to: PathBuf,
    /// Device profile that it is laid out on
    #[arg(long, default_value = "warp_default")]
    pub device: String,
    /// Lay it out on a drive like the device, but of another capacity, such as 8G
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity, conflicts_with = "scale")]
    pub capacity: Option<u64>,
    /// Lay it out on a twin of the drive, 1/N of its size
    #[arg(long, default_value = "1/1")]
    pub scale: Scale,
    /// Change a setting, e.g. --set geometry.over_provisioning=0.2 or --set workload.soc_percent=20
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    #[command(flatten)]
    pub columns: TraceColumns,
    /// Requests to write, at most; a workload that never ends needs it
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// What fio is to replay it on: for placement the character device of a namespace
    #[arg(long, value_name = "FILE", default_value = "/dev/ng0n1")]
    pub file: String,
    /// Version of the iolog: 2, or 3 with timestamps
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub iolog_version: u8,
    /// Write an iolog for each placement identifier, and a job file that replays them together with their identifiers
    #[arg(long)]
    pub per_placement: bool,
}

#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    pub drive: ServedDrive,
    /// Unix socket to serve QEMU's vfio-user-pci on; may be given several times, one for each virtual machine
    #[arg(long, value_name = "SOCKET")]
    pub vfio_user: Vec<PathBuf>,
    /// Address and port to serve NVMe/TCP on; other than loopback needs --hosts
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub tcp: Option<std::net::SocketAddr>,
    /// TOML file of the hosts that may connect by NVMe/TCP, with their DH-HMAC-CHAP secrets
    #[arg(long, value_name = "FILE", requires = "tcp")]
    pub hosts: Option<PathBuf>,
    /// Seconds between checkpoints of the mapping when the data is in a file; 0: only at the end
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub checkpoint: u64,
    /// With --data FILE: checksums of its pages, so that what was changed behind the drive's back is not served
    #[arg(long)]
    pub checksums: bool,
    /// Seconds in which all data is looked through for damage, at low priority (with --checksums); 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub scrub: u64,
    /// A new drive comes without a namespace
    #[arg(long)]
    pub no_namespace: bool,
    /// Seconds that a reclaim unit may stay open; 0 for no limit
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub reclaim_unit_time_limit: u32,
    /// Serial number
    #[arg(long, default_value = "WARP0001")]
    pub serial: String,
    /// NQN of the subsystem [default: nqn.2014-08.org.nvmexpress:uuid:UUID, where the UUID follows from the serial
    /// number]
    #[arg(long)]
    pub nqn: Option<String>,
    /// Serve Prometheus metrics at http://ADDRESS:PORT/metrics; other than loopback needs --metrics-token
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<std::net::SocketAddr>,
    /// File with the token that whoever asks for metrics has to show (Authorization: Bearer TOKEN)
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub metrics_token: Option<PathBuf>,
    /// Serve a page of the drive at http://ADDRESS:PORT, to be watched in a browser; other than loopback needs
    /// --studio-token
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub studio: Option<std::net::SocketAddr>,
    /// File with the token that the page has to show; with it the page may also store the drive, count its statistics
    /// anew and have it fail
    #[arg(long, value_name = "FILE", requires = "studio")]
    pub studio_token: Option<PathBuf>,
    /// TOML file of what is to go wrong (docs/faults.md)
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Do not print the live status line
    #[arg(long)]
    pub quiet: bool,
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("give on or off".to_string()),
    }
}

/// Index of the LBA format with this block size.
fn logical_block(text: &str) -> Result<u8, String> {
    let formats = nvme::namespace::FORMATS;
    let index = formats
        .iter()
        .position(|format| text == (1u32 << format.data_bytes_log2).to_string());
    index
        .map(|index| index as u8)
        .ok_or_else(|| "give 512 or 4096".to_string())
}

#[derive(Args)]
pub struct Inspect {
    /// What to look at: tcp:ADDRESS:PORT of a served drive, /dev/nvme0 or /dev/ng0n1 of this machine, the data file of
    /// a served drive, a snapshot of a device, or a raw log page (nvme get-log --raw-binary)
    pub target: String,
    /// Endurance group of the drive [default: 1]
    #[arg(long, value_name = "N")]
    pub endurance_group: Option<u16>,
    #[command(flatten)]
    pub host: AsHost,
    /// Which log page a raw file is (20h to 23h)
    #[arg(long, value_name = "LID", value_parser = log_identifier)]
    pub log: Option<u8>,
    /// Look through the data file of a drive with checksums that is not served; exit code 1 if a page is damaged
    #[arg(long, conflicts_with = "log")]
    pub scrub: bool,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("owner map").required(true).args(["owners", "files", "chunks"]))]
pub struct Advise {
    /// The drive: tcp:ADDRESS:PORT of a served one, or a namespace of this machine such as /dev/ng0n1 or /dev/nvme0n1
    pub target: String,
    /// Whose the data is: a file of lines OWNER,START_BYTES,BYTES[,PLACEMENT]
    #[arg(long, value_name = "FILE")]
    pub owners: Option<PathBuf>,
    /// Whose the data is: the files below this directory of a file system that is on the namespace
    #[arg(long, value_name = "DIRECTORY")]
    pub files: Option<PathBuf>,
    /// With --files: the first N components of a path are the owner, not the whole path
    #[arg(long, value_name = "N", requires = "files", conflicts_with_all = ["owners", "chunks"], value_parser = clap::value_parser!(u64).range(1..))]
    pub depth: Option<u64>,
    /// Whose the data is not known: N equal parts of the namespace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub chunks: Option<u64>,
    /// Seconds between readings
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub every: Duration,
    /// Readings to take [default: until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub readings: Option<u64>,
    /// What follows from events: reported, lifetimes or observe (nothing)
    #[arg(long, default_value = "lifetimes")]
    pub policy: PolicyName,
    /// Command that carries out a move; it finds WARP_OWNER, WARP_FROM, WARP_TO, WARP_REASON and
    /// WARP_EXPECTED_SAVING_BYTES in its environment
    #[arg(long, value_name = "COMMAND")]
    pub hook: Option<String>,
    /// Pass over the events that are in the log already
    #[arg(long)]
    pub from_now: bool,
    /// Write a line of JSON for each reading to this file; - for standard output, without the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub output: PrintedFormat,
    /// Namespace [default: the one of the device; 1 over NVMe/TCP]
    #[arg(long, value_name = "NSID", value_parser = clap::value_parser!(u32).range(1..))]
    pub namespace: Option<u32>,
    /// Endurance group [default: the namespace's]
    #[arg(long)]
    pub endurance_group: Option<u16>,
    #[command(flatten)]
    pub host: AsHost,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value: Option<f64> = text.parse().ok();
    value
        .filter(|&seconds| (0.01..=86_400.0).contains(&seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "give 0.01 to 86400 seconds".to_string())
}

fn log_identifier(text: &str) -> Result<u8, String> {
    let digits = text.trim_start_matches("0x").trim_end_matches(['h', 'H']);
    let is_hexadecimal = text.starts_with("0x") || text.ends_with(['h', 'H']);
    let value = u8::from_str_radix(digits, if is_hexadecimal { 16 } else { 10 });
    value.map_err(|_| "give a log page identifier such as 0x23".to_string())
}

#[derive(Args)]
pub struct Run {
    /// Experiment (a folder, here or in experiments/), job file (a name in jobs/, or a path ending in .fio), workload
    /// (a name in workloads/, or a path there) or the path of a trace, or of a folder with its files; nothing says where
    /// to start
    pub target: Option<String>,
    /// Device profile to run a job file on, to restrict an experiment to, or to run it on instead of its own
    #[arg(long)]
    pub device: Option<String>,
    /// Run on a drive like the device but of another capacity, such as 480GB, as `warp serve --capacity` makes it
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<u64>,
    #[command(flatten)]
    pub selection: SelectionArguments,
    #[command(flatten)]
    pub columns: TraceColumns,
    /// Where to write report.html; default is out/TARGET
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Put the plotting library into report.html, so that it can be sent around; else it stands beside
    #[arg(long)]
    pub single_file: bool,
    /// Write a row for each garbage collection to this Parquet file; - for standard output, without the tables
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Write the time series to this Parquet file; - for standard output, without the tables
    #[arg(long, value_name = "FILE")]
    pub series: Option<PathBuf>,
    /// Write the latencies and rates of a job file on a device with timing as fio's JSON to this file; - for standard
    /// output
    #[arg(long, value_name = "FILE", conflicts_with = "untimed")]
    pub fio_json: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputFormat,
    /// Read the drive's events on the way and write data where the advice says, as `warp advise` on a served drive:
    /// reported, lifetimes, or observe, which moves nothing
    #[arg(long, value_name = "POLICY")]
    pub feedback: Option<advise::PolicyName>,
    /// Bytes that the host writes between two readings of the events, in multiples of the capacity [default: 0.25]
    #[arg(long, value_name = "CAPACITIES", requires = "feedback")]
    pub feedback_every: Option<f64>,
    /// Print the counters of every reclaim unit handle
    #[arg(long)]
    pub handles: bool,
    /// Start a job file from this snapshot of a device instead of an empty one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["device", "capacity", "scale", "seed", "set", "interval", "untimed"])]
    pub from: Option<PathBuf>,
    /// Save the device to this snapshot after a job file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub keep: Keep,
    #[command(flatten)]
    pub drive: OnDrive,
}

/// What is selected of an experiment.
#[derive(Args)]
pub struct SelectionArguments {
    #[command(flatten)]
    pub run: RunOptions,
    /// Run every member of the devices' ensembles too, and print each write amplification with the range of what they
    /// say, such as 1.41 (1.30-1.55)
    #[arg(long)]
    pub interval: bool,
    /// Change a setting of the device, e.g. --set geometry.over_provisioning=0.2, or of a workload: --set
    /// workload.soc_percent=20
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
}

/// Settings as they are typed.
pub fn typed_settings(set: &[(String, Value)]) -> impl Iterator<Item = String> {
    set.iter().map(|(path, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        format!("--set {path}={value}")
    })
}

/// An option with its value as it is typed; nothing if it was not given.
pub fn typed<T: ToString>(name: &str, value: Option<T>) -> Option<String> {
    value.map(|value| format!("--{name} {}", value.to_string()))
}

/// A size as it is typed.
pub fn typed_size(name: &str, bytes: Option<u64>) -> Option<String> {
    typed(name, bytes.map(|bytes| base::Bytes(bytes).to_string().replace(' ', "")))
}

impl SelectionArguments {
    /// The options that are given, as they are typed.
    pub fn typed(&self) -> impl Iterator<Item = String> {
        self.run.words().into_iter().chain(typed_settings(&self.set))
    }

    /// What they select; the rest is the experiment's.
    pub fn selection(&self) -> Selection {
        Selection {
            run: self.run.clone(),
            change: Change::of_settings(&self.set.iter().cloned().collect()),
            interval: self.interval,
            ..Selection::default()
        }
    }
}

/// A setting by dotted path; its value is TOML, or else a string.
fn assignment(pair: &str) -> Result<(String, Value), String> {
    let split = pair.split_once('=').filter(|(path, _)| !path.trim().is_empty());
    let (path, value) =
        split.ok_or_else(|| format!("{pair:?} is not of the form PATH=VALUE, e.g. geometry.over_provisioning=0.2"))?;
    let path = path.trim().to_string();
    if let Some(value) = percentage(&path, value.trim()) {
        return Ok((path, value));
    }
    let parsed = toml::from_str::<toml::Table>(&format!("value = {value}")).ok();
    let parsed = parsed.and_then(|mut table| table.remove("value"));
    Ok((path, parsed.unwrap_or_else(|| value.trim().into())))
}

/// A value such as 7%: a number of percent where the setting's name says so, and a share elsewhere. Options of job files take the sign
/// themselves (`size=60%`).
fn percentage(path: &str, value: &str) -> Option<Value> {
    let percent: f64 = value.strip_suffix('%')?.trim().parse().ok()?;
    if path.ends_with("_percent") {
        return Some(Value::Float(percent));
    }
    (!path.starts_with("workload.")).then_some(Value::Float(percent / 100.0))
}

#[derive(Args)]
pub struct Reproduce {
    /// Experiments; all of them if none is named
    pub experiments: Vec<String>,
    /// Run the quick forms: compare them with their golden results, and judge the claims that are marked for them
    #[arg(long, conflicts_with = "interval")]
    pub quick: bool,
    /// With --quick: take the results as golden from now on; refused where a claim is broken
    #[arg(long, requires = "quick")]
    pub bless: bool,
    /// Write every claim with its verdict to this Markdown file, anew after each experiment
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub claims: Option<PathBuf>,
    #[command(flatten)]
    pub selection: SelectionArguments,
    #[command(flatten)]
    pub keep: Keep,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct Devices {
    /// Profile to show
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct Jobs {
    /// Job file to show
    pub name: Option<String>,
    /// Device to show it on
    #[arg(long, default_value = "warp_default")]
    pub device: String,
    /// List every fio option that is understood, with what it does here, as Markdown
    #[arg(long, conflicts_with_all = ["name", "json", "format"])]
    pub options: bool,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct Explain {
    /// Device profile
    pub device: String,
    /// Change a setting, e.g. --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    /// Explain a drive like the device, but of another capacity, such as 480GB
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity, conflicts_with = "scale")]
    pub capacity: Option<u64>,
    /// Explain the twin of this scale
    #[arg(long, value_name = "1/N", default_value = "1/1")]
    pub scale: Scale,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// What `warp bench` measures.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchSubject {
    Model,
    VfioUser,
    Tcp,
    Checkpoint,
}

#[derive(Args)]
pub struct Bench {
    /// What to measure: the device model against the machine's memory, a drive served by vfio-user or by NVMe/TCP on loopback
    /// with a host of our own, or how long such a host waits while checkpoints are made
    #[arg(default_value = "model")]
    pub what: BenchSubject,
    /// Model and checkpoint: capacity of the device, GiB
    #[arg(long, default_value_t = 64)]
    pub capacity_gib: u64,
    /// Model: rounds of a quarter of a drive-write each
    #[arg(long, default_value_t = 7)]
    pub rounds: u32,
    #[command(flatten)]
    pub output: OutputFormat,
}
