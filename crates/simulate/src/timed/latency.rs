//! Request latencies and waits for garbage collection, in constant memory.
//!
//! Latencies enter a histogram of three significant digits. Number, sum, sum of squares, minimum
//! and maximum are exact.

use serde::Serialize;
use ssd::Nanos;

/// Histogram to three digits: exact values below 2048, then 1024 steps per doubling. The bins are
/// those of HdrHistogram, whose own code takes three times as long. That code supports any number
/// of digits and handles failures.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyBins(Vec<u64>);

impl LatencyBins {
    /// Maximum bytes of the counts.
    pub(super) const BYTES_MAX: usize =
        (u64::BITS as usize - Self::STEPS.ilog2() as usize) * Self::STEPS * size_of::<u64>();

    /// Steps of a doubling.
    const STEPS: usize = 1024;

    #[inline]
    fn place(value: u64) -> usize {
        let doublings = (u64::BITS - Self::STEPS.ilog2() - 1).saturating_sub(value.leading_zeros());
        doublings as usize * Self::STEPS + (value >> doublings) as usize
    }

    fn bin_max(place: usize) -> u64 {
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

    fn add(&mut self, other: &LatencyBins) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }

    /// Counted values in rising order, with their counts.
    fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let counted = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(place, count)| (Self::bin_max(place), *count))
    }
}

#[derive(Clone, Debug)]
pub struct LatencyDistribution {
    counts: LatencyBins,
    count: u64,
    sum_ns: u128,
    squares: u128,
    min_ns: Nanos,
    max_ns: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatencySum {
    pub(super) count: u64,
    pub(super) sum_ns: u128,
    pub(super) max_ns: Nanos,
}

impl FromIterator<Nanos> for LatencySum {
    fn from_iter<T: IntoIterator<Item = Nanos>>(latencies: T) -> LatencySum {
        latencies.into_iter().fold(LatencySum::default(), |sum, latency_ns| LatencySum {
            count: sum.count + 1,
            sum_ns: sum.sum_ns + u128::from(latency_ns),
            max_ns: sum.max_ns.max(latency_ns),
        })
    }
}

impl Default for LatencyDistribution {
    fn default() -> Self {
        LatencyDistribution {
            counts: LatencyBins::default(),
            count: 0,
            sum_ns: 0,
            squares: 0,
            min_ns: Nanos::MAX,
            max_ns: 0,
        }
    }
}

impl LatencyDistribution {
    /// Records latencies. Returns their number and sum.
    #[inline]
    pub(super) fn record(&mut self, latencies: impl IntoIterator<Item = Nanos>) -> LatencySum {
        let mut together = LatencySum::default();
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

    pub fn add(&mut self, other: &LatencyDistribution) {
        self.counts.add(&other.counts);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.squares += other.squares;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        assert!(
            self.count == 0 || self.min_ns <= self.max_ns,
            "latencies range from {} to {} ns",
            self.min_ns,
            self.max_ns
        );
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Minimum. 0 without latencies.
    pub fn min_ns(&self) -> Nanos {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Maximum. 0 without latencies.
    pub fn max_ns(&self) -> Nanos {
        self.max_ns
    }

    /// Mean. 0 without latencies.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64
    }

    /// Standard deviation of the population. 0 without latencies.
    pub fn deviation_ns(&self) -> f64 {
        let count = u128::from(self.count.max(1));
        // Integers while they fit, because the formula subtracts two large numbers.
        let exact = self.squares.checked_mul(count).zip(self.sum_ns.checked_mul(self.sum_ns));
        let variance = match exact {
            Some((squares, square)) => squares.saturating_sub(square) as f64 / (count as f64 * count as f64),
            None => self.squares as f64 / count as f64 - self.mean_ns() * self.mean_ns(),
        };
        variance.max(0.0).sqrt()
    }

    /// Value that `percent` of the latencies do not exceed, at the resolution of the histogram. 0
    /// without latencies.
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

    /// Distribution: rising values, each with the share of requests that do not exceed it.
    pub fn distribution(&self) -> Vec<(Nanos, f64)> {
        let mut below = 0;
        let counted = self.counts.values().map(|(value, count)| {
            below += count;
            (value.min(self.max_ns), below as f64 / self.count as f64)
        });
        let counted = counted.collect();
        assert_eq!(below, self.count, "the histogram counts every latency once");
        counted
    }
}

/// Requests that waited for garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GcWaits {
    pub requests: u64,
    pub sum_ns: u64,
    pub max_ns: Nanos,
}

impl GcWaits {
    /// Records the waits of some requests. Returns the number that waited.
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

    pub fn add(&mut self, other: &GcWaits) {
        self.requests += other.requests;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        assert!(
            self.max_ns <= self.sum_ns,
            "a wait of {} ns is longer than all together, {} ns",
            self.max_ns,
            self.sum_ns
        );
    }
}

#[cfg(test)]
pub(super) mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    /// Latencies of many sizes, from a portable generator.
    pub(in crate::timed) fn values() -> Vec<u64> {
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        (0..100_000).map(|_| (1 + draw() % 1000) << (draw() % 14)).collect()
    }

    #[test]
    fn percentiles_are_those_of_a_sort_to_three_digits() {
        let mut latencies = LatencyDistribution::default();
        let mut sorted = values();
        for value in &sorted {
            latencies.record([*value]);
        }
        sorted.sort_unstable();
        for percent in [1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0] {
            let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
            let (exact, found) = (sorted[rank - 1] as f64, latencies.percentile_ns(percent) as f64);
            assert!((found - exact).abs() <= exact / 1000.0, "p{percent}: {found}, sorted {exact}");
        }
        let mean = sorted.iter().sum::<u64>() as f64 / sorted.len() as f64;
        let squares = sorted.iter().map(|value| (*value as f64 - mean).powi(2));
        let deviation = (squares.sum::<f64>() / sorted.len() as f64).sqrt();
        assert!((latencies.mean_ns() / mean - 1.0).abs() < 1e-12);
        assert!((latencies.deviation_ns() / deviation - 1.0).abs() < 1e-9);
        assert_eq!((latencies.min_ns(), latencies.max_ns()), (sorted[0], sorted[sorted.len() - 1]));
        assert_eq!(latencies.distribution().last().map(|(_, share)| *share), Some(1.0));
    }

    #[test]
    fn they_are_those_of_hdrhistogram() {
        let mut latencies = LatencyDistribution::default();
        let mut histogram = Histogram::<u64>::new(3).expect("three digits are possible");
        let edges = (0..60).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1, 3 << bits]);
        for value in values().into_iter().chain(edges) {
            latencies.record([value]);
            histogram.record(value).expect("it grows with its values");
        }
        let mut below = 0;
        let recorded = histogram.iter_recorded().map(|step| {
            below += step.count_since_last_iteration();
            (step.value_iterated_to().min(latencies.max_ns()), below as f64 / latencies.count() as f64)
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
        let (mut whole, mut first, mut second) =
            (LatencyDistribution::default(), LatencyDistribution::default(), LatencyDistribution::default());
        for (index, value) in values().into_iter().enumerate() {
            whole.record([value]);
            if index % 3 == 0 { &mut first } else { &mut second }.record([value]);
        }
        first.add(&second);
        assert_eq!((first.count(), first.sum_ns()), (whole.count(), whole.sum_ns()));
        assert_eq!(first.percentile_ns(99.9), whole.percentile_ns(99.9));
        assert_eq!(first.deviation_ns().to_bits(), whole.deviation_ns().to_bits());
    }
}
