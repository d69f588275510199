//! Commands, with queue entries, opcodes, and the command dwords of every command as bit fields.
//! The module also has the data structures for SGLs and ranges.
//!
//! [`crate::feature`] has the dwords of Get Features and Set Features that belong to one feature,
//! and [`crate::fabrics`] the fabrics commands. The transferred data of commands is in `identify`,
//! `log`, `directive` and `fdp`. Dwords with one plain number (an offset, an address, a count) have
//! no type.

use zerocopy::little_endian::{U16, U32, U64};

use crate::status::Status;

layout! {
    /// Submission Queue Entry (Base Specification, "Submission Queue Entry").
    SubmissionEntry(64) {
        opcode @ 0: u8 => "Opcode (CDW0 bits 7:0), an [`AdminOpcode`] or an [`IoOpcode`].",
        flags @ 1: CommandFlags => "Fused operation and data transfer type (CDW0 bits 15:8).",
        cid @ 2: U16 => "Command Identifier (CDW0 bits 31:16).",
        nsid @ 4: U32 => "Namespace Identifier.",
        cdw2 @ 8: U32 => "Command dword 2.",
        cdw3 @ 12: U32 => "Command dword 3.",
        mptr @ 16: U64 => "Metadata Pointer.",
        /// Data Pointer, two PRP entries ([`SubmissionEntry::prp1`]) or one [`SglDescriptor`]
        /// ([`SubmissionEntry::sgl1`]).
        dptr @ 24: [u8; 16],
        cdw10 @ 40: U32 => "Command dword 10.",
        cdw11 @ 44: U32 => "Command dword 11.",
        cdw12 @ 48: U32 => "Command dword 12.",
        cdw13 @ 52: U32 => "Command dword 13.",
        cdw14 @ 56: U32 => "Command dword 14.",
        cdw15 @ 60: U32 => "Command dword 15.",
    }
}

impl SubmissionEntry {
    /// PRP Entry 1 of the data pointer.
    pub fn prp1(&self) -> u64 {
        let [prp1, _]: [U64; 2] = zerocopy::transmute!(self.dptr);
        prp1.get()
    }

    /// PRP Entry 2 of the data pointer.
    pub fn prp2(&self) -> u64 {
        let [_, prp2]: [U64; 2] = zerocopy::transmute!(self.dptr);
        prp2.get()
    }

    /// The data pointer as the SGL descriptor SGL1.
    pub fn sgl1(&self) -> SglDescriptor {
        zerocopy::transmute!(self.dptr)
    }

    /// Sets the data pointer to two PRP entries.
    pub fn set_prps(&mut self, prp1: u64, prp2: u64) {
        self.dptr = zerocopy::transmute!([U64::new(prp1), U64::new(prp2)]);
    }

    /// Sets the data pointer to an SGL descriptor. The caller sets the PSDT bits.
    pub fn set_sgl1(&mut self, sgl1: SglDescriptor) {
        self.dptr = zerocopy::transmute!(sgl1);
    }
}

layout! {
    /// Byte 1 of a submission queue entry.
    CommandFlags(u8) {
        fuse(2): u8 => "Fused Operation (0 none, 1 first command, 2 second command).",
        __(4): u8,
        psdt(2): u8 => "PRP or SGL for Data Transfer, one of the `PSDT_…` values.",
    }
}

/// PSDT value for PRPs.
pub const PSDT_PRP: u8 = 0;
/// PSDT value for SGLs, with MPTR as the address of one contiguous buffer.
pub const PSDT_SGL_MPTR_CONTIGUOUS: u8 = 1;
/// PSDT value for SGLs, with MPTR as the address of an SGL segment.
pub const PSDT_SGL_MPTR_SGL: u8 = 2;

layout! {
    /// Completion Queue Entry (Base Specification, "Completion Queue Entry").
    CompletionEntry(16) {
        dw0 @ 0: U32 => "Command specific dword 0.",
        dw1 @ 4: U32 => "Command specific dword 1.",
        sqhd @ 8: U16 => "SQ Head Pointer.",
        sqid @ 10: U16 => "SQ Identifier, reserved over fabrics.",
        cid @ 12: U16 => "Command Identifier.",
        status @ 14: StatusField => "Phase Tag and Status.",
    }

    /// The Phase Tag and the Status field, the upper half of completion dword 3.
    StatusField(U16) {
        p: bool => "Phase Tag, reserved over fabrics.",
        sc: u8 => "Status Code.",
        sct(3): u8 => "Status Code Type.",
        crd(2): u8 => "Command Retry Delay (0 none, else which of CRDT1 to CRDT3).",
        m: bool => "More. The Error Information log has details.",
        dnr: bool => "Do Not Retry.",
    }
}

impl StatusField {
    /// A field with this status and all other bits zero.
    pub const fn from_status(status: Status) -> StatusField {
        StatusField::new().with_sc(status.sc()).with_sct(status.sct())
    }

    /// The status, without phase tag and retry bits.
    pub const fn status(self) -> Status {
        Status::new(self.sct(), self.sc())
    }
}

layout! {
    /// Opcodes of the Admin command set (Base Specification, "Opcodes for Admin Commands").
    AdminOpcode(u8, from_u8) {
        DeleteIoSubmissionQueue = 0x00 => "Delete I/O Submission Queue",
        CreateIoSubmissionQueue = 0x01 => "Create I/O Submission Queue",
        GetLogPage = 0x02 => "Get Log Page",
        DeleteIoCompletionQueue = 0x04 => "Delete I/O Completion Queue",
        CreateIoCompletionQueue = 0x05 => "Create I/O Completion Queue",
        Identify = 0x06 => "Identify",
        Abort = 0x08 => "Abort",
        SetFeatures = 0x09 => "Set Features",
        GetFeatures = 0x0a => "Get Features",
        AsynchronousEventRequest = 0x0c => "Asynchronous Event Request",
        NamespaceManagement = 0x0d => "Namespace Management",
        FirmwareCommit = 0x10 => "Firmware Commit",
        FirmwareImageDownload = 0x11 => "Firmware Image Download",
        DeviceSelfTest = 0x14 => "Device Self-test",
        NamespaceAttachment = 0x15 => "Namespace Attachment",
        KeepAlive = 0x18 => "Keep Alive",
        DirectiveSend = 0x19 => "Directive Send",
        DirectiveReceive = 0x1a => "Directive Receive",
        VirtualizationManagement = 0x1c => "Virtualization Management",
        NvmeMiSend = 0x1d => "NVMe-MI Send",
        NvmeMiReceive = 0x1e => "NVMe-MI Receive",
        CapacityManagement = 0x20 => "Capacity Management",
        DiscoveryInformationManagement = 0x21 => "Discovery Information Management",
        FabricZoningReceive = 0x22 => "Fabric Zoning Receive",
        Lockdown = 0x24 => "Lockdown",
        FabricZoningLookup = 0x25 => "Fabric Zoning Lookup",
        ClearExportedNvmResourceConfiguration = 0x28 => "Clear Exported NVM Resource Configuration",
        FabricZoningSend = 0x29 => "Fabric Zoning Send",
        CreateExportedNvmSubsystem = 0x2a => "Create Exported NVM Subsystem",
        ManageExportedNvmSubsystem = 0x2d => "Manage Exported NVM Subsystem",
        ManageExportedNamespace = 0x31 => "Manage Exported Namespace",
        ManageExportedPort = 0x35 => "Manage Exported Port",
        SendDiscoveryLogPage = 0x39 => "Send Discovery Log Page",
        TrackSend = 0x3d => "Track Send",
        TrackReceive = 0x3e => "Track Receive",
        MigrationSend = 0x41 => "Migration Send",
        MigrationReceive = 0x42 => "Migration Receive",
        ControllerDataQueue = 0x45 => "Controller Data Queue",
        DoorbellBufferConfig = 0x7c => "Doorbell Buffer Config",
        Fabrics = 0x7f => "Fabrics Commands",
        FormatNvm = 0x80 => "Format NVM",
        SecuritySend = 0x81 => "Security Send",
        SecurityReceive = 0x82 => "Security Receive",
        Sanitize = 0x84 => "Sanitize",
        LoadProgram = 0x85 => "Load Program",
        GetLbaStatus = 0x86 => "Get LBA Status",
        ProgramActivationManagement = 0x88 => "Program Activation Management",
        MemoryRangeSetManagement = 0x89 => "Memory Range Set Management",
    }

    /// Opcodes of the NVM command set and of the I/O commands common to all sets.
    IoOpcode(u8, from_u8) {
        Flush = 0x00 => "Flush",
        Write = 0x01 => "Write",
        Read = 0x02 => "Read",
        WriteUncorrectable = 0x04 => "Write Uncorrectable",
        Compare = 0x05 => "Compare",
        WriteZeroes = 0x08 => "Write Zeroes",
        DatasetManagement = 0x09 => "Dataset Management",
        Verify = 0x0c => "Verify",
        ReservationRegister = 0x0d => "Reservation Register",
        ReservationReport = 0x0e => "Reservation Report",
        ReservationAcquire = 0x11 => "Reservation Acquire",
        IoManagementReceive = 0x12 => "I/O Management Receive",
        ReservationRelease = 0x15 => "Reservation Release",
        Cancel = 0x18 => "Cancel",
        Copy = 0x19 => "Copy",
        IoManagementSend = 0x1d => "I/O Management Send",
        Fabrics = 0x7f => "Fabrics Commands",
    }
}

// ---- Administration commands --------------------------------------------------------------------

layout! {
    IdentifyCdw10(u32) {
        cns: u8 => "Controller or Namespace Structure, a [`crate::identify::Cns`].",
        __: u8,
        cntid: u16 => "Controller Identifier.",
    }

    IdentifyCdw11(u32) {
        cnssid: u16 => "CNS Specific Identifier, NVM set, domain or endurance group.",
        __: u8,
        csi: u8 => "Command Set Identifier, a [`crate::identify::CommandSet`].",
    }

    GetLogPageCdw10(u32) {
        lid: u8 => "Log Page Identifier, a [`crate::log::LogId`].",
        lsp(7): u8 => "Log Specific Parameter.",
        rae: bool => "Retain Asynchronous Event.",
        numdl: u16 => "Number of Dwords Lower, bits 15:0 of the zeroes based number.",
    }

    GetLogPageCdw11(u32) {
        numdu: u16 => "Number of Dwords Upper, bits 31:16 of the zeroes based number.",
        lsi: u16 => "Log Specific Identifier, for the FDP and endurance group logs the endurance group.",
    }

    /// Get Log Page, command dword 14. Dwords 12 and 13 are the lower and upper half of the Log
    /// Page Offset.
    GetLogPageCdw14(u32) {
        uidx(7): u8 => "UUID Index.",
        __(16): u16,
        ot: bool => "Offset Type, the offset is an index into a list of data structures instead of bytes.",
        csi: u8 => "Command Set Identifier.",
    }

    /// Get Features and Set Features, command dword 14.
    FeaturesCdw14(u32) {
        uidx(7): u8 => "UUID Index.",
        __(25): u32,
    }

    /// Create I/O Completion Queue and Create I/O Submission Queue, command dword 10.
    CreateQueueCdw10(u32) {
        qid: u16 => "Queue Identifier.",
        qsize: u16 => "Queue Size, zeroes based.",
    }

    CreateIoCompletionQueueCdw11(u32) {
        pc: bool => "Physically Contiguous.",
        ien: bool => "Interrupts Enabled.",
        __(14): u16,
        iv: u16 => "Interrupt Vector.",
    }

    CreateIoSubmissionQueueCdw11(u32) {
        pc: bool => "Physically Contiguous.",
        qprio(2): u8 => "Queue Priority (0 urgent, 1 high, 2 medium, 3 low).",
        __(13): u16,
        cqid: u16 => "Completion Queue Identifier.",
    }

    /// Delete I/O Completion Queue and Delete I/O Submission Queue, command dword 10.
    DeleteQueueCdw10(u32) {
        qid: u16 => "Queue Identifier.",
        __: u16,
    }

    AbortCdw10(u32) {
        sqid: u16 => "Submission Queue Identifier.",
        cid: u16 => "Command Identifier.",
    }

    /// Abort, completion dword 0.
    AbortDw0(u32) {
        ianp: bool => "Immediate Abort Not Performed. The command was *not* aborted.",
        __(31): u32,
    }

    GetFeaturesCdw10(u32) {
        fid: u8 => "Feature Identifier, a [`crate::feature::FeatureId`].",
        sel(3): u8 => "Select, a [`crate::feature::FeatureSelect`].",
        __(21): u32,
    }

    SetFeaturesCdw10(u32) {
        fid: u8 => "Feature Identifier, a [`crate::feature::FeatureId`].",
        __(23): u32,
        sv: bool => "Save.",
    }

    /// Asynchronous Event Request, completion dword 0.
    AsyncEventDw0(u32) {
        aet(3): u8 => "Asynchronous Event Type, an [`AsyncEventType`].",
        __(5): u8,
        aei: u8 => "Asynchronous Event Information. The type defines its meaning, see the `AEI_…` constants.",
        lid: u8 => "Log Page Identifier with the details. Reading the page clears the event.",
        __: u8,
    }

    AsyncEventType(u8, from_u8) {
        Error = 0 => "Error status",
        SmartHealth = 1 => "SMART / Health status",
        Notice = 2 => "Notice",
        Immediate = 3 => "Immediate",
        OneShot = 4 => "One-Shot",
        IoCommandSpecific = 6 => "I/O Command specific status",
        VendorSpecific = 7 => "Vendor specific",
    }
}

pub const AEI_ERROR_INVALID_DOORBELL_REGISTER: u8 = 0x00;
pub const AEI_ERROR_INVALID_DOORBELL_VALUE: u8 = 0x01;
pub const AEI_SMART_RELIABILITY: u8 = 0x00;
pub const AEI_SMART_TEMPERATURE_THRESHOLD: u8 = 0x01;
pub const AEI_SMART_SPARE_BELOW_THRESHOLD: u8 = 0x02;
pub const AEI_NOTICE_NAMESPACE_ATTRIBUTE_CHANGED: u8 = 0x00;
pub const AEI_NOTICE_ENDURANCE_GROUP_CHANGE: u8 = 0x06;
pub const AEI_IO_SANITIZE_COMPLETED: u8 = 0x01;
pub const AEI_IO_SANITIZE_UNEXPECTED_DEALLOCATION: u8 = 0x02;

layout! {
    NamespaceManagementCdw10(u32) {
        sel(4): u8 => "Select, see [`NAMESPACE_CREATE`] and [`NAMESPACE_DELETE`].",
        __(28): u32,
    }

    NamespaceManagementCdw11(u32) {
        __(24): u32,
        csi: u8 => "Command Set Identifier.",
    }
}

pub const NAMESPACE_CREATE: u8 = 0;
pub const NAMESPACE_DELETE: u8 = 1;

layout! {
    NamespaceAttachmentCdw10(u32) {
        sel(4): u8 => "Select, see [`CONTROLLER_ATTACH`] and [`CONTROLLER_DETACH`].",
        __(28): u32,
    }
}

pub const CONTROLLER_ATTACH: u8 = 0;
pub const CONTROLLER_DETACH: u8 = 1;

layout! {
    FormatNvmCdw10(u32) {
        lbafl(4): u8 => "LBA Format Lower, bits 3:0 of the format index.",
        mset: bool => "Metadata Settings, metadata is part of an extended logical block.",
        pi(3): u8 => "Protection Information (0 none, else type 1 to 3).",
        pil: bool => "Protection Information Location, first bytes of the metadata (for guards of 16 bits).",
        ses(3): u8 => "Secure Erase Settings (0 none, 1 user data erase, 2 cryptographic erase).",
        lbafu(2): u8 => "LBA Format Upper, bits 5:4 of the format index.",
        __(18): u32,
    }

    /// Sanitize, command dword 10. Dword 11 is the Overwrite Pattern.
    SanitizeCdw10(u32) {
        sanact(3): u8 => "Sanitize Action, a [`SanitizeAction`].",
        ause: bool => "Allow Unrestricted Sanitize Exit.",
        owpass(4): u8 => "Overwrite Pass Count, 0 means 16.",
        oipbp: bool => "Overwrite Invert Pattern Between Passes.",
        ndas: bool => "No-Deallocate After Sanitize.",
        emvs: bool => "Enter Media Verification State.",
        __(21): u32,
    }

    SanitizeAction(u8, from_u8) {
        ExitFailureMode = 1 => "Exit Failure Mode",
        BlockErase = 2 => "Start a Block Erase sanitize operation",
        Overwrite = 3 => "Start an Overwrite sanitize operation",
        CryptoErase = 4 => "Start a Crypto Erase sanitize operation",
        ExitMediaVerification = 5 => "Exit Media Verification State",
    }

    DeviceSelfTestCdw10(u32) {
        stc(4): u8 => "Self-test Code, a [`SelfTestCode`].",
        __(28): u32,
    }

    SelfTestCode(u8, from_u8) {
        Short = 0x1 => "Start a short device self-test operation",
        Extended = 0x2 => "Start an extended device self-test operation",
        HostInitiatedRefresh = 0x3 => "Start a Host-Initiated Refresh operation",
        VendorSpecific = 0xe => "Vendor specific",
        Abort = 0xf => "Abort device self-test operation",
    }

    /// Directive Send and Directive Receive, command dword 11. Dword 10 is the zeroes based number
    /// of dwords (NUMD).
    DirectiveCdw11(u32) {
        doper: u8 => "Directive Operation, specific to the type.",
        dtype: u8 => "Directive Type, a [`crate::directive::DirectiveType`].",
        dspec: u16 => "Directive Specific.",
    }

    /// Directive Send, Identify directive, Enable Directive operation, command dword 12.
    EnableDirectiveCdw12(u32) {
        endir: bool => "Enable Directive.",
        __(7): u8,
        tdtype: u8 => "Directive Type to enable or disable.",
        __: u16,
    }
}

// ---- I/O commands -------------------------------------------------------------------------------

layout! {
    /// Command dword 12 of Read, Write, Compare, Verify and Write Zeroes. Dwords 10 and 11 are the
    /// starting LBA.
    ReadWriteCdw12(u32) {
        nlb: u16 => "Number of Logical Blocks, zeroes based.",
        __(4): u8,
        dtype(4): u8 => "Directive Type of a write, a [`crate::directive::DirectiveType`].",
        stc: bool => "Storage Tag Check.",
        deac: bool => "Deallocate. Reserved except in Write Zeroes.",
        prinfo(4): u8 => "Protection Information Field, PRCHK in bits 2:0, PRACT in bit 3.",
        fua: bool => "Force Unit Access.",
        lr: bool => "Limited Retry.",
    }

    /// Command dword 12 of Write Zeroes, with the bit that only this command has.
    WriteZeroesCdw12(u32) {
        nlb: u16 => "Number of Logical Blocks, zeroes based.",
        __(4): u8,
        dtype(3): u8 => "Directive Type.",
        nsz: bool => "Namespace Zeroes, all blocks of the namespace.",
        stc: bool => "Storage Tag Check.",
        deac: bool => "Deallocate.",
        prinfo(4): u8 => "Protection Information Field, PRCHK in bits 2:0, PRACT in bit 3.",
        fua: bool => "Force Unit Access.",
        lr: bool => "Limited Retry.",
    }

    DatasetManagementCdw11(u32) {
        idr: bool => "Attribute - Integral Dataset for Read.",
        idw: bool => "Attribute - Integral Dataset for Write.",
        ad: bool => "Attribute - Deallocate.",
        __(29): u32,
    }

    /// Dataset Management, Range definition (NVM Command Set).
    Range(16) {
        cattr @ 0: U32 => "Context Attributes, hints on access size, latency and order.",
        nlb @ 4: U32 => "Length in logical blocks, *not* zeroes based.",
        slba @ 8: U64 => "Starting LBA.",
    }

    /// Copy, command dword 12. Dwords 10 and 11 are the Starting Destination LBA (SDLBA).
    CopyCdw12(u32) {
        nr: u8 => "Number of Ranges, zeroes based.",
        desfmt(4): u8 => "Descriptor Format (0 for [`SourceRange0`], 1 to 3 for formats without a type here).",
        prinfor(4): u8 => "Protection Information Field Read, PRCHK in bits 2:0, PRACT in bit 3.",
        __(4): u8,
        dtype(4): u8 => "Directive Type.",
        stcw: bool => "Storage Tag Check Write.",
        stcr: bool => "Storage Tag Check Read.",
        prinfow(4): u8 => "Protection Information Field Write, PRCHK in bits 2:0, PRACT in bit 3.",
        fua: bool => "Force Unit Access.",
        lr: bool => "Limited Retry.",
    }

    /// Copy, Source Range Entry of descriptor format 0 (same namespace, 16-bit guard).
    SourceRange0(32) {
        _reserved0 @ 0: [u8; 8] => "Reserved (parameters of other command sets).",
        slba @ 8: U64 => "Starting LBA.",
        nlb @ 16: U16 => "Number of Logical Blocks, zeroes based.",
        _reserved18 @ 18: [u8; 6],
        eilbrt @ 24: U32 => "Expected Logical Block Storage and Reference Tag.",
        elbat @ 28: U16 => "Expected Logical Block Application Tag.",
        elbatm @ 30: U16 => "Expected Logical Block Application Tag Mask.",
    }

    /// I/O Management Receive and I/O Management Send, command dword 10.
    ///
    /// Dword 11 of Receive is the zeroes based number of dwords (NUMD). Send has no length.
    IoManagementCdw10(u32) {
        mo: u8 => "Management Operation, see the `MO_…` constants of [`crate::fdp`].",
        __: u8,
        mos: u16 => "Management Operation Specific, the zeroes based number of identifiers of an update.",
    }
}

// ---- Scatter Gather Lists -----------------------------------------------------------------------

layout! {
    /// SGL descriptor (Base Specification, "Scatter Gather List"), in the form of all types without
    /// a key.
    SglDescriptor(16) {
        addr @ 0: U64 => "Address, or offset for the offset subtype. Reserved in bit buckets.",
        length @ 8: U32 => "Length in bytes.",
        _reserved12 @ 12: [u8; 3],
        id @ 15: SglIdentifier => "SGL Identifier, type and subtype.",
    }

    /// SGL Identifier, byte 15 of an SGL descriptor.
    SglIdentifier(u8) {
        subtype(4): u8 => "SGL Descriptor Sub Type, see the `SGL_SUBTYPE_…` constants.",
        sgl_type(4): u8 => "SGL Descriptor Type, an [`SglType`].",
    }

    SglType(u8, from_u8) {
        DataBlock = 0x0 => "SGL Data Block descriptor",
        BitBucket = 0x1 => "SGL Bit Bucket descriptor",
        Segment = 0x2 => "SGL Segment descriptor",
        LastSegment = 0x3 => "SGL Last Segment descriptor",
        KeyedDataBlock = 0x4 => "Keyed SGL Data Block descriptor",
        TransportDataBlock = 0x5 => "Transport SGL Data Block descriptor",
        VendorSpecific = 0xf => "Vendor Specific",
    }
}

pub const SGL_SUBTYPE_ADDRESS: u8 = 0x0;
pub const SGL_SUBTYPE_OFFSET: u8 = 0x1;
pub const SGL_SUBTYPE_TRANSPORT_A: u8 = 0xa;
