//! Where writes go instead: the placement indices that owners were moved to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use advise::OwnerMap;
use workload::{Operation, PlacementIndex, Request};

use crate::policy::{PlacementPolicy, Placements};

/// Who owns what on the drive, and where owners were told to write.
pub(super) struct RedirectionTable {
    owners: Arc<OwnerMap>,
    /// Placement index that an owner's first write had.
    seen: Placements,
    /// By owner and what the workload says: what is written instead.
    instead: BTreeMap<(usize, PlacementIndex), PlacementIndex>,
}

impl RedirectionTable {
    /// Everything goes where the workload says.
    pub(super) fn new(owners: Arc<OwnerMap>) -> RedirectionTable {
        RedirectionTable {
            seen: vec![None; owners.owners().len()],
            owners,
            instead: BTreeMap::new(),
        }
    }

    /// Owners that have written, with the placement indices of their first writes.
    pub(super) fn seen(&self) -> impl Iterator<Item = (usize, PlacementIndex)> {
        let seen = self.seen.iter().enumerate();
        seen.filter_map(|(owner, placement)| Some((owner, (*placement)?)))
    }

    fn retag(&mut self, request: &Request, placement: Option<PlacementIndex>) -> Option<PlacementIndex> {
        let Some(owner) = self.owners.find(request.offset_bytes) else {
            return placement;
        };
        // Without a directive a write goes through the first placement handle, in any of its reclaim groups: it counts
        // as with the first index.
        let given = placement.unwrap_or(PlacementIndex::FIRST);
        self.seen[owner].get_or_insert(given);
        self.instead.get(&(owner, given)).copied().or(placement)
    }

    /// Moves an owner.
    pub(super) fn apply(&mut self, owner: usize, from: PlacementIndex, to: PlacementIndex) {
        let mut known = false;
        let all = (owner, PlacementIndex::FIRST)..=(owner, PlacementIndex(u16::MAX));
        for ((_, given), now) in self.instead.range_mut(all) {
            known |= *given == from;
            if *now == from {
                *now = to;
            }
        }
        // What the workload itself writes there moves too, unless it was moved away before.
        if !known {
            self.instead.insert((owner, from), to);
        }
        self.instead.retain(|(_, given), now| given != now);
    }
}

/// Gives writes the placement indices that their owners were moved to.
pub(super) struct Redirection {
    table: Arc<Mutex<RedirectionTable>>,
    inner: Option<Box<dyn PlacementPolicy>>,
}

impl Redirection {
    /// After another policy, if there is one.
    pub(super) fn new(table: Arc<Mutex<RedirectionTable>>, inner: Option<Box<dyn PlacementPolicy>>) -> Redirection {
        Redirection { table, inner }
    }
}

impl PlacementPolicy for Redirection {
    fn place(&mut self, requests: &[Request], page_bytes: u64, placements: &mut Placements) -> Result<(), String> {
        match &mut self.inner {
            Some(inner) => inner.place(requests, page_bytes, placements)?,
            None => placements.extend(requests.iter().map(|request| request.placement)),
        }
        let mut table = self.table.lock().expect("nobody panics with it");
        for (request, placement) in requests.iter().zip(placements) {
            if request.operation == Operation::Write {
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

    fn write(offset_bytes: u64) -> Request {
        Request {
            stream: 0,
            operation: Operation::Write,
            offset_bytes,
            bytes: 4096,
            placement: None,
        }
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
