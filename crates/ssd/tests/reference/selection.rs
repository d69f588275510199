//! The two decisions of the reference: the order of the owners, and one of their units.
//!
//! Candidates are copied out of the state with counts from scans. The reference has no index.

use std::cmp::Ordering;

use rand_xoshiro::rand_core::Rng;
use ssd::config::{SourcePolicy, VictimRule};

use super::model::Reference;

/// A closed unit with the data visible to policies.
#[derive(Clone, Debug)]
pub struct Closed {
    pub unit: u32,
    pub valid: u32,
    pub pages: u32,
    pub closed_sequence: u64,
    pub last_invalidation: u64,
    pub last_write: u64,
    /// True if this decision may take the unit.
    pub candidate: bool,
}

impl Closed {
    fn valid_share(&self) -> f64 {
        f64::from(self.valid) / f64::from(self.pages)
    }

    /// Compares valid shares exactly. Among equals the unit closed first is less.
    fn fewer_valid(&self, other: &Closed) -> Ordering {
        let (this, that) =
            (u64::from(self.valid) * u64::from(other.pages), u64::from(other.valid) * u64::from(self.pages));
        this.cmp(&that).then(self.closed_sequence.cmp(&other.closed_sequence))
    }
}

/// An owner and its closed units, class by class.
pub type Holder = (usize, Vec<Closed>);

/// Owners of a group that have closed units.
pub fn holders(reference: &Reference, group: usize, lazy: bool) -> Vec<Holder> {
    let mut holders: Vec<Holder> = Vec::new();
    for ((row, _), members) in &reference.groups[group].closed {
        if members.is_empty() {
            continue;
        }
        let described = members.iter().map(|&unit| describe(reference, unit, lazy));
        match holders.last_mut() {
            Some((last, units)) if last == row => units.extend(described),
            _ => holders.push((*row, described.collect())),
        }
    }
    holders
}

fn describe(reference: &Reference, unit: u32, lazy: bool) -> Closed {
    let entry = reference.unit(unit);
    let (valid, pages) = (reference.valid_pages(unit), reference.unit_pages(unit));
    let within_lazy_share = f64::from(valid) / f64::from(pages) <= reference.config.gc.lazy_valid_share;
    Closed {
        unit,
        valid,
        pages,
        closed_sequence: entry.closed_sequence,
        last_invalidation: entry.last_invalidation,
        last_write: entry.last_write,
        candidate: valid < pages && (!lazy || within_lazy_share),
    }
}

/// Sets of owners to consider together, in order.
pub fn order(selection: SourcePolicy, mut holders: Vec<Holder>, pool: usize) -> Vec<Vec<Holder>> {
    let pages = |holder: &Holder| holder.1.iter().map(|unit| u64::from(unit.pages)).sum::<u64>();
    let valid = |holder: &Holder| holder.1.iter().map(|unit| u64::from(unit.valid)).sum::<u64>();
    let pays_all = |holder: &Holder| holder.1.iter().all(|unit| unit.valid > 0);
    match selection {
        SourcePolicy::Global => vec![holders],
        SourcePolicy::HighestPressure => {
            let shared: Vec<Holder> = holders.iter().filter(|holder| holder.0 == pool).cloned().collect();
            holders.retain(|holder| holder.0 != pool);
            if holders.is_empty() {
                return vec![shared];
            }
            // The maximum invalid share has the most invalid pages per live page. The sort is
            // stable.
            let invalid = |holder: &Holder| pages(holder) - valid(holder);
            holders.sort_by(|a, b| {
                let by_share = (invalid(b) * pages(a)).cmp(&(invalid(a) * pages(b)));
                pays_all(a).cmp(&pays_all(b)).then(by_share)
            });
            let together = |holder| [vec![holder], shared.clone()].concat();
            holders.into_iter().map(together).collect()
        }
    }
}

/// Unit that a policy takes from the given sets.
pub fn select(
    policy: VictimRule,
    holders: &[Holder],
    host_pages_written: u64,
    random: &mut impl Rng,
) -> Option<Closed> {
    let all: Vec<&Closed> = holders.iter().flat_map(|(_, units)| units).collect();
    let mut candidates: Vec<&Closed> = all.iter().copied().filter(|unit| unit.candidate).collect();
    candidates.sort_by_key(|unit| unit.closed_sequence);
    let age = |since: u64| (host_pages_written - since) as f64;
    let cost = |unit: &Closed| {
        let u = unit.valid_share();
        u * age(unit.last_invalidation) / (1.0 - u)
    };
    let benefit_cost = |unit: &Closed| {
        let u = unit.valid_share();
        (1.0 - u) * age(unit.last_write) / (1.0 + u)
    };
    // A unit without a valid page costs no copies. Its benefit is unbounded even at age 0.
    let benefit_to_copy = |unit: &Closed| match unit.valid_share() {
        0.0 => f64::INFINITY,
        u => (1.0 - u) * age(unit.last_invalidation) / (2.0 * u),
    };
    let fewest_valid = |units: &[&Closed]| units.iter().copied().min_by(|a, b| a.fewer_valid(b)).cloned();
    match policy {
        VictimRule::Greedy => fewest_valid(&candidates),
        // `min_by` returns the first of equals, here the one closed first.
        VictimRule::CostAge => candidates.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b))).cloned(),
        VictimRule::BenefitCost => most(&candidates, benefit_cost),
        VictimRule::BenefitCostSinceInvalidation => most(&candidates, benefit_to_copy),
        VictimRule::Fifo => candidates.first().copied().cloned(),
        VictimRule::Random => draw(&all, random).cloned(),
        VictimRule::DChoices(choices) => {
            let any = |_| all.get(position(all.len(), random)).copied();
            let drawn: Vec<&Closed> = (0..choices).filter_map(any).filter(|unit| unit.candidate).collect();
            match fewest_valid(&drawn) {
                Some(best) => Some(best),
                None => draw(&all, random).cloned(),
            }
        }
        VictimRule::WindowedGreedy(window) => {
            candidates.truncate(window as usize);
            fewest_valid(&candidates)
        }
    }
}

/// Unit with the maximum score. Among equals the first, which is the one closed first.
fn most(candidates: &[&Closed], score: impl Fn(&Closed) -> f64) -> Option<Closed> {
    let by_falling_score = |a: &&&Closed, b: &&&Closed| score(b).total_cmp(&score(a));
    candidates.iter().min_by(by_falling_score).copied().cloned()
}

/// A candidate with equal probability, from up to 32 draws of all closed units, then one draw from
/// the candidates.
fn draw<'a>(all: &[&'a Closed], random: &mut impl Rng) -> Option<&'a Closed> {
    for _ in 0..32 {
        let drawn = *all.get(position(all.len(), random))?;
        if drawn.candidate {
            return Some(drawn);
        }
    }
    let candidates: Vec<&Closed> = all.iter().copied().filter(|unit| unit.candidate).collect();
    candidates.get(position(candidates.len(), random)).copied()
}

/// Position in a list of this length, from the upper half of the product with a random number.
fn position(length: usize, random: &mut impl Rng) -> usize {
    ((u128::from(random.next_u64()) * length as u128) >> 64) as usize
}
