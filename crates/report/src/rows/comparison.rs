//! Table of a comparison of two results.

use analysis::compare::{Comparison, Verdict};

use super::{Column, Mark, Rows, Value};

/// The table of differences, with notes on significance above it.
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
    table.notes = all_notes(comparison);
    for row in &comparison.rows {
        let mut cells = Vec::new();
        cells.extend(has_cells.then(|| Value::from(row.cell.as_str())));
        cells.push(row.metric.as_str().into());
        cells.extend([0, 1].map(|side| {
            let value = [row.a, row.b][side];
            let value = match row.ensembles[side] {
                Some(ends) => Value::Interval(value, ends),
                None => number(value),
            };
            value.doubtful_if(row.doubtful[side])
        }));
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
fn all_notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = vec![
        format!("A: {}", comparison.a.about()),
        format!("B: {}", comparison.b.about()),
    ];
    for side in [&comparison.a, &comparison.b] {
        notes.extend(side.notes.iter().cloned());
    }
    notes.extend(comparison.notes.iter().cloned());
    for (side, only) in ["A", "B"].iter().zip(&comparison.only) {
        if !only.is_empty() {
            notes.push(format!("only in {side}: {}", only.join("; ")));
        }
    }
    if comparison.rows.iter().any(|row| row.verdict == Verdict::OneSeed) {
        let is_measured = [&comparison.a, &comparison.b].iter().any(|side| side.is_measurement());
        notes.push(match is_measured {
            true => "a measurement is one value, so its chance is unknown".to_string(),
            false => "one seed does not show chance. Run both sides with several seeds".to_string(),
        });
    }
    notes
}

fn number(value: f64) -> Value {
    Value::Significant(value)
}

/// A difference with its sign and four significant digits.
fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", Value::Significant(value.abs()))
}

#[cfg(test)]
mod tests {
    use analysis::compare::{Side, compare};
    use serde_json::{Value as Json, json};

    use super::*;

    fn side(name: &str, json: &Json) -> Side {
        Side::read(name, &json.to_string()).expect("a result")
    }

    fn answer(waf: f64, interval: [f64; 2]) -> Side {
        let placement = json!({ "name": "none", "write_amplification": waf, "interval": interval, "unsettled": 0.0 });
        let answer = json!({
            "headline": "A sentence.", "workload": "t.csv", "device": "ssd_a", "drive_bytes": 480_000_000_000_u64,
            "drive_writes_per_day": 1.0, "placements": [placement], "question": { "seed": 1, "overrides": {} },
        });
        side("answer", &answer)
    }

    #[test]
    fn the_table_says_what_each_side_is_and_the_range_of_an_answer() {
        let compared = compare(answer(2.0, [1.8, 2.3]), answer(2.2, [2.0, 2.4])).expect("both have no placement");
        let table = comparison(&compared).text();
        for said in [
            "2.00 (1.80-2.30)",
            "no difference that the model can see",
            "an answer of `warp whatif`",
        ] {
            assert!(table.contains(said), "{said}: {table}");
        }
        assert!(!table.contains("one seed"), "{table}");
    }

    #[test]
    fn a_doubtful_placement_keeps_its_mark() {
        let placement = json!({
            "name": "none", "write_amplification": 2.0, "interval": null, "unsettled": 0.0, "is_doubtful": true, "findings": ["not_settled"],
        });
        let doubtful = json!({
            "headline": "A sentence.", "workload": "t.csv", "device": "ssd_a", "drive_bytes": 480_000_000_000_u64,
            "drive_writes_per_day": 1.0, "placements": [placement], "question": { "seed": 1, "overrides": {} },
        });
        let compared = compare(side("doubtful", &doubtful), answer(2.2, [2.0, 2.4])).expect("both have no placement");
        let table = comparison(&compared).text();
        for said in ["2.000*", "doubtful: * doubtful: none (not settled)"] {
            assert!(table.contains(said), "{said}: {table}");
        }
        assert!(!table.contains("2.20 (2.00-2.40)*"), "{table}");
    }

    #[test]
    fn a_measurement_is_one_value() {
        let cells =
            ["Non-FDP", "FDP"].map(|variant| json!({ "device": "ssd_a", "variant": variant, "grid": {}, "waf": 1.5 }));
        let study = json!({ "format": "warp-results", "experiment": "study", "cells": cells });
        let statistics = side("stats", &json!({ "hbmw": 2e9, "mbmw": 3.2e9 }));
        let table = comparison(&compare(statistics, side("study", &study)).expect("they have WAF")).text();
        assert!(
            table.contains("a measurement is one value") && table.contains("Non-FDP"),
            "{table}"
        );
    }
}
