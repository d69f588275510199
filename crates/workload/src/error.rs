//! Errors of workloads. Each message states place, problem and remedy in one sentence.

use thiserror::Error;

use crate::fio::JobError;

/// An error that the author of a workload can fix.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// Path of the file.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A line of a file cannot be parsed.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// Path of the file.
        file: String,
        /// Line number, from 1.
        line: u64,
        /// The error in the line and its correction.
        problem: String,
    },
    /// A record of a binary file cannot be parsed.
    #[error("{file}: record {record}: {problem}")]
    Record {
        /// Path of the file.
        file: String,
        /// Record number, from 1.
        record: u64,
        /// The error in the record and its correction.
        problem: String,
    },
    /// A setting is impossible.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting and its value, by its path in the workload's table.
        setting: String,
        /// The error in the setting and its correction.
        problem: String,
    },
    /// A generator written by the lab's caller failed.
    #[error("{place}: {source}")]
    Generator {
        /// The generator and the call that failed.
        place: String,
        /// The cause, as the generator's own language reports it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A job file contains an error.
    #[error(transparent)]
    Job(#[from] JobError),
}

impl WorkloadError {
    /// Creates the error of an impossible setting.
    pub fn setting(setting: impl Into<String>, problem: impl Into<String>) -> WorkloadError {
        WorkloadError::Setting {
            setting: setting.into(),
            problem: problem.into(),
        }
    }
}
