//! First decision of garbage collection, the order of the owners.

use serde::{Deserialize, Serialize};

use crate::cast::{index, to_f64};
use crate::gc::index::ClosedSet;
use crate::unit::ReclaimUnit;

/// First decision of garbage collection, the owner (a handle or the shared pool) to reclaim from.
/// If the first owner has no victim, the next owner in the same order is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourcePolicy {
    /// No first decision. The second decision considers all reclaim units.
    Global,
    /// Owner with the most invalid pages per live page in its closed reclaim units. Implements
    /// pressure, the ratio of live to free space (WARP, section 4.3), such that owners of garbage
    /// pay for it. Data that invalidates whole reclaim units by itself, such as a sequential
    /// stream, is not reclaimed shortly before that. Handles that hold a reclaim unit without a
    /// valid page come first, because it costs no copies. The shared pool is not a handle and has
    /// no position in the order. Its reclaim units are considered together with those of each
    /// handle.
    HighestPressure,
}

impl SourcePolicy {
    /// Groups of owners to try in order. The second decision considers the owners of a group
    /// together.
    ///
    /// `owners` are the closed sets of each owner of one reclaim group.
    pub(crate) fn order(self, owners: &[Vec<ClosedSet>], units: &[ReclaimUnit]) -> Vec<Vec<usize>> {
        assert!(!owners.is_empty(), "a reclaim group has a shared pool");
        match self {
            SourcePolicy::Global => vec![(0..owners.len()).collect()],
            SourcePolicy::HighestPressure => {
                let holders = (0..owners.len()).filter(|&owner| closed_pages(&owners[owner]) > 0);
                let pool = owners.len() - 1;
                let (pools, handles): (Vec<usize>, Vec<usize>) = holders.partition(|&owner| owner == pool);
                if handles.is_empty() {
                    return vec![pools];
                }
                let scored = handles.into_iter().map(|owner| (pressure(&owners[owner], units), owner));
                let mut scored: Vec<((bool, f64), usize)> = scored.collect();
                scored.sort_by(|((a_free, a), a_owner), ((b_free, b), b_owner)| {
                    b_free.cmp(a_free).then(b.total_cmp(a)).then(a_owner.cmp(b_owner))
                });
                let with_pool = |owner: usize| [owner].into_iter().chain(pools.iter().copied()).collect();
                scored.into_iter().map(|(_, owner)| with_pool(owner)).collect()
            }
        }
    }
}

/// Returns true if an owner holds a reclaim unit without a valid page, and its invalid pages per
/// live page.
fn pressure(sets: &[ClosedSet], units: &[ReclaimUnit]) -> (bool, f64) {
    let live = valid_pages(sets, units);
    let closed = closed_pages(sets);
    assert!(live <= closed, "{live} of {closed} pages are valid");
    let invalid = closed - live;
    (sets.iter().any(ClosedSet::holds_unit_without_valid_page), to_f64(invalid) / to_f64(live))
}

fn closed_pages(sets: &[ClosedSet]) -> u64 {
    sets.iter().map(ClosedSet::pages).sum()
}

fn valid_pages(sets: &[ClosedSet], units: &[ReclaimUnit]) -> u64 {
    let members = sets.iter().flat_map(|set| &set.members);
    members.map(|&unit| u64::from(units[index(unit)].valid_pages)).sum()
}
