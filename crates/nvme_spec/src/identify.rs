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

    /// Command Set Identifier.
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
        /// PCI Vendor ID.
        vid @ 0: U16,
        /// PCI Subsystem Vendor ID.
        ssvid @ 2: U16,
        /// Serial Number, ASCII padded with spaces.
        sn @ 4: [u8; 20],
        /// Model Number, ASCII padded with spaces.
        mn @ 24: [u8; 40],
        /// Firmware Revision, ASCII padded with spaces.
        fr @ 64: [u8; 8],
        /// Recommended Arbitration Burst.
        rab @ 72: u8,
        /// IEEE OUI Identifier, little-endian.
        ieee @ 73: [u8; 3],
        /// Controller Multi-Path I/O and Namespace Sharing Capabilities.
        cmic @ 76: Cmic,
        /// Maximum Data Transfer Size, `2 ^ mdts` units of the minimum memory page size, or 0 for
        /// no limit.
        mdts @ 77: u8,
        /// Controller ID.
        cntlid @ 78: U16,
        /// Version, as in property VS.
        ver @ 80: U32,
        /// RTD3 Resume Latency, microseconds.
        rtd3r @ 84: U32,
        /// RTD3 Entry Latency, microseconds.
        rtd3e @ 88: U32,
        /// Optional Asynchronous Events Supported.
        oaes @ 92: Oaes,
        /// Controller Attributes.
        ctratt @ 96: Ctratt,
        /// Read Recovery Levels Supported.
        rrls @ 100: U16,
        /// Boot Partition Capabilities.
        bpcap @ 102: u8,
        _reserved103 @ 103: u8,
        /// NVM Subsystem Shutdown Latency, microseconds.
        nssl @ 104: U32,
        _reserved108 @ 108: [u8; 2],
        /// Power Loss Signaling Information.
        plsi @ 110: u8,
        /// Controller Type, a [`ControllerType`].
        cntrltype @ 111: u8,
        /// FRU Globally Unique Identifier.
        fguid @ 112: [u8; 16],
        /// Command Retry Delay Time 1, in units of 100 ms.
        crdt1 @ 128: U16,
        /// Command Retry Delay Time 2, in units of 100 ms.
        crdt2 @ 130: U16,
        /// Command Retry Delay Time 3, in units of 100 ms.
        crdt3 @ 132: U16,
        /// Controller Reachability Capabilities.
        crcap @ 134: u8,
        /// Reserved, bytes 240 to 252 belong to the management interface.
        _reserved135 @ 135: [u8; 118],
        /// NVM Subsystem Report.
        nvmsr @ 253: u8,
        /// VPD Write Cycle Information.
        vwci @ 254: u8,
        /// Management Endpoint Capabilities.
        mec @ 255: u8,
        /// Optional Admin Command Support.
        oacs @ 256: Oacs,
        /// Abort Command Limit, zeroes based.
        acl @ 258: u8,
        /// Asynchronous Event Request Limit, zeroes based.
        aerl @ 259: u8,
        /// Firmware Updates.
        frmw @ 260: Frmw,
        /// Log Page Attributes.
        lpa @ 261: Lpa,
        /// Error Log Page Entries, zeroes based.
        elpe @ 262: u8,
        /// Number of Power States Support, zeroes based.
        npss @ 263: u8,
        /// Admin Vendor Specific Command Configuration.
        avscc @ 264: u8,
        /// Autonomous Power State Transition Attributes.
        apsta @ 265: u8,
        /// Warning Composite Temperature Threshold, kelvins.
        wctemp @ 266: U16,
        /// Critical Composite Temperature Threshold, kelvins.
        cctemp @ 268: U16,
        /// Maximum Time for Firmware Activation, in units of 100 ms.
        mtfa @ 270: U16,
        /// Host Memory Buffer Preferred Size, in units of 4 KiB.
        hmpre @ 272: U32,
        /// Host Memory Buffer Minimum Size, in units of 4 KiB.
        hmmin @ 276: U32,
        /// Total NVM Capacity, bytes.
        tnvmcap @ 280: U128,
        /// Unallocated NVM Capacity, bytes.
        unvmcap @ 296: U128,
        /// Replay Protected Memory Block Support.
        rpmbs @ 312: U32,
        /// Extended Device Self-test Time, minutes.
        edstt @ 316: U16,
        /// Device Self-test Options.
        dsto @ 318: u8,
        /// Firmware Update Granularity, in units of 4 KiB. 0 is not reported, FFh no restriction.
        fwug @ 319: u8,
        /// Keep Alive Support, granularity in units of 100 ms, or 0 for no support.
        kas @ 320: U16,
        /// Host Controlled Thermal Management Attributes.
        hctma @ 322: U16,
        /// Minimum Thermal Management Temperature, kelvins.
        mntmt @ 324: U16,
        /// Maximum Thermal Management Temperature, kelvins.
        mxtmt @ 326: U16,
        /// Sanitize Capabilities.
        sanicap @ 328: Sanicap,
        /// Host Memory Buffer Minimum Descriptor Entry Size, in units of 4 KiB.
        hmminds @ 332: U32,
        /// Host Memory Maximum Descriptors Entries.
        hmmaxd @ 336: U16,
        /// NVM Set Identifier Maximum.
        nsetidmax @ 338: U16,
        /// Endurance Group Identifier Maximum.
        endgidmax @ 340: U16,
        /// ANA Transition Time, seconds.
        anatt @ 342: u8,
        /// Asymmetric Namespace Access Capabilities.
        anacap @ 343: u8,
        /// ANA Group Identifier Maximum.
        anagrpmax @ 344: U32,
        /// Number of ANA Group Identifiers.
        nanagrpid @ 348: U32,
        /// Persistent Event Log Size, in units of 64 KiB.
        pels @ 352: U32,
        /// Domain Identifier.
        domain_identifier @ 356: U16,
        /// Key Per I/O Capabilities.
        kpioc @ 358: u8,
        _reserved359 @ 359: u8,
        /// Maximum Processing Time for Firmware Activation Without Reset, in units of 100 ms.
        mptfawr @ 360: U16,
        _reserved362 @ 362: [u8; 6],
        /// Max Endurance Group Capacity, bytes.
        megcap @ 368: U128,
        /// Temperature Threshold Hysteresis Attributes.
        tmpthha @ 384: u8,
        _reserved385 @ 385: u8,
        /// Command Quiesce Time, milliseconds.
        cqt @ 386: U16,
        _reserved388 @ 388: [u8; 124],
        /// Submission Queue Entry Size.
        sqes @ 512: EntrySize,
        /// Completion Queue Entry Size.
        cqes @ 513: EntrySize,
        /// Maximum Outstanding Commands.
        maxcmd @ 514: U16,
        /// Number of Namespaces, the highest valid NSID.
        nn @ 516: U32,
        /// Optional NVM Command Support.
        oncs @ 520: Oncs,
        /// Fused Operation Support. Bit 0 is compare and write.
        fuses @ 522: U16,
        /// Format NVM Attributes.
        fna @ 524: Fna,
        /// Volatile Write Cache.
        vwc @ 525: Vwc,
        /// Atomic Write Unit Normal, logical blocks, zeroes based.
        awun @ 526: U16,
        /// Atomic Write Unit Power Fail, logical blocks, zeroes based.
        awupf @ 528: U16,
        /// I/O Command Set Vendor Specific Command Configuration.
        icsvscc @ 530: u8,
        /// Namespace Write Protection Capabilities.
        nwpc @ 531: u8,
        /// Atomic Compare and Write Unit, logical blocks, zeroes based.
        acwu @ 532: U16,
        /// Copy Descriptor Formats Supported, a bit per format.
        cdfs @ 534: U16,
        /// SGL Support.
        sgls @ 536: Sgls,
        /// Maximum Number of Allowed Namespaces.
        mnan @ 540: U32,
        /// Maximum Domain Namespace Attachments.
        maxdna @ 544: U128,
        /// Maximum I/O Controller Namespace Attachments.
        maxcna @ 560: U32,
        /// Optimal Aggregated Queue Depth.
        oaqd @ 564: U32,
        /// Recommended Host-Initiated Refresh Interval, days.
        rhiri @ 568: u8,
        /// Host-Initiated Refresh Time, minutes.
        hirt @ 569: u8,
        /// Controller Maximum Memory Range Tracking Descriptors.
        cmmrtd @ 570: U16,
        /// NVM Subsystem Maximum Memory Range Tracking Descriptors.
        nmmrtd @ 572: U16,
        /// Minimum Memory Range Tracking Granularity.
        minmrtg @ 574: u8,
        /// Maximum Memory Range Tracking Granularity.
        maxmrtg @ 575: u8,
        /// Tracking Attributes.
        trattr @ 576: u8,
        _reserved577 @ 577: u8,
        /// Maximum Controller User Data Migration Queues.
        mcudmq @ 578: U16,
        /// Maximum NVM Subsystem User Data Migration Queues.
        mnsudmq @ 580: U16,
        /// Maximum CDQ Memory Ranges.
        mcmr @ 582: U16,
        /// NVM Subsystem Maximum CDQ Memory Ranges.
        nmcmr @ 584: U16,
        /// Maximum Controller Data Queue PRP Count.
        mcdqpc @ 586: U16,
        _reserved588 @ 588: [u8; 180],
        /// NVM Subsystem NVMe Qualified Name, UTF-8 padded with zeroes.
        subnqn @ 768: [u8; 256],
        _reserved1024 @ 1024: [u8; 768],
        /// I/O Queue Command Capsule Supported Size, in units of 16 bytes (fabrics).
        ioccsz @ 1792: U32,
        /// I/O Queue Response Capsule Supported Size, in units of 16 bytes (fabrics).
        iorcsz @ 1796: U32,
        /// In Capsule Data Offset, in units of 16 bytes (fabrics).
        icdoff @ 1800: U16,
        /// Fabrics Controller Attributes. Bit 0 is 0 for the dynamic and 1 for the static
        /// controller model.
        fcatt @ 1802: u8,
        /// Maximum SGL Data Block Descriptors (fabrics), or 0 for no limit.
        msdbd @ 1803: u8,
        /// Optional Fabrics Commands Supported. Bit 0 is Disconnect.
        ofcs @ 1804: U16,
        /// Discovery Controller Type.
        dctype @ 1806: u8,
        _reserved1807 @ 1807: [u8; 241],
        /// Power State Descriptors 0 to 31.
        psd @ 2048: [PowerState; 32],
        /// Vendor Specific.
        vs @ 3072: [u8; 1024],
    }

    /// Controller Multi-Path I/O and Namespace Sharing Capabilities (CMIC).
    Cmic(u8) {
        /// Multiple Ports.
        mports: bool,
        /// Multiple Controllers.
        mctrs: bool,
        /// Function Type, SR-IOV virtual function.
        ft: bool,
        /// Asymmetric Namespace Access Reporting Supported.
        anars: bool,
        __(4): u8,
    }

    /// Optional Asynchronous Events Supported (OAES).
    Oaes(U32) {
        __: u8,
        /// Attached Namespace Attribute Notices Support.
        nsan: bool,
        /// Firmware Activation Notices Support.
        fwan: bool,
        __: bool,
        /// Asymmetric Namespace Access Change Notices Support.
        anacn: bool,
        /// Predictable Latency Event Aggregate Log Change Notices Support.
        plealcn: bool,
        /// LBA Status Information Alert Notices Support.
        lsian: bool,
        /// Endurance Group Event Aggregate Log Page Change Notices Support.
        egealpcn: bool,
        /// Normal NVM Subsystem Shutdown Event Support.
        nnsss: bool,
        /// Temperature Threshold Hysteresis Recovery Support.
        tthr: bool,
        /// Reachability Groups Change Notices Support.
        rgcns: bool,
        __: bool,
        /// Allocated Namespace Attribute Notices Support.
        ansan: bool,
        __(7): u8,
        /// Zone Descriptor Changed Notices Support.
        zdcn: bool,
        __(3): u8,
        /// Discovery Log Page Change Notices Support.
        dlpcn: bool,
    }

    /// Controller Attributes (CTRATT).
    Ctratt(U32) {
        /// Host Identifier Support, 128-bit host identifiers.
        hids: bool,
        /// Non-Operational Power State Permissive Mode.
        nopspm: bool,
        /// NVM Sets.
        nsets: bool,
        /// Read Recovery Levels.
        rrlvls: bool,
        /// Endurance Groups.
        egs: bool,
        /// Predictable Latency Mode.
        plm: bool,
        /// Traffic Based Keep Alive Support.
        tbkas: bool,
        /// Namespace Granularity.
        ng: bool,
        /// SQ Associations.
        sqa: bool,
        /// UUID List.
        ulist: bool,
        /// Multi-Domain Subsystem.
        mds: bool,
        /// Fixed Capacity Management.
        fcm: bool,
        /// Variable Capacity Management.
        vcm: bool,
        /// Delete Endurance Group.
        deg: bool,
        /// Delete NVM Set.
        dnvms: bool,
        /// Extended LBA Formats Supported.
        elbas: bool,
        /// MDTS and Size Limits Exclude Metadata.
        mem: bool,
        /// HMB Restrict Non-Operational Power State Access.
        hmbr: bool,
        /// Reservations and Host Identifier Interaction.
        rhii: bool,
        /// Flexible Data Placement Support.
        fdps: bool,
        __(12): u16,
    }

    /// Optional Admin Command Support (OACS).
    Oacs(U16) {
        /// Security Send and Receive Supported.
        ssrs: bool,
        /// Format NVM Supported.
        fnvms: bool,
        /// Firmware Download Supported (and Firmware Commit).
        fwds: bool,
        /// Namespace Management Supported (and Namespace Attachment).
        nms: bool,
        /// Device Self-test Supported.
        dsts: bool,
        /// Directives Supported.
        dirs: bool,
        /// NVMe-MI Send and Receive Supported.
        nsrs: bool,
        /// Virtualization Management Supported.
        vms: bool,
        /// Doorbell Buffer Config Supported.
        dbcs: bool,
        /// Get LBA Status Supported.
        glss: bool,
        /// Command and Feature Lockdown Supported.
        cfls: bool,
        /// Host Managed Live Migration Support.
        hmlms: bool,
        __(4): u8,
    }

    /// Firmware Updates (FRMW).
    Frmw(u8) {
        /// First Firmware Slot Read Only.
        ffsro: bool,
        /// Number of Firmware Slots, 1 to 7.
        nofs(3): u8,
        /// Firmware Activation Without Reset.
        fawr: bool,
        /// Support Multiple Update Detection.
        smud: bool,
        __(2): u8,
    }

    /// Log Page Attributes (LPA).
    Lpa(u8) {
        /// SMART Support, per namespace SMART / Health log.
        smarts: bool,
        /// Commands Supported and Effects log.
        cses: bool,
        /// Log Page Extended Data Support, offset and extended number of dwords.
        lpeds: bool,
        /// Telemetry Support.
        ts: bool,
        /// Persistent Event log Support.
        pes: bool,
        /// Miscellaneous Log Page Support, LIDs 00h, 05h (scope), 12h and 13h.
        mlps: bool,
        /// Data Area 4 Support.
        da4s: bool,
        __: bool,
    }

    /// Sanitize Capabilities (SANICAP).
    Sanicap(U32) {
        /// Crypto Erase Support.
        ces: bool,
        /// Block Erase Support.
        bes: bool,
        /// Overwrite Support.
        ows: bool,
        /// Verification Support.
        vers: bool,
        __(25): u32,
        /// No-Deallocate Inhibited.
        ndi: bool,
        /// No-Deallocate Modifies Media After Sanitize (0 not defined, 1 no, 2 yes).
        nodmmas(2): u8,
    }

    /// Queue entry sizes as powers of two (SQES and CQES).
    EntrySize(u8) {
        /// Minimum (required) size, 6 for submission, 4 for completion queues.
        min(4): u8,
        /// Maximum size.
        max(4): u8,
    }

    /// Optional NVM Command Support (ONCS).
    Oncs(U16) {
        /// Compare.
        nvmcmps: bool,
        /// Write Uncorrectable.
        nvmwusv: bool,
        /// Dataset Management.
        nvmdsmsv: bool,
        /// Write Zeroes.
        nvmwzsv: bool,
        /// Save and Select in Get and Set Features.
        ssfs: bool,
        /// Reservations.
        reservs: bool,
        /// Timestamp.
        tss: bool,
        /// Verify.
        nvmvfys: bool,
        /// Copy.
        nvmcpys: bool,
        /// Copy Single Atomicity.
        nvmcsas: bool,
        /// All Fast Copy.
        nvmafc: bool,
        /// Maximum Write Zeroes with Deallocate.
        maxwzd: bool,
        /// Namespace Zeroes.
        nszs: bool,
        __(3): u8,
    }

    /// Format NVM Attributes (FNA).
    Fna(u8) {
        /// Format Namespace Scope, a format applies to all namespaces.
        fns: bool,
        /// Secure Erase Namespace Scope, a secure erase applies to all namespaces.
        sens: bool,
        /// Crypto Erase Supported.
        cryes: bool,
        /// Format NVM Broadcast *not* supported.
        fnvmbs: bool,
        __(4): u8,
    }

    /// Volatile Write Cache (VWC).
    Vwc(u8) {
        /// Volatile Write Cache Present.
        vwcp: bool,
        /// Flush Behavior (2 no broadcast, 3 broadcast NSID supported).
        fb(2): u8,
        __(5): u8,
    }

    /// SGL Support (SGLS).
    Sgls(U32) {
        /// SGL Support (0 none, 1 without alignment requirement, 2 dword aligned).
        sgls(2): u8,
        /// Keyed SGL Data Block descriptor supported.
        ksdbds: bool,
        __(5): u8,
        /// SGL Descriptor Threshold.
        sdt: u8,
        /// Bit Bucket descriptor supported.
        sbbds: bool,
        /// Byte aligned contiguous physical buffer of metadata supported.
        mbas: bool,
        /// SGL length larger than the data transferred supported.
        sgl_length_larger: bool,
        /// MPTR containing an SGL descriptor supported.
        mptr_sgl: bool,
        /// Address field as an offset supported.
        offset: bool,
        /// Transport SGL Data Block descriptor supported.
        transport_data_block: bool,
        __(10): u16,
    }

    /// Power State Descriptor.
    PowerState(32) {
        /// Maximum Power, in units of 10 mW (100 microwatts with MXPS).
        mp @ 0: U16,
        _reserved2 @ 2: u8,
        /// Scale of MP, and the non-operational flag.
        flags @ 3: PowerStateFlags,
        /// Entry Latency, microseconds.
        enlat @ 4: U32,
        /// Exit Latency, microseconds.
        exlat @ 8: U32,
        /// Relative Read Throughput (bits 4:0).
        rrt @ 12: u8,
        /// Relative Read Latency (bits 4:0).
        rrl @ 13: u8,
        /// Relative Write Throughput (bits 4:0).
        rwt @ 14: u8,
        /// Relative Write Latency (bits 4:0).
        rwl @ 15: u8,
        /// Idle Power.
        idlp @ 16: U16,
        /// Idle Power Scale (bits 7:6).
        ips @ 18: u8,
        _reserved19 @ 19: u8,
        /// Active Power.
        actp @ 20: U16,
        /// Active Power Workload (bits 2:0) and Active Power Scale (bits 7:6).
        apw_aps @ 22: u8,
        /// Emergency Power Fail Recovery Time.
        epfrt @ 23: u8,
        /// Forced Quiescence Vault Time.
        fqvt @ 24: u8,
        /// Emergency Power Fail Vault Time.
        epfvt @ 25: u8,
        /// Scales of EPFRT (bits 3:0) and FQVT (bits 7:4).
        epfrts_fqvts @ 26: u8,
        /// Scale of EPFVT (bits 3:0).
        epfvts @ 27: u8,
        _reserved28 @ 28: [u8; 4],
    }

    /// Power State Descriptor, byte 3.
    PowerStateFlags(u8) {
        /// Max Power Scale, MP is in units of 100 microwatts.
        mxps: bool,
        /// Non-Operational State.
        nops: bool,
        __(6): u8,
    }

    /// Identify Namespace data structure of the NVM command set (CNS 00h).
    IdentifyNamespace(4096) {
        /// Namespace Size, logical blocks.
        nsze @ 0: U64,
        /// Namespace Capacity, logical blocks.
        ncap @ 8: U64,
        /// Namespace Utilization, logical blocks.
        nuse @ 16: U64,
        /// Namespace Features.
        nsfeat @ 24: Nsfeat,
        /// Number of LBA Formats, zeroes based.
        nlbaf @ 25: u8,
        /// Formatted LBA Size.
        flbas @ 26: Flbas,
        /// Metadata Capabilities. Bit 0 is extended logical blocks, bit 1 a separate buffer.
        mc @ 27: u8,
        /// End-to-end Data Protection Capabilities.
        dpc @ 28: Dpc,
        /// End-to-end Data Protection Type Settings.
        dps @ 29: Dps,
        /// Namespace Multi-path I/O and Namespace Sharing Capabilities.
        nmic @ 30: Nmic,
        /// Reservation Capabilities.
        rescap @ 31: Rescap,
        /// Format Progress Indicator.
        fpi @ 32: Fpi,
        /// Deallocate Logical Block Features.
        dlfeat @ 33: Dlfeat,
        /// Namespace Atomic Write Unit Normal, zeroes based.
        nawun @ 34: U16,
        /// Namespace Atomic Write Unit Power Fail, zeroes based.
        nawupf @ 36: U16,
        /// Namespace Atomic Compare and Write Unit, zeroes based.
        nacwu @ 38: U16,
        /// Namespace Atomic Boundary Size Normal, zeroes based.
        nabsn @ 40: U16,
        /// Namespace Atomic Boundary Offset.
        nabo @ 42: U16,
        /// Namespace Atomic Boundary Size Power Fail, zeroes based.
        nabspf @ 44: U16,
        /// Namespace Optimal I/O Boundary, logical blocks.
        noiob @ 46: U16,
        /// NVM Capacity, bytes.
        nvmcap @ 48: U128,
        /// Namespace Preferred Write Granularity, logical blocks, zeroes based.
        npwg @ 64: U16,
        /// Namespace Preferred Write Alignment, logical blocks, zeroes based.
        npwa @ 66: U16,
        /// Namespace Preferred Deallocate Granularity, logical blocks, zeroes based.
        npdg @ 68: U16,
        /// Namespace Preferred Deallocate Alignment, logical blocks, zeroes based.
        npda @ 70: U16,
        /// Namespace Optimal Write Size, logical blocks, zeroes based.
        nows @ 72: U16,
        /// Maximum Single Source Range Length, logical blocks.
        mssrl @ 74: U16,
        /// Maximum Copy Length, logical blocks.
        mcl @ 76: U32,
        /// Maximum Source Range Count, zeroes based.
        msrc @ 80: u8,
        /// Key Per I/O Status.
        kpios @ 81: u8,
        /// Number of Unique Attribute LBA Formats.
        nulbaf @ 82: u8,
        _reserved83 @ 83: u8,
        /// Key Per I/O Data Access Alignment and Granularity.
        kpiodaag @ 84: U32,
        _reserved88 @ 88: [u8; 4],
        /// ANA Group Identifier.
        anagrpid @ 92: U32,
        _reserved96 @ 96: [u8; 3],
        /// Namespace Attributes.
        nsattr @ 99: Nsattr,
        /// NVM Set Identifier.
        nvmsetid @ 100: U16,
        /// Endurance Group Identifier.
        endgid @ 102: U16,
        /// Namespace Globally Unique Identifier, big-endian.
        nguid @ 104: [u8; 16],
        /// IEEE Extended Unique Identifier, big-endian.
        eui64 @ 120: [u8; 8],
        /// LBA Formats 0 to 63.
        lbaf @ 128: [LbaFormat; 64],
        /// Vendor Specific.
        vs @ 384: [u8; 3712],
    }

    /// LBA Format data structure.
    LbaFormat(4) {
        /// Metadata Size, bytes.
        ms @ 0: U16,
        /// LBA Data Size, `2 ^ lbads` bytes, or 0 for an unused format.
        lbads @ 2: u8,
        /// Relative Performance (bits 1:0), 0 best, 1 better, 2 good, 3 degraded.
        rp @ 3: u8,
    }

    /// Namespace Features (NSFEAT of CNS 00h).
    Nsfeat(u8) {
        /// Thin Provisioning.
        thinp: bool,
        /// NAWUN, NAWUPF and NACWU are defined.
        nsabp: bool,
        /// Deallocated or Unwritten Logical Block Error supported.
        dae: bool,
        /// NGUID and EUI64 are never reused.
        uidreuse: bool,
        /// Optimal Performance. Selects the defined ones of NPWG, NPWA, NPDG, NPDA, NOWS (and
        /// NPDGL).
        optperf(2): u8,
        /// Multiple Atomicity Mode.
        mam: bool,
        /// Optimal Read Performance, NPRG, NPRA and NORS are defined.
        optrperf: bool,
    }

    /// Formatted LBA Size (FLBAS).
    Flbas(u8) {
        /// Format Index Lower, bits 3:0.
        fidxl(4): u8,
        /// Metadata is at the end of the data, as an extended logical block.
        mdtype: bool,
        /// Format Index Upper, bits 5:4.
        fidxu(2): u8,
        __: bool,
    }

    /// End-to-end Data Protection Capabilities (DPC).
    Dpc(u8) {
        /// Protection Information Type 1 Supported.
        pit1s: bool,
        /// Protection Information Type 2 Supported.
        pit2s: bool,
        /// Protection Information Type 3 Supported.
        pit3s: bool,
        /// Protection Information In First Bytes of metadata.
        pifb: bool,
        /// Protection Information In Last Bytes of metadata.
        pilb: bool,
        __(3): u8,
    }

    /// End-to-end Data Protection Type Settings (DPS).
    Dps(u8) {
        /// Protection Information Type (0 disabled, else 1 to 3).
        pit(3): u8,
        /// Protection Information Position, in the first bytes of metadata.
        pip: bool,
        __(4): u8,
    }

    /// Namespace Multi-path I/O and Namespace Sharing Capabilities (NMIC).
    Nmic(u8) {
        /// Shared Namespace.
        shrns: bool,
        /// Dispersed Namespace.
        disns: bool,
        __(6): u8,
    }

    /// Reservation Capabilities (RESCAP).
    Rescap(u8) {
        /// Persist Through Power Loss Support.
        ptpls: bool,
        /// Write Exclusive Reservation Support.
        wers: bool,
        /// Exclusive Access Reservation Support.
        ears: bool,
        /// Write Exclusive - Registrants Only Reservation Support.
        werors: bool,
        /// Exclusive Access - Registrants Only Reservation Support.
        earors: bool,
        /// Write Exclusive - All Registrants Reservation Support.
        wears: bool,
        /// Exclusive Access - All Registrants Reservation Support.
        eaars: bool,
        /// Ignore Existing Key Revision 1.3.
        iekr: bool,
    }

    /// Format Progress Indicator (FPI).
    Fpi(u8) {
        /// Percentage of the namespace that remains to be formatted.
        pfr(7): u8,
        /// The indicator is supported.
        fpis: bool,
    }

    /// Deallocate Logical Block Features (DLFEAT).
    Dlfeat(u8) {
        /// Deallocated Logical Block Read Behavior (0 not reported, 1 zeroes, 2 ones).
        dlrb(3): u8,
        /// Deallocate bit of Write Zeroes supported.
        wzds: bool,
        /// Guard of deallocated blocks is the CRC of the value read.
        dlgs: bool,
        __(3): u8,
    }

    /// Namespace Attributes (NSATTR).
    Nsattr(u8) {
        /// Currently Write Protected.
        cwp: bool,
        __(7): u8,
    }

    /// I/O Command Set Independent Identify Namespace data structure (CNS 08h).
    IdentifyNamespaceIndependent(4096) {
        /// Common Namespace Features.
        nsfeat @ 0: IndependentNsfeat,
        /// Namespace Multi-path I/O and Namespace Sharing Capabilities.
        nmic @ 1: Nmic,
        /// Reservation Capabilities.
        rescap @ 2: Rescap,
        /// Format Progress Indicator.
        fpi @ 3: Fpi,
        /// ANA Group Identifier.
        anagrpid @ 4: U32,
        /// Namespace Attributes.
        nsattr @ 8: Nsattr,
        _reserved9 @ 9: u8,
        /// NVM Set Identifier.
        nvmsetid @ 10: U16,
        /// Endurance Group Identifier. Linux takes the group of its FDP commands from here.
        endgid @ 12: U16,
        /// Namespace Status.
        nstat @ 14: Nstat,
        /// Key Per I/O Status.
        kpios @ 15: u8,
        /// Maximum Key Tag.
        maxkt @ 16: U16,
        _reserved18 @ 18: [u8; 2],
        /// Reachability Group Identifier.
        rgrpid @ 20: U32,
        _reserved24 @ 24: [u8; 4072],
    }

    /// Common Namespace Features (NSFEAT of CNS 08h).
    IndependentNsfeat(u8) {
        __(3): u8,
        /// NGUID and EUI64 are never reused.
        uidreuse: bool,
        /// Rotational Media.
        rmedia: bool,
        /// Volatile Write Cache Not Present.
        vwcnp: bool,
        __(2): u8,
    }

    /// Namespace Status (NSTAT).
    Nstat(u8) {
        /// Namespace Ready.
        nrdy: bool,
        /// I/O Impacted, see the NVM subsystem's Sanitize and Format operations.
        ioi(2): u8,
        __(5): u8,
    }

    /// NVM Command Set specific Identify Namespace data structure (CNS 05h, CSI 00h).
    NvmIdentifyNamespace(4096) {
        /// Logical Block Storage Tag Mask.
        lbstm @ 0: U64,
        /// Protection Information Capabilities. Bit 0 is 16BPISTS, bit 1 16BPISTM, bit 2 STCRS.
        pic @ 8: u8,
        /// Protection Information Format Attribute.
        pifa @ 9: u8,
        _reserved10 @ 10: [u8; 2],
        /// Extended LBA Formats 0 to 63.
        elbaf @ 12: [ExtendedLbaFormat; 64],
        /// Namespace Preferred Deallocate Granularity Large, logical blocks.
        npdgl @ 268: U32,
        /// Namespace Preferred Read Granularity.
        nprg @ 272: U32,
        /// Namespace Preferred Read Alignment.
        npra @ 276: U32,
        /// Namespace Optimal Read Size.
        nors @ 280: U32,
        /// Namespace Preferred Deallocate Alignment Large, logical blocks.
        npdal @ 284: U32,
        /// LBA Format Placement Shard Size.
        lbapss @ 288: U32,
        /// Tracked LBA Allocation Granularity.
        tlbaag @ 292: U32,
        _reserved296 @ 296: [u8; 3800],
    }

    /// Extended LBA Format data structure.
    ExtendedLbaFormat(U32) {
        /// Storage Tag Size, bits.
        sts(7): u8,
        /// Protection Information Format (0 16-bit guard, 1 32-bit guard, 2 64-bit guard, 3 QPIF).
        pif(2): u8,
        /// Qualified Protection Information Format.
        qpif(4): u8,
        __(19): u32,
    }

    /// NVM Command Set specific Identify Controller data structure (CNS 06h, CSI 00h).
    NvmIdentifyController(4096) {
        /// Verify Size Limit, `2 ^ vsl` units of the minimum memory page size, or 0 for no limit.
        vsl @ 0: u8,
        /// Write Zeroes Size Limit, in the same form.
        wzsl @ 1: u8,
        /// Write Uncorrectable Size Limit, in the same form.
        wusl @ 2: u8,
        /// Dataset Management Ranges Limit, or 0 for no limit.
        dmrl @ 3: u8,
        /// Dataset Management Range Size Limit, logical blocks, or 0 for no limit.
        dmrsl @ 4: U32,
        /// Dataset Management Size Limit, logical blocks, or 0 for no limit.
        dmsl @ 8: U64,
        /// Key Per I/O Capabilities.
        kpiocap @ 16: u8,
        /// Write Zeroes With Deallocate Size Limit.
        wzdsl @ 17: u8,
        /// Admin Optional Command Support.
        aocs @ 18: U16,
        /// Version of the NVM Command Set Specification, as in property VS.
        ver @ 20: U32,
        /// LBA Migration Queue Format.
        lbamqf @ 24: u8,
        _reserved25 @ 25: [u8; 4071],
    }

    /// Header of a Namespace Identification Descriptor (CNS 03h), followed by `nidl` bytes of
    /// identifier. A descriptor with `nidl` zero ends the list.
    NamespaceIdentificationDescriptor(4) {
        /// Namespace Identifier Type, a [`NamespaceIdentifierType`].
        nidt @ 0: u8,
        /// Namespace Identifier Length, bytes.
        nidl @ 1: u8,
        _reserved2 @ 2: [u8; 2],
    }

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

layout! {
    /// Namespace List (CNS 02h, 07h, 10h, 1Ah and the Changed Namespace log), ascending and padded
    /// with zeroes.
    NamespaceList(4096) {
        /// Namespace identifiers.
        nsid @ 0: [U32; 1024],
    }

    /// Controller List (CNS 12h, 13h, and the data of Namespace Attachment).
    ControllerList(4096) {
        /// Number of Identifiers.
        numids @ 0: U16,
        /// Controller identifiers, ascending.
        cntlid @ 2: [U16; 2047],
    }

    /// Endurance Group List (CNS 19h).
    EnduranceGroupList(4096) {
        /// Number of Identifiers.
        numids @ 0: U16,
        /// Endurance group identifiers, ascending.
        endgid @ 2: [U16; 2047],
    }

    /// Identify I/O Command Set data structure (CNS 1Ch).
    IoCommandSets(4096) {
        /// I/O Command Set Combinations. The first zero vector ends the list.
        iocsc @ 0: [IoCommandSetVector; 512],
    }

    /// I/O Command Set Vector, a set of command sets that can be used together.
    IoCommandSetVector(U64) {
        /// NVM Command Set.
        nvm: bool,
        /// Key Value Command Set.
        kv: bool,
        /// Zoned Namespace Command Set.
        zns: bool,
        /// Subsystem Local Memory Command Set.
        slm: bool,
        /// Computational Programs Command Set.
        cp: bool,
        __(59): u64,
    }

    /// UUID List (CNS 17h).
    UuidList(4096) {
        _reserved0 @ 0: [u8; 32],
        /// UUIDs. The first has index 1, and all entries after the last are zero.
        entries @ 32: [UuidListEntry; 127],
    }

    /// UUID List Entry.
    UuidListEntry(32) {
        /// Owner of the UUID in bits 1:0 (0 no association, 1 PCI vendor, 2 PCI subsystem vendor).
        header @ 0: u8,
        _reserved1 @ 1: [u8; 15],
        /// UUID.
        uuid @ 16: [u8; 16],
    }

    /// Namespace Management, Host Software Specified Fields, the data of the create operation (NVM
    /// command set).
    NamespaceCreate(4096) {
        /// Namespace Size, logical blocks.
        nsze @ 0: U64,
        /// Namespace Capacity, logical blocks.
        ncap @ 8: U64,
        _reserved16 @ 16: [u8; 10],
        /// Formatted LBA Size.
        flbas @ 26: Flbas,
        _reserved27 @ 27: [u8; 2],
        /// End-to-end Data Protection Type Settings.
        dps @ 29: Dps,
        /// Namespace Multi-path I/O and Namespace Sharing Capabilities.
        nmic @ 30: Nmic,
        _reserved31 @ 31: [u8; 61],
        /// ANA Group Identifier.
        anagrpid @ 92: U32,
        _reserved96 @ 96: [u8; 4],
        /// NVM Set Identifier.
        nvmsetid @ 100: U16,
        /// Endurance Group Identifier.
        endgid @ 102: U16,
        _reserved104 @ 104: [u8; 280],
        /// Logical Block Storage Tag Mask.
        lbstm @ 384: U64,
        /// Number of Placement Handles, ignored unless flexible data placement is enabled.
        nphndls @ 392: U16,
        /// Reserved, bytes 499 to 511 belong to the Zoned Namespace command set.
        _reserved394 @ 394: [u8; 118],
        /// Placement Handle List. Entry i is the reclaim unit handle identifier of placement handle
        /// i.
        phndl @ 512: [U16; 128],
        _reserved768 @ 768: [u8; 3328],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

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
        assert_eq!(Sgls::new().with_sgls(1).with_offset(true).into_bits().get(), 1 << 20 | 1);
        assert_eq!(Sgls::new().with_transport_data_block(true).into_bits().get(), 1 << 21);
        assert_eq!(Oncs::new().with_nszs(true).into_bits().get(), 1 << 12);
        assert_eq!(Oaes::new().with_dlpcn(true).with_nsan(true).into_bits().get(), 0x8000_0100);
        assert_eq!(Sanicap::new().with_nodmmas(2).into_bits().get(), 2 << 30);
        assert_eq!(EntrySize::new().with_min(6).with_max(6).into_bits(), 0x66);
        assert_eq!(ExtendedLbaFormat::new().with_pif(2).into_bits().get(), 2 << 7);
    }
}
