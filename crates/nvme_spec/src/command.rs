//! Commands: the submission and completion queue entries, the opcodes, the command dwords of every command as bit
//! fields, and the data structures that describe where a command's data lies (SGL) or what it is about (ranges).
//!
//! The dwords of Get Features and Set Features that belong to one feature are in [`crate::feature`], the fabrics
//! commands in [`crate::fabrics`], the data a command transfers in `identify`, `log`, `directive` and `fdp`. Dwords
//! that are one plain number (an offset, an address, a count that fills the dword) have no type here.

use bitfield_struct::bitfield;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::status::Status;

/// Submission Queue Entry (Base Specification, "Submission Queue Entry").
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SubmissionEntry {
    /// Opcode (CDW0 bits 7:0): an [`AdminOpcode`] or an [`IoOpcode`].
    pub opcode: u8,
    /// Fused operation and data transfer type (CDW0 bits 15:8).
    pub flags: CommandFlags,
    /// Command Identifier (CDW0 bits 31:16).
    pub cid: U16,
    /// Namespace Identifier.
    pub nsid: U32,
    /// Command dword 2.
    pub cdw2: U32,
    /// Command dword 3.
    pub cdw3: U32,
    /// Metadata Pointer.
    pub mptr: U64,
    /// Data Pointer: two PRP entries ([`SubmissionEntry::prp1`]) or one [`SglDescriptor`] ([`SubmissionEntry::sgl1`]).
    pub dptr: [u8; 16],
    /// Command dword 10.
    pub cdw10: U32,
    /// Command dword 11.
    pub cdw11: U32,
    /// Command dword 12.
    pub cdw12: U32,
    /// Command dword 13.
    pub cdw13: U32,
    /// Command dword 14.
    pub cdw14: U32,
    /// Command dword 15.
    pub cdw15: U32,
}

layout! { SubmissionEntry, 64, opcode @ 0, flags @ 1, cid @ 2, nsid @ 4, cdw2 @ 8, cdw3 @ 12, mptr @ 16, dptr @ 24,
cdw10 @ 40, cdw11 @ 44, cdw12 @ 48, cdw13 @ 52, cdw14 @ 56, cdw15 @ 60 }

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

    /// Sets the data pointer to an SGL descriptor; the PSDT bits are the caller's.
    pub fn set_sgl1(&mut self, sgl1: SglDescriptor) {
        self.dptr = zerocopy::transmute!(sgl1);
    }
}

/// Byte 1 of a submission queue entry.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct CommandFlags {
    /// Fused Operation: see [`FUSE_NONE`], [`FUSE_FIRST`] and [`FUSE_SECOND`].
    #[bits(2)]
    pub fuse: u8,
    #[bits(4)]
    __: u8,
    /// PRP or SGL for Data Transfer: see [`PSDT_PRP`], [`PSDT_SGL_MPTR_CONTIGUOUS`] and [`PSDT_SGL_MPTR_SGL`].
    #[bits(2)]
    pub psdt: u8,
}

/// FUSE: normal operation.
pub const FUSE_NONE: u8 = 0;
/// FUSE: first command of a fused operation.
pub const FUSE_FIRST: u8 = 1;
/// FUSE: second command of a fused operation.
pub const FUSE_SECOND: u8 = 2;
/// PSDT: PRPs are used.
pub const PSDT_PRP: u8 = 0;
/// PSDT: SGLs are used; MPTR is the address of one contiguous buffer.
pub const PSDT_SGL_MPTR_CONTIGUOUS: u8 = 1;
/// PSDT: SGLs are used; MPTR is the address of an SGL segment.
pub const PSDT_SGL_MPTR_SGL: u8 = 2;

/// Completion Queue Entry (Base Specification, "Completion Queue Entry").
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct CompletionEntry {
    /// Command specific dword 0.
    pub dw0: U32,
    /// Command specific dword 1.
    pub dw1: U32,
    /// SQ Head Pointer.
    pub sqhd: U16,
    /// SQ Identifier; reserved over fabrics.
    pub sqid: U16,
    /// Command Identifier.
    pub cid: U16,
    /// Phase Tag and Status.
    pub status: StatusField,
}

layout! { CompletionEntry, 16, dw0 @ 0, dw1 @ 4, sqhd @ 8, sqid @ 10, cid @ 12, status @ 14 }

/// The Phase Tag and the Status field: the upper half of completion dword 3.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct StatusField {
    /// Phase Tag; reserved over fabrics.
    pub p: bool,
    /// Status Code.
    pub sc: u8,
    /// Status Code Type.
    #[bits(3)]
    pub sct: u8,
    /// Command Retry Delay: 0 none, else which of CRDT1 to CRDT3.
    #[bits(2)]
    pub crd: u8,
    /// More: the Error Information log has more about this.
    pub m: bool,
    /// Do Not Retry.
    pub dnr: bool,
}

impl StatusField {
    /// A field with this status and all other bits zero.
    pub const fn of(status: Status) -> StatusField {
        StatusField::new().with_sc(status.sc()).with_sct(status.sct())
    }

    /// The status, without phase tag and retry bits.
    pub const fn status(self) -> Status {
        Status::new(self.sct(), self.sc())
    }
}

codes! {
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
}

codes! {
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

/// Data transfer direction, as bits 1:0 of every opcode have it.
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
    /// The direction in an opcode's bits 1:0. Fabrics commands have it in their command type instead.
    pub const fn of_opcode(opcode: u8) -> DataTransfer {
        match opcode & 3 {
            0 => DataTransfer::None,
            1 => DataTransfer::HostToController,
            2 => DataTransfer::ControllerToHost,
            _ => DataTransfer::Bidirectional,
        }
    }
}

// ---- Administration commands ------------------------------------------------------------------------------------

/// Identify, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct IdentifyCdw10 {
    /// Controller or Namespace Structure: a [`crate::identify::Cns`].
    pub cns: u8,
    __: u8,
    /// Controller Identifier.
    pub cntid: u16,
}

/// Identify, command dword 11.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct IdentifyCdw11 {
    /// CNS Specific Identifier: NVM set, domain or endurance group.
    pub cnssid: u16,
    __: u8,
    /// Command Set Identifier: a [`crate::identify::CommandSet`].
    pub csi: u8,
}

/// Get Log Page, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct GetLogPageCdw10 {
    /// Log Page Identifier: a [`crate::log::LogId`].
    pub lid: u8,
    /// Log Specific Parameter.
    #[bits(7)]
    pub lsp: u8,
    /// Retain Asynchronous Event.
    pub rae: bool,
    /// Number of Dwords Lower: bits 15:0 of the zeroes based number.
    pub numdl: u16,
}

/// Get Log Page, command dword 11.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct GetLogPageCdw11 {
    /// Number of Dwords Upper: bits 31:16 of the zeroes based number.
    pub numdu: u16,
    /// Log Specific Identifier: for the FDP and endurance group logs the endurance group.
    pub lsi: u16,
}

/// Get Log Page, command dword 14. Dwords 12 and 13 are the lower and upper half of the Log Page Offset.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct GetLogPageCdw14 {
    /// UUID Index.
    #[bits(7)]
    pub uidx: u8,
    #[bits(16)]
    __: u16,
    /// Offset Type: the offset is an index into a list of data structures instead of bytes.
    pub ot: bool,
    /// Command Set Identifier.
    pub csi: u8,
}

/// Create I/O Completion Queue and Create I/O Submission Queue, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CreateQueueCdw10 {
    /// Queue Identifier.
    pub qid: u16,
    /// Queue Size, zeroes based.
    pub qsize: u16,
}

/// Create I/O Completion Queue, command dword 11.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CreateIoCompletionQueueCdw11 {
    /// Physically Contiguous.
    pub pc: bool,
    /// Interrupts Enabled.
    pub ien: bool,
    #[bits(14)]
    __: u16,
    /// Interrupt Vector.
    pub iv: u16,
}

/// Create I/O Submission Queue, command dword 11.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CreateIoSubmissionQueueCdw11 {
    /// Physically Contiguous.
    pub pc: bool,
    /// Queue Priority: 0 urgent, 1 high, 2 medium, 3 low.
    #[bits(2)]
    pub qprio: u8,
    #[bits(13)]
    __: u16,
    /// Completion Queue Identifier.
    pub cqid: u16,
}

/// Delete I/O Completion Queue and Delete I/O Submission Queue, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DeleteQueueCdw10 {
    /// Queue Identifier.
    pub qid: u16,
    __: u16,
}

/// Abort, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct AbortCdw10 {
    /// Submission Queue Identifier.
    pub sqid: u16,
    /// Command Identifier.
    pub cid: u16,
}

/// Abort, completion dword 0.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct AbortDw0 {
    /// Immediate Abort Not Performed: the command was *not* aborted.
    pub ianp: bool,
    #[bits(31)]
    __: u32,
}

/// Get Features, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct GetFeaturesCdw10 {
    /// Feature Identifier: a [`crate::feature::FeatureId`].
    pub fid: u8,
    /// Select: a [`crate::feature::FeatureSelect`].
    #[bits(3)]
    pub sel: u8,
    #[bits(21)]
    __: u32,
}

/// Set Features, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct SetFeaturesCdw10 {
    /// Feature Identifier: a [`crate::feature::FeatureId`].
    pub fid: u8,
    #[bits(23)]
    __: u32,
    /// Save.
    pub sv: bool,
}

/// Asynchronous Event Request, completion dword 0.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct AsyncEventDw0 {
    /// Asynchronous Event Type: an [`AsyncEventType`].
    #[bits(3)]
    pub aet: u8,
    #[bits(5)]
    __: u8,
    /// Asynchronous Event Information; its meaning is the type's: see the `AEI_…` constants.
    pub aei: u8,
    /// Log Page Identifier that holds more and whose reading clears the event.
    pub lid: u8,
    __: u8,
}

codes! {
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

/// Error status: write to an invalid doorbell register.
pub const AEI_ERROR_INVALID_DOORBELL_REGISTER: u8 = 0x00;
/// Error status: an invalid doorbell value was written.
pub const AEI_ERROR_INVALID_DOORBELL_VALUE: u8 = 0x01;
/// Error status: diagnostic failure.
pub const AEI_ERROR_DIAGNOSTIC_FAILURE: u8 = 0x02;
/// Error status: persistent internal error.
pub const AEI_ERROR_PERSISTENT_INTERNAL: u8 = 0x03;
/// Error status: transient internal error.
pub const AEI_ERROR_TRANSIENT_INTERNAL: u8 = 0x04;
/// Error status: firmware image load error.
pub const AEI_ERROR_FIRMWARE_IMAGE_LOAD: u8 = 0x05;
/// SMART / Health: the NVM subsystem's reliability is degraded.
pub const AEI_SMART_RELIABILITY: u8 = 0x00;
/// SMART / Health: temperature threshold.
pub const AEI_SMART_TEMPERATURE_THRESHOLD: u8 = 0x01;
/// SMART / Health: spare below threshold.
pub const AEI_SMART_SPARE_BELOW_THRESHOLD: u8 = 0x02;
/// Notice: Attached Namespace Attribute Changed.
pub const AEI_NOTICE_NAMESPACE_ATTRIBUTE_CHANGED: u8 = 0x00;
/// Notice: Firmware Activation Starting.
pub const AEI_NOTICE_FIRMWARE_ACTIVATION_STARTING: u8 = 0x01;
/// Notice: Telemetry Log Changed.
pub const AEI_NOTICE_TELEMETRY_LOG_CHANGED: u8 = 0x02;
/// Notice: Asymmetric Namespace Access Change.
pub const AEI_NOTICE_ANA_CHANGE: u8 = 0x03;
/// Notice: Predictable Latency Event Aggregate Log Change.
pub const AEI_NOTICE_PREDICTABLE_LATENCY_CHANGE: u8 = 0x04;
/// Notice: LBA Status Information Alert.
pub const AEI_NOTICE_LBA_STATUS_ALERT: u8 = 0x05;
/// Notice: Endurance Group Event Aggregate Log Page Change.
pub const AEI_NOTICE_ENDURANCE_GROUP_CHANGE: u8 = 0x06;
/// Notice: Reachability Group Change.
pub const AEI_NOTICE_REACHABILITY_GROUP_CHANGE: u8 = 0x07;
/// Notice: Reachability Association Change.
pub const AEI_NOTICE_REACHABILITY_ASSOCIATION_CHANGE: u8 = 0x08;
/// Notice: Allocated Namespace Attribute Changed.
pub const AEI_NOTICE_ALLOCATED_NAMESPACE_CHANGED: u8 = 0x09;
/// Notice: Discovery Log Page Change.
pub const AEI_NOTICE_DISCOVERY_LOG_CHANGE: u8 = 0xf0;
/// Notice: Zone Descriptor Changed.
pub const AEI_NOTICE_ZONE_DESCRIPTOR_CHANGED: u8 = 0xef;
/// Notice: Host Discovery Log Page Change.
pub const AEI_NOTICE_HOST_DISCOVERY_LOG_CHANGE: u8 = 0xf1;
/// Notice: AVE Discovery Log Page Change.
pub const AEI_NOTICE_AVE_DISCOVERY_LOG_CHANGE: u8 = 0xf2;
/// Notice: Pull Model DDC Request.
pub const AEI_NOTICE_PULL_MODEL_DDC_REQUEST: u8 = 0xf3;
/// One-Shot: Controller Data Queue Tail Pointer.
pub const AEI_ONE_SHOT_CDQ_TAIL_POINTER: u8 = 0x00;
/// I/O Command specific: Reservation Log Page Available.
pub const AEI_IO_RESERVATION_LOG_AVAILABLE: u8 = 0x00;
/// I/O Command specific: Sanitize Operation Completed.
pub const AEI_IO_SANITIZE_COMPLETED: u8 = 0x01;
/// I/O Command specific: Sanitize Operation Completed With Unexpected Deallocation.
pub const AEI_IO_SANITIZE_UNEXPECTED_DEALLOCATION: u8 = 0x02;
/// Immediate: NVM Subsystem Normal Shutdown.
pub const AEI_IMMEDIATE_NORMAL_SHUTDOWN: u8 = 0x00;
/// Immediate: Temperature Threshold Hysteresis Recovery.
pub const AEI_IMMEDIATE_TEMPERATURE_RECOVERY: u8 = 0x01;

/// Namespace Management, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct NamespaceManagementCdw10 {
    /// Select: see [`NAMESPACE_CREATE`] and [`NAMESPACE_DELETE`].
    #[bits(4)]
    pub sel: u8,
    #[bits(28)]
    __: u32,
}

/// Namespace Management, command dword 11.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct NamespaceManagementCdw11 {
    #[bits(24)]
    __: u32,
    /// Command Set Identifier.
    pub csi: u8,
}

/// Namespace Management SEL: create.
pub const NAMESPACE_CREATE: u8 = 0;
/// Namespace Management SEL: delete.
pub const NAMESPACE_DELETE: u8 = 1;

/// Namespace Attachment, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct NamespaceAttachmentCdw10 {
    /// Select: see [`CONTROLLER_ATTACH`] and [`CONTROLLER_DETACH`].
    #[bits(4)]
    pub sel: u8,
    #[bits(28)]
    __: u32,
}

/// Namespace Attachment SEL: attach the namespace to the listed controllers.
pub const CONTROLLER_ATTACH: u8 = 0;
/// Namespace Attachment SEL: detach the namespace from the listed controllers.
pub const CONTROLLER_DETACH: u8 = 1;

codes! {
    /// Firmware Commit, Commit Action.
    CommitAction(u8, from_u8) {
        Replace = 0 => "Replace the image in the slot; do not activate",
        ReplaceActivateAtReset = 1 => "Replace the image in the slot; activate at the next reset",
        ActivateAtReset = 2 => "Activate the image in the slot at the next reset",
        ActivateImmediately = 3 => "Activate the image in the slot immediately",
        ReplaceBootPartition = 6 => "Replace the boot partition",
        ActivateBootPartition = 7 => "Mark the boot partition as active",
    }
}

/// Format NVM, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct FormatNvmCdw10 {
    /// LBA Format Lower: bits 3:0 of the format index.
    #[bits(4)]
    pub lbafl: u8,
    /// Metadata Settings: metadata is part of an extended logical block.
    pub mset: bool,
    /// Protection Information: 0 none, else type 1 to 3.
    #[bits(3)]
    pub pi: u8,
    /// Protection Information Location: first bytes of the metadata (for guards of 16 bits).
    pub pil: bool,
    /// Secure Erase Settings: 0 none, 1 user data erase, 2 cryptographic erase.
    #[bits(3)]
    pub ses: u8,
    /// LBA Format Upper: bits 5:4 of the format index.
    #[bits(2)]
    pub lbafu: u8,
    #[bits(18)]
    __: u32,
}

/// Sanitize, command dword 10. Dword 11 is the Overwrite Pattern.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct SanitizeCdw10 {
    /// Sanitize Action: a [`SanitizeAction`].
    #[bits(3)]
    pub sanact: u8,
    /// Allow Unrestricted Sanitize Exit.
    pub ause: bool,
    /// Overwrite Pass Count; 0 means 16.
    #[bits(4)]
    pub owpass: u8,
    /// Overwrite Invert Pattern Between Passes.
    pub oipbp: bool,
    /// No-Deallocate After Sanitize.
    pub ndas: bool,
    /// Enter Media Verification State.
    pub emvs: bool,
    #[bits(21)]
    __: u32,
}

codes! {
    /// Sanitize, Sanitize Action.
    SanitizeAction(u8, from_u8) {
        ExitFailureMode = 1 => "Exit Failure Mode",
        BlockErase = 2 => "Start a Block Erase sanitize operation",
        Overwrite = 3 => "Start an Overwrite sanitize operation",
        CryptoErase = 4 => "Start a Crypto Erase sanitize operation",
        ExitMediaVerification = 5 => "Exit Media Verification State",
    }
}

/// Device Self-test, command dword 10.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DeviceSelfTestCdw10 {
    /// Self-test Code: a [`SelfTestCode`].
    #[bits(4)]
    pub stc: u8,
    #[bits(28)]
    __: u32,
}

codes! {
    /// Device Self-test, Self-test Code.
    SelfTestCode(u8, from_u8) {
        Short = 0x1 => "Start a short device self-test operation",
        Extended = 0x2 => "Start an extended device self-test operation",
        HostInitiatedRefresh = 0x3 => "Start a Host-Initiated Refresh operation",
        VendorSpecific = 0xe => "Vendor specific",
        Abort = 0xf => "Abort device self-test operation",
    }
}

/// Directive Send and Directive Receive, command dword 11. Dword 10 is the zeroes based number of dwords (NUMD).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DirectiveCdw11 {
    /// Directive Operation, specific to the type.
    pub doper: u8,
    /// Directive Type: a [`crate::directive::DirectiveType`].
    pub dtype: u8,
    /// Directive Specific.
    pub dspec: u16,
}

/// Directive Send, Identify directive, Enable Directive operation: command dword 12.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct EnableDirectiveCdw12 {
    /// Enable Directive.
    pub endir: bool,
    #[bits(7)]
    __: u8,
    /// Directive Type to enable or disable.
    pub tdtype: u8,
    __: u16,
}

// ---- I/O commands -----------------------------------------------------------------------------------------------

/// Command dword 12 of Read, Write, Compare, Verify and Write Zeroes. Dwords 10 and 11 are the starting LBA.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct ReadWriteCdw12 {
    /// Number of Logical Blocks, zeroes based.
    pub nlb: u16,
    #[bits(4)]
    __: u8,
    /// Directive Type (Write, Write Uncorrectable and Write Zeroes): a [`crate::directive::DirectiveType`].
    #[bits(4)]
    pub dtype: u8,
    /// Storage Tag Check.
    pub stc: bool,
    /// Deallocate (Write Zeroes only; elsewhere reserved).
    pub deac: bool,
    /// Protection Information Field: the low four bits of a [`Prinfo`].
    #[bits(4)]
    pub prinfo: u8,
    /// Force Unit Access.
    pub fua: bool,
    /// Limited Retry.
    pub lr: bool,
}

/// Command dword 12 of Write Zeroes, with the bit that only this command has.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct WriteZeroesCdw12 {
    /// Number of Logical Blocks, zeroes based.
    pub nlb: u16,
    #[bits(4)]
    __: u8,
    /// Directive Type.
    #[bits(3)]
    pub dtype: u8,
    /// Namespace Zeroes: all blocks of the namespace.
    pub nsz: bool,
    /// Storage Tag Check.
    pub stc: bool,
    /// Deallocate.
    pub deac: bool,
    /// Protection Information Field: the low four bits of a [`Prinfo`].
    #[bits(4)]
    pub prinfo: u8,
    /// Force Unit Access.
    pub fua: bool,
    /// Limited Retry.
    pub lr: bool,
}

/// Command dword 13 of Read, Write, Write Zeroes and Write Uncorrectable.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct ReadWriteCdw13 {
    /// Dataset Management (Read and Write): the bits of a [`DatasetManagementHint`].
    pub dsm: u8,
    __: u8,
    /// Directive Specific (Write, Write Zeroes, Write Uncorrectable): for data placement the placement identifier.
    pub dspec: u16,
}

/// Dataset Management, command dword 11.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DatasetManagementCdw11 {
    /// Attribute - Integral Dataset for Read.
    pub idr: bool,
    /// Attribute - Integral Dataset for Write.
    pub idw: bool,
    /// Attribute - Deallocate.
    pub ad: bool,
    #[bits(29)]
    __: u32,
}

/// Dataset Management, Range definition (NVM Command Set).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Range {
    /// Context Attributes: a [`RangeAttributes`].
    pub cattr: RangeAttributes,
    /// Length in logical blocks; *not* zeroes based.
    pub nlb: U32,
    /// Starting LBA.
    pub slba: U64,
}

layout! { Range, 16, cattr @ 0, nlb @ 4, slba @ 8 }

/// Dataset Management, Context Attributes of a range.
#[bitfield(u32, repr = U32, from = U32::new, into = U32::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct RangeAttributes {
    /// Access Frequency.
    #[bits(4)]
    pub af: u8,
    /// Access Latency.
    #[bits(2)]
    pub al: u8,
    #[bits(2)]
    __: u8,
    /// Sequential Read Range.
    pub sr: bool,
    /// Sequential Write Range.
    pub sw: bool,
    /// Write Prepare.
    pub wp: bool,
    #[bits(13)]
    __: u16,
    /// Command Access Size in logical blocks.
    pub cas: u8,
}

/// Copy, command dword 12. Dwords 10 and 11 are the Starting Destination LBA (SDLBA).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct CopyCdw12 {
    /// Number of Ranges, zeroes based.
    pub nr: u8,
    /// Descriptor Format: 0 to 3 for [`SourceRange0`] to [`SourceRange3`].
    #[bits(4)]
    pub desfmt: u8,
    /// Protection Information Field Read: the low four bits of a [`Prinfo`].
    #[bits(4)]
    pub prinfor: u8,
    #[bits(4)]
    __: u8,
    /// Directive Type.
    #[bits(4)]
    pub dtype: u8,
    /// Storage Tag Check Write.
    pub stcw: bool,
    /// Storage Tag Check Read.
    pub stcr: bool,
    /// Protection Information Field Write: the low four bits of a [`Prinfo`].
    #[bits(4)]
    pub prinfow: u8,
    /// Force Unit Access.
    pub fua: bool,
    /// Limited Retry.
    pub lr: bool,
}

/// Copy, Source Range Entry of descriptor format 0: same namespace, 16-bit guard.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SourceRange0 {
    /// Reserved (parameters of other command sets).
    pub _reserved0: [u8; 8],
    /// Starting LBA.
    pub slba: U64,
    /// Number of Logical Blocks, zeroes based.
    pub nlb: U16,
    /// Reserved.
    pub _reserved18: [u8; 6],
    /// Expected Logical Block Storage and Reference Tag.
    pub eilbrt: U32,
    /// Expected Logical Block Application Tag.
    pub elbat: U16,
    /// Expected Logical Block Application Tag Mask.
    pub elbatm: U16,
}

layout! { SourceRange0, 32, slba @ 8, nlb @ 16, eilbrt @ 24, elbat @ 28, elbatm @ 30 }

/// I/O Management Receive and I/O Management Send, command dword 10.
///
/// Dword 11 of Receive is the zeroes based number of dwords (NUMD); Send has no length.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct IoManagementCdw10 {
    /// Management Operation: see the `MO_…` constants of [`crate::fdp`].
    pub mo: u8,
    __: u8,
    /// Management Operation Specific: for Reclaim Unit Handle Update the zeroes based number of placement identifiers.
    pub mos: u16,
}

// ---- Scatter Gather Lists ---------------------------------------------------------------------------------------

/// SGL descriptor (Base Specification, "Scatter Gather List"), in the form of all types that are not keyed.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SglDescriptor {
    /// Address, or for the offset subtype an offset; reserved in bit buckets.
    pub addr: U64,
    /// Length in bytes.
    pub length: U32,
    /// Reserved.
    pub _reserved12: [u8; 3],
    /// SGL Identifier: type and subtype.
    pub id: SglIdentifier,
}

layout! { SglDescriptor, 16, addr @ 0, length @ 8, id @ 15 }

/// SGL Identifier: byte 15 of an SGL descriptor.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct SglIdentifier {
    /// SGL Descriptor Sub Type: see the `SGL_SUBTYPE_…` constants.
    #[bits(4)]
    pub subtype: u8,
    /// SGL Descriptor Type: an [`SglType`].
    #[bits(4)]
    pub sgl_type: u8,
}

codes! {
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

/// SGL subtype: the address field is an address.
pub const SGL_SUBTYPE_ADDRESS: u8 = 0x0;
/// SGL subtype: the address field is an offset (into the capsule's data).
pub const SGL_SUBTYPE_OFFSET: u8 = 0x1;
/// SGL subtype A of the transport: for TCP with [`SglType::TransportDataBlock`] command data in H2CData and C2HData.
pub const SGL_SUBTYPE_TRANSPORT_A: u8 = 0xa;
/// SGL subtype of keyed data blocks (RDMA): invalidate the key.
pub const SGL_SUBTYPE_INVALIDATE_KEY: u8 = 0xf;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_field_bytes() {
        let field = StatusField::of(Status::INVALID_FIELD).with_dnr(true);
        assert_eq!(field.as_bytes(), [0x04, 0x80]);
        assert_eq!(field.into_bits().get() >> 1, 0x4002);
        // 0x4002 is what Linux prints, the field without the phase tag: DNR is bit 14 there.
        let field = StatusField::from_bits(U16::new(0x4002 << 1 | 1));
        assert_eq!(field.status(), Status::INVALID_FIELD);
        assert!(field.p());
        assert!(!field.m());
        let path = StatusField::of(Status::HOST_PATHING_ERROR)
            .with_crd(2)
            .with_m(true)
            .with_p(true);
        assert_eq!(path.into_bits().get(), 1 | 0x70 << 1 | 3 << 9 | 2 << 12 | 1 << 14);
    }

    #[test]
    fn get_log_page_of_host_events() {
        let cdw10 = GetLogPageCdw10::new().with_lid(0x23).with_lsp(1).with_numdl(1023);
        assert_eq!(cdw10.into_bits(), 0x03ff_0123);
        assert!(GetLogPageCdw10::from_bits(0x03ff_8123).rae());
        let cdw11 = GetLogPageCdw11::from_bits(0x0001_0002);
        assert_eq!((cdw11.lsi(), cdw11.numdu()), (1, 2));
        assert_eq!(
            GetLogPageCdw14::new().with_ot(true).with_csi(2).into_bits(),
            0x0280_0000
        );
    }

    #[test]
    fn write_with_placement_identifier() {
        let mut entry = SubmissionEntry {
            opcode: IoOpcode::Write.code(),
            ..SubmissionEntry::default()
        };
        entry.cid.set(0x1234);
        entry.nsid.set(1);
        entry.cdw12.set(
            ReadWriteCdw12::new()
                .with_nlb(7)
                .with_dtype(2)
                .with_fua(true)
                .into_bits(),
        );
        entry.cdw13.set(ReadWriteCdw13::new().with_dspec(7).into_bits());
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
        assert_eq!(
            WriteZeroesCdw12::new().with_nlb(255).with_deac(true).into_bits(),
            0x0200_00ff
        );
        assert_eq!(ReadWriteCdw12::new().with_deac(true).into_bits(), 1 << 25);
        assert_eq!(WriteZeroesCdw12::new().with_nsz(true).into_bits(), 1 << 23);
        assert_eq!(ReadWriteCdw12::new().with_prinfo(0b1001).into_bits(), 1 << 29 | 1 << 26);
        assert_eq!(
            CopyCdw12::new().with_nr(3).with_desfmt(2).with_dtype(2).into_bits(),
            0x0020_0203
        );
        assert_eq!(CopyCdw12::new().with_stcw(true).into_bits(), 1 << 24);
    }

    #[test]
    fn queue_creation_and_format() {
        assert_eq!(
            CreateQueueCdw10::new().with_qid(3).with_qsize(1023).into_bits(),
            0x03ff_0003
        );
        let cdw11 = CreateIoCompletionQueueCdw11::new()
            .with_pc(true)
            .with_ien(true)
            .with_iv(3);
        assert_eq!(cdw11.into_bits(), 0x0003_0003);
        assert_eq!(
            FormatNvmCdw10::new()
                .with_ses(1)
                .with_lbafl(2)
                .with_lbafu(1)
                .into_bits(),
            0x1202
        );
        assert_eq!(
            SetFeaturesCdw10::new().with_fid(0x1d).with_sv(true).into_bits(),
            0x8000_001d
        );
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
        assert_eq!(
            DataTransfer::of_opcode(IoOpcode::IoManagementReceive.code()),
            DataTransfer::ControllerToHost
        );
        assert_eq!(
            DataTransfer::of_opcode(IoOpcode::DatasetManagement.code()),
            DataTransfer::HostToController
        );
    }
}
