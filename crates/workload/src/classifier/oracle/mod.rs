//! The oracle, a placement policy that knows the lifetime of each page. No host can do this. The
//! oracle is the reference for policies that hosts can use.
//!
//! ```text
//! second copy of the source -> Lookahead (a horizon ahead) -> lifetimes -> Spill -> groups
//!   -> placement indices
//! the source -> ClassifiedSource, which takes the next placement index for each write
//! ```
//!
//! All sources are deterministic, so a second copy of a source gives the same requests. The first
//! copy runs ahead by the horizon (ten drive writes). Its overwrites and deallocations give the
//! exact lifetime of each unit's content, or show that the lifetime exceeds the horizon. The second
//! copy is placed. The lifetimes of the next writes (a 64th of the horizon) are divided into one
//! group per placement index, so that pages of a reclaim unit die as close together as possible
//! ([`grouping`]).
//!
//! The idea is that of SepBIT's ideal scheme and its FK (Wang et al., FAST '22). FK puts blocks
//! that die in the same window of future writes, one segment long, into the same segment. The
//! oracle chooses groups of least cost instead of equal windows. FK puts all blocks that live
//! longer than its windows into one group. On a drive of a thousand reclaim units these are nearly
//! all blocks.
//!
//! The oracle's write amplification is not a lower bound. The drive collects garbage and places the
//! copies with their handle (persistently isolated) or together (initially isolated). It knows no
//! lifetimes. The oracle's result is achievable, but only a result of 1 is proven optimal.
//!
//! Memory is 8 bytes per unit and a fixed buffer, plus 8 bytes per unit of the horizon in a
//! temporary file ([`Spill`]).

mod grouping;
mod lookahead;
mod spill;

use std::collections::VecDeque;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Classifier, placement_count, units};
use crate::{PlacementIndex, RequestSource, WorkloadError, WorkloadMeasure, WorkloadTarget, within};
use lookahead::Lookahead;

/// Name of the measure that only a run with an oracle has. Its value is the share of examined
/// writes whose content outlives the horizon.
pub const ORACLE_MEASURE: &str = "classifier.beyond_horizon_share";

/// Bytes of the drive-independent memory, for the lifetimes of a few chunks and for grouping them.
pub(super) const BUFFER_BYTES: u64 = 64 * spill::CHUNK_MAX;

/// Settings of `kind = "oracle"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OracleSettings {
    /// Placement indices to use. Default is all of the drive.
    pub placement_count: Option<u16>,
    /// Lookahead, percent of the drive's capacity in units written, default 1000.
    pub horizon_percent: f64,
}

impl Default for OracleSettings {
    fn default() -> OracleSettings {
        OracleSettings { placement_count: None, horizon_percent: 1000.0 }
    }
}

impl OracleSettings {
    /// Builds the oracle. `source` is a copy of the source to place, from its beginning.
    pub(super) fn classifier<S: RequestSource + 'static>(
        &self,
        source: S,
        target: &WorkloadTarget,
    ) -> Result<Oracle, WorkloadError> {
        let percent = self.horizon_percent;
        within("classifier.horizon_percent", percent, 1.0..=10_000.0)?;
        let groups = placement_count(self.placement_count, target)?;
        let horizon = (units(target) as f64 * percent / 100.0) as u64;
        Ok(Oracle::new(Box::new(source), target, groups, horizon.max(1), &std::env::temp_dir()))
    }
}

/// Consecutive writes whose groups are chosen together.
struct Chunk {
    groups: VecDeque<u16>,
    /// Digest of the units of all writes of the chunk, in order.
    digest: u64,
}

/// Places writes by the future lifetime of their content.
pub struct Oracle {
    lookahead: Lookahead,
    group_count: u16,
    /// Chunks that were examined and are not yet completely written, in order.
    chunks: VecDeque<Chunk>,
    known: u64,
    /// Digest of the units written so far of the first chunk.
    digest: u64,
    /// Examined writes that outlive the horizon, and all examined writes.
    beyond: u64,
    total: u64,
}

impl Oracle {
    /// Creates an oracle that looks ahead by `horizon` units written and keeps temporary files in
    /// `folder`.
    fn new(
        source: Box<dyn RequestSource>,
        target: &WorkloadTarget,
        group_count: u16,
        horizon: u64,
        folder: &Path,
    ) -> Oracle {
        Oracle {
            lookahead: Lookahead::new(source, target, horizon, folder),
            group_count,
            chunks: VecDeque::new(),
            known: 0,
            digest: 0,
            beyond: 0,
            total: 0,
        }
    }

    fn learn(&mut self) -> Result<(), WorkloadError> {
        let (lifetimes, digest) = self.lookahead.next_chunk()?;
        let boundaries = grouping::boundaries(&lifetimes, self.group_count.into());
        let horizon = self.lookahead.horizon;
        self.beyond += lifetimes.iter().filter(|lifetime| **lifetime > horizon).count() as u64;
        self.total += lifetimes.len() as u64;
        self.known += lifetimes.len() as u64;
        let groups = lifetimes.iter().map(|lifetime| grouping::group(&boundaries, *lifetime));
        self.chunks.push_back(Chunk { groups: groups.collect(), digest });
        let waiting: usize = self.chunks.iter().map(|chunk| chunk.groups.len()).sum();
        assert_eq!(self.known, waiting as u64, "the chunks have other writes than the oracle counts");
        assert!(self.beyond <= self.total, "{} of {} examined writes outlive the horizon", self.beyond, self.total);
        Ok(())
    }
}

impl Classifier for Oracle {
    fn prepare(&mut self, units: u64) -> Result<(), WorkloadError> {
        while self.known < units {
            self.learn()?;
        }
        Ok(())
    }

    fn handle(&mut self, unit: u64) -> Option<PlacementIndex> {
        let chunk = self.chunks.front_mut().expect("it was prepared for this write");
        let group = chunk.groups.pop_front().expect("a chunk that is written whole is gone");
        self.known -= 1;
        self.digest = lookahead::digest(self.digest, unit);
        if chunk.groups.is_empty() {
            assert_eq!(self.digest, chunk.digest, "the source gives the same writes twice");
            self.digest = 0;
            self.chunks.pop_front();
        }
        assert!(group < self.group_count);
        Some(PlacementIndex(group))
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let beyond = self.beyond as f64 / self.total.max(1) as f64;
        vec![WorkloadMeasure::new(ORACLE_MEASURE, beyond)]
    }
}
