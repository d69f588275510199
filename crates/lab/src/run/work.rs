//! One run from its first write to its result.

use ssd::{Device, Endurance, Lpn, Nanos, Stats, Write};
use workload::{Measure, Operation, Request, Source};

use super::Options;
use super::plan::{RunPlan, Workload};
use super::progress::Watch;
use super::result::{CellResult, Sample};
use crate::cell::RunSettings;
use crate::error::LabError;
use crate::feedback::{Feedback, FeedbackResult};
use crate::mapper::Mapper;
use crate::policy::Placer;
use crate::recorder::Recorder;
use crate::steady::SteadyState;
use crate::timed::Runner;
use crate::timed::measure::TimedResult;
use crate::twin::{self, TwinOrigin};

/// Requests taken from the workload at a time.
const BATCH_REQUESTS: usize = 1024;
/// Requests of a job file that a placement policy is asked about at a time: asking costs as much as writing some
/// hundred of them.
const PLACED_REQUESTS: usize = 8 * BATCH_REQUESTS;
/// Requests without a write among them after which a run that ends when enough is written is given up: seconds of work.
pub(crate) const UNWRITTEN_REQUESTS_MAX: usize = 1 << 24;
/// No request is longer: their bytes have 32 bits.
const REQUEST_BYTES_MAX: u64 = u32::MAX as u64;
/// Requests between two moments at which somebody who listens to the drive may read its log and change where data goes.
const LISTENED_REQUESTS: usize = 64;

/// Runs a cell, on a new device or on the one that its snapshot holds, and saves the device if that is asked for.
pub(super) fn run_cell(plan: &RunPlan, options: Options<'_>, watch: &dyn Watch) -> Result<CellResult, LabError> {
    let mut device = plan.device()?;
    device.set_victim_policy(options.policies.victim.map(|make| make()));
    let mut workload = plan.workload()?;
    if let (Workload::Timed(runner), Some(file)) = (&mut workload, plan.cell().workload.jobs())
        && options.fio_logs
    {
        runner.open_logs(file)?;
    }
    let mut run = Run::begin(plan, device, options, watch);
    let begins_at = run.prefill();
    let complete = match workload {
        Workload::Timed(runner) => run.work_in_time(*runner, begins_at)?,
        Workload::Untimed(source) => run.work(source)?,
    };
    let mut result = run.result(complete);
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

struct Run<'a> {
    device: Device<Recorder>,
    mapper: Mapper,
    plan: &'a RunPlan,
    /// Says where writes go, instead of the workload.
    placer: Option<Placer>,
    writes: Vec<Write>,
    /// Counters when the workload began.
    start: Stats,
    samples: Vec<Sample>,
    timed: Option<TimedResult>,
    feedback: Option<Feedback>,
    measures: Vec<Measure>,
    /// See [`CellResult::steady`].
    steady: Option<SteadyState>,
    /// See [`CellResult::pages_read`].
    pages_read: [u64; 2],
    /// Work of the workload that the watch knows of.
    reported: u64,
    watch: &'a dyn Watch,
}

impl<'a> Run<'a> {
    fn begin(plan: &'a RunPlan, device: Device, options: Options<'_>, watch: &'a dyn Watch) -> Run<'a> {
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
        Run {
            start: device.stats().clone(),
            device,
            mapper: plan.mapper(),
            plan,
            placer,
            writes: Vec::new(),
            samples: Vec::new(),
            timed: None,
            feedback,
            measures: Vec::new(),
            steady: None,
            pages_read: [0; 2],
            reported: 0,
            watch,
        }
    }

    fn settings(&self) -> &'a RunSettings {
        &self.plan.cell().run
    }

    /// Tells the watch that this share of the workload is done.
    fn report(&mut self, share: f64) {
        let work = (share.clamp(0.0, 1.0) * self.plan.workload_work as f64) as u64;
        self.watch.advanced(work.saturating_sub(self.reported));
        self.reported = self.reported.max(work);
    }

    fn capacity_bytes(&self) -> u64 {
        self.plan.layout.capacity_bytes()
    }

    /// Writes the device sequentially without directives, in extents of a mebibyte or less, and lets it do what it
    /// owes; returns the device's time.
    fn prefill(&mut self) -> Nanos {
        /// Extents in flight, if the device has timing.
        const IN_FLIGHT: usize = 32;
        /// Longer than any buffer takes to be programmed and any reclaim unit to be erased.
        const REST_NS: Nanos = 10_000_000_000;
        let mut completions = [0; IN_FLIGHT];
        let (mut now, mut extents, mut written) = (0, 0, 0);
        let layout = &self.plan.layout;
        let extent = ((1 << 20) / layout.page_bytes).max(1) as u32;
        let mut left = (self.settings().prefill_capacities * f64::from(layout.logical_pages)) as u64;
        let mut lpn = 0;
        while left > 0 && !self.watch.stopped() {
            let pages = extent
                .min(layout.logical_pages - lpn)
                .min(left.min(u64::from(u32::MAX)) as u32);
            let host_bytes = u64::from(pages) * layout.page_bytes;
            let write = Write {
                first: Lpn(lpn),
                pages,
                host_bytes,
                placement: self.mapper.default_placement(&mut self.device),
            };
            let slot = &mut completions[extents % IN_FLIGHT];
            now = now.max(*slot);
            let done = self.device.write(now, &write).expect("the extent is within the device");
            *slot = done.at;
            extents += 1;
            self.watch.advanced(host_bytes);
            written += host_bytes;
            lpn = (lpn + pages) % layout.logical_pages;
            left -= u64::from(pages);
        }
        assert_eq!(
            self.stats().host_bytes_written(),
            written,
            "the device counts what the prefill wrote, and nobody else wrote"
        );
        self.start = self.device.stats().clone();
        let recorder = self.device.sink_mut();
        recorder.gc_log.clear();
        recorder.recent.clear();
        if let Some(feedback) = &self.feedback {
            let entries = self.plan.config.events.log_entries;
            let log = feedback.drive_log(&self.plan.layout, &self.plan.handles, entries, &self.start);
            recorder.drive_log = Some(log);
        }
        match completions.into_iter().max() {
            Some(last) if extents > 0 && self.plan.config.timing.is_some() => last + REST_NS,
            _ => 0,
        }
    }

    /// Runs the workload in virtual time, which begins at `begins_at` of the device's; false if it was stopped.
    fn work_in_time(&mut self, mut runner: Runner, begins_at: Nanos) -> Result<bool, LabError> {
        /// Requests between two looks at what was written; fewer if somebody listens who must not come late.
        const REQUESTS: u64 = 4096;
        let requests = self.feedback.as_ref().map_or(REQUESTS, |_| LISTENED_REQUESTS as u64);
        runner.begin(begins_at);
        runner.set_placer(self.placer.take());
        let every = self.sample_bytes();
        let mut next_sample = every;
        let mut complete = true;
        let ranges = runner.source().map(Source::ranges).unwrap_or_default();
        self.device.sink_mut().watch_ranges(ranges, self.plan.layout.page_bytes);
        while runner.advance(&mut self.device, requests)? {
            let written = runner.written();
            self.listen(written);
            self.report(runner.share_done());
            if written >= next_sample {
                self.sample();
                next_sample = written - written % every + every;
                if self.is_steady() {
                    runner.stop();
                }
            }
            if complete && self.watch.stopped() {
                complete = false;
                runner.stop();
            }
        }
        self.report(1.0);
        self.check_written(runner.written());
        if let Some(source) = runner.source() {
            self.measures = self.measures_of(source);
        }
        self.pages_read = runner.pages_read();
        runner.close_logs()?;
        self.timed = Some(runner.finish());
        for reclaim in &mut self.device.sink_mut().gc_log {
            reclaim.now -= begins_at;
        }
        Ok(complete)
    }

    /// Reads the drive's log, if somebody does and it is time.
    fn listen(&mut self, written: u64) {
        let Some(feedback) = self.feedback.as_mut().filter(|feedback| feedback.is_due(written)) else {
            return;
        };
        let stats = self.device.stats().since(&self.start);
        let log = self.device.sink_mut().drive_log.as_mut();
        feedback.read(log.expect("it was made after the prefill"), &stats, written);
    }

    /// Host bytes between two samples.
    fn sample_bytes(&self) -> u64 {
        ((self.settings().sample_capacities * self.capacity_bytes() as f64) as u64).max(1)
    }

    /// Runs the workload until enough is written; false if it was stopped.
    fn work(&mut self, mut workload: Box<dyn Source>) -> Result<bool, LabError> {
        self.device
            .sink_mut()
            .watch_ranges(workload.ranges(), self.plan.layout.page_bytes);
        let limits = self.settings().limits(self.capacity_bytes());
        let target = limits.write_bytes.unwrap_or(u64::MAX);
        let every = self.sample_bytes();
        let mut next_sample = every;
        // What a workload measures of itself must not run ahead of what is written; job files measure nothing.
        let ahead = match (&self.placer, self.plan.cell().workload.jobs()) {
            _ if self.feedback.is_some() => LISTENED_REQUESTS,
            (Some(_), Some(_)) => PLACED_REQUESTS,
            _ => BATCH_REQUESTS,
        };
        let mut requests: Vec<Request> = Vec::with_capacity(ahead);
        let mut written: u64 = 0;
        let mut since_write: usize = 0;
        let mut complete = true;
        'work: while written < target {
            if self.watch.stopped() {
                complete = false;
                break;
            }
            requests.clear();
            if workload.next_batch(&mut requests, ahead)? == 0 {
                break; // A workload that ends: it wrote all it has.
            }
            since_write = match requests.iter().any(|request| request.operation == Operation::Write) {
                true => 0,
                false => since_write + requests.len(),
            };
            if since_write > UNWRITTEN_REQUESTS_MAX && limits.write_bytes.is_some() {
                let problem = "the workload reads on and on without a write, so what --write asks for is never written; leave --write out, or let it write";
                return Err(LabError::invalid(&self.plan.cell().key.to_string(), problem));
            }
            if let Some(placer) = &self.placer {
                placer.place(&mut requests)?;
            }
            for batch in requests.chunks(BATCH_REQUESTS) {
                for request in batch {
                    if written >= target {
                        break;
                    }
                    written += self.take(request);
                }
                self.write_out();
                self.listen(written);
                if written >= next_sample {
                    self.sample();
                    next_sample = written - written % every + every;
                    if self.is_steady() {
                        break 'work;
                    }
                }
            }
            self.report(match limits.write_bytes {
                Some(bytes) => written as f64 / bytes as f64,
                None => workload.share_done().unwrap_or(0.0),
            });
        }
        self.report(1.0);
        self.check_written(written);
        self.measures = self.measures_of(&*workload);
        Ok(complete)
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

    fn write_out(&mut self) {
        let _ = self
            .device
            .write_batch(0, &self.writes)
            .expect("requests are within the device");
        self.writes.clear();
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

    fn stats(&self) -> Stats {
        self.device.stats().since(&self.start)
    }

    fn sample(&mut self) {
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
        self.samples.push(Sample {
            host_bytes,
            media_bytes,
            owners: stats.handles.iter().copied().chain([stats.shared]).collect(),
            units: occupancy.iter().map(|row| row.units).collect(),
            valid_pages: occupancy.iter().map(|row| row.valid_pages).collect(),
        });
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

    fn result(&mut self, complete: bool) -> CellResult {
        let stats = self.stats();
        let log = self.device.sink_mut().drive_log.take();
        let feedback = self
            .feedback
            .take()
            .zip(log)
            .map(|(feedback, log)| feedback.finish(log));
        self.measures.extend(feedback.iter().flat_map(FeedbackResult::measures));
        if self
            .samples
            .last()
            .is_none_or(|sample| sample.host_bytes < stats.host_bytes_written())
        {
            self.sample();
        }
        assert_eq!(
            self.samples.last().map(|sample| sample.host_bytes),
            Some(stats.host_bytes_written()),
            "the series ends with the run"
        );
        let erases = self.device.block_erase_counts();
        let sum: u64 = erases.iter().map(|count| u64::from(*count)).sum();
        let mean = sum as f64 / erases.len() as f64;
        let block_erases = (
            *erases.iter().min().expect("a device has blocks"),
            mean,
            *erases.iter().max().expect("a device has blocks"),
        );
        CellResult {
            key: self.plan.cell().key.clone(),
            seed: self.plan.cell().seed,
            ensemble: self.plan.cell().ensemble,
            scale: self.plan.scale,
            search: None,
            unsaved: None,
            complete,
            capacity_bytes: self.capacity_bytes(),
            superblocks: self.plan.layout.superblocks(),
            unit_pages: twin::unit_pages(&self.plan.layout),
            until: self.settings().until,
            steady: self.steady,
            without_effect: self.plan.without_effect(),
            pages_read: self.pages_read,
            stats,
            samples: std::mem::take(&mut self.samples),
            gc_log: std::mem::take(&mut self.device.sink_mut().gc_log),
            block_erases,
            endurance: self.endurance(),
            measures: std::mem::take(&mut self.measures),
            timed: self.timed.take(),
            feedback,
        }
    }
}
