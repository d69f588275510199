//! Latencies of an array's requests, by the state of the array at their submission.

use ssd::{CompletionTime, Nanos};
use workload::IoRequest;

use super::measure::JobResult;
use super::result::TimedResult;
use super::series::{IntervalSample, TimedSeries};

pub(crate) struct StateRecorder {
    jobs: Vec<JobResult>,
    series: TimedSeries,
}

impl StateRecorder {
    pub(crate) fn new(states: &[&str], queue_depth: u64) -> StateRecorder {
        let job = |name: &&str| JobResult {
            name: (*name).to_string(),
            rw: "rw",
            request_bytes: (u64::MAX, 0),
            instances: 1,
            queue_depth,
            from_ns: Nanos::MAX,
            ..JobResult::default()
        };
        StateRecorder { jobs: states.iter().map(job).collect(), series: TimedSeries::new(states.len(), None) }
    }

    /// Records a request. `done.at` is its completion, and times count from the begin of the run.
    pub(crate) fn record(&mut self, state: usize, request: &IoRequest, begun_at: Nanos, done: CompletionTime) {
        assert!(done.at >= begun_at, "a request is complete after its submission");
        let latency_ns = done.at - begun_at;
        let bytes = u64::from(request.bytes);
        let job = &mut self.jobs[state];
        job.request_bytes = (job.request_bytes.0.min(bytes), job.request_bytes.1.max(bytes));
        (job.from_ns, job.until_ns) = (job.from_ns.min(begun_at), job.until_ns.max(done.at));
        job.in_flight_ns += u128::from(latency_ns);
        let direction = &mut job.directions[request.operation as usize];
        direction.requests += 1;
        direction.bytes += bytes;
        let _ = direction.latencies.record([latency_ns]);
        let waited = direction.waits.record(std::iter::once(done.waited_for_collection_ns));
        let interval = self.series.interval(done.at);
        let sample = IntervalSample { requests: 1, bytes, latency_ns, waited };
        self.series.record(interval, state, request.operation, sample);
    }

    /// Records a garbage collection of a drive.
    pub(crate) fn collected(&mut self, at: Nanos, pages_copied: u64) {
        self.series.collected(at, pages_copied);
    }

    /// Returns the states that occurred.
    pub(crate) fn finish(mut self) -> TimedResult {
        for job in &mut self.jobs {
            job.from_ns = job.from_ns.min(job.until_ns);
            job.request_bytes.0 = job.request_bytes.0.min(job.request_bytes.1);
        }
        TimedResult { jobs: self.jobs, series: self.series, trace: None, request_log: None }
    }
}
