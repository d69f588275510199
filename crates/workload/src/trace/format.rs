//! Formats: which one a file has, and the reader of each.

use super::blkparse::{self, Blkparse};
use super::cloud::{self, Cloud, CloudTrace};
use super::columns::Columns;
use super::field::{Fields, Problem};
use super::iolog::{self, Iolog};
use super::record::Record;
use super::settings::{Format, PlacementRule, Settings};
use crate::WorkloadError;

impl Format {
    /// The format of a file by its first line, or by its name.
    pub(super) fn guess(name: &str, first_line: &[u8]) -> Option<Format> {
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
        let plain_name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        (starts_like_an_event || plain_name.ends_with(".blkparse")).then_some(Format::Blkparse)
    }
}

/// The reader of a format.
#[derive(Debug)]
pub(super) enum Parser {
    Iolog(Iolog),
    Blkparse(Blkparse),
    Cloud(CloudTrace),
    Columns(Box<Columns>),
}

impl Parser {
    pub(super) fn new(format: Format, settings: &Settings) -> Result<Parser, WorkloadError> {
        check_placement(format, settings)?;
        Ok(match (format, &settings.csv) {
            (Format::Csv, Some(columns)) => Parser::Columns(Box::new(Columns::new(columns)?)),
            (Format::Csv, None) => {
                return Err(WorkloadError::setting(
                    "format = \"csv\"",
                    "needs a table [workload.csv] that says which column is what",
                ));
            }
            (_, Some(_)) => {
                return Err(WorkloadError::setting(
                    "csv",
                    "only format = \"csv\" has columns to describe; leave out the table or say that format",
                ));
            }
            (Format::Iolog, None) => Parser::Iolog(Iolog::default()),
            (Format::Blkparse, None) => Parser::Blkparse(Blkparse::new(settings.blkparse_action)),
            (Format::Msr, None) => Parser::Cloud(CloudTrace::new(Cloud::Msr)),
            (Format::Alibaba, None) => Parser::Cloud(CloudTrace::new(Cloud::Alibaba)),
            (Format::Tencent, None) => Parser::Cloud(CloudTrace::new(Cloud::Tencent)),
        })
    }

    /// A new file begins.
    pub(super) fn begin_file(&mut self) {
        match self {
            Parser::Iolog(iolog) => iolog.begin_file(),
            Parser::Blkparse(blkparse) => blkparse.begin_file(),
            Parser::Cloud(cloud) => cloud.begin_file(),
            Parser::Columns(columns) => columns.begin_file(),
        }
    }

    /// The trace begins again.
    pub(super) fn begin_pass(&mut self) {
        match self {
            Parser::Iolog(iolog) => iolog.begin_pass(),
            Parser::Blkparse(blkparse) => blkparse.begin_pass(),
            // Their times are those of a calendar.
            Parser::Cloud(_) | Parser::Columns(_) => {}
        }
    }

    /// What a line says; nothing if it is no request. The time is the trace's own.
    #[inline]
    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Problem> {
        match self {
            Parser::Iolog(iolog) => iolog.parse(line),
            Parser::Blkparse(blkparse) => blkparse.parse(line),
            Parser::Cloud(cloud) => cloud.parse(line),
            Parser::Columns(columns) => columns.parse(line),
        }
    }
}

/// Whether lines of a format have the column that placement comes from.
fn check_placement(format: Format, settings: &Settings) -> Result<(), WorkloadError> {
    let columns = settings.csv.as_ref();
    let (rule, has_column, column) = match settings.placement {
        PlacementRule::Column => (
            "column",
            format == Format::Iolog || columns.is_some_and(|csv| csv.placement.is_some()),
            "placement indices: iologs have (behind the length), and CSV with csv.placement",
        ),
        PlacementRule::Process => (
            "process",
            format == Format::Blkparse || columns.is_some_and(|csv| csv.process.is_some()),
            "processes: the text of blkparse has, and CSV with csv.process",
        ),
        _ => return Ok(()),
    };
    if has_column {
        Ok(())
    } else {
        Err(WorkloadError::setting(
            format!("placement = {rule:?}"),
            format!("the trace has no column with {column}"),
        ))
    }
}
