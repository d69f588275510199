//! Sources of a lane's requests.

use workload::fio::JobStream;
use workload::trace::TimedSource;
use workload::{IoRequest, PacedHost, RequestSource, WorkloadError};

/// An instance of a job, another workload, or a trace with its times.
pub(super) enum InstanceSource {
    Job(Box<JobStream>),
    Source(Box<dyn RequestSource>),
    Trace(Box<dyn TimedSource>),
}

impl InstanceSource {
    /// Appends up to `limit` requests.
    #[inline]
    pub(super) fn fill(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<(), WorkloadError> {
        match self {
            InstanceSource::Job(stream) => _ = stream.fill(requests, limit),
            InstanceSource::Source(source) => _ = source.next_batch(requests, limit)?,
            InstanceSource::Trace(source) => _ = source.next_batch(requests, limit)?,
        }
        Ok(())
    }

    /// Returns the host of a paced workload.
    ///
    /// # Panics
    /// The workload is not paced.
    pub(super) fn paced(&mut self) -> &mut dyn PacedHost {
        let host = match self {
            InstanceSource::Job(_) | InstanceSource::Trace(_) => None,
            InstanceSource::Source(source) => source.paced(),
        };
        host.expect("a workload with a pace of its own")
    }

    /// Produced share, 0 to 1. `None` if unknown or endless.
    pub(super) fn share_done(&self) -> Option<f64> {
        match self {
            InstanceSource::Job(stream) => stream.share_done(),
            InstanceSource::Source(source) => source.share_done(),
            InstanceSource::Trace(source) => source.share_done(),
        }
    }

    /// Returns true if the source measures itself. It must then not produce more requests in
    /// advance.
    pub(super) fn tells_what_it_did(&self) -> bool {
        !matches!(self, InstanceSource::Job(_))
    }

    /// Returns true if the source never ends by itself.
    pub(super) fn is_endless(&self) -> bool {
        match self {
            InstanceSource::Job(stream) => stream.plan().endless,
            InstanceSource::Source(source) => source.share_done().is_none(),
            InstanceSource::Trace(source) => source.share_done().is_none(),
        }
    }
}
