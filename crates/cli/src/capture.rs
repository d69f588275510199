//! `warp capture`: records the disk requests of a program as a trace.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use base::HumanBytes;
use experiment::LabError;
use host_tools::capture::{BlockCapture, CaptureContents, Disk, Summary};
use simulate::run::ProgressObserver;

use crate::arguments::CaptureArgs;
use crate::output::print_error;
use crate::{AnyError, ExitOutcome, bad_option, execute};

/// Default file name in a folder.
const NAME: &str = "capture.csv.zst";
/// Pause between two polls of the kernel's buffers.
const PAUSE: Duration = Duration::from_millis(10);
/// Time for the command to end after Ctrl-C before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Compression level of zstd, low enough to keep up with any disk.
const LEVEL: i32 = 1;
/// Base of the exit code after a signal, by the convention of shells.
const SIGNALLED: i32 = 128;

pub fn capture(command: &CaptureArgs) -> Result<ExitOutcome, AnyError> {
    host_tools::capture::check()?;
    let devices = std::iter::once(&command.device).chain(&command.also);
    let disks = devices.map(|device| Disk::open(device)).collect::<Result<Vec<Disk>, _>>()?;
    let path = destination(&command.out)?;
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    let names = names.join(" and ");
    // A failed start leaves no file behind.
    let out = PartialCapture::create(&path)?;
    let capture = BlockCapture::start(disks, CaptureContents::Requests, out.writer()?, command.buffer)?;
    let (status, summary, writer) = record(capture, &command.command)?;
    writer.finish().map_err(|error| unwritten(&path, error))?;
    out.persist()?;
    print_summary(&summary, &names, &path);
    Ok(outcome(status))
}

/// Runs a command and records until it ends.
pub fn record<W: Write>(
    mut capture: BlockCapture<W>,
    command: &[OsString],
) -> Result<(ExitStatus, Summary, W), AnyError> {
    let progress = execute::stoppable();
    let program = command[0].display().to_string();
    let mut child = std::process::Command::new(&command[0])
        .args(&command[1..])
        .spawn()
        .map_err(|error| bad_option(&program, format!("the command cannot be started ({error})")))?;
    let mut stopped = None;
    let status = loop {
        let has_events = capture.poll()?;
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if progress.should_stop() {
            kill_after_patience(&mut child, stopped.get_or_insert_with(Instant::now));
        }
        if !has_events {
            std::thread::sleep(PAUSE);
        }
    };
    let (summary, writer) = capture.finish()?;
    Ok((status, summary, writer))
}

/// Path of the capture. An existing file is an error.
fn destination(out: &Path) -> Result<PathBuf, LabError> {
    if crate::output::is_standard_output(out) {
        return Err(bad_option("--out", "standard output belongs to the command. Give a file"));
    }
    let path = if out.is_dir() { out.join(NAME) } else { out.to_path_buf() };
    if path.exists() {
        let problem = format!("{} exists already. Give another file", path.display());
        return Err(bad_option("--out", problem));
    }
    Ok(path)
}

/// Kills the command if it ignores Ctrl-C, which it received too.
fn kill_after_patience(child: &mut Child, since: &Instant) {
    if since.elapsed() > PATIENCE {
        // `kill` fails if the command has ended already.
        drop(child.kill());
    }
}

pub fn outcome(status: ExitStatus) -> ExitOutcome {
    let code = status.code().or_else(|| Some(SIGNALLED + status.signal()?));
    ExitOutcome::As(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::FAILED))
}

/// Prints the summary to standard error, because standard output belongs to the command.
fn print_summary(summary: &Summary, disks: &str, path: &Path) {
    let written = summary.bytes_written;
    let share = (summary.bytes_of_files * 100).checked_div(written).unwrap_or(0);
    print_error(&format!(
        "captured {} requests to {disks} in {}, with {} written, {share} % of it to known files",
        summary.requests,
        path.display(),
        HumanBytes(written)
    ));
    print_doubts(summary);
}

pub fn print_doubts(summary: &Summary) {
    if let Some(problem) = &summary.without_files {
        print_error(&format!("the files of the requests are unknown ({problem})"));
    }
    if summary.lost > 0 {
        let lost = summary.lost;
        print_error(&format!(
            "{lost} events were lost, because the kernel's buffers were full. Use larger buffers, such as --buffer \
             64MiB"
        ));
    }
    if summary.unknown > 0 {
        let unknown = summary.unknown;
        print_error(&format!("{unknown} lines of the kernel's trace have an unknown format and are left out"));
    }
}

/// File that appears under its name only after it is complete.
struct PartialCapture {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl PartialCapture {
    fn create(path: &Path) -> Result<PartialCapture, LabError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
        Ok(PartialCapture { file: file.map_err(|error| unwritten(path, error))?, path: path.to_path_buf() })
    }

    fn writer(&self) -> Result<CaptureStream, LabError> {
        let file = self.file.reopen().map_err(|error| unwritten(&self.path, error))?;
        if self.path.extension().is_none_or(|ending| ending != "zst") {
            return Ok(CaptureStream::Plain(BufWriter::new(file)));
        }
        let encoder = zstd::stream::write::Encoder::new(file, LEVEL).map_err(|error| unwritten(&self.path, error))?;
        Ok(CaptureStream::Compressed(Box::new(BufWriter::new(encoder))))
    }

    fn persist(self) -> Result<(), LabError> {
        let persisted = self.file.persist_noclobber(&self.path);
        persisted.map(drop).map_err(|error| unwritten(&self.path, error.error))
    }
}

/// Writer of the file, compressed or plain.
enum CaptureStream {
    Plain(BufWriter<File>),
    Compressed(Box<BufWriter<zstd::stream::write::Encoder<'static, File>>>),
}

impl CaptureStream {
    fn finish(self) -> io::Result<()> {
        match self {
            CaptureStream::Plain(mut file) => file.flush(),
            CaptureStream::Compressed(encoder) => {
                let encoder = encoder.into_inner().map_err(io::IntoInnerError::into_error)?;
                encoder.finish().map(drop)
            }
        }
    }
}

impl Write for CaptureStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            CaptureStream::Plain(file) => file.write(bytes),
            CaptureStream::Compressed(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            CaptureStream::Plain(file) => file.flush(),
            CaptureStream::Compressed(encoder) => encoder.flush(),
        }
    }
}

fn unwritten(path: &Path, source: io::Error) -> LabError {
    LabError::Io { file: path.display().to_string(), source }
}
