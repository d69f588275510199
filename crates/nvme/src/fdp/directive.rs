//! The Data Placement directive of writes, and the commands Directive Send and Directive Receive.
//!
//! The drive has two directives. Identify exists on every controller with directives. Data
//! Placement exists exactly while Flexible Data Placement is enabled in the endurance group. A host
//! can read its state here but not change it. The feature 1Dh enables Data Placement, and writes
//! select placements in their own fields. Data Placement has no operations.

use nvme_spec::command::{DirectiveCdw11, EnableDirectiveCdw12, SubmissionEntry};
use nvme_spec::directive::{
    DirectiveType, DirectiveTypes, IDENTIFY_ENABLE_DIRECTIVE, IDENTIFY_RETURN_PARAMETERS, IdentifyDirectiveParameters,
};
use nvme_spec::{NSID_ALL, Status};
use zerocopy::IntoBytes;

use crate::completion::{CommandResult, Execution};
use crate::error::{Failure, Parameter};
use crate::subsystem::Subsystem;
use crate::transfer::{Transfer, check_transfer_bytes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteDirective {
    None,
    /// Data placement directive with a placement identifier.
    Placement(u16),
}

impl WriteDirective {
    pub(crate) fn parse(kind: u8, specific: u16) -> Result<WriteDirective, Failure> {
        const NO_DIRECTIVE: u8 = 0;
        const DATA_PLACEMENT: u8 = DirectiveType::DataPlacement.code();
        match kind {
            NO_DIRECTIVE => Ok(WriteDirective::None),
            DATA_PLACEMENT => Ok(WriteDirective::Placement(specific)),
            _ => {
                let cause = format!("directive type {kind} is not supported. The only one is data placement (2)");
                Err(Failure::invalid_field(Parameter::dword(12, 20), cause))
            }
        }
    }
}

/// Directive Send, which enables or disables a directive. The Identify directive has no other
/// operation for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectiveSend {
    nsid: u32,
    enable: bool,
    directive: u8,
}

/// Directive Receive, which returns the parameters of the Identify directive, cut to the host's
/// buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectiveReceive {
    nsid: u32,
    bytes: u64,
}

/// Refuses all operations but the expected one of the Identify directive.
fn check_operation(entry: &SubmissionEntry, expected: u8) -> Result<(), Failure> {
    let dword = DirectiveCdw11::from_bits(entry.cdw11.get());
    let kind = DirectiveType::from_u8(dword.dtype());
    if !matches!(kind, Some(DirectiveType::Identify | DirectiveType::DataPlacement)) {
        let cause = format!("directive type {} is not supported", dword.dtype());
        return Err(Failure::invalid_field(Parameter::dword(11, 8), cause));
    }
    if kind != Some(DirectiveType::Identify) || dword.doper() != expected {
        let cause = format!("directive type {} has no operation {:#x}", dword.dtype(), dword.doper());
        return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
    }
    Ok(())
}

pub(crate) fn parse_send(entry: &SubmissionEntry) -> Result<DirectiveSend, Failure> {
    check_operation(entry, IDENTIFY_ENABLE_DIRECTIVE)?;
    let dword = EnableDirectiveCdw12::from_bits(entry.cdw12.get());
    Ok(DirectiveSend { nsid: entry.nsid.get(), enable: dword.endir(), directive: dword.tdtype() })
}

pub(crate) fn parse_receive(entry: &SubmissionEntry) -> Result<DirectiveReceive, Failure> {
    check_operation(entry, IDENTIFY_RETURN_PARAMETERS)?;
    let bytes = check_transfer_bytes((u64::from(entry.cdw10.get()) + 1) * 4, Parameter::dword(10, 0))?;
    Ok(DirectiveReceive { nsid: entry.nsid.get(), bytes })
}

impl DirectiveReceive {
    pub(crate) fn transfer(&self) -> Transfer {
        Transfer::to_host(self.bytes.min(size_of::<IdentifyDirectiveParameters>() as u64))
    }
}

impl Subsystem {
    /// Refuses inactive namespaces. NSID FFFFFFFFh stands for all namespaces.
    fn check_directive_namespace(&self, id: u16, nsid: u32) -> Result<(), Failure> {
        match nsid {
            NSID_ALL => Ok(()),
            _ => self.state.namespaces.active(id, nsid).map(|_| ()),
        }
    }

    pub(crate) fn directive_send(&mut self, id: u16, send: &DirectiveSend) -> CommandResult {
        self.check_directive_namespace(id, send.nsid)?;
        let cause = match DirectiveType::from_u8(send.directive) {
            Some(DirectiveType::Identify) if send.enable => return Ok(Execution::DONE),
            Some(DirectiveType::Identify) => {
                "the Identify directive is always enabled and cannot be changed".to_string()
            }
            Some(DirectiveType::DataPlacement) => {
                "feature 1Dh enables and disables data placement for the whole endurance group".to_string()
            }
            _ => format!("directive type {} is not supported", send.directive),
        };
        Err(Failure::new(Status::INVALID_FIELD, cause).at(Parameter::dword(12, 8)))
    }

    pub(crate) fn directive_receive(
        &mut self,
        id: u16,
        receive: &DirectiveReceive,
        data: &mut Vec<u8>,
    ) -> CommandResult {
        self.check_directive_namespace(id, receive.nsid)?;
        let placement = self.state.fdp.enabled;
        let mut parameters = IdentifyDirectiveParameters::default();
        parameters.supported.types = DirectiveTypes::new().with_id(true).with_dpd(placement);
        parameters.enabled.types = parameters.supported.types;
        // The endurance group owns the setting of Data Placement, so a controller reset does not
        // end it.
        parameters.persistent.types = DirectiveTypes::new().with_dpd(placement);
        data.clear();
        data.extend_from_slice(parameters.as_bytes());
        data.truncate(receive.bytes as usize);
        assert_eq!(data.len(), receive.transfer().bytes, "the answer fits the host's buffer");
        Ok(Execution::DONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(dwords: u32, kind: u8, operation: u8) -> SubmissionEntry {
        SubmissionEntry {
            cdw10: (dwords - 1).into(),
            cdw11: DirectiveCdw11::new().with_dtype(kind).with_doper(operation).into_bits().into(),
            ..SubmissionEntry::default()
        }
    }

    #[test]
    fn the_host_gets_no_more_than_there_is() {
        let bytes = |dwords| parse_receive(&entry(dwords, 0, 1)).map(|receive| receive.transfer().bytes);
        assert_eq!(bytes(1).unwrap(), 4);
        assert_eq!(bytes(1024).unwrap(), 4096);
        assert_eq!(bytes(2048).unwrap(), 4096);
        assert_eq!(bytes(1 << 20).unwrap_err().status, Status::INVALID_FIELD);
    }

    #[test]
    fn only_the_identify_directive_has_operations() {
        for (kind, operation, bit) in [(1, 1, 1), (2, 1, 0), (0, 2, 0), (9, 0, 1)] {
            let failure = parse_send(&entry(1, kind, operation)).unwrap_err();
            assert_eq!(failure.status, Status::INVALID_FIELD);
            assert_eq!(failure.parameter.unwrap().byte, 44 + bit, "type {kind}, operation {operation}");
        }
    }
}
