//! Results of placement feedback: polls of the log, collections, and the figures derived from them.

use advise::MoveReason;
use serde::Serialize;
use workload::WorkloadMeasure;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedbackResult {
    pub owners: Vec<String>,
    pub readings: Vec<ReadingRow>,
    /// Collections in order.
    pub collections: Vec<CollectionRow>,
    /// Events dropped from the ring before any poll.
    pub events_lost: u64,
}

/// A poll of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadingRow {
    /// Bytes written by the host, without preconditioning.
    pub host_bytes: u64,
    /// Collections before the poll.
    pub collections: usize,
    /// New events by owner. The last entry counts events without owner.
    pub events: Vec<u32>,
    /// Resulting moves: owner, from, to, reason.
    pub moves: Vec<(usize, u16, u16, MoveReason)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectionRow {
    /// Bytes written by the host, without preconditioning.
    pub host_bytes: u64,
    /// Pages copied by owner. The last entry counts pages without owner.
    pub copied: Vec<u32>,
}

/// Share of the collections, at the end of a run, that measures the cost after feedback.
const AFTER_SHARE: f64 = 0.25;

impl FeedbackResult {
    /// Mean pages copied per collection: before the first poll, and over the last quarter of all
    /// collections. 0 without collections.
    pub fn copied_per_collection(&self) -> (f64, f64) {
        let mean = |rows: &[CollectionRow]| {
            let copied: u64 = rows.iter().flat_map(|row| &row.copied).map(|&pages| u64::from(pages)).sum();
            copied as f64 / rows.len().max(1) as f64
        };
        let first = self.readings.first().map_or(self.collections.len(), |reading| reading.collections);
        let last = (self.collections.len() as f64 * (1.0 - AFTER_SHARE)) as usize;
        (mean(&self.collections[..first]), mean(&self.collections[last..]))
    }

    /// Number, from 1, of the last collection that copied a page of this owner. 0 if none did.
    pub fn last_copied_at(&self, owner: usize) -> usize {
        let copied = |row: &CollectionRow| row.copied[owner] > 0;
        self.collections.iter().rposition(copied).map_or(0, |index| index + 1)
    }

    /// Name of an owner in the rows above, or "nobody".
    pub fn owner_name(&self, owner: usize) -> &str {
        self.owners.get(owner).map_or("nobody", String::as_str)
    }

    /// Figures that tables and claims can name.
    pub fn measures(&self) -> Vec<WorkloadMeasure> {
        let (before, after) = self.copied_per_collection();
        let moves = || self.readings.iter().flat_map(|reading| &reading.moves);
        let undone = moves().filter(|(.., reason)| *reason == MoveReason::Undo).count();
        let mut measures = vec![
            WorkloadMeasure::new("feedback.copied_before", before),
            WorkloadMeasure::new("feedback.copied_after", after),
            WorkloadMeasure::new("feedback.cost_ratio", if before > 0.0 { after / before } else { 0.0 }),
            WorkloadMeasure::new("feedback.readings", self.readings.len() as f64),
            WorkloadMeasure::new("feedback.moves", moves().count() as f64),
            WorkloadMeasure::new("feedback.moves_undone", undone as f64),
            WorkloadMeasure::new("feedback.events_lost", self.events_lost as f64),
        ];
        for (index, name) in self.owners.iter().enumerate() {
            let moved = |reading: &&ReadingRow| reading.moves.iter().any(|(owner, ..)| *owner == index);
            let reading = self.readings.iter().position(|reading| moved(&reading));
            let reading = reading.map_or(0.0, |reading| (reading + 1) as f64);
            measures.push(WorkloadMeasure::new(format!("feedback.{name}.moved_at"), reading));
            let last =
                WorkloadMeasure::new(format!("feedback.{name}.last_copied_at"), self.last_copied_at(index) as f64);
            measures.push(last);
        }
        measures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_collection_that_copied_an_owner_is_counted_from_one() {
        let row = |copied: [u32; 3]| CollectionRow { host_bytes: 0, copied: copied.to_vec() };
        let result = FeedbackResult {
            owners: vec!["hot".to_string(), "cold".to_string()],
            readings: Vec::new(),
            collections: vec![row([1, 0, 0]), row([5, 0, 0]), row([0, 0, 7])],
            events_lost: 0,
        };
        assert_eq!([result.last_copied_at(0), result.last_copied_at(1)], [2, 0]);
        assert_eq!(result.last_copied_at(2), 3, "nobody's");
    }
}
