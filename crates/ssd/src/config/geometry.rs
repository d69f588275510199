//! The shape of a drive.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

/// Largest reclaim unit.
pub const RECLAIM_UNIT_BYTES_MAX: u64 = 16 << 30;

/// The largest mapping unit that a device may have.
pub const MAPPING_UNIT_BYTES_MAX: u64 = 65_536;

/// Physical shape of the drive. Exactly one of `capacity_bytes` and `physical_bytes` is given; the other follows
/// from `over_provisioning` = (physical - logical) / logical.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Logical capacity in bytes, what the host sees.
    #[serde(default, with = "base::size")]
    pub capacity_bytes: Option<u64>,
    /// Flash in bytes, for sweeps over over-provisioning on the same flash.
    #[serde(default, with = "base::size")]
    pub physical_bytes: Option<u64>,
    /// (physical - logical) / logical, 0.01 to 1.
    pub over_provisioning: f64,
    /// Size of a full reclaim unit (a superblock over all dies of its reclaim group), at most 16 GiB. Drives have 1 MiB
    /// or more; scaled twins less, down to one program unit on each block.
    #[serde(with = "base::size")]
    pub reclaim_unit_bytes: u64,
    /// Bytes that one mapping entry covers, 4 to 64 KiB, a power of two.
    #[serde(default = "default_mapping_unit_bytes", with = "base::size")]
    pub mapping_unit_bytes: u64,
    /// Bytes written to one block before the next block of the reclaim unit takes its turn (the stripe unit).
    /// Defaults to one mapping unit.
    #[serde(default, with = "base::size")]
    pub program_unit_bytes: Option<u64>,
    /// Channels of the drive.
    #[serde(default = "default_channels")]
    pub channels: u32,
    /// Dies on each channel.
    #[serde(default = "default_dies_per_channel")]
    pub dies_per_channel: u32,
    /// Planes of each die; a superblock has one block on each.
    #[serde(default = "default_planes_per_die")]
    pub planes_per_die: u32,
    /// Reclaim groups; the dies are dealt to them in equal runs.
    #[serde(default = "default_reclaim_groups")]
    pub reclaim_groups: u16,
}

/// 4 KiB: the logical block that Linux and the papers' workloads use.
fn default_mapping_unit_bytes() -> u64 {
    4096
}

/// 8 channels of 8 dies with one plane: the configuration of the WARP paper, section 5.
fn default_channels() -> u32 {
    8
}

fn default_dies_per_channel() -> u32 {
    8
}

fn default_planes_per_die() -> u32 {
    1
}

fn default_reclaim_groups() -> u16 {
    1
}

impl Default for Geometry {
    /// The shape of the drive of the WARP paper, section 5. Its size has to be given.
    fn default() -> Self {
        Geometry {
            capacity_bytes: None,
            physical_bytes: None,
            over_provisioning: 0.28,
            reclaim_unit_bytes: 256 << 20,
            mapping_unit_bytes: default_mapping_unit_bytes(),
            program_unit_bytes: None,
            channels: default_channels(),
            dies_per_channel: default_dies_per_channel(),
            planes_per_die: default_planes_per_die(),
            reclaim_groups: default_reclaim_groups(),
        }
    }
}

impl Geometry {
    /// Bytes of one program unit on each block of a superblock, of which a reclaim unit is made; 0 or cut off for a geometry that cannot be.
    pub fn stripe_bytes(&self) -> u64 {
        let dies = u64::from(self.channels).saturating_mul(u64::from(self.dies_per_channel));
        let blocks = (dies / u64::from(self.reclaim_groups.max(1))).saturating_mul(u64::from(self.planes_per_die));
        blocks.saturating_mul(self.program_unit_bytes.unwrap_or(self.mapping_unit_bytes))
    }

    /// The size of a reclaim unit that this geometry can have and that is nearest to a wanted one; the wanted one if there is none.
    pub fn nearest_reclaim_unit_bytes(&self, wanted_bytes: u64) -> u64 {
        let stripe_bytes = self.stripe_bytes();
        if stripe_bytes == 0 || wanted_bytes < stripe_bytes {
            return wanted_bytes;
        }
        let below_bytes = wanted_bytes - wanted_bytes % stripe_bytes;
        let above_bytes = below_bytes.saturating_add(stripe_bytes);
        if above_bytes - wanted_bytes < wanted_bytes - below_bytes && above_bytes <= RECLAIM_UNIT_BYTES_MAX {
            above_bytes
        } else {
            below_bytes
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let unit = self.mapping_unit_bytes;
        ConfigError::unless(
            unit.is_power_of_two() && (4096..=MAPPING_UNIT_BYTES_MAX).contains(&unit),
            "geometry.mapping_unit_bytes",
            unit,
            "must be 4096, 8192, 16384, 32768 or 65536",
        )?;
        ConfigError::unless(
            (0.01..=1.0).contains(&self.over_provisioning),
            "geometry.over_provisioning",
            self.over_provisioning,
            "must be between 0.01 and 1 (spare / logical capacity)",
        )?;
        let reclaim_unit = self.reclaim_unit_bytes;
        ConfigError::unless(
            (unit..=RECLAIM_UNIT_BYTES_MAX).contains(&reclaim_unit),
            "geometry.reclaim_unit_bytes",
            reclaim_unit,
            "must be at least one mapping unit on each block, and at most 16 GiB",
        )?;
        let program = self.program_unit_bytes.unwrap_or(unit);
        ConfigError::unless(
            program >= unit && program.is_multiple_of(unit) && program <= reclaim_unit,
            "geometry.program_unit_bytes",
            program,
            "must be a multiple of geometry.mapping_unit_bytes, at most geometry.reclaim_unit_bytes",
        )?;
        ConfigError::between("geometry.channels", self.channels, 1..=1024)?;
        ConfigError::between("geometry.dies_per_channel", self.dies_per_channel, 1..=1024)?;
        ConfigError::between("geometry.planes_per_die", self.planes_per_die, 1..=64)?;
        ConfigError::between("geometry.reclaim_groups", self.reclaim_groups, 1..=u16::MAX)
    }
}
