//! The HTML report of a comparison of two results.

use std::io::Write;
use std::path::Path;

use super::PlotLibrary;
use super::html::{self, HtmlPage};
use crate::rows::{CellValue, ReportTable};
use analysis::compare::{DifferenceVerdict, ResultComparison, Side};
use experiment::LabError;
use experiment::files::write_atomically;

/// Writes the page atomically.
pub fn write_comparison(comparison: &ResultComparison, path: &Path) -> Result<(), LabError> {
    let page = page(comparison);
    write_atomically(path, |file| file.write_all(page.as_bytes()))
}

fn page(comparison: &ResultComparison) -> String {
    let mut page = HtmlPage::new(format!("{} beside {}", comparison.b.name, comparison.a.name));
    let count = |verdict: DifferenceVerdict| comparison.rows.iter().filter(|row| row.verdict == verdict).count();
    let counts = [
        DifferenceVerdict::More,
        DifferenceVerdict::Less,
        DifferenceVerdict::NoDifference,
        DifferenceVerdict::NotSeen,
        DifferenceVerdict::Same,
        DifferenceVerdict::OneSeed,
    ];
    let counts = counts.map(|verdict| (count(verdict), verdict.words()));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, words)| format!("{count} {words}")).collect();
    page.lead = format!("{} metrics on both sides, of which {}", comparison.rows.len(), counts.join(", "));
    page.section("what", "Compared results", html::table(&origins_table(comparison)));
    page.section("differences", "Differences", html::table(&crate::rows::comparison(comparison)));
    page.finish(PlotLibrary::Embedded)
}

fn origins_table(comparison: &ResultComparison) -> ReportTable {
    let mut rows = ReportTable::default().labels([""]).texts(["A", "B"]);
    let [a, b] = [&comparison.a, &comparison.b];
    rows.add(["".into(), a.name.as_str().into(), b.name.as_str().into()]);
    for key in ["target", "title", "options", "at", "engine", "warp", "fio", "seconds"] {
        let of = |side: &Side| {
            let value = &side.origin[key];
            value
                .as_str()
                .map_or_else(|| value.as_f64().map_or(CellValue::Nothing, CellValue::Significant), CellValue::from)
        };
        if [a, b].iter().any(|side| !side.origin[key].is_null()) {
            rows.add([key.into(), of(a), of(b)]);
        }
    }
    rows
}
