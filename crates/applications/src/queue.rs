//! Requests that a model has made and nobody has taken.

use workload::Request;

/// First in, first out; the memory is used again when it is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestQueue {
    requests: Vec<Request>,
    /// The first that nobody has taken.
    taken: usize,
}

impl RequestQueue {
    pub(crate) fn push(&mut self, request: Request) {
        self.requests.push(request);
    }

    /// A request of so many bytes, in pieces that are no larger than `piece_bytes`.
    pub(crate) fn push_pieces(&mut self, whole: Request, bytes: u64, piece_bytes: u64) {
        let mut done = 0;
        while done < bytes {
            let piece = piece_bytes.min(bytes - done);
            self.push(Request {
                offset_bytes: whole.offset_bytes + done,
                bytes: piece as u32,
                ..whole
            });
            done += piece;
        }
    }

    /// Requests that are ready to be taken.
    pub(crate) fn ready(&self) -> usize {
        self.requests.len() - self.taken
    }

    /// Moves up to `limit` requests out; returns how many.
    pub(crate) fn take(&mut self, requests: &mut Vec<Request>, limit: usize) -> usize {
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
