//! Timed results in fio's JSON format (`fio --output-format=json`), for tools that read fio's
//! results.
//!
//! Keys and units are those of fio 3.42 (`stat.c`: `show_thread_status_json`). Instances of a job
//! form one entry, as with `group_reporting`. Processor time and date do not exist in virtual time
//! and are 0. Submission takes no time, so completion latency equals total latency.

use serde_json::{Map, Value, json};
use ssd::Nanos;

use super::latency::LatencyDistribution;
use super::measure::{DirectionResult, JobResult};
use super::result::TimedResult;
use super::series::TimedSeries;
use workload::RequestOperation;

/// Percentiles that fio prints, and one more.
pub(crate) const PERCENTILES: [f64; 18] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999];

const MILLISECOND_NS: Nanos = 1_000_000;

/// Builds the whole document.
pub fn to_fio_json(result: &TimedResult) -> Value {
    let jobs = result.jobs.iter().enumerate();
    json!({
        "fio version": concat!("fio-3.42-warp-", env!("CARGO_PKG_VERSION")),
        "timestamp": 0,
        "timestamp_ms": 0,
        "time": "Thu Jan  1 00:00:00 1970",
        "global options": {},
        "jobs": jobs.map(|(index, job)| job_json(&result.series, index, job)).collect::<Vec<_>>(),
        "disk_util": [],
    })
}

fn job_json(series: &TimedSeries, index: usize, job: &JobResult) -> Value {
    let runtime_ms = job.elapsed_ns() / MILLISECOND_NS;
    let direction = |operation: RequestOperation| direction_json(series, index, job, operation);
    let (shares, goal) = (latency_shares(job), job.latency_goal);
    json!({
        "jobname": job.name,
        "groupid": job.group,
        "job_start": job.from_ns / MILLISECOND_NS,
        "error": 0,
        "eta": 0,
        "elapsed": runtime_ms.div_ceil(1000),
        "job options": {
            "name": job.name,
            "rw": job.rw,
            "bs": job.request_bytes.1.to_string(),
            "iodepth": job.queue_depth.to_string(),
            "numjobs": job.instances.to_string(),
        },
        "read": direction(RequestOperation::Read),
        "write": direction(RequestOperation::Write),
        "trim": direction(RequestOperation::Trim),
        "sync": { "total_ios": 0, "lat_ns": summary(&LatencyDistribution::default()) },
        "job_runtime": runtime_ms,
        "usr_cpu": 0,
        "sys_cpu": 0,
        "ctx": 0,
        "majf": 0,
        "minf": 0,
        "iodepth_level": depth_level(job),
        "latency_ns": shares["latency_ns"],
        "latency_us": shares["latency_us"],
        "latency_ms": shares["latency_ms"],
        "latency_depth": goal.map_or(job.queue_depth, |goal| goal.depth),
        "latency_target": goal.map_or(0, |goal| goal.target_ns),
        "latency_percentile": goal.map_or(Value::from(0), |goal| goal.percent.into()),
        "latency_window": goal.map_or(0, |goal| goal.window_ns / 1000),
    })
}

fn direction_json(series: &TimedSeries, index: usize, job: &JobResult, operation: RequestOperation) -> Value {
    let direction = job.direction(operation);
    let runs = direction.requests > 0;
    let elapsed_ns = if runs { job.elapsed_ns() } else { 0 };
    let per_second = |amount: u64| amount as f64 * 1e9 / elapsed_ns.max(1) as f64;
    let bytes_per_second = if runs { per_second(direction.bytes) } else { 0.0 };
    let moments = IntervalRates::new(series, index, operation);
    let kibibytes = moments.spread(|moment| moment.0 as f64 / 1024.0);
    let requests = moments.spread(|moment| moment.1 as f64);
    json!({
        "io_bytes": direction.bytes,
        "io_kbytes": direction.bytes / 1024,
        "bw_bytes": bytes_per_second as u64,
        "bw": bytes_per_second as u64 / 1024,
        "iops": if runs { per_second(direction.requests) } else { 0.0 },
        "runtime": elapsed_ns / MILLISECOND_NS,
        "total_ios": direction.requests,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": summary(&LatencyDistribution::default()),
        "clat_ns": with_percentiles(&direction.latencies),
        "lat_ns": summary(&direction.latencies),
        "bw_min": kibibytes.0 as u64,
        "bw_max": kibibytes.1 as u64,
        "bw_agg": if runs { 100.0 } else { 0.0 },
        "bw_mean": kibibytes.2,
        "bw_dev": kibibytes.3,
        "bw_samples": moments.rows.len(),
        "iops_min": requests.0 as u64,
        "iops_max": requests.1 as u64,
        "iops_mean": requests.2,
        "iops_stddev": requests.3,
        "iops_samples": moments.rows.len(),
        "warp_gc_wait": waits(direction),
    })
}

/// Extension: waits for garbage collection.
fn waits(direction: &DirectionResult) -> Value {
    json!({
        "ios": direction.waits.requests,
        "share": direction.waits.requests as f64 / direction.requests.max(1) as f64,
        "total_ns": direction.waits.sum_ns,
        "max_ns": direction.waits.max_ns,
    })
}

fn summary(latencies: &LatencyDistribution) -> Value {
    json!({
        "min": latencies.min_ns(),
        "max": latencies.max_ns(),
        "mean": latencies.mean_ns(),
        "stddev": latencies.deviation_ns(),
        "N": latencies.count(),
    })
}

fn with_percentiles(latencies: &LatencyDistribution) -> Value {
    let mut entry = summary(latencies);
    if latencies.count() > 0 {
        let percentile = |percent: f64| (format!("{percent:.6}"), latencies.percentile_ns(percent).into());
        let percentiles: Map<String, Value> = PERCENTILES.into_iter().map(percentile).collect();
        entry["percentile"] = percentiles.into();
    }
    entry
}

/// Bytes and requests per second, for each whole interval between a direction's first and last.
struct IntervalRates {
    rows: Vec<(u64, u64)>,
}

impl IntervalRates {
    fn new(series: &TimedSeries, job: usize, operation: RequestOperation) -> IntervalRates {
        let moments = (0..series.len()).map(|interval| series.counts(interval, job, operation));
        let mut rows: Vec<(u64, u64)> = moments.map(|moment| (moment.bytes, moment.requests)).collect();
        let used = |row: &(u64, u64)| row.1 > 0;
        rows.truncate(rows.iter().rposition(used).map_or(0, |last| last + 1));
        rows.drain(..rows.iter().position(used).unwrap_or(0));
        // The end of the run cuts the last interval short.
        if rows.len() > 1 {
            rows.pop();
        }
        let scale = |amount: u64| (u128::from(amount) * 1_000_000_000 / u128::from(series.interval_ns)) as u64;
        for row in &mut rows {
            *row = (scale(row.0), scale(row.1));
        }
        IntervalRates { rows }
    }

    /// Minimum, maximum, mean, standard deviation.
    fn spread(&self, value: impl Fn(&(u64, u64)) -> f64) -> (f64, f64, f64, f64) {
        if self.rows.is_empty() {
            return (0.0, 0.0, 0.0, 0.0);
        }
        let values: Vec<f64> = self.rows.iter().map(value).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        (least, most, mean, variance.sqrt())
    }
}

/// fio's coarse distribution of queue depths. A closed loop always has all requests in flight.
fn depth_level(job: &JobResult) -> Value {
    let levels = [("1", 1), ("2", 2), ("4", 4), ("8", 8), ("16", 16), ("32", 32), (">=64", 64)];
    let per_instance = (job.mean_in_flight() / f64::from(job.instances)).round().max(1.0) as u64;
    let reached = levels.iter().rposition(|(_, level)| per_instance >= *level).unwrap_or(0);
    let level = |(index, (name, _)): (usize, &(&str, u64))| {
        let percent = if index == reached { 100.0 } else { 0.0 };
        ((*name).to_string(), percent.into())
    };
    levels.iter().enumerate().map(level).collect::<Map<String, Value>>().into()
}

/// fio's coarse histograms: percentage of all requests below each bound.
fn latency_shares(job: &JobResult) -> Map<String, Value> {
    const BOUNDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    const MILLISECONDS: [u64; 2] = [2000, u64::MAX];
    let mut all = LatencyDistribution::default();
    for direction in &job.directions {
        all.add(&direction.latencies);
    }
    let distribution = all.distribution();
    let mut place = 0;
    let mut before = 0.0;
    let mut shares = Map::new();
    for (name, unit_ns) in [("latency_ns", 1), ("latency_us", 1000), ("latency_ms", MILLISECOND_NS)] {
        let more = if name == "latency_ms" { &MILLISECONDS[..] } else { &[] };
        let mut row = Map::new();
        for bound in BOUNDS.iter().chain(more) {
            while place < distribution.len() && distribution[place].0 < bound.saturating_mul(unit_ns) {
                place += 1;
            }
            let share = if place == 0 { 0.0 } else { distribution[place - 1].1 };
            let key = if *bound == u64::MAX { ">=2000".to_string() } else { bound.to_string() };
            row.insert(key, ((share - before) * 100.0).into());
            before = share;
        }
        shares.insert(name.to_string(), row.into());
    }
    shares
}
