//! How long what a workload writes lives, and how much two workloads differ in that.
//!
//! ```text
//! RunPlan -> Source -> workload::lifetimes::Observer -> Measured -> table, JSON
//! ```
//!
//! Nothing is run on a device: lifetimes are the workload's own. On a twin, bytes are those of the drive that it stands for.

use serde_json::{Value as Json, json};
use workload::Operation;
use workload::lifetimes::{Observer, Survival};

use crate::error::LabError;
use crate::rows::{Column, Rows, Value};
use crate::run::{Progress, RunPlan, UNWRITTEN_REQUESTS_MAX, Watch};

/// Version of the JSON; it grows when a key changes its meaning or goes.
const VERSION: u32 = 1;
/// Requests that are asked for at once.
const BATCH: usize = 4096;
/// Shares of what is written whose lifetimes are printed.
const SHARES: [f64; 4] = [0.1, 0.25, 0.5, 0.9];

/// The lifetimes of a workload.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What it is called.
    pub name: String,
    /// Of all streams together.
    pub all: Survival,
    /// Of each stream that wrote something, with its name.
    pub streams: Vec<(String, Survival)>,
    /// How many bytes of the drive one of its own stands for.
    denominator: u64,
}

/// Follows a workload until it ends, has written so many drive-writes, or is stopped.
///
/// # Errors
/// The workload cannot be read, or writes nothing.
pub fn measure(name: &str, plan: &RunPlan, write_capacities: f64, progress: &Progress) -> Result<Measured, LabError> {
    let mut source = plan.source()?;
    let names = source.streams();
    let target = plan.target();
    let limit = (target.capacity_bytes() as f64 * write_capacities) as u64;
    let mut observer = Observer::new(target, names.len());
    let mut requests = Vec::with_capacity(BATCH);
    let mut without_write = 0;
    while observer.written_bytes() < limit && without_write < UNWRITTEN_REQUESTS_MAX && !progress.stopped() {
        requests.clear();
        if source.next_batch(&mut requests, BATCH)? == 0 {
            break;
        }
        let writes = requests.iter().any(|request| request.operation == Operation::Write);
        without_write = if writes { 0 } else { without_write + requests.len() };
        for request in &requests {
            observer.observe(request);
        }
    }
    if observer.written_bytes() == 0 && !progress.stopped() {
        return Err(LabError::invalid(name, "writes nothing, so nothing has a lifetime"));
    }
    let (all, streams) = observer.finish();
    let streams = names.into_iter().zip(streams);
    Ok(Measured {
        name: name.to_string(),
        all,
        streams: streams.filter(|(_, survival)| survival.written_bytes() > 0).collect(),
        denominator: target.denominator(),
    })
}

/// The distance of two workloads and where it is, bytes.
///
/// # Errors
/// They were followed on different scales.
fn distance(a: &Measured, b: &Measured) -> Result<(f64, u64), LabError> {
    if a.denominator != b.denominator {
        let problem = format!("is on a twin of another size than {}; give --scale", a.name);
        return Err(LabError::invalid(&b.name, problem));
    }
    let (distance, at) = a.all.distance(&b.all);
    Ok((distance, at.saturating_mul(a.denominator)))
}

/// A table: a row for all of a workload, and one for each of its streams, where there are several; for two workloads how far their
/// lifetimes are apart stands above it.
///
/// # Errors
/// Two workloads were followed on different scales.
pub fn table(measured: &[Measured]) -> Result<Rows, LabError> {
    let shares = SHARES.map(|share| Column::number(format!("{:.0} %", share * 100.0), ""));
    let columns = [Column::label("written by"), Column::number("written", "")].into_iter();
    let columns = columns.chain(shares).chain([Column::number("at the end", "%")]);
    let mut table = Rows::new(columns);
    if let [a, b] = measured {
        let (distance, at) = distance(a, b)?;
        let at = Value::Bytes(at);
        table.notes.push(format!(
            "Kolmogorov-Smirnov distance of the lifetimes of {} and {}: {distance:.3}, after {at} were written",
            a.name, b.name
        ));
    }
    table.notes.push(
        "bytes written until so much of it is overwritten or trimmed; at the end: what is still there then".to_string(),
    );
    for workload in measured {
        let mut add = |name: String, survival: &Survival| {
            let bytes = |bytes: u64| Value::Bytes(bytes.saturating_mul(workload.denominator));
            let mut cells = vec![name.into(), bytes(survival.written_bytes())];
            cells.extend(SHARES.map(|share| Value::optional(survival.quantile(share), bytes)));
            cells.push(Value::Share(survival.open_share()));
            table.add(cells);
        };
        add(workload.name.clone(), &workload.all);
        if workload.streams.len() > 1 {
            for (name, survival) in &workload.streams {
                add(format!("  {name}"), survival);
            }
        }
    }
    Ok(table)
}

/// As JSON on one line.
///
/// # Errors
/// Two workloads were followed on different scales.
pub fn to_json(measured: &[Measured]) -> Result<Json, LabError> {
    let of = |survival: &Survival, denominator: u64| {
        let quantiles = SHARES.map(|share| {
            let bytes = survival.quantile(share).map(|bytes| bytes.saturating_mul(denominator));
            json!({ "share": share, "bytes": bytes })
        });
        json!({
            "written_bytes": survival.written_bytes().saturating_mul(denominator),
            "end_within": quantiles,
            "there_at_the_end": survival.open_share(),
        })
    };
    let workloads = measured.iter().map(|workload| {
        let streams = workload.streams.iter();
        let streams =
            streams.map(|(name, survival)| json!({ "name": name, "lifetimes": of(survival, workload.denominator) }));
        json!({
            "name": workload.name,
            "lifetimes": of(&workload.all, workload.denominator),
            "streams": streams.collect::<Vec<_>>(),
        })
    });
    let mut json = json!({
        "format": "warp-lifetimes",
        "version": VERSION,
        "workloads": workloads.collect::<Vec<_>>(),
    });
    if let [a, b] = measured {
        let (distance, at) = distance(a, b)?;
        json["kolmogorov_smirnov"] = json!({ "distance": distance, "at_bytes": at });
    }
    Ok(json)
}
