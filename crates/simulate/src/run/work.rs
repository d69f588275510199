//! One run from its first write to its result.

use std::ops::Deref;

use ssd::{Device, DeviceConfig, Endurance, Lpn, Nanos, RecentEvents, Stats, Write};
use workload::{Measure, Operation, Request, Source};

use super::Options;
use super::plan::{RunPlan, Workload};
use super::progress::Watch;
use super::result::{CellResult, Sample};
use crate::feedback::{Feedback, FeedbackResult};
use crate::finding;
use crate::live::{Phase, Position};
use crate::mapper::Mapper;
use crate::policy::Placer;
use crate::recorder::Recorder;
use crate::steady::SteadyState;
use crate::timed::Runner;
use crate::timed::result::TimedResult;
use experiment::cell::RunSettings;
use experiment::error::LabError;
use experiment::twin::{self, TwinOrigin};

/// Requests taken from the workload at a time.
const BATCH_REQUESTS: usize = 1024;
/// Requests of a job file that a placement policy is asked about at a time: asking costs as much as writing some
/// hundred of them.
const PLACED_REQUESTS: usize = 8 * BATCH_REQUESTS;
/// Requests that are carried out together where another thread takes the next ones meanwhile.
const AHEAD_REQUESTS: usize = 16 * BATCH_REQUESTS;
/// Logical pages of the smallest drive whose run is worth a second thread: its maps fit no cache.
const LARGE_PAGES_MIN: u32 = 1 << 22;
/// Requests without a write among them after which a run that ends when enough is written is given up: seconds of work.
pub const UNWRITTEN_REQUESTS_MAX: usize = 1 << 24;
/// No request is longer: their bytes have 32 bits.
const REQUEST_BYTES_MAX: u64 = u32::MAX as u64;
/// Pieces of what dies and channels do that are kept for who watches.
const ACTIVITY_KEPT: usize = 1 << 16;
/// Pages of the longest step, a fraction of a second of work: whoever stops a run is heard after each.
pub(crate) const STEP_PAGES: u64 = 1 << 19;
/// Pages that cost about as much as to produce a request and pass over it.
const PASSED_PAGES: u64 = 4;
/// Requests between two moments at which somebody who listens to the drive may read its log and change where data goes.
const LISTENED_REQUESTS: usize = 64;

/// How far a step of a run goes, at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stride {
    /// Requests; extents while the drive is filled before the workload.
    pub(crate) requests: u64,
    /// Bytes written by the host since the workload began.
    pub(crate) host_bytes: u64,
    /// Pages that requests name; the last one may go beyond.
    pub(crate) pages: u64,
}

impl Stride {
    /// As far as is good for speed.
    const LONGEST: Stride = Stride {
        requests: u64::MAX,
        host_bytes: u64::MAX,
        pages: STEP_PAGES,
    };
}

/// Runs a cell with so many threads, if it can use more than one, on a new device or on the one that its snapshot holds, and saves
/// the device if that is asked for.
pub(super) fn run_cell(
    plan: &RunPlan,
    options: Options<'_>,
    threads: usize,
    watch: &dyn Watch,
) -> Result<CellResult, LabError> {
    let mut run = Run::begin(plan, options)?;
    run.use_threads(threads);
    while run.step(Stride::LONGEST, watch)? {}
    let mut result = run.result();
    if let Some(path) = options.save {
        let origin = TwinOrigin {
            scale: plan.scale,
            device: plan.cell().device.clone(),
        };
        let saved = run.device.replace_sink(()).0.save_with_note(path, &origin.note());
        // What was measured is not lost with it.
        result.unsaved = saved.err().map(|error| match error {
            ssd::SnapshotError::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        });
    }
    Ok(result)
}

/// A run on its way. It goes on in steps, and what comes out does not depend on how long they are.
pub(crate) struct Run<P> {
    device: Device<Recorder>,
    mapper: Mapper,
    plan: P,
    /// Says where writes go, instead of the workload.
    placer: Option<Placer>,
    writes: Vec<Write>,
    /// Whether the next requests are taken while they are carried out; a run that does goes on in the longest steps alone.
    takes_ahead: bool,
    stage: Stage,
    /// Whether it wrote everything it should; otherwise it was stopped.
    complete: bool,
    /// What was written before the workload.
    filled: Filled,
    /// Where the workload ended, if it has.
    ended_at: Position,
    /// Counters when the workload began.
    start: Stats,
    samples: Vec<Sample>,
    timed: Option<TimedResult>,
    feedback: Option<Feedback>,
    /// What who listened read and did, at the end.
    heard: Option<FeedbackResult>,
    measures: Vec<Measure>,
    /// See [`CellResult::steady`].
    steady: Option<SteadyState>,
    /// See [`CellResult::pages_read`].
    pages_read: [u64; 2],
    /// Pages that requests named so far, those that were passed over included.
    pages_named: u64,
    /// Work of the workload that the watch knows of.
    reported: u64,
}

/// Where a run is.
enum Stage {
    /// The drive is filled before the workload.
    Filling(Box<Fill>, Workload),
    /// As fast as the device takes requests.
    Untimed(Untimed),
    /// In virtual time.
    Timed(Box<InTime>),
    /// Nothing more comes.
    Ended,
}

/// The drive is written in order and without directives, in extents of a mebibyte or less.
struct Fill {
    /// When the extents in flight are done, if the device has timing.
    completions: [Nanos; Fill::IN_FLIGHT],
    now: Nanos,
    extents: usize,
    written: u64,
    pages_left: u64,
    next_lpn: u32,
}

/// What was written before the workload.
#[derive(Clone, Copy, Default)]
struct Filled {
    bytes: u64,
    extents: u64,
    /// The device's time when the workload began.
    until: Nanos,
}

impl Fill {
    /// Extents in flight, if the device has timing.
    const IN_FLIGHT: usize = 32;
    /// Longer than any buffer takes to be programmed and any reclaim unit to be erased.
    const REST_NS: Nanos = 10_000_000_000;
    /// Extents of a step at most.
    const STEP_EXTENTS: u64 = 1024;
}

/// A workload whose requests are taken as fast as the device takes them.
struct Untimed {
    source: Box<dyn Source>,
    /// What was taken from it, and how much of that is carried out.
    requests: Vec<Request>,
    done: usize,
    /// What was taken meanwhile and comes next.
    coming: Vec<Request>,
    written: u64,
    /// Requests taken from it.
    taken: u64,
    /// Of those, how many a new source has yet to give again before it is where the run is.
    behind: u64,
    /// Requests since one that writes.
    since_write: usize,
    next_sample: u64,
}

/// A workload in virtual time.
struct InTime {
    runner: Runner,
    begins_at: Nanos,
    /// Requests submitted at the next look at what was written.
    next_look: u64,
    next_sample: u64,
}

impl<P: Deref<Target = RunPlan>> Run<P> {
    /// A run at its beginning.
    pub(crate) fn begin(plan: P, options: Options<'_>) -> Result<Run<P>, LabError> {
        let mut device = plan.device()?;
        device.set_victim_policy(options.policies.victim.map(|make| make()));
        let mut workload = plan.workload()?;
        if let (Workload::Timed(runner), Some(file)) = (&mut workload, plan.cell().workload.jobs())
            && options.fio_logs
        {
            runner.open_logs(file)?;
        }
        let layout = &plan.layout;
        let recorder = Recorder::new(options.keep_gc_log, plan.config.timing.is_some());
        let (device, ()) = device.replace_sink(recorder);
        let feedback = plan.cell().feedback.as_ref().zip(plan.owners.clone());
        let feedback =
            feedback.map(|(settings, owners)| Feedback::new(settings, owners, layout, plan.target.placement_count));
        let placement = options.policies.placement.map(|make| make());
        let placement = match &feedback {
            Some(feedback) => Some(feedback.redirection(placement)),
            None => placement,
        };
        let placer = placement.map(|policy| Placer::new(policy, layout.page_bytes, plan.target.placement_count));
        let pages_left = (plan.cell().run.prefill_capacities * f64::from(layout.logical_pages)) as u64;
        let fill = Fill {
            completions: [0; Fill::IN_FLIGHT],
            now: 0,
            extents: 0,
            written: 0,
            pages_left,
            next_lpn: 0,
        };
        Ok(Run {
            start: device.stats().clone(),
            device,
            mapper: plan.mapper(),
            placer,
            writes: Vec::new(),
            takes_ahead: false,
            stage: Stage::Filling(Box::new(fill), workload),
            complete: true,
            filled: Filled::default(),
            ended_at: Position::default(),
            samples: Vec::new(),
            timed: None,
            feedback,
            heard: None,
            measures: Vec::new(),
            steady: None,
            pages_read: [0; 2],
            pages_named: 0,
            reported: 0,
            plan,
        })
    }

    /// Uses threads of the pool that no other run needs. They provide the memory of the maps of a large drive, and one takes
    /// the next requests while these are carried out. In virtual time, with feedback or with a policy each step depends on
    /// the one before, so there one thread does everything.
    fn use_threads(&mut self, threads: usize) {
        if threads < 2 || self.plan.layout.logical_pages < LARGE_PAGES_MIN {
            return;
        }
        let settings = self.settings();
        let to_write = settings.prefill_capacities + settings.write_capacities.unwrap_or(0.0);
        if to_write >= 1.0 {
            self.device.populate();
        }
        let is_of_use = self.plan.config.timing.is_none() && self.feedback.is_none() && self.placer.is_none();
        // What a workload measures of itself must not run ahead of what is written; job files measure nothing.
        self.takes_ahead = is_of_use && self.plan.cell().workload.jobs().is_some();
    }

    fn settings(&self) -> &RunSettings {
        &self.plan.cell().run
    }

    fn capacity_bytes(&self) -> u64 {
        self.plan.layout.capacity_bytes()
    }

    /// Goes on by a step; false if there is nothing more to do.
    ///
    /// # Errors
    /// What the workload reads cannot be read, or a placement policy fails; the run has then ended.
    pub(crate) fn step(&mut self, stride: Stride, watch: &dyn Watch) -> Result<bool, LabError> {
        assert!(stride.requests > 0, "a step goes somewhere");
        self.ended_at = self.position();
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Filling(mut fill, workload) => {
                let goes_on = self.fill_on(&mut fill, stride.requests, watch);
                self.stage = match goes_on {
                    true => Stage::Filling(fill, workload),
                    false => self.begin_workload(&fill, workload),
                };
                Ok(true)
            }
            Stage::Untimed(mut work) => {
                if self.work_on(&mut work, stride, watch)? {
                    self.stage = Stage::Untimed(work);
                    return Ok(true);
                }
                self.ended_at = Position {
                    host_bytes: work.written,
                    requests: work.carried_out(),
                    ..self.ended_at
                };
                self.end_workload(work.written, Some(&*work.source), watch);
                Ok(false)
            }
            Stage::Timed(mut work) => {
                if self.work_on_in_time(&mut work, stride, watch)? {
                    self.stage = Stage::Timed(work);
                    return Ok(true);
                }
                self.end_in_time(*work, watch)?;
                Ok(false)
            }
            Stage::Ended => Ok(false),
        }
    }

    /// Tells the watch that this share of the workload is done.
    fn report(&mut self, share: f64, watch: &dyn Watch) {
        let work = (share.clamp(0.0, 1.0) * self.plan.workload_work as f64) as u64;
        watch.advanced(work.saturating_sub(self.reported));
        self.reported = self.reported.max(work);
    }

    /// Goes on filling the drive; false if that is done.
    fn fill_on(&mut self, fill: &mut Fill, extents: u64, watch: &dyn Watch) -> bool {
        let layout = &self.plan.layout;
        let (page_bytes, logical_pages) = (layout.page_bytes, layout.logical_pages);
        let extent = ((1 << 20) / page_bytes).max(1) as u32;
        for _ in 0..extents.min(Fill::STEP_EXTENTS) {
            if fill.pages_left == 0 || watch.stopped() {
                self.write_out();
                return false;
            }
            let pages = extent
                .min(logical_pages - fill.next_lpn)
                .min(fill.pages_left.min(u64::from(u32::MAX)) as u32);
            let host_bytes = u64::from(pages) * page_bytes;
            let write = Write {
                first: Lpn(fill.next_lpn),
                pages,
                host_bytes,
                placement: self.mapper.default_placement(&mut self.device),
            };
            if self.plan.config.timing.is_none() {
                self.writes.push(write);
            } else {
                let slot = &mut fill.completions[fill.extents % Fill::IN_FLIGHT];
                fill.now = fill.now.max(*slot);
                let done = self.device.write(fill.now, &write);
                *slot = done.expect("the extent is within the device").at;
            }
            fill.extents += 1;
            watch.advanced(host_bytes);
            fill.written += host_bytes;
            fill.next_lpn = (fill.next_lpn + pages) % logical_pages;
            fill.pages_left -= u64::from(pages);
        }
        self.write_out();
        true
    }

    /// The drive is filled: lets it do what it owes, and begins to count.
    fn begin_workload(&mut self, fill: &Fill, workload: Workload) -> Stage {
        assert_eq!(
            self.stats().host_bytes_written(),
            fill.written,
            "the device counts what filled it, and nobody else wrote"
        );
        self.start = self.device.stats().clone();
        let is_timed = self.plan.config.timing.is_some();
        let begins_at = match fill.completions.into_iter().max() {
            Some(last) if fill.extents > 0 && is_timed => last + Fill::REST_NS,
            _ => 0,
        };
        self.filled = Filled {
            bytes: fill.written,
            extents: fill.extents as u64,
            until: begins_at,
        };
        let source = workload.source();
        let ranges = source.map(Source::ranges).unwrap_or_default();
        let recorder = self.device.sink_mut();
        recorder.gc_log.clear();
        recorder.recent.clear();
        recorder.watch_ranges(ranges, self.plan.layout.page_bytes);
        if let Some(feedback) = &self.feedback {
            let entries = self.plan.config.events.log_entries;
            let log = feedback.drive_log(&self.plan.layout, &self.plan.handles, entries, &self.start);
            recorder.drive_log = Some(log);
        }
        let next_sample = self.sample_bytes();
        match workload {
            Workload::Untimed(source) => Stage::Untimed(Untimed::new(source, next_sample)),
            Workload::Timed(mut runner) => {
                runner.begin(begins_at, &self.device);
                runner.set_placer(self.placer.take());
                Stage::Timed(Box::new(InTime {
                    next_look: self.look_requests(),
                    runner: *runner,
                    begins_at,
                    next_sample,
                }))
            }
        }
    }

    /// Requests in virtual time between two looks at what was written; fewer if somebody listens who must not come late.
    fn look_requests(&self) -> u64 {
        self.feedback.as_ref().map_or(4096, |_| LISTENED_REQUESTS as u64)
    }

    /// Goes on in virtual time; false if it has ended.
    fn work_on_in_time(&mut self, work: &mut InTime, stride: Stride, watch: &dyn Watch) -> Result<bool, LabError> {
        let runner = &mut work.runner;
        let to_look = work.next_look.saturating_sub(runner.submitted()).max(1);
        let pages_before = runner.pages_named();
        let stride = Stride {
            requests: to_look.min(stride.requests),
            ..stride
        };
        let goes_on = runner.advance(&mut self.device, stride)?;
        self.pages_named += runner.pages_named() - pages_before;
        if !goes_on {
            return Ok(false);
        }
        if self.complete && watch.stopped() {
            self.complete = false;
            runner.stop();
        }
        if runner.submitted() < work.next_look {
            return Ok(true);
        }
        work.next_look = runner.submitted() + self.look_requests();
        let written = runner.written();
        self.listen(written);
        self.report(work.runner.share_done(), watch);
        if self.sample_due(written, &mut work.next_sample) && self.is_steady() {
            work.runner.stop();
        }
        Ok(true)
    }

    fn end_in_time(&mut self, work: InTime, watch: &dyn Watch) -> Result<(), LabError> {
        let mut runner = work.runner;
        self.ended_at = Position {
            host_bytes: runner.written(),
            requests: runner.submitted(),
            now_ns: runner.now().saturating_sub(work.begins_at),
            ..self.ended_at
        };
        self.pages_read = runner.pages_read(&self.device);
        self.end_workload(runner.written(), runner.source(), watch);
        runner.close_logs()?;
        self.timed = Some(runner.finish());
        for reclaim in &mut self.device.sink_mut().gc_log {
            reclaim.now -= work.begins_at;
        }
        Ok(())
    }

    /// The workload has ended: holds what it wrote against the counters, and keeps what it measured.
    fn end_workload(&mut self, written: u64, source: Option<&dyn Source>, watch: &dyn Watch) {
        self.report(1.0, watch);
        self.check_written(written);
        if let Some(source) = source {
            self.measures = self.measures_of(source);
        }
        let log = self.device.sink_mut().drive_log.take();
        if let Some((feedback, log)) = self.feedback.take().zip(log) {
            let heard = feedback.finish(log);
            self.measures.extend(heard.measures());
            self.heard = Some(heard);
        }
    }

    /// Reads the drive's log, if somebody does and it is time.
    fn listen(&mut self, written: u64) {
        let Some(feedback) = self.feedback.as_mut().filter(|feedback| feedback.is_due(written)) else {
            return;
        };
        let stats = self.device.stats().since(&self.start);
        let log = self.device.sink_mut().drive_log.as_mut();
        feedback.read(log.expect("it was made when the workload began"), &stats, written);
    }

    /// Host bytes between two samples.
    fn sample_bytes(&self) -> u64 {
        ((self.settings().sample_capacities * self.capacity_bytes() as f64) as u64).max(1)
    }

    /// Takes a sample if it is time; says whether it was.
    fn sample_due(&mut self, written: u64, next_sample: &mut u64) -> bool {
        if written < *next_sample {
            return false;
        }
        let every = self.sample_bytes();
        let sample = self.sample();
        self.samples.push(sample);
        *next_sample = written - written % every + every;
        true
    }

    /// Goes on to the end of a batch at most, or as far as the stride goes; false if enough is written, or nothing more comes.
    fn work_on(&mut self, work: &mut Untimed, stride: Stride, watch: &dyn Watch) -> Result<bool, LabError> {
        let limits = self.settings().limits(self.capacity_bytes());
        let target = limits.write_bytes.unwrap_or(u64::MAX);
        if watch.stopped() {
            self.complete = false;
            self.write_out();
            return Ok(false);
        }
        if work.behind > 0 {
            let behind = work.behind;
            let goes_on = work.pass_over();
            self.pages_named += (behind - work.behind) * PASSED_PAGES;
            return goes_on;
        }
        if work.is_carried_out() && (work.written >= target || !self.take_requests(work)?) {
            return Ok(false);
        }
        let batch_end = work.batch_end();
        let end = batch_end.min(
            work.done
                + usize::try_from(stride.requests)
                    .unwrap_or(usize::MAX)
                    .min(BATCH_REQUESTS),
        );
        let most = target.min(stride.host_bytes);
        let page_bytes = self.plan.layout.page_bytes;
        let pages_most = self.pages_named.saturating_add(stride.pages);
        while work.done < end && work.written < most && self.pages_named < pages_most {
            let request = &work.requests[work.done];
            self.pages_named += u64::from(request.bytes) / page_bytes + 1;
            work.written += self.take(request);
            work.done += 1;
        }
        // The more there is, the better it can be shared.
        if self.takes_ahead && work.written < target && work.written < work.next_sample {
            if !work.is_carried_out() {
                if self.pages_named >= pages_most {
                    self.write_out();
                }
                return Ok(true);
            }
            self.write_out_and_take(work)?;
        } else {
            self.write_out();
        }
        // What is looked at stands at the ends of batches alone, however long the steps are.
        if work.done < batch_end && work.written < target {
            return Ok(true);
        }
        self.listen(work.written);
        if self.sample_due(work.written, &mut work.next_sample) && self.is_steady() {
            return Ok(false);
        }
        if work.is_carried_out() {
            self.report(
                match limits.write_bytes {
                    Some(bytes) => work.written as f64 / bytes as f64,
                    None => work.source.share_done().unwrap_or(0.0),
                },
                watch,
            );
        }
        Ok(work.written < target)
    }

    /// Takes the next requests from the workload; false if there are none: it wrote all it has.
    fn take_requests(&mut self, work: &mut Untimed) -> Result<bool, LabError> {
        // What a workload measures of itself must not run ahead of what is written; job files measure nothing.
        let ahead = match (&self.placer, self.plan.cell().workload.jobs()) {
            _ if self.feedback.is_some() => LISTENED_REQUESTS,
            _ if self.takes_ahead => AHEAD_REQUESTS,
            (Some(_), Some(_)) => PLACED_REQUESTS,
            _ => BATCH_REQUESTS,
        };
        if work.take(ahead)? == 0 {
            return Ok(false);
        }
        if work.since_write > UNWRITTEN_REQUESTS_MAX && self.settings().write_capacities.is_some() {
            let problem = "the workload reads on and on without a write, so what --write asks for is never written; leave --write out, or let it write";
            return Err(LabError::invalid(&self.plan.cell().key.to_string(), problem));
        }
        if let Some(placer) = &self.placer {
            placer.place(&mut work.requests)?;
        }
        Ok(true)
    }

    /// What the workload measured, and what the device did for each part of the drive that belongs to somebody.
    fn measures_of(&self, workload: &dyn Source) -> Vec<Measure> {
        let mut measures = workload.measures();
        let page_bytes = self.plan.layout.page_bytes as f64;
        for (range, copied) in self.device.sink().copies() {
            let name = |part: &str| format!("{}.{part}", range.name);
            let bytes_copied = copied as f64 * page_bytes;
            measures.push(Measure::new(name("bytes_copied"), bytes_copied));
            let written = measures.iter().find(|measure| measure.name == name("bytes_written"));
            if let Some(written) = written.map(|measure| measure.value).filter(|written| *written > 0.0) {
                measures.push(Measure::new(
                    name("write_amplification"),
                    (written + bytes_copied) / written,
                ));
            }
        }
        measures
    }

    /// Queues a write, carries out a trim; returns the bytes written.
    fn take(&mut self, request: &Request) -> u64 {
        match request.operation {
            Operation::Read => 0,
            Operation::Write => {
                self.writes.push(self.mapper.write(&mut self.device, request));
                u64::from(request.bytes)
            }
            Operation::Trim => {
                self.write_out();
                if let Some((first, pages)) = self.mapper.whole_pages(request) {
                    let deallocated = self.device.deallocate(0, first, pages);
                    let _ = deallocated.expect("requests are within the device");
                }
                0
            }
        }
    }

    /// Carries out the writes, and takes the next requests meanwhile.
    fn write_out_and_take(&mut self, work: &mut Untimed) -> Result<(), LabError> {
        let Untimed { source, coming, .. } = work;
        assert!(coming.is_empty(), "what was taken is carried out before more is");
        let (device, writes) = (&mut self.device, &mut self.writes);
        let ((), came) = rayon::join(
            || write_batch(device, writes),
            || source.next_batch(coming, AHEAD_REQUESTS),
        );
        came?;
        Ok(())
    }

    fn write_out(&mut self) {
        write_batch(&mut self.device, &mut self.writes);
    }

    /// Holds what was given to the device against what it counts, and against how much should be written.
    ///
    /// # Panics
    /// They differ, which would be a mistake in the accounts of the run.
    fn check_written(&self, written: u64) {
        assert!(self.writes.is_empty(), "every write was carried out");
        let counted = self.stats().host_bytes_written();
        assert_eq!(counted, written, "the device counts what the workload wrote");
        let limits = self.settings().limits(self.capacity_bytes());
        let most = limits.write_bytes.unwrap_or(u64::MAX).saturating_add(REQUEST_BYTES_MAX);
        assert!(written < most, "the workload ended when it had written enough");
    }

    /// The counters since the workload began.
    pub(crate) fn stats(&self) -> Stats {
        self.device.stats().since(&self.start)
    }

    fn sample(&self) -> Sample {
        let stats = self.stats();
        let occupancy = self.device.occupancy();
        let (host_bytes, media_bytes) = (stats.host_bytes_written(), stats.media_bytes_written());
        let before = self
            .samples
            .last()
            .map(|sample| (sample.host_bytes, sample.media_bytes));
        let (host_before, media_before) = before.unwrap_or_default();
        assert!(
            host_bytes >= host_before && media_bytes >= media_before,
            "what was written is not unwritten"
        );
        Sample {
            host_bytes,
            media_bytes,
            owners: stats.handles.iter().copied().chain([stats.shared]).collect(),
            units: occupancy.iter().map(|row| row.units).collect(),
            valid_pages: occupancy.iter().map(|row| row.valid_pages).collect(),
        }
    }

    /// Whether the run goes on until it is steady, and is. It is asked at every sample, and looks after every drive-write.
    fn is_steady(&mut self) -> bool {
        let capacity_bytes = self.capacity_bytes();
        let [.., before, last] = &self.samples[..] else {
            return false;
        };
        let drive_writes = |sample: &Sample| sample.host_bytes / capacity_bytes;
        if self.settings().until.is_none() || drive_writes(before) == drive_writes(last) {
            return false;
        }
        self.steady = SteadyState::of(&self.samples, capacity_bytes);
        self.steady.is_some_and(|state| state.reached)
    }

    fn endurance(&self) -> Option<Endurance> {
        let scale = f64::from(self.plan.scale.0);
        self.device.endurance().map(|endurance| Endurance {
            host_bytes_total: endurance.host_bytes_total * scale,
            host_bytes_left: endurance.host_bytes_left * scale,
            ..endurance
        })
    }

    /// What was measured; the run is not told on after that.
    fn result(&mut self) -> CellResult {
        let samples = std::mem::take(&mut self.samples);
        CellResult {
            gc_log: std::mem::take(&mut self.device.sink_mut().gc_log),
            measures: std::mem::take(&mut self.measures),
            timed: self.timed.take(),
            feedback: self.heard.take(),
            ..self.result_with(samples)
        }
    }

    /// The counters and the series as of now.
    fn result_with(&self, mut samples: Vec<Sample>) -> CellResult {
        let stats = self.stats();
        if samples
            .last()
            .is_none_or(|sample| sample.host_bytes < stats.host_bytes_written())
        {
            samples.push(self.sample());
        }
        assert_eq!(
            samples.last().map(|sample| sample.host_bytes),
            Some(stats.host_bytes_written()),
            "the series ends with the run"
        );
        CellResult {
            key: self.plan.cell().key.clone(),
            seed: self.plan.cell().seed,
            ensemble: self.plan.cell().ensemble,
            scale: self.plan.scale,
            search: None,
            unsaved: None,
            complete: self.complete && matches!(self.stage, Stage::Ended),
            capacity_bytes: self.capacity_bytes(),
            superblocks: self.plan.layout.superblocks(),
            unit_pages: twin::unit_pages(&self.plan.layout),
            spare_held: finding::spare_held(&self.device),
            until: self.settings().until,
            steady: self.steady,
            without_effect: self.plan.without_effect(),
            pages_read: self.pages_read,
            stats,
            samples,
            gc_log: Vec::new(),
            wear: self.device.wear(),
            endurance: self.endurance(),
            measures: Vec::new(),
            timed: None,
            feedback: None,
        }
    }
}

/// A moment of a run without time: the drive, and how much of the workload was carried out.
pub(crate) struct Checkpoint {
    device: Device,
    recorder: Recorder,
    start: Stats,
    samples: Vec<Sample>,
    steady: Option<SteadyState>,
    filled: Filled,
    written: u64,
    taken: u64,
    since_write: usize,
    next_sample: u64,
}

impl Checkpoint {
    /// Bytes that the workload had written.
    pub(crate) fn host_bytes(&self) -> u64 {
        self.written
    }
}

/// For who watches a run.
impl<P: Deref<Target = RunPlan>> Run<P> {
    pub(crate) fn plan(&self) -> &P {
        &self.plan
    }

    pub(crate) fn device(&self) -> &Device<Recorder> {
        &self.device
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Keeps what happens from now on.
    ///
    /// # Panics
    /// The workload has begun.
    pub(crate) fn keep_live_log(&mut self) {
        self.device.sink_mut().live_log = Some(RecentEvents::default());
        let Stage::Filling(_, workload) = &mut self.stage else {
            panic!("who watches is there from the beginning");
        };
        if let Workload::Timed(runner) = workload {
            runner.keep_request_log();
            self.device.keep_activity(ACTIVITY_KEPT);
        }
    }

    /// What was measured in virtual time so far.
    pub(crate) fn timed_now(&self) -> Option<TimedResult> {
        match &self.stage {
            Stage::Timed(work) => Some(work.runner.measured()),
            _ => self.timed.clone(),
        }
    }

    /// What happened.
    ///
    /// # Panics
    /// Nobody asked for it to be kept.
    pub(crate) fn live_log(&mut self) -> &mut RecentEvents {
        let log = self.device.sink_mut().live_log.as_mut();
        log.expect("what happens is kept")
    }

    /// The device's time when the workload began; 0 before, and without time.
    pub(crate) fn begun_at(&self) -> Nanos {
        self.filled.until
    }

    pub(crate) fn phase(&self) -> Phase {
        match &self.stage {
            Stage::Filling(..) => Phase::Filling,
            Stage::Untimed(_) | Stage::Timed(_) => Phase::Running,
            Stage::Ended => Phase::Ended,
        }
    }

    /// Pages that requests named so far: a measure of work.
    pub(crate) fn pages_named(&self) -> u64 {
        self.pages_named
    }

    /// Extents that were written before the workload.
    pub(crate) fn extents_filled(&self) -> u64 {
        match &self.stage {
            Stage::Filling(fill, _) => fill.extents as u64,
            _ => self.filled.extents,
        }
    }

    pub(crate) fn position(&self) -> Position {
        match &self.stage {
            Stage::Filling(fill, _) => Position {
                filled_bytes: fill.written,
                ..Position::default()
            },
            Stage::Untimed(work) => Position {
                filled_bytes: self.filled.bytes,
                host_bytes: work.written,
                requests: work.carried_out(),
                now_ns: 0,
            },
            Stage::Timed(work) => Position {
                filled_bytes: self.filled.bytes,
                host_bytes: work.runner.written(),
                requests: work.runner.submitted(),
                now_ns: work.runner.now().saturating_sub(work.begins_at),
            },
            Stage::Ended => Position {
                filled_bytes: self.filled.bytes,
                ..self.ended_at
            },
        }
    }

    /// What was measured so far.
    pub(crate) fn result_now(&self) -> CellResult {
        let source = match &self.stage {
            Stage::Untimed(work) => Some(&*work.source),
            Stage::Timed(work) => work.runner.source(),
            Stage::Filling(..) | Stage::Ended => None,
        };
        CellResult {
            measures: source.map_or_else(|| self.measures.clone(), |source| self.measures_of(source)),
            timed: self.timed_now(),
            feedback: self.heard.clone(),
            ..self.result_with(self.samples.clone())
        }
    }

    /// Whether the run can be set back to this moment: between two batches, without time, and where nobody decides from outside.
    pub(crate) fn can_checkpoint(&self) -> bool {
        matches!(&self.stage, Stage::Untimed(work) if work.is_carried_out()) && self.placer.is_none()
    }

    /// This moment, if the run can be set back to it and the system has memory for it.
    pub(crate) fn checkpoint(&self) -> Option<Checkpoint> {
        let Stage::Untimed(work) = &self.stage else {
            return None;
        };
        if !self.can_checkpoint() {
            return None;
        }
        Some(Checkpoint {
            device: self.device.try_clone().ok()?,
            recorder: self.device.sink().counts(),
            start: self.start.clone(),
            samples: self.samples.clone(),
            steady: self.steady,
            filled: self.filled,
            written: work.written,
            taken: work.taken,
            since_write: work.since_write,
            next_sample: work.next_sample,
        })
    }

    /// Goes back, or on, to a moment of this run.
    ///
    /// # Errors
    /// What the workload reads cannot be read any more, or there is no memory.
    pub(crate) fn set_back(&mut self, to: &Checkpoint) -> Result<(), LabError> {
        // What was is let go of first, so that there are not two workloads.
        self.stage = Stage::Ended;
        let work = self.work_at(to)?;
        let device = to.device.try_clone().map_err(no_memory)?;
        let mut recorder = to.recorder.counts();
        recorder.live_log = self.device.sink_mut().live_log.take().map(|_| RecentEvents::default());
        self.device = device.replace_sink(recorder).0;
        self.writes.clear();
        self.start = to.start.clone();
        self.samples.clone_from(&to.samples);
        self.steady = to.steady;
        self.filled = to.filled;
        self.complete = true;
        self.measures.clear();
        self.stage = Stage::Untimed(work);
        assert_eq!(
            self.stats().host_bytes_written(),
            to.written,
            "the drive is that of the moment"
        );
        Ok(())
    }

    /// The workload of this run's plan, so many requests on: steps pass over them.
    fn work_at(&self, moment: &Checkpoint) -> Result<Untimed, LabError> {
        Ok(Untimed {
            written: moment.written,
            taken: moment.taken,
            behind: moment.taken,
            since_write: moment.since_write,
            ..Untimed::new(self.plan.source()?, moment.next_sample)
        })
    }

    /// The run with another plan from this moment on; `None` where the drive would have to be another one, or time counts.
    pub(crate) fn fork(&self, plan: &P) -> Result<Option<Run<P>>, LabError>
    where
        P: Clone,
    {
        let Stage::Untimed(work) = &self.stage else {
            return Ok(None);
        };
        let alike = DeviceConfig {
            gc: self.plan.config.gc.clone(),
            ..plan.config.clone()
        };
        let listens = self.placer.is_some() || plan.cell().feedback.is_some();
        if listens || alike != self.plan.config || plan.cell().snapshot.is_some() {
            return Ok(None);
        }
        let mut device = self.device.try_clone().map_err(no_memory)?;
        if device.set_gc_rules(&plan.config.gc).is_err() {
            return Ok(None);
        }
        let moment = Checkpoint {
            recorder: self.device.sink().counts(),
            start: self.start.clone(),
            samples: self.samples.clone(),
            steady: self.steady,
            filled: self.filled,
            written: work.written,
            taken: work.carried_out(),
            since_write: work.since_write,
            next_sample: work.next_sample,
            device,
        };
        let mut fork = Run::begin(plan.clone(), Options::default())?;
        fork.keep_live_log();
        fork.set_back(&moment)?;
        Ok(Some(fork))
    }
}

/// Carries out writes, so that none is left.
fn write_batch(device: &mut Device<Recorder>, writes: &mut Vec<Write>) {
    let _ = device.write_batch(0, writes).expect("requests are within the device");
    writes.clear();
}

fn no_memory(error: std::io::Error) -> LabError {
    LabError::invalid(
        "memory",
        format!("there is none for another drive: {error}; end another session or lane"),
    )
}

impl Untimed {
    fn new(source: Box<dyn Source>, next_sample: u64) -> Untimed {
        Untimed {
            source,
            requests: Vec::with_capacity(BATCH_REQUESTS),
            done: 0,
            coming: Vec::new(),
            written: 0,
            taken: 0,
            behind: 0,
            since_write: 0,
            next_sample,
        }
    }

    /// Passes over some of the requests that were carried out before; says whether the run goes on.
    fn pass_over(&mut self) -> Result<bool, LabError> {
        assert!(
            self.is_carried_out(),
            "requests are passed over before others are taken"
        );
        self.requests.clear();
        self.done = 0;
        let ahead = self.behind.min(AHEAD_REQUESTS as u64) as usize;
        let came = self.source.next_batch(&mut self.requests, ahead)? as u64;
        self.requests.clear();
        if came == 0 {
            // Another workload may be shorter.
            self.taken -= self.behind;
            self.behind = 0;
            return Ok(true);
        }
        self.behind -= came;
        Ok(true)
    }

    /// Whether everything that was taken from the source is carried out.
    fn is_carried_out(&self) -> bool {
        self.done == self.requests.len()
    }

    /// Requests that were carried out.
    fn carried_out(&self) -> u64 {
        self.taken - (self.requests.len() - self.done) as u64
    }

    /// Where the batch ends that is being carried out.
    fn batch_end(&self) -> usize {
        let next = (self.done / BATCH_REQUESTS + 1) * BATCH_REQUESTS;
        next.min(self.requests.len())
    }

    /// Takes up to so many requests from the source; returns how many came.
    fn take(&mut self, ahead: usize) -> Result<usize, LabError> {
        assert!(
            self.is_carried_out(),
            "requests are carried out before others are taken"
        );
        self.requests.clear();
        self.done = 0;
        std::mem::swap(&mut self.requests, &mut self.coming);
        let came = match self.requests.len() {
            0 => self.source.next_batch(&mut self.requests, ahead)?,
            came => came,
        };
        assert_eq!(came, self.requests.len(), "a source counts what it gives");
        self.taken += came as u64;
        let writes = |request: &Request| request.operation == Operation::Write;
        self.since_write = match self.requests.iter().any(writes) {
            true => 0,
            false => self.since_write + came,
        };
        Ok(came)
    }
}
