//! The row of an answer: what one placement comes to.

use serde::Serialize;

use super::economics::Life;
use super::placements::Knowledge;

/// What a placement comes to.
#[derive(Clone, Debug, Serialize)]
pub struct PlacementAnswer {
    pub name: String,
    /// As part of a sentence: "separating by process".
    #[serde(skip)]
    pub(super) phrase: String,
    /// What it has to know.
    pub knowledge: Knowledge,
    /// At the end, over the window that the notes name.
    pub write_amplification: f64,
    /// What the device's ensemble says of it.
    pub interval: Option<[f64; 2]>,
    /// Over the whole run.
    pub cumulative_write_amplification: f64,
    /// Bytes programmed compared with no placement, as a share less one.
    pub change: f64,
    /// The same on the device's ensemble: least and greatest.
    pub change_interval: Option<[f64; 2]>,
    /// How far its last two drive-writes are apart, as a share, where they are not settled.
    pub unsettled: f64,
    /// Whether it is the placement's: the drive had room for what is open on it, and collected.
    pub is_comparable: bool,
    /// Whether its number is marked as doubtful in tables.
    pub is_doubtful: bool,
    /// Reclaim unit handles that it wrote through.
    pub handles: usize,
    /// What the drive lasts; none if its profile does not say what the flash survives.
    pub life: Option<Life>,
    /// Years at the ends of `interval`: least and greatest; none without one.
    pub years_interval: Option<[f64; 2]>,
    /// Names of what makes it doubtful.
    pub findings: Vec<String>,
}
