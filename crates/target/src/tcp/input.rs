//! The bytes that came from the host and were not looked at yet.

use super::pdu::LOOKED_AT_BYTES_MAX;

/// Room for a batch of small writes with their data.
const BUFFER_BYTES: usize = 256 << 10;
/// Less room is not worth a read.
const ROOM_BYTES: usize = 8 << 10;
const _: () = assert!(BUFFER_BYTES >= ROOM_BYTES + LOOKED_AT_BYTES_MAX && ROOM_BYTES >= LOOKED_AT_BYTES_MAX);

/// See the module.
pub struct Input {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    pub fn new() -> Input {
        Input {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    /// What is there.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Room for more, at least for the rest of what is looked at as a whole.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end || self.buffer.len() - self.end < ROOM_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes of the space were filled.
    pub fn fill(&mut self, bytes: usize) {
        self.end += bytes;
        assert!(self.end <= self.buffer.len(), "no more than the space");
    }

    /// So many bytes were looked at.
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        assert!(self.start <= self.end, "no more than there is");
    }
}
