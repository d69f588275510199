//! The Get Log Page command, which returns the log pages of the drive and its controllers.
//!
//! ```text
//! Get Log Page -> Request (dwords, offset, RAE) -> the whole page -> the requested piece
//!                                                                 -> RAE = 0: its event is cleared
//! ```
//!
//! All pages are small, so each read builds the whole page and returns the requested piece. Bytes
//! beyond the end read as zeroes. Endurance groups are checked. Namespaces are checked only for
//! SMART, the only page that could belong to one, because clients send arbitrary identifiers.
//!
//! The transport provides the discovery log page. Telemetry, persistent events, LBA status, ANA and
//! lockdown are not supported.

mod datacenter;
mod effects;
mod health;

use nvme_spec::command::{GetLogPageCdw10, GetLogPageCdw11, GetLogPageCdw14, SubmissionEntry};
use nvme_spec::log::{ChangedNamespaceList, FirmwareSlotInformation, NvmeMiCommandsSupportedAndEffects};
use nvme_spec::{LogId, NSID_ALL, Status, ocp};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{Immutable, IntoBytes};

pub use health::COMPOSITE_TEMPERATURE_K;

use crate::completion::{CommandResult, Execution};
use crate::controller::ControllerKind;
use crate::error::{Failure, Parameter};
use crate::setup::{ENDURANCE_GROUP, check_endurance_group};
use crate::subsystem::Subsystem;
use crate::transfer::{Transfer, check_transfer_bytes};

/// UUIDs under which vendor specific log pages and features can be selected, from index 1 on.
pub(super) const UUIDS: [[u8; 16]; 1] = [ocp::UUID];

/// Log pages of an I/O controller.
const PAGES: [LogId; 20] = [
    LogId::SupportedLogPages,
    LogId::ErrorInformation,
    LogId::SmartHealth,
    LogId::FirmwareSlot,
    LogId::ChangedAttachedNamespaceList,
    LogId::CommandsSupportedAndEffects,
    LogId::DeviceSelfTest,
    LogId::EnduranceGroupInformation,
    LogId::EnduranceGroupEventAggregate,
    LogId::FeatureIdentifiersSupportedAndEffects,
    LogId::NvmeMiCommandsSupportedAndEffects,
    LogId::FdpConfigurations,
    LogId::ReclaimUnitHandleUsage,
    LogId::FdpStatistics,
    LogId::FdpEvents,
    LogId::SanitizeStatus,
    LogId::SmartExtended,
    LogId::ErrorRecovery,
    LogId::LatencyMonitor,
    LogId::DeviceCapabilities,
];

/// Log pages of a discovery controller. The transport provides the last one.
const DISCOVERY_PAGES: [LogId; 5] = [
    LogId::SupportedLogPages,
    LogId::ErrorInformation,
    LogId::CommandsSupportedAndEffects,
    LogId::FeatureIdentifiersSupportedAndEffects,
    LogId::Discovery,
];

#[derive(Debug)]
pub(crate) struct LogPageRequest {
    pub log: LogId,
    nsid: u32,
    /// Log Specific Parameter.
    parameter: u8,
    /// Log Specific Identifier, which is the endurance group.
    group: u16,
    command_set: u8,
    /// UUID Index that selects the vendor specific page. 0 if the host selects none.
    uuid_index: u8,
    /// Retain Asynchronous Event. Reading does not clear the page's event.
    retain_event: bool,
    offset_bytes: u64,
    bytes: u64,
}

/// Refuses an unknown UUID index. 0 means no selection.
pub(super) fn check_uuid_index(index: u8) -> Result<(), Failure> {
    if usize::from(index) > UUIDS.len() {
        let cause = format!("UUID index {index} is not in the UUID list");
        return Err(Failure::invalid_field(Parameter::dword(14, 0), cause));
    }
    Ok(())
}

fn bytes_of(page: impl IntoBytes + Immutable) -> Vec<u8> {
    page.as_bytes().to_vec()
}

fn unknown_page(code: u8) -> Failure {
    Failure::new(Status::INVALID_LOG_PAGE, format!("log page {code:#04x} is not supported")).at(Parameter::dword(10, 0))
}

fn parse(entry: &SubmissionEntry) -> Result<LogPageRequest, Failure> {
    let dword10 = GetLogPageCdw10::from_bits(entry.cdw10.get());
    let dword11 = GetLogPageCdw11::from_bits(entry.cdw11.get());
    let dword14 = GetLogPageCdw14::from_bits(entry.cdw14.get());
    let log = LogId::from_u8(dword10.lid()).ok_or_else(|| unknown_page(dword10.lid()))?;
    let dwords = u64::from(dword11.numdu()) << 16 | u64::from(dword10.numdl());
    let offset_bytes = u64::from(entry.cdw13.get()) << 32 | u64::from(entry.cdw12.get());
    if dword14.ot() {
        return Err(Failure::invalid_field(
            Parameter::dword(14, 23),
            format!("{log} does not support an index offset"),
        ));
    }
    if !offset_bytes.is_multiple_of(4) {
        let cause = format!("the offset {offset_bytes} is not a multiple of 4");
        return Err(Failure::invalid_field(Parameter::dword(12, 0), cause));
    }
    let bytes = check_transfer_bytes((dwords + 1) * 4, Parameter::dword(10, 16))?;
    Ok(LogPageRequest {
        log,
        nsid: entry.nsid.get(),
        parameter: dword10.lsp(),
        group: dword11.lsi(),
        command_set: dword14.csi(),
        uuid_index: dword14.uidx(),
        retain_event: dword10.rae(),
        offset_bytes,
        bytes,
    })
}

impl LogPageRequest {
    pub(super) fn transfer(&self) -> Transfer {
        Transfer::to_host(self.bytes)
    }
}

impl Subsystem {
    fn pages(&self, id: u16) -> &'static [LogId] {
        match self.controller(id).kind {
            ControllerKind::Io => &PAGES,
            ControllerKind::Discovery => &DISCOVERY_PAGES,
        }
    }

    pub(super) fn parse_log_page(&self, id: u16, entry: &SubmissionEntry) -> Result<LogPageRequest, Failure> {
        let request = parse(entry)?;
        if !self.pages(id).contains(&request.log) {
            return Err(unknown_page(request.log.code()));
        }
        Ok(request)
    }

    pub(super) fn get_log_page(&mut self, id: u16, request: &LogPageRequest, data: &mut Vec<u8>) -> CommandResult {
        let page = self.page(id, request)?;
        let tells_counters =
            [LogId::SmartHealth, LogId::EnduranceGroupInformation, LogId::FdpStatistics, LogId::SmartExtended];
        if tells_counters.contains(&request.log) {
            self.record_counters();
        }
        self.return_log_page(id, request, &page, data)
    }

    /// Returns the requested piece of a page.
    pub(crate) fn return_log_page(
        &mut self,
        id: u16,
        request: &LogPageRequest,
        page: &[u8],
        data: &mut Vec<u8>,
    ) -> CommandResult {
        let rest = usize::try_from(request.offset_bytes).ok().and_then(|offset| page.get(offset..));
        let Some(rest) = rest else {
            let (offset, size_bytes, log) = (request.offset_bytes, page.len(), request.log);
            let cause = format!("offset {offset} is beyond the {size_bytes} bytes of {log}");
            return Err(Failure::invalid_field(Parameter::dword(12, 0), cause));
        };
        data.clear();
        data.extend_from_slice(&rest[..rest.len().min(request.bytes as usize)]);
        data.resize(request.bytes as usize, 0);
        assert_eq!(data.len(), request.transfer().bytes, "the answer has the requested length");
        if !request.retain_event {
            self.controllers.get_mut(id).note_log_read(request.log);
        }
        Ok(Execution::DONE)
    }

    fn page(&self, id: u16, request: &LogPageRequest) -> Result<Vec<u8>, Failure> {
        let is_of_group = matches!(
            request.log,
            LogId::EnduranceGroupInformation
                | LogId::FdpConfigurations
                | LogId::ReclaimUnitHandleUsage
                | LogId::FdpStatistics
                | LogId::FdpEvents
        );
        if is_of_group {
            check_endurance_group(request.group, Parameter::dword(11, 16))?;
        }
        Ok(match request.log {
            LogId::SupportedLogPages => bytes_of(self.supported_pages(id)),
            LogId::ErrorInformation => self.controller(id).errors.page(),
            LogId::SmartHealth => {
                if request.nsid != 0 && request.nsid != NSID_ALL {
                    let cause = "the log page describes the whole drive. Use NSID 0 or FFFFFFFFh";
                    return Err(Failure::invalid_field(Parameter::NSID, cause));
                }
                bytes_of(self.smart_page(id))
            }
            LogId::FirmwareSlot => bytes_of(self.firmware_page()),
            LogId::ChangedAttachedNamespaceList => bytes_of(self.changed_namespaces_page(id)),
            LogId::CommandsSupportedAndEffects => bytes_of(self.command_effects_page(id, request.command_set)),
            LogId::DeviceSelfTest => bytes_of(self.self_test_page()),
            LogId::EnduranceGroupInformation => bytes_of(self.endurance_group_page()),
            LogId::EnduranceGroupEventAggregate => self.group_events_page(id),
            LogId::FeatureIdentifiersSupportedAndEffects => bytes_of(self.feature_effects_page(id)),
            // The drive supports no NVMe-MI commands.
            LogId::NvmeMiCommandsSupportedAndEffects => bytes_of(NvmeMiCommandsSupportedAndEffects::default()),
            LogId::FdpConfigurations => self.fdp_configurations_page(),
            LogId::ReclaimUnitHandleUsage | LogId::FdpStatistics | LogId::FdpEvents => {
                self.enabled_fdp_page(request.log, request.parameter)?
            }
            LogId::SanitizeStatus => bytes_of(self.sanitize_page()),
            LogId::SmartExtended | LogId::ErrorRecovery | LogId::LatencyMonitor | LogId::DeviceCapabilities => {
                check_uuid_index(request.uuid_index)?;
                self.datacenter_page(id, request.log)
            }
            other => return Err(unknown_page(other.code())),
        })
    }

    fn firmware_page(&self) -> FirmwareSlotInformation {
        /// Active Firmware Info. Slot 1 is active, also after the next reset.
        const SLOT_1: u8 = 1;
        let mut page = FirmwareSlotInformation { afi: SLOT_1, ..FirmwareSlotInformation::default() };
        let revision = self.config.identity.firmware.bytes().chain(std::iter::repeat(b' '));
        for (place, character) in page.frs[0].iter_mut().zip(revision) {
            *place = character;
        }
        page
    }

    fn changed_namespaces_page(&self, id: u16) -> ChangedNamespaceList {
        let mut page = ChangedNamespaceList::default();
        for (place, nsid) in page.nsid.iter_mut().zip(self.controller(id).async_events.changed_namespaces()) {
            *place = nsid.into();
        }
        page
    }

    /// Endurance groups with an event, a count followed by their identifiers.
    fn group_events_page(&self, id: u16) -> Vec<u8> {
        let with_event = self.controller(id).async_events.has_group_event();
        let groups: &[U16] = if with_event { &[U16::new(ENDURANCE_GROUP)] } else { &[] };
        let mut page = U64::new(groups.len() as u64).as_bytes().to_vec();
        page.extend_from_slice(groups.as_bytes());
        page
    }
}
