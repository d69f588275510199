//! Counters of the cache, and the measures computed from them.

use crate::ratio;
use workload::WorkloadMeasure;

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CacheCounters {
    pub(super) gets: u64,
    pub(super) sets: u64,
    /// Sets after a miss.
    pub(super) lookaside_sets: u64,
    pub(super) deletes: u64,
    pub(super) dram_hits: u64,
    pub(super) soc_lookups: u64,
    pub(super) soc_hits: u64,
    pub(super) loc_lookups: u64,
    pub(super) loc_hits: u64,
    pub(super) misses: u64,
    /// Number of admitted items, and bytes of their keys and values.
    pub(super) soc_items: u64,
    pub(super) soc_item_bytes: u64,
    pub(super) loc_items: u64,
    pub(super) loc_item_bytes: u64,
    /// Bucket rewrites because of the removal of a key.
    pub(super) soc_removes: u64,
    pub(super) soc_written_bytes: u64,
    pub(super) loc_written_bytes: u64,
    /// Items evicted from DRAM that were rejected or too large.
    pub(super) rejected_items: u64,
    /// Admitted items lost by engine because too many inserts were in flight.
    pub(super) inserts_rejected: [u64; 2],
}

impl CacheCounters {
    pub(super) fn written_bytes(&self) -> u64 {
        self.soc_written_bytes + self.loc_written_bytes
    }

    /// Number of operations so far.
    pub(super) fn operations(&self) -> u64 {
        self.gets + self.sets + self.deletes
    }

    /// Inserts into an engine rejected because too many were in flight, percent.
    pub(super) fn inserts_rejected_percent(&self, engine: u16) -> f64 {
        let rejected = self.inserts_rejected[usize::from(engine)];
        let items = [self.soc_items, self.loc_items][usize::from(engine)];
        match rejected + items {
            0 => 0.0,
            all => 100.0 * rejected as f64 / all as f64,
        }
    }

    pub(super) fn measures(&self, recent: &RecentHitRatio, bad_lines: u64) -> Vec<WorkloadMeasure> {
        let flash_hits = self.soc_hits + self.loc_hits;
        let item_bytes = self.soc_item_bytes + self.loc_item_bytes;
        let values = [
            ("hit_ratio", ratio(self.dram_hits + flash_hits, self.gets)),
            ("recent.hit_ratio", recent.hit_ratio().unwrap_or(0.0)),
            ("dram.hit_ratio", ratio(self.dram_hits, self.gets)),
            ("flash.hit_ratio", ratio(flash_hits, self.gets - self.dram_hits)),
            ("soc.hit_ratio", ratio(self.soc_hits, self.soc_lookups)),
            ("loc.hit_ratio", ratio(self.loc_hits, self.loc_lookups)),
            ("soc.hit_share", ratio(self.soc_hits, self.gets)),
            ("loc.hit_share", ratio(self.loc_hits, self.gets)),
            ("gets", self.gets as f64),
            ("sets", self.sets as f64),
            ("sets.lookaside", self.lookaside_sets as f64),
            ("deletes", self.deletes as f64),
            ("misses", self.misses as f64),
            ("rejected_items", self.rejected_items as f64),
            ("soc.items", self.soc_items as f64),
            ("soc.item_bytes", self.soc_item_bytes as f64),
            ("soc.removes", self.soc_removes as f64),
            ("soc.written_bytes", self.soc_written_bytes as f64),
            ("soc.written_share", ratio(self.soc_written_bytes, self.written_bytes())),
            ("loc.items", self.loc_items as f64),
            ("loc.item_bytes", self.loc_item_bytes as f64),
            ("loc.written_bytes", self.loc_written_bytes as f64),
            ("application_write_amplification", ratio(self.written_bytes(), item_bytes)),
            ("bad_lines", bad_lines as f64),
        ];
        values.into_iter().map(|(name, value)| WorkloadMeasure::new(name, value)).collect()
    }
}

/// Recent hit ratio over the last complete interval of written bytes. An overall ratio would show
/// the initial cold phase for a long time.
pub(super) struct RecentHitRatio {
    stretch_bytes: u64,
    ends_at_bytes: u64,
    gets: u64,
    hits: u64,
    last: Option<(u64, u64)>,
}

impl RecentHitRatio {
    pub(super) fn new(stretch_bytes: u64) -> RecentHitRatio {
        RecentHitRatio { stretch_bytes, ends_at_bytes: stretch_bytes, gets: 0, hits: 0, last: None }
    }

    pub(super) fn count(&mut self, hit: bool, written_bytes: u64) {
        self.gets += 1;
        self.hits += u64::from(hit);
        if written_bytes >= self.ends_at_bytes {
            self.last = Some((self.hits, self.gets));
            (self.hits, self.gets) = (0, 0);
            self.ends_at_bytes = written_bytes + self.stretch_bytes;
        }
    }

    /// Hit ratio of the last complete interval, or of the first one so far.
    pub(super) fn hit_ratio(&self) -> Option<f64> {
        let (hits, gets) = self.last.unwrap_or((self.hits, self.gets));
        (gets > 0).then(|| hits as f64 / gets as f64)
    }
}
