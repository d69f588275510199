//! Execution of Get Features and Set Features.
//!
//! ```text
//! Set Features -> SetFeatureRequest -> saveable? namespaces -> current value -> saved value
//! Get Features -> GetFeatureRequest -> namespace -> current, default or saved value, capabilities
//! ```
//!
//! [`FEATURES`] contains the scope of each feature's value and its save policy. Most values are one
//! number (command dword 11) in [`Features`]. Larger values, and values outside of it, have their
//! own functions. These are the keep alive timer, timestamp, write protection and Flexible Data
//! Placement.
//!
//! A reset of a controller reloads its values from the saved ones. Values of a wider scope stay.

mod number;
mod special;

use nvme_spec::command::{FeaturesCdw14, GetFeaturesCdw10, SetFeaturesCdw10, SubmissionEntry};
use nvme_spec::feature::{FeatureCapabilities, FeatureSelect};
use nvme_spec::log::{SCOPE_CONTROLLER, SCOPE_ENDURANCE_GROUP, SCOPE_NAMESPACE, SCOPE_NVM_SUBSYSTEM};
use nvme_spec::ocp::LatencyMonitorFeature;
use nvme_spec::{FeatureId, NSID_ALL, Status};

use super::log_page::check_uuid_index;
pub(super) use number::{OVER_TEMPERATURE, UNDER_TEMPERATURE};

use crate::completion::{CommandResult, Execution};
use crate::controller::{ControllerKind, Features, HostTransport};
use crate::error::{Failure, Parameter};
use crate::fdp;
use crate::latency_monitor::LatencyConfiguration;
use crate::subsystem::Subsystem;
use crate::transfer::Transfer;

/// Default composite temperature above which the drive warns hosts, in kelvins (WCTEMP).
pub const WARNING_TEMPERATURE_K: u16 = 343;

#[derive(Debug)]
pub(super) struct Feature {
    pub id: FeatureId,
    /// Scope of the value, a `SCOPE_…` bit.
    pub scope: u16,
    saving: SavePolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SavePolicy {
    /// A reset restores the default value.
    Never,
    /// Saved with the Save bit.
    OnRequest,
    /// Always saved, without the Save bit.
    Always,
}

const fn feature(id: FeatureId, scope: u16, saving: SavePolicy) -> Feature {
    Feature { id, scope, saving }
}

/// Features by identifier. Timestamp has the scope of the drive, because the one clock also stamps
/// the FDP events.
#[rustfmt::skip] // One feature, one line.
pub(super) const FEATURES: [Feature; 21] = [
    feature(FeatureId::Arbitration, SCOPE_CONTROLLER, SavePolicy::OnRequest),
    feature(FeatureId::PowerManagement, SCOPE_CONTROLLER, SavePolicy::OnRequest),
    feature(FeatureId::TemperatureThreshold, SCOPE_CONTROLLER, SavePolicy::OnRequest),
    feature(FeatureId::ErrorRecovery, SCOPE_NAMESPACE, SavePolicy::OnRequest),
    feature(FeatureId::VolatileWriteCache, SCOPE_CONTROLLER, SavePolicy::OnRequest),
    feature(FeatureId::NumberOfQueues, SCOPE_CONTROLLER, SavePolicy::Never),
    feature(FeatureId::InterruptCoalescing, SCOPE_CONTROLLER, SavePolicy::OnRequest),
    feature(FeatureId::InterruptVectorConfiguration, SCOPE_CONTROLLER, SavePolicy::OnRequest),
    feature(FeatureId::WriteAtomicityNormal, SCOPE_CONTROLLER, SavePolicy::OnRequest),
    feature(FeatureId::AsynchronousEventConfiguration, SCOPE_CONTROLLER, SavePolicy::OnRequest),
    feature(FeatureId::Timestamp, SCOPE_NVM_SUBSYSTEM, SavePolicy::Never),
    feature(FeatureId::KeepAliveTimer, SCOPE_CONTROLLER, SavePolicy::Never),
    feature(FeatureId::HostBehaviorSupport, SCOPE_CONTROLLER, SavePolicy::Never),
    feature(FeatureId::SanitizeConfig, SCOPE_NVM_SUBSYSTEM, SavePolicy::OnRequest),
    feature(FeatureId::EnduranceGroupEventConfiguration, SCOPE_ENDURANCE_GROUP, SavePolicy::OnRequest),
    // Both values are stored even without the Save bit, which nvme-cli sets.
    feature(FeatureId::FlexibleDataPlacement, SCOPE_ENDURANCE_GROUP, SavePolicy::OnRequest),
    feature(FeatureId::FlexibleDataPlacementEvents, SCOPE_NAMESPACE, SavePolicy::OnRequest),
    feature(FeatureId::SoftwareProgressMarker, SCOPE_NVM_SUBSYSTEM, SavePolicy::Always),
    feature(FeatureId::HostIdentifier, SCOPE_CONTROLLER, SavePolicy::Never),
    feature(FeatureId::NamespaceWriteProtectionConfig, SCOPE_NAMESPACE, SavePolicy::Always),
    // The value is stored even without the Save bit, but the bit must be accepted.
    feature(FeatureId::LatencyMonitor, SCOPE_NVM_SUBSYSTEM, SavePolicy::OnRequest),
];

/// Request of a Set Features command. The feature defines the meaning of the dwords.
#[derive(Debug)]
pub(crate) struct SetFeatureRequest {
    feature: &'static Feature,
    /// The value must survive a reset (SV).
    save: bool,
    nsid: u32,
    dword11: u32,
    dword12: u32,
}

impl SetFeatureRequest {
    pub fn is_of(&self, feature: FeatureId) -> bool {
        self.feature.id == feature
    }

    pub(super) fn transfer(&self) -> Transfer {
        Transfer::to_controller(match self.feature.id {
            FeatureId::FlexibleDataPlacementEvents => fdp::event_list_bytes(self.dword11),
            FeatureId::LatencyMonitor => size_of::<LatencyMonitorFeature>() as u64,
            other => special::data_bytes(other, self.dword11),
        })
    }
}

#[derive(Debug)]
pub(crate) struct GetFeatureRequest {
    feature: &'static Feature,
    select: FeatureSelect,
    nsid: u32,
    dword11: u32,
}

impl GetFeatureRequest {
    pub(super) fn transfer(&self) -> Transfer {
        if self.select == FeatureSelect::SupportedCapabilities {
            return Transfer::NONE;
        }
        Transfer::to_host(match self.feature.id {
            FeatureId::FlexibleDataPlacementEvents => fdp::event_descriptors_bytes(self.dword11),
            other => special::data_bytes(other, self.dword11),
        })
    }
}

impl Feature {
    fn is_namespace_specific(&self) -> bool {
        self.scope == SCOPE_NAMESPACE
    }
}

impl Subsystem {
    pub(super) fn has_feature(&self, id: u16, feature: FeatureId) -> bool {
        let controller = self.controller(id);
        if controller.kind == ControllerKind::Discovery {
            return matches!(feature, FeatureId::AsynchronousEventConfiguration | FeatureId::KeepAliveTimer);
        }
        match feature {
            FeatureId::VolatileWriteCache => self.media.has_write_cache(),
            FeatureId::InterruptCoalescing | FeatureId::InterruptVectorConfiguration => {
                controller.transport == HostTransport::Pcie
            }
            // PCI Express has no connection that could be lost.
            FeatureId::KeepAliveTimer => controller.transport == HostTransport::Fabrics,
            _ => FEATURES.iter().any(|known| known.id == feature),
        }
    }

    fn feature(&self, id: u16, code: u8) -> Result<&'static Feature, Failure> {
        let known = FEATURES.iter().find(|known| known.id.code() == code);
        known.filter(|known| self.has_feature(id, known.id)).ok_or_else(|| {
            let cause = format!("the controller does not support feature {code:#04x}");
            Failure::invalid_field(Parameter::dword(10, 0), cause)
        })
    }

    /// Initial values of a controller, which are the saved values or the defaults.
    pub(crate) fn initial_features(&self) -> Features {
        let mut features = Features::default();
        let of_controllers = FEATURES.iter().filter(|known| known.scope == SCOPE_CONTROLLER);
        for id in of_controllers.map(|known| known.id) {
            let saved = self.state.saved_features.range((id.code(), 0)..=(id.code(), u32::MAX));
            for (&(_, instance), &value) in saved {
                features.set(id, instance, value);
            }
        }
        features
    }

    /// True if writes may stay in the volatile write cache. One host that disables the cache
    /// disables it for all.
    pub(crate) fn write_cache_enabled(&self) -> bool {
        self.media.has_write_cache() && !self.controllers.any_turned_off(FeatureId::VolatileWriteCache)
    }

    /// Removes the feature values of a deleted namespace. The next namespace with its identifier
    /// starts with defaults.
    pub(super) fn forget_namespace_features(&mut self, nsid: u32) {
        self.shared_features.remove(FeatureId::ErrorRecovery, nsid);
        self.state.saved_features.remove(&(FeatureId::ErrorRecovery.code(), nsid));
    }

    // ------------------------------------------------------------------------------ set --

    pub(super) fn parse_set_features(&self, id: u16, entry: &SubmissionEntry) -> Result<SetFeatureRequest, Failure> {
        let dword10 = SetFeaturesCdw10::from_bits(entry.cdw10.get());
        let feature = self.feature(id, dword10.fid())?;
        check_uuid(feature, entry)?;
        Ok(SetFeatureRequest {
            feature,
            save: dword10.sv(),
            nsid: entry.nsid.get(),
            dword11: entry.cdw11.get(),
            dword12: entry.cdw12.get(),
        })
    }

    pub(super) fn set_features(&mut self, id: u16, setting: &SetFeatureRequest, data: &[u8]) -> CommandResult {
        let &SetFeatureRequest { feature, dword11, .. } = setting;
        if setting.save && feature.saving != SavePolicy::OnRequest {
            let cause = format!("{} cannot be saved", feature.id);
            return Err(Failure::new(Status::FEATURE_NOT_SAVEABLE, cause).at(Parameter::dword(10, 31)));
        }
        let namespaces = self.namespaces_to_set(id, feature, setting.nsid)?;
        match feature.id {
            FeatureId::Timestamp => self.set_timestamp(data),
            FeatureId::KeepAliveTimer => self.set_keep_alive(id, dword11),
            FeatureId::HostBehaviorSupport => self.set_host_behavior(id, data)?,
            FeatureId::HostIdentifier => self.set_host_identifier(id, data)?,
            FeatureId::FlexibleDataPlacement => self.set_fdp(dword11, setting.dword12)?,
            FeatureId::LatencyMonitor => self.set_latency_monitor(data)?,
            FeatureId::FlexibleDataPlacementEvents => {
                self.set_fdp_events(&namespaces, dword11, setting.dword12, data)?
            }
            FeatureId::NamespaceWriteProtectionConfig => {
                return self.set_write_protection(&namespaces, dword11).map(Execution::after);
            }
            _ => return self.set_number(id, setting, namespaces),
        }
        Ok(Execution::DONE)
    }

    fn set_number(&mut self, id: u16, setting: &SetFeatureRequest, namespaces: Vec<u32>) -> CommandResult {
        let feature = setting.feature;
        let value = self.value_to_set(id, feature.id, setting.dword11)?;
        let instances =
            if feature.is_namespace_specific() { namespaces } else { vec![number::instance(feature.id, value)] };
        let save = setting.save || feature.saving == SavePolicy::Always;
        self.set_values(id, feature, &instances, value, save)?;
        self.note_health();
        Ok(match feature.id {
            FeatureId::NumberOfQueues => Execution::with_result(u64::from(value)),
            // Disabling the cache must flush its content.
            FeatureId::VolatileWriteCache => Execution::after(value == 0),
            _ => Execution::DONE,
        })
    }

    /// Namespaces of a Set Features command. Empty if the feature is not namespace specific.
    fn namespaces_to_set(&self, id: u16, feature: &Feature, nsid: u32) -> Result<Vec<u32>, Failure> {
        if feature.is_namespace_specific() {
            if nsid == NSID_ALL {
                let attached = self.state.namespaces.iter().filter(|(_, namespace)| namespace.is_attached(id));
                return Ok(attached.map(|(nsid, _)| nsid).collect());
            }
            self.state.namespaces.active(id, nsid)?;
            return Ok(vec![nsid]);
        }
        if nsid != 0 && nsid != NSID_ALL {
            self.state.namespaces.active(id, nsid)?;
            let cause = format!("{} is not a feature of a single namespace", feature.id);
            return Err(Failure::new(Status::FEATURE_NOT_NAMESPACE_SPECIFIC, cause).at(Parameter::NSID));
        }
        Ok(Vec::new())
    }

    fn set_values(
        &mut self,
        id: u16,
        feature: &Feature,
        instances: &[u32],
        value: u32,
        save: bool,
    ) -> Result<(), Failure> {
        if save {
            let before = self.state.saved_features.clone();
            let keys = instances.iter().map(|&instance| (feature.id.code(), instance));
            self.state.saved_features.extend(keys.map(|key| (key, value)));
            self.store_state_or(|subsystem| subsystem.state.saved_features = before)?;
        }
        let features = match feature.scope {
            SCOPE_CONTROLLER => &mut self.controllers.get_mut(id).features,
            _ => &mut self.shared_features,
        };
        for &instance in instances {
            features.set(feature.id, instance, value);
            assert_eq!(features.value(feature.id, instance), Some(value), "each instance has the value");
        }
        Ok(())
    }

    // ------------------------------------------------------------------------------ get --

    pub(super) fn parse_get_features(&self, id: u16, entry: &SubmissionEntry) -> Result<GetFeatureRequest, Failure> {
        let dword10 = GetFeaturesCdw10::from_bits(entry.cdw10.get());
        let feature = self.feature(id, dword10.fid())?;
        check_uuid(feature, entry)?;
        let select = FeatureSelect::from_u8(dword10.sel()).ok_or_else(|| {
            let cause = format!("Get Features has no select value {}", dword10.sel());
            Failure::invalid_field(Parameter::dword(10, 8), cause)
        })?;
        Ok(GetFeatureRequest { feature, select, nsid: entry.nsid.get(), dword11: entry.cdw11.get() })
    }

    pub(super) fn get_features(&mut self, id: u16, question: &GetFeatureRequest, data: &mut Vec<u8>) -> CommandResult {
        let feature = question.feature;
        data.clear();
        let result = if question.select == FeatureSelect::SupportedCapabilities {
            self.capabilities(id, feature).into_bits()
        } else {
            // The feature has one value for each namespace, so the broadcast identifier is invalid.
            if feature.is_namespace_specific() {
                self.state.namespaces.active(id, question.nsid)?;
            }
            self.get_value(id, question, data)?
        };
        assert!(data.len() <= question.transfer().bytes, "the answer fits the host's buffer");
        Ok(Execution::with_result(u64::from(result)))
    }

    fn capabilities(&self, id: u16, feature: &Feature) -> FeatureCapabilities {
        let fixed = feature.id == FeatureId::HostIdentifier && self.controller(id).transport == HostTransport::Fabrics;
        FeatureCapabilities::new()
            .with_savbl(feature.saving == SavePolicy::OnRequest)
            .with_nspec(feature.is_namespace_specific())
            .with_chang(!fixed)
    }

    /// Returns completion dword 0. `data` receives the data of the value.
    fn get_value(&self, id: u16, question: &GetFeatureRequest, data: &mut Vec<u8>) -> Result<u32, Failure> {
        let &GetFeatureRequest { feature, select, dword11, .. } = question;
        let default = select == FeatureSelect::Default;
        // The saved value of a feature without saving is the default value.
        let unsaved = default || select == FeatureSelect::Saved;
        match feature.id {
            FeatureId::Timestamp => {
                let timestamp = if unsaved { 0 } else { self.clock.timestamp() };
                data.extend_from_slice(&timestamp.to_le_bytes());
            }
            FeatureId::KeepAliveTimer if unsaved => {}
            FeatureId::KeepAliveTimer => return Ok(self.controller(id).keep_alive_ms),
            FeatureId::HostBehaviorSupport => self.get_host_behavior(id, unsaved, data),
            FeatureId::HostIdentifier => self.get_host_identifier(id, dword11, data)?,
            FeatureId::FlexibleDataPlacement => return self.get_fdp(dword11, default),
            // The specification defines only Set Features here. The nvme-cli tool requests a number
            // without data.
            FeatureId::LatencyMonitor if default => return Ok(u32::from(LatencyConfiguration::default().enabled)),
            FeatureId::LatencyMonitor => return Ok(u32::from(self.state.latency_monitor.configuration().enabled)),
            FeatureId::FlexibleDataPlacementEvents => {
                return self.get_fdp_events(question.nsid, dword11, default, data);
            }
            FeatureId::NamespaceWriteProtectionConfig => return Ok(self.get_write_protection(question.nsid, default)),
            _ => {
                let instance = self.instance_to_get(question)?;
                return Ok(self.number(id, feature, instance, select));
            }
        }
        Ok(0)
    }

    fn number(&self, id: u16, feature: &Feature, instance: u32, select: FeatureSelect) -> u32 {
        let current = match feature.scope {
            SCOPE_CONTROLLER => self.controller(id).features.value(feature.id, instance),
            _ => self.shared_features.value(feature.id, instance),
        };
        let saved = self.state.saved_features.get(&(feature.id.code(), instance)).copied();
        // A controller loads the saved values at reset. Values saved later are not its current
        // ones.
        let shared = feature.scope != SCOPE_CONTROLLER;
        let chosen = match select {
            FeatureSelect::Current if shared => current.or(saved),
            FeatureSelect::Current => current,
            FeatureSelect::Saved => saved,
            _ => None,
        };
        chosen.unwrap_or_else(|| self.default_value(feature.id, instance))
    }
}

/// Refuses a vendor specific feature under a UUID that is not in the list.
fn check_uuid(feature: &Feature, entry: &SubmissionEntry) -> Result<(), Failure> {
    match feature.id {
        FeatureId::LatencyMonitor => check_uuid_index(FeaturesCdw14::from_bits(entry.cdw14.get()).uidx()),
        _ => Ok(()),
    }
}
