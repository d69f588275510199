//! One instance of a job, or a workload of another kind, as a host that keeps requests in flight: which request is next, and when it may be submitted.
//!
//! ```text
//! iodepth alone      a request as soon as another one completes (closed loop)
//! rate, rate_iops    a request when it is due (in equal steps, or at random with rate_process=poisson), with at most iodepth in flight; what could not be submitted is caught up
//! thinktime          after thinktime_blocks requests or thinktime_iotime: all in flight complete, then the pause
//! latency_target     as many in flight as the search of `depth_search` says
//! flow               a request while the lane is not ahead of its share of all requests of its flow_id
//! paced workload     whatever its host submits, which is told what is complete
//! replayed trace     a request when it is due by the trace's own times, with at most the queue depth in flight
//! ```
//!
//! It does not touch the device and measures nothing but the time that requests are in flight.

use std::ops::Range;

use ssd::{Completion, Location, Nanos};
use workload::fio::{Arrivals, ExitWhat, JobStream, PlannedStream, total};
use workload::trace::TimedSource;
use workload::{Next, Operation, Request, Source, TaggedRequest, WorkloadError};

use super::depth_search::{DepthSearch, Step};
use super::fio_log::FioLog;
use super::latency::Together;
use super::replay::{Replay, TracePace};
use super::request_source::RequestSource;
use crate::policy::Placer;
use experiment::error::LabError;

const SECOND_NS: u128 = 1_000_000_000;
/// Requests that a stream produces at once.
const RUN_LENGTH: usize = 64;

/// How fast an open loop goes.
#[derive(Clone, Copy, Debug)]
enum Rate {
    BytesPerSecond(u128),
    RequestsPerSecond(u128),
}

/// What a lane wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// To submit a request now.
    Submit,
    /// To be asked again then.
    Wait(Nanos),
    /// To be asked again when one of its requests completes.
    Drain,
    /// Nothing any more.
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FlowShare {
    pub(super) id: u64,
    pub(super) weight: u64,
    /// Requests counted for it.
    pub(super) requests: u64,
}

/// An instance of a job, or a workload of another kind.
pub(super) struct Lane {
    /// Index of its job; of another kind of workload the first: its streams are jobs.
    pub(super) job: usize,
    /// Number of its group.
    pub(super) group: u16,
    /// Requests in flight at most.
    pub(super) depth: u64,
    pub(super) in_flight: u64,
    pub(super) flow: Option<FlowShare>,
    /// Lanes that must have ended before it begins, and what ends when it ends.
    pub(super) waits_for: Option<Range<u16>>,
    pub(super) ends_others: Option<ExitWhat>,
    pub(super) begun: bool,
    /// Finds the depth.
    search: Option<DepthSearch>,
    /// Writes what it does in fio's format.
    pub(super) log: Option<Box<FioLog>>,
    requests: RequestSource,
    /// When its requests are due, if they come at the times of a trace.
    replay: Option<Box<Replay>>,
    /// Its workload decides itself when to submit.
    pub(super) is_paced: bool,
    /// It is a closed loop and writes no log: nothing but its depth and its end says when it submits.
    pub(super) is_plain: bool,
    /// Says where writes go, instead of the workload.
    pub(super) placer: Option<Placer>,
    /// Requests produced, and how many of them were submitted.
    ready: Vec<Request>,
    taken: usize,
    /// Where the pages of those are that were located ([`Lane::locate`]), and the number of the last change before that.
    locations: Vec<Option<Location>>,
    located_after: u64,
    /// Those that come after them.
    later: Vec<Request>,
    rate: Option<Rate>,
    /// With Poisson arrivals: the gaps between requests, and when since its beginning the next one is due.
    arrivals: Option<(Arrivals, Nanos)>,
    rate_ignores_thinktime: bool,
    thinktime_ns: Nanos,
    thinktime_blocks: Option<u64>,
    /// `thinktime_iotime`, and since when it runs.
    thinktime_iotime_ns: Option<Nanos>,
    iotime_from: Nanos,
    delay_ns: Nanos,
    ramp_ns: Nanos,
    /// How long it runs after its ramp.
    runtime_ns: Option<Nanos>,
    begins_at: Nanos,
    /// Requests submitted before are not measured.
    pub(super) measured_from: Nanos,
    ends_at: Nanos,
    /// What an open loop has submitted.
    submitted: u64,
    submitted_bytes: u64,
    since_pause: u64,
    /// A pause begins when nothing is in flight any more.
    pausing: bool,
    paused_until: Nanos,
    paused_ns: Nanos,
    /// When it is asked again anyway.
    pub(super) wake_at: Option<Nanos>,
    pub(super) ended: bool,
    /// Why it ended early.
    pub(super) error: Option<WorkloadError>,
    pub(super) tally: Tally,
}

/// When requests came and went, and how long the device said that they would take; what Little's law is checked with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Sums of the times of submission and completion, modulo 2^64: what is between is the sum over time of what was in flight.
    submitted_ns: u64,
    completed_ns: u64,
    pub(super) requests: u64,
    pub(super) latency_ns: u128,
    pub(super) longest_ns: Nanos,
    pub(super) last_completion: Nanos,
}

impl Tally {
    /// Requests were submitted that complete at these times.
    #[inline]
    pub(super) fn submitted(&mut self, latencies: Together, completions: impl Iterator<Item = Nanos>) {
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

impl Lane {
    /// `limit_ns`: longest time that it may run, whatever its job says.
    pub(super) fn new(planned: PlannedStream<'_>, job_index: usize, limit_ns: Option<Nanos>) -> Lane {
        let job = planned.job;
        let runtime_ns = (job.runtime_us > 0).then(|| job.runtime_us * 1000);
        let rate = total(&job.rate, &planned.full).map(|rate| Rate::BytesPerSecond((rate as u128).max(1)));
        let rate =
            rate.or(total(&job.rate_iops, &planned.full).map(|rate| Rate::RequestsPerSecond((rate as u128).max(1))));
        let goal = job.latency_goal;
        let search = (goal.target_us > 0).then(|| DepthSearch::new(goal, job.iodepth));
        let delay_ns = planned.plan.delay_us * 1000;
        let arrivals = job.poisson.then(|| (Arrivals::new(&planned.plan), 0));
        let requests = RequestSource::Job(Box::new(JobStream::new(planned.plan, planned.summary.stream)));
        Lane {
            job: job_index,
            group: planned.summary.group,
            flow: job.flow.map(|weight| FlowShare {
                id: job.flow_id,
                weight,
                requests: 0,
            }),
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
            depth: search.as_ref().map_or(job.iodepth, DepthSearch::depth),
            search,
            ..Lane::closed_loop(requests, job.iodepth, runtime_ns.into_iter().chain(limit_ns).min())
        }
    }

    /// A closed loop that keeps `depth` requests of a workload in flight, or what its own host submits, for at most `limit_ns`.
    pub(super) fn of_source(mut source: Box<dyn Source>, depth: u64, limit_ns: Option<Nanos>) -> Lane {
        let own_depth = source.paced().map(|host| host.depth());
        Lane {
            is_paced: own_depth.is_some(),
            ..Lane::closed_loop(RequestSource::Source(source), own_depth.unwrap_or(depth), limit_ns)
        }
    }

    /// An open loop that submits the requests of a trace at the recorded times, so many times as fast, with at most `depth` in flight.
    pub(super) fn of_trace(source: Box<dyn TimedSource>, speed: f64, depth: u64, limit_ns: Option<Nanos>) -> Lane {
        Lane {
            replay: Some(Box::new(Replay::new(speed))),
            ..Lane::closed_loop(RequestSource::Trace(source), depth, limit_ns)
        }
    }

    fn closed_loop(requests: RequestSource, depth: u64, limit_ns: Option<Nanos>) -> Lane {
        Lane {
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
            is_plain: false,
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
            tally: Tally::default(),
        }
    }

    /// The workload, if it is not a job.
    pub(super) fn source(&self) -> Option<&dyn Source> {
        match &self.requests {
            RequestSource::Job(_) => None,
            RequestSource::Source(source) => Some(&**source),
            RequestSource::Trace(source) => Some(&**source),
        }
    }

    /// Whether its requests come at the times of a trace.
    pub(super) fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// How the requests of a trace came.
    pub(super) fn trace_pace(&self) -> TracePace {
        match (&self.requests, &self.replay) {
            (RequestSource::Trace(source), Some(replay)) => {
                let names = source.names(Replay::NAMES);
                TracePace::Recorded(Box::new(replay.result(self.depth, &names)))
            }
            _ => TracePace::ClosedLoop {
                queue_depth: self.depth,
            },
        }
    }

    /// Index of the job that a request of it counts for.
    #[inline]
    pub(super) fn job_of(&self, request: &Request) -> usize {
        match &self.requests {
            RequestSource::Job(_) => self.job,
            RequestSource::Source(_) | RequestSource::Trace(_) => usize::from(request.stream),
        }
    }

    /// Whether it ends by itself, however long that takes.
    pub(super) fn ends(&self) -> bool {
        self.runtime_ns.is_some() || !self.requests.is_endless()
    }

    /// Whether a request follows another at once, so that as many as possible are in flight all the time.
    pub(super) fn is_closed_loop(&self) -> bool {
        let is_open = self.rate.is_some() || self.replay.is_some();
        !is_open && self.thinktime_ns == 0 && self.flow.is_none() && !self.is_paced && self.search.is_none()
    }

    /// It starts with its group, or when what it waits for has ended; returns when it wants to be asked.
    pub(super) fn begin(&mut self, now: Nanos) -> Nanos {
        assert!(!self.begun, "a lane begins once");
        self.begun = true;
        self.is_plain = self.is_closed_loop() && self.log.is_none();
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

    /// It submits nothing from now on.
    pub(super) fn terminate(&mut self, now: Nanos) {
        self.ends_at = self.ends_at.min(now);
    }

    /// Share of its requests, or of its time, that is over while `group` runs, 0 to 1.
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

    /// What it wants, having fewer requests in flight than it may have. `look_ahead` is shown the requests that come now, some dozens,
    /// and those after them, which it is shown again when they come.
    #[inline]
    pub(super) fn demand(&mut self, now: Nanos, look_ahead: impl Fn(&[Request], &[Request])) -> Demand {
        if now >= self.ends_at || !self.has_request(look_ahead) {
            return Demand::End;
        }
        if self.is_plain {
            return Demand::Submit;
        }
        self.demand_otherwise(now)
    }

    /// What it submits when one of its requests completes now, if it is plain, that is ready, and nothing else happens.
    #[inline(always)]
    pub(super) fn goes_on_with(&self, now: Nanos) -> Option<Operation> {
        let next = self.ready.get(self.taken)?;
        let goes_on = self.is_plain && self.in_flight == self.depth && now < self.ends_at;
        goes_on.then_some(next.operation)
    }

    /// What it wants that is not plain, having something to submit.
    fn demand_otherwise(&mut self, now: Nanos) -> Demand {
        if self.search.as_ref().is_some_and(DepthSearch::is_draining) {
            return Demand::Drain;
        }
        if self.thinktime_ns > 0 {
            let iotime_is_over = |length: Nanos| now >= self.iotime_from.saturating_add(length);
            self.pausing |= self.thinktime_iotime_ns.is_some_and(iotime_is_over);
            if self.pausing {
                if self.in_flight > 0 {
                    return Demand::Drain;
                }
                self.pausing = false;
                self.since_pause = 0;
                self.paused_until = now + self.thinktime_ns;
                self.iotime_from = self.paused_until;
                self.paused_ns += self.thinktime_ns;
            }
            if now < self.paused_until {
                return Demand::Wait(self.paused_until.min(self.ends_at));
            }
        }
        let due = match (&self.replay, self.rate) {
            (Some(replay), _) => self.begins_at.saturating_add(replay.due_ns(self.taken)),
            (None, Some(rate)) => self.due(rate),
            (None, None) => return Demand::Submit,
        };
        if due <= now {
            Demand::Submit
        } else {
            Demand::Wait(due.min(self.ends_at))
        }
    }

    /// What a workload with a pace of its own submits now, and when to ask again.
    pub(super) fn act(&mut self, now: Nanos, requests: &mut Vec<TaggedRequest>) -> Next {
        if now >= self.ends_at {
            return Next::Never;
        }
        let next = loop {
            match self.requests.paced().act(now - self.begins_at, requests) {
                Ok(next) => break next,
                // It has ended; asked again it says when nothing is in flight any more.
                Err(error) => self.error = Some(error),
            }
        };
        let placed = requests
            .iter_mut()
            .map(|tagged| std::slice::from_mut(&mut tagged.request));
        if let Some(placer) = &self.placer
            && let Err(error) = placed.into_iter().try_for_each(|request| placer.place(request))
        {
            self.error = Some(error);
            self.ends_at = now;
            requests.clear();
            return Next::Never;
        }
        match next {
            Next::At(at) => Next::At(self.begins_at.saturating_add(at).min(self.ends_at)),
            other => other,
        }
    }

    /// A request is complete.
    #[inline]
    pub(super) fn completed(&mut self, tag: u16) {
        self.in_flight -= 1;
        if self.is_paced {
            self.requests.paced().completed(tag);
        }
    }

    /// A request was submitted now that is measured.
    #[inline]
    pub(super) fn in_flight_until(&mut self, now: Nanos, done: Completion, request: &Request) {
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

    /// Writes to its logs what is complete by now.
    #[inline]
    pub(super) fn write_log(&mut self, now: Nanos) -> Result<(), LabError> {
        match &mut self.log {
            None => Ok(()),
            Some(log) => log.write_until(now.saturating_sub(self.measured_from)),
        }
    }

    /// Whether it searches a depth.
    #[inline]
    pub(super) fn searches(&self) -> bool {
        self.search.is_some()
    }

    /// What follows for the depth that it searches from a completion, which was counted; true if its measurement begins anew.
    pub(super) fn search_on(&mut self, now: Nanos, name: &str) -> bool {
        let search = self.search.as_mut().expect("it searches a depth");
        let step = search.completed(now);
        let target_us = search.target_us();
        self.depth = search.depth();
        match step {
            Step::Continue => return false,
            Step::Measure => {
                assert_eq!(self.in_flight, 0, "measurement begins with nothing in flight");
                self.measured_from = now;
                if let Some(log) = &mut self.log {
                    log.restart();
                }
                self.tally = Tally {
                    last_completion: now,
                    ..Tally::default()
                };
                return true;
            }
            Step::Done => {}
            Step::Failed(latency_ns) => {
                let setting = format!("latency_target={target_us}us of [{name}]");
                let problem = format!(
                    "a request took {:.1} us with no other in flight, and fio gives up there too; allow more, or a share of late \
                     requests with latency_percentile",
                    latency_ns as f64 / 1e3
                );
                self.error = Some(WorkloadError::setting(setting, problem));
            }
        }
        self.terminate(now);
        false
    }

    /// Whether its search for a depth has come to an end.
    pub(super) fn has_found(&self) -> bool {
        self.search.as_ref().is_some_and(DepthSearch::has_found)
    }

    /// When the next request of an open loop is due.
    fn due(&self, rate: Rate) -> Nanos {
        let elapsed = match (rate, &self.arrivals) {
            (_, Some((_, due))) => u128::from(*due),
            (Rate::BytesPerSecond(rate), None) => u128::from(self.submitted_bytes) * SECOND_NS / rate,
            (Rate::RequestsPerSecond(rate), None) => u128::from(self.submitted) * SECOND_NS / rate,
        };
        let missed = if self.rate_ignores_thinktime { self.paused_ns } else { 0 };
        let elapsed = Nanos::try_from(elapsed).unwrap_or(Nanos::MAX);
        elapsed.saturating_add(self.begins_at + missed)
    }

    #[inline]
    fn has_request(&mut self, look_ahead: impl Fn(&[Request], &[Request])) -> bool {
        if self.taken == self.ready.len() {
            self.refill(look_ahead);
        }
        self.taken < self.ready.len()
    }

    #[inline(never)]
    fn refill(&mut self, look_ahead: impl Fn(&[Request], &[Request])) {
        if self.later.is_empty() {
            self.fill_later();
            look_ahead(&[], &self.later);
        }
        std::mem::swap(&mut self.ready, &mut self.later);
        if let Some(replay) = &mut self.replay {
            replay.swap();
        }
        self.taken = 0;
        // Only what writes touch is looked up a run later, and reads that are asked for so early take longer.
        let changes = |request: &Request| request.operation != Operation::Read;
        if !self.requests.tells_what_it_did() && self.ready.iter().any(changes) {
            self.fill_later();
        } else {
            self.later.clear();
        }
        look_ahead(&self.ready, &self.later);
    }

    /// Produces the requests that come after those that are ready: none if there are no more, or if one could not be produced.
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
            (RequestSource::Trace(source), Some(replay)) => {
                source.next_timed_batch(&mut self.later, &mut replay.later, RUN_LENGTH)?;
            }
            (requests, _) => requests.fill(&mut self.later, RUN_LENGTH)?,
        }
        match &self.placer {
            Some(placer) => placer.place(&mut self.later),
            None => Ok(()),
        }
    }

    /// The next request, which is submitted now.
    #[inline]
    pub(super) fn take(&mut self) -> Request {
        let request = self.ready[self.taken];
        self.taken += 1;
        if !self.is_plain {
            self.count_taken(request.bytes);
        }
        request
    }

    /// Whether those that are ready have just been produced.
    #[inline]
    pub(super) fn begins_run(&self) -> bool {
        self.taken == 0
    }

    /// Finds out where the pages are that it will read, if nothing has changed since it did so for the run of requests before:
    /// what is located while others write is so in vain. `change` is the number of the last change.
    pub(super) fn locate(&mut self, change: u64, locate: impl Fn(&Request) -> Option<Location>) {
        self.locations.clear();
        if self.located_after == change {
            self.locations.extend(self.ready.iter().map(locate));
        }
        self.located_after = change;
    }

    /// Where the page of a request that is ready is, if it was located and nothing has changed since.
    #[inline]
    pub(super) fn location(&self, index: usize, change: u64) -> Option<&Location> {
        let location = self.locations.get(index)?.as_ref();
        location.filter(|_| self.located_after == change)
    }

    /// As [`Lane::take`], of a plain lane; where [`Lane::taken`] finds the request until there are others.
    #[inline]
    pub(super) fn take_index(&mut self) -> usize {
        assert!(self.is_plain, "requests of a plain lane are not counted");
        self.taken += 1;
        self.taken - 1
    }

    /// A request that was taken.
    #[inline]
    pub(super) fn taken(&self, index: usize) -> &Request {
        &self.ready[index]
    }

    /// A request is submitted of a lane that is not plain.
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

    /// A request of an open loop is submitted.
    fn count(&mut self, rate: Rate, bytes: u32) {
        self.submitted += 1;
        self.submitted_bytes += u64::from(bytes);
        if let Some((arrivals, due)) = &mut self.arrivals {
            let per_second = match rate {
                Rate::BytesPerSecond(rate) => rate as f64 / f64::from(bytes),
                Rate::RequestsPerSecond(rate) => rate as f64,
            };
            *due = due.saturating_add(arrivals.next_gap_ns(SECOND_NS as f64 / per_second));
        }
    }

    /// Little's law: what was in flight on average is throughput times mean latency; and a closed loop has as many in flight
    /// as it may, but for the latency of a request at its start and end.
    ///
    /// # Panics
    /// It does not hold, which would be a mistake in the accounts of the run.
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
