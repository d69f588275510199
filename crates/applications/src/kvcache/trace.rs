//! Reader of request traces in Mooncake's format, one JSON line per request with time and chunk
//! keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use workload::WorkloadError;
use workload::random::mix;
use workload::trace::{MooncakeRequest, ReadOutcome, RecordReader};

/// A request for the chunks of a prompt.
#[derive(Debug, Clone, Default)]
pub(super) struct Prompt {
    /// Arrival time since the start of the workload.
    pub(super) at_ns: u64,
    /// Session of the request.
    pub(super) session: u64,
    pub(super) chunks: Vec<u64>,
    /// Time per chunk until the worker takes the next request. 0 if requests have arrival times.
    pub(super) chunk_ns: u64,
}

/// A trace of requests in Mooncake's format (README of kvcache-ai/Mooncake, FAST '25).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MooncakeSettings {
    /// Trace files in order: plain, gzip or zstd. At least one.
    pub files: Vec<PathBuf>,
}

impl MooncakeSettings {
    pub(super) fn check(&self, place: &str) -> Result<(), WorkloadError> {
        if self.files.is_empty() {
            let problem = "is missing. Name the trace's files";
            return Err(WorkloadError::setting(format!("{place}.files"), problem));
        }
        Ok(())
    }
}

/// Reads trace files one after another.
#[derive(Default)]
pub(super) struct MooncakeTrace {
    files: Vec<PathBuf>,
    open: Option<RecordReader>,
    /// Number of the file after the open one.
    next_file: usize,
    endless: bool,
    /// Sampling divisor of prompts. The first chunk of a prompt decides if the prompt is taken.
    sampled: u64,
    /// Number of passes over the files. A repeated pass uses new keys.
    pass: u64,
    /// Requests in this pass.
    requests: u64,
    /// Time of the start of the pass, and time of the last request.
    pass_began_ns: u64,
    last_ns: u64,
}

impl MooncakeTrace {
    pub(super) fn new(settings: &MooncakeSettings, sampled: u64, endless: bool) -> Result<Self, WorkloadError> {
        let mut trace = MooncakeTrace { files: settings.files.clone(), endless, sampled, ..MooncakeTrace::default() };
        trace.open_next()?;
        Ok(trace)
    }

    /// Name of the open file.
    fn file(&self) -> String {
        self.files[self.next_file - 1].display().to_string()
    }

    /// Opens the next file. Returns false after the last one.
    fn open_next(&mut self) -> Result<bool, WorkloadError> {
        if self.next_file == self.files.len() && self.endless && self.requests > 0 {
            (self.next_file, self.requests) = (0, 0);
            self.pass += 1;
            self.pass_began_ns = self.last_ns;
        }
        let Some(file) = self.files.get(self.next_file) else {
            self.open = None;
            return Ok(false);
        };
        self.next_file += 1;
        let opened = RecordReader::open(Path::new(file), Arc::default());
        self.open = Some(opened.map_err(|source| WorkloadError::Io { file: self.file(), source })?);
        Ok(true)
    }

    /// Produces the next request. Returns false at the end of the files.
    pub(super) fn next(&mut self, prompt: &mut Prompt) -> Result<bool, WorkloadError> {
        loop {
            let Some(lines) = &mut self.open else {
                return Ok(false);
            };
            let parsed = match lines.take_line() {
                Ok(ReadOutcome::Text(line)) => MooncakeRequest::parse(line),
                Ok(ReadOutcome::TooLong(_)) => Err("the line is longer than 64 KiB".to_string()),
                Ok(ReadOutcome::End) => {
                    self.open_next()?;
                    continue;
                }
                Err(source) => {
                    let file = self.file();
                    self.open = None;
                    return Err(WorkloadError::Io { file, source });
                }
            };
            let line = lines.number();
            match parsed {
                Ok(Some(request)) if self.selects(&request) => {
                    self.fill(request, prompt);
                    return Ok(true);
                }
                Ok(_) => {}
                Err(problem) => {
                    let file = self.file();
                    self.open = None;
                    return Err(WorkloadError::Line { file, line, problem });
                }
            }
        }
    }

    /// Prompts with the same first chunk are all taken or all skipped.
    fn selects(&self, request: &MooncakeRequest) -> bool {
        request.hash_ids.first().is_some_and(|first| mix(*first).is_multiple_of(self.sampled))
    }

    fn fill(&mut self, request: MooncakeRequest, prompt: &mut Prompt) {
        // Requests may be slightly out of order, but the tier's clock never goes back.
        self.last_ns = self.last_ns.max(self.pass_began_ns + request.time_ns());
        self.requests += 1;
        prompt.at_ns = self.last_ns;
        prompt.chunk_ns = 0;
        prompt.session = mix(request.hash_ids[0]);
        let pass = mix(self.pass);
        prompt.chunks.extend(request.hash_ids.iter().map(|id| id ^ pass));
    }
}
