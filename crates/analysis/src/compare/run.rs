//! The runs of a side of a comparison, and model ranges of their write amplification.

use serde_json::Value;

use super::DifferenceVerdict;
use crate::interval::MATTERS;

/// Metrics of a run by name, in display order.
pub(super) type Metrics = Vec<(String, f64)>;

/// Write amplification over all counted writes.
pub(super) const WAF: &str = "WAF";
/// Metrics that depend on the amount of writes, in the order of their counters.
pub(super) const TOTALS: [&str; 2] = ["host, GB", "media, GB"];

#[derive(Clone, Debug, Default)]
pub(super) struct SeedRun {
    pub(super) device: String,
    /// Names of the variant or placement, and of the grid values with their axes.
    pub(super) place: String,
    /// Variant and grid values, as `--variant` of `warp run` takes them.
    pub(super) only: Vec<String>,
    pub(super) metrics: Metrics,
    pub(super) range: Option<ModelRange>,
    /// True if an answer marks its write amplification as doubtful.
    pub(super) is_doubtful: bool,
}

impl SeedRun {
    /// The single run of a source without cells.
    pub(super) fn single(metrics: Metrics) -> SeedRun {
        SeedRun { metrics, ..SeedRun::default() }
    }

    /// Options of `warp run` that run this cell alone.
    pub(super) fn selection_options(&self, by_device: bool) -> String {
        let device = by_device.then(|| format!(" --device {}", self.device));
        let quoted =
            |name: &String| match name.contains(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
                true => format!(" --variant '{name}'"),
                false => format!(" --variant {name}"),
            };
        device.into_iter().chain(self.only.iter().map(quoted)).collect()
    }
}

/// Value of a key of a placement. Answers of older builds have it under another name.
pub(super) fn placement_value<'a>(placement: &'a Value, [name, old]: [&str; 2]) -> &'a Value {
    placement.get(name).unwrap_or(&placement[old])
}

/// Range of a write amplification by the model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModelRange {
    /// Interval over the device's ensemble, if the ensemble was run.
    pub(super) interval: Option<[f64; 2]>,
    /// Ends of `interval` if it exists. Otherwise the value with a margin: half of the smallest
    /// reported change, or the difference of the last drive writes if that is larger.
    low: f64,
    high: f64,
}

impl ModelRange {
    pub(super) fn new(placement: &Value, waf: f64) -> ModelRange {
        let ends = |interval: &Vec<Value>| Some([interval.first()?.as_f64()?, interval.get(1)?.as_f64()?]);
        let interval = placement["interval"].as_array().and_then(ends);
        let noise =
            placement_value(placement, ["end_difference", "unsettled"]).as_f64().unwrap_or(0.0).max(MATTERS / 2.0);
        let [low, high] = interval.unwrap_or([waf * (1.0 - noise), waf * (1.0 + noise)]);
        ModelRange { interval, low, high }
    }

    /// Range of measured values, without a model.
    pub(super) fn from_values(values: &[f64]) -> ModelRange {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        ModelRange { interval: None, low: least, high: most }
    }

    /// Compares `other` with this range. `More` means that `other` is higher.
    pub(super) fn verdict(&self, other: &ModelRange) -> DifferenceVerdict {
        if other.low > self.high {
            DifferenceVerdict::More
        } else if other.high < self.low {
            DifferenceVerdict::Less
        } else {
            DifferenceVerdict::NotSeen
        }
    }
}
