//! Prediction intervals from the members of an ensemble, widened by the ensemble's residual error.
//!
//! ```text
//! RunOverrides { interval } -> cells of the profile and of each member -> run -> [RunResult]
//!                           -> Intervals + results of profiles
//! ```
//!
//! A member is an ordinary device and is run like one. This module separates its results from those
//! of the profile and combines them to intervals. The interval of a write amplification is widened
//! at both ends by the residual. Its lower end does not fall below 1, the minimum of a drive.
//! Intervals of other metrics are the plain range of the members. `docs/reference/devices.md` explains them
//! under "Ensembles".

use serde::Serialize;

use experiment::CellKey;
use simulate::run::RunResult;

/// Minimum relative change of write amplification that counts as an effect.
pub const MATTERS: f64 = 0.01;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictionInterval {
    pub low: f64,
    /// Upper end, inclusive.
    pub high: f64,
    /// Predictions of the members, each the mean over seeds. The list omits members that equal
    /// another device.
    pub members: Vec<f64>,
}

impl PredictionInterval {
    pub fn contains(&self, number: f64) -> bool {
        (self.low..=self.high).contains(&number)
    }
}

/// Results of ensemble members, and the residual of each cell.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    members: Vec<RunResult>,
    residuals: Vec<(CellKey, f64)>,
}

/// Intervals of runs without ensembles.
pub static NO_INTERVALS: Intervals = Intervals { members: Vec::new(), residuals: Vec::new() };

impl Intervals {
    /// Separates the results of members from those of profiles.
    pub fn split(results: Vec<RunResult>) -> (Vec<RunResult>, Intervals) {
        let is_member = |result: &RunResult| result.ensemble.is_some_and(|part| part.member.is_some());
        let (members, own): (Vec<_>, Vec<_>) = results.into_iter().partition(is_member);
        let residual = |result: &RunResult| Some((result.key.clone(), result.ensemble?.residual));
        let residuals = own.iter().filter_map(residual).collect();
        (own, Intervals { members, residuals })
    }

    /// The interval of a cell's write amplification. `measure` reads it from a member's result, and
    /// `own` is the profile's value. `None` if the device has no ensemble, or a member was stopped.
    pub fn of_write_amplification(
        &self,
        key: &CellKey,
        own: f64,
        measure: impl Fn(&RunResult) -> f64,
    ) -> Option<PredictionInterval> {
        let range = self.range(key, own, |result| Some(measure(result)))?;
        let (_, residual) = self.residuals.iter().find(|(known, _)| known == key)?;
        Some(PredictionInterval {
            low: (range.low * (1.0 - residual)).max(range.low.min(1.0)),
            high: range.high * (1.0 + residual),
            ..range
        })
    }

    /// The range of another metric over the ensemble. `None` also if a member did not measure it.
    pub fn range(
        &self,
        key: &CellKey,
        own: f64,
        measure: impl Fn(&RunResult) -> Option<f64>,
    ) -> Option<PredictionInterval> {
        if !self.residuals.iter().any(|(known, _)| known == key) {
            return None;
        }
        let of_key = || self.members.iter().filter(|result| result.key == *key);
        let numbers = base::distinct(of_key().map(|result| result.ensemble));
        let mean = |part: &Option<_>| {
            let seeds = of_key().filter(|result| result.ensemble == *part);
            let values: Option<Vec<f64>> = seeds.map(|result| measure(result).filter(|_| result.complete)).collect();
            values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
        };
        let members: Vec<f64> = numbers.iter().map(mean).collect::<Option<_>>()?;
        let (low, high) = members.iter().fold((own, own), |(low, high), &value| (low.min(value), high.max(value)));
        Some(PredictionInterval { low, high, members })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::cell::EnsemblePart;
    use simulate::testing as sample;

    /// Results of a cell: the profile's and two members', of two seeds each.
    fn results(residual: f64) -> Vec<RunResult> {
        let own = sample::results().remove(5);
        let of = |member: Option<u32>, seed: u64| RunResult {
            ensemble: Some(EnsemblePart { member, residual }),
            seed,
            ..own.clone()
        };
        let members = [None, Some(0), Some(3)];
        members.into_iter().flat_map(|member| [of(member, 1), of(member, 2)]).collect()
    }

    /// A stand-in for a measured value, by member and seed.
    fn measured(result: &RunResult) -> f64 {
        let member = result.ensemble.and_then(|part| part.member);
        member.map_or(1.5, |member| 1.2 + 0.2 * f64::from(member)) + 0.1 * (result.seed as f64 - 1.5)
    }

    #[test]
    fn the_range_of_the_members_is_widened() {
        let (own, intervals) = Intervals::split(results(0.1));
        assert_eq!(own.len(), 2);
        let interval = intervals.of_write_amplification(&own[0].key, 1.5, measured).expect("it has one");
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value}");
        near(interval.low, 1.2 * 0.9);
        near(interval.high, 1.8 * 1.1);
        assert_eq!(interval.members.len(), 2);
        assert!(interval.contains(1.09) && !interval.contains(1.07));
        let range = intervals.range(&own[0].key, 2.0, |result| Some(measured(result))).expect("it has one");
        near(range.low, 1.2);
        near(range.high, 2.0);
    }

    #[test]
    fn no_drive_writes_less_than_it_is_told_to() {
        let (own, intervals) = Intervals::split(results(0.5));
        let interval = intervals.of_write_amplification(&own[0].key, 1.5, measured).expect("it has one");
        assert_eq!(interval.low, 1.0);
    }

    #[test]
    fn without_an_ensemble_or_all_of_its_members_there_is_none() {
        let (own, intervals) = Intervals::split(sample::results());
        assert!(intervals.residuals.is_empty() && own.len() == sample::results().len());
        assert_eq!(intervals.of_write_amplification(&own[0].key, 1.5, measured), None);
        let mut stopped = results(0.1);
        stopped[3].complete = false;
        let (own, intervals) = Intervals::split(stopped);
        assert_eq!(intervals.of_write_amplification(&own[0].key, 1.5, measured), None);
    }
}
