//! Command lines of `warp results`, `warp show`, `warp list` and `warp new`.

use std::path::PathBuf;

use base::size::parse_capacity;
use clap::{Args, Subcommand};
use experiment::scaled_model::Scale;
use report::catalogue::EntryKind;
use toml::Value;

use super::{OutputFormat, assignment};

/// Option that controls the storage of a run.
#[derive(Args)]
pub struct SaveRunArgs {
    /// Do not store the run for `warp results`
    #[arg(long)]
    pub no_keep: bool,
}

#[derive(Args)]
pub struct ResultsArgs {
    #[command(subcommand)]
    pub command: ResultsCommand,
}

#[derive(Subcommand)]
pub enum ResultsCommand {
    /// List stored runs, newest first
    List(ListResults),
    /// Show the settings, the engine and the results of a stored run
    Show(ShowResult),
    /// Compare two results and test if the differences are more than chance
    Compare(CompareArgs),
}

#[derive(Args)]
pub struct ListResults {
    /// Maximum number of runs to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct ShowResult {
    /// Short name of the run, or a prefix of it
    pub id: String,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct CompareArgs {
    /// Baseline, given as a stored run (`warp results list`), a file of `warp run --json` or `warp whatif
    /// --json`, fio's JSON (--output-format=json), or output of `nvme fdp stats` as text or JSON
    pub a: String,
    /// Result to compare with the baseline, given in the same way
    pub b: String,
    /// Write report.html to this folder
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputFormat,
}

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

#[derive(Args)]
pub struct ListArgs {
    /// Kind to list [default: all]
    pub what: Option<EntryKind>,
    #[command(flatten)]
    pub output: OutputFormat,
}

#[derive(Args)]
pub struct NewArgs {
    #[command(subcommand)]
    pub what: NewCommand,
}

/// Subcommands of `warp new`.
#[derive(Subcommand)]
pub enum NewCommand {
    /// Create a folder with a commented experiment that runs unchanged
    Experiment {
        /// Name or path of the folder, which must not exist
        name: String,
    },
}
