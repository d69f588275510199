//! Options that several commands share: the output format of results and the columns of a trace.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use experiment::{LabError, SettingOverrides, workloads};
use report::rows::TextFormat;
use serde::Serialize;
use toml::Value;
use workload::trace::ColumnList;

use crate::{ExitOutcome, print};

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
    pub fn is_json(&self) -> bool {
        self.format == Some(TableFormat::Json)
    }

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
    pub fn is_json(&self) -> bool {
        self.json || self.format == Some(TableFormat::Json)
    }

    /// Table format for standard output.
    pub fn tables(&self) -> TextFormat {
        tables(self.format, &std::io::stdout())
    }

    /// Prints a result as JSON or as text.
    pub fn print(&self, value: &impl Serialize, text: impl FnOnce(TextFormat) -> String) -> ExitOutcome {
        print(&if self.is_json() {
            format!("{}\n", serde_json::to_string(value).expect("a result is JSON"))
        } else {
            text(self.tables())
        });
        ExitOutcome::Done
    }
}

fn tables(format: Option<TableFormat>, to: &impl IsTerminal) -> TextFormat {
    match format {
        Some(TableFormat::Csv) => TextFormat::Csv,
        Some(TableFormat::Markdown) => TextFormat::Markdown,
        Some(TableFormat::Plain) => TextFormat::Plain,
        None if !to.is_terminal() => TextFormat::Plain,
        Some(TableFormat::Table | TableFormat::Json) | None => TextFormat::Lines,
    }
}

/// Columns of a trace in an unknown format.
#[derive(Args)]
pub struct TraceColumns {
    /// Columns of a CSV trace in order, with units, such as time:us,op,offset:sectors,bytes:kib (-
    /// skips a column, and volume, process, file and placement are optional)
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true)]
    pub columns: Option<ColumnList>,
}

impl TraceColumns {
    /// Combines settings of the command line with the columns of a trace.
    pub fn overrides(&self, workload: &str, set: &[(String, Value)]) -> Result<SettingOverrides, LabError> {
        let mut overrides: SettingOverrides = set.iter().cloned().collect();
        if let Some(columns) = &self.columns {
            workloads::check_columns(workload)?;
            overrides.insert("workload.columns".to_string(), columns.to_string().into());
        }
        Ok(overrides)
    }

    /// Combines the settings with the columns for several workloads. Only traces take the columns.
    pub fn overrides_of_traces(
        &self,
        workloads: &[&String],
        set: &[(String, Value)],
    ) -> Result<Vec<SettingOverrides>, LabError> {
        let of_each: Vec<Result<SettingOverrides, LabError>> =
            workloads.iter().map(|workload| self.overrides(workload, set)).collect();
        if of_each.iter().all(Result::is_err) {
            return of_each.into_iter().collect();
        }
        let without = || set.iter().cloned().collect();
        Ok(of_each.into_iter().map(|overrides| overrides.unwrap_or_else(|_| without())).collect())
    }
}
