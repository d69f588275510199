//! Buffer for bytes of the host that are not parsed yet.

use super::pdu::LOOKED_AT_BYTES_MAX;

/// Enough for a batch of small writes with their data.
const BUFFER_BYTES: usize = 256 << 10;
/// Less space than this is not worth a read.
const ROOM_BYTES: usize = 8 << 10;
const _: () = assert!(BUFFER_BYTES >= ROOM_BYTES + LOOKED_AT_BYTES_MAX && ROOM_BYTES >= LOOKED_AT_BYTES_MAX);

pub struct InputBuffer {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl InputBuffer {
    pub fn new() -> InputBuffer {
        InputBuffer { buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Space for more bytes, at least for the rest of the largest unit that is parsed as a whole.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end || self.buffer.len() - self.end < ROOM_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.buffer[self.end..]
    }

    /// Adds `bytes` that were written into the space.
    pub fn fill(&mut self, bytes: usize) {
        self.end += bytes;
        assert!(self.end <= self.buffer.len(), "no more than the space");
    }

    /// Removes `bytes` that were parsed.
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        assert!(self.start <= self.end, "no more than there is");
    }
}
