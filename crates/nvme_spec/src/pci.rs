//! PCI Express (PCIe Transport Specification and the PCI standards): what an NVMe function's configuration space and
//! its MSI-X table consist of.
//!
//! Only the header of type 0 and the capabilities that an NVMe function has: power management, MSI-X and PCI Express.
//! Where the capabilities lie is the function's own choice. MSI, AER, SR-IOV and the extended capabilities are not
//! here.

use bitfield_struct::bitfield;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Base class code: mass storage controller.
pub const CLASS_MASS_STORAGE: u8 = 0x01;
/// Sub class code: non-volatile memory controller.
pub const SUBCLASS_NVM: u8 = 0x08;
/// Programming interface: NVM Express I/O controller.
pub const PROG_IF_NVME: u8 = 0x02;
/// Programming interface: NVM Express administrative controller.
pub const PROG_IF_NVME_ADMIN: u8 = 0x03;
/// Vendor identifier of Red Hat, whose device identifiers below are for emulated devices.
pub const VENDOR_RED_HAT: u16 = 0x1b36;
/// Device identifier of QEMU's NVMe controller (vendor [`VENDOR_RED_HAT`]).
pub const DEVICE_QEMU_NVME: u16 = 0x0010;
/// Size in bytes of the configuration space that PCI defines.
pub const CONFIG_SPACE_SIZE: usize = 256;
/// Size in bytes of the configuration space that PCI Express defines.
pub const EXTENDED_CONFIG_SPACE_SIZE: usize = 4096;

/// Capability identifier: power management.
pub const CAP_ID_POWER_MANAGEMENT: u8 = 0x01;
/// Capability identifier: message signaled interrupts.
pub const CAP_ID_MSI: u8 = 0x05;
/// Capability identifier: PCI Express.
pub const CAP_ID_PCI_EXPRESS: u8 = 0x10;
/// Capability identifier: MSI-X.
pub const CAP_ID_MSIX: u8 = 0x11;

/// Configuration space header, type 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct ConfigHeader {
    /// Vendor ID.
    pub vendor_id: U16,
    /// Device ID.
    pub device_id: U16,
    /// Command.
    pub command: PciCommand,
    /// Status.
    pub status: PciStatus,
    /// Revision ID.
    pub revision_id: u8,
    /// Class code: programming interface.
    pub prog_if: u8,
    /// Class code: sub class.
    pub sub_class: u8,
    /// Class code: base class.
    pub base_class: u8,
    /// Cache Line Size.
    pub cache_line_size: u8,
    /// Master Latency Timer.
    pub latency_timer: u8,
    /// Header Type: 0; bit 7 for a device of several functions.
    pub header_type: u8,
    /// Built In Self Test.
    pub bist: u8,
    /// Base address registers. An NVMe function's BAR0 and BAR1 are one 64-bit memory register ([`BAR_MEMORY_64`]).
    pub bars: [U32; 6],
    /// CardBus CIS Pointer.
    pub cardbus_cis: U32,
    /// Subsystem Vendor ID.
    pub subsystem_vendor_id: U16,
    /// Subsystem ID.
    pub subsystem_id: U16,
    /// Expansion ROM.
    pub expansion_rom: U32,
    /// Capabilities Pointer: offset of the first capability.
    pub capabilities_pointer: u8,
    /// Reserved.
    pub _reserved53: [u8; 7],
    /// Interrupt Line.
    pub interrupt_line: u8,
    /// Interrupt Pin: 0 for none, 1 for INTA.
    pub interrupt_pin: u8,
    /// Minimum Grant.
    pub min_grant: u8,
    /// Maximum Latency.
    pub max_latency: u8,
}

layout! { ConfigHeader, 64, vendor_id @ 0, device_id @ 2, command @ 4, status @ 6, revision_id @ 8, prog_if @ 9,
sub_class @ 10, base_class @ 11, header_type @ 14, bars @ 16, subsystem_vendor_id @ 44, subsystem_id @ 46,
expansion_rom @ 48, capabilities_pointer @ 52, interrupt_line @ 60, interrupt_pin @ 61 }

/// Low bits of a base address register: memory, 64 bits wide, not prefetchable.
pub const BAR_MEMORY_64: u32 = 0x4;

/// PCI command register.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PciCommand {
    /// I/O Space Enable.
    pub io_space: bool,
    /// Memory Space Enable.
    pub memory_space: bool,
    /// Bus Master Enable.
    pub bus_master: bool,
    #[bits(3)]
    __: u8,
    /// Parity Error Response.
    pub parity_error_response: bool,
    __: bool,
    /// SERR# Enable.
    pub serr_enable: bool,
    __: bool,
    /// Interrupt Disable.
    pub interrupt_disable: bool,
    #[bits(5)]
    __: u8,
}

/// PCI status register.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PciStatus {
    #[bits(3)]
    __: u8,
    /// Interrupt Status.
    pub interrupt_status: bool,
    /// Capabilities List.
    pub capabilities_list: bool,
    #[bits(11)]
    __: u16,
}

/// PCI Power Management capability.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PowerManagementCapability {
    /// Capability ID: [`CAP_ID_POWER_MANAGEMENT`].
    pub cap_id: u8,
    /// Next Capability.
    pub next: u8,
    /// Power Management Capabilities: bits 2:0 version (3).
    pub pmc: U16,
    /// Power Management Control and Status.
    pub pmcs: PowerManagementControl,
    /// Bridge extensions.
    pub bse: u8,
    /// Data.
    pub data: u8,
}

layout! { PowerManagementCapability, 8, cap_id @ 0, next @ 1, pmc @ 2, pmcs @ 4 }

/// Power Management Control and Status.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PowerManagementControl {
    /// Power State: 0 for D0 to 3 for D3hot.
    #[bits(2)]
    pub ps: u8,
    __: bool,
    /// No Soft Reset: D3hot to D0 does not reset the function.
    pub nsfrst: bool,
    #[bits(12)]
    __: u16,
}

/// MSI-X capability.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct MsixCapability {
    /// Capability ID: [`CAP_ID_MSIX`].
    pub cap_id: u8,
    /// Next Capability.
    pub next: u8,
    /// Message Control.
    pub mxc: MsixControl,
    /// Table offset and BAR indicator.
    pub mtab: MsixLocation,
    /// Pending bit array offset and BAR indicator.
    pub mpba: MsixLocation,
}

layout! { MsixCapability, 12, cap_id @ 0, next @ 1, mxc @ 2, mtab @ 4, mpba @ 8 }

/// MSI-X Message Control.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct MsixControl {
    /// Table Size, zeroes based.
    #[bits(11)]
    pub ts: u16,
    #[bits(3)]
    __: u8,
    /// Function Mask.
    pub fm: bool,
    /// MSI-X Enable.
    pub mxe: bool,
}

/// Where the MSI-X table or the pending bit array lies.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct MsixLocation {
    /// BAR Indicator Register.
    #[bits(3)]
    pub bir: u8,
    /// Offset into the BAR in units of 8 bytes: the word with its low three bits zero is the offset in bytes.
    #[bits(29)]
    pub offset8: u32,
}

/// PCI Express capability, version 2, of an endpoint.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PciExpressCapability {
    /// Capability ID: [`CAP_ID_PCI_EXPRESS`].
    pub cap_id: u8,
    /// Next Capability.
    pub next: u8,
    /// PCI Express Capabilities.
    pub pxcap: PxCap,
    /// Device Capabilities.
    pub pxdcap: PxDeviceCap,
    /// Device Control.
    pub pxdc: PxDeviceControl,
    /// Device Status.
    pub pxds: PxDeviceStatus,
    /// Link Capabilities.
    pub pxlcap: PxLinkCap,
    /// Link Control.
    pub pxlc: U16,
    /// Link Status: bits 3:0 speed, bits 9:4 width.
    pub pxls: U16,
    /// Slot Capabilities, Control and Status; not of an endpoint.
    pub slot: [u8; 8],
    /// Root Control, Capabilities and Status; not of an endpoint.
    pub root: [u8; 8],
    /// Device Capabilities 2.
    pub pxdcap2: U32,
    /// Device Control 2.
    pub pxdc2: U16,
    /// Device Status 2.
    pub pxds2: U16,
    /// Link Capabilities 2.
    pub pxlcap2: U32,
    /// Link Control 2.
    pub pxlc2: U16,
    /// Link Status 2.
    pub pxls2: U16,
    /// Slot Capabilities, Control and Status 2; not of an endpoint.
    pub slot2: [u8; 8],
}

layout! { PciExpressCapability, 60, cap_id @ 0, next @ 1, pxcap @ 2, pxdcap @ 4, pxdc @ 8, pxds @ 10, pxlcap @ 12,
pxlc @ 16, pxls @ 18, pxdcap2 @ 36, pxdc2 @ 40, pxds2 @ 42, pxlcap2 @ 44, pxlc2 @ 48, pxls2 @ 50 }

/// PCI Express Capabilities.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PxCap {
    /// Capability Version: 2.
    #[bits(4)]
    pub ver: u8,
    /// Device/Port Type: 0 endpoint, 9 root complex integrated endpoint.
    #[bits(4)]
    pub dpt: u8,
    /// Slot Implemented.
    pub si: bool,
    /// Interrupt Message Number.
    #[bits(5)]
    pub imn: u8,
    #[bits(2)]
    __: u8,
}

/// Device Capabilities.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PxDeviceCap {
    /// Max Payload Size Supported: `128 << mps` bytes.
    #[bits(3)]
    pub mps: u8,
    /// Phantom Functions Supported.
    #[bits(2)]
    pub pfs: u8,
    /// Extended Tag Field Supported.
    pub etfs: bool,
    /// Endpoint L0s Acceptable Latency.
    #[bits(3)]
    pub l0sl: u8,
    /// Endpoint L1 Acceptable Latency.
    #[bits(3)]
    pub l1l: u8,
    #[bits(3)]
    __: u8,
    /// Role-based Error Reporting.
    pub rer: bool,
    #[bits(2)]
    __: u8,
    /// Captured Slot Power Limit Value.
    pub csplv: u8,
    /// Captured Slot Power Limit Scale.
    #[bits(2)]
    pub cspls: u8,
    /// Function Level Reset Capability.
    pub flrc: bool,
    #[bits(3)]
    __: u8,
}

/// Device Control.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PxDeviceControl {
    /// Correctable Error Reporting Enable.
    pub cere: bool,
    /// Non-Fatal Error Reporting Enable.
    pub nfere: bool,
    /// Fatal Error Reporting Enable.
    pub fere: bool,
    /// Unsupported Request Reporting Enable.
    pub urre: bool,
    /// Enable Relaxed Ordering.
    pub ero: bool,
    /// Max Payload Size: `128 << mps` bytes.
    #[bits(3)]
    pub mps: u8,
    /// Extended Tag Enable.
    pub ete: bool,
    /// Phantom Functions Enable.
    pub pfe: bool,
    /// AUX Power PM Enable.
    pub appme: bool,
    /// Enable No Snoop.
    pub ens: bool,
    /// Max Read Request Size: `128 << mrrs` bytes.
    #[bits(3)]
    pub mrrs: u8,
    /// Initiate Function Level Reset; always reads 0.
    pub iflr: bool,
}

/// Device Status.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PxDeviceStatus {
    /// Correctable Error Detected.
    pub ced: bool,
    /// Non-Fatal Error Detected.
    pub nfed: bool,
    /// Fatal Error Detected.
    pub fed: bool,
    /// Unsupported Request Detected.
    pub urd: bool,
    /// AUX Power Detected.
    pub apd: bool,
    /// Transactions Pending.
    pub tp: bool,
    #[bits(10)]
    __: u16,
}

/// Link Capabilities.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PxLinkCap {
    /// Supported Link Speeds: 1 for 2.5 GT/s to 5 for 32 GT/s.
    #[bits(4)]
    pub sls: u8,
    /// Maximum Link Width, lanes.
    #[bits(6)]
    pub mlw: u8,
    /// Active State Power Management Support.
    #[bits(2)]
    pub aspms: u8,
    #[bits(12)]
    __: u16,
    /// Port Number.
    pub pn: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

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
