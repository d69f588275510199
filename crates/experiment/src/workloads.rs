//! Workloads by name: job files, tables with a `kind`, block traces, and changes to them.
//!
//! ```text
//! jobs/*.fio, workloads/*.toml, a trace + WorkloadChanges -> applications::Spec
//! ```
//!
//! A name is looked up by path, then in the working folder, then among those built into the program. A trace of what a cache was asked
//! goes through a model of a cache, because such a request is no write to a drive.

use std::io::Read;
use std::path::{Path, PathBuf};

use applications::cache::{TraceFormat, is_mooncake};
use applications::{JobsOf, Spec, generator};
use base::input::TEXT_BYTES_MAX;
use rust_embed::RustEmbed;
use serde::{Deserialize, Serialize};
use toml::Value;
use workload::WorkloadError;
use workload::fio::{self, JobFile};

use crate::error::LabError;
use crate::find;
use crate::folders;

#[derive(RustEmbed)]
#[folder = "../../jobs"]
struct BuiltInJobs;

#[derive(RustEmbed)]
#[folder = "../../workloads"]
struct BuiltInWorkloads;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum WorkloadChoice {
    /// A job file of `jobs/`, a workload of `workloads/`, or a path.
    Named(String),
    /// The workload itself: a `kind` and its settings.
    Table(toml::Table),
}

impl WorkloadChoice {
    /// What it is called: the name of its file without folder and ending, or its kind.
    pub fn name(&self) -> String {
        match self {
            WorkloadChoice::Named(name) => label(name),
            WorkloadChoice::Table(table) => table.get("kind").map(plain).unwrap_or_default(),
        }
    }
}

/// What a workload with this name is called: the name of its file without folder and ending, or that of its generator.
pub fn label(name: &str) -> String {
    generator::label(name).map_or_else(|| find::stem(name), str::to_string)
}

/// Finds and reads a job file, with changed options.
///
/// # Errors
/// There is none, or a line of it (or a change) is wrong.
pub fn read_jobs(name: &str, changes: &[fio::Override]) -> Result<JobFile, LabError> {
    let found = find_jobs(name)?;
    jobs_of_text(&found.text, &found.file, changes)
}

/// Finds a job file, which is one by its ending or, of a path, by its text.
fn find_jobs(name: &str) -> Result<find::TextFile, LabError> {
    if begins_with_section(Path::new(name)) {
        let text = base::input::open(Path::new(name))
            .and_then(workload::trace::decompressed)
            .and_then(|text| base::input::read_all_text(text, TEXT_BYTES_MAX));
        return Ok(find::TextFile {
            name: find::stem(name),
            file: name.to_string(),
            text: text.map_err(|source| LabError::Io {
                file: name.to_string(),
                source,
            })?,
        });
    }
    find::find::<BuiltInJobs>("job file", "jobs", name, "fio")
}

/// Whether a file is a job file of another ending, compressed or not: the first of its lines that is no comment is a section's.
fn begins_with_section(path: &Path) -> bool {
    const LOOKED_AT_BYTES: u64 = 64 << 10;
    let is_other = !is_text(&path.to_string_lossy()) && path.is_file();
    let file = is_other.then(|| std::fs::File::open(path).ok()).flatten();
    let Some(text) = file.and_then(|file| workload::trace::decompressed(file).ok()) else {
        return false;
    };
    let mut start = Vec::new();
    if text.take(LOOKED_AT_BYTES).read_to_end(&mut start).is_err() {
        return false;
    }
    let lines = start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines
        .into_iter()
        .find(|line| !matches!(line.first(), None | Some(b'#' | b';')));
    first.is_some_and(|line| line.starts_with(b"[") && line.ends_with(b"]"))
}

/// Reads the text of a job file, with changed options; `file` is what messages call it.
///
/// # Errors
/// A line of it (or a change) is wrong.
pub fn jobs_of_text(text: &str, file: &str, changes: &[fio::Override]) -> Result<JobFile, LabError> {
    let surroundings = fio::Surroundings {
        read: &|path| base::input::read_text(path, TEXT_BYTES_MAX).or_else(|error| built_in_jobs(path).ok_or(error)),
        ..fio::Surroundings::default()
    };
    Ok(fio::parse_within(text, file, changes, &surroundings)?)
}

/// The text of a job file of `jobs/` that is built in, for those that include it.
fn built_in_jobs(path: &Path) -> Option<String> {
    let file = BuiltInJobs::get(path.strip_prefix("jobs").ok()?.to_str()?)?;
    Some(String::from_utf8_lossy(&file.data).into_owned())
}

/// The text of a job file.
///
/// # Errors
/// There is none.
pub fn text_of_jobs(name: &str) -> Result<String, LabError> {
    Ok(find_jobs(name)?.text)
}

/// The text of a workload with a `kind`.
///
/// # Errors
/// There is none.
pub fn text_of_workload(name: &str) -> Result<String, LabError> {
    Ok(find::find::<BuiltInWorkloads>("workload", "workloads", name, "toml")?.text)
}

#[derive(Clone, Debug, Default)]
pub struct WorkloadChanges {
    /// Options of a job file.
    pub jobs: Vec<fio::Override>,
    /// Settings by dotted path: of a workload with a `kind`; of a job file, options as `SECTION.OPTION`, `classifier.SETTING`
    /// and `share_percent`.
    pub settings: toml::Table,
}

impl WorkloadChanges {
    /// Changes a workload's table and reads it; `file` is what messages call it.
    ///
    /// # Errors
    /// Something in it, or a change, is wrong: names it.
    pub fn parse(&self, file: &str, table: &toml::Table) -> Result<Spec, LabError> {
        let mut table = table.clone();
        let is_job_file = table.get("kind").and_then(Value::as_str) == Some("fio");
        if is_job_file {
            // The settings of a job file are its options, wherever it stands.
            let jobs = self.of_jobs(file, &mut table)?;
            return WorkloadChanges {
                jobs,
                settings: toml::Table::new(),
            }
            .read(file, &table);
        }
        for (path, value) in &self.settings {
            find::insert(&mut table, path, value.clone())
                .map_err(|problem| LabError::invalid(file, format!("workload.{path}: {problem}")))?;
        }
        // The job files of tenants share no sections but the global one.
        let of_section = |change: &&fio::Override| change.section != "global";
        if let Some(change) = self.jobs.iter().find(of_section) {
            let problem = format!(
                "jobs.{}: the workload is no job file, so no section is meant; jobs.global is for all that are in it",
                change.section
            );
            return Err(LabError::invalid(file, problem));
        }
        self.read(file, &table)
    }

    /// Whether they are about a trace of blocks: a trace of a cache is replayed as one then.
    fn is_about_blocks(&self) -> bool {
        let of_blocks = ["format", "csv", "columns", "mapping", "kv_block_bytes"];
        self.settings.get("kind").and_then(Value::as_str) == Some(TRACE)
            || of_blocks.iter().any(|setting| self.settings.contains_key(*setting))
    }

    /// Reads a workload's table, whose settings are changed already.
    fn read(&self, file: &str, table: &toml::Table) -> Result<Spec, LabError> {
        let mut table = table.clone();
        for key in TRACE_FILES {
            if let Some(Value::Array(files)) = table.get_mut(key) {
                *files = without_folders(files)?;
            }
        }
        let table = &table;
        let find_jobs = |jobs: JobsOf<'_>| {
            let (place, jobs) = match jobs {
                JobsOf::File(name) => (format!("file = \"{name}\""), read_jobs(name, &self.jobs)),
                JobsOf::Text(text) => ("text".to_string(), jobs_of_text(text, "workload.text", &self.jobs)),
            };
            jobs.map_err(|error| match error {
                LabError::Job(error) => error.into(),
                other => WorkloadError::setting(place, other.to_string()),
            })
        };
        Spec::parse("workload", table, &find_jobs).map_err(|error| LabError::invalid(file, error.to_string()))
    }

    /// The changed options of a job file; settings that any workload has go into its table. `file` is what messages call it.
    fn of_jobs(&self, file: &str, of_any: &mut toml::Table) -> Result<Vec<fio::Override>, LabError> {
        let mut options = self.jobs.clone();
        for (path, value) in &self.settings {
            if path == "share_percent" || path.starts_with("classifier.") {
                find::insert(of_any, path, value.clone())
                    .map_err(|problem| LabError::invalid(file, format!("workload.{path}: {problem}")))?;
                continue;
            }
            let (section, option) = path.split_once('.').ok_or_else(|| {
                let problem = format!("workload.{path}: a setting of a job file is SECTION.OPTION, such as global.bs");
                LabError::invalid(file, problem)
            })?;
            options.push(fio::Override {
                section: section.to_string(),
                option: option.to_string(),
                value: plain(value),
            });
        }
        Ok(options)
    }
}

/// Finds and reads a workload: a job file (`*.fio`, a file that begins with a section, or a name in `jobs/`), a workload (`*.toml`, or a name in
/// `workloads/`), a block trace by its path, or a generator that is registered.
///
/// # Errors
/// There is none, or something in it (or a change) is wrong.
pub fn read_workload(name: &str, changes: &WorkloadChanges) -> Result<Spec, LabError> {
    if let Some((file, table)) = table_file(name, changes)? {
        return changes.parse(&file, &table);
    }
    find::check_path(name)?;
    let mut of_any = toml::Table::new();
    let options = changes.of_jobs(name, &mut of_any)?;
    let jobs = read_jobs(name, &options).map_err(|error| match error {
        LabError::Unknown { .. } => {
            let known = [job_names(), workload_names()].concat();
            LabError::unknown("workload or file", name, known.iter().map(String::as_str))
        }
        error => error,
    });
    let spec = Spec::from(jobs?).with("workload", of_any);
    spec.map_err(|error| LabError::invalid(name, error.to_string()))
}

/// The kind of block traces.
const TRACE: &str = "trace";
/// Settings that name the files of a trace.
const TRACE_FILES: [&str; 2] = ["files", "trace"];
/// Keys and values of a trace of a cache, percent of the drive that is the cache: it holds a quarter of what is asked for.
const WORKING_SET_PERCENT: f64 = 400.0;
/// Keys and values of 512 tokens, of a model with 128 KiB for each token (docs/workloads.md).
const MOONCAKE_CHUNK: &str = "64MiB";

/// The table of a workload that is not a job file, and what messages call it.
fn table_file(name: &str, changes: &WorkloadChanges) -> Result<Option<(String, toml::Table)>, LabError> {
    if generator::label(name).is_some() {
        let settings = [("kind", "generator"), ("name", name)];
        let settings = settings.map(|(key, value)| (key.to_string(), Value::from(value)));
        return Ok(Some((name.to_string(), toml::Table::from_iter(settings))));
    }
    let is_table = name.ends_with(".toml") || workload_names().iter().any(|known| known == name);
    if is_table {
        let found = find::find::<BuiltInWorkloads>("workload", "workloads", name, "toml")?;
        let table = toml::from_str(&found.text);
        let table: toml::Table = table.map_err(|error| LabError::invalid(&found.file, find::toml_problem(&error)))?;
        check_table(&found.file, &table)?;
        return Ok(Some((found.file, table)));
    }
    if !is_trace(name) {
        return Ok(None);
    }
    let files = trace_files(name)?;
    let cache = match changes.is_about_blocks() {
        true => None,
        false => cache_table(&files),
    };
    let blocks = || {
        toml::Table::from_iter([
            ("kind".to_string(), Value::from(TRACE)),
            ("files".to_string(), Value::from(files.clone())),
        ])
    };
    Ok(Some((name.to_string(), cache.unwrap_or_else(blocks))))
}

/// Refuses a table file whose settings stand one level too deep, as in an experiment.
///
/// # Errors
/// It has a table `workload` and no `kind`.
fn check_table(file: &str, table: &toml::Table) -> Result<(), LabError> {
    let is_inside = !table.contains_key("kind") && table.get("workload").is_some_and(Value::is_table);
    let problem = "a workload file has its keys at the top; remove the line [workload]";
    if is_inside {
        Err(LabError::invalid(file, problem))
    } else {
        Ok(())
    }
}

/// Refuses a file of a workload that says no kind.
///
/// # Errors
/// As for the table; it is no TOML.
pub fn check_kind(name: &str) -> Result<(), LabError> {
    if !name.ends_with(".toml") {
        return Ok(());
    }
    let table = table_file(name, &WorkloadChanges::default())?;
    match table {
        Some((file, table)) if !table.contains_key("kind") => Err(LabError::invalid(
            &file,
            "is no workload; its first line is kind = \"...\" (docs/workloads.md)",
        )),
        _ => Ok(()),
    }
}

/// The table of a cache that a trace goes through, if it is one of what a cache was asked.
fn cache_table(files: &[String]) -> Option<toml::Table> {
    let first = PathBuf::from(files.first()?);
    if is_mooncake(&first) {
        let requests = toml::toml! { kind = "mooncake" };
        let requests = requests
            .into_iter()
            .chain([("files".to_string(), Value::from(files.to_vec()))]);
        let mut class = toml::Table::from_iter([("chunk_bytes".to_string(), Value::from(MOONCAKE_CHUNK))]);
        class.insert("requests".to_string(), Value::Table(requests.collect()));
        let mut table = toml::toml! { kind = "kvcache_tier" };
        table.insert(
            "classes".to_string(),
            toml::Table::from_iter([(TRACE.to_string(), Value::Table(class))]).into(),
        );
        return Some(table);
    }
    let format = Value::try_from(TraceFormat::recognize(&first)?).expect("a format has a name");
    Some(toml::Table::from_iter([
        ("kind".to_string(), Value::from("cachelib")),
        (TRACE.to_string(), Value::from(files.to_vec())),
        ("trace_format".to_string(), format),
        (
            "trace_working_set_percent".to_string(),
            Value::from(WORKING_SET_PERCENT),
        ),
    ]))
}

/// The first line about a trace of what a cache was asked: the engine and the size of the cache that it goes through, and how it is replayed
/// otherwise. None of any other workload. `device_bytes` is the capacity of the drive at full size.
pub fn cache_sentence(name: &str, spec: &Spec, device_bytes: u64) -> Option<String> {
    let cache = spec.traced_cache(device_bytes).filter(|_| is_trace(name))?;
    Some(format!(
        "{name} is a trace of what a cache was asked, so it goes through a cache: {cache}. \
         --set workload.kind=trace replays its objects as blocks instead."
    ))
}

/// The files of a trace by its path: of a folder those in it, one after another.
fn trace_files(name: &str) -> Result<Vec<String>, LabError> {
    if !Path::new(name).is_dir() {
        return Ok(vec![name.to_string()]);
    }
    let files = files_in(name)?;
    let is_other = |file: &&String| is_text(file) || begins_with_section(Path::new(file));
    match files.iter().find(is_other) {
        Some(other) => Err(LabError::invalid(
            name,
            format!("is a folder with {other}, which is no trace; name one of its files"),
        )),
        None => Ok(files),
    }
}

/// The same list with the files of a folder in its place.
fn without_folders(files: &[Value]) -> Result<Vec<Value>, LabError> {
    let mut all = Vec::new();
    for file in files {
        match file.as_str().filter(|file| Path::new(file).is_dir()) {
            Some(folder) => all.extend(trace_files(folder)?.into_iter().map(Value::from)),
            None => all.push(file.clone()),
        }
    }
    Ok(all)
}

/// Workloads in a folder, by their paths in order. Files of a trace that are read side by side are one.
///
/// # Errors
/// It cannot be read, has more files than a folder of traces, or none.
pub fn files_in(folder: &str) -> Result<Vec<String>, LabError> {
    const FILES_MAX: usize = 65_536;
    let failed = |source| LabError::Io {
        file: folder.to_string(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_first = || workload::trace::files_of(&path).first() == Some(&path);
        if path.is_file() && !is_hidden && is_first() {
            files.push(path.display().to_string());
        }
        if files.len() > FILES_MAX {
            return Err(LabError::invalid(
                folder,
                format!("has more than {FILES_MAX} files; name one of them"),
            ));
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(LabError::invalid(
            folder,
            "is an empty folder; put traces, job files or workloads in it",
        ));
    }
    Ok(files)
}

/// Refuses a list of columns for anything that is no trace.
///
/// # Errors
/// The workload is a job file or a model, or there is none of this name.
pub fn check_columns(name: &str) -> Result<(), LabError> {
    find::check_path(name)?;
    match is_trace(name) {
        true => Ok(()),
        false => Err(LabError::invalid(
            "--columns",
            format!("says what the columns of a trace are, and {name} is none; leave it out"),
        )),
    }
}

/// Refuses a path that leads nowhere.
///
/// # Errors
/// There is no such file.
pub fn check_path(name: &str) -> Result<(), LabError> {
    find::check_path(name)
}

/// The table of any workload, changed by nothing: of a job file, one of the kind `fio`.
///
/// # Errors
/// There is no such table, or it is not TOML.
pub fn table_of(name: &str, changes: &WorkloadChanges) -> Result<toml::Table, LabError> {
    let of_jobs = || {
        toml::Table::from_iter([
            ("kind".to_string(), Value::from("fio")),
            ("file".to_string(), Value::from(name)),
        ])
    };
    Ok(table_file(name, changes)?.map_or_else(of_jobs, |(_, table)| table))
}

/// Whether a name says itself that it is a workload's: a job file, a table with a `kind`, a block trace, a generator.
pub fn is_workload_file(name: &str) -> bool {
    let has_kind = || {
        let text = base::input::read_text(Path::new(name), TEXT_BYTES_MAX).unwrap_or_default();
        toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("kind"))
    };
    generator::label(name).is_some()
        || name.ends_with(".fio")
        || begins_with_section(Path::new(name))
        || is_trace(name)
        || (name.ends_with(".toml") && has_kind())
}

/// Whether a name is the path of a trace: an existing file (or a stream) that is neither a job file nor a table, or a folder of such. What
/// is no regular file is refused where it is read.
fn is_trace(name: &str) -> bool {
    let path = Path::new(name);
    if path.is_dir() {
        // A folder that happens to be called as something known is not meant.
        let is_known = || {
            [job_names(), workload_names(), folders::names()]
                .concat()
                .iter()
                .any(|known| known == name)
        };
        return folders::file_in(name).is_none() && !is_known();
    }
    !is_text(name) && !begins_with_section(path) && (workload::trace::spool::is_stream(path) || path.exists())
}

/// Whether a name ends as those of job files and tables do.
fn is_text(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("fio" | "toml"))
}

/// Names of the workloads in `./workloads` and built in.
pub fn workload_names() -> Vec<String> {
    find::names::<BuiltInWorkloads>("workloads", "toml")
}

/// Names of the job files in `./jobs` and built in.
pub fn job_names() -> Vec<String> {
    find::names::<BuiltInJobs>("jobs", "fio")
}

/// A TOML value as fio or a table heading would write it: strings without quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_begins_with_a_section_is_a_job_file_whatever_its_ending() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("it can be written");
            path.display().to_string()
        };
        let jobs = path("jobs.ini", "# of fio\n\n; too\n[global]\nbs=8k\n[a]\nrw=write\n");
        assert!(is_workload_file(&jobs));
        let spec = read_workload(&jobs, &WorkloadChanges::default()).expect("a job file");
        assert_eq!(spec.jobs().expect("it has jobs").jobs[0].bs[1], 8192);
        let trace = path("trace.txt", "fio version 2 iolog\n");
        assert!(is_trace(&trace) && !begins_with_section(Path::new(&trace)));
        assert!(!begins_with_section(folder.path()));
    }

    #[test]
    fn changes_of_sections_reach_the_job_file_of_a_workload_with_a_kind() {
        let changes = |section: &str| WorkloadChanges {
            jobs: vec![fio::Override {
                section: section.to_string(),
                option: "iodepth".to_string(),
                value: "7".to_string(),
            }],
            settings: toml::Table::new(),
        };
        let parse = |section: &str, table: &str| {
            let table = toml::from_str(table).expect("it is a table");
            changes(section).parse("x.toml", &table)
        };
        let job_file = "kind = \"fio\"\nfile = \"two_sequential\"\n";
        let depths = |section: &str| -> Vec<u64> {
            let spec = parse(section, job_file).expect("there is such a section");
            spec.jobs()
                .expect("it is a job file")
                .jobs
                .iter()
                .map(|job| job.iodepth)
                .collect()
        };
        let names: Vec<String> = read_jobs("two_sequential", &[])
            .expect("it is built in")
            .jobs
            .into_iter()
            .map(|job| job.name)
            .collect();
        assert_eq!(depths(&names[1])[1], 7);
        assert_ne!(depths(&names[1])[0], 7);
        assert_eq!(depths("global"), vec![7; names.len()]);
        let error = |section: &str, table: &str| parse(section, table).unwrap_err().to_string();
        assert!(error("nobody", job_file).contains("there is no such job to change"));
        let of_another = error("first", "kind = \"tenants\"\n");
        assert!(
            of_another.contains("jobs.first: the workload is no job file"),
            "{of_another}"
        );
    }
}
