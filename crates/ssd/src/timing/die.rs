//! Timing of a flash die, which prefers reads to programs and programs to garbage collection.
//!
//! ```text
//! reads               |##|      |##|##|                    next-free time, in order of arrival
//! programs          ##    ######       ####                in order, each when its data is there
//! garbage collection                       ###   ###       backlog, processed in idle time
//! ```
//!
//! Time without reads is consumed in that order at the next access to the die. A read therefore
//! costs only some additions, and no nanosecond is used twice. A read that arrives during an
//! operation waits for its end or its suspension.

use std::collections::VecDeque;

use super::activity::{self, ActivityLog};
use crate::types::Nanos;

/// Operations of equal average length.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OperationBatch {
    /// Total time of the operations.
    pub(super) ns: Nanos,
    pub(super) count: u32,
}

impl OperationBatch {
    /// Remaining time of the operation in progress if `left_ns` of the total remain. 0 between two
    /// operations.
    fn rest(self, left_ns: Nanos) -> Nanos {
        if left_ns == 0 {
            return 0;
        }
        let count = u128::from(self.count);
        match (u128::from(left_ns) * count).checked_rem(u128::from(self.ns)) {
            None => 0,
            Some(rest) => Nanos::try_from(rest / count).expect("a rest is shorter than all operations"),
        }
    }
}

/// Queued work, processed one operation at a time.
#[derive(Clone, Copy, Debug)]
struct QueuedWork {
    /// Earliest start.
    ready_at: Nanos,
    left_ns: Nanos,
    operations: OperationBatch,
    /// True for garbage collection that a host waits for.
    is_collection: bool,
}

impl QueuedWork {
    fn kind(&self) -> activity::WorkKind {
        match self.is_collection {
            true => activity::WorkKind::Collection,
            false => activity::WorkKind::Program,
        }
    }
}

/// Backlog of garbage collection.
#[derive(Clone, Copy, Debug, Default)]
struct GcBacklog {
    /// Total work ever requested, nanoseconds.
    scheduled_ns: u64,
    /// Work done so far, nanoseconds.
    done_ns: u64,
    /// Work of the last request.
    operations: OperationBatch,
}

impl GcBacklog {
    fn ns(&self) -> Nanos {
        self.scheduled_ns - self.done_ns
    }

    fn work_off(&mut self, time: Nanos) {
        self.done_ns += time.min(self.ns());
        assert!(self.done_ns <= self.scheduled_ns, "more collection was done than requested");
    }

    /// Remaining time of the operation that is in progress after `time`.
    fn rest_of_operation(&self, time: Nanos) -> Nanos {
        self.operations.rest(self.ns().saturating_sub(time))
    }
}

/// A die with its queued work.
#[derive(Clone, Debug, Default)]
pub(super) struct Die {
    /// End of the scheduled reads. All other work is processed up to this time.
    free_at: Nanos,
    programs: VecDeque<QueuedWork>,
    programs_ns: Nanos,
    /// Lower bound of the end of the programs, because some are not ready yet.
    programs_until: Nanos,
    collection: GcBacklog,
    /// Activity log, if enabled.
    pub(super) activity: Option<Box<ActivityLog>>,
}

/// Scheduled time of a read on the die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadSlot {
    pub(super) end: Nanos,
    /// Time that the read waited for garbage collection.
    pub(super) waited_for_collection_ns: Nanos,
}

impl Die {
    /// Processes queued work in the time until `now` that no read used.
    #[inline]
    fn process_until(&mut self, now: Nanos) {
        while self.free_at < now {
            let Some(first) = self.programs.front_mut() else {
                assert_eq!(self.programs_ns, 0, "the debt belongs to programs outside the queue");
                self.collect_until(now);
                return;
            };
            if first.ready_at > self.free_at {
                let until = first.ready_at.min(now);
                self.collect_until(until);
                continue;
            }
            let time = first.left_ns.min(now - self.free_at);
            first.left_ns -= time;
            self.programs_ns -= time;
            let (is_over, work) = (first.left_ns == 0, first.kind());
            self.log_activity(self.free_at, time, work);
            self.free_at += time;
            if is_over {
                self.programs.pop_front();
            }
        }
    }

    /// Processes collection work until `until`.
    #[inline]
    fn collect_until(&mut self, until: Nanos) {
        assert!(until > self.free_at, "the time does not increase");
        let time = until - self.free_at;
        self.log_activity(self.free_at, time.min(self.collection.ns()), activity::WorkKind::Collection);
        self.collection.work_off(time);
        self.free_at = until;
    }

    #[inline]
    fn log_activity(&mut self, from: Nanos, length: Nanos, work: activity::WorkKind) {
        if let Some(activity) = &mut self.activity {
            activity.record(from, from + length, work);
        }
    }

    /// Reads for `length`, from `at` or later. `suspend_ns` is the time to suspend a program or
    /// erase, if the die supports it.
    #[inline(always)]
    pub(super) fn read(&mut self, at: Nanos, length: Nanos, suspend_ns: Option<Nanos>) -> ReadSlot {
        let waited_for_collection_ns = if self.is_idle() {
            self.free_at = self.free_at.max(at);
            0
        } else {
            self.suspend_for_read(at, suspend_ns)
        };
        assert!(self.free_at >= at, "a die reads after the request");
        self.log_activity(self.free_at, length, activity::WorkKind::Read);
        self.free_at += length;
        ReadSlot { end: self.free_at, waited_for_collection_ns }
    }

    /// Returns true if the die has no queued work.
    #[inline]
    fn is_idle(&self) -> bool {
        self.programs.is_empty() && self.collection.ns() == 0
    }

    /// Ends or suspends the operation in progress for a read. Returns the time that the read waits
    /// for collection.
    #[inline(never)]
    fn suspend_for_read(&mut self, at: Nanos, suspend_ns: Option<Nanos>) -> Nanos {
        self.process_until(at);
        // No operation starts before a pending read.
        if self.free_at > at {
            return 0;
        }
        let (wait, for_collection) = self.interrupt(at, suspend_ns);
        let work = if for_collection { activity::WorkKind::Collection } else { activity::WorkKind::Program };
        self.log_activity(at, wait, work);
        self.free_at += wait;
        if for_collection { wait } else { 0 }
    }

    /// Ends or suspends the operation in progress. Returns the duration, and true for a collection
    /// operation.
    fn interrupt(&mut self, at: Nanos, suspend_ns: Option<Nanos>) -> (Nanos, bool) {
        let program = self.programs.front_mut().filter(|first| first.ready_at <= at);
        let (rest, for_collection) = match &program {
            Some(work) => (work.operations.rest(work.left_ns), work.is_collection),
            None => (self.collection.rest_of_operation(0), true),
        };
        let suspended = suspend_ns.filter(|suspend| *suspend < rest);
        if suspended.is_none() {
            match program {
                None => self.collection.work_off(rest),
                Some(work) => {
                    assert!(rest <= work.left_ns && rest <= self.programs_ns, "an operation ends after its work");
                    work.left_ns -= rest;
                    self.programs_ns -= rest;
                    if work.left_ns == 0 {
                        self.programs.pop_front();
                    }
                }
            }
        }
        (suspended.unwrap_or(rest), for_collection)
    }

    /// Schedules a program of `length`, requested at `now`, not before `at`. Returns its end if no
    /// read interrupts it.
    pub(super) fn program(&mut self, now: Nanos, at: Nanos, length: Nanos) -> Nanos {
        self.process_until(now);
        let mut ready_at = at;
        if self.programs.is_empty() && at >= self.free_at {
            // A collection operation in progress at that time ends first.
            ready_at += self.collection.rest_of_operation(at - self.free_at);
        }
        self.add(QueuedWork {
            ready_at,
            left_ns: length,
            operations: OperationBatch { ns: length, count: 1 },
            is_collection: false,
        })
    }

    /// Appends work to the queue. Returns its end if no read interrupts it.
    #[inline]
    fn add(&mut self, work: QueuedWork) -> Nanos {
        self.programs_ns += work.left_ns;
        self.programs_until = self.programs_until.max(work.ready_at) + work.left_ns;
        self.programs.push_back(work);
        self.end_of_programs()
    }

    /// End of the queued programs if no read interrupts them.
    pub(super) fn programmed_at(&mut self, now: Nanos) -> Nanos {
        self.process_until(now);
        self.end_of_programs()
    }

    /// End of all programs if no read interrupts them. They run one after the other, from now or
    /// from the time at which one of them is ready. `programs_until` may include programs in
    /// progress. It is never later than the true end, because no program ends before its reported
    /// time.
    #[inline]
    fn end_of_programs(&self) -> Nanos {
        self.programs_until.max(self.free_at + self.programs_ns)
    }

    /// Adds work to the collection backlog. Returns its end position in the backlog, for
    /// [`Die::wait_for`].
    pub(super) fn collect(&mut self, now: Nanos, operations: OperationBatch) -> u64 {
        self.process_until(now);
        if operations.ns > 0 {
            self.collection.scheduled_ns += operations.ns;
            self.collection.operations = operations;
        }
        self.collection.scheduled_ns
    }

    /// Moves the collection backlog up to position `position` ahead of later programs, because a
    /// host waits for it. Returns its end.
    pub(super) fn wait_for(&mut self, now: Nanos, position: u64) -> Nanos {
        self.process_until(now);
        assert!(position <= self.collection.scheduled_ns, "a host waits for collection work that is not scheduled");
        let remaining_ns = position.saturating_sub(self.collection.done_ns);
        if remaining_ns > 0 {
            self.collection.done_ns += remaining_ns;
            return self.add(QueuedWork {
                ready_at: now,
                left_ns: remaining_ns,
                operations: self.collection.operations,
                is_collection: true,
            });
        }
        // The work may be queued already, because another host waits for it.
        let promoted = self.programs.iter().rposition(|work| work.is_collection);
        promoted.map_or(now, |last| {
            let before = self.programs.iter().take(last + 1);
            before.fold(self.free_at, |end, work| end.max(work.ready_at) + work.left_ns)
        })
    }

    /// Remaining work at `now`, in nanoseconds.
    pub(super) fn backlog_ns(&mut self, now: Nanos) -> Nanos {
        self.process_until(now);
        self.end_of_programs().saturating_sub(now) + self.collection.ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    /// End of all programs, computed one by one.
    fn walked(die: &Die) -> Nanos {
        let programs = die.programs.iter();
        programs.fold(die.free_at, |end, work| end.max(work.ready_at) + work.left_ns)
    }

    #[test]
    fn the_end_of_the_programs_is_that_of_walking_them() {
        for seed in 0..500 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut die, mut now, mut position) = (Die::default(), 0, 0);
            let suspend_ns = (seed % 2 == 0).then_some(seed % 50);
            for step in 0..200 {
                now += random.random_range(0..2) * random.random_range(0..300);
                match random.random_range(0..5) {
                    0 | 1 => {
                        let at = now + random.random_range(0..2) * random.random_range(0..500);
                        let end = die.program(now, at, random.random_range(1..200));
                        assert_eq!(end, walked(&die), "seed {seed}, step {step}");
                    }
                    2 => _ = die.read(now, random.random_range(1..100), suspend_ns),
                    3 => {
                        let (ns, count) = (random.random_range(0..400), random.random_range(1..5));
                        position = die.collect(now, OperationBatch { ns, count });
                    }
                    _ => _ = die.wait_for(now, position),
                }
                assert_eq!(die.programmed_at(now), walked(&die), "seed {seed}, step {step}");
            }
        }
    }
}
