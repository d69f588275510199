//! The table of fio options: what each one is called, what it does in the lab, and how its value is read.
//!
//! One row per option is the single source for reading job files, for the "nearest option" of an error and for the manual
//! (`docs/job-files.md`, whose tables a test compares with this one). An option either acts, has no effect for a stated reason
//! (it is legal, so that the same file runs under real fio), or is refused because ignoring it would change the workload.
//!
//! The table does not know about sections and inheritance; see `parse`.

use super::error::Complaint;
use super::grammar::{parse_range, set_bssplit, set_distribution, set_plids, set_scheme};
use super::job::{ACCESSES, DataPlacement, Job, PlacementSelection};
use super::value::{Amount, KbBase, amount, choice, number, number_in, per_direction, switch, time_us};

/// What an option's value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, or 0 or 1.
    Flag,
    /// 0 or 1.
    Bool,
    /// A whole number.
    Number,
    /// Bytes with a suffix.
    Size,
    /// Bytes with a suffix, or a percentage.
    SizeOrPercent,
    /// Time with a suffix.
    Time,
    /// Up to three values: read,write,trim.
    PerDirection,
    /// A word, a name or a list with a grammar of its own.
    Text,
}

impl Kind {
    fn describe(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Bool => "0 or 1",
            Self::Number => "number",
            Self::Size => "size",
            Self::SizeOrPercent => "size or %",
            Self::Time => "time",
            Self::PerDirection => "read,write,trim",
            Self::Text => "text",
        }
    }
}

/// What the lab does with an option.
#[derive(Clone, Copy)]
pub enum Effect {
    /// It shapes the workload: this sets it.
    Acts(fn(&mut Job, &str) -> Result<(), Complaint>),
    /// Legal, and nothing in the lab depends on it, for the reason in [`FioOption::help`].
    None,
    /// Legal for fio, but the lab would run another workload than fio; what to do instead.
    Refused(&'static str),
}

/// One option of fio.
#[derive(Clone, Copy)]
pub struct FioOption {
    /// fio's name.
    pub name: &'static str,
    /// fio's other names for it.
    pub aliases: &'static [&'static str],
    /// The shape of its value.
    pub kind: Kind,
    /// What it means in the lab, or why it means nothing there.
    pub help: &'static str,
    /// What the lab does with it.
    pub effect: Effect,
}

/// All options, in the order of the manual.
pub fn options() -> &'static [FioOption] {
    TABLE
}

/// The option of this name or alias.
pub fn find(name: &str) -> Option<&'static FioOption> {
    TABLE
        .iter()
        .find(|option| option.name == name || option.aliases.contains(&name))
}

/// The known name nearest to an unknown one, if any is near.
pub fn nearest(name: &str) -> Option<&'static str> {
    let names = TABLE
        .iter()
        .flat_map(|option| std::iter::once(&option.name).chain(option.aliases));
    base::nearest(name, names.copied())
}

/// The tables of the manual, as Markdown.
pub fn manual() -> String {
    let row = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let table = |title: &str, columns: &[&str], rows: String| {
        let rule = vec!["---"; columns.len()].join("|");
        format!("### {title}\n\n{}|{rule}|\n{rows}", row(columns))
    };
    let acting = TABLE.iter().filter(|option| matches!(option.effect, Effect::Acts(_)));
    let acting = acting.map(|option| row(&[&option.names(), option.kind.describe(), option.help]));
    let refused = TABLE.iter().filter_map(|option| match option.effect {
        Effect::Refused(remedy) => Some(row(&[&option.names(), option.help, remedy])),
        Effect::Acts(_) | Effect::None => None,
    });
    let silent: Vec<&FioOption> = TABLE
        .iter()
        .filter(|option| matches!(option.effect, Effect::None))
        .collect();
    let silent = silent.chunk_by(|a, b| a.help == b.help).map(|group| {
        let names: Vec<String> = group.iter().map(|option| option.names()).collect();
        row(&[group[0].help, &names.join(", ")])
    });
    [
        table(
            "Options that act",
            &["option", "value", "meaning in the lab"],
            acting.collect(),
        ),
        table(
            "Options that are refused",
            &["option", "why", "instead"],
            refused.collect(),
        ),
        table("Options without effect", &["why", "options"], silent.collect()),
    ]
    .join("\n")
}

impl FioOption {
    /// The name and the aliases, as Markdown.
    fn names(&self) -> String {
        let names = std::iter::once(&self.name)
            .chain(self.aliases)
            .map(|name| format!("`{name}`"));
        names.collect::<Vec<_>>().join(", ")
    }
}

type Setter = fn(&mut Job, &str) -> Result<(), Complaint>;

const fn acts(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    help: &'static str,
    set: Setter,
) -> FioOption {
    FioOption {
        name,
        aliases,
        kind,
        help,
        effect: Effect::Acts(set),
    }
}

const fn refused(
    name: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
    remedy: &'static str,
) -> FioOption {
    FioOption {
        name,
        aliases,
        kind: Kind::Text,
        help,
        effect: Effect::Refused(remedy),
    }
}

const fn silent(name: &'static str, aliases: &'static [&'static str], help: &'static str) -> FioOption {
    // Their values are not looked at, so it does not matter whether there is one.
    FioOption {
        name,
        aliases,
        kind: Kind::Flag,
        help,
        effect: Effect::None,
    }
}

// Reasons for having no effect; options of the same reason stand together in the table and in the manual.
const LABEL: &str = "labels for people and reports; the section's name is the job's name";
const TARGET: &str = "says which file real fio opens and how it makes it; the lab's target is always the whole model";
const ENGINE: &str = "says how real fio hands requests to the kernel or the driver; the lab calls the model";
const PROCESS: &str = "says how real fio's processes run on its machine";
const REPORT: &str = "says what fio measures, logs and prints; the lab's reports are its own";
const DATA: &str = "says what the data looks like; the lab stores none";
const VERIFY: &str = "refines verify, which is refused itself";
const FLUSH: &str = "flushes and barriers; the model's writes are on flash when they are done";
const LIMITS: &str = "limits that need a clock; they only stop or report a run of real fio";
const TIMING: &str = "says when within a second requests go out; only the shares of the jobs count in the lab";
const MEMORY: &str = "says where fio's buffers are";
const ERRORS: &str = "says what fio does after an error; the model reports none that a job could continue from";
const FINISH: &str = "refines exitall, which is refused itself, or says what an error ends";
const PROTECTION: &str = "protection information and metadata; the model has none";
const MAP: &str = "the random map always fits";
const REPLAY: &str = "refines read_iolog, which is refused itself";
const ZONED_DEVICE: &str = "refines zonemode and zonesize, which are refused themselves";
const FILES: &str = "refines nrfiles or a file system; the target is one device";

const ONE_TARGET: &str = "one target per job: write one section per target";
const NO_VERIFY: &str = "remove it: the lab stores no data, so reading back would check nothing";
const REPLAY_INSTEAD: &str = "give the trace itself as the workload, not through a job file";

static TABLE: &[FioOption] = &[
    acts(
        "rw",
        &["readwrite"],
        Kind::Text,
        "read, write, trim, randread, randwrite, randtrim, rw (or readwrite), randrw, trimwrite, randtrimwrite; fio's modifiers after a colon are refused",
        |job, value| {
            let words: Vec<(&str, usize)> = ACCESSES
                .iter()
                .enumerate()
                .map(|(index, access)| (access.name, index))
                .collect();
            if value.contains(':') {
                return Err(Complaint::new(
                    "a modifier after the colon is not supported",
                    "drop it: `rw=write` steps block by block, `rw=randwrite` draws each block",
                ));
            }
            job.access = ACCESSES[choice(value, &words)?];
            Ok(())
        },
    ),
    acts(
        "bs",
        &["blocksize"],
        Kind::PerDirection,
        "size of a request; default 4k",
        |job, value| {
            let base = job.kb_base;
            per_direction(value, &mut job.bs, |part| number_in(part, base, 1, u64::from(u32::MAX)))
        },
    ),
    acts(
        "bsrange",
        &["blocksize_range"],
        Kind::PerDirection,
        "requests of random size, `1k-4k`, in multiples of the smallest",
        |job, value| {
            let base = job.kb_base;
            per_direction(value, &mut job.bs_range, |part| parse_range(part, base).map(Some))
        },
    ),
    acts(
        "bssplit",
        &[],
        Kind::Text,
        "sizes and their percent of the requests, `4k/60:64k/40`, up to three such lists",
        set_bssplit,
    ),
    acts(
        "ba",
        &["blockalign"],
        Kind::PerDirection,
        "alignment of random requests, default their size; any other switches the random map off, as in fio",
        |job, value| {
            let base = job.kb_base;
            per_direction(value, &mut job.blockalign, |part| {
                number_in(part, base, 1, u64::from(u32::MAX)).map(Some)
            })
        },
    ),
    acts(
        "size",
        &[],
        Kind::SizeOrPercent,
        "the job's region, and how much one loop issues; default the rest of the drive after `offset`; a percentage is of the whole drive",
        |job, value| {
            let size = amount(value, job.kb_base)?;
            job.size = Some(size).filter(|size| !matches!(size, Amount::Bytes(0) | Amount::Percent(0)));
            Ok(())
        },
    ),
    acts(
        "offset",
        &["fileoffset"],
        Kind::SizeOrPercent,
        "start of the region; a percentage is of the whole drive, rounded up to the smallest block",
        |job, value| {
            job.offset = amount(value, job.kb_base)?;
            Ok(())
        },
    ),
    acts(
        "offset_align",
        &[],
        Kind::Size,
        "what a percentage in `offset` is rounded up to",
        |job, value| {
            job.offset_align = Some(number_in(value, job.kb_base, 1, u64::from(u32::MAX))?);
            Ok(())
        },
    ),
    acts(
        "offset_increment",
        &[],
        Kind::SizeOrPercent,
        "added to `offset` for each further instance of `numjobs`; fio numbers the instances after the first downwards",
        |job, value| {
            job.offset_increment = amount(value, job.kb_base)?;
            Ok(())
        },
    ),
    acts(
        "io_size",
        &["io_limit"],
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
        &[],
        Kind::Number,
        "ends a loop after so many requests",
        |job, value| {
            job.number_ios = Some(number(value, job.kb_base)?).filter(|count| *count > 0);
            Ok(())
        },
    ),
    acts(
        "loops",
        &[],
        Kind::Number,
        "how often the job does its `size`; each loop repeats the same random numbers, as in fio, unless `randseed` is given or `randrepeat=0`",
        |job, value| {
            job.loops = number_in(value, job.kb_base, 1, u64::from(u32::MAX))?;
            Ok(())
        },
    ),
    acts(
        "time_based",
        &[],
        Kind::Flag,
        "the job starts over until its `runtime` is over; without timing until the run ends",
        |job, value| {
            job.time_based = switch(value)?;
            Ok(())
        },
    ),
    acts(
        "runtime",
        &["timeout"],
        Kind::Time,
        "on a device with timing the job ends after this virtual time, after `ramp_time`; elsewhere there is no clock, so its value has no effect: the run says how much to write; `time_based` requires it",
        |job, value| {
            job.runtime_us = time_us(value, true)?;
            Ok(())
        },
    ),
    acts(
        "random_distribution",
        &[],
        Kind::Text,
        "random, zipf:theta, pareto:h, normal:deviation (each with an optional `:center`), zoned:access/size:..., zoned_abs:access/bytes:...; all but random allow a block to be drawn again at once",
        set_distribution,
    ),
    acts(
        "random_generator",
        &[],
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
        &["allrandrepeat"],
        Kind::Bool,
        "0: each loop draws new random numbers; the first loop is the same in every run anyway",
        |job, value| {
            job.randrepeat = switch(value)?;
            Ok(())
        },
    ),
    acts(
        "randseed",
        &[],
        Kind::Number,
        "seed of all random numbers, default 0x89",
        |job, value| {
            job.randseed = Some(number(value, job.kb_base)?);
            Ok(())
        },
    ),
    acts(
        "norandommap",
        &[],
        Kind::Flag,
        "random requests may hit any block; otherwise each block once per pass",
        |job, value| {
            job.norandommap = switch(value)?;
            Ok(())
        },
    ),
    acts(
        "percentage_random",
        &[],
        Kind::PerDirection,
        "percent of a random job's requests that are random; the others continue where the last one ended",
        |job, value| {
            let base = job.kb_base;
            per_direction(value, &mut job.percentage_random, |part| {
                Ok(number_in(part, base, 0, 100)? as u32)
            })
        },
    ),
    acts(
        "rwmixread",
        &[],
        Kind::Number,
        "percent of reads in rw and randrw, default 50",
        |job, value| {
            job.rwmixread = number_in(value, job.kb_base, 0, 100)? as u32;
            Ok(())
        },
    ),
    acts(
        "rwmixwrite",
        &[],
        Kind::Number,
        "percent of writes in rw and randrw",
        |job, value| {
            job.rwmixread = 100 - number_in(value, job.kb_base, 0, 100)? as u32;
            Ok(())
        },
    ),
    acts(
        "rate",
        &[],
        Kind::PerDirection,
        "bytes per second: the job's share among the jobs that run with it",
        |job, value| {
            let base = job.kb_base;
            per_direction(value, &mut job.rate, |part| {
                number_in(part, base, 1, u64::MAX).map(Some)
            })
        },
    ),
    acts(
        "rate_iops",
        &[],
        Kind::PerDirection,
        "requests per second: the job's share among the jobs that run with it",
        |job, value| {
            let base = job.kb_base;
            per_direction(value, &mut job.rate_iops, |part| {
                number_in(part, base, 1, u64::from(u32::MAX)).map(Some)
            })
        },
    ),
    acts(
        "rate_ignore_thinktime",
        &[],
        Kind::Bool,
        "a job with `rate` does not catch up after `thinktime`",
        |job, value| {
            job.rate_ignore_thinktime = switch(value)?;
            Ok(())
        },
    ),
    acts(
        "flow",
        &[],
        Kind::Number,
        "requests relative to the other jobs that run with it",
        |job, value| {
            job.flow = Some(number_in(value, job.kb_base, 0, 1000)?).filter(|flow| *flow > 0);
            Ok(())
        },
    ),
    acts(
        "flow_id",
        &[],
        Kind::Number,
        "jobs that run together must name the same one",
        |job, value| {
            job.flow_id = number(value, job.kb_base)?;
            Ok(())
        },
    ),
    acts(
        "thinktime",
        &[],
        Kind::Time,
        "pause after each `thinktime_blocks` requests; lowers the job's share as described above",
        |job, value| {
            job.thinktime_us = time_us(value, false)?;
            Ok(())
        },
    ),
    acts(
        "thinktime_blocks",
        &[],
        Kind::Number,
        "requests between two pauses, default 1",
        |job, value| {
            job.thinktime_blocks = number_in(value, job.kb_base, 1, u64::from(u32::MAX))?;
            Ok(())
        },
    ),
    acts(
        "iodepth",
        &[],
        Kind::Number,
        "queue slots: without rate and flow, requests are shared out in this proportion",
        |job, value| {
            job.iodepth = number_in(value, job.kb_base, 1, 65_536)?;
            Ok(())
        },
    ),
    acts(
        "numjobs",
        &[],
        Kind::Number,
        "so many instances of the job, each with random numbers of its own",
        |job, value| {
            job.numjobs = number_in(value, job.kb_base, 1, 4096)? as u32;
            Ok(())
        },
    ),
    acts(
        "stonewall",
        &["wait_for_previous"],
        Kind::Flag,
        "the job starts when all before it have ended",
        |job, value| {
            job.stonewall = switch(value)?;
            Ok(())
        },
    ),
    acts(
        "startdelay",
        &[],
        Kind::Time,
        "virtual time from the start of its group to the start of the job; only 0 on devices without timing",
        |job, value| {
            job.startdelay_us = time_us(value, true)?;
            Ok(())
        },
    ),
    acts(
        "ramp_time",
        &[],
        Kind::Time,
        "virtual time at the start of the job that is not measured; nothing on devices without timing",
        |job, value| {
            job.ramp_time_us = time_us(value, true)?;
            Ok(())
        },
    ),
    acts(
        "fdp",
        &[],
        Kind::Bool,
        "writes carry a placement identifier",
        |job, value| {
            job.fdp = switch(value)?;
            Ok(())
        },
    ),
    acts(
        "dataplacement",
        &["data_placement"],
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
        &["fdp_pli"],
        Kind::Text,
        "indices into the drive's list of placements, `0,2,4-6`; default all of them",
        set_plids,
    ),
    acts(
        "plid_select",
        &["fdp_pli_select"],
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
        &[],
        Kind::Text,
        "file of lines `start,end,index` for plid_select=scheme: the first range that a write starts in says its index, 0 if none does; looked for where fio looks, then beside the job file",
        set_scheme,
    ),
    acts(
        "filename",
        &[],
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
    acts("nrfiles", &["nr_files"], Kind::Number, "only 1", |job, value| {
        if number(value, job.kb_base)? == 1 {
            return Ok(());
        }
        Err(Complaint::new("several files in one job", ONE_TARGET))
    }),
    acts(
        "kb_base",
        &[],
        Kind::Number,
        "1024 (default): k is 1024 and kib is 1000, as in fio; 1000: the other way round",
        |job, value| {
            job.kb_base = choice(value, &[("1024", KbBase::Binary), ("1000", KbBase::Decimal)])?;
            Ok(())
        },
    ),
    acts(
        "zonemode",
        &[],
        Kind::Text,
        "only none: the model is no zoned device",
        |_, value| choice(value, &[("none", ())]),
    ),
    acts(
        "write_mode",
        &[],
        Kind::Text,
        "only write: no other NVMe command takes the place of a write",
        |_, value| choice(value, &[("write", ())]),
    ),
    acts(
        "file_service_type",
        &[],
        Kind::Text,
        "any value: there is one target",
        |_, _| Ok(()),
    ),
    acts(
        "verify",
        &[],
        Kind::Text,
        "only 0 or none: the lab stores no data, so reading back would check nothing",
        |_, value| match value {
            "0" | "none" => Ok(()),
            _ => Err(Complaint::new("fio would read everything back", NO_VERIFY)),
        },
    ),
    refused(
        "wait_for",
        &[],
        "starts a job in the middle of others",
        "order jobs with stonewall",
    ),
    refused(
        "bs_unaligned",
        &["blocksize_unaligned"],
        "requests of odd sizes, which drives refuse",
        "give sizes that are multiples of 4k",
    ),
    refused(
        "bs_is_seq_rand",
        &[],
        "makes the block size depend on the address",
        "write two jobs with a bs each",
    ),
    refused(
        "num_range",
        &[],
        "trims of several ranges",
        "write one range per trim, with bs=,,SIZE",
    ),
    refused(
        "rw_sequencer",
        &[],
        "refines modifiers of rw, which are refused too",
        "remove it",
    ),
    refused(
        "random_sequence_stride",
        &[],
        "refines random_distribution=sequence, which is refused too",
        "remove it",
    ),
    refused(
        "sprandom",
        &[],
        "fio's own preconditioning order",
        "precondition with the experiment's prefill instead",
    ),
    refused("spr_num_regions", &[], "refines sprandom", "remove it"),
    refused("spr_op", &[], "refines sprandom", "remove it"),
    refused("spr_cs", &[], "refines sprandom", "remove it"),
    refused(
        "fill_device",
        &["fill_fs"],
        "writes until the file system is full",
        "drop it and `size`: the default size is the whole drive",
    ),
    refused("filesize", &[], "another size than the region's", "give size="),
    refused("file_append", &[], "starts at the end of a file", "give offset="),
    refused("opendir", &[], "takes the files of a directory as targets", ONE_TARGET),
    refused("verify_pattern", &[], "switches verify on", NO_VERIFY),
    refused("verify_only", &[], "reads back without writing", NO_VERIFY),
    refused("experimental_verify", &[], "switches verify on", NO_VERIFY),
    refused(
        "trim_percentage",
        &[],
        "trims blocks that verify remembers",
        "use rw=trimwrite or a job of its own with rw=randtrim",
    ),
    refused("read_iolog", &[], "replays a trace", REPLAY_INSTEAD),
    refused("merge_blktrace_file", &[], "merges traces", REPLAY_INSTEAD),
    refused(
        "latency_target",
        &[],
        "changes the queue depth while running",
        "give the iodepth that you expect",
    ),
    refused(
        "thinkcycles",
        &[],
        "a pause in cycles of fio's processor",
        "write a thinktime",
    ),
    refused("thinktime_iotime", &[], "pauses by the clock", "write thinktime_blocks"),
    refused("profile", &[], "a workload built into fio", "write the job out"),
    refused(
        "steadystate",
        &["ss"],
        "ends the job when fio's measurement is steady",
        "let the experiment say how much to write",
    ),
    refused(
        "exitall",
        &[],
        "ends all jobs when the first one ends",
        "make the others time_based, or let the experiment say how much to write",
    ),
    refused(
        "zonesize",
        &[],
        "issues only a part of each zone of the region",
        "give size= and offset= of the part",
    ),
    refused("create_only", &[], "does no I/O", "remove the section"),
    silent("description", &[], LABEL),
    silent("name", &[], LABEL),
    silent("group_reporting", &[], LABEL),
    silent("new_group", &[], LABEL),
    silent("filetype", &[], TARGET),
    silent("directory", &[], TARGET),
    silent("filename_format", &[], TARGET),
    silent("unique_filename", &[], TARGET),
    silent("lockfile", &[], TARGET),
    silent("fallocate", &[], TARGET),
    silent("fadvise_hint", &[], TARGET),
    silent("overwrite", &[], TARGET),
    silent("create_serialize", &[], TARGET),
    silent("create_fsync", &[], TARGET),
    silent("create_on_open", &[], TARGET),
    silent("allow_file_create", &[], TARGET),
    silent("allow_mounted_write", &[], TARGET),
    silent("pre_read", &[], TARGET),
    silent("invalidate", &[], TARGET),
    silent("unlink", &[], TARGET),
    silent("unlink_each_loop", &[], TARGET),
    silent("openfiles", &[], FILES),
    silent("ioengine", &[], ENGINE),
    silent("direct", &[], ENGINE),
    silent("buffered", &[], ENGINE),
    silent("atomic", &[], ENGINE),
    silent("iodepth_batch", &["iodepth_batch_submit"], ENGINE),
    silent("iodepth_batch_complete_min", &["iodepth_batch_complete"], ENGINE),
    silent("iodepth_batch_complete_max", &[], ENGINE),
    silent("iodepth_low", &[], ENGINE),
    silent("serialize_overlap", &[], ENGINE),
    silent("io_submit_mode", &[], ENGINE),
    silent("cmd_type", &[], ENGINE),
    silent("fixedbufs", &[], ENGINE),
    silent("registerfiles", &[], ENGINE),
    silent("sqthread_poll", &[], ENGINE),
    silent("sqthread_poll_cpu", &[], ENGINE),
    silent("hipri", &[], ENGINE),
    silent("hipri_percentage", &[], ENGINE),
    silent("nonvectored", &[], ENGINE),
    silent("uncached", &[], ENGINE),
    silent("nowait", &[], ENGINE),
    silent("force_async", &[], ENGINE),
    silent("readfua", &[], ENGINE),
    silent("writefua", &[], ENGINE),
    silent("read_mode", &[], ENGINE),
    silent("userspace_reap", &[], ENGINE),
    silent("libaio_vectored", &[], ENGINE),
    silent("xnvme_async", &[], ENGINE),
    silent("xnvme_sync", &[], ENGINE),
    silent("xnvme_admin", &[], ENGINE),
    silent("xnvme_be", &[], ENGINE),
    silent("xnvme_mem", &[], ENGINE),
    silent("xnvme_iovec", &[], ENGINE),
    silent("xnvme_dev_nsid", &[], ENGINE),
    silent("xnvme_dev_subnqn", &[], ENGINE),
    silent("mem_size_mb", &[], ENGINE),
    silent("shm_id", &[], ENGINE),
    silent("enable_sgl", &[], ENGINE),
    silent("sge_size", &[], ENGINE),
    silent("disable_pcie_sgl_merge", &[], ENGINE),
    silent("hostnqn", &[], ENGINE),
    silent("digest_enable", &[], ENGINE),
    silent("enable_vmd", &[], ENGINE),
    silent("print_qid_mappings", &[], ENGINE),
    silent("log_flags", &[], ENGINE),
    silent("prio", &[], ENGINE),
    silent("prioclass", &[], ENGINE),
    silent("priohint", &[], ENGINE),
    silent("cmdprio_percentage", &[], ENGINE),
    silent("cmdprio_class", &[], ENGINE),
    silent("cmdprio", &[], ENGINE),
    silent("cmdprio_hint", &[], ENGINE),
    silent("cmdprio_bssplit", &[], ENGINE),
    silent("ioscheduler", &[], ENGINE),
    silent("write_hint", &[], ENGINE),
    silent("md_per_io_size", &[], PROTECTION),
    silent("pi_act", &[], PROTECTION),
    silent("pi_chk", &[], PROTECTION),
    silent("apptag", &[], PROTECTION),
    silent("apptag_mask", &[], PROTECTION),
    silent("deac", &[], PROTECTION),
    silent("thread", &[], PROCESS),
    silent("nice", &[], PROCESS),
    silent("comm", &[], PROCESS),
    silent("cpumask", &[], PROCESS),
    silent("cpus_allowed", &[], PROCESS),
    silent("cpus_allowed_policy", &[], PROCESS),
    silent("numa_cpu_nodes", &[], PROCESS),
    silent("numa_mem_policy", &[], PROCESS),
    silent("gpu_dev_id", &[], PROCESS),
    silent("cgroup", &[], PROCESS),
    silent("cgroup_nodelete", &[], PROCESS),
    silent("cgroup_weight", &[], PROCESS),
    silent("uid", &[], PROCESS),
    silent("gid", &[], PROCESS),
    silent("exec_prerun", &[], PROCESS),
    silent("exec_postrun", &[], PROCESS),
    silent("clocksource", &[], PROCESS),
    silent("gtod_cpu", &[], PROCESS),
    silent("mem", &["iomem"], MEMORY),
    silent("iomem_align", &["mem_align"], MEMORY),
    silent("hugepage-size", &[], MEMORY),
    silent("lockmem", &[], MEMORY),
    silent("softrandommap", &[], MAP),
    silent("zero_buffers", &[], DATA),
    silent("refill_buffers", &[], DATA),
    silent("scramble_buffers", &[], DATA),
    silent("buffer_pattern", &[], DATA),
    silent("buffer_compress_percentage", &[], DATA),
    silent("buffer_compress_chunk", &[], DATA),
    silent("dedupe_percentage", &[], DATA),
    silent("dedupe_global", &[], DATA),
    silent("dedupe_mode", &[], DATA),
    silent("dedupe_working_set_percentage", &[], DATA),
    silent("do_verify", &[], VERIFY),
    silent("verify_policy", &[], VERIFY),
    silent("verifysort", &[], VERIFY),
    silent("verifysort_nr", &[], VERIFY),
    silent("verify_interval", &[], VERIFY),
    silent("verify_offset", &[], VERIFY),
    silent("verify_pattern_interval", &[], VERIFY),
    silent("verify_fatal", &[], VERIFY),
    silent("verify_dump", &[], VERIFY),
    silent("verify_async", &[], VERIFY),
    silent("verify_async_cpus", &[], VERIFY),
    silent("verify_backlog", &[], VERIFY),
    silent("verify_backlog_batch", &[], VERIFY),
    silent("verify_state_load", &[], VERIFY),
    silent("verify_state_save", &[], VERIFY),
    silent("verify_write_sequence", &[], VERIFY),
    silent("verify_header_seed", &[], VERIFY),
    silent("trim_verify_zero", &[], VERIFY),
    silent("trim_backlog", &[], VERIFY),
    silent("trim_backlog_batch", &[], VERIFY),
    silent("fsync", &[], FLUSH),
    silent("fdatasync", &[], FLUSH),
    silent("write_barrier", &[], FLUSH),
    silent("sync_file_range", &[], FLUSH),
    silent("sync", &[], FLUSH),
    silent("end_fsync", &[], FLUSH),
    silent("fsync_on_close", &[], FLUSH),
    silent("end_syncfs", &[], FLUSH),
    silent("ramp_size", &[], LIMITS),
    silent("max_latency", &[], LIMITS),
    silent("latency_window", &[], LIMITS),
    silent("latency_percentile", &[], LIMITS),
    silent("latency_run", &[], LIMITS),
    silent("rate_min", &["ratemin"], LIMITS),
    silent("rate_iops_min", &[], LIMITS),
    silent("steadystate_duration", &["ss_dur"], LIMITS),
    silent("steadystate_ramp_time", &["ss_ramp"], LIMITS),
    silent("steadystate_check_interval", &["ss_interval"], LIMITS),
    silent("rate_process", &[], TIMING),
    silent("rate_cycle", &["ratecycle"], TIMING),
    silent("thinktime_spin", &[], TIMING),
    silent("thinktime_blocks_type", &[], TIMING),
    silent("flow_sleep", &[], TIMING),
    silent("flow_watermark", &[], TIMING),
    silent("continue_on_error", &[], ERRORS),
    silent("ignore_error", &[], ERRORS),
    silent("error_dump", &[], ERRORS),
    silent("exit_what", &[], FINISH),
    silent("exitall_on_error", &[], FINISH),
    silent("read_iolog_chunked", &[], REPLAY),
    silent("replay_no_stall", &[], REPLAY),
    silent("replay_redirect", &[], REPLAY),
    silent("replay_scale", &[], REPLAY),
    silent("replay_align", &[], REPLAY),
    silent("replay_time_scale", &[], REPLAY),
    silent("replay_skip", &[], REPLAY),
    silent("merge_blktrace_scalars", &[], REPLAY),
    silent("merge_blktrace_iters", &[], REPLAY),
    silent("zonecapacity", &[], ZONED_DEVICE),
    silent("zonerange", &[], ZONED_DEVICE),
    silent("zoneskip", &[], ZONED_DEVICE),
    silent("read_beyond_wp", &[], ZONED_DEVICE),
    silent("max_open_zones", &[], ZONED_DEVICE),
    silent("job_max_open_zones", &[], ZONED_DEVICE),
    silent("ignore_zone_limits", &[], ZONED_DEVICE),
    silent("zone_reset_threshold", &[], ZONED_DEVICE),
    silent("zone_reset_frequency", &[], ZONED_DEVICE),
    silent("recover_zbd_write_error", &[], ZONED_DEVICE),
    silent("write_zone_remainder", &[], ZONED_DEVICE),
    silent("initial_zone_reset", &[], ZONED_DEVICE),
    silent("zone_append", &[], ZONED_DEVICE),
    silent("write_iolog", &[], REPORT),
    silent("per_job_logs", &[], REPORT),
    silent("write_bw_log", &[], REPORT),
    silent("write_lat_log", &[], REPORT),
    silent("write_iops_log", &[], REPORT),
    silent("write_hist_log", &[], REPORT),
    silent("log_entries", &[], REPORT),
    silent("log_avg_msec", &[], REPORT),
    silent("log_hist_msec", &[], REPORT),
    silent("log_hist_coarseness", &[], REPORT),
    silent("log_window_value", &["log_max_value"], REPORT),
    silent("log_offset", &[], REPORT),
    silent("log_prio", &[], REPORT),
    silent("log_issue_time", &[], REPORT),
    silent("log_compression", &[], REPORT),
    silent("log_compression_cpus", &[], REPORT),
    silent("log_store_compressed", &[], REPORT),
    silent("log_alternate_epoch", &["log_unix_epoch"], REPORT),
    silent("log_alternate_epoch_clock_id", &[], REPORT),
    silent("block_error_percentiles", &[], REPORT),
    silent("bwavgtime", &[], REPORT),
    silent("iopsavgtime", &[], REPORT),
    silent("stats", &[], REPORT),
    silent("clat_percentiles", &[], REPORT),
    silent("lat_percentiles", &[], REPORT),
    silent("slat_percentiles", &[], REPORT),
    silent("percentile_list", &[], REPORT),
    silent("significant_figures", &[], REPORT),
    silent("disk_util", &[], REPORT),
    silent("gtod_reduce", &[], REPORT),
    silent("disable_lat", &[], REPORT),
    silent("disable_clat", &[], REPORT),
    silent("disable_slat", &[], REPORT),
    silent("disable_bw_measurement", &["disable_bw"], REPORT),
    silent("job_start_clock_id", &[], REPORT),
    silent("unified_rw_reporting", &[], REPORT),
    silent("unit_base", &[], REPORT),
];

/// The option that is read before the others of its section, because it says what their numbers mean.
pub(super) const READ_FIRST: &str = "kb_base";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        for name in TABLE
            .iter()
            .flat_map(|option| std::iter::once(&option.name).chain(option.aliases))
        {
            assert!(seen.insert(name), "{name} stands in the table twice");
        }
    }

    #[test]
    fn the_manual_shows_the_table() {
        let manual_page = include_str!("../../../../../docs/job-files.md");
        for line in manual().lines() {
            assert!(
                manual_page.contains(line),
                "docs/job-files.md lacks this line of fio::manual():\n{line}"
            );
        }
        for option in TABLE {
            assert!(
                manual_page.contains(&format!("`{}`", option.name)),
                "docs/job-files.md does not mention {}",
                option.name
            );
        }
    }

    #[test]
    fn an_unknown_name_finds_its_neighbour() {
        assert_eq!(nearest("blocksiez"), Some("blocksize"));
        assert_eq!(nearest("io_dpeth"), Some("iodepth"));
        assert_eq!(nearest("qqqqqqqq"), None);
    }
}
