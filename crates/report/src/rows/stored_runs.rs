//! Tables of stored runs.

use super::{CellValue, ReportTable};
use analysis::store::{self, StoredRun};

/// Displayed digits of an engine's digest.
const ENGINE_DIGITS: usize = 12;

pub fn kept_runs(runs: &[StoredRun]) -> ReportTable {
    let mut rows = ReportTable::default().labels(["run"]).texts(["when", "what", "on"]).numbers("", ["runs", "WAF"]);
    for run in runs {
        rows.add([
            run.id.as_str().into(),
            run.text("at").replace('T', " ").replace('Z', "").into(),
            format!("{} {}", run.text("target"), run.text("options")).trim_end().into(),
            run.devices().join(", ").into(),
            CellValue::Count(run.cells().len() as u64),
            CellValue::optional(run.write_amplification_range(), |[least, most]| {
                let [least, most] = [least, most].map(|waf| CellValue::Amplification(waf).to_string());
                match least == most {
                    true => CellValue::Text(least),
                    false => CellValue::Text(format!("{least} to {most}")),
                }
            }),
        ]);
    }
    rows
}

/// Description of a stored run, and the measurements of its cells.
pub fn kept_run(run: &StoredRun) -> (ReportTable, ReportTable) {
    let engine = run.text("engine");
    let mut about = vec![
        ("run", CellValue::from(run.id.as_str())),
        ("what", format!("{} ({})", run.text("target"), run.text("title")).into()),
        ("options", run.text("options").into()),
        ("when", run.text("at").into()),
        ("engine", format!("WARP {}, {}", run.text("warp"), &engine[..engine.len().min(ENGINE_DIGITS)]).into()),
    ];
    let seconds = run.document["seconds"].as_f64();
    about.extend(seconds.map(|seconds| ("took", format!("{seconds:.1} s").into())));
    let cells = ReportTable::default().labels(["device", "variant"]).texts(["at"]);
    let mut cells = cells.numbers("", ["seed", "WAF", "at the end"]);
    let amplification = |value: &serde_json::Value| CellValue::optional(value.as_f64(), CellValue::Amplification);
    for cell in run.cells() {
        let text = |key: &str| cell[key].as_str().unwrap_or_default().to_string();
        let grid = cell["grid"].as_object().into_iter().flatten();
        let grid: Vec<String> =
            grid.map(|(axis, value)| format!("{axis} {}", value.as_str().unwrap_or_default())).collect();
        cells.add([
            text("device").into(),
            text("variant").into(),
            grid.join(", ").into(),
            CellValue::optional(cell["seed"].as_u64(), CellValue::Index),
            CellValue::optional(store::headline_waf(cell), CellValue::Amplification),
            amplification(&cell["tail_waf"]),
        ]);
    }
    (ReportTable::pairs(about), cells)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_of_several_cells_says_the_least_and_the_greatest_write_amplification() {
        let run = StoredRun {
            id: "several".to_string(),
            document: json!({ "target": "t.fio", "options": "--scale 1/64 --capacity 480 GB", "result": { "cells": [{ "waf": 2.0, "headline_waf": 2.25 }, { "waf": null }, { "waf": 1.5 }, { "waf": 1.75 }] } }),
        };
        let printed = kept_runs(&[run]).text();
        assert!(printed.contains("1.500 to 2.250"), "{printed}");
        assert!(printed.contains("t.fio --scale 1/64 --capacity 480 GB"), "{printed}");
    }
}
