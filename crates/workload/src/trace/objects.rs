//! Traces of objects, not of blocks: what a cache is asked for, as what it does to a drive that has room for all.
//!
//! **oracleGeneral** (libCacheSim): records of 24 bytes, little-endian: seconds (32 bits), object (64), bytes (32),
//! number of the request in which it is asked for again (signed 64; -1 or the largest number: never). From
//! libCacheSim's reader, `oracleGeneralBin.h`. The first request of an object writes it, later ones read it, and behind
//! the last one it is deallocated. A request with another size than the one before writes the object anew. An object
//! has a place of whole units of 4 KiB, the one of the same size that became free last, or the next new one, so that
//! the drive holds what is alive. Memory: 40 bytes for each object that is alive.
//!
//! **Mooncake**: lines of JSON, a request to a language model each: `timestamp` in milliseconds and `hash_ids`, the
//! blocks of 512 tokens of its input (README of kvcache-ai/Mooncake, FAST '25), by numbers of 64 bits with or without a
//! sign. A block that was seen before is read, a new one written; other fields are not needed. The n-th new block lies at
//! `n` times `kv_block_bytes`, which in the published traces is its id. Nothing is evicted. Memory: 20 to 40 bytes for each
//! block.
//!
//! A trace that begins again writes everything again, in the same places.

use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::bytes::{u32_at, u64_at};
use super::field::{Problem, SECOND_NS};
use super::input::uncompressed;
use super::record::{OFFSET_BYTES_END, Record};
use crate::Operation;

/// Places of objects are of whole units.
const UNIT_BYTES: u64 = 4096;
const MILLISECOND_NS: f64 = 1e6;

/// Where an object is.
#[derive(Debug, Clone, Copy)]
struct Place {
    unit: u64,
    bytes: u32,
    /// The pass in which it was written last.
    pass: u32,
}

/// A record of oracleGeneral: an object that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectRequest {
    /// Seconds since the trace began.
    pub seconds: u32,
    /// The object's number.
    pub object: u64,
    /// Its size; 0 is no request.
    pub bytes: u32,
    /// It is never asked for again.
    pub is_last: bool,
}

impl ObjectRequest {
    /// Bytes of a record.
    pub const RECORD_BYTES: usize = 24;

    /// Whether a file is named as files of this format are.
    pub fn is_named_so(name: &str) -> bool {
        let plain_name = uncompressed(name);
        plain_name.ends_with(".oracleGeneral") || plain_name.ends_with(".oracleGeneral.bin")
    }

    /// Reads a record, which is whole.
    ///
    /// # Errors
    /// It is no such record: what is wrong with it, and what would be right.
    pub fn parse(record: &[u8]) -> Result<ObjectRequest, String> {
        ObjectRequest::read(record).map_err(|problem| problem.to_string())
    }

    fn read(record: &[u8]) -> Result<ObjectRequest, Problem> {
        let next = u64_at(record, 16) as i64;
        if next < -1 {
            return Err(Problem::new("the next access", "-1 or the number of a request"));
        }
        Ok(ObjectRequest {
            seconds: u32_at(record, 0),
            object: u64_at(record, 4),
            bytes: u32_at(record, 12),
            is_last: next == -1 || next == i64::MAX,
        })
    }
}

/// Reads oracleGeneral.
#[derive(Debug, Default)]
pub(super) struct OracleGeneral {
    places: FxHashMap<u64, Place>,
    /// Places that became free, by their units.
    free: FxHashMap<u64, Vec<u64>>,
    next_unit: u64,
    pass: u32,
}

impl OracleGeneral {
    pub(super) fn begin_pass(&mut self) {
        self.pass += 1;
    }

    /// The request of a record; what else happens goes to `then`.
    pub(super) fn parse(&mut self, record: &[u8], then: &mut Vec<Record>) -> Result<Option<Record>, Problem> {
        let ObjectRequest {
            seconds,
            object,
            bytes,
            is_last,
        } = ObjectRequest::read(record)?;
        if bytes == 0 {
            return Ok(None);
        }
        let time_ns = u64::from(seconds) * SECOND_NS;
        let request = |operation, place: Place| {
            let found = Record::new(operation, place.unit * UNIT_BYTES, place.bytes.into())?;
            Ok(found.map(|found| Record { time_ns, ..found }))
        };
        let known = self.places.get(&object).copied();
        let (operation, place) = match known {
            Some(known) if known.bytes == bytes && known.pass == self.pass => (Operation::Read, known),
            _ => (Operation::Write, self.place(known, bytes)?),
        };
        if let Some(left) = known.filter(|known| known.unit != place.unit) {
            then.extend(request(Operation::Trim, left)?);
        }
        if is_last {
            then.extend(request(Operation::Trim, place)?);
            self.places.remove(&object);
            self.release(place);
        } else {
            self.places.insert(object, place);
        }
        request(operation, place)
    }

    /// Where an object of this size is written: where it was, if it fits there exactly.
    fn place(&mut self, known: Option<Place>, bytes: u32) -> Result<Place, Problem> {
        let units = u64::from(bytes).div_ceil(UNIT_BYTES);
        if let Some(known) = known {
            if u64::from(known.bytes).div_ceil(UNIT_BYTES) == units {
                let pass = self.pass;
                return Ok(Place { bytes, pass, ..known });
            }
            self.release(known);
        }
        let free = self.free.get_mut(&units).and_then(Vec::pop);
        let unit = free.unwrap_or(self.next_unit);
        if free.is_none() {
            self.next_unit += units;
        }
        if self.next_unit > OFFSET_BYTES_END / UNIT_BYTES {
            return Err(Problem::new("the size of all objects together", "below 2^59 bytes"));
        }
        let pass = self.pass;
        Ok(Place { unit, bytes, pass })
    }

    fn release(&mut self, place: Place) {
        let units = u64::from(place.bytes).div_ceil(UNIT_BYTES);
        self.free.entry(units).or_default().push(place.unit);
    }
}

/// Reads Mooncake's lines.
#[derive(Debug)]
pub(super) struct Mooncake {
    block_bytes: u32,
    /// By their hashes.
    blocks: FxHashMap<u64, Block>,
    pass: u32,
}

/// A block of tokens.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// How many there were before it: where it is.
    number: u32,
    /// The pass in which it was written last.
    pass: u32,
}

/// A request of a trace in Mooncake's format.
#[derive(Debug, Clone, Deserialize)]
pub struct MooncakeRequest {
    /// Milliseconds since the trace began, at least 0 and finite.
    timestamp: f64,
    /// Blocks of its input, in order: equal numbers are equal prefixes.
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
    /// Reads a line; an empty one is none.
    ///
    /// # Errors
    /// It is no such request: what is wrong with it, and what would be right.
    pub fn parse(line: &[u8]) -> Result<Option<MooncakeRequest>, String> {
        MooncakeRequest::read(line).map_err(|problem| problem.to_string())
    }

    fn read(line: &[u8]) -> Result<Option<MooncakeRequest>, Problem> {
        if line.is_empty() {
            return Ok(None);
        }
        let request: MooncakeRequest = serde_json::from_slice(line).map_err(|_| {
            Problem::new(
                "the line",
                "JSON with timestamp (milliseconds) and hash_ids (a list of whole numbers of 64 bits)",
            )
        })?;
        if !(0.0..1e13).contains(&request.timestamp) {
            return Err(Problem::new("the timestamp", "a number of milliseconds"));
        }
        Ok(Some(request))
    }

    /// When it came, nanoseconds since the trace began.
    pub fn time_ns(&self) -> u64 {
        (self.timestamp * MILLISECOND_NS) as u64
    }
}

impl Mooncake {
    pub(super) fn new(block_bytes: u32) -> Mooncake {
        Mooncake {
            block_bytes,
            blocks: FxHashMap::default(),
            pass: 0,
        }
    }

    pub(super) fn begin_pass(&mut self) {
        self.pass += 1;
    }

    /// The blocks of a request go to `then`.
    pub(super) fn parse(&mut self, line: &[u8], then: &mut Vec<Record>) -> Result<Option<Record>, Problem> {
        let Some(request) = MooncakeRequest::read(line)? else {
            return Ok(None);
        };
        let time_ns = request.time_ns();
        for hash in request.hash_ids {
            let number = u32::try_from(self.blocks.len())
                .map_err(|_| Problem::new("the number of different hash ids", "at most 2^32"))?;
            let block = self.blocks.entry(hash).or_insert(Block { number, pass: u32::MAX });
            let is_written = std::mem::replace(&mut block.pass, self.pass) == self.pass;
            let operation = if is_written { Operation::Read } else { Operation::Write };
            let offset_bytes = u64::from(block.number) * u64::from(self.block_bytes);
            let block = Record::new(operation, offset_bytes, self.block_bytes.into())?;
            then.extend(block.map(|block| Record { time_ns, ..block }));
        }
        Ok(None)
    }
}

/// Whether a line is one of Mooncake's.
pub(super) fn is_mooncake(line: &[u8]) -> bool {
    line.starts_with(b"{") && serde_json::from_slice::<MooncakeRequest>(line).is_ok()
}
