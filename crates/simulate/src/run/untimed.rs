//! The requests of a workload without time: taken from its source in batches, carried out in steps.

use workload::{Operation, Request, Source};

use super::drive::RunDrive;
use experiment::error::LabError;

/// Requests of a batch. A run samples and reads the drive's log between two batches.
pub(super) const BATCH_REQUESTS: usize = 1024;
/// Requests that are carried out together where another thread takes the next ones meanwhile.
pub(super) const AHEAD_REQUESTS: usize = 16 * BATCH_REQUESTS;

/// A workload whose requests are taken as fast as the device takes them.
pub(super) struct Untimed {
    pub(super) source: Box<dyn Source>,
    /// Requests taken from the source.
    pub(super) requests: Vec<Request>,
    /// Requests of those that are carried out.
    pub(super) done: usize,
    /// The requests after those, which another thread took meanwhile.
    coming: Vec<Request>,
    /// Bytes of the writes carried out.
    pub(super) written: u64,
    /// Requests taken from the source and from the sources before it.
    taken: u64,
    /// Of those, the requests that a new source has yet to give again.
    pub(super) behind: u64,
    /// Requests since one that writes.
    pub(super) since_write: usize,
}

/// A moment of a workload between two requests.
#[derive(Clone, Copy)]
pub(super) struct UntimedMoment {
    pub(super) written: u64,
    taken: u64,
    since_write: usize,
}

impl Untimed {
    pub(super) fn new(source: Box<dyn Source>) -> Untimed {
        Untimed {
            source,
            requests: Vec::with_capacity(BATCH_REQUESTS),
            done: 0,
            coming: Vec::new(),
            written: 0,
            taken: 0,
            behind: 0,
            since_write: 0,
        }
    }

    pub(super) fn moment(&self) -> UntimedMoment {
        UntimedMoment {
            written: self.written,
            taken: self.carried_out(),
            since_write: self.since_write,
        }
    }

    /// The workload at a moment. Steps pass over the requests of the new source that were carried out before.
    pub(super) fn at(moment: UntimedMoment, source: Box<dyn Source>) -> Untimed {
        Untimed {
            written: moment.written,
            taken: moment.taken,
            behind: moment.taken,
            since_write: moment.since_write,
            ..Untimed::new(source)
        }
    }

    /// Passes over some of the requests that were carried out before; returns how many.
    pub(super) fn pass_over(&mut self) -> Result<u64, LabError> {
        self.begin_batch();
        let ahead = self.behind.min(AHEAD_REQUESTS as u64) as usize;
        let came = self.source.next_batch(&mut self.requests, ahead)? as u64;
        assert!(came <= self.behind, "a source gives no more than it is asked for");
        self.requests.clear();
        let passed = match came {
            // Another workload may be shorter.
            0 => {
                self.taken -= self.behind;
                self.behind
            }
            came => came,
        };
        self.behind -= passed;
        Ok(passed)
    }

    /// Returns true if all requests that were taken from the source are carried out.
    pub(super) fn is_carried_out(&self) -> bool {
        self.done == self.requests.len()
    }

    /// Requests that were carried out.
    pub(super) fn carried_out(&self) -> u64 {
        self.taken - (self.requests.len() - self.done) as u64
    }

    /// End of the batch that is being carried out.
    pub(super) fn batch_end(&self) -> usize {
        let next = (self.done / BATCH_REQUESTS + 1) * BATCH_REQUESTS;
        next.min(self.requests.len())
    }

    /// Lets go of the requests of a batch.
    fn begin_batch(&mut self) {
        assert!(
            self.is_carried_out(),
            "requests are carried out before others are taken"
        );
        self.requests.clear();
        self.done = 0;
    }

    /// Takes up to so many requests from the source; returns how many came.
    pub(super) fn take(&mut self, ahead: usize) -> Result<usize, LabError> {
        assert_eq!(self.behind, 0, "requests that were carried out are not taken again");
        self.begin_batch();
        std::mem::swap(&mut self.requests, &mut self.coming);
        let came = match self.requests.len() {
            0 => self.source.next_batch(&mut self.requests, ahead)?,
            came => came,
        };
        assert_eq!(came, self.requests.len(), "a source counts what it gives");
        self.taken += came as u64;
        let writes = |request: &Request| request.operation == Operation::Write;
        self.since_write = match self.requests.iter().any(writes) {
            true => 0,
            false => self.since_write + came,
        };
        Ok(came)
    }

    /// Lets the drive carry out its writes, and takes the next requests meanwhile.
    pub(super) fn write_out_and_take(&mut self, drive: &mut RunDrive) -> Result<(), LabError> {
        let Untimed { source, coming, .. } = self;
        assert!(coming.is_empty(), "what was taken is carried out before more is");
        drive.write_out_beside(|| source.next_batch(coming, AHEAD_REQUESTS))?;
        Ok(())
    }
}
