//! Construction of lanes: one per instance of a job, or one for another workload.

use ssd::Nanos;
use workload::WorkloadTarget;
use workload::fio::{Job, JobFile, plan_streams};

use super::job_instance::JobInstance;
use super::measure::{Goal, JobResult};
use experiment::error::LabError;
use experiment::run_options::RunSettings;

/// Creates a lane per instance of each job, and the jobs.
pub(super) fn lanes_of_jobs(
    file: &JobFile,
    target: &WorkloadTarget,
    run: &RunSettings,
) -> Result<(Vec<JobInstance>, Vec<JobResult>), LabError> {
    let planned = plan_streams(file, target)?;
    let last_group = planned.iter().map(|stream| stream.summary.group).max().unwrap_or(0);
    let writes = planned.iter().any(|stream| stream.summary.group == last_group && stream.plan.writes());
    let mut jobs: Vec<JobResult> = Vec::new();
    let mut lanes: Vec<JobInstance> = Vec::new();
    let mut without_end: Vec<(&Job, u16)> = Vec::new();
    let mut job_of_section = None;
    for stream in planned {
        let job = stream.job;
        if job_of_section != Some(job.first_thread_number) {
            job_of_section = Some(job.first_thread_number);
            jobs.push(JobResult {
                name: job.name.clone(),
                rw: job.access.name,
                request_bytes: (stream.summary.min_request_bytes, stream.summary.max_request_bytes),
                group: stream.summary.group,
                instances: job.numjobs,
                queue_depth: job.iodepth,
                from_ns: Nanos::MAX,
                latency_goal: (job.latency_goal.target_us > 0).then(|| Goal::from(job.latency_goal)),
                ..JobResult::default()
            });
        }
        let is_limited = job.runtime_us > 0 || stream.summary.group == last_group;
        let lane = JobInstance::new(stream, jobs.len() - 1, run.job_ns().filter(|_| is_limited));
        let ends = lane.is_finite() || run.drive_writes.is_some() && writes;
        if !ends {
            without_end.push((job, lane.group));
        }
        lanes.push(lane);
    }
    let instances: usize = jobs.iter().map(|job| job.instances as usize).sum();
    assert_eq!(lanes.len(), instances, "each instance of a job has a lane");
    // With `exitall` the end of one lane ends all lanes of its group.
    let is_ended = |group: u16| file.exits_all() && lanes.iter().any(|lane| lane.group == group && lane.is_finite());
    if let Some((job, _)) = without_end.iter().find(|(_, group)| !is_ended(*group)) {
        let problem = "the job never ends, and no job that runs with it ends after enough writes";
        return Err(job.error("rw", problem, "Give it a runtime").into());
    }
    Ok((lanes, jobs))
}

/// Creates the lane of a workload without job file, with its streams as jobs.
pub(super) fn lane_of_source(
    lane: JobInstance,
    run: &RunSettings,
) -> Result<(Vec<JobInstance>, Vec<JobResult>), LabError> {
    let source = lane.source().expect("the workload is no job file");
    let streams = source.streams();
    let job = |name: String| JobResult {
        name,
        instances: 1,
        queue_depth: lane.depth,
        from_ns: Nanos::MAX,
        ..JobResult::default()
    };
    let jobs = streams.into_iter().map(job).collect();
    if !lane.is_finite() && run.drive_writes.is_none() {
        let problem = "the workload never ends in virtual time. Give seconds or drive_writes in [run], or \
                       --seconds or --drive-writes";
        return Err(LabError::invalid("workload", problem));
    }
    Ok((vec![lane], jobs))
}
