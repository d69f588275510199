//! Parser of fio's iologs, versions 2 and 3.
//!
//! ```text
//! fio version 2 iolog                      fio version 3 iolog
//! /dev/nvme0n1 add                         0 /dev/nvme0n1 add
//! /dev/nvme0n1 open                        5 /dev/nvme0n1 open
//! /dev/nvme0n1 write 4096 8192             17 /dev/nvme0n1 write 4096 8192
//! /dev/nvme0n1 wait 1000 0
//! ```
//!
//! Offsets and lengths are in bytes. `wait` has microseconds in place of the offset. Version 3
//! starts each line with a timestamp in microseconds and has no `wait` (fio's HOWTO, "Trace file
//! format v2" and "v3"; `read_iolog` of fio's `iolog.c`). A file is a volume. `sync` and `datasync`
//! are no requests here.
//!
//! An extra column may follow, with the placement index or `-`. fio scans only the fields that it
//! knows and ignores the rest. The same file can therefore be replayed by fio and read here with
//! its placement.

use super::field::{FieldProblem, Fields, number};
use super::record::{IdentityNames, TraceRecord};
use crate::{PlacementIndex, RequestOperation};

/// First lines of the two versions.
pub(super) const HEADERS: [&[u8]; 2] = [b"fio version 2 iolog", b"fio version 3 iolog"];

/// Parses iologs of both versions.
#[derive(Debug, Default)]
pub(super) struct IologParser {
    pub(super) files: IdentityNames,
    version: Option<IologFormat>,
    /// Time of the last request, nanoseconds. The next file continues from there.
    now_ns: u64,
    /// Start time of this file.
    began_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IologFormat {
    Two,
    Three,
}

const MICROSECOND_NS: u64 = 1000;
const TIME: FieldProblem = FieldProblem::new("the time", "a number of microseconds");

impl IologParser {
    pub(super) fn begin_file(&mut self) {
        self.version = None;
        self.began_ns = self.now_ns;
    }

    pub(super) fn begin_pass(&mut self) {
        self.now_ns = 0;
    }

    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, FieldProblem> {
        let Some(version) = self.version else {
            self.version = match HEADERS.iter().position(|header| *header == line) {
                Some(0) => Some(IologFormat::Two),
                Some(_) => Some(IologFormat::Three),
                None => {
                    return Err(FieldProblem::whole_file(
                        "the first line",
                        "\"fio version 2 iolog\" or \"fio version 3 iolog\"",
                    ));
                }
            };
            return Ok(None);
        };
        let mut fields = Fields::new(line);
        if version == IologFormat::Three {
            let time = fields.word().and_then(number).ok_or(TIME)?;
            let since = time.checked_mul(MICROSECOND_NS).ok_or(TIME)?;
            self.now_ns = self.began_ns.checked_add(since).ok_or(TIME)?;
        }
        let Some(file) = fields.word() else {
            return Ok(None);
        };
        let action = fields.word().ok_or(FieldProblem::missing("the action"))?;
        self.parse_action(version, file, action, fields)
    }

    fn parse_action(
        &mut self,
        version: IologFormat,
        file: &[u8],
        action: &[u8],
        mut fields: Fields,
    ) -> Result<Option<TraceRecord>, FieldProblem> {
        let operation = match action {
            b"read" => RequestOperation::Read,
            b"write" => RequestOperation::Write,
            b"trim" => RequestOperation::Trim,
            b"wait" if version == IologFormat::Two => return self.wait(fields),
            b"add" | b"open" | b"close" | b"sync" | b"datasync" => return Ok(None),
            _ => {
                return Err(FieldProblem::new(
                    "the action",
                    "read, write, trim, sync, datasync, wait (version 2), add, open or close",
                ));
            }
        };
        let mut amount = |name| fields.word().and_then(number).ok_or(FieldProblem::new(name, "a number of bytes"));
        let record = TraceRecord::new(operation, amount("the offset")?, amount("the length")?)?;
        let Some(mut record) = record else {
            return Ok(None);
        };
        record.time_ns = self.now_ns;
        record.volume = self.files.number(file)?;
        record.placement = fields.word().map_or(Ok(None), placement)?;
        Ok(Some(record))
    }

    fn wait(&mut self, mut fields: Fields) -> Result<Option<TraceRecord>, FieldProblem> {
        let wait = fields.word().and_then(number).ok_or(TIME)?;
        let wait = wait.checked_mul(MICROSECOND_NS).ok_or(TIME)?;
        self.now_ns = self.now_ns.checked_add(wait).ok_or(TIME)?;
        Ok(None)
    }
}

/// Parses the column with the placement index.
pub(super) fn placement(text: &[u8]) -> Result<Option<PlacementIndex>, FieldProblem> {
    if text.is_empty() || text == b"-" {
        return Ok(None);
    }
    match number(text).map(u16::try_from) {
        Some(Ok(index)) => Ok(Some(PlacementIndex(index))),
        _ => Err(FieldProblem::new("the placement", "a placement index or \"-\"")),
    }
}
