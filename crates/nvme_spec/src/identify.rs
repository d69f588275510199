//! Identify data structures by CNS value, and the structure with which a host creates a namespace.
//! Sources are the sections "Identify command" of the Base Specification and the NVM Command Set.
//!
//! Structures of the Zoned Namespace and Key Value command sets and of virtualization are missing.
//! So are the NVM set, domain and ports lists, the namespace granularity list and the user data
//! format variants. CNS 09h and 0Ah use [`IdentifyNamespace`] and [`NvmIdentifyNamespace`].

use zerocopy::little_endian::{U16, U32, U64, U128};

layout! {
    /// Controller or Namespace Structure, what Identify returns.
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

    CommandSet(u8, from_u8) {
        Nvm = 0x00 => "NVM Command Set",
        KeyValue = 0x01 => "Key Value Command Set",
        ZonedNamespace = 0x02 => "Zoned Namespace Command Set",
        SubsystemLocalMemory = 0x03 => "Subsystem Local Memory Command Set",
        ComputationalPrograms = 0x04 => "Computational Programs Command Set",
    }

    /// Identify Controller, Controller Type.
    ControllerType(u8, from_u8) {
        NotReported = 0 => "Controller type is not reported",
        Io = 1 => "I/O controller",
        Discovery = 2 => "Discovery controller",
        Administrative = 3 => "Administrative controller",
    }

    /// Identify Controller data structure (CNS 01h, Base Specification 2.1, Figure 312).
    IdentifyController(4096) {
        vid @ 0: U16 => "PCI Vendor ID.",
        ssvid @ 2: U16 => "PCI Subsystem Vendor ID.",
        sn @ 4: [u8; 20] => "Serial Number, ASCII padded with spaces.",
        mn @ 24: [u8; 40] => "Model Number, ASCII padded with spaces.",
        fr @ 64: [u8; 8] => "Firmware Revision, ASCII padded with spaces.",
        rab @ 72: u8 => "Recommended Arbitration Burst.",
        ieee @ 73: [u8; 3] => "IEEE OUI Identifier, little-endian.",
        cmic @ 76: Cmic => "Controller Multi-Path I/O and Namespace Sharing Capabilities.",
        mdts @ 77: u8 => "Maximum Data Transfer Size, `2 ^ mdts` units of the minimum page size, or 0 for no limit.",
        cntlid @ 78: U16 => "Controller ID.",
        ver @ 80: U32 => "Version, as in property VS.",
        rtd3r @ 84: U32 => "RTD3 Resume Latency, microseconds.",
        rtd3e @ 88: U32 => "RTD3 Entry Latency, microseconds.",
        oaes @ 92: Oaes => "Optional Asynchronous Events Supported.",
        ctratt @ 96: Ctratt => "Controller Attributes.",
        rrls @ 100: U16 => "Read Recovery Levels Supported.",
        bpcap @ 102: u8 => "Boot Partition Capabilities.",
        _reserved103 @ 103: u8,
        nssl @ 104: U32 => "NVM Subsystem Shutdown Latency, microseconds.",
        _reserved108 @ 108: [u8; 2],
        plsi @ 110: u8 => "Power Loss Signaling Information.",
        cntrltype @ 111: u8 => "Controller Type, a [`ControllerType`].",
        fguid @ 112: [u8; 16] => "FRU Globally Unique Identifier.",
        crdt1 @ 128: U16 => "Command Retry Delay Time 1, in units of 100 ms.",
        crdt2 @ 130: U16 => "Command Retry Delay Time 2, in units of 100 ms.",
        crdt3 @ 132: U16 => "Command Retry Delay Time 3, in units of 100 ms.",
        crcap @ 134: u8 => "Controller Reachability Capabilities.",
        _reserved135 @ 135: [u8; 118] => "Reserved, bytes 240 to 252 belong to the management interface.",
        nvmsr @ 253: u8 => "NVM Subsystem Report.",
        vwci @ 254: u8 => "VPD Write Cycle Information.",
        mec @ 255: u8 => "Management Endpoint Capabilities.",
        oacs @ 256: Oacs => "Optional Admin Command Support.",
        acl @ 258: u8 => "Abort Command Limit, zeroes based.",
        aerl @ 259: u8 => "Asynchronous Event Request Limit, zeroes based.",
        frmw @ 260: Frmw => "Firmware Updates.",
        lpa @ 261: Lpa => "Log Page Attributes.",
        elpe @ 262: u8 => "Error Log Page Entries, zeroes based.",
        npss @ 263: u8 => "Number of Power States Support, zeroes based.",
        avscc @ 264: u8 => "Admin Vendor Specific Command Configuration.",
        apsta @ 265: u8 => "Autonomous Power State Transition Attributes.",
        wctemp @ 266: U16 => "Warning Composite Temperature Threshold, kelvins.",
        cctemp @ 268: U16 => "Critical Composite Temperature Threshold, kelvins.",
        mtfa @ 270: U16 => "Maximum Time for Firmware Activation, in units of 100 ms.",
        hmpre @ 272: U32 => "Host Memory Buffer Preferred Size, in units of 4 KiB.",
        hmmin @ 276: U32 => "Host Memory Buffer Minimum Size, in units of 4 KiB.",
        tnvmcap @ 280: U128 => "Total NVM Capacity, bytes.",
        unvmcap @ 296: U128 => "Unallocated NVM Capacity, bytes.",
        rpmbs @ 312: U32 => "Replay Protected Memory Block Support.",
        edstt @ 316: U16 => "Extended Device Self-test Time, minutes.",
        dsto @ 318: u8 => "Device Self-test Options.",
        fwug @ 319: u8 => "Firmware Update Granularity, in units of 4 KiB. 0 is not reported, FFh no restriction.",
        kas @ 320: U16 => "Keep Alive Support, granularity in units of 100 ms, or 0 for no support.",
        hctma @ 322: U16 => "Host Controlled Thermal Management Attributes.",
        mntmt @ 324: U16 => "Minimum Thermal Management Temperature, kelvins.",
        mxtmt @ 326: U16 => "Maximum Thermal Management Temperature, kelvins.",
        sanicap @ 328: Sanicap => "Sanitize Capabilities.",
        hmminds @ 332: U32 => "Host Memory Buffer Minimum Descriptor Entry Size, in units of 4 KiB.",
        hmmaxd @ 336: U16 => "Host Memory Maximum Descriptors Entries.",
        nsetidmax @ 338: U16 => "NVM Set Identifier Maximum.",
        endgidmax @ 340: U16 => "Endurance Group Identifier Maximum.",
        anatt @ 342: u8 => "ANA Transition Time, seconds.",
        anacap @ 343: u8 => "Asymmetric Namespace Access Capabilities.",
        anagrpmax @ 344: U32 => "ANA Group Identifier Maximum.",
        nanagrpid @ 348: U32 => "Number of ANA Group Identifiers.",
        pels @ 352: U32 => "Persistent Event Log Size, in units of 64 KiB.",
        domain_identifier @ 356: U16 => "Domain Identifier.",
        kpioc @ 358: u8 => "Key Per I/O Capabilities.",
        _reserved359 @ 359: u8,
        mptfawr @ 360: U16 => "Maximum Processing Time for Firmware Activation Without Reset, in units of 100 ms.",
        _reserved362 @ 362: [u8; 6],
        megcap @ 368: U128 => "Max Endurance Group Capacity, bytes.",
        tmpthha @ 384: u8 => "Temperature Threshold Hysteresis Attributes.",
        _reserved385 @ 385: u8,
        cqt @ 386: U16 => "Command Quiesce Time, milliseconds.",
        _reserved388 @ 388: [u8; 124],
        sqes @ 512: EntrySize => "Submission Queue Entry Size.",
        cqes @ 513: EntrySize => "Completion Queue Entry Size.",
        maxcmd @ 514: U16 => "Maximum Outstanding Commands.",
        nn @ 516: U32 => "Number of Namespaces, the highest valid NSID.",
        oncs @ 520: Oncs => "Optional NVM Command Support.",
        fuses @ 522: U16 => "Fused Operation Support. Bit 0 is compare and write.",
        fna @ 524: Fna => "Format NVM Attributes.",
        vwc @ 525: Vwc => "Volatile Write Cache.",
        awun @ 526: U16 => "Atomic Write Unit Normal, logical blocks, zeroes based.",
        awupf @ 528: U16 => "Atomic Write Unit Power Fail, logical blocks, zeroes based.",
        icsvscc @ 530: u8 => "I/O Command Set Vendor Specific Command Configuration.",
        nwpc @ 531: u8 => "Namespace Write Protection Capabilities.",
        acwu @ 532: U16 => "Atomic Compare and Write Unit, logical blocks, zeroes based.",
        cdfs @ 534: U16 => "Copy Descriptor Formats Supported, a bit per format.",
        sgls @ 536: Sgls => "SGL Support.",
        mnan @ 540: U32 => "Maximum Number of Allowed Namespaces.",
        maxdna @ 544: U128 => "Maximum Domain Namespace Attachments.",
        maxcna @ 560: U32 => "Maximum I/O Controller Namespace Attachments.",
        oaqd @ 564: U32 => "Optimal Aggregated Queue Depth.",
        rhiri @ 568: u8 => "Recommended Host-Initiated Refresh Interval, days.",
        hirt @ 569: u8 => "Host-Initiated Refresh Time, minutes.",
        cmmrtd @ 570: U16 => "Controller Maximum Memory Range Tracking Descriptors.",
        nmmrtd @ 572: U16 => "NVM Subsystem Maximum Memory Range Tracking Descriptors.",
        minmrtg @ 574: u8 => "Minimum Memory Range Tracking Granularity.",
        maxmrtg @ 575: u8 => "Maximum Memory Range Tracking Granularity.",
        trattr @ 576: u8 => "Tracking Attributes.",
        _reserved577 @ 577: u8,
        mcudmq @ 578: U16 => "Maximum Controller User Data Migration Queues.",
        mnsudmq @ 580: U16 => "Maximum NVM Subsystem User Data Migration Queues.",
        mcmr @ 582: U16 => "Maximum CDQ Memory Ranges.",
        nmcmr @ 584: U16 => "NVM Subsystem Maximum CDQ Memory Ranges.",
        mcdqpc @ 586: U16 => "Maximum Controller Data Queue PRP Count.",
        _reserved588 @ 588: [u8; 180],
        subnqn @ 768: [u8; 256] => "NVM Subsystem NVMe Qualified Name, UTF-8 padded with zeroes.",
        _reserved1024 @ 1024: [u8; 768],
        ioccsz @ 1792: U32 => "I/O Queue Command Capsule Supported Size, in units of 16 bytes (fabrics).",
        iorcsz @ 1796: U32 => "I/O Queue Response Capsule Supported Size, in units of 16 bytes (fabrics).",
        icdoff @ 1800: U16 => "In Capsule Data Offset, in units of 16 bytes (fabrics).",
        fcatt @ 1802: u8 => "Fabrics Controller Attributes. Bit 0 is 0 for the dynamic, 1 for the static model.",
        msdbd @ 1803: u8 => "Maximum SGL Data Block Descriptors (fabrics), or 0 for no limit.",
        ofcs @ 1804: U16 => "Optional Fabrics Commands Supported. Bit 0 is Disconnect.",
        dctype @ 1806: u8 => "Discovery Controller Type.",
        _reserved1807 @ 1807: [u8; 241],
        psd @ 2048: [PowerState; 32] => "Power State Descriptors 0 to 31.",
        vs @ 3072: [u8; 1024] => "Vendor Specific.",
    }

    /// Controller Multi-Path I/O and Namespace Sharing Capabilities (CMIC).
    Cmic(u8) {
        mports: bool => "Multiple Ports.",
        mctrs: bool => "Multiple Controllers.",
        ft: bool => "Function Type, SR-IOV virtual function.",
        anars: bool => "Asymmetric Namespace Access Reporting Supported.",
        __(4): u8,
    }

    /// Optional Asynchronous Events Supported (OAES).
    Oaes(U32) {
        __: u8,
        nsan: bool => "Attached Namespace Attribute Notices Support.",
        fwan: bool => "Firmware Activation Notices Support.",
        __: bool,
        anacn: bool => "Asymmetric Namespace Access Change Notices Support.",
        plealcn: bool => "Predictable Latency Event Aggregate Log Change Notices Support.",
        lsian: bool => "LBA Status Information Alert Notices Support.",
        egealpcn: bool => "Endurance Group Event Aggregate Log Page Change Notices Support.",
        nnsss: bool => "Normal NVM Subsystem Shutdown Event Support.",
        tthr: bool => "Temperature Threshold Hysteresis Recovery Support.",
        rgcns: bool => "Reachability Groups Change Notices Support.",
        __: bool,
        ansan: bool => "Allocated Namespace Attribute Notices Support.",
        __(7): u8,
        zdcn: bool => "Zone Descriptor Changed Notices Support.",
        __(3): u8,
        dlpcn: bool => "Discovery Log Page Change Notices Support.",
    }

    /// Controller Attributes (CTRATT).
    Ctratt(U32) {
        hids: bool => "Host Identifier Support, 128-bit host identifiers.",
        nopspm: bool => "Non-Operational Power State Permissive Mode.",
        nsets: bool => "NVM Sets.",
        rrlvls: bool => "Read Recovery Levels.",
        egs: bool => "Endurance Groups.",
        plm: bool => "Predictable Latency Mode.",
        tbkas: bool => "Traffic Based Keep Alive Support.",
        ng: bool => "Namespace Granularity.",
        sqa: bool => "SQ Associations.",
        ulist: bool => "UUID List.",
        mds: bool => "Multi-Domain Subsystem.",
        fcm: bool => "Fixed Capacity Management.",
        vcm: bool => "Variable Capacity Management.",
        deg: bool => "Delete Endurance Group.",
        dnvms: bool => "Delete NVM Set.",
        elbas: bool => "Extended LBA Formats Supported.",
        mem: bool => "MDTS and Size Limits Exclude Metadata.",
        hmbr: bool => "HMB Restrict Non-Operational Power State Access.",
        rhii: bool => "Reservations and Host Identifier Interaction.",
        fdps: bool => "Flexible Data Placement Support.",
        __(12): u16,
    }

    /// Optional Admin Command Support (OACS).
    Oacs(U16) {
        ssrs: bool => "Security Send and Receive Supported.",
        fnvms: bool => "Format NVM Supported.",
        fwds: bool => "Firmware Download Supported (and Firmware Commit).",
        nms: bool => "Namespace Management Supported (and Namespace Attachment).",
        dsts: bool => "Device Self-test Supported.",
        dirs: bool => "Directives Supported.",
        nsrs: bool => "NVMe-MI Send and Receive Supported.",
        vms: bool => "Virtualization Management Supported.",
        dbcs: bool => "Doorbell Buffer Config Supported.",
        glss: bool => "Get LBA Status Supported.",
        cfls: bool => "Command and Feature Lockdown Supported.",
        hmlms: bool => "Host Managed Live Migration Support.",
        __(4): u8,
    }

    /// Firmware Updates (FRMW).
    Frmw(u8) {
        ffsro: bool => "First Firmware Slot Read Only.",
        nofs(3): u8 => "Number of Firmware Slots, 1 to 7.",
        fawr: bool => "Firmware Activation Without Reset.",
        smud: bool => "Support Multiple Update Detection.",
        __(2): u8,
    }

    /// Log Page Attributes (LPA).
    Lpa(u8) {
        smarts: bool => "SMART Support, per namespace SMART / Health log.",
        cses: bool => "Commands Supported and Effects log.",
        lpeds: bool => "Log Page Extended Data Support, offset and extended number of dwords.",
        ts: bool => "Telemetry Support.",
        pes: bool => "Persistent Event log Support.",
        mlps: bool => "Miscellaneous Log Page Support, LIDs 00h, 05h (scope), 12h and 13h.",
        da4s: bool => "Data Area 4 Support.",
        __: bool,
    }

    /// Sanitize Capabilities (SANICAP).
    Sanicap(U32) {
        ces: bool => "Crypto Erase Support.",
        bes: bool => "Block Erase Support.",
        ows: bool => "Overwrite Support.",
        vers: bool => "Verification Support.",
        __(25): u32,
        ndi: bool => "No-Deallocate Inhibited.",
        nodmmas(2): u8 => "No-Deallocate Modifies Media After Sanitize (0 not defined, 1 no, 2 yes).",
    }

    /// Queue entry sizes as powers of two (SQES and CQES).
    EntrySize(u8) {
        min(4): u8 => "Minimum (required) size, 6 for submission, 4 for completion queues.",
        max(4): u8 => "Maximum size.",
    }

    /// Optional NVM Command Support (ONCS).
    Oncs(U16) {
        nvmcmps: bool => "Compare.",
        nvmwusv: bool => "Write Uncorrectable.",
        nvmdsmsv: bool => "Dataset Management.",
        nvmwzsv: bool => "Write Zeroes.",
        ssfs: bool => "Save and Select in Get and Set Features.",
        reservs: bool => "Reservations.",
        tss: bool => "Timestamp.",
        nvmvfys: bool => "Verify.",
        nvmcpys: bool => "Copy.",
        nvmcsas: bool => "Copy Single Atomicity.",
        nvmafc: bool => "All Fast Copy.",
        maxwzd: bool => "Maximum Write Zeroes with Deallocate.",
        nszs: bool => "Namespace Zeroes.",
        __(3): u8,
    }

    /// Format NVM Attributes (FNA).
    Fna(u8) {
        fns: bool => "Format Namespace Scope, a format applies to all namespaces.",
        sens: bool => "Secure Erase Namespace Scope, a secure erase applies to all namespaces.",
        cryes: bool => "Crypto Erase Supported.",
        fnvmbs: bool => "Format NVM Broadcast *not* supported.",
        __(4): u8,
    }

    /// Volatile Write Cache (VWC).
    Vwc(u8) {
        vwcp: bool => "Volatile Write Cache Present.",
        fb(2): u8 => "Flush Behavior (2 no broadcast, 3 broadcast NSID supported).",
        __(5): u8,
    }

    /// SGL Support (SGLS).
    Sgls(U32) {
        sgls(2): u8 => "SGL Support (0 none, 1 without alignment requirement, 2 dword aligned).",
        ksdbds: bool => "Keyed SGL Data Block descriptor supported.",
        __(5): u8,
        sdt: u8 => "SGL Descriptor Threshold.",
        sbbds: bool => "Bit Bucket descriptor supported.",
        mbas: bool => "Byte aligned contiguous physical buffer of metadata supported.",
        sgl_length_larger: bool => "SGL length larger than the data transferred supported.",
        mptr_sgl: bool => "MPTR containing an SGL descriptor supported.",
        offset: bool => "Address field as an offset supported.",
        transport_data_block: bool => "Transport SGL Data Block descriptor supported.",
        __(10): u16,
    }

    PowerState(32) {
        mp @ 0: U16 => "Maximum Power, in units of 10 mW (100 microwatts with MXPS).",
        _reserved2 @ 2: u8,
        flags @ 3: u8 => "Scale of MP, and the non-operational flag.",
        enlat @ 4: U32 => "Entry Latency, microseconds.",
        exlat @ 8: U32 => "Exit Latency, microseconds.",
        rrt @ 12: u8 => "Relative Read Throughput (bits 4:0).",
        rrl @ 13: u8 => "Relative Read Latency (bits 4:0).",
        rwt @ 14: u8 => "Relative Write Throughput (bits 4:0).",
        rwl @ 15: u8 => "Relative Write Latency (bits 4:0).",
        idlp @ 16: U16 => "Idle Power.",
        ips @ 18: u8 => "Idle Power Scale (bits 7:6).",
        _reserved19 @ 19: u8,
        actp @ 20: U16 => "Active Power.",
        apw_aps @ 22: u8 => "Active Power Workload (bits 2:0) and Active Power Scale (bits 7:6).",
        epfrt @ 23: u8 => "Emergency Power Fail Recovery Time.",
        fqvt @ 24: u8 => "Forced Quiescence Vault Time.",
        epfvt @ 25: u8 => "Emergency Power Fail Vault Time.",
        epfrts_fqvts @ 26: u8 => "Scales of EPFRT (bits 3:0) and FQVT (bits 7:4).",
        epfvts @ 27: u8 => "Scale of EPFVT (bits 3:0).",
        _reserved28 @ 28: [u8; 4],
    }

    /// Identify Namespace data structure of the NVM command set (CNS 00h).
    IdentifyNamespace(4096) {
        nsze @ 0: U64 => "Namespace Size, logical blocks.",
        ncap @ 8: U64 => "Namespace Capacity, logical blocks.",
        nuse @ 16: U64 => "Namespace Utilization, logical blocks.",
        nsfeat @ 24: Nsfeat => "Namespace Features.",
        nlbaf @ 25: u8 => "Number of LBA Formats, zeroes based.",
        flbas @ 26: Flbas => "Formatted LBA Size.",
        mc @ 27: u8 => "Metadata Capabilities. Bit 0 is extended logical blocks, bit 1 a separate buffer.",
        dpc @ 28: u8 => "End-to-end Data Protection Capabilities.",
        dps @ 29: Dps => "End-to-end Data Protection Type Settings.",
        nmic @ 30: Nmic => "Namespace Multi-path I/O and Namespace Sharing Capabilities.",
        rescap @ 31: u8 => "Reservation Capabilities.",
        fpi @ 32: Fpi => "Format Progress Indicator.",
        dlfeat @ 33: Dlfeat => "Deallocate Logical Block Features.",
        nawun @ 34: U16 => "Namespace Atomic Write Unit Normal, zeroes based.",
        nawupf @ 36: U16 => "Namespace Atomic Write Unit Power Fail, zeroes based.",
        nacwu @ 38: U16 => "Namespace Atomic Compare and Write Unit, zeroes based.",
        nabsn @ 40: U16 => "Namespace Atomic Boundary Size Normal, zeroes based.",
        nabo @ 42: U16 => "Namespace Atomic Boundary Offset.",
        nabspf @ 44: U16 => "Namespace Atomic Boundary Size Power Fail, zeroes based.",
        noiob @ 46: U16 => "Namespace Optimal I/O Boundary, logical blocks.",
        nvmcap @ 48: U128 => "NVM Capacity, bytes.",
        npwg @ 64: U16 => "Namespace Preferred Write Granularity, logical blocks, zeroes based.",
        npwa @ 66: U16 => "Namespace Preferred Write Alignment, logical blocks, zeroes based.",
        npdg @ 68: U16 => "Namespace Preferred Deallocate Granularity, logical blocks, zeroes based.",
        npda @ 70: U16 => "Namespace Preferred Deallocate Alignment, logical blocks, zeroes based.",
        nows @ 72: U16 => "Namespace Optimal Write Size, logical blocks, zeroes based.",
        mssrl @ 74: U16 => "Maximum Single Source Range Length, logical blocks.",
        mcl @ 76: U32 => "Maximum Copy Length, logical blocks.",
        msrc @ 80: u8 => "Maximum Source Range Count, zeroes based.",
        kpios @ 81: u8 => "Key Per I/O Status.",
        nulbaf @ 82: u8 => "Number of Unique Attribute LBA Formats.",
        _reserved83 @ 83: u8,
        kpiodaag @ 84: U32 => "Key Per I/O Data Access Alignment and Granularity.",
        _reserved88 @ 88: [u8; 4],
        anagrpid @ 92: U32 => "ANA Group Identifier.",
        _reserved96 @ 96: [u8; 3],
        nsattr @ 99: Nsattr => "Namespace Attributes.",
        nvmsetid @ 100: U16 => "NVM Set Identifier.",
        endgid @ 102: U16 => "Endurance Group Identifier.",
        nguid @ 104: [u8; 16] => "Namespace Globally Unique Identifier, big-endian.",
        eui64 @ 120: [u8; 8] => "IEEE Extended Unique Identifier, big-endian.",
        lbaf @ 128: [LbaFormat; 64] => "LBA Formats 0 to 63.",
        vs @ 384: [u8; 3712] => "Vendor Specific.",
    }

    LbaFormat(4) {
        ms @ 0: U16 => "Metadata Size, bytes.",
        lbads @ 2: u8 => "LBA Data Size, `2 ^ lbads` bytes, or 0 for an unused format.",
        rp @ 3: u8 => "Relative Performance (bits 1:0), 0 best, 1 better, 2 good, 3 degraded.",
    }

    /// Namespace Features (NSFEAT of CNS 00h).
    Nsfeat(u8) {
        thinp: bool => "Thin Provisioning.",
        nsabp: bool => "NAWUN, NAWUPF and NACWU are defined.",
        dae: bool => "Deallocated or Unwritten Logical Block Error supported.",
        uidreuse: bool => "NGUID and EUI64 are never reused.",
        optperf(2): u8 => "Optimal Performance. Selects the defined ones of NPWG, NPWA, NPDG, NPDA, NOWS (and NPDGL).",
        mam: bool => "Multiple Atomicity Mode.",
        optrperf: bool => "Optimal Read Performance, NPRG, NPRA and NORS are defined.",
    }

    /// Formatted LBA Size (FLBAS).
    Flbas(u8) {
        fidxl(4): u8 => "Format Index Lower, bits 3:0.",
        mdtype: bool => "Metadata is at the end of the data, as an extended logical block.",
        fidxu(2): u8 => "Format Index Upper, bits 5:4.",
        __: bool,
    }

    /// End-to-end Data Protection Type Settings (DPS).
    Dps(u8) {
        pit(3): u8 => "Protection Information Type (0 disabled, else 1 to 3).",
        pip: bool => "Protection Information Position, in the first bytes of metadata.",
        __(4): u8,
    }

    /// Namespace Multi-path I/O and Namespace Sharing Capabilities (NMIC).
    Nmic(u8) {
        shrns: bool => "Shared Namespace.",
        disns: bool => "Dispersed Namespace.",
        __(6): u8,
    }

    /// Format Progress Indicator (FPI).
    Fpi(u8) {
        pfr(7): u8 => "Percentage of the namespace that remains to be formatted.",
        fpis: bool => "The indicator is supported.",
    }

    /// Deallocate Logical Block Features (DLFEAT).
    Dlfeat(u8) {
        dlrb(3): u8 => "Deallocated Logical Block Read Behavior (0 not reported, 1 zeroes, 2 ones).",
        wzds: bool => "Deallocate bit of Write Zeroes supported.",
        dlgs: bool => "Guard of deallocated blocks is the CRC of the value read.",
        __(3): u8,
    }

    /// Namespace Attributes (NSATTR).
    Nsattr(u8) {
        cwp: bool => "Currently Write Protected.",
        __(7): u8,
    }

    /// I/O Command Set Independent Identify Namespace data structure (CNS 08h).
    IdentifyNamespaceIndependent(4096) {
        nsfeat @ 0: IndependentNsfeat => "Common Namespace Features.",
        nmic @ 1: Nmic => "Namespace Multi-path I/O and Namespace Sharing Capabilities.",
        rescap @ 2: u8 => "Reservation Capabilities.",
        fpi @ 3: Fpi => "Format Progress Indicator.",
        anagrpid @ 4: U32 => "ANA Group Identifier.",
        nsattr @ 8: Nsattr => "Namespace Attributes.",
        _reserved9 @ 9: u8,
        nvmsetid @ 10: U16 => "NVM Set Identifier.",
        endgid @ 12: U16 => "Endurance Group Identifier. Linux takes the group of its FDP commands from here.",
        nstat @ 14: Nstat => "Namespace Status.",
        kpios @ 15: u8 => "Key Per I/O Status.",
        maxkt @ 16: U16 => "Maximum Key Tag.",
        _reserved18 @ 18: [u8; 2],
        rgrpid @ 20: U32 => "Reachability Group Identifier.",
        _reserved24 @ 24: [u8; 4072],
    }

    /// Common Namespace Features (NSFEAT of CNS 08h).
    IndependentNsfeat(u8) {
        __(3): u8,
        uidreuse: bool => "NGUID and EUI64 are never reused.",
        rmedia: bool => "Rotational Media.",
        vwcnp: bool => "Volatile Write Cache Not Present.",
        __(2): u8,
    }

    /// Namespace Status (NSTAT).
    Nstat(u8) {
        nrdy: bool => "Namespace Ready.",
        ioi(2): u8 => "I/O Impacted, see the NVM subsystem's Sanitize and Format operations.",
        __(5): u8,
    }

    /// NVM Command Set specific Identify Namespace data structure (CNS 05h, CSI 00h).
    NvmIdentifyNamespace(4096) {
        lbstm @ 0: U64 => "Logical Block Storage Tag Mask.",
        pic @ 8: u8 => "Protection Information Capabilities. Bit 0 is 16BPISTS, bit 1 16BPISTM, bit 2 STCRS.",
        pifa @ 9: u8 => "Protection Information Format Attribute.",
        _reserved10 @ 10: [u8; 2],
        elbaf @ 12: [ExtendedLbaFormat; 64] => "Extended LBA Formats 0 to 63.",
        npdgl @ 268: U32 => "Namespace Preferred Deallocate Granularity Large, logical blocks.",
        nprg @ 272: U32 => "Namespace Preferred Read Granularity.",
        npra @ 276: U32 => "Namespace Preferred Read Alignment.",
        nors @ 280: U32 => "Namespace Optimal Read Size.",
        npdal @ 284: U32 => "Namespace Preferred Deallocate Alignment Large, logical blocks.",
        lbapss @ 288: U32 => "LBA Format Placement Shard Size.",
        tlbaag @ 292: U32 => "Tracked LBA Allocation Granularity.",
        _reserved296 @ 296: [u8; 3800],
    }

    ExtendedLbaFormat(U32) {
        sts(7): u8 => "Storage Tag Size, bits.",
        pif(2): u8 => "Protection Information Format (0 16-bit guard, 1 32-bit guard, 2 64-bit guard, 3 QPIF).",
        qpif(4): u8 => "Qualified Protection Information Format.",
        __(19): u32,
    }

    /// NVM Command Set specific Identify Controller data structure (CNS 06h, CSI 00h).
    NvmIdentifyController(4096) {
        vsl @ 0: u8 => "Verify Size Limit, `2 ^ vsl` units of the minimum memory page size, or 0 for no limit.",
        wzsl @ 1: u8 => "Write Zeroes Size Limit, in the same form.",
        wusl @ 2: u8 => "Write Uncorrectable Size Limit, in the same form.",
        dmrl @ 3: u8 => "Dataset Management Ranges Limit, or 0 for no limit.",
        dmrsl @ 4: U32 => "Dataset Management Range Size Limit, logical blocks, or 0 for no limit.",
        dmsl @ 8: U64 => "Dataset Management Size Limit, logical blocks, or 0 for no limit.",
        kpiocap @ 16: u8 => "Key Per I/O Capabilities.",
        wzdsl @ 17: u8 => "Write Zeroes With Deallocate Size Limit.",
        aocs @ 18: U16 => "Admin Optional Command Support.",
        ver @ 20: U32 => "Version of the NVM Command Set Specification, as in property VS.",
        lbamqf @ 24: u8 => "LBA Migration Queue Format.",
        _reserved25 @ 25: [u8; 4071],
    }

    /// Header of a Namespace Identification Descriptor (CNS 03h), followed by `nidl` bytes of
    /// identifier. A descriptor with `nidl` zero ends the list.
    NamespaceIdentificationDescriptor(4) {
        nidt @ 0: u8 => "Namespace Identifier Type, a [`NamespaceIdentifierType`].",
        nidl @ 1: u8 => "Namespace Identifier Length, bytes.",
        _reserved2 @ 2: [u8; 2],
    }

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

layout! {
    /// Namespace List (CNS 02h, 07h, 10h, 1Ah and the Changed Namespace log), ascending and padded
    /// with zeroes.
    NamespaceList(4096) {
        nsid @ 0: [U32; 1024] => "Namespace identifiers.",
    }

    /// Controller List (CNS 12h, 13h, and the data of Namespace Attachment).
    ControllerList(4096) {
        numids @ 0: U16 => "Number of Identifiers.",
        cntlid @ 2: [U16; 2047] => "Controller identifiers, ascending.",
    }

    /// Endurance Group List (CNS 19h).
    EnduranceGroupList(4096) {
        numids @ 0: U16 => "Number of Identifiers.",
        endgid @ 2: [U16; 2047] => "Endurance group identifiers, ascending.",
    }

    /// Identify I/O Command Set data structure (CNS 1Ch).
    IoCommandSets(4096) {
        iocsc @ 0: [IoCommandSetVector; 512] => "I/O Command Set Combinations. The first zero vector ends the list.",
    }

    /// I/O Command Set Vector, a set of command sets that can be used together.
    IoCommandSetVector(U64) {
        nvm: bool => "NVM Command Set.",
        kv: bool => "Key Value Command Set.",
        zns: bool => "Zoned Namespace Command Set.",
        slm: bool => "Subsystem Local Memory Command Set.",
        cp: bool => "Computational Programs Command Set.",
        __(59): u64,
    }

    /// UUID List (CNS 17h).
    UuidList(4096) {
        _reserved0 @ 0: [u8; 32],
        entries @ 32: [UuidListEntry; 127] => "UUIDs. The first has index 1, and all entries after the last are zero.",
    }

    UuidListEntry(32) {
        header @ 0: u8 => "Owner of the UUID in bits 1:0 (0 no association, 1 PCI vendor, 2 PCI subsystem vendor).",
        _reserved1 @ 1: [u8; 15],
        uuid @ 16: [u8; 16] => "UUID.",
    }

    /// Namespace Management, Host Software Specified Fields, the data of the create operation (NVM
    /// command set).
    NamespaceCreate(4096) {
        nsze @ 0: U64 => "Namespace Size, logical blocks.",
        ncap @ 8: U64 => "Namespace Capacity, logical blocks.",
        _reserved16 @ 16: [u8; 10],
        flbas @ 26: Flbas => "Formatted LBA Size.",
        _reserved27 @ 27: [u8; 2],
        dps @ 29: Dps => "End-to-end Data Protection Type Settings.",
        nmic @ 30: Nmic => "Namespace Multi-path I/O and Namespace Sharing Capabilities.",
        _reserved31 @ 31: [u8; 61],
        anagrpid @ 92: U32 => "ANA Group Identifier.",
        _reserved96 @ 96: [u8; 4],
        nvmsetid @ 100: U16 => "NVM Set Identifier.",
        endgid @ 102: U16 => "Endurance Group Identifier.",
        _reserved104 @ 104: [u8; 280],
        lbstm @ 384: U64 => "Logical Block Storage Tag Mask.",
        nphndls @ 392: U16 => "Number of Placement Handles, ignored unless flexible data placement is enabled.",
        _reserved394 @ 394: [u8; 118] => "Reserved, bytes 499 to 511 belong to the Zoned Namespace command set.",
        phndl @ 512: [U16; 128] => "Placement Handle List. Entry i is the reclaim unit handle of placement handle i.",
        _reserved768 @ 768: [u8; 3328],
    }
}
