//! Reclaim unit handles of a drive: number, isolation, reclaim unit size and exceptions.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

/// Maximum number of handles per endurance group. This is a limit of the model, NVMe 2.1 allows
/// more.
pub const HANDLES_MAX: u16 = 128;

/// Reclaim unit handles: their number, common settings and exceptions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HandlesConfig {
    /// Number of handles, 1 to 128.
    pub count: u16,
    /// Isolation of every handle that has no override.
    pub isolation: Isolation,
    /// Reclaim unit size of every handle that has no override.
    pub reclaim_unit: ReclaimUnitSize,
    /// Reclaim units that a handle fills at the same time, 1 to 64. Host commands use them round
    /// robin.
    pub open_reclaim_units: u16,
    /// Time at which a handle takes its reclaim units.
    pub opening: UnitOpenPolicy,
    /// Size of the hot-data window in bytes, 0 to disable. A page is hot if the host rewrites it
    /// while it is among the last `hot_window_bytes` bytes written to the drive. Hot pages go to a
    /// separate reclaim unit of the same handle. Recency identifies hot data as in Hsieh, Kuo &
    /// Chang (2006), "Efficient Identification of Hot Data for Flash Memory Storage Systems", with
    /// an exact window instead of counting filters.
    #[serde(with = "base::size")]
    pub hot_window_bytes: u64,
    /// Bytes of host data that wait in the write buffer before they are programmed, in the order in
    /// which they came, 0 to disable. A write to a page that waits replaces it there. The page is
    /// then not programmed again. `DeviceCore::absorbable_run` has the exact rule.
    #[serde(with = "base::size")]
    pub write_absorption_bytes: u64,
    /// Overrides for individual handles.
    pub overrides: Vec<HandleOverride>,
}

impl Default for HandlesConfig {
    fn default() -> Self {
        HandlesConfig {
            count: 8, // Both drives of the WARP paper expose eight (section 3.1).
            isolation: Isolation::InitiallyIsolated,
            reclaim_unit: ReclaimUnitSize::Superblock,
            open_reclaim_units: 1, // WARP section 4.2.
            opening: UnitOpenPolicy::OnFirstUse,
            hot_window_bytes: 0,
            write_absorption_bytes: 0,
            overrides: Vec::new(),
        }
    }
}

/// Override for one handle. Omitted fields keep the common setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandleOverride {
    /// Index of the handle.
    pub index: u16,
    /// Isolation of the handle.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// Reclaim unit size of the handle.
    #[serde(default)]
    pub reclaim_unit: Option<ReclaimUnitSize>,
    /// Number of open reclaim units of the handle.
    #[serde(default)]
    pub open_reclaim_units: Option<u16>,
}

/// Settings of one handle after its overrides are applied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandleConfig {
    /// Isolation of the handle.
    pub isolation: Isolation,
    /// Reclaim unit size of the handle.
    pub reclaim_unit: ReclaimUnitSize,
    /// Number of reclaim units open at the same time.
    pub open_reclaim_units: u16,
}

impl HandlesConfig {
    /// Returns the settings of handle `index`.
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

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let count = self.count;
        ConfigError::require_range("handles.count", count, 1..=HANDLES_MAX)?;
        let allowed = format!("must name each handle from 0 to {} at most once", count - 1);
        for (position, given) in self.overrides.iter().enumerate() {
            let mut earlier = self.overrides[..position].iter();
            let allows = given.index < count && earlier.all(|other| other.index != given.index);
            ConfigError::require(allows, "handles.overrides.index", given.index, &allowed)?;
        }
        for index in 0..count {
            let open = self.get(index).open_reclaim_units;
            let field = format!("handles[{index}].open_reclaim_units");
            ConfigError::require_range(&field, open, 1..=64)?;
        }
        Ok(())
    }
}

/// Destination of a handle's data when garbage collection copies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// II. Copies of all initially isolated handles go to one shared reclaim unit per reclaim
    /// group.
    InitiallyIsolated,
    /// PI. Copies go to a reclaim unit of the same handle.
    PersistentlyIsolated,
    /// PI while the reclaim group has enough spare units (`gc.adaptive_isolation_spare`), and II
    /// below that.
    Adaptive,
}

/// Size of the reclaim units of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReclaimUnitSize {
    /// One block on every die and plane of the reclaim group.
    Superblock,
    /// Superblock divided by this number, over correspondingly fewer dies.
    Fraction(u32),
    /// Blocks of one channel.
    Channel,
    /// Blocks of one die.
    Die,
}

/// Time at which a handle takes a reclaim unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitOpenPolicy {
    /// When the first page needs a reclaim unit.
    OnFirstUse,
    /// At start, and immediately after a reclaim unit for host writes is full. At start each
    /// persistently isolated handle and the shared pool also take a reclaim unit for copies. Later
    /// ones for copies are taken by the next copy. The published emulator does this for every
    /// handle, used or not.
    Eager,
}
