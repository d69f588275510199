//! The answer: one sentence, and the numbers behind it.

use std::path::Path;

use base::HumanBytes;
use serde::Serialize;

use super::economics::{DriveLife, ONE_A_DAY, WearModel, WriteRate, drive_writes_a_day};
use super::placement_answer::PlacementAnswer;
use super::placements::PlacementOption;
use super::sentence::{self, NamedRows};
use super::{Factors, ModelledDrive, SimulatedDrive, WhatIfQuestion, WhatIfStudy};
use analysis::claim_checker::ClaimChecker;
use analysis::export::{self, ExportTable};
use analysis::interval::{Intervals, MATTERS};
use experiment::{Experiment, ExperimentForm, LabError};
use report::rows::{self, CellValue, ReportTable};
use report::{Bar, FrontPage, PlotLibrary, Report};
use simulate::run::RunResult;
use simulate::warning::{RunWarning, WarningCommand};

#[derive(Clone, Debug, Serialize)]
pub struct WhatIfAnswer {
    pub headline: String,
    pub workload: String,
    pub device: String,
    pub drive_bytes: u64,
    /// Multiples of the capacity that the host writes each day.
    pub drive_writes_per_day: f64,
    /// True if the rate is assumed, because the workload has no times or its trace is too short.
    pub rate_is_assumed: bool,
    /// A row for each placement. The first is no placement.
    pub placements: Vec<PlacementAnswer>,
    /// Name of the best placement that a host can implement, if one improves the result.
    pub best: Option<String>,
    /// Name of the best block-level classifier, if it improves on the best host placement.
    pub classifier: Option<String>,
    /// Steps to implement the best placement, a line each. They are the host's, or the classifier's
    /// if no host placement helps.
    pub how: Vec<String>,
    /// Notes on the choices, and doubts about the answer, one sentence each.
    pub notes: Vec<String>,
    /// Prices and embodied carbon of the drive.
    pub factors: Factors,
    /// The other fields of the question.
    pub question: WhatIfQuestion,
    #[serde(skip)]
    pub(super) experiment: Experiment,
    #[serde(skip)]
    pub(super) results: Vec<RunResult>,
    #[serde(skip)]
    pub(super) intervals: Intervals,
}

/// A note on the cost of partial writes of mapping units, which is separate from collection. `None`
/// if the cost is negligible.
fn partial_write_note(results: &[RunResult], none: &PlacementAnswer) -> Option<String> {
    let stats = &results.first()?.stats;
    let total = stats.total();
    let waf = (total.host_pages_written * stats.page_bytes) as f64 / total.host_bytes_written as f64;
    (waf > 1.0 + MATTERS).then(|| {
        format!(
            "Without placement, write amplification is {:.2}. Partial writes of mapping units of {} cause a factor \
             of {waf:.2} (read, modify, write). Garbage collection causes a factor of {:.2}. Placement changes only \
             the second factor.",
            none.write_amplification,
            HumanBytes(stats.page_bytes),
            none.write_amplification / waf
        )
    })
}

impl WhatIfStudy {
    /// Reads the answer from the results of the experiment.
    pub(super) fn evaluate(&self, results: Vec<RunResult>, intervals: Intervals) -> WhatIfAnswer {
        let rate = self.rate();
        let wear = self.drive.config.endurance.as_ref().map(|endurance| WearModel {
            capacity_bytes: self.drive.capacity_bytes,
            physical_bytes: self.drive.physical_bytes,
            rated_erases: endurance.rated_erases,
            drive_writes_per_day: rate.drive_writes_per_day,
        });
        let none = results.first().expect("no placement is always run");
        let rows = self.placements.iter().zip(&results);
        let rows: Vec<PlacementAnswer> =
            rows.map(|(placement, result)| self.row(placement, result, none, &intervals, wear)).collect();
        let choice = NamedRows::new(&rows);
        let placement = |row: &PlacementAnswer| {
            let placement = self.placements.iter().find(|placement| placement.name == row.name);
            placement.expect("rows are of placements")
        };
        let [best, classifier] = [choice.best(), choice.blocks].map(|row| row.map(placement));
        let mut notes = choice.exceptions(&rows);
        notes.extend(self.simulated.notes.iter().cloned());
        notes.extend(partial_write_note(&results, &rows[0]));
        let is_doubtful = rows.iter().any(|row| row.is_doubtful);
        notes.extend(rows::warning_sentences(is_doubtful, &results, WarningCommand::WhatIf));
        notes.push(rate.note.clone());
        if let Some(wear) = wear {
            let interval = rows.iter().any(|row| row.years_interval.is_some());
            notes.push(format!(
                "Life assumes that the flash survives {} erases on average, as in the profile {}. Set another \
                 number with `--set endurance.rated_erases=N`.{}",
                wear.rated_erases,
                self.question.device,
                if interval { " The years in brackets are at the ends of the interval of WAF." } else { "" }
            ));
        } else {
            notes.push(format!(
                "The profile {} has no rated erases, so the answer has no life. Set them with `--set \
                 endurance.rated_erases=3000`.",
                self.question.device
            ));
        }
        WhatIfAnswer {
            headline: self.headline(&choice, &rate, &results),
            workload: self.question.workload.clone(),
            device: self.question.device.clone(),
            drive_bytes: self.drive.capacity_bytes,
            drive_writes_per_day: rate.drive_writes_per_day,
            rate_is_assumed: rate.is_assumed,
            how: best.or(classifier).map(|placement| placement.steps.clone()).unwrap_or_default(),
            best: best.map(|placement| placement.name.clone()),
            classifier: classifier.map(|placement| placement.name.clone()),
            placements: rows,
            notes,
            factors: self.question.factors,
            question: self.question.clone(),
            experiment: self.experiment.clone(),
            results,
            intervals,
        }
    }

    /// The host's write rate per day, and its source.
    fn rate(&self) -> WriteRate {
        let seconds = self.survey.seconds;
        if let Some(given) = self.question.drive_writes_per_day {
            return WriteRate::from_user(given);
        }
        if let Some(bytes) = self.survey.bytes_per_second() {
            let rate = bytes * 86_400.0 / self.drive.capacity_bytes as f64;
            let note = format!(
                "Years assume the trace's own rate, {} written in {seconds:.0} s. That is {} if it continues. Set \
                 another rate with `--rate`.",
                HumanBytes(self.survey.pass_bytes_written),
                drive_writes_a_day(rate)
            );
            return WriteRate { drive_writes_per_day: rate, is_assumed: false, words: "your rate".to_string(), note };
        }
        let why = if seconds > 0.0 {
            format!("The trace covers {seconds:.1} s, too short for a daily rate")
        } else {
            "The workload has no times".to_string()
        };
        WriteRate {
            drive_writes_per_day: 1.0,
            is_assumed: true,
            words: ONE_A_DAY.to_string(),
            note: format!("{why}, so {ONE_A_DAY} is assumed. Set yours with `--rate`."),
        }
    }

    fn row(
        &self,
        placement: &PlacementOption,
        result: &RunResult,
        none: &RunResult,
        intervals: &Intervals,
        wear: Option<WearModel>,
    ) -> PlacementAnswer {
        assert_eq!(placement.name, result.key.variant, "results stand in the order of the placements");
        let window = |result: &RunResult| result.tail_write_amplification(self.simulated.window.window_capacities);
        let interval_of = |result: &RunResult| intervals.of_write_amplification(&result.key, window(result), window);
        let (own, interval) = (window(result), interval_of(result));
        let change = own / window(none) - 1.0;
        // Compares each member with itself, because members of an ensemble differ more from each
        // other than a placement changes.
        let both = interval.as_ref().zip(interval_of(none)).filter(|_| result.key != none.key);
        let change_interval = both.map(|(with, without)| {
            let pairs = with.members.iter().zip(&without.members);
            let changes = pairs.map(|(with, without)| with / without - 1.0);
            changes.fold([change, change], |[least, most], change| [least.min(change), most.max(change)])
        });
        let ends = interval.map(|interval| [interval.low, interval.high]);
        let warnings = result.warnings();
        let totals = result.stats.handles.iter().chain([&result.stats.shared]);
        PlacementAnswer {
            name: placement.name.clone(),
            phrase: placement.phrase.clone(),
            knowledge: placement.knowledge,
            write_amplification: own,
            interval: ends,
            cumulative_write_amplification: result.write_amplification(),
            change,
            change_interval,
            end_difference: warnings.iter().filter_map(RunWarning::end_difference).fold(0.0, f64::max),
            is_comparable: !warnings.iter().any(RunWarning::is_not_of_placement),
            is_doubtful: warnings.iter().any(|warning| warning.is_doubt(WarningCommand::WhatIf)),
            handles: totals.filter(|owner| owner.host_bytes_written > 0).count(),
            life: wear.map(|wear| wear.life(own, &self.question.factors)),
            years_interval: wear
                .zip(ends)
                .map(|(wear, [low, high])| [high, low].map(|waf| wear.life(waf, &self.question.factors).years)),
            warnings: warnings.iter().map(|warning| warning.name().to_string()).collect(),
        }
    }

    fn headline(&self, choice: &NamedRows<'_>, rate: &WriteRate, results: &[RunResult]) -> String {
        if results.iter().all(|result| result.stats.total().units_reclaimed == 0) {
            return "The drive never had to collect garbage, so the run shows nothing about placement. Write more \
                    (--drive-writes), or use a smaller drive (--drive)."
                .to_string();
        }
        choice.sentence(self.survey.what, rate)
    }
}

impl WhatIfAnswer {
    pub fn columns<'a>(&self) -> ExportTable<'a> {
        let life = |value: fn(&DriveLife) -> f64| move |row: &PlacementAnswer| row.life.as_ref().map(value);
        ExportTable::single_batch(&self.placements, |columns| {
            columns
                .text("placement", |row| &row.name)
                .f64("write_amplification", |row| row.write_amplification)
                .optional_f64("low", |row| row.interval.map(|[low, _]| low))
                .optional_f64("high", |row| row.interval.map(|[_, high]| high))
                .f64("cumulative_write_amplification", |row| row.cumulative_write_amplification)
                .f64("change", |row| row.change)
                .optional_f64("change_low", |row| row.change_interval.map(|[low, _]| low))
                .optional_f64("change_high", |row| row.change_interval.map(|[_, high]| high))
                .optional_f64("host_terabytes_written", life(|life| life.host_terabytes_written))
                .optional_f64("drive_writes_per_day", life(|life| life.drive_writes_per_day))
                .optional_f64("years", life(|life| life.years))
                .optional_f64("dollars_per_terabyte_written", life(|life| life.dollars_per_terabyte_written))
                .optional_f64("carbon_kg_per_terabyte_written", life(|life| life.carbon_kg_per_terabyte_written))
                .owned_text("warnings", |row| row.warnings.join(", "))
        })
    }

    /// Writes the report page, with all runs.
    ///
    /// # Errors
    /// The file cannot be written. The message names it and the system's reason.
    pub fn write_report(&self, library: PlotLibrary, path: &Path) -> Result<(), LabError> {
        let report = Report {
            title: &self.experiment.title,
            front: Some(&self.front()),
            refused: &[],
            command: WarningCommand::WhatIf,
            source: "",
            notes: "",
            axes: &[],
            tail_drive_writes: self.experiment.run.tail(),
            results: &self.results,
            intervals: &self.intervals,
            comparisons: &[],
            verdicts: &[],
            regression: &[],
        };
        report.write(library, path)
    }

    fn front(&self) -> FrontPage {
        let bar = |row: &PlacementAnswer| Bar {
            name: row.name.clone(),
            value: row.write_amplification,
            interval: row.interval,
            is_doubtful: row.is_doubtful,
            is_best: self.advised() == Some(&row.name),
        };
        FrontPage {
            headline: self.headline.clone(),
            bars: self.placements.iter().map(bar).collect(),
            remedy: self.advised().map(|name| (format!("{name}:"), self.how.clone())),
            table: ("Write amplification by placement", self.rows()),
            notes: self.notes.clone(),
        }
    }

    /// Name of the placement that `how` describes.
    pub fn advised(&self) -> Option<&str> {
        self.best.as_deref().or(self.classifier.as_deref())
    }

    /// Experiment, results and answer as `warp run --json` prints them. Stored runs have this form.
    pub fn results_json(&self) -> serde_json::Value {
        let tail_drive_writes = self.experiment.run.tail();
        let judge = ClaimChecker::new(&self.experiment, ExperimentForm::Full, &self.results, tail_drive_writes);
        let mut json = export::judged_json(&judge);
        json["answer"] = serde_json::json!(self);
        json
    }

    pub fn rows(&self) -> ReportTable {
        let mut rows = ReportTable::default().labels(["placement"]).numbers("", ["WAF", "change"]);
        if self.placements.iter().any(|row| row.life.is_some()) {
            rows = rows.numbers("TB", ["life"]).numbers("", ["DWPD", "years"]);
            rows = rows.numbers("$/TB", ["cost"]).numbers("kg/TB", ["CO2e"]);
        }
        for row in &self.placements {
            let amplification = match row.interval {
                Some(interval) => CellValue::Interval(row.write_amplification, interval),
                None => CellValue::Amplification(row.write_amplification),
            };
            let amplification = amplification.mark_doubtful(row.is_doubtful);
            let change = if row.change == 0.0 { CellValue::Nothing } else { CellValue::Change(row.change) };
            let mut cells = vec![CellValue::Text(row.name.clone()), amplification, change];
            if let Some(life) = row.life {
                cells.extend([
                    CellValue::Count(life.host_terabytes_written.round() as u64),
                    CellValue::Fixed(life.drive_writes_per_day, 2),
                    CellValue::Text(match row.years_interval {
                        Some(ends) => {
                            let [low, high] = ends.map(sentence::years);
                            format!("{} ({low}-{high})", sentence::years(life.years))
                        }
                        None => sentence::years(life.years),
                    }),
                    CellValue::Significant(life.dollars_per_terabyte_written),
                    CellValue::Significant(life.carbon_kg_per_terabyte_written),
                ]);
            }
            rows.add(cells);
        }
        rows
    }
}

impl SimulatedDrive {
    /// Share of the flash that is garbage when the drive is full.
    pub(super) fn garbage_share(&self) -> f64 {
        self.spare_share / (1.0 + self.spare_share)
    }
}

impl ModelledDrive {
    /// Spare flash as a share of the capacity.
    pub(super) fn spare_share(&self) -> f64 {
        self.physical_bytes as f64 / self.capacity_bytes as f64 - 1.0
    }
}
