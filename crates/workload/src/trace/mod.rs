//! Workloads as block traces: what other people's drives were asked, asked again.
//!
//! ```text
//! files, spool (streams) -> input (gzip, zstd) -> lines   -> iolog | blkparse | cloud | columns | objects -> Record
//!                                              -> records -> blktrace | vscsi | objects                 -> Record
//! Record -> mapping, placement -> Request                                               export <- any Source
//! ```
//!
//! Everything is read as a stream: a trace of any length needs the same memory, except for what [`Mapping::Compact`] remembers of
//! touched units (`mapping` says how much). A bad line names file and line, and ends the replay or is counted; nothing is skipped
//! silently but what the formats themselves define as no request.
//!
//! Times are read and kept ([`Record::time_ns`], [`TimedSource`]) and not obeyed: requests come in the trace's order, and the caller
//! decides when. It does not model the file system or the volume manager that a trace was recorded above.

mod blkparse;
mod blktrace;
mod bytes;
mod cloud;
mod column_list;
mod columns;
mod export;
mod field;
mod format;
mod input;
mod iolog;
mod mapping;
mod objects;
mod reader;
mod record;
mod replay;
mod settings;
pub mod spool;
mod vscsi;

pub use blkparse::BlkparseAction;
pub use blktrace::files_of;
pub use column_list::ColumnList;
pub use columns::{
    AmountColumn, AmountUnit, CAPTURE_HEADER, Column, ColumnSettings, Delimiter, OperationColumn, TimeColumn, TimeUnit,
};
pub use export::{ExportSettings, ExportSummary, Feed, IologVersion, export, export_per_placement};
pub use input::{Line, Lines, decompressed};
pub use objects::{MooncakeRequest, ObjectRequest};
pub use reader::{Progress, Reader, file_bytes};
pub use record::{FileIdentity, ProcessIdentity, Record};
pub use replay::{Arrival, TimedSource, TraceSource};
pub use settings::{Format, LbaRange, Mapping, PlacementRule, ROOM_BYTES, Settings};
