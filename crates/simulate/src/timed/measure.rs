//! Measurements of the jobs of a timed run, in memory that does not depend on its length.

use ssd::{Nanos, Ring};
use workload::Operation;
use workload::fio::LatencyGoal;

use super::latency::{Counts, Latencies, Waits};
use super::series::LatencySeries;

/// Bytes of what is measured of a job, at most: a histogram for each direction.
pub(super) const fn job_bytes_max() -> u64 {
    (3 * (Counts::BYTES_MAX + size_of::<Direction>()) + size_of::<JobResult>()) as u64
}

/// What a job did in one direction.
#[derive(Clone, Debug, Default)]
pub struct Direction {
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
        assert_eq!(self.requests, self.latencies.count(), "each request has a latency");
        assert!(
            self.waits.requests <= self.requests,
            "more requests waited than there were"
        );
    }
}

/// What one job did: all instances of a section of the job file.
#[derive(Clone, Debug)]
pub struct JobResult {
    /// Name of the section.
    pub name: String,
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
