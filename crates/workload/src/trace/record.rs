//! The format-independent request of a trace.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::field::FieldProblem;
use crate::{PlacementIndex, RequestOperation};

/// One request of a trace, as it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRecord {
    /// Issue time, nanoseconds after the first request of the trace. 0 if unknown. Keeps rising
    /// when a trace repeats.
    pub time_ns: u64,
    /// Operation of the request.
    pub operation: RequestOperation,
    /// Disk, volume or file of the request, numbered in the order of first appearance.
    pub volume: u32,
    /// Issuing process, numbered in the order of first appearance. 0 if unknown.
    pub process: u32,
    /// File of a file system, numbered in the order of first appearance. 0 if unknown.
    pub file: u32,
    /// First byte on the volume.
    pub offset_bytes: u64,
    /// Length in bytes, not 0.
    pub bytes: u32,
    /// Recorded latency, nanoseconds. 0 if unknown.
    pub latency_ns: u64,
    /// Placement index in the trace itself.
    pub placement: Option<PlacementIndex>,
}

/// Identity of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessIdentity {
    /// Number of the process or thread.
    Number,
    /// Name of the process, or its number if the trace has no name.
    Name,
}

/// Identity of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileIdentity {
    /// Name of the file.
    Name,
    /// Name of the file without numbers. `db/000012.sst` and `db/000013.sst` are of one kind.
    Kind,
}

/// Limit of offsets. All volumes are smaller, so that volume and position fit in 64 bits.
pub(super) const OFFSET_BYTES_END: u64 = 1 << 59;
/// Maximum names of one kind in a trace. The Tencent trace has 5584 volumes.
pub(super) const NAMES_MAX: usize = 1 << 20;

impl TraceRecord {
    /// Creates a request of the first volume and process, at time 0 and without placement. Returns
    /// `None` for 0 bytes.
    pub(super) fn new(
        operation: RequestOperation,
        offset_bytes: u64,
        bytes: u64,
    ) -> Result<Option<TraceRecord>, FieldProblem> {
        let Ok(bytes) = u32::try_from(bytes) else {
            return Err(FieldProblem::new("the length", "below 4 GiB"));
        };
        if offset_bytes >= OFFSET_BYTES_END {
            return Err(FieldProblem::new("the offset", "below 2^59 bytes"));
        }
        Ok((bytes > 0).then_some(TraceRecord {
            time_ns: 0,
            operation,
            volume: 0,
            process: 0,
            file: 0,
            offset_bytes,
            bytes,
            latency_ns: 0,
            placement: None,
        }))
    }
}

pub(super) fn as_text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Names of volumes, processes or files, numbered in the order of first appearance.
#[derive(Debug, Default)]
pub(super) struct IdentityNames {
    numbers: FxHashMap<Box<[u8]>, u32>,
    /// The last name, which usually comes again.
    last: Vec<u8>,
    last_number: u32,
}

impl IdentityNames {
    #[inline]
    pub(super) fn number(&mut self, name: &[u8]) -> Result<u32, FieldProblem> {
        if name == self.last && !self.numbers.is_empty() {
            return Ok(self.last_number);
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => self.add(name)?,
        };
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_number = number;
        Ok(number)
    }

    /// Names of the first numbers, at most `most`, converted by `text`.
    pub(super) fn first(&self, most: usize, text: impl Fn(&[u8]) -> String) -> Vec<String> {
        let mut names = vec![String::new(); most.min(self.numbers.len())];
        for (name, number) in &self.numbers {
            if let Some(place) = names.get_mut(*number as usize) {
                *place = text(name);
            }
        }
        names
    }

    #[cold]
    fn add(&mut self, name: &[u8]) -> Result<u32, FieldProblem> {
        let number = self.numbers.len();
        if number == NAMES_MAX {
            return Err(FieldProblem::new("the volume, process or file", "among the first 1048576 different ones"));
        }
        self.numbers.insert(name.into(), number as u32);
        assert_eq!(self.numbers.len(), number + 1, "a new name was numbered before");
        Ok(number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_as_they_appear() {
        let mut names = IdentityNames::default();
        let numbers: Vec<u32> =
            [&b""[..], b"sda", b"", b"sda", b"sdb", b"sdb", b"sda"].map(|name| names.number(name).unwrap()).into();
        assert_eq!(numbers, [0, 1, 0, 1, 2, 2, 1]);
        assert_eq!(names.first(2, as_text), ["", "sda"]);
        assert_eq!(names.first(9, as_text), ["", "sda", "sdb"]);
    }

    #[test]
    fn a_column_that_is_no_volume_does_not_fill_the_memory() {
        let mut names = IdentityNames::default();
        for number in 0..NAMES_MAX as u32 {
            assert_eq!(names.number(&number.to_le_bytes()), Ok(number));
        }
        assert!(names.number(b"one more").is_err());
        assert_eq!(names.number(&7u32.to_le_bytes()), Ok(7));
    }
}
