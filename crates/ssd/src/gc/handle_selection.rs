//! First decision of garbage collection: in which order to look at the owners.

use serde::{Deserialize, Serialize};

use crate::cast::{index, real};
use crate::gc::index::ClosedSet;
use crate::unit::ReclaimUnit;

/// First decision of garbage collection: the owner (a handle, or the shared pool) to reclaim from. If the owner that
/// comes first has nothing to reclaim, the next one in the same order is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandleSelection {
    /// No first decision: the second one looks at all reclaim units.
    Global,
    /// The owner with the most live pages for each free or invalid page in its closed reclaim units.
    HighestPressure,
    /// The owner with the most pages in closed reclaim units.
    Largest,
    /// The owner with the greatest noise: the share of its closed pages that are invalid and sit in reclaim units
    /// which still hold valid ones (see [`crate::device::Device::noise`]).
    NoisyFirst,
    /// Each owner in turn.
    RoundRobin,
}

impl HandleSelection {
    /// The owners to try, one after the other; each entry is what the second decision looks at together.
    ///
    /// `owners` are the closed sets of each owner of one reclaim group; `turn` is the owner whose turn it is in the
    /// round robin.
    pub(crate) fn order(self, owners: &[Vec<ClosedSet>], units: &[ReclaimUnit], turn: usize) -> Vec<Vec<usize>> {
        assert!(turn <= owners.len(), "owner {turn} has a turn and does not exist");
        let holders = (0..owners.len()).filter(|&owner| closed_pages(&owners[owner]) > 0);
        match self {
            HandleSelection::Global => vec![holders.collect()],
            HandleSelection::RoundRobin => {
                let mut order: Vec<usize> = holders.collect();
                let first = order.partition_point(|&owner| owner < turn);
                order.rotate_left(first);
                order.into_iter().map(|owner| vec![owner]).collect()
            }
            HandleSelection::Largest => greatest_first(holders, |owner| real(closed_pages(&owners[owner]))),
            HandleSelection::HighestPressure => greatest_first(holders, |owner| {
                let live = valid_pages(&owners[owner], units);
                real(live) / real(closed_pages(&owners[owner]) - live)
            }),
            HandleSelection::NoisyFirst => greatest_first(holders, |owner| noise(&owners[owner], units)),
        }
    }
}

/// Owners by falling score; equal scores by rising index.
fn greatest_first(holders: impl Iterator<Item = usize>, score: impl Fn(usize) -> f64) -> Vec<Vec<usize>> {
    let mut scored: Vec<(f64, usize)> = holders.map(|owner| (score(owner), owner)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().map(|(_, owner)| vec![owner]).collect()
}

fn closed_pages(sets: &[ClosedSet]) -> u64 {
    sets.iter().map(ClosedSet::pages).sum()
}

fn members<'a>(sets: &'a [ClosedSet], units: &'a [ReclaimUnit]) -> impl Iterator<Item = &'a ReclaimUnit> {
    sets.iter()
        .flat_map(|set| &set.members)
        .map(|&unit| &units[index(unit)])
}

fn valid_pages(sets: &[ClosedSet], units: &[ReclaimUnit]) -> u64 {
    members(sets, units).map(|unit| u64::from(unit.valid_pages)).sum()
}

/// Share of an owner's closed pages that are invalid and lie in units that still hold valid ones: what its
/// invalidations have scattered. A sequential stream leaves whole units invalid and is quiet; 0 to 1.
pub(crate) fn noise(sets: &[ClosedSet], units: &[ReclaimUnit]) -> f64 {
    let partly_valid = members(sets, units).filter(|unit| unit.valid_pages > 0);
    let scattered: u64 = partly_valid.map(|unit| u64::from(unit.invalid_pages())).sum();
    let closed = closed_pages(sets);
    assert!(scattered <= closed, "{scattered} of {closed} closed pages are invalid");
    real(scattered) / real(closed.max(1))
}
