//! Schedule of a resource that serves one request at a time, such as a channel or a link direction.
//!
//! Requests do not arrive in the order in which they need the resource. A read that waits long for
//! its die needs its channel late, for example. With a next-free time, early requests would wait
//! for late ones. The timeline stores the future busy intervals and puts each request into the
//! first gap that is long enough.

use crate::types::Nanos;

/// Busy intervals, sorted and disjoint.
///
/// The arrays begin with past intervals, always more than `NEAR`. The known intervals follow, then
/// free entries for new ones.
#[derive(Clone, Debug)]
pub(super) struct BusyTimeline {
    starts: Vec<Nanos>,
    ends: Vec<Nanos>,
    /// Index of the interval before the last `NEAR` intervals, which the free entries follow.
    first: usize,
}

/// Start and end of the initial past intervals.
const PAST: Nanos = 0;
/// End of time, after 292 years, which marks free entries. Earlier times are compared by the sign
/// of their difference.
pub(super) const FREE: Nanos = Nanos::MAX / 2;

/// Number of last intervals among which most requests fall. The code compares and moves all of them
/// without branches, because the position is unpredictable.
const NEAR: usize = 8;
/// Size of the window: one interval before the near ones, the near ones, and space for one more
/// than that.
const WINDOW: usize = 2 * NEAR + 2;
/// Initial number of entries, including free ones.
const LENGTH: usize = 64;

impl Default for BusyTimeline {
    fn default() -> BusyTimeline {
        let mut times = vec![FREE; LENGTH];
        times[..=NEAR].fill(PAST);
        BusyTimeline { starts: times.clone(), ends: times, first: 0 }
    }
}

/// Window of times from `first` on, if the array is long enough.
#[inline(always)]
fn window(times: &mut [Nanos], first: usize) -> Option<&mut [Nanos; WINDOW]> {
    times.get_mut(first..)?.first_chunk_mut()
}

/// Number of ends that are not after `from`. Uses the signs of differences, which compile to SIMD
/// instructions.
#[inline(always)]
fn count_ended(ends: &[Nanos], from: Nanos) -> usize {
    let sign = |end: &Nanos| end.wrapping_sub(from).wrapping_sub(1) >> (Nanos::BITS - 1);
    ends.iter().map(sign).fold(0, Nanos::wrapping_add) as usize
}

/// Inserts a time into a window and shifts the later near times.
#[inline(always)]
fn insert_at(times: &mut [Nanos; WINDOW], at: usize, time: Nanos) {
    let moved: [Nanos; NEAR] = *times[at..].first_chunk().expect("later entries are in the window");
    times[at + 1..at + 1 + NEAR].copy_from_slice(&moved);
    times[at] = time;
}

impl BusyTimeline {
    /// Reserves `length` ns without interruption, as early as possible but not before `from`.
    /// Returns the start. Later requests must not start before `now`.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Nanos, from: Nanos, length: Nanos) -> Nanos {
        assert!(now <= from, "a request starts at {from}, before the current time {now}");
        if length == 0 {
            return from;
        }
        let (first, end) = (self.first, from + length);
        let windows = (window(&mut self.starts, first), window(&mut self.ends, first));
        let (Some(starts), Some(ends)) = windows else {
            return self.take_after_growth(now, from, length);
        };
        let near = count_ended(&ends[1..=NEAR], from);
        assert!(near <= NEAR, "more entries expire than exist");
        if (ends[near] == from) | (starts[near + 1] <= end) | (near == 0) {
            // Usually the request starts directly at the end of a near interval and does not reach
            // the next one.
            let before = near + usize::from(starts[near + 1] < end);
            let start = ends[before];
            if near > 0 && start >= from && start + length < starts[before + 1] {
                ends[before] = start + length;
                return start;
            }
            return self.take_between(first + 1 + near, from, length);
        }
        insert_at(starts, near + 1, from);
        insert_at(ends, near + 1, end);
        self.first += 1;
        from
    }

    /// Same as [`BusyTimeline::take`], if no free entries remain.
    #[cold]
    #[inline(never)]
    fn take_after_growth(&mut self, now: Nanos, from: Nanos, length: Nanos) -> Nanos {
        self.drop_past_intervals(now);
        self.take(now, from, length)
    }

    /// Index of the first free entry.
    fn end(&self) -> usize {
        self.first + NEAR + 1
    }

    /// Removes past intervals, and grows the arrays if that frees too few entries.
    fn drop_past_intervals(&mut self, now: Nanos) {
        let end = self.end();
        let past = self.ends[..end].partition_point(|end| *end <= now);
        let removed = past.saturating_sub(NEAR + 1);
        let length = self.starts.len().max(2 * (end - removed) + WINDOW);
        for times in [&mut self.starts, &mut self.ends] {
            times.copy_within(removed..end, 0);
            times[end - removed..end].fill(FREE);
            times.resize(length, FREE);
        }
        self.first -= removed;
    }

    /// Same as [`BusyTimeline::take`], if the request overlaps or touches other intervals or starts
    /// before the near ones. `next` is the first interval that ends after `from`.
    #[inline(never)]
    fn take_between(&mut self, mut next: usize, from: Nanos, length: Nanos) -> Nanos {
        if next == self.first + 1 {
            next = self.ends[..next].partition_point(|end| *end <= from);
        }
        let mut start = from;
        while self.starts[next] < start + length {
            start = self.ends[next];
            next += 1;
        }
        self.insert(next, start, start + length);
        start
    }

    /// Inserts an interval before the interval at `next`. Merges it with neighbours that it
    /// touches.
    fn insert(&mut self, next: usize, start: Nanos, end: Nanos) {
        let (before, after, free) = (self.ends[next - 1], self.starts[next], self.end());
        assert!(before <= start, "an interval overlaps its predecessor");
        assert!(end <= after, "an interval overlaps its successor");
        match (before == start, after == end) {
            (true, true) => {
                self.ends[next - 1] = self.ends[next];
                for times in [&mut self.starts, &mut self.ends] {
                    times.copy_within(next + 1..free + 1, next);
                }
                self.first -= 1;
            }
            (true, false) => self.ends[next - 1] = end,
            (false, true) => self.starts[next] = start,
            (false, false) => {
                for (times, time) in [(&mut self.starts, start), (&mut self.ends, end)] {
                    times.copy_within(next..free, next + 1);
                    times[next] = time;
                }
                self.first += 1;
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
        let mut timeline = BusyTimeline::default();
        assert_eq!(timeline.take(0, 100, 10), 100);
        assert_eq!(timeline.take(0, 115, 10), 115);
        assert_eq!(timeline.take(0, 100, 6), 125, "the gap of 5 is too short");
        assert_eq!(timeline.take(0, 100, 5), 110);
        assert_eq!(timeline.take(0, 0, 100), 0);
        let last = timeline.end() - 1;
        assert_eq!((timeline.starts[last], timeline.ends[last]), (0, 131));
        assert_eq!(timeline.end(), NEAR + 1);
    }

    #[test]
    fn it_agrees_with_looking_at_every_nanosecond() {
        for seed in 0..200 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut timeline = BusyTimeline::default();
            let mut taken = vec![false; 4000];
            let mut now = 0;
            for _ in 0..100 {
                now += random.random_range(0..8);
                let (from, length) = (now + random.random_range(0..60), random.random_range(1..20));
                let free = |start: &u64| (*start..start + length).all(|at| !taken[index(narrow(at))]);
                let expected = (from..).find(free).expect("time does not end");
                assert_eq!(timeline.take(now, from, length), expected, "seed {seed}");
                taken[index(narrow(expected))..index(narrow(expected + length))].fill(true);
                let known = 0..timeline.end();
                let (starts, ends) = (&timeline.starts, &timeline.ends);
                assert!(known.is_sorted_by(|one, next| ends[*one] < starts[*next] || ends[*one] == PAST));
                let free_entries = starts[timeline.end()..].iter().chain(&ends[timeline.end()..]);
                assert!(free_entries.into_iter().all(|time| *time == FREE), "seed {seed}");
            }
        }
    }
}
