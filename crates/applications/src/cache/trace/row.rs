//! Row parsers of the cache trace formats.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::super::{CacheOperation, OperationKind};
use super::CacheTraceFormat;
use workload::random::mix;
use workload::trace::ObjectRequest;

/// Maximum key length, bytes (KVReplayGenerator.h). Longer keys are cut.
const KEY_BYTES_MAX: u64 = 256;
/// Piece of a CDN object, bytes (cachelib/cachebench/util/Config.h).
const PIECE_BYTES: u64 = 64 << 10;
/// Minimum number of fields in a CDN row.
const CDN_FIELDS: usize = 10;
/// Number of fields in a Twitter row.
const TWITTER_FIELDS: usize = 7;
/// Maximum number of operations per row.
const OPERATIONS_MAX: u64 = 65_535;

#[derive(Debug, Clone, Copy, Default)]
pub(super) enum CacheTraceRow {
    #[default]
    Empty,
    Repeated(CacheOperation, u32),
    /// Gets of an object or of a range of it.
    Object(CdnObject),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CdnObject {
    key: u64,
    key_bytes: u64,
    header_bytes: u64,
    body_bytes: u64,
    /// First requested piece of the body.
    first: u64,
    pieces: u64,
}

impl CacheTraceRow {
    pub(super) fn operations(&self) -> u32 {
        match self {
            CacheTraceRow::Empty => 0,
            CacheTraceRow::Repeated(_, times) => *times,
            CacheTraceRow::Object(object) => object.pieces as u32 + 1,
        }
    }

    pub(super) fn operation(&self, number: u32) -> CacheOperation {
        match self {
            CacheTraceRow::Empty => panic!("an empty row has no operations"),
            CacheTraceRow::Repeated(operation, _) => *operation,
            CacheTraceRow::Object(object) => object.operation(u64::from(number)),
        }
    }
}

impl CdnObject {
    /// Operation 0 gets the header, later ones get the pieces. A small object is one item with its
    /// header.
    fn operation(&self, number: u64) -> CacheOperation {
        let (key, bytes) = match number {
            0 if self.pieces == 0 => (self.key, self.header_bytes + self.body_bytes),
            0 => (self.key, self.header_bytes),
            number => {
                let piece = self.first + number - 1;
                (mix(self.key ^ (piece + 1)), PIECE_BYTES.min(self.body_bytes - piece * PIECE_BYTES))
            }
        };
        CacheOperation { kind: OperationKind::Get, key, bytes: Some((self.key_bytes + bytes) as u32) }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct KeyValueColumns {
    key: usize,
    op: usize,
    size: usize,
    op_count: Option<usize>,
    key_size: Option<usize>,
}

pub(super) enum RowParser {
    Kvcache { columns: KeyValueColumns, header: bool },
    Cdn { header: bool },
    Twitter,
    OracleGeneral,
}

type Fields<'a> = Vec<&'a [u8]>;

fn split(line: &[u8]) -> Fields<'_> {
    line.split(|byte| *byte == b',').collect()
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).into_owned()
}

fn is_number(field: &[u8]) -> bool {
    !field.is_empty() && field.iter().all(u8::is_ascii_digit)
}

impl RowParser {
    /// Format of a file with this first line, if the line fits no other format.
    pub(super) fn recognize(first: &[u8]) -> Option<CacheTraceFormat> {
        /// Start of the header of CacheLib's CDN traces.
        const CDN_HEADER: &[u8] = b"timestamp,cacheKey,";
        match RowParser::new(CacheTraceFormat::Auto, first).ok()? {
            RowParser::Twitter => Some(CacheTraceFormat::Twitter),
            RowParser::Kvcache { .. } => Some(CacheTraceFormat::Kvcache),
            RowParser::Cdn { header: true } => first.starts_with(CDN_HEADER).then_some(CacheTraceFormat::Cdn),
            RowParser::Cdn { header: false } => {
                let fields = split(first);
                // A CDN row has a number as its kind of request. Other traces have words.
                let is_row = is_number(fields[2]) && cdn_row(&fields).is_ok();
                is_row.then_some(CacheTraceFormat::Cdn)
            }
            RowParser::OracleGeneral => None,
        }
    }

    /// Creates a parser for a file with this first line.
    pub(super) fn new(format: CacheTraceFormat, first: &[u8]) -> Result<RowParser, String> {
        let fields = split(first);
        let twitter = fields.len() == TWITTER_FIELDS && is_number(fields[0]) && kind_of(fields[5]).is_some();
        let named = |name: &str| fields.iter().position(|field| *field == name.as_bytes());
        let header = named("key").zip(named("op"));
        let unnamed = fields.len() >= 3 && kind_of(fields[1]).is_some() && is_number(fields[2]);
        let cdn = fields.len() >= CDN_FIELDS && header.is_none();
        match format {
            CacheTraceFormat::OracleGeneral => Ok(RowParser::OracleGeneral),
            CacheTraceFormat::Twitter => Ok(RowParser::Twitter),
            CacheTraceFormat::Auto if twitter => Ok(RowParser::Twitter),
            CacheTraceFormat::Cdn => Ok(RowParser::Cdn { header: !is_number(fields[0]) }),
            CacheTraceFormat::Auto if cdn => Ok(RowParser::Cdn { header: !is_number(fields[0]) }),
            CacheTraceFormat::Kvcache | CacheTraceFormat::Auto => {
                let columns = match header {
                    Some((key, op)) => KeyValueColumns {
                        key,
                        op,
                        size: named("size").ok_or("the header has no column \"size\"")?,
                        op_count: named("op_count"),
                        key_size: named("key_size"),
                    },
                    None if unnamed => KeyValueColumns {
                        key: 0,
                        op: 1,
                        size: 2,
                        op_count: (fields.len() > 3).then_some(3),
                        key_size: (fields.len() > 4).then_some(4),
                    },
                    None => {
                        return Err(format!(
                            "the file is not a cache trace, because it begins with {:?}. A cache trace has a header \
                             with key, op and size, or rows of CacheLib's or Twitter's traces",
                            text(&first[..first.len().min(80)])
                        ));
                    }
                };
                Ok(RowParser::Kvcache { columns, header: header.is_some() })
            }
        }
    }

    /// Bytes of a record in a binary format.
    pub(super) fn record_bytes(&self) -> Option<usize> {
        matches!(self, RowParser::OracleGeneral).then_some(ObjectRequest::RECORD_BYTES)
    }

    /// Parses a line or record. Returns `None` if it is empty or the header.
    pub(super) fn row(&mut self, line: &[u8]) -> Result<Option<CacheTraceRow>, String> {
        if line.is_empty() {
            return Ok(None);
        }
        if let RowParser::Kvcache { header, .. } | RowParser::Cdn { header } = self
            && std::mem::take(header)
        {
            return Ok(None);
        }
        match self {
            RowParser::Kvcache { columns, .. } => kvcache_row(*columns, &split(line)).map(Some),
            RowParser::Cdn { .. } => cdn_row(&split(line)).map(Some),
            RowParser::Twitter => twitter_row(&split(line)).map(Some),
            RowParser::OracleGeneral => object_row(line),
        }
    }
}

fn field<'a>(fields: &Fields<'a>, at: usize, name: &str) -> Result<&'a [u8], String> {
    let found = fields.get(at).copied();
    found.ok_or_else(|| format!("the line has {} fields, and {name} is missing", fields.len()))
}

fn number(fields: &Fields<'_>, at: usize, name: &str) -> Result<u64, String> {
    let found = field(fields, at, name)?;
    let parsed = std::str::from_utf8(found).ok().and_then(|digits| digits.parse().ok());
    parsed.ok_or_else(|| format!("{name} {:?} is not a number", text(found)))
}

/// Kind of an operation. All writes are sets.
fn kind_of(name: &[u8]) -> Option<OperationKind> {
    match name {
        b"GET" | b"GET_LEASE" | b"get" | b"gets" => Some(OperationKind::Get),
        b"SET" | b"SET_LEASE" => Some(OperationKind::Set),
        b"set" | b"add" | b"replace" | b"cas" | b"append" | b"prepend" | b"incr" | b"decr" => Some(OperationKind::Set),
        b"DELETE" | b"delete" => Some(OperationKind::Delete),
        _ => None,
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    mix(hasher.finish())
}

/// Builds an operation from a key length and a value size. A get without value size asks for an
/// absent key.
fn operation(kind: OperationKind, key: &[u8], key_bytes: u64, value_bytes: u64) -> Result<CacheOperation, String> {
    let key_bytes = key_bytes.max(key.len() as u64).min(KEY_BYTES_MAX);
    let bytes = u32::try_from(key_bytes + value_bytes).ok().filter(|bytes| *bytes <= 1 << 30);
    let bytes = bytes.ok_or_else(|| format!("a value of {value_bytes} bytes is larger than 1 GiB"))?;
    let sized = kind == OperationKind::Set || (kind == OperationKind::Get && value_bytes > 0);
    Ok(CacheOperation { kind, key: hash(key), bytes: sized.then_some(bytes) })
}

fn kvcache_row(columns: KeyValueColumns, fields: &Fields<'_>) -> Result<CacheTraceRow, String> {
    let name = field(fields, columns.op, "op")?;
    let kind =
        kind_of(name).ok_or_else(|| format!("op {:?} is not GET, SET, DELETE or one of their leases", text(name)))?;
    let key = field(fields, columns.key, "key")?;
    let optional = |at: Option<usize>, name: &str, default: u64| at.map_or(Ok(default), |at| number(fields, at, name));
    let key_bytes = optional(columns.key_size, "key_size", 0)?;
    let times = optional(columns.op_count, "op_count", 1)?;
    if times > OPERATIONS_MAX {
        return Err(format!("op_count {times} is more than {OPERATIONS_MAX}"));
    }
    let operation = operation(kind, key, key_bytes, number(fields, columns.size, "size")?)?;
    Ok(CacheTraceRow::Repeated(operation, times as u32))
}

fn twitter_row(fields: &Fields<'_>) -> Result<CacheTraceRow, String> {
    let name = field(fields, 5, "operation")?;
    let kind = kind_of(name).ok_or_else(|| format!("operation {:?} is not known", text(name)))?;
    let key = field(fields, 1, "key")?;
    let operation = operation(kind, key, number(fields, 2, "key size")?, number(fields, 3, "value size")?)?;
    Ok(CacheTraceRow::Repeated(operation, 1))
}

/// Parses a record. Returns `None` for an object of size 0.
fn object_row(record: &[u8]) -> Result<Option<CacheTraceRow>, String> {
    let request = ObjectRequest::parse(record)?;
    let operation = CacheOperation { kind: OperationKind::Get, key: mix(request.object), bytes: Some(request.bytes) };
    if request.bytes > 1 << 30 {
        return Err(format!("an object of {} bytes is larger than 1 GiB", request.bytes));
    }
    Ok((request.bytes > 0).then_some(CacheTraceRow::Repeated(operation, 1)))
}

fn cdn_row(fields: &Fields<'_>) -> Result<CacheTraceRow, String> {
    let key = field(fields, 1, "cacheKey")?;
    let body_bytes = number(fields, 3, "objectSize")?;
    let header_bytes = number(fields, 5, "responseHeaderSize")?;
    let response_bytes = number(fields, 4, "responseSize")?.saturating_sub(header_bytes);
    if header_bytes > 1 << 20 {
        return Err(format!("responseHeaderSize {header_bytes} is larger than 1 MiB"));
    }
    let mut object = CdnObject {
        key: hash(key),
        key_bytes: (key.len() as u64).min(KEY_BYTES_MAX),
        header_bytes,
        body_bytes,
        first: 0,
        pieces: 0,
    };
    if body_bytes > PIECE_BYTES && response_bytes > 0 {
        // -1 means no range. Then a partial response covers the start of the object.
        let bound = |at: usize, name: &str| match field(fields, at, name)? {
            [b'-', ..] => Ok(None),
            _ => number(fields, at, name).map(|byte| Some(byte.min(body_bytes - 1))),
        };
        let start = bound(6, "rangeStart")?.unwrap_or(0);
        let end = bound(7, "rangeEnd")?.unwrap_or(body_bytes - 1);
        let end = end.min(start.saturating_add(response_bytes - 1));
        if end < start {
            return Err(format!("the range {start} to {end} is empty"));
        }
        object.first = start / PIECE_BYTES;
        object.pieces = end / PIECE_BYTES - object.first + 1;
        if object.pieces > OPERATIONS_MAX {
            return Err(format!("a range of {} pieces is longer than {OPERATIONS_MAX} pieces", object.pieces));
        }
    }
    Ok(CacheTraceRow::Object(object))
}
