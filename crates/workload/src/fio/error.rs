//! What can be wrong with a job file, and where.

use thiserror::Error;

/// A job file that the lab cannot run: the place, what is wrong there, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {subject}: {problem}; {remedy}")]
pub struct JobError {
    /// The job file, as the caller named it.
    pub file: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// What the error is about: `option=value`, or `[section]`.
    pub subject: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do instead.
    pub remedy: String,
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

    pub(super) fn at(self, file: &str, line: usize, subject: impl Into<String>) -> JobError {
        JobError {
            file: file.to_owned(),
            line,
            subject: subject.into(),
            problem: self.problem,
            remedy: self.remedy,
        }
    }
}
