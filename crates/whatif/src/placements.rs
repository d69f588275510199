//! The placements that an answer compares: how each changes the workload, and how a host implements
//! it.

use std::collections::BTreeMap;

use serde::Serialize;
use toml::{Table, Value};

use super::survey::Survey;
use super::{SimulatedDrive, WhatIfQuestion};
use experiment::{LabError, RunChange, Variant, WorkloadChanges, WorkloadChoice, workloads};

/// Knowledge that a placement needs. Decides its position in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// No knowledge: no write has a directive.
    None,
    /// Knowledge of the program that writes.
    Host,
    /// Addresses and times of writes: a layer between the program and the drive.
    Blocks,
    /// Lifetime of each page in advance (oracle).
    Future,
}

/// A placement of the host's writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementOption {
    /// Name of the placement and of its variant.
    pub name: String,
    /// The placement as part of a sentence: "separating by process".
    pub phrase: String,
    pub knowledge: Knowledge,
    /// Steps to implement it on a host, a line each.
    pub steps: Vec<String>,
}

/// Names of placements that the answer refers to.
pub(super) const NONE: &str = "none";
pub(super) const ORACLE: &str = "oracle";

impl PlacementOption {
    fn new(name: &str, phrase: &str, knowledge: Knowledge, how: Vec<String>) -> PlacementOption {
        PlacementOption { name: name.to_string(), phrase: phrase.to_string(), knowledge, steps: how }
    }

    pub(super) fn variant(&self, change: &RunChange) -> Variant {
        Variant { name: self.name.clone(), change: change.clone() }
    }
}

/// Ways to send the standard's placement directive.
const DIRECTIVE: [&str; 3] = [
    "block device, Linux 6.16 or later: write_stream = index + 1 in io_uring's submission queue entry",
    "io_uring passthrough (/dev/ngXnY): cdw12 |= 2 << 20 (Data Placement), cdw13 = placement identifier << 16",
    "fio: dataplacement=fdp and plids=INDEX in each job",
];

fn directive(first: String) -> Vec<String> {
    [first].into_iter().chain(DIRECTIVE.map(str::to_string)).collect()
}

/// All placements that make sense for a workload on a drive with `handles` handles, with the change
/// that each makes. No placement comes first.
pub(super) fn list_placements(
    question: &WhatIfQuestion,
    table: &Table,
    survey: &Survey,
    simulated: &SimulatedDrive,
    handles: u64,
) -> Result<Vec<(PlacementOption, RunChange)>, LabError> {
    let kind = table.get("kind").and_then(Value::as_str).unwrap_or_default();
    let without = workload_change(classified(table, [("kind", Value::from(NONE))]));
    let mut placements =
        vec![(PlacementOption::new(NONE, "no placement", Knowledge::None, vec!["no directive".to_string()]), without)];
    if survey.has_directives {
        let (name, phrase) = ("the workload's own", "the workload's own placement");
        let placement = PlacementOption::new(name, phrase, Knowledge::Host, own(table));
        placements.push((placement, workload_change(WorkloadChoice::Table(table.clone()))));
    }
    match kind {
        "trace" => placements.extend(by_source_of_trace(table, survey)),
        "fio" if !survey.has_directives => placements.extend(by_job(question, handles)?),
        "lsm" => placements.extend(by_tree(table)),
        "tenants" if !survey.has_directives => placements.extend(by_tenant(table, handles)),
        _ => {}
    }
    let segment = || ("segment_bytes", Value::Integer(simulated.unit_bytes as i64));
    let garbage = || ("garbage_percent", Value::Float((simulated.garbage_share() * 100.0).clamp(1.0, 90.0)));
    let classifiers = [
        ("update frequency", "update frequency", "update_frequency", Vec::new()),
        ("SepBIT", "inferred lifetime (SepBIT)", "sepbit", vec![segment(), garbage()]),
        ("MiDAS", "age groups (MiDAS)", "midas", vec![segment(), garbage()]),
        ("WARCIP", "rewrite interval (WARCIP)", "warcip", vec![segment()]),
        (ORACLE, "the time of death", "oracle", Vec::new()),
    ];
    for (name, phrase, kind, settings) in classifiers {
        let settings = [("kind", Value::from(kind))].into_iter().chain(settings);
        let change = workload_change(classified(table, settings));
        let what = format!(
            "a layer below the program, as `classifier.kind = \"{kind}\"` of a workload does (docs/reference/workloads.md)"
        );
        let knowledge = if name == ORACLE { Knowledge::Future } else { Knowledge::Blocks };
        let placement = PlacementOption::new(name, &format!("separating by {phrase}"), knowledge, directive(what));
        placements.push((placement, change));
    }
    Ok(placements)
}

fn workload_change(workload: WorkloadChoice) -> RunChange {
    RunChange { workload: Some(workload), ..RunChange::default() }
}

fn classified<'a>(table: &Table, settings: impl IntoIterator<Item = (&'a str, Value)>) -> WorkloadChoice {
    let mut table = table.clone();
    set_classifier(&mut table, settings);
    WorkloadChoice::Table(table)
}

fn set_classifier<'a>(workload: &mut Table, settings: impl IntoIterator<Item = (&'a str, Value)>) {
    let settings = settings.into_iter().map(|(key, value)| (key.to_string(), value));
    workload.insert("classifier".to_string(), Value::Table(settings.collect()));
}

/// Steps to implement the placement that the workload already has.
fn own(table: &Table) -> Vec<String> {
    let setting = |name: &str| table.get(name).and_then(Value::as_str);
    match setting("kind").unwrap_or_default() {
        "cachelib" => vec![
            "CacheLib: \"deviceEnableFDP\": true and \"navyEnableIoUring\": true in cache_config. Small and large \
             objects get a handle each"
                .to_string(),
        ],
        "object_cache" => {
            directive("one placement identifier for each group of objects that the cache keeps apart".to_string())
        }
        "kvcache_tier" => directive("one placement identifier for each class of objects".to_string()),
        "f2fs" => vec![
            "F2FS, Linux 7.3 or later: its logs get write streams without a setting. fcntl F_SET_RW_HINT marks \
             files as cold (extreme) or hot (short)"
                .to_string(),
        ],
        "lsm" => how_of_tree(setting("placement").unwrap_or("level")),
        "btree" => {
            directive("one placement identifier each for the log, the doublewrite buffer and the pages".to_string())
        }
        "fio" => vec!["fio: the job file as it is (dataplacement=fdp, plids)".to_string()],
        _ => directive("as the workload does (docs/reference/workloads.md)".to_string()),
    }
}

/// Steps to implement a placement of the LSM model on an LSM tree.
fn how_of_tree(placement: &str) -> Vec<String> {
    match placement {
        "rocksdb" => vec![
            "RocksDB: no setting is needed. It gives each file a hint (WriteLifeTimeHint, fcntl \
             F_SET_RW_HINT)".to_string(),
            "a file system that turns hints into write streams (F2FS, Linux 7.3 or later), or RocksDB's plugin for raw devices".to_string(),
        ],
        "level" => directive("one placement identifier for the log and level 0, and one for each deeper \
                              level".to_string()),
        "family" => directive("one placement identifier for the log, and one for the files of each column \
                               family".to_string()),
        _ => directive(format!("as `placement = \"{placement}\"` does (docs/reference/workloads.md)")),
    }
}

/// Placements that an LSM tree can do, without the one that the workload already has.
fn by_tree(table: &Table) -> Vec<(PlacementOption, RunChange)> {
    let own = table.get("placement").and_then(Value::as_str).unwrap_or("level");
    let known = [("rocksdb", "hints", "RocksDB's hints"), ("level", "level", "level")];
    let other = known.into_iter().filter(|(placement, ..)| *placement != own);
    let options = other.map(|(placement, name, phrase)| {
        let mut table = table.clone();
        table.insert("placement".to_string(), Value::from(placement));
        let (name, phrase) = (format!("by {name}"), format!("separating by {phrase}"));
        let placement = PlacementOption::new(&name, &phrase, Knowledge::Host, how_of_tree(placement));
        (placement, workload_change(WorkloadChoice::Table(table)))
    });
    options.collect()
}

/// Number of files above which kinds of files are compared too. Drives rarely have more handles.
const FILES_WITHOUT_KINDS: u64 = 8;

/// Placements by process, file and volume, as far as a trace records them.
fn by_source_of_trace(table: &Table, survey: &Survey) -> Vec<(PlacementOption, RunChange)> {
    let known = [("process", survey.processes), ("file", survey.files), ("volume", survey.volumes)];
    let known = known.into_iter().filter(|(_, count)| *count > 1);
    let placed = |(rule, count): (&str, u64)| {
        let mut table = table.clone();
        table.insert("placement".to_string(), Value::from(rule));
        let how = directive(format!(
            "one placement identifier for each of the {count} {rule}{}, reused in turn if there are more than handles",
            if rule == "process" { "es" } else { "s" }
        ));
        let placement =
            PlacementOption::new(&format!("by {rule}"), &format!("separating by {rule}"), Knowledge::Host, how);
        (placement, workload_change(WorkloadChoice::Table(table)))
    };
    let mut placements: Vec<(PlacementOption, RunChange)> = known.map(placed).collect();
    placements.extend((survey.files > FILES_WITHOUT_KINDS).then(|| by_kind_of_file(table)));
    placements
}

/// Placement by kind of file: files whose names differ only in their numbers, such as those of a
/// database. A program can distinguish these kinds.
fn by_kind_of_file(table: &Table) -> (PlacementOption, RunChange) {
    let mut table = table.clone();
    table.insert("placement".to_string(), Value::from("file"));
    table.insert("file_by".to_string(), Value::from("kind"));
    let how = "one placement identifier for each kind of file, which is its name without numbers (WAL, tables, \
               manifests)";
    let placement = PlacementOption::new(
        "by kind of file",
        "separating by kind of file",
        Knowledge::Host,
        directive(how.to_string()),
    );
    (placement, workload_change(WorkloadChoice::Table(table)))
}

/// A handle for each tenant. If tenants outnumber handles, they share them in turn.
fn by_tenant(table: &Table, handles: u64) -> Option<(PlacementOption, RunChange)> {
    let mut table = table.clone();
    let tenants = table.get_mut("tenants")?.as_table_mut().filter(|tenants| tenants.len() > 1)?;
    let mut how = Vec::new();
    for (index, (name, tenant)) in tenants.iter_mut().enumerate() {
        let index = index as u64 % handles;
        let tenant = tenant.as_table_mut()?;
        tenant.insert("placement_indices".to_string(), vec![index as i64].into());
        // Its workload may use more handles than the single one that the tenant now has.
        let workload = tenant.get_mut("workload")?.as_table_mut()?;
        set_classifier(workload, [("kind", Value::from(NONE))]);
        how.push(format!("{name} {index}"));
    }
    let how = directive(format!("one placement identifier for each tenant ({})", how.join(", ")));
    let placement = PlacementOption::new("by tenant", "separating by tenant", Knowledge::Host, how);
    Some((placement, workload_change(WorkloadChoice::Table(table))))
}

/// A handle for each job of a job file. If jobs outnumber handles, they share them in turn.
fn by_job(question: &WhatIfQuestion, handles: u64) -> Result<Vec<(PlacementOption, RunChange)>, LabError> {
    let spec = workloads::read_workload(&question.workload, &WorkloadChanges::default())?;
    let Some(file) = spec.jobs().filter(|file| file.jobs.len() > 1) else {
        return Ok(Vec::new());
    };
    let mut jobs = BTreeMap::new();
    let mut how = Vec::new();
    for (index, job) in file.jobs.iter().enumerate() {
        let index = index as u64 % handles;
        let options = [("dataplacement", Value::from("fdp")), ("plids", Value::from(index.to_string()))];
        let options = options.into_iter().map(|(option, value)| (option.to_string(), value));
        how.push(format!("fio: [{}] dataplacement=fdp, plids={index}", job.name));
        jobs.insert(job.name.clone(), options.collect());
    }
    let change = RunChange { jobs, ..RunChange::default() };
    Ok(vec![(PlacementOption::new("by job", "separating by job", Knowledge::Host, how), change)])
}
