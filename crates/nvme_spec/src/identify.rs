//! Identify (Base Specification, "Identify command"; NVM Command Set, "Identify command"): the data structures by CNS
//! value, and the structure a host sends to create a namespace.
//!
//! It does not hold the structures of the Zoned Namespace and Key Value command sets, the NVM set, domain and ports
//! lists, and the user data format variants (CNS 09h and 0Ah use [`IdentifyNamespace`] and
//! [`NvmIdentifyNamespace`]).

use bitfield_struct::bitfield;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

codes! {
    /// Controller or Namespace Structure: what Identify returns.
    Cns(u8, from_u8) {
        Namespace = 0x00 => "Identify Namespace data structure",
        Controller = 0x01 => "Identify Controller data structure",
        ActiveNamespaceList = 0x02 => "Active Namespace ID list",
        NamespaceIdentificationDescriptors = 0x03 => "Namespace Identification Descriptor list",
        NvmSetList = 0x04 => "NVM Set List",
        IocsNamespace = 0x05 => "I/O Command Set specific Identify Namespace data structure",
        IocsController = 0x06 => "I/O Command Set specific Identify Controller data structure",
        IocsActiveNamespaceList = 0x07 => "I/O Command Set specific Active Namespace ID list",
        NamespaceIndependent = 0x08 => "I/O Command Set Independent Identify Namespace data structure",
        NamespaceUserDataFormat = 0x09 => "Identify Namespace data structure of a User Data Format",
        IocsNamespaceUserDataFormat = 0x0a => "I/O Command Set specific Identify Namespace of a User Data Format",
        AllocatedNamespaceList = 0x10 => "Allocated Namespace ID list",
        AllocatedNamespace = 0x11 => "Identify Namespace data structure of an allocated namespace",
        NamespaceAttachedControllerList = 0x12 => "Controller List of a namespace",
        ControllerList = 0x13 => "Controller List of the NVM subsystem",
        PrimaryControllerCapabilities = 0x14 => "Primary Controller Capabilities data structure",
        SecondaryControllerList = 0x15 => "Secondary Controller List",
        NamespaceGranularityList = 0x16 => "Namespace Granularity List",
        UuidList = 0x17 => "UUID List",
        DomainList = 0x18 => "Domain List",
        EnduranceGroupList = 0x19 => "Endurance Group List",
        IocsAllocatedNamespaceList = 0x1a => "I/O Command Set specific Allocated Namespace ID list",
        IocsAllocatedNamespace = 0x1b => "I/O Command Set specific Identify Namespace of an allocated namespace",
        IoCommandSets = 0x1c => "Identify I/O Command Set data structure",
        UnderlyingNamespaceList = 0x1d => "Underlying Namespace List",
        PortsList = 0x1e => "Ports List",
        AllocatedNamespaceIndependent = 0x1f => "I/O Command Set Independent Identify of an allocated namespace",
        SupportedControllerStateFormats = 0x20 => "Supported Controller State Formats",
    }
}

codes! {
    /// Command Set Identifier.
    CommandSet(u8, from_u8) {
        Nvm = 0x00 => "NVM Command Set",
        KeyValue = 0x01 => "Key Value Command Set",
        ZonedNamespace = 0x02 => "Zoned Namespace Command Set",
        SubsystemLocalMemory = 0x03 => "Subsystem Local Memory Command Set",
        ComputationalPrograms = 0x04 => "Computational Programs Command Set",
    }
}

codes! {
    /// Identify Controller, Controller Type.
    ControllerType(u8, from_u8) {
        NotReported = 0 => "Controller type is not reported",
        Io = 1 => "I/O controller",
        Discovery = 2 => "Discovery controller",
        Administrative = 3 => "Administrative controller",
    }
}

/// Identify Controller data structure (CNS 01h; Base Specification 2.1, Figure 312).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct IdentifyController {
    /// PCI Vendor ID.
    pub vid: U16,
    /// PCI Subsystem Vendor ID.
    pub ssvid: U16,
    /// Serial Number, ASCII padded with spaces.
    pub sn: [u8; 20],
    /// Model Number, ASCII padded with spaces.
    pub mn: [u8; 40],
    /// Firmware Revision, ASCII padded with spaces.
    pub fr: [u8; 8],
    /// Recommended Arbitration Burst.
    pub rab: u8,
    /// IEEE OUI Identifier, little-endian.
    pub ieee: [u8; 3],
    /// Controller Multi-Path I/O and Namespace Sharing Capabilities.
    pub cmic: Cmic,
    /// Maximum Data Transfer Size: `2 ^ mdts` units of the minimum memory page size; 0 for no limit.
    pub mdts: u8,
    /// Controller ID.
    pub cntlid: U16,
    /// Version, as in property VS.
    pub ver: U32,
    /// RTD3 Resume Latency, microseconds.
    pub rtd3r: U32,
    /// RTD3 Entry Latency, microseconds.
    pub rtd3e: U32,
    /// Optional Asynchronous Events Supported.
    pub oaes: Oaes,
    /// Controller Attributes.
    pub ctratt: Ctratt,
    /// Read Recovery Levels Supported.
    pub rrls: U16,
    /// Boot Partition Capabilities.
    pub bpcap: u8,
    /// Reserved.
    pub _reserved103: u8,
    /// NVM Subsystem Shutdown Latency, microseconds.
    pub nssl: U32,
    /// Reserved.
    pub _reserved108: [u8; 2],
    /// Power Loss Signaling Information.
    pub plsi: u8,
    /// Controller Type: a [`ControllerType`].
    pub cntrltype: u8,
    /// FRU Globally Unique Identifier.
    pub fguid: [u8; 16],
    /// Command Retry Delay Time 1, in units of 100 ms.
    pub crdt1: U16,
    /// Command Retry Delay Time 2, in units of 100 ms.
    pub crdt2: U16,
    /// Command Retry Delay Time 3, in units of 100 ms.
    pub crdt3: U16,
    /// Controller Reachability Capabilities.
    pub crcap: u8,
    /// Reserved; bytes 240 to 252 belong to the management interface.
    pub _reserved135: [u8; 118],
    /// NVM Subsystem Report.
    pub nvmsr: u8,
    /// VPD Write Cycle Information.
    pub vwci: u8,
    /// Management Endpoint Capabilities.
    pub mec: u8,
    /// Optional Admin Command Support.
    pub oacs: Oacs,
    /// Abort Command Limit, zeroes based.
    pub acl: u8,
    /// Asynchronous Event Request Limit, zeroes based.
    pub aerl: u8,
    /// Firmware Updates.
    pub frmw: Frmw,
    /// Log Page Attributes.
    pub lpa: Lpa,
    /// Error Log Page Entries, zeroes based.
    pub elpe: u8,
    /// Number of Power States Support, zeroes based.
    pub npss: u8,
    /// Admin Vendor Specific Command Configuration.
    pub avscc: u8,
    /// Autonomous Power State Transition Attributes.
    pub apsta: u8,
    /// Warning Composite Temperature Threshold, kelvins.
    pub wctemp: U16,
    /// Critical Composite Temperature Threshold, kelvins.
    pub cctemp: U16,
    /// Maximum Time for Firmware Activation, in units of 100 ms.
    pub mtfa: U16,
    /// Host Memory Buffer Preferred Size, in units of 4 KiB.
    pub hmpre: U32,
    /// Host Memory Buffer Minimum Size, in units of 4 KiB.
    pub hmmin: U32,
    /// Total NVM Capacity, bytes.
    pub tnvmcap: U128,
    /// Unallocated NVM Capacity, bytes.
    pub unvmcap: U128,
    /// Replay Protected Memory Block Support.
    pub rpmbs: U32,
    /// Extended Device Self-test Time, minutes.
    pub edstt: U16,
    /// Device Self-test Options.
    pub dsto: u8,
    /// Firmware Update Granularity, in units of 4 KiB; 0 not reported, FFh no restriction.
    pub fwug: u8,
    /// Keep Alive Support: granularity in units of 100 ms; 0 for no support.
    pub kas: U16,
    /// Host Controlled Thermal Management Attributes.
    pub hctma: U16,
    /// Minimum Thermal Management Temperature, kelvins.
    pub mntmt: U16,
    /// Maximum Thermal Management Temperature, kelvins.
    pub mxtmt: U16,
    /// Sanitize Capabilities.
    pub sanicap: Sanicap,
    /// Host Memory Buffer Minimum Descriptor Entry Size, in units of 4 KiB.
    pub hmminds: U32,
    /// Host Memory Maximum Descriptors Entries.
    pub hmmaxd: U16,
    /// NVM Set Identifier Maximum.
    pub nsetidmax: U16,
    /// Endurance Group Identifier Maximum.
    pub endgidmax: U16,
    /// ANA Transition Time, seconds.
    pub anatt: u8,
    /// Asymmetric Namespace Access Capabilities.
    pub anacap: u8,
    /// ANA Group Identifier Maximum.
    pub anagrpmax: U32,
    /// Number of ANA Group Identifiers.
    pub nanagrpid: U32,
    /// Persistent Event Log Size, in units of 64 KiB.
    pub pels: U32,
    /// Domain Identifier.
    pub domain_identifier: U16,
    /// Key Per I/O Capabilities.
    pub kpioc: u8,
    /// Reserved.
    pub _reserved359: u8,
    /// Maximum Processing Time for Firmware Activation Without Reset, in units of 100 ms.
    pub mptfawr: U16,
    /// Reserved.
    pub _reserved362: [u8; 6],
    /// Max Endurance Group Capacity, bytes.
    pub megcap: U128,
    /// Temperature Threshold Hysteresis Attributes.
    pub tmpthha: u8,
    /// Reserved.
    pub _reserved385: u8,
    /// Command Quiesce Time, milliseconds.
    pub cqt: U16,
    /// Reserved.
    pub _reserved388: [u8; 124],
    /// Submission Queue Entry Size.
    pub sqes: EntrySize,
    /// Completion Queue Entry Size.
    pub cqes: EntrySize,
    /// Maximum Outstanding Commands.
    pub maxcmd: U16,
    /// Number of Namespaces: the highest valid NSID.
    pub nn: U32,
    /// Optional NVM Command Support.
    pub oncs: Oncs,
    /// Fused Operation Support: bit 0 compare and write.
    pub fuses: U16,
    /// Format NVM Attributes.
    pub fna: Fna,
    /// Volatile Write Cache.
    pub vwc: Vwc,
    /// Atomic Write Unit Normal, logical blocks, zeroes based.
    pub awun: U16,
    /// Atomic Write Unit Power Fail, logical blocks, zeroes based.
    pub awupf: U16,
    /// I/O Command Set Vendor Specific Command Configuration.
    pub icsvscc: u8,
    /// Namespace Write Protection Capabilities.
    pub nwpc: u8,
    /// Atomic Compare and Write Unit, logical blocks, zeroes based.
    pub acwu: U16,
    /// Copy Descriptor Formats Supported: a bit per format.
    pub cdfs: U16,
    /// SGL Support.
    pub sgls: Sgls,
    /// Maximum Number of Allowed Namespaces.
    pub mnan: U32,
    /// Maximum Domain Namespace Attachments.
    pub maxdna: U128,
    /// Maximum I/O Controller Namespace Attachments.
    pub maxcna: U32,
    /// Optimal Aggregated Queue Depth.
    pub oaqd: U32,
    /// Recommended Host-Initiated Refresh Interval, days.
    pub rhiri: u8,
    /// Host-Initiated Refresh Time, minutes.
    pub hirt: u8,
    /// Controller Maximum Memory Range Tracking Descriptors.
    pub cmmrtd: U16,
    /// NVM Subsystem Maximum Memory Range Tracking Descriptors.
    pub nmmrtd: U16,
    /// Minimum Memory Range Tracking Granularity.
    pub minmrtg: u8,
    /// Maximum Memory Range Tracking Granularity.
    pub maxmrtg: u8,
    /// Tracking Attributes.
    pub trattr: u8,
    /// Reserved.
    pub _reserved577: u8,
    /// Maximum Controller User Data Migration Queues.
    pub mcudmq: U16,
    /// Maximum NVM Subsystem User Data Migration Queues.
    pub mnsudmq: U16,
    /// Maximum CDQ Memory Ranges.
    pub mcmr: U16,
    /// NVM Subsystem Maximum CDQ Memory Ranges.
    pub nmcmr: U16,
    /// Maximum Controller Data Queue PRP Count.
    pub mcdqpc: U16,
    /// Reserved.
    pub _reserved588: [u8; 180],
    /// NVM Subsystem NVMe Qualified Name, UTF-8 padded with zeroes.
    pub subnqn: [u8; 256],
    /// Reserved.
    pub _reserved1024: [u8; 768],
    /// I/O Queue Command Capsule Supported Size, in units of 16 bytes (fabrics).
    pub ioccsz: U32,
    /// I/O Queue Response Capsule Supported Size, in units of 16 bytes (fabrics).
    pub iorcsz: U32,
    /// In Capsule Data Offset, in units of 16 bytes (fabrics).
    pub icdoff: U16,
    /// Fabrics Controller Attributes: bit 0, 0 for the dynamic and 1 for the static controller model.
    pub fcatt: u8,
    /// Maximum SGL Data Block Descriptors (fabrics); 0 for no limit.
    pub msdbd: u8,
    /// Optional Fabrics Commands Supported: bit 0 Disconnect.
    pub ofcs: U16,
    /// Discovery Controller Type.
    pub dctype: u8,
    /// Reserved.
    pub _reserved1807: [u8; 241],
    /// Power State Descriptors 0 to 31.
    pub psd: [PowerState; 32],
    /// Vendor Specific.
    pub vs: [u8; 1024],
}

layout! { IdentifyController, 4096, vid @ 0, ssvid @ 2, sn @ 4, mn @ 24, fr @ 64, rab @ 72, ieee @ 73, cmic @ 76,
mdts @ 77, cntlid @ 78, ver @ 80, rtd3r @ 84, rtd3e @ 88, oaes @ 92, ctratt @ 96, rrls @ 100, bpcap @ 102, nssl @ 104,
plsi @ 110, cntrltype @ 111, fguid @ 112, crdt1 @ 128, crcap @ 134, nvmsr @ 253, vwci @ 254, mec @ 255, oacs @ 256,
acl @ 258, aerl @ 259, frmw @ 260, lpa @ 261, elpe @ 262, npss @ 263, avscc @ 264, apsta @ 265, wctemp @ 266,
cctemp @ 268, mtfa @ 270, hmpre @ 272, hmmin @ 276, tnvmcap @ 280, unvmcap @ 296, rpmbs @ 312, edstt @ 316, dsto @ 318,
fwug @ 319, kas @ 320, hctma @ 322, mntmt @ 324, mxtmt @ 326, sanicap @ 328, hmminds @ 332, hmmaxd @ 336,
nsetidmax @ 338, endgidmax @ 340, anatt @ 342, anacap @ 343, anagrpmax @ 344, nanagrpid @ 348, pels @ 352,
domain_identifier @ 356, kpioc @ 358, mptfawr @ 360, megcap @ 368, tmpthha @ 384, cqt @ 386, sqes @ 512, cqes @ 513,
maxcmd @ 514, nn @ 516, oncs @ 520, fuses @ 522, fna @ 524, vwc @ 525, awun @ 526, awupf @ 528, icsvscc @ 530,
nwpc @ 531, acwu @ 532, cdfs @ 534, sgls @ 536, mnan @ 540, maxdna @ 544, maxcna @ 560, oaqd @ 564, rhiri @ 568,
hirt @ 569, cmmrtd @ 570, trattr @ 576, mcudmq @ 578, mcdqpc @ 586, subnqn @ 768, ioccsz @ 1792, iorcsz @ 1796,
icdoff @ 1800, fcatt @ 1802, msdbd @ 1803, ofcs @ 1804, dctype @ 1806, psd @ 2048, vs @ 3072 }

/// CMIC: Controller Multi-Path I/O and Namespace Sharing Capabilities.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Cmic {
    /// Multiple Ports.
    pub mports: bool,
    /// Multiple Controllers.
    pub mctrs: bool,
    /// Function Type: SR-IOV virtual function.
    pub ft: bool,
    /// Asymmetric Namespace Access Reporting Supported.
    pub anars: bool,
    #[bits(4)]
    __: u8,
}

/// OAES: Optional Asynchronous Events Supported.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Oaes {
    __: u8,
    /// Attached Namespace Attribute Notices Support.
    pub nsan: bool,
    /// Firmware Activation Notices Support.
    pub fwan: bool,
    __: bool,
    /// Asymmetric Namespace Access Change Notices Support.
    pub anacn: bool,
    /// Predictable Latency Event Aggregate Log Change Notices Support.
    pub plealcn: bool,
    /// LBA Status Information Alert Notices Support.
    pub lsian: bool,
    /// Endurance Group Event Aggregate Log Page Change Notices Support.
    pub egealpcn: bool,
    /// Normal NVM Subsystem Shutdown Event Support.
    pub nnsss: bool,
    /// Temperature Threshold Hysteresis Recovery Support.
    pub tthr: bool,
    /// Reachability Groups Change Notices Support.
    pub rgcns: bool,
    __: bool,
    /// Allocated Namespace Attribute Notices Support.
    pub ansan: bool,
    #[bits(7)]
    __: u8,
    /// Zone Descriptor Changed Notices Support.
    pub zdcn: bool,
    #[bits(3)]
    __: u8,
    /// Discovery Log Page Change Notices Support.
    pub dlpcn: bool,
}

/// CTRATT: Controller Attributes.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Ctratt {
    /// Host Identifier Support: 128-bit host identifiers.
    pub hids: bool,
    /// Non-Operational Power State Permissive Mode.
    pub nopspm: bool,
    /// NVM Sets.
    pub nsets: bool,
    /// Read Recovery Levels.
    pub rrlvls: bool,
    /// Endurance Groups.
    pub egs: bool,
    /// Predictable Latency Mode.
    pub plm: bool,
    /// Traffic Based Keep Alive Support.
    pub tbkas: bool,
    /// Namespace Granularity.
    pub ng: bool,
    /// SQ Associations.
    pub sqa: bool,
    /// UUID List.
    pub ulist: bool,
    /// Multi-Domain Subsystem.
    pub mds: bool,
    /// Fixed Capacity Management.
    pub fcm: bool,
    /// Variable Capacity Management.
    pub vcm: bool,
    /// Delete Endurance Group.
    pub deg: bool,
    /// Delete NVM Set.
    pub dnvms: bool,
    /// Extended LBA Formats Supported.
    pub elbas: bool,
    /// MDTS and Size Limits Exclude Metadata.
    pub mem: bool,
    /// HMB Restrict Non-Operational Power State Access.
    pub hmbr: bool,
    /// Reservations and Host Identifier Interaction.
    pub rhii: bool,
    /// Flexible Data Placement Support.
    pub fdps: bool,
    #[bits(12)]
    __: u16,
}

/// OACS: Optional Admin Command Support.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Oacs {
    /// Security Send and Receive Supported.
    pub ssrs: bool,
    /// Format NVM Supported.
    pub fnvms: bool,
    /// Firmware Download Supported (and Firmware Commit).
    pub fwds: bool,
    /// Namespace Management Supported (and Namespace Attachment).
    pub nms: bool,
    /// Device Self-test Supported.
    pub dsts: bool,
    /// Directives Supported.
    pub dirs: bool,
    /// NVMe-MI Send and Receive Supported.
    pub nsrs: bool,
    /// Virtualization Management Supported.
    pub vms: bool,
    /// Doorbell Buffer Config Supported.
    pub dbcs: bool,
    /// Get LBA Status Supported.
    pub glss: bool,
    /// Command and Feature Lockdown Supported.
    pub cfls: bool,
    /// Host Managed Live Migration Support.
    pub hmlms: bool,
    #[bits(4)]
    __: u8,
}

/// FRMW: Firmware Updates.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Frmw {
    /// First Firmware Slot Read Only.
    pub ffsro: bool,
    /// Number of Firmware Slots, 1 to 7.
    #[bits(3)]
    pub nofs: u8,
    /// Firmware Activation Without Reset.
    pub fawr: bool,
    /// Support Multiple Update Detection.
    pub smud: bool,
    #[bits(2)]
    __: u8,
}

/// LPA: Log Page Attributes.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Lpa {
    /// SMART Support: per namespace SMART / Health log.
    pub smarts: bool,
    /// Commands Supported and Effects log.
    pub cses: bool,
    /// Log Page Extended Data Support: offset and extended number of dwords.
    pub lpeds: bool,
    /// Telemetry Support.
    pub ts: bool,
    /// Persistent Event log Support.
    pub pes: bool,
    /// Miscellaneous Log Page Support: LIDs 00h, 05h (scope), 12h and 13h.
    pub mlps: bool,
    /// Data Area 4 Support.
    pub da4s: bool,
    __: bool,
}

/// SANICAP: Sanitize Capabilities.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Sanicap {
    /// Crypto Erase Support.
    pub ces: bool,
    /// Block Erase Support.
    pub bes: bool,
    /// Overwrite Support.
    pub ows: bool,
    /// Verification Support.
    pub vers: bool,
    #[bits(25)]
    __: u32,
    /// No-Deallocate Inhibited.
    pub ndi: bool,
    /// No-Deallocate Modifies Media After Sanitize: 0 not defined, 1 no, 2 yes.
    #[bits(2)]
    pub nodmmas: u8,
}

/// SQES and CQES: queue entry sizes, as powers of two.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct EntrySize {
    /// Minimum (required) size: 6 for submission, 4 for completion queues.
    #[bits(4)]
    pub min: u8,
    /// Maximum size.
    #[bits(4)]
    pub max: u8,
}

/// ONCS: Optional NVM Command Support.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Oncs {
    /// Compare.
    pub nvmcmps: bool,
    /// Write Uncorrectable.
    pub nvmwusv: bool,
    /// Dataset Management.
    pub nvmdsmsv: bool,
    /// Write Zeroes.
    pub nvmwzsv: bool,
    /// Save and Select in Get and Set Features.
    pub ssfs: bool,
    /// Reservations.
    pub reservs: bool,
    /// Timestamp.
    pub tss: bool,
    /// Verify.
    pub nvmvfys: bool,
    /// Copy.
    pub nvmcpys: bool,
    /// Copy Single Atomicity.
    pub nvmcsas: bool,
    /// All Fast Copy.
    pub nvmafc: bool,
    /// Maximum Write Zeroes with Deallocate.
    pub maxwzd: bool,
    /// Namespace Zeroes.
    pub nszs: bool,
    #[bits(3)]
    __: u8,
}

/// FNA: Format NVM Attributes.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Fna {
    /// Format Namespace Scope: a format applies to all namespaces.
    pub fns: bool,
    /// Secure Erase Namespace Scope: a secure erase applies to all namespaces.
    pub sens: bool,
    /// Crypto Erase Supported.
    pub cryes: bool,
    /// Format NVM Broadcast *not* supported.
    pub fnvmbs: bool,
    #[bits(4)]
    __: u8,
}

/// VWC: Volatile Write Cache.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Vwc {
    /// Volatile Write Cache Present.
    pub vwcp: bool,
    /// Flush Behavior: 2 no broadcast, 3 broadcast NSID supported.
    #[bits(2)]
    pub fb: u8,
    #[bits(5)]
    __: u8,
}

/// SGLS: SGL Support.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Sgls {
    /// SGL Support: 0 none, 1 without alignment requirement, 2 dword aligned.
    #[bits(2)]
    pub sgls: u8,
    /// Keyed SGL Data Block descriptor supported.
    pub ksdbds: bool,
    #[bits(5)]
    __: u8,
    /// SGL Descriptor Threshold.
    pub sdt: u8,
    /// Bit Bucket descriptor supported.
    pub sbbds: bool,
    /// Byte aligned contiguous physical buffer of metadata supported.
    pub mbas: bool,
    /// SGL length larger than the data transferred supported.
    pub sgl_length_larger: bool,
    /// MPTR containing an SGL descriptor supported.
    pub mptr_sgl: bool,
    /// Address field as an offset supported.
    pub offset: bool,
    /// Transport SGL Data Block descriptor supported.
    pub transport_data_block: bool,
    #[bits(10)]
    __: u16,
}

/// Power State Descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PowerState {
    /// Maximum Power, in units of 10 mW (100 microwatts with MXPS).
    pub mp: U16,
    /// Reserved.
    pub _reserved2: u8,
    /// Scale of MP, and whether the state is non-operational.
    pub flags: PowerStateFlags,
    /// Entry Latency, microseconds.
    pub enlat: U32,
    /// Exit Latency, microseconds.
    pub exlat: U32,
    /// Relative Read Throughput (bits 4:0).
    pub rrt: u8,
    /// Relative Read Latency (bits 4:0).
    pub rrl: u8,
    /// Relative Write Throughput (bits 4:0).
    pub rwt: u8,
    /// Relative Write Latency (bits 4:0).
    pub rwl: u8,
    /// Idle Power.
    pub idlp: U16,
    /// Idle Power Scale (bits 7:6).
    pub ips: u8,
    /// Reserved.
    pub _reserved19: u8,
    /// Active Power.
    pub actp: U16,
    /// Active Power Workload (bits 2:0) and Active Power Scale (bits 7:6).
    pub apw_aps: u8,
    /// Emergency Power Fail Recovery Time.
    pub epfrt: u8,
    /// Forced Quiescence Vault Time.
    pub fqvt: u8,
    /// Emergency Power Fail Vault Time.
    pub epfvt: u8,
    /// Scales of EPFRT (bits 3:0) and FQVT (bits 7:4).
    pub epfrts_fqvts: u8,
    /// Scale of EPFVT (bits 3:0).
    pub epfvts: u8,
    /// Reserved.
    pub _reserved28: [u8; 4],
}

layout! { PowerState, 32, mp @ 0, flags @ 3, enlat @ 4, exlat @ 8, rrt @ 12, rrl @ 13, rwt @ 14, rwl @ 15, idlp @ 16,
ips @ 18, actp @ 20, apw_aps @ 22, epfrt @ 23, fqvt @ 24, epfvt @ 25, epfrts_fqvts @ 26, epfvts @ 27 }

/// Power State Descriptor, byte 3.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PowerStateFlags {
    /// Max Power Scale: MP is in units of 100 microwatts.
    pub mxps: bool,
    /// Non-Operational State.
    pub nops: bool,
    #[bits(6)]
    __: u8,
}

/// Identify Namespace data structure of the NVM command set (CNS 00h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct IdentifyNamespace {
    /// Namespace Size, logical blocks.
    pub nsze: U64,
    /// Namespace Capacity, logical blocks.
    pub ncap: U64,
    /// Namespace Utilization, logical blocks.
    pub nuse: U64,
    /// Namespace Features.
    pub nsfeat: Nsfeat,
    /// Number of LBA Formats, zeroes based.
    pub nlbaf: u8,
    /// Formatted LBA Size.
    pub flbas: Flbas,
    /// Metadata Capabilities: bit 0 extended logical block, bit 1 separate buffer.
    pub mc: u8,
    /// End-to-end Data Protection Capabilities.
    pub dpc: Dpc,
    /// End-to-end Data Protection Type Settings.
    pub dps: Dps,
    /// Namespace Multi-path I/O and Namespace Sharing Capabilities.
    pub nmic: Nmic,
    /// Reservation Capabilities.
    pub rescap: Rescap,
    /// Format Progress Indicator.
    pub fpi: Fpi,
    /// Deallocate Logical Block Features.
    pub dlfeat: Dlfeat,
    /// Namespace Atomic Write Unit Normal, zeroes based.
    pub nawun: U16,
    /// Namespace Atomic Write Unit Power Fail, zeroes based.
    pub nawupf: U16,
    /// Namespace Atomic Compare and Write Unit, zeroes based.
    pub nacwu: U16,
    /// Namespace Atomic Boundary Size Normal, zeroes based.
    pub nabsn: U16,
    /// Namespace Atomic Boundary Offset.
    pub nabo: U16,
    /// Namespace Atomic Boundary Size Power Fail, zeroes based.
    pub nabspf: U16,
    /// Namespace Optimal I/O Boundary, logical blocks.
    pub noiob: U16,
    /// NVM Capacity, bytes.
    pub nvmcap: U128,
    /// Namespace Preferred Write Granularity, logical blocks, zeroes based.
    pub npwg: U16,
    /// Namespace Preferred Write Alignment, logical blocks, zeroes based.
    pub npwa: U16,
    /// Namespace Preferred Deallocate Granularity, logical blocks, zeroes based.
    pub npdg: U16,
    /// Namespace Preferred Deallocate Alignment, logical blocks, zeroes based.
    pub npda: U16,
    /// Namespace Optimal Write Size, logical blocks, zeroes based.
    pub nows: U16,
    /// Maximum Single Source Range Length, logical blocks.
    pub mssrl: U16,
    /// Maximum Copy Length, logical blocks.
    pub mcl: U32,
    /// Maximum Source Range Count, zeroes based.
    pub msrc: u8,
    /// Key Per I/O Status.
    pub kpios: u8,
    /// Number of Unique Attribute LBA Formats.
    pub nulbaf: u8,
    /// Reserved.
    pub _reserved83: u8,
    /// Key Per I/O Data Access Alignment and Granularity.
    pub kpiodaag: U32,
    /// Reserved.
    pub _reserved88: [u8; 4],
    /// ANA Group Identifier.
    pub anagrpid: U32,
    /// Reserved.
    pub _reserved96: [u8; 3],
    /// Namespace Attributes.
    pub nsattr: Nsattr,
    /// NVM Set Identifier.
    pub nvmsetid: U16,
    /// Endurance Group Identifier.
    pub endgid: U16,
    /// Namespace Globally Unique Identifier, big-endian.
    pub nguid: [u8; 16],
    /// IEEE Extended Unique Identifier, big-endian.
    pub eui64: [u8; 8],
    /// LBA Formats 0 to 63.
    pub lbaf: [LbaFormat; 64],
    /// Vendor Specific.
    pub vs: [u8; 3712],
}

layout! { IdentifyNamespace, 4096, nsze @ 0, ncap @ 8, nuse @ 16, nsfeat @ 24, nlbaf @ 25, flbas @ 26, mc @ 27,
dpc @ 28, dps @ 29, nmic @ 30, rescap @ 31, fpi @ 32, dlfeat @ 33, nawun @ 34, nawupf @ 36, nacwu @ 38, nabsn @ 40,
nabo @ 42, nabspf @ 44, noiob @ 46, nvmcap @ 48, npwg @ 64, npwa @ 66, npdg @ 68, npda @ 70, nows @ 72, mssrl @ 74,
mcl @ 76, msrc @ 80, kpios @ 81, nulbaf @ 82, kpiodaag @ 84, anagrpid @ 92, nsattr @ 99, nvmsetid @ 100, endgid @ 102,
nguid @ 104, eui64 @ 120, lbaf @ 128, vs @ 384 }

/// LBA Format data structure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct LbaFormat {
    /// Metadata Size, bytes.
    pub ms: U16,
    /// LBA Data Size: `2 ^ lbads` bytes; 0 for an unused format.
    pub lbads: u8,
    /// Relative Performance (bits 1:0): 0 best, 1 better, 2 good, 3 degraded.
    pub rp: u8,
}

layout! { LbaFormat, 4, ms @ 0, lbads @ 2, rp @ 3 }

/// NSFEAT of CNS 00h: Namespace Features.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Nsfeat {
    /// Thin Provisioning.
    pub thinp: bool,
    /// NAWUN, NAWUPF and NACWU are defined.
    pub nsabp: bool,
    /// Deallocated or Unwritten Logical Block Error supported.
    pub dae: bool,
    /// NGUID and EUI64 are never reused.
    pub uidreuse: bool,
    /// Optimal Performance: which of NPWG, NPWA, NPDG, NPDA, NOWS (and NPDGL) are defined.
    #[bits(2)]
    pub optperf: u8,
    /// Multiple Atomicity Mode.
    pub mam: bool,
    /// Optimal Read Performance: NPRG, NPRA and NORS are defined.
    pub optrperf: bool,
}

/// FLBAS: Formatted LBA Size.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Flbas {
    /// Format Index Lower: bits 3:0.
    #[bits(4)]
    pub fidxl: u8,
    /// Metadata is at the end of the data, as an extended logical block.
    pub mdtype: bool,
    /// Format Index Upper: bits 5:4.
    #[bits(2)]
    pub fidxu: u8,
    __: bool,
}

/// DPC: End-to-end Data Protection Capabilities.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Dpc {
    /// Protection Information Type 1 Supported.
    pub pit1s: bool,
    /// Protection Information Type 2 Supported.
    pub pit2s: bool,
    /// Protection Information Type 3 Supported.
    pub pit3s: bool,
    /// Protection Information In First Bytes of metadata.
    pub pifb: bool,
    /// Protection Information In Last Bytes of metadata.
    pub pilb: bool,
    #[bits(3)]
    __: u8,
}

/// DPS: End-to-end Data Protection Type Settings.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Dps {
    /// Protection Information Type: 0 disabled, else 1 to 3.
    #[bits(3)]
    pub pit: u8,
    /// Protection Information Position: in the first bytes of metadata.
    pub pip: bool,
    #[bits(4)]
    __: u8,
}

/// NMIC: Namespace Multi-path I/O and Namespace Sharing Capabilities.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Nmic {
    /// Shared Namespace.
    pub shrns: bool,
    /// Dispersed Namespace.
    pub disns: bool,
    #[bits(6)]
    __: u8,
}

/// RESCAP: Reservation Capabilities.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Rescap {
    /// Persist Through Power Loss Support.
    pub ptpls: bool,
    /// Write Exclusive Reservation Support.
    pub wers: bool,
    /// Exclusive Access Reservation Support.
    pub ears: bool,
    /// Write Exclusive - Registrants Only Reservation Support.
    pub werors: bool,
    /// Exclusive Access - Registrants Only Reservation Support.
    pub earors: bool,
    /// Write Exclusive - All Registrants Reservation Support.
    pub wears: bool,
    /// Exclusive Access - All Registrants Reservation Support.
    pub eaars: bool,
    /// Ignore Existing Key Revision 1.3.
    pub iekr: bool,
}

/// FPI: Format Progress Indicator.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Fpi {
    /// Percentage of the namespace that remains to be formatted.
    #[bits(7)]
    pub pfr: u8,
    /// The indicator is supported.
    pub fpis: bool,
}

/// DLFEAT: Deallocate Logical Block Features.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Dlfeat {
    /// Deallocated Logical Block Read Behavior: 0 not reported, 1 zeroes, 2 ones.
    #[bits(3)]
    pub dlrb: u8,
    /// Deallocate bit of Write Zeroes supported.
    pub wzds: bool,
    /// Guard of deallocated blocks is the CRC of the value read.
    pub dlgs: bool,
    #[bits(3)]
    __: u8,
}

/// NSATTR: Namespace Attributes.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Nsattr {
    /// Currently Write Protected.
    pub cwp: bool,
    #[bits(7)]
    __: u8,
}

/// I/O Command Set Independent Identify Namespace data structure (CNS 08h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct IdentifyNamespaceIndependent {
    /// Common Namespace Features.
    pub nsfeat: IndependentNsfeat,
    /// Namespace Multi-path I/O and Namespace Sharing Capabilities.
    pub nmic: Nmic,
    /// Reservation Capabilities.
    pub rescap: Rescap,
    /// Format Progress Indicator.
    pub fpi: Fpi,
    /// ANA Group Identifier.
    pub anagrpid: U32,
    /// Namespace Attributes.
    pub nsattr: Nsattr,
    /// Reserved.
    pub _reserved9: u8,
    /// NVM Set Identifier.
    pub nvmsetid: U16,
    /// Endurance Group Identifier. Linux takes the group of its FDP commands from here.
    pub endgid: U16,
    /// Namespace Status.
    pub nstat: Nstat,
    /// Key Per I/O Status.
    pub kpios: u8,
    /// Maximum Key Tag.
    pub maxkt: U16,
    /// Reserved.
    pub _reserved18: [u8; 2],
    /// Reachability Group Identifier.
    pub rgrpid: U32,
    /// Reserved.
    pub _reserved24: [u8; 4072],
}

layout! { IdentifyNamespaceIndependent, 4096, nsfeat @ 0, nmic @ 1, rescap @ 2, fpi @ 3, anagrpid @ 4, nsattr @ 8,
nvmsetid @ 10, endgid @ 12, nstat @ 14, kpios @ 15, maxkt @ 16, rgrpid @ 20 }

/// NSFEAT of CNS 08h: Common Namespace Features.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct IndependentNsfeat {
    #[bits(3)]
    __: u8,
    /// NGUID and EUI64 are never reused.
    pub uidreuse: bool,
    /// Rotational Media.
    pub rmedia: bool,
    /// Volatile Write Cache Not Present.
    pub vwcnp: bool,
    #[bits(2)]
    __: u8,
}

/// NSTAT: Namespace Status.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Nstat {
    /// Namespace Ready.
    pub nrdy: bool,
    /// I/O Impacted: see the NVM subsystem's Sanitize and Format operations.
    #[bits(2)]
    pub ioi: u8,
    #[bits(5)]
    __: u8,
}

/// NVM Command Set specific Identify Namespace data structure (CNS 05h, CSI 00h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct NvmIdentifyNamespace {
    /// Logical Block Storage Tag Mask.
    pub lbstm: U64,
    /// Protection Information Capabilities: bit 0 16BPISTS, bit 1 16BPISTM, bit 2 STCRS.
    pub pic: u8,
    /// Protection Information Format Attribute.
    pub pifa: u8,
    /// Reserved.
    pub _reserved10: [u8; 2],
    /// Extended LBA Formats 0 to 63.
    pub elbaf: [ExtendedLbaFormat; 64],
    /// Namespace Preferred Deallocate Granularity Large, logical blocks.
    pub npdgl: U32,
    /// Namespace Preferred Read Granularity.
    pub nprg: U32,
    /// Namespace Preferred Read Alignment.
    pub npra: U32,
    /// Namespace Optimal Read Size.
    pub nors: U32,
    /// Namespace Preferred Deallocate Alignment Large, logical blocks.
    pub npdal: U32,
    /// LBA Format Placement Shard Size.
    pub lbapss: U32,
    /// Tracked LBA Allocation Granularity.
    pub tlbaag: U32,
    /// Reserved.
    pub _reserved296: [u8; 3800],
}

layout! { NvmIdentifyNamespace, 4096, lbstm @ 0, pic @ 8, pifa @ 9, elbaf @ 12, npdgl @ 268, nprg @ 272, npra @ 276,
nors @ 280, npdal @ 284, lbapss @ 288, tlbaag @ 292 }

/// Extended LBA Format data structure.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct ExtendedLbaFormat {
    /// Storage Tag Size, bits.
    #[bits(7)]
    pub sts: u8,
    /// Protection Information Format: 0 for a 16-bit, 1 for a 32-bit, 2 for a 64-bit guard, 3 for QPIF.
    #[bits(2)]
    pub pif: u8,
    /// Qualified Protection Information Format.
    #[bits(4)]
    pub qpif: u8,
    #[bits(19)]
    __: u32,
}

/// NVM Command Set specific Identify Controller data structure (CNS 06h, CSI 00h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct NvmIdentifyController {
    /// Verify Size Limit: `2 ^ vsl` units of the minimum memory page size; 0 for no limit.
    pub vsl: u8,
    /// Write Zeroes Size Limit, in the same form.
    pub wzsl: u8,
    /// Write Uncorrectable Size Limit, in the same form.
    pub wusl: u8,
    /// Dataset Management Ranges Limit; 0 for no limit.
    pub dmrl: u8,
    /// Dataset Management Range Size Limit, logical blocks; 0 for no limit.
    pub dmrsl: U32,
    /// Dataset Management Size Limit, logical blocks; 0 for no limit.
    pub dmsl: U64,
    /// Key Per I/O Capabilities.
    pub kpiocap: u8,
    /// Write Zeroes With Deallocate Size Limit.
    pub wzdsl: u8,
    /// Admin Optional Command Support.
    pub aocs: U16,
    /// Version of the NVM Command Set Specification, as in property VS.
    pub ver: U32,
    /// LBA Migration Queue Format.
    pub lbamqf: u8,
    /// Reserved.
    pub _reserved25: [u8; 4071],
}

layout! { NvmIdentifyController, 4096, vsl @ 0, wzsl @ 1, wusl @ 2, dmrl @ 3, dmrsl @ 4, dmsl @ 8, kpiocap @ 16,
wzdsl @ 17, aocs @ 18, ver @ 20, lbamqf @ 24 }

/// Header of a Namespace Identification Descriptor (CNS 03h); `nidl` bytes of identifier follow. A descriptor with
/// `nidl` zero ends the list.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct NamespaceIdentificationDescriptor {
    /// Namespace Identifier Type: a [`NamespaceIdentifierType`].
    pub nidt: u8,
    /// Namespace Identifier Length, bytes.
    pub nidl: u8,
    /// Reserved.
    pub _reserved2: [u8; 2],
}

layout! { NamespaceIdentificationDescriptor, 4, nidt @ 0, nidl @ 1 }

codes! {
    /// Namespace Identifier Type.
    NamespaceIdentifierType(u8, from_u8) {
        Eui64 = 1 => "IEEE Extended Unique Identifier",
        Nguid = 2 => "Namespace Globally Unique Identifier",
        Uuid = 3 => "Namespace UUID",
        Csi = 4 => "Command Set Identifier",
    }
}

impl NamespaceIdentifierType {
    /// The length of an identifier of this type, in bytes.
    pub const fn length(self) -> u8 {
        match self {
            NamespaceIdentifierType::Eui64 => 8,
            NamespaceIdentifierType::Nguid | NamespaceIdentifierType::Uuid => 16,
            NamespaceIdentifierType::Csi => 1,
        }
    }
}

/// Namespace List (CNS 02h, 07h, 10h, 1Ah and the Changed Namespace log): ascending, padded with zeroes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct NamespaceList {
    /// Namespace identifiers.
    pub nsid: [U32; 1024],
}

layout! { NamespaceList, 4096, nsid @ 0 }

/// Controller List (CNS 12h, 13h, and the data of Namespace Attachment).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct ControllerList {
    /// Number of Identifiers.
    pub numids: U16,
    /// Controller identifiers, ascending.
    pub cntlid: [U16; 2047],
}

layout! { ControllerList, 4096, numids @ 0, cntlid @ 2 }

/// Endurance Group List (CNS 19h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct EnduranceGroupList {
    /// Number of Identifiers.
    pub numids: U16,
    /// Endurance group identifiers, ascending.
    pub endgid: [U16; 2047],
}

layout! { EnduranceGroupList, 4096, numids @ 0, endgid @ 2 }

/// Identify I/O Command Set data structure (CNS 1Ch).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct IoCommandSets {
    /// I/O Command Set Combinations; the first zero vector ends the list.
    pub iocsc: [IoCommandSetVector; 512],
}

layout! { IoCommandSets, 4096, iocsc @ 0 }

/// I/O Command Set Vector: which command sets can be used together.
#[bitfield(u64, repr = U64, from = U64::new, into = U64::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct IoCommandSetVector {
    /// NVM Command Set.
    pub nvm: bool,
    /// Key Value Command Set.
    pub kv: bool,
    /// Zoned Namespace Command Set.
    pub zns: bool,
    /// Subsystem Local Memory Command Set.
    pub slm: bool,
    /// Computational Programs Command Set.
    pub cp: bool,
    #[bits(59)]
    __: u64,
}

/// Primary Controller Capabilities data structure (CNS 14h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PrimaryControllerCapabilities {
    /// Controller Identifier.
    pub cntlid: U16,
    /// Port Identifier.
    pub portid: U16,
    /// Controller Resource Types: bit 0 VQ, bit 1 VI.
    pub crt: u8,
    /// Reserved.
    pub _reserved5: [u8; 27],
    /// VQ Resources Flexible Total.
    pub vqfrt: U32,
    /// VQ Resources Flexible Assigned.
    pub vqrfa: U32,
    /// VQ Resources Flexible Allocated to Primary.
    pub vqrfap: U16,
    /// VQ Resources Private Total.
    pub vqprt: U16,
    /// VQ Resources Flexible Secondary Maximum.
    pub vqfrsm: U16,
    /// VQ Flexible Resource Preferred Granularity.
    pub vqgran: U16,
    /// Reserved.
    pub _reserved48: [u8; 16],
    /// VI Resources Flexible Total.
    pub vifrt: U32,
    /// VI Resources Flexible Assigned.
    pub virfa: U32,
    /// VI Resources Flexible Allocated to Primary.
    pub virfap: U16,
    /// VI Resources Private Total.
    pub viprt: U16,
    /// VI Resources Flexible Secondary Maximum.
    pub vifrsm: U16,
    /// VI Flexible Resource Preferred Granularity.
    pub vigran: U16,
    /// Reserved.
    pub _reserved80: [u8; 4016],
}

layout! { PrimaryControllerCapabilities, 4096, cntlid @ 0, crt @ 4, vqfrt @ 32, vqgran @ 46, vifrt @ 64, vigran @ 78 }

/// Secondary Controller List (CNS 15h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SecondaryControllerList {
    /// Number of Identifiers.
    pub numids: u8,
    /// Reserved.
    pub _reserved1: [u8; 31],
    /// Secondary Controller Entries.
    pub entries: [SecondaryControllerEntry; 127],
}

layout! { SecondaryControllerList, 4096, numids @ 0, entries @ 32 }

/// Secondary Controller Entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SecondaryControllerEntry {
    /// Secondary Controller Identifier.
    pub scid: U16,
    /// Primary Controller Identifier.
    pub pcid: U16,
    /// Secondary Controller State: bit 0 online.
    pub scs: u8,
    /// Reserved.
    pub _reserved5: [u8; 3],
    /// Virtual Function Number.
    pub vfn: U16,
    /// Number of VQ Flexible Resources Assigned.
    pub nvq: U16,
    /// Number of VI Flexible Resources Assigned.
    pub nvi: U16,
    /// Reserved.
    pub _reserved14: [u8; 18],
}

layout! { SecondaryControllerEntry, 32, scid @ 0, pcid @ 2, scs @ 4, vfn @ 8, nvq @ 10, nvi @ 12 }

/// Namespace Granularity List (CNS 16h of the NVM command set).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct NamespaceGranularityList {
    /// Namespace Granularity Attributes: bit 0, descriptors map one to one to LBA formats.
    pub attributes: U32,
    /// Number of Descriptors, zeroes based.
    pub num_descriptors: u8,
    /// Reserved.
    pub _reserved5: [u8; 27],
    /// Namespace Granularity Descriptors.
    pub descriptors: [NamespaceGranularityDescriptor; 16],
    /// Reserved.
    pub _reserved288: [u8; 3808],
}

layout! { NamespaceGranularityList, 4096, attributes @ 0, num_descriptors @ 4, descriptors @ 32 }

/// Namespace Granularity Descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct NamespaceGranularityDescriptor {
    /// Namespace Size Granularity, bytes.
    pub nszegran: U64,
    /// Namespace Capacity Granularity, bytes.
    pub ncapgran: U64,
}

layout! { NamespaceGranularityDescriptor, 16, nszegran @ 0, ncapgran @ 8 }

/// UUID List (CNS 17h).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct UuidList {
    /// Reserved.
    pub _reserved0: [u8; 32],
    /// UUID 1 to 127.
    pub entries: [UuidListEntry; 127],
}

layout! { UuidList, 4096, entries @ 32 }

/// UUID List Entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct UuidListEntry {
    /// UUID Lists Entry Header: bits 1:0 identifier association.
    pub header: u8,
    /// Reserved.
    pub _reserved1: [u8; 15],
    /// UUID.
    pub uuid: [u8; 16],
}

layout! { UuidListEntry, 32, header @ 0, uuid @ 16 }

/// Namespace Management, Host Software Specified Fields: the data of the create operation (NVM command set).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct NamespaceCreate {
    /// Namespace Size, logical blocks.
    pub nsze: U64,
    /// Namespace Capacity, logical blocks.
    pub ncap: U64,
    /// Reserved.
    pub _reserved16: [u8; 10],
    /// Formatted LBA Size.
    pub flbas: Flbas,
    /// Reserved.
    pub _reserved27: [u8; 2],
    /// End-to-end Data Protection Type Settings.
    pub dps: Dps,
    /// Namespace Multi-path I/O and Namespace Sharing Capabilities.
    pub nmic: Nmic,
    /// Reserved.
    pub _reserved31: [u8; 61],
    /// ANA Group Identifier.
    pub anagrpid: U32,
    /// Reserved.
    pub _reserved96: [u8; 4],
    /// NVM Set Identifier.
    pub nvmsetid: U16,
    /// Endurance Group Identifier.
    pub endgid: U16,
    /// Reserved.
    pub _reserved104: [u8; 280],
    /// Logical Block Storage Tag Mask.
    pub lbstm: U64,
    /// Number of Placement Handles; ignored unless flexible data placement is enabled.
    pub nphndls: U16,
    /// Reserved; bytes 499 to 511 belong to the Zoned Namespace command set.
    pub _reserved394: [u8; 118],
    /// Placement Handle List: entry i is the reclaim unit handle identifier of placement handle i.
    pub phndl: [U16; 128],
    /// Reserved.
    pub _reserved768: [u8; 3328],
}

layout! { NamespaceCreate, 4096, nsze @ 0, ncap @ 8, flbas @ 26, dps @ 29, nmic @ 30, anagrpid @ 92, nvmsetid @ 100,
endgid @ 102, lbstm @ 384, nphndls @ 392, phndl @ 512 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_fdp_needs() {
        let id = IdentifyController {
            ctratt: Ctratt::new().with_egs(true).with_fdps(true),
            oacs: Oacs::new().with_nms(true).with_dirs(true).with_dbcs(true),
            endgidmax: U16::new(1),
            ..IdentifyController::default()
        };
        let bytes = id.as_bytes();
        assert_eq!(bytes[96..100], [0x10, 0, 0x08, 0]);
        assert_eq!(bytes[256..258], [0x28, 0x01]);
        assert_eq!(bytes[340..342], [1, 0]);
    }

    #[test]
    fn single_bits() {
        assert_eq!(
            Sgls::new().with_sgls(1).with_offset(true).into_bits().get(),
            1 << 20 | 1
        );
        assert_eq!(Sgls::new().with_transport_data_block(true).into_bits().get(), 1 << 21);
        assert_eq!(Oncs::new().with_nszs(true).into_bits().get(), 1 << 12);
        assert_eq!(
            Oaes::new().with_dlpcn(true).with_nsan(true).into_bits().get(),
            0x8000_0100
        );
        assert_eq!(Sanicap::new().with_nodmmas(2).into_bits().get(), 2 << 30);
        assert_eq!(EntrySize::new().with_min(6).with_max(6).into_bits(), 0x66);
        assert_eq!(ExtendedLbaFormat::new().with_pif(2).into_bits().get(), 2 << 7);
    }
}
