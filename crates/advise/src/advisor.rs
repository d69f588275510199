//! The advisor: consumes one reading after another and returns advice.

use serde::Serialize;

use crate::evidence::Evidence;
use crate::feed::{EventLoss, FreshEvents};
use crate::owners::OwnerMap;
use crate::policy::{MovePolicy, OwnerMove, PolicyInput};

/// Readings after which an event has half its weight. Recent readings stay valid for owners that
/// have not moved.
const HALF_LIFE_READINGS: f64 = 2.0;

/// Bytes of the FDP Statistics log page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WriteStatistics {
    pub host_bytes_written: u128,
    pub media_bytes_written: u128,
}

#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Number of the reading, from 1.
    pub reading: u32,
    pub events: usize,
    /// Events without a logical block. They have the number of moved bytes, but not the owner.
    pub events_without_block: usize,
    pub events_without_owner: usize,
    pub loss: EventLoss,
    pub host_bytes: u64,
    pub copied_bytes: u64,
    pub moves: Vec<OwnerMove>,
}

pub struct Advisor {
    owners: OwnerMap,
    placements: Vec<Option<u16>>,
    identifiers: u16,
    evidence: Evidence,
    policy: Box<dyn MovePolicy>,
    /// True if the host executes the moves, so that owners write with the advised identifier.
    carried_out: bool,
    last: WriteStatistics,
    readings: u32,
}

impl Advisor {
    /// Creates an advisor for a namespace with `identifiers` placement identifiers. `begin` has the
    /// counters at the start. With `carried_out`, owners follow the advice before the next reading.
    /// Without it, owners keep their identifiers, and the advisor repeats its advice.
    pub fn new(
        owners: OwnerMap,
        identifiers: u16,
        policy: Box<dyn MovePolicy>,
        carried_out: bool,
        begin: WriteStatistics,
    ) -> Advisor {
        Advisor {
            placements: owners.owners().iter().map(|owner| owner.placement).collect(),
            owners,
            identifiers,
            evidence: Evidence::new(HALF_LIFE_READINGS),
            policy,
            carried_out,
            last: begin,
            readings: 0,
        }
    }

    /// Sets the placement identifier of an owner, unless it is already known.
    pub fn set_placement(&mut self, owner: usize, placement: u16) {
        self.placements[owner].get_or_insert(placement);
    }

    /// Consumes a reading: the new Media Reallocated events of this namespace, and the present
    /// counters. [`crate::EventCursor`] separates new events from old ones.
    pub fn update(&mut self, fresh: FreshEvents, counters: WriteStatistics) -> Advice {
        self.readings += 1;
        let event_owners = self.evidence.add(&self.owners, &fresh.events);
        for (event, owner) in fresh.events.iter().zip(&event_owners) {
            // The event's identifier becomes the owner's, unless one is known.
            if let (Some(owner), Some(placement)) = (*owner, event.placement) {
                self.placements[owner].get_or_insert(placement);
            }
        }
        let without_block = fresh.events.iter().filter(|event| event.offset_bytes.is_none()).count();
        let owned: Vec<(usize, Option<u16>)> = event_owners
            .iter()
            .zip(&fresh.events)
            .filter_map(|(owner, event)| owner.map(|owner| (owner, event.placement)))
            .collect();
        let (host_bytes, mut copied_bytes) = self.count(counters);
        if self.readings == 1 {
            // Events from before the first counters may be in the log. Count their bytes at least.
            let moved_bytes: u64 = fresh.events.iter().filter_map(|event| event.moved_bytes).sum();
            copied_bytes = copied_bytes.max(moved_bytes);
        }
        let input = PolicyInput {
            owners: &self.owners,
            placements: &self.placements,
            identifiers: self.identifiers,
            evidence: &self.evidence,
            named: &owned,
            host_bytes,
            copied_bytes,
        };
        let moves = self.policy.decide(&input);
        for step in &moves {
            assert!(
                step.to < self.identifiers && step.to != step.from,
                "policies move to placement identifiers that exist"
            );
            if self.carried_out {
                self.placements[step.owner] = Some(step.to);
            }
        }
        Advice {
            reading: self.readings,
            events: fresh.events.len(),
            events_without_block: without_block,
            events_without_owner: fresh.events.len() - without_block - owned.len(),
            loss: fresh.loss,
            host_bytes,
            copied_bytes,
            moves,
        }
    }

    /// Records that a move was not executed, so its owner keeps its placement identifier.
    pub fn not_carried_out(&mut self, step: &OwnerMove) {
        self.placements[step.owner] = Some(step.from);
    }

    /// Replaces the map by one of the same owners with new extents, because files grow and file
    /// systems relocate them.
    ///
    /// # Panics
    /// The owners differ in names or order.
    pub fn relocate(&mut self, owners: OwnerMap) {
        let names = |map: &OwnerMap| -> Vec<String> { map.owners().iter().map(|owner| owner.name.clone()).collect() };
        assert_eq!(names(&self.owners), names(&owners), "evidence is kept by owner");
        self.owners = owners;
    }

    pub fn owners(&self) -> &OwnerMap {
        &self.owners
    }

    pub fn placements(&self) -> &[Option<u16>] {
        &self.placements
    }

    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Bytes written and copied since the last reading. Both are 0 if a counter decreased, as it
    /// does with another drive or another FDP configuration.
    fn count(&mut self, now: WriteStatistics) -> (u64, u64) {
        let last = std::mem::replace(&mut self.last, now);
        let host = now.host_bytes_written.checked_sub(last.host_bytes_written);
        let media = now.media_bytes_written.checked_sub(last.media_bytes_written);
        match (host, media) {
            (Some(host), Some(media)) => (host as u64, media.saturating_sub(host) as u64),
            _ => (0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{EventLoss, ReallocationEvent};
    use crate::owners::DataOwner;
    use crate::policy::PolicyName;

    /// Two owners of 100 bytes each without a known placement, and two placement identifiers.
    fn advisor(carried_out: bool) -> Advisor {
        let owner = |name: &str, start: u64| DataOwner {
            name: name.to_string(),
            extents: vec![(start, start + 100)],
            placement: None,
        };
        let owners = OwnerMap::new(vec![owner("one", 0), owner("two", 100)]).expect("a map");
        let policy = PolicyName::Reported.create();
        Advisor::new(owners, 2, policy, carried_out, counters(1000, 1500))
    }

    fn counters(host: u128, media: u128) -> WriteStatistics {
        WriteStatistics { host_bytes_written: host, media_bytes_written: media }
    }

    fn event(timestamp: u64, offset_bytes: Option<u64>) -> ReallocationEvent {
        ReallocationEvent { timestamp, placement: Some(0), moved_bytes: Some(10), offset_bytes }
    }

    /// Twelve events for a byte, the minimum on which the policy acts.
    fn dozen(offset_bytes: u64) -> Vec<ReallocationEvent> {
        vec![event(1, Some(offset_bytes)); 12]
    }

    fn fresh(events: &[ReallocationEvent]) -> FreshEvents {
        FreshEvents { events: events.to_vec(), loss: EventLoss::None }
    }

    #[test]
    fn placements_are_learned_and_advice_is_given_again_until_it_is_carried_out() {
        let events = [dozen(150), vec![event(2, None), event(3, Some(500))]].concat();
        let mut advisor = advisor(false);
        let advice = advisor.update(fresh(&events), counters(1000, 1500));
        assert_eq!((advice.events, advice.events_without_block, advice.events_without_owner), (14, 1, 1));
        assert_eq!(advisor.placements(), [None, Some(0)]);
        let moves: Vec<(usize, u16)> = advice.moves.iter().map(|step| (step.owner, step.to)).collect();
        assert_eq!(moves, [(1, 1)]);
        let again = advisor.update(fresh(&dozen(150)), counters(2000, 2600));
        assert_eq!((again.moves.len(), again.host_bytes, again.copied_bytes), (1, 1000, 100));
    }

    /// The log held events from before the first counters, which do not count their copies.
    #[test]
    fn the_first_reading_takes_the_copies_of_its_events() {
        let mut advisor = advisor(false);
        let advice = advisor.update(fresh(&dozen(150)), counters(1000, 1500));
        assert_eq!((advice.copied_bytes, advice.moves[0].expected_saving_bytes), (120, 120));
        assert_eq!(advisor.update(fresh(&[event(2, Some(150))]), counters(1000, 1500)).copied_bytes, 0);
    }

    #[test]
    fn a_move_that_failed_leaves_the_owner_where_it_was() {
        let mut advisor = advisor(true);
        let advice = advisor.update(fresh(&dozen(0)), counters(1000, 1500));
        assert_eq!(advisor.placements()[0], Some(1));
        advisor.not_carried_out(&advice.moves[0]);
        assert_eq!(advisor.placements()[0], Some(0));
    }

    /// Evidence stays with the owner. New events are looked up in its new extents.
    #[test]
    fn owners_that_were_written_elsewhere_keep_their_evidence() {
        let mut advisor = advisor(false);
        advisor.update(fresh(&[event(1, Some(150))]), counters(1000, 1500));
        let mut owners = advisor.owners().owners().to_vec();
        owners[0].extents = Vec::new();
        owners[1].extents = vec![(0, 50)];
        advisor.relocate(OwnerMap::new(owners).expect("a map"));
        let advice = advisor.update(fresh(&[event(2, Some(10)), event(3, Some(150))]), counters(1000, 1500));
        assert_eq!(advice.events_without_owner, 1);
        assert_eq!(advisor.evidence().row(1, 0).map(|row| row.events_total), Some(2));
    }
}
