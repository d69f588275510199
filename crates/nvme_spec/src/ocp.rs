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
        pmuw @ 0: U128 => "Physical Media Units Written, bytes.",
        pmur @ 16: U128 => "Physical Media Units Read, bytes.",
        bunbr @ 32: [u8; 6] => "Bad User NAND Blocks, raw count.",
        bunbn @ 38: U16 => "Bad User NAND Blocks, normalized. The value is the percentage of spare blocks left.",
        bsnbr @ 40: [u8; 6] => "Bad System NAND Blocks, raw count.",
        bsnbn @ 46: U16 => "Bad System NAND Blocks, normalized.",
        xrc @ 48: U64 => "XOR Recovery Count.",
        urec @ 56: U64 => "Uncorrectable Read Error Count.",
        seec @ 64: U64 => "Soft ECC Error Count.",
        eedc @ 72: U32 => "End to End Correction Counts, detected errors.",
        eecc @ 76: U32 => "End to End Correction Counts, corrected errors.",
        sdpu @ 80: u8 => "System Data % Used.",
        rfsc @ 81: [u8; 7] => "Refresh Counts.",
        mxudec @ 88: U32 => "User Data Erase Counts, maximum of all blocks.",
        mnudec @ 92: U32 => "User Data Erase Counts, minimum of all blocks.",
        ntte @ 96: u8 => "Number of Thermal throttling events.",
        cts @ 97: u8 => "Current Throttling Status.",
        evf @ 98: u8 => "Errata Version of the specification.",
        pvf @ 99: U16 => "Point Version of the specification.",
        mivf @ 101: U16 => "Minor Version of the specification.",
        mavf @ 103: u8 => "Major Version of the specification.",
        pcec @ 104: U64 => "PCIe Correctable Error Count.",
        ics @ 112: U32 => "Incomplete Shutdowns.",
        _reserved116 @ 116: [u8; 4],
        pfb @ 120: u8 => "% Free Blocks.",
        _reserved121 @ 121: [u8; 7],
        cph @ 128: U16 => "Capacitor Health in percent, or FFFFh for a drive without capacitor.",
        nev @ 130: u8 => "NVMe Errata Version.",
        _reserved131 @ 131: [u8; 5],
        uio @ 136: U64 => "Unaligned I/O.",
        svn @ 144: U64 => "Security Version Number.",
        nuse @ 152: U64 => "Namespace Utilization, all namespaces together (NUSE).",
        psc @ 160: U128 => "PLP Start Count.",
        eest @ 176: U128 => "Endurance Estimate, as in the endurance group's log page.",
        plrc @ 192: U64 => "PCIe Link Retraining Count.",
        pscc @ 200: U64 => "Power State Change Count.",
        _reserved208 @ 208: [u8; 286],
        lpv @ 494: U16 => "Log Page Version.",
        lpg @ 496: [u8; 16] => "Log Page GUID.",
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
        panic_reset_wait_time @ 0: U16 => "Panic Reset Wait Time, milliseconds.",
        /// Panic Reset Action. Bit 0 is Controller Reset, 1 NVM Subsystem Reset, 2 Function Level
        /// Reset, 3 PERST#, 4 power cycle, 5 Hot Reset.
        panic_reset_action @ 2: u8,
        /// Device Recovery Action 1. Bit 0 is none required, 1 Format NVM, 2 vendor specific
        /// command, 3 analysis, 4 replacement, 5 Sanitize.
        device_recovery_action_1 @ 3: u8,
        panic_id @ 4: U64 => "Panic ID, or 0 for no panic.",
        device_capabilities @ 12: U32 => "Signs of a panic. Bit 0 is an asynchronous event, bit 1 is CSTS.CFS.",
        vendor_specific_recovery_opcode @ 16: u8 => "Vendor Specific Recovery Opcode.",
        _reserved17 @ 17: [u8; 3],
        vendor_specific_cdw12 @ 20: U32 => "Vendor Specific Command CDW12.",
        vendor_specific_cdw13 @ 24: U32 => "Vendor Specific Command CDW13.",
        vendor_specific_timeout @ 28: u8 => "Vendor Specific Command Timeout, seconds.",
        device_recovery_action_2 @ 29: u8 => "Device Recovery Action 2, with the bits of Panic Reset Action.",
        device_recovery_action_2_timeout @ 30: u8 => "Device Recovery Action 2 Timeout, seconds.",
        _reserved31 @ 31: [u8; 463],
        lpv @ 494: U16 => "Log Page Version.",
        lpg @ 496: [u8; 16] => "Log Page GUID.",
    }

    /// Counters of a bucket of the latency monitor, by kind of command.
    LatencyCounters(16) {
        _reserved0 @ 0: [u8; 4],
        commands @ 4: [U32; 3] => "Dataset Management commands that deallocate, Write commands, Read commands.",
    }

    /// Buckets of the latency monitor, active or static. Each bucket has deallocating commands
    /// first, then writes and reads.
    LatencyBuckets(186) {
        counters @ 0: [LatencyCounters; 4] => "Bucket Counters, bucket 0 first.",
        stamps @ 64: [[U64; 3]; 4] => "Latency Stamps, milliseconds, bucket 3 first, [`NO_LATENCY_STAMP`] for none.",
        measured @ 160: [[U16; 3]; 4] => "Measured Latencies, milliseconds, bucket 3 first, or 0 for none.",
        /// Latency Stamp Units, with the bits of the modes of [`LatencyMonitorLog`]. A set bit
        /// means the Timestamp feature, else the stamp is power-on time.
        stamp_units @ 184: U16,
    }

    /// Latency Monitor (C3h).
    LatencyMonitorLog(512) {
        status @ 0: LatencyMonitorStatus => "Latency Monitor Feature Status.",
        _reserved1 @ 1: u8,
        active_bucket_timer @ 2: U16 => "Active Bucket Timer, units of 5 minutes.",
        active_bucket_timer_threshold @ 4: U16 => "Active Bucket Timer Threshold, units of 5 minutes, or 0 for none.",
        active_thresholds @ 6: [u8; 4] => "Active Thresholds A to D, units of 5 ms, where 00h is one.",
        /// Active Latency Configuration, one bit for each bucket and kind of command. 1 measures
        /// the longest latency (mode 1), 0 the first (mode 0). Bits 0 to 2 are read, write and
        /// deallocate of bucket 0, bits 3 to 5 those of bucket 1, and so on.
        active_latency_configuration @ 10: U16,
        active_latency_minimum_window @ 12: u8 => "Active Latency Minimum Window, units of 100 ms.",
        _reserved13 @ 13: [u8; 19],
        active @ 32: LatencyBuckets => "Active Buckets.",
        _reserved218 @ 218: [u8; 22],
        frozen @ 240: LatencyBuckets => "Static Buckets.",
        _reserved426 @ 426: [u8; 22],
        debug_log_trigger_enable @ 448: U16 => "Debug Log Trigger Enable, with the bits of the modes.",
        debug_log_measured_latency @ 450: U16 => "Debug Log Measured Latency, milliseconds, or 0 for none.",
        debug_log_latency_stamp @ 452: U64 => "Debug Log Latency Stamp, milliseconds.",
        debug_log_pointer @ 460: U16 => "Debug Log Pointer.",
        debug_counter_trigger_source @ 462: U16 => "Debug Counter Trigger Source, the bit of the counter.",
        debug_log_stamp_units @ 464: u8 => "Debug Log Stamp Units (0 power-on time, 1 Timestamp feature).",
        _reserved465 @ 465: [u8; 29],
        lpv @ 494: U16 => "Log Page Version.",
        lpg @ 496: [u8; 16] => "Log Page GUID.",
    }

    LatencyMonitorStatus(u8) {
        enabled: bool => "Latency Monitoring Feature Enabled.",
        mode_1_supported: bool => "Active Latency Mode 1 Supported.",
        measured_supported: bool => "Active Measured Latency Supported.",
        __(5): u8,
    }

    /// Data of Set Features for the latency monitor (C5h). The fields have the same meaning as in
    /// [`LatencyMonitorLog`].
    LatencyMonitorFeature(4096) {
        active_bucket_timer_threshold @ 0: U16 => "Active Bucket Timer Threshold.",
        active_thresholds @ 2: [u8; 4] => "Active Thresholds A to D.",
        active_latency_configuration @ 6: U16 => "Active Latency Configuration.",
        active_latency_minimum_window @ 8: u8 => "Active Latency Minimum Window.",
        debug_log_trigger_enable @ 9: U16 => "Debug Log Trigger Enable.",
        discard_debug_log @ 11: u8 => "Discard Debug Log (0 no, 1 yes, 2 yes without other changes).",
        enable @ 12: u8 => "Latency Monitor Feature Enable.",
        _reserved13 @ 13: [u8; 4083],
    }

    /// Device Capabilities (C4h).
    DeviceCapabilitiesLog(4096) {
        pcie_ports @ 0: U16 => "PCI Express Ports.",
        oob_management @ 2: U16 => "OOB Management Support.",
        write_zeroes @ 4: WriteZeroesSupport => "Write Zeroes Command Support.",
        sanitize @ 6: SanitizeSupport => "Sanitize Command Support.",
        dataset_management @ 8: DatasetManagementSupport => "Dataset Management Command Support.",
        write_uncorrectable @ 10: WriteUncorrectableSupport => "Write Uncorrectable Command Support.",
        fused_operation @ 12: U16 => "Fused Operation Support.",
        minimum_power_state @ 14: U16 => "Minimum Valid DSSD Power State, watts.",
        power_states @ 16: [DssdPowerState; 128] => "DSSD Power State Descriptors, by watts.",
        _reserved144 @ 144: [u8; 3934],
        lpv @ 4078: U16 => "Log Page Version.",
        lpg @ 4080: [u8; 16] => "Log Page GUID.",
    }

    /// Write Zeroes Command Support (DCLP-3).
    WriteZeroesSupport(U16) {
        supported: bool => "The command is supported.",
        deac: bool => "The Deallocate bit is supported.",
        fua: bool => "The Force Unit Access bit is supported.",
        io_5: bool => "The drive meets the requirements of NVMe-IO-5.",
        io_6: bool => "The drive meets NVMe-IO-6. With DEAC, blocks are unmapped and read as zeroes.",
        __(10): u16,
        compliant: bool => "Tested and found to comply.",
    }

    /// Sanitize Command Support (DCLP-4).
    SanitizeSupport(U16) {
        supported: bool => "The command is supported.",
        crypto_erase: bool => "Crypto Erase is supported.",
        block_erase: bool => "Block Erase is supported.",
        overwrite: bool => "Overwrite is supported.",
        deallocates: bool => "Logical blocks are deallocated.",
        __(10): u16,
        compliant: bool => "Tested and found to comply.",
    }

    /// Dataset Management Command Support (DCLP-5).
    DatasetManagementSupport(U16) {
        supported: bool => "The command is supported.",
        deallocate: bool => "Attribute - Deallocate is supported.",
        __(13): u16,
        compliant: bool => "Tested and found to comply.",
    }

    /// Write Uncorrectable Command Support (DCLP-6).
    WriteUncorrectableSupport(U16) {
        supported: bool => "The command is supported.",
        single: bool => "A single logical block is supported.",
        most: bool => "The largest number of blocks in one command is supported.",
        io_14: bool => "The drive meets NVMe-IO-14. Marked blocks do not count as media errors.",
        __(11): u16,
        compliant: bool => "Tested and found to comply.",
    }

    /// DSSD Power State Descriptor.
    DssdPowerState(u8) {
        nvme_power_state(5): u8 => "The NVMe power state.",
        __(2): u8,
        valid: bool => "Valid DSSD Power State.",
    }
}
