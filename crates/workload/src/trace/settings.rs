//! Settings of `[workload] kind = "trace"`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::blkparse::BlkparseAction;
use super::blktrace;
use super::column_list::ColumnList;
use super::columns::ColumnSettings;
use super::input::BUFFER_BYTES;
use super::record::{FileIdentity, ProcessIdentity};
use super::spool;
use crate::{PlacementIndex, RequestOperation, WorkloadError, WorkloadTarget};

/// Bytes of the reader, and the two buffers of each further file that is read at the same time.
const READER_BYTES: u64 = 8 << 20;
const FURTHER_FILE_BYTES: u64 = 2 * BUFFER_BYTES as u64;
/// The largest drive that a trace can be laid out on. It holds any trace, and only touched units
/// take memory.
pub const ROOM_BYTES: u64 = (u32::MAX as u64 - 1) * 4096;
/// Bytes of a piece of 16 unit numbers, including hash table entries and all free space.
const PIECE_BYTES: u64 = 240;
/// Share of a unit in a full piece.
const NUMBER_BYTES: u64 = PIECE_BYTES / 16;

/// A block trace as a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceSettings {
    /// Consecutive files of the trace, plain, gzip or zstd. `-` is standard input. At least one is
    /// required.
    pub files: Vec<PathBuf>,
    /// Format of all files. By default guessed from their beginning, or from a name that ends with
    /// `.blkparse` or `.oracleGeneral`.
    pub format: Option<TraceFormat>,
    /// Columns, for `format = "csv"`.
    pub csv: Option<ColumnSettings>,
    /// The columns in one line, such as `time:us,op,offset:sectors,bytes`. Implies the format
    /// `csv`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<ColumnList>,
    /// Event of blkparse that counts as a request. Default is the issue to the drive.
    pub blkparse_action: BlkparseAction,
    /// Identity of processes in blktrace's traces. Default is the process number.
    pub process_by: ProcessIdentity,
    /// Identity of files. Default is the name.
    pub file_by: FileIdentity,
    /// Bytes of a block of 512 tokens, for `format = "mooncake"`. Default is 1 MiB.
    #[serde(with = "base::size")]
    pub kv_block_bytes: u64,
    /// Mapping of trace addresses to positions on the drive. Default is `compact`.
    pub mapping: AddressMapping,
    /// Size of each traced volume, for `modulo` and `scale`. Volumes lie one after another, in the
    /// order of first appearance. Without it (`modulo` only) all volumes share one address space.
    #[serde(with = "base::size", skip_serializing_if = "Option::is_none")]
    pub volume_bytes: Option<u64>,
    /// Number of traced volumes, for `scale`. Default is 1.
    pub volumes: u32,
    /// Source of the placement indices of writes. Default is `none`.
    pub placement: PlacementRule,
    /// Ranges of a volume's addresses with their placement indices, for `placement = "lba_ranges"`.
    /// The first range that contains a write's first byte counts. Writes outside all ranges have no
    /// directive.
    pub lba_ranges: Vec<LbaRange>,
    /// Ascending sizes, for `placement = "request_size"`. A write's placement index is the number
    /// of sizes that it reaches.
    #[serde(with = "base::size")]
    pub request_sizes_bytes: Vec<u64>,
    /// Operations to replay. Default is all three.
    pub operations: Vec<RequestOperation>,
    /// True to count bad lines instead of ending at the first.
    pub skip_bad_lines: bool,
}

impl Default for TraceSettings {
    fn default() -> TraceSettings {
        TraceSettings {
            files: Vec::new(),
            format: None,
            csv: None,
            columns: None,
            blkparse_action: BlkparseAction::Issued,
            process_by: ProcessIdentity::Number,
            file_by: FileIdentity::Name,
            kv_block_bytes: 1 << 20,
            mapping: AddressMapping::Compact,
            volume_bytes: None,
            volumes: 1,
            placement: PlacementRule::None,
            lba_ranges: Vec::new(),
            request_sizes_bytes: Vec::new(),
            operations: RequestOperation::ALL.to_vec(),
            skip_bad_lines: false,
        }
    }
}

/// Format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// fio iolog, version 2 or 3 as given in its first line.
    Iolog,
    /// Text output of `blkparse`.
    Blkparse,
    /// MSR Cambridge.
    Msr,
    /// Alibaba block traces.
    Alibaba,
    /// Tencent CBS.
    Tencent,
    /// Columns as described by the `csv` table.
    Csv,
    /// Columns as written by `warp capture`.
    Capture,
    /// Binary files of blktrace.
    Blktrace,
    /// vscsiStats, versions 1 and 2.
    Vscsi,
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// Mooncake's JSON lines.
    Mooncake,
}

impl TraceFormat {
    /// Names of the formats in settings.
    pub(super) const NAMES: &str = "\"iolog\", \"blkparse\", \"blktrace\", \"msr\", \"alibaba\", \"tencent\", \
                                    \"csv\", \"capture\", \"vscsi\", \"oracle_general\" and \"mooncake\"";
}

/// Mapping of trace addresses to positions on the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressMapping {
    /// Address modulo the capacity.
    Modulo,
    /// Address times capacity / (`volume_bytes` x `volumes`), in whole mapping units. Lengths do
    /// not change.
    Scale,
    /// The touched units, numbered in the order of first touch, per volume.
    Compact,
}

/// Source of the placement indices of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementRule {
    /// No directive.
    None,
    /// The trace itself, either an iolog's extra column or a CSV's `placement`.
    Column,
    /// `lba_ranges`.
    LbaRanges,
    /// `request_sizes_bytes`.
    RequestSize,
    /// Number of the volume, modulo the number of placement indices.
    Volume,
    /// Number of the process, modulo the number of placement indices.
    Process,
    /// Number of the file, modulo the number of placement indices. Unknown files share one index.
    File,
}

/// A range of addresses and the placement index of its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LbaRange {
    /// First byte.
    #[serde(with = "base::size")]
    pub start_bytes: u64,
    /// First byte after the range.
    #[serde(with = "base::size")]
    pub end_bytes: u64,
    /// Placement index of writes in the range.
    pub placement: PlacementIndex,
}

impl TraceSettings {
    /// Maximum memory of the replay, bytes.
    pub fn memory_bytes(&self, target: &WorkloadTarget) -> u64 {
        /// Minimum bytes of a record, plain and compressed.
        const RECORD_BYTES_MIN: [u64; 2] = [12, 4];
        let bytes = match self.mapping {
            AddressMapping::Modulo | AddressMapping::Scale => touchable_units(target) / 8,
            AddressMapping::Compact => {
                let units = self.numbered_units_max(target);
                let records = self.file_bytes() / RECORD_BYTES_MIN[usize::from(self.is_compressed())];
                // Each record may add a piece of numbers until most pieces of the volumes have one.
                units * NUMBER_BYTES + records.min(units) * PIECE_BYTES
            }
        };
        let files = self.file_groups().iter().map(Vec::len).max().unwrap_or(0) as u64;
        READER_BYTES + files.saturating_sub(1) * FURTHER_FILE_BYTES + bytes
    }

    /// Maximum units that `mapping = "compact"` numbers. The limits are the drive's units and the
    /// bytes of the trace. A trace touches up to 16 units per byte, or 256 if compressed.
    pub(super) fn numbered_units_max(&self, target: &WorkloadTarget) -> u64 {
        const UNITS_PER_BYTE: [u64; 2] = [16, 256];
        const UNITS_MIN: u64 = 1 << 20;
        let of_file = self.file_bytes().saturating_mul(UNITS_PER_BYTE[usize::from(self.is_compressed())]);
        touchable_units(target).min(of_file.max(UNITS_MIN))
    }

    /// Files of the trace, in order. Each element lists files that are read side by side.
    pub(super) fn file_groups(&self) -> Vec<Vec<PathBuf>> {
        let mut groups = Vec::new();
        for file in &self.files {
            let together = blktrace::files_of(file);
            // The user may name the file of each processor or only one of them.
            if together.len() == 1 || !groups.contains(&together) {
                groups.push(together);
            }
        }
        groups
    }

    /// Bytes of all files as stored, or received from a stream. Unreadable files count as 0 and are
    /// refused when they are opened.
    fn file_bytes(&self) -> u64 {
        let bytes = |file: &PathBuf| match spool::is_stream(file) {
            true => spool::open(file).and_then(|stream| stream.length()).unwrap_or(0),
            false => std::fs::metadata(file).map_or(0, |found| found.len()),
        };
        self.file_groups().iter().flatten().map(bytes).sum()
    }

    fn is_compressed(&self) -> bool {
        let endings = ["gz", "zst"];
        let is_one = |file: &PathBuf| {
            spool::is_stream(file) || file.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one))
        };
        self.files.iter().any(is_one)
    }

    /// Returns the settings for files that begin with `head`, with a list of columns converted to a
    /// table.
    pub(super) fn with_columns(&self, head: &[u8]) -> Result<TraceSettings, WorkloadError> {
        let Some(list) = &self.columns else {
            return Ok(self.clone());
        };
        if self.csv.is_some() || !matches!(self.format, None | Some(TraceFormat::Csv)) {
            return Err(WorkloadError::setting(
                format!("columns = \"{list}\""),
                "cannot be combined with csv or another format. Remove csv and format",
            ));
        }
        Ok(TraceSettings {
            format: Some(TraceFormat::Csv),
            csv: Some(list.settings(head)),
            columns: None,
            ..self.clone()
        })
    }

    pub(super) fn check(&self, target: &WorkloadTarget) -> Result<(), WorkloadError> {
        if self.operations.is_empty() {
            return Err(WorkloadError::setting(
                "operations = []",
                "selects no operation. Name some of read, write and trim",
            ));
        }
        if self.mapping == AddressMapping::Scale && self.volume_bytes.is_none() {
            return Err(WorkloadError::setting(
                "mapping = \"scale\"",
                "needs the size of a traced volume. Set volume_bytes",
            ));
        }
        if self.volume_bytes == Some(0) || self.volumes == 0 {
            return Err(WorkloadError::setting(
                format!("volume_bytes = {}, volumes = {}", self.volume_bytes.unwrap_or(0), self.volumes),
                "must be at least 1 each",
            ));
        }
        if !(512..1 << 31).contains(&self.kv_block_bytes) {
            return Err(WorkloadError::setting(
                format!("kv_block_bytes = {}", self.kv_block_bytes),
                "must be at least 512 bytes and below 2 GiB",
            ));
        }
        let span = self.volume_bytes.unwrap_or(0).checked_mul(self.volumes.into());
        if span.is_none_or(|span| span > i64::MAX as u64) {
            return Err(WorkloadError::setting(
                format!("volume_bytes = {}, volumes = {}", self.volume_bytes.unwrap_or(0), self.volumes),
                "must be less than 2^63 bytes in total",
            ));
        }
        self.check_placement(target)
    }

    fn check_placement(&self, target: &WorkloadTarget) -> Result<(), WorkloadError> {
        let needs = |setting: &str, what: &str| Err(WorkloadError::setting(setting, what));
        match self.placement {
            PlacementRule::LbaRanges if self.lba_ranges.is_empty() => {
                return needs("placement = \"lba_ranges\"", "needs a list of ranges. Set lba_ranges");
            }
            PlacementRule::RequestSize if self.request_sizes_bytes.is_empty() => {
                return needs("placement = \"request_size\"", "needs a list of sizes. Set request_sizes_bytes");
            }
            _ => {}
        }
        if !self.request_sizes_bytes.is_sorted() {
            return Err(WorkloadError::setting(
                format!("request_sizes_bytes = {:?}", self.request_sizes_bytes),
                "must be in ascending order",
            ));
        }
        // A drive without placement indices accepts every trace.
        let last = target.placement_count.saturating_sub(1);
        let most = match self.placement {
            PlacementRule::LbaRanges => self.lba_ranges.iter().map(|range| range.placement.0).max(),
            PlacementRule::RequestSize => u16::try_from(self.request_sizes_bytes.len()).ok(),
            _ => None,
        };
        match most {
            Some(most) if target.placement_count > 0 && most > last => Err(WorkloadError::setting(
                format!("placement index {most}"),
                format!("does not exist on the drive. Use 0 to {last}"),
            )),
            _ => Ok(()),
        }
    }
}

/// Units that a trace can touch. Those of a sampled scaled model, or of the drive at full size.
fn touchable_units(target: &WorkloadTarget) -> u64 {
    let sampled = target.scaled_model.filter(|model| !model.keep_requests);
    sampled.map_or(target.device_bytes, |model| model.device_bytes) / target.unit_bytes()
}
