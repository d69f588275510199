//! What a run in virtual time measured, all of it together.

use super::measure::{JobResult, RequestLog};
use super::replay::TracePace;
use super::series::Series;

/// What a timed run measured.
#[derive(Clone, Debug)]
pub struct TimedResult {
    /// In the order of the job file.
    pub jobs: Vec<JobResult>,
    /// What happened when.
    pub series: Series,
    /// How the requests of a block trace came; `None` of another workload.
    pub trace: Option<TracePace>,
    /// Of its requests, if somebody watches.
    pub request_log: Option<RequestLog>,
}

impl TimedResult {
    /// Jobs of this name, or all.
    pub fn named(&self, name: Option<&str>) -> impl Iterator<Item = (usize, &JobResult)> {
        let is = move |job: &JobResult| name.is_none_or(|name| job.name == name);
        self.jobs.iter().enumerate().filter(move |(_, job)| is(job))
    }
}
