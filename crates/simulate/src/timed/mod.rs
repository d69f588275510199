//! Workloads in virtual time: jobs keep requests in flight on a device with timing, and what each took is measured.
//!
//! ```text
//! job file -> plan_streams -> lanes (closed and open loops) -> turns, by their times -> Device<Recorder>
//!                                                                                    -> accounts, some dozens together -> measure: histograms, series
//! trace and its times -> replay -> a lane                                            -> replay: by volume, process, size; lateness
//! ```
//!
//! The device says at submission when a request will be done, so there is one event for each request: its completion,
//! which makes room for the lane's next one; a workload with a host of its own is told of it, and asked at the times
//! that it names. Events are taken in the order of their times, and of their making where those are equal; a run
//! depends on nothing else, and time never goes back. Groups (`stonewall`) run one after another.
//!
//! What it means for the counters and the write amplification is as in `workload::fio::Schedule`; here jobs share the
//! drive as the drive lets them. It has no clock and no threads.

mod accounts;
mod depth_search;
mod fio_json;
mod fio_log;
mod lane;
pub mod measure;
pub mod replay;
mod request_source;
pub mod result;
mod together;
mod turns;

use ssd::{Completion, Device, Nanos};

use crate::mapper::Mapper;
use crate::policy::Placer;
use crate::recorder::Recorder;
use crate::run::Stride;
use applications::Spec;
use experiment::error::LabError;
use experiment::run_options::RunSettings;
use workload::fio::{ExitWhat, Job, JobFile, plan_streams};
use workload::{Next, Operation, Request, Source, TaggedRequest, Target, Workload, WorkloadError};

use accounts::{Accounts, Measured, Whose};
pub use fio_json::to_fio_json;
use fio_log::FioLog;
use lane::{Demand, Lane};
use measure::{Direction, Goal, JobResult, RequestLog, TimedRequest};
use result::TimedResult;
use together::Together;
use turns::Turns;

/// Nobody waits until after 250 years of virtual time: a device's clock ends after 292.
const END_NS: Nanos = 250 * 365 * 86_400_000_000_000;
const TRACE_TOO_LATE: &str = "the trace's next request comes after 250 years of virtual time, which a drive's clock does not count; check the unit of its \
                              times, or raise replay_speed (--speed)";
const TOO_LATE: &str = "its next request would come after 250 years of virtual time, which a drive's clock does not count; shorten startdelay, thinktime and \
                        runtime of the jobs that run one after another, or raise the rate";

/// How far a runner goes.
#[derive(Clone, Copy, Debug)]
struct Until {
    submitted: u64,
    written: u64,
    pages_named: u64,
}

/// What happens at a time.
#[derive(Clone, Copy, Debug)]
struct Turn {
    lane: u32,
    kind: TurnKind,
}

#[derive(Clone, Copy, Debug)]
enum TurnKind {
    /// A lane wants to be asked.
    Wake,
    /// The request with this tag completes.
    Completion(u16),
    /// The request with this tag completes, which was submitted during the ramp.
    UnmeasuredCompletion(u16),
}

/// A workload on its way.
pub(crate) struct Runner {
    mapper: Mapper,
    lanes: Vec<Lane>,
    accounts: Accounts,
    turns: Turns<Turn>,
    /// Lanes to ask, last one first.
    to_ask: Vec<u32>,
    /// Lanes that are ahead of their flow.
    held_back: Vec<u32>,
    /// What a host submits at once.
    batch: Vec<TaggedRequest>,
    /// Writes that lanes submit one after the other and the device is given at once.
    together: Together,
    group: u16,
    groups: u16,
    running: usize,
    written: u64,
    pages_read: u64,
    /// Pages that requests named.
    pages_named: u64,
    /// What the device counted of pages that were not mapped when the run began.
    unmapped_before: u64,
    submitted: u64,
    /// Number of the last change of where pages are.
    change: u64,
    /// What the device had counted of such changes when it was last looked at.
    moved: [u64; 3],
    write_limit: u64,
    stopped: bool,
    now: Nanos,
    /// What is kept for who watches.
    request_log: Option<Box<RequestLog>>,
    /// The workload is a block trace.
    is_trace: bool,
}

impl Runner {
    /// Plans a workload for a drive; it begins with [`Runner::begin`].
    ///
    /// # Errors
    /// A workload that does not fit the drive, or never ends.
    pub(crate) fn new(
        workload: &Spec,
        target: &Target,
        seed: u64,
        run: &RunSettings,
        mapper: Mapper,
    ) -> Result<Runner, LabError> {
        let (depth, limit_ns) = (run.depth().into(), run.job_ns());
        let (lanes, jobs) = match (run.speed(), workload.jobs()) {
            (Some(speed), _) => {
                let source = workload.timed_source(target, seed)?;
                lane_of_source(Lane::of_trace(source, speed, depth, limit_ns), run)?
            }
            (None, Some(file)) => lanes_of_jobs(file, target, run)?,
            (None, None) => {
                let source = workload.source(target, seed)?;
                lane_of_source(Lane::of_source(source, depth, limit_ns), run)?
            }
        };
        let groups = jobs.iter().map(|job| job.group + 1).max().unwrap_or(1);
        Ok(Runner {
            mapper,
            lanes,
            accounts: Accounts::new(jobs, run.interval_ns()),
            turns: Turns::new(),
            to_ask: Vec::new(),
            held_back: Vec::new(),
            batch: Vec::new(),
            together: Together::default(),
            group: 0,
            groups,
            running: 0,
            written: 0,
            pages_read: 0,
            pages_named: 0,
            unmapped_before: 0,
            submitted: 0,
            change: 0,
            moved: [0; 3],
            write_limit: run.write_bytes(target.capacity_bytes()).unwrap_or(u64::MAX),
            stopped: false,
            now: 0,
            request_log: None,
            is_trace: workload.is_trace(),
        })
    }

    /// Keeps from now on what only who watches wants to see.
    pub(crate) fn keep_request_log(&mut self) {
        self.request_log = Some(Box::default());
    }

    /// Starts the first jobs, at this time of the device.
    pub(crate) fn begin(&mut self, start: Nanos, device: &Device<Recorder>) {
        assert!(
            self.submitted == 0 && self.lanes.iter().all(|lane| !lane.begun),
            "a workload begins once"
        );
        self.accounts.start = start;
        self.now = start;
        self.unmapped_before = device.unmapped_pages_read();
        self.begin_group();
    }

    /// Makes the files of the logs that jobs ask for.
    ///
    /// # Errors
    /// One cannot be made.
    pub(crate) fn open_logs(&mut self, file: &JobFile) -> Result<(), LabError> {
        let instances = file.jobs.iter().flat_map(|job| {
            let numbers = job.first_thread_number..job.first_thread_number + job.numjobs;
            numbers.map(move |number| (job, number))
        });
        for (lane, (job, number)) in self.lanes.iter_mut().zip(instances) {
            if job.logs.asked_by().is_some() {
                lane.log = Some(Box::new(FioLog::create(job, number)?));
            }
        }
        Ok(())
    }

    /// Ends the logs.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn close_logs(&mut self) -> Result<(), LabError> {
        let logs = self.lanes.iter_mut().filter_map(|lane| lane.log.take());
        logs.into_iter().try_for_each(|log| log.close())
    }

    /// Says where writes go, instead of the workload.
    pub(crate) fn set_placer(&mut self, placer: Option<Placer>) {
        for lane in &mut self.lanes {
            lane.placer.clone_from(&placer);
        }
    }

    /// The workload, if it is not a job file.
    pub(crate) fn source(&self) -> Option<&dyn Source> {
        self.lanes[0].source()
    }

    /// Bytes that were written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Requests that were submitted.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted
    }

    /// Pages that were read, and how many of them had not been written.
    pub(crate) fn pages_read(&self, device: &Device<Recorder>) -> [u64; 2] {
        [self.pages_read, device.unmapped_pages_read() - self.unmapped_before]
    }

    /// Pages that requests named so far: a measure of work.
    pub(crate) fn pages_named(&self) -> u64 {
        self.pages_named
    }

    /// Share of the workload that is done, 0 to 1.
    pub(crate) fn share_done(&self) -> f64 {
        let written = self.written as f64 / self.write_limit as f64;
        let lanes: f64 = self
            .lanes
            .iter()
            .map(|lane| lane.share_done(self.now, self.group))
            .sum();
        written.max(lanes / self.lanes.len() as f64)
    }

    /// Time of the device.
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// Submits nothing more; what is in flight completes.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Goes on for about a stride: so many more requests submitted, so many more pages named by them, or so many bytes written in
    /// all. False if the workload has ended.
    ///
    /// # Errors
    /// What the workload reads cannot be read.
    pub(crate) fn advance(&mut self, device: &mut Device<Recorder>, stride: Stride) -> Result<bool, LabError> {
        let until = Until {
            submitted: self.submitted.saturating_add(stride.requests),
            written: stride.host_bytes,
            pages_named: self.pages_named.saturating_add(stride.pages),
        };
        self.notice_changes(device);
        let goes_on = self.advance_until(device, until);
        self.accounts.count(&mut self.lanes);
        goes_on
    }

    /// Others may have written or deallocated: pages move by nothing else, nor are they collected otherwise.
    fn notice_changes(&mut self, device: &Device<Recorder>) {
        let stats = device.stats();
        let moved = [
            device.host_pages_written(),
            stats.media_bytes_written(),
            stats.pages_deallocated,
        ];
        self.change += u64::from(moved != self.moved);
        self.moved = moved;
    }

    /// Whether it is not yet as far.
    #[inline(always)]
    fn is_before(&self, until: Until) -> bool {
        self.submitted < until.submitted && self.written < until.written && self.pages_named < until.pages_named
    }

    fn advance_until(&mut self, device: &mut Device<Recorder>, until: Until) -> Result<bool, LabError> {
        while self.is_before(until) {
            let Some((at, turn)) = self.turns.pop() else {
                let error = self.lanes.iter_mut().find_map(|lane| lane.error.take());
                return error.map_or(Ok(false), |error| Err(error.into()));
            };
            assert!(at >= self.now, "time does not go back");
            match turn.is_followed_by(at, &self.lanes) {
                _ if self.stopped => {}
                Some(Operation::Read) => {
                    self.read_on(at, turn, device, until);
                    continue;
                }
                Some(Operation::Write) => {
                    self.write_together(at, turn, device, until);
                    continue;
                }
                Some(Operation::Trim) | None => {}
            }
            self.now = at;
            let lane = &mut self.lanes[turn.lane as usize];
            match turn.kind {
                TurnKind::Wake if at >= END_NS => {
                    let job = &self.accounts.jobs[lane.job].name;
                    let problem = if lane.is_replay() { TRACE_TOO_LATE } else { TOO_LATE };
                    return Err(WorkloadError::setting(format!("[{job}]"), problem).into());
                }
                TurnKind::Wake => lane.wake_at = None,
                TurnKind::Completion(tag) => {
                    lane.tally.completed(at);
                    if lane.is_plain {
                        lane.in_flight -= 1;
                    } else {
                        self.complete(turn.lane, tag)?;
                    }
                }
                TurnKind::UnmeasuredCompletion(tag) => lane.completed(tag),
            }
            let mut next = Some(turn.lane);
            while let Some(lane) = next {
                self.ask(lane, device);
                next = self.to_ask.pop();
            }
        }
        Ok(true)
    }

    /// A request is complete that is measured, of a lane that is not plain.
    fn complete(&mut self, index: u32, tag: u16) -> Result<(), LabError> {
        let lane = &mut self.lanes[index as usize];
        lane.write_log(self.now)?;
        lane.completed(tag);
        if lane.searches() {
            self.accounts.count(&mut self.lanes);
            let lane = &mut self.lanes[index as usize];
            let job = &mut self.accounts.jobs[lane.job];
            if lane.search_on(self.now, &job.name) {
                job.directions = Default::default();
            }
        }
        Ok(())
    }

    /// Starts the jobs of the current group.
    fn begin_group(&mut self) {
        self.running = self.lanes.iter().filter(|lane| lane.group == self.group).count();
        self.begin_lanes();
    }

    /// Starts those of the current group that wait for nobody any more.
    fn begin_lanes(&mut self) {
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            let awaited = lane.waits_for.clone().into_iter().flatten();
            let may_begin = lane.group == self.group && !lane.begun && !lane.ended;
            if may_begin && awaited.into_iter().all(|other| self.lanes[usize::from(other)].ended) {
                let at = self.lanes[index].begin(self.now);
                self.wake(index as u32, at);
            }
        }
    }

    /// A job has ended with `exitall`: the others of its group end as soon as nothing of them is in flight.
    fn end_others(&mut self, what: ExitWhat) {
        if what == ExitWhat::All {
            self.groups = self.group + 1;
        }
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if lane.group != self.group || lane.ended {
                continue;
            }
            lane.terminate(self.now);
            if lane.begun {
                self.to_ask.push(index as u32);
            } else {
                lane.ended = true;
                self.running -= 1;
            }
        }
    }

    fn wake(&mut self, lane: u32, at: Nanos) {
        let wake_at = &mut self.lanes[lane as usize].wake_at;
        if wake_at.is_some_and(|earlier| earlier <= at) {
            return;
        }
        *wake_at = Some(at);
        let kind = TurnKind::Wake;
        self.turns.push(at, Turn { lane, kind });
    }

    /// Lets a lane submit what it may.
    #[inline(always)]
    fn ask(&mut self, index: u32, device: &mut Device<Recorder>) {
        if self.lanes[index as usize].is_paced {
            return self.ask_host(index, device);
        }
        loop {
            let lane = &mut self.lanes[index as usize];
            if lane.ended || lane.in_flight == lane.depth {
                return;
            }
            // The cache misses of what a lane will submit soon overlap; one by one they would take most of the time.
            // Where pages are is looked up when their entries, asked for before, have come.
            let look_ahead = |now: &[Request], later: &[Request]| {
                device.expect(later.iter().map(|request| self.mapper.first(request)));
                let changes = now.iter().filter(|request| request.operation != Operation::Read);
                device.expect_overwritten(changes.map(|request| self.mapper.first(request)));
            };
            let demand = if self.stopped {
                Demand::End
            } else {
                lane.demand(self.now, look_ahead)
            };
            match demand {
                Demand::Submit if lane.flow.is_some() && self.is_ahead(index) => {
                    if !self.held_back.contains(&index) {
                        self.held_back.push(index);
                    }
                    return;
                }
                Demand::Submit => {
                    self.locate(index, device);
                    let request = self.lanes[index as usize].take();
                    self.submit(index, TaggedRequest { tag: 0, request }, device);
                }
                Demand::Wait(at) => return self.wake(index, at),
                Demand::Drain => return,
                Demand::End => return self.end(index),
            }
        }
    }

    /// Finds out where the pages are that a plain lane will read, when it begins a run of requests.
    #[inline(always)]
    fn locate(&mut self, index: u32, device: &Device<Recorder>) {
        let lane = &mut self.lanes[index as usize];
        if lane.is_plain && lane.begins_run() {
            let is_located = |request: &Request| match (request.operation, self.mapper.extent(request)) {
                (Operation::Read, (first, 1)) => device.locate(first),
                _ => None,
            };
            lane.locate(self.change, is_located);
        }
    }

    /// Lets a workload with a host of its own submit what it will.
    #[inline(never)]
    fn ask_host(&mut self, index: u32, device: &mut Device<Recorder>) {
        let lane = &mut self.lanes[index as usize];
        if lane.ended {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        let next = if self.stopped {
            Next::Never
        } else {
            lane.act(self.now, &mut batch)
        };
        for tagged in batch.drain(..) {
            // Enough was written: the rest will not be asked for.
            if !self.stopped {
                self.submit(index, tagged, device);
            }
        }
        self.batch = batch;
        match next {
            Next::At(at) => self.wake(index, at),
            Next::Completion => {}
            Next::Never => self.end(index),
        }
    }

    /// A lane submits nothing more; it has ended when nothing is in flight.
    #[cold]
    fn end(&mut self, index: u32) {
        let lane = &mut self.lanes[index as usize];
        if lane.in_flight > 0 {
            return;
        }
        lane.ended = true;
        if let Some(log) = &mut lane.log {
            log.ended(self.now.saturating_sub(lane.measured_from));
        }
        let has_flow = lane.flow.is_some();
        let ends_others = lane.ends_others;
        self.running -= 1;
        if has_flow {
            self.to_ask.append(&mut self.held_back);
        }
        match ends_others {
            Some(what) => self.end_others(what),
            None => self.begin_lanes(),
        }
        if self.running == 0 && self.group + 1 < self.groups && !self.stopped {
            self.group += 1;
            self.begin_group();
        }
    }

    /// Whether a lane has had its share of the requests of its flow, and others not yet.
    #[inline(never)]
    fn is_ahead(&self, index: u32) -> bool {
        let own = self.lanes[index as usize].flow.expect("it has a flow");
        let others = self.lanes.iter().filter(|lane| lane.group == self.group && !lane.ended);
        let shares = others.filter_map(|lane| lane.flow).filter(|share| share.id == own.id);
        let (requests, weights) = shares.fold((0_u128, 0_u128), |(requests, weights), share| {
            (
                requests + u128::from(share.requests),
                weights + u128::from(share.weight),
            )
        });
        u128::from(own.requests) * weights > requests * u128::from(own.weight)
    }

    #[inline(always)]
    fn submit(&mut self, index: u32, tagged: TaggedRequest, device: &mut Device<Recorder>) {
        let TaggedRequest { tag, request } = tagged;
        let done = self.carry_out(device, &request);
        let lane = &mut self.lanes[index as usize];
        lane.in_flight += 1;
        let measured = self.now >= lane.measured_from;
        let kind = if measured {
            self.measure(index, &request, done);
            TurnKind::Completion(tag)
        } else {
            TurnKind::UnmeasuredCompletion(tag)
        };
        self.turns.push(done.at, Turn { lane: index, kind });
        if let Some(flow) = &mut self.lanes[index as usize].flow {
            flow.requests += 1;
            self.to_ask.append(&mut self.held_back);
        }
        self.submitted += 1;
        if request.operation == Operation::Write {
            self.has_written(request.bytes.into(), device);
        }
    }

    /// Bytes were written; and perhaps something was collected.
    #[inline(always)]
    fn has_written(&mut self, bytes: u64, device: &mut Device<Recorder>) {
        self.written += bytes;
        self.change += 1;
        self.stopped |= self.written >= self.write_limit;
        let recorder = device.sink_mut();
        for (at, pages_copied) in recorder.recent.drain(..) {
            self.accounts
                .series
                .collected(at - self.accounts.start, u64::from(pages_copied));
        }
    }

    /// A request was submitted that is measured.
    #[inline(always)]
    fn measure(&mut self, index: u32, request: &Request, done: Completion) {
        let lane = &mut self.lanes[index as usize];
        if !lane.is_plain {
            lane.in_flight_until(self.now, done, request);
        }
        self.account(index, request, done);
    }

    /// As [`Runner::measure`], of a lane that is plain or has taken notice.
    #[inline(always)]
    fn account(&mut self, index: u32, request: &Request, done: Completion) {
        let latency_ns = done.at - self.now;
        let whose = Whose {
            lane: index,
            job: self.lanes[index as usize].job_of(request) as u32,
            operation: request.operation,
        };
        let measured = Measured {
            whose,
            bytes: request.bytes,
            completed_at: done.at,
            latency_ns,
            waited_ns: done.waited_for_collection_ns,
        };
        self.accounts.take(measured, &mut self.lanes);
        if let Some(log) = &mut self.request_log {
            log.record(TimedRequest {
                job: whose.job as usize,
                operation: request.operation,
                offset_bytes: request.offset_bytes,
                bytes: request.bytes,
                submitted_at: self.now - self.accounts.start,
                latency_ns,
                waited_ns: done.waited_for_collection_ns,
            });
        }
    }

    #[inline(always)]
    fn carry_out(&mut self, device: &mut Device<Recorder>, request: &Request) -> Completion {
        let done = match request.operation {
            Operation::Read => return self.read(device, request),
            Operation::Write => {
                let write = self.mapper.write(device, request);
                self.pages_named += u64::from(write.pages);
                device.write(self.now, &write)
            }
            Operation::Trim => match self.mapper.whole_pages(request) {
                Some((first, pages)) => {
                    self.change += 1;
                    self.pages_named += u64::from(pages);
                    device.deallocate(self.now, first, pages)
                }
                None => Ok(device.command(self.now)),
            },
        };
        done.expect("requests are within the device")
    }

    #[inline(always)]
    fn read(&mut self, device: &mut Device<Recorder>, request: &Request) -> Completion {
        let (first, pages) = self.mapper.extent(request);
        self.pages_read += u64::from(pages);
        self.pages_named += u64::from(pages);
        let done = device.read(self.now, first, pages);
        done.expect("requests are within the device")
    }

    /// What was measured.
    ///
    /// # Panics
    /// Little's law does not hold for one of the jobs.
    pub(crate) fn finish(self) -> TimedResult {
        for lane in self.lanes.iter().filter(|lane| lane.tally.requests > 0) {
            lane.check(&self.accounts.jobs[lane.job].name);
        }
        self.measured()
    }

    /// What was measured so far.
    pub(crate) fn measured(&self) -> TimedResult {
        assert!(
            self.accounts.is_complete(),
            "all requests are counted between two advances"
        );
        let mut jobs = self.accounts.jobs.clone();
        for lane in self.lanes.iter().filter(|lane| lane.tally.requests > 0) {
            if let Some(goal) = &mut jobs[lane.job].latency_goal {
                goal.depth = lane.depth;
                goal.found = lane.has_found();
            }
            let jobs = match lane.source() {
                None => &mut jobs[lane.job..][..1],
                Some(_) => &mut jobs[..],
            };
            for job in jobs {
                job.from_ns = job.from_ns.min(lane.measured_from - self.accounts.start);
                job.until_ns = job.until_ns.max(lane.tally.last_completion - self.accounts.start);
            }
        }
        for job in &mut jobs {
            // By Little's law, which is checked at the end.
            job.in_flight_ns = job
                .directions
                .iter()
                .map(|direction| direction.latencies.sum_ns())
                .sum();
            job.from_ns = job.from_ns.min(job.until_ns);
        }
        TimedResult {
            jobs,
            series: self.accounts.series.clone(),
            trace: self.is_trace.then(|| self.lanes[0].trace_pace()),
            request_log: self.request_log.as_deref().cloned(),
        }
    }
}

/// Memory that a workload in virtual time takes beside its source, bytes: its lanes, what is in flight, and what is measured.
pub(crate) fn memory_bytes(workload: &Spec, run: &RunSettings) -> u64 {
    /// Of a lane, beside its source.
    const LANE_BYTES: u64 = 16 << 10;
    /// Of a request in flight, in a vector with free room.
    const TURN_BYTES: u64 = 4 * size_of::<(ssd::Nanos, Turn, u32)>() as u64;
    /// Jobs of a workload that is no job file, which says its streams when it is built.
    const STREAMS: u64 = 64;
    // A copy is made for whoever watches or reads the result.
    let job_bytes = 2 * (measure::job_bytes_max() + measure::series_bytes_max(run.interval_seconds.is_some()));
    let Some(file) = workload.jobs() else {
        let replay_bytes = run.replay.map_or(0, |_| replay::memory_bytes_max());
        return LANE_BYTES + u64::from(run.depth()) * TURN_BYTES + STREAMS * job_bytes + replay_bytes;
    };
    let lane_bytes = |job: &Job| u64::from(job.numjobs) * (LANE_BYTES + job.iodepth * TURN_BYTES);
    let lanes_bytes: u64 = file.jobs.iter().map(lane_bytes).sum();
    lanes_bytes + file.jobs.len() as u64 * job_bytes
}

/// A lane for each instance of each job, and the jobs.
fn lanes_of_jobs(file: &JobFile, target: &Target, run: &RunSettings) -> Result<(Vec<Lane>, Vec<JobResult>), LabError> {
    let planned = plan_streams(file, target)?;
    let last_group = planned.iter().map(|stream| stream.summary.group).max().unwrap_or(0);
    let writes = planned
        .iter()
        .any(|stream| stream.summary.group == last_group && stream.plan.writes());
    let mut jobs: Vec<JobResult> = Vec::new();
    let mut lanes: Vec<Lane> = Vec::new();
    let mut without_end: Vec<(&Job, u16)> = Vec::new();
    let mut job_of_section = None;
    for stream in planned {
        let job = stream.job;
        if job_of_section != Some(job.first_thread_number) {
            job_of_section = Some(job.first_thread_number);
            jobs.push(JobResult {
                name: job.name.clone(),
                rw: job.access.name,
                request_bytes: (stream.summary.min_request_bytes, stream.summary.max_request_bytes),
                group: stream.summary.group,
                instances: job.numjobs,
                queue_depth: job.iodepth,
                from_ns: Nanos::MAX,
                until_ns: 0,
                directions: [(); 3].map(|()| Direction::default()),
                in_flight_ns: 0,
                latency_goal: (job.latency_goal.target_us > 0).then(|| Goal::from(job.latency_goal)),
            });
        }
        let is_limited = job.runtime_us > 0 || stream.summary.group == last_group;
        let lane = Lane::new(stream, jobs.len() - 1, run.job_ns().filter(|_| is_limited));
        let ends = lane.ends() || run.write_capacities.is_some() && writes;
        if !ends {
            without_end.push((job, lane.group));
        }
        lanes.push(lane);
    }
    // The end of one that ends is that of all.
    let is_ended = |group: u16| file.exits_all() && lanes.iter().any(|lane| lane.group == group && lane.ends());
    if let Some((job, _)) = without_end.iter().find(|(_, group)| !is_ended(*group)) {
        let problem = "it never ends, and nothing that runs with it writes until enough is written";
        return Err(job.error("rw", problem, "give it a runtime").into());
    }
    Ok((lanes, jobs))
}

/// The one lane of a workload, and its streams as jobs.
fn lane_of_source(lane: Lane, run: &RunSettings) -> Result<(Vec<Lane>, Vec<JobResult>), LabError> {
    let source = lane.source().expect("the workload is no job file");
    let streams = source.streams();
    let job = |name: String| JobResult {
        name,
        rw: "",
        request_bytes: (0, 0),
        group: 0,
        instances: 1,
        queue_depth: lane.depth,
        from_ns: Nanos::MAX,
        until_ns: 0,
        directions: [(); 3].map(|()| Direction::default()),
        in_flight_ns: 0,
        latency_goal: None,
    };
    let jobs = streams.into_iter().map(job).collect();
    if !lane.ends() && run.write_capacities.is_none() {
        let problem = "never ends in virtual time; give seconds or write_capacities in [run], --seconds or --write";
        return Err(LabError::invalid("workload", problem));
    }
    Ok((vec![lane], jobs))
}
