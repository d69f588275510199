//! Time series of a run in virtual time. Intervals double when their number exceeds a limit.

use std::ops::Range;

use hdrhistogram::Histogram;
use serde::Serialize;
use ssd::Nanos;
use workload::RequestOperation;

/// Initial interval of a series without a requested interval.
const FIRST_INTERVAL_NS: Nanos = 100_000;
/// Maximum intervals of such a series. A run that exceeds it keeps at least half as many.
const INTERVALS: usize = 400;
/// Maximum intervals of a series with a requested interval. Above it, intervals double too.
const INTERVALS_GIVEN: usize = 1 << 16;

/// Maximum bytes of a job's part of a time series.
pub(super) const fn series_bytes_max(is_interval_given: bool) -> u64 {
    let intervals = if is_interval_given { INTERVALS_GIVEN } else { INTERVALS };
    // A vector reserves up to twice its length.
    (2 * intervals * 3 * size_of::<IntervalSample>()) as u64
}

/// One direction of one job in one interval, by completion time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntervalSample {
    pub requests: u64,
    pub bytes: u64,
    /// Sum of the latencies.
    pub latency_ns: u64,
    /// Requests that waited for garbage collection.
    pub waited: u64,
}

impl IntervalSample {
    #[inline]
    fn add(&mut self, other: IntervalSample) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latency_ns += other.latency_ns;
        self.waited += other.waited;
    }
}

/// Garbage collection in one interval, by the time of its decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GcInterval {
    pub count: u64,
    pub pages_copied: u64,
}

/// Requests and garbage collection over time.
#[derive(Clone, Debug)]
pub struct TimedSeries {
    pub interval_ns: Nanos,
    jobs: usize,
    most: usize,
    /// Values by interval, job and direction.
    moments: Vec<IntervalSample>,
    collections: Vec<GcInterval>,
}

impl TimedSeries {
    pub fn new(jobs: usize, interval_ns: Option<Nanos>) -> TimedSeries {
        TimedSeries {
            interval_ns: interval_ns.unwrap_or(FIRST_INTERVAL_NS).max(1),
            jobs,
            most: if interval_ns.is_some() { INTERVALS_GIVEN } else { INTERVALS },
            moments: Vec::new(),
            collections: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.collections.len()
    }

    /// Returns true without any interval.
    pub fn is_empty(&self) -> bool {
        self.collections.is_empty()
    }

    /// Counts of a job's direction in an interval.
    pub fn counts(&self, interval: usize, job: usize, operation: RequestOperation) -> IntervalSample {
        assert!(job < self.jobs, "a job of another run is asked for");
        self.moments[(interval * self.jobs + job) * 3 + operation as usize]
    }

    /// Garbage collection in an interval.
    pub fn collections(&self, interval: usize) -> GcInterval {
        self.collections[interval]
    }

    /// Adds the counts of a job in an interval.
    #[inline]
    pub(super) fn record(&mut self, interval: usize, job: usize, operation: RequestOperation, moment: IntervalSample) {
        assert!(job < self.jobs, "requests of a job of another run are counted");
        self.moments[(interval * self.jobs + job) * 3 + operation as usize].add(moment);
    }

    pub(super) fn collected(&mut self, at: Nanos, pages_copied: u64) {
        let interval = self.interval(at);
        self.collections[interval].count += 1;
        self.collections[interval].pages_copied += pages_copied;
    }

    #[inline]
    pub(super) fn span(&self, interval: usize) -> Range<Nanos> {
        let first = interval as u64 * self.interval_ns;
        first..first.saturating_add(self.interval_ns)
    }

    /// Returns the interval of a time. Creates it if necessary.
    #[inline]
    pub(super) fn interval(&mut self, at: Nanos) -> usize {
        let interval = (at / self.interval_ns) as usize;
        if interval < self.collections.len() {
            return interval;
        }
        self.lengthen(at)
    }

    #[cold]
    fn lengthen(&mut self, at: Nanos) -> usize {
        while at / self.interval_ns >= self.most as u64 {
            self.double();
        }
        let interval = (at / self.interval_ns) as usize;
        assert!(interval < self.most, "a series has more intervals than there may be");
        self.collections.resize(interval + 1, GcInterval::default());
        self.moments.resize((interval + 1) * self.jobs * 3, IntervalSample::default());
        interval
    }

    fn double(&mut self) {
        let requests = |moments: &[IntervalSample]| moments.iter().map(|moment| moment.requests).sum::<u64>();
        let requests_before = requests(&self.moments);
        let collections = |rows: &[GcInterval]| rows.iter().map(|row| row.count).sum::<u64>();
        let collections_before = collections(&self.collections);
        self.interval_ns *= 2;
        let columns = self.jobs * 3;
        let rows = self.collections.len().div_ceil(2);
        for row in 0..rows {
            for column in 0..columns {
                let second = self.moments.get((2 * row + 1) * columns + column).copied();
                let mut sum = self.moments[2 * row * columns + column];
                sum.add(second.unwrap_or_default());
                self.moments[row * columns + column] = sum;
            }
            let second = self.collections.get(2 * row + 1).copied().unwrap_or_default();
            let mut sum = self.collections[2 * row];
            sum.count += second.count;
            sum.pages_copied += second.pages_copied;
            self.collections[row] = sum;
        }
        self.collections.truncate(rows);
        self.moments.truncate(rows * columns);
        assert_eq!(collections(&self.collections), collections_before, "longer intervals lose collections");
        assert_eq!(requests(&self.moments), requests_before, "longer intervals lose requests");
    }
}

/// Latencies over time of all jobs together: a histogram per direction and interval, by completion
/// time.
#[derive(Clone, Debug)]
pub struct LatencySeries {
    pub interval_ns: Nanos,
    intervals: Vec<[Option<Histogram<u32>>; 3]>,
}

impl Default for LatencySeries {
    fn default() -> LatencySeries {
        LatencySeries { interval_ns: FIRST_INTERVAL_NS, intervals: Vec::new() }
    }
}

impl LatencySeries {
    /// Significant digits. They suffice for a chart, and histograms are many.
    const DIGITS: u8 = 2;
    /// Maximum intervals.
    const MOST: usize = 200;

    pub(super) fn record(&mut self, at: Nanos, operation: RequestOperation, latency_ns: Nanos) {
        while at / self.interval_ns >= Self::MOST as u64 {
            self.double();
        }
        let interval = (at / self.interval_ns) as usize;
        if interval >= self.intervals.len() {
            self.intervals.resize_with(interval + 1, Default::default);
        }
        let histogram = self.intervals[interval][operation as usize]
            .get_or_insert_with(|| Histogram::new(Self::DIGITS).expect("two digits are possible"));
        histogram.record(latency_ns).expect("the histogram grows with its values");
    }

    fn double(&mut self) {
        let requests_before = self.requests();
        self.interval_ns *= 2;
        let mut intervals = std::mem::take(&mut self.intervals).into_iter();
        while let Some(mut first) = intervals.next() {
            let second = intervals.next().unwrap_or_default();
            for (sum, other) in first.iter_mut().zip(second) {
                match (sum.as_mut(), other) {
                    (Some(sum), Some(other)) => sum.add(other).expect("the histogram grows with its values"),
                    (None, other) => *sum = other,
                    (Some(_), None) => {}
                }
            }
            self.intervals.push(first);
        }
        assert_eq!(self.requests(), requests_before, "longer intervals lose requests");
    }

    fn requests(&self) -> u64 {
        self.intervals.iter().flatten().flatten().map(Histogram::len).sum()
    }

    /// Intervals so far.
    pub fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Returns true if no request completed.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Latency that `percent` of an interval's requests do not exceed, to two digits. `None`
    /// without requests.
    pub fn percentile_ns(&self, interval: usize, operation: RequestOperation, percent: f64) -> Option<Nanos> {
        let histogram = self.intervals[interval][operation as usize].as_ref()?;
        Some(histogram.value_at_quantile(percent / 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timed::latency::tests::values;

    #[test]
    fn a_series_loses_nothing_when_its_intervals_double() {
        let mut series = TimedSeries::new(2, None);
        for request in 0..100_000_u64 {
            let moment = IntervalSample { requests: 1, bytes: request, latency_ns: 7, waited: request % 2 };
            let interval = series.interval(request * 77_777);
            series.record(interval, (request % 2) as usize, RequestOperation::Write, moment);
            if request % 1000 == 0 {
                series.collected(request * 77_777, 3);
            }
        }
        assert!((INTERVALS / 2..=INTERVALS).contains(&series.len()), "{}", series.len());
        let rows = || (0..series.len()).map(|interval| series.counts(interval, 1, RequestOperation::Write));
        assert_eq!(rows().map(|row| row.requests).sum::<u64>(), 50_000);
        assert_eq!(rows().map(|row| row.waited).sum::<u64>(), 50_000);
        assert_eq!(rows().map(|row| row.bytes).sum::<u64>(), 2_500_000_000);
        assert_eq!((0..series.len()).map(|row| series.collections(row).count).sum::<u64>(), 100);
        // Requests came at an even pace, so intervals differ by one at most.
        let per_interval = series.interval_ns as f64 / 77_777.0 / 2.0;
        let even = rows().take(series.len() - 1).all(|row| (row.requests as f64 - per_interval).abs() <= 1.0);
        assert!(even, "about {per_interval} in each interval");
    }

    #[test]
    fn percentiles_over_time_are_those_of_the_requests_of_each_interval() {
        let mut series = LatencySeries::default();
        let values = values();
        for (request, value) in values.iter().enumerate() {
            // Writes take a hundred times as long, and come ten times as seldom.
            let at = request as u64 * 10_000;
            series.record(at, RequestOperation::Read, *value);
            if request % 10 == 0 {
                series.record(at, RequestOperation::Write, 100 * value);
            }
        }
        assert!((LatencySeries::MOST / 2..=LatencySeries::MOST).contains(&series.len()));
        for interval in 0..series.len() {
            let in_interval = |request: &usize| *request as u64 * 10_000 / series.interval_ns == interval as u64;
            let of = |every: usize, times: u64| {
                let requests = (0..values.len()).filter(|request| request % every == 0).filter(in_interval);
                let mut found: Vec<u64> = requests.map(|request| times * values[request]).collect();
                found.sort_unstable();
                found
            };
            for (operation, sorted) in [(RequestOperation::Read, of(1, 1)), (RequestOperation::Write, of(10, 100))] {
                for percent in [50.0, 99.0] {
                    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
                    let exact = sorted[rank - 1] as f64;
                    let found = series.percentile_ns(interval, operation, percent).expect("requests") as f64;
                    assert!((found - exact).abs() <= exact / 100.0, "p{percent}: {found}, sorted {exact}");
                }
            }
            assert_eq!(series.percentile_ns(interval, RequestOperation::Trim, 50.0), None);
        }
    }
}
