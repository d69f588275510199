//! Measurements of the jobs of a timed run, in constant memory.

use ssd::{BoundedLog, Nanos};
use workload::RequestOperation;
use workload::fio::LatencyGoal;

use super::latency::{GcWaits, LatencyBins, LatencyDistribution};
use super::series::LatencySeries;

/// Maximum bytes of a job's measurements: a histogram per direction.
pub(super) const fn job_bytes_max() -> u64 {
    (3 * (LatencyBins::BYTES_MAX + size_of::<DirectionResult>()) + size_of::<JobResult>()) as u64
}

#[derive(Clone, Debug, Default)]
pub struct DirectionResult {
    pub requests: u64,
    pub bytes: u64,
    /// Time from submission to completion.
    pub latencies: LatencyDistribution,
    /// Waits for garbage collection.
    pub waits: GcWaits,
}

impl DirectionResult {
    pub fn add(&mut self, other: &DirectionResult) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latencies.add(&other.latencies);
        self.waits.add(&other.waits);
        assert_eq!(self.requests, self.latencies.count(), "each request has a latency");
        assert!(self.waits.requests <= self.requests, "more requests waited than there were");
    }
}

/// Measurements of one job: all instances of a section of the job file.
#[derive(Clone, Debug, Default)]
pub struct JobResult {
    /// Name of the section.
    pub name: String,
    pub rw: &'static str,
    /// Smallest and largest request, bytes.
    pub request_bytes: (u64, u64),
    /// Number of the group. Groups run one after another.
    pub group: u16,
    /// `numjobs`
    pub instances: u32,
    /// `iodepth`
    pub queue_depth: u64,
    /// Start of the measurement since the start of the run.
    pub from_ns: Nanos,
    /// Last completion since the start of the run.
    pub until_ns: Nanos,
    /// Reads, writes, trims.
    pub directions: [DirectionResult; 3],
    /// Sum of the times in flight of the requests, ns. Counted at every submission and completion.
    pub in_flight_ns: u128,
    /// Depth search of the job.
    pub latency_goal: Option<Goal>,
}

/// Depth search (`latency_target`) and its result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Latency limit.
    pub target_ns: Nanos,
    /// Duration of each depth.
    pub window_ns: Nanos,
    /// Percentage of requests that must meet the limit.
    pub percent: f64,
    /// Requests in flight at the end.
    pub depth: u64,
    /// True if the search ended with this depth, false if it is the last one tried.
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
    /// Duration of the measurement.
    pub fn elapsed_ns(&self) -> Nanos {
        self.until_ns.saturating_sub(self.from_ns)
    }

    /// Mean requests in flight during the measurement.
    pub fn mean_in_flight(&self) -> f64 {
        self.in_flight_ns as f64 / self.elapsed_ns().max(1) as f64
    }

    pub fn direction(&self, operation: RequestOperation) -> &DirectionResult {
        &self.directions[operation as usize]
    }
}

/// Request details of a run in virtual time, kept for observers only.
#[derive(Clone, Debug, Default)]
pub struct RequestLog {
    pub latencies: LatencySeries,
    /// Last requests, in submission order.
    pub requests: BoundedLog<TimedRequest>,
}

/// A request executed in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRequest {
    /// Index in [`TimedResult::jobs`](super::result::TimedResult::jobs).
    pub job: usize,
    pub operation: RequestOperation,
    pub offset_bytes: u64,
    pub bytes: u32,
    /// Submission time since the start of the run.
    pub submitted_at: Nanos,
    pub latency_ns: Nanos,
    /// Part of the latency spent waiting for garbage collection.
    pub waited_ns: Nanos,
}

impl RequestLog {
    /// Maximum requests in the log.
    pub const REQUESTS: usize = 20_000;

    pub(super) fn record(&mut self, request: TimedRequest) {
        let completes_at = request.submitted_at + request.latency_ns;
        self.latencies.record(completes_at, request.operation, request.latency_ns);
        self.requests.push(request, Self::REQUESTS);
    }
}
