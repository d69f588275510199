//! Tables of published numbers, and of claims with their verdicts.

use super::{CellValue, Mark, ReportTable, TextFormat, wrapped};
use analysis::claim_checker::{ClaimVerdict, NumberStatus, PaperComparison};
use analysis::fidelity::HitScore;
use experiment::claim::LedgerEntry;

/// Published numbers and the measured ones. Columns that would be empty are left out.
pub fn comparisons(comparisons: &[PaperComparison]) -> ReportTable {
    let has = |number: fn(&PaperComparison) -> bool| comparisons.iter().any(number);
    let with_drive = has(|row| row.drive.is_some());
    let with_emulator = has(|row| row.emulator.is_some());
    let with_intervals = has(|row| row.interval.is_some());
    let mut rows = ReportTable::default()
        .labels(["cell", "measured"])
        .numbers("", with_drive.then_some("paper's drive"))
        .numbers("", with_emulator.then_some("paper's emulator"))
        .numbers("", ["ours"])
        .texts(["verdict"])
        .texts(with_intervals.then_some("inside"))
        .texts(["source"]);
    for comparison in comparisons {
        let is_relative = comparison.metric.is_relative();
        let value = if is_relative { CellValue::Significant } else { CellValue::Amplification };
        let ours = |ours: f64| match &comparison.interval {
            Some(interval) if is_relative => CellValue::SignificantInterval(ours, [interval.low, interval.high]),
            Some(interval) => CellValue::Interval(ours, [interval.low, interval.high]),
            None => value(ours),
        };
        let verdict = comparison.verdict().map(|verdict| match comparison.relative_error() {
            Some(error) if comparison.not_comparable.is_none() => format!("{verdict} {}", CellValue::Change(error)),
            _ => verdict.to_string(),
        });
        let inside = CellValue::optional(comparison.is_inside(), |inside| if inside { "yes" } else { "no" }.into());
        let mut cells = vec![comparison.key.to_string().into(), comparison.metric.name().into()];
        cells.extend(with_drive.then(|| CellValue::optional(comparison.drive, value)));
        cells.extend(with_emulator.then(|| CellValue::optional(comparison.emulator, value)));
        cells.push(CellValue::optional(comparison.ours, ours));
        cells.push(CellValue::optional(verdict, CellValue::Text));
        cells.extend(with_intervals.then_some(inside));
        cells.push(comparison.source.as_str().into());
        rows.add(cells);
    }
    rows
}

/// Hits among predicted and among fitted numbers, each in a line. Empty without such numbers.
pub fn score(comparisons: &[PaperComparison]) -> String {
    let of = |status: NumberStatus, name: &str| {
        let score = HitScore::of(comparisons.iter().filter(|row| row.status() == status));
        let (share, error) = (CellValue::Share(score.share()?), score.mean_error());
        let error = error.map_or_else(String::new, |error| format!(", mean error {}", CellValue::Share(error)));
        Some(format!("{name} numbers: {} of {} hit ({share}){error}\n", score.hits, score.numbers))
    };
    let lines = [of(NumberStatus::Predicted, "predicted"), of(NumberStatus::Fitted, "fitted")];
    lines.into_iter().flatten().collect()
}

/// Number of published write amplifications of drives that the intervals contain, in a line. Empty
/// without intervals. Fitted numbers are counted separately, because the intervals must contain
/// them.
pub fn covered(comparisons: &[PaperComparison]) -> String {
    let inside = |status: NumberStatus| -> Vec<bool> {
        let those = comparisons.iter().filter(|comparison| comparison.status() == status);
        those.filter_map(PaperComparison::is_inside).collect()
    };
    let counted = |inside: &[bool]| {
        let count = inside.iter().filter(|inside| **inside).count();
        format!("{count} of {}", inside.len())
    };
    let (predicted, fitted) = (inside(NumberStatus::Predicted), inside(NumberStatus::Fitted));
    const WHAT: &str = "write amplifications of the paper's drive";
    let mut parts = Vec::new();
    if !predicted.is_empty() {
        let count = predicted.iter().filter(|inside| **inside).count();
        let share = CellValue::Share(count as f64 / predicted.len() as f64);
        parts.push(format!("{} ({share}) {WHAT}", counted(&predicted)));
    }
    if !fitted.is_empty() {
        let what = if predicted.is_empty() { WHAT } else { "ones" };
        parts.push(format!("{} fitted {what}", counted(&fitted)));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("our interval contains {}\n", parts.join(", and "))
}

/// Tables of claims and of regression tests, and a line about the rules that were loosened.
pub fn judged(
    claims: &[ClaimVerdict],
    regression: &[ClaimVerdict],
    ledger: &[LedgerEntry],
    format: TextFormat,
) -> String {
    let tables = [("claim", claims), ("regression test", regression)];
    let tables = tables.into_iter().filter(|(_, verdicts)| !verdicts.is_empty());
    let text: String = tables.map(|(heading, rows)| verdicts(heading, rows).render(format)).collect();
    let change = |entry: &LedgerEntry| format!("{} ({}, now {})", entry.rule, entry.old, entry.new);
    let changes: Vec<String> = ledger.iter().map(change).collect();
    let count = match ledger.len() {
        0 => return text,
        1 => "1 rule was".to_string(),
        count => format!("{count} rules were"),
    };
    text + &format.words(&wrapped(&format!("{count} loosened: {}\n", changes.join("; "))))
}

/// Verdicts on claims or on regression tests, as the heading says.
pub fn verdicts(heading: &str, verdicts: &[ClaimVerdict]) -> ReportTable {
    let mut rows = ReportTable::default().labels([""]).texts([heading, "found", "source"]);
    for verdict in verdicts {
        let (mark, word) = match verdict.holds {
            Some(true) => (Mark::Holds, "holds"),
            Some(false) => (Mark::Fails, "FAILS"),
            None => (Mark::None, "-"),
        };
        let texts = [word, &verdict.what, &verdict.found, &verdict.source];
        rows.add_marked(mark, texts.map(CellValue::from));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::metric::Metric;

    fn number(published: [Option<f64>; 2], ours: f64) -> PaperComparison {
        PaperComparison {
            key: simulate::testing::results().swap_remove(0).key,
            metric: Metric::WriteAmplification,
            drive: published[0],
            emulator: published[1],
            ours: Some(ours),
            interval: None,
            source: "Table 2".to_string(),
            fitted: false,
            not_comparable: None,
        }
    }

    #[test]
    fn the_verdict_stands_beside_each_number_at_80_columns() {
        let excluded =
            PaperComparison { not_comparable: Some("no size".to_string()), ..number([Some(1.0), None], 3.0) };
        let rows = [number([Some(1.0), Some(2.0)], 1.42), number([Some(1.0), None], 0.95), excluded];
        let text = comparisons(&rows).text_within(80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for verdict in ["┆ 1.420 ┆ miss +42.0 %", "┆ 0.950 ┆ hit -5.0 %", "┆ 3.000 ┆ not comparable"] {
            assert!(text.contains(verdict), "{verdict}: {text}");
        }
        assert!(!comparisons(&rows[1..]).text_within(80).contains("emulator"));
        assert_eq!(score(&rows), "predicted numbers: 1 of 2 hit (50.0 %), mean error 23.5 %\n");
        assert_eq!(score(&rows[2..]), "");
    }

    #[test]
    fn loosened_rules_are_a_line_below_the_verdicts() {
        let entry = |rule: &str| {
            let text = format!("rule = \"{rule}\"\nold = \"0.1\"\nnew = \"0.2\"\nreason = \"r\"\ndate = 2026-01-02\n");
            toml::from_str::<LedgerEntry>(&text).expect("it is an entry")
        };
        let judged = |ledger: &[LedgerEntry]| judged(&[], &[], ledger, TextFormat::Lines);
        assert_eq!(judged(&[]), "");
        assert_eq!(judged(&[entry("a")]), "1 rule was loosened: a (0.1, now 0.2)\n");
        let both = "2 rules were loosened: a (0.1, now 0.2); b (0.1, now 0.2)\n";
        assert_eq!(judged(&[entry("a"), entry("b")]), both);
    }
}
