//! Admin commands: what each one moves, whether it may run now, and which file carries it out.
//!
//! ```text
//! transfer, execute -> parse (typed, 0-based fields end here) -> allowed? -> one file per command
//! ```
//!
//! A parsed `Command` holds values that make sense by themselves; what depends on namespaces, controllers or state is
//! checked by the file that executes it. Not here: creation and deletion of queues and Doorbell Buffer Config, which exist
//! on PCI Express only (`pcie`), and Fabrics commands, which belong to the transport. They are answered with Invalid
//! Command Opcode, and so is everything that this controller does not have: firmware updates, security protocols, NVMe-MI,
//! virtualization, migration.

pub mod abort;
pub mod async_event;
pub mod directive;
pub mod endurance_group;
pub mod error_log;
pub mod features;
pub mod format;
pub mod identify;
pub mod log_page;
pub mod namespace_management;
pub mod sanitize;
pub mod self_test;

use nvme_spec::AdminOpcode;
use nvme_spec::command::{GetLogPageCdw10, SubmissionEntry};

use crate::controller::{ControllerKind, Transport};
use crate::error::Failure;
use crate::subsystem::{Subsystem, Success, Transfer};

/// An admin command with its fields in plain form; those of features, log pages and events are read by their files.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Command {
    GetLogPage,
    Identify(identify::Request),
    Abort,
    SetFeatures,
    GetFeatures,
    AsynchronousEventRequest,
    NamespaceManagement(namespace_management::Operation),
    NamespaceAttachment(namespace_management::Attachment),
    SelfTest(self_test::Request),
    KeepAlive,
    DirectiveSend(directive::Send),
    DirectiveReceive(directive::Receive),
    Format(format::Settings),
    Sanitize(sanitize::Request),
}

/// Makes a command of an entry.
fn parse(entry: &SubmissionEntry) -> Result<Command, Failure> {
    Ok(match Subsystem::admin_opcode(entry)? {
        AdminOpcode::GetLogPage => Command::GetLogPage,
        AdminOpcode::Identify => Command::Identify(identify::parse(entry)?),
        AdminOpcode::Abort => Command::Abort,
        AdminOpcode::SetFeatures => Command::SetFeatures,
        AdminOpcode::GetFeatures => Command::GetFeatures,
        AdminOpcode::AsynchronousEventRequest => Command::AsynchronousEventRequest,
        AdminOpcode::NamespaceManagement => Command::NamespaceManagement(namespace_management::parse(entry)?),
        AdminOpcode::NamespaceAttachment => {
            Command::NamespaceAttachment(namespace_management::parse_attachment(entry)?)
        }
        AdminOpcode::DeviceSelfTest => Command::SelfTest(self_test::parse(entry)?),
        AdminOpcode::KeepAlive => Command::KeepAlive,
        AdminOpcode::DirectiveSend => Command::DirectiveSend(directive::parse_send(entry)?),
        AdminOpcode::DirectiveReceive => Command::DirectiveReceive(directive::parse_receive(entry)?),
        AdminOpcode::FormatNvm => Command::Format(format::parse(entry)?),
        AdminOpcode::Sanitize => Command::Sanitize(sanitize::parse(entry)?),
        _ => return Err(Subsystem::unknown_opcode(entry, "admin")),
    })
}

/// Whether a discovery controller has a command (NVMe 2.1, "Discovery Controller - Admin Command Support").
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
    /// Whether it may run while a sanitize operation does, or after one that failed (NVMe 2.1, "Sanitize Operations -
    /// Admin Commands Allowed"). Sanitize itself decides by what it is to do.
    fn is_allowed_during_sanitize(&self, entry: &SubmissionEntry) -> bool {
        match self {
            Command::GetLogPage => sanitize::is_log_allowed(GetLogPageCdw10::from_bits(entry.cdw10.get()).lid()),
            Command::Identify(_)
            | Command::Abort
            | Command::SetFeatures
            | Command::GetFeatures
            | Command::AsynchronousEventRequest
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
    /// The command, if the controller has it.
    fn parse_admin(&self, id: u16, entry: &SubmissionEntry) -> Result<Command, Failure> {
        let controller = self.controller(id);
        let opcode = Subsystem::admin_opcode(entry)?;
        // Without connection there is no Keep Alive (Identify Controller, KAS is 0).
        let known = match (controller.kind, controller.transport) {
            (ControllerKind::Discovery, _) => is_of_discovery(opcode),
            (ControllerKind::Io, Transport::Pcie) => opcode != AdminOpcode::KeepAlive,
            (ControllerKind::Io, Transport::Fabrics) => true,
        };
        match known {
            true => parse(entry),
            false => Err(Subsystem::unknown_opcode(entry, "admin")),
        }
    }

    pub(crate) fn admin_transfer(&self, id: u16, entry: &SubmissionEntry) -> Result<Transfer, Failure> {
        Ok(match self.parse_admin(id, entry)? {
            Command::GetLogPage => self.get_log_page_transfer(id, entry)?,
            Command::SetFeatures => self.set_features_transfer(id, entry)?,
            Command::GetFeatures => self.get_features_transfer(id, entry)?,
            Command::Identify(_) => Transfer::to_host(nvme_spec::IDENTIFY_SIZE as u64),
            Command::NamespaceManagement(operation) => operation.transfer(),
            Command::NamespaceAttachment(_) => Transfer::to_controller(nvme_spec::IDENTIFY_SIZE as u64),
            Command::DirectiveReceive(receive) => receive.transfer(),
            Command::Abort
            | Command::AsynchronousEventRequest
            | Command::SelfTest(_)
            | Command::KeepAlive
            | Command::DirectiveSend(_)
            | Command::Format(_)
            | Command::Sanitize(_) => Transfer::NONE,
        })
    }

    /// Carries out an admin command. `None`: an Asynchronous Event Request, completed later.
    pub(crate) fn execute_admin(
        &mut self,
        id: u16,
        entry: &SubmissionEntry,
        data: &mut Vec<u8>,
    ) -> Result<Option<Success>, Failure> {
        let command = self.parse_admin(id, entry)?;
        if !command.is_allowed_during_sanitize(entry) {
            self.check_no_sanitize()?;
        }
        let done = match command {
            Command::Identify(request) => return self.identify(id, &request, data).map(Some),
            Command::GetLogPage => return self.get_log_page(id, entry, data).map(Some),
            Command::GetFeatures => return self.get_features(id, entry, data).map(Some),
            Command::DirectiveReceive(receive) => return self.directive_receive(id, &receive, data).map(Some),
            Command::AsynchronousEventRequest => return self.asynchronous_event_request(id, entry),
            Command::SetFeatures => self.set_features(id, entry, data),
            Command::NamespaceManagement(operation) => self.manage_namespace(id, &operation, data),
            Command::NamespaceAttachment(attachment) => self.attach_namespace(&attachment, data),
            Command::Abort => self.abort(id, entry),
            Command::KeepAlive => self.keep_alive(id),
            Command::SelfTest(request) => self.self_test(id, &request),
            Command::DirectiveSend(send) => self.directive_send(id, &send),
            Command::Format(settings) => self.format(id, &settings),
            Command::Sanitize(request) => self.start_sanitize(&request),
        }?;
        Ok(Some(done))
    }

    /// Stores the non-volatile state; called before a command completes that changed it.
    ///
    /// # Errors
    /// The storage does not take it: Internal Error, and the command may be tried again.
    pub(crate) fn store_state(&mut self) -> Result<(), Failure> {
        self.keep_state().map_err(|error| {
            let cause = format!("the drive's state could not be stored: {error}");
            Failure::new(nvme_spec::Status::INTERNAL_ERROR, cause).retryable()
        })
    }
}
