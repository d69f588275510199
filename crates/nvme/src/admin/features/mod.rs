//! Get Features and Set Features.
//!
//! ```text
//! Set Features -> known? saveable? which namespaces? -> current value (controller, or shared by all) -> saved value
//! Get Features -> known? which namespace? -> current, default or saved value, or what may be done with it
//! ```
//!
//! [`FEATURES`] says of each feature whose value it is and whether it can be saved. Most values are one number, command
//! dword 11, kept in [`Features`]; those that are more, or that live elsewhere (keep alive timer, timestamp, write
//! protection, Flexible Data Placement), have functions of their own. A controller takes its values anew from the saved
//! ones when it is reset; values of a wider scope stay.

mod number;
mod placement;
mod special;

use std::collections::BTreeMap;

use nvme_spec::command::{GetFeaturesCdw10, SetFeaturesCdw10, SubmissionEntry};
use nvme_spec::feature::{FeatureCapabilities, FeatureSelect, HostBehaviorSupport};
use nvme_spec::log::{SCOPE_CONTROLLER, SCOPE_ENDURANCE_GROUP, SCOPE_NAMESPACE, SCOPE_NVM_SUBSYSTEM};
use nvme_spec::{FeatureId, NSID_ALL, Status};

pub(super) use number::{OVER_TEMPERATURE, UNDER_TEMPERATURE};
pub use special::{Clock, KEEP_ALIVE_GRANULARITY_MS};

use crate::controller::{ControllerKind, Transport};
use crate::error::{Failure, Parameter};
use crate::subsystem::{ENDURANCE_GROUP, Subsystem, Success, Transfer};

/// Composite temperature above which a host is warned unless it says otherwise, in kelvins (WCTEMP).
pub const WARNING_TEMPERATURE_K: u16 = 343;

/// Values by feature identifier and instance: a namespace identifier, or what stands for an interrupt vector or a threshold;
/// 0 where there is only one value.
#[derive(Clone, Debug, Default)]
pub struct Features {
    values: BTreeMap<(u8, u32), u32>,
    host_behavior: HostBehaviorSupport,
}

impl Features {
    /// The value that was set, in the form of Set Features' command dword 11; `None` if none was.
    pub fn value(&self, id: FeatureId, instance: u32) -> Option<u32> {
        self.values.get(&(id.code(), instance)).copied()
    }

    fn set(&mut self, id: FeatureId, instance: u32, value: u32) {
        self.values.insert((id.code(), instance), value);
    }
}

/// What may be done with a feature.
pub(super) struct Feature {
    pub id: FeatureId,
    /// Whose value it is: a `SCOPE_…` bit.
    pub scope: u16,
    saving: Saving,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Saving {
    /// A reset brings the default value back.
    Never,
    /// With the Save bit.
    OnRequest,
    /// Always, so the Save bit is not for it.
    Always,
}

const fn feature(id: FeatureId, scope: u16, saving: Saving) -> Feature {
    Feature { id, scope, saving }
}

/// The features, by identifier. Timestamp is the drive's and not the controller's: there is one clock, which also stamps the
/// FDP events.
#[rustfmt::skip] // One feature, one line.
pub(super) const FEATURES: [Feature; 20] = [
    feature(FeatureId::Arbitration, SCOPE_CONTROLLER, Saving::OnRequest),
    feature(FeatureId::PowerManagement, SCOPE_CONTROLLER, Saving::OnRequest),
    feature(FeatureId::TemperatureThreshold, SCOPE_CONTROLLER, Saving::OnRequest),
    feature(FeatureId::ErrorRecovery, SCOPE_NAMESPACE, Saving::OnRequest),
    feature(FeatureId::VolatileWriteCache, SCOPE_CONTROLLER, Saving::OnRequest),
    feature(FeatureId::NumberOfQueues, SCOPE_CONTROLLER, Saving::Never),
    feature(FeatureId::InterruptCoalescing, SCOPE_CONTROLLER, Saving::OnRequest),
    feature(FeatureId::InterruptVectorConfiguration, SCOPE_CONTROLLER, Saving::OnRequest),
    feature(FeatureId::WriteAtomicityNormal, SCOPE_CONTROLLER, Saving::OnRequest),
    feature(FeatureId::AsynchronousEventConfiguration, SCOPE_CONTROLLER, Saving::OnRequest),
    feature(FeatureId::Timestamp, SCOPE_NVM_SUBSYSTEM, Saving::Never),
    feature(FeatureId::KeepAliveTimer, SCOPE_CONTROLLER, Saving::Never),
    feature(FeatureId::HostBehaviorSupport, SCOPE_CONTROLLER, Saving::Never),
    feature(FeatureId::SanitizeConfig, SCOPE_NVM_SUBSYSTEM, Saving::OnRequest),
    feature(FeatureId::EnduranceGroupEventConfiguration, SCOPE_ENDURANCE_GROUP, Saving::OnRequest),
    // Both are kept in any case; nvme-cli asks for it.
    feature(FeatureId::FlexibleDataPlacement, SCOPE_ENDURANCE_GROUP, Saving::OnRequest),
    feature(FeatureId::FlexibleDataPlacementEvents, SCOPE_NAMESPACE, Saving::OnRequest),
    feature(FeatureId::SoftwareProgressMarker, SCOPE_NVM_SUBSYSTEM, Saving::Always),
    feature(FeatureId::HostIdentifier, SCOPE_CONTROLLER, Saving::Never),
    feature(FeatureId::NamespaceWriteProtectionConfig, SCOPE_NAMESPACE, Saving::Always),
];

impl Feature {
    fn is_namespace_specific(&self) -> bool {
        self.scope == SCOPE_NAMESPACE
    }
}

impl Subsystem {
    /// Whether a controller has a feature.
    pub(super) fn has_feature(&self, id: u16, feature: FeatureId) -> bool {
        let controller = self.controller(id);
        if controller.kind == ControllerKind::Discovery {
            return matches!(
                feature,
                FeatureId::AsynchronousEventConfiguration | FeatureId::KeepAliveTimer
            );
        }
        match feature {
            FeatureId::VolatileWriteCache => self.durable.is_some(),
            FeatureId::InterruptCoalescing | FeatureId::InterruptVectorConfiguration => {
                controller.transport == Transport::Pcie
            }
            // There is no connection that could be lost on PCI Express.
            FeatureId::KeepAliveTimer => controller.transport == Transport::Fabrics,
            _ => FEATURES.iter().any(|known| known.id == feature),
        }
    }

    fn feature(&self, id: u16, code: u8) -> Result<&'static Feature, Failure> {
        let known = FEATURES.iter().find(|known| known.id.code() == code);
        known.filter(|known| self.has_feature(id, known.id)).ok_or_else(|| {
            let cause = format!("feature {code:#04x} is not supported by this controller");
            Failure::invalid_field(Parameter::dword(10, 0), cause)
        })
    }

    /// The values that a controller begins with: the saved ones, else defaults.
    pub(crate) fn initial_features(&self) -> Features {
        let mut features = Features::default();
        let of_controllers = FEATURES.iter().filter(|known| known.scope == SCOPE_CONTROLLER);
        for known in of_controllers {
            let code = known.id.code();
            let saved = self.state.saved_features.range((code, 0)..=(code, u32::MAX));
            features.values.extend(saved);
        }
        features
    }

    /// Whether writes may stay in the volatile write cache. One host that turned it off is enough to turn it off.
    pub(crate) fn write_cache_enabled(&self) -> bool {
        const OFF: Option<u32> = Some(0);
        let turned_off = |features: &Features| features.value(FeatureId::VolatileWriteCache, 0) == OFF;
        self.durable.is_some() && !self.controllers().any(|controller| turned_off(&controller.features))
    }

    /// A namespace is gone: another one with its identifier begins with defaults.
    pub(super) fn forget_namespace_features(&mut self, nsid: u32) {
        let code = FeatureId::ErrorRecovery.code();
        self.shared_features.values.remove(&(code, nsid));
        self.state.saved_features.remove(&(code, nsid));
    }

    // -------------------------------------------------------------------------------------------------- set --

    pub(super) fn set_features_transfer(&self, id: u16, entry: &SubmissionEntry) -> Result<Transfer, Failure> {
        let feature = self.feature(id, SetFeaturesCdw10::from_bits(entry.cdw10.get()).fid())?;
        Ok(Transfer::to_controller(match feature.id {
            FeatureId::FlexibleDataPlacementEvents => placement::event_list_bytes(entry),
            other => special::data_bytes(other, entry),
        }))
    }

    pub(super) fn set_features(&mut self, id: u16, entry: &SubmissionEntry, data: &[u8]) -> Result<Success, Failure> {
        let dword10 = SetFeaturesCdw10::from_bits(entry.cdw10.get());
        let feature = self.feature(id, dword10.fid())?;
        if dword10.sv() && feature.saving != Saving::OnRequest {
            let cause = format!("{} cannot be saved", feature.id);
            return Err(Failure::new(Status::FEATURE_NOT_SAVEABLE, cause).at(Parameter::dword(10, 31)));
        }
        let namespaces = self.namespaces_to_set(id, feature, entry.nsid.get())?;
        // nvme-cli sends more than it says, but never less.
        let bytes = self.set_features_transfer(id, entry)?.bytes;
        let Some(data) = data.get(..bytes) else {
            let cause = format!("{} takes {bytes} bytes, {} came", feature.id, data.len());
            return Err(Failure::new(Status::DATA_TRANSFER_ERROR, cause)
                .at(Parameter::DATA_POINTER)
                .retryable());
        };
        let mut done = self.done();
        match feature.id {
            FeatureId::Timestamp => self.set_timestamp(data),
            FeatureId::KeepAliveTimer => self.set_keep_alive(id, entry.cdw11.get()),
            FeatureId::HostBehaviorSupport => self.set_host_behavior(id, data)?,
            FeatureId::HostIdentifier => self.set_host_identifier(id, data)?,
            FeatureId::FlexibleDataPlacement => self.set_placement(entry)?,
            FeatureId::FlexibleDataPlacementEvents => self.set_placement_events(&namespaces, entry, data)?,
            FeatureId::NamespaceWriteProtectionConfig => {
                done.durable = self.set_write_protection(&namespaces, entry)?
            }
            _ => {
                let value = self.value_to_set(id, feature.id, entry.cdw11.get())?;
                let instances = match feature.is_namespace_specific() {
                    true => namespaces,
                    false => vec![number::instance(feature.id, value)],
                };
                let save = dword10.sv() || feature.saving == Saving::Always;
                self.set_values(id, feature, &instances, value, save)?;
                match feature.id {
                    FeatureId::NumberOfQueues => done.result = u64::from(value),
                    // What is in the cache when it is turned off must not stay there.
                    FeatureId::VolatileWriteCache => done.durable = value == 0,
                    _ => {}
                }
                self.note_health();
            }
        }
        Ok(done)
    }

    /// The namespaces that a Set Features is for; none if the feature has nothing to do with them.
    fn namespaces_to_set(&self, id: u16, feature: &Feature, nsid: u32) -> Result<Vec<u32>, Failure> {
        if feature.is_namespace_specific() {
            if nsid == NSID_ALL {
                let attached = self.namespaces().filter(|(_, namespace)| namespace.is_attached(id));
                return Ok(attached.map(|(nsid, _)| nsid).collect());
            }
            self.active_namespace(id, nsid)?;
            return Ok(vec![nsid]);
        }
        if nsid != 0 && nsid != NSID_ALL {
            self.active_namespace(id, nsid)?;
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
            SCOPE_CONTROLLER => &mut self.controller_mut(id).features,
            _ => &mut self.shared_features,
        };
        for &instance in instances {
            features.set(feature.id, instance, value);
        }
        Ok(())
    }

    /// Stores the state, or takes back the change that cannot be stored.
    fn store_state_or(&mut self, undo: impl FnOnce(&mut Subsystem)) -> Result<(), Failure> {
        let stored = self.store_state();
        if stored.is_err() {
            undo(self);
        }
        stored
    }

    // -------------------------------------------------------------------------------------------------- get --

    /// What a Get Features is about: the feature, and which of its values.
    fn feature_to_get(&self, id: u16, entry: &SubmissionEntry) -> Result<(&'static Feature, FeatureSelect), Failure> {
        let dword10 = GetFeaturesCdw10::from_bits(entry.cdw10.get());
        let feature = self.feature(id, dword10.fid())?;
        let select = FeatureSelect::from_u8(dword10.sel()).ok_or_else(|| {
            let cause = format!("select {} of Get Features does not exist", dword10.sel());
            Failure::invalid_field(Parameter::dword(10, 8), cause)
        })?;
        Ok((feature, select))
    }

    pub(super) fn get_features_transfer(&self, id: u16, entry: &SubmissionEntry) -> Result<Transfer, Failure> {
        Ok(match self.feature_to_get(id, entry)? {
            (_, FeatureSelect::SupportedCapabilities) => Transfer::NONE,
            (feature, _) => Transfer::to_host(match feature.id {
                FeatureId::FlexibleDataPlacementEvents => placement::event_descriptors_bytes(entry),
                other => special::data_bytes(other, entry),
            }),
        })
    }

    pub(super) fn get_features(
        &mut self,
        id: u16,
        entry: &SubmissionEntry,
        data: &mut Vec<u8>,
    ) -> Result<Success, Failure> {
        let (feature, select) = self.feature_to_get(id, entry)?;
        data.clear();
        let result = match select {
            FeatureSelect::SupportedCapabilities => self.capabilities(id, feature).into_bits(),
            _ => {
                if feature.is_namespace_specific() {
                    self.namespace_to_get(id, entry.nsid.get())?;
                }
                self.get_value(id, feature, entry, select, data)?
            }
        };
        Ok(Success {
            result: u64::from(result),
            ..self.done()
        })
    }

    fn capabilities(&self, id: u16, feature: &Feature) -> FeatureCapabilities {
        let fixed = feature.id == FeatureId::HostIdentifier && self.controller(id).transport == Transport::Fabrics;
        FeatureCapabilities::new()
            .with_savbl(feature.saving == Saving::OnRequest)
            .with_nspec(feature.is_namespace_specific())
            .with_chang(!fixed)
    }

    /// A feature has one value for each namespace, so there is none of all of them.
    fn namespace_to_get(&self, id: u16, nsid: u32) -> Result<(), Failure> {
        self.active_namespace(id, nsid).map(|_| ())
    }

    /// Completion dword 0; the data that belongs to the value goes to `data`.
    fn get_value(
        &self,
        id: u16,
        feature: &Feature,
        entry: &SubmissionEntry,
        select: FeatureSelect,
        data: &mut Vec<u8>,
    ) -> Result<u32, Failure> {
        let default = select == FeatureSelect::Default;
        // What is never saved has its default value as the saved one.
        let unsaved = default || select == FeatureSelect::Saved;
        Ok(match feature.id {
            FeatureId::Timestamp => {
                let timestamp = if unsaved { 0 } else { self.timestamp() };
                data.extend_from_slice(&timestamp.to_le_bytes());
                0
            }
            FeatureId::KeepAliveTimer if unsaved => 0,
            FeatureId::KeepAliveTimer => self.controller(id).keep_alive_ms,
            FeatureId::HostBehaviorSupport => {
                self.get_host_behavior(id, unsaved, data);
                0
            }
            FeatureId::HostIdentifier => {
                self.get_host_identifier(id, entry, data)?;
                0
            }
            FeatureId::FlexibleDataPlacement => self.get_placement(entry, default)?,
            FeatureId::FlexibleDataPlacementEvents => self.get_placement_events(entry, default, data)?,
            FeatureId::NamespaceWriteProtectionConfig => self.get_write_protection(entry.nsid.get(), default),
            _ => {
                let instance = self.instance_to_get(feature, entry)?;
                self.number(id, feature, instance, select)
            }
        })
    }

    fn number(&self, id: u16, feature: &Feature, instance: u32, select: FeatureSelect) -> u32 {
        let current = match feature.scope {
            SCOPE_CONTROLLER => self.controller(id).features.value(feature.id, instance),
            _ => self.shared_features.value(feature.id, instance),
        };
        let saved = self.state.saved_features.get(&(feature.id.code(), instance)).copied();
        // A controller took the saved values when it was reset; what was saved since is not its current value.
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

/// Refuses any endurance group but the one there is.
pub(super) fn check_endurance_group(group: u16, place: Parameter) -> Result<(), Failure> {
    if group == ENDURANCE_GROUP {
        return Ok(());
    }
    let cause = format!("endurance group {group} does not exist, only {ENDURANCE_GROUP}");
    Err(Failure::invalid_field(place, cause))
}
