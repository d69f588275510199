//! Helpers that the tests of the models share.

use serde::{Serialize, de::DeserializeOwned};
use toml::{Table, Value};
use workload::{RequestSource, ScaledModel, WorkloadError, WorkloadTarget};

pub(crate) const MIB: u64 = 1 << 20;

/// A drive with eight placement indices, for an endless run.
pub(crate) fn drive(mib: u64) -> WorkloadTarget {
    WorkloadTarget { device_bytes: mib * MIB, placement_count: 8, endless: true, ..WorkloadTarget::default() }
}

/// The same drive as a scaled model with 4 KiB pages. Denominator 1 gives the full drive.
pub(crate) fn scaled_drive(mib: u64, denominator: u64) -> WorkloadTarget {
    WorkloadTarget {
        scaled_model: (denominator > 1).then_some(ScaledModel {
            denominator,
            device_bytes: mib * MIB / denominator,
            mapping_unit_bytes: 4096,
            keep_requests: false,
        }),
        ..drive(mib)
    }
}

/// Value of a measure that the source must report.
pub(crate) fn measure(source: &impl RequestSource, name: &str) -> f64 {
    let found = source.measures().into_iter().find(|measure| measure.name == name);
    found.unwrap_or_else(|| panic!("there is no measure {name}")).value
}

/// Zipf weights of `ranks` ranks.
pub(crate) fn zipf_weights(ranks: usize, exponent: f64) -> Vec<f64> {
    (1..=ranks).map(|rank| (rank as f64).powf(-exponent)).collect()
}

/// Expected hit ratio of a cache with `slots` slots under independent references.
///
/// LRU uses the approximation of Che, Tung and Wang (2002): every key stays for one time that
/// follows from the slots. FIFO uses that of Martina, Garetto and Leonardi ("A unified approach to
/// the performance analysis of caching systems", 2014).
pub(crate) fn expected_hits(slots: f64, weights: &[f64], fifo: bool) -> f64 {
    let total: f64 = weights.iter().sum();
    let stored = |time: f64, rate: f64| {
        if fifo { rate * time / (1.0 + rate * time) } else { 1.0 - (-rate * time).exp() }
    };
    let (mut low, mut high) = (0.0, 1e12);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        let held: f64 = weights.iter().map(|weight| stored(middle, weight / total)).sum();
        if held < slots {
            low = middle;
        } else {
            high = middle;
        }
    }
    weights.iter().map(|weight| weight / total * stored(low, weight / total)).sum()
}

/// Reads settings like those of a workload file, so that tests compile no other reader of them.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, WorkloadError> {
    workload::deserialize("workload", text.parse::<Table>().expect("TOML").into())
}

/// Writes settings and reads them again.
pub(crate) fn reread<T: Serialize + DeserializeOwned>(settings: &T) -> T {
    let written = Value::try_from(settings).expect("settings are TOML");
    workload::deserialize("workload", written).expect("they come back")
}
