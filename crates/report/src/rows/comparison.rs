//! Table of a comparison of two results.

use analysis::compare::{DifferenceVerdict, ResultComparison};

use super::{CellValue, ReportTable};

/// The table of differences, with notes on significance above it.
pub fn comparison(comparison: &ResultComparison) -> ReportTable {
    let has_cells = comparison.rows.iter().any(|row| !row.cell.is_empty());
    let has_intervals = comparison.rows.iter().any(|row| row.interval.is_some());
    let table = ReportTable::default().labels(has_cells.then_some("cell")).labels(["measured"]);
    let table = table.numbers("", ["A", "B", "B - A"]).numbers("%", [""]);
    let mut table = table.numbers("", has_intervals.then_some("95 %")).texts(["B is"]);
    table.notes = all_notes(comparison);
    for row in &comparison.rows {
        let mut cells = Vec::new();
        cells.extend(has_cells.then(|| CellValue::from(row.cell.as_str())));
        cells.push(row.metric.as_str().into());
        cells.extend([0, 1].map(|side| {
            let value = [row.a, row.b][side];
            let value = match row.ensembles[side] {
                Some(ends) => CellValue::Interval(value, ends),
                None => CellValue::Significant(value),
            };
            value.mark_doubtful(row.doubtful[side])
        }));
        cells.push(CellValue::Text(signed(row.difference)));
        cells.push(CellValue::optional(row.share, |share| CellValue::Text(format!("{:+.1}", share * 100.0))));
        if has_intervals {
            let ends = |[low, high]: [f64; 2]| CellValue::Text(format!("{} to {}", signed(low), signed(high)));
            cells.push(CellValue::optional(row.interval, ends));
        }
        cells.push(row.verdict.words().into());
        table.add(cells);
    }
    table
}

fn all_notes(comparison: &ResultComparison) -> Vec<String> {
    let mut notes = vec![format!("A: {}", comparison.a.description()), format!("B: {}", comparison.b.description())];
    for side in [&comparison.a, &comparison.b] {
        notes.extend(side.notes.iter().cloned());
    }
    notes.extend(comparison.notes.iter().cloned());
    for (side, only) in ["A", "B"].iter().zip(&comparison.only) {
        if !only.is_empty() {
            notes.push(format!("only in {side}: {}", only.join("; ")));
        }
    }
    if comparison.rows.iter().any(|row| row.verdict == DifferenceVerdict::OneSeed) {
        let is_measured = [&comparison.a, &comparison.b].iter().any(|side| side.is_measurement());
        notes.push(match is_measured {
            true => "a measurement is one value, so its chance is unknown".to_string(),
            false => "one seed does not show chance. Run both sides with several seeds".to_string(),
        });
    }
    notes
}

/// A difference with its sign and four significant digits.
fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", CellValue::Significant(value.abs()))
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
        let placement =
            json!({ "name": "none", "write_amplification": waf, "interval": interval, "end_difference": 0.0 });
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
        for said in ["2.00 (1.80-2.30)", "no difference that the model can see", "an answer of `warp whatif`"] {
            assert!(table.contains(said), "{said}: {table}");
        }
        assert!(!table.contains("one seed"), "{table}");
    }

    #[test]
    fn a_doubtful_placement_keeps_its_mark() {
        let placement = json!({
            "name": "none", "write_amplification": 2.0, "interval": null, "end_difference": 0.08, "is_doubtful": true, "warnings": ["not_steady"],
        });
        let older = json!({
            "name": "none", "write_amplification": 2.0, "interval": null, "unsettled": 0.08, "is_doubtful": true, "findings": ["not_steady"],
        });
        for placement in [placement, older] {
            let doubtful = json!({
                "headline": "A sentence.", "workload": "t.csv", "device": "ssd_a", "drive_bytes": 480_000_000_000_u64,
                "drive_writes_per_day": 1.0, "placements": [placement], "question": { "seed": 1, "overrides": {} },
            });
            let [doubtful, other] = [side("doubtful", &doubtful), answer(2.2, [2.1, 2.4])];
            let table = comparison(&compare(doubtful, other).expect("both have no placement")).text();
            for said in ["2.000*", "doubtful: * doubtful: none (not steady)", "no difference"] {
                assert!(table.contains(said), "{said}: {table}");
            }
            assert!(!table.contains("2.20 (2.10-2.40)*"), "{table}");
        }
    }

    #[test]
    fn a_measurement_is_one_value() {
        let cells =
            ["Non-FDP", "FDP"].map(|variant| json!({ "device": "ssd_a", "variant": variant, "grid": {}, "waf": 1.5 }));
        let study = json!({ "format": "warp-results", "experiment": "study", "cells": cells });
        let statistics = side("stats", &json!({ "hbmw": 2e9, "mbmw": 3.2e9 }));
        let table = comparison(&compare(statistics, side("study", &study)).expect("they have WAF")).text();
        assert!(table.contains("a measurement is one value") && table.contains("Non-FDP"), "{table}");
    }
}
