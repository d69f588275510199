//! A backend in memory, as fast as the machine copies, and lost when the server ends.
//!
//! The drive is a table of pieces of 2 MiB, each on a huge page if the system has them. The first
//! write into a piece allocates it, and discarding the whole piece frees it. A partial discard
//! zeroes the part. The backend has no durable storage, so the controller reports no volatile write
//! cache.

use std::sync::Arc;

use guest_memory::{ChunkStore, PIECE_BYTES};
use nvme::{FlushHandle, Media, MediaError};
use prefetch::NonTemporalBuf;

use super::check_range;

/// Most bytes prefetched per access. The processor can track the cache lines of one such range at a
/// time, and its own prefetcher continues longer ones.
const PREFETCH_BYTES_MAX: u64 = 4096;

/// Bytes by logical address, in memory.
pub struct MemoryBackend {
    store: ChunkStore,
    capacity_bytes: u64,
}

impl MemoryBackend {
    /// Creates an empty drive without allocating memory. Check the available memory with
    /// [`super::memory_check::check`].
    pub fn new(capacity_bytes: u64) -> MemoryBackend {
        let pieces = capacity_bytes.div_ceil(PIECE_BYTES as u64) as usize;
        MemoryBackend { store: ChunkStore::new(pieces), capacity_bytes }
    }

    /// Memory allocated for data, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        (self.store.pieces_taken() * PIECE_BYTES) as u64
    }
}

/// Divides a range at the borders of pieces: index of the piece, first byte in the piece, number of
/// bytes.
#[inline]
fn parts(offset: u64, bytes: u64) -> impl Iterator<Item = (usize, usize, usize)> {
    let (mut offset, mut left) = (offset, bytes);
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let at = (offset % PIECE_BYTES as u64) as usize;
        let take = left.min((PIECE_BYTES - at) as u64);
        let part = ((offset / PIECE_BYTES as u64) as usize, at, take as usize);
        offset += take;
        left -= take;
        Some(part)
    })
}

/// Content of unallocated pieces.
static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

impl Media for MemoryBackend {
    #[inline]
    fn prefetch(&self, offset: u64, bytes: u64) {
        check_range(self.capacity_bytes, offset, bytes);
        if let Some((index, at, bytes)) = parts(offset, bytes.min(PREFETCH_BYTES_MAX)).next() {
            self.store.prefetch(index, at..at + bytes);
        }
    }

    #[inline]
    fn read_with(
        &mut self,
        offset: u64,
        bytes: u64,
        _room: &mut Vec<u8>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, bytes);
        for (index, at, bytes) in parts(offset, bytes) {
            match self.store.piece(index) {
                Some(piece) => take(&piece[at..at + bytes]),
                None => {
                    let parts = (0..bytes).step_by(ZEROES.len());
                    parts.for_each(|at| take(&ZEROES[..ZEROES.len().min(bytes - at)]));
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn write_with(
        &mut self,
        offset: u64,
        bytes: u64,
        _room: &mut Vec<u8>,
        give: &mut dyn FnMut(NonTemporalBuf<'_>) -> bool,
    ) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, bytes);
        for (index, at, part) in parts(offset, bytes) {
            let buffer = self.store.write_buffer(index, at..at + part);
            if !give(buffer.map_err(|source| no_memory(offset, bytes, source))?) {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn flush_nontemporal(&mut self) {
        self.store.flush_nontemporal();
    }

    #[inline]
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, data.len() as u64);
        let mut rest = data;
        for (index, at, bytes) in parts(offset, rest.len() as u64) {
            let (part, behind) = rest.split_at_mut(bytes);
            match self.store.piece(index) {
                Some(piece) => part.copy_from_slice(&piece[at..at + bytes]),
                None => part.fill(0),
            }
            rest = behind;
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError> {
        let mut rest = data;
        let written = self.write_with(offset, data.len() as u64, &mut Vec::new(), &mut |buffer| {
            let part;
            (part, rest) = rest.split_at(buffer.len());
            buffer.copy_from(part);
            true
        });
        self.flush_nontemporal();
        assert!(written.is_err() || rest.is_empty(), "{} of {} bytes are left after a write", rest.len(), data.len());
        written
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, bytes);
        for (index, at, bytes) in parts(offset, bytes) {
            let end = self.capacity_bytes - index as u64 * PIECE_BYTES as u64;
            let whole = at == 0 && bytes as u64 >= end.min(PIECE_BYTES as u64);
            if whole {
                self.store.give_back(index);
            } else if let Some(piece) = self.store.piece_mut(index) {
                piece[at..at + bytes].fill(0);
            }
        }
        Ok(())
    }

    fn store_state(&mut self, _state: &[u8]) -> Result<(), MediaError> {
        Ok(())
    }

    fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>> {
        None
    }
}

fn no_memory(offset: u64, bytes: u64, source: std::io::Error) -> MediaError {
    MediaError { action: "allocating memory for", offset, bytes, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data lent and filled in pieces equals the data read and written, across unallocated
    /// pieces.
    #[test]
    fn pieces_are_what_is_read() {
        let mut memory = MemoryBackend::new(4 * PIECE_BYTES as u64);
        let (from, bytes) = (PIECE_BYTES as u64 - 4096, 2 * PIECE_BYTES as u64);
        let lent = |memory: &mut MemoryBackend| {
            let mut lent = Vec::new();
            let mut take = |part: &[u8]| lent.extend_from_slice(part);
            memory.read_with(from, bytes, &mut Vec::new(), &mut take).expect("it is memory");
            lent
        };
        assert!(lent(&mut memory).iter().all(|byte| *byte == 0));
        (0..4 * PIECE_BYTES as u64).step_by(4096).for_each(|at| memory.prefetch(at, 4096));
        memory.prefetch(from, bytes);
        assert_eq!(memory.resident_bytes(), 0, "looking takes no memory");
        let mut next = 0_u8;
        let mut give = |buffer: NonTemporalBuf<'_>| {
            let bytes: Vec<u8> = (0..buffer.len()).map(|at| next.wrapping_add(at as u8)).collect();
            next = next.wrapping_add(bytes.len() as u8);
            buffer.copy_from(&bytes);
            true
        };
        let filled = 3 * 4096;
        memory.write_with(from, filled, &mut Vec::new(), &mut give).expect("it is memory");
        let mut read = vec![0; bytes as usize];
        memory.read(from, &mut read).expect("it is memory");
        assert_eq!(lent(&mut memory), read);
        let counted = (0..filled).map(|at| at as u8).eq(read[..filled as usize].iter().copied());
        assert!(counted && read[filled as usize..].iter().all(|byte| *byte == 0));
        let mut given = 0;
        let mut stops = |_: NonTemporalBuf<'_>| {
            given += 1;
            false
        };
        memory.write_with(from, filled, &mut Vec::new(), &mut stops).expect("it is memory");
        assert_eq!(given, 1, "whoever has nothing more is not asked again");
    }
}
