//! One drive of an array: the I/O that the array sends to it, as the workload of a run of its own.
//!
//! ```text
//! FillWrites, workload -> StripeWrites -> Array -> member I/O -> that of one drive
//! ```
//!
//! Without virtual time and events, the I/O of a drive does not depend on the drives. So each drive
//! can run alone, and has the same counters as in the run of the whole array.

use std::collections::VecDeque;

use array::{Array, ArraySettings, MemberIo};
use workload::random::mix;
use workload::{IoRequest, RequestOperation, RequestSource, WorkloadError};

use super::array_writes::{FillWrites, StripeWrites};

/// Requests of the host that are translated at once.
const BATCH_REQUESTS: usize = 1024;

/// Seed of a drive of an array. The first one has the seed of the run, others have seeds derived from
/// it.
pub(super) fn drive_seed(seed: u64, drive: u64) -> u64 {
    if drive == 0 { seed } else { mix(seed ^ mix(drive)) }
}

/// Translates requests to an array, and keeps the I/O of one drive. Reads change nothing without
/// time, and are left out.
struct Member {
    drive: u16,
    array: Array,
    stripes: StripeWrites,
    ready: Vec<IoRequest>,
    ios: Vec<MemberIo>,
    requests: VecDeque<IoRequest>,
}

impl Member {
    fn submit(&mut self, request: &IoRequest) {
        self.stripes.submit(request, &self.array, &mut self.ready);
        self.translate();
    }

    fn flush(&mut self) {
        self.stripes.flush(&mut self.ready);
        self.translate();
    }

    fn translate(&mut self) {
        for request in self.ready.drain(..) {
            self.ios.clear();
            self.array.translate(&request, &mut self.ios);
            let own = self.ios.iter().filter(|io| io.drive == self.drive && io.operation != RequestOperation::Read);
            self.requests.extend(own.map(MemberIo::request));
        }
    }
}

pub(super) struct MemberFill {
    writes: FillWrites,
    member: Member,
    is_flushed: bool,
}

impl MemberFill {
    /// Creates the fill of `drive` in an array of drives of `member_bytes` with `placement_count`
    /// placement indices.
    pub(super) fn new(
        settings: &ArraySettings,
        drive: u16,
        (member_bytes, placement_count): (u64, u16),
        drive_writes: f64,
    ) -> Result<MemberFill, String> {
        assert!(drive < settings.drives, "the drive is one of the array");
        let array = Array::new(settings, member_bytes, placement_count)?;
        let writes = FillWrites::new(array.capacity_bytes(), drive_writes);
        let (ready, ios, requests) = Default::default();
        let member = Member { drive, array, stripes: StripeWrites::default(), ready, ios, requests };
        Ok(MemberFill { writes, member, is_flushed: false })
    }
}

impl Iterator for MemberFill {
    type Item = IoRequest;

    fn next(&mut self) -> Option<IoRequest> {
        while self.member.requests.is_empty() && !self.is_flushed {
            match self.writes.next() {
                Some(write) => self.member.submit(&write),
                None => {
                    self.member.flush();
                    self.is_flushed = true;
                }
            }
        }
        self.member.requests.pop_front()
    }
}

pub(super) struct MemberSource {
    source: Box<dyn RequestSource>,
    fill: MemberFill,
    is_filled: bool,
    batch: Vec<IoRequest>,
    /// Bytes that the host has written to the array, and those that it writes at least.
    written: u64,
    write_bytes: Option<u64>,
    is_over: bool,
}

impl MemberSource {
    /// Creates the source after the fill. `write_bytes` are those of the host. `None`: the workload
    /// ends by itself.
    pub(super) fn new(
        source: Box<dyn RequestSource>,
        fill: MemberFill,
        write_bytes: impl FnOnce(u64) -> Option<u64>,
    ) -> MemberSource {
        let write_bytes = write_bytes(fill.member.array.capacity_bytes());
        MemberSource { source, fill, is_filled: false, batch: Vec::new(), written: 0, write_bytes, is_over: false }
    }

    fn is_enough(&self) -> bool {
        self.write_bytes.is_some_and(|bytes| self.written >= bytes)
    }

    /// Translates the next requests of the host.
    fn advance(&mut self) -> Result<(), WorkloadError> {
        if !self.is_filled {
            // The drive has these writes already. A plan that is only checked does not get here.
            self.fill.by_ref().for_each(drop);
            self.is_filled = true;
        }
        self.batch.clear();
        let came = self.source.next_batch(&mut self.batch, BATCH_REQUESTS)?;
        for index in 0..came {
            if self.is_enough() {
                break;
            }
            let request = self.batch[index];
            if request.operation == RequestOperation::Write {
                self.written += u64::from(request.bytes);
            }
            self.fill.member.submit(&request);
        }
        if came == 0 || self.is_enough() {
            self.fill.member.flush();
            self.is_over = true;
        }
        Ok(())
    }
}

impl RequestSource for MemberSource {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        while self.fill.member.requests.is_empty() && !self.is_over {
            self.advance()?;
        }
        let count = limit.min(self.fill.member.requests.len());
        requests.extend(self.fill.member.requests.drain(..count));
        Ok(count)
    }

    fn streams(&self) -> Vec<String> {
        self.source.streams()
    }

    fn share_done(&self) -> Option<f64> {
        match self.write_bytes {
            Some(bytes) => Some((self.written as f64 / bytes.max(1) as f64).min(1.0)),
            None => self.source.share_done(),
        }
    }
}
