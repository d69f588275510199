//! What can go wrong before a run, in one sentence each: place, problem, remedy.

use thiserror::Error;

/// An error that a user of the lab can mend.
#[derive(Debug, Error)]
pub enum LabError {
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A result cannot be written, through no fault of the input: a full disk, a missing permission.
    #[error("{file} cannot be written: {source}")]
    Output {
        /// The file or folder.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file says something impossible.
    #[error("{file}: {problem}")]
    Invalid {
        file: String,
        /// What and where, and what would be right.
        problem: String,
    },
    /// A name that is not known.
    #[error("there is no {what} {name}{hint}; known are {known}")]
    Unknown {
        /// What was looked for.
        what: String,
        name: String,
        /// The nearest name.
        hint: String,
        known: String,
    },
    /// A job file says something impossible.
    #[error(transparent)]
    Job(#[from] workload::fio::JobError),
    /// A workload that cannot be, or a line that it cannot read.
    #[error(transparent)]
    Workload(#[from] workload::WorkloadError),
    /// A snapshot cannot be written or read.
    #[error(transparent)]
    Snapshot(#[from] ssd::SnapshotError),
    /// A device that cannot be.
    #[error("device {device}: {error}")]
    Device {
        device: String,
        /// Which field, and what is allowed.
        error: ssd::ConfigError,
    },
}

/// Names that are listed; of more only those that are near.
const NAMES_LISTED: usize = 24;

impl LabError {
    /// A name that is not known, with the names that there are: all of a few, of many those that are near.
    pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> LabError {
        const NEAR: usize = 8;
        let known: Vec<&str> = known.into_iter().collect();
        let near = base::near(name, known.iter().copied(), NEAR);
        let listed = match known.len() > NAMES_LISTED {
            true if near.is_empty() => format!("{} (`warp list` shows them)", known.len()),
            true => format!(
                "{} and {} others (`warp list` shows them)",
                near.join(", "),
                known.len() - near.len()
            ),
            false => known.join(", "),
        };
        LabError::Unknown {
            what: what.to_string(),
            name: name.to_string(),
            hint: base::hint(name, known),
            known: listed,
        }
    }

    /// A result cannot be written to this file or folder.
    pub fn output(path: &std::path::Path, source: std::io::Error) -> LabError {
        LabError::Output {
            file: path.display().to_string(),
            source,
        }
    }

    /// A file says something impossible.
    pub fn invalid(file: &str, problem: impl Into<String>) -> LabError {
        LabError::Invalid {
            file: file.to_string(),
            problem: problem.into(),
        }
    }
}
