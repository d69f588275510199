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

    /// The same for each of several workloads; only traces have columns.
    ///
    /// # Errors
    /// There are columns, and none of the workloads is a trace.
    pub fn overrides_of_traces(
        &self,
        workloads: &[&String],
        set: &[(String, Value)],
    ) -> Result<Vec<Overrides>, LabError> {
        let of_each: Vec<Result<Overrides, LabError>> =
            workloads.iter().map(|workload| self.overrides(workload, set)).collect();
        if of_each.iter().all(Result::is_err) {
            return of_each.into_iter().collect();
        }
        let without = || set.iter().cloned().collect();
        Ok(of_each
            .into_iter()
            .map(|overrides| overrides.unwrap_or_else(|_| without()))
            .collect())
    }
}
