//! Batched counters of requests. Requests of equal job, direction and interval share one update and
//! one overflow check of their counters.

use ssd::Nanos;
use workload::Operation;

use super::lane::Lane;
use super::measure::JobResult;
use super::series::{Moment, Series};

/// Maximum requests of a batch.
const TOGETHER: usize = 64;

/// A measured request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) whose: Whose,
    pub(super) bytes: u32,
    /// Device time.
    pub(super) completed_at: Nanos,
    pub(super) latency_ns: Nanos,
    pub(super) waited_ns: Nanos,
}

/// Key of the counters of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) lane: u32,
    pub(super) job: u32,
    pub(super) operation: Operation,
}

/// Counters of a run in virtual time. See the module.
pub(super) struct Accounts {
    /// Device time at the start of the run.
    pub(super) start: Nanos,
    /// Results of jobs, without uncounted requests.
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

    /// Queues a request. Counts the batch if full.
    #[inline(always)]
    pub(super) fn take(&mut self, request: Measured, lanes: &mut [Lane]) {
        if self.uncounted.len() == TOGETHER {
            self.count(lanes);
        }
        self.uncounted.push(request);
    }

    /// Counts the queued requests.
    #[inline(never)]
    pub(super) fn count(&mut self, lanes: &mut [Lane]) {
        assert!(
            self.uncounted.len() <= TOGETHER,
            "{} requests are uncounted, at most {TOGETHER}",
            self.uncounted.len()
        );
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

    /// Returns true if no request is queued.
    pub(super) fn is_complete(&self) -> bool {
        self.uncounted.is_empty()
    }
}
