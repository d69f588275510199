//! What a closed loop did: readings of the log, collections, and the figures made of them.

use advise::Reason;
use serde::Serialize;
use workload::Measure;

/// What a closed loop did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedbackResult {
    /// Names of the owners.
    pub owners: Vec<String>,
    /// One for each reading of the log.
    pub readings: Vec<ReadingRow>,
    /// One for each collection, in their order.
    pub collections: Vec<CollectionRow>,
    /// Events that were dropped from the ring before anybody read them.
    pub events_lost: u64,
}

/// A reading of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadingRow {
    /// Bytes that the host had written, the prefill excluded.
    pub host_bytes: u64,
    /// Collections before it.
    pub collections: usize,
    /// New events, by the owner that they name; last those that name nobody.
    pub events: Vec<u32>,
    /// Moves that followed: owner, from, to, why.
    pub moves: Vec<(usize, u16, u16, Reason)>,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectionRow {
    /// Bytes that the host had written, the prefill excluded.
    pub host_bytes: u64,
    /// Pages copied, by owner; last those of nobody.
    pub copied: Vec<u32>,
}

/// The end of a run over which the cost after the readings is taken: this share of its collections.
const AFTER_SHARE: f64 = 0.25;

impl FeedbackResult {
    /// Pages copied by a collection on average: before the first reading, and over the last quarter of all collections.
    /// 0 where there was no collection.
    pub fn copied_per_collection(&self) -> (f64, f64) {
        let mean = |rows: &[CollectionRow]| {
            let copied: u64 = rows
                .iter()
                .flat_map(|row| &row.copied)
                .map(|&pages| u64::from(pages))
                .sum();
            copied as f64 / rows.len().max(1) as f64
        };
        let first = self
            .readings
            .first()
            .map_or(self.collections.len(), |reading| reading.collections);
        let last = (self.collections.len() as f64 * (1.0 - AFTER_SHARE)) as usize;
        (mean(&self.collections[..first]), mean(&self.collections[last..]))
    }

    /// Name of an owner of the rows above, or of nobody.
    pub fn owner_name(&self, owner: usize) -> &str {
        self.owners.get(owner).map_or("nobody", String::as_str)
    }

    /// The figures that tables and claims can name.
    pub fn measures(&self) -> Vec<Measure> {
        let (before, after) = self.copied_per_collection();
        let moves = || self.readings.iter().flat_map(|reading| &reading.moves);
        let undone = moves().filter(|(.., reason)| *reason == Reason::Undo).count();
        let mut measures = vec![
            Measure::new("feedback.copied_before", before),
            Measure::new("feedback.copied_after", after),
            Measure::new("feedback.cost_ratio", if before > 0.0 { after / before } else { 0.0 }),
            Measure::new("feedback.readings", self.readings.len() as f64),
            Measure::new("feedback.moves", moves().count() as f64),
            Measure::new("feedback.moves_undone", undone as f64),
            Measure::new("feedback.events_lost", self.events_lost as f64),
        ];
        for (index, name) in self.owners.iter().enumerate() {
            let moved = |reading: &&ReadingRow| reading.moves.iter().any(|(owner, ..)| *owner == index);
            let reading = self.readings.iter().position(|reading| moved(&reading));
            let reading = reading.map_or(0.0, |reading| (reading + 1) as f64);
            measures.push(Measure::new(format!("feedback.{name}.moved_at"), reading));
        }
        measures
    }
}
