//! The placements that are compared: what each changes of the workload, and how a host would do the same.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::survey::Survey;
use super::{Question, Shown};
use crate::error::LabError;
use crate::experiment::{Change, Variant};
use crate::workloads::{self, WorkloadChanges, WorkloadChoice};

/// A way to place what the host writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its name: the variant's.
    pub name: String,
    /// As part of a sentence: "separating by process".
    pub phrase: String,
    /// Whether a host can do it. The oracle knows the future, and no placement is what there is already.
    pub is_advice: bool,
    /// How a host does it, a line each.
    pub how: Vec<String>,
}

/// Names that the answer looks for.
pub(super) const NONE: &str = "none";
pub(super) const ORACLE: &str = "oracle";

impl Placement {
    fn new(name: &str, phrase: &str, how: Vec<String>) -> Placement {
        Placement {
            name: name.to_string(),
            phrase: phrase.to_string(),
            is_advice: name != NONE && name != ORACLE,
            how,
        }
    }

    pub(super) fn variant(&self, change: &Change) -> Variant {
        Variant {
            name: self.name.clone(),
            change: change.clone(),
        }
    }
}

/// How placement is said by what is written with the standard's directive.
const DIRECTIVE: [&str; 3] = [
    "io_uring passthrough (/dev/ngXnY): cdw12 |= 2 << 20 (Data Placement), cdw13 = placement identifier << 16",
    "block device, Linux 6.16 or later: write_stream = index + 1 in the submission queue entry",
    "fio: dataplacement=fdp and plids=INDEX in each job",
];

fn directive(first: String) -> Vec<String> {
    [first].into_iter().chain(DIRECTIVE.map(str::to_string)).collect()
}

/// All placements that make sense for a workload on a drive with so many handles, with what each changes; none comes first.
pub(super) fn of(
    question: &Question,
    table: &Table,
    survey: &Survey,
    shown: &Shown,
    handles: u64,
) -> Result<Vec<(Placement, Change)>, LabError> {
    let kind = table.get("kind").and_then(Value::as_str).unwrap_or_default();
    let without = on(classified(table, [("kind", Value::from(NONE))]));
    let mut placements = vec![(
        Placement::new(NONE, "no placement", vec!["no directive".to_string()]),
        without,
    )];
    if survey.asks {
        let placement = Placement::new("the workload's own", "the workload's own placement", own(kind));
        placements.push((placement, on(WorkloadChoice::Table(table.clone()))));
    }
    match kind {
        "trace" => placements.extend(by_source_of_trace(table, survey)),
        "fio" if !survey.asks => placements.extend(by_job(question, handles)?),
        _ => {}
    }
    let segment = || ("segment_bytes", Value::Integer(shown.unit_bytes as i64));
    let garbage = || {
        (
            "garbage_percent",
            Value::Float((shown.garbage_share() * 100.0).clamp(1.0, 90.0)),
        )
    };
    let classifiers = [
        (
            "update frequency",
            "separating by update frequency",
            "update_frequency",
            Vec::new(),
        ),
        (
            "SepBIT",
            "separating by inferred lifetime (SepBIT)",
            "sepbit",
            vec![segment(), garbage()],
        ),
        (
            "MiDAS",
            "separating by age groups (MiDAS)",
            "midas",
            vec![segment(), garbage()],
        ),
        (
            "WARCIP",
            "separating by rewrite interval (WARCIP)",
            "warcip",
            vec![segment()],
        ),
        (ORACLE, "knowing the future", "oracle", Vec::new()),
    ];
    for (name, phrase, kind, settings) in classifiers {
        let settings = [("kind", Value::from(kind))].into_iter().chain(settings);
        let change = on(classified(table, settings));
        let what =
            format!("by a layer that sees logical blocks, as `classifier.kind = \"{kind}\"` does (docs/workloads.md)");
        placements.push((Placement::new(name, phrase, directive(what)), change));
    }
    Ok(placements)
}

/// A change to this workload.
fn on(workload: WorkloadChoice) -> Change {
    Change {
        workload: Some(workload),
        ..Change::default()
    }
}

/// The workload with a classifier over it.
fn classified<'a>(table: &Table, settings: impl IntoIterator<Item = (&'a str, Value)>) -> WorkloadChoice {
    let settings = settings.into_iter().map(|(key, value)| (key.to_string(), value));
    let mut table = table.clone();
    table.insert("classifier".to_string(), Value::Table(settings.collect()));
    WorkloadChoice::Table(table)
}

/// How a program asks for what it asks for already.
fn own(kind: &str) -> Vec<String> {
    match kind {
        "cachelib" => directive("CacheLib: \"deviceEnableFDP\": true and \"navyEnableIoUring\": true".to_string()),
        "object_cache" => {
            directive("one placement identifier for each group of objects that the cache keeps apart".to_string())
        }
        "fio" => vec!["fio: the job file as it is (dataplacement=fdp, plids)".to_string()],
        _ => directive("as the workload does (docs/workloads.md)".to_string()),
    }
}

/// With more files than drives commonly have handles, kinds of files are compared, too.
const FILES_WITHOUT_KINDS: u64 = 8;

/// By what a trace knows of who wrote.
fn by_source_of_trace(table: &Table, survey: &Survey) -> Vec<(Placement, Change)> {
    let known = [
        ("process", survey.processes),
        ("file", survey.files),
        ("volume", survey.volumes),
    ];
    let known = known.into_iter().filter(|(_, count)| *count > 1);
    let placed = |(rule, count): (&str, u64)| {
        let mut table = table.clone();
        table.insert("placement".to_string(), Value::from(rule));
        let how = directive(format!(
            "each of the {count} {rule}{} its own placement identifier, in turn where there are more than handles",
            if rule == "process" { "es" } else { "s" }
        ));
        let placement = Placement::new(&format!("by {rule}"), &format!("separating by {rule}"), how);
        (placement, on(WorkloadChoice::Table(table)))
    };
    let mut placements: Vec<(Placement, Change)> = known.map(placed).collect();
    placements.extend((survey.files > FILES_WITHOUT_KINDS).then(|| by_kind_of_file(table)));
    placements
}

/// Files that share their names but for numbers, as those of a database do: what a program can tell apart.
fn by_kind_of_file(table: &Table) -> (Placement, Change) {
    let mut table = table.clone();
    table.insert("placement".to_string(), Value::from("file"));
    table.insert("file_by".to_string(), Value::from("kind"));
    let how = "each kind of file (names without their numbers: WAL, tables, manifests) its own placement identifier";
    let placement = Placement::new(
        "by kind of file",
        "separating by kind of file",
        directive(how.to_string()),
    );
    (placement, on(WorkloadChoice::Table(table)))
}

/// Each job of a job file its own placement, in turn where there are more than handles.
fn by_job(question: &Question, handles: u64) -> Result<Vec<(Placement, Change)>, LabError> {
    let spec = workloads::read_workload(&question.workload, &WorkloadChanges::default())?;
    let Some(file) = spec.jobs().filter(|file| file.jobs.len() > 1) else {
        return Ok(Vec::new());
    };
    let mut jobs = BTreeMap::new();
    let mut how = Vec::new();
    for (index, job) in file.jobs.iter().enumerate() {
        let index = index as u64 % handles;
        let options = [
            ("dataplacement", Value::from("fdp")),
            ("plids", Value::from(index.to_string())),
        ];
        let options = options.into_iter().map(|(option, value)| (option.to_string(), value));
        how.push(format!("fio: [{}] dataplacement=fdp, plids={index}", job.name));
        jobs.insert(job.name.clone(), options.collect());
    }
    let change = Change {
        jobs,
        ..Change::default()
    };
    Ok(vec![(Placement::new("by job", "separating by job", how), change)])
}
