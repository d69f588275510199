//! Named workloads: job files, tables with a `kind`, block traces, and changes to them.
//!
//! ```text
//! jobs/*.fio, workloads/*.toml, a trace + WorkloadChanges -> applications::WorkloadSpec
//! ```
//!
//! A name is searched by path, in the working folder, and among the built-in ones. A trace of cache
//! requests passes through a cache model, because such a request is not a drive write.

use std::io::Read;
use std::path::{Path, PathBuf};

use applications::cache::{CacheTraceFormat, is_mooncake};
use applications::{JobsReference, WorkloadSpec, generator};
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

/// Workload of an experiment, a cell or a session.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum WorkloadChoice {
    /// Name in `jobs/` or `workloads/`, or a path.
    Named(String),
    /// Inline workload: a `kind` and its settings.
    Table(toml::Table),
}

impl WorkloadChoice {
    /// Name of the workload: its file name without folder and extension, or its kind.
    pub fn name(&self) -> String {
        match self {
            WorkloadChoice::Named(name) => label(name),
            WorkloadChoice::Table(table) => table.get("kind").map(plain).unwrap_or_default(),
        }
    }
}

/// Name of a workload: its file name without folder and extension, or that of its generator.
pub fn label(name: &str) -> String {
    generator::label(name).map_or_else(|| find::stem(name), str::to_string)
}

/// Finds and reads a job file, with changed options.
///
/// # Errors
/// No such file exists, or a line or change is wrong.
pub fn read_jobs(name: &str, changes: &[fio::Override]) -> Result<JobFile, LabError> {
    let found = find_jobs(name)?;
    jobs_of_text(&found.text, &found.file, changes)
}

/// Finds a job file by its extension or, for a path, by its text.
fn find_jobs(name: &str) -> Result<find::TextFile, LabError> {
    if begins_with_section(Path::new(name)) {
        let text = base::input::open(Path::new(name))
            .and_then(workload::trace::decompressed)
            .and_then(|text| base::input::read_all_text(text, TEXT_BYTES_MAX));
        return Ok(find::TextFile {
            name: find::stem(name),
            file: name.to_string(),
            text: text.map_err(|source| LabError::Io { file: name.to_string(), source })?,
        });
    }
    find::find::<BuiltInJobs>("job file", "jobs", name, "fio")
}

/// Returns true if a file without known extension is a job file, compressed or not. Its first line
/// without comment then is a section header.
fn begins_with_section(path: &Path) -> bool {
    const HEAD_BYTES: u64 = 64 << 10;
    let is_other = !is_text(&path.to_string_lossy()) && path.is_file();
    let file = is_other.then(|| std::fs::File::open(path).ok()).flatten();
    let Some(text) = file.and_then(|file| workload::trace::decompressed(file).ok()) else {
        return false;
    };
    let mut start = Vec::new();
    if text.take(HEAD_BYTES).read_to_end(&mut start).is_err() {
        return false;
    }
    let lines = start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.into_iter().find(|line| !matches!(line.first(), None | Some(b'#' | b';')));
    first.is_some_and(|line| line.starts_with(b"[") && line.ends_with(b"]"))
}

/// Reads the text of a job file, with changed options. `file` is its name in messages.
pub fn jobs_of_text(text: &str, file: &str, changes: &[fio::Override]) -> Result<JobFile, LabError> {
    let context = fio::IncludeContext {
        read: &|path| base::input::read_text(path, TEXT_BYTES_MAX).or_else(|error| built_in_jobs(path).ok_or(error)),
        ..fio::IncludeContext::default()
    };
    Ok(fio::parse_within(text, file, changes, &context)?)
}

/// Text of a built-in job file of `jobs/`, for files that include it.
fn built_in_jobs(path: &Path) -> Option<String> {
    let file = BuiltInJobs::get(path.strip_prefix("jobs").ok()?.to_str()?)?;
    Some(String::from_utf8_lossy(&file.data).into_owned())
}

pub fn text_of_jobs(name: &str) -> Result<String, LabError> {
    Ok(find_jobs(name)?.text)
}

/// Text of a workload with a `kind`.
pub fn text_of_workload(name: &str) -> Result<String, LabError> {
    Ok(find::find::<BuiltInWorkloads>("workload", "workloads", name, "toml")?.text)
}

/// Changes of a workload, such as those of `--set` and of an experiment's variants.
#[derive(Clone, Debug, Default)]
pub struct WorkloadChanges {
    pub jobs: Vec<fio::Override>,
    /// Settings by dotted path of a workload with a `kind`. For a job file: options as
    /// `SECTION.OPTION`, `classifier.SETTING` and `share_percent`.
    pub settings: toml::Table,
}

impl WorkloadChanges {
    /// Changes a workload's table and reads it. `file` is its name in messages.
    ///
    /// # Errors
    /// A setting or change is wrong. The error names it.
    pub fn parse(&self, file: &str, table: &toml::Table) -> Result<WorkloadSpec, LabError> {
        let mut table = table.clone();
        let is_job_file = table.get("kind").and_then(Value::as_str) == Some("fio");
        if is_job_file {
            // Settings of a job file are its options, also if a table names the job file.
            let jobs = self.job_overrides(file, &mut table)?;
            return WorkloadChanges { jobs, settings: toml::Table::new() }.read(file, &table);
        }
        for (path, value) in &self.settings {
            find::insert(&mut table, path, value.clone())
                .map_err(|problem| LabError::invalid(file, format!("workload.{path}: {problem}")))?;
        }
        // The job files of tenants share only the global section.
        let names_section = |change: &&fio::Override| change.section != "global";
        if let Some(change) = self.jobs.iter().find(names_section) {
            let problem = format!(
                "jobs.{} names a section, but the workload is not a job file. Use jobs.global for all job files in it",
                change.section
            );
            return Err(LabError::invalid(file, problem));
        }
        self.read(file, &table)
    }

    /// Returns true if a change applies only to block traces. A file of cache requests is then read
    /// as a block trace.
    fn is_about_blocks(&self) -> bool {
        let block_settings = ["format", "csv", "columns", "mapping", "kv_block_bytes"];
        self.settings.get("kind").and_then(Value::as_str) == Some(TRACE)
            || block_settings.iter().any(|setting| self.settings.contains_key(*setting))
    }

    /// Reads a workload's table after its changes.
    fn read(&self, file: &str, table: &toml::Table) -> Result<WorkloadSpec, LabError> {
        let mut table = table.clone();
        for key in TRACE_FILES {
            if let Some(Value::Array(files)) = table.get_mut(key) {
                *files = without_folders(files)?;
            }
        }
        let table = &table;
        let find_jobs = |jobs: JobsReference<'_>| {
            let (place, jobs) = match jobs {
                JobsReference::File(name) => (format!("file = \"{name}\""), read_jobs(name, &self.jobs)),
                JobsReference::Text(text) => ("text".to_string(), jobs_of_text(text, "workload.text", &self.jobs)),
            };
            jobs.map_err(|error| match error {
                LabError::Job(error) => error.into(),
                other => WorkloadError::at(place, other.to_string()),
            })
        };
        WorkloadSpec::parse("workload", table, &find_jobs).map_err(|error| LabError::invalid(file, error.to_string()))
    }

    /// Returns the changed options of a job file. Settings that workloads of every kind have go into
    /// `common`. `file` is the name of the job file in messages.
    fn job_overrides(&self, file: &str, common: &mut toml::Table) -> Result<Vec<fio::Override>, LabError> {
        let mut options = self.jobs.clone();
        for (path, value) in &self.settings {
            if path == "share_percent" || path.starts_with("classifier.") {
                find::insert(common, path, value.clone())
                    .map_err(|problem| LabError::invalid(file, format!("workload.{path}: {problem}")))?;
                continue;
            }
            let (section, option) = path.split_once('.').ok_or_else(|| {
                let problem =
                    format!("workload.{path} is not a setting of a job file. Give SECTION.OPTION, such as global.bs");
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

/// Finds and reads a workload. It is a job file (`*.fio`, a file that begins with a section, or a
/// name in `jobs/`), a table (`*.toml`, or a name in `workloads/`), a block trace by path, or a
/// registered generator.
///
/// # Errors
/// No such workload exists, or a setting or change is wrong.
pub fn read_workload(name: &str, changes: &WorkloadChanges) -> Result<WorkloadSpec, LabError> {
    if let Some((file, table)) = table_file(name, changes)? {
        return changes.parse(&file, &table);
    }
    find::check_path(name)?;
    let mut common = toml::Table::new();
    let options = changes.job_overrides(name, &mut common)?;
    let jobs = read_jobs(name, &options).map_err(|error| match error {
        LabError::Unknown { .. } => {
            let known = names();
            LabError::unknown("workload or file", name, known.iter().map(String::as_str))
        }
        error => error,
    });
    let spec = WorkloadSpec::from(jobs?).with("workload", common);
    spec.map_err(|error| LabError::invalid(name, error.to_string()))
}

const TRACE: &str = "trace";
/// Settings that name the files of a trace.
const TRACE_FILES: [&str; 2] = ["files", "trace"];
/// Working set of a cache trace, in percent of the drive's capacity. The drive is the cache, so it
/// holds a quarter of the working set.
const WORKING_SET_PERCENT: f64 = 400.0;
/// KV cache data of 512 tokens, for a model with 128 KiB per token (docs/reference/workloads.md).
const MOONCAKE_CHUNK: &str = "64MiB";

/// Returns the table of a workload other than a job file, and its name in messages.
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

/// Rejects a workload file with settings one level too deep, as in an experiment.
fn check_table(file: &str, table: &toml::Table) -> Result<(), LabError> {
    let is_inside = !table.contains_key("kind") && table.get("workload").is_some_and(Value::is_table);
    let problem = "a workload file has its keys at the top. Remove the line [workload]";
    if is_inside { Err(LabError::invalid(file, problem)) } else { Ok(()) }
}

/// Rejects a workload file without a kind.
///
/// # Errors
/// The file has no kind, has its settings one level too deep, or is not TOML.
pub fn check_kind(name: &str) -> Result<(), LabError> {
    if !name.ends_with(".toml") {
        return Ok(());
    }
    let table = table_file(name, &WorkloadChanges::default())?;
    match table {
        Some((file, table)) if !table.contains_key("kind") => Err(LabError::invalid(
            &file,
            "this is not a workload. A workload begins with kind = \"...\" (docs/reference/workloads.md)",
        )),
        _ => Ok(()),
    }
}

/// Returns the table of the cache model for a cache trace. `None` for another trace.
fn cache_table(files: &[String]) -> Option<toml::Table> {
    let first = PathBuf::from(files.first()?);
    if is_mooncake(&first) {
        let requests = toml::toml! { kind = "mooncake" };
        let requests = requests.into_iter().chain([("files".to_string(), Value::from(files.to_vec()))]);
        let mut class = toml::Table::from_iter([("chunk_bytes".to_string(), Value::from(MOONCAKE_CHUNK))]);
        class.insert("requests".to_string(), Value::Table(requests.collect()));
        let mut table = toml::toml! { kind = "kvcache_tier" };
        table.insert("classes".to_string(), toml::Table::from_iter([(TRACE.to_string(), Value::Table(class))]).into());
        return Some(table);
    }
    let format = Value::try_from(CacheTraceFormat::recognize(&first)?).expect("a format has a name");
    Some(toml::Table::from_iter([
        ("kind".to_string(), Value::from("cachelib")),
        (TRACE.to_string(), Value::from(files.to_vec())),
        ("trace_format".to_string(), format),
        ("trace_working_set_percent".to_string(), Value::from(WORKING_SET_PERCENT)),
    ]))
}

/// Describes the cache model of a cache trace, its size, and the block replay alternative. `None`
/// for another workload. `device_bytes` is the capacity of the full-size drive.
pub fn cache_sentence(name: &str, spec: &WorkloadSpec, device_bytes: u64) -> Option<String> {
    let cache = spec.traced_cache(device_bytes).filter(|_| is_trace(name))?;
    Some(format!(
        "{name} is a trace of requests to a cache. WARP runs it through a model of {cache}. `--set \
         workload.kind=trace` replays its objects as blocks instead."
    ))
}

/// Files of a trace by its path. A folder yields its files, one after another.
fn trace_files(name: &str) -> Result<Vec<String>, LabError> {
    if !Path::new(name).is_dir() {
        return Ok(vec![name.to_string()]);
    }
    let files = files_in(name)?;
    let is_other = |file: &&String| is_text(file) || begins_with_section(Path::new(file));
    match files.iter().find(is_other) {
        Some(other) => Err(LabError::invalid(
            name,
            format!("the folder contains {other}, which is not a trace. Name one of its files"),
        )),
        None => Ok(files),
    }
}

/// Expands each folder of the list into its files.
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

/// Workloads in a folder, as sorted paths. Trace files that are read in parallel form one workload.
///
/// # Errors
/// The folder is unreadable, empty or too large for traces.
pub fn files_in(folder: &str) -> Result<Vec<String>, LabError> {
    const FILES_MAX: usize = 65_536;
    let failed = |source| LabError::Io { file: folder.to_string(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_first = || workload::trace::files_of(&path).first() == Some(&path);
        if path.is_file() && !is_hidden && is_first() {
            files.push(path.display().to_string());
        }
        if files.len() > FILES_MAX {
            return Err(LabError::invalid(
                folder,
                format!("the folder has more than {FILES_MAX} files. Name one of them"),
            ));
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(LabError::invalid(folder, "the folder is empty. Put traces, job files or workloads in it"));
    }
    Ok(files)
}

/// Rejects a column list for a workload other than a trace.
///
/// # Errors
/// The workload is a job file or a model, or does not exist.
pub fn check_columns(name: &str) -> Result<(), LabError> {
    find::check_path(name)?;
    match is_trace(name) {
        true => Ok(()),
        false => Err(LabError::invalid(
            "--columns",
            format!("this option describes the columns of a trace, and {name} is not a trace. Leave it out"),
        )),
    }
}

/// Unchanged table of any workload. A job file has kind `fio`.
///
/// # Errors
/// The table does not exist, or is not TOML.
pub fn table_of(name: &str, changes: &WorkloadChanges) -> Result<toml::Table, LabError> {
    let of_jobs =
        || toml::Table::from_iter([("kind".to_string(), Value::from("fio")), ("file".to_string(), Value::from(name))]);
    Ok(table_file(name, changes)?.map_or_else(of_jobs, |(_, table)| table))
}

/// Returns true if a name denotes a workload by itself: a job file, a table with a `kind`, a block
/// trace, or a generator.
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

/// Returns true if a name is the path of a trace. It is an existing file or stream, neither job
/// file nor table, or a folder of such. Reading rejects irregular files.
fn is_trace(name: &str) -> bool {
    let path = Path::new(name);
    if path.is_dir() {
        // A folder with a known name is not a trace.
        let is_known = || [names(), folders::names()].concat().iter().any(|known| known == name);
        return folders::file_in(name).is_none() && !is_known();
    }
    !is_text(name) && !begins_with_section(path) && (workload::trace::spool::is_stream(path) || path.exists())
}

/// Returns true for the extensions of job files and tables.
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

/// Names of all workloads: job files, then the others.
pub fn names() -> Vec<String> {
    [job_names(), workload_names()].concat()
}

/// TOML value in the form of fio or a table heading: strings without quotes.
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
            spec.jobs().expect("it is a job file").jobs.iter().map(|job| job.iodepth).collect()
        };
        let names: Vec<String> =
            read_jobs("two_sequential", &[]).expect("it is built in").jobs.into_iter().map(|job| job.name).collect();
        assert_eq!(depths(&names[1])[1], 7);
        assert_ne!(depths(&names[1])[0], 7);
        assert_eq!(depths("global"), vec![7; names.len()]);
        let error = |section: &str, table: &str| parse(section, table).unwrap_err().to_string();
        assert!(error("nobody", job_file).contains("the file has no such job to change"));
        let of_another = error("first", "kind = \"tenants\"\n");
        assert!(of_another.contains("jobs.first names a section, but the workload is not a job file"), "{of_another}");
    }
}
