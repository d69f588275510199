//! I/O of a member drive, with its cause.

use serde::Serialize;
use workload::{IoRequest, PlacementIndex, RequestOperation};

/// Cause of an I/O of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IoCause {
    /// The host's data: the first copy of a write, a read, a deallocation.
    Data,
    /// Further copies of a write.
    Mirror,
    Parity,
    /// Reads for new parity: old data and parity, or the data that a write leaves as it is.
    ReadModifyWrite,
    /// Reads of the other chunks instead of data on a failed drive.
    DegradedRead,
    /// Data that the log-structured layer moves, without its parity.
    Relocation,
    Rebuild,
    Scrub,
}

impl IoCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [IoCause; 8] = [
        IoCause::Data,
        IoCause::Mirror,
        IoCause::Parity,
        IoCause::ReadModifyWrite,
        IoCause::DegradedRead,
        IoCause::Relocation,
        IoCause::Rebuild,
        IoCause::Scrub,
    ];

    /// Name in tables and exports.
    pub const fn name(self) -> &'static str {
        match self {
            IoCause::Data => "data",
            IoCause::Mirror => "mirror",
            IoCause::Parity => "parity",
            IoCause::ReadModifyWrite => "read_modify_write",
            IoCause::DegradedRead => "degraded_read",
            IoCause::Relocation => "relocation",
            IoCause::Rebuild => "rebuild",
            IoCause::Scrub => "scrub",
        }
    }
}

/// I/O of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberIo {
    /// Number of the drive, from 0.
    pub drive: u16,
    pub operation: RequestOperation,
    /// First byte on the drive.
    pub offset_bytes: u64,
    pub bytes: u64,
    pub placement: Option<PlacementIndex>,
    pub cause: IoCause,
    /// An I/O waits for all I/O of its request with a lower number.
    pub phase: u8,
}

impl MemberIo {
    /// Returns the I/O as a request to its drive.
    pub fn request(&self) -> IoRequest {
        IoRequest {
            stream: 0,
            operation: self.operation,
            offset_bytes: self.offset_bytes,
            bytes: u32::try_from(self.bytes).expect("member I/O is at most as large as a request or a chunk"),
            placement: self.placement,
        }
    }
}

/// Member I/O of one request. Adjacent I/O of a drive becomes one, as the block layer does.
pub(crate) struct IoList<'a> {
    pub(crate) ios: &'a mut Vec<MemberIo>,
    /// First I/O of the request.
    first: usize,
}

impl IoList<'_> {
    pub(crate) fn new(ios: &mut Vec<MemberIo>) -> IoList<'_> {
        let first = ios.len();
        IoList { ios, first }
    }

    pub(crate) fn add(&mut self, io: MemberIo) {
        assert!(io.bytes > 0, "an I/O has bytes");
        let is_before = |before: &&mut MemberIo| {
            before.offset_bytes + before.bytes == io.offset_bytes
                && MemberIo { offset_bytes: io.offset_bytes, bytes: io.bytes, ..**before } == io
        };
        match self.ios[self.first..].iter_mut().rev().find(is_before) {
            Some(before) if before.bytes + io.bytes <= u64::from(u32::MAX) => before.bytes += io.bytes,
            _ => self.ios.push(io),
        }
    }
}
