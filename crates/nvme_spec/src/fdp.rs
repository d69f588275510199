//! Flexible Data Placement (Base Specification, "Flexible Data Placement"): the four log pages, the two features, the
//! I/O management structures and the attributes that go with them.
//!
//! A placement identifier (PID) is the reclaim group in its top RGIF bits and the placement handle in the rest; what
//! one means to a namespace is not computed here. The directive itself is [`crate::directive::DirectiveType`], the
//! placement handle list of a new namespace is in [`crate::identify::NamespaceCreate`].

use bitfield_struct::bitfield;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// FDP Configurations log page header (LID 20h; Base Specification 2.1, Figure 279); the configuration descriptors
/// follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FdpConfigurationsHeader {
    /// Number of FDP Configurations, zeroes based.
    pub numfdpc: U16,
    /// Version: 0.
    pub ver: u8,
    /// Reserved.
    pub _reserved3: u8,
    /// Size of the whole page in bytes, this header included.
    pub sze: U32,
    /// Reserved.
    pub _reserved8: [u8; 8],
}

layout! { FdpConfigurationsHeader, 16, numfdpc @ 0, ver @ 2, sze @ 4 }

/// FDP Configuration Descriptor (Base Specification 2.1, Figure 280); `nruh` [`RuhDescriptor`]s, then `vss` vendor
/// specific bytes follow, and padding to a
/// multiple of 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FdpConfigurationDescriptor {
    /// Descriptor Size in bytes, with everything that follows; a multiple of 8.
    pub dsze: U16,
    /// FDP Attributes.
    pub fdpa: Fdpa,
    /// Vendor Specific Size, bytes.
    pub vss: u8,
    /// Number of Reclaim Groups; *not* zeroes based.
    pub nrg: U32,
    /// Number of Reclaim Unit Handles; *not* zeroes based.
    pub nruh: U16,
    /// Max Placement Identifiers, zeroes based.
    pub maxpids: U16,
    /// Number of Namespaces Supported; 0 if limited by Identify Controller only.
    pub nnss: U32,
    /// Reclaim Unit Nominal Size, bytes.
    pub runs: U64,
    /// Estimated Reclaim Unit Time Limit, seconds; 0 for not reported.
    pub erutl: U32,
    /// Reserved.
    pub _reserved28: [u8; 36],
}

layout! { FdpConfigurationDescriptor, 64, dsze @ 0, fdpa @ 2, vss @ 3, nrg @ 4, nruh @ 8, maxpids @ 10, nnss @ 12,
runs @ 16, erutl @ 24 }

/// FDPA: FDP Attributes of a configuration.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Fdpa {
    /// Reclaim Group Identifier Format: the number of top bits of a placement identifier that are the reclaim group.
    #[bits(4)]
    pub rgif: u8,
    /// FDP Volatile Write Cache: present and may be enabled with this configuration.
    pub fdpvwc: bool,
    #[bits(2)]
    __: u8,
    /// FDP Configuration Valid.
    pub fdpcv: bool,
}

/// Reclaim Unit Handle Descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct RuhDescriptor {
    /// Reclaim Unit Handle Type: a [`RuhType`], or C0h to FFh vendor specific.
    pub ruht: u8,
    /// Reserved.
    pub _reserved1: [u8; 3],
}

layout! { RuhDescriptor, 4, ruht @ 0 }

codes! {
    /// Reclaim Unit Handle Type.
    RuhType(u8, from_u8) {
        InitiallyIsolated = 1 => "Initially Isolated",
        PersistentlyIsolated = 2 => "Persistently Isolated",
    }
}

/// Reclaim Unit Handle Usage log page header (LID 21h); `nruh` [`RuhUsageDescriptor`]s follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct RuhUsageHeader {
    /// Number of Reclaim Unit Handles.
    pub nruh: U16,
    /// Reserved.
    pub _reserved2: [u8; 6],
}

layout! { RuhUsageHeader, 8, nruh @ 0 }

/// Reclaim Unit Handle Usage Descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct RuhUsageDescriptor {
    /// Reclaim Unit Handle Attributes: a [`RuhAttributes`].
    pub ruha: u8,
    /// Reserved.
    pub _reserved1: [u8; 7],
}

layout! { RuhUsageDescriptor, 8, ruha @ 0 }

codes! {
    /// Reclaim Unit Handle Attributes: whose the handle is.
    RuhAttributes(u8, from_u8) {
        Unused = 0 => "Unused by a namespace",
        HostSpecified = 1 => "Host Specified Reclaim Unit Handle",
        ControllerSpecified = 2 => "Controller Specified Reclaim Unit Handle",
    }
}

/// FDP Statistics log page (LID 22h; Base Specification 2.1, Figure 286).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FdpStatistics {
    /// Host Bytes with Metadata Written.
    pub hbmw: U128,
    /// Media Bytes with Metadata Written.
    pub mbmw: U128,
    /// Media Bytes Erased.
    pub mbe: U128,
    /// Reserved.
    pub _reserved48: [u8; 16],
}

layout! { FdpStatistics, 64, hbmw @ 0, mbmw @ 16, mbe @ 32 }

/// FDP Events log page header (LID 23h); up to [`MAX_FDP_EVENTS`] events follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FdpEventsHeader {
    /// Number of FDP Events; *not* zeroes based.
    pub nevents: U32,
    /// Reserved.
    pub _reserved4: [u8; 60],
}

layout! { FdpEventsHeader, 64, nevents @ 0 }

/// The most events that the FDP Events log page holds: the page is 4096 bytes.
pub const MAX_FDP_EVENTS: usize = 63;

/// Log Specific Parameter of the FDP Events log page: report controller events.
pub const LSP_CONTROLLER_EVENTS: u8 = 0;
/// Log Specific Parameter of the FDP Events log page: report host events.
pub const LSP_HOST_EVENTS: u8 = 1;

/// FDP Event (Base Specification 2.1, Figure 289).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FdpEvent {
    /// Event Type: a [`FdpEventType`], or vendor specific.
    pub event_type: u8,
    /// FDP Event Flags: which fields are valid.
    pub fdpef: FdpEventFlags,
    /// Placement Identifier.
    pub pid: U16,
    /// Event Timestamp.
    pub timestamp: crate::feature::Timestamp,
    /// Namespace Identifier.
    pub nsid: U32,
    /// Event Type Specific: for [`FdpEventType::MediaReallocated`] a [`MediaReallocated`].
    pub type_specific: [u8; 16],
    /// Reclaim Group Identifier.
    pub rgid: U16,
    /// Reclaim Unit Handle Identifier. The standard has two bytes; libnvme and QEMU read the first only.
    pub ruhid: U16,
    /// Reserved.
    pub _reserved36: [u8; 4],
    /// Vendor Specific.
    pub vs: [u8; 24],
}

layout! { FdpEvent, 64, event_type @ 0, fdpef @ 1, pid @ 2, timestamp @ 4, nsid @ 12, type_specific @ 16, rgid @ 32,
ruhid @ 34, vs @ 40 }

impl FdpEvent {
    /// The type specific bytes of a Media Reallocated event.
    pub fn media_reallocated(&self) -> MediaReallocated {
        zerocopy::transmute!(self.type_specific)
    }
}

/// FDP Event Flags.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FdpEventFlags {
    /// Placement Identifier Valid.
    pub piv: bool,
    /// NSID Valid.
    pub nsidv: bool,
    /// Location Valid: reclaim group and reclaim unit handle.
    pub lv: bool,
    #[bits(5)]
    __: u8,
}

codes! {
    /// FDP Event Type.
    FdpEventType(u8, from_u8) {
        RuNotWrittenToCapacity = 0x00 => "Reclaim Unit Not Fully Written To Capacity",
        RuTimeLimitExceeded = 0x01 => "Reclaim Unit Time Limit Exceeded",
        ControllerResetModifiedRuhs = 0x02 => "Controller Level Reset Modified Reclaim Unit Handles",
        InvalidPlacementIdentifier = 0x03 => "Invalid Placement Identifier",
        MediaReallocated = 0x80 => "Media Reallocated",
        ImplicitlyModifiedRuh = 0x81 => "Implicitly Modified Reclaim Unit Handle",
    }
}

impl FdpEventType {
    /// Whether the event is a host event (00h to 7Fh) and not a controller event.
    pub const fn is_host_event(self) -> bool {
        self.code() < 0x80
    }
}

/// First event type that is vendor specific, of host events (to 7Fh).
pub const EVENT_VENDOR_HOST: u8 = 0x70;
/// First event type that is vendor specific, of controller events (to FFh).
pub const EVENT_VENDOR_CONTROLLER: u8 = 0xf0;

/// Event type specific bytes of the Media Reallocated event.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct MediaReallocated {
    /// Specific Event Flags.
    pub sef: MediaReallocatedFlags,
    /// Reserved.
    pub _reserved1: u8,
    /// Number of LBAs Moved: 0 for not reported, FFFFh for that many or more.
    pub nlbam: U16,
    /// Logical Block Address: one of those moved. It lies at byte 4, not 8.
    pub lba: U64,
    /// Reserved.
    pub _reserved12: [u8; 4],
}

layout! { MediaReallocated, 16, sef @ 0, nlbam @ 2, lba @ 4 }

/// Specific Event Flags of the Media Reallocated event.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct MediaReallocatedFlags {
    /// LBA Valid.
    pub lbav: bool,
    #[bits(7)]
    __: u8,
}

/// I/O management operation, Receive and Send: no action.
pub const MO_NO_ACTION: u8 = 0x00;
/// I/O Management Receive operation: Reclaim Unit Handle Status.
pub const MO_RUH_STATUS: u8 = 0x01;
/// I/O Management Send operation: Reclaim Unit Handle Update; the data is a list of placement identifiers.
pub const MO_RUH_UPDATE: u8 = 0x01;
/// I/O management operation, Receive and Send: vendor specific.
pub const MO_VENDOR_SPECIFIC: u8 = 0xff;

/// Reclaim Unit Handle Status header (I/O Management Receive; Base Specification 2.1, Figure 563); the descriptors
/// follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct RuhStatusHeader {
    /// Reserved.
    pub _reserved0: [u8; 14],
    /// Number of Reclaim Unit Handle Status Descriptors: all there are, however few were transferred.
    pub nruhsd: U16,
}

layout! { RuhStatusHeader, 16, nruhsd @ 14 }

/// Reclaim Unit Handle Status Descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct RuhStatusDescriptor {
    /// Placement Identifier.
    pub pid: U16,
    /// Reclaim Unit Handle Identifier.
    pub ruhid: U16,
    /// Estimated Active Reclaim Unit Time Remaining, seconds.
    pub earutr: U32,
    /// Reclaim Unit Available Media Writes, logical blocks.
    pub ruamw: U64,
    /// Reserved.
    pub _reserved16: [u8; 16],
}

layout! { RuhStatusDescriptor, 32, pid @ 0, ruhid @ 2, earutr @ 4, ruamw @ 8 }

/// Flexible Data Placement feature (1Dh), command dword 11.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct FdpFeatureCdw11 {
    /// Endurance Group Identifier.
    pub endgid: u16,
    __: u16,
}

/// Flexible Data Placement feature (1Dh): command dword 12 of Set Features, dword 0 of Get Features' completion.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct FdpFeature {
    /// Flexible Data Placement Enable.
    pub fdpe: bool,
    #[bits(7)]
    __: u8,
    /// Flexible Data Placement Configuration Index.
    pub fdpci: u8,
    __: u16,
}

/// Flexible Data Placement Events feature (1Eh), command dword 11 of Get and Set Features.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct FdpEventsFeatureCdw11 {
    /// Placement Handle.
    pub phndl: u16,
    /// Number of FDP Event Types: in Set Features the number of bytes of data.
    pub noet: u8,
    __: u8,
}

/// Flexible Data Placement Events feature (1Eh), command dword 12 of Set Features.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct FdpEventsFeatureCdw12 {
    /// FDP Event Enable.
    pub fdpee: bool,
    #[bits(31)]
    __: u32,
}

/// Supported FDP Event Descriptor (Base Specification 2.1, Figure 422): Get Features' data of the events feature is a
/// list of these; the completion's dword
/// 0 is their number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SupportedFdpEvent {
    /// Event Type: a [`FdpEventType`], or vendor specific.
    pub event_type: u8,
    /// FDP Event Type Attributes.
    pub fdpeta: FdpEventTypeAttributes,
}

layout! { SupportedFdpEvent, 2, event_type @ 0, fdpeta @ 1 }

/// FDP Event Type Attributes.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FdpEventTypeAttributes {
    /// FDP Event Enabled.
    pub fdpee: bool,
    #[bits(7)]
    __: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_and_feature() {
        assert_eq!(Fdpa::new().with_rgif(3).with_fdpcv(true).into_bits(), 0x83);
        assert_eq!(FdpFeature::new().with_fdpe(true).with_fdpci(2).into_bits(), 0x0201);
        assert_eq!(
            FdpEventsFeatureCdw11::new().with_phndl(5).with_noet(255).into_bits(),
            0x00ff_0005
        );
    }

    #[test]
    fn media_reallocated_lba_is_at_byte_20_of_the_event() {
        let mut moved = MediaReallocated::default();
        moved.sef.set_lbav(true);
        moved.nlbam.set(0x0102);
        moved.lba.set(0x1122_3344_5566_7788);
        let event = FdpEvent {
            event_type: FdpEventType::MediaReallocated.code(),
            type_specific: zerocopy::transmute!(moved),
            ..FdpEvent::default()
        };
        assert_eq!(
            event.as_bytes()[16..28],
            [1, 0, 2, 1, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]
        );
        assert_eq!(event.media_reallocated(), moved);
        assert!(!FdpEventType::MediaReallocated.is_host_event());
        assert!(FdpEventType::InvalidPlacementIdentifier.is_host_event());
    }

    #[test]
    fn ruh_status_bytes() {
        let mut ruhsd = RuhStatusDescriptor::default();
        ruhsd.pid.set(0x2001);
        ruhsd.ruhid.set(1);
        ruhsd.ruamw.set(0x4000);
        let bytes = ruhsd.as_bytes();
        assert_eq!(bytes[..4], [0x01, 0x20, 1, 0]);
        assert_eq!(bytes[8..12], [0, 0x40, 0, 0]);
    }
}
