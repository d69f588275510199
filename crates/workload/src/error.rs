//! What can be wrong with a workload, in one sentence each: place, problem, remedy.

use thiserror::Error;

use crate::fio::JobError;

/// An error that the owner of a workload can mend.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A line of a file cannot be understood.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: u64,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A record of a binary file cannot be understood.
    #[error("{file}: record {record}: {problem}")]
    Record {
        /// The file.
        file: String,
        /// Its record, from 1.
        record: u64,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A setting is impossible.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting and its value, by its path in the workload's table.
        setting: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A generator that the lab's caller has written failed.
    #[error("{place}: {source}")]
    Generator {
        /// The generator, and what it was asked for.
        place: String,
        /// Why, in the words of the language that it is written in.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A job file says something impossible.
    #[error(transparent)]
    Job(#[from] JobError),
}

impl WorkloadError {
    /// A setting is impossible.
    pub fn setting(setting: impl Into<String>, problem: impl Into<String>) -> WorkloadError {
        WorkloadError::Setting {
            setting: setting.into(),
            problem: problem.into(),
        }
    }
}
