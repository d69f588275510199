//! Flexible Data Placement (Base Specification, "Flexible Data Placement"). The module has the four
//! log pages, the two features, the I/O management structures and their attributes.
//!
//! A placement identifier (PID) has the reclaim group in its top RGIF bits and the placement handle
//! in the rest. This module does not resolve it. The directive itself is
//! [`crate::directive::DirectiveType`]. [`crate::identify::NamespaceCreate`] has the placement
//! handle list of a new namespace.

use zerocopy::little_endian::{U16, U32, U64, U128};

layout! {
    /// FDP Configurations log page header (LID 20h, Base Specification 2.1, Figure 279). The
    /// configuration descriptors follow.
    FdpConfigurationsHeader(16) {
        numfdpc @ 0: U16 => "Number of FDP Configurations, zeroes based.",
        ver @ 2: u8 => "Version, 0.",
        _reserved3 @ 3: u8,
        sze @ 4: U32 => "Size of the whole page in bytes, this header included.",
        _reserved8 @ 8: [u8; 8],
    }

    /// FDP Configuration Descriptor (Base Specification 2.1, Figure 280). It is followed by `nruh`
    /// [`RuhDescriptor`]s, `vss` vendor specific bytes, and padding to a multiple of 8 bytes.
    FdpConfigurationDescriptor(64) {
        dsze @ 0: U16 => "Descriptor Size in bytes, including all that follows it, a multiple of 8.",
        fdpa @ 2: Fdpa => "FDP Attributes.",
        vss @ 3: u8 => "Vendor Specific Size, bytes.",
        nrg @ 4: U32 => "Number of Reclaim Groups, *not* zeroes based.",
        nruh @ 8: U16 => "Number of Reclaim Unit Handles, *not* zeroes based.",
        maxpids @ 10: U16 => "Max Placement Identifiers, zeroes based.",
        nnss @ 12: U32 => "Number of Namespaces Supported, 0 if limited by Identify Controller only.",
        runs @ 16: U64 => "Reclaim Unit Nominal Size, bytes.",
        erutl @ 24: U32 => "Estimated Reclaim Unit Time Limit, seconds, or 0 for not reported.",
        _reserved28 @ 28: [u8; 36],
    }

    /// FDP Attributes of a configuration (FDPA).
    Fdpa(u8) {
        rgif(4): u8 => "Reclaim Group Identifier Format, the top bits of a placement identifier for the group.",
        fdpvwc: bool => "FDP Volatile Write Cache, present and may be enabled with this configuration.",
        __(2): u8,
        fdpcv: bool => "FDP Configuration Valid.",
    }

    /// Reclaim Unit Handle Descriptor.
    RuhDescriptor(4) {
        ruht @ 0: u8 => "Reclaim Unit Handle Type, a [`RuhType`]. C0h to FFh are vendor specific.",
        _reserved1 @ 1: [u8; 3],
    }

    /// Reclaim Unit Handle Type.
    RuhType(u8, from_u8) {
        InitiallyIsolated = 1 => "Initially Isolated",
        PersistentlyIsolated = 2 => "Persistently Isolated",
    }

    /// Reclaim Unit Handle Usage log page header (LID 21h), `nruh` [`RuhUsageDescriptor`]s follow.
    RuhUsageHeader(8) {
        nruh @ 0: U16 => "Number of Reclaim Unit Handles.",
        _reserved2 @ 2: [u8; 6],
    }

    /// Reclaim Unit Handle Usage Descriptor.
    RuhUsageDescriptor(8) {
        ruha @ 0: u8 => "Reclaim Unit Handle Attributes, a [`RuhAttributes`].",
        _reserved1 @ 1: [u8; 7],
    }

    /// Reclaim Unit Handle Attributes, which state the use of the handle.
    RuhAttributes(u8, from_u8) {
        Unused = 0 => "Unused by a namespace",
        HostSpecified = 1 => "Host Specified Reclaim Unit Handle",
        ControllerSpecified = 2 => "Controller Specified Reclaim Unit Handle",
    }

    /// FDP Statistics log page (LID 22h, Base Specification 2.1, Figure 286).
    FdpStatistics(64) {
        hbmw @ 0: U128 => "Host Bytes with Metadata Written.",
        mbmw @ 16: U128 => "Media Bytes with Metadata Written.",
        mbe @ 32: U128 => "Media Bytes Erased.",
        _reserved48 @ 48: [u8; 16],
    }

    /// FDP Events log page header (LID 23h), up to [`MAX_FDP_EVENTS`] events follow.
    FdpEventsHeader(64) {
        nevents @ 0: U32 => "Number of FDP Events, *not* zeroes based.",
        _reserved4 @ 4: [u8; 60],
    }
}

/// Maximum number of events in the FDP Events log page, whose maximum size is 4096 bytes.
pub const MAX_FDP_EVENTS: usize = 63;

/// Log Specific Parameter of the FDP Events log page.
pub const LSP_CONTROLLER_EVENTS: u8 = 0;
pub const LSP_HOST_EVENTS: u8 = 1;

layout! {
    /// FDP Event (Base Specification 2.1, Figure 289).
    FdpEvent(64) {
        event_type @ 0: u8 => "Event Type, a [`FdpEventType`], or vendor specific.",
        fdpef @ 1: FdpEventFlags => "FDP Event Flags, which mark the valid fields.",
        pid @ 2: U16 => "Placement Identifier.",
        timestamp @ 4: crate::feature::Timestamp => "Event Timestamp.",
        nsid @ 12: U32 => "Namespace Identifier.",
        type_specific @ 16: [u8; 16] => "Event Type Specific, a [`MediaReallocated`] for that type.",
        rgid @ 32: U16 => "Reclaim Group Identifier.",
        ruhid @ 34: U16 => "Reclaim Unit Handle Identifier. libnvme and QEMU read only the first of the two bytes.",
        _reserved36 @ 36: [u8; 4],
        vs @ 40: [u8; 24] => "Vendor Specific.",
    }
}

impl FdpEvent {
    /// The type specific bytes of a Media Reallocated event.
    pub fn media_reallocated(&self) -> MediaReallocated {
        zerocopy::transmute!(self.type_specific)
    }
}

layout! {
    FdpEventFlags(u8) {
        piv: bool => "Placement Identifier Valid.",
        nsidv: bool => "NSID Valid.",
        lv: bool => "Location Valid, reclaim group and reclaim unit handle.",
        __(5): u8,
    }

    FdpEventType(u8, from_u8) {
        RuNotWrittenToCapacity = 0x00 => "Reclaim Unit Not Fully Written To Capacity",
        RuTimeLimitExceeded = 0x01 => "Reclaim Unit Time Limit Exceeded",
        ControllerResetModifiedRuhs = 0x02 => "Controller Level Reset Modified Reclaim Unit Handles",
        InvalidPlacementIdentifier = 0x03 => "Invalid Placement Identifier",
        MediaReallocated = 0x80 => "Media Reallocated",
        ImplicitlyModifiedRuh = 0x81 => "Implicitly Modified Reclaim Unit Handle",
    }
}

layout! {
    /// Event type specific bytes of the Media Reallocated event.
    MediaReallocated(16) {
        sef @ 0: MediaReallocatedFlags => "Specific Event Flags.",
        _reserved1 @ 1: u8,
        nlbam @ 2: U16 => "Number of LBAs Moved. 0 means not reported. FFFFh means 65,535 or more.",
        lba @ 4: U64 => "Logical Block Address of one of the moved blocks. The offset is 4, not 8.",
        _reserved12 @ 12: [u8; 4],
    }

    MediaReallocatedFlags(u8) {
        lbav: bool => "LBA Valid.",
        __(7): u8,
    }
}

/// I/O Management Receive operation, Reclaim Unit Handle Status.
pub const MO_RUH_STATUS: u8 = 0x01;

layout! {
    /// Reclaim Unit Handle Status header (I/O Management Receive, Base Specification 2.1, Figure
    /// 563). The descriptors follow.
    RuhStatusHeader(16) {
        _reserved0 @ 0: [u8; 14],
        nruhsd @ 14: U16 => "Number of Reclaim Unit Handle Status Descriptors, with those that were not transferred.",
    }

    /// Reclaim Unit Handle Status Descriptor.
    RuhStatusDescriptor(32) {
        pid @ 0: U16 => "Placement Identifier.",
        ruhid @ 2: U16 => "Reclaim Unit Handle Identifier.",
        earutr @ 4: U32 => "Estimated Active Reclaim Unit Time Remaining, seconds.",
        ruamw @ 8: U64 => "Reclaim Unit Available Media Writes, logical blocks.",
        _reserved16 @ 16: [u8; 16],
    }

    /// Flexible Data Placement feature (1Dh), command dword 11.
    FdpFeatureCdw11(u32) {
        endgid: u16 => "Endurance Group Identifier.",
        __: u16,
    }

    /// Flexible Data Placement feature (1Dh), command dword 12 of Set Features and dword 0 of Get
    /// Features' completion.
    FdpFeature(u32) {
        fdpe: bool => "Flexible Data Placement Enable.",
        __(7): u8,
        fdpci: u8 => "Flexible Data Placement Configuration Index.",
        __: u16,
    }

    /// Flexible Data Placement Events feature (1Eh), command dword 11 of Get and Set Features.
    FdpEventsFeatureCdw11(u32) {
        phndl: u16 => "Placement Handle.",
        noet: u8 => "Number of FDP Event Types. The data of Set Features has one byte for each.",
        __: u8,
    }

    /// Flexible Data Placement Events feature (1Eh), command dword 12 of Set Features.
    FdpEventsFeatureCdw12(u32) {
        fdpee: bool => "FDP Event Enable.",
        __(31): u32,
    }

    /// Supported FDP Event Descriptor (Base Specification 2.1, Figure 422). The data of Get
    /// Features for the events feature is a list of these descriptors. Dword 0 of the completion is
    /// their number.
    SupportedFdpEvent(2) {
        event_type @ 0: u8 => "Event Type, a [`FdpEventType`], or vendor specific.",
        fdpeta @ 1: FdpEventTypeAttributes => "FDP Event Type Attributes.",
    }

    FdpEventTypeAttributes(u8) {
        fdpee: bool => "FDP Event Enabled.",
        __(7): u8,
    }
}
