//! Checks an experiment's claims and published numbers against its results.
//!
//! ```text
//! Experiment (claims, published) + [RunResult] -> ClaimChecker -> ClaimVerdict, PaperComparison -> rows, report
//! ```

use serde::Serialize;

use crate::interval::{Intervals, NO_INTERVALS, PredictionInterval};
use crate::measurement::measure;
use experiment::claim::{
    Claim, ClaimRule, Crossover, ErrorBound, Inequality, MeanRelativeError, PaperFigures, QuickTreatment, Ratio,
    ValueInterval,
};
use experiment::{CellKey, CellSelector, Experiment, ExperimentAxes, ExperimentForm, LatencyStatistic, Metric};
use simulate::run::{RefusedCell, RunResult};

#[derive(Clone, Debug, Serialize)]
pub struct ClaimVerdict {
    pub what: String,
    pub source: String,
    /// True if the claim holds. A cell without a result fails its claims. `None` if the claim does
    /// not apply to the form that was run.
    pub holds: Option<bool>,
    /// The measured and the allowed values, or the reason why the claim was not judged.
    pub found: String,
}

impl ClaimVerdict {
    /// Number of claims that hold, and number of judged claims.
    pub fn count(verdicts: &[ClaimVerdict]) -> (usize, usize) {
        let judged = verdicts.iter().filter_map(|verdict| verdict.holds);
        judged.fold((0, 0), |(held, judged), holds| (held + usize::from(holds), judged + 1))
    }
}

/// Maximum relative error of a hit.
const HIT_ERROR: f64 = 0.1;

/// Meaning of a published number as a test of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumberStatus {
    /// No setting was fitted to the number.
    Predicted,
    /// Settings were fitted to the number.
    Fitted,
    /// The number says nothing about the model.
    NotComparable,
}

/// A published number and the measured one.
#[derive(Clone, Debug, Serialize)]
pub struct PaperComparison {
    pub key: CellKey,
    pub metric: Metric,
    /// Published number of the paper's drive.
    pub drive: Option<f64>,
    /// Published number of the paper's emulator.
    pub emulator: Option<f64>,
    /// Measured number. `None` if the cell was not run.
    pub ours: Option<f64>,
    /// Interval of the measured number over the ensemble, if it was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<PredictionInterval>,
    pub source: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fitted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<String>,
}

impl PaperComparison {
    /// The drive's number, or the emulator's if the paper measured no drive.
    pub fn published(&self) -> Option<f64> {
        self.drive.or(self.emulator)
    }

    /// Measured number minus the published one.
    pub fn error(&self) -> Option<f64> {
        Some(self.ours? - self.published()?)
    }

    pub fn status(&self) -> NumberStatus {
        match (&self.not_comparable, self.fitted) {
            (Some(_), _) => NumberStatus::NotComparable,
            (None, true) => NumberStatus::Fitted,
            (None, false) => NumberStatus::Predicted,
        }
    }

    /// True if the measured number is within 10 % of the published one, without the rounding error
    /// of the subtraction. `None` if a number is missing.
    pub fn is_hit(&self) -> Option<bool> {
        let published = self.published()?.abs();
        Some(self.error()?.abs() <= published * (HIT_ERROR + 1e-9))
    }

    /// The verdict in words. `None` without a published number.
    pub fn verdict(&self) -> Option<&'static str> {
        self.published()?;
        Some(match (self.status(), self.is_hit()) {
            (NumberStatus::NotComparable, _) => "not comparable",
            (_, None) => "not run",
            (NumberStatus::Fitted, Some(true)) => "fitted, hit",
            (NumberStatus::Fitted, Some(false)) => "fitted, miss",
            (NumberStatus::Predicted, Some(true)) => "hit",
            (NumberStatus::Predicted, Some(false)) => "miss",
        })
    }

    /// The error as a share of the published number.
    pub fn relative_error(&self) -> Option<f64> {
        let published = self.published()?;
        (published != 0.0).then_some(self.error()? / published)
    }

    /// True if the interval contains the drive's write amplification. `None` if a number is
    /// missing, and for other metrics, because an ensemble's residual is known only for write
    /// amplification.
    pub fn is_inside(&self) -> Option<bool> {
        let interval = self.interval.as_ref().filter(|_| self.metric.is_write_amplification())?;
        Some(interval.contains(self.drive?))
    }

    /// Error of the published emulator as a share of the drive's number.
    fn emulator_relative_error(&self) -> Option<f64> {
        let drive = self.drive.filter(|drive| *drive != 0.0)?;
        Some((self.emulator? - drive) / drive)
    }
}

/// Checker of an experiment's claims, with the results by cell, averaged over seeds.
pub struct ClaimChecker<'a> {
    pub experiment: &'a Experiment,
    form: ExperimentForm,
    coordinates: ExperimentAxes,
    keys: Vec<CellKey>,
    pub results: &'a [RunResult],
    /// Window of `tail_write_amplification`, in multiples of the capacity.
    pub tail_drive_writes: f64,
    /// Intervals of the ensembles. None after [`ClaimChecker::new`].
    pub intervals: &'a Intervals,
    /// Cells that could not be run. None after [`ClaimChecker::new`].
    pub refused: &'a [RefusedCell],
}

impl<'a> ClaimChecker<'a> {
    pub fn new(
        experiment: &'a Experiment,
        form: ExperimentForm,
        results: &'a [RunResult],
        tail_drive_writes: f64,
    ) -> ClaimChecker<'a> {
        let coordinates = experiment.coordinates();
        ClaimChecker {
            experiment,
            form,
            keys: coordinates.keys(),
            coordinates,
            results,
            tail_drive_writes,
            intervals: &NO_INTERVALS,
            refused: &[],
        }
    }

    /// A metric of a cell, averaged over seeds.
    pub fn value(&self, key: &CellKey, metric: &Metric) -> Option<f64> {
        let seeds = self.results.iter().filter(|result| result.key == *key && result.complete);
        let values: Option<Vec<f64>> = seeds.map(|result| measure(metric, result, self.tail_drive_writes)).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// A metric of a cell divided by that of the cell with these other coordinates.
    fn quotient(&self, key: &CellKey, to: &CellSelector, metric: &Metric) -> Option<f64> {
        let denominator = self.value(&self.coordinates.moved(key, to), metric)?;
        let numerator = self.value(key, metric)?;
        (denominator != 0.0).then(|| numerator / denominator)
    }

    /// Interval of a metric over the ensemble of the cell's device. `None` if the ensemble was not
    /// run.
    pub fn interval(&self, key: &CellKey, metric: &Metric) -> Option<PredictionInterval> {
        let (intervals, own) = (self.intervals, self.value(key, metric)?);
        let measure = |result: &RunResult| measure(metric, result, self.tail_drive_writes);
        if metric.is_write_amplification() {
            return intervals.of_write_amplification(key, own, |result| measure(result).unwrap_or(own));
        }
        intervals.range(key, own, measure)
    }

    /// The cells with results, in the order of the experiment.
    pub fn measured(&self) -> impl Iterator<Item = &CellKey> {
        let is_measured = |key: &&CellKey| self.results.iter().any(|result| result.key == **key);
        self.keys.iter().filter(is_measured)
    }

    /// All published numbers with the measured ones, in the order of the file. Predictions without
    /// a published number follow.
    pub fn comparisons(&self) -> Vec<PaperComparison> {
        let published = self.experiment.published.iter();
        let mut rows: Vec<PaperComparison> = published.flat_map(|published| self.compare(published)).collect();
        for predicted in &self.experiment.predicted {
            let is_known = |key: &CellKey| rows.iter().any(|row| row.key == *key && row.metric == predicted.metric);
            let keys = self.keys.iter();
            let keys = keys.filter(|key| self.coordinates.selects(&predicted.at, key) && !is_known(key));
            let new: Vec<PaperComparison> = keys.map(|key| self.predict(key, &predicted.metric)).collect();
            rows.extend(new);
        }
        rows
    }

    fn predict(&self, key: &CellKey, metric: &Metric) -> PaperComparison {
        PaperComparison {
            key: key.clone(),
            metric: metric.clone(),
            drive: None,
            emulator: None,
            ours: self.value(key, metric),
            interval: self.interval(key, metric),
            source: "not published".to_string(),
            fitted: false,
            not_comparable: None,
        }
    }

    fn compare(&self, published: &PaperFigures) -> Vec<PaperComparison> {
        let mut rows: Vec<(CellSelector, Metric)> = vec![(published.at.clone(), published.metric.clone())];
        if let Some(axis) = &published.along {
            let at = |value: &String| {
                let mut at = published.at.clone();
                at.insert(axis.clone(), value.clone());
                (at, published.metric.clone())
            };
            rows = self.coordinates.values(axis).iter().map(at).collect();
        } else if !published.statistics.is_empty() {
            let statistics = published.statistics.iter();
            let metric = |statistic: &LatencyStatistic| published.metric.with_statistic(Some(*statistic));
            rows = statistics.map(|statistic| (published.at.clone(), metric(statistic))).collect();
        }
        let rows = rows.into_iter().enumerate();
        rows.filter_map(|(index, (at, metric))| {
            let key = self.keys.iter().find(|key| self.coordinates.selects(&at, key))?.clone();
            let (ours, interval) = match &published.relative_to {
                None => (self.value(&key, &metric), self.interval(&key, &metric)),
                Some(to) => (self.quotient(&key, to, &metric), None),
            };
            Some(PaperComparison {
                ours,
                interval,
                key,
                metric,
                drive: published.drive.get(index).copied(),
                emulator: published.emulator.get(index).copied(),
                source: published.source.clone(),
                fitted: published.fitted,
                not_comparable: published.not_comparable.clone(),
            })
        })
        .collect()
    }

    pub fn verdicts(&self) -> Vec<ClaimVerdict> {
        self.verdicts_on(&self.experiment.claims)
    }

    pub fn regression(&self) -> Vec<ClaimVerdict> {
        self.verdicts_on(&self.experiment.regression)
    }

    fn verdicts_on(&self, claims: &[Claim]) -> Vec<ClaimVerdict> {
        let judge = |claim: &Claim| {
            let (holds, found) = match self.unjudged(claim) {
                Some(reason) => (None, format!("not judged, because {reason}")),
                None => {
                    let (holds, found) = self.judge(&claim.rule);
                    (Some(holds), found)
                }
            };
            ClaimVerdict { what: claim.statement.clone(), source: claim.source.clone(), holds, found }
        };
        claims.iter().map(judge).collect()
    }

    /// Reason why a claim does not apply to these results. `None` if it applies.
    fn unjudged(&self, claim: &Claim) -> Option<String> {
        match (self.form, &claim.quick) {
            (ExperimentForm::Full, _) | (ExperimentForm::Quick, QuickTreatment::Judged) => None,
            (ExperimentForm::Quick, QuickTreatment::TooSmall) => Some("the quick form is too small for it".to_string()),
            (ExperimentForm::Quick, QuickTreatment::ByChance(reason)) => {
                Some(format!("the quick form says nothing about it ({reason})"))
            }
            (ExperimentForm::Changed, _) => Some("it applies only to the unchanged experiment".to_string()),
        }
    }

    /// Checks the claims and regression tests on results of the quick form. Returns the number of
    /// judged claims and of judged regression tests, and one sentence for each problem. A claim
    /// marked for the quick form must hold, and a claim that holds must be marked.
    pub fn quick_problems(&self) -> ([usize; 2], Vec<String>) {
        let both = [&self.experiment.claims, &self.experiment.regression];
        let problem = |claim: &Claim| match (&claim.quick, self.judge(&claim.rule)) {
            (QuickTreatment::Judged, (false, found)) => {
                Some(format!("\"{}\" does not hold in the quick form ({found})", claim.statement))
            }
            (QuickTreatment::TooSmall, (true, found)) => Some(format!(
                "\"{}\" holds in the quick form ({found}), but is not marked. Add quick = true, or the reason why \
                 that is chance",
                claim.statement
            )),
            _ => None,
        };
        let is_judged = |claim: &&Claim| claim.quick == QuickTreatment::Judged;
        let judged = both.map(|claims| claims.iter().filter(is_judged).count());
        (judged, both.into_iter().flatten().filter_map(problem).collect())
    }

    fn judge(&self, rule: &ClaimRule) -> (bool, String) {
        match rule {
            ClaimRule::MeanError(rule) => self.judge_mean_error(rule),
            ClaimRule::RelativeError(rule) => self.judge_relative_error(rule),
            ClaimRule::MeanRelativeError(rule) => self.judge_mean_relative_error(rule),
            ClaimRule::Within(rule) => self.judge_within(rule),
            ClaimRule::Less(rule) => self.judge_less(rule),
            ClaimRule::Ratio(rule) => self.judge_ratio(rule),
            ClaimRule::Crossover(rule) => self.judge_crossover(rule),
        }
    }

    fn judge_less(&self, rule: &Inequality) -> (bool, String) {
        let allowed = |left: f64, right: f64| left + rule.margin <= right;
        let metrics = [&rule.metric, &rule.metric];
        self.judge_pairs(&rule.left, &rule.right, metrics, allowed, |left, right| {
            format!("{left:.3} against {right:.3}")
        })
    }

    fn judge_ratio(&self, rule: &Ratio) -> (bool, String) {
        let allowed = |of: f64, to: f64| (rule.low..=rule.high).contains(&(of / to));
        let metrics = [&rule.metric, rule.to_metric.as_ref().unwrap_or(&rule.metric)];
        let (holds, found) = self
            .judge_pairs(&rule.of, &rule.to, metrics, allowed, |of, to| format!("{:.3} = {of:.3} / {to:.3}", of / to));
        (holds, format!("{found}, allowed {}", range(rule.low, rule.high)))
    }

    /// Published rows with these coordinates, and with this metric if one is given.
    fn published(&self, over: &CellSelector, metric: Option<&Metric>) -> Vec<PaperComparison> {
        let contains =
            |published: &&PaperFigures| over.iter().all(|(name, value)| published.at.get(name) == Some(value));
        let rows = self.experiment.published.iter().filter(contains);
        let rows = rows.flat_map(|row| self.compare(row));
        rows.filter(|row| metric.is_none_or(|metric| metric.covers(&row.metric))).collect()
    }

    fn judge_mean_error(&self, rule: &ErrorBound) -> (bool, String) {
        let rows = self.published(&rule.over, rule.metric.as_ref());
        match mean_of(&rows, PaperComparison::error) {
            Err(missing) => (false, missing),
            Ok(mean) => {
                (mean <= rule.at_most, format!("{mean:.3} over {} cells, allowed {:.3}", rows.len(), rule.at_most))
            }
        }
    }

    fn judge_relative_error(&self, rule: &ErrorBound) -> (bool, String) {
        let rows = self.published(&rule.over, rule.metric.as_ref());
        if let Err(missing) = mean_of(&rows, PaperComparison::relative_error) {
            return (false, missing);
        }
        let error = |row: &PaperComparison| row.relative_error().unwrap_or(0.0);
        let worst = rows.iter().max_by(|one, other| error(one).abs().total_cmp(&error(other).abs()));
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
        let ours = match mean_of(&rows, PaperComparison::relative_error) {
            Ok(mean) => mean,
            Err(missing) => return (false, missing),
        };
        let found = format!("{:.1} % over {} numbers", ours * 100.0, rows.len());
        if let Some(at_most) = rule.at_most {
            return (ours <= at_most, format!("{found}, allowed {:.1} %", at_most * 100.0));
        }
        match mean_of(&rows, PaperComparison::emulator_relative_error) {
            Err(_) => (false, format!("{found}, but the emulator lacks some of them")),
            Ok(emulator) => {
                let allowed = emulator * rule.of_emulator.expect("checked when the experiment was read");
                let found =
                    format!("{found}, the emulator's {:.1} %, allowed {:.1} %", emulator * 100.0, allowed * 100.0);
                (ours <= allowed, found)
            }
        }
    }

    fn judge_within(&self, rule: &ValueInterval) -> (bool, String) {
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
        let spread = (found.iter().copied().fold(f64::MAX, f64::min), found.iter().copied().fold(f64::MIN, f64::max));
        let found = match found.len() {
            0 => return (false, "no cell was measured".to_string()),
            1 => format!("{:.3}", spread.0),
            count => format!("{:.3} to {:.3} in {count} cells", spread.0, spread.1),
        };
        (holds, format!("{found}, allowed {}", range(rule.low, rule.high)))
    }

    /// Applies a test to every pair of cells that differ only in the selectors. Reports the worst
    /// pair first.
    fn judge_pairs(
        &self,
        left: &CellSelector,
        right: &CellSelector,
        metrics: [&Metric; 2],
        allowed: impl Fn(f64, f64) -> bool,
        print: impl Fn(f64, f64) -> String,
    ) -> (bool, String) {
        let mut failed = None;
        let mut last = None;
        let mut count = 0;
        for key in self.selected(left) {
            let other = self.coordinates.moved(&key, right);
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
        for value in self.coordinates.values(&rule.along) {
            let mut at = rule.left.clone();
            at.insert(rule.along.clone(), value.clone());
            let Some(key) = self.selected(&at).into_iter().next() else {
                continue;
            };
            let other = self.coordinates.moved(&key, &rule.right);
            let (Some(a), Some(b)) = (self.value(&key, &rule.metric), self.value(&other, &rule.metric)) else {
                return (false, format!("{key} or {other} was not measured"));
            };
            let position: f64 = value.parse().expect("checked when the experiment was read");
            points.push((position, a - b));
        }
        let changes = points.windows(2).filter(|pair| (pair[0].1 < 0.0) != (pair[1].1 < 0.0));
        let position = |pair: &[(f64, f64)]| {
            let [before, after] = [pair[0], pair[1]];
            before.0 + (after.0 - before.0) * before.1 / (before.1 - after.1)
        };
        let positions: Vec<f64> = changes.map(position).collect();
        let starts_below = points.first().is_some_and(|(_, difference)| *difference < 0.0);
        let found = match positions.as_slice() {
            [] => "the curves do not cross".to_string(),
            [position] if starts_below => format!("at {position:.3}"),
            [position] => format!("at {position:.3} the other way round"),
            several => {
                let several: Vec<String> = several.iter().map(|position| format!("{position:.3}")).collect();
                format!("the curves cross {} times, at {}", several.len(), several.join(", "))
            }
        };
        let holds = starts_below && positions.len() == 1 && (rule.low..=rule.high).contains(&positions[0]);
        (holds, format!("{found}, allowed {}", range(rule.low, rule.high)))
    }

    fn selected(&self, selector: &CellSelector) -> Vec<CellKey> {
        let keys = self.keys.iter();
        keys.filter(|key| self.coordinates.selects(selector, key)).cloned().collect()
    }
}

/// Mean of the absolute errors, or the number of missing values.
fn mean_of(rows: &[PaperComparison], error: fn(&PaperComparison) -> Option<f64>) -> Result<f64, String> {
    let errors: Vec<f64> = rows.iter().filter_map(error).map(f64::abs).collect();
    if errors.is_empty() || errors.len() < rows.len() {
        return Err(format!("{} of {} cells were not measured", rows.len() - errors.len(), rows.len()));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An experiment of two variants with four values on an axis, and with these tables.
    fn experiment(tables: &str) -> Experiment {
        let run = "drive_writes = 1.0\nscale = \"1/2048\"\n";
        let axis = "[[grid]]\naxis = \"OP\"\nsweep = \"geometry.over_provisioning\"\nover = [0.1, 0.2, 0.3, 0.4]\n";
        let variants = "[[variants]]\nname = \"II\"\n[[variants]]\nname = \"PI\"\n";
        let text = format!(
            "devices = [\"ssd_a\"]\nworkload = \"three_stream\"\n[run]\n{run}[quick]\n{run}{variants}{axis}{tables}"
        );
        Experiment::parse("experiments/t/experiment.toml", &text).expect("it is one")
    }

    /// A result of each cell of a variant, with these write amplifications along the axis.
    fn results(variant: &str, wafs: [f64; 4]) -> Vec<RunResult> {
        let of_cell = |(value, waf): (&str, f64)| {
            let mut result = simulate::testing::results().swap_remove(0);
            result.key.variant = variant.to_string();
            result.key.grid = vec![value.to_string()];
            for owner in &mut result.stats.handles {
                owner.gc_pages_copied = 0;
            }
            let host_pages = result.stats.total().host_pages_written;
            result.stats.shared.gc_pages_copied = (host_pages as f64 * (waf - 1.0)).round() as u64;
            assert!((result.write_amplification() - waf).abs() < 1e-6, "{waf}");
            result
        };
        ["0.1", "0.2", "0.3", "0.4"].into_iter().zip(wafs).map(of_cell).collect()
    }

    fn compared(published: f64, ours: Option<f64>) -> PaperComparison {
        PaperComparison {
            key: simulate::testing::results().swap_remove(0).key,
            metric: Metric::WriteAmplification,
            drive: Some(published),
            emulator: Some(7.0),
            ours,
            interval: None,
            source: "Table 1".to_string(),
            fitted: false,
            not_comparable: None,
        }
    }

    #[test]
    fn ten_percent_is_a_hit_and_more_is_a_miss() {
        for (published, ours, is_hit) in [
            // Subtraction makes the error of both greater than 0.1.
            (1.0, 1.1, true),
            (1.0, 0.9, true),
            (1.0, 1.1001, false),
            (1.0, 0.8999, false),
            (0.0, 0.0, true),
            (0.0, 0.001, false),
        ] {
            let compared = compared(published, Some(ours));
            assert_eq!(compared.is_hit(), Some(is_hit), "{published} {ours}");
            assert_eq!(compared.verdict(), Some(if is_hit { "hit" } else { "miss" }));
            assert_eq!(compared.status(), NumberStatus::Predicted);
        }
        let verdict = |change: fn(&mut PaperComparison)| {
            let mut compared = compared(1.0, Some(1.2));
            change(&mut compared);
            compared.verdict()
        };
        assert_eq!(verdict(|row| row.ours = None), Some("not run"));
        assert_eq!(verdict(|row| row.fitted = true), Some("fitted, miss"));
        assert_eq!(verdict(|row| row.not_comparable = Some("why".to_string())), Some("not comparable"));
        assert_eq!(verdict(|row| (row.drive, row.emulator) = (None, None)), None);
    }

    #[test]
    fn curves_that_cross_several_times_have_no_crossover() {
        let rule = "crossover = { along = \"OP\", left = { variant = \"II\" }, right = { variant = \"PI\" }, low = 0.2, high = 0.3 }";
        let experiment = experiment(&format!("[[claims]]\nwhat = \"it is\"\nsource = \"us\"\n{rule}\n"));
        let found = |two: [f64; 4], pi: [f64; 4]| {
            let results = [results("II", two), results("PI", pi)].concat();
            let verdict = ClaimChecker::new(&experiment, ExperimentForm::Full, &results, 1.0).verdicts().swap_remove(0);
            (verdict.holds, verdict.found)
        };
        let pi = [2.0; 4];
        let allowed = "allowed 0.200 to 0.300";
        for (two, holds, words) in [
            ([1.5, 1.9, 2.1, 2.5], true, "at 0.250"),
            ([1.5, 1.6, 1.9, 2.1], false, "at 0.350"),
            ([1.5, 1.6, 1.7, 1.8], false, "the curves do not cross"),
            ([2.5, 2.1, 1.9, 1.5], false, "at 0.250 the other way round"),
            ([1.9, 2.1, 1.9, 2.1], false, "the curves cross 3 times, at 0.150, 0.250, 0.350"),
        ] {
            assert_eq!(found(two, pi), (Some(holds), format!("{words}, {allowed}")), "{two:?}");
        }
    }

    #[test]
    fn regression_tests_are_judged_apart_from_claims() {
        let rule = |low: f64| format!("within = {{ at = {{ variant = \"II\" }}, low = {low:.1} }}\n");
        let tables = format!(
            "[[claims]]\nwhat = \"a claim\"\nsource = \"us\"\n{}[[regression]]\nwhat = \"a bound\"\nsource = \"us\"\nquick = true\n{}",
            rule(1.5),
            rule(3.0)
        );
        let (experiment, results) = (experiment(&tables), results("II", [2.0; 4]));
        let judge = ClaimChecker::new(&experiment, ExperimentForm::Full, &results, 1.0);
        let held = |verdicts: Vec<ClaimVerdict>| (verdicts[0].what.clone(), ClaimVerdict::count(&verdicts));
        assert_eq!(held(judge.verdicts()), ("a claim".to_string(), (1, 1)));
        assert_eq!(held(judge.regression()), ("a bound".to_string(), (0, 1)));
        let (judged, problems) = ClaimChecker::new(&experiment, ExperimentForm::Quick, &results, 1.0).quick_problems();
        assert_eq!(judged, [0, 1]);
        assert!(problems[0].starts_with("\"a claim\" holds in the quick form"), "{problems:?}");
        assert!(problems[1].starts_with("\"a bound\" does not hold in the quick form"), "{problems:?}");
    }

    #[test]
    fn a_number_relative_to_another_cell_is_compared_with_the_quotient() {
        let text = "devices = [\"ssd_a\"]\nworkload = \"three_stream\"\n[[variants]]\nname = \"uniform\"\n\
                    [[variants]]\nname = \"zipf\"\n[[published]]\nat = { variant = \"zipf\" }\n\
                    relative_to = { variant = \"uniform\" }\ndrive = [1.25]\nsource = \"s\"\n";
        let parse = |text: &str| Experiment::parse("experiments/t/experiment.toml", text);
        let experiment = parse(text).expect("it is valid");
        let result = |variant: &str| {
            let mut result = simulate::testing::results().swap_remove(0);
            result.key = CellKey { device: "ssd_a".to_string(), variant: variant.to_string(), grid: Vec::new() };
            result
        };
        let mut results = vec![result("zipf"), result("uniform")];
        results[1].stats.shared.gc_pages_copied += results[1].stats.total().host_pages_written;
        let wafs: Vec<f64> = results.iter().map(RunResult::write_amplification).collect();
        assert!(wafs[0] < wafs[1], "{wafs:?}");
        let ours = |results: &[RunResult]| {
            let checker = ClaimChecker::new(&experiment, ExperimentForm::Full, results, 1.0);
            checker.comparisons()[0].ours
        };
        assert_eq!(ours(&results), Some(wafs[0] / wafs[1]));
        assert_eq!(ours(&results[..1]), None);
        let error = parse(&text.replace("= \"uniform\" }", "= \"even\" }")).expect_err("no such variant");
        assert!(error.to_string().contains("variant has no value \"even\""), "{error}");
    }

    /// Without results every claim fails. With a result, the rule of this claim cannot fail.
    #[test]
    fn a_broken_mark_and_a_missing_one_are_told() {
        let problems = |mark: &str, results: &[RunResult]| {
            let claim = format!(
                "[[claims]]\nwhat = \"it is\"\nsource = \"us\"\n{mark}within = {{ at = {{ variant = \"II\" }}, low = 0.0 }}\n"
            );
            let experiment = experiment(&claim);
            let ([judged, _], problems) =
                ClaimChecker::new(&experiment, ExperimentForm::Quick, results, 1.0).quick_problems();
            (judged, problems.join("\n"))
        };
        let held = results("II", [2.0; 4]);
        assert_eq!(problems("", &[]), (0, String::new()));
        assert!(problems("", &held).1.contains("but is not marked"));
        assert_eq!(problems("quick = \"chance\"\n", &held), (0, String::new()));
        assert_eq!(problems("quick = true\n", &held), (1, String::new()));
        assert!(problems("quick = true\n", &[]).1.starts_with("\"it is\" does not hold"));
    }
}
