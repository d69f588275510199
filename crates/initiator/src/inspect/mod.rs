//! Reads the FDP state of any drive over NVMe/TCP or through this machine's kernel.
//!
//! ```text
//! CommandPort (NVMe/TCP initiator, kernel passthrough) -> get_log -> decode
//!   -> FdpReport: complete report, once
//!   -> feedback_logs: changing logs, repeatedly
//! file system -> file_map: locations of its files on the namespace
//! ```
//!
//! This module sends only commands that read, so it is safe on a drive in use. [`crate::drive`]
//! sends commands that write.

pub mod decode;
pub mod feedback_logs;
pub mod file_map;
pub mod passthrough;
pub mod remote;

use nvme_spec::command::{GetFeaturesCdw10, IoManagementCdw10, SubmissionEntry};
use nvme_spec::fdp::{FdpConfigurationsHeader, LSP_CONTROLLER_EVENTS, LSP_HOST_EVENTS, MO_RUH_STATUS, RuhStatusHeader};
use nvme_spec::identify::Cns;
use nvme_spec::ocp::{SMART_EXTENDED_GUID, SmartExtendedLog};
use nvme_spec::{AdminOpcode, FeatureId, IdentifyController, IoOpcode, LogId, Status};
use serde::Serialize;
use zerocopy::FromBytes;

use crate::command::{identify_command, log_page_command};
use decode::{DecodeError, FdpByteCounts, FdpConfiguration, FdpEventRecord, HandleStatus, HandleUse};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    Admin,
    Io,
}

#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error("{target}: {problem}")]
    Unreachable { target: String, problem: String },
    #[error("{command} with \"{status}\"")]
    Refused {
        /// Drive and command, such as "/dev/nvme0 rejected command 0x02".
        command: String,
        status: Status,
    },
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Port that sends reading commands to a drive.
pub trait CommandPort {
    /// Sends a command, fills `data` with the returned data and returns dword 0 of the completion.
    fn receive(&mut self, queue: QueueKind, entry: SubmissionEntry, data: &mut [u8]) -> Result<u32, InspectError>;
}

impl<P: CommandPort + ?Sized> CommandPort for Box<P> {
    fn receive(&mut self, queue: QueueKind, entry: SubmissionEntry, data: &mut [u8]) -> Result<u32, InspectError> {
        (**self).receive(queue, entry, data)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FdpReport {
    pub model: String,
    pub serial: String,
    pub firmware: String,
    pub supported: bool,
    pub configurations: Vec<FdpConfiguration>,
    /// State of FDP, `None` if FDP is disabled.
    pub enabled: Option<PlacementState>,
}

/// Part of the report that exists while FDP is enabled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacementState {
    pub usage: Vec<HandleUse>,
    pub statistics: FdpByteCounts,
    /// Host events, oldest first.
    pub host_events: Vec<FdpEventRecord>,
    /// Controller events, oldest first.
    pub controller_events: Vec<FdpEventRecord>,
    pub namespaces: Vec<NamespaceHandles>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceHandles {
    pub nsid: u32,
    pub handles: Vec<HandleStatus>,
}

/// Reads the complete FDP state of an endurance group.
pub fn report(port: &mut impl CommandPort, endurance_group: u16) -> Result<FdpReport, InspectError> {
    let mut bytes = identify(port, Cns::Controller, 0)?;
    let controller = IdentifyController::read_from_bytes(&bytes).expect("the request was for 4096 bytes");
    let supported = controller.ctratt.fdps();
    let configurations =
        if supported { decode::configurations(&whole_configurations(port, endurance_group)?)? } else { Vec::new() };
    let statistics = get_log(port, LogId::FdpStatistics, 0, endurance_group, 64);
    let enabled = match statistics {
        Ok(page) => {
            bytes = identify(port, Cns::ActiveNamespaceList, 0)?;
            let nsids = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
            let mut namespaces = Vec::new();
            for nsid in nsids.take_while(|&nsid| nsid != 0) {
                namespaces
                    .push(NamespaceHandles { nsid, handles: decode::handle_status(&handle_status(port, nsid)?)? });
            }
            Some(PlacementState {
                usage: decode::usage(&usage(port, endurance_group)?)?,
                statistics: decode::statistics(&page)?,
                host_events: events(port, endurance_group, LSP_HOST_EVENTS)?,
                controller_events: events(port, endurance_group, LSP_CONTROLLER_EVENTS)?,
                namespaces,
            })
        }
        Err(InspectError::Refused { status, .. }) if status == Status::FDP_DISABLED || !supported => None,
        Err(error) => return Err(error),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    Ok(FdpReport {
        model: text(&controller.mn),
        serial: text(&controller.sn),
        firmware: text(&controller.fr),
        supported,
        configurations,
        enabled,
    })
}

/// Reads the events of one of the two logs.
pub fn events(
    port: &mut impl CommandPort,
    endurance_group: u16,
    specific: u8,
) -> Result<Vec<FdpEventRecord>, InspectError> {
    /// Size of the header and 63 events, bytes.
    const PAGE_BYTES: usize = 64 + 63 * 64;
    Ok(decode::events(&get_log(port, LogId::FdpEvents, specific, endurance_group, PAGE_BYTES)?)?)
}

/// Reads the configurations page. Its header gives its length.
fn whole_configurations(port: &mut impl CommandPort, endurance_group: u16) -> Result<Vec<u8>, InspectError> {
    /// Size limit, bytes. It is above the need of 128 handles in each of 16 configurations. Larger
    /// sizes are not trusted.
    const PAGE_BYTES_MAX: usize = 64 << 10;
    let header = get_log(port, LogId::FdpConfigurations, 0, endurance_group, size_of::<FdpConfigurationsHeader>())?;
    let header = FdpConfigurationsHeader::read_from_bytes(&header).expect("the answer has the requested length");
    let bytes = (header.sze.get() as usize).clamp(16, PAGE_BYTES_MAX).next_multiple_of(4);
    get_log(port, LogId::FdpConfigurations, 0, endurance_group, bytes)
}

fn usage(port: &mut impl CommandPort, endurance_group: u16) -> Result<Vec<u8>, InspectError> {
    let header = get_log(port, LogId::ReclaimUnitHandleUsage, 0, endurance_group, 8)?;
    let handles = usize::from(u16::from_le_bytes([header[0], header[1]]));
    get_log(port, LogId::ReclaimUnitHandleUsage, 0, endurance_group, 8 + handles * 8)
}

fn handle_status(port: &mut impl CommandPort, nsid: u32) -> Result<Vec<u8>, InspectError> {
    let mut read = |bytes: usize| {
        let mut data = vec![0; bytes];
        let entry = SubmissionEntry {
            opcode: IoOpcode::IoManagementReceive.code(),
            nsid: nsid.into(),
            cdw10: IoManagementCdw10::new().with_mo(MO_RUH_STATUS).into_bits().into(),
            cdw11: (bytes as u32 / 4 - 1).into(),
            ..SubmissionEntry::default()
        };
        port.receive(QueueKind::Io, entry, &mut data)?;
        Ok::<_, InspectError>(data)
    };
    let header = read(size_of::<RuhStatusHeader>())?;
    read(16 + usize::from(u16::from_le_bytes([header[14], header[15]])) * 32)
}

/// Reads an Identify data structure.
pub fn identify(port: &mut impl CommandPort, cns: Cns, nsid: u32) -> Result<Vec<u8>, InspectError> {
    let mut data = vec![0; nvme_spec::IDENTIFY_SIZE];
    port.receive(QueueKind::Admin, identify_command(cns, nsid), &mut data)?;
    Ok(data)
}

/// Reads a log page of an endurance group from its start. `bytes` must be a multiple of 4.
pub fn get_log(
    port: &mut impl CommandPort,
    log: LogId,
    specific: u8,
    endurance_group: u16,
    bytes: usize,
) -> Result<Vec<u8>, InspectError> {
    let mut data = vec![0; bytes];
    let entry = log_page_command(log, specific, endurance_group, 0, bytes as u32);
    port.receive(QueueKind::Admin, entry, &mut data)?;
    Ok(data)
}

/// Reads the OCP page C0h. `None` if the drive lacks it. Other vendors use the same number for their
/// own pages.
pub fn ocp_smart_log(port: &mut impl CommandPort) -> Result<Option<SmartExtendedLog>, InspectError> {
    match get_log(port, LogId::SmartExtended, 0, 0, size_of::<SmartExtendedLog>()) {
        Ok(page) => {
            let page = SmartExtendedLog::read_from_bytes(&page).expect("the answer has the requested length");
            Ok((page.lpg == SMART_EXTENDED_GUID).then_some(page))
        }
        Err(InspectError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the current value of a feature, dword 0 of the completion. `data` receives the feature's
/// data, if it has any.
pub fn get_feature(
    port: &mut impl CommandPort,
    feature: FeatureId,
    nsid: u32,
    dword11: u32,
    data: &mut [u8],
) -> Result<u32, InspectError> {
    let entry = SubmissionEntry {
        opcode: AdminOpcode::GetFeatures.code(),
        nsid: nsid.into(),
        cdw10: GetFeaturesCdw10::new().with_fid(feature.code()).into_bits().into(),
        cdw11: dword11.into(),
        ..SubmissionEntry::default()
    };
    port.receive(QueueKind::Admin, entry, data)
}
