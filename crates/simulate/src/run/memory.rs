//! Memory budget of parallel runs. Each run reserves its page maps and workload, and waits for free
//! memory.
//!
//! A run reserves memory once and never requests more, so waiting always ends. The order of waiting
//! runs affects no result.

use std::sync::{Condvar, Mutex, MutexGuard};

pub(super) struct MemoryBudget {
    budget_bytes: u64,
    free_bytes: Mutex<u64>,
    given_back: Condvar,
}

/// Reserved memory, released on drop.
pub(super) struct MemoryReservation<'a> {
    memory: &'a MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    pub(super) fn new(budget_bytes: u64) -> MemoryBudget {
        MemoryBudget { budget_bytes, free_bytes: Mutex::new(budget_bytes), given_back: Condvar::new() }
    }

    fn free_bytes(&self) -> MutexGuard<'_, u64> {
        self.free_bytes.lock().expect("nobody panics with it")
    }

    /// Reserves `bytes` as soon as they are free.
    ///
    /// # Panics
    /// `bytes` exceeds the whole budget.
    pub(super) fn reserve(&self, bytes: u64) -> MemoryReservation<'_> {
        assert!(bytes <= self.budget_bytes, "a run that is too large is refused before");
        let too_few = |free: &mut u64| *free < bytes;
        let free = self.given_back.wait_while(self.free_bytes(), too_few);
        *free.expect("nobody panics with it") -= bytes;
        MemoryReservation { memory: self, bytes }
    }
}

impl Drop for MemoryReservation<'_> {
    fn drop(&mut self) {
        let mut free = self.memory.free_bytes();
        *free += self.bytes;
        assert!(*free <= self.memory.budget_bytes, "memory is given back once");
        self.memory.given_back.notify_all();
    }
}

/// Bytes of memory that runs may use. 8 GiB if the system does not report a value.
pub fn memory_available() -> u64 {
    base::memory_available_bytes().unwrap_or(8 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn runs_never_have_more_than_there_is() {
        let memory = MemoryBudget::new(10);
        let [taken, most] = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            for bytes in [3, 4, 5, 6, 10, 1] {
                let (memory, taken, most) = (&memory, &taken, &most);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let _share = memory.reserve(bytes);
                        let now = taken.fetch_add(bytes, Ordering::SeqCst) + bytes;
                        most.fetch_max(now, Ordering::SeqCst);
                        taken.fetch_sub(bytes, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 10);
        assert_eq!(*memory.free_bytes(), 10, "all of it came back");
    }
}
