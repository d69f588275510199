//! Workload loop without virtual time: takes requests in batches and executes them in steps.

use workload::{IoRequest, RequestOperation, RequestSource};

use super::drive::RunDrive;
use experiment::cell::RunSpec;
use experiment::error::LabError;

/// Requests per batch. A run samples and polls the event log between two batches.
pub(super) const BATCH_REQUESTS: usize = 1024;
/// Limit of consecutive requests without a write, some seconds of work. A run with a write target
/// then fails.
pub const UNWRITTEN_REQUESTS_MAX: usize = 1 << 24;
/// Requests per group when another thread prefetches the next group.
pub(super) const AHEAD_REQUESTS: usize = 16 * BATCH_REQUESTS;

/// A workload whose requests run as fast as the device takes them.
pub(super) struct UntimedStage {
    pub(super) source: Box<dyn RequestSource>,
    /// Requests taken from the source.
    pub(super) requests: Vec<IoRequest>,
    /// Executed requests among `requests`.
    pub(super) executed: usize,
    /// Next requests, prefetched by another thread.
    prefetched: Vec<IoRequest>,
    /// Bytes of the executed writes.
    pub(super) written: u64,
    /// Requests taken from this source and from its predecessors.
    taken: u64,
    /// Requests among `taken` that a new source must still repeat.
    pub(super) to_skip: u64,
    /// Requests since the last one that writes.
    pub(super) since_write: usize,
}

/// Progress of a workload between two requests.
#[derive(Clone, Copy)]
pub(super) struct UntimedPosition {
    pub(super) written: u64,
    taken: u64,
    since_write: usize,
}

impl UntimedStage {
    pub(super) fn new(source: Box<dyn RequestSource>) -> UntimedStage {
        UntimedStage {
            source,
            requests: Vec::with_capacity(BATCH_REQUESTS),
            executed: 0,
            prefetched: Vec::new(),
            written: 0,
            taken: 0,
            to_skip: 0,
            since_write: 0,
        }
    }

    pub(super) fn position(&self) -> UntimedPosition {
        UntimedPosition { written: self.written, taken: self.executed_requests(), since_write: self.since_write }
    }

    /// Restores a workload at a moment. Later steps skip the executed requests of the new source.
    pub(super) fn at(moment: UntimedPosition, source: Box<dyn RequestSource>) -> UntimedStage {
        UntimedStage {
            written: moment.written,
            taken: moment.taken,
            to_skip: moment.taken,
            since_write: moment.since_write,
            ..UntimedStage::new(source)
        }
    }

    /// Skips some of the requests executed before. Returns their number.
    pub(super) fn skip_executed(&mut self) -> Result<u64, LabError> {
        self.begin_batch();
        assert!(self.to_skip <= self.taken, "{} requests are skipped again of {} executed", self.to_skip, self.taken);
        let ahead = self.to_skip.min(AHEAD_REQUESTS as u64) as usize;
        let came = self.source.next_batch(&mut self.requests, ahead)? as u64;
        assert!(came <= self.to_skip, "a source gives no more than it is asked for");
        self.requests.clear();
        let passed = match came {
            // Another workload may be shorter.
            0 => {
                self.taken -= self.to_skip;
                self.to_skip
            }
            came => came,
        };
        self.to_skip -= passed;
        Ok(passed)
    }

    /// Returns true if every request taken from the source was executed.
    pub(super) fn is_carried_out(&self) -> bool {
        self.executed == self.requests.len()
    }

    pub(super) fn executed_requests(&self) -> u64 {
        self.taken - (self.requests.len() - self.executed) as u64
    }

    pub(super) fn batch_end(&self) -> usize {
        let next = (self.executed / BATCH_REQUESTS + 1) * BATCH_REQUESTS;
        next.min(self.requests.len())
    }

    /// Drops the executed requests.
    fn begin_batch(&mut self) {
        assert!(self.is_carried_out(), "requests are carried out before others are taken");
        self.requests.clear();
        self.executed = 0;
    }

    /// Takes up to `ahead` requests from the source. Returns their number.
    pub(super) fn fetch(&mut self, ahead: usize) -> Result<usize, LabError> {
        assert_eq!(self.to_skip, 0, "requests that were carried out are not taken again");
        self.begin_batch();
        std::mem::swap(&mut self.requests, &mut self.prefetched);
        let came = match self.requests.len() {
            0 => self.source.next_batch(&mut self.requests, ahead)?,
            came => came,
        };
        assert_eq!(came, self.requests.len(), "a source counts what it gives");
        assert!(came <= ahead, "a source gives {came} requests, and {ahead} are wanted");
        self.taken += came as u64;
        let writes = |request: &IoRequest| request.operation == RequestOperation::Write;
        self.since_write = match self.requests.iter().any(writes) {
            true => 0,
            false => self.since_write + came,
        };
        Ok(came)
    }

    /// Refuses a workload that would never reach the write target of its run.
    pub(super) fn check_writes(&self, cell: &RunSpec) -> Result<(), LabError> {
        if self.since_write > UNWRITTEN_REQUESTS_MAX && cell.run.drive_writes.is_some() {
            let problem = "the workload reads without writing, so it never reaches the total of --drive-writes. Leave \
                           --drive-writes out, or use a workload that writes";
            return Err(LabError::invalid(&cell.key.to_string(), problem));
        }
        Ok(())
    }

    /// Executes the drive's writes and prefetches the next requests in parallel.
    pub(super) fn write_out_and_take(&mut self, drive: &mut RunDrive) -> Result<(), LabError> {
        let UntimedStage { source, prefetched: coming, .. } = self;
        assert!(coming.is_empty(), "what was taken is carried out before more is");
        drive.write_out_beside(|| source.next_batch(coming, AHEAD_REQUESTS))?;
        Ok(())
    }
}
