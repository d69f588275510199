//! Columns of a CSV written in one line, and guesses of the columns of an undescribed file.
//!
//! ```text
//! "time:us,op,offset:sectors,bytes" -> ColumnList -> ColumnSettings
//!   (the first lines of the file give delimiter and header)
//! first lines of a file             -> guess      -> an error that proposes such a list
//! ```
//!
//! A guess only appears in a question to the user and is never used. A wrong unit would give wrong
//! results that look right.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::columns::{
    AmountColumn, AmountUnit, COLUMNS_MAX, ColumnReference, ColumnSettings, Delimiter, OperationColumn, TimeColumn,
    TimeUnit,
};
use super::field::{SECOND_NS, SECTOR_BYTES, decimal, number};

/// Lines of a file that a guess examines.
const GUESS_LINES: usize = 200;
/// Largest plausible request in a guess, bytes.
const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// Unit of a time if only its digits matter.
const DIGITS: u64 = 1;
/// Words for an unused column.
const SKIPPED: [&str; 2] = ["-", "_"];

/// The columns of a CSV in order, such as `time:us,op,offset:sectors,bytes`. Further columns of the
/// file are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ColumnList {
    text: String,
    /// Columns without delimiter and header, which depend on the file.
    columns: ColumnSettings,
}

const _: () = assert!(Role::Placement as usize + 1 == Role::ALL.len(), "each role has a place of its own");
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Time,
    Operation,
    Offset,
    Length,
    Volume,
    Process,
    File,
    Placement,
}

impl Role {
    /// All roles, each with its word of a list, followed by synonyms.
    const ALL: [(Role, &[&str]); 8] = [
        (Role::Time, &["time", "timestamp"]),
        (Role::Operation, &["op", "operation"]),
        (Role::Offset, &["offset", "address"]),
        (Role::Length, &["bytes", "length", "size"]),
        (Role::Volume, &["volume", "disk"]),
        (Role::Process, &["process", "pid"]),
        (Role::File, &["file"]),
        (Role::Placement, &["placement"]),
    ];

    /// Word of a list.
    fn word(self) -> &'static str {
        Role::ALL[self as usize].1[0]
    }

    fn parse(word: &str) -> Result<Role, String> {
        let found = Role::ALL.into_iter().find(|(_, words)| words.contains(&word));
        found.map(|(role, _)| role).ok_or_else(|| {
            let known = Role::ALL.map(|(role, _)| role.word());
            format!(
                "{word:?} is not a column{}. The columns are {}, and - for a column to skip",
                base::hint(word, known),
                known.join(", ")
            )
        })
    }

    /// Finds the role by parts of a header's name, in lower case.
    fn from_header(name: &str) -> Option<Role> {
        let name = name.to_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        match name.as_str() {
            "op" | "rw" | "type" | "io_type" | "iotype" | "opcode" => Some(Role::Operation),
            "ts" | "t" => Some(Role::Time),
            _ if has(&["operation"]) => Some(Role::Operation),
            _ if has(&["offset", "lba", "address", "sector"]) => Some(Role::Offset),
            _ if has(&["size", "length", "bytes"]) => Some(Role::Length),
            _ if has(&["latency", "response", "duration"]) => None,
            _ if has(&["time"]) => Some(Role::Time),
            _ => None,
        }
    }
}

impl FromStr for ColumnList {
    type Err = String;

    fn from_str(text: &str) -> Result<ColumnList, String> {
        let mut found: [Option<(usize, &str)>; Role::ALL.len()] = [None; Role::ALL.len()];
        for (index, column) in text.split(',').map(str::trim).enumerate() {
            if index >= COLUMNS_MAX {
                return Err(format!("the list has more than {COLUMNS_MAX} columns"));
            }
            if SKIPPED.contains(&column) {
                continue;
            }
            let (word, unit) = column.split_once(':').unwrap_or((column, ""));
            let role = Role::parse(word)?;
            let place = &mut found[role as usize];
            if place.is_some() {
                return Err(format!("the column {} is listed twice", role.word()));
            }
            if !unit.is_empty() && !matches!(role, Role::Time | Role::Operation | Role::Offset | Role::Length) {
                return Err(format!("{column:?} is not valid, because {} has no unit. Remove {unit:?}", role.word()));
            }
            *place = Some((index + 1, unit));
        }
        let needed = |role: Role| {
            found[role as usize].ok_or_else(|| {
                let name = role.word();
                format!(
                    "the list has no column {name}. List time, op, offset and bytes in the file's order, for \
                         example time,op,offset,bytes"
                )
            })
        };
        let amount = |role: Role| {
            let (column, unit) = needed(role)?;
            Ok::<_, String>(AmountColumn { column: ColumnReference::Number(column), unit: amount_unit(unit)? })
        };
        let optional = |role: Role| found[role as usize].map(|(column, _)| ColumnReference::Number(column));
        let (operation, words) = needed(Role::Operation)?;
        let time = found[Role::Time as usize].map(|(column, unit)| {
            Ok::<_, String>(TimeColumn { column: ColumnReference::Number(column), unit: time_unit(unit)? })
        });
        let columns = ColumnSettings {
            delimiter: Delimiter::Comma,
            header: None,
            offset: amount(Role::Offset)?,
            length: amount(Role::Length)?,
            operation: operation_column(operation, words)?,
            time: time.transpose()?,
            volume: optional(Role::Volume),
            process: optional(Role::Process),
            file: optional(Role::File),
            placement: optional(Role::Placement),
        };
        Ok(ColumnList { text: text.to_string(), columns })
    }
}

impl TryFrom<String> for ColumnList {
    type Error = String;

    fn try_from(text: String) -> Result<ColumnList, String> {
        text.parse()
    }
}

impl From<ColumnList> for String {
    fn from(list: ColumnList) -> String {
        list.text
    }
}

impl fmt::Display for ColumnList {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl ColumnList {
    /// Column settings of a file that begins with `head`, which determines the delimiter and
    /// header.
    pub(super) fn settings(&self, head: &[u8]) -> ColumnSettings {
        let first = lines_of(head).next().unwrap_or_default();
        let ColumnReference::Number(offset) = self.columns.offset.column else {
            unreachable!("a list numbers its columns");
        };
        assert!(offset > 0, "columns are numbered from 1, and the offset is in column 0");
        let last = self.columns.last_number();
        let has_all = |delimiter: &Delimiter| delimiter.split(first).len() >= last;
        let delimiter = Delimiter::ALL.into_iter().find(has_all).unwrap_or_default();
        let is_name = |text: &&[u8]| number(text).is_none();
        ColumnSettings {
            delimiter,
            header: Some(delimiter.split(first).get(offset - 1).is_some_and(is_name)),
            ..self.columns.clone()
        }
    }
}

fn amount_unit(text: &str) -> Result<AmountUnit, String> {
    match text {
        "" | "bytes" | "b" => Ok(AmountUnit::Bytes),
        "sectors" => Ok(AmountUnit::Sectors),
        "kib" => Ok(AmountUnit::Kib),
        "pages" => Ok(AmountUnit::Pages),
        _ => Err(format!("{text:?} is not a unit of size. Use bytes, sectors (512 bytes), kib or pages (4096 bytes)")),
    }
}

fn time_unit(text: &str) -> Result<TimeUnit, String> {
    match text {
        "" | "s" => Ok(TimeUnit::Seconds),
        "ms" => Ok(TimeUnit::Milliseconds),
        "us" => Ok(TimeUnit::Microseconds),
        "100ns" => Ok(TimeUnit::Filetime),
        "ns" => Ok(TimeUnit::Nanoseconds),
        _ => Err(format!("{text:?} is not a unit of time. Use s, ms, us, 100ns or ns")),
    }
}

/// Parses the operation column. It is `op`, or `op:0/1` with the words for a read, a write and
/// optionally a trim.
fn operation_column(column: usize, words: &str) -> Result<OperationColumn, String> {
    let operations = OperationColumn::from_column(ColumnReference::Number(column));
    if words.is_empty() {
        return Ok(operations);
    }
    let own: Vec<String> = words.split('/').map(str::to_string).collect();
    let (read, write, trim) = match &own[..] {
        [read, write] => (read, write, None),
        [read, write, trim] => (read, write, Some(trim)),
        _ => {
            return Err(format!("op:{words} must give the words for a read and a write, for example op:0/1"));
        }
    };
    if own.iter().any(String::is_empty) || own.iter().collect::<BTreeSet<_>>().len() < own.len() {
        return Err(format!("op:{words} must give a different word for each operation, for example op:0/1"));
    }
    Ok(OperationColumn {
        read: vec![read.clone()],
        write: vec![write.clone()],
        trim: trim.cloned().into_iter().collect(),
        ..operations
    })
}

/// Lines that are neither comments nor empty.
fn lines_of(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !matches!(line.first(), None | Some(b'#')))
}

/// Builds a question about the columns of a file that begins with `head`, with the list that
/// answers it. Returns `None` if no columns are recognized.
pub(super) fn question(head: &[u8]) -> Option<String> {
    let whole = head.iter().rposition(|byte| *byte == b'\n').map_or(head, |end| &head[..end]);
    let lines: Vec<&[u8]> = lines_of(whole).take(GUESS_LINES).collect();
    let rows = |delimiter: Delimiter| {
        let rows: Vec<Vec<&[u8]>> = lines.iter().map(|line| delimiter.split(line)).collect();
        let columns = rows.first()?.len();
        let is_even = (3..=COLUMNS_MAX).contains(&columns) && rows.iter().all(|row| row.len() == columns);
        is_even.then_some(rows)
    };
    let mut rows = Delimiter::ALL.into_iter().find_map(rows)?;
    let is_number = |text: &[u8]| decimal(text, DIGITS).is_some();
    let header = (!rows[0].iter().any(|text| is_number(text))).then(|| rows.remove(0));
    let columns = columns_of(&rows, header.as_deref())?;
    Guess::new(&columns).map(|guess| guess.to_string())
}

/// Contents of a column in the examined lines.
struct ColumnContents<'a> {
    name: Option<Role>,
    texts: Vec<&'a [u8]>,
    /// Whole numbers, if all texts are numbers.
    numbers: Option<Vec<u64>>,
}

fn columns_of<'a>(rows: &[Vec<&'a [u8]>], header: Option<&[&[u8]]>) -> Option<Vec<ColumnContents<'a>>> {
    let count = rows.first()?.len();
    let column = |index: usize| {
        let texts: Vec<&[u8]> = rows.iter().map(|row| row[index]).collect();
        let name = header.and_then(|names| Role::from_header(std::str::from_utf8(names[index]).ok()?));
        let numbers = texts.iter().map(|text| number(text)).collect();
        ColumnContents { name, texts, numbers }
    };
    Some((0..count).map(column).collect())
}

impl ColumnContents<'_> {
    fn max(&self) -> Option<u64> {
        self.numbers.as_ref()?.iter().max().copied()
    }

    fn is_of_sectors(&self) -> bool {
        let whole = |number: &u64| number.is_multiple_of(SECTOR_BYTES);
        self.numbers.as_ref().is_some_and(|numbers| numbers.iter().all(whole))
    }

    /// Words for the operations in list form, if this is a column of operations.
    fn operations(&self) -> Option<String> {
        let words: BTreeSet<&[u8]> = self.texts.iter().copied().collect();
        let usual = OperationColumn::from_column(ColumnReference::Number(1));
        if words.iter().all(|word| usual.operation(word).is_some()) {
            return Some("op".to_string());
        }
        (words == BTreeSet::from([&b"0"[..], b"1"])).then(|| "op:0/1".to_string())
    }

    /// Unit of the time, if this is a column of times. Its values ascend, or its name says so.
    fn time_unit(&self) -> Option<&'static str> {
        // Nine digits of the fraction are enough to detect ascending values.
        let times: Option<Vec<u64>> = self.texts.iter().map(|text| decimal(text, SECOND_NS)).collect();
        // Longer values are whole numbers.
        let times = times.or_else(|| self.numbers.clone())?;
        let rises = times.is_sorted() && times.first() < times.last();
        if !rises && self.name != Some(Role::Time) {
            return None;
        }
        // Seconds since 1970 have 10 digits, and Windows times 18.
        Some(match self.numbers.as_ref().and_then(|numbers| numbers.first().copied()) {
            None | Some(0..100_000_000_000) => "s",
            Some(100_000_000_000..100_000_000_000_000) => "ms",
            Some(100_000_000_000_000..100_000_000_000_000_000) => "us",
            Some(100_000_000_000_000_000..1_000_000_000_000_000_000) => "100ns",
            Some(_) => "ns",
        })
    }
}

/// Guessed roles of the columns, as a list and in words.
struct Guess {
    list: Vec<String>,
    words: Vec<String>,
}

impl Guess {
    fn new(columns: &[ColumnContents<'_>]) -> Option<Guess> {
        let all = || 0..columns.len();
        let named = |role: Role| all().find(|&index| columns[index].name == Some(role));
        let operation = all().find(|&index| columns[index].operations().is_some())?;
        let is_other = |index: usize| matches!(columns[index].name, Some(Role::Offset | Role::Length));
        let is_time = |&index: &usize| index != operation && !is_other(index) && columns[index].time_unit().is_some();
        let time = named(Role::Time).filter(is_time).or_else(|| all().find(is_time));
        let is_free = |index: &usize| *index != operation && Some(*index) != time && columns[*index].max() > Some(0);
        let is_length = |index: &usize| {
            is_free(index)
                && columns[*index].max() <= Some(REQUEST_BYTES_MAX)
                && columns[*index].name != Some(Role::Offset)
        };
        let offset = named(Role::Offset).filter(is_free);
        // The largest numbers are addresses.
        let offset = offset.or_else(|| all().filter(is_free).max_by_key(|&index| columns[index].max()))?;
        let is_length = |index: &usize| *index != offset && is_length(index);
        let length = named(Role::Length).filter(is_length);
        let length = length.or_else(|| all().find(|index| is_length(index) && columns[*index].is_of_sectors()));
        let length = length.or_else(|| all().find(is_length))?;
        assert!(
            offset != length && offset != operation && length != operation,
            "columns {operation}, {offset} and {length} are not three"
        );
        let is_in_sectors = !columns[length].is_of_sectors();
        let unit = if is_in_sectors { ":sectors" } else { "" };
        let unit_words = if is_in_sectors { "sectors of 512 bytes" } else { "bytes" };
        let last = [Some(operation), Some(offset), Some(length), time].into_iter().flatten().max()?;
        let mut guess = Guess { list: Vec::new(), words: Vec::new() };
        for (index, column) in columns.iter().enumerate().take(last + 1) {
            let (entry, words) = match index {
                _ if index == operation => {
                    let entry = column.operations().expect("it is one of operations");
                    let words = if entry == "op" { "the operation" } else { "the operation (0 reads, 1 writes)" };
                    (entry, words.to_string())
                }
                _ if index == offset => (format!("offset{unit}"), format!("the offset in {unit_words}")),
                _ if index == length => (format!("bytes{unit}"), format!("the size in {unit_words}")),
                _ if Some(index) == time => {
                    let unit = column.time_unit().expect("it is one of times");
                    (format!("time:{unit}"), format!("the time in {unit}"))
                }
                _ => {
                    guess.list.push(SKIPPED[0].to_string());
                    continue;
                }
            };
            guess.list.push(entry);
            guess.words.push(format!("column {} {words}", index + 1));
        }
        Some(guess)
    }
}

impl fmt::Display for Guess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (last, first) = self.words.split_last().expect("an operation, an offset and a size");
        write!(out, "Is {} and {last}? Then run it again with --columns {}", first.join(", "), self.list.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestOperation;

    fn list(text: &str) -> ColumnSettings {
        text.parse::<ColumnList>().expect("a list").columns
    }

    #[test]
    fn a_list_is_the_table_of_columns_in_a_line() {
        let columns = list("-,time:us,op:0/1,offset:sectors,bytes:kib,volume");
        assert_eq!(columns.offset.column, ColumnReference::Number(4));
        assert_eq!(columns.offset.unit, AmountUnit::Sectors);
        assert_eq!(columns.length.unit, AmountUnit::Kib);
        assert_eq!(columns.time.expect("a time").unit, TimeUnit::Microseconds);
        assert_eq!(columns.operation.operation(b"1"), Some(RequestOperation::Write));
        assert_eq!(columns.operation.operation(b"W"), None);
        assert_eq!(columns.volume, Some(ColumnReference::Number(6)));
        assert_eq!(list("op,offset,bytes").operation.operation(b"W"), Some(RequestOperation::Write));
    }

    #[test]
    fn a_wrong_list_is_a_sentence() {
        for (text, words) in [
            ("time,op,offset", "has no column bytes"),
            ("time,op,ofset,bytes", "did you mean offset?"),
            ("op,offset,bytes,bytes", "bytes is listed twice"),
            ("op,offset:blocks,bytes", "sectors (512 bytes)"),
            ("time:min,op,offset,bytes", "Use s, ms, us"),
            ("op:1/1,offset,bytes", "a different word"),
            ("op:1,offset,bytes", "for example op:0/1"),
            ("op,offset,bytes,volume:x", "has no unit"),
            ("", "is not a column"),
        ] {
            let error = text.parse::<ColumnList>().expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn delimiter_and_header_are_those_of_the_file() {
        let list: ColumnList = "time,op,offset,bytes".parse().expect("a list");
        for (head, delimiter, header) in [
            (&b"1,W,4096,8192\n"[..], Delimiter::Comma, false),
            (b"# a comment\nt;rw;at;length\n1;W;0;512\n", Delimiter::Semicolon, true),
            (b"1\tW\t0\t512", Delimiter::Tab, false),
            (b"  1  W 0   512", Delimiter::Blanks, false),
        ] {
            let settings = list.settings(head);
            assert_eq!((settings.delimiter, settings.header), (delimiter, Some(header)));
        }
    }

    #[test]
    fn a_guess_is_put_as_a_question() {
        let ask = |text: &str| question(text.as_bytes());
        assert_eq!(
            ask("0.1,host,W,4096,8192\n0.2,host,R,1048576,4096\n").as_deref(),
            Some(
                "Is column 1 the time in s, column 3 the operation, column 4 the offset in bytes and column 5 the \
                 size in bytes? Then run it again with --columns time:s,-,op,offset,bytes"
            )
        );
        let named = ask("size;lba;rw;ts\n8;100000;1;1600000000000\n16;7;0;1600000000500\n").expect("a question");
        assert!(named.ends_with("--columns bytes:sectors,offset:sectors,op:0/1,time:ms"), "{named}");
        for text in ["", "a,b,c\n", "1,2,3\n4,5,6\n", "0,key,10,200,7,set,300\n"] {
            assert_eq!(ask(text), None, "{text:?}");
        }
    }
}
