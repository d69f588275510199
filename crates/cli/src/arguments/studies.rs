//! Command lines of `warp list` and `warp new`.

use clap::{Args, Subcommand, ValueEnum};
use report::catalogue::Kind;

use super::OutputFormat;

#[derive(Args)]
pub struct List {
    /// Kind to list [default: all]
    pub what: Option<Listed>,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// Kinds that `warp list` lists.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Figures and tables of the papers, and your own studies in this folder
    Experiments,
    /// Device profiles
    Devices,
    /// fio job files
    Jobs,
    /// Models of caches, file systems and databases
    Workloads,
}

impl Listed {
    pub fn kind(self) -> Kind {
        match self {
            Listed::Experiments => Kind::Experiments,
            Listed::Devices => Kind::Devices,
            Listed::Jobs => Kind::Jobs,
            Listed::Workloads => Kind::Workloads,
        }
    }
}

#[derive(Args)]
pub struct New {
    #[command(subcommand)]
    pub what: NewThing,
}

/// Subcommands of `warp new`.
#[derive(Subcommand)]
pub enum NewThing {
    /// Create a folder with a commented experiment that runs unchanged
    Experiment {
        /// Name or path of the folder, which must not exist
        name: String,
    },
}
