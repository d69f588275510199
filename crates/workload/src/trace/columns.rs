//! Parser of traces in lines and columns, which TOML settings describe.
//!
//! ```toml
//! [workload]
//! kind = "trace"
//! files = ["Financial1.spc.gz"]           # UMass Storage Performance Council traces: ASU,LBA,Size,Opcode,Timestamp
//! format = "csv"
//!
//! [workload.csv]
//! volume = 1                              # by number from 1, or by name if there is a header
//! offset = { column = 2, unit = "sectors" }
//! length = { column = 3, unit = "bytes" }
//! operation = { column = 4, read = ["r", "R"], write = ["w", "W"] }
//! time = { column = 5, unit = "s" }
//! ```
//!
//! Quotes are not parsed, because no block trace has them. Empty lines and lines that begin with
//! `#` are skipped.

use serde::{Deserialize, Serialize};

use super::field::{FieldProblem, SECOND_NS, SECTOR_BYTES, decimal, number, trim};
use super::iolog::placement;
use super::record::{FileIdentity, IdentityNames, TraceRecord};
use crate::{RequestOperation, WorkloadError};

/// Meaning of the columns of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSettings {
    /// Separator of columns. Default is the comma.
    #[serde(default)]
    pub delimiter: Delimiter,
    /// True if the first line of each file holds column names. Default is true if a column is given
    /// by name.
    pub header: Option<bool>,
    /// Address of the first byte.
    pub offset: AmountColumn,
    /// Length of the request.
    pub length: AmountColumn,
    /// Operation of the request.
    pub operation: OperationColumn,
    /// Issue time. Without it all times are 0.
    pub time: Option<TimeColumn>,
    /// Disk or volume. Without it all requests are of one volume.
    pub volume: Option<ColumnReference>,
    /// Process. Without it all requests are of one process.
    pub process: Option<ColumnReference>,
    /// File of a file system. Without it all requests are of one file.
    pub file: Option<ColumnReference>,
    /// Placement index, empty, or `-`.
    pub placement: Option<ColumnReference>,
}

/// Header of the output of `warp capture`.
pub const CAPTURE_HEADER: &str = "time,process,file,operation,offset,length";
/// Additional last column if several disks were captured.
const DISK_COLUMN: &str = "disk";

/// Recognizes a capture by its header. Returns true if several disks were captured.
pub(super) fn capture_of_several(first_line: &[u8]) -> Option<bool> {
    match first_line.strip_prefix(CAPTURE_HEADER.as_bytes())? {
        b"" => Some(false),
        [b',', rest @ ..] if rest == DISK_COLUMN.as_bytes() => Some(true),
        _ => None,
    }
}

impl ColumnSettings {
    /// Columns of `warp capture`, with seconds, bytes, and R, W or D. With the disk if several were
    /// captured.
    pub(super) fn for_capture(are_several: bool) -> ColumnSettings {
        let column = |name: &str| ColumnReference::Name(name.to_string());
        let amount = |name: &str| AmountColumn { column: column(name), unit: AmountUnit::Bytes };
        ColumnSettings {
            delimiter: Delimiter::Comma,
            header: Some(true),
            offset: amount("offset"),
            length: amount("length"),
            operation: OperationColumn::from_column(column("operation")),
            time: Some(TimeColumn { column: column("time"), unit: TimeUnit::Seconds }),
            volume: are_several.then(|| column(DISK_COLUMN)),
            process: Some(column("process")),
            file: Some(column("file")),
            placement: None,
        }
    }
}

/// A column, by its number from 1 or its name in the header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ColumnReference {
    /// Number, from 1.
    Number(usize),
    /// Name in the header.
    Name(String),
}

/// Separator of columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delimiter {
    /// `,`
    #[default]
    Comma,
    /// `;`
    Semicolon,
    /// One tab.
    Tab,
    /// Any number of blanks and tabs.
    Blanks,
}

/// A column with a number of bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AmountColumn {
    /// Column of the amount.
    pub column: ColumnReference,
    /// Unit of the amount. Default is bytes.
    #[serde(default)]
    pub unit: AmountUnit,
}

/// Unit of an amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u64)]
pub enum AmountUnit {
    /// 1 byte.
    #[default]
    Bytes = 1,
    /// 512 bytes.
    Sectors = SECTOR_BYTES,
    /// 1024 bytes.
    Kib = 1024,
    /// 4096 bytes.
    Pages = 4096,
}

/// A column with the operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationColumn {
    /// Column of the operation.
    pub column: ColumnReference,
    /// Words for a read. Default is R, r, Read, read, READ.
    #[serde(default = "read_words")]
    pub read: Vec<String>,
    /// Words for a write. Default is W, w, Write, write, WRITE.
    #[serde(default = "write_words")]
    pub write: Vec<String>,
    /// Words for a trim. Default is D, d, T, t, Trim, trim, TRIM, Discard, discard.
    #[serde(default = "trim_words")]
    pub trim: Vec<String>,
    /// Words of lines that are no requests. Default is none.
    #[serde(default)]
    pub ignore: Vec<String>,
}

/// A column with the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeColumn {
    /// Column of the time.
    pub column: ColumnReference,
    /// Unit of the time, which may have a fraction.
    pub unit: TimeUnit,
}

/// Unit of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u64)]
pub enum TimeUnit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds = SECOND_NS,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds = 1_000_000,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds = 1000,
    /// Windows filetime.
    #[serde(rename = "100ns")]
    Filetime = 100,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds = 1,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

fn read_words() -> Vec<String> {
    words(&["R", "r", "Read", "read", "READ"])
}

fn write_words() -> Vec<String> {
    words(&["W", "w", "Write", "write", "WRITE"])
}

fn trim_words() -> Vec<String> {
    words(&["D", "d", "T", "t", "Trim", "trim", "TRIM", "Discard", "discard"])
}

/// Number of roles of columns, followed by their indices.
const ROLES: usize = 8;
const OFFSET: usize = 0;
const LENGTH: usize = 1;
const OPERATION: usize = 2;
const TIME: usize = 3;
const VOLUME: usize = 4;
const PROCESS: usize = 5;
const PLACEMENT: usize = 6;
const FILE: usize = 7;

const _: () = assert!(FILE + 1 == ROLES, "the last role has the last index");
/// Maximum columns, more than any trace has.
pub(super) const COLUMNS_MAX: usize = 1024;

/// Parses lines of columns.
pub(super) struct ColumnParser {
    settings: ColumnSettings,
    /// Column numbers, from 0, with their roles, in ascending order.
    places: Vec<(usize, usize)>,
    /// Meanings of one-byte words.
    short_words: Box<[Option<OperationWord>; 256]>,
    at_header: bool,
    pub(super) volumes: IdentityNames,
    pub(super) processes: IdentityNames,
    files: IdentityNames,
    file_by: FileIdentity,
    /// Kind of the last file.
    kind: Vec<u8>,
}

impl ColumnParser {
    pub(super) fn new(settings: &ColumnSettings, file_by: FileIdentity) -> Result<ColumnParser, WorkloadError> {
        let mut columns = ColumnParser {
            settings: settings.clone(),
            places: Vec::new(),
            short_words: Box::new([None; 256]),
            at_header: false,
            volumes: IdentityNames::default(),
            processes: IdentityNames::default(),
            files: IdentityNames::default(),
            file_by,
            kind: Vec::new(),
        };
        for role in 0..ROLES {
            match settings.column(role) {
                Some(ColumnReference::Number(number @ 1..=COLUMNS_MAX)) => columns.places.push((number - 1, role)),
                Some(ColumnReference::Number(number)) => {
                    return Err(WorkloadError::setting(
                        format!("column {number} of csv"),
                        format!("does not exist. Number the columns from 1 to {COLUMNS_MAX}"),
                    ));
                }
                Some(ColumnReference::Name(_)) if settings.header == Some(false) => {
                    return Err(WorkloadError::setting(
                        "csv.header = false",
                        "cannot be combined with names of columns. Give the columns' numbers, from 1",
                    ));
                }
                Some(ColumnReference::Name(_)) | None => {}
            }
        }
        columns.places.sort_unstable();
        let words = &settings.operation;
        // The meaning of an ambiguous word is the first of write, read, trim, ignore, as in
        // `OperationColumn::parse`.
        for (words, meaning) in [
            (&words.ignore, OperationWord::Ignored),
            (&words.trim, OperationWord::Request(RequestOperation::Trim)),
            (&words.read, OperationWord::Request(RequestOperation::Read)),
            (&words.write, OperationWord::Request(RequestOperation::Write)),
        ] {
            for word in words {
                if let [byte] = word.as_bytes() {
                    columns.short_words[usize::from(*byte)] = Some(meaning);
                }
            }
        }
        columns.begin_file();
        Ok(columns)
    }

    pub(super) fn begin_file(&mut self) {
        let by_name = (0..ROLES).any(|role| matches!(self.settings.column(role), Some(ColumnReference::Name(_))));
        self.at_header = self.settings.header.unwrap_or(by_name);
    }

    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, FieldProblem> {
        if line.is_empty() || line[0] == b'#' && !self.at_header {
            return Ok(None);
        }
        if self.at_header {
            return self.read_header(line);
        }
        let texts = self.pick(line);
        let at = |role: usize, problem| texts[role].ok_or(problem);
        let operation = at(OPERATION, FieldProblem::missing("the operation's column"))?;
        let word = match operation {
            [byte] => self.short_words[usize::from(*byte)],
            _ => self.settings.operation.parse(operation),
        };
        let operation = match word {
            Some(OperationWord::Request(operation)) => operation,
            Some(OperationWord::Ignored) => return Ok(None),
            None => {
                return Err(FieldProblem::new(
                    "the operation",
                    "a known word. Name the words with --columns op:READ/WRITE, or with csv.operation in a workload \
                     file",
                ));
            }
        };
        let amount = |role: usize, unit: AmountUnit, problem| {
            number(at(role, problem)?).and_then(|amount| amount.checked_mul(unit as u64)).ok_or(problem)
        };
        let offset = FieldProblem::new("the offset", "a number");
        let length = FieldProblem::new("the length", "a number");
        let offset = amount(OFFSET, self.settings.offset.unit, offset)?;
        let bytes = amount(LENGTH, self.settings.length.unit, length)?;
        let Some(mut record) = TraceRecord::new(operation, offset, bytes)? else {
            return Ok(None);
        };
        if let Some(time) = &self.settings.time {
            let problem = FieldProblem::new("the time", "a number");
            record.time_ns = decimal(at(TIME, problem)?, time.unit as u64).ok_or(problem)?;
        }
        if self.settings.volume.is_some() {
            let volume = at(VOLUME, FieldProblem::missing("the volume's column"))?;
            record.volume = self.volumes.number(volume)?;
        }
        if self.settings.process.is_some() {
            let process = at(PROCESS, FieldProblem::missing("the process's column"))?;
            record.process = self.processes.number(process)?;
        }
        if self.settings.file.is_some() {
            let file = at(FILE, FieldProblem::missing("the file's column"))?;
            record.file = match self.file_by {
                FileIdentity::Name => self.files.number(file)?,
                FileIdentity::Kind => {
                    base::file_kind(file, &mut self.kind);
                    self.files.number(&self.kind)?
                }
            };
        }
        if self.settings.placement.is_some() {
            record.placement = placement(at(PLACEMENT, FieldProblem::missing("the placement's column"))?)?;
        }
        Ok(Some(record))
    }

    /// Returns the texts of the columns that have a role.
    #[inline]
    fn pick<'a>(&self, line: &'a [u8]) -> [Option<&'a [u8]>; ROLES] {
        let mut texts = [None; ROLES];
        let mut places = self.places.iter().peekable();
        self.settings.delimiter.each(line, |column, text| {
            while let Some((_, role)) = places.next_if(|(place, _)| *place == column) {
                texts[*role] = Some(text);
            }
            places.peek().is_some()
        });
        texts
    }

    /// Finds the columns that are given by name.
    fn read_header(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, FieldProblem> {
        for role in 0..ROLES {
            let Some(ColumnReference::Name(name)) = self.settings.column(role) else {
                continue;
            };
            let mut found = None;
            self.settings.delimiter.each(line, |column, text| {
                if text == name.as_bytes() {
                    found = Some(column);
                }
                found.is_none()
            });
            let Some(column) = found else {
                return Err(FieldProblem::whole_file("the first line", "a header with all columns of [workload.csv]"));
            };
            self.places.retain(|(_, other)| *other != role);
            self.places.push((column, role));
        }
        self.places.sort_unstable();
        assert!(self.places.len() <= ROLES, "{} columns have one of {ROLES} roles", self.places.len());
        self.at_header = false;
        Ok(None)
    }
}

/// Meaning of a word in the operation column.
#[derive(Debug, Clone, Copy)]
enum OperationWord {
    Request(RequestOperation),
    Ignored,
}

impl ColumnSettings {
    fn column(&self, role: usize) -> Option<&ColumnReference> {
        match role {
            OFFSET => Some(&self.offset.column),
            LENGTH => Some(&self.length.column),
            OPERATION => Some(&self.operation.column),
            TIME => self.time.as_ref().map(|time| &time.column),
            VOLUME => self.volume.as_ref(),
            PROCESS => self.process.as_ref(),
            PLACEMENT => self.placement.as_ref(),
            FILE => self.file.as_ref(),
            _ => unreachable!("there are {ROLES} roles"),
        }
    }

    /// Highest column number in the settings, from 1.
    pub(super) fn last_number(&self) -> usize {
        let numbers = (0..ROLES).filter_map(|role| match self.column(role) {
            Some(ColumnReference::Number(number)) => Some(*number),
            _ => None,
        });
        numbers.max().unwrap_or(0)
    }
}

impl OperationColumn {
    /// Creates a column with the default words.
    pub(super) fn from_column(column: ColumnReference) -> OperationColumn {
        OperationColumn { column, read: read_words(), write: write_words(), trim: trim_words(), ignore: Vec::new() }
    }

    /// Returns the operation of a word.
    pub(super) fn operation(&self, text: &[u8]) -> Option<RequestOperation> {
        match self.parse(text)? {
            OperationWord::Request(operation) => Some(operation),
            OperationWord::Ignored => None,
        }
    }

    fn parse(&self, text: &[u8]) -> Option<OperationWord> {
        let is_one_of = |words: &[String]| words.iter().any(|word| word.as_bytes() == text);
        if is_one_of(&self.write) {
            Some(OperationWord::Request(RequestOperation::Write))
        } else if is_one_of(&self.read) {
            Some(OperationWord::Request(RequestOperation::Read))
        } else if is_one_of(&self.trim) {
            Some(OperationWord::Request(RequestOperation::Trim))
        } else {
            is_one_of(&self.ignore).then_some(OperationWord::Ignored)
        }
    }
}

impl Delimiter {
    /// All delimiters, most certain first. Text between blanks may be one column of another
    /// delimiter.
    pub(super) const ALL: [Delimiter; 4] = [Delimiter::Comma, Delimiter::Semicolon, Delimiter::Tab, Delimiter::Blanks];

    /// Returns the columns of a line, at most one more than a trace can have.
    pub(super) fn split(self, line: &[u8]) -> Vec<&[u8]> {
        let mut columns = Vec::new();
        self.each(line, |_, text| {
            columns.push(text);
            columns.len() <= COLUMNS_MAX
        });
        columns
    }

    /// Calls `visit` with number and text of each column until it returns false.
    fn each<'a>(self, line: &'a [u8], mut visit: impl FnMut(usize, &'a [u8]) -> bool) {
        let separator = match self {
            Delimiter::Comma => b',',
            Delimiter::Semicolon => b';',
            Delimiter::Tab => b'\t',
            Delimiter::Blanks => {
                let mut fields = super::field::Fields::new(line);
                let mut column = 0;
                while let Some(word) = fields.word()
                    && visit(column, word)
                {
                    column += 1;
                }
                return;
            }
        };
        let mut rest = line;
        let mut column = 0;
        loop {
            let end = rest.iter().position(|byte| *byte == separator);
            if !visit(column, trim(&rest[..end.unwrap_or(rest.len())])) {
                return;
            }
            let Some(end) = end else { return };
            rest = &rest[end + 1..];
            column += 1;
        }
    }
}
