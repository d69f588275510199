//! Current values of features, of a controller or of all of them. What a value may be stands in `admin::features`.

use std::collections::BTreeMap;

use nvme_spec::FeatureId;
use nvme_spec::feature::HostBehaviorSupport;

/// Values by feature identifier and instance: a namespace identifier, or what stands for an interrupt vector or a
/// threshold; 0 where there is only one value.
#[derive(Clone, Debug, Default)]
pub struct Features {
    values: BTreeMap<(u8, u32), u32>,
    /// The value of Host Behavior Support, which is more than a number.
    pub(crate) host_behavior: HostBehaviorSupport,
}

impl Features {
    /// The value that was set, in the form of Set Features' command dword 11; `None` if none was.
    pub fn value(&self, id: FeatureId, instance: u32) -> Option<u32> {
        self.values.get(&(id.code(), instance)).copied()
    }

    /// Sets a value.
    pub(crate) fn set(&mut self, id: FeatureId, instance: u32, value: u32) {
        self.values.insert((id.code(), instance), value);
    }

    /// Forgets a value.
    pub(crate) fn remove(&mut self, id: FeatureId, instance: u32) {
        self.values.remove(&(id.code(), instance));
    }
}
