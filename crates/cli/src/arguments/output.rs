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

/// What is printed by a command whose `--json` is something else, or that it does not have.
#[derive(Args, Default)]
pub struct PrintedFormat {
    /// How to print tables [default: table on a terminal, plain elsewhere]
    #[arg(long, value_name = "FORMAT")]
    format: Option<TableFormat>,
}

impl PrintedFormat {
    /// Whether JSON is printed.
    pub fn is_json(&self) -> bool {
        self.format == Some(TableFormat::Json)
    }

    /// How tables are written where they go.
    pub fn tables(&self, to: &impl IsTerminal) -> TextFormat {
        tables(self.format, to)
    }
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
        tables(self.format, &std::io::stdout())
    }
}

/// How tables are written where they go.
fn tables(format: Option<TableFormat>, to: &impl IsTerminal) -> TextFormat {
    match format {
        Some(TableFormat::Csv) => TextFormat::Csv,
        Some(TableFormat::Markdown) => TextFormat::Markdown,
        Some(TableFormat::Plain) => TextFormat::Plain,
        None if !to.is_terminal() => TextFormat::Plain,
        Some(TableFormat::Table | TableFormat::Json) | None => TextFormat::Lines,
    }
}
