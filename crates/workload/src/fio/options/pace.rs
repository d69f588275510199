//! Options for the pace of a job, its concurrency with other jobs, and its end.

use super::{FioOption, OptionKind, active_option};
use crate::fio::error::OptionError;
use crate::fio::job::ExitScope;
use crate::fio::value::{
    choice, fraction, number, number_in, numbers_per_direction, set, switch, time_range_us, time_us,
};

pub(super) static OPTIONS: &[FioOption] = &[
    active_option(
        "rate",
        OptionKind::PerDirection,
        "bytes per second. They set the job's share among the jobs that run with it",
        |job, value| {
            numbers_per_direction(value, &mut job.rate, |part| number_in(part, job.kb_base, 1, u64::MAX).map(Some))
        },
    ),
    active_option(
        "rate_iops",
        OptionKind::PerDirection,
        "requests per second. They set the job's share among the jobs that run with it",
        |job, value| {
            numbers_per_direction(value, &mut job.rate_iops, |part| {
                number_in(part, job.kb_base, 1, u64::from(u32::MAX)).map(Some)
            })
        },
    ),
    active_option(
        "rate_process",
        OptionKind::Text,
        "linear (default) or poisson. With poisson, requests of a job with a rate arrive at random times, with the \
         same mean. It needs a device with timing",
        |job, value| set(choice(value, &[("linear", false), ("poisson", true)]), &mut job.poisson),
    ),
    active_option(
        "steadystate ss",
        OptionKind::Text,
        "the run continues until its write amplification is steady, as with `--steady-state`. The criterion and \
         limit themselves have no effect",
        |job, value| {
            let (criterion, limit) = value.split_once(':').unwrap_or((value, ""));
            choice(criterion, &["iops", "iops_slope", "bw", "bw_slope", "lat", "lat_slope"].map(|name| (name, ())))?;
            let limit = limit.strip_suffix('%').unwrap_or(limit);
            if limit.parse::<f64>().is_ok_and(|limit| limit >= 0.0) {
                job.steadystate = true;
                return Ok(());
            }
            Err(OptionError::new("the criterion has no limit", "Write for example iops_slope:5%"))
        },
    ),
    active_option(
        "rate_ignore_thinktime",
        OptionKind::Bool,
        "a job with `rate` does not catch up after `thinktime`",
        |job, value| set(switch(value), &mut job.rate_ignore_thinktime),
    ),
    active_option("flow", OptionKind::Number, "requests relative to the other jobs that run with it", |job, value| {
        job.flow = Some(number_in(value, job.kb_base, 0, 1000)?).filter(|flow| *flow > 0);
        Ok(())
    }),
    active_option("flow_id", OptionKind::Number, "jobs that run together need the same value", |job, value| {
        set(number(value, job.kb_base), &mut job.flow_id)
    }),
    active_option(
        "thinktime",
        OptionKind::Time,
        "pause after each `thinktime_blocks` requests. It lowers the job's share as described above",
        |job, value| set(time_us(value, false), &mut job.thinktime_us),
    ),
    active_option(
        "thinktime_blocks",
        OptionKind::Number,
        "requests between two pauses. The default is 1",
        |job, value| set(number_in(value, job.kb_base, 1, u64::from(u32::MAX)), &mut job.thinktime_blocks),
    ),
    active_option(
        "thinktime_iotime",
        OptionKind::Time,
        "time between two pauses, in seconds without a suffix. With `thinktime_blocks`, the first of both counts. \
         Without timing it is the time of nominal requests",
        |job, value| set(time_us(value, true), &mut job.thinktime_iotime_us),
    ),
    active_option(
        "iodepth",
        OptionKind::Number,
        "queue slots. Without rate and flow, requests are distributed in this proportion",
        |job, value| set(number_in(value, job.kb_base, 1, 65_536), &mut job.iodepth),
    ),
    active_option(
        "numjobs",
        OptionKind::Number,
        "number of instances of the job, each with its own random numbers",
        |job, value| {
            job.numjobs = number_in(value, job.kb_base, 1, 4096)? as u32;
            Ok(())
        },
    ),
    active_option(
        "stonewall wait_for_previous",
        OptionKind::Flag,
        "the job starts when all jobs before it have ended",
        |job, value| set(switch(value), &mut job.stonewall),
    ),
    active_option(
        "wait_for",
        OptionKind::Text,
        "the job starts when all instances of this earlier job have ended. The name must be unique",
        |job, value| set(Ok(Some(value.to_owned())), &mut job.wait_for),
    ),
    active_option(
        "exitall",
        OptionKind::Flag,
        "when a job ends, all jobs that run with it end too. One such job is enough. It has no effect on the last \
         group if the run limits the writes",
        |job, value| set(switch(value), &mut job.exitall),
    ),
    active_option(
        "exit_what",
        OptionKind::Text,
        "jobs that end with exitall. group (default) and stonewall are the jobs that run together. all includes the \
         jobs behind a stonewall",
        |job, value| {
            use ExitScope::{All, Group};
            let choices = [("group", Group), ("stonewall", Group), ("all", All)];
            set(choice(value, &choices), &mut job.exit_what)
        },
    ),
    active_option(
        "latency_target",
        OptionKind::Time,
        "searches for the deepest queue, up to `iodepth`, with requests no slower than this, as fio does. The job \
         measures one window there and ends. It needs a device with timing",
        |job, value| set(time_us(value, false), &mut job.latency_goal.target_us),
    ),
    active_option("latency_window", OptionKind::Time, "duration of each depth of the search", |job, value| {
        set(time_us(value, false), &mut job.latency_goal.window_us)
    }),
    active_option(
        "latency_percentile",
        OptionKind::Text,
        "percent of the requests within `latency_target`. At 100 (default), a slower request ends its window. At a \
         depth of 1 it ends the run with an error, as in fio",
        |job, value| {
            let percent = fraction(value)?;
            if !(0.0..=100.0).contains(&percent) {
                return Err(OptionError::new(format!("{percent} is not a percentage"), "Give a number from 0 to 100"));
            }
            set(Ok(percent), &mut job.latency_goal.percent)
        },
    ),
    active_option(
        "latency_run",
        OptionKind::Bool,
        "with 1, the job continues the search after it has found a depth",
        |job, value| set(switch(value), &mut job.latency_goal.goes_on),
    ),
    active_option(
        "startdelay",
        OptionKind::Time,
        "virtual time from the start of the group to the start of the job, or `1-2` for a random time per instance. \
         Devices without timing accept only 0",
        |job, value| {
            (job.startdelay_us, job.startdelay_latest_us) = time_range_us(value, true)?;
            Ok(())
        },
    ),
    active_option(
        "ramp_time",
        OptionKind::Time,
        "virtual time at the start of the job that is not measured. It has no effect on devices without timing",
        |job, value| set(time_us(value, true), &mut job.ramp_time_us),
    ),
];
