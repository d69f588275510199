//! Time series of a lane: host and media bytes, and each owner's part, with a bounded number of
//! samples.
//!
//! A sample is taken each hundredth of the capacity. Above the limit, every second sample is
//! dropped and the interval doubles. So the size does not depend on the length of the run.

pub const SAMPLES_MAX: usize = 4096;
/// Initial samples per drive write.
const SAMPLES_PER_CAPACITY: u64 = 100;

#[derive(Clone, Debug)]
pub struct LaneSeries {
    owners: usize,
    /// Host bytes between two samples.
    every_bytes: u64,
    /// Values of each sample: host bytes, media bytes, then host bytes and copied-out pages of each
    /// owner.
    values: Vec<f64>,
    /// Values of each sample that are not part of a frame.
    extras: Vec<SampleExtras>,
}

/// Values of a sample that are not part of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleExtras {
    /// Virtual time, nanoseconds.
    pub now_ns: u64,
    pub free_units: u64,
}

pub struct LaneSample<'a> {
    pub host_bytes: u64,
    /// Programmed bytes.
    pub media_bytes: u64,
    /// Host bytes and copied-out pages of each owner.
    pub owners: &'a [(u64, u64)],
    /// Values that are not part of a frame.
    pub extras: SampleExtras,
}

impl LaneSeries {
    pub fn new(owners: usize, capacity_bytes: u64) -> LaneSeries {
        LaneSeries {
            owners,
            every_bytes: (capacity_bytes / SAMPLES_PER_CAPACITY).max(1),
            values: Vec::new(),
            extras: Vec::new(),
        }
    }

    /// Number of values per sample.
    pub fn width(&self) -> usize {
        2 + 2 * self.owners
    }

    pub fn len(&self) -> usize {
        self.extras.len()
    }

    /// Values of all samples from this index.
    pub fn since(&self, sample: usize) -> &[f64] {
        &self.values[(sample * self.width()).min(self.values.len())..]
    }

    /// Host bytes, media bytes and further values of each sample.
    pub fn samples(&self) -> impl Iterator<Item = (f64, f64, SampleExtras)> {
        let rows = self.values.chunks_exact(self.width());
        rows.zip(&self.extras).map(|(row, extras)| (row[0], row[1], *extras))
    }

    pub fn is_due(&self, host_bytes: u64) -> bool {
        match self.len().checked_sub(1) {
            None => true,
            Some(last) => host_bytes as f64 >= self.values[last * self.width()] + self.every_bytes as f64,
        }
    }

    /// Adds a sample if it is later than the last one. Returns true if earlier samples were
    /// thinned.
    pub fn add_sample(&mut self, sample: &LaneSample<'_>) -> bool {
        assert_eq!(sample.owners.len(), self.owners, "a drive keeps its handles");
        let last = self.len().checked_sub(1).map(|last| self.values[last * self.width()]);
        if last.is_some_and(|last| sample.host_bytes as f64 <= last) {
            return false;
        }
        self.values.extend([sample.host_bytes as f64, sample.media_bytes as f64]);
        let owners = sample.owners.iter();
        self.values.extend(owners.flat_map(|(host_bytes, copied)| [*host_bytes as f64, *copied as f64]));
        self.extras.push(sample.extras);
        assert_eq!(self.values.len(), self.len() * self.width(), "samples are complete");
        if self.len() <= SAMPLES_MAX {
            return false;
        }
        self.drop_every_other();
        true
    }

    fn drop_every_other(&mut self) {
        let width = self.width();
        let kept = self.values.chunks_exact(width).step_by(2);
        self.values = kept.flatten().copied().collect();
        self.extras = self.extras.iter().step_by(2).copied().collect();
        self.every_bytes *= 2;
        assert!(self.len() <= SAMPLES_MAX, "half of them fit");
    }

    /// Appends the additional samples of a series with the same start.
    pub fn catch_up(&mut self, with: &LaneSeries) {
        assert!(self.owners == with.owners && self.len() <= with.len(), "both are of the same run");
        self.values.extend_from_slice(&with.values[self.values.len()..]);
        self.extras.extend_from_slice(&with.extras[self.extras.len()..]);
        self.every_bytes = with.every_bytes;
    }

    /// Drops the samples after a position, host bytes.
    pub fn truncate_after(&mut self, host_bytes: u64) {
        let width = self.width();
        let kept = self.values.chunks_exact(width).take_while(|row| row[0] <= host_bytes as f64);
        let kept = kept.count();
        self.values.truncate(kept * width);
        self.extras.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(series: &mut LaneSeries, host_bytes: u64) -> bool {
        series.add_sample(&LaneSample {
            host_bytes,
            media_bytes: 2 * host_bytes,
            owners: &[(host_bytes, 1)],
            extras: SampleExtras::default(),
        })
    }

    #[test]
    fn a_long_series_is_thinned_and_goes_on() {
        let mut series = LaneSeries::new(1, 1000);
        let mut thinned = 0;
        for host_bytes in 0..200_000 {
            if series.is_due(host_bytes) {
                thinned += usize::from(take(&mut series, host_bytes));
            }
        }
        assert_eq!(thinned, 3);
        assert!(series.len() > SAMPLES_MAX / 2 && series.len() <= SAMPLES_MAX);
        let hosts: Vec<f64> = series.samples().map(|(host, _, _)| host).collect();
        assert!(hosts.windows(2).all(|pair| pair[1] - pair[0] == 80.0), "evenly");
        assert_eq!(hosts[0], 0.0);
    }

    #[test]
    fn going_back_forgets_what_came_after() {
        let mut series = LaneSeries::new(1, 1000);
        for host_bytes in [0, 10, 20, 30] {
            assert!(series.is_due(host_bytes));
            take(&mut series, host_bytes);
        }
        series.truncate_after(20);
        assert_eq!(series.len(), 3);
        assert!(!series.is_due(25));
        take(&mut series, 30);
        assert_eq!(series.since(3), [30.0, 60.0, 30.0, 1.0]);
        assert_eq!(series.since(9), [0.0; 0]);
    }
}
