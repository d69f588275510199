//! Journal of a characterization, one JSON object a line.
//!
//! A line is complete if it ends with a line feed. The last line may be torn by a power loss, and
//! is then removed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::CharacterizeError;
use crate::identity::DriveIdentity;

/// Maximum size of a journal, bytes.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;
const RECORD_BEGIN: &str = "{\"record\":";

/// Counters in the course of a probe, since its first write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ProbeSample {
    pub host_bytes: u64,
    /// `None` without a counter of media bytes.
    pub media_bytes: Option<u64>,
    pub erased_bytes: Option<u64>,
    pub seconds: f64,
}

/// Write amplification of a probe.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct WafResult {
    /// Media bytes / host bytes at the end of the probe. Without a counter, seconds per host byte.
    pub value: f64,
    /// Standard deviation of `value`.
    pub sigma: f64,
    pub drive_writes: f64,
    pub tail_drive_writes: f64,
    pub is_steady: bool,
    pub is_holdout: bool,
}

/// A rate or a latency.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct TimeResult {
    /// Quantity, such as `read_latency_mean`.
    pub what: String,
    pub unit: String,
    pub value: f64,
    pub block_bytes: u64,
    pub queue_depth: u32,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum ProbeResult {
    Waf(WafResult),
    Times {
        rows: Vec<TimeResult>,
    },
    /// Bytes of a reclaim unit that a host can write, `None` if RUAMW never changed.
    ReclaimUnit {
        bytes: Option<u64>,
    },
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum JournalRecord {
    Drive { drive: Box<DriveIdentity> },
    FillRate { bytes_per_second: f64 },
    Begin { probe: String },
    Sample { probe: String, sample: ProbeSample },
    End { probe: String, outcome: ProbeResult },
}

/// Open journal, locked against other processes.
pub struct Journal {
    file: File,
    path: PathBuf,
    pub records: Vec<JournalRecord>,
}

impl Journal {
    /// Opens or creates a journal and reads its records.
    ///
    /// # Errors
    /// The file cannot be opened, another process has it open, or a line is damaged.
    pub fn open(path: &Path) -> Result<Journal, CharacterizeError> {
        let failed = |source: std::io::Error| CharacterizeError::File { path: path.display().to_string(), source };
        let damaged = |line: usize, problem: String| CharacterizeError::Journal {
            path: path.display().to_string(),
            line,
            problem,
        };
        // A named pipe would never open otherwise.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let opened = File::options().read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path);
        let mut file = opened.map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() || metadata.len() > JOURNAL_BYTES_MAX {
            let problem = format!("{} is not a file of at most 256 MiB, so it is no journal", path.display());
            return Err(CharacterizeError::Refused(problem));
        }
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let problem = format!("{} is in use by another characterization. Wait for its end", path.display());
            return Err(CharacterizeError::Refused(problem));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        let mut records = Vec::new();
        for (index, line) in text[..complete].lines().enumerate() {
            records.push(
                serde_json::from_str(line).map_err(|error| damaged(index + 1, base::hinted(&error.to_string())))?,
            );
        }
        // Only a torn record is removed, and no other file.
        let torn = &text[complete..];
        let begin = &RECORD_BEGIN[..torn.len().min(RECORD_BEGIN.len())];
        if !torn.starts_with(begin) {
            return Err(damaged(records.len() + 1, "this is no record".to_string()));
        }
        file.set_len(complete as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(Journal { file, path: path.to_path_buf(), records })
    }

    /// Appends a record. All records except samples are durable afterwards.
    pub fn append(&mut self, record: JournalRecord) -> Result<(), CharacterizeError> {
        let mut line = serde_json::to_string(&record).expect("a record has only names and numbers");
        assert!(!line.contains('\n'), "a record is one line");
        line.push('\n');
        let is_sample = matches!(record, JournalRecord::Sample { .. });
        let written = self.file.write_all(line.as_bytes());
        let written = written.and_then(|()| if is_sample { Ok(()) } else { self.file.sync_data() });
        written.map_err(|source| CharacterizeError::File { path: self.path.display().to_string(), source })?;
        self.records.push(record);
        Ok(())
    }

    /// Drive of the journal, `None` for a new journal.
    pub fn drive(&self) -> Option<&DriveIdentity> {
        self.records.iter().find_map(|record| match record {
            JournalRecord::Drive { drive } => Some(&**drive),
            _ => None,
        })
    }

    /// Measured rate of a fill, bytes per second.
    pub fn fill_rate(&self) -> Option<f64> {
        self.records.iter().find_map(|record| match record {
            JournalRecord::FillRate { bytes_per_second } => Some(*bytes_per_second),
            _ => None,
        })
    }

    /// Results of the completed probes, in their order.
    pub fn results(&self) -> impl Iterator<Item = (&str, &ProbeResult)> {
        self.records.iter().filter_map(|record| match record {
            JournalRecord::End { probe, outcome } => Some((probe.as_str(), outcome)),
            _ => None,
        })
    }

    /// Samples of the last attempt at a probe.
    pub fn samples(&self, name: &str) -> Vec<ProbeSample> {
        let mut samples = Vec::new();
        for record in &self.records {
            match record {
                JournalRecord::Begin { probe } if probe == name => samples.clear(),
                JournalRecord::Sample { probe, sample } if probe == name => samples.push(*sample),
                _ => {}
            }
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(probe: &str) -> JournalRecord {
        JournalRecord::End { probe: probe.to_string(), outcome: ProbeResult::ReclaimUnit { bytes: None } }
    }

    #[test]
    fn a_torn_last_line_is_removed_and_a_damaged_line_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).expect("a new journal");
        journal.append(end("uniform")).expect("written");
        assert!(Journal::open(&path).is_err(), "one process at a time");
        journal.file.write_all(b"{\"record\":\"end\",\"pro").expect("written");
        drop(journal);
        let mut journal = Journal::open(&path).expect("the torn line is gone");
        assert_eq!(journal.results().count(), 1);
        journal.append(end("zipf")).expect("written");
        drop(journal);
        assert_eq!(Journal::open(&path).expect("whole").results().count(), 2);
        std::fs::write(&path, "notes without a line feed").expect("written");
        assert!(Journal::open(&path).is_err());
        assert_eq!(std::fs::read(&path).expect("a file"), b"notes without a line feed", "another file stays");
        std::fs::write(&path, "{\"record\":\"end\"}\n").expect("written");
        let error = Journal::open(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("Remove the folder"), "{error}");
    }

    #[test]
    fn samples_are_those_of_the_last_attempt() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::open(&folder.path().join("journal.jsonl")).expect("a new journal");
        let sample = |host_bytes| ProbeSample { host_bytes, ..ProbeSample::default() };
        for host_bytes in [1, 2] {
            journal.append(JournalRecord::Begin { probe: "zipf".to_string() }).expect("written");
            journal
                .append(JournalRecord::Sample { probe: "zipf".to_string(), sample: sample(host_bytes) })
                .expect("written");
        }
        assert_eq!(journal.samples("zipf"), [sample(2)]);
    }
}
