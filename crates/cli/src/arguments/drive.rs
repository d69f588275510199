//! Command lines for drives in use: `warp drive`, `warp watch` and `warp characterize`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use advise::PolicyName;
use clap::{ArgGroup, Args, Subcommand};

use super::{OutputFormat, PrintedFormat, number_in, seconds_in};

#[derive(Args)]
pub struct DriveArgs {
    #[command(subcommand)]
    pub command: DriveCommand,
}

#[derive(Subcommand)]
pub enum DriveCommand {
    /// Decode the FDP logs of a drive or the stored state of a served drive
    Inspect(InspectArgs),
    /// Check the write amplification of a drive against limits, exit code 1 if above a limit
    Check(CheckArgs),
    /// Advise which data to write with another placement identifier, from a drive's FDP events
    Advise(Box<AdviseArgs>),
    /// Inject, show or clear faults on a served drive
    Faults(FaultsArgs),
}

#[derive(Args)]
pub struct InspectArgs {
    /// Drive, file or log page to decode, given as tcp:ADDRESS:PORT, /dev/nvme0, /dev/ng0n1, the
    /// data file of a served drive, a device snapshot, or a raw log page (nvme get-log
    /// --raw-binary)
    pub target: String,
    /// Endurance group of the drive [default: 1]
    #[arg(long, value_name = "N")]
    pub endurance_group: Option<u16>,
    #[command(flatten)]
    pub host: HostCredentials,
    /// Log page identifier of a raw file (20h to 23h)
    #[arg(long, value_name = "LID", value_parser = log_identifier)]
    pub log: Option<u8>,
    /// Check the data file of a drive with checksums that is not being served, exit code 1 if a
    /// page is damaged
    #[arg(long, conflicts_with = "log")]
    pub scrub: bool,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
#[command(group = ArgGroup::new("owner map").required(true).args(["owners", "files", "chunks"]))]
pub struct AdviseArgs {
    /// Served drive (tcp:ADDRESS:PORT) or namespace of this machine, such as /dev/ng0n1 or
    /// /dev/nvme0n1
    pub target: String,
    /// Read the owners of the data from a file with lines OWNER,START_BYTES,BYTES[,PLACEMENT]
    #[arg(long, value_name = "FILE")]
    pub owners: Option<PathBuf>,
    /// Use the files below this directory as owners (its file system must be on the namespace)
    #[arg(long, value_name = "DIRECTORY")]
    pub files: Option<PathBuf>,
    /// With --files, use the first N components of a path as the owner instead of the whole path
    #[arg(long, value_name = "N", requires = "files", conflicts_with_all = ["owners", "chunks"], value_parser = clap::value_parser!(u64).range(1..))]
    pub depth: Option<u64>,
    /// Split the namespace into N equal owners
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub chunks: Option<u64>,
    /// Seconds between readings
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = |text: &str| seconds_in(0.01..=86_400.0, text, "give 0.01 to 86400 seconds"))]
    pub every: Duration,
    /// Number of readings [default: until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub readings: Option<u64>,
    /// Placement policy (reported, lifetimes, or observe, which never moves data)
    #[arg(long, default_value = "lifetimes")]
    pub policy: PolicyName,
    /// Shell command that carries out a move, with WARP_OWNER, WARP_FROM, WARP_TO, WARP_REASON and
    /// WARP_EXPECTED_SAVING_BYTES in its environment
    #[arg(long, value_name = "COMMAND")]
    pub hook: Option<String>,
    /// Ignore events that are already in the log
    #[arg(long)]
    pub from_now: bool,
    /// Write a line of JSON for each reading to this file (- for standard output, which replaces
    /// the tables)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub output: PrintedFormat,
    /// Namespace identifier [default: the namespace of the device, 1 over NVMe/TCP]
    #[arg(long, value_name = "NSID", value_parser = clap::value_parser!(u32).range(1..))]
    pub namespace: Option<u32>,
    /// Endurance group of the namespace [default: the namespace's]
    #[arg(long)]
    pub endurance_group: Option<u16>,
    #[command(flatten)]
    pub host: HostCredentials,
}

fn log_identifier(text: &str) -> Result<u8, String> {
    let digits = text.trim_start_matches("0x").trim_end_matches(['h', 'H']);
    let is_hexadecimal = text.starts_with("0x") || text.ends_with(['h', 'H']);
    let value = u8::from_str_radix(digits, if is_hexadecimal { 16 } else { 10 });
    value.map_err(|_| "give a log page identifier such as 0x23".to_string())
}

#[derive(Args)]
#[command(group = ArgGroup::new("limit").required(true).multiple(true).args(["waf_at_most", "handle"]))]
pub struct CheckArgs {
    /// Served drive (tcp:ADDRESS:PORT), drive of this machine (/dev/nvme0), data file of a stopped
    /// server, or device snapshot
    pub target: String,
    /// Maximum write amplification of the drive since its creation
    #[arg(long, value_name = "WAF", value_parser = amplification, allow_negative_numbers = true)]
    pub waf_at_most: Option<f64>,
    /// Maximum write amplification of a reclaim unit handle, such as 2:1.02 (repeatable, data files
    /// and snapshots only)
    #[arg(long, value_name = "RUH:WAF", value_parser = of_handle)]
    pub handle: Vec<HandleLimit>,
    /// Endurance group of the drive [default: 1]
    #[arg(long, value_name = "N")]
    pub endurance_group: Option<u16>,
    #[command(flatten)]
    pub host: HostCredentials,
}

#[derive(Clone, Copy)]
pub struct HandleLimit {
    pub handle: u16,
    pub at_most: f64,
}

fn amplification(text: &str) -> Result<f64, String> {
    number_in(1.0..=1000.0, text, "give 1 or more, such as 1.1")
}

fn of_handle(text: &str) -> Result<HandleLimit, String> {
    let parsed = text.split_once(':').and_then(|(handle, at_most)| {
        Some(HandleLimit { handle: handle.parse().ok()?, at_most: amplification(at_most).ok()? })
    });
    parsed.ok_or_else(|| "give a handle and 1 or more, such as 2:1.02".to_string())
}

#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true).args(["file", "clear", "show"]))]
pub struct FaultsArgs {
    /// Address and port of the server's --metrics
    #[arg(value_name = "ADDRESS:PORT")]
    pub address: SocketAddr,
    /// TOML file of faults to inject from now on, which replaces the previous plan
    pub file: Option<PathBuf>,
    /// File with the token of the server (--metrics-token)
    #[arg(long, value_name = "FILE")]
    pub token: PathBuf,
    /// Clear all faults
    #[arg(long)]
    pub clear: bool,
    /// Show the planned faults and the number of times each occurred
    #[arg(long)]
    pub show: bool,
}

#[derive(Args)]
pub struct WatchArgs {
    /// Drive, given as tcp:ADDRESS:PORT, /dev/nvme0n1 or /dev/ng0n1
    pub target: String,
    /// Time between readings, such as 10s, 5m or 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub every: Duration,
    /// Number of readings after the first [default: until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub readings: Option<u64>,
    /// Write all readings to this Parquet file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the last reading to this file for the textfile collector of Prometheus
    #[arg(long, value_name = "FILE.prom")]
    pub prometheus: Option<PathBuf>,
    /// Print a line of JSON for each reading, and all words to standard error
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub host: HostCredentials,
}

#[derive(Args)]
pub struct CharacterizeArgs {
    /// Drive to measure (tcp:ADDRESS:PORT, or /dev/nvme0n1 of this machine with --overwrite), or
    /// the folder of an earlier characterization to fit again
    pub target: String,
    /// Confirm that all data on the namespace may be destroyed
    #[arg(long)]
    pub overwrite: bool,
    /// Folder of the results. An unfinished characterization in it continues [default:
    /// out/characterize-MODEL-SERIAL]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Time after which no probe begins, such as 8h, 90m or 600s. The plan leaves out the least
    /// important probes, and keeps three at least
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,
    /// Print the plan and write nothing to the drive
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before a plan that uses more than 1 % of the drive's life
    #[arg(long)]
    pub yes: bool,
    /// Rated life of the drive in drive writes [default: one a day for five years]
    #[arg(long, value_name = "N", default_value_t = 1825.0, hide_default_value = true, value_parser = |text: &str| number_in(1.0..=1e9, text, "give a number from 1 to 1000000000"))]
    pub rated_drive_writes: f64,
    /// Maximum drive writes of a probe until it is steady
    #[arg(long, value_name = "N", default_value_t = characterize::plan::DRIVE_WRITES_MAX, value_parser = |text: &str| number_in(1.25..=100.0, text, "give a number from 1.25 to 100"))]
    pub drive_writes: f64,
    /// Seconds of each load that measures a rate or a latency
    #[arg(long, value_name = "SECONDS", default_value_t = characterize::plan::LOAD_SECONDS, value_parser = |text: &str| number_in(0.01..=600.0, text, "give 0.01 to 600 seconds"))]
    pub load_seconds: f64,
    /// Use no counter of the drive, because it is wrong. The host's rates then give relative write
    /// amplifications
    #[arg(long)]
    pub without_counters: bool,
    /// Measure only. `warp characterize FOLDER` fits the profile later
    #[arg(long)]
    pub no_fit: bool,
    #[command(flatten)]
    pub host: HostCredentials,
    #[command(flatten)]
    pub output: PrintedFormat,
    /// Arguments of the fit, after --
    #[arg(last = true, value_name = "FIT-ARGUMENTS")]
    pub fit_arguments: Vec<String>,
}

/// Parses a time with a unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = [("h", 3600.0), ("m", 60.0), ("s", 1.0)].into_iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * seconds)
    });
    let seconds = seconds.filter(|seconds| (1.0..=1e9).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "give a time of one second or more, such as 8h, 90m or 600s".to_string())
}

#[derive(Args)]
#[command(mut_arg("host_nqn", |argument| argument.requires("drive")))]
pub struct RemoteTargetArgs {
    /// Run a job file, workload or block trace on this drive instead of a model and overwrite its
    /// data (tcp:ADDRESS:PORT, or /dev/nvme0n1 of this machine with --overwrite)
    #[arg(id = "drive", long = "target", value_name = "DRIVE", conflicts_with_all = ["device", "capacity", "scale", "precondition", "seconds", "uncertainty",
        "steady_state", "variant", "single_file", "out", "events", "series", "untimed", "replay", "speed", "queue_depth", "fio_json", "feedback", "array", "handles", "load_snapshot", "save_snapshot"])]
    pub drive: Option<String>,
    /// With --target /dev/..., confirm that all data on the namespace may be destroyed
    #[arg(long, requires = "drive")]
    pub overwrite: bool,
    #[command(flatten)]
    pub host: HostCredentials,
}

/// Host credentials for a drive on NVMe/TCP.
#[derive(Args)]
pub struct HostCredentials {
    /// Host NQN for NVMe/TCP
    #[arg(long, value_name = "NQN")]
    pub host_nqn: Option<String>,
    /// DH-HMAC-CHAP secret of the host, if the drive requires authentication
    #[arg(long, value_name = "DHHC-1:...", requires = "host_nqn")]
    pub secret: Option<String>,
}
