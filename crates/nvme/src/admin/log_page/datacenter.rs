//! The log pages of the Datacenter NVMe SSD Specification. They have the data for write
//! amplification without FDP, panic recovery, slow commands ([`crate::latency_monitor`]) and the
//! capabilities of the drive.
//!
//! All values follow from counters of the device and the controller. The modelled flash has no
//! errors, no system area and no throttling, and its capacitor does not age. The media units
//! written include the overhead (`geometry.media_overhead_share`). A panic of the drive ends its
//! process. The related fields have the values of a drive without such events.

use nvme_spec::LogId;
use nvme_spec::ocp::{
    DEVICE_CAPABILITIES_GUID, DEVICE_CAPABILITIES_VERSION, DatasetManagementSupport, DeviceCapabilitiesLog,
    DssdPowerState, ERROR_RECOVERY_GUID, ERROR_RECOVERY_VERSION, ErrorRecoveryLog, SMART_EXTENDED_GUID,
    SMART_EXTENDED_VERSION, SanitizeSupport, SmartExtendedLog, WriteUncorrectableSupport, WriteZeroesSupport,
};

use super::bytes_of;
use super::health::wide;
use crate::admin::identify::POWER_MAX_CW;
use crate::controller::HostTransport;
use crate::subsystem::Subsystem;

const MAJOR_VERSION: u8 = 2;
/// Full value, in percent, of normalized bad block counts and capacitor health.
const WHOLE: u16 = 100;
/// Device Recovery Action 1 for no required action.
const NO_ACTION: u8 = 1;
/// Device Capabilities of Error Recovery. Controller Fatal Status shows a failed controller.
const TELLS_BY_CFS: u32 = 1 << 1;

impl Subsystem {
    pub(super) fn datacenter_page(&self, id: u16, log: LogId) -> Vec<u8> {
        match log {
            LogId::SmartExtended => bytes_of(self.smart_extended_page()),
            LogId::ErrorRecovery => bytes_of(error_recovery_page()),
            LogId::LatencyMonitor => bytes_of(self.state.latency_monitor.page()),
            LogId::DeviceCapabilities => bytes_of(capabilities_page(self.controller(id).transport)),
            other => panic!("{other} is not a log page of the OCP specification"),
        }
    }

    fn smart_extended_page(&self) -> SmartExtendedLog {
        let counted = &self.state.smart;
        let stats = self.device.stats();
        let wear = self.device.wear();
        // Garbage collection and wear levelling read the pages that they copy.
        let pages_copied = stats.total().gc_pages_copied + stats.total().wear_levelling_pages;
        let media_bytes_read = counted.host_bytes_read + pages_copied * stats.page_bytes;
        SmartExtendedLog {
            pmuw: wide(stats.media_bytes_written()),
            pmur: wide(media_bytes_read),
            bunbn: WHOLE.into(),
            bsnbn: WHOLE.into(),
            urec: counted.media_errors.into(),
            mxudec: wear.most_erases.into(),
            mnudec: wear.fewest_erases.into(),
            mavf: MAJOR_VERSION,
            pfb: self.free_percent(),
            cph: WHOLE.into(),
            uio: counted.unaligned_writes.into(),
            nuse: self.namespaces().map(|(_, namespace)| namespace.blocks).sum::<u64>().into(),
            psc: wide(counted.unsafe_shutdowns),
            eest: wide(self.endurance_estimate()),
            lpv: SMART_EXTENDED_VERSION.into(),
            lpg: SMART_EXTENDED_GUID,
            ..SmartExtendedLog::default()
        }
    }

    /// Percentage of the blocks outside all reclaim units.
    fn free_percent(&self) -> u8 {
        let pages = u64::from(self.device.layout().physical_pages);
        let taken: u64 = self.device.occupancy().iter().map(|owner| owner.pages).sum();
        assert!(taken <= pages, "reclaim units of {taken} pages are on a drive of {pages}");
        ((pages - taken) * 100 / pages) as u8
    }
}

fn error_recovery_page() -> ErrorRecoveryLog {
    ErrorRecoveryLog {
        device_recovery_action_1: NO_ACTION,
        device_capabilities: TELLS_BY_CFS.into(),
        lpv: ERROR_RECOVERY_VERSION.into(),
        lpg: ERROR_RECOVERY_GUID,
        ..ErrorRecoveryLog::default()
    }
}

/// Device Capabilities (C4h). The drive was never tested for compliance. NVMe-IO-5
/// limits the times of Write Zeroes, which are those of the model.
fn capabilities_page(transport: HostTransport) -> DeviceCapabilitiesLog {
    let mut page = DeviceCapabilitiesLog {
        pcie_ports: u16::from(transport == HostTransport::Pcie).into(),
        write_zeroes: WriteZeroesSupport::new().with_supported(true).with_deac(true).with_fua(true).with_io_6(true),
        sanitize: SanitizeSupport::new()
            .with_supported(true)
            .with_crypto_erase(true)
            .with_block_erase(true)
            .with_deallocates(true),
        dataset_management: DatasetManagementSupport::new().with_supported(true).with_deallocate(true),
        write_uncorrectable: WriteUncorrectableSupport::new()
            .with_supported(true)
            .with_single(true)
            .with_most(true)
            .with_io_14(true),
        lpv: DEVICE_CAPABILITIES_VERSION.into(),
        lpg: DEVICE_CAPABILITIES_GUID,
        ..DeviceCapabilitiesLog::default()
    };
    // The only NVMe power state 0 serves every power limit that suffices for it.
    let least_w = POWER_MAX_CW.div_ceil(100);
    page.minimum_power_state = least_w.into();
    page.power_states[usize::from(least_w)..].fill(DssdPowerState::new().with_valid(true));
    page
}
