//! Settings of placement feedback: which policy reads the drive's events, and how often.

use advise::PolicyName;
use serde::{Deserialize, Serialize};

/// `feedback` of a variant, a grid value or `change`: who listens, and how often.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What is done about the events.
    pub policy: PolicyName,
    /// Bytes that the host writes between two readings of the log, in multiples of the capacity.
    #[serde(default = "default_every_capacities")]
    pub every_capacities: f64,
    /// Bytes that the host writes before the first reading, in multiples of the capacity; as between two if left out.
    #[serde(default)]
    pub first_capacities: Option<f64>,
    /// Readings in all; no limit if left out.
    #[serde(default)]
    pub readings: Option<u32>,
}

fn default_every_capacities() -> f64 {
    0.25
}

impl Settings {
    /// A policy with everything else as it is if nothing is said.
    pub fn new(policy: PolicyName) -> Settings {
        Settings {
            policy,
            every_capacities: default_every_capacities(),
            first_capacities: None,
            readings: None,
        }
    }

    /// # Errors
    /// A number that makes no sense, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        let capacities = [Some(self.every_capacities), self.first_capacities];
        let sensible = |value: &f64| value.is_finite() && *value > 0.0 && *value <= 1000.0;
        if capacities.iter().flatten().all(sensible) {
            return Ok(());
        }
        Err("every_capacities and first_capacities are multiples of the capacity, above 0 and at most 1000".to_string())
    }
}
