//! The processor's caches: asks for memory that will be used soon, and goes on; copies past them what will not ([`Room`]).
//!
//! ```text
//! the element of a slice -> its address -> PREFETCHT0        nothing is read, nothing waits
//! data -> Room -> MOVNTDQ -> settle: SFENCE                  nothing is read first, one wait for many
//! ```
//!
//! A load would do the same and be safe, but the processor holds some hundreds of instructions at most behind a load that waits for
//! memory; behind a prefetch it goes on with what it has to do meanwhile. It changes nothing that a program can see but time. Where there is no
//! such instruction the element is loaded.

mod room;

pub use room::{Room, settle};

/// Asks for the element at an index, if there is one.
#[inline(always)]
pub fn prefetch<T: Copy>(elements: &[T], index: usize) {
    let Some(element) = elements.get(index) else { return };
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: PREFETCHT0 reads nothing that the program sees and never faults, whatever the address; this one is that of a living
    // element besides. It is part of SSE, which every x86-64 processor has.
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
