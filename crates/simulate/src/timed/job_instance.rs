//! Lane: one instance of a job, or another workload, that selects requests and their submission
//! times.
//!
//! ```text
//! iodepth alone      a request after each completion (closed loop)
//! rate, rate_iops    a request when due, at most iodepth in flight, with catch-up (equal
//!                    steps, or random with rate_process=poisson)
//! thinktime          after thinktime_blocks requests or thinktime_iotime: drain, then pause
//! latency_target     the depth that the search of `depth_search` selects
//! flow               a request while the lane is within its share of the requests of its flow_id
//! paced workload     the submissions of its host, which receives completions
//! replayed trace     a request at its recorded time, at most the queue depth in flight
//! ```
//!
//! A lane does not access the device. It only measures the time that requests are in flight.

use std::ops::Range;

use ssd::{CompletionTime, Nanos, PageLocation};
use workload::fio::{Arrivals, ExitScope, JobStream, PlannedStream, total};
use workload::trace::TimedSource;
use workload::{IoRequest, NextCall, RequestOperation, RequestSource, TaggedRequest, WorkloadError};

use super::depth_search::{DepthSearch, DepthStep};
use super::fio_log::FioLog;
use super::latency::LatencySum;
use super::replay::{Replay, TracePace};
use super::request_source::InstanceSource;
use crate::policy::PolicyPlacer;
use experiment::error::LabError;

const SECOND_NS: u128 = 1_000_000_000;
/// Requests that a stream produces per batch.
const RUN_LENGTH: usize = 64;

#[derive(Clone, Copy, Debug)]
enum OpenLoopRate {
    BytesPerSecond(u128),
    RequestsPerSecond(u128),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAction {
    Submit,
    /// Call again at this time.
    Wait(Nanos),
    /// Call again when a request completes.
    Drain,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FlowShare {
    pub(super) id: u64,
    pub(super) weight: u64,
    /// Requests counted for the flow.
    pub(super) requests: u64,
}

/// An instance of a job, or another workload.
pub(super) struct JobInstance {
    /// Index of the job. For another workload, that of its first stream.
    pub(super) job: usize,
    pub(super) group: u16,
    /// Maximum requests in flight.
    pub(super) depth: u64,
    pub(super) in_flight: u64,
    pub(super) flow: Option<FlowShare>,
    /// Lanes that must end before this one begins. `ends_others`: lanes that end with this one.
    pub(super) waits_for: Option<Range<u16>>,
    pub(super) ends_others: Option<ExitScope>,
    pub(super) begun: bool,
    pub(super) search: Option<DepthSearch>,
    /// Log in fio's format.
    pub(super) log: Option<Box<FioLog>>,
    requests: InstanceSource,
    /// Due times of the requests of a trace.
    pub(super) replay: Option<Box<Replay>>,
    /// The workload decides itself when to submit.
    pub(super) is_paced: bool,
    /// Fast path: a closed loop without log. Only depth and end control its submissions.
    pub(super) is_fast_path: bool,
    /// Placement policy that overrides the workload.
    pub(super) placer: Option<PolicyPlacer>,
    /// Requests produced. `taken`: number of submitted ones.
    ready: Vec<IoRequest>,
    taken: usize,
    /// Page locations of `ready` ([`JobInstance::locate`]). `located_after`: number of the last
    /// change before.
    locations: Vec<Option<PageLocation>>,
    located_after: u64,
    /// Requests after `ready`.
    later: Vec<IoRequest>,
    rate: Option<OpenLoopRate>,
    /// Poisson arrivals: gap generator, and due time of the next request since the lane began.
    arrivals: Option<(Arrivals, Nanos)>,
    rate_ignores_thinktime: bool,
    thinktime_ns: Nanos,
    thinktime_blocks: Option<u64>,
    /// `thinktime_iotime`. `iotime_from`: its start.
    thinktime_iotime_ns: Option<Nanos>,
    iotime_from: Nanos,
    delay_ns: Nanos,
    ramp_ns: Nanos,
    /// Run time after the ramp.
    runtime_ns: Option<Nanos>,
    begins_at: Nanos,
    /// Requests submitted earlier are not measured.
    pub(super) measured_from: Nanos,
    ends_at: Nanos,
    /// Requests submitted by an open loop.
    submitted: u64,
    submitted_bytes: u64,
    since_pause: u64,
    /// A pause begins after the last request in flight.
    pausing: bool,
    paused_until: Nanos,
    paused_ns: Nanos,
    /// Time of the next scheduled call.
    pub(super) wake_at: Option<Nanos>,
    pub(super) ended: bool,
    /// Cause of an early end.
    pub(super) error: Option<WorkloadError>,
    pub(super) tally: LittleLawCheck,
}

/// Submissions, completions and latencies of requests, to check Little's law.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LittleLawCheck {
    /// Sums of submission and completion times, modulo 2^64. Their difference is the time integral
    /// of the requests in flight.
    submitted_ns: u64,
    completed_ns: u64,
    pub(super) requests: u64,
    pub(super) latency_ns: u128,
    pub(super) longest_ns: Nanos,
    pub(super) last_completion: Nanos,
}

impl LittleLawCheck {
    /// Counts submitted requests and their completion times.
    #[inline]
    pub(super) fn submitted(&mut self, latencies: LatencySum, completions: impl Iterator<Item = Nanos>) {
        let completed_ns = completions.fold(0, u64::wrapping_add);
        let submitted_ns = completed_ns.wrapping_sub(latencies.sum_ns as u64);
        self.submitted_ns = self.submitted_ns.wrapping_add(submitted_ns);
        self.requests += latencies.count;
        self.latency_ns += latencies.sum_ns;
        self.longest_ns = self.longest_ns.max(latencies.max_ns);
    }

    #[inline]
    pub(super) fn completed(&mut self, now: Nanos) {
        self.completed_ns = self.completed_ns.wrapping_add(now);
        self.last_completion = now;
    }
}

impl JobInstance {
    /// `limit_ns`: longest run time, also if the job asks for more.
    pub(super) fn new(planned: PlannedStream<'_>, job_index: usize, limit_ns: Option<Nanos>) -> JobInstance {
        let job = planned.job;
        let runtime_ns = (job.runtime_us > 0).then(|| job.runtime_us * 1000);
        let rate = total(&job.rate, &planned.full).map(|rate| OpenLoopRate::BytesPerSecond((rate as u128).max(1)));
        let rate =
            rate.or(
                total(&job.rate_iops, &planned.full).map(|rate| OpenLoopRate::RequestsPerSecond((rate as u128).max(1)))
            );
        let goal = job.latency_goal;
        let search = (goal.target_us > 0).then(|| DepthSearch::new(goal, job.iodepth));
        let delay_ns = planned.plan.delay_us * 1000;
        let arrivals = job.poisson.then(|| (Arrivals::new(&planned.plan), 0));
        let requests = InstanceSource::Job(Box::new(JobStream::new(planned.plan, planned.summary.stream)));
        JobInstance {
            job: job_index,
            group: planned.summary.group,
            flow: job.flow.map(|weight| FlowShare { id: job.flow_id, weight, requests: 0 }),
            rate,
            arrivals,
            rate_ignores_thinktime: job.rate_ignore_thinktime,
            thinktime_ns: job.thinktime_us * 1000,
            thinktime_blocks: job.requests_between_pauses(),
            thinktime_iotime_ns: (job.thinktime_iotime_us > 0).then(|| job.thinktime_iotime_us * 1000),
            delay_ns,
            ramp_ns: job.ramp_time_us * 1000,
            waits_for: planned.waits_for,
            ends_others: planned.ends_others,
            depth: search.as_ref().map_or(job.iodepth, |search| search.depth),
            search,
            ..JobInstance::closed_loop(requests, job.iodepth, runtime_ns.into_iter().chain(limit_ns).min())
        }
    }

    /// A lane for a workload without job file. Keeps `depth` requests in flight, or those of its
    /// host, for at most `limit_ns`.
    pub(super) fn from_source(mut source: Box<dyn RequestSource>, depth: u64, limit_ns: Option<Nanos>) -> JobInstance {
        let own_depth = source.paced().map(|host| host.depth());
        JobInstance {
            is_paced: own_depth.is_some(),
            ..JobInstance::closed_loop(InstanceSource::Source(source), own_depth.unwrap_or(depth), limit_ns)
        }
    }

    /// An open loop that submits the requests of a trace at the recorded times, `speed` times as
    /// fast, with at most `depth` in flight.
    pub(super) fn from_trace(source: Box<dyn TimedSource>, speed: f64, depth: u64, limit_ns: Option<Nanos>) -> Self {
        JobInstance {
            replay: Some(Box::new(Replay::new(speed))),
            ..JobInstance::closed_loop(InstanceSource::Trace(source), depth, limit_ns)
        }
    }

    fn closed_loop(requests: InstanceSource, depth: u64, limit_ns: Option<Nanos>) -> JobInstance {
        JobInstance {
            job: 0,
            group: 0,
            depth,
            in_flight: 0,
            flow: None,
            waits_for: None,
            ends_others: None,
            begun: false,
            search: None,
            log: None,
            requests,
            replay: None,
            is_paced: false,
            is_fast_path: false,
            placer: None,
            ready: Vec::new(),
            taken: 0,
            locations: Vec::new(),
            located_after: 0,
            later: Vec::new(),
            rate: None,
            arrivals: None,
            rate_ignores_thinktime: false,
            thinktime_ns: 0,
            thinktime_blocks: None,
            thinktime_iotime_ns: None,
            iotime_from: 0,
            delay_ns: 0,
            ramp_ns: 0,
            runtime_ns: limit_ns,
            begins_at: 0,
            measured_from: 0,
            ends_at: 0,
            submitted: 0,
            submitted_bytes: 0,
            since_pause: 0,
            pausing: false,
            paused_until: 0,
            paused_ns: 0,
            wake_at: None,
            ended: false,
            error: None,
            tally: LittleLawCheck::default(),
        }
    }

    /// Returns the workload. `None` for a job.
    pub(super) fn source(&self) -> Option<&dyn RequestSource> {
        match &self.requests {
            InstanceSource::Job(_) => None,
            InstanceSource::Source(source) => Some(&**source),
            InstanceSource::Trace(source) => Some(&**source),
        }
    }

    pub(super) fn trace_pace(&self) -> TracePace {
        match (&self.requests, &self.replay) {
            (InstanceSource::Trace(source), Some(replay)) => {
                let names = source.names(Replay::NAMES);
                TracePace::Recorded(Box::new(replay.result(self.depth, &names)))
            }
            _ => TracePace::ClosedLoop { queue_depth: self.depth },
        }
    }

    /// Index of the job that counts a request of this lane.
    #[inline]
    pub(super) fn job_of(&self, request: &IoRequest) -> usize {
        match &self.requests {
            InstanceSource::Job(_) => self.job,
            InstanceSource::Source(_) | InstanceSource::Trace(_) => usize::from(request.stream),
        }
    }

    /// Returns true if the lane ends by itself.
    pub(super) fn is_finite(&self) -> bool {
        self.runtime_ns.is_some() || !self.requests.is_endless()
    }

    /// Returns true if completions alone trigger submissions, so the lane stays at its depth.
    pub(super) fn is_closed_loop(&self) -> bool {
        let is_open = self.rate.is_some() || self.replay.is_some();
        !is_open && self.thinktime_ns == 0 && self.flow.is_none() && !self.is_paced && self.search.is_none()
    }

    /// Begins with the group, or after the awaited lanes. Returns the time of the first call.
    pub(super) fn begin(&mut self, now: Nanos) -> Nanos {
        assert!(!self.begun, "a lane begins once");
        self.begun = true;
        self.is_fast_path = self.is_closed_loop() && self.log.is_none();
        self.begins_at = now + self.delay_ns;
        self.measured_from = self.begins_at + self.ramp_ns;
        let runtime = |length: Nanos| self.measured_from.saturating_add(length);
        self.ends_at = self.runtime_ns.map_or(Nanos::MAX, runtime);
        self.tally.last_completion = self.measured_from;
        self.iotime_from = self.begins_at;
        if let Some(search) = &mut self.search {
            search.begin(self.measured_from);
        }
        self.begins_at
    }

    /// Stops submission.
    pub(super) fn terminate(&mut self, now: Nanos) {
        self.ends_at = self.ends_at.min(now);
    }

    /// Completed share of the requests or of the time while `group` runs, 0 to 1.
    pub(super) fn share_done(&self, now: Nanos, group: u16) -> f64 {
        if self.ended || self.group != group {
            return f64::from(u8::from(self.group <= group));
        }
        if !self.begun {
            return 0.0;
        }
        let time = match self.runtime_ns {
            Some(length) => now.saturating_sub(self.measured_from) as f64 / length as f64,
            None => 0.0,
        };
        let requests = self.requests.share_done().unwrap_or(0.0);
        time.max(requests).min(1.0)
    }

    /// Next action of a lane below its depth. `look_ahead` receives the current batch of requests
    /// and the following one, which it receives again as current.
    #[inline]
    pub(super) fn demand(&mut self, now: Nanos, look_ahead: impl Fn(&[IoRequest], &[IoRequest])) -> NextAction {
        if now >= self.ends_at || !self.has_request(look_ahead) {
            return NextAction::End;
        }
        if self.is_fast_path {
            return NextAction::Submit;
        }
        self.demand_otherwise(now)
    }

    /// Operation that a fast-path lane submits next, if a completion now has no other effect.
    #[inline(always)]
    pub(super) fn next_fast_operation(&self, now: Nanos) -> Option<RequestOperation> {
        let next = self.ready.get(self.taken)?;
        let goes_on = self.is_fast_path && self.in_flight == self.depth && now < self.ends_at;
        goes_on.then_some(next.operation)
    }

    /// Next action of a lane outside the fast path that has a request.
    fn demand_otherwise(&mut self, now: Nanos) -> NextAction {
        if self.search.as_ref().is_some_and(|search| search.draining) {
            return NextAction::Drain;
        }
        if self.thinktime_ns > 0 {
            let iotime_is_over = |length: Nanos| now >= self.iotime_from.saturating_add(length);
            self.pausing |= self.thinktime_iotime_ns.is_some_and(iotime_is_over);
            if self.pausing {
                if self.in_flight > 0 {
                    return NextAction::Drain;
                }
                self.pausing = false;
                self.since_pause = 0;
                self.paused_until = now + self.thinktime_ns;
                self.iotime_from = self.paused_until;
                self.paused_ns += self.thinktime_ns;
            }
            if now < self.paused_until {
                return NextAction::Wait(self.paused_until.min(self.ends_at));
            }
        }
        let due = match (&self.replay, self.rate) {
            (Some(replay), _) => self.begins_at.saturating_add(replay.due_ns(self.taken)),
            (None, Some(rate)) => self.due(rate),
            (None, None) => return NextAction::Submit,
        };
        if due <= now { NextAction::Submit } else { NextAction::Wait(due.min(self.ends_at)) }
    }

    /// Collects the submissions of a paced workload. Returns the time of the next call.
    pub(super) fn poll_host(&mut self, now: Nanos, requests: &mut Vec<TaggedRequest>) -> NextCall {
        if now >= self.ends_at {
            return NextCall::Never;
        }
        let next = loop {
            match self.requests.paced().poll_requests(now - self.begins_at, requests) {
                Ok(next) => break next,
                // The workload has ended. Its next call reports when the last request completes.
                Err(error) => self.error = Some(error),
            }
        };
        let placed = requests.iter_mut().map(|tagged| std::slice::from_mut(&mut tagged.request));
        if let Some(placer) = &self.placer
            && let Err(error) = placed.into_iter().try_for_each(|request| placer.place(request))
        {
            self.error = Some(error);
            self.ends_at = now;
            requests.clear();
            return NextCall::Never;
        }
        match next {
            NextCall::At(at) => NextCall::At(self.begins_at.saturating_add(at).min(self.ends_at)),
            other => other,
        }
    }

    #[inline]
    pub(super) fn completed(&mut self, tag: u16) {
        self.in_flight -= 1;
        if self.is_paced {
            self.requests.paced().complete_request(tag);
        }
    }

    /// Handles the submission of a measured request.
    #[inline]
    pub(super) fn in_flight_until(&mut self, now: Nanos, done: CompletionTime, request: &IoRequest) {
        let latency_ns = done.at - now;
        if let Some(search) = &mut self.search {
            search.submitted(done.at, latency_ns);
        }
        if let Some(log) = &mut self.log {
            log.submitted(done.at - self.measured_from, latency_ns, request);
        }
        if let Some(replay) = &mut self.replay {
            replay.submitted(self.taken - 1, now - self.begins_at, latency_ns, done, request);
        }
    }

    /// Writes the completions up to now to the logs.
    #[inline]
    pub(super) fn write_log(&mut self, now: Nanos) -> Result<(), LabError> {
        match &mut self.log {
            None => Ok(()),
            Some(log) => log.write_until(now.saturating_sub(self.measured_from)),
        }
    }

    /// Updates the depth search after a counted completion. Returns true if measurement restarts.
    pub(super) fn search_on(&mut self, now: Nanos, name: &str) -> bool {
        let search = self.search.as_mut().expect("it searches a depth");
        let step = search.completed(now);
        let target_us = search.goal.target_us;
        self.depth = search.depth;
        match step {
            DepthStep::Continue => return false,
            DepthStep::Measure => {
                assert_eq!(self.in_flight, 0, "measurement begins with nothing in flight");
                self.measured_from = now;
                if let Some(log) = &mut self.log {
                    log.restart();
                }
                self.tally = LittleLawCheck { last_completion: now, ..LittleLawCheck::default() };
                return true;
            }
            DepthStep::Done => {}
            DepthStep::Failed(latency_ns) => {
                let setting = format!("latency_target={target_us}us of [{name}]");
                let problem = format!(
                    "a request took {:.1} us with no other in flight, where fio gives up too. Allow more, or a \
                     share of late requests with latency_percentile",
                    latency_ns as f64 / 1e3
                );
                self.error = Some(WorkloadError::at(setting, problem));
            }
        }
        self.terminate(now);
        false
    }

    /// Returns true if the depth search has ended.
    pub(super) fn has_found(&self) -> bool {
        self.search.as_ref().is_some_and(|search| search.found)
    }

    /// Due time of the next request of an open loop.
    fn due(&self, rate: OpenLoopRate) -> Nanos {
        let elapsed = match (rate, &self.arrivals) {
            (_, Some((_, due))) => u128::from(*due),
            (OpenLoopRate::BytesPerSecond(rate), None) => u128::from(self.submitted_bytes) * SECOND_NS / rate,
            (OpenLoopRate::RequestsPerSecond(rate), None) => u128::from(self.submitted) * SECOND_NS / rate,
        };
        let missed = if self.rate_ignores_thinktime { self.paused_ns } else { 0 };
        let elapsed = Nanos::try_from(elapsed).unwrap_or(Nanos::MAX);
        elapsed.saturating_add(self.begins_at + missed)
    }

    #[inline]
    fn has_request(&mut self, look_ahead: impl Fn(&[IoRequest], &[IoRequest])) -> bool {
        if self.taken == self.ready.len() {
            self.refill(look_ahead);
        }
        self.taken < self.ready.len()
    }

    #[inline(never)]
    fn refill(&mut self, look_ahead: impl Fn(&[IoRequest], &[IoRequest])) {
        if self.later.is_empty() {
            self.fill_later();
            look_ahead(&[], &self.later);
        }
        std::mem::swap(&mut self.ready, &mut self.later);
        if let Some(replay) = &mut self.replay {
            replay.swap();
        }
        self.taken = 0;
        // Only writes benefit from an earlier lookup. Reads that are prefetched so early take
        // longer.
        let changes = |request: &IoRequest| request.operation != RequestOperation::Read;
        if !self.requests.tells_what_it_did() && self.ready.iter().any(changes) {
            self.fill_later();
        } else {
            self.later.clear();
        }
        look_ahead(&self.ready, &self.later);
    }

    /// Produces the requests after `ready`. None at the end or after an error.
    fn fill_later(&mut self) {
        self.later.clear();
        if self.error.is_none()
            && let Err(error) = self.fill()
        {
            self.later.clear();
            self.error = Some(error);
        }
    }

    fn fill(&mut self) -> Result<(), WorkloadError> {
        match (&mut self.requests, &mut self.replay) {
            (InstanceSource::Trace(source), Some(replay)) => {
                source.next_timed_batch(&mut self.later, &mut replay.later, RUN_LENGTH)?;
                assert_eq!(
                    self.later.len(),
                    replay.later.len(),
                    "a trace gives another number of times than of requests"
                );
            }
            (requests, _) => requests.fill(&mut self.later, RUN_LENGTH)?,
        }
        match &self.placer {
            Some(placer) => placer.place(&mut self.later),
            None => Ok(()),
        }
    }

    /// Takes the next request for submission.
    #[inline]
    pub(super) fn take_request(&mut self) -> IoRequest {
        let request = self.ready[self.taken];
        self.taken += 1;
        if !self.is_fast_path {
            self.count_taken(request.bytes);
        }
        request
    }

    /// Returns true if no request of `ready` was submitted.
    #[inline]
    pub(super) fn begins_run(&self) -> bool {
        self.taken == 0
    }

    /// Looks up the pages to read, if no change occurred since the previous batch. Otherwise writes
    /// would invalidate the lookup. `change` is the number of the last change.
    pub(super) fn locate(&mut self, change: u64, locate: impl Fn(&IoRequest) -> Option<PageLocation>) {
        self.locations.clear();
        if self.located_after == change {
            self.locations.extend(self.ready.iter().map(locate));
        }
        self.located_after = change;
    }

    /// Location of the page of a ready request, if known and still valid.
    #[inline]
    pub(super) fn location(&self, index: usize, change: u64) -> Option<&PageLocation> {
        let location = self.locations.get(index)?.as_ref();
        location.filter(|_| self.located_after == change)
    }

    /// Index of the next request of a fast-path lane, which counts as submitted.
    /// [`JobInstance::request_at`] returns the request until the next batch.
    #[inline]
    pub(super) fn take_request_index(&mut self) -> usize {
        assert!(self.is_fast_path, "requests of a lane on the fast path are not counted");
        self.taken += 1;
        self.taken - 1
    }

    /// A submitted request of `ready`.
    #[inline]
    pub(super) fn request_at(&self, index: usize) -> &IoRequest {
        &self.ready[index]
    }

    /// Counts the submission of a request outside the fast path.
    fn count_taken(&mut self, bytes: u32) {
        if let Some(rate) = self.rate {
            self.count(rate, bytes);
        }
        if self.thinktime_ns > 0 {
            self.since_pause += 1;
            if Some(self.since_pause) == self.thinktime_blocks {
                self.since_pause = 0;
                self.pausing = true;
            }
        }
    }

    /// Counts the submission of a request of an open loop.
    fn count(&mut self, rate: OpenLoopRate, bytes: u32) {
        self.submitted += 1;
        self.submitted_bytes += u64::from(bytes);
        if let Some((arrivals, due)) = &mut self.arrivals {
            let per_second = match rate {
                OpenLoopRate::BytesPerSecond(rate) => rate as f64 / f64::from(bytes),
                OpenLoopRate::RequestsPerSecond(rate) => rate as f64,
            };
            *due = due.saturating_add(arrivals.next_gap_ns(SECOND_NS as f64 / per_second));
        }
    }

    /// Checks Little's law: mean requests in flight = throughput x mean latency. A closed loop must
    /// also stay at its depth, except for one latency at start and end.
    ///
    /// # Panics
    /// The law does not hold, which means an accounting error of the run.
    pub(super) fn check(&self, name: &str) {
        let tally = &self.tally;
        let elapsed_ns = u128::from(tally.last_completion.saturating_sub(self.measured_from));
        let in_flight_ns = tally.latency_ns;
        assert_eq!(
            tally.completed_ns.wrapping_sub(tally.submitted_ns),
            in_flight_ns as u64,
            "Little's law does not hold for job {name}: requests in flight, summed over {elapsed_ns} ns, are not {} requests \
             times their mean latency",
            tally.requests
        );
        if !self.is_closed_loop() || tally.requests == 0 {
            return;
        }
        let depth = u128::from(self.depth);
        let most = depth * elapsed_ns;
        let least = depth * elapsed_ns.saturating_sub(2 * u128::from(tally.longest_ns));
        assert!(
            (least..=most).contains(&in_flight_ns),
            "Little's law does not hold for job {name}: a closed loop of {depth} requests had {} in flight on average over \
             {elapsed_ns} ns",
            in_flight_ns as f64 / elapsed_ns as f64
        );
    }
}
