//! Trace formats, with detection of the format of a file and a parser for each.

use super::blkparse::{self, Blkparse};
use super::blktrace::{self, Blktrace};
use super::cloud::{self, Cloud, CloudTrace};
use super::columns::{ColumnSettings, Columns, capture_of_several};
use super::field::{Fields, Problem};
use super::input::uncompressed;
use super::iolog::{self, Iolog};
use super::objects::{self, Mooncake, OracleGeneral};
use super::record::Record;
use super::settings::{Format, PlacementRule, Settings};
use super::vscsi::{self, Vscsi};
use crate::WorkloadError;

impl Format {
    /// Guesses the format of a file from its first line, its first bytes or its name.
    pub(super) fn guess(name: &str, first_line: &[u8], head: &[u8]) -> Option<Format> {
        if blktrace::guess(head) {
            return Some(Format::Blktrace);
        }
        if objects::ObjectRequest::is_named_so(name) {
            return Some(Format::OracleGeneral);
        }
        if vscsi::guess(head).is_some() {
            return Some(Format::Vscsi);
        }
        if capture_of_several(first_line).is_some() {
            return Some(Format::Capture);
        }
        if objects::is_mooncake(first_line) {
            return Some(Format::Mooncake);
        }
        if iolog::HEADERS.contains(&first_line) {
            return Some(Format::Iolog);
        }
        if let Some(cloud) = cloud::guess(first_line) {
            return Some(match cloud {
                Cloud::Msr => Format::Msr,
                Cloud::Alibaba => Format::Alibaba,
                Cloud::Tencent => Format::Tencent,
            });
        }
        let starts_like_an_event = Fields::new(first_line).word().is_some_and(blkparse::is_device);
        (starts_like_an_event || uncompressed(name).ends_with(".blkparse")).then_some(Format::Blkparse)
    }
}

/// The parser of a format.
#[derive(Debug)]
pub(super) enum Parser {
    Iolog(Iolog),
    Blkparse(Blkparse),
    Cloud(CloudTrace),
    Columns(Box<Columns>),
    Blktrace(Box<Blktrace>),
    Vscsi(Vscsi),
    OracleGeneral(Box<OracleGeneral>),
    Mooncake(Mooncake),
}

/// Division of a file into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    Lines,
    /// Records of this fixed length.
    Records(usize),
    /// Records that contain their length.
    Events,
}

impl Parser {
    /// Creates a parser for a file with this first line and these first bytes, and for the files
    /// after it.
    pub(super) fn new(
        format: Format,
        settings: &Settings,
        first_line: &[u8],
        head: &[u8],
    ) -> Result<Parser, WorkloadError> {
        check_placement(format, settings)?;
        Ok(match (format, &settings.csv) {
            (Format::Csv, Some(columns)) => Parser::Columns(Box::new(Columns::new(columns, settings.file_by)?)),
            (Format::Csv, None) => {
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
            (Format::Iolog, None) => Parser::Iolog(Iolog::default()),
            (Format::Blkparse, None) => Parser::Blkparse(Blkparse::new(settings.blkparse_action, settings.process_by)),
            (Format::Blktrace, None) => {
                Parser::Blktrace(Box::new(Blktrace::new(settings.blkparse_action, settings.process_by)))
            }
            (Format::Capture, None) => {
                let are_several = capture_of_several(first_line) == Some(true);
                let columns = ColumnSettings::of_capture(are_several);
                Parser::Columns(Box::new(Columns::new(&columns, settings.file_by)?))
            }
            (Format::Vscsi, None) => Parser::Vscsi(Vscsi::new(head)),
            (Format::OracleGeneral, None) => Parser::OracleGeneral(Box::default()),
            (Format::Mooncake, None) => Parser::Mooncake(Mooncake::new(settings.kv_block_bytes as u32)),
            (Format::Msr, None) => Parser::Cloud(CloudTrace::new(Cloud::Msr)),
            (Format::Alibaba, None) => Parser::Cloud(CloudTrace::new(Cloud::Alibaba)),
            (Format::Tencent, None) => Parser::Cloud(CloudTrace::new(Cloud::Tencent)),
        })
    }

    /// Starts a new file.
    pub(super) fn begin_file(&mut self) {
        match self {
            Parser::Iolog(iolog) => iolog.begin_file(),
            Parser::Blkparse(blkparse) => blkparse.begin_file(),
            Parser::Cloud(cloud) => cloud.begin_file(),
            Parser::Columns(columns) => columns.begin_file(),
            Parser::Vscsi(vscsi) => vscsi.begin_file(),
            Parser::Blktrace(_) | Parser::OracleGeneral(_) | Parser::Mooncake(_) => {}
        }
    }

    /// Restarts the trace.
    pub(super) fn begin_pass(&mut self) {
        match self {
            Parser::Iolog(iolog) => iolog.begin_pass(),
            Parser::Blkparse(blkparse) => blkparse.begin_pass(),
            Parser::Vscsi(vscsi) => vscsi.begin_pass(),
            Parser::OracleGeneral(objects) => objects.begin_pass(),
            Parser::Mooncake(mooncake) => mooncake.begin_pass(),
            // Their times are calendar times or those of a machine's clock.
            Parser::Cloud(_) | Parser::Columns(_) | Parser::Blktrace(_) => {}
        }
    }

    /// Names of the first volumes and processes, at most `most` of each. Empty if the format has
    /// none.
    pub(super) fn names(&self, most: usize) -> [Vec<String>; 2] {
        match self {
            Parser::Iolog(iolog) => [iolog.files(most), Vec::new()],
            Parser::Cloud(cloud) => [cloud.volumes(most), Vec::new()],
            Parser::Blkparse(blkparse) => blkparse.names(most),
            Parser::Columns(columns) => columns.names(most),
            Parser::Blktrace(blktrace) => blktrace.names(most),
            Parser::Vscsi(_) | Parser::OracleGeneral(_) | Parser::Mooncake(_) => [Vec::new(), Vec::new()],
        }
    }

    /// Division of the files.
    #[inline]
    pub(super) fn frame(&self) -> Frame {
        match self {
            Parser::Blktrace(_) => Frame::Events,
            Parser::Vscsi(vscsi) => Frame::Records(vscsi.record_bytes()),
            Parser::OracleGeneral(_) => Frame::Records(objects::ObjectRequest::RECORD_BYTES),
            _ => Frame::Lines,
        }
    }

    /// Parses a line or record. Returns `None` if it is no request. Further requests go to `then`.
    /// Times are the trace's own.
    #[inline]
    pub(super) fn parse(&mut self, line: &[u8], then: &mut Vec<Record>) -> Result<Option<Record>, Problem> {
        match self {
            Parser::Iolog(iolog) => iolog.parse(line),
            Parser::Blkparse(blkparse) => blkparse.parse(line),
            Parser::Cloud(cloud) => cloud.parse(line),
            Parser::Columns(columns) => columns.parse(line),
            Parser::Blktrace(blktrace) => blktrace.parse(line),
            Parser::Vscsi(vscsi) => vscsi.parse(line),
            Parser::OracleGeneral(objects) => objects.parse(line, then),
            Parser::Mooncake(mooncake) => mooncake.parse(line, then),
        }
    }
}

/// Checks that the format has the column of the placement rule.
fn check_placement(format: Format, settings: &Settings) -> Result<(), WorkloadError> {
    let columns = settings.csv.as_ref();
    let (rule, has_column, column) = match settings.placement {
        PlacementRule::Column => (
            "column",
            format == Format::Iolog || columns.is_some_and(|csv| csv.placement.is_some()),
            "placement indices, such as an iolog (behind the length) or a CSV file with csv.placement",
        ),
        PlacementRule::Process => (
            "process",
            matches!(format, Format::Blkparse | Format::Blktrace | Format::Capture)
                || columns.is_some_and(|csv| csv.process.is_some()),
            "processes, such as blktrace, the text of blkparse, a capture, or a CSV file with csv.process",
        ),
        PlacementRule::File => (
            "file",
            format == Format::Capture || columns.is_some_and(|csv| csv.file.is_some()),
            "files, such as a capture or a CSV file with csv.file",
        ),
        _ => return Ok(()),
    };
    if has_column {
        Ok(())
    } else {
        Err(WorkloadError::setting(
            format!("placement = {rule:?}"),
            format!("needs a trace with {column}"),
        ))
    }
}
