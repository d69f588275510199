//! Classification by update frequency, which groups units with similar write counts.
//!
//! A unit counts its writes. Counts halve whenever the host has written `half_life_percent` of the
//! drive's capacity. A write is placed by its unit's previous count, compared with the mean over
//! all units ever written. With n placement indices, the boundaries are the mean times 2^(n-2),
//! 2^(n-4), ..., 2^-(n-2). A class thus holds counts within a factor of four. With two indices the
//! boundary is the mean. Units without a count, because they are new or were not written for a long
//! time, go to the last index.
//!
//! This is the idea of the temperature-based schemes that SepBIT is compared with (DAC, SFR and
//! more), with one rule in place of their various rules.
//!
//! Memory is 4 bytes per unit, of which 12 bits hold the time of the last halving. They wrap after
//! 4096 half lives. A unit last written exactly or slightly more than 4096 half lives ago appears
//! just written, once.

use serde::{Deserialize, Serialize};

use super::{Classifier, placement_count, units};
use crate::{PlacementIndex, WorkloadError, WorkloadMeasure, WorkloadTarget, within};

/// Settings of `kind = "update_frequency"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateFrequencySettings {
    /// Placement indices to use. Default is all of the drive.
    pub placement_count: Option<u16>,
    /// Writes after which counts halve, percent of the drive's capacity. The default of 100 is
    /// about the amount that a drive writes before it reclaims the space.
    pub half_life_percent: f64,
}

impl Default for UpdateFrequencySettings {
    fn default() -> UpdateFrequencySettings {
        UpdateFrequencySettings { placement_count: None, half_life_percent: 100.0 }
    }
}

impl UpdateFrequencySettings {
    pub(super) fn classifier(&self, target: &WorkloadTarget) -> Result<UpdateFrequency, WorkloadError> {
        let percent = self.half_life_percent;
        within("classifier.half_life_percent", percent, 0.01..=100_000.0)?;
        let count = placement_count(self.placement_count, target)?;
        let half_life = (units(target) as f64 * percent / 100.0) as u64;
        Ok(UpdateFrequency::new(units(target), count, half_life.max(1)))
    }
}

/// Amount that a write adds to a count. Halving leaves fractions of it.
const WRITE: u32 = 1 << 6;
/// Bits of a count, and the largest count, 16384 writes in about a half life.
const COUNT_BITS: u32 = 20;
const COUNT_MAX: u32 = (1 << COUNT_BITS) - 1;
/// Number of half lives that can be distinguished.
const PERIODS: u32 = 1 << (32 - COUNT_BITS);

/// Counts writes of each unit.
pub struct UpdateFrequency {
    /// Count, with the half life of its last update in the upper bits.
    counts: Vec<u32>,
    placement_count: u16,
    half_life: u64,
    /// Half lives so far, and units written in the current one.
    period: u32,
    written: u64,
    /// Sum of all counts, and number of units ever written.
    sum: u64,
    known: u64,
}

impl UpdateFrequency {
    /// Creates the classifier for a drive of `units` units. Counts halve every `half_life` units
    /// written.
    pub fn new(units: usize, placement_count: u16, half_life: u64) -> UpdateFrequency {
        assert!(half_life > 0 && placement_count > 0, "both are checked with the settings");
        UpdateFrequency { counts: vec![0; units], placement_count, half_life, period: 0, written: 0, sum: 0, known: 0 }
    }

    /// Current count of a unit.
    fn count(&self, entry: u32) -> u32 {
        let age = self.period.wrapping_sub(entry >> COUNT_BITS) % PERIODS;
        (entry & COUNT_MAX).checked_shr(age).unwrap_or(0)
    }

    /// Placement index of a count, 0 for the highest.
    fn place(&self, count: u32) -> PlacementIndex {
        // count > mean * 2^exponent in whole numbers, with both sides multiplied by the number of
        // units.
        let total = u128::from(count) * u128::from(self.known);
        let sum = u128::from(self.sum);
        let is_above = |exponent: i32| match exponent {
            0.. => total > sum << exponent.min(60),
            _ => total << (-exponent).min(60) > sum,
        };
        let n = i32::from(self.placement_count);
        let class = (1..n).find(|class| is_above(n - 2 * class));
        PlacementIndex(class.map_or(self.placement_count - 1, |class| (class - 1) as u16))
    }

    fn pass(&mut self) {
        self.written += 1;
        if self.written == self.half_life {
            self.written = 0;
            self.period = (self.period + 1) % PERIODS;
            self.sum /= 2;
        }
    }
}

impl Classifier for UpdateFrequency {
    fn prefetch(&self, unit: u64) {
        prefetch::prefetch(&self.counts, unit as usize);
    }

    fn handle(&mut self, unit: u64) -> Option<PlacementIndex> {
        let entry = self.counts[unit as usize];
        let before = self.count(entry);
        let index = self.place(before);
        let after = (before + WRITE).min(COUNT_MAX);
        self.sum += u64::from(after - before);
        self.known += u64::from(entry == 0);
        self.counts[unit as usize] = self.period << COUNT_BITS | after;
        self.pass();
        Some(index)
    }

    fn trim(&mut self, unit: u64) {
        let entry = std::mem::take(&mut self.counts[unit as usize]);
        // Halving the sum and halving the counts round differently.
        self.sum = self.sum.saturating_sub(self.count(entry).into());
        self.known -= u64::from(entry != 0);
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let mean = self.sum as f64 / f64::from(WRITE) / self.known.max(1) as f64;
        vec![WorkloadMeasure::new("classifier.mean_count", mean)]
    }
}
