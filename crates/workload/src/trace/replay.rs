//! Replay of a trace as a source of requests.

use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use super::groups::{Arrival, GroupReader, PreparedGroups, ReplayCounts, UNITS_AHEAD};
use super::mapped::RequestOrigin;
use super::reader::{TraceProgress, TraceReader};
use super::settings::TraceSettings;
use super::spool;
use crate::{IoRequest, RequestOperation, RequestSource, WorkloadError, WorkloadMeasure, WorkloadTarget};

/// A source that knows the recorded times of its requests.
pub trait TimedSource: RequestSource {
    /// Like [`RequestSource::next_batch`], and appends the same number of arrivals to `arrivals`.
    ///
    /// # Errors
    /// Like [`RequestSource::next_batch`].
    fn next_timed_batch(
        &mut self,
        requests: &mut Vec<IoRequest>,
        arrivals: &mut Vec<Arrival>,
        limit: usize,
    ) -> Result<usize, WorkloadError>;

    /// Names of the first volumes and processes so far, at most `most` of each. Empty if they have
    /// no names.
    fn names(&self, most: usize) -> [Vec<String>; 2];
}

/// Replays a trace on a drive.
pub struct TraceSource {
    /// Reader of the groups, until a thread takes it.
    reader: Option<Box<GroupReader>>,
    /// Thread that reads ahead, and the groups that it has read.
    ahead: Option<(JoinHandle<()>, Receiver<PreparedGroups>)>,
    /// True if a thread is to read ahead from the first request on.
    reads_ahead: bool,
    progress: TraceProgress,
    endless: bool,
    /// Groups after the current one, and the index of the next request in them.
    ready: PreparedGroups,
    next_ready: usize,
    /// Remaining requests of the current group.
    left_of_group: usize,
    /// Totals up to the current group.
    current: ReplayCounts,
    /// Issued requests, and their bytes by operation.
    requests_issued: u64,
    bytes_issued: [u64; 3],
}

impl TraceSettings {
    /// Opens the trace as requests to a drive. On a scaled model, `seed` chooses the sampled units.
    ///
    /// # Errors
    /// Fails if a setting is impossible, a file cannot be opened, or its format cannot be guessed.
    pub fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<TraceSource, WorkloadError> {
        self.check(target)?;
        let reader = TraceReader::open(self)?;
        let mut source = TraceSource::new(self, reader, target, seed)?;
        source.reader.as_mut().expect("a new source has its reader").origin = RequestOrigin::Undecided;
        Ok(source)
    }

    /// Opens the trace as requests with their recorded times.
    ///
    /// # Errors
    /// Like [`TraceSettings::source`], and fails if the trace has no times.
    pub fn timed_source(&self, target: &WorkloadTarget, seed: u64) -> Result<TraceSource, WorkloadError> {
        self.check(target)?;
        self.check_times()?;
        let mut reader = TraceReader::open(self)?;
        reader.obeys_times = true;
        TraceSource::new(self, reader, target, seed)
    }

    /// Refuses a trace whose requests all have the same time. Most traces pass at the second
    /// request.
    fn check_times(&self) -> Result<(), WorkloadError> {
        const LOOKED_AT: u64 = 1 << 20;
        let mut reader = self.reader()?;
        for looked_at in 0..LOOKED_AT {
            match reader.next_record()? {
                Some(record) if record.time_ns == 0 => {}
                Some(_) => return Ok(()),
                // A single request needs no times.
                None if looked_at < 2 => return Ok(()),
                None => break,
            }
        }
        let file = self.files.first().map(|file| spool::display_name(file)).unwrap_or_default();
        Err(WorkloadError::setting(
            file,
            "has no times to replay. Set csv.time for a CSV file, use an iolog of version 3 or with wait lines, or \
             remove replay (--replay)",
        ))
    }
}

impl TraceSource {
    /// Replays the records of a reader. Of the settings, only those about the drive are used.
    ///
    /// # Errors
    /// Fails if the trace cannot be mapped to the drive.
    pub fn new(
        settings: &TraceSettings,
        reader: TraceReader,
        target: &WorkloadTarget,
        seed: u64,
    ) -> Result<TraceSource, WorkloadError> {
        let progress = reader.progress();
        Ok(TraceSource {
            reader: Some(Box::new(GroupReader::new(settings, reader, target, seed)?)),
            ahead: None,
            reads_ahead: false,
            progress,
            endless: target.endless,
            ready: PreparedGroups::default(),
            next_ready: 0,
            left_of_group: 0,
            current: ReplayCounts::default(),
            requests_issued: 0,
            bytes_issued: [0; 3],
        })
    }

    /// Progress of reading. Copies stay up to date.
    pub fn progress(&self) -> TraceProgress {
        self.progress.clone()
    }

    /// Number of bad lines that were skipped.
    pub fn bad_lines(&self) -> u64 {
        self.current.bad_lines
    }

    /// Calls `issue` with up to `limit` requests and their arrivals.
    fn fill(&mut self, limit: usize, mut issue: impl FnMut(IoRequest, Arrival)) -> Result<usize, WorkloadError> {
        let mut issued = 0;
        let units_most = self.current.units_named + UNITS_AHEAD;
        while issued < limit && (issued == 0 || self.current.units_named < units_most) {
            if self.left_of_group == 0 && !self.begin_group()? {
                break;
            }
            let end = self.next_ready + self.left_of_group.min(limit - issued);
            for (request, arrival) in &self.ready.requests[self.next_ready..end] {
                issue(*request, *arrival);
                self.bytes_issued[request.operation as usize] += u64::from(request.bytes);
            }
            let taken = end - self.next_ready;
            self.next_ready = end;
            self.left_of_group -= taken;
            self.requests_issued += taken as u64;
            issued += taken;
        }
        Ok(issued)
    }

    /// Makes the next group the current one. Returns false at the end.
    fn begin_group(&mut self) -> Result<bool, WorkloadError> {
        while self.ready.groups.is_empty() {
            assert_eq!(self.next_ready, self.ready.requests.len(), "requests are dropped before they are issued");
            if let Some(error) = self.ready.failed.take() {
                return Err(error);
            }
            if self.ready.is_last {
                return Ok(false);
            }
            self.next_ready = 0;
            self.take_groups();
        }
        let group = self.ready.groups.pop_front().expect("a group was read");
        (self.left_of_group, self.current) = group;
        assert!(
            self.next_ready + self.left_of_group <= self.ready.requests.len(),
            "a group has no more requests than are ready"
        );
        Ok(true)
    }

    /// Reads the next group, or takes groups from the thread that reads ahead.
    fn take_groups(&mut self) {
        if self.reads_ahead
            && let Some(reader) = self.reader.take()
        {
            let (sender, receiver) = mpsc::sync_channel(1);
            match super::start_thread(move || reader.read_to_end(&sender)) {
                Ok(thread) => self.ahead = Some((thread, receiver)),
                Err(source) => {
                    let failed = Some(WorkloadError::Io { file: "the trace".to_string(), source });
                    self.ready = PreparedGroups { is_last: true, failed, ..PreparedGroups::default() };
                    return;
                }
            }
        }
        if let Some(reader) = &mut self.reader {
            self.ready.requests.clear();
            reader.read_groups(&mut self.ready, 0);
            return;
        }
        let (_, receiver) = self.ahead.as_ref().expect("a thread has the reader");
        match receiver.recv() {
            Ok(groups) => self.ready = groups,
            Err(_) => {
                let (thread, _) = self.ahead.take().expect("a thread has the reader");
                let Err(panic) = thread.join() else { unreachable!("a thread ends behind the last groups") };
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl RequestSource for TraceSource {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        if let Some(reader) = &mut self.reader {
            reader.decide_origin();
        }
        self.fill(limit, |request, _| requests.push(request))
    }

    fn read_ahead(&mut self) {
        self.reads_ahead = true;
    }

    fn streams(&self) -> Vec<String> {
        vec!["trace".to_string()]
    }

    fn share_done(&self) -> Option<f64> {
        let bytes_total = self.progress().bytes_total();
        let is_known = !self.endless && bytes_total > 0;
        is_known.then(|| self.current.bytes_read as f64 / bytes_total as f64)
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let counts = &self.current;
        let bytes = |operation: RequestOperation| self.bytes_issued[operation as usize] as f64;
        vec![
            WorkloadMeasure::new("trace.records", counts.records as f64),
            WorkloadMeasure::new("trace.requests", self.requests_issued as f64),
            WorkloadMeasure::new("trace.bytes_read", bytes(RequestOperation::Read)),
            WorkloadMeasure::new("trace.bytes_written", bytes(RequestOperation::Write)),
            WorkloadMeasure::new("trace.bytes_trimmed", bytes(RequestOperation::Trim)),
            WorkloadMeasure::new("trace.bad_lines", counts.bad_lines as f64),
            WorkloadMeasure::new("trace.touched_units", counts.touched_units as f64),
            WorkloadMeasure::new("trace.passes", counts.passes as f64),
            WorkloadMeasure::new("trace.volumes", f64::from(counts.volumes)),
            WorkloadMeasure::new("trace.processes", f64::from(counts.processes)),
            WorkloadMeasure::new("trace.files", f64::from(counts.files)),
            WorkloadMeasure::new("trace.seconds", counts.last_ns as f64 / 1e9),
        ]
    }
}

impl TimedSource for TraceSource {
    fn next_timed_batch(
        &mut self,
        requests: &mut Vec<IoRequest>,
        arrivals: &mut Vec<Arrival>,
        limit: usize,
    ) -> Result<usize, WorkloadError> {
        let reader = self.reader.as_ref().expect("a source with times reads itself");
        assert!(!matches!(reader.origin, RequestOrigin::Kept(_)), "a kept trace has no times");
        self.fill(limit, |request, arrival| {
            requests.push(request);
            arrivals.push(arrival);
        })
    }

    fn names(&self, most: usize) -> [Vec<String>; 2] {
        self.reader.as_ref().expect("a source with times reads itself").reader.parser.names(most)
    }
}
