//! The files of a trace as one sequence of records.
//!
//! Memory: one buffer of lines, the decompressor's window, and the names of volumes and processes; nothing that grows with the
//! length of the trace.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blktrace;
use super::column_list;
use super::field::{Problem, SECOND_NS};
use super::format::{Frame, Parser};
use super::input::{Line, Lines};
use super::record::Record;
use super::settings::{Format, Settings};
use super::spool;
use crate::WorkloadError;

/// Time by which a file may begin before the end of the one before it: recorders do not cut exactly.
const OVERLAP_NS_MAX: u64 = 60 * SECOND_NS;

/// Reads the records of a trace.
pub struct Reader {
    /// Files that follow each other; of each, those that are read side by side.
    files: Vec<Vec<PathBuf>>,
    next_file: usize,
    /// The file that is read, and its name.
    lines: Option<Lines>,
    name: String,
    parser: Parser,
    /// What a record said beyond its first request, the last first.
    waiting: Vec<Record>,
    skip_bad_lines: bool,
    bad_lines: u64,
    progress: Progress,
    clock: Clock,
    /// Files must follow each other in time.
    obeys_times: bool,
    /// The next record is the first of its file.
    begins_file: bool,
}

/// How much of a trace has been read. A copy of it shows the same, wherever the reader is.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    bytes_read: Arc<AtomicU64>,
    bytes_total: u64,
}

impl Progress {
    /// Bytes of the files that have been read in this pass: compressed ones, if they are compressed. A little ahead of the requests,
    /// because files are read in pieces.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Bytes of all files as they lie on disk; 0 if it is a stream of unknown length.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }
}

/// Turns the trace's own times into times since its first request, which go on rising when it is repeated.
#[derive(Debug, Default)]
struct Clock {
    /// What the first request of this pass says.
    first_ns: Option<u64>,
    /// Time at which this pass began.
    pass_ns: u64,
    latest_ns: u64,
}

impl Clock {
    fn set(&mut self, mut record: Record) -> Record {
        let first = *self.first_ns.get_or_insert(record.time_ns);
        // A trace from several processors may be a little out of order.
        record.time_ns = self.pass_ns.saturating_add(record.time_ns.saturating_sub(first));
        self.latest_ns = self.latest_ns.max(record.time_ns);
        record
    }

    fn begin_pass(&mut self) {
        self.first_ns = None;
        self.pass_ns = self.latest_ns;
    }
}

impl Settings {
    /// The trace as records, without a drive.
    ///
    /// # Errors
    /// As [`Settings::source`].
    pub fn reader(&self) -> Result<Reader, WorkloadError> {
        Reader::open(self)
    }
}

impl Reader {
    pub(super) fn open(settings: &Settings) -> Result<Reader, WorkloadError> {
        let Some(first) = settings.files.first() else {
            return Err(WorkloadError::setting(
                "files = []",
                "name at least one file of the trace",
            ));
        };
        let mut files: Vec<Vec<PathBuf>> = Vec::new();
        let mut bytes_total = 0;
        for file in &settings.files {
            let together = blktrace::files_of(file);
            // Each processor's file may be named, or one of them.
            if together.len() > 1 && files.contains(&together) {
                continue;
            }
            for file in &together {
                bytes_total += file_bytes(file).map_err(|error| failed(file, error))?;
            }
            files.push(together);
        }
        let progress = Progress {
            bytes_read: Arc::default(),
            bytes_total,
        };
        let lines = open_together(&files[0], &progress.bytes_read).map_err(|error| failed(first, error))?;
        let mut reader = Reader::new(spool::shown(first), lines, progress, settings)?;
        reader.files = files;
        reader.next_file = 1;
        Ok(reader)
    }

    /// Reads a stream under a name; `files` of the settings are not opened. It cannot be repeated.
    ///
    /// # Errors
    /// It cannot be read, or its format cannot be guessed.
    pub fn from_stream(
        name: &str,
        stream: impl Read + Send + 'static,
        settings: &Settings,
    ) -> Result<Reader, WorkloadError> {
        let progress = Progress::default();
        let lines = Lines::new(stream, progress.bytes_read.clone()).map_err(|error| failed(Path::new(name), error))?;
        Reader::new(name.to_string(), lines, progress, settings)
    }

    fn new(name: String, lines: Lines, progress: Progress, settings: &Settings) -> Result<Reader, WorkloadError> {
        let settings = &settings.with_columns(lines.head())?;
        let guess = || Format::guess(&name, lines.first(), lines.head());
        let Some(format) = settings.format.or_else(guess) else {
            return Err(WorkloadError::Line {
                file: name,
                line: 1,
                problem: if lines.first().is_empty() && lines.head().is_empty() {
                    "the trace is empty; give a file with requests".to_string()
                } else {
                    let remedy = column_list::question(lines.head()).unwrap_or_else(|| {
                        format!(
                            "say its format (--set workload.format=NAME, format = \"NAME\" in a workload file: {}), or what its columns are, such as --columns time,op,offset,bytes",
                            Format::NAMES
                        )
                    });
                    format!("no known format begins with {}; {remedy}", excerpt(lines.first()))
                },
            });
        };
        let mut parser = Parser::new(format, settings, lines.first(), lines.head())?;
        parser.begin_file();
        Ok(Reader {
            files: Vec::new(),
            next_file: 0,
            lines: Some(lines),
            name,
            parser,
            waiting: Vec::new(),
            skip_bad_lines: settings.skip_bad_lines,
            bad_lines: 0,
            progress,
            clock: Clock::default(),
            obeys_times: false,
            begins_file: false,
        })
    }

    /// The next request of the trace; none at its end.
    ///
    /// # Errors
    /// A file cannot be read; a line is bad, and bad lines are not skipped. There is nothing more then.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record>, WorkloadError> {
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
                Frame::Lines => lines.take_line(),
                Frame::Records(bytes) => lines.take_record_of(bytes),
                Frame::Events => lines.take_record_as_line(blktrace::HEADER_BYTES, blktrace::event_bytes),
            };
            let (problem, line) = match taken {
                Ok(Line::Text(line)) => match self.parser.parse(line, &mut self.waiting) {
                    Ok(first) => {
                        self.waiting.reverse();
                        let Some(record) = first else { continue };
                        return self.timed(record).map(Some);
                    }
                    Err(problem) => (problem, line),
                },
                Ok(Line::TooLong(line)) if self.parser.frame() == Frame::Lines => {
                    (Problem::new("the line", "at most 65536 bytes long"), line)
                }
                Ok(Line::TooLong(line)) => (Problem::of_file("the record", "whole: the file is cut off"), line),
                Ok(Line::End) => {
                    self.lines = None;
                    continue;
                }
                Err(error) => {
                    self.end();
                    return Err(failed(Path::new(&self.name), error));
                }
            };
            self.waiting.clear();
            if self.skip_bad_lines && !problem.is_of_file() {
                self.bad_lines += 1;
                continue;
            }
            let problem = match self.parser.frame() {
                Frame::Lines => {
                    let remedy = if problem.is_of_file() { "" } else { SKIP };
                    format!("{problem}: {}{remedy}", excerpt(line))
                }
                _ => problem.to_string(),
            };
            return Err(self.stop(problem));
        }
    }

    /// Refuses from now on a file that begins long before the file before it ends.
    pub(super) fn obey_times(&mut self) {
        self.obeys_times = true;
    }

    /// Names of the first volumes and of the first processes so far, at most so many of each; none where the format has none.
    pub(super) fn names(&self, most: usize) -> [Vec<String>; 2] {
        self.parser.names(most)
    }

    /// A record with its time since the first one.
    #[inline]
    fn timed(&mut self, record: Record) -> Result<Record, WorkloadError> {
        let before_ns = self.clock.latest_ns;
        let record = self.clock.set(record);
        if std::mem::take(&mut self.begins_file)
            && self.obeys_times
            && record.time_ns.saturating_add(OVERLAP_NS_MAX) < before_ns
        {
            return Err(self.stop(
                "the file begins before the end of the one before it, and files are read one after another; merge them by time \
                 into one file (sort -m)"
                    .to_string(),
            ));
        }
        Ok(record)
    }

    /// The request that was read last cannot be replayed.
    ///
    /// # Errors
    /// Bad lines are not skipped.
    pub(super) fn reject(&mut self, problem: &str) -> Result<(), WorkloadError> {
        if self.skip_bad_lines {
            self.bad_lines += 1;
            return Ok(());
        }
        Err(self.stop(problem.to_string()))
    }

    /// Ends at the line that was read last.
    fn stop(&mut self, problem: String) -> WorkloadError {
        let number = self.lines.as_ref().map_or(0, Lines::number);
        self.end();
        let file = self.name.clone();
        match self.parser.frame() {
            Frame::Lines => WorkloadError::Line {
                file,
                line: number,
                problem,
            },
            _ => WorkloadError::Record {
                file,
                record: number,
                problem,
            },
        }
    }

    /// Begins again with the first file. Volumes keep their numbers and time goes on. False if that cannot be done, because it is
    /// a stream.
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

    /// Lines that were skipped because they are bad.
    pub fn bad_lines(&self) -> u64 {
        self.bad_lines
    }

    /// How much has been read; the copy stays up to date.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Opens the next file; false if there is none.
    fn open_next(&mut self) -> Result<bool, WorkloadError> {
        let Some(files) = self.files.get(self.next_file) else {
            return Ok(false);
        };
        self.next_file += 1;
        self.name = spool::shown(&files[0]);
        match open_together(files, &self.progress.bytes_read) {
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

    /// Nothing is read any more.
    fn end(&mut self) {
        self.lines = None;
        self.waiting.clear();
        self.files.clear();
    }
}

/// Opens a file, or those of a trace that are read side by side.
fn open_together(files: &[PathBuf], bytes_read: &Arc<AtomicU64>) -> io::Result<Lines> {
    match files {
        [file] => Lines::open(file, Arc::clone(bytes_read)),
        // They count what they read themselves.
        _ => Lines::new(blktrace::Merged::open(files, bytes_read)?, Arc::default()),
    }
}

/// Bytes of a file of a trace, or of what came through a stream.
///
/// # Errors
/// There is no such file, or the stream cannot be read.
pub fn file_bytes(file: &Path) -> io::Result<u64> {
    if spool::is_stream(file) {
        return spool::open(file)?.length();
    }
    Ok(std::fs::metadata(file)?.len())
}

fn failed(file: &Path, source: io::Error) -> WorkloadError {
    // Decompression ends early: the libraries speak of streams and frames.
    let is_cut = source.kind() == io::ErrorKind::UnexpectedEof || source.to_string().contains("incomplete");
    let source = match is_cut {
        true => io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the compressed file is cut off; copy it again, whole",
        ),
        false => source,
    };
    WorkloadError::Io {
        file: spool::shown(file),
        source,
    }
}

/// The remedy for a line that is torn or of something else.
const SKIP: &str = "; mend the line, or skip such lines (--set workload.skip_bad_lines=true)";

/// The beginning of a line, as text in quotes.
fn excerpt(line: &[u8]) -> String {
    const BYTES_MAX: usize = 80;
    let is_binary = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    if line.iter().take(BYTES_MAX).any(is_binary) {
        "bytes that are no text".to_string()
    } else if line.len() > BYTES_MAX {
        format!("\"{}...\"", line[..BYTES_MAX].escape_ascii())
    } else {
        format!("\"{}\"", line.escape_ascii())
    }
}
