//! How many erases the flash survives.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

/// What the flash survives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnduranceConfig {
    /// Erases that a block survives on average.
    pub rated_erases: u32,
    /// Standard deviation of that, as a share of it.
    #[serde(default)]
    pub spread: f64,
    /// Years over which drive-writes in a day are counted.
    #[serde(default = "default_warranty_years")]
    pub warranty_years: f64,
}

/// What data sheets count with.
fn default_warranty_years() -> f64 {
    5.0
}

impl EnduranceConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.rated_erases == 0 {
            return Err(ConfigError::new("endurance.rated_erases", 0, "must be 1 or more"));
        }
        if !(0.0..=0.5).contains(&self.spread) {
            let allowed = "must be between 0 and 0.5 of the rated erases";
            return Err(ConfigError::new("endurance.spread", self.spread, allowed));
        }
        if !(self.warranty_years > 0.0 && self.warranty_years <= 100.0) {
            let allowed = "must be above 0 and at most 100";
            return Err(ConfigError::new(
                "endurance.warranty_years",
                self.warranty_years,
                allowed,
            ));
        }
        Ok(())
    }
}
