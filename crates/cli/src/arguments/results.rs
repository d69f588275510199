//! Command lines of `warp results`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputFormat;

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
