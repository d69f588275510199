//! Source of cache operations: a generator or trace files.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::trace::{CacheTrace, CacheTraceFiles};
use super::{CacheOperation, OperationGenerator, WorkloadStatistics};
use workload::{WorkloadError, WorkloadTarget};

/// Number of operations that a generator draws at once, so that the cache can prefetch their
/// memory. Their lines fit the first-level cache.
const BATCH_OPERATIONS: usize = 32;

pub(crate) enum OperationSource {
    /// A generator, and operations that it has drawn ahead, the next one last.
    Generated(Box<OperationGenerator>, Vec<CacheOperation>),
    Traced(Box<CacheTrace>),
}

impl OperationSource {
    /// Reads the trace files, or generates by the statistics if the list is empty.
    pub(crate) fn new(
        statistics: &WorkloadStatistics,
        files: CacheTraceFiles,
        target: &WorkloadTarget,
        random: Xoshiro256PlusPlus,
    ) -> Result<OperationSource, WorkloadError> {
        if files.files.is_empty() {
            let generator = OperationGenerator::new(statistics, target.device_bytes, target.denominator(), random);
            return Ok(OperationSource::Generated(Box::new(generator), Vec::with_capacity(BATCH_OPERATIONS)));
        }
        Ok(OperationSource::Traced(Box::new(CacheTrace::new(files, target.endless)?)))
    }

    /// Next operation, or `None` at the end of the files. `prefetch` gets each batch of generated
    /// operations before its first one.
    pub(crate) fn next(
        &mut self,
        prefetch: impl FnOnce(&[CacheOperation]),
    ) -> Result<Option<CacheOperation>, WorkloadError> {
        match self {
            OperationSource::Generated(generator, ahead) => {
                if ahead.is_empty() {
                    ahead.extend((0..BATCH_OPERATIONS).map(|_| generator.next()));
                    ahead.reverse();
                    prefetch(ahead);
                }
                Ok(ahead.pop())
            }
            OperationSource::Traced(trace) => trace.next(),
        }
    }

    /// Number of skipped lines.
    pub(crate) fn bad_lines(&self) -> u64 {
        match self {
            OperationSource::Generated(..) => 0,
            OperationSource::Traced(trace) => trace.bad_lines(),
        }
    }

    /// Fraction of the files already read.
    pub(crate) fn share_done(&self) -> Option<f64> {
        match self {
            OperationSource::Generated(..) => None,
            OperationSource::Traced(trace) => trace.share_done(),
        }
    }
}
