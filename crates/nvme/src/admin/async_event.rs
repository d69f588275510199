//! Asynchronous events of the drive: which of its controllers hear of what happens to it.

use std::collections::BTreeSet;

use nvme_spec::feature::EnduranceGroupEventConfiguration;
use nvme_spec::{FeatureId, LogId};

use crate::completion::Success;
use crate::controller::{Controller, ControllerKind};
use crate::error::Failure;
use crate::namespace::Namespace;
use crate::state::SanitizeOutcome;
use crate::subsystem::Subsystem;

impl Subsystem {
    /// `None`: the request waits for an event.
    pub(super) fn asynchronous_event_request(&mut self, id: u16, cid: u16) -> Result<Option<Success>, Failure> {
        let told = self.controller_mut(id).async_events.request(cid)?;
        Ok(told.map(|reply| Success::of(reply.result)))
    }

    /// A namespace was deleted, attached, detached or formatted, or its attributes changed; `attached` are the
    /// controllers that had or have it (see [`Namespace::attached`]).
    pub(crate) fn note_namespace_changed(&mut self, nsid: u32, attached: &BTreeSet<u16>) {
        let concerned = |controller: &&mut Controller| {
            let has_it = attached.contains(&controller.id) || attached.contains(&Namespace::EVERYONE);
            has_it && controller.kind == ControllerKind::Io
        };
        for controller in self.controllers_mut().filter(concerned) {
            controller.note_namespace_changed(nsid);
        }
    }

    /// A sanitize operation begins: events of the one before are history (Base Specification, "Sanitize Operations").
    pub(crate) fn forget_sanitize_events(&mut self) {
        for controller in self.controllers_mut() {
            controller.async_events.forget(LogId::SanitizeStatus);
        }
    }

    /// A sanitize operation ended, well or not.
    pub(crate) fn note_sanitize_completed(&mut self) {
        let succeeded = matches!(self.state.sanitize, SanitizeOutcome::Succeeded { .. });
        let deallocated = succeeded && self.state.sanitize.command().ndas();
        let for_io = |controller: &&mut Controller| controller.kind == ControllerKind::Io;
        for controller in self.controllers_mut().filter(for_io) {
            controller.note_sanitize_completed(deallocated);
        }
    }

    /// Something that critical warnings depend on may have changed: tells each controller of those that are new to it.
    pub(crate) fn note_health(&mut self) {
        let configured = self
            .shared_features
            .value(FeatureId::EnduranceGroupEventConfiguration, 0)
            .unwrap_or(0);
        let group_enabled = EnduranceGroupEventConfiguration::from_bits(configured).egcw();
        let group_warnings = self.endurance_group_warnings();
        let ids: Vec<u16> = self.controllers().map(|controller| controller.id).collect();
        for id in ids {
            let warnings = self.critical_warnings(id);
            self.controller_mut(id)
                .note_warnings(warnings, group_enabled, group_warnings);
        }
    }
}
