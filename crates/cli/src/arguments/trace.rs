//! Option for the columns of a trace.

use clap::Args;
use experiment::{LabError, SettingOverrides, workloads};
use toml::Value;
use workload::trace::ColumnList;

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
    ///
    /// # Errors
    /// Columns are given for a workload that is not a trace.
    pub fn overrides(&self, workload: &str, set: &[(String, Value)]) -> Result<SettingOverrides, LabError> {
        let mut overrides: SettingOverrides = set.iter().cloned().collect();
        if let Some(columns) = &self.columns {
            workloads::check_columns(workload)?;
            overrides.insert("workload.columns".to_string(), columns.to_string().into());
        }
        Ok(overrides)
    }

    /// Combines the settings with the columns for several workloads. Only traces take the columns.
    ///
    /// # Errors
    /// Columns are given and no workload is a trace.
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
