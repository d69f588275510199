//! Trace formats, with detection of the format of a file and a parser for each.

use super::blkparse::{self, Blkparse};
use super::blktrace::{self, Blktrace};
use super::cloud::{self, CloudFormat, CloudTrace};
use super::columns::{ColumnParser, ColumnSettings, capture_of_several};
use super::field::{FieldProblem, Fields};
use super::input::uncompressed;
use super::iolog::{self, IologParser};
use super::objects::{self, MooncakeParser, OracleGeneral};
use super::record::{IdentityNames, TraceRecord, as_text};
use super::settings::{PlacementRule, TraceFormat, TraceSettings};
use super::vscsi::{self, Vscsi};
use crate::WorkloadError;

impl TraceFormat {
    /// Guesses the format of a file from its first line, its first bytes or its name.
    pub(super) fn guess(name: &str, first_line: &[u8], head: &[u8]) -> Option<TraceFormat> {
        if blktrace::guess(head) {
            return Some(TraceFormat::Blktrace);
        }
        if objects::ObjectRequest::is_named_so(name) {
            return Some(TraceFormat::OracleGeneral);
        }
        if vscsi::guess(head).is_some() {
            return Some(TraceFormat::Vscsi);
        }
        if capture_of_several(first_line).is_some() {
            return Some(TraceFormat::Capture);
        }
        if objects::is_mooncake(first_line) {
            return Some(TraceFormat::Mooncake);
        }
        if iolog::HEADERS.contains(&first_line) {
            return Some(TraceFormat::Iolog);
        }
        if let Some(cloud) = cloud::guess(first_line) {
            return Some(match cloud {
                CloudFormat::Msr => TraceFormat::Msr,
                CloudFormat::Alibaba => TraceFormat::Alibaba,
                CloudFormat::Tencent => TraceFormat::Tencent,
            });
        }
        let starts_like_an_event = Fields::new(first_line).word().is_some_and(blkparse::is_device);
        (starts_like_an_event || uncompressed(name).ends_with(".blkparse")).then_some(TraceFormat::Blkparse)
    }
}

pub(super) enum TraceParser {
    Iolog(IologParser),
    Blkparse(Blkparse),
    Cloud(CloudTrace),
    Columns(Box<ColumnParser>),
    Blktrace(Box<Blktrace>),
    Vscsi(Vscsi),
    OracleGeneral(Box<OracleGeneral>),
    Mooncake(MooncakeParser),
}

/// Division of a file into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordFraming {
    Lines,
    /// Records of this fixed length.
    Records(usize),
    /// Records that contain their length.
    Events,
}

impl TraceParser {
    /// Creates a parser for a file with this first line and these first bytes, and for the files
    /// after it.
    pub(super) fn new(
        format: TraceFormat,
        settings: &TraceSettings,
        first_line: &[u8],
        head: &[u8],
    ) -> Result<TraceParser, WorkloadError> {
        check_placement(format, settings)?;
        Ok(match (format, &settings.csv) {
            (TraceFormat::Csv, Some(columns)) => {
                TraceParser::Columns(Box::new(ColumnParser::new(columns, settings.file_by)?))
            }
            (TraceFormat::Csv, None) => {
                return Err(WorkloadError::setting(
                    "format = \"csv\"",
                    "needs the columns of the file. Set columns = \"time,op,offset,bytes\", or add a table \
                     [workload.csv]",
                ));
            }
            (_, Some(_)) => {
                return Err(WorkloadError::setting(
                    "csv",
                    "needs format = \"csv\". Set that format, or remove the table",
                ));
            }
            (TraceFormat::Iolog, None) => TraceParser::Iolog(IologParser::default()),
            (TraceFormat::Blkparse, None) => {
                TraceParser::Blkparse(Blkparse::new(settings.blkparse_action, settings.process_by))
            }
            (TraceFormat::Blktrace, None) => {
                TraceParser::Blktrace(Box::new(Blktrace::new(settings.blkparse_action, settings.process_by)))
            }
            (TraceFormat::Capture, None) => {
                let are_several = capture_of_several(first_line) == Some(true);
                let columns = ColumnSettings::for_capture(are_several);
                TraceParser::Columns(Box::new(ColumnParser::new(&columns, settings.file_by)?))
            }
            (TraceFormat::Vscsi, None) => TraceParser::Vscsi(Vscsi::new(head)),
            (TraceFormat::OracleGeneral, None) => TraceParser::OracleGeneral(Box::default()),
            (TraceFormat::Mooncake, None) => TraceParser::Mooncake(MooncakeParser::new(settings.kv_block_bytes as u32)),
            (TraceFormat::Msr, None) => TraceParser::Cloud(CloudTrace::new(CloudFormat::Msr)),
            (TraceFormat::Alibaba, None) => TraceParser::Cloud(CloudTrace::new(CloudFormat::Alibaba)),
            (TraceFormat::Tencent, None) => TraceParser::Cloud(CloudTrace::new(CloudFormat::Tencent)),
        })
    }

    /// Starts a new file.
    pub(super) fn begin_file(&mut self) {
        match self {
            TraceParser::Iolog(iolog) => iolog.begin_file(),
            TraceParser::Blkparse(blkparse) => blkparse.begin_file(),
            TraceParser::Cloud(cloud) => cloud.begin_file(),
            TraceParser::Columns(columns) => columns.begin_file(),
            TraceParser::Vscsi(vscsi) => vscsi.begin_file(),
            TraceParser::Blktrace(_) | TraceParser::OracleGeneral(_) | TraceParser::Mooncake(_) => {}
        }
    }

    /// Restarts the trace.
    pub(super) fn begin_pass(&mut self) {
        match self {
            TraceParser::Iolog(iolog) => iolog.begin_pass(),
            TraceParser::Blkparse(blkparse) => blkparse.begin_pass(),
            TraceParser::Vscsi(vscsi) => vscsi.begin_pass(),
            TraceParser::OracleGeneral(objects) => objects.begin_pass(),
            TraceParser::Mooncake(mooncake) => mooncake.begin_pass(),
            // Their times are calendar times or those of a machine's clock.
            TraceParser::Cloud(_) | TraceParser::Columns(_) | TraceParser::Blktrace(_) => {}
        }
    }

    /// True if each pass gives the same records, except for their times. Space of objects that are
    /// deleted is reused in another order, and names of processes may come after their requests.
    pub(super) fn is_repeatable(&self) -> bool {
        match self {
            TraceParser::OracleGeneral(_) => false,
            TraceParser::Blktrace(blktrace) => !blktrace.has_names(),
            _ => true,
        }
    }

    /// Names of the first volumes and processes, at most `most` of each. Empty if the format has
    /// none.
    pub(super) fn names(&self, most: usize) -> [Vec<String>; 2] {
        let text = |names: &IdentityNames| names.first(most, as_text);
        match self {
            TraceParser::Iolog(iolog) => [text(&iolog.files), Vec::new()],
            TraceParser::Cloud(cloud) => [text(&cloud.volumes), Vec::new()],
            TraceParser::Blkparse(blkparse) => [text(&blkparse.devices), text(&blkparse.processes)],
            TraceParser::Columns(columns) => [text(&columns.volumes), text(&columns.processes)],
            TraceParser::Blktrace(blktrace) => blktrace.names(most),
            TraceParser::Vscsi(_) | TraceParser::OracleGeneral(_) | TraceParser::Mooncake(_) => Default::default(),
        }
    }

    /// Division of the files.
    #[inline]
    pub(super) fn frame(&self) -> RecordFraming {
        match self {
            TraceParser::Blktrace(_) => RecordFraming::Events,
            TraceParser::Vscsi(vscsi) => RecordFraming::Records(vscsi.version.record_bytes()),
            TraceParser::OracleGeneral(_) => RecordFraming::Records(objects::ObjectRequest::RECORD_BYTES),
            _ => RecordFraming::Lines,
        }
    }

    /// Parses a line or record. Returns `None` if it is no request. Further requests go to `then`.
    /// Times are the trace's own.
    #[inline]
    pub(super) fn parse(
        &mut self,
        line: &[u8],
        then: &mut Vec<TraceRecord>,
    ) -> Result<Option<TraceRecord>, FieldProblem> {
        match self {
            TraceParser::Iolog(iolog) => iolog.parse(line),
            TraceParser::Blkparse(blkparse) => blkparse.parse(line),
            TraceParser::Cloud(cloud) => cloud.parse(line),
            TraceParser::Columns(columns) => columns.parse(line),
            TraceParser::Blktrace(blktrace) => blktrace.parse(line),
            TraceParser::Vscsi(vscsi) => vscsi.parse(line),
            TraceParser::OracleGeneral(objects) => objects.parse(line, then),
            TraceParser::Mooncake(mooncake) => mooncake.parse(line, then),
        }
    }
}

/// Checks that the format has the column of the placement rule.
fn check_placement(format: TraceFormat, settings: &TraceSettings) -> Result<(), WorkloadError> {
    let columns = settings.csv.as_ref();
    let (rule, has_column, column) = match settings.placement {
        PlacementRule::Column => (
            "column",
            format == TraceFormat::Iolog || columns.is_some_and(|csv| csv.placement.is_some()),
            "placement indices, such as an iolog (behind the length) or a CSV file with csv.placement",
        ),
        PlacementRule::Process => (
            "process",
            matches!(format, TraceFormat::Blkparse | TraceFormat::Blktrace | TraceFormat::Capture)
                || columns.is_some_and(|csv| csv.process.is_some()),
            "processes, such as blktrace, the text of blkparse, a capture, or a CSV file with csv.process",
        ),
        PlacementRule::File => (
            "file",
            format == TraceFormat::Capture || columns.is_some_and(|csv| csv.file.is_some()),
            "files, such as a capture or a CSV file with csv.file",
        ),
        _ => return Ok(()),
    };
    if has_column {
        Ok(())
    } else {
        Err(WorkloadError::setting(format!("placement = {rule:?}"), format!("needs a trace with {column}")))
    }
}
