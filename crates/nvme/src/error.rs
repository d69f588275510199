//! Status for the host, cause for the log: what a command that fails carries.

use std::borrow::Cow;

use nvme_spec::Status;

/// A command that is not carried out.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What the host is told.
    pub status: Status,
    /// Whether the same command would fail again (DNR). Host mistakes do; "busy with format" does not.
    pub do_not_retry: bool,
    /// What went wrong, in a sentence for the log.
    pub cause: Cow<'static, str>,
    /// Where in the submission queue entry, for the Error Information log.
    pub parameter: Option<Parameter>,
    /// First logical block concerned.
    pub lba: Option<u64>,
    /// Command Specific Information of the Error Information log; the status says what it means.
    pub specific: u64,
}

/// Place of a wrong field in the submission queue entry (Error Information Log, "Parameter Error Location").
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
        Parameter {
            byte: dword * 4 + bit / 8,
            bit: bit % 8,
        }
    }

    /// The namespace identifier.
    pub const NSID: Parameter = Parameter::dword(1, 0);
    /// The opcode.
    pub const OPCODE: Parameter = Parameter::dword(0, 0);
    /// The data pointer.
    pub const DATA_POINTER: Parameter = Parameter::dword(6, 0);
}

impl Failure {
    /// The host's mistake: the same command will fail again.
    pub fn new(status: Status, cause: impl Into<Cow<'static, str>>) -> Failure {
        assert!(!status.is_success(), "a failure has a status that says so");
        Failure {
            status,
            do_not_retry: true,
            cause: cause.into(),
            parameter: None,
            lba: None,
            specific: 0,
        }
    }

    /// A field that says something impossible ("Invalid Field in Command").
    pub fn invalid_field(parameter: Parameter, cause: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(Status::INVALID_FIELD, cause).at(parameter)
    }

    /// A command that the controller does not have.
    pub(crate) fn unknown_opcode(opcode: u8, queue: &str) -> Failure {
        let cause = format!("opcode {opcode:#04x} is not an {queue} command of this controller");
        Failure::new(Status::INVALID_COMMAND_OPCODE, cause).at(Parameter::OPCODE)
    }

    /// The same, pointing at a field.
    pub fn at(mut self, parameter: Parameter) -> Failure {
        self.parameter = Some(parameter);
        self
    }

    /// The same, pointing at a logical block.
    pub fn lba(mut self, lba: u64) -> Failure {
        self.lba = Some(lba);
        self
    }

    /// The same, with Command Specific Information for the error log.
    pub fn specific(mut self, specific: u64) -> Failure {
        self.specific = specific;
        self
    }

    /// The same, but it may work later.
    pub fn retryable(mut self) -> Failure {
        self.do_not_retry = false;
        self
    }
}
