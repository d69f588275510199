//! Wear of a drive: used and remaining life, and worn-out blocks.
//!
//! The device counts erases. The number of erases that a block survives is a property of the flash
//! and differs slightly between blocks (normally distributed, seeded). Worn-out blocks are reported
//! but not retired, so the geometry of a run stays constant.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::Serialize;

use crate::cast::{to_f64, truncate32, wide};
use crate::config::EnduranceConfig;
use crate::layout::DeviceLayout;
use crate::stats::DeviceStats;

/// Separates the random numbers of the block limits from the device's other random numbers.
const SEED_OF_ENDURANCE: u64 = 0x0065_6e64_7572_6500;
/// Maximum erase count of a block, far above the endurance of any flash.
pub(crate) const ERASES_MAX: u32 = u32::MAX / 2;
const DAYS_OF_YEAR: f64 = 365.0;

impl EnduranceConfig {
    /// Average share of the rated erases that the blocks have used.
    pub(crate) fn life_used(&self, wear: &WearSummary) -> f64 {
        wear.mean_erases() / f64::from(self.rated_erases)
    }

    /// Number of erases that each block survives.
    fn limits(&self, seed: u64) -> impl Iterator<Item = u32> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ SEED_OF_ENDURANCE);
        let (mean, deviation) = (f64::from(self.rated_erases), self.spread * f64::from(self.rated_erases));
        // The sum of twelve uniform numbers has the variance of a standard normal one and is
        // bounded by six deviations.
        std::iter::repeat_with(move || {
            let normal: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
            truncate32((mean + deviation * normal).max(1.0))
        })
    }
}

/// Summary of the erase counts of a drive's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WearSummary {
    /// Number of blocks of the drive.
    pub blocks: u64,
    /// Total erases of all blocks.
    pub erases: u64,
    /// Erases of the least erased block.
    pub fewest_erases: u32,
    /// Erases of the most erased block.
    pub most_erases: u32,
}

impl WearSummary {
    /// Summarizes the erase counts of the blocks.
    ///
    /// # Panics
    /// There is no block.
    pub fn from_erases(block_erases: &[u32]) -> WearSummary {
        assert!(!block_erases.is_empty(), "a drive has blocks");
        // A single pass, because a large drive has millions of blocks and host commands call this
        // under the drive lock.
        let mut wear =
            WearSummary { blocks: wide(block_erases.len()), erases: 0, fewest_erases: u32::MAX, most_erases: 0 };
        for erases in block_erases {
            wear.erases += u64::from(*erases);
            wear.fewest_erases = wear.fewest_erases.min(*erases);
            wear.most_erases = wear.most_erases.max(*erases);
        }
        assert!(wear.fewest_erases <= wear.most_erases, "the least erased block has no more erases than the most");
        wear
    }

    /// Summary of the blocks of both.
    #[must_use]
    pub fn plus(self, other: WearSummary) -> WearSummary {
        WearSummary {
            blocks: self.blocks + other.blocks,
            erases: self.erases + other.erases,
            fewest_erases: self.fewest_erases.min(other.fewest_erases),
            most_erases: self.most_erases.max(other.most_erases),
        }
    }

    /// Average erases of a block.
    pub fn mean_erases(&self) -> f64 {
        to_f64(self.erases) / to_f64(self.blocks)
    }
}

/// Wear of a drive relative to its rated endurance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Endurance {
    /// Average share of the rated erases that the blocks have used. Above 1 once the drive exceeds
    /// its rating.
    pub life_used: f64,
    /// Share of the rated erases that the most erased block has used.
    pub most_worn: f64,
    /// Write amplification assumed by the byte and drive write figures.
    pub write_amplification: f64,
    /// Bytes that the host can write to a new drive at this write amplification.
    pub host_bytes_total: f64,
    /// Bytes that the host can still write.
    pub host_bytes_left: f64,
    /// Full drive writes per day (DWPD) that the drive sustains during its warranty.
    pub drive_writes_per_day: f64,
    /// Number of blocks that have reached their erase limit.
    pub worn_blocks: u64,
    /// Number of blocks of the drive.
    pub blocks: u64,
}

impl Endurance {
    pub(crate) fn new(
        config: &EnduranceConfig,
        seed: u64,
        layout: &DeviceLayout,
        stats: &DeviceStats,
        erases: &[u32],
    ) -> Endurance {
        let rated = f64::from(config.rated_erases);
        let wear = WearSummary::from_erases(erases);
        let blocks = wear.blocks;
        assert_eq!(blocks, layout.blocks(), "each block of the drive counts its erases");
        let worn = erases.iter().zip(config.limits(seed)).filter(|(count, limit)| *count >= limit);
        let amplification = stats.write_amplification().unwrap_or(1.0);
        // Overhead wears flash of its own, in proportion to the data.
        let overhead = 1.0 + stats.overhead.share();
        let physical_bytes = f64::from(layout.physical_pages) * to_f64(layout.page_bytes) * overhead;
        let capacity_bytes = f64::from(layout.logical_pages) * to_f64(layout.page_bytes);
        let host_bytes_total = rated * physical_bytes / amplification;
        assert!(host_bytes_total > 0.0, "a drive survives {host_bytes_total} bytes");
        let life_used = config.life_used(&wear);
        Endurance {
            life_used,
            most_worn: f64::from(wear.most_erases) / rated,
            write_amplification: amplification,
            host_bytes_total,
            host_bytes_left: host_bytes_total * (1.0 - life_used).max(0.0),
            drive_writes_per_day: host_bytes_total / capacity_bytes / (config.warranty_years * DAYS_OF_YEAR),
            worn_blocks: wide(worn.count()),
            blocks,
        }
    }

    /// Recomputes the figures for another write amplification.
    ///
    /// # Panics
    /// The write amplification is not above 0.
    #[must_use]
    pub fn at(self, write_amplification: f64) -> Endurance {
        assert!(write_amplification > 0.0, "bytes that are written are programmed");
        let factor = self.write_amplification / write_amplification;
        Endurance {
            write_amplification,
            host_bytes_total: self.host_bytes_total * factor,
            host_bytes_left: self.host_bytes_left * factor,
            drive_writes_per_day: self.drive_writes_per_day * factor,
            ..self
        }
    }
}
