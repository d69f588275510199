//! Replay of a trace as a source of requests.

use std::collections::VecDeque;

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

/// Replays a trace on a drive.
pub struct TraceSource {
    settings: TraceSettings,
    target: WorkloadTarget,
    seed: u64,
    origin: RequestOrigin,
    reader: TraceReader,
    map: AddressMap,
    placement: ReplayPlacement,
    wanted: [bool; 3],
    endless: bool,
    /// Batch of records with their placement.
    records: Vec<(TraceRecord, Option<PlacementIndex>)>,
    /// Number of mapped records in the batch, and a flag that it is the last one.
    mapped: usize,
    at_end: bool,
    unit_bytes: u64,
    /// Requests and arrivals of the mapped records, and the index of the next one.
    ready: Vec<(IoRequest, Arrival)>,
    next_ready: usize,
    /// Groups of `ready` after the current one: their requests and the totals up to their end.
    prepared: VecDeque<(usize, ReplayCounts)>,
    /// Remaining requests of the current group.
    left_of_group: usize,
    /// Error to return after `ready`.
    failed: Option<WorkloadError>,
    /// Requests of this pass. A trace without requests does not repeat.
    requests_of_pass: u64,
    ended: bool,
    /// Totals up to the last group that was read, and up to the current one.
    read: ReplayCounts,
    current: ReplayCounts,
    /// Issued requests, and their bytes by operation.
    requests_issued: u64,
    bytes_issued: [u64; 3],
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
        Ok(TraceSource { origin: RequestOrigin::Undecided, ..TraceSource::new(self, reader, target, seed)? })
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
        Ok(TraceSource {
            settings: settings.clone(),
            target: *target,
            seed,
            origin: RequestOrigin::Files(None),
            reader,
            map: AddressMap::new(settings, target, seed)?,
            placement: ReplayPlacement::new(settings, target),
            wanted: RequestOperation::ALL.map(|operation| settings.operations.contains(&operation)),
            endless: target.endless,
            records: Vec::with_capacity(LOOKAHEAD),
            mapped: 0,
            at_end: false,
            unit_bytes: target.unit_bytes(),
            ready: Vec::new(),
            next_ready: 0,
            prepared: VecDeque::new(),
            left_of_group: 0,
            failed: None,
            requests_of_pass: 0,
            ended: false,
            read: ReplayCounts::default(),
            current: ReplayCounts::default(),
            requests_issued: 0,
            bytes_issued: [0; 3],
        })
    }

    /// Progress of reading. Copies stay up to date.
    pub fn progress(&self) -> TraceProgress {
        self.reader.progress()
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
            for (request, arrival) in &self.ready[self.next_ready..end] {
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

    /// Takes the requests from a kept trace, or from the files.
    fn choose_origin(&mut self) {
        let TraceSource { settings, target, seed, .. } = self;
        let is_numbered = settings.mapping == AddressMapping::Compact;
        self.origin = RequestOrigin::choose(MappedTraceKey::new(settings, target, *seed), |trace| {
            let fits = !is_numbered || trace.touched_units <= settings.numbered_units_max(target);
            fits && (trace.is_repeatable || !target.endless)
        });
    }

    /// Makes the next group the current one. Returns false at the end.
    fn begin_group(&mut self) -> Result<bool, WorkloadError> {
        if self.prepared.is_empty() {
            assert_eq!(self.next_ready, self.ready.len(), "requests are dropped before they are issued");
            self.ready.clear();
            self.next_ready = 0;
            if !self.read_group()? {
                return Ok(false);
            }
        }
        let group = self.prepared.pop_front().expect("a group was read");
        (self.left_of_group, self.current) = group;
        assert!(
            self.next_ready + self.left_of_group <= self.ready.len(),
            "a group has no more requests than are ready"
        );
        Ok(true)
    }

    /// Reads the requests of the next records as a group, possibly none. Returns false at the end.
    fn read_group(&mut self) -> Result<bool, WorkloadError> {
        let ready_before = self.ready.len();
        if matches!(self.origin, RequestOrigin::Kept(_)) {
            if self.ended {
                return Ok(false);
            }
            self.read_kept_group();
        } else if !self.map_group()? {
            return Ok(false);
        }
        self.prepared.push_back((self.ready.len() - ready_before, self.read));
        Ok(true)
    }

    fn map_group(&mut self) -> Result<bool, WorkloadError> {
        let (before, ready_before, bad_lines_before) = (self.read, self.ready.len(), self.reader.bad_lines());
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
        self.map_records();
        self.requests_of_pass += (self.ready.len() - ready_before) as u64;
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

    fn read_kept_group(&mut self) {
        let RequestOrigin::Kept(cursor) = &mut self.origin else { unreachable!("that is what it is called for") };
        let (ready, placement) = (&mut self.ready, &self.placement);
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
        let again = self.endless && self.requests_of_pass > 0 && self.reader.rewind();
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
    fn map_records(&mut self) {
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
            let ready = &mut self.ready;
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
        if matches!(self.origin, RequestOrigin::Undecided) {
            self.choose_origin();
        }
        self.fill(limit, |request, _| requests.push(request))
    }

    fn prepare(&mut self, limit: usize) -> bool {
        if matches!(self.origin, RequestOrigin::Undecided) {
            self.choose_origin();
        }
        self.ready.drain(..std::mem::take(&mut self.next_ready));
        let units_most = self.current.units_named + UNITS_AHEAD;
        let is_failed = |trace: &TraceSource| trace.mapped == trace.records.len() && trace.failed.is_some();
        while self.ready.len() < limit && self.read.units_named < units_most && !is_failed(self) {
            if !self.read_group().expect("the next group is no error") {
                break;
            }
        }
        true
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
        assert!(!matches!(self.origin, RequestOrigin::Kept(_)), "a kept trace has no times");
        self.fill(limit, |request, arrival| {
            requests.push(request);
            arrivals.push(arrival);
        })
    }

    fn names(&self, most: usize) -> [Vec<String>; 2] {
        self.reader.parser.names(most)
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
