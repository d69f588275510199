//! Status values, by status code type (Base Specification, "Status Field Definition"). The list has
//! every code and name of the standards, including the NVM Command Set and fabrics specific codes.
//!
//! A [`Status`] has no Phase Tag, Do Not Retry, More and Command Retry Delay bits.
//! [`crate::StatusField`] has them. This module does not decide the status of a command.

/// Status code type and status code, without the retry bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Status(u16);

impl Status {
    /// A status from its Status Code Type (3 bits) and Status Code.
    pub const fn new(sct: u8, sc: u8) -> Status {
        Status(((sct as u16 & 7) << 8) | sc as u16)
    }

    /// Builds a status from bits 10:0, with the Status Code Type in 10:8 and the Status Code in
    /// 7:0.
    pub const fn from_u16(value: u16) -> Status {
        Status(value & 0x7ff)
    }

    /// Bits 10:0, with the Status Code Type in 10:8 and the Status Code in 7:0.
    pub const fn to_u16(self) -> u16 {
        self.0
    }

    /// Status Code Type.
    pub const fn sct(self) -> u8 {
        (self.0 >> 8) as u8
    }

    pub const fn sc(self) -> u8 {
        self.0 as u8
    }

    /// True for Successful Completion.
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} (SCT {:X}h, SC {:02X}h)", self.name(), self.sct(), self.sc())
    }
}

impl core::fmt::Debug for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Status({self})")
    }
}

macro_rules! statuses {
    ($($name:ident = $sct:literal, $sc:literal => $text:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!($text, ".")]
                pub const $name: Status = Status::new($sct, $sc);
            )*

            /// Every named status. A number with different meanings for different commands appears
            /// more than once.
            pub const ALL: &'static [(Status, &'static str)] = &[$((Status::$name, $text),)*];
        }
    };
}

statuses! {
    // Generic Command Status.
    SUCCESS = 0, 0x00 => "Successful Completion";
    INVALID_COMMAND_OPCODE = 0, 0x01 => "Invalid Command Opcode";
    INVALID_FIELD = 0, 0x02 => "Invalid Field in Command";
    COMMAND_ID_CONFLICT = 0, 0x03 => "Command ID Conflict";
    DATA_TRANSFER_ERROR = 0, 0x04 => "Data Transfer Error";
    ABORTED_POWER_LOSS = 0, 0x05 => "Commands Aborted due to Power Loss Notification";
    INTERNAL_ERROR = 0, 0x06 => "Internal Error";
    ABORT_REQUESTED = 0, 0x07 => "Command Abort Requested";
    ABORTED_SQ_DELETION = 0, 0x08 => "Command Aborted due to SQ Deletion";
    ABORTED_FAILED_FUSED = 0, 0x09 => "Command Aborted due to Failed Fused Command";
    ABORTED_MISSING_FUSED = 0, 0x0a => "Command Aborted due to Missing Fused Command";
    INVALID_NAMESPACE_OR_FORMAT = 0, 0x0b => "Invalid Namespace or Format";
    COMMAND_SEQUENCE_ERROR = 0, 0x0c => "Command Sequence Error";
    INVALID_SGL_SEGMENT_DESCRIPTOR = 0, 0x0d => "Invalid SGL Segment Descriptor";
    INVALID_NUMBER_OF_SGL_DESCRIPTORS = 0, 0x0e => "Invalid Number of SGL Descriptors";
    DATA_SGL_LENGTH_INVALID = 0, 0x0f => "Data SGL Length Invalid";
    METADATA_SGL_LENGTH_INVALID = 0, 0x10 => "Metadata SGL Length Invalid";
    SGL_DESCRIPTOR_TYPE_INVALID = 0, 0x11 => "SGL Descriptor Type Invalid";
    INVALID_USE_OF_CMB = 0, 0x12 => "Invalid Use of Controller Memory Buffer";
    PRP_OFFSET_INVALID = 0, 0x13 => "PRP Offset Invalid";
    ATOMIC_WRITE_UNIT_EXCEEDED = 0, 0x14 => "Atomic Write Unit Exceeded";
    OPERATION_DENIED = 0, 0x15 => "Operation Denied";
    SGL_OFFSET_INVALID = 0, 0x16 => "SGL Offset Invalid";
    HOST_IDENTIFIER_INCONSISTENT_FORMAT = 0, 0x18 => "Host Identifier Inconsistent Format";
    KEEP_ALIVE_TIMER_EXPIRED = 0, 0x19 => "Keep Alive Timer Expired";
    KEEP_ALIVE_TIMEOUT_INVALID = 0, 0x1a => "Keep Alive Timeout Invalid";
    ABORTED_PREEMPT_AND_ABORT = 0, 0x1b => "Command Aborted due to Preempt and Abort";
    SANITIZE_FAILED = 0, 0x1c => "Sanitize Failed";
    SANITIZE_IN_PROGRESS = 0, 0x1d => "Sanitize In Progress";
    SGL_DATA_BLOCK_GRANULARITY_INVALID = 0, 0x1e => "SGL Data Block Granularity Invalid";
    COMMAND_NOT_SUPPORTED_FOR_QUEUE_IN_CMB = 0, 0x1f => "Command Not Supported for Queue in CMB";
    NAMESPACE_IS_WRITE_PROTECTED = 0, 0x20 => "Namespace is Write Protected";
    COMMAND_INTERRUPTED = 0, 0x21 => "Command Interrupted";
    TRANSIENT_TRANSPORT_ERROR = 0, 0x22 => "Transient Transport Error";
    PROHIBITED_BY_LOCKDOWN = 0, 0x23 => "Command Prohibited by Command and Feature Lockdown";
    ADMIN_COMMAND_MEDIA_NOT_READY = 0, 0x24 => "Admin Command Media Not Ready";
    INVALID_KEY_TAG = 0, 0x25 => "Invalid Key Tag";
    HOST_DISPERSED_NAMESPACE_SUPPORT_NOT_ENABLED = 0, 0x26 => "Host Dispersed Namespace Support Not Enabled";
    HOST_IDENTIFIER_NOT_INITIALIZED = 0, 0x27 => "Host Identifier Not Initialized";
    INCORRECT_KEY = 0, 0x28 => "Incorrect Key";
    FDP_DISABLED = 0, 0x29 => "FDP Disabled";
    INVALID_PLACEMENT_HANDLE_LIST = 0, 0x2a => "Invalid Placement Handle List";
    LBA_OUT_OF_RANGE = 0, 0x80 => "LBA Out of Range";
    CAPACITY_EXCEEDED = 0, 0x81 => "Capacity Exceeded";
    NAMESPACE_NOT_READY = 0, 0x82 => "Namespace Not Ready";
    RESERVATION_CONFLICT = 0, 0x83 => "Reservation Conflict";
    FORMAT_IN_PROGRESS = 0, 0x84 => "Format In Progress";
    INVALID_VALUE_SIZE = 0, 0x85 => "Invalid Value Size";
    INVALID_KEY_SIZE = 0, 0x86 => "Invalid Key Size";
    KV_KEY_DOES_NOT_EXIST = 0, 0x87 => "KV Key Does Not Exist";
    UNRECOVERED_ERROR = 0, 0x88 => "Unrecovered Error";
    KEY_EXISTS = 0, 0x89 => "Key Exists";

    // Command Specific Status, of the administration commands (Base Specification 2.1, Figure 103).
    COMPLETION_QUEUE_INVALID = 1, 0x00 => "Completion Queue Invalid";
    INVALID_QUEUE_IDENTIFIER = 1, 0x01 => "Invalid Queue Identifier";
    INVALID_QUEUE_SIZE = 1, 0x02 => "Invalid Queue Size";
    ABORT_COMMAND_LIMIT_EXCEEDED = 1, 0x03 => "Abort Command Limit Exceeded";
    ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED = 1, 0x05 => "Asynchronous Event Request Limit Exceeded";
    INVALID_FIRMWARE_SLOT = 1, 0x06 => "Invalid Firmware Slot";
    INVALID_FIRMWARE_IMAGE = 1, 0x07 => "Invalid Firmware Image";
    INVALID_INTERRUPT_VECTOR = 1, 0x08 => "Invalid Interrupt Vector";
    INVALID_LOG_PAGE = 1, 0x09 => "Invalid Log Page";
    INVALID_FORMAT = 1, 0x0a => "Invalid Format";
    FIRMWARE_NEEDS_CONVENTIONAL_RESET = 1, 0x0b => "Firmware Activation Requires Conventional Reset";
    INVALID_QUEUE_DELETION = 1, 0x0c => "Invalid Queue Deletion";
    FEATURE_NOT_SAVEABLE = 1, 0x0d => "Feature Identifier Not Saveable";
    FEATURE_NOT_CHANGEABLE = 1, 0x0e => "Feature Not Changeable";
    FEATURE_NOT_NAMESPACE_SPECIFIC = 1, 0x0f => "Feature Not Namespace Specific";
    FIRMWARE_NEEDS_SUBSYSTEM_RESET = 1, 0x10 => "Firmware Activation Requires NVM Subsystem Reset";
    FIRMWARE_NEEDS_CONTROLLER_RESET = 1, 0x11 => "Firmware Activation Requires Controller Level Reset";
    FIRMWARE_NEEDS_MAXIMUM_TIME = 1, 0x12 => "Firmware Activation Requires Maximum Time Violation";
    FIRMWARE_ACTIVATION_PROHIBITED = 1, 0x13 => "Firmware Activation Prohibited";
    OVERLAPPING_RANGE = 1, 0x14 => "Overlapping Range";
    NAMESPACE_INSUFFICIENT_CAPACITY = 1, 0x15 => "Namespace Insufficient Capacity";
    NAMESPACE_IDENTIFIER_UNAVAILABLE = 1, 0x16 => "Namespace Identifier Unavailable";
    NAMESPACE_ALREADY_ATTACHED = 1, 0x18 => "Namespace Already Attached";
    NAMESPACE_IS_PRIVATE = 1, 0x19 => "Namespace Is Private";
    NAMESPACE_NOT_ATTACHED = 1, 0x1a => "Namespace Not Attached";
    THIN_PROVISIONING_NOT_SUPPORTED = 1, 0x1b => "Thin Provisioning Not Supported";
    CONTROLLER_LIST_INVALID = 1, 0x1c => "Controller List Invalid";
    DEVICE_SELF_TEST_IN_PROGRESS = 1, 0x1d => "Device Self-test In Progress";
    BOOT_PARTITION_WRITE_PROHIBITED = 1, 0x1e => "Boot Partition Write Prohibited";
    INVALID_CONTROLLER_IDENTIFIER = 1, 0x1f => "Invalid Controller Identifier";
    INVALID_SECONDARY_CONTROLLER_STATE = 1, 0x20 => "Invalid Secondary Controller State";
    INVALID_NUMBER_OF_CONTROLLER_RESOURCES = 1, 0x21 => "Invalid Number of Controller Resources";
    INVALID_RESOURCE_IDENTIFIER = 1, 0x22 => "Invalid Resource Identifier";
    SANITIZE_PROHIBITED_PMR_ENABLED = 1, 0x23 => "Sanitize Prohibited While Persistent Memory Region is Enabled";
    ANA_GROUP_IDENTIFIER_INVALID = 1, 0x24 => "ANA Group Identifier Invalid";
    ANA_ATTACH_FAILED = 1, 0x25 => "ANA Attach Failed";
    INSUFFICIENT_CAPACITY = 1, 0x26 => "Insufficient Capacity";
    NAMESPACE_ATTACHMENT_LIMIT_EXCEEDED = 1, 0x27 => "Namespace Attachment Limit Exceeded";
    PROHIBITION_NOT_SUPPORTED = 1, 0x28 => "Prohibition of Command Execution Not Supported";
    IOCS_NOT_SUPPORTED = 1, 0x29 => "I/O Command Set Not Supported";
    IOCS_NOT_ENABLED = 1, 0x2a => "I/O Command Set Not Enabled";
    IOCS_COMBINATION_REJECTED = 1, 0x2b => "I/O Command Set Combination Rejected";
    INVALID_IOCS = 1, 0x2c => "Invalid I/O Command Set";
    IDENTIFIER_UNAVAILABLE = 1, 0x2d => "Identifier Unavailable";
    NAMESPACE_IS_DISPERSED = 1, 0x2e => "Namespace Is Dispersed";
    INVALID_DISCOVERY_INFORMATION = 1, 0x2f => "Invalid Discovery Information";
    ZONING_DATA_STRUCTURE_LOCKED = 1, 0x30 => "Zoning Data Structure Locked";
    ZONING_DATA_STRUCTURE_NOT_FOUND = 1, 0x31 => "Zoning Data Structure Not Found";
    INSUFFICIENT_DISCOVERY_RESOURCES = 1, 0x32 => "Insufficient Discovery Resources";
    REQUESTED_FUNCTION_DISABLED = 1, 0x33 => "Requested Function Disabled";
    ZONEGROUP_ORIGINATOR_INVALID = 1, 0x34 => "ZoneGroup Originator Invalid";
    INVALID_HOST = 1, 0x35 => "Invalid Host";
    INVALID_NVM_SUBSYSTEM = 1, 0x36 => "Invalid NVM Subsystem";
    INVALID_CONTROLLER_DATA_QUEUE = 1, 0x37 => "Invalid Controller Data Queue";
    NOT_ENOUGH_RESOURCES = 1, 0x38 => "Not Enough Resources";
    CONTROLLER_SUSPENDED = 1, 0x39 => "Controller Suspended";
    CONTROLLER_NOT_SUSPENDED = 1, 0x3a => "Controller Not Suspended";
    CONTROLLER_DATA_QUEUE_FULL = 1, 0x3b => "Controller Data Queue Full";

    // Command Specific Status, of the I/O command sets (Base Specification 2.1, Figure 104).
    STREAM_RESOURCE_ALLOCATION_FAILED = 1, 0x7f => "Stream Resource Allocation Failed";
    CONFLICTING_ATTRIBUTES = 1, 0x80 => "Conflicting Attributes";
    INVALID_PROTECTION_INFORMATION = 1, 0x81 => "Invalid Protection Information";
    WRITE_TO_READ_ONLY_RANGE = 1, 0x82 => "Attempted Write to Read Only Range";
    COMMAND_SIZE_LIMIT_EXCEEDED = 1, 0x83 => "Command Size Limit Exceeded";
    INVALID_COMMAND_IDENTIFIER = 1, 0x84 => "Invalid Command ID";
    INCOMPATIBLE_NAMESPACE_OR_FORMAT = 1, 0x85 => "Incompatible Namespace or Format";
    FAST_COPY_NOT_POSSIBLE = 1, 0x86 => "Fast Copy Not Possible";
    OVERLAPPING_IO_RANGE = 1, 0x87 => "Overlapping I/O Range";
    NAMESPACE_NOT_REACHABLE = 1, 0x88 => "Namespace Not Reachable";
    INSUFFICIENT_RESOURCES = 1, 0x89 => "Insufficient Resources";
    INSUFFICIENT_PROGRAM_RESOURCES = 1, 0x8a => "Insufficient Program Resources";
    INVALID_MEMORY_NAMESPACE = 1, 0x8b => "Invalid Memory Namespace";
    INVALID_MEMORY_RANGE_SET = 1, 0x8c => "Invalid Memory Range Set";
    INVALID_MEMORY_RANGE_SET_IDENTIFIER = 1, 0x8d => "Invalid Memory Range Set Identifier";
    INVALID_PROGRAM_DATA = 1, 0x8e => "Invalid Program Data";
    INVALID_PROGRAM_INDEX = 1, 0x8f => "Invalid Program Index";
    INVALID_PROGRAM_TYPE = 1, 0x90 => "Invalid Program Type";
    MAXIMUM_MEMORY_RANGES_EXCEEDED = 1, 0x91 => "Maximum Memory Ranges Exceeded";
    MAXIMUM_MEMORY_RANGE_SETS_EXCEEDED = 1, 0x92 => "Maximum Memory Range Sets Exceeded";
    MAXIMUM_PROGRAMS_ACTIVATED = 1, 0x93 => "Maximum Programs Activated";
    MAXIMUM_PROGRAM_BYTES_EXCEEDED = 1, 0x94 => "Maximum Program Bytes Exceeded";
    MEMORY_RANGE_SET_IN_USE = 1, 0x95 => "Memory Range Set In Use";
    NO_PROGRAM = 1, 0x96 => "No Program";
    OVERLAPPING_MEMORY_RANGES = 1, 0x97 => "Overlapping Memory Ranges";
    PROGRAM_NOT_ACTIVATED = 1, 0x98 => "Program Not Activated";
    PROGRAM_IN_USE = 1, 0x99 => "Program In Use";
    PROGRAM_INDEX_NOT_DOWNLOADABLE = 1, 0x9a => "Program Index Not Downloadable";
    PROGRAM_TOO_BIG = 1, 0x9b => "Program Too Big";
    SUCCESSFUL_MEDIA_VERIFICATION_READ = 1, 0x9c => "Successful Media Verification Read";
    ZONED_INVALID_OPEN_OPERATION = 1, 0xb6 => "Zoned Invalid Open Operation";
    INSUFFICIENT_ZONE_RESOURCES = 1, 0xb7 => "Insufficient Resources (Zone Random Write Area)";
    ZONED_BOUNDARY_ERROR = 1, 0xb8 => "Zoned Boundary Error";
    ZONE_IS_FULL = 1, 0xb9 => "Zone Is Full";
    ZONE_IS_READ_ONLY = 1, 0xba => "Zone Is Read Only";
    ZONE_IS_OFFLINE = 1, 0xbb => "Zone Is Offline";
    ZONE_INVALID_WRITE = 1, 0xbc => "Zone Invalid Write";
    TOO_MANY_ACTIVE_ZONES = 1, 0xbd => "Too Many Active Zones";
    TOO_MANY_OPEN_ZONES = 1, 0xbe => "Too Many Open Zones";
    INVALID_ZONE_STATE_TRANSITION = 1, 0xbf => "Invalid Zone State Transition";

    // Command Specific Status of the fabrics commands, with the same numbers as the I/O command
    // sets.
    CONNECT_INCOMPATIBLE_FORMAT = 1, 0x80 => "Connect Incompatible Format";
    CONNECT_CONTROLLER_BUSY = 1, 0x81 => "Connect Controller Busy";
    CONNECT_INVALID_PARAMETERS = 1, 0x82 => "Connect Invalid Parameters";
    CONNECT_RESTART_DISCOVERY = 1, 0x83 => "Connect Restart Discovery";
    CONNECT_INVALID_HOST = 1, 0x84 => "Connect Invalid Host";
    DISCONNECT_INVALID_QUEUE_TYPE = 1, 0x85 => "Disconnect Invalid Queue Type";
    DISCOVER_RESTART = 1, 0x90 => "Discover Restart";
    AUTHENTICATION_REQUIRED = 1, 0x91 => "Authentication Required";

    // Media and Data Integrity Errors.
    WRITE_FAULT = 2, 0x80 => "Write Fault";
    UNRECOVERED_READ_ERROR = 2, 0x81 => "Unrecovered Read Error";
    END_TO_END_GUARD_CHECK_ERROR = 2, 0x82 => "End-to-end Guard Check Error";
    END_TO_END_APPLICATION_TAG_CHECK_ERROR = 2, 0x83 => "End-to-end Application Tag Check Error";
    END_TO_END_REFERENCE_TAG_CHECK_ERROR = 2, 0x84 => "End-to-end Reference Tag Check Error";
    COMPARE_FAILURE = 2, 0x85 => "Compare Failure";
    ACCESS_DENIED = 2, 0x86 => "Access Denied";
    DEALLOCATED_OR_UNWRITTEN_LOGICAL_BLOCK = 2, 0x87 => "Deallocated or Unwritten Logical Block";
    END_TO_END_STORAGE_TAG_CHECK_ERROR = 2, 0x88 => "End-to-End Storage Tag Check Error";

    // Path Related Status.
    INTERNAL_PATH_ERROR = 3, 0x00 => "Internal Path Error";
    ASYMMETRIC_ACCESS_PERSISTENT_LOSS = 3, 0x01 => "Asymmetric Access Persistent Loss";
    ASYMMETRIC_ACCESS_INACCESSIBLE = 3, 0x02 => "Asymmetric Access Inaccessible";
    ASYMMETRIC_ACCESS_TRANSITION = 3, 0x03 => "Asymmetric Access Transition";
    CONTROLLER_PATHING_ERROR = 3, 0x60 => "Controller Pathing Error";
    HOST_PATHING_ERROR = 3, 0x70 => "Host Pathing Error";
    COMMAND_ABORTED_BY_HOST = 3, 0x71 => "Command Aborted By Host";
}

impl Status {
    /// Name in the standard, or "Vendor Specific" or "Reserved". For numbers shared between command
    /// sets, the name is that of the I/O command set. See also [`Status::name_for_fabrics`].
    pub fn name(self) -> &'static str {
        match Status::ALL.iter().find(|(status, _)| *status == self) {
            Some((_, text)) => text,
            None if self.sct() == 7 || self.sc() >= 0xc0 => "Vendor Specific",
            None => "Reserved",
        }
    }

    /// Name in the standard for the status of a fabrics command.
    pub fn name_for_fabrics(self) -> &'static str {
        match Status::ALL.iter().rev().find(|(status, _)| *status == self) {
            Some((_, text)) => text,
            None => self.name(),
        }
    }
}
