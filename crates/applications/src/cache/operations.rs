//! Source of cache operations: a generator or trace files.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::trace::{Trace, TraceFiles};
use super::{CacheOperation, Generator, Statistics};
use workload::{Target, WorkloadError};

/// Source of the operations.
#[derive(Debug)]
pub(crate) enum Operations {
    Generated(Box<Generator>),
    Traced(Box<Trace>),
}

impl Operations {
    /// Reads the trace files, or generates by the statistics if the list is empty.
    pub(crate) fn new(
        statistics: &Statistics,
        files: TraceFiles,
        target: &Target,
        random: Xoshiro256PlusPlus,
    ) -> Result<Operations, WorkloadError> {
        if files.files.is_empty() {
            let generator = Generator::new(statistics, target.device_bytes, target.denominator(), random);
            return Ok(Operations::Generated(Box::new(generator)));
        }
        Ok(Operations::Traced(Box::new(Trace::new(files, target.endless)?)))
    }

    /// Next operation, or `None` at the end of the files.
    pub(crate) fn next(&mut self) -> Result<Option<CacheOperation>, WorkloadError> {
        match self {
            Operations::Generated(generator) => Ok(Some(generator.next())),
            Operations::Traced(trace) => trace.next(),
        }
    }

    /// Number of skipped lines.
    pub(crate) fn bad_lines(&self) -> u64 {
        match self {
            Operations::Generated(_) => 0,
            Operations::Traced(trace) => trace.bad_lines(),
        }
    }

    /// Fraction of the files already read.
    pub(crate) fn share_done(&self) -> Option<f64> {
        match self {
            Operations::Generated(_) => None,
            Operations::Traced(trace) => trace.share_done(),
        }
    }
}
