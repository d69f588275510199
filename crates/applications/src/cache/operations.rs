//! Source of cache operations: a generator or trace files.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::trace::{CacheTrace, CacheTraceFiles};
use super::{CacheOperation, OperationGenerator, WorkloadStatistics};
use workload::{WorkloadError, WorkloadTarget};

/// Source of the operations.
#[derive(Debug)]
pub(crate) enum OperationSource {
    Generated(Box<OperationGenerator>),
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
            return Ok(OperationSource::Generated(Box::new(generator)));
        }
        Ok(OperationSource::Traced(Box::new(CacheTrace::new(files, target.endless)?)))
    }

    /// Next operation, or `None` at the end of the files.
    pub(crate) fn next(&mut self) -> Result<Option<CacheOperation>, WorkloadError> {
        match self {
            OperationSource::Generated(generator) => Ok(Some(generator.next())),
            OperationSource::Traced(trace) => trace.next(),
        }
    }

    /// Number of skipped lines.
    pub(crate) fn bad_lines(&self) -> u64 {
        match self {
            OperationSource::Generated(_) => 0,
            OperationSource::Traced(trace) => trace.bad_lines(),
        }
    }

    /// Fraction of the files already read.
    pub(crate) fn share_done(&self) -> Option<f64> {
        match self {
            OperationSource::Generated(_) => None,
            OperationSource::Traced(trace) => trace.share_done(),
        }
    }
}
