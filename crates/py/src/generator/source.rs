//! A workload source that reads requests from a Python iterable.

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};
use workload::{
    IoRequest, NextCall, PacedHost, PlacementIndex, RequestOperation, RequestSource, TaggedRequest, WorkloadError,
    WorkloadTarget,
};

use super::block::{BlockError, BlockResult, Cause, FIELDS, FieldRow, RequestBlock, error_at, single};
use crate::policy::NO_PLACEMENT;

/// Requests converted during one hold of the interpreter's lock.
const REQUESTS_AT_ONCE: usize = 16 << 10;
/// Maximum number of successive blocks without a request.
const EMPTY_BLOCKS_MAX: usize = 1 << 16;
/// Maximum number of requests in flight, if requests have times.
const IN_FLIGHT_MAX: u16 = 1024;
/// Memory of a source, bytes. Single requests and a block of arrays may be buffered together, hence
/// the factor 2.
pub(super) const MEMORY_BYTES: u64 = 2 * REQUESTS_AT_ONCE as u64 * (size_of::<IoRequest>() + size_of::<u64>()) as u64;

/// Requests of a Python iterable.
pub(super) struct PythonSource {
    label: String,
    iterator: Py<PyIterator>,
    capacity_bytes: u64,
    placement_count: u16,
    is_endless: bool,
    /// A block of arrays with remaining requests.
    block: Option<RequestBlock>,
    /// Number of yielded blocks.
    blocks: u64,
    /// Buffered requests, their times if they have any, and the number already returned.
    ready: Vec<IoRequest>,
    times: Vec<u64>,
    given: usize,
    /// True if requests have times. `None` before the first request.
    has_times: Option<bool>,
    last_time: u64,
    /// Error of the first block, kept until a call can return it.
    failure: Option<WorkloadError>,
    /// True if the iterable has ended or failed.
    exhausted: bool,
    /// Free tags of requests in flight.
    tags: Vec<u16>,
}

impl PythonSource {
    pub(super) fn new(label: String, iterator: Py<PyIterator>, target: &WorkloadTarget) -> PythonSource {
        PythonSource {
            label,
            iterator,
            capacity_bytes: target.capacity_bytes(),
            placement_count: target.placement_count,
            is_endless: target.endless,
            block: None,
            blocks: 0,
            ready: Vec::new(),
            times: Vec::new(),
            given: 0,
            has_times: None,
            last_time: 0,
            failure: None,
            exhausted: false,
            tags: (0..IN_FLIGHT_MAX).rev().collect(),
        }
    }

    /// Refills the buffer. Returns false at the end of the iterable.
    fn refill(&mut self) -> Result<bool, WorkloadError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.ready.clear();
        self.times.clear();
        self.given = 0;
        if self.exhausted {
            return Ok(false);
        }
        let made = Python::attach(|py| self.fill_buffer(py));
        if let Err(BlockError { index, cause }) = made {
            self.ready.clear();
            self.exhausted = true;
            let index = index.map_or(String::new(), |index| format!(", index {index}"));
            let place = format!("workload {}, block {}{index}", self.label, self.blocks.saturating_sub(1));
            return Err(match cause {
                Cause::Problem(problem) => WorkloadError::at(place, problem),
                Cause::Raised(error) => raised(place, error),
            });
        }
        Ok(!self.ready.is_empty())
    }

    /// Reads blocks until the buffer is full or the iterable ends.
    fn fill_buffer(&mut self, py: Python<'_>) -> BlockResult<()> {
        let mut without_request = 0;
        while self.ready.len() < REQUESTS_AT_ONCE {
            if let Some(mut block) = self.block.take() {
                self.take_requests(py, &mut block)?;
                self.block = (block.taken < block.requests).then_some(block);
                continue;
            }
            let mut iterator = self.iterator.bind(py).clone();
            // Count first, so that an exception is reported at the block that it replaces.
            self.blocks += 1;
            let Some(block) = iterator.next() else {
                self.exhausted = true;
                return Ok(());
            };
            let block = block?;
            if let Ok(tuple) = block.cast::<PyTuple>()
                && let Some(request) = single(tuple)?
            {
                self.accept(&request, 0)?;
                without_request = 0;
                continue;
            }
            let block = RequestBlock::from_python(&block)?;
            without_request = if block.requests == 0 { without_request + 1 } else { 0 };
            if without_request > EMPTY_BLOCKS_MAX {
                let problem = format!(
                    "more than {EMPTY_BLOCKS_MAX} consecutive blocks have no request. End the generator instead"
                );
                return Err(problem.into());
            }
            self.block = Some(block);
        }
        Ok(())
    }

    /// Makes requests from the next part of a block.
    fn take_requests(&mut self, py: Python<'_>, block: &mut RequestBlock) -> BlockResult<()> {
        let count = (block.requests - block.taken).min(REQUESTS_AT_ONCE);
        let range = block.taken..block.taken + count;
        let rows: Vec<Option<FieldRow<'_>>> = block
            .fields
            .iter()
            .zip(FIELDS)
            .map(|(field, name)| field.as_ref().map(|field| field.rows(py, name, &range)).transpose())
            .collect::<BlockResult<_>>()?;
        let [operation, offset, bytes, placement, time] = <[Option<FieldRow<'_>>; FIELDS.len()]>::try_from(rows)
            .unwrap_or_else(|_| unreachable!("there are as many rows as fields"));
        let values = [&operation, &offset, &bytes].map(|row| row.as_ref().expect("every request has it").values());
        let [placement, time] = [&placement, &time].map(|row| row.as_ref().map(FieldRow::values));
        let [operation, offset, bytes] = values;
        for index in 0..count {
            let request = [
                Some(operation.at(index)),
                Some(offset.at(index)),
                Some(bytes.at(index)),
                placement.as_ref().map(|values| values.at(index)),
                time.as_ref().map(|values| values.at(index)),
            ];
            self.accept(&request, block.taken + index)?;
        }
        block.taken += count;
        Ok(())
    }

    /// Checks the fields of a request and adds it to the buffer.
    #[inline]
    fn accept(&mut self, fields: &[Option<i64>; FIELDS.len()], index: usize) -> BlockResult<()> {
        let [Some(operation), Some(offset), Some(bytes), placement, time] = *fields else {
            unreachable!("every request has an operation, an offset and a length");
        };
        let operation = match operation {
            0 => RequestOperation::Read,
            1 => RequestOperation::Write,
            2 => RequestOperation::Trim,
            other => {
                let problem = format!("operation {other} is unknown. Give 0 (read), 1 (write) or 2 (deallocate)");
                return Err(error_at(index, problem));
            }
        };
        let Some(length) = u32::try_from(bytes).ok().filter(|length| *length > 0) else {
            return Err(error_at(index, format!("bytes {bytes} is out of range. Give 1 to {}", u32::MAX)));
        };
        let is_inside = u64::try_from(offset)
            .is_ok_and(|offset| offset.checked_add(u64::from(length)).is_some_and(|end| end <= self.capacity_bytes));
        if !is_inside {
            let problem = format!(
                "offset {offset} with {bytes} bytes is beyond the {} bytes of the drive. Stay within \
                 target.capacity_bytes",
                self.capacity_bytes
            );
            return Err(error_at(index, problem));
        }
        let placement = match placement {
            Some(placement) if placement != i64::from(NO_PLACEMENT) => self.placement(placement, index)?,
            _ => None,
        };
        if *self.has_times.get_or_insert(time.is_some()) != time.is_some() {
            let (has, others) = if time.is_some() { ("has a time", "have none") } else { ("has no time", "have one") };
            let problem = format!("{has}, but earlier requests {others}. Give all requests a time, or none");
            return Err(error_at(index, problem));
        }
        if let Some(time) = time {
            let at = u64::try_from(time).ok().filter(|at| *at >= self.last_time);
            let at = at.ok_or_else(|| {
                let problem = format!(
                    "time {time} is before {}, the time of the previous request. Give nanoseconds in order",
                    self.last_time
                );
                error_at(index, problem)
            })?;
            self.last_time = at;
            self.times.push(at);
        }
        self.ready.push(IoRequest {
            stream: 0,
            operation,
            offset_bytes: offset as u64,
            bytes: length,
            placement: placement.filter(|_| operation == RequestOperation::Write),
        });
        Ok(())
    }

    /// Checks a placement index. `None` on a drive without FDP.
    #[inline]
    fn placement(&self, placement: i64, index: usize) -> BlockResult<Option<PlacementIndex>> {
        let count = self.placement_count;
        match u16::try_from(placement) {
            Ok(_) if count == 0 => Ok(None),
            Ok(placement) if placement < count => Ok(Some(PlacementIndex(placement))),
            _ => Err(error_at(
                index,
                format!(
                    "placement {placement} does not exist on the drive. Give 0 to {}, or NO_PLACEMENT",
                    count.saturating_sub(1)
                ),
            )),
        }
    }
}

impl RequestSource for PythonSource {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        let mut given = 0;
        while given < limit {
            if self.given == self.ready.len() && !self.refill()? {
                break;
            }
            let count = (self.ready.len() - self.given).min(limit - given);
            requests.extend_from_slice(&self.ready[self.given..self.given + count]);
            self.given += count;
            given += count;
        }
        Ok(given)
    }

    fn streams(&self) -> Vec<String> {
        vec![self.label.clone()]
    }

    fn share_done(&self) -> Option<f64> {
        (!self.is_endless).then_some(0.0)
    }

    fn paced(&mut self) -> Option<&mut dyn PacedHost> {
        if self.has_times.is_none() {
            self.failure = self.refill().err();
        }
        match self.has_times {
            Some(true) => Some(self),
            _ => None,
        }
    }
}

/// Requests at their own times form an open loop, within the limit of requests in flight.
impl PacedHost for PythonSource {
    fn poll_requests(&mut self, now_ns: u64, requests: &mut Vec<TaggedRequest>) -> Result<NextCall, WorkloadError> {
        loop {
            if self.given == self.ready.len() && !self.refill()? {
                let is_idle = self.tags.len() == usize::from(IN_FLIGHT_MAX);
                return Ok(if is_idle { NextCall::Never } else { NextCall::Completion });
            }
            let due_ns = self.times[self.given];
            if due_ns > now_ns {
                return Ok(NextCall::At(due_ns));
            }
            let Some(tag) = self.tags.pop() else {
                return Ok(NextCall::Completion);
            };
            let request = self.ready[self.given];
            self.given += 1;
            requests.push(TaggedRequest { tag, request });
        }
    }

    fn complete_request(&mut self, tag: u16) {
        self.tags.push(tag);
    }

    fn depth(&self) -> u64 {
        IN_FLIGHT_MAX.into()
    }
}

/// An error for a Python exception, with the place where it was raised.
pub(super) fn raised(place: String, error: PyErr) -> WorkloadError {
    WorkloadError::Generator { place, source: Box::new(error) }
}
