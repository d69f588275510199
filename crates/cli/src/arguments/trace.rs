//! What a command is told of a trace.

use clap::Args;
use experiment::LabError;
use experiment::profile::Overrides;
use experiment::workloads;
use toml::Value;
use workload::trace::ColumnList;

/// Columns of a trace whose format is not known.
#[derive(Args)]
pub struct TraceColumns {
    /// Columns of a CSV trace in their order, with units: time:us,op,offset:sectors,bytes:kib. A column that is not needed
    /// is -; volume, process, file and placement may be named too
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true)]
    pub columns: Option<ColumnList>,
}

impl TraceColumns {
    /// Settings from the command line with these columns of a workload.
    ///
    /// # Errors
    /// There are columns, and the workload is no trace.
    pub fn overrides(&self, workload: &str, set: &[(String, Value)]) -> Result<Overrides, LabError> {
        let mut overrides: Overrides = set.iter().cloned().collect();
        if let Some(columns) = &self.columns {
            workloads::check_columns(workload)?;
            overrides.insert("workload.columns".to_string(), columns.to_string().into());
        }
        Ok(overrides)
    }
}
