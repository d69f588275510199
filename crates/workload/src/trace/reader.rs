//! Reader of the files of a trace as one sequence of records.
//!
//! Memory is one buffer of lines, the decompressor's window, and the names of volumes and
//! processes. It does not grow with the length of the trace.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blktrace;
use super::column_list;
use super::field::{FieldProblem, SECOND_NS};
use super::format::{RecordFraming, TraceParser};
use super::input::{ReadOutcome, RecordReader};
use super::record::TraceRecord;
use super::settings::{TraceFormat, TraceSettings};
use super::spool;
use crate::WorkloadError;

/// Permitted overlap of a file's start with the end of the previous file. Recorders do not split
/// exactly.
const OVERLAP_NS_MAX: u64 = 60 * SECOND_NS;

/// Reads the records of a trace.
pub struct TraceReader {
    /// Consecutive files. Each element lists files that are read side by side.
    files: Vec<Vec<PathBuf>>,
    next_file: usize,
    /// The current file and its name.
    lines: Option<RecordReader>,
    name: String,
    pub(super) parser: TraceParser,
    /// Further records of the last line, last one first.
    waiting: Vec<TraceRecord>,
    skip_bad_lines: bool,
    bad_lines: u64,
    progress: TraceProgress,
    pub(super) clock: TraceClock,
    /// True if files must follow each other in time.
    pub(super) obeys_times: bool,
    /// True if the next record is the first of its file.
    begins_file: bool,
    /// True if another thread decompresses the files.
    decompresses_ahead: bool,
}

/// Progress of reading a trace. All copies show the same progress.
#[derive(Debug, Clone, Default)]
pub struct TraceProgress {
    bytes_read: Arc<AtomicU64>,
    bytes_total: u64,
}

impl TraceProgress {
    /// Bytes read from the files in this pass, before decompression. Reading in blocks puts this
    /// slightly ahead of the requests.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Bytes of all files on disk, or 0 for a stream of unknown length.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }
}

/// Converts the trace's own times to times since its first request. They keep rising when the trace
/// repeats.
#[derive(Debug, Default)]
pub(super) struct TraceClock {
    /// Recorded time of the first request of this pass.
    first_ns: Option<u64>,
    /// Start time of this pass.
    pass_ns: u64,
    /// Time of the latest record so far, since the first.
    pub(super) latest_ns: u64,
}

impl TraceClock {
    fn set(&mut self, mut record: TraceRecord) -> TraceRecord {
        let first = *self.first_ns.get_or_insert(record.time_ns);
        // A trace of several processors may be slightly out of order.
        record.time_ns = self.pass_ns.saturating_add(record.time_ns.saturating_sub(first));
        self.latest_ns = self.latest_ns.max(record.time_ns);
        record
    }

    fn begin_pass(&mut self) {
        self.first_ns = None;
        assert!(
            self.pass_ns <= self.latest_ns,
            "a pass that began at {} ns ends at {} ns",
            self.pass_ns,
            self.latest_ns
        );
        self.pass_ns = self.latest_ns;
    }
}

impl TraceSettings {
    /// Opens the trace as records, without a drive.
    ///
    /// # Errors
    /// Like [`TraceSettings::source`].
    pub fn reader(&self) -> Result<TraceReader, WorkloadError> {
        TraceReader::open(self)
    }
}

impl TraceReader {
    pub(super) fn open(settings: &TraceSettings) -> Result<TraceReader, WorkloadError> {
        let Some(first) = settings.files.first() else {
            return Err(WorkloadError::setting("files = []", "names no file. Name at least one file of the trace"));
        };
        let files = settings.file_groups();
        let mut bytes_total = 0;
        for file in files.iter().flatten() {
            bytes_total += file_bytes(file).map_err(|error| failed(file, error))?;
        }
        let progress = TraceProgress { bytes_read: Arc::default(), bytes_total };
        let lines = open_files(&files[0], &progress.bytes_read).map_err(|error| failed(first, error))?;
        let mut reader = TraceReader::new(spool::display_name(first), lines, progress, settings)?;
        reader.files = files;
        reader.next_file = 1;
        Ok(reader)
    }

    /// Reads a stream under a name and ignores `files` of the settings. A stream cannot be
    /// repeated.
    ///
    /// # Errors
    /// Fails if the stream cannot be read or its format cannot be guessed.
    pub fn from_stream(
        name: &str,
        stream: impl Read + Send + 'static,
        settings: &TraceSettings,
    ) -> Result<TraceReader, WorkloadError> {
        let progress = TraceProgress::default();
        let lines =
            RecordReader::new(stream, progress.bytes_read.clone()).map_err(|error| failed(Path::new(name), error))?;
        TraceReader::new(name.to_string(), lines, progress, settings)
    }

    fn new(
        name: String,
        lines: RecordReader,
        progress: TraceProgress,
        settings: &TraceSettings,
    ) -> Result<TraceReader, WorkloadError> {
        let settings = &settings.with_columns(lines.head())?;
        let guess = || TraceFormat::guess(&name, lines.first(), lines.head());
        let Some(format) = settings.format.or_else(guess) else {
            return Err(WorkloadError::Line {
                file: name,
                line: 1,
                problem: if lines.first().is_empty() && lines.head().is_empty() {
                    "the trace is empty. Give a file with requests".to_string()
                } else {
                    let remedy = column_list::question(lines.head()).unwrap_or_else(|| {
                        format!(
                            "Give its format with --set workload.format=NAME, or its columns with --columns, for \
                             example time,op,offset,bytes. The formats are {}",
                            TraceFormat::NAMES
                        )
                    });
                    format!(
                        "the format of the trace is not known. {}. {remedy}",
                        shown("Its first line", lines.first())
                    )
                },
            });
        };
        let mut parser = TraceParser::new(format, settings, lines.first(), lines.head())?;
        parser.begin_file();
        Ok(TraceReader {
            files: Vec::new(),
            next_file: 0,
            lines: Some(lines),
            name,
            parser,
            waiting: Vec::new(),
            skip_bad_lines: settings.skip_bad_lines,
            bad_lines: 0,
            progress,
            clock: TraceClock::default(),
            obeys_times: false,
            begins_file: false,
            decompresses_ahead: false,
        })
    }

    /// Returns the next request of the trace, or `None` at its end.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or at a bad line unless these are skipped. The trace then
    /// ends.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<TraceRecord>, WorkloadError> {
        loop {
            if let Some(record) = self.waiting.pop() {
                return self.timed(record).map(Some);
            }
            let Some(lines) = &mut self.lines else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            let taken = match self.parser.frame() {
                RecordFraming::Lines => lines.take_line(),
                RecordFraming::Records(bytes) => lines.take_fixed_record(bytes),
                RecordFraming::Events => lines.take_record_as_line(blktrace::HEADER_BYTES, blktrace::event_bytes),
            };
            let (problem, line) = match taken {
                Ok(ReadOutcome::Text(line)) => match self.parser.parse(line, &mut self.waiting) {
                    Ok(first) => {
                        self.waiting.reverse();
                        let Some(record) = first else { continue };
                        return self.timed(record).map(Some);
                    }
                    Err(problem) => (problem, line),
                },
                Ok(ReadOutcome::TooLong(line)) if self.parser.frame() == RecordFraming::Lines => {
                    (FieldProblem::new("the line", "at most 65536 bytes long"), line)
                }
                Ok(ReadOutcome::TooLong(line)) => {
                    (FieldProblem::whole_file("the record", "complete. Copy the file again"), line)
                }
                Ok(ReadOutcome::End) => {
                    self.lines = None;
                    continue;
                }
                Err(error) => {
                    self.end();
                    return Err(failed(Path::new(&self.name), error));
                }
            };
            self.waiting.clear();
            if self.skip_bad_lines && !problem.of_file {
                self.bad_lines += 1;
                continue;
            }
            let problem = match self.parser.frame() {
                RecordFraming::Lines => {
                    let remedy = if problem.of_file { "" } else { SKIP };
                    format!("{problem}. {}{remedy}", shown("The line", line))
                }
                _ => problem.to_string(),
            };
            return Err(self.stop(problem));
        }
    }

    /// Converts a record's time to the time since the first record.
    #[inline]
    fn timed(&mut self, record: TraceRecord) -> Result<TraceRecord, WorkloadError> {
        let before_ns = self.clock.latest_ns;
        let record = self.clock.set(record);
        if std::mem::take(&mut self.begins_file)
            && self.obeys_times
            && record.time_ns.saturating_add(OVERLAP_NS_MAX) < before_ns
        {
            return Err(self.stop(
                "the file begins before the end of the previous file, but files are replayed one after another. \
                 Merge them by time into one file (sort -m)"
                    .to_string(),
            ));
        }
        Ok(record)
    }

    /// Reports that the last request cannot be replayed.
    ///
    /// # Errors
    /// Fails unless bad lines are skipped.
    pub(super) fn reject(&mut self, problem: &str) -> Result<(), WorkloadError> {
        if self.skip_bad_lines {
            self.bad_lines += 1;
            return Ok(());
        }
        Err(self.stop(problem.to_string()))
    }

    /// Ends the trace at the last line.
    fn stop(&mut self, problem: String) -> WorkloadError {
        let number = self.lines.as_ref().map_or(0, RecordReader::number);
        self.end();
        let file = self.name.clone();
        match self.parser.frame() {
            RecordFraming::Lines => WorkloadError::Line { file, line: number, problem },
            _ => WorkloadError::Record { file, record: number, problem },
        }
    }

    /// Restarts with the first file. Volumes keep their numbers and time continues. Returns false
    /// for a stream, which cannot restart.
    pub fn rewind(&mut self) -> bool {
        if self.files.is_empty() {
            return false;
        }
        self.lines = None;
        self.waiting.clear();
        self.next_file = 0;
        self.progress.bytes_read.store(0, Ordering::Relaxed);
        self.parser.begin_pass();
        self.clock.begin_pass();
        true
    }

    /// Decompresses this file and those after it on another thread.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub(super) fn decompress_ahead(&mut self) -> Result<(), WorkloadError> {
        self.decompresses_ahead = true;
        let started = self.lines.as_mut().map_or(Ok(()), RecordReader::decompress_ahead);
        started.map_err(|error| failed(Path::new(&self.name), error))
    }

    /// Sets the progress of reading, for records that come from elsewhere.
    pub(super) fn set_bytes_read(&self, bytes: u64) {
        self.progress.bytes_read.store(bytes, Ordering::Relaxed);
    }

    /// Number of bad lines that were skipped.
    pub fn bad_lines(&self) -> u64 {
        self.bad_lines
    }

    /// Progress of reading. Copies stay up to date.
    pub fn progress(&self) -> TraceProgress {
        self.progress.clone()
    }

    /// Opens the next file. Returns false if no file is left.
    fn open_next(&mut self) -> Result<bool, WorkloadError> {
        let Some(files) = self.files.get(self.next_file) else {
            return Ok(false);
        };
        assert!(self.lines.is_none(), "{} is open when the next file is opened", self.name);
        self.next_file += 1;
        self.name = spool::display_name(&files[0]);
        let opened = open_files(files, &self.progress.bytes_read).and_then(|mut lines| {
            if self.decompresses_ahead {
                lines.decompress_ahead()?;
            }
            Ok(lines)
        });
        match opened {
            Ok(lines) => self.lines = Some(lines),
            Err(error) => {
                let error = failed(&files[0], error);
                self.end();
                return Err(error);
            }
        }
        self.parser.begin_file();
        self.begins_file = true;
        Ok(true)
    }

    /// Ends all reading.
    fn end(&mut self) {
        self.lines = None;
        self.waiting.clear();
        self.files.clear();
    }
}

/// Opens a file, or the files of a trace that are read side by side.
fn open_files(files: &[PathBuf], bytes_read: &Arc<AtomicU64>) -> io::Result<RecordReader> {
    match files {
        [file] => RecordReader::open(file, Arc::clone(bytes_read)),
        // Merged files count their bytes themselves.
        _ => RecordReader::new(blktrace::EventMerge::open(files, bytes_read)?, Arc::default()),
    }
}

/// Bytes of a file of a trace, or bytes received from a stream.
///
/// # Errors
/// Fails if the file does not exist or the stream cannot be read.
pub fn file_bytes(file: &Path) -> io::Result<u64> {
    if spool::is_stream(file) {
        return spool::open(file)?.length();
    }
    Ok(std::fs::metadata(file)?.len())
}

fn failed(file: &Path, source: io::Error) -> WorkloadError {
    // Decompression ended early. The libraries' messages would speak of streams and frames.
    let is_cut = source.kind() == io::ErrorKind::UnexpectedEof || source.to_string().contains("incomplete");
    let source = match is_cut {
        true => io::Error::new(io::ErrorKind::UnexpectedEof, "the compressed file is incomplete. Copy it again"),
        false => source,
    };
    WorkloadError::Io { file: spool::display_name(file), source }
}

/// Remedy for an incomplete or foreign line.
const SKIP: &str = ". Correct the line, or skip such lines with --set workload.skip_bad_lines=true";

/// A sentence that quotes the start of a line.
fn shown(name: &str, line: &[u8]) -> String {
    const BYTES_MAX: usize = 80;
    let is_binary = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    if line.iter().take(BYTES_MAX).any(is_binary) {
        format!("{name} is not text")
    } else if line.len() > BYTES_MAX {
        format!("{name} begins with \"{}\"", line[..BYTES_MAX].escape_ascii())
    } else {
        format!("{name} is \"{}\"", line.escape_ascii())
    }
}
