//! Commands about what there is to run.

use clap::{Args, Subcommand, ValueEnum};
use report::catalogue::Kind;

use super::OutputFormat;

#[derive(Args)]
pub struct List {
    /// What to list [default: everything]
    pub what: Option<Listed>,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// What `warp list` lists.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// The papers' figures and tables, and studies of one's own in this folder
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

/// What `warp new` writes.
#[derive(Subcommand)]
pub enum NewThing {
    /// A folder with a commented experiment that runs as it is
    Experiment {
        /// Name or path of the folder; there must be nothing of that name
        name: String,
    },
}
