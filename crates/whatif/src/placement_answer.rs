//! A row of the answer's table: the results of one placement.

use serde::Serialize;

use super::economics::DriveLife;
use super::placements::Knowledge;

/// Results of one placement.
#[derive(Clone, Debug, Serialize)]
pub struct PlacementAnswer {
    pub name: String,
    #[serde(skip)]
    pub(super) phrase: String,
    pub knowledge: Knowledge,
    /// Write amplification over the measured window, which the notes name.
    pub write_amplification: f64,
    /// Interval of the write amplification over the device's ensemble: low, high.
    pub interval: Option<[f64; 2]>,
    pub cumulative_write_amplification: f64,
    /// Relative change of the programmed bytes against no placement (-0.2 is 20 % less).
    pub change: f64,
    /// Minimum and maximum of `change` over the device's ensemble.
    pub change_interval: Option<[f64; 2]>,
    /// Relative difference of the last two full drive writes. 0 if they agree.
    pub end_difference: f64,
    /// True if the number measures the placement. The drive had room for all open reclaim units,
    /// and garbage collection ran.
    pub is_comparable: bool,
    /// True if tables mark the number as doubtful.
    pub is_doubtful: bool,
    /// Reclaim unit handles that it wrote through.
    pub handles: usize,
    /// Life of the drive. `None` if its profile does not give the endurance of the flash.
    pub life: Option<DriveLife>,
    /// Minimum and maximum of the years, at the ends of `interval`.
    pub years_interval: Option<[f64; 2]>,
    /// Names of the warnings that make the number doubtful.
    pub warnings: Vec<String>,
}
