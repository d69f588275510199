//! Cache control: prefetches memory that will be used soon, and writes data past the caches
//! ([`NonTemporalBuf`]).
//!
//! ```text
//! the element of a slice -> its address -> PREFETCHT0      no read, no wait
//! data -> Room -> MOVNTDQ -> settle: SFENCE                no read first, one wait for many stores
//! ```
//!
//! A load would also fetch the line and needs no unsafe code. But a processor holds at most some
//! hundreds of instructions behind a load that waits for memory. Behind a prefetch it continues
//! with other work. A prefetch has no visible effect except on time. Processors without this
//! instruction load the element.

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
    fn what_is_not_there_is_not_asked_for() {
        let elements = [1_u32, 2, 3];
        for index in [0, 2, 3, usize::MAX] {
            prefetch(&elements, index);
        }
        prefetch::<u64>(&[], 0);
        assert_eq!(elements, [1, 2, 3]);
    }
}
