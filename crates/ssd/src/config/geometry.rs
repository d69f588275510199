//! Geometry of a drive: capacity, over-provisioning, channels, dies, planes and reclaim groups.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::overhead::MediaOverhead;

/// Maximum size of a reclaim unit.
pub const RECLAIM_UNIT_BYTES_MAX: u64 = 16 << 30;

/// Maximum size of a mapping unit.
pub const MAPPING_UNIT_BYTES_MAX: u64 = 65_536;

/// Physical shape of the drive. Set exactly one of `capacity_bytes` and `physical_bytes`. The other
/// follows from `over_provisioning` = (physical - logical) / logical.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Logical capacity in bytes, as the host sees it.
    #[serde(default, with = "base::size")]
    pub capacity_bytes: Option<u64>,
    /// Flash capacity in bytes, for sweeps of over-provisioning on the same flash.
    #[serde(default, with = "base::size")]
    pub physical_bytes: Option<u64>,
    /// (physical - logical) / logical, 0.01 to 1.
    pub over_provisioning: f64,
    /// Pages of its own that the drive writes for each page of data (mapping journal, parity,
    /// tables), 0 to 0.5. They lie in flash beside that of the data, so `over_provisioning` is the
    /// spare that is left for data. Rounded to millionths.
    #[serde(default)]
    pub media_overhead_share: f64,
    /// Size of a full reclaim unit (a superblock over all dies of its reclaim group), at most 16
    /// GiB. Real drives have at least 1 MiB. Scaled models may use less, down to one program unit
    /// on each block.
    #[serde(with = "base::size")]
    pub reclaim_unit_bytes: u64,
    /// Bytes that one mapping entry covers, 4 to 64 KiB, a power of two.
    #[serde(default = "default_mapping_unit_bytes", with = "base::size")]
    pub mapping_unit_bytes: u64,
    /// Bytes written to one block before the write continues on the next block of the reclaim unit
    /// (stripe unit). Defaults to one mapping unit.
    #[serde(default, with = "base::size")]
    pub program_unit_bytes: Option<u64>,
    /// Number of channels of the drive.
    #[serde(default = "default_channels")]
    pub channels: u32,
    /// Number of dies on each channel.
    #[serde(default = "default_dies_per_channel")]
    pub dies_per_channel: u32,
    /// Number of planes of each die. A superblock has one block on each plane.
    #[serde(default = "default_planes_per_die")]
    pub planes_per_die: u32,
    /// Number of reclaim groups. Each group has an equal range of consecutive dies.
    #[serde(default = "default_reclaim_groups")]
    pub reclaim_groups: u16,
}

/// 4 KiB, the logical block size that Linux and the workloads of the papers use.
fn default_mapping_unit_bytes() -> u64 {
    4096
}

/// 8 channels with 8 single-plane dies each, the configuration of the WARP paper (section 5).
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
    /// Shape of the drive of the WARP paper, section 5. The caller must set the capacity.
    fn default() -> Self {
        Geometry {
            capacity_bytes: None,
            physical_bytes: None,
            over_provisioning: 0.28,
            media_overhead_share: 0.0,
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
    /// Size of one program unit on each block of a superblock, in bytes. Reclaim units are
    /// multiples of this size. Returns 0 or a saturated value for an impossible geometry.
    pub fn stripe_bytes(&self) -> u64 {
        let dies = u64::from(self.channels).saturating_mul(u64::from(self.dies_per_channel));
        let blocks = (dies / u64::from(self.reclaim_groups.max(1))).saturating_mul(u64::from(self.planes_per_die));
        blocks.saturating_mul(self.program_unit_bytes.unwrap_or(self.mapping_unit_bytes))
    }

    /// Overhead of the drive's own data.
    pub fn media_overhead(&self) -> MediaOverhead {
        MediaOverhead::new(self.media_overhead_share)
    }

    /// Valid reclaim unit size that is nearest to `wanted_bytes`. Returns `wanted_bytes` if no size
    /// is valid.
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
        ConfigError::require(
            unit.is_power_of_two() && (4096..=MAPPING_UNIT_BYTES_MAX).contains(&unit),
            "geometry.mapping_unit_bytes",
            unit,
            "must be 4096, 8192, 16384, 32768 or 65536",
        )?;
        ConfigError::require(
            (0.01..=1.0).contains(&self.over_provisioning),
            "geometry.over_provisioning",
            self.over_provisioning,
            "must be between 0.01 and 1 (spare divided by logical capacity)",
        )?;
        ConfigError::require(
            (0.0..=0.5).contains(&self.media_overhead_share),
            "geometry.media_overhead_share",
            self.media_overhead_share,
            "must be between 0 and 0.5 (pages of the drive's own for each page of data)",
        )?;
        let reclaim_unit = self.reclaim_unit_bytes;
        ConfigError::require(
            (unit..=RECLAIM_UNIT_BYTES_MAX).contains(&reclaim_unit),
            "geometry.reclaim_unit_bytes",
            reclaim_unit,
            "must be at least one mapping unit on each block and at most 16 GiB",
        )?;
        let program = self.program_unit_bytes.unwrap_or(unit);
        ConfigError::require(
            program >= unit && program.is_multiple_of(unit) && program <= reclaim_unit,
            "geometry.program_unit_bytes",
            program,
            "must be a multiple of geometry.mapping_unit_bytes and at most geometry.reclaim_unit_bytes",
        )?;
        ConfigError::require_range("geometry.channels", self.channels, 1..=1024)?;
        ConfigError::require_range("geometry.dies_per_channel", self.dies_per_channel, 1..=1024)?;
        ConfigError::require_range("geometry.planes_per_die", self.planes_per_die, 1..=64)?;
        ConfigError::require_range("geometry.reclaim_groups", self.reclaim_groups, 1..=u16::MAX)
    }
}
