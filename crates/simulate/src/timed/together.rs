//! Requests that follow completions at once.
//!
//! ```text
//! writes   turns until the first of them can be complete -> writes, one for each -> device -> turns
//! reads    turn -> the next turn, if it comes before the read can be complete -> device -> turns
//! ```
//!
//! The device says when a request can be done at the earliest ([`Device::soonest_write`], [`Device::soonest_read`]). What completes
//! before is known when it is submitted, and so is, where each completion is followed by a plain lane's next request, what is submitted
//! until then. To give all writes of that time to the device at once is the same as one after the other, but what is the same for all
//! of them is done once. Reads have little that is the same; but where their pages are was found out for some dozens before
//! ([`Device::locate`]), and the next turn while one waits for its dies and channels.

use ssd::{Completion, Device, Nanos, Write};
use workload::{Operation, Request};

use super::lane::Lane;
use super::{Runner, Turn, TurnKind, Until};
use crate::recorder::Recorder;

/// Writes together at most.
const MOST: usize = 32;

/// See the module.
#[derive(Default)]
pub(super) struct Together {
    /// Lanes, and which of its requests each submits: they stay where they are, because a processor waits for what is read in
    /// other pieces than it was just written in.
    requests: Vec<(u32, usize)>,
    times: Vec<Nanos>,
    writes: Vec<Write>,
    done: Vec<Completion>,
}

impl Turn {
    /// What is submitted, if this is that a measured request of a plain lane completes, and all that happens then is that
    /// the lane submits another.
    #[inline(always)]
    pub(super) fn is_followed_by(&self, at: Nanos, lanes: &[Lane]) -> Option<Operation> {
        match self.kind {
            TurnKind::Completion(_) => lanes[self.lane as usize].goes_on_with(at),
            _ => None,
        }
    }
}

impl Runner {
    /// Lets lanes submit the reads that follow this turn and those after it, one after the other, until something else happens
    /// ([`Turn::is_followed_by`]) or `until` requests are submitted. The turn after a read is looked for before the read is carried
    /// out, if it comes before that can be complete: both take the time in which one waits for the other's memory.
    #[inline(never)]
    pub(super) fn read_on(&mut self, at: Nanos, turn: Turn, device: &mut Device<Recorder>, until: Until) {
        let mut next = Some((at, turn));
        while let Some((at, turn)) = next {
            self.now = at;
            self.submitted += 1;
            let lane = &mut self.lanes[turn.lane as usize];
            lane.tally.completed(at);
            let index = lane.take_index();
            let soonest = device.soonest_read(at);
            next = None;
            if self.is_before(until) && soonest > at {
                let lanes = &self.lanes;
                let is_wanted = |at, turn: &Turn| turn.is_followed_by(at, lanes) == Some(Operation::Read);
                next = self.turns.pop_until(soonest - 1, is_wanted);
            }
            let lane = &self.lanes[turn.lane as usize];
            let request = *lane.taken(index);
            let done = match lane.location(index, self.change) {
                Some(location) => {
                    self.pages_read += 1;
                    self.pages_named += 1;
                    device.read_located(at, self.mapper.first(&request), location)
                }
                None => self.read(device, &request),
            };
            assert!(done.at >= soonest, "a read was complete before it could be");
            self.account(turn.lane, &request, done);
            let kind = TurnKind::Completion(0);
            self.turns.push(done.at, Turn { lane: turn.lane, kind });
        }
    }

    /// Lets lanes submit the writes that follow this turn and those that happen until one of these writes can be complete
    /// ([`Turn::is_followed_by`]). It ends where it is as far as `until`.
    #[inline(never)]
    pub(super) fn write_together(&mut self, at: Nanos, turn: Turn, device: &mut Device<Recorder>, until: Until) {
        let mut together = std::mem::take(&mut self.together);
        let Together {
            requests,
            times,
            writes,
            done,
        } = &mut together;
        let most = MOST.min(usize::try_from(until.submitted - self.submitted).unwrap_or(MOST));
        let bytes_most = until.written.min(self.write_limit) - self.written;
        let (mut next, mut soonest, mut bytes) = (Some((at, turn)), Nanos::MAX, 0);
        while let Some((at, turn)) = next {
            let lane = &mut self.lanes[turn.lane as usize];
            lane.tally.completed(at);
            let index = lane.take_index();
            let request = lane.taken(index);
            requests.push((turn.lane, index));
            times.push(at);
            bytes += u64::from(request.bytes);
            let write = self.mapper.write(device, request);
            self.pages_named += u64::from(write.pages);
            writes.push(write);
            soonest = soonest.min(device.soonest_write(at));
            if requests.len() == most || bytes >= bytes_most || self.pages_named >= until.pages_named {
                break;
            }
            let lanes = &self.lanes;
            let is_wanted = |at, turn: &Turn| turn.is_followed_by(at, lanes) == Some(Operation::Write);
            next = self.turns.pop_until(soonest.saturating_sub(1), is_wanted);
        }
        let written = device.write_at_times(times, writes, done);
        written.expect("requests are within the device");
        assert_eq!(done.len(), requests.len(), "each request completes");
        self.submitted += requests.len() as u64;
        for (((lane, index), at), done) in requests.drain(..).zip(times.drain(..)).zip(done.drain(..)) {
            assert!(done.at >= soonest, "a write was complete before it could be");
            self.now = at;
            let request: Request = *self.lanes[lane as usize].taken(index);
            self.account(lane, &request, done);
            let kind = TurnKind::Completion(0);
            self.turns.push(done.at, Turn { lane, kind });
        }
        writes.clear();
        self.together = together;
        self.has_written(bytes, device);
    }
}
