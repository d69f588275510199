//! What an experiment claims of its results, and the published numbers it compares them with: data, as experiments
//! write it.
//!
//! Claims are written before the run; `judge` judges them after it. Nothing here knows a particular experiment.

use serde::{Deserialize, Deserializer};

use crate::coordinates::{Coordinates, Selector};
use crate::metric::{Metric, Statistic};

/// Numbers from a paper, for one cell or along one axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperFigures {
    pub at: Selector,
    /// Axis that the lists below follow, in the order of its values; without it the lists have one entry.
    #[serde(default)]
    pub along: Option<String>,
    /// Measured on the real drive.
    #[serde(default)]
    pub drive: Vec<f64>,
    /// Measured on the paper's emulator.
    #[serde(default)]
    pub emulator: Vec<f64>,
    /// What was measured.
    #[serde(default)]
    pub metric: Metric,
    /// Statistics of a latency that the lists follow, instead of an axis.
    #[serde(default)]
    pub statistics: Vec<Statistic>,
    /// Table or figure.
    pub source: String,
    /// Settings of the experiment were fitted to these numbers, so that they are no test of it.
    #[serde(default)]
    pub fitted: bool,
}

/// Cells of which nobody has published a number: ours stands among the published ones, with its interval.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// The cells; what it leaves out is open.
    #[serde(default)]
    pub at: Selector,
    #[serde(default)]
    pub metric: Metric,
}

/// Something that has to hold.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim in words.
    pub what: String,
    /// Who says so.
    pub source: String,
    /// Whether it has to hold in the quick form too.
    pub quick: Quick,
    /// What has to hold.
    pub rule: Rule,
}

/// Whether a claim is judged in the quick form, where tests see it broken the minute it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "QuickMark")]
pub enum Quick {
    /// It has to hold there.
    Judged,
    /// It cannot hold at a size so small; when it does, it is time to judge it.
    #[default]
    TooSmall,
    /// It may hold there by chance, for this reason.
    ByChance(String),
}

/// The mark as a file has it: `true`, `false`, or the reason for which holding means nothing.
#[derive(Deserialize)]
#[serde(untagged)]
enum QuickMark {
    Judged(bool),
    ByChance(String),
}

impl From<QuickMark> for Quick {
    fn from(mark: QuickMark) -> Quick {
        match mark {
            QuickMark::Judged(true) => Quick::Judged,
            QuickMark::Judged(false) => Quick::TooSmall,
            QuickMark::ByChance(reason) => Quick::ByChance(reason),
        }
    }
}

/// What has to hold, as a key of the claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Mean absolute difference from the published drive.
    MeanError(ErrorBound),
    /// Difference from every published number, as a share of it.
    RelativeError(ErrorBound),
    /// Mean of these shares.
    MeanRelativeError(MeanRelativeError),
    /// A range for every selected cell.
    Within(Interval),
    /// One cell below another, for every combination of the open coordinates.
    Less(Inequality),
    /// One cell relative to another.
    Ratio(Ratio),
    /// Where two curves cross.
    Crossover(Crossover),
}

/// See [`Rule::MeanError`] and [`Rule::RelativeError`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorBound {
    /// Published rows to average over: those whose coordinates contain these.
    pub over: Selector,
    /// Of these, the ones with this metric; all if it is left out.
    #[serde(default)]
    pub metric: Option<Metric>,
    /// Greatest mean absolute error, or greatest share: 0.05 for 5 %.
    pub at_most: f64,
}

/// See [`Rule::MeanRelativeError`]. One of the bounds is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeanRelativeError {
    /// As in [`ErrorBound`].
    pub over: Selector,
    /// As in [`ErrorBound`].
    #[serde(default)]
    pub metric: Option<Metric>,
    /// Greatest mean share.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// At most this multiple of the published emulator's own mean share.
    #[serde(default)]
    pub of_emulator: Option<f64>,
}

/// See [`Rule::Within`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    pub at: Selector,
    /// What is measured.
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

/// See [`Rule::Less`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inequality {
    /// The smaller ones.
    pub left: Selector,
    /// The larger ones.
    pub right: Selector,
    /// What is measured.
    #[serde(default)]
    pub metric: Metric,
    /// How much smaller, at least; negative allows that much more.
    #[serde(default)]
    pub margin: f64,
}

/// See [`Rule::Ratio`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    pub of: Selector,
    pub to: Selector,
    /// What is measured.
    #[serde(default)]
    pub metric: Metric,
    /// What is measured of the denominator; the same if it is left out.
    #[serde(default)]
    pub to_metric: Option<Metric>,
    #[serde(default = "lowest")]
    pub low: f64,
    #[serde(default = "highest")]
    pub high: f64,
}

/// See [`Rule::Crossover`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crossover {
    /// Axis with numbers for values.
    pub along: String,
    /// The curve that is lower at first.
    pub left: Selector,
    /// The curve that is lower in the end.
    pub right: Selector,
    /// What is measured.
    #[serde(default)]
    pub metric: Metric,
    pub low: f64,
    pub high: f64,
}

/// A claim as it stands in a file, its rule beside its words.
#[derive(Deserialize)]
struct ClaimTable {
    what: String,
    source: String,
    #[serde(default)]
    quick: Quick,
    #[serde(flatten)]
    rules: toml::Table,
}

impl<'de> Deserialize<'de> for Claim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Claim, D::Error> {
        let ClaimTable {
            what,
            source,
            quick,
            rules,
        } = ClaimTable::deserialize(deserializer)?;
        let problem = |problem: String| serde::de::Error::custom(format!("claim {what:?}: {problem}"));
        if rules.len() != 1 {
            return Err(problem(
                "give exactly one of mean_error, relative_error, mean_relative_error, within, less, ratio, crossover"
                    .to_string(),
            ));
        }
        let rule: Result<Rule, toml::de::Error> = rules.try_into();
        let rule = rule.map_err(|error| problem(error.message().trim().to_string()))?;
        Ok(Claim {
            what,
            source,
            quick,
            rule,
        })
    }
}

impl Claim {
    /// Refuses what cannot be judged in an experiment with these coordinates.
    pub(crate) fn check(&self, coordinates: &Coordinates) -> Result<(), String> {
        let place = |problem: String| format!("claim {:?}: {problem}", self.what);
        self.rule.check(coordinates).map_err(place)
    }
}

impl Rule {
    fn check(&self, coordinates: &Coordinates) -> Result<(), String> {
        for selector in self.selectors() {
            coordinates.check(selector)?;
        }
        for metric in self.metrics() {
            metric.check()?;
        }
        match self {
            Rule::MeanRelativeError(rule) if rule.at_most.is_some() == rule.of_emulator.is_some() => {
                Err("mean_relative_error: give either at_most or of_emulator".to_string())
            }
            Rule::Crossover(rule) => {
                let values = coordinates.values(&rule.along);
                if values.is_empty() || values.iter().any(|value| value.parse::<f64>().is_err()) {
                    return Err(format!("crossover along {:?}: is not an axis of numbers", rule.along));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn selectors(&self) -> Vec<&Selector> {
        match self {
            Rule::MeanError(rule) | Rule::RelativeError(rule) => vec![&rule.over],
            Rule::MeanRelativeError(rule) => vec![&rule.over],
            Rule::Within(rule) => vec![&rule.at],
            Rule::Less(rule) => vec![&rule.left, &rule.right],
            Rule::Ratio(rule) => vec![&rule.of, &rule.to],
            Rule::Crossover(rule) => vec![&rule.left, &rule.right],
        }
    }

    /// Metrics that must have a value; those of errors may leave the statistic open.
    fn metrics(&self) -> Vec<&Metric> {
        match self {
            Rule::MeanError(_) | Rule::RelativeError(_) | Rule::MeanRelativeError(_) => Vec::new(),
            Rule::Within(rule) => vec![&rule.metric],
            Rule::Less(rule) => vec![&rule.metric],
            Rule::Ratio(rule) => [&rule.metric].into_iter().chain(&rule.to_metric).collect(),
            Rule::Crossover(rule) => vec![&rule.metric],
        }
    }
}

impl Predicted {
    /// Refuses what an experiment with these coordinates does not have.
    pub(crate) fn check(&self, coordinates: &Coordinates) -> Result<(), String> {
        let place = |problem: String| format!("predicted: {problem}");
        coordinates.check(&self.at).map_err(place)?;
        self.metric.check().map_err(place)
    }
}

impl PaperFigures {
    /// Refuses numbers that do not fit an experiment with these coordinates.
    pub(crate) fn check(&self, coordinates: &Coordinates) -> Result<(), String> {
        let place = |problem: String| format!("published {}: {problem}", self.source);
        coordinates.check(&self.at).map_err(place)?;
        if !self.statistics.is_empty() && (self.along.is_some() || !matches!(self.metric, Metric::LatencyUs(_))) {
            return Err(place(
                "statistics go with metric latency_us and without along".to_string(),
            ));
        }
        let first = self.statistics.first().copied();
        self.metric.with_statistic(first).check().map_err(place)?;
        let length = match &self.along {
            None => self.statistics.len().max(1),
            Some(axis) => coordinates.values(axis).len(),
        };
        for (name, list) in [("drive", &self.drive), ("emulator", &self.emulator)] {
            if !list.is_empty() && list.len() != length {
                return Err(place(format!(
                    "{name} has {} numbers, {length} are expected",
                    list.len()
                )));
            }
        }
        if self.drive.is_empty() && self.emulator.is_empty() {
            return Err(place("give numbers of the drive or of the emulator".to_string()));
        }
        Ok(())
    }
}
