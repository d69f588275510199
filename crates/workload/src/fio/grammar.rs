//! Values of options with a grammar of their own: lists of sizes, distributions, zones, placement indices, schemes.
//!
//! Text goes in, a field of the [`Job`] is set. The rules are those of fio's `options.c` (`bssplit_ddir`, `zone_split_ddir`,
//! `str_random_distribution_cb`, `str_fdp_pli_cb`) and `dataplacement.c`. It does not know names or effects of options; see `options`.

use std::path::{Path, PathBuf};

use super::distribution::{SkewKind, Zone};
use super::error::Complaint;
use super::job::{BlockShare, Distribution, Job, SchemeEntry};
use super::value::{KbBase, PerDirection, fraction, lists_per_direction, number, number_in};
use crate::PlacementIndex;

/// One range of `bsrange`: `1k-64k`.
pub fn parse_range(text: &str, base: KbBase) -> Result<(u64, u64), Complaint> {
    let (least, most) = text.split_once(['-', ':']).ok_or_else(|| {
        Complaint::new(
            format!("`{text}` is not a range"),
            "write smallest-largest, such as 1k-64k",
        )
    })?;
    let bound = |part: &str| number_in(part, base, 1, u64::from(u32::MAX));
    let (least, most) = (bound(least)?, bound(most)?);
    Ok((least.min(most), least.max(most)))
}

/// `bssplit`: sizes and their percent of the requests, for each direction.
pub fn set_bssplit(job: &mut Job, value: &str) -> Result<(), Complaint> {
    let lists = lists_per_direction(value)?;
    for (direction, list) in lists.into_iter().enumerate() {
        let shares = parse_bssplit(list, job.kb_base)?;
        let sizes = || shares.iter().map(|share| share.bytes);
        job.bs_range[direction] = sizes().min().zip(sizes().max());
        job.bssplit[direction] = shares;
    }
    Ok(())
}

fn parse_bssplit(list: &str, base: KbBase) -> Result<Vec<BlockShare>, Complaint> {
    const MOST: usize = 64;
    let mut entries = Vec::new();
    for entry in list.split(':') {
        let (size, percent) = entry.split_once('/').unwrap_or((entry, ""));
        let bytes = number_in(size, base, 1, u64::from(u32::MAX))?;
        let percent = if percent.is_empty() {
            0
        } else {
            number_in(percent, base, 0, 100)? as u32
        };
        entries.push(BlockShare { bytes, percent });
    }
    if entries.len() > MOST {
        return Err(Complaint::new(
            format!("{} sizes", entries.len()),
            format!("fio takes at most {MOST}"),
        ));
    }
    // fio shares what is missing to 100 among the sizes without a percentage (or with 0).
    let given: u32 = entries.iter().map(|entry| entry.percent).sum();
    let open = entries.iter().filter(|entry| entry.percent == 0).count() as u32;
    if given > 100 || (open == 0 && given < 100) {
        return Err(Complaint::new(
            format!("percentages of `{list}` add up to {given}"),
            "make them 100, or leave some open",
        ));
    }
    for entry in entries.iter_mut().filter(|entry| entry.percent == 0) {
        entry.percent = (100 - given) / open;
    }
    entries.sort_by_key(|entry| entry.percent);
    Ok(entries)
}

/// `random_distribution`
pub fn set_distribution(job: &mut Job, value: &str) -> Result<(), Complaint> {
    let (name, rest) = match value.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (value, None),
    };
    job.distribution = match name {
        "random" => Distribution::Uniform,
        "zoned" => Distribution::Zoned(parse_zones(rest, job.kb_base, false)?),
        "zoned_abs" => Distribution::ZonedAbsolute(parse_zones(rest, job.kb_base, true)?),
        "zipf" | "pareto" | "normal" => parse_skew(name, rest)?,
        _ => {
            let problem = format!("`{name}` is not a distribution of the lab");
            return Err(Complaint::new(
                problem,
                "write random, zipf:, pareto:, normal:, zoned: or zoned_abs:",
            ));
        }
    };
    Ok(())
}

fn parse_skew(name: &str, parameters: Option<&str>) -> Result<Distribution, Complaint> {
    let (parameter, center) = match parameters.map(|text| text.split_once(':').unwrap_or((text, ""))) {
        None => (None, None),
        Some((parameter, "")) => (Some(fraction(parameter)?), None),
        Some((parameter, center)) => (Some(fraction(parameter)?), Some(fraction(center)?)),
    };
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err(Complaint::new(
            "the centre is outside the region",
            "write a centre from 0 to 1",
        ));
    }
    let kind = match name {
        "zipf" => SkewKind::Zipf(parameter.unwrap_or(1.1)),
        "pareto" => SkewKind::Pareto(parameter.unwrap_or(0.2)),
        _ => SkewKind::Normal(parameter.unwrap_or(0.0)),
    };
    let allowed = match kind {
        SkewKind::Zipf(theta) if theta <= 0.0 || theta == 1.0 => "write a theta above 0 other than 1",
        SkewKind::Pareto(h) if h <= 0.0 || h >= 1.0 => "write an h between 0 and 1",
        SkewKind::Normal(deviation) if !(0.0..100.0).contains(&deviation) => {
            "write a deviation from 0 to below 100 percent"
        }
        _ => return Ok(Distribution::Skewed { kind, center }),
    };
    Err(Complaint::new(format!("fio refuses this parameter of {name}"), allowed))
}

fn parse_zones(lists: Option<&str>, base: KbBase, absolute: bool) -> Result<PerDirection<Vec<Zone>>, Complaint> {
    let example = if absolute {
        "zoned_abs:60/20g:40/80g"
    } else {
        "zoned:80/20:20/80"
    };
    let lists = lists_per_direction(lists.unwrap_or(""))?;
    let mut zones = PerDirection::default();
    for (direction, list) in lists.into_iter().enumerate() {
        zones[direction] = parse_zone_list(list, base, absolute).map_err(|complaint| {
            Complaint::new(complaint.problem, format!("{}, such as {example}", complaint.remedy))
        })?;
    }
    Ok(zones)
}

fn parse_zone_list(list: &str, base: KbBase, absolute: bool) -> Result<Vec<Zone>, Complaint> {
    const MOST: usize = 256;
    let mut zones = Vec::new();
    for entry in list.split(':') {
        let (access, size) = entry.split_once('/').unwrap_or((entry, ""));
        let access_percent = number_in(access, base, 0, 100)? as u32;
        let size = match size {
            "" => 0,
            text if absolute => number(text, base)?,
            text => number_in(text, base, 0, 100)?,
        };
        zones.push(Zone { access_percent, size });
    }
    if zones.len() > MOST {
        return Err(Complaint::new(
            format!("{} zones", zones.len()),
            format!("fio takes at most {MOST}"),
        ));
    }
    let accesses: u32 = zones.iter().map(|zone| zone.access_percent).sum();
    if accesses != 100 {
        let problem = format!("access percentages of `{list}` add up to {accesses}");
        return Err(Complaint::new(problem, "make them 100 with one more zone"));
    }
    if absolute {
        return Ok(zones);
    }
    // As for block sizes, zones without a size share what is left.
    let given: u64 = zones.iter().map(|zone| zone.size).sum();
    let open = zones.iter().filter(|zone| zone.size == 0).count() as u64;
    if given > 100 {
        return Err(Complaint::new(
            format!("sizes of `{list}` add up to {given} percent"),
            "make them at most 100",
        ));
    }
    for zone in zones.iter_mut().filter(|zone| zone.size == 0) {
        zone.size = (100 - given) / open;
    }
    Ok(zones)
}

/// `plids`: `0,2,4-6`.
pub fn set_plids(job: &mut Job, value: &str) -> Result<(), Complaint> {
    const MOST: usize = 128;
    let mut plids = Vec::new();
    for part in value.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let index = |text: &str| number_in(text, job.kb_base, 0, u64::from(u16::MAX));
        let (first, last) = (index(first)?, index(last)?);
        if first > last {
            return Err(Complaint::new(
                format!("range `{part}` runs backwards"),
                "write the smaller index first",
            ));
        }
        let count = plids.len() + (last - first) as usize + 1;
        if count > MOST {
            return Err(Complaint::new(
                format!("{count} indices or more"),
                format!("fio takes at most {MOST}"),
            ));
        }
        plids.extend((first..=last).map(|index| PlacementIndex(index as u16)));
    }
    plids.sort_unstable();
    job.plids = plids;
    Ok(())
}

/// `dp_scheme`: reads the file.
pub fn set_scheme(job: &mut Job, value: &str) -> Result<(), Complaint> {
    let beside = || -> PathBuf { Path::new(&job.file).with_file_name(value) };
    let text = std::fs::read_to_string(value).or_else(|_| std::fs::read_to_string(beside()));
    let text = text.map_err(|error| {
        Complaint::new(
            format!("cannot read the scheme: {error}"),
            "give the path of a readable file",
        )
    })?;
    job.dp_scheme = parse_scheme(&text)?;
    Ok(())
}

fn parse_scheme(text: &str) -> Result<Vec<SchemeEntry>, Complaint> {
    const MOST: usize = 32;
    let mut entries = Vec::new();
    for (index, line) in text
        .lines()
        .map(str::trim)
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
    {
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
            Complaint::new(
                format!("line {} of the scheme is `{line}`", index + 1),
                "write start,end,index in plain numbers",
            )
        };
        entries.push(entry.ok_or_else(unreadable)?);
    }
    if entries.len() > MOST {
        return Err(Complaint::new(
            format!("{} lines in the scheme", entries.len()),
            format!("fio applies at most {MOST}"),
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
        assert_eq!(
            parse("4k/50:8k:16k/"),
            Ok(vec![share(8192, 25), share(16384, 25), share(4096, 50)])
        );
        assert!(parse("4k/60:8k/50").is_err());
        assert!(parse("4k/60:8k/30").is_err());
    }

    #[test]
    fn zones_are_checked() {
        assert!(
            parse_zone_list("80/20", KbBase::Binary, false).is_err(),
            "fio refuses this too"
        );
        let zones = parse_zone_list("80/20:20", KbBase::Binary, false).unwrap();
        assert_eq!(
            zones[1],
            Zone {
                access_percent: 20,
                size: 80
            }
        );
        assert!(parse_zone_list("50/60:50/60", KbBase::Binary, false).is_err());
        assert_eq!(
            parse_zone_list("100/2g", KbBase::Binary, true).unwrap()[0].size,
            2 << 30
        );
    }

    #[test]
    fn schemes_are_read() {
        assert_eq!(parse_scheme("0,4096,3\n4096, 8192 ,1\n\n").unwrap().len(), 2);
        assert!(parse_scheme("0,4096\n").unwrap_err().problem.contains("line 1"));
        assert!(parse_scheme("0,4096,70000\n").is_err());
        assert!(parse_scheme(&"0,1,2\n".repeat(33)).is_err());
    }
}
