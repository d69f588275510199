//! Runs on an array: each drive is a device of its own, and the array translates between them.
//!
//! ```text
//! workload over the array's capacity -> array::Array -> member I/O -> ArrayDrives (a device each)
//!
//! without time: batches of requests, queues of the drives in parallel
//! in time:      closed loop, phases of a request one after the other, rebuilds beside it
//! ```
//!
//! Counters of a result are sums over all drives, also over those that failed. `ArrayResult` has
//! the bytes of the host and the drives one by one. Results do not depend on the number of threads.

mod drives;
mod timed;

use std::collections::VecDeque;

use array::{ArrayAction, ArrayEvent, MemberIo};
use ssd::WearSummary;
use workload::{IoRequest, RequestOperation};

use self::drives::ArrayDrives;
use self::timed::TimedLoop;
use super::array_result::{ArrayResult, RebuildResult};
use super::array_writes::{FillWrites, StripeWrites};
use super::options::ExecutionOptions;
use super::plan::RunPlan;
use super::progress::ProgressObserver;
use super::result::RunResult;
use super::series::{SampleSeries, SampledDrive as _};
use super::untimed::{BATCH_REQUESTS, UntimedStage};
use crate::timed::result::TimedResult;
use experiment::error::LabError;

/// Progress of a run on an array.
struct ArrayRun<'a> {
    plan: &'a RunPlan,
    drives: ArrayDrives<'a>,
    /// Member I/O of the current request.
    ios: Vec<MemberIo>,
    stripes: StripeWrites,
    /// Requests that the array receives next.
    ready: Vec<IoRequest>,
    /// Bytes of the workload: reads, writes, deallocations.
    host_bytes: [u64; 3],
    events: VecDeque<ArrayEvent>,
    rebuilds: Vec<RebuildResult>,
    series: SampleSeries,
    /// Bytes that the host had written at each sample.
    samples: Vec<u64>,
    complete: bool,
    reported: u64,
}

/// Runs a cell on an array.
///
/// # Errors
/// An option does not work on an array, or the workload cannot be read.
pub(super) fn run(
    plan: &RunPlan,
    options: ExecutionOptions<'_>,
    watch: &dyn ProgressObserver,
) -> Result<RunResult, LabError> {
    let refused = [
        ("save (--save-snapshot)", options.save.is_some()),
        ("a victim policy", options.policies.victim.is_some()),
        ("a placement policy", options.policies.placement.is_some()),
    ];
    if let Some((name, _)) = refused.into_iter().find(|(_, is_given)| *is_given) {
        return Err(LabError::invalid(name, "this option does not work on an array. Leave it out"));
    }
    let settings = plan.cell().array.as_ref().expect("the cell has an array");
    let drives = ArrayDrives::new(plan, settings)?;
    let mut run = ArrayRun {
        plan,
        drives,
        ios: Vec::new(),
        stripes: StripeWrites::default(),
        ready: Vec::new(),
        host_bytes: [0; 3],
        events: settings.events.iter().copied().collect(),
        rebuilds: Vec::new(),
        series: SampleSeries::new(plan),
        samples: Vec::new(),
        complete: true,
        reported: 0,
    };
    run.fill(watch);
    let buffered_before = run.drives.array.buffered_bytes();
    run.drives.begin_workload();
    let mut stage = UntimedStage::new(plan.source()?);
    let timed = match plan.is_timed() {
        true => Some(run.work_in_time(&mut stage, watch)?),
        false => {
            run.work(&mut stage, watch)?;
            run.flush();
            run.drives.execute_queues();
            None
        }
    };
    watch.add_completed(plan.workload_work.saturating_sub(run.reported));
    run.drives.assert_conserved();
    Ok(run.result(stage.source.measures(), buffered_before, timed))
}

impl ArrayRun<'_> {
    /// Writes the capacity of the array in order, without directives and without time.
    fn fill(&mut self, watch: &dyn ProgressObserver) {
        let drive_writes = self.plan.cell().run.precondition_drive_writes;
        for write in FillWrites::new(self.drives.array.capacity_bytes(), drive_writes) {
            if watch.should_stop() {
                break;
            }
            self.submit(&write);
            watch.add_completed(write.bytes.into());
        }
        self.flush();
        self.drives.execute_queues();
        self.host_bytes = [0; 3];
    }

    /// Counts a request and executes what is ready.
    fn submit(&mut self, request: &IoRequest) {
        self.host_bytes[request.operation as usize] += u64::from(request.bytes);
        self.stripes.submit(request, &self.drives.array, &mut self.ready);
        self.execute();
    }

    /// Executes the writes that wait for the rest of their stripes.
    fn flush(&mut self) {
        self.stripes.flush(&mut self.ready);
        self.execute();
    }

    /// Translates the ready requests and queues their member I/O.
    fn execute(&mut self) {
        for request in self.ready.drain(..) {
            self.ios.clear();
            self.drives.array.translate(&request, &mut self.ios);
            self.drives.queue(&self.ios);
        }
    }

    fn written(&self) -> u64 {
        self.host_bytes[RequestOperation::Write as usize]
    }

    /// Next event whose moment has come.
    fn due_event(&mut self) -> Option<ArrayEvent> {
        let due = |event: &ArrayEvent| {
            (event.at_drive_writes * self.plan.capacity_bytes() as f64) as u64 <= self.host_bytes[1]
        };
        self.events.front().is_some_and(due).then(|| self.events.pop_front()).flatten()
    }

    /// Drive whose rebuild an event begins. Fails or replaces the drive.
    fn begin_event(&mut self, event: ArrayEvent) -> Option<u16> {
        let (drive, gets_drive) = match event.action {
            ArrayAction::Scrub => return None,
            ArrayAction::Fail(drive) => (drive, self.drives.take_spare()),
            ArrayAction::Replace(drive) => (drive, true),
        };
        self.drives.fail(drive, if gets_drive { "replaced" } else { "failed" });
        gets_drive.then(|| {
            self.drives.insert(drive);
            drive
        })
    }

    /// Runs the workload without time.
    fn work(&mut self, stage: &mut UntimedStage, watch: &dyn ProgressObserver) -> Result<(), LabError> {
        let target = self.plan.write_bytes().unwrap_or(u64::MAX);
        loop {
            if watch.should_stop() {
                self.complete = false;
                return Ok(());
            }
            if self.written() >= target || stage.fetch(BATCH_REQUESTS)? == 0 {
                return Ok(());
            }
            stage.check_writes(self.plan.cell())?;
            for index in 0..stage.requests.len() {
                while let Some(event) = self.due_event() {
                    self.carry_out(event);
                }
                if self.written() < target {
                    let request = stage.requests[index];
                    self.submit(&request);
                }
            }
            stage.executed = stage.requests.len();
            self.drives.execute_queues();
            if self.look(stage, watch) {
                return Ok(());
            }
        }
    }

    /// Takes a sample if due, and reports progress. Returns true if steady state ends the run.
    fn look(&mut self, stage: &UntimedStage, watch: &dyn ProgressObserver) -> bool {
        let samples = self.series.samples.len();
        let is_steady = self.series.advance(&self.drives, self.plan, self.drives.written());
        if self.series.samples.len() > samples {
            self.samples.push(self.written());
        }
        let share = match self.plan.write_bytes() {
            Some(bytes) => self.written() as f64 / bytes as f64,
            None => stage.source.share_done().unwrap_or(0.0),
        };
        let work = (share.clamp(0.0, 1.0) * self.plan.workload_work as f64) as u64;
        watch.add_completed(work.saturating_sub(self.reported));
        self.reported = self.reported.max(work);
        is_steady
    }

    /// Carries out an event without time: a rebuild is complete before the next request.
    fn carry_out(&mut self, event: ArrayEvent) {
        self.flush();
        self.drives.execute_queues();
        let rebuilt = self.begin_event(event);
        if rebuilt.is_none() && event.action != ArrayAction::Scrub {
            return;
        }
        let mut done = RebuildResult {
            event: event.into(),
            host_bytes: self.written(),
            bytes_read: 0,
            bytes_written: 0,
            duration_ns: None,
        };
        for row in 0..self.drives.array.rows() {
            self.ios.clear();
            self.drives.resync_row(rebuilt, row, &mut self.ios);
            done.count(&self.ios);
            self.drives.queue(&self.ios);
        }
        self.drives.execute_queues();
        self.rebuilds.push(done);
    }

    /// Runs the workload in virtual time.
    fn work_in_time(
        &mut self,
        stage: &mut UntimedStage,
        watch: &dyn ProgressObserver,
    ) -> Result<TimedResult, LabError> {
        let mut clock = TimedLoop::new(self.plan);
        let target = self.plan.write_bytes().unwrap_or(u64::MAX);
        let (mut is_over, mut next) = (false, 0);
        loop {
            while !is_over && clock.has_room() {
                if clock.resync.is_none()
                    && let Some(event) = self.due_event()
                {
                    let rebuilt = self.begin_event(event);
                    clock.begin_event(event, rebuilt, self.written(), &mut self.drives);
                }
                if next == stage.requests.len() {
                    stage.executed = next;
                    next = 0;
                    is_over = watch.should_stop() || self.look(stage, watch);
                    self.complete &= !watch.should_stop();
                    is_over |= stage.fetch(BATCH_REQUESTS)? == 0;
                    stage.check_writes(self.plan.cell())?;
                }
                is_over |= self.written() >= target;
                if is_over {
                    break;
                }
                let request = stage.requests[next];
                next += 1;
                self.ios.clear();
                self.drives.array.translate(&request, &mut self.ios);
                self.host_bytes[request.operation as usize] += u64::from(request.bytes);
                clock.submit(&request, &self.ios, &mut self.drives);
            }
            if !clock.advance(&mut self.drives, &mut self.rebuilds) {
                break;
            }
        }
        stage.executed = stage.requests.len();
        Ok(clock.finish(&mut self.drives))
    }

    fn result(
        mut self,
        mut measures: Vec<workload::WorkloadMeasure>,
        buffered_before: u64,
        timed: Option<TimedResult>,
    ) -> RunResult {
        let plan = self.plan;
        let series = std::mem::take(&mut self.series);
        let steady = series.steady;
        let samples = series.finish(&self.drives);
        if samples.len() > self.samples.len() {
            self.samples.push(self.written());
        }
        assert_eq!(samples.len(), self.samples.len(), "each sample has the bytes of the host");
        let array = ArrayResult {
            settings: self.drives.array.settings().clone(),
            capacity_bytes: plan.capacity_bytes(),
            host_bytes: self.host_bytes,
            buffered_bytes: [buffered_before, self.drives.array.buffered_bytes()],
            causes: self.drives.causes.clone(),
            drives: self.drives.results(),
            rebuilds: self.rebuilds,
            events_done: self.drives.array.settings().events.len() - self.events.len(),
            samples: self.samples,
        };
        let working = || array.drives.iter().filter(|drive| drive.state == "works");
        let wear = working().map(|drive| drive.wear).reduce(WearSummary::plus);
        let of_plan = plan.result(self.drives.stats(), wear.expect("an array has a working drive"));
        let mut result = RunResult {
            complete: self.complete,
            superblocks: of_plan.superblocks * working().count() as u32,
            open_unit_share: self.drives.open_unit_share(),
            steady,
            pages_read: self.drives.pages_read(),
            samples,
            timed,
            array: Some(array),
            ..of_plan
        };
        measures.extend(figures(&result, plan.cell().run.tail_drive_writes));
        result.measures = measures;
        result
    }
}

/// Figures of an array for claims and tables.
fn figures(result: &RunResult, tail_drive_writes: f64) -> Vec<workload::WorkloadMeasure> {
    let array = result.array.as_ref().expect("it is the result of an array");
    let last = array.samples.last().copied().unwrap_or(0);
    let window = (tail_drive_writes * array.capacity_bytes as f64) as u64;
    let before = array.samples.partition_point(|host| host + window <= last);
    let (host, media) = match before.checked_sub(1) {
        Some(index) => (array.samples[index], result.samples[index].media_bytes),
        None => (0, 0),
    };
    let media_last = result.samples.last().map_or(0, |sample| sample.media_bytes);
    let tail_total = (media_last - media) as f64 / (last - host).max(1) as f64;
    array.measures(&result.stats, result.write_amplification(), tail_total)
}
