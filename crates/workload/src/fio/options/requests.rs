//! Options for the requests of a job: operations, sizes, lengths and addresses.

use super::{FioOption, ONE_TARGET, OptionKind, active_option};
use crate::fio::error::OptionError;
use crate::fio::grammar::{parse_range, set_bssplit, set_distribution};
use crate::fio::job::ACCESSES;
use crate::fio::value::{
    Amount, amount, choice, number, number_in, numbers_per_direction, per_direction, set, signed, switch, time_us,
};

pub(super) static OPTIONS: &[FioOption] = &[
    active_option(
        "rw readwrite",
        OptionKind::Text,
        "read, write, trim, rw (or readwrite), trimwrite, or one of them with rand in front. `randrw:8` draws an \
         address for each 8th request. `write:4k` leaves holes of 4k. `read:-8k` goes backwards",
        |job, value| {
            let words: Vec<(&str, usize)> =
                ACCESSES.iter().enumerate().map(|(index, access)| (access.name, index)).collect();
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
    active_option(
        "rw_sequencer",
        OptionKind::Text,
        "addresses between two draws of `randrw:8`. sequential (default) continues, identical repeats the address",
        |job, value| set(choice(value, &[("sequential", false), ("identical", true)]), &mut job.repeats_address),
    ),
    active_option(
        "bs blocksize",
        OptionKind::PerDirection,
        "size of a request. The default is 4k. As in fio, `-` and `:` separate directions too, so `4k-1k` is 4k for \
         reads and 1k for others. A range is `bsrange`",
        |job, value| {
            numbers_per_direction(value, &mut job.bs, |part| number_in(part, job.kb_base, 1, u64::from(u32::MAX)))
        },
    ),
    active_option(
        "bsrange blocksize_range",
        OptionKind::PerDirection,
        "range of random sizes, for example `1k-4k`, in multiples of the smallest",
        |job, value| per_direction(value, &mut job.bs_range, |part| parse_range(part, job.kb_base).map(Some)),
    ),
    active_option(
        "bssplit",
        OptionKind::Text,
        "sizes and their percent of the requests, for example `4k/60:64k/40`. Up to three lists are for \
         reads,writes,trims. A direction with an empty list has `bs`. As in fio, a sum above 100 cuts the \
         largest",
        set_bssplit,
    ),
    active_option(
        "ba blockalign",
        OptionKind::PerDirection,
        "alignment of random requests. The default is their size. Any other alignment switches the random map off, \
         as in fio",
        |job, value| {
            numbers_per_direction(value, &mut job.blockalign, |part| {
                number_in(part, job.kb_base, 1, u64::from(u32::MAX)).map(Some)
            })
        },
    ),
    active_option(
        "size",
        OptionKind::SizeOrPercent,
        "size of the job's region and of one loop. The default is the rest of the drive after `offset`. A \
         percentage is of the whole drive",
        |job, value| {
            let size = amount(value, job.kb_base)?;
            job.size = Some(size).filter(|size| !matches!(size, Amount::Bytes(0) | Amount::Percent(0)));
            Ok(())
        },
    ),
    active_option(
        "filesize",
        OptionKind::Size,
        "end of the region, from the start of the drive. `size` then limits one loop",
        |job, value| {
            let (least, most) = value.split_once(['-', ',', ':']).unwrap_or((value, value));
            let bytes = number_in(least, job.kb_base, 1, u64::MAX)?;
            if number(most, job.kb_base)? != bytes {
                return Err(OptionError::new("the job has files of random sizes", ONE_TARGET));
            }
            job.filesize = Some(bytes);
            Ok(())
        },
    ),
    active_option(
        "offset fileoffset",
        OptionKind::SizeOrPercent,
        "start of the region. A percentage is of the whole drive, rounded up to the smallest block",
        |job, value| set(amount(value, job.kb_base), &mut job.offset),
    ),
    active_option(
        "offset_align",
        OptionKind::Size,
        "unit to which a percentage in `offset` is rounded up",
        |job, value| set(number_in(value, job.kb_base, 1, u64::from(u32::MAX)).map(Some), &mut job.offset_align),
    ),
    active_option(
        "offset_increment",
        OptionKind::SizeOrPercent,
        "increment of `offset` for each further instance of `numjobs`. fio numbers the instances after the first \
         downwards",
        |job, value| set(amount(value, job.kb_base), &mut job.offset_increment),
    ),
    active_option(
        "io_size io_limit",
        OptionKind::SizeOrPercent,
        "total bytes to issue, if not `size`",
        |job, value| {
            let size = amount(value, job.kb_base)?;
            job.io_size = Some(size).filter(|size| !matches!(size, Amount::Bytes(0) | Amount::Percent(0)));
            Ok(())
        },
    ),
    active_option("number_ios", OptionKind::Number, "number of requests after which a loop ends", |job, value| {
        job.number_ios = Some(number(value, job.kb_base)?).filter(|count| *count > 0);
        Ok(())
    }),
    active_option(
        "loops",
        OptionKind::Number,
        "number of times that the job issues its `size`. Each loop repeats the same random numbers, as in fio, \
         unless `randseed` is given or `randrepeat=0`",
        |job, value| set(number_in(value, job.kb_base, 1, u64::from(u32::MAX)), &mut job.loops),
    ),
    active_option(
        "time_based",
        OptionKind::Flag,
        "the job repeats until the end of its `runtime`, or of the run on devices without timing",
        |job, value| set(switch(value), &mut job.time_based),
    ),
    active_option(
        "runtime timeout",
        OptionKind::Time,
        "virtual time after `ramp_time` at which the job ends. Its value has no effect on devices without timing, \
         because they have no clock. `time_based` requires it",
        |job, value| set(time_us(value, true), &mut job.runtime_us),
    ),
    active_option(
        "random_distribution",
        OptionKind::Text,
        "random, zipf:theta, pareto:h, normal:deviation (with an optional `:center`), zoned:access/size:..., \
         zoned_abs:access/bytes:... or sequence:2,0,1. All but random may repeat a block at once",
        set_distribution,
    ),
    active_option(
        "random_sequence_stride",
        OptionKind::Bool,
        "with 1, each pass of random_distribution=sequence begins behind the blocks of the previous one",
        |job, value| set(switch(value), &mut job.sequence_strides),
    ),
    active_option(
        "random_generator",
        OptionKind::Text,
        "tausworthe or tausworthe64. fio's lfsr is refused",
        |job, value| {
            if value == "lfsr" {
                return Err(OptionError::new(
                    "the lfsr generator is not supported",
                    "Use tausworthe, which also accesses each block once per pass",
                ));
            }
            job.generator_64 = choice(value, &[("tausworthe", false), ("tausworthe64", true)])?;
            Ok(())
        },
    ),
    active_option(
        "randrepeat allrandrepeat",
        OptionKind::Bool,
        "with 0, each loop draws new random numbers. The first loop is the same in every run",
        |job, value| set(switch(value), &mut job.randrepeat),
    ),
    active_option("randseed", OptionKind::Number, "seed of all random numbers. The default is 0x89", |job, value| {
        set(number(value, job.kb_base).map(Some), &mut job.randseed)
    }),
    active_option(
        "norandommap",
        OptionKind::Flag,
        "random requests may repeat a block. Without it, they access each block once per pass",
        |job, value| set(switch(value), &mut job.norandommap),
    ),
    active_option(
        "percentage_random",
        OptionKind::PerDirection,
        "percent of a random job's requests that are random. The others continue at the end of the previous request",
        |job, value| {
            numbers_per_direction(value, &mut job.percentage_random, |part| {
                Ok(number_in(part, job.kb_base, 0, 100)? as u32)
            })
        },
    ),
    active_option(
        "rwmixread",
        OptionKind::Number,
        "percent of reads in rw and randrw. The default is 50",
        |job, value| {
            job.rwmixread = number_in(value, job.kb_base, 0, 100)? as u32;
            Ok(())
        },
    ),
    active_option("rwmixwrite", OptionKind::Number, "percent of writes in rw and randrw", |job, value| {
        job.rwmixread = 100 - number_in(value, job.kb_base, 0, 100)? as u32;
        Ok(())
    }),
];
