//! Command lines of `warp drive`.

use std::path::PathBuf;
use std::time::Duration;

use advise::PolicyName;
use clap::{ArgGroup, Args, Subcommand};

use super::{CheckArgs, FaultsArgs, HostCredentials, OutputFormat, PrintedFormat};

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
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
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
