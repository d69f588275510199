//! Options for data placement, replacement of writes, read-back and logs.

use super::{FioOption, ONE_TARGET, OptionKind, active_option};
use crate::fio::error::OptionError;
use crate::fio::grammar::{set_plids, set_scheme, set_sg_write_mode, set_write_mode};
use crate::fio::job::{DataPlacement, PlacementSelection};
use crate::fio::value::{KbBase, choice, number, number_in, set, switch};

/// Values of `verify` that enable it.
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
    active_option("fdp", OptionKind::Bool, "writes have a placement identifier", |job, value| {
        set(switch(value), &mut job.fdp)
    }),
    active_option(
        "dataplacement data_placement",
        OptionKind::Text,
        "none, fdp (like fdp=1) or streams (the stream is used as the placement index)",
        |job, value| {
            let choices =
                [("none", DataPlacement::None), ("fdp", DataPlacement::Fdp), ("streams", DataPlacement::Streams)];
            job.dataplacement = Some(choice(value, &choices)?);
            Ok(())
        },
    ),
    active_option(
        "plids fdp_pli",
        OptionKind::Text,
        "indices into the drive's list of placements, for example `0,2,4-6`. The default is all of them",
        set_plids,
    ),
    active_option(
        "plid_select fdp_pli_select",
        OptionKind::Text,
        "roundrobin (default), random or scheme",
        |job, value| {
            use PlacementSelection::{Random, RoundRobin, Scheme};
            job.plid_select = choice(value, &[("roundrobin", RoundRobin), ("random", Random), ("scheme", Scheme)])?;
            Ok(())
        },
    ),
    active_option(
        "dp_scheme",
        OptionKind::Text,
        "file of lines `start,end,index` for plid_select=scheme. The first range with the start of a write gives \
         its index, else 0. The path is tried as given, then beside the job file",
        set_scheme,
    ),
    active_option(
        "filename",
        OptionKind::Text,
        "one target. Its name is part of the seed of zipf, pareto and normal, as in fio",
        |job, value| {
            if value.replace("\\:", "").contains(':') {
                return Err(OptionError::new("the job has several targets", ONE_TARGET));
            }
            job.filename = Some(value.replace("\\:", ":"));
            Ok(())
        },
    ),
    active_option(
        "nrfiles nr_files",
        OptionKind::Number,
        "only 1, because the target is one region of the drive",
        |job, value| {
            if number(value, job.kb_base)? == 1 {
                return Ok(());
            }
            Err(OptionError::new("the job has several files", ONE_TARGET))
        },
    ),
    active_option(
        "kb_base",
        OptionKind::Number,
        "with 1024 (default), k is 1024 and kib is 1000, as in fio. With 1000 it is the reverse",
        |job, value| set(choice(value, &[("1024", KbBase::Binary), ("1000", KbBase::Decimal)]), &mut job.kb_base),
    ),
    active_option(
        "zonemode",
        OptionKind::Text,
        "none or strided. Strided issues `zonesize` bytes in a zone of `zonerange` bytes, skips `zoneskip` bytes, \
         and continues with the next zone",
        |job, value| {
            if value == "zbd" {
                return Err(OptionError::new(
                    "the model is not a zoned device",
                    "Use zonemode=none, and describe the requests without zones",
                ));
            }
            set(choice(value, &[("none", false), ("strided", true)]), &mut job.strides)
        },
    ),
    active_option("zonesize", OptionKind::Size, "bytes issued in each zone of zonemode=strided", |job, value| {
        set(number(value, job.kb_base), &mut job.zone_size)
    }),
    active_option("zonerange", OptionKind::Size, "length of a zone. The default is `zonesize`", |job, value| {
        set(number(value, job.kb_base), &mut job.zone_range)
    }),
    active_option("zoneskip", OptionKind::Size, "bytes between two zones", |job, value| {
        set(number(value, job.kb_base), &mut job.zone_skip)
    }),
    active_option(
        "write_mode",
        OptionKind::Text,
        "commands that replace writes: write, zeroes (a write, or a trim with `deac`), verify (a read) or uncor (no \
         effect, only with others). `write/40:zeroes/60` gives the percent of each",
        set_write_mode,
    ),
    active_option(
        "sg_write_mode",
        OptionKind::Text,
        "commands that replace writes: write, write_and_verify and write_same (writes), or verify and \
         verify_bytchk_... (reads)",
        set_sg_write_mode,
    ),
    active_option("deac", OptionKind::Bool, "with 1, `write_mode=zeroes` trims", |job, value| {
        set(switch(value), &mut job.deallocates)
    }),
    active_option(
        "num_range",
        OptionKind::Number,
        "ranges of one trim, which become consecutive trims here. `number_ios` counts them as one",
        |job, value| set(number_in(value, job.kb_base, 1, 256), &mut job.ranges_per_trim),
    ),
    active_option("file_service_type", OptionKind::Text, "any value, because there is one target", |_, _| Ok(())),
    active_option(
        "verify",
        OptionKind::Text,
        "any of fio's checksums, or 0 or none for off. The writes of a pass are read back after it, in fio's order \
         and sizes. Data is not compared, because the model stores none",
        |job, value| {
            let off = [("0", false), ("none", false)];
            let on = VERIFY_METHODS.iter().map(|name| (*name, true));
            let choices: Vec<(&str, bool)> = off.into_iter().chain(on).collect();
            set(choice(value, &choices), &mut job.verify)
        },
    ),
    active_option(
        "verify_pattern",
        OptionKind::Text,
        "any value. It switches verify on, as in fio. The pattern itself has no effect",
        |job, _| set(Ok(true), &mut job.verify),
    ),
    active_option("do_verify", OptionKind::Bool, "with 0, nothing is read back", |job, value| {
        set(switch(value), &mut job.do_verify)
    }),
    active_option(
        "verify_backlog",
        OptionKind::Number,
        "number of writes after which they are read back before the pass continues",
        |job, value| set(number(value, job.kb_base), &mut job.verify_backlog),
    ),
    active_option(
        "verify_backlog_batch",
        OptionKind::Number,
        "number of writes that are then read back. The default is verify_backlog",
        |job, value| set(number(value, job.kb_base), &mut job.verify_backlog_batch),
    ),
    active_option(
        "write_bw_log",
        OptionKind::FlagOrName,
        "each request's bandwidth goes to NAME_bw.N.log in fio's format. NAME is the value or the job's name, N is \
         fio's instance number. It needs `warp run` of this file on a device with timing",
        |job, value| set(Ok(Some(value.to_owned())), &mut job.logs.bandwidth),
    ),
    active_option(
        "write_lat_log",
        OptionKind::FlagOrName,
        "like write_bw_log, with latencies in NAME_lat.N.log and NAME_clat.N.log. NAME_slat.N.log has zeros, \
         because submission takes no time",
        |job, value| set(Ok(Some(value.to_owned())), &mut job.logs.latency),
    ),
    active_option(
        "write_iops_log",
        OptionKind::FlagOrName,
        "like write_bw_log, with requests in NAME_iops.N.log",
        |job, value| set(Ok(Some(value.to_owned())), &mut job.logs.requests),
    ),
    active_option(
        "log_avg_msec",
        OptionKind::Number,
        "window of these logs, milliseconds. They have a line per direction and window instead of a line per request",
        |job, value| set(number_in(value, job.kb_base, 0, u64::from(u32::MAX)), &mut job.logs.window_ms),
    ),
    active_option(
        "log_offset",
        OptionKind::Bool,
        "the lines contain the request's offset on the drive",
        |job, value| set(switch(value), &mut job.logs.with_offset),
    ),
    active_option("per_job_logs", OptionKind::Bool, "only 1, because each instance has its own files", |_, value| {
        if switch(value)? {
            return Ok(());
        }
        Err(OptionError::new(
            "one log file for several instances is not supported",
            "Remove it. Each instance has its own files",
        ))
    }),
];
