//! Workloads in virtual time: jobs keep requests in flight on a device with timing, and latencies
//! are measured.
//!
//! ```text
//! job file -> plan_streams -> lanes (closed and open loops) -> turns, by their times
//!                             -> Device<RunRecorder>
//!                             -> accounts (in batches) -> latency, series, measure
//! trace with times -> replay -> a lane
//!                             -> replay: by volume, process, size; lateness
//! ```
//!
//! The device returns the completion time at submission. So each request has one event, its
//! completion, which admits the lane's next request. A paced workload receives its completions and
//! is called at the times that it requests. Events run in time order, and in insertion order at
//! equal times. A run depends on nothing more, and time never goes back. Groups (`stonewall`) run
//! one after another.
//!
//! Counters and write amplification follow `workload::fio::Schedule`. Here the drive's timing
//! decides how jobs share the drive. This module has no clock and no threads.

mod depth_search;
mod event_queue;
mod fio_json;
mod fio_log;
mod groups;
mod job_instance;
mod job_instances;
pub mod latency;
mod latency_recorder;
pub mod measure;
pub mod replay;
mod request_source;
pub mod result;
pub mod series;
pub(crate) mod state_recorder;
mod submission;
mod write_batch;

use ssd::{Device, Nanos};

use crate::policy::PolicyPlacer;
use crate::request_mapper::RequestMapper;
use crate::run::StepLimit;
use crate::run_recorder::RunRecorder;
use applications::WorkloadSpec;
use experiment::error::LabError;
use experiment::run_options::RunSettings;
use workload::fio::{Job, JobFile};
use workload::{
    IoRequest, NextCall, RequestOperation, RequestSource, TaggedRequest, Workload, WorkloadError, WorkloadTarget,
};

use event_queue::EventQueue;
pub use fio_json::to_fio_json;
use fio_log::FioLog;
use job_instance::{JobInstance, NextAction};
use job_instances::{lane_of_source, lanes_of_jobs};
use latency_recorder::LatencyRecorder;
use measure::RequestLog;
use result::TimedResult;
use write_batch::WriteBatch;

/// Upper bound of wait times, 250 years of virtual time. A device's clock ends after 292 years.
const END_NS: Nanos = 250 * 365 * 86_400_000_000_000;
const TRACE_TOO_LATE: &str = "the trace's next request comes after 250 years of virtual time, the limit of a \
                              drive's clock. Check the unit of its times, or raise replay_speed (--speed)";
const TOO_LATE: &str = "its next request would come after 250 years of virtual time, the limit of a drive's clock. \
                        Shorten startdelay, thinktime and runtime of jobs that run one after another, or raise the \
                        rate";

#[derive(Clone, Copy, Debug)]
struct AdvanceLimit {
    submitted: u64,
    written: u64,
    pages_named: u64,
}

#[derive(Clone, Copy, Debug)]
struct TimedEvent {
    lane: u32,
    kind: TimedEventKind,
}

#[derive(Clone, Copy, Debug)]
enum TimedEventKind {
    /// A lane requests a call.
    Wake,
    /// The request with this tag completes.
    Completion(u16),
    /// The request with this tag completes. It was submitted during the ramp and is not measured.
    UnmeasuredCompletion(u16),
}

pub(crate) struct Runner {
    mapper: RequestMapper,
    lanes: Vec<JobInstance>,
    accounts: LatencyRecorder,
    turns: EventQueue<TimedEvent>,
    /// Lanes to call, last one first.
    due_lanes: Vec<u32>,
    /// Lanes ahead of their flow.
    held_back: Vec<u32>,
    /// Requests that a paced workload submits together.
    batch: Vec<TaggedRequest>,
    /// Consecutive writes of lanes, batched for the device.
    write_batch: WriteBatch,
    group: u16,
    groups: u16,
    running: usize,
    pub(crate) written: u64,
    pages_read: u64,
    /// Pages addressed by requests.
    pub(crate) pages_named: u64,
    /// The device's count of unmapped pages read at the beginning of the run.
    unmapped_before: u64,
    pub(crate) submitted: u64,
    /// Number of the last change of page locations.
    change: u64,
    /// Device counters of such changes at the last check.
    moved: [u64; 3],
    write_limit: u64,
    stopped: bool,
    pub(crate) now: Nanos,
    /// Log for observers.
    request_log: Option<Box<RequestLog>>,
    is_trace: bool,
}

impl Runner {
    /// Plans a workload for a drive. [`Runner::begin`] starts it.
    ///
    /// # Errors
    /// A workload does not fit the drive or never ends.
    pub(crate) fn new(
        workload: &WorkloadSpec,
        target: &WorkloadTarget,
        seed: u64,
        run: &RunSettings,
        mapper: RequestMapper,
    ) -> Result<Runner, LabError> {
        let (depth, limit_ns) = (run.depth().into(), run.job_ns());
        let (lanes, jobs) = match (run.speed(), workload.jobs()) {
            (Some(speed), _) => {
                let source = workload.timed_source(target, seed)?;
                lane_of_source(JobInstance::from_trace(source, speed, depth, limit_ns), run)?
            }
            (None, Some(file)) => lanes_of_jobs(file, target, run)?,
            (None, None) => {
                let source = workload.source(target, seed)?;
                lane_of_source(JobInstance::from_source(source, depth, limit_ns), run)?
            }
        };
        assert!(!lanes.is_empty(), "a workload of {} jobs has no lane", jobs.len());
        let groups = jobs.iter().map(|job| job.group + 1).max().unwrap_or(1);
        Ok(Runner {
            mapper,
            lanes,
            accounts: LatencyRecorder::new(jobs, run.interval_ns()),
            turns: EventQueue::new(),
            due_lanes: Vec::new(),
            held_back: Vec::new(),
            batch: Vec::new(),
            write_batch: WriteBatch::default(),
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

    /// Enables the log for observers.
    pub(crate) fn keep_request_log(&mut self) {
        self.request_log = Some(Box::default());
    }

    /// Starts the first jobs at this time of the device.
    pub(crate) fn begin(&mut self, start: Nanos, device: &Device<RunRecorder>) {
        assert!(self.submitted == 0 && self.lanes.iter().all(|lane| !lane.begun), "a workload begins once");
        self.accounts.start = start;
        self.now = start;
        self.unmapped_before = device.unmapped_pages_read();
        self.begin_group();
    }

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

    pub(crate) fn close_logs(&mut self) -> Result<(), LabError> {
        let logs = self.lanes.iter_mut().filter_map(|lane| lane.log.take());
        logs.into_iter().try_for_each(|log| log.close())
    }

    /// Sets a placement policy that overrides the workload.
    pub(crate) fn set_placer(&mut self, placer: Option<PolicyPlacer>) {
        for lane in &mut self.lanes {
            lane.placer.clone_from(&placer);
        }
    }

    /// Returns the workload. `None` for a job file.
    pub(crate) fn source(&self) -> Option<&dyn RequestSource> {
        self.lanes[0].source()
    }

    /// Pages read, then the unwritten ones among them.
    pub(crate) fn pages_read(&self, device: &Device<RunRecorder>) -> [u64; 2] {
        let unmapped = device.unmapped_pages_read() - self.unmapped_before;
        assert!(unmapped <= self.pages_read, "{unmapped} of {} pages read are unwritten", self.pages_read);
        [self.pages_read, unmapped]
    }

    /// Completed share of the workload, 0 to 1.
    pub(crate) fn share_done(&self) -> f64 {
        let written = self.written as f64 / self.write_limit as f64;
        let lanes: f64 = self.lanes.iter().map(|lane| lane.share_done(self.now, self.group)).sum();
        written.max(lanes / self.lanes.len() as f64)
    }

    /// Stops submission. Requests in flight still complete.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Advances by about a stride. Its requests and pages count from here, its bytes from the
    /// beginning. Returns false at the end of the workload.
    pub(crate) fn advance(&mut self, device: &mut Device<RunRecorder>, stride: StepLimit) -> Result<bool, LabError> {
        let until = AdvanceLimit {
            submitted: self.submitted.saturating_add(stride.requests),
            written: stride.host_bytes,
            pages_named: self.pages_named.saturating_add(stride.pages),
        };
        self.detect_changes(device);
        let goes_on = self.advance_until(device, until);
        self.accounts.count(&mut self.lanes);
        goes_on
    }

    /// Detects writes and deallocations by the caller. Only they move pages or trigger collections.
    fn detect_changes(&mut self, device: &Device<RunRecorder>) {
        let stats = device.stats();
        let moved = [device.host_pages_written(), stats.media_bytes_written(), stats.pages_deallocated];
        self.change += u64::from(moved != self.moved);
        self.moved = moved;
    }

    /// Returns true until one of the limits is reached.
    #[inline(always)]
    fn is_before(&self, until: AdvanceLimit) -> bool {
        self.submitted < until.submitted && self.written < until.written && self.pages_named < until.pages_named
    }

    fn advance_until(&mut self, device: &mut Device<RunRecorder>, until: AdvanceLimit) -> Result<bool, LabError> {
        while self.is_before(until) {
            let Some((at, turn)) = self.turns.pop() else {
                let error = self.lanes.iter_mut().find_map(|lane| lane.error.take());
                return error.map_or(Ok(false), |error| Err(error.into()));
            };
            assert!(at >= self.now, "time does not go back");
            match turn.is_followed_by(at, &self.lanes) {
                _ if self.stopped => {}
                Some(RequestOperation::Read) => {
                    self.read_on(at, turn, device, until);
                    continue;
                }
                Some(RequestOperation::Write) => {
                    self.write_together(at, turn, device, until);
                    continue;
                }
                Some(RequestOperation::Trim) | None => {}
            }
            self.now = at;
            let lane = &mut self.lanes[turn.lane as usize];
            match turn.kind {
                TimedEventKind::Wake if at >= END_NS => {
                    let job = &self.accounts.jobs[lane.job].name;
                    let problem = if lane.replay.is_some() { TRACE_TOO_LATE } else { TOO_LATE };
                    return Err(WorkloadError::at(format!("[{job}]"), problem).into());
                }
                TimedEventKind::Wake => lane.wake_at = None,
                TimedEventKind::Completion(tag) => {
                    lane.tally.completed(at);
                    if lane.is_fast_path {
                        lane.in_flight -= 1;
                    } else {
                        self.complete(turn.lane, tag)?;
                    }
                }
                TimedEventKind::UnmeasuredCompletion(tag) => lane.completed(tag),
            }
            let mut next = Some(turn.lane);
            while let Some(lane) = next {
                self.submit_lane(lane, device);
                next = self.due_lanes.pop();
            }
        }
        Ok(true)
    }

    /// Completes a measured request of a lane outside the fast path.
    fn complete(&mut self, index: u32, tag: u16) -> Result<(), LabError> {
        let lane = &mut self.lanes[index as usize];
        lane.write_log(self.now)?;
        lane.completed(tag);
        if lane.search.is_some() {
            self.accounts.count(&mut self.lanes);
            let lane = &mut self.lanes[index as usize];
            let job = &mut self.accounts.jobs[lane.job];
            if lane.search_on(self.now, &job.name) {
                job.directions = Default::default();
            }
        }
        Ok(())
    }

    fn wake(&mut self, lane: u32, at: Nanos) {
        assert!(at >= self.now, "a lane is to wake in the past");
        let wake_at = &mut self.lanes[lane as usize].wake_at;
        if wake_at.is_some_and(|earlier| earlier <= at) {
            return;
        }
        *wake_at = Some(at);
        let kind = TimedEventKind::Wake;
        self.turns.push(at, TimedEvent { lane, kind });
    }

    /// Submits the requests that a lane may submit now.
    #[inline(always)]
    fn submit_lane(&mut self, index: u32, device: &mut Device<RunRecorder>) {
        if self.lanes[index as usize].is_paced {
            return self.ask_host(index, device);
        }
        loop {
            let lane = &mut self.lanes[index as usize];
            if lane.ended || lane.in_flight == lane.depth {
                return;
            }
            // Overlaps the cache misses of coming requests. One by one they would dominate the
            // time. Page locations are looked up once their prefetched entries have arrived.
            let look_ahead = |now: &[IoRequest], later: &[IoRequest]| {
                device.prefetch(later.iter().map(|request| self.mapper.first_unit(request)));
                let changes = now.iter().filter(|request| request.operation != RequestOperation::Read);
                device.prefetch_overwritten(changes.map(|request| self.mapper.first_unit(request)));
            };
            let demand = if self.stopped { NextAction::End } else { lane.demand(self.now, look_ahead) };
            match demand {
                NextAction::Submit if lane.flow.is_some() && self.is_ahead(index) => {
                    if !self.held_back.contains(&index) {
                        self.held_back.push(index);
                    }
                    return;
                }
                NextAction::Submit => {
                    self.locate(index, device);
                    let request = self.lanes[index as usize].take_request();
                    self.submit(index, TaggedRequest { tag: 0, request }, device);
                }
                NextAction::Wait(at) => return self.wake(index, at),
                NextAction::Drain => return,
                NextAction::End => return self.end(index),
            }
        }
    }

    /// Looks up the pages that a fast-path lane will read, at the beginning of a batch.
    #[inline(always)]
    fn locate(&mut self, index: u32, device: &Device<RunRecorder>) {
        let lane = &mut self.lanes[index as usize];
        if lane.is_fast_path && lane.begins_run() {
            let is_located = |request: &IoRequest| match (request.operation, self.mapper.extent(request)) {
                (RequestOperation::Read, (first, 1)) => device.locate(first),
                _ => None,
            };
            lane.locate(self.change, is_located);
        }
    }

    /// Submits the requests of a paced workload.
    #[inline(never)]
    fn ask_host(&mut self, index: u32, device: &mut Device<RunRecorder>) {
        let lane = &mut self.lanes[index as usize];
        if lane.ended {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        let next = if self.stopped { NextCall::Never } else { lane.poll_host(self.now, &mut batch) };
        for tagged in batch.drain(..) {
            // After the last write the rest is dropped.
            if !self.stopped {
                self.submit(index, tagged, device);
            }
        }
        self.batch = batch;
        match next {
            NextCall::At(at) => self.wake(index, at),
            NextCall::Completion => {}
            NextCall::Never => self.end(index),
        }
    }

    /// Returns the measurements.
    ///
    /// # Panics
    /// Little's law does not hold for one of the jobs.
    pub(crate) fn finish(self) -> TimedResult {
        for lane in self.lanes.iter().filter(|lane| lane.tally.requests > 0) {
            assert_eq!(lane.in_flight, 0, "job {} ends with requests in flight", self.accounts.jobs[lane.job].name);
            lane.check(&self.accounts.jobs[lane.job].name);
        }
        self.measured()
    }

    /// Returns the measurements so far.
    pub(crate) fn measured(&self) -> TimedResult {
        assert!(self.accounts.uncounted.is_empty(), "all requests are counted between two advances");
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
            // By Little's law, which `finish` checks.
            job.in_flight_ns = job.directions.iter().map(|direction| direction.latencies.sum_ns()).sum();
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

/// Bytes of memory of a workload in virtual time, without its source: lanes, requests in flight and
/// measurements.
pub(crate) fn memory_bytes(workload: &WorkloadSpec, run: &RunSettings) -> u64 {
    /// Bytes of a lane, without its source.
    const LANE_BYTES: u64 = 16 << 10;
    /// Bytes of a request in flight, in a vector with spare capacity.
    const TURN_BYTES: u64 = 4 * size_of::<(ssd::Nanos, TimedEvent, u32)>() as u64;
    /// Assumed jobs of a workload without job file, which reports its streams later.
    const STREAMS: u64 = 64;
    // Observers and readers of the result receive a copy.
    let job_bytes = 2 * (measure::job_bytes_max() + series::series_bytes_max(run.interval_seconds.is_some()));
    let Some(file) = workload.jobs() else {
        let replay_bytes = run.replay.map_or(0, |_| replay::memory_bytes_max());
        return LANE_BYTES + u64::from(run.depth()) * TURN_BYTES + STREAMS * job_bytes + replay_bytes;
    };
    let lane_bytes = |job: &Job| u64::from(job.numjobs) * (LANE_BYTES + job.iodepth * TURN_BYTES);
    let lanes_bytes: u64 = file.jobs.iter().map(lane_bytes).sum();
    lanes_bytes + file.jobs.len() as u64 * job_bytes
}
