//! Evaluates metrics on a result.
//!
//! A metric is `None` if its requests did not occur, or if it needs timing and the device has none.

use ssd::Nanos;

use experiment::metric::RateWindow;
use experiment::{LatencyStatistic, Metric};
use simulate::run::RunResult;
use simulate::timed::measure::{DirectionResult, JobResult};
use simulate::timed::result::TimedResult;
use workload::RequestOperation;

/// Value of a metric in a result. `None` where it was not measured.
pub fn measure(metric: &Metric, result: &RunResult, tail_drive_writes: f64) -> Option<f64> {
    let capacities = |pages: u64| (pages * result.stats.page_bytes) as f64 / result.capacity_bytes as f64;
    let handle = |index: &u16| {
        let handles = &result.stats.handles;
        handles.get(usize::from(*index)).copied().unwrap_or_default()
    };
    let timed = result.timed.as_ref();
    let measure = |name: &str| result.measures.iter().find(|measure| measure.name == name);
    Some(match metric {
        Metric::WriteAmplification => result.write_amplification(),
        Metric::TailWriteAmplification => result.tail_write_amplification(tail_drive_writes),
        Metric::LastWriteAmplification(capacities) => result.tail_write_amplification(*capacities),
        Metric::HandleWriteAmplification(index) => handle(index).write_amplification().unwrap_or(1.0),
        Metric::HandleHostCapacities(index) => capacities(handle(index).host_pages_written),
        Metric::HandleCopiedCapacities(index) => capacities(handle(index).gc_pages_copied),
        Metric::SharedCopiedCapacities => capacities(result.stats.shared.gc_pages_copied),
        Metric::EraseImbalance => f64::from(result.wear.most_erases) / result.wear.mean_erases().max(f64::MIN_POSITIVE),
        Metric::EraseSpread => f64::from(result.wear.most_erases - result.wear.fewest_erases),
        Metric::LatencyUs(of) => {
            let latencies = total(timed?, of.job.as_deref(), of.direction)?.latencies;
            let nanoseconds = match of.statistic? {
                LatencyStatistic::Mean => latencies.mean_ns(),
                LatencyStatistic::Stdev => latencies.deviation_ns(),
                LatencyStatistic::Min => latencies.min_ns() as f64,
                LatencyStatistic::Max => latencies.max_ns() as f64,
                LatencyStatistic::Percentile(percent) => latencies.percentile_ns(percent) as f64,
            };
            nanoseconds / 1e3
        }
        Metric::Iops(of) => per_second(of, timed?)?.0,
        Metric::BandwidthMbS(of) => per_second(of, timed?)?.1 / 1e6,
        Metric::BandwidthVariation(of) => variation(of, timed?)?,
        Metric::GcWaitShare(of) => {
            let total = total(timed?, of.job.as_deref(), of.direction)?;
            total.waits.requests as f64 / total.requests as f64
        }
        Metric::GcWaitUs(of) => {
            let waits = total(timed?, of.job.as_deref(), of.direction)?.waits;
            waits.sum_ns as f64 / waits.requests.max(1) as f64 / 1e3
        }
        Metric::Measure(name) => measure(name)?.value,
        Metric::MeasureOnFlash(name) => measure(name)?.value * result.tail_write_amplification(tail_drive_writes),
    })
}

fn directions(direction: Option<RequestOperation>) -> impl Iterator<Item = RequestOperation> {
    RequestOperation::ALL.into_iter().filter(move |operation| direction.is_none_or(|wanted| wanted == *operation))
}

/// Sum over the selected jobs and directions. `None` without requests.
fn total(timed: &TimedResult, job: Option<&str>, direction: Option<RequestOperation>) -> Option<DirectionResult> {
    let mut total = DirectionResult::default();
    for (_, job) in timed.named(job) {
        for operation in directions(direction) {
            total.add(job.direction(operation));
        }
    }
    (total.requests > 0).then_some(total)
}

/// Measured time span: from the first start to the last end of the selected jobs.
fn span(of: &RateWindow, timed: &TimedResult) -> Option<(Nanos, Nanos)> {
    let does = |operation: RequestOperation| move |job: &JobResult| job.direction(operation).requests > 0;
    let jobs = || {
        timed
            .named(of.job.as_deref())
            .map(|(_, job)| job)
            .filter(|job| directions(of.direction).any(|operation| does(operation)(job)))
    };
    Some((jobs().map(|job| job.from_ns).min()?, jobs().map(|job| job.until_ns).max()?))
}

/// Requests and bytes per second.
fn per_second(of: &RateWindow, timed: &TimedResult) -> Option<(f64, f64)> {
    let (from_ns, until_ns) = span(of, timed)?;
    if of.from.is_none() && of.to.is_none() {
        let total = total(timed, of.job.as_deref(), of.direction)?;
        let seconds = (until_ns - from_ns).max(1) as f64 / 1e9;
        return Some((total.requests as f64 / seconds, total.bytes as f64 / seconds));
    }
    let moments = interval_counts(of, timed)?;
    let seconds = moments.len() as f64 * timed.series.interval_ns as f64 / 1e9;
    let sum = |value: fn(&(u64, u64)) -> u64| moments.iter().map(value).sum::<u64>() as f64 / seconds;
    Some((sum(|moment| moment.0), sum(|moment| moment.1)))
}

/// Requests and bytes of each interval that lies completely in the window.
fn interval_counts(of: &RateWindow, timed: &TimedResult) -> Option<Vec<(u64, u64)>> {
    let (from_ns, until_ns) = span(of, timed)?;
    let (from, to) = of.window();
    let at = |share: f64| from_ns + (share * (until_ns - from_ns) as f64) as Nanos;
    let interval_ns = timed.series.interval_ns;
    let intervals = at(from).div_ceil(interval_ns)..at(to) / interval_ns;
    let jobs: Vec<usize> = timed.named(of.job.as_deref()).map(|(index, _)| index).collect();
    let moment = |interval: u64| {
        let cells = jobs.iter().flat_map(|job| directions(of.direction).map(move |operation| (*job, operation)));
        let moments = cells.map(|(job, operation)| timed.series.counts(interval as usize, job, operation));
        moments.fold((0, 0), |(requests, bytes), moment| (requests + moment.requests, bytes + moment.bytes))
    };
    let moments: Vec<(u64, u64)> =
        intervals.filter(|interval| (*interval as usize) < timed.series.len()).map(moment).collect();
    (!moments.is_empty()).then_some(moments)
}

fn variation(of: &RateWindow, timed: &TimedResult) -> Option<f64> {
    let moments = interval_counts(of, timed)?;
    let count = moments.len() as f64;
    let mean = moments.iter().map(|moment| moment.1 as f64).sum::<f64>() / count;
    let variance = moments.iter().map(|moment| (moment.1 as f64 - mean).powi(2)).sum::<f64>() / count;
    (mean > 0.0).then(|| variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_writes_have_a_write_amplification_of_their_own() {
        let result = &simulate::testing::results()[2];
        let value = |metric: Metric| measure(&metric, result, 1.0).expect("it is measured");
        // The first drive write copies nothing, so later writes copy more than all writes.
        let all = value(Metric::WriteAmplification);
        let [last, half] = [1.0, 2.5].map(|capacities| value(Metric::LastWriteAmplification(capacities)));
        assert_eq!(last, value(Metric::TailWriteAmplification));
        assert!(all < half && all < last && half != last, "{all} {half} {last}");
    }
}
