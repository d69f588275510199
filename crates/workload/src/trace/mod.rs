//! Block traces as workloads, which replay the recorded requests of other drives.
//!
//! ```text
//! files, spool (streams) -> input (gzip, zstd)
//!   -> lines   -> iolog | blkparse | cloud | columns | objects -> TraceRecord
//!   -> records -> blktrace | vscsi | objects                   -> TraceRecord
//! TraceRecord -> groups: mapping -> (mapped: kept for later passes and runs) -> placement
//!   -> replay -> IoRequest
//! any RequestSource -> export
//! ```
//!
//! All input is streamed, so memory does not depend on a trace's length. The exceptions are
//! [`AddressMapping::Compact`], which remembers touched units (`mapping` states the amount), and
//! [`MappedTraces`], which keeps mapped requests up to a limit (`mapped` states it). A bad
//! line is an error with file and line, or is counted. Only lines that a format itself defines as
//! no request are skipped silently.
//!
//! Records keep their times ([`TraceRecord::time_ns`], [`TimedSource`]), but the times do not delay
//! requests. Requests come in the trace's order, and the caller decides their times. File systems
//! and volume managers below the recorder are not modelled.

use std::io;
use std::thread::{self, JoinHandle};

mod blkparse;
mod blktrace;
mod bytes;
mod cloud;
mod column_list;
mod columns;
mod export;
mod field;
mod format;
mod groups;
mod input;
mod iolog;
mod mapped;
mod mapping;
mod objects;
mod reader;
mod record;
mod replay;
mod settings;
pub mod spool;
mod unit_numbers;
mod vscsi;

pub use blkparse::BlkparseAction;
pub use blktrace::files_of;
pub use column_list::ColumnList;
pub use columns::{
    AmountColumn, AmountUnit, CAPTURE_HEADER, ColumnReference, ColumnSettings, Delimiter, OperationColumn, TimeColumn,
    TimeUnit,
};
pub use export::{ExportSettings, ExportSource, ExportSummary, IologVersion, export, export_per_placement};
pub use groups::Arrival;
pub use input::{ReadOutcome, RecordReader, decompressed};
pub use mapped::MappedTraces;
pub use objects::{MooncakeRequest, ObjectRequest};
pub use reader::{TraceProgress, TraceReader, file_bytes};
pub use record::{FileIdentity, ProcessIdentity, TraceRecord};
pub use replay::{TimedSource, TraceSource};
pub use settings::{AddressMapping, LbaRange, PlacementRule, ROOM_BYTES, TraceFormat, TraceSettings};

/// Starts a thread that reads ahead.
fn start_thread(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("trace".to_string()).spawn(work).map_err(|error| {
        let problem = format!("the system refuses a thread that reads ahead ({error}). Allow more with ulimit -u");
        io::Error::new(error.kind(), problem)
    })
}
