//! Checks texts that a page sends (job files, workload tables, traces, fault plans) and reports
//! problems by line.
//!
//! The author may be any client of the server. A text must not access files, pipes, devices or
//! environment variables of this machine. This module rejects such texts before any other code
//! reads them.

use experiment::workloads;
use serde::Serialize;
use target::actions::FaultPlan;
use toml::{Table, Value};
use workload::fio::JobError;

/// Maximum length of a file name, bytes.
const FILE_NAME_BYTES_MAX: usize = 64;
/// Maximum number of reported problems.
const PROBLEMS_MAX: usize = 100;
/// Workload settings whose values are files.
const FILE_SETTINGS: [&str; 3] = ["file", "files", "trace"];
/// Options of job files that read another file.
const FILE_OPTIONS: [&str; 2] = ["include", "dp_scheme"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextProblem {
    /// Line number from 1, if the problem has a line.
    pub line: Option<usize>,
    /// Problem with a remedy.
    pub message: String,
}

impl TextProblem {
    fn new(line: Option<usize>, message: impl Into<String>) -> TextProblem {
        TextProblem { line, message: message.into() }
    }
}

pub fn check_file_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._- ".contains(&byte);
    if name.is_empty()
        || name.len() > FILE_NAME_BYTES_MAX
        || name.starts_with(['.', '-', ' '])
        || !name.bytes().all(is_plain)
    {
        return Err(format!(
            "the file name is not valid. Give 1 to {FILE_NAME_BYTES_MAX} letters, digits, dots, spaces and hyphens, \
             such as mine.fio"
        ));
    }
    Ok(())
}

/// Parses a text as the table of a workload. Returns `None` for a block trace, which must be a
/// file.
pub fn table(name: &str, text: &str) -> Result<Option<Table>, Vec<TextProblem>> {
    if name.ends_with(".fio") {
        check_job_file(text).map_err(|problem| vec![problem])?;
        workloads::jobs_of_text(text, name, &[]).map_err(|error| problems_of(&error))?;
        return Ok(Some(Table::from_iter([
            ("kind".to_string(), Value::from("fio")),
            ("text".to_string(), Value::from(text)),
        ])));
    }
    if !name.ends_with(".toml") {
        return Ok(None);
    }
    let table: Table = toml::from_str(text).map_err(|error| vec![problem_of_toml(&error, text)])?;
    check_table(&table).map_err(|problem| vec![TextProblem::new(None, problem)])?;
    let changes = workloads::WorkloadChanges::default();
    changes.parse(name, &table).map_err(|error| problems_of(&error))?;
    Ok(Some(table))
}

/// Problems of a text, empty if it can be run.
pub fn problems(name: &str, text: &str) -> Vec<TextProblem> {
    if let Err(problem) = check_file_name(name) {
        return vec![TextProblem::new(None, problem)];
    }
    table(name, text).err().unwrap_or_default()
}

/// Problems of a fault plan, empty if it is valid.
pub fn problems_of_faults(text: &str) -> Vec<TextProblem> {
    let problem = FaultPlan::parse(text).err();
    problem.map(|error| TextProblem::new(Some(error.line), error.problem)).into_iter().collect()
}

fn problem_of_toml(error: &toml::de::Error, text: &str) -> TextProblem {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| before.matches('\n').count() + 1);
    TextProblem::new(line, error.message().replace('\n', ", "))
}

fn problems_of(error: &experiment::LabError) -> Vec<TextProblem> {
    let experiment::LabError::Job(error) = error else {
        return vec![TextProblem::new(None, error.to_string())];
    };
    let of = |error: &JobError| TextProblem::new(Some(error.line).filter(|line| *line > 0), error.message());
    let all = [error].into_iter().chain(&error.others);
    all.take(PROBLEMS_MAX).map(of).collect()
}

/// Rejects options of a job file that access files or variables of this machine.
fn check_job_file(text: &str) -> Result<(), TextProblem> {
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with([';', '#']) {
            continue;
        }
        let word = line.split(|letter: char| letter == '=' || letter.is_whitespace()).next();
        let refuse = |problem: &str| Err(TextProblem::new(Some(index + 1), problem));
        if word.is_some_and(|word| FILE_OPTIONS.contains(&word)) {
            return refuse(
                "the option names a file of this machine, which a page cannot read. Insert the contents of the file",
            );
        }
        if line.contains("${") {
            return refuse("the line names a variable of this machine, which a page cannot read. Write its value");
        }
    }
    Ok(())
}

/// Rejects settings of a workload that access files or variables of this machine, at any depth.
fn check_table(table: &Table) -> Result<(), String> {
    table.iter().try_for_each(|(key, value)| check_setting(key, value).map_err(|problem| format!("{key}: {problem}")))
}

/// Rejects a setting that accesses a file or a variable of this machine. Job files of the catalogue
/// are allowed.
pub fn check_setting(key: &str, value: &Value) -> Result<(), String> {
    let is_known_job =
        |value: &Value| value.as_str().is_some_and(|name| workloads::job_names().iter().any(|known| known == name));
    let names_file = FILE_SETTINGS.contains(&key) || FILE_OPTIONS.contains(&key);
    if names_file && !(key == "file" && is_known_job(value)) {
        return Err("names a file of this machine, which a page cannot read. Send its text".to_string());
    }
    match value {
        Value::String(text) if key == "text" => check_job_file(text).map_err(|problem| problem.message),
        Value::String(text) if text.contains("${") => {
            Err("names a variable of this machine, which a page cannot read. Write its value".to_string())
        }
        Value::Table(table) => check_table(table),
        Value::Array(values) => values.iter().try_for_each(|value| check_setting("", value)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_of_a_job_file_has_its_line() {
        let found = problems("mine.fio", "[global]\nrw=wrote\nbs=4k\n[one]\nbss=8k\n");
        let lines: Vec<Option<usize>> = found.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [Some(2), Some(5)], "{found:?}");
        assert!(found[0].message.starts_with("in rw=wrote, "), "{found:?}");
        assert_eq!(problems("mine.fio", "[one]\nrw=write\n"), []);
    }

    #[test]
    fn a_mistake_of_a_table_has_its_line_or_its_setting() {
        let found = problems("mine.toml", "kind = \"lsm\"\nthis is none\n");
        assert_eq!(found[0].line, Some(2), "{found:?}");
        let found = problems("mine.toml", "kind = \"cachlib\"\n");
        assert!(found[0].message.contains("did you mean cachelib?"), "{found:?}");
    }

    #[test]
    fn nothing_leads_out_of_a_text() {
        for (name, text) in [
            ("a.fio", "include /dev/zero\n[one]\nrw=write\n"),
            ("a.fio", "[one]\nrw=write\ndp_scheme=/dev/zero\n"),
            ("a.fio", "[one]\nrw=write\nsize=${HOME}\n"),
            ("a.toml", "kind = \"trace\"\nfiles = [\"/dev/zero\"]\n"),
            ("a.toml", "kind = \"fio\"\nfile = \"/dev/zero\"\n"),
            ("a.toml", "kind = \"fio\"\ntext = \"\"\"\n[one]\n  include /dev/zero\n\"\"\"\n"),
            ("a.toml", "kind = \"tenants\"\n[[tenants]]\nworkload = { kind = \"cachelib\", trace = \"/dev/zero\" }\n"),
            ("a.toml", "kind = \"cachelib\"\ntrace = \"${HOME}/x\"\n"),
            ("../a.fio", ""),
            ("/etc/passwd", ""),
            ("", ""),
        ] {
            assert_ne!(problems(name, text), [], "{name}: {text}");
        }
        assert_eq!(problems("a.toml", "kind = \"fio\"\nfile = \"two_sequential\"\n"), []);
    }
}
