//! Policies that turn evidence into moves: one trait, one file for each policy.

mod lifetimes;
mod reported;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use lifetimes::LifetimesPolicy;
pub use reported::ReportedPolicy;

use crate::evidence::Evidence;
use crate::owners::OwnerMap;

pub struct PolicyInput<'a> {
    pub owners: &'a OwnerMap,
    /// Placement identifier that each owner writes with, by owner. `None` where it is not known.
    pub placements: &'a [Option<u16>],
    pub identifiers: u16,
    pub evidence: &'a Evidence,
    /// Owners in the events of the last reading, with the placement identifier of the collected
    /// reclaim unit. Events without an owner are left out.
    pub named: &'a [(usize, Option<u16>)],
    pub host_bytes: u64,
    pub copied_bytes: u64,
}

impl PolicyInput<'_> {
    /// Bytes copied per byte written since the last reading. `None` if the host wrote no data.
    pub fn cost(&self) -> Option<f64> {
        (self.host_bytes > 0).then(|| self.copied_bytes as f64 / self.host_bytes as f64)
    }

    pub fn is_used(&self, placement: u16) -> bool {
        self.placements.contains(&Some(placement))
    }
}

/// Advice that an owner write with another placement identifier from now on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OwnerMove {
    pub owner: usize,
    pub from: u16,
    pub to: u16,
    pub reason: MoveReason,
    /// Copied bytes since the last reading that the move would have saved. This is the share of the
    /// owner's events in all events that name an owner.
    pub expected_saving_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveReason {
    /// Most of the identifier's events name the owner.
    Reported,
    /// The owner gets an unused placement identifier, apart from data with other lifetimes.
    Split,
    /// The owner joins data with similar lifetimes.
    Merge,
    /// An earlier move did not help.
    Undo,
}

impl fmt::Display for MoveReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            MoveReason::Reported => "reported",
            MoveReason::Split => "split",
            MoveReason::Merge => "merge",
            MoveReason::Undo => "undo",
        })
    }
}

/// A deterministic rule that decides which owners move.
pub trait MovePolicy: Send {
    /// Returns the moves after a reading. The caller executes them before the next reading.
    fn decide(&mut self, input: &PolicyInput<'_>) -> Vec<OwnerMove>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyName {
    /// Policy of the paper ([`Reported`]).
    Reported,
    /// Policy of this project ([`Lifetimes`]).
    Lifetimes,
    /// No moves: only collects evidence.
    Observe,
}

impl PolicyName {
    pub fn create(self) -> Box<dyn MovePolicy> {
        match self {
            PolicyName::Reported => Box::new(ReportedPolicy),
            PolicyName::Lifetimes => Box::new(LifetimesPolicy::default()),
            PolicyName::Observe => Box::new(ObservePolicy),
        }
    }
}

impl FromStr for PolicyName {
    type Err = String;

    fn from_str(text: &str) -> Result<PolicyName, String> {
        match text {
            "reported" => Ok(PolicyName::Reported),
            "lifetimes" => Ok(PolicyName::Lifetimes),
            "observe" => Ok(PolicyName::Observe),
            _ => Err("give reported, lifetimes or observe".to_string()),
        }
    }
}

struct ObservePolicy;

impl MovePolicy for ObservePolicy {
    fn decide(&mut self, _input: &PolicyInput<'_>) -> Vec<OwnerMove> {
        Vec::new()
    }
}

/// Bytes copied since the last reading that the events attribute to an owner.
fn attributed_bytes(input: &PolicyInput<'_>, owner: usize) -> u64 {
    let events = input.named.len();
    let of_owner = input.named.iter().filter(|(named, _)| *named == owner).count();
    match events {
        0 => 0,
        events => (input.copied_bytes as f64 * of_owner as f64 / events as f64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owners::DataOwner;
    use crate::{Advisor, EventLoss, FreshEvents, ReallocationEvent, WriteStatistics};

    /// A drive with invented readings, and the state of its advisor.
    pub(super) struct Scene {
        owners: OwnerMap,
        placements: Vec<Option<u16>>,
        identifiers: u16,
        evidence: Evidence,
    }

    impl Scene {
        /// Owners by name, bytes and placement identifier.
        pub(super) fn new(identifiers: u16, owners: &[(&str, u64, u16)]) -> Scene {
            let mut start = 0;
            let mut owner = |&(name, bytes, placement): &(&str, u64, u16)| {
                start += bytes;
                DataOwner { name: name.to_string(), extents: vec![(start - bytes, start)], placement: Some(placement) }
            };
            let owners: Vec<DataOwner> = owners.iter().map(&mut owner).collect();
            Scene {
                placements: owners.iter().map(|owner| owner.placement).collect(),
                owners: OwnerMap::new(owners).expect("a map"),
                identifiers,
                evidence: Evidence::new(2.0),
            }
        }

        fn index(&self, name: &str) -> usize {
            let known = self.owners.owners().iter().position(|owner| owner.name == name);
            known.expect("an owner of the scene")
        }

        /// Reverts the move of an owner, as if no host had executed it.
        pub(super) fn put_back(&mut self, name: &str, placement: u16) {
            let owner = self.index(name);
            self.placements[owner] = Some(placement);
        }

        /// Present placement identifier of an owner.
        pub(super) fn placement(&self, name: &str) -> u16 {
            self.placements[self.index(name)].expect("it is known")
        }

        /// Feeds a reading to the policy and executes its moves. `named` lists owner, placement
        /// identifier and number of events. `cost` is bytes copied per byte of the host.
        pub(super) fn read(
            &mut self,
            policy: &mut dyn MovePolicy,
            named: &[(&str, u16, u32)],
            cost: f64,
        ) -> Vec<OwnerMove> {
            let mut events = Vec::new();
            for &(name, placement, count) in named {
                let offset = self.owners.owners()[self.index(name)].extents[0].0;
                let event = ReallocationEvent {
                    timestamp: 0,
                    placement: Some(placement),
                    moved_bytes: Some(4096),
                    offset_bytes: Some(offset),
                };
                events.extend(vec![event; count as usize]);
            }
            let owners = self.evidence.add(&self.owners, &events);
            let found = owners.iter().zip(&events).filter_map(|(owner, event)| Some(((*owner)?, event.placement)));
            let found: Vec<(usize, Option<u16>)> = found.collect();
            let moves = policy.decide(&PolicyInput {
                owners: &self.owners,
                placements: &self.placements,
                identifiers: self.identifiers,
                evidence: &self.evidence,
                named: &found,
                host_bytes: 1_000_000,
                copied_bytes: (1e6 * cost) as u64,
            });
            for step in &moves {
                assert_eq!(self.placements[step.owner], Some(step.from));
                self.placements[step.owner] = Some(step.to);
            }
            moves
        }
    }

    #[test]
    fn an_advisor_learns_where_owners_write_from_where_their_data_is_found() {
        let owners = OwnerMap::parse("hot,0,100\nbig,100,100").expect("a map");
        let mut advisor = Advisor::new(owners, 4, PolicyName::Reported.create(), true, WriteStatistics::default());
        let event =
            |timestamp| ReallocationEvent { timestamp, placement: Some(2), moved_bytes: None, offset_bytes: Some(150) };
        let events: Vec<ReallocationEvent> =
            (0..20).map(event).chain([ReallocationEvent { offset_bytes: None, ..event(20) }]).collect();
        let fresh = FreshEvents { events, loss: EventLoss::None };
        let counters = WriteStatistics { host_bytes_written: 100, media_bytes_written: 140 };
        let advice = advisor.update(fresh, counters);
        assert_eq!((advice.events, advice.events_without_block, advice.events_without_owner), (21, 1, 0));
        assert_eq!((advice.host_bytes, advice.copied_bytes), (100, 40));
        assert_eq!(advice.moves.len(), 1);
        assert_eq!((advice.moves[0].owner, advice.moves[0].from, advice.moves[0].to), (1, 2, 3));
        assert_eq!(advisor.placements(), [None, Some(3)]);
    }
}
