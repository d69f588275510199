//! When something that does one thing at a time is taken: a channel, one direction of the link.
//!
//! Requests do not come in the order in which they need it (a read that waits long for its die needs its channel late),
//! so a next-free time would make the early wait for the late. The calendar keeps the busy intervals of the future and
//! puts each request into the first gap that is long enough.

use std::collections::VecDeque;

use crate::types::Nanos;

/// Busy intervals, sorted, not touching each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    busy: VecDeque<Interval>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    start: Nanos,
    end: Nanos,
}

impl Calendar {
    /// Forgets what is over: nobody will ask for a time before `now` any more.
    #[inline]
    pub(super) fn forget_before(&mut self, now: Nanos) {
        while self.busy.front().is_some_and(|first| first.end <= now) {
            self.busy.pop_front();
        }
    }

    /// Takes `length` ns without interruption, as early as possible but not before `from`; returns when they begin.
    #[inline]
    pub(super) fn take(&mut self, from: Nanos, length: Nanos) -> Nanos {
        if length == 0 {
            return from;
        }
        // Most requests come after everything else.
        match self.busy.back_mut() {
            None => {
                self.busy.push_back(Interval {
                    start: from,
                    end: from + length,
                });
                return from;
            }
            Some(last) if last.end == from => {
                last.end += length;
                return from;
            }
            Some(last) if last.end < from => {
                self.busy.push_back(Interval {
                    start: from,
                    end: from + length,
                });
                return from;
            }
            Some(_) => {}
        }
        let mut next = self.busy.partition_point(|interval| interval.end <= from);
        let mut start = from;
        while let Some(interval) = self.busy.get(next) {
            if interval.start >= start + length {
                break;
            }
            start = start.max(interval.end);
            next += 1;
        }
        self.insert(
            next,
            Interval {
                start,
                end: start + length,
            },
        );
        start
    }

    /// Puts an interval before the one at `next`, joined with the neighbours that it touches.
    fn insert(&mut self, next: usize, interval: Interval) {
        assert!(
            next == 0 || self.busy[next - 1].end <= interval.start,
            "what was taken before is taken again"
        );
        assert!(
            self.busy.get(next).is_none_or(|after| interval.end <= after.start),
            "what is taken later is taken again"
        );
        let joins_previous = next > 0 && self.busy[next - 1].end == interval.start;
        let joins_next = self.busy.get(next).is_some_and(|after| after.start == interval.end);
        match (joins_previous, joins_next) {
            (true, true) => {
                self.busy[next - 1].end = self.busy[next].end;
                self.busy.remove(next);
            }
            (true, false) => self.busy[next - 1].end = interval.end,
            (false, true) => self.busy[next].start = interval.start,
            (false, false) => self.busy.insert(next, interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cast::{index, narrow};
    use rand::RngExt;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn a_gap_that_is_long_enough_is_filled() {
        let mut calendar = Calendar::default();
        assert_eq!(calendar.take(100, 10), 100);
        assert_eq!(calendar.take(115, 10), 115);
        assert_eq!(calendar.take(100, 6), 125, "the gap of 5 is too short");
        assert_eq!(calendar.take(100, 5), 110);
        assert_eq!(calendar.take(0, 100), 0);
        assert_eq!(calendar.busy, [Interval { start: 0, end: 131 }]);
    }

    #[test]
    fn it_agrees_with_looking_at_every_nanosecond() {
        for seed in 0..200 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut calendar = Calendar::default();
            let mut taken = vec![false; 4000];
            let mut now = 0;
            for _ in 0..100 {
                now += random.random_range(0..8);
                calendar.forget_before(now);
                let (from, length) = (now + random.random_range(0..60), random.random_range(1..20));
                let free = |start: &u64| (*start..start + length).all(|at| !taken[index(narrow(at))]);
                let expected = (from..).find(free).expect("time does not end");
                assert_eq!(calendar.take(from, length), expected, "seed {seed}");
                taken[index(narrow(expected))..index(narrow(expected + length))].fill(true);
            }
        }
    }
}
