//! Write-only buffer. Large copies into it bypass the processor's caches.
//!
//! ```text
//! source bytes -> NonTemporalBuf -> ordinary stores (small copies)
//!                               \-> streaming stores, which complete late and in any order
//!                                     -> flush_nontemporal -> visible to all threads
//! ```
//!
//! An ordinary store first reads its line into the cache, although a copy overwrites the whole
//! line. The line then evicts another, and is written to memory later. Non-temporal (streaming)
//! stores avoid both. Only the fence that completes them waits, so one fence serves many copies. On
//! Zen 5, copying 4 KiB to a random address in 1 GiB takes 0.2 us with ordinary stores. Streaming
//! stores take as long if a fence follows each 4 KiB, and 0.12 us if one follows each 32 KiB.

use std::marker::PhantomData;
use std::ptr::NonNull;

/// Smallest copy in bytes that streams. Smaller ones fill lines only partly, or are read again
/// soon, like the metadata of file systems.
#[cfg(any(test, target_arch = "x86_64"))]
const STREAMED_BYTES_MIN: usize = 4096;

/// Write-only bytes that belong to one thread.
#[derive(Debug)]
pub struct NonTemporalBuf<'a> {
    start: NonNull<u8>,
    bytes: usize,
    streams: bool,
    borrow: PhantomData<&'a mut [u8]>,
}

impl<'a> From<&'a mut [u8]> for NonTemporalBuf<'a> {
    /// Buffer over memory that is read soon, so copies into it do not stream.
    fn from(bytes: &'a mut [u8]) -> NonTemporalBuf<'a> {
        NonTemporalBuf { bytes: bytes.len(), start: NonNull::from(bytes).cast(), streams: false, borrow: PhantomData }
    }
}

impl<'a> NonTemporalBuf<'a> {
    /// Buffer into which large copies stream.
    ///
    /// # Safety
    /// The same thread must call [`flush_nontemporal`] after the buffer is dropped and before any
    /// other thread accesses the bytes.
    #[inline]
    #[allow(unsafe_code)]
    pub unsafe fn streaming(bytes: &'a mut [u8]) -> NonTemporalBuf<'a> {
        NonTemporalBuf { streams: true, ..NonTemporalBuf::from(bytes) }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns true if the buffer has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Splits `bytes` bytes off the beginning.
    ///
    /// # Panics
    /// Panics if the buffer is smaller.
    #[inline]
    #[allow(unsafe_code)]
    pub fn split_off_front(&mut self, bytes: usize) -> NonTemporalBuf<'a> {
        assert!(bytes <= self.bytes, "{bytes} bytes exceed a buffer of {}", self.bytes);
        let taken = NonTemporalBuf { bytes, start: self.start, streams: self.streams, borrow: PhantomData };
        // SAFETY: the address is inside the buffer, or at its end.
        self.start = unsafe { self.start.add(bytes) };
        self.bytes -= bytes;
        taken
    }

    /// Fills the buffer.
    ///
    /// # Panics
    /// Panics if `data` has a different length.
    #[inline]
    #[allow(unsafe_code)]
    pub fn copy_from(self, data: &[u8]) {
        assert_eq!(data.len(), self.bytes, "the whole buffer is filled");
        // SAFETY: both have the same length. The buffer holds the only borrow of its bytes.
        unsafe { self.copy_from_ptr(data.as_ptr()) }
    }

    /// Fills the buffer from memory that other processes may write concurrently, which makes the
    /// copied bytes arbitrary.
    ///
    /// # Safety
    /// At least [`NonTemporalBuf::len`] bytes must be readable at `data`, and none of them may be
    /// in the buffer.
    #[inline]
    #[allow(unsafe_code)]
    pub unsafe fn copy_from_ptr(self, data: *const u8) {
        let to = self.start.as_ptr();
        #[cfg(target_arch = "x86_64")]
        if self.streams && self.bytes >= STREAMED_BYTES_MIN {
            // SAFETY: by the caller's promise. The buffer owns its bytes, and its creator calls
            // `flush_nontemporal`.
            return unsafe { stream(data, to, self.bytes) };
        }
        // Other architectures do not stream.
        #[cfg(not(target_arch = "x86_64"))]
        let _ = self.streams;
        // SAFETY: by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(data, to, self.bytes) }
    }
}

/// Completes all streaming stores of this thread, so that threads that synchronize with it
/// afterwards see them.
#[inline]
#[allow(unsafe_code)]
pub fn flush_nontemporal() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence accesses no memory. It is part of SSE, which every x86-64 processor has.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Copies with streaming stores. Partial cache lines use ordinary stores.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`]. The same thread must call [`flush_nontemporal`] before any
/// other thread accesses the destination.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE_BYTES: usize = 64;
    const WORD_BYTES: usize = size_of::<__m128i>();
    let head = to.align_offset(LINE_BYTES).min(bytes);
    let lines_end = head + (bytes - head) / LINE_BYTES * LINE_BYTES;
    // SAFETY: the three parts form the range of the caller's promise. Each line starts at a
    // multiple of its size, as streaming stores require. The instructions are part of SSE2, which
    // every x86-64 processor has.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        let mut line = head;
        while line < lines_end {
            let words: [__m128i; LINE_BYTES / WORD_BYTES] =
                std::array::from_fn(|word| _mm_loadu_si128(from.add(line + word * WORD_BYTES).cast()));
            for (word, value) in words.into_iter().enumerate() {
                _mm_stream_si128(to.add(line + word * WORD_BYTES).cast(), value);
            }
            line += LINE_BYTES;
        }
        std::ptr::copy_nonoverlapping(from.add(lines_end), to.add(lines_end), bytes - lines_end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn a_copy_fills_exactly_the_buffer() {
        const MIN: usize = STREAMED_BYTES_MIN;
        let source: Vec<u8> = (0..3 * MIN).map(|at| (at % 251) as u8).collect();
        for bytes in [0, 1, MIN - 1, MIN, MIN + 63, 2 * MIN + 17] {
            for (from, to) in [(0, 0), (0, 1), (3, 0), (5, 63), (64, 64), (7, 16)] {
                for streams in [false, true] {
                    let what = format!("{bytes} bytes from {from} to {to}, {streams}");
                    let mut target = vec![255; bytes + 128];
                    let place = &mut target[to..to + bytes];
                    let buffer = match streams {
                        // SAFETY: `flush_nontemporal` follows below.
                        true => unsafe { NonTemporalBuf::streaming(place) },
                        false => NonTemporalBuf::from(place),
                    };
                    buffer.copy_from(&source[from..from + bytes]);
                    flush_nontemporal();
                    assert_eq!(target[to..to + bytes], source[from..from + bytes], "{what}");
                    let mut others = target[..to].iter().chain(&target[to + bytes..]);
                    assert!(others.all(|byte| *byte == 255), "{what}");
                }
            }
        }
    }

    #[test]
    fn a_buffer_is_filled_part_by_part() {
        let mut target = [0; 8];
        let mut buffer = NonTemporalBuf::from(&mut target[..]);
        buffer.split_off_front(3).copy_from(&[1, 2, 3]);
        buffer.split_off_front(0).copy_from(&[]);
        assert_eq!((buffer.len(), buffer.is_empty()), (5, false));
        buffer.split_off_front(5).copy_from(&[4; 5]);
        assert!(buffer.is_empty());
        assert_eq!(target, [1, 2, 3, 4, 4, 4, 4, 4]);
    }

    #[test]
    #[should_panic(expected = "4 bytes exceed a buffer of 3")]
    fn a_split_beyond_the_end_panics() {
        NonTemporalBuf::from(&mut [0; 3][..]).split_off_front(4);
    }
}
