//! Search for the deepest queue at which a job meets a latency limit (`latency_target`), by fio's
//! algorithm.
//!
//! The search tries each depth for a window. It doubles the depth until it is too deep, then
//! bisects between the deepest good and the shallowest bad one. When a window brings no change,
//! requests in flight complete and measurement restarts. The depth then stays for one more window
//! (`io_u.c`: `lat_target_check` and its callees). A depth is too deep if fewer requests than the
//! given percentage met the limit. At 100 percent the first miss decides.
//!
//! The search submits no requests and has no clock. Its caller passes all times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssd::Nanos;
use workload::fio::LatencyGoal;

/// Windows at one less than the shallowest bad depth, after which that depth is tried again.
const STABLE_WINDOWS: u32 = 3;

/// Consequence of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DepthStep {
    /// No action.
    Continue,
    /// The last window begins. Measurement restarts.
    Measure,
    /// The last window is over.
    Done,
    /// A single request exceeds the limit, with this latency.
    Failed(Nanos),
}

#[derive(Default)]
pub(super) struct DepthSearch {
    pub(super) goal: LatencyGoal,
    /// Largest depth, the option `iodepth`.
    most: u64,
    /// Maximum requests in flight now.
    pub(super) depth: u64,
    /// Shallowest bad depth. `low`: deepest good one.
    high: u64,
    low: u64,
    stable: u32,
    window_from: Nanos,
    requests: u64,
    late: u64,
    /// Requests in flight must complete before the next window.
    pub(super) draining: bool,
    pub(super) found: bool,
    /// The search is over. Further completions are ignored.
    over: bool,
    /// Completion times and latencies of the requests in flight.
    in_flight: BinaryHeap<Reverse<(Nanos, Nanos)>>,
}

impl DepthSearch {
    /// Creates a search up to `most`, the `iodepth`.
    pub(super) fn new(goal: LatencyGoal, most: u64) -> DepthSearch {
        assert!(goal.target_us > 0 && most > 0, "a search has a goal and a depth");
        DepthSearch { goal, most, depth: 1, high: most, low: 1, ..DepthSearch::default() }
    }

    /// Begins the first window.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.window_from = now;
    }

    /// Records a submission with its completion time.
    pub(super) fn submitted(&mut self, completes_at: Nanos, latency_ns: Nanos) {
        assert!(!self.draining, "nothing is submitted before the window begins");
        self.in_flight.push(Reverse((completes_at, latency_ns)));
    }

    pub(super) fn completed(&mut self, now: Nanos) -> DepthStep {
        let Reverse((completes_at, latency_ns)) = self.in_flight.pop().expect("it was submitted");
        assert_eq!(completes_at, now, "requests complete in their order");
        if self.over {
            return DepthStep::Continue;
        }
        let step = self.judge(now, latency_ns);
        self.over = matches!(step, DepthStep::Done | DepthStep::Failed(_));
        step
    }

    fn judge(&mut self, now: Nanos, latency_ns: Nanos) -> DepthStep {
        if self.draining {
            if !self.in_flight.is_empty() {
                return DepthStep::Continue;
            }
            self.draining = false;
            self.new_window(now);
            return if self.found { DepthStep::Measure } else { DepthStep::Continue };
        }
        self.requests += 1;
        if latency_ns > self.goal.target_us * 1000 {
            self.late += 1;
            if self.goal.percent >= 100.0 {
                return self.too_deep(now, latency_ns);
            }
        }
        if now - self.window_from < self.goal.window_us * 1000 {
            return DepthStep::Continue;
        }
        let kept = (self.requests - self.late) as f64 / self.requests as f64 * 100.0;
        if kept >= self.goal.percent {
            self.deep_enough(now)
        } else if self.depth > 1 {
            self.too_deep(now, latency_ns)
        } else {
            DepthStep::Continue
        }
    }

    fn too_deep(&mut self, now: Nanos, latency_ns: Nanos) -> DepthStep {
        if self.depth == 1 {
            return DepthStep::Failed(latency_ns);
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u64::midpoint(self.depth, self.low).max(1);
        assert!(
            self.low <= self.depth && self.depth < self.high,
            "depth {} is tried between {} and {}",
            self.depth,
            self.low,
            self.high
        );
        self.stable = 0;
        self.drain(now)
    }

    fn deep_enough(&mut self, now: Nanos) -> DepthStep {
        let before = self.depth;
        self.low = self.depth;
        if self.depth + 1 == self.high {
            // The depth does not grow any more. Retry the next one from time to time.
            self.stable += 1;
            if self.stable == STABLE_WINDOWS {
                self.high += 1;
                self.stable = 0;
            }
        }
        let next = if self.high == self.most { self.depth * 2 } else { u64::midpoint(self.depth, self.high) };
        self.depth = next.min(self.most);
        assert!(
            (before..=self.most).contains(&self.depth),
            "depth {} follows {before}, at most {}",
            self.depth,
            self.most
        );
        if self.goal.goes_on || self.depth != before {
            self.new_window(now);
            return DepthStep::Continue;
        }
        if std::mem::replace(&mut self.found, true) {
            return DepthStep::Done;
        }
        match self.drain(now) {
            DepthStep::Continue if !self.draining => DepthStep::Measure,
            step => step,
        }
    }

    /// Drains the queue before the next window.
    fn drain(&mut self, now: Nanos) -> DepthStep {
        self.draining = !self.in_flight.is_empty();
        self.new_window(now);
        DepthStep::Continue
    }

    fn new_window(&mut self, now: Nanos) {
        self.window_from = now;
        self.requests = 0;
        self.late = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: LatencyGoal = LatencyGoal { target_us: 100, window_us: 1000, percent: 100.0, goes_on: false };

    /// Runs a search on a drive with latency `us_per_slot` per request in flight. Returns the tried
    /// depths and the last step.
    fn search(goal: LatencyGoal, most: u64, us_per_slot: u64, windows: usize) -> (Vec<u64>, DepthStep) {
        let mut search = DepthSearch::new(goal, most);
        let (mut now, mut depths) = (0, vec![1]);
        loop {
            let depth = search.depth;
            let latency_ns = depth * us_per_slot * 1000;
            for _ in 0..depth {
                search.submitted(now + latency_ns, latency_ns);
            }
            now += latency_ns;
            for _ in 0..depth {
                let step = search.completed(now);
                if step == DepthStep::Done || matches!(step, DepthStep::Failed(_)) {
                    return (depths, step);
                }
            }
            if search.depth != depth {
                depths.push(search.depth);
            }
            if depths.len() == windows || now > 1_000_000_000 {
                return (depths, DepthStep::Continue);
            }
        }
    }

    #[test]
    fn the_deepest_queue_that_keeps_the_latency_is_found() {
        // 9 us for each request in flight: 11 meet 100 us, 12 do not.
        let (depths, step) = search(GOAL, 64, 9, usize::MAX);
        assert_eq!(depths, [1, 2, 4, 8, 16, 12, 10, 11]);
        assert_eq!(step, DepthStep::Done);
        // Never too deep: the search ends at the queue's own depth.
        let (depths, step) = search(GOAL, 8, 1, usize::MAX);
        assert_eq!((depths, step), (vec![1, 2, 4, 8], DepthStep::Done));
        let (_, step) = search(GOAL, 64, 101, usize::MAX);
        assert_eq!(step, DepthStep::Failed(101_000));
    }

    #[test]
    fn a_share_of_late_requests_may_be_allowed_and_the_search_may_go_on() {
        let lenient = LatencyGoal { percent: 0.0, ..GOAL };
        let (depths, step) = search(lenient, 16, 90, usize::MAX);
        assert_eq!((depths, step), (vec![1, 2, 4, 8, 16], DepthStep::Done));
        // This search retries the next depth after three good windows, without end.
        let restless = LatencyGoal { goes_on: true, ..GOAL };
        let (depths, step) = search(restless, 64, 9, 14);
        assert_eq!(depths[..8], [1, 2, 4, 8, 16, 12, 10, 11]);
        assert!(depths[8..].iter().all(|depth| (11..=12).contains(depth)), "{depths:?}");
        assert_eq!(step, DepthStep::Continue);
    }
}
