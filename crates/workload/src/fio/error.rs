//! Errors in a job file, with their location.

use std::sync::Arc;

use thiserror::Error;

/// An error in a job file, with location, problem and remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {}{}", sentences(.subject, .problem, .remedy), format_others(.others))]
pub struct JobError {
    /// The job file, as the caller named it.
    pub file: Arc<str>,
    /// Line in the file, from 1.
    pub line: usize,
    /// Subject of the error, as `option=value` or `[section]`. Follows "in" in the message.
    pub subject: String,
    /// Description of the problem, as a sentence in lower case.
    pub problem: String,
    /// Proposed correction, as a sentence of its own.
    pub remedy: String,
    /// Further errors of the file. Their own `others` are empty.
    pub others: Box<[JobError]>,
}

/// Formats an error without its place.
fn sentences(subject: &str, problem: &str, remedy: &str) -> String {
    format!("in {subject}, {problem}. {remedy}")
}

fn format_others(others: &[JobError]) -> String {
    others.iter().map(|other| format!("\n{other}")).collect()
}

impl JobError {
    /// The message without the place and without the other errors.
    pub fn message(&self) -> String {
        sentences(&self.subject, &self.problem, &self.remedy)
    }

    /// Combines all problems into one error, if any.
    pub(super) fn all(mut problems: Vec<JobError>) -> Result<(), JobError> {
        if problems.is_empty() {
            return Ok(());
        }
        let others = problems.split_off(1).into();
        let first = problems.remove(0);
        Err(JobError { others, ..first })
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLine {
    /// Name of the file in messages.
    pub file: Arc<str>,
    /// Line number, from 1.
    pub line: usize,
}

impl FileLine {
    pub(super) fn new(file: &str, line: usize) -> FileLine {
        FileLine { file: Arc::from(file), line }
    }
}

impl Default for FileLine {
    fn default() -> FileLine {
        FileLine::new("", 0)
    }
}

/// A complaint about a value whose location is not yet known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionError {
    /// See [`JobError::problem`].
    pub problem: String,
    /// See [`JobError::remedy`].
    pub remedy: String,
}

impl OptionError {
    pub(super) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }

    pub(super) fn at(self, place: &FileLine, subject: impl Into<String>) -> JobError {
        JobError {
            file: Arc::clone(&place.file),
            line: place.line,
            others: Box::default(),
            subject: subject.into(),
            problem: self.problem,
            remedy: self.remedy,
        }
    }
}
