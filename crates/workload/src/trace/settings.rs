//! `[workload] kind = "trace"`: what a user says about a trace.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::blkparse::BlkparseAction;
use super::column_list::ColumnList;
use super::columns::ColumnSettings;
use super::record::{FileIdentity, ProcessIdentity};
use super::spool;
use crate::{Operation, PlacementIndex, Target, WorkloadError};

/// Bytes of the reader with its buffers.
const READER_BYTES: u64 = 8 << 20;
/// The largest drive that a trace can be laid out on: it holds any trace, and memory is taken for what is touched.
pub const ROOM_BYTES: u64 = (u32::MAX as u64 - 1) * 4096;
/// Bytes of a piece of 16 unit numbers, with its entries in hash tables and the free room of all.
const PIECE_BYTES: u64 = 240;
/// Its part for each unit, where pieces are full.
const NUMBER_BYTES: u64 = PIECE_BYTES / 16;

/// A block trace as a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Files of the trace, one after another; plain, gzip or zstd; `-` is standard input. No default: there must be
    /// one.
    pub files: Vec<PathBuf>,
    /// Format of all of them. Without it their beginning tells, or a name that ends with `.blkparse` or
    /// `.oracleGeneral`.
    pub format: Option<Format>,
    /// Columns, for `format = "csv"`.
    pub csv: Option<ColumnSettings>,
    /// The same in a line, such as `time:us,op,offset:sectors,bytes`; the format is `csv` then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<ColumnList>,
    /// Events of blkparse that count: by default those that were issued to the drive.
    pub blkparse_action: BlkparseAction,
    /// What tells processes apart in blktrace's traces; default their number.
    pub process_by: ProcessIdentity,
    /// What tells files apart; default their name.
    pub file_by: FileIdentity,
    /// Bytes of a block of 512 tokens, for `format = "mooncake"`; default 1 MiB.
    #[serde(with = "base::size")]
    pub kv_block_bytes: u64,
    /// How addresses of the trace become positions on the drive; default `compact`.
    pub mapping: Mapping,
    /// Size of each traced volume, for `modulo` and `scale`; volumes lie one after another, in the order in which they
    /// first appear. Without it (`modulo` only) all volumes share one address space.
    #[serde(with = "base::size", skip_serializing_if = "Option::is_none")]
    pub volume_bytes: Option<u64>,
    /// Number of traced volumes, for `scale`; default 1.
    pub volumes: u32,
    /// Where the placement indices of writes come from; default `none`.
    pub placement: PlacementRule,
    /// Ranges of a volume's addresses with their placement indices, for `placement = "lba_ranges"`; the first that
    /// holds a write's first byte counts, and a write outside all of them has no directive.
    pub lba_ranges: Vec<LbaRange>,
    /// Rising sizes, for `placement = "request_size"`: a write's placement index is how many of them it reaches.
    #[serde(with = "base::size")]
    pub request_sizes_bytes: Vec<u64>,
    /// Operations that are replayed; default all three.
    pub operations: Vec<Operation>,
    /// Count bad lines instead of ending at the first.
    pub skip_bad_lines: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            files: Vec::new(),
            format: None,
            csv: None,
            columns: None,
            blkparse_action: BlkparseAction::Issued,
            process_by: ProcessIdentity::Number,
            file_by: FileIdentity::Name,
            kv_block_bytes: 1 << 20,
            mapping: Mapping::Compact,
            volume_bytes: None,
            volumes: 1,
            placement: PlacementRule::None,
            lba_ranges: Vec::new(),
            request_sizes_bytes: Vec::new(),
            operations: Operation::ALL.to_vec(),
            skip_bad_lines: false,
        }
    }
}

/// Format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// fio iolog, version 2 or 3, as its first line says.
    Iolog,
    /// Text of `blkparse`.
    Blkparse,
    /// MSR Cambridge.
    Msr,
    /// Alibaba block traces.
    Alibaba,
    /// Tencent CBS.
    Tencent,
    /// Columns as the `csv` table says.
    Csv,
    /// Columns as `warp capture` writes them.
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

impl Format {
    /// Their names in settings.
    pub(super) const NAMES: &str = "\"iolog\", \"blkparse\", \"blktrace\", \"msr\", \"alibaba\", \"tencent\", \"csv\", \"capture\", \
                                    \"vscsi\", \"oracle_general\" or \"mooncake\"";
}

/// How addresses of the trace become positions on the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mapping {
    /// Remainder of the division by the capacity.
    Modulo,
    /// Capacity / (`volume_bytes` x `volumes`) times the address, in whole mapping units. Lengths stay as they are.
    Scale,
    /// The units that the trace touches, numbered in the order of first touch, per volume.
    Compact,
}

/// Where the placement indices of writes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementRule {
    /// No directive.
    None,
    /// The trace: an iolog's further column, a CSV's `placement`.
    Column,
    /// `lba_ranges`.
    LbaRanges,
    /// `request_sizes_bytes`.
    RequestSize,
    /// The volume's number, modulo the number of placement indices.
    Volume,
    /// The process's number, modulo the number of placement indices.
    Process,
    /// The file's number, modulo the number of placement indices; what is of no known file has one together.
    File,
}

/// A range of addresses and the placement index of what is written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LbaRange {
    /// First byte.
    #[serde(with = "base::size")]
    pub start_bytes: u64,
    /// First byte after it.
    #[serde(with = "base::size")]
    pub end_bytes: u64,
    /// What a write there gets.
    pub placement: PlacementIndex,
}

impl Settings {
    /// Memory that replaying takes at most, bytes.
    pub fn memory_bytes(&self, target: &Target) -> u64 {
        /// Bytes of a record at least, plain and compressed.
        const RECORD_BYTES_MIN: [u64; 2] = [12, 4];
        let bytes = match self.mapping {
            Mapping::Modulo | Mapping::Scale => touchable_units(target) / 8,
            Mapping::Compact => {
                let units = self.numbered_units_max(target);
                let records = self.file_bytes() / RECORD_BYTES_MIN[usize::from(self.is_compressed())];
                // A piece of numbers for each record, until most pieces of the volumes have one.
                units * NUMBER_BYTES + records.min(units) * PIECE_BYTES
            }
        };
        READER_BYTES + bytes
    }

    /// Units that `mapping = "compact"` gives a number, at most: those of the drive, and no more than a trace of these
    /// bytes touches with 16 units for each of its bytes, or 256 if it is compressed.
    pub(super) fn numbered_units_max(&self, target: &Target) -> u64 {
        const UNITS_PER_BYTE: [u64; 2] = [16, 256];
        const UNITS_MIN: u64 = 1 << 20;
        let of_file = self
            .file_bytes()
            .saturating_mul(UNITS_PER_BYTE[usize::from(self.is_compressed())]);
        touchable_units(target).min(of_file.max(UNITS_MIN))
    }

    /// Bytes of all files as they are stored; of a stream, of what came. What cannot be read is refused when it is opened.
    fn file_bytes(&self) -> u64 {
        let bytes = |file: &PathBuf| match spool::is_stream(file) {
            true => spool::open(file).and_then(|stream| stream.length()).unwrap_or(0),
            false => std::fs::metadata(file).map_or(0, |found| found.len()),
        };
        self.files.iter().map(bytes).sum()
    }

    fn is_compressed(&self) -> bool {
        let endings = ["gz", "zst"];
        let is_one = |file: &PathBuf| {
            spool::is_stream(file)
                || file
                    .extension()
                    .is_some_and(|ending| endings.iter().any(|one| ending == *one))
        };
        self.files.iter().any(is_one)
    }

    /// The settings for files that begin with `head`: a list of columns becomes the table of them.
    pub(super) fn with_columns(&self, head: &[u8]) -> Result<Settings, WorkloadError> {
        let Some(list) = &self.columns else {
            return Ok(self.clone());
        };
        if self.csv.is_some() || !matches!(self.format, None | Some(Format::Csv)) {
            return Err(WorkloadError::setting(
                format!("columns = \"{list}\""),
                "says all of a CSV; leave out csv and any other format",
            ));
        }
        Ok(Settings {
            format: Some(Format::Csv),
            csv: Some(list.settings(head)),
            columns: None,
            ..self.clone()
        })
    }

    pub(super) fn check(&self, target: &Target) -> Result<(), WorkloadError> {
        if self.operations.is_empty() {
            return Err(WorkloadError::setting(
                "operations = []",
                "nothing would be replayed; name some of read, write, trim",
            ));
        }
        if self.mapping == Mapping::Scale && self.volume_bytes.is_none() {
            return Err(WorkloadError::setting(
                "mapping = \"scale\"",
                "needs volume_bytes, the size of a traced volume",
            ));
        }
        if self.volume_bytes == Some(0) || self.volumes == 0 {
            return Err(WorkloadError::setting(
                format!(
                    "volume_bytes = {}, volumes = {}",
                    self.volume_bytes.unwrap_or(0),
                    self.volumes
                ),
                "must be at least 1",
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
                format!(
                    "volume_bytes = {}, volumes = {}",
                    self.volume_bytes.unwrap_or(0),
                    self.volumes
                ),
                "must be less than 2^63 bytes together",
            ));
        }
        self.check_placement(target)
    }

    fn check_placement(&self, target: &Target) -> Result<(), WorkloadError> {
        let needs = |setting: &str, what: &str| Err(WorkloadError::setting(setting, what));
        match self.placement {
            PlacementRule::LbaRanges if self.lba_ranges.is_empty() => {
                return needs("placement = \"lba_ranges\"", "needs lba_ranges, a list of ranges");
            }
            PlacementRule::RequestSize if self.request_sizes_bytes.is_empty() => {
                return needs(
                    "placement = \"request_size\"",
                    "needs request_sizes_bytes, a list of sizes",
                );
            }
            _ => {}
        }
        if !self.request_sizes_bytes.is_sorted() {
            return Err(WorkloadError::setting(
                format!("request_sizes_bytes = {:?}", self.request_sizes_bytes),
                "must rise",
            ));
        }
        // A drive without placement indices takes every trace.
        let last = target.placement_count.saturating_sub(1);
        let most = match self.placement {
            PlacementRule::LbaRanges => self.lba_ranges.iter().map(|range| range.placement.0).max(),
            PlacementRule::RequestSize => u16::try_from(self.request_sizes_bytes.len()).ok(),
            _ => None,
        };
        match most {
            Some(most) if target.placement_count > 0 && most > last => Err(WorkloadError::setting(
                format!("placement index {most}"),
                format!("the drive has 0 to {last}"),
            )),
            _ => Ok(()),
        }
    }
}

/// Units that a trace can touch: those of a twin that it is sampled for, else those of the drive at full size.
fn touchable_units(target: &Target) -> u64 {
    let sampled = target.twin.filter(|twin| !twin.keep_requests);
    sampled.map_or(target.device_bytes, |twin| twin.device_bytes) / target.unit_bytes()
}
