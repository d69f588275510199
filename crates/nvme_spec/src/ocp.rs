//! What the Datacenter NVMe SSD Specification of the Open Compute Project adds (version 2.0): a vendor specific log page that tools of
//! data centers read, under a UUID that says whose it is.
//!
//! Not here: error recovery (C1h), firmware activation (C2h), latency monitor (C3h), capabilities (C4h), unsupported requirements (C5h),
//! telemetry strings (C9h), and the features.

use zerocopy::little_endian::{U16, U32, U64, U128};

/// The UUID under which the specification's log pages and features are selected (C194D55B-E094-4794-A21D-29998F56BE6F), as it stands in
/// a UUID list.
pub const UUID: [u8; 16] = 0xc194_d55b_e094_4794_a21d_2999_8f56_be6f_u128.to_be_bytes();

/// Log Page GUID of SMART / Health Information Extended (AFD514C97C6F4F9CA4F2BFEA2810AFC5h), as it stands in the page.
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
        /// Bad User NAND Blocks, normalized: percent of spare blocks that are left.
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
        /// End to End Correction Counts: detected errors.
        eedc @ 72: U32,
        /// End to End Correction Counts: corrected errors.
        eecc @ 76: U32,
        /// System Data % Used.
        sdpu @ 80: u8,
        /// Refresh Counts.
        rfsc @ 81: [u8; 7],
        /// User Data Erase Counts: the most of a block.
        mxudec @ 88: U32,
        /// User Data Erase Counts: the fewest of a block.
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
        /// Capacitor Health, percent; FFFFh for a drive without capacitor.
        cph @ 128: U16,
        /// NVMe Errata Version.
        nev @ 130: u8,
        _reserved131 @ 131: [u8; 5],
        /// Unaligned I/O.
        uio @ 136: U64,
        /// Security Version Number.
        svn @ 144: U64,
        /// NUSE: Namespace Utilization, all namespaces together.
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
