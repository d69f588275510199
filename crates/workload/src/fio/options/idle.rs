//! Rules for options that have no effect because of the job's other options.

use crate::fio::job::{BlockDistribution, DataPlacement, Job, JobOperations};

/// Options, the reason that they have no effect, and a test of whether they have one in a job.
type Rule = (&'static [&'static str], &'static str, fn(&Job) -> bool);

const RULES: &[Rule] = &[
    (&["rwmixread", "rwmixwrite"], "sets the mix of reads and writes, which only rw and randrw have", |job| {
        job.access.operations == JobOperations::ReadWrite
    }),
    (
        &["random_distribution", "percentage_random", "ba"],
        "selects random addresses, and the job is sequential",
        |job| job.access.random,
    ),
    (&["rw_sequencer"], "refines the number after the colon of a random rw", |job| job.requests_per_draw > 1),
    (&["do_verify", "verify_backlog", "verify_backlog_batch"], "refines verify", |job| job.verify),
    (&["time_based"], "needs runtime, as in fio", |job| job.runtime_us > 0),
    (&["thinktime_blocks", "thinktime_iotime", "rate_ignore_thinktime"], "refines thinktime", |job| {
        job.thinktime_us > 0
    }),
    (&["flow_id"], "refines flow", |job| job.flow.is_some()),
    (&["latency_window", "latency_percentile", "latency_run"], "refines latency_target", |job| {
        job.latency_goal.target_us > 0
    }),
    (
        &["plids", "plid_select", "dp_scheme"],
        "selects the placement of writes, which have none without fdp=1 or dataplacement",
        |job| job.placement() != DataPlacement::None,
    ),
    (&["random_sequence_stride"], "refines random_distribution=sequence", |job| {
        matches!(job.distribution, BlockDistribution::Sequence(_))
    }),
    (&["deac"], "refines write_mode=zeroes", |job| !job.write_modes.is_empty()),
    (&["log_avg_msec", "log_offset", "per_job_logs"], "refines logs over time, of which none is enabled", |job| {
        job.logs.asked_by().is_some()
    }),
];

/// Returns the reason that an option has no effect in any of these jobs, in which it is given.
pub fn idle_reason(option: &str, jobs: &[&Job]) -> Option<&'static str> {
    let (_, why, acts) = RULES.iter().find(|(names, ..)| names.contains(&option))?;
    (!jobs.iter().any(|job| acts(job))).then_some(why)
}
