//! What a device can be told to be: the configuration, its defaults and their reasons.
//!
//! A [`DeviceConfig`] is plain data (TOML in `devices/`, overrides in experiments). It becomes a device through
//! [`crate::layout::Layout`], which derives every number and refuses what does not fit together. Each part refuses
//! values that cannot be right whatever the others say (`check`). Nothing else here computes.

mod endurance;
pub(crate) mod geometry;
pub(crate) mod handles;

use serde::{Deserialize, Serialize};

pub use crate::gc::{HandleSelection, UnitSelection};
pub use crate::timing::config::TimingConfig;
pub use endurance::EnduranceConfig;
pub use geometry::{Geometry, MAPPING_UNIT_BYTES_MAX, RECLAIM_UNIT_BYTES_MAX};
pub use handles::{HANDLES_MAX, HandleConfig, HandleOverride, Handles, Isolation, Opening, ReclaimUnitSize};

use crate::error::ConfigError;

/// Reclaim units that a choice among drawn ones looks at, at most: all of them are drawn for each collection.
const D_CHOICES_MAX: u32 = 4096;

/// A whole device: geometry, reclaim unit handles, garbage collection, seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// Physical shape and over-provisioning.
    pub geometry: Geometry,
    /// The reclaim unit handles.
    #[serde(default)]
    pub handles: Handles,
    /// Garbage collection.
    #[serde(default)]
    pub gc: GcConfig,
    /// What the device reports of the data that it moves.
    #[serde(default)]
    pub events: EventsConfig,
    /// Seed of everything random inside the device (random and d-choices victim selection).
    #[serde(default)]
    pub seed: u64,
    /// What takes how long; left out, everything is done at once.
    #[serde(default)]
    pub timing: Option<TimingConfig>,
    /// What the flash survives; left out, wear is counted but not judged.
    #[serde(default)]
    pub endurance: Option<EnduranceConfig>,
}

impl DeviceConfig {
    /// The range of every field on its own.
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

    /// What copies that share the host's open reclaim unit go together with.
    fn check_copies(&self) -> Result<(), ConfigError> {
        if self.gc.copies == Copies::Apart {
            return Ok(());
        }
        let handles = || (0..self.handles.count).map(|index| self.handles.get(index));
        let whole = handles().all(|handle| handle.reclaim_unit == ReclaimUnitSize::Superblock);
        let decided = handles().all(|handle| handle.isolation != Isolation::Adaptive);
        ConfigError::unless(
            whole && decided,
            "gc.copies",
            "with_host",
            "must be apart unless all handles have whole superblocks (reclaim_unit = \"superblock\") and an isolation \
             that is not adaptive",
        )?;
        ConfigError::unless(
            self.timing.is_none(),
            "gc.copies",
            "with_host",
            "must be apart on a device with times: a flash page that host data and copies fill together is not timed \
             (leave out timing)",
        )
    }
}

/// Garbage collection: which victim, when, and what else it may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GcConfig {
    /// First decision: whose reclaim units to look at.
    pub handle_selection: HandleSelection,
    /// Second decision: which of them to reclaim.
    pub unit_selection: UnitSelection,
    /// Background collection takes a reclaim unit only if its valid share is at most this (lazy GC), 0 to 1.
    pub lazy_valid_share: f64,
    /// Share of `marks_of` in use above which background collection runs, 0 to 1; 1 switches it off.
    pub background_mark: f64,
    /// Share of `marks_of` in use above which a write waits for collection, 0 to 1.
    pub foreground_mark: f64,
    /// What the two marks are a share of.
    pub marks_of: MarksOf,
    /// Where copies go: apart from what the host writes, or among it.
    pub copies: Copies,
    /// Move fully valid blocks of a victim into the destination by exchanging blocks instead of copying.
    pub block_remapping: bool,
    /// Which of the free superblocks is used next: wear levelling.
    pub allocation: Allocation,
    /// Share of the spare reclaim units that host data never gets (bad-block replacement, the drive's own data).
    pub reserve_share: f64,
    /// An adaptive handle is persistently isolated while its reclaim group has at least this many spare reclaim
    /// units for each handle that holds data; it goes back below three quarters of it.
    pub adaptive_isolation_spare: f64,
}

impl Default for GcConfig {
    fn default() -> Self {
        GcConfig {
            handle_selection: HandleSelection::Global,
            unit_selection: UnitSelection::Greedy,
            lazy_valid_share: 0.05, // WARP section 5: "lazy GC threshold = 5 %".
            background_mark: 0.90,  // WARP section 4.3.
            foreground_mark: 0.99,  // WARP section 4.3.
            marks_of: MarksOf::Spare,
            copies: Copies::Apart,
            block_remapping: true, // WARP section 5.
            allocation: Allocation::Oldest,
            reserve_share: 0.0,
            adaptive_isolation_spare: 10.0, // Where II and PI cross in the experiment ii_vs_pi.
        }
    }
}

impl GcConfig {
    fn check(&self) -> Result<(), ConfigError> {
        ConfigError::between("gc.lazy_valid_share", self.lazy_valid_share, 0.0..=1.0)?;
        ConfigError::between("gc.background_mark", self.background_mark, 0.0..=1.0)?;
        ConfigError::between("gc.foreground_mark", self.foreground_mark, 0.0..=1.0)?;
        ConfigError::unless(
            (0.0..=0.9).contains(&self.reserve_share),
            "gc.reserve_share",
            self.reserve_share,
            "must be between 0 and 0.9 of the spare",
        )?;
        let spare = self.adaptive_isolation_spare;
        ConfigError::unless(
            spare.is_finite() && spare >= 0.0,
            "gc.adaptive_isolation_spare",
            spare,
            "must be a number of reclaim units, 0 or more",
        )?;
        match self.unit_selection {
            UnitSelection::DChoices(count) => ConfigError::unless(
                (1..=D_CHOICES_MAX).contains(&count),
                "gc.unit_selection",
                count,
                "must look at 1 to 4096 reclaim units",
            ),
            UnitSelection::WindowedGreedy(count) => ConfigError::unless(
                count >= 1,
                "gc.unit_selection",
                count,
                "must look at 1 reclaim unit or more",
            ),
            _ => Ok(()),
        }
    }
}

/// What the device reports of the data that garbage collection moves, and how much of it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventsConfig {
    /// Events that each of the drive's event logs keeps; a new one drops the oldest. 1 to 63, what a log page of 4 KiB
    /// holds.
    pub log_entries: u16,
    /// The one moved page that the report of a collection names.
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
        ConfigError::unless(
            (1..=63).contains(&self.log_entries),
            "events.log_entries",
            self.log_entries,
            "must be between 1 and 63, what the log page holds",
        )
    }
}

/// Which of the pages that a collection moved is reported: the standard leaves it to the drive (Kang & Shin, section
/// II).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedPage {
    /// The first page of the longest contiguous run, of equally long ones the first: the largest piece of data that is
    /// likely to be in the wrong place.
    LongestRun,
    /// The first that was moved.
    First,
    /// Any, with equal chances.
    Random,
    /// None: only how many were moved.
    None,
}

/// Which of the free superblocks is used next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    /// The one that has been free for longest.
    Oldest,
    /// The one whose blocks have been erased least (dynamic wear levelling); of equal ones the oldest.
    LeastWorn,
}

/// Which reclaim unit takes the copies of garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Copies {
    /// One that takes nothing else: of the handle if it is persistently isolated, otherwise of the shared pool.
    Apart,
    /// The open reclaim unit that takes host data too (the first, where a handle has several open): of the handle if it
    /// is persistently isolated, otherwise of the first handle that is not, which is where writes without placement
    /// go. Without placement such a drive has a single write frontier. There is no shared pool then.
    WithHost,
}

/// What the garbage collection marks are a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarksOf {
    /// The reclaim units that a full drive does not need for its data. A sequential overwrite keeps WAF 1.
    Spare,
    /// All reclaim units, as in the published emulator. With less over-provisioning than the mark leaves, background
    /// collection never stops.
    All,
}
