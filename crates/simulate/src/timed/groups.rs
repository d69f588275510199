//! Start, dependencies and end of the lanes of a run.

use super::Runner;
use super::job_instance::JobInstance;
use workload::fio::ExitScope;

impl Runner {
    /// Starts the jobs of the current group.
    pub(super) fn begin_group(&mut self) {
        self.running = self.lanes.iter().filter(|lane| lane.group == self.group).count();
        assert!(self.running > 0, "a group without a job would never end");
        self.begin_lanes();
    }

    /// Starts the lanes of the current group that have no unfinished dependency.
    fn begin_lanes(&mut self) {
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            let awaited = lane.waits_for.clone().into_iter().flatten();
            let may_begin = lane.group == self.group && !lane.begun && !lane.ended;
            if may_begin && awaited.into_iter().all(|other| self.lanes[usize::from(other)].ended) {
                let at = self.lanes[index].begin(self.now);
                self.wake(index as u32, at);
            }
        }
    }

    /// Applies `exitall` after the end of a job. The other lanes of its group end once their
    /// requests in flight complete.
    fn end_others(&mut self, what: ExitScope) {
        if what == ExitScope::All {
            self.groups = self.group + 1;
        }
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if lane.group != self.group || lane.ended {
                continue;
            }
            lane.terminate(self.now);
            if lane.begun {
                self.due_lanes.push(index as u32);
            } else {
                lane.ended = true;
                self.running -= 1;
            }
        }
    }

    /// Stops a lane. It ends after its last request in flight.
    #[cold]
    pub(super) fn end(&mut self, index: u32) {
        let lane = &mut self.lanes[index as usize];
        if lane.in_flight > 0 {
            return;
        }
        assert!(lane.begun && !lane.ended, "lane {index} ends, though it ended before or has not begun");
        lane.ended = true;
        if let Some(log) = &mut lane.log {
            log.ended(self.now.saturating_sub(lane.measured_from));
        }
        let has_flow = lane.flow.is_some();
        let ends_others = lane.ends_others;
        self.running -= 1;
        if has_flow {
            self.due_lanes.append(&mut self.held_back);
        }
        match ends_others {
            Some(what) => self.end_others(what),
            None => self.begin_lanes(),
        }
        let of_group = |lane: &&JobInstance| lane.group == self.group && !lane.ended;
        assert_eq!(
            self.running,
            self.lanes.iter().filter(of_group).count(),
            "the jobs that run are those that have not ended"
        );
        if self.running == 0 && self.group + 1 < self.groups && !self.stopped {
            self.group += 1;
            self.begin_group();
        }
    }

    /// Returns true if a lane exceeds its weighted share of the requests of its flow.
    #[inline(never)]
    pub(super) fn is_ahead(&self, index: u32) -> bool {
        let own = self.lanes[index as usize].flow.expect("it has a flow");
        let others = self.lanes.iter().filter(|lane| lane.group == self.group && !lane.ended);
        let shares = others.filter_map(|lane| lane.flow).filter(|share| share.id == own.id);
        let (requests, weights) = shares.fold((0_u128, 0_u128), |(requests, weights), share| {
            (requests + u128::from(share.requests), weights + u128::from(share.weight))
        });
        u128::from(own.requests) * weights > requests * u128::from(own.weight)
    }
}
