//! Parser of blktrace's output, the kernel's own records that `blkparse` reads.
//!
//! ```text
//! NAME.blktrace.0, NAME.blktrace.1, ... (one for each processor) -> merged by time -> events
//!   -> TraceRecord
//! ```
//!
//! An event is a `struct blk_io_trace` (`include/uapi/linux/blktrace_api.h`, version 7), followed
//! by `pdu_len` bytes:
//!
//! | byte | | |
//! |---|---|---|
//! | 0 | `magic` | 0x65617400 and the version, 7 |
//! | 4 | `sequence` | |
//! | 8 | `time` | nanoseconds, 64 bits |
//! | 16 | `sector` | of 512 bytes, 64 bits |
//! | 24 | `bytes` | |
//! | 28 | `action` | lower 16 bits: 1 queued, 7 issued, 8 completed; 0x100: a cgroup follows |
//! | 30 | | upper 16 bits: categories |
//! | 32 | `pid` | |
//! | 36 | `device` | major << 20 and minor |
//! | 40, 44, 46 | `cpu`, `error`, `pdu_len` | 32, 16 and 16 bits; `pdu_len` bytes follow |
//!
//! Events of the category *notify* are messages, for example the name of a process. Passthrough
//! commands (category *PC*) have no sector and are no requests here. The output of `blkparse` for
//! the same files gives the same requests (`blkparse.rs`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rustc_hash::FxHashMap;

use super::blkparse::BlkparseAction;
use super::bytes::{u16_at, u32_at, u64_at};
use super::field::{FieldProblem, SECTOR_BYTES};
use super::input::RecordReader;
use super::record::{IdentityNames, ProcessIdentity, TraceRecord, as_text};
use crate::RequestOperation;

/// Bytes of an event without its payload.
pub(super) const HEADER_BYTES: usize = 48;

const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

/// Categories, in the upper half of `action` (`enum blktrace_cat`).
const WRITE: u32 = 1 << 1;
const PASSTHROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
/// Flag in the lower half. A cgroup number precedes the payload (`__BLK_TA_CGROUP`,
/// `__BLK_TN_CGROUP`).
const WITH_CGROUP: u32 = 1 << 8;
/// Bytes of the cgroup number.
const CGROUP_BYTES: usize = 8;
const _: () =
    assert!(HEADER_BYTES + u16::MAX as usize <= super::input::BUFFER_BYTES, "the largest event fits in the buffer");

/// Parses events.
pub(super) struct Blktrace {
    action: u32,
    identity: ProcessIdentity,
    devices: IdentityNames,
    processes: IdentityNames,
    /// Names of processes by their number.
    names: FxHashMap<u32, Box<[u8]>>,
}

impl Blktrace {
    pub(super) fn new(action: BlkparseAction, identity: ProcessIdentity) -> Blktrace {
        Blktrace {
            action: match action {
                BlkparseAction::Queued => 1,
                BlkparseAction::Issued => 7,
                BlkparseAction::Completed => 8,
            },
            identity,
            devices: IdentityNames::default(),
            processes: IdentityNames::default(),
            names: FxHashMap::default(),
        }
    }

    pub(super) fn parse(&mut self, event: &[u8]) -> Result<Option<TraceRecord>, FieldProblem> {
        check(event)?;
        let action = u32_at(event, 28);
        let (categories, what) = (action >> 16, action & 0xffff & !WITH_CGROUP);
        let process = u32_at(event, 32);
        if categories & NOTIFY != 0 {
            if what == 0 {
                self.store_process_name(process, action, &event[HEADER_BYTES..]);
            }
            return Ok(None);
        }
        if what != self.action || categories & PASSTHROUGH != 0 {
            return Ok(None);
        }
        let operation = match categories {
            categories if categories & DISCARD != 0 => RequestOperation::Trim,
            categories if categories & WRITE != 0 => RequestOperation::Write,
            _ => RequestOperation::Read,
        };
        let offset = u64_at(event, 16).checked_mul(SECTOR_BYTES);
        let offset = offset.ok_or(FieldProblem::new("the sector", "below 2^50"))?;
        let Some(mut record) = TraceRecord::new(operation, offset, u32_at(event, 24).into())? else {
            return Ok(None);
        };
        record.time_ns = u64_at(event, 8);
        record.volume = self.devices.number(&event[36..40])?;
        let number = process.to_le_bytes();
        let name = self.names.get(&process).filter(|_| self.identity == ProcessIdentity::Name);
        record.process = self.processes.number(name.map_or(&number, |name| name))?;
        Ok(Some(record))
    }

    /// True if processes are identified by their names.
    pub(super) fn has_names(&self) -> bool {
        self.identity == ProcessIdentity::Name
    }

    /// Names of the first devices and processes, at most `most` of each.
    pub(super) fn names(&self, most: usize) -> [Vec<String>; 2] {
        /// Bits of a device's minor number.
        const MINOR_BITS: u32 = 20;
        let device = |bytes: &[u8]| {
            let number = u32_at(bytes, 0);
            format!("{},{}", number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1))
        };
        let is_named = |bytes: &[u8]| self.names.values().any(|name| **name == *bytes);
        let process = |bytes: &[u8]| match bytes.len() == 4 && !is_named(bytes) {
            true => u32_at(bytes, 0).to_string(),
            false => as_text(bytes),
        };
        [self.devices.first(most, device), self.processes.first(most, process)]
    }

    fn store_process_name(&mut self, process: u32, action: u32, message: &[u8]) {
        let skipped = if action & WITH_CGROUP == 0 { 0 } else { CGROUP_BYTES };
        let name = message.get(skipped..).unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        self.names.insert(process, name.into());
    }
}

/// Total bytes of the event with this header.
pub(super) fn event_bytes(header: &[u8]) -> usize {
    HEADER_BYTES + usize::from(u16_at(header, 46))
}

/// True if a file begins with an event, in either byte order.
pub(super) fn guess(head: &[u8]) -> bool {
    head.len() >= 4 && [u32_at(head, 0), u32_at(head, 0).swap_bytes()].contains(&(MAGIC | VERSION))
}

/// Refuses data that is no event. Events behind it cannot be found.
fn check(event: &[u8]) -> Result<(), FieldProblem> {
    let magic = u32_at(event, 0);
    if magic == MAGIC | VERSION {
        return Ok(());
    }
    Err(if magic.swap_bytes() == MAGIC | VERSION {
        FieldProblem::whole_file(
            "the byte order",
            "little-endian. Print the trace with blkparse on the machine that recorded it",
        )
    } else if magic & !0xff == MAGIC {
        FieldProblem::whole_file("the version of blktrace", "7. Print the trace with blkparse")
    } else {
        FieldProblem::whole_file("the event", "an event of blktrace, because its magic number is missing")
    })
}

/// All files of a trace, given one of them. `NAME.blktrace.0` stands for the files of all
/// processors. Any other name stands for itself.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    let split = |path: &Path| {
        let name = path.file_name()?.to_str()?.to_string();
        let (stem, processor) = name.rsplit_once(".blktrace.")?;
        Some((stem.to_string(), processor.parse::<u32>().ok()?))
    };
    let Some((stem, _)) = split(path) else {
        return vec![path.to_path_buf()];
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new(".")));
    let mut files: Vec<(u32, PathBuf)> = Vec::new();
    for entry in entries.into_iter().flatten().flatten() {
        let found = path.with_file_name(entry.file_name());
        if let Some((of, processor)) = split(&found)
            && of == stem
        {
            files.push((processor, found));
        }
    }
    files.sort();
    if files.is_empty() {
        return vec![path.to_path_buf()];
    }
    files.into_iter().map(|(_, file)| file).collect()
}

/// The events of several files as one stream, in the order of their times.
pub(super) struct EventMerge {
    files: Vec<(PathBuf, RecordReader)>,
    /// Time of each file's next event, if any, and the file's index.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    events: Vec<Vec<u8>>,
    /// File of the event in progress, and the bytes of it already returned.
    giving: Option<(usize, usize)>,
}

impl EventMerge {
    /// Opens the files. Adds all bytes read to `bytes_read`.
    pub(super) fn open(paths: &[PathBuf], bytes_read: &Arc<AtomicU64>) -> io::Result<EventMerge> {
        let open = |path: &PathBuf| Ok((path.clone(), RecordReader::open(path, Arc::clone(bytes_read))?));
        let mut merged = EventMerge {
            files: paths.iter().map(open).collect::<io::Result<_>>()?,
            next: BinaryHeap::new(),
            events: vec![Vec::new(); paths.len()],
            giving: None,
        };
        for file in 0..paths.len() {
            merged.read_event(file)?;
        }
        Ok(merged)
    }

    fn read_event(&mut self, file: usize) -> io::Result<()> {
        let (path, lines) = &mut self.files[file];
        let event = lines.take_record(HEADER_BYTES, event_bytes)?;
        let bad = |number: u64, problem: String| {
            let place = format!("in record {number} of {}, {problem}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, place)
        };
        let Some(record) = event else { return Ok(()) };
        if record.is_cut_off {
            let problem = "the event is incomplete. Copy the file again".to_string();
            return Err(bad(lines.number(), problem));
        }
        let checked = check(record.bytes);
        let event = &mut self.events[file];
        event.clear();
        event.extend_from_slice(record.bytes);
        checked.map_err(|problem| bad(lines.number(), problem.to_string()))?;
        self.next.push(Reverse((u64_at(event, 8), file)));
        assert!(
            self.next.len() <= self.files.len(),
            "{} events come next from {} files",
            self.next.len(),
            self.files.len()
        );
        Ok(())
    }
}

impl Read for EventMerge {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut given = 0;
        while given < buffer.len() {
            let Some((file, from)) = self.giving else {
                let Some(Reverse((_, file))) = self.next.pop() else {
                    break;
                };
                self.giving = Some((file, 0));
                continue;
            };
            let rest = &self.events[file][from..];
            let bytes = rest.len().min(buffer.len() - given);
            buffer[given..given + bytes].copy_from_slice(&rest[..bytes]);
            given += bytes;
            self.giving = Some((file, from + bytes));
            if bytes == rest.len() {
                self.giving = None;
                self.read_event(file)?;
            }
        }
        Ok(given)
    }
}
