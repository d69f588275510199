//! Namespaces and the content of their blocks.

use std::collections::BTreeSet;

use super::{BLOCK_BYTES, METADATA_BYTES, ZEROES};

/// Fills a block with the bytes that its tag stands for.
fn fill(tag: u64, block: &mut [u8]) {
    if tag == ZEROES {
        block.fill(0);
        return;
    }
    let mut state = tag;
    for word in block.chunks_exact_mut(8) {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        word.copy_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
}

/// Data, or metadata, of blocks.
fn content(tags: &[u64], block_bytes: u64) -> Vec<u8> {
    let mut bytes = vec![0; tags.len() * block_bytes as usize];
    for (block, &tag) in bytes.chunks_exact_mut(block_bytes as usize).zip(tags) {
        fill(tag, block);
    }
    bytes
}

/// A namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    pub format: u8,
    /// Metadata follows each block (FLBAS bit 4) instead of using a separate buffer.
    pub extended: bool,
    /// Number of pages of the drive.
    pub pages: u64,
    /// Tags of its logical blocks.
    pub blocks: Vec<u64>,
    pub handles: Vec<u16>,
    pub host_specified: bool,
    /// Attached to all present and future controllers.
    pub everyone: bool,
    pub attached: BTreeSet<u16>,
    /// Controllers that inherited the attachment from another controller of their host.
    pub inherited: BTreeSet<u16>,
    pub shared: bool,
    pub protected: bool,
    /// Event types that each placement handle logs.
    pub events: Vec<BTreeSet<u8>>,
    /// NGUID, once it was seen.
    pub identifier: Option<[u8; 16]>,
}

impl Namespace {
    pub fn block_bytes(&self) -> u64 {
        BLOCK_BYTES[usize::from(self.format)]
    }

    pub fn metadata_bytes(&self) -> u64 {
        METADATA_BYTES[usize::from(self.format)]
    }

    /// True if metadata has a separate buffer.
    pub fn has_separate_metadata(&self) -> bool {
        self.metadata_bytes() > 0 && !self.extended
    }

    /// Bytes that a host transfers for blocks, in the data buffer and in the metadata buffer.
    pub fn transfer_bytes(&self, blocks: u64) -> (u64, u64) {
        let (data, metadata) = (blocks * self.block_bytes(), blocks * self.metadata_bytes());
        if self.extended { (data + metadata, 0) } else { (data, metadata) }
    }

    /// Bytes of data and metadata together.
    pub fn total_bytes(&self, blocks: u64) -> u64 {
        blocks * (self.block_bytes() + self.metadata_bytes())
    }

    /// Bytes of blocks in the host's form. The metadata follows each block, or all data precedes
    /// all metadata.
    pub fn content(&self, tags: &[u64]) -> Vec<u8> {
        let data = content(tags, self.block_bytes());
        if self.metadata_bytes() == 0 {
            return data;
        }
        let of_metadata = |&tag: &u64| if tag == ZEROES { ZEROES } else { !tag };
        let tags: Vec<u64> = tags.iter().map(of_metadata).collect();
        let metadata = content(&tags, self.metadata_bytes());
        if !self.extended {
            return [data, metadata].concat();
        }
        let mut together = Vec::with_capacity(data.len() + metadata.len());
        let blocks = data.chunks_exact(self.block_bytes() as usize);
        for (data, metadata) in blocks.zip(metadata.chunks_exact(self.metadata_bytes() as usize)) {
            together.extend_from_slice(data);
            together.extend_from_slice(metadata);
        }
        together
    }

    pub fn is_attached(&self, controller: u16) -> bool {
        self.everyone || self.attached.contains(&controller)
    }
}
