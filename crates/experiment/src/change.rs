//! Changes to a cell: what a variant, a grid value, a member of an ensemble or a caller has different.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::feedback;
use crate::workloads::WorkloadChoice;

/// Settings of a device or a workload by dotted path, which replace those of a profile or a file.
pub type Overrides = toml::Table;

/// A change to a cell.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// Device settings by dotted path.
    pub device: Overrides,
    /// fio options by job section; the section `global` means all jobs.
    pub jobs: BTreeMap<String, toml::Table>,
    pub workload: Option<WorkloadChoice>,
    /// Settings of a workload with a `kind`, by dotted path; of a job file, options as `SECTION.OPTION`.
    pub settings: Overrides,
    /// Another prefill, in multiples of the capacity.
    pub prefill_capacities: Option<f64>,
    /// Bytes for the host to write, as a share of what the run says, above 0 and at most 1: cells that write different
    /// amounts in the same time.
    pub write_share: Option<f64>,
    /// Placement feedback: a policy that reads the drive's events and moves data accordingly.
    pub feedback: Option<feedback::Settings>,
}

/// Path of settings of the workload among those of the device.
const WORKLOAD: &str = "workload.";

impl Change {
    /// Change of settings by dotted path, as `--set` gives them. Those behind `workload.` are of the workload, the others of the device.
    pub fn of_settings(settings: &Overrides) -> Change {
        let mut change = Change::default();
        for (path, value) in settings {
            let (settings, path) = match path.strip_prefix(WORKLOAD) {
                Some(path) => (&mut change.settings, path),
                None => (&mut change.device, path.as_str()),
            };
            settings.insert(path.to_string(), value.clone());
        }
        change
    }

    /// Adds a later change, which wins.
    pub fn extend(&mut self, later: &Change) {
        self.device.extend(later.device.clone());
        for (section, options) in &later.jobs {
            self.jobs.entry(section.clone()).or_default().extend(options.clone());
        }
        self.settings.extend(later.settings.clone());
        self.workload = later.workload.clone().or(self.workload.take());
        self.prefill_capacities = later.prefill_capacities.or(self.prefill_capacities);
        self.write_share = later.write_share.or(self.write_share);
        self.feedback = later.feedback.clone().or(self.feedback.take());
    }

    /// Settings of device and workload as [`Change::of_settings`] reads them.
    pub fn to_settings(&self) -> Overrides {
        let workload = self.settings.iter();
        let workload = workload.map(|(path, value)| (format!("{WORKLOAD}{path}"), value.clone()));
        self.device.clone().into_iter().chain(workload).collect()
    }
}
