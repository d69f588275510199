//! Export of any workload as fio iologs, for replay on hardware.
//!
//! ```text
//! RequestSource -> one iolog, all requests in order              fio: read_iolog=FILE
//!               -> an iolog per placement index and a job file  fio NAME.fio
//! ```
//!
//! An iolog has no field for placement indices. On replay fio itself chooses among a job's `plids`
//! (`read_iolog` of fio's `iolog.c`, and `dataplacement.c`). So there are two ways to write a
//! workload with placement:
//!
//! - One file with an extra column. fio ignores it, because it scans only the fields that it knows.
//!   WARP reads it (`placement = "column"`). The order is kept, but fio does not replay the
//!   placement.
//! - A file per placement index, and a job file with one job for each, which has the index as
//!   `plids`. Requests without an index (reads, trims) have their own file. fio runs the jobs
//!   concurrently. The order among jobs is lost in version 2. In version 3 it is as exact as the
//!   timestamps.
//!
//! Version 3 has timestamps in whole microseconds, taken from a [`TimedSource`]. For any other
//! source they are all 0, and fio issues requests as fast as it can, as with version 2. Streams are
//! not written, so all requests read back are of stream 0.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::groups::Arrival;
use super::replay::TimedSource;
use crate::{IoRequest, PlacementIndex, RequestOperation, RequestSource, WorkloadError};

/// Version of fio's trace format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IologVersion {
    /// Requests in order. For all versions of fio since 1.17.
    Two,
    /// With timestamps. For fio since 3.31.
    Three,
}

/// Format of the export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSettings {
    /// Path of the drive on the machine that replays. For placement indices this is the character
    /// device of fio's `io_uring_cmd` engine.
    pub file: String,
    /// Version of the iolog format.
    pub version: IologVersion,
    /// True to write placement indices into an extra column.
    pub placement_column: bool,
    /// Maximum requests to write. Required for an endless workload.
    pub requests_max: Option<u64>,
}

impl Default for ExportSettings {
    fn default() -> ExportSettings {
        ExportSettings {
            file: "/dev/ng0n1".to_string(),
            version: IologVersion::Two,
            placement_column: true,
            requests_max: None,
        }
    }
}

/// Summary of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Number of requests.
    pub requests: u64,
    /// Total bytes of the requests.
    pub bytes: u64,
    /// Files, with the job file last. Empty for a single output stream.
    pub files: Vec<PathBuf>,
}

/// A workload to export, with or without times.
pub enum ExportSource<'a> {
    /// A source without times.
    Untimed(&'a mut dyn RequestSource),
    /// A source with the times of its requests.
    Timed(&'a mut dyn TimedSource),
}

/// Requests per batch.
const BATCH: usize = 4096;

impl ExportSource<'_> {
    /// Calls `take` with up to `limit` requests and their times.
    fn each(
        &mut self,
        limit: Option<u64>,
        mut take: impl FnMut(&IoRequest, u64) -> Result<(), WorkloadError>,
    ) -> Result<(), WorkloadError> {
        let (mut requests, mut arrivals) = (Vec::new(), Vec::new());
        let mut left = limit.unwrap_or(u64::MAX);
        loop {
            requests.clear();
            arrivals.clear();
            let wanted = left.min(BATCH as u64) as usize;
            let issued = match self {
                ExportSource::Untimed(source) => {
                    let issued = source.next_batch(&mut requests, wanted)?;
                    arrivals.resize(issued, Arrival::default());
                    issued
                }
                ExportSource::Timed(source) => source.next_timed_batch(&mut requests, &mut arrivals, wanted)?,
            };
            assert!(
                issued <= wanted && issued == requests.len(),
                "a workload counts {issued} requests, gives {} and {wanted} are wanted",
                requests.len()
            );
            assert_eq!(arrivals.len(), requests.len(), "each request has a time");
            if issued == 0 {
                return Ok(());
            }
            for (request, arrival) in requests.iter().zip(&arrivals) {
                take(request, arrival.time_ns)?;
            }
            left -= issued as u64;
        }
    }
}

/// Writes a workload as one iolog. `name` stands for the output in errors.
///
/// # Errors
/// Fails if the workload or the output fails.
pub fn export(
    mut feed: ExportSource,
    settings: &ExportSettings,
    name: &str,
    out: impl Write,
) -> Result<ExportSummary, WorkloadError> {
    let failed = |source| WorkloadError::Io { file: name.to_string(), source };
    let mut iolog = IologWriter::begin(out, settings).map_err(failed)?;
    let mut exported = ExportSummary::default();
    feed.each(settings.requests_max, |request, time_ns| {
        exported.count(request);
        iolog.write(request, time_ns).map_err(failed)
    })?;
    iolog.end().map_err(failed)?;
    Ok(exported)
}

/// Writes a workload as an iolog per placement index and a job file `NAME.fio` that replays them.
/// The iologs are `NAME.0.iolog` and so on, and `NAME.none.iolog` for requests without an index.
///
/// # Errors
/// Fails if the workload fails or a file cannot be written.
pub fn export_per_placement(
    mut feed: ExportSource,
    settings: &ExportSettings,
    directory: &Path,
    name: &str,
) -> Result<ExportSummary, WorkloadError> {
    let mut exported = ExportSummary::default();
    let mut iologs: BTreeMap<Option<PlacementIndex>, IologWriter<File>> = BTreeMap::new();
    let path_of = |placement| directory.join(iolog_name(name, placement));
    feed.each(settings.requests_max, |request, time_ns| {
        exported.count(request);
        let failed = |source| failed(&path_of(request.placement), source);
        let iolog = match iologs.entry(request.placement) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let file = File::create(path_of(request.placement)).map_err(failed)?;
                entry.insert(IologWriter::begin(file, settings).map_err(failed)?)
            }
        };
        iolog.write(request, time_ns).map_err(failed)
    })?;
    let placements: Vec<Option<PlacementIndex>> = iologs.keys().copied().collect();
    for (placement, iolog) in iologs {
        let path = path_of(placement);
        iolog.end().map_err(|error| failed(&path, error))?;
        exported.files.push(path);
    }
    let path = directory.join(format!("{name}.fio"));
    std::fs::write(&path, job_file(name, &placements, settings)).map_err(|error| failed(&path, error))?;
    exported.files.push(path);
    Ok(exported)
}

fn failed(path: &Path, source: io::Error) -> WorkloadError {
    WorkloadError::Io { file: path.display().to_string(), source }
}

fn iolog_name(name: &str, placement: Option<PlacementIndex>) -> String {
    match placement {
        Some(placement) => format!("{name}.{placement}.iolog"),
        None => format!("{name}.none.iolog"),
    }
}

/// Builds the job file that replays one iolog per placement index.
fn job_file(name: &str, placements: &[Option<PlacementIndex>], settings: &ExportSettings) -> String {
    let pace = match settings.version {
        IologVersion::Two => "The order among the jobs is not kept.",
        IologVersion::Three => "Timestamps keep the order among the jobs. replay_no_stall=1 ignores the timestamps.",
    };
    let mut text = format!(
        "# Replays a workload of WARP on {}, one job per placement index. {pace}\n\
         # replay_redirect=/dev/ngXnY selects another drive. THIS OVERWRITES THE DRIVE.\n\
         [global]\nioengine=io_uring_cmd\ncmd_type=nvme\niodepth=16\n",
        settings.file
    );
    for placement in placements {
        let file = iolog_name(name, *placement);
        text += &match placement {
            Some(placement) => {
                format!("\n[placement-{placement}]\nread_iolog={file}\nfdp=1\nplids={placement}\n")
            }
            None => format!("\n[no-placement]\nread_iolog={file}\n"),
        };
    }
    text
}

impl ExportSummary {
    fn count(&mut self, request: &IoRequest) {
        self.requests += 1;
        self.bytes += u64::from(request.bytes);
    }
}

struct IologWriter<'a, W: Write> {
    out: BufWriter<W>,
    settings: &'a ExportSettings,
    last_us: u64,
}

impl<'a, W: Write> IologWriter<'a, W> {
    fn begin(out: W, settings: &'a ExportSettings) -> io::Result<IologWriter<'a, W>> {
        let mut iolog = IologWriter { out: BufWriter::with_capacity(1 << 16, out), settings, last_us: 0 };
        match settings.version {
            IologVersion::Two => writeln!(iolog.out, "fio version 2 iolog")?,
            IologVersion::Three => writeln!(iolog.out, "fio version 3 iolog")?,
        }
        iolog.write_action("add")?;
        iolog.write_action("open")?;
        Ok(iolog)
    }

    /// Writes a line about the file.
    fn write_action(&mut self, action: &str) -> io::Result<()> {
        self.stamp()?;
        writeln!(self.out, "{} {action}", self.settings.file)
    }

    fn stamp(&mut self) -> io::Result<()> {
        match self.settings.version {
            IologVersion::Two => Ok(()),
            IologVersion::Three => write!(self.out, "{} ", self.last_us),
        }
    }

    fn write(&mut self, request: &IoRequest, time_ns: u64) -> io::Result<()> {
        // A request behind one with a later time is due at that later time, as in a timed replay.
        self.last_us = self.last_us.max(time_ns / 1000);
        self.stamp()?;
        let action = match request.operation {
            RequestOperation::Read => "read",
            RequestOperation::Write => "write",
            RequestOperation::Trim => "trim",
        };
        let (file, offset, bytes) = (&self.settings.file, request.offset_bytes, request.bytes);
        write!(self.out, "{file} {action} {offset} {bytes}")?;
        match request.placement {
            Some(placement) if self.settings.placement_column => writeln!(self.out, " {placement}"),
            _ => writeln!(self.out),
        }
    }

    fn end(mut self) -> io::Result<()> {
        self.write_action("close")?;
        self.out.flush()
    }
}
