//! Command lines of `warp list` and `warp new`.

use clap::{Args, Subcommand, ValueEnum};
use report::catalogue::EntryKind;

use super::OutputFormat;

#[derive(Args)]
pub struct ListArgs {
    /// Kind to list [default: all]
    pub what: Option<ListKind>,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// Kinds that `warp list` lists.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListKind {
    /// Figures and tables of the papers, and your own studies in this folder
    Experiments,
    /// Device profiles
    Devices,
    /// fio job files
    Jobs,
    /// Models of caches, file systems and databases
    Workloads,
}

impl ListKind {
    pub fn kind(self) -> EntryKind {
        match self {
            ListKind::Experiments => EntryKind::Experiments,
            ListKind::Devices => EntryKind::Devices,
            ListKind::Jobs => EntryKind::Jobs,
            ListKind::Workloads => EntryKind::Workloads,
        }
    }
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
