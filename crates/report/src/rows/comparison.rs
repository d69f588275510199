//! Two results beside each other, as a table.

use analysis::compare::{Comparison, Verdict};

use super::{Column, Mark, Rows, Value};

/// The table of differences, with what there is to say of chance above it.
pub fn comparison(comparison: &Comparison) -> Rows {
    let has_cells = comparison.rows.iter().any(|row| !row.cell.is_empty());
    let has_intervals = comparison.rows.iter().any(|row| row.interval.is_some());
    let labels = has_cells
        .then(|| Column::label("cell"))
        .into_iter()
        .chain([Column::label("measured")]);
    let numbers = ["A", "B", "B - A"].map(|heading| Column::number(heading, ""));
    let share = [Column::number("", "%")];
    let interval = has_intervals.then(|| Column::number("95 %", ""));
    let columns = labels
        .chain(numbers)
        .chain(share)
        .chain(interval)
        .chain([Column::text("B is")]);
    let mut table = Rows::new(columns);
    table.notes = notes(comparison);
    for row in &comparison.rows {
        let mut cells = Vec::new();
        cells.extend(has_cells.then(|| Value::from(row.cell.as_str())));
        cells.push(row.metric.as_str().into());
        cells.extend([row.a, row.b].map(number));
        cells.push(Value::Text(signed(row.difference)));
        cells.push(Value::optional(row.share, |share| {
            Value::Text(format!("{:+.1}", share * 100.0))
        }));
        if has_intervals {
            let ends = |[low, high]: [f64; 2]| Value::Text(format!("{} to {}", signed(low), signed(high)));
            cells.push(Value::optional(row.interval, ends));
        }
        cells.push(row.verdict.words().into());
        table.add_marked(Mark::None, cells);
    }
    table
}

/// The lines above the table.
fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = vec![
        format!("A: {}", comparison.a.about()),
        format!("B: {}", comparison.b.about()),
    ];
    for side in [&comparison.a, &comparison.b] {
        notes.extend(side.notes.iter().cloned());
    }
    for (side, only) in ["A", "B"].iter().zip(&comparison.only) {
        if !only.is_empty() {
            notes.push(format!("only in {side}: {}", only.join("; ")));
        }
    }
    if comparison.rows.iter().any(|row| row.verdict == Verdict::OneSeed) {
        notes.push("one seed: nothing can be said of chance; run both with several seeds".to_string());
    }
    notes
}

fn number(value: f64) -> Value {
    Value::Significant(value)
}

/// A difference with its sign, in four significant digits.
fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", Value::Significant(value.abs()))
}
