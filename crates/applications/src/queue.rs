//! Queue of requests that a model has made and its caller has not yet taken.

use workload::{IoRequest, WorkloadError};

/// FIFO queue. It reuses its memory after it runs empty.
#[derive(Default)]
pub(crate) struct RequestQueue {
    requests: Vec<IoRequest>,
    /// Index of the first request in the queue.
    taken: usize,
    /// End of the operations, with its error until the caller gets it.
    end: Option<Result<(), WorkloadError>>,
}

/// A model that makes its requests operation by operation.
pub(crate) trait SteppedModel {
    fn queue(&mut self) -> &mut RequestQueue;

    /// Executes the next operation. Returns false at the end.
    fn step(&mut self) -> Result<bool, WorkloadError>;

    /// Executes operations until `limit` requests are ready, and moves these out. Requests in front
    /// of an error come before the error.
    fn run_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        while self.queue().ready() < limit && self.queue().end.is_none() {
            match self.step() {
                Ok(true) => {}
                end => self.queue().end = Some(end.map(|_| ())),
            }
        }
        let queue = self.queue();
        if let Some(end) = queue.end.as_mut().filter(|_| queue.requests.len() == queue.taken) {
            std::mem::replace(end, Ok(()))?;
        }
        Ok(queue.pop_batch(requests, limit))
    }
}

impl RequestQueue {
    pub(crate) fn push(&mut self, request: IoRequest) {
        self.requests.push(request);
    }

    /// Adds a request of `bytes` bytes, split into pieces of at most `piece_bytes`.
    pub(crate) fn push_pieces(&mut self, whole: IoRequest, bytes: u64, piece_bytes: u64) {
        let mut done = 0;
        while done < bytes {
            let piece = piece_bytes.min(bytes - done);
            self.push(IoRequest { offset_bytes: whole.offset_bytes + done, bytes: piece as u32, ..whole });
            done += piece;
        }
    }

    pub(crate) fn ready(&self) -> usize {
        self.requests.len() - self.taken
    }

    /// Moves up to `limit` requests out and returns their number.
    pub(crate) fn pop_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> usize {
        let count = self.ready().min(limit);
        requests.extend_from_slice(&self.requests[self.taken..self.taken + count]);
        self.taken += count;
        if self.taken == self.requests.len() {
            self.requests.clear();
            self.taken = 0;
        }
        count
    }
}
