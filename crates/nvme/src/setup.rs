//! Configuration of a drive, its identity and the errors of its creation.

use ssd::{ConfigError, DeviceConfig};
use thiserror::Error;
use uuid::Uuid;

use crate::error::{Failure, Parameter};
use crate::media::MediaError;

/// Most namespaces, and the largest namespace identifier (NN). Boot firmware queries each
/// identifier.
pub const NAMESPACES_MAX: u32 = 32;
/// Upper bound of a stored counter. No event is that frequent, and a lifetime of events can be
/// added without overflow.
pub(crate) const COUNT_MAX: u64 = 1 << 62;
/// Endurance group identifier of the only endurance group.
pub const ENDURANCE_GROUP: u16 = 1;
/// Most queues of each kind in the doorbell page, the admin queue included.
pub const QUEUES_MAX: u16 = 512;
/// PCI vendor identifier. Its owner leaves a range to experiments without registration (QEMU,
/// docs/specs/pci-ids.rst). The vendor identifier and [`crate::pcie::DEVICE_ID`] are in that range.
/// A product needs its own identifiers. The identifiers of QEMU's NVMe device would make drivers
/// apply that device's quirks.
pub const VENDOR_ID: u16 = 0x1af4;

/// Names that a drive reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Serial number, up to 20 ASCII characters.
    pub serial: String,
    /// Model number, up to 40 ASCII characters.
    pub model: String,
    /// Firmware revision, 1 to 8 ASCII characters.
    pub firmware: String,
    /// NVM subsystem NQN.
    pub nqn: String,
}

impl Identity {
    /// Returns the NQN of a subsystem with this serial number. The same serial number gives the
    /// same NQN, in the form for owners of no domain (Base Specification, "NVMe Qualified Names").
    pub fn default_nqn(serial: &str) -> String {
        let uuid = Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("WARP drive {serial}").as_bytes());
        format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}")
    }
}

/// Configuration of a subsystem.
#[derive(Clone, Debug)]
pub struct SubsystemConfig {
    /// Names that the drive reports.
    pub identity: Identity,
    /// Device of the profile, which is FDP configuration 0.
    pub device: DeviceConfig,
    /// A new drive has Flexible Data Placement enabled.
    pub fdp: bool,
    /// A new drive has one namespace that covers its whole capacity.
    pub namespace: bool,
    /// LBA format of that namespace, an index into [`crate::namespace::FORMATS`].
    pub format: u8,
    /// Time that a reclaim unit may stay open, in seconds, or 0 for no limit (ERUTL).
    pub reclaim_unit_time_limit_s: u32,
    /// Most concurrent controllers.
    pub controllers_max: u16,
    /// I/O queue pairs of each controller.
    pub io_queues_max: u16,
}

/// Error of [`crate::Subsystem::new`] or [`crate::Subsystem::restore`].
#[derive(Debug, Error)]
pub enum SetupError {
    /// The device configuration is invalid.
    #[error(transparent)]
    Device(#[from] ConfigError),
    /// The storage failed.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The stored data belongs to another drive.
    #[error("{0}")]
    Mismatch(String),
}

pub(crate) fn check_endurance_group(group: u16, place: Parameter) -> Result<(), Failure> {
    if group == ENDURANCE_GROUP {
        return Ok(());
    }
    let cause = format!("endurance group {group} does not exist. The only one is {ENDURANCE_GROUP}");
    Err(Failure::invalid_field(place, cause))
}
