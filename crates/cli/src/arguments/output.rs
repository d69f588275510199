//! How results are printed.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use report::rows::TextFormat;

/// What is printed of a result.
#[derive(Args, Default)]
pub struct OutputFormat {
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// How to print tables [default: table on a terminal, plain elsewhere]
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    format: Option<TableFormat>,
}

/// Values of `--format`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableFormat {
    /// With lines between the cells
    Table,
    /// Columns without lines
    Plain,
    /// Comma-separated values, with units in the heads
    Csv,
    /// Markdown
    Markdown,
    /// As --json
    Json,
}

impl OutputFormat {
    /// Whether standard output is one JSON document.
    pub fn is_json(&self) -> bool {
        self.json || self.format == Some(TableFormat::Json)
    }

    /// How tables are written.
    pub fn tables(&self) -> TextFormat {
        match self.format {
            Some(TableFormat::Csv) => TextFormat::Csv,
            Some(TableFormat::Markdown) => TextFormat::Markdown,
            Some(TableFormat::Plain) => TextFormat::Plain,
            None if !std::io::stdout().is_terminal() => TextFormat::Plain,
            Some(TableFormat::Table | TableFormat::Json) | None => TextFormat::Lines,
        }
    }
}
