//! Log pages (Base Specification, "Log Page Identifiers"): the identifiers and the structures of the pages.
//!
//! The pages of flexible data placement (20h to 23h) are in [`crate::fdp`]. Not here: the persistent event, ANA,
//! predictable latency, LBA status, media unit, capacity configuration, lockdown, boot partition, rotational media and
//! reservation notification pages.

use bitfield_struct::bitfield;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::StatusField;
pub use crate::identify::NamespaceList as ChangedNamespaceList;

codes! {
    /// Log Page Identifiers.
    LogId(u8, from_u8) {
        SupportedLogPages = 0x00 => "Supported Log Pages",
        ErrorInformation = 0x01 => "Error Information",
        SmartHealth = 0x02 => "SMART / Health Information",
        FirmwareSlot = 0x03 => "Firmware Slot Information",
        ChangedAttachedNamespaceList = 0x04 => "Changed Attached Namespace List",
        CommandsSupportedAndEffects = 0x05 => "Commands Supported and Effects",
        DeviceSelfTest = 0x06 => "Device Self-test",
        TelemetryHostInitiated = 0x07 => "Telemetry Host-Initiated",
        TelemetryControllerInitiated = 0x08 => "Telemetry Controller-Initiated",
        EnduranceGroupInformation = 0x09 => "Endurance Group Information",
        PredictableLatencyPerNvmSet = 0x0a => "Predictable Latency Per NVM Set",
        PredictableLatencyEventAggregate = 0x0b => "Predictable Latency Event Aggregate",
        AsymmetricNamespaceAccess = 0x0c => "Asymmetric Namespace Access",
        PersistentEventLog = 0x0d => "Persistent Event Log",
        LbaStatusInformation = 0x0e => "LBA Status Information",
        EnduranceGroupEventAggregate = 0x0f => "Endurance Group Event Aggregate",
        MediaUnitStatus = 0x10 => "Media Unit Status",
        SupportedCapacityConfigurationList = 0x11 => "Supported Capacity Configuration List",
        FeatureIdentifiersSupportedAndEffects = 0x12 => "Feature Identifiers Supported and Effects",
        NvmeMiCommandsSupportedAndEffects = 0x13 => "NVMe-MI Commands Supported and Effects",
        CommandAndFeatureLockdown = 0x14 => "Command and Feature Lockdown",
        BootPartition = 0x15 => "Boot Partition",
        RotationalMediaInformation = 0x16 => "Rotational Media Information",
        DispersedNamespaceParticipatingNvmSubsystems = 0x17 => "Dispersed Namespace Participating NVM Subsystems",
        ManagementAddressList = 0x18 => "Management Address List",
        PhysicalInterfaceReceiverEyeOpeningMeasurement = 0x19 => "Physical Interface Receiver Eye Opening Measurement",
        ReachabilityGroups = 0x1a => "Reachability Groups",
        ReachabilityAssociations = 0x1b => "Reachability Associations",
        ChangedAllocatedNamespaceList = 0x1c => "Changed Allocated Namespace List",
        FdpConfigurations = 0x20 => "FDP Configurations",
        ReclaimUnitHandleUsage = 0x21 => "Reclaim Unit Handle Usage",
        FdpStatistics = 0x22 => "FDP Statistics",
        FdpEvents = 0x23 => "FDP Events",
        Discovery = 0x70 => "Discovery",
        HostDiscovery = 0x71 => "Host Discovery",
        AveDiscovery = 0x72 => "AVE Discovery",
        PullModelDdcRequest = 0x73 => "Pull Model DDC Request",
        ReservationNotification = 0x80 => "Reservation Notification",
        SanitizeStatus = 0x81 => "Sanitize Status",
        ChangedZoneList = 0xbf => "Changed Zone List",
    }
}

/// Supported Log Pages (00h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SupportedLogPages {
    /// LID Supported and Effects, by log page identifier.
    pub lid: [LidSupportedAndEffects; 256],
}

layout! { SupportedLogPages, 1024, lid @ 0 }

/// LID Supported and Effects data structure.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct LidSupportedAndEffects {
    /// LID Supported.
    pub lsupp: bool,
    /// Index Offset Supported.
    pub ios: bool,
    #[bits(14)]
    __: u16,
    /// LID Specific Parameter field.
    pub lidspf: u16,
}

/// Error Information Log Entry (01h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct ErrorInformationEntry {
    /// Error Count: 0 marks an unused entry.
    pub ecnt: U64,
    /// Submission Queue ID.
    pub sqid: U16,
    /// Command ID.
    pub cid: U16,
    /// Status Information: status field and phase tag of the command.
    pub status: StatusField,
    /// Parameter Error Location: byte in bits 7:0, bit in bits 10:8; FFFFh for none.
    pub pel: U16,
    /// LBA.
    pub lba: U64,
    /// Namespace.
    pub nsid: U32,
    /// Vendor Specific Information Available: a log page identifier, or 0.
    pub vsia: u8,
    /// Transport Type.
    pub trtype: u8,
    /// Command Set Indicator.
    pub csi: u8,
    /// Opcode.
    pub opcode: u8,
    /// Command Specific Information.
    pub csinfo: U64,
    /// Transport Type Specific Information.
    pub ttsi: U16,
    /// Reserved.
    pub _reserved42: [u8; 21],
    /// Log Page Version: 1 if CSI and OPCODE are defined.
    pub lpver: u8,
}

layout! { ErrorInformationEntry, 64, ecnt @ 0, sqid @ 8, cid @ 10, status @ 12, pel @ 14, lba @ 16, nsid @ 24,
vsia @ 28, trtype @ 29, csi @ 30, opcode @ 31, csinfo @ 32, ttsi @ 40, lpver @ 63 }

/// SMART / Health Information (02h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SmartLog {
    /// Critical Warning.
    pub cw: CriticalWarning,
    /// Composite Temperature, kelvins.
    pub ctemp: U16,
    /// Available Spare, percent.
    pub avsp: u8,
    /// Available Spare Threshold, percent.
    pub avspt: u8,
    /// Percentage Used; can exceed 100.
    pub pused: u8,
    /// Endurance Group Critical Warning Summary.
    pub egcws: u8,
    /// Reserved.
    pub _reserved7: [u8; 25],
    /// Data Units Read, thousands of 512 bytes, rounded up.
    pub dur: U128,
    /// Data Units Written, thousands of 512 bytes, rounded up.
    pub duw: U128,
    /// Host Read Commands.
    pub hrc: U128,
    /// Host Write Commands.
    pub hwc: U128,
    /// Controller Busy Time, minutes.
    pub cbt: U128,
    /// Power Cycles.
    pub pwrc: U128,
    /// Power On Hours.
    pub poh: U128,
    /// Unexpected Power Losses (unsafe shutdowns).
    pub upl: U128,
    /// Media and Data Integrity Errors.
    pub mdie: U128,
    /// Number of Error Information Log Entries.
    pub neile: U128,
    /// Warning Composite Temperature Time, minutes.
    pub wctt: U32,
    /// Critical Composite Temperature Time, minutes.
    pub cctt: U32,
    /// Temperature Sensors 1 to 8, kelvins; 0 for none.
    pub tsen: [U16; 8],
    /// Thermal Management Temperature 1 Transition Count.
    pub tmt1tc: U32,
    /// Thermal Management Temperature 2 Transition Count.
    pub tmt2tc: U32,
    /// Total Time For Thermal Management Temperature 1, seconds.
    pub ttftmt1: U32,
    /// Total Time For Thermal Management Temperature 2, seconds.
    pub ttftmt2: U32,
    /// Reserved.
    pub _reserved232: [u8; 280],
}

layout! { SmartLog, 512, cw @ 0, ctemp @ 1, avsp @ 3, avspt @ 4, pused @ 5, egcws @ 6, dur @ 32, duw @ 48, hrc @ 64,
hwc @ 80, cbt @ 96, pwrc @ 112, poh @ 128, upl @ 144, mdie @ 160, neile @ 176, wctt @ 192, cctt @ 196, tsen @ 200,
tmt1tc @ 216, tmt2tc @ 220, ttftmt1 @ 224, ttftmt2 @ 228 }

/// Critical Warning.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct CriticalWarning {
    /// Available Spare Capacity Below Threshold.
    pub ascbt: bool,
    /// Temperature Threshold Condition.
    pub ttc: bool,
    /// NVM Subsystem Degraded Reliability.
    pub ndr: bool,
    /// All Media Read-Only.
    pub amro: bool,
    /// Volatile Memory Backup Failed.
    pub vmbf: bool,
    /// Persistent Memory Region Read-Only.
    pub pmrro: bool,
    #[bits(2)]
    __: u8,
}

/// Firmware Slot Information (03h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FirmwareSlotInformation {
    /// Active Firmware Info: bits 2:0 the active slot, bits 6:4 the slot of the next reset.
    pub afi: u8,
    /// Reserved.
    pub _reserved1: [u8; 7],
    /// Firmware Revisions of slots 1 to 7, ASCII.
    pub frs: [[u8; 8]; 7],
    /// Reserved.
    pub _reserved64: [u8; 448],
}

layout! { FirmwareSlotInformation, 512, afi @ 0, frs @ 8 }

/// Commands Supported and Effects (05h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct CommandsSupportedAndEffects {
    /// Admin Commands Supported, by opcode.
    pub acs: [CommandEffects; 256],
    /// I/O Commands Supported, by opcode.
    pub iocs: [CommandEffects; 256],
    /// Reserved.
    pub _reserved2048: [u8; 2048],
}

layout! { CommandsSupportedAndEffects, 4096, acs @ 0, iocs @ 1024 }

/// Commands Supported and Effects data structure.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct CommandEffects {
    /// Command Supported.
    pub csupp: bool,
    /// Logical Block Content Change.
    pub lbcc: bool,
    /// Namespace Capability Change.
    pub ncc: bool,
    /// Namespace Inventory Change.
    pub nic: bool,
    /// Controller Capability Change.
    pub ccc: bool,
    #[bits(9)]
    __: u16,
    /// Command Submission and Execution Relaxations.
    #[bits(2)]
    pub cser: u8,
    /// Command Submission and Execution: 0 no restriction, 1 per namespace, 2 whole subsystem.
    #[bits(3)]
    pub cse: u8,
    /// UUID Selection Supported.
    pub uss: bool,
    /// Command Scope.
    #[bits(12)]
    pub csp: u16,
}

/// Command or feature scope bit: namespace.
pub const SCOPE_NAMESPACE: u16 = 1 << 0;
/// Command or feature scope bit: controller.
pub const SCOPE_CONTROLLER: u16 = 1 << 1;
/// Command or feature scope bit: NVM set.
pub const SCOPE_NVM_SET: u16 = 1 << 2;
/// Command or feature scope bit: endurance group.
pub const SCOPE_ENDURANCE_GROUP: u16 = 1 << 3;
/// Command or feature scope bit: domain.
pub const SCOPE_DOMAIN: u16 = 1 << 4;
/// Command or feature scope bit: NVM subsystem.
pub const SCOPE_NVM_SUBSYSTEM: u16 = 1 << 5;
/// Feature scope bit: controller data queue.
pub const SCOPE_CONTROLLER_DATA_QUEUE: u16 = 1 << 6;

/// Device Self-test (06h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct DeviceSelfTestLog {
    /// Current Device Self-Test Operation (bits 3:0): 0 none, 1 short, 2 extended, 3 host-initiated refresh.
    pub cdsto: u8,
    /// Current Device Self-Test Completion (bits 6:0), percent.
    pub cdstc: u8,
    /// Reserved.
    pub _reserved2: [u8; 2],
    /// Self-test Results, newest first.
    pub result: [SelfTestResult; 20],
}

layout! { DeviceSelfTestLog, 564, cdsto @ 0, cdstc @ 1, result @ 4 }

/// Self-test Result data structure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SelfTestResult {
    /// Device Self-test Status: bits 3:0 result (0 success, Fh unused entry), bits 7:4 self-test code.
    pub dsts: u8,
    /// Segment Number.
    pub segnum: u8,
    /// Valid Diagnostic Information: bit 0 NSID, 1 FLBA, 2 SCT, 3 SC.
    pub vdi: u8,
    /// Reserved.
    pub _reserved3: u8,
    /// Power On Hours.
    pub poh: U64,
    /// Namespace Identifier.
    pub nsid: U32,
    /// Failing LBA.
    pub flba: U64,
    /// Status Code Type (bits 2:0).
    pub sct: u8,
    /// Status Code.
    pub sc: u8,
    /// Vendor Specific.
    pub vs: [u8; 2],
}

layout! { SelfTestResult, 28, dsts @ 0, segnum @ 1, vdi @ 2, poh @ 4, nsid @ 12, flba @ 16, sct @ 24, sc @ 25,
vs @ 26 }

/// Endurance Group Information (09h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct EnduranceGroupInformation {
    /// Critical Warning: bit 0 spare below threshold, bit 2 reliability degraded, bit 3 read-only.
    pub cw: u8,
    /// Endurance Group Features: bit 0 rotational media.
    pub egfeat: u8,
    /// Reserved.
    pub _reserved2: u8,
    /// Available Spare, percent.
    pub avsp: u8,
    /// Available Spare Threshold, percent.
    pub avspt: u8,
    /// Percentage Used; can exceed 100.
    pub pused: u8,
    /// Domain Identifier.
    pub did: U16,
    /// Reserved.
    pub _reserved8: [u8; 24],
    /// Endurance Estimate, billions of bytes.
    pub ee: U128,
    /// Data Units Read, billions of bytes.
    pub dur: U128,
    /// Data Units Written, billions of bytes.
    pub duw: U128,
    /// Media Units Written, billions of bytes.
    pub muw: U128,
    /// Host Read Commands.
    pub hrc: U128,
    /// Host Write Commands.
    pub hwc: U128,
    /// Media and Data Integrity Errors.
    pub mdie: U128,
    /// Number of Error Information Log Entries.
    pub neile: U128,
    /// Total Endurance Group Capacity, bytes.
    pub tegcap: U128,
    /// Unallocated Endurance Group Capacity, bytes.
    pub uegcap: U128,
    /// Reserved.
    pub _reserved192: [u8; 320],
}

layout! { EnduranceGroupInformation, 512, cw @ 0, egfeat @ 1, avsp @ 3, avspt @ 4, pused @ 5, did @ 6, ee @ 32,
dur @ 48, duw @ 64, muw @ 80, hrc @ 96, hwc @ 112, mdie @ 128, neile @ 144, tegcap @ 160, uegcap @ 176 }

/// Feature Identifiers Supported and Effects (12h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FeatureIdentifiersSupportedAndEffects {
    /// FID Supported and Effects, by feature identifier.
    pub fid: [FidSupportedAndEffects; 256],
}

layout! { FeatureIdentifiersSupportedAndEffects, 1024, fid @ 0 }

/// FID Supported and Effects data structure.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FidSupportedAndEffects {
    /// FID Supported.
    pub fsupp: bool,
    /// User Data Content Change.
    pub udcc: bool,
    /// Namespace Capability Change.
    pub ncc: bool,
    /// Namespace Inventory Change.
    pub nic: bool,
    /// Controller Capability Change.
    pub ccc: bool,
    #[bits(14)]
    __: u16,
    /// UUID Selection Supported.
    pub uss: bool,
    /// FID Scope: the `SCOPE_…` bits.
    #[bits(12)]
    pub fsp: u16,
}

/// Discovery log page header (70h); [`DiscoveryEntry`]s follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct DiscoveryHeader {
    /// Generation Counter.
    pub genctr: U64,
    /// Number of Records.
    pub numrec: U64,
    /// Record Format: 0.
    pub recfmt: U16,
    /// Discovery Log Page Flags: bit 0 extended entries, bit 1 port local, bit 2 all subsystems.
    pub dlpf: u8,
    /// Reserved.
    pub _reserved19: u8,
    /// Total Discovery Log Page Length, bytes (with extended entries).
    pub tdlpl: U32,
    /// Reserved.
    pub _reserved24: [u8; 1000],
}

layout! { DiscoveryHeader, 1024, genctr @ 0, numrec @ 8, recfmt @ 16, dlpf @ 18, tdlpl @ 20 }

/// Discovery Log Page Entry (70h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct DiscoveryEntry {
    /// Transport Type: a [`crate::fabrics::TransportType`].
    pub trtype: u8,
    /// Address Family: a [`crate::fabrics::AddressFamily`].
    pub adrfam: u8,
    /// Subsystem Type: a [`crate::fabrics::SubsystemType`].
    pub subtype: u8,
    /// Transport Requirements.
    pub treq: crate::fabrics::TransportRequirements,
    /// Port ID.
    pub portid: U16,
    /// Controller ID; FFFFh for the dynamic controller model.
    pub cntlid: U16,
    /// Admin Max SQ Size, at least 32.
    pub asqsz: U16,
    /// Entry Flags: bit 0 DUPRETINFO, bit 1 EPCSD, bit 2 NCC.
    pub eflags: U16,
    /// Reserved.
    pub _reserved12: [u8; 20],
    /// Transport Service Identifier: for TCP the port in decimal, ASCII padded with spaces.
    pub trsvcid: [u8; 32],
    /// Reserved.
    pub _reserved64: [u8; 192],
    /// NVM Subsystem Qualified Name.
    pub subnqn: [u8; 256],
    /// Transport Address, ASCII padded with spaces.
    pub traddr: [u8; 256],
    /// Transport Specific Address Subtype: for TCP byte 0 is a [`crate::fabrics::SecurityType`].
    pub tsas: [u8; 256],
}

layout! { DiscoveryEntry, 1024, trtype @ 0, adrfam @ 1, subtype @ 2, treq @ 3, portid @ 4, cntlid @ 6, asqsz @ 8,
eflags @ 10, trsvcid @ 32, subnqn @ 256, traddr @ 512, tsas @ 768 }

/// Sanitize Status (81h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SanitizeStatusLog {
    /// Sanitize Progress, in 65,536ths; FFFFh when none is in progress.
    pub sprog: U16,
    /// Sanitize Status.
    pub sstat: SanitizeStatus,
    /// Sanitize Command Dword 10 of the operation.
    pub scdw10: U32,
    /// Estimated Time For Overwrite, seconds; FFFFFFFFh for none.
    pub eto: U32,
    /// Estimated Time For Block Erase.
    pub etbe: U32,
    /// Estimated Time For Crypto Erase.
    pub etce: U32,
    /// Estimated Time For Overwrite When No-Deallocate.
    pub etodmm: U32,
    /// Estimated Time For Block Erase When No-Deallocate.
    pub etbenmm: U32,
    /// Estimated Time For Crypto Erase When No-Deallocate.
    pub etcenmm: U32,
    /// Estimated Time For Post-Verification Deallocation State.
    pub etpvds: U32,
    /// Sanitize State Information: bits 3:0 state, bits 7:4 failed state.
    pub ssi: u8,
    /// Reserved.
    pub _reserved37: [u8; 475],
}

layout! { SanitizeStatusLog, 512, sprog @ 0, sstat @ 2, scdw10 @ 4, eto @ 8, etbe @ 12, etce @ 16, etodmm @ 20,
etbenmm @ 24, etcenmm @ 28, etpvds @ 32, ssi @ 36 }

/// SSTAT: Sanitize Status.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SanitizeStatus {
    /// Sanitize Operation Status: 0 never, 1 completed, 2 in progress, 3 failed, 4 completed without deallocation.
    #[bits(3)]
    pub sos: u8,
    /// Overwrite Passes Completed.
    #[bits(5)]
    pub opc: u8,
    /// Global Data Erased.
    pub gde: bool,
    /// Media Verification Canceled.
    pub mvcncld: bool,
    #[bits(6)]
    __: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_bits() {
        let write = CommandEffects::new()
            .with_csupp(true)
            .with_lbcc(true)
            .with_csp(SCOPE_NAMESPACE);
        assert_eq!(write.into_bits().get(), 0x0010_0003);
        assert_eq!(
            CommandEffects::new().with_cse(1).with_uss(true).into_bits().get(),
            1 << 16 | 1 << 19
        );
        let fdp = FidSupportedAndEffects::new()
            .with_fsupp(true)
            .with_fsp(SCOPE_ENDURANCE_GROUP);
        assert_eq!(fdp.into_bits().get(), 0x0080_0001);
        let lid = LidSupportedAndEffects::new().with_lsupp(true).with_lidspf(2);
        assert_eq!(lid.as_bytes(), [1, 0, 2, 0]);
    }

    #[test]
    fn sanitize_bits() {
        assert_eq!(
            SanitizeStatus::new().with_sos(1).with_gde(true).into_bits().get(),
            0x101
        );
    }
}
