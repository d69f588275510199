//! The policy of Kang & Shin: the predominantly reported owner moves to the next identifier.

use std::collections::BTreeMap;

use super::{MovePolicy, MoveReason, OwnerMove, PolicyInput, attributed_bytes};

/// Minimum of new events of an identifier on which the policy acts. The paper looks at "dozens".
const EVENTS_MIN: u32 = 12;

/// Policy of Kang & Shin. An owner moves to the next placement identifier if it has more than half
/// of the new events of its identifier, and these are at least a dozen. Section III expects the
/// largest files to be "predominantly reported" and reassigns the outliers of RUH 0 "to RUH 1
/// immediately after the get_log_page command". The identifiers must be sorted by lifetime,
/// shortest first. Data of the last identifier stays there.
pub struct ReportedPolicy;

impl MovePolicy for ReportedPolicy {
    fn decide(&mut self, input: &PolicyInput<'_>) -> Vec<OwnerMove> {
        let mut events: BTreeMap<u16, BTreeMap<usize, u32>> = BTreeMap::new();
        for &(owner, found_with) in input.named {
            // Skips data from before its owner moved, and data that collection has mixed.
            if let Some(from) = input.placements[owner].filter(|placement| Some(*placement) == found_with) {
                *events.entry(from).or_default().entry(owner).or_default() += 1;
            }
        }
        let mut moves = Vec::new();
        for (from, owners) in events {
            let all: u32 = owners.values().sum();
            let predominant = owners.into_iter().find(|(_, count)| 2 * count > all && all >= EVENTS_MIN);
            let Some((owner, _)) = predominant.filter(|_| from + 1 < input.identifiers) else {
                continue;
            };
            moves.push(OwnerMove {
                owner,
                from,
                to: from + 1,
                reason: MoveReason::Reported,
                expected_saving_bytes: attributed_bytes(input, owner),
            });
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Scene;
    use super::*;

    #[test]
    fn the_predominant_owner_of_each_identifier_moves_to_the_next() {
        let mut scene = Scene::new(4, &[("hot", 100, 0), ("big", 100, 0), ("small", 100, 0), ("warm", 100, 1)]);
        let moves = scene.read(&mut ReportedPolicy, &[("big", 0, 9), ("small", 0, 4), ("warm", 1, 12)], 1.0);
        let short: Vec<_> = moves.iter().map(|step| (step.owner, step.from, step.to)).collect();
        assert_eq!(short, [(1, 0, 1), (3, 1, 2)]);
        // The events attribute the copied bytes in proportion to their number.
        assert_eq!(moves[0].expected_saving_bytes, 1_000_000 * 9 / 25);
    }

    #[test]
    fn too_few_events_a_tie_old_data_and_the_last_identifier_move_nobody() {
        let mut scene = Scene::new(2, &[("one", 100, 0), ("two", 100, 0), ("last", 100, 1)]);
        for events in [&[("one", 0, 11)][..], &[("one", 0, 12), ("two", 0, 12)], &[("one", 1, 30)], &[("last", 1, 30)]]
        {
            assert_eq!(scene.read(&mut ReportedPolicy, events, 1.0), [], "{events:?}");
        }
    }
}
