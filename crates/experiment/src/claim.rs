//! Claims of an experiment about its results, and the published numbers for comparison, as data.
//!
//! Authors write claims before the run. `judge` judges them after it. This module knows no
//! particular experiment.

use serde::{Deserialize, Deserializer};
use toml::value::Date;

use crate::coordinates::{CellSelector, ExperimentAxes};
use crate::metric::{LatencyStatistic, Metric};

/// Numbers from a paper, for one cell or along one axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperFigures {
    pub at: CellSelector,
    /// Axis of the lists below, in the order of its values. Without it the lists have one entry.
    pub along: Option<String>,
    /// Numbers measured on the real drive.
    #[serde(default)]
    pub drive: Vec<f64>,
    /// Numbers measured on the paper's emulator.
    #[serde(default)]
    pub emulator: Vec<f64>,
    #[serde(default)]
    pub metric: Metric,
    /// Cell of the denominator, if the numbers are quotients of two cells. It differs in these
    /// coordinates.
    pub relative_to: Option<CellSelector>,
    /// Statistics of a latency, as the index of the lists instead of an axis.
    #[serde(default)]
    pub statistics: Vec<LatencyStatistic>,
    pub source: String,
    /// True if settings of the experiment were fitted to these numbers, so they do not test it.
    #[serde(default)]
    pub fitted: bool,
    /// Reason why these numbers say nothing about the model. Without one, and not fitted, they are
    /// predicted.
    pub not_comparable: Option<String>,
}

/// A rule that was made weaker or removed, for the record.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerEntry {
    pub rule: String,
    pub old: String,
    /// Bound after the change, or `removed`.
    pub new: String,
    pub reason: String,
    pub date: Date,
}

/// Cells without published number. Our value appears among the published ones, with its interval.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictedCells {
    /// Cells. Missing coordinates are open.
    #[serde(default)]
    pub at: CellSelector,
    #[serde(default)]
    pub metric: Metric,
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub statement: String,
    pub source: String,
    pub quick: QuickTreatment,
    pub rule: ClaimRule,
}

/// Treatment of a claim in the quick form, in which tests detect a violation early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "QuickMark")]
pub enum QuickTreatment {
    /// The claim must hold.
    Judged,
    /// The claim cannot hold at this size. If it does, it should be judged.
    #[default]
    TooSmall,
    /// The claim may hold by chance, for this reason.
    ByChance(String),
}

/// Mark in a file: `true`, `false`, or the reason why success means nothing.
#[derive(Deserialize)]
#[serde(untagged)]
enum QuickMark {
    Judged(bool),
    ByChance(String),
}

impl From<QuickMark> for QuickTreatment {
    fn from(mark: QuickMark) -> QuickTreatment {
        match mark {
            QuickMark::Judged(true) => QuickTreatment::Judged,
            QuickMark::Judged(false) => QuickTreatment::TooSmall,
            QuickMark::ByChance(reason) => QuickTreatment::ByChance(reason),
        }
    }
}

/// Condition of a claim, a key in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimRule {
    /// Mean absolute difference from the published drive.
    MeanError(ErrorBound),
    /// Difference from every published number, relative to it.
    RelativeError(ErrorBound),
    /// Mean of the relative differences.
    MeanRelativeError(MeanRelativeError),
    /// A range for every selected cell.
    Within(ValueInterval),
    /// One cell below another, for every combination of the open coordinates.
    Less(Inequality),
    /// One cell relative to another.
    Ratio(Ratio),
    /// Crossing of two curves.
    Crossover(Crossover),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorBound {
    /// Published rows to average: those whose coordinates contain these.
    pub over: CellSelector,
    pub metric: Option<Metric>,
    /// Maximum mean absolute error, or maximum relative one (0.05 for 5 %).
    pub at_most: f64,
}

/// See [`ClaimRule::MeanRelativeError`]. A claim sets exactly one of the limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeanRelativeError {
    pub over: CellSelector,
    pub metric: Option<Metric>,
    /// Maximum mean relative error.
    pub at_most: Option<f64>,
    /// Maximum as a multiple of the published emulator's mean relative error.
    pub of_emulator: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueInterval {
    pub at: CellSelector,
    #[serde(default)]
    pub metric: Metric,
    #[serde(default = "lowest")]
    pub low: f64,
    #[serde(default = "highest")]
    pub high: f64,
}

fn lowest() -> f64 {
    f64::NEG_INFINITY
}

fn highest() -> f64 {
    f64::INFINITY
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inequality {
    /// Smaller cells.
    pub left: CellSelector,
    /// Larger cells.
    pub right: CellSelector,
    #[serde(default)]
    pub metric: Metric,
    /// Minimum difference. A negative value allows that much excess.
    #[serde(default)]
    pub margin: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    pub of: CellSelector,
    pub to: CellSelector,
    #[serde(default)]
    pub metric: Metric,
    /// Metric of the denominator. Default: `metric`.
    pub to_metric: Option<Metric>,
    #[serde(default = "lowest")]
    pub low: f64,
    #[serde(default = "highest")]
    pub high: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crossover {
    /// Axis with numeric values.
    pub along: String,
    /// The curve that is lower at first.
    pub left: CellSelector,
    /// The curve that is lower in the end.
    pub right: CellSelector,
    #[serde(default)]
    pub metric: Metric,
    pub low: f64,
    pub high: f64,
}

/// A claim as in a file, with its rule beside its words.
#[derive(Deserialize)]
struct ClaimTable {
    what: String,
    source: String,
    #[serde(default)]
    quick: QuickTreatment,
    #[serde(flatten)]
    rules: toml::Table,
}

impl<'de> Deserialize<'de> for Claim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Claim, D::Error> {
        let ClaimTable { what, source, quick, rules } = ClaimTable::deserialize(deserializer)?;
        let problem = |problem: String| serde::de::Error::custom(format!("claim {what:?}: {problem}"));
        if rules.len() != 1 {
            return Err(problem(
                "the claim needs exactly one rule. Rules are mean_error, relative_error, mean_relative_error, \
                 within, less, ratio and crossover"
                    .to_string(),
            ));
        }
        let rule = base::read_value(rules).map_err(|misfit| problem(misfit.message()))?;
        Ok(Claim { statement: what, source, quick, rule })
    }
}

impl Claim {
    /// Rejects a claim that an experiment with these coordinates cannot judge.
    pub(crate) fn check(&self, coordinates: &ExperimentAxes) -> Result<(), String> {
        let place = |problem: String| format!("claim {:?}: {problem}", self.statement);
        self.rule.check(coordinates).map_err(place)
    }
}

impl ClaimRule {
    fn check(&self, coordinates: &ExperimentAxes) -> Result<(), String> {
        for selector in self.selectors() {
            coordinates.check(selector)?;
        }
        for metric in self.metrics() {
            metric.check()?;
        }
        match self {
            ClaimRule::MeanRelativeError(rule) if rule.at_most.is_some() == rule.of_emulator.is_some() => {
                Err("mean_relative_error needs either at_most or of_emulator".to_string())
            }
            ClaimRule::Crossover(rule) => {
                let values = coordinates.values(&rule.along);
                if values.is_empty() || values.iter().any(|value| value.parse::<f64>().is_err()) {
                    return Err(format!(
                        "crossover needs an axis of numbers, and {:?} is not one. Name another axis in `along`",
                        rule.along
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn selectors(&self) -> Vec<&CellSelector> {
        match self {
            ClaimRule::MeanError(rule) | ClaimRule::RelativeError(rule) => vec![&rule.over],
            ClaimRule::MeanRelativeError(rule) => vec![&rule.over],
            ClaimRule::Within(rule) => vec![&rule.at],
            ClaimRule::Less(rule) => vec![&rule.left, &rule.right],
            ClaimRule::Ratio(rule) => vec![&rule.of, &rule.to],
            ClaimRule::Crossover(rule) => vec![&rule.left, &rule.right],
        }
    }

    /// Metrics that need a value. Those of errors may omit the statistic.
    fn metrics(&self) -> Vec<&Metric> {
        match self {
            ClaimRule::MeanError(_) | ClaimRule::RelativeError(_) | ClaimRule::MeanRelativeError(_) => Vec::new(),
            ClaimRule::Within(rule) => vec![&rule.metric],
            ClaimRule::Less(rule) => vec![&rule.metric],
            ClaimRule::Ratio(rule) => [&rule.metric].into_iter().chain(&rule.to_metric).collect(),
            ClaimRule::Crossover(rule) => vec![&rule.metric],
        }
    }
}

impl LedgerEntry {
    /// Rejects an entry that records no change.
    pub(crate) fn check(&self) -> Result<(), String> {
        let place = |problem: &str| Err(format!("ledger {:?}: {problem}", self.rule));
        if [&self.rule, &self.old, &self.new, &self.reason].contains(&&String::new()) {
            return place("rule, old, new and reason must not be empty");
        }
        if self.old == self.new {
            return place("old and new are equal. Give the bounds before and after the change");
        }
        Ok(())
    }
}

impl PredictedCells {
    /// Rejects cells that an experiment with these coordinates lacks.
    pub(crate) fn check(&self, coordinates: &ExperimentAxes) -> Result<(), String> {
        let place = |problem: String| format!("predicted: {problem}");
        coordinates.check(&self.at).map_err(place)?;
        self.metric.check().map_err(place)
    }
}

impl PaperFigures {
    /// Rejects numbers that do not fit an experiment with these coordinates.
    pub(crate) fn check(&self, coordinates: &ExperimentAxes) -> Result<(), String> {
        let place = |problem: String| format!("published {}: {problem}", self.source);
        for selector in [&self.at].into_iter().chain(&self.relative_to) {
            coordinates.check(selector).map_err(place)?;
        }
        if !self.statistics.is_empty() && (self.along.is_some() || !matches!(self.metric, Metric::LatencyUs(_))) {
            return Err(place("statistics need the metric latency_us and exclude along".to_string()));
        }
        let first = self.statistics.first().copied();
        self.metric.with_statistic(first).check().map_err(place)?;
        let length = match &self.along {
            None => self.statistics.len().max(1),
            Some(axis) => coordinates.values(axis).len(),
        };
        for (name, list) in [("drive", &self.drive), ("emulator", &self.emulator)] {
            if !list.is_empty() && list.len() != length {
                return Err(place(format!("{name} has {} numbers instead of {length}", list.len())));
            }
        }
        if self.drive.is_empty() && self.emulator.is_empty() {
            return Err(place("the row has no numbers. Give those of the drive or of the emulator".to_string()));
        }
        if self.not_comparable.as_ref().is_some_and(|reason| self.fitted || reason.is_empty()) {
            return Err(place(
                "not_comparable needs a reason, and excludes fitted. Give the reason, or remove a key".to_string(),
            ));
        }
        Ok(())
    }
}
