//! Command lines of `warp show`.

use base::size::parse_capacity;
use clap::{Args, Subcommand};
use experiment::scaled_model::Scale;
use toml::Value;

use super::{OutputFormat, assignment};

#[derive(Args)]
pub struct ShowArgs {
    #[command(subcommand)]
    pub command: ShowCommand,
}

#[derive(Subcommand)]
pub enum ShowCommand {
    /// Show a device profile: geometry, reclaim units, memory, and the source of every value
    Device(ShowDevice),
    /// Show the requests of a job file as it runs on a device
    Job(ShowJob),
    /// Print the file of a workload, as a start for your own
    Workload(ShowText),
    /// Print the file of an experiment, as a start for your own
    Experiment(ShowText),
    /// List the supported fio options with their effect (Markdown if piped)
    FioOptions,
}

#[derive(Args)]
pub struct ShowDevice {
    /// Device profile (a name in devices/ or a path)
    pub name: String,
    /// Change a setting, such as --set geometry.over_provisioning=0.2
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    /// Change the capacity of the device, such as 480GB
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity, conflicts_with = "scale")]
    pub capacity: Option<u64>,
    /// Show a scaled model, 1/N of the drive
    #[arg(long, value_name = "1/N", default_value = "1/1")]
    pub scale: Scale,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct ShowJob {
    /// Job file (a name in jobs/ or a path)
    pub name: String,
    /// Device profile to show the job file on
    #[arg(long, default_value = "warp_default")]
    pub device: String,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct ShowText {
    /// Name, as `warp list` prints it, or a path
    pub name: String,
}
