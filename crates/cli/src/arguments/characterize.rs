//! Options of `warp characterize`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{HostCredentials, PrintedFormat};

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
    #[arg(long, value_name = "N", default_value_t = 1825.0, hide_default_value = true, value_parser = positive)]
    pub rated_drive_writes: f64,
    /// Maximum drive writes of a probe until it is steady
    #[arg(long, value_name = "N", default_value_t = characterize::plan::DRIVE_WRITES_MAX, value_parser = drive_writes)]
    pub drive_writes: f64,
    /// Seconds of each load that measures a rate or a latency
    #[arg(long, value_name = "SECONDS", default_value_t = characterize::plan::LOAD_SECONDS, value_parser = load_seconds)]
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

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (1.0..=1e9).contains(number));
    number.ok_or_else(|| "give a number from 1 to 1000000000".to_string())
}

fn drive_writes(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (1.25..=100.0).contains(number));
    number.ok_or_else(|| "give a number from 1.25 to 100".to_string())
}

fn load_seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (0.01..=600.0).contains(number));
    number.ok_or_else(|| "give 0.01 to 600 seconds".to_string())
}
