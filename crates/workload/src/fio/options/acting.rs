//! Options that shape the workload, and how their values are read.

use super::{Effect, FioOption, Kind, ONE_TARGET};
use crate::fio::error::Complaint;
use crate::fio::grammar::{
    parse_range, set_bssplit, set_distribution, set_plids, set_scheme, set_sg_write_mode, set_write_mode,
};
use crate::fio::job::{ACCESSES, DataPlacement, ExitWhat, Job, PlacementSelection};
use crate::fio::value::{
    Amount, KbBase, amount, choice, fraction, number, number_in, numbers_per_direction, per_direction, signed, switch,
    time_range_us, time_us,
};

/// Values of `verify` that switch it on.
const VERIFY_METHODS: [&str; 19] = [
    "md5",
    "crc64",
    "crc32c",
    "crc32c-intel",
    "crc32",
    "crc16",
    "crc7",
    "xxhash",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "meta",
    "pattern",
    "pattern_hdr",
    "null",
];

pub(super) static OPTIONS: &[FioOption] = &[
    acts(
        "rw",
        "readwrite",
        Kind::Text,
        "read, write, trim, randread, randwrite, randtrim, rw (or readwrite), randrw, trimwrite, randtrimwrite; of a random one `randrw:8` draws an address for each eighth request only, and `rw_sequencer` says what the others do; a sequential one `write:4k` leaves holes of 4k, and `read:-8k` goes backwards with requests of 4k",
        |job, value| {
            let words: Vec<(&str, usize)> = ACCESSES
                .iter()
                .enumerate()
                .map(|(index, access)| (access.name, index))
                .collect();
            let (name, modifier) = value.split_once(':').unwrap_or((value, ""));
            let access = ACCESSES[choice(name, &words)?];
            (job.requests_per_draw, job.step_bytes) = match modifier {
                "" => (1, 0),
                step if !access.random => (1, signed(step, job.kb_base)?),
                count => (number_in(count, job.kb_base, 1, u64::from(u32::MAX))?, 0),
            };
            job.access = access;
            Ok(())
        },
    ),
    acts(
        "rw_sequencer",
        "",
        Kind::Text,
        "what the requests between two draws of `randrw:8` do: sequential (default), or identical: the same address again",
        |job, value| {
            set(
                choice(value, &[("sequential", false), ("identical", true)]),
                &mut job.repeats_address,
            )
        },
    ),
    acts(
        "bs",
        "blocksize",
        Kind::PerDirection,
        "size of a request; default 4k",
        |job, value| {
            let base = job.kb_base;
            numbers_per_direction(value, &mut job.bs, |part| number_in(part, base, 1, u64::from(u32::MAX)))
        },
    ),
    acts(
        "bsrange",
        "blocksize_range",
        Kind::PerDirection,
        "requests of random size, `1k-4k`, in multiples of the smallest",
        |job, value| {
            let base = job.kb_base;
            per_direction(value, &mut job.bs_range, |part| parse_range(part, base).map(Some))
        },
    ),
    acts(
        "bssplit",
        "",
        Kind::Text,
        "sizes and their percent of the requests, `4k/60:64k/40`, up to three such lists: reads,writes,trims; a direction with an empty list (`,4k/60:64k/40`) takes `bs`, and two lists are for trims what they are for writes; as in fio the most frequent size gets what is missing to 100, and the first of `20k-28k` is meant",
        set_bssplit,
    ),
    acts(
        "ba",
        "blockalign",
        Kind::PerDirection,
        "alignment of random requests, default their size; any other switches the random map off, as in fio",
        |job, value| {
            let base = job.kb_base;
            numbers_per_direction(value, &mut job.blockalign, |part| {
                number_in(part, base, 1, u64::from(u32::MAX)).map(Some)
            })
        },
    ),
    acts(
        "size",
        "",
        Kind::SizeOrPercent,
        "the job's region, and how much one loop issues; default the rest of the drive after `offset`; a percentage is of the whole drive",
        |job, value| {
            let size = amount(value, job.kb_base)?;
            job.size = Some(size).filter(|size| !matches!(size, Amount::Bytes(0) | Amount::Percent(0)));
            Ok(())
        },
    ),
    acts(
        "filesize",
        "",
        Kind::Size,
        "where the region ends, from the start of the drive; `size` then says how much of it one loop issues",
        |job, value| {
            let (least, most) = value.split_once(['-', ',', ':']).unwrap_or((value, value));
            let bytes = number_in(least, job.kb_base, 1, u64::MAX)?;
            if number(most, job.kb_base)? != bytes {
                return Err(Complaint::new("files of random sizes", ONE_TARGET));
            }
            job.filesize = Some(bytes);
            Ok(())
        },
    ),
    acts(
        "offset",
        "fileoffset",
        Kind::SizeOrPercent,
        "start of the region; a percentage is of the whole drive, rounded up to the smallest block",
        |job, value| set(amount(value, job.kb_base), &mut job.offset),
    ),
    acts(
        "offset_align",
        "",
        Kind::Size,
        "what a percentage in `offset` is rounded up to",
        |job, value| {
            set(
                number_in(value, job.kb_base, 1, u64::from(u32::MAX)).map(Some),
                &mut job.offset_align,
            )
        },
    ),
    acts(
        "offset_increment",
        "",
        Kind::SizeOrPercent,
        "added to `offset` for each further instance of `numjobs`; fio numbers the instances after the first downwards",
        |job, value| set(amount(value, job.kb_base), &mut job.offset_increment),
    ),
    acts(
        "io_size",
        "io_limit",
        Kind::SizeOrPercent,
        "how much to issue in total, where that is not `size`",
        |job, value| {
            let size = amount(value, job.kb_base)?;
            job.io_size = Some(size).filter(|size| !matches!(size, Amount::Bytes(0) | Amount::Percent(0)));
            Ok(())
        },
    ),
    acts(
        "number_ios",
        "",
        Kind::Number,
        "ends a loop after so many requests",
        |job, value| {
            job.number_ios = Some(number(value, job.kb_base)?).filter(|count| *count > 0);
            Ok(())
        },
    ),
    acts(
        "loops",
        "",
        Kind::Number,
        "how often the job does its `size`; each loop repeats the same random numbers, as in fio, unless `randseed` is given or `randrepeat=0`",
        |job, value| set(number_in(value, job.kb_base, 1, u64::from(u32::MAX)), &mut job.loops),
    ),
    acts(
        "time_based",
        "",
        Kind::Flag,
        "the job starts over until its `runtime` is over; without timing until the run ends",
        |job, value| set(switch(value), &mut job.time_based),
    ),
    acts(
        "runtime",
        "timeout",
        Kind::Time,
        "on a device with timing the job ends after this virtual time, after `ramp_time`; elsewhere there is no clock, so its value has no effect: the run says how much to write; `time_based` requires it",
        |job, value| set(time_us(value, true), &mut job.runtime_us),
    ),
    acts(
        "random_distribution",
        "",
        Kind::Text,
        "random, zipf:theta, pareto:h, normal:deviation (each with an optional `:center`), zoned:access/size:..., zoned_abs:access/bytes:... (of zoned ones up to three lists, as of bssplit; a direction with an empty list is uniform), sequence:2,0,1 (blocks in this order, again and again); all but random allow a block to be drawn again at once",
        set_distribution,
    ),
    acts(
        "random_sequence_stride",
        "",
        Kind::Bool,
        "1: each pass of random_distribution=sequence begins behind the blocks of the last one",
        |job, value| set(switch(value), &mut job.sequence_strides),
    ),
    acts(
        "random_generator",
        "",
        Kind::Text,
        "tausworthe or tausworthe64; fio's lfsr is refused",
        |job, value| {
            if value == "lfsr" {
                return Err(Complaint::new(
                    "the lfsr generator is not supported",
                    "write tausworthe, which also touches each block once per pass",
                ));
            }
            job.generator_64 = choice(value, &[("tausworthe", false), ("tausworthe64", true)])?;
            Ok(())
        },
    ),
    acts(
        "randrepeat",
        "allrandrepeat",
        Kind::Bool,
        "0: each loop draws new random numbers; the first loop is the same in every run anyway",
        |job, value| set(switch(value), &mut job.randrepeat),
    ),
    acts(
        "randseed",
        "",
        Kind::Number,
        "seed of all random numbers, default 0x89",
        |job, value| set(number(value, job.kb_base).map(Some), &mut job.randseed),
    ),
    acts(
        "norandommap",
        "",
        Kind::Flag,
        "random requests may hit any block; otherwise each block once per pass",
        |job, value| set(switch(value), &mut job.norandommap),
    ),
    acts(
        "percentage_random",
        "",
        Kind::PerDirection,
        "percent of a random job's requests that are random; the others continue where the last one ended",
        |job, value| {
            let base = job.kb_base;
            numbers_per_direction(value, &mut job.percentage_random, |part| {
                Ok(number_in(part, base, 0, 100)? as u32)
            })
        },
    ),
    acts(
        "rwmixread",
        "",
        Kind::Number,
        "percent of reads in rw and randrw, default 50",
        |job, value| {
            job.rwmixread = number_in(value, job.kb_base, 0, 100)? as u32;
            Ok(())
        },
    ),
    acts(
        "rwmixwrite",
        "",
        Kind::Number,
        "percent of writes in rw and randrw",
        |job, value| {
            job.rwmixread = 100 - number_in(value, job.kb_base, 0, 100)? as u32;
            Ok(())
        },
    ),
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
    acts(
        "fdp",
        "",
        Kind::Bool,
        "writes carry a placement identifier",
        |job, value| set(switch(value), &mut job.fdp),
    ),
    acts(
        "dataplacement",
        "data_placement",
        Kind::Text,
        "none, fdp (as fdp=1) or streams (the stream is taken as the placement index)",
        |job, value| {
            let choices = [
                ("none", DataPlacement::None),
                ("fdp", DataPlacement::Fdp),
                ("streams", DataPlacement::Streams),
            ];
            job.dataplacement = Some(choice(value, &choices)?);
            Ok(())
        },
    ),
    acts(
        "plids",
        "fdp_pli",
        Kind::Text,
        "indices into the drive's list of placements, `0,2,4-6`; default all of them",
        set_plids,
    ),
    acts(
        "plid_select",
        "fdp_pli_select",
        Kind::Text,
        "roundrobin (default), random, or scheme",
        |job, value| {
            use PlacementSelection::{Random, RoundRobin, Scheme};
            job.plid_select = choice(
                value,
                &[("roundrobin", RoundRobin), ("random", Random), ("scheme", Scheme)],
            )?;
            Ok(())
        },
    ),
    acts(
        "dp_scheme",
        "",
        Kind::Text,
        "file of lines `start,end,index` for plid_select=scheme: the first range that a write starts in says its index, 0 if none does; looked for where fio looks, then beside the job file",
        set_scheme,
    ),
    acts(
        "filename",
        "",
        Kind::Text,
        "one target; its name is part of the seed of zipf, pareto and normal, as in fio",
        |job, value| {
            if value.replace("\\:", "").contains(':') {
                return Err(Complaint::new("several targets in one job", ONE_TARGET));
            }
            job.filename = Some(value.replace("\\:", ":"));
            Ok(())
        },
    ),
    acts(
        "nrfiles",
        "nr_files",
        Kind::Number,
        "only 1: fio would change from file to file, which no region of a drive is",
        |job, value| {
            if number(value, job.kb_base)? == 1 {
                return Ok(());
            }
            Err(Complaint::new("several files in one job", ONE_TARGET))
        },
    ),
    acts(
        "kb_base",
        "",
        Kind::Number,
        "1024 (default): k is 1024 and kib is 1000, as in fio; 1000: the other way round",
        |job, value| {
            set(
                choice(value, &[("1024", KbBase::Binary), ("1000", KbBase::Decimal)]),
                &mut job.kb_base,
            )
        },
    ),
    acts(
        "zonemode",
        "",
        Kind::Text,
        "none, or strided: `zonesize` bytes are issued in the first `zonerange` bytes of the region (default as many), then in those behind the next `zoneskip` bytes, and so on",
        |job, value| {
            if value == "zbd" {
                return Err(Complaint::new(
                    "the model is no zoned device",
                    "write zonemode=none, and describe the requests without zones",
                ));
            }
            set(choice(value, &[("none", false), ("strided", true)]), &mut job.strides)
        },
    ),
    acts(
        "zonesize",
        "",
        Kind::Size,
        "bytes that are issued in each zone of zonemode=strided",
        |job, value| set(number(value, job.kb_base), &mut job.zone_size),
    ),
    acts(
        "zonerange",
        "",
        Kind::Size,
        "length of a zone, default `zonesize`",
        |job, value| set(number(value, job.kb_base), &mut job.zone_range),
    ),
    acts("zoneskip", "", Kind::Size, "bytes between two zones", |job, value| {
        set(number(value, job.kb_base), &mut job.zone_skip)
    }),
    acts(
        "write_mode",
        "",
        Kind::Text,
        "what takes the place of writes: write, zeroes (a write, or a trim with `deac`), verify (a read), uncor (nothing, beside others); `write/40:zeroes/60` for percent of each, by fio's generator",
        set_write_mode,
    ),
    acts(
        "sg_write_mode",
        "",
        Kind::Text,
        "what takes the place of writes: write, write_and_verify and write_same (writes), verify and verify_bytchk_... (reads)",
        set_sg_write_mode,
    ),
    acts("deac", "", Kind::Bool, "1: `write_mode=zeroes` trims", |job, value| {
        set(switch(value), &mut job.deallocates)
    }),
    acts(
        "num_range",
        "",
        Kind::Number,
        "ranges of one trim, which are trims one after the other here; `number_ios` counts them as one",
        |job, value| set(number_in(value, job.kb_base, 1, 256), &mut job.ranges_per_trim),
    ),
    acts(
        "file_service_type",
        "",
        Kind::Text,
        "any value: there is one target",
        |_, _| Ok(()),
    ),
    acts(
        "verify",
        "",
        Kind::Text,
        "any of fio's checksums: what a pass has written is read back when the pass is over, in fio's order and sizes; nothing is compared, because there is no data. A pass of a time_based job then ends, and reads and writes take the same sizes. 0 or none switches it off",
        |job, value| {
            let off = [("0", false), ("none", false)];
            let on = VERIFY_METHODS.iter().map(|name| (*name, true));
            let choices: Vec<(&str, bool)> = off.into_iter().chain(on).collect();
            set(choice(value, &choices), &mut job.verify)
        },
    ),
    acts(
        "verify_pattern",
        "",
        Kind::Text,
        "any value: as in fio it switches verify on; the pattern itself does not matter",
        |job, _| set(Ok(true), &mut job.verify),
    ),
    acts("do_verify", "", Kind::Bool, "0: nothing is read back", |job, value| {
        set(switch(value), &mut job.do_verify)
    }),
    acts(
        "verify_backlog",
        "",
        Kind::Number,
        "after so many writes they are read back before the pass goes on",
        |job, value| set(number(value, job.kb_base), &mut job.verify_backlog),
    ),
    acts(
        "verify_backlog_batch",
        "",
        Kind::Number,
        "how many are read back then; default as many as verify_backlog",
        |job, value| set(number(value, job.kb_base), &mut job.verify_backlog_batch),
    ),
    acts(
        "write_bw_log",
        "",
        Kind::FlagOrName,
        "`warp run` of this file alone on a device with timing writes each request's bandwidth to NAME_bw.N.log, in fio's format; NAME is the value or the job's name, N fio's number of the instance; refused without timing",
        |job, value| set(Ok(Some(value.to_owned())), &mut job.logs.bandwidth),
    ),
    acts(
        "write_lat_log",
        "",
        Kind::FlagOrName,
        "as write_bw_log, latencies to NAME_lat.N.log, the same to NAME_clat.N.log, and 0 to NAME_slat.N.log, because submission takes no time",
        |job, value| set(Ok(Some(value.to_owned())), &mut job.logs.latency),
    ),
    acts(
        "write_iops_log",
        "",
        Kind::FlagOrName,
        "as write_bw_log, requests to NAME_iops.N.log",
        |job, value| set(Ok(Some(value.to_owned())), &mut job.logs.requests),
    ),
    acts(
        "log_avg_msec",
        "",
        Kind::Number,
        "a line of these logs for each direction in each window of so many milliseconds, not for each request",
        |job, value| {
            set(
                number_in(value, job.kb_base, 0, u64::from(u32::MAX)),
                &mut job.logs.window_ms,
            )
        },
    ),
    acts(
        "log_offset",
        "",
        Kind::Bool,
        "the lines hold the request's offset on the drive",
        |job, value| set(switch(value), &mut job.logs.with_offset),
    ),
    acts(
        "per_job_logs",
        "",
        Kind::Bool,
        "only 1: each instance has files of its own",
        |_, value| {
            if switch(value)? {
                return Ok(());
            }
            Err(Complaint::new(
                "one file for several instances is not supported",
                "remove it: each instance has files of its own",
            ))
        },
    ),
];

type Setter = fn(&mut Job, &str) -> Result<(), Complaint>;

const fn acts(name: &'static str, aliases: &'static str, kind: Kind, help: &'static str, set: Setter) -> FioOption {
    FioOption {
        name,
        aliases,
        kind,
        help,
        effect: Effect::Acts(set),
    }
}

/// Puts a value that could be read where it belongs.
fn set<T>(value: Result<T, Complaint>, place: &mut T) -> Result<(), Complaint> {
    *place = value?;
    Ok(())
}
