//! Configuration space and MSI-X table of an NVMe function on PCI Express. Sources are the PCIe
//! Transport Specification and the PCI standards.
//!
//! The module has only the type 0 header and the power management, MSI-X and PCI Express
//! capabilities. The function chooses the places of the capabilities. MSI, AER, SR-IOV and the
//! extended capabilities are missing.

use zerocopy::little_endian::{U16, U32};

pub const CLASS_MASS_STORAGE: u8 = 0x01;
pub const SUBCLASS_NVM: u8 = 0x08;
pub const PROG_IF_NVME: u8 = 0x02;
/// Size in bytes of the configuration space that PCI Express defines.
pub const EXTENDED_CONFIG_SPACE_SIZE: usize = 4096;

pub const CAP_ID_POWER_MANAGEMENT: u8 = 0x01;
pub const CAP_ID_PCI_EXPRESS: u8 = 0x10;
pub const CAP_ID_MSIX: u8 = 0x11;

layout! {
    /// Configuration space header, type 0.
    ConfigHeader(64) {
        vendor_id @ 0: U16 => "Vendor ID.",
        device_id @ 2: U16 => "Device ID.",
        command @ 4: PciCommand => "Command.",
        status @ 6: PciStatus => "Status.",
        revision_id @ 8: u8 => "Revision ID.",
        prog_if @ 9: u8 => "Class code, programming interface.",
        sub_class @ 10: u8 => "Class code, sub class.",
        base_class @ 11: u8 => "Class code, base class.",
        cache_line_size @ 12: u8 => "Cache Line Size.",
        latency_timer @ 13: u8 => "Master Latency Timer.",
        header_type @ 14: u8 => "Header Type 0. Bit 7 marks a device with several functions.",
        bist @ 15: u8 => "Built In Self Test.",
        bars @ 16: [U32; 6] => "Base address registers. BAR0 and BAR1 form one 64-bit register ([`BAR_MEMORY_64`]).",
        cardbus_cis @ 40: U32 => "CardBus CIS Pointer.",
        subsystem_vendor_id @ 44: U16 => "Subsystem Vendor ID.",
        subsystem_id @ 46: U16 => "Subsystem ID.",
        expansion_rom @ 48: U32 => "Expansion ROM.",
        capabilities_pointer @ 52: u8 => "Capabilities Pointer, offset of the first capability.",
        _reserved53 @ 53: [u8; 7],
        interrupt_line @ 60: u8 => "Interrupt Line.",
        interrupt_pin @ 61: u8 => "Interrupt Pin (0 for none, 1 for INTA).",
        min_grant @ 62: u8 => "Minimum Grant.",
        max_latency @ 63: u8 => "Maximum Latency.",
    }
}

/// Low bits of a base address register for 64-bit memory that is not prefetchable.
pub const BAR_MEMORY_64: u32 = 0x4;

layout! {
    PciCommand(U16) {
        io_space: bool => "I/O Space Enable.",
        memory_space: bool => "Memory Space Enable.",
        bus_master: bool => "Bus Master Enable.",
        __(3): u8,
        parity_error_response: bool => "Parity Error Response.",
        __: bool,
        serr_enable: bool => "SERR# Enable.",
        __: bool,
        interrupt_disable: bool => "Interrupt Disable.",
        __(5): u8,
    }

    PciStatus(U16) {
        __(3): u8,
        interrupt_status: bool => "Interrupt Status.",
        capabilities_list: bool => "Capabilities List.",
        __(11): u16,
    }

    PowerManagementCapability(8) {
        cap_id @ 0: u8 => "Capability ID, [`CAP_ID_POWER_MANAGEMENT`].",
        next @ 1: u8 => "Next Capability.",
        pmc @ 2: U16 => "Power Management Capabilities, bits 2:0 version (3).",
        pmcs @ 4: PowerManagementControl => "Power Management Control and Status.",
        bse @ 6: u8 => "Bridge extensions.",
        data @ 7: u8 => "Data.",
    }

    PowerManagementControl(U16) {
        ps(2): u8 => "Power State (0 for D0 to 3 for D3hot).",
        __: bool,
        nsfrst: bool => "No Soft Reset. The transition from D3hot to D0 does not reset the function.",
        __(12): u16,
    }

    /// MSI-X capability.
    MsixCapability(12) {
        cap_id @ 0: u8 => "Capability ID, [`CAP_ID_MSIX`].",
        next @ 1: u8 => "Next Capability.",
        mxc @ 2: MsixControl => "Message Control.",
        mtab @ 4: MsixLocation => "Table offset and BAR indicator.",
        mpba @ 8: MsixLocation => "Pending bit array offset and BAR indicator.",
    }

    /// MSI-X Message Control.
    MsixControl(U16) {
        ts(11): u16 => "Table Size, zeroes based.",
        __(3): u8,
        fm: bool => "Function Mask.",
        mxe: bool => "MSI-X Enable.",
    }

    /// Location of the MSI-X table or the pending bit array.
    MsixLocation(U32) {
        bir(3): u8 => "BAR Indicator Register.",
        offset8(29): u32 => "Offset into the BAR in units of 8 bytes, or the word without its low three bits in bytes.",
    }

    /// PCI Express capability, version 2, of an endpoint.
    PciExpressCapability(60) {
        cap_id @ 0: u8 => "Capability ID, [`CAP_ID_PCI_EXPRESS`].",
        next @ 1: u8 => "Next Capability.",
        pxcap @ 2: PxCap => "PCI Express Capabilities.",
        pxdcap @ 4: PxDeviceCap => "Device Capabilities.",
        pxdc @ 8: PxDeviceControl => "Device Control.",
        pxds @ 10: U16 => "Device Status.",
        pxlcap @ 12: PxLinkCap => "Link Capabilities.",
        pxlc @ 16: U16 => "Link Control.",
        pxls @ 18: U16 => "Link Status, bits 3:0 speed, bits 9:4 width.",
        slot @ 20: [u8; 8] => "Slot Capabilities, Control and Status, unused by endpoints.",
        root @ 28: [u8; 8] => "Root Control, Capabilities and Status, unused by endpoints.",
        pxdcap2 @ 36: U32 => "Device Capabilities 2.",
        pxdc2 @ 40: U16 => "Device Control 2.",
        pxds2 @ 42: U16 => "Device Status 2.",
        pxlcap2 @ 44: U32 => "Link Capabilities 2.",
        pxlc2 @ 48: U16 => "Link Control 2.",
        pxls2 @ 50: U16 => "Link Status 2.",
        slot2 @ 52: [u8; 8] => "Slot Capabilities, Control and Status 2, unused by endpoints.",
    }

    /// PCI Express Capabilities.
    PxCap(U16) {
        ver(4): u8 => "Capability Version, 2.",
        dpt(4): u8 => "Device/Port Type (0 endpoint, 9 root complex integrated endpoint).",
        si: bool => "Slot Implemented.",
        imn(5): u8 => "Interrupt Message Number.",
        __(2): u8,
    }

    PxDeviceCap(U32) {
        mps(3): u8 => "Max Payload Size Supported, `128 << mps` bytes.",
        pfs(2): u8 => "Phantom Functions Supported.",
        etfs: bool => "Extended Tag Field Supported.",
        l0sl(3): u8 => "Endpoint L0s Acceptable Latency.",
        l1l(3): u8 => "Endpoint L1 Acceptable Latency.",
        __(3): u8,
        rer: bool => "Role-based Error Reporting.",
        __(2): u8,
        csplv: u8 => "Captured Slot Power Limit Value.",
        cspls(2): u8 => "Captured Slot Power Limit Scale.",
        flrc: bool => "Function Level Reset Capability.",
        __(3): u8,
    }

    PxDeviceControl(U16) {
        cere: bool => "Correctable Error Reporting Enable.",
        nfere: bool => "Non-Fatal Error Reporting Enable.",
        fere: bool => "Fatal Error Reporting Enable.",
        urre: bool => "Unsupported Request Reporting Enable.",
        ero: bool => "Enable Relaxed Ordering.",
        mps(3): u8 => "Max Payload Size, `128 << mps` bytes.",
        ete: bool => "Extended Tag Enable.",
        pfe: bool => "Phantom Functions Enable.",
        appme: bool => "AUX Power PM Enable.",
        ens: bool => "Enable No Snoop.",
        mrrs(3): u8 => "Max Read Request Size, `128 << mrrs` bytes.",
        iflr: bool => "Initiate Function Level Reset, always reads 0.",
    }

    PxLinkCap(U32) {
        sls(4): u8 => "Supported Link Speeds, 1 for 2.5 GT/s to 5 for 32 GT/s.",
        mlw(6): u8 => "Maximum Link Width, lanes.",
        aspms(2): u8 => "Active State Power Management Support.",
        __(12): u16,
        pn: u8 => "Port Number.",
    }
}
