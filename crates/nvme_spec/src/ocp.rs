//! Log pages and a feature of the Datacenter NVMe SSD Specification 2.0 of the Open Compute
//! Project. They are vendor specific and selected by the specification's UUID. Data center tools
//! use them.
//!
//! Firmware activation (C2h), unsupported requirements (C5h), TCG configuration (C7h) and telemetry
//! strings (C9h) are missing. The latency monitor is the only feature.

use zerocopy::little_endian::{U16, U32, U64, U128};

/// UUID that selects the specification's log pages and features
/// (C194D55B-E094-4794-A21D-29998F56BE6F), in the byte order of a UUID list.
pub const UUID: [u8; 16] = 0xc194_d55b_e094_4794_a21d_2999_8f56_be6f_u128.to_be_bytes();

/// Log Page GUID of SMART / Health Information Extended (AFD514C97C6F4F9CA4F2BFEA2810AFC5h), in the
/// byte order of the page.
pub const SMART_EXTENDED_GUID: [u8; 16] = 0xafd5_14c9_7c6f_4f9c_a4f2_bfea_2810_afc5_u128.to_le_bytes();

/// Log Page Version of SMART / Health Information Extended in version 2.0.
pub const SMART_EXTENDED_VERSION: u16 = 3;

layout! {
    /// SMART / Health Information Extended (C0h).
    SmartExtendedLog(512) {
        /// Physical Media Units Written, bytes.
        pmuw @ 0: U128,
        /// Physical Media Units Read, bytes.
        pmur @ 16: U128,
        /// Bad User NAND Blocks, raw count.
        bunbr @ 32: [u8; 6],
        /// Bad User NAND Blocks, normalized. The value is the percentage of spare blocks left.
        bunbn @ 38: U16,
        /// Bad System NAND Blocks, raw count.
        bsnbr @ 40: [u8; 6],
        /// Bad System NAND Blocks, normalized.
        bsnbn @ 46: U16,
        /// XOR Recovery Count.
        xrc @ 48: U64,
        /// Uncorrectable Read Error Count.
        urec @ 56: U64,
        /// Soft ECC Error Count.
        seec @ 64: U64,
        /// End to End Correction Counts, detected errors.
        eedc @ 72: U32,
        /// End to End Correction Counts, corrected errors.
        eecc @ 76: U32,
        /// System Data % Used.
        sdpu @ 80: u8,
        /// Refresh Counts.
        rfsc @ 81: [u8; 7],
        /// User Data Erase Counts, maximum of all blocks.
        mxudec @ 88: U32,
        /// User Data Erase Counts, minimum of all blocks.
        mnudec @ 92: U32,
        /// Number of Thermal throttling events.
        ntte @ 96: u8,
        /// Current Throttling Status.
        cts @ 97: u8,
        /// Errata Version of the specification.
        evf @ 98: u8,
        /// Point Version of the specification.
        pvf @ 99: U16,
        /// Minor Version of the specification.
        mivf @ 101: U16,
        /// Major Version of the specification.
        mavf @ 103: u8,
        /// PCIe Correctable Error Count.
        pcec @ 104: U64,
        /// Incomplete Shutdowns.
        ics @ 112: U32,
        _reserved116 @ 116: [u8; 4],
        /// % Free Blocks.
        pfb @ 120: u8,
        _reserved121 @ 121: [u8; 7],
        /// Capacitor Health in percent, or FFFFh for a drive without capacitor.
        cph @ 128: U16,
        /// NVMe Errata Version.
        nev @ 130: u8,
        _reserved131 @ 131: [u8; 5],
        /// Unaligned I/O.
        uio @ 136: U64,
        /// Security Version Number.
        svn @ 144: U64,
        /// Namespace Utilization, all namespaces together (NUSE).
        nuse @ 152: U64,
        /// PLP Start Count.
        psc @ 160: U128,
        /// Endurance Estimate, as in the endurance group's log page.
        eest @ 176: U128,
        /// PCIe Link Retraining Count.
        plrc @ 192: U64,
        /// Power State Change Count.
        pscc @ 200: U64,
        _reserved208 @ 208: [u8; 286],
        /// Log Page Version.
        lpv @ 494: U16,
        /// Log Page GUID.
        lpg @ 496: [u8; 16],
    }
}

/// Log Page GUID of Error Recovery (5A1983BA3DFD4DABAE3430FE2131D944h), in page order.
pub const ERROR_RECOVERY_GUID: [u8; 16] = 0x5a19_83ba_3dfd_4dab_ae34_30fe_2131_d944_u128.to_le_bytes();

/// Log Page Version of Error Recovery in version 2.0 (EREC-11).
pub const ERROR_RECOVERY_VERSION: u16 = 2;

/// Log Page GUID of Latency Monitor (85D45E58D4E643709C6C84D08CC07A92h), in page order.
pub const LATENCY_MONITOR_GUID: [u8; 16] = 0x85d4_5e58_d4e6_4370_9c6c_84d0_8cc0_7a92_u128.to_le_bytes();

/// Log Page Version of Latency Monitor in version 2.0.
pub const LATENCY_MONITOR_VERSION: u16 = 1;

/// Log Page GUID of Device Capabilities (B7053C914B58495D98C9E1D10D054297h), in the byte order of
/// the page.
pub const DEVICE_CAPABILITIES_GUID: [u8; 16] = 0xb705_3c91_4b58_495d_98c9_e1d1_0d05_4297_u128.to_le_bytes();

/// Log Page Version of Device Capabilities (DCLP-11).
pub const DEVICE_CAPABILITIES_VERSION: u16 = 1;

/// Latency Stamp of a counter without a measured latency.
pub const NO_LATENCY_STAMP: u64 = u64::MAX;

layout! {
    /// Error Recovery (C1h).
    ErrorRecoveryLog(512) {
        /// Panic Reset Wait Time, milliseconds.
        panic_reset_wait_time @ 0: U16,
        /// Panic Reset Action. Bit 0 is Controller Reset, 1 NVM Subsystem Reset, 2 Function Level
        /// Reset, 3 PERST#, 4 power cycle, 5 Hot Reset.
        panic_reset_action @ 2: u8,
        /// Device Recovery Action 1. Bit 0 is none required, 1 Format NVM, 2 vendor specific
        /// command, 3 analysis, 4 replacement, 5 Sanitize.
        device_recovery_action_1 @ 3: u8,
        /// Panic ID, or 0 for no panic.
        panic_id @ 4: U64,
        /// Device Capabilities, the signs of a panic. Bit 0 is an asynchronous event, bit 1
        /// Controller Fatal Status.
        device_capabilities @ 12: U32,
        /// Vendor Specific Recovery Opcode.
        vendor_specific_recovery_opcode @ 16: u8,
        _reserved17 @ 17: [u8; 3],
        /// Vendor Specific Command CDW12.
        vendor_specific_cdw12 @ 20: U32,
        /// Vendor Specific Command CDW13.
        vendor_specific_cdw13 @ 24: U32,
        /// Vendor Specific Command Timeout, seconds.
        vendor_specific_timeout @ 28: u8,
        /// Device Recovery Action 2 after the reset, with the bits of Panic Reset Action.
        device_recovery_action_2 @ 29: u8,
        /// Device Recovery Action 2 Timeout, seconds.
        device_recovery_action_2_timeout @ 30: u8,
        _reserved31 @ 31: [u8; 463],
        /// Log Page Version.
        lpv @ 494: U16,
        /// Log Page GUID.
        lpg @ 496: [u8; 16],
    }

    /// Counters of a bucket of the latency monitor, by kind of command.
    LatencyCounters(16) {
        _reserved0 @ 0: [u8; 4],
        /// Dataset Management commands that deallocate, Write commands, Read commands.
        commands @ 4: [U32; 3],
    }

    /// Buckets of the latency monitor, active or static. Each bucket has deallocating commands
    /// first, then writes and reads.
    LatencyBuckets(186) {
        /// Bucket Counters, bucket 0 first.
        counters @ 0: [LatencyCounters; 4],
        /// Latency Stamps, milliseconds, bucket 3 first, [`NO_LATENCY_STAMP`] for none.
        stamps @ 64: [[U64; 3]; 4],
        /// Measured Latencies, milliseconds, bucket 3 first, or 0 for none.
        measured @ 160: [[U16; 3]; 4],
        /// Latency Stamp Units, with the bits of the modes of [`LatencyMonitorLog`]. A set bit
        /// means the Timestamp feature, else the stamp is power-on time.
        stamp_units @ 184: U16,
    }

    /// Latency Monitor (C3h).
    LatencyMonitorLog(512) {
        /// Latency Monitor Feature Status.
        status @ 0: LatencyMonitorStatus,
        _reserved1 @ 1: u8,
        /// Active Bucket Timer, units of 5 minutes.
        active_bucket_timer @ 2: U16,
        /// Active Bucket Timer Threshold, units of 5 minutes, or 0 for none.
        active_bucket_timer_threshold @ 4: U16,
        /// Active Thresholds A to D, units of 5 ms, where 00h is one.
        active_thresholds @ 6: [u8; 4],
        /// Active Latency Configuration, one bit for each bucket and kind of command. 1 measures
        /// the longest latency (mode 1), 0 the first (mode 0). Bits 0 to 2 are read, write and
        /// deallocate of bucket 0, bits 3 to 5 those of bucket 1, and so on.
        active_latency_configuration @ 10: U16,
        /// Active Latency Minimum Window, units of 100 ms.
        active_latency_minimum_window @ 12: u8,
        _reserved13 @ 13: [u8; 19],
        /// Active Buckets.
        active @ 32: LatencyBuckets,
        _reserved218 @ 218: [u8; 22],
        /// Static Buckets.
        frozen @ 240: LatencyBuckets,
        _reserved426 @ 426: [u8; 22],
        /// Debug Log Trigger Enable, with the bits of the modes.
        debug_log_trigger_enable @ 448: U16,
        /// Debug Log Measured Latency, milliseconds, or 0 for none.
        debug_log_measured_latency @ 450: U16,
        /// Debug Log Latency Stamp, milliseconds.
        debug_log_latency_stamp @ 452: U64,
        /// Debug Log Pointer.
        debug_log_pointer @ 460: U16,
        /// Debug Counter Trigger Source, the bit of the counter.
        debug_counter_trigger_source @ 462: U16,
        /// Debug Log Stamp Units (0 power-on time, 1 Timestamp feature).
        debug_log_stamp_units @ 464: u8,
        _reserved465 @ 465: [u8; 29],
        /// Log Page Version.
        lpv @ 494: U16,
        /// Log Page GUID.
        lpg @ 496: [u8; 16],
    }

    /// Latency Monitor Feature Status.
    LatencyMonitorStatus(u8) {
        /// Latency Monitoring Feature Enabled.
        enabled: bool,
        /// Active Latency Mode 1 Supported.
        mode_1_supported: bool,
        /// Active Measured Latency Supported.
        measured_supported: bool,
        __(5): u8,
    }

    /// Data of Set Features for the latency monitor (C5h). The fields have the same meaning as in
    /// [`LatencyMonitorLog`].
    LatencyMonitorFeature(4096) {
        /// Active Bucket Timer Threshold.
        active_bucket_timer_threshold @ 0: U16,
        /// Active Thresholds A to D.
        active_thresholds @ 2: [u8; 4],
        /// Active Latency Configuration.
        active_latency_configuration @ 6: U16,
        /// Active Latency Minimum Window.
        active_latency_minimum_window @ 8: u8,
        /// Debug Log Trigger Enable.
        debug_log_trigger_enable @ 9: U16,
        /// Discard Debug Log (0 no, 1 yes, 2 yes without other changes).
        discard_debug_log @ 11: u8,
        /// Latency Monitor Feature Enable.
        enable @ 12: u8,
        _reserved13 @ 13: [u8; 4083],
    }

    /// Device Capabilities (C4h).
    DeviceCapabilitiesLog(4096) {
        /// PCI Express Ports.
        pcie_ports @ 0: U16,
        /// OOB Management Support.
        oob_management @ 2: U16,
        /// Write Zeroes Command Support.
        write_zeroes @ 4: WriteZeroesSupport,
        /// Sanitize Command Support.
        sanitize @ 6: SanitizeSupport,
        /// Dataset Management Command Support.
        dataset_management @ 8: DatasetManagementSupport,
        /// Write Uncorrectable Command Support.
        write_uncorrectable @ 10: WriteUncorrectableSupport,
        /// Fused Operation Support.
        fused_operation @ 12: U16,
        /// Minimum Valid DSSD Power State, watts.
        minimum_power_state @ 14: U16,
        /// DSSD Power State Descriptors, by watts.
        power_states @ 16: [DssdPowerState; 128],
        _reserved144 @ 144: [u8; 3934],
        /// Log Page Version.
        lpv @ 4078: U16,
        /// Log Page GUID.
        lpg @ 4080: [u8; 16],
    }

    /// Write Zeroes Command Support (DCLP-3).
    WriteZeroesSupport(U16) {
        /// The command is supported.
        supported: bool,
        /// The Deallocate bit is supported.
        deac: bool,
        /// The Force Unit Access bit is supported.
        fua: bool,
        /// The drive meets the requirements of NVMe-IO-5.
        io_5: bool,
        /// The drive meets the requirements of NVMe-IO-6. With DEAC, blocks are unmapped and read
        /// as zeroes.
        io_6: bool,
        __(10): u16,
        /// Tested and found to comply.
        compliant: bool,
    }

    /// Sanitize Command Support (DCLP-4).
    SanitizeSupport(U16) {
        /// The command is supported.
        supported: bool,
        /// Crypto Erase is supported.
        crypto_erase: bool,
        /// Block Erase is supported.
        block_erase: bool,
        /// Overwrite is supported.
        overwrite: bool,
        /// Logical blocks are deallocated.
        deallocates: bool,
        __(10): u16,
        /// Tested and found to comply.
        compliant: bool,
    }

    /// Dataset Management Command Support (DCLP-5).
    DatasetManagementSupport(U16) {
        /// The command is supported.
        supported: bool,
        /// Attribute - Deallocate is supported.
        deallocate: bool,
        __(13): u16,
        /// Tested and found to comply.
        compliant: bool,
    }

    /// Write Uncorrectable Command Support (DCLP-6).
    WriteUncorrectableSupport(U16) {
        /// The command is supported.
        supported: bool,
        /// A single logical block is supported.
        single: bool,
        /// The largest number of blocks in one command is supported.
        most: bool,
        /// The drive meets the requirements of NVMe-IO-14. Marked blocks do not count as media
        /// errors.
        io_14: bool,
        __(11): u16,
        /// Tested and found to comply.
        compliant: bool,
    }

    /// DSSD Power State Descriptor.
    DssdPowerState(u8) {
        /// The NVMe power state.
        nvme_power_state(5): u8,
        __(2): u8,
        /// Valid DSSD Power State.
        valid: bool,
    }
}
