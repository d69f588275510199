//! What dies and channels did lately, for whoever watches a device with timing.
//!
//! ```text
//! Die, Channel -> note -> the last pieces of each -> Device::activity
//! ```
//!
//! Nothing is kept unless somebody asks for it. It costs memory that is bounded, and changes no time. Of a channel it has what hosts
//! transfer; collection takes a share of a channel, not pieces of it.

use crate::ring::Ring;
use crate::types::Nanos;

/// What a die or a channel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A die senses, a channel brings, what a host reads.
    Read,
    /// A die programs, a channel takes there, what a host wrote.
    Program,
    /// Garbage collection: senses, programs and erases.
    Collection,
}

/// A time in which one thing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When it began.
    pub from: Nanos,
    /// When it ended.
    pub until: Nanos,
    /// What was done.
    pub work: Work,
}

/// The last pieces of a die or a channel, in the order in which they were decided: those of a channel need not rise in time.
#[derive(Clone, Debug)]
pub struct Activity {
    pieces: Ring<Piece>,
    most: usize,
}

impl Activity {
    /// Keeps the last `most` pieces.
    pub(super) fn new(most: usize) -> Activity {
        Activity {
            pieces: Ring::default(),
            most,
        }
    }

    /// Takes notice; work of the same kind that follows at once belongs to the piece before.
    pub(super) fn note(&mut self, from: Nanos, until: Nanos, work: Work) {
        assert!(from <= until, "a piece ends after it begins");
        match self.pieces.last_mut() {
            _ if from == until => {}
            Some(last) if last.until == from && last.work == work => last.until = until,
            _ => self.pieces.push(Piece { from, until, work }, self.most),
        }
    }

    /// The pieces, and how many there were before them.
    pub fn pieces(&self) -> &Ring<Piece> {
        &self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_goes_on_is_one_piece_and_the_oldest_go() {
        let mut activity = Activity::new(2);
        activity.note(0, 5, Work::Read);
        activity.note(5, 9, Work::Read);
        activity.note(9, 9, Work::Program);
        let piece = |from, until, work| Piece { from, until, work };
        assert_eq!(
            activity.pieces().iter().copied().collect::<Vec<_>>(),
            [piece(0, 9, Work::Read)]
        );
        activity.note(9, 12, Work::Collection);
        activity.note(20, 21, Work::Collection);
        let kept = [piece(9, 12, Work::Collection), piece(20, 21, Work::Collection)];
        assert_eq!(activity.pieces().iter().copied().collect::<Vec<_>>(), kept);
        assert_eq!(activity.pieces().overwritten(), 1);
    }
}
