//! Writes the record of a full run as Markdown: each claim with its verdict, and date, machine and
//! duration.
//!
//! ```text
//! Experiment, seconds, [ClaimVerdict] -> ClaimsRecord -> docs/reference/claims.md, complete after each experiment
//! ```
//!
//! The verdicts come from `claim_checker`. The record of an interrupted run names the experiments
//! that are missing.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::HumanBytes;

use crate::claim_checker::ClaimVerdict;
use experiment::definition::Experiment;
use experiment::error::LabError;
use experiment::files::write_atomically;

/// The record of the last full run.
const RECORD: &str = include_str!("../../../docs/reference/claims.md");

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

/// A record in progress.
pub struct ClaimsRecord {
    path: PathBuf,
    begun: String,
    machine: String,
    waiting: VecDeque<String>,
    seconds: f64,
    /// Number of claims that hold, and of all judged claims.
    held: [usize; 2],
    sections: String,
}

impl ClaimsRecord {
    /// Creates a record of these experiments. They must be added in the same order.
    pub fn new(path: &Path, experiments: &[Experiment]) -> ClaimsRecord {
        ClaimsRecord {
            path: path.to_path_buf(),
            begun: chrono::Utc::now().format("%Y-%m-%d %H:%M UTC").to_string(),
            machine: machine(),
            waiting: experiments.iter().map(|experiment| experiment.slug.clone()).collect(),
            seconds: 0.0,
            held: [0, 0],
            sections: String::new(),
        }
    }

    /// Adds an experiment with its duration, and replaces the file atomically.
    ///
    /// # Errors
    /// The file cannot be written. The message names it and the system's reason.
    pub fn add(
        &mut self,
        experiment: &Experiment,
        took: Duration,
        verdicts: Vec<ClaimVerdict>,
    ) -> Result<(), LabError> {
        let next = self.waiting.pop_front();
        assert_eq!(
            next.as_ref(),
            Some(&experiment.slug),
            "experiments are added in their order"
        );
        self.seconds += took.as_secs_f64();
        let (held, judged) = ClaimVerdict::count(&verdicts);
        self.held[0] += held;
        self.held[1] += judged;
        self.sections.push_str(&section(experiment, took, &verdicts));
        let text = self.markdown();
        write_atomically(&self.path, |file| file.write_all(text.as_bytes()))
    }

    fn markdown(&self) -> String {
        let ClaimsRecord {
            begun,
            machine,
            seconds,
            held: [held, all],
            sections,
            ..
        } = self;
        let waiting = if self.waiting.is_empty() {
            String::new()
        } else {
            let names: Vec<&str> = self.waiting.iter().map(String::as_str).collect();
            format!("\nNot run: {}.\n", names.join(", "))
        };
        format!(
            "# Claims\n\nWritten by `warp reproduce --claims`. Do not edit it by hand. **{held} of {all} claims \
             hold** at full settings.\n\nBegun {begun}, {seconds:.0} s of running, WARP {} on \
             {machine}.\n{waiting}{sections}",
            env!("CARGO_PKG_VERSION"),
        )
    }
}

fn section(experiment: &Experiment, took: Duration, verdicts: &[ClaimVerdict]) -> String {
    let Experiment {
        slug, title, source, ..
    } = experiment;
    let mut text = format!("\n## {slug}\n\n{title}");
    if !source.is_empty() {
        write!(text, " ({source})").expect("a string takes everything");
    }
    writeln!(text, ", {:.1} s.\n", took.as_secs_f64()).expect("a string takes everything");
    if verdicts.is_empty() {
        text.push_str("This experiment makes no claims.\n");
        return text;
    }
    text.push_str("| | claim | found | source |\n|---|---|---|---|\n");
    for verdict in verdicts {
        let holds = match verdict.holds {
            Some(true) => "holds",
            Some(false) => "**does not hold**",
            None => "not judged",
        };
        let [what, found, source] = [&verdict.what, &verdict.found, &verdict.source].map(|text| cell(text));
        writeln!(text, "| {holds} | {what} | {found} | {source} |").expect("a string takes everything");
    }
    text
}

/// Text with escaped separators of table cells.
fn cell(text: &str) -> String {
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
        let mut record = ClaimsRecord::new(&path, &experiments);
        let mut read = |experiment, verdicts| {
            record
                .add(experiment, Duration::from_secs(2), verdicts)
                .expect("it can be written");
            std::fs::read_to_string(&path).expect("it was written")
        };
        let first = read(&experiments[0], vec![verdict("a", true), verdict("b", false)]);
        assert!(
            first.contains("**1 of 2 claims hold**") && first.contains("Not run: one_stream."),
            "{first}"
        );
        assert!(
            first.contains("| **does not hold** | b | 1 \\| 2 | Table 1 |"),
            "{first}"
        );
        let second = read(&experiments[1], Vec::new());
        assert!(
            second.contains("4 s of running") && !second.contains("Not run"),
            "{second}"
        );
        assert!(
            second.contains("## three_stream") && second.contains("This experiment makes no claims."),
            "{second}"
        );
    }
}
