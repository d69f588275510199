//! Memory of the streams of a job file and cost of its zipf sums, computed before a stream is
//! built.
//!
//! Both follow from the plans. The computation itself needs little memory.

use std::collections::BTreeSet;

use super::distribution::{SkewKind, zeta_terms};
use super::plan::{AddressPlan, JobPlan, ReadBackPlan};
use super::planned::plan_instance;
use super::random_map::RandomMap;
use super::{JobError, JobFile, JobStream};
use crate::{RequestOperation, WorkloadTarget};

/// Bytes of a stream apart from region-dependent parts, for state, plans, zones and ready requests.
const STREAM_BYTES: u64 = 32 << 10;
const _: () = assert!(8 * size_of::<JobStream>() + 4 * size_of::<JobPlan>() < STREAM_BYTES as usize);
/// Maximum terms of zeta functions that a job file may sum, which takes some seconds.
const ZETA_TERMS_MAX: u64 = 1 << 28;
/// Bytes of a tree entry of a piece to read back, including the tree's free space.
const PIECE_BYTES: u64 = 48;

impl JobFile {
    /// Maximum memory of the file's streams on a drive, bytes.
    ///
    /// # Errors
    /// Fails if a job does not fit the drive or its distributions take too long to prepare.
    pub fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, JobError> {
        let mut bytes: u64 = 0;
        let mut zetas = BTreeSet::new();
        let mut terms = 0;
        for job in &self.jobs {
            for instance in 0..job.numjobs {
                let (_, plan) = plan_instance(job, instance, target)?;
                bytes = bytes.saturating_add(plan.memory_bytes());
                let AddressPlan::Skewed { kind: SkewKind::Zipf(theta), drawn_blocks, .. } = plan.addresses else {
                    continue;
                };
                if zetas.insert((theta.to_bits(), zeta_terms(drawn_blocks))) {
                    terms += zeta_terms(drawn_blocks);
                }
                if terms > ZETA_TERMS_MAX {
                    let problem = format!(
                        "the file has {} zipf distributions of different theta or size, and their preparation would \
                         take too long",
                        zetas.len()
                    );
                    return Err(job.error("random_distribution", problem, "Give the jobs the same theta and region"));
                }
            }
        }
        Ok(bytes)
    }
}

impl JobPlan {
    /// Blocks of the random map, if used. As in fio, the drawn range has one per smallest
    /// request.
    pub(super) fn map_blocks(&self) -> Option<u64> {
        let has_map = self.addresses == AddressPlan::Uniform { map: true };
        has_map.then(|| self.drawn_bytes() / self.min_bytes())
    }

    /// Maximum memory of a stream of this plan, bytes.
    fn memory_bytes(&self) -> u64 {
        let stream_bytes = STREAM_BYTES + self.map_blocks().map_or(0, RandomMap::memory_bytes);
        let pieces = self.region_bytes.div_ceil(self.blocks[RequestOperation::Write as usize].min_bytes);
        let read_back_bytes = match self.read_back {
            None => 0,
            Some(ReadBackPlan { sorted: true, .. }) => pieces.saturating_mul(PIECE_BYTES),
            Some(ReadBackPlan { backlog: Some((writes, _)), .. }) => pieces.min(writes).saturating_mul(PIECE_BYTES),
            // A copy of the stream repeats the writes.
            Some(_) => stream_bytes,
        };
        stream_bytes.saturating_add(read_back_bytes)
    }
}
