//! Metadata of logical blocks, with its transfer forms and its place in the storage.
//!
//! ```text
//! separate buffer  data data data | meta meta meta  (MPTR, PCI Express only) --> stored unchanged
//! extended LBA     data meta data meta data meta    (in the data)            <-- taken apart
//!                                 storage: data in its place, metadata behind the capacity
//! ```
//!
//! Internally, blocks with metadata always have the first form, all data and then all metadata. The
//! drive does not interpret metadata, because it has no protection information. The device model
//! does not include metadata.
//!
//! A power failure may leave the data of one write with the metadata of another. Data and metadata
//! are two accesses to the storage.

use nvme_spec::Status;

use super::context::{IoContext, check_range};
use super::{BlockRange, limited};
use crate::controller::HostTransport;
use crate::error::{Failure, Parameter};
use crate::media::{self, ByteRange, Media};
use crate::namespace::{FORMATS, Namespace};
use crate::subsystem::Subsystem;
use crate::transfer::Transfer;

/// Converts data followed by metadata into extended blocks.
fn interleaved(data_then_metadata: &[u8], namespace: &Namespace) -> Vec<u8> {
    let (block_bytes, metadata_bytes) = (namespace.block_bytes() as usize, namespace.metadata_bytes() as usize);
    let blocks = data_then_metadata.len() / (block_bytes + metadata_bytes);
    let (data, metadata) = data_then_metadata.split_at(blocks * block_bytes);
    let mut extended = Vec::with_capacity(data_then_metadata.len());
    for (data, metadata) in data.chunks_exact(block_bytes).zip(metadata.chunks_exact(metadata_bytes)) {
        extended.extend_from_slice(data);
        extended.extend_from_slice(metadata);
    }
    assert_eq!(extended.len(), data_then_metadata.len(), "whole blocks have both");
    extended
}

/// Converts extended blocks into data followed by metadata.
pub(super) fn taken_apart(extended: &[u8], namespace: &Namespace) -> Vec<u8> {
    let (block_bytes, metadata_bytes) = (namespace.block_bytes() as usize, namespace.metadata_bytes() as usize);
    let blocks = || extended.chunks_exact(block_bytes + metadata_bytes);
    let mut apart = Vec::with_capacity(extended.len());
    blocks().for_each(|block| apart.extend_from_slice(&block[..block_bytes]));
    blocks().for_each(|block| apart.extend_from_slice(&block[block_bytes..]));
    assert_eq!(apart.len(), extended.len(), "whole blocks have both");
    apart
}

impl Subsystem {
    pub(super) fn block_transfer(
        &self,
        id: u16,
        nsid: u32,
        blocks: BlockRange,
        of_bytes: fn(u64) -> Transfer,
    ) -> Result<Transfer, Failure> {
        let namespace = self.state.namespaces.active(id, nsid)?;
        let data_bytes = limited(blocks.count << namespace.block_bytes_log2())?;
        // The range is checked before the data pointer. A command that moves no data needs no
        // pointer.
        check_range(namespace, blocks)?;
        let metadata_bytes = blocks.count * namespace.metadata_bytes();
        if metadata_bytes == 0 {
            return Ok(of_bytes(data_bytes));
        }
        if namespace.extended_metadata {
            return Ok(of_bytes(data_bytes + metadata_bytes));
        }
        if self.controller(id).transport == HostTransport::Fabrics {
            let cause = format!(
                "namespace {nsid} has a separate metadata buffer, which fabrics does not support. Format it with MSET 1"
            );
            return Err(Failure::new(Status::INVALID_NAMESPACE_OR_FORMAT, cause).at(Parameter::NSID));
        }
        Ok(Transfer { metadata_bytes: metadata_bytes as usize, ..of_bytes(data_bytes) })
    }

    /// Refuses metadata in a separate buffer on transports without one. Over fabrics, metadata is a
    /// part of the logical block (Base Specification).
    pub(crate) fn check_metadata_location(
        &self,
        id: u16,
        format: u8,
        extended: bool,
        parameter: Parameter,
    ) -> Result<(), Failure> {
        let has_metadata = FORMATS[usize::from(format)].metadata_bytes > 0;
        if has_metadata && !extended && self.controller(id).transport == HostTransport::Fabrics {
            let cause = format!("LBA format {format} over fabrics needs metadata in extended logical blocks (MC)");
            return Err(Failure::new(Status::INVALID_FORMAT, cause).at(parameter));
        }
        Ok(())
    }
}

impl IoContext<'_> {
    /// Reads blocks that are known to be readable, in the form that the host gets.
    pub(super) fn read_for_host(&mut self, blocks: BlockRange, data: &mut Vec<u8>) -> Result<(), Failure> {
        self.read_into(blocks, data)?;
        if self.namespace.extended_metadata {
            *data = interleaved(data, self.namespace);
        }
        Ok(())
    }

    pub(super) fn read_metadata(&mut self, blocks: BlockRange, metadata: &mut [u8]) -> Result<(), Failure> {
        let mut rest = metadata;
        for piece in self.metadata_of(blocks) {
            let (part, behind) = rest.split_at_mut(piece.bytes as usize);
            let read = self.media.read(piece.offset, part);
            read.map_err(|error| self.media_failure(Status::UNRECOVERED_READ_ERROR, &error))?;
            rest = behind;
        }
        assert!(rest.is_empty(), "the pieces are the blocks");
        Ok(())
    }

    pub(super) fn write_metadata(&mut self, blocks: BlockRange, metadata: &[u8]) -> Result<(), Failure> {
        let mut rest = metadata;
        for piece in self.metadata_of(blocks) {
            let (part, behind) = rest.split_at(piece.bytes as usize);
            let written = self.media.write(piece.offset, part);
            written.map_err(|error| self.media_failure(Status::WRITE_FAULT, &error))?;
            rest = behind;
        }
        assert!(rest.is_empty(), "the pieces are the blocks");
        Ok(())
    }

    fn metadata_of(&self, blocks: BlockRange) -> Vec<ByteRange> {
        let capacity_bytes = self.capacity_bytes();
        let pieces = self.namespace.locate(blocks.first, blocks.count, self.page_bytes);
        pieces.map(|piece| media::metadata_of(capacity_bytes, piece)).collect()
    }
}
