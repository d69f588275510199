//! Evidence that owners need other placement identifiers: events and bytes for each owner, by the
//! placement identifier of its data.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::feed::ReallocationEvent;
use crate::owners::OwnerMap;

/// Evidence that an owner's data outlives its neighbours in the same reclaim units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct EvidenceRow {
    pub owner: usize,
    /// Placement identifier of the reclaim units in which its data was found.
    pub placement: u16,
    /// Events that named the owner, weighted by age.
    pub events: f64,
    /// Bytes moved by the collections that named the owner, weighted by age. A part of these bytes
    /// may belong to other owners.
    pub moved_bytes: f64,
    /// Number of all events that named the owner with this placement identifier, without weights.
    pub events_total: u64,
    /// Lower bound (95 %) of its share of the weighted events of this placement identifier. It is
    /// close to 1 if many events name this owner and hardly any name another.
    pub confidence: f64,
}

#[derive(Clone, Debug)]
pub struct Evidence {
    rows: BTreeMap<(usize, u16), EvidenceRow>,
    /// Factor on the weight of an event from one reading to the next.
    decay: f64,
}

impl Evidence {
    /// Creates empty evidence. An event counts half after `half_life_readings` readings.
    pub fn new(half_life_readings: f64) -> Evidence {
        Evidence { rows: BTreeMap::new(), decay: 0.5_f64.powf(1.0 / half_life_readings) }
    }

    /// Ages the evidence and adds the events of a reading. Returns the owner that each event names.
    pub fn add(&mut self, owners: &OwnerMap, events: &[ReallocationEvent]) -> Vec<Option<usize>> {
        for row in self.rows.values_mut() {
            row.events *= self.decay;
            row.moved_bytes *= self.decay;
        }
        let event_owners: Vec<Option<usize>> =
            events.iter().map(|event| event.offset_bytes.and_then(|offset| owners.find(offset))).collect();
        for (event, owner) in events.iter().zip(&event_owners) {
            let (Some(owner), Some(placement)) = (*owner, event.placement) else {
                continue;
            };
            let new = EvidenceRow { owner, placement, ..EvidenceRow::default() };
            let row = self.rows.entry((owner, placement)).or_insert(new);
            row.events += 1.0;
            row.events_total += 1;
            row.moved_bytes += event.moved_bytes.unwrap_or(0) as f64;
        }
        self.update_confidence();
        event_owners
    }

    pub fn rows(&self) -> impl Iterator<Item = &EvidenceRow> {
        self.rows.values()
    }

    pub fn row(&self, owner: usize, placement: u16) -> Option<&EvidenceRow> {
        self.rows.get(&(owner, placement))
    }

    pub fn events_of(&self, placement: u16) -> f64 {
        let rows = self.rows.values().filter(|row| row.placement == placement);
        rows.map(|row| row.events).sum()
    }

    fn update_confidence(&mut self) {
        let mut totals: BTreeMap<u16, f64> = BTreeMap::new();
        for row in self.rows.values() {
            *totals.entry(row.placement).or_default() += row.events;
        }
        for row in self.rows.values_mut() {
            row.confidence = lower_bound(row.events, totals[&row.placement]);
        }
    }
}

/// Lower end of the Wilson score interval (95 %) of a share.
fn lower_bound(of: f64, all: f64) -> f64 {
    const Z: f64 = 1.96;
    if all <= 0.0 {
        return 0.0;
    }
    let share = of / all;
    let centre = share + Z * Z / (2.0 * all);
    let spread = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).max(0.0).sqrt();
    ((centre - spread) / (1.0 + Z * Z / all)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owners::DataOwner;

    fn owners() -> OwnerMap {
        let owner = |name: &str, start: u64| DataOwner {
            name: name.to_string(),
            extents: vec![(start, start + 100)],
            placement: Some(0),
        };
        OwnerMap::new(vec![owner("one", 0), owner("two", 100)]).expect("a map")
    }

    fn event(offset_bytes: u64, placement: Option<u16>) -> ReallocationEvent {
        ReallocationEvent { timestamp: 0, placement, moved_bytes: Some(10), offset_bytes: Some(offset_bytes) }
    }

    #[test]
    fn evidence_is_counted_by_owner_and_fades() {
        let mut evidence = Evidence::new(1.0);
        let events = [event(5, Some(0)), event(150, Some(0)), event(6, Some(0)), event(7, None), event(999, Some(0))];
        assert_eq!(evidence.add(&owners(), &events), [Some(0), Some(1), Some(0), Some(0), None]);
        let row = evidence.row(0, 0).expect("a row");
        assert_eq!((row.events, row.moved_bytes, row.events_total), (2.0, 20.0, 2));
        assert!(row.confidence > evidence.row(1, 0).expect("a row").confidence);
        evidence.add(&owners(), &[]);
        assert_eq!(evidence.row(0, 0).expect("a row").events, 1.0);
    }

    /// Compares with published Wilson intervals: 0.490 to 0.943 for 8 of 10, 0.722 to 1 for 10 of
    /// 10.
    #[test]
    fn confidence_is_wilsons_lower_bound() {
        assert!((lower_bound(8.0, 10.0) - 0.490).abs() < 1e-3);
        assert!((lower_bound(10.0, 10.0) - 0.722).abs() < 1e-3);
        assert_eq!(lower_bound(0.0, 0.0), 0.0);
    }
}
