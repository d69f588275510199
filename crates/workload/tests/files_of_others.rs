//! Checks which job files of other projects are accepted, and why the rest is not.
//!
//! The files belong to those projects, so no copy is kept here. `WARP_JOB_FILES` names a folder
//! with clones of the projects (`fio`, `FioSynth`, `fiovisualizer`, `spdk`). Each job file of a
//! clone is parsed and planned on a large drive. The verdicts must match
//! `docs/reference/job-files-of-others.md`. Missing clones are skipped with a message.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use workload::WorkloadTarget;
use workload::fio::{IncludeContext, JobError, check_untimed, parse_within, plan_streams};

/// A project, with the folder of its clone and the folders with job files in it.
const PROJECTS: [(&str, &[&str]); 4] = [
    ("fio", &["examples"]),
    ("FioSynth", &["jobfiles", "tmp.fio"]),
    ("fiovisualizer", &["Workloads"]),
    ("spdk", &["app/fio", "test", "docker"]),
];

/// Values of the variables in these projects' templates, by the end of the variable's name. Other
/// variables are 1.
const VARIABLES: [(&str, &str); 21] = [
    ("BLKSIZE", "4k"),
    ("BLK_SIZE", "4k"),
    ("FIO_BS", "4k"),
    ("SIZE", "100%"),
    ("RAMPTIME", "10"),
    ("TIME", "60"),
    ("RAMP", "10"),
    ("DEPTH", "32"),
    ("DEPTH1", "32"),
    ("DEPTH2", "32"),
    ("JOBS", "2"),
    ("THINK", "100"),
    ("RATE", "100"),
    ("RATE1", "100"),
    ("RATE2", "100"),
    ("RW", "randrw"),
    ("MISC", "4k"),
    ("OFFSET1", "10"),
    ("OFFSET2", "50"),
    ("INCREMENT", "1"),
    ("MIXREAD", "70"),
];

/// Larger than any region of these files, and with a placement for every index.
const TARGET: WorkloadTarget =
    WorkloadTarget { device_bytes: 16 << 40, placement_count: 8, endless: false, scaled_model: None };

fn variable(name: &str) -> Option<String> {
    let known = VARIABLES.iter().find(|(end, _)| name.ends_with(end));
    Some(known.map_or("1", |(_, value)| value).to_string())
}

/// A file's verdict in the words of the page.
fn verdict(path: &Path) -> String {
    let mut text = String::from_utf8_lossy(&std::fs::read(path).expect("a file of the clone")).into_owned();
    // FioSynth's launcher adds a section per drive to a template without sections.
    let sections = text.lines().filter(|line| line.trim().starts_with('['));
    if sections.count() == 1 && text.contains("[global]") {
        text += "\n[job]\n";
    }
    let surroundings = IncludeContext { variable: &variable, ..IncludeContext::default() };
    let file = match parse_within(&text, &path.display().to_string(), &[], &surroundings) {
        Ok(file) => file,
        Err(error) => return refusal(&error),
    };
    match plan_streams(&file, &TARGET) {
        Ok(_) if check_untimed(&file).is_ok() => "accepted".to_string(),
        Ok(_) => "accepted, on a device with timing".to_string(),
        Err(error) => refusal(&error),
    }
}

fn refusal(error: &JobError) -> String {
    format!("refused: {}", error.problem.replace('|', "\\|"))
}

/// The job files below a folder, or the file itself. A job file begins with a section, contains an
/// option of fio and is neither Python nor Markdown.
fn job_files(path: &Path, found: &mut Vec<PathBuf>) {
    if let Ok(folder) = path.read_dir() {
        folder.flatten().for_each(|entry| job_files(&entry.path(), found));
        return;
    }
    let Ok(text) = std::fs::read(path) else { return };
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let is_section = lines.next().is_some_and(|line| line.starts_with('[') && line.ends_with(']'));
    let is_of_fio = ["rw=", "readwrite=", "ioengine="].iter().any(|option| text.contains(option));
    if is_section && is_of_fio && !path.extension().is_some_and(|ending| ending == "py" || ending == "md") {
        found.push(path.to_path_buf());
    }
}

/// The part of the page about a project.
fn part(name: &str, clone: &Path, folders: &[&str]) -> String {
    let mut found = Vec::new();
    folders.iter().for_each(|folder| job_files(&clone.join(folder), &mut found));
    // The page's rows are sorted by bytes.
    found.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    let verdicts: Vec<String> = found.iter().map(|path| verdict(path)).collect();
    let count = |start: &str| verdicts.iter().filter(|verdict| verdict.starts_with(start)).count();
    let mut part = format!(
        "## {name}: {} files, {} accepted, {} refused\n\n| file | verdict |\n|---|---|\n",
        found.len(),
        count("accepted"),
        count("refused")
    );
    for (path, verdict) in found.iter().zip(&verdicts) {
        let file = path.strip_prefix(clone).expect("it is in the clone");
        let _ = writeln!(part, "| `{}` | {verdict} |", file.display());
    }
    part
}

#[test]
fn the_verdicts_on_files_of_others_are_those_of_the_page() {
    let page = include_str!("../../../docs/reference/job-files-of-others.md");
    let Some(clones) = std::env::var_os("WARP_JOB_FILES").map(PathBuf::from) else {
        println!("SKIPPED: WARP_JOB_FILES names no folder with clones of fio, FioSynth, fiovisualizer and spdk");
        return;
    };
    for (name, folders) in PROJECTS {
        let clone = clones.join(name);
        if !clone.is_dir() {
            println!("SKIPPED: there is no {}", clone.display());
            continue;
        }
        let part = part(name, &clone, folders);
        assert!(page.contains(&part), "docs/reference/job-files-of-others.md lacks:\n{part}");
    }
}
