//! Asynchronous events of the drive, and the controllers that receive them.

use nvme_spec::FeatureId;
use nvme_spec::feature::EnduranceGroupEventConfiguration;

use crate::completion::{CommandResult, Execution};
use crate::subsystem::Subsystem;

impl Subsystem {
    pub(super) fn asynchronous_event_request(&mut self, id: u16, cid: u16) -> CommandResult {
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
