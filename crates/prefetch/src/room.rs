//! Room for bytes that are put there and not looked at: much goes past the processor's caches.
//!
//! ```text
//! somebody's bytes -> Room -> copied once, nothing can be read through it
//!                      \-> streaming: arrives in any order and late -> settle -> is there for every thread
//! ```
//!
//! A store reads the line that it changes into the cache first, although a copy changes all of it; the line then puts another out of the
//! cache, and goes to memory later. Streaming stores do neither. What is waited for is their arrival, so many copies are settled
//! together: 4 KiB to random places of 1 GiB take 0.2 us with ordinary stores, and as long with streaming ones that are settled one by one
//! (Zen 5); the same in pieces of 32 KiB takes 0.12 us for each 4 KiB.

use std::marker::PhantomData;
use std::ptr::NonNull;

/// From so many bytes on copies stream: less fills its lines only in part, or is soon looked at, as file systems do with what they note.
const STREAMED_BYTES_MIN: usize = 4096;

/// Bytes that can be put, and not read. It belongs to one thread.
#[derive(Debug)]
pub struct Room<'a> {
    start: NonNull<u8>,
    bytes: usize,
    streams: bool,
    of: PhantomData<&'a mut [u8]>,
}

impl<'a> From<&'a mut [u8]> for Room<'a> {
    /// Room in memory that is looked at soon: nothing streams.
    fn from(bytes: &'a mut [u8]) -> Room<'a> {
        Room {
            bytes: bytes.len(),
            start: NonNull::from(bytes).cast(),
            streams: false,
            of: PhantomData,
        }
    }
}

impl<'a> Room<'a> {
    /// Room in which much streams.
    ///
    /// # Safety
    /// The same thread calls [`settle`] after the room is gone and before any other thread accesses the bytes.
    #[inline]
    #[allow(unsafe_code)]
    pub unsafe fn streaming(bytes: &'a mut [u8]) -> Room<'a> {
        Room {
            streams: true,
            ..Room::from(bytes)
        }
    }

    /// How much there is.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Takes a part off its beginning.
    ///
    /// # Panics
    /// There is less.
    #[inline]
    #[allow(unsafe_code)]
    pub fn take(&mut self, bytes: usize) -> Room<'a> {
        assert!(bytes <= self.bytes, "{bytes} bytes of a room of {}", self.bytes);
        let taken = Room {
            bytes,
            start: self.start,
            streams: self.streams,
            of: PhantomData,
        };
        // SAFETY: it is inside the room, or at its end.
        self.start = unsafe { self.start.add(bytes) };
        self.bytes -= bytes;
        taken
    }

    /// Fills it.
    ///
    /// # Panics
    /// It is not as long.
    #[inline]
    #[allow(unsafe_code)]
    pub fn put(self, data: &[u8]) {
        assert_eq!(data.len(), self.bytes, "all of it is filled");
        // SAFETY: both are as long; nothing else borrows from what the room borrows from.
        unsafe { self.put_from(data.as_ptr()) }
    }

    /// Fills it from memory that others may write meanwhile; then these are any bytes.
    ///
    /// # Safety
    /// As many bytes can be read there as there is room, and they are not in the room.
    #[inline]
    #[allow(unsafe_code)]
    pub unsafe fn put_from(self, data: *const u8) {
        let to = self.start.as_ptr();
        #[cfg(target_arch = "x86_64")]
        if self.streams && self.bytes >= STREAMED_BYTES_MIN {
            // SAFETY: what the caller has promised; the room is its own bytes, and who made it settles them.
            return unsafe { stream(data, to, self.bytes) };
        }
        // Elsewhere nothing streams.
        #[cfg(not(target_arch = "x86_64"))]
        let _ = self.streams;
        // SAFETY: the same.
        unsafe { std::ptr::copy_nonoverlapping(data, to, self.bytes) }
    }
}

/// What this thread has streamed is there for every thread that is told of it from now on.
#[inline]
#[allow(unsafe_code)]
pub fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence reads and writes nothing. It is part of SSE, which every x86-64 processor has.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// # Safety
/// As [`std::ptr::copy_nonoverlapping`]. The same thread calls [`settle`] before any other accesses what was copied to.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE_BYTES: usize = 64;
    const WORD_BYTES: usize = size_of::<__m128i>();
    // A line that is changed in part goes the usual way.
    let head = to.align_offset(LINE_BYTES).min(bytes);
    let lines_end = head + (bytes - head) / LINE_BYTES * LINE_BYTES;
    // SAFETY: the three parts are the range that the caller has promised. The first place of a line is a multiple of its size, as streaming
    // stores demand; they are part of SSE2, which every x86-64 processor has.
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
    fn all_of_a_room_is_filled_and_nothing_else() {
        const MIN: usize = STREAMED_BYTES_MIN;
        let source: Vec<u8> = (0..3 * MIN).map(|at| (at % 251) as u8).collect();
        for bytes in [0, 1, MIN - 1, MIN, MIN + 63, 2 * MIN + 17] {
            for (from, to) in [(0, 0), (0, 1), (3, 0), (5, 63), (64, 64), (7, 16)] {
                for streams in [false, true] {
                    let what = format!("{bytes} bytes from {from} to {to}, {streams}");
                    let mut target = vec![255; bytes + 128];
                    let place = &mut target[to..to + bytes];
                    let room = match streams {
                        // SAFETY: it is settled below.
                        true => unsafe { Room::streaming(place) },
                        false => Room::from(place),
                    };
                    room.put(&source[from..from + bytes]);
                    settle();
                    assert_eq!(target[to..to + bytes], source[from..from + bytes], "{what}");
                    let mut others = target[..to].iter().chain(&target[to + bytes..]);
                    assert!(others.all(|byte| *byte == 255), "{what}");
                }
            }
        }
    }

    #[test]
    fn a_room_is_taken_part_by_part() {
        let mut target = [0; 8];
        let mut room = Room::from(&mut target[..]);
        room.take(3).put(&[1, 2, 3]);
        room.take(0).put(&[]);
        assert_eq!((room.len(), room.is_empty()), (5, false));
        room.take(5).put(&[4; 5]);
        assert!(room.is_empty());
        assert_eq!(target, [1, 2, 3, 4, 4, 4, 4, 4]);
    }

    #[test]
    #[should_panic(expected = "4 bytes of a room of 3")]
    fn no_more_than_there_is() {
        Room::from(&mut [0; 3][..]).take(4);
    }
}
