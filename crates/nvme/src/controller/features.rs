//! Current feature values of a controller or of the whole drive. The checks of values are in
//! `admin::features`.

use std::collections::BTreeMap;

use nvme_spec::FeatureId;
use nvme_spec::feature::HostBehaviorSupport;

/// Values by feature identifier and instance. An instance is a namespace identifier, or stands for
/// an interrupt vector or a threshold. It is 0 for features with one value.
#[derive(Clone, Debug, Default)]
pub struct Features {
    values: BTreeMap<(u8, u32), u32>,
    pub(crate) host_behavior: HostBehaviorSupport,
}

impl Features {
    /// Current value in the form of Set Features' command dword 11, or `None` if never set.
    pub fn value(&self, id: FeatureId, instance: u32) -> Option<u32> {
        self.values.get(&(id.code(), instance)).copied()
    }

    pub(crate) fn set(&mut self, id: FeatureId, instance: u32, value: u32) {
        self.values.insert((id.code(), instance), value);
    }

    pub(crate) fn remove(&mut self, id: FeatureId, instance: u32) {
        self.values.remove(&(id.code(), instance));
    }
}
