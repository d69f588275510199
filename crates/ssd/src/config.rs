//! What a device can be told to be: the configuration, its defaults and their reasons.
//!
//! A [`DeviceConfig`] is plain data (TOML in `devices/`, overrides in experiments). It becomes a device through
//! [`crate::layout::Layout`], which derives every number and refuses what does not fit together. Each part refuses
//! values that cannot be right whatever the others say (`check`). Nothing else here computes.

use serde::{Deserialize, Serialize};

pub use crate::endurance::EnduranceConfig;
pub use crate::gc::{HandleSelection, UnitSelection};
pub use crate::timing::TimingConfig;

use crate::error::ConfigError;
use crate::layout::HANDLES_MAX;

/// Largest reclaim unit.
pub const RECLAIM_UNIT_BYTES_MAX: u64 = 16 << 30;

/// The largest mapping unit that a device may have.
pub const MAPPING_UNIT_BYTES_MAX: u64 = 65_536;

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

    fn check(&self) -> Result<(), ConfigError> {
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

/// The reclaim unit handles: their number, what they have in common, and exceptions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Handles {
    /// Number of handles, 1 to 128.
    pub count: u16,
    /// Isolation of every handle that has no override.
    pub isolation: Isolation,
    /// Reclaim unit size of every handle that has no override.
    pub reclaim_unit: ReclaimUnitSize,
    /// Reclaim units that a handle fills at the same time, host commands going round robin. 1 to 64.
    pub open_reclaim_units: u16,
    /// When a handle takes its reclaim units.
    pub opening: Opening,
    /// Separation inside the drive: a page that is among the last so many bytes that the host wrote to the drive, and
    /// is written again, goes to a reclaim unit of the handle's own that takes only such pages. 0 switches it off. Hot
    /// data told by recency, as in Hsieh, Kuo & Chang (2006), "Efficient Identification of Hot Data for Flash Memory
    /// Storage Systems", with an exact window instead of counting filters.
    #[serde(with = "base::size")]
    pub separation_bytes: u64,
    /// Settings of single handles.
    pub overrides: Vec<HandleOverride>,
}

impl Default for Handles {
    fn default() -> Self {
        Handles {
            count: 8, // Both drives of the WARP paper expose eight (section 3.1).
            isolation: Isolation::InitiallyIsolated,
            reclaim_unit: ReclaimUnitSize::Superblock,
            open_reclaim_units: 1, // WARP section 4.2.
            opening: Opening::OnFirstUse,
            separation_bytes: 0,
            overrides: Vec::new(),
        }
    }
}

/// Settings of one handle; what is left out is as for all handles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandleOverride {
    /// Which handle.
    pub index: u16,
    /// Its isolation.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// Its reclaim unit size.
    #[serde(default)]
    pub reclaim_unit: Option<ReclaimUnitSize>,
    /// Its number of open reclaim units.
    #[serde(default)]
    pub open_reclaim_units: Option<u16>,
}

/// Settings of one handle with the common settings filled in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandleConfig {
    /// Isolation.
    pub isolation: Isolation,
    /// Reclaim unit size.
    pub reclaim_unit: ReclaimUnitSize,
    /// Number of reclaim units open at the same time.
    pub open_reclaim_units: u16,
}

impl Handles {
    /// The settings of handle `index`.
    pub fn get(&self, index: u16) -> HandleConfig {
        let mut config = HandleConfig {
            isolation: self.isolation,
            reclaim_unit: self.reclaim_unit,
            open_reclaim_units: self.open_reclaim_units,
        };
        for given in self.overrides.iter().filter(|given| given.index == index) {
            config.isolation = given.isolation.unwrap_or(config.isolation);
            config.reclaim_unit = given.reclaim_unit.unwrap_or(config.reclaim_unit);
            config.open_reclaim_units = given.open_reclaim_units.unwrap_or(config.open_reclaim_units);
        }
        config
    }

    fn check(&self) -> Result<(), ConfigError> {
        let count = self.count;
        ConfigError::between("handles.count", count, 1..=HANDLES_MAX)?;
        let allowed = format!("must name each handle at most once, 0 to {}", count - 1);
        for (position, given) in self.overrides.iter().enumerate() {
            let mut earlier = self.overrides[..position].iter();
            let allows = given.index < count && earlier.all(|other| other.index != given.index);
            ConfigError::unless(allows, "handles.overrides.index", given.index, &allowed)?;
        }
        for index in 0..count {
            let open = self.get(index).open_reclaim_units;
            let field = format!("handles[{index}].open_reclaim_units");
            ConfigError::between(&field, open, 1..=64)?;
        }
        Ok(())
    }
}

/// What happens to a handle's data when garbage collection copies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// II: copies of all such handles go to one shared reclaim unit per reclaim group.
    InitiallyIsolated,
    /// PI: copies go to a reclaim unit of the same handle.
    PersistentlyIsolated,
    /// PI while the reclaim group has spare to pay for it (`gc.adaptive_isolation_spare`), II otherwise.
    Adaptive,
}

/// Size of the reclaim units that a handle is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReclaimUnitSize {
    /// A block on every die and plane of the reclaim group.
    Superblock,
    /// A superblock divided by this number, over correspondingly fewer dies.
    Fraction(u32),
    /// The blocks of one channel.
    Channel,
    /// The blocks of one die.
    Die,
}

/// When a handle takes a reclaim unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// With the first page that needs it.
    OnFirstUse,
    /// At start, and for host writes at once when one is full; at start a persistently isolated handle takes one for
    /// its copies too, and so does the shared pool (later ones come with the next copy). The published emulator does
    /// this for every handle, used or not.
    Eager,
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
