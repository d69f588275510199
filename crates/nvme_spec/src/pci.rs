//! Configuration space and MSI-X table of an NVMe function on PCI Express. Sources are the PCIe
//! Transport Specification and the PCI standards.
//!
//! The module has only the type 0 header and the power management, MSI-X and PCI Express
//! capabilities. The function chooses the places of the capabilities. MSI, AER, SR-IOV and the
//! extended capabilities are missing.

use zerocopy::little_endian::{U16, U32};

/// Base class code, mass storage controller.
pub const CLASS_MASS_STORAGE: u8 = 0x01;
/// Sub class code, non-volatile memory controller.
pub const SUBCLASS_NVM: u8 = 0x08;
/// Programming interface, NVM Express I/O controller.
pub const PROG_IF_NVME: u8 = 0x02;
/// Programming interface, NVM Express administrative controller.
pub const PROG_IF_NVME_ADMIN: u8 = 0x03;
/// Vendor identifier of Red Hat, whose device identifiers below are for emulated devices.
pub const VENDOR_RED_HAT: u16 = 0x1b36;
/// Device identifier of QEMU's NVMe controller (vendor [`VENDOR_RED_HAT`]).
pub const DEVICE_QEMU_NVME: u16 = 0x0010;
/// Size in bytes of the configuration space that PCI defines.
pub const CONFIG_SPACE_SIZE: usize = 256;
/// Size in bytes of the configuration space that PCI Express defines.
pub const EXTENDED_CONFIG_SPACE_SIZE: usize = 4096;

/// Capability identifier, power management.
pub const CAP_ID_POWER_MANAGEMENT: u8 = 0x01;
/// Capability identifier, message signaled interrupts.
pub const CAP_ID_MSI: u8 = 0x05;
/// Capability identifier, PCI Express.
pub const CAP_ID_PCI_EXPRESS: u8 = 0x10;
/// Capability identifier, MSI-X.
pub const CAP_ID_MSIX: u8 = 0x11;

layout! {
    /// Configuration space header, type 0.
    ConfigHeader(64) {
        /// Vendor ID.
        vendor_id @ 0: U16,
        /// Device ID.
        device_id @ 2: U16,
        /// Command.
        command @ 4: PciCommand,
        /// Status.
        status @ 6: PciStatus,
        /// Revision ID.
        revision_id @ 8: u8,
        /// Class code, programming interface.
        prog_if @ 9: u8,
        /// Class code, sub class.
        sub_class @ 10: u8,
        /// Class code, base class.
        base_class @ 11: u8,
        /// Cache Line Size.
        cache_line_size @ 12: u8,
        /// Master Latency Timer.
        latency_timer @ 13: u8,
        /// Header Type 0. Bit 7 marks a device with several functions.
        header_type @ 14: u8,
        /// Built In Self Test.
        bist @ 15: u8,
        /// Base address registers. BAR0 and BAR1 of an NVMe function form one 64-bit memory
        /// register ([`BAR_MEMORY_64`]).
        bars @ 16: [U32; 6],
        /// CardBus CIS Pointer.
        cardbus_cis @ 40: U32,
        /// Subsystem Vendor ID.
        subsystem_vendor_id @ 44: U16,
        /// Subsystem ID.
        subsystem_id @ 46: U16,
        /// Expansion ROM.
        expansion_rom @ 48: U32,
        /// Capabilities Pointer, offset of the first capability.
        capabilities_pointer @ 52: u8,
        _reserved53 @ 53: [u8; 7],
        /// Interrupt Line.
        interrupt_line @ 60: u8,
        /// Interrupt Pin (0 for none, 1 for INTA).
        interrupt_pin @ 61: u8,
        /// Minimum Grant.
        min_grant @ 62: u8,
        /// Maximum Latency.
        max_latency @ 63: u8,
    }
}

/// Low bits of a base address register for 64-bit memory that is not prefetchable.
pub const BAR_MEMORY_64: u32 = 0x4;

layout! {
    /// PCI command register.
    PciCommand(U16) {
        /// I/O Space Enable.
        io_space: bool,
        /// Memory Space Enable.
        memory_space: bool,
        /// Bus Master Enable.
        bus_master: bool,
        __(3): u8,
        /// Parity Error Response.
        parity_error_response: bool,
        __: bool,
        /// SERR# Enable.
        serr_enable: bool,
        __: bool,
        /// Interrupt Disable.
        interrupt_disable: bool,
        __(5): u8,
    }

    /// PCI status register.
    PciStatus(U16) {
        __(3): u8,
        /// Interrupt Status.
        interrupt_status: bool,
        /// Capabilities List.
        capabilities_list: bool,
        __(11): u16,
    }

    /// PCI Power Management capability.
    PowerManagementCapability(8) {
        /// Capability ID, [`CAP_ID_POWER_MANAGEMENT`].
        cap_id @ 0: u8,
        /// Next Capability.
        next @ 1: u8,
        /// Power Management Capabilities, bits 2:0 version (3).
        pmc @ 2: U16,
        /// Power Management Control and Status.
        pmcs @ 4: PowerManagementControl,
        /// Bridge extensions.
        bse @ 6: u8,
        /// Data.
        data @ 7: u8,
    }

    /// Power Management Control and Status.
    PowerManagementControl(U16) {
        /// Power State (0 for D0 to 3 for D3hot).
        ps(2): u8,
        __: bool,
        /// No Soft Reset. The transition from D3hot to D0 does not reset the function.
        nsfrst: bool,
        __(12): u16,
    }

    /// MSI-X capability.
    MsixCapability(12) {
        /// Capability ID, [`CAP_ID_MSIX`].
        cap_id @ 0: u8,
        /// Next Capability.
        next @ 1: u8,
        /// Message Control.
        mxc @ 2: MsixControl,
        /// Table offset and BAR indicator.
        mtab @ 4: MsixLocation,
        /// Pending bit array offset and BAR indicator.
        mpba @ 8: MsixLocation,
    }

    /// MSI-X Message Control.
    MsixControl(U16) {
        /// Table Size, zeroes based.
        ts(11): u16,
        __(3): u8,
        /// Function Mask.
        fm: bool,
        /// MSI-X Enable.
        mxe: bool,
    }

    /// Location of the MSI-X table or the pending bit array.
    MsixLocation(U32) {
        /// BAR Indicator Register.
        bir(3): u8,
        /// Offset into the BAR in units of 8 bytes. The word with its low three bits cleared is the
        /// offset in bytes.
        offset8(29): u32,
    }

    /// PCI Express capability, version 2, of an endpoint.
    PciExpressCapability(60) {
        /// Capability ID, [`CAP_ID_PCI_EXPRESS`].
        cap_id @ 0: u8,
        /// Next Capability.
        next @ 1: u8,
        /// PCI Express Capabilities.
        pxcap @ 2: PxCap,
        /// Device Capabilities.
        pxdcap @ 4: PxDeviceCap,
        /// Device Control.
        pxdc @ 8: PxDeviceControl,
        /// Device Status.
        pxds @ 10: PxDeviceStatus,
        /// Link Capabilities.
        pxlcap @ 12: PxLinkCap,
        /// Link Control.
        pxlc @ 16: U16,
        /// Link Status, bits 3:0 speed, bits 9:4 width.
        pxls @ 18: U16,
        /// Slot Capabilities, Control and Status, unused by endpoints.
        slot @ 20: [u8; 8],
        /// Root Control, Capabilities and Status, unused by endpoints.
        root @ 28: [u8; 8],
        /// Device Capabilities 2.
        pxdcap2 @ 36: U32,
        /// Device Control 2.
        pxdc2 @ 40: U16,
        /// Device Status 2.
        pxds2 @ 42: U16,
        /// Link Capabilities 2.
        pxlcap2 @ 44: U32,
        /// Link Control 2.
        pxlc2 @ 48: U16,
        /// Link Status 2.
        pxls2 @ 50: U16,
        /// Slot Capabilities, Control and Status 2, unused by endpoints.
        slot2 @ 52: [u8; 8],
    }

    /// PCI Express Capabilities.
    PxCap(U16) {
        /// Capability Version, 2.
        ver(4): u8,
        /// Device/Port Type (0 endpoint, 9 root complex integrated endpoint).
        dpt(4): u8,
        /// Slot Implemented.
        si: bool,
        /// Interrupt Message Number.
        imn(5): u8,
        __(2): u8,
    }

    /// Device Capabilities.
    PxDeviceCap(U32) {
        /// Max Payload Size Supported, `128 << mps` bytes.
        mps(3): u8,
        /// Phantom Functions Supported.
        pfs(2): u8,
        /// Extended Tag Field Supported.
        etfs: bool,
        /// Endpoint L0s Acceptable Latency.
        l0sl(3): u8,
        /// Endpoint L1 Acceptable Latency.
        l1l(3): u8,
        __(3): u8,
        /// Role-based Error Reporting.
        rer: bool,
        __(2): u8,
        /// Captured Slot Power Limit Value.
        csplv: u8,
        /// Captured Slot Power Limit Scale.
        cspls(2): u8,
        /// Function Level Reset Capability.
        flrc: bool,
        __(3): u8,
    }

    /// Device Control.
    PxDeviceControl(U16) {
        /// Correctable Error Reporting Enable.
        cere: bool,
        /// Non-Fatal Error Reporting Enable.
        nfere: bool,
        /// Fatal Error Reporting Enable.
        fere: bool,
        /// Unsupported Request Reporting Enable.
        urre: bool,
        /// Enable Relaxed Ordering.
        ero: bool,
        /// Max Payload Size, `128 << mps` bytes.
        mps(3): u8,
        /// Extended Tag Enable.
        ete: bool,
        /// Phantom Functions Enable.
        pfe: bool,
        /// AUX Power PM Enable.
        appme: bool,
        /// Enable No Snoop.
        ens: bool,
        /// Max Read Request Size, `128 << mrrs` bytes.
        mrrs(3): u8,
        /// Initiate Function Level Reset, always reads 0.
        iflr: bool,
    }

    /// Device Status.
    PxDeviceStatus(U16) {
        /// Correctable Error Detected.
        ced: bool,
        /// Non-Fatal Error Detected.
        nfed: bool,
        /// Fatal Error Detected.
        fed: bool,
        /// Unsupported Request Detected.
        urd: bool,
        /// AUX Power Detected.
        apd: bool,
        /// Transactions Pending.
        tp: bool,
        __(10): u16,
    }

    /// Link Capabilities.
    PxLinkCap(U32) {
        /// Supported Link Speeds, 1 for 2.5 GT/s to 5 for 32 GT/s.
        sls(4): u8,
        /// Maximum Link Width, lanes.
        mlw(6): u8,
        /// Active State Power Management Support.
        aspms(2): u8,
        __(12): u16,
        /// Port Number.
        pn: u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn capability_bytes() {
        let msix = MsixCapability {
            cap_id: CAP_ID_MSIX,
            next: 0,
            mxc: MsixControl::new().with_ts(31).with_mxe(true),
            mtab: MsixLocation::new().with_bir(0).with_offset8(0x2000 / 8),
            mpba: MsixLocation::new().with_bir(0).with_offset8(0x3000 / 8),
        };
        assert_eq!(msix.as_bytes(), [0x11, 0, 31, 0x80, 0, 0x20, 0, 0, 0, 0x30, 0, 0]);
        assert_eq!(PxDeviceCap::new().with_flrc(true).into_bits().get(), 1 << 28);
        assert_eq!(PxDeviceCap::new().with_rer(true).into_bits().get(), 1 << 15);
        assert_eq!(PxDeviceControl::new().with_iflr(true).into_bits().get(), 1 << 15);
    }
}
