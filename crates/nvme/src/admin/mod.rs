//! Admin commands, with their transfers, their checks and the dispatch to the file of each command.
//!
//! ```text
//! accept  -> parse (typed, 0-based fields end here), transfer
//! execute -> allowed? -> one file per command
//! ```
//!
//! An `AdminCommand` holds values that are valid on their own. The executing file checks the
//! dependencies on namespaces, controllers or state.
//!
//! Queue creation, queue deletion and Doorbell Buffer Config exist only on PCI Express (`pcie`),
//! and the transport handles Fabrics commands. Commands that this controller does not support get
//! Invalid Command Opcode. Examples are firmware updates, security protocols, NVMe-MI,
//! virtualization and migration.

pub mod features;
mod format;
pub mod identify;
pub mod log_page;
mod namespace_management;
mod sanitize;
mod self_test;

use nvme_spec::command::{AbortCdw10, AbortDw0, SubmissionEntry};
use nvme_spec::feature::EnduranceGroupEventConfiguration;
use nvme_spec::{ADMIN_QUEUE_ID, AdminOpcode, FeatureId, IDENTIFY_SIZE};

use crate::completion::{CommandResult, Execution};
use crate::controller::{ControllerKind, HostTransport};
use crate::error::Failure;
use crate::fdp;
use crate::subsystem::Subsystem;
use crate::transfer::Transfer;

#[derive(Debug)]
pub(crate) enum AdminCommand {
    GetLogPage(log_page::LogPageRequest),
    Identify(identify::IdentifyRequest),
    Abort(AbortCdw10),
    SetFeatures(features::SetFeatureRequest),
    GetFeatures(features::GetFeatureRequest),
    /// Has only the command identifier until an event occurs.
    AsynchronousEventRequest(u16),
    NamespaceManagement(namespace_management::NamespaceOperation),
    NamespaceAttachment(namespace_management::Attachment),
    SelfTest(self_test::SelfTestRequest),
    KeepAlive,
    DirectiveSend(fdp::DirectiveSend),
    DirectiveReceive(fdp::DirectiveReceive),
    Format(format::FormatRequest),
    Sanitize(sanitize::SanitizeRequest),
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

impl AdminCommand {
    /// Data that the command moves. It depends only on the fields of the command.
    pub(crate) fn transfer(&self) -> Transfer {
        match self {
            AdminCommand::GetLogPage(request) => request.transfer(),
            AdminCommand::SetFeatures(setting) => setting.transfer(),
            AdminCommand::GetFeatures(question) => question.transfer(),
            AdminCommand::Identify(_) => Transfer::to_host(IDENTIFY_SIZE as u64),
            AdminCommand::NamespaceManagement(operation) => operation.transfer(),
            AdminCommand::NamespaceAttachment(_) => Transfer::to_controller(IDENTIFY_SIZE as u64),
            AdminCommand::DirectiveReceive(receive) => receive.transfer(),
            AdminCommand::Abort(_)
            | AdminCommand::AsynchronousEventRequest(_)
            | AdminCommand::SelfTest(_)
            | AdminCommand::KeepAlive
            | AdminCommand::DirectiveSend(_)
            | AdminCommand::Format(_)
            | AdminCommand::Sanitize(_) => Transfer::NONE,
        }
    }

    /// True if the command may run during a sanitize operation or after a failed one (NVMe 2.1,
    /// "Sanitize Operations - Admin Commands Allowed"). Sanitize makes its own checks.
    fn is_allowed_during_sanitize(&self) -> bool {
        match self {
            AdminCommand::GetLogPage(request) => sanitize::is_log_allowed(request.log),
            AdminCommand::Identify(_)
            | AdminCommand::Abort(_)
            | AdminCommand::SetFeatures(_)
            | AdminCommand::GetFeatures(_)
            | AdminCommand::AsynchronousEventRequest(_)
            | AdminCommand::KeepAlive
            | AdminCommand::Sanitize(_) => true,
            AdminCommand::NamespaceManagement(_)
            | AdminCommand::NamespaceAttachment(_)
            | AdminCommand::SelfTest(_)
            | AdminCommand::DirectiveSend(_)
            | AdminCommand::DirectiveReceive(_)
            | AdminCommand::Format(_) => false,
        }
    }
}

impl Subsystem {
    pub(crate) fn parse_admin(&self, id: u16, entry: &SubmissionEntry) -> Result<AdminCommand, Failure> {
        let unknown = || Failure::unknown_opcode(entry.opcode, "admin");
        let controller = self.controller(id);
        let opcode = AdminOpcode::from_u8(entry.opcode).ok_or_else(unknown)?;
        // Keep Alive exists only on connections (Identify Controller, KAS is 0 on PCI Express).
        let known = match (controller.kind, controller.transport) {
            (ControllerKind::Discovery, _) => is_of_discovery(opcode),
            (ControllerKind::Io, HostTransport::Pcie) => opcode != AdminOpcode::KeepAlive,
            (ControllerKind::Io, HostTransport::Fabrics) => true,
        };
        if !known {
            return Err(unknown());
        }
        Ok(match opcode {
            AdminOpcode::GetLogPage => AdminCommand::GetLogPage(self.parse_log_page(id, entry)?),
            AdminOpcode::Identify => AdminCommand::Identify(identify::parse(entry)?),
            AdminOpcode::Abort => AdminCommand::Abort(AbortCdw10::from_bits(entry.cdw10.get())),
            AdminOpcode::SetFeatures => AdminCommand::SetFeatures(self.parse_set_features(id, entry)?),
            AdminOpcode::GetFeatures => AdminCommand::GetFeatures(self.parse_get_features(id, entry)?),
            AdminOpcode::AsynchronousEventRequest => AdminCommand::AsynchronousEventRequest(entry.cid.get()),
            AdminOpcode::NamespaceManagement => AdminCommand::NamespaceManagement(namespace_management::parse(entry)?),
            AdminOpcode::NamespaceAttachment => {
                AdminCommand::NamespaceAttachment(namespace_management::parse_attachment(entry)?)
            }
            AdminOpcode::DeviceSelfTest => AdminCommand::SelfTest(self_test::parse(entry)?),
            AdminOpcode::KeepAlive => AdminCommand::KeepAlive,
            AdminOpcode::DirectiveSend => AdminCommand::DirectiveSend(fdp::parse_send(entry)?),
            AdminOpcode::DirectiveReceive => AdminCommand::DirectiveReceive(fdp::parse_receive(entry)?),
            AdminOpcode::FormatNvm => AdminCommand::Format(format::parse(entry)?),
            AdminOpcode::Sanitize => AdminCommand::Sanitize(sanitize::parse(entry)?),
            _ => return Err(unknown()),
        })
    }

    pub(crate) fn execute_admin(&mut self, id: u16, command: &AdminCommand, data: &mut Vec<u8>) -> CommandResult {
        self.continue_self_test();
        if !command.is_allowed_during_sanitize() {
            self.check_no_sanitize()?;
        }
        match command {
            AdminCommand::AsynchronousEventRequest(cid) => self.asynchronous_event_request(id, *cid),
            AdminCommand::Identify(request) => self.identify(id, request, data),
            AdminCommand::GetLogPage(request) => self.get_log_page(id, request, data),
            AdminCommand::GetFeatures(question) => self.get_features(id, question, data),
            AdminCommand::DirectiveReceive(receive) => self.directive_receive(id, receive, data),
            AdminCommand::SetFeatures(setting) => self.set_features(id, setting, data),
            AdminCommand::NamespaceManagement(operation) => self.manage_namespace(id, operation, data),
            AdminCommand::NamespaceAttachment(attachment) => self.attach_namespace(attachment, data),
            AdminCommand::Abort(request) => self.abort(id, *request),
            AdminCommand::KeepAlive => self.keep_alive(id),
            AdminCommand::SelfTest(request) => self.self_test(id, request),
            AdminCommand::DirectiveSend(send) => self.directive_send(id, send),
            AdminCommand::Format(settings) => self.format(id, settings),
            AdminCommand::Sanitize(request) => self.start_sanitize(request),
        }
    }

    /// Commands are executed immediately and completely. The only command that can be outstanding here
    /// is therefore an Asynchronous Event Request. For the same reason Aborts never queue up and cannot
    /// exceed their limit (ACL).
    fn abort(&mut self, id: u16, request: AbortCdw10) -> CommandResult {
        let controller = self.controllers.get_mut(id);
        let aborted = request.sqid() == ADMIN_QUEUE_ID && controller.abort_event_request(request.cid());
        let result = AbortDw0::new().with_ianp(!aborted);
        Ok(Execution::with_result(u64::from(result.into_bits())))
    }

    fn keep_alive(&mut self, id: u16) -> CommandResult {
        self.controllers.get_mut(id).last_message_at = self.clock.now();
        Ok(Execution::DONE)
    }

    fn asynchronous_event_request(&mut self, id: u16, cid: u16) -> CommandResult {
        let reported = self.controllers.get_mut(id).async_events.request(cid)?;
        Ok(reported.map_or(Execution::Deferred, |reply| Execution::with_result(reply.result)))
    }

    /// Reports new critical warnings to each controller. Called after any change that may affect
    /// them.
    pub(crate) fn note_health(&mut self) {
        let configured = self.shared_features.value(FeatureId::EnduranceGroupEventConfiguration, 0).unwrap_or(0);
        let group_enabled = EnduranceGroupEventConfiguration::from_bits(configured).egcw();
        let group_warnings = self.endurance_group_warnings();
        let ids: Vec<u16> = self.controllers.iter().map(|controller| controller.id).collect();
        for id in ids {
            let warnings = self.critical_warnings(id);
            self.controllers.get_mut(id).note_warnings(warnings, group_enabled, group_warnings);
        }
    }
}
