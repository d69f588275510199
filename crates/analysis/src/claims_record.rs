//! Writes the record of a full run as Markdown: each claim and regression test with its verdict,
//! and date, machine and duration.
//!
//! ```text
//! Experiment, seconds, [ClaimVerdict] -> ClaimsRecord -> docs/reference/claims.md, complete after each experiment
//! ```
//!
//! The verdicts come from `claim_checker`. The record of an interrupted run names the experiments
//! that are missing. A run of some experiments replaces their sections in an existing record.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::HumanBytes;
use base::input::TEXT_BYTES_MAX;

use crate::claim_checker::ClaimVerdict;
use experiment::files::write_atomically;
use experiment::{Experiment, LabError};

const RECORD: &str = include_str!("../../../docs/reference/claims.md");

const TITLE: &str = "# Claims";
/// Headings of the tables of verdicts.
const CLAIM: &str = "claim";
const REGRESSION: &str = "regression test";

/// Duration of each experiment in the last full run, seconds, by name.
pub fn recorded_seconds() -> BTreeMap<String, f64> {
    let of_section = |section: &str| {
        let (slug, rest) = section.split_once("\n\n")?;
        let title = rest.lines().next()?.strip_suffix(" s.")?;
        let seconds = title.rsplit_once(", ")?.1.parse().ok()?;
        Some((slug.to_string(), seconds))
    };
    RECORD.split("\n## ").skip(1).filter_map(of_section).collect()
}

pub struct ClaimsRecord {
    path: PathBuf,
    begun: String,
    machine: String,
    waiting: Vec<String>,
    seconds: f64,
    /// Experiments of this run so far.
    ran: Vec<String>,
    /// Paragraphs about the earlier runs of a record that is extended.
    earlier: String,
    /// Sections by the name of the experiment.
    sections: BTreeMap<String, String>,
}

/// Text of a page that this program has written before. Empty without a file.
///
/// # Errors
/// The file is of another kind, or has other content, which would be lost.
pub(crate) fn earlier_page(path: &Path, title: &str) -> Result<String, LabError> {
    let refused = |problem: String| Err(LabError::invalid(&path.display().to_string(), problem));
    match base::input::read_text(path, TEXT_BYTES_MAX) {
        Ok(text) if text.is_empty() || text.starts_with(title) => Ok(text),
        Ok(_) => {
            let problem = "has other content, which this command would replace. Its pages begin with";
            refused(format!("{problem} \"{title}\". Give another file, or remove this one"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => refused(format!("cannot be replaced, because it cannot be read: {error}")),
    }
}

impl ClaimsRecord {
    /// Creates the record of a run. If the run leaves experiments out, it extends a record that exists.
    ///
    /// # Errors
    /// The path is not that of a record.
    pub fn new(path: &Path, experiments: &[Experiment]) -> Result<ClaimsRecord, LabError> {
        let mut waiting: Vec<String> = experiments.iter().map(|experiment| experiment.slug.clone()).collect();
        let is_whole = Experiment::names().iter().all(|name| waiting.contains(name));
        let before = earlier_page(path, TITLE)?;
        let before = if is_whole { String::new() } else { before };
        let mut parts = before.split("\n## ");
        let head = parts.next().unwrap_or_default();
        let (head, missing) = head.split_once("\nNot run: ").unwrap_or((head, ""));
        waiting.extend(
            missing.trim_end_matches(['.', '\n']).split(", ").filter(|name| !name.is_empty()).map(str::to_string),
        );
        waiting = base::distinct(waiting.into_iter());
        let earlier = head.find("\nBegun ").map(|at| head[at..].trim_end().to_string());
        let section = |text: &str| {
            let slug = text.lines().next().unwrap_or_default().to_string();
            (slug, format!("\n## {}\n", text.trim_end()))
        };
        Ok(ClaimsRecord {
            path: path.to_path_buf(),
            begun: chrono::Utc::now().format("%Y-%m-%d %H:%M UTC").to_string(),
            machine: machine(),
            waiting,
            seconds: 0.0,
            ran: Vec::new(),
            earlier: earlier.map_or_else(String::new, |text| format!("{text}\n")),
            sections: parts.map(section).collect(),
        })
    }

    /// Adds an experiment with its duration, and replaces the file atomically.
    ///
    /// # Errors
    /// The file cannot be written. The message names it and the system's reason.
    pub fn add(
        &mut self,
        experiment: &Experiment,
        took: Duration,
        claims: &[ClaimVerdict],
        regression: &[ClaimVerdict],
    ) -> Result<(), LabError> {
        self.waiting.retain(|waiting| *waiting != experiment.slug);
        self.ran.push(experiment.slug.clone());
        self.seconds += took.as_secs_f64();
        self.sections.insert(experiment.slug.clone(), section(experiment, took, claims, regression));
        let text = self.markdown();
        write_atomically(&self.path, |file| file.write_all(text.as_bytes()))
    }

    fn markdown(&self) -> String {
        let ClaimsRecord { begun, machine, seconds, earlier, .. } = self;
        let sections: String = self.sections.values().map(String::as_str).collect();
        let [held, all] = counted(&sections, CLAIM);
        let [regression_held, regression_all] = counted(&sections, REGRESSION);
        let of = if earlier.is_empty() { String::new() } else { format!(" for {}", self.ran.join(", ")) };
        format!(
            "{TITLE}\n\nWritten by `warp reproduce --claims`. Do not edit it by hand. **{held} of {all} claims \
             hold** at full settings. Bounds round our own results are no claims. Of these regression tests, \
             {regression_held} of {regression_all} hold.\n{earlier}\nBegun {begun}{of}, {seconds:.0} s of running, \
             WARP {} on {machine}.\n{}{sections}",
            env!("CARGO_PKG_VERSION"),
            not_run(&self.waiting),
        )
    }
}

/// Verdicts of all tables with this heading that hold, and of all that were judged.
fn counted(sections: &str, heading: &str) -> [usize; 2] {
    let (mut counts, mut is_counted) = ([0, 0], false);
    for line in sections.lines() {
        match line {
            _ if line.starts_with("| | ") => is_counted = line.starts_with(&format!("| | {heading} |")),
            _ if is_counted && line.starts_with("| holds |") => counts = [counts[0] + 1, counts[1] + 1],
            _ if is_counted && line.starts_with("| **does not hold** |") => counts[1] += 1,
            _ => {}
        }
    }
    counts
}

/// Paragraph about the experiments that were not run yet. Empty if there are none.
pub(crate) fn not_run(waiting: &[String]) -> String {
    if waiting.is_empty() {
        return String::new();
    }
    format!("\nNot run: {}.\n", waiting.join(", "))
}

fn section(experiment: &Experiment, took: Duration, claims: &[ClaimVerdict], regression: &[ClaimVerdict]) -> String {
    let Experiment { slug, title, source, .. } = experiment;
    let mut text = format!("\n## {slug}\n\n{title}");
    if !source.is_empty() {
        text += &format!(" ({source})");
    }
    text += &format!(", {:.1} s.\n", took.as_secs_f64());
    if claims.is_empty() {
        text += "\nThis experiment makes no claims.\n";
    }
    for (heading, verdicts) in [(CLAIM, claims), (REGRESSION, regression)] {
        text += &verdict_table(heading, verdicts);
    }
    text
}

fn verdict_table(heading: &str, verdicts: &[ClaimVerdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let mut text = format!("\n| | {heading} | found | source |\n|---|---|---|---|\n");
    for verdict in verdicts {
        let holds = match verdict.holds {
            Some(true) => "holds",
            Some(false) => "**does not hold**",
            None => "not judged",
        };
        let [what, found, source] = [&verdict.what, &verdict.found, &verdict.source].map(|text| table_cell(text));
        text += &format!("| {holds} | {what} | {found} | {source} |\n");
    }
    text
}

/// Text with escaped separators of table cells.
pub(crate) fn table_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Processor model, number of processors, and memory, as far as the system reports them.
fn machine() -> String {
    let of = |file: &str, key: &str| -> Option<String> {
        let text = std::fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let model = of("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_string());
    let memory = of("/proc/meminfo", "MemTotal").and_then(|text| text.strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let memory = memory.map_or_else(String::new, |kib| format!(", {} of memory", HumanBytes(kib << 10)));
    format!("{processors} x {model}{memory}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(what: &str, holds: bool) -> ClaimVerdict {
        ClaimVerdict {
            what: what.to_string(),
            source: "Table 1".to_string(),
            holds: Some(holds),
            found: "1 | 2".to_string(),
        }
    }

    #[test]
    fn the_record_is_whole_after_each_experiment() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("claims.md");
        let names = ["three_stream", "one_stream"];
        let experiments = names.map(|name| Experiment::find(name).expect("it is built in"));
        let mut record = ClaimsRecord::new(&path, &experiments).expect("there is no file");
        let mut read = |experiment, claims: &[ClaimVerdict]| {
            record
                .add(experiment, Duration::from_secs(2), claims, &[verdict("a bound", true)])
                .expect("it can be written");
            std::fs::read_to_string(&path).expect("it was written")
        };
        let first = read(&experiments[0], &[verdict("a", true), verdict("b", false)]);
        assert!(first.contains("**1 of 2 claims hold**") && first.contains("Not run: one_stream."), "{first}");
        assert!(first.contains("| **does not hold** | b | 1 \\| 2 | Table 1 |"), "{first}");
        let bound =
            "\n\n| | regression test | found | source |\n|---|---|---|---|\n| holds | a bound | 1 \\| 2 | Table 1 |\n";
        assert!(first.contains("1 of 1 hold.") && first.contains(bound), "{first}");
        let second = read(&experiments[1], &[]);
        assert!(second.contains("4 s of running") && !second.contains("Not run"), "{second}");
        assert!(second.contains("## three_stream") && second.contains("This experiment makes no claims."), "{second}");
        // A device is no record, and is not read.
        assert!(ClaimsRecord::new(Path::new("/dev/zero"), &experiments).is_err());
        // A later run of one experiment keeps the other section, and says when each was run.
        let mut later = ClaimsRecord::new(&path, &experiments[1..]).expect("it is a record");
        later.add(&experiments[1], Duration::from_secs(1), &[verdict("c", true)], &[]).expect("it can be written");
        let third = std::fs::read_to_string(&path).expect("it was written");
        assert!(third.contains("**2 of 3 claims hold**") && third.contains("1 of 1 hold."), "{third}");
        assert_eq!(third.matches("\nBegun ").count(), 2, "{third}");
        assert!(third.contains(" for one_stream, 1 s of running"), "{third}");
        assert_eq!(third.matches("## one_stream").count(), 1, "{third}");
    }
}
