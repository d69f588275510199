//! Options for the output format of results.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use report::rows::TextFormat;

/// Output format of a result.
#[derive(Args, Default)]
pub struct OutputFormat {
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Table format [default: table on a terminal, plain for other outputs]
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    format: Option<TableFormat>,
}

/// Output format of a command without `--json`, or with another meaning of it.
#[derive(Args, Default)]
pub struct PrintedFormat {
    /// Table format [default: table on a terminal, plain for other outputs]
    #[arg(long, value_name = "FORMAT")]
    format: Option<TableFormat>,
}

impl PrintedFormat {
    /// Returns true if the output is JSON.
    pub fn is_json(&self) -> bool {
        self.format == Some(TableFormat::Json)
    }

    /// Table format for this output.
    pub fn tables(&self, to: &impl IsTerminal) -> TextFormat {
        tables(self.format, to)
    }
}

/// Values of `--format`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableFormat {
    /// Columns with lines between the cells
    Table,
    /// Columns without lines
    Plain,
    /// Comma-separated values, with units in the headings
    Csv,
    /// Markdown tables
    Markdown,
    /// JSON, like --json
    Json,
}

impl OutputFormat {
    /// Returns true if standard output is one JSON document.
    pub fn is_json(&self) -> bool {
        self.json || self.format == Some(TableFormat::Json)
    }

    /// Table format for standard output.
    pub fn tables(&self) -> TextFormat {
        tables(self.format, &std::io::stdout())
    }
}

/// Table format for this output.
fn tables(format: Option<TableFormat>, to: &impl IsTerminal) -> TextFormat {
    match format {
        Some(TableFormat::Csv) => TextFormat::Csv,
        Some(TableFormat::Markdown) => TextFormat::Markdown,
        Some(TableFormat::Plain) => TextFormat::Plain,
        None if !to.is_terminal() => TextFormat::Plain,
        Some(TableFormat::Table | TableFormat::Json) | None => TextFormat::Lines,
    }
}
