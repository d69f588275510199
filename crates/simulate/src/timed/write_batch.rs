//! Batches of requests that directly follow completions, the fast path.
//!
//! ```text
//! writes   turns until the first of them can be complete -> writes, one for each -> device -> turns
//! reads    turn -> the next turn, if it comes before the read can be complete -> device -> turns
//! ```
//!
//! The device reports the earliest completion time of a request ([`Device::soonest_write`],
//! [`Device::soonest_read`]). All completions before it are already known. If each is followed by a
//! fast-path lane's next request, so are all submissions before it. A batch of these writes has the
//! same result as single writes, but common work runs once. Reads have little common work. Their
//! pages were looked up in a batch ([`Device::locate`]). Also, the next turn is fetched while a
//! read waits for its dies and channels.

use ssd::{CompletionTime, Device, Nanos, WriteRequest};
use workload::{IoRequest, RequestOperation};

use super::job_instance::JobInstance;
use super::{AdvanceLimit, Runner, TimedEvent, TimedEventKind};
use crate::run_recorder::RunRecorder;

const MOST: usize = 32;
/// Lanes above which the memory that each prefetched for its coming requests is evicted before they
/// are submitted.
const PREFETCHED_LANES_MAX: usize = 16;

/// A batch of writes. See the module.
#[derive(Default)]
pub(super) struct WriteBatch {
    /// Lanes and request indices. Requests stay in place, because a copy stalls the processor when
    /// read in different pieces than written.
    requests: Vec<(u32, usize)>,
    times: Vec<Nanos>,
    writes: Vec<WriteRequest>,
    done: Vec<CompletionTime>,
}

impl TimedEvent {
    /// Returns the operation of the next request if this turn only replaces a completed one in a
    /// fast-path lane. The completed request is measured.
    #[inline(always)]
    pub(super) fn is_followed_by(&self, at: Nanos, lanes: &[JobInstance]) -> Option<RequestOperation> {
        match self.kind {
            TimedEventKind::Completion(_) => lanes[self.lane as usize].next_fast_operation(at),
            _ => None,
        }
    }
}

impl Runner {
    /// Submits reads that follow this turn and later ones, until another event
    /// ([`TimedEvent::is_followed_by`]) or `until`. Before each read, takes the next turn if it
    /// precedes the read's completion. Both then overlap their cache misses.
    #[inline(never)]
    pub(super) fn read_on(
        &mut self,
        at: Nanos,
        turn: TimedEvent,
        device: &mut Device<RunRecorder>,
        until: AdvanceLimit,
    ) {
        let mut next = Some((at, turn));
        while let Some((at, turn)) = next {
            self.now = at;
            self.submitted += 1;
            let lane = &mut self.lanes[turn.lane as usize];
            lane.tally.completed(at);
            let index = lane.take_request_index();
            let soonest = device.soonest_read(at);
            next = None;
            if self.is_before(until) && soonest > at {
                let lanes = &self.lanes;
                let is_wanted = |at, turn: &TimedEvent| turn.is_followed_by(at, lanes) == Some(RequestOperation::Read);
                next = self.turns.pop_until(soonest - 1, is_wanted);
            }
            let lane = &self.lanes[turn.lane as usize];
            let request = *lane.request_at(index);
            let done = match lane.location(index, self.change) {
                Some(location) => {
                    self.pages_read += 1;
                    self.pages_named += 1;
                    device.read_located(at, self.mapper.first_unit(&request), location)
                }
                None => self.read(device, &request),
            };
            assert!(done.at >= soonest, "a read was complete before it could be");
            self.account(turn.lane, &request, done);
            let kind = TimedEventKind::Completion(0);
            self.turns.push(done.at, TimedEvent { lane: turn.lane, kind });
        }
    }

    /// Submits writes that follow this turn and later ones as a batch. The batch ends before one of
    /// them can complete, at another event ([`TimedEvent::is_followed_by`]) or at `until`.
    #[inline(never)]
    pub(super) fn write_together(
        &mut self,
        at: Nanos,
        turn: TimedEvent,
        device: &mut Device<RunRecorder>,
        until: AdvanceLimit,
    ) {
        let mut together = std::mem::take(&mut self.write_batch);
        let WriteBatch { requests, times, writes, done } = &mut together;
        let most = MOST.min(usize::try_from(until.submitted - self.submitted).unwrap_or(MOST));
        let bytes_most = until.written.min(self.write_limit) - self.written;
        let (mut next, mut soonest, mut bytes) = (Some((at, turn)), Nanos::MAX, 0);
        while let Some((at, turn)) = next {
            let lane = &mut self.lanes[turn.lane as usize];
            lane.tally.completed(at);
            let index = lane.take_request_index();
            let request = lane.request_at(index);
            requests.push((turn.lane, index));
            times.push(at);
            bytes += u64::from(request.bytes);
            let write = self.mapper.write(device, request);
            if self.lanes.len() > PREFETCHED_LANES_MAX {
                device.prefetch(std::iter::once(write.first));
            }
            self.pages_named += u64::from(write.pages);
            writes.push(write);
            soonest = soonest.min(device.soonest_write(at));
            if requests.len() == most || bytes >= bytes_most || self.pages_named >= until.pages_named {
                break;
            }
            let lanes = &self.lanes;
            let is_wanted = |at, turn: &TimedEvent| turn.is_followed_by(at, lanes) == Some(RequestOperation::Write);
            next = self.turns.pop_until(soonest.saturating_sub(1), is_wanted);
        }
        if self.lanes.len() > PREFETCHED_LANES_MAX {
            device.prefetch_overwritten(writes.iter().map(|write| write.first));
        }
        let written = device.write_at_times(times, writes, done);
        written.expect("requests are within the device");
        assert_eq!(done.len(), requests.len(), "each request completes");
        self.submitted += requests.len() as u64;
        for (((lane, index), at), done) in requests.drain(..).zip(times.drain(..)).zip(done.drain(..)) {
            assert!(done.at >= soonest, "a write was complete before it could be");
            self.now = at;
            let request: IoRequest = *self.lanes[lane as usize].request_at(index);
            self.account(lane, &request, done);
            let kind = TimedEventKind::Completion(0);
            self.turns.push(done.at, TimedEvent { lane, kind });
        }
        writes.clear();
        self.write_batch = together;
        self.has_written(bytes, device);
    }
}
