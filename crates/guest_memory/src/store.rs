//! Memory of this process for the drive's data, in pieces of 2 MiB, each on a huge page if the
//! system has them.
//!
//! Non-temporal stores bypass the processor's caches ([`NonTemporalBuf`]). A store fence completes
//! them before each read, or when the caller calls [`ChunkStore::flush_nontemporal`]. A thread
//! panics if it finds unfinished stores of another thread, because it cannot complete those.

#![expect(unsafe_code, reason = "memory whose bytes are flushed later")]

use std::cell::Cell;
use std::io;
use std::ops::Range;

use memmap2::MmapMut;
use prefetch::{NonTemporalBuf, flush_nontemporal, prefetch};

/// Bytes of a piece, the size of a huge page.
pub const PIECE_BYTES: usize = 2 << 20;
/// Bytes of a cache line, the unit of a prefetch.
const LINE_BYTES: usize = 64;

pub struct ChunkStore {
    pieces: Vec<Option<AlignedChunk>>,
    /// The thread with unfinished non-temporal stores, 0 for none.
    unflushed: Cell<usize>,
}

/// 2 MiB of memory, aligned to 2 MiB.
struct AlignedChunk {
    /// Twice the address space, so that it contains an aligned half. The rest stays untouched.
    memory: MmapMut,
    start: usize,
}

impl AlignedChunk {
    fn new() -> io::Result<AlignedChunk> {
        let memory = MmapMut::map_anon(2 * PIECE_BYTES)?;
        #[cfg(target_os = "linux")]
        // Without transparent huge pages the call fails, and small pages are used.
        let _ = memory.advise(memmap2::Advice::HugePage);
        let start = memory.as_ptr().align_offset(PIECE_BYTES);
        assert!(start <= PIECE_BYTES, "an address has a multiple of {PIECE_BYTES} within that many bytes");
        Ok(AlignedChunk { memory, start })
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + PIECE_BYTES]
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + PIECE_BYTES]
    }
}

/// A nonzero number, unique among living threads.
#[inline]
fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

impl ChunkStore {
    /// Creates a table of `pieces` pieces without allocating their memory.
    pub fn new(pieces: usize) -> ChunkStore {
        ChunkStore { pieces: (0..pieces).map(|_| None).collect(), unflushed: Cell::new(0) }
    }

    pub fn pieces_taken(&self) -> usize {
        self.pieces.iter().flatten().count()
    }

    /// Makes all stored bytes visible to threads that synchronize with this one afterwards.
    ///
    /// # Panics
    /// Panics if another thread has unfinished stores.
    #[inline]
    pub fn flush_nontemporal(&self) {
        if self.unflushed.get() != 0 {
            assert_eq!(
                self.unflushed.get(),
                this_thread(),
                "another thread has streaming stores that only it can flush"
            );
            flush_nontemporal();
            self.unflushed.set(0);
        }
    }

    /// The bytes of a piece, `None` for an unallocated one, which reads as zeroes.
    #[inline]
    pub fn piece(&self, index: usize) -> Option<&[u8]> {
        self.flush_nontemporal();
        self.pieces[index].as_ref().map(AlignedChunk::bytes)
    }

    #[inline]
    pub fn piece_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        self.flush_nontemporal();
        self.pieces[index].as_mut().map(AlignedChunk::bytes_mut)
    }

    /// Write-only space in a piece, which is allocated if necessary.
    ///
    /// # Panics
    /// Panics if another thread has unfinished stores, or if the range is not inside a piece.
    #[inline]
    pub fn write_buffer(&mut self, index: usize, range: Range<usize>) -> io::Result<NonTemporalBuf<'_>> {
        let here = this_thread();
        let before = self.unflushed.replace(here);
        assert!(before == 0 || before == here, "another thread has streaming stores that only it can flush");
        let slot = &mut self.pieces[index];
        if slot.is_none() {
            *slot = Some(AlignedChunk::new()?);
        }
        let piece = slot.as_mut().expect("it was just made");
        // SAFETY: only this value accesses the bytes. All its methods that read them first call
        // `flush_nontemporal`, which panics in every other thread. Freeing the memory reads no
        // bytes.
        Ok(unsafe { NonTemporalBuf::streaming(&mut piece.bytes_mut()[range]) })
    }

    pub fn give_back(&mut self, index: usize) {
        self.flush_nontemporal();
        self.pieces[index] = None;
    }

    #[inline]
    pub fn prefetch(&self, index: usize, range: Range<usize>) {
        if let Some(piece) = &self.pieces[index] {
            let bytes = &piece.bytes()[range];
            (0..bytes.len()).step_by(LINE_BYTES).for_each(|at| prefetch(bytes, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_bytes_are_read_back() {
        let mut store = ChunkStore::new(2);
        assert_eq!((store.piece(1), store.pieces_taken()), (None, 0));
        let data: Vec<u8> = (0..8192).map(|at| at as u8).collect();
        store.write_buffer(1, 4096..12288).expect("memory").copy_from(&data);
        store.write_buffer(1, 0..4096).expect("memory").copy_from(&data[..4096]);
        store.prefetch(1, 0..12288);
        let piece = store.piece(1).expect("it was taken");
        assert_eq!(piece[..4096], data[..4096]);
        assert_eq!(piece[4096..12288], data);
        assert!(piece[12288..].iter().all(|byte| *byte == 0));
        store.give_back(1);
        assert_eq!((store.piece(1), store.pieces_taken()), (None, 0));
    }

    #[test]
    fn only_flushed_bytes_may_go_to_another_thread() {
        let mut store = ChunkStore::new(1);
        let look = |store: ChunkStore| std::thread::spawn(move || (store.piece(0).map(<[u8]>::len), store)).join();
        store.write_buffer(0, 0..4096).expect("memory").copy_from(&[1; 4096]);
        store.flush_nontemporal();
        let Ok((looked, mut store)) = look(store) else { panic!("the store was flushed") };
        assert_eq!(looked, Some(PIECE_BYTES));
        store.write_buffer(0, 0..4096).expect("memory").copy_from(&[2; 4096]);
        assert!(look(store).is_err(), "the store was not flushed");
    }
}
