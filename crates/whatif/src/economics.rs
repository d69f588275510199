//! Costs of write amplification: drive life, money, carbon.

use serde::{Deserialize, Serialize};

use experiment::LabError;

/// Bytes in a terabyte: 10^12, the unit in which drives are sold.
const TERABYTE: f64 = 1e12;
const DAYS_OF_YEAR: f64 = 365.0;

/// Costs of a drive. The profile gives the endurance of its flash.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factors {
    /// Dollars for a terabyte of capacity. Assumed: the order of enterprise TLC drives, 2025.
    pub dollars_per_terabyte: f64,
    /// Kilograms of CO2e embodied in a gigabyte of flash: 0.16 (Tannu and Nair, "The Dirty Secret
    /// of SSDs: Embodied Carbon", HotCarbon '22).
    pub embodied_kg_per_gigabyte: f64,
}

impl Default for Factors {
    fn default() -> Factors {
        Factors { dollars_per_terabyte: 100.0, embodied_kg_per_gigabyte: 0.16 }
    }
}

/// Refuses a number outside its bounds.
pub(crate) fn within(name: &str, value: f64, low: f64, high: f64) -> Result<(), LabError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(LabError::invalid(name, format!("{value} is out of range. Give a number between {low} and {high}")))
}

impl Factors {
    pub(super) fn check(&self) -> Result<(), LabError> {
        within("dollars (--dollars-per-tb)", self.dollars_per_terabyte, 0.0, 1e6)?;
        within("carbon (--carbon-per-gb)", self.embodied_kg_per_gigabyte, 0.0, 1e6)
    }
}

/// The host's write rate per day.
pub(super) struct WriteRate {
    /// Multiples of the capacity.
    pub(super) drive_writes_per_day: f64,
    /// True if the rate is a default, because neither the user nor the workload gives one.
    pub(super) is_assumed: bool,
    /// The rate as part of a sentence: "at your rate".
    pub(super) words: String,
    /// Source of the rate, in a sentence.
    pub(super) note: String,
}

/// The assumed rate in words.
pub(super) const ONE_A_DAY: &str = "one drive write a day";

impl WriteRate {
    pub(super) fn from_user(drive_writes_per_day: f64) -> WriteRate {
        let words = drive_writes_a_day(drive_writes_per_day);
        WriteRate {
            drive_writes_per_day,
            is_assumed: false,
            note: format!("Years assume {words}, the rate that you gave."),
            words,
        }
    }
}

/// A rate in words. Rates that would round to 0 read "less than 0.001".
pub(super) fn drive_writes_a_day(rate: f64) -> String {
    match rate {
        1.0 => ONE_A_DAY.to_string(),
        rate if rate < 0.001 => "less than 0.001 drive writes a day".to_string(),
        rate => format!("{rate:.3} drive writes a day"),
    }
}

/// Life and cost of a drive at a write amplification.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriveLife {
    /// Terabytes that the host can write until the flash reaches its rated erases.
    pub host_terabytes_written: f64,
    /// Drive writes per day (DWPD) over five years.
    pub drive_writes_per_day: f64,
    /// Years at the rate of the workload.
    pub years: f64,
    /// Price of the drive per terabyte that the host writes, dollars.
    pub dollars_per_terabyte_written: f64,
    /// Embodied carbon per terabyte that the host writes, kilograms of CO2e.
    pub carbon_kg_per_terabyte_written: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WearModel {
    pub(super) capacity_bytes: u64,
    pub(super) physical_bytes: u64,
    pub(super) rated_erases: u32,
    /// Multiples of its capacity that the host writes each day.
    pub(super) drive_writes_per_day: f64,
}

impl WearModel {
    /// Life and cost of the drive at this write amplification.
    pub(super) fn life(&self, write_amplification: f64, factors: &Factors) -> DriveLife {
        assert!(write_amplification > 0.0, "a host write programs at least one page");
        let capacity = self.capacity_bytes as f64 / TERABYTE;
        let flash = self.physical_bytes as f64 / TERABYTE;
        let written = f64::from(self.rated_erases) * flash / write_amplification;
        DriveLife {
            host_terabytes_written: written,
            drive_writes_per_day: written / capacity / (5.0 * DAYS_OF_YEAR),
            years: written / capacity / (self.drive_writes_per_day * DAYS_OF_YEAR),
            dollars_per_terabyte_written: factors.dollars_per_terabyte * capacity / written,
            carbon_kg_per_terabyte_written: factors.embodied_kg_per_gigabyte * 1000.0 * flash / written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_write_amplification_is_twice_the_life() {
        let wear = WearModel {
            capacity_bytes: 1_000_000_000_000,
            physical_bytes: 1_100_000_000_000,
            rated_erases: 3650,
            drive_writes_per_day: 2.0,
        };
        let [one, two] = [1.0, 2.0].map(|amplification| wear.life(amplification, &Factors::default()));
        let near = |one: f64, other: f64| assert!((one / other - 1.0).abs() < 1e-12, "{one}, not {other}");
        near(one.host_terabytes_written, 4015.0);
        near(one.drive_writes_per_day, 2.2);
        near(one.years, 5.5);
        near(one.years, 2.0 * two.years);
        // 100 dollars and 176 kg (spare flash too) for 4015 TB.
        near(one.dollars_per_terabyte_written, 100.0 / 4015.0);
        near(two.carbon_kg_per_terabyte_written, 2.0 * 176.0 / 4015.0);
    }
}
