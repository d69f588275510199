//! What lanes come to, as JSON: results, latencies, streams, settings.

use lab::export;
use lab::run::CellResult;
use lab::timed::measure::{Direction, JobResult, TimedResult};
use serde_json::{Map, Value, json};
use workload::Operation;

use crate::order::LanePlan;

/// Points of the bandwidth over time.
const POINTS_MAX: usize = 400;

/// The result of a lane as `warp run --json` has it.
pub fn cell(plan: &LanePlan, result: &CellResult) -> Value {
    let axes: Vec<String> = (0..result.key.grid.len()).map(|axis| format!("axis {axis}")).collect();
    let mut json = export::to_json(
        &axes,
        plan.settings.tail_capacities,
        std::slice::from_ref(result),
        false,
    );
    let mut cell = json["cells"][0].take();
    // What fio would print of it is an export of its own.
    cell.as_object_mut().map(|cell| cell.remove("fio"));
    cell
}

/// Latencies, and what came of them over time, as the inside of a JSON object; nothing of a run without time.
pub fn latency(result: &CellResult) -> Option<String> {
    let timed = result.timed.as_ref()?;
    let rows = timed
        .jobs
        .iter()
        .flat_map(|job| Operation::ALL.map(|operation| (job, operation)));
    let jobs: Vec<Value> = rows
        .filter(|(job, operation)| job.direction(*operation).requests > 0)
        .map(|(job, operation)| job_json(job, operation))
        .collect();
    let series = series(timed, result.stats.page_bytes);
    Some(format!("\"jobs\":{},\"series\":{series}", Value::from(jobs)))
}

fn job_json(job: &JobResult, operation: Operation) -> Value {
    let measured: &Direction = job.direction(operation);
    let seconds = (job.elapsed_ns() as f64 / 1e9).max(1e-9);
    let latencies = &measured.latencies;
    json!({
        "name": job.name,
        "direction": operation,
        "iops": measured.requests as f64 / seconds,
        "bytes_per_second": measured.bytes as f64 / seconds,
        "mean_ns": latencies.mean_ns(),
        "p50_ns": latencies.percentile_ns(50.0),
        "p99_ns": latencies.percentile_ns(99.0),
        "p999_ns": latencies.percentile_ns(99.9),
        "p9999_ns": latencies.percentile_ns(99.99),
        "waited_share": measured.waits.requests as f64 / measured.requests.max(1) as f64,
    })
}

/// Bandwidth of all jobs and of collection over time, in equal parts.
fn series(timed: &TimedResult, page_bytes: u64) -> Value {
    let series = &timed.series;
    let together = series.len().div_ceil(POINTS_MAX).max(1);
    let part_seconds = series.interval_ns as f64 * together as f64 / 1e9;
    let (mut seconds, mut hosts, mut collections) = (Vec::new(), Vec::new(), Vec::new());
    for first in (0..series.len()).step_by(together) {
        let intervals = first..(first + together).min(series.len());
        let moments = intervals.clone().flat_map(|interval| {
            (0..timed.jobs.len())
                .flat_map(move |job| Operation::ALL.map(|operation| series.moment(interval, job, operation).bytes))
        });
        let host_bytes: u64 = moments.sum();
        let copied: u64 = intervals
            .map(|interval| series.collections(interval).pages_copied)
            .sum();
        seconds.push(first as f64 * series.interval_ns as f64 / 1e9);
        hosts.push(host_bytes as f64 / part_seconds);
        collections.push((copied * page_bytes) as f64 / part_seconds);
    }
    json!({
        "seconds": seconds,
        "host_bytes_per_second": hosts,
        "collection_bytes_per_second": collections,
    })
}

/// Names of what writes through each placement handle, where the workload says them.
pub fn placements(plan: &LanePlan) -> Vec<String> {
    let streams = plan.plan.streams().unwrap_or_default();
    streams.into_iter().map(|stream| stream.name).take(128).collect()
}

/// The settings of the drive that a page offers to change, by the path at which they are set.
pub fn settings(plan: &LanePlan) -> Map<String, Value> {
    let device = serde_json::to_value(&plan.plan.cell().device).expect("a device serializes");
    let mut settings = Map::new();
    for table in ["geometry", "handles", "gc"] {
        for (name, value) in device[table].as_object().into_iter().flatten() {
            if !value.is_null() && !value.is_array() {
                settings.insert(format!("{table}.{name}"), value.clone());
            }
        }
    }
    for (path, value) in &plan.set {
        settings.insert(path.clone(), serde_json::to_value(value).unwrap_or(Value::Null));
    }
    settings
}
