//! A command's data in host memory. PRPs and SGLs are converted to a list of segments for copying.
//! Metadata in a separate buffer (MPTR) follows the data.
//!
//! All checks precede the execution of a command, so that a bad data pointer changes no data. The
//! size of the transfer bounds work and memory, even for long chains of the host.

use nvme_spec::Status;
use nvme_spec::command::{PSDT_PRP, PSDT_SGL_MPTR_SGL, SGL_SUBTYPE_ADDRESS, SglDescriptor, SglType, SubmissionEntry};
use prefetch::NonTemporalBuf;
use zerocopy::IntoBytes;

use super::{HostMemory, MemoryFault, PAGE_BYTES};
use crate::error::{Failure, Parameter};
use crate::transfer::{Transfer, TransferDirection};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataSegment {
    /// Address in host memory. `None` if the host discards the data (SGL bit bucket).
    pub address: Option<u64>,
    pub bytes: usize,
}

impl DataSegment {
    /// Address of data for the controller.
    fn address_of_data(&self) -> u64 {
        self.address.expect("bit buckets are left out of data for the controller")
    }
}

/// Most descriptors of an SGL beyond one for each byte. A longer SGL counts as endless.
const SPARE_DESCRIPTORS: usize = 1024;
const DESCRIPTORS_AT_ONCE: usize = 64;
/// Second half of the data pointer, which is PRP entry 2 or the length and type of an SGL
/// descriptor.
const SECOND_HALF: Parameter = Parameter::dword(8, 0);
const PSDT: Parameter = Parameter::dword(0, 14);
const METADATA_POINTER: Parameter = Parameter::dword(4, 0);

/// Finds the segments of a command's data, followed by those of metadata in a separate buffer.
pub(super) fn describe(
    memory: &dyn HostMemory,
    queue: u16,
    entry: &SubmissionEntry,
    transfer: Transfer,
    segments: &mut Vec<DataSegment>,
) -> Result<(), Failure> {
    segments.clear();
    let psdt = entry.flags.psdt();
    if psdt > PSDT_SGL_MPTR_SGL {
        return Err(Failure::invalid_field(PSDT, "PSDT is a reserved value"));
    }
    if queue == 0 && psdt != PSDT_PRP {
        return Err(Failure::invalid_field(PSDT, "over PCI Express admin commands use PRPs, not SGLs"));
    }
    if transfer.direction == TransferDirection::None {
        return Ok(());
    }
    let to_host = transfer.direction == TransferDirection::ToHost;
    match psdt {
        PSDT_PRP => describe_prps(memory, entry, transfer.bytes, segments)?,
        _ => SglWalk::new(memory, &DATA, to_host, transfer.bytes, segments).walk(entry.sgl1())?,
    }
    let (address, bytes) = (entry.mptr.get(), transfer.metadata_bytes);
    match psdt {
        _ if bytes == 0 => Ok(()),
        PSDT_SGL_MPTR_SGL => {
            let descriptor = metadata_descriptor(memory, address)?;
            SglWalk::new(memory, &METADATA, to_host, bytes, segments).walk(descriptor)
        }
        _ => describe_contiguous_metadata(address, bytes, segments),
    }
}

/// Adds contiguous metadata at a dword-aligned address (Identify Controller, SGLS without byte
/// aligned metadata). Address 0 means that the host gave no buffer, as for PRP entry 2.
fn describe_contiguous_metadata(address: u64, bytes: usize, segments: &mut Vec<DataSegment>) -> Result<(), Failure> {
    if address == 0 {
        let cause = format!("the command transfers {bytes} bytes of metadata, but the metadata pointer is 0");
        return Err(Failure::invalid_field(METADATA_POINTER, cause));
    }
    if !address.is_multiple_of(4) {
        let cause = format!("the metadata pointer ({address:#x}) is not dword aligned");
        return Err(Failure::invalid_field(METADATA_POINTER, cause));
    }
    push(segments, address, bytes);
    Ok(())
}

fn metadata_descriptor(memory: &dyn HostMemory, address: u64) -> Result<SglDescriptor, Failure> {
    if !address.is_multiple_of(8) {
        let cause = format!("the metadata's SGL segment ({address:#x}) is not qword aligned");
        return Err(Failure::invalid_field(METADATA_POINTER, cause));
    }
    let mut descriptor = SglDescriptor::default();
    memory.read(address, descriptor.as_mut_bytes()).map_err(not_transferred)?;
    Ok(descriptor)
}

/// Copies the host's data into `data`, which gets exactly that size.
pub(super) fn gather(
    memory: &dyn HostMemory,
    segments: &[DataSegment],
    bytes: usize,
    data: &mut Vec<u8>,
) -> Result<(), Failure> {
    data.clear();
    for segment in segments {
        memory.append(segment.address_of_data(), segment.bytes, data).map_err(not_transferred)?;
    }
    assert_eq!(data.len(), bytes, "segments cover the transfer");
    Ok(())
}

/// Copies `data` to the host. `data` may be shorter than the segments.
pub(super) fn scatter(memory: &dyn HostMemory, segments: &[DataSegment], data: &[u8]) -> Result<(), Failure> {
    SegmentCursor::new(memory, segments).write(data)
}

/// Refuses segments outside of readable host memory.
pub(super) fn check_readable(memory: &dyn HostMemory, segments: &[DataSegment]) -> Result<(), Failure> {
    segments.iter().try_for_each(|segment| {
        memory.check_readable(segment.address_of_data(), segment.bytes).map_err(not_transferred)
    })
}

pub(super) struct SegmentCursor<'a> {
    memory: &'a dyn HostMemory,
    segments: std::slice::Iter<'a, DataSegment>,
    rest: DataSegment,
}

impl<'a> SegmentCursor<'a> {
    pub(super) fn new(memory: &'a dyn HostMemory, segments: &'a [DataSegment]) -> SegmentCursor<'a> {
        SegmentCursor { memory, segments: segments.iter(), rest: DataSegment { address: None, bytes: 0 } }
    }

    #[inline]
    fn part(&mut self, bytes: usize) -> DataSegment {
        while self.rest.bytes == 0 {
            self.rest = *self.segments.next().expect("segments cover the transfer");
        }
        let part = DataSegment { bytes: bytes.min(self.rest.bytes), ..self.rest };
        self.rest.bytes -= part.bytes;
        // A segment that wraps around the address space has no memory. The access to its start
        // detects this.
        self.rest.address = self.rest.address.map(|address| address.wrapping_add(part.bytes as u64));
        part
    }

    /// Copies data to the host.
    pub(super) fn write(&mut self, mut data: &[u8]) -> Result<(), Failure> {
        while !data.is_empty() {
            let part = self.part(data.len());
            let (piece, behind) = data.split_at(part.bytes);
            if let Some(address) = part.address {
                self.memory.write(address, piece).map_err(not_transferred)?;
            }
            data = behind;
        }
        Ok(())
    }

    /// Copies data from the host.
    pub(super) fn read(&mut self, mut buffer: NonTemporalBuf<'_>) -> Result<(), Failure> {
        while !buffer.is_empty() {
            let part = self.part(buffer.len());
            self.memory
                .read_into(part.address_of_data(), buffer.split_off_front(part.bytes))
                .map_err(not_transferred)?;
        }
        Ok(())
    }
}

fn not_transferred(fault: MemoryFault) -> Failure {
    Failure::new(Status::DATA_TRANSFER_ERROR, fault.to_string()).at(Parameter::DATA_POINTER)
}

/// Adds a piece, merged with the previous one if both are contiguous.
fn push(segments: &mut Vec<DataSegment>, address: u64, bytes: usize) {
    if let Some(last) = segments.last_mut()
        && last.address.is_some_and(|start| start.checked_add(last.bytes as u64) == Some(address))
    {
        last.bytes += bytes;
        return;
    }
    segments.push(DataSegment { address: Some(address), bytes });
}

// -------------------------------------------------------------------------------------- PRPs --

fn offset_invalid(parameter: Parameter, cause: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::new(Status::PRP_OFFSET_INVALID, cause).at(parameter)
}

fn describe_prps(
    memory: &dyn HostMemory,
    entry: &SubmissionEntry,
    bytes: usize,
    segments: &mut Vec<DataSegment>,
) -> Result<(), Failure> {
    let prp1 = entry.prp1();
    if !prp1.is_multiple_of(4) {
        return Err(offset_invalid(Parameter::DATA_POINTER, format!("PRP entry 1 ({prp1:#x}) is not dword aligned")));
    }
    let first = bytes.min((PAGE_BYTES - prp1 % PAGE_BYTES) as usize);
    assert!(0 < first && first <= bytes, "a transfer begins in its first page");
    push(segments, prp1, first);
    let rest = bytes - first;
    if rest == 0 {
        return Ok(());
    }
    let prp2 = entry.prp2();
    if prp2 == 0 {
        let cause = format!("{rest} bytes remain after PRP entry 1, but PRP entry 2 is 0");
        return Err(Failure::invalid_field(SECOND_HALF, cause));
    }
    if rest > PAGE_BYTES as usize {
        return describe_prp_list(memory, prp2, rest, segments);
    }
    if !prp2.is_multiple_of(PAGE_BYTES) {
        return Err(offset_invalid(SECOND_HALF, format!("PRP entry 2 ({prp2:#x}) is not page aligned")));
    }
    push(segments, prp2, rest);
    Ok(())
}

/// Follows a PRP list (Base Specification, "Physical Region Page Entry and List"). Entries run to
/// the end of the list's page. The last entry there points to the next page if more are needed.
fn describe_prp_list(
    memory: &dyn HostMemory,
    list: u64,
    bytes: usize,
    segments: &mut Vec<DataSegment>,
) -> Result<(), Failure> {
    const ENTRY_BYTES: u64 = 8;
    if !list.is_multiple_of(ENTRY_BYTES) {
        return Err(offset_invalid(SECOND_HALF, format!("the PRP list ({list:#x}) is not qword aligned")));
    }
    let mut page = [zerocopy::little_endian::U64::ZERO; (PAGE_BYTES / ENTRY_BYTES) as usize];
    let mut address = list;
    let mut rest = bytes;
    // Each turn describes at least 511 pages, except for a first list that starts at the end of a
    // page.
    while rest > 0 {
        let slots = ((PAGE_BYTES - address % PAGE_BYTES) / ENTRY_BYTES) as usize;
        let needed = rest.div_ceil(PAGE_BYTES as usize);
        let entries = &mut page[..slots.min(needed)];
        memory.read(address, entries.as_mut_bytes()).map_err(not_transferred)?;
        let data_entries = if needed > slots { slots - 1 } else { needed };
        for (index, entry) in entries.iter().enumerate() {
            let entry = entry.get();
            if !entry.is_multiple_of(PAGE_BYTES) {
                let cause =
                    format!("the PRP list entry at {:#x} ({entry:#x}) is not page aligned", address + index as u64 * 8);
                return Err(offset_invalid(SECOND_HALF, cause));
            }
            if index < data_entries {
                let bytes = rest.min(PAGE_BYTES as usize);
                push(segments, entry, bytes);
                rest -= bytes;
            }
        }
        address = entries[entries.len() - 1].get();
    }
    Ok(())
}

// -------------------------------------------------------------------------------------- SGLs --

struct SglPurpose {
    name: &'static str,
    parameter: Parameter,
    too_short: Status,
}

const DATA: SglPurpose =
    SglPurpose { name: "data", parameter: Parameter::DATA_POINTER, too_short: Status::DATA_SGL_LENGTH_INVALID };
const METADATA: SglPurpose =
    SglPurpose { name: "metadata", parameter: METADATA_POINTER, too_short: Status::METADATA_SGL_LENGTH_INVALID };

/// A walk through the descriptors of an SGL (Base Specification, "Scatter Gather List").
struct SglWalk<'a> {
    memory: &'a dyn HostMemory,
    subject: &'a SglPurpose,
    segments: &'a mut Vec<DataSegment>,
    to_host: bool,
    rest: usize,
    descriptors: usize,
}

impl<'a> SglWalk<'a> {
    fn new(
        memory: &'a dyn HostMemory,
        subject: &'a SglPurpose,
        to_host: bool,
        bytes: usize,
        segments: &'a mut Vec<DataSegment>,
    ) -> SglWalk<'a> {
        SglWalk { memory, subject, segments, to_host, rest: bytes, descriptors: bytes + SPARE_DESCRIPTORS }
    }

    fn failure(&self, status: Status, cause: impl std::fmt::Display) -> Failure {
        Failure::new(status, format!("the SGL of the {} is invalid: {cause}", self.subject.name))
            .at(self.subject.parameter)
    }

    fn walk(mut self, sgl1: SglDescriptor) -> Result<(), Failure> {
        let mut next = self.take(&sgl1)?;
        while let Some(segment) = next {
            next = self.follow(&segment)?;
        }
        if self.rest > 0 {
            let cause = format!("it describes {} bytes less than the command transfers", self.rest);
            return Err(self.failure(self.subject.too_short, cause));
        }
        Ok(())
    }

    fn type_invalid(&self, descriptor: &SglDescriptor) -> Failure {
        let id = descriptor.id;
        let cause = format!("descriptor type {:#x}, subtype {:#x} is not supported", id.sgl_type(), id.subtype());
        self.failure(Status::SGL_DESCRIPTOR_TYPE_INVALID, cause)
    }

    fn segment_invalid(&self, cause: impl std::fmt::Display) -> Failure {
        self.failure(Status::INVALID_SGL_SEGMENT_DESCRIPTOR, cause)
    }

    fn number_invalid(&self, cause: &str) -> Failure {
        self.failure(Status::INVALID_NUMBER_OF_SGL_DESCRIPTORS, cause)
    }

    /// Processes a descriptor. Data is added to the segments. A segment descriptor is returned, so
    /// that the caller follows it.
    fn take(&mut self, descriptor: &SglDescriptor) -> Result<Option<SglDescriptor>, Failure> {
        let kind = SglType::from_u8(descriptor.id.sgl_type());
        let bytes = descriptor.length.get() as usize;
        match kind {
            _ if descriptor.id.subtype() != SGL_SUBTYPE_ADDRESS => Err(self.type_invalid(descriptor)),
            Some(SglType::DataBlock) => {
                // An SGL longer than the transfer is allowed (Identify Controller, SGLS bit 18).
                let used = bytes.min(self.rest);
                if used > 0 {
                    push(self.segments, descriptor.addr.get(), used);
                }
                self.rest -= used;
                Ok(None)
            }
            Some(SglType::BitBucket) => {
                // A bit bucket has no length in data for the controller.
                if self.to_host {
                    let bytes = bytes.min(self.rest);
                    self.segments.push(DataSegment { address: None, bytes });
                    self.rest -= bytes;
                }
                Ok(None)
            }
            Some(SglType::Segment | SglType::LastSegment) => Ok(Some(*descriptor)),
            _ => Err(self.type_invalid(descriptor)),
        }
    }

    /// Processes all descriptors of a segment. Returns the descriptor of the next segment.
    fn follow(&mut self, pointer: &SglDescriptor) -> Result<Option<SglDescriptor>, Failure> {
        const DESCRIPTOR_BYTES: usize = size_of::<SglDescriptor>();
        let is_last = pointer.id.sgl_type() == SglType::LastSegment.code();
        let (address, bytes) = (pointer.addr.get(), pointer.length.get() as usize);
        if bytes == 0 || !bytes.is_multiple_of(DESCRIPTOR_BYTES) || !address.is_multiple_of(8) {
            return Err(self.segment_invalid(format!(
                "a segment at {address:#x} has {bytes} bytes, an invalid length or alignment"
            )));
        }
        let count = bytes / DESCRIPTOR_BYTES;
        if count > self.descriptors {
            return Err(self.number_invalid("it has more descriptors than the command transfers bytes"));
        }
        self.descriptors -= count;

        let mut buffer = [SglDescriptor::default(); DESCRIPTORS_AT_ONCE];
        let mut next = None;
        let mut done = 0;
        while done < count {
            let chunk = &mut buffer[..DESCRIPTORS_AT_ONCE.min(count - done)];
            let at = address
                .checked_add((done * DESCRIPTOR_BYTES) as u64)
                .ok_or(MemoryFault { address })
                .map_err(not_transferred)?;
            self.memory.read(at, chunk.as_mut_bytes()).map_err(not_transferred)?;
            for descriptor in chunk.iter() {
                if next.is_some() {
                    return Err(self.number_invalid("a segment descriptor is not the last of its segment"));
                }
                next = self.take(descriptor)?;
                if next.is_some() && is_last {
                    return Err(self.segment_invalid("the last segment points to another one"));
                }
            }
            done += chunk.len();
        }
        if next.is_none() && !is_last {
            return Err(self.segment_invalid("a segment that is not the last has no next segment"));
        }
        Ok(next)
    }
}
