//! Workload definitions in TOML tables: `kind = "..."` and the settings of that kind.
//!
//! ```text
//! toml::Table -> WorkloadSpec (checked, cheap to clone)
//!   -> source(target, seed) -> dyn RequestSource
//! ```
//!
//! This module reads no file. The caller finds job files, because only the caller knows their
//! folder.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use workload::fio::JobFile;
use workload::{RequestSource, Workload, WorkloadError, WorkloadTarget, classifier, deserialize, tenants, trace};

use crate::{btree, cachelib, f2fs, generator, kvcache, lsm, objects, random_writes};

/// Names of the kinds that a file can use. `generator` is missing, because a caller registers it.
const KINDS: [&str; 10] =
    ["fio", "trace", "random_writes", "cachelib", "kvcache_tier", "object_cache", "f2fs", "lsm", "btree", "tenants"];

/// Settings that every kind accepts in addition to its own.
const OF_ANY: [&str; 2] = ["classifier", "share_percent"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobsReference<'a> {
    /// A job file, by name or path.
    File(&'a str),
    Text(&'a str),
}

/// Function that reads a job file.
pub type JobFileReader<'a> = &'a dyn Fn(JobsReference<'_>) -> Result<JobFile, WorkloadError>;

/// A workload of any kind.
///
/// The serialized form lacks the contents of the files that the workload reads while it runs
/// ([`workload::Workload::files_mut`]) and the position of a running source.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    #[serde(rename = "workload")]
    kind: WorkloadKind,
    classifier: Option<classifier::ClassifierSettings>,
    /// Part of the drive that the workload treats as its whole drive, percent. None means all of
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share_percent: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WorkloadKind {
    Fio(JobFile),
    Trace(Box<trace::TraceSettings>),
    RandomWrites(Box<random_writes::RandomWriteSettings>),
    Cachelib(Box<cachelib::CachelibSettings>),
    KvcacheTier(Box<kvcache::KvCacheSettings>),
    ObjectCache(Box<objects::ObjectCacheSettings>),
    F2fs(Box<f2fs::F2fsSettings>),
    Lsm(Box<lsm::LsmSettings>),
    Btree(Box<btree::BTreeSettings>),
    Tenants(tenants::TenantWorkloads<WorkloadSpec>),
    Generator(generator::GeneratorSettings),
}

impl From<JobFile> for WorkloadSpec {
    fn from(jobs: JobFile) -> WorkloadSpec {
        WorkloadSpec::from(WorkloadKind::Fio(jobs))
    }
}

impl From<WorkloadKind> for WorkloadSpec {
    fn from(kind: WorkloadKind) -> WorkloadSpec {
        WorkloadSpec { kind, classifier: None, share_percent: None }
    }
}

impl WorkloadSpec {
    /// Parses a workload's table. Error messages call the table `place`.
    pub fn parse(place: &str, table: &Table, find_jobs: JobFileReader<'_>) -> Result<WorkloadSpec, WorkloadError> {
        let mut settings = table.clone();
        let of_any = OF_ANY.iter().filter_map(|key| settings.remove_entry(*key)).collect();
        let kind = match settings.remove("kind") {
            Some(Value::String(kind)) => kind,
            _ => {
                let problem = format!("is missing. The kinds are {}", KINDS.join(", "));
                return Err(WorkloadError::setting(format!("{place}.kind"), problem));
            }
        };
        let kind = match kind.as_str() {
            "fio" => WorkloadKind::Fio(jobs(place, settings, find_jobs)?),
            "trace" => WorkloadKind::Trace(deserialize(place, Value::Table(settings))?),
            "random_writes" => WorkloadKind::RandomWrites(deserialize(place, Value::Table(settings))?),
            "cachelib" => WorkloadKind::Cachelib(deserialize(place, Value::Table(settings))?),
            "kvcache_tier" => WorkloadKind::KvcacheTier(deserialize(place, Value::Table(settings))?),
            "object_cache" => WorkloadKind::ObjectCache(deserialize(place, Value::Table(settings))?),
            "f2fs" => WorkloadKind::F2fs(deserialize(place, Value::Table(settings))?),
            "lsm" => WorkloadKind::Lsm(deserialize(place, Value::Table(settings))?),
            "btree" => WorkloadKind::Btree(deserialize(place, Value::Table(settings))?),
            "tenants" => {
                let read = |place: &str, table: &Table| WorkloadSpec::parse(place, table, find_jobs);
                WorkloadKind::Tenants(tenants::TenantWorkloads::parse(place, &settings, &read)?)
            }
            "generator" => WorkloadKind::Generator(deserialize(place, Value::Table(settings))?),
            other => return Err(unknown_kind(place, other)),
        };
        WorkloadSpec::from(kind).with(place, of_any)
    }

    /// Applies the settings that every kind accepts. Error messages call the table `place`.
    ///
    /// A `classifier` chooses placements and replaces those of the workload. A `share_percent`
    /// limits the workload to a part of the drive that starts at offset 0.
    pub fn with(mut self, place: &str, of_any: Table) -> Result<WorkloadSpec, WorkloadError> {
        for (key, value) in of_any {
            let setting = format!("{place}.{key}");
            match key.as_str() {
                "classifier" => self.classifier = Some(deserialize(&setting, value)?),
                "share_percent" => {
                    let share_percent = deserialize(&setting, value)?;
                    tenants::check_share(place, share_percent)?;
                    self.share_percent = Some(share_percent);
                }
                _ => {
                    let problem = format!("is not known. All kinds accept {}", OF_ANY.join(" and "));
                    return Err(WorkloadError::setting(setting, problem));
                }
            }
        }
        Ok(self)
    }

    /// True for a block trace, with or without a classifier.
    pub fn is_trace(&self) -> bool {
        matches!(self.kind, WorkloadKind::Trace(_))
    }

    /// Opens a block trace with its recorded times.
    ///
    /// # Errors
    /// The workload is no block trace, the trace has no times, or a classifier is set. Also all
    /// errors of [`Workload::source`].
    pub fn timed_source(
        &self,
        target: &WorkloadTarget,
        seed: u64,
    ) -> Result<Box<dyn trace::TimedSource>, WorkloadError> {
        let refused = |problem: &str| WorkloadError::setting("replay = \"timed\" (--replay timed)", problem);
        let WorkloadKind::Trace(settings) = &self.kind else {
            return Err(refused(
                "needs a block trace, because other workloads have no recorded times. Remove the option",
            ));
        };
        if self.classifier.is_some() {
            return Err(refused("cannot be combined with a classifier. Remove one of them"));
        }
        let part = self.share_percent.map(|percent| target.part(0.0, percent).0);
        Ok(Box::new(settings.timed_source(part.as_ref().unwrap_or(target), seed)?))
    }

    /// The job file, if the workload is a job file without classifier and share.
    pub fn jobs(&self) -> Option<&JobFile> {
        match (&self.kind, &self.classifier, self.share_percent) {
            (WorkloadKind::Fio(jobs), None, None) => Some(jobs),
            _ => None,
        }
    }

    /// Name of the generator that makes the requests, for the kind `generator`.
    pub fn generator(&self) -> Option<&str> {
        match &self.kind {
            WorkloadKind::Generator(settings) => Some(&settings.name),
            _ => None,
        }
    }

    /// Sets the mapping unit of the drive, bytes. Only generators use it.
    #[must_use]
    pub fn for_mapping_units(mut self, bytes: u64) -> WorkloadSpec {
        if let WorkloadKind::Generator(settings) = &mut self.kind {
            settings.mapping_unit_bytes = bytes;
        }
        self
    }

    /// Description of the cache in front of the drive, if the workload replays a trace through a
    /// cache. `device_bytes` is the capacity of the full-size drive.
    pub fn traced_cache(&self, device_bytes: u64) -> Option<String> {
        match &self.kind {
            WorkloadKind::Cachelib(settings) => settings.traced(device_bytes),
            WorkloadKind::KvcacheTier(settings) => settings.traced(device_bytes),
            _ => None,
        }
    }
}

impl WorkloadKind {
    fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<Box<dyn RequestSource>, WorkloadError> {
        Ok(match self {
            WorkloadKind::Fio(jobs) => jobs.source(target, seed)?,
            WorkloadKind::Trace(settings) => Box::new(settings.source(target, seed)?),
            WorkloadKind::RandomWrites(settings) => Box::new(settings.source(target, seed)?),
            WorkloadKind::Cachelib(settings) => Box::new(settings.source(target, seed)?),
            WorkloadKind::KvcacheTier(settings) => Box::new(settings.source(target, seed)?),
            WorkloadKind::ObjectCache(settings) => Box::new(settings.source(target, seed)?),
            WorkloadKind::F2fs(settings) => Box::new(settings.source(target, seed)?),
            WorkloadKind::Lsm(settings) => Box::new(settings.source(target, seed)?),
            WorkloadKind::Btree(settings) => Box::new(settings.source(target, seed)?),
            WorkloadKind::Tenants(settings) => Box::new(settings.source(target, seed)?),
            WorkloadKind::Generator(settings) => settings.source(target, seed)?,
        })
    }

    fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        Ok(match self {
            WorkloadKind::Fio(jobs) => jobs.memory_bytes(target)?,
            WorkloadKind::Trace(settings) => settings.memory_bytes(target),
            WorkloadKind::RandomWrites(settings) => settings.memory_bytes(),
            WorkloadKind::Cachelib(settings) => settings.memory_bytes(target)?,
            WorkloadKind::KvcacheTier(settings) => settings.memory_bytes(target)?,
            WorkloadKind::ObjectCache(settings) => settings.memory_bytes(target)?,
            WorkloadKind::F2fs(settings) => settings.memory_bytes(target),
            WorkloadKind::Lsm(settings) => settings.memory_bytes(target)?,
            WorkloadKind::Btree(settings) => settings.memory_bytes(target)?,
            WorkloadKind::Tenants(settings) => settings.memory_bytes(target)?,
            WorkloadKind::Generator(settings) => settings.memory_bytes()?,
        })
    }
}

impl Workload for WorkloadSpec {
    fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        let part = self.share_percent.map(|percent| target.part(0.0, percent).0);
        let target = part.as_ref().unwrap_or(target);
        let source_bytes = self.kind.memory_bytes(target)?;
        let classifier = self.classifier.as_ref();
        Ok(classifier.map_or(source_bytes, |classifier| classifier.memory_bytes(source_bytes, target)))
    }

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        match &mut self.kind {
            WorkloadKind::Trace(settings) => settings.files.iter_mut().collect(),
            WorkloadKind::Cachelib(settings) => settings.trace.iter_mut().collect(),
            WorkloadKind::KvcacheTier(settings) => settings.files_mut(),
            WorkloadKind::ObjectCache(settings) => settings.trace.iter_mut().collect(),
            WorkloadKind::Tenants(settings) => settings.files_mut(),
            WorkloadKind::Fio(_)
            | WorkloadKind::RandomWrites(_)
            | WorkloadKind::F2fs(_)
            | WorkloadKind::Lsm(_)
            | WorkloadKind::Btree(_)
            | WorkloadKind::Generator(_) => Vec::new(),
        }
    }

    fn is_paced(&self) -> bool {
        matches!(&self.kind, WorkloadKind::Cachelib(settings) if settings.pace.is_some())
    }

    fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<Box<dyn RequestSource>, WorkloadError> {
        let part = self.share_percent.map(|percent| target.part(0.0, percent).0);
        let target = part.as_ref().unwrap_or(target);
        let build = || self.kind.source(target, seed);
        match &self.classifier {
            Some(_) if self.is_paced() => {
                Err(WorkloadError::setting("pace", "cannot be combined with a classifier. Remove one of them"))
            }
            Some(classifier) => Ok(Box::new(classifier.classify(build, target)?)),
            None => build(),
        }
    }
}

/// Reads the job file that a table of the kind `fio` names.
fn jobs(place: &str, mut settings: Table, find_jobs: JobFileReader<'_>) -> Result<JobFile, WorkloadError> {
    let (file, text) = (settings.remove("file"), settings.remove("text"));
    if let Some(key) = settings.keys().next() {
        let problem = "is not known. The kind fio accepts only file or text";
        return Err(WorkloadError::setting(format!("{place}.{key}"), problem));
    }
    match (file, text) {
        (Some(Value::String(file)), None) => find_jobs(JobsReference::File(&file)),
        (None, Some(Value::String(text))) => find_jobs(JobsReference::Text(&text)),
        (Some(_), Some(_)) => {
            Err(WorkloadError::setting(format!("{place}.text"), "cannot be combined with a file. Remove one of them"))
        }
        _ => Err(WorkloadError::setting(format!("{place}.file"), "is missing. Name a job file, or give its text")),
    }
}

fn unknown_kind(place: &str, kind: &str) -> WorkloadError {
    let hint = base::hint(kind, KINDS);
    let problem = format!("is not a kind of workload{hint}. The kinds are {}", KINDS.join(", "));
    WorkloadError::setting(format!("{place}.kind = \"{kind}\""), problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<WorkloadSpec, WorkloadError> {
        let find_jobs = |jobs: JobsReference<'_>| match jobs {
            JobsReference::File(name) => {
                assert_eq!(name, "some_jobs");
                Ok(workload::fio::parse("[a]\nrw=write\n", "some_jobs.fio")?)
            }
            JobsReference::Text(text) => Ok(workload::fio::parse(text, "workload.text")?),
        };
        WorkloadSpec::parse("workload", &toml::from_str(text).expect("TOML"), &find_jobs)
    }

    #[test]
    fn a_job_file_is_a_kind_like_the_others() {
        let spec = parse("kind = \"fio\"\nfile = \"some_jobs\"").expect("a workload");
        assert_eq!(spec.jobs().map(|jobs| jobs.jobs.len()), Some(1));
        let target = WorkloadTarget { device_bytes: 1 << 30, ..WorkloadTarget::default() };
        let mut requests = Vec::new();
        let mut source = spec.source(&target, 1).expect("it fits");
        assert_eq!(source.next_batch(&mut requests, 3).expect("requests"), 3);
        assert_eq!(source.streams(), ["a"]);
    }

    #[test]
    fn a_job_file_may_stand_in_the_table_itself() {
        let spec =
            parse("kind = \"fio\"\ntext = \"\"\"\n[one]\nrw=write\n[two]\nrw=randwrite\n\"\"\"").expect("a workload");
        let jobs = spec.jobs().expect("it is a job file");
        let names: Vec<&str> = jobs.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        let error = parse("kind = \"fio\"\ntext = \"[one]\\nrw=wrote\"").expect_err("no such work").to_string();
        assert!(error.starts_with("workload.text:2: in rw=wrote, "), "{error}");
    }

    /// Every kind accepts a share of the drive. It writes the same as on a drive of that size.
    #[test]
    fn a_workload_on_a_part_of_the_drive_is_as_on_a_smaller_one() {
        let kind = "kind = \"kvcache_tier\"\n[classes.chat]\nchunk_bytes = \"256KiB\"\n";
        let target = |device_bytes: u64| WorkloadTarget { device_bytes, endless: true, ..WorkloadTarget::default() };
        let requests = |spec: WorkloadSpec, device_bytes: u64| {
            let mut requests = Vec::new();
            let mut source = spec.source(&target(device_bytes), 1).expect("it fits");
            source.next_batch(&mut requests, 10_000).expect("requests");
            requests
        };
        let whole = parse(kind).expect("a workload");
        let part = parse(&format!("share_percent = 25\n{kind}")).expect("a workload");
        let share = Table::from_iter([("share_percent".to_string(), Value::Float(25.0))]);
        let set = whole.clone().with("workload", share).expect("a share");
        let smaller = requests(whole.clone(), 64 << 20);
        assert_eq!(requests(part, 256 << 20), smaller);
        assert_eq!(requests(set, 256 << 20), smaller);
        assert_ne!(requests(whole, 256 << 20), smaller);
        assert!(smaller.iter().all(|request| request.offset_bytes + u64::from(request.bytes) <= 64 << 20));
    }

    #[test]
    fn mistakes_name_the_setting() {
        for (text, message) in [
            (
                "file = \"x\"",
                "workload.kind is missing. The kinds are fio, trace, random_writes, cachelib, kvcache_tier, \
                 object_cache, f2fs, lsm, btree, tenants",
            ),
            (
                "kind = \"cachlib\"",
                "workload.kind = \"cachlib\" is not a kind of workload (did you mean cachelib?). The kinds are fio, \
                 trace, random_writes, cachelib, kvcache_tier, object_cache, f2fs, lsm, btree, tenants",
            ),
            ("kind = \"fio\"", "workload.file is missing. Name a job file, or give its text"),
            (
                "kind = \"fio\"\nfile = \"some_jobs\"\ntext = \"[a]\"",
                "workload.text cannot be combined with a file. Remove one of them",
            ),
            ("kind = \"lsm\"\nshare_percent = 120", "workload.share_percent = 120 must be above 0 and at most 100"),
            (
                "kind = \"fio\"\nfile = \"some_jobs\"\nbs = 4096",
                "workload.bs is not known. The kind fio accepts only file or text",
            ),
        ] {
            assert_eq!(parse(text).expect_err(text).to_string(), message);
        }
        let error = parse("kind = \"cachelib\"\nsoc_percent = \"much\"").expect_err("a word").to_string();
        assert!(error.starts_with("workload.soc_percent is the text"), "{error}");
    }
}
