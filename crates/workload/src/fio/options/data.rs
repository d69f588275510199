//! Options for data placement, replacement of writes, read-back and logs.

use super::{FioOption, Kind, ONE_TARGET, acts};
use crate::fio::error::Complaint;
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
