//! The streams of a job file, one for each instance of each job, with its plan on a drive.

use std::ops::Range;

use super::groups::group;
use super::summary::StreamSummary;
use super::{ExitScope, Job, JobError, JobFile, JobPlan};
use crate::{ScaledModel, WorkloadTarget};

/// One instance of a job with its plan.
pub struct PlannedStream<'a> {
    /// The job.
    pub job: &'a Job,
    /// Plan on the drive at full size.
    pub full: JobPlan,
    /// Plan on the scaled model, if any. Equal to `full` without a model.
    pub plan: JobPlan,
    /// Streams of the group that must have ended before this one begins (`wait_for`).
    pub waits_for: Option<Range<u16>>,
    /// Scope of `exitall` when this stream ends.
    pub ends_others: Option<ExitScope>,
    /// Number, group and description of the stream.
    pub summary: StreamSummary,
}

/// Plans every instance of every job, group after group.
pub fn plan_streams<'a>(file: &'a JobFile, target: &WorkloadTarget) -> Result<Vec<PlannedStream<'a>>, JobError> {
    let groups = group(&file.jobs);
    let mut streams: Vec<PlannedStream<'a>> = Vec::new();
    for (index, jobs) in groups.iter().enumerate() {
        let endless = target.endless && index + 1 == groups.len();
        for (job, instance) in jobs.iter().flat_map(|job| (0..job.numjobs).map(move |instance| (job, instance))) {
            let number = u16::try_from(streams.len()).expect("a job file has fewer jobs");
            let (full, mut plan) = plan_instance(job, instance, target)?;
            plan.endless |= endless && !file.is_awaited(job);
            let waits_for = job.wait_for.as_ref().map(|name| {
                let is_of = |stream: &&PlannedStream<'_>| stream.job.name == *name;
                let numbers = streams.iter().filter(is_of).map(|stream| stream.summary.stream);
                let first = numbers.clone().next().expect("the file was checked for it");
                assert!(first < number, "a job waits for one before it");
                first..first + numbers.count() as u16
            });
            let summary = StreamSummary::new(job, instance, number, index as u16, &plan);
            streams.push(PlannedStream {
                job,
                full,
                plan,
                waits_for,
                ends_others: file.exits_all().then_some(job.exit_what),
                summary,
            });
        }
    }
    let instances: usize = file.jobs.iter().map(|job| job.numjobs as usize).sum();
    assert_eq!(streams.len(), instances, "each instance of a job has a stream");
    Ok(streams)
}

/// Plans an instance of a job on the full-size drive and on the scaled model, if any.
pub(super) fn plan_instance(job: &Job, instance: u32, target: &WorkloadTarget) -> Result<(JobPlan, JobPlan), JobError> {
    let full = JobPlan::new(job, instance, *target)?;
    let plan = match target.scaled_model {
        Some(model) => shrink(job, &full, model)?,
        None => full.clone(),
    };
    assert!(plan.start_bytes < plan.device_bytes, "a stream begins on the drive");
    plan.check_map(job)?;
    Ok((full, plan))
}

fn shrink(job: &Job, full: &JobPlan, model: ScaledModel) -> Result<JobPlan, JobError> {
    let shrunk = model.shrink(full);
    if shrunk.size_bytes < shrunk.min_bytes() || shrunk.region_bytes < shrunk.min_bytes() {
        let problem = format!("the region holds no block at a scale of 1/{}", model.denominator);
        return Err(job.error("size", problem, "Enlarge the region, or use a larger scaled model"));
    }
    Ok(shrunk)
}
