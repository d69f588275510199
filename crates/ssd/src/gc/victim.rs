//! Second decision of garbage collection: which reclaim unit.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::cast::{index, narrow, real, share_of, wide};
use crate::gc::index::ClosedSet;
use crate::types::RuId;
use crate::unit::{ReclaimUnit, UnitState};

/// Second decision of garbage collection: which of the candidates to reclaim. `u` is the valid share of a reclaim
/// unit, time is counted in pages written by the host; an invalidation is the loss of a 256th of a unit's pages (see
/// [`ReclaimUnit::last_invalidation`]). A reclaim unit without an invalid page is never taken. Ties go to the one that
/// was closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitSelection {
    /// Least `u`.
    Greedy,
    /// Least `u * age / (1 - u)`, age since the last invalidation: the score printed in the WARP paper (section 4.3),
    /// which only makes sense as a cost: a reclaim unit that has just lost pages is cheap.
    CostAge,
    /// Greatest `(1 - u) * age / (1 + u)`, age since the last page was written: benefit to cost of Rosenblum &
    /// Ousterhout (1991), section 3.5. A reclaim unit that has been stable for long is worth cleaning early.
    BenefitCost,
    /// Greatest `(1 - u) * age / (2 u)`, age since the last invalidation: benefit to cost of Kawaguchi, Nishioka &
    /// Motoda (1995), section 4.4. What has lost nothing for long is taken for stable and worth cleaning early.
    BenefitCostSinceInvalidation,
    /// The one closed first.
    Fifo,
    /// Any, with equal probability.
    Random,
    /// Draw this many of the closed ones with replacement, take the one with the least `u`. One without an invalid page
    /// is drawn too, and loses: whether a unit of gigabytes has lost a page yet must not decide who is compared. If none
    /// of them may be taken, any that may.
    DChoices(u32),
    /// Least `u` among this many closed first.
    WindowedGreedy(u32),
}

/// Chooses a victim.
pub trait VictimPolicy {
    /// One of the candidates, or `None` if there is none. Must be deterministic but for `random`.
    fn select(&mut self, candidates: &Candidates<'_>, random: &mut Xoshiro256PlusPlus) -> Option<RuId>;
}

/// The closed reclaim units that one decision is about: those of one or several owners that have an invalid page and,
/// in background collection, are below the lazy threshold.
pub struct Candidates<'a> {
    pub(crate) units: &'a [ReclaimUnit],
    pub(crate) sets: Vec<&'a ClosedSet>,
    /// Only units that background collection may take.
    pub(crate) lazy: bool,
    /// Host pages written to the device: the time.
    pub(crate) host_pages_written: u64,
}

impl<'a> Candidates<'a> {
    /// The candidates, in no particular but a reproducible order.
    pub fn iter(&self) -> impl Iterator<Item = RuId> {
        self.sets
            .iter()
            .flat_map(|set| set.members.iter().filter(|&&unit| self.admits(set, unit)))
            .map(|&unit| RuId(unit))
    }

    /// Whether a reclaim unit is one of them.
    pub fn contains(&self, unit: RuId) -> bool {
        let entry = self.unit(unit);
        let is_member = |set: &ClosedSet| set.members.get(index(entry.member)) == Some(&unit.0);
        let mut sets = self.sets.iter();
        entry.state == UnitState::Closed && sets.any(|set| is_member(set) && self.admits(set, unit.0))
    }

    /// Whether they are those of background collection, at most as full as the lazy threshold; in the foreground all
    /// are.
    pub fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// Pages that the host has written to the device: the time that ages are counted in.
    pub fn host_pages_written(&self) -> u64 {
        self.host_pages_written
    }

    /// State of a reclaim unit.
    pub fn unit(&self, unit: RuId) -> &'a ReclaimUnit {
        &self.units[unit.index()]
    }

    fn admits(&self, set: &ClosedSet, unit: u32) -> bool {
        let unit = &self.units[index(unit)];
        unit.valid_pages < unit.pages && (!self.lazy || unit.valid_pages <= set.lazy_valid_pages)
    }

    /// Valid share `u` of a unit.
    fn valid_share(&self, unit: RuId) -> f64 {
        let unit = self.unit(unit);
        assert!(unit.valid_pages < unit.pages, "a candidate has an invalid page");
        f64::from(unit.valid_pages) / f64::from(unit.pages)
    }

    /// The candidate with the least valid share; of several, the one closed first.
    fn least_valid(&self) -> Option<RuId> {
        let lowest = |set: &&'a ClosedSet| {
            let set: &'a ClosedSet = set;
            set.lowest(self.units)
                .filter(move |&unit| self.admits(set, unit))
                .map(RuId)
        };
        self.min_by_valid(self.sets.iter().flat_map(lowest))
    }

    fn min_by_valid(&self, units: impl Iterator<Item = RuId>) -> Option<RuId> {
        units.min_by(|a, b| {
            let (a, b) = (self.unit(*a), self.unit(*b));
            // Shares as fractions, so that units of different sizes compare exactly.
            let cross = |x: &ReclaimUnit, y: &ReclaimUnit| u64::from(x.valid_pages) * u64::from(y.pages);
            cross(a, b)
                .cmp(&cross(b, a))
                .then(a.closed_sequence.cmp(&b.closed_sequence))
        })
    }

    /// The first `count` candidates in order of closing.
    fn oldest(&self, count: usize) -> impl Iterator<Item = RuId> {
        let admitted = |set: &&'a ClosedSet| {
            let set: &'a ClosedSet = set;
            set.in_order(self.units).filter(move |&unit| self.admits(set, unit))
        };
        let mut queues: Vec<_> = self.sets.iter().map(admitted).collect();
        let mut heads: Vec<_> = queues.iter_mut().map(Iterator::next).collect();
        std::iter::from_fn(move || {
            let sequence = |unit: u32| self.units[index(unit)].closed_sequence;
            let waiting = (0..heads.len()).filter_map(|queue| heads[queue].map(|unit| (sequence(unit), queue)));
            let (_, queue) = waiting.min()?;
            let first = std::mem::replace(&mut heads[queue], queues[queue].next());
            first.map(RuId)
        })
        .take(count)
    }

    /// The candidate with the least score; of several, the one closed first.
    fn min_by_score(&self, score: impl Fn(RuId) -> f64) -> Option<RuId> {
        self.iter()
            .map(|unit| (score(unit), unit))
            .min_by(|a, b| self.by_score(a, b))
            .map(|(_, unit)| unit)
    }

    fn by_score(&self, a: &(f64, RuId), b: &(f64, RuId)) -> std::cmp::Ordering {
        let sequence = |unit: RuId| self.unit(unit).closed_sequence;
        a.0.total_cmp(&b.0).then(sequence(a.1).cmp(&sequence(b.1)))
    }

    /// A closed unit drawn with equal probability from all of the sets, candidate or not.
    fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Option<(usize, usize)> {
        let count: u64 = self.sets.iter().map(|set| wide(set.members.len())).sum();
        let mut position = index(narrow(share_of(random.next_u64(), count)));
        for (index, set) in self.sets.iter().enumerate() {
            if position < set.members.len() {
                return Some((index, position));
            }
            position -= set.members.len();
        }
        assert_eq!(count, 0, "the draw goes beyond the last unit");
        None
    }

    fn at(&self, (set, position): (usize, usize)) -> Option<RuId> {
        let set = self.sets[set];
        let unit = set.members[position];
        self.admits(set, unit).then_some(RuId(unit))
    }

    /// A candidate drawn with equal probability. Draws that hit no candidate are repeated; where candidates are so
    /// rare that this does not find one, one is drawn from their list.
    fn draw_candidate(&self, random: &mut Xoshiro256PlusPlus) -> Option<RuId> {
        const DRAWS: usize = 32;
        for _ in 0..DRAWS {
            if let Some(unit) = self.at(self.draw(random)?) {
                return Some(unit);
            }
        }
        let all: Vec<RuId> = self.iter().collect();
        let position = index(narrow(share_of(random.next_u64(), wide(all.len()))));
        all.get(position).copied()
    }
}

impl VictimPolicy for UnitSelection {
    fn select(&mut self, candidates: &Candidates<'_>, random: &mut Xoshiro256PlusPlus) -> Option<RuId> {
        let age = |since: u64| real(candidates.host_pages_written - since);
        match *self {
            UnitSelection::Greedy => candidates.least_valid(),
            UnitSelection::CostAge => candidates.min_by_score(|unit| {
                let u = candidates.valid_share(unit);
                u * age(candidates.unit(unit).last_invalidation) / (1.0 - u)
            }),
            UnitSelection::BenefitCost => candidates.min_by_score(|unit| {
                let u = candidates.valid_share(unit);
                -((1.0 - u) * age(candidates.unit(unit).last_write) / (1.0 + u))
            }),
            UnitSelection::BenefitCostSinceInvalidation => candidates.min_by_score(|unit| {
                let u = candidates.valid_share(unit);
                if u == 0.0 {
                    return f64::NEG_INFINITY; // Free of cost, whatever its age.
                }
                -((1.0 - u) * age(candidates.unit(unit).last_invalidation) / (2.0 * u))
            }),
            UnitSelection::Fifo => candidates.oldest(1).next(),
            UnitSelection::Random => candidates.draw_candidate(random),
            UnitSelection::DChoices(choices) => {
                let draw = |_| candidates.draw(random).and_then(|at| candidates.at(at));
                let drawn: Vec<RuId> = (0..choices).filter_map(draw).collect();
                let best = candidates.min_by_valid(drawn.into_iter());
                best.or_else(|| candidates.draw_candidate(random))
            }
            UnitSelection::WindowedGreedy(window) => candidates.min_by_valid(candidates.oldest(index(window))),
        }
    }
}

impl UnitSelection {
    /// The name in the configuration and in the GC log.
    pub fn name(self) -> &'static str {
        match self {
            UnitSelection::Greedy => "greedy",
            UnitSelection::CostAge => "cost_age",
            UnitSelection::BenefitCost => "benefit_cost",
            UnitSelection::BenefitCostSinceInvalidation => "benefit_cost_since_invalidation",
            UnitSelection::Fifo => "fifo",
            UnitSelection::Random => "random",
            UnitSelection::DChoices(_) => "d_choices",
            UnitSelection::WindowedGreedy(_) => "windowed_greedy",
        }
    }
}
