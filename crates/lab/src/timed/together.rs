//! Writes that follow completions at once, some of them given to the device together.
//!
//! ```text
//! turns until the first of them can be complete -> writes, one for each -> device -> turns
//! ```
//!
//! The device says when a write can be done at the earliest ([`Device::soonest_write`]). What completes before is known when it is
//! submitted, and so is, where each completion is followed by a plain lane's next write, what is submitted until then. To give all of
//! them to the device at once is the same as one after the other, but what is the same for all of them is done once.

use ssd::{Completion, Device, Nanos, Write};
use workload::Request;

use super::lane::Lane;
use super::{Runner, Turn, TurnKind};
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
    /// Whether this is that a measured request of a plain lane completes, and all that happens then is that the lane submits a write.
    #[inline(always)]
    pub(super) fn is_followed_by_write(&self, at: Nanos, lanes: &[Lane]) -> bool {
        matches!(self.kind, TurnKind::Completion(_)) && lanes[self.lane as usize].goes_on_with_write(at)
    }
}

impl Runner {
    /// Lets lanes submit the writes that follow this turn and those that happen until one of these writes can be complete
    /// ([`Turn::is_followed_by_write`]). It ends where `until` requests are submitted, or `host_bytes` written.
    #[inline(never)]
    pub(super) fn write_together(
        &mut self,
        at: Nanos,
        turn: Turn,
        device: &mut Device<Recorder>,
        until: u64,
        host_bytes: u64,
    ) {
        let mut together = std::mem::take(&mut self.together);
        let Together {
            requests,
            times,
            writes,
            done,
        } = &mut together;
        let most = MOST.min(usize::try_from(until - self.submitted).unwrap_or(MOST));
        let bytes_most = host_bytes.min(self.write_limit) - self.written;
        let (mut next, mut soonest, mut bytes) = (Some((at, turn)), Nanos::MAX, 0);
        while let Some((at, turn)) = next {
            let lane = &mut self.lanes[turn.lane as usize];
            lane.tally.completed(at);
            let index = lane.take_index();
            let request = lane.taken(index);
            requests.push((turn.lane, index));
            times.push(at);
            bytes += u64::from(request.bytes);
            writes.push(self.mapper.write(device, request));
            soonest = soonest.min(device.soonest_write(at));
            if requests.len() == most || bytes >= bytes_most {
                break;
            }
            let lanes = &self.lanes;
            let is_wanted = |at, turn: &Turn| turn.is_followed_by_write(at, lanes);
            next = self.turns.pop_until(soonest.saturating_sub(1), is_wanted);
        }
        let written = device.write_together(times, writes, done);
        written.expect("requests are within the device");
        assert_eq!(done.len(), requests.len(), "each request completes");
        self.submitted += requests.len() as u64;
        for (((lane, index), at), done) in requests.drain(..).zip(times.drain(..)).zip(done.drain(..)) {
            assert!(done.at >= soonest, "a write was complete before it could be");
            self.now = at;
            let request: Request = *self.lanes[lane as usize].taken(index);
            self.measure(lane, &request, done);
            let kind = TurnKind::Completion(0);
            self.turns.push(done.at, Turn { lane, kind });
        }
        writes.clear();
        self.together = together;
        self.has_written(bytes, device);
    }
}
