//! The time series of a lane: host and media bytes, and each owner's part, at most so many moments.
//!
//! A moment each hundredth of the capacity; when there are too many, every second one goes and half as many come from then on. So a
//! series of a long run has as many points as one of a short run has, and no bound of the run is needed before.

/// Moments that are kept.
pub const MOMENTS_MAX: usize = 4096;
/// Moments of a drive-write, at first.
const MOMENTS_A_CAPACITY: u64 = 100;

/// See the module.
#[derive(Clone, Debug)]
pub struct Series {
    owners: usize,
    /// Host bytes between two moments.
    every_bytes: u64,
    /// For each moment: host bytes, media bytes, and of each owner host bytes and pages copied out.
    values: Vec<f64>,
    /// For each moment, what is not part of a frame.
    beside: Vec<Beside>,
}

/// What else is known of a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Virtual time.
    pub now_ns: u64,
    /// Units that were free.
    pub free_units: u64,
}

/// A moment of a lane.
pub struct Moment<'a> {
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Bytes that were programmed.
    pub media_bytes: u64,
    /// Of each owner: host bytes, pages copied out.
    pub owners: &'a [(u64, u64)],
    /// What is not part of a frame.
    pub beside: Beside,
}

impl Series {
    /// An empty series of a drive.
    pub fn new(owners: usize, capacity_bytes: u64) -> Series {
        Series {
            owners,
            every_bytes: (capacity_bytes / MOMENTS_A_CAPACITY).max(1),
            values: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// Values of a moment.
    pub fn width(&self) -> usize {
        2 + 2 * self.owners
    }

    pub fn len(&self) -> usize {
        self.beside.len()
    }

    /// The values of all moments from one on.
    pub fn since(&self, moment: usize) -> &[f64] {
        &self.values[(moment * self.width()).min(self.values.len())..]
    }

    /// Host bytes, media bytes and what is beside them, of each moment.
    pub fn moments(&self) -> impl Iterator<Item = (f64, f64, Beside)> {
        let rows = self.values.chunks_exact(self.width());
        rows.zip(&self.beside).map(|(row, beside)| (row[0], row[1], *beside))
    }

    /// Whether a moment is to be taken now.
    pub fn is_due(&self, host_bytes: u64) -> bool {
        match self.len().checked_sub(1) {
            None => true,
            Some(last) => host_bytes as f64 >= self.values[last * self.width()] + self.every_bytes as f64,
        }
    }

    /// Takes a moment, if it is later than the last; says whether those before were thinned.
    pub fn take(&mut self, moment: &Moment<'_>) -> bool {
        assert_eq!(moment.owners.len(), self.owners, "a drive keeps its handles");
        let last = self.len().checked_sub(1).map(|last| self.values[last * self.width()]);
        if last.is_some_and(|last| moment.host_bytes as f64 <= last) {
            return false;
        }
        self.values
            .extend([moment.host_bytes as f64, moment.media_bytes as f64]);
        let owners = moment.owners.iter();
        self.values
            .extend(owners.flat_map(|(host_bytes, copied)| [*host_bytes as f64, *copied as f64]));
        self.beside.push(moment.beside);
        assert_eq!(self.values.len(), self.len() * self.width(), "moments are whole");
        if self.len() <= MOMENTS_MAX {
            return false;
        }
        self.thin();
        true
    }

    /// Forgets every second moment.
    fn thin(&mut self) {
        let width = self.width();
        let kept = self.values.chunks_exact(width).step_by(2);
        self.values = kept.flatten().copied().collect();
        self.beside = self.beside.iter().step_by(2).copied().collect();
        self.every_bytes *= 2;
        assert!(self.len() <= MOMENTS_MAX, "half of them fit");
    }

    /// Takes the moments that another one, which begins as this one does, has more.
    pub fn catch_up(&mut self, with: &Series) {
        assert!(
            self.owners == with.owners && self.len() <= with.len(),
            "both are of the same run"
        );
        self.values.extend_from_slice(&with.values[self.values.len()..]);
        self.beside.extend_from_slice(&with.beside[self.beside.len()..]);
        self.every_bytes = with.every_bytes;
    }

    /// Forgets the moments after one.
    pub fn forget_after(&mut self, host_bytes: u64) {
        let width = self.width();
        let kept = self
            .values
            .chunks_exact(width)
            .take_while(|row| row[0] <= host_bytes as f64);
        let kept = kept.count();
        self.values.truncate(kept * width);
        self.beside.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(series: &mut Series, host_bytes: u64) -> bool {
        series.take(&Moment {
            host_bytes,
            media_bytes: 2 * host_bytes,
            owners: &[(host_bytes, 1)],
            beside: Beside::default(),
        })
    }

    #[test]
    fn a_long_series_is_thinned_and_goes_on() {
        let mut series = Series::new(1, 1000);
        let mut thinned = 0;
        for host_bytes in 0..200_000 {
            if series.is_due(host_bytes) {
                thinned += usize::from(take(&mut series, host_bytes));
            }
        }
        assert_eq!(thinned, 3);
        assert!(series.len() > MOMENTS_MAX / 2 && series.len() <= MOMENTS_MAX);
        let hosts: Vec<f64> = series.moments().map(|(host, _, _)| host).collect();
        assert!(hosts.windows(2).all(|pair| pair[1] - pair[0] == 80.0), "evenly");
        assert_eq!(hosts[0], 0.0);
    }

    #[test]
    fn going_back_forgets_what_came_after() {
        let mut series = Series::new(1, 1000);
        for host_bytes in [0, 10, 20, 30] {
            assert!(series.is_due(host_bytes));
            take(&mut series, host_bytes);
        }
        series.forget_after(20);
        assert_eq!(series.len(), 3);
        assert!(!series.is_due(25));
        take(&mut series, 30);
        assert_eq!(series.since(3), [30.0, 60.0, 30.0, 1.0]);
        assert_eq!(series.since(9), [0.0; 0]);
    }
}
