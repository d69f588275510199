//! Replay of a trace as a source of requests.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use super::mapped::{MappedGroup, MappedTraceCursor, MappedTraceKey, RequestOrigin};
use super::mapping::{AddressMap, TooManyUnits};
use super::reader::{TraceProgress, TraceReader};
use super::record::TraceRecord;
use super::settings::{AddressMapping, LbaRange, PlacementRule, ROOM_BYTES, TraceSettings};
use super::spool;
use crate::{
    IoRequest, PlacementIndex, RequestOperation, RequestSource, WorkloadError, WorkloadMeasure, WorkloadTarget,
};

/// Recorded time and origin of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Time, nanoseconds after the first request. Not always ascending.
    pub time_ns: u64,
    /// Volume, as [`TraceRecord::volume`].
    pub volume: u32,
    /// Process, as [`TraceRecord::process`].
    pub process: u32,
    /// Recorded latency, nanoseconds. 0 if unknown, or for further requests of the same record.
    pub latency_ns: u64,
}

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

/// Records that are read ahead of mapping, so that the cache misses of mapping overlap.
const LOOKAHEAD: usize = 64;

/// Maximum units in the records of a batch, so that a batch of large requests takes no longer than
/// a batch of small ones.
const UNITS_AHEAD: u64 = 1 << 20;

/// Requests that a thread reads ahead at a time. One such list waits while the thread reads the next.
const AHEAD_REQUESTS: usize = 8192;

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

/// Groups of requests that follow each other.
#[derive(Default)]
struct PreparedGroups {
    requests: Vec<(IoRequest, Arrival)>,
    /// Requests of each group, and the totals up to its end.
    groups: VecDeque<(usize, ReplayCounts)>,
    /// True if the trace ends behind these groups, and the error that ends it.
    is_last: bool,
    failed: Option<WorkloadError>,
}

/// Reads the records of a trace and maps them in groups.
struct GroupReader {
    settings: TraceSettings,
    target: WorkloadTarget,
    seed: u64,
    origin: RequestOrigin,
    reader: TraceReader,
    map: AddressMap,
    placement: ReplayPlacement,
    wanted: [bool; 3],
    /// Batch of records with their placement.
    records: Vec<(TraceRecord, Option<PlacementIndex>)>,
    /// Number of mapped records in the batch, and a flag that it is the last one.
    mapped: usize,
    at_end: bool,
    unit_bytes: u64,
    /// Error to return after the mapped records.
    failed: Option<WorkloadError>,
    /// Requests of this pass. A trace without requests does not repeat.
    requests_of_pass: u64,
    ended: bool,
    /// Totals so far.
    read: ReplayCounts,
}

/// Totals of the mapped records.
#[derive(Debug, Clone, Copy, Default)]
struct ReplayCounts {
    records: u64,
    /// Units in the records, and bad lines read with them.
    units_named: u64,
    bad_lines: u64,
    touched_units: u64,
    passes: u64,
    /// Numbers of volumes, processes and files so far.
    volumes: u32,
    processes: u32,
    files: u32,
    /// Time of the last record, since the first.
    last_ns: u64,
    bytes_read: u64,
}

impl ReplayCounts {
    fn add(&mut self, record: &TraceRecord) {
        self.records += 1;
        self.volumes = self.volumes.max(record.volume + 1);
        self.processes = self.processes.max(record.process + 1);
        self.files = self.files.max(record.file + 1);
        self.last_ns = self.last_ns.max(record.time_ns);
    }

    /// Adds records of a pass that began at `begun_ns`.
    fn add_group(&mut self, group: &MappedGroup, begun_ns: u64) {
        self.records += u64::from(group.records);
        self.units_named += group.units_named;
        self.bad_lines += group.bad_lines;
        self.touched_units = self.touched_units.max(group.touched_units);
        self.bytes_read = group.bytes_read;
        self.volumes = self.volumes.max(group.volumes);
        self.processes = self.processes.max(group.processes);
        self.files = self.files.max(group.files);
        self.last_ns = self.last_ns.max(begun_ns.saturating_add(group.last_ns));
    }
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
        let groups = GroupReader {
            settings: settings.clone(),
            target: *target,
            seed,
            origin: RequestOrigin::Files(None),
            reader,
            map: AddressMap::new(settings, target, seed)?,
            placement: ReplayPlacement::new(settings, target),
            wanted: RequestOperation::ALL.map(|operation| settings.operations.contains(&operation)),
            records: Vec::with_capacity(LOOKAHEAD),
            mapped: 0,
            at_end: false,
            unit_bytes: target.unit_bytes(),
            failed: None,
            requests_of_pass: 0,
            ended: false,
            read: ReplayCounts::default(),
        };
        Ok(TraceSource {
            reader: Some(Box::new(groups)),
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
            self.ahead = Some((std::thread::spawn(move || reader.read_to_end(&sender)), receiver));
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

impl GroupReader {
    /// Reads all groups for another thread.
    fn read_to_end(mut self: Box<Self>, sender: &SyncSender<PreparedGroups>) {
        loop {
            let mut groups = PreparedGroups::default();
            self.read_groups(&mut groups, AHEAD_REQUESTS);
            let is_last = groups.is_last;
            // The source that wanted them may be gone.
            if sender.send(groups).is_err() || is_last {
                return;
            }
        }
    }

    /// Reads the next groups, until they have enough requests or units. Reads at least one.
    fn read_groups(&mut self, groups: &mut PreparedGroups, requests_enough: usize) {
        if matches!(self.origin, RequestOrigin::Undecided) {
            self.choose_origin();
        }
        let units_enough = self.read.units_named + UNITS_AHEAD;
        loop {
            let requests_before = groups.requests.len();
            match self.read_group(&mut groups.requests) {
                Ok(true) => groups.groups.push_back((groups.requests.len() - requests_before, self.read)),
                end => {
                    groups.is_last = true;
                    groups.failed = end.err();
                    return;
                }
            }
            if groups.requests.len() >= requests_enough || self.read.units_named >= units_enough {
                return;
            }
        }
    }

    /// Takes the requests from a kept trace, or from the files.
    fn choose_origin(&mut self) {
        let GroupReader { settings, target, seed, .. } = self;
        let is_numbered = settings.mapping == AddressMapping::Compact;
        self.origin = RequestOrigin::choose(MappedTraceKey::new(settings, target, *seed), |trace| {
            let fits = !is_numbered || trace.touched_units <= settings.numbered_units_max(target);
            fits && (trace.is_repeatable || !target.endless)
        });
    }

    /// Reads the requests of the next records as a group, possibly none. Returns false at the end.
    fn read_group(&mut self, ready: &mut Vec<(IoRequest, Arrival)>) -> Result<bool, WorkloadError> {
        if !matches!(self.origin, RequestOrigin::Kept(_)) {
            return self.map_group(ready);
        }
        if !self.ended {
            self.read_kept_group(ready);
            return Ok(true);
        }
        Ok(false)
    }

    fn map_group(&mut self, ready: &mut Vec<(IoRequest, Arrival)>) -> Result<bool, WorkloadError> {
        let (before, ready_before, bad_lines_before) = (self.read, ready.len(), self.reader.bad_lines());
        if self.mapped == self.records.len() {
            if let Some(error) = self.failed.take() {
                self.ended = true;
                return Err(error);
            }
            if self.ended {
                return Ok(false);
            }
            self.records.clear();
            self.mapped = 0;
            self.at_end = match self.read_records() {
                Ok(at_end) => at_end,
                // Records in front of an error are issued first.
                Err(error) => {
                    self.failed = Some(error);
                    false
                }
            };
            self.records.iter().for_each(|(record, _)| self.map.prefetch_numbers(record));
        }
        self.map_records(ready);
        self.requests_of_pass += (ready.len() - ready_before) as u64;
        self.read.bad_lines += self.reader.bad_lines() - bad_lines_before;
        self.read.touched_units = self.read.touched_units.max(self.map.touched_units());
        self.read.bytes_read = self.reader.progress().bytes_read();
        self.keep_group(&before);
        if self.mapped == self.records.len() && std::mem::take(&mut self.at_end) {
            self.end_pass();
        }
        Ok(true)
    }

    /// Keeps the mapped requests if a writer keeps the trace. `before` has the totals before them.
    fn keep_group(&mut self, before: &ReplayCounts) {
        let RequestOrigin::Files(Some(writer)) = &mut self.origin else { return };
        let read = &self.read;
        writer.end_group(MappedGroup {
            requests: 0,
            records: (read.records - before.records) as u32,
            units_named: read.units_named - before.units_named,
            bad_lines: read.bad_lines - before.bad_lines,
            volumes: read.volumes,
            processes: read.processes,
            files: read.files,
            touched_units: read.touched_units,
            last_ns: read.last_ns,
            bytes_read: read.bytes_read,
        });
        if writer.is_too_large || self.failed.is_some() {
            self.origin = RequestOrigin::Files(None);
        }
    }

    fn read_kept_group(&mut self, ready: &mut Vec<(IoRequest, Arrival)>) {
        let RequestOrigin::Kept(cursor) = &mut self.origin else { unreachable!("that is what it is called for") };
        let placement = &self.placement;
        let group = cursor.take_group(|record| {
            let Ok(placement) = placement.index(&record) else { unreachable!("no kept trace has a placement column") };
            let TraceRecord { operation, offset_bytes, bytes, .. } = record;
            ready.push((IoRequest { stream: 0, operation, offset_bytes, bytes, placement }, Arrival::default()));
        });
        let begun_ns = cursor.trace.pass_ns.saturating_mul(self.read.passes);
        let is_pass_over = cursor.is_at_start();
        self.requests_of_pass += u64::from(group.requests);
        self.read.add_group(&group, begun_ns);
        self.reader.set_bytes_read(group.bytes_read);
        if is_pass_over {
            self.end_pass();
        }
    }

    /// Begins the next pass of an endless trace, or ends.
    fn end_pass(&mut self) {
        self.read.passes += 1;
        if let RequestOrigin::Files(writer) = &mut self.origin
            && let Some(writer) = writer.take()
        {
            let (pass_ns, is_repeatable) = (self.reader.clock.latest_ns, self.reader.parser.is_repeatable());
            let trace = writer.finish(pass_ns, self.map.touched_units(), is_repeatable);
            if let Some(trace) = trace.filter(|trace| trace.is_repeatable) {
                self.origin = RequestOrigin::Kept(MappedTraceCursor::new(trace));
            }
        }
        let again = self.target.endless && self.requests_of_pass > 0 && self.reader.rewind();
        self.requests_of_pass = 0;
        self.ended = !again;
    }

    /// Reads records that are selected and valid. Returns true if no records are left.
    fn read_records(&mut self) -> Result<bool, WorkloadError> {
        while self.records.len() < LOOKAHEAD {
            let Some(record) = self.reader.next_record()? else {
                return Ok(true);
            };
            if !self.wanted[record.operation as usize] {
                continue;
            }
            let Ok(placement) = self.placement.index(&record) else {
                let last = self.placement.count - 1;
                self.reader.reject(&format!(
                    "the placement index is {}, but the drive has 0 to {last}. Use a drive with more indices, or \
                     skip such requests with --set workload.skip_bad_lines=true",
                    record.placement.unwrap_or(PlacementIndex::FIRST)
                ))?;
                continue;
            };
            if !self.map.covers(&record) {
                self.reader.reject(
                    "the request is outside the traced volumes. Raise volume_bytes or volumes, or skip such \
                     requests with --set workload.skip_bad_lines=true",
                )?;
                continue;
            }
            self.map.prefetch_slots(&record);
            self.records.push((record, placement));
        }
        Ok(false)
    }

    /// Maps the unmapped records to requests, or only some of them if they are large.
    fn map_records(&mut self, ready: &mut Vec<(IoRequest, Arrival)>) {
        let units_most = self.read.units_named + UNITS_AHEAD;
        for (record, placement) in &self.records[self.mapped..] {
            if self.read.units_named >= units_most {
                return;
            }
            self.mapped += 1;
            // The cost of a trim depends on the data that it deallocates, not on its length.
            self.read.units_named += match record.operation {
                RequestOperation::Trim => 1,
                RequestOperation::Read | RequestOperation::Write => u64::from(record.bytes) / self.unit_bytes + 1,
            };
            let mut writer = match &mut self.origin {
                RequestOrigin::Files(writer) => writer.as_mut(),
                _ => None,
            };
            let mut arrival = Arrival {
                time_ns: record.time_ns,
                volume: record.volume,
                process: record.process,
                latency_ns: record.latency_ns,
            };
            let mapped = self.map.map(record, |offset_bytes, bytes| {
                let request =
                    IoRequest { stream: 0, operation: record.operation, offset_bytes, bytes, placement: *placement };
                ready.push((request, arrival));
                arrival.latency_ns = 0;
                if let Some(writer) = &mut writer {
                    writer.add(record, offset_bytes, bytes);
                }
            });
            if let Err(TooManyUnits) = mapped {
                // The requests that fit are issued first.
                self.mapped = self.records.len();
                self.failed = Some(too_large(&self.settings, &self.target));
                return;
            }
            self.read.add(record);
            if let Some(writer) = writer {
                writer.end_record(record);
            }
        }
    }
}

/// Fill level of a drive that is made for a trace.
const FILL: f64 = 0.85;

/// Error of a trace that touches more than the room. Another pass now counts the touched bytes.
fn too_large(settings: &TraceSettings, target: &WorkloadTarget) -> WorkloadError {
    const MIB: u64 = 1 << 20;
    let place = match &settings.files[..] {
        [] => "the trace".to_string(),
        [file] => spool::display_name(file),
        [file, others @ ..] => format!("{} (and {} other files)", spool::display_name(file), others.len()),
    };
    let modulo = "wrap its addresses with mapping = \"modulo\"";
    match touched_bytes(settings) {
        Some(bytes) if bytes > target.device_bytes => {
            let holds = ((bytes as f64 / FILL) as u64).div_ceil(MIB);
            WorkloadError::setting(
                place,
                format!(
                    "touches {}, more than the {} of the drive. Use a larger drive (--capacity {holds}MiB), or \
                     {modulo}",
                    base::HumanBytes(bytes),
                    base::HumanBytes(target.device_bytes)
                ),
            )
        }
        _ => WorkloadError::setting(
            place,
            format!(
                "touches more than the drive holds, or more than the memory planned for a file of this size. Use a \
                 larger drive, or {modulo}"
            ),
        ),
    }
}

/// Bytes that a trace touches, counted on a drive that has room for it. `None` if the trace cannot
/// be read again or is too large for any drive.
fn touched_bytes(settings: &TraceSettings) -> Option<u64> {
    let target = WorkloadTarget { device_bytes: ROOM_BYTES, ..WorkloadTarget::default() };
    let mut reader = settings.reader().ok()?;
    let mut map = AddressMap::new(settings, &target, 0).ok()?;
    let is_wanted = |record: &TraceRecord| settings.operations.contains(&record.operation);
    loop {
        match reader.next_record() {
            Ok(Some(record)) if is_wanted(&record) => map.map(&record, |_, _| {}).ok()?,
            Ok(Some(_)) => {}
            // Lines behind a bad line are not replayed either.
            Ok(None) | Err(_) => return Some(map.touched_units() * target.unit_bytes()),
        }
    }
}

impl RequestSource for TraceSource {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
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

struct ReplayPlacement {
    rule: PlacementRule,
    /// Number of placement indices of the drive.
    count: u16,
    ranges: Vec<LbaRange>,
    sizes_bytes: Vec<u64>,
}

/// The trace requires a placement index that the drive does not have.
struct NoSuchPlacement;

impl ReplayPlacement {
    fn new(settings: &TraceSettings, target: &WorkloadTarget) -> ReplayPlacement {
        ReplayPlacement {
            rule: match target.placement_count {
                0 => PlacementRule::None,
                _ => settings.placement,
            },
            count: target.placement_count,
            ranges: settings.lba_ranges.clone(),
            sizes_bytes: settings.request_sizes_bytes.clone(),
        }
    }

    #[inline]
    fn index(&self, record: &TraceRecord) -> Result<Option<PlacementIndex>, NoSuchPlacement> {
        if record.operation != RequestOperation::Write {
            return Ok(None);
        }
        let among = |number: u32| Some(PlacementIndex((number % u32::from(self.count)) as u16));
        Ok(match self.rule {
            PlacementRule::None => None,
            PlacementRule::Column => match record.placement {
                Some(placement) if placement.0 >= self.count => return Err(NoSuchPlacement),
                placement => placement,
            },
            PlacementRule::LbaRanges => {
                let holds = |range: &&LbaRange| (range.start_bytes..range.end_bytes).contains(&record.offset_bytes);
                self.ranges.iter().find(holds).map(|range| range.placement)
            }
            PlacementRule::RequestSize => {
                let reached = self.sizes_bytes.partition_point(|size| u64::from(record.bytes) >= *size);
                Some(PlacementIndex(reached as u16))
            }
            PlacementRule::Volume => among(record.volume),
            PlacementRule::Process => among(record.process),
            PlacementRule::File => among(record.file),
        })
    }
}
