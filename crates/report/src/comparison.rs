//! The HTML report of a comparison of two results.

use std::io::Write;
use std::path::Path;

use super::Library;
use super::html::{self, Page};
use crate::rows::{Column, Rows, Value};
use analysis::compare::{Comparison, Side, Verdict};
use experiment::error::LabError;
use experiment::files::write_atomically;

/// Writes the page atomically.
///
/// # Errors
/// The file cannot be written. The message names it and the system's reason.
pub fn write_comparison(comparison: &Comparison, path: &Path) -> Result<(), LabError> {
    let page = page(comparison);
    write_atomically(path, |file| file.write_all(page.as_bytes()))
}

fn page(comparison: &Comparison) -> String {
    let mut page = Page::new(format!("{} beside {}", comparison.b.name, comparison.a.name));
    let count = |verdict: Verdict| comparison.rows.iter().filter(|row| row.verdict == verdict).count();
    let counts = [
        Verdict::More,
        Verdict::Less,
        Verdict::NoDifference,
        Verdict::NotSeen,
        Verdict::Same,
        Verdict::OneSeed,
    ];
    let counts = counts.map(|verdict| (count(verdict), verdict.words()));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, words)| format!("{count} {words}")).collect();
    page.lead = format!(
        "{} metrics on both sides, of which {}",
        comparison.rows.len(),
        counts.join(", ")
    );
    page.section("what", "Compared results", html::table(&what(comparison)));
    page.section(
        "differences",
        "Differences",
        html::table(&crate::rows::comparison(comparison)),
    );
    page.finish(Library::Inside)
}

/// Origins of the two results, side by side.
fn what(comparison: &Comparison) -> Rows {
    let mut rows = Rows::new([Column::label(""), Column::text("A"), Column::text("B")]);
    let [a, b] = [&comparison.a, &comparison.b];
    rows.add(["".into(), a.name.as_str().into(), b.name.as_str().into()]);
    for key in ["target", "title", "options", "at", "engine", "warp", "fio", "seconds"] {
        let of = |side: &Side| {
            let value = &side.origin[key];
            value.as_str().map_or_else(
                || value.as_f64().map_or(Value::Nothing, Value::Significant),
                Value::from,
            )
        };
        if [a, b].iter().any(|side| !side.origin[key].is_null()) {
            rows.add([key.into(), of(a), of(b)]);
        }
    }
    rows
}
