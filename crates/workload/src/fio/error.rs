//! What can be wrong with a job file, and where.

use std::sync::Arc;

use thiserror::Error;

/// A job file that the lab cannot run: the place, what is wrong there, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {subject}: {problem}; {remedy}{}", also(.others))]
pub struct JobError {
    /// The job file, as the caller named it.
    pub file: Arc<str>,
    /// Line in the file, from 1.
    pub line: usize,
    /// What the error is about: `option=value`, or `[section]`.
    pub subject: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do instead.
    pub remedy: String,
    /// What else is wrong with the file, each without others.
    pub others: Box<[JobError]>,
}

/// The other problems, a line each.
fn also(others: &[JobError]) -> String {
    others.iter().map(|other| format!("\n{other}")).collect()
}

impl JobError {
    /// All problems as one error, if there are any.
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
pub struct Place {
    /// The file, as messages call it.
    pub file: Arc<str>,
    /// Its line, from 1.
    pub line: usize,
}

impl Place {
    pub(super) fn new(file: &str, line: usize) -> Place {
        Place {
            file: Arc::from(file),
            line,
        }
    }
}

impl Default for Place {
    fn default() -> Place {
        Place::new("", 0)
    }
}

/// A complaint about a value, before it is known where the value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// See [`JobError::problem`].
    pub problem: String,
    /// See [`JobError::remedy`].
    pub remedy: String,
}

impl Complaint {
    pub(super) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    pub(super) fn at(self, place: &Place, subject: impl Into<String>) -> JobError {
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
