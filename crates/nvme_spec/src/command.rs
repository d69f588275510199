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
        /// Opcode (CDW0 bits 7:0), an [`AdminOpcode`] or an [`IoOpcode`].
        opcode @ 0: u8,
        /// Fused operation and data transfer type (CDW0 bits 15:8).
        flags @ 1: CommandFlags,
        /// Command Identifier (CDW0 bits 31:16).
        cid @ 2: U16,
        /// Namespace Identifier.
        nsid @ 4: U32,
        /// Command dword 2.
        cdw2 @ 8: U32,
        /// Command dword 3.
        cdw3 @ 12: U32,
        /// Metadata Pointer.
        mptr @ 16: U64,
        /// Data Pointer, two PRP entries ([`SubmissionEntry::prp1`]) or one [`SglDescriptor`]
        /// ([`SubmissionEntry::sgl1`]).
        dptr @ 24: [u8; 16],
        /// Command dword 10.
        cdw10 @ 40: U32,
        /// Command dword 11.
        cdw11 @ 44: U32,
        /// Command dword 12.
        cdw12 @ 48: U32,
        /// Command dword 13.
        cdw13 @ 52: U32,
        /// Command dword 14.
        cdw14 @ 56: U32,
        /// Command dword 15.
        cdw15 @ 60: U32,
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
        /// Fused Operation, see [`FUSE_NONE`], [`FUSE_FIRST`] and [`FUSE_SECOND`].
        fuse(2): u8,
        __(4): u8,
        /// PRP or SGL for Data Transfer, see [`PSDT_PRP`], [`PSDT_SGL_MPTR_CONTIGUOUS`] and
        /// [`PSDT_SGL_MPTR_SGL`].
        psdt(2): u8,
    }
}

/// FUSE value of a normal operation.
pub const FUSE_NONE: u8 = 0;
/// FUSE value of the first command of a fused operation.
pub const FUSE_FIRST: u8 = 1;
/// FUSE value of the second command of a fused operation.
pub const FUSE_SECOND: u8 = 2;
/// PSDT value for PRPs.
pub const PSDT_PRP: u8 = 0;
/// PSDT value for SGLs, with MPTR as the address of one contiguous buffer.
pub const PSDT_SGL_MPTR_CONTIGUOUS: u8 = 1;
/// PSDT value for SGLs, with MPTR as the address of an SGL segment.
pub const PSDT_SGL_MPTR_SGL: u8 = 2;

layout! {
    /// Completion Queue Entry (Base Specification, "Completion Queue Entry").
    CompletionEntry(16) {
        /// Command specific dword 0.
        dw0 @ 0: U32,
        /// Command specific dword 1.
        dw1 @ 4: U32,
        /// SQ Head Pointer.
        sqhd @ 8: U16,
        /// SQ Identifier, reserved over fabrics.
        sqid @ 10: U16,
        /// Command Identifier.
        cid @ 12: U16,
        /// Phase Tag and Status.
        status @ 14: StatusField,
    }

    /// The Phase Tag and the Status field, the upper half of completion dword 3.
    StatusField(U16) {
        /// Phase Tag, reserved over fabrics.
        p: bool,
        /// Status Code.
        sc: u8,
        /// Status Code Type.
        sct(3): u8,
        /// Command Retry Delay (0 none, else which of CRDT1 to CRDT3).
        crd(2): u8,
        /// More. The Error Information log has details.
        m: bool,
        /// Do Not Retry.
        dnr: bool,
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

/// Data transfer direction, from bits 1:0 of the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataTransfer {
    /// No data is transferred.
    None,
    /// From the host to the controller.
    HostToController,
    /// From the controller to the host.
    ControllerToHost,
    /// In both directions.
    Bidirectional,
}

impl DataTransfer {
    /// Direction in bits 1:0 of an opcode. Fabrics commands have it in their command type instead.
    pub const fn of_opcode(opcode: u8) -> DataTransfer {
        match opcode & 3 {
            0 => DataTransfer::None,
            1 => DataTransfer::HostToController,
            2 => DataTransfer::ControllerToHost,
            _ => DataTransfer::Bidirectional,
        }
    }
}

// ---- Administration commands --------------------------------------------------------------------

layout! {
    /// Identify, command dword 10.
    IdentifyCdw10(u32) {
        /// Controller or Namespace Structure, a [`crate::identify::Cns`].
        cns: u8,
        __: u8,
        /// Controller Identifier.
        cntid: u16,
    }

    /// Identify, command dword 11.
    IdentifyCdw11(u32) {
        /// CNS Specific Identifier, NVM set, domain or endurance group.
        cnssid: u16,
        __: u8,
        /// Command Set Identifier, a [`crate::identify::CommandSet`].
        csi: u8,
    }

    /// Get Log Page, command dword 10.
    GetLogPageCdw10(u32) {
        /// Log Page Identifier, a [`crate::log::LogId`].
        lid: u8,
        /// Log Specific Parameter.
        lsp(7): u8,
        /// Retain Asynchronous Event.
        rae: bool,
        /// Number of Dwords Lower, bits 15:0 of the zeroes based number.
        numdl: u16,
    }

    /// Get Log Page, command dword 11.
    GetLogPageCdw11(u32) {
        /// Number of Dwords Upper, bits 31:16 of the zeroes based number.
        numdu: u16,
        /// Log Specific Identifier, for the FDP and endurance group logs the endurance group.
        lsi: u16,
    }

    /// Get Log Page, command dword 14. Dwords 12 and 13 are the lower and upper half of the Log
    /// Page Offset.
    GetLogPageCdw14(u32) {
        /// UUID Index.
        uidx(7): u8,
        __(16): u16,
        /// Offset Type, the offset is an index into a list of data structures instead of bytes.
        ot: bool,
        /// Command Set Identifier.
        csi: u8,
    }

    /// Get Features and Set Features, command dword 14.
    FeaturesCdw14(u32) {
        /// UUID Index.
        uidx(7): u8,
        __(25): u32,
    }

    /// Create I/O Completion Queue and Create I/O Submission Queue, command dword 10.
    CreateQueueCdw10(u32) {
        /// Queue Identifier.
        qid: u16,
        /// Queue Size, zeroes based.
        qsize: u16,
    }

    /// Create I/O Completion Queue, command dword 11.
    CreateIoCompletionQueueCdw11(u32) {
        /// Physically Contiguous.
        pc: bool,
        /// Interrupts Enabled.
        ien: bool,
        __(14): u16,
        /// Interrupt Vector.
        iv: u16,
    }

    /// Create I/O Submission Queue, command dword 11.
    CreateIoSubmissionQueueCdw11(u32) {
        /// Physically Contiguous.
        pc: bool,
        /// Queue Priority (0 urgent, 1 high, 2 medium, 3 low).
        qprio(2): u8,
        __(13): u16,
        /// Completion Queue Identifier.
        cqid: u16,
    }

    /// Delete I/O Completion Queue and Delete I/O Submission Queue, command dword 10.
    DeleteQueueCdw10(u32) {
        /// Queue Identifier.
        qid: u16,
        __: u16,
    }

    /// Abort, command dword 10.
    AbortCdw10(u32) {
        /// Submission Queue Identifier.
        sqid: u16,
        /// Command Identifier.
        cid: u16,
    }

    /// Abort, completion dword 0.
    AbortDw0(u32) {
        /// Immediate Abort Not Performed. The command was *not* aborted.
        ianp: bool,
        __(31): u32,
    }

    /// Get Features, command dword 10.
    GetFeaturesCdw10(u32) {
        /// Feature Identifier, a [`crate::feature::FeatureId`].
        fid: u8,
        /// Select, a [`crate::feature::FeatureSelect`].
        sel(3): u8,
        __(21): u32,
    }

    /// Set Features, command dword 10.
    SetFeaturesCdw10(u32) {
        /// Feature Identifier, a [`crate::feature::FeatureId`].
        fid: u8,
        __(23): u32,
        /// Save.
        sv: bool,
    }

    /// Asynchronous Event Request, completion dword 0.
    AsyncEventDw0(u32) {
        /// Asynchronous Event Type, an [`AsyncEventType`].
        aet(3): u8,
        __(5): u8,
        /// Asynchronous Event Information. The type defines its meaning, see the `AEI_…` constants.
        aei: u8,
        /// Log Page Identifier with the details. Reading the page clears the event.
        lid: u8,
        __: u8,
    }

    /// Asynchronous Event Type.
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

/// Error status, write to an invalid doorbell register.
pub const AEI_ERROR_INVALID_DOORBELL_REGISTER: u8 = 0x00;
/// Error status, an invalid doorbell value was written.
pub const AEI_ERROR_INVALID_DOORBELL_VALUE: u8 = 0x01;
/// Error status, diagnostic failure.
pub const AEI_ERROR_DIAGNOSTIC_FAILURE: u8 = 0x02;
/// Error status, persistent internal error.
pub const AEI_ERROR_PERSISTENT_INTERNAL: u8 = 0x03;
/// Error status, transient internal error.
pub const AEI_ERROR_TRANSIENT_INTERNAL: u8 = 0x04;
/// Error status, firmware image load error.
pub const AEI_ERROR_FIRMWARE_IMAGE_LOAD: u8 = 0x05;
/// SMART / Health, the NVM subsystem's reliability is degraded.
pub const AEI_SMART_RELIABILITY: u8 = 0x00;
/// SMART / Health, temperature threshold.
pub const AEI_SMART_TEMPERATURE_THRESHOLD: u8 = 0x01;
/// SMART / Health, spare below threshold.
pub const AEI_SMART_SPARE_BELOW_THRESHOLD: u8 = 0x02;
/// Notice, Attached Namespace Attribute Changed.
pub const AEI_NOTICE_NAMESPACE_ATTRIBUTE_CHANGED: u8 = 0x00;
/// Notice, Firmware Activation Starting.
pub const AEI_NOTICE_FIRMWARE_ACTIVATION_STARTING: u8 = 0x01;
/// Notice, Telemetry Log Changed.
pub const AEI_NOTICE_TELEMETRY_LOG_CHANGED: u8 = 0x02;
/// Notice, Asymmetric Namespace Access Change.
pub const AEI_NOTICE_ANA_CHANGE: u8 = 0x03;
/// Notice, Predictable Latency Event Aggregate Log Change.
pub const AEI_NOTICE_PREDICTABLE_LATENCY_CHANGE: u8 = 0x04;
/// Notice, LBA Status Information Alert.
pub const AEI_NOTICE_LBA_STATUS_ALERT: u8 = 0x05;
/// Notice, Endurance Group Event Aggregate Log Page Change.
pub const AEI_NOTICE_ENDURANCE_GROUP_CHANGE: u8 = 0x06;
/// Notice, Reachability Group Change.
pub const AEI_NOTICE_REACHABILITY_GROUP_CHANGE: u8 = 0x07;
/// Notice, Reachability Association Change.
pub const AEI_NOTICE_REACHABILITY_ASSOCIATION_CHANGE: u8 = 0x08;
/// Notice, Allocated Namespace Attribute Changed.
pub const AEI_NOTICE_ALLOCATED_NAMESPACE_CHANGED: u8 = 0x09;
/// Notice, Discovery Log Page Change.
pub const AEI_NOTICE_DISCOVERY_LOG_CHANGE: u8 = 0xf0;
/// Notice, Zone Descriptor Changed.
pub const AEI_NOTICE_ZONE_DESCRIPTOR_CHANGED: u8 = 0xef;
/// Notice, Host Discovery Log Page Change.
pub const AEI_NOTICE_HOST_DISCOVERY_LOG_CHANGE: u8 = 0xf1;
/// Notice, AVE Discovery Log Page Change.
pub const AEI_NOTICE_AVE_DISCOVERY_LOG_CHANGE: u8 = 0xf2;
/// Notice, Pull Model DDC Request.
pub const AEI_NOTICE_PULL_MODEL_DDC_REQUEST: u8 = 0xf3;
/// One-Shot, Controller Data Queue Tail Pointer.
pub const AEI_ONE_SHOT_CDQ_TAIL_POINTER: u8 = 0x00;
/// I/O Command specific, Reservation Log Page Available.
pub const AEI_IO_RESERVATION_LOG_AVAILABLE: u8 = 0x00;
/// I/O Command specific, Sanitize Operation Completed.
pub const AEI_IO_SANITIZE_COMPLETED: u8 = 0x01;
/// I/O Command specific, Sanitize Operation Completed With Unexpected Deallocation.
pub const AEI_IO_SANITIZE_UNEXPECTED_DEALLOCATION: u8 = 0x02;
/// Immediate, NVM Subsystem Normal Shutdown.
pub const AEI_IMMEDIATE_NORMAL_SHUTDOWN: u8 = 0x00;
/// Immediate, Temperature Threshold Hysteresis Recovery.
pub const AEI_IMMEDIATE_TEMPERATURE_RECOVERY: u8 = 0x01;

layout! {
    /// Namespace Management, command dword 10.
    NamespaceManagementCdw10(u32) {
        /// Select, see [`NAMESPACE_CREATE`] and [`NAMESPACE_DELETE`].
        sel(4): u8,
        __(28): u32,
    }

    /// Namespace Management, command dword 11.
    NamespaceManagementCdw11(u32) {
        __(24): u32,
        /// Command Set Identifier.
        csi: u8,
    }
}

/// Namespace Management SEL value for create.
pub const NAMESPACE_CREATE: u8 = 0;
/// Namespace Management SEL value for delete.
pub const NAMESPACE_DELETE: u8 = 1;

layout! {
    /// Namespace Attachment, command dword 10.
    NamespaceAttachmentCdw10(u32) {
        /// Select, see [`CONTROLLER_ATTACH`] and [`CONTROLLER_DETACH`].
        sel(4): u8,
        __(28): u32,
    }
}

/// Namespace Attachment SEL value to attach the namespace to the listed controllers.
pub const CONTROLLER_ATTACH: u8 = 0;
/// Namespace Attachment SEL value to detach the namespace from the listed controllers.
pub const CONTROLLER_DETACH: u8 = 1;

layout! {
    /// Format NVM, command dword 10.
    FormatNvmCdw10(u32) {
        /// LBA Format Lower, bits 3:0 of the format index.
        lbafl(4): u8,
        /// Metadata Settings, metadata is part of an extended logical block.
        mset: bool,
        /// Protection Information (0 none, else type 1 to 3).
        pi(3): u8,
        /// Protection Information Location, first bytes of the metadata (for guards of 16 bits).
        pil: bool,
        /// Secure Erase Settings (0 none, 1 user data erase, 2 cryptographic erase).
        ses(3): u8,
        /// LBA Format Upper, bits 5:4 of the format index.
        lbafu(2): u8,
        __(18): u32,
    }

    /// Sanitize, command dword 10. Dword 11 is the Overwrite Pattern.
    SanitizeCdw10(u32) {
        /// Sanitize Action, a [`SanitizeAction`].
        sanact(3): u8,
        /// Allow Unrestricted Sanitize Exit.
        ause: bool,
        /// Overwrite Pass Count, 0 means 16.
        owpass(4): u8,
        /// Overwrite Invert Pattern Between Passes.
        oipbp: bool,
        /// No-Deallocate After Sanitize.
        ndas: bool,
        /// Enter Media Verification State.
        emvs: bool,
        __(21): u32,
    }

    /// Sanitize, Sanitize Action.
    SanitizeAction(u8, from_u8) {
        ExitFailureMode = 1 => "Exit Failure Mode",
        BlockErase = 2 => "Start a Block Erase sanitize operation",
        Overwrite = 3 => "Start an Overwrite sanitize operation",
        CryptoErase = 4 => "Start a Crypto Erase sanitize operation",
        ExitMediaVerification = 5 => "Exit Media Verification State",
    }

    /// Device Self-test, command dword 10.
    DeviceSelfTestCdw10(u32) {
        /// Self-test Code, a [`SelfTestCode`].
        stc(4): u8,
        __(28): u32,
    }

    /// Device Self-test, Self-test Code.
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
        /// Directive Operation, specific to the type.
        doper: u8,
        /// Directive Type, a [`crate::directive::DirectiveType`].
        dtype: u8,
        /// Directive Specific.
        dspec: u16,
    }

    /// Directive Send, Identify directive, Enable Directive operation, command dword 12.
    EnableDirectiveCdw12(u32) {
        /// Enable Directive.
        endir: bool,
        __(7): u8,
        /// Directive Type to enable or disable.
        tdtype: u8,
        __: u16,
    }
}

// ---- I/O commands -------------------------------------------------------------------------------

layout! {
    /// Command dword 12 of Read, Write, Compare, Verify and Write Zeroes. Dwords 10 and 11 are the
    /// starting LBA.
    ReadWriteCdw12(u32) {
        /// Number of Logical Blocks, zeroes based.
        nlb: u16,
        __(4): u8,
        /// Directive Type (Write, Write Uncorrectable and Write Zeroes), a
        /// [`crate::directive::DirectiveType`].
        dtype(4): u8,
        /// Storage Tag Check.
        stc: bool,
        /// Deallocate. Reserved except in Write Zeroes.
        deac: bool,
        /// Protection Information Field, PRCHK in bits 2:0, PRACT in bit 3.
        prinfo(4): u8,
        /// Force Unit Access.
        fua: bool,
        /// Limited Retry.
        lr: bool,
    }

    /// Command dword 12 of Write Zeroes, with the bit that only this command has.
    WriteZeroesCdw12(u32) {
        /// Number of Logical Blocks, zeroes based.
        nlb: u16,
        __(4): u8,
        /// Directive Type.
        dtype(3): u8,
        /// Namespace Zeroes, all blocks of the namespace.
        nsz: bool,
        /// Storage Tag Check.
        stc: bool,
        /// Deallocate.
        deac: bool,
        /// Protection Information Field, PRCHK in bits 2:0, PRACT in bit 3.
        prinfo(4): u8,
        /// Force Unit Access.
        fua: bool,
        /// Limited Retry.
        lr: bool,
    }

    /// Dataset Management, command dword 11.
    DatasetManagementCdw11(u32) {
        /// Attribute - Integral Dataset for Read.
        idr: bool,
        /// Attribute - Integral Dataset for Write.
        idw: bool,
        /// Attribute - Deallocate.
        ad: bool,
        __(29): u32,
    }

    /// Dataset Management, Range definition (NVM Command Set).
    Range(16) {
        /// Context Attributes, a [`RangeAttributes`].
        cattr @ 0: RangeAttributes,
        /// Length in logical blocks, *not* zeroes based.
        nlb @ 4: U32,
        /// Starting LBA.
        slba @ 8: U64,
    }

    /// Dataset Management, Context Attributes of a range.
    RangeAttributes(U32) {
        /// Access Frequency.
        af(4): u8,
        /// Access Latency.
        al(2): u8,
        __(2): u8,
        /// Sequential Read Range.
        sr: bool,
        /// Sequential Write Range.
        sw: bool,
        /// Write Prepare.
        wp: bool,
        __(13): u16,
        /// Command Access Size in logical blocks.
        cas: u8,
    }

    /// Copy, command dword 12. Dwords 10 and 11 are the Starting Destination LBA (SDLBA).
    CopyCdw12(u32) {
        /// Number of Ranges, zeroes based.
        nr: u8,
        /// Descriptor Format (0 for [`SourceRange0`], 1 to 3 for formats without a type here).
        desfmt(4): u8,
        /// Protection Information Field Read, PRCHK in bits 2:0, PRACT in bit 3.
        prinfor(4): u8,
        __(4): u8,
        /// Directive Type.
        dtype(4): u8,
        /// Storage Tag Check Write.
        stcw: bool,
        /// Storage Tag Check Read.
        stcr: bool,
        /// Protection Information Field Write, PRCHK in bits 2:0, PRACT in bit 3.
        prinfow(4): u8,
        /// Force Unit Access.
        fua: bool,
        /// Limited Retry.
        lr: bool,
    }

    /// Copy, Source Range Entry of descriptor format 0 (same namespace, 16-bit guard).
    SourceRange0(32) {
        /// Reserved (parameters of other command sets).
        _reserved0 @ 0: [u8; 8],
        /// Starting LBA.
        slba @ 8: U64,
        /// Number of Logical Blocks, zeroes based.
        nlb @ 16: U16,
        _reserved18 @ 18: [u8; 6],
        /// Expected Logical Block Storage and Reference Tag.
        eilbrt @ 24: U32,
        /// Expected Logical Block Application Tag.
        elbat @ 28: U16,
        /// Expected Logical Block Application Tag Mask.
        elbatm @ 30: U16,
    }

    /// I/O Management Receive and I/O Management Send, command dword 10.
    ///
    /// Dword 11 of Receive is the zeroes based number of dwords (NUMD). Send has no length.
    IoManagementCdw10(u32) {
        /// Management Operation, see the `MO_…` constants of [`crate::fdp`].
        mo: u8,
        __: u8,
        /// Management Operation Specific. The zeroes based number of placement identifiers for
        /// Reclaim Unit Handle Update.
        mos: u16,
    }
}

// ---- Scatter Gather Lists -----------------------------------------------------------------------

layout! {
    /// SGL descriptor (Base Specification, "Scatter Gather List"), in the form of all types without
    /// a key.
    SglDescriptor(16) {
        /// Address, or offset for the offset subtype. Reserved in bit buckets.
        addr @ 0: U64,
        /// Length in bytes.
        length @ 8: U32,
        _reserved12 @ 12: [u8; 3],
        /// SGL Identifier, type and subtype.
        id @ 15: SglIdentifier,
    }

    /// SGL Identifier, byte 15 of an SGL descriptor.
    SglIdentifier(u8) {
        /// SGL Descriptor Sub Type, see the `SGL_SUBTYPE_…` constants.
        subtype(4): u8,
        /// SGL Descriptor Type, an [`SglType`].
        sgl_type(4): u8,
    }

    /// SGL Descriptor Type.
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

/// SGL subtype whose address field is an address.
pub const SGL_SUBTYPE_ADDRESS: u8 = 0x0;
/// SGL subtype whose address field is an offset into the capsule's data.
pub const SGL_SUBTYPE_OFFSET: u8 = 0x1;
/// SGL subtype A of the transport. For TCP with [`SglType::TransportDataBlock`], the data moves in
/// H2CData and C2HData.
pub const SGL_SUBTYPE_TRANSPORT_A: u8 = 0xa;
/// SGL subtype of keyed data blocks (RDMA) that invalidates the key.
pub const SGL_SUBTYPE_INVALIDATE_KEY: u8 = 0xf;

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{FromBytes, IntoBytes};

    #[test]
    fn status_field_bytes() {
        let field = StatusField::from_status(Status::INVALID_FIELD).with_dnr(true);
        assert_eq!(field.as_bytes(), [0x04, 0x80]);
        assert_eq!(field.into_bits().get() >> 1, 0x4002);
        // Linux prints 0x4002, the field without the phase tag. DNR is bit 14 in that form.
        let field = StatusField::from_bits(U16::new(0x4002 << 1 | 1));
        assert_eq!(field.status(), Status::INVALID_FIELD);
        assert!(field.p());
        assert!(!field.m());
        let path = StatusField::from_status(Status::HOST_PATHING_ERROR).with_crd(2).with_m(true).with_p(true);
        assert_eq!(path.into_bits().get(), 1 | 0x70 << 1 | 3 << 9 | 2 << 12 | 1 << 14);
    }

    #[test]
    fn get_log_page_of_host_events() {
        let cdw10 = GetLogPageCdw10::new().with_lid(0x23).with_lsp(1).with_numdl(1023);
        assert_eq!(cdw10.into_bits(), 0x03ff_0123);
        assert!(GetLogPageCdw10::from_bits(0x03ff_8123).rae());
        let cdw11 = GetLogPageCdw11::from_bits(0x0001_0002);
        assert_eq!((cdw11.lsi(), cdw11.numdu()), (1, 2));
        assert_eq!(GetLogPageCdw14::new().with_ot(true).with_csi(2).into_bits(), 0x0280_0000);
    }

    #[test]
    fn write_with_placement_identifier() {
        let mut entry = SubmissionEntry { opcode: IoOpcode::Write.code(), ..SubmissionEntry::default() };
        entry.cid.set(0x1234);
        entry.nsid.set(1);
        entry.cdw12.set(ReadWriteCdw12::new().with_nlb(7).with_dtype(2).with_fua(true).into_bits());
        entry.cdw13.set(7 << 16);
        entry.set_prps(0x1000, 0x2000);
        let bytes = entry.as_bytes();
        assert_eq!(bytes[..8], [0x01, 0, 0x34, 0x12, 1, 0, 0, 0]);
        assert_eq!(bytes[24..40], [0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[48..56], [0x07, 0x00, 0x20, 0x40, 0, 0, 7, 0]);
        assert_eq!(SubmissionEntry::read_from_bytes(bytes).unwrap(), entry);
        assert_eq!((entry.prp1(), entry.prp2()), (0x1000, 0x2000));
    }

    #[test]
    fn write_zeroes_and_copy() {
        assert_eq!(WriteZeroesCdw12::new().with_nlb(255).with_deac(true).into_bits(), 0x0200_00ff);
        assert_eq!(ReadWriteCdw12::new().with_deac(true).into_bits(), 1 << 25);
        assert_eq!(WriteZeroesCdw12::new().with_nsz(true).into_bits(), 1 << 23);
        assert_eq!(ReadWriteCdw12::new().with_prinfo(0b1001).into_bits(), 1 << 29 | 1 << 26);
        assert_eq!(CopyCdw12::new().with_nr(3).with_desfmt(2).with_dtype(2).into_bits(), 0x0020_0203);
        assert_eq!(CopyCdw12::new().with_stcw(true).into_bits(), 1 << 24);
    }

    #[test]
    fn queue_creation_and_format() {
        assert_eq!(CreateQueueCdw10::new().with_qid(3).with_qsize(1023).into_bits(), 0x03ff_0003);
        let cdw11 = CreateIoCompletionQueueCdw11::new().with_pc(true).with_ien(true).with_iv(3);
        assert_eq!(cdw11.into_bits(), 0x0003_0003);
        assert_eq!(FormatNvmCdw10::new().with_ses(1).with_lbafl(2).with_lbafu(1).into_bits(), 0x1202);
        assert_eq!(SetFeaturesCdw10::new().with_fid(0x1d).with_sv(true).into_bits(), 0x8000_001d);
    }

    #[test]
    fn sgl_identifier_bytes() {
        let mut sgl = SglDescriptor::default();
        sgl.length.set(4096);
        sgl.id = SglIdentifier::new()
            .with_sgl_type(SglType::TransportDataBlock.code())
            .with_subtype(SGL_SUBTYPE_TRANSPORT_A);
        assert_eq!(sgl.as_bytes()[8..], [0, 0x10, 0, 0, 0, 0, 0, 0x5a]);
    }

    #[test]
    fn opcodes_round_trip() {
        for opcode in 0..=u8::MAX {
            if let Some(known) = AdminOpcode::from_u8(opcode) {
                assert_eq!(known.code(), opcode);
            }
            if let Some(known) = IoOpcode::from_u8(opcode) {
                assert_eq!(known.code(), opcode);
            }
        }
        assert_eq!(AdminOpcode::from_u8(0x06), Some(AdminOpcode::Identify));
        assert_eq!(AdminOpcode::from_u8(0x03), None);
        assert_eq!(DataTransfer::of_opcode(IoOpcode::IoManagementReceive.code()), DataTransfer::ControllerToHost);
        assert_eq!(DataTransfer::of_opcode(IoOpcode::DatasetManagement.code()), DataTransfer::HostToController);
    }
}
