//! The answer: one sentence, and the numbers behind it.

use std::path::Path;

use base::Bytes;
use serde::Serialize;

use super::economics::{Life, Wear};
use super::placements::{self, Placement};
use super::{Drive, Factors, Shown, Study};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::export;
use crate::interval::Intervals;
use crate::judge::Judge;
use crate::report::{Library, Report};
use crate::rows::{Column, Rows, Value};
use crate::run::CellResult;
use crate::selection::Form;

/// Change of write amplification below which a placement is said to change nothing, as a share.
const MATTERS: f64 = 0.01;

/// See the module.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The sentence.
    pub headline: String,
    /// The workload.
    pub workload: String,
    /// The device profile.
    pub device: String,
    /// Capacity of the drive that was asked about.
    pub drive_bytes: u64,
    /// Multiples of the capacity that the host writes each day.
    pub drive_writes_per_day: f64,
    /// Whether that is assumed, because the workload does not say.
    pub rate_is_assumed: bool,
    /// A row for each placement, none first.
    pub placements: Vec<PlacementAnswer>,
    /// Name of the best placement that a host can do, if one changes anything.
    pub best: Option<String>,
    /// How a host does that, a line each.
    pub how: Vec<String>,
    /// What was chosen, and what makes the answer doubtful, in sentences.
    pub notes: Vec<String>,
    /// What things cost.
    pub factors: Factors,
    /// What was run.
    #[serde(skip)]
    pub(super) experiment: Experiment,
    #[serde(skip)]
    pub(super) results: Vec<CellResult>,
    #[serde(skip)]
    pub(super) intervals: Intervals,
}

/// How much the host writes in a day.
struct Rate {
    /// Multiples of the capacity.
    drive_writes_per_day: f64,
    /// Whether nobody said it.
    is_assumed: bool,
    /// As part of a sentence: "at your rate".
    words: String,
    /// Where it comes from, in a sentence.
    note: String,
}

/// The rate of which nothing is known.
const ONE_A_DAY: &str = "one drive-write a day";

/// What a placement comes to.
#[derive(Clone, Debug, Serialize)]
pub struct PlacementAnswer {
    /// Its name.
    pub name: String,
    /// At the end, over the window that the notes name.
    pub write_amplification: f64,
    /// What the device's ensemble says of it.
    pub interval: Option<[f64; 2]>,
    /// Over the whole run.
    pub cumulative_write_amplification: f64,
    /// Bytes programmed compared with no placement, as a share less one.
    pub change: f64,
    /// What the drive lasts; none if its profile does not say what the flash survives.
    pub life: Option<Life>,
    /// Names of what makes it doubtful.
    pub findings: Vec<String>,
}

impl Study {
    /// Reads the answer from the results of the experiment.
    ///
    /// # Panics
    /// They are not of this study, or a run was stopped before it measured anything.
    pub(super) fn answer(&self, results: Vec<CellResult>, intervals: Intervals) -> Answer {
        let rate = self.rate();
        let wear = self.drive.config.endurance.as_ref().map(|endurance| Wear {
            capacity_bytes: self.drive.capacity_bytes,
            physical_bytes: self.drive.physical_bytes,
            rated_erases: endurance.rated_erases,
            drive_writes_per_day: rate.drive_writes_per_day,
        });
        let rows: Vec<PlacementAnswer> = results
            .iter()
            .map(|result| self.row(result, &intervals, wear))
            .collect();
        let none = rows.first().expect("no placement is always run").write_amplification;
        let rows: Vec<_> = rows
            .into_iter()
            .map(|row| PlacementAnswer {
                change: row.write_amplification / none - 1.0,
                ..row
            })
            .collect();
        let best = self.best(&rows);
        let mut notes = self.shown.notes.clone();
        notes.extend(crate::finding::lines(&results));
        notes.push(rate.note.clone());
        if wear.is_none() {
            notes.push(format!(
                "{} does not say what its flash survives, so nothing is said of its life (`--set endurance.rated_erases=3000` says it).",
                self.question.device
            ));
        }
        Answer {
            headline: self.headline(&rows, best, &rate, &results),
            workload: self.question.workload.clone(),
            device: self.question.device.clone(),
            drive_bytes: self.drive.capacity_bytes,
            drive_writes_per_day: rate.drive_writes_per_day,
            rate_is_assumed: rate.is_assumed,
            how: best.map(|(placement, _)| placement.how.clone()).unwrap_or_default(),
            best: best.map(|(placement, _)| placement.name.clone()),
            placements: rows,
            notes,
            factors: self.question.factors,
            experiment: self.experiment.clone(),
            results,
            intervals,
        }
    }

    /// How much is written in a day, and where that is known from.
    fn rate(&self) -> Rate {
        let seconds = self.survey.seconds;
        if let Some(given) = self.question.drive_writes_per_day {
            let words = if given == 1.0 {
                ONE_A_DAY.to_string()
            } else {
                format!("{given:.3} drive-writes a day")
            };
            let note = format!("Years are at the {given:.3} drive-writes a day that were given.");
            return Rate {
                drive_writes_per_day: given,
                is_assumed: false,
                words,
                note,
            };
        }
        if let Some(bytes) = self.survey.bytes_per_second() {
            let rate = bytes * 86_400.0 / self.drive.capacity_bytes as f64;
            let note = format!(
                "Years are at the trace's own rate, {} written in {seconds:.0} s: {rate:.3} drive-writes a day if it goes on like this. `--rate` \
                 says another.",
                Bytes(self.survey.pass_bytes_written)
            );
            return Rate {
                drive_writes_per_day: rate,
                is_assumed: false,
                words: "your rate".to_string(),
                note,
            };
        }
        let why = if seconds > 0.0 {
            format!("The trace covers {seconds:.1} s, too little to say what is written in a day")
        } else {
            "The workload has no times".to_string()
        };
        Rate {
            drive_writes_per_day: 1.0,
            is_assumed: true,
            words: ONE_A_DAY.to_string(),
            note: format!("{why}, so {ONE_A_DAY} is assumed; `--rate` says yours."),
        }
    }

    fn row(&self, result: &CellResult, intervals: &Intervals, wear: Option<Wear>) -> PlacementAnswer {
        let window = |result: &CellResult| result.tail_write_amplification(self.shown.reading.window_capacities);
        let own = window(result);
        let interval = intervals.of_write_amplification(&result.key, own, window);
        PlacementAnswer {
            name: result.key.variant.clone(),
            write_amplification: own,
            interval: interval.map(|interval| [interval.low, interval.high]),
            cumulative_write_amplification: result.write_amplification(),
            change: 0.0,
            life: wear.map(|wear| wear.life(own, &self.question.factors)),
            findings: result
                .findings()
                .iter()
                .map(|finding| finding.name().to_string())
                .collect(),
        }
    }

    /// The placement that a host can do with which least is written, if it matters. They stand in the order of how much they ask of a
    /// host; one that comes as near as makes no difference is better than those after it.
    fn best<'a>(&'a self, rows: &'a [PlacementAnswer]) -> Option<(&'a Placement, &'a PlacementAnswer)> {
        let advice = self.placements.iter().filter(|placement| placement.is_advice);
        let rows =
            advice.filter_map(|placement| Some((placement, rows.iter().find(|row| row.name == placement.name)?)));
        let rows: Vec<_> = rows.collect();
        let least = rows
            .iter()
            .map(|(_, row)| row.write_amplification)
            .fold(f64::INFINITY, f64::min);
        let near = rows
            .into_iter()
            .find(|(_, row)| row.write_amplification <= least * (1.0 + MATTERS));
        near.filter(|(_, row)| row.change < -MATTERS)
    }

    fn headline(
        &self,
        rows: &[PlacementAnswer],
        best: Option<(&Placement, &PlacementAnswer)>,
        rate: &Rate,
        results: &[CellResult],
    ) -> String {
        let none = &rows[0];
        let oracle = rows.iter().find(|row| row.name == placements::ORACLE);
        let reaches = |comma: &str| {
            oracle.map_or(String::new(), |row| {
                format!("{comma}the oracle reaches {:.2}", row.write_amplification)
            })
        };
        if results.iter().all(|result| result.stats.total().units_reclaimed == 0) {
            return "The drive never had to collect anything, so this says nothing about placement: write more, or to a fuller drive \
                    (--fill, --drive)."
                .to_string();
        }
        let Some((placement, row)) = best else {
            let oracle = reaches(" (");
            let end = if oracle.is_empty() { "" } else { ")" };
            return format!(
                "No placement that was tried would help: the flash takes {:.2} times what the host writes{oracle}{end}.",
                none.write_amplification
            );
        };
        let life = match (none.life, row.life) {
            (Some(before), Some(after)) => {
                format!(
                    " and the drive would live {} at {}",
                    lives(after.years, before.years),
                    rate.words
                )
            }
            _ => String::new(),
        };
        format!(
            "{} would cut flash writes by {:.0} % ({:.2} -> {:.2}{}){life}.",
            capitalised(&placement.phrase),
            -row.change * 100.0,
            none.write_amplification,
            row.write_amplification,
            reaches(", "),
        )
    }
}

/// "4.1 instead of 2.5 years", in a unit of which there are enough to tell them apart.
fn lives(after_years: f64, before_years: f64) -> String {
    let (unit, per_year) = if before_years < 1.0 {
        ("days", 365.0)
    } else {
        ("years", 1.0)
    };
    let digits = if before_years * per_year < 100.0 && per_year == 1.0 {
        1
    } else {
        0
    };
    let number = |years: f64| format!("{:.digits$}", years * per_year);
    format!("{} instead of {} {unit}", number(after_years), number(before_years))
}

fn capitalised(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>());
    first.unwrap_or_default() + letters.as_str()
}

impl Answer {
    /// Writes it as a page, with everything that was run.
    ///
    /// # Errors
    /// The file cannot be written: names it and the system's reason.
    pub fn write_report(&self, library: Library, path: &Path) -> Result<(), LabError> {
        let notes = [&self.notes[..], &self.how[..]].concat().join("\n\n");
        let report = Report {
            title: &self.experiment.title,
            headline: Some(&self.headline),
            answers: &[("Placements", self.rows())],
            source: "",
            notes: &notes,
            axes: &[],
            tail_capacities: self.experiment.run.tail_capacities,
            results: &self.results,
            intervals: &self.intervals,
            comparisons: &[],
            verdicts: &[],
        };
        report.write(library, path)
    }

    /// What was run and what came out, as `warp run --json` prints it: how a run is kept.
    pub fn results_json(&self) -> serde_json::Value {
        let tail_capacities = self.experiment.run.tail_capacities;
        let judge = Judge::new(&self.experiment, Form::Full, &self.results, tail_capacities);
        export::judged_json(&self.experiment, &judge, &self.results)
    }

    /// The table of placements.
    pub fn rows(&self) -> Rows {
        let mut columns = vec![
            Column::label("placement"),
            Column::number("WAF", ""),
            Column::number("change", ""),
        ];
        let lives = self.placements.iter().any(|row| row.life.is_some());
        if lives {
            columns.extend([
                Column::number("life", "TB"),
                Column::number("DWPD", ""),
                Column::number("years", ""),
                Column::number("cost", "$/TB"),
                Column::number("CO2e", "kg/TB"),
            ]);
        }
        let mut rows = Rows::new(columns);
        for row in &self.placements {
            let amplification = match row.interval {
                Some(interval) => Value::Interval(row.write_amplification, interval),
                None => Value::Amplification(row.write_amplification),
            };
            let change = if row.change == 0.0 {
                Value::Nothing
            } else {
                Value::Change(row.change)
            };
            let mut cells = vec![Value::Text(row.name.clone()), amplification, change];
            if let Some(life) = row.life {
                cells.extend([
                    Value::Count(life.host_terabytes_written.round() as u64),
                    Value::Fixed(life.drive_writes_per_day, 2),
                    Value::Fixed(life.years, if life.years < 1.0 { 3 } else { 1 }),
                    Value::Significant(life.dollars_per_terabyte_written),
                    Value::Significant(life.carbon_kg_per_terabyte_written),
                ]);
            }
            rows.add(cells);
        }
        rows
    }
}

impl Shown {
    /// Share of the flash that is garbage when the drive is full.
    pub(super) fn garbage_share(&self) -> f64 {
        self.spare_share / (1.0 + self.spare_share)
    }
}

impl Drive {
    /// Spare flash as a share of the capacity.
    pub(super) fn spare_share(&self) -> f64 {
        self.physical_bytes as f64 / self.capacity_bytes as f64 - 1.0
    }
}
