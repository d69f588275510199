//! What the streams of a job file take before one is built: memory, and the sums of zipf distributions.
//!
//! Both follow from the plans. Nothing here is as large as what it counts.

use std::collections::BTreeSet;

use super::distribution::{SkewKind, zeta_terms};
use super::plan::{AddressPlan, Plan, ReadBackPlan};
use super::planned::plan_instance;
use super::random_map::RandomMap;
use super::{JobError, JobFile, JobStream};
use crate::{Operation, Target};

/// Bytes of a stream without what depends on its region: its state, its plans, its zones, and the requests that it has ready.
const STREAM_BYTES: u64 = 32 << 10;
const _: () = assert!(8 * size_of::<JobStream>() + 4 * size_of::<Plan>() < STREAM_BYTES as usize);
/// Terms of zeta functions that a job file may have added up: some seconds.
const ZETA_TERMS_MAX: u64 = 1 << 28;
/// Bytes of an entry of a tree of pieces that are to be read back, with the tree's free room.
const PIECE_BYTES: u64 = 48;

impl JobFile {
    /// Memory that its streams take on a drive at most, bytes.
    ///
    /// # Errors
    /// A job that does not fit the drive, or distributions that take too long to prepare.
    pub fn memory_bytes(&self, target: &Target) -> Result<u64, JobError> {
        let mut bytes: u64 = 0;
        let mut zetas = BTreeSet::new();
        let mut terms = 0;
        for job in &self.jobs {
            for instance in 0..job.numjobs {
                let (_, plan) = plan_instance(job, instance, target)?;
                bytes = bytes.saturating_add(plan.memory_bytes());
                let AddressPlan::Skewed {
                    kind: SkewKind::Zipf(theta),
                    drawn_blocks,
                    ..
                } = plan.addresses
                else {
                    continue;
                };
                if zetas.insert((theta.to_bits(), zeta_terms(drawn_blocks))) {
                    terms += zeta_terms(drawn_blocks);
                }
                if terms > ZETA_TERMS_MAX {
                    let problem = format!(
                        "the file has {} zipf distributions of different theta or size, whose sums take too long",
                        zetas.len()
                    );
                    return Err(job.error(
                        "random_distribution",
                        problem,
                        "let jobs have the same theta and region",
                    ));
                }
            }
        }
        Ok(bytes)
    }
}

impl Plan {
    /// Blocks of the random map, if there is one: as in fio, one for each smallest request that fits what is drawn from.
    pub(super) fn map_blocks(&self) -> Option<u64> {
        let has_map = self.addresses == AddressPlan::Uniform { map: true };
        has_map.then(|| self.drawn_bytes() / self.min_bytes())
    }

    /// Memory that a stream of it takes at most, bytes.
    fn memory_bytes(&self) -> u64 {
        let stream_bytes = STREAM_BYTES + self.map_blocks().map_or(0, RandomMap::memory_bytes);
        let pieces = self
            .region_bytes
            .div_ceil(self.blocks[Operation::Write as usize].min_bytes);
        let read_back_bytes = match self.read_back {
            None => 0,
            Some(ReadBackPlan { sorted: true, .. }) => pieces.saturating_mul(PIECE_BYTES),
            Some(ReadBackPlan {
                backlog: Some((writes, _)),
                ..
            }) => pieces.min(writes).saturating_mul(PIECE_BYTES),
            // A copy of the stream gives the writes again.
            Some(_) => stream_bytes,
        };
        stream_bytes.saturating_add(read_back_bytes)
    }
}
