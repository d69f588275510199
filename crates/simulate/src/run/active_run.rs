//! Execution loop of a run, from its first write to its last.

use std::ops::Deref;

use ssd::Nanos;
use workload::{RequestSource, WorkloadMeasure};

use super::drive::RunDrive;
use super::fill::{Fill, FillSummary};
use super::options::ExecutionOptions;
use super::plan::{BuiltWorkload, RunPlan};
use super::progress::ProgressObserver;
use super::series::SampleSeries;
use super::untimed::{AHEAD_REQUESTS, BATCH_REQUESTS, UntimedStage};
use crate::feedback::{Feedback, FeedbackResult};
use crate::policy::PolicyPlacer;
use crate::run_recorder::RunRecorder;
use crate::timed::Runner;
use crate::timed::result::TimedResult;
use experiment::error::LabError;

/// Requests of a job file per call of a placement policy. A call costs as much as some hundred
/// writes.
const PLACED_REQUESTS: usize = 8 * BATCH_REQUESTS;
/// Smallest logical pages of a drive that is worth a second thread, because its maps exceed all
/// caches.
const LARGE_PAGES_MIN: u32 = 1 << 22;
/// Maximum request size in bytes, the range of its 32-bit length.
const REQUEST_BYTES_MAX: u64 = u32::MAX as u64;
/// Maximum pages of a step, a fraction of a second of work. A run checks for a stop after each
/// step.
pub(crate) const STEP_PAGES: u64 = 1 << 19;
/// Cost in pages to produce and skip a request.
const PASSED_PAGES: u64 = 4;
/// Requests between two polls of the event log, after which feedback may change placement.
const LISTENED_REQUESTS: usize = 64;
/// Requests between two updates of the series in virtual time, without feedback.
const LOOK_REQUESTS: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub(crate) struct StepLimit {
    /// Requests. While the drive is filled, extents.
    pub(crate) requests: u64,
    /// Bytes written by the host since the workload began.
    pub(crate) host_bytes: u64,
    /// Pages that requests address. The last request may exceed the limit.
    pub(crate) pages: u64,
}

impl StepLimit {
    /// Longest step, for speed.
    pub(super) const LONGEST: StepLimit = StepLimit { requests: u64::MAX, host_bytes: u64::MAX, pages: STEP_PAGES };
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPosition {
    /// Bytes written before the workload.
    pub filled_bytes: u64,
    pub host_bytes: u64,
    /// Requests taken from the workload.
    pub requests: u64,
    /// Virtual time since the workload began. 0 without a clock.
    pub now_ns: Nanos,
}

/// Running cell. Its result does not depend on the length of its steps.
pub(crate) struct ActiveRun<P> {
    pub(super) drive: RunDrive,
    pub(crate) plan: P,
    /// Placement policy of the caller, which overrides the workload.
    pub(super) placer: Option<PolicyPlacer>,
    /// True if a second thread takes the next requests from the source during writes. Such a run
    /// only takes the longest steps.
    takes_ahead: bool,
    pub(super) stage: Stage,
    /// False if a caller stopped the run early.
    pub(super) complete: bool,
    pub(super) filled: FillSummary,
    ended_at: RunPosition,
    pub(super) series: SampleSeries,
    pub(super) timed: Option<TimedResult>,
    feedback: Option<Feedback>,
    pub(super) feedback_result: Option<FeedbackResult>,
    pub(super) measures: Vec<WorkloadMeasure>,
    /// Pages read, then the unwritten ones among them.
    pub(super) pages_read: [u64; 2],
    /// Pages that requests addressed so far, including skipped requests.
    pub(crate) pages_named: u64,
    /// Work of the workload already reported to the watch.
    reported: u64,
}

pub(super) enum Stage {
    /// Fills the drive before the workload.
    Filling(Box<Fill>, BuiltWorkload),
    /// Runs requests as fast as the device takes them.
    Untimed(UntimedStage),
    /// Runs requests in virtual time.
    Timed(Box<TimedStage>),
    Ended,
}

/// A workload in virtual time.
pub(super) struct TimedStage {
    pub(super) runner: Runner,
    /// Submitted requests at the next update of series and feedback.
    next_look: u64,
}

impl<P: Deref<Target = RunPlan>> ActiveRun<P> {
    /// Creates a run at its beginning.
    pub(crate) fn begin(plan: P, options: ExecutionOptions<'_>) -> Result<ActiveRun<P>, LabError> {
        let mut device = plan.device()?;
        device.set_victim_policy(options.policies.victim.map(|make| make()));
        let mut workload = plan.workload()?;
        if let (BuiltWorkload::Timed(runner), Some(file)) = (&mut workload, plan.cell().workload.jobs())
            && options.fio_logs
        {
            runner.open_logs(file)?;
        }
        let layout = &plan.layout;
        let recorder = RunRecorder::new(options.keep_gc_log, plan.is_timed());
        let (device, ()) = device.replace_sink(recorder);
        let feedback = plan.cell().feedback.as_ref().zip(plan.owners.clone());
        let feedback =
            feedback.map(|(settings, owners)| Feedback::new(settings, owners, layout, plan.target.placement_count));
        let placement = options.policies.placement.map(|make| make());
        let placement = match &feedback {
            Some(feedback) => Some(feedback.redirection(placement)),
            None => placement,
        };
        let placer = placement.map(|policy| PolicyPlacer::new(policy, layout.page_bytes, plan.target.placement_count));
        Ok(ActiveRun {
            drive: RunDrive::new(device, &plan),
            placer,
            takes_ahead: false,
            stage: Stage::Filling(Box::new(Fill::new(&plan)?), workload),
            complete: true,
            filled: FillSummary::default(),
            ended_at: RunPosition::default(),
            series: SampleSeries::new(&plan),
            timed: None,
            feedback,
            feedback_result: None,
            measures: Vec::new(),
            pages_read: [0; 2],
            pages_named: 0,
            reported: 0,
            plan,
        })
    }

    /// Uses spare threads. They fault in the maps of a large drive. One then takes requests of a job
    /// file during writes, or reads a trace ahead. Virtual time, feedback and policies run on one
    /// thread, because each step depends on the previous one.
    pub(super) fn use_threads(&mut self, threads: usize) {
        if threads < 2 {
            return;
        }
        let is_of_use = !self.plan.is_timed() && self.feedback.is_none() && self.placer.is_none();
        if is_of_use && let Stage::Filling(_, BuiltWorkload::Untimed(source)) = &mut self.stage {
            source.read_ahead();
        }
        if self.plan.layout.logical_pages < LARGE_PAGES_MIN {
            return;
        }
        let settings = &self.plan.cell().run;
        let to_write = settings.precondition_drive_writes + settings.drive_writes.unwrap_or(0.0);
        if to_write >= 1.0 {
            self.drive.device.populate();
        }
        // Self-reported measures must not include prefetched requests. Job files report none.
        self.takes_ahead = is_of_use && self.plan.cell().workload.jobs().is_some();
    }

    /// Advances by one step. Returns false at the end of the run.
    ///
    /// # Errors
    /// A workload input cannot be read, or a placement policy fails. Either ends the run.
    pub(crate) fn step(&mut self, stride: StepLimit, watch: &dyn ProgressObserver) -> Result<bool, LabError> {
        assert!(stride.requests > 0, "a step goes somewhere");
        self.ended_at = self.position();
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Filling(mut fill, workload) => {
                self.stage = match fill.advance(&mut self.drive, &self.plan, stride.requests, watch) {
                    true => Stage::Filling(fill, workload),
                    false => self.begin_workload(&fill, workload),
                };
                Ok(true)
            }
            Stage::Untimed(mut work) => {
                let goes_on = self.advance_untimed(&mut work, stride, watch)?;
                assert!(work.written >= self.ended_at.host_bytes, "bytes written never fall");
                if goes_on {
                    self.stage = Stage::Untimed(work);
                    return Ok(true);
                }
                self.ended_at = self.untimed_position(&work);
                self.end_workload(work.written, Some(&*work.source), watch);
                Ok(false)
            }
            Stage::Timed(mut work) => {
                let goes_on = self.work_on_in_time(&mut work, stride, watch)?;
                assert!(self.timed_position(&work).now_ns >= self.ended_at.now_ns, "virtual time goes back");
                if goes_on {
                    self.stage = Stage::Timed(work);
                    return Ok(true);
                }
                self.ended_at = self.timed_position(&work);
                self.end_in_time(*work, watch)?;
                Ok(false)
            }
            Stage::Ended => Ok(false),
        }
    }

    fn report(&mut self, share: f64, watch: &dyn ProgressObserver) {
        let work = (share.clamp(0.0, 1.0) * self.plan.workload_work as f64) as u64;
        watch.add_completed(work.saturating_sub(self.reported));
        self.reported = self.reported.max(work);
        assert!(
            self.reported <= self.plan.workload_work,
            "the run reports {} units of work of {}",
            self.reported,
            self.plan.workload_work
        );
    }

    pub(crate) fn position(&self) -> RunPosition {
        match &self.stage {
            Stage::Filling(fill, _) => RunPosition { filled_bytes: fill.filled.bytes, ..RunPosition::default() },
            Stage::Untimed(work) => self.untimed_position(work),
            Stage::Timed(work) => self.timed_position(work),
            Stage::Ended => RunPosition { filled_bytes: self.filled.bytes, ..self.ended_at },
        }
    }

    fn untimed_position(&self, work: &UntimedStage) -> RunPosition {
        RunPosition {
            filled_bytes: self.filled.bytes,
            host_bytes: work.written,
            requests: work.executed_requests(),
            now_ns: 0,
        }
    }

    fn timed_position(&self, work: &TimedStage) -> RunPosition {
        RunPosition {
            filled_bytes: self.filled.bytes,
            host_bytes: work.runner.written,
            requests: work.runner.submitted,
            now_ns: work.runner.now.saturating_sub(self.filled.until),
        }
    }

    /// Ends the fill, completes deferred work and starts the counters.
    fn begin_workload(&mut self, fill: &Fill, workload: BuiltWorkload) -> Stage {
        self.filled = fill.end(&self.drive, &self.plan);
        self.drive.start = self.drive.device.stats().clone();
        assert!(self.series.samples.is_empty(), "samples are those of the workload");
        let source = workload.source();
        let ranges = source.map(RequestSource::ranges).unwrap_or_default();
        let recorder = self.drive.device.sink_mut();
        recorder.gc_log.clear();
        recorder.recent.clear();
        recorder.watch_ranges(ranges, self.plan.layout.page_bytes);
        if let Some(feedback) = &self.feedback {
            let entries = self.plan.config.events.log_entries;
            let log = feedback.drive_log(&self.plan.layout, &self.plan.handles, entries, &self.drive.start);
            recorder.drive_log = Some(log);
        }
        match workload {
            BuiltWorkload::Untimed(source) => Stage::Untimed(UntimedStage::new(source)),
            BuiltWorkload::Timed(mut runner) => {
                runner.begin(self.filled.until, &self.drive.device);
                runner.set_placer(self.placer.take());
                Stage::Timed(Box::new(TimedStage { next_look: self.update_requests(), runner: *runner }))
            }
        }
    }

    /// Requests between two updates in virtual time. Feedback needs shorter intervals.
    fn update_requests(&self) -> u64 {
        let listens = self.feedback.is_some();
        if listens { LISTENED_REQUESTS as u64 } else { LOOK_REQUESTS as u64 }
    }

    /// Advances in virtual time. Returns false at the end.
    fn work_on_in_time(
        &mut self,
        work: &mut TimedStage,
        stride: StepLimit,
        watch: &dyn ProgressObserver,
    ) -> Result<bool, LabError> {
        let runner = &mut work.runner;
        let to_look = work.next_look.saturating_sub(runner.submitted).max(1);
        let pages_before = runner.pages_named;
        let stride = StepLimit { requests: to_look.min(stride.requests), ..stride };
        let goes_on = runner.advance(&mut self.drive.device, stride)?;
        self.pages_named += runner.pages_named - pages_before;
        if !goes_on {
            return Ok(false);
        }
        if self.complete && watch.should_stop() {
            self.complete = false;
            runner.stop();
        }
        if runner.submitted < work.next_look {
            return Ok(true);
        }
        work.next_look = runner.submitted + self.update_requests();
        let written = runner.written;
        self.listen(written);
        self.report(work.runner.share_done(), watch);
        if self.series.advance(&self.drive, &self.plan, written) {
            work.runner.stop();
        }
        Ok(true)
    }

    fn end_in_time(&mut self, work: TimedStage, watch: &dyn ProgressObserver) -> Result<(), LabError> {
        let mut runner = work.runner;
        self.pages_read = runner.pages_read(&self.drive.device);
        self.end_workload(runner.written, runner.source(), watch);
        runner.close_logs()?;
        self.timed = Some(runner.finish());
        for reclaim in &mut self.drive.device.sink_mut().gc_log {
            assert!(reclaim.now >= self.filled.until, "the log was cleared when the workload began");
            reclaim.now -= self.filled.until;
        }
        Ok(())
    }

    /// Ends the workload: compares its writes with the counters and stores its measures.
    fn end_workload(&mut self, written: u64, source: Option<&dyn RequestSource>, watch: &dyn ProgressObserver) {
        self.report(1.0, watch);
        self.drive.assert_written(written);
        let most = self.plan.write_bytes().unwrap_or(u64::MAX).saturating_add(REQUEST_BYTES_MAX);
        assert!(written < most, "the workload ended when it had written enough");
        if let Some(source) = source {
            self.measures = self.drive.measures_of(source);
        }
        let log = self.drive.device.sink_mut().drive_log.take();
        assert_eq!(self.feedback.is_some(), log.is_some(), "the drive keeps a log if feedback reads it");
        if let Some((feedback, log)) = self.feedback.take().zip(log) {
            let heard = feedback.finish(log);
            self.measures.extend(heard.measures());
            self.feedback_result = Some(heard);
        }
    }

    /// Polls the event log for feedback, if due.
    fn listen(&mut self, written: u64) {
        let Some(feedback) = self.feedback.as_mut().filter(|feedback| feedback.is_due(written)) else {
            return;
        };
        let stats = self.drive.stats();
        let log = self.drive.device.sink_mut().drive_log.as_mut();
        feedback.read(log.expect("it was made when the workload began"), &stats, written);
    }

    /// Advances within a batch and the stride. Returns false after the last write or request.
    fn advance_untimed(
        &mut self,
        work: &mut UntimedStage,
        stride: StepLimit,
        watch: &dyn ProgressObserver,
    ) -> Result<bool, LabError> {
        let target = self.plan.write_bytes().unwrap_or(u64::MAX);
        if watch.should_stop() {
            self.complete = false;
            self.drive.write_out();
            return Ok(false);
        }
        if work.to_skip > 0 {
            self.pages_named += work.skip_executed()? * PASSED_PAGES;
            return Ok(true);
        }
        if work.is_carried_out() && (work.written >= target || !self.fetch_requests(work)?) {
            self.drive.write_out();
            return Ok(false);
        }
        let batch_end = work.batch_end();
        let end =
            batch_end.min(work.executed + usize::try_from(stride.requests).unwrap_or(usize::MAX).min(BATCH_REQUESTS));
        let most = target.min(stride.host_bytes);
        let page_bytes = self.plan.layout.page_bytes;
        let pages_most = self.pages_named.saturating_add(stride.pages);
        while work.executed < end && work.written < most && self.pages_named < pages_most {
            let request = &work.requests[work.executed];
            self.pages_named += u64::from(request.bytes) / page_bytes + 1;
            work.written += self.drive.execute(request);
            work.executed += 1;
        }
        // Larger batches divide better between threads.
        let may_wait = work.written < target && !self.series.is_due(work.written);
        if !(self.takes_ahead && may_wait) {
            self.drive.write_out();
        } else if work.is_carried_out() {
            work.write_out_and_take(&mut self.drive)?;
        } else {
            if self.pages_named >= pages_most {
                self.drive.write_out();
            }
            return Ok(true);
        }
        // Updates occur only at batch ends, so results do not depend on step length.
        if work.executed < batch_end && work.written < target {
            return Ok(true);
        }
        self.listen(work.written);
        if self.series.advance(&self.drive, &self.plan, work.written) {
            return Ok(false);
        }
        if work.is_carried_out() {
            self.report(
                match self.plan.write_bytes() {
                    Some(bytes) => work.written as f64 / bytes as f64,
                    None => work.source.share_done().unwrap_or(0.0),
                },
                watch,
            );
        }
        Ok(work.written < target)
    }

    /// Takes the next requests. Returns false at the end of the workload.
    fn fetch_requests(&mut self, work: &mut UntimedStage) -> Result<bool, LabError> {
        // Self-reported measures must not include prefetched requests. Job files report none.
        let ahead = match (&self.placer, self.plan.cell().workload.jobs()) {
            _ if self.feedback.is_some() => LISTENED_REQUESTS,
            _ if self.takes_ahead => AHEAD_REQUESTS,
            (Some(_), Some(_)) => PLACED_REQUESTS,
            _ => BATCH_REQUESTS,
        };
        if work.fetch(ahead)? == 0 {
            return Ok(false);
        }
        work.check_writes(self.plan.cell())?;
        if let Some(placer) = &self.placer {
            placer.place(&mut work.requests)?;
        }
        Ok(true)
    }
}
