//! Configuration of a device, with its defaults and their reasons.
//!
//! A [`DeviceConfig`] is data without behaviour (TOML in `devices/`, overrides in experiments).
//! [`crate::layout::DeviceLayout`] derives all further numbers and rejects combinations that do not
//! fit together. The `check` function of each part rejects values that are invalid in every
//! combination.

mod endurance;
pub(crate) mod geometry;
pub(crate) mod handles;

use serde::{Deserialize, Serialize};

pub use crate::gc::{SourcePolicy, VictimRule};
pub use crate::timing::config::TimingConfig;
pub use endurance::EnduranceConfig;
pub use geometry::{Geometry, MAPPING_UNIT_BYTES_MAX, RECLAIM_UNIT_BYTES_MAX};
pub use handles::{
    HANDLES_MAX, HandleConfig, HandleOverride, HandlesConfig, Isolation, ReclaimUnitSize, UnitOpenPolicy,
};

use crate::error::ConfigError;

/// Maximum number of draws of `d_choices`. Each collection makes all of them.
const D_CHOICES_MAX: u32 = 4096;

/// Configuration of a whole device: geometry, reclaim unit handles, garbage collection, seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// Physical shape and over-provisioning.
    pub geometry: Geometry,
    /// Reclaim unit handles.
    #[serde(default)]
    pub handles: HandlesConfig,
    /// Garbage collection.
    #[serde(default)]
    pub gc: GcConfig,
    /// Reports about data that garbage collection moves.
    #[serde(default)]
    pub events: EventsConfig,
    /// Random seed of the device (random and d-choices victim selection).
    #[serde(default)]
    pub seed: u64,
    /// Duration of each operation. Without it all operations take no time.
    #[serde(default)]
    pub timing: Option<TimingConfig>,
    /// Endurance of the flash. Without it the device counts wear but does not judge it.
    #[serde(default)]
    pub endurance: Option<EnduranceConfig>,
}

impl DeviceConfig {
    /// Checks the range of every field.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.events.check()?;
        self.geometry.check()?;
        self.handles.check()?;
        self.gc.check()?;
        self.check_copies()?;
        if let Some(endurance) = &self.endurance {
            endurance.check()?;
        }
        match &self.timing {
            Some(timing) => timing.check(&self.geometry, &self.handles),
            None => Ok(()),
        }
    }

    /// Checks the settings that `gc.copies = "with_host"` requires.
    fn check_copies(&self) -> Result<(), ConfigError> {
        if self.gc.copies == GcDestination::Apart {
            return Ok(());
        }
        let handles = || (0..self.handles.count).map(|index| self.handles.get(index));
        let whole = handles().all(|handle| handle.reclaim_unit == ReclaimUnitSize::Superblock);
        let decided = handles().all(|handle| handle.isolation != Isolation::Adaptive);
        ConfigError::require(
            whole && decided,
            "gc.copies",
            "with_host",
            "must be apart unless all handles have whole superblocks (reclaim_unit = \"superblock\") and a fixed \
             isolation",
        )?;
        ConfigError::require(
            self.timing.is_none(),
            "gc.copies",
            "with_host",
            "must be apart on a device with timing. The timing model has no flash pages that host data and copies fill \
             together",
        )
    }
}

/// Settings of garbage collection: victim selection, watermarks and options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GcConfig {
    /// First decision of garbage collection, the owners whose reclaim units are candidates.
    pub source_policy: SourcePolicy,
    /// Second decision of garbage collection, the victim among the candidates.
    pub victim_policy: VictimRule,
    /// Maximum valid share of a victim of background collection (lazy GC), 0 to 1.
    pub lazy_valid_share: f64,
    /// Background watermark, 0 to 1. Background collection runs above this used share of
    /// `watermark_base`. 1 disables it.
    pub background_watermark: f64,
    /// Foreground watermark, 0 to 1. Writes wait for collection above this used share of
    /// `watermark_base`.
    pub foreground_watermark: f64,
    /// Reclaim units that the two watermarks are a share of.
    pub watermark_base: WatermarkBase,
    /// Destination of copies, separate from host data or mixed with it.
    pub copies: GcDestination,
    /// Moves fully valid blocks of a victim by exchanging blocks with the destination instead of
    /// copying.
    pub block_remapping: bool,
    /// Choice of the next free superblock (wear levelling).
    pub allocation: Allocation,
    /// Static wear levelling: erases by which a superblock may exceed another one with data, on
    /// average over its blocks. Beyond that the drive moves data of such a superblock into its
    /// blocks. 0 disables it.
    pub wear_levelling_erases: u32,
    /// Share of the spare reclaim units that host data never uses (bad-block replacement, the
    /// drive's own data).
    pub reserve_share: f64,
    /// Minimum spare reclaim units for each handle with data, within the reclaim group, at which an
    /// adaptive handle becomes persistently isolated. Below three quarters of this value the handle
    /// becomes initially isolated again.
    pub adaptive_isolation_spare: f64,
}

impl Default for GcConfig {
    fn default() -> Self {
        GcConfig {
            source_policy: SourcePolicy::Global,
            victim_policy: VictimRule::Greedy,
            lazy_valid_share: 0.05,     // WARP section 5: "lazy GC threshold = 5 %".
            background_watermark: 0.90, // WARP section 4.3.
            foreground_watermark: 0.99, // WARP section 4.3.
            watermark_base: WatermarkBase::Spare,
            copies: GcDestination::Apart,
            block_remapping: true, // WARP section 5.
            allocation: Allocation::Oldest,
            wear_levelling_erases: 0,
            reserve_share: 0.0,
            adaptive_isolation_spare: 10.0, // Crossover of II and PI in the experiment ii_vs_pi.
        }
    }
}

impl GcConfig {
    /// Returns true if blocks can move to other places.
    pub(crate) fn moves_blocks(&self) -> bool {
        self.block_remapping || self.wear_levelling_erases > 0
    }

    fn check(&self) -> Result<(), ConfigError> {
        ConfigError::require_range("gc.lazy_valid_share", self.lazy_valid_share, 0.0..=1.0)?;
        ConfigError::require_range("gc.background_watermark", self.background_watermark, 0.0..=1.0)?;
        ConfigError::require_range("gc.foreground_watermark", self.foreground_watermark, 0.0..=1.0)?;
        ConfigError::require(
            (0.0..=0.9).contains(&self.reserve_share),
            "gc.reserve_share",
            self.reserve_share,
            "must be between 0 and 0.9 (a share of the spare)",
        )?;
        let spare = self.adaptive_isolation_spare;
        ConfigError::require(
            spare.is_finite() && spare >= 0.0,
            "gc.adaptive_isolation_spare",
            spare,
            "must be 0 or more reclaim units",
        )?;
        match self.victim_policy {
            VictimRule::DChoices(count) => ConfigError::require(
                (1..=D_CHOICES_MAX).contains(&count),
                "gc.victim_policy",
                count,
                "must examine 1 to 4096 reclaim units",
            ),
            VictimRule::WindowedGreedy(count) => {
                ConfigError::require(count >= 1, "gc.victim_policy", count, "must examine 1 reclaim unit or more")
            }
            _ => Ok(()),
        }
    }
}

/// Settings of the events about data that garbage collection moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventsConfig {
    /// Capacity of each FDP event log of the drive. A new event drops the oldest. 1 to 63, the
    /// capacity of a log page of 4 KiB.
    pub log_entries: u16,
    /// Moved page that the event of a collection names.
    pub reported_page: ReportedPage,
}

impl Default for EventsConfig {
    fn default() -> Self {
        EventsConfig {
            log_entries: 63, // Kang & Shin, section I.
            reported_page: ReportedPage::LongestRun,
        }
    }
}

impl EventsConfig {
    fn check(&self) -> Result<(), ConfigError> {
        ConfigError::require(
            (1..=63).contains(&self.log_entries),
            "events.log_entries",
            self.log_entries,
            "must be between 1 and 63, the capacity of the log page",
        )
    }
}

/// Choice of the moved page that a collection reports. The standard leaves the choice to the drive
/// (Kang & Shin, section II).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedPage {
    /// First page of the longest contiguous run, which is the largest piece of data that is likely
    /// misplaced. Among runs of equal length the first.
    LongestRun,
    /// First page that was moved.
    First,
    /// Random page, with equal probability.
    Random,
    /// No page, only the number of moved pages.
    None,
}

/// Choice of the next free superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    /// Superblock that has been free for the longest time.
    Oldest,
    /// Superblock with the fewest erases (dynamic wear levelling). Among equals the one that has
    /// been free longest.
    LeastWorn,
}

/// Reclaim unit that takes the copies of garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcDestination {
    /// Separate reclaim unit for copies only. It belongs to the handle if the handle is
    /// persistently isolated, and to the shared pool if not.
    Apart,
    /// Open reclaim unit that also takes host data (the first, if a handle has several). It belongs
    /// to the handle if the handle is persistently isolated. If not, it belongs to the first handle
    /// that is not persistently isolated, which also takes writes without placement. Without
    /// placement such a drive has a single write frontier. The drive has no shared pool.
    WithHost,
}

/// Base of the shares that the garbage collection watermarks express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatermarkBase {
    /// Reclaim units that a full drive does not need for its data. A sequential overwrite then has
    /// WAF 1.
    Spare,
    /// All reclaim units, as in the published emulator. Background collection never stops if the
    /// over-provisioning is smaller than the share above the watermark.
    All,
}
