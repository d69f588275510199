//! Facts that a drive reports about itself, without measurement.

use initiator::drive::{DataPort, OpenNamespace, WearCounter};
use initiator::inspect::feedback_logs::{self, WatchError};
use initiator::inspect::identify;
use nvme_spec::identify::Cns;
use nvme_spec::{IdentifyController, IdentifyNamespace};
use serde::{Deserialize, Serialize};
use zerocopy::FromBytes;

pub const FORMAT: &str = "warp-characterization";
/// Version of the folder. It increases when a key or column is removed or changes its meaning.
pub const VERSION: u32 = 1;
/// Smallest request of a probe, bytes.
const REQUEST_BYTES_MIN: u64 = 4096;

/// Contents of `drive.json`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct DriveIdentity {
    pub format: String,
    pub version: u32,
    /// Day on which the characterization began, as YYYY-MM-DD.
    pub date: String,
    /// Target as the user typed it.
    pub target: String,
    pub model: String,
    pub serial: String,
    pub firmware: String,
    pub capacity_bytes: u64,
    pub block_bytes: u64,
    /// Preferred write granularity (NPWG), at least 4 KiB.
    pub write_granularity_bytes: u64,
    /// Counter of media bytes: "fdp", "ocp", or `None`.
    pub counter: Option<String>,
    pub fdp: Option<FdpIdentity>,
    /// Sentences on data that the drive does not report.
    pub missing: Vec<String>,
}

/// Enabled FDP configuration.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct FdpIdentity {
    /// Placement handles of the namespace.
    pub handles: u32,
    /// Isolation of the reclaim unit handle of each placement handle.
    pub isolation: Vec<String>,
    pub reclaim_unit_bytes: u64,
    pub reclaim_groups: u32,
    pub endurance_group: u16,
    /// Bytes that a host can write to a reclaim unit, measured by RUAMW.
    pub reclaim_unit_writable_bytes: Option<u64>,
}

impl DriveIdentity {
    pub fn read(drive: &mut OpenNamespace<impl DataPort>, target: &str) -> Result<DriveIdentity, WatchError> {
        let nsid = drive.nsid();
        let controller = identify(drive.port(), Cns::Controller, 0)?;
        let controller = IdentifyController::read_from_bytes(&controller).expect("the request was for 4096 bytes");
        let namespace = identify(drive.port(), Cns::Namespace, nsid)?;
        let namespace = IdentifyNamespace::read_from_bytes(&namespace).expect("the request was for 4096 bytes");
        let block_bytes = drive.block_bytes();
        let granularity = match namespace.nsfeat.optperf() {
            0 => block_bytes,
            _ => (u64::from(namespace.npwg.get()) + 1) * block_bytes,
        };
        let mut missing = Vec::new();
        let fdp = match drive.placement().map(|namespace| namespace.endurance_group) {
            Ok(endurance_group) => Some(read_fdp(drive, endurance_group)?),
            Err(error) => {
                let reason = match error {
                    WatchError::Disabled { .. } => "FDP is disabled",
                    _ => "the drive does not support FDP",
                };
                missing.push(format!("Handles are not measured, because {reason}."));
                None
            }
        };
        let counter = drive.counter().map(|counter| match counter {
            WearCounter::Fdp => "fdp",
            WearCounter::Ocp => "ocp",
        });
        if counter.is_none() {
            missing.push(
                "Media bytes are unknown, because the drive has no FDP statistics and no OCP log C0h, or they are not \
                 used. Write amplification is relative to the uniform probe, from the rates of the host."
                    .to_string(),
            );
        }
        // The texts of a drive reach the terminal and the name of a folder.
        let text = |bytes: &[u8]| {
            let text: String = String::from_utf8_lossy(bytes).chars().filter(|letter| !letter.is_control()).collect();
            text.trim().to_string()
        };
        Ok(DriveIdentity {
            format: FORMAT.to_string(),
            version: VERSION,
            date: chrono::Utc::now().format("%Y-%m-%d").to_string(),
            target: target.to_string(),
            model: text(&controller.mn),
            serial: text(&controller.sn),
            firmware: text(&controller.fr),
            capacity_bytes: drive.bytes(),
            block_bytes,
            write_granularity_bytes: granularity.clamp(REQUEST_BYTES_MIN, 1 << 20),
            counter: counter.map(str::to_string),
            fdp,
            missing,
        })
    }

    /// Returns true if two identities are those of the same drive with the same configuration.
    pub fn is_same_drive(&self, other: &DriveIdentity) -> bool {
        let plain = |identity: &DriveIdentity| {
            let fdp = identity.fdp.clone().map(|fdp| FdpIdentity { reclaim_unit_writable_bytes: None, ..fdp });
            // The day and the address may differ.
            DriveIdentity { date: String::new(), target: String::new(), fdp, ..identity.clone() }
        };
        plain(self) == plain(other)
    }
}

fn read_fdp(drive: &mut OpenNamespace<impl DataPort>, endurance_group: u16) -> Result<FdpIdentity, WatchError> {
    let nsid = drive.nsid();
    let enabled = feedback_logs::enabled_configuration(drive.port(), endurance_group)?.ok_or_else(|| {
        let problem = "the drive does not list its enabled FDP configuration".to_string();
        WatchError::Implausible { nsid, problem }
    })?;
    let kind = |handle: u16| {
        let kind = enabled.handles.get(usize::from(handle)).map_or("unknown", String::as_str);
        kind.replace(' ', "_")
    };
    Ok(FdpIdentity {
        handles: drive.handles().len() as u32,
        isolation: drive.handles().iter().map(|handle| kind(handle.reclaim_unit_handle)).collect(),
        reclaim_unit_bytes: enabled.reclaim_unit_bytes,
        reclaim_groups: enabled.reclaim_groups,
        endurance_group,
        reclaim_unit_writable_bytes: None,
    })
}
