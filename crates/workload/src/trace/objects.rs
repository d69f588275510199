//! Parsers of object traces, which record requests to a cache. Requests are converted to those of a
//! drive that has room for all objects.
//!
//! **oracleGeneral** (libCacheSim) has little-endian records of 24 bytes. Fields are seconds (32
//! bits), object (64), bytes (32), and the number of the object's next request (signed 64, with -1
//! or the maximum for never). The source is libCacheSim's reader, `oracleGeneralBin.h`. The first
//! request of an object writes it and later requests read it. After the last request it is
//! deallocated. A request with a changed size rewrites the object. An object occupies whole units
//! of 4 KiB. It takes the most recently freed space of the same size or new space, so the drive
//! only holds live objects. Memory is 40 bytes for each live object.
//!
//! **Mooncake** has lines of JSON, each a request to a language model. `timestamp` is in
//! milliseconds. `hash_ids` lists the blocks of 512 tokens of the input (README of
//! kvcache-ai/Mooncake, FAST '25), as numbers of 64 bits with or without a sign. A known block is
//! read, a new one written. Other fields are not needed. The n-th new block lies at `n` times
//! `kv_block_bytes`. In the published traces n is the block's id. No block is evicted. Memory is 20
//! to 40 bytes for each block.
//!
//! A repeated trace writes all its data again, in the same places.

use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::bytes::{u32_at, u64_at};
use super::field::{FieldProblem, SECOND_NS};
use super::input::uncompressed;
use super::record::{OFFSET_BYTES_END, TraceRecord};
use crate::RequestOperation;

/// Unit of an object's space.
const UNIT_BYTES: u64 = 4096;
const MILLISECOND_NS: f64 = 1e6;

#[derive(Debug, Clone, Copy)]
struct ObjectPosition {
    unit: u64,
    bytes: u32,
    /// Pass of the last write.
    pass: u32,
}

/// A record of oracleGeneral, which is a request for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectRequest {
    /// Seconds since the start of the trace.
    pub seconds: u32,
    /// Number of the object.
    pub object: u64,
    /// Size of the object. 0 is no request.
    pub bytes: u32,
    /// True if the object is never requested again.
    pub is_last: bool,
}

impl ObjectRequest {
    /// Bytes of a record.
    pub const RECORD_BYTES: usize = 24;

    /// True if a file's name is typical of this format.
    pub fn is_named_so(name: &str) -> bool {
        let plain_name = uncompressed(name);
        plain_name.ends_with(".oracleGeneral") || plain_name.ends_with(".oracleGeneral.bin")
    }

    /// Parses a complete record.
    ///
    /// # Errors
    /// Fails if the record is invalid, with the problem and its correction.
    pub fn parse(record: &[u8]) -> Result<ObjectRequest, String> {
        ObjectRequest::read(record).map_err(|problem| problem.to_string())
    }

    fn read(record: &[u8]) -> Result<ObjectRequest, FieldProblem> {
        let next = u64_at(record, 16) as i64;
        if next < -1 {
            return Err(FieldProblem::new("the next access", "-1 or the number of a request"));
        }
        Ok(ObjectRequest {
            seconds: u32_at(record, 0),
            object: u64_at(record, 4),
            bytes: u32_at(record, 12),
            is_last: next == -1 || next == i64::MAX,
        })
    }
}

/// Parses oracleGeneral.
#[derive(Debug, Default)]
pub(super) struct OracleGeneral {
    places: FxHashMap<u64, ObjectPosition>,
    /// Freed places by their number of units.
    free: FxHashMap<u64, Vec<u64>>,
    next_unit: u64,
    pass: u32,
}

impl OracleGeneral {
    pub(super) fn begin_pass(&mut self) {
        self.pass += 1;
    }

    /// Converts a record to a request. Further requests go to `then`.
    pub(super) fn parse(
        &mut self,
        record: &[u8],
        then: &mut Vec<TraceRecord>,
    ) -> Result<Option<TraceRecord>, FieldProblem> {
        let ObjectRequest { seconds, object, bytes, is_last } = ObjectRequest::read(record)?;
        if bytes == 0 {
            return Ok(None);
        }
        let time_ns = u64::from(seconds) * SECOND_NS;
        let request = |operation, place: ObjectPosition| {
            let found = TraceRecord::new(operation, place.unit * UNIT_BYTES, place.bytes.into())?;
            Ok(found.map(|found| TraceRecord { time_ns, ..found }))
        };
        let known = self.places.get(&object).copied();
        let (operation, place) = match known {
            Some(known) if known.bytes == bytes && known.pass == self.pass => (RequestOperation::Read, known),
            _ => (RequestOperation::Write, self.place(known, bytes)?),
        };
        if let Some(left) = known.filter(|known| known.unit != place.unit) {
            then.extend(request(RequestOperation::Trim, left)?);
        }
        if is_last {
            then.extend(request(RequestOperation::Trim, place)?);
            self.places.remove(&object);
            self.release(place);
        } else {
            self.places.insert(object, place);
        }
        request(operation, place)
    }

    /// Chooses the place of an object. An object of unchanged size in units stays.
    fn place(&mut self, known: Option<ObjectPosition>, bytes: u32) -> Result<ObjectPosition, FieldProblem> {
        let units = u64::from(bytes).div_ceil(UNIT_BYTES);
        if let Some(known) = known {
            if u64::from(known.bytes).div_ceil(UNIT_BYTES) == units {
                let pass = self.pass;
                return Ok(ObjectPosition { bytes, pass, ..known });
            }
            self.release(known);
        }
        let free = self.free.get_mut(&units).and_then(Vec::pop);
        let unit = free.unwrap_or(self.next_unit);
        if free.is_none() {
            self.next_unit += units;
        }
        if self.next_unit > OFFSET_BYTES_END / UNIT_BYTES {
            return Err(FieldProblem::new("the total size of all objects", "below 2^59 bytes"));
        }
        let pass = self.pass;
        Ok(ObjectPosition { unit, bytes, pass })
    }

    fn release(&mut self, place: ObjectPosition) {
        let units = u64::from(place.bytes).div_ceil(UNIT_BYTES);
        assert!(
            place.unit + units <= self.next_unit,
            "{units} units at {} are freed, and {} were given",
            place.unit,
            self.next_unit
        );
        self.free.entry(units).or_default().push(place.unit);
    }
}

/// Parses Mooncake's lines.
pub(super) struct MooncakeParser {
    block_bytes: u32,
    /// Blocks by their hashes.
    blocks: FxHashMap<u64, TokenBlock>,
    pass: u32,
}

struct TokenBlock {
    /// Number of blocks before this one, which gives its position.
    number: u32,
    /// Pass of the last write.
    pass: u32,
}

/// A request of a trace in Mooncake's format.
#[derive(Debug, Clone, Deserialize)]
pub struct MooncakeRequest {
    /// Milliseconds since the start of the trace, at least 0 and finite.
    timestamp: f64,
    /// Blocks of the input, in order. Equal numbers are equal prefixes.
    #[serde(deserialize_with = "hashes")]
    pub hash_ids: Vec<u64>,
}

/// Hashes of 64 bits, with or without a sign.
fn hashes<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    let unsigned = |hash: i128| match (u64::try_from(hash), i64::try_from(hash)) {
        (Ok(hash), _) => Ok(hash),
        (_, Ok(hash)) => Ok(hash.cast_unsigned()),
        _ => Err(serde::de::Error::custom("a hash of more than 64 bits")),
    };
    Vec::<i128>::deserialize(from)?.into_iter().map(unsigned).collect()
}

impl MooncakeRequest {
    /// Parses a line. Returns `None` for an empty line.
    ///
    /// # Errors
    /// Fails if the line is invalid, with the problem and its correction.
    pub fn parse(line: &[u8]) -> Result<Option<MooncakeRequest>, String> {
        MooncakeRequest::read(line).map_err(|problem| problem.to_string())
    }

    fn read(line: &[u8]) -> Result<Option<MooncakeRequest>, FieldProblem> {
        if line.is_empty() {
            return Ok(None);
        }
        let request: MooncakeRequest = serde_json::from_slice(line).map_err(|_| {
            FieldProblem::new(
                "the line",
                "JSON with a timestamp (milliseconds) and hash_ids (a list of 64-bit integers)",
            )
        })?;
        if !(0.0..1e13).contains(&request.timestamp) {
            return Err(FieldProblem::new("the timestamp", "a number of milliseconds"));
        }
        Ok(Some(request))
    }

    /// Time of the request, nanoseconds since the start of the trace.
    pub fn time_ns(&self) -> u64 {
        (self.timestamp * MILLISECOND_NS) as u64
    }
}

impl MooncakeParser {
    pub(super) fn new(block_bytes: u32) -> MooncakeParser {
        MooncakeParser { block_bytes, blocks: FxHashMap::default(), pass: 0 }
    }

    pub(super) fn begin_pass(&mut self) {
        self.pass += 1;
    }

    /// Converts a line to the requests of its blocks, which go to `then`.
    pub(super) fn parse(
        &mut self,
        line: &[u8],
        then: &mut Vec<TraceRecord>,
    ) -> Result<Option<TraceRecord>, FieldProblem> {
        let Some(request) = MooncakeRequest::read(line)? else {
            return Ok(None);
        };
        let time_ns = request.time_ns();
        for hash in request.hash_ids {
            let number = u32::try_from(self.blocks.len())
                .map_err(|_| FieldProblem::new("the number of different hash ids", "at most 2^32"))?;
            let block = self.blocks.entry(hash).or_insert(TokenBlock { number, pass: u32::MAX });
            let is_written = std::mem::replace(&mut block.pass, self.pass) == self.pass;
            let operation = if is_written { RequestOperation::Read } else { RequestOperation::Write };
            let offset_bytes = u64::from(block.number) * u64::from(self.block_bytes);
            let block = TraceRecord::new(operation, offset_bytes, self.block_bytes.into())?;
            then.extend(block.map(|block| TraceRecord { time_ns, ..block }));
        }
        Ok(None)
    }
}

/// True if a line is in Mooncake's format.
pub(super) fn is_mooncake(line: &[u8]) -> bool {
    line.starts_with(b"{") && serde_json::from_slice::<MooncakeRequest>(line).is_ok()
}
