//! Results of lanes as JSON: results, latencies, streams, settings.

use analysis::export;
use serde_json::{Map, Value, json};
use simulate::run::RunResult;
use simulate::timed::measure::{DirectionResult, JobResult};
use simulate::timed::result::TimedResult;
use simulate::timed::series::LatencySeries;
use simulate::warning::{self, WarningCommand};
use ssd::WearSummary;
use workload::RequestOperation;

use crate::session_spec::LanePlan;

/// Maximum points of the bandwidth over time.
const POINTS_MAX: usize = 400;

/// Result of a lane in the format of `warp run --json`, with its warnings as sentences of the page.
pub fn cell(plan: &LanePlan, result: &RunResult) -> Value {
    let axes: Vec<String> = (0..result.key.grid.len()).map(|axis| format!("axis {axis}")).collect();
    let mut json = export::to_json(&axes, plan.settings.tail_drive_writes, std::slice::from_ref(result), false);
    let mut cell = json["cells"][0].take();
    // The fio JSON is a separate export.
    cell.as_object_mut().map(|cell| cell.remove("fio"));
    cell["warnings"] = warning::lines(std::slice::from_ref(result), WarningCommand::Studio).into();
    cell
}

/// Latencies, also over time, as members of a JSON object.
pub fn latency(timed: &TimedResult, page_bytes: u64) -> String {
    let rows = timed.jobs.iter().flat_map(|job| RequestOperation::ALL.map(|operation| (job, operation)));
    let jobs: Vec<Value> = rows
        .filter(|(job, operation)| job.direction(*operation).requests > 0)
        .map(|(job, operation)| job_json(job, operation))
        .collect();
    let log = timed.request_log.as_ref();
    let latencies = log.map_or(Value::Null, |log| latencies(&log.latencies));
    let series = series(timed, page_bytes);
    format!("\"jobs\":{},\"series\":{series},\"latencies\":{latencies}", Value::from(jobs))
}

const WEAR_BARS: u32 = 48;

/// Erase counts of blocks: minimum, mean, maximum, and a histogram from the minimum. Null without
/// blocks.
pub fn wear(block_erases: &[u32]) -> Value {
    if block_erases.is_empty() {
        return Value::Null;
    }
    let wear = WearSummary::from_erases(block_erases);
    let (fewest, most) = (wear.fewest_erases, wear.most_erases);
    let step = (most - fewest + 1).div_ceil(WEAR_BARS);
    let mut blocks = vec![0_u32; ((most - fewest) / step + 1) as usize];
    for erases in block_erases {
        blocks[((erases - fewest) / step) as usize] += 1;
    }
    json!({
        "min": fewest,
        "avg": wear.mean_erases(),
        "max": most,
        "step": step,
        "blocks": blocks,
    })
}

/// Percentiles of each direction over time, `null` for intervals without completions.
fn latencies(series: &LatencySeries) -> Value {
    let intervals = 0..series.len();
    let seconds = |interval: usize| interval as f64 * series.interval_ns as f64 / 1e9;
    let percentiles = |operation: RequestOperation| {
        let of = |percent: f64| -> Vec<Option<u64>> {
            let percentile = |interval| series.percentile_ns(interval, operation, percent);
            intervals.clone().map(percentile).collect()
        };
        json!({ "direction": operation, "p50_ns": of(50.0), "p99_ns": of(99.0), "p999_ns": of(99.9) })
    };
    let has_any = |operation: &RequestOperation| {
        intervals.clone().any(|interval| series.percentile_ns(interval, *operation, 50.0).is_some())
    };
    let directions: Vec<Value> = RequestOperation::ALL.into_iter().filter(has_any).map(percentiles).collect();
    json!({ "seconds": intervals.clone().map(seconds).collect::<Vec<f64>>(), "directions": directions })
}

fn job_json(job: &JobResult, operation: RequestOperation) -> Value {
    let measured: &DirectionResult = job.direction(operation);
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

/// Bandwidth of all jobs and of garbage collection over time, in equal intervals, and the share of
/// requests that waited for garbage collection.
fn series(timed: &TimedResult, page_bytes: u64) -> Value {
    let series = &timed.series;
    let together = series.len().div_ceil(POINTS_MAX).max(1);
    let part_seconds = series.interval_ns as f64 * together as f64 / 1e9;
    let (mut seconds, mut hosts, mut collections) = (Vec::new(), Vec::new(), Vec::new());
    let mut waited_share = Vec::new();
    for first in (0..series.len()).step_by(together) {
        let intervals = first..(first + together).min(series.len());
        let moments = intervals.clone().flat_map(|interval| {
            (0..timed.jobs.len())
                .flat_map(move |job| RequestOperation::ALL.map(|operation| series.counts(interval, job, operation)))
        });
        let (host_bytes, requests, waited) = moments.fold((0, 0, 0), |(bytes, requests, waited), moment| {
            (bytes + moment.bytes, requests + moment.requests, waited + moment.waited)
        });
        let copied: u64 = intervals.map(|interval| series.collections(interval).pages_copied).sum();
        seconds.push(first as f64 * series.interval_ns as f64 / 1e9);
        hosts.push(host_bytes as f64 / part_seconds);
        waited_share.push(waited as f64 / requests.max(1) as f64);
        collections.push((copied * page_bytes) as f64 / part_seconds);
    }
    json!({
        "seconds": seconds,
        "host_bytes_per_second": hosts,
        "collection_bytes_per_second": collections,
        "waited_share": waited_share,
    })
}

/// Maximum stream names listed per handle.
const NAMES_MAX: usize = 3;

/// Streams of each owner, if the workload names them. The handles come first, then the shared pool.
pub fn placements(plan: &LanePlan) -> Vec<String> {
    let named = plan.plan.streams_of_handles().unwrap_or_default();
    let of_handle = |names: Vec<String>| match names.len().checked_sub(NAMES_MAX) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..NAMES_MAX].join(", ")),
    };
    named.into_iter().map(of_handle).chain([String::new()]).collect()
}

/// Drive settings that a page can change, by path.
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
    for (path, value) in &plan.order.set {
        settings.insert(path.clone(), serde_json::to_value(value).unwrap_or(Value::Null));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_in_a_bar() {
        assert_eq!(wear(&[]), Value::Null);
        let even = wear(&[3, 3, 3]);
        assert_eq!((&even["step"], &even["blocks"]), (&json!(1), &json!([3])));
        let wide: Vec<u32> = (100..1100).collect();
        let told = wear(&wide);
        let bars: Vec<u64> = told["blocks"].as_array().expect("bars").iter().filter_map(Value::as_u64).collect();
        assert!(bars.len() <= WEAR_BARS as usize && bars.iter().sum::<u64>() == 1000, "{told}");
        assert_eq!(bars[0], told["step"].as_u64().expect("a step"));
        assert_eq!((&told["min"], &told["max"], &told["avg"]), (&json!(100), &json!(1099), &json!(599.5)));
    }
}
