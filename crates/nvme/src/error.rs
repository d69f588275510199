//! Failure of a command, with a status for the host and a cause for the log.

use std::borrow::Cow;

use nvme_spec::Status;

/// Reason why a command is not carried out.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Status that the host gets.
    pub status: Status,
    /// The same command would fail again (DNR). Set for host mistakes, clear for temporary states
    /// such as a running format.
    pub do_not_retry: bool,
    /// Cause of the failure, a sentence for the log.
    pub cause: Cow<'static, str>,
    /// Faulty field of the submission queue entry, for the Error Information log.
    pub parameter: Option<Parameter>,
    /// First logical block concerned.
    pub lba: Option<u64>,
    /// Command Specific Information of the Error Information log. The status defines its meaning.
    pub specific: u64,
}

/// Place of a wrong field in the submission queue entry. See "Parameter Error Location" of the
/// Error Information log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Byte of the entry, 0 to 63.
    pub byte: u8,
    /// Bit in the byte, 0 to 7.
    pub bit: u8,
}

impl Parameter {
    /// A bit of command dword `dword`.
    pub const fn dword(dword: u8, bit: u8) -> Parameter {
        assert!(dword < 16 && bit < 32, "an entry has 16 dwords");
        Parameter { byte: dword * 4 + bit / 8, bit: bit % 8 }
    }

    /// The namespace identifier.
    pub const NSID: Parameter = Parameter::dword(1, 0);
    /// The opcode.
    pub const OPCODE: Parameter = Parameter::dword(0, 0);
    /// The data pointer.
    pub const DATA_POINTER: Parameter = Parameter::dword(6, 0);
}

impl Failure {
    /// A failure that the host caused. The same command will fail again.
    pub fn new(status: Status, cause: impl Into<Cow<'static, str>>) -> Failure {
        assert!(!status.is_success(), "a failure has an error status");
        Failure { status, do_not_retry: true, cause: cause.into(), parameter: None, lba: None, specific: 0 }
    }

    /// A field with an impossible value ("Invalid Field in Command").
    pub fn invalid_field(parameter: Parameter, cause: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(Status::INVALID_FIELD, cause).at(parameter)
    }

    pub(crate) fn unknown_opcode(opcode: u8, queue: &str) -> Failure {
        let cause = format!("opcode {opcode:#04x} is not an {queue} command of this controller");
        Failure::new(Status::INVALID_COMMAND_OPCODE, cause).at(Parameter::OPCODE)
    }

    /// Adds the field that caused the failure.
    pub fn at(mut self, parameter: Parameter) -> Failure {
        self.parameter = Some(parameter);
        self
    }

    /// Adds the logical block that caused the failure.
    pub fn lba(mut self, lba: u64) -> Failure {
        self.lba = Some(lba);
        self
    }

    /// Adds the Command Specific Information for the error log.
    pub fn specific(mut self, specific: u64) -> Failure {
        self.specific = specific;
        self
    }

    /// Clears DNR, because the command may succeed later.
    pub fn retryable(mut self) -> Failure {
        self.do_not_retry = false;
        self
    }
}
