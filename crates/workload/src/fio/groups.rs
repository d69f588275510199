//! The groups of a job file, and checks that jobs can run together and without a clock.

use super::{Job, JobError, JobFile};

/// Splits the jobs of a file into groups. Each `stonewall` begins a group.
pub(super) fn group(jobs: &[Job]) -> Vec<&[Job]> {
    let mut groups = Vec::new();
    let mut first = 0;
    for (index, job) in jobs.iter().enumerate().skip(1) {
        if job.stonewall {
            groups.push(&jobs[first..index]);
            first = index;
        }
    }
    groups.push(&jobs[first..]);
    let in_groups: usize = groups.iter().map(|group| group.len()).sum();
    assert_eq!(in_groups, jobs.len(), "each job is in one group");
    groups
}

/// Checks that all jobs can run without a clock.
///
/// # Errors
/// Fails if sharing or ending a job needs a clock.
pub fn check_untimed(file: &JobFile) -> Result<(), JobError> {
    let groups = group(&file.jobs);
    for (index, jobs) in groups.iter().enumerate() {
        check_group(jobs)?;
        check_without_clock(file, jobs, index + 1 == groups.len())?;
    }
    Ok(())
}

/// Refuses options that need a device with timing.
fn check_without_clock(file: &JobFile, jobs: &[Job], is_last: bool) -> Result<(), JobError> {
    for job in jobs {
        if job.latency_goal.target_us > 0 {
            let problem = "a latency needs a clock, which a device without timing does not have";
            let remedy = "Set the expected iodepth instead, or run the file on a device with timing";
            return Err(job.error("latency_target", problem, remedy));
        }
        if job.time_based && file.is_awaited(job) {
            let problem = "without a clock, a time_based job never ends, and another job waits for it";
            let remedy = "Set io_size instead of time_based, or run the file on a device with timing";
            return Err(job.error("time_based", problem, remedy));
        }
        if job.time_based && !is_last {
            let problem = "without a clock, a time_based job never ends, and the jobs behind the stonewall never \
                           start";
            let remedy = "Set io_size instead of time_based, or run the file on a device with timing";
            return Err(job.error("time_based", problem, remedy));
        }
        if job.startdelay_us.max(job.startdelay_latest_us) > 0 {
            let problem = "a delay needs a clock, which a device without timing does not have";
            let remedy = "Order the jobs with stonewall, or run the file on a device with timing";
            return Err(job.error("startdelay", problem, remedy));
        }
    }
    Ok(())
}

/// Checks that either all jobs of a group have comparable flows or none has a flow.
fn check_group(jobs: &[Job]) -> Result<(), JobError> {
    let first = &jobs[0];
    for job in jobs {
        if job.flow.is_some() != first.flow.is_some() {
            let problem = format!("the job runs together with [{}], but only one of the two has a flow", first.name);
            return Err(job.error("flow", problem, "Give both a flow or neither, or separate them with stonewall"));
        }
        if job.flow.is_some() && job.flow_id != first.flow_id {
            let problem =
                format!("the flow_id differs from that of [{}], so their flows cannot be compared", first.name);
            return Err(job.error("flow_id", problem, "Give both the same flow_id, or separate them with stonewall"));
        }
    }
    Ok(())
}
