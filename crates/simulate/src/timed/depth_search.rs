//! The deepest queue at which a job keeps a latency (`latency_target`), found as fio finds it.
//!
//! Depths are tried one after another, each for a window: doubled until one is too deep, then halved between the deepest good one and
//! the shallowest bad one. When a window changes nothing any more, what is in flight completes, measurement begins anew, and the depth is
//! held for one more window (`io_u.c`: `lat_target_check` and what it calls). A depth is too deep when fewer requests than the given
//! percentage kept the latency; at 100 percent, with the first one that did not.
//!
//! It submits nothing and knows time only from what it is told.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssd::Nanos;
use workload::fio::LatencyGoal;

/// Windows at one depth below the shallowest bad one, after which that one is tried again.
const STABLE_WINDOWS: u32 = 3;

/// What follows from a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing for the job.
    Continue,
    /// The last window begins: only what comes is measured.
    Measure,
    /// The last window is over.
    Done,
    /// Even alone a request took longer, by its latency.
    Failed(Nanos),
}

/// A search on its way.
#[derive(Debug)]
pub(super) struct DepthSearch {
    goal: LatencyGoal,
    /// `iodepth`
    most: u64,
    depth: u64,
    /// Shallowest depth that was too deep, and deepest that was not.
    high: u64,
    low: u64,
    stable: u32,
    window_from: Nanos,
    requests: u64,
    late: u64,
    /// What is in flight completes before the next window begins.
    draining: bool,
    found: bool,
    /// What still completes does not matter.
    over: bool,
    /// When what is in flight completes, and its latency.
    in_flight: BinaryHeap<Reverse<(Nanos, Nanos)>>,
}

impl DepthSearch {
    /// Up to `iodepth`.
    pub(super) fn new(goal: LatencyGoal, most: u64) -> DepthSearch {
        assert!(goal.target_us > 0 && most > 0, "a search has a goal and a depth");
        DepthSearch {
            goal,
            most,
            depth: 1,
            high: most,
            low: 1,
            stable: 0,
            window_from: 0,
            requests: 0,
            late: 0,
            draining: false,
            found: false,
            over: false,
            in_flight: BinaryHeap::new(),
        }
    }

    /// Requests that may be in flight now.
    pub(super) fn depth(&self) -> u64 {
        self.depth
    }

    /// `latency_target`, microseconds.
    pub(super) fn target_us(&self) -> u64 {
        self.goal.target_us
    }

    /// Whether the depth is the one that was searched for.
    pub(super) fn has_found(&self) -> bool {
        self.found
    }

    /// Whether nothing is submitted until nothing is in flight.
    pub(super) fn is_draining(&self) -> bool {
        self.draining
    }

    /// The job begins.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.window_from = now;
    }

    /// A request was submitted that completes then.
    pub(super) fn submitted(&mut self, completes_at: Nanos, latency_ns: Nanos) {
        assert!(!self.draining, "nothing is submitted before the window begins");
        self.in_flight.push(Reverse((completes_at, latency_ns)));
    }

    /// A request completes.
    pub(super) fn completed(&mut self, now: Nanos) -> Step {
        let Reverse((completes_at, latency_ns)) = self.in_flight.pop().expect("it was submitted");
        assert_eq!(completes_at, now, "requests complete in their order");
        if self.over {
            return Step::Continue;
        }
        let step = self.judge(now, latency_ns);
        self.over = matches!(step, Step::Done | Step::Failed(_));
        step
    }

    fn judge(&mut self, now: Nanos, latency_ns: Nanos) -> Step {
        if self.draining {
            if !self.in_flight.is_empty() {
                return Step::Continue;
            }
            self.draining = false;
            self.new_window(now);
            return if self.found { Step::Measure } else { Step::Continue };
        }
        self.requests += 1;
        if latency_ns > self.goal.target_us * 1000 {
            self.late += 1;
            if self.goal.percent >= 100.0 {
                return self.too_deep(now, latency_ns);
            }
        }
        if now - self.window_from < self.goal.window_us * 1000 {
            return Step::Continue;
        }
        let kept = (self.requests - self.late) as f64 / self.requests as f64 * 100.0;
        if kept >= self.goal.percent {
            self.deep_enough(now)
        } else if self.depth > 1 {
            self.too_deep(now, latency_ns)
        } else {
            Step::Continue
        }
    }

    fn too_deep(&mut self, now: Nanos, latency_ns: Nanos) -> Step {
        if self.depth == 1 {
            return Step::Failed(latency_ns);
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u64::midpoint(self.depth, self.low).max(1);
        self.stable = 0;
        self.drain(now)
    }

    fn deep_enough(&mut self, now: Nanos) -> Step {
        let before = self.depth;
        self.low = self.depth;
        if self.depth + 1 == self.high {
            // The depth does not grow any more: the next one is given another chance now and then.
            self.stable += 1;
            if self.stable == STABLE_WINDOWS {
                self.high += 1;
                self.stable = 0;
            }
        }
        let next = if self.high == self.most {
            self.depth * 2
        } else {
            u64::midpoint(self.depth, self.high)
        };
        self.depth = next.min(self.most);
        if self.goal.goes_on || self.depth != before {
            self.new_window(now);
            return Step::Continue;
        }
        if std::mem::replace(&mut self.found, true) {
            return Step::Done;
        }
        match self.drain(now) {
            Step::Continue if !self.draining => Step::Measure,
            step => step,
        }
    }

    /// Lets what is in flight complete before the next window.
    fn drain(&mut self, now: Nanos) -> Step {
        self.draining = !self.in_flight.is_empty();
        self.new_window(now);
        Step::Continue
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

    const GOAL: LatencyGoal = LatencyGoal {
        target_us: 100,
        window_us: 1000,
        percent: 100.0,
        goes_on: false,
    };

    /// A drive whose latency is `us_per_slot` for each request in flight; returns the depths that were tried and the last step.
    fn search(goal: LatencyGoal, most: u64, us_per_slot: u64, windows: usize) -> (Vec<u64>, Step) {
        let mut search = DepthSearch::new(goal, most);
        let (mut now, mut depths) = (0, vec![1]);
        loop {
            let depth = search.depth();
            let latency_ns = depth * us_per_slot * 1000;
            for _ in 0..depth {
                search.submitted(now + latency_ns, latency_ns);
            }
            now += latency_ns;
            for _ in 0..depth {
                let step = search.completed(now);
                if step == Step::Done || matches!(step, Step::Failed(_)) {
                    return (depths, step);
                }
            }
            if search.depth() != depth {
                depths.push(search.depth());
            }
            if depths.len() == windows || now > 1_000_000_000 {
                return (depths, Step::Continue);
            }
        }
    }

    #[test]
    fn the_deepest_queue_that_keeps_the_latency_is_found() {
        // 9 us for each request in flight: 11 keep 100 us, 12 do not.
        let (depths, step) = search(GOAL, 64, 9, usize::MAX);
        assert_eq!(depths, [1, 2, 4, 8, 16, 12, 10, 11]);
        assert_eq!(step, Step::Done);
        // Never too deep: the search ends at the queue's own depth.
        let (depths, step) = search(GOAL, 8, 1, usize::MAX);
        assert_eq!((depths, step), (vec![1, 2, 4, 8], Step::Done));
        let (_, step) = search(GOAL, 64, 101, usize::MAX);
        assert_eq!(step, Step::Failed(101_000));
    }

    #[test]
    fn a_share_of_late_requests_may_be_allowed_and_the_search_may_go_on() {
        let lenient = LatencyGoal { percent: 0.0, ..GOAL };
        let (depths, step) = search(lenient, 16, 90, usize::MAX);
        assert_eq!((depths, step), (vec![1, 2, 4, 8, 16], Step::Done));
        // It tries the next depth again after three good windows, for ever.
        let restless = LatencyGoal { goes_on: true, ..GOAL };
        let (depths, step) = search(restless, 64, 9, 14);
        assert_eq!(depths[..8], [1, 2, 4, 8, 16, 12, 10, 11]);
        assert!(depths[8..].iter().all(|depth| (11..=12).contains(depth)), "{depths:?}");
        assert_eq!(step, Step::Continue);
    }
}
