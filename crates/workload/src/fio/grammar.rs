//! Parsers of option values with a grammar: lists of sizes, distributions, zones, placement indices
//! and schemes.
//!
//! Each parser reads a text and sets a field of the [`Job`]. The rules are those of fio's
//! `options.c` (`bssplit_ddir`, `zone_split_ddir`, `str_random_distribution_cb`, `str_fdp_pli_cb`)
//! and `dataplacement.c`. This module does not know names or effects of options (see `options`).

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use base::input::TEXT_BYTES_MAX;

use super::distribution::{AccessZone, SkewKind};
use super::error::OptionError;
use super::job::{BlockDistribution, BlockShare, Job, SchemeEntry, WriteMode};
use super::value::{KbBase, PerDirection, choice, fraction, lists_per_direction, number, number_in};
use crate::PlacementIndex;

/// Maximum sizes that fio accepts for one direction of `bssplit`.
const BSSPLIT_MAX: usize = 64;
/// Maximum zones that fio accepts for one direction.
const ZONES_MAX: usize = 256;

/// Rejects a list with more entries than fio accepts.
fn check_count(count: usize, most: usize, problem: impl Fn(usize) -> String) -> Result<(), OptionError> {
    if count <= most {
        return Ok(());
    }
    Err(OptionError::new(problem(count), format!("Give at most {most}, as fio accepts no more")))
}

/// Parses one range of `bsrange`, such as `1k-64k`.
pub fn parse_range(text: &str, base: KbBase) -> Result<(u64, u64), OptionError> {
    let (least, most) = text.split_once(['-', ':']).ok_or_else(|| {
        OptionError::new(format!("`{text}` is not a range"), "Write smallest-largest, for example 1k-64k")
    })?;
    let bound = |part: &str| number_in(part, base, 1, u64::from(u32::MAX));
    let (least, most) = (bound(least)?, bound(most)?);
    Ok((least.min(most), least.max(most)))
}

/// Sets `bssplit`, sizes with their percent of the requests for each direction.
pub fn set_bssplit(job: &mut Job, value: &str) -> Result<(), OptionError> {
    let lists = given_lists(value, "sizes, for example 4k/50:8k/50")?;
    for (direction, list) in lists {
        let shares = parse_bssplit(list, job.kb_base)?;
        let sizes = || shares.iter().map(|share| share.bytes);
        job.bs_range[direction] = sizes().min().zip(sizes().max());
        job.bssplit[direction] = shares;
    }
    Ok(())
}

/// Returns the non-empty lists of a value with their directions. fio does not change other
/// directions.
fn given_lists<'a>(value: &'a str, missing: &str) -> Result<Vec<(usize, &'a str)>, OptionError> {
    let lists = lists_per_direction(value)?.into_iter().map(str::trim).enumerate();
    let given: Vec<(usize, &str)> = lists.filter(|(_, list)| !list.is_empty()).collect();
    if given.is_empty() {
        return Err(OptionError::new("no direction has a list", format!("Give {missing}")));
    }
    Ok(given)
}

/// Splits a list into its entries. As in fio, the first empty entry ends the list.
fn entries(list: &str) -> impl Iterator<Item = (&str, &str)> {
    let entries = list.split(':').take_while(|entry| !entry.is_empty());
    entries.map(|entry| entry.split_once('/').unwrap_or((entry, "")))
}

fn parse_bssplit(list: &str, base: KbBase) -> Result<Vec<BlockShare>, OptionError> {
    let mut shares = Vec::new();
    for (size, percent) in entries(list) {
        // fio uses the first size of a range.
        let size = size.split_once('-').map_or(size, |(first, _)| first);
        let bytes = number_in(size, base, 1, u64::from(u32::MAX))?;
        let percent = match percent.strip_suffix('.').unwrap_or(percent) {
            "" => 0,
            percent => number_in(percent, base, 0, 100)? as u32,
        };
        shares.push(BlockShare { bytes, percent });
    }
    check_count(shares.len(), BSSPLIT_MAX, |count| format!("one list has {count} sizes"))?;
    // fio divides the rest up to 100 among the sizes without a percentage (or with 0).
    let given: u32 = shares.iter().map(|share| share.percent).sum();
    let open = shares.iter().filter(|share| share.percent == 0).count() as u32;
    if given > 100 && open > 0 {
        return Err(OptionError::new(
            format!("the percentages of `{list}` add up to {given}"),
            "Give at most 100 in total",
        ));
    }
    for share in shares.iter_mut().filter(|share| share.percent == 0) {
        share.percent = (100 - given) / open;
    }
    shares.sort_by_key(|share| share.percent);
    Ok(shares)
}

/// `random_distribution`
pub fn set_distribution(job: &mut Job, value: &str) -> Result<(), OptionError> {
    let (name, rest) = match value.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (value, None),
    };
    job.distribution = match name {
        "random" => BlockDistribution::Uniform,
        "zoned" | "zoned_abs" => parse_zones(rest, job, name == "zoned_abs")?,
        "zipf" | "pareto" | "normal" => parse_skew(name, rest)?,
        "sequence" => BlockDistribution::Sequence(parse_sequence(rest)?),
        _ => {
            let problem = format!("`{name}` is not a known distribution");
            return Err(OptionError::new(
                problem,
                "Use random, zipf:, pareto:, normal:, zoned:, zoned_abs: or sequence:",
            ));
        }
    };
    Ok(())
}

/// Parses blocks in their order, such as `2,0,1`.
fn parse_sequence(blocks: Option<&str>) -> Result<Vec<u64>, OptionError> {
    const MOST: usize = 64;
    let blocks = blocks.unwrap_or("").split(',').map(|block| block.trim().parse::<u32>().map(u64::from));
    let blocks: Vec<u64> = blocks.collect::<Result<_, _>>().map_err(|_| {
        OptionError::new("the sequence is not a list of block numbers", "Write for example sequence:2,0,1")
    })?;
    check_count(blocks.len(), MOST, |count| format!("the sequence has {count} blocks"))?;
    Ok(blocks)
}

/// Valid values of theta in fio's formulas, except for 1.
const THETAS: RangeInclusive<f64> = 0.0..=100.0;

fn parse_skew(name: &str, parameters: Option<&str>) -> Result<BlockDistribution, OptionError> {
    let (parameter, center) = match parameters.map(|text| text.split_once(':').unwrap_or((text, ""))) {
        None => (None, None),
        Some((parameter, "")) => (Some(fraction(parameter)?), None),
        Some((parameter, center)) => (Some(fraction(parameter)?), Some(fraction(center)?)),
    };
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err(OptionError::new("the centre is outside the region", "Give a centre from 0 to 1"));
    }
    let kind = match name {
        "zipf" => SkewKind::Zipf(parameter.unwrap_or(1.1)),
        "pareto" => SkewKind::Pareto(parameter.unwrap_or(0.2)),
        _ => SkewKind::Normal(parameter.unwrap_or(0.0)),
    };
    let allowed = match kind {
        SkewKind::Zipf(theta) if !THETAS.contains(&theta) || theta == 1.0 => "Give a theta from 0 to 100 other than 1",
        SkewKind::Pareto(h) if h <= 0.0 || h >= 1.0 => "Give an h between 0 and 1",
        SkewKind::Normal(deviation) if !(0.0..100.0).contains(&deviation) => {
            "Give a deviation of at least 0 and below 100 percent"
        }
        _ => return Ok(BlockDistribution::Skewed { kind, center }),
    };
    Err(OptionError::new(format!("the parameter of {name} is out of fio's range"), allowed))
}

fn parse_zones(lists: Option<&str>, job: &Job, absolute: bool) -> Result<BlockDistribution, OptionError> {
    let example = if absolute { "zoned_abs:60/20g:40/80g" } else { "zoned:80/20:20/80" };
    let mut zones = match (&job.distribution, absolute) {
        (BlockDistribution::Zoned(zones), false) | (BlockDistribution::ZonedAbsolute(zones), true) => zones.clone(),
        _ => PerDirection::default(),
    };
    for (direction, list) in given_lists(lists.unwrap_or(""), &format!("zones, for example {example}"))? {
        zones[direction] = parse_zone_list(list, job.kb_base, absolute).map_err(|complaint| {
            OptionError::new(complaint.problem, format!("{}, for example {example}", complaint.remedy))
        })?;
    }
    Ok(if absolute { BlockDistribution::ZonedAbsolute(zones) } else { BlockDistribution::Zoned(zones) })
}

fn parse_zone_list(list: &str, base: KbBase, absolute: bool) -> Result<Vec<AccessZone>, OptionError> {
    let mut zones = Vec::new();
    for (access, size) in entries(list) {
        let access_percent = number_in(access, base, 0, 100)? as u32;
        let size = match size {
            "" => 0,
            text if absolute => number(text, base)?,
            text => number_in(text, base, 0, 100)?,
        };
        zones.push(AccessZone { access_percent, size });
    }
    check_count(zones.len(), ZONES_MAX, |count| format!("one list has {count} zones"))?;
    let accesses: u32 = zones.iter().map(|zone| zone.access_percent).sum();
    if accesses != 100 {
        let problem = format!("the access percentages of `{list}` add up to {accesses}");
        return Err(OptionError::new(problem, "Make them 100 with another zone"));
    }
    if absolute {
        return Ok(zones);
    }
    // As with block sizes, zones without a size share the rest.
    let given: u64 = zones.iter().map(|zone| zone.size).sum();
    let open = zones.iter().filter(|zone| zone.size == 0).count() as u64;
    if given > 100 {
        return Err(OptionError::new(
            format!("the sizes of `{list}` add up to {given} percent"),
            "Give at most 100 in total",
        ));
    }
    for zone in zones.iter_mut().filter(|zone| zone.size == 0) {
        zone.size = (100 - given) / open;
    }
    Ok(zones)
}

/// Sets `write_mode`, which is one mode or several with their percent.
pub fn set_write_mode(job: &mut Job, value: &str) -> Result<(), OptionError> {
    const MODES: [(&str, WriteMode); 4] = [
        ("write", WriteMode::Write),
        ("zeroes", WriteMode::Zeroes),
        ("uncor", WriteMode::Uncorrectable),
        ("verify", WriteMode::Verify),
    ];
    const MOST: usize = 6;
    let mut modes = Vec::new();
    for entry in value.split(':') {
        let (mode, percent) = match entry.split_once('/') {
            Some((mode, "")) => (mode, None),
            Some((mode, percent)) => (mode, Some(number_in(percent, job.kb_base, 0, 100)? as u32)),
            None if !value.contains(':') => (entry, None),
            None => {
                return Err(OptionError::new(
                    format!("`{entry}` has no percentage"),
                    "Write for example write/60:zeroes/40",
                ));
            }
        };
        modes.push((choice(mode, &MODES)?, percent));
    }
    check_count(modes.len(), MOST, |count| format!("the list has {count} modes"))?;
    let given: u32 = modes.iter().filter_map(|(_, percent)| *percent).sum();
    let open = modes.iter().filter(|(_, percent)| percent.is_none()).count() as u32;
    if given > 100 || (open == 0 && given < 100) {
        return Err(OptionError::new(
            format!("the percentages add up to {given}"),
            "Make them 100, or omit some of them",
        ));
    }
    let share = |(mode, percent): (WriteMode, Option<u32>)| (mode, percent.unwrap_or_else(|| (100 - given) / open));
    let modes: Vec<(WriteMode, u32)> = modes.into_iter().map(share).collect();
    if modes.iter().all(|(mode, percent)| *mode == WriteMode::Uncorrectable || *percent == 0) {
        return Err(OptionError::new(
            "Write Uncorrectable alone writes no flash page",
            "Remove the job, or add another mode with its percentage",
        ));
    }
    job.write_modes = if modes.iter().all(|(mode, _)| *mode == WriteMode::Write) { Vec::new() } else { modes };
    Ok(())
}

pub fn set_sg_write_mode(job: &mut Job, value: &str) -> Result<(), OptionError> {
    use WriteMode::{Verify, Write};
    let modes = [
        ("write", Write),
        ("write_and_verify", Write),
        ("verify", Verify),
        ("write_same", Write),
        ("same", Write),
        ("write_same_ndob", Write),
        ("verify_bytchk_00", Verify),
        ("verify_bytchk_01", Verify),
        ("verify_bytchk_11", Verify),
    ];
    job.write_modes = match choice(value, &modes)? {
        Write => Vec::new(),
        mode => vec![(mode, 100)],
    };
    Ok(())
}

/// Sets `plids`, such as `0,2,4-6`.
pub fn set_plids(job: &mut Job, value: &str) -> Result<(), OptionError> {
    const MOST: usize = 128;
    let mut plids = Vec::new();
    for part in value.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let index = |text: &str| number_in(text, job.kb_base, 0, u64::from(u16::MAX));
        let (first, last) = (index(first)?, index(last)?);
        if first > last {
            return Err(OptionError::new(
                format!("the range `{part}` runs backwards"),
                "Write the smaller index first",
            ));
        }
        let count = plids.len() + (last - first) as usize + 1;
        check_count(count, MOST, |count| format!("the list has {count} indices or more"))?;
        plids.extend((first..=last).map(|index| PlacementIndex(index as u16)));
    }
    plids.sort_unstable();
    job.plids = plids;
    Ok(())
}

/// Sets `dp_scheme` and reads its file.
pub fn set_scheme(job: &mut Job, value: &str) -> Result<(), OptionError> {
    let beside = || -> PathBuf { Path::new(&job.file).with_file_name(value) };
    let read = |path: &Path| base::input::read_text(path, TEXT_BYTES_MAX);
    let text = read(Path::new(value)).or_else(|_| read(&beside()));
    let text = text.map_err(|error| {
        OptionError::new(format!("the file of the scheme cannot be read ({error})"), "Give the path of a readable file")
    })?;
    job.dp_scheme = parse_scheme(&text)?;
    Ok(())
}

fn parse_scheme(text: &str) -> Result<Vec<SchemeEntry>, OptionError> {
    const MOST: usize = 32;
    let mut entries = Vec::new();
    for (index, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()) {
        let numbers: Result<Vec<u64>, _> = line.split(',').map(|part| part.trim().parse()).collect();
        let entry = match numbers.as_deref() {
            Ok(&[start_bytes, end_bytes, placement]) => u16::try_from(placement).ok().map(|index| SchemeEntry {
                start_bytes,
                end_bytes,
                index: PlacementIndex(index),
            }),
            _ => None,
        };
        let unreadable = || {
            OptionError::new(
                format!("line {} of the scheme is `{line}`", index + 1),
                "Write start,end,index as plain numbers",
            )
        };
        entries.push(entry.ok_or_else(unreadable)?);
    }
    if entries.len() > MOST {
        return Err(OptionError::new(
            format!("the scheme has {} lines", entries.len()),
            format!("Give at most {MOST}, as fio uses no more"),
        ));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_splits_share_what_is_left() {
        let parse = |list| parse_bssplit(list, KbBase::Binary);
        let share = |bytes, percent| BlockShare { bytes, percent };
        assert_eq!(parse("4k/60:64k/40"), Ok(vec![share(65536, 40), share(4096, 60)]));
        assert_eq!(parse("4k/50:8k:16k/"), Ok(vec![share(8192, 25), share(16384, 25), share(4096, 50)]));
        assert_eq!(parse("4k/100:"), Ok(vec![share(4096, 100)]), "an empty entry ends the list");
        assert_eq!(parse("20k-28k/5.:4k/95"), parse("20k/5:4k/95"), "fio takes the first size of a range");
        assert!(parse("4k/60:8k/50").is_ok(), "more than 100 is cut off when sizes are drawn");
        assert!(parse("4k/60:8k/30").is_ok(), "less than 100 goes to the most frequent size");
        assert!(parse("4k/60:8k/50:16k").is_err());
        assert!(parse(&"4k/1:".repeat(65)).is_err());
    }

    #[test]
    fn directions_that_a_list_leaves_out_stay_as_they_were() {
        let sizes = |lines: &[&str]| {
            let mut job = Job::with_defaults("test.fio");
            for line in lines {
                set_bssplit(&mut job, line).unwrap();
            }
            job.bssplit.map(|shares| shares.len())
        };
        assert_eq!(sizes(&["4k/50:8k/50"]), [2, 2, 2]);
        assert_eq!(sizes(&[",4k/50:8k/50"]), [0, 2, 2]);
        assert_eq!(sizes(&["4k/50:8k/50,"]), [2, 0, 0]);
        assert_eq!(sizes(&["4k/50:8k/50,,"]), [2, 0, 0]);
        assert_eq!(sizes(&[",4k/50:8k/50,"]), [0, 2, 0]);
        assert_eq!(sizes(&[",,4k/50:8k/50"]), [0, 0, 2]);
        assert_eq!(sizes(&["4k/50:8k/50", ",16k"]), [2, 1, 1]);
        let zones = |lines: &[&str]| {
            let mut job = Job::with_defaults("test.fio");
            for line in lines {
                set_distribution(&mut job, line).unwrap();
            }
            match job.distribution {
                BlockDistribution::Zoned(zones) | BlockDistribution::ZonedAbsolute(zones) => {
                    zones.map(|zones| zones.len())
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(zones(&["zoned:,60/10:40/90"]), [0, 2, 2]);
        assert_eq!(zones(&["zoned:60/10:40/90,"]), [2, 0, 0]);
        assert_eq!(zones(&["zoned_abs:,,60/1m:40/9m"]), [0, 0, 2]);
        assert_eq!(zones(&["zoned:60/10:40/90", "zoned:,100/100"]), [2, 1, 1]);
        let mut job = Job::with_defaults("test.fio");
        assert!(set_bssplit(&mut job, ",").is_err());
        assert!(set_distribution(&mut job, "zoned:,").is_err());
        assert!(set_distribution(&mut job, "zipf:0").is_ok());
        assert!(set_distribution(&mut job, "zipf:1").is_err());
    }

    #[test]
    fn zones_are_checked() {
        assert!(parse_zone_list("80/20", KbBase::Binary, false).is_err(), "fio refuses this too");
        let zones = parse_zone_list("80/20:20", KbBase::Binary, false).unwrap();
        assert_eq!(zones[1], AccessZone { access_percent: 20, size: 80 });
        assert!(parse_zone_list("50/60:50/60", KbBase::Binary, false).is_err());
        assert_eq!(parse_zone_list("100/2g", KbBase::Binary, true).unwrap()[0].size, 2 << 30);
    }

    #[test]
    fn schemes_are_read() {
        assert_eq!(parse_scheme("0,4096,3\n4096, 8192 ,1\n\n").unwrap().len(), 2);
        assert!(parse_scheme("0,4096\n").unwrap_err().problem.contains("line 1"));
        assert!(parse_scheme("0,4096,70000\n").is_err());
        assert!(parse_scheme(&"0,1,2\n".repeat(33)).is_err());
    }
}
