//! Parsers of three widely used traces: MSR Cambridge, Alibaba and Tencent.
//!
//! | trace | fields | units |
//! |---|---|---|
//! | MSR Cambridge | `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime` | times in 100 ns, since 1601 ("Windows filetime"), `Read` or `Write`, bytes |
//! | Alibaba | `device_id,opcode,offset,length,timestamp` | `R` or `W`, bytes, microseconds |
//! | Tencent | `Timestamp,Offset,Size,IOType,VolumeID` | seconds, sectors of 512 bytes, 0 (read) or 1 (write) |
//!
//! Sources are the README files of the MSR Cambridge traces (SNIA IOTTA repository), of
//! alibaba/block-traces, and of the Tencent CBS traces (SNIA IOTTA repository). A volume here is a
//! host's disk (MSR), a device (Alibaba) or a volume (Tencent). The published files have no header,
//! but a first line of names is skipped.

use super::field::{FieldProblem, Fields, SECOND_NS, SECTOR_BYTES};
use super::record::{IdentityNames, TraceRecord};
use crate::RequestOperation;

/// The three traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloudFormat {
    Msr,
    Alibaba,
    Tencent,
}

/// Parser of one of the traces.
pub(super) struct CloudTrace {
    cloud: CloudFormat,
    pub(super) volumes: IdentityNames,
    at_first_line: bool,
}

const FILETIME_NS: u64 = 100;
const MICROSECOND_NS: u64 = 1000;
const TIME: FieldProblem = FieldProblem::new("the timestamp", "a number");
const OFFSET: FieldProblem = FieldProblem::new("the offset", "a whole number, 0 or more");
const LENGTH: FieldProblem = FieldProblem::new("the size", "a number");

impl CloudTrace {
    pub(super) fn new(cloud: CloudFormat) -> CloudTrace {
        CloudTrace { cloud, volumes: IdentityNames::default(), at_first_line: true }
    }

    pub(super) fn begin_file(&mut self) {
        self.at_first_line = true;
    }

    #[inline]
    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, FieldProblem> {
        let is_first = std::mem::take(&mut self.at_first_line);
        if line.is_empty() || is_first && line[0].is_ascii_alphabetic() {
            return Ok(None);
        }
        match self.cloud {
            CloudFormat::Msr => self.msr(Fields::new(line)),
            CloudFormat::Alibaba => self.alibaba(Fields::new(line)),
            CloudFormat::Tencent => self.tencent(Fields::new(line)),
        }
    }

    fn msr(&mut self, mut fields: Fields) -> Result<Option<TraceRecord>, FieldProblem> {
        let time = fields.number_before(b',').and_then(|time| time.checked_mul(FILETIME_NS));
        let time = time.ok_or(TIME)?;
        let from_host = fields.rest;
        let host = fields.text_before(b',').ok_or(FieldProblem::missing("the host name"))?;
        let disk = fields.text_before(b',').ok_or(FieldProblem::missing("the disk number"))?;
        let volume = &from_host[..host.len() + 1 + disk.len()];
        let operation = match fields.text_before(b',') {
            Some(b"Read") => RequestOperation::Read,
            Some(b"Write") => RequestOperation::Write,
            _ => return Err(FieldProblem::new("the type", "Read or Write")),
        };
        let offset = fields.number_before(b',').ok_or(OFFSET)?;
        let bytes = fields.number_before(b',').ok_or(LENGTH)?;
        // A truncated line has no response time.
        if fields.rest.is_empty() {
            return Err(FieldProblem::missing("the response time"));
        }
        let latency = fields.last_number().and_then(|time| time.checked_mul(FILETIME_NS));
        let record = self.record(time, volume, operation, offset, bytes)?;
        Ok(record.map(|record| TraceRecord { latency_ns: latency.unwrap_or(0), ..record }))
    }

    fn alibaba(&mut self, mut fields: Fields) -> Result<Option<TraceRecord>, FieldProblem> {
        let device = fields.text_before(b',').ok_or(FieldProblem::missing("the device"))?;
        let operation = match fields.text_before(b',') {
            Some(b"R") => RequestOperation::Read,
            Some(b"W") => RequestOperation::Write,
            _ => return Err(FieldProblem::new("the opcode", "R or W")),
        };
        let offset = fields.number_before(b',').ok_or(OFFSET)?;
        let bytes = fields.number_before(b',').ok_or(LENGTH)?;
        let time = fields.last_number().and_then(|time| time.checked_mul(MICROSECOND_NS));
        let time = time.ok_or(TIME)?;
        self.record(time, device, operation, offset, bytes)
    }

    fn tencent(&mut self, mut fields: Fields) -> Result<Option<TraceRecord>, FieldProblem> {
        let time = fields.number_before(b',').and_then(|time| time.checked_mul(SECOND_NS));
        let time = time.ok_or(TIME)?;
        let mut sectors = |problem| {
            let sectors = fields.number_before(b',').and_then(|sectors| sectors.checked_mul(SECTOR_BYTES));
            sectors.ok_or(problem)
        };
        let (offset, bytes) = (sectors(OFFSET)?, sectors(LENGTH)?);
        let operation = match fields.text_before(b',') {
            Some(b"0") => RequestOperation::Read,
            Some(b"1") => RequestOperation::Write,
            _ => return Err(FieldProblem::new("the I/O type", "0 (read) or 1 (write)")),
        };
        let volume = fields.rest;
        if volume.is_empty() {
            return Err(FieldProblem::missing("the volume"));
        }
        self.record(time, volume, operation, offset, bytes)
    }

    fn record(
        &mut self,
        time_ns: u64,
        volume: &[u8],
        operation: RequestOperation,
        offset: u64,
        bytes: u64,
    ) -> Result<Option<TraceRecord>, FieldProblem> {
        let Some(record) = TraceRecord::new(operation, offset, bytes)? else {
            return Ok(None);
        };
        let volume = self.volumes.number(volume)?;
        Ok(Some(TraceRecord { time_ns, volume, ..record }))
    }
}

/// Guesses the trace from a line.
pub(super) fn guess(line: &[u8]) -> Option<CloudFormat> {
    [CloudFormat::Msr, CloudFormat::Alibaba, CloudFormat::Tencent].into_iter().find(|cloud| {
        let header: &[u8] = match cloud {
            CloudFormat::Msr => b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            CloudFormat::Alibaba => b"device_id,opcode,offset,length,timestamp",
            CloudFormat::Tencent => b"Timestamp,Offset,Size,IOType,VolumeID",
        };
        let mut trace = CloudTrace::new(*cloud);
        trace.at_first_line = false;
        let parsed = trace.parse(line);
        // The words are those of this format, but the offset is negative.
        let is_negative = || parsed.as_ref().err() == Some(&OFFSET) && line.windows(2).any(|pair| pair == b",-");
        line == header || matches!(parsed, Ok(Some(_))) || (*cloud != CloudFormat::Tencent && is_negative())
    })
}
