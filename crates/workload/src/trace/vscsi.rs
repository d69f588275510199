//! Parser of vscsiStats records, in which VMware's hypervisor logs the SCSI commands of a virtual
//! disk. The CloudPhysics traces use this format.
//!
//! | version 1, 32 bytes | version 2, 40 bytes | |
//! |---|---|---|
//! | 12 | 0 | `cmd`, 16 bits: operation code of the SCSI command |
//! | 14 | 2 | `ver`, 16 bits: the version is the upper byte |
//! | 0 | 4 | `sn`, 32 bits: sequence number |
//! | 4 | 8 | `len`, 32 bits: bytes |
//! | 8 | 12 | `nSG`, 32 bits: elements of the scatter list |
//! | 16 | 16 | `lbn`, 64 bits: sector of 512 bytes |
//! | 24 | 24 | `ts`, 64 bits: microseconds |
//! | | 32 | `rt`, 64 bits: response time |
//!
//! Fields are little-endian. A file is a disk. The source is the reader of libCacheSim
//! (`traceReader/customizedReader/vscsi.h`), which has no other documentation. Operation codes are
//! those of SPC and SBC. Only reads, writes and unmaps are requests. UNMAP has its ranges in data
//! that is not recorded. The record's own position and length count, which are usually 0.

use super::bytes::{u16_at, u32_at, u64_at};
use super::field::{FieldProblem, SECTOR_BYTES};
use super::record::TraceRecord;
use crate::RequestOperation;

/// Parses records of both versions.
pub(super) struct Vscsi {
    pub(super) version: VscsiVersion,
    /// Number of this file, from 0.
    volume: u32,
    begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VscsiVersion {
    One,
    Two,
}

const MICROSECOND_NS: u64 = 1000;

impl VscsiVersion {
    const ALL: [VscsiVersion; 2] = [VscsiVersion::One, VscsiVersion::Two];

    pub(super) fn record_bytes(self) -> usize {
        match self {
            VscsiVersion::One => 32,
            VscsiVersion::Two => 40,
        }
    }

    /// Positions of operation code, version and length in a record.
    fn places(self) -> (usize, usize, usize) {
        match self {
            VscsiVersion::One => (12, 14, 4),
            VscsiVersion::Two => (0, 2, 8),
        }
    }

    /// True if a record claims to be of this version.
    fn is_of(self, record: &[u8]) -> bool {
        let (_, version, _) = self.places();
        record.len() >= self.record_bytes() && usize::from(u16_at(record, version) >> 8) == self as usize + 1
    }
}

/// Guesses the version of a file from its first two records, or from a single one.
pub(super) fn guess(head: &[u8]) -> Option<VscsiVersion> {
    VscsiVersion::ALL.into_iter().find(|version| {
        let mut records = head.chunks_exact(version.record_bytes()).take(2).peekable();
        records.peek().is_some() && records.all(|record| version.is_of(record))
    })
}

impl Vscsi {
    /// Creates a parser for a first file that begins with `head`.
    pub(super) fn new(head: &[u8]) -> Vscsi {
        Vscsi { version: guess(head).unwrap_or(VscsiVersion::Two), volume: 0, begun: false }
    }

    pub(super) fn begin_file(&mut self) {
        self.volume += u32::from(std::mem::replace(&mut self.begun, true));
    }

    pub(super) fn begin_pass(&mut self) {
        (self.volume, self.begun) = (0, false);
    }

    pub(super) fn parse(&mut self, record: &[u8]) -> Result<Option<TraceRecord>, FieldProblem> {
        if !self.version.is_of(record) {
            return Err(FieldProblem::whole_file(
                "the version of the record",
                "1 or 2 of vscsiStats, or differs from the version of the first record",
            ));
        }
        let (command, _, length) = self.version.places();
        let Some(operation) = operation(u16_at(record, command)) else {
            return Ok(None);
        };
        let offset = u64_at(record, 16).checked_mul(SECTOR_BYTES);
        let offset = offset.ok_or(FieldProblem::new("the offset", "below 2^59 bytes"))?;
        let time_ns = u64_at(record, 24).checked_mul(MICROSECOND_NS);
        let time_ns = time_ns.ok_or(FieldProblem::new("the time", "a number of microseconds below 2^64 ns"))?;
        let found = TraceRecord::new(operation, offset, u32_at(record, length).into())?;
        Ok(found.map(|found| TraceRecord { time_ns, volume: self.volume, ..found }))
    }
}

/// Classifies READ and WRITE of 6, 10, 12 and 16 bytes, WRITE SAME (as a write) and UNMAP.
fn operation(code: u16) -> Option<RequestOperation> {
    match code {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(RequestOperation::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x41 | 0x93 => Some(RequestOperation::Write),
        0x42 => Some(RequestOperation::Trim),
        _ => None,
    }
}
