//! What timed runs measure, in memory that does not depend on their length.
//!
//! Latencies go to a histogram of three significant digits; their number, sum, sum of squares, least and greatest are exact.
//! What happens over time goes to intervals that double when there are too many of them. It draws nothing and prints nothing.

use std::ops::Range;

use hdrhistogram::Histogram;
use serde::Serialize;
use ssd::{Nanos, Ring};

use workload::Operation;
use workload::fio::LatencyGoal;

/// Directions, in fio's order.
pub const OPERATIONS: [&str; 3] = ["read", "write", "trim"];

/// The first interval of a time series whose interval is not given.
const FIRST_INTERVAL_NS: Nanos = 100_000;
/// Intervals of such a series, at most; at least half as many where the run is longer than that many first ones.
const INTERVALS: usize = 400;
/// Intervals where the interval is given, at most: then they are doubled too.
const INTERVALS_GIVEN: usize = 1 << 16;

/// Counts of values to three digits: each below 2048 by itself, then 1024 steps in each doubling. They are those of
/// HdrHistogram; its own code, which allows for any number of digits and for failure, takes three times as long.
#[derive(Clone, Debug, Default)]
struct Counts(Vec<u64>);

impl Counts {
    /// Steps of a doubling.
    const STEPS: usize = 1024;

    #[inline]
    fn place(value: u64) -> usize {
        let doublings = (u64::BITS - Self::STEPS.ilog2() - 1).saturating_sub(value.leading_zeros());
        doublings as usize * Self::STEPS + (value >> doublings) as usize
    }

    /// The greatest value that is counted at a place.
    fn greatest(place: usize) -> u64 {
        let doublings = (place / Self::STEPS).saturating_sub(1);
        let step = (place - doublings * Self::STEPS) as u64;
        step << doublings | ((1 << doublings) - 1)
    }

    #[inline]
    fn record(&mut self, value: u64) {
        let place = Self::place(value);
        match self.0.get_mut(place) {
            Some(count) => *count += 1,
            None => self.lengthen(place),
        }
    }

    #[cold]
    fn lengthen(&mut self, place: usize) {
        self.0.resize((place + 1).next_multiple_of(Self::STEPS), 0);
        self.0[place] = 1;
    }

    fn add(&mut self, other: &Counts) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }

    /// The values that were counted, rising, and how often.
    fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let counted = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(place, count)| (Self::greatest(place), *count))
    }
}

/// Bytes of what is measured of a job, at most: a histogram for each direction.
pub(super) const fn job_bytes_max() -> u64 {
    let places = (u64::BITS as usize - Counts::STEPS.ilog2() as usize) * Counts::STEPS;
    (3 * (places * size_of::<u64>() + size_of::<Direction>()) + size_of::<JobResult>()) as u64
}

/// Bytes of a job's part of a time series, at most.
pub(super) const fn series_bytes_max(is_interval_given: bool) -> u64 {
    let intervals = if is_interval_given { INTERVALS_GIVEN } else { INTERVALS };
    // A vector has room for twice what it holds.
    (2 * intervals * 3 * size_of::<Moment>()) as u64
}

/// Latencies of requests, ns.
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: Counts,
    count: u64,
    sum_ns: u128,
    squares: u128,
    min_ns: Nanos,
    max_ns: Nanos,
}

/// What some latencies are together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Together {
    pub(super) count: u64,
    pub(super) sum_ns: u128,
    pub(super) max_ns: Nanos,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies {
            counts: Counts::default(),
            count: 0,
            sum_ns: 0,
            squares: 0,
            min_ns: Nanos::MAX,
            max_ns: 0,
        }
    }
}

impl Latencies {
    /// Takes some; returns what they are together.
    #[inline]
    pub(super) fn record(&mut self, latencies: impl IntoIterator<Item = Nanos>) -> Together {
        let mut together = Together::default();
        let (mut squares, mut min_ns) = (0, self.min_ns);
        for latency_ns in latencies {
            self.counts.record(latency_ns);
            together.count += 1;
            together.sum_ns += u128::from(latency_ns);
            together.max_ns = together.max_ns.max(latency_ns);
            squares += u128::from(latency_ns) * u128::from(latency_ns);
            min_ns = min_ns.min(latency_ns);
        }
        self.count += together.count;
        self.sum_ns += together.sum_ns;
        self.squares += squares;
        self.min_ns = min_ns;
        self.max_ns = self.max_ns.max(together.max_ns);
        together
    }

    /// Takes all of another.
    pub fn add(&mut self, other: &Latencies) {
        self.counts.add(&other.counts);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.squares += other.squares;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The least; 0 without any.
    pub fn min_ns(&self) -> Nanos {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// The greatest; 0 without any.
    pub fn max_ns(&self) -> Nanos {
        self.max_ns
    }

    /// The mean; 0 without any.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64
    }

    /// The standard deviation of all of them; 0 without any.
    pub fn deviation_ns(&self) -> f64 {
        let count = u128::from(self.count.max(1));
        // Whole numbers as long as they fit: the difference of two large ones is the point of this.
        let exact = self
            .squares
            .checked_mul(count)
            .zip(self.sum_ns.checked_mul(self.sum_ns));
        let variance = match exact {
            Some((squares, square)) => squares.saturating_sub(square) as f64 / (count as f64 * count as f64),
            None => self.squares as f64 / count as f64 - self.mean_ns() * self.mean_ns(),
        };
        variance.max(0.0).sqrt()
    }

    /// The value that `percent` of them do not exceed, in the digits of the histogram; 0 without any.
    pub fn percentile_ns(&self, percent: f64) -> Nanos {
        if self.count == 0 || percent <= 0.0 {
            return self.min_ns();
        }
        let rank = ((percent / 100.0).min(1.0) * self.count as f64).ceil() as u64;
        let mut below = 0;
        let reaches = |(_, count): &(u64, u64)| {
            below += count;
            below >= rank
        };
        let value = self.counts.values().find(reaches);
        value.map_or(self.max_ns, |(value, _)| value.clamp(self.min_ns, self.max_ns))
    }

    /// The distribution: values and the share of requests that do not exceed them, rising.
    pub fn distribution(&self) -> Vec<(Nanos, f64)> {
        let mut below = 0;
        let counted = self.counts.values().map(|(value, count)| {
            below += count;
            (value.min(self.max_ns), below as f64 / self.count as f64)
        });
        counted.collect()
    }
}

/// Requests that waited for garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// How many.
    pub requests: u64,
    /// All their waits together.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: Nanos,
}

impl Waits {
    /// Takes those of some requests; returns how many waited.
    #[inline]
    pub(super) fn record(&mut self, waits: impl Iterator<Item = Nanos>) -> u64 {
        let before = self.requests;
        for waited_ns in waits.filter(|waited_ns| *waited_ns > 0) {
            self.requests += 1;
            self.sum_ns += waited_ns;
            self.max_ns = self.max_ns.max(waited_ns);
        }
        self.requests - before
    }

    /// Takes all of another.
    pub fn add(&mut self, other: &Waits) {
        self.requests += other.requests;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// What a job did in one direction.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// Requests.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// From submission to completion.
    pub latencies: Latencies,
    /// What garbage collection had to do with it.
    pub waits: Waits,
}

impl Direction {
    /// Takes all of another.
    pub fn add(&mut self, other: &Direction) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latencies.add(&other.latencies);
        self.waits.add(&other.waits);
    }
}

/// What one job did: all instances of a section of the job file.
#[derive(Clone, Debug)]
pub struct JobResult {
    /// Name of the section.
    pub name: String,
    /// `rw`
    pub rw: &'static str,
    /// Smallest and largest request, bytes.
    pub request_bytes: (u64, u64),
    /// Number of its group; groups run one after another.
    pub group: u16,
    /// `numjobs`
    pub instances: u32,
    /// `iodepth`
    pub queue_depth: u64,
    /// Since the start of the run: from when it was measured.
    pub from_ns: Nanos,
    /// Since the start of the run: its last completion.
    pub until_ns: Nanos,
    /// Reads, writes, trims.
    pub directions: [Direction; 3],
    /// Nanoseconds that its requests were in flight, counted at every submission and completion.
    pub in_flight_ns: u128,
    /// What it searched a depth for.
    pub latency_goal: Option<Goal>,
}

/// A search for a depth (`latency_target`), and what it found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Longest latency.
    pub target_ns: Nanos,
    /// How long each depth was tried.
    pub window_ns: Nanos,
    /// Percent of the requests that must keep it.
    pub percent: f64,
    /// Requests in flight at the end.
    pub depth: u64,
    /// This is the depth that was searched for; else the last that was tried.
    pub found: bool,
}

impl From<LatencyGoal> for Goal {
    fn from(goal: LatencyGoal) -> Goal {
        Goal {
            target_ns: goal.target_us * 1000,
            window_ns: goal.window_us * 1000,
            percent: goal.percent,
            depth: 1,
            found: false,
        }
    }
}

impl JobResult {
    /// How long it was measured.
    pub fn elapsed_ns(&self) -> Nanos {
        self.until_ns.saturating_sub(self.from_ns)
    }

    /// Requests in flight, the mean over the time in which it was measured.
    pub fn mean_in_flight(&self) -> f64 {
        self.in_flight_ns as f64 / self.elapsed_ns().max(1) as f64
    }

    /// A direction of it.
    pub fn direction(&self, operation: Operation) -> &Direction {
        &self.directions[operation as usize]
    }
}

/// Of the requests of a run in virtual time, what only who watches it wants to see.
#[derive(Clone, Debug, Default)]
pub struct RequestLog {
    /// Latencies over time.
    pub latencies: LatencySeries,
    /// The last requests, in the order of their submission.
    pub requests: Ring<TimedRequest>,
}

/// A request that was carried out in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRequest {
    /// Its job, as of [`TimedResult::jobs`](super::result::TimedResult::jobs).
    pub job: usize,
    /// What it did.
    pub operation: Operation,
    /// Where it began on the drive.
    pub offset_bytes: u64,
    /// Its length.
    pub bytes: u32,
    /// When it was submitted, since the run began.
    pub submitted_at: Nanos,
    /// How long it took.
    pub latency_ns: Nanos,
    /// Of that, how long it waited for garbage collection.
    pub waited_ns: Nanos,
}

impl RequestLog {
    /// Requests that are kept.
    pub const REQUESTS: usize = 20_000;

    pub(super) fn record(&mut self, request: TimedRequest) {
        let completes_at = request.submitted_at + request.latency_ns;
        self.latencies
            .record(completes_at, request.operation, request.latency_ns);
        self.requests.push(request, Self::REQUESTS);
    }
}

/// One direction of one job in one interval, by the time of completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Sum of the latencies.
    pub latency_ns: u64,
    /// Requests that waited for garbage collection.
    pub waited: u64,
}

/// Garbage collection in one interval, by the time at which it was decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Collections {
    /// Reclaim units reclaimed.
    pub count: u64,
    /// Pages copied.
    pub pages_copied: u64,
}

/// What happened when.
#[derive(Clone, Debug)]
pub struct Series {
    /// Length of an interval.
    pub interval_ns: Nanos,
    jobs: usize,
    most: usize,
    /// For each interval, each job and each direction.
    moments: Vec<Moment>,
    collections: Vec<Collections>,
}

impl Series {
    /// Of so many jobs; `interval_ns` if it is given.
    pub fn new(jobs: usize, interval_ns: Option<Nanos>) -> Series {
        Series {
            interval_ns: interval_ns.unwrap_or(FIRST_INTERVAL_NS).max(1),
            jobs,
            most: if interval_ns.is_some() {
                INTERVALS_GIVEN
            } else {
                INTERVALS
            },
            moments: Vec::new(),
            collections: Vec::new(),
        }
    }

    /// Intervals.
    pub fn len(&self) -> usize {
        self.collections.len()
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.collections.is_empty()
    }

    /// A job's direction in an interval.
    pub fn moment(&self, interval: usize, job: usize, operation: Operation) -> Moment {
        self.moments[(interval * self.jobs + job) * 3 + operation as usize]
    }

    /// Garbage collection in an interval.
    pub fn collections(&self, interval: usize) -> Collections {
        self.collections[interval]
    }

    /// Counts what a job did in an interval.
    #[inline]
    pub(super) fn record(&mut self, interval: usize, job: usize, operation: Operation, moment: Moment) {
        let row = &mut self.moments[(interval * self.jobs + job) * 3 + operation as usize];
        row.requests += moment.requests;
        row.bytes += moment.bytes;
        row.latency_ns += moment.latency_ns;
        row.waited += moment.waited;
    }

    pub(super) fn collected(&mut self, at: Nanos, pages_copied: u64) {
        let interval = self.interval(at);
        self.collections[interval].count += 1;
        self.collections[interval].pages_copied += pages_copied;
    }

    /// The times of an interval.
    #[inline]
    pub(super) fn span(&self, interval: usize) -> Range<Nanos> {
        let first = interval as u64 * self.interval_ns;
        first..first.saturating_add(self.interval_ns)
    }

    /// The interval of a time, made if it is not there.
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
        self.collections.resize(interval + 1, Collections::default());
        self.moments.resize((interval + 1) * self.jobs * 3, Moment::default());
        interval
    }

    fn double(&mut self) {
        self.interval_ns *= 2;
        let columns = self.jobs * 3;
        let rows = self.collections.len().div_ceil(2);
        for row in 0..rows {
            for column in 0..columns {
                let second = self.moments.get((2 * row + 1) * columns + column).copied();
                let (mut sum, second) = (self.moments[2 * row * columns + column], second.unwrap_or_default());
                sum.requests += second.requests;
                sum.bytes += second.bytes;
                sum.latency_ns += second.latency_ns;
                sum.waited += second.waited;
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
    }
}

/// Latencies over time, of all jobs together: a histogram for each direction in each interval, by the time of completion.
#[derive(Clone, Debug)]
pub struct LatencySeries {
    /// Length of an interval.
    pub interval_ns: Nanos,
    intervals: Vec<[Option<Histogram<u32>>; 3]>,
}

impl Default for LatencySeries {
    fn default() -> LatencySeries {
        LatencySeries {
            interval_ns: FIRST_INTERVAL_NS,
            intervals: Vec::new(),
        }
    }
}

impl LatencySeries {
    /// Significant digits: a picture needs no more, and there are many histograms.
    const DIGITS: u8 = 2;
    /// Intervals at most.
    const MOST: usize = 200;

    fn record(&mut self, at: Nanos, operation: Operation, latency_ns: Nanos) {
        while at / self.interval_ns >= Self::MOST as u64 {
            self.double();
        }
        let interval = (at / self.interval_ns) as usize;
        if interval >= self.intervals.len() {
            self.intervals.resize_with(interval + 1, Default::default);
        }
        let histogram = self.intervals[interval][operation as usize]
            .get_or_insert_with(|| Histogram::new(Self::DIGITS).expect("two digits are possible"));
        histogram
            .record(latency_ns)
            .expect("the histogram grows with its values");
    }

    fn double(&mut self) {
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
    }

    /// Intervals so far.
    pub fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Whether nothing completed.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// The latency that `percent` of the requests of an interval do not exceed, to two digits; `None` without any.
    pub fn percentile_ns(&self, interval: usize, operation: Operation, percent: f64) -> Option<Nanos> {
        let histogram = self.intervals[interval][operation as usize].as_ref()?;
        Some(histogram.value_at_quantile(percent / 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latencies of many sizes, from a generator that everybody can run.
    fn values() -> Vec<u64> {
        let mut state = 1_u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        (0..100_000).map(|_| (1 + draw() % 1000) << (draw() % 14)).collect()
    }

    #[test]
    fn percentiles_are_those_of_a_sort_to_three_digits() {
        let mut latencies = Latencies::default();
        let mut sorted = values();
        for value in &sorted {
            latencies.record([*value]);
        }
        sorted.sort_unstable();
        for percent in [1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0] {
            let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
            let (exact, found) = (sorted[rank - 1] as f64, latencies.percentile_ns(percent) as f64);
            assert!(
                (found - exact).abs() <= exact / 1000.0,
                "p{percent}: {found}, sorted {exact}"
            );
        }
        let mean = sorted.iter().sum::<u64>() as f64 / sorted.len() as f64;
        let squares = sorted.iter().map(|value| (*value as f64 - mean).powi(2));
        let deviation = (squares.sum::<f64>() / sorted.len() as f64).sqrt();
        assert!((latencies.mean_ns() / mean - 1.0).abs() < 1e-12);
        assert!((latencies.deviation_ns() / deviation - 1.0).abs() < 1e-9);
        assert_eq!(
            (latencies.min_ns(), latencies.max_ns()),
            (sorted[0], sorted[sorted.len() - 1])
        );
        assert_eq!(latencies.distribution().last().map(|(_, share)| *share), Some(1.0));
    }

    #[test]
    fn they_are_those_of_hdrhistogram() {
        let mut latencies = Latencies::default();
        let mut histogram = Histogram::<u64>::new(3).expect("three digits are possible");
        let edges = (0..60).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1, 3 << bits]);
        for value in values().into_iter().chain(edges) {
            latencies.record([value]);
            histogram.record(value).expect("it grows with its values");
        }
        let mut below = 0;
        let recorded = histogram.iter_recorded().map(|step| {
            below += step.count_since_last_iteration();
            (
                step.value_iterated_to().min(latencies.max_ns()),
                below as f64 / latencies.count() as f64,
            )
        });
        assert_eq!(latencies.distribution(), recorded.collect::<Vec<_>>());
        for percent in (0..=1000).map(|tenths| f64::from(tenths) / 10.0).chain([99.99, 99.999]) {
            let value = histogram.value_at_quantile(percent / 100.0);
            assert_eq!(
                latencies.percentile_ns(percent),
                value.clamp(latencies.min_ns(), latencies.max_ns()),
                "p{percent}"
            );
        }
    }

    #[test]
    fn halves_together_are_the_whole() {
        let (mut whole, mut first, mut second) = (Latencies::default(), Latencies::default(), Latencies::default());
        for (index, value) in values().into_iter().enumerate() {
            whole.record([value]);
            if index % 3 == 0 { &mut first } else { &mut second }.record([value]);
        }
        first.add(&second);
        assert_eq!((first.count(), first.sum_ns()), (whole.count(), whole.sum_ns()));
        assert_eq!(first.percentile_ns(99.9), whole.percentile_ns(99.9));
        assert_eq!(first.deviation_ns().to_bits(), whole.deviation_ns().to_bits());
    }

    #[test]
    fn a_series_loses_nothing_when_its_intervals_double() {
        let mut series = Series::new(2, None);
        for request in 0..100_000_u64 {
            let moment = Moment {
                requests: 1,
                bytes: request,
                latency_ns: 7,
                waited: request % 2,
            };
            let interval = series.interval(request * 77_777);
            series.record(interval, (request % 2) as usize, Operation::Write, moment);
            if request % 1000 == 0 {
                series.collected(request * 77_777, 3);
            }
        }
        assert!((INTERVALS / 2..=INTERVALS).contains(&series.len()), "{}", series.len());
        let rows = || (0..series.len()).map(|interval| series.moment(interval, 1, Operation::Write));
        assert_eq!(rows().map(|row| row.requests).sum::<u64>(), 50_000);
        assert_eq!(rows().map(|row| row.waited).sum::<u64>(), 50_000);
        assert_eq!(rows().map(|row| row.bytes).sum::<u64>(), 2_500_000_000);
        assert_eq!(
            (0..series.len()).map(|row| series.collections(row).count).sum::<u64>(),
            100
        );
        // Requests came at an even pace, so intervals differ by one at most.
        let per_interval = series.interval_ns as f64 / 77_777.0 / 2.0;
        let even = rows()
            .take(series.len() - 1)
            .all(|row| (row.requests as f64 - per_interval).abs() <= 1.0);
        assert!(even, "about {per_interval} in each interval");
    }
    #[test]
    fn percentiles_over_time_are_those_of_the_requests_of_each_interval() {
        let mut series = LatencySeries::default();
        let values = values();
        for (request, value) in values.iter().enumerate() {
            // Writes take a hundred times as long, and come ten times as seldom.
            let at = request as u64 * 10_000;
            series.record(at, Operation::Read, *value);
            if request % 10 == 0 {
                series.record(at, Operation::Write, 100 * value);
            }
        }
        assert!((LatencySeries::MOST / 2..=LatencySeries::MOST).contains(&series.len()));
        for interval in 0..series.len() {
            let in_interval = |request: &usize| *request as u64 * 10_000 / series.interval_ns == interval as u64;
            let of = |every: usize, times: u64| {
                let requests = (0..values.len())
                    .filter(|request| request % every == 0)
                    .filter(in_interval);
                let mut found: Vec<u64> = requests.map(|request| times * values[request]).collect();
                found.sort_unstable();
                found
            };
            for (operation, sorted) in [(Operation::Read, of(1, 1)), (Operation::Write, of(10, 100))] {
                for percent in [50.0, 99.0] {
                    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
                    let exact = sorted[rank - 1] as f64;
                    let found = series.percentile_ns(interval, operation, percent).expect("requests") as f64;
                    assert!(
                        (found - exact).abs() <= exact / 100.0,
                        "p{percent}: {found}, sorted {exact}"
                    );
                }
            }
            assert_eq!(series.percentile_ns(interval, Operation::Trim, 50.0), None);
        }
    }
}
