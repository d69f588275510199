//! How a drive is made: what it is called, what it consists of, and why it may not work.

use ssd::{ConfigError, DeviceConfig};
use thiserror::Error;
use uuid::Uuid;

use crate::error::{Failure, Parameter};
use crate::media::MediaError;

/// Namespaces that can exist, and the largest namespace identifier (NN). Boot firmware asks for each one.
pub const NAMESPACES_MAX: u32 = 32;
/// Most that a counter of the state can be: nothing happens so often, and what a drive does in its life can be added to it.
pub(crate) const COUNT_MAX: u64 = 1 << 62;
/// Endurance group identifier of the only endurance group.
pub const ENDURANCE_GROUP: u16 = 1;
/// Queues of each kind that the doorbell page has room for, the admin queue included.
pub const QUEUES_MAX: u16 = 512;
/// PCI vendor identifier. It and [`crate::pcie::DEVICE_ID`] are in the range that its owner leaves to experiments
/// without registration (QEMU, docs/specs/pci-ids.rst); whoever ships this as a product needs identifiers of their
/// own. Those of QEMU's NVMe device would make drivers apply that device's quirks.
pub const VENDOR_ID: u16 = 0x1af4;

/// What a drive says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Serial number, up to 20 ASCII characters.
    pub serial: String,
    /// Model number, up to 40.
    pub model: String,
    /// Firmware revision, up to 8, not empty.
    pub firmware: String,
    /// NVM subsystem NQN.
    pub nqn: String,
}

impl Identity {
    /// A name of the NVM subsystem with a serial number: of the form for those that own no domain (Base Specification,
    /// "NVMe Qualified Names"), and the same each time.
    pub fn default_nqn(serial: &str) -> String {
        let uuid = Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("WARP drive {serial}").as_bytes());
        format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}")
    }
}

/// How a subsystem is made.
#[derive(Clone, Debug)]
pub struct SubsystemConfig {
    /// Names.
    pub identity: Identity,
    /// The device of the profile: FDP configuration 0.
    pub device: DeviceConfig,
    /// Whether a new drive has Flexible Data Placement enabled.
    pub fdp: bool,
    /// Whether a new drive has a namespace over its whole capacity.
    pub namespace: bool,
    /// LBA format of that namespace: index into [`crate::namespace::FORMATS`].
    pub format: u8,
    /// Time that a reclaim unit may stay open, in seconds; 0 for no limit (ERUTL).
    pub reclaim_unit_time_limit_s: u32,
    /// Controllers at the same time.
    pub controllers_max: u16,
    /// I/O queue pairs of each controller.
    pub io_queues_max: u16,
}

/// A subsystem that cannot be made.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The device configuration does not work.
    #[error(transparent)]
    Device(#[from] ConfigError),
    /// The storage does not.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// What was stored is of another drive.
    #[error("{0}")]
    Mismatch(String),
}

/// Refuses any endurance group but the one there is.
pub(crate) fn check_endurance_group(group: u16, place: Parameter) -> Result<(), Failure> {
    if group == ENDURANCE_GROUP {
        return Ok(());
    }
    let cause = format!("endurance group {group} does not exist, only {ENDURANCE_GROUP}");
    Err(Failure::invalid_field(place, cause))
}
