//! When something that does one thing at a time is taken: a channel, one direction of the link.
//!
//! Requests do not come in the order in which they need it (a read that waits long for its die needs its channel late),
//! so a next-free time would make the early wait for the late. The calendar keeps the busy intervals of the future and
//! puts each request into the first gap that is long enough.

use crate::types::Nanos;

/// Busy intervals, sorted, not touching each other.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    /// First some that are over, always more than are near; then those that are known; room for more, which is free.
    busy: Vec<Interval>,
    /// Where the room begins.
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    start: Nanos,
    end: Nanos,
}

impl Interval {
    /// Is over from the beginning.
    const OVER: Interval = Interval { start: 0, end: 0 };
    /// Room: it begins after everything.
    const FREE: Interval = Interval {
        start: Nanos::MAX,
        end: Nanos::MAX,
    };
}

/// The last intervals, among which a request mostly finds its place. They are searched, and moved, all of them, because
/// which it is no processor can foresee.
const NEAR: usize = 8;

impl Default for Calendar {
    fn default() -> Calendar {
        Calendar {
            busy: vec![Interval::OVER; NEAR + 1],
            end: NEAR + 1,
        }
    }
}

impl Calendar {
    /// Takes `length` ns without interruption, as early as possible but not before `from`; returns when they begin.
    /// Nobody will ask for a time before `now` any more.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Nanos, from: Nanos, length: Nanos) -> Nanos {
        assert!(now <= from, "time that is over is asked for");
        if length == 0 {
            return from;
        }
        if self.busy.len() - self.end <= NEAR {
            self.make_room(now);
        }
        // One before those that are near, they, and room for one more than they are.
        let first = self.end - NEAR - 1;
        let window = self.busy[first..].first_chunk_mut::<{ 2 * NEAR + 2 }>();
        let window = window.expect("there is room");
        let near = window[1..=NEAR].partition_point(|interval| interval.end <= from);
        let interval = Interval {
            start: from,
            end: from + length,
        };
        let touches = (window[near].end == from) | (window[near + 1].start <= interval.end);
        if touches | (near == 0) {
            return self.take_between(first + 1 + near, from, length);
        }
        window.copy_within(near + 1..near + 1 + NEAR, near + 2);
        window[near + 1] = interval;
        self.end += 1;
        from
    }

    /// Forgets what is over, and makes the memory larger if that is not much.
    #[cold]
    fn make_room(&mut self, now: Nanos) {
        let over = self.busy[..self.end].partition_point(|interval| interval.end <= now);
        let forgotten = over.saturating_sub(NEAR + 1);
        self.busy.copy_within(forgotten..self.end, 0);
        self.busy[self.end - forgotten..self.end].fill(Interval::FREE);
        self.end -= forgotten;
        let length = self.busy.len().max(2 * self.end + NEAR);
        self.busy.resize(length, Interval::FREE);
    }

    /// As [`Calendar::take`], where others are in the way or touched, or none of those that are near is over by then;
    /// `next` is the first that is not.
    #[inline(never)]
    fn take_between(&mut self, mut next: usize, from: Nanos, length: Nanos) -> Nanos {
        if next == self.end - NEAR {
            next = self.busy[..next].partition_point(|interval| interval.end <= from);
        }
        let mut start = from;
        while self.busy[next].start < start + length {
            start = self.busy[next].end;
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
        let (before, after) = (self.busy[next - 1], self.busy[next]);
        assert!(before.end <= interval.start, "what was taken before is taken again");
        assert!(interval.end <= after.start, "what is taken later is taken again");
        match (before.end == interval.start, after.start == interval.end) {
            (true, true) => {
                self.busy[next - 1].end = after.end;
                self.busy.copy_within(next + 1..self.end + 1, next);
                self.end -= 1;
            }
            (true, false) => self.busy[next - 1].end = interval.end,
            (false, true) => self.busy[next].start = interval.start,
            (false, false) => {
                self.busy.copy_within(next..self.end, next + 1);
                self.busy[next] = interval;
                self.end += 1;
            }
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
        assert_eq!(calendar.busy[calendar.end - 1], Interval { start: 0, end: 131 });
        assert_eq!(calendar.end, NEAR + 1);
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
                let known = &calendar.busy[..calendar.end];
                assert!(known.is_sorted_by(|one, next| one.end < next.start || *one == Interval::OVER));
                let room = &calendar.busy[calendar.end..];
                assert!(room.iter().all(|interval| *interval == Interval::FREE), "seed {seed}");
            }
        }
    }
}
