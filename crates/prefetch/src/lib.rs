//! Cache control: prefetches memory that will be used soon, and writes data past the caches
//! ([`NonTemporalBuf`]).
//!
//! ```text
//! prefetch: address of an element -> PREFETCHT0                 no read, no wait
//! NonTemporalBuf: data -> MOVNTDQ -> flush_nontemporal: SFENCE  no read, one wait for many stores
//! ```
//!
//! An ordinary load would also fetch the cache line, without unsafe code. But a processor can
//! execute only some hundreds of instructions past a load that waits for memory. A prefetch does
//! not block it. A prefetch changes nothing but the timing. On processors other than x86-64,
//! [`prefetch()`] loads the element.

mod non_temporal;

pub use non_temporal::{NonTemporalBuf, flush_nontemporal};

/// Prefetches the element at an index, if it exists.
#[inline(always)]
pub fn prefetch<T: Copy>(elements: &[T], index: usize) {
    let Some(element) = elements.get(index) else { return };
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: PREFETCHT0 returns no data and never faults at any address. The address is also that
    // of a living element. The instruction is part of SSE, which every x86-64 processor has.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(*element);
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn an_index_beyond_the_end_prefetches_nothing() {
        let elements = [1_u32, 2, 3];
        for index in [0, 2, 3, usize::MAX] {
            prefetch(&elements, index);
        }
        prefetch::<u64>(&[], 0);
        assert_eq!(elements, [1, 2, 3]);
    }
}
