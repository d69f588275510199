//! What the tests of the models share.

use workload::{Source, Target, Twin};

pub(crate) const MIB: u64 = 1 << 20;

/// A drive with eight placement indices, for an endless run.
pub(crate) fn drive(mib: u64) -> Target {
    Target {
        device_bytes: mib * MIB,
        placement_count: 8,
        endless: true,
        ..Target::default()
    }
}

/// The same drive as a twin of 4 KiB pages, whose requests shrink; as it is for a denominator of 1.
pub(crate) fn twin(mib: u64, denominator: u64) -> Target {
    Target {
        twin: (denominator > 1).then_some(Twin {
            denominator,
            device_bytes: mib * MIB / denominator,
            mapping_unit_bytes: 4096,
            keep_requests: false,
        }),
        ..drive(mib)
    }
}

/// A figure that a model measures of itself, which it has to have.
pub(crate) fn measure(source: &impl Source, name: &str) -> f64 {
    let found = source.measures().into_iter().find(|measure| measure.name == name);
    found.unwrap_or_else(|| panic!("no measure {name}")).value
}
