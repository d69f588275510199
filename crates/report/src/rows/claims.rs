//! Tables of published numbers, and of claims with their verdicts.

use super::{CellValue, Mark, ReportTable, TableColumn};
use analysis::claim_checker::{ClaimVerdict, PaperComparison};

/// Published numbers and the measured ones.
pub fn comparisons(comparisons: &[PaperComparison]) -> ReportTable {
    let numbers = ["paper's drive", "paper's emulator", "ours", "error"];
    let labels = ["cell", "measured"].map(TableColumn::label);
    let numbers = numbers.map(|heading| TableColumn::number(heading, ""));
    let with_intervals = comparisons.iter().any(|comparison| comparison.interval.is_some());
    let inside = with_intervals.then(|| TableColumn::text("inside"));
    let with_fitted = comparisons.iter().any(|comparison| comparison.fitted);
    let fitted = with_fitted.then(|| TableColumn::text("fitted"));
    let mut rows = ReportTable::new(
        labels
            .into_iter()
            .chain(numbers)
            .chain(inside)
            .chain(fitted)
            .chain([TableColumn::text("source")]),
    );
    for comparison in comparisons {
        let is_relative = comparison.metric.is_relative();
        let value = if is_relative {
            CellValue::Significant
        } else {
            CellValue::Amplification
        };
        let error = if is_relative {
            CellValue::optional(comparison.relative_error(), CellValue::Change)
        } else {
            CellValue::optional(comparison.error(), CellValue::Difference)
        };
        let ours = |ours: f64| match &comparison.interval {
            Some(interval) if is_relative => CellValue::SignificantInterval(ours, [interval.low, interval.high]),
            Some(interval) => CellValue::Interval(ours, [interval.low, interval.high]),
            None => value(ours),
        };
        let cells = [
            comparison.key.to_string().into(),
            comparison.metric.name().into(),
            CellValue::optional(comparison.drive, value),
            CellValue::optional(comparison.emulator, value),
            CellValue::optional(comparison.ours, ours),
            error,
        ];
        let inside = CellValue::optional(comparison.is_inside(), |inside| {
            if inside { "yes" } else { "no" }.into()
        });
        let inside = with_intervals.then_some(inside);
        let fitted = with_fitted.then(|| CellValue::from(if comparison.fitted { "yes" } else { "no" }));
        rows.add(
            cells
                .into_iter()
                .chain(inside)
                .chain(fitted)
                .chain([comparison.source.as_str().into()]),
        );
    }
    rows
}

/// Number of published write amplifications of drives that the intervals contain, in a line. Empty
/// without intervals. Fitted numbers are counted separately, because the intervals must contain
/// them.
pub fn covered(comparisons: &[PaperComparison]) -> String {
    let inside = |fitted: bool| -> Vec<bool> {
        let those = comparisons.iter().filter(|comparison| comparison.fitted == fitted);
        those.filter_map(PaperComparison::is_inside).collect()
    };
    let counted = |inside: &[bool]| {
        let count = inside.iter().filter(|inside| **inside).count();
        format!("{count} of {}", inside.len())
    };
    let (predicted, fitted) = (inside(false), inside(true));
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

/// Claims and their verdicts.
pub fn verdicts(verdicts: &[ClaimVerdict]) -> ReportTable {
    let [claim, found, source] = ["claim", "found", "source"].map(TableColumn::text);
    let mut rows = ReportTable::new([TableColumn::label(""), claim, found, source]);
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
