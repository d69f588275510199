//! What an experiment claims of its results, and the published numbers it compares them with.
//!
//! Claims are written before the run and judged after it; nothing here knows a particular experiment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::{CellKey, Experiment};
pub use crate::metric::{Metric, Statistic};
use crate::run::CellResult;
use crate::source;

/// Cells by their coordinates: `device`, `variant`, or the name of a grid axis, to a value. What is left out is open.
pub type Selector = BTreeMap<String, String>;

/// Numbers from a paper, for one cell or along one axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The cells.
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
}

/// Something that has to hold. Exactly one of the rules is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in words.
    pub what: String,
    /// Who says so.
    pub source: String,
    /// Mean absolute difference from the published drive.
    #[serde(default)]
    pub mean_error: Option<ErrorBound>,
    /// Difference from every published number, as a share of it.
    #[serde(default)]
    pub relative_error: Option<ErrorBound>,
    /// Mean of these shares.
    #[serde(default)]
    pub mean_relative_error: Option<MeanRelativeError>,
    /// A range for every selected cell.
    #[serde(default)]
    pub within: Option<Within>,
    /// One cell below another, for every combination of the open coordinates.
    #[serde(default)]
    pub less: Option<Less>,
    /// One cell relative to another.
    #[serde(default)]
    pub ratio: Option<Ratio>,
    /// Where two curves cross.
    #[serde(default)]
    pub crossover: Option<Crossover>,
}

/// See [`Claim::mean_error`] and [`Claim::relative_error`].
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

/// See [`Claim::mean_relative_error`]. One of the bounds is given.
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

/// See [`Claim::within`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// The cells.
    pub at: Selector,
    /// What is measured.
    #[serde(default)]
    pub metric: Metric,
    /// Least value.
    #[serde(default = "lowest")]
    pub low: f64,
    /// Greatest value.
    #[serde(default = "highest")]
    pub high: f64,
}

fn lowest() -> f64 {
    f64::NEG_INFINITY
}

fn highest() -> f64 {
    f64::INFINITY
}

/// See [`Claim::less`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Less {
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

/// See [`Claim::ratio`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Numerator.
    pub of: Selector,
    /// Denominator.
    pub to: Selector,
    /// What is measured.
    #[serde(default)]
    pub metric: Metric,
    /// What is measured of the denominator; the same if it is left out.
    #[serde(default)]
    pub to_metric: Option<Metric>,
    /// Least ratio.
    #[serde(default = "lowest")]
    pub low: f64,
    /// Greatest ratio.
    #[serde(default = "highest")]
    pub high: f64,
}

/// See [`Claim::crossover`].
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
    /// Least position.
    pub low: f64,
    /// Greatest position.
    pub high: f64,
}

/// The verdict on a claim.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The claim in words.
    pub what: String,
    /// Who says so.
    pub source: String,
    /// Whether it holds; a cell that was not measured fails its claims.
    pub holds: bool,
    /// What was found, against what is allowed.
    pub found: String,
}

/// A published number beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The cell.
    pub key: CellKey,
    /// What was measured.
    pub metric: Metric,
    /// The paper's drive.
    pub drive: Option<f64>,
    /// The paper's emulator.
    pub emulator: Option<f64>,
    /// Ours; `None` if the cell was not run.
    pub ours: Option<f64>,
    /// Table or figure.
    pub source: String,
}

impl Comparison {
    /// Ours less the drive's, or the emulator's where the paper measured no drive.
    pub fn error(&self) -> Option<f64> {
        Some(self.ours? - self.drive.or(self.emulator)?)
    }

    /// The error as a share of the published number.
    pub fn relative_error(&self) -> Option<f64> {
        let published = self.drive.or(self.emulator)?;
        (published != 0.0).then_some(self.error()? / published)
    }

    /// The published emulator's error as a share of the drive's number.
    fn emulator_relative_error(&self) -> Option<f64> {
        let drive = self.drive.filter(|drive| *drive != 0.0)?;
        Some((self.emulator? - drive) / drive)
    }
}

/// The results of an experiment, by cell, averaged over seeds.
pub struct Judge<'a> {
    experiment: &'a Experiment,
    results: &'a [CellResult],
    tail_capacities: f64,
}

impl<'a> Judge<'a> {
    /// Judges these results.
    pub fn new(experiment: &'a Experiment, results: &'a [CellResult], tail_capacities: f64) -> Judge<'a> {
        Judge {
            experiment,
            results,
            tail_capacities,
        }
    }

    /// Window of the steady-state metric, in capacities.
    pub fn tail_capacities(&self) -> f64 {
        self.tail_capacities
    }

    /// A metric of a cell, averaged over seeds.
    pub fn value(&self, key: &CellKey, metric: &Metric) -> Option<f64> {
        let seeds = self
            .results
            .iter()
            .filter(|result| result.key == *key && result.complete);
        let values: Option<Vec<f64>> = seeds
            .map(|result| metric.measure(result, self.tail_capacities))
            .collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Every published number beside ours, in the order of the file.
    pub fn comparisons(&self) -> Vec<Comparison> {
        self.experiment
            .published
            .iter()
            .flat_map(|published| self.compare(published))
            .collect()
    }

    fn compare(&self, published: &Published) -> Vec<Comparison> {
        let mut rows: Vec<(Selector, Metric)> = vec![(published.at.clone(), published.metric.clone())];
        if let Some(axis) = &published.along {
            let at = |value: &str| {
                let mut at = published.at.clone();
                at.insert(axis.clone(), value.to_string());
                (at, published.metric.clone())
            };
            rows = self.experiment.axis_values(axis).into_iter().map(at).collect();
        } else if !published.statistics.is_empty() {
            let statistics = published.statistics.iter();
            let metric = |statistic: &Statistic| published.metric.with_statistic(Some(*statistic));
            rows = statistics
                .map(|statistic| (published.at.clone(), metric(statistic)))
                .collect();
        }
        let rows = rows.into_iter().enumerate();
        rows.filter_map(|(index, (at, metric))| {
            let key = self
                .experiment
                .keys()
                .into_iter()
                .find(|key| self.experiment.selects(&at, key))?;
            Some(Comparison {
                ours: self.value(&key, &metric),
                key,
                metric,
                drive: published.drive.get(index).copied(),
                emulator: published.emulator.get(index).copied(),
                source: published.source.clone(),
            })
        })
        .collect()
    }

    /// All verdicts, in the order of the file.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let judge = |claim: &Claim| {
            let (holds, found) = self.judge(claim);
            Verdict {
                what: claim.what.clone(),
                source: claim.source.clone(),
                holds,
                found,
            }
        };
        self.experiment.claims.iter().map(judge).collect()
    }

    fn judge(&self, claim: &Claim) -> (bool, String) {
        if let Some(rule) = &claim.mean_error {
            self.judge_mean_error(rule)
        } else if let Some(rule) = &claim.relative_error {
            self.judge_relative_error(rule)
        } else if let Some(rule) = &claim.mean_relative_error {
            self.judge_mean_relative_error(rule)
        } else if let Some(rule) = &claim.within {
            self.judge_within(rule)
        } else if let Some(rule) = &claim.less {
            let allowed = |left: f64, right: f64| left + rule.margin <= right;
            let metrics = [&rule.metric, &rule.metric];
            self.judge_pairs(&rule.left, &rule.right, metrics, allowed, |left, right| {
                format!("{left:.3} against {right:.3}")
            })
        } else if let Some(rule) = &claim.ratio {
            let allowed = |of: f64, to: f64| (rule.low..=rule.high).contains(&(of / to));
            let metrics = [&rule.metric, rule.to_metric.as_ref().unwrap_or(&rule.metric)];
            let (holds, found) = self.judge_pairs(&rule.of, &rule.to, metrics, allowed, |of, to| {
                format!("{:.3} = {of:.3} / {to:.3}", of / to)
            });
            (holds, format!("{found}, allowed {}", range(rule.low, rule.high)))
        } else if let Some(rule) = &claim.crossover {
            self.judge_crossover(rule)
        } else {
            unreachable!("a claim without a rule is refused when the experiment is read")
        }
    }

    /// Published rows with these coordinates, and this metric if one is given.
    fn published(&self, over: &Selector, metric: Option<&Metric>) -> Vec<Comparison> {
        let contains = |published: &&Published| over.iter().all(|(name, value)| published.at.get(name) == Some(value));
        let rows = self.experiment.published.iter().filter(contains);
        let rows = rows.flat_map(|row| self.compare(row));
        rows.filter(|row| metric.is_none_or(|metric| metric.covers(&row.metric)))
            .collect()
    }

    fn judge_mean_error(&self, rule: &ErrorBound) -> (bool, String) {
        let rows = self.published(&rule.over, rule.metric.as_ref());
        match mean_of(&rows, Comparison::error) {
            Err(missing) => (false, missing),
            Ok(mean) => (
                mean <= rule.at_most,
                format!("{mean:.3} over {} cells, allowed {:.3}", rows.len(), rule.at_most),
            ),
        }
    }

    fn judge_relative_error(&self, rule: &ErrorBound) -> (bool, String) {
        let rows = self.published(&rule.over, rule.metric.as_ref());
        if let Err(missing) = mean_of(&rows, Comparison::relative_error) {
            return (false, missing);
        }
        let error = |row: &Comparison| row.relative_error().unwrap_or(0.0);
        let worst = rows
            .iter()
            .max_by(|one, other| error(one).abs().total_cmp(&error(other).abs()));
        let worst = worst.expect("there is a row");
        let found = format!(
            "at most {:+.1} % ({} at {}) in {} numbers, allowed {:.1} %",
            error(worst) * 100.0,
            worst.metric.name(),
            worst.key,
            rows.len(),
            rule.at_most * 100.0
        );
        (error(worst).abs() <= rule.at_most, found)
    }

    fn judge_mean_relative_error(&self, rule: &MeanRelativeError) -> (bool, String) {
        let rows = self.published(&rule.over, rule.metric.as_ref());
        let ours = match mean_of(&rows, Comparison::relative_error) {
            Ok(mean) => mean,
            Err(missing) => return (false, missing),
        };
        let found = format!("{:.1} % over {} numbers", ours * 100.0, rows.len());
        if let Some(at_most) = rule.at_most {
            return (ours <= at_most, format!("{found}, allowed {:.1} %", at_most * 100.0));
        }
        match mean_of(&rows, Comparison::emulator_relative_error) {
            Err(_) => (false, format!("{found}, and the emulator has not as many")),
            Ok(emulator) => {
                let allowed = emulator * rule.of_emulator.expect("checked when the experiment was read");
                let found = format!(
                    "{found}, the emulator's {:.1} %, allowed {:.1} %",
                    emulator * 100.0,
                    allowed * 100.0
                );
                (ours <= allowed, found)
            }
        }
    }

    fn judge_within(&self, rule: &Within) -> (bool, String) {
        let mut found = Vec::new();
        let mut holds = true;
        for key in self.selected(&rule.at) {
            match self.value(&key, &rule.metric) {
                Some(value) => {
                    holds &= (rule.low..=rule.high).contains(&value);
                    found.push(value);
                }
                None => return (false, format!("{key} was not measured")),
            }
        }
        let spread = (
            found.iter().copied().fold(f64::MAX, f64::min),
            found.iter().copied().fold(f64::MIN, f64::max),
        );
        let found = match found.len() {
            0 => return (false, "no cell was measured".to_string()),
            1 => format!("{:.3}", spread.0),
            count => format!("{:.3} to {:.3} in {count} cells", spread.0, spread.1),
        };
        (holds, format!("{found}, allowed {}", range(rule.low, rule.high)))
    }

    /// Applies a test to every pair of cells that differ only in what the selectors say; reports the worst pair first.
    fn judge_pairs(
        &self,
        left: &Selector,
        right: &Selector,
        metrics: [&Metric; 2],
        allowed: impl Fn(f64, f64) -> bool,
        print: impl Fn(f64, f64) -> String,
    ) -> (bool, String) {
        let mut failed = None;
        let mut last = None;
        let mut count = 0;
        for key in self.selected(left) {
            let other = self.experiment.moved(&key, right);
            let (Some(a), Some(b)) = (self.value(&key, metrics[0]), self.value(&other, metrics[1])) else {
                return (false, format!("{key} or {other} was not measured"));
            };
            count += 1;
            last = Some((a, b));
            if !allowed(a, b) && failed.is_none() {
                failed = Some(format!("{} at {key}", print(a, b)));
            }
        }
        match (failed, last) {
            (Some(failed), _) => (false, failed),
            (None, Some((a, b))) if count == 1 => (true, print(a, b)),
            (None, Some(_)) => (true, format!("in all {count} cells")),
            (None, None) => (false, "no cell was measured".to_string()),
        }
    }

    fn judge_crossover(&self, rule: &Crossover) -> (bool, String) {
        let mut points = Vec::new();
        for value in self.experiment.axis_values(&rule.along) {
            let mut at = rule.left.clone();
            at.insert(rule.along.clone(), value.to_string());
            let Some(key) = self.selected(&at).into_iter().next() else {
                continue;
            };
            let other = self.experiment.moved(&key, &rule.right);
            let (Some(a), Some(b)) = (self.value(&key, &rule.metric), self.value(&other, &rule.metric)) else {
                return (false, format!("{key} or {other} was not measured"));
            };
            let position: f64 = value.parse().expect("checked when the experiment was read");
            points.push((position, a - b));
        }
        let crossing = points.windows(2).find(|pair| pair[0].1 < 0.0 && pair[1].1 >= 0.0);
        let Some([before, after]) = crossing else {
            return (
                false,
                format!("the curves do not cross, allowed {}", range(rule.low, rule.high)),
            );
        };
        let position = before.0 + (after.0 - before.0) * before.1 / (before.1 - after.1);
        let holds = (rule.low..=rule.high).contains(&position);
        (
            holds,
            format!("at {position:.3}, allowed {}", range(rule.low, rule.high)),
        )
    }

    fn selected(&self, selector: &Selector) -> Vec<CellKey> {
        let keys = self.experiment.keys().into_iter();
        keys.filter(|key| self.experiment.selects(selector, key)).collect()
    }
}

/// Mean of the absolute errors; or how many there are not.
fn mean_of(rows: &[Comparison], error: fn(&Comparison) -> Option<f64>) -> Result<f64, String> {
    let errors: Vec<f64> = rows.iter().filter_map(error).map(f64::abs).collect();
    if errors.is_empty() || errors.len() < rows.len() {
        return Err(format!(
            "{} of {} cells were not measured",
            rows.len() - errors.len(),
            rows.len()
        ));
    }
    Ok(errors.iter().sum::<f64>() / errors.len() as f64)
}

fn range(low: f64, high: f64) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("{low:.3} to {high:.3}"),
        (true, false) => format!("at least {low:.3}"),
        _ => format!("at most {high:.3}"),
    }
}

impl Experiment {
    /// Names of the coordinates of a cell.
    fn coordinates(&self) -> Vec<&str> {
        ["device", "variant"]
            .into_iter()
            .chain(self.grid.iter().map(|axis| axis.axis.as_str()))
            .collect()
    }

    /// Values on an axis; `device` and `variant` are axes too.
    pub fn axis_values(&self, axis: &str) -> Vec<&str> {
        match axis {
            "device" => self.devices.iter().map(String::as_str).collect(),
            "variant" => self.variants.iter().map(|variant| variant.name.as_str()).collect(),
            _ => {
                let axis = self.grid.iter().find(|entry| entry.axis == axis);
                axis.into_iter()
                    .flat_map(|axis| &axis.values)
                    .map(|value| value.name.as_str())
                    .collect()
            }
        }
    }

    /// All cells.
    pub fn keys(&self) -> Vec<CellKey> {
        let variants: Vec<String> = match self.variants.len() {
            0 => vec![String::new()],
            _ => self.variants.iter().map(|variant| variant.name.clone()).collect(),
        };
        let mut points: Vec<Vec<String>> = vec![Vec::new()];
        for axis in &self.grid {
            let extend = |point: &Vec<String>| {
                let values = axis.values.iter().map(|value| value.name.clone());
                values
                    .map(|value| [point.as_slice(), &[value]].concat())
                    .collect::<Vec<_>>()
            };
            points = points.iter().flat_map(extend).collect();
        }
        let mut keys = Vec::new();
        for device in &self.devices {
            for point in &points {
                for variant in &variants {
                    keys.push(CellKey {
                        device: device.clone(),
                        variant: variant.clone(),
                        grid: point.clone(),
                    });
                }
            }
        }
        keys
    }

    fn selects(&self, selector: &Selector, key: &CellKey) -> bool {
        selector
            .iter()
            .all(|(name, value)| self.coordinate(key, name) == Some(value))
    }

    fn coordinate<'a>(&self, key: &'a CellKey, name: &str) -> Option<&'a String> {
        match name {
            "device" => Some(&key.device),
            "variant" => Some(&key.variant),
            _ => key.grid.get(self.grid.iter().position(|axis| axis.axis == name)?),
        }
    }

    /// The cell with some coordinates changed.
    fn moved(&self, key: &CellKey, to: &Selector) -> CellKey {
        let mut key = key.clone();
        for (name, value) in to {
            match name.as_str() {
                "device" => key.device.clone_from(value),
                "variant" => key.variant.clone_from(value),
                _ => {
                    let axis = self.grid.iter().position(|axis| axis.axis == *name);
                    key.grid[axis.expect("selectors are checked")].clone_from(value);
                }
            }
        }
        key
    }

    fn check_selector(&self, selector: &Selector) -> Result<(), String> {
        for (name, value) in selector {
            if !self.coordinates().contains(&name.as_str()) {
                return Err(source::unknown_key(name, self.coordinates()));
            }
            if !self.axis_values(name).contains(&value.as_str()) {
                return Err(format!(
                    "{name} = {value:?}: {}",
                    source::unknown_key(value, self.axis_values(name))
                ));
            }
        }
        Ok(())
    }
}

impl Claim {
    pub(crate) fn check(&self, experiment: &Experiment) -> Result<(), String> {
        let place = |problem: String| format!("claim {:?}: {problem}", self.what);
        let rules = [
            self.mean_error.is_some(),
            self.relative_error.is_some(),
            self.mean_relative_error.is_some(),
            self.within.is_some(),
            self.less.is_some(),
            self.ratio.is_some(),
            self.crossover.is_some(),
        ];
        if rules.iter().filter(|given| **given).count() != 1 {
            return Err(place(
                "give exactly one of mean_error, relative_error, mean_relative_error, within, less, ratio, crossover"
                    .to_string(),
            ));
        }
        let mut selectors: Vec<&Selector> = Vec::new();
        selectors.extend(self.mean_error.iter().map(|rule| &rule.over));
        selectors.extend(self.relative_error.iter().map(|rule| &rule.over));
        selectors.extend(self.mean_relative_error.iter().map(|rule| &rule.over));
        selectors.extend(self.within.iter().map(|rule| &rule.at));
        selectors.extend(self.less.iter().flat_map(|rule| [&rule.left, &rule.right]));
        selectors.extend(self.ratio.iter().flat_map(|rule| [&rule.of, &rule.to]));
        selectors.extend(self.crossover.iter().flat_map(|rule| [&rule.left, &rule.right]));
        for selector in selectors {
            experiment.check_selector(selector).map_err(place)?;
        }
        for metric in self.measured() {
            metric.check().map_err(place)?;
        }
        let bounds = self.mean_relative_error.as_ref();
        if bounds.is_some_and(|rule| rule.at_most.is_some() == rule.of_emulator.is_some()) {
            return Err(place(
                "mean_relative_error: give either at_most or of_emulator".to_string(),
            ));
        }
        if let Some(rule) = &self.crossover {
            let values = experiment.axis_values(&rule.along);
            if values.is_empty() || values.iter().any(|value| value.parse::<f64>().is_err()) {
                return Err(place(format!(
                    "crossover along {:?}: is not an axis of numbers",
                    rule.along
                )));
            }
        }
        Ok(())
    }
}

impl Claim {
    /// Metrics that must have a value.
    fn measured(&self) -> impl Iterator<Item = &Metric> {
        let within = self.within.iter().map(|rule| &rule.metric);
        let less = self.less.iter().map(|rule| &rule.metric);
        let ratio = self
            .ratio
            .iter()
            .flat_map(|rule| [Some(&rule.metric), rule.to_metric.as_ref()].into_iter().flatten());
        let crossover = self.crossover.iter().map(|rule| &rule.metric);
        within.chain(less).chain(ratio).chain(crossover)
    }
}

impl Published {
    pub(crate) fn check(&self, experiment: &Experiment) -> Result<(), String> {
        let place = |problem: String| format!("published {}: {problem}", self.source);
        experiment.check_selector(&self.at).map_err(place)?;
        if !self.statistics.is_empty() && (self.along.is_some() || !matches!(self.metric, Metric::LatencyUs(_))) {
            return Err(place(
                "statistics go with metric latency_us and without along".to_string(),
            ));
        }
        let first = self.statistics.first().copied();
        self.metric.with_statistic(first).check().map_err(place)?;
        let length = match &self.along {
            None => self.statistics.len().max(1),
            Some(axis) => experiment.axis_values(axis).len(),
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
