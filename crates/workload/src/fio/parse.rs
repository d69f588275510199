//! Reading a job file: sections, inheritance, comments.
//!
//! Text goes in line by line; each `[section]` starts as a copy of what the `[global]` sections before it have set, and its own options
//! change the copy. Options are looked up in the table of `options`, which also sets them. The result is a [`JobFile`] of typed jobs.
//!
//! It does not read other files (`include` is refused), and it does not know the drive.

use serde::{Deserialize, Serialize};

use super::error::{Complaint, JobError};
use super::job::Job;
use super::options::{Effect, Kind, READ_FIRST, find, nearest};

/// A job file: its jobs in the order of their sections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobFile {
    /// The file, as the caller named it, for messages.
    #[serde(skip)]
    pub file: String,
    /// The jobs; at least one.
    pub jobs: Vec<Job>,
}

/// One `option=value` or `option` line.
struct Line<'a> {
    number: usize,
    name: &'a str,
    value: Option<&'a str>,
}

/// An option that is set after those of the file: an experiment runs one file in several variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The job to change; `global` means every job.
    pub section: String,
    /// Name of the option.
    pub option: String,
    /// Its new value.
    pub value: String,
}

/// Reads a job file. `file_name` is used in messages, and to find a `dp_scheme` file beside the job file.
pub fn parse(text: &str, file_name: &str) -> Result<JobFile, JobError> {
    parse_with(text, file_name, &[])
}

/// Reads a job file and changes options of its jobs.
pub fn parse_with(text: &str, file_name: &str, changes: &[Override]) -> Result<JobFile, JobError> {
    let mut global = Job::with_defaults(file_name);
    let mut jobs: Vec<Job> = Vec::new();
    let mut next_thread_number = 1;
    for (header, lines) in sections(text, file_name)? {
        // fio takes every section whose name starts with `global` for a global one.
        if header.name.starts_with("global") {
            apply(&mut global, &lines)?;
            continue;
        }
        let mut job = Job {
            name: header.name.to_owned(),
            line: header.number,
            ..global.clone()
        };
        apply(&mut job, &lines)?;
        for change in changes
            .iter()
            .filter(|change| change.section == "global" || change.section == header.name)
        {
            apply(
                &mut job,
                &[Line {
                    number: header.number,
                    name: &change.option,
                    value: Some(&change.value),
                }],
            )?;
        }
        job.first_thread_number = next_thread_number;
        next_thread_number += job.numjobs;
        job.check()?;
        jobs.push(job);
    }
    let last_line = text.lines().count().max(1);
    if jobs.is_empty() {
        let complaint = Complaint::new("the file describes no job", "add a section such as [job] with rw=write");
        return Err(complaint.at(file_name, last_line, "[end of file]"));
    }
    let known = |change: &&Override| change.section != "global" && jobs.iter().all(|job| job.name != change.section);
    if let Some(change) = changes.iter().find(known) {
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        let complaint = Complaint::new(
            "there is no such job to change",
            format!("name one of {}", names.join(", ")),
        );
        return Err(complaint.at(file_name, last_line, format!("[{}]", change.section)));
    }
    Ok(JobFile {
        file: file_name.to_owned(),
        jobs,
    })
}

/// A line without its comment and surrounding blanks.
fn strip(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or("").trim()
}

/// The sections' headers with their option lines.
fn sections<'a>(text: &'a str, file: &str) -> Result<Vec<(Line<'a>, Vec<Line<'a>>)>, JobError> {
    let mut sections: Vec<(Line, Vec<Line>)> = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let (number, line) = (index + 1, strip(raw));
        if line.is_empty() {
            continue;
        }
        let fail =
            |problem: &str, remedy: &str| Err(Complaint::new(problem, remedy).at(file, number, format!("`{line}`")));
        if let Some(header) = line.strip_prefix('[') {
            match header.strip_suffix(']').map(str::trim) {
                Some(name) if !name.is_empty() => sections.push((
                    Line {
                        number,
                        name,
                        value: None,
                    },
                    Vec::new(),
                )),
                _ => return fail("a section without a name or a closing bracket", "write [name]"),
            }
            continue;
        }
        if line == "include" || line.starts_with("include ") {
            return fail("include is not supported", "copy the included lines into this file");
        }
        let Some((_, lines)) = sections.last_mut() else {
            return fail(
                "an option before the first section",
                "write [global] or [name] above it",
            );
        };
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line, None),
        };
        lines.push(Line { number, name, value });
    }
    Ok(sections)
}

/// Applies a section's options to a job.
fn apply(job: &mut Job, lines: &[Line]) -> Result<(), JobError> {
    let (first, rest): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.name == READ_FIRST);
    for line in first.into_iter().chain(rest) {
        let subject = match line.value {
            Some(value) => format!("{}={value}", line.name),
            None => line.name.to_owned(),
        };
        let name = set(job, line).map_err(|complaint| complaint.at(&job.file, line.number, subject))?;
        job.given.retain(|(other, _)| *other != name);
        job.given.push((name, line.number));
    }
    Ok(())
}

/// Sets one option; returns its proper name.
fn set(job: &mut Job, line: &Line) -> Result<&'static str, Complaint> {
    let Some(option) = find(line.name) else {
        let remedy = match nearest(line.name) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "docs/job-files.md lists the known ones".to_owned(),
        };
        return Err(Complaint::new("unknown option", remedy));
    };
    match option.effect {
        Effect::None => {}
        Effect::Refused(remedy) => return Err(Complaint::new(format!("not supported: {}", option.help), remedy)),
        Effect::Acts(set) => {
            let value = match line.value {
                Some(value) => value,
                None if option.kind == Kind::Flag => "",
                None => {
                    return Err(Complaint::new(
                        "the option needs a value",
                        format!("write {}=...", option.name),
                    ));
                }
            };
            if value.starts_with('(') || (value.contains('$') && option.name != "filename") {
                return Err(Complaint::new(
                    "expressions and variables are not evaluated",
                    "write the value itself",
                ));
            }
            set(job, value)?;
        }
    }
    Ok(option.name)
}

#[cfg(test)]
mod tests {
    use super::super::job::{DataPlacement, Operations};
    use super::super::value::Amount;
    use super::*;
    use crate::PlacementIndex;

    fn jobs(text: &str) -> Vec<Job> {
        parse(text, "test.fio").unwrap().jobs
    }

    fn error(text: &str) -> String {
        parse(text, "test.fio").unwrap_err().to_string()
    }

    #[test]
    fn sections_inherit_from_every_global_before_them() {
        let jobs = jobs(
            "# comment\n[global]\nbs=8k ; trailing\nrw=randwrite\n\n[a]\nsize=1g\n[global]\nbs=16k\niodepth=4\n[b]\nrw=write # why\n\
             [c]\niodepth=8\n",
        );
        assert_eq!(
            jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
        assert_eq!(
            jobs.iter().map(|job| job.bs[1]).collect::<Vec<_>>(),
            [8192, 16384, 16384]
        );
        assert_eq!(jobs.iter().map(|job| job.iodepth).collect::<Vec<_>>(), [1, 4, 8]);
        assert_eq!(jobs[0].size, Some(Amount::Bytes(1 << 30)));
        assert_eq!(jobs[1].size, None, "a job does not inherit from the job before it");
        assert!(jobs[0].access.random && !jobs[1].access.random && jobs[2].access.random);
        assert_eq!(jobs[2].line, 13);
    }

    #[test]
    fn aliases_are_the_same_option() {
        let jobs = jobs(
            "[a]\nreadwrite=randrw\nblocksize=8k\nio_limit=1m\nfdp_pli=3,1\nfdp_pli_select=random\ntimeout=5\nwait_for_previous\n",
        );
        let job = &jobs[0];
        assert_eq!(job.access.operations, Operations::ReadWrite);
        assert_eq!(
            (job.bs[0], job.io_size, job.runtime_us),
            (8192, Some(Amount::Bytes(1 << 20)), 5_000_000)
        );
        assert_eq!(job.plids, [1, 3].map(PlacementIndex), "fio sorts them");
        assert!(job.stonewall);
    }

    #[test]
    fn kb_base_counts_wherever_it_stands() {
        assert_eq!(jobs("[a]\nbs=4k\nkb_base=1000\n")[0].bs, [4000; 3]);
        assert_eq!(jobs("[global]\nkb_base=1000\n[a]\nbs=4kib\n")[0].bs, [4096; 3]);
    }

    #[test]
    fn thread_numbers_count_instances() {
        let jobs = jobs("[a]\nnumjobs=3\n[b]\n[c]\nnumjobs=2\n");
        assert_eq!(
            jobs.iter().map(|job| job.first_thread_number).collect::<Vec<_>>(),
            [1, 4, 5]
        );
    }

    #[test]
    fn placement_is_what_fdp_and_dataplacement_say() {
        assert_eq!(jobs("[a]\nfdp=1\n")[0].placement(), DataPlacement::Fdp);
        assert_eq!(
            jobs("[a]\ndata_placement=streams\nplids=2\n")[0].placement(),
            DataPlacement::Streams
        );
        assert_eq!(jobs("[a]\nplids=2\n")[0].placement(), DataPlacement::None);
        assert!(error("[a]\nfdp=1\ndataplacement=streams\nplids=1\n").contains("test.fio:3"));
        assert!(error("[a]\ndataplacement=streams\n").contains("add plids="));
        assert!(error("[a]\nfdp=1\nplid_select=scheme\n").contains("add dp_scheme="));
    }

    #[test]
    fn options_of_real_fio_without_meaning_here_are_accepted() {
        let text = "[global]\nioengine=io_uring_cmd\ncmd_type=nvme\nfilename=/dev/ng0n1\ndirect=1\nthread\ngroup_reporting\n\
                    log_avg_msec=1000\nramp_time=10\n[a]\nname=x\n";
        assert_eq!(jobs(text)[0].name, "a");
    }

    #[test]
    fn changes_come_after_the_file_and_must_name_a_job() {
        let text = "[a]\nplids=1\nfdp=1\n[b]\niodepth=4\n";
        let change = |section: &str, option: &str, value: &str| Override {
            section: section.to_owned(),
            option: option.to_owned(),
            value: value.to_owned(),
        };
        let jobs = parse_with(
            text,
            "test.fio",
            &[change("global", "iodepth", "8"), change("a", "plids", "3")],
        )
        .unwrap()
        .jobs;
        assert_eq!(jobs.iter().map(|job| job.iodepth).collect::<Vec<_>>(), [8, 8]);
        assert_eq!(
            (&jobs[0].plids[..], &jobs[1].plids[..]),
            (&[PlacementIndex(3)][..], &[][..])
        );
        let error = |change| parse_with(text, "test.fio", &[change]).unwrap_err().to_string();
        assert!(error(change("c", "iodepth", "8")).contains("name one of a, b"));
        assert!(error(change("b", "iodepht", "8")).contains("`iodepth`"));
    }

    #[test]
    fn errors_name_file_line_option_and_the_nearest_known_one() {
        assert_eq!(
            error("[a]\nrw=write\nblocksiez=4k\n"),
            "test.fio:3: blocksiez=4k: unknown option; did you mean `blocksize`?"
        );
        assert_eq!(
            error("[global]\n\nwait_for=b\n[a]\n"),
            "test.fio:3: wait_for=b: not supported: starts a job in the middle of others; order jobs with stonewall"
        );
        for (text, line, part) in [
            ("rw=write\n", 1, "[global]"),
            ("[a]\nbs=4q\n", 2, "suffix"),
            ("[a]\nbs\n", 2, "needs a value"),
            ("[a]\nbs=(4*1024)\n", 2, "expressions"),
            ("[a]\nsize=${SIZE}\n", 2, "variables"),
            ("[a]\nrw=randwirte\n", 2, "randwrite"),
            ("[a]\nrw=write:4k\n", 2, "modifier"),
            ("[a]\ninclude other.fio\n", 2, "include"),
            ("[a\nrw=write\n", 1, "bracket"),
            ("[a]\nrandom_distribution=zoned:80/20\n", 2, "zoned:80/20:20/80"),
            ("[a]\nrandom_distribution=zipf:1.0\n", 2, "theta"),
            ("[a]\nrandom_generator=lfsr\n", 2, "tausworthe"),
            ("[a]\nverify=crc32c\n", 2, "stores no data"),
            ("[a]\nplids=4-2\nfdp=1\n", 2, "backwards"),
            ("[a]\nplid_select=scheme\ndp_scheme=/does/not/exist\n", 3, "scheme"),
            ("[a]\ntime_based\n", 2, "runtime"),
            ("[a]\nrate=1m\nrate_iops=5\n", 3, "exclude"),
            ("[a]\nfilename=/dev/a:/dev/b\n", 2, "one section per target"),
            ("[global]\nbs=4k\n", 2, "no job"),
            ("", 1, "no job"),
        ] {
            let message = error(text);
            assert!(
                message.starts_with(&format!("test.fio:{line}: ")) && message.contains(part),
                "{text:?}: {message}"
            );
        }
    }
}
