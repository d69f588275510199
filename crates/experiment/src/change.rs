//! Changes to a cell by a variant, a grid value, an ensemble member or a caller.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::feedback;
use crate::workloads::WorkloadChoice;

/// Settings of a device or workload by dotted path. They override a profile or a file.
pub type SettingOverrides = toml::Table;

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunChange {
    pub device: SettingOverrides,
    /// fio options by job section. The section `global` means all jobs.
    pub jobs: BTreeMap<String, toml::Table>,
    pub workload: Option<WorkloadChoice>,
    /// Settings of a workload with a `kind`, by dotted path. For a job file: options as
    /// `SECTION.OPTION`.
    pub settings: SettingOverrides,
    /// Settings of an array of the devices ([`array::ArraySettings`]).
    pub array: SettingOverrides,
    /// Prefill in multiples of the capacity.
    pub precondition_drive_writes: Option<f64>,
    /// Host bytes as a share of the run's, above 0 and at most 1. With it, cells write different
    /// amounts in the same time.
    pub write_share: Option<f64>,
    /// Placement feedback: a policy that reads the drive's events and moves data accordingly.
    pub feedback: Option<feedback::FeedbackSettings>,
}

/// Path prefix of workload settings among those of the device.
const WORKLOAD: &str = "workload.";
/// Path prefix of settings of an array.
const ARRAY: &str = "array.";

/// Settings of an array in one line, such as `raid5,drives=4,chunk=128KiB`, by their paths. `event`
/// can occur several times.
///
/// # Errors
/// A part is not of the form NAME=VALUE, or a name occurs twice.
pub fn parse_array(text: &str) -> Result<SettingOverrides, String> {
    let mut settings = SettingOverrides::new();
    let mut events = Vec::new();
    for (index, part) in text.split(',').map(str::trim).enumerate() {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim(), value.trim()),
            None if index == 0 => ("level", part),
            None => {
                return Err(format!("{part:?} is not of the form NAME=VALUE. Give an array such as raid5,drives=4"));
            }
        };
        let number = value.parse::<i64>().map(Value::from).or_else(|_| value.parse::<f64>().map(Value::from));
        let value = number.or_else(|_| value.parse::<bool>().map(Value::from)).unwrap_or_else(|_| value.into());
        match name {
            "event" => events.push(value),
            name if settings.insert(format!("{ARRAY}{name}"), value).is_some() => {
                return Err(format!("{name} is given twice. Give it once (only event= can be repeated)"));
            }
            _ => {}
        }
    }
    if !events.is_empty() {
        settings.insert(format!("{ARRAY}events"), events.into());
    }
    Ok(settings)
}

impl RunChange {
    /// Change of settings by dotted path, as in `--set`. The prefix `workload.` selects the
    /// workload, `array.` the array, other paths the device.
    pub fn from_settings(settings: &SettingOverrides) -> RunChange {
        let mut change = RunChange::default();
        for (path, value) in settings {
            let (settings, path) = match (path.strip_prefix(WORKLOAD), path.strip_prefix(ARRAY)) {
                (Some(path), _) => (&mut change.settings, path),
                (None, Some(path)) => (&mut change.array, path),
                (None, None) => (&mut change.device, path.as_str()),
            };
            settings.insert(path.to_string(), value.clone());
        }
        change
    }

    /// Adds a later change, which wins.
    pub fn extend(&mut self, later: &RunChange) {
        self.device.extend(later.device.clone());
        for (section, options) in &later.jobs {
            self.jobs.entry(section.clone()).or_default().extend(options.clone());
        }
        self.settings.extend(later.settings.clone());
        self.array.extend(later.array.clone());
        self.workload = later.workload.clone().or(self.workload.take());
        self.precondition_drive_writes = later.precondition_drive_writes.or(self.precondition_drive_writes);
        self.write_share = later.write_share.or(self.write_share);
        self.feedback = later.feedback.clone().or(self.feedback.take());
    }

    /// Returns settings in the form that [`RunChange::from_settings`] reads.
    pub fn to_settings(&self) -> SettingOverrides {
        let with = |prefix: &'static str, settings: &SettingOverrides| {
            settings.clone().into_iter().map(move |(path, value)| (format!("{prefix}{path}"), value))
        };
        let others = with(WORKLOAD, &self.settings).chain(with(ARRAY, &self.array));
        self.device.clone().into_iter().chain(others).collect()
    }
}
