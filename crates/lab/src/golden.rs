//! Golden results: the integers that the quick form of an experiment gave when it was last looked at.
//!
//! `experiments/<slug>/golden.json` holds a row for each cell. A run of the same code gives the same bytes on every machine,
//! so rows are compared exactly; whoever changes one explains it in the commit.

use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::run::CellResult;

/// The integers of one cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldenRow {
    /// The cell and its seed.
    pub cell: String,
    /// Bytes the host wrote.
    pub host_bytes_written: u64,
    /// Bytes programmed.
    pub media_bytes_written: u64,
    /// Bytes erased.
    pub media_bytes_erased: u64,
    /// Pages copied out of the reclaim units of each handle and, last, of the shared pool.
    pub gc_pages_copied: Vec<u64>,
}

/// The rows of results.
pub fn rows(results: &[CellResult]) -> Vec<GoldenRow> {
    let row = |result: &CellResult| GoldenRow {
        cell: format!("{} | seed {}", result.key, result.seed),
        host_bytes_written: result.stats.host_bytes_written(),
        media_bytes_written: result.stats.media_bytes_written(),
        media_bytes_erased: result.stats.media_bytes_erased(),
        gc_pages_copied: (result.stats.handles.iter().chain([&result.stats.shared]))
            .map(|row| row.gc_pages_copied)
            .collect(),
    };
    results.iter().map(row).collect()
}

/// Path of an experiment's golden file, from the root of the project.
pub fn path(slug: &str) -> String {
    format!("experiments/{slug}/golden.json")
}

/// Reads a golden file.
///
/// # Errors
/// It cannot be read, or is not one.
pub fn read(path: &str) -> Result<Vec<GoldenRow>, LabError> {
    let text = std::fs::read_to_string(path).map_err(|source| LabError::Io {
        file: path.to_string(),
        source,
    })?;
    serde_json::from_str(&text).map_err(|error| LabError::invalid(path, error.to_string()))
}

/// Writes a golden file, a row a line.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &str, rows: &[GoldenRow]) -> Result<(), LabError> {
    let lines: Vec<String> = rows
        .iter()
        .map(|row| serde_json::to_string(row).expect("a row serializes"))
        .collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    crate::export::write_atomically(std::path::Path::new(path), |file| file.write_all(text.as_bytes()))
}

/// What differs, one sentence for each difference; empty if nothing does.
pub fn differences(golden: &[GoldenRow], rows: &[GoldenRow]) -> Vec<String> {
    let mut differences = Vec::new();
    for row in rows {
        match golden.iter().find(|expected| expected.cell == row.cell) {
            None => differences.push(format!("{}: there is no golden row", row.cell)),
            Some(expected) if expected != row => {
                differences.push(format!(
                    "{}: media bytes written {} (golden {}), copied pages {:?} (golden {:?})",
                    row.cell,
                    row.media_bytes_written,
                    expected.media_bytes_written,
                    row.gc_pages_copied,
                    expected.gc_pages_copied
                ));
            }
            Some(_) => {}
        }
    }
    let missing = golden
        .iter()
        .filter(|expected| rows.iter().all(|row| row.cell != expected.cell));
    differences.extend(missing.map(|expected| format!("{}: was not run", expected.cell)));
    differences
}
