//! The reclaim unit handles of a drive.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

/// Handles per endurance group, at most (issue of range, NVMe 2.1 allows more).
pub const HANDLES_MAX: u16 = 128;

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

    pub(super) fn check(&self) -> Result<(), ConfigError> {
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
