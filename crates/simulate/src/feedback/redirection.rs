//! Redirection of writes to the placement indices that feedback selects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use advise::OwnerMap;
use workload::{IoRequest, PlacementIndex, RequestOperation};

use crate::policy::{PlacementPolicy, RequestPlacements};

/// Owners of the drive's data and their redirected placements.
pub(super) struct RedirectionTable {
    owners: Arc<OwnerMap>,
    /// Placement index of each owner's first write.
    seen: RequestPlacements,
    /// Replacement by owner and the workload's placement index.
    instead: BTreeMap<(usize, PlacementIndex), PlacementIndex>,
}

impl RedirectionTable {
    /// Creates a table without redirection.
    pub(super) fn new(owners: Arc<OwnerMap>) -> RedirectionTable {
        RedirectionTable { seen: vec![None; owners.owners().len()], owners, instead: BTreeMap::new() }
    }

    /// Owners that have written, with the placement indices of their first writes.
    pub(super) fn observed_owners(&self) -> impl Iterator<Item = (usize, PlacementIndex)> {
        let seen = self.seen.iter().enumerate();
        seen.filter_map(|(owner, placement)| Some((owner, (*placement)?)))
    }

    fn retag(&mut self, request: &IoRequest, placement: Option<PlacementIndex>) -> Option<PlacementIndex> {
        let Some(owner) = self.owners.find(request.offset_bytes) else {
            return placement;
        };
        // A write without a directive goes through the first placement handle, in any of its
        // reclaim groups. It counts as one with the first index.
        let given = placement.unwrap_or(PlacementIndex::FIRST);
        self.seen[owner].get_or_insert(given);
        self.instead.get(&(owner, given)).copied().or(placement)
    }

    /// Moves the writes of an owner from one index to another.
    pub(super) fn apply(&mut self, owner: usize, from: PlacementIndex, to: PlacementIndex) {
        assert!(owner < self.seen.len(), "owner {owner} of {} is redirected", self.seen.len());
        let mut known = false;
        let all = (owner, PlacementIndex::FIRST)..=(owner, PlacementIndex(u16::MAX));
        for ((_, given), now) in self.instead.range_mut(all) {
            known |= *given == from;
            if *now == from {
                *now = to;
            }
        }
        // The workload's own writes to `from` move too, unless they were moved away before.
        if !known {
            self.instead.insert((owner, from), to);
        }
        self.instead.retain(|(_, given), now| given != now);
    }
}

/// Policy that redirects the writes of moved owners.
pub(super) struct Redirection {
    table: Arc<Mutex<RedirectionTable>>,
    inner: Option<Box<dyn PlacementPolicy>>,
}

impl Redirection {
    /// Creates the policy, applied after `inner` if given.
    pub(super) fn new(table: Arc<Mutex<RedirectionTable>>, inner: Option<Box<dyn PlacementPolicy>>) -> Redirection {
        Redirection { table, inner }
    }
}

impl PlacementPolicy for Redirection {
    fn place(
        &mut self,
        requests: &[IoRequest],
        page_bytes: u64,
        placements: &mut RequestPlacements,
    ) -> Result<(), String> {
        match &mut self.inner {
            Some(inner) => inner.place(requests, page_bytes, placements)?,
            None => placements.extend(requests.iter().map(|request| request.placement)),
        }
        let mut table = self.table.lock().expect("nobody panics with it");
        for (request, placement) in requests.iter().zip(placements) {
            if request.operation == RequestOperation::Write {
                *placement = table.retag(request, *placement);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> RedirectionTable {
        let map = OwnerMap::parse("a,0,4096\nb,4096,4096").expect("a map");
        RedirectionTable::new(Arc::new(map))
    }

    fn write(offset_bytes: u64) -> IoRequest {
        IoRequest { stream: 0, operation: RequestOperation::Write, offset_bytes, bytes: 4096, placement: None }
    }

    #[test]
    fn moves_chain_and_undo() {
        let mut table = table();
        let tag = |table: &mut RedirectionTable, offset, given: Option<u16>| {
            let placement = table.retag(&write(offset), given.map(PlacementIndex));
            placement.map(|index| index.0)
        };
        let apply = |table: &mut RedirectionTable, from, to| table.apply(0, PlacementIndex(from), PlacementIndex(to));
        assert_eq!(tag(&mut table, 0, None), None);
        apply(&mut table, 0, 2);
        assert_eq!(tag(&mut table, 0, None), Some(2));
        assert_eq!(tag(&mut table, 0, Some(0)), Some(2));
        assert_eq!(tag(&mut table, 0, Some(1)), Some(1));
        assert_eq!(tag(&mut table, 4096, Some(0)), Some(0));
        assert_eq!(tag(&mut table, 9000, Some(0)), Some(0));
        apply(&mut table, 2, 3);
        assert_eq!(tag(&mut table, 0, Some(0)), Some(3));
        apply(&mut table, 3, 0);
        assert_eq!(tag(&mut table, 0, Some(0)), Some(0));
        assert_eq!(table.seen, [Some(PlacementIndex::FIRST); 2]);
    }
}
