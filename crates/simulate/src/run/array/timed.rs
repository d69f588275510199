//! Requests of an array in virtual time: a closed loop with a fixed number of requests in flight.
//!
//! A request is complete when all its phases are. A phase begins when the one before is complete.
//! The software of the array takes no time, and requests for the same stripe do not wait for each
//! other. Rebuilds and scrubs run beside the workload, a number of stripes at a time. An event
//! waits for the end of the rebuild before it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use array::{ArrayEvent, MemberIo};
use ssd::{CompletionTime, Nanos};
use workload::IoRequest;

use super::super::array_result::RebuildResult;
use super::super::plan::RunPlan;
use super::drives::ArrayDrives;
use crate::timed::result::TimedResult;
use crate::timed::state_recorder::StateRecorder;

/// States of an array, which are the jobs of its latencies.
const STATES: [&str; 3] = ["normal", "degraded", "resync"];

/// A request in flight, or a row of a rebuild.
struct Flight {
    /// I/O in the order of phases.
    ios: Vec<MemberIo>,
    /// First I/O that is not submitted.
    next: usize,
    begun_at: Nanos,
    waited_ns: Nanos,
    /// The request and the state at its submission. `None`: a row of a rebuild.
    request: Option<(IoRequest, usize)>,
}

/// Rebuild or scrub in progress.
pub(super) struct Resync {
    result: RebuildResult,
    /// The new drive. `None`: a scrub.
    rebuilt: Option<u16>,
    next_row: u64,
    in_flight: u32,
    begun_at: Nanos,
}

/// Requests in virtual time. See the module.
pub(super) struct TimedLoop {
    recorder: StateRecorder,
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    /// Ends of phases: time, number of the submission, flight.
    ends: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    submissions: u64,
    now: Nanos,
    depth: u64,
    in_flight: u64,
    pub(super) resync: Option<Resync>,
    resync_depth: u32,
}

impl TimedLoop {
    pub(super) fn new(plan: &RunPlan) -> TimedLoop {
        let run = &plan.cell().run;
        let jobs = plan.cell().workload.jobs().filter(|_| run.queue_depth.is_none());
        let of_jobs = jobs.map(|file| file.jobs.iter().map(|job| job.iodepth * u64::from(job.numjobs)).sum());
        let depth = of_jobs.unwrap_or_else(|| u64::from(run.depth()));
        TimedLoop {
            recorder: StateRecorder::new(&STATES, depth),
            flights: Vec::new(),
            free: Vec::new(),
            ends: BinaryHeap::new(),
            submissions: 0,
            now: 0,
            depth,
            in_flight: 0,
            resync: None,
            resync_depth: plan.cell().array.as_ref().map_or(1, |array| array.resync_depth),
        }
    }

    /// Returns true if another request may be submitted.
    pub(super) fn has_room(&self) -> bool {
        self.in_flight < self.depth
    }

    /// Starts the rebuild or scrub of an event.
    pub(super) fn begin_event(
        &mut self,
        event: ArrayEvent,
        rebuilt: Option<u16>,
        host_bytes: u64,
        drives: &mut ArrayDrives<'_>,
    ) {
        if rebuilt.is_none() && event.action != array::ArrayAction::Scrub {
            return;
        }
        let event = event.into();
        let result = RebuildResult { event, host_bytes, bytes_read: 0, bytes_written: 0, duration_ns: None };
        self.resync = Some(Resync { result, rebuilt, next_row: 0, in_flight: 0, begun_at: self.now });
        self.submit_rows(drives);
    }

    /// Submits rows of the rebuild up to its depth.
    fn submit_rows(&mut self, drives: &mut ArrayDrives<'_>) {
        while let Some(resync) = &mut self.resync
            && resync.in_flight < self.resync_depth
            && resync.next_row < drives.array.rows()
        {
            let mut ios = Vec::new();
            drives.resync_row(resync.rebuilt, resync.next_row, &mut ios);
            resync.next_row += 1;
            resync.in_flight += 1;
            resync.result.count(&ios);
            self.begin(ios, None, drives);
        }
    }

    /// Submits a request of the workload.
    pub(super) fn submit(&mut self, request: &IoRequest, ios: &[MemberIo], drives: &mut ArrayDrives<'_>) {
        assert!(self.has_room(), "more requests in flight than the depth");
        let state = match (&self.resync, drives.array.is_whole()) {
            (Some(_), _) => 2,
            (None, false) => 1,
            (None, true) => 0,
        };
        self.in_flight += 1;
        let mut ios = ios.to_vec();
        ios.sort_by_key(|io| io.phase);
        self.begin(ios, Some((*request, state)), drives);
    }

    fn begin(&mut self, ios: Vec<MemberIo>, request: Option<(IoRequest, usize)>, drives: &mut ArrayDrives<'_>) {
        let flight = Flight { ios, next: 0, begun_at: self.now, waited_ns: 0, request };
        let index = self.free.pop().unwrap_or(self.flights.len());
        if index == self.flights.len() {
            self.flights.push(None);
        }
        self.flights[index] = Some(flight);
        self.submit_phase(index, drives);
    }

    /// Submits the next phase of a flight. A flight without I/O ends at once.
    fn submit_phase(&mut self, index: usize, drives: &mut ArrayDrives<'_>) {
        let flight = self.flights[index].as_mut().expect("it is in flight");
        let phase = flight.ios.get(flight.next).map(|io| io.phase);
        let (mut end, mut waited_ns) = (self.now, 0);
        while let Some(io) = flight.ios.get(flight.next).filter(|io| Some(io.phase) == phase) {
            let done = drives.execute_at(self.now, io);
            assert!(done.at >= self.now, "an I/O is complete after its submission");
            (end, waited_ns) = (end.max(done.at), waited_ns.max(done.waited_for_collection_ns));
            flight.next += 1;
        }
        flight.waited_ns += waited_ns;
        self.ends.push(Reverse((end, self.submissions, index)));
        self.submissions += 1;
    }

    /// Advances to the next end of a phase. Returns false if nothing is in flight.
    pub(super) fn advance(&mut self, drives: &mut ArrayDrives<'_>, rebuilds: &mut Vec<RebuildResult>) -> bool {
        let Some(Reverse((at, _, index))) = self.ends.pop() else {
            assert!(self.in_flight == 0 && self.resync.is_none(), "an array ends with I/O in flight");
            return false;
        };
        assert!(at >= self.now, "time does not go back");
        self.now = at;
        if self.flights[index].as_ref().is_some_and(|flight| flight.next < flight.ios.len()) {
            self.submit_phase(index, drives);
            return true;
        }
        let flight = self.flights[index].take().expect("it is in flight");
        self.free.push(index);
        match flight.request {
            Some((request, state)) => {
                self.in_flight -= 1;
                let done = CompletionTime { at, waited_for_collection_ns: flight.waited_ns };
                self.recorder.record(state, &request, flight.begun_at, done);
            }
            None => {
                self.resync.as_mut().expect("it has a row in flight").in_flight -= 1;
                self.submit_rows(drives);
            }
        }
        for (at, pages_copied) in drives.take_collections() {
            self.recorder.collected(at, u64::from(pages_copied));
        }
        let is_done = |resync: &mut Resync| resync.in_flight == 0 && resync.next_row == drives.array.rows();
        if let Some(done) = self.resync.take_if(is_done) {
            rebuilds.push(RebuildResult { duration_ns: Some(self.now - done.begun_at), ..done.result });
        }
        true
    }

    pub(super) fn finish(mut self, drives: &mut ArrayDrives<'_>) -> TimedResult {
        for (at, pages_copied) in drives.take_collections() {
            self.recorder.collected(at, u64::from(pages_copied));
        }
        self.recorder.finish()
    }
}
