//! Errors before a run, in one sentence each: place, problem, remedy.

use thiserror::Error;

/// An error that a user of this crate can correct.
#[derive(Debug, Error)]
pub enum LabError {
    #[error("{file}: {source}")]
    Io { file: String, source: std::io::Error },
    /// A result cannot be written for an external reason, such as a full disk or a missing
    /// permission.
    #[error("{file} cannot be written: {source}")]
    Output { file: String, source: std::io::Error },
    #[error("{file}: {problem}")]
    Invalid {
        file: String,
        /// Problem, place and correct form.
        problem: String,
    },
    #[error("there is no {what} {name}{hint}. Known names are {known}")]
    Unknown { what: String, name: String, hint: String, known: String },
    #[error(transparent)]
    Job(#[from] workload::fio::JobError),
    /// A workload is impossible, or a line of its input is unreadable.
    #[error(transparent)]
    Workload(#[from] workload::WorkloadError),
    #[error(transparent)]
    Snapshot(#[from] ssd::SnapshotError),
    #[error("device {device}: {error}")]
    Device {
        device: String,
        /// Field and allowed values.
        error: ssd::ConfigError,
    },
}

/// Maximum names in a message. Of a longer list, it shows only near names.
const NAMES_LISTED: usize = 24;

impl LabError {
    /// Error for an unknown name. It lists all known names if they are few, else the near ones.
    pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> LabError {
        const NEAR: usize = 8;
        let known: Vec<&str> = known.into_iter().collect();
        let near = base::similar_names(name, known.iter().copied(), NEAR);
        let listed = match known.len() > NAMES_LISTED {
            true if near.is_empty() => format!("the {} of `warp list`", known.len()),
            true => format!("{} and {} others (`warp list` shows them)", near.join(", "), known.len() - near.len()),
            false => known.join(", "),
        };
        LabError::Unknown {
            what: what.to_string(),
            name: name.to_string(),
            hint: base::hint(name, known),
            known: listed,
        }
    }

    pub fn output(path: &std::path::Path, source: std::io::Error) -> LabError {
        LabError::Output { file: path.display().to_string(), source }
    }

    pub fn invalid(file: &str, problem: impl Into<String>) -> LabError {
        LabError::Invalid { file: file.to_string(), problem: problem.into() }
    }
}
