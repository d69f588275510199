//! WARCIP, clustering of rewrite intervals. Source: Yang, Pei & Yang, "WARCIP: Write Amplification
//! Reduction by Clustering I/O Pages", SYSTOR '19.
//!
//! In the paper, the interval between two writes of a page predicts the lifetime of its next
//! content. The pages of a flash block should have similar intervals. Each stream of a multi-stream
//! drive is a cluster. Its centre is the mean interval of the pages in its open block. A write goes
//! to the cluster whose centre is nearest to the page's interval. A cluster restarts its mean when
//! its block is full. After a fixed number of full blocks, a cluster with more than half of the
//! writes is split if a stream is free. In any other case, a cluster that did not fill a block is
//! merged. It is closed, and its pages go to the nearest cluster from then on. Decisions follow
//! every 256 blocks, as in the comparison by SepBIT's authors (fallfish/sepbit, `trace_replay`,
//! `Warcip.java`).
//!
//! WARCIP is designed for a host above a drive with streams, so the adaptations are few. The paper
//! adds a penalty to the next interval of a page that garbage collection moved. The host cannot see
//! such moves, so the penalty is omitted. A new or deallocated page has no interval and goes to the
//! cluster with the longest intervals. The first centres are powers of four of a segment. The paper
//! uses powers of ten of pages, which are all shorter than a tick of a large drive.
//!
//! Memory is 4 bytes per unit.

use serde::{Deserialize, Serialize};

use super::last_writes::{LastWrites, segment_units};
use super::{Classifier, SEGMENT_BYTES, placement_count, units};
use crate::{PlacementIndex, WorkloadError, WorkloadMeasure, WorkloadTarget};

/// Settings of `kind = "warcip"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WarcipSettings {
    /// Placement indices to use. Default is all of the drive.
    pub placement_count: Option<u16>,
    /// Size of a block of the drive at full size, default 512 MiB. Best is the size of a reclaim
    /// unit.
    #[serde(with = "base::size")]
    pub segment_bytes: u64,
}

impl Default for WarcipSettings {
    fn default() -> WarcipSettings {
        WarcipSettings { placement_count: None, segment_bytes: SEGMENT_BYTES }
    }
}

impl WarcipSettings {
    pub(super) fn classifier(&self, target: &WorkloadTarget) -> Result<Warcip, WorkloadError> {
        let count = placement_count(self.placement_count, target)?;
        Ok(Warcip::new(units(target), count, segment_units(self.segment_bytes, target)?))
    }
}

/// Blocks that are filled between two decisions to split or merge.
const BLOCKS_OF_DECISION: u64 = 256;

#[derive(Debug, Clone, Copy)]
struct Cluster {
    placement: PlacementIndex,
    /// Mean interval of the pages in the open block, or in the last block if the open one is empty,
    /// ticks.
    centre: f64,
    pages: u64,
    /// Pages since the last decision.
    writes: u64,
    /// True if the cluster closes when its block is full.
    closes: bool,
}

/// Clusters of rewrite intervals.
#[derive(Default)]
pub struct Warcip {
    writes: LastWrites<0>,
    /// Open clusters, at least one.
    clusters: Vec<Cluster>,
    /// Placement indices without a cluster.
    free: Vec<PlacementIndex>,
    segment_units: u64,
    /// Blocks filled and pages written since the last decision.
    filled: u64,
    written: u64,
    splits: u64,
    merges: u64,
}

impl Warcip {
    /// Creates the classifier for a drive of `units` units.
    pub fn new(units: usize, placement_count: u16, segment_units: u64) -> Warcip {
        assert!(
            placement_count > 0 && segment_units > 0,
            "WARCIP has {placement_count} clusters and blocks of {segment_units} units"
        );
        let writes = LastWrites::new(units, segment_units);
        let segment_ticks = segment_units as f64 / writes.tick_units as f64;
        let mut centre = segment_ticks;
        let cluster = |index| {
            let cluster = Cluster { placement: PlacementIndex(index), centre, pages: 0, writes: 0, closes: false };
            centre *= 4.0;
            cluster
        };
        Warcip { writes, clusters: (0..placement_count).map(cluster).collect(), segment_units, ..Warcip::default() }
    }

    /// Centres of the open clusters, in units written, in the order of their placement indices.
    pub fn centres_units(&self) -> Vec<f64> {
        let mut clusters = self.clusters.clone();
        clusters.sort_by_key(|cluster| cluster.placement);
        let units = |cluster: &Cluster| cluster.centre * self.writes.tick_units as f64;
        clusters.iter().map(units).collect()
    }

    /// Returns the nearest cluster to an interval. Without an interval, the cluster with the
    /// longest ones.
    fn nearest(&self, interval: Option<f64>) -> usize {
        let distance = |cluster: &Cluster| match interval {
            Some(interval) => (cluster.centre - interval).abs(),
            None => -cluster.centre,
        };
        let clusters = self.clusters.iter().enumerate();
        let nearest = clusters.min_by(|(_, one), (_, other)| distance(one).total_cmp(&distance(other)));
        nearest.expect("the last cluster is not closed").0
    }

    fn fill(&mut self, index: usize) {
        self.clusters[index].pages = 0;
        self.filled += 1;
        if self.clusters[index].closes && self.clusters.len() > 1 {
            self.close(index);
        }
        if self.filled >= BLOCKS_OF_DECISION {
            self.decide();
        }
    }

    fn close(&mut self, index: usize) {
        assert!(self.clusters.len() > 1, "the last cluster is not closed");
        let closed = self.clusters.remove(index);
        assert!(
            !self.free.contains(&closed.placement),
            "placement {} is free, and a cluster writes to it",
            closed.placement
        );
        self.free.push(closed.placement);
        self.merges += 1;
    }

    fn decide(&mut self) {
        let busy = self.clusters.iter().position(|cluster| cluster.writes > self.written / 2);
        match busy.filter(|_| !self.free.is_empty()) {
            Some(busy) => self.split(busy),
            None => {
                let segment = self.segment_units;
                let idle = self.clusters.iter().position(|cluster| cluster.writes < segment);
                match idle.filter(|_| self.clusters.len() > 1) {
                    Some(idle) if self.clusters[idle].pages == 0 => self.close(idle),
                    Some(idle) => self.clusters[idle].closes = true,
                    None => {}
                }
            }
        }
        let written: u64 = self.clusters.iter().map(|cluster| cluster.writes).sum();
        assert!(written <= self.written, "clusters count more writes than there were");
        self.filled = 0;
        self.written = 0;
        self.clusters.iter_mut().for_each(|cluster| cluster.writes = 0);
    }

    /// Opens a cluster halfway between a busy one and the next longer one. Without a longer one,
    /// the new centre is twice that of the busy one.
    fn split(&mut self, busy: usize) {
        let centre = self.clusters[busy].centre;
        let longer = self.clusters.iter().map(|cluster| cluster.centre);
        let next = longer.filter(|other| *other > centre).min_by(f64::total_cmp);
        let placement = self.free.pop().expect("a stream is free");
        assert!(
            self.clusters.iter().all(|cluster| cluster.placement != placement),
            "two clusters write to one placement"
        );
        self.clusters.push(Cluster {
            placement,
            centre: (centre + next.unwrap_or(3.0 * centre)) / 2.0,
            pages: 0,
            writes: 0,
            closes: false,
        });
        self.splits += 1;
    }
}

impl Classifier for Warcip {
    fn prefetch(&self, unit: u64) {
        self.writes.prefetch(unit);
    }

    fn handle(&mut self, unit: u64) -> Option<PlacementIndex> {
        let interval = self.writes.remove(unit).map(|last| last.age as f64);
        let index = self.nearest(interval);
        let cluster = &mut self.clusters[index];
        let placement = cluster.placement;
        if let Some(interval) = interval {
            cluster.centre = (cluster.centre * cluster.pages as f64 + interval) / (cluster.pages + 1) as f64;
        }
        cluster.pages += 1;
        cluster.writes += 1;
        self.written += 1;
        if cluster.pages >= self.segment_units {
            self.fill(index);
        }
        self.writes.record(unit, 0);
        let _ = self.writes.pass();
        Some(placement)
    }

    fn trim(&mut self, unit: u64) {
        let _ = self.writes.remove(unit);
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        vec![
            WorkloadMeasure::new("classifier.clusters", self.clusters.len() as f64),
            WorkloadMeasure::new("classifier.splits", self.splits as f64),
            WorkloadMeasure::new("classifier.merges", self.merges as f64),
        ]
    }
}
