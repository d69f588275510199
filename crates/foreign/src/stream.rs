//! Copies that go past the processor's caches.
//!
//! A store reads the line that it changes into the cache first, although a copy changes all of it; what is copied there puts something else
//! out of the cache, and is written to memory later. Where much is copied to memory that nobody looks at soon, stores that do neither are faster.

#![expect(unsafe_code, reason = "the instructions, and copying between two kinds of memory")]

/// From so many bytes on it pays: before, waiting for the last store to arrive costs as much (measured on Zen 5: 4 KiB the same, 32 KiB and
/// 128 KiB 1.26 to 1.3 times as fast).
const STREAM_BYTES_MIN: usize = 16 << 10;

/// Copies to where it stays and is not looked at soon: much of it past the processor's caches, which is faster.
///
/// # Panics
/// The two have different lengths.
#[inline]
pub fn copy_to_keep(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "all of it is copied");
    // SAFETY: both are as long, and what is borrowed to be changed overlaps with nothing.
    unsafe { copy(from.as_ptr(), to.as_mut_ptr(), from.len()) }
}

/// As [`std::ptr::copy_nonoverlapping`]; much of it past the caches of what is copied to.
///
/// # Safety
/// As there.
#[inline]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= STREAM_BYTES_MIN {
        // SAFETY: what the caller has promised.
        return unsafe { stream(from, to, bytes) };
    }
    // SAFETY: what the caller has promised.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

/// # Safety
/// As [`copy`].
#[cfg(target_arch = "x86_64")]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const LINE_BYTES: usize = 64;
    const WORD_BYTES: usize = size_of::<__m128i>();
    // A line that is changed in part goes the usual way.
    let head = to.align_offset(LINE_BYTES).min(bytes);
    let lines_end = head + (bytes - head) / LINE_BYTES * LINE_BYTES;
    // SAFETY: the three parts are the range that the caller has promised. The first place of a line is a multiple of its size, as streaming
    // stores demand; they are part of SSE2, which every x86-64 processor has. The fence is before any other access to what they wrote.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for line in (head..lines_end).step_by(LINE_BYTES) {
            let words: [__m128i; LINE_BYTES / WORD_BYTES] =
                std::array::from_fn(|word| _mm_loadu_si128(from.add(line + word * WORD_BYTES).cast()));
            for (word, value) in words.into_iter().enumerate() {
                _mm_stream_si128(to.add(line + word * WORD_BYTES).cast(), value);
            }
        }
        _mm_sfence();
        std::ptr::copy_nonoverlapping(from.add(lines_end), to.add(lines_end), bytes - lines_end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_copied_and_nothing_else() {
        let source: Vec<u8> = (0..3 * STREAM_BYTES_MIN).map(|at| (at % 251) as u8).collect();
        for bytes in [
            0,
            1,
            STREAM_BYTES_MIN - 1,
            STREAM_BYTES_MIN,
            STREAM_BYTES_MIN + 63,
            2 * STREAM_BYTES_MIN + 17,
        ] {
            for (from, to) in [(0, 0), (0, 1), (3, 0), (5, 63), (64, 64), (7, 16)] {
                let mut target = vec![255; bytes + 128];
                copy_to_keep(&source[from..from + bytes], &mut target[to..to + bytes]);
                assert_eq!(
                    target[to..to + bytes],
                    source[from..from + bytes],
                    "{bytes} bytes from {from} to {to}"
                );
                let mut others = target[..to].iter().chain(&target[to + bytes..]);
                assert!(others.all(|byte| *byte == 255), "{bytes} bytes from {from} to {to}");
            }
        }
    }
}
