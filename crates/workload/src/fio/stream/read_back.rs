//! Reading back what was written (`verify`), as the reads that it causes.
//!
//! fio keeps a list of what a pass has written and reads it back when the pass is over (`backend.c`: `do_verify`), or some of it in
//! between (`io_u.c`: `check_get_verify`, with `verify_backlog`). The list is in the order of the writes, or, where writes may overlap,
//! sorted by address without what was overwritten (`iolog.c`: `log_io_piece`). A pass without overlaps needs no list: its writes are
//! those of a copy of the stream, made when the pass began.
//!
//! Nothing is compared, because there is no data.

use std::collections::{BTreeMap, VecDeque};

use super::JobStream;
use crate::Operation;
use crate::fio::plan::{Plan, ReadBackPlan};

/// Offset in the region, and bytes.
pub(super) type Piece = (u64, u64);

/// What a pass has written and not read back.
#[derive(Debug, Clone)]
enum Written {
    /// As the stream was when the pass began; none before the first.
    Again(Option<Box<JobStream>>),
    /// In the order of the writes; holds at most about as many as `verify_backlog` says.
    InOrder(VecDeque<Piece>),
    /// By address; what was overwritten, if only in part, is not in it. Holds at most as many as the region has blocks.
    ByAddress(BTreeMap<u64, u64>),
}

/// What is read back, and when.
#[derive(Debug, Clone)]
pub(super) struct ReadBack {
    plan: ReadBackPlan,
    written: Written,
    /// Pieces that are read before the next request of the pass.
    batch: u64,
    /// The pass is over: everything is read back.
    ending: bool,
    last_was_read: bool,
}

impl ReadBack {
    pub(super) fn new(plan: &Plan) -> Option<Box<ReadBack>> {
        let plan = plan.read_back?;
        Some(Box::new(ReadBack {
            plan,
            written: match plan {
                ReadBackPlan { sorted: true, .. } => Written::ByAddress(BTreeMap::new()),
                ReadBackPlan { backlog: Some(_), .. } => Written::InOrder(VecDeque::new()),
                _ => Written::Again(None),
            },
            batch: 0,
            ending: false,
            last_was_read: false,
        }))
    }

    /// Whether it must be told of every request.
    pub(super) fn takes_notes(&self) -> bool {
        !matches!(self.written, Written::Again(_))
    }

    /// A pass begins, of this stream.
    pub(super) fn begin_pass(&mut self, stream: &JobStream) {
        assert!(stream.read_back.is_none(), "a copy reads nothing back itself");
        self.ending = false;
        match &mut self.written {
            Written::Again(copy) => *copy = Some(Box::new(stream.clone())),
            Written::InOrder(pieces) => pieces.clear(),
            Written::ByAddress(pieces) => pieces.clear(),
        }
    }

    /// The pass is over; false if it was so before.
    pub(super) fn end_pass(&mut self) -> bool {
        !std::mem::replace(&mut self.ending, true)
    }

    /// The pass has issued this.
    pub(super) fn note(&mut self, operation: Operation, (offset, bytes): Piece) {
        self.last_was_read = operation == Operation::Read;
        if operation != Operation::Write {
            return;
        }
        match &mut self.written {
            Written::Again(_) => {}
            Written::InOrder(pieces) => pieces.push_back((offset, bytes)),
            Written::ByAddress(pieces) => {
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

    /// What is read back next: of a batch before a pass goes on, or of all that is left when it is over.
    pub(super) fn next(&mut self, pass_goes_on: bool) -> Option<Piece> {
        assert!(!(self.ending && pass_goes_on), "a pass that is over does not go on");
        let may_read = self.ending || pass_goes_on && self.is_due();
        if !may_read {
            return None;
        }
        let piece = self.take()?;
        assert!(piece.1 > 0, "a piece without bytes is read back");
        if !self.ending {
            self.batch -= 1;
        }
        self.last_was_read = true;
        Some(piece)
    }

    /// Whether a batch is due or not yet complete.
    fn is_due(&mut self) -> bool {
        let Some((every, batch)) = self.plan.backlog else {
            return false;
        };
        let count = match &self.written {
            Written::Again(_) => 0,
            Written::InOrder(pieces) => pieces.len() as u64,
            Written::ByAddress(pieces) => pieces.len() as u64,
        };
        if count > 0 && self.batch == 0 && count % every == 0 && !self.last_was_read {
            self.batch = batch;
        }
        count > 0 && self.batch > 0
    }

    fn take(&mut self) -> Option<Piece> {
        match &mut self.written {
            Written::Again(copy) => copy.as_mut()?.next_write_of_pass(),
            Written::InOrder(pieces) => pieces.pop_front(),
            Written::ByAddress(pieces) => pieces.pop_first(),
        }
    }
}
