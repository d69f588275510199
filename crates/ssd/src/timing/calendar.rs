//! When something that does one thing at a time is taken: a channel, one direction of the link.
//!
//! Requests do not come in the order in which they need it (a read that waits long for its die needs its channel late),
//! so a next-free time would make the early wait for the late. The calendar keeps the busy intervals of the future and
//! puts each request into the first gap that is long enough.

use crate::types::Nanos;

/// Busy intervals, sorted, not touching each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    busy: Vec<Interval>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    start: Nanos,
    end: Nanos,
}

impl Calendar {
    /// Intervals at the end that are looked at before the others are searched.
    const NEAR: usize = 8;

    /// Takes `length` ns without interruption, as early as possible but not before `from`; returns when they begin.
    /// Nobody will ask for a time before `now` any more.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Nanos, from: Nanos, length: Nanos) -> Nanos {
        assert!(now <= from, "time that is over is asked for");
        if length == 0 {
            return from;
        }
        if self.busy.len() == self.busy.capacity() {
            self.make_room(now);
        }
        // Most requests come after everything else.
        match self.busy.last_mut() {
            Some(last) if from < last.end => self.take_between(from, length),
            Some(last) if last.end == from => {
                last.end += length;
                from
            }
            _ => {
                self.busy.push(Interval {
                    start: from,
                    end: from + length,
                });
                from
            }
        }
    }

    /// Forgets what is over, and makes the memory larger if that is not much.
    #[cold]
    fn make_room(&mut self, now: Nanos) {
        let over = self.busy.partition_point(|interval| interval.end <= now);
        self.busy.drain(..over);
        self.busy.reserve(self.busy.len().max(Self::NEAR));
    }

    /// As [`Calendar::take`], from a time on at which something later is taken.
    #[inline(never)]
    fn take_between(&mut self, from: Nanos, length: Nanos) -> Nanos {
        let is_over = |interval: &Interval| interval.end <= from;
        // Mostly it is before one of the last.
        let mut next = match self.busy.iter().rev().take(Self::NEAR).position(is_over) {
            Some(later) => self.busy.len() - later,
            None => self.busy.partition_point(is_over),
        };
        let mut start = from;
        while let Some(interval) = self.busy.get(next)
            && interval.start < start + length
        {
            start = interval.end;
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
        assert_eq!(calendar.take(0, 100, 10), 100);
        assert_eq!(calendar.take(0, 115, 10), 115);
        assert_eq!(calendar.take(0, 100, 6), 125, "the gap of 5 is too short");
        assert_eq!(calendar.take(0, 100, 5), 110);
        assert_eq!(calendar.take(0, 0, 100), 0);
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
                let (from, length) = (now + random.random_range(0..60), random.random_range(1..20));
                let free = |start: &u64| (*start..start + length).all(|at| !taken[index(narrow(at))]);
                let expected = (from..).find(free).expect("time does not end");
                assert_eq!(calendar.take(now, from, length), expected, "seed {seed}");
                taken[index(narrow(expected))..index(narrow(expected + length))].fill(true);
            }
        }
    }
}
