//! Tables of a block trace that was replayed at its own times.

use ssd::Nanos;

use super::{CellValue, ReportTable};
use simulate::timed::latency::LatencyDistribution;
use simulate::timed::replay::{Burst, GroupBy, ReplayResult, RequestGroup, ResponseTimes};
use workload::RequestOperation;

/// Maximum number of volumes and of processes in a table, those with the most requests. JSON has
/// all groups.
const SHOWN_MAX: usize = 10;
/// Resolution of the recorded times from which on short bursts are artefacts of the clock.
const COARSE_TICK_NS: Nanos = 1_000_000;

/// Latencies of all requests, and by volume, process and size. Notes on lateness and collection
/// precede the table.
pub fn replay(replay: &ReplayResult) -> ReportTable {
    let has_recorded = replay.total().recorded.count() > 0;
    let recorded = ["recorded p50", "recorded p99", "recorded p99.9"].into_iter().filter(|_| has_recorded);
    let mut rows = ReportTable::default()
        .labels(["requests of", ""])
        .numbers("", ["requests"])
        .numbers("us", ["p50", "p99", "p99.9", "max"])
        .numbers("", ["waited in host", "waited for GC"])
        .numbers("us", recorded);
    rows.notes = sentences(replay, has_recorded);
    for by in [GroupBy::All, GroupBy::Volume, GroupBy::Process, GroupBy::Size] {
        let mut groups: Vec<&RequestGroup> = replay.groups.iter().filter(|group| group.by == by).collect();
        // A single volume or process equals the row of all requests.
        if by != GroupBy::All && groups.len() < 2 {
            continue;
        }
        if by != GroupBy::Size {
            // The sort is stable, so groups with equal counts keep their order.
            groups.sort_by_key(|group| std::cmp::Reverse(group.requests()));
        }
        if groups.len() > SHOWN_MAX {
            let others = groups.len() - SHOWN_MAX;
            rows.notes.push(format!(
                "of all groups by {}, those with the most requests are shown. --json has {others} more",
                by.name()
            ));
            groups.truncate(SHOWN_MAX);
        }
        for group in groups {
            for operation in RequestOperation::ALL {
                let response = &group.directions[operation as usize];
                if response.latencies.count() > 0 {
                    rows.add(values(group, operation, response, has_recorded));
                }
            }
        }
    }
    rows
}

fn values(
    group: &RequestGroup,
    operation: RequestOperation,
    response: &ResponseTimes,
    has_recorded: bool,
) -> Vec<CellValue> {
    let name = match group.by {
        GroupBy::All | GroupBy::Size => group.name.clone(),
        GroupBy::Volume | GroupBy::Process => format!("{} {}", group.by.name(), group.name),
    };
    let requests = response.latencies.count();
    let percentiles =
        |of: &LatencyDistribution| [50.0, 99.0, 99.9].map(|percent| microseconds(of.percentile_ns(percent) as f64));
    let mut values: Vec<CellValue> = vec![name.into(), operation.name().into(), CellValue::Count(requests)];
    values.extend(percentiles(&response.latencies));
    values.extend([
        microseconds(response.latencies.max_ns() as f64),
        CellValue::Share(response.late.requests as f64 / requests as f64),
        CellValue::Share(response.collections.requests as f64 / requests as f64),
    ]);
    if has_recorded {
        let is_recorded = response.recorded.count() > 0;
        let recorded =
            percentiles(&response.recorded).map(|value| if is_recorded { value } else { CellValue::Nothing });
        values.extend(recorded);
    }
    values
}

/// The windows with the most arrivals, and the drive's latencies in them.
pub fn bursts(replay: &ReplayResult) -> ReportTable {
    let rows = ReportTable::default().labels(["most arrivals in"]).numbers("s", ["from"]);
    let rows = rows.numbers("", ["requests", "bytes"]).numbers("us", ["mean", "max"]);
    let mut rows = rows.numbers("", ["waited in host", "waited for GC"]);
    for burst in replay.bursts.iter().filter(|burst| burst.requests > 0) {
        rows.add(burst_values(burst));
    }
    rows
}

fn burst_values(burst: &Burst) -> [CellValue; 8] {
    let share = |part: u64| CellValue::Share(part as f64 / burst.requests as f64);
    [
        format!("{} ms", burst.window_ns / 1_000_000).into(),
        CellValue::Fixed(burst.from_ns as f64 / 1e9, 2),
        CellValue::Count(burst.requests),
        CellValue::Bytes(burst.bytes),
        microseconds(burst.latency_sum_ns as f64 / burst.requests as f64),
        microseconds(burst.latency_max_ns as f64),
        share(burst.late.requests),
        share(burst.collections.requests),
    ]
}

/// Notes: latencies begin at the due time of requests, lateness of the host, waits for collection,
/// limits of the trace.
fn sentences(replay: &ReplayResult, has_recorded: bool) -> Vec<String> {
    let total = replay.total();
    let requests = total.latencies.count().max(1) as f64;
    let share = |part: u64| CellValue::Share(part as f64 / requests);
    let late = &total.late;
    let mut sentences = vec!["latencies are from the recorded time of a request to its completion".to_string()];
    sentences.push(match late.requests {
        0 => "the drive kept up. No request waited in the host for a place in the queue".to_string(),
        count => format!(
            "the drive fell behind. {} of the requests waited in the host for a place in the queue, {} us on \
             average and {} us at most. The last request was {} us late",
            share(count),
            microseconds(late.sum_ns as f64 / count as f64),
            microseconds(late.max_ns as f64),
            microseconds(replay.last_late_ns as f64),
        ),
    });
    let waited = &total.collections;
    let part = waited.sum_ns as f64 / total.latencies.sum_ns().max(1) as f64;
    sentences.push(format!(
        "garbage collection delayed {} of the requests. It caused {} of all latency and {} us at most",
        share(waited.requests),
        CellValue::Share(part),
        microseconds(waited.max_ns as f64),
    ));
    if replay.out_of_order.requests > 0 {
        sentences.push(format!(
            "{} requests of the trace are out of order, by up to {} us. Each is due together with the later one \
             before it, so requests come in bunches and latencies are too long. Sort the trace by time",
            CellValue::Count(replay.out_of_order.requests),
            microseconds(replay.out_of_order.max_ns as f64),
        ));
    }
    if replay.tick_ns >= COARSE_TICK_NS {
        sentences.push(format!(
            "the recorded times are multiples of {} ms. All requests of a tick are due at once, so latencies are \
             those of such bursts",
            CellValue::Significant(replay.tick_ns as f64 / 1e6),
        ));
    }
    if has_recorded {
        sentences.push(
            "recorded latencies are those of the traced system. They stand beside those of this drive without a claim"
                .to_string(),
        );
    }
    sentences
}

fn microseconds(nanoseconds: f64) -> CellValue {
    CellValue::Significant(nanoseconds / 1e3)
}
