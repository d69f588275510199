//! Batched counters of requests. Consecutive requests of equal job, direction and interval share one
//! update and one overflow check of their counters, also if their lanes differ.

use ssd::Nanos;
use workload::RequestOperation;

use super::job_instance::JobInstance;
use super::measure::JobResult;
use super::series::{IntervalSample, TimedSeries};

/// Maximum requests of a batch.
const BATCH_REQUESTS: usize = 64;

/// A measured request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestSample {
    pub(super) key: SampleKey,
    pub(super) bytes: u32,
    /// Device time.
    pub(super) completed_at: Nanos,
    pub(super) latency_ns: Nanos,
    pub(super) waited_ns: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleKey {
    pub(super) lane: u32,
    pub(super) job: u32,
    pub(super) operation: RequestOperation,
}

/// Counters of a run in virtual time. See the module.
pub(super) struct LatencyRecorder {
    /// Device time at the start of the run.
    pub(super) start: Nanos,
    /// Results of jobs, without uncounted requests.
    pub(super) jobs: Vec<JobResult>,
    pub(super) series: TimedSeries,
    pub(super) uncounted: Vec<RequestSample>,
}

impl LatencyRecorder {
    pub(super) fn new(jobs: Vec<JobResult>, interval_ns: Option<Nanos>) -> LatencyRecorder {
        LatencyRecorder {
            start: 0,
            series: TimedSeries::new(jobs.len(), interval_ns),
            jobs,
            uncounted: Vec::with_capacity(BATCH_REQUESTS),
        }
    }

    /// Queues a request. Counts the batch if full.
    #[inline(always)]
    pub(super) fn record(&mut self, request: RequestSample, lanes: &mut [JobInstance]) {
        if self.uncounted.len() == BATCH_REQUESTS {
            self.count(lanes);
        }
        self.uncounted.push(request);
    }

    #[inline(never)]
    pub(super) fn count(&mut self, lanes: &mut [JobInstance]) {
        assert!(
            self.uncounted.len() <= BATCH_REQUESTS,
            "{} requests are uncounted, at most {BATCH_REQUESTS}",
            self.uncounted.len()
        );
        let mut left = &self.uncounted[..];
        while let Some(first) = left.first() {
            let whose = first.key;
            let interval = self.series.interval(first.completed_at - self.start);
            let span = self.series.span(interval);
            let is_of_them = |other: &&RequestSample| {
                (other.key.job, other.key.operation) == (whose.job, whose.operation)
                    && span.contains(&(other.completed_at - self.start))
            };
            let (together, others) = left.split_at(left.iter().take_while(is_of_them).count());
            assert!(!together.is_empty(), "the first of them is in its own interval");
            left = others;
            let direction = &mut self.jobs[whose.job as usize].directions[whose.operation as usize];
            let latencies = direction.latencies.record(together.iter().map(|one| one.latency_ns));
            let bytes = together.iter().map(|one| u64::from(one.bytes)).sum();
            let waited = direction.waits.record(together.iter().map(|one| one.waited_ns));
            direction.requests += latencies.count;
            direction.bytes += bytes;
            let moment = IntervalSample {
                requests: latencies.count,
                bytes,
                latency_ns: Nanos::try_from(latencies.sum_ns).expect("latencies of some dozens are below 500 years"),
                waited,
            };
            self.series.record(interval, whose.job as usize, whose.operation, moment);
            for of_lane in together.chunk_by(|one, next| one.key.lane == next.key.lane) {
                let latencies = match of_lane.len() == together.len() {
                    true => latencies,
                    false => of_lane.iter().map(|one| one.latency_ns).collect(),
                };
                let completions = of_lane.iter().map(|one| one.completed_at);
                lanes[of_lane[0].key.lane as usize].tally.submitted(latencies, completions);
            }
        }
        self.uncounted.clear();
    }
}
