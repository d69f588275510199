//! Commands about what was run before.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputFormat;

/// Whether a run is kept.
#[derive(Args)]
pub struct Keep {
    /// Do not keep the run for `warp runs` and `warp compare`
    #[arg(long)]
    pub no_keep: bool,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    pub what: Option<RunsCommand>,
    /// Show this run, by its short name or how that begins, instead of the list
    pub id: Option<String>,
    /// Runs to list, at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// What to do with runs that were kept.
#[derive(Subcommand)]
pub enum RunsCommand {
    /// Show one: what was run, by which engine, and what came out
    Show {
        /// Its short name, or how that begins
        id: String,
        #[command(flatten)]
        output: OutputFormat,
    },
}

#[derive(Args)]
pub struct Compare {
    /// What to compare with: a run that was kept (`warp runs`), a file of `warp run --json` or `warp whatif --json`, fio's
    /// JSON (--output-format=json), or what `nvme fdp stats` printed, as text or JSON
    pub a: String,
    /// What to compare, likewise
    pub b: String,
    /// Write report.html to this folder
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputFormat,
}
