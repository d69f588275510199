//! Controller properties (Base Specification, "Controller Properties"). They are the registers of
//! BAR0 over PCIe, and the properties of Property Get and Property Set over fabrics.
//!
//! The module has the offsets and the bit fields of the values. The values are plain numbers
//! without a byte order. The registers of memory regions and boot partitions have only offsets
//! here.

layout! {
    /// Offsets of the controller properties, in bytes.
    Property(u32, from_u32) {
        Cap = 0x00 => "Controller Capabilities",
        Vs = 0x08 => "Version",
        Intms = 0x0c => "Interrupt Mask Set",
        Intmc = 0x10 => "Interrupt Mask Clear",
        Cc = 0x14 => "Controller Configuration",
        Csts = 0x1c => "Controller Status",
        Nssr = 0x20 => "NVM Subsystem Reset",
        Aqa = 0x24 => "Admin Queue Attributes",
        Asq = 0x28 => "Admin Submission Queue Base Address",
        Acq = 0x30 => "Admin Completion Queue Base Address",
        Cmbloc = 0x38 => "Controller Memory Buffer Location",
        Cmbsz = 0x3c => "Controller Memory Buffer Size",
        Bpinfo = 0x40 => "Boot Partition Information",
        Bprsel = 0x44 => "Boot Partition Read Select",
        Bpmbl = 0x48 => "Boot Partition Memory Buffer Location",
        Cmbmsc = 0x50 => "Controller Memory Buffer Memory Space Control",
        Cmbsts = 0x58 => "Controller Memory Buffer Status",
        Cmbebs = 0x5c => "Controller Memory Buffer Elasticity Buffer Size",
        Cmbswtp = 0x60 => "Controller Memory Buffer Sustained Write Throughput",
        Nssd = 0x64 => "NVM Subsystem Shutdown",
        Crto = 0x68 => "Controller Ready Timeouts",
        Pmrcap = 0xe00 => "Persistent Memory Region Capabilities",
        Pmrctl = 0xe04 => "Persistent Memory Region Control",
        Pmrsts = 0xe08 => "Persistent Memory Region Status",
        Pmrebs = 0xe0c => "Persistent Memory Region Elasticity Buffer Size",
        Pmrswtp = 0xe10 => "Persistent Memory Region Sustained Write Throughput",
        Pmrmscl = 0xe14 => "Persistent Memory Region Memory Space Control Lower",
        Pmrmscu = 0xe18 => "Persistent Memory Region Memory Space Control Upper",
    }
}

impl Property {
    /// True for properties of 8 bytes. All others have 4 bytes.
    pub const fn is_64_bit(self) -> bool {
        matches!(self, Property::Cap | Property::Asq | Property::Acq | Property::Bpmbl | Property::Cmbmsc)
    }
}

// Offsets of the properties on BAR0, as in [`Property`].
pub const CAP: u32 = 0x00;
pub const VS: u32 = 0x08;
pub const INTMS: u32 = 0x0c;
pub const INTMC: u32 = 0x10;
pub const CC: u32 = 0x14;
pub const CSTS: u32 = 0x1c;
pub const NSSR: u32 = 0x20;
pub const AQA: u32 = 0x24;
pub const ASQ: u32 = 0x28;
pub const ACQ: u32 = 0x30;
/// Offset of the first doorbell (PCIe transport). Queue y's submission tail is at `DOORBELLS + 2y *
/// (4 << CAP.DSTRD)`, its completion head one stride further.
pub const DOORBELLS: u32 = 0x1000;

/// Value of NSSR that starts an NVM subsystem reset, "NVMe" in ASCII.
pub const NSSR_RESET: u32 = 0x4e56_4d65;

layout! {
    /// Controller Capabilities (CAP).
    Cap(u64) {
        mqes: u16 => "Maximum Queue Entries Supported, zeroes based.",
        cqr: bool => "Contiguous Queues Required.",
        ams(2): u8 => "Arbitration Mechanism Supported. Bit 0 is weighted round robin, bit 1 vendor specific.",
        __(5): u8,
        to: u8 => "Timeout, in units of 500 ms.",
        dstrd(4): u8 => "Doorbell Stride, the distance is `4 << dstrd` bytes.",
        nssrs: bool => "NVM Subsystem Reset Supported.",
        css: u8 => "Command Sets Supported, see [`CSS_NVM`] and [`CSS_IOCS`]. Bit 7 is none.",
        bps: bool => "Boot Partition Support.",
        cps(2): u8 => "Controller Power Scope (0 not reported, 1 controller, 2 domain, 3 NVM subsystem).",
        mpsmin(4): u8 => "Memory Page Size Minimum, `2 ^ (12 + mpsmin)` bytes.",
        mpsmax(4): u8 => "Memory Page Size Maximum, `2 ^ (12 + mpsmax)` bytes.",
        pmrs: bool => "Persistent Memory Region Supported.",
        cmbs: bool => "Controller Memory Buffer Supported.",
        nsss: bool => "NVM Subsystem Shutdown Supported.",
        crms(2): u8 => "Controller Ready Modes Supported, see [`CRMS_CRWMS`]. Bit 1 is independent of media.",
        nsses: bool => "NVM Subsystem Shutdown Enhancements Supported.",
        __(2): u8,
    }
}

pub const CSS_NVM: u8 = 1 << 0;
/// CAP.CSS bit, one or more I/O command sets are supported, as CNS 1Ch reports (register bit 43).
pub const CSS_IOCS: u8 = 1 << 6;
/// CAP.CRMS bit, Controller Ready With Media Support.
pub const CRMS_CRWMS: u8 = 1 << 0;

layout! {
    /// Version (VS), with the format of the VER field of Identify Controller.
    Vs(u32) {
        ter: u8 => "Tertiary Version Number.",
        mnr: u8 => "Minor Version Number.",
        mjr: u16 => "Major Version Number.",
    }
}

impl Vs {
    /// NVMe 2.1.
    pub const V2_1: Vs = Vs::from_bits(0x0002_0100);
}

layout! {
    /// Controller Configuration (CC).
    Cc(u32) {
        en: bool => "Enable.",
        __(3): u8,
        css(3): u8 => "I/O Command Set Selected, see [`CC_CSS_NVM`] and [`CC_CSS_ALL`]. 7 is none.",
        mps(4): u8 => "Memory Page Size, `2 ^ (12 + mps)` bytes.",
        ams(3): u8 => "Arbitration Mechanism Selected (0 round robin, 1 weighted round robin, 7 vendor specific).",
        shn(2): u8 => "Shutdown Notification, see [`SHN_NONE`] and [`SHN_NORMAL`]. 2 is abrupt.",
        iosqes(4): u8 => "I/O Submission Queue Entry Size, `2 ^ iosqes` bytes, 6 for the NVM command set.",
        iocqes(4): u8 => "I/O Completion Queue Entry Size, `2 ^ iocqes` bytes, 4 for the NVM command set.",
        crime: bool => "Controller Ready Independent of Media Enable.",
        __(7): u8,
    }
}

pub const CC_CSS_NVM: u8 = 0;
pub const CC_CSS_ALL: u8 = 6;
pub const SHN_NONE: u8 = 0;
pub const SHN_NORMAL: u8 = 1;

layout! {
    /// Controller Status (CSTS).
    Csts(u32) {
        rdy: bool => "Ready.",
        cfs: bool => "Controller Fatal Status.",
        shst(2): u8 => "Shutdown Status, see [`SHST_NORMAL`], [`SHST_OCCURRING`] and [`SHST_COMPLETE`].",
        nssro: bool => "NVM Subsystem Reset Occurred, cleared by writing 1.",
        pp: bool => "Processing Paused.",
        st: bool => "Shutdown Type (0 controller, 1 NVM subsystem).",
        __(25): u32,
    }
}

pub const SHST_NORMAL: u8 = 0;
pub const SHST_OCCURRING: u8 = 1;
pub const SHST_COMPLETE: u8 = 2;

layout! {
    /// Admin Queue Attributes (AQA).
    Aqa(u32) {
        asqs(12): u16 => "Admin Submission Queue Size, zeroes based.",
        __(4): u8,
        acqs(12): u16 => "Admin Completion Queue Size, zeroes based.",
        __(4): u8,
    }
}
