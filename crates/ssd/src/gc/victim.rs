//! Second decision of garbage collection, the victim.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::cast::{index, narrow, share_of, to_f64, wide};
use crate::gc::index::ClosedSet;
use crate::types::RuId;
use crate::unit::{ReclaimUnit, UnitState};

/// Second decision of garbage collection, the victim among the candidates. `u` is the valid share
/// of a reclaim unit. Ages are measured in pages written by the host. An age since the last
/// invalidation restarts when a unit loses a 256th of its pages (see
/// [`ReclaimUnit::last_invalidation`]). Reclaim units without an invalid page are never victims.
/// Ties go to the unit that was closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VictimRule {
    /// Minimum `u`.
    Greedy,
    /// Minimum `u * age / (1 - u)`, with the age since the last invalidation. This is the score
    /// printed in the WARP paper (section 4.3). It only makes sense as a cost, with a low cost for
    /// units that have just lost pages.
    CostAge,
    /// Maximum `(1 - u) * age / (1 + u)`, with the age since the last page was written. Benefit to
    /// cost of Rosenblum & Ousterhout (1991), section 3.5. A reclaim unit that has long been stable
    /// is worth cleaning early.
    BenefitCost,
    /// Maximum `(1 - u) * age / (2 u)`, with the age since the last invalidation. Benefit to cost
    /// of Kawaguchi, Nishioka & Motoda (1995), section 4.4. A unit without recent invalidations is
    /// considered stable and worth cleaning early.
    BenefitCostSinceInvalidation,
    /// Unit that was closed first.
    Fifo,
    /// Random unit, with equal probability.
    Random,
    /// Minimum `u` among this many closed units, drawn with replacement. A drawn unit without an
    /// invalid page counts as a draw and loses. This way the comparison does not depend on early
    /// losses of units of gigabytes. If no drawn unit is a candidate, a random candidate is taken.
    DChoices(u32),
    /// Minimum `u` among this many units that were closed first.
    WindowedGreedy(u32),
}

/// A victim policy.
///
/// # Examples
///
/// This policy collects the unit that was closed first, as the built-in policy `fifo` does.
/// `examples/victim_policy.rs` has a better one, with the same program in Python.
///
/// ```
/// use ssd::gc::{VictimCandidates, DeviceRng, VictimPolicy};
/// use ssd::{Device, DeviceConfig, Lpn, Placement, RuId, WriteRequest};
///
/// struct OldestFirst;
///
/// impl VictimPolicy for OldestFirst {
///     fn select(&mut self, candidates: &VictimCandidates<'_>, _random: &mut DeviceRng) -> Option<RuId> {
///         candidates.iter().min_by_key(|unit| candidates.unit(*unit).closed_sequence())
///     }
/// }
///
/// fn write_amplification(config: &DeviceConfig, policy: Option<Box<dyn VictimPolicy + Send + Sync>>) -> f64 {
///     let mut device = Device::new(config).expect("the drive is possible");
///     device.set_victim_policy(policy);
///     let pages = device.layout().logical_pages;
///     for index in 0..8 * pages {
///         // One write in order, then one to the hot tenth of the drive.
///         let first = if index % 2 == 0 { index / 2 % pages } else { index * index % (pages / 10) };
///         let write = WriteRequest {
///             first: Lpn(first),
///             pages: 1,
///             host_bytes: 4096,
///             placement: Placement::handle(0),
///         };
///         let _ = device.write(0, &write).expect("the page exists");
///     }
///     device.stats().write_amplification().expect("the host has written")
/// }
///
/// let mut config = DeviceConfig::default(); // The built-in policy is greedy.
/// config.geometry.capacity_bytes = Some(16 << 20);
/// config.geometry.reclaim_unit_bytes = 256 << 10;
/// let greedy = write_amplification(&config, None);
/// let oldest_first = write_amplification(&config, Some(Box::new(OldestFirst)));
/// config.gc.victim_policy = ssd::gc::VictimRule::Fifo;
/// assert_eq!(oldest_first, write_amplification(&config, None));
/// assert!(oldest_first > greedy);
/// ```
pub trait VictimPolicy {
    /// Returns one of the candidates, or `None` if there are no candidates. Must be deterministic
    /// except for `random`.
    fn select(&mut self, candidates: &VictimCandidates<'_>, random: &mut Xoshiro256PlusPlus) -> Option<RuId>;
}

/// Candidates of a decision: closed reclaim units, with an invalid page, of one or several owners.
/// In background collection they are also at or below the lazy threshold.
pub struct VictimCandidates<'a> {
    pub(crate) units: &'a [ReclaimUnit],
    pub(crate) sets: Vec<&'a ClosedSet>,
    /// True for background collection, which takes only units up to the lazy threshold.
    pub(crate) lazy: bool,
    /// Host pages written to the device, which is the policies' clock.
    pub(crate) host_pages_written: u64,
}

impl<'a> VictimCandidates<'a> {
    /// Iterates over the candidates, in arbitrary but reproducible order.
    pub fn iter(&self) -> impl Iterator<Item = RuId> {
        self.sets
            .iter()
            .flat_map(|set| set.members.iter().filter(|&&unit| self.admits(set, unit)))
            .map(|&unit| RuId(unit))
    }

    /// Returns true if a reclaim unit is a candidate.
    pub fn contains(&self, unit: RuId) -> bool {
        let entry = self.unit(unit);
        let is_member = |set: &ClosedSet| set.members.get(index(entry.member)) == Some(&unit.0);
        let mut sets = self.sets.iter();
        entry.state == UnitState::Closed && sets.any(|set| is_member(set) && self.admits(set, unit.0))
    }

    /// Returns true for background collection, whose candidates are at most as full as the lazy
    /// threshold. Foreground collection has no threshold.
    pub fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// Pages that the host has written to the device, which is the clock for ages.
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

    /// Candidate with the minimum valid share. Among equals the unit closed first.
    fn least_valid(&self) -> Option<RuId> {
        let lowest = |set: &&ClosedSet| set.lowest_unit.filter(|unit| self.admits(set, *unit)).map(RuId);
        self.min_by_valid(self.sets.iter().filter_map(lowest))
    }

    fn min_by_valid(&self, units: impl Iterator<Item = RuId>) -> Option<RuId> {
        units.min_by(|a, b| {
            let (a, b) = (self.unit(*a), self.unit(*b));
            // Compares shares as fractions, so that units of different sizes compare exactly.
            let cross = |x: &ReclaimUnit, y: &ReclaimUnit| u64::from(x.valid_pages) * u64::from(y.pages);
            cross(a, b).cmp(&cross(b, a)).then(a.closed_sequence.cmp(&b.closed_sequence))
        })
    }

    /// First `count` candidates in closing order.
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

    /// Candidate with the minimum score. Among equals the unit closed first.
    fn min_by_score(&self, score: impl Fn(RuId) -> f64) -> Option<RuId> {
        self.iter().map(|unit| (score(unit), unit)).min_by(|a, b| self.by_score(a, b)).map(|(_, unit)| unit)
    }

    fn by_score(&self, a: &(f64, RuId), b: &(f64, RuId)) -> std::cmp::Ordering {
        let sequence = |unit: RuId| self.unit(unit).closed_sequence;
        a.0.total_cmp(&b.0).then(sequence(a.1).cmp(&sequence(b.1)))
    }

    /// Draws a closed unit from all sets with equal probability, candidate or not.
    fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Option<(usize, usize)> {
        let count: u64 = self.sets.iter().map(|set| wide(set.members.len())).sum();
        let mut position = index(narrow(share_of(random.next_u64(), count)));
        for (index, set) in self.sets.iter().enumerate() {
            if position < set.members.len() {
                return Some((index, position));
            }
            position -= set.members.len();
        }
        assert_eq!(count, 0, "the random draw is beyond the last unit");
        None
    }

    fn at(&self, (set, position): (usize, usize)) -> Option<RuId> {
        let set = self.sets[set];
        let unit = set.members[position];
        self.admits(set, unit).then_some(RuId(unit))
    }

    /// Draws a candidate with equal probability. Repeats draws that hit no candidate. If candidates
    /// are too rare for that, draws from a list of them.
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

impl VictimPolicy for VictimRule {
    fn select(&mut self, candidates: &VictimCandidates<'_>, random: &mut Xoshiro256PlusPlus) -> Option<RuId> {
        let age = |since: u64| to_f64(candidates.host_pages_written - since);
        match *self {
            VictimRule::Greedy => candidates.least_valid(),
            VictimRule::CostAge => candidates.min_by_score(|unit| {
                let u = candidates.valid_share(unit);
                u * age(candidates.unit(unit).last_invalidation) / (1.0 - u)
            }),
            VictimRule::BenefitCost => candidates.min_by_score(|unit| {
                let u = candidates.valid_share(unit);
                -((1.0 - u) * age(candidates.unit(unit).last_write) / (1.0 + u))
            }),
            VictimRule::BenefitCostSinceInvalidation => candidates.min_by_score(|unit| {
                let u = candidates.valid_share(unit);
                if u == 0.0 {
                    return f64::NEG_INFINITY; // Free of cost, whatever its age.
                }
                -((1.0 - u) * age(candidates.unit(unit).last_invalidation) / (2.0 * u))
            }),
            VictimRule::Fifo => candidates.oldest(1).next(),
            VictimRule::Random => candidates.draw_candidate(random),
            VictimRule::DChoices(choices) => {
                let draw = |_| candidates.draw(random).and_then(|at| candidates.at(at));
                let drawn: Vec<RuId> = (0..choices).filter_map(draw).collect();
                let best = candidates.min_by_valid(drawn.into_iter());
                best.or_else(|| candidates.draw_candidate(random))
            }
            VictimRule::WindowedGreedy(window) => candidates.min_by_valid(candidates.oldest(index(window))),
        }
    }
}

impl VictimRule {
    /// Name in the configuration and in the GC log.
    pub fn name(self) -> &'static str {
        match self {
            VictimRule::Greedy => "greedy",
            VictimRule::CostAge => "cost_age",
            VictimRule::BenefitCost => "benefit_cost",
            VictimRule::BenefitCostSinceInvalidation => "benefit_cost_since_invalidation",
            VictimRule::Fifo => "fifo",
            VictimRule::Random => "random",
            VictimRule::DChoices(_) => "d_choices",
            VictimRule::WindowedGreedy(_) => "windowed_greedy",
        }
    }
}
