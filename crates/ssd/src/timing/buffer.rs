//! The write buffer: its contents, and the times at which space becomes free.
//!
//! A program operation occupies the buffer from its first page until it is on flash. Programs free
//! their space in the order of their ends.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::types::Nanos;

/// End of an incomplete operation, whose program time is unknown.
const FILLING: Nanos = Nanos::MAX;

#[derive(Clone, Debug)]
pub(super) struct WriteBuffer {
    capacity_bytes: u64,
    used_bytes: u64,
    /// Earliest admission of later data, because earlier data had to wait until then for space.
    room_at: Nanos,
    /// Operations in progress, sorted by end. Most new ones end after all or nearly all others.
    programs: VecDeque<BufferedProgram>,
    /// Operations with data in the buffer, by their first physical page, and the time at which they
    /// are on flash.
    operations: FxHashMap<u32, Nanos>,
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
            operations: FxHashMap::default(),
            filling: None,
        }
    }

    /// Puts a part of an operation into the buffer of a loaded drive. The buffer has space for the
    /// parts of all open reclaim units.
    pub(super) fn resume(&mut self, operation: u32, bytes: u64) {
        self.used_bytes += bytes;
        assert!(self.used_bytes <= self.capacity_bytes, "the buffer holds the operations that can be incomplete");
        self.operations.insert(operation, FILLING);
    }

    /// Puts a part of an operation into the buffer at the first time from `at` on with enough
    /// space.
    pub(super) fn admit(&mut self, at: Nanos, operation: u32, bytes: u64) -> BufferAdmission {
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
        if self.filling.replace(operation) != Some(operation) {
            self.operations.insert(operation, FILLING);
        }
        admitted
    }

    /// Marks an operation as complete. It will be on flash at `end`.
    pub(super) fn programmed(&mut self, operation: u32, bytes: u64, end: Nanos, delayed_by_collection_ns: Nanos) {
        let before = self.operations.insert(operation, end);
        self.filling.take_if(|filling| *filling == operation);
        assert!(before.is_some(), "an operation is programmed that was never in the buffer");
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
    pub(super) fn holds(&self, operation: u32, at: Nanos) -> bool {
        !self.operations.is_empty() && self.operations.get(&operation).is_some_and(|end| *end > at)
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
        if self.operations.get(&program.operation) == Some(&program.end) {
            self.operations.remove(&program.operation);
        }
        Some(program)
    }
}
