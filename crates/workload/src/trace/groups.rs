//! Reads the records of a trace and maps them in groups of requests.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;

use super::mapped::{MappedGroup, MappedTraceCursor, MappedTraceKey, RequestOrigin};
use super::mapping::{AddressMap, TooManyUnits};
use super::reader::TraceReader;
use super::record::TraceRecord;
use super::settings::{AddressMapping, LbaRange, PlacementRule, ROOM_BYTES, TraceSettings};
use super::spool;
use crate::{IoRequest, PlacementIndex, RequestOperation, WorkloadError, WorkloadTarget};

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

/// Records that are read ahead of mapping, so that the cache misses of mapping overlap.
const LOOKAHEAD: usize = 64;

/// Maximum units in the records of a batch, so that a batch of large requests takes no longer than
/// a batch of small ones.
pub(super) const UNITS_AHEAD: u64 = 1 << 20;

/// Requests that a thread reads ahead at a time. One such list waits while the thread reads the next.
const AHEAD_REQUESTS: usize = 8192;

/// Groups of requests that follow each other.
#[derive(Default)]
pub(super) struct PreparedGroups {
    pub(super) requests: Vec<(IoRequest, Arrival)>,
    /// Requests of each group, and the totals up to its end.
    pub(super) groups: VecDeque<(usize, ReplayCounts)>,
    /// True if the trace ends behind these groups, and the error that ends it.
    pub(super) is_last: bool,
    pub(super) failed: Option<WorkloadError>,
}

/// Reads the records of a trace and maps them in groups.
pub(super) struct GroupReader {
    settings: TraceSettings,
    target: WorkloadTarget,
    seed: u64,
    pub(super) origin: RequestOrigin,
    pub(super) reader: TraceReader,
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
pub(super) struct ReplayCounts {
    pub(super) records: u64,
    /// Units in the records, and bad lines read with them.
    pub(super) units_named: u64,
    pub(super) bad_lines: u64,
    pub(super) touched_units: u64,
    pub(super) passes: u64,
    /// Numbers of volumes, processes and files so far.
    pub(super) volumes: u32,
    pub(super) processes: u32,
    pub(super) files: u32,
    /// Time of the last record, since the first.
    pub(super) last_ns: u64,
    pub(super) bytes_read: u64,
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

impl GroupReader {
    /// Reads the records of a reader. Of the settings, only those about the drive are used.
    ///
    /// # Errors
    /// Fails if the trace cannot be mapped to the drive.
    pub(super) fn new(
        settings: &TraceSettings,
        reader: TraceReader,
        target: &WorkloadTarget,
        seed: u64,
    ) -> Result<GroupReader, WorkloadError> {
        Ok(GroupReader {
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
        })
    }

    /// Reads all groups for another thread.
    pub(super) fn read_to_end(mut self: Box<Self>, sender: &SyncSender<PreparedGroups>) {
        if !matches!(self.origin, RequestOrigin::Kept(_)) && self.failed.is_none() {
            self.failed = self.reader.decompress_ahead().err();
        }
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
    pub(super) fn read_groups(&mut self, groups: &mut PreparedGroups, requests_enough: usize) {
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

    /// Takes the requests from a kept trace, or from the files, if that is undecided. A kept trace has
    /// no times, so nobody decides for requests with their times.
    pub(super) fn decide_origin(&mut self) {
        if !matches!(self.origin, RequestOrigin::Undecided) {
            return;
        }
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
