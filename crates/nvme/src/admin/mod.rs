//! Admin commands, with their transfers, their checks and the dispatch to the file of each command.
//!
//! ```text
//! accept  -> parse (typed, 0-based fields end here), transfer
//! execute -> allowed? -> one file per command
//! ```
//!
//! A `Command` holds values that are valid on their own. The executing file checks the dependencies
//! on namespaces, controllers or state.
//!
//! Queue creation, queue deletion and Doorbell Buffer Config exist only on PCI Express (`pcie`),
//! and the transport handles Fabrics commands. Commands that this controller does not support get
//! Invalid Command Opcode. Examples are firmware updates, security protocols, NVMe-MI,
//! virtualization and migration.

mod abort;
mod async_event;
pub mod features;
mod format;
pub mod identify;
pub mod log_page;
mod namespace_management;
mod sanitize;
mod self_test;

use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, IDENTIFY_SIZE};

use crate::completion::Execution;
use crate::controller::{ControllerKind, Transport};
use crate::error::Failure;
use crate::fdp;
use crate::subsystem::Subsystem;
use crate::transfer::Transfer;

/// An admin command with decoded fields.
#[derive(Debug)]
pub(crate) enum Command {
    GetLogPage(log_page::Request),
    Identify(identify::Request),
    Abort(abort::Request),
    SetFeatures(features::Setting),
    GetFeatures(features::Question),
    /// Has only the command identifier until an event occurs.
    AsynchronousEventRequest(u16),
    NamespaceManagement(namespace_management::Operation),
    NamespaceAttachment(namespace_management::Attachment),
    SelfTest(self_test::Request),
    KeepAlive,
    DirectiveSend(fdp::DirectiveSend),
    DirectiveReceive(fdp::DirectiveReceive),
    Format(format::Settings),
    Sanitize(sanitize::Request),
}

/// True for commands of a discovery controller (NVMe 2.1, "Discovery Controller - Admin Command
/// Support").
fn is_of_discovery(opcode: AdminOpcode) -> bool {
    matches!(
        opcode,
        AdminOpcode::GetLogPage
            | AdminOpcode::Identify
            | AdminOpcode::Abort
            | AdminOpcode::SetFeatures
            | AdminOpcode::GetFeatures
            | AdminOpcode::AsynchronousEventRequest
            | AdminOpcode::KeepAlive
    )
}

impl Command {
    /// Data that the command moves. It depends only on the fields of the command.
    pub(crate) fn transfer(&self) -> Transfer {
        match self {
            Command::GetLogPage(request) => request.transfer(),
            Command::SetFeatures(setting) => setting.transfer(),
            Command::GetFeatures(question) => question.transfer(),
            Command::Identify(_) => Transfer::to_host(IDENTIFY_SIZE as u64),
            Command::NamespaceManagement(operation) => operation.transfer(),
            Command::NamespaceAttachment(_) => Transfer::to_controller(IDENTIFY_SIZE as u64),
            Command::DirectiveReceive(receive) => receive.transfer(),
            Command::Abort(_)
            | Command::AsynchronousEventRequest(_)
            | Command::SelfTest(_)
            | Command::KeepAlive
            | Command::DirectiveSend(_)
            | Command::Format(_)
            | Command::Sanitize(_) => Transfer::NONE,
        }
    }

    /// True if the command may run during a sanitize operation or after a failed one (NVMe 2.1,
    /// "Sanitize Operations - Admin Commands Allowed"). Sanitize makes its own checks.
    fn is_allowed_during_sanitize(&self) -> bool {
        match self {
            Command::GetLogPage(request) => sanitize::is_log_allowed(request.log),
            Command::Identify(_)
            | Command::Abort(_)
            | Command::SetFeatures(_)
            | Command::GetFeatures(_)
            | Command::AsynchronousEventRequest(_)
            | Command::KeepAlive
            | Command::Sanitize(_) => true,
            Command::NamespaceManagement(_)
            | Command::NamespaceAttachment(_)
            | Command::SelfTest(_)
            | Command::DirectiveSend(_)
            | Command::DirectiveReceive(_)
            | Command::Format(_) => false,
        }
    }
}

impl Subsystem {
    /// Parses a submission queue entry, if the controller supports the command.
    pub(crate) fn parse_admin(&self, id: u16, entry: &SubmissionEntry) -> Result<Command, Failure> {
        let unknown = || Failure::unknown_opcode(entry.opcode, "admin");
        let controller = self.controller(id);
        let opcode = AdminOpcode::from_u8(entry.opcode).ok_or_else(unknown)?;
        // Keep Alive exists only on connections (Identify Controller, KAS is 0 on PCI Express).
        let known = match (controller.kind, controller.transport) {
            (ControllerKind::Discovery, _) => is_of_discovery(opcode),
            (ControllerKind::Io, Transport::Pcie) => opcode != AdminOpcode::KeepAlive,
            (ControllerKind::Io, Transport::Fabrics) => true,
        };
        if !known {
            return Err(unknown());
        }
        Ok(match opcode {
            AdminOpcode::GetLogPage => Command::GetLogPage(self.parse_log_page(id, entry)?),
            AdminOpcode::Identify => Command::Identify(identify::parse(entry)?),
            AdminOpcode::Abort => Command::Abort(abort::parse(entry)),
            AdminOpcode::SetFeatures => Command::SetFeatures(self.parse_set_features(id, entry)?),
            AdminOpcode::GetFeatures => Command::GetFeatures(self.parse_get_features(id, entry)?),
            AdminOpcode::AsynchronousEventRequest => Command::AsynchronousEventRequest(entry.cid.get()),
            AdminOpcode::NamespaceManagement => Command::NamespaceManagement(namespace_management::parse(entry)?),
            AdminOpcode::NamespaceAttachment => {
                Command::NamespaceAttachment(namespace_management::parse_attachment(entry)?)
            }
            AdminOpcode::DeviceSelfTest => Command::SelfTest(self_test::parse(entry)?),
            AdminOpcode::KeepAlive => Command::KeepAlive,
            AdminOpcode::DirectiveSend => Command::DirectiveSend(fdp::parse_send(entry)?),
            AdminOpcode::DirectiveReceive => Command::DirectiveReceive(fdp::parse_receive(entry)?),
            AdminOpcode::FormatNvm => Command::Format(format::parse(entry)?),
            AdminOpcode::Sanitize => Command::Sanitize(sanitize::parse(entry)?),
            _ => return Err(unknown()),
        })
    }

    /// Carries out an admin command.
    pub(crate) fn execute_admin(
        &mut self,
        id: u16,
        command: &Command,
        data: &mut Vec<u8>,
    ) -> Result<Execution, Failure> {
        self.continue_self_test();
        if !command.is_allowed_during_sanitize() {
            self.check_no_sanitize()?;
        }
        match command {
            Command::AsynchronousEventRequest(cid) => self.asynchronous_event_request(id, *cid),
            Command::Identify(request) => self.identify(id, request, data),
            Command::GetLogPage(request) => self.get_log_page(id, request, data),
            Command::GetFeatures(question) => self.get_features(id, question, data),
            Command::DirectiveReceive(receive) => self.directive_receive(id, receive, data),
            Command::SetFeatures(setting) => self.set_features(id, setting, data),
            Command::NamespaceManagement(operation) => self.manage_namespace(id, operation, data),
            Command::NamespaceAttachment(attachment) => self.attach_namespace(attachment, data),
            Command::Abort(request) => self.abort(id, request),
            Command::KeepAlive => self.keep_alive(id),
            Command::SelfTest(request) => self.self_test(id, request),
            Command::DirectiveSend(send) => self.directive_send(id, send),
            Command::Format(settings) => self.format(id, settings),
            Command::Sanitize(request) => self.start_sanitize(request),
        }
    }
}
