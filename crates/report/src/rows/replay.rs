//! Tables of a block trace that was replayed at its own times.

use ssd::Nanos;

use super::{Column, Rows, Value};
use simulate::timed::latency::Latencies;
use simulate::timed::replay::{Burst, Group, GroupBy, ReplayResult, Response};
use workload::Operation;

/// Maximum number of volumes and of processes in a table, those with the most requests. JSON has
/// all groups.
const SHOWN_MAX: usize = 10;
/// Resolution of the recorded times from which on short bursts are artefacts of the clock.
const COARSE_TICK_NS: Nanos = 1_000_000;

/// Latencies of all requests, and by volume, process and size. Notes on lateness and collection
/// precede the table.
pub fn replay(replay: &ReplayResult) -> Rows {
    let has_recorded = replay.total().recorded.count() > 0;
    let simulated = ["p50", "p99", "p99.9", "max"].map(|heading| Column::number(heading, "us"));
    let recorded = ["recorded p50", "recorded p99", "recorded p99.9"].map(|heading| Column::number(heading, "us"));
    let labels = [Column::label("requests of"), Column::label("")];
    let mut rows = Rows::new(
        labels
            .into_iter()
            .chain([Column::number("requests", "")])
            .chain(simulated)
            .chain([
                Column::number("waited in host", ""),
                Column::number("waited for GC", ""),
            ])
            .chain(recorded.into_iter().filter(|_| has_recorded)),
    );
    rows.notes = sentences(replay, has_recorded);
    for by in [GroupBy::All, GroupBy::Volume, GroupBy::Process, GroupBy::Size] {
        let mut groups: Vec<&Group> = replay.groups.iter().filter(|group| group.by == by).collect();
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
            for operation in Operation::ALL {
                let response = &group.directions[operation as usize];
                if response.latencies.count() > 0 {
                    rows.add(values(group, operation, response, has_recorded));
                }
            }
        }
    }
    rows
}

fn values(group: &Group, operation: Operation, response: &Response, has_recorded: bool) -> Vec<Value> {
    let name = match group.by {
        GroupBy::All | GroupBy::Size => group.name.clone(),
        GroupBy::Volume | GroupBy::Process => format!("{} {}", group.by.name(), group.name),
    };
    let requests = response.latencies.count();
    let percentiles = |of: &Latencies| [50.0, 99.0, 99.9].map(|percent| us(of.percentile_ns(percent) as f64));
    let mut values: Vec<Value> = vec![name.into(), operation.name().into(), Value::Count(requests)];
    values.extend(percentiles(&response.latencies));
    values.extend([
        us(response.latencies.max_ns() as f64),
        Value::Share(response.late.requests as f64 / requests as f64),
        Value::Share(response.collections.requests as f64 / requests as f64),
    ]);
    if has_recorded {
        let is_recorded = response.recorded.count() > 0;
        let recorded = percentiles(&response.recorded).map(|value| if is_recorded { value } else { Value::Nothing });
        values.extend(recorded);
    }
    values
}

/// The windows with the most arrivals, and the drive's latencies in them.
pub fn bursts(replay: &ReplayResult) -> Rows {
    let mut rows = Rows::new([
        Column::label("most arrivals in"),
        Column::number("from", "s"),
        Column::number("requests", ""),
        Column::number("bytes", ""),
        Column::number("mean", "us"),
        Column::number("max", "us"),
        Column::number("waited in host", ""),
        Column::number("waited for GC", ""),
    ]);
    for burst in replay.bursts.iter().filter(|burst| burst.requests > 0) {
        rows.add(burst_values(burst));
    }
    rows
}

fn burst_values(burst: &Burst) -> [Value; 8] {
    let share = |part: u64| Value::Share(part as f64 / burst.requests as f64);
    [
        format!("{} ms", burst.window_ns / 1_000_000).into(),
        Value::Fixed(burst.from_ns as f64 / 1e9, 2),
        Value::Count(burst.requests),
        Value::Bytes(burst.bytes),
        us(burst.latency_sum_ns as f64 / burst.requests as f64),
        us(burst.latency_max_ns as f64),
        share(burst.late.requests),
        share(burst.collections.requests),
    ]
}

/// Notes: latencies begin at the due time of requests, lateness of the host, waits for collection,
/// limits of the trace.
fn sentences(replay: &ReplayResult, has_recorded: bool) -> Vec<String> {
    let total = replay.total();
    let requests = total.latencies.count().max(1) as f64;
    let share = |part: u64| Value::Share(part as f64 / requests);
    let late = &total.late;
    let mut sentences = vec!["latencies are from the recorded time of a request to its completion".to_string()];
    sentences.push(match late.requests {
        0 => "the drive kept up. No request waited in the host for a place in the queue".to_string(),
        count => format!(
            "the drive fell behind. {} of the requests waited in the host for a place in the queue, {} us on \
             average and {} us at most. The last request was {} us late",
            share(count),
            us(late.sum_ns as f64 / count as f64),
            us(late.max_ns as f64),
            us(replay.last_late_ns as f64),
        ),
    });
    let waited = &total.collections;
    let part = waited.sum_ns as f64 / total.latencies.sum_ns().max(1) as f64;
    sentences.push(format!(
        "garbage collection delayed {} of the requests. It caused {} of all latency and {} us at most",
        share(waited.requests),
        Value::Share(part),
        us(waited.max_ns as f64),
    ));
    if replay.out_of_order.requests > 0 {
        sentences.push(format!(
            "{} requests of the trace are out of order, by up to {} us. Each is due together with the later one \
             before it, so requests come in bunches and latencies are too long. Sort the trace by time",
            Value::Count(replay.out_of_order.requests),
            us(replay.out_of_order.max_ns as f64),
        ));
    }
    if replay.tick_ns >= COARSE_TICK_NS {
        sentences.push(format!(
            "the recorded times are multiples of {} ms. All requests of a tick are due at once, so latencies are \
             those of such bursts",
            Value::Significant(replay.tick_ns as f64 / 1e6),
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

fn us(nanoseconds: f64) -> Value {
    Value::Significant(nanoseconds / 1e3)
}
