//! What is counted of requests, some dozens at a time: the counters of those that are of one job, one direction and one
//! interval are read and written, and looked at for their overflow, once for all of them.

use ssd::Nanos;
use workload::Operation;

use super::lane::Lane;
use super::measure::JobResult;
use super::series::{Moment, Series};

/// Requests that are counted together, at most.
const TOGETHER: usize = 64;

/// A request that is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) whose: Whose,
    pub(super) bytes: u32,
    /// By the clock of the device.
    pub(super) completed_at: Nanos,
    pub(super) latency_ns: Nanos,
    pub(super) waited_ns: Nanos,
}

/// What a request is counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) lane: u32,
    pub(super) job: u32,
    pub(super) operation: Operation,
}

/// See the module.
pub(super) struct Accounts {
    /// The device's time at which the run began.
    pub(super) start: Nanos,
    /// Without what is not counted yet, as all the rest.
    pub(super) jobs: Vec<JobResult>,
    pub(super) series: Series,
    uncounted: Vec<Measured>,
}

impl Accounts {
    pub(super) fn new(jobs: Vec<JobResult>, interval_ns: Option<Nanos>) -> Accounts {
        Accounts {
            start: 0,
            series: Series::new(jobs.len(), interval_ns),
            jobs,
            uncounted: Vec::with_capacity(TOGETHER),
        }
    }

    /// Takes a request, to be counted when there are enough.
    #[inline(always)]
    pub(super) fn take(&mut self, request: Measured, lanes: &mut [Lane]) {
        if self.uncounted.len() == TOGETHER {
            self.count(lanes);
        }
        self.uncounted.push(request);
    }

    /// Counts what was taken.
    #[inline(never)]
    pub(super) fn count(&mut self, lanes: &mut [Lane]) {
        let mut left = &self.uncounted[..];
        while let Some(first) = left.first() {
            let whose = first.whose;
            let interval = self.series.interval(first.completed_at - self.start);
            let span = self.series.span(interval);
            let is_of_them =
                |other: &&Measured| other.whose == whose && span.contains(&(other.completed_at - self.start));
            let (together, others) = left.split_at(left.iter().take_while(is_of_them).count());
            assert!(!together.is_empty(), "the first of them is in its own interval");
            left = others;
            let direction = &mut self.jobs[whose.job as usize].directions[whose.operation as usize];
            let latencies = direction.latencies.record(together.iter().map(|one| one.latency_ns));
            let bytes = together.iter().map(|one| u64::from(one.bytes)).sum();
            let waited = direction.waits.record(together.iter().map(|one| one.waited_ns));
            direction.requests += latencies.count;
            direction.bytes += bytes;
            let moment = Moment {
                requests: latencies.count,
                bytes,
                latency_ns: Nanos::try_from(latencies.sum_ns).expect("latencies of some dozens are below 500 years"),
                waited,
            };
            self.series
                .record(interval, whose.job as usize, whose.operation, moment);
            let completions = together.iter().map(|one| one.completed_at);
            lanes[whose.lane as usize].tally.submitted(latencies, completions);
        }
        self.uncounted.clear();
    }

    /// Whether all that was taken is counted.
    pub(super) fn is_complete(&self) -> bool {
        self.uncounted.is_empty()
    }
}
