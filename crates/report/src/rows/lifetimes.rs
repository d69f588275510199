//! Table of the lifetimes of workloads.

use analysis::lifetimes::{Measured, SHARES, distance};
use experiment::error::LabError;

use super::{Column, Rows, Value};

/// Lifetimes of workloads: a row for each workload, and one for each of several streams. For two
/// workloads, the note above the table has their distance.
///
/// # Errors
/// Two workloads were measured at different scales.
pub fn lifetimes(measured: &[Measured]) -> Result<Rows, LabError> {
    let shares = SHARES.map(|share| Column::number(format!("{:.0} %", share * 100.0), ""));
    let columns = [Column::label("written by"), Column::number("written", "")].into_iter();
    let columns = columns.chain(shares).chain([Column::number("at the end", "%")]);
    let mut table = Rows::new(columns);
    if let [a, b] = measured {
        let (distance, at) = distance(a, b)?;
        let at = Value::Bytes(at);
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
            let written = Value::Bytes(workload.on_drive(survival.written_bytes()));
            let mut cells = vec![name.into(), written];
            cells.extend(SHARES.map(|share| Value::optional(workload.quantile(survival, share), Value::Bytes)));
            cells.push(Value::Share(survival.open_share()));
            table.add(cells);
        }
    }
    Ok(table)
}
