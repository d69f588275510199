//! Complete measurements of a run in virtual time.

use super::measure::{JobResult, RequestLog};
use super::replay::TracePace;
use super::series::TimedSeries;

#[derive(Clone, Debug)]
pub struct TimedResult {
    /// Jobs, in the order of the job file.
    pub jobs: Vec<JobResult>,
    /// Requests and garbage collection over time.
    pub series: TimedSeries,
    /// Pace of a block trace. `None` for another workload.
    pub trace: Option<TracePace>,
    /// Request details, if enabled for an observer.
    pub request_log: Option<RequestLog>,
}

impl TimedResult {
    /// Returns jobs of this name, or all.
    pub fn named(&self, name: Option<&str>) -> impl Iterator<Item = (usize, &JobResult)> {
        let is = move |job: &JobResult| name.is_none_or(|name| job.name == name);
        self.jobs.iter().enumerate().filter(move |(_, job)| is(job))
    }
}
