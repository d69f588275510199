//! A policy that separates owners by lifetime and reverts moves that do not help.
//!
//! Data that is still valid when its reclaim unit is collected outlives its neighbours. If all
//! owners of a placement identifier had the same lifetimes, events would name them in proportion to
//! their bytes. An owner that is (almost) never named despite its size has shorter lifetimes than
//! the named ones. This holds for any choice of the block that a drive reports, because few moved
//! blocks belong to a short-lived owner.
//!
//! The policy moves the short-lived owners or the others, whichever takes fewer moves. It handles
//! all reported owners in one step. So it also finds small files on a drive whose events name the
//! longest run, which is rarely in a small file. Owners that share an identifier only with similar
//! owners stay there, even if much of their data is copied. The policy assumes no order of the
//! identifiers.

use std::collections::{BTreeMap, BTreeSet};

use super::{MovePolicy, MoveReason, OwnerMove, PolicyInput, attributed_bytes};

/// Copied bytes per byte of the host below which no move can gain.
const NEGLIGIBLE_COST: f64 = 0.005;
/// An owner is short-lived if it has less than this share of the events expected from its bytes.
const SHORT_LIVED: f64 = 0.1;
/// Minimum of expected events for a statement about an owner's lifetime.
const EXPECTED_EVENTS_MIN: f64 = 5.0;
/// Growth of the cost since the reading before, above which the cost is not steady. While the drive
/// fills up, the cost rises without a move, and a trial would attribute this to its move.
const STEADY_GROWTH: f64 = 1.03;
/// Readings until a move is judged. Older data first has to be overwritten or collected.
const PATIENCE_READINGS: u32 = 4;
/// The trial succeeds early if the cost falls below this share of the earlier cost.
const HELPED_FOR_SURE: f64 = 0.75;
/// At the end of a trial the mean cost must be below this share of the earlier cost, or the moves
/// are undone.
const HELPED: f64 = 0.98;

#[derive(Default)]
pub struct LifetimesPolicy {
    /// Costs of the last two readings, newest last.
    costs: Vec<f64>,
    /// Destination of earlier moves from an identifier. Later moves for the same reason follow.
    destinations: BTreeMap<u16, u16>,
    trial: Option<MoveTrial>,
    /// Moves that did not help, as owner and destination.
    failed: BTreeSet<(usize, u16)>,
}

/// Moves whose effect is not yet known.
struct MoveTrial {
    moves: Vec<OwnerMove>,
    cost_before: f64,
    readings: u32,
}

enum TrialState {
    Open,
    Helped,
    Failed,
}

impl MovePolicy for LifetimesPolicy {
    fn decide(&mut self, input: &PolicyInput<'_>) -> Vec<OwnerMove> {
        let Some(cost) = input.cost() else {
            return Vec::new();
        };
        let before = self.costs.last().copied();
        self.costs.push(cost);
        self.costs.drain(..self.costs.len().saturating_sub(2));
        self.drop_unexecuted_moves(input);
        if let Some(mut trial) = self.trial.take() {
            match trial.judge(cost, self.mean_cost()) {
                TrialState::Open => {
                    self.trial = Some(trial);
                    return Vec::new();
                }
                TrialState::Failed => return self.undo(&trial),
                TrialState::Helped => {}
            }
        }
        let is_steady = before.is_some_and(|before| cost <= before * STEADY_GROWTH);
        if cost < NEGLIGIBLE_COST || !is_steady {
            return Vec::new();
        }
        let moves = self.separate(input);
        if !moves.is_empty() {
            self.trial = Some(MoveTrial { moves: moves.clone(), cost_before: self.mean_cost(), readings: 0 });
        }
        moves
    }
}

impl MoveTrial {
    fn judge(&mut self, cost: f64, mean_cost: f64) -> TrialState {
        self.readings += 1;
        if cost < self.cost_before * HELPED_FOR_SURE {
            return TrialState::Helped;
        }
        if self.readings < PATIENCE_READINGS {
            TrialState::Open
        } else if mean_cost < self.cost_before * HELPED {
            TrialState::Helped
        } else {
            TrialState::Failed
        }
    }
}

impl LifetimesPolicy {
    /// Drops moves that the host did not execute from the trial. They have no effect to wait for,
    /// and the policy advises them again.
    fn drop_unexecuted_moves(&mut self, input: &PolicyInput<'_>) {
        let Some(trial) = &mut self.trial else { return };
        let is_done = |step: &OwnerMove| input.placements[step.owner] == Some(step.to);
        for step in trial.moves.iter().filter(|step| !is_done(step)) {
            self.destinations.retain(|from, to| (*from, *to) != (step.from, step.to));
        }
        trial.moves.retain(is_done);
        if trial.moves.is_empty() {
            self.trial = None;
        }
    }

    fn mean_cost(&self) -> f64 {
        self.costs.iter().sum::<f64>() / self.costs.len().max(1) as f64
    }

    fn undo(&mut self, trial: &MoveTrial) -> Vec<OwnerMove> {
        let back = |step: &OwnerMove| OwnerMove {
            from: step.to,
            to: step.from,
            reason: MoveReason::Undo,
            expected_saving_bytes: 0,
            ..*step
        };
        for step in &trial.moves {
            self.failed.insert((step.owner, step.to));
            self.destinations.retain(|from, to| (*from, *to) != (step.from, step.to));
        }
        trial.moves.iter().map(back).collect()
    }

    /// Moves for the identifier with the most copied bytes that can be separated. Later readings
    /// handle the other identifiers.
    fn separate(&mut self, input: &PolicyInput<'_>) -> Vec<OwnerMove> {
        let copied = |placement: u16| -> u64 {
            let rows = input.evidence.rows().filter(|row| row.placement == placement);
            rows.map(|row| row.moved_bytes).sum::<f64>() as u64
        };
        let mut placements: Vec<u16> = (0..input.identifiers).filter(|placement| copied(*placement) > 0).collect();
        placements.sort_by_key(|placement| std::cmp::Reverse(copied(*placement)));
        let moves = placements.into_iter().map(|placement| self.split(input, placement));
        moves.into_iter().find(|moves| !moves.is_empty()).unwrap_or_default()
    }

    /// Separates the short-lived owners of an identifier from the others, if it has both kinds.
    fn split(&mut self, input: &PolicyInput<'_>, from: u16) -> Vec<OwnerMove> {
        let members: Vec<usize> =
            (0..input.placements.len()).filter(|owner| input.placements[*owner] == Some(from)).collect();
        let bytes = |owner: &usize| input.owners.owners()[*owner].bytes() as f64;
        let named = |owner: &usize| input.evidence.row(*owner, from).map_or(0.0, |row| row.events);
        let all_bytes: f64 = members.iter().map(bytes).sum();
        let all_named: f64 = members.iter().map(named).sum();
        let is_short_lived = |owner: &usize| {
            let expected = all_named * bytes(owner) / all_bytes;
            expected >= EXPECTED_EVENTS_MIN && named(owner) < SHORT_LIVED * expected
        };
        let (short_lived, others): (Vec<usize>, Vec<usize>) = members.iter().copied().partition(is_short_lived);
        let (leaving, to, reason) = match self.destination(input, from, short_lived, others) {
            Some(found) => found,
            None => return Vec::new(),
        };
        let moves: Vec<OwnerMove> = leaving
            .into_iter()
            .filter(|owner| !self.failed.contains(&(*owner, to)))
            .map(|owner| OwnerMove { owner, from, to, reason, expected_saving_bytes: attributed_bytes(input, owner) })
            .collect();
        if !moves.is_empty() {
            self.destinations.insert(from, to);
        }
        moves
    }

    /// Owners that leave, and their destination. The short-lived owners leave if they are not more
    /// numerous. Their next writes are then separate immediately, whereas the others' old data
    /// first has to be collected.
    fn destination(
        &self,
        input: &PolicyInput<'_>,
        from: u16,
        short_lived: Vec<usize>,
        others: Vec<usize>,
    ) -> Option<(Vec<usize>, u16, MoveReason)> {
        if short_lived.is_empty() || others.is_empty() {
            return None;
        }
        let free = (0..input.identifiers).find(|placement| !input.is_used(*placement));
        match (free, self.destinations.get(&from)) {
            (Some(free), _) if short_lived.len() <= others.len() => Some((short_lived, free, MoveReason::Split)),
            (_, Some(destination)) => Some((others, *destination, MoveReason::Merge)),
            (Some(free), None) => Some((others, free, MoveReason::Split)),
            (None, None) => Some((others, self.least_copied(input, from)?, MoveReason::Merge)),
        }
    }

    /// The other identifier with the fewest events. Its own data is rarely copied, so long-lived
    /// data does least harm there.
    fn least_copied(&self, input: &PolicyInput<'_>, from: u16) -> Option<u16> {
        let events = |placement: u16| (input.evidence.events_of(placement) * 1e6) as u64;
        (0..input.identifiers)
            .filter(|placement| *placement != from)
            .min_by_key(|placement| (events(*placement), *placement))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Scene;
    use super::*;

    fn short(moves: &[OwnerMove]) -> Vec<(usize, u16, u16, MoveReason)> {
        let short = |step: &OwnerMove| (step.owner, step.from, step.to, step.reason);
        moves.iter().map(short).collect()
    }

    fn mixed() -> Scene {
        Scene::new(4, &[("hot", 100, 0), ("big", 50, 0), ("small", 50, 0), ("cold", 100, 1)])
    }

    /// Feeds two readings with the same events and a steady cost.
    fn twice(scene: &mut Scene, policy: &mut LifetimesPolicy, events: &[(&str, u16, u32)]) -> Vec<OwnerMove> {
        assert_eq!(scene.read(policy, events, 0.5), [], "the first cost has nothing to be compared with");
        scene.read(policy, events, 0.5)
    }

    #[test]
    fn who_is_never_named_leaves_if_that_takes_fewer_moves() {
        let (mut scene, mut policy) = (mixed(), LifetimesPolicy::default());
        let moves = twice(&mut scene, &mut policy, &[("big", 0, 30), ("small", 0, 10)]);
        assert_eq!(short(&moves), [(0, 0, 2, MoveReason::Split)]);
    }

    #[test]
    fn owners_that_live_alike_stay_together() {
        let (mut scene, mut policy) = (mixed(), LifetimesPolicy::default());
        let moves = twice(&mut scene, &mut policy, &[("hot", 0, 30), ("big", 0, 15), ("small", 0, 12)]);
        assert_eq!(moves, []);
    }

    #[test]
    fn a_cost_that_is_small_or_still_grows_moves_nobody() {
        let (mut scene, mut policy) = (mixed(), LifetimesPolicy::default());
        for cost in [0.001, 0.002, 0.1, 0.2, 0.4] {
            assert_eq!(scene.read(&mut policy, &[("big", 0, 30)], cost), []);
        }
    }

    #[test]
    fn a_move_that_does_not_help_is_undone_and_not_made_again() {
        let (mut scene, mut policy) = (mixed(), LifetimesPolicy::default());
        let events = [("big", 0, 30), ("small", 0, 10)];
        assert_eq!(twice(&mut scene, &mut policy, &events).len(), 1);
        for _ in 1..PATIENCE_READINGS {
            assert_eq!(scene.read(&mut policy, &events, 0.5), []);
        }
        assert_eq!(short(&scene.read(&mut policy, &events, 0.5)), [(0, 2, 0, MoveReason::Undo)]);
        for _ in 0..10 {
            assert_eq!(scene.read(&mut policy, &events, 0.5), []);
        }
    }

    #[test]
    fn a_move_that_helps_is_kept() {
        let (mut scene, mut policy) = (mixed(), LifetimesPolicy::default());
        let events = [("big", 0, 30), ("small", 0, 10)];
        assert_eq!(twice(&mut scene, &mut policy, &events).len(), 1);
        for cost in [0.4, 0.3, 0.1, 0.004, 0.0, 0.0, 0.0, 0.0] {
            assert_eq!(scene.read(&mut policy, &[], cost), []);
        }
        assert_eq!(scene.placement("hot"), 2);
    }

    #[test]
    fn advice_that_nobody_follows_is_given_again() {
        let (mut scene, mut policy) = (mixed(), LifetimesPolicy::default());
        let events = [("big", 0, 30), ("small", 0, 10)];
        let first = twice(&mut scene, &mut policy, &events);
        for _ in 0..2 * PATIENCE_READINGS {
            scene.put_back("hot", 0);
            assert_eq!(short(&scene.read(&mut policy, &events, 0.5)), short(&first));
        }
    }

    #[test]
    fn without_a_free_identifier_the_long_lived_join_who_is_quiet() {
        let mut scene = Scene::new(2, &[("hot", 100, 0), ("big", 100, 0), ("cold", 100, 1)]);
        let moves = twice(&mut scene, &mut LifetimesPolicy::default(), &[("big", 0, 30)]);
        assert_eq!(short(&moves), [(1, 0, 1, MoveReason::Merge)]);
    }
}
