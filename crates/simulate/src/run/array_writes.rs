//! Requests on their way to an array: writes that fill it, and consecutive writes joined to stripes.

use std::collections::BTreeMap;

use array::Array;
use workload::{IoRequest, RequestOperation};

/// Length of a write that fills the array.
const FILL_BYTES: u64 = 1 << 20;

/// Writes over the capacity of an array in order, without directives.
pub(super) struct FillWrites {
    capacity_bytes: u64,
    offset_bytes: u64,
    left: u64,
}

impl FillWrites {
    pub(super) fn new(capacity_bytes: u64, drive_writes: f64) -> FillWrites {
        let bytes = (drive_writes * capacity_bytes as f64) as u64;
        FillWrites { capacity_bytes, offset_bytes: 0, left: bytes - bytes % array::PAGE_BYTES }
    }
}

impl Iterator for FillWrites {
    type Item = IoRequest;

    fn next(&mut self) -> Option<IoRequest> {
        let bytes = FILL_BYTES.min(self.capacity_bytes - self.offset_bytes).min(self.left);
        if bytes == 0 {
            return None;
        }
        let (operation, offset_bytes) = (RequestOperation::Write, self.offset_bytes);
        self.offset_bytes = (offset_bytes + bytes) % self.capacity_bytes;
        self.left -= bytes;
        Some(IoRequest { stream: 0, operation, offset_bytes, bytes: bytes as u32, placement: None })
    }
}

/// Joins consecutive writes of a stream, if the settings of the array say so. A write that does not
/// end its stripe waits for the next one of its stream.
#[derive(Default)]
pub(super) struct StripeWrites {
    /// Waiting write of each stream.
    pending: BTreeMap<u16, IoRequest>,
}

impl StripeWrites {
    /// Appends the requests that `array` receives after this one.
    pub(super) fn submit(&mut self, request: &IoRequest, array: &Array, ready: &mut Vec<IoRequest>) {
        if request.operation != RequestOperation::Write || !array.settings().coalesces() {
            if request.operation == RequestOperation::Trim {
                self.flush(ready);
            }
            ready.push(*request);
            return;
        }
        let stripe_bytes = array.stripe_bytes();
        let mut write = *request;
        if let Some(before) = self.pending.remove(&request.stream) {
            let continues = before.offset_bytes + u64::from(before.bytes) == request.offset_bytes
                && before.placement == request.placement;
            match before.bytes.checked_add(request.bytes).filter(|_| continues) {
                Some(bytes) => write = IoRequest { bytes, ..before },
                None => ready.push(before),
            }
        }
        let end = write.offset_bytes + u64::from(write.bytes);
        let whole_end = (end / stripe_bytes * stripe_bytes).max(write.offset_bytes);
        let whole = IoRequest { bytes: (whole_end - write.offset_bytes) as u32, ..write };
        if whole.bytes > 0 {
            ready.push(whole);
        }
        if end > whole_end {
            let rest = IoRequest { offset_bytes: whole_end, bytes: (end - whole_end) as u32, ..write };
            self.pending.insert(request.stream, rest);
        }
    }

    /// Appends the writes that wait for the rest of their stripes.
    pub(super) fn flush(&mut self, ready: &mut Vec<IoRequest>) {
        ready.extend(std::mem::take(&mut self.pending).into_values());
    }
}
