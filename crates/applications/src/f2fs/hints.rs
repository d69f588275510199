//! Write hints: the hint of each log's writes, and its placement index on the drive.
//!
//! The WARP paper cites a driver patch (its reference 18, Samsung's Flexible Data Placement support
//! for the NVMe driver). The patch maps hint n to the n-th placement identifier of the namespace.
//! Larger hints map to the last identifier. Hint numbers are those of `enum rw_hint`
//! (`include/linux/rw_hint.h`).
//!
//! The kernel documents F2FS's hints in `Documentation/filesystems/f2fs.rst`, "Write-hint Policy".
//! Until 5.18 there were three mount options, and since 6.9 there is one fixed policy. A stock
//! kernel passes the block layer's write streams to the drive: stream n is the n-th placement
//! handle. F2FS sets streams only in later kernels, and only for data (linux-f2fs-devel, April
//! 2026; measured with Linux 7.3, docs/reference/workloads.md). [`HintPolicy`] has all of these
//! policies.
//!
//! The paper's section 3.4 maps user data to WARM, and WARM to `WRITE_LIFE_NOT_SET`. Nodes and
//! metadata have handles of their own. This is the fixed policy, and so the default here.

use serde::{Deserialize, Serialize};
use workload::PlacementIndex;

/// One of the six logs, in the kernel's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogKind {
    /// Directory entries, and files with the hot bit or hint.
    HotData = 0,
    /// All other user data.
    WarmData = 1,
    /// Data moved by cleaning, and files with a multimedia extension, the cold bit or hint.
    ColdData = 2,
    /// Inodes of directories.
    HotNode = 3,
    /// Inodes and direct nodes of files.
    WarmNode = 4,
    ColdNode = 5,
}

impl LogKind {
    pub const ALL: [LogKind; 6] = [
        LogKind::HotData,
        LogKind::WarmData,
        LogKind::ColdData,
        LogKind::HotNode,
        LogKind::WarmNode,
        LogKind::ColdNode,
    ];

    pub fn is_node(self) -> bool {
        self >= LogKind::HotNode
    }
}

/// Writer of a request. Writers are the streams of the workload, in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum F2fsWriter {
    Log(LogKind),
    /// Superblock, checkpoint, SIT, NAT and SSA.
    Meta,
}

impl F2fsWriter {
    pub const COUNT: usize = 7;

    pub fn index(self) -> usize {
        match self {
            F2fsWriter::Log(log) => log as usize,
            F2fsWriter::Meta => 6,
        }
    }

    /// True if it writes user data or directory entries.
    pub fn is_data(self) -> bool {
        matches!(self, F2fsWriter::Log(log) if !log.is_node())
    }
}

/// Names of the streams: the writers, then reads and discards.
pub const STREAMS: [&str; 9] =
    ["hot_data", "warm_data", "cold_data", "hot_node", "warm_node", "cold_node", "meta", "read", "discard"];

/// Hints of the kernel by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Hint {
    /// `WRITE_LIFE_NOT_SET`
    NotSet = 0,
    /// `WRITE_LIFE_NONE`
    None = 1,
    /// `WRITE_LIFE_SHORT`
    Short = 2,
    /// `WRITE_LIFE_MEDIUM`
    Medium = 3,
    /// `WRITE_LIFE_LONG`
    Long = 4,
    /// `WRITE_LIFE_EXTREME`
    Extreme = 5,
}

impl Hint {
    /// Names of the hints in measures, by number.
    pub const NAMES: [&str; 6] = ["not_set", "none", "short", "medium", "long", "extreme"];
}

/// Policy that gives each write a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HintPolicy {
    /// No hints and no directives, from `whint_mode=off` or a kernel without the driver patch.
    Off,
    /// `whint_mode=user-based` (4.17 to 5.18): short for hot data, extreme for cold data, otherwise
    /// not set.
    User,
    /// `whint_mode=fs-based` (4.17 to 5.18): medium for metadata, none for indirect nodes, not set
    /// for other nodes. Data is short, long or extreme.
    Fs,
    /// The fixed policy since 6.9. Warm data is not set, hot data is short, cold data is extreme.
    /// Nodes are none, medium and long. Metadata is none.
    Kernel,
    /// Write streams of a stock kernel (7.3). Hot, warm and cold data have the first three handles.
    /// With two handles, cold data has the second. Nodes and metadata have no directive and thus
    /// the first.
    Streams,
    /// Lifetime classes, an extension of the paper. User data has one handle per class of file
    /// lifetime. Nodes and metadata have the two handles that follow.
    Lifetime,
}

impl HintPolicy {
    /// Hint of a writer. `None` if the policy has classes instead of hints, or no hints.
    pub fn hint(self, writer: F2fsWriter) -> Option<Hint> {
        use LogKind::{ColdData, ColdNode, HotData, HotNode, WarmData, WarmNode};
        let hint = match (self, writer) {
            (HintPolicy::Off | HintPolicy::Lifetime, _) => return None,
            (_, F2fsWriter::Log(HotData)) => Hint::Short,
            (_, F2fsWriter::Log(ColdData)) => Hint::Extreme,
            (HintPolicy::User, _) => Hint::NotSet,
            (HintPolicy::Fs, F2fsWriter::Log(WarmData)) => Hint::Long,
            (HintPolicy::Fs, F2fsWriter::Log(ColdNode)) => Hint::None,
            (HintPolicy::Fs, F2fsWriter::Log(_)) => Hint::NotSet,
            (HintPolicy::Fs, F2fsWriter::Meta) => Hint::Medium,
            (HintPolicy::Kernel | HintPolicy::Streams, writer) => match writer {
                F2fsWriter::Log(HotNode) | F2fsWriter::Meta => Hint::None,
                F2fsWriter::Log(WarmNode) => Hint::Medium,
                F2fsWriter::Log(ColdNode) => Hint::Long,
                F2fsWriter::Log(_) => Hint::NotSet,
            },
        };
        Some(hint)
    }

    /// Placement index of a write, among `placement_count`. `class` is the lifetime class of the
    /// file, among `classes`.
    pub fn placement(self, writer: F2fsWriter, class: u8, classes: u8, placement_count: u16) -> Option<PlacementIndex> {
        let last = placement_count.checked_sub(1)?;
        let wanted = match self {
            HintPolicy::Off => return None,
            HintPolicy::Streams => Self::stream(writer, placement_count)?,
            HintPolicy::Lifetime if writer.is_data() => class,
            HintPolicy::Lifetime => classes + u8::from(writer == F2fsWriter::Meta),
            _ => self.hint(writer).expect("the other policies give hints") as u8,
        };
        Some(PlacementIndex(u16::from(wanted).min(last)))
    }

    /// Handle of a write stream. `None` for a writer without a stream.
    fn stream(writer: F2fsWriter, placement_count: u16) -> Option<u8> {
        match writer {
            F2fsWriter::Log(LogKind::HotData) => Some(0),
            F2fsWriter::Log(LogKind::WarmData) => Some(u8::from(placement_count >= 3)),
            F2fsWriter::Log(LogKind::ColdData) => Some(placement_count.saturating_sub(1).min(2) as u8),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Matches the results of `tests/host/run --hints` on Linux 7.3 with eight handles, and the
    /// patch for fewer handles.
    #[test]
    fn write_streams_are_the_kernels() {
        for (count, data) in [(1, [0, 0, 0]), (2, [0, 0, 1]), (3, [0, 1, 2]), (8, [0, 1, 2])] {
            let place = |writer| HintPolicy::Streams.placement(writer, 0, 6, count);
            for (log, index) in LogKind::ALL.into_iter().zip(data) {
                assert_eq!(place(F2fsWriter::Log(log)), Some(PlacementIndex(index)), "{log:?} of {count}");
            }
            for log in &LogKind::ALL[3..] {
                assert_eq!(place(F2fsWriter::Log(*log)), None);
            }
            assert_eq!(place(F2fsWriter::Meta), None);
        }
        assert_eq!(HintPolicy::Streams.placement(F2fsWriter::Meta, 0, 6, 0), None);
    }
}
