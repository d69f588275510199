//! The write buffer: what is in it, and when there is room for more.
//!
//! A program operation is in the buffer from its first page until it is on flash. Room is given back in the order in
//! which programs end.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::types::Nanos;

/// The operation is not complete, so nobody knows when it will be programmed.
const FILLING: Nanos = Nanos::MAX;

#[derive(Clone, Debug)]
pub(super) struct Buffer {
    capacity_bytes: u64,
    used_bytes: u64,
    /// Somebody had to wait for the room that there is until then: who comes later does not get it earlier.
    room_at: Nanos,
    /// Operations that are being programmed, in the order of their ends. Most end after all that were given to dies before, or
    /// but a few of them.
    programs: VecDeque<Program>,
    /// First physical page of each operation with data in the buffer, and when it will be on flash.
    operations: FxHashMap<u32, Nanos>,
    /// The operation that data came to last, if it is still filling: the next write mostly adds to it.
    filling: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Program {
    end: Nanos,
    operation: u32,
    bytes: u64,
    /// How much later it ends because of garbage collection.
    delayed_by_collection_ns: Nanos,
}

/// When there was room.
pub(super) struct Admission {
    pub(super) at: Nanos,
    pub(super) waited_for_collection_ns: Nanos,
}

impl Buffer {
    pub(super) fn new(capacity_bytes: u64) -> Buffer {
        Buffer {
            capacity_bytes,
            used_bytes: 0,
            room_at: 0,
            programs: VecDeque::new(),
            operations: FxHashMap::default(),
            filling: None,
        }
    }

    /// A part of an operation is in the buffer from the beginning. There is room for those of all reclaim units that are open.
    pub(super) fn resume(&mut self, operation: u32, bytes: u64) {
        self.used_bytes += bytes;
        assert!(
            self.used_bytes <= self.capacity_bytes,
            "the buffer holds the operations that can be incomplete"
        );
        self.operations.insert(operation, FILLING);
    }

    /// Puts a part of an operation into the buffer, as soon as there is room from `at` on.
    pub(super) fn admit(&mut self, at: Nanos, operation: u32, bytes: u64) -> Admission {
        let mut admitted = Admission {
            at: at.max(self.room_at),
            waited_for_collection_ns: 0,
        };
        self.release_until(at);
        while self.used_bytes + bytes > self.capacity_bytes {
            let program = self.release_next();
            let program = program.expect("the buffer holds more than the operations that can be incomplete");
            if program.end > admitted.at {
                let waited = program.end - admitted.at;
                admitted.waited_for_collection_ns += waited.min(program.delayed_by_collection_ns);
                admitted.at = program.end;
                self.room_at = program.end;
            }
        }
        self.used_bytes += bytes;
        assert!(
            self.used_bytes <= self.capacity_bytes,
            "the buffer holds more than it has room for"
        );
        if self.filling.replace(operation) != Some(operation) {
            self.operations.insert(operation, FILLING);
        }
        admitted
    }

    /// The operation is complete and will be on flash at `end`.
    pub(super) fn programmed(&mut self, operation: u32, bytes: u64, end: Nanos, delayed_by_collection_ns: Nanos) {
        let before = self.operations.insert(operation, end);
        self.filling.take_if(|filling| *filling == operation);
        assert!(
            before.is_some(),
            "an operation is programmed that was never in the buffer"
        );
        self.insert(Program {
            end,
            operation,
            bytes,
            delayed_by_collection_ns,
        });
    }

    /// Puts a program where it is in the order of ends.
    fn insert(&mut self, program: Program) {
        /// Programs that are looked at one by one, from the last on.
        const FEW: usize = 8;
        let later = self
            .programs
            .iter()
            .rev()
            .take(FEW)
            .take_while(|other| **other > program)
            .count();
        let at = match later {
            FEW => self.programs.partition_point(|other| *other < program),
            _ => self.programs.len() - later,
        };
        assert!(
            at == 0 || self.programs[at - 1] <= program,
            "programs give their room back in the order of their ends"
        );
        self.programs.insert(at, program);
    }

    /// Nothing that comes now is in the buffer before.
    #[inline]
    pub(super) fn room_at(&self) -> Nanos {
        self.room_at
    }

    /// Whether an operation's data is in the buffer at a time.
    #[inline]
    pub(super) fn holds(&self, operation: u32, at: Nanos) -> bool {
        !self.operations.is_empty() && self.operations.get(&operation).is_some_and(|end| *end > at)
    }

    /// Forgets what is on flash at `now`: nobody will ask for an earlier time any more.
    #[inline]
    pub(super) fn release_until(&mut self, now: Nanos) {
        while self.programs.front().is_some_and(|program| program.end <= now) {
            self.release_next();
        }
    }

    fn release_next(&mut self) -> Option<Program> {
        let program = self.programs.pop_front()?;
        assert!(
            program.bytes <= self.used_bytes,
            "the buffer gives back more than it holds"
        );
        self.used_bytes -= program.bytes;
        // A later operation may have the same place already.
        if self.operations.get(&program.operation) == Some(&program.end) {
            self.operations.remove(&program.operation);
        }
        Some(program)
    }
}
