//! Changes to a cell: what a variant, a grid value, a member of an ensemble or a caller has different.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::feedback;
use crate::overrides::Overrides;
use crate::workloads::WorkloadChoice;

/// A change to a cell.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Device settings by dotted path.
    #[serde(default)]
    pub device: Overrides,
    /// fio options by job section; the section `global` means all jobs.
    #[serde(default)]
    pub jobs: BTreeMap<String, toml::Table>,
    /// Another workload.
    #[serde(default)]
    pub workload: Option<WorkloadChoice>,
    /// Settings of a workload with a `kind`, by dotted path.
    #[serde(default)]
    pub settings: Overrides,
    /// Another prefill, in multiples of the capacity.
    #[serde(default)]
    pub prefill_capacities: Option<f64>,
    /// Bytes for the host to write, as a share of what the run says, above 0 and at most 1: cells that write different
    /// amounts in the same time.
    #[serde(default)]
    pub write_share: Option<f64>,
    /// Somebody who listens to what the drive reports and moves data accordingly.
    #[serde(default)]
    pub feedback: Option<feedback::Settings>,
}
