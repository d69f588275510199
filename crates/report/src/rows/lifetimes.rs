//! Table of the lifetimes of workloads.

use analysis::lifetimes::{MeasuredLifetimes, SHARES, distance};
use experiment::LabError;

use super::{CellValue, ReportTable};

/// Lifetimes of workloads: a row for each workload, and one for each of several streams. For two
/// workloads, the note above the table has their distance.
pub fn lifetimes(measured: &[MeasuredLifetimes]) -> Result<ReportTable, LabError> {
    let table = ReportTable::default().labels(["written by"]).numbers("", ["written"]);
    let table = table.numbers("", SHARES.map(|share| format!("{:.0} %", share * 100.0)));
    let mut table = table.numbers("%", ["at the end"]);
    if let [a, b] = measured {
        let (distance, at) = distance(a, b)?;
        let at = CellValue::Bytes(at);
        table.notes.push(format!(
            "the Kolmogorov-Smirnov distance of the lifetimes of {} and {} is {distance:.3}, after {at} of writes",
            a.name, b.name
        ));
    }
    table.notes.push(
        "columns in % give the bytes written until that share is overwritten or trimmed. The share at the end is \
         never overwritten"
            .to_string(),
    );
    for workload in measured {
        for (stream, survival) in workload.parts() {
            let name = stream.map_or_else(|| workload.name.clone(), |stream| format!("  {stream}"));
            let written = CellValue::Bytes(workload.on_drive(survival.written_bytes()));
            let mut cells = vec![name.into(), written];
            cells.extend(SHARES.map(|share| CellValue::optional(workload.quantile(survival, share), CellValue::Bytes)));
            cells.push(CellValue::Share(survival.open_share()));
            table.add(cells);
        }
    }
    Ok(table)
}
