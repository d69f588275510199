//! Tables of published numbers, and of claims with their verdicts.

use super::{Column, Mark, Rows, Value};
use analysis::judge::{Comparison, Verdict};

/// Published numbers and the measured ones.
pub fn comparisons(comparisons: &[Comparison]) -> Rows {
    let numbers = ["paper's drive", "paper's emulator", "ours", "error"];
    let labels = ["cell", "measured"].map(Column::label);
    let numbers = numbers.map(|heading| Column::number(heading, ""));
    let with_intervals = comparisons.iter().any(|comparison| comparison.interval.is_some());
    let inside = with_intervals.then(|| Column::text("inside"));
    let with_fitted = comparisons.iter().any(|comparison| comparison.fitted);
    let fitted = with_fitted.then(|| Column::text("fitted"));
    let mut rows = Rows::new(
        labels
            .into_iter()
            .chain(numbers)
            .chain(inside)
            .chain(fitted)
            .chain([Column::text("source")]),
    );
    for comparison in comparisons {
        let is_relative = comparison.metric.is_relative();
        let value = if is_relative {
            Value::Significant
        } else {
            Value::Amplification
        };
        let error = if is_relative {
            Value::optional(comparison.relative_error(), Value::Change)
        } else {
            Value::optional(comparison.error(), Value::Difference)
        };
        let ours = |ours: f64| match &comparison.interval {
            Some(interval) if is_relative => Value::SignificantInterval(ours, [interval.low, interval.high]),
            Some(interval) => Value::Interval(ours, [interval.low, interval.high]),
            None => value(ours),
        };
        let cells = [
            comparison.key.to_string().into(),
            comparison.metric.name().into(),
            Value::optional(comparison.drive, value),
            Value::optional(comparison.emulator, value),
            Value::optional(comparison.ours, ours),
            error,
        ];
        let inside = Value::optional(comparison.is_inside(), |inside| {
            if inside { "yes" } else { "no" }.into()
        });
        let inside = with_intervals.then_some(inside);
        let fitted = with_fitted.then(|| Value::from(if comparison.fitted { "yes" } else { "no" }));
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
pub fn covered(comparisons: &[Comparison]) -> String {
    let inside = |fitted: bool| -> Vec<bool> {
        let those = comparisons.iter().filter(|comparison| comparison.fitted == fitted);
        those.filter_map(Comparison::is_inside).collect()
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
        let share = Value::Share(count as f64 / predicted.len() as f64);
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
pub fn verdicts(verdicts: &[Verdict]) -> Rows {
    let [claim, found, source] = ["claim", "found", "source"].map(Column::text);
    let mut rows = Rows::new([Column::label(""), claim, found, source]);
    for verdict in verdicts {
        let (mark, word) = match verdict.holds {
            Some(true) => (Mark::Holds, "holds"),
            Some(false) => (Mark::Fails, "FAILS"),
            None => (Mark::None, "-"),
        };
        let texts = [word, &verdict.what, &verdict.found, &verdict.source];
        rows.add_marked(mark, texts.map(Value::from));
    }
    rows
}
