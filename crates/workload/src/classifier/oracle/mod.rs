//! The oracle: placement that knows when each page dies. What no host can do, to measure against what hosts do.
//!
//! ```text
//! the source, built once more -> Lookahead (a horizon ahead) -> lifetimes -> Spill -> groups -> placement indices
//! the source                  -> Classified ----------------------- asks for the next one ------^
//! ```
//!
//! All sources are deterministic, so one that is built twice gives the same requests twice. The first runs ahead by the horizon (ten
//! drive-writes), and what it overwrites or deallocates tells how long each unit's content lived: exactly, or that it lives longer than the
//! horizon. The second is placed: lifetimes of the writes to come (of a 64th of the horizon) are divided into as many groups as there are
//! placement indices, so that pages of a reclaim unit die as near to each other as possible ([`grouping`]).
//!
//! That is the idea of SepBIT's ideal scheme and its FK (Wang et al., FAST '22), which puts blocks that are invalidated in
//! the same segment's worth of future writes into the same segment, with groups by what costs least in place of equal windows: FK's windows of a
//! segment each leave everything that lives longer together, which on a drive of a thousand reclaim units is nearly everything.
//!
//! What it is not: a bound. Copies are the drive's, which places them with their handle (persistently isolated) or together (initially
//! isolated) and knows nothing of deaths; collection is the drive's too. The write amplification that it reaches is reached; that no placement
//! reaches less is not proven, but for 1.
//!
//! Memory: 8 bytes per unit, and a fixed buffer; 8 bytes per unit of the horizon in a temporary file ([`Spill`]).

mod grouping;
mod lookahead;
mod spill;

use std::collections::VecDeque;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Classifier, placement_count, units};
use crate::{Measure, PlacementIndex, Source, Target, WorkloadError, within};
use lookahead::Lookahead;

/// The measure that only a run with an oracle has: share of the writes that it has looked at whose content lives longer than the horizon.
pub const ORACLE_MEASURE: &str = "classifier.beyond_horizon_share";

/// Bytes of what does not depend on the drive: of a few chunks the lifetimes in memory, and what grouping them takes.
pub(super) const BUFFER_BYTES: u64 = 64 * spill::CHUNK_MAX;

/// Settings of `kind = "oracle"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OracleSettings {
    /// Placement indices to use; default: all of the drive.
    pub placement_count: Option<u16>,
    /// How far it looks ahead, percent of the drive's capacity in units written; default 1000.
    pub horizon_percent: f64,
}

impl Default for OracleSettings {
    fn default() -> OracleSettings {
        OracleSettings {
            placement_count: None,
            horizon_percent: 1000.0,
        }
    }
}

impl OracleSettings {
    /// `source` is the one that is to be placed, from its beginning.
    pub(super) fn classifier<S: Source + 'static>(&self, source: S, target: &Target) -> Result<Oracle, WorkloadError> {
        let percent = self.horizon_percent;
        within("classifier.horizon_percent", percent, 1.0..=10_000.0)?;
        let groups = placement_count(self.placement_count, target)?;
        let horizon = (units(target) as f64 * percent / 100.0) as u64;
        Ok(Oracle::new(
            Box::new(source),
            target,
            groups,
            horizon.max(1),
            &std::env::temp_dir(),
        ))
    }
}

/// Writes of a chunk, whose groups are chosen together.
struct Chunk {
    groups: VecDeque<u16>,
    /// Of the units of all its writes, in order.
    digest: u64,
}

/// Knows when what is written dies.
pub struct Oracle {
    lookahead: Lookahead,
    group_count: u16,
    /// Chunks that have been looked at and not been written whole, in order.
    chunks: VecDeque<Chunk>,
    /// Writes in them.
    known: u64,
    /// Of the units that were written of the first one.
    digest: u64,
    /// Writes so far whose lifetime was longer than the horizon, and all.
    beyond: u64,
    total: u64,
}

impl Oracle {
    /// Looks ahead in a source by `horizon` units written, with temporary files in a folder, for so many groups.
    fn new(source: Box<dyn Source>, target: &Target, group_count: u16, horizon: u64, folder: &Path) -> Oracle {
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
        let horizon = self.lookahead.horizon();
        self.beyond += lifetimes.iter().filter(|lifetime| **lifetime > horizon).count() as u64;
        self.total += lifetimes.len() as u64;
        self.known += lifetimes.len() as u64;
        let groups = lifetimes.iter().map(|lifetime| grouping::group(&boundaries, *lifetime));
        self.chunks.push_back(Chunk {
            groups: groups.collect(),
            digest,
        });
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

    fn measures(&self) -> Vec<Measure> {
        let beyond = self.beyond as f64 / self.total.max(1) as f64;
        vec![Measure::new(ORACLE_MEASURE, beyond)]
    }
}
