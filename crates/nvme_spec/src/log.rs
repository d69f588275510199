//! Log pages (Base Specification, "Log Page Identifiers"), with their identifiers and structures.
//!
//! [`crate::fdp`] has the pages of flexible data placement (20h to 23h), and [`crate::ocp`] the
//! vendor specific ones.
//!
//! The persistent event, ANA, predictable latency, LBA status, media unit and capacity
//! configuration pages are missing. So are the lockdown, boot partition, rotational media and
//! reservation notification pages.

use zerocopy::little_endian::{U16, U32, U64, U128};

use crate::command::StatusField;
pub use crate::identify::NamespaceList as ChangedNamespaceList;

layout! {
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
        SmartExtended = 0xc0 => "SMART / Health Information Extended (OCP)",
        ErrorRecovery = 0xc1 => "Error Recovery (OCP)",
        LatencyMonitor = 0xc3 => "Latency Monitor (OCP)",
        DeviceCapabilities = 0xc4 => "Device Capabilities (OCP)",
    }

    /// Supported Log Pages (00h).
    SupportedLogPages(1024) {
        lid @ 0: [LidSupportedAndEffects; 256] => "LID Supported and Effects, by log page identifier.",
    }

    LidSupportedAndEffects(U32) {
        lsupp: bool => "LID Supported.",
        ios: bool => "Index Offset Supported.",
        __(14): u16,
        lidspf: u16 => "LID Specific Parameter field.",
    }

    /// Error Information Log Entry (01h).
    ErrorInformationEntry(64) {
        ecnt @ 0: U64 => "Error Count. 0 marks an unused entry.",
        sqid @ 8: U16 => "Submission Queue ID.",
        cid @ 10: U16 => "Command ID.",
        status @ 12: StatusField => "Status Information, status field and phase tag of the command.",
        pel @ 14: U16 => "Parameter Error Location. Bits 7:0 are the byte, bits 10:8 the bit. FFFFh for none.",
        lba @ 16: U64 => "LBA.",
        nsid @ 24: U32 => "Namespace.",
        vsia @ 28: u8 => "Vendor Specific Information Available, a log page identifier, or 0.",
        trtype @ 29: u8 => "Transport Type.",
        csi @ 30: u8 => "Command Set Indicator.",
        opcode @ 31: u8 => "Opcode.",
        csinfo @ 32: U64 => "Command Specific Information.",
        ttsi @ 40: U16 => "Transport Type Specific Information.",
        _reserved42 @ 42: [u8; 21],
        lpver @ 63: u8 => "Log Page Version, 1 if CSI and OPCODE are defined.",
    }

    /// SMART / Health Information (02h).
    SmartLog(512) {
        cw @ 0: CriticalWarning => "Critical Warning.",
        ctemp @ 1: U16 => "Composite Temperature, kelvins.",
        avsp @ 3: u8 => "Available Spare, percent.",
        avspt @ 4: u8 => "Available Spare Threshold, percent.",
        pused @ 5: u8 => "Percentage Used, can exceed 100.",
        egcws @ 6: u8 => "Endurance Group Critical Warning Summary.",
        _reserved7 @ 7: [u8; 25],
        dur @ 32: U128 => "Data Units Read, thousands of 512 bytes, rounded up.",
        duw @ 48: U128 => "Data Units Written, thousands of 512 bytes, rounded up.",
        hrc @ 64: U128 => "Host Read Commands.",
        hwc @ 80: U128 => "Host Write Commands.",
        cbt @ 96: U128 => "Controller Busy Time, minutes.",
        pwrc @ 112: U128 => "Power Cycles.",
        poh @ 128: U128 => "Power On Hours.",
        upl @ 144: U128 => "Unexpected Power Losses (shutdowns without notice).",
        mdie @ 160: U128 => "Media and Data Integrity Errors.",
        neile @ 176: U128 => "Number of Error Information Log Entries.",
        wctt @ 192: U32 => "Warning Composite Temperature Time, minutes.",
        cctt @ 196: U32 => "Critical Composite Temperature Time, minutes.",
        tsen @ 200: [U16; 8] => "Temperature Sensors 1 to 8, kelvins, or 0 for none.",
        tmt1tc @ 216: U32 => "Thermal Management Temperature 1 Transition Count.",
        tmt2tc @ 220: U32 => "Thermal Management Temperature 2 Transition Count.",
        ttftmt1 @ 224: U32 => "Total Time For Thermal Management Temperature 1, seconds.",
        ttftmt2 @ 228: U32 => "Total Time For Thermal Management Temperature 2, seconds.",
        _reserved232 @ 232: [u8; 280],
    }

    CriticalWarning(u8) {
        ascbt: bool => "Available Spare Capacity Below Threshold.",
        ttc: bool => "Temperature Threshold Condition.",
        ndr: bool => "NVM Subsystem Degraded Reliability.",
        amro: bool => "All Media Read-Only.",
        vmbf: bool => "Volatile Memory Backup Failed.",
        pmrro: bool => "Persistent Memory Region Read-Only.",
        __(2): u8,
    }

    /// Firmware Slot Information (03h).
    FirmwareSlotInformation(512) {
        afi @ 0: u8 => "Active Firmware Info. Bits 2:0 are the active slot, bits 6:4 the slot of the next reset.",
        _reserved1 @ 1: [u8; 7],
        frs @ 8: [[u8; 8]; 7] => "Firmware Revisions of slots 1 to 7, ASCII.",
        _reserved64 @ 64: [u8; 448],
    }

    /// Commands Supported and Effects (05h).
    CommandsSupportedAndEffects(4096) {
        acs @ 0: [CommandEffects; 256] => "Admin Commands Supported, by opcode.",
        iocs @ 1024: [CommandEffects; 256] => "I/O Commands Supported, by opcode.",
        _reserved2048 @ 2048: [u8; 2048],
    }

    /// Commands Supported and Effects data structure.
    CommandEffects(U32) {
        csupp: bool => "Command Supported.",
        lbcc: bool => "Logical Block Content Change.",
        ncc: bool => "Namespace Capability Change.",
        nic: bool => "Namespace Inventory Change.",
        ccc: bool => "Controller Capability Change.",
        __(9): u16,
        cser(2): u8 => "Command Submission and Execution Relaxations.",
        cse(3): u8 => "Command Submission and Execution (0 no restriction, 1 per namespace, 2 whole subsystem).",
        uss: bool => "UUID Selection Supported.",
        csp(12): u16 => "Command Scope.",
    }
}

// Scope bits of commands and features.
pub const SCOPE_NAMESPACE: u16 = 1 << 0;
pub const SCOPE_CONTROLLER: u16 = 1 << 1;
pub const SCOPE_ENDURANCE_GROUP: u16 = 1 << 3;
pub const SCOPE_NVM_SUBSYSTEM: u16 = 1 << 5;

layout! {
    /// Device Self-test (06h).
    DeviceSelfTestLog(564) {
        cdsto @ 0: u8 => "Current Device Self-Test Operation in bits 3:0 (0 none, 1 short, 2 extended, 3 refresh).",
        cdstc @ 1: u8 => "Current Device Self-Test Completion (bits 6:0), percent.",
        _reserved2 @ 2: [u8; 2],
        result @ 4: [SelfTestResult; 20] => "Self-test Results, newest first.",
    }

    SelfTestResult(28) {
        /// Device Self-test Status. Bits 3:0 are the result (0 success, Fh unused entry), bits 7:4
        /// the self-test code.
        dsts @ 0: u8,
        segnum @ 1: u8 => "Segment Number.",
        vdi @ 2: u8 => "Valid Diagnostic Information. Bit 0 is NSID, 1 FLBA, 2 SCT, 3 SC.",
        _reserved3 @ 3: u8,
        poh @ 4: U64 => "Power On Hours.",
        nsid @ 12: U32 => "Namespace Identifier.",
        flba @ 16: U64 => "Failing LBA.",
        sct @ 24: u8 => "Status Code Type (bits 2:0).",
        sc @ 25: u8 => "Status Code.",
        vs @ 26: [u8; 2] => "Vendor Specific.",
    }

    /// Endurance Group Information (09h).
    EnduranceGroupInformation(512) {
        cw @ 0: u8 => "Critical Warning. Bit 0 is spare below threshold, bit 2 reliability degraded, bit 3 read-only.",
        egfeat @ 1: u8 => "Endurance Group Features, bit 0 rotational media.",
        _reserved2 @ 2: u8,
        avsp @ 3: u8 => "Available Spare, percent.",
        avspt @ 4: u8 => "Available Spare Threshold, percent.",
        pused @ 5: u8 => "Percentage Used, can exceed 100.",
        did @ 6: U16 => "Domain Identifier.",
        _reserved8 @ 8: [u8; 24],
        ee @ 32: U128 => "Endurance Estimate, billions of bytes.",
        dur @ 48: U128 => "Data Units Read, billions of bytes.",
        duw @ 64: U128 => "Data Units Written, billions of bytes.",
        muw @ 80: U128 => "Media Units Written, billions of bytes.",
        hrc @ 96: U128 => "Host Read Commands.",
        hwc @ 112: U128 => "Host Write Commands.",
        mdie @ 128: U128 => "Media and Data Integrity Errors.",
        neile @ 144: U128 => "Number of Error Information Log Entries.",
        tegcap @ 160: U128 => "Total Endurance Group Capacity, bytes.",
        uegcap @ 176: U128 => "Unallocated Endurance Group Capacity, bytes.",
        _reserved192 @ 192: [u8; 320],
    }

    /// Feature Identifiers Supported and Effects (12h).
    FeatureIdentifiersSupportedAndEffects(1024) {
        fid @ 0: [FidSupportedAndEffects; 256] => "FID Supported and Effects, by feature identifier.",
    }

    /// NVMe-MI Commands Supported and Effects (13h).
    NvmeMiCommandsSupportedAndEffects(4096) {
        nmics @ 0: [U32; 256] => "Support and effects of each NVMe-MI command, by opcode.",
        _reserved1024 @ 1024: [u8; 3072],
    }

    FidSupportedAndEffects(U32) {
        fsupp: bool => "FID Supported.",
        udcc: bool => "User Data Content Change.",
        ncc: bool => "Namespace Capability Change.",
        nic: bool => "Namespace Inventory Change.",
        ccc: bool => "Controller Capability Change.",
        __(14): u16,
        uss: bool => "UUID Selection Supported.",
        fsp(12): u16 => "FID Scope, the `SCOPE_…` bits.",
    }

    /// Discovery log page header (70h), [`DiscoveryEntry`]s follow.
    DiscoveryHeader(1024) {
        genctr @ 0: U64 => "Generation Counter.",
        numrec @ 8: U64 => "Number of Records.",
        recfmt @ 16: U16 => "Record Format, 0.",
        dlpf @ 18: u8 => "Discovery Log Page Flags. Bit 0 is extended entries, bit 1 port local, bit 2 all subsystems.",
        _reserved19 @ 19: u8,
        tdlpl @ 20: U32 => "Total Discovery Log Page Length, bytes (with extended entries).",
        _reserved24 @ 24: [u8; 1000],
    }

    /// Discovery Log Page Entry (70h).
    DiscoveryEntry(1024) {
        trtype @ 0: u8 => "Transport Type, a [`crate::fabrics::TransportType`].",
        adrfam @ 1: u8 => "Address Family, a [`crate::fabrics::AddressFamily`].",
        subtype @ 2: u8 => "Subsystem Type, a [`crate::fabrics::SubsystemType`].",
        treq @ 3: crate::fabrics::TransportRequirements => "Transport Requirements.",
        portid @ 4: U16 => "Port ID.",
        cntlid @ 6: U16 => "Controller ID, FFFFh for the dynamic controller model.",
        asqsz @ 8: U16 => "Admin Max SQ Size, at least 32.",
        eflags @ 10: U16 => "Entry Flags. Bit 0 is DUPRETINFO, bit 1 EPCSD, bit 2 NCC.",
        _reserved12 @ 12: [u8; 20],
        trsvcid @ 32: [u8; 32] => "Transport Service Identifier, for TCP the port in decimal, padded with spaces.",
        _reserved64 @ 64: [u8; 192],
        subnqn @ 256: [u8; 256] => "NVM Subsystem Qualified Name.",
        traddr @ 512: [u8; 256] => "Transport Address, ASCII padded with spaces.",
        tsas @ 768: [u8; 256] => "Transport Specific Address Subtype. For TCP, byte 0 is 2 with TLS 1.3, else 0.",
    }

    /// Sanitize Status (81h).
    SanitizeStatusLog(512) {
        sprog @ 0: U16 => "Sanitize Progress, in 65,536ths. FFFFh without a running operation.",
        sstat @ 2: SanitizeStatus => "Sanitize Status.",
        scdw10 @ 4: U32 => "Sanitize Command Dword 10 of the operation.",
        eto @ 8: U32 => "Estimated Time For Overwrite, seconds, FFFFFFFFh for none.",
        etbe @ 12: U32 => "Estimated Time For Block Erase.",
        etce @ 16: U32 => "Estimated Time For Crypto Erase.",
        etodmm @ 20: U32 => "Estimated Time For Overwrite When No-Deallocate.",
        etbenmm @ 24: U32 => "Estimated Time For Block Erase When No-Deallocate.",
        etcenmm @ 28: U32 => "Estimated Time For Crypto Erase When No-Deallocate.",
        etpvds @ 32: U32 => "Estimated Time For Post-Verification Deallocation State.",
        ssi @ 36: u8 => "Sanitize State Information. Bits 3:0 are the state, bits 7:4 the failed state.",
        _reserved37 @ 37: [u8; 475],
    }

    /// Sanitize Status (SSTAT).
    SanitizeStatus(U16) {
        sos(3): u8 => "Sanitize Operation Status (0 never, 1 completed, 2 in progress, 3 failed, 4 not deallocated).",
        opc(5): u8 => "Overwrite Passes Completed.",
        gde: bool => "Global Data Erased.",
        mvcncld: bool => "Media Verification Canceled.",
        __(6): u8,
    }
}
