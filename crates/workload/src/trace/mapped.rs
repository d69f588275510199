//! Mapped requests of traces, kept for later passes and for other runs of the same traces.
//!
//! ```text
//! first TraceSource of a trace (reads, maps) -> MappedTraceWriter -> MappedTrace
//!   -> later passes and sources, which only place the requests
//! ```
//!
//! A comparison of placements replays one trace many times. Reading and mapping take most of the
//! time, and a placement changes neither. Traces are kept while a [`MappedTraces`] exists.
//!
//! A request takes 24 bytes, and a group of 64 records another 64. All traces together take at most
//! 512 MiB and a sixteenth of the free memory. The trace that was used longest ago makes room for
//! another one. Runs read a trace that is too large each time.
//!
//! Replays at recorded times keep nothing. The same applies to placements that depend on more than
//! volume, process and file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use base::FileState;

use super::record::{NAMES_MAX, TraceRecord};
use super::settings::{AddressMapping, PlacementRule, TraceSettings};
use super::spool;
use crate::{RequestOperation, WorkloadTarget};

/// Maximum memory of all kept traces, bytes.
const BYTES_MAX: u64 = 512 << 20;
/// Divisor of the free memory. Kept traces may take the quotient.
const FREE_SHARE: u64 = 16;
/// Requests, and groups, whose memory is reserved together.
const CHUNK_REQUESTS: usize = 1 << 16;
const CHUNK_GROUPS: usize = 1 << 10;
const CHUNK_BYTES: u64 = (CHUNK_REQUESTS * size_of::<MappedRequest>()) as u64;
/// Twice the size of the groups, because their list doubles when it grows.
const GROUPS_BYTES: u64 = (2 * CHUNK_GROUPS * size_of::<MappedGroup>()) as u64;

/// Bits of the number of a volume, process or file.
const NUMBER_BITS: u32 = NAMES_MAX.ilog2();
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

const _: () = assert!(NAMES_MAX.is_power_of_two() && 3 * NUMBER_BITS + 2 <= u64::BITS);

/// A request on the drive, without placement.
#[derive(Debug, Clone, Copy)]
struct MappedRequest {
    offset_bytes: u64,
    /// From the lowest bits: volume, process, file, operation.
    origin: u64,
    bytes: u32,
}

impl MappedRequest {
    /// `None` if a number exceeds its bits.
    fn new(record: &TraceRecord, offset_bytes: u64, bytes: u32) -> Option<MappedRequest> {
        let numbers = [record.volume, record.process, record.file].map(u64::from);
        let [volume, process, file] = numbers;
        let packed = volume | process << NUMBER_BITS | file << (2 * NUMBER_BITS);
        let origin = packed | (record.operation as u64) << (3 * NUMBER_BITS);
        numbers.iter().all(|number| *number <= NUMBER_MASK).then_some(MappedRequest { offset_bytes, origin, bytes })
    }

    #[inline]
    fn record(self) -> TraceRecord {
        let number = |place: u32| (self.origin >> (place * NUMBER_BITS) & NUMBER_MASK) as u32;
        TraceRecord {
            time_ns: 0,
            operation: RequestOperation::ALL[(self.origin >> (3 * NUMBER_BITS)) as usize],
            volume: number(0),
            process: number(1),
            file: number(2),
            offset_bytes: self.offset_bytes,
            bytes: self.bytes,
            latency_ns: 0,
            placement: None,
        }
    }
}

/// Totals of records that were mapped together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MappedGroup {
    pub(super) requests: u32,
    pub(super) records: u32,
    /// Units in the records, and bad lines read with them.
    pub(super) units_named: u64,
    pub(super) bad_lines: u64,
    /// Totals since the start of the pass.
    pub(super) volumes: u32,
    pub(super) processes: u32,
    pub(super) files: u32,
    pub(super) touched_units: u64,
    pub(super) last_ns: u64,
    pub(super) bytes_read: u64,
}

/// Requests of one pass over a trace.
#[derive(Debug, Default)]
pub(super) struct MappedTrace {
    chunks: Vec<Vec<MappedRequest>>,
    groups: Vec<MappedGroup>,
    /// Time from the first to the last record of the files.
    pub(super) pass_ns: u64,
    pub(super) touched_units: u64,
    /// True if each later pass has the same requests.
    pub(super) is_repeatable: bool,
}

/// Position in a kept trace.
pub(super) struct MappedTraceCursor {
    pub(super) trace: Arc<MappedTrace>,
    next_group: usize,
    next_request: usize,
}

impl MappedTraceCursor {
    pub(super) fn new(trace: Arc<MappedTrace>) -> MappedTraceCursor {
        MappedTraceCursor { trace, next_group: 0, next_request: 0 }
    }

    /// Calls `take` with the requests of the next group, as records on the drive. The cursor returns
    /// to the start behind the last group.
    #[inline]
    pub(super) fn take_group(&mut self, mut take: impl FnMut(TraceRecord)) -> MappedGroup {
        let group = self.trace.groups[self.next_group];
        let end = self.next_request + group.requests as usize;
        for at in self.next_request..end {
            take(self.trace.chunks[at / CHUNK_REQUESTS][at % CHUNK_REQUESTS].record());
        }
        (self.next_group, self.next_request) = (self.next_group + 1, end);
        if self.next_group == self.trace.groups.len() {
            (self.next_group, self.next_request) = (0, 0);
        }
        group
    }

    /// True before the first group and behind the last one.
    pub(super) fn is_at_start(&self) -> bool {
        self.next_group == 0
    }
}

/// Everything on which the mapped requests of a trace depend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MappedTraceKey {
    settings: TraceSettings,
    /// State of each file. `None` for a stream, which never changes.
    files: Vec<Option<FileState>>,
    target: WorkloadTarget,
    seed: u64,
}

impl MappedTraceKey {
    /// `None` if the trace cannot be kept.
    pub(super) fn new(settings: &TraceSettings, target: &WorkloadTarget, seed: u64) -> Option<MappedTraceKey> {
        use PlacementRule::{File, None as Nowhere, Process, Volume};
        if target.placement_count > 0 && !matches!(settings.placement, Nowhere | Volume | Process | File) {
            return None;
        }
        let state = |file: PathBuf| match spool::is_stream(&file) {
            true => Some(None),
            false => FileState::read(&file).ok().map(Some),
        };
        let files = settings.file_groups().into_iter().flatten().map(state);
        let is_sampled = target.scaled_model.is_some_and(|model| !model.keep_requests);
        // Numbers of units are the same on every drive that holds them.
        let is_numbered = settings.mapping == AddressMapping::Compact && target.scaled_model.is_none();
        Some(MappedTraceKey {
            files: files.collect::<Option<_>>()?,
            settings: TraceSettings {
                placement: Nowhere,
                lba_ranges: Vec::new(),
                request_sizes_bytes: Vec::new(),
                ..settings.clone()
            },
            target: WorkloadTarget {
                device_bytes: if is_numbered { 0 } else { target.device_bytes },
                placement_count: 0,
                endless: false,
                scaled_model: target.scaled_model,
            },
            seed: if is_sampled { seed } else { 0 },
        })
    }
}

/// Keeps mapped traces as long as it exists.
#[must_use]
pub struct MappedTraces(());

impl MappedTraces {
    /// Begins to keep traces.
    pub fn keep() -> MappedTraces {
        let mut shelf = shelf();
        if shelf.guards == 0 {
            shelf.bytes_max = BYTES_MAX.min(base::memory_available_bytes().unwrap_or(0) / FREE_SHARE);
        }
        shelf.guards += 1;
        MappedTraces(())
    }
}

impl Drop for MappedTraces {
    fn drop(&mut self) {
        let mut shelf = shelf();
        assert!(shelf.guards > 0, "traces are released once");
        shelf.guards -= 1;
        if shelf.guards == 0 {
            shelf.entries.clear();
        }
    }
}

/// The kept traces of the process.
static SHELF: Mutex<TraceShelf> =
    Mutex::new(TraceShelf { guards: 0, bytes_max: 0, entries: Vec::new(), next_number: 0 });

struct TraceShelf {
    guards: usize,
    bytes_max: u64,
    /// The most recently used entry comes last.
    entries: Vec<TraceShelfEntry>,
    next_number: u64,
}

struct TraceShelfEntry {
    number: u64,
    key: MappedTraceKey,
    bytes: u64,
    /// `None` while the trace is being read, and if it is too large.
    trace: Option<Arc<MappedTrace>>,
}

fn shelf() -> MutexGuard<'static, TraceShelf> {
    SHELF.lock().expect("nobody panics with it")
}

impl TraceShelf {
    fn entry(&mut self, number: u64) -> Option<&mut TraceShelfEntry> {
        self.entries.iter_mut().find(|entry| entry.number == number)
    }

    /// Reserves memory for an entry. Releases traces that no source uses.
    fn reserve(&mut self, number: u64, bytes: u64) -> bool {
        while self.entries.iter().map(|entry| entry.bytes).sum::<u64>() + bytes > self.bytes_max {
            let is_unused =
                |entry: &TraceShelfEntry| entry.trace.as_ref().is_some_and(|trace| Arc::strong_count(trace) == 1);
            let Some(unused) = self.entries.iter().position(is_unused) else { return false };
            self.entries.remove(unused);
        }
        self.entry(number).is_some_and(|entry| {
            entry.bytes += bytes;
            true
        })
    }
}

/// Origin of the requests of a source.
pub(super) enum RequestOrigin {
    /// Chosen with the first request.
    Undecided,
    /// The files. Their requests may be kept.
    Files(Option<MappedTraceWriter>),
    Kept(MappedTraceCursor),
}

impl RequestOrigin {
    /// Chooses the origin for a source. `is_usable` tells if the source can use a trace.
    pub(super) fn choose(key: Option<MappedTraceKey>, is_usable: impl FnOnce(&MappedTrace) -> bool) -> RequestOrigin {
        let mut shelf = shelf();
        let Some(key) = key.filter(|_| shelf.guards > 0) else {
            return RequestOrigin::Files(None);
        };
        if let Some(found) = shelf.entries.iter().position(|entry| entry.key == key) {
            let entry = shelf.entries.remove(found);
            let trace = entry.trace.clone().filter(|trace| is_usable(trace));
            shelf.entries.push(entry);
            return match trace {
                Some(trace) => RequestOrigin::Kept(MappedTraceCursor::new(trace)),
                None => RequestOrigin::Files(None),
            };
        }
        let number = shelf.next_number;
        shelf.next_number += 1;
        shelf.entries.push(TraceShelfEntry { number, key, bytes: 0, trace: None });
        RequestOrigin::Files(Some(MappedTraceWriter {
            number,
            trace: MappedTrace::default(),
            has_trims: false,
            is_too_large: false,
            group_requests: 0,
        }))
    }
}

/// Keeps the requests of a source that reads a trace.
pub(super) struct MappedTraceWriter {
    number: u64,
    trace: MappedTrace,
    has_trims: bool,
    /// True if the trace cannot be kept.
    pub(super) is_too_large: bool,
    group_requests: u32,
}

impl MappedTraceWriter {
    #[inline]
    pub(super) fn add(&mut self, record: &TraceRecord, offset_bytes: u64, bytes: u32) {
        if self.trace.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK_REQUESTS) {
            self.reserve(CHUNK_BYTES);
            self.trace.chunks.push(Vec::with_capacity(CHUNK_REQUESTS));
        }
        let chunk = self.trace.chunks.last_mut().expect("a chunk was added");
        match MappedRequest::new(record, offset_bytes, bytes) {
            Some(request) => chunk.push(request),
            None => self.is_too_large = true,
        }
        self.group_requests += 1;
    }

    /// Reports that a record was mapped.
    #[inline]
    pub(super) fn end_record(&mut self, record: &TraceRecord) {
        self.has_trims |= record.operation == RequestOperation::Trim;
    }

    /// Adds the totals of the records that were mapped since the last call.
    pub(super) fn end_group(&mut self, totals: MappedGroup) {
        if self.trace.groups.len().is_multiple_of(CHUNK_GROUPS) {
            self.reserve(GROUPS_BYTES);
        }
        self.trace.groups.push(MappedGroup { requests: std::mem::take(&mut self.group_requests), ..totals });
    }

    #[cold]
    fn reserve(&mut self, bytes: u64) {
        self.is_too_large |= !shelf().reserve(self.number, bytes);
    }

    /// Publishes the trace at the end of its first pass. Returns `None` if it is too large.
    pub(super) fn finish(mut self, pass_ns: u64, touched_units: u64, is_repeatable: bool) -> Option<Arc<MappedTrace>> {
        if self.is_too_large {
            return None;
        }
        let trace = std::mem::take(&mut self.trace);
        // A later pass also deallocates units that this one touched only after the trim.
        let is_repeatable = is_repeatable && !self.has_trims;
        let trace = Arc::new(MappedTrace { pass_ns, touched_units, is_repeatable, ..trace });
        if let Some(entry) = shelf().entry(self.number) {
            entry.trace = Some(Arc::clone(&trace));
        }
        Some(trace)
    }
}

impl Drop for MappedTraceWriter {
    /// Lets another source keep the trace if this one did not reach its end. A trace that is too
    /// large keeps its entry, without memory.
    fn drop(&mut self) {
        let (number, is_too_large) = (self.number, self.is_too_large);
        let mut shelf = shelf();
        if is_too_large {
            shelf.entry(number).into_iter().for_each(|entry| entry.bytes = 0);
        } else {
            shelf.entries.retain(|entry| entry.number != number || entry.trace.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_its_fields_and_larger_numbers_are_refused() {
        let record = |volume, process, file, operation| TraceRecord {
            volume,
            process,
            file,
            ..TraceRecord::new(operation, 7, 5).unwrap().unwrap()
        };
        let last = NUMBER_MASK as u32;
        for operation in RequestOperation::ALL {
            for [volume, process, file] in [[0, 0, 0], [last, 0, 3], [1, last, 2], [0, 5, last]] {
                let record = record(volume, process, file, operation);
                let kept = MappedRequest::new(&record, 1 << 48, u32::MAX).unwrap().record();
                assert_eq!(kept, TraceRecord { offset_bytes: 1 << 48, bytes: u32::MAX, ..record });
            }
        }
        assert!(MappedRequest::new(&record(0, last + 1, 0, RequestOperation::Read), 0, 1).is_none());
    }

    #[test]
    fn the_trace_used_longest_ago_makes_room_and_one_in_use_does_not() {
        let key = MappedTraceKey::new(&TraceSettings::default(), &WorkloadTarget::default(), 0).unwrap();
        let trace = || Some(Arc::new(MappedTrace::default()));
        let entry = |number, trace| TraceShelfEntry { number, key: key.clone(), bytes: CHUNK_BYTES, trace };
        let in_use = trace();
        let entries = vec![entry(0, in_use.clone()), entry(1, trace()), entry(2, trace()), entry(3, None)];
        let mut shelf = TraceShelf { guards: 1, bytes_max: 4 * CHUNK_BYTES, entries, next_number: 4 };
        let numbers = |shelf: &TraceShelf| shelf.entries.iter().map(|entry| entry.number).collect::<Vec<_>>();
        assert!(shelf.reserve(3, CHUNK_BYTES));
        assert_eq!(numbers(&shelf), [0, 2, 3]);
        assert!(shelf.reserve(3, CHUNK_BYTES));
        assert_eq!(numbers(&shelf), [0, 3]);
        assert!(!shelf.reserve(3, CHUNK_BYTES), "one trace is in use and the other is being read");
        drop(in_use);
        assert!(shelf.reserve(3, CHUNK_BYTES));
        assert_eq!((numbers(&shelf), shelf.entries[0].bytes), (vec![3], 4 * CHUNK_BYTES));
    }
}
