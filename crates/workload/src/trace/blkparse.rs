//! Parser of the text output of `blkparse`.
//!
//! ```text
//!   8,0    3        1     0.000000000   697  D   W 223490 + 8 [kjournald]
//! device  CPU  sequence        seconds   pid  |   |  sector   sectors  process
//!                                        action   operation
//! ```
//!
//! This is the default format of an event with a request (blkparse(1), "OUTPUT DESCRIPTION AND
//! FORMATTING"). The header is `%D %2c %8s %5T.%9t %5p %2a %3d`, then sector, `+` and the number of
//! sectors of 512 bytes. One request appears several times, as it is queued (Q), issued to the
//! drive (D) and completed (C). The settings choose the event that counts. The operation is W, D
//! (discard) or R, among flags. F before it means flush first, and behind it FUA. Further flags are
//! A (ahead), B (barrier), S (synchronous) and M (metadata). A flush alone (`FN`, `N`) is no
//! request here. A summary follows the events, from the first line that begins with `CPU` or
//! `Total`, and is skipped.

use serde::{Deserialize, Serialize};

use super::field::{FieldProblem, Fields, SECOND_NS, SECTOR_BYTES, decimal, number, trim};
use super::record::{IdentityNames, ProcessIdentity, TraceRecord};
use crate::RequestOperation;

/// Event of a request that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlkparseAction {
    /// Q, before merging and scheduling, as fio replays binary traces.
    Queued,
    /// D, as the drive receives the request, after merging.
    Issued,
    /// C, in the order of completion.
    Completed,
}

/// Parses the output of blkparse.
pub(super) struct Blkparse {
    action: u8,
    identity: ProcessIdentity,
    pub(super) devices: IdentityNames,
    pub(super) processes: IdentityNames,
    in_summary: bool,
    /// Time of the last request. The next file continues from there.
    now_ns: u64,
    began_ns: u64,
}

const TIME: FieldProblem = FieldProblem::new("the time", "a number of seconds");
const FIELD: FieldProblem = FieldProblem::new(
    "the line",
    "of the form that blkparse prints (device, CPU, sequence, time, process, action, ...)",
);
const OPERATION: FieldProblem = FieldProblem::new("the operation", "made of R, W, D or N and flags");

impl Blkparse {
    pub(super) fn new(action: BlkparseAction, identity: ProcessIdentity) -> Blkparse {
        Blkparse {
            action: match action {
                BlkparseAction::Queued => b'Q',
                BlkparseAction::Issued => b'D',
                BlkparseAction::Completed => b'C',
            },
            identity,
            devices: IdentityNames::default(),
            processes: IdentityNames::default(),
            in_summary: false,
            now_ns: 0,
            began_ns: 0,
        }
    }

    pub(super) fn begin_file(&mut self) {
        self.in_summary = false;
        self.began_ns = self.now_ns;
    }

    pub(super) fn begin_pass(&mut self) {
        self.now_ns = 0;
    }

    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, FieldProblem> {
        let mut fields = Fields::new(line);
        let Some(device) = fields.word() else {
            return Ok(None);
        };
        if self.in_summary || device.starts_with(b"CPU") || device == b"Total" {
            self.in_summary = true;
            return Ok(None);
        }
        if !is_device(device) {
            return Err(FieldProblem::new("the device", "major,minor"));
        }
        let mut next = || fields.word().ok_or(FIELD);
        let (_cpu, _sequence, time, process, action) = (next()?, next()?, next()?, next()?, next()?);
        if action != [self.action] {
            return Ok(None);
        }
        let Some(operation) = operation(next()?)? else {
            return Ok(None);
        };
        let sector = number(next()?).and_then(|sector| sector.checked_mul(SECTOR_BYTES));
        let sector = sector.ok_or(FieldProblem::new("the sector", "a number"))?;
        if next()? != b"+" {
            return Err(FieldProblem::new("the text behind the sector", "+"));
        }
        let sectors = number(next()?).and_then(|sectors| sectors.checked_mul(SECTOR_BYTES));
        let sectors = sectors.ok_or(FieldProblem::new("the number of sectors", "a number"))?;
        let Some(mut record) = TraceRecord::new(operation, sector, sectors)? else {
            return Ok(None);
        };
        let since = decimal(time, SECOND_NS).ok_or(TIME)?;
        self.now_ns = self.began_ns.checked_add(since).ok_or(TIME)?;
        record.time_ns = self.now_ns;
        record.volume = self.devices.number(device)?;
        let name = trim(fields.rest);
        let name = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
        let name = name.filter(|name| self.identity == ProcessIdentity::Name && !name.is_empty());
        record.process = self.processes.number(name.unwrap_or(process))?;
        Ok(Some(record))
    }
}

/// True if a word is a device, with which events begin.
pub(super) fn is_device(word: &[u8]) -> bool {
    let mut fields = Fields::new(word);
    fields.number_before(b',').is_some() && fields.last_number().is_some()
}

/// Parses the operation field. Returns `None` for a flush.
fn operation(flags: &[u8]) -> Result<Option<RequestOperation>, FieldProblem> {
    let is_known = |byte: &u8| b"RWDENFABSM".contains(byte);
    if flags.is_empty() || !flags.iter().all(is_known) {
        return Err(OPERATION);
    }
    let first = flags.iter().find(|flag| b"RWDEN".contains(flag));
    Ok(match first {
        Some(b'R') => Some(RequestOperation::Read),
        Some(b'W') => Some(RequestOperation::Write),
        // A secure erase is printed as DE, and in older versions as E.
        Some(b'D' | b'E') => Some(RequestOperation::Trim),
        _ => None,
    })
}
