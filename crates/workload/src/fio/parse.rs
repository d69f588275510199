//! Parser of job files, with sections, inheritance, comments and included files.
//!
//! The input is text, line by line (`lines` expands included files). Each `[section]` starts as a
//! copy of the options of the previous `[global]` sections and changes the copy. The table of
//! `options` finds and sets options. The result is a [`JobFile`] of typed jobs, or all errors of
//! the file together.
//!
//! The parser does not know the drive.

use serde::{Deserialize, Serialize};

use super::error::{FileLine, JobError, OptionError};
use super::expression::{self, Suffixes};
use super::job::Job;
use super::lines::{IncludeContext, OptionLine, sections};
use super::options::{Effect, FioOption, OptionKind, READ_FIRST, find, idle_reason, nearest};
use super::value::KbBase;

/// Maximum jobs of a file, counting each instance of `numjobs`. fio's `REAL_MAX_JOBS`.
pub const JOBS_MAX: u32 = 4096;
/// Maximum bytes of options that all sections together inherit from `[global]`.
const INHERITED_BYTES_MAX: usize = 16 << 20;

/// A job file with its jobs in the order of their sections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobFile {
    /// Path of the file as given by the caller, for messages.
    #[serde(skip)]
    pub file: String,
    /// The jobs, at least one.
    pub jobs: Vec<Job>,
}

/// An option that is set after those of the file, so that an experiment runs one file in several
/// variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The job to change. `global` means every job.
    pub section: String,
    /// Name of the option.
    pub option: String,
    /// New value of the option.
    pub value: String,
}

impl JobFile {
    /// The given options without effect here, with the reason, in the order of the manual.
    pub fn without_effect(&self) -> Vec<(&'static FioOption, &'static str)> {
        let reason = |option: &'static FioOption| {
            let given = self.jobs.iter().filter(|job| job.is_given(option.name()));
            let given: Vec<&Job> = given.collect();
            if given.is_empty() {
                return None;
            }
            let why = if option.is_silent() { Some(option.help) } else { idle_reason(option.name(), &given) };
            Some((option, why?))
        };
        super::options().iter().filter_map(reason).collect()
    }

    /// True if the first job that ends also ends other jobs (`exitall`).
    pub fn exits_all(&self) -> bool {
        self.jobs.iter().any(|job| job.exitall)
    }

    /// True if another job waits for this one.
    pub(super) fn is_awaited(&self, job: &Job) -> bool {
        self.jobs.iter().any(|other| other.wait_for.as_ref() == Some(&job.name))
    }

    /// The given options that would change the run but are not honoured. In virtual time these are
    /// the options that are not modelled. Without time it is the length of jobs. If the run says
    /// how much to write, it is also `exitall`, because no job ends by itself.
    pub fn ineffective_options(&self, timed: bool, endless: bool) -> Vec<&'static str> {
        let mut pretended = Vec::new();
        if timed {
            let options = self.without_effect().into_iter().map(|(option, _)| option);
            pretended.extend(options.filter(|option| option.is_pretended()).map(|option| option.name()));
        } else if self.jobs.iter().any(|job| job.runtime_us > 0 && !job.time_based) {
            pretended.push("runtime");
        }
        let ends = |job: &Job| self.is_awaited(job) || timed && job.runtime_us > 0;
        if endless
            && self.exits_all()
            && !self.jobs.iter().skip(1).any(|job| job.stonewall)
            && !self.jobs.iter().any(ends)
        {
            pretended.push("exitall");
        }
        pretended
    }
}

/// Parses a job file. `file_name` is used in messages, and to find included files and a `dp_scheme`
/// file in the same folder.
///
/// # Errors
/// Returns all errors of the file.
pub fn parse(text: &str, file_name: &str) -> Result<JobFile, JobError> {
    parse_with(text, file_name, &[])
}

/// Parses a job file and changes options of its jobs.
///
/// # Errors
/// Like [`parse`], and fails if a change does not fit.
pub fn parse_with(text: &str, file_name: &str, changes: &[Override]) -> Result<JobFile, JobError> {
    parse_within(text, file_name, changes, &IncludeContext::default())
}

/// Parses a job file with custom sources of included files and variables.
///
/// # Errors
/// Like [`parse_with`].
pub fn parse_within(
    text: &str,
    file_name: &str,
    changes: &[Override],
    surroundings: &IncludeContext<'_>,
) -> Result<JobFile, JobError> {
    let mut problems = Vec::new();
    let mut global = Job::with_defaults(file_name);
    let mut jobs: Vec<Job> = Vec::new();
    let mut next_thread_number = 1;
    let (mut global_bytes, mut inherited_bytes) = (0, 0);
    for section in sections(text, file_name, surroundings, &mut problems) {
        // fio takes every section whose name starts with `global` for a global one.
        if section.name.starts_with("global") {
            problems.extend(apply(&mut global, &section.lines, surroundings));
            global_bytes += section.lines.iter().map(OptionLine::bytes).sum::<usize>();
            continue;
        }
        inherited_bytes += global_bytes;
        if inherited_bytes > INHERITED_BYTES_MAX {
            let complaint = OptionError::new(
                format!("the sections up to here inherit more than {INHERITED_BYTES_MAX} bytes of options in total"),
                "Write shorter [global] sections, or fewer other sections",
            );
            problems.push(complaint.at(&section.place, format!("[{}]", section.name)));
            break;
        }
        let mut job = Job { name: section.name.clone(), place: section.place.clone(), ..global.clone() };
        let mut of_job = apply(&mut job, &section.lines, surroundings);
        let is_of_job = |change: &&Override| change.section == "global" || change.section == section.name;
        let changes: Vec<OptionLine> = changes
            .iter()
            .filter(is_of_job)
            .map(|change| OptionLine {
                place: section.place.clone(),
                name: change.option.clone(),
                value: Some(change.value.clone()),
            })
            .collect();
        // Changes are applied singly. An option that is read first belongs to its change, not to
        // the section.
        for change in &changes {
            of_job.extend(apply(&mut job, std::slice::from_ref(change), surroundings));
        }
        // fio does the same.
        job.time_based &= job.runtime_us > 0;
        job.first_thread_number = next_thread_number;
        next_thread_number += job.numjobs;
        if next_thread_number > JOBS_MAX + 1 {
            let problem = format!("the file has more than {JOBS_MAX} jobs, the limit of fio");
            problems.push(job.error("numjobs", problem, "Use fewer sections or instances"));
            break;
        }
        // Errors that follow from unreadable options would add no information.
        if of_job.is_empty() {
            of_job.extend(job.check().err());
        }
        problems.extend(of_job);
        jobs.push(job);
    }
    // A file with unreadable lines may have further jobs that were not recognized.
    if problems.is_empty() {
        problems.extend(check_file(text, file_name, &jobs, changes).err());
        problems.extend(check_order(&jobs));
    }
    JobError::all(problems)?;
    let instances: u32 = jobs.iter().map(|job| job.numjobs).sum();
    assert_eq!(next_thread_number, instances + 1, "the numbers of the instances are not consecutive");
    Ok(JobFile { file: file_name.to_owned(), jobs })
}

/// Refuses a file without jobs, and changes of jobs that it does not have.
fn check_file(text: &str, file: &str, jobs: &[Job], changes: &[Override]) -> Result<(), JobError> {
    let end = FileLine::new(file, text.lines().count().max(1));
    if jobs.is_empty() {
        let complaint =
            OptionError::new("no section describes a job", "Add a section, for example [job] with rw=write");
        return Err(complaint.at(&end, "the job file"));
    }
    let unknown = |change: &&Override| change.section != "global" && jobs.iter().all(|job| job.name != change.section);
    let Some(change) = changes.iter().find(unknown) else {
        return Ok(());
    };
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let remedy = format!("Name one of {}", names.join(", "));
    let complaint = OptionError::new("the file has no such job to change", remedy);
    Err(complaint.at(&end, format!("[{}]", change.section)))
}

/// Performs fio's checks of `wait_for`, and refuses ambiguous uses of `exitall`.
fn check_order(jobs: &[Job]) -> Vec<JobError> {
    let mut problems = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        if let Some(name) = &job.wait_for {
            let earlier = jobs[..index].iter().filter(|other| other.name == *name).count();
            let problem = match earlier {
                _ if *name == job.name => "a job cannot wait for itself".to_owned(),
                0 => format!("no section above it is called [{name}]"),
                1 => continue,
                count => format!("{count} sections above it are called [{name}]"),
            };
            problems.push(job.error("wait_for", problem, "Name one section above it"));
        }
        if job.is_given("new_group") && jobs.iter().any(|job| job.exitall) {
            let problem = "new_group cannot be combined with exitall, which ends the jobs of a group together";
            problems.push(job.error("new_group", problem, "Remove it, or separate the jobs with stonewall"));
        }
    }
    problems
}

/// Applies a section's options to a job and returns their errors.
fn apply(job: &mut Job, lines: &[OptionLine], surroundings: &IncludeContext<'_>) -> Vec<JobError> {
    let (first, rest): (Vec<&OptionLine>, Vec<&OptionLine>) = lines.iter().partition(|line| line.name == READ_FIRST);
    let mut problems = Vec::new();
    for line in first.into_iter().chain(rest) {
        match set(job, line, surroundings) {
            Ok(name) => job.record_location(name, &line.place),
            Err(complaint) => {
                let subject = match &line.value {
                    Some(value) => format!("{}={value}", line.name),
                    None => line.name.clone(),
                };
                problems.push(complaint.at(&line.place, subject));
            }
        }
    }
    problems
}

/// Sets one option and returns its primary name.
fn set(job: &mut Job, line: &OptionLine, surroundings: &IncludeContext<'_>) -> Result<&'static str, OptionError> {
    let Some(option) = find(&line.name) else {
        let remedy = match nearest(&line.name) {
            Some(known) => format!("Did you mean `{known}`?"),
            None => "See docs/reference/job-files.md for the known options".to_owned(),
        };
        return Err(OptionError::new("the option is not known", remedy));
    };
    match option.effect {
        Effect::None => {}
        Effect::Checked(check) => check(&surroundings.substitute(line.value.as_deref().unwrap_or_default())?)?,
        Effect::Refused(remedy) => {
            return Err(OptionError::new(format!("the option is not supported, because it {}", option.help), remedy));
        }
        Effect::Active(set) => {
            let value = match &line.value {
                Some(value) => resolve(value, option, job.kb_base, surroundings)?,
                None if matches!(option.kind, OptionKind::Flag | OptionKind::FlagOrName) => String::new(),
                None => {
                    return Err(OptionError::new("the option needs a value", format!("Write {}=...", option.name())));
                }
            };
            set(job, &value)?;
        }
    }
    Ok(option.name())
}

/// Replaces variables and expressions in a value by their results.
fn resolve(
    value: &str,
    option: &FioOption,
    kb_base: KbBase,
    surroundings: &IncludeContext<'_>,
) -> Result<String, OptionError> {
    let value = surroundings.substitute(value)?;
    if option.name() == "filename" {
        return Ok(value);
    }
    if value.contains('$') {
        let problem = "fio's own variables ($ncpus, $mb_memory, $pagesize) depend on the machine and are not \
                       supported";
        return Err(OptionError::new(problem, "Write the value itself, or a variable such as ${SIZE}"));
    }
    let suffixes = match option.kind {
        OptionKind::Time => Suffixes::Times,
        _ => Suffixes::Sizes { kilo: if kb_base == KbBase::Binary { 1024 } else { 1000 } },
    };
    expression::evaluate(&value, suffixes)
}

#[cfg(test)]
mod tests {
    use super::super::job::{DataPlacement, JobOperations};
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
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(jobs.iter().map(|job| job.bs[1]).collect::<Vec<_>>(), [8192, 16384, 16384]);
        assert_eq!(jobs.iter().map(|job| job.iodepth).collect::<Vec<_>>(), [1, 4, 8]);
        assert_eq!(jobs[0].size, Some(Amount::Bytes(1 << 30)));
        assert_eq!(jobs[1].size, None, "a job does not inherit from the job before it");
        assert!(jobs[0].access.random && !jobs[1].access.random && jobs[2].access.random);
        assert_eq!(jobs[2].place.line, 13);
    }

    #[test]
    fn aliases_are_the_same_option() {
        let jobs = jobs(
            "[a]\nreadwrite=randrw\nblocksize=8k\nio_limit=1m\nfdp_pli=3,1\nfdp_pli_select=random\ntimeout=5\nwait_for_previous\n",
        );
        let job = &jobs[0];
        assert_eq!(job.access.operations, JobOperations::ReadWrite);
        assert_eq!((job.bs[0], job.io_size, job.runtime_us), (8192, Some(Amount::Bytes(1 << 20)), 5_000_000));
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
        assert_eq!(jobs.iter().map(|job| job.first_thread_number).collect::<Vec<_>>(), [1, 4, 5]);
    }

    #[test]
    fn placement_is_what_fdp_and_dataplacement_say() {
        assert_eq!(jobs("[a]\nfdp=1\n")[0].placement(), DataPlacement::Fdp);
        assert_eq!(jobs("[a]\ndata_placement=streams\nplids=2\n")[0].placement(), DataPlacement::Streams);
        assert_eq!(jobs("[a]\nplids=2\n")[0].placement(), DataPlacement::None);
        assert!(error("[a]\nfdp=1\ndataplacement=streams\nplids=1\n").contains("test.fio:3"));
        assert!(error("[a]\ndataplacement=streams\n").contains("for example plids=1,2"));
        assert!(error("[a]\nfdp=1\nplid_select=scheme\n").contains("Add dp_scheme="));
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
        let jobs =
            parse_with(text, "test.fio", &[change("global", "iodepth", "8"), change("a", "plids", "3")]).unwrap().jobs;
        assert_eq!(jobs.iter().map(|job| job.iodepth).collect::<Vec<_>>(), [8, 8]);
        assert_eq!((&jobs[0].plids[..], &jobs[1].plids[..]), (&[PlacementIndex(3)][..], &[][..]));
        let error = |change| parse_with(text, "test.fio", &[change]).unwrap_err().to_string();
        assert!(error(change("c", "iodepth", "8")).contains("Name one of a, b"));
        assert!(error(change("b", "iodepht", "8")).contains("`iodepth`"));
    }

    #[test]
    fn errors_name_file_line_option_and_the_nearest_known_one() {
        assert_eq!(
            error("[a]\nrw=write\nblocksiez=4k\n"),
            "test.fio:3: in blocksiez=4k, the option is not known. Did you mean `blocksize`?"
        );
        assert_eq!(
            error("[global]\n\nprofile=act\n[a]\n"),
            "test.fio:3: in profile=act, the option is not supported, because it selects a workload built into fio. \
             Write the jobs of the workload"
        );
        for (text, line, part) in [
            ("rw=write\n", 1, "[global]"),
            ("[a]\nbs=4q\n", 2, "suffix"),
            ("[a]\nbs\n", 2, "needs a value"),
            ("[a]\nbs=(4*)\n", 2, "where a number belongs"),
            ("[a]\nbs=$pagesize\n", 2, "${SIZE}"),
            ("[a]\nsize=${NOT_SET_ANYWHERE}\n", 2, "NOT_SET_ANYWHERE is not set"),
            ("[a]\nsize=${SIZE\n", 2, "closing brace"),
            ("[a]\nrw=randwirte\n", 2, "randwrite"),
            ("[a]\nrw=write:4q\n", 2, "suffix"),
            ("[a]\nioengine=cpuio\n", 2, "Remove the job"),
            ("[a]\nzonemode=zbd\n", 2, "not a zoned device"),
            ("[a]\nzonesize=1m\n", 1, "needs zonemode=strided"),
            ("[a]\nzonemode=strided\n", 2, "need a zonesize"),
            ("[a]\nrw=trimwrite\nzonemode=strided\nzonesize=1m\n", 3, "with trims before writes"),
            ("[a]\nrandom_distribution=sequence:1,x\n", 2, "sequence:2,0,1"),
            ("[a]\nsize=50.5%\n", 2, "stops at the decimal point"),
            ("[a]\nstartdelay=1s-2s\n", 2, "microseconds"),
            ("[a]\ninclude other.fio\n", 2, "other.fio cannot be read"),
            ("[a]\ninclude\n", 2, "include FILE"),
            ("[a\nrw=write\n", 1, "bracket"),
            ("[a]\nrandom_distribution=zoned:80/20\n", 2, "zoned:80/20:20/80"),
            ("[a]\nrandom_distribution=zipf:1.0\n", 2, "theta"),
            ("[a]\nrandom_generator=lfsr\n", 2, "tausworthe"),
            ("[a]\nrw=randread:none\n", 2, "whole number"),
            ("[a]\nverify=crc33\n", 2, "crc32"),
            ("[a]\nverify_only\n", 2, "Write the reads as a job"),
            ("[a]\nplids=4-2\nfdp=1\n", 2, "backwards"),
            ("[a]\nwait_for=b\n[b]\n", 2, "no section above it is called [b]"),
            ("[a]\nwait_for=a\n", 2, "cannot wait for itself"),
            ("[a]\n[a]\n[b]\nwait_for=a\n", 4, "2 sections above it are called [a]"),
            ("[a]\nexitall\n[b]\nnew_group\n", 4, "cannot be combined with exitall"),
            ("[a]\nexit_what=some\n", 2, "stonewall"),
            ("[a]\nlatency_percentile=101\n", 2, "from 0 to 100"),
            ("[a]\nlatency_target=5ms\nnumjobs=2\n", 2, "remove numjobs"),
            ("[a]\nplid_select=scheme\ndp_scheme=/does/not/exist\n", 3, "scheme"),
            ("[a]\nrate=1m\nrate_iops=5\n", 3, "cannot be combined"),
            ("[a]\nfilename=/dev/a:/dev/b\n", 2, "one section per target"),
            ("[global]\nbs=4k\n", 2, "no section describes a job"),
            ("", 1, "no section describes a job"),
        ] {
            let message = error(text);
            assert!(
                message.starts_with(&format!("test.fio:{line}: ")) && message.contains(part),
                "{text:?}: {message}"
            );
        }
    }

    /// Parses a file with the given included files and variables.
    fn within(text: &str, files: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<JobFile, JobError> {
        let found = |pairs: &[(&str, &str)], wanted: &str| {
            let pair = pairs.iter().find(|(name, _)| *name == wanted);
            pair.map(|(_, text)| (*text).to_owned())
        };
        let surroundings = IncludeContext {
            read: &|path| {
                let text = found(files, path.to_str().expect("text"));
                text.ok_or_else(|| std::io::ErrorKind::NotFound.into())
            },
            variable: &|name| found(variables, name),
        };
        parse_within(text, "jobs/test.fio", &[], &surroundings)
    }

    #[test]
    fn included_files_stand_in_the_place_of_the_line() {
        let files = [
            ("jobs/common.fio", "bs=16k\niodepth=4\ninclude deeper/more.fio\n"),
            ("jobs/deeper/more.fio", "rw=randwrite\ninclude last.fio\n"),
            ("jobs/deeper/last.fio", "size=1g\n"),
        ];
        let read = within("[global]\ninclude common.fio\n[b]\nsize=2g\n[c]\n", &files, &[]).unwrap();
        let jobs: Vec<_> = read.jobs.iter().map(|job| (job.name.as_str(), job.bs[1], job.size)).collect();
        let bytes = |giga: u64| Some(Amount::Bytes(giga << 30));
        assert_eq!(jobs, [("b", 16384, bytes(2)), ("c", 16384, bytes(1))]);
        for (text, files, expected) in [
            (
                "[a]\ninclude b.fio\n",
                [("jobs/b.fio", "[b]\n")],
                "jobs/b.fio:1: in `[b]`, the included file has a section",
            ),
            (
                "include b.fio\n[a]\n",
                [("jobs/b.fio", "bs=8k\n")],
                "jobs/test.fio:1: in `include b.fio`, the option stands before",
            ),
        ] {
            let error = within(text, &files, &[]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let wrong = [("jobs/common.fio", "bs=16k\nio_dpeth=4\n")];
        let error = within("[a]\ninclude common.fio\n", &wrong, &[]).unwrap_err().to_string();
        assert_eq!(error, "jobs/common.fio:2: in io_dpeth=4, the option is not known. Did you mean `iodepth`?");
        let circle = [("jobs/a.fio", "include b.fio\n"), ("jobs/b.fio", "include a.fio\n")];
        let error = within("[a]\ninclude a.fio\n", &circle, &[]).unwrap_err().to_string();
        assert!(error.starts_with("jobs/b.fio:1: in `include a.fio`, the file includes itself"), "{error}");
        let names: Vec<String> = (0..12).map(|index| format!("jobs/{index}.fio")).collect();
        let texts: Vec<String> = (1..13).map(|index| format!("include {index}.fio\n")).collect();
        let deep: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        let error = within("[a]\ninclude 0.fio\n", &deep, &[]).unwrap_err().to_string();
        assert!(error.contains("more than 8 files include each other"), "{error}");
    }

    #[test]
    fn variables_and_expressions_stand_for_their_values() {
        let text = "[a]\nrw=${RW}\nbs=(2*${KIB}k),(4*${KIB}k)\nsize=${PERCENT}%\nthinktime=(1ms+500)\nruntime=(2s)\n\
                    thinktime_blocks=(2^3)\nfilename=/dev/${DRIVE}\n";
        let variables = [("RW", "randwrite"), ("KIB", "2"), ("PERCENT", "50"), ("DRIVE", "ng0n1")];
        let job = within(text, &[], &variables).unwrap().jobs.remove(0);
        assert_eq!((job.bs, job.size), ([4096, 8192, 8192], Some(Amount::Percent(50))));
        assert_eq!((job.thinktime_us, job.thinktime_blocks, job.runtime_us), (1500, 8, 2_000_000));
        assert_eq!(job.filename.as_deref(), Some("/dev/ng0n1"));
        let decimal = within("[a]\nbs=(4k)\nkb_base=1000\n", &[], &[]).unwrap();
        assert_eq!(decimal.jobs[0].bs[0], 4000);
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let error = error("[global]\nbs=4q\n[a]\nrw=randwirte\n[b]\nrate=1m\nrate_iops=5\n[c]\nwait_fro=a\n");
        let places: Vec<&str> = error.lines().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(places, ["test.fio:2", "test.fio:4", "test.fio:7", "test.fio:9"], "{error}");
        let file = parse("[global]\nioengine=libaio\n[a]\nfsync=1\nbs=8k\n", "test.fio").unwrap();
        let silent: Vec<&str> = file.without_effect().iter().map(|(option, _)| option.name()).collect();
        assert_eq!(silent, ["ioengine", "fsync"]);
    }

    #[test]
    fn options_that_other_options_leave_nothing_to_do_are_without_effect() {
        let idle = |text: &str| {
            let file = parse(text, "test.fio").unwrap();
            let names = file.without_effect().into_iter().map(|(option, _)| option.name());
            names.collect::<Vec<_>>()
        };
        assert_eq!(idle("[a]\nrw=randwrite\nrwmixread=70\n"), ["rwmixread"]);
        assert_eq!(idle("[a]\nrw=randrw\nrwmixread=70\n"), [""; 0]);
        let one_of_two_mixes = "[global]\nrwmixwrite=30\n[a]\nrw=rw\n[b]\nrw=write\n";
        assert_eq!(idle(one_of_two_mixes), [""; 0]);
        assert_eq!(idle("[a]\nrw=write\nrandom_distribution=zipf:1.2\n"), ["random_distribution"]);
        assert_eq!(idle("[a]\ntime_based\n"), ["time_based"], "fio says so and goes on");
        assert_eq!(idle("[a]\nrw=write\nplids=1,2\nthinktime_blocks=4\n"), ["thinktime_blocks", "plids"]);
    }

    #[test]
    fn jobs_that_a_drive_cannot_do_are_refused_and_options_of_other_engines_are_not() {
        for engine in ["net", "cpuio", "exec", "filecreate", "falloc", "http", "rdma"] {
            let message = error(&format!("[a]\nioengine={engine}\nport=8888\ncpuload=50\n"));
            let expected = format!("test.fio:2: in ioengine={engine}, the engine {engine} ");
            assert!(message.starts_with(&expected) && message.lines().count() == 1, "{message}");
        }
        let text = "[a]\nioengine=spdk_bdev\nspdk_json_conf=a.json\nspdk_mem=512\nspdk_single_seg=1\n[b]\nioengine=rbd\n\
                    clientname=admin\npool=rbd\nrbdname=fio\n[c]\nioengine=libblkio\nlibblkio_driver=io_uring\n[d]\n\
                    ioengine=nbd\nuri=nbd://localhost\n[e]\nioengine=mtd\nskip_bad=1\nthreads=1\n";
        assert_eq!(jobs(text).len(), 5);
        assert!(error("[a]\nnrfiles=4\n").contains("one section per target"));
        assert!(error("[a]\nfilesize=4k-8k\n").contains("random sizes"));
        assert!(error("[a]\nfill_device=1\nsize=1m\n").contains("default size is the rest"));
        assert!(parse("[a]\nrw=write\nfill_device=1\n", "test.fio").is_ok());
        assert!(error("[a]\nrw=write\nwrite_mode=uncor\n").contains("writes no flash page"));
        assert!(error("[a]\nrw=write\nwrite_mode=write/50:zeroes/60\n").contains("110"));
        assert!(error("[a]\nrw=trimwrite\nnum_range=4\n").contains("trim-and-write"));
    }
}
