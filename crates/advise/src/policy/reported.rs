//! The policy of Kang & Shin: after each reading, whoever was reported moves on.

use super::{Move, Policy, Reason, View, blamed_bytes};

/// Every owner that an event names where it is now moves to the next placement identifier (section III: the outliers on
/// handle 0 "are reassigned to RUH 1 immediately"). The handles have to be in the order of lifetimes, shortest first; data of the last
/// one has nowhere to go.
pub struct Reported;

impl Policy for Reported {
    fn name(&self) -> &'static str {
        "reported"
    }

    fn decide(&mut self, view: &View<'_>) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::new();
        for &(owner, found_with) in view.named {
            let Some(from) = view.placements[owner].filter(|placement| Some(*placement) == found_with) else {
                continue; // Data from before it was moved, or mixed by an earlier collection.
            };
            if from + 1 < view.identifiers && !moves.iter().any(|made| made.owner == owner) {
                moves.push(Move {
                    owner,
                    from,
                    to: from + 1,
                    reason: Reason::Reported,
                    expected_saving_bytes: blamed_bytes(view, owner),
                });
            }
        }
        moves
    }
}
