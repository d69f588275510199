//! Placement-feedback settings: policy and poll interval.

use advise::PolicyName;
use serde::{Deserialize, Serialize};

/// `feedback` of a variant, a grid value or `change`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackSettings {
    pub policy: PolicyName,
    /// Host bytes between two polls of the log, in multiples of the capacity.
    #[serde(default = "default_every_capacities")]
    pub every_capacities: f64,
    /// Host bytes before the first poll, in multiples of the capacity. Default: `every_capacities`.
    pub first_capacities: Option<f64>,
    /// Total number of polls. Default: unlimited.
    pub readings: Option<u32>,
}

fn default_every_capacities() -> f64 {
    0.25
}

impl FeedbackSettings {
    pub fn new(policy: PolicyName) -> FeedbackSettings {
        FeedbackSettings {
            policy,
            every_capacities: default_every_capacities(),
            first_capacities: None,
            readings: None,
        }
    }

    /// # Errors
    /// A number makes no sense. The message is a sentence.
    pub fn check(&self) -> Result<(), String> {
        let capacities = [Some(self.every_capacities), self.first_capacities];
        let sensible = |value: &f64| value.is_finite() && *value > 0.0 && *value <= 1000.0;
        if capacities.iter().flatten().all(sensible) {
            return Ok(());
        }
        Err("every_capacities and first_capacities must be above 0 and at most 1000, in multiples of the capacity"
            .to_string())
    }
}
