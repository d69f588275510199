//! Features: identifiers, the dwords of Get Features and Set Features that belong to one feature, and their data.
//!
//! Unless said otherwise a type is command dword 11 of Set Features and dword 0 of the completion of Get Features. The
//! features of flexible data placement are in [`crate::fdp`].

use bitfield_struct::bitfield;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

codes! {
    /// Feature Identifiers (Base Specification, "Feature Identifiers").
    FeatureId(u8, from_u8) {
        Arbitration = 0x01 => "Arbitration",
        PowerManagement = 0x02 => "Power Management",
        LbaRangeType = 0x03 => "LBA Range Type",
        TemperatureThreshold = 0x04 => "Temperature Threshold",
        ErrorRecovery = 0x05 => "Error Recovery",
        VolatileWriteCache = 0x06 => "Volatile Write Cache",
        NumberOfQueues = 0x07 => "Number of Queues",
        InterruptCoalescing = 0x08 => "Interrupt Coalescing",
        InterruptVectorConfiguration = 0x09 => "Interrupt Vector Configuration",
        WriteAtomicityNormal = 0x0a => "Write Atomicity Normal",
        AsynchronousEventConfiguration = 0x0b => "Asynchronous Event Configuration",
        AutonomousPowerStateTransition = 0x0c => "Autonomous Power State Transition",
        HostMemoryBuffer = 0x0d => "Host Memory Buffer",
        Timestamp = 0x0e => "Timestamp",
        KeepAliveTimer = 0x0f => "Keep Alive Timer",
        HostControlledThermalManagement = 0x10 => "Host Controlled Thermal Management",
        NonOperationalPowerStateConfig = 0x11 => "Non-Operational Power State Config",
        ReadRecoveryLevelConfig = 0x12 => "Read Recovery Level Config",
        PredictableLatencyModeConfig = 0x13 => "Predictable Latency Mode Config",
        PredictableLatencyModeWindow = 0x14 => "Predictable Latency Mode Window",
        LbaStatusInformationReportInterval = 0x15 => "LBA Status Information Report Interval",
        HostBehaviorSupport = 0x16 => "Host Behavior Support",
        SanitizeConfig = 0x17 => "Sanitize Config",
        EnduranceGroupEventConfiguration = 0x18 => "Endurance Group Event Configuration",
        IoCommandSetProfile = 0x19 => "I/O Command Set Profile",
        SpinupControl = 0x1a => "Spinup Control",
        PowerLossSignalingConfig = 0x1b => "Power Loss Signaling Config",
        PerformanceCharacteristics = 0x1c => "Performance Characteristics",
        FlexibleDataPlacement = 0x1d => "Flexible Data Placement",
        FlexibleDataPlacementEvents = 0x1e => "Flexible Data Placement Events",
        NamespaceAdminLabel = 0x1f => "Namespace Admin Label",
        KeyValueConfiguration = 0x20 => "Key Value Configuration",
        ControllerDataQueue = 0x21 => "Controller Data Queue",
        EmbeddedManagementControllerAddress = 0x78 => "Embedded Management Controller Address",
        HostManagementAgentAddress = 0x79 => "Host Management Agent Address",
        EnhancedControllerMetadata = 0x7d => "Enhanced Controller Metadata",
        ControllerMetadata = 0x7e => "Controller Metadata",
        NamespaceMetadata = 0x7f => "Namespace Metadata",
        SoftwareProgressMarker = 0x80 => "Software Progress Marker",
        HostIdentifier = 0x81 => "Host Identifier",
        ReservationNotificationMask = 0x82 => "Reservation Notification Mask",
        ReservationPersistence = 0x83 => "Reservation Persistence",
        NamespaceWriteProtectionConfig = 0x84 => "Namespace Write Protection Config",
        BootPartitionWriteProtectionConfig = 0x85 => "Boot Partition Write Protection Config",
    }
}

codes! {
    /// Get Features, Select.
    FeatureSelect(u8, from_u8) {
        Current = 0 => "Current",
        Default = 1 => "Default",
        Saved = 2 => "Saved",
        SupportedCapabilities = 3 => "Supported Capabilities",
    }
}

/// Completion dword 0 of Get Features with Select = Supported Capabilities.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct FeatureCapabilities {
    /// Saveable.
    pub savbl: bool,
    /// Namespace Specific.
    pub nspec: bool,
    /// Changeable.
    pub chang: bool,
    #[bits(29)]
    __: u32,
}

/// Arbitration (01h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Arbitration {
    /// Arbitration Burst: `2 ^ ab` commands, 7 for no limit.
    #[bits(3)]
    pub ab: u8,
    #[bits(5)]
    __: u8,
    /// Low Priority Weight, zeroes based.
    pub lpw: u8,
    /// Medium Priority Weight, zeroes based.
    pub mpw: u8,
    /// High Priority Weight, zeroes based.
    pub hpw: u8,
}

/// Power Management (02h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct PowerManagement {
    /// Power State.
    #[bits(5)]
    pub ps: u8,
    /// Workload Hint.
    #[bits(3)]
    pub wh: u8,
    #[bits(24)]
    __: u32,
}

/// Temperature Threshold (04h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct TemperatureThreshold {
    /// Temperature Threshold in kelvins.
    pub tmpth: u16,
    /// Threshold Temperature Select: 0 composite, 1 to 8 sensors, Fh all (Set Features).
    #[bits(4)]
    pub tmpsel: u8,
    /// Threshold Type Select: 0 over, 1 under.
    #[bits(2)]
    pub thsel: u8,
    /// Temperature Threshold Hysteresis in kelvins.
    #[bits(3)]
    pub tmpthh: u8,
    #[bits(7)]
    __: u8,
}

/// Error Recovery (05h), per namespace.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct ErrorRecovery {
    /// Time Limited Error Recovery, in units of 100 ms.
    pub tler: u16,
    /// Deallocated or Unwritten Logical Block Error Enable.
    pub dulbe: bool,
    #[bits(15)]
    __: u16,
}

/// Volatile Write Cache (06h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct VolatileWriteCache {
    /// Volatile Write Cache Enable.
    pub wce: bool,
    #[bits(31)]
    __: u32,
}

/// Number of Queues (07h): requested in command dword 11, allocated in completion dword 0.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct NumberOfQueues {
    /// Number of I/O Submission Queues requested or allocated (NSQR, NSQA), zeroes based.
    pub nsq: u16,
    /// Number of I/O Completion Queues requested or allocated (NCQR, NCQA), zeroes based.
    pub ncq: u16,
}

/// Interrupt Coalescing (08h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct InterruptCoalescing {
    /// Aggregation Threshold in completions, zeroes based.
    pub thr: u8,
    /// Aggregation Time, in units of 100 microseconds.
    pub time: u8,
    __: u16,
}

/// Interrupt Vector Configuration (09h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct InterruptVectorConfiguration {
    /// Interrupt Vector.
    pub iv: u16,
    /// Coalescing Disable.
    pub cd: bool,
    #[bits(15)]
    __: u16,
}

/// Write Atomicity Normal (0Ah).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct WriteAtomicityNormal {
    /// Disable Normal: AWUN and NAWUN need not be kept.
    pub dn: bool,
    #[bits(31)]
    __: u32,
}

/// Asynchronous Event Configuration (0Bh).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct AsyncEventConfiguration {
    /// SMART / Health Critical Warnings: the bits of [`crate::log::CriticalWarning`].
    pub shcw: u8,
    /// Attached Namespace Attribute Notices.
    pub nan: bool,
    /// Firmware Activation Notices.
    pub fan: bool,
    /// Telemetry Log Notices.
    pub tln: bool,
    /// Asymmetric Namespace Access Change Notices.
    pub anacn: bool,
    /// Predictable Latency Event Aggregate Log Change Notices.
    pub plealcn: bool,
    /// LBA Status Information Alert Notices.
    pub lsian: bool,
    /// Endurance Group Event Aggregate Log Change Notices.
    pub egealcn: bool,
    /// Normal NVM Subsystem Shutdown.
    pub nnsshdn: bool,
    /// Temperature Threshold Hysteresis Recovery.
    pub tthry: bool,
    /// Reachability Association Notices.
    pub rassn: bool,
    /// Reachability Group Notices.
    pub rgrp0: bool,
    /// Allocated Namespace Attribute Notices.
    pub ansan: bool,
    #[bits(7)]
    __: u8,
    /// Zone Descriptor Changed Notices.
    pub zdcn: bool,
    /// Pull Model DDC Request Log Page Change Notification.
    pub pmdrlpcn: bool,
    /// AVE Discovery Log Page Change Notification.
    pub adlpcn: bool,
    /// Host Discovery Log Page Change Notification.
    pub hdlpcn: bool,
    /// Discovery Log Page Change Notification.
    pub dlpcn: bool,
}

/// Autonomous Power State Transition (0Ch). Its data is 32 entries of 8 bytes.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct AutonomousPowerStateTransition {
    /// Autonomous Power State Transition Enable.
    pub apste: bool,
    #[bits(31)]
    __: u32,
}

/// Data of the Timestamp feature (0Eh), 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Timestamp {
    /// Milliseconds since 1 January 1970, or since the last reset; 48 bits little-endian.
    pub timestamp: [u8; 6],
    /// Attributes; zero in Set Features.
    pub attributes: TimestampAttributes,
    /// Reserved.
    pub _reserved7: u8,
}

layout! { Timestamp, 8, timestamp @ 0, attributes @ 6 }

/// Timestamp, attributes.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct TimestampAttributes {
    /// Synch: the controller may have stopped counting.
    pub synch: bool,
    /// Timestamp Origin: 0 cleared by a controller level reset, 1 set by Set Features.
    #[bits(3)]
    pub timestamp_origin: u8,
    #[bits(4)]
    __: u8,
}

/// Keep Alive Timer (0Fh).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct KeepAliveTimer {
    /// Keep Alive Timeout in milliseconds; 0 disables.
    pub kato: u32,
}

/// Host Controlled Thermal Management (10h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct HostControlledThermalManagement {
    /// Thermal Management Temperature 2 in kelvins.
    pub tmt2: u16,
    /// Thermal Management Temperature 1 in kelvins.
    pub tmt1: u16,
}

/// Non-Operational Power State Config (11h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct NonOperationalPowerStateConfig {
    /// Non-Operational Power State Permissive Mode Enable.
    pub noppme: bool,
    #[bits(31)]
    __: u32,
}

/// Data of the Host Behavior Support feature (16h), 512 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct HostBehaviorSupport {
    /// Advanced Command Retry Enable.
    pub acre: u8,
    /// Extended Telemetry Data Area 4 Supported.
    pub etdas: u8,
    /// LBA Format Extension Enable.
    pub lbafee: u8,
    /// Host Dispersed Namespace Support.
    pub hdisns: u8,
    /// Copy Descriptor Formats Enable: bits 2 to 4 for formats 2 to 4.
    pub cdfe: U16,
    /// Reserved.
    pub _reserved6: [u8; 506],
}

layout! { HostBehaviorSupport, 512, acre @ 0, etdas @ 1, lbafee @ 2, hdisns @ 3, cdfe @ 4 }

/// Sanitize Config (17h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct SanitizeConfig {
    /// No-Deallocate Response Mode.
    pub nodrm: bool,
    #[bits(31)]
    __: u32,
}

/// Endurance Group Event Configuration (18h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct EnduranceGroupEventConfiguration {
    /// Endurance Group Identifier.
    pub endgid: u16,
    /// Endurance Group Critical Warnings.
    pub egcw: u8,
    __: u8,
}

/// I/O Command Set Profile (19h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct IoCommandSetProfile {
    /// I/O Command Set Combination Index.
    #[bits(9)]
    pub iocsci: u16,
    #[bits(23)]
    __: u32,
}

/// Software Progress Marker (80h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct SoftwareProgressMarker {
    /// Pre-boot Software Load Count.
    pub pbslc: u8,
    #[bits(24)]
    __: u32,
}

/// Host Identifier (81h), command dword 11. Its data is 8 or 16 bytes.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct HostIdentifier {
    /// Enable Extended Host Identifier: the data is 16 bytes. Required over fabrics.
    pub exhid: bool,
    #[bits(31)]
    __: u32,
}

/// Reservation Notification Mask (82h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct ReservationNotificationMask {
    __: bool,
    /// Mask Registration Preempted Notification.
    pub regpre: bool,
    /// Mask Reservation Released Notification.
    pub resrel: bool,
    /// Mask Reservation Preempted Notification.
    pub respre: bool,
    #[bits(28)]
    __: u32,
}

/// Reservation Persistence (83h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct ReservationPersistence {
    /// Persist Through Power Loss.
    pub ptpl: bool,
    #[bits(31)]
    __: u32,
}

/// Namespace Write Protection Config (84h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct NamespaceWriteProtection {
    /// Write Protection State: a [`WriteProtectionState`].
    #[bits(3)]
    pub wps: u8,
    #[bits(29)]
    __: u32,
}

codes! {
    /// Namespace Write Protection Config, Write Protection State.
    WriteProtectionState(u8, from_u8) {
        NoWriteProtect = 0 => "No Write Protect",
        WriteProtect = 1 => "Write Protect",
        WriteProtectUntilPowerCycle = 2 => "Write Protect Until Power Cycle",
        PermanentWriteProtect = 3 => "Permanent Write Protect",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(NumberOfQueues::new().with_nsq(7).with_ncq(3).into_bits(), 0x0003_0007);
        assert_eq!(TemperatureThreshold::from_bits(0x0010_0157).thsel(), 1);
        assert_eq!(ErrorRecovery::new().with_dulbe(true).into_bits(), 0x0001_0000);
        assert_eq!(AsyncEventConfiguration::new().with_dlpcn(true).into_bits(), 1 << 31);
        assert_eq!(AsyncEventConfiguration::new().with_ansan(true).into_bits(), 1 << 19);
        assert_eq!(
            AsyncEventConfiguration::new().with_nan(true).with_fan(true).into_bits(),
            0x300
        );
        assert_eq!(FeatureId::from_u8(0x1d), Some(FeatureId::FlexibleDataPlacement));
    }
}
