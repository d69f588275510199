//! Parses the block requests in the kernel's trace output, as `trace_pipe` prints them.
//!
//! ```text
//!   fio-697     [001] d..1.   123.456789: block_rq_issue: 259,0 WS 4096 () 2048 + 8 none,0,0 [fio]
//! thread number CPU  flags    seconds     event           disk  |  bytes   sector + sectors   thread's name
//! ```
//!
//! `include/trace/events/block.h` of Linux defines the format. The fields between operation and
//! sector, and between the number of sectors and the name, differ between kernel versions. The
//! parser skips them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOperation {
    Read,
    Write,
    Discard,
}

impl DiskOperation {
    pub fn letter(self) -> char {
        match self {
            DiskOperation::Read => 'R',
            DiskOperation::Write => 'W',
            DiskOperation::Discard => 'D',
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRequest<'a> {
    pub disk: (u32, u32),
    /// Time of the kernel's clock, microseconds.
    pub time_us: u64,
    pub thread: &'a str,
    pub operation: DiskOperation,
    pub offset_bytes: u64,
    /// Length, bytes, never 0.
    pub bytes: u64,
    /// Only in an event with hints.
    pub hint: Option<WriteHint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteHint {
    /// Value of `F_SET_RW_HINT`: 0 not set, 1 none, 2 short, 3 medium, 4 long, 5 extreme.
    pub lifetime: u8,
    /// Stream from 1, or 0 for no stream.
    pub stream: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent<'a> {
    Request(BlockRequest<'a>),
    /// Flush, passthrough command or line about the trace itself.
    Nothing,
    Unknown,
}

const SECTOR_BYTES: u64 = 512;

pub fn parse<'a>(line: &'a str, event: &str) -> TraceEvent<'a> {
    let text = line.trim();
    if text.is_empty() || text.starts_with('#') || text.starts_with("CPU:") {
        return TraceEvent::Nothing;
    }
    request(text, event).unwrap_or(TraceEvent::Unknown)
}

fn request<'a>(line: &'a str, event: &str) -> Option<TraceEvent<'a>> {
    let (head, tail) = line.split_once(&format!(": {event}: "))?;
    let time_us = microseconds(head.rsplit(' ').next()?)?;
    // Fields before the name are words. The name may contain any character.
    let (place, after) = tail.split_once(" + ")?;
    let mut words = place.split_whitespace();
    let (disk, flags) = (words.next()?, words.next()?);
    let (major, minor) = disk.split_once(',')?;
    let sector: u64 = words.next_back()?.parse().ok()?;
    let (sectors, rest) = after.split_once(' ')?;
    let sectors: u64 = sectors.parse().ok()?;
    let name = rest.split_once('[')?.1.strip_suffix(']')?;
    let Some(operation) = operation(flags).filter(|_| sectors > 0) else {
        return Some(TraceEvent::Nothing);
    };
    Some(TraceEvent::Request(BlockRequest {
        disk: (major.parse().ok()?, minor.parse().ok()?),
        time_us,
        thread: name,
        operation,
        offset_bytes: sector.checked_mul(SECTOR_BYTES)?,
        bytes: sectors.checked_mul(SECTOR_BYTES)?,
        hint: None,
    }))
}

/// Parses a line of the event with hints:
///
/// ```text
///   fio-166 [000] ...1.   124.526658: hints: (__probestub_block_bio_queue+0x4/0x10) hint=2 stream=2 dev=271581185 sector=0 bytes=65536 op=0x208801 comm="fio"
/// ```
///
/// The name of the thread at the start may be unknown when the line is read.
pub fn parse_hints<'a>(line: &'a str, event: &str) -> TraceEvent<'a> {
    match parse(line, event) {
        TraceEvent::Unknown => hinted_request(line.trim(), event).unwrap_or(TraceEvent::Unknown),
        nothing => nothing,
    }
}

fn hinted_request<'a>(line: &'a str, event: &str) -> Option<TraceEvent<'a>> {
    let (head, tail) = line.split_once(&format!(": {event}: ("))?;
    let time_us = microseconds(head.rsplit(' ').next()?)?;
    let (tail, name) = tail.split_once(" comm=\"")?;
    let name = name.strip_suffix('"')?;
    let value = |field: &str| tail.split_whitespace().find_map(|word| word.strip_prefix(field)?.strip_prefix('='));
    let number = |field: &str| value(field)?.parse::<u64>().ok();
    let flags = u32::from_str_radix(value("op")?.strip_prefix("0x")?, 16).ok()?;
    // The lowest byte is the operation (REQ_OP).
    let operation = match flags & 0xff {
        0 => DiskOperation::Read,
        1 | 9 => DiskOperation::Write,
        3 | 5 => DiskOperation::Discard,
        _ => return Some(TraceEvent::Nothing),
    };
    let (device, bytes) = (u32::try_from(number("dev")?).ok()?, number("bytes")?);
    let stream = u8::try_from(number("stream").unwrap_or(0)).ok()?;
    let hint = WriteHint { lifetime: u8::try_from(number("hint")?).ok()?, stream };
    if bytes == 0 {
        return Some(TraceEvent::Nothing);
    }
    Some(TraceEvent::Request(BlockRequest {
        disk: (device >> 20, device & 0xf_ffff),
        time_us,
        thread: name,
        operation,
        offset_bytes: number("sector")?.checked_mul(SECTOR_BYTES)?,
        bytes,
        hint: Some(hint),
    }))
}

/// Parses seconds with six decimals into microseconds.
fn microseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    if fraction.len() != 6 {
        return None;
    }
    let (seconds, fraction): (u64, u64) = (seconds.parse().ok()?, fraction.parse().ok()?);
    seconds.checked_mul(1_000_000)?.checked_add(fraction)
}

/// Finds the operation among the flags. A leading F is a flush. N is an operation without a
/// location.
fn operation(flags: &str) -> Option<DiskOperation> {
    flags.chars().find_map(|flag| match flag {
        'R' => Some(Some(DiskOperation::Read)),
        'W' => Some(Some(DiskOperation::Write)),
        'D' | 'E' => Some(Some(DiskOperation::Discard)),
        'N' => Some(None),
        _ => None,
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(thread: &'a str, operation: DiskOperation, sector: u64, sectors: u64) -> TraceEvent<'a> {
        on(0, thread, operation, sector, sectors)
    }

    fn on<'a>(minor: u32, thread: &'a str, operation: DiskOperation, sector: u64, sectors: u64) -> TraceEvent<'a> {
        TraceEvent::Request(BlockRequest {
            disk: (259, minor),
            time_us: 123_456_789,
            thread,
            operation,
            offset_bytes: sector * 512,
            bytes: sectors * 512,
            hint: None,
        })
    }

    #[test]
    fn lines_of_old_and_new_kernels_are_read() {
        let head = "     fio-697     [001] d..1.   123.456789: ";
        for (tail, wanted) in [
            ("block_rq_issue: 259,0 WS 4096 () 2048 + 8 none,0,0 [fio]", found("fio", DiskOperation::Write, 2048, 8)),
            (
                "block_rq_issue: 259,0 R 4096 () 2048 + 8 [rocksdb:low0]",
                found("rocksdb:low0", DiskOperation::Read, 2048, 8),
            ),
            (
                "block_rq_issue: 259,0 DS 0 () 0 + 64 none,0,0 [a [b] c]",
                found("a [b] c", DiskOperation::Discard, 0, 64),
            ),
            (
                "block_rq_issue: 259,0 FWFSM 512 () 9 + 1 none,0,0 [jbd2/nvme0n1-8]",
                found("jbd2/nvme0n1-8", DiskOperation::Write, 9, 1),
            ),
            ("block_rq_issue: 259,0 FF 0 () 18446744073709551615 + 0 none,0,0 [x]", TraceEvent::Nothing),
            ("block_rq_issue: 259,0 N 64 (02 00) 0 + 0 none,0,0 [nvme]", TraceEvent::Nothing),
            ("block_rq_issue: 259,0 WS 4096 () x + 8 none,0,0 [fio]", TraceEvent::Unknown),
            ("block_rq_issue: 259,0", TraceEvent::Unknown),
            ("block_rq_issue: 259 WS 4096 () 2048 + 8 [fio]", TraceEvent::Unknown),
            ("block_rq_insert: 259,0 WS 4096 () 2048 + 8 [fio]", TraceEvent::Unknown),
        ] {
            assert_eq!(parse(&format!("{head}{tail}\n"), "block_rq_issue"), wanted, "{tail}");
        }
        let queued = "<...>-9 [000] ..... 123.456789: block_bio_queue: 259,1 WS 2048 + 8 [dd]";
        assert_eq!(parse(queued, "block_bio_queue"), on(1, "dd", DiskOperation::Write, 2048, 8));
    }

    #[test]
    fn lines_with_hints_are_read() {
        let line = |name: &str, fields: &str| {
            format!(
                "  <...>-166 [000] ...1. 123.456789: hints: (__probestub_block_bio_queue+0x4/0x10) {fields} comm=\"{name}\""
            )
        };
        let wanted = |hint| {
            let TraceEvent::Request(request) = on(1, "a - [b", DiskOperation::Write, 128, 128) else { unreachable!() };
            TraceEvent::Request(BlockRequest { hint: Some(hint), ..request })
        };
        let fields = "hint=2 stream=3 dev=271581185 sector=128 bytes=65536 op=0x208801";
        let (both, old) = (line("a - [b", fields), line("a - [b", &fields.replace("stream=3 ", "")));
        assert_eq!(parse_hints(&both, "hints"), wanted(WriteHint { lifetime: 2, stream: 3 }));
        assert_eq!(parse_hints(&old, "hints"), wanted(WriteHint { lifetime: 2, stream: 0 }));
        assert_eq!(parse_hints(&line("x", &fields.replace("65536", "0")), "hints"), TraceEvent::Nothing);
        assert_eq!(parse_hints(&line("x", &fields.replace("0x208801", "0x2")), "hints"), TraceEvent::Nothing);
        assert_eq!(parse_hints(&line("x", "hint=x"), "hints"), TraceEvent::Unknown);
        assert_eq!(parse_hints("# tracer: nop", "hints"), TraceEvent::Nothing);
    }

    #[test]
    fn lines_about_the_trace_are_nothing() {
        for line in ["", "# tracer: nop", "CPU:1 [LOST 118 EVENTS]"] {
            assert_eq!(parse(line, "block_rq_issue"), TraceEvent::Nothing, "{line}");
        }
    }
}
