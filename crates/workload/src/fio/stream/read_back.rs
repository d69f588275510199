//! Read-back of written data (`verify`), as the reads that it causes.
//!
//! fio lists the writes of a pass and reads them back after the pass (`backend.c`: `do_verify`).
//! With `verify_backlog` it reads some of them in between (`io_u.c`: `check_get_verify`). The list
//! is in the order of the writes. If writes may overlap, it is sorted by address and overwritten
//! pieces are removed (`iolog.c`: `log_io_piece`). A pass without overlaps needs no list. A copy of
//! the stream, made when the pass began, repeats its writes.
//!
//! Read data is not compared, because the requests carry no data.

use std::collections::{BTreeMap, VecDeque};

use super::JobStream;
use crate::RequestOperation;
use crate::fio::plan::{JobPlan, ReadBackPlan};

/// Offset in the region, and bytes.
pub(super) type RegionPiece = (u64, u64);

/// Pieces that a pass has written and not yet read back.
#[derive(Debug, Clone)]
enum WrittenPieces {
    /// Copy of the stream at the start of the pass. None before the first.
    Again(Option<Box<JobStream>>),
    /// In the order of the writes. Holds about `verify_backlog` pieces at most.
    InOrder(VecDeque<RegionPiece>),
    /// By address, without pieces that were overwritten completely or in part. Holds at most one
    /// piece per block of the region.
    ByAddress(BTreeMap<u64, u64>),
}

#[derive(Debug, Clone)]
pub(super) struct ReadBack {
    plan: ReadBackPlan,
    written: WrittenPieces,
    /// Pieces to read before the next request of the pass.
    batch: u64,
    /// True if the pass is over and all pieces are read back.
    ending: bool,
    last_was_read: bool,
}

impl ReadBack {
    pub(super) fn new(plan: &JobPlan) -> Option<Box<ReadBack>> {
        let plan = plan.read_back?;
        assert!(
            plan.backlog.is_none_or(|(writes, batch)| writes > 0 && batch > 0),
            "a backlog of no writes is read back: {plan:?}"
        );
        Some(Box::new(ReadBack {
            plan,
            written: match plan {
                ReadBackPlan { sorted: true, .. } => WrittenPieces::ByAddress(BTreeMap::new()),
                ReadBackPlan { backlog: Some(_), .. } => WrittenPieces::InOrder(VecDeque::new()),
                _ => WrittenPieces::Again(None),
            },
            batch: 0,
            ending: false,
            last_was_read: false,
        }))
    }

    /// True if each request must be reported with `note`.
    pub(super) fn records_requests(&self) -> bool {
        !matches!(self.written, WrittenPieces::Again(_))
    }

    pub(super) fn begin_pass(&mut self, stream: &JobStream) {
        assert!(stream.read_back.is_none(), "a copy reads nothing back itself");
        self.ending = false;
        match &mut self.written {
            WrittenPieces::Again(copy) => *copy = Some(Box::new(stream.clone())),
            WrittenPieces::InOrder(pieces) => pieces.clear(),
            WrittenPieces::ByAddress(pieces) => pieces.clear(),
        }
    }

    /// Ends the pass. Returns false if the pass had already ended.
    pub(super) fn end_pass(&mut self) -> bool {
        !std::mem::replace(&mut self.ending, true)
    }

    pub(super) fn record_request(&mut self, operation: RequestOperation, (offset, bytes): RegionPiece) {
        self.last_was_read = operation == RequestOperation::Read;
        if operation != RequestOperation::Write {
            return;
        }
        assert!(bytes > 0, "a write at {offset} in the region has no bytes");
        match &mut self.written {
            WrittenPieces::Again(_) => {}
            WrittenPieces::InOrder(pieces) => pieces.push_back((offset, bytes)),
            WrittenPieces::ByAddress(pieces) => {
                let below = |pieces: &BTreeMap<u64, u64>| {
                    let last = pieces.range(..offset + bytes).next_back();
                    last.map(|(start, length)| (*start, *length))
                };
                while let Some((start, length)) = below(pieces)
                    && start + length > offset
                {
                    pieces.remove(&start);
                }
                pieces.insert(offset, bytes);
            }
        }
    }

    /// Returns the next piece to read back. Before a pass goes on, these are the pieces of a batch.
    /// After the pass, all remaining pieces follow.
    pub(super) fn next(&mut self, pass_goes_on: bool) -> Option<RegionPiece> {
        assert!(!(self.ending && pass_goes_on), "a pass that is over does not go on");
        let may_read = self.ending || pass_goes_on && self.is_due();
        if !may_read {
            return None;
        }
        let piece = self.next_piece()?;
        assert!(piece.1 > 0, "a piece without bytes is read back");
        if !self.ending {
            self.batch -= 1;
        }
        self.last_was_read = true;
        Some(piece)
    }

    /// True if a batch is due or incomplete.
    fn is_due(&mut self) -> bool {
        let Some((every, batch)) = self.plan.backlog else {
            return false;
        };
        let count = match &self.written {
            WrittenPieces::Again(_) => 0,
            WrittenPieces::InOrder(pieces) => pieces.len() as u64,
            WrittenPieces::ByAddress(pieces) => pieces.len() as u64,
        };
        if count > 0 && self.batch == 0 && count % every == 0 && !self.last_was_read {
            self.batch = batch;
        }
        count > 0 && self.batch > 0
    }

    fn next_piece(&mut self) -> Option<RegionPiece> {
        match &mut self.written {
            WrittenPieces::Again(copy) => copy.as_mut()?.next_write_of_pass(),
            WrittenPieces::InOrder(pieces) => pieces.pop_front(),
            WrittenPieces::ByAddress(pieces) => pieces.pop_first(),
        }
    }
}
