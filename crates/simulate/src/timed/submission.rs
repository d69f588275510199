//! Submission of requests to the device and accounting of their latencies.

use ssd::{CompletionTime, Device};
use workload::{IoRequest, RequestOperation, TaggedRequest};

use super::latency_recorder::{RequestSample, SampleKey};
use super::measure::TimedRequest;
use super::{Runner, TimedEvent, TimedEventKind};
use crate::run_recorder::RunRecorder;

impl Runner {
    #[inline(always)]
    pub(super) fn submit(&mut self, index: u32, tagged: TaggedRequest, device: &mut Device<RunRecorder>) {
        let TaggedRequest { tag, request } = tagged;
        let done = self.execute(device, &request);
        let lane = &mut self.lanes[index as usize];
        assert!(lane.is_paced || lane.in_flight < lane.depth, "a lane has more requests in flight than its depth");
        lane.in_flight += 1;
        let measured = self.now >= lane.measured_from;
        let kind = if measured {
            self.measure(index, &request, done);
            TimedEventKind::Completion(tag)
        } else {
            TimedEventKind::UnmeasuredCompletion(tag)
        };
        self.turns.push(done.at, TimedEvent { lane: index, kind });
        if let Some(flow) = &mut self.lanes[index as usize].flow {
            flow.requests += 1;
            self.due_lanes.append(&mut self.held_back);
        }
        self.submitted += 1;
        if request.operation == RequestOperation::Write {
            self.has_written(request.bytes.into(), device);
        }
    }

    /// Updates state after writes, including new garbage collections.
    #[inline(always)]
    pub(super) fn has_written(&mut self, bytes: u64, device: &mut Device<RunRecorder>) {
        self.written += bytes;
        self.change += 1;
        self.stopped |= self.written >= self.write_limit;
        let recorder = device.sink_mut();
        for (at, pages_copied) in recorder.recent.drain(..) {
            assert!(
                at >= self.accounts.start,
                "a collection at {at} ns precedes the run, which began at {} ns",
                self.accounts.start
            );
            self.accounts.series.collected(at - self.accounts.start, u64::from(pages_copied));
        }
    }

    /// Accounts for a measured request.
    #[inline(always)]
    fn measure(&mut self, index: u32, request: &IoRequest, done: CompletionTime) {
        let lane = &mut self.lanes[index as usize];
        if !lane.is_fast_path {
            lane.in_flight_until(self.now, done, request);
        }
        self.account(index, request, done);
    }

    /// Like [`Runner::measure`], for a lane in the fast path or already updated.
    #[inline(always)]
    pub(super) fn account(&mut self, index: u32, request: &IoRequest, done: CompletionTime) {
        let latency_ns = done.at - self.now;
        let whose = SampleKey {
            lane: index,
            job: self.lanes[index as usize].job_of(request) as u32,
            operation: request.operation,
        };
        let measured = RequestSample {
            key: whose,
            bytes: request.bytes,
            completed_at: done.at,
            latency_ns,
            waited_ns: done.waited_for_collection_ns,
        };
        self.accounts.record(measured, &mut self.lanes);
        if let Some(log) = &mut self.request_log {
            log.record(TimedRequest {
                job: whose.job as usize,
                operation: request.operation,
                offset_bytes: request.offset_bytes,
                bytes: request.bytes,
                submitted_at: self.now - self.accounts.start,
                latency_ns,
                waited_ns: done.waited_for_collection_ns,
            });
        }
    }

    #[inline(always)]
    fn execute(&mut self, device: &mut Device<RunRecorder>, request: &IoRequest) -> CompletionTime {
        let done = match request.operation {
            RequestOperation::Read => return self.read(device, request),
            RequestOperation::Write => {
                let write = self.mapper.write(device, request);
                self.pages_named += u64::from(write.pages);
                device.write(self.now, &write)
            }
            RequestOperation::Trim => match self.mapper.whole_pages(request) {
                Some((first, pages)) => {
                    self.change += 1;
                    self.pages_named += u64::from(pages);
                    device.deallocate(self.now, first, pages)
                }
                None => Ok(device.command(self.now)),
            },
        };
        done.expect("requests are within the device")
    }

    #[inline(always)]
    pub(super) fn read(&mut self, device: &mut Device<RunRecorder>, request: &IoRequest) -> CompletionTime {
        let (first, pages) = self.mapper.extent(request);
        self.pages_read += u64::from(pages);
        self.pages_named += u64::from(pages);
        let done = device.read(self.now, first, pages);
        done.expect("requests are within the device")
    }
}
