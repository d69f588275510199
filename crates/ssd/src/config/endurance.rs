//! Endurance of the flash: rated erases, their spread and the warranty period.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

/// Number of erases that the flash survives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnduranceConfig {
    /// Average number of erases that a block survives.
    pub rated_erases: u32,
    /// Standard deviation of the survived erases, as a share of `rated_erases`.
    #[serde(default)]
    pub spread: f64,
    /// Warranty in years, the period of the drive writes per day (DWPD) figure.
    #[serde(default = "default_warranty_years")]
    pub warranty_years: f64,
}

/// Warranty that data sheets commonly assume.
fn default_warranty_years() -> f64 {
    5.0
}

impl EnduranceConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.rated_erases == 0 {
            return Err(ConfigError::new("endurance.rated_erases", 0, "must be 1 or more"));
        }
        if !(0.0..=0.5).contains(&self.spread) {
            let allowed = "must be between 0 and 0.5 (a share of the rated erases)";
            return Err(ConfigError::new("endurance.spread", self.spread, allowed));
        }
        if !(self.warranty_years > 0.0 && self.warranty_years <= 100.0) {
            let allowed = "must be above 0 and at most 100";
            return Err(ConfigError::new("endurance.warranty_years", self.warranty_years, allowed));
        }
        Ok(())
    }
}
