//! Command lines of `warp list` and `warp new`.

use clap::{Args, Subcommand};
use report::catalogue::EntryKind;

use super::OutputFormat;

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
