//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use lab::twin::Scale;

/// An open, programmable SSD with NVMe Flexible Data Placement.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an experiment, or a fio job file on a device
    Run(Run),
    /// Run experiments and compare them with the papers; exit code 1 if a claim does not hold
    Reproduce(Reproduce),
    /// List device profiles, or the values of one with their sources
    Devices(Devices),
    /// List job files, or what one would do; or all fio options that are understood
    Jobs(Jobs),
    /// Say what a device profile means: geometry, reclaim units, spare, memory
    Explain(Explain),
    /// Measure the model against the machine's memory
    Bench(Bench),
}

#[derive(Args)]
pub struct Run {
    /// Experiment (a folder of experiments/) or job file (a name in jobs/, or a path ending in .fio)
    pub target: String,
    /// Device profile to run a job file on, or to restrict an experiment to
    #[arg(long)]
    pub device: Option<String>,
    #[command(flatten)]
    pub settings: Settings,
    /// Where to write report.html; default is out/TARGET
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Write a row for each garbage collection to this Parquet file
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Write the time series to this Parquet file
    #[arg(long, value_name = "FILE")]
    pub series: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print the counters of every reclaim unit handle
    #[arg(long)]
    pub handles: bool,
    /// Start a job file from this snapshot of a device instead of an empty one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["device", "scale", "seed", "set"])]
    pub from: Option<PathBuf>,
    /// Save the device to this snapshot after a job file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

#[derive(Args)]
pub struct Settings {
    /// Run on a twin of the drive, 1/N of its size [default: the experiment's; 1/1 for a job file]
    #[arg(long, value_name = "1/N")]
    pub scale: Option<Scale>,
    /// Bytes for the host to write, in multiples of the capacity [default: the experiment's; what the jobs say]
    #[arg(long, value_name = "CAPACITIES")]
    pub write: Option<f64>,
    /// Seed of device and jobs [default: the experiment's]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Change a setting of the device, e.g. --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
}

#[derive(Args)]
pub struct Reproduce {
    /// Experiments; all of them if none is named
    pub experiments: Vec<String>,
    /// Run the quick forms and compare them with their golden results instead of the papers
    #[arg(long)]
    pub quick: bool,
    /// With --quick: take the results as golden from now on
    #[arg(long, requires = "quick")]
    pub bless: bool,
    #[command(flatten)]
    pub settings: Settings,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Devices {
    /// Profile to show
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Jobs {
    /// Job file to show
    pub name: Option<String>,
    /// Device to show it on
    #[arg(long, default_value = "warp_default")]
    pub device: String,
    /// List every fio option that is understood, with what it does here
    #[arg(long, conflicts_with = "name")]
    pub options: bool,
}

#[derive(Args)]
pub struct Explain {
    /// Device profile
    pub device: String,
    /// Change a setting, e.g. --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Explain the twin of this scale
    #[arg(long, value_name = "1/N", default_value = "1/1")]
    pub scale: Scale,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Bench {
    /// Capacity of the device, GiB
    #[arg(long, default_value_t = 64)]
    pub capacity_gib: u64,
    /// Rounds of a quarter of a drive-write each
    #[arg(long, default_value_t = 7)]
    pub rounds: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
