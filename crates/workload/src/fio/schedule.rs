//! Schedule of a job file, which merges the streams of all jobs into one sequence of requests.
//!
//! Jobs become streams (one per instance), and streams form groups (`stonewall` starts a new one).
//! Groups run one after another. Streams of a group share the drive in fixed proportions by stride
//! scheduling. Each stream has a cost in virtual time per request and per byte (`cost`). Its clock
//! advances by its issued requests, and the stream with the earliest clock goes next. No stream is
//! ever more than one request away from its exact share. The sequence depends only on the job file,
//! the drive's capacity and the options. A stream that ends leaves its share to the rest of its
//! group.
//!
//! The schedule has no clock and never waits, so rates are proportions. It does not touch the
//! device.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use super::cost::Cost;
use super::groups::{check_untimed, group};
use super::planned::{PlannedStream, plan_streams};
use super::summary::StreamSummary;
use super::{ExitScope, JobError, JobFile, JobStream};
use crate::{IoRequest, RequestSource, ScaledModel, Workload, WorkloadError, WorkloadTarget};

/// A job file on a drive.
#[derive(Debug, Clone)]
pub struct Schedule {
    streams: Vec<ScheduledStream>,
    /// Streams of the groups that have not begun, last group first.
    waiting: Vec<Vec<u16>>,
    /// Running streams of the current group.
    running: BinaryHeap<StrideEntry>,
    /// Streams of the current group that wait for other streams of it.
    held: Vec<u16>,
}

/// Requests per batch of a stream.
const RUN_LENGTH: usize = 64;

/// A stream with its place in the schedule.
#[derive(Debug, Clone)]
struct ScheduledStream {
    source: JobStream,
    /// Requests produced and not yet issued, next one last.
    ready: Vec<IoRequest>,
    /// Totals of the issued requests.
    requests: u64,
    bytes: u64,
    cost: Cost,
    /// Virtual time of the stream's start.
    begins_ns: f64,
    waits_for: Option<Range<u16>>,
    ends_others: Option<ExitScope>,
    ended: bool,
    summary: StreamSummary,
}

/// A running stream and its virtual time. The earliest time is the greatest, and ties go to the
/// first stream. Both are one number, because a schedule of many streams does little but compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StrideEntry(Reverse<u128>);

impl StrideEntry {
    fn new(time_ns: f64, stream: u16) -> StrideEntry {
        assert!(time_ns.is_sign_positive(), "bits of positive numbers have their order");
        StrideEntry(Reverse(u128::from(time_ns.to_bits()) << u16::BITS | u128::from(stream)))
    }

    fn time_ns(self) -> f64 {
        f64::from_bits((self.0.0 >> u16::BITS) as u64)
    }

    fn stream(self) -> u16 {
        self.0.0 as u16
    }
}

impl Workload for JobFile {
    fn source(&self, target: &WorkloadTarget, _seed: u64) -> Result<Box<dyn RequestSource>, WorkloadError> {
        Ok(Box::new(Schedule::new(self, target)?))
    }

    fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        Ok(JobFile::memory_bytes(self, target)?)
    }
}

impl Schedule {
    /// Builds the streams of a job file for a drive.
    ///
    /// # Errors
    /// Fails if a job does not fit the drive, or if sharing or ending it needs a clock.
    pub fn new(file: &JobFile, target: &WorkloadTarget) -> Result<Self, JobError> {
        check_untimed(file)?;
        let groups = group(&file.jobs);
        let planned = plan_streams(file, target)?;
        let group_of = |stream: &PlannedStream<'_>| usize::from(stream.summary.group);
        let mut waiting = vec![Vec::new(); groups.len()];
        for stream in &planned {
            waiting[group_of(stream)].push(stream.summary.stream);
        }
        let mut streams: Vec<ScheduledStream> =
            planned.into_iter().map(|stream| ScheduledStream::new(stream, target.scaled_model)).collect();
        for group in &waiting {
            assert!(
                group.is_sorted_by(|one, next| one + 1 == *next),
                "the streams of a group are not consecutive: {group:?}"
            );
            compute_shares(&mut streams[usize::from(group[0])..][..group.len()]);
        }
        waiting.reverse();
        Ok(Self { streams, waiting, running: BinaryHeap::new(), held: Vec::new() })
    }

    /// Appends up to `limit` requests and returns their number. 0 means that the workload has
    /// ended.
    pub fn next_batch(&mut self, out: &mut Vec<IoRequest>, limit: usize) -> usize {
        let before = out.len();
        let full = before + limit;
        out.reserve(limit);
        while out.len() < full {
            match self.running.len() {
                0 => {
                    let Some(group) = self.waiting.pop() else { break };
                    assert!(self.held.is_empty(), "a waiting job is released before its group ends");
                    self.held = group;
                    self.release(0.0);
                }
                1 => self.run_alone(out, full),
                _ => self.run_round(out, full),
            }
        }
        assert!(out.len() <= full, "{} requests are given, {limit} are wanted", out.len() - before);
        out.len() - before
    }

    /// Summaries of all streams, in the order of their numbers.
    pub fn describe(&self) -> Vec<StreamSummary> {
        self.streams.iter().map(|stream| stream.summary.clone()).collect()
    }

    /// True if the workload never ends by itself.
    pub fn is_endless(&self) -> bool {
        self.streams.iter().any(|stream| stream.source.plan().endless)
    }

    /// Starts the streams whose awaited streams have ended, at this virtual time.
    fn release(&mut self, time_ns: f64) {
        let streams = &self.streams;
        let has_ended = |stream: u16| streams[usize::from(stream)].ended;
        let waits = |stream: &u16| {
            let awaited = streams[usize::from(*stream)].waits_for.clone();
            awaited.is_some_and(|awaited| !awaited.into_iter().all(has_ended))
        };
        let (held, begin): (Vec<u16>, Vec<u16>) = self.held.iter().partition(|stream| waits(stream));
        self.held = held;
        assert!(!self.running.is_empty() || !begin.is_empty() || self.held.is_empty(), "jobs wait for each other");
        for stream in begin {
            assert!(!self.streams[usize::from(stream)].ended, "a stream begins once");
            self.streams[usize::from(stream)].begins_ns = time_ns;
            self.running.push(StrideEntry::new(time_ns, stream));
        }
    }

    /// Ends a stream without further requests. Depending on its job, other streams end with it or
    /// start.
    #[cold]
    fn end(&mut self, turn: StrideEntry) {
        let stream = &mut self.streams[usize::from(turn.stream())];
        assert!(!stream.ended && stream.ready.is_empty(), "a stream ends once, with nothing left");
        stream.ended = true;
        if let Some(what) = stream.ends_others {
            let running = self.running.drain().map(StrideEntry::stream);
            for stream in running.chain(self.held.drain(..)) {
                self.streams[usize::from(stream)].ended = true;
            }
            if what == ExitScope::All {
                self.waiting.clear();
            }
        }
        self.release(turn.time_ns());
    }

    /// Runs a single stream, which needs no scheduling. No stream can join in between, because
    /// streams only start with their group or at the end of another stream.
    fn run_alone(&mut self, out: &mut Vec<IoRequest>, full: usize) {
        let turn = *self.running.peek().expect("one stream runs");
        let stream = &mut self.streams[usize::from(turn.stream())];
        while out.len() < full
            && let Some(request) = stream.ready.pop()
        {
            out.push(request);
        }
        let wanted = full - out.len();
        if stream.source.fill(out, wanted) < wanted {
            self.running.clear();
            self.end(turn);
        }
    }

    fn run_round(&mut self, out: &mut Vec<IoRequest>, full: usize) {
        while out.len() < full {
            let mut turn = self.running.peek_mut().expect("two or more streams run");
            let stream = &mut self.streams[usize::from(turn.stream())];
            let Some(request) = stream.next() else {
                let turn = PeekMut::pop(turn);
                return self.end(turn);
            };
            let time_ns = stream.time_ns();
            assert!(time_ns >= turn.time_ns(), "the clock of a stream goes back");
            *turn = StrideEntry::new(time_ns, turn.stream());
            out.push(request);
        }
    }
}

impl ScheduledStream {
    fn new(planned: PlannedStream<'_>, model: Option<ScaledModel>) -> Self {
        let mut cost = Cost::new(planned.job, &planned.full);
        if let Some(model) = model {
            cost = cost.scaled(&planned.full, model);
        }
        assert!(
            cost.request_cost(planned.plan.mean_request_bytes()) > 0.0,
            "requests without cost would never let others go on"
        );
        Self {
            source: JobStream::new(planned.plan, planned.summary.stream),
            ready: Vec::new(),
            requests: 0,
            bytes: 0,
            cost,
            begins_ns: 0.0,
            waits_for: planned.waits_for,
            ends_others: planned.ends_others,
            ended: false,
            summary: planned.summary,
        }
    }

    #[inline]
    fn next(&mut self) -> Option<IoRequest> {
        if self.ready.is_empty() {
            self.source.fill(&mut self.ready, RUN_LENGTH);
            self.ready.reverse();
        }
        let request = self.ready.pop()?;
        self.requests += 1;
        self.bytes += u64::from(request.bytes);
        Some(request)
    }

    /// Virtual time of all requests issued so far. Computed from totals, so that rounding errors do
    /// not add up.
    #[inline]
    fn time_ns(&self) -> f64 {
        self.begins_ns + self.requests as f64 * self.cost.per_request + self.bytes as f64 * self.cost.per_byte
    }
}

/// Computes the bandwidth shares of a group's streams.
fn compute_shares(streams: &mut [ScheduledStream]) {
    let bytes_per_ns = |stream: &ScheduledStream| {
        let mean_bytes = stream.source.plan().mean_request_bytes();
        mean_bytes / stream.cost.request_cost(mean_bytes)
    };
    let total: f64 = streams.iter().map(bytes_per_ns).sum();
    assert!(total.is_finite() && total > 0.0, "streams of a group share {total} bytes a nanosecond");
    for stream in streams {
        stream.summary.share_percent = Some(100.0 * bytes_per_ns(stream) / total);
    }
}

impl RequestSource for Schedule {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        Ok(Schedule::next_batch(self, requests, limit))
    }

    fn share_done(&self) -> Option<f64> {
        let shares: Option<Vec<f64>> = self.streams.iter().map(|stream| stream.source.share_done()).collect();
        shares.map(|shares| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    fn streams(&self) -> Vec<String> {
        self.streams.iter().map(|stream| stream.summary.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{JobPlan, parse};
    use super::*;

    const GIB: u64 = 1 << 30;
    const TARGET: WorkloadTarget =
        WorkloadTarget { device_bytes: 64 * GIB, placement_count: 0, endless: false, scaled_model: None };

    fn build(text: &str, options: &WorkloadTarget) -> Result<Schedule, JobError> {
        Schedule::new(&parse(text, "test.fio")?, options)
    }

    fn workload(text: &str) -> Schedule {
        build(text, &WorkloadTarget { endless: true, placement_count: 8, ..TARGET })
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn take(workload: &mut Schedule, count: usize) -> Vec<IoRequest> {
        let mut requests = Vec::new();
        loop {
            let wanted = (count - requests.len()).min(100);
            if wanted == 0 || workload.next_batch(&mut requests, wanted) == 0 {
                return requests;
            }
        }
    }

    fn totals(requests: &[IoRequest], streams: usize) -> Vec<(u64, u64)> {
        let mut totals = vec![(0, 0); streams];
        for request in requests {
            let total = &mut totals[usize::from(request.stream)];
            *total = (total.0 + 1, total.1 + u64::from(request.bytes));
        }
        totals
    }

    /// After every request, each stream is within one request of its share of the bytes.
    fn assert_shares_exact(workload: &mut Schedule, shares: &[f64]) {
        let whole: f64 = shares.iter().sum();
        let mut bytes = vec![0.0; shares.len()];
        let mut largest = 0.0_f64;
        for request in take(workload, 20_000) {
            bytes[usize::from(request.stream)] += f64::from(request.bytes);
            largest = largest.max(f64::from(request.bytes));
            let total: f64 = bytes.iter().sum();
            for (stream, share) in shares.iter().enumerate() {
                let distance = (bytes[stream] - total * share / whole).abs();
                assert!(distance <= largest, "stream {stream} is {distance} bytes away from its share of {total}");
            }
        }
        let total: f64 = bytes.iter().sum();
        for (summary, share) in workload.describe().iter().zip(shares) {
            assert!((summary.share_percent.unwrap() - 100.0 * share / whole).abs() < 1e-9, "{summary:?}");
            let issued = 100.0 * bytes[usize::from(summary.stream)] / total;
            assert!((issued - summary.share_percent.unwrap()).abs() < 0.1, "{summary:?}, but it issued {issued} %");
        }
    }

    #[test]
    fn rates_share_bytes() {
        let text =
            "[global]\nrw=randwrite\nnorandommap\n[a]\nrate=88m\nbs=128k\n[b]\nrate=6m\nbs=4k\n[c]\nrate=6m\nbs=4k\n";
        assert_shares_exact(&mut workload(text), &[88.0, 6.0, 6.0]);
    }

    #[test]
    fn rates_in_bytes_and_in_requests_share_one_clock() {
        let text = "[a]\nrw=write\nbs=128k\nrate=1280k\n[b]\nrw=randwrite\nbs=4k\nrate_iops=30\n[c]\nrw=randwrite\nbs=16k\nrate_iops=20\n";
        assert_shares_exact(&mut workload(text), &[1280.0, 120.0, 320.0]);
    }

    #[test]
    fn flow_shares_requests() {
        let text = "[a]\nrw=write\nbs=128k\nflow=1\n[b]\nrw=randwrite\nflow=7\n";
        assert_shares_exact(&mut workload(text), &[128.0, 28.0]);
    }

    #[test]
    fn without_a_rate_queue_slots_share_requests() {
        let text = "[a]\nrw=write\nbs=128k\niodepth=1\n[b]\nrw=randwrite\niodepth=16\n";
        assert_shares_exact(&mut workload(text), &[128.0, 64.0]);
        assert_shares_exact(&mut workload("[a]\nrw=write\nnumjobs=5\n"), &[1.0; 5]);
    }

    #[test]
    fn thinktime_lowers_a_share_by_the_stated_formula() {
        // 100 us per request against 100 us plus 1200 us every 4 requests.
        let text = "[a]\nrw=write\n[b]\nrw=write\nthinktime=1200\nthinktime_blocks=4\n";
        assert_shares_exact(&mut workload(text), &[4.0, 1.0]);
        // A rate of 250 requests/s is slower than the pauses allow, but 25000 is faster.
        let rated = |rate: u64, option: &str| {
            format!("[a]\nrw=write\nrate_iops=250\n[b]\nrw=write\nthinktime=1900\nrate_iops={rate}\n{option}")
        };
        assert_shares_exact(&mut workload(&rated(250, "")), &[1.0, 1.0]);
        assert_shares_exact(&mut workload(&rated(25_000, "")), &[1.0, 2.0]);
        assert_shares_exact(&mut workload(&rated(10_000, "rate_ignore_thinktime=1\n")), &[1.0, 2.0]);
    }

    #[test]
    fn a_time_of_requests_between_pauses_counts_nominal_ones() {
        // 1 ms is 10 requests of 100 us, and the pause is as long again.
        let text = "[a]\nrw=write\n[b]\nrw=write\nthinktime=1ms\nthinktime_iotime=1ms\n";
        assert_shares_exact(&mut workload(text), &[2.0, 1.0]);
        // With both limits, the first one reached counts.
        assert_shares_exact(&mut workload(&format!("{text}thinktime_blocks=5\n")), &[3.0, 1.0]);
    }

    #[test]
    fn a_job_that_waits_begins_when_the_other_has_ended() {
        let text = "[a]\nrw=write\nsize=400k\nnumjobs=2\n[b]\nwait_for=a\nrw=write\nsize=100k\n[c]\nrw=write\nsize=2m\n\
                    [d]\nwait_for=b\nrw=write\nsize=100k\n";
        let order: Vec<u16> =
            take(&mut build(text, &TARGET).unwrap(), 10_000).iter().map(|request| request.stream).collect();
        let (first, last) = (
            |stream| order.iter().position(|other| *other == stream).unwrap(),
            |stream| order.iter().rposition(|other| *other == stream).unwrap(),
        );
        assert!(first(2) > last(0) && first(2) > last(1) && first(4) > last(2));
        // Both alternate with the stream that runs beside them, and do not catch up.
        assert!(last(2) - first(2) >= 40 && last(3) > last(4), "{order:?}");
        assert_eq!(order.len(), 2 * 100 + 25 + 500 + 25 + 12);
        let endless = WorkloadTarget { endless: true, ..TARGET };
        let mut schedule = build(text, &endless).unwrap();
        assert!(take(&mut schedule, 10_000).iter().any(|request| request.stream == 4));
        let error = build("[a]\nrw=write\ntime_based\nruntime=5\n[b]\nwait_for=a\n", &TARGET).unwrap_err();
        assert!(error.to_string().contains("another job waits for it"), "{error}");
    }

    #[test]
    fn the_first_job_that_ends_ends_the_others() {
        let group = "[a]\nexitall\nrw=write\nsize=40k\n[b]\nrw=write\nsize=4m\n[c]\nwait_for=b\nrw=write\n";
        let behind = "[d]\nstonewall\nrw=write\nsize=80k\n[e]\nwait_for=b\nrw=write\nsize=8k\n";
        let count = |text: &str| {
            let mut counts = [0; 5];
            for request in take(&mut build(text, &TARGET).unwrap(), 10_000) {
                counts[usize::from(request.stream)] += 1;
            }
            counts
        };
        assert_eq!(count(&format!("{group}{behind}")), [10, 10, 0, 3, 2]);
        assert_eq!(count(&format!("[global]\nexit_what=all\n{group}{behind}")), [10, 10, 0, 0, 0]);
    }

    #[test]
    fn jobs_that_run_together_must_share_in_the_same_terms() {
        let error = |text: &str| build(text, &TARGET).unwrap_err().to_string();
        let mixed = error("[a]\nflow=2\n[b]\nrate_iops=5\n");
        assert!(
            mixed.starts_with("test.fio:3: in [b], the job runs together with [a]") && mixed.contains("stonewall"),
            "{mixed}"
        );
        // 4 KiB at 40 MiB/s take 100 us, the nominal time of an unrated request at queue depth 1.
        let shares = build("[a]\nrw=write\nrate=40960000\n[b]\nrw=write\niodepth=3\n", &TARGET).unwrap().describe();
        let shares: Vec<f64> = shares.iter().filter_map(|stream| stream.share_percent).collect();
        assert!((shares[0] - 25.0).abs() < 1e-9 && (shares[1] - 75.0).abs() < 1e-9, "{shares:?}");
        assert!(error("[a]\nflow=2\n[b]\nflow=2\nflow_id=1\n").contains("flow_id"));
        assert!(build("[a]\nrate=5m\n[b]\nstonewall\n", &TARGET).is_ok());
    }

    #[test]
    fn groups_run_one_after_another() {
        let text = "[fill]\nrw=write\nbs=1m\nsize=8m\n[more]\nrw=write\nbs=1m\nsize=4m\n[measure]\nstonewall\nrw=randwrite\nsize=1m\n";
        let mut finite = build(text, &TARGET).unwrap();
        assert!(!finite.is_endless());
        let requests = take(&mut finite, 10_000);
        let order: Vec<u16> = requests.iter().map(|request| request.stream).collect();
        assert_eq!(order[..12], [0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0], "a job that ends leaves its share to the others");
        assert_eq!(order[12..], [2; 256]);
        assert_eq!(finite.next_batch(&mut Vec::new(), 10), 0);

        let mut endless = workload(text);
        assert!(endless.is_endless());
        assert_eq!(totals(&take(&mut endless, 10_000), 3), [(8, 8 << 20), (4, 4 << 20), (9988, 9988 * 4096)]);
        assert_eq!(endless.describe().iter().map(|summary| summary.group).collect::<Vec<_>>(), [0, 0, 1]);
    }

    #[test]
    fn a_job_without_end_in_front_of_a_stonewall_is_refused() {
        let text = "[a]\nrw=write\ntime_based\nruntime=5\n[b]\nstonewall\n";
        let error = build(text, &TARGET).unwrap_err().to_string();
        assert!(error.starts_with("test.fio:3: in time_based of [a]") && error.contains("io_size"), "{error}");
    }

    #[test]
    fn merging_changes_no_stream() {
        let text = "[a]\nrw=write\nbs=64k\n[b]\nrw=randrw\nbssplit=4k/50:8k/50\n[c]\nrw=randwrite\nfdp=1\nplids=2,3\n";
        let requests = take(&mut workload(text), 5_000);
        let file = parse(text, "test.fio").unwrap();
        for (number, job) in file.jobs.iter().enumerate() {
            let target = WorkloadTarget { placement_count: 8, ..TARGET };
            let mut alone = JobStream::new(JobPlan::new(job, 0, target).unwrap(), number as u16);
            for request in requests.iter().filter(|request| usize::from(request.stream) == number) {
                assert_eq!(Some(*request), alone.next(), "{}", job.name);
            }
        }
    }

    #[test]
    fn batches_of_any_length_are_parts_of_one_sequence() {
        let text =
            "[a]\nrw=write\nbs=64k\nsize=32m\n[b]\nrw=randwrite\nsize=16m\n[c]\nstonewall\nrw=randwrite\nsize=4m\n";
        let build = || build(text, &TARGET).unwrap();
        let whole = take(&mut build(), 100_000);
        let mut workload = build();
        let mut parts = Vec::new();
        let mut length = 1;
        while workload.next_batch(&mut parts, length) > 0 {
            length = length * 5 % 97 + 1;
        }
        assert_eq!(parts, whole);
        assert_eq!(whole.len(), 512 + 4096 + 1024);
    }

    #[test]
    fn a_scaled_model_keeps_the_shares_of_bytes() {
        let text = "[seq]\nrw=write\nbs=128k\nsize=90%\nflow=2\n[random]\nrw=randwrite\noffset=90%\nflow=1\n";
        let model =
            Some(ScaledModel { denominator: 64, device_bytes: GIB, mapping_unit_bytes: 4096, keep_requests: false });
        let mut full = workload(text);
        let mut small =
            build(text, &WorkloadTarget { endless: true, placement_count: 8, scaled_model: model, ..TARGET }).unwrap();
        assert_shares_exact(&mut full, &[256.0, 4.0]);
        assert_shares_exact(&mut small, &[256.0, 4.0]);
        let requests = take(&mut small, 1000);
        assert!(requests.iter().all(|request| request.bytes == 4096 && request.offset_bytes < GIB));
    }

    #[test]
    fn a_region_too_small_for_a_scaled_model_is_refused() {
        let model =
            Some(ScaledModel { denominator: 64, device_bytes: GIB, mapping_unit_bytes: 4096, keep_requests: false });
        let options = WorkloadTarget { scaled_model: model, ..TARGET };
        let error = build("[a]\nrw=write\nsize=64k\n", &options).unwrap_err().to_string();
        assert!(error.starts_with("test.fio:3: in size of [a]") && error.contains("1/64"), "{error}");
    }

    #[test]
    fn a_stream_is_described_by_what_it_does() {
        let text = "[hot]\nrw=randwrite\nrandom_distribution=zipf:1.2\nfdp=1\nplids=2\noffset=50%\nnumjobs=2\n";
        let stream = workload(text).describe().remove(1);
        assert_eq!((stream.group, stream.name.as_str(), stream.rw), (0, "hot.1", "randwrite"));
        assert_eq!((stream.min_request_bytes, stream.max_request_bytes), (4096, 4096));
        assert_eq!((stream.start_bytes, stream.end_bytes), (32 * GIB, 64 * GIB));
        assert_eq!((stream.addresses.as_str(), stream.share_percent), ("zipf:1.2", Some(50.0)));
        assert_eq!(stream.placement, "2");
    }
}
