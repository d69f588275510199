//! Features, with their identifiers, their dwords of Get Features and Set Features, and their data.
//!
//! By default a type is command dword 11 of Set Features and dword 0 of the completion of Get
//! Features. [`crate::fdp`] has the features of flexible data placement, and [`crate::ocp`] the
//! vendor specific one. Features that this crate does not decode have no type.

use zerocopy::little_endian::U16;

layout! {
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
        LatencyMonitor = 0xc5 => "Latency Monitor (OCP)",
    }

    FeatureSelect(u8, from_u8) {
        Current = 0 => "Current",
        Default = 1 => "Default",
        Saved = 2 => "Saved",
        SupportedCapabilities = 3 => "Supported Capabilities",
    }

    /// Completion dword 0 of Get Features with Select = Supported Capabilities.
    FeatureCapabilities(u32) {
        savbl: bool => "Saveable.",
        nspec: bool => "Namespace Specific.",
        chang: bool => "Changeable.",
        __(29): u32,
    }

    /// Power Management (02h).
    PowerManagement(u32) {
        ps(5): u8 => "Power State.",
        wh(3): u8 => "Workload Hint.",
        __(24): u32,
    }

    /// Temperature Threshold (04h).
    TemperatureThreshold(u32) {
        tmpth: u16 => "Temperature Threshold in kelvins.",
        tmpsel(4): u8 => "Threshold Temperature Select (0 composite, 1 to 8 sensors, Fh all in Set Features).",
        thsel(2): u8 => "Threshold Type Select (0 over, 1 under).",
        tmpthh(3): u8 => "Temperature Threshold Hysteresis in kelvins.",
        __(7): u8,
    }

    /// Error Recovery (05h), per namespace.
    ErrorRecovery(u32) {
        tler: u16 => "Time Limited Error Recovery, in units of 100 ms.",
        dulbe: bool => "Deallocated or Unwritten Logical Block Error Enable.",
        __(15): u16,
    }

    /// Volatile Write Cache (06h).
    VolatileWriteCache(u32) {
        wce: bool => "Volatile Write Cache Enable.",
        __(31): u32,
    }

    /// Number of Queues (07h), requested in command dword 11, allocated in completion dword 0.
    NumberOfQueues(u32) {
        nsq: u16 => "Number of I/O Submission Queues requested or allocated (NSQR, NSQA), zeroes based.",
        ncq: u16 => "Number of I/O Completion Queues requested or allocated (NCQR, NCQA), zeroes based.",
    }

    /// Interrupt Vector Configuration (09h).
    InterruptVectorConfiguration(u32) {
        iv: u16 => "Interrupt Vector.",
        cd: bool => "Coalescing Disable.",
        __(15): u16,
    }

    /// Asynchronous Event Configuration (0Bh).
    AsyncEventConfiguration(u32) {
        shcw: u8 => "SMART / Health Critical Warnings, the bits of [`crate::log::CriticalWarning`].",
        nan: bool => "Attached Namespace Attribute Notices.",
        fan: bool => "Firmware Activation Notices.",
        tln: bool => "Telemetry Log Notices.",
        anacn: bool => "Asymmetric Namespace Access Change Notices.",
        plealcn: bool => "Predictable Latency Event Aggregate Log Change Notices.",
        lsian: bool => "LBA Status Information Alert Notices.",
        egealcn: bool => "Endurance Group Event Aggregate Log Change Notices.",
        nnsshdn: bool => "Normal NVM Subsystem Shutdown.",
        tthry: bool => "Temperature Threshold Hysteresis Recovery.",
        rassn: bool => "Reachability Association Notices.",
        rgrp0: bool => "Reachability Group Notices.",
        ansan: bool => "Allocated Namespace Attribute Notices.",
        __(7): u8,
        zdcn: bool => "Zone Descriptor Changed Notices.",
        pmdrlpcn: bool => "Pull Model DDC Request Log Page Change Notification.",
        adlpcn: bool => "AVE Discovery Log Page Change Notification.",
        hdlpcn: bool => "Host Discovery Log Page Change Notification.",
        dlpcn: bool => "Discovery Log Page Change Notification.",
    }

    /// Data of the Timestamp feature (0Eh), 8 bytes.
    Timestamp(8) {
        timestamp @ 0: [u8; 6] => "Milliseconds since 1 January 1970, or since the last reset, 48 bits little-endian.",
        attributes @ 6: TimestampAttributes => "Attributes, zero in Set Features.",
        _reserved7 @ 7: u8,
    }

    TimestampAttributes(u8) {
        synch: bool => "Synch, the controller may have stopped counting.",
        timestamp_origin(3): u8 => "Timestamp Origin (0 cleared by a controller level reset, 1 set by Set Features).",
        __(4): u8,
    }

    /// Data of the Host Behavior Support feature (16h), 512 bytes.
    HostBehaviorSupport(512) {
        acre @ 0: u8 => "Advanced Command Retry Enable.",
        etdas @ 1: u8 => "Extended Telemetry Data Area 4 Supported.",
        lbafee @ 2: u8 => "LBA Format Extension Enable.",
        hdisns @ 3: u8 => "Host Dispersed Namespace Support.",
        cdfe @ 4: U16 => "Copy Descriptor Formats Enable, bits 2 to 4 for formats 2 to 4.",
        _reserved6 @ 6: [u8; 506],
    }

    /// Sanitize Config (17h).
    SanitizeConfig(u32) {
        nodrm: bool => "No-Deallocate Response Mode.",
        __(31): u32,
    }

    /// Endurance Group Event Configuration (18h).
    EnduranceGroupEventConfiguration(u32) {
        endgid: u16 => "Endurance Group Identifier.",
        egcw: u8 => "Endurance Group Critical Warnings.",
        __: u8,
    }

    /// Host Identifier (81h), command dword 11. Its data is 8 or 16 bytes.
    HostIdentifier(u32) {
        exhid: bool => "Enable Extended Host Identifier, with 16 bytes of data. Required over fabrics.",
        __(31): u32,
    }

    /// Namespace Write Protection Config (84h).
    NamespaceWriteProtection(u32) {
        wps(3): u8 => "Write Protection State, a [`WriteProtectionState`].",
        __(29): u32,
    }

    /// Namespace Write Protection Config, Write Protection State.
    WriteProtectionState(u8, from_u8) {
        NoWriteProtect = 0 => "No Write Protect",
        WriteProtect = 1 => "Write Protect",
        WriteProtectUntilPowerCycle = 2 => "Write Protect Until Power Cycle",
        PermanentWriteProtect = 3 => "Permanent Write Protect",
    }
}
