//! Command lines of `warp runs` and `warp compare`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputFormat;

/// Option that controls the storage of a run.
#[derive(Args)]
pub struct Keep {
    /// Do not store the run for `warp runs` and `warp compare`
    #[arg(long)]
    pub no_keep: bool,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    pub what: Option<RunsCommand>,
    /// Run to show instead of the list, by its short name or a prefix of it
    pub id: Option<String>,
    /// Maximum number of runs to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// Subcommands of `warp runs`.
#[derive(Subcommand)]
pub enum RunsCommand {
    /// Show the settings, the engine and the results of a run
    Show {
        /// Short name of the run, or a prefix of it
        id: String,
        #[command(flatten)]
        output: OutputFormat,
    },
}

#[derive(Args)]
pub struct Compare {
    /// Baseline, given as a stored run (`warp runs`), a file of `warp run --json` or `warp whatif
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
