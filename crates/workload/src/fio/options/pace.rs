//! Options for the pace of a job, its concurrency with other jobs, and its end.

use super::{FioOption, Kind, acts};
use crate::fio::error::Complaint;
use crate::fio::job::ExitWhat;
use crate::fio::value::{
    choice, fraction, number, number_in, numbers_per_direction, set, switch, time_range_us, time_us,
};

pub(super) static OPTIONS: &[FioOption] = &[
    acts(
        "rate",
        "",
        Kind::PerDirection,
        "bytes per second: the job's share among the jobs that run with it",
        |job, value| {
            let base = job.kb_base;
            numbers_per_direction(value, &mut job.rate, |part| {
                number_in(part, base, 1, u64::MAX).map(Some)
            })
        },
    ),
    acts(
        "rate_iops",
        "",
        Kind::PerDirection,
        "requests per second: the job's share among the jobs that run with it",
        |job, value| {
            let base = job.kb_base;
            numbers_per_direction(value, &mut job.rate_iops, |part| {
                number_in(part, base, 1, u64::from(u32::MAX)).map(Some)
            })
        },
    ),
    acts(
        "rate_process",
        "",
        Kind::Text,
        "linear (default), or poisson: on a device with timing requests of a job with a rate come at random, with the same mean; elsewhere only shares count",
        |job, value| set(choice(value, &[("linear", false), ("poisson", true)]), &mut job.poisson),
    ),
    acts(
        "steadystate",
        "ss",
        Kind::Text,
        "the run goes on until its write amplification is steady, as with `--until steady`; which of fio's criteria and limits it names does not matter",
        |job, value| {
            let (criterion, limit) = value.split_once(':').unwrap_or((value, ""));
            choice(
                criterion,
                &["iops", "iops_slope", "bw", "bw_slope", "lat", "lat_slope"].map(|name| (name, ())),
            )?;
            let limit = limit.strip_suffix('%').unwrap_or(limit);
            if limit.parse::<f64>().is_ok_and(|limit| limit >= 0.0) {
                job.steadystate = true;
                return Ok(());
            }
            Err(Complaint::new(
                "a criterion without a limit",
                "write one such as iops_slope:5%",
            ))
        },
    ),
    acts(
        "rate_ignore_thinktime",
        "",
        Kind::Bool,
        "a job with `rate` does not catch up after `thinktime`",
        |job, value| set(switch(value), &mut job.rate_ignore_thinktime),
    ),
    acts(
        "flow",
        "",
        Kind::Number,
        "requests relative to the other jobs that run with it",
        |job, value| {
            job.flow = Some(number_in(value, job.kb_base, 0, 1000)?).filter(|flow| *flow > 0);
            Ok(())
        },
    ),
    acts(
        "flow_id",
        "",
        Kind::Number,
        "jobs that run together must name the same one",
        |job, value| set(number(value, job.kb_base), &mut job.flow_id),
    ),
    acts(
        "thinktime",
        "",
        Kind::Time,
        "pause after each `thinktime_blocks` requests; lowers the job's share as described above",
        |job, value| set(time_us(value, false), &mut job.thinktime_us),
    ),
    acts(
        "thinktime_blocks",
        "",
        Kind::Number,
        "requests between two pauses, default 1",
        |job, value| {
            set(
                number_in(value, job.kb_base, 1, u64::from(u32::MAX)),
                &mut job.thinktime_blocks,
            )
        },
    ),
    acts(
        "thinktime_iotime",
        "",
        Kind::Time,
        "a pause after each so long time of requests, in seconds without a suffix; with `thinktime_blocks` after whichever comes first; without timing the time is that of nominal requests",
        |job, value| set(time_us(value, true), &mut job.thinktime_iotime_us),
    ),
    acts(
        "iodepth",
        "",
        Kind::Number,
        "queue slots: without rate and flow, requests are shared out in this proportion",
        |job, value| set(number_in(value, job.kb_base, 1, 65_536), &mut job.iodepth),
    ),
    acts(
        "numjobs",
        "",
        Kind::Number,
        "so many instances of the job, each with random numbers of its own",
        |job, value| {
            job.numjobs = number_in(value, job.kb_base, 1, 4096)? as u32;
            Ok(())
        },
    ),
    acts(
        "stonewall",
        "wait_for_previous",
        Kind::Flag,
        "the job starts when all before it have ended",
        |job, value| set(switch(value), &mut job.stonewall),
    ),
    acts(
        "wait_for",
        "",
        Kind::Text,
        "the job starts when all instances of this earlier job have ended; no two jobs may have that name",
        |job, value| set(Ok(Some(value.to_owned())), &mut job.wait_for),
    ),
    acts(
        "exitall",
        "",
        Kind::Flag,
        "when a job ends, all that run with it end too; that of one job is that of all. Where the run says how much to write, jobs of the last group do not end by themselves, so it ends nothing",
        |job, value| set(switch(value), &mut job.exitall),
    ),
    acts(
        "exit_what",
        "",
        Kind::Text,
        "what ends with exitall: group (default) and stonewall, what runs together; all: jobs behind a stonewall too",
        |job, value| {
            use ExitWhat::{All, Group};
            let choices = [("group", Group), ("stonewall", Group), ("all", All)];
            set(choice(value, &choices), &mut job.exit_what)
        },
    ),
    acts(
        "latency_target",
        "",
        Kind::Time,
        "on a device with timing: searches as fio does for the deepest queue, at most `iodepth`, at which requests take no longer than this, measures one window at it and ends; refused without timing",
        |job, value| set(time_us(value, false), &mut job.latency_goal.target_us),
    ),
    acts(
        "latency_window",
        "",
        Kind::Time,
        "how long each depth of the search is tried",
        |job, value| set(time_us(value, false), &mut job.latency_goal.window_us),
    ),
    acts(
        "latency_percentile",
        "",
        Kind::Text,
        "percent of the requests that must keep `latency_target`, default 100; at 100 one that does not ends its window, and at a depth of 1 the run, with an error as in fio",
        |job, value| {
            let percent = fraction(value)?;
            if !(0.0..=100.0).contains(&percent) {
                return Err(Complaint::new(
                    format!("{percent} percent of the requests"),
                    "write a number from 0 to 100",
                ));
            }
            set(Ok(percent), &mut job.latency_goal.percent)
        },
    ),
    acts(
        "latency_run",
        "",
        Kind::Bool,
        "1: the job does not end when a depth is found; it goes on trying",
        |job, value| set(switch(value), &mut job.latency_goal.goes_on),
    ),
    acts(
        "startdelay",
        "",
        Kind::Time,
        "virtual time from the start of its group to the start of the job, `1-2` for a random one of each instance; only 0 on devices without timing",
        |job, value| {
            (job.startdelay_us, job.startdelay_latest_us) = time_range_us(value, true)?;
            Ok(())
        },
    ),
    acts(
        "ramp_time",
        "",
        Kind::Time,
        "virtual time at the start of the job that is not measured; nothing on devices without timing",
        |job, value| set(time_us(value, true), &mut job.ramp_time_us),
    ),
];
