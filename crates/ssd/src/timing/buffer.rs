//! The write buffer: its contents, and the times at which space becomes free.
//!
//! A program operation occupies the buffer from its first page until it is on flash. Programs free
//! their space in the order of their ends.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::types::Nanos;

/// Number of programs without a lookup after which the ends are no longer kept.
const UNUSED_PROGRAMS_MAX: u32 = 4096;

#[derive(Clone, Debug)]
pub(super) struct WriteBuffer {
    capacity_bytes: u64,
    used_bytes: u64,
    /// Earliest admission of later data, because earlier data had to wait until then for space.
    room_at: Nanos,
    /// Operations in progress, sorted by end. Most new ones end after all or nearly all others.
    programs: VecDeque<BufferedProgram>,
    /// Time at which each operation in progress is on flash, by its first physical page. `None`
    /// while only writes use the buffer, because they look up nothing.
    ends: Option<FxHashMap<u32, Nanos>>,
    /// Programs since the last lookup.
    unused_programs: u32,
    /// Incomplete operations, by their first physical page.
    incomplete: FxHashSet<u32>,
    /// Last operation that data was added to, if still incomplete. The next write usually adds to
    /// it.
    filling: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BufferedProgram {
    end: Nanos,
    operation: u32,
    bytes: u64,
    /// Delay of the end by garbage collection.
    delayed_by_collection_ns: Nanos,
}

/// Admission time of data, and its delay by garbage collection.
pub(super) struct BufferAdmission {
    pub(super) at: Nanos,
    pub(super) waited_for_collection_ns: Nanos,
}

impl WriteBuffer {
    pub(super) fn new(capacity_bytes: u64) -> WriteBuffer {
        WriteBuffer {
            capacity_bytes,
            used_bytes: 0,
            room_at: 0,
            programs: VecDeque::new(),
            ends: None,
            unused_programs: 0,
            incomplete: FxHashSet::default(),
            filling: None,
        }
    }

    /// Puts a part of an operation into the buffer of a loaded drive. The buffer has space for the
    /// parts of all open reclaim units.
    pub(super) fn resume(&mut self, operation: u32, bytes: u64) {
        self.used_bytes += bytes;
        assert!(self.used_bytes <= self.capacity_bytes, "the buffer holds the operations that can be incomplete");
        self.incomplete.insert(operation);
    }

    /// Puts data into the buffer at the first time from `at` on with enough space.
    /// [`WriteBuffer::fill`] or [`WriteBuffer::programmed`] must follow.
    pub(super) fn admit(&mut self, at: Nanos, bytes: u64) -> BufferAdmission {
        let mut admitted = BufferAdmission { at: at.max(self.room_at), waited_for_collection_ns: 0 };
        self.release_until(at);
        while self.used_bytes + bytes > self.capacity_bytes {
            let program = self.release_next();
            let program = program.expect("the buffer is full, but no program is left that would free space");
            if program.end > admitted.at {
                let waited = program.end - admitted.at;
                admitted.waited_for_collection_ns += waited.min(program.delayed_by_collection_ns);
                admitted.at = program.end;
                self.room_at = program.end;
            }
        }
        self.used_bytes += bytes;
        assert!(self.used_bytes <= self.capacity_bytes, "the buffer holds more than its capacity");
        admitted
    }

    /// Adds the admitted data to an incomplete operation.
    #[inline]
    pub(super) fn fill(&mut self, operation: u32) {
        if self.filling.replace(operation) != Some(operation) {
            self.incomplete.insert(operation);
        }
    }

    /// Marks an operation as complete. It will be on flash at `end`. `is_filling` is false if the
    /// whole operation was admitted at once.
    pub(super) fn programmed(
        &mut self,
        operation: u32,
        is_filling: bool,
        bytes: u64,
        end: Nanos,
        delayed_by_collection_ns: Nanos,
    ) {
        if is_filling {
            self.filling.take_if(|filling| *filling == operation);
            let was_incomplete = self.incomplete.remove(&operation);
            assert!(was_incomplete, "an operation is programmed that was never in the buffer");
        }
        if let Some(ends) = &mut self.ends {
            ends.insert(operation, end);
            self.unused_programs += 1;
            if self.unused_programs > UNUSED_PROGRAMS_MAX {
                self.ends = None;
            }
        }
        self.insert(BufferedProgram { end, operation, bytes, delayed_by_collection_ns });
    }

    /// Inserts a program in the order of ends.
    fn insert(&mut self, program: BufferedProgram) {
        /// Number of last programs in the linear search.
        const FEW: usize = 8;
        let later = self.programs.iter().rev().take(FEW).take_while(|other| **other > program).count();
        let at = match later {
            FEW => self.programs.partition_point(|other| *other < program),
            _ => self.programs.len() - later,
        };
        assert!(at == 0 || self.programs[at - 1] <= program, "programs free their space in the order of their ends");
        self.programs.insert(at, program);
    }

    /// Lower bound of the admission time of new data.
    #[inline]
    pub(super) fn room_at(&self) -> Nanos {
        self.room_at
    }

    /// Returns true if the buffer holds an operation's data at a time.
    #[inline]
    pub(super) fn holds(&mut self, operation: u32, at: Nanos) -> bool {
        if self.programs.is_empty() && self.incomplete.is_empty() {
            return false;
        }
        self.unused_programs = 0;
        // A later program of an operation ends after the earlier one.
        let known = || self.programs.iter().map(|program| (program.operation, program.end)).collect();
        let end = self.ends.get_or_insert_with(known).get(&operation);
        end.is_some_and(|end| *end > at) || self.incomplete.contains(&operation)
    }

    /// Removes operations that are on flash at `now`. Later requests must not have an earlier time.
    #[inline]
    pub(super) fn release_until(&mut self, now: Nanos) {
        while self.programs.front().is_some_and(|program| program.end <= now) {
            self.release_next();
        }
    }

    fn release_next(&mut self) -> Option<BufferedProgram> {
        let program = self.programs.pop_front()?;
        assert!(program.bytes <= self.used_bytes, "the buffer gives back more than it holds");
        self.used_bytes -= program.bytes;
        // A later operation may already have the same first page.
        if let Some(ends) = &mut self.ends
            && let Entry::Occupied(last) = ends.entry(program.operation)
            && *last.get() == program.end
        {
            last.remove();
        }
        Some(program)
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn lookups_agree_with_ends_that_are_kept_from_the_start() {
        for seed in 0..6 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut buffer = WriteBuffer::new(1 << 40);
            let mut kept: FxHashMap<u32, Nanos> = FxHashMap::default();
            let (mut now, mut forgotten) = (0, 0);
            for step in 0..40_000 {
                now += random.random_range(0..100);
                buffer.release_until(now);
                kept.retain(|_, end| *end > now);
                let operation = random.random_range(0..2_000);
                let is_incomplete = kept.get(&operation) == Some(&Nanos::MAX);
                if !is_incomplete && kept.contains_key(&operation) {
                    continue;
                }
                let (end, is_part) =
                    (now + random.random_range(1..5_000), is_incomplete || random.random_range(0..2) > 0);
                let _ = buffer.admit(now, 10);
                if is_part {
                    buffer.fill(operation);
                }
                if is_incomplete || !is_part {
                    buffer.programmed(operation, is_part, if is_part { 20 } else { 10 }, end, 0);
                }
                kept.insert(operation, if is_part && !is_incomplete { Nanos::MAX } else { end });
                forgotten += u32::from(buffer.ends.is_none());
                // Long times without lookups.
                if step % 10_000 < 1000 {
                    let (at, looked_up) = (now + random.random_range(0..3_000), random.random_range(0..2_000));
                    let is_held = kept.get(&looked_up).is_some_and(|end| *end > at);
                    assert_eq!(buffer.holds(looked_up, at), is_held, "seed {seed}, step {step}");
                }
            }
            assert!(forgotten > 1_000, "the ends were kept while nobody looked them up");
        }
    }
}
