//! What to do about evidence: one trait, one file for each policy.

mod lifetimes;
mod reported;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use lifetimes::Lifetimes;
pub use reported::Reported;

use crate::evidence::Evidence;
use crate::owners::OwnerMap;

/// What a policy sees after a reading.
pub struct View<'a> {
    /// Number of the reading, from 1.
    pub reading: u32,
    /// The owners.
    pub owners: &'a OwnerMap,
    /// Placement identifier that each owner writes with, as far as known; by owner.
    pub placements: &'a [Option<u16>],
    /// Placement identifiers that the namespace has.
    pub identifiers: u16,
    /// All evidence, the last reading's included.
    pub evidence: &'a Evidence,
    /// Events of the last reading that name an owner, with the placement identifier of the unit that was collected.
    pub named: &'a [(usize, Option<u16>)],
    /// Bytes that the host wrote since the last reading.
    pub host_bytes: u64,
    /// Bytes that collection copied since the last reading.
    pub copied_bytes: u64,
}

impl View<'_> {
    /// Bytes copied for each byte written since the last reading; `None` if nothing was written.
    pub fn cost(&self) -> Option<f64> {
        (self.host_bytes > 0).then(|| self.copied_bytes as f64 / self.host_bytes as f64)
    }

    /// Whether an owner writes with a placement identifier.
    pub fn is_used(&self, placement: u16) -> bool {
        self.placements.contains(&Some(placement))
    }
}

/// An owner should write with another placement identifier from now on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Move {
    /// Index of the owner.
    pub owner: usize,
    /// Where it is now.
    pub from: u16,
    /// Where it should be.
    pub to: u16,
    /// Why.
    pub reason: Reason,
    /// Bytes that need not be copied, of those copied since the last reading: what the events blame it for.
    pub expected_saving_bytes: u64,
}

/// Why an owner should move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Events name it.
    Reported,
    /// It gets a placement identifier that nobody uses, away from data that lives longer or shorter.
    Split,
    /// It joins data that lives as long.
    Merge,
    /// A move did not help.
    Undo,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Reason::Reported => "reported",
            Reason::Split => "split",
            Reason::Merge => "merge",
            Reason::Undo => "undo",
        })
    }
}

/// Decides which owners move. Deterministic.
pub trait Policy: Send {
    /// Its name, as in settings.
    fn name(&self) -> &'static str;

    /// The moves after a reading. The caller carries them out before the next one.
    fn decide(&mut self, view: &View<'_>) -> Vec<Move>;
}

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyName {
    /// The paper's ([`Reported`]).
    Reported,
    /// Our own ([`Lifetimes`]).
    Lifetimes,
    /// None: evidence is gathered, nobody moves.
    Observe,
}

impl PolicyName {
    /// A policy of this name, at its beginning.
    pub fn make(self) -> Box<dyn Policy> {
        match self {
            PolicyName::Reported => Box::new(Reported),
            PolicyName::Lifetimes => Box::new(Lifetimes::default()),
            PolicyName::Observe => Box::new(Observe),
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

/// Moves nobody.
struct Observe;

impl Policy for Observe {
    fn name(&self) -> &'static str {
        "observe"
    }

    fn decide(&mut self, _view: &View<'_>) -> Vec<Move> {
        Vec::new()
    }
}

/// Of the bytes copied since the last reading, those for which the events blame an owner.
fn blamed_bytes(view: &View<'_>, owner: usize) -> u64 {
    let events = view.named.len();
    let of_owner = view.named.iter().filter(|(named, _)| *named == owner).count();
    match events {
        0 => 0,
        events => (view.copied_bytes as f64 * of_owner as f64 / events as f64) as u64,
    }
}
