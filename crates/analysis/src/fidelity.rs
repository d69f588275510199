//! Writes the score of a full run as Markdown: every published number beside ours, with its error.
//!
//! ```text
//! Experiment, [PaperComparison] -> FidelityPage -> docs/fidelity.md, complete after each experiment
//! ```
//!
//! The page has no date and no duration, so equal results give equal bytes. It does not judge
//! claims, which are in `claims_record`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::claim_checker::{NumberStatus, PaperComparison};
use crate::claims_record::{earlier_page, not_run, table_cell};
use experiment::files::write_atomically;
use experiment::{Experiment, LabError};

/// Beginning of the names of the experiments with predictions that are never edited to fit.
const FROZEN: &str = "predictions";

const TITLE: &str = "# Fidelity";

const INTRODUCTION: &str = "\
This page is for readers who want to know how close WARP is to published measurements. It has
every published number, with the drive, the figure and the error. `warp reproduce --fidelity`
writes it. Do not edit it by hand.

A measured number within 10 % of the published one is a hit, and every other one is a miss. A
number is *fitted* if settings were fitted to it, so a hit proves nothing. A number is *not
comparable* if it says nothing about the model, for the reason beside it. All others are
*predicted*. The experiments `predictions` and `predictions_emulators` are frozen, so nobody edits
them to fit. They count together.
[Claims](reference/claims.md) has the statements in words.
";

const LEDGER_HEAD: &str = "
## Ledger

Rules that were loosened or removed, with the bounds before and after the change.

| date | experiment | rule | old | new | reason |
|---|---|---|---|---|---|
";

type NumberOfExperiment = (String, PaperComparison);

#[derive(Clone, Debug, Default)]
pub struct HitScore {
    /// Number of published numbers. Those without a measured one are no hits.
    pub numbers: usize,
    pub hits: usize,
    /// Absolute relative errors of the measured numbers, ascending.
    errors: Vec<f64>,
}

impl HitScore {
    /// Score of the published numbers among these rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a PaperComparison>) -> HitScore {
        let mut score = HitScore::default();
        for row in rows.into_iter().filter(|row| row.published().is_some()) {
            score.numbers += 1;
            score.hits += usize::from(row.is_hit() == Some(true));
            score.errors.extend(row.relative_error().map(f64::abs));
        }
        score.errors.sort_by(f64::total_cmp);
        assert!(score.hits <= score.numbers && score.errors.len() <= score.numbers);
        score
    }

    pub fn share(&self) -> Option<f64> {
        (self.numbers > 0).then(|| self.hits as f64 / self.numbers as f64)
    }

    pub fn mean_error(&self) -> Option<f64> {
        (!self.errors.is_empty()).then(|| self.errors.iter().sum::<f64>() / self.errors.len() as f64)
    }

    pub fn median_error(&self) -> Option<f64> {
        let middle = self.errors.len() / 2;
        let upper = *self.errors.get(middle)?;
        let is_even = self.errors.len().is_multiple_of(2);
        Some(if is_even { f64::midpoint(self.errors[middle - 1], upper) } else { upper })
    }
}

pub struct FidelityPage {
    path: PathBuf,
    waiting: Vec<String>,
    rows: Vec<NumberOfExperiment>,
    /// Rows of the table of loosened rules. Each begins with its date.
    ledger: BTreeSet<String>,
}

impl FidelityPage {
    /// Creates the page of a run.
    ///
    /// # Errors
    /// The path is not that of such a page.
    pub fn new(path: &Path, experiments: &[Experiment]) -> Result<FidelityPage, LabError> {
        earlier_page(path, TITLE)?;
        Ok(FidelityPage {
            path: path.to_path_buf(),
            waiting: experiments.iter().map(|experiment| experiment.slug.clone()).collect(),
            rows: Vec::new(),
            ledger: BTreeSet::new(),
        })
    }

    /// Adds an experiment, and replaces the file atomically.
    ///
    /// # Errors
    /// The file cannot be written. The message names it and the system's reason.
    pub fn add(&mut self, experiment: &Experiment, comparisons: Vec<PaperComparison>) -> Result<(), LabError> {
        let slug = &experiment.slug;
        self.waiting.retain(|waiting| waiting != slug);
        let published = comparisons.into_iter().filter(|row| row.published().is_some());
        self.rows.extend(published.map(|row| (slug.clone(), row)));
        for entry in &experiment.ledger {
            let [rule, old, new, reason] =
                [&entry.rule, &entry.old, &entry.new, &entry.reason].map(|text| table_cell(text));
            let date = &entry.date;
            self.ledger.insert(format!("| {date} | `{slug}` | {rule} | {old} | {new} | {reason} |\n"));
        }
        let text = self.markdown();
        write_atomically(&self.path, |file| file.write_all(text.as_bytes()))
    }

    fn markdown(&self) -> String {
        let mut text = format!("{TITLE}\n\n{INTRODUCTION}{}\n## Score\n\n{}", not_run(&self.waiting), self.summary());
        let mut devices: BTreeMap<&str, Vec<&NumberOfExperiment>> = BTreeMap::new();
        for row in &self.rows {
            devices.entry(&row.1.key.device).or_default().push(row);
        }
        for (device, rows) in devices {
            text += &device_section(device, rows);
        }
        if !self.ledger.is_empty() {
            text += LEDGER_HEAD;
            text.extend(self.ledger.iter().map(String::as_str));
        }
        text
    }

    fn summary(&self) -> String {
        let of = |status: NumberStatus, frozen: Option<bool>| {
            let is_chosen = |slug: &str| frozen.is_none_or(|frozen| frozen == slug.starts_with(FROZEN));
            let rows = self.rows.iter();
            let rows = rows.filter(|(slug, row)| row.status() == status && is_chosen(slug));
            HitScore::of(rows.map(|(_, row)| row))
        };
        let mut text =
            "| | numbers | hits | share | mean error | median error |\n|---|--:|--:|--:|--:|--:|\n".to_string();
        for (name, status, frozen) in [
            ("predicted", NumberStatus::Predicted, None),
            ("predicted, in `predictions`", NumberStatus::Predicted, Some(true)),
            ("predicted, elsewhere", NumberStatus::Predicted, Some(false)),
            ("fitted", NumberStatus::Fitted, None),
        ] {
            let score = of(status, frozen);
            let shares = [score.share(), score.mean_error(), score.median_error()].map(percent);
            let (numbers, hits) = (score.numbers, score.hits);
            text += &format!("| {name} | {numbers} | {hits} | {} |\n", shares.join(" | "));
        }
        let excluded = of(NumberStatus::NotComparable, None).numbers;
        text + &format!("| not comparable | {excluded} | | | | |\n")
    }
}

/// The table of a device: predicted numbers, fitted ones, then the others. Misses come first, the
/// largest error at the top.
fn device_section(device: &str, mut rows: Vec<&NumberOfExperiment>) -> String {
    let predicted = rows.iter().map(|(_, row)| row);
    let score = HitScore::of(predicted.filter(|row| row.status() == NumberStatus::Predicted));
    let size = |row: &PaperComparison| row.relative_error().map_or(f64::INFINITY, f64::abs);
    // The sort is stable, so equal errors stay in the order of the experiments.
    rows.sort_by(|(_, one), (_, other)| {
        let hits = one.is_hit().cmp(&other.is_hit());
        let sizes = size(other).total_cmp(&size(one));
        one.status().cmp(&other.status()).then(hits).then(sizes)
    });
    let mut text = format!(
        "\n## {device}\n\n{} of {} predicted numbers are hits.\n\n| experiment | figure | cell | published | ours | \
         error | status |\n|---|---|---|--:|--:|--:|---|\n",
        score.hits, score.numbers
    );
    for (slug, row) in rows {
        let parts = std::iter::once(&row.key.variant).chain(&row.key.grid);
        let parts = parts.filter(|part| !part.is_empty()).cloned();
        let cell = parts.chain([row.metric.name()]).collect::<Vec<_>>().join(", ");
        let published = row.published().expect("rows without a published number are left out");
        let ours = row.ours.map_or_else(|| "–".to_string(), measured);
        let error = row.relative_error().map(|error| format!("{:+.1} %", error * 100.0));
        let error = error.unwrap_or_else(|| "–".to_string());
        let verdict = row.verdict().expect("the number is published").replace("miss", "**miss**");
        let reason = row.not_comparable.iter().map(|reason| format!(": {reason}")).collect::<String>();
        let [figure, cell, reason] = [&row.source, &cell, &reason].map(|text| table_cell(text));
        text += &format!("| `{slug}` | {figure} | {cell} | {published} | {ours} | {error} | {verdict}{reason} |\n");
    }
    text
}

/// A number with three decimals, or none if it is large.
fn measured(number: f64) -> String {
    let decimals = if number.abs() < 100.0 { 3 } else { 0 };
    format!("{number:.decimals$}")
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_string(), |share| format!("{:.1} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use experiment::metric::Metric;

    use super::*;

    fn number(source: &str, drive: f64, ours: Option<f64>) -> PaperComparison {
        PaperComparison {
            key: simulate::testing::results().swap_remove(0).key,
            metric: Metric::WriteAmplification,
            drive: Some(drive),
            emulator: None,
            ours,
            interval: None,
            source: source.to_string(),
            fitted: false,
            not_comparable: None,
        }
    }

    #[test]
    fn scores_count_hits_over_all_numbers_and_errors_of_the_measured_ones() {
        let unpublished = PaperComparison { drive: None, ..number("", 1.0, Some(1.0)) };
        let rows = [number("", 1.0, Some(1.1)), number("", 1.0, Some(0.6)), number("", 1.0, None), unpublished];
        let score = HitScore::of(&rows);
        assert_eq!((score.numbers, score.hits), (3, 1));
        let near = |value: Option<f64>, expected: f64| assert!((value.expect("a value") - expected).abs() < 1e-9);
        near(score.share(), 1.0 / 3.0);
        near(score.mean_error(), 0.25);
        near(score.median_error(), 0.25);
        near(HitScore::of(&rows[..1]).median_error(), 0.1);
        let empty = HitScore::of(&rows[3..]);
        assert_eq!((empty.share(), empty.mean_error(), empty.median_error()), (None, None, None));
    }

    #[test]
    fn the_page_has_every_number_once_and_equal_results_give_equal_pages() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut experiments =
            ["one_stream", "three_stream"].map(|name| Experiment::find(name).expect("it is built in"));
        let entry =
            "rule = \"a | b\"\nold = \"0.1\"\nnew = \"removed\"\nreason = \"it cannot fail\"\ndate = 2026-01-02\n";
        experiments[1].ledger = vec![toml::from_str(entry).expect("an entry")];
        let write = |name: &str| {
            let path = folder.path().join(name);
            let mut page = FidelityPage::new(&path, &experiments).expect("there is no file");
            let mut add = |index: usize, rows: Vec<PaperComparison>| {
                page.add(&experiments[index], rows).expect("it can be written");
                std::fs::read_to_string(&path).expect("it was written")
            };
            let hit = number("Fig. 1", 2.0, Some(2.05));
            let first = add(0, vec![hit, PaperComparison { drive: None, ..number("Fig. 9", 1.0, Some(1.0)) }]);
            assert!(first.contains("\nNot run: three_stream.\n") && !first.contains("Fig. 9"), "{first}");
            let fitted = PaperComparison { fitted: true, ..number("Fig. 2", 1.0, Some(1.5)) };
            let reason = Some("no | number of files".to_string());
            let excluded = PaperComparison { not_comparable: reason, ..number("Fig. 3", 1.0, Some(3.0)) };
            add(1, vec![excluded, fitted, number("Fig. 4", 1.0, Some(1.2)), number("Fig. 5", 1.0, Some(1.3))])
        };
        let page = write("one.md");
        assert_eq!(page, write("two.md"));
        assert!(!page.contains("Not run"), "{page}");
        let rows = [
            "| predicted | 3 | 1 | 33.3 % | 17.5 % | 20.0 % |",
            "| predicted, in `predictions` | 0 | 0 | – | – | – |",
            "| predicted, elsewhere | 3 | 1 | 33.3 % | 17.5 % | 20.0 % |",
            "| fitted | 1 | 0 | 0.0 % | 50.0 % | 50.0 % |",
            "| not comparable | 1 | | | | |",
            "1 of 3 predicted numbers are hits.",
            "| `three_stream` | Fig. 5 | FDP, zipf 2.2, WAF | 1 | 1.300 | +30.0 % | **miss** |",
            "| `three_stream` | Fig. 4 | FDP, zipf 2.2, WAF | 1 | 1.200 | +20.0 % | **miss** |",
            "| `one_stream` | Fig. 1 | FDP, zipf 2.2, WAF | 2 | 2.050 | +2.5 % | hit |",
            "| `three_stream` | Fig. 2 | FDP, zipf 2.2, WAF | 1 | 1.500 | +50.0 % | fitted, **miss** |",
            "| `three_stream` | Fig. 3 | FDP, zipf 2.2, WAF | 1 | 3.000 | +200.0 % | not comparable: no \\| number of files |",
            "| 2026-01-02 | `three_stream` | a \\| b | 0.1 | removed | it cannot fail |",
        ];
        let mut rest = page.as_str();
        for row in rows {
            let at = rest.find(row).unwrap_or_else(|| panic!("{row} is not in {rest}"));
            rest = &rest[at + row.len()..];
            assert!(!rest.contains(row), "{row} is there twice");
        }
    }
}
