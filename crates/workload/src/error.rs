//! Errors of workloads. Each message states the place, the problem and the remedy.

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
    #[error("{file}: in record {record}, {problem}")]
    Record {
        /// Path of the file.
        file: String,
        /// Record number, from 1.
        record: u64,
        /// The error in the record and its correction.
        problem: String,
    },
    /// A setting is impossible.
    #[error("{setting} {problem}")]
    Setting {
        /// The setting and its value, by its path in the workload's table. Subject of the message.
        setting: String,
        /// The rest of the sentence, such as "must be above 0", and the correction.
        problem: String,
    },
    /// A table is malformed, or a workload fails while it runs.
    #[error("{place}: {problem}")]
    At {
        /// The table's path, or the part of the workload.
        place: String,
        /// The error and its correction, as whole sentences.
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
    /// Creates the error of an impossible setting. `setting` is the subject of the sentence, and
    /// `problem` continues it.
    pub fn setting(setting: impl Into<String>, problem: impl Into<String>) -> WorkloadError {
        WorkloadError::Setting { setting: setting.into(), problem: problem.into() }
    }

    /// Creates an error at a place. `problem` is a sentence of its own.
    pub fn at(place: impl Into<String>, problem: impl Into<String>) -> WorkloadError {
        WorkloadError::At { place: place.into(), problem: problem.into() }
    }
}
