//! Export of results as JSON.

use serde_json::{Value, json};
use ssd::{OwnerStats, UnitOwner};
use workload::RequestOperation;

use super::tables::{SampleRow, owner_counters, sample_rows};
use crate::claim_checker::ClaimChecker;
use experiment::coordinates::axis_name;
use experiment::{CellKey, Metric};
use simulate::feedback::{FeedbackResult, ReadingRow};
use simulate::run::{RefusedCell, RunResult, RunSample};
use simulate::timed::latency::LatencyDistribution;
use simulate::timed::replay::{Burst, RequestGroup, ResponseTimes, TracePace};

/// Version of the schema of [`to_json`]. It increases when a key is removed or changes its meaning.
/// New keys do not increase it.
pub const JSON_VERSION: u32 = 2;

/// All measurements and verdicts as JSON. This is the output of `warp run --json` and the content
/// of a stored run.
pub fn judged_json(judge: &ClaimChecker<'_>) -> Value {
    let axes = judge.experiment.axes();
    let mut json = to_json(&axes, judge.tail_drive_writes, judge.results, false);
    let intervals: Vec<Value> = judge.measured().filter_map(|key| interval_json(&axes, judge, key)).collect();
    if !intervals.is_empty() {
        json["intervals"] = intervals.into();
    }
    if !judge.refused.is_empty() {
        json["refused"] = refused_json(&axes, judge.refused);
    }
    json["experiment"] = judge.experiment.slug.clone().into();
    json["comparisons"] = json!(judge.comparisons());
    json["verdicts"] = json!(judge.verdicts());
    json["regression"] = json!(judge.regression());
    json
}

/// All results with a stable schema. `samples` adds the time series.
pub fn to_json(axes: &[String], tail_drive_writes: f64, results: &[RunResult], samples: bool) -> Value {
    let cells: Vec<Value> = results.iter().map(|result| cell_json(axes, tail_drive_writes, result, samples)).collect();
    json!({
        "format": "warp-results",
        "version": JSON_VERSION,
        "axes": axes,
        "tail_drive_writes": tail_drive_writes,
        "cells": cells,
    })
}

/// Interval of a cell's write amplification over its device's ensemble. `None` if the ensemble was
/// not run.
fn interval_json(axes: &[String], judge: &ClaimChecker<'_>, key: &CellKey) -> Option<Value> {
    let of = |metric: &Metric| {
        let interval = judge.interval(key, metric)?;
        Some(
            json!({ "value": judge.value(key, metric), "low": interval.low, "high": interval.high, "members": interval.members }),
        )
    };
    Some(json!({
        "device": key.device,
        "variant": key.variant,
        "grid": grid_json(axes, key),
        "waf": of(&Metric::WriteAmplification)?,
        "tail_waf": of(&Metric::TailWriteAmplification)?,
    }))
}

pub fn refused_json(axes: &[String], cells: &[RefusedCell]) -> Value {
    let cells = cells.iter().map(|cell| {
        json!({
            "device": cell.key.device,
            "variant": cell.key.variant,
            "grid": grid_json(axes, &cell.key),
            "seed": cell.seed,
            "error": cell.error,
        })
    });
    cells.collect()
}

/// Values of a cell on the axes, by name of the axis.
fn grid_json(axes: &[String], key: &CellKey) -> serde_json::Map<String, Value> {
    let values = key.grid.iter().enumerate();
    values.map(|(index, value)| (axis_name(axes, index), Value::from(value.as_str()))).collect()
}

fn cell_json(axes: &[String], tail_drive_writes: f64, result: &RunResult, samples: bool) -> Value {
    let stats = &result.stats;
    let owners: Vec<Value> = stats.owners().map(|(owner, row)| owner_json(owner, row)).collect();
    let wear = &result.wear;
    let mut cell = json!({
        "device": result.key.device,
        "variant": result.key.variant,
        "grid": grid_json(axes, &result.key),
        "seed": result.seed,
        "scale_denominator": result.scale.0,
        "complete": result.complete,
        "warnings": result.warnings(),
        "capacity_bytes": result.capacity_bytes,
        "reclaim_units": result.superblocks,
        "page_bytes": stats.page_bytes,
        "waf": stats.write_amplification(),
        "headline_waf": stats.write_amplification().map(|_| result.headline_write_amplification()),
        "tail_waf": stats.write_amplification().map(|_| result.tail_write_amplification(tail_drive_writes)),
        "host_bytes_written": stats.host_bytes_written(),
        "media_bytes_written": stats.media_bytes_written(),
        "media_bytes_erased": stats.media_bytes_erased(),
        "overhead_pages": stats.overhead_pages(),
        "pages_deallocated": stats.pages_deallocated,
        "pages_redirected": stats.pages_redirected,
        "background_collections": stats.background_collections,
        "foreground_collections": stats.foreground_collections,
        "forced_collections": stats.forced_collections,
        "units_closed_by_host": stats.units_closed_by_host,
        "units_closed_early": stats.units_closed_early,
        "block_erases": { "min": wear.fewest_erases, "avg": wear.mean_erases(), "max": wear.most_erases },
        "owners": owners,
    });
    if let Some(steady) = &result.steady {
        cell["steady"] = json!(steady);
    }
    if let Some(search) = &result.search {
        let compared = search.compared;
        cell["scale_search"] = json!({
            "smaller_scale_denominator": compared.map(|compared| compared.smaller.0),
            "difference": compared.map(|compared| compared.difference),
        });
    }
    if let Some(endurance) = &result.endurance {
        cell["endurance"] = json!(endurance);
    }
    if !result.measures.is_empty() {
        let measures = result.measures.iter();
        let measures = measures.map(|measure| (measure.name.clone(), Value::from(measure.value)));
        cell["measures"] = measures.collect::<serde_json::Map<String, Value>>().into();
    }
    if let Some(array) = &result.array {
        cell["array"] = json!(array);
    }
    if let Some(timed) = &result.timed {
        cell["fio"] = simulate::timed::to_fio_json(timed);
        if let Some(pace) = &timed.trace {
            cell["replay"] = replay_json(pace);
        }
    }
    if let Some(feedback) = &result.feedback {
        cell["feedback"] = feedback_json(feedback, samples);
    }
    if samples {
        let samples = result.samples.iter();
        cell["samples"] = samples.map(|sample| sample_json(result, sample)).collect();
    }
    cell
}

fn replay_json(pace: &TracePace) -> Value {
    let mut json = json!({ "pace": pace.to_string() });
    let Some(replay) = pace.replay() else { return json };
    let total = replay.total();
    let group = |group: &RequestGroup| -> Vec<Value> {
        let of = |(operation, response): (RequestOperation, &ResponseTimes)| {
            let mut json = latencies_json(&response.latencies);
            json["by"] = group.by.name().into();
            json["name"] = group.name.clone().into();
            json["direction"] = operation.name().into();
            json["bytes"] = response.bytes.into();
            json["late"] = json!(response.late);
            json["gc_waits"] = json!(response.collections);
            if response.recorded.count() > 0 {
                json["recorded"] = latencies_json(&response.recorded);
            }
            json
        };
        let directions = RequestOperation::ALL.into_iter().zip(&group.directions);
        let used = directions.filter(|(_, response)| response.latencies.count() > 0);
        used.map(of).collect()
    };
    let burst = |burst: &Burst| {
        json!({
            "window_ns": burst.window_ns,
            "from_ns": burst.from_ns,
            "requests": burst.requests,
            "bytes": burst.bytes,
            "mean_ns": burst.latency_sum_ns as f64 / burst.requests.max(1) as f64,
            "max_ns": burst.latency_max_ns,
            "late": burst.late,
            "gc_waits": burst.collections,
        })
    };
    json["speed"] = replay.speed.into();
    json["queue_depth"] = replay.queue_depth.into();
    json["last_due_ns"] = replay.last_due_ns.into();
    json["last_late_ns"] = replay.last_late_ns.into();
    json["lateness"] = latencies_json(&replay.lateness);
    json["late"] = json!(total.late);
    json["gc_waits"] = json!(total.collections);
    json["out_of_order"] = json!(replay.out_of_order);
    json["tick_ns"] = replay.tick_ns.into();
    json["groups"] = replay.groups.iter().flat_map(group).collect();
    json["bursts"] = replay.bursts.iter().map(burst).collect();
    json
}

fn latencies_json(latencies: &LatencyDistribution) -> Value {
    json!({
        "requests": latencies.count(),
        "mean_ns": latencies.mean_ns(),
        "p50_ns": latencies.percentile_ns(50.0),
        "p99_ns": latencies.percentile_ns(99.0),
        "p99_9_ns": latencies.percentile_ns(99.9),
        "max_ns": latencies.max_ns(),
    })
}

/// Results of placement feedback. `samples` adds the copies of each collection.
fn feedback_json(feedback: &FeedbackResult, samples: bool) -> Value {
    let reading = |reading: &ReadingRow| {
        let step = |(owner, from, to, reason): &(usize, u16, u16, advise::MoveReason)| json!({ "owner": feedback.owner_name(*owner), "from": from, "to": to, "reason": reason });
        json!({
            "host_bytes": reading.host_bytes,
            "collections": reading.collections,
            "events": reading.events,
            "moves": reading.moves.iter().map(step).collect::<Vec<_>>(),
        })
    };
    let mut json = json!({
        "owners": feedback.owners,
        "events_lost": feedback.events_lost,
        "readings": feedback.readings.iter().map(reading).collect::<Vec<_>>(),
    });
    if samples {
        json["collections"] = json!(feedback.collections);
    }
    json
}

fn owner_json(owner: UnitOwner, row: &OwnerStats) -> Value {
    let mut json = json!({
        "owner": owner.to_string(),
        "ruh": owner.handle().map(|handle| handle.0),
        "waf": row.write_amplification(),
    });
    for (key, count) in owner_counters(row) {
        json[key] = count.into();
    }
    json
}

fn sample_json(result: &RunResult, sample: &RunSample) -> Value {
    let owner = |row: SampleRow<'_>| {
        json!({
            "owner": row.owner,
            "host_bytes_written": row.stats.host_bytes_written,
            "gc_pages_copied": row.stats.gc_pages_copied,
            "units": row.units,
            "valid_pages": row.valid_pages,
        })
    };
    json!({
        "host_bytes": sample.host_bytes,
        "media_bytes": sample.media_bytes,
        "owners": sample_rows(result, sample).map(owner).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::testing as sample;

    #[test]
    fn the_schema_of_the_json_is_this() {
        let results = &sample::results()[..1];
        let value = to_json(&sample::axes(), 1.0, results, true);
        assert_eq!((&value["format"], &value["version"]), (&json!("warp-results"), &json!(2)));
        let cell = &value["cells"][0];
        let keys: Vec<&str> = cell.as_object().expect("an object").keys().map(String::as_str).collect();
        let expected = "device variant grid seed scale_denominator complete warnings capacity_bytes reclaim_units page_bytes waf \
                        headline_waf tail_waf host_bytes_written media_bytes_written media_bytes_erased overhead_pages pages_deallocated \
                        pages_redirected background_collections foreground_collections forced_collections \
                        units_closed_by_host units_closed_early block_erases owners samples";
        assert_eq!(keys.join(" "), expected);
        assert_eq!(cell["grid"], json!({ "overwrite": "zipf 2.2" }));
        assert_eq!(cell["warnings"], json!([]));
        assert_eq!(cell["media_bytes_written"], json!(results[0].stats.media_bytes_written()));
        assert_eq!(cell["owners"][1]["gc_pages_copied"], json!(results[0].stats.handles[1].gc_pages_copied));
        assert_eq!(cell["owners"][8]["ruh"], Value::Null);
        assert_eq!(cell["samples"].as_array().map(Vec::len), Some(results[0].samples.len()));
        assert!(to_json(&[], 1.0, results, false)["cells"][0].get("samples").is_none());
        assert_eq!(to_json(&[], 1.0, results, false)["cells"][0]["grid"], json!({ "axis 1": "zipf 2.2" }));
    }
}
